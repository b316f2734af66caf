//! Reads what services consume: names, and in the words of each provider's kind what is wanted of it.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::declaration::{Consumption, Provides};
use super::input::Input;
use super::load::named;
use super::place::{At, Place, Problem};
use super::raw;
use super::read_error::nearest_of_many;
use super::reader::{read, read_table_with};
use super::service::{Draft, Drafts};
use crate::words::ServiceName;

/// One consumption as it was read.
struct Read {
    provider: ServiceName,
    place: Place,
    consumption: Consumption,
}

/// Reads the consumptions of all services.
pub(super) fn read_all(drafts: &mut Drafts<'_>, problems: &mut Vec<Problem>) {
    let mut all = Vec::with_capacity(drafts.len());
    for draft in drafts.values() {
        let mut found = Vec::new();
        if let Some(input) = draft.table.and_then(|table| table.get("consumes")) {
            read_one(draft, input, drafts, &mut found, problems);
        }
        all.push(found);
    }
    for (draft, found) in drafts.values_mut().zip(all) {
        for read in found {
            draft.consumes.insert(read.provider.clone(), read.place);
            draft
                .service
                .consumes
                .insert(read.provider, read.consumption);
        }
    }
}

fn read_one(
    draft: &Draft<'_>,
    input: Input<'_>,
    drafts: &Drafts<'_>,
    found: &mut Vec<Read>,
    problems: &mut Vec<Problem>,
) {
    let consumer = &draft.service.name;
    let mut add = |provider, place, consumption| {
        found.push(Read {
            provider,
            place,
            consumption,
        });
    };
    match input.value.get_ref() {
        DeValue::Array(_) => {
            let mut seen: BTreeMap<ServiceName, Place> = BTreeMap::new();
            let names = read::<Vec<At<ServiceName>>>(input, problems).unwrap_or_default();
            for name in names {
                if seen.insert(name.value.clone(), name.place).is_some() {
                    problems.push(Problem::new(
                        name.place,
                        format!("{} is consumed twice", name.value),
                        "name each provider once",
                    ));
                    continue;
                }
                if let Some(provides) =
                    provider(consumer, &name.value, name.place, drafts, problems)
                {
                    let consumption = Consumption {
                        wait: true,
                        wants: provides.provider.default_wants(),
                    };
                    add(name.value, name.place, consumption);
                }
            }
        }
        DeValue::Table(_) => {
            let Ok(table) = input.table("`consumes`") else {
                return;
            };
            for (key, input) in table.entries() {
                let name = named(key, input, ServiceName::new, problems);
                let wants = match input.table("a consumption") {
                    Ok(wants) => wants,
                    Err(problem) => {
                        problems.push(Problem {
                            help: Some(format!(
                                "write `{key} = {{}}`, or the list `consumes = [\"{key}\"]`"
                            )),
                            ..problem
                        });
                        continue;
                    }
                };
                let common = read::<raw::ConsumptionCommon>(wants.only(raw::CONSUMPTION), problems);
                let Some(name) = name else { continue };
                let Some(provides) = provider(consumer, &name, input.key, drafts, problems) else {
                    continue;
                };
                let wants = read_table_with(wants.without(raw::CONSUMPTION), problems, |reader| {
                    provides.provider.read_wants(reader)
                });
                if let Some(wants) = wants {
                    let wait = common.unwrap_or_default().wait.unwrap_or(true);
                    add(name, input.key, Consumption { wait, wants });
                }
            }
        }
        _ => problems.push(Problem::new(
            input.place(),
            "`consumes` is a list of services, or a table",
            "write `consumes = [\"broker\"]`, or `consumes = { broker = { … } }`",
        )),
    }
}

/// The provider of that name. `None`: there is none, or it is wrong itself; either was reported.
fn provider<'d>(
    consumer: &ServiceName,
    name: &ServiceName,
    place: Place,
    drafts: &'d Drafts<'_>,
    problems: &mut Vec<Problem>,
) -> Option<&'d Provides> {
    if name == consumer {
        problems.push(Problem::new(
            place,
            format!("{name} consumes itself"),
            "a service has its own accounts without grid; take it out of `consumes`",
        ));
        return None;
    }
    let Some(draft) = drafts.get(name) else {
        let providers = drafts
            .values()
            .filter(|draft| draft.provides.is_some())
            .map(|draft| draft.service.name.as_str());
        let near = nearest_of_many(name.as_str(), providers, problems.len());
        problems.push(Problem::new(
            place,
            format!("there is no service {name}"),
            match near {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!(
                    "declare it as `[services.{name}]`, or take it out of {consumer}'s `consumes`"
                ),
            },
        ));
        return None;
    };
    // A service that is no table, or whose `provides` is wrong, was reported as that.
    if draft.table.is_some() && draft.provides.is_none() {
        problems.push(Problem::new(
            place,
            format!("{name} provides nothing"),
            format!(
                "add `provides = {{ kind = \"…\" }}` to it, or take it out of {consumer}'s `consumes`"
            ),
        ));
    }
    draft.service.provides.as_ref()
}
