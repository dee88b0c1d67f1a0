//! `perennial run`: addresses -> an archive of them, made if there is none, crawled until stopped.

use clap::Args;
use url::Url;

use super::crawl::Crawl;
use super::{Context, Exit};
use crate::settings::site::parse_address;
use crate::settings::{Seed, follow};

const AFTER_HELP: &str = "\
Examples:
  perennial run https://example.org/ --budget 100/1h
  perennial --archive news run https://example.org/ https://example.net/ --once

This is `init`, `add` and `crawl` in one. Sites that are followed already keep their settings.";

/// Archive sites from now on: make the archive if needed, follow them, crawl until stopped.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Run {
    /// Where to start; https is assumed when no scheme is given
    #[arg(required = true, value_name = "URL", value_parser = parse_address)]
    urls: Vec<Url>,
    #[command(flatten)]
    crawl: Crawl,
}

impl Run {
    /// Follows the sites and crawls.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open_or_create()?;
        let seeds = &archive.settings().seeds;
        let fresh = self.urls.iter().filter(|url| seeds.with_url(url).is_none());
        let fresh: Vec<Seed> = fresh.cloned().map(Seed::of_host).collect();
        follow(&archive.settings_path(), &fresh)?;
        self.crawl.run(context)
    }
}
