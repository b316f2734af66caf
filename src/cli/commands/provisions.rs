//! `grid provisions`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;
use jiff::civil::Date;

use super::accounts::existing;
use super::accounts::naming::{LISTED, choose, may_exist};
use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::{self, list};
use crate::cli::ui::{Line, Look};
use crate::cli::view::{GenerationView, ProvisionView, ProvisionsView};
use crate::compose::grants::wanted;
use crate::compose::manifest::Grant;
use crate::compose::sent::{Admitted, Fleet};
use crate::kinds;
use crate::mesh::Mesh;
use crate::provision::{Credential, ProvisionId, State as Stage};
use crate::push::kept_admitted;
use crate::store::State;
use crate::words::{Generation, NodeName, ServiceName};

/// Arguments of `grid provisions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid provisions                     who has an account on whom\n  \
        grid provisions 'broker/*'          all on one provider\n  \
        grid provisions broker/report --show-secrets\n\n\
        --show-secrets prints what the newest generation is used with, for a consumer outside the mesh: host, port, username, password and \
        whatever else a binding of its provider has. The journal keeps that it was done.")]
pub struct Arguments {
    /// Accounts: PROVIDER/CONSUMER, or a pattern like 'broker/*'; absent: all
    #[arg(value_name = "PROVIDER/CONSUMER")]
    accounts: Vec<String>,
    /// Print secrets
    #[arg(long)]
    show_secrets: bool,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let (mut view, mesh, known) = if arguments.show_secrets {
        let mut writing = context.writing("provisions --show-secrets", Duration::ZERO)?;
        let view = view(&writing.loaded.mesh, &writing.state, true, context.today);
        // Written down before anything is shown.
        context.commit(&mut writing, Vec::new(), [])?;
        let known = existing(&writing.state.provisions);
        (view, writing.loaded.mesh, known)
    } else {
        let reading = context.reading()?;
        let view = view(&reading.loaded.mesh, &reading.state, false, context.today);
        let known = existing(&reading.state.provisions);
        (view, reading.loaded.mesh, known)
    };
    if !arguments.accounts.is_empty() {
        let chosen = choose(&arguments.accounts, &known, |id| {
            may_exist(&mesh, &known, id)?;
            if !known.contains(id) {
                let absent = CommandError::usage(format!("there is no account {id} yet"));
                return Err(absent.hint(LISTED));
            }
            Ok(())
        })?;
        let id = |p: &ProvisionView| ProvisionId {
            provider: p.provider.clone(),
            consumer: p.consumer.clone(),
        };
        view.provisions
            .retain(|provision| chosen.contains(&id(provision)));
    }
    if context.ui.json {
        context.ui.json(&view, false)?;
        return Ok(Exit::Done);
    }
    if view.provisions.is_empty() {
        context.ui.chat(&Line::of("there is no account yet"));
    }
    let lines = table(&view);
    context.ui.results(&lines)?;
    let mut kept: BTreeMap<NodeName, BTreeSet<ProvisionId>> = BTreeMap::new();
    for provision in &view.provisions {
        for node in provision.generations.iter().flat_map(|g| &g.kept_for) {
            kept.entry(node.clone()).or_default().insert(ProvisionId {
                provider: provision.provider.clone(),
                consumer: provision.consumer.clone(),
            });
        }
    }
    if !context.ui.quiet {
        for (node, ids) in kept {
            context.ui.hint(&phrases::ends_older(&node, &ids));
        }
    }
    Ok(Exit::Done)
}

fn view(mesh: &Mesh, state: &State, show_secrets: bool, today: Date) -> ProvisionsView {
    let kept = kept_admitted(&state.world(mesh), today);
    let whereabouts = Whereabouts::of(&state.fleet);
    let provisions = state
        .provisions
        .iter()
        .map(|(id, provision)| {
            let of = |map: &Machines<'_>, generation| {
                let found = map.get(&(&id.provider, &id.consumer, generation));
                found.cloned().unwrap_or_default()
            };
            let newest = provision.newest().generation;
            let keeps = |node: &&NodeName| kept.get(*node).is_some_and(|ids| ids.contains(&id));
            let generations = provision.generations().map(|credential| GenerationView {
                number: credential.generation.number,
                era: credential.generation.era,
                state: credential.state,
                username: username(mesh, &id, provision.by_hand, credential),
                kept_for: match (credential.state, credential.generation == newest) {
                    (Stage::Live, false) => of(&whereabouts.used, credential.generation)
                        .iter()
                        .filter(keeps)
                        .cloned()
                        .collect(),
                    _ => BTreeSet::new(),
                },
                used_on: of(&whereabouts.used, credential.generation),
                // One that is admitted for certain may be admitted to do something else besides.
                perhaps_admitted_on: &of(&whereabouts.perhaps, credential.generation)
                    - &of(&whereabouts.admitted, credential.generation),
                admitted_on: of(&whereabouts.admitted, credential.generation),
                secret: (show_secrets && credential.generation == newest)
                    .then(|| credential.secret.expose().to_owned()),
                binding: (show_secrets && credential.generation == newest)
                    .then(|| binding(mesh, &id, provision.by_hand, credential))
                    .flatten(),
            });
            ProvisionView {
                by_hand: provision.by_hand,
                declared: mesh.consumption(&id.provider, &id.consumer).is_some(),
                generations: generations.collect(),
                provider: id.provider,
                consumer: id.consumer,
            }
        })
        .collect();
    ProvisionsView { provisions }
}

/// An account as its provider's kind sees it.
fn account<'a>(
    mesh: &'a Mesh,
    id: &'a ProvisionId,
    credential: &'a Credential,
    wants: &'a kinds::Wants,
) -> kinds::Account<'a> {
    kinds::Account {
        owner: kinds::Owner {
            mesh: &mesh.name,
            provider: &id.provider,
        },
        consumer: &id.consumer,
        generation: credential.generation,
        secret: &credential.secret,
        salt: credential.salt,
        wants,
    }
}

/// What an account is granted with; of one that is on no list, what it would be once its consumer is on a machine.
fn wants(mesh: &Mesh, id: &ProvisionId, by_hand: bool, provider: &kinds::Provider) -> kinds::Wants {
    wanted(mesh, &id.provider, &id.consumer, by_hand).unwrap_or_else(|| {
        let consumer = mesh.services.get(&id.consumer);
        let declared = consumer.and_then(|consumer| consumer.consumes.get(&id.provider));
        let declared = declared.map(|consumption| consumption.wants.clone());
        declared.unwrap_or_else(|| provider.default_wants())
    })
}

fn username(
    mesh: &Mesh,
    id: &ProvisionId,
    by_hand: bool,
    credential: &Credential,
) -> Option<String> {
    let provides = mesh.services.get(&id.provider)?.provides.as_ref()?;
    let wants = wants(mesh, id, by_hand, &provides.provider);
    Some(account(mesh, id, credential, &wants).username())
}

/// What a consumer is given of an account, secrets too; absent: its provider is not declared, on no machine, or its kind
/// cannot write it.
fn binding(
    mesh: &Mesh,
    id: &ProvisionId,
    by_hand: bool,
    credential: &Credential,
) -> Option<BTreeMap<String, String>> {
    let provides = mesh.services.get(&id.provider)?.provides.as_ref()?;
    let endpoint = mesh.endpoint(&id.provider)?;
    let wants = wants(mesh, id, by_hand, &provides.provider);
    let account = account(mesh, id, credential, &wants);
    let kind = provides.provider.kind();
    let binding = kind.binding(&endpoint, &account).ok()?;
    let entries = binding.entries.into_iter();
    let entries = entries.map(|entry| (entry.name, entry.value.expose().to_owned()));
    Some(entries.collect())
}

/// A generation of an account: provider, consumer, and which.
type Account<'a> = (&'a ServiceName, &'a ServiceName, Generation);
type Machines<'a> = BTreeMap<Account<'a>, BTreeSet<NodeName>>;

/// Where accounts are, read off the fleet in one pass: there are many of both.
struct Whereabouts<'a> {
    /// The machines that hold a generation in a binding, or may: as last acknowledged, or as attempted.
    used: Machines<'a>,
    /// The machines that admit it for certain.
    admitted: Machines<'a>,
    /// Those that may admit it: nobody knows how the last send to them ended.
    perhaps: Machines<'a>,
}

impl<'a> Whereabouts<'a> {
    fn of(fleet: &'a Fleet) -> Self {
        let (mut used, mut admitted) = (Machines::new(), Machines::new());
        let mut perhaps = Machines::new();
        let note = |map: &mut Machines<'a>, account: Account<'a>, node: &NodeName| {
            map.entry(account).or_default().insert(node.clone());
        };
        for (node, machine) in fleet {
            for (service, held) in machine.possible() {
                for (provider, bound) in &held.bindings {
                    note(&mut used, (provider, service, bound.generation), node);
                }
                let account = |grant: &'a Grant| (service, &grant.consumer, grant.generation);
                let admits = machine.admits(service).unwrap_or(Admitted::Nothing);
                for grant in admits.iter() {
                    note(&mut admitted, account(grant), node);
                }
                if machine.attempt.is_none() {
                    continue; // all that it admits, it admits for certain
                }
                let possible = machine.possible_lists(service).flatten();
                for grant in possible.filter(|grant| !admits.contains(grant)) {
                    note(&mut perhaps, account(grant), node);
                }
            }
        }
        Self {
            used,
            admitted,
            perhaps,
        }
    }
}

fn table(view: &ProvisionsView) -> Vec<Line> {
    let name = |p: &ProvisionView| format!("{}/{}", p.provider, p.consumer);
    let where_ = |how: &str, nodes: &BTreeSet<NodeName>| match nodes.is_empty() {
        true => format!("not {how}"),
        false => format!("{how} on {}", list(nodes)),
    };
    let admitted = |generation: &GenerationView| {
        let (certain, perhaps) = (&generation.admitted_on, &generation.perhaps_admitted_on);
        match (certain.is_empty(), perhaps.is_empty()) {
            (_, true) => where_("admitted", certain),
            (true, false) => where_("perhaps admitted", perhaps),
            (false, false) => format!(
                "{}, perhaps on {}",
                where_("admitted", certain),
                list(perhaps)
            ),
        }
    };
    let cells = |provision: &ProvisionView, generation: &GenerationView| {
        [
            format!("generation {}", generation.number),
            word(provision, generation).to_owned(),
            admitted(generation),
            match generation.kept_for.is_empty() {
                true => where_("used", &generation.used_on),
                false => format!(
                    "{}, and so kept admitted: {} is on hold",
                    where_("used", &generation.used_on),
                    list(&generation.kept_for)
                ),
            },
        ]
    };
    let generations = || {
        let all = view.provisions.iter();
        all.flat_map(|p| p.generations.iter().map(move |g| (p, g)))
    };
    let widest = |texts: &mut dyn Iterator<Item = String>| {
        let width = texts.map(|text| text.chars().count()).max();
        width.unwrap_or(0).saturating_add(2)
    };
    let width = widest(&mut view.provisions.iter().map(name));
    let [number, state, admits, _] = [0, 1, 2, 3].map(|cell| {
        widest(&mut generations().filter_map(|(p, g)| cells(p, g).into_iter().nth(cell)))
    });
    let mut lines = Vec::new();
    for provision in &view.provisions {
        let mut label = name(provision);
        for generation in &provision.generations {
            let look = match generation.state {
                Stage::Live => Look::Plain,
                Stage::Revoked | Stage::Cut => Look::Warn,
            };
            let [number_, state_, admitted_, used] = cells(provision, generation);
            let mut line = Line::new()
                .column(Look::Strong, &label, width)
                .column(Look::Plain, number_, number)
                .column(look, state_, state)
                .column(Look::Plain, admitted_, admits)
                .plain(used);
            if provision.by_hand && !label.is_empty() {
                line = line.plain(", by hand");
            }
            lines.push(line);
            let given = given(generation);
            lines.extend(
                given.map(|(name, value)| {
                    Line::of(format!("{}{name:<14}{value}", " ".repeat(width)))
                }),
            );
            label = String::new();
        }
    }
    lines
}

/// What is shown of a generation whose secret is shown: what its consumer is given, what most need first.
fn given(generation: &GenerationView) -> impl Iterator<Item = (&str, &str)> {
    const FIRST: [&str; 4] = ["host", "port", "username", "password"];
    const LAST: &str = "uri";
    let all = generation.binding.iter().flatten();
    let all: Vec<(&str, &str)> = match &generation.secret {
        Some(_) if generation.binding.is_some() => all
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect(),
        Some(secret) => vec![
            ("username", generation.username.as_deref().unwrap_or("")),
            ("password", secret.as_str()),
        ],
        None => Vec::new(),
    };
    let place = |name: &str| match FIRST.iter().position(|first| *first == name) {
        Some(at) => at,
        None if name == LAST => usize::MAX,
        None => FIRST.len(),
    };
    let mut all = all;
    all.sort_by_key(|(name, _)| place(name));
    all.into_iter()
}

/// A live one that nobody is declared to need, and that is on no list and in no binding, is closed until somebody needs it.
fn word(provision: &ProvisionView, generation: &GenerationView) -> &'static str {
    let nowhere = generation.admitted_on.is_empty()
        && generation.perhaps_admitted_on.is_empty()
        && generation.used_on.is_empty();
    match generation.state {
        Stage::Live if nowhere && !provision.declared && !provision.by_hand => "closed",
        Stage::Live => "live",
        Stage::Revoked => "revoked",
        Stage::Cut => "cut",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::sample::{Sample, wants, with};
    use crate::words::{Era, StoreId};

    #[test]
    fn an_account_by_hand_is_shown_as_it_is_granted_while_its_consumer_is_on_no_machine() {
        let vhost = |text: &str| {
            let sample = Sample::of(&["broker@m0"]).hosted("broker", "mq");
            let mut sample = sample.issued("broker", "billing");
            sample.declare(text);
            let billing = sample.mesh.services.get_mut("billing").unwrap();
            billing.consumes.get_mut("broker").unwrap().wants = wants("orders");
            let mut state = State::new(StoreId([1; 8]), Era(1));
            state.provisions = sample.provisions.clone();
            let shown = view(&sample.mesh, &state, true, sample_day());
            let generation = shown.provisions[0].generations[0].binding.clone();
            generation.unwrap()["virtual-host"].clone()
        };
        assert_eq!(vhost("billing@m1<broker"), "orders");
        assert_eq!(vhost("billing<broker"), "billing");
    }

    fn sample_day() -> Date {
        Date::constant(2026, 11, 30)
    }

    #[test]
    fn what_an_uncertain_machine_may_admit_is_not_said_to_be_shut_out() {
        let sample = Sample::of(&["broker@m0+m1"])
            .issued("broker", "a")
            .issued("broker", "b")
            .issued("broker", "c")
            .issued("broker", "d")
            .sent("m0", vec![("broker", with("a:1 b:1"))])
            .attempted("m0", vec![("broker", with("b:1 c:1"))])
            .sent("m1", vec![("broker", with("c:1"))]);
        let mut state = State::new(StoreId([1; 8]), Era(1));
        (state.provisions, state.fleet) = (sample.provisions.clone(), sample.fleet.clone());
        let lines = table(&view(&sample.mesh, &state, false, sample_day()));
        let text: String = lines.iter().map(|line| line.styled(None)).collect();
        let text = text.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        insta::assert_snapshot!(text, @r"
        broker/a  generation 1  live  perhaps admitted on m0         not used, by hand
        broker/b  generation 1  live  admitted on m0                 not used, by hand
        broker/c  generation 1  live  admitted on m1, perhaps on m0  not used, by hand
        broker/d  generation 1  live  not admitted                   not used, by hand
        ");
    }
}
