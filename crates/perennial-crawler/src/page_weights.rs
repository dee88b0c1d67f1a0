//! Computes omega(P) of every page from links and the user's weights, as the archive grows (P-PATTERN 3.1;
//! docs/papers.md, Page weight).
//!
//! Only captured pages have known links. So PageRank is computed again when the number of captured pages has grown by
//! a quarter, and once per day. It has its own thread, because a million pages take a second.

use std::thread::JoinHandle;

use perennial_core::schedule::Scheduler;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use perennial_archive::Archive;
use perennial_engine::learn::{page_ranks, set_weights};

/// Growth of the captured pages after which PageRank is computed again.
const GROWTH: f64 = 1.25;
/// Longest time between two computations.
const MAX_AGE: Span = Span::from_hours(24);

pub(super) struct PageWeights {
    archive: Archive,
    /// The user's weight of each page, by number; 0 for unknown pages.
    user: Vec<f32>,
    /// Whether a page was captured, by number.
    is_captured: Vec<bool>,
    n_captured: usize,
    ranks: Vec<f32>,
    /// Number of captured pages when the last computation started, and its time.
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

    /// Adds a page with the user's weight.
    pub(super) fn add(&mut self, page: PageId, user: f32) {
        let at = page.0 as usize;
        if at >= self.user.len() {
            self.user.resize(at + 1, 0.0);
        }
        self.user[at] = user;
    }

    /// Marks a page as captured, so its links are known.
    pub(super) fn mark_captured(&mut self, page: PageId) {
        let at = page.0 as usize;
        if at >= self.is_captured.len() {
            self.is_captured.resize(at + 1, false);
        }
        self.n_captured += usize::from(!self.is_captured[at]);
        self.is_captured[at] = true;
    }

    /// Computes on this thread, at the start of a crawl.
    pub(super) fn rank_now(&mut self, scheduler: &mut Scheduler, now: Timestamp) -> anyhow::Result<()> {
        self.ranked = (self.n_captured, Some(now));
        self.ranks = page_ranks(&self.archive.store()?, &[])?;
        self.update_scheduler(scheduler);
        Ok(())
    }

    /// Starts a computation if it is due, and passes a finished result to the scheduler. With `at_once` it waits for
    /// the result, because a leaping clock does not advance meanwhile.
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
