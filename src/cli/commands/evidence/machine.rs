//! The status document of a site, on its machine, over its courier: read as bytes, and cleared by the grid that is there,
//! since only who holds the file's lock may write beside the daemon.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use jiff::Timestamp;

use super::clear::Which;
use super::{document, is_missing};
use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases;
use crate::cli::ui::without_number;
use crate::cli::view::{ClearedView, EvidenceView};
use crate::delivery::{
    CourierSettings, Couriers, FailedStep, Failure, Gate, Ran, RemoteCommand, Target,
};
use crate::evidence::DOCUMENT_MOST;
use crate::mesh::{Mesh, Node, Signals};
use crate::site::evidence_in;
use crate::words::NodeName;

/// How long a machine may take to be reached, and then to answer.
const WAITS: Duration = Duration::from_secs(30);
/// How often a connection is tried.
const ATTEMPTS: u32 = 2;
/// The most that a machine's grid may print when it clears, in bytes.
const CLEARED_MOST: usize = 64 * 1024;

/// Prints the machine's time and the document, so many bytes of it at most. It exits with 66 where there is none, with 65
/// where it is no file, and with 77 where the login may not read it.
const READ: &str = r#"f=$1 d=${1%/*}
date -u +%s
[ ! -d "$d" ] || [ -x "$d" ] || exit 77
[ -e "$f" ] || exit 66
[ -f "$f" ] || exit 65
[ -r "$f" ] || exit 77
head -c "$2" "$f"
"#;

/// A site: its machine, and where its status document lies there.
pub(super) struct Machine {
    target: Target,
    couriers: Couriers,
    file: PathBuf,
    program: String,
    signals: Signals,
}

impl Machine {
    /// The site of this name.
    ///
    /// # Errors
    /// When there is none, or more than one is meant.
    pub(super) fn find(
        context: &Context,
        folder: &Utf8Path,
        mesh: &Mesh,
        site: &str,
    ) -> Result<Self, CommandError> {
        let chosen = context.choose(folder, mesh, &[site.to_owned()])?;
        let mut nodes = chosen.iter().filter_map(|node| mesh.nodes.get(node));
        let (Some(node), None) = (nodes.next(), nodes.next()) else {
            return Err(CommandError::usage(format!(
                "evidence is one site's, and {site} are {}: name one",
                phrases::list(&chosen)
            )));
        };
        if !node.is_observed() {
            return Err(CommandError::usage(format!(
                "nobody reaches {}: its courier is \"manifests\", which writes its resources to a folder",
                node.name
            ))
            .hint(
                "where its daemon runs, `grid evidence --file FILE` shows it: evidence.json in the daemon's state folder; here, \
                 `grid evidence -` shows a copy of that from standard input",
            ));
        }
        let Some(signals) = &mesh.signals else {
            return Err(CommandError::usage(format!(
                "{} is no site: the declaration has no table `[signals]`",
                node.name
            ))
            .hint("`grid evidence --file FILE` shows a status document from elsewhere"));
        };
        let mut settings = CourierSettings::new(folder.to_owned());
        settings.timeout = WAITS;
        settings.attempts = ATTEMPTS;
        settings.passphrases = context.ui.asks_passphrases(&Gate::default());
        let state = std::path::Path::new(signals.state.as_str());
        Ok(Self {
            target: Target {
                mesh: mesh.name.clone(),
                node: Arc::new(node.clone()),
            },
            couriers: Couriers::new(settings),
            file: evidence_in(state),
            program: signals.program().to_owned(),
            signals: signals.clone(),
        })
    }

    /// Its name.
    pub(super) fn name(&self) -> &NodeName {
        &self.node().name
    }

    fn node(&self) -> &Node {
        &self.target.node
    }

    fn run(&self, words: Vec<String>, most: usize) -> Result<Ran, Failure> {
        self.couriers.command(
            &self.target,
            &RemoteCommand {
                words,
                most,
                limit: WAITS,
            },
        )
    }

    /// Its evidence, with ages by the machine's own clock.
    ///
    /// # Errors
    /// When the machine cannot be asked, or holds no document that can be read.
    pub(super) fn read(&self) -> Result<EvidenceView, CommandError> {
        let most = DOCUMENT_MOST.saturating_add(1);
        let file = self.file.display().to_string();
        let words = ["sh", "-c", READ, "grid", &file, &most.to_string()];
        let words = words.map(str::to_owned).to_vec();
        let ran = self
            .run(words, most.saturating_add(64))
            .map_err(|failure| self.unreached(failure))?;
        match ran.code {
            0 => {}
            65 => return Err(self.failed(format!("{file} is not a file"))),
            66 => return Err(self.missing()),
            77 => return Err(self.not_allowed(&file)),
            code => return Err(self.ended(code, &ran.said, "reading it")),
        }
        let strange = || self.failed("it answers what was not asked".to_owned());
        let newline = ran.output.iter().position(|byte| *byte == b'\n');
        let (time, bytes) = newline
            .and_then(|at| ran.output.split_at_checked(at.saturating_add(1)))
            .ok_or_else(strange)?;
        let now = std::str::from_utf8(time).ok();
        let now = now.and_then(|text| text.trim_end().parse().ok());
        let now = now
            .and_then(|seconds| Timestamp::from_second(seconds).ok())
            .ok_or_else(strange)?;
        let document = document(bytes, &format!("{file} of {}", self.name())).map_err(|error| {
            CommandError {
                exit: Exit::Incomplete,
                ..error
            }
        })?;
        let mut view = EvidenceView::new(&document, now);
        view.site = Some(self.name().clone());
        view.file = Some(self.file.clone());
        Ok(view)
    }

    /// Has the machine's grid clear evidence. Where it may have done so and nobody knows, [`Unclear::Unknown`].
    pub(super) fn clear(&self, which: Which) -> Result<ClearedView, Unclear> {
        let mut words = vec![
            self.program.clone(),
            "--json".to_owned(),
            "evidence".to_owned(),
            "clear".to_owned(),
            "--file".to_owned(),
            self.file.display().to_string(),
        ];
        words.extend(which.words());
        let ran = self.run(words, CLEARED_MOST).map_err(|failure| {
            let is_known = failure.step != FailedStep::Receipt;
            let error = self.unreached(failure);
            if is_known {
                Unclear::NotReached(error)
            } else {
                Unclear::Unknown(error.hint(format!(
                    "whether it was cleared is unknown: the same command again changes nothing that was; `grid evidence {}` shows it",
                    self.name()
                )))
            }
        })?;
        match ran.code {
            0 => {}
            127 => {
                let text = format!("{} is not there", self.program);
                return Err(Unclear::Refused(self.failed(text).hint(
                    "the site daemon's own program clears beside it: `binary` in `[signals]` brings it to \
                     /usr/local/bin/grid, or `check` names it",
                )));
            }
            // It knows no such epoch, say.
            2 => {
                let mut error = self.ended(2, &ran.said, "clearing");
                error.exit = Exit::Usage;
                return Err(Unclear::Refused(error));
            }
            _ if is_missing(&self.file, &ran.said) => {
                return Err(Unclear::Refused(self.missing()));
            }
            code => return Err(Unclear::Refused(self.ended(code, &ran.said, "clearing"))),
        }
        let view: Result<ClearedView, _> = serde_json::from_slice(&ran.output);
        let mut view = view.map_err(|_| {
            Unclear::Unknown(self.failed("its grid answers what was not asked".to_owned()))
        })?;
        view.site = Some(self.name().clone());
        view.file.clone_from(&self.file);
        Ok(view)
    }

    fn failed(&self, why: String) -> CommandError {
        CommandError::new(Exit::Incomplete, anyhow::anyhow!("{}: {why}", self.name()))
    }

    fn unreached(&self, failure: Failure) -> CommandError {
        let cause = without_number(&failure.cause);
        let why = match failure.step {
            FailedStep::Receipt => cause,
            step => format!("{}: {cause}", phrases::step(step)),
        };
        failure
            .hint
            .into_iter()
            .fold(self.failed(why), CommandError::hint)
    }

    /// A command there ended with another code than it should have.
    fn ended(&self, code: u8, said: &[String], doing: &str) -> CommandError {
        let errors = said.iter().rev();
        let said = errors
            .clone()
            .find_map(|line| line.strip_prefix("error: "))
            .or(said.last().map(String::as_str));
        self.failed(match said {
            Some(said) => format!("{doing} ended with {code} there: {said}"),
            None => format!("{doing} ended with {code} there"),
        })
    }

    fn missing(&self) -> CommandError {
        let error = self.failed(format!("there is no {} there", self.file.display()));
        match self.signals.mode.unwrap_or_default() {
            crate::words::SignalMode::Gossip => error.hint(
                "this mesh gossips: a site has no listener then, and nobody reports to it. `mode = \"poll\"` in `[signals]` \
                 gives it one",
            ),
            crate::words::SignalMode::Poll => error.hint(
                "the site daemon writes it as soon as it runs: `systemctl status grid-site` there; and `state` in `[signals]` says \
                 where it lies",
            ),
        }
    }

    fn not_allowed(&self, file: &str) -> CommandError {
        self.failed(format!("its login may not read {file}")).hint(
            "`user = \"root\"` of the machine, or `become = \"sudo\"`, or a login in the group of that file",
        )
    }
}

/// Why evidence was not cleared.
pub(super) enum Unclear {
    /// The machine was not reached: nothing was done.
    NotReached(CommandError),
    /// It refused: nothing was done.
    Refused(CommandError),
    /// Nobody knows whether it was.
    Unknown(CommandError),
}
