//! Computes the urgency of pages in a slot, or their order in a round (docs/papers.md, Strategies).

use std::collections::VecDeque;

use perennial_core::time::Span;

use super::{PaperPage, PaperScheduler};
use crate::strategy::BaselineStrategy;

/// Bounds of the adaptive interval, the defaults of StormCrawler. It halves after a change and grows by half without
/// one.
const SHORTEST_INTERVAL_HOURS: f32 = 1.0;
const LONGEST_INTERVAL_HOURS: f32 = 14.0 * 24.0;

impl PaperScheduler {
    /// Sets the urgency of every page; 0 if a visit is not due or not allowed.
    pub(super) fn rank(&mut self, end_secs: u32) {
        for at in 0..self.pages.len() {
            let page = &self.pages[at];
            let is_open = !page.is_pending && !page.is_new;
            self.pages[at].urgency = if is_open { self.urgency(page, end_secs) } else { 0.0 };
        }
    }

    fn urgency(&self, page: &PaperPage, end_secs: u32) -> f32 {
        let age = end_secs.saturating_sub(page.seen_at) as f32 / 3600.0;
        let averages = &page.averages;
        let here = || averages.at(self.buckets.get(page.clock).copied().unwrap_or(0));
        match self.strategy {
            BaselineStrategy::AdaptiveInterval => hours_overdue(age, page.parameter),
            BaselineStrategy::Importance => page.weight * averages.rate * averages.importance * age,
            BaselineStrategy::Pattern => page.weight * here().0 * age,
            BaselineStrategy::ImportancePattern => {
                let (rate, importance) = here();
                page.weight * rate * importance * age
            }
            BaselineStrategy::Frequency => page.parameter * age,
            BaselineStrategy::Relevance | BaselineStrategy::Sharc | BaselineStrategy::Coherence => age,
        }
    }

    /// Adapts the interval of a page after a visit. Without a visit it sets the first interval.
    pub(super) fn adapt_interval(&mut self, at: usize, changed: Option<bool>) {
        if self.strategy != BaselineStrategy::AdaptiveInterval {
            return;
        }
        let first = self.config.interval.map_or(24.0, |interval| interval.as_hours_f64() as f32);
        let interval = &mut self.pages[at].parameter;
        let before = if *interval > 0.0 { *interval } else { first };
        let factor = match changed {
            Some(true) => 0.5,
            Some(false) => 1.5,
            None => 1.0,
        };
        *interval = (before * factor).clamp(SHORTEST_INTERVAL_HOURS, LONGEST_INTERVAL_HOURS);
    }

    /// Whether the strategy visits all pages in rounds of a fixed order.
    pub(super) fn visits_in_rounds(&self) -> bool {
        matches!(
            self.strategy,
            BaselineStrategy::Relevance | BaselineStrategy::Sharc | BaselineStrategy::Coherence
        )
    }

    /// The next `n` pages of the round, each at most once.
    pub(super) fn take_from_round(&mut self, n: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        let mut was_empty = false;
        while taken.len() < n {
            match self.round.pop_front() {
                Some(at) if self.pages[at as usize].urgency > 0.0 => {
                    // The first pages of the next round must not be taken twice in a slot.
                    self.pages[at as usize].urgency *= -1.0;
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
            self.pages[at as usize].urgency *= -1.0;
        }
        taken
    }

    fn next_round(&self) -> VecDeque<u32> {
        let page = |at: u32| &self.pages[at as usize];
        let mut order: Vec<u32> = (0..self.pages.len() as u32).filter(|&at| !page(at).is_new).collect();
        match self.strategy {
            BaselineStrategy::Relevance => order.sort_by(|&a, &b| page(b).weight.total_cmp(&page(a).weight)),
            _ => {
                let rate = |at: u32| page(at).averages.constant_rate();
                order.sort_by(|&a, &b| page(a).site.cmp(&page(b).site).then(rate(a).total_cmp(&rate(b))));
            }
        }
        if self.strategy == BaselineStrategy::Sharc {
            order = self.sharc_order(&order);
        }
        order.into()
    }

    /// Reorders the pages of each site so that they ascend to the middle and then descend.
    fn sharc_order(&self, ascending: &[u32]) -> Vec<u32> {
        let mut order = Vec::with_capacity(ascending.len());
        let site = |at: u32| self.pages[at as usize].site;
        for site in ascending.chunk_by(|&a, &b| site(a) == site(b)) {
            order.extend(site.iter().step_by(2));
            let falling: Vec<u32> = site.iter().skip(1).step_by(2).rev().copied().collect();
            order.extend(falling);
        }
        order
    }

    /// Distributes the budget so that the mean freshness is highest. One more visit then gains the same for all pages
    /// with visits, and pages that change too fast get none.
    pub(super) fn distribute_visits(&mut self) {
        let total = self.budget.visits_in(Span::from_hours(1));
        let rates: Vec<f32> = self.pages.iter().map(|page| page.averages.constant_rate()).collect();
        let table = freshness_table();
        let spent =
            |mu: f64| -> f64 { rates.iter().map(|&rate| visits_per_hour(f64::from(rate), mu, &table)).sum() };
        let (mut low, mut high) = (1e-9f64, 1e9f64);
        for _ in 0..60 {
            let middle = (low * high).sqrt();
            if spent(middle) > total { low = middle } else { high = middle }
        }
        for (page, &rate) in self.pages.iter_mut().zip(&rates) {
            page.parameter = visits_per_hour(f64::from(rate), high, &table) as f32;
        }
    }
}

/// Hours since a page became due, plus a small amount so that a page due right now counts; 0 if it is not due.
fn hours_overdue(age: f32, interval: f32) -> f32 {
    if age >= interval { age - interval + 1e-3 } else { 0.0 }
}

/// (r, 1 - (1 + r) exp(-r)) for r from 0.001 to 1000, ascending: the gain of a visit to a page that changes r times per
/// visit.
fn freshness_table() -> Vec<(f64, f64)> {
    let point = |i: i32| {
        let r = (f64::from(i) * 0.01).exp();
        (r, 1.0 - (1.0 + r) * (-r).exp())
    };
    (-690..=690).map(point).collect()
}

/// Visits per hour at which one more is worth mu; 0 if the page changes faster than 1 / mu.
fn visits_per_hour(rate: f64, mu: f64, table: &[(f64, f64)]) -> f64 {
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

    /// P-QUALITY 6 keeps omega(P) in the urgency of both pattern strategies.
    #[test]
    fn the_weight_of_a_page_counts_for_pattern() {
        use crate::drive::VisitScheduler;
        use perennial_core::schedule::{PageInfo, ScheduleConfig};
        use perennial_core::time::Timestamp;
        use perennial_core::url::{PageId, SiteId};
        for strategy in [BaselineStrategy::Pattern, BaselineStrategy::ImportancePattern] {
            let start = Timestamp::EPOCH;
            let mut scheduler =
                PaperScheduler::new(strategy, ScheduleConfig::default(), Span::from_hours(1), start);
            for (page, weight) in [(0, 1.0), (1, 3.0)] {
                let info = PageInfo { weight, ..PageInfo::for_site(SiteId(0)) };
                scheduler.add_page(PageId(page), info);
            }
            let urgency = |at: usize| scheduler.urgency(&scheduler.pages[at], 7200);
            assert!(urgency(0) > 0.0 && (urgency(1) - 3.0 * urgency(0)).abs() < 1e-4, "{strategy:?}");
        }
    }

    #[test]
    fn hot_pages_get_nothing() {
        let table = freshness_table();
        assert_eq!(visits_per_hour(5.0, 0.25, &table), 0.0);
        let (slow, fast) = (visits_per_hour(0.1, 0.25, &table), visits_per_hour(1.0, 0.25, &table));
        assert!(slow > 0.0 && fast > slow);
    }
}
