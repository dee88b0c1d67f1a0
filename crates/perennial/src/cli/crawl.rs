//! `perennial crawl`: options -> a crawl, with progress while it runs and a summary at its end.

use std::io::IsTerminal;

use anyhow::bail;
use clap::Args;
use indicatif::{DecimalBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use perennial_core::schedule::amounts::{parse_budget, parse_bytes, parse_span};
use perennial_core::schedule::{Goal, Pacing, Strategy};
use perennial_core::text::untrusted::{shorten, terminal_safe};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::canonical::without_scheme;

use super::analyse::print_lost_words;
use super::{Context, Exit, parse_time, signals};
use perennial_archive::Archive;
use perennial_archive::store::Outbox;
use perennial_crawler::clock::Clock;
use perennial_crawler::{CrawlEnd, CrawlOptions, CrawlStatus, ExpectedVisit, StopHandle, VisitCounts, crawl};

const AFTER_HELP: &str = "\
Ctrl-C stops the crawl after the fetches in flight; a second Ctrl-C stops it at once. Either way the next crawl \
continues where this one ended. perennial.toml holds the sites, the politeness and the limits.

Examples:
  perennial crawl --once                        visit every page once, then end
  perennial crawl --budget 1000/1h              run until stopped, with 1000 visits an hour
  perennial crawl --once --limit 500 --size-limit 200MB
  perennial crawl --time-lapse 3600 --start 2026-01-01 --time-limit 14d   two virtual weeks, loopback hosts only";

/// Visit the sites that are followed, and archive what is there.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Crawl {
    /// Visit every page once, then end
    #[arg(long)]
    pub(super) once: bool,
    /// Visits of pages in a period, at most: 1000/1h, or 1000 for one --period [default: budget of perennial.toml]
    #[arg(long, value_name = "N/PERIOD")]
    budget: Option<String>,
    /// Bytes fetched in a day, at most, such as 2GB [default: bytes_per_day of perennial.toml]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bytes_per_day: Option<u64>,
    /// Period of a budget that names none; pages are ranked once in each period
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_span)]
    period: Span,
    /// Strategy that decides which page is visited next
    #[arg(long, value_name = "NAME", default_value_t = Strategy::ExpectedGain)]
    strategy: Strategy,
    /// What the visits serve: balanced, importance, every-page, coherent or count; replaces all goals of perennial.toml
    /// [default: goal of perennial.toml]
    #[arg(long, value_name = "GOAL")]
    goal: Option<Goal>,
    /// Whether quiet hours save visits for busy ones; the mean stays the same [default: varying_budget of perennial.toml, else
    /// where the budget is given for a day or longer]
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    varying_budget: Option<bool>,
    /// Time between two visits of a page under the strategy fixed-interval [default: what the budget allows, else a day]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    interval: Option<Span>,
    /// CrawlEnd after this many visits of pages
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// CrawlEnd after this time
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    time_limit: Option<Span>,
    /// CrawlEnd when the archive has grown by this much
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    size_limit: Option<u64>,
    /// Allow fetches from private and loopback addresses
    #[arg(long)]
    pub(super) allow_private: bool,
    /// Fixed delay after every fetch instead of politeness; only for hosts you run
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    delay: Option<Span>,
    /// Connections to one host at the same time; more than 1 only for hosts you run
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: u32,
    /// Run on a virtual clock, this many times as fast as real time; `max` jumps from event to event; loopback hosts
    /// only
    #[arg(long, value_name = "FACTOR")]
    time_lapse: Option<String>,
    /// Where the virtual clock starts [default: now]
    #[arg(long, value_name = "TIME", requires = "time_lapse", value_parser = parse_time)]
    start: Option<Timestamp>,
    /// Do not compare rendered pages: any other payload counts as a change
    #[arg(long)]
    no_analysis: bool,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl Crawl {
    /// Crawls until nothing is left, a signal arrives, or a limit is reached.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let options = self.options()?;
        let _listening = signals::listen(context, &options.stop);
        let progress = Progress::new();
        let status =
            crawl(&archive, options, |status| progress.show(status), |text| progress.warn(context, text));
        progress.bar.finish_and_clear();
        let status = status?;
        context.print(&status, |out| print_summary(out, &status))?;
        note_waiting(context, &archive);
        Ok(match status.end {
            Some(CrawlEnd::Interrupted) => Exit::Interrupted,
            Some(CrawlEnd::SizeLimit) => Exit::SizeLimit,
            Some(CrawlEnd::TimeLimit) => Exit::TimeLimit,
            Some(CrawlEnd::Done | CrawlEnd::OtherSettings) | None => Exit::Done,
        })
    }

    fn options(&self) -> anyhow::Result<CrawlOptions> {
        if self.period <= Span::ZERO {
            bail!("--period 0: write a time above 0, such as 1h");
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
        Ok(CrawlOptions {
            once: self.once,
            feeds_only: false,
            strategy: self.strategy,
            goal: self.goal,
            varying_budget: self.varying_budget,
            budget: self.budget.as_deref().map(|text| parse_budget(text, self.period)).transpose()?,
            bytes_per_day: self.bytes_per_day,
            slot: self.period,
            pacing: Pacing::Spread,
            interval: self.interval,
            limit: self.limit,
            time_limit: self.time_limit,
            size_limit: self.size_limit,
            delay: self.delay,
            connections: self.connections,
            allow_private: self.allow_private,
            clock,
            seed: self.seed,
            analyse: !self.no_analysis,
            stop: StopHandle::default(),
        })
    }
}

/// Says what receivers have not taken. An outbox that cannot be read was told of when the crawl began.
fn note_waiting(context: &Context, archive: &Archive) {
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
            "{n_waiting} notices were not taken yet: `perennial notify list` says why; the next crawl or `perennial notify run` sends them"
        ));
    }
}

/// The progress line on standard error; hidden where that is no terminal.
struct Progress {
    bar: ProgressBar,
}

impl Progress {
    fn new() -> Progress {
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        });
        if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {wide_msg}") {
            bar.set_style(style);
        }
        Progress { bar }
    }

    fn show(&self, status: &CrawlStatus) {
        self.bar.tick();
        let width = terminal_width().saturating_sub(PREFIX_WIDTH);
        self.bar.set_message(progress_line(status, Clock::real().now(), width));
    }

    fn warn(&self, context: &Context, text: &str) {
        self.bar.suspend(|| context.note(text));
    }
}

/// Columns of spinner and elapsed time before the message.
const PREFIX_WIDTH: usize = 12;

/// Columns of the terminal on standard error; 80 where it does not say.
fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0).unwrap_or(80)
}

/// Where a crawl stands, in one line of at most `width` columns: the parts that matter less are left out first.
fn progress_line(status: &CrawlStatus, now: Timestamp, width: usize) -> String {
    let VisitCounts { n_visits, n_changed, n_unchanged, n_failed, n_gone, n_redirected } = status.pages;
    let doing = match &status.awaited {
        Some(awaited) => idle_words(awaited, now),
        None => format!("{} due, {} in flight", status.n_waiting, status.n_active),
    };
    let pages = format!("{n_visits} pages, {} requisites", status.requisites.n_visits);
    let mut ended = format!("{n_changed} changed, {n_unchanged} same, {n_failed} failed, {n_gone} gone");
    if n_redirected > 0 {
        ended.push_str(&format!(", {n_redirected} moved"));
    }
    let bytes = DecimalBytes(status.body_bytes).to_string();
    let mut parts = vec![doing, pages, ended, bytes];
    match status.errors_by_host.len() {
        0 => {}
        1 => parts.push("1 host in trouble".to_owned()),
        n => parts.push(format!("{n} hosts in trouble")),
    }
    let length = |parts: &[String]| parts.join(" | ").chars().count();
    while parts.len() > 1 && length(&parts) > width {
        parts.pop();
    }
    shorten(&parts.join(" | "), width).into_owned()
}

/// As in "idle, next visit at 14:05 UTC (example.org/news, usually updates 14-15h on workdays)".
fn idle_words(awaited: &ExpectedVisit, now: Timestamp) -> String {
    let text = awaited.at.to_rfc3339();
    let (day, time) = (text.get(..10).unwrap_or_default(), text.get(11..16).unwrap_or_default());
    let is_today = now.to_rfc3339().starts_with(day);
    let at = if is_today { format!("{time} UTC") } else { format!("{day} {time} UTC") };
    let place = shorten(without_scheme(&awaited.url), MOST_ADDRESS);
    let habit = awaited.habit.as_ref().map(|habit| format!(", usually updates {habit}")).unwrap_or_default();
    terminal_safe(&format!("idle, next visit at {at} ({place}{habit})")).into_owned()
}

/// Columns of an address in the progress line.
const MOST_ADDRESS: usize = 60;

pub(super) fn print_summary(out: &mut dyn std::io::Write, status: &CrawlStatus) -> std::io::Result<()> {
    let words = |endings: &VisitCounts| {
        let VisitCounts { n_changed, n_unchanged, n_failed, n_gone, n_redirected, .. } = endings;
        format!(
            "{n_changed} changed, {n_unchanged} unchanged, {n_failed} failed, {n_gone} gone, {n_redirected} led elsewhere"
        )
    };
    writeln!(
        out,
        "{} visits of pages, {} known: {}",
        status.pages.n_visits,
        status.n_known,
        words(&status.pages)
    )?;
    if status.feeds.n_visits > 0 {
        writeln!(
            out,
            "{} polls of feeds: {}; {} new items",
            status.feeds.n_visits,
            words(&status.feeds),
            status.n_items
        )?;
    }
    if status.requisites.n_visits > 0 {
        writeln!(
            out,
            "{} of requisites and sitemaps: {}",
            status.requisites.n_visits,
            words(&status.requisites)
        )?;
    }
    writeln!(
        out,
        "{} received, {} stored",
        DecimalBytes(status.body_bytes),
        DecimalBytes(status.stored_bytes)
    )?;
    if status.n_unread > 0 {
        writeln!(
            out,
            "{} documents archived but read in part only: see `unread` in crawl.log",
            status.n_unread
        )?;
    }
    print_lost_words(out, status.n_lost_words)?;
    if status.n_given_up > 0 {
        writeln!(out, "{} pages given up because their hosts did not answer", status.n_given_up)?;
    }
    for (error, n_visits) in &status.errors {
        writeln!(out, "  {error}: {n_visits}")?;
    }
    print_hints(out, status)
}

/// Names the commands that show more, each only where it finds something.
fn print_hints(out: &mut dyn std::io::Write, status: &CrawlStatus) -> std::io::Result<()> {
    let since = status.began.as_ref().map(|began| format!(" --since {began}")).unwrap_or_default();
    let hints = [
        (!status.errors.is_empty(), "--errors", "names the hosts with errors"),
        (status.n_failed > 0, "--outcome failed", "the visits that failed"),
        (status.n_gone > 0, "--outcome gone", "those that found nothing"),
    ];
    let hints: Vec<String> = hints
        .into_iter()
        .filter(|(is_there, ..)| *is_there)
        .map(|(_, option, what)| format!("`perennial log {option}{since}` {what}"))
        .collect();
    match hints.is_empty() {
        true => Ok(()),
        false => writeln!(out, "{}", hints.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_crawl_without_work_says_what_it_waits_for() {
        let habit = Some("14-15h on workdays".to_owned());
        let url = "https://example.org/news".to_owned();
        let awaited = ExpectedVisit { at: at("2026-11-17T14:05:00Z"), url, habit };
        let status = CrawlStatus { awaited: Some(awaited), ..CrawlStatus::default() };
        let line = progress_line(&status, at("2026-11-17T13:20:00Z"), 200);
        assert!(
            line.starts_with(
                "idle, next visit at 14:05 UTC (example.org/news, usually updates 14-15h on workdays) | "
            ),
            "{line}"
        );
        let line = progress_line(&status, at("2026-11-16T13:20:00Z"), 200);
        assert!(line.starts_with("idle, next visit at 2026-11-17 14:05 UTC ("), "{line}");
    }

    #[test]
    fn the_progress_line_fits_every_terminal() {
        let pages = VisitCounts {
            n_visits: 1_234_567,
            n_changed: 1_000_000,
            n_redirected: 3,
            ..VisitCounts::default()
        };
        let status = CrawlStatus { pages, n_waiting: 77, body_bytes: 1 << 40, ..CrawlStatus::default() };
        for width in 0..200 {
            let line = progress_line(&status, at("2026-11-17"), width);
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert_eq!(progress_line(&status, at("2026-11-17"), 22), "77 due, 0 in flight");
        let whole = progress_line(&status, at("2026-11-17"), 200);
        assert!(whole.contains("1234567 pages, 0 requisites") && whole.contains("3 moved"), "{whole}");
    }
}
