//! The query of `GET /v1/site/signals`: `target=<provider>` and `collect[]=<metric>`, or `collect=<metric>`.
//!
//! The first `target` counts; `collect` is repeatable. Names are compared exactly, after percent-decoding; one that
//! nobody has picks nothing, which is an empty answer and no error. Other parameters are ignored, as a caller may be newer.
//! What cannot be decoded, or is past a bound, is an error that is answered with 400.

use std::collections::BTreeSet;

use super::row::Row;

/// The longest query, in bytes.
pub const LONGEST: usize = 8 * 1024;

/// The most metrics that one query picks.
pub const MOST_NAMES: usize = 128;

/// Why a query is refused, with 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// Too long.
    #[error("the query is {0} bytes, and at most {LONGEST} are read")]
    TooLong(usize),
    /// Too many names.
    #[error("the query picks more than {MOST_NAMES} metrics")]
    TooManyNames,
    /// A `%` that no two hexadecimal digits follow, or bytes that are not UTF-8.
    #[error("the query is not percent-encoded UTF-8")]
    Encoding,
}

/// What a caller picks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    target: Option<String>,
    collect: BTreeSet<String>,
}

impl Query {
    /// Reads what follows the `?` of a request; empty where there is none.
    ///
    /// # Errors
    /// When it cannot be decoded, or is past a bound.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        if text.len() > LONGEST {
            return Err(QueryError::TooLong(text.len()));
        }
        let mut query = Self::default();
        for pair in text.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match decode(name)?.as_str() {
                "target" if query.target.is_none() => query.target = Some(decode(value)?),
                "collect" | "collect[]" => {
                    query.collect.insert(decode(value)?);
                    if query.collect.len() > MOST_NAMES {
                        return Err(QueryError::TooManyNames);
                    }
                }
                _ => {}
            }
        }
        Ok(query)
    }

    /// Whether a row is picked.
    #[must_use]
    pub fn picks(&self, row: &Row) -> bool {
        let target = self.target.as_deref();
        target.is_none_or(|name| name == row.provider.as_str())
            && (self.collect.is_empty() || self.collect.contains(row.name.as_str()))
    }
}

/// Decodes a part of a query: `%XX` is a byte, `+` a blank.
fn decode(text: &str) -> Result<String, QueryError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        bytes.push(match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                rest = after;
                let high = hexadecimal(*high).ok_or(QueryError::Encoding)?;
                let low = hexadecimal(*low).ok_or(QueryError::Encoding)?;
                high << 4 | low
            }
            (b'%', _) => return Err(QueryError::Encoding),
            (b'+', _) => b' ',
            (other, _) => *other,
        });
    }
    String::from_utf8(bytes).map_err(|_| QueryError::Encoding)
}

const fn hexadecimal(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signals::sample::row;

    fn picked(query: &str) -> Vec<String> {
        let query = Query::parse(query).unwrap();
        let rows = [
            row("atlas", "broker", "queue_size", 1.0, 0),
            row("atlas", "broker", "vllm:running", 1.0, 0),
            row("atlas", "pool", "queue_size", 1.0, 0),
        ];
        let picked = rows.iter().filter(|row| query.picks(row));
        picked
            .map(|row| format!("{} {}", row.provider, row.name))
            .collect()
    }

    #[test]
    fn no_query_picks_everything() {
        assert_eq!(picked("").len(), 3);
        assert_eq!(picked("&&x=1&=&verbose").len(), 3);
    }

    #[test]
    fn the_first_target_counts_and_collect_is_repeatable() {
        assert_eq!(picked("target=pool&target=broker"), ["pool queue_size"]);
        assert_eq!(
            picked("collect[]=queue_size&target=broker"),
            ["broker queue_size"]
        );
        assert_eq!(
            picked("collect%5B%5D=vllm%3Arunning&collect=queue_size").len(),
            3
        );
        assert_eq!(picked("collect=vllm%3arunning"), ["broker vllm:running"]);
    }

    #[test]
    fn an_unknown_name_picks_nothing() {
        for none in [
            "target=nobody",
            "target=",
            "target",
            "target=Broker",
            "target=broker%20",
            "target=+broker",
            "collect=queue",
            "collect=queue_size_",
            "collect=",
            "collect[]",
        ] {
            assert!(picked(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn what_cannot_be_decoded_or_is_past_a_bound_is_refused() {
        for wrong in [
            "target=%",
            "target=%4",
            "target=%zz",
            "%",
            "collect=%ff",
            "a=1&%c3=2",
        ] {
            assert_eq!(Query::parse(wrong), Err(QueryError::Encoding), "{wrong}");
        }
        let long = "a".repeat(LONGEST + 1);
        assert_eq!(Query::parse(&long), Err(QueryError::TooLong(LONGEST + 1)));
        let names = |count: usize| {
            let names: Vec<String> = (0..count).map(|n| format!("collect=m{n}")).collect();
            Query::parse(&names.join("&"))
        };
        assert!(names(MOST_NAMES).is_ok());
        assert_eq!(names(MOST_NAMES + 1), Err(QueryError::TooManyNames));
        let same = "collect=m&".repeat(MOST_NAMES + 1);
        assert!(Query::parse(&same).is_ok());
    }
}
