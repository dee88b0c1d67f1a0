//! `perennial remove`: removes seeds from perennial.toml.

use super::{Context, Exit};
use clap::Args;
use perennial_engine::admin::AdminAction;

const AFTER_HELP: &str = "\
Captures stay in the archive.

Examples:
  perennial remove https://example.org/";

/// Stop following sites.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RemoveArgs {
    /// URL or host of a site, as in `perennial list`
    #[arg(required = true, value_name = "URL")]
    sites: Vec<String>,
}

impl RemoveArgs {
    /// Removes the seeds. If one of the URLs is not a seed, none is removed.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let done = context.perform(&archive, &AdminAction::Remove(self.sites))?;
        let urls: Vec<&str> = done.lines.iter().map(|line| line.url.as_str()).collect();
        context.print(&urls, |out| urls.iter().try_for_each(|url| writeln!(out, "removed {url}")))?;
        Ok(Exit::Done)
    }
}
