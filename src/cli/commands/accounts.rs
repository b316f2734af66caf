//! `grid issue`, `grid revoke`, `grid rotate`: the operator's acts on accounts. Each is one transaction; the next
//! push carries it to the machines.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;

use super::change::tell;
use crate::cli::context::{Context, Writing};
use crate::cli::exit::CommandError;
use crate::cli::view::{Changed, ConsumerIs};
use crate::mesh::{Mesh, nearest};
use crate::provision::{Issued, ProvisionId, Provisions};
use crate::store::{Change, Store as _, SystemChance};
use crate::words::ServiceName;

/// Arguments of `grid issue`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid issue broker/billing              an account before the first push, or a new one after a revocation\n  \
        grid issue broker/report --outside     for a consumer that no machine of this mesh runs\n\n\
        A first push mints what it needs by itself. The account is on disk when this command ends; the next push tells the \
        provider. An account that no service of the mesh is declared to need stands by hand: until `grid revoke` closes it.")]
pub struct IssueArguments {
    /// Accounts: PROVIDER/CONSUMER, or a pattern like 'broker/*'
    #[arg(required = true, value_name = "PROVIDER/CONSUMER")]
    accounts: Vec<String>,
    /// The consumer is outside of this mesh, so the declaration does not know it
    #[arg(long)]
    outside: bool,
}

/// Arguments of `grid revoke`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid revoke broker/billing\n  \
        grid revoke '*/billing'                all accounts of one consumer\n\n\
        The next push closes the account at the provider and does not start the consumer again, until `grid issue` gives it a new one. \
        Data is never deleted.")]
pub struct RevokeArguments {
    /// Accounts: PROVIDER/CONSUMER, or a pattern like 'broker/*'
    #[arg(required = true, value_name = "PROVIDER/CONSUMER")]
    accounts: Vec<String>,
}

/// Arguments of `grid rotate`.
#[derive(Debug, Args)]
#[command(
    override_usage = "grid rotate [OPTIONS] <PROVIDER/CONSUMER>...\n       grid rotate [OPTIONS] --all\n       grid rotate [OPTIONS] --site <NODE>\n       grid rotate [OPTIONS] --ca"
)]
#[command(after_help = "Examples:\n  \
        grid rotate broker/billing             a new secret, without one refused login\n  \
        grid rotate 'broker/*' '*/report'      all accounts on one provider, and all of one consumer\n  \
        grid rotate broker/billing --cut       the old one is closed at once\n  \
        grid rotate --site atlas               a site's identity: its peers admit the new one before it has it\n\n\
        Mints a further generation. With the next push, the provider admits it beside the old one, then the consumer gets it, and then \
        the old one goes. With --cut the old one goes first.")]
pub struct RotateArguments {
    /// Accounts: PROVIDER/CONSUMER, or a pattern like 'broker/*'
    #[arg(
        required_unless_present_any = ["all", "site", "ca"],
        conflicts_with_all = ["all", "site", "ca"],
        value_name = "PROVIDER/CONSUMER"
    )]
    accounts: Vec<String>,
    /// All accounts that are not revoked
    #[arg(long)]
    all: bool,
    /// Close the older generations at once, before the consumer has the new one
    #[arg(long)]
    cut: bool,
    /// The identity of a site, and not an account: a machine or @TAG
    #[arg(long, value_name = "NODE", conflicts_with_all = ["all", "cut", "ca"])]
    site: Vec<String>,
    /// The mesh's certificate authority, and not an account
    #[arg(long, conflicts_with_all = ["all", "cut"])]
    ca: bool,
}

pub(super) fn issue(context: &mut Context, arguments: &IssueArguments) -> crate::cli::Result {
    let mut writing = context.writing("issue", Duration::ZERO)?;
    let mesh = &writing.loaded.mesh;
    let ids = choose(
        &arguments.accounts,
        &issuable(mesh, &writing.state.provisions),
        |id| may_be_issued(mesh, id, arguments.outside),
    )?;
    let era = writing.state.era;
    let mut changed = Vec::new();
    for id in &ids {
        let provisions = &mut writing.state.provisions;
        let issued = provisions.issue(mesh, id, era, &mut SystemChance);
        let newest = writing.state.provisions.get(&id.provider, &id.consumer);
        let generation = newest.map_or(0, |provision| provision.newest().generation.number);
        let (provider, consumer) = (id.provider.clone(), id.consumer.clone());
        changed.push(match issued {
            Issued::Minted => Changed::Minted {
                provider,
                consumer,
                generation,
            },
            Issued::ByHand => Changed::ByHand {
                provider,
                consumer,
                generation,
            },
            Issued::Already => Changed::AlreadyIssued {
                provider,
                consumer,
                generation,
            },
        });
    }
    finish(context, writing, ids, changed)
}

pub(super) fn revoke(context: &mut Context, arguments: &RevokeArguments) -> crate::cli::Result {
    let mut writing = context.writing("revoke", Duration::ZERO)?;
    let known = existing(&writing.state.provisions);
    let mesh = &writing.loaded.mesh;
    let ids = choose(&arguments.accounts, &known, |id| {
        may_exist(mesh, &known, id)
    })?;
    let mut changed = Vec::new();
    for id in &ids {
        writing.state.provisions.revoke(id)?;
        let consumer_is = match mesh.services.get(&id.consumer) {
            None => ConsumerIs::Outside,
            Some(service) if service.consumes.contains_key(&id.provider) => ConsumerIs::Declared,
            Some(_) => ConsumerIs::Other,
        };
        changed.push(Changed::Revoked {
            provider: id.provider.clone(),
            consumer: id.consumer.clone(),
            consumer_is,
        });
    }
    finish(context, writing, ids, changed)
}

pub(super) fn rotate(context: &mut Context, arguments: &RotateArguments) -> crate::cli::Result {
    if arguments.ca {
        return super::identities::rotate_authority(context);
    }
    if !arguments.site.is_empty() {
        return super::identities::rotate_sites(context, &arguments.site);
    }
    let mut writing = context.writing("rotate", Duration::ZERO)?;
    let known = existing(&writing.state.provisions);
    let mesh = &writing.loaded.mesh;
    let mut ids = if arguments.all {
        known
    } else {
        choose(&arguments.accounts, &known, |id| {
            may_exist(mesh, &known, id)
        })?
    };
    if arguments.all
        || arguments
            .accounts
            .iter()
            .any(|pattern| pattern.contains('*'))
    {
        // A pattern means those that can be rotated; one that is named and revoked is refused below.
        ids.retain(|id| {
            let provision = writing.state.provisions.get(&id.provider, &id.consumer);
            arguments.accounts.contains(&id.to_string())
                || provision.is_some_and(|provision| !provision.is_revoked())
        });
    }
    let era = writing.state.era;
    let mut changed = Vec::new();
    for id in &ids {
        let provisions = &mut writing.state.provisions;
        let generation = provisions.rotate(id, arguments.cut, era, &mut SystemChance)?;
        changed.push(Changed::Rotated {
            provider: id.provider.clone(),
            consumer: id.consumer.clone(),
            generation: generation.number,
            cut: arguments.cut,
        });
    }
    finish(context, writing, ids, changed)
}

fn finish(
    context: &mut Context,
    mut writing: Writing,
    ids: BTreeSet<ProvisionId>,
    changed: Vec<Changed>,
) -> crate::cli::Result {
    let changes = ids
        .into_iter()
        .filter_map(|id| {
            let provision = writing.state.provisions.get(&id.provider, &id.consumer)?;
            Some(Change::Provision(id.clone(), provision.clone()))
        })
        .collect();
    context.commit(&mut writing, changes, [])?;
    let state = writing.store.load()?;
    tell(
        context,
        &writing.folder,
        &writing.loaded.mesh,
        &state,
        changed,
    )
}

pub(super) fn existing(provisions: &Provisions) -> BTreeSet<ProvisionId> {
    provisions.iter().map(|(id, _)| id).collect()
}

/// What a pattern of `issue` may mean: every declared consumption, and every account that there is.
fn issuable(mesh: &Mesh, provisions: &Provisions) -> BTreeSet<ProvisionId> {
    let declared = mesh.services.values().flat_map(|service| {
        service.consumes.keys().map(|provider| ProvisionId {
            provider: provider.clone(),
            consumer: service.name.clone(),
        })
    });
    declared.chain(existing(provisions)).collect()
}

/// Refuses an account that nobody could have meant.
fn may_be_issued(mesh: &Mesh, id: &ProvisionId, outside: bool) -> Result<(), CommandError> {
    is_provider(mesh, &BTreeSet::new(), id)?;
    if outside {
        return Ok(());
    }
    is_consumer(mesh, &BTreeSet::new(), id).map_err(|error| {
        error.hint(format!(
            "`grid issue {id} --outside` issues an account for a consumer outside the mesh"
        ))
    })
}

/// Refuses an account whose provider or consumer is neither in the mesh nor in an account that is `known`: it is
/// misspelt.
pub(super) fn may_exist(
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

fn is_provider(
    mesh: &Mesh,
    known: &BTreeSet<ProvisionId>,
    id: &ProvisionId,
) -> Result<(), CommandError> {
    let declared = mesh
        .services
        .values()
        .filter(|service| service.provides.is_some());
    let names = declared.map(|service| &service.name);
    is_among(
        "provider",
        &id.provider,
        names.chain(known.iter().map(|id| &id.provider)).collect(),
    )
}

fn is_consumer(
    mesh: &Mesh,
    known: &BTreeSet<ProvisionId>,
    id: &ProvisionId,
) -> Result<(), CommandError> {
    let names = mesh.services.keys();
    is_among(
        "service",
        &id.consumer,
        names.chain(known.iter().map(|id| &id.consumer)).collect(),
    )
}

fn is_among(
    what: &str,
    name: &ServiceName,
    names: BTreeSet<&ServiceName>,
) -> Result<(), CommandError> {
    if names.contains(name) {
        return Ok(());
    }
    let names = names.into_iter().map(ServiceName::as_str);
    Err(CommandError::usage(format!(
        "there is no {what} {name} in this mesh{}",
        suggestion(name.as_str(), names)
    )))
}

fn suggestion<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> String {
    nearest(wrong, names)
        .map(|name| format!("; did you mean {name}?"))
        .unwrap_or_default()
}

/// The account that a text names.
pub(super) fn account(text: &str) -> Result<ProvisionId, CommandError> {
    let Some((provider, consumer)) = text.split_once('/') else {
        return Err(CommandError::usage(format!(
            "{text:?} names no account: it is PROVIDER/CONSUMER, or a pattern like 'broker/*'"
        )));
    };
    Ok(ProvisionId {
        provider: super::change::name(provider, ServiceName::new)?,
        consumer: super::change::name(consumer, ServiceName::new)?,
    })
}

/// The accounts that the patterns name. One without `*` names one, which `check` may refuse; a pattern that matches
/// none is an error.
fn choose(
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
                return Err(CommandError::usage(format!(
                    "{pattern:?} matches no account"
                )));
            }
            continue;
        }
        let id = account(pattern)?;
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
