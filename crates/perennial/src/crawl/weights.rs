//! The archive's own links, and what the user says of sites -> omega(P) of every page, as the archive grows (SPEC 6).
//!
//! PageRank is computed anew when a quarter more pages have been captured than at the last time, since only then their
//! links are known, and once a day because links change; on a thread of its own, since a million pages take a second.

use std::thread::JoinHandle;

use perennial_core::page::PageId;
use perennial_core::schedule::Scheduler;
use perennial_core::time::{Span, Timestamp};

use crate::archive::Archive;
use crate::learn::{page_ranks, set_weights};

/// So many more pages with known links make the ranks old.
const GROWTH: f64 = 1.25;
/// So much time does too.
const LONGEST: Span = Span::from_hours(24);

/// omega(P) of the pages that the crawl knows.
pub(super) struct Weights {
    archive: Archive,
    /// What the user says of each page, by number; 0 where the crawl does not know the page.
    user: Vec<f32>,
    /// Pages that were captured, by number.
    is_captured: Vec<bool>,
    n_captured: usize,
    ranks: Vec<f32>,
    /// Pages that were captured, and when, when ranking last began.
    ranked: (usize, Option<Timestamp>),
    work: Option<JoinHandle<anyhow::Result<Vec<f32>>>>,
}

impl Weights {
    /// Knows no page yet.
    pub(super) fn new(archive: &Archive) -> Weights {
        Weights {
            archive: archive.clone(),
            user: Vec::new(),
            is_captured: Vec::new(),
            n_captured: 0,
            ranks: Vec::new(),
            ranked: (0, None),
            work: None,
        }
    }

    /// Takes note of a page and of what the user says of it.
    pub(super) fn add(&mut self, page: PageId, user: f32) {
        let at = page.0 as usize;
        if at >= self.user.len() {
            self.user.resize(at + 1, 0.0);
        }
        self.user[at] = user;
    }

    /// Takes note that a page was captured, and its links are known.
    pub(super) fn saw(&mut self, page: PageId) {
        let at = page.0 as usize;
        if at >= self.is_captured.len() {
            self.is_captured.resize(at + 1, false);
        }
        self.n_captured += usize::from(!self.is_captured[at]);
        self.is_captured[at] = true;
    }

    /// Ranks at once; for the start of a crawl.
    pub(super) fn rank_now(&mut self, scheduler: &mut Scheduler, now: Timestamp) -> anyhow::Result<()> {
        self.ranked = (self.n_captured, Some(now));
        self.ranks = page_ranks(&self.archive.store()?, &[])?;
        self.tell(scheduler);
        Ok(())
    }

    /// Starts ranking when it is time, and tells the scheduler when it is done; `at_once`, where time stands still
    /// meanwhile.
    pub(super) fn keep_up(
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
            self.tell(scheduler);
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
        has_grown || at.is_none_or(|at| now - at >= LONGEST)
    }

    fn tell(&self, scheduler: &mut Scheduler) {
        set_weights(&self.ranks, &self.user, scheduler);
    }
}
