//! When a page changed, as its feed tells -> what the learner takes in at the next look.
//!
//! A look says only that something changed since the one before, and how much. The items of a feed say when each of them came, so that the
//! time between two looks falls into moments with a change and stretches without one.

use std::collections::HashMap;

use super::{Scheduler, learn::Learner, pages::Pages};
use crate::time::{LocalClock, Timestamp};
use crate::url::PageId;

/// A change is told to this precision.
const MOMENT_SECS: u32 = 600;
/// Times of one page that are kept until it is looked at.
const MAX_TIMES: usize = 64;
/// Pages of which times are kept.
const MAX_PAGES: usize = 100_000;

/// Times of changes since the last look, by page, ascending.
#[derive(Clone, Default)]
pub(super) struct Told {
    times: HashMap<PageId, Vec<u32>>,
}

impl Told {
    fn note(&mut self, page: PageId, secs: u32) {
        if self.times.len() >= MAX_PAGES && !self.times.contains_key(&page) {
            return;
        }
        let times = self.times.entry(page).or_default();
        if let Err(place) = times.binary_search(&secs) {
            times.insert(place, secs);
            if times.len() > MAX_TIMES {
                times.remove(0);
            }
        }
    }

    /// The times between two looks; all others of the page are forgotten.
    pub(super) fn take(&mut self, page: PageId, (from, to): (u32, u32)) -> Vec<u32> {
        let mut times = self.times.remove(&page).unwrap_or_default();
        times.retain(|&time| from < time && time < to);
        times
    }
}

impl Scheduler {
    /// A feed told when a page changed. Nothing is planned by it: the page's pattern learns from it once a look finds the change.
    pub fn tell_change(&mut self, page: PageId, at: Timestamp) {
        let Some(position) = self.pages.position(page) else { return };
        let secs = self.secs(at);
        if secs > self.pages.seen_at[position] {
            self.told.note(page, secs);
        }
    }
}

impl Learner {
    /// Takes in a look at `to`, with the times at which the page changed since `from` as far as they are known.
    pub(super) fn observe_told(
        &mut self,
        pages: &mut Pages,
        clock: &LocalClock,
        at: usize,
        (from, to): (u32, u32),
        times: &[u32],
        importance: Option<f32>,
    ) {
        let Some(importance) = importance.filter(|_| !times.is_empty()) else {
            return self.observe(pages, clock, at, (from, to), importance);
        };
        let each = self.importance_of_each(importance, times.len());
        let mut before = from;
        for &time in times {
            // Nothing came until shortly before it did, or the feed would tell.
            let until = time.saturating_sub(MOMENT_SECS);
            if until > before {
                self.observe(pages, clock, at, (before, until), None);
                before = until;
            }
            self.observe(pages, clock, at, (before, time), Some(each));
            before = time;
        }
        self.observe(pages, clock, at, (before, to), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_between_two_looks() {
        let mut told = Told::default();
        for secs in [30, 10, 20, 20, 50] {
            told.note(PageId(1), secs);
        }
        assert_eq!(told.take(PageId(1), (10, 50)), [20, 30]);
        assert!(told.take(PageId(1), (0, 99)).is_empty(), "they were taken");
        (0..200).for_each(|secs| told.note(PageId(2), secs));
        assert_eq!(told.take(PageId(2), (0, 999)).len(), MAX_TIMES);
    }
}
