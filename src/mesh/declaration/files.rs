//! What a checked declaration says of a service's files: where each goes, what is in it, and whose it is.

use camino::Utf8PathBuf;

use crate::words::{AbsolutePath, ReleasePath};

/// A file of a service.
#[derive(Debug, Clone)]
pub struct FileDeclaration {
    /// Where it goes.
    pub path: FilePath,
    /// Where its content comes from.
    pub content: FileContent,
    /// Its mode; absent: 0644, or where it holds a secret 0640 with an owner and 0600 without.
    pub mode: Option<FileMode>,
    /// Its owner and group; absent: whom the machine side runs as.
    pub owner: Option<Owner>,
}

/// Where a file goes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FilePath {
    /// In the service's folder of the release.
    Release(ReleasePath),
    /// Installed there on the machine.
    Absolute(AbsolutePath),
}

/// Where a file's content comes from. Paths are relative to the declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// A template: Jinja2.
    Template(Utf8PathBuf),
    /// A file, as it is.
    Source(Utf8PathBuf),
    /// A text in the declaration itself.
    Inline(String),
}

/// Permission bits, at most 0o7777.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileMode(u16);

impl FileMode {
    /// From its bits; `None` above 0o7777.
    #[must_use]
    pub fn new(bits: u16) -> Option<Self> {
        (bits <= 0o7777).then_some(Self(bits))
    }

    /// The bits.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Reads `0640` or `640`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if !(3..=5).contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        u16::from_str_radix(text, 8).ok().and_then(Self::new)
    }
}

impl std::fmt::Display for FileMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

/// `user` or `user:group`: POSIX portable names, so that no list of the receiving script's can be forged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(String);

impl Owner {
    /// Parses an owner; `None` when it is not `user` or `user:group`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let portable = |name: &str| {
            !name.is_empty()
                && name.len() <= 32
                && !name.starts_with('-')
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        };
        let mut parts = text.split(':');
        let user = parts.next().is_some_and(portable);
        let group = parts.next().is_none_or(portable);
        (user && group && parts.next().is_none()).then(|| Self(text.to_owned()))
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_and_owners_are_read_as_chmod_and_chown_write_them() {
        assert_eq!(FileMode::parse("0640").unwrap().to_string(), "0640");
        assert_eq!(FileMode::parse("755").unwrap().bits(), 0o755);
        for wrong in ["", "8", "0888", "17777", "+640"] {
            assert_eq!(FileMode::parse(wrong), None, "{wrong}");
        }
        assert!(Owner::parse("billing:billing").is_some());
        assert!(Owner::parse("www-data").is_some());
        for wrong in ["", ":", "a:", "a:b:c", "-x", "a b", "a\nb"] {
            assert_eq!(Owner::parse(wrong), None, "{wrong:?}");
        }
    }
}
