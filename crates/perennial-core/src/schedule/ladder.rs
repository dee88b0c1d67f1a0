//! Pages by the gain of a visit: a ladder whose rungs are 5 % apart, and the instants at which pages climb.
//!
//! Gains follow from rates, so the instant at which a page reaches the next rung is known. Nobody looks at a page
//! before, and the best page is at the top whatever the price of a visit. Pages on one rung are served in the order
//! in which they came to it.

use std::collections::BTreeMap;

use super::pages::NONE;
use super::timers::Timers;

/// Rungs for a factor of e. A finer ladder orders pages better and makes them climb more often. With 5 % the order is
/// more precise than any estimate of a rate.
const RUNGS: f32 = 20.0;
/// Smaller gains count as none. Far below what any page gains within a week, and far above what `f32` cannot hold.
pub(super) const LEAST_GAIN: f32 = 1e-30;
const NOWHERE: i16 = i16::MIN;

/// The first and last page of a rung, and how many there are.
#[derive(Clone, Copy)]
struct Rung {
    first: u32,
    last: u32,
    n_pages: u32,
}

/// The neighbours of a page on its rung.
#[derive(Clone, Copy)]
struct Neighbours {
    before: u32,
    after: u32,
}

/// All pages that wait for a visit or for an instant. A page is on one rung at most, so rungs are linked lists through
/// the pages.
#[derive(Clone, Default)]
pub(super) struct Ladder {
    rungs: BTreeMap<i16, Rung>,
    /// By position.
    rung: Vec<i16>,
    neighbours: Vec<Neighbours>,
    /// The instants at which pages are looked at again.
    pub(super) timers: Timers,
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
    pub(super) const BYTES_PER_PAGE: usize = 2 + 8 + Timers::BYTES_PER_PAGE;

    pub(super) fn grow(&mut self, n: usize) {
        if self.rung.len() < n {
            self.rung.resize(n, NOWHERE);
            self.neighbours.resize(n, Neighbours { before: NONE, after: NONE });
        }
        self.timers.grow(n);
    }

    /// Takes a page off its rung and clears its timer.
    pub(super) fn remove(&mut self, at: usize) {
        self.timers.clear(at);
        let place = std::mem::replace(&mut self.rung[at], NOWHERE);
        let Some(rung) = self.rungs.get_mut(&place) else { return };
        rung.n_pages -= 1;
        let Neighbours { before, after } = self.neighbours[at];
        match before {
            NONE => rung.first = after,
            before => self.neighbours[before as usize].after = after,
        }
        match after {
            NONE => rung.last = before,
            after => self.neighbours[after as usize].before = before,
        }
        if rung.n_pages == 0 {
            self.rungs.remove(&place);
        }
    }

    /// Puts a page on the rung of its gain, behind the others. It is on none before.
    pub(super) fn put(&mut self, at: usize, gain: f32) {
        let place = rung_of(gain);
        self.rung[at] = place;
        let rung = self.rungs.entry(place).or_insert(Rung { first: NONE, last: NONE, n_pages: 0 });
        let before = std::mem::replace(&mut rung.last, at as u32);
        rung.n_pages += 1;
        match before {
            NONE => rung.first = at as u32,
            before => self.neighbours[before as usize].after = at as u32,
        }
        self.neighbours[at] = Neighbours { before, after: NONE };
    }

    /// The page with the highest gain and the least that it gains.
    pub(super) fn top(&self) -> Option<(usize, f32)> {
        self.rungs.last_key_value().map(|(place, rung)| (rung.first as usize, gain_of(*place)))
    }

    /// The least that the n-th best page gains; 0 if there are fewer.
    pub(super) fn nth_gain(&self, n: u32) -> f32 {
        let mut n_above = 0;
        let mut down = self.rungs.iter().rev();
        down.find_map(|(place, rung)| {
            n_above += rung.n_pages;
            (n_above >= n).then(|| gain_of(*place))
        })
        .unwrap_or(0.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rungs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_page_is_on_top_and_equal_ones_come_in_order() {
        let mut ladder = Ladder::default();
        ladder.grow(6);
        for (at, gain) in [(0, 0.2), (1, 7.0), (5, 0.2005), (2, 0.201), (3, 7.01), (4, 1e-40)] {
            ladder.put(at, gain);
        }
        ladder.remove(1);
        ladder.remove(5);
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
    fn a_page_that_leaves_and_returns_is_served_last() {
        let mut ladder = Ladder::default();
        ladder.grow(3);
        (0..3).for_each(|at| ladder.put(at, 1.0));
        for at in [0, 2] {
            ladder.remove(at);
            ladder.put(at, 1.0);
        }
        let order: Vec<usize> =
            std::iter::from_fn(|| ladder.top().map(|(at, _)| at).inspect(|at| ladder.remove(*at))).collect();
        assert_eq!(order, [1, 0, 2]);
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
}
