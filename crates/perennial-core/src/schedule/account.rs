//! The budget's account: how many visits may be handed out at an instant.
//!
//! There is one account for the scheduler and the crawl. A visit that is handed out is reserved; it is spent in the
//! period in which it starts, because it may wait for its host until the next one. So no period has more visits than
//! the budget allows, whenever visits start, and the driver needs no account of its own.

use super::pages::{PENDING, STARTED};
use super::{Budget, ScheduleConfig, Scheduler};
use crate::time::{Span, Timestamp};
use crate::url::PageId;

const HOUR: Span = Span::from_hours(1);
/// Periods from this length on are a limit also if visits may be saved.
const DAY: Span = Span::from_hours(24);

/// Share of the visits that new pages leave to others. A site without end has always new pages, and what is known must not
/// wait for its end.
const KEPT_FROM_NEW: f64 = 0.2;

/// Visits made and granted.
#[derive(Clone, Default, Debug)]
pub(super) struct Account {
    /// The number of the budget's period, and the visits that started in it.
    spent: (i64, u64),
    /// Visits that were handed out and have not started.
    n_reserved: u64,
    /// Visits that were granted and not handed out.
    tokens: f64,
    /// When tokens were last added.
    filled_at: Option<Timestamp>,
}

fn period_of(budget: Budget, at: Timestamp) -> i64 {
    at.as_millis().div_euclid(budget.period.as_millis().max(1))
}

impl ScheduleConfig {
    /// The budget, if no period may have more visits than it allows.
    fn limit(&self) -> Option<Budget> {
        self.budget.filter(|budget| !self.saves_visits() || budget.period >= DAY)
    }

    pub(super) fn per_hour(&self) -> f64 {
        self.budget.map_or(0.0, |budget| budget.visits_in(HOUR).min(1e9))
    }
}

impl Scheduler {
    /// Sets the number of visits that started in the current period of the budget before this scheduler was created.
    pub fn set_spent(&mut self, n_visits: u64, now: Timestamp) {
        let Some(budget) = self.config.budget else { return };
        self.account.spent = (period_of(budget, now), n_visits);
        self.wake_now();
    }

    /// Records that a visit starts. The driver need not report it: without that it counts when its outcome is
    /// recorded.
    pub fn start_visit(&mut self, page: PageId, now: Timestamp) {
        match self
            .pages
            .position(page)
            .filter(|&at| self.pages.has(at, PENDING) && !self.pages.has(at, STARTED))
        {
            Some(at) => self.start(at, now),
            // Nobody asked the scheduler, but the visit is made.
            None => {
                self.account.tokens -= 1.0;
                self.spend_at(now);
            }
        }
    }

    /// Spends the reserved visit of a page.
    pub(super) fn start(&mut self, at: usize, now: Timestamp) {
        self.pages.flags[at] |= STARTED;
        self.account.n_reserved = self.account.n_reserved.saturating_sub(1);
        self.spend_at(now);
    }

    fn spend_at(&mut self, now: Timestamp) {
        let Some(budget) = self.config.budget else { return };
        let period = period_of(budget, now);
        if self.account.spent.0 < period {
            self.account.spent = (period, 0);
        }
        self.account.spent.1 += 1;
    }

    /// Reserves a visit that is handed out.
    pub(super) fn reserve(&mut self, is_granted: bool) {
        self.account.n_reserved += 1;
        if is_granted || !self.is_even() {
            self.account.tokens -= 1.0;
        }
    }

    /// Takes back a visit that was handed out and not made.
    pub(super) fn refund(&mut self) {
        self.account.n_reserved = self.account.n_reserved.saturating_sub(1);
        if !self.is_even() {
            self.account.tokens += 1.0;
        }
    }

    /// The visits left in the budget's period; infinite if the period is no limit.
    pub(super) fn left_of_period(&self) -> f64 {
        let Some(budget) = self.config.limit() else { return f64::INFINITY };
        let is_sound = budget.visits.is_finite() && budget.visits > 0.0;
        let period = period_of(budget, self.now);
        // Fractions of visits add up from period to period.
        let granted = |n: i64| (budget.visits * n.rem_euclid(1 << 20) as f64).floor();
        let most = (granted(period.saturating_add(1)) - granted(period)).max(budget.visits.floor());
        let most = if is_sound { most } else { 0.0 };
        let spent = if self.account.spent.0 == period { self.account.spent.1 } else { 0 };
        most - (spent + self.account.n_reserved) as f64
    }

    /// The visits left for pages without an interval of their own.
    pub(super) fn left_for_others(&self) -> f64 {
        self.left_of_period() - self.promised_in(self.rest_of_period()).ceil()
    }

    /// Until when the budget of its period is spent; `None` if a visit is within it.
    pub fn spent_until(&self) -> Option<Timestamp> {
        (self.left_of_period() < 1.0).then(|| self.period_end())
    }

    pub(super) fn rest_of_period(&self) -> Span {
        self.config.budget.map_or(Span::ZERO, |_| self.period_end() - self.now)
    }

    pub(super) fn period_end(&self) -> Timestamp {
        let Some(budget) = self.config.budget else { return self.now };
        let length = budget.period.as_millis().max(1);
        Timestamp::from_millis(period_of(budget, self.now).saturating_add(1).saturating_mul(length))
    }

    /// How far visits lag behind an even distribution over a period of a day or longer.
    pub(super) fn behind(&self) -> Option<f64> {
        let budget = self.config.limit().filter(|budget| budget.period >= DAY)?;
        let rest = self.rest_of_period();
        Some(self.left_of_period() - budget.visits_in(rest))
    }

    /// Visits that may be handed out at this instant, without regard to the limit of the period.
    pub(super) fn tokens(&self) -> f64 {
        self.account.tokens
    }

    /// Visits an hour that are granted to pages without an interval.
    pub(super) fn others_per_hour(&self) -> f64 {
        (self.config.per_hour() - self.promised_in(HOUR)).max(0.0)
    }

    /// The visits left for new pages. While other pages gain enough, a share of the period is kept for these.
    pub(super) fn left_for_new(&self) -> f64 {
        if self.config.limit().is_none() || self.behind().is_some() {
            return self.tokens();
        }
        let kept = if self.ladder.is_empty() { 0.0 } else { KEPT_FROM_NEW };
        let rest = self.config.budget.map_or(0.0, |budget| budget.visits_in(self.rest_of_period()));
        self.left_for_others() - kept * rest
    }

    /// Whether visits are granted evenly within periods that are a limit, instead of saved for busy hours.
    fn is_even(&self) -> bool {
        self.config.limit().is_some() && self.behind().is_none()
    }

    /// Grants the visits of the time that has passed, and returns its hours.
    pub(super) fn fill(&mut self) -> f64 {
        let before = self.account.filled_at;
        let hours = before.map_or(0.0, |before| (self.now - before).as_hours_f64().max(0.0));
        let tokens = match (self.behind(), before) {
            // A day's savings end with the day: visits of the previous day would be missing in its evening. The
            // middle of the range means neither saved nor borrowed.
            (Some(behind), _) => 0.5 * self.most_saved() + behind,
            (None, Some(before)) if self.is_even() => self.fill_evenly(before),
            (None, None) if !self.is_even() => 0.5 * self.most_saved(),
            (None, _) => self.account.tokens + self.config.per_hour() * hours,
        };
        self.account.filled_at = Some(self.now);
        self.account.tokens = tokens.min(self.most_saved());
        hours
    }

    /// Tokens now, if those of a period are spread over it. A period's unused visits are lost.
    fn fill_evenly(&mut self, before: Timestamp) -> f64 {
        let Some(budget) = self.config.budget else { return 0.0 };
        let (last, current) = (period_of(budget, before), period_of(budget, self.now));
        let mut since = before;
        if last != current {
            self.account.tokens = 0.0;
            since = self.period_end() - budget.period;
        }
        let hours = (self.now - since).as_hours_f64().max(0.0);
        // The rest of the period is known at its end; the rate was the same since the last visit.
        let rest = self.rest_of_period().as_hours_f64() + hours;
        self.account.tokens + self.granted_in(rest) * hours
    }

    /// Visits granted in an hour if the rest of the period is so many hours: what is left is spread over it, whoever
    /// made the others.
    fn granted_in(&self, rest_hours: f64) -> f64 {
        let left = self.left_of_period() - self.promised_in(self.rest_of_period());
        (left - self.account.tokens).max(0.0) / rest_hours.max(1e-6)
    }

    /// The tokens that a visit needs. If they are granted evenly, half of one, so that the last visit of a period is
    /// not due at its end.
    fn needed(&self) -> f64 {
        if self.is_even() { 0.5 } else { 1.0 }
    }

    /// Whether a visit is granted.
    pub(super) fn has_token(&self) -> bool {
        self.config.budget.is_none() || self.account.tokens >= self.needed()
    }

    /// Hours until a visit is granted.
    pub(super) fn hours_to_token(&self) -> f64 {
        let per_hour = match self.is_even() {
            true => self.granted_in(self.rest_of_period().as_hours_f64()),
            false => self.config.per_hour(),
        };
        (self.needed() - self.account.tokens).max(0.0) / per_hour.max(1e-9)
    }
}
