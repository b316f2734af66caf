//! Who may open a store (DESIGN.md, section 6): whom the declaration names, whoever made the store, and whoever writes to it now.
//!
//! - Who made a store is in it without being named, as `recipients` are the others. Once the declaration names its key, it is in by
//!   the declaration only, like everybody else, and is out once it is named no more.
//! - Whoever writes stays in until somebody else writes: a command that shut its own user out could not be followed by another one.
//!
//! Who is taken out keeps what they read, and what a copy of the folder holds that they made: a new data key hides from them
//! what is in the store from then on.

use super::record::{Meta, SealedFor};
use crate::mesh::Recipient;

/// Who may open a store after the next writing command, and who not any more.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub recipients: Vec<SealedFor>,
    /// See [`Meta::all_are_named`].
    pub all_are_named: bool,
    pub taken_out: Vec<SealedFor>,
    /// Whether the writer is in only because it writes.
    pub writer_is_not_named: bool,
}

impl Due {
    /// What a store that is sealed as `meta` says owes to a declaration that names `declared`, while the holder of the key `writer`
    /// writes.
    pub fn of(meta: &Meta, writer: &str, declared: &[Recipient]) -> Self {
        let named = |key: &str| declared.iter().find(|named| named.key.trim() == key);
        let maker = meta.recipients.first().filter(|_| !meta.all_are_named);
        let maker = maker.map(|maker| maker.key.as_str());
        let stays = |known: &&SealedFor| {
            let key = known.key.as_str();
            named(key).is_some() || maker == Some(key) || writer == key
        };
        let (stay, taken_out): (Vec<&SealedFor>, Vec<&SealedFor>) =
            meta.recipients.iter().partition(stays);
        let mut recipients: Vec<SealedFor> = stay
            .into_iter()
            .map(|known| SealedFor {
                name: named(&known.key)
                    .map_or(&known.name, |named| &named.name)
                    .clone(),
                key: known.key.clone(),
            })
            .collect();
        add(&mut recipients, declared);
        Self {
            recipients,
            all_are_named: meta.all_are_named || maker.is_some_and(|maker| named(maker).is_some()),
            taken_out: taken_out.into_iter().cloned().collect(),
            writer_is_not_named: maker != Some(writer) && named(writer).is_none(),
        }
    }

    /// `meta` without those who were taken out; its data key has to be another one then.
    pub fn applied_to(&self, meta: &Meta) -> Meta {
        Meta {
            recipients: self.recipients.clone(),
            all_are_named: self.all_are_named,
            ..meta.clone()
        }
    }

    /// `meta` with those who were added, under the data key that it has; who was taken out is in it still. `None`: it is so
    /// already.
    pub fn added_to(&self, meta: &Meta) -> Option<Meta> {
        let mut added = self.applied_to(meta);
        added.recipients.extend(self.taken_out.iter().cloned());
        (added.all_are_named != meta.all_are_named || differs(&added.recipients, &meta.recipients))
            .then_some(added)
    }
}

/// Adds those of `more` whose key is not among `recipients`.
pub(super) fn add(recipients: &mut Vec<SealedFor>, more: &[Recipient]) {
    for recipient in more {
        let key = recipient.key.trim();
        if !recipients.iter().any(|known| known.key == key) {
            recipients.push(SealedFor {
                name: recipient.name.clone(),
                key: key.to_owned(),
            });
        }
    }
}

/// Whether somebody is in only one of them, or has another name. Their order is of no account, but for who made the store, and that
/// one stays first.
fn differs(some: &[SealedFor], others: &[SealedFor]) -> bool {
    some.len() != others.len() || !some.iter().all(|one| others.contains(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Era;

    fn meta(recipients: &[&str], all_are_named: bool) -> Meta {
        let recipients = recipients.iter().map(|name| SealedFor {
            name: (*name).to_owned(),
            key: format!("key-of-{name}"),
        });
        Meta {
            format: 1,
            store: [7; 8],
            era: Era(1),
            created: jiff::Timestamp::UNIX_EPOCH,
            recipients: recipients.collect(),
            all_are_named,
            key: vec![1],
            seal: vec![2],
        }
    }

    fn declared(names: &[&str]) -> Vec<Recipient> {
        let named = names.iter().map(|name| Recipient {
            name: (*name).to_owned(),
            key: format!(" key-of-{name} "),
        });
        named.collect()
    }

    fn due(meta: &Meta, writer: &str, names: &[&str]) -> (String, String, bool, bool) {
        let due = Due::of(meta, &format!("key-of-{writer}"), &declared(names));
        let told = |all: &[SealedFor]| {
            let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
            names.join(" ")
        };
        (
            told(&due.recipients),
            told(&due.taken_out),
            due.all_are_named,
            due.writer_is_not_named,
        )
    }

    fn is(in_it: &str, out: &str, all: bool, not_named: bool) -> (String, String, bool, bool) {
        (in_it.to_owned(), out.to_owned(), all, not_named)
    }

    #[test]
    fn who_made_the_store_stays_without_being_named_whoever_writes() {
        let meta = meta(&["maria", "otto", "carol"], false);
        let left = due(&meta, "maria", &["otto"]);
        assert_eq!(left, is("maria otto", "carol", false, false));
        let left = due(&meta, "otto", &["otto"]);
        assert_eq!(left, is("maria otto", "carol", false, false));
    }

    #[test]
    fn who_made_the_store_and_was_named_once_is_out_once_named_no_more() {
        let before = meta(&["maria", "otto"], false);
        let named = due(&before, "maria", &["otto", "maria"]);
        assert_eq!(named, is("maria otto", "", true, false));
        let named = meta(&["maria", "otto"], true);
        let left = due(&named, "otto", &["otto"]);
        assert_eq!(left, is("otto", "maria", true, false));
    }

    #[test]
    fn a_writer_who_is_named_no_more_stays_until_somebody_else_writes() {
        let meta = meta(&["maria", "carol"], false);
        assert_eq!(due(&meta, "carol", &[]), is("maria carol", "", false, true));
        assert_eq!(due(&meta, "maria", &[]), is("maria", "carol", false, false));
    }

    #[test]
    fn nothing_is_due_where_the_store_is_as_declared_in_whatever_order() {
        let meta = meta(&["maria", "otto", "carol"], false);
        let names = declared(&["carol", "otto"]);
        let as_declared = Due::of(&meta, "key-of-maria", &names);
        assert!(as_declared.taken_out.is_empty());
        assert_eq!(as_declared.added_to(&meta), None);
        let one_more = Due::of(&meta, "key-of-maria", &declared(&["eve"]));
        let added = one_more.added_to(&meta).unwrap();
        let names: Vec<&str> = added.recipients.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["maria", "eve", "otto", "carol"]);
    }

    #[test]
    fn somebody_who_has_another_name_now_is_told_by_it() {
        let meta = meta(&["maria", "otto"], false);
        let renamed = [Recipient {
            name: "ci".to_owned(),
            key: "key-of-otto".to_owned(),
        }];
        let due = Due::of(&meta, "key-of-maria", &renamed);
        assert_eq!(due.added_to(&meta).unwrap().recipients[1].name, "ci");
    }
}
