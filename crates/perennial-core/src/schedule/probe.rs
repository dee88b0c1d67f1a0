//! URLs without a page -> a few visits that check whether a page has appeared.
//!
//! Sites contain many dead links. A URL is tried once. If it has no page, the waits between further tries grow, and
//! all tries together get a small share of the budget. On sites with mostly good links a new URL is tried at once. If
//! few URLs of its site and group had a page, it waits for that share, unless its neighbours have pages: links of one
//! list are mostly alike. Sites take turns in that share. A page that vanished is probed too, outside of the share:
//! there are few such pages, and people want to know when they return.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::pages::{ABSENT, FRESH, PENDING, PROMISED, VACANT};
use super::{Reason, Scheduler, backoff_secs};

/// First wait for a URL that never had a page, and for a vanished page. It doubles each time, up to two months.
const FIRST_PROBE_SECS: u32 = 86_400;
const FIRST_PROBE_OF_VANISHED_SECS: u32 = 6 * 3600;
const LONGEST_PROBE_SECS: u32 = 60 * 86_400;
/// Share of the visits for URLs that never had a page.
const PROBE_SHARE: f64 = 0.015;
/// A new URL with a lower probability of a page is doubtful.
const LEAST_PROBABILITY: f32 = 0.5;
/// If at least this share of links is good, a dead neighbour is not evidence.
const GOOD_PROBABILITY: f32 = 0.7;
/// The rate of a site weighs as much as this many responses of the group.
const SITE_PRIOR: f32 = 2.0;
/// Neighbours considered on each side, in the order in which URLs were found.
const N_BESIDE: usize = 4;
/// The response of the nearest neighbour weighs as much as this many responses of the group. More distant ones weigh
/// less.
const BESIDE: f32 = 2.0;
/// Doubtful URLs that are tested again each hour, in case their site has turned out better.
const N_RECONSIDERED: usize = 64;
/// Doubtful URLs among which the next try is chosen.
const N_CHOICES: usize = 1024;
/// One of this many probes checks whether a page has appeared. The others are first tries, which find a page more
/// often.
const TRIES_PER_PROBE: u32 = 4;

/// Responses to the first requests for new URLs.
#[derive(Clone, Copy, Default)]
struct FirstAnswers {
    n_tried: u32,
    n_pages: u32,
    /// Doubtful URLs that were chosen for a try.
    n_doubted: u32,
}

impl FirstAnswers {
    fn entry(all: &mut Vec<FirstAnswers>, at: u32) -> &mut FirstAnswers {
        let at = at as usize;
        if at >= all.len() {
            all.resize(at + 1, FirstAnswers::default());
        }
        &mut all[at]
    }

    fn count(&mut self, is_page: bool) {
        self.n_tried = self.n_tried.saturating_add(1);
        self.n_pages = self.n_pages.saturating_add(u32::from(is_page));
    }

    /// The estimated share of pages, if `prior` weighs as much as `weight` responses.
    fn probability(self, prior: f32, weight: f32) -> f32 {
        (self.n_pages as f32 + weight * prior) / (self.n_tried as f32 + weight)
    }
}

/// URLs that wait for a probe.
#[derive(Clone, Default)]
pub(super) struct Probes {
    /// The second from which a URL may be probed, and its position. An entry is outdated if its second differs from
    /// the page's `not_before`.
    due: BinaryHeap<Reverse<(u32, u32)>>,
    /// The same for pages that have vanished.
    vanished: BinaryHeap<Reverse<(u32, u32)>>,
    /// Doubtful URLs that were never tried, in order of arrival.
    doubted: VecDeque<u32>,
    /// Fractions of a probe that were granted.
    credit: f64,
    n_absent: usize,
    /// Probes and first tries so far, because they take turns.
    n_turns: u32,
    by_group: Vec<FirstAnswers>,
    by_site: Vec<FirstAnswers>,
}

impl Probes {
    /// Takes the earliest entry if it is due.
    fn pop_due(&mut self, now_secs: u32, is_vanished: bool) -> Option<(u32, u32)> {
        let waiting = if is_vanished { &mut self.vanished } else { &mut self.due };
        let is_due = waiting.peek().is_some_and(|Reverse((due, _))| *due <= now_secs);
        if is_due { waiting.pop().map(|Reverse(entry)| entry) } else { None }
    }
}

impl Scheduler {
    /// The number of URLs that have a page, as far as known.
    pub(super) fn n_followed(&self) -> usize {
        self.pages.n_present() - self.probes.n_absent
    }

    /// Records that a visit found no page.
    pub(super) fn set_absent(&mut self, at: usize, secs: u32) {
        self.count_answer(at, false);
        self.mark_absent(at);
        let first = if self.pages.has(at, FRESH) { FIRST_PROBE_SECS } else { FIRST_PROBE_OF_VANISHED_SECS };
        let wait = backoff_secs(first, self.pages.n_failures[at], LONGEST_PROBE_SECS);
        self.back_off(at, secs.saturating_add(wait));
        self.keep_promise(at, secs, None);
    }

    /// Records that a visit found a page, or that the URL is no longer followed.
    pub(super) fn set_present(&mut self, at: usize) {
        self.count_answer(at, true);
        self.unmark_absent(at);
    }

    fn mark_absent(&mut self, at: usize) {
        if !self.pages.has(at, ABSENT) {
            self.exempt(at);
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

    /// Whether no request for the URL has succeeded or found that it has no page.
    pub(super) fn is_untried(&self, at: usize) -> bool {
        self.pages.has(at, FRESH) && self.pages.n_failures[at] == 0
    }

    /// Counts only the first response of a URL, because it shows what links into this site and group are worth.
    fn count_answer(&mut self, at: usize, is_page: bool) {
        if self.is_untried(at) {
            FirstAnswers::entry(&mut self.probes.by_group, self.pages.group[at]).count(is_page);
            FirstAnswers::entry(&mut self.probes.by_site, self.pages.site[at]).count(is_page);
        }
    }

    /// The probability that a new URL has a page, from the first responses of its site and group.
    fn probability_by_group(&self, at: usize) -> f32 {
        let of = |all: &[FirstAnswers], at: u32| all.get(at as usize).copied().unwrap_or_default();
        // Shrinks the group towards its site, and the site towards one half, so the first responses do not
        // decide.
        let site = of(&self.probes.by_site, self.pages.site[at]).probability(0.5, 2.0);
        of(&self.probes.by_group, self.pages.group[at]).probability(site, SITE_PRIOR)
    }

    /// The same probability, including the responses of neighbouring URLs.
    fn probability_of_page(&self, at: usize) -> f32 {
        let before = (0..at).rev().take(N_BESIDE);
        let after = (at + 1..self.pages.len()).take(N_BESIDE);
        // The group counts as one response, and each neighbour by its distance. Lists of links are found in order, so
        // neighbours by number are neighbours on a page.
        let (mut pages, mut tried) = (self.probability_by_group(at), 1.0);
        for (is_page, distance) in self.answers_along(at, before).chain(self.answers_along(at, after)) {
            let weight = BESIDE / distance as f32;
            tried += weight;
            pages += if is_page { weight } else { 0.0 };
        }
        pages / tried
    }

    /// Whether each of these URLs has a page, with its distance. Other sites end the list, and untried URLs are left
    /// out.
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

    /// Whether few URLs of its site and group, or near it, had a page.
    pub(super) fn is_doubtful(&self, at: usize) -> bool {
        self.probability_by_group(at) < GOOD_PROBABILITY && self.probability_of_page(at) < LEAST_PROBABILITY
    }

    /// Whether responses since it was queued suggest that a new URL is dead.
    pub(super) fn has_become_doubtful(&self, at: usize) -> bool {
        self.is_untried(at) && !self.pages.has(at, ABSENT) && self.is_doubtful(at)
    }

    /// Makes a new URL wait for the share of the probes.
    pub(super) fn defer_doubtful(&mut self, at: usize) {
        self.mark_absent(at);
        self.probes.doubted.push_back(at as u32);
    }

    /// Queues a URL without a page for its `not_before`.
    pub(super) fn queue_probe(&mut self, at: usize) {
        if self.pages.has(at, ABSENT) && !self.pages.has(at, VACANT | PROMISED) {
            let due =
                if self.pages.has(at, FRESH) { &mut self.probes.due } else { &mut self.probes.vanished };
            due.push(Reverse((self.pages.not_before[at], at as u32)));
        }
    }

    /// Chooses the probes of an hour within their share of the budget.
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

    /// At most `n` vanished pages that may be back, the longest wait first.
    pub(super) fn vanished_probes(&mut self, n: usize) -> Vec<(u32, Reason)> {
        let end_secs = self.next_hour;
        let next = |_| self.next_due(end_secs, true).map(|at| (at, Reason::Probe));
        (0..n).map_while(next).collect()
    }

    /// At most `n` URLs: mostly doubtful ones, and some that are due for a probe, the longest wait first.
    pub(super) fn due_probes(&mut self, n: usize) -> Vec<(u32, Reason)> {
        self.reconsider();
        let end_secs = self.next_hour;
        let mut doubted = self.next_doubted(n, end_secs).into_iter();
        let mut chosen = Vec::new();
        while chosen.len() < n {
            self.probes.n_turns = self.probes.n_turns.wrapping_add(1);
            let is_try = !self.probes.n_turns.is_multiple_of(TRIES_PER_PROBE);
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

    fn next_due(&mut self, end_secs: u32, is_vanished: bool) -> Option<u32> {
        while let Some((due, at)) = self.probes.pop_due(end_secs, is_vanished) {
            let page = at as usize;
            let is_valid = self.pages.has(page, ABSENT) && self.pages.not_before[page] == due;
            if !is_valid || self.is_untried(page) || self.pages.has(page, PENDING | VACANT) {
                continue;
            }
            // If this hour does not make the visit, the next one may.
            self.pages.not_before[page] = end_secs.saturating_add(1);
            self.queue_probe(page);
            return Some(at);
        }
        None
    }

    /// At most `n` of the oldest doubtful URLs. Sites take turns, because the worst site is the one with the least
    /// evidence. Within a site the most probable URL comes first, and of equals the one found first, which is nearest
    /// to the home page.
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
        let mut waiting: Vec<(f32, u32)> =
            first.map(|at| (self.probability_of_page(at as usize), at)).collect();
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

    /// The URL stays in the queue until it was tried, because the visit may not be made.
    fn try_doubted(&mut self, at: u32, end_secs: u32) {
        let site = FirstAnswers::entry(&mut self.probes.by_site, self.pages.site[at as usize]);
        site.n_doubted = site.n_doubted.saturating_add(1);
        self.pages.not_before[at as usize] = end_secs.saturating_add(1);
    }

    fn is_doubted(&self, at: usize) -> bool {
        self.is_untried(at) && self.pages.has(at, ABSENT) && !self.pages.has(at, VACANT | PROMISED)
    }

    /// Treats doubtful URLs as new ones if their site and group have turned out better. Tried URLs leave the queue.
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
