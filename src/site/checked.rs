//! `grid site check`: whether the daemon runs as its files declare. A push's check of a site waits until it does.

use std::path::{Path, PathBuf};

use rustls::pki_types::UnixTime;

use super::config::{ConfigError, Source};
use super::itself::{Unfit, unfit};
use super::state::{FORMAT, SiteStatus};
use crate::words::{PeerTrust, SignalMode};

/// The largest `status.json` that is read, in bytes.
const LARGEST: u64 = 64 * 1024;

/// Why a site is not as declared.
#[derive(Debug, thiserror::Error)]
pub enum Unmet {
    /// Its files.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No daemon has written its status.
    #[error(
        "no site daemon has run here: {} is not there; `systemctl enable --now grid-site` starts it where the unit is installed",
        .0.display()
    )]
    NoStatus(PathBuf),
    /// It is none.
    #[error("{} is no status of this grid's site daemon: {why}", path.display())]
    Status {
        /// Which file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Its process is gone.
    #[error("the site daemon is not running: its process {0} is gone; its log says why")]
    NotRunning(u32),
    /// It ends.
    #[error(
        "the site daemon is ending, as process {0}: `systemctl start grid-site` starts it again where the unit is installed, \
         if its supervisor does not"
    )]
    Stopping(u32),
    /// It runs in another mode.
    #[error(
        "the site daemon runs in mode {runs}, and {declared} is declared: its supervisor has not started it again yet"
    )]
    Mode {
        /// As it runs.
        runs: SignalMode,
        /// As declared.
        declared: SignalMode,
    },
    /// It runs with another trust.
    #[error(
        "the site daemon runs with trust {runs}, and {declared} is declared: its supervisor has not started it again yet"
    )]
    Trust {
        /// As it runs.
        runs: PeerTrust,
        /// As declared.
        declared: PeerTrust,
    },
    /// It shows another certificate.
    #[error(
        "the site daemon shows another certificate than the one that was delivered, and has not taken that up yet"
    )]
    Certificate,
    /// Its peers refuse it.
    #[error(
        "the site's peers refuse its certificate: {0}. An identity that grid minted is delivered by a push of this machine, and \
         `grid rotate --site` mints another; one that is made elsewhere has to be put where `site` of its node says, with its \
         SHA-256 among the node's `pins` under pin"
    )]
    Unfit(Unfit),
    /// It knows other peers, pins or authorities.
    #[error("the site daemon has not taken up yet what was delivered{}", said(.waits_for))]
    Files {
        /// What it waits for.
        waits_for: Vec<String>,
    },
}

/// What the daemon says that it waits for, as the end of a sentence.
fn said(waits_for: &[String]) -> String {
    match waits_for {
        [] => String::new(),
        waits_for => format!("; it waits for {}", waits_for.join(", and for ")),
    }
}

/// Whether the daemon that `config` configures runs in the declared mode and trust, under poll shows the declared
/// certificate, which its peers admit, and has taken up all of its files: until it has, it refuses a peer whose pin or
/// authority is new.
///
/// # Errors
/// What is not as declared.
pub fn check(config: &Path) -> Result<(), Unmet> {
    let declared = Source::new(&[config.to_owned()])?.read()?;
    let site = &declared.site;
    let path = Path::new(site.state.as_str()).join("status.json");
    let status = read(&path)?;
    let pid = i32::try_from(status.pid).ok();
    let pid = pid.and_then(rustix::process::Pid::from_raw);
    // Another user's process refuses the question, and is there.
    let is_there = pid
        .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH));
    if !is_there {
        return Err(Unmet::NotRunning(status.pid));
    }
    if status.stopping {
        return Err(Unmet::Stopping(status.pid));
    }
    if status.mode != site.mode {
        return Err(Unmet::Mode {
            runs: status.mode,
            declared: site.mode,
        });
    }
    if status.trust != site.trust {
        return Err(Unmet::Trust {
            runs: status.trust,
            declared: site.trust,
        });
    }
    let delivered = declared
        .identity
        .as_ref()
        .map(|identity| identity.leaf.digest);
    if site.mode == SignalMode::Poll && status.certificate != delivered {
        return Err(Unmet::Certificate);
    }
    if status.files != Some(declared.digest()) {
        return Err(Unmet::Files {
            waits_for: status.waits_for,
        });
    }
    let identity = declared.identity.as_ref();
    match identity.and_then(|identity| unfit(&declared, identity, UnixTime::now())) {
        Some(why) => Err(Unmet::Unfit(why)),
        None => Ok(()),
    }
}

fn read(path: &Path) -> Result<SiteStatus, Unmet> {
    use std::io::Read as _;
    let file = std::fs::File::open(path).map_err(|_| Unmet::NoStatus(path.to_owned()))?;
    let none = |why: String| Unmet::Status {
        path: path.to_owned(),
        why,
    };
    let mut bytes = Vec::new();
    file.take(LARGEST)
        .read_to_end(&mut bytes)
        .map_err(|e| none(e.to_string()))?;
    let status: SiteStatus = serde_json::from_slice(&bytes).map_err(|e| none(e.to_string()))?;
    if status.format != FORMAT {
        return Err(none(format!("it has format {}", status.format)));
    }
    Ok(status)
}
