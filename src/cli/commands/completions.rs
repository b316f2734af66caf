//! `grid completions`: generated from the tree of commands.

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
        grid completions fish > ~/.config/fish/completions/grid.fish")]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The completions of a shell.
#[must_use]
pub fn completions(shell: Shell) -> Vec<u8> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut crate::cli::tree(), "grid", &mut bytes);
    bytes
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> crate::cli::Result {
    context.ui.own_bytes(&completions(arguments.shell))?;
    Ok(Exit::Done)
}
