//! Pulls the peers' signals: every 30 s, 8 peers at a time, at most 3 attempts, 5 s each and 10 s in all.
//!
//! Only what a retry can help is tried again: a timeout, a refused connection, a broken one, an error of the server's. A
//! site that is not the one that was dialled, an answer past its bound or without a date is not asked again before its
//! next turn. What a peer said before stays until it is 120 s old. How long silence is waited
//! for is a matter of whose turn it is: see [`Turns`].

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout_at};

use super::board::Board;
use super::config::Loaded;
use super::dial::{Dial, PollError};
use super::fetch::Answer;
use super::membership::{Member, Membership};
use super::metrics::Metrics;
use super::now::now;
use super::outcomes::Outcomes;
use super::serve::SIGNALS;
use super::tls::Credentials;
use super::turns::{Ended, Standing, Turns};
use crate::signals::Moment;
use crate::signals::contract::Accepted;
use crate::signals::exposition::Limits;
use crate::signals::reading::{Pulled, read};

/// How long the first pause between two attempts is; each further one is twice as long. Jitter makes it three to five
/// quarters of that. Together they outlast a peer's restart, so that a renewal fails no poll.
const BACK_OFF: Duration = Duration::from_secs(1);

/// How long somebody who was never asked is waited for at first; and twice as long, who answered last time.
const KNOCK: Duration = Duration::from_secs(1);

/// How often it is looked who is there.
const LOOK: Duration = Duration::from_secs(1);

/// The poller.
pub struct Poller {
    /// What the files say now.
    pub loaded: watch::Receiver<Arc<Loaded>>,
    /// Who is there.
    pub members: Arc<dyn Membership>,
    /// Who the site is and whom it knows.
    pub credentials: Arc<Credentials>,
    /// Where readings go.
    pub board: Arc<Board>,
    /// Told when there are new ones.
    pub changed: Arc<Notify>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// How the last polls ended.
    pub last: Outcomes,
}

impl Poller {
    /// Polls for ever.
    pub async fn run(self) {
        let poller = Arc::new(self);
        let settings = poller.loaded.borrow().site.settings.clone();
        let parallel = usize::try_from(settings.poll_parallel).unwrap_or(1);
        let mut turns = Turns::new(settings.poll_interval_ms.duration(), parallel);
        let mut polls = JoinSet::new();
        let mut loaded = poller.loaded.clone();
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while let Some((member, standing)) = turns.next(Instant::now().into_std()) {
                let poller = Arc::clone(&poller);
                polls.spawn(async move {
                    let how = poller.one(&member, standing).await;
                    (member.name, how)
                });
            }
            let wakes = turns.wakes();
            let due = async {
                match wakes {
                    Some(due) => sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(ended) = polls.join_next() => {
                    let Ok((name, how)) = ended else { return };
                    turns.ended(&name, how, Instant::now().into_std());
                    continue;
                }
                () = due => continue,
                _ = looks.tick() => {}
                changed = loaded.changed() => if changed.is_err() { return },
            }
            let alive = poller.members.alive();
            let names: BTreeSet<&str> = alive.iter().map(|member| member.name.as_str()).collect();
            poller.last.keep(|name| names.contains(name));
            turns.follow(alive, Instant::now().into_std());
        }
    }

    async fn one(&self, member: &Member, standing: Standing) -> Ended {
        let loaded = Arc::clone(&self.loaded.borrow());
        let peer = member.name.as_str();
        match self.attempts(member, standing, &loaded).await {
            Ok((pulled, at)) => {
                self.metrics.poll(peer, "success");
                if self.last.is_news(peer, "success") {
                    tracing::info!(peer, "a peer is polled again");
                }
                for (reason, times) in pulled.refused.iter() {
                    self.metrics.refused(peer, reason.as_str(), times);
                }
                for (flaw, times) in pulled.flaws.iter() {
                    self.metrics.refused(peer, flaw.as_str(), times);
                }
                self.board.pulled(&member.name, pulled.rows, at);
                self.changed.notify_one();
                Ended::Answered
            }
            // It only was knocked at: what counts is how it answers when it is asked in earnest.
            Err(PollError::Timeout)
                if matches!(standing, Standing::Answers | Standing::Unknown) =>
            {
                Ended::Unheard
            }
            Err(error) => {
                self.metrics.poll(peer, error.outcome());
                if self.last.is_news(peer, error.outcome()) {
                    tracing::warn!(peer, host = %member.host, %error, "a peer cannot be polled");
                } else {
                    tracing::debug!(peer, host = %member.host, %error, "a peer still cannot be polled");
                }
                Ended::Failed
            }
        }
    }

    async fn attempts(
        &self,
        member: &Member,
        standing: Standing,
        loaded: &Loaded,
    ) -> Result<(Pulled, Moment), PollError> {
        let settings = &loaded.site.settings;
        let limit = settings.poll_attempt_ms.duration();
        let limit = match standing {
            Standing::Unknown => limit.min(KNOCK),
            Standing::Answers => limit.min(KNOCK.saturating_mul(2)),
            Standing::Lapsed | Standing::Silent => limit,
        };
        let end = Instant::now() + settings.poll_total_ms.duration();
        let mut pause = BACK_OFF;
        let mut left = settings.poll_attempts;
        loop {
            let until = end.min(Instant::now() + limit);
            let taken = timeout_at(until, self.attempt(member, loaded)).await;
            left = left.saturating_sub(1);
            let error = match taken.unwrap_or(Err(PollError::Timeout)) {
                Ok(pulled) => return Ok(pulled),
                Err(error) => error,
            };
            let jittered = pause.mul_f64(0.75 + rand::random::<f64>() / 2.0);
            // Who is only knocked at, or silent again, would only hold the place of another.
            let is_silent = standing != Standing::Lapsed && matches!(error, PollError::Timeout);
            if left == 0 || is_silent || !error.may_pass() || Instant::now() + jittered >= end {
                return Err(error);
            }
            tracing::debug!(peer = %member.name, %error, "a poll is tried again");
            sleep(jittered).await;
            pause = pause.saturating_mul(2);
        }
    }

    async fn attempt(
        &self,
        member: &Member,
        loaded: &Loaded,
    ) -> Result<(Pulled, Moment), PollError> {
        let (site, settings) = (&loaded.site, &loaded.site.settings);
        let most = usize::try_from(settings.poll_bytes).unwrap_or(usize::MAX);
        let dial = Dial {
            site: &member.name,
            host: &member.host,
            port: site.port,
            path: SIGNALS,
            most,
            may_be_special: settings.special_addresses,
        };
        let answer = dial.get(&self.credentials).await?;
        let accepted = loaded.accepted.clone();
        take(member, answer, accepted, most).await
    }
}

async fn take(
    member: &Member,
    answer: Answer,
    accepted: Arc<Accepted>,
    most: usize,
) -> Result<(Pulled, Moment), PollError> {
    let at = now();
    let site = member.name.clone();
    let limits = Limits {
        body: most,
        ..Limits::CONTRACT
    };
    let work = move || {
        let date = answer.date.as_deref();
        read(&site, &answer.body, date, at.wall, &accepted, limits)
    };
    let pulled = tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| PollError::Transport("the daemon is ending".to_owned()))??;
    Ok((pulled, at))
}
