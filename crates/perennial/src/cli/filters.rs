//! `perennial filters`: a filter list in EasyList syntax -> the archive's lists.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;

use super::{Context, Exit};
use perennial_engine::analyse::update_filters;

const AFTER_HELP: &str = "\
If Debian's uBlock package is installed, its lists are used too.

Examples:
  perennial filters update easylist.txt";

/// Update the filter lists that recognise advertisements.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct FiltersArgs {
    #[command(subcommand)]
    command: FilterCommand,
}

#[derive(Subcommand)]
enum FilterCommand {
    /// Add a list to the archive; it replaces the list of the same name
    #[command(after_help = AFTER_HELP)]
    Update {
        /// A file in EasyList syntax
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct FilterReport {
    file: String,
    n_filters: usize,
}

impl FiltersArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let FilterCommand::Update { file } = self.command;
        let archive = context.open()?;
        let n_filters = update_filters(archive.root(), &file)?;
        let report = FilterReport { file: file.display().to_string(), n_filters };
        context.print(&report, |out| writeln!(out, "added {n_filters} filters from {}", report.file))?;
        Ok(Exit::Done)
    }
}
