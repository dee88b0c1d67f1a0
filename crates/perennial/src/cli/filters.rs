//! `perennial filters`: the lists by which advertisements are known.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;

use super::{Context, Exit};
use crate::analyse::update_filters;

/// Keeps the lists by which advertisements are known.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  perennial filters update easylist.txt\n\n\
    Lists in EasyList syntax. Besides those of the archive, the lists of Debian's uBlock package are used when installed.")]
pub(super) struct Filters {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Take a list into the archive, in place of one of the same name
    Update {
        /// A file in EasyList syntax
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct Report {
    file: String,
    n_rules: usize,
}

impl Filters {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let Command::Update { file } = self.command;
        let archive = context.open()?;
        let n_rules = update_filters(archive.root(), &file)?;
        let report = Report { file: file.display().to_string(), n_rules };
        context.print(&report, |out| writeln!(out, "{n_rules} rules taken in from {}", report.file))?;
        Ok(Exit::Done)
    }
}
