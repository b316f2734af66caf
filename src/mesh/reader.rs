//! Reads values of the declaration into types, by serde, and goes on after an error, so that one run
//! reports all of them.
//!
//! [`read`] tries again without the key or element that was wrong, until the rest passes; at most
//! [`MOST_TRIES`] times a table, so that no file makes it run long. Unknown keys are recorded in passing.

use std::cell::RefCell;
use std::collections::HashSet;

use serde::Deserialize;

use super::deserializer::{TableReader, ValueReader};
use super::input::{Input, Table};
use super::place::{Place, Problem};
use super::read_error::Error;

/// How many errors of one table are reported.
const MOST_TRIES: usize = 100;

/// Something that can be read again and again.
pub(super) trait Readable: Copy {
    /// Reads it once.
    fn once<T: Deserialize<'static>>(self, pass: &Pass) -> Result<T, Error>;
    /// Where an error stands that has no place of its own.
    fn fallback(self) -> Place;
}

impl Readable for Input<'_> {
    fn once<T: Deserialize<'static>>(self, pass: &Pass) -> Result<T, Error> {
        T::deserialize(ValueReader { input: self, pass }).map_err(|error| match self.name {
            "" => error,
            name => error.or_key(name),
        })
    }
    fn fallback(self) -> Place {
        self.place()
    }
}

impl Readable for Table<'_> {
    fn once<T: Deserialize<'static>>(self, pass: &Pass) -> Result<T, Error> {
        T::deserialize(TableReader { table: self, pass })
    }
    fn fallback(self) -> Place {
        self.key
    }
}

/// Reads a type. `None`: nothing could be made of it. Whatever was wrong is added to `problems`.
pub(super) fn read<T: Deserialize<'static>>(
    input: impl Readable,
    problems: &mut Vec<Problem>,
) -> Option<T> {
    read_with(input, problems, |pass| input.once(pass))
}

/// Like [`read`], with another way to read a table once: a provider kind's.
pub(super) fn read_table_with<T>(
    table: Table<'_>,
    problems: &mut Vec<Problem>,
    once: impl Fn(TableReader<'_>) -> Result<T, Error>,
) -> Option<T> {
    read_with(table, problems, |pass| once(TableReader { table, pass }))
}

fn read_with<T>(
    input: impl Readable,
    problems: &mut Vec<Problem>,
    once: impl Fn(&Pass) -> Result<T, Error>,
) -> Option<T> {
    let pass = Pass::default();
    let mut read = None;
    for left in (0..MOST_TRIES).rev() {
        match once(&pass) {
            Ok(value) => {
                read = Some(value);
                break;
            }
            Err(error) => {
                let fallback = input.fallback();
                let skipped = error
                    .skip
                    .is_some_and(|at| pass.skip.borrow_mut().insert(at));
                if let Some(key) = error.is_missing() {
                    // What is there but wrong has been reported as that.
                    if !pass.wrong_keys.borrow().contains(key) {
                        problems.push(error.problem(fallback));
                    }
                } else {
                    let key = error.key.iter().map(|key| key.to_string());
                    pass.wrong_keys.borrow_mut().extend(key);
                    problems.push(error.problem(fallback));
                }
                if !skipped {
                    break;
                }
                if left == 0 {
                    problems.push(Problem::bare(
                        fallback,
                        "there is more wrong here than is shown",
                    ));
                }
            }
        }
    }
    problems.append(&mut pass.unknown.borrow_mut());
    read
}

/// What was learnt while reading one table.
#[derive(Default)]
pub(super) struct Pass {
    /// First bytes of the keys and elements that are left out.
    pub skip: RefCell<HashSet<usize>>,
    /// Keys that were there, but wrong.
    wrong_keys: RefCell<HashSet<String>>,
    /// Unknown keys.
    pub unknown: RefCell<Vec<Problem>>,
}

impl Pass {
    /// Whether what begins there is left out.
    pub fn skips(&self, at: usize) -> bool {
        let skip = self.skip.borrow();
        !skip.is_empty() && skip.contains(&at)
    }
}
