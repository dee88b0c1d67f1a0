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
Ctrl-C finishes what is in flight and stops; a second one stops at once. Either way the next crawl goes on
where this one ended.

Examples:
  perennial crawl --once                        everything in scope once
  perennial crawl --budget 1000/1h              for as long as it is let, 1000 visits an hour
  perennial crawl --once --limit 500 --size-limit 200MB
  perennial crawl --time-lapse 3600 --start 2026-01-01 --time-limit 14d   a virtual fortnight, loopback hosts only";

/// Visit the sites that are followed, and archive what is there.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Crawl {
    /// Capture everything in scope once, then end
    #[arg(long)]
    once: bool,
    /// Visits of pages that may be made: N, or N/period such as 1000/1h [default: as perennial.toml says]
    #[arg(long, value_name = "N/PERIOD")]
    budget: Option<String>,
    /// Bytes that may be fetched in a day, such as 2GB [default: as perennial.toml says]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    bytes_per_day: Option<u64>,
    /// Period of the budget, and how often pages are ranked anew
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_span)]
    period: Span,
    /// Which policy decides what to visit
    #[arg(long, value_name = "NAME", default_value_t = Strategy::ExpectedGain)]
    strategy: Strategy,
    /// Interval of the policy fixed-interval [default: what the budget allows, else a day]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    interval: Option<Span>,
    /// End after so many visits of pages
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    time_limit: Option<Span>,
    /// End when the archive grew by so much
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    size_limit: Option<u64>,
    /// Ask hosts with private and loopback addresses too
    #[arg(long)]
    allow_private: bool,
    /// Fixed delay after every fetch, instead of politeness; only for hosts you run
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    delay: Option<Span>,
    /// Connections to one host at a time; more than one only for hosts you run
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: u32,
    /// Run on a virtual clock, so many times as fast, or `max`: it leaps whenever there is nothing to do; loopback hosts
    /// only
    #[arg(long, value_name = "FACTOR")]
    time_lapse: Option<String>,
    /// Where the virtual clock starts [default: now]
    #[arg(long, value_name = "TIME", requires = "time_lapse", value_parser = parse_time)]
    start: Option<Timestamp>,
    /// Do not look at pages as a reader does: another payload is another page
    #[arg(long)]
    no_analysis: bool,
    /// Seed of all chance
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl Crawl {
    /// Crawls until it is done, stopped, or at a limit.
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
        let start = self.start.unwrap_or(Clock::Real.now());
        let clock = match self.time_lapse.as_deref() {
            None => Clock::Real,
            Some("max") => Clock::leaping(start),
            Some(text) => match text.parse::<f64>() {
                Ok(factor) if factor.is_finite() && factor > 0.0 => Clock::time_lapse(factor, start),
                _ => bail!("--time-lapse {text}: give a number above 0, such as 3600, or max"),
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

/// One line that changes, on a terminal only.
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
    if status.n_given_up > 0 {
        writeln!(out, "{} pages given up: their hosts did not answer", status.n_given_up)?;
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
