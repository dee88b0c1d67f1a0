//! What happens in a crawl, in one line per event: the start, first passes of sites, changes, failures, notices, idle
//! times.
//!
//! Whoever runs the crawl gives it a channel ([`super::CrawlOptions::events`]). Ordinary visits are not events, because
//! there are thousands of them; `crawl.log` has each.

use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::Sender;

use perennial_core::notice::ChangeKind;
use perennial_core::schedule::units::write_budget;
use perennial_core::text::untrusted::{quoted, shorten};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::{PageId, SiteId};
use perennial_engine::notify::Delivery;

use super::CrawlLoop;
use super::record::VisitRecord;
use super::status::{ExpectedVisit, VisitCounts};
use perennial_archive::Archive;
use perennial_archive::settings::Seeds;
use perennial_archive::store::{Analysis, FrontierPage, PageKind, VisitEnding};

/// Columns of a URL in a line.
const MAX_URL: usize = 200;
/// A shorter idle time is not an event, unless it is the first.
const MIN_IDLE: Span = Span::from_secs(60);
/// Idle times are reported at most this often.
const IDLE_EVERY: Span = Span::from_secs(600);
/// Most failing pages and hosts that are remembered, to report when they work again and not to repeat failures.
const MAX_REMEMBERED: usize = 10_000;

#[derive(Clone, PartialEq, Debug)]
pub enum CrawlEvent {
    /// The crawl began, or continues with changed settings.
    Started {
        n_sites: usize,
        n_pages: u64,
        /// The budget in force, in words.
        budget: String,
    },
    /// The start page of a site was captured for the first time.
    New {
        url: String,
    },
    /// All pages that are known of a site were visited once.
    FirstPass {
        site: String,
        counts: VisitCounts,
    },
    Changed {
        url: String,
        kind: ChangeKind,
        /// Importance; `None` without analysis.
        importance: f64,
        /// The most important part of the change.
        summary: Option<String>,
    },
    Failed {
        url: String,
        reason: String,
        /// Pages of its host that failed for this reason.
        n_pages: u64,
    },
    /// A page that failed was captured.
    WorksAgain {
        url: String,
        n_failures: u16,
    },
    /// The start page of a site redirects to a page that does not belong to a site.
    LeadsAway {
        url: String,
        to: String,
    },
    Notice(Delivery),
    /// Nothing is to do for a while.
    Idle {
        until: Timestamp,
        url: String,
        reason: String,
    },
    /// The budget is spent.
    Spent {
        until: Timestamp,
        n_unvisited: u64,
    },
}

impl fmt::Display for CrawlEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |url: &str| shorten(url, MAX_URL).into_owned();
        match self {
            CrawlEvent::Started { n_sites, n_pages, budget } => {
                write!(
                    f,
                    "crawling {}, {} known, {budget}",
                    counted(*n_sites as u64, "site"),
                    counted(*n_pages, "page")
                )
            }
            CrawlEvent::New { url } => write!(f, "first capture of {}", short(url)),
            CrawlEvent::FirstPass { site, counts } => {
                let VisitCounts { n_new, n_failed, n_missing, n_refused, n_redirected, .. } = *counts;
                write!(f, "first pass of {} is complete: {} captured", short(site), counted(n_new, "page"))?;
                let others = [
                    (n_redirected, "redirected"),
                    (n_missing, "missing"),
                    (n_refused, "refused"),
                    (n_failed, "failed"),
                ];
                others.iter().filter(|(n, _)| *n > 0).try_for_each(|(n, what)| write!(f, ", {n} {what}"))
            }
            CrawlEvent::Changed { url, kind, importance, summary } => {
                write!(f, "{} {} (importance {importance:.2})", kind.name(), short(url))?;
                match summary {
                    Some(summary) => write!(f, ": {summary}"),
                    None => Ok(()),
                }
            }
            CrawlEvent::Failed { url, reason, n_pages: 1 } => write!(f, "failed {}: {reason}", short(url)),
            CrawlEvent::Failed { url, reason, n_pages } => {
                write!(f, "failed {}: {reason} ({n_pages} pages of this host so far)", short(url))
            }
            CrawlEvent::WorksAgain { url, n_failures } => {
                let failures = counted(u64::from(*n_failures), "failed visit");
                write!(f, "works again after {failures}: {}", short(url))
            }
            CrawlEvent::LeadsAway { url, to } => write!(
                f,
                "{} redirects to {}, which belongs to no followed site: `perennial add {1}` follows it",
                short(url),
                short(to)
            ),
            CrawlEvent::Notice(delivery) => write!(f, "{delivery}"),
            CrawlEvent::Idle { until, url, reason } => {
                write!(f, "idle until {until}: then {} ({reason})", short(url))
            }
            CrawlEvent::Spent { until, n_unvisited: 0 } => {
                write!(f, "idle until {until}: the budget is spent")
            }
            CrawlEvent::Spent { until, n_unvisited } => write!(
                f,
                "idle until {until}: the budget is spent; {} not visited yet",
                counted(*n_unvisited, "page")
            ),
        }
    }
}

/// As in `1 page`, `2 pages`.
fn counted(n: u64, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// The pages of a site that were not visited yet, and the results of those that were.
#[derive(Default)]
struct FirstPass {
    n_left: u64,
    counts: VisitCounts,
}

/// Sends the events of a crawl.
pub(super) struct EventReporter {
    events: Sender<CrawlEvent>,
    /// Sites that have pages without a visit, by the number of their seed.
    passes: HashMap<i64, FirstPass>,
    /// Pages that failed since the host was well, by host, kind of error, and whether the page refuses visits.
    failures: HashMap<(SiteId, String, bool), u64>,
    /// When an idle time was reported last.
    idle_at: Option<Timestamp>,
    /// The end of the idle time that was reported last.
    idle_until: Option<Timestamp>,
}

impl EventReporter {
    pub(super) fn new(events: Sender<CrawlEvent>) -> EventReporter {
        EventReporter {
            events,
            passes: HashMap::new(),
            failures: HashMap::new(),
            idle_at: None,
            idle_until: None,
        }
    }

    pub(super) fn send(&self, event: CrawlEvent) {
        // Sending fails only if nobody listens any more.
        let _ = self.events.send(event);
    }

    /// Adds a page of an earlier crawl.
    pub(super) fn load(&mut self, known: &FrontierPage) {
        if known.kind == PageKind::Page && known.visited.is_none() {
            self.passes.entry(known.seed).or_default().n_left += 1;
        }
    }

    /// Pages that were never visited.
    pub(super) fn n_unvisited(&self) -> u64 {
        self.passes.values().map(|pass| pass.n_left).sum()
    }

    /// Reports what a visit of a page or feed means for people.
    pub(super) fn visited(&mut self, record: &VisitRecord, seeds: &Seeds) {
        let target = &record.target;
        for new in record.new_pages.iter().filter(|new| new.is_new && new.kind == PageKind::Page) {
            self.passes.entry(new.seed).or_default().n_left += 1;
        }
        if !matches!(target.kind, PageKind::Page | PageKind::Feed) {
            return;
        }
        self.report_result(record, seeds);
        if target.kind == PageKind::Page && target.visited.is_none() {
            self.count_first(record, seeds);
        }
    }

    fn report_result(&mut self, record: &VisitRecord, seeds: &Seeds) {
        let (target, ending) = (&record.target, record.ending());
        let url = target.url.clone();
        let is_start = target.depth == 0;
        match ending {
            VisitEnding::Failed | VisitEnding::Refused => self.report_failure(record),
            VisitEnding::Missing if is_start => self.report_failure(record),
            VisitEnding::Redirected if is_start => {
                if let Some(to) = record.redirect_target().filter(|to| seeds.of_page(to).is_none()) {
                    self.send(CrawlEvent::LeadsAway { url, to: to.to_string() });
                }
            }
            VisitEnding::New if is_start => self.send(CrawlEvent::New { url }),
            _ => {}
        }
        if record.is_observation() && target.n_failures > 0 {
            // The host is well again, so its next failure is news. What it refuses remains refused.
            self.failures.retain(|(site, _, is_refused), _| *site != target.site || *is_refused);
            self.send(CrawlEvent::WorksAgain { url: target.url.clone(), n_failures: target.n_failures });
        }
    }

    /// Reports the first failure of a host for a reason, and then the tenth, the hundredth and so on.
    fn report_failure(&mut self, record: &VisitRecord) {
        let Some(reason) = record.failure_words() else { return };
        let is_refused = record.ending() == VisitEnding::Refused;
        let key = (record.target.site, record.error().unwrap_or_default().to_owned(), is_refused);
        if self.failures.len() >= MAX_REMEMBERED {
            self.failures.clear();
        }
        let n_pages = self.failures.entry(key).or_default();
        *n_pages += 1;
        let n_pages = *n_pages;
        if 10u64.pow(n_pages.ilog10()) == n_pages {
            self.send(CrawlEvent::Failed { url: record.target.url.clone(), reason, n_pages });
        }
    }

    fn count_first(&mut self, record: &VisitRecord, seeds: &Seeds) {
        let Some(pass) = self.passes.get_mut(&record.target.seed) else { return };
        pass.n_left = pass.n_left.saturating_sub(1);
        pass.counts.count(record.ending());
        if pass.n_left == 0
            && let Some(seed) = seeds.with_number(record.target.seed)
            && let Some(pass) = self.passes.remove(&record.target.seed)
            // A site of one page is reported by its page.
            && pass.counts.n_visits > 1
        {
            self.send(CrawlEvent::FirstPass { site: seed.scope.seed.to_string(), counts: pass.counts });
        }
    }

    /// Reports the analysis of a page, if people would call it a change.
    pub(super) fn analysed(&self, url: String, analysis: &AnalysedChange) {
        let (kind, importance) = (analysis.kind, analysis.importance);
        self.send(CrawlEvent::Changed { url, kind, importance, summary: analysis.summary.clone() });
    }

    /// Reports that the crawl waits, unless it does so all the time.
    fn idle(&mut self, awaited: &ExpectedVisit, now: Timestamp) {
        if self.is_idle_news(awaited.at, now) {
            let (url, reason) = (awaited.url.clone(), awaited.reason.clone());
            self.send(CrawlEvent::Idle { until: awaited.at, url, reason });
        }
    }

    /// Reports that the budget is spent.
    fn spent(&mut self, until: Timestamp, now: Timestamp) {
        if self.is_idle_news(until, now) {
            self.send(CrawlEvent::Spent { until, n_unvisited: self.n_unvisited() });
        }
    }

    fn is_idle_news(&mut self, until: Timestamp, now: Timestamp) -> bool {
        let is_long = until - now >= MIN_IDLE;
        let is_due = self.idle_at.is_none_or(|at| now - at >= IDLE_EVERY);
        let is_news = self.idle_until.is_none_or(|before| now >= before) && is_long && is_due;
        if is_news {
            (self.idle_at, self.idle_until) = (Some(now), Some(until));
        }
        is_news
    }
}

/// A change as the analysis found it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct AnalysedChange {
    pub(super) page: PageId,
    kind: ChangeKind,
    importance: f64,
    summary: Option<String>,
}

impl AnalysedChange {
    /// `None` if the page is new or a reader sees no difference.
    pub(super) fn new(analysis: &Analysis) -> Option<AnalysedChange> {
        let status = analysis.status;
        if !status.is_new_version() || status == perennial_core::page::change_status::ChangeStatus::New {
            return None;
        }
        let title = analysis.title.as_ref().filter(|_| analysis.title_before.is_some());
        let retitled = title.map(|title| format!("now titled {}", quoted(title)));
        Some(AnalysedChange {
            page: analysis.page,
            kind: ChangeKind::from_status(status, title.is_some()),
            importance: status.reported_importance().get(),
            summary: analysis.summary.clone().or(retitled),
        })
    }
}

impl CrawlLoop {
    /// Reports what is crawled, and within which budget.
    pub(super) fn report_start(&self, archive: &Archive) {
        let Some(reporter) = self.reporter.as_ref().filter(|_| self.options.only.is_empty()) else { return };
        let written = archive.settings().crawl.allowance.visits;
        let budget = match (self.options.budget, written) {
            (Some(budget), _) => format!("budget {} (--budget)", write_budget(budget)),
            (None, Some(budget)) => format!("budget {} (perennial.toml)", write_budget(budget)),
            (None, None) => "no budget".to_owned(),
        };
        let n_sites = self.shared.seeds.iter().filter(|seed| !seed.paused).count();
        reporter.send(CrawlEvent::Started { n_sites, n_pages: self.policy.n_known(), budget });
    }

    /// Reports that nothing is to do, if so. Under a virtual clock waiting takes no time.
    pub(super) fn report_idle(&mut self) {
        let now = self.now();
        let spent = self.policy.spent_until(now);
        let Some(reporter) = &mut self.reporter else { return };
        match (&self.status.awaited, spent) {
            _ if self.options.clock.is_time_lapse() => {}
            (Some(_), Some(until)) => reporter.spent(until, now),
            (Some(awaited), None) => reporter.idle(awaited, now),
            (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use perennial_core::url::scope::Scope;

    use super::super::failure::VisitFailure;
    use super::super::record::NewPage;
    use super::super::record::samples::{SEED, SITE, failed, found, responded, target};
    use super::*;
    use perennial_archive::settings::Seed;
    use perennial_archive::store::VisitTarget;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(1_000_000 + secs)
    }

    fn seeds() -> Seeds {
        let url = url::Url::parse("http://a.example/").unwrap();
        let seed = Seed::of_host(url);
        let scope = Scope { max_depth: Some(9), ..seed.scope.clone() };
        Seeds::new(vec![Seed { scope, ..seed }]).numbered(vec![SEED])
    }

    fn reporter() -> (EventReporter, Receiver<CrawlEvent>) {
        let (sender, receiver) = channel();
        (EventReporter::new(sender), receiver)
    }

    fn lines(receiver: &Receiver<CrawlEvent>) -> Vec<String> {
        receiver.try_iter().map(|event| event.to_string()).collect()
    }

    fn link(page: u32) -> NewPage {
        NewPage {
            page: PageId(page),
            site: SITE,
            kind: PageKind::Page,
            seed: SEED,
            url: format!("http://a.example/{page}"),
            changed: None,
            item: None,
            is_new: true,
        }
    }

    #[test]
    fn a_first_pass_ends_with_the_last_page_and_is_reported_once() {
        let (mut reporter, receiver) = reporter();
        let seeds = seeds();
        let start = FrontierPage {
            page: PageId(1),
            site: SITE,
            url: "http://a.example/1".into(),
            kind: PageKind::Page,
            seed: SEED,
            depth: 0,
            visited: None,
            ending: None,
            n_failures: 0,
        };
        reporter.load(&start);
        let mut first = found(PageId(1), PageKind::Page, at(0));
        first.target.depth = 0;
        first.new_pages = vec![link(2), link(3)];
        reporter.visited(&first, &seeds);
        assert_eq!(lines(&receiver), ["first capture of http://a.example/1"]);
        reporter.visited(&found(PageId(2), PageKind::Page, at(3)), &seeds);
        assert_eq!((lines(&receiver).len(), reporter.n_unvisited()), (0, 1));
        reporter.visited(&responded(PageId(3), PageKind::Page, 404, at(6)), &seeds);
        assert_eq!(
            lines(&receiver),
            ["first pass of http://a.example/ is complete: 2 pages captured, 1 missing"]
        );
        let mut again = found(PageId(2), PageKind::Page, at(9));
        again.target.visited = Some(at(3));
        reporter.visited(&again, &seeds);
        assert!(lines(&receiver).is_empty());
    }

    #[test]
    fn failures_of_a_host_are_not_repeated_for_each_page() {
        let (mut reporter, receiver) = reporter();
        let seeds = seeds();
        for page in 0..25 {
            reporter.visited(&failed(PageId(page), 1, at(0)), &seeds);
        }
        assert_eq!(
            lines(&receiver),
            [
                "failed http://a.example/0: no response within 60s",
                "failed http://a.example/9: no response within 60s (10 pages of this host so far)"
            ]
        );
        let works = found(PageId(3), PageKind::Page, at(9));
        let target = VisitTarget { n_failures: 2, visited: Some(at(0)), ..target(PageId(3), PageKind::Page) };
        reporter.visited(&VisitRecord { target, ..works }, &seeds);
        reporter.visited(&failed(PageId(4), 1, at(20)), &seeds);
        assert_eq!(
            lines(&receiver),
            [
                "works again after 2 failed visits: http://a.example/3",
                "failed http://a.example/4: no response within 60s"
            ]
        );
    }

    #[test]
    fn what_robots_txt_forbids_is_not_repeated_between_pages_that_it_allows() {
        let (mut reporter, receiver) = reporter();
        let seeds = seeds();
        for page in 0..9 {
            let refused = found(PageId(page), PageKind::Page, at(0));
            let refused = VisitRecord { response: Err(VisitFailure::RobotsDisallowed), ..refused };
            reporter.visited(&refused, &seeds);
            reporter.visited(&found(PageId(100 + page), PageKind::Page, at(0)), &seeds);
        }
        assert_eq!(lines(&receiver), ["failed http://a.example/0: robots.txt forbids it"]);
    }

    #[test]
    fn idle_times_are_reported_at_most_every_ten_minutes() {
        let (mut reporter, receiver) = reporter();
        let awaited = |secs| ExpectedVisit {
            at: at(secs),
            url: "http://a.example/".into(),
            reason: "last seen today".into(),
        };
        reporter.idle(&awaited(30), at(0));
        assert!(lines(&receiver).is_empty(), "too short");
        reporter.idle(&awaited(300), at(0));
        reporter.idle(&awaited(300), at(1));
        reporter.idle(&awaited(600), at(301));
        assert_eq!(
            lines(&receiver),
            [format!("idle until {}: then http://a.example/ (last seen today)", at(300))]
        );
        reporter.spent(at(3600), at(601));
        assert_eq!(lines(&receiver), [format!("idle until {}: the budget is spent", at(3600))]);
    }
}
