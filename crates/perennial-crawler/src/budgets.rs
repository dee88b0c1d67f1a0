//! Enforces the budgets, overall and per site: visits per period and bytes per day.
//!
//! The scheduler keeps the account of the visits of all sites together; this module keeps all other accounts. They hold
//! across restarts, because spending is committed with each visit. Periods and days are aligned to UTC. A visit counts
//! when it starts. Its bytes are known when it ends. Until then, as many bytes are reserved as the largest body of its
//! site had. A larger body may exceed the daily bytes. The excess is subtracted from the next day's budget.

use std::collections::HashMap;

use perennial_core::schedule::Budget;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use perennial_archive::settings::BudgetTable;
use perennial_archive::store::{OVERALL, Store};

const DAY: Span = Span::from_hours(24);
/// Bytes to reserve for a body before any body has arrived.
const FIRST_RESERVE: u64 = 100_000;
/// Initial visits and bytes of the mean size per visit.
const FIRST_VISITS: (f64, f64) = (3.0, 120_000.0);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Permission {
    /// The visit may start, and was counted.
    Granted,
    /// The site's budget is spent or, with `all`, the overall budget.
    Refused {
        /// Start of the next period or day.
        until: Timestamp,
        /// Whether the overall budget is spent, so no site may be visited.
        all: bool,
    },
}

/// The spending of every budget.
pub(super) struct BudgetAccounts {
    accounts: HashMap<i64, BudgetAccount>,
    /// The seed of each scheduled page, by page number; 0 is none.
    seeds: Vec<i64>,
    n_visits: u64,
    /// Bytes of these visits.
    n_bytes: u64,
}

/// One budget, of a seed or overall, and its spending.
#[derive(Default)]
struct BudgetAccount {
    allowance: BudgetTable,
    /// Number of the period, and visits in it.
    visits: (i64, u64),
    /// Number of the day, and bytes in it.
    bytes: (i64, u64),
    reserved: u64,
    largest: u64,
    /// Whether the scheduler keeps the account of visits. It hands out none beyond it.
    is_scheduled: bool,
}

/// The number of the period or day that contains an instant.
pub(super) fn period_number(at: Timestamp, length: Span) -> i64 {
    at.as_millis().div_euclid(length.as_millis().max(1))
}

/// Start of that period or day.
fn period_start(at: Timestamp, length: Span) -> Timestamp {
    Timestamp::from_millis(period_number(at, length).saturating_mul(length.as_millis()))
}

/// Spending before this instant is in no open period and may be deleted.
pub(super) fn forgotten_before(longest: Span, now: Timestamp) -> Timestamp {
    let span = Span::from_millis(longest.as_millis().max(DAY.as_millis()));
    now - span - span
}

pub(super) fn period_end(number: i64, length: Span) -> Timestamp {
    Timestamp::from_millis(number.saturating_add(1).saturating_mul(length.as_millis().max(1)))
}

impl BudgetAccount {
    fn roll(&mut self, now: Timestamp) {
        if let Some(budget) = self.allowance.visits {
            let period = period_number(now, budget.period);
            if period != self.visits.0 {
                self.visits = (period, 0);
            }
        }
        let day = period_number(now, DAY);
        if day != self.bytes.0 {
            let excess = self.allowance.bytes_per_day.map_or(0, |most| self.bytes.1.saturating_sub(most));
            self.bytes = (day, excess);
        }
    }

    fn reserve(&self) -> u64 {
        if self.largest == 0 { FIRST_RESERVE } else { self.largest }
    }

    /// Until when the budget is spent; `None` if a visit is within it.
    fn refuses(&mut self, now: Timestamp, is_page: bool) -> Option<Timestamp> {
        self.roll(now);
        if let Some(budget) = self.allowance.visits.filter(|_| is_page && !self.is_scheduled) {
            let period = self.visits.0;
            // Without a scheduler, fractions of visits add up from period to period.
            let granted = |n: i64| (budget.visits * n.rem_euclid(1 << 20) as f64).floor();
            let here = (granted(period + 1) - granted(period)).max(budget.visits.floor());
            if self.visits.1 as f64 >= here {
                return Some(period_end(period, budget.period));
            }
        }
        let most = self.allowance.bytes_per_day?;
        let is_over = self.bytes.1 + self.reserved + self.reserve() > most;
        is_over.then(|| period_end(self.bytes.0, DAY))
    }

    fn book(&mut self, now: Timestamp, n_bytes: u64) {
        self.roll(now);
        self.bytes.1 += n_bytes;
        self.largest = self.largest.max(n_bytes);
    }
}

impl BudgetAccounts {
    /// Budgets without spending.
    pub(super) fn new(
        overall: BudgetTable,
        seeds: impl Iterator<Item = (i64, BudgetTable)>,
    ) -> BudgetAccounts {
        let mut accounts: HashMap<i64, BudgetAccount> = seeds
            .map(|(seed, allowance)| (seed, BudgetAccount { allowance, ..BudgetAccount::default() }))
            .collect();
        accounts.insert(OVERALL, BudgetAccount { allowance: overall, ..BudgetAccount::default() });
        BudgetAccounts { accounts, seeds: Vec::new(), n_visits: 0, n_bytes: 0 }
    }

    /// Budgets with the spending that the store contains.
    pub(super) fn load(
        store: &Store,
        overall: BudgetTable,
        seeds: impl Iterator<Item = (i64, BudgetTable)>,
        now: Timestamp,
    ) -> anyhow::Result<BudgetAccounts> {
        let mut budgets = BudgetAccounts::new(overall, seeds);
        for (seed, account) in &mut budgets.accounts {
            account.roll(now);
            let period = account.allowance.visits.map_or(DAY, |budget| budget.period);
            account.visits.1 = store.spent(*seed, period_start(now, period))?.0;
            account.bytes.1 = store.spent(*seed, period_start(now, DAY))?.1;
        }
        Ok(budgets)
    }

    /// Leaves the visits of all sites together to the scheduler's account.
    pub(super) fn leave_visits_to_scheduler(&mut self) {
        if let Some(account) = self.accounts.get_mut(&OVERALL) {
            account.is_scheduled = true;
        }
    }

    /// Assigns a page to the budget of a seed.
    pub(super) fn add(&mut self, page: PageId, seed: i64) {
        let at = page.0 as usize;
        if at >= self.seeds.len() {
            self.seeds.resize(at + 1, 0);
        }
        self.seeds[at] = seed;
    }

    /// The pages on the budget of a seed, or all pages.
    pub(super) fn seed_pages(&self, seed: Option<i64>) -> impl Iterator<Item = PageId> {
        let is_of = move |of: &i64| seed.map_or(*of != 0, |seed| *of == seed);
        let pages = self.seeds.iter().enumerate().filter(move |(_, of)| is_of(of));
        pages.map(|(at, _)| PageId(at as u32))
    }

    /// Counts a visit of a page or of a subresource, if the budgets allow it.
    pub(super) fn try_spend(&mut self, seed: i64, is_page: bool, now: Timestamp) -> Permission {
        for (of, all) in [(OVERALL, true), (seed, false)] {
            if let Some(until) = self.accounts.get_mut(&of).and_then(|account| account.refuses(now, is_page))
            {
                return Permission::Refused { until, all };
            }
        }
        for of in [OVERALL, seed] {
            if let Some(account) = self.accounts.get_mut(&of) {
                account.visits.1 += u64::from(is_page);
                account.reserved += account.reserve();
            }
        }
        Permission::Granted
    }

    /// Until when the overall budget is spent; `None` if a visit is within it.
    pub(super) fn spent_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.accounts.get_mut(&OVERALL)?.refuses(now, true)
    }

    /// Adds the bytes of a finished visit.
    pub(super) fn book(&mut self, seed: i64, n_bytes: u64, now: Timestamp, n_active: u64) {
        self.n_visits += 1;
        self.n_bytes += n_bytes;
        for of in [OVERALL, seed] {
            if let Some(account) = self.accounts.get_mut(&of) {
                account.reserved =
                    if n_active == 0 { 0 } else { account.reserved.saturating_sub(account.reserve()) };
                account.book(now, n_bytes);
            }
        }
    }

    /// Visits in the current period of the overall budget.
    pub(super) fn n_visits_in_period(&self) -> u64 {
        self.accounts.get(&OVERALL).map_or(0, |account| account.visits.1)
    }

    /// The budget for the scheduler: the user's visits, or the visits that the daily bytes allow if these are fewer.
    pub(super) fn plan(&self) -> Option<Budget> {
        let allowance = self.accounts.get(&OVERALL).map(|account| account.allowance).unwrap_or_default();
        let by_bytes = allowance.bytes_per_day.map(|most| {
            let (n_visits, n_bytes) = FIRST_VISITS;
            let each = (self.n_bytes as f64 + n_bytes) / (self.n_visits as f64 + n_visits);
            Budget { visits: (most as f64 / each.max(1.0)).max(1.0), period: DAY }
        });
        match (allowance.visits, by_bytes) {
            (Some(visits), Some(bytes)) if bytes.visits_in(DAY) < visits.visits_in(DAY) => Some(bytes),
            (None, bytes) => bytes,
            (visits, _) => visits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(overall: BudgetTable, site: BudgetTable) -> BudgetAccounts {
        BudgetAccounts::new(overall, [(1, site)].into_iter())
    }

    #[test]
    fn visits_end_with_the_budget_and_begin_with_the_period() {
        let start = Timestamp::parse("2026-03-02").unwrap();
        let site = BudgetTable { visits: Some(Budget::per_hour(2.0)), bytes_per_day: None };
        let mut budgets = budgets(BudgetTable::default(), site);
        let granted =
            |budgets: &mut BudgetAccounts, at| budgets.try_spend(1, true, at) == Permission::Granted;
        assert!(granted(&mut budgets, start) && granted(&mut budgets, start));
        let until = start + Span::from_hours(1);
        assert_eq!(budgets.try_spend(1, true, start), Permission::Refused { until, all: false });
        assert_eq!(budgets.try_spend(2, true, start), Permission::Granted, "another site has its own");
        assert_eq!(
            budgets.try_spend(1, false, start),
            Permission::Granted,
            "a stylesheet is no visit of a page"
        );
        assert!(granted(&mut budgets, until));
    }

    #[test]
    fn fractions_of_visits_add_up() {
        let start = Timestamp::parse("2026-03-02").unwrap();
        let site = BudgetTable { visits: Some(Budget::per_hour(2.5)), bytes_per_day: None };
        let mut budgets = budgets(BudgetTable::default(), site);
        let mut n_granted = 0;
        for minute in 0..600 {
            let at = start + Span::from_secs(60 * minute);
            n_granted += u32::from(budgets.try_spend(1, true, at) == Permission::Granted);
        }
        assert_eq!(n_granted, 25);
    }

    #[test]
    fn bytes_are_reserved_and_an_excess_is_carried_over() {
        let start = Timestamp::parse("2026-03-02").unwrap();
        let overall = BudgetTable { visits: None, bytes_per_day: Some(250_000) };
        let mut budgets = budgets(overall, BudgetTable::default());
        assert_eq!(budgets.try_spend(1, true, start), Permission::Granted);
        assert_eq!(budgets.try_spend(1, true, start), Permission::Granted);
        let until = start + Span::from_hours(24);
        assert_eq!(budgets.try_spend(1, true, start), Permission::Refused { until, all: true });
        budgets.book(1, 200_000, start, 1);
        budgets.book(1, 200_000, start, 0);
        assert!(matches!(budgets.try_spend(1, true, start), Permission::Refused { .. }));
        // The excess of 150,000 and a reserve of 200,000 exceed the next day's budget.
        assert!(matches!(budgets.try_spend(1, true, until), Permission::Refused { .. }));
        assert_eq!(budgets.try_spend(1, true, until + Span::from_hours(24)), Permission::Granted);
    }
}
