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
    pub(super) fn reserve(&mut self) {
        self.account.n_reserved += 1;
        self.account.tokens -= 1.0;
    }

    /// Takes back a visit that was handed out and not made.
    pub(super) fn refund(&mut self) {
        self.account.n_reserved = self.account.n_reserved.saturating_sub(1);
        self.account.tokens += 1.0;
    }

    /// The visits left in the budget's period; infinite if the period is no limit.
    pub(super) fn left_of_period(&self) -> f64 {
        let Some(budget) = self.config.limit() else { return f64::INFINITY };
        let is_sound = budget.visits.is_finite() && budget.visits > 0.0;
        let most = if is_sound { budget.visits.ceil() } else { 0.0 };
        let spent =
            if self.account.spent.0 == period_of(budget, self.now) { self.account.spent.1 } else { 0 };
        most - (spent + self.account.n_reserved) as f64
    }

    /// The visits left for pages without an interval of their own.
    pub(super) fn left_for_others(&self) -> f64 {
        self.left_of_period() - self.promised_in(self.rest_of_period()).floor()
    }

    pub(super) fn rest_of_period(&self) -> Span {
        self.config.budget.map_or(Span::ZERO, |_| self.period_end() - self.now)
    }

    pub(super) fn period_end(&self) -> Timestamp {
        let Some(budget) = self.config.budget else { return self.now };
        let length = budget.period.as_millis().max(1);
        Timestamp::from_millis((period_of(budget, self.now) + 1).saturating_mul(length))
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

    /// The share of the grants that pages with intervals of their own leave to others, as visits an hour.
    pub(super) fn others_per_hour(&self) -> f64 {
        (self.config.per_hour() - self.promised_in(HOUR)).max(0.0)
    }

    /// Grants the visits of the time that has passed.
    pub(super) fn fill(&mut self) -> f64 {
        let now = self.now;
        let hours = self.account.filled_at.map_or(0.0, |before| (now - before).as_hours_f64().max(0.0));
        let is_first = self.account.filled_at.replace(now).is_none();
        let most = self.most_saved();
        self.account.tokens = match (self.behind(), self.config.saves_visits()) {
            // A day's savings end with the day: visits of the previous day would be missing in its evening. The
            // middle of the range means neither saved nor borrowed.
            (Some(behind), _) => 0.5 * most + behind,
            (None, true) if is_first => 0.5 * most,
            (None, false) if is_first => most,
            (None, _) => self.account.tokens + self.config.per_hour() * hours,
        }
        .min(most);
        hours
    }

    /// Hours until a visit is granted.
    pub(super) fn hours_to_token(&self) -> f64 {
        (1.0 - self.account.tokens).max(0.0) / self.config.per_hour().max(1e-9)
    }
}
