//! The messages of the machine side, and how a line is read as one.
//!
//! Threat: the machine may be hostile or broken. A word that is not known, or a value that is none of its kind, is no message. What
//! is shown to people is cleaned first, so that no escape sequence reaches a terminal.

use super::redact::Secrets;
use crate::words::{Digest, ServiceName};

/// The longest text shown of a line, in characters.
const LONGEST_TEXT: usize = 500;

/// How a conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Applied,
    Refused,
    RolledBack,
    RollBackFailed,
    Fenced,
    Answered,
}

/// Which tar the machine wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Delta,
    All,
}

/// What is in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Framed {
    Manifest,
    List(ServiceName),
}

/// One thing that the machine side says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// Printed before the script began: by the login shell, by sudo.
    Noise(String),
    Hello,
    /// What an earlier send left is settled first.
    Settling,
    Want(Want),
    Step {
        step: String,
        service: Option<ServiceName>,
        seconds: u64,
    },
    Out {
        service: ServiceName,
        line: String,
    },
    Mended(String),
    Note(String),
    Loaded(ServiceName),
    Applied(ServiceName),
    Removed(ServiceName),
    Kept(ServiceName),
    Fail {
        step: String,
        service: Option<ServiceName>,
        cause: String,
    },
    Fenced(Option<String>),
    Log(String),
    Token(Option<String>),
    Current(Option<Digest>),
    /// Of a machine that is only looked at: a send is under way there.
    Busy,
    /// What is out of order with its `current`.
    Odd(String),
    /// A file that is not as it was sent.
    Differs(String),
    /// How many there are.
    Differing(u64),
    Unknown(ServiceName),
    Frame(Framed, Vec<u8>),
    End(Ending),
}

impl Message {
    /// The same without secrets in what is shown to people.
    pub(super) fn redacted(mut self, secrets: &Secrets) -> Self {
        match &mut self {
            Self::Noise(text)
            | Self::Out { line: text, .. }
            | Self::Mended(text)
            | Self::Note(text)
            | Self::Fail { cause: text, .. }
            | Self::Odd(text)
            | Self::Differs(text)
            | Self::Log(text) => *text = secrets.redact(std::mem::take(text)),
            _ => {}
        }
        self
    }
}

/// What a line says of a frame that follows it: what is in it, and how many bytes.
pub(super) fn frame(rest: &str) -> Option<(Framed, usize)> {
    let mut words = rest.split(' ');
    let (kind, service, size) = (words.next()?, words.next()?, words.next()?);
    let framed = match (kind, service) {
        ("manifest", "-") => Framed::Manifest,
        ("list", service) => Framed::List(ServiceName::new(service).ok()?),
        _ => return None,
    };
    (words.next().is_none()).then_some((framed, size.parse().ok()?))
}

/// What a line says; `None`: it is not of the protocol.
pub(super) fn message(line: &str) -> Option<Message> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let service = |name: &str| ServiceName::new(name).ok();
    let maybe = |name: &str| match name {
        "-" => Some(None),
        name => service(name).map(Some),
    };
    let unless_none = |text: &str| (text != "-").then(|| clean(text));
    Some(match word {
        "settling" => Message::Settling,
        "want" => Message::Want(match rest {
            "delta" => Want::Delta,
            "all" => Want::All,
            _ => return None,
        }),
        "step" => {
            let mut words = rest.split(' ');
            let step = words.next().filter(|step| is_label(step))?.to_owned();
            Message::Step {
                step,
                service: maybe(words.next()?)?,
                seconds: words.next()?.parse().ok()?,
            }
        }
        "out" => {
            let (name, line) = rest.split_once(' ')?;
            Message::Out {
                service: service(name)?,
                line: clean(line),
            }
        }
        "mended" => Message::Mended(clean(rest)),
        "note" => Message::Note(clean(rest)),
        "loaded" => Message::Loaded(service(rest)?),
        "applied" => Message::Applied(service(rest)?),
        "removed" => Message::Removed(service(rest)?),
        "kept" => Message::Kept(service(rest)?),
        "unknown" => Message::Unknown(service(rest)?),
        "fail" => {
            let (step, rest) = rest.split_once(' ')?;
            let (name, cause) = rest.split_once(' ')?;
            if !is_label(step) {
                return None;
            }
            Message::Fail {
                step: step.to_owned(),
                service: maybe(name)?,
                cause: clean(cause),
            }
        }
        "fenced" => Message::Fenced(unless_none(rest)),
        "token" => Message::Token(unless_none(rest)),
        "log" => Message::Log(clean(rest)),
        "busy" if rest.is_empty() => Message::Busy,
        "odd" => Message::Odd(clean(rest)),
        "differs" => Message::Differs(clean(rest)),
        "differing" => Message::Differing(rest.parse().ok()?),
        "current" => Message::Current(match rest {
            "-" => None,
            digest => Some(digest.parse().ok()?),
        }),
        "end" => Message::End(match rest {
            "applied" => Ending::Applied,
            "refused" => Ending::Refused,
            "rolled-back" => Ending::RolledBack,
            "roll-back-failed" => Ending::RollBackFailed,
            "fenced" => Ending::Fenced,
            "answered" => Ending::Answered,
            _ => return None,
        }),
        _ => return None,
    })
}

fn is_label(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
}

/// Fit for a terminal: no control characters, nothing that turns the direction of writing, at most 500 characters.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .take(LONGEST_TEXT)
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => '\u{fffd}',
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c => c,
        })
        .collect()
}
