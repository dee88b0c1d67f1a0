//! Rates of a page -> its gain at any instant, and the instant at which it gains a given amount.
//!
//! A page is looked at when it is visited or announced, when it climbs to the next rung of the ladder, and once a
//! day. Pages far below the shadow price have one timer, for the lowest rung that counts. So the work follows the
//! visits and not the number of pages, and a change of the price touches no page.

use super::gain::{self, patience, spell_left};
use super::ladder::next_gain;
use super::outlook::{HOUR_SECS, HourPlace};
use super::pages::{ABSENT, ANNOUNCED, FRESH, INCOHERENT, PENDING, PROMISED, SKIPPED, VACANT};
use super::{ANNOUNCED_CHANGES, Scheduler, Strategy};
use crate::pattern::mixture::{exp_neg, one_minus_exp};

/// A page is looked at again after this time, because further hours are not known.
const HORIZON_SECS: u32 = 86_400;
/// Without a budget a page is visited at least this often, because an estimate of never is never certain.
const LONGEST_UNSEEN_SECS: u32 = 30 * 86_400;
/// An instant is found within so many seconds, or within this share of the wait. Estimated rates are less precise, and each
/// halving costs an exponential.
const NEAR_SECS: u32 = 4;
const NEAR_SHARE: u32 = 64;
/// Pages that one event places at most. A page costs about a microsecond.
const SLICE: usize = 4096;
/// The only rung if pages are visited by age.
const BY_AGE: f32 = 1.0;

/// r, L and the spell of a page at an instant.
#[derive(Clone, Copy)]
struct GainState {
    expected_importance: f32,
    expected_changes: f32,
    spell: f32,
}

/// What happens to a page within one hour, in which its rate is constant.
#[derive(Clone, Copy)]
struct ConstantHour {
    rate: f32,
    importance: f32,
    end: u32,
}

impl GainState {
    fn after(self, stretch: ConstantHour, secs: u32) -> GainState {
        let x = stretch.rate * secs as f32 / HOUR_SECS as f32;
        let left = exp_neg(x);
        GainState {
            expected_importance: stretch.importance + (self.expected_importance - stretch.importance) * left,
            expected_changes: self.expected_changes + x,
            spell: self.spell,
        }
    }

    /// Lets the spell fade. It counts as constant within an hour.
    fn faded(self, secs: u32) -> GainState {
        if self.spell == 1.0 {
            return self;
        }
        let left = spell_left(secs as f32 / HOUR_SECS as f32);
        GainState { spell: 1.0 + (self.spell - 1.0) * left, ..self }
    }
}

impl Scheduler {
    fn page_state(&self, at: usize) -> GainState {
        GainState {
            expected_importance: self.pages.expected_importance[at],
            expected_changes: self.pages.expected_changes[at],
            spell: self.pages.spell[at],
        }
    }

    #[inline]
    fn constant_hour(&self, at: usize, state: GainState, (place, end): (HourPlace, u32)) -> ConstantHour {
        let busy =
            self.learner.rows().calendar(self.pages.row[at]).map_or(1.0, |calendar| calendar.at(place.day));
        let (rate, importance) =
            self.learner.in_spell(&self.pages, at, usize::from(place.bucket), state.spell);
        ConstantHour { rate: rate * busy, importance, end }
    }

    /// Recomputes r and L of a page from its last visit to now.
    pub(super) fn recompute_state(&mut self, at: usize) {
        if self.pages.has(at, FRESH | VACANT) {
            return;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        let clock = &self.clocks[usize::from(self.pages.clock[at])];
        let now = self.secs(self.now).max(self.pages.seen_at[at]);
        self.learner.pieces_for(&self.pages, at, clock, (self.pages.seen_at[at], now), &mut pieces);
        let (importance, changes) = gain::integrate(&self.learner, &self.pages, at, &pieces);
        self.pieces = pieces;
        (self.pages.expected_importance[at], self.pages.expected_changes[at]) = (importance, changes);
        self.pages.carried_at[at] = now;
        if self.pages.has(at, ANNOUNCED) {
            self.expect_change(at, 0.0);
        }
        self.set_value(at);
        self.pages.urgency[at] = self.urgency(at);
    }

    /// A change is certain, so waiting earns nothing more.
    pub(super) fn expect_change(&mut self, at: usize, importance: f32) {
        let pages = &mut self.pages;
        let importance = if importance > 0.0 { importance } else { pages.importance[at] };
        pages.expected_importance[at] = pages.expected_importance[at].max(importance);
        pages.expected_changes[at] = pages.expected_changes[at].max(ANNOUNCED_CHANGES);
    }

    fn urgency(&self, at: usize) -> f32 {
        match self.config.strategy {
            Strategy::ExpectedGain => gain::page_gain(&self.pages, at),
            Strategy::FixedInterval => self.secs(self.now).saturating_sub(self.pages.seen_at[at]) as f32,
        }
    }

    /// Carries r and L of a page to now.
    pub(super) fn carry(&mut self, at: usize) {
        let to = self.secs(self.now);
        let mut state = self.page_state(at);
        let mut from = self.pages.carried_at[at];
        while from < to {
            let Some(hour) = self.outlook.at(self.pages.clock[at], from) else {
                return self.recompute_state(at);
            };
            let stretch = self.constant_hour(at, state, hour);
            let end = stretch.end.min(to);
            state = state.after(stretch, end - from).faded(end - from);
            from = end;
        }
        let pages = &mut self.pages;
        (pages.expected_importance[at], pages.expected_changes[at], pages.spell[at]) =
            (state.expected_importance, state.expected_changes, state.spell);
        pages.carried_at[at] = pages.carried_at[at].max(to);
        self.pages.urgency[at] = self.urgency(at);
    }

    /// The gain of a single visit, minus the cost of the incoherent hours that it is expected to cause. Without a
    /// budget it is the expected importance, because no other visit is missed.
    fn net_gain(&self, at: usize, state: GainState, secs: u32) -> f32 {
        if self.config.budget.is_none() {
            return state.expected_importance;
        }
        let pages = &self.pages;
        let sure = pages.sure_value[at];
        let patient = (pages.value[at] - sure) * patience(state.expected_changes);
        let gain = state.expected_importance * (sure + patient);
        let place = pages.site[at] as usize;
        let incoherent_hour = self.balance.incoherent_hours.get(place).copied().unwrap_or(0.0);
        if incoherent_hour <= 0.0 || pages.has(at, ANNOUNCED) {
            return gain;
        }
        let site = &self.sites.all[place];
        let age = secs.saturating_sub(pages.seen_at[at]) as f32 / HOUR_SECS as f32;
        let is_incoherent = pages.sweep_flags[at] & INCOHERENT != 0 && pages.seen_at[at] > site.swept_at;
        // A page that is already incoherent loses only the hours since its last visit. On average a query falls into
        // half of them.
        let hours = if is_incoherent { age.min(site.gap_hours) } else { site.gap_hours } / 2.0;
        gain - incoherent_hour * self.page_omega(at) * one_minus_exp(state.expected_changes) * hours
    }

    /// The gain of a single visit now. The page's state was carried to now.
    pub(super) fn gain_now(&self, at: usize) -> f32 {
        match self.config.strategy {
            Strategy::ExpectedGain => self.net_gain(at, self.page_state(at), self.secs(self.now)),
            Strategy::FixedInterval => BY_AGE,
        }
    }

    /// The first second at which a page gains `wanted`, or a day from now.
    fn second_of_gain(&self, at: usize, wanted: f32) -> u32 {
        let now = self.secs(self.now);
        let last = now.saturating_add(HORIZON_SECS);
        let (mut state, mut from) = (self.page_state(at), now);
        while from < last {
            let Some(hour) = self.outlook.at(self.pages.clock[at], from) else { return last };
            let stretch = self.constant_hour(at, state, hour);
            let end = stretch.end.min(last);
            let is_there = |secs: u32| self.net_gain(at, state.after(stretch, secs), from + secs) >= wanted;
            if is_there(end - from) {
                let (mut before, mut after) = (0, end - from);
                while after - before > NEAR_SECS.max((after + from - now) / NEAR_SHARE) {
                    let middle = before.midpoint(after);
                    if is_there(middle) { after = middle } else { before = middle }
                }
                return (from + after).max(now + 1);
            }
            state = state.after(stretch, end - from).faded(end - from);
            from = end;
        }
        last
    }

    /// Puts a page where it belongs now: on a rung, with a timer for the next one, or into the queue of new pages.
    pub(super) fn place(&mut self, at: usize) {
        self.wake_now();
        self.ladder.grow(self.pages.len());
        self.ladder.remove(at);
        if !self.has_begun() && !self.pages.has(at, FRESH) {
            return;
        }
        let pages = &self.pages;
        if pages.has(at, PENDING | VACANT | ABSENT | SKIPPED | PROMISED) {
            return;
        }
        let now = self.secs(self.now);
        if pages.not_before[at] > now {
            return self.ladder.timers.set(at, pages.not_before[at]);
        }
        if pages.has(at, FRESH) {
            return self.queue_new(at);
        }
        match self.config.strategy {
            Strategy::ExpectedGain => self.place_by_gain(at, now),
            Strategy::FixedInterval => self.ladder.timers.set(at, self.due_by_age(at)),
        }
    }

    fn place_by_gain(&mut self, at: usize, now: u32) {
        self.carry(at);
        let gain = self.gain_now(at);
        let least = self.least_gain();
        let is_old =
            self.config.budget.is_none() && now.saturating_sub(self.pages.seen_at[at]) > LONGEST_UNSEEN_SECS;
        if gain >= least || is_old {
            self.ladder.put(at, gain.max(least));
        }
        let wanted = if gain >= least { next_gain(gain) } else { least };
        let when = self.second_of_gain(at, wanted);
        self.ladder.timers.set(at, when);
    }

    /// When a page is due by its age. Timers ring in the order of their seconds, so the oldest page comes first.
    fn due_by_age(&self, at: usize) -> u32 {
        self.pages.seen_at[at].saturating_add(self.fixed_interval_secs())
    }

    /// Places the pages whose timers are due, at most a slice of them.
    pub(super) fn ring_timers(&mut self, secs: u32) {
        for _ in 0..SLICE {
            let Some((_, at)) = self.ladder.timers.first().filter(|(when, _)| *when <= secs) else { return };
            let is_by_age = self.config.strategy == Strategy::FixedInterval && self.can_rank(at);
            if is_by_age && self.pages.not_before[at] <= secs && self.due_by_age(at) <= secs {
                self.ladder.remove(at);
                self.ladder.put(at, BY_AGE);
            } else {
                self.place(at);
            }
        }
        self.is_busy = true;
    }

    fn fixed_interval_secs(&self) -> u32 {
        match (self.config.interval, self.config.budget) {
            (Some(interval), _) => (interval.as_millis() / 1000).clamp(1, i64::from(u32::MAX / 2)) as u32,
            // Without an interval pages are visited as often as the budget allows, the oldest first.
            (None, Some(_)) => 0,
            (None, None) => 86_400,
        }
    }

    /// The gain from which pages are on the ladder.
    fn least_gain(&self) -> f32 {
        if self.config.budget.is_none() { self.config.worth } else { self.balance.least_gain }
    }

    /// Places all pages again, a slice at a time.
    pub(super) fn place_all(&mut self) {
        self.unplaced = Some(0);
        self.wake_now();
    }

    /// Places the next slice of pages, if all are to be placed.
    pub(super) fn place_slice(&mut self) {
        let Some(from) = self.unplaced else { return };
        let until = (from + SLICE).min(self.pages.len());
        for at in from..until {
            if !self.pages.has(at, FRESH) {
                self.place(at);
            }
        }
        self.unplaced = (until < self.pages.len()).then_some(until);
    }
}
