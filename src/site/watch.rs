//! Looks at the files every few seconds and takes up what can be taken up live.
//!
//! The declared trust is read at every look. Under gossip a switch to `pin` stops the take-up of renewed certificates
//! without a restart, and one back to `spiffe` resumes it. Files that cannot be read change nothing: what held goes on,
//! and the status says what is wrong. So it does when the site's peers refuse the site; files that are replaced one after
//! the other are not held against it, so what is wrong has to be so at two looks.

use std::sync::Arc;

use rustls::pki_types::UnixTime;
use tokio::sync::watch;

use super::config::{Loaded, Source};
use super::identity::Identity;
use super::itself::{Unfit, unfit};
use super::membership::Declared;
use super::metrics::{Metrics, Stands};
use super::restart::{Restart, restart};
use super::state::{SiteStatus, StateFolder};
use super::tls::Credentials;
use super::trust::Known;
use crate::signals::site::Site;
use crate::words::{Digest, PeerTrust, SignalMode};

/// The look-out.
pub struct Watch {
    /// The files.
    pub source: Source,
    /// What the daemon runs as.
    pub running: Site,
    /// The identity that it has taken up.
    pub identity: Option<Arc<Identity>>,
    /// Who the site is and whom it knows; none under gossip.
    pub credentials: Option<Arc<Credentials>>,
    /// Who is there.
    pub members: Arc<Declared>,
    /// What the files say now.
    pub loaded: watch::Sender<Arc<Loaded>>,
    /// The daemon's files.
    pub state: StateFolder,
    /// What `status.json` says.
    pub status: SiteStatus,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Whether what the files said at the last look was taken up, so that the same need not be looked at again.
    pub is_settled: bool,
    /// Whether `status.json` could be written when it was last tried. One that could not, for a full disk, is written
    /// once it can be: else it would speak of an earlier daemon until a file changes.
    pub is_written: bool,
    /// What of its files it could not take up, or waits for by itself.
    pub waits: Vec<String>,
    /// Why its peers refuse the site, as found at the last look, and whether that was said.
    pub unfit: Option<(Unfit, bool)>,
}

impl Watch {
    /// Looks until the daemon has to be restarted.
    pub async fn run(&mut self) -> Restart {
        let every = self.running.settings.reread_ms.duration();
        loop {
            tokio::time::sleep(every).await;
            let (source, seen) = (self.source.clone(), Arc::clone(&self.loaded.borrow()));
            let is_settled = self.is_settled;
            let look = move || {
                let is_unchanged = is_settled && source.is_unchanged(&seen);
                (!is_unchanged).then(|| source.read())
            };
            let read = tokio::task::spawn_blocking(look).await;
            let before = self.status.clone();
            match read.ok().flatten() {
                None => {}
                Some(Ok(loaded)) => {
                    self.is_settled = true;
                    if let Some(why) = self.take(loaded) {
                        return why;
                    }
                }
                Some(Err(error)) => {
                    self.is_settled = false;
                    let wrong = format!("files that can be taken up: {error}");
                    if self.waits.first() != Some(&wrong) {
                        tracing::warn!(%error, "changed files are not taken up");
                        self.metrics.files_failed();
                    }
                    self.waits = vec![wrong];
                }
            }
            self.look_at_itself();
            self.stand();
            // With its folder, perhaps: else it would be as if no daemon ran, until a file changes.
            self.is_written &= self.state.has("status.json");
            if self.status != before || !self.is_written {
                self.write();
            }
        }
    }

    /// Says that the daemon ends.
    pub fn stops(&mut self) {
        self.status.stopping = true;
        self.write();
    }

    /// Writes `status.json`.
    pub fn write(&mut self) {
        let written = self.state.replace("status.json", &self.status);
        if let Err(error) = &written
            && self.is_written
        {
            // Said once, however often it is tried.
            tracing::warn!(%error, "status.json cannot be written");
        }
        self.is_written = written.is_ok();
    }

    /// Asks of the site's own certificate what its peers ask, whether or not a file changed: it may have expired since.
    pub fn look_at_itself(&mut self) {
        let now = self.identity.as_ref().and_then(|identity| {
            let loaded = self.loaded.borrow();
            unfit(&loaded, identity, UnixTime::now())
        });
        let was = self.unfit.take();
        self.unfit = match (now, was) {
            (None, Some((_, true))) => {
                tracing::info!("the site's peers admit its certificate again");
                None
            }
            (None, _) => None,
            (Some(now), Some((was, is_said))) if now == was => {
                if !is_said {
                    tracing::warn!(why = %now, "the site's peers refuse its certificate");
                }
                Some((now, true))
            }
            (Some(now), _) => Some((now, false)),
        };
        let said = self.unfit.iter().filter(|(_, is_said)| *is_said);
        let said = said.map(|(why, _)| format!("a certificate that its peers admit: {why}"));
        self.status.waits_for = self.waits.iter().cloned().chain(said).collect();
    }

    /// Has the metrics say what was found at the last look.
    pub fn stand(&self) {
        let identity = self.identity.as_ref();
        self.metrics.stands(Stands {
            trust: self.status.trust,
            not_after: identity.map_or(0, |identity| identity.leaf.not_after),
            admitted: (self.running.mode == SignalMode::Poll).then_some(self.unfit.is_none()),
            taken_up: self.is_settled,
        });
    }

    fn own(&self) -> Option<Digest> {
        self.identity.as_ref().map(|identity| identity.leaf.digest)
    }

    fn take(&mut self, loaded: Loaded) -> Option<Restart> {
        let theirs = loaded.identity.as_ref().map(|theirs| theirs.leaf.digest);
        if let Some(why) = restart(&self.running, self.own(), &loaded.site, theirs) {
            return Some(why);
        }
        self.waits = waits_for(self.running.mode);
        if theirs != self.own() {
            if loaded.site.trust == PeerTrust::Spiffe {
                self.identity.clone_from(&loaded.identity);
                let certificate = theirs.map(tracing::field::display);
                tracing::info!(certificate, "a renewed certificate is taken up");
            } else {
                let text = "a restart, or trust = \"spiffe\": a new certificate is not taken up under \"pin\"";
                self.waits.push(text.to_owned());
            }
        }
        let (site, peers) = (&loaded.site.site, &loaded.peers.peers);
        if let (Some(credentials), Some(identity)) = (&self.credentials, &self.identity) {
            let known = known(&loaded, identity.leaf.digest);
            credentials.replace(Arc::clone(identity), known);
        }
        self.members.replace(site, peers);
        self.metrics
            .keep_peers(|name| peers.iter().any(|peer| peer.name.as_str() == name));
        self.status.trust = loaded.site.trust;
        self.status.certificate = self.own();
        self.status.files = Some(loaded.digest());
        self.status.peers = peers.iter().filter(|peer| peer.name != *site).count();
        self.loaded.send_replace(Arc::new(loaded));
        None
    }
}

/// Whom a site knows by these files.
#[must_use]
pub fn known(loaded: &Loaded, own: Digest) -> Known {
    Known::new(
        loaded.site.site.clone(),
        own,
        loaded.site.trust,
        &loaded.peers.peers,
        loaded.authorities.clone(),
    )
}

/// What a daemon in this mode waits for by itself.
#[must_use]
pub fn waits_for(mode: SignalMode) -> Vec<String> {
    match mode {
        SignalMode::Gossip => {
            vec!["gossip, which this grid does not have yet: nothing crosses sites".to_owned()]
        }
        SignalMode::Poll => Vec::new(),
    }
}
