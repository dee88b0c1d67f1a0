//! Makes visits durable, with captures, frontier and log together, and then reports them to the loop.
//!
//! One thread owns the archive. For each batch of messages it
//!
//! 1. receives all that have arrived ([`Batch::receive`]),
//! 2. appends their exchanges to the WARC file ([`Recorder::append`]),
//! 3. syncs that file and commits the state, once per batch ([`Recorder::commit`]),
//! 4. reports them to the log, the text index, the notices and the loop.
//!
//! With more fetches in flight, fewer syncs are needed per page. A connection is free again only after its commit. So
//! after a crash, at most one page per connection is fetched again.

use std::collections::HashMap;
use std::sync::mpsc::Receiver;

use anyhow::Context;
use perennial_core::http::politeness::{HostState, PolitenessConfig};
use perennial_core::rng::Rng;
use perennial_core::schedule::Checkpoint;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::SiteId;
use tokio::sync::mpsc::UnboundedSender;
use url::Url;

use super::exchange::FetchedExchange;
use super::known_urls::KnownUrls;
use super::log::CrawlLog;
use super::polls::FeedPoll;
use super::record::{NewPage, StoredExchange, VisitRecord};
use perennial_archive::ArchiveWriter;
use perennial_archive::settings::Seeds;
use perennial_archive::store::{Commit, Discovery, FeedRow, ItemStatus, PageKind};
use perennial_engine::analyse::PageAnalyses;
use perennial_engine::background::PageFollower;
use perennial_engine::notify::WatchNews;

/// Most visits and analyses per commit.
const MAX_BATCH: usize = 256;
/// If the `Last-Modified` of a feed is older than this, it does not date the latest change.
const MAX_MADE_BEFORE: Span = Span::from_hours(24);

pub(super) enum RecorderMessage {
    /// A finished visit.
    Visit(Box<VisitRecord<FetchedExchange>>),
    /// The analyses of a page.
    Analyses(PageAnalyses),
    /// The scheduler's checkpoint, committed with the next visit.
    Checkpoint(Box<Checkpoint>),
    /// A page that somebody wants to see now, and that may be unknown.
    Request(Box<Url>),
    /// A pass over everything is complete.
    EndPass(i64, Timestamp),
    /// The local disk could not store a body. The crawl ends.
    DiskFailed(std::io::Error),
}

/// The committed visits of one batch, or the error that ended all writing.
pub(super) type CommittedVisits = anyhow::Result<Vec<VisitRecord>>;

/// Owns the archive and everything that is written with a visit.
pub(super) struct Recorder {
    pub(super) writer: ArchiveWriter,
    pub(super) log: CrawlLog,
    pub(super) known_urls: KnownUrls,
    /// The followed sites.
    pub(super) seeds: Seeds,
    pub(super) hosts: HashMap<SiteId, HostState>,
    /// Delays between fetches from one host.
    pub(super) politeness: PolitenessConfig,
    /// Random numbers for the jitter of delays.
    pub(super) rng: Rng,
    /// Follows the analyses with the text index; `None` without analysis.
    pub(super) indexing: Option<PageFollower>,
    /// Follows the analyses with notices; `None` without rules or analysis.
    pub(super) notifying: Option<PageFollower<WatchNews>>,
    /// The latest checkpoint that is not committed yet.
    pub(super) checkpoint: Option<Checkpoint>,
}

/// The messages of one commit.
#[derive(Default)]
struct Batch {
    visits: Vec<VisitRecord<FetchedExchange>>,
    analyses: Vec<PageAnalyses>,
    checkpoint: Option<Checkpoint>,
    ended_pass: Option<(i64, Timestamp)>,
    requested: Vec<Url>,
    disk_failure: Option<std::io::Error>,
}

impl Batch {
    /// Waits for a message and receives all that have arrived; `None` if all senders are dropped.
    fn receive(messages: &Receiver<RecorderMessage>) -> Option<Batch> {
        let mut batch = Batch::default();
        let mut next = Some(messages.recv().ok()?);
        while let Some(message) = next {
            match message {
                RecorderMessage::Visit(visit) => batch.visits.push(*visit),
                RecorderMessage::Analyses(page) => batch.analyses.push(page),
                RecorderMessage::Checkpoint(checkpoint) => batch.checkpoint = Some(*checkpoint),
                RecorderMessage::Request(url) => batch.requested.push(*url),
                RecorderMessage::EndPass(pass, at) => batch.ended_pass = Some((pass, at)),
                RecorderMessage::DiskFailed(error) => batch.disk_failure = Some(error),
            }
            let has_room = batch.visits.len() + batch.analyses.len() < MAX_BATCH;
            next = if has_room { messages.try_recv().ok() } else { None };
        }
        Some(batch)
    }

    fn is_empty(&self) -> bool {
        self.visits.is_empty() && self.analyses.is_empty() && self.disk_failure.is_none()
    }
}

impl Recorder {
    /// Handles messages until all senders are dropped, then closes the archive.
    pub(super) fn run(
        mut self,
        messages: Receiver<RecorderMessage>,
        committed: &UnboundedSender<CommittedVisits>,
    ) -> anyhow::Result<()> {
        while let Some(mut batch) = Batch::receive(&messages) {
            self.checkpoint = batch.checkpoint.take().or(self.checkpoint.take());
            if let Some((pass, at)) = batch.ended_pass {
                self.writer.commit_with(|commit| commit.end_pass(pass, at))?;
            }
            for url in std::mem::take(&mut batch.requested) {
                self.request(&url)?;
            }
            if batch.is_empty() {
                continue;
            }
            let records = self.record(batch);
            let has_failed = records.is_err();
            let _ = committed.send(records);
            if has_failed {
                // The loop has the error. Committed data is safe, and the next start recovers the rest.
                return Ok(());
            }
        }
        self.close()
    }

    /// Adds a requested page to the frontier.
    fn request(&mut self, url: &Url) -> anyhow::Result<()> {
        let (seeds, known_urls) = (&self.seeds, &mut self.known_urls);
        self.writer.commit_with(|commit| {
            let found = put_request(commit, seeds, url)?;
            // The page is known from now on, whatever the answer.
            let _ = known_urls.is_wanted(&found, Timestamp::EPOCH);
            Ok(())
        })?;
        Ok(())
    }

    fn record(&mut self, batch: Batch) -> CommittedVisits {
        let appended = batch.visits.into_iter().map(|visit| self.append(visit));
        let mut records = appended.collect::<anyhow::Result<Vec<_>>>()?;
        self.commit(&mut records, &batch.analyses)?;
        self.log(&records)?;
        self.announce(&batch.analyses, &records);
        match batch.disk_failure {
            Some(error) => Err(error.into()),
            None => Ok(records),
        }
    }

    fn append(&mut self, visit: VisitRecord<FetchedExchange>) -> anyhow::Result<VisitRecord> {
        let mut record = visit.store(|exchange| self.append_exchange(exchange))?;
        let ended_at = record.ended_at;
        record.companions.iter().for_each(|companion| self.known_urls.fetched(&companion.url, ended_at));
        record.discoveries.retain(|found| self.known_urls.is_wanted(found, ended_at));
        record.host = self.book_host(&record);
        Ok(record)
    }

    fn append_exchange(&mut self, mut exchange: FetchedExchange) -> anyhow::Result<StoredExchange> {
        let appended = match exchange.left_out.take() {
            Some(left_out) => self.writer.append_left_out(&exchange.url, exchange.time, &left_out)?,
            None => {
                let (links, records) = (exchange.links.take(), exchange.records.take());
                exchange.with_exchange(links, |exchange| self.writer.append_compressed(exchange, records))?
            }
        };
        Ok(exchange.into_stored(appended))
    }

    fn book_host(&mut self, record: &VisitRecord) -> HostState {
        let (now, rng) = (record.ended_at, self.rng.unit());
        let took = Span::from_millis(record.took.as_millis() as i64);
        let state = self.hosts.entry(record.target.site).or_default();
        match record.host_response() {
            Some(response) => {
                state.record(&self.politeness, record.crawl_delay_secs, response, took, now, rng);
            }
            // The host received no request, so there is no reason to wait.
            None => state.ready_at = state.ready_at.min(now),
        }
        *state
    }

    /// Syncs the WARC file, then commits the state that refers to it.
    fn commit(&mut self, records: &mut [VisitRecord], analyses: &[PageAnalyses]) -> anyhow::Result<()> {
        let checkpoint = self.checkpoint.take();
        self.writer.commit_with(|commit| {
            if let Some(checkpoint) = &checkpoint {
                commit.put_checkpoint(checkpoint)?;
            }
            analyses.iter().try_for_each(|page| page.store(commit))?;
            records.iter_mut().try_for_each(|record| commit_visit(commit, record))
        })?;
        Ok(())
    }

    fn log(&mut self, records: &[VisitRecord]) -> anyhow::Result<()> {
        for line in records.iter().flat_map(VisitRecord::log_lines) {
            self.log.put(&line)?;
        }
        Ok(self.log.flush()?)
    }

    /// Passes the analysed pages to the text index and the notices, and to these the visits that showed no page.
    fn announce(&self, analyses: &[PageAnalyses], records: &[VisitRecord]) {
        for page in analyses.iter().map(PageAnalyses::page) {
            self.indexing.iter().for_each(|indexing| indexing.follow(page));
            self.notifying.iter().for_each(|notifying| notifying.follow(WatchNews::Analysed(page)));
        }
        let Some(notifying) = &self.notifying else { return };
        for record in records.iter().filter(|record| record.target.kind == PageKind::Page) {
            if let Some(reason) = record.unseen_reason() {
                let (url, at) = (record.target.url.clone(), record.ended_at);
                notifying.follow(WatchNews::Unseen { url, at, reason });
            }
        }
    }

    fn close(mut self) -> anyhow::Result<()> {
        self.log.flush()?;
        let indexed =
            self.indexing.take().map_or(Ok(()), PageFollower::finish).context(
                "the captures are safe, but the text index is behind: `perennial analyse` completes it",
            );
        let notified =
            self.notifying.take().map_or(Ok(()), PageFollower::finish).context(
                "the captures are safe, but notices are behind: `perennial notify send` continues them",
            );
        self.writer.close().and(indexed).and(notified)
    }
}

/// Adds a requested page to the frontier. A page of no followed site becomes its own seed in the state, which no
/// crawl visits by itself.
pub(super) fn put_request(commit: &mut Commit<'_>, seeds: &Seeds, url: &Url) -> anyhow::Result<Discovery> {
    let owner = seeds.owner(url, 1, 0).filter(|number| *number != 0);
    let seed = match owner {
        Some(seed) => seed,
        None => commit.seed_numbers(&[url.to_string()])?.into_iter().next().unwrap_or_default(),
    };
    let found = Discovery::new(url.as_str(), PageKind::Page, seed, 1);
    commit.put_discovery(&found)?;
    Ok(found)
}

/// Writes the changes of a visit to the state, and completes its record from the state.
fn commit_visit(commit: &mut Commit<'_>, record: &mut VisitRecord) -> anyhow::Result<()> {
    commit.put_visit(&record.frontier_row())?;
    let target = &record.target;
    let is_page = target.kind == PageKind::Page;
    commit.put_spent(target.seed, is_page, record.body_bytes(), record.ended_at)?;
    if record.host.n_troubles > 0 {
        commit.put_host(target.site, &record.host)?;
    }
    record.poll = record.feed.as_ref().map(|feed| feed_poll(commit, record, feed)).transpose()?;
    let found = record.discoveries.iter().map(|found| new_page(commit, record, found));
    record.new_pages = found.filter_map(Result::transpose).collect::<anyhow::Result<_>>()?;
    Ok(())
}

/// Adds a URL to the frontier. `None` if nothing is new: a known item of a feed.
fn new_page(
    commit: &mut Commit<'_>,
    record: &VisitRecord,
    found: &Discovery,
) -> anyhow::Result<Option<NewPage>> {
    let was_followed = found.item.is_some() && commit.is_followed(&found.url)?;
    let (page, site) = commit.put_discovery(found)?;
    let (mut changed, mut is_new) = (found.changed, !was_followed);
    match &found.item {
        None => is_new = found.changed.is_none() || !commit.was_visited(page)?,
        Some(item) => {
            let captured_at = record.captured_at();
            changed = match commit.news(record.target.page, &item.key, captured_at)? {
                ItemStatus::Known if was_followed => return Ok(None),
                ItemStatus::FirstRead | ItemStatus::Known => changed,
                ItemStatus::New => changed.or(Some(captured_at)),
                ItemStatus::Edited => Some(captured_at),
            };
        }
    }
    let (kind, seed, url) = (found.kind, found.seed, found.url.clone());
    let item = found.item.as_ref().map(|item| item.title.clone());
    Ok(Some(NewPage { page, site, kind, seed, url, changed, item, is_new }))
}

fn feed_poll(commit: &Commit<'_>, record: &VisitRecord, feed: &FeedRow) -> anyhow::Result<FeedPoll> {
    let captured_at = record.captured_at();
    let mut poll = FeedPoll { n_held: feed.items.len(), pace: feed.pace.clone(), ..FeedPoll::default() };
    poll.channel = match &feed.channel {
        Some(channel) => commit.followed_page(channel)?,
        None => None,
    };
    poll.hub = feed.hub.clone().zip(feed.topic.clone());
    // An undated item appeared no later than the feed was generated.
    let made = feed.modified.filter(|made| *made <= captured_at && captured_at - *made < MAX_MADE_BEFORE);
    let came = made.unwrap_or(captured_at);
    for item in &feed.items {
        let is_new = commit.news(record.target.page, &item.key, captured_at)? == ItemStatus::New;
        poll.n_new += usize::from(is_new);
        poll.times.extend(item.published.or(item.updated).or(is_new.then_some(came)));
    }
    Ok(poll)
}
