//! `perennial remove`: takes seeds out of perennial.toml; what is archived stays.

use super::{Context, Exit};
use clap::Args;
use perennial_engine::admin::AdminAction;

const AFTER_HELP: &str = "\
What was captured stays in the archive.

Examples:
  perennial remove https://example.org/";

/// Stop following sites.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Remove {
    /// The site: its address or its host, as `perennial list` shows it
    #[arg(required = true, value_name = "URL")]
    sites: Vec<String>,
}

impl Remove {
    /// Removes the seeds. An address that is no seed is an error, and then none is removed.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let done = context.perform(&archive, &AdminAction::Remove(self.sites))?;
        let urls: Vec<&str> = done.lines.iter().map(|line| line.url.as_str()).collect();
        context.print(&urls, |out| urls.iter().try_for_each(|url| writeln!(out, "removed {url}")))?;
        Ok(Exit::Done)
    }
}
