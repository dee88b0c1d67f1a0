//! `perennial completions` and `perennial man`: files for shells and for `man`, made from the help texts.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory;
use clap_complete::Shell;

use super::context::document_on_stdout;
use super::{Cli, Context, Exit};

/// Print completions for a shell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  perennial completions bash > ~/.local/share/bash-completion/completions/perennial
  perennial completions zsh > ~/.zfunc/_perennial
  perennial completions fish > ~/.config/fish/completions/perennial.fish")]
pub(super) struct CompletionsArgs {
    /// Name of the shell
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "perennial", &mut script);
        let mut out = document_on_stdout();
        out.write_all(&script)?;
        out.flush()?;
        Ok(Exit::Done)
    }
}

/// Write the manual pages.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  perennial man ~/.local/share/man/man1
  man perennial-run")]
pub(super) struct ManArgs {
    /// Folder for the pages, created if missing
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl ManArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let write = || {
            std::fs::create_dir_all(&self.dir)?;
            clap_mangen::generate_to(Cli::command(), &self.dir)
        };
        write().with_context(|| format!("cannot write {}", self.dir.display()))?;
        context.print(&self.dir, |out| writeln!(out, "wrote the manual pages to {}", self.dir.display()))?;
        Ok(Exit::Done)
    }
}
