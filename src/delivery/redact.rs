//! Takes the secrets that a machine was given out of what its commands print: a client that cannot log in likes to
//! print the URI that it was given, and a database the statement that it refuses.
//!
//! Invariant: a line that a machine said holds no secret of that machine, nor the beginning of one where it was cut short,
//! once it has left [`super::ear`]. What is printed in another form (base64, escaped) is not known again.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::words::Secret;

/// What stands in its place.
const REDACTED: &str = "[redacted]";
/// A shorter text is no secret: every other line would have it.
const SHORTEST: usize = 4;
/// The shortest beginning of a secret that is looked for at the end of a line.
const SHORTEST_BEGINNING: usize = 8;
/// How long a minted secret is, which is of `[A-Za-z0-9_-]`.
const MINTED: usize = 43;

/// The secrets that a machine was given. Clones are the same ones.
#[derive(Clone, Default)]
pub struct Secrets {
    /// Minted ones: many, and looked up.
    minted: Arc<BTreeSet<Text>>,
    /// Others: few, and searched for.
    others: Arc<BTreeSet<Text>>,
}

/// A secret in its order.
#[derive(Clone, PartialEq, Eq)]
struct Text(Secret);

impl std::borrow::Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self.0.expose()
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.expose().cmp(other.0.expose())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets([redacted])")
    }
}

impl Secrets {
    /// These; of one of several lines each line.
    #[must_use]
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let (mut minted, mut others) = (BTreeSet::new(), BTreeSet::new());
        for secret in secrets {
            if is_as_minted(secret.expose()) {
                minted.insert(Text(secret));
                continue;
            }
            let lines = secret.expose().lines().map(str::trim);
            for line in lines.filter(|line| line.len() >= SHORTEST) {
                others.insert(Text(Secret::new(line.to_owned())));
            }
        }
        Self {
            minted: Arc::new(minted),
            others: Arc::new(others),
        }
    }

    /// A line without them.
    #[must_use]
    pub fn redact(&self, line: String) -> String {
        if self.minted.is_empty() && self.others.is_empty() {
            return line;
        }
        let mut line = line;
        // The longest first: one may be a part of another.
        let mut others: Vec<&str> = self.others.iter().map(|text| text.0.expose()).collect();
        others.sort_by_key(|text| std::cmp::Reverse(text.len()));
        for other in others {
            if line.contains(other) {
                line = line.replace(other, REDACTED);
            }
        }
        line = self.without_minted(line);
        if let Some(cut) = self.beginning(&line) {
            line.truncate(cut);
            line.push_str(REDACTED);
        }
        line
    }

    fn without_minted(&self, line: String) -> String {
        let (mut kept, mut copied, mut at) = (String::new(), 0, 0_usize);
        while let Some(end) = at.checked_add(MINTED).filter(|end| *end <= line.len()) {
            let found = line
                .get(at..end)
                .is_some_and(|window| self.minted.contains(window));
            if found {
                kept.push_str(line.get(copied..at).unwrap_or_default());
                kept.push_str(REDACTED);
                (copied, at) = (end, end);
            } else {
                at = at.saturating_add(1);
            }
        }
        if copied == 0 {
            return line;
        }
        kept.push_str(line.get(copied..).unwrap_or_default());
        kept
    }

    /// Where the beginning of one stands at the end of a line.
    fn beginning(&self, line: &str) -> Option<usize> {
        let starts = |text: &str| {
            let begins = |set: &BTreeSet<Text>| {
                use std::ops::Bound::{Included, Unbounded};
                set.range::<str, _>((Included(text), Unbounded))
                    .next()
                    .is_some_and(|found| found.0.expose().starts_with(text))
            };
            begins(&self.minted) || begins(&self.others)
        };
        let longest = self
            .others
            .iter()
            .map(|text| text.0.expose().len())
            .max()
            .unwrap_or(0)
            .max(MINTED);
        let from = line.len().saturating_sub(longest);
        let to = line.len().checked_sub(SHORTEST_BEGINNING)?;
        (from..=to).find(|&at| line.get(at..).is_some_and(starts))
    }
}

fn is_letter(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

fn is_as_minted(text: &str) -> bool {
    text.len() == MINTED && text.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINTED_ONE: &str = "aB3_aB3-aB3_aB3-aB3_aB3-aB3_aB3-aB3_aB3-xyz";

    fn secrets() -> Secrets {
        let texts = [
            MINTED_ONE,
            "hunter2 and more",
            "hunter2",
            "key one\nkey two\n\n}",
            "abc",
        ];
        Secrets::new(texts.map(|text| Secret::new(text.to_owned())))
    }

    fn redacted(line: &str) -> String {
        secrets().redact(line.to_owned())
    }

    #[test]
    fn what_is_secret_is_taken_out_and_the_rest_stays() {
        assert_eq!(
            redacted(&format!(
                "amqp://user:{MINTED_ONE}@ü/ {MINTED_ONE}x{MINTED_ONE}."
            )),
            "amqp://user:[redacted]@ü/ [redacted]x[redacted]."
        );
        assert_eq!(
            redacted("PASSWORD 'hunter2' hunter2 and more"),
            "PASSWORD '[redacted]' [redacted]"
        );
        assert_eq!(redacted("üü key two, key one"), "üü [redacted], [redacted]");
        // Too short to be one.
        assert_eq!(redacted("abc }"), "abc }");
        for plain in [
            "",
            "ü",
            "no secret here",
            &"ü".repeat(300),
            &"x".repeat(500),
        ] {
            assert_eq!(redacted(plain), plain);
            assert_eq!(Secrets::default().redact(plain.to_owned()), plain);
        }
    }

    #[test]
    fn one_that_is_cut_short_at_the_end_of_a_line_is_taken_out() {
        for length in SHORTEST_BEGINNING..MINTED {
            let cut = MINTED_ONE.get(..length).unwrap();
            assert_eq!(
                redacted(&format!("ü password {cut}")),
                "ü password [redacted]"
            );
        }
        assert_eq!(redacted("it is hunter2 and"), "it is [redacted] and");
        assert_eq!(redacted("it is hunter"), "it is hunter");
    }

    #[test]
    fn it_prints_none_of_them() {
        assert_eq!(format!("{:?}", secrets()), "Secrets([redacted])");
    }
}
