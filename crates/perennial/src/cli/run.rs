//! `perennial run`: URLs -> an archive that follows them, crawled until stopped.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::mpsc::channel;

use anyhow::bail;
use clap::Args;
use perennial_core::schedule::units::{parse_budget, parse_bytes, parse_span};
use perennial_core::schedule::{Goal, Strategy};
use perennial_core::time::{Span, Timestamp};
use url::Url;

use super::progress::{Progress, print_summary};
use super::serve::serve_beside;
use super::{Context, Exit, parse_time, signals};
use perennial_archive::Archive;
use perennial_archive::settings::Seed;
use perennial_archive::settings::site::parse_url;
use perennial_archive::store::Outbox;
use perennial_crawler::clock::Clock;
use perennial_crawler::{CrawlEnd, CrawlOptions, CrawlStatus, crawl};
use perennial_engine::admin::AdminAction;
use perennial_engine::reach::{ReachTarget, check_names};
use perennial_server::AdminOptions;

const AFTER_HELP: &str = "\
Sites that are already followed keep their settings, which are in perennial.toml. Ctrl-C stops the crawl after the \
fetches in flight, a second Ctrl-C stops it at once; the next run continues. The crawl serves the dashboard to this \
machine, except with --once.

Examples:
  perennial run https://example.org/ --budget 100/1h
  perennial run                               crawl everything that is followed
  perennial run --once --limit 500            visit each page once, at most 500 pages
  perennial --archive news run https://example.org/ https://example.net/
  perennial run --help-all                    explain the other options: strategy, time-lapse, ...";

/// Follow URLs and crawl until stopped; without a URL crawl all that is followed.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RunArgs {
    /// Sites to follow from now on; https is the default scheme
    #[arg(value_name = "URL", value_parser = parse_url)]
    urls: Vec<Url>,
    /// Visit every page once, then end
    #[arg(long)]
    once: bool,
    /// Limit the visits of pages, such as 1000/1h or 5000/1d [default: budget in perennial.toml]
    #[arg(long, value_name = "N/PERIOD")]
    budget: Option<String>,
    /// Limit the bytes fetched per day, such as 2GB [default: bytes_per_day in perennial.toml]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bytes_per_day: Option<u64>,
    /// End after N visits of pages
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// End after this time, such as 8h
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    time_limit: Option<Span>,
    /// End at this time, such as 2026-12-24T06:00
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    deadline: Option<Timestamp>,
    /// End when the process that started this one ends
    #[arg(long)]
    with_parent: bool,
    /// End when the archive has grown by this much
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    size_limit: Option<u64>,
    /// Optimise for balanced, importance, every-page, coherent or count, on all sites [default: goals in perennial.toml]
    #[arg(long, value_name = "GOAL")]
    goal: Option<Goal>,
    /// Serve the dashboard here, on this machine [default: 127.0.0.1:8080, or any free port]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<SocketAddr>,
    /// Serve no dashboard
    #[arg(long, conflicts_with = "listen")]
    no_serve: bool,
    /// Allow fetches from private and loopback addresses
    #[arg(long)]
    allow_private: bool,
    /// Allow admin actions on the dashboard even if standard error is not a terminal
    #[arg(long, hide = true, conflicts_with = "no_serve")]
    admin: bool,
    /// Strategy that decides which page is visited next
    #[arg(long, hide = true, value_name = "NAME", default_value_t = Strategy::ExpectedGain)]
    strategy: Strategy,
    /// Save visits in quiet hours for busy ones, at the same mean [default: varying_budget in perennial.toml, else true for \
    /// budgets per day or longer]
    #[arg(long, hide = true, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    varying_budget: Option<bool>,
    /// Time between two visits of a page with --strategy fixed-interval [default: as the budget allows, else a day]
    #[arg(long, hide = true, value_name = "TIME", value_parser = parse_span)]
    interval: Option<Span>,
    /// Wait this long after every fetch, instead of the polite delay; only for hosts that you run
    #[arg(long, hide = true, value_name = "TIME", value_parser = parse_span)]
    delay: Option<Span>,
    /// Connections per host; more than 1 only for hosts that you run
    #[arg(long, hide = true, value_name = "N", default_value_t = 1)]
    connections: u32,
    /// Run on a virtual clock, this many times as fast as real time, or `max` for no waiting; loopback hosts only
    #[arg(long, hide = true, value_name = "FACTOR")]
    time_lapse: Option<String>,
    /// Start of the virtual clock [default: now]
    #[arg(long, hide = true, value_name = "TIME", requires = "time_lapse", value_parser = parse_time)]
    start: Option<Timestamp>,
    /// Do not compare rendered pages: every different payload is a change
    #[arg(long, hide = true)]
    no_analysis: bool,
    /// Seed of the random numbers
    #[arg(long, hide = true, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl RunArgs {
    /// Follows the sites and crawls until nothing is left, a signal arrives, or a limit is reached.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let mut options = self.options()?;
        if !self.urls.is_empty() {
            self.follow(context)?;
        }
        // Opened again, because `follow` has changed the settings.
        let archive = context.open()?;
        if !self.no_serve && (!self.once || self.listen.is_some()) {
            // The admin key is for the person at the terminal. It must not end up in a log.
            let is_admin = self.admin || std::io::stderr().is_terminal();
            serve_beside(archive.clone(), self.listen, is_admin.then(AdminOptions::default))?;
        }
        for url in &self.urls {
            // A lookup can take longer than anybody waits for the first line.
            let target = ReachTarget { url: url.clone(), allow_private: self.allow_private, every: None };
            check_names(&archive, &[target]).iter().for_each(|problem| context.note(problem));
        }
        let _listening = signals::listen(context, &options.stop, self.with_parent);
        let progress = Progress::new();
        let (sender, events) = channel();
        options.events = Some(sender);
        let show = |status: &CrawlStatus| {
            events.try_iter().for_each(|event| progress.tell(&event));
            progress.show(status);
        };
        let status = crawl(&archive, options, show, |text| progress.warn(context, text));
        // Notices are sent until the archive is closed.
        events.try_iter().for_each(|event| progress.tell(&event));
        progress.bar.finish_and_clear();
        let status = status?;
        context.print(&status, |out| print_summary(out, &status))?;
        note_pending(context, &archive);
        Ok(match status.end {
            Some(CrawlEnd::Interrupted) => Exit::Interrupted,
            Some(CrawlEnd::SizeLimit) => Exit::SizeLimit,
            Some(CrawlEnd::TimeLimit) => Exit::TimeLimit,
            Some(CrawlEnd::Done) if self.once && has_fetched_nothing(&status) => Exit::NotFetched,
            Some(CrawlEnd::Done | CrawlEnd::OtherSettings) | None => Exit::Done,
        })
    }

    fn follow(&self, context: &Context) -> anyhow::Result<()> {
        let archive = context.open_or_create()?;
        let seeds = &archive.settings().seeds;
        let changed = self.urls.iter().filter_map(|url| self.seed(url, seeds.with_url(url))).collect();
        context.perform(&archive, &AdminAction::Follow(changed))?;
        Ok(())
    }

    /// The settings to write for a site, if any. --allow-private is written too: a later run without it would otherwise refuse the site.
    fn seed(&self, url: &Url, known: Option<&Seed>) -> Option<Seed> {
        let allow_private = self.allow_private;
        match known {
            Some(seed) if allow_private && !seed.allow_private => {
                Some(Seed { allow_private, ..seed.clone() })
            }
            Some(_) => None,
            None => Some(Seed { allow_private, ..Seed::of_host(url.clone()) }),
        }
    }

    fn options(&self) -> anyhow::Result<CrawlOptions> {
        if self.interval.is_some() && self.strategy != Strategy::FixedInterval {
            bail!(
                "--interval needs --strategy fixed-interval; to visit pages of a site at an interval, use `perennial set SITE --every TIME`"
            );
        }
        let start = self.start.unwrap_or(Clock::real().now());
        let clock = match self.time_lapse.as_deref() {
            None => Clock::real(),
            Some("max") => Clock::leaping(start),
            Some(text) => match text.parse::<f64>() {
                Ok(factor) if factor.is_finite() && factor > 0.0 => Clock::time_lapse(factor, start),
                _ => bail!("--time-lapse {text}: write a number above 0, such as 3600, or max"),
            },
        };
        let left = self.deadline.map(|deadline| (deadline - clock.now()).max(Span::ZERO));
        let time_limit = self.time_limit.into_iter().chain(left).min();
        Ok(CrawlOptions {
            once: self.once,
            strategy: self.strategy,
            goal: self.goal,
            varying_budget: self.varying_budget,
            budget: self.budget.as_deref().map(|text| parse_budget(text, Span::from_hours(1))).transpose()?,
            bytes_per_day: self.bytes_per_day,
            interval: self.interval,
            limit: self.limit,
            time_limit,
            size_limit: self.size_limit,
            delay: self.delay,
            connections: self.connections,
            allow_private: self.allow_private,
            clock,
            seed: self.seed,
            analyse: !self.no_analysis,
            ..CrawlOptions::default()
        })
    }
}

/// Whether pages were visited and none was captured: no host responded, or all refused.
fn has_fetched_nothing(status: &CrawlStatus) -> bool {
    let pages = &status.pages;
    pages.n_visits > 0 && pages.n_failed + pages.n_refused + pages.n_missing == pages.n_visits
}

/// Reports notices that receivers have not acknowledged. An unreadable outbox was reported when the crawl began.
fn note_pending(context: &Context, archive: &Archive) {
    if archive.settings().notify.is_empty() {
        return;
    }
    let Ok(Some(Ok(states))) =
        Outbox::open_read(&archive.outbox_path()).map(|outbox| outbox.map(|outbox| outbox.states()))
    else {
        return;
    };
    let n_waiting: u64 = states.iter().map(|state| state.n_waiting).sum();
    if n_waiting > 0 {
        context.note(format_args!(
            "{n_waiting} notices are pending: `perennial notify list` shows why; the next run or `perennial notify send` sends them"
        ));
    }
}
