//! `perennial run`: addresses -> an archive of them, made if there is none, crawled until stopped.

use anyhow::bail;
use clap::Args;

use super::crawl::Crawl;
use super::{Context, Exit};
use crate::settings::site::{CrawlSettings, SiteTable, follow};

const AFTER_HELP: &str = "\
Examples:
  perennial run https://example.org/ --budget 100/1h
  perennial --archive news run https://example.org/ https://example.net/ --once

The same as `init`, `add` and `crawl` one after the other; sites that are followed already keep their rules.";

/// Archive sites from now on: make the archive if needed, follow them, crawl until stopped.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Run {
    /// Where to start; https is assumed when no scheme is given
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    #[command(flatten)]
    crawl: Crawl,
}

impl Run {
    /// Follows the sites and crawls.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open_or_create()?;
        let followed = CrawlSettings::load(&archive.settings_path())?.site;
        let mut tables = Vec::new();
        for url in &self.urls {
            let Some(canonical) = perennial_core::canonical::parse(url) else {
                bail!("`{url}` is not an http or https address: write it like https://example.org/");
            };
            if followed.iter().all(|site| site.url != canonical.as_str()) {
                tables.push(SiteTable::of_host(canonical.to_string()));
            }
        }
        follow(&archive.settings_path(), &tables)?;
        self.crawl.run(context)
    }
}
