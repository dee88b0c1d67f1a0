//! A slot's budget -> its list of visits: new pages first, then the most urgent, and a share for those seen
//! longest ago.

use super::pages::{FRESH, GONE, NOTICED, PENDING, VACANT};
use super::select;
use super::{Pacing, Reason, Scheduler, Slot, Strategy};
use crate::importance::Importance;
use crate::time::{Span, Timestamp};

/// One visit of the current slot's list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    /// Position in the columns.
    pub at: u32,
    /// Not handed out earlier.
    pub due: Timestamp,
    pub reason: Reason,
}

impl Scheduler {
    /// Makes the slot that holds `now` the current one, if it is not.
    pub(super) fn enter_slot(&mut self, now: Timestamp) {
        let millis = self.config.slot.as_millis();
        let start = match self.slot.range {
            Some((_, end)) if now < end => return,
            // Slots lie on the grid of UTC, so that hourly ones are hours of the clock.
            Some(_) => Timestamp::from_millis(now.as_millis().div_euclid(millis).saturating_mul(millis)),
            None => now,
        };
        let end = Timestamp::from_millis(
            start.as_millis().div_euclid(millis).saturating_add(1).saturating_mul(millis),
        );
        let capacity = self.capacity_of(end - start);
        self.slot = Slot { range: Some((start, end)), capacity, ..Slot::default() };
        self.rank();
        let chosen = self.choose(capacity);
        self.lay_out(chosen, start, end);
    }

    /// Whole visits that the budget grants to a slot; fractions wait for the next.
    fn capacity_of(&mut self, length: Span) -> usize {
        let Some(budget) = self.config.budget else { return usize::MAX };
        self.credit = (self.credit.fract() + budget.visits_in(length)).min(1e9);
        self.credit.floor() as usize
    }

    /// Fills the column of urgencies; 0 for a page that must not be visited now.
    fn rank(&mut self) {
        let now = self.slot.range.map_or(1, |(_, end)| self.secs(end));
        let interval = self.fixed_interval_secs();
        for at in 0..self.pages.len() {
            let age = now.saturating_sub(self.pages.seen_at[at]) as f32;
            let is_due = self.config.strategy != Strategy::FixedInterval || age >= interval;
            self.pages.urgency[at] = if is_due && self.may_visit(at, now) { age } else { 0.0 };
        }
    }

    fn fixed_interval_secs(&self) -> f32 {
        let day = 86_400.0;
        match (self.config.interval, self.config.budget) {
            (Some(interval), _) => interval.as_secs_f64() as f32,
            (None, Some(_)) => 0.0,
            (None, None) => day,
        }
    }

    pub(super) fn may_visit(&self, at: usize, now_secs: u32) -> bool {
        !self.pages.has(at, PENDING | VACANT) && self.pages.not_before[at] <= now_secs
    }

    fn choose(&mut self, capacity: usize) -> Vec<u32> {
        let mut chosen = select::largest_of(&self.pages.urgency, capacity.min(self.pages.len()));
        let pages = &self.pages;
        let key = |at: u32| (pages.has(at as usize, FRESH), pages.urgency[at as usize]);
        chosen.sort_by(|&a, &b| {
            let (a, b) = (key(a), key(b));
            b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
        });
        chosen
    }

    /// Spreads the chosen pages over the slot, the first at its start.
    fn lay_out(&mut self, chosen: Vec<u32>, start: Timestamp, end: Timestamp) {
        let n = chosen.len().max(1) as i64;
        let length = (end - start).as_millis();
        let spread = self.config.pacing == Pacing::Spread;
        for (rank, at) in chosen.into_iter().enumerate() {
            let delay = if spread { length.saturating_mul(rank as i64) / n } else { 0 };
            let reason = self.reason_of(at as usize);
            self.slot.plan.push_back(Planned { at, due: start + Span::from_millis(delay), reason });
        }
    }

    pub(super) fn reason_of(&self, at: usize) -> Reason {
        let since = self.instant(self.pages.seen_at[at]);
        if self.pages.n_failures[at] > 0 || self.pages.has(at, GONE) {
            Reason::Retry { n_failures: u16::from(self.pages.n_failures[at]) }
        } else if self.pages.has(at, FRESH) {
            Reason::FirstCapture
        } else if self.pages.has(at, NOTICED) {
            Reason::Notice
        } else {
            let expected = Importance::new(f64::from(self.pages.reward[at]));
            Reason::Urgent { urgency: self.pages.urgency[at], expected, since }
        }
    }

    /// A page that appears in the middle of a slot is fetched at once when the budget allows.
    pub(super) fn plan_fresh(&mut self, at: usize) {
        let Some((start, _)) = self.slot.range else { return };
        let used = self.slot.n_handed_out + self.slot.plan.len();
        if used >= self.slot.capacity {
            match self.slot.plan.back() {
                Some(last) if !self.pages.has(last.at as usize, FRESH) => self.slot.plan.pop_back(),
                _ => return,
            };
        }
        let reason = self.reason_of(at);
        let n_fresh = self.slot.plan.iter().take_while(|other| other.reason == Reason::FirstCapture);
        let after = n_fresh.count();
        self.slot.plan.insert(after, Planned { at: at as u32, due: start, reason });
    }
}
