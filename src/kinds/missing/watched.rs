//! Values that remember what they were asked for in vain, and what stands there once that is known.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::State;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value, ValueKind};

use super::{has_word, words_in};

/// The most vain askings that are remembered; the last ones are.
const REMEMBERED_MOST: usize = 64;

/// One step from a value to one in it.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Key(String),
    /// Of a sequence, or by a key that is no text.
    Some,
}

/// A vain asking, and what was asked.
#[derive(Clone)]
pub(super) struct Asked {
    pub path: Arc<[Step]>,
    pub key: String,
    pub value: Value,
}

impl Asked {
    /// The same, asked of whatever a loop goes through: by the keys that stand in the template's text.
    pub fn wherever(self, source: &str) -> Filled {
        let written = |step: &Step| match step {
            Step::Key(key) if has_word(source, key) => Some(key.clone()),
            _ => None,
        };
        Filled {
            path: self.path.iter().map(written).collect(),
            key: self.key,
        }
    }
}

/// What something stands for.
pub(super) struct Filled {
    /// Absent: any step.
    path: Vec<Option<String>>,
    key: String,
}

impl Filled {
    fn is(&self, path: &[Step], key: &str) -> bool {
        let same = |(own, step): (&Option<String>, &Step)| match (own, step) {
            (None, _) => true,
            (Some(own), Step::Key(key)) => own == key,
            (Some(_), Step::Some) => false,
        };
        self.key == key && self.path.len() == path.len() && self.path.iter().zip(path).all(same)
    }
}

/// What was asked for in vain.
#[derive(Default)]
pub(super) struct Log {
    /// In this rendering.
    vain: Mutex<VecDeque<Asked>>,
    /// In those before; something stands there now.
    filled: Mutex<Vec<Filled>>,
}

impl Log {
    pub fn vain(&self) -> MutexGuard<'_, VecDeque<Asked>> {
        self.vain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn filled(&self) -> MutexGuard<'_, Vec<Filled>> {
        self.filled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The vain asking that an error is about, and the bytes of `source` that ask.
    pub fn asked(&self, error: &minijinja::Error, source: &str) -> Option<(Asked, Range<usize>)> {
        if error.kind() != minijinja::ErrorKind::UndefinedError {
            return None;
        }
        let at = error.range()?;
        let expression = source.get(at.clone())?;
        // What goes through a filter is named beside the expression, which is the filter.
        let named = error.detail().and_then(|detail| detail.split('`').nth(1));
        let named = named.unwrap_or("");
        let vain = self.vain();
        let asks = |asked: &&Asked| {
            let key = asked.key.as_str();
            has_word(expression, key) || (has_word(named, key) && has_word(source, key))
        };
        let asked = vain.iter().rev().find(asks)?;
        let at = match has_word(expression, &asked.key) {
            true => at,
            false => last_before(source, at.start, &asked.key).unwrap_or(at),
        };
        Some((asked.clone(), at))
    }
}

/// Where a word stands last before a byte of a text, in the same line.
fn last_before(text: &str, end: usize, word: &str) -> Option<Range<usize>> {
    let before = text.get(..end)?;
    let line = before.rfind('\n').map_or(0, |line| line.saturating_add(1));
    let start = words_in(before.get(line..)?, word).last()?;
    let start = line.saturating_add(start);
    Some(start..start.saturating_add(word.len()))
}

/// A value that remembers what it was asked for in vain, as do those in it.
pub(super) struct Watched {
    pub value: Value,
    pub path: Arc<[Step]>,
    pub log: Arc<Log>,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl Object for Watched {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match self.value.kind() {
            ValueKind::Seq => ObjectRepr::Seq,
            _ => ObjectRepr::Map,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let found = self.value.get_item(key).ok()?;
        if found.is_undefined() {
            let key = key.as_str()?;
            let known = |filled: &Filled| filled.is(&self.path, key);
            if self.log.filled().iter().any(known) {
                return Some(Value::from_object(StandIn));
            }
            let mut vain = self.log.vain();
            if vain.len() >= REMEMBERED_MOST {
                vain.pop_front();
            }
            vain.push_back(Asked {
                path: Arc::clone(&self.path),
                key: key.to_owned(),
                value: self.value.clone(),
            });
            return None;
        }
        if !matches!(found.kind(), ValueKind::Map | ValueKind::Seq) {
            return Some(found);
        }
        let step = key.as_str().map(|key| Step::Key(key.to_owned()));
        let step = std::iter::once(step.unwrap_or(Step::Some));
        Some(Value::from_object(Self {
            value: found,
            path: self.path.iter().cloned().chain(step).collect(),
            log: Arc::clone(&self.log),
        }))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match (self.value.kind(), self.value.len()) {
            (ValueKind::Seq, Some(length)) => Enumerator::Seq(length),
            _ => match self.value.try_iter() {
                Ok(keys) => Enumerator::Values(keys.collect()),
                Err(_) => Enumerator::NonEnumerable,
            },
        }
    }
}

/// Stands where something was asked for in vain, so that rendering goes on: it has everything, holds nothing and prints nothing.
#[derive(Debug)]
struct StandIn;

impl Object for StandIn {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn get_value(self: &Arc<Self>, _: &Value) -> Option<Value> {
        Some(Value::from_object(Self))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Empty
    }

    fn call(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        _: &[Value],
    ) -> Result<Value, minijinja::Error> {
        Ok(Value::from_object(Self))
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        _: &str,
        _: &[Value],
    ) -> Result<Value, minijinja::Error> {
        Ok(Value::from_object(Self))
    }

    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

/// Whether a value only stands where something was asked for in vain.
pub(in crate::kinds) fn is_stand_in(value: &Value) -> bool {
    value.downcast_object_ref::<StandIn>().is_some()
}
