//! Rates and importances -> the value of pages to each goal, in one currency
//! (docs/decisions/0037-goals-and-sweeps.md).
//!
//! A goal is a weighting of captured importance. Pooled completeness counts omega(P) for each unit of importance.
//! Definition 5.13 divides that by all importance of the page, so every page counts alike. The count of versions
//! divides it by the importance of a single change. Means over the archive scale each goal so that the whole archive
//! is worth the same under all three. So goals can be added, and sites with different goals can share a budget.

use super::pages::{ABSENT, SKIPPED, VACANT};
use super::{Goal, ObservedImportance, Scheduler};
use crate::pattern::mixture::one_minus_exp;

const HOURS_A_WEEK: f32 = 168.0;
/// Share of a version's value by Definition 5.13 that does not depend on when the next version replaces it.
const SURE_SHARE: f32 = 0.05;
/// The minimum of the weekly importance that divides a value.
const LEAST_WEEKLY: f32 = 1e-4;
/// Means over the archive are recomputed after this time, or when the number of pages has changed by a tenth.
const RENEWED_SECS: u32 = 86_400;

#[derive(Clone, Default, Debug)]
pub(super) struct ArchiveTotals {
    made_at: u32,
    n_pages: usize,
    /// W: the sum of omega(P).
    pub weight: f64,
    /// The importance expected in a week, weighted by omega(P).
    pub importance: f64,
    /// The number of changes expected in a week.
    n_changes: f64,
    /// The result of a fixed interval by Definition 5.13 with this budget.
    pub by_fixed_interval: f64,
    /// The weight of Definition 5.13 when the values were computed.
    every_page: f32,
    /// Whether the weight of a page has changed since.
    pub is_outdated: bool,
}

/// Totals of which some pages are missing.
#[derive(Clone, Default)]
pub(super) struct ArchiveSums {
    totals: ArchiveTotals,
    /// The hours between two visits of a page by a fixed interval.
    hours: f32,
    /// The shares that a fixed interval would capture, and their weights.
    by_fixed_interval: (f64, f64),
    /// By site: the number of pages, and the weight of their versions.
    sites: Vec<(u32, f32)>,
}

impl ArchiveTotals {
    /// S': the mean weekly importance of a page.
    fn mean_weekly(&self) -> f32 {
        if self.weight > 0.0 { (self.importance / self.weight) as f32 } else { 1.0 }
    }

    /// The value of one version if versions are counted.
    fn per_version(&self) -> f32 {
        if self.n_changes > 0.0 { (self.importance / self.n_changes) as f32 } else { 1.0 }
    }
}

impl Scheduler {
    /// Sets the value of one unit of importance on a page to the goal of its site.
    pub(super) fn set_value(&mut self, at: usize) {
        let weekly = self.weekly_importance(at);
        let weight = self.pages.weight[at];
        let each = weight * self.totals.mean_weekly() / weekly.max(LEAST_WEEKLY);
        let version = self.totals.per_version() / self.pages.importance[at].max(1e-6);
        let (value, sure_value) = match self.goal(at) {
            Goal::Importance => (weight, 0.0),
            Goal::EveryPage => (each, SURE_SHARE * each),
            Goal::Count => (version, 0.0),
            Goal::Balanced | Goal::Coherent => {
                let each = self.balance.every_page * each;
                (weight + each + version, SURE_SHARE * each)
            }
        };
        (self.pages.value[at], self.pages.sure_value[at]) = (value, sure_value);
    }

    /// S: the importance expected on a page in a week, without its spells. If a visit shows a difference, several
    /// changes within an hour look like one. So hours with a change are counted, not changes (C1).
    pub(super) fn weekly_importance(&self, at: usize) -> f32 {
        let week = self.learner.mixture.week().iter().enumerate();
        let an_hour: f32 = week
            .map(|(bucket, share)| {
                let (rate, importance) = self.learner.usual(&self.pages, at, bucket);
                let changed = match self.config.observed {
                    ObservedImportance::Difference => one_minus_exp(rate),
                    ObservedImportance::LastChange => rate,
                };
                share * changed * importance
            })
            .sum();
        HOURS_A_WEEK * an_hour
    }

    /// Whether the sums over the archive and all values are outdated.
    pub(super) fn are_values_outdated(&self, now_secs: u32) -> bool {
        let (totals, n_pages) = (&self.totals, self.pages.n_present());
        let is_old = now_secs.saturating_sub(totals.made_at) >= RENEWED_SECS;
        let is_outgrown = n_pages.abs_diff(totals.n_pages) * 10 > totals.n_pages;
        let moved = (self.balance.every_page / totals.every_page.max(1e-3)).ln().abs() > 0.1;
        is_old || is_outgrown || moved || totals.is_outdated
    }

    /// Recomputes the sums over the archive and the values of all pages.
    pub(super) fn recompute_values(&mut self) {
        let mut sums = self.new_sums();
        (0..self.pages.len()).for_each(|at| self.add_to_sums(&mut sums, at));
        self.use_sums(sums);
        (0..self.pages.len()).for_each(|at| self.set_value(at));
    }

    /// Sums without pages.
    pub(super) fn new_sums(&self) -> ArchiveSums {
        ArchiveSums { hours: self.hours_between_visits(), ..ArchiveSums::default() }
    }

    pub(super) fn add_to_sums(&self, sums: &mut ArchiveSums, at: usize) {
        if self.pages.has(at, VACANT | ABSENT) {
            return;
        }
        let weekly = self.weekly_importance(at);
        let (weight, totals) = (f64::from(self.pages.weight[at]), &mut sums.totals);
        let importance = self.pages.importance[at].max(1e-6);
        totals.weight += weight;
        totals.importance += weight * f64::from(weekly);
        totals.n_changes += f64::from(weekly / importance);
        if !matches!(self.goal(at), Goal::Importance | Goal::Count) {
            // One visit per interval captures at most one change.
            let earned = importance * -(-self.pages.rate[at] * sums.hours).exp_m1();
            let existing = weekly.max(LEAST_WEEKLY) * sums.hours / HOURS_A_WEEK;
            sums.by_fixed_interval.0 += weight * f64::from((earned / existing).min(1.0));
            sums.by_fixed_interval.1 += weight;
        }
        if !self.pages.has(at, SKIPPED) {
            let site = self.pages.site[at] as usize;
            if site >= sums.sites.len() {
                sums.sites.resize(site + 1, (0, 0.0));
            }
            sums.sites[site].0 += 1;
            sums.sites[site].1 += self.page_omega(at);
        }
    }

    /// Makes complete sums those by which pages are valued.
    pub(super) fn use_sums(&mut self, sums: ArchiveSums) {
        let by_fixed_interval = sums.by_fixed_interval.0 / sums.by_fixed_interval.1.max(1e-9);
        self.totals = ArchiveTotals {
            made_at: self.secs(self.now),
            n_pages: self.pages.n_present(),
            every_page: self.balance.every_page,
            by_fixed_interval,
            ..sums.totals
        };
        let sites = sums.sites.into_iter().chain(std::iter::repeat((0, 0.0)));
        for (site, (n_pages, omega)) in self.sites.all.iter_mut().zip(sites) {
            (site.n_pages, site.omega) = (n_pages, omega);
        }
        self.find_largest_sweep();
    }

    /// The interval in hours at which the budget could visit every page.
    fn hours_between_visits(&self) -> f32 {
        let an_hour =
            self.config.budget.map_or(1.0, |budget| budget.visits_in(crate::time::Span::from_hours(1)));
        (self.n_followed().max(1) as f64 / an_hour.max(1e-6)).min(1e5) as f32
    }

    /// What a visit is expected to add to Definition 5.13, times the sum of omega(P): omega(P) times the captured
    /// share of the page's week.
    pub(super) fn share_of_week(&self, at: usize) -> f64 {
        let by_each = self.balance.every_page * self.totals.mean_weekly() * SURE_SHARE;
        f64::from(self.pages.sure_value[at] / by_each.max(1e-9) * self.pages.expected_importance[at])
    }
}
