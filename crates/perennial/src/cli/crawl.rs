//! `perennial crawl`: options -> a crawl, with progress while it runs and a summary at its end.

use std::io::IsTerminal;

use anyhow::bail;
use clap::Args;
use indicatif::{DecimalBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use perennial_core::amounts::{parse_budget, parse_bytes, parse_span};
use perennial_core::schedule::{Pacing, Strategy};
use perennial_core::time::{Span, Timestamp};

use super::{Context, Exit, parse_time, signals};
use crate::crawl::clock::Clock;
use crate::crawl::{CrawlOptions, End, Status, Stop, crawl};

const AFTER_HELP: &str = "\
Ctrl-C stops the crawl after the fetches in flight; a second Ctrl-C stops it at once. Either way the next crawl
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
    once: bool,
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
    /// Time between two visits of a page under the strategy fixed-interval [default: what the budget allows, else a day]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    interval: Option<Span>,
    /// End after this many visits of pages
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    time_limit: Option<Span>,
    /// End when the archive has grown by this much
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
        signals::listen(context, &options.stop);
        let progress = Progress::new();
        let status =
            crawl(&archive, options, |status| progress.show(status), |text| progress.warn(context, text));
        progress.bar.finish_and_clear();
        let status = status?;
        context.print(&status, |out| print_summary(out, &status))?;
        Ok(match status.end {
            Some(End::Interrupted) => Exit::Interrupted,
            Some(End::SizeLimit) => Exit::SizeLimit,
            Some(End::TimeLimit) => Exit::TimeLimit,
            Some(End::Done) | None => Exit::Done,
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
            strategy: self.strategy,
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
            stop: Stop::default(),
        })
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

    fn show(&self, status: &Status) {
        self.bar.tick();
        let wakeup = match (&status.next_wakeup, status.n_active) {
            (Some(at), 0) => format!(", next {at}"),
            _ => String::new(),
        };
        self.bar.set_message(format!(
            "{} due, {} in flight | {} fetched: {} changed, {} same, {} failed, {} gone | {} | {} hosts in trouble{wakeup}",
            status.n_waiting,
            status.n_active,
            status.n_fetched,
            status.n_changed,
            status.n_unchanged,
            status.n_failed,
            status.n_gone,
            DecimalBytes(status.body_bytes),
            status.errors_by_host.len(),
        ));
    }

    fn warn(&self, context: &Context, text: &str) {
        self.bar.suspend(|| context.note(text));
    }
}

fn print_summary(out: &mut dyn std::io::Write, status: &Status) -> std::io::Result<()> {
    writeln!(
        out,
        "{} visits of {} pages known: {} changed, {} unchanged, {} failed, {} gone",
        status.n_fetched,
        status.n_known,
        status.n_changed,
        status.n_unchanged,
        status.n_failed,
        status.n_gone
    )?;
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
    if status.n_given_up > 0 {
        writeln!(out, "{} pages given up because their hosts did not answer", status.n_given_up)?;
    }
    for (error, n_visits) in &status.errors {
        writeln!(out, "  {error}: {n_visits}")?;
    }
    if !status.errors.is_empty() {
        writeln!(
            out,
            "`perennial log --errors` names the hosts, `perennial log --outcome failed` the pages"
        )?;
    }
    Ok(())
}
