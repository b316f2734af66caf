//! The tar that a machine receives: laid out first, so that its exact size is known, then streamed.
//!
//! Invariants: what is written has the size that was announced, to the byte; no source is held in memory; a source that
//! is not what was composed stops the stream before its end, so that the machine cannot accept it.
//!
//! A file that the machine has already is a hard link to the one in its current release: one `tar` receives and
//! carries over everything, and no process is started for a file.

use std::io::{self, Read};
use std::sync::Arc;

use camino::Utf8PathBuf;
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};
use zeroize::Zeroizing;

use super::plan::Plan;
use crate::compose::Release;
use crate::compose::bundle::{Bundle, Content};
use crate::compose::manifest::FileEntry;
use crate::words::{Digest, ServiceName};

const BLOCK: u64 = 512;
const END: [u8; 1024] = [0; 1024];
const CHUNK: usize = 64 * 1024;

/// Why the stream stopped.
#[derive(Debug)]
pub(super) enum StreamError {
    /// A source is not what was composed; says which and how.
    Source(String),
    /// The machine no longer takes anything.
    Link(io::Error),
}

enum Part {
    Header(Vec<u8>),
    Bytes(Arc<Zeroizing<Vec<u8>>>),
    Source {
        from: Utf8PathBuf,
        sha256: Digest,
        size: u64,
    },
    Small(Vec<u8>),
}

impl Part {
    fn size(&self) -> u64 {
        match self {
            Self::Header(bytes) | Self::Small(bytes) => length(bytes),
            Self::Bytes(bytes) => length(bytes),
            Self::Source { size, .. } => *size,
        }
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

fn padding(size: u64) -> u64 {
    size.wrapping_neg() % BLOCK
}

/// A tar that is laid out.
pub(super) struct Tar {
    parts: Vec<Part>,
    /// Bytes of the whole tar.
    pub size: u64,
    /// Bytes of the contents in it.
    pub content: u64,
    /// Files in it whose content is sent.
    pub files: u64,
}

impl Tar {
    /// Lays out the tar of a bundle, to be unpacked in the machine's root, below the folder `into`. Files that are
    /// equal in `base` (path, hash, mode, owner) are links to those of that release. A content that nobody here has is
    /// left out.
    ///
    /// # Errors
    /// When a path does not fit into a tar.
    pub(super) fn lay_out(
        bundle: &Bundle,
        plan: &Plan,
        base: Option<&Release>,
        into: &str,
    ) -> io::Result<Self> {
        let mut tar = Self {
            parts: Vec::new(),
            size: length(&END),
            content: 0,
            files: 0,
        };
        for (name, bytes) in [
            ("manifest.json", &plan.manifest),
            ("plan", &plan.plan),
            ("sums", &plan.sums),
        ] {
            let size = length(bytes);
            tar.header(EntryType::Regular, 0o600, size, &format!("{into}/{name}"))?;
            tar.push(Part::Small(bytes.clone()));
        }
        for (name, services) in [
            (".goes-on", &bundle.goes_on),
            (".said-gone", &bundle.said_gone),
        ] {
            if !services.is_empty() {
                let names: Vec<&str> = services.iter().map(ServiceName::as_str).collect();
                let line = names.join(" ") + "\n";
                let path = format!("{into}/{name}");
                tar.header(EntryType::Regular, 0o600, length(line.as_bytes()), &path)?;
                tar.push(Part::Small(line.into_bytes()));
            }
        }
        for service in bundle.manifest.services.keys() {
            let path = format!("{into}/services/{service}/");
            tar.header(EntryType::Directory, 0o755, 0, &path)?;
        }
        let held: std::collections::BTreeMap<_, _> = base
            .into_iter()
            .flat_map(|base| base.files())
            .map(|file| (&file.path, file))
            .collect();
        for file in bundle.manifest.files() {
            let path = format!("{into}/{}", file.path);
            if let Some(base) = base
                && held
                    .get(&file.path)
                    .is_some_and(|old| is_same_file(old, file))
            {
                tar.link(&path, &format!("releases/{}/{}", base.digest(), file.path))?;
                continue;
            }
            let part = match bundle.contents.get(&file.sha256) {
                Some(Content::Bytes(bytes)) => Part::Bytes(Arc::clone(bytes)),
                Some(Content::Source(from)) => Part::Source {
                    from: from.clone(),
                    sha256: file.sha256,
                    size: file.size,
                },
                Some(Content::Kept) | None => continue,
            };
            tar.header(EntryType::Regular, file.mode, part.size(), &path)?;
            tar.content = tar.content.saturating_add(part.size());
            tar.files = tar.files.saturating_add(1);
            tar.push(part);
        }
        Ok(tar)
    }

    fn push(&mut self, part: Part) {
        let size = part.size();
        let padded = size.saturating_add(padding(size));
        self.size = self.size.saturating_add(padded);
        self.parts.push(part);
    }

    fn header(&mut self, kind: EntryType, mode: u16, size: u64, path: &str) -> io::Result<()> {
        let mut header = blank(kind, mode);
        header.set_size(size);
        let mut builder = Builder::new(Vec::new());
        builder.append_data(&mut header, path, io::empty())?;
        self.end_of(builder)
    }

    fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        let mut header = blank(EntryType::Link, 0o600);
        header.set_size(0);
        let mut builder = Builder::new(Vec::new());
        builder.append_link(&mut header, path, target)?;
        self.end_of(builder)
    }

    fn end_of(&mut self, builder: Builder<Vec<u8>>) -> io::Result<()> {
        let mut bytes = builder.into_inner()?;
        bytes.truncate(bytes.len().saturating_sub(END.len()));
        self.push(Part::Header(bytes));
        Ok(())
    }

    /// Writes the tar, piece by piece.
    ///
    /// # Errors
    /// When a source is not what was composed, or when `out` fails.
    pub(super) fn stream(
        &self,
        out: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), StreamError> {
        // Headers and small contents go out together: one packet instead of many.
        let mut gathered = Zeroizing::new(Vec::with_capacity(CHUNK));
        for part in &self.parts {
            match part {
                Part::Header(bytes) | Part::Small(bytes) => gather(&mut gathered, bytes, out)?,
                Part::Bytes(bytes) => gather(&mut gathered, bytes, out)?,
                Part::Source { from, sha256, size } => {
                    source(from, *sha256, *size, &mut |bytes| {
                        gather(&mut gathered, bytes, out)
                    })?;
                }
            }
            let pad = usize::try_from(padding(part.size())).unwrap_or(0);
            gather(&mut gathered, END.get(..pad).unwrap_or_default(), out)?;
        }
        gather(&mut gathered, &END, out)?;
        out(&gathered).map_err(StreamError::Link)
    }
}

fn blank(kind: EntryType, mode: u16) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(u32::from(mode));
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

fn is_same_file(old: &FileEntry, new: &FileEntry) -> bool {
    (old.sha256, old.size, old.mode, &old.owner) == (new.sha256, new.size, new.mode, &new.owner)
}

fn gather(
    gathered: &mut Vec<u8>,
    bytes: &[u8],
    out: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), StreamError> {
    for piece in bytes.chunks(CHUNK) {
        if gathered.len().saturating_add(piece.len()) > CHUNK {
            out(gathered).map_err(StreamError::Link)?;
            gathered.clear();
        }
        gathered.extend_from_slice(piece);
    }
    Ok(())
}

fn source(
    from: &Utf8PathBuf,
    sha256: Digest,
    size: u64,
    out: &mut dyn FnMut(&[u8]) -> Result<(), StreamError>,
) -> Result<(), StreamError> {
    let unreadable = |error: io::Error| StreamError::Source(format!("{from}: {error}"));
    let changed = || StreamError::Source(format!("{from} changed while it was sent"));
    let mut file = std::fs::File::open(from).map_err(unreadable)?;
    let mut hasher = Sha256::new();
    let mut left = size;
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = file.read(&mut buffer).map_err(unreadable)?;
        let read = buffer.get(..n).unwrap_or_default();
        if read.is_empty() {
            break;
        }
        left = left.checked_sub(length(read)).ok_or_else(changed)?;
        hasher.update(read);
        // The last piece is only let go once all of it is known to be right: before that the tar is not whole.
        if left == 0 {
            let digest = Digest::from_bytes(hasher.clone().finalize().into());
            if digest != sha256 {
                return Err(changed());
            }
        }
        out(read)?;
    }
    let empty = size == 0 && sha256 == Digest::of(b"");
    if left > 0 || (size == 0 && !empty) {
        return Err(changed());
    }
    Ok(())
}
