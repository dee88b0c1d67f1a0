//! The counts of a crawl, for progress and summary.

use std::collections::BTreeMap;

use perennial_core::schedule::ReasonContext;
use perennial_core::time::Timestamp;

use super::CrawlLoop;
use super::record::VisitRecord;
use perennial_archive::store::{PageKind, VisitEnding};

#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrawlEnd {
    /// Nothing is left to do, or `limit` was reached.
    Done,
    Interrupted,
    SizeLimit,
    TimeLimit,
    /// perennial.toml changed. The crawl continues with the new settings.
    OtherSettings,
}

/// Counts of visits by their result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct VisitCounts {
    /// All visits.
    pub n_visits: u64,
    /// First captures.
    pub n_new: u64,
    /// Visits with changed content.
    pub n_changed: u64,
    /// Visits with the same content.
    pub n_unchanged: u64,
    pub n_failed: u64,
    /// Visits of pages that are gone.
    pub n_gone: u64,
    /// Visits of URLs that never had a page.
    pub n_missing: u64,
    /// Visits that robots.txt or the page forbids.
    pub n_refused: u64,
    /// Visits that were redirected.
    pub n_redirected: u64,
}

impl VisitCounts {
    pub(super) fn count(&mut self, ending: VisitEnding) {
        self.n_visits += 1;
        *match ending {
            VisitEnding::New => &mut self.n_new,
            VisitEnding::Changed => &mut self.n_changed,
            VisitEnding::Unchanged => &mut self.n_unchanged,
            VisitEnding::Failed => &mut self.n_failed,
            VisitEnding::Gone => &mut self.n_gone,
            VisitEnding::Missing => &mut self.n_missing,
            VisitEnding::Refused => &mut self.n_refused,
            VisitEnding::Redirected => &mut self.n_redirected,
        } += 1;
    }
}

/// The visit that an idle crawl waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedVisit {
    pub at: Timestamp,
    pub url: String,
    /// Why it is visited, in words.
    pub reason: String,
}

/// The counts of a crawl so far.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct CrawlStatus {
    /// Why it ended; none while it runs.
    pub end: Option<CrawlEnd>,
    /// Finished visits of pages.
    pub n_pages: u64,
    pub pages: VisitCounts,
    /// Visits of subresources (stylesheets, images, scripts) and sitemaps.
    pub subresources: VisitCounts,
    /// Polls of feeds.
    pub feeds: VisitCounts,
    /// New feed items.
    pub n_items: u64,
    /// All visits by their result.
    #[serde(flatten)]
    pub all: VisitCounts,
    /// Pages given up because their host did not respond.
    pub n_given_up: u64,
    /// Documents that were only partly read, because their content coding is broken or a bomb. Their records are
    /// complete.
    pub n_unread: u64,
    pub n_analysed: u64,
    /// Visible words that are in no block.
    pub n_lost_words: u64,
    /// Captures that wait for their analysis.
    pub n_analysing: u64,
    /// Received bytes of bodies.
    pub body_bytes: u64,
    /// Growth of the WARC files in bytes.
    pub stored_bytes: u64,
    /// URLs that wait for their host.
    pub n_waiting: u64,
    pub n_active: u64,
    /// Known pages.
    pub n_known: u64,
    /// When the crawl began, on its own clock.
    pub began: Option<String>,
    /// The next visit, if there is nothing to do until then.
    #[serde(skip)]
    pub awaited: Option<ExpectedVisit>,
    /// When the crawl will next look for work.
    pub next_wakeup: Option<String>,
    pub errors: BTreeMap<&'static str, u64>,
    /// Errors by host, for the first thousand hosts.
    pub errors_by_host: BTreeMap<String, u64>,
}

impl CrawlLoop {
    pub(super) fn count(&mut self, record: &VisitRecord) {
        let status = &mut self.status;
        status.n_pages += u64::from(record.target.kind == PageKind::Page);
        let endings = match record.target.kind {
            PageKind::Page => &mut status.pages,
            PageKind::Subresource | PageKind::Sitemap => &mut status.subresources,
            PageKind::Feed => &mut status.feeds,
        };
        endings.count(record.ending());
        status.n_unread += u64::from(record.is_unread());
        status.n_items += record.poll.as_ref().map_or(0, |poll| poll.n_new as u64);
        status.all.count(record.ending());
        status.body_bytes += record.body_bytes();
        status.stored_bytes += record.stored_bytes();
        if let Some(error) = record.error() {
            *status.errors.entry(error).or_default() += 1;
            if let Ok(Some(host)) = self.store.site_host(record.target.site)
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

    /// The visit that an idle crawl waits for, described once per wake-up.
    fn awaited(&mut self, wakeup: Option<Timestamp>) -> Option<ExpectedVisit> {
        let n_working = self.policy.n_active() + self.policy.n_waiting() + self.policy.n_analysing() as u64;
        let wakeup = wakeup.filter(|_| n_working == 0 && !self.options.clock.is_time_lapse())?;
        if self.foreseen.as_ref().is_none_or(|(wakeup_then, _)| *wakeup_then != wakeup) {
            let visit = self.policy.next_visit(self.now());
            let awaited = visit.and_then(|(at, ranked)| {
                let url = self.store.page_url(ranked.page).ok()?;
                let (habit, context) =
                    (ranked.habit(), ReasonContext { url: &url, ..ReasonContext::default() });
                let reason = ranked.reason.describe(&ReasonContext { habit: habit.as_deref(), ..context });
                Some(ExpectedVisit { at, reason, url })
            });
            self.foreseen = Some((wakeup, awaited));
        }
        self.foreseen.as_ref().and_then(|(_, awaited)| awaited.clone())
    }
}
