//! Generations of an account, and the era of the store that minted them (DESIGN.md, sections 3, 4).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The era of a store: drawn when it is made and again, higher, by each `store import`. A generation
/// that a lost store minted is thereby told apart from one of the same number minted after it.
/// In seconds since 1970 on the clock that drew it; only its order has a meaning.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Era(pub u64);

/// One generation of a provision: its number, counted from 1 and never used again, and the era
/// that minted it. Written `3@1764444387`, so that it can be a key in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Generation {
    /// Counted from 1 within a provision.
    pub number: u32,
    /// Of the store that minted it.
    pub era: Era,
}

/// A text that is not `NUMBER@ERA`.
#[derive(Debug, thiserror::Error)]
#[error("a generation is written NUMBER@ERA")]
pub struct GenerationError;

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

impl From<Generation> for String {
    fn from(generation: Generation) -> String {
        format!("{}@{}", generation.number, generation.era.0)
    }
}

impl TryFrom<String> for Generation {
    type Error = GenerationError;
    fn try_from(text: String) -> Result<Self, GenerationError> {
        let (number, era) = text.split_once('@').ok_or(GenerationError)?;
        Ok(Self {
            number: number.parse().map_err(|_| GenerationError)?,
            era: Era(era.parse().map_err(|_| GenerationError)?),
        })
    }
}

impl schemars::JsonSchema for Generation {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Generation".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9]+@[0-9]+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_reads_back_what_it_writes_and_orders_by_number() {
        let g = |number, era| Generation {
            number,
            era: Era(era),
        };
        assert_eq!(
            Generation::try_from(String::from(g(3, 17))).unwrap(),
            g(3, 17)
        );
        assert!(g(2, 99) < g(10, 1));
        assert!(Generation::try_from("3".to_owned()).is_err());
    }
}
