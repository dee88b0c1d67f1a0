//! Pages -> the seconds at which they are looked at again.
//!
//! A page has at most one timer, and an earlier one is replaced. So the memory is bounded by the number of pages, which
//! a queue with outdated entries would not be.

use super::pages::NONE;

/// Children of an entry. Four keep the tree flat, so that fewer cache lines are read.
const N_CHILDREN: usize = 4;

/// A heap of seconds and positions that knows where each position is.
#[derive(Clone, Default)]
pub(super) struct Timers {
    heap: Vec<(u32, u32)>,
    /// By position: its place in the heap, or [`NONE`].
    place: Vec<u32>,
}

impl Timers {
    /// Bytes a page.
    pub(super) const BYTES_PER_PAGE: usize = 8 + 4;

    pub(super) fn grow(&mut self, n: usize) {
        if self.place.len() < n {
            self.place.resize(n, NONE);
        }
    }

    /// Sets the timer of a page, also if it has one.
    pub(super) fn set(&mut self, at: usize, secs: u32) {
        let entry = (secs, at as u32);
        match self.place[at] {
            NONE => {
                self.heap.push(entry);
                self.rise(self.heap.len() - 1);
            }
            place => self.replace(place as usize, entry),
        }
    }

    pub(super) fn clear(&mut self, at: usize) {
        let place = std::mem::replace(&mut self.place[at], NONE);
        let Some(last) = self.heap.pop_if(|_| place != NONE) else { return };
        if (place as usize) < self.heap.len() {
            self.replace(place as usize, last);
        }
    }

    /// The earliest timer, of equal ones that of the lowest position.
    pub(super) fn first(&self) -> Option<(u32, usize)> {
        self.heap.first().map(|(secs, at)| (*secs, *at as usize))
    }

    fn replace(&mut self, place: usize, entry: (u32, u32)) {
        let before = std::mem::replace(&mut self.heap[place], entry);
        if entry < before { self.rise(place) } else { self.sink(place) }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / N_CHILDREN;
            if self.heap[parent] <= entry {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let children = N_CHILDREN * place + 1..(N_CHILDREN * (place + 1) + 1).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else { break };
            if entry <= self.heap[least] {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (u32, u32)) {
        self.heap[place] = entry;
        self.place[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a sorted list.
        #[test]
        fn timers_come_in_order(steps in prop::collection::vec((0usize..20, prop::option::of(0u32..50)), 1..200)) {
            let (mut timers, mut expected) = (Timers::default(), vec![None; 20]);
            timers.grow(20);
            for (at, secs) in steps {
                match secs {
                    Some(secs) => timers.set(at, secs),
                    None => timers.clear(at),
                }
                expected[at] = secs;
                let first = expected.iter().zip(0..).filter_map(|(secs, at)| secs.map(|secs| (secs, at))).min();
                prop_assert_eq!(timers.first(), first);
            }
            let mut waiting: Vec<_> = expected.iter().zip(0..).filter_map(|(secs, at)| secs.map(|secs| (secs, at))).collect();
            waiting.sort_unstable();
            for entry in waiting {
                prop_assert_eq!(timers.first(), Some(entry));
                timers.clear(entry.1);
            }
            prop_assert_eq!(timers.first(), None);
        }
    }
}
