//! `grid trust`: accepts exactly one host key of a machine, into the mesh's own `known_hosts`.

use std::fs;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases;
use crate::cli::view::{ChangeView, Changed};
use crate::delivery::{CourierSettings, SeenKey, Target, host_keys};
use crate::mesh::CourierKind;

/// Arguments of `grid trust`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
        grid trust atlas SHA256:8ca2+Wap+5kV5tTAnBkyoCtb9zAVQ2qpdBZ4L2L8fyQ\n\n\
        Asks the machine for its keys, and writes the one with this fingerprint to `known_hosts` beside mesh.toml, which may be \
        committed. Any other key is refused, and shown. Compare the fingerprint on the machine itself first: \
        `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`. A key of the same kind that stood there for the machine is replaced.")]
pub struct Arguments {
    /// The machine
    node: String,
    /// The fingerprint of its key, as ssh-keygen prints it: SHA256:…
    fingerprint: String,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let wanted = match fingerprint(&arguments.fingerprint) {
        Ok(wanted) => wanted,
        Err(wrong) => {
            // Who misspelt the machine too is told so first.
            let (folder, loaded) = context.load()?;
            let node = std::slice::from_ref(&arguments.node);
            let chosen = context.choose(&folder, &loaded.mesh, node);
            chosen.map_err(|error| error.hint(wrong.cause.to_string()))?;
            return Err(wrong);
        }
    };
    let mut writing = context.writing("trust", Duration::ZERO)?;
    let mesh = &writing.loaded.mesh;
    let chosen = context.choose(&writing.folder, mesh, std::slice::from_ref(&arguments.node))?;
    let mut nodes = chosen.iter().filter_map(|node| mesh.nodes.get(node));
    let (Some(node), None) = (nodes.next(), nodes.next()) else {
        return Err(CommandError::usage(format!(
            "a key is one machine's, and {} are {}: name one",
            arguments.node,
            phrases::list(&chosen)
        )));
    };
    if matches!(node.courier, CourierKind::Local | CourierKind::Manifests) {
        return Err(CommandError::usage(format!(
            "{} is a folder of this machine, and has no host key",
            node.name
        )));
    }
    let name = node.name.clone();
    let target = Target {
        mesh: mesh.name.clone(),
        node: Arc::new(node.clone()),
    };
    let settings = CourierSettings::new(writing.folder.clone());
    let seen = host_keys(&target, &settings, wanted).map_err(|failure| {
        let text = format!("{name}: {}: {}", phrases::step(failure.step), failure.cause);
        let error = CommandError::new(Exit::Incomplete, anyhow::anyhow!("{text}"));
        match failure.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })?;
    let Some(key) = seen.iter().find(|key| key.fingerprint == wanted) else {
        return Err(refused(&name, &seen));
    };
    let path = writing.folder.join("known_hosts");
    write(&path, key)
        .map_err(|error| CommandError::failed(format!("cannot write {path}: {error}")))?;
    let changed = Changed::Trusted {
        node: name,
        kind: key.kind.clone(),
        fingerprint: key.fingerprint.clone(),
    };
    context.commit(&mut writing, Vec::new(), [])?;
    let view = ChangeView {
        changed: vec![changed],
        behind: std::collections::BTreeSet::new(),
    };
    super::change::finish(context, view)
}

/// A fingerprint as ssh-keygen prints it.
fn fingerprint(text: &str) -> Result<&str, CommandError> {
    let is_one = text.strip_prefix("SHA256:").is_some_and(|digest| {
        digest.len() == 43
            && digest
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
    });
    if is_one {
        Ok(text)
    } else {
        Err(CommandError::usage(format!(
            "{text:?} is no fingerprint: `SHA256:` and 43 characters, as `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` \
             prints it on the machine"
        )))
    }
}

fn refused(name: &crate::words::NodeName, seen: &[SeenKey]) -> CommandError {
    let keys = seen
        .iter()
        .map(|key| format!("{} {}", key.kind, key.fingerprint));
    let error = CommandError::new(
        Exit::Incomplete,
        anyhow::anyhow!(
            "{name} does not show that key, and nothing was written; it shows {}",
            phrases::list(keys)
        ),
    );
    error.hint(
        "if none of these is what the machine itself prints, somebody may stand in between; do not trust it",
    )
}

/// Replaces what stood there for this machine and this kind of key.
fn write(path: &Utf8Path, key: &SeenKey) -> io::Result<()> {
    let old = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let mut text = String::new();
    for line in old.lines() {
        let mut words = line.split_whitespace();
        let is_old = words.next() == Some(&key.name) && words.next() == Some(&key.kind);
        if !is_old {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.push_str(&key.line());
    text.push('\n');
    let new = path.with_file_name(".known_hosts.new");
    let mut file = fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_fingerprint_is_one() {
        let good = "SHA256:8ca2+Wap+5kV5tTAnBkyoCtb9zAVQ2qpdBZ4L2L8fyQ";
        assert!(fingerprint(good).is_ok());
        for wrong in ["", "SHA256:", "MD5:8c:a2", &good[..40], &format!("{good}=")] {
            let error = fingerprint(wrong).unwrap_err();
            assert_eq!(error.exit, Exit::Usage);
        }
    }

    #[test]
    fn a_new_key_takes_the_place_of_the_old_one_of_its_kind() {
        let dir = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(dir.path().join("known_hosts")).unwrap();
        let key = |key: &str| SeenKey {
            name: "[atlas]:2222".into(),
            kind: "ssh-ed25519".into(),
            fingerprint: String::new(),
            key: key.into(),
        };
        write(&path, &key("AAAA")).unwrap();
        fs::write(
            &path,
            "# ours\natlas ssh-ed25519 BBBB\n[atlas]:2222 ssh-rsa CCCC\n[atlas]:2222 ssh-ed25519 AAAA\n",
        )
        .unwrap();
        write(&path, &key("DDDD")).unwrap();
        insta::assert_snapshot!(fs::read_to_string(&path).unwrap(), @r"
        # ours
        atlas ssh-ed25519 BBBB
        [atlas]:2222 ssh-rsa CCCC
        [atlas]:2222 ssh-ed25519 DDDD
        ");
    }
}
