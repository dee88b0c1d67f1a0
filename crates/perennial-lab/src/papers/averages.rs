//! Averages that the papers' strategies learn about a page from visits: their Update function (P-PATTERN 8.2, line 13).

use perennial_core::pattern::mixture::{HIGHEST_RATE, Mixture, quick_ln};
use perennial_core::schedule::KnownPattern;

/// Mean rate and importance of a page, and their variation by period.
pub(super) struct Averages {
    pub(super) rate: f32,
    pub(super) importance: f32,
    /// Rate and importance of each period, relative to the means.
    relative: Vec<[f32; 2]>,
    tallies: Vec<PeriodTally>,
    n_visits: u32,
    n_changed: u32,
    hours: f32,
    is_known: bool,
}

#[derive(Clone, Copy, Default)]
struct PeriodTally {
    visits: f32,
    changed: f32,
    importance: f32,
}

impl Averages {
    pub(super) fn new(n_buckets: usize) -> Averages {
        Averages {
            rate: 0.5,
            importance: 0.3,
            relative: vec![[1.0; 2]; n_buckets],
            tallies: vec![PeriodTally::default(); n_buckets],
            n_visits: 0,
            n_changed: 0,
            hours: 0.0,
            is_known: false,
        }
    }

    /// A page with given true rates.
    pub(super) fn known(mixture: &Mixture, known: &KnownPattern) -> Averages {
        let n_buckets = mixture.n_buckets();
        let value = |values: &[f32], bucket: usize, most: f32| {
            let value = values.get(bucket).copied().filter(|value| value.is_finite());
            value.unwrap_or(0.0).clamp(0.0, most)
        };
        let rates: Vec<f32> = (0..n_buckets).map(|b| value(&known.rates, b, f32::MAX)).collect();
        let importance: Vec<f32> = (0..n_buckets).map(|b| value(&known.importance, b, 1.0)).collect();
        let mean_rate = mixture.mean_over_week(&rates).max(1e-9);
        let mean_importance = mixture.mean_over_week(&importance).max(1e-6);
        let (per_rate, per_importance) = (1.0 / mean_rate, 1.0 / mean_importance);
        let relative = rates.iter().zip(&importance);
        Averages {
            rate: mean_rate,
            importance: mean_importance,
            relative: relative.map(|(r, m)| [r * per_rate, m * per_importance].map(round_to_steps)).collect(),
            is_known: true,
            ..Averages::new(n_buckets)
        }
    }

    /// Changes per hour and importance of a change in a period.
    pub(super) fn at(&self, bucket: usize) -> (f32, f32) {
        let [rate, importance] = self.relative[bucket];
        ((self.rate * rate).min(HIGHEST_RATE), (self.importance * importance).min(1.0))
    }

    /// Changes per hour under a Poisson process of constant rate, from visits with and without a change. The estimator
    /// of Cho and Garcia-Molina stays finite if every visit found a change.
    pub(super) fn constant_rate(&self) -> f32 {
        if self.n_visits == 0 {
            return self.rate;
        }
        let n = self.n_visits as f32;
        let unchanged = n - self.n_changed as f32;
        let gap = (self.hours / n.max(1.0)).max(1e-3);
        (-((unchanged + 0.5) / (n + 0.5)).ln() / gap).max(1e-6)
    }

    /// Adds a visit, `gap_secs` after the previous one. The averages of each period include one imaginary visit with
    /// the mean of the page. True rates stay unchanged.
    pub(super) fn observe(&mut self, bucket: Option<usize>, gap_secs: u32, importance: Option<f32>) {
        if self.is_known {
            return;
        }
        self.n_visits += 1;
        self.n_changed += u32::from(importance.is_some());
        self.hours += gap_secs as f32 / 3600.0;
        let Some(bucket) = bucket else { return };
        let tally = &mut self.tallies[bucket];
        tally.visits += 1.0;
        if let Some(importance) = importance {
            tally.changed += 1.0;
            tally.importance += importance;
        }
        let sum = |of: fn(&PeriodTally) -> f32| self.tallies.iter().map(of).sum::<f32>();
        let (visits, changed, importance) =
            (sum(|tally| tally.visits), sum(|tally| tally.changed), sum(|tally| tally.importance));
        let share = (changed + 0.5) / (visits + 1.0);
        let mean = (importance + 0.15) / (changed + 0.5);
        (self.rate, self.importance) = (share, mean.min(1.0));
        for (relative, tally) in self.relative.iter_mut().zip(&self.tallies) {
            let here = (tally.changed + share) / (tally.visits + 1.0);
            let worth = (tally.importance + share * mean) / (tally.visits + 1.0);
            *relative = [here / share, worth / here / mean].map(round_to_steps);
        }
    }
}

/// Rounds a value to logarithmic steps of 5 %, like the crawler's scheduler. All strategies then rank by equally exact
/// numbers.
fn round_to_steps(relative: f32) -> f32 {
    const STEP: f32 = 0.05;
    /// The index of 1 among 255 steps.
    const OF_ONE: f32 = 160.0;
    /// Adding and subtracting this number rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    if relative > 1e-6 {
        let place = quick_ln(relative) * (1.0 / STEP) + OF_ONE;
        (((place.clamp(1.0, 255.0) + ROUND) - ROUND - OF_ONE) * STEP).exp()
    } else {
        0.0
    }
}
