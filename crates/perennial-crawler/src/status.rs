//! Visits that ended -> the counts that progress and summary show.

use std::collections::BTreeMap;

use perennial_core::time::Timestamp;

use super::CrawlLoop;
use super::record::VisitRecord;
use perennial_archive::store::{Ending, PageKind};

/// Why a crawl ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrawlEnd {
    /// Nothing is left to do, or `limit` was reached.
    Done,
    /// The user stopped it.
    Interrupted,
    /// `size_limit` was reached.
    SizeLimit,
    /// `time_limit` was reached.
    TimeLimit,
    /// perennial.toml says something else now: the crawl goes on with that.
    OtherSettings,
}

/// How visits ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct VisitCounts {
    /// All of them.
    pub n_visits: u64,
    /// Those that found other content than before, or the first.
    pub n_changed: u64,
    /// Those that found the same content.
    pub n_unchanged: u64,
    /// Those that failed.
    pub n_failed: u64,
    /// Those of URLs that are gone or may not be fetched.
    pub n_gone: u64,
    /// Those that led to another URL.
    pub n_redirected: u64,
}

impl VisitCounts {
    fn count(&mut self, ending: Ending) {
        self.n_visits += 1;
        *match ending {
            Ending::Changed => &mut self.n_changed,
            Ending::Unchanged => &mut self.n_unchanged,
            Ending::Failed => &mut self.n_failed,
            Ending::Gone => &mut self.n_gone,
            Ending::Redirected => &mut self.n_redirected,
        } += 1;
    }
}

/// The visit that a crawl without work waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedVisit {
    /// When it is due.
    pub at: Timestamp,
    /// Which page.
    pub url: String,
    /// When that page usually changes, if some hours or days stand out.
    pub habit: Option<String>,
}

/// The counts of a crawl so far.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct CrawlStatus {
    /// Why it ended; none while it runs.
    pub end: Option<CrawlEnd>,
    /// Visits that ended, subresources and sitemaps included.
    pub n_fetched: u64,
    /// Visits of pages that ended.
    pub n_pages: u64,
    /// How the visits of pages ended.
    pub pages: VisitCounts,
    /// How the visits of what pages need ended (stylesheets, images, scripts), and those of sitemaps.
    pub requisites: VisitCounts,
    /// How the polls of feeds ended.
    pub feeds: VisitCounts,
    /// Items of feeds that were new.
    pub n_items: u64,
    /// Visits that found other content than before, or the first.
    pub n_changed: u64,
    /// Visits that found the same content.
    pub n_unchanged: u64,
    /// Visits that failed.
    pub n_failed: u64,
    /// Visits of pages that are gone or may not be fetched.
    pub n_gone: u64,
    /// Of them, those that led to another URL.
    pub n_redirected: u64,
    /// Pages given up because their host did not answer.
    pub n_given_up: u64,
    /// Documents that were archived whole and read in part only, because their codings are broken or a bomb.
    pub n_unread: u64,
    /// Captures that were analysed.
    pub n_analysed: u64,
    /// Words that pages show and that no block holds.
    pub n_lost_words: u64,
    /// Captures that wait for their analysis.
    pub n_analysing: u64,
    /// Bytes of bodies received.
    pub body_bytes: u64,
    /// Bytes that the WARC files grew by.
    pub stored_bytes: u64,
    /// Addresses that wait for their host.
    pub n_waiting: u64,
    /// Fetches in flight.
    pub n_active: u64,
    /// Pages that are known.
    pub n_known: u64,
    /// When the crawl began, on its own clock.
    pub began: Option<String>,
    /// The next visit, where there is nothing to do until then.
    #[serde(skip)]
    pub awaited: Option<ExpectedVisit>,
    /// When the crawl will next look for work.
    pub next_wakeup: Option<String>,
    /// Errors by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// Errors by host, the first thousand hosts.
    pub errors_by_host: BTreeMap<String, u64>,
    /// What happened last.
    #[serde(skip)]
    pub last: String,
}

impl CrawlLoop {
    pub(super) fn count(&mut self, record: &VisitRecord) {
        let status = &mut self.status;
        status.n_fetched += 1;
        status.n_pages += u64::from(record.target.kind == PageKind::Page);
        let endings = match record.target.kind {
            PageKind::Page => &mut status.pages,
            PageKind::Subresource | PageKind::Sitemap => &mut status.requisites,
            PageKind::Feed => &mut status.feeds,
        };
        endings.count(record.ending());
        status.n_unread += u64::from(record.is_unread());
        status.n_items += record.poll.as_ref().map_or(0, |poll| poll.n_new as u64);
        let both =
            |of: fn(&VisitCounts) -> u64| of(&status.pages) + of(&status.requisites) + of(&status.feeds);
        status.n_changed = both(|endings| endings.n_changed);
        status.n_unchanged = both(|endings| endings.n_unchanged);
        status.n_failed = both(|endings| endings.n_failed);
        status.n_gone = both(|endings| endings.n_gone);
        status.n_redirected = both(|endings| endings.n_redirected);
        status.body_bytes += record.body_bytes();
        status.stored_bytes += record.stored_bytes();
        if let Some(error) = record.error() {
            *status.errors.entry(error).or_default() += 1;
            if let Ok(Some(host)) = self.store.host_of(record.target.site)
                && (status.errors_by_host.len() < 1000 || status.errors_by_host.contains_key(&host))
            {
                *status.errors_by_host.entry(host).or_default() += 1;
            }
        }
    }

    pub(super) fn refresh(&mut self, end: Option<CrawlEnd>) -> &CrawlStatus {
        let next = self.policy.wakeup();
        self.status.n_waiting = self.policy.n_waiting();
        self.status.n_active = self.policy.n_active();
        self.status.n_known = self.policy.n_known();
        self.status.n_given_up = self.watcher.n_given_up + self.policy.n_given_up();
        self.status.n_analysing = self.policy.n_analysing() as u64;
        self.status.n_lost_words += self.shared.analyst.as_ref().map_or(0, |pages| pages.take_lost_words());
        self.status.awaited = if end.is_none() { self.awaited(next) } else { None };
        self.status.next_wakeup = next.filter(|_| end.is_none()).map(|at| at.to_rfc3339());
        self.status.end = end;
        &self.status
    }

    /// The visit that the crawl waits for, where it has nothing to do. When the list of the slot is used up the next slot has to
    /// be foreseen; that costs as much as a slot, so it is done once for each.
    fn awaited(&mut self, wakeup: Option<Timestamp>) -> Option<ExpectedVisit> {
        let n_working = self.policy.n_active() + self.policy.n_waiting() + self.policy.n_analysing() as u64;
        let wakeup = wakeup.filter(|_| n_working == 0 && !self.options.clock.is_time_lapse())?;
        if self.foreseen.as_ref().is_none_or(|(asked, _)| *asked != wakeup) {
            let visit = self.policy.next_visit(self.now());
            let awaited = visit.and_then(|(at, ranked)| {
                let url = self.store.url_of(ranked.page).ok()?;
                Some(ExpectedVisit { at, url, habit: ranked.habit() })
            });
            self.foreseen = Some((wakeup, awaited));
        }
        self.foreseen.as_ref().and_then(|(_, awaited)| awaited.clone())
    }
}
