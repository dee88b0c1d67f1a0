//! `perennial demo`: a changing web that this machine serves -> an archive of it and a report of what was caught.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use perennial_core::schedule::units::{UnitError, parse_share};
use perennial_core::schedule::{Goal, Strategy};
use perennial_core::time::{Span, Timestamp};

use super::serve::serve_here;
use super::{Context, Exit, signals};
use crate::demo::{self, Caught, DemoOptions, DemoResult};
use perennial_archive::Archive;
use perennial_crawler::{CrawlStatus, StopHandle};

const AFTER_HELP: &str = "\
Examples:
  perennial demo
  perennial demo --days 7 --budget 5 --strategy fixed-interval
  perennial demo --goal importance
  perennial demo --json
  perennial demo --serve

The demonstration needs no network. If Chromium is installed, it archives one more site, whose pages are rendered by a script. \
The result is a normal archive:
  perennial --archive perennial-demo status";

/// Archive a changing web that this machine serves, and report what was caught.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct DemoArgs {
    /// Folder for the archive and the report; an interrupted demonstration continues there
    #[arg(long, value_name = "DIR", default_value = "perennial-demo")]
    dir: PathBuf,
    /// Length in virtual days
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = clap::value_parser!(u32).range(1..=365))]
    days: u32,
    /// Fetches per virtual hour, in percent of the pages
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = parse_percent)]
    budget: f64,
    /// Strategy of the crawl
    #[arg(long, value_name = "NAME", default_value_t = Strategy::ExpectedGain)]
    strategy: Strategy,
    /// Optimise for balanced, importance, every-page, coherent or count
    #[arg(long, value_name = "GOAL", default_value_t = Goal::default())]
    goal: Goal,
    /// Do not follow the feeds of the sites
    #[arg(long)]
    no_feeds: bool,
    /// Omit the site that needs a browser, even if Chromium is installed
    #[arg(long)]
    no_browser: bool,
    /// Change style sheets and pictures too, to measure the quality of replay
    #[arg(long)]
    changing_subresources: bool,
    /// Virtual seconds per real second [default: as fast as possible]
    #[arg(long, value_name = "FACTOR")]
    time_lapse: Option<f64>,
    /// Serve the dashboard at the end, until stopped [default: if run in a terminal]
    #[arg(long, conflicts_with = "no_serve")]
    serve: bool,
    /// Serve no dashboard
    #[arg(long)]
    no_serve: bool,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl DemoArgs {
    /// Runs the demonstration and writes its report.
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        anyhow::ensure!(self.budget > 0.0, "--budget 0: give percent above 0, such as 10");
        anyhow::ensure!(
            self.time_lapse.is_none_or(|factor| factor.is_finite() && factor >= 1.0),
            "--time-lapse: give a number from 1, such as 12000"
        );
        let options = DemoOptions {
            root: self.dir.clone(),
            seed: self.seed,
            days: self.days,
            budget: self.budget,
            factor: self.time_lapse,
            strategy: self.strategy,
            goal: self.goal,
            feeds: !self.no_feeds,
            browser: !self.no_browser,
            subresources_change: self.changing_subresources,
            stop: StopHandle::default(),
        };
        let listening = signals::listen(context, &options.stop, false);
        let bar = bar(self.days);
        let start = Timestamp::parse("2026-03-02")?;
        let shown = demo::demo(
            &options,
            |status, now| tell(&bar, status, now, start),
            |text| bar.suspend(|| context.note(text)),
        );
        bar.finish_and_clear();
        let (mut result, crawls) = shown?;
        result.report = self.dir.join("report.html");
        std::fs::write(&result.report, demo::html(&result, &crawls))?;
        context.print(&result, |out| print_summary(out, &result))?;
        let is_watched = std::io::stdin().is_terminal()
            && std::io::stdout().is_terminal()
            && std::io::stderr().is_terminal();
        // In a terminal the program ends with the dashboard; in a script or pipe it just ends.
        let is_wanted = self.serve || is_watched && !self.no_serve && !context.json;
        if is_wanted && !options.stop.is_requested() {
            // From here on a signal ends the dashboard, not a crawl.
            drop(listening);
            context.note("Ctrl-C ends the dashboard");
            serve_here(Archive::open(&result.archive)?)?;
        }
        Ok(Exit::Done)
    }
}

/// `10` and `10%` are the same here.
fn parse_percent(text: &str) -> Result<f64, UnitError> {
    parse_share(&format!("{}%", text.trim_end_matches('%')))
}

fn bar(days: u32) -> ProgressBar {
    let bar = ProgressBar::new(u64::from(days) * 24);
    bar.set_draw_target(match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    });
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {bar:30} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

fn tell(bar: &ProgressBar, status: &CrawlStatus, now: Timestamp, start: Timestamp) {
    let passed: Span = now - start;
    bar.set_position(passed.as_hours_f64().max(0.0) as u64);
    bar.set_message(format!(
        "virtual {now}: {} visits, {} pages known, {} analysed, {} waiting",
        status.n_pages, status.n_known, status.n_analysed, status.n_analysing
    ));
}

fn print_summary(out: &mut dyn std::io::Write, result: &DemoResult) -> std::io::Result<()> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    writeln!(
        out,
        "{} days of the living web archived with {} fetches by {}.\n",
        result.days, result.caught.fetches, result.strategy
    )?;
    writeln!(out, "Important changes caught: {} of {}.", result.important_caught, result.important_total)?;
    writeln!(
        out,
        "Fetches after the first week of pages that change by noise only: {}.\n",
        percent(result.caught.noise_share)
    )?;
    let row = |out: &mut dyn std::io::Write, name: &str, caught: &Caught| {
        writeln!(
            out,
            "{name:<30} {:>8} {:>10} {:>10} {:>10} {:>10}",
            caught.fetches,
            percent(caught.completeness_pooled),
            percent(caught.completeness_weighted),
            percent(caught.completeness_count),
            percent(caught.coherence_weighted)
        )
    };
    writeln!(
        out,
        "{:<30} {:>8} {:>10} {:>10} {:>10} {:>10}",
        "caught", "fetches", "pooled", "Def. 5.13", "versions", "coherence"
    )?;
    row(out, "this archive", &result.caught)?;
    let same = if result.feeds.is_some() { "without feeds, simulated" } else { "the same, simulated" };
    row(out, same, &result.simulated)?;
    row(out, "importance-pattern, simulated", &result.importance_pattern)?;
    row(out, "fixed interval, simulated", &result.fixed_interval)?;
    if let Some(feeds) = &result.feeds {
        writeln!(
            out,
            "\nFeeds: {} polls in addition to the visits, {} of them with new items; {} items published, {} lost.",
            feeds.polls, feeds.polls_with_news, feeds.items_published, feeds.items_lost
        )?;
    }
    let archive = result.archive.display();
    writeln!(
        out,
        "\nThe archive is {archive}. Open its dashboard with: perennial --archive {archive} serve"
    )?;
    writeln!(out, "The report:\n{}", result.report.display())
}
