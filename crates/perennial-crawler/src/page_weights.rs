//! Links between captured pages and the user's weights of sites -> omega(P) of every page, as the archive grows
//! (P-PATTERN 3.1; docs/papers.md, Page weight).
//!
//! PageRank is computed again when a quarter more pages have been captured than at the last time, because only captured
//! pages have known links, and once a day because links change. It runs on a thread of its own, because a million pages
//! take a second.

use std::thread::JoinHandle;

use perennial_core::schedule::Scheduler;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use perennial_archive::Archive;
use perennial_engine::learn::{page_ranks, set_weights};

/// PageRank is computed again when the captured pages have grown by this factor.
const GROWTH: f64 = 1.25;
/// PageRank is computed again after this time at the latest.
const MAX_AGE: Span = Span::from_hours(24);

/// omega(P) of the pages that the crawl knows.
pub(super) struct PageWeights {
    archive: Archive,
    /// The user's weight of each page, by number; 0 where the crawl does not know the page.
    user: Vec<f32>,
    /// Pages that were captured, by number.
    is_captured: Vec<bool>,
    n_captured: usize,
    ranks: Vec<f32>,
    /// How many pages were captured when ranking last began, and when that was.
    ranked: (usize, Option<Timestamp>),
    work: Option<JoinHandle<anyhow::Result<Vec<f32>>>>,
}

impl PageWeights {
    pub(super) fn new(archive: &Archive) -> PageWeights {
        PageWeights {
            archive: archive.clone(),
            user: Vec::new(),
            is_captured: Vec::new(),
            n_captured: 0,
            ranks: Vec::new(),
            ranked: (0, None),
            work: None,
        }
    }

    /// Adds a page with the user's weight of it.
    pub(super) fn add(&mut self, page: PageId, user: f32) {
        let at = page.0 as usize;
        if at >= self.user.len() {
            self.user.resize(at + 1, 0.0);
        }
        self.user[at] = user;
    }

    /// Notes that a page was captured, so that its links are known.
    pub(super) fn mark_captured(&mut self, page: PageId) {
        let at = page.0 as usize;
        if at >= self.is_captured.len() {
            self.is_captured.resize(at + 1, false);
        }
        self.n_captured += usize::from(!self.is_captured[at]);
        self.is_captured[at] = true;
    }

    /// Ranks on this thread, at the start of a crawl.
    pub(super) fn rank_now(&mut self, scheduler: &mut Scheduler, now: Timestamp) -> anyhow::Result<()> {
        self.ranked = (self.n_captured, Some(now));
        self.ranks = page_ranks(&self.archive.store()?, &[])?;
        self.update_scheduler(scheduler);
        Ok(())
    }

    /// Starts ranking when it is due, and tells the scheduler when it is done. With `at_once` it waits for the result: a clock
    /// that leaps stands still meanwhile.
    pub(super) fn update(
        &mut self,
        scheduler: &mut Scheduler,
        now: Timestamp,
        at_once: bool,
    ) -> anyhow::Result<()> {
        if at_once && self.is_due(now) {
            return self.rank_now(scheduler, now);
        }
        if let Some(done) = self.work.take_if(|work| work.is_finished()) {
            self.ranks = done.join().map_err(|_| anyhow::anyhow!("ranking failed unexpectedly"))??;
            self.update_scheduler(scheduler);
        }
        if self.work.is_none() && self.is_due(now) {
            self.ranked = (self.n_captured, Some(now));
            let (archive, start) = (self.archive.clone(), self.ranks.clone());
            let rank = move || page_ranks(&archive.store()?, &start);
            self.work = Some(std::thread::Builder::new().name("ranking".into()).spawn(rank)?);
        }
        Ok(())
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let (n_ranked, at) = self.ranked;
        let has_grown = self.n_captured as f64 > GROWTH * n_ranked as f64;
        has_grown || at.is_none_or(|at| now - at >= MAX_AGE)
    }

    fn update_scheduler(&self, scheduler: &mut Scheduler) {
        set_weights(&self.ranks, &self.user, scheduler);
    }
}
