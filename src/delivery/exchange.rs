//! The conversation with a machine side: the same over every courier.
//!
//! What is certain when it breaks off. The machine side changes nothing of the current release before it has received
//! and verified everything it asked for. So a break while it still waited for bytes is a refusal; a break before
//! it asked is one too, unless it may hold this very release, which it then mends without asking. Every other break
//! leaves the machine *uncertain*.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::courier::{Manner, Parcel, Progress, Question};
use super::ear::{Broken, Ear, failure};
use super::link::Link;
use super::message::{Ending, Framed, Message, Want};
use super::prepared::Prepared;
use super::receipt::{Answer, Applied, FailedStep, Failure, Holding, Outcome, Sight};
use super::tar::{StreamError, Tar};
use crate::compose::Release;
use crate::compose::manifest::{Grants, Manifest};
use crate::words::{Digest, ServiceName, Token};

/// No transfer needs to be slower, in bytes a second.
const SLOWEST: u64 = 16 * 1024;
/// What a send has come to.
#[derive(Default)]
struct Received {
    applied: Applied,
    kept: BTreeSet<ServiceName>,
    failures: Vec<Failure>,
    fenced: Option<Option<String>>,
    log: Vec<String>,
}

/// Sends. Called once the machine side was started.
pub(super) fn send(
    link: &mut dyn Link,
    parcel: &Parcel,
    prepared: &Prepared,
    timeout: Duration,
    hear: &mut dyn FnMut(Progress),
) -> Outcome {
    let end = Instant::now() + prepared.steps + timeout.saturating_mul(4);
    let quiet = timeout.saturating_add(prepared.hashing());
    let mut ear = Ear::new(link, quiet, end, &parcel.secrets, hear);
    let mut received = Received::default();
    // May it go ahead without asking for anything?
    let mut may_act = parcel
        .base
        .as_deref()
        .is_none_or(|base| base.digest() == parcel.bundle.digest);
    let mut wants = Vec::new();
    loop {
        let message = match ear.next() {
            Ok(message) => message,
            Err(broken) => {
                let is_over = matches!(broken, Broken::Ended);
                let failure = ear.broken(broken);
                let never_began = is_over && failure.step == FailedStep::Start;
                return if may_act && !never_began {
                    Outcome::Uncertain(failure)
                } else {
                    Outcome::Refused(failure)
                };
            }
        };
        match message {
            Message::Want(want) => {
                if wants.contains(&want) || wants.contains(&Want::All) {
                    return nonsense(&mut ear, may_act, "it asks for the same again");
                }
                wants.push(want);
                let tar = match want {
                    Want::Delta => &prepared.delta,
                    Want::All => &prepared.all,
                };
                match transfer(&mut ear, tar, timeout) {
                    Ok(()) => {
                        received.applied.bytes = received.applied.bytes.saturating_add(tar.content);
                        received.applied.files = received.applied.files.saturating_add(tar.files);
                        may_act = true;
                    }
                    Err(StreamError::Source(cause)) => {
                        return Outcome::Refused(Failure {
                            hint: Some("push again once the file rests".to_owned()),
                            ..failure(FailedStep::Source, cause)
                        });
                    }
                    // Why it takes no more, it says itself, if it can.
                    Err(StreamError::Link(error)) => {
                        let told = ear.next();
                        return stopped(&mut ear, told, &error);
                    }
                }
            }
            Message::Mended(line) => received.applied.mended.push(line),
            Message::Note(line) => received.applied.notes.push(line),
            Message::Loaded(name) => received.applied.loaded.push(name),
            Message::Applied(name) => received.applied.applied.push(name),
            Message::Removed(name) => received.applied.removed.push(name),
            Message::Kept(name) => {
                received.kept.insert(name);
            }
            Message::Fail {
                step,
                service,
                cause,
            } => {
                let failure = ear.reported(&step, service, cause);
                received.failures.push(failure);
            }
            Message::Fenced(held) => received.fenced = Some(held),
            Message::Log(line) => received.log.push(line),
            Message::End(ending) => {
                return settled(parcel, ending, received).unwrap_or_else(|| {
                    nonsense(&mut ear, may_act, "its receipt contradicts itself")
                });
            }
            _ => return nonsense(&mut ear, may_act, "it answers what was not asked"),
        }
    }
}

fn nonsense(ear: &mut Ear<'_>, may_act: bool, what: &str) -> Outcome {
    let failure = ear.broken(Broken::Garbage(what.to_owned()));
    if may_act {
        Outcome::Uncertain(failure)
    } else {
        Outcome::Refused(failure)
    }
}

fn transfer(ear: &mut Ear<'_>, tar: &Tar, timeout: Duration) -> Result<(), StreamError> {
    let seconds = tar.size / SLOWEST;
    let begun = Instant::now();
    let end = begun + timeout + Duration::from_secs(seconds);
    let mut sent = 0_u64;
    let (link, hear) = (&mut *ear.link, &mut *ear.hear);
    tar.stream(&mut |bytes| {
        link.write(bytes, end.min(Instant::now() + timeout))?;
        sent = sent.saturating_add(u64::try_from(bytes.len()).unwrap_or(0));
        hear(Progress::Sent {
            bytes: sent,
            of: tar.size,
        });
        Ok(())
    })?;
    ear.end += begun.elapsed();
    Ok(())
}

/// It took no more before it had everything: nothing was changed.
fn stopped(ear: &mut Ear<'_>, told: Result<Message, Broken>, error: &io::Error) -> Outcome {
    Outcome::Refused(match told {
        Ok(Message::Fail {
            step,
            service,
            cause,
        }) => ear.reported(&step, service, cause),
        _ => Failure {
            hint: Some("nothing was changed there; push again".to_owned()),
            ..failure(
                FailedStep::Unpack,
                format!("the connection broke in the middle of the files: {error}"),
            )
        },
    })
}

fn settled(parcel: &Parcel, ending: Ending, received: Received) -> Option<Outcome> {
    let mut failures = received.failures.into_iter();
    let (first, second) = (failures.next(), failures.next());
    let manifest = &parcel.bundle.manifest;
    let provides = |name: &ServiceName| {
        manifest
            .services
            .get(name)
            .is_some_and(|service| service.grants.is_some())
    };
    Some(match (ending, first) {
        (Ending::Applied, None) => Outcome::Applied(received.applied),
        (Ending::Refused, Some(failure)) => Outcome::Refused(failure),
        (Ending::RolledBack, Some(failure)) => {
            if !received.kept.iter().all(provides) {
                return None;
            }
            Outcome::RolledBack {
                failure,
                lists: received.kept,
            }
        }
        (Ending::RollBackFailed, Some(failure)) => {
            let back = second.map_or_else(String::new, |back| {
                let of = back.service.map(|s| format!("{s}: ")).unwrap_or_default();
                format!("; and the roll-back failed: {of}{}", back.cause)
            });
            Outcome::Uncertain(Failure {
                cause: format!("{}{back}", failure.cause),
                ..failure
            })
        }
        (Ending::Fenced, None) => {
            let held = received.fenced?;
            let mut log = received.log;
            let token = held.as_deref().map(str::parse::<Token>);
            if let (Some(Err(_)), Some(text)) = (&token, &held) {
                log.push(format!("what it holds is no token: {text}"));
            }
            Outcome::Fenced {
                held: token.and_then(Result::ok),
                log,
            }
        }
        _ => return None,
    })
}

/// Asks. Called once the machine side was started.
pub(super) fn ask(
    link: &mut dyn Link,
    question: &Question,
    timeout: Duration,
    lock_wait: Duration,
    hear: &mut dyn FnMut(Progress),
) -> Answer {
    let quiet = timeout.saturating_add(lock_wait);
    let end = Instant::now() + quiet.saturating_mul(2);
    let mut ear = Ear::new(link, quiet, end, &question.secrets, hear);
    let mut holding = Holding {
        token: None,
        manifest: None,
        lists: BTreeMap::new(),
        log: Vec::new(),
    };
    let mut current = None;
    let looks = matches!(question.manner, Manner::Look(_));
    let mut sight = Sight::default();
    let mut said: Option<Failure> = None;
    loop {
        let message = match ear.next() {
            Ok(message) => message,
            Err(broken) => return Answer::Unknown(ear.broken(broken)),
        };
        let taken = match message {
            Message::Token(None) => Ok(()),
            Message::Token(Some(text)) => match text.parse() {
                Ok(token) => {
                    holding.token = Some(token);
                    Ok(())
                }
                Err(_) => Err(format!("what it holds is no token: {text}")),
            },
            Message::Current(digest) => {
                current = digest;
                Ok(())
            }
            Message::Busy if looks => {
                sight.busy = true;
                Ok(())
            }
            Message::Odd(what) if looks => {
                sight.odd = Some(what);
                Ok(())
            }
            Message::Differs(path) if looks => {
                if sight.differs.len() < Sight::DIFFERING {
                    sight.differs.push(path);
                }
                Ok(())
            }
            Message::Differing(many) if looks => {
                sight.differing = many;
                Ok(())
            }
            Message::Unknown(provider) => {
                holding.lists.insert(provider, Grants::new());
                Ok(())
            }
            Message::Frame(Framed::Manifest, bytes) => release(&bytes, current).map(|release| {
                holding.manifest = Some(Arc::new(release));
            }),
            Message::Frame(Framed::List(provider), bytes) => {
                list(&bytes, &provider).map(|grants| {
                    holding.lists.insert(provider, grants);
                })
            }
            Message::Log(line) => {
                holding.log.push(line);
                Ok(())
            }
            Message::Note(line) => {
                ear.keep(None, line);
                Ok(())
            }
            Message::Fail {
                step,
                service,
                cause,
            } => {
                said = Some(ear.reported(&step, service, cause));
                Ok(())
            }
            Message::End(Ending::Answered) if said.is_none() && looks => {
                (sight.token, sight.current) = (holding.token, current);
                return Answer::Seen(sight);
            }
            Message::End(Ending::Answered)
                if said.is_none() && holding.manifest.is_some() == current.is_some() =>
            {
                return Answer::Holds(holding);
            }
            Message::End(_) => {
                return Answer::Unknown(said.unwrap_or_else(|| {
                    failure(FailedStep::Receipt, "its answer contradicts itself")
                }));
            }
            _ => Err("it answers what was not asked".to_owned()),
        };
        if let Err(what) = taken {
            return Answer::Unknown(ear.broken(Broken::Garbage(what)));
        }
    }
}

fn release(bytes: &[u8], current: Option<Digest>) -> Result<Release, String> {
    let digest = Digest::of(bytes);
    if Some(digest) != current {
        return Err("the manifest of its release is not what was sent".to_owned());
    }
    serde_json::from_slice(bytes)
        .map(|manifest| Release::named(manifest, digest))
        .map_err(|error| format!("the manifest of its release cannot be read: {error}"))
}

fn list(bytes: &[u8], provider: &ServiceName) -> Result<Grants, String> {
    let manifest: Manifest = serde_json::from_slice(bytes)
        .map_err(|error| format!("the manifest of {provider}'s list cannot be read: {error}"))?;
    manifest
        .services
        .get(provider)
        .and_then(|service| service.grants.clone())
        .ok_or_else(|| format!("the manifest of {provider}'s list has no list"))
}
