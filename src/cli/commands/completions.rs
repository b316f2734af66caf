//! `grid completions`: what makes a shell ask this program what may follow.

use clap::{Args, ValueEnum};

use crate::cli::context::Context;
use crate::cli::exit::Exit;

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// bash.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
}

impl Shell {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bash, Self::Zsh, Self::Fish];

    /// What the shell wants the file to be called.
    #[must_use]
    pub const fn file(self) -> &'static str {
        match self {
            Self::Bash => "grid.bash",
            Self::Zsh => "_grid",
            Self::Fish => "grid.fish",
        }
    }
}

/// Arguments of `grid completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        grid completions bash > /usr/share/bash-completion/completions/grid\n  \
        grid completions zsh > /usr/share/zsh/vendor-completions/_grid\n  \
        grid completions fish > ~/.config/fish/completions/grid.fish\n\n\
        What they offer comes from the program at each press of the key: commands and options, and from the declaration machines, @tags, services \
        and accounts, for `history` the numbers of pushes. Nothing is locked, and no machine is contacted.")]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The completions of a shell: a few lines of its own language that ask grid what may follow.
#[must_use]
pub const fn completions(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => include_str!("../../../completions/grid.bash"),
        Shell::Zsh => include_str!("../../../completions/_grid"),
        Shell::Fish => include_str!("../../../completions/grid.fish"),
    }
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    context
        .ui
        .own_bytes(completions(arguments.shell).as_bytes())?;
    Ok(Exit::Done)
}
