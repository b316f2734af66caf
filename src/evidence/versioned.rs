//! JSON that says its format: bounded, and a newer one is told from a damaged one.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// How much of a parser's words is repeated, in characters.
const WHY_MOST: usize = 200;

/// Why a text is not what it should be.
#[derive(Debug)]
pub(super) enum Unreadable {
    /// Not what grid writes; what was found.
    Damaged(String),
    /// A newer grid wrote it, in this format.
    Newer(u64),
    /// Past the bound.
    TooLarge,
}

/// Reads a value that has a field `format`, of at most `newest`, from at most so many bytes.
pub(super) fn from_json<T: DeserializeOwned>(
    json: &[u8],
    most: usize,
    newest: u64,
) -> Result<T, Unreadable> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: u64,
    }
    if json.len() > most {
        return Err(Unreadable::TooLarge);
    }
    let head: Head = serde_json::from_slice(json).map_err(damaged)?;
    if head.format > newest {
        return Err(Unreadable::Newer(head.format));
    }
    serde_json::from_slice(json).map_err(damaged)
}

/// Writes a value: for people too, each field on a line.
pub(super) fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    let mut json = serde_json::to_vec_pretty(value)?;
    json.push(b'\n');
    Ok(json)
}

/// What a parser says, which repeats what it read: bounded, and without control characters.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn damaged(error: serde_json::Error) -> Unreadable {
    let said = error.to_string();
    let clean = said.chars().take(WHY_MOST);
    Unreadable::Damaged(
        clean
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect(),
    )
}
