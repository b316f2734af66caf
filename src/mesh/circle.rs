//! Who waits for whom: circles of services, and the longest chain of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::words::ServiceName;

/// How many circles are named in one run.
const MOST_CIRCLES: usize = 20;

/// Each service, and those that it points to.
pub(super) type Graph<'a> = BTreeMap<&'a ServiceName, Vec<&'a ServiceName>>;

/// Circles in the graph that share no service, each from its first service by name. None: there is
/// no circle at all.
pub(super) fn circles<'a>(graph: &Graph<'a>) -> Vec<Vec<&'a ServiceName>> {
    let mut found = Vec::new();
    let mut core = core(graph);
    while found.len() < MOST_CIRCLES {
        // Every service of a core points to one in it, so that a walk comes back to itself.
        let Some(start) = core.keys().next().copied() else {
            break;
        };
        let (mut walk, mut seen, mut at) = (Vec::new(), BTreeMap::new(), start);
        while !seen.contains_key(at) {
            seen.insert(at, walk.len());
            walk.push(at);
            match core.get(at).and_then(|next| next.first()) {
                Some(next) => at = next,
                None => return found,
            }
        }
        let mut circle = walk.split_off(seen.get(at).copied().unwrap_or(0));
        let first = circle.iter().min().copied();
        let first = circle.iter().position(|name| Some(*name) == first);
        circle.rotate_left(first.unwrap_or(0));
        let gone: BTreeSet<&ServiceName> = circle.iter().copied().collect();
        core.retain(|name, _| !gone.contains(name));
        core = self::core(&core);
        found.push(circle);
    }
    found
}

/// The number of services in the longest chain: 1 for a service that points to none. A circle counts
/// with all its services, and what lies between two circles too.
pub(super) fn longest_chain(graph: &Graph<'_>) -> usize {
    let below = peel(graph);
    let rest = without(graph, &below);
    let above = peel(&reversed(&rest));
    let circular = rest.len().saturating_sub(above.len());
    let deepest = |depths: &BTreeMap<&ServiceName, usize>| depths.values().copied().max();
    deepest(&below)
        .unwrap_or(0)
        .saturating_add(circular)
        .saturating_add(deepest(&above).unwrap_or(0))
}

/// What lies on a circle, or between two.
fn core<'a>(graph: &Graph<'a>) -> Graph<'a> {
    let rest = without(graph, &peel(graph));
    let backwards = reversed(&rest);
    without(&rest, &peel(&backwards))
}

/// The services from which no way leads into a circle, with the length of the longest way from each.
fn peel<'a>(graph: &Graph<'a>) -> BTreeMap<&'a ServiceName, usize> {
    let backwards = reversed(graph);
    let mut left: BTreeMap<&ServiceName, usize> = graph
        .iter()
        .map(|(name, next)| (*name, next.len()))
        .collect();
    let mut depths = BTreeMap::new();
    let mut ready: Vec<(&ServiceName, usize)> = left
        .iter()
        .filter(|(_, count)| **count == 0)
        .map(|(name, _)| (*name, 1))
        .collect();
    let mut reached: BTreeMap<&ServiceName, usize> = BTreeMap::new();
    while let Some((name, depth)) = ready.pop() {
        depths.insert(name, depth);
        for before in backwards.get(name).into_iter().flatten() {
            let longest = reached.entry(before).or_insert(0);
            *longest = (*longest).max(depth);
            let longest = longest.saturating_add(1);
            if let Some(count) = left.get_mut(before) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    ready.push((before, longest));
                }
            }
        }
    }
    depths
}

fn reversed<'a>(graph: &Graph<'a>) -> Graph<'a> {
    let mut backwards: Graph<'a> = graph.keys().map(|name| (*name, Vec::new())).collect();
    for (name, next) in graph {
        for to in next {
            backwards.entry(to).or_default().push(name);
        }
    }
    backwards
}

fn without<'a>(graph: &Graph<'a>, gone: &BTreeMap<&'a ServiceName, usize>) -> Graph<'a> {
    let stays = |name: &ServiceName| graph.contains_key(name) && !gone.contains_key(name);
    graph
        .iter()
        .filter(|(name, _)| stays(name))
        .map(|(name, next)| {
            let next = next.iter().copied().filter(|to| stays(to)).collect();
            (*name, next)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<ServiceName> {
        (0..count)
            .map(|n| ServiceName::new(&format!("s{n:05}")).unwrap())
            .collect()
    }

    fn graph<'a>(names: &'a [ServiceName], edges: &[(usize, usize)]) -> Graph<'a> {
        let mut graph: Graph<'a> = names.iter().map(|name| (name, Vec::new())).collect();
        for (from, to) in edges {
            graph.get_mut(&names[*from]).unwrap().push(&names[*to]);
        }
        graph
    }

    #[test]
    fn a_chain_is_counted_and_has_no_circle() {
        let names = names(4);
        let chain = graph(&names, &[(0, 1), (1, 2), (0, 2), (3, 2)]);
        assert_eq!(longest_chain(&chain), 3);
        assert!(circles(&chain).is_empty());
        assert_eq!(longest_chain(&graph(&names, &[])), 1);
        assert_eq!(longest_chain(&Graph::new()), 0);
    }

    #[test]
    fn every_circle_is_found_and_begins_with_its_first_name() {
        let names = names(7);
        // 1 -> 0 -> 2 -> 1, 5 -> 6 -> 5, and ways in and out of the first.
        let edges = [(1, 0), (0, 2), (2, 1), (3, 0), (2, 4), (5, 6), (6, 5)];
        let found = circles(&graph(&names, &edges));
        assert_eq!(
            found,
            [
                vec![&names[0], &names[2], &names[1]],
                vec![&names[5], &names[6]]
            ]
        );
        let first = graph(&names[..5], &edges[..5]);
        assert_eq!(longest_chain(&first), 5); // 3 -> all of the circle -> 4
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let names = names(20_000);
        let edges: Vec<_> = (1..20_000).map(|n| (n - 1, n)).collect();
        assert_eq!(longest_chain(&graph(&names, &edges)), 20_000);
        let mut circle = edges;
        circle.push((19_999, 0));
        assert_eq!(circles(&graph(&names, &circle))[0].len(), 20_000);
    }
}
