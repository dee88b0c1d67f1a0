//! Publishes what the crawl does and plans in `crawl.json`, for the dashboard and other commands.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use perennial_core::schedule::units::write_budget;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;

use super::CrawlLoop;
use super::options::CrawlOptions;
use perennial_archive::{Archive, CrawlRecord, FetchInProgress};
use perennial_engine::learn::{NextVisit, VisitDescriber};

/// The record is written at most this often.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// The plan is made at most this often.
const PLAN_EVERY: Duration = Duration::from_secs(10);
/// Making the plan takes at most this share of the loop's time, because it copies the scheduler.
const PLAN_SHARE: u32 = 100;
/// Visits in the published plan.
const N_PLANNED: usize = 100;

/// What is published, and when it was last written.
pub(super) struct Publisher {
    archive: Archive,
    record: CrawlRecord,
    /// Visits in flight: the page and when its visit started.
    fetching: BTreeMap<PageId, FetchInProgress>,
    written_at: Option<Instant>,
    /// When the next plan may be made.
    plan_due: Instant,
}

impl Publisher {
    /// `None` under a virtual clock, because its times mean nothing to others.
    pub(super) fn new(archive: &Archive, options: &CrawlOptions, now: Timestamp) -> Option<Publisher> {
        if options.clock.is_time_lapse() {
            return None;
        }
        let written = archive.settings().crawl.allowance.visits;
        let record = CrawlRecord {
            process: std::process::id(),
            began: now.to_rfc3339(),
            budget: options.budget.or(written).map(write_budget),
            is_budget_given: options.budget.is_some(),
            goal: options.goal.map(|goal| goal.name().to_owned()),
            strategy: options.strategy.name().to_owned(),
            varying_budget: options.varying_budget,
            interval_secs: options.interval.map(|interval| interval.as_millis() / 1000),
            ..CrawlRecord::default()
        };
        let fetching = BTreeMap::new();
        Some(Publisher {
            archive: archive.clone(),
            record,
            fetching,
            written_at: None,
            plan_due: Instant::now(),
        })
    }

    pub(super) fn begin(&mut self, page: PageId, url: &str, now: Timestamp) {
        self.fetching.insert(page, FetchInProgress { url: url.to_owned(), since: now.to_rfc3339() });
    }

    pub(super) fn end(&mut self, page: PageId) {
        self.fetching.remove(&page);
    }

    /// Writes what has changed. A failure is not reported: others then see an old record, and the crawl is not harmed.
    fn write(&mut self, n_waiting: u64, now: Timestamp, is_last: bool) {
        if !is_last && self.written_at.is_some_and(|at| at.elapsed() < WRITE_EVERY) {
            return;
        }
        let mut fetching: Vec<FetchInProgress> = self.fetching.values().cloned().collect();
        fetching.sort_by(|a, b| a.since.cmp(&b.since));
        let record =
            CrawlRecord { fetching, n_waiting, updated: self.record.updated.clone(), ..self.record.clone() };
        if self.written_at.is_none() || record != self.record {
            self.record = CrawlRecord { updated: now.to_rfc3339(), ..record };
            let _ = self.record.save(self.archive.root());
            self.written_at = Some(Instant::now());
        }
    }
}

impl CrawlLoop {
    /// Publishes the state of the crawl, and from time to time its plan.
    pub(super) fn publish(&mut self, is_last: bool) {
        let now = self.now();
        let is_due = self.publisher.as_ref().is_some_and(|publisher| publisher.plan_due <= Instant::now());
        if is_due && !is_last {
            let started = Instant::now();
            let plan = self.planned(now).unwrap_or_default();
            if let Some(publisher) = &mut self.publisher {
                let pause = (started.elapsed() * PLAN_SHARE).max(PLAN_EVERY);
                publisher.plan_due = Instant::now() + pause;
                publisher.record.planned = Some(now.to_rfc3339());
                publisher.record.plan = plan;
                // The plan is part of what has changed.
                publisher.written_at = None;
            }
        }
        let n_waiting = self.policy.n_waiting();
        if let Some(publisher) = &mut self.publisher {
            if is_last {
                publisher.fetching.clear();
                publisher.record.plan.clear();
            }
            publisher.write(n_waiting, now, is_last);
        }
    }

    fn planned(&self, now: Timestamp) -> anyhow::Result<Vec<serde_json::Value>> {
        let described = VisitDescriber { store: &self.store, followed: self.policy.followed() };
        let mut visits: Vec<NextVisit> = Vec::new();
        for (at, ranked) in self.policy.next_visits(now, N_PLANNED) {
            visits.push(described.entry(Some(at), &ranked)?);
        }
        Ok(visits.iter().map(serde_json::to_value).collect::<Result<_, _>>()?)
    }
}
