//! Whose send it is that fences a machine (DESIGN.md, section 4, "Fence"): what to do depends on it.

use crate::store::State;
use crate::words::{NodeName, Token};

/// Whose send a machine holds, if not the one that this store knows of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "is", content = "node")]
pub enum Whose {
    /// It holds nothing, where something was expected.
    Nobody,
    /// Another store's.
    OtherStore,
    /// This store's, to a machine of another name: it was renamed, or two names have one root.
    OtherMachine(NodeName),
    /// A copy's of this store, which has pushed at least as often as this one.
    LaterPush,
    /// This store's or a copy's, from before what this store last heard of the machine: it was put back, say.
    EarlierPush,
}

/// Whose `held` is, on the machine `node`. `next`: the number of the push that finds it, or of the next one.
#[must_use]
pub fn whose(state: &State, next: u64, node: &NodeName, held: Option<&Token>) -> Whose {
    let Some(held) = held else {
        return Whose::Nobody;
    };
    if held.store != state.id {
        return Whose::OtherStore;
    }
    let other = state
        .fleet
        .iter()
        .find(|(name, machine)| *name != node && machine.took(held));
    match other {
        Some((name, _)) => Whose::OtherMachine(name.clone()),
        None if (held.era, held.push) >= (state.era, next) => Whose::LaterPush,
        None => Whose::EarlierPush,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compose::sample::{Sample, node};
    use crate::words::{Era, StoreId};

    #[test]
    fn a_send_is_of_another_store_of_another_name_of_a_copy_or_from_before() {
        let token = |store: u8, era, push, random: u8| Token {
            store: StoreId([store; 8]),
            era: Era(era),
            push,
            random: [random; 8],
        };
        let mut state = State::new(StoreId([1; 8]), Era(5));
        state.fleet = Sample::of(&[]).sent("m0", vec![]).sent("m1", vec![]).fleet;
        state.fleet.get_mut("m0").unwrap().token = Some(token(1, 5, 7, 9));
        let of = |held: Option<Token>| whose(&state, 8, &node("m1"), held.as_ref());
        assert_eq!(of(None), Whose::Nobody);
        assert_eq!(of(Some(token(2, 5, 7, 9))), Whose::OtherStore);
        assert_eq!(of(Some(token(1, 5, 7, 9))), Whose::OtherMachine(node("m0")));
        assert_eq!(of(Some(token(1, 5, 7, 1))), Whose::EarlierPush);
        assert_eq!(of(Some(token(1, 5, 8, 1))), Whose::LaterPush);
        assert_eq!(of(Some(token(1, 6, 1, 1))), Whose::LaterPush);
        assert_eq!(of(Some(token(1, 4, 99, 1))), Whose::EarlierPush);
    }
}
