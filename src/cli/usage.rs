//! What is said of a command line that the argument parser refuses.
//!
//! Of arguments that contradict each other, or lack one that belongs to them, the parser writes a line of just these: it shows
//! what was refused as what would be right, and `--mesh` where only $GRID_MESH was set. So the command's own line stands there.
//! Of an option that is not there it tells how to pass one as a value, which no command of grid wants. And it ends with a
//! pointer to `--help`, for which grid has a form of its own, `next:`, that names the command.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// How the parser's own pointer begins; it stands last.
const POINTER: &str = "\nFor more information, try ";

/// A refusal, as it is told.
#[derive(Debug)]
pub(super) struct Refusal {
    /// What is wrong, with its escapes.
    pub text: String,
    /// What to type next.
    pub hint: String,
}

/// What is said of a command line that the parser refused with `error`. Help and the version refuse nothing: they come back as they
/// are, to be printed.
pub(super) fn refusal(mut error: Error, arguments: &[OsString]) -> Result<Refusal, Error> {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Err(error);
    }
    let mut command = typed(arguments);
    let contradicts = matches!(
        error.kind(),
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument
    );
    if contradicts && error.get(ContextKind::Usage).is_some() {
        let usage = ContextValue::StyledStr(command.render_usage());
        error.insert(ContextKind::Usage, usage);
    }
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    let mut text = error.render().ansi().to_string();
    if let Some(end) = text.find(POINTER) {
        text.truncate(end);
    }
    let name = command.get_bin_name().unwrap_or("grid");
    let hint = match error.kind() {
        ErrorKind::MissingRequiredArgument => for_missing(name),
        _ => None,
    };
    let hint = hint.map_or_else(
        || format!("`{name} --help` says what it takes"),
        str::to_owned,
    );
    Ok(Refusal { text, hint })
}

/// The command that was typed, as far as it is one.
fn typed(arguments: &[OsString]) -> clap::Command {
    let mut tree = super::tree();
    tree.build();
    let mut command = &tree;
    let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if let Some(option) = word.strip_prefix("--") {
            if takes_the_next_word(&tree, option) {
                words.next();
            }
        } else if let Some(further) = command.find_subcommand(&*word) {
            command = further;
        } else if !word.starts_with('-') {
            break;
        }
    }
    command.clone()
}

/// Whether it is a global option with a value of its own word.
fn takes_the_next_word(tree: &clap::Command, option: &str) -> bool {
    let mut global = tree.get_arguments();
    global.any(|arg| arg.get_long() == Some(option) && arg.get_action().takes_values())
}

/// Where to find what was not said.
fn for_missing(command: &str) -> Option<&'static str> {
    match command {
        "grid trust" => Some(
            "`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the machine prints it: `grid trust atlas SHA256:…`",
        ),
        "grid issue" | "grid revoke" | "grid rotate" => Some(
            "an account is PROVIDER/CONSUMER, like broker/billing; `grid provisions` lists them",
        ),
        _ => None,
    }
}
