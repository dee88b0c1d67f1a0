//! `perennial feed`: the followed feeds and their publishing patterns; finding, importing and polling feeds.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use perennial_core::feed::polling::PollLimits;
use perennial_core::time::Span;
use serde::Serialize;
use url::Url;

use super::progress::print_summary;
use super::{Context, Exit, signals};
use perennial_archive::settings::site::parse_url;
use perennial_archive::settings::{CrawlTable, Seed};
use perennial_archive::store::StoredFeed;
use perennial_crawler::CrawlOptions;
use perennial_engine::admin::AdminAction;
use perennial_engine::feeds::discover::{DiscoveredFeed, discover};
use perennial_engine::feeds::subscriptions::read_list;
use perennial_engine::learn;
use perennial_fetch::Client;

const AFTER_HELP: &str = "\
A crawl finds the feeds that pages link to, and polls each at the hours at which it publishes (docs/feeds.md).

Examples:
  perennial feed list
  perennial feed find https://example.org/
  perennial feed import subscriptions.opml    follow the feeds of a list, with its folders as tags
  perennial feed poll";

/// List, find, import and poll feeds.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct FeedArgs {
    #[command(subcommand)]
    command: FeedCommand,
}

#[derive(Subcommand)]
enum FeedCommand {
    /// List the feeds with their format, items and publishing pattern
    #[command(after_help = AFTER_HELP)]
    List,
    /// Find the feeds of a page
    Find(FindFeedsArgs),
    /// Poll every followed feed once, and fetch nothing else
    Poll(PollFeedsArgs),
    /// Follow the feeds of a list: OPML, or one URL per line
    #[command(after_help = AFTER_HELP)]
    Import {
        /// File with the list
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Allow hosts with private or loopback addresses
        #[arg(long)]
        allow_private: bool,
    },
}

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
struct FindFeedsArgs {
    /// A page or a feed; https is the default scheme
    #[arg(value_name = "URL", value_parser = parse_url)]
    url: Url,
    /// Allow the host to have a private or loopback address
    #[arg(long)]
    allow_private: bool,
}

#[derive(Args)]
#[command(after_help = AFTER_HELP)]
struct PollFeedsArgs {
    /// Wait this long after every fetch, instead of the polite delay; only for hosts that you run
    #[arg(long, value_name = "TIME", value_parser = perennial_core::schedule::units::parse_span)]
    delay: Option<Span>,
    /// Allow hosts with private or loopback addresses
    #[arg(long)]
    allow_private: bool,
}

impl FeedArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.command {
            FeedCommand::List => list(context),
            FeedCommand::Find(find) => find.run(context),
            FeedCommand::Poll(poll) => poll.run(context),
            FeedCommand::Import { file, allow_private } => {
                let like = |url: &Url| Seed { allow_private, ..Seed::of_host(url.clone()) };
                follow_list(context, &file, &like)
            }
        }
    }
}

/// Follows the sites of a list.
pub(super) fn follow_list(
    context: &Context,
    file: &std::path::Path,
    like: &dyn Fn(&Url) -> Seed,
) -> anyhow::Result<Exit> {
    let archive = context.open()?;
    let listed = read_list(file, like)?;
    let done = context.perform(&archive, &AdminAction::Follow(listed.seeds.clone()))?;
    let n_sites = done.settings.seeds.len();
    for reason in listed.refused.iter().take(5) {
        context.note(reason);
    }
    if !listed.refused.is_empty() {
        context.note(format!(
            "{} entries of the list were omitted because they are not URLs",
            listed.refused.len()
        ));
    }
    context.print(&listed.seeds, |out| {
        for seed in &listed.seeds {
            let tags =
                if seed.tags.is_empty() { String::new() } else { format!(" [{}]", seed.tags.join(", ")) };
            writeln!(out, "added {} (feeds: {}){tags}", seed.scope.seed, seed.feeds.len())?;
        }
        writeln!(out, "{n_sites} sites are followed; `perennial run` visits them")
    })?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct FeedStatus {
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
    let store = snapshot.store();
    let mut lines = Vec::new();
    for feed in store.feeds()? {
        lines.push(feed_row(&feed, &learn::publishing(store, &feed)?));
    }
    context.print(&lines, |out| print_list(&lines, out))?;
    if lines.is_empty() {
        context.note("no feed has been read; `perennial run` finds those that pages link to, `perennial feed import` reads a list");
    }
    Ok(Exit::Done)
}

fn feed_row(feed: &StoredFeed, publishing: &perennial_core::feed::polling::PublishingHistory) -> FeedStatus {
    let last = feed.visited.unwrap_or(feed.last_read);
    FeedStatus {
        url: feed.url.clone(),
        title: feed.title.clone(),
        format: feed.format.clone(),
        channel: feed.channel.clone(),
        is_followed: feed.seed.is_some(),
        items_held: feed.n_held,
        items_seen: feed.n_items,
        items_per_day: publishing.items_per_hour(last).map(|rate| rate * 24.0),
        busiest_hour_utc: publishing.busiest_hour(),
        captures: feed.n_reads,
        reads_without_overlap: feed.n_gaps,
        last_change: feed.last_read.to_rfc3339(),
        last_poll: feed.visited.map(|visited| visited.to_rfc3339()),
        next_poll: feed.seed.map(|_| publishing.next_poll(last, &PollLimits::default()).to_rfc3339()),
    }
}

fn print_list(lines: &[FeedStatus], out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        writeln!(out, "{}", line.url)?;
        let rate = line
            .items_per_day
            .map_or("too few dates for a rate".to_owned(), |rate| format!("{rate:.1} per day"));
        let hour = line.busiest_hour_utc.map(|hour| format!(", mostly at {hour}h UTC")).unwrap_or_default();
        writeln!(
            out,
            "    {} \"{}\": contains {} items, {} seen in all, {rate}{hour}",
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
                "    items were lost: {} captures share no item with the previous one",
                line.reads_without_overlap
            )?;
        }
    }
    Ok(())
}

impl FindFeedsArgs {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        // Without an archive the defaults apply.
        let table = context
            .open()
            .map(|archive| archive.settings().crawl.clone())
            .unwrap_or_else(|_| CrawlTable::default());
        let client = Client::new(table.user_agent(), table.limits.clone(), table.proxy.clone());
        let pause = match perennial_crawler::is_loopback(&self.url) {
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
            context.note(format!("{} links to no feed, and the usual paths have none", self.url));
        }
        Ok(Exit::Done)
    }
}

fn print_found(feed: &DiscoveredFeed, out: &mut dyn Write) -> io::Result<()> {
    let newest = feed.newest.as_deref().map(|time| format!(", newest {time}")).unwrap_or_default();
    writeln!(out, "{}", feed.url)?;
    writeln!(out, "    {} \"{}\", {} items{newest}, {}", feed.format, feed.title, feed.n_items, feed.found)
}

impl PollFeedsArgs {
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
        let _listening = signals::listen(context, &options.stop, false);
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
            Some(perennial_crawler::CrawlEnd::Interrupted) => Ok(Exit::Interrupted),
            _ => Ok(Exit::Done),
        }
    }
}
