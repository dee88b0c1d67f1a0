//! `perennial add`: seeds and their rules -> `[[site]]` in perennial.toml.

use anyhow::bail;
use clap::Args;

use super::{Context, Exit};
use crate::settings::site::{CrawlSettings, Keep, Seeds, SiteTable, follow};

const AFTER_HELP: &str = "\
Examples:
  perennial add https://example.org/
  perennial add https://example.org/news/ --scope prefix --exclude '\\.pdf$' --depth 3
  perennial add https://example.org/ --timezone Europe/Berlin --weight 2";

/// Follow sites from now on.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Add {
    /// Where to start; https is assumed when no scheme is given
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// How far a seed reaches: page, prefix (below its last slash), host, domain (with all hosts below it)
    #[arg(long, default_value = "host", value_parser = ["page", "prefix", "host", "domain"])]
    scope: String,
    /// Only addresses that match one of these regular expressions
    #[arg(long, value_name = "RE")]
    include: Vec<String>,
    /// No address that matches one of these regular expressions
    #[arg(long, value_name = "RE")]
    exclude: Vec<String>,
    /// Links followed from the seed
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// How much it matters beside other sites
    #[arg(long, value_name = "W", default_value_t = 1.0)]
    weight: f64,
    /// IANA name of the zone by whose days it publishes
    #[arg(long, value_name = "TZ")]
    timezone: Option<String>,
    /// What draws its pages
    #[arg(long, default_value = "auto", value_parser = ["auto", "layout", "chromium"])]
    renderer: String,
    /// Allow its host to have a private or loopback address
    #[arg(long)]
    allow_private: bool,
    /// Visits of its pages that may be made, such as 100/1h
    #[arg(long, value_name = "N/PERIOD")]
    budget: Option<String>,
    /// Bytes that may be fetched from it in a day, such as 200MB
    #[arg(long, value_name = "BYTES")]
    bytes_per_day: Option<String>,
    /// Which versions are stored with their bytes; of the others what changed
    #[arg(long, value_enum, default_value_t)]
    keep: Keep,
}

impl Add {
    /// Adds the seeds; one that is there already gets the new rules.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        if !(self.weight.is_finite() && self.weight > 0.0) {
            bail!("--weight {}: give a number above 0", self.weight);
        }
        let mut tables = Vec::new();
        for url in &self.urls {
            let Some(canonical) = perennial_core::canonical::parse(url) else {
                bail!("`{url}` is not an http or https address: write it like https://example.org/");
            };
            tables.push(self.table(canonical.to_string()));
        }
        Seeds::compile(&tables, 100)?;
        follow(&archive.settings_path(), &tables)?;
        let n_sites = CrawlSettings::load(&archive.settings_path())?.site.len();
        context.print(&tables, |out| {
            for table in &tables {
                writeln!(out, "added {} (scope {})", table.url, table.scope)?;
            }
            writeln!(out, "{n_sites} sites; start with `perennial crawl`")
        })?;
        Ok(Exit::Done)
    }

    fn table(&self, url: String) -> SiteTable {
        SiteTable {
            url,
            scope: self.scope.clone(),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            depth: self.depth,
            weight: self.weight,
            timezone: self.timezone.clone(),
            renderer: self.renderer.clone(),
            allow_private: self.allow_private,
            budget: self.budget.clone(),
            bytes_per_day: self.bytes_per_day.clone(),
            keep: self.keep,
        }
    }
}
