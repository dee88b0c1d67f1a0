//! A slot's budget -> its list of visits: new pages first, then the most urgent, and a share for those with the
//! oldest captures (docs/papers.md, Expected gain, with C3 if the budget may vary).

use std::collections::HashMap;

use super::pages::{ABSENT, ANNOUNCED, FRESH, PENDING, PROMISED, QUEUED, SKIPPED, VACANT};
use super::select::{self, Histogram};
use super::{CurrentSlot, Pacing, Reason, Scheduler, Strategy, gain, learn};
use crate::page::importance::Importance;
use crate::pattern::calendar::DayPlace;
use crate::pattern::mixture::bucket_index;
use crate::time::{Span, Timestamp};

/// Share of a slot's visits that new pages leave to others.
const KEPT_FROM_NEW: f64 = 0.2;
/// Share of a slot's visits reserved for pages that have waited longer than this share needs to visit all pages once:
/// a week at M = 10 %. A larger share costs completeness and gains little coherence
/// (docs/decisions/0013-expected-gain.md).
const FLOOR: f64 = 0.06;
/// Without a budget a page is visited at least this often.
const LONGEST_UNSEEN_SECS: u32 = 30 * 86_400;

/// A visit in the list of the current slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedVisit {
    /// The page's position in the columns.
    pub at: u32,
    /// The visit is handed out from this instant on.
    pub due: Timestamp,
    pub reason: Reason,
}

/// Saved visits and their mean shadow price, if the budget may vary (C3).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct VisitSavings {
    saved: f64,
    pub(super) shadow_price: f32,
}

impl Scheduler {
    /// Whether `now` is in the current slot.
    pub(super) fn is_in_slot(&self, now: Timestamp) -> bool {
        self.slot.range.is_some_and(|(_, end)| now < end)
    }

    /// Starts the slot that contains `now`, unless it has started.
    pub(super) fn enter_slot(&mut self, now: Timestamp) {
        if self.is_in_slot(now) {
            return;
        }
        let millis = self.config.slot.as_millis();
        let start = match self.slot.range {
            // Slots are aligned to UTC, so hourly ones match the hours of the clock.
            Some(_) => Timestamp::from_millis(now.as_millis().div_euclid(millis).saturating_mul(millis)),
            None => now,
        };
        let whole = Timestamp::from_millis(start.as_millis().div_euclid(millis).saturating_mul(millis));
        let end = Timestamp::from_millis(
            start.as_millis().div_euclid(millis).saturating_add(1).saturating_mul(millis),
        );
        // The order matters: rates determine values, values determine which directories are skipped, and all of them
        // determine the ranking.
        self.refit_if_due(self.secs(start));
        if self.config.strategy == Strategy::ExpectedGain {
            self.refresh_values(self.secs(start));
        }
        self.judge_directories(self.secs(start));
        // Gains refer to the end of the slot, because every visit of the slot happens before it.
        let mut histogram = Histogram::from_bound(self.expected_bound());
        self.advance_to(end, &mut histogram);
        // The first slot begins in the middle of an hour, but has all of its visits: unused ones would be lost.
        let granted = self.granted(end - whole);
        self.slot = CurrentSlot { range: Some((start, end)), ..CurrentSlot::default() };
        self.rank(self.secs(end), &mut histogram);
        let chosen = self.choose(granted, &mut histogram);
        self.spread_over_slot(chosen, start, end);
    }

    /// Estimates the lowest urgency that this slot has to consider, slightly below the trend of the last two slots.
    /// Most pages are far below it and can be skipped. An estimate that is too high costs a second pass.
    fn expected_bound(&self) -> f32 {
        let [last, before] = self.last_bounds;
        let growth = if before > 0.0 { (last / before).clamp(0.8, 1.25) } else { 1.0 };
        0.97 * last * growth
    }

    fn refit_if_due(&mut self, now_secs: u32) {
        if self.config.learn && self.learner.is_refit_due(now_secs) {
            let most = self.most_histories();
            self.learner.keep_at_most(&mut self.pages, most);
            self.learner.refit_all(&mut self.pages, &self.clocks, now_secs);
            for at in 0..self.pages.len() {
                self.recompute_state(at);
            }
        }
    }

    pub(super) fn most_histories(&self) -> usize {
        let bytes = self.config.evidence_bytes.unwrap_or((20 * self.pages.len()).max(16 << 20));
        (bytes / learn::BYTES_PER_HISTORY).max(16)
    }

    /// Carries every page's state to the end of the slot. The expected-gain strategy ranks the pages in the same
    /// pass.
    fn advance_to(&mut self, end: Timestamp, histogram: &mut Histogram) {
        let end_secs = self.secs(end);
        let from = self.state_at.min(end);
        let mut by_clock: Vec<Vec<gain::SlotStep>> = Vec::with_capacity(self.clocks.len());
        let n_periods = self.config.n_periods;
        for clock in &self.clocks {
            let mut steps = Vec::new();
            clock.pieces(from, end, n_periods, |piece| {
                steps.push(gain::SlotStep {
                    bucket: bucket_index(piece.kind, piece.period, n_periods),
                    hours: piece.hours * piece.times,
                    day: piece.day.map(|day| DayPlace::new(day, piece.kind)),
                });
            });
            by_clock.push(steps);
        }
        let n_steps = by_clock.iter().map(Vec::len).max().unwrap_or(0);
        let left =
            if self.config.spells { gain::spell_left((end - from).as_hours_f64() as f32) } else { 1.0 };
        for step in 0..n_steps {
            self.steps.clear();
            let idle = |steps: &Vec<gain::SlotStep>| {
                steps.last().map_or(gain::SlotStep::default(), |last| gain::SlotStep { hours: 0.0, ..*last })
            };
            self.steps
                .extend(by_clock.iter().map(|steps| steps.get(step).copied().unwrap_or_else(|| idle(steps))));
            if self.config.strategy == Strategy::ExpectedGain {
                let is_last = step + 1 == n_steps;
                let left = if is_last { left } else { 1.0 };
                let then_rank = is_last.then_some(gain::RankingPass {
                    now_secs: end_secs,
                    histogram: &mut *histogram,
                    ahead: self.plans_ahead().then_some(&self.ahead),
                });
                gain::advance(&mut self.pages, self.learner.rows(), &self.steps, left, then_rank);
            }
        }
        self.state_at = end;
    }

    /// Recomputes the expected importance and changes of a page from its last visit to the end of the slot.
    pub(super) fn recompute_state(&mut self, at: usize) {
        if self.pages.has(at, FRESH | VACANT) {
            return;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        let clock = &self.clocks[usize::from(self.pages.clock[at])];
        let state_secs = self.secs(self.state_at);
        let span = (self.pages.seen_at[at], state_secs);
        self.learner.pieces_for(&self.pages, at, clock, span, &mut pieces);
        let (expected_importance, expected_changes) =
            gain::integrate(&self.learner, &self.pages, at, &pieces);
        (self.pages.expected_importance[at], self.pages.expected_changes[at]) =
            (expected_importance, expected_changes);
        self.pieces = pieces;
        self.set_value(at);
    }

    /// Adds the visits that the budget grants to a slot. Fractions carry over to the next slot.
    fn granted(&mut self, length: Span) -> Option<f64> {
        let granted = self.config.budget?.visits_in(length).min(1e9);
        // Pages with intervals of their own are served before all others.
        let granted = (granted - self.promised_in(length)).max(0.0);
        self.credit = self.credit.fract() + granted;
        Some(granted)
    }

    fn rank(&mut self, end_secs: u32, histogram: &mut Histogram) {
        if self.config.strategy == Strategy::FixedInterval {
            let interval = self.fixed_interval_hours();
            for at in 0..self.pages.len() {
                let is_open = self.may_visit(at, end_secs) && !self.pages.has(at, FRESH);
                let age = end_secs.saturating_sub(self.pages.seen_at[at]) as f32 / 3600.0;
                // The small addition makes a page that is due exactly now count.
                let urgency = if is_open && age >= interval { age - interval + 1e-3 } else { 0.0 };
                self.pages.urgency[at] = urgency;
                histogram.add(urgency);
            }
        }
    }

    fn fixed_interval_hours(&self) -> f32 {
        match (self.config.interval, self.config.budget) {
            (Some(interval), _) => interval.as_hours_f64() as f32,
            // Without an interval pages are visited as often as the budget allows, the oldest first.
            (None, Some(_)) => 0.0,
            (None, None) => 24.0,
        }
    }

    pub(super) fn may_visit(&self, at: usize, now_secs: u32) -> bool {
        !self.pages.has(at, PENDING | VACANT | ABSENT | SKIPPED | PROMISED)
            && self.pages.not_before[at] <= now_secs
    }

    /// The visits of the slot, in order.
    fn choose(&mut self, granted: Option<f64>, histogram: &mut Histogram) -> Vec<(u32, Reason)> {
        let Some(granted) = granted else {
            self.slot.capacity = usize::MAX;
            return self.choose_all_worth();
        };
        if self.sweeps_sites() {
            let end_secs = self.slot.range.map_or(0, |(_, end)| self.secs(end));
            return self.choose_balanced(granted, histogram, end_secs);
        }
        if self.config.saves_visits() && self.config.strategy == Strategy::ExpectedGain {
            self.slot.capacity = self.choose_capacity(granted, histogram);
        } else {
            self.slot.capacity = self.credit.floor() as usize;
        }
        let capacity = self.slot.capacity.min(self.pages.len());
        if self.config.strategy == Strategy::ExpectedGain {
            // More than the capacity, because some of the best pages are chosen otherwise or may not be visited.
            let n_wanted = 2 * capacity + 64;
            histogram.complete(&self.pages.urgency, n_wanted);
            self.last_bounds = [histogram.bound(n_wanted), self.last_bounds[0]];
        }
        let mut probes = self.choose_probes(granted, capacity);
        probes.extend(self.probe_directories(granted, capacity - probes.len()));
        let capacity = capacity - probes.len();
        let mut chosen = self.choose_new(capacity);
        let n_first = (capacity as f64 * (1.0 - KEPT_FROM_NEW)).ceil() as usize;
        let mut waiting = chosen.split_off(n_first.min(chosen.len()));
        let floor = self.floor_visits(capacity, granted).min(capacity - chosen.len());
        let oldest = self.choose_oldest(floor, self.longest_wait_secs(granted), histogram);
        let left = capacity - chosen.len() - oldest.len();
        let mut rest = oldest;
        let urgent = self.choose_urgent(left, histogram);
        self.note_shadow_price(&urgent);
        self.note_last_gain(&urgent, left);
        rest.extend(urgent);
        waiting.truncate(capacity - chosen.len() - rest.len());
        chosen.append(&mut waiting);
        let urgency = |at: u32| self.pages.urgency[at as usize].abs();
        if self.config.strategy == Strategy::ExpectedGain {
            // Sorting by age keeps a page's position within the slot, so a busy page is visited at even
            // intervals. Sorting by urgency would vary the intervals: a short one earns nothing and a long one misses
            // a change.
            let turn =
                |at: u32| (!self.pages.has(at as usize, ANNOUNCED), self.pages.seen_at[at as usize], at);
            rest.sort_by_key(|(at, _)| turn(*at));
        } else {
            rest.sort_by(|a, b| urgency(b.0).total_cmp(&urgency(a.0)).then(a.0.cmp(&b.0)));
        }
        chosen.extend(rest);
        chosen.extend(probes);
        chosen
    }

    fn choose_all_worth(&mut self) -> Vec<(u32, Reason)> {
        let mut chosen = self.choose_new(usize::MAX);
        let end_secs = self.slot.range.map_or(0, |(_, end)| self.secs(end));
        let gain = self.config.strategy == Strategy::ExpectedGain;
        let is_worth = |at: &u32| {
            let at = *at as usize;
            let unseen = end_secs.saturating_sub(self.pages.seen_at[at]);
            let worth = !gain
                || self.pages.expected_importance[at] >= self.config.worth
                || unseen > LONGEST_UNSEEN_SECS;
            self.pages.urgency[at] > 0.0 && worth
        };
        let mut worth: Vec<u32> = (0..self.pages.len() as u32).filter(is_worth).collect();
        let urgency = |at: u32| self.pages.urgency[at as usize];
        worth.sort_by(|&a, &b| urgency(b).total_cmp(&urgency(a)).then(a.cmp(&b)));
        chosen.extend(worth.into_iter().map(|at| (at, self.reason(at as usize))));
        chosen.extend(self.vanished_probes(usize::MAX));
        chosen.extend(self.due_probes(usize::MAX));
        chosen
    }

    /// Pages that were never captured, in order of arrival.
    pub(super) fn choose_new(&mut self, n: usize) -> Vec<(u32, Reason)> {
        let end_secs = self.slot.range.map_or(0, |(_, end)| self.secs(end));
        let mut chosen = Vec::new();
        for _ in 0..self.fresh.len() {
            if chosen.len() >= n {
                break;
            }
            let Some(at) = self.fresh.pop_front() else { break };
            self.pages.flags[at as usize] &= !QUEUED;
            if !self.pages.has(at as usize, FRESH) || self.pages.has(at as usize, ABSENT) {
                continue;
            }
            if self.is_doubtful(at as usize) {
                self.defer_doubtful(at as usize);
                continue;
            }
            if self.may_visit(at as usize, end_secs) {
                chosen.push((at, self.reason(at as usize)));
            }
            // The page stays in the queue until it has been captured, because the visit may fail.
            self.queue_new(at as usize);
        }
        chosen
    }

    pub(super) fn queue_new(&mut self, at: usize) {
        if !self.pages.has(at, QUEUED) {
            self.pages.flags[at] |= QUEUED;
            self.fresh.push_back(at as u32);
        }
    }

    /// The share of the budget reserved for the pages with the oldest captures.
    fn floor_share(&self) -> f64 {
        match (self.config.floor, self.config.strategy) {
            (Some(share), _) => f64::from(share),
            (None, Strategy::ExpectedGain) => FLOOR,
            (None, Strategy::FixedInterval) => 0.0,
        }
    }

    /// The time in which the reserved share could visit all pages once. Pages that have waited longer get that share;
    /// the rest of it goes to the most urgent pages.
    pub(super) fn longest_wait_secs(&self, granted: f64) -> f64 {
        let per_slot = (self.floor_share() * granted).max(1e-9);
        (self.n_followed() - self.n_skipped().min(self.n_followed())) as f64 / per_slot
            * self.config.slot.as_secs_f64()
    }

    /// How many of a slot's visits are reserved for the pages with the oldest captures.
    pub(super) fn floor_visits(&mut self, capacity: usize, granted: f64) -> usize {
        let share = self.floor_share();
        self.floor_credit = self.floor_credit.fract() + share * granted.min(capacity as f64);
        self.floor_credit.floor() as usize
    }

    pub(super) fn choose_oldest(
        &mut self,
        n: usize,
        longest_wait: f64,
        histogram: &mut Histogram,
    ) -> Vec<(u32, Reason)> {
        if n == 0 {
            return Vec::new();
        }
        let end_secs = self.slot.range.map_or(0, |(_, end)| self.secs(end));
        if longest_wait >= self.oldest_due.0 && end_secs < self.oldest_due.1 {
            return Vec::new();
        }
        let pages = &self.pages;
        let seen_before = f64::from(end_secs) - longest_wait;
        // A single column is enough to skip nearly all pages.
        let waiting: Vec<u32> = (0..pages.len() as u32)
            .zip(&pages.seen_at)
            .filter(|(_, seen_at)| f64::from(**seen_at) <= seen_before)
            .map(|(at, _)| at)
            .filter(|&at| {
                let at = at as usize;
                !pages.has(at, FRESH | PENDING | VACANT | ABSENT | SKIPPED | PROMISED)
                    && pages.not_before[at] <= end_secs
            })
            .collect();
        self.oldest_due = (longest_wait, if waiting.is_empty() { self.next_oldest(longest_wait) } else { 0 });
        let pages = &self.pages;
        let age = |place: usize| {
            let at = waiting.get(place).map_or(0, |&at| at as usize);
            end_secs.saturating_sub(pages.seen_at[at]) as f32
        };
        let oldest: Vec<u32> = select::largest_by(waiting.len(), n, age)
            .into_iter()
            .map(|place| waiting[place as usize])
            .collect();
        for &at in &oldest {
            let urgency = &mut self.pages.urgency[at as usize];
            histogram.remove(*urgency);
            // A negative urgency prevents a second choice of the page, and its absolute value still sorts it.
            *urgency = -*urgency;
        }
        let reason = |at: u32| match self.reason(at as usize) {
            Reason::Urgent { since, .. } => Reason::Oldest { since },
            other => other,
        };
        oldest.into_iter().map(|at| (at, reason(at))).collect()
    }

    /// The second at which the first page will have waited for `longest_wait`.
    fn next_oldest(&self, longest_wait: f64) -> u32 {
        let pages = &self.pages;
        let is_seen = |at: &usize| !pages.has(*at, FRESH | VACANT | ABSENT | SKIPPED | PROMISED);
        let seen = (0..pages.len())
            .filter(is_seen)
            .map(|at| pages.seen_at[at].max(pages.not_before[at].saturating_sub(longest_wait as u32)));
        seen.min().map_or(0, |seen| (f64::from(seen) + longest_wait) as u32)
    }

    fn choose_urgent(&mut self, n: usize, histogram: &Histogram) -> Vec<(u32, Reason)> {
        let chosen = match self.config.site_limit {
            Some(limit) => self.largest_within_sites(n, limit, histogram),
            None => select::largest(&self.pages.urgency, n, histogram),
        };
        chosen.into_iter().map(|at| (at, self.reason(at as usize))).collect()
    }

    /// The most urgent pages, at most `limit` per site.
    fn largest_within_sites(&self, n: usize, limit: u32, histogram: &Histogram) -> Vec<u32> {
        // The limit may reject many candidates of one large site, so the number of candidates grows until enough are
        // left.
        let mut wanted = n.saturating_mul(2).max(64);
        loop {
            let mut candidates = select::largest(&self.pages.urgency, wanted, histogram);
            let urgency = |at: u32| self.pages.urgency[at as usize];
            candidates.sort_by(|&a, &b| urgency(b).total_cmp(&urgency(a)).then(a.cmp(&b)));
            let exhausted = candidates.len() < wanted;
            let mut per_site: HashMap<u32, u32> = HashMap::new();
            candidates.retain(|&at| {
                let count = per_site.entry(self.pages.site[at as usize]).or_default();
                *count += 1;
                *count <= limit
            });
            if candidates.len() >= n || exhausted {
                candidates.truncate(n);
                return candidates;
            }
            wanted = wanted.saturating_mul(4);
        }
    }

    /// C3: visits are saved when few pages are worth the mean price, and spent when many are. A day's savings end
    /// with the day, as in `balance`.
    fn choose_capacity(&mut self, granted: f64, histogram: &Histogram) -> usize {
        let hours = self.config.slot.as_hours_f64().max(1e-9);
        let per_hour = (granted / hours).max(1e-9);
        let (behind, left) = (self.behind(per_hour), self.left_of_period());
        let saved = match behind {
            Some(behind) => 12.0 * per_hour + behind,
            None => self.bank.saved + granted,
        };
        let saved = saved.clamp(0.0, 24.0 * per_hour);
        let shortfall = behind.map_or_else(|| 1.0 - saved / (12.0 * per_hour), |_| self.shortfall(per_hour));
        let most = 2.0 * granted * (-shortfall).max(1.0);
        // No more visits than this are possible in the slot, so further pages need no sorting.
        let mut best: Vec<f32> =
            select::largest(&self.pages.urgency, (most.ceil() as usize).max(1), histogram)
                .into_iter()
                .map(|at| self.pages.urgency[at as usize])
                .collect();
        best.sort_by(|a, b| b.total_cmp(a));
        let at_budget = best.get((granted.ceil() as usize).saturating_sub(1)).copied().unwrap_or(0.0);
        let bank = &mut self.bank;
        bank.shadow_price = match bank.shadow_price {
            shadow_price if shadow_price > 0.0 => {
                shadow_price + (at_budget - shadow_price) * (hours / 72.0).min(1.0) as f32
            }
            _ => at_budget,
        };
        let shadow_price = bank.shadow_price * (0.25 * shortfall).exp() as f32;
        let mut visits = best.iter().filter(|&&urgency| urgency >= shadow_price).count() as f64;
        if saved > 23.0 * per_hour {
            visits = visits.max(granted);
        }
        let visits = visits.min(most).min(saved).min(left).floor().max(0.0);
        bank.saved = saved - visits;
        visits as usize
    }

    fn spread_over_slot(&mut self, chosen: Vec<(u32, Reason)>, start: Timestamp, end: Timestamp) {
        let n = chosen.len().max(1) as i64;
        let length = (end - start).as_millis();
        let spread = self.config.pacing == Pacing::Spread && self.config.budget.is_some();
        let has_place = self.sweeps_sites();
        let delay = |rank: usize, at: u32, reason: &Reason| match (spread, has_place, reason) {
            (false, ..) | (_, true, Reason::Announced) => 0,
            // New pages come first, because they have no interval to keep even.
            (true, true, _) if !self.pages.has(at as usize, FRESH) => {
                (length as f64 * self.share_of_slot(at as usize)) as i64
            }
            (true, ..) => length.saturating_mul(rank as i64) / n,
        };
        let planned = chosen.into_iter().enumerate().map(|(rank, (at, reason))| {
            let due = start + Span::from_millis(delay(rank, at, &reason));
            PlannedVisit { at, due, reason }
        });
        let mut planned: Vec<PlannedVisit> = planned.collect();
        if has_place {
            planned.sort_by_key(|planned| planned.due);
        }
        for &PlannedVisit { at, .. } in &planned {
            let urgency = &mut self.pages.urgency[at as usize];
            *urgency = urgency.abs();
        }
        self.slot.plan.extend(planned);
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

    /// Puts a page that was found or announced during the slot before the plan. If the slot's budget is used up, it
    /// replaces the last page of the plan if that one is less urgent.
    pub(super) fn plan_at_once(&mut self, at: usize) {
        let Some((start, _)) = self.slot.range else { return };
        let used = self.slot.n_handed_out + self.slot.plan.len() + self.slot.at_once.len();
        if used >= self.slot.capacity {
            let Some(last) = self.slot.plan.back() else { return };
            let is_less = self.pages.urgency[last.at as usize] < self.pages.urgency[at];
            if self.pages.has(last.at as usize, FRESH) || !(is_less || self.pages.has(at, FRESH)) {
                return;
            }
            self.slot.plan.pop_back();
        }
        let reason = self.reason(at);
        self.slot.at_once.push_back(PlannedVisit { at: at as u32, due: start, reason });
    }

    /// Whether the page is in this slot's plan or was visited in this slot.
    pub(super) fn has_had_its_turn(&self, at: usize) -> bool {
        self.was_visited_in_slot(at)
            || self.slot.plan.iter().chain(&self.slot.at_once).any(|planned| planned.at == at as u32)
    }

    pub(super) fn was_visited_in_slot(&self, at: usize) -> bool {
        let Some((start, _)) = self.slot.range else { return false };
        self.pages.has(at, PENDING)
            || self.slot.had_turn.contains(&(at as u32))
            || self.pages.seen_at[at] >= self.secs(start)
    }
}
