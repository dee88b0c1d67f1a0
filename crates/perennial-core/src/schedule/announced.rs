//! Change times from feeds -> input for the learner at the next observation.
//!
//! An observation shows only that something changed since the previous one, and how much. The items of a feed have
//! dates. They divide the time between two observations into moments with a change and spans without one.

use std::collections::HashMap;

use super::{Scheduler, learn::Learner, pages::PageColumns};
use crate::time::{LocalClock, Timestamp};
use crate::url::PageId;

/// The assumed precision of a change time.
const MOMENT_SECS: u32 = 600;
/// Times kept per page until its next observation.
const MAX_TIMES: usize = 64;
/// Pages whose times are kept.
const MAX_PAGES: usize = 100_000;

/// Times of changes since the last observation, by page, ascending.
#[derive(Clone, Default)]
pub(super) struct AnnouncedTimes {
    times: HashMap<PageId, Vec<u32>>,
}

impl AnnouncedTimes {
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

    /// Returns the times between two observations and forgets all others of the page.
    pub(super) fn take(&mut self, page: PageId, (from, to): (u32, u32)) -> Vec<u32> {
        let mut times = self.times.remove(&page).unwrap_or_default();
        times.retain(|&time| from < time && time < to);
        times
    }
}

impl Scheduler {
    /// Records when a page changed, according to its feed. This plans no visit: the pattern learns from it once an
    /// observation confirms the change.
    pub fn note_change_time(&mut self, page: PageId, at: Timestamp) {
        let Some(position) = self.pages.position(page) else { return };
        let secs = self.secs(at);
        if secs > self.pages.seen_at[position] {
            self.announced.note(page, secs);
        }
    }
}

impl Learner {
    /// Records an observation at `to` with the known times of changes since `from`.
    pub(super) fn observe_announced(
        &mut self,
        pages: &mut PageColumns,
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
            // If an item had come earlier, the feed would show it.
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
    fn times_between_two_observations_are_taken() {
        let mut announced = AnnouncedTimes::default();
        for secs in [30, 10, 20, 20, 50] {
            announced.note(PageId(1), secs);
        }
        assert_eq!(announced.take(PageId(1), (10, 50)), [20, 30]);
        assert!(announced.take(PageId(1), (0, 99)).is_empty(), "they were taken");
        (0..200).for_each(|secs| announced.note(PageId(2), secs));
        assert_eq!(announced.take(PageId(2), (0, 999)).len(), MAX_TIMES);
    }
}
