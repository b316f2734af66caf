//! `grid issue`, `grid revoke`, `grid rotate`: the operator's acts on accounts. Each is one transaction; the next
//! push carries it to the machines.

pub(super) mod naming;

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;

use self::naming::{choose, is_consumer, is_provider, may_exist};
use super::change::tell;
use crate::cli::context::{Context, Writing};
use crate::cli::exit::CommandError;
use crate::cli::phrases;
use crate::cli::view::{Changed, ConsumerIs};
use crate::compose::uses::Uses;
use crate::mesh::Mesh;
use crate::provision::{Issued, ProvisionError, ProvisionId, Provisions};
use crate::store::{Change, State, Store as _, SystemChance};

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
        the old one goes. With --cut the old one goes first. Nobody acknowledges an account for somebody outside the mesh: its old secret \
        goes with the next push.")]
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
    let known = existing(&writing.state.provisions);
    let ids = choose(
        &arguments.accounts,
        &issuable(mesh, &writing.state.provisions),
        |id| may_be_issued(mesh, &known, id, arguments.outside),
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
        let provision = writing.state.provisions.get(&id.provider, &id.consumer);
        let was_revoked = provision.is_some_and(|provision| provision.is_revoked());
        let revoked = writing.state.provisions.revoke(id);
        revoked.map_err(|error| refused(mesh, error))?;
        if was_revoked {
            changed.push(Changed::AlreadyRevoked {
                provider: id.provider.clone(),
                consumer: id.consumer.clone(),
                again: phrases::typed_issue(mesh, id),
            });
            continue;
        }
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
    let unused = unused(&writing.state, &ids);
    let mut changed = Vec::new();
    for id in &ids {
        let provisions = &mut writing.state.provisions;
        let rotated = provisions.rotate(id, arguments.cut, era, &mut SystemChance);
        let generation = rotated.map_err(|error| refused(mesh, error))?;
        changed.push(Changed::Rotated {
            provider: id.provider.clone(),
            consumer: id.consumer.clone(),
            generation: generation.number,
            cut: arguments.cut,
            unused: unused.contains(id),
        });
    }
    finish(context, writing, ids, changed)
}

/// Those of these accounts that were issued by hand, and that no machine uses.
fn unused(state: &State, ids: &BTreeSet<ProvisionId>) -> BTreeSet<ProvisionId> {
    let uses = Uses::of(&state.fleet);
    let is_unused = |id: &&ProvisionId| {
        let provision = state.provisions.get(&id.provider, &id.consumer);
        let mut used = uses.accounts(&id.provider, &id.consumer);
        provision.is_some_and(|provision| provision.by_hand) && used.next().is_none()
    };
    ids.iter().filter(is_unused).cloned().collect()
}

/// What cannot be done to an account, and what to type instead.
fn refused(mesh: &Mesh, error: ProvisionError) -> CommandError {
    let hint = match &error {
        ProvisionError::Absent(id) if mesh.declares(&id.provider, &id.consumer) => {
            format!("`grid issue {id}` gives it one, or the next push does")
        }
        ProvisionError::Absent(id) => {
            format!("`{}` gives it one", phrases::typed_issue(mesh, id))
        }
        ProvisionError::Revoked(id) => {
            let typed = phrases::typed_issue(mesh, id);
            format!("`{typed}` gives it a new generation")
        }
    };
    CommandError::usage(error).hint(hint)
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

/// Refuses an account that nobody could have meant: a service of the mesh is given only what it is declared to consume, or had
/// before.
fn may_be_issued(
    mesh: &Mesh,
    known: &BTreeSet<ProvisionId>,
    id: &ProvisionId,
    outside: bool,
) -> Result<(), CommandError> {
    is_provider(mesh, &BTreeSet::new(), id)?;
    if outside {
        return Ok(());
    }
    is_consumer(mesh, &BTreeSet::new(), id).map_err(|error| {
        error.hint(format!(
            "`grid issue {id} --outside` issues an account for a consumer outside the mesh"
        ))
    })?;
    if mesh.declares(&id.provider, &id.consumer) || known.contains(id) {
        return Ok(());
    }
    let (provider, consumer) = (&id.provider, &id.consumer);
    Err(CommandError::usage(format!(
        "{consumer} does not consume {provider}, so no account on it would be delivered to {consumer}"
    ))
    .hint(format!(
        "add {provider} to `consumes` of {consumer}, and the next push gives it one; `grid issue {id} --outside` issues one that is handed over \
         by hand"
    )))
}
