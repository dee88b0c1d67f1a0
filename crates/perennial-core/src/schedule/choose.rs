//! The pages that are due, and the budget -> the next visit, and when to ask again (docs/papers.md, Expected gain).
//!
//! Visits go, in this order, to pages with an interval of their own, to the pages of a sweep that has begun, to
//! probes, to new pages, to a share of the pages with the oldest captures, and to the page that gains most, if it
//! gains as much as the shadow price. By the hour and without sweeps, every visit that is granted is made.

use super::ladder::LEAST_GAIN;
use super::pages::{ABSENT, ANNOUNCED, FRESH, IN_SWEEP, PENDING, PROMISED, QUEUED, SKIPPED, VACANT};
use super::{Reason, Scheduler, Strategy, Visit, learn};
use crate::page::importance::Importance;
use crate::time::{Span, Timestamp};

/// After so many new pages in a row the next visit goes to others, if one is granted: the fifth that is left to them.
const NEW_IN_A_ROW: u32 = 4;
/// Share of the budget for pages that have waited longer than this share needs to visit all pages once. Slow pages
/// change in bursts, which rates do not tell: a page that is visited four times more rarely than all pages could be
/// misses versions that its gain does not show (docs/decisions/0013-expected-gain.md).
const FLOOR: f64 = 0.25;
/// Positions among which the oldest capture is found, and after which the search goes on with the next visit. While the
/// floor is kept, a visit so costs less than a microsecond.
const OLD_AT_ONCE: usize = 64;
/// Pages that one event takes off the top of the ladder because they gain less than when they were placed.
const MOST_OUTDATED: usize = 1024;
/// The factor by which the ladder reaches further down while it is empty. A few steps then find the best page, whatever it
/// gains, and each step places all pages again.
const LOWER: f32 = 0.01;
/// Pages that climb wake a driver after this time at the earliest. A visit may be late by it.
const CLIMB_SECS: u32 = 10;
/// While the price falls, the ladder is looked at again after this time at the earliest.
const RECHECK_SECS: u32 = 60;

impl Scheduler {
    /// Lets time pass: what happens once an hour, grants, prices, and the timers of pages and sites.
    pub(super) fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.is_busy = false;
        self.ladder.grow(self.pages.len());
        let secs = self.secs(self.now);
        self.outlook.extend(&self.clocks, self.base, secs, self.config.n_periods);
        if secs >= self.next_hour {
            let hours = if self.has_begun() { f64::from(secs + 3600 - self.next_hour) / 3600.0 } else { 1.0 };
            if !self.has_begun() {
                self.place_all();
            }
            self.next_hour = self.outlook.hour_end(secs);
            self.pass_hour(secs, hours);
        }
        self.renew_slice();
        let hours = self.fill();
        self.follow_savings(hours);
        self.reach_down();
        self.place_slice();
        self.ring_timers(secs);
        for at in std::mem::take(&mut self.unskipped) {
            self.place(at as usize);
        }
        self.start_sweeps();
    }

    /// Whether [`Scheduler::next_visit`] was called. Before, histories are replayed, and no page is placed.
    pub(super) fn has_begun(&self) -> bool {
        self.next_hour > 0
    }

    /// What happens once an hour. The order matters: rates determine values, values determine which directories are
    /// skipped, and all of them determine the ladder.
    fn pass_hour(&mut self, secs: u32, hours: f64) {
        self.renew_if_due(secs);
        self.renew_slice();
        self.judge_directories(secs);
        self.update_prices(hours);
        self.find_first_price();
        self.choose_hourly_probes(hours);
    }

    pub(super) fn most_histories(&self) -> usize {
        let bytes = self.config.evidence_bytes.unwrap_or((20 * self.pages.len()).max(16 << 20));
        (bytes / learn::BYTES_PER_HISTORY).max(16)
    }

    fn choose_hourly_probes(&mut self, hours: f64) {
        let probes = match self.config.budget {
            None => {
                let mut probes = self.vanished_probes(usize::MAX);
                probes.extend(self.due_probes(usize::MAX));
                probes
            }
            Some(_) => {
                let granted = self.others_per_hour() * hours;
                let room = (granted.ceil() as usize).saturating_sub(self.probing.len());
                let mut probes = self.choose_probes(granted, room);
                probes.extend(self.probe_directories(granted, room - probes.len()));
                probes
            }
        };
        self.probing.extend(probes);
    }

    /// Hands out the next visit.
    pub(super) fn hand_out(&mut self) -> Option<Visit> {
        let (at, reason) = self.choose()?;
        // New pages, sweeps and pages with intervals take from the period what others have not been granted yet.
        let is_swept = self.pages.sweep_flags[at] & IN_SWEEP != 0;
        let is_granted = !(self.pages.has(at, FRESH | PROMISED) || is_swept);
        self.ladder.remove(at);
        self.pages.flags[at] |= PENDING;
        self.reserve(is_granted);
        Some(Visit { page: self.pages.id[at], site: self.site(at), at: self.now, reason })
    }

    fn choose(&mut self) -> Option<(usize, Reason)> {
        let left = self.left_of_period();
        if left < 1.0 {
            return None;
        }
        if let Some(at) = self.next_promised() {
            return Some((at, self.reason(at)));
        }
        if self.config.budget.is_some() && self.left_for_others() < 1.0 {
            return None;
        }
        if let Some(next) = self.next_new() {
            return Some(next);
        }
        if let Some(next) = self.next_of_sweep() {
            return Some(next);
        }
        if !self.has_token() {
            return None;
        }
        self.next_probe().or_else(|| self.next_oldest()).or_else(|| self.next_best())
    }

    fn next_probe(&mut self) -> Option<(usize, Reason)> {
        while let Some((at, reason)) = self.probing.pop_front() {
            if !self.pages.has(at as usize, PENDING | VACANT | PROMISED) {
                return Some((at as usize, reason));
            }
        }
        None
    }

    /// The first page that was never captured.
    fn next_new(&mut self) -> Option<(usize, Reason)> {
        if self.config.budget.is_some() {
            let is_for_others = self.n_new_in_a_row >= NEW_IN_A_ROW && self.has_token();
            if is_for_others || self.left_for_new() < 1.0 {
                self.n_new_in_a_row = 0;
                return None;
            }
        }
        let secs = self.secs(self.now);
        while let Some(at) = self.fresh.pop_front() {
            let at = at as usize;
            self.pages.flags[at] &= !QUEUED;
            if !self.pages.has(at, FRESH) || self.pages.has(at, PENDING | VACANT | ABSENT | PROMISED) {
                continue;
            }
            if self.has_become_doubtful(at) {
                self.defer_doubtful(at);
            } else if self.pages.not_before[at] > secs {
                self.place(at);
            } else {
                self.n_new_in_a_row += 1;
                return Some((at, self.reason(at)));
            }
        }
        self.n_new_in_a_row = 0;
        None
    }

    pub(super) fn queue_new(&mut self, at: usize) {
        if !self.pages.has(at, QUEUED) {
            self.pages.flags[at] |= QUEUED;
            self.fresh.push_back(at as u32);
        }
        self.wake_now();
    }

    /// The share of the budget reserved for the pages with the oldest captures.
    pub(super) fn floor_share(&self) -> f64 {
        match (self.config.floor, self.config.strategy) {
            (Some(share), _) => f64::from(share),
            (None, Strategy::ExpectedGain) => FLOOR,
            (None, Strategy::FixedInterval) => 0.0,
        }
    }

    /// The time in which the reserved share could visit all pages once.
    fn longest_wait_secs(&self) -> f64 {
        let n_pages = self.n_followed().saturating_sub(self.n_skipped()) as f64;
        n_pages / (self.floor_share() * self.config.per_hour()).max(1e-9) * 3600.0
    }

    /// A page that has waited too long, if the share of the budget for old captures is unused. Positions are looked at
    /// in turn, some of them at a time, and of these the oldest capture comes first.
    fn next_oldest(&mut self) -> Option<(usize, Reason)> {
        let n_pages = self.pages.len();
        if self.balance.floor_credit < 1.0 || n_pages == 0 {
            return None;
        }
        let (secs, wait) = (self.secs(self.now), self.longest_wait_secs());
        let from = self.oldest_from % n_pages;
        let has_waited = |at: &usize| {
            let seen = self.pages.seen_at[*at];
            f64::from(secs.saturating_sub(seen)) >= wait
                && self.can_rank(*at)
                && self.pages.not_before[*at] <= secs
        };
        let places = (from..from + OLD_AT_ONCE.min(n_pages)).map(|place| place % n_pages);
        let oldest = places.filter(has_waited).min_by_key(|at| self.pages.seen_at[*at]);
        let Some(at) = oldest else {
            self.oldest_from = from + OLD_AT_ONCE;
            return None;
        };
        self.balance.floor_credit -= 1.0;
        self.carry(at);
        Some((at, Reason::Oldest { since: self.instant(self.pages.seen_at[at]) }))
    }

    /// The page at the top of the ladder, if it gains enough.
    fn next_best(&mut self) -> Option<(usize, Reason)> {
        let controls = self.controls_price();
        let is_rich = controls && self.is_rich();
        if controls && !is_rich && self.balance.singles < 1.0 {
            return None;
        }
        let least = if controls && !is_rich { self.balance.shadow_price } else { 0.0 };
        for _ in 0..MOST_OUTDATED {
            let Some((at, gain)) = self.ladder.top() else { return self.reach_all(least) };
            let secs = self.secs(self.now);
            if !self.can_rank(at) || self.pages.not_before[at] > secs {
                self.place(at);
                continue;
            }
            self.carry(at);
            let gains = self.gain_now(at);
            if gains < 0.999 * gain && self.config.budget.is_some() {
                self.place(at);
                continue;
            }
            if gains < least {
                return None;
            }
            if controls {
                self.balance.singles -= 1.0;
            } else {
                self.follow_visit(gains);
            }
            return Some((at, self.reason(at)));
        }
        self.is_busy = true;
        None
    }

    /// Reaches further down the ladder if visits are left over, so that pages below the price are worth them.
    fn reach_all(&mut self, least: f32) -> Option<(usize, Reason)> {
        let is_by_gain = self.config.budget.is_some() && self.config.strategy == Strategy::ExpectedGain;
        // The price lifts the lowest gain a little, so it stays slightly above the bottom.
        let is_at_bottom = self.balance.least_gain <= 4.0 * LEAST_GAIN;
        if is_by_gain && least == 0.0 && self.unplaced.is_none() && !is_at_bottom {
            self.balance.least_gain = (LOWER * self.balance.least_gain).max(LEAST_GAIN);
            self.balance.base = self.balance.base.min(2.0 * self.balance.least_gain / 0.6);
            self.place_all();
        }
        None
    }

    /// Hours until the shadow price can have fallen to the best gain.
    fn hours_to_best(&self) -> f64 {
        let best = self.ladder.top().map_or(0.0, |(_, gain)| gain);
        let fall = f64::from(self.balance.shadow_price / best.max(LEAST_GAIN)).ln();
        (fall / self.fall_per_hour()).clamp(f64::from(RECHECK_SECS) / 3600.0, 1.0)
    }

    /// Whether a page may be ranked, swept, or be the oldest.
    pub(super) fn can_rank(&self, at: usize) -> bool {
        !self.pages.has(at, FRESH | PENDING | VACANT | ABSENT | SKIPPED | PROMISED)
    }

    pub(super) fn reason(&self, at: usize) -> Reason {
        let since = self.instant(self.pages.seen_at[at]);
        if self.pages.has(at, PROMISED)
            && !self.pages.has(at, FRESH | ANNOUNCED)
            && let Some(reason) = self.promise_reason(at)
        {
            reason
        } else if self.pages.has(at, ABSENT) && !self.pages.has(at, PROMISED) {
            Reason::Probe
        } else if self.pages.n_failures[at] > 0 {
            Reason::Retry { n_failures: u16::from(self.pages.n_failures[at]) }
        } else if self.pages.has(at, FRESH) {
            Reason::FirstCapture
        } else if self.pages.has(at, ANNOUNCED) {
            Reason::Announced
        } else if let Some(rule) = self.skip_rule(at) {
            Reason::Skipped { rule, since }
        } else {
            let expected = Importance::new(f64::from(self.pages.expected_importance[at]));
            Reason::Urgent { urgency: self.pages.urgency[at], expected, since }
        }
    }

    /// The next call of [`Scheduler::next_visit`] may give a visit.
    pub(super) fn wake_now(&mut self) {
        self.wakeup = None;
    }

    /// When a visit may be due, if none is now.
    pub(super) fn find_wakeup(&self) -> Timestamp {
        let secs = self.secs(self.now);
        if self.left_of_period() < 1.0 {
            // Nothing can be handed out, but time passes.
            return self.period_end().min(self.instant(self.next_hour)).max(self.now + Span::from_millis(1));
        }
        if self.config.budget.is_some() && self.left_for_others() < 1.0 {
            let next = self.period_end().min(self.instant(self.next_hour));
            return self
                .promised_wakeup()
                .map_or(next, |due| due.min(next))
                .max(self.now + Span::from_millis(1));
        }
        if self.is_busy {
            return self.now + Span::from_millis(1);
        }
        let is_renewed = self.unplaced.is_some() || self.renewal.is_some();
        // Without a token nothing follows from a page that climbs. Otherwise pages that climb one after the other need
        // not wake a driver one by one.
        let ring = self.ladder.timers.first().filter(|_| self.has_token());
        let ring = ring.map(|(when, _)| when.max(secs + CLIMB_SECS));
        let timers = [Some(self.next_hour), ring, self.next_sweep(), is_renewed.then_some(secs + 1)];
        let next = timers.into_iter().flatten().min().unwrap_or(self.next_hour);
        let mut at = self.instant(next.max(secs + 1));
        if let Some(due) = self.promised_wakeup() {
            at = at.min(due);
        }
        // A page below the ladder is visited too if visits are left over.
        let has_work = !self.ladder.is_empty()
            || self.ladder.timers.first().is_some()
            || !(self.fresh.is_empty() && self.probing.is_empty());
        if has_work && self.config.budget.is_some() {
            let hours = self.hours_to_token();
            let hours = if hours > 0.0 { hours } else { self.hours_to_single().max(self.hours_to_best()) };
            at = at.min(self.now + Span::from_millis((hours * 3.6e6).ceil().clamp(1.0, 3.6e6) as i64));
        }
        at.max(self.now + Span::from_millis(1))
    }
}
