//! `perennial add`: seeds and their settings -> `[[site]]` in perennial.toml.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use perennial_core::page::segment::Selector;
use perennial_core::schedule::{Budget, Goal};
use perennial_core::time::{LocalClock, Span, WeeklyHours};
use perennial_core::url::scope::{Scope, ScopeKind};
use regex::Regex;
use url::Url;

use super::feed::follow_list;
use super::watch::{check_reach, note_conflicts};
use super::{Context, Exit};
use perennial_archive::settings::holidays::Holiday;
use perennial_archive::settings::site::{
    parse_holiday, parse_pattern, parse_selector, parse_tag, parse_url, parse_weight, parse_zone,
};
use perennial_archive::settings::times::{parse_every, parse_hours};
use perennial_archive::settings::{
    BudgetTable, PageParts, PageRenderer, PinnedPart, Seed, VersionRetention, VisitTimes,
};
use perennial_core::schedule::units::{UnitError, parse_budget, parse_bytes};
use perennial_engine::admin::AdminAction;

const AFTER_HELP: &str = "\
The new settings of a site that is already followed replace all its old ones. docs/settings.md explains each setting.

Examples:
  perennial add https://example.org/news/ --scope prefix --exclude '\\.pdf$' --depth 3
  perennial add https://example.org/ --timezone Europe/Berlin --weight 2
  perennial add --from subscriptions.opml --tag reading
  perennial add https://example.org/ --pin '#headlines' --pin article --ignore .cookie-banner";

/// Follow sites from now on.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct AddArgs {
    /// Start URL of a site; https is the default scheme
    #[arg(required_unless_present = "from", value_name = "URL", value_parser = parse_url)]
    urls: Vec<Url>,
    /// Add the sites of a list: one URL per line, or OPML
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Pages of the site: page (this URL), prefix (below its last slash), host, or domain (with all subdomains)
    #[arg(long, value_name = "SCOPE", default_value_t)]
    scope: ScopeKind,
    /// Follow only URLs that match; repeatable
    #[arg(long, value_name = "REGEX", value_parser = parse_pattern)]
    include: Vec<Regex>,
    /// Follow no URL that matches; repeatable
    #[arg(long, value_name = "REGEX", value_parser = parse_pattern)]
    exclude: Vec<Regex>,
    /// Follow at most N links from the URL [default: max_depth of [crawl]]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Importance relative to other sites: 2 counts double
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = parse_weight)]
    weight: f64,
    /// Time zone of the site's editors, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    timezone: Option<Arc<LocalClock>>,
    /// Holiday such as 2026-12-25, or a country such as DE; repeatable
    #[arg(long, value_name = "DATE", value_parser = parse_holiday)]
    holidays: Vec<Holiday>,
    /// Optimise for balanced, importance, every-page, coherent or count
    #[arg(long, value_name = "GOAL")]
    goal: Option<Goal>,
    /// Render with layout (no scripts), chromium, or auto (chromium for pages that need scripts)
    #[arg(long, value_name = "RENDERER", default_value_t)]
    renderer: PageRenderer,
    /// Allow a host with a private or loopback address
    #[arg(long)]
    allow_private: bool,
    /// Limit the visits of its pages, such as 100/1h [default: no limit]
    #[arg(long, value_name = "N/PERIOD", value_parser = parse_hourly)]
    budget: Option<Budget>,
    /// Limit the bytes fetched per day, such as 200MB [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bytes_per_day: Option<u64>,
    /// Visit each page at this interval, such as 15m
    #[arg(long, value_name = "TIME", value_parser = parse_every)]
    every: Option<Span>,
    /// With --every: only at these hours, such as 'Mon-Fri 08:00-18:00'
    #[arg(long, value_name = "HOURS", value_parser = parse_hours)]
    hours: Option<WeeklyHours>,
    /// Store all versions in full, or only important ones (a delta of the others)
    #[arg(long, value_name = "VERSIONS", default_value_t)]
    keep: VersionRetention,
    /// Treat changes in this part as most important; repeatable
    #[arg(long, value_name = "SELECTOR", value_parser = parse_selector)]
    pin: Vec<Selector>,
    /// Ignore changes in this part; repeatable
    #[arg(long, value_name = "SELECTOR", value_parser = parse_selector)]
    ignore: Vec<Selector>,
    /// Tag for grouping sites, such as news; repeatable
    #[arg(long, value_name = "TAG", value_parser = parse_tag)]
    tag: Vec<String>,
}

fn parse_hourly(text: &str) -> Result<Budget, UnitError> {
    parse_budget(text, Span::from_hours(1))
}

impl AddArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open_or_create()?;
        if let Some(file) = &self.from {
            let seeds = self.urls.iter().map(|url| self.seed(url)).collect();
            context.perform(&archive, &AdminAction::Follow(seeds))?;
            return follow_list(context, file, &|url| self.seed(url));
        }
        let seeds: Vec<Seed> = self.urls.iter().map(|url| self.seed(url)).collect();
        check_reach(context, &archive, &self.urls, self.allow_private);
        let n_sites = context.perform(&archive, &AdminAction::Follow(seeds.clone()))?.settings.seeds.len();
        context.print(&seeds, |out| {
            for seed in &seeds {
                writeln!(out, "added {} (scope {})", seed.scope.seed, seed.scope.kind)?;
            }
            let sites = if n_sites == 1 { "1 site is".to_owned() } else { format!("{n_sites} sites are") };
            writeln!(out, "{sites} followed; `perennial run` visits them")
        })?;
        note_conflicts(context)?;
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
            allowance: BudgetTable { visits: self.budget, bytes_per_day: self.bytes_per_day },
            times: VisitTimes { every: self.every, hours: self.hours.clone() },
            keep: self.keep,
            parts: PageParts::new(self.pinned(), self.ignore.clone()),
            feeds: Vec::new(),
            tags: self.tag.clone(),
        }
    }
}
