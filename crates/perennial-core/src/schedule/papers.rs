//! What is known of pages -> their urgency in this slot, by the strategies of P-QUALITY 7 and of today's crawlers
//! (docs/papers.md, Strategies).

use std::collections::VecDeque;

use super::pages::{FRESH, NONE, Pages, VACANT};
use super::{Scheduler, Strategy};

/// Bounds of the adaptive interval, which halves after a change and grows by half without one: the defaults of StormCrawler.
const SHORTEST_INTERVAL_HOURS: f32 = 1.0;
const LONGEST_INTERVAL_HOURS: f32 = 14.0 * 24.0;

impl Scheduler {
    /// Fills the column of urgencies for any strategy but ours; 0 where a visit is not due or not allowed.
    pub(super) fn rank_by_papers(&mut self, end_secs: u32) {
        let interval = self.fixed_interval_hours();
        for at in 0..self.pages.len() {
            let open = self.may_visit(at, end_secs) && !self.pages.has(at, FRESH);
            self.pages.urgency[at] = if open { self.urgency_by_papers(at, end_secs, interval) } else { 0.0 };
        }
    }

    fn urgency_by_papers(&self, at: usize, end_secs: u32, interval: f32) -> f32 {
        let pages = &self.pages;
        let age = end_secs.saturating_sub(pages.seen_at[at]) as f32 / 3600.0;
        let here = || {
            let step = self.steps.get(usize::from(pages.clock[at])).copied().unwrap_or_default();
            self.learner.believed(pages, at, usize::from(step.bucket))
        };
        match self.config.strategy {
            Strategy::FixedInterval => due_since(age, interval),
            Strategy::AdaptiveInterval => due_since(age, pages.own[at]),
            Strategy::Importance => pages.weight[at] * pages.rate[at] * pages.importance[at] * age,
            Strategy::Pattern => here().0 * age,
            Strategy::ImportancePattern => {
                let (rate, importance) = here();
                pages.weight[at] * rate * importance * age
            }
            Strategy::Frequency => pages.own[at] * age,
            Strategy::Relevance | Strategy::Sharc | Strategy::Coherence | Strategy::ExpectedGain => age,
        }
    }

    pub(super) fn fixed_interval_hours(&self) -> f32 {
        match (self.config.interval, self.config.budget) {
            (Some(interval), _) => interval.as_hours_f64() as f32,
            // Without an interval pages are visited as often as the budget allows, the oldest first.
            (None, Some(_)) => 0.0,
            (None, None) => 24.0,
        }
    }

    /// Adapts the interval of a page after a visit; without one, sets its first interval.
    pub(super) fn adapt_interval(&mut self, at: usize, changed: Option<bool>) {
        if self.config.strategy != Strategy::AdaptiveInterval {
            return;
        }
        let first = self.config.interval.map_or(24.0, |interval| interval.as_hours_f64() as f32);
        let before = if self.pages.own[at] > 0.0 { self.pages.own[at] } else { first };
        let factor = match changed {
            Some(true) => 0.5,
            Some(false) => 1.5,
            None => 1.0,
        };
        self.pages.own[at] = (before * factor).clamp(SHORTEST_INTERVAL_HOURS, LONGEST_INTERVAL_HOURS);
    }

    /// Whether the strategy visits all pages in rounds of a fixed order.
    pub(super) fn goes_round(&self) -> bool {
        matches!(self.config.strategy, Strategy::Relevance | Strategy::Sharc | Strategy::Coherence)
    }

    /// The next `n` pages of the round, each at most once.
    pub(super) fn take_from_round(&mut self, n: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        let mut was_empty = false;
        while taken.len() < n {
            match self.round.pop_front() {
                Some(at) if self.pages.urgency[at as usize] > 0.0 => {
                    // A page that opens the next round must not be taken twice in a slot.
                    self.pages.urgency[at as usize] = -self.pages.urgency[at as usize];
                    taken.push(at);
                }
                Some(_) => {}
                None if was_empty => break,
                None => {
                    was_empty = true;
                    self.round = self.next_round();
                }
            }
        }
        for &at in &taken {
            self.pages.urgency[at as usize] = self.pages.urgency[at as usize].abs();
        }
        taken
    }

    fn next_round(&self) -> VecDeque<u32> {
        let pages = &self.pages;
        let is_there = |at: &u32| !pages.has(*at as usize, VACANT | FRESH);
        let mut order: Vec<u32> = (0..pages.len() as u32).filter(is_there).collect();
        let key = |at: u32| self.constant_rate(at as usize);
        match self.config.strategy {
            Strategy::Relevance => {
                order.sort_by(|&a, &b| pages.weight[b as usize].total_cmp(&pages.weight[a as usize]));
            }
            _ => {
                let site = |at: u32| pages.site[at as usize];
                order.sort_by(|&a, &b| site(a).cmp(&site(b)).then(key(a).total_cmp(&key(b))));
            }
        }
        if self.config.strategy == Strategy::Sharc {
            order = most_in_the_middle(&order, pages);
        }
        order.into()
    }

    /// Changes an hour under a Poisson process of constant rate, from visits that saw a change or none, by the estimator of
    /// Cho and Garcia-Molina that stays finite when every visit saw a change.
    pub(super) fn constant_rate(&self, at: usize) -> f32 {
        let history = self.pages.evidence[at];
        if history == NONE {
            return self.pages.rate[at];
        }
        let Some(evidence) = self.learner.evidence.get(history as usize) else { return self.pages.rate[at] };
        let n = evidence.n_visits as f32;
        let unchanged = n - evidence.n_changed as f32;
        let gap = (evidence.hours / n.max(1.0)).max(1e-3);
        (-((unchanged + 0.5) / (n + 0.5)).ln() / gap).max(1e-6)
    }

    /// Shares the budget among pages so that the mean freshness is greatest. One more visit then gains the same for all
    /// pages that get visits, and pages that change too fast get none.
    pub(super) fn share_by_frequency(&mut self) {
        let n = self.pages.n_present().max(1) as f64;
        let total =
            self.config.budget.map_or(n / 24.0, |budget| budget.visits_in(crate::time::Span::from_hours(1)));
        let is_there = |at: &usize| !self.pages.has(*at, VACANT);
        let there: Vec<usize> = (0..self.pages.len()).filter(is_there).collect();
        let rates: Vec<f32> = there.iter().map(|&at| self.constant_rate(at)).collect();
        let table = freshness_table();
        let spent =
            |mu: f64| -> f64 { rates.iter().map(|&rate| visits_for(f64::from(rate), mu, &table)).sum() };
        let (mut low, mut high) = (1e-9f64, 1e9f64);
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if spent(middle) > total { low = middle } else { high = middle }
        }
        for (&at, &rate) in there.iter().zip(&rates) {
            self.pages.own[at] = visits_for(f64::from(rate), high, &table) as f32;
        }
    }
}

/// Hours since a page became due, plus a little so that a page that is due just now counts; 0 when it is not due.
fn due_since(age: f32, interval: f32) -> f32 {
    if age >= interval { age - interval + 1e-3 } else { 0.0 }
}

/// Reorders each site so that its pages ascend to the middle and descend from there.
fn most_in_the_middle(ascending: &[u32], pages: &Pages) -> Vec<u32> {
    let mut order = Vec::with_capacity(ascending.len());
    for site in ascending.chunk_by(|&a, &b| pages.site[a as usize] == pages.site[b as usize]) {
        order.extend(site.iter().step_by(2));
        let falling: Vec<u32> = site.iter().skip(1).step_by(2).rev().copied().collect();
        order.extend(falling);
    }
    order
}

/// (r, 1 - (1 + r) exp(-r)) for r from 0.001 to 1000, ascending: the gain of a visit where a page changes r times a visit.
fn freshness_table() -> Vec<(f64, f64)> {
    let point = |i: i32| {
        let r = (f64::from(i) * 0.01).exp();
        (r, 1.0 - (1.0 + r) * (-r).exp())
    };
    (-690..=690).map(point).collect()
}

/// Visits an hour at which one more is worth mu; 0 when the page changes faster than 1 / mu.
fn visits_for(rate: f64, mu: f64, table: &[(f64, f64)]) -> f64 {
    let gain = mu * rate;
    if gain >= 1.0 {
        return 0.0;
    }
    let place = table.partition_point(|(_, g)| *g < gain).min(table.len() - 1);
    rate / table[place].0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_pages_get_nothing() {
        let table = freshness_table();
        assert_eq!(visits_for(5.0, 0.25, &table), 0.0);
        let (slow, fast) = (visits_for(0.1, 0.25, &table), visits_for(1.0, 0.25, &table));
        assert!(slow > 0.0 && fast > slow);
    }
}
