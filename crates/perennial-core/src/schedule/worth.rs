//! Rates and importances -> what pages are worth to the goals, in one currency (docs/decisions/0037-goals-and-sweeps.md).
//!
//! A goal is a weighting of captured importance. Pooled completeness counts omega(P) for each unit of importance; Definition 5.13
//! divides that by all that the page shows, so that every page counts alike; the count of versions divides it by the importance of
//! a single change. Each is scaled by means over the archive so that all of the archive is worth the same under all three. So
//! goals can be added, and sites with different goals can share a budget.

use super::pages::{ABSENT, VACANT};
use super::{Goal, Observed, Scheduler};
use crate::pattern::mixture::one_minus_exp;

const HOURS_A_WEEK: f32 = 168.0;
/// Share of its worth by Definition 5.13 that a version of a page has whether or not another will replace it soon.
const STANDING: f32 = 0.05;
/// The least importance of a week by which a worth is divided.
const LEAST_WEEKLY: f32 = 1e-4;
/// Means over the archive are made anew after this time, or when the number of pages has changed by a tenth.
const RENEWED_SECS: u32 = 86_400;

/// Sums over the pages of the archive.
#[derive(Clone, Default, Debug)]
pub(super) struct Totals {
    made_at: u32,
    n_pages: usize,
    /// W: the sum of omega(P).
    pub weight: f64,
    /// The importance that a week is expected to bring, weighted by omega(P).
    pub importance: f64,
    /// The changes that a week is expected to bring.
    n_changes: f64,
    /// What a fixed interval would reach by Definition 5.13 with this budget.
    pub by_fixed_interval: f64,
    /// How much Definition 5.13 weighed when values were made.
    every_page: f32,
}

impl Totals {
    /// S': the mean importance of a page's week.
    fn mean_weekly(&self) -> f32 {
        if self.weight > 0.0 { (self.importance / self.weight) as f32 } else { 1.0 }
    }

    /// What one version is worth where versions are counted.
    fn per_version(&self) -> f32 {
        if self.n_changes > 0.0 { (self.importance / self.n_changes) as f32 } else { 1.0 }
    }
}

impl Scheduler {
    /// Sets what one unit of importance on a page is worth to the goal of its site.
    pub(super) fn set_value(&mut self, at: usize) {
        let weekly = self.weekly(at);
        self.value_from(at, weekly);
    }

    fn value_from(&mut self, at: usize, weekly: f32) {
        let weight = self.pages.weight[at];
        let each = weight * self.totals.mean_weekly() / weekly.max(LEAST_WEEKLY);
        let version = self.totals.per_version() / self.pages.importance[at].max(1e-6);
        let (value, standing) = match self.goal_of(at) {
            Goal::Importance => (weight, 0.0),
            Goal::EveryPage => (each, STANDING * each),
            Goal::Count => (version, 0.0),
            Goal::Balanced | Goal::Coherent => {
                let each = self.balance.every_page * each;
                (weight + each + version, STANDING * each)
            }
        };
        (self.pages.value[at], self.pages.standing[at]) = (value, standing);
    }

    /// S: the importance that a page is expected to show in a week, without its busy and quiet spells. Where a visit shows a
    /// difference, several changes within an hour show as one, so hours with a change are counted and not changes (C1).
    pub(super) fn weekly(&self, at: usize) -> f32 {
        let week = self.learner.mixture.week().iter().enumerate();
        let an_hour: f32 = week
            .map(|(bucket, share)| {
                let (rate, importance) = self.learner.usual(&self.pages, at, bucket);
                let changed = match self.config.observed {
                    Observed::Difference => one_minus_exp(rate),
                    Observed::LastChange => rate,
                };
                share * changed * importance
            })
            .sum();
        HOURS_A_WEEK * an_hour
    }

    /// Makes the sums over the archive and all values anew, if they have become old.
    pub(super) fn renew_values(&mut self, now_secs: u32) {
        let (totals, n_pages) = (&self.totals, self.pages.n_present());
        let is_old = now_secs.saturating_sub(totals.made_at) >= RENEWED_SECS;
        let is_outgrown = n_pages.abs_diff(totals.n_pages) * 10 > totals.n_pages;
        let moved = (self.balance.every_page / totals.every_page.max(1e-3)).ln().abs() > 0.1;
        if is_old || is_outgrown || moved {
            self.make_values(now_secs);
        }
    }

    /// Makes the sums over the archive and the values of all pages anew.
    pub(super) fn make_values(&mut self, now_secs: u32) {
        let is_there = |at: usize| !self.pages.has(at, VACANT | ABSENT);
        let weekly: Vec<f32> =
            (0..self.pages.len()).map(|at| if is_there(at) { self.weekly(at) } else { 0.0 }).collect();
        let mut totals = Totals {
            made_at: now_secs,
            n_pages: self.pages.n_present(),
            every_page: self.balance.every_page,
            ..Totals::default()
        };
        let hours = self.hours_between_visits();
        let mut by_fixed_interval = (0.0, 0.0);
        for (at, &weekly) in weekly.iter().enumerate().filter(|(at, _)| is_there(*at)) {
            let weight = f64::from(self.pages.weight[at]);
            let importance = self.pages.importance[at].max(1e-6);
            totals.weight += weight;
            totals.importance += weight * f64::from(weekly);
            totals.n_changes += f64::from(weekly / importance);
            if !matches!(self.goal_of(at), Goal::Importance | Goal::Count) {
                // One visit in so many hours earns one change at most.
                let earned = importance * -(-self.pages.rate[at] * hours).exp_m1();
                let existing = weekly.max(LEAST_WEEKLY) * hours / HOURS_A_WEEK;
                by_fixed_interval.0 += weight * f64::from((earned / existing).min(1.0));
                by_fixed_interval.1 += weight;
            }
        }
        totals.by_fixed_interval = by_fixed_interval.0 / f64::max(by_fixed_interval.1, 1e-9);
        self.totals = totals;
        for (at, weekly) in weekly.into_iter().enumerate() {
            self.value_from(at, weekly);
        }
        self.survey_sites();
    }

    /// The interval at which the budget could visit every page, in hours.
    fn hours_between_visits(&self) -> f32 {
        let an_hour =
            self.config.budget.map_or(1.0, |budget| budget.visits_in(crate::time::Span::from_hours(1)));
        (self.n_followed().max(1) as f64 / an_hour.max(1e-6)).min(1e5) as f32
    }

    /// omega(P) times the share of a page's week that a visit is expected to catch: what it adds to Definition 5.13, times the sum of
    /// omega(P).
    pub(super) fn share_of_week(&self, at: usize) -> f64 {
        let by_each = self.balance.every_page * self.totals.mean_weekly() * STANDING;
        f64::from(self.pages.standing[at] / by_each.max(1e-9) * self.pages.reward[at])
    }
}
