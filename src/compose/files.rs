//! The files of one service, while they are gathered.

use std::collections::BTreeMap;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::ComposeError;
use super::bundle::Content;
use super::manifest::FileEntry;
use crate::kinds;
use crate::mesh::Owner;
use crate::words::{Digest, ReleasePath, ServiceName};

/// 0644, or where it holds a secret 0600, or 0640 where it has an owner.
pub(super) fn mode_of(secret: bool, owner: Option<&Owner>) -> u16 {
    match (secret, owner) {
        (false, _) => 0o644,
        (true, None) => 0o600,
        (true, Some(_)) => 0o640,
    }
}

/// The files of one service, while they are gathered.
pub(super) struct Files<'a> {
    pub service: &'a ServiceName,
    pub entries: Vec<FileEntry>,
    /// Absent: nobody asks for contents.
    pub contents: Option<&'a mut BTreeMap<Digest, Content>>,
}

impl Files<'_> {
    pub fn kind_error(&self, source: kinds::KindError) -> ComposeError {
        ComposeError::Kind {
            service: self.service.clone(),
            source,
        }
    }

    /// A file as it is there already.
    pub fn keep(&mut self, entry: FileEntry) {
        if let Some(contents) = &mut self.contents {
            contents.entry(entry.sha256).or_insert(Content::Kept);
        }
        self.entries.push(entry);
    }

    /// Whether there is a file of this path.
    pub fn has(&self, path: &ReleasePath) -> bool {
        self.entries.iter().any(|entry| entry.path == *path)
    }

    /// A file of these bytes.
    pub fn add(
        &mut self,
        path: String,
        mode: u16,
        owner: Option<&Owner>,
        bytes: &[u8],
        install: Option<crate::words::AbsolutePath>,
    ) -> Result<(), ComposeError> {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let content = || Content::Bytes(Arc::new(Zeroizing::new(bytes.to_vec())));
        self.push(
            path,
            mode,
            owner,
            (Digest::of(bytes), size),
            content,
            install,
        )
    }

    /// A file of a content that is known by its digest.
    pub fn push(
        &mut self,
        path: String,
        mode: u16,
        owner: Option<&Owner>,
        (sha256, size): (Digest, u64),
        content: impl FnOnce() -> Content,
        install: Option<crate::words::AbsolutePath>,
    ) -> Result<(), ComposeError> {
        let path = ReleasePath::of(path).map_err(|(source, path)| ComposeError::Path {
            service: self.service.clone(),
            path,
            source,
        })?;
        if let Some(contents) = &mut self.contents {
            contents.insert(sha256, content()); // what is known stands in for what is kept
        }
        self.entries.push(FileEntry {
            path,
            mode,
            owner: owner.map(|owner| owner.as_str().to_owned()),
            sha256,
            size,
            install,
        });
        Ok(())
    }

    /// A command, as a text of shell.
    pub fn command(&mut self, name: &str, text: &str) -> Result<(), ComposeError> {
        let path = format!("commands/{}/{name}", self.service);
        self.add(path, 0o600, None, text.as_bytes(), None)
    }

    /// All of them, in order of path.
    pub fn take(&mut self) -> Vec<FileEntry> {
        self.entries.sort_by(|a, b| a.path.cmp(&b.path));
        std::mem::take(&mut self.entries)
    }
}
