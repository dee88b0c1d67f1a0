//! Statistics of the feeds of an archive or of files: the figures and tables of the paper (P-FEED 3).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::intervals::{IntervalSummary, Intervals, cumulative, histogram_in_tens};
use crate::trace;
use anyhow::Context;
use perennial_core::feed::{self, Feed, FeedItem};
use perennial_core::time::Timestamp;
use serde::Serialize;

use perennial_archive::store::{Store, StoredFeed};
use perennial_engine::learn::FollowedSites;

/// Most items of one feed that are counted.
const MAX_ITEMS: usize = 1_000_000;
/// Most files that are read.
const MAX_FILES: usize = 1_000_000;
/// The label of feeds without a tag.
const UNTAGGED: &str = "(no tag)";

/// Selects a number from the intervals of a feed.
pub type IntervalMeasure = fn(&Intervals) -> f64;

/// The curves of Figure 2.
pub const CURVES: [(&str, IntervalMeasure); 5] = [
    ("min", |intervals| intervals.min),
    ("1st quartile", |intervals| intervals.quartile_1),
    ("median", |intervals| intervals.median),
    ("3rd quartile", |intervals| intervals.quartile_3),
    ("max", |intervals| intervals.max),
];

/// The facts of one feed.
#[derive(Clone, Debug, Serialize)]
pub struct FeedFacts {
    /// Its URL or file.
    pub url: String,
    pub format: String,
    /// The user's tags of its site, or the folders of its file.
    pub tags: Vec<String>,
    /// Items in the latest version; `None` if unknown.
    pub n_held: Option<usize>,
    /// Items ever observed.
    pub n_items: usize,
    /// Number of polls without an item of the previous poll, between which items were lost.
    pub n_gaps: u64,
    /// Update intervals by the dates of its items; `None` for fewer than two dates.
    pub intervals: Option<Intervals>,
    pub elements: TimeElements,
}

/// Which elements of time a feed has (P-FEED 3, temporal information).
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct TimeElements {
    /// `lastBuildDate` or similar. If it is absent, the newest item has its role.
    pub last_build_date: bool,
    /// `ttl`.
    pub ttl: bool,
    /// `updateFrequency` or `updatePeriod`.
    pub update_frequency: bool,
    /// Some item has a date of publication.
    pub pub_date: bool,
    /// Some item has a date of change.
    pub last_modified: bool,
}

/// Share of feeds with each element.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct TimeElementShares {
    /// `lastBuildDate` or similar.
    pub last_build_date: f64,
    /// `ttl`.
    pub ttl: f64,
    /// `updateFrequency` or `updatePeriod`.
    pub update_frequency: f64,
    /// Some item has a date of publication.
    pub pub_date: f64,
    /// Some item has a date of change.
    pub last_modified: f64,
}

/// Statistics of all feeds.
#[derive(Clone, Debug, Serialize)]
pub struct FeedStatistics {
    /// Number of feeds tried; the paper began with 400.
    pub n_tried: usize,
    /// Number of feeds with at least one item; the paper kept 340.
    pub n_active: usize,
    /// Number of readable feeds without an item.
    pub n_empty: usize,
    /// Number of feeds that could not be fetched or read.
    pub n_unreadable: usize,
    /// Feeds by format (the paper's Table 1).
    pub formats: BTreeMap<String, usize>,
    /// How many feeds hold 0 to 9 items, 10 to 19, and so on (Figure 1).
    pub histogram: Vec<usize>,
    /// Share of feeds with fewer than 30 items; the paper has 75 %.
    pub below_30: f64,
    /// The most frequent number of items; the paper has 10.
    pub mode: Option<usize>,
    pub elements: TimeElementShares,
    pub all: IntervalSummary,
    /// By tag (Table 2).
    pub tags: BTreeMap<String, IntervalSummary>,
    /// Number of polls without an item of the previous poll, over all feeds.
    pub n_gaps: u64,
    pub feeds: Vec<FeedFacts>,
}

/// Statistics of the feeds of an archive.
pub fn archive_statistics(store: &Store, followed: &FollowedSites) -> anyhow::Result<FeedStatistics> {
    let mut facts = Vec::new();
    let known = store.feeds()?;
    for feed in &known {
        facts.push(archived_feed_facts(store, feed, followed)?);
    }
    let n_unread = store.count_unread_feeds()?;
    Ok(summarise(facts, n_unread))
}

fn archived_feed_facts(
    store: &Store,
    feed: &StoredFeed,
    followed: &FollowedSites,
) -> anyhow::Result<FeedFacts> {
    let times = store.item_times(feed.page, MAX_ITEMS)?;
    Ok(FeedFacts {
        url: feed.url.clone(),
        format: feed.format.clone(),
        tags: feed.seed.map(|seed| followed.seed_tags(seed).to_vec()).unwrap_or_default(),
        n_held: Some(feed.n_held as usize),
        n_items: feed.n_items as usize,
        n_gaps: feed.n_gaps,
        intervals: Intervals::from_times(&times),
        elements: TimeElements {
            last_build_date: feed.has_updated,
            ttl: feed.pace.ttl_minutes.is_some(),
            update_frequency: feed.pace.update_period_secs.is_some() || feed.pace.update_frequency.is_some(),
            pub_date: feed.n_published > 0,
            last_modified: feed.n_updated > 0,
        },
    })
}

/// Statistics of the wanted files among feed files, folders of them, and traces of observed changes (docs/traces.md).
/// `each` is called after every file.
pub fn file_statistics(
    paths: &[PathBuf],
    is_wanted: &dyn Fn(&Path) -> bool,
    each: &dyn Fn(),
) -> anyhow::Result<FeedStatistics> {
    let (mut facts, mut n_unreadable) = (Vec::new(), 0);
    for FeedFile { path, tags } in files_in(paths)?.into_iter().filter(|file| is_wanted(&file.path)) {
        let mut bytes = Vec::new();
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        file.take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.display().to_string();
        match feed::parse(&bytes, None, "") {
            Ok(feed) => facts.push(FeedFacts { tags, ..parsed_feed_facts(name, &feed) }),
            Err(_) => match trace_facts(&name, &bytes) {
                Some(of_trace) => {
                    facts.extend(of_trace.into_iter().map(|facts| FeedFacts { tags: tags.clone(), ..facts }));
                }
                None => n_unreadable += 1,
            },
        }
        each();
    }
    Ok(summarise(facts, n_unreadable))
}

/// Longest part of a file that is read. Traces are longer than feeds.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// A file, with the folders in which it was found as its tags: P-FEED has one folder per domain.
pub(crate) struct FeedFile {
    pub(crate) path: PathBuf,
    tags: Vec<String>,
}

pub(crate) fn files_in(paths: &[PathBuf]) -> anyhow::Result<Vec<FeedFile>> {
    let mut files = Vec::new();
    let mut waiting: Vec<FeedFile> =
        paths.iter().map(|path| FeedFile { path: path.clone(), tags: Vec::new() }).collect();
    while let Some(FeedFile { path, tags }) = waiting.pop() {
        if path.is_dir() {
            let entries =
                std::fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
            for entry in entries {
                let entry = entry?;
                let kind = entry.file_type()?;
                let mut tags = tags.clone();
                if kind.is_dir() {
                    tags.push(entry.file_name().to_string_lossy().into_owned());
                }
                // A link to a parent folder would make this endless.
                if !kind.is_symlink() {
                    waiting.push(FeedFile { path: entry.path(), tags });
                }
            }
        } else if files.len() < MAX_FILES {
            files.push(FeedFile { path, tags });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn parsed_feed_facts(url: String, feed: &Feed) -> FeedFacts {
    let mut times: BTreeMap<String, Timestamp> = BTreeMap::new();
    times.extend(feed.items.iter().filter_map(|item| Some((item.key(), item.time()?))));
    let times: Vec<Timestamp> = times.into_values().collect();
    let any = |has: fn(&FeedItem) -> bool| feed.items.iter().any(has);
    FeedFacts {
        url,
        format: feed.format.name().to_owned(),
        tags: Vec::new(),
        n_held: Some(feed.items.len()),
        n_items: feed.items.len(),
        n_gaps: 0,
        intervals: Intervals::from_times(&times),
        elements: TimeElements {
            last_build_date: feed.updated.is_some(),
            ttl: feed.pace.ttl_minutes.is_some(),
            update_frequency: feed.pace.update_period_secs.is_some() || feed.pace.update_frequency.is_some(),
            pub_date: any(|item| item.published.is_some()),
            last_modified: any(|item| item.updated.is_some()),
        },
    }
}

/// Treats each page of a trace as a feed, and its changes as items.
fn trace_facts(name: &str, bytes: &[u8]) -> Option<Vec<FeedFacts>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let world = trace::parse(name, text).ok().filter(|world| !world.pages.is_empty())?;
    let facts = world.pages.iter().map(|page| {
        let times: Vec<Timestamp> = page.changes.iter().map(|change| change.at).collect();
        FeedFacts {
            url: format!("{name}: {}", page.name),
            format: "trace".to_owned(),
            tags: Vec::new(),
            n_held: None,
            n_items: times.len(),
            n_gaps: 0,
            intervals: Intervals::from_times(&times),
            elements: TimeElements::default(),
        }
    });
    Some(facts.collect())
}

fn summarise(feeds: Vec<FeedFacts>, n_unreadable: usize) -> FeedStatistics {
    let held: Vec<usize> = feeds.iter().filter_map(|feed| feed.n_held).filter(|&n| n > 0).collect();
    let mut formats = BTreeMap::new();
    feeds.iter().for_each(|feed| *formats.entry(feed.format.clone()).or_default() += 1);
    let mut tags: BTreeMap<String, (usize, Vec<Intervals>)> = BTreeMap::new();
    for feed in &feeds {
        let untagged = [UNTAGGED.to_owned()];
        for tag in if feed.tags.is_empty() { &untagged[..] } else { &feed.tags[..] } {
            let (n_feeds, intervals) = tags.entry(tag.clone()).or_default();
            *n_feeds += 1;
            intervals.extend(feed.intervals);
        }
    }
    let intervals: Vec<Intervals> = feeds.iter().filter_map(|feed| feed.intervals).collect();
    let n_active = feeds.iter().filter(|feed| feed.n_items > 0).count();
    FeedStatistics {
        n_tried: feeds.len() + n_unreadable,
        n_active,
        n_empty: feeds.len() - n_active,
        n_unreadable,
        formats,
        below_30: held.iter().filter(|&&n| n < 30).count() as f64 / held.len().max(1) as f64,
        mode: mode(&held),
        histogram: histogram_in_tens(held),
        elements: element_shares(&feeds),
        all: IntervalSummary::new(feeds.len(), &intervals),
        tags: tags
            .into_iter()
            .map(|(tag, (n, intervals))| (tag, IntervalSummary::new(n, &intervals)))
            .collect(),
        n_gaps: feeds.iter().map(|feed| feed.n_gaps).sum(),
        feeds,
    }
}

fn mode(values: &[usize]) -> Option<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    values.iter().for_each(|&value| *counts.entry(value).or_default() += 1);
    counts.into_iter().max_by_key(|&(value, n)| (n, std::cmp::Reverse(value))).map(|(value, _)| value)
}

fn element_shares(feeds: &[FeedFacts]) -> TimeElementShares {
    let share = |has: fn(&TimeElements) -> bool| {
        feeds.iter().filter(|feed| has(&feed.elements)).count() as f64 / feeds.len().max(1) as f64
    };
    TimeElementShares {
        last_build_date: share(|elements| elements.last_build_date),
        ttl: share(|elements| elements.ttl),
        update_frequency: share(|elements| elements.update_frequency),
        pub_date: share(|elements| elements.pub_date),
        last_modified: share(|elements| elements.last_modified),
    }
}

impl FeedStatistics {
    /// A curve of Figure 2: the share of feeds whose intervals are at most so many seconds.
    pub fn curve(&self, of: fn(&Intervals) -> f64) -> Vec<(f64, f64)> {
        cumulative(self.feeds.iter().filter_map(|feed| feed.intervals.as_ref()).map(of))
    }
}
