//! Addresses without a page -> a few visits that see whether one has come.
//!
//! Sites are full of links that lead nowhere. An address is tried once. If there is no page, further tries wait longer and
//! longer, and all of them together get a small share of the budget. A new address is tried at once where links are good,
//! and waits for the same share where hardly any address of its site and group had a page. A page that was there and has
//! vanished waits too, but for nothing else: there are few such pages, and people want to know when they return.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::pages::{ABSENT, FRESH, PENDING, VACANT};
use super::{Reason, Scheduler, doubled};

/// First probe of an address that never had a page, and of a page that has vanished; doubled each time, up to two months.
const FIRST_PROBE_SECS: u32 = 86_400;
const FIRST_PROBE_OF_VANISHED_SECS: u32 = 6 * 3600;
const LONGEST_PROBE_SECS: u32 = 60 * 86_400;
/// Share of a slot's visits that may go to addresses that never had a page.
const PROBE_SHARE: f64 = 0.015;
/// A new address with a lower chance of a page is doubtful.
const LEAST_CHANCE: f32 = 0.4;
/// What is known of a site counts for an address of a group like so many answers of the group itself.
const SITE_PRIOR: f32 = 2.0;
/// Doubtful addresses that are looked at again in each slot, in case their site has turned out better.
const N_RECONSIDERED: usize = 64;

/// First answers of new addresses.
#[derive(Clone, Copy, Default)]
struct Answers {
    n_tried: u32,
    n_pages: u32,
}

impl Answers {
    fn count(all: &mut Vec<Answers>, at: u32, is_page: bool) {
        let at = at as usize;
        if at >= all.len() {
            all.resize(at + 1, Answers::default());
        }
        all[at].n_tried = all[at].n_tried.saturating_add(1);
        all[at].n_pages = all[at].n_pages.saturating_add(u32::from(is_page));
    }

    /// The share of pages where `prior` is believed as firmly as `weight` answers.
    fn chance(self, prior: f32, weight: f32) -> f32 {
        (self.n_pages as f32 + weight * prior) / (self.n_tried as f32 + weight)
    }
}

/// Addresses that wait for a probe.
#[derive(Clone, Default)]
pub(super) struct Probes {
    /// The second from which an address may be probed, and its position. An entry whose second is not the page's
    /// `not_before` any more is out of date.
    due: BinaryHeap<Reverse<(u32, u32)>>,
    /// The same for pages that have vanished.
    vanished: BinaryHeap<Reverse<(u32, u32)>>,
    /// Doubtful addresses that were never tried, in the order in which they came.
    doubted: VecDeque<u32>,
    /// Fractions of a probe that slots have granted.
    credit: f64,
    n_absent: usize,
    by_group: Vec<Answers>,
    by_site: Vec<Answers>,
}

impl Probes {
    /// Takes the entry that has waited longest, if its second has come.
    fn pop_due(&mut self, now_secs: u32, of_vanished: bool) -> Option<(u32, u32)> {
        let waiting = if of_vanished { &mut self.vanished } else { &mut self.due };
        let is_due = waiting.peek().is_some_and(|Reverse((due, _))| *due <= now_secs);
        if is_due { waiting.pop().map(|Reverse(entry)| entry) } else { None }
    }
}

impl Scheduler {
    /// Addresses that have a page, as far as is known.
    pub(super) fn n_followed(&self) -> usize {
        self.pages.n_present() - self.probes.n_absent
    }

    /// A visit found no page.
    pub(super) fn set_absent(&mut self, at: usize, secs: u32) {
        self.count_answer(at, false);
        self.mark_absent(at);
        let first = if self.pages.has(at, FRESH) { FIRST_PROBE_SECS } else { FIRST_PROBE_OF_VANISHED_SECS };
        let wait = doubled(first, self.pages.n_failures[at], LONGEST_PROBE_SECS);
        self.back_off(at, secs.saturating_add(wait));
    }

    /// A visit found a page, or nobody asks for it any more.
    pub(super) fn set_present(&mut self, at: usize) {
        self.count_answer(at, true);
        self.unmark_absent(at);
    }

    fn mark_absent(&mut self, at: usize) {
        if !self.pages.has(at, ABSENT) {
            self.except(at);
            self.pages.flags[at] |= ABSENT;
            self.pages.urgency[at] = 0.0;
            self.probes.n_absent += 1;
        }
    }

    fn unmark_absent(&mut self, at: usize) {
        if self.pages.has(at, ABSENT) {
            self.pages.flags[at] &= !ABSENT;
            self.probes.n_absent -= 1;
        }
    }

    /// Whether the address was never asked for with success, nor found without a page.
    pub(super) fn is_untried(&self, at: usize) -> bool {
        self.pages.has(at, FRESH) && self.pages.n_failures[at] == 0
    }

    /// Only the first answer of an address counts: it tells what links into this site and group are worth.
    fn count_answer(&mut self, at: usize, is_page: bool) {
        if self.is_untried(at) {
            Answers::count(&mut self.probes.by_group, self.pages.group[at], is_page);
            Answers::count(&mut self.probes.by_site, self.pages.site[at], is_page);
        }
    }

    /// The chance that a new address has a page, by the first answers of its site and group.
    fn chance_of_page(&self, at: usize) -> f32 {
        let of = |all: &[Answers], at: u32| all.get(at as usize).copied().unwrap_or_default();
        let site = of(&self.probes.by_site, self.pages.site[at]).chance(0.5, 2.0);
        of(&self.probes.by_group, self.pages.group[at]).chance(site, SITE_PRIOR)
    }

    /// Whether hardly any address of its site and group had a page.
    pub(super) fn is_doubtful(&self, at: usize) -> bool {
        self.chance_of_page(at) <= LEAST_CHANCE
    }

    /// Whether answers that came since the slot's list was made tell that a new address on it is likely dead.
    pub(super) fn has_become_doubtful(&self, at: usize) -> bool {
        self.is_untried(at) && !self.pages.has(at, ABSENT) && self.is_doubtful(at)
    }

    /// Lets a new address wait for the share of the probes.
    pub(super) fn doubt(&mut self, at: usize) {
        self.mark_absent(at);
        self.probes.doubted.push_back(at as u32);
    }

    /// Queues an address without a page for the second that its `not_before` names.
    pub(super) fn queue_probe(&mut self, at: usize) {
        if self.pages.has(at, ABSENT) && !self.pages.has(at, VACANT) {
            let due =
                if self.pages.has(at, FRESH) { &mut self.probes.due } else { &mut self.probes.vanished };
            due.push(Reverse((self.pages.not_before[at], at as u32)));
        }
    }

    /// The probes of a slot within their share of the budget.
    pub(super) fn choose_probes(&mut self, granted: f64, capacity: usize) -> Vec<(u32, Reason)> {
        let share = PROBE_SHARE * granted;
        self.probes.credit = (self.probes.credit + share).min(1.0 + share);
        let mut probes = self.vanished_probes(capacity);
        let n_left = (self.probes.credit.floor() as usize).min(capacity - probes.len());
        let others = self.due_probes(n_left);
        self.probes.credit -= others.len() as f64;
        probes.extend(others);
        probes
    }

    /// At most `n` pages that have vanished and may be back, the one that waited longest first.
    pub(super) fn vanished_probes(&mut self, n: usize) -> Vec<(u32, Reason)> {
        let end_secs = self.slot.range.map_or(0, |(_, end)| self.secs(end));
        let next = |_| self.next_due(end_secs, true).map(|at| (at, Reason::Probe));
        (0..n).map_while(next).collect()
    }

    /// At most `n` addresses: in turn one whose probe is due, the one that waited longest first, and a doubtful one.
    pub(super) fn due_probes(&mut self, n: usize) -> Vec<(u32, Reason)> {
        self.reconsider();
        let end_secs = self.slot.range.map_or(0, |(_, end)| self.secs(end));
        let mut chosen = Vec::new();
        while chosen.len() < n {
            let n_before = chosen.len();
            if let Some(at) = self.next_due(end_secs, false) {
                chosen.push((at, Reason::Probe));
            }
            if chosen.len() < n
                && let Some(at) = self.next_doubted(end_secs)
            {
                chosen.push((at, Reason::FirstCapture));
            }
            if chosen.len() == n_before {
                break;
            }
        }
        chosen
    }

    fn next_due(&mut self, end_secs: u32, of_vanished: bool) -> Option<u32> {
        while let Some((due, at)) = self.probes.pop_due(end_secs, of_vanished) {
            let page = at as usize;
            let is_valid = self.pages.has(page, ABSENT) && self.pages.not_before[page] == due;
            if !is_valid || self.is_untried(page) || self.pages.has(page, PENDING | VACANT) {
                continue;
            }
            // If the visit is not made in this slot, the next one may make it.
            self.pages.not_before[page] = end_secs.saturating_add(1);
            self.queue_probe(page);
            return Some(at);
        }
        None
    }

    /// Of the doubtful addresses that came first, the one with the best chance.
    fn next_doubted(&mut self, end_secs: u32) -> Option<u32> {
        let may_try = |at: &u32| {
            let page = *at as usize;
            self.is_doubted(page) && !self.pages.has(page, PENDING) && self.pages.not_before[page] <= end_secs
        };
        let first = self.probes.doubted.iter().copied().filter(may_try).take(N_RECONSIDERED);
        let chance = |at: &u32| self.chance_of_page(*at as usize);
        // The first of equals: it has waited longest.
        let best = first.reduce(|best, at| if chance(&at) > chance(&best) { at } else { best })?;
        // It stays in the queue until it was tried, because the visit may not be made.
        self.pages.not_before[best as usize] = end_secs.saturating_add(1);
        Some(best)
    }

    fn is_doubted(&self, at: usize) -> bool {
        self.is_untried(at) && self.pages.has(at, ABSENT) && !self.pages.has(at, VACANT)
    }

    /// Doubtful addresses of sites and groups that have turned out better are new addresses like others. What was tried leaves
    /// the queue.
    fn reconsider(&mut self) {
        for _ in 0..self.probes.doubted.len().min(N_RECONSIDERED) {
            let Some(at) = self.probes.doubted.pop_front() else { return };
            if !self.is_doubted(at as usize) {
                continue;
            }
            if self.is_doubtful(at as usize) {
                self.probes.doubted.push_back(at);
            } else {
                self.unmark_absent(at as usize);
                self.queue_new(at as usize);
            }
        }
    }
}
