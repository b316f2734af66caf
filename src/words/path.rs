//! Paths inside a release, and absolute paths on a machine.
//!
//! Threat: a path is written into the receiving script's lists and unpacked by `tar` as root. Neither
//! type can hold `..`, an empty or `.` component, a control character (so no newline can forge a line
//! of a list), or a backslash (which `sha256sum` writes in another way). Spaces, quotes, a leading dash and
//! any other character are allowed: the script prefixes `./` and quotes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest path, in bytes: what every file system and `tar` (with a long-name header) takes.
const LONGEST: usize = 1024;
/// The longest component, in bytes (`NAME_MAX`).
const LONGEST_COMPONENT: usize = 255;

/// Why a text is not such a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing at all, or only slashes.
    #[error("a path cannot be empty")]
    Empty,
    /// `..`, `.`, or two slashes in a row.
    #[error("a path has no empty, '.' or '..' part")]
    Part,
    /// A control character or a backslash.
    #[error("a path has no control character and no backslash")]
    Character,
    /// Longer than any machine takes.
    #[error("a path has at most {LONGEST} bytes and each part at most {LONGEST_COMPONENT}")]
    TooLong,
    /// Absolute where a relative one is meant, or the reverse.
    #[error("{0}")]
    Root(&'static str),
}

fn check(relative: &str) -> Result<(), PathError> {
    if relative.is_empty() {
        return Err(PathError::Empty);
    }
    // Nearly all paths are plain; each is looked at twice only where it is not.
    let is_plain = |b: u8| (b' '..=b'~').contains(&b) && b != b'\\';
    if !relative.bytes().all(is_plain) && relative.chars().any(|c| c.is_control() || c == '\\') {
        return Err(PathError::Character);
    }
    let (mut is_long, mut is_odd) = (relative.len() > LONGEST, false);
    for part in relative.split('/') {
        is_long |= part.len() > LONGEST_COMPONENT;
        is_odd |= matches!(part, "" | "." | "..");
    }
    match (is_long, is_odd) {
        (true, _) => Err(PathError::TooLong),
        (false, true) => Err(PathError::Part),
        (false, false) => Ok(()),
    }
}

macro_rules! path {
    ($(#[$doc:meta])* $name:ident, $strip:expr, $wrong:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses a path.
            ///
            /// # Errors
            /// When `text` is no such path.
            pub fn new(text: &str) -> Result<Self, PathError> {
                Self::try_from(text.to_owned())
            }

            /// Takes a text as a path, without a copy.
            ///
            /// # Errors
            /// When `text` is no such path; it is given back.
            pub fn of(text: String) -> Result<Self, (PathError, String)> {
                let strip: fn(&str) -> Option<&str> = $strip;
                let checked = strip(&text).ok_or(PathError::Root($wrong)).and_then(check);
                match checked {
                    Ok(()) => Ok(Self(text)),
                    Err(error) => Err((error, text)),
                }
            }

            /// The path as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The path below this one.
            ///
            /// # Errors
            /// When `below` is not a relative path.
            pub fn join(&self, below: &str) -> Result<Self, PathError> {
                check(below)?;
                Self::try_from(format!("{}/{below}", self.0))
            }
        }

        impl TryFrom<String> for $name {
            type Error = PathError;
            fn try_from(text: String) -> Result<Self, PathError> {
                Self::of(text).map_err(|(error, _)| error)
            }
        }

        impl std::str::FromStr for $name {
            type Err = PathError;
            fn from_str(text: &str) -> Result<Self, PathError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(path: $name) -> String {
                path.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": LONGEST })
            }
        }
    };
}

path!(
    /// A relative path, below a release or below one service of it.
    ReleasePath,
    |text| if text.starts_with('/') { None } else { Some(text) },
    "a path in a release is relative"
);
path!(
    /// An absolute path on a machine.
    AbsolutePath,
    |text| text.strip_prefix('/'),
    "an absolute path starts with /"
);

/// A path on a machine: absolute, or relative to the file that names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum MachinePath {
    /// Below the folder of the file that names it.
    Beside(ReleasePath),
    /// Wherever it is.
    At(AbsolutePath),
}

impl MachinePath {
    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Beside(path) => path.as_str(),
            Self::At(path) => path.as_str(),
        }
    }
}

impl TryFrom<String> for MachinePath {
    type Error = PathError;
    fn try_from(text: String) -> Result<Self, PathError> {
        if text.starts_with('/') {
            AbsolutePath::try_from(text).map(Self::At)
        } else {
            ReleasePath::try_from(text).map(Self::Beside)
        }
    }
}

impl From<MachinePath> for String {
    fn from(path: MachinePath) -> String {
        path.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_paths_and_dangerous_ones_are_not() {
        for good in ["a", "a/b c/d'e\"f", "-rf", "ünï/✓", "...", "a/.hidden"] {
            assert_eq!(ReleasePath::new(good).unwrap().as_str(), good);
            assert!(AbsolutePath::new(&format!("/{good}")).is_ok());
        }
        assert_eq!(ReleasePath::new(""), Err(PathError::Empty));
        assert_eq!(AbsolutePath::new("/"), Err(PathError::Empty));
        for part in ["..", "a/../b", "a//b", "./a", "a/"] {
            assert_eq!(ReleasePath::new(part), Err(PathError::Part), "{part}");
        }
        for character in ["a\nb", "a\\b", "a\u{7f}", "\u{85}"] {
            assert_eq!(ReleasePath::new(character), Err(PathError::Character));
        }
        assert!(matches!(ReleasePath::new("/etc"), Err(PathError::Root(_))));
        assert!(matches!(AbsolutePath::new("etc"), Err(PathError::Root(_))));
        assert_eq!(ReleasePath::new(&"a".repeat(256)), Err(PathError::TooLong));
    }
}
