//! `perennial lab feeds`: statistics of feeds, compared with the numbers of P-FEED.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::context::{document_on_stdout, json_on_stdout};
use crate::cli::{Context, Exit};
use perennial_engine::learn::FollowedSites;
use perennial_lab::feeds::charts::feed_figures;
use perennial_lab::feeds::intervals::{IntervalSummary, quantile};
use perennial_lab::feeds::statistics::{CURVES, FeedStatistics, archive_statistics, file_statistics};

const AFTER_HELP: &str = "\
Examples:
  perennial lab feeds                        how feeds publish: quartiles of update intervals, items per feed
  perennial lab feeds --format svg > feeds.svg
  perennial lab feeds saved-feeds/ --json    the same over files, without an archive; folders are tags";

/// Show statistics of the archive's feeds, or of feeds in files.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Feeds {
    /// Files of feeds, folders of them, or traces of observed changes [default: the feeds of the archive]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = FeedsFormat::Text)]
    format: FeedsFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FeedsFormat {
    Text,
    Json,
    Svg,
}

impl Feeds {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let statistics = match self.paths.is_empty() {
            true => {
                let snapshot = context.snapshot()?;
                archive_statistics(
                    snapshot.store(),
                    &FollowedSites::load(snapshot.archive(), snapshot.store())?,
                )?
            }
            false => {
                let bar = context.progress_count(0, "files");
                let statistics = file_statistics(&self.paths, &|_| true, &|| bar.inc(1));
                bar.finish_and_clear();
                statistics?
            }
        };
        match (self.format, context.json) {
            (FeedsFormat::Svg, _) => {
                let curves = CURVES.map(|(label, of)| (label, statistics.curve(of)));
                let mut out = document_on_stdout();
                out.write_all(feed_figures(&statistics.histogram, &curves).as_bytes())?;
                out.flush()?;
            }
            (FeedsFormat::Json, _) | (_, true) => {
                let mut out = json_on_stdout();
                serde_json::to_writer_pretty(&mut out, &statistics)?;
                writeln!(out)?;
                out.flush()?;
            }
            (FeedsFormat::Text, false) => context.print(&(), |out| print_statistics(&statistics, out))?,
        }
        Ok(Exit::Done)
    }
}

fn print_statistics(statistics: &FeedStatistics, out: &mut dyn Write) -> io::Result<()> {
    let FeedStatistics { n_tried, n_active, n_empty, n_unreadable, .. } = statistics;
    writeln!(
        out,
        "Feeds tried {n_tried}: active {n_active}, without items {n_empty}, unreadable {n_unreadable} (the paper: 400, 340 active)"
    )?;
    let formats: Vec<String> = statistics.formats.iter().map(|(format, n)| format!("{format} {n}")).collect();
    writeln!(out, "Formats: {}", formats.join(", "))?;
    if let Some(mode) = statistics.mode {
        writeln!(
            out,
            "Items per feed: {:.0} % below 30 (the paper: 75 %), most often {mode} (the paper: 10)",
            statistics.below_30 * 100.0
        )?;
    }
    print_histogram(&statistics.histogram, out)?;
    let elements = statistics.elements;
    writeln!(
        out,
        "Elements of time, share of feeds: lastBuildDate {:.0} %, ttl {:.0} %, updateFrequency {:.0} %, pubDate {:.0} %, lastModified {:.0} %",
        elements.last_build_date * 100.0,
        elements.ttl * 100.0,
        elements.update_frequency * 100.0,
        elements.pub_date * 100.0,
        elements.last_modified * 100.0
    )?;
    writeln!(
        out,
        "Captures of feeds that share no item with the next one (items were lost): {}",
        statistics.n_gaps
    )?;
    print_intervals(statistics, out)?;
    writeln!(out, "\n{:<24} {:>6} {:>16} {:>18}", "tag", "feeds", "mean interval", "pooled deviation")?;
    for (tag, summary) in
        statistics.tags.iter().map(|(tag, summary)| (tag.as_str(), summary)).chain([("all", &statistics.all)])
    {
        print_summary(tag, summary, out)?;
    }
    Ok(())
}

fn print_histogram(histogram: &[usize], out: &mut dyn Write) -> io::Result<()> {
    let most = histogram.iter().copied().max().unwrap_or(0).max(1);
    for (bin, &n) in histogram.iter().enumerate().filter(|(_, n)| **n > 0) {
        let bar = "#".repeat((n * 40).div_ceil(most));
        writeln!(out, "  {:>5}-{:<5} {n:>6} {bar}", bin * 10, bin * 10 + 9)?;
    }
    Ok(())
}

fn print_intervals(statistics: &FeedStatistics, out: &mut dyn Write) -> io::Result<()> {
    let all = &statistics.all;
    writeln!(
        out,
        "\nUpdate intervals of {} feeds with two dated items or more, by quantiles over the feeds:",
        all.n_with_intervals
    )?;
    writeln!(out, "{:<14} {:>12} {:>12} {:>12} {:>12} {:>12}", "", "10 %", "25 %", "50 %", "75 %", "90 %")?;
    for (label, of) in CURVES {
        let values: Vec<f64> = statistics.curve(of).into_iter().map(|(value, _)| value).collect();
        let at = |share: f64| span_words(quantile(&values, share));
        writeln!(
            out,
            "{label:<14} {:>12} {:>12} {:>12} {:>12} {:>12}",
            at(0.1),
            at(0.25),
            at(0.5),
            at(0.75),
            at(0.9)
        )?;
    }
    let percent = |share: f64| share * 100.0;
    writeln!(
        out,
        "Median below an hour: {:.0} % of feeds (the paper: 20 %)",
        percent(all.median_below_hour)
    )?;
    writeln!(out, "Median of a day: {:.0} % (about 10 %)", percent(all.median_a_day))?;
    writeln!(out, "Median of a day or less: {:.0} % (60 %)", percent(all.median_within_day))?;
    writeln!(out, "Never longer than a day: {:.0} % (below 10 %)", percent(all.always_within_day))?;
    writeln!(out, "At least once within a day: {:.0} % (above 90 %)", percent(all.once_within_day))
}

fn print_summary(tag: &str, summary: &IntervalSummary, out: &mut dyn Write) -> io::Result<()> {
    let (mean, deviation) = match summary.n_with_intervals {
        0 => ("-".to_owned(), "-".to_owned()),
        _ => (span_words(summary.mean_interval), span_words(summary.pooled_deviation)),
    };
    writeln!(out, "{tag:<24} {:>6} {mean:>16} {deviation:>18}", summary.n_feeds)
}

/// Seconds in a suitable unit.
fn span_words(secs: f64) -> String {
    match secs {
        secs if secs < 90.0 => format!("{secs:.0} s"),
        secs if secs < 5_400.0 => format!("{:.0} min", secs / 60.0),
        secs if secs < 172_800.0 => format!("{:.1} h", secs / 3_600.0),
        secs => format!("{:.1} days", secs / 86_400.0),
    }
}
