//! `perennial visit`: a page, or the failing pages of a host -> visited as soon as politeness allows.

use clap::Args;

use super::pause::perform;
use super::{Context, Exit};
use perennial_engine::admin::AdminAction;

const AFTER_HELP: &str = "\
A running crawl visits the page within seconds; otherwise the next crawl visits it first. The backoff of a failing host ends.

Examples:
  perennial visit https://example.org/news
  perennial visit example.org";

/// Visit a page, or the failing pages of a host, as soon as possible.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Visit {
    /// URL of a page, or a host
    #[arg(value_name = "URL")]
    target: String,
}

impl Visit {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        perform(context, &AdminAction::Retry(self.target), "requested a visit of")
    }
}
