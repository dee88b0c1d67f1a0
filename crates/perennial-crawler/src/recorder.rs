//! Reports -> captures, frontier and log, made durable together; then the loop is told.
//!
//! One thread owns the archive. It takes all reports that have arrived, appends their exchanges, and commits once for all
//! of them: the more fetches are in flight, the fewer syncs a page costs. A connection is free again only after its commit,
//! so after a crash at most one page per connection is fetched twice.

use std::collections::HashMap;
use std::sync::mpsc::Receiver;

use anyhow::Context;
use perennial_core::chance::Chance;
use perennial_core::http::politeness::{HostState, PolitenessConfig};
use perennial_core::http::verdict::{AnswerKind, Validators, host_answer, trust_after};
use perennial_core::schedule::{Bearings, VisitOutcome};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::{PageId, SiteId};
use tokio::sync::mpsc::UnboundedSender;

use super::addresses::Addresses;
use super::exchange::Exchanged;
use super::log::{CrawlLog, LogLine};
use super::polls::Polled;
use super::record::Verdict;
use super::visit::VisitReport;
use perennial_archive::store::{Commit, Discovery, Ending, FeedRow, Kind, News, PageKind, Target, Visited};
use perennial_archive::{Appended, ArchiveWriter};
use perennial_engine::analyse::PageLessons;
use perennial_engine::notify::Notifying;
use perennial_engine::search::Indexing;
use perennial_fetch::Cut;

/// Reports taken into one commit.
const MAX_BATCH: usize = 256;

/// A visit that is committed, as the loop needs it.
#[derive(Debug)]
pub struct Settled {
    /// The page that was visited.
    pub page: PageId,
    /// Number of its host.
    pub site: SiteId,
    /// What the crawl fetches it as.
    pub kind: PageKind,
    /// Number of its seed.
    pub seed: i64,
    /// What the scheduler is told.
    pub outcome: VisitOutcome,
    /// Whether the capture is a look ([`AnswerKind::is_look`]).
    pub is_look: bool,
    /// How the visit ended.
    pub ending: Ending,
    /// Failures in a row, this one included.
    pub n_failures: u16,
    /// Whether another try soon would end the same way.
    pub is_final: bool,
    /// The host's state after the visit.
    pub host: HostState,
    /// Kind of error, if there was one.
    pub error: Option<&'static str>,
    /// Bytes of the body, and of what was fetched with it.
    pub body_bytes: u64,
    /// Bytes that the WARC files grew by.
    pub stored_bytes: u64,
    /// When the visit ended.
    pub done_at: Timestamp,
    /// The time of the capture, as it is stored; when the visit ended if there is none.
    pub captured_at: Timestamp,
    /// Addresses that its document names: new ones, and known pages with a time of change.
    pub new_pages: Vec<NewPage>,
    /// What it says as a feed, if it is one that was delivered.
    pub polled: Option<Polled>,
    /// Whether its document is a large one, which is analysed on its own.
    pub is_large: bool,
    /// Whether its document was read in part only.
    pub is_unread: bool,
    /// A message for the user.
    pub warning: Option<String>,
}

/// An address that a visit led to.
#[derive(Clone, Debug)]
pub struct NewPage {
    /// Its number.
    pub page: PageId,
    /// Number of its host.
    pub site: SiteId,
    /// What the crawl fetches it as.
    pub kind: PageKind,
    /// Number of its seed.
    pub seed: i64,
    /// Its address.
    pub url: String,
    /// When it changed according to a sitemap or a feed; such a page may have been known.
    pub changed: Option<Timestamp>,
    /// The headline of the item that named it.
    pub item: Option<String>,
    /// Whether it has to be queued.
    pub is_new: bool,
}

/// What the recorder is sent.
pub enum RecorderMessage {
    /// The report of a visit.
    Visit(Box<VisitReport>),
    /// Lessons of a page that was analysed.
    Lessons(PageLessons),
    /// What the scheduler knows of prices: committed with the next visit.
    Bearings(Box<Bearings>),
    /// A pass over everything is complete.
    EndPass(i64, Timestamp),
    /// Our own disk did not take a body that was on its way here. The crawl ends.
    DiskFailed(std::io::Error),
}

/// The visits of one batch after their commit, or the error that ended all writing.
pub type Committed = anyhow::Result<Vec<Settled>>;

/// Owns the archive and everything that is written with a visit.
pub struct Recorder {
    /// Appends to the archive.
    pub writer: ArchiveWriter,
    /// Gets a line for each visit.
    pub log: CrawlLog,
    /// Decides which discoveries are new.
    pub addresses: Addresses,
    /// State of every host that was visited.
    pub hosts: HashMap<SiteId, HostState>,
    /// Delays between fetches from one host.
    pub politeness: PolitenessConfig,
    /// Random numbers for the jitter of delays.
    pub chance: Chance,
    /// Takes the texts of analysed pages into the text index; `None` when nothing is analysed.
    pub indexing: Option<Indexing>,
    /// Tells of changes; `None` when nobody wants to hear of any, or nothing is analysed.
    pub notifying: Option<Notifying>,
    /// What the scheduler knew last of prices, until it is committed.
    pub bearings: Option<Bearings>,
}

/// A visit between append and commit.
struct Pending {
    settled: Settled,
    visited: Visited,
    found: Vec<Discovery>,
    feed: Option<Box<FeedRow>>,
    lines: Vec<LogLine>,
}

impl Recorder {
    /// Takes messages until all senders are gone, then closes the archive.
    pub fn run(
        mut self,
        messages: Receiver<RecorderMessage>,
        committed: &UnboundedSender<Committed>,
    ) -> anyhow::Result<()> {
        while let Ok(first) = messages.recv() {
            let mut batch = Vec::new();
            let mut lessons = Vec::new();
            let mut failure = None;
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    RecorderMessage::Visit(report) => batch.push(*report),
                    RecorderMessage::Lessons(page) => lessons.push(page),
                    RecorderMessage::Bearings(bearings) => self.bearings = Some(*bearings),
                    RecorderMessage::EndPass(pass, at) => {
                        self.writer.commit_with(|commit| commit.end_pass(pass, at))?;
                    }
                    RecorderMessage::DiskFailed(error) => failure = Some(error),
                }
                next = if batch.len() + lessons.len() < MAX_BATCH { messages.try_recv().ok() } else { None };
            }
            if batch.is_empty() && lessons.is_empty() && failure.is_none() {
                continue;
            }
            let settled = self.settle(batch, &lessons).and_then(|settled| match failure {
                Some(error) => Err(error.into()),
                None => Ok(settled),
            });
            let has_failed = settled.is_err();
            let _ = committed.send(settled);
            if has_failed {
                // The loop has the error; what was committed is safe, the rest is repaired at the next start.
                return Ok(());
            }
        }
        self.log.flush()?;
        let mut indexed = Ok(());
        if let Some(indexing) = self.indexing.take() {
            let behind =
                "the captures are safe, but the text index is behind: `perennial analyse` completes it";
            indexed = indexing.finish().context(behind);
        }
        let mut notified = Ok(());
        if let Some(notifying) = self.notifying.take() {
            let behind = "the captures are safe, but notices could not be kept up: `perennial notify run` goes on with them";
            notified = notifying.finish().context(behind);
        }
        self.writer.close().and(indexed).and(notified)
    }

    fn settle(&mut self, batch: Vec<VisitReport>, lessons: &[PageLessons]) -> Committed {
        let mut pending = Vec::with_capacity(batch.len());
        for report in batch {
            pending.push(self.append(report)?);
        }
        let found_news = self.commit(&pending, lessons)?;
        if let Some(indexing) = &self.indexing {
            lessons.iter().for_each(|lessons| indexing.tell(lessons.page()));
        }
        if let Some(notifying) = &self.notifying {
            lessons.iter().for_each(|lessons| notifying.tell(lessons.page()));
        }
        let mut settled = Vec::with_capacity(pending.len());
        for (mut visit, (new_pages, polled)) in pending.into_iter().zip(found_news) {
            visit.settled.polled = polled;
            if let Some(last) = visit.lines.last_mut() {
                last.n_found = new_pages.iter().filter(|page| page.is_new).count() as u64;
            }
            for line in &visit.lines {
                self.log.put(line)?;
            }
            visit.settled.new_pages = new_pages;
            settled.push(visit.settled);
        }
        self.log.flush()?;
        Ok(settled)
    }

    fn append(&mut self, report: VisitReport) -> anyhow::Result<Pending> {
        let mut lines = Vec::new();
        let mut stored_bytes = 0;
        let beside = report.robots.into_iter().chain(report.beside);
        for exchanged in beside {
            let (status, n_bytes) = (exchanged.fetched.status(), exchanged.fetched.body.len());
            let url = exchanged.url.clone();
            self.addresses.fetched(&url, report.done_at);
            let appended = self.append_exchanged(exchanged)?;
            stored_bytes += appended.stored_bytes;
            lines.push(beside_line(url, status, n_bytes, &appended, report.done_at));
        }
        let target = &report.target;
        let mut line = LogLine {
            time: report.done_at.to_rfc3339(),
            url: target.url.clone(),
            kind: kind_name(target.kind).into(),
            reason: report.reason,
            millis: report.took.as_millis() as u64,
            conditional: report.conditional,
            ..LogLine::default()
        };
        let captured_at = match &report.result {
            Ok(exchanged) => Timestamp::from_secs(exchanged.time.as_secs()),
            Err(_) => report.done_at,
        };
        let is_large = report.result.as_ref().is_ok_and(|exchanged| exchanged.is_large);
        let mut verdict = match report.result {
            Err(failure) => {
                line.error = Some(failure.kind.name().into());
                line.detail = Some(failure.detail);
                Verdict::of_failure(failure.kind)
            }
            Ok(exchanged) => {
                self.append_answer(target, exchanged, report.conditional, report.done_at, &mut line)?
            }
        };
        stored_bytes += line.stored_bytes;
        let took = Span::from_millis(report.took.as_millis() as i64);
        let host = self.book_host(target.site, &verdict, report.crawl_delay_secs, took, report.done_at);
        if let VisitOutcome::Failed { retry_at } = &mut verdict.outcome {
            *retry_at = Some(host.ready_at);
        }
        let ending = ending_of(&verdict);
        let n_failures = if ending == Ending::Failed { target.n_failures.saturating_add(1) } else { 0 };
        line.outcome = ending_name(ending).into();
        let is_unread = line.unread.is_some();
        lines.push(line);
        let body_bytes = lines.iter().map(|line| line.body_bytes).sum();
        let mut found = report.found;
        found.retain(|found| self.addresses.is_wanted(found, report.done_at));
        Ok(Pending {
            settled: Settled {
                page: target.page,
                site: target.site,
                kind: target.kind,
                seed: target.seed,
                outcome: verdict.outcome,
                is_look: verdict.identity.is_some(),
                ending,
                n_failures,
                is_final: verdict.is_final,
                host,
                error: verdict.error,
                body_bytes,
                stored_bytes,
                done_at: report.done_at,
                captured_at,
                new_pages: Vec::new(),
                polled: None,
                is_large,
                is_unread,
                warning: report.warning,
            },
            visited: Visited {
                page: target.page,
                at: report.done_at,
                ending,
                n_failures,
                answer: verdict.answer,
                identity: verdict.identity,
                trust: verdict.trust.unwrap_or(target.trust),
            },
            found,
            feed: report.feed,
            lines,
        })
    }

    fn append_answer(
        &mut self,
        target: &Target,
        exchanged: Exchanged,
        conditional: bool,
        now: Timestamp,
        line: &mut LogLine,
    ) -> anyhow::Result<Verdict> {
        let fetched = &exchanged.fetched;
        let (status, cut) = (fetched.status(), fetched.cut);
        let field = |name: &str| fetched.head.get(name).map(|value| value.into_owned());
        let (etag, last_modified, retry_after) =
            (field("ETag"), field("Last-Modified"), field("Retry-After"));
        line.status = Some(status);
        line.body_bytes = fetched.body.len();
        line.truncated = cut.map(|cut| cut.name().into());
        line.unread = exchanged.unread.clone();
        let appended = self.append_exchanged(exchanged)?;
        line.stored = Some(kind_word(appended.kind).into());
        line.digest = Some(appended.digest.clone());
        line.stored_bytes = appended.stored_bytes;
        let is_broken_off = cut == Some(Cut::Disconnect);
        let kind = AnswerKind::of_answer(status, is_broken_off);
        let mut verdict = Verdict::of_answer(kind, status, is_broken_off, target, &appended.identity);
        verdict.answer_of_host = Some(host_answer(status, is_broken_off, retry_after.as_deref(), now));
        if matches!(kind, AnswerKind::Content | AnswerKind::NotModified) {
            let validators = Validators { etag, last_modified };
            let before = target.digest.as_deref().zip(Some(&target.validators));
            verdict.trust =
                Some(trust_after(target.trust, before, status, conditional, &appended.content, &validators));
            if kind == AnswerKind::Content {
                verdict.answer = Some((appended.content, validators));
            } else if appended.is_left_out {
                // A version that stays is worth its bytes: the next visit sends no condition, so that they come.
                verdict.answer = Some((appended.content, Validators::default()));
            }
        }
        verdict.identity = kind.is_look().then_some(appended.identity);
        line.error = verdict.error.map(Into::into);
        Ok(verdict)
    }

    fn append_exchanged(&mut self, mut exchanged: Exchanged) -> anyhow::Result<Appended> {
        if let Some(left_out) = exchanged.left_out.take() {
            return self.writer.append_left_out(&exchanged.url, exchanged.time, &left_out);
        }
        let (links, prepared) = (exchanged.links.take(), exchanged.prepared.take());
        exchanged.with_exchange(links, |exchange| self.writer.append_prepared(exchange, prepared))
    }

    fn book_host(
        &mut self,
        site: SiteId,
        verdict: &Verdict,
        crawl_delay_secs: Option<f64>,
        took: Span,
        now: Timestamp,
    ) -> HostState {
        let chance = self.chance.unit();
        let state = self.hosts.entry(site).or_default();
        match verdict.answer_of_host {
            Some(answer) => state.record(&self.politeness, crawl_delay_secs, answer, took, now, chance),
            // The host got no request: no reason to wait.
            None => state.ready_at = state.ready_at.min(now),
        }
        *state
    }

    fn commit(&mut self, pending: &[Pending], lessons: &[PageLessons]) -> anyhow::Result<Vec<FoundNews>> {
        let mut news = Vec::with_capacity(pending.len());
        let bearings = self.bearings.take();
        self.writer.commit_with(|commit| {
            if let Some(bearings) = &bearings {
                commit.put_bearings(bearings)?;
            }
            lessons.iter().try_for_each(|page| page.keep(commit))?;
            for visit in pending {
                commit.put_visited(&visit.visited)?;
                let settled = &visit.settled;
                let is_page = settled.kind == PageKind::Page;
                commit.put_spent(settled.seed, is_page, settled.body_bytes, settled.done_at)?;
                if visit.settled.host.n_troubles > 0 {
                    commit.put_host(visit.settled.site, &visit.settled.host)?;
                }
                let polled = visit.feed.as_ref().map(|feed| polled_of(commit, visit, feed)).transpose()?;
                let mut new_pages = Vec::with_capacity(visit.found.len());
                for found in &visit.found {
                    new_pages.extend(new_page(commit, visit, found)?);
                }
                news.push((new_pages, polled));
            }
            Ok(())
        })?;
        Ok(news)
    }
}

/// The addresses that a visit led to, and what it says as a feed.
type FoundNews = (Vec<NewPage>, Option<Polled>);

/// Puts an address into the frontier. `None` when there is nothing to tell of it: an item of a feed that was known.
fn new_page(commit: &mut Commit<'_>, visit: &Pending, found: &Discovery) -> anyhow::Result<Option<NewPage>> {
    let was_followed = found.item.is_some() && commit.is_followed(&found.url)?;
    let (page, site) = commit.put_discovery(found)?;
    let (mut changed, mut is_new) = (found.changed, !was_followed);
    match &found.item {
        None => is_new = found.changed.is_none() || !commit.was_visited(page)?,
        Some(item) => {
            let captured_at = visit.settled.captured_at;
            changed = match commit.news(visit.settled.page, &item.key, captured_at)? {
                News::Known if was_followed => return Ok(None),
                News::FirstRead | News::Known => changed,
                News::New => changed.or(Some(captured_at)),
                News::Edited => Some(captured_at),
            };
        }
    }
    let (kind, seed, url) = (found.kind, found.seed, found.url.clone());
    let item = found.item.as_ref().map(|item| item.title.clone());
    Ok(Some(NewPage { page, site, kind, seed, url, changed, item, is_new }))
}

/// A feed whose `Last-Modified` is older than this has not changed by it.
const MAX_MADE_BEFORE: Span = Span::from_hours(24);

/// What a poll taught of a feed.
fn polled_of(commit: &Commit<'_>, visit: &Pending, feed: &FeedRow) -> anyhow::Result<Polled> {
    let captured_at = visit.settled.captured_at;
    let mut polled = Polled { n_held: feed.items.len(), pace: feed.pace.clone(), ..Polled::default() };
    polled.channel = match &feed.channel {
        Some(channel) => commit.followed_page(channel)?,
        None => None,
    };
    polled.hub = feed.hub.clone().zip(feed.topic.clone());
    // What has no date of its own came no later than the feed was made.
    let made = feed.modified.filter(|made| *made <= captured_at && captured_at - *made < MAX_MADE_BEFORE);
    let came = made.unwrap_or(captured_at);
    for item in &feed.items {
        let is_new = commit.news(visit.settled.page, &item.key, captured_at)? == News::New;
        polled.n_new += usize::from(is_new);
        polled.times.extend(item.published.or(item.updated).or(is_new.then_some(came)));
    }
    Ok(polled)
}

fn ending_of(verdict: &Verdict) -> Ending {
    match verdict.outcome {
        VisitOutcome::Changed(_) => Ending::Changed,
        VisitOutcome::Unchanged => Ending::Unchanged,
        VisitOutcome::Failed { .. } => Ending::Failed,
        VisitOutcome::Vanished(_) | VisitOutcome::Absent if verdict.is_redirect => Ending::Redirected,
        VisitOutcome::Vanished(_) | VisitOutcome::Absent => Ending::Gone,
    }
}

fn ending_name(ending: Ending) -> &'static str {
    match ending {
        Ending::Changed => "changed",
        Ending::Unchanged => "unchanged",
        Ending::Failed => "failed",
        Ending::Gone => "gone",
        Ending::Redirected => "redirected",
    }
}

fn kind_name(kind: PageKind) -> &'static str {
    match kind {
        PageKind::Page => "page",
        PageKind::Requisite => "requisite",
        PageKind::Sitemap => "sitemap",
        PageKind::Feed => "feed",
    }
}

fn kind_word(kind: Kind) -> &'static str {
    match kind {
        Kind::Response => "response",
        Kind::Revisit => "revisit",
        Kind::Resource => "resource",
        Kind::Metadata => "delta",
    }
}

fn beside_line(url: String, status: u16, body_bytes: u64, appended: &Appended, at: Timestamp) -> LogLine {
    let is_robots = url.ends_with("/robots.txt");
    LogLine {
        time: at.to_rfc3339(),
        url,
        kind: if is_robots { "robots" } else { "requisite" }.into(),
        reason: if is_robots { "before the host's first page" } else { "fetched by the browser" }.into(),
        status: Some(status),
        outcome: if appended.is_new_version { "changed" } else { "unchanged" }.into(),
        stored: Some(kind_word(appended.kind).into()),
        digest: Some(appended.digest.clone()),
        body_bytes,
        stored_bytes: appended.stored_bytes,
        ..LogLine::default()
    }
}
