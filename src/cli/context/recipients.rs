//! What is said of who may open the store, where that is not whom the declaration names.

use super::{Context, Reading};
use crate::cli::phrases::list;
use crate::cli::ui::Line;
use crate::mesh::{Mesh, Recipient};
use crate::store::State;

/// Their names; several may have the same one.
fn names(people: &[Recipient]) -> String {
    list(people.iter().map(|one| one.name.trim()))
}

/// `one` where there is one of them, else `more`.
const fn of<'a>(people: &[Recipient], one: &'a str, more: &'a str) -> &'a str {
    if people.len() == 1 { one } else { more }
}

/// Said once, by the command that sealed the store anew without them: what they may know nonetheless, and how that is renewed.
pub(super) fn taken_out(people: &[Recipient], mesh: &Mesh, state: &State) -> String {
    let names = names(people);
    let open = of(people, "opens", "open");
    let mut ends = Vec::new();
    if !state.provisions.is_empty() {
        ends.push("`grid rotate --all` and a push renew the accounts".to_owned());
    }
    if state.identities.authorities().newest().is_some() {
        ends.push(
            "`grid rotate --ca` and a push, the authority and the sites' identities".to_owned(),
        );
    }
    if !mesh.secrets.is_empty() {
        ends.push("what `[secrets]` names is renewed where it comes from".to_owned());
    }
    let ends = if ends.is_empty() {
        String::new()
    } else {
        format!(": {}", ends.join("; "))
    };
    format!(
        "{names} {open} the store no more: all of it was sealed anew, under another key. What it held until now {names} may \
         know, and a copy of its folder from before still opens for {}{ends}",
        of(people, "that key", "those keys")
    )
}

/// Says who opens the store still and is out with the next command that writes it.
pub(in crate::cli) fn note(context: &mut Context, reading: &Reading) {
    if !reading.to_be_taken_out.is_empty() {
        let text = to_be_taken_out(&reading.to_be_taken_out);
        context.ui.note(&Line::note(text));
    }
}

fn to_be_taken_out(people: &[Recipient]) -> String {
    format!(
        "{} {} the store although `recipients` in mesh.toml does not name {}: the next push seals it anew without {}",
        names(people),
        of(people, "opens", "open"),
        of(people, "that key", "their keys"),
        of(people, "it", "them")
    )
}

/// Said to whoever writes and is out once somebody else does.
pub(super) fn not_named(identity: &str) -> String {
    format!(
        "your identity, {identity}, opens this store until somebody else writes to it: `recipients` in mesh.toml does not name it"
    )
}
