//! `perennial pause` and `perennial resume`: sites that are not visited for now -> `paused` of `[[site]]` in perennial.toml.

use clap::Args;

use super::{Context, Exit};
use perennial_engine::admin::AdminAction;

const PAUSE_HELP: &str = "\
A running crawl obeys within a few seconds. The pages stay known, and what was captured stays.

Examples:
  perennial pause example.org
  perennial pause https://example.org/news/ https://example.net/
  perennial resume example.org";

/// Suspend the visits of sites.
#[derive(Args)]
#[command(after_help = PAUSE_HELP)]
pub(super) struct Pause {
    /// The site: its address or its host, as `perennial list` shows it
    #[arg(required = true, value_name = "SITE")]
    sites: Vec<String>,
}

/// Resume the visits of paused sites.
#[derive(Args)]
#[command(after_help = PAUSE_HELP)]
pub(super) struct Resume {
    /// The site: its address or its host, as `perennial list` shows it
    #[arg(required = true, value_name = "SITE")]
    sites: Vec<String>,
}

impl Pause {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        perform(context, &AdminAction::Pause(self.sites), "paused")
    }
}

impl Resume {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        perform(context, &AdminAction::Resume(self.sites), "resumed")
    }
}

/// Performs an act on sites and says of each what was done.
pub(super) fn perform(context: &Context, act: &AdminAction, done: &str) -> anyhow::Result<Exit> {
    let lines = context.perform(&context.open()?, act)?.lines;
    context.print(&lines, |out| {
        lines.iter().try_for_each(|line| {
            let detail = if line.detail.is_empty() { String::new() } else { format!(": {}", line.detail) };
            writeln!(out, "{done} {}{detail}", line.url)
        })
    })?;
    Ok(Exit::Done)
}
