//! Where a machine lay before its address or root was changed (DESIGN.md, section 2, "undeclared").

use super::location::Location;
use super::manifest::ServiceManifest;
use super::sent::{Attempt, Sent};
use crate::words::{ServiceName, Token};

/// What a machine was sent at another place than it is declared at now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    /// Where.
    pub at: Location,
    /// The token of the send that it last took there.
    pub token: Option<Token>,
    /// What it acknowledged there.
    pub sent: Option<Sent>,
    /// A send there that was not settled.
    pub attempt: Option<Attempt>,
}

impl Former {
    /// So many former places of a machine are kept; the oldest go.
    pub const MOST: usize = 8;

    /// A place that holds nothing, though it may have taken the send of `token`.
    #[must_use]
    pub const fn of(at: Location, token: Option<Token>) -> Self {
        Self {
            at,
            token,
            sent: None,
            attempt: None,
        }
    }

    /// The same, with what was acknowledged there.
    #[must_use]
    pub fn with(mut self, sent: Sent) -> Self {
        self.sent = Some(sent);
        self
    }

    /// Whether anything may lie there but the machine's log.
    #[must_use]
    pub const fn holds_something(&self) -> bool {
        self.sent.is_some() || self.attempt.is_some()
    }

    /// Whether `token` is of a send to this place.
    #[must_use]
    pub fn took(&self, token: &Token) -> bool {
        let attempted = self.attempt.as_ref().map(|attempt| &attempt.token);
        self.token.as_ref() == Some(token) || attempted == Some(token)
    }

    /// The services that may be there: as acknowledged, and as attempted.
    pub(super) fn possible(&self) -> impl Iterator<Item = (&ServiceName, &ServiceManifest)> {
        let sent = self.sent.iter().flat_map(|sent| &sent.manifest.services);
        let attempt = self.attempt.iter();
        sent.chain(attempt.flat_map(|attempt| &attempt.manifest.services))
    }
}
