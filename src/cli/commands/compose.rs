//! `grid compose`: what a machine's next send would hold. Nothing is minted, sent or written to the store.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use zeroize::Zeroizing;

use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::{self, count};
use crate::cli::sources::FsSources;
use crate::cli::ui::Line;
use crate::cli::view::ComposeView;
use crate::compose::Composer;
use crate::compose::bundle::{Bundle, Content};
use crate::compose::manifest::FileEntry;
use crate::compose::sources::Sources;
use crate::mesh::Mesh;
use crate::store::{State, Store};

/// What stands in a file instead of its secret.
const REDACTED: &[u8] = b"[redacted]\n";
/// What stands in a file whose content only the machine has.
const KEPT: &[u8] = b"[as the machine holds it]\n";

/// Arguments of `grid compose`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid compose borealis                         the manifest: files by hash, grants and bindings by generation\n  \
        grid compose borealis --out /tmp/borealis     the release as it would lie on the machine\n\n\
        Files that hold secrets read [redacted], unless you say --show-secrets; the journal keeps that it was said.")]
pub struct Arguments {
    /// The machine, or @TAG for all that carry a tag
    node: String,
    /// Write the release to this folder, which must be new or empty; with @TAG, to a folder in it for each machine
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<Utf8PathBuf>,
    /// Write secrets too
    #[arg(long, requires = "out")]
    show_secrets: bool,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    if arguments.show_secrets {
        let mut writing = context.writing("compose --show-secrets", Duration::ZERO)?;
        // Written down before anything is shown.
        context.commit(&mut writing, Vec::new(), [])?;
        let mesh = writing.loaded.mesh.clone();
        let sources = context.sources(&writing.folder, &mesh, &writing.sealed_for);
        let (folder, state) = (writing.folder.clone(), writing.state.clone());
        return compose(
            context,
            arguments,
            (&folder, &mesh),
            &sources,
            &state,
            Some(&mut writing.store),
        );
    }
    let reading = context.reading()?;
    let mut store = if reading.has_store {
        Some(context.open_reading(&reading.folder, "compose")?)
    } else {
        None
    };
    let store = store.as_mut().map(|store| store as &mut dyn Store);
    let (folder, mesh) = (&reading.folder, &reading.loaded.mesh);
    let sources = context.sources(folder, mesh, &reading.sealed_for);
    compose(
        context,
        arguments,
        (folder, mesh),
        &sources,
        &reading.state,
        store,
    )
}

fn compose(
    context: &mut Context,
    arguments: &Arguments,
    (folder, mesh): (&Utf8Path, &Mesh),
    sources: &Arc<FsSources>,
    state: &State,
    mut store: Option<&mut dyn Store>,
) -> crate::cli::Result {
    let nodes = context.choose(folder, mesh, std::slice::from_ref(&arguments.node))?;
    let world = state.world(mesh);
    let composer = Composer::new(mesh, sources.clone());
    let secrets = match (&arguments.out, arguments.show_secrets) {
        (Some(_), false) => Some(known_secrets(mesh, state, sources.as_ref())),
        _ => None,
    };
    for node in &nodes {
        let composition = composer.compose(&world, node).map_err(|error| {
            let mend = error.remedy();
            CommandError::new(Exit::Declaration, error)
                .context(format!("{node} cannot be composed"))
                .hint(mend)
        })?;
        let bundle = composition.bundle;
        for (service, wait) in &composition.outline.waits {
            let text = format!("{}, so it is not in it", phrases::wait(mesh, service, wait));
            context.ui.chat(&Line::of(text));
        }
        let Some(out) = &arguments.out else {
            show(context, &bundle)?;
            continue;
        };
        // A folder for each, where several may be meant.
        let out = match arguments.node.starts_with('@') {
            true => out.join(node.as_str()),
            false => out.clone(),
        };
        let store = store.as_mut().map(|store| &mut **store as &mut dyn Store);
        let written = write(&out, &bundle, secrets.as_deref(), store)?;
        let line = format!(
            "{} of release {} written to {out}",
            count(written, "file"),
            bundle.digest.short()
        );
        context.ui.chat(&Line::of(line));
    }
    Ok(Exit::Done)
}

/// Prints a manifest: as it is for programs, and for people with modes as chmod writes them.
fn show(context: &mut Context, bundle: &Bundle) -> Result<(), CommandError> {
    if context.ui.json {
        let view = ComposeView {
            digest: bundle.digest,
            manifest: (**bundle.manifest).clone(),
        };
        return context.ui.json(&view, false);
    }
    let mut manifest = serde_json::to_value(&**bundle.manifest)
        .map_err(|error| CommandError::new(Exit::Failed, error))?;
    let services = manifest
        .get_mut("services")
        .and_then(serde_json::Value::as_object_mut);
    let files = services.into_iter().flat_map(|services| {
        let files = services.values_mut();
        files.filter_map(|service| service.get_mut("files")?.as_array_mut())
    });
    for file in files.flatten() {
        if let Some(mode) = file.get_mut("mode")
            && let Some(bits) = mode.as_u64()
        {
            *mode = format!("{bits:04o}").into();
        }
    }
    context.ui.json(&manifest, false)
}

/// Every secret that a file could hold. A mode tells where there is one, unless the declaration sets another mode.
fn known_secrets(mesh: &Mesh, state: &State, sources: &dyn Sources) -> Vec<Zeroizing<Vec<u8>>> {
    let minted = state.provisions.iter().flat_map(|(_, provision)| {
        let generations = provision.generations();
        generations.map(|credential| credential.secret.expose().as_bytes().to_vec())
    });
    let own = mesh
        .secrets
        .keys()
        .filter_map(|name| sources.secret(name).ok())
        .map(|secret| secret.expose().trim_end().as_bytes().to_vec());
    minted
        .chain(own)
        .filter(|secret| !secret.is_empty())
        .map(Zeroizing::new)
        .collect()
}

fn holds_secret(file: &FileEntry, bytes: &[u8], secrets: &[Zeroizing<Vec<u8>>]) -> bool {
    let for_few = file.mode & 0o007 == 0 && !file.path.as_str().starts_with("commands/");
    for_few
        || secrets.iter().any(|secret| {
            bytes
                .windows(secret.len())
                .any(|part| part == secret.as_slice())
        })
}

fn write(
    out: &Utf8Path,
    bundle: &Bundle,
    secrets: Option<&[Zeroizing<Vec<u8>>]>,
    mut store: Option<&mut dyn Store>,
) -> Result<usize, CommandError> {
    let failed = |path: &Utf8Path| {
        let path = path.to_owned();
        move |e: std::io::Error| CommandError::failed(format!("cannot write {path}: {e}"))
    };
    let make = |path: &Utf8Path| {
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.map_err(failed(path))
    };
    make(out)?;
    if fs::read_dir(out).map_err(failed(out))?.next().is_some() {
        return Err(CommandError::usage(format!("{out} is not empty")));
    }
    let mut written = 0_usize;
    for file in bundle.manifest.files() {
        let path = out.join(file.path.as_str());
        if let Some(parent) = path.parent() {
            make(parent)?;
        }
        let mut to = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(u32::from(file.mode) & 0o755)
            .open(&path)
            .map_err(failed(&path))?;
        let content = match bundle.contents.get(&file.sha256) {
            Some(Content::Bytes(bytes)) => Some(Zeroizing::new(bytes.to_vec())),
            Some(Content::Source(source)) => {
                let mut from = fs::File::open(source).map_err(failed(source))?;
                std::io::copy(&mut from, &mut to).map_err(failed(&path))?;
                written = written.saturating_add(1);
                continue;
            }
            Some(Content::Kept) | None => match &mut store {
                Some(store) => store.content(&file.sha256)?,
                None => None,
            },
        };
        let bytes: &[u8] = match (&content, secrets) {
            (None, _) => KEPT,
            (Some(bytes), Some(secrets)) if holds_secret(file, bytes, secrets) => REDACTED,
            (Some(bytes), _) => bytes,
        };
        to.write_all(bytes).map_err(failed(&path))?;
        written = written.saturating_add(1);
    }
    let path = out.join("manifest.json");
    fs::write(&path, bundle.manifest.canonical()).map_err(failed(&path))?;
    Ok(written)
}
