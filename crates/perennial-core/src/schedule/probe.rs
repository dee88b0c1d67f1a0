//! Addresses without a page -> a few visits that see whether one has come.
//!
//! Sites are full of links that lead nowhere. An address is tried once. If there is no page, further tries wait longer and
//! longer, and all of them together get a small share of the budget. A new address of a group in which hardly any
//! address had a page waits for the same share.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pages::{ABSENT, FRESH, PENDING, VACANT};
use super::{Reason, Scheduler, doubled};

/// First probe of an address without a page; doubled each time, up to two months.
const FIRST_PROBE_SECS: u32 = 86_400;
const LONGEST_PROBE_SECS: u32 = 60 * 86_400;
/// Share of a slot's visits that may be probes.
const PROBE_SHARE: f64 = 0.015;
/// An address whose group answered so often, and at most one in so many times with a page, is not tried before the others.
const N_ANSWERS_TOLD: u32 = 4;
const ONE_PAGE_IN: u32 = 5;

/// Addresses that wait for a probe.
#[derive(Clone, Default)]
pub(super) struct Probes {
    /// The second from which an address may be probed, and its position. An entry whose second is not the page's
    /// `not_before` any more is out of date.
    due: BinaryHeap<Reverse<(u32, u32)>>,
    /// Fractions of a probe that slots have granted.
    credit: f64,
    n_absent: usize,
    /// Of each group: addresses that were tried, and how many of them had a page.
    answers: Vec<(u32, u32)>,
}

impl Scheduler {
    /// Addresses that have a page, as far as is known.
    pub(super) fn n_followed(&self) -> usize {
        self.pages.n_present() - self.probes.n_absent
    }

    /// A visit found no page.
    pub(super) fn set_absent(&mut self, at: usize, secs: u32) {
        self.count_answer(at, false);
        if !self.pages.has(at, ABSENT) {
            self.pages.flags[at] |= ABSENT;
            self.pages.urgency[at] = 0.0;
            self.probes.n_absent += 1;
        }
        let wait = doubled(FIRST_PROBE_SECS, self.pages.n_failures[at], LONGEST_PROBE_SECS);
        self.back_off(at, secs.saturating_add(wait));
    }

    /// A visit found a page, or nobody asks for it any more.
    pub(super) fn set_present(&mut self, at: usize) {
        self.count_answer(at, true);
        if self.pages.has(at, ABSENT) {
            self.pages.flags[at] &= !ABSENT;
            self.probes.n_absent -= 1;
        }
    }

    /// Only the first answer of an address counts: it tells what links into this group are worth.
    fn count_answer(&mut self, at: usize, is_page: bool) {
        if !self.pages.has(at, FRESH) || self.pages.n_failures[at] > 0 {
            return;
        }
        let group = self.pages.group[at] as usize;
        if group >= self.probes.answers.len() {
            self.probes.answers.resize(group + 1, (0, 0));
        }
        let (n_tried, n_pages) = &mut self.probes.answers[group];
        *n_tried = n_tried.saturating_add(1);
        *n_pages = n_pages.saturating_add(u32::from(is_page));
    }

    /// Whether hardly any address of the group had a page.
    pub(super) fn is_likely_absent(&self, at: usize) -> bool {
        let (n_tried, n_pages) =
            self.probes.answers.get(self.pages.group[at] as usize).copied().unwrap_or_default();
        n_tried >= N_ANSWERS_TOLD && n_pages.saturating_mul(ONE_PAGE_IN) <= n_tried
    }

    /// Lets a new address wait for the share of the probes.
    pub(super) fn doubt(&mut self, at: usize) {
        if !self.pages.has(at, ABSENT) {
            self.pages.flags[at] |= ABSENT;
            self.probes.n_absent += 1;
        }
        self.queue_probe(at);
    }

    /// Queues an address without a page for the second that its `not_before` names.
    pub(super) fn queue_probe(&mut self, at: usize) {
        if self.pages.has(at, ABSENT) && !self.pages.has(at, VACANT) {
            self.probes.due.push(Reverse((self.pages.not_before[at], at as u32)));
        }
    }

    /// The probes of a slot within their share of the budget.
    pub(super) fn choose_probes(&mut self, granted: f64, capacity: usize) -> Vec<(u32, Reason)> {
        let share = PROBE_SHARE * granted;
        self.probes.credit = (self.probes.credit + share).min(1.0 + share);
        let probes = self.due_probes((self.probes.credit.floor() as usize).min(capacity));
        self.probes.credit -= probes.len() as f64;
        probes
    }

    /// At most `n` addresses whose probe is due, the one that waited longest first.
    pub(super) fn due_probes(&mut self, n: usize) -> Vec<(u32, Reason)> {
        let end_secs = self.slot.range.map_or(0, |(_, end)| self.secs(end));
        let mut chosen = Vec::new();
        while chosen.len() < n
            && let Some(&Reverse((due, at))) = self.probes.due.peek()
            && due <= end_secs
        {
            self.probes.due.pop();
            let page = at as usize;
            let is_valid = self.pages.has(page, ABSENT) && self.pages.not_before[page] == due;
            if !is_valid || self.pages.has(page, PENDING | VACANT) {
                continue;
            }
            let is_untried = self.pages.has(page, FRESH) && self.pages.n_failures[page] == 0;
            chosen.push((at, if is_untried { Reason::FirstCapture } else { Reason::Probe }));
            // If the visit is not made in this slot, the next one may make it.
            self.pages.not_before[page] = end_secs.saturating_add(1);
            self.queue_probe(page);
        }
        chosen
    }
}
