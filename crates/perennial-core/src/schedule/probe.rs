//! Addresses without a page -> a few visits that see whether one has come.
//!
//! Sites are full of links that lead nowhere. An address is tried once. If there is no page, further tries wait longer and
//! longer, and all of them together get a small share of the budget. A new address is tried at once where links are good,
//! and waits for the same share where few addresses of its site and group had a page, unless it was found beside
//! addresses that have one: the links of one list mostly share a fate. Sites take turns in that share. A page that was there
//! and has vanished waits too, but for nothing else: there are few such pages, and people want to know when they return.

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
const LEAST_CHANCE: f32 = 0.5;
/// Where at least so many links are good, a dead one beside an address says nothing about it.
const GOOD_CHANCE: f32 = 0.7;
/// What is known of a site counts for an address of a group like so many answers of the group itself.
const SITE_PRIOR: f32 = 2.0;
/// Addresses found just before and just after one that may tell of its chance.
const N_BESIDE: usize = 4;
/// The answer of the very next address counts like so many answers of the group, that of one further away less.
const BESIDE: f32 = 2.0;
/// Doubtful addresses that are looked at again in each slot, in case their site has turned out better.
const N_RECONSIDERED: usize = 64;
/// Doubtful addresses among which the next to be tried is chosen.
const N_CHOICES: usize = 1024;
/// Of so many probes one sees whether a page has come where there was none; the others try addresses for the first time, which
/// find a page more often.
const TRIES_A_PROBE: u32 = 4;

/// First answers of new addresses.
#[derive(Clone, Copy, Default)]
struct Answers {
    n_tried: u32,
    n_pages: u32,
    /// Doubtful addresses that were chosen to be tried.
    n_doubted: u32,
}

impl Answers {
    fn of(all: &mut Vec<Answers>, at: u32) -> &mut Answers {
        let at = at as usize;
        if at >= all.len() {
            all.resize(at + 1, Answers::default());
        }
        &mut all[at]
    }

    fn count(&mut self, is_page: bool) {
        self.n_tried = self.n_tried.saturating_add(1);
        self.n_pages = self.n_pages.saturating_add(u32::from(is_page));
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
    /// Probes and first tries, which take turns.
    n_turns: u32,
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
            Answers::of(&mut self.probes.by_group, self.pages.group[at]).count(is_page);
            Answers::of(&mut self.probes.by_site, self.pages.site[at]).count(is_page);
        }
    }

    /// The chance that a new address has a page, by the first answers of its site and group.
    fn chance_by_group(&self, at: usize) -> f32 {
        let of = |all: &[Answers], at: u32| all.get(at as usize).copied().unwrap_or_default();
        let site = of(&self.probes.by_site, self.pages.site[at]).chance(0.5, 2.0);
        of(&self.probes.by_group, self.pages.group[at]).chance(site, SITE_PRIOR)
    }

    /// The same chance, where the addresses found just before and after it have been tried: by their answers too.
    fn chance_of_page(&self, at: usize) -> f32 {
        let before = (0..at).rev().take(N_BESIDE);
        let after = (at + 1..self.pages.len()).take(N_BESIDE);
        let (mut pages, mut tried) = (self.chance_by_group(at), 1.0);
        for (is_page, distance) in self.answers_along(at, before).chain(self.answers_along(at, after)) {
            let weight = BESIDE / distance as f32;
            tried += weight;
            pages += if is_page { weight } else { 0.0 };
        }
        pages / tried
    }

    /// Which of these addresses have a page, with their distance, as far as they are of the same site and were tried.
    fn answers_along(
        &self,
        at: usize,
        others: impl Iterator<Item = usize>,
    ) -> impl Iterator<Item = (bool, usize)> {
        let is_of_site = move |other: &usize| {
            self.pages.site[*other] == self.pages.site[at] && !self.pages.has(*other, VACANT)
        };
        let answer = |(nth, other): (usize, usize)| {
            let is_dead = self.pages.has(other, ABSENT) && !self.is_untried(other);
            let is_page = !self.pages.has(other, FRESH);
            (is_page || is_dead).then_some((is_page, nth + 1))
        };
        others.take_while(is_of_site).enumerate().filter_map(answer)
    }

    /// Whether few addresses of its site and group, or found beside it, had a page.
    pub(super) fn is_doubtful(&self, at: usize) -> bool {
        self.chance_by_group(at) < GOOD_CHANCE && self.chance_of_page(at) < LEAST_CHANCE
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

    /// At most `n` addresses: doubtful ones, and now and then one whose probe is due, the one that waited longest first.
    pub(super) fn due_probes(&mut self, n: usize) -> Vec<(u32, Reason)> {
        self.reconsider();
        let end_secs = self.slot.range.map_or(0, |(_, end)| self.secs(end));
        let mut doubted = self.next_doubted(n, end_secs).into_iter();
        let mut chosen = Vec::new();
        while chosen.len() < n {
            self.probes.n_turns = self.probes.n_turns.wrapping_add(1);
            let is_try = !self.probes.n_turns.is_multiple_of(TRIES_A_PROBE);
            let mut first_try = if is_try { doubted.next() } else { None };
            let probe = if first_try.is_none() { self.next_due(end_secs, false) } else { None };
            if probe.is_none() {
                first_try = first_try.or_else(|| doubted.next());
            }
            if let Some(at) = probe {
                chosen.push((at, Reason::Probe));
            } else if let Some(at) = first_try {
                self.try_doubted(at, end_secs);
                chosen.push((at, Reason::FirstCapture));
            } else {
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

    /// At most `n` of the doubtful addresses that came first. Sites take turns, because the worst is the one of which least is
    /// known; of a site the address with the best chance is first, and of equals the one that was found first, nearest to the
    /// front page.
    fn next_doubted(&self, n: usize, end_secs: u32) -> Vec<u32> {
        let may_try = |at: &u32| {
            let page = *at as usize;
            self.is_doubted(page) && !self.pages.has(page, PENDING) && self.pages.not_before[page] <= end_secs
        };
        if n == 0 {
            return Vec::new();
        }
        let first = self.probes.doubted.iter().copied().filter(may_try).take(n.max(N_CHOICES));
        let site = |at: u32| self.pages.site[at as usize];
        let mut waiting: Vec<(f32, u32)> = first.map(|at| (self.chance_of_page(at as usize), at)).collect();
        waiting
            .sort_unstable_by(|a, b| site(a.1).cmp(&site(b.1)).then(b.0.total_cmp(&a.0)).then(a.1.cmp(&b.1)));
        let mut in_turn: Vec<(u32, u32)> = Vec::with_capacity(waiting.len());
        for group in waiting.chunk_by(|a, b| site(a.1) == site(b.1)) {
            let n_before =
                self.probes.by_site.get(site(group[0].1) as usize).map_or(0, |site| site.n_doubted);
            in_turn.extend((n_before..).zip(group).map(|(turn, (_, at))| (turn, *at)));
        }
        in_turn.sort_by_key(|(turn, _)| *turn);
        in_turn.into_iter().map(|(_, at)| at).take(n).collect()
    }

    /// It stays in the queue until it was tried, because the visit may not be made.
    fn try_doubted(&mut self, at: u32, end_secs: u32) {
        let site = Answers::of(&mut self.probes.by_site, self.pages.site[at as usize]);
        site.n_doubted = site.n_doubted.saturating_add(1);
        self.pages.not_before[at as usize] = end_secs.saturating_add(1);
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
