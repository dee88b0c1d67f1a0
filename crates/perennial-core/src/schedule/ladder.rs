//! Pages by the gain of a visit: a ladder whose rungs are 5 % apart, and the instants at which pages climb.
//!
//! Gains follow from rates, so the instant at which a page reaches the next rung is known. Nobody looks at a page
//! before, and the best page is at the top whatever the price of a visit. Pages on one rung are served in the order
//! in which they came to it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Rungs for a factor of e.
const RUNGS: f32 = 20.0;
/// Smaller gains count as none.
pub(super) const LEAST_GAIN: f32 = 1e-30;
const NOWHERE: i16 = i16::MIN;

#[derive(Clone, Default)]
struct Rung {
    /// Positions with their stamps. An entry is outdated if the stamp is not the page's.
    queue: VecDeque<(u32, u32)>,
    n_pages: u32,
}

/// All pages that wait for a visit or for an instant.
#[derive(Clone, Default)]
pub(super) struct Ladder {
    rungs: BTreeMap<i16, Rung>,
    /// The instants at which pages are considered again: second, position, stamp.
    timers: BinaryHeap<Reverse<(u32, u32, u32)>>,
    /// By position: the rung, and a number that makes earlier entries outdated.
    rung: Vec<i16>,
    stamp: Vec<u32>,
    n_pages: usize,
}

fn rung_of(gain: f32) -> i16 {
    (gain.max(LEAST_GAIN).ln() * RUNGS).floor().clamp(-30_000.0, 30_000.0) as i16
}

/// The gain at which a rung begins.
fn gain_of(rung: i16) -> f32 {
    (f32::from(rung) / RUNGS).exp()
}

/// The gain at which a page climbs to the rung above.
pub(super) fn next_gain(gain: f32) -> f32 {
    gain_of(rung_of(gain).saturating_add(1))
}

impl Ladder {
    /// Bytes a page, without those in queues.
    pub(super) const BYTES_PER_PAGE: usize = 2 + 4 + 12;

    pub(super) fn grow(&mut self, n: usize) {
        if self.rung.len() < n {
            self.rung.resize(n, NOWHERE);
            self.stamp.resize(n, 0);
        }
    }

    /// Takes a page off its rung and forgets its timer.
    pub(super) fn remove(&mut self, at: usize) {
        self.stamp[at] = self.stamp[at].wrapping_add(1);
        let rung = std::mem::replace(&mut self.rung[at], NOWHERE);
        if rung != NOWHERE {
            self.n_pages -= 1;
            if let Some(rung) = self.rungs.get_mut(&rung) {
                rung.n_pages -= 1;
            }
        }
    }

    /// Puts a page on the rung of its gain. It is on none before.
    pub(super) fn put(&mut self, at: usize, gain: f32) {
        let place = rung_of(gain);
        self.rung[at] = place;
        self.n_pages += 1;
        let rung = self.rungs.entry(place).or_default();
        rung.n_pages += 1;
        rung.queue.push_back((at as u32, self.stamp[at]));
    }

    pub(super) fn set_timer(&mut self, at: usize, secs: u32) {
        self.timers.push(Reverse((secs, at as u32, self.stamp[at])));
    }

    /// The next page whose timer is due. It has no timer afterwards.
    pub(super) fn ring(&mut self, secs: u32) -> Option<usize> {
        while let Some(&Reverse((when, at, stamp))) = self.timers.peek() {
            if when > secs {
                return None;
            }
            self.timers.pop();
            if self.stamp[at as usize] == stamp {
                return Some(at as usize);
            }
        }
        None
    }

    /// When a timer may be due.
    pub(super) fn next_ring(&self) -> Option<u32> {
        self.timers.peek().map(|Reverse((when, _, _))| *when)
    }

    /// The page with the highest gain and the least that it gains.
    pub(super) fn top(&mut self) -> Option<(usize, f32)> {
        loop {
            let mut last = self.rungs.last_entry()?;
            let (rung, stamps) = (*last.key(), &self.stamp);
            let queue = &mut last.get_mut().queue;
            while queue.front().is_some_and(|(at, stamp)| stamps[*at as usize] != *stamp) {
                queue.pop_front();
            }
            match queue.front() {
                Some((at, _)) => return Some((*at as usize, gain_of(rung))),
                None => last.remove(),
            };
        }
    }

    /// The least that the n-th best page gains; 0 if there are fewer.
    pub(super) fn nth_gain(&self, n: u32) -> f32 {
        let mut n_above = 0;
        let mut down = self.rungs.iter().rev();
        down.find_map(|(rung, here)| {
            n_above += here.n_pages;
            (n_above >= n).then(|| gain_of(*rung))
        })
        .unwrap_or(0.0)
    }

    /// The page at the top.
    pub(super) fn best(&self) -> Option<usize> {
        let queues = self.rungs.values().rev().filter(|here| here.n_pages > 0).map(|here| &here.queue);
        let is_valid = |(at, stamp): &&(u32, u32)| self.stamp[*at as usize] == *stamp;
        queues.flatten().find(is_valid).map(|(at, _)| *at as usize)
    }

    /// The least that the pages on the highest rung gain.
    pub(super) fn best_gain(&self) -> Option<f32> {
        self.rungs.iter().rev().find(|(_, here)| here.n_pages > 0).map(|(rung, _)| gain_of(*rung))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.n_pages == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_page_is_on_top_and_equal_ones_come_in_order() {
        let mut ladder = Ladder::default();
        ladder.grow(5);
        for (at, gain) in [(0, 0.2), (1, 7.0), (2, 0.201), (3, 7.01), (4, 1e-40)] {
            ladder.put(at, gain);
        }
        ladder.remove(1);
        let mut order = Vec::new();
        while let Some((at, gain)) = ladder.top() {
            order.push((at, gain));
            ladder.remove(at);
        }
        assert_eq!(order.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [3, 0, 2, 4]);
        assert!(order[0].1 <= 7.01 && order[0].1 > 0.94 * 7.01 && ladder.is_empty());
        assert!(next_gain(7.01) > 7.01 && next_gain(7.01) < 7.01 * 1.06);
    }

    #[test]
    fn the_gain_of_a_rank_counts_only_pages_that_are_there() {
        let mut ladder = Ladder::default();
        ladder.grow(10);
        (0..10).for_each(|at| ladder.put(at, (at + 1) as f32));
        ladder.remove(9);
        assert!((ladder.nth_gain(1) - 9.0).abs() < 0.5 && (ladder.nth_gain(9) - 1.0).abs() < 0.1);
        assert_eq!(ladder.nth_gain(10), 0.0);
    }

    #[test]
    fn a_timer_rings_once_and_not_for_a_page_that_moved() {
        let mut ladder = Ladder::default();
        ladder.grow(2);
        ladder.set_timer(0, 10);
        ladder.set_timer(1, 5);
        ladder.remove(1);
        assert_eq!((ladder.ring(9), ladder.ring(10), ladder.ring(99)), (None, Some(0), None));
    }
}
