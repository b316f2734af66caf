//! `Match` blocks of `~/.ssh/config`, which this courier does not read: where one may apply, that is said.

use std::collections::BTreeSet;

use super::super::settings::CourierSettings;
use super::config;
use super::host_key::names_match;
use crate::mesh::{CourierKind, Node};
use crate::words::NodeName;

/// One line for each `Match` block that may apply to some of these machines.
#[must_use]
pub fn match_blocks<'a>(
    settings: &CourierSettings,
    nodes: impl IntoIterator<Item = &'a Node>,
) -> Vec<String> {
    let Ok(Some(text)) = config::text(settings.home.as_deref()) else {
        return Vec::new(); // what is wrong with it is said where it is used
    };
    let blocks = blocks(&text);
    if blocks.is_empty() {
        return Vec::new();
    }
    let nodes: Vec<&Node> = nodes
        .into_iter()
        .filter(|node| node.courier == CourierKind::Ssh)
        .collect();
    let mut notes = Vec::new();
    for (line, hosts) in blocks {
        let applies = |node: &&&Node| {
            let host = node.host().to_lowercase();
            hosts.as_ref().is_none_or(|hosts| names_match(hosts, &host))
        };
        let names: BTreeSet<&NodeName> = nodes
            .iter()
            .filter(applies)
            .map(|node| &node.name)
            .collect();
        let names: Vec<&str> = names.into_iter().map(NodeName::as_str).collect();
        let of = match names.as_slice() {
            [] => continue,
            few if few.len() <= 3 => few.join(", "),
            many => format!("{} machines", many.len()),
        };
        notes.push(format!(
            "~/.ssh/config:{line}: this `Match` block may apply to {of}, and is not read; with `courier = \"openssh\"` it is"
        ));
    }
    notes
}

/// The line of each block, and the patterns of the hosts that it is about; `None`: it may be about any.
fn blocks(text: &str) -> Vec<(usize, Option<String>)> {
    let mut blocks = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut words = line
            .split(|c: char| c.is_whitespace() || c == '=')
            .filter(|word| !word.is_empty());
        if !words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("match"))
        {
            continue;
        }
        let mut hosts = None;
        while let Some(word) = words.next() {
            if word.eq_ignore_ascii_case("host") || word.eq_ignore_ascii_case("originalhost") {
                hosts = words
                    .next()
                    .map(|hosts| hosts.trim_matches('"').to_lowercase());
            }
        }
        blocks.push((index.saturating_add(1), hosts));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_about_the_hosts_that_it_names_or_about_any() {
        let text = "Host a\n User x\nMatch host *.example.org,b user y\n Port 1\nmatch final all\nMatch originalhost=\"C\"\n";
        assert_eq!(
            blocks(text),
            [
                (3, Some("*.example.org,b".to_owned())),
                (5, None),
                (6, Some("c".to_owned()))
            ]
        );
    }
}
