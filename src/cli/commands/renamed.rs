//! A mesh that was renamed after it was sent.

use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::list;
use crate::compose::sent::{Fleet, Machine};
use crate::mesh::Mesh;
use crate::words::{MeshName, NodeName};

/// Refuses to push a mesh that was sent under another name. Accounts carry the mesh's name, and loading touches only
/// what carries it: those of the old name would stay open, and nobody would know of them.
pub(super) fn refuse_renamed(mesh: &Mesh, fleet: &Fleet) -> Result<(), CommandError> {
    let Some((old, nodes)) = sent_as(mesh, fleet) else {
        return Ok(());
    };
    let error = anyhow::anyhow!(
        "{}: {}",
        was_called(mesh, old, &nodes),
        would_stay_open(old)
    );
    let refused = CommandError::new(Exit::Declaration, error);
    Err(hints(old).into_iter().fold(refused, CommandError::hint))
}

/// What to type where a mesh is called otherwise than as `old`, as which it was sent.
pub(super) fn hints(old: &MeshName) -> [String; 2] {
    [
        format!("`name = \"{old}\"` in mesh.toml goes on as before"),
        format!(
            "to rename it, first take everything away as {old}: `grid unassign` each service, then `grid push --behind`, which closes \
             the accounts; with the new name, assign them again"
        ),
    ]
}

/// That no push goes on, for whoever only looks: nothing else that is to be said of the machines helps before that is mended.
pub(super) fn told(mesh: &Mesh, old: &MeshName, nodes: &[&NodeName]) -> String {
    format!(
        "{}: a push refuses, since {}",
        was_called(mesh, old, nodes),
        would_stay_open(old)
    )
}

fn was_called(mesh: &Mesh, old: &MeshName, nodes: &[&NodeName]) -> String {
    format!(
        "this mesh was called {old} when it was last sent to {}, and is called {} now",
        list(nodes),
        mesh.name
    )
}

fn would_stay_open(old: &MeshName) -> String {
    format!("accounts carry the mesh's name, and those of {old} would stay open on their providers")
}

/// The other name that the mesh had when it was last sent, and the machines that still hold services of it.
pub(super) fn sent_as<'a>(
    mesh: &Mesh,
    fleet: &'a Fleet,
) -> Option<(&'a MeshName, Vec<&'a NodeName>)> {
    let holding = |node: &'a NodeName, machine: &'a Machine| {
        let sent = machine.sent.as_ref().map(|sent| &sent.manifest);
        let attempted = machine.attempt.as_ref().map(|attempt| &attempt.manifest);
        let mut held = sent.into_iter().chain(attempted);
        let found = held.find(|held| held.mesh != mesh.name && !held.services.is_empty())?;
        Some((&found.mesh, node))
    };
    let found: Vec<_> = fleet
        .iter()
        .filter_map(|(node, machine)| holding(node, machine))
        .collect();
    let (old, _) = *found.first()?;
    Some((old, found.into_iter().map(|(_, node)| node).collect()))
}
