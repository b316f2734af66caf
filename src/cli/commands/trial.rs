//! `grid try`: the main job on this machine alone. Everything it runs is what the operator would type: the same
//! code as a real push, told as it would be told.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;

use super::{assign, push};
use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::ui::{Line, Look};
use crate::store::{Identity, SystemChance};
use crate::words::Chance as _;

/// The files of the mesh; the same as under `examples/try`.
const FILES: [(&str, &str); 5] = [
    ("mesh.toml", include_str!("../../../examples/try/mesh.toml")),
    (
        "accounts.list.j2",
        include_str!("../../../examples/try/accounts.list.j2"),
    ),
    (
        "accounts.sh",
        include_str!("../../../examples/try/accounts.sh"),
    ),
    ("login.sh", include_str!("../../../examples/try/login.sh")),
    (
        "notice.txt",
        include_str!("../../../examples/try/notice.txt"),
    ),
];
/// What the third machine's file is changed to.
const NOTICE: &str = "The canteen opens at eleven.\n";
/// The account list that the provider keeps.
const ACCOUNTS: &str = "machines/atlas/accounts";

/// Arguments of `grid try`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid try\n  \
        grid try /tmp/mesh\n\n\
        Makes a throw-away mesh of three machines, which are folders of this one: a provider of accounts, a consumer that needs one, and \
        a third machine. It needs no sshd, no broker and no root, and leaves the mesh there to play with: removing its folder takes all of it away.")]
pub struct Arguments {
    /// The folder to make it in, new or empty; absent: a fresh one for temporary files
    #[arg(value_hint = clap::ValueHint::DirPath)]
    dir: Option<Utf8PathBuf>,
}

pub(super) fn run(context: &mut Context, arguments: Arguments) -> crate::cli::Result {
    let folder = make(arguments.dir)?;
    let identity = folder.join("identity.txt");
    Identity::generate().write_new(identity.as_std_path(), context.started)?;
    context.enter(&folder, &identity);
    say(
        context,
        &format!("A mesh of three machines, each a folder below {folder}/machines:"),
    )?;
    say(
        context,
        "atlas keeps accounts in a file, cygnus shows a notice, and borealis has nothing to do yet.",
    )?;
    type_in(context, "push --all")?;
    let all = push::Arguments {
        all: true,
        ..a_push(&[])
    };
    let pushed = push::run(context, &all)?;
    if pushed != Exit::Done {
        return Ok(pushed);
    }
    accounts(context, &folder)?;

    say(context, "")?;
    say(
        context,
        "Now billing, which needs an account on atlas, is put on borealis; and the notice on cygnus is changed.",
    )?;
    type_in(context, "assign billing borealis")?;
    assign::assign(context, &assign::AssignArguments::of("billing", "borealis"))?;
    let notice = folder.join("notice.txt");
    fs::write(&notice, NOTICE)
        .map_err(|e| CommandError::failed(format!("cannot write {notice}: {e}")))?;
    accounts(context, &folder)?;

    say(context, "")?;
    say(
        context,
        "One push, of the machine that billing is on. Nobody names atlas or cygnus.",
    )?;
    type_in(context, "push borealis")?;
    let pushed = push::run(context, &a_push(&["borealis"]))?;
    if pushed != Exit::Done {
        return Ok(pushed);
    }
    accounts(context, &folder)?;

    say(context, "")?;
    say(
        context,
        "atlas was flushed by name and admits billing; billing was started after that, and its check logged in.",
    )?;
    say(context, "A second push has nothing to do:")?;
    type_in(context, "push borealis")?;
    let pushed = push::run(context, &a_push(&["borealis"]))?;
    say(context, "")?;
    say(context, "The mesh stays there to play with:")?;
    say(
        context,
        &format!("  export GRID_MESH={folder} GRID_IDENTITY={identity}"),
    )?;
    say(context, "  grid status")?;
    say(
        context,
        "  grid rotate accounts/billing && grid push --behind",
    )?;
    say(context, "  grid provisions")?;
    say(
        context,
        &format!("  rm -r {folder}    takes all of it away: there is nothing of it elsewhere"),
    )?;
    Ok(pushed)
}

fn a_push(nodes: &[&str]) -> push::Arguments {
    push::Arguments {
        nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
        parallel: 16,
        ..push::Arguments::default()
    }
}

/// Makes the folder and its files.
fn make(dir: Option<Utf8PathBuf>) -> Result<Utf8PathBuf, CommandError> {
    let failed = |path: &Utf8Path| {
        let path = path.to_owned();
        move |e: std::io::Error| CommandError::failed(format!("cannot write {path}: {e}"))
    };
    let folder = match dir {
        Some(dir) => {
            let dir = camino::absolute_utf8(&dir).map_err(failed(&dir))?;
            let made = fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&dir);
            made.map_err(failed(&dir))?;
            if fs::read_dir(&dir).map_err(failed(&dir))?.next().is_some() {
                return Err(CommandError::usage(format!("{dir} is not empty"))
                    .hint("`grid try` without a folder makes a fresh one"));
            }
            dir
        }
        None => {
            let mut random = [0; 6];
            SystemChance.fill(&mut random);
            let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
            let temp = Utf8PathBuf::from_path_buf(std::env::temp_dir()).map_err(|path| {
                CommandError::failed(format!("{}: its name is not UTF-8", path.display()))
            })?;
            let dir = temp.join(format!("grid-try-{random}"));
            // Not made where somebody else has made it.
            let made = fs::DirBuilder::new().mode(0o700).create(&dir);
            made.map_err(failed(&dir))?;
            dir
        }
    };
    for (name, content) in FILES {
        let path = folder.join(name);
        fs::write(&path, content).map_err(failed(&path))?;
    }
    Ok(folder)
}

fn say(context: &mut Context, text: &str) -> Result<(), CommandError> {
    context.ui.result(&Line::of(text))
}

/// Shows a command as it would be typed, and begins it.
fn type_in(context: &mut Context, command: &str) -> Result<(), CommandError> {
    let line = Line::new()
        .look(Look::Faint, "$ ")
        .look(Look::Strong, format!("grid {command}"));
    context.ui.results(&[Line::new(), line])?;
    context.begin(command);
    Ok(())
}

/// Shows the account list that atlas keeps.
fn accounts(context: &mut Context, folder: &Utf8Path) -> Result<(), CommandError> {
    let line = Line::new()
        .look(Look::Faint, "$ ")
        .look(Look::Strong, format!("cat {ACCOUNTS}"));
    context.ui.results(&[Line::new(), line])?;
    let text = fs::read_to_string(folder.join(ACCOUNTS)).unwrap_or_default();
    let mut lines: Vec<Line> = text.lines().map(Line::of).collect();
    if lines.is_empty() {
        lines.push(Line::new().look(Look::Faint, "(nobody has an account)"));
    }
    context.ui.results(&lines)
}
