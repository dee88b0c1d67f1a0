//! `perennial visit`: a page, or what fails on a host -> visited as soon as politeness allows it.

use clap::Args;

use super::pause::perform;
use super::{Context, Exit};
use perennial_engine::admin::AdminAction;

const AFTER_HELP: &str = "\
A running crawl visits it within seconds, else the next one does so first. The pause that a host got by its failures ends.

Examples:
  perennial visit https://example.org/news
  perennial visit example.org";

/// Visit a page, or the failing pages of a host, as soon as possible.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Visit {
    /// The address of a page, or a host
    #[arg(value_name = "URL")]
    target: String,
}

impl Visit {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        perform(context, &AdminAction::Retry(self.target), "to be visited now:")
    }
}
