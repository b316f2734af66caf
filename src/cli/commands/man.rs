//! `grid man`: man pages, generated from the tree of commands.

use std::io;

use camino::Utf8PathBuf;
use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::{CommandError, Exit};
use crate::cli::phrases::count;
use crate::cli::ui::Line;
use crate::site::families;

/// Arguments of `grid man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid man | man -l -              read the first page\n  \
        grid man /usr/share/man/man1     write all of them")]
pub struct Arguments {
    /// The folder to write all pages to; absent: the first page is printed
    #[arg(value_hint = clap::ValueHint::DirPath)]
    dir: Option<Utf8PathBuf>,
}

/// All pages: the file's name and its content.
///
/// # Errors
/// None that can be met: pages are written to memory.
pub fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut tree = crate::cli::tree();
    tree.build();
    let mut pages = vec![("grid.1".to_owned(), page(&tree)?)];
    for command in tree.get_subcommands() {
        let name = format!("grid-{}", command.get_name());
        let command = command
            .clone()
            .display_name(&name)
            .bin_name(format!("grid {}", command.get_name()));
        for below in command.get_subcommands().filter(|c| c.get_name() != "help") {
            let below_name = format!("{name}-{}", below.get_name());
            let typed = format!("grid {} {}", command.get_name(), below.get_name());
            let below = below.clone().display_name(&below_name).bin_name(typed);
            let mut written = page(&below)?;
            if below_name == "grid-site-run" {
                written.extend_from_slice(metrics().as_bytes());
            }
            pages.push((format!("{below_name}.1"), written));
        }
        pages.push((format!("{name}.1"), page(&command)?));
    }
    Ok(pages)
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let is_first = command.get_name() == "grid";
    clap_mangen::Man::new(command.clone()).render(&mut bytes)?;
    if is_first {
        bytes.extend_from_slice(exit_status().as_bytes());
    }
    Ok(bytes)
}

/// The section of exit codes, from the very table that the program ends by.
fn exit_status() -> String {
    let mut text = ".SH \"EXIT STATUS\"\n".to_owned();
    for exit in Exit::ALL {
        text.push_str(&format!(
            ".TP\n\\fB{}\\fR\n{}\n",
            exit.code(),
            exit.meaning().replace('-', "\\-")
        ));
    }
    text
}

/// The section of what a daemon shows of itself, from the very table that it shows it by.
fn metrics() -> String {
    let mut text = ".SH METRICS\nThe daemon shows its own metrics to its machine only, at http://127.0.0.1:9092/metrics: `metrics` of \
        site.toml, `metrics_port` of `[signals]` in a declaration.\n"
        .to_owned();
    for (family, kind) in families() {
        let labels = match family.labels {
            [] => String::new(),
            labels => format!("{{{}}}", labels.join(",")),
        };
        let line = format!(
            ".TP\n\\fB{}\\fR{labels} ({})\n{}\n",
            family.name,
            kind.as_str(),
            family.help
        );
        text.push_str(&line.replace('-', "\\-").replace('\'', "\\*(Aq"));
    }
    text
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    let pages = pages().map_err(|e| CommandError::failed(format!("no page can be made: {e}")))?;
    let Some(dir) = &arguments.dir else {
        if let Some((_, page)) = pages.first() {
            context.ui.own_bytes(page)?;
        }
        return Ok(Exit::Done);
    };
    let number = pages.len();
    std::fs::create_dir_all(dir)
        .map_err(|e| CommandError::failed(format!("cannot make {dir}: {e}")))?;
    for (name, page) in pages {
        let path = dir.join(name);
        std::fs::write(&path, page)
            .map_err(|e| CommandError::failed(format!("cannot write {path}: {e}")))?;
    }
    let line = Line::of(format!("{} written to {dir}", count(number, "page")));
    context.ui.chat(&line);
    Ok(Exit::Done)
}
