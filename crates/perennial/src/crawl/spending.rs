//! What was spent -> whether another visit is within the budget: overall and of its site, visits in a period and bytes in
//! a day.
//!
//! The scheduler plans within the overall budget; this is what holds whatever it plans, also across restarts, because
//! spending is written with each commit. Periods and days lie on the grid of UTC. A visit counts when it starts. Its
//! bytes are known when it is over: until then as many are set aside as its site's largest body had. A body that is larger
//! still can go over the day's bytes; what it took too much the next day has less.

use std::collections::HashMap;

use perennial_core::page::PageId;
use perennial_core::schedule::Budget;
use perennial_core::time::{Span, Timestamp};

use crate::settings::Allowance;
use crate::store::{OVERALL, Store};

const DAY: Span = Span::from_hours(24);
/// What is set aside for a body before any was seen.
const FIRST_RESERVE: u64 = 100_000;
/// As if so many visits had brought so many bytes before any was made.
const FIRST_VISITS: (f64, f64) = (3.0, 120_000.0);

/// Whether a visit may start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// It may, and has been counted.
    Granted,
    /// Its site, or if `all` is set every site, has nothing left until then.
    Refused {
        /// When there is something again.
        until: Timestamp,
        /// Whether that holds for every site.
        all: bool,
    },
}

/// What was spent, beside what may be.
pub struct Spending {
    purses: HashMap<i64, Purse>,
    /// The seed of each page that is scheduled, by number; 0: none.
    seeds: Vec<i64>,
    /// Of all visits so far.
    n_visits: u64,
    n_bytes: u64,
}

#[derive(Default)]
struct Purse {
    allowance: Allowance,
    /// Number of the period, visits in it.
    visits: (i64, u64),
    /// Number of the day, bytes in it.
    bytes: (i64, u64),
    reserved: u64,
    largest: u64,
    /// The scheduler holds the mean of its visits: a fraction is rounded up.
    is_planned: bool,
}

fn number(at: Timestamp, length: Span) -> i64 {
    at.as_millis().div_euclid(length.as_millis().max(1))
}

/// Where the period or day that an instant falls into begins.
fn start_of(at: Timestamp, length: Span) -> Timestamp {
    Timestamp::from_millis(number(at, length).saturating_mul(length.as_millis()))
}

/// The instant before which no period that holds `now` needs what was spent.
pub(super) fn forgotten_before(longest: Span, now: Timestamp) -> Timestamp {
    let keep = Span::from_millis(longest.as_millis().max(DAY.as_millis()));
    now - keep - keep
}

fn end_of(number: i64, length: Span) -> Timestamp {
    Timestamp::from_millis(number.saturating_add(1).saturating_mul(length.as_millis().max(1)))
}

impl Purse {
    fn roll(&mut self, now: Timestamp) {
        if let Some(budget) = self.allowance.visits {
            let period = number(now, budget.period);
            if period != self.visits.0 {
                self.visits = (period, 0);
            }
        }
        let day = number(now, DAY);
        if day != self.bytes.0 {
            // What a body took too much is owed.
            let owed = self.allowance.bytes_per_day.map_or(0, |most| self.bytes.1.saturating_sub(most));
            self.bytes = (day, owed);
        }
    }

    fn reserve(&self) -> u64 {
        if self.largest == 0 { FIRST_RESERVE } else { self.largest }
    }

    /// Until when nothing is left.
    fn refuses(&mut self, now: Timestamp, is_page: bool) -> Option<Timestamp> {
        self.roll(now);
        if let Some(budget) = self.allowance.visits.filter(|_| is_page) {
            let period = self.visits.0;
            // Where nobody plans, fractions add up from period to period.
            let granted = |n: i64| (budget.visits * n.rem_euclid(1 << 20) as f64).floor();
            let here = (granted(period + 1) - granted(period)).max(budget.visits.floor());
            let here = if self.is_planned && budget.visits >= 1.0 { budget.visits.ceil() } else { here };
            if self.visits.1 as f64 >= here {
                return Some(end_of(period, budget.period));
            }
        }
        let most = self.allowance.bytes_per_day?;
        let is_over = self.bytes.1 + self.reserved + self.reserve() > most;
        is_over.then(|| end_of(self.bytes.0, DAY))
    }

    fn book(&mut self, now: Timestamp, n_bytes: u64) {
        self.roll(now);
        self.bytes.1 += n_bytes;
        self.largest = self.largest.max(n_bytes);
    }
}

impl Spending {
    /// Nothing was spent yet.
    pub(super) fn new(overall: Allowance, seeds: impl Iterator<Item = (i64, Allowance)>) -> Spending {
        let mut purses: HashMap<i64, Purse> =
            seeds.map(|(seed, allowance)| (seed, Purse { allowance, ..Purse::default() })).collect();
        purses.insert(OVERALL, Purse { allowance: overall, is_planned: true, ..Purse::default() });
        Spending { purses, seeds: Vec::new(), n_visits: 0, n_bytes: 0 }
    }

    /// What may be spent overall and by each seed, and what was spent before.
    pub(super) fn load(
        store: &Store,
        overall: Allowance,
        seeds: impl Iterator<Item = (i64, Allowance)>,
        now: Timestamp,
    ) -> anyhow::Result<Spending> {
        let mut spending = Spending::new(overall, seeds);
        for (seed, purse) in &mut spending.purses {
            purse.roll(now);
            let period = purse.allowance.visits.map_or(DAY, |budget| budget.period);
            purse.visits.1 = store.spent(*seed, start_of(now, period))?.0;
            purse.bytes.1 = store.spent(*seed, start_of(now, DAY))?.1;
        }
        Ok(spending)
    }

    /// Takes note of whose budget a page is on.
    pub(super) fn add(&mut self, page: PageId, seed: i64) {
        let at = page.0 as usize;
        if at >= self.seeds.len() {
            self.seeds.resize(at + 1, 0);
        }
        self.seeds[at] = seed;
    }

    /// The pages that wait for the budget of a seed, or all.
    pub(super) fn pages_of(&self, seed: Option<i64>) -> impl Iterator<Item = PageId> {
        let is_of = move |of: &i64| seed.map_or(*of != 0, |seed| *of == seed);
        let pages = self.seeds.iter().enumerate().filter(move |(_, of)| is_of(of));
        pages.map(|(at, _)| PageId(at as u32))
    }

    /// Whether a visit of a seed's page, or of something that its pages need, may start; if so it is counted.
    pub(super) fn ask(&mut self, seed: i64, is_page: bool, now: Timestamp) -> Permission {
        for (of, all) in [(OVERALL, true), (seed, false)] {
            if let Some(until) = self.purses.get_mut(&of).and_then(|purse| purse.refuses(now, is_page)) {
                return Permission::Refused { until, all };
            }
        }
        for of in [OVERALL, seed] {
            if let Some(purse) = self.purses.get_mut(&of) {
                purse.visits.1 += u64::from(is_page);
                purse.reserved += purse.reserve();
            }
        }
        Permission::Granted
    }

    /// Books what a visit brought.
    pub(super) fn book(&mut self, seed: i64, n_bytes: u64, now: Timestamp, n_active: u64) {
        self.n_visits += 1;
        self.n_bytes += n_bytes;
        for of in [OVERALL, seed] {
            if let Some(purse) = self.purses.get_mut(&of) {
                purse.reserved =
                    if n_active == 0 { 0 } else { purse.reserved.saturating_sub(purse.reserve()) };
                purse.book(now, n_bytes);
            }
        }
    }

    /// The visits that a scheduler may plan with: those that the user grants, and no more than the day's bytes last for.
    pub(super) fn plan(&self) -> Option<Budget> {
        let allowance = self.purses.get(&OVERALL).map(|purse| purse.allowance).unwrap_or_default();
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

    fn spending(overall: Allowance, site: Allowance) -> Spending {
        Spending::new(overall, [(1, site)].into_iter())
    }

    #[test]
    fn visits_end_with_the_budget_and_begin_with_the_period() {
        let start = Timestamp::parse("2026-03-02").unwrap();
        let site = Allowance { visits: Some(Budget::per_hour(2.0)), bytes_per_day: None };
        let mut spending = spending(Allowance::default(), site);
        let granted = |spending: &mut Spending, at| spending.ask(1, true, at) == Permission::Granted;
        assert!(granted(&mut spending, start) && granted(&mut spending, start));
        let until = start + Span::from_hours(1);
        assert_eq!(spending.ask(1, true, start), Permission::Refused { until, all: false });
        assert_eq!(spending.ask(2, true, start), Permission::Granted, "another site has its own");
        assert_eq!(spending.ask(1, false, start), Permission::Granted, "a stylesheet is no visit of a page");
        assert!(granted(&mut spending, until));
    }

    #[test]
    fn fractions_of_visits_add_up() {
        let start = Timestamp::parse("2026-03-02").unwrap();
        let site = Allowance { visits: Some(Budget::per_hour(2.5)), bytes_per_day: None };
        let mut spending = spending(Allowance::default(), site);
        let mut n_granted = 0;
        for minute in 0..600 {
            let at = start + Span::from_secs(60 * minute);
            n_granted += u32::from(spending.ask(1, true, at) == Permission::Granted);
        }
        assert_eq!(n_granted, 25);
    }

    #[test]
    fn bytes_are_set_aside_and_debts_carried_over() {
        let start = Timestamp::parse("2026-03-02").unwrap();
        let overall = Allowance { visits: None, bytes_per_day: Some(250_000) };
        let mut spending = spending(overall, Allowance::default());
        assert_eq!(spending.ask(1, true, start), Permission::Granted);
        assert_eq!(spending.ask(1, true, start), Permission::Granted);
        let until = start + Span::from_hours(24);
        assert_eq!(spending.ask(1, true, start), Permission::Refused { until, all: true });
        spending.book(1, 200_000, start, 1);
        spending.book(1, 200_000, start, 0);
        assert!(matches!(spending.ask(1, true, start), Permission::Refused { .. }));
        // 150,000 are owed, and 200,000 may come: not before the day after.
        assert!(matches!(spending.ask(1, true, until), Permission::Refused { .. }));
        assert_eq!(spending.ask(1, true, until + Span::from_hours(24)), Permission::Granted);
    }
}
