//! `perennial add`: seeds and their settings -> `[[site]]` in perennial.toml.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use perennial_core::page::segment::Selector;
use perennial_core::schedule::{Budget, Goal};
use perennial_core::time::{LocalClock, Span};
use perennial_core::url::scope::{Scope, ScopeKind};
use regex::Regex;
use url::Url;

use super::feeds::follow_list;
use super::{Context, Exit};
use perennial_archive::settings::holidays::Holiday;
use perennial_archive::settings::site::{
    parse_address, parse_holiday, parse_pattern, parse_selector, parse_tag, parse_weight, parse_zone,
};
use perennial_archive::settings::{Allowance, Keep, Parts, PinnedPart, Renderer, Seed};
use perennial_core::schedule::amounts::{AmountError, parse_budget, parse_bytes};
use perennial_engine::admin::AdminAction;

const AFTER_HELP: &str = "\
A site that is followed already gets the new settings instead of its old ones. The settings are in perennial.toml and may be \
edited there by hand; docs/settings.md explains each.

Examples:
  perennial add https://example.org/
  perennial add https://example.org/news/ --scope prefix --exclude '\\.pdf$' --depth 3
  perennial add https://example.org/ --timezone Europe/Berlin --weight 2
  perennial add https://example.org/ --budget 100/1h --bytes-per-day 200MB
  perennial add --from subscriptions.opml --tag reading
  perennial add https://example.org/ --pin '#headlines' --pin article --ignore .cookie-banner";

/// Follow sites from now on.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Add {
    /// Where to start; https is assumed when no scheme is given
    #[arg(required_unless_present = "from", value_name = "URL", value_parser = parse_address)]
    urls: Vec<Url>,
    /// A list of further sites: an address a line, or OPML, whose folders become tags
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// What belongs to the site: page (the URL alone), prefix (all below its last slash), host, or domain (the host and all
    /// hosts below it)
    #[arg(long, value_name = "SCOPE", default_value_t)]
    scope: ScopeKind,
    /// Follow only addresses that match this regular expression; may be given several times
    #[arg(long, value_name = "REGEX", value_parser = parse_pattern)]
    include: Vec<Regex>,
    /// Follow no address that matches this regular expression; may be given several times
    #[arg(long, value_name = "REGEX", value_parser = parse_pattern)]
    exclude: Vec<Regex>,
    /// How many links away from the URL a page may be [default: max_depth of perennial.toml]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Importance of the site relative to other sites: 2 counts twice as much as 1
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = parse_weight)]
    weight: f64,
    /// Time zone of the site's editors, such as Europe/Berlin, in which hours and weekends are counted [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    timezone: Option<Arc<LocalClock>>,
    /// A holiday of the site, as 2026-12-25, or the national holidays of a country, as DE; may be given several times
    #[arg(long, value_name = "DATE", value_parser = parse_holiday)]
    holidays: Vec<Holiday>,
    /// What the visits of this site serve: balanced, importance, every-page, coherent or count [default: goal of [crawl] in
    /// perennial.toml]
    #[arg(long, value_name = "GOAL")]
    goal: Option<Goal>,
    /// What renders the pages: layout (no scripts), chromium (a browser), or auto (a browser for pages that are empty
    /// without scripts)
    #[arg(long, value_name = "RENDERER", default_value_t)]
    renderer: Renderer,
    /// Allow the site's host to have a private or loopback address
    #[arg(long)]
    allow_private: bool,
    /// Visits of its pages in a period, at most, such as 100/1h [default: no limit for this site]
    #[arg(long, value_name = "N/PERIOD", value_parser = parse_hourly)]
    budget: Option<Budget>,
    /// Bytes fetched from it in a day, at most, such as 200MB [default: no limit for this site]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bytes_per_day: Option<u64>,
    /// Which versions are stored in full: all, or important (of the others only the delta is stored)
    #[arg(long, value_name = "VERSIONS", default_value_t)]
    keep: Keep,
    /// CSS selector of the most important part: its blocks get nine tenths of the page's importance; may be given several
    /// times
    #[arg(long, value_name = "SELECTOR", value_parser = parse_selector)]
    pin: Vec<Selector>,
    /// CSS selector of a part to leave out of the comparison: its changes do not count; may be given several times
    #[arg(long, value_name = "SELECTOR", value_parser = parse_selector)]
    ignore: Vec<Selector>,
    /// A word by which you group sites, such as news; may be given several times
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    tag: Vec<String>,
}

fn parse_hourly(text: &str) -> Result<Budget, AmountError> {
    parse_budget(text, Span::from_hours(1))
}

impl Add {
    /// Adds the seeds; a seed that is there already gets the new settings.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        if let Some(file) = &self.from {
            let seeds = self.urls.iter().map(|url| self.seed(url)).collect();
            context.perform(&archive, &AdminAction::Follow(seeds))?;
            return follow_list(context, file, &|url| self.seed(url));
        }
        let seeds: Vec<Seed> = self.urls.iter().map(|url| self.seed(url)).collect();
        let n_sites = context.perform(&archive, &AdminAction::Follow(seeds.clone()))?.settings.seeds.len();
        context.print(&seeds, |out| {
            for seed in &seeds {
                writeln!(out, "added {} (scope {})", seed.scope.seed, seed.scope.kind)?;
            }
            writeln!(out, "sites that are followed: {n_sites}; `perennial crawl` visits them")
        })?;
        Ok(Exit::Done)
    }

    fn pinned(&self) -> Vec<PinnedPart> {
        let part = |selector: &Selector| PinnedPart { selector: selector.clone(), importance: None };
        self.pin.iter().map(part).collect()
    }

    fn seed(&self, url: &Url) -> Seed {
        Seed {
            scope: Scope {
                kind: self.scope,
                seed: url.clone(),
                include: self.include.clone(),
                exclude: self.exclude.clone(),
                max_depth: self.depth,
            },
            depth: self.depth,
            weight: self.weight,
            clock: self.timezone.clone(),
            holidays: self.holidays.clone(),
            goal: self.goal,
            renderer: self.renderer,
            allow_private: self.allow_private,
            paused: false,
            allowance: Allowance { visits: self.budget, bytes_per_day: self.bytes_per_day },
            keep: self.keep,
            parts: Parts::new(self.pinned(), self.ignore.clone()),
            feeds: Vec::new(),
            tags: self.tag.clone(),
        }
    }
}
