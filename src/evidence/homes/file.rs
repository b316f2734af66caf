//! The file home: one JSON file, outside the releases, replaced atomically (DESIGN.md, section 7).
//!
//! Invariant: whoever publishes holds the file's lock, and compares under it what is there with what it read. The rest is
//! [`KeptFile`]'s. The file is 0640, and stays its owner's: `grid evidence clear`, run by root, takes it from no daemon
//! that runs as somebody else.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::kept::{KeptFile, Lock, io_error};
use super::{Held, Home, HomeError, PublishError, Version};
use crate::evidence::Document;
use crate::evidence::document::{DOCUMENT_MOST, DocumentError};
use crate::words::Digest;

/// The mode of the document.
const MODE: u32 = 0o640;

/// A status document in a file.
#[derive(Debug, Clone)]
pub struct FileHome(KeptFile);

impl FileHome {
    /// The home at `path`. Its folder has to be there; the file need not.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(KeptFile::new(path, MODE, DOCUMENT_MOST))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn held(&self) -> Result<Held, HomeError> {
        let bytes = self.0.bytes()?;
        let version = version(bytes.as_deref());
        let document = bytes.map(|bytes| Document::from_json(&bytes)).transpose();
        let document = document.map_err(|source| self.unreadable(source))?;
        Ok(Held { document, version })
    }

    fn unreadable(&self, source: DocumentError) -> HomeError {
        HomeError::Document {
            place: self.path().display().to_string(),
            source,
        }
    }
}

impl Home for FileHome {
    fn read(&mut self, _within: Duration) -> Result<Held, HomeError> {
        self.held()
    }

    fn publish(
        &mut self,
        document: &Document,
        expected: &Version,
        within: Duration,
    ) -> Result<Held, PublishError> {
        let _locked = Lock::take(&self.0, within)?;
        if version(self.0.bytes()?.as_deref()) != *expected {
            return Err(PublishError::Conflict);
        }
        let json = document.to_json().map_err(io::Error::from);
        let json = json.map_err(io_error("cannot write", self.path()))?;
        self.0.replace(&json)?;
        Ok(self.held()?)
    }
}

fn version(bytes: Option<&[u8]>) -> Version {
    bytes.map_or(Version::Absent, |bytes| {
        Version::At(Digest::of(bytes).to_string().into())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use jiff::Timestamp;

    use super::*;
    use crate::evidence::{Epoch, Ledger, Report};
    use crate::words::Replica;

    const NONE: Duration = Duration::ZERO;

    fn document(sequence: u64) -> Document {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let replica = Replica::new("gw-0").unwrap();
        let epoch = Epoch::from_bytes([1; 16]);
        let report = Report::new(epoch, sequence, 0, true, replica).unwrap();
        let mut ledger = Ledger::new();
        ledger.report(&report, now);
        Document::new(ledger, None, now)
    }

    fn home() -> (tempfile::TempDir, FileHome) {
        let dir = tempfile::tempdir().unwrap();
        let home = FileHome::new(dir.path().join("status.json"));
        (dir, home)
    }

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_published_is_read_back_and_reading_leaves_nothing_behind() {
        let (dir, mut home) = home();
        let empty = home.read(NONE).unwrap();
        assert_eq!((empty.document, &empty.version), (None, &Version::Absent));
        assert!(names(&dir).is_empty());
        let shown = home.publish(&document(1), &Version::Absent, NONE).unwrap();
        assert_eq!(shown.document, Some(document(1)));
        assert_eq!(home.read(NONE).unwrap(), shown);
        let again = home.publish(&document(2), &shown.version, NONE).unwrap();
        assert_ne!(again.version, shown.version);
        assert_eq!(names(&dir), ["status.json", "status.json.lock"]);
        let mode = fs::metadata(home.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640);
    }

    #[test]
    fn who_expects_another_state_writes_nothing() {
        let (_dir, mut home) = home();
        let first = home.publish(&document(1), &Version::Absent, NONE).unwrap();
        let second = home.publish(&document(2), &first.version, NONE).unwrap();
        for expected in [Version::Absent, first.version] {
            let refused = home.publish(&document(3), &expected, NONE);
            assert!(matches!(refused, Err(PublishError::Conflict)));
        }
        assert_eq!(home.read(NONE).unwrap(), second);
        // One that vanished is another state too.
        fs::remove_file(home.path()).unwrap();
        let refused = home.publish(&document(3), &second.version, NONE);
        assert!(matches!(refused, Err(PublishError::Conflict)));
    }

    #[test]
    fn who_holds_the_lock_is_waited_for_within_the_time_given() {
        let (_dir, mut home) = home();
        let lock = Lock::take(&home.0, NONE).unwrap();
        let refused = home.publish(&document(1), &Version::Absent, Duration::from_millis(20));
        let Err(PublishError::Home(locked @ HomeError::Locked { .. })) = refused else {
            panic!("{refused:?}");
        };
        assert!(
            locked.to_string().ends_with("status.json.lock for 20 ms"),
            "{locked}"
        );
        assert_eq!(home.read(NONE).unwrap().version, Version::Absent);
        let waits = std::thread::spawn({
            let mut home = home.clone();
            move || home.publish(&document(1), &Version::Absent, Duration::from_secs(60))
        });
        drop(lock);
        assert!(waits.join().unwrap().is_ok());
    }

    #[test]
    fn what_a_killed_writer_left_is_no_hindrance_and_no_link_is_followed() {
        let (dir, mut home) = home();
        fs::write(home.0.beside(".next"), b"{ \"format\": 1, \"con").unwrap();
        let first = home.publish(&document(1), &Version::Absent, NONE).unwrap();
        let victim = dir.path().join("victim");
        fs::write(&victim, b"whole").unwrap();
        std::os::unix::fs::symlink(&victim, home.0.beside(".next")).unwrap();
        home.publish(&document(2), &first.version, NONE).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"whole");
        assert!(!fs::symlink_metadata(home.path()).unwrap().is_symlink());
    }

    #[test]
    fn a_damaged_or_newer_file_is_refused_and_stays_as_it_is() {
        let (_dir, mut home) = home();
        let large = vec![b' '; DOCUMENT_MOST + 1];
        let newer = br#"{ "format": 2 }"#;
        for bytes in [b"".as_slice(), b"{}", b"\x00\xff", newer, &large] {
            fs::write(home.path(), bytes).unwrap();
            let Err(HomeError::Document { .. }) = home.read(NONE) else {
                panic!("{:?}", bytes.get(..20));
            };
            let refused = home.publish(&document(1), &Version::Absent, NONE);
            assert!(matches!(refused, Err(PublishError::Conflict)));
            assert_eq!(fs::read(home.path()).unwrap(), bytes);
        }
    }

    #[test]
    fn what_is_not_a_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut home = FileHome::new(dir.path());
        assert!(matches!(home.read(NONE), Err(HomeError::NotAFile { .. })));
        let mut home = FileHome::new(dir.path().join("none/status.json"));
        assert_eq!(home.read(NONE).unwrap().version, Version::Absent);
        let refused = home.publish(&document(1), &Version::Absent, NONE);
        assert!(matches!(
            refused,
            Err(PublishError::Home(HomeError::Io { .. }))
        ));
    }

    #[test]
    fn a_home_that_cannot_be_read_says_where_why_and_what_to_do() {
        let home = FileHome::new("/var/lib/grid/prod/status.json");
        let damaged = DocumentError::Damaged {
            why: "EOF while parsing a value at line 1 column 0".to_owned(),
        };
        let said = [damaged, DocumentError::Newer { format: 2 }]
            .map(|source| home.unreadable(source).to_string())
            .join("\n");
        insta::assert_snapshot!(said, @"
        the status document /var/lib/grid/prod/status.json cannot be read: it is damaged: EOF while parsing a value at line 1 column 0; look at it, and move it away: then gateways report anew, and what they reported before is lost
        the status document /var/lib/grid/prod/status.json cannot be read: it has format 2, this grid reads format 1: a newer grid wrote it, use that one
        ");
    }
}
