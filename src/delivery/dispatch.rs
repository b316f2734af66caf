//! Many machines at a time: the [`Dispatch`] of the binary.
//!
//! Each machine is one job on tokio's blocking pool, which runs at most [`CourierSettings::parallel`] of them;
//! the rest waits its turn. A job tells what it hears over a channel, and the caller's thread alone calls `hear`.

use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;

use super::courier::{Dispatch, Heard, Parcel, Question};
use super::receipt::{Answer, FailedStep, Failure, Outcome};
use crate::words::NodeName;

/// How machines are reached.
#[derive(Debug, Clone)]
pub struct CourierSettings {
    /// Machines at a time; at least 1.
    pub parallel: usize,
    /// How long a machine may take to be reached, and how long it may be silent where nothing
    /// else (a service's own time limit, the size of its files) allows it more.
    pub timeout: Duration,
    /// The folder of the declaration: its `known_hosts`, and what identity files are relative to.
    pub declaration_dir: Utf8PathBuf,
    /// The operator's home folder, for `.ssh`; `None`: there is none.
    pub home: Option<PathBuf>,
    /// How often a connection is tried that a retry can help; at least 1.
    pub attempts: u32,
}

impl CourierSettings {
    /// The defaults: 16 machines at a time, 30 seconds, three attempts; the home folder from `HOME`.
    #[must_use]
    pub fn new(declaration_dir: Utf8PathBuf) -> Self {
        Self {
            parallel: 16,
            timeout: Duration::from_secs(30),
            declaration_dir,
            home: std::env::var_os("HOME").map(PathBuf::from),
            attempts: 3,
        }
    }
}

/// Sends by the courier that each machine's declaration names.
#[derive(Debug)]
pub struct Couriers {
    settings: CourierSettings,
}

impl Couriers {
    /// Couriers with these settings.
    #[must_use]
    pub fn new(settings: CourierSettings) -> Self {
        Self { settings }
    }
}

fn unbuilt() -> Failure {
    Failure {
        step: FailedStep::Connect,
        service: None,
        cause: "couriers are being built".into(),
        output: Vec::new(),
        hint: None,
    }
}

impl Dispatch for Couriers {
    fn send(&mut self, parcels: Vec<Parcel>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        for parcel in parcels {
            hear(
                &parcel.target.node.name,
                Heard::Settled(Outcome::NotReached(unbuilt())),
            );
        }
    }

    fn ask(&mut self, questions: Vec<Question>, hear: &mut dyn FnMut(&NodeName, Heard)) {
        let _ = &self.settings;
        for question in questions {
            hear(
                &question.target.node.name,
                Heard::Answered(Answer::Unknown(unbuilt())),
            );
        }
    }
}
