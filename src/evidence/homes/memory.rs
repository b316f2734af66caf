//! A home in memory, for tests: it can be told to fail, or to show what was not written.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Held, Home, HomeError, PublishError, Version};
use crate::evidence::Document;

/// What happens at a publish.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It works.
    None,
    /// Somebody else published this in between.
    Overtaken(Box<Document>),
    /// It fails, and nothing was written.
    FailBefore,
    /// It was written, and fails then: the answer is lost.
    FailAfter,
    /// It is answered with what was there before.
    ShowsOld,
}

/// A home in memory.
#[derive(Debug, Default)]
pub struct MemoryHome {
    /// What is there.
    pub document: Option<Document>,
    /// What happens at the next publishes; past the last one they work.
    pub faults: VecDeque<Fault>,
    /// Whether reading fails.
    pub unreadable: bool,
    /// How often it was read.
    pub reads: u64,
    /// How often something was written.
    pub writes: u64,
}

impl MemoryHome {
    fn held(&self) -> Held {
        let version = match self.document {
            None => Version::Absent,
            Some(_) => Version::At(self.writes.to_string().into()),
        };
        Held {
            document: self.document.clone(),
            version,
        }
    }

    fn write(&mut self, document: &Document) {
        self.document = Some(document.clone());
        self.writes += 1;
    }
}

impl Home for MemoryHome {
    fn read(&mut self, _within: Duration) -> Result<Held, HomeError> {
        self.reads += 1;
        if self.unreadable {
            return Err(HomeError::Simulated);
        }
        Ok(self.held())
    }

    fn publish(
        &mut self,
        document: &Document,
        expected: &Version,
        _within: Duration,
    ) -> Result<Held, PublishError> {
        let before = self.held();
        match self.faults.pop_front().unwrap_or(Fault::None) {
            Fault::Overtaken(other) => self.write(&other),
            Fault::FailBefore => return Err(HomeError::Simulated.into()),
            Fault::FailAfter => {
                self.write(document);
                return Err(HomeError::Simulated.into());
            }
            Fault::ShowsOld => return Ok(before),
            Fault::None => {}
        }
        if self.held().version != *expected {
            return Err(PublishError::Conflict);
        }
        self.write(document);
        Ok(self.held())
    }
}
