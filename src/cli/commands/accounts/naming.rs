//! How accounts are named on the command line: `PROVIDER/CONSUMER`, or a pattern; and what nobody could have meant.

use std::collections::BTreeSet;

use crate::cli::commands::change::name;
use crate::cli::exit::CommandError;
use crate::cli::phrases::some_of;
use crate::mesh::Mesh;
use crate::provision::ProvisionId;
use crate::words::{ServiceName, nearest};

/// Where it is listed which accounts there are.
pub(in crate::cli::commands) const LISTED: &str = "`grid provisions` lists those that there are";

/// Refuses an account whose provider or consumer is neither in the mesh nor in an account that is `known`: it is
/// misspelt.
pub(in crate::cli::commands) fn may_exist(
    mesh: &Mesh,
    known: &BTreeSet<ProvisionId>,
    id: &ProvisionId,
) -> Result<(), CommandError> {
    is_provider(mesh, known, id)?;
    is_consumer(mesh, known, id)?;
    let consumer = mesh.services.get(&id.consumer);
    if !known.contains(id)
        && consumer.is_some_and(|consumer| !consumer.consumes.contains_key(&id.provider))
    {
        return Err(CommandError::usage(format!(
            "{} does not consume {}, and has no account on it",
            id.consumer, id.provider
        ))
        .hint("`grid provisions` lists the accounts that there are"));
    }
    Ok(())
}

pub(super) fn is_provider(
    mesh: &Mesh,
    known: &BTreeSet<ProvisionId>,
    id: &ProvisionId,
) -> Result<(), CommandError> {
    let declared = mesh
        .services
        .values()
        .filter(|service| service.provides.is_some());
    let names = declared.map(|service| &service.name);
    let names: BTreeSet<&ServiceName> = names.chain(known.iter().map(|id| &id.provider)).collect();
    let others =
        (!names.is_empty()).then(|| format!("the providers of this mesh: {}", some_of(&names)));
    is_among("provider", &id.provider, &names, others)
}

pub(super) fn is_consumer(
    mesh: &Mesh,
    known: &BTreeSet<ProvisionId>,
    id: &ProvisionId,
) -> Result<(), CommandError> {
    let names = mesh.services.keys();
    let names = names.chain(known.iter().map(|id| &id.consumer)).collect();
    is_among("service", &id.consumer, &names, None)
}

/// Refuses a name that is none of these, with the nearest one. `others`: what is said where none is near.
fn is_among(
    what: &str,
    name: &ServiceName,
    names: &BTreeSet<&ServiceName>,
    others: Option<String>,
) -> Result<(), CommandError> {
    if names.contains(name) {
        return Ok(());
    }
    let error = format!("there is no {what} {name} in this mesh");
    let names = names.iter().map(|name| name.as_str());
    Err(match nearest(name.as_str(), names) {
        Some(near) => CommandError::usage(format!("{error}; did you mean {near}?")),
        None => others
            .into_iter()
            .fold(CommandError::usage(error), CommandError::hint),
    })
}

/// The account that a text names, where a pattern may name the accounts that are `known`.
fn account(text: &str, known: &BTreeSet<ProvisionId>) -> Result<ProvisionId, CommandError> {
    let Some((provider, consumer)) = text.split_once('/') else {
        let error = CommandError::usage(format!(
            "{text:?} names no account: it is PROVIDER/CONSUMER, or a pattern like 'broker/*'"
        ));
        let patterns = patterns_for(text, known).into_iter();
        return Err(patterns.fold(error, CommandError::hint));
    };
    Ok(ProvisionId {
        provider: name(provider, ServiceName::new)?,
        consumer: name(consumer, ServiceName::new)?,
    })
}

/// The patterns, quoted for a shell, that name all accounts on a provider or of a consumer of this name, and which those are.
fn patterns_for(name: &str, known: &BTreeSet<ProvisionId>) -> Vec<String> {
    let on: Vec<_> = known
        .iter()
        .filter(|id| id.provider.as_str() == name)
        .collect();
    let of: Vec<_> = known
        .iter()
        .filter(|id| id.consumer.as_str() == name)
        .collect();
    let on = (!on.is_empty())
        .then(|| format!("`'{name}/*'` names all accounts on {name}: {}", some_of(on)));
    let of = (!of.is_empty())
        .then(|| format!("`'*/{name}'` names all accounts of {name}: {}", some_of(of)));
    on.into_iter().chain(of).collect()
}

/// The accounts that the patterns name. One without `*` names one, which `check` may refuse; a pattern that matches
/// none is an error.
pub(in crate::cli::commands) fn choose(
    patterns: &[String],
    known: &BTreeSet<ProvisionId>,
    check: impl Fn(&ProvisionId) -> Result<(), CommandError>,
) -> Result<BTreeSet<ProvisionId>, CommandError> {
    let mut chosen = BTreeSet::new();
    for pattern in patterns {
        if let (true, Some((provider, consumer))) = (pattern.contains('*'), pattern.split_once('/'))
        {
            let before = chosen.len();
            let matching = known.iter().filter(|id| {
                matches(provider, id.provider.as_str()) && matches(consumer, id.consumer.as_str())
            });
            let mut any = false;
            for id in matching {
                any = true;
                chosen.insert(id.clone());
            }
            if !any && chosen.len() == before {
                return Err(
                    CommandError::usage(format!("{pattern:?} matches no account")).hint(LISTED),
                );
            }
            continue;
        }
        let id = account(pattern, known)?;
        check(&id)?;
        chosen.insert(id);
    }
    Ok(chosen)
}

/// Whether `text` matches `pattern`, in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(before) else {
        return false;
    };
    (0..=text.len()).any(|at| text.get(at..).is_some_and(|text| matches(rest, text)))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "a"),
            ("a*", "ab"),
            ("*-eu", "x-eu"),
            ("a*c*e", "abcde"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*", "b"), ("*-eu", "eu"), ("a*c*e", "abde")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
