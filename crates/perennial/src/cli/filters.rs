//! `perennial filters`: a filter list in EasyList syntax -> the archive's lists.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;

use super::{Context, Exit};
use perennial_engine::analyse::update_filters;

/// Updates the filter lists that recognise advertisements.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  perennial filters update easylist.txt\n\n\
    Lists are in EasyList syntax. The lists of Debian's uBlock package are used too where it is installed.")]
pub(super) struct Filters {
    #[command(subcommand)]
    command: FilterCommand,
}

#[derive(Subcommand)]
enum FilterCommand {
    /// Add a list to the archive; it replaces the list of the same name
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

impl Filters {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let FilterCommand::Update { file } = self.command;
        let archive = context.open()?;
        let n_filters = update_filters(archive.root(), &file)?;
        let report = FilterReport { file: file.display().to_string(), n_filters };
        context.print(&report, |out| writeln!(out, "added {n_filters} filters from {}", report.file))?;
        Ok(Exit::Done)
    }
}
