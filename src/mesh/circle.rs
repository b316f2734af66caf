//! Who waits for whom: circles of services, and the longest chain of them.

use crate::words::ServiceName;

/// How many circles are named in one run.
const MOST_CIRCLES: usize = 20;

/// Services, and those that each points to.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    /// In order of name.
    names: Vec<&'a ServiceName>,
    /// Of each service, by its place among the names, those that it points to.
    next: Edges,
    /// Of each service, those that point to it.
    before: Edges,
}

type Edges = Vec<Vec<usize>>;

impl<'a> Graph<'a> {
    /// The graph of services, in order of name, each with those that it points to. Whoever is pointed to
    /// and is not a service of the graph does not count.
    pub fn new<I>(services: impl Iterator<Item = (&'a ServiceName, I)>) -> Self
    where
        I: Iterator<Item = &'a ServiceName>,
    {
        let (names, pointed): (Vec<_>, Vec<_>) = services.unzip();
        let next: Edges = pointed
            .into_iter()
            .map(|to| to.filter_map(|to| names.binary_search(&to).ok()).collect())
            .collect();
        let mut before: Edges = vec![Vec::new(); names.len()];
        for (from, to) in next.iter().enumerate() {
            for to in to {
                if let Some(before) = before.get_mut(*to) {
                    before.push(from);
                }
            }
        }
        Self {
            names,
            next,
            before,
        }
    }

    /// Circles that share no service, each from its first service by name; at most [`MOST_CIRCLES`].
    /// None: there is no circle at all.
    pub fn circles(&self) -> Vec<Vec<&'a ServiceName>> {
        let mut found = Vec::new();
        let mut left = vec![true; self.names.len()];
        while found.len() < MOST_CIRCLES {
            // What is left then points to something that is left, so that a walk comes back to itself.
            peel(&self.next, &self.before, &mut left);
            peel(&self.before, &self.next, &mut left);
            let Some(mut at) = left.iter().position(|left| *left) else {
                break;
            };
            let mut walk = Vec::new();
            let mut seen = vec![None; self.names.len()];
            let first = loop {
                match seen.get_mut(at) {
                    Some(Some(first)) => break *first,
                    Some(unseen) => *unseen = Some(walk.len()),
                    None => return found,
                }
                walk.push(at);
                let next = self.next.get(at).into_iter().flatten();
                match next.copied().find(|to| is_left(&left, *to)) {
                    Some(next) => at = next,
                    None => return found,
                }
            };
            let mut circle = walk.split_off(first);
            let least = circle.iter().min().copied();
            let least = circle.iter().position(|at| Some(*at) == least);
            circle.rotate_left(least.unwrap_or(0));
            for at in &circle {
                if let Some(left) = left.get_mut(*at) {
                    *left = false;
                }
            }
            let names = circle.iter().filter_map(|at| self.names.get(*at).copied());
            found.push(names.collect());
        }
        found
    }

    /// The number of services in the longest chain: 1 for a service that points to none. A circle
    /// counts with all its services, and what lies between two circles too.
    pub fn longest_chain(&self) -> usize {
        let mut left = vec![true; self.names.len()];
        let below = peel(&self.next, &self.before, &mut left);
        let above = peel(&self.before, &self.next, &mut left);
        let circular = left.iter().filter(|left| **left).count();
        below.saturating_add(circular).saturating_add(above)
    }
}

fn is_left(left: &[bool], at: usize) -> bool {
    left.get(at).is_some_and(|left| *left)
}

/// Takes away, again and again, what points to nothing that is left. Returns the number of services in
/// the longest chain of what went.
fn peel(next: &Edges, before: &Edges, left: &mut [bool]) -> usize {
    let mut counts: Vec<usize> = next
        .iter()
        .map(|to| to.iter().filter(|to| is_left(left, **to)).count())
        .collect();
    let mut depths = vec![1_usize; next.len()];
    let mut ready: Vec<usize> = (0..next.len())
        .filter(|at| is_left(left, *at) && counts.get(*at) == Some(&0))
        .collect();
    let mut deepest = 0;
    while let Some(at) = ready.pop() {
        if let Some(left) = left.get_mut(at) {
            *left = false;
        }
        let depth = depths.get(at).copied().unwrap_or(1);
        deepest = deepest.max(depth);
        for from in before.get(at).into_iter().flatten().copied() {
            if !is_left(left, from) {
                continue;
            }
            if let Some(known) = depths.get_mut(from) {
                *known = (*known).max(depth.saturating_add(1));
            }
            if let Some(count) = counts.get_mut(from) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    ready.push(from);
                }
            }
        }
    }
    deepest
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
        let mut next = vec![Vec::new(); names.len()];
        for (from, to) in edges {
            next[*from].push(&names[*to]);
        }
        Graph::new(names.iter().zip(next.into_iter().map(Vec::into_iter)))
    }

    #[test]
    fn a_chain_is_counted_and_has_no_circle() {
        let names = names(4);
        let chain = graph(&names, &[(0, 1), (1, 2), (0, 2), (3, 2)]);
        assert_eq!(chain.longest_chain(), 3);
        assert!(chain.circles().is_empty());
        assert_eq!(graph(&names, &[]).longest_chain(), 1);
        assert_eq!(graph(&[], &[]).longest_chain(), 0);
    }

    #[test]
    fn every_circle_is_found_and_begins_with_its_first_name() {
        let names = names(7);
        // 1 -> 0 -> 2 -> 1, 5 -> 6 -> 5, and ways in and out of the first.
        let edges = [(1, 0), (0, 2), (2, 1), (3, 0), (2, 4), (5, 6), (6, 5)];
        let found = graph(&names, &edges).circles();
        assert_eq!(
            found,
            [
                vec![&names[0], &names[2], &names[1]],
                vec![&names[5], &names[6]]
            ]
        );
        let first = graph(&names[..5], &edges[..5]);
        assert_eq!(first.longest_chain(), 5); // 3 -> all of the circle -> 4
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let names = names(20_000);
        let mut edges: Vec<_> = (1..20_000).map(|n| (n - 1, n)).collect();
        assert_eq!(graph(&names, &edges).longest_chain(), 20_000);
        edges.push((19_999, 0));
        assert_eq!(graph(&names, &edges).circles()[0].len(), 20_000);
    }
}
