//! `perennial feeds`: feeds that are followed, how they publish, where they are found.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use perennial_core::feed::polling::PollLimits;
use perennial_core::time::Span;
use serde::Serialize;
use url::Url;

use super::context::{document_on_stdout, json_on_stdout};
use super::crawl::print_summary;
use super::{Context, Exit, signals};
use perennial_archive::settings::site::parse_address;
use perennial_archive::settings::{CrawlTable, Seed};
use perennial_archive::store::KnownFeed;
use perennial_crawler::CrawlOptions;
use perennial_engine::feeds::discover::{FoundFeed, discover};
use perennial_engine::feeds::subscriptions::read_list;
use perennial_engine::learn::{self, Followed};
use perennial_engine::operate::Act;
use perennial_fetch::Client;
use perennial_lab::feeds::charts::figures;
use perennial_lab::feeds::intervals::{Intervals, Summary, quantile};
use perennial_lab::feeds::statistics::{FeedStatistics, of_archive, of_files};

const AFTER_HELP: &str = "\
A crawl follows the feeds that pages name, and polls each by its own publishing pattern; docs/feeds.md explains how.

Examples:
  perennial feeds                                   the feeds of this archive
  perennial feeds discover https://example.org/     which feeds a page has
  perennial feeds import subscriptions.opml         follow the feeds of a list, its folders as tags
  perennial feeds poll                              poll every feed once, and fetch nothing else
  perennial feeds stats                             how feeds publish: quartiles of update intervals, items per feed
  perennial feeds stats --format svg > feeds.svg
  perennial feeds stats saved-feeds/ --json         the same over files, without an archive";

/// Show feeds and how they publish; find, import and poll them.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Feeds {
    #[command(subcommand)]
    command: Option<FeedCommand>,
}

#[derive(Subcommand)]
enum FeedCommand {
    /// Show the feeds that were read: format, items, pattern, what was lost
    List,
    /// Show statistics over feeds of this archive, or over files
    Stats(Stats),
    /// Find the feeds of a page
    Discover(Discover),
    /// Poll every feed that is followed once, and fetch nothing else
    Poll(Poll),
    /// Follow the feeds of a list: OPML, or an address a line
    Import {
        /// The list
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Allow hosts with private or loopback addresses
        #[arg(long)]
        allow_private: bool,
    },
}

#[derive(Args)]
struct Stats {
    /// Files of feeds, folders of them, or traces of observed changes [default: the feeds of the archive]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = StatsFormat::Text)]
    format: StatsFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StatsFormat {
    Text,
    Json,
    Svg,
}

#[derive(Args)]
struct Discover {
    /// A page or a feed; https is assumed when no scheme is given
    #[arg(value_name = "URL", value_parser = parse_address)]
    url: Url,
    /// Allow the host to have a private or loopback address
    #[arg(long)]
    allow_private: bool,
}

#[derive(Args)]
struct Poll {
    /// A fixed delay after every fetch instead of politeness, such as 0 on your own machine
    #[arg(long, value_name = "TIME", value_parser = perennial_core::schedule::amounts::parse_span)]
    delay: Option<Span>,
    /// Allow hosts with private or loopback addresses
    #[arg(long)]
    allow_private: bool,
}

impl Feeds {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            None | Some(FeedCommand::List) => list(context),
            Some(FeedCommand::Stats(stats)) => stats.run(context),
            Some(FeedCommand::Discover(discover)) => discover.run(context),
            Some(FeedCommand::Poll(poll)) => poll.run(context),
            Some(FeedCommand::Import { file, allow_private }) => {
                let like = |url: &Url| Seed { allow_private, ..Seed::of_host(url.clone()) };
                follow_list(context, &file, &like)
            }
        }
    }
}

/// Follows the sites of a list, for `feeds import` and `add --from`.
pub(super) fn follow_list(
    context: &Context,
    file: &std::path::Path,
    like: &dyn Fn(&Url) -> Seed,
) -> anyhow::Result<Exit> {
    let archive = context.open()?;
    let listed = read_list(file, like)?;
    let done = context.perform(&archive, &Act::Follow(listed.seeds.clone()))?;
    let n_sites = done.settings.seeds.len();
    for reason in listed.refused.iter().take(5) {
        context.note(reason);
    }
    if !listed.refused.is_empty() {
        context.note(format!(
            "{} entries of the list were left out, because they are no addresses",
            listed.refused.len()
        ));
    }
    context.print(&listed.seeds, |out| {
        for seed in &listed.seeds {
            let tags =
                if seed.tags.is_empty() { String::new() } else { format!(" [{}]", seed.tags.join(", ")) };
            writeln!(out, "added {} (feeds: {}){tags}", seed.scope.seed, seed.feeds.len())?;
        }
        writeln!(out, "sites that are followed: {n_sites}; `perennial crawl` visits them")
    })?;
    Ok(Exit::Done)
}

/// A feed, as it is listed.
#[derive(Serialize)]
struct FeedLine {
    url: String,
    title: String,
    format: String,
    channel: Option<String>,
    is_followed: bool,
    items_held: u64,
    items_seen: u64,
    items_per_day: Option<f64>,
    busiest_hour_utc: Option<u8>,
    captures: u64,
    reads_without_overlap: u64,
    last_change: String,
    last_poll: Option<String>,
    next_poll: Option<String>,
}

fn list(context: &Context) -> anyhow::Result<Exit> {
    let snapshot = context.snapshot()?;
    let (store, now) = (snapshot.store(), perennial_archive::now());
    let mut lines = Vec::new();
    for feed in store.feeds()? {
        lines.push(line_of(&feed, &learn::publishing(store, &feed)?, now));
    }
    context.print(&lines, |out| print_list(&lines, out))?;
    if lines.is_empty() {
        context.note("no feed was read yet: `perennial crawl` follows those that pages name, `perennial feeds import` takes a list");
    }
    Ok(Exit::Done)
}

fn line_of(
    feed: &KnownFeed,
    publishing: &perennial_core::feed::polling::Publishing,
    now: perennial_core::time::Timestamp,
) -> FeedLine {
    let last = feed.visited.unwrap_or(feed.last_read);
    FeedLine {
        url: feed.url.clone(),
        title: feed.title.clone(),
        format: feed.format.clone(),
        channel: feed.channel.clone(),
        is_followed: feed.seed.is_some(),
        items_held: feed.n_held,
        items_seen: feed.n_items,
        items_per_day: publishing.items_per_hour(now.max(last)).map(|rate| rate * 24.0),
        busiest_hour_utc: publishing.busiest_hour(),
        captures: feed.n_reads,
        reads_without_overlap: feed.n_gaps,
        last_change: feed.last_read.to_rfc3339(),
        last_poll: feed.visited.map(|visited| visited.to_rfc3339()),
        next_poll: feed.seed.map(|_| publishing.next_poll(last, &PollLimits::default()).to_rfc3339()),
    }
}

fn print_list(lines: &[FeedLine], out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        writeln!(out, "{}", line.url)?;
        let rate = line
            .items_per_day
            .map_or("too few dates for a rate".to_owned(), |rate| format!("{rate:.1} a day"));
        let hour = line.busiest_hour_utc.map(|hour| format!(", mostly at {hour}h UTC")).unwrap_or_default();
        writeln!(
            out,
            "    {} \"{}\": holds {} items, {} seen, {rate}{hour}",
            line.format, line.title, line.items_held, line.items_seen
        )?;
        let next = match &line.next_poll {
            Some(next) => format!("next poll {next}"),
            None => "not followed".to_owned(),
        };
        writeln!(out, "    last change {}, {next}", line.last_change)?;
        if line.reads_without_overlap > 0 {
            writeln!(
                out,
                "    items were lost: {} times nothing of one capture was left at the next",
                line.reads_without_overlap
            )?;
        }
    }
    Ok(())
}

impl Stats {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let statistics = match self.paths.is_empty() {
            true => {
                let snapshot = context.snapshot()?;
                of_archive(snapshot.store(), &Followed::of(snapshot.archive(), snapshot.store())?)?
            }
            false => {
                let bar = context.progress_count(0, "files");
                let statistics = of_files(&self.paths, &|| bar.inc(1));
                bar.finish_and_clear();
                statistics?
            }
        };
        match (self.format, context.json) {
            (StatsFormat::Svg, _) => {
                let curves = CURVES.map(|(label, of)| (label, statistics.curve(of)));
                let mut out = document_on_stdout();
                out.write_all(figures(&statistics.histogram, &curves).as_bytes())?;
                out.flush()?;
            }
            (StatsFormat::Json, _) | (_, true) => {
                let mut out = json_on_stdout();
                serde_json::to_writer_pretty(&mut out, &statistics)?;
                writeln!(out)?;
                out.flush()?;
            }
            (StatsFormat::Text, false) => context.print(&(), |out| print_statistics(&statistics, out))?,
        }
        Ok(Exit::Done)
    }
}

/// A number of a feed.
type OfIntervals = fn(&Intervals) -> f64;

/// The curves of Figure 2.
const CURVES: [(&str, OfIntervals); 5] = [
    ("min", |intervals| intervals.min),
    ("1st quartile", |intervals| intervals.quartile_1),
    ("median", |intervals| intervals.median),
    ("3rd quartile", |intervals| intervals.quartile_3),
    ("max", |intervals| intervals.max),
];

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
        "Captures of feeds of which nothing was left at the next one (items were lost): {}",
        statistics.n_gaps
    )?;
    print_intervals(statistics, out)?;
    writeln!(out, "\n{:<24} {:>6} {:>16} {:>18}", "tag", "feeds", "mean interval", "pooled deviation")?;
    for (tag, summary) in
        statistics.tags.iter().map(|(tag, summary)| (tag.as_str(), summary)).chain([("all", &statistics.all)])
    {
        print_summary_of(tag, summary, out)?;
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

fn print_summary_of(tag: &str, summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let (mean, deviation) = match summary.n_with_intervals {
        0 => ("-".to_owned(), "-".to_owned()),
        _ => (span_words(summary.mean_interval), span_words(summary.pooled_deviation)),
    };
    writeln!(out, "{tag:<24} {:>6} {mean:>16} {deviation:>18}", summary.n_feeds)
}

/// Seconds, as people say them.
fn span_words(secs: f64) -> String {
    match secs {
        secs if secs < 90.0 => format!("{secs:.0} s"),
        secs if secs < 5_400.0 => format!("{:.0} min", secs / 60.0),
        secs if secs < 172_800.0 => format!("{:.1} h", secs / 3_600.0),
        secs => format!("{:.1} days", secs / 86_400.0),
    }
}

impl Discover {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        // Without an archive the defaults hold.
        let table = context
            .open()
            .map(|archive| archive.settings().crawl.clone())
            .unwrap_or_else(|_| CrawlTable::default());
        let client = Client::new(table.user_agent(), table.limits.clone(), table.proxy.clone());
        let pause = match perennial_crawler::visit::is_loopback(&self.url) {
            true => Duration::ZERO,
            false => {
                Duration::from_millis(u64::try_from(table.politeness.min_delay.as_millis()).unwrap_or(0))
            }
        };
        let bar = context.progress_count(0, "addresses");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let found = runtime.block_on(discover(&client, &self.url, self.allow_private, pause, |_| bar.inc(1)));
        bar.finish_and_clear();
        let found = found?;
        context.print(&found, |out| found.iter().try_for_each(|feed| print_found(feed, out)))?;
        if found.is_empty() {
            context.note(format!("{} names no feed, and none lies where feeds usually do", self.url));
        }
        Ok(Exit::Done)
    }
}

fn print_found(feed: &FoundFeed, out: &mut dyn Write) -> io::Result<()> {
    let newest = feed.newest.as_deref().map(|time| format!(", newest {time}")).unwrap_or_default();
    writeln!(out, "{}", feed.url)?;
    writeln!(out, "    {} \"{}\", {} items{newest}, {}", feed.format, feed.title, feed.n_items, feed.found)
}

impl Poll {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let options = CrawlOptions {
            once: true,
            feeds_only: true,
            delay: self.delay,
            allow_private: self.allow_private,
            analyse: false,
            ..CrawlOptions::default()
        };
        let _listening = signals::listen(context, &options.stop);
        let bar = context.progress_count(0, "polls");
        let status = perennial_crawler::crawl(
            &archive,
            options,
            |status| bar.set_position(status.feeds.n_visits),
            |text| bar.suspend(|| context.note(text)),
        );
        bar.finish_and_clear();
        let status = status?;
        context.print(&status, |out| print_summary(out, &status))?;
        match status.end {
            Some(perennial_crawler::End::Interrupted) => Ok(Exit::Interrupted),
            _ => Ok(Exit::Done),
        }
    }
}
