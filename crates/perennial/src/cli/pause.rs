//! `perennial pause` and `perennial resume`: sites -> `paused` of `[[site]]` in perennial.toml.

use clap::Args;

use super::{Context, Exit};
use perennial_engine::admin::AdminAction;

const PAUSE_HELP: &str = "\
A running crawl applies this within a few seconds. Known pages and captures are kept.

Examples:
  perennial pause example.org
  perennial pause https://example.org/news/ https://example.net/
  perennial resume example.org";

/// Suspend the visits of sites.
#[derive(Args)]
#[command(after_help = PAUSE_HELP)]
pub(super) struct PauseArgs {
    /// URL or host of a site, as in `perennial list`
    #[arg(required = true, value_name = "SITE")]
    sites: Vec<String>,
}

/// Resume the visits of paused sites.
#[derive(Args)]
#[command(after_help = PAUSE_HELP)]
pub(super) struct ResumeArgs {
    /// URL or host of a site, as in `perennial list`
    #[arg(required = true, value_name = "SITE")]
    sites: Vec<String>,
}

impl PauseArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        perform(context, &AdminAction::Pause(self.sites), "paused")
    }
}

impl ResumeArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        perform(context, &AdminAction::Resume(self.sites), "resumed")
    }
}

/// Performs an admin action on sites and prints the result for each.
pub(super) fn perform(context: &Context, action: &AdminAction, done: &str) -> anyhow::Result<Exit> {
    let lines = context.perform(&context.open()?, action)?.lines;
    context.print(&lines, |out| {
        lines.iter().try_for_each(|line| {
            let detail = if line.detail.is_empty() { String::new() } else { format!(": {}", line.detail) };
            writeln!(out, "{done} {}{detail}", line.url)
        })
    })?;
    Ok(Exit::Done)
}
