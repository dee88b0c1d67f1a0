//! Visits that skip periods -> rates of change and importances by bucket, with patterns that pages share
//! (P-PATTERN 6.3.4; docs/papers.md, Learning from visits).
//!
//! A page's rate in bucket b is a * S_c\[b\]: its overall rate a, on a logarithmic grid, times the shape S_c, which
//! describes when pages of its kind change. Each visit shows only whether something changed since the previous one.
//! The likelihood of that weighs every pair (a, c), and the mean weights over all pages are the prior of each pair.
//! Then every page's own counts adjust its buckets (a few EM rounds), and the pages' counts adjust the shapes. A
//! bucket is a period of the day on workdays or on other days. Holidays count as weekend, because they resemble it.

mod evenness;
mod pass;
mod quick;
mod start;
mod visits;

pub use pass::EmPass;
pub use quick::quick_ln;
pub(crate) use quick::{dot, exp_neg, largest, one_minus_exp, sum};
pub use visits::{
    BucketCounts, BucketPiece, BucketTally, ObservedImportance, SizeScale, VisitLog, bucket_index,
};

use start::{N_TABLE, RATE_STEP, TABLE_START, first_prior, first_shapes, ln_change_table, rate_grid};

/// Values of a: 0.00093 to 112 per day, each 1.34 times the previous one.
pub const N_RATES: usize = 41;
/// Shared shapes. Initially they are: flat, a peak at one hour, and days with a peak in office hours, in the evening,
/// at night or on weekends.
pub const N_SHAPES: usize = 14;
/// Changes per hour. Above this rate nearly every hourly observation shows a change, so higher rates cannot be
/// distinguished.
pub const HIGHEST_RATE: f32 = 4.7;
/// Weight of the prior against a page's own counts, in expected changes per bucket. It is small because no shape has
/// bursts of an hour or two, so the page's own counts have to show them.
const OWN_PRIOR: f32 = 0.5;
/// Weight of the page's mean and its group's pattern of importance against the bucket's own, in changed hours.
const BUCKET_IMPORTANCE_PRIOR: f32 = 6.0;
/// Weight of the default importance against the page's own mean, in changed hours.
const PAGE_IMPORTANCE_PRIOR: f32 = 1.5;
/// Weight of the prior over all pages against that of a group, in pages.
const GROUP_PRIOR: f32 = 5.0;
const N_EM_ROUNDS: usize = 4;
const N_IMPORTANCE_ROUNDS: usize = 3;

/// The estimate for one page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PageFit {
    /// Changes per hour by bucket.
    pub rates: Vec<f32>,
    /// The same without the page's own counts.
    pub prior_rates: Vec<f32>,
    /// Mean importance of a change by bucket.
    pub importance: Vec<f32>,
    /// The size of a change by bucket, which distributes a difference among hours.
    sizes: Vec<f32>,
    /// The sums of the visits.
    pub counts: BucketCounts,
    /// Posterior of each pair (shape, rate), rates innermost.
    pub posterior: Vec<f32>,
}

impl PageFit {
    fn resize(&mut self, n_buckets: usize) {
        if self.rates.len() != n_buckets {
            *self = PageFit {
                rates: vec![0.0; n_buckets],
                prior_rates: vec![0.0; n_buckets],
                importance: vec![0.0; n_buckets],
                sizes: vec![0.0; n_buckets],
                counts: BucketCounts::new(n_buckets),
                posterior: vec![0.0; N_SHAPES * N_RATES],
            };
        }
    }

    /// The shape that fits best, and its posterior probability.
    pub fn best_shape(&self) -> (usize, f32) {
        let shares = self.posterior.chunks(N_RATES).map(sum).enumerate();
        shares.fold((0, 0.0), |best, next| if next.1 > best.1 { next } else { best })
    }
}

#[derive(Clone, Debug)]
pub struct Mixture {
    n_buckets: usize,
    observed: ObservedImportance,
    /// Share of the week of each bucket; sums to 1.
    week: Vec<f32>,
    /// Relative rates, shape by shape, with a mean of 1 over the week.
    shapes: Vec<f32>,
    prior: Vec<f32>,
    ln_prior: Vec<f32>,
    groups: Vec<GroupPrior>,
    /// The pattern of importance that the pages of each group share: the size of a change by bucket, relative to the
    /// page's mean.
    sizes: Vec<Vec<f32>>,
    rates: Vec<f32>,
    /// ln(1 - exp(-x)) for x on a logarithmic grid with the step of the rates.
    ln_change: Vec<f32>,
    /// The index of ln x in the table is (ln x + shift) * scale.
    table_shift: f32,
    table_scale: f32,
    /// The same shapes, bucket by bucket.
    by_bucket: Vec<[f32; N_SHAPES]>,
    /// The default importance of a page without observations. It is above the mean, so such pages are visited
    /// and their importance becomes known.
    unknown_importance: f32,
}

/// The sums of the fits of one group's pages.
#[derive(Clone, Debug, Default)]
struct GroupPrior {
    sum: Vec<f32>,
    n_pages: f32,
    /// By bucket, importance relative to the page's mean, and the changed hours to which it belongs.
    size_sums: Vec<[f32; 2]>,
    /// Logarithms of the group's posterior, once all its pages were added.
    ln: Vec<f32>,
}

impl Mixture {
    /// The initial model, for days of `n_periods`.
    pub fn new(n_periods: u16, observed: ObservedImportance) -> Mixture {
        let n_periods = usize::from(n_periods.max(1));
        let n_buckets = 2 * n_periods;
        let share = |days: f32| days / 7.0 / n_periods as f32;
        let week: Vec<f32> = (0..n_buckets).map(|b| share(if b < n_periods { 5.0 } else { 2.0 })).collect();
        let rates = rate_grid();
        let mut mixture = Mixture {
            n_buckets,
            observed,
            shapes: first_shapes(n_periods, &week),
            week,
            prior: first_prior(),
            ln_prior: first_prior().iter().map(|share| share.ln()).collect(),
            groups: Vec::new(),
            sizes: Vec::new(),
            ln_change: ln_change_table(),
            table_shift: (f64::from(rates[0]).ln() - TABLE_START) as f32,
            table_scale: (1.0 / RATE_STEP.ln()) as f32,
            by_bucket: vec![[0.0; N_SHAPES]; n_buckets],
            rates,
            unknown_importance: match observed {
                ObservedImportance::Difference => 0.35,
                ObservedImportance::LastChange => 0.3,
            },
        };
        mixture.normalise_shapes();
        mixture
    }

    pub fn n_buckets(&self) -> usize {
        self.n_buckets
    }

    pub fn mean_over_week(&self, values: &[f32]) -> f32 {
        dot(values, &self.week)
    }

    pub fn week(&self) -> &[f32] {
        &self.week
    }

    /// Relative rates of a shared pattern, with a mean of 1 over the week.
    pub fn shape(&self, shape: usize) -> &[f32] {
        self.shapes.get(shape * self.n_buckets..(shape + 1) * self.n_buckets).unwrap_or_default()
    }

    /// What the importance of a visit measures.
    pub fn observed(&self) -> ObservedImportance {
        self.observed
    }

    /// Fits one page to its visits and to the sums of older visits. `before` are the counts of the previous fit.
    /// Their sizes of changes distribute a difference among hours, so every fit is one EM round.
    pub fn fit(
        &self,
        visits: &VisitLog,
        settled: Option<&BucketCounts>,
        group: u32,
        before: &BucketCounts,
        fit: &mut PageFit,
    ) {
        fit.resize(self.n_buckets);
        self.fill_sizes(before, group, &mut fit.sizes);
        fit.counts.reset_hours(settled);
        for (pieces, _, weight) in visits.iter() {
            fit.counts.add_hours(pieces, weight);
        }
        // First the posterior of all pairs, then the rates and the importances that follow from it.
        self.weigh_pairs(visits, settled, group, fit);
        self.fit_rates(visits, settled, fit);
        self.fit_importance(visits, settled, group, fit);
        if self.observed == ObservedImportance::Difference && self.weigh_by_evenness(visits, fit) {
            self.fit_rates(visits, settled, fit);
            self.fit_importance(visits, settled, group, fit);
        }
        for (tally, rate) in fit.counts.buckets.iter_mut().zip(&fit.prior_rates) {
            tally.prior_rate = *rate;
        }
    }

    fn fit_rates(&self, visits: &VisitLog, settled: Option<&BucketCounts>, fit: &mut PageFit) {
        self.expect_rates(&fit.posterior, &mut fit.prior_rates);
        fit.rates.copy_from_slice(&fit.prior_rates);
        for _ in 0..if visits.is_empty() { 1 } else { N_EM_ROUNDS } {
            fit.counts.reset_changes(settled);
            let rates = &fit.rates;
            for (pieces, magnitude, weight) in visits.iter() {
                if magnitude.is_some() {
                    fit.counts.add_changes(pieces, weight, &|b| rates[b]);
                }
            }
            for ((rate, tally), prior) in fit.rates.iter_mut().zip(&fit.counts.buckets).zip(&fit.prior_rates)
            {
                *rate = own_rate(tally.n_changes, tally.hours, *prior);
            }
        }
    }

    fn fit_importance(
        &self,
        visits: &VisitLog,
        settled: Option<&BucketCounts>,
        group: u32,
        fit: &mut PageFit,
    ) {
        let mut scale = self.scale(self.unknown_importance);
        // Importances are written at the end. Until then the column contains the probability of a change in an hour.
        let (rates, changed, sizes) = (&fit.rates, &mut fit.importance, &mut fit.sizes);
        changed.iter_mut().zip(rates).for_each(|(changed, rate)| *changed = one_minus_exp(*rate));
        for _ in 0..N_IMPORTANCE_ROUNDS {
            fit.counts.reset_importance(settled);
            for (pieces, magnitude, weight) in visits.iter() {
                if let Some(magnitude) = magnitude {
                    let estimated = (&|b: usize| rates[b], &|b: usize| changed[b], &|b: usize| sizes[b]);
                    fit.counts.add_importance(pieces, magnitude, weight, scale, estimated);
                }
            }
            scale.of_page = self.page_importance(&fit.counts);
            self.fill_sizes(&fit.counts, group, sizes);
            if self.observed == ObservedImportance::LastChange || !visits.any_saturated() {
                break;
            }
        }
        for (importance, size) in fit.importance.iter_mut().zip(&fit.sizes) {
            *importance = self.importance_from_size(*size);
        }
    }

    /// How to interpret visits of a page with this mean importance.
    pub fn scale(&self, of_page: f32) -> SizeScale {
        SizeScale { observed: self.observed, of_page }
    }

    /// mu of the page: the mean size of its changes, on the scale of the counts.
    pub fn page_importance(&self, counts: &BucketCounts) -> f32 {
        let (size_sum, n_changed_hours) = counts.totals;
        (size_sum + PAGE_IMPORTANCE_PRIOR * self.unknown_importance)
            / (n_changed_hours + PAGE_IMPORTANCE_PRIOR)
    }

    /// mu_b: the expected size of a change in one bucket, on the scale of the counts.
    pub fn size(&self, counts: &BucketCounts, bucket: usize, of_page: f32, group: u32) -> f32 {
        let relative = self.sizes.get(group as usize).and_then(|sizes| sizes.get(bucket));
        expected_size(&counts.buckets[bucket], of_page * relative.unwrap_or(&1.0))
    }

    /// m_b: the importance of a change of that size.
    #[inline]
    pub fn importance_from_size(&self, size: f32) -> f32 {
        match self.observed {
            ObservedImportance::Difference => one_minus_exp(size),
            ObservedImportance::LastChange => size.min(1.0),
        }
    }

    /// mu_b of all buckets. Without many changes of the page, its group's pattern dominates.
    fn fill_sizes(&self, counts: &BucketCounts, group: u32, into: &mut [f32]) {
        let of_page = self.page_importance(counts);
        match self.sizes.get(group as usize).filter(|sizes| sizes.len() == into.len()) {
            Some(sizes) => into.iter_mut().zip(sizes).for_each(|(into, relative)| *into = of_page * relative),
            None => into.fill(of_page),
        }
        into.iter_mut().zip(&counts.buckets).for_each(|(into, tally)| *into = expected_size(tally, *into));
    }

    /// The posterior of the pairs (shape, rate), rates innermost.
    fn weigh_pairs(&self, visits: &VisitLog, settled: Option<&BucketCounts>, group: u32, fit: &mut PageFit) {
        // The rates are computed later. Until then the column contains the hours without a change.
        let (posterior, quiet) = (&mut fit.posterior, &mut fit.prior_rates);
        self.fill_log_prior(group, posterior);
        quiet.fill(0.0);
        for (pieces, magnitude, weight) in visits.iter() {
            if magnitude.is_none() {
                for piece in pieces {
                    quiet[usize::from(piece.bucket)] += weight * piece.hours * piece.times;
                }
                continue;
            }
            let (of_shapes, _) = posterior.as_chunks_mut::<N_RATES>();
            for (x, of_shape) in self.integrate(pieces).into_iter().zip(of_shapes) {
                self.add_ln_change(x, weight, of_shape);
            }
        }
        let mut unchanged = [0.0f32; N_SHAPES];
        for (hours, shapes) in quiet.iter().zip(&self.by_bucket) {
            unchanged.iter_mut().zip(shapes).for_each(|(sum, shape)| *sum += hours * shape);
        }
        if let Some(settled) = settled {
            self.add_settled(settled, &mut unchanged, posterior);
        }
        for (c, hours) in unchanged.into_iter().enumerate() {
            for (i, rate) in self.rates.iter().enumerate() {
                posterior[c * N_RATES + i] -= rate * hours;
            }
        }
        exponentiate(posterior);
    }

    /// Summed visits count as if each of their changes had been observed separately.
    fn add_settled(&self, settled: &BucketCounts, unchanged: &mut [f32; N_SHAPES], posterior: &mut [f32]) {
        let n_changes: f32 = settled.buckets.iter().map(|tally| tally.n_changes).sum();
        for (c, sum) in unchanged.iter_mut().enumerate() {
            let shape = self.shape(c);
            let mut by_shape = 0.0;
            for (share, tally) in shape.iter().zip(&settled.buckets) {
                *sum += share * tally.hours;
                by_shape += tally.n_changes * share.max(1e-6).ln();
            }
            for (i, rate) in self.rates.iter().enumerate() {
                posterior[c * N_RATES + i] += by_shape + n_changes * rate.ln();
            }
        }
    }

    fn integrate(&self, pieces: &[BucketPiece]) -> [f32; N_SHAPES] {
        let mut sums = [0.0; N_SHAPES];
        for piece in pieces {
            let hours = piece.hours * piece.times;
            let shapes = &self.by_bucket[usize::from(piece.bucket)];
            sums.iter_mut().zip(shapes).for_each(|(sum, shape)| *sum += hours * shape);
        }
        sums
    }

    /// Adds weight * ln(1 - exp(-a x)) for every rate a. The rates are a geometric series, so consecutive entries of
    /// the table serve all of them.
    fn add_ln_change(&self, x: f32, weight: f32, into: &mut [f32; N_RATES]) {
        let place = (quick_ln(x.max(1e-9)) + self.table_shift) * self.table_scale;
        let place = place.clamp(0.0, (N_TABLE - N_RATES - 2) as f32);
        let start = place as usize;
        let share = place - start as f32;
        let Some(table) = self.ln_change[start..].first_chunk::<{ N_RATES + 1 }>() else { return };
        let (of_low, of_high) = (weight * (1.0 - share), weight * share);
        for (rate, into) in into.iter_mut().enumerate() {
            *into += of_low * table[rate] + of_high * table[rate + 1];
        }
    }

    fn fill_log_prior(&self, group: u32, into: &mut [f32]) {
        match self.groups.get(group as usize).filter(|group| group.ln.len() == into.len()) {
            Some(group) => into.copy_from_slice(&group.ln),
            None => into.copy_from_slice(&self.ln_prior),
        }
    }

    /// E\[a * S_c\[b\]\].
    fn expect_rates(&self, posterior: &[f32], into: &mut [f32]) {
        into.fill(0.0);
        for (c, shares) in posterior.chunks(N_RATES).enumerate() {
            let mean = dot(shares, &self.rates);
            if mean > 1e-9 {
                let shape = self.shape(c);
                into.iter_mut().zip(shape).for_each(|(into, relative)| *into += mean * relative);
            }
        }
        into.iter_mut().for_each(|rate| *rate = rate.clamp(1e-6, HIGHEST_RATE));
    }

    fn normalise_shapes(&mut self) {
        for shape in self.shapes.chunks_mut(self.n_buckets) {
            let mean: f32 = shape.iter().zip(&self.week).map(|(relative, share)| relative * share).sum();
            let mean = mean.max(1e-6);
            shape.iter_mut().for_each(|relative| *relative = (*relative / mean).max(1e-3));
        }
        for (b, by_shape) in self.by_bucket.iter_mut().enumerate() {
            for (c, relative) in by_shape.iter_mut().enumerate() {
                *relative = self.shapes[c * self.n_buckets + b];
            }
        }
    }
}

/// A bucket's mean size of a change from the page's counts and the prior.
#[inline]
fn expected_size(tally: &BucketTally, prior: f32) -> f32 {
    (tally.size_sum + BUCKET_IMPORTANCE_PRIOR * prior) / (tally.n_changed_hours + BUCKET_IMPORTANCE_PRIOR)
}

/// A bucket's rate from the page's counts and the prior.
#[inline]
pub fn own_rate(n_changes: f32, hours: f32, prior: f32) -> f32 {
    // Both sides are multiplied by the prior rate, which saves a division.
    let prior = prior.max(1e-7);
    ((n_changes + OWN_PRIOR) * prior / (hours * prior + OWN_PRIOR)).clamp(1e-7, HIGHEST_RATE)
}

/// Normalises log weights to probabilities that sum to 1.
fn exponentiate(weights: &mut [f32]) {
    let top = largest(weights);
    for weight in weights.iter_mut() {
        let below = top - *weight;
        *weight = if below < 20.0 { exp_neg(below) } else { 0.0 };
    }
    let n = weights.len() as f32;
    let total = sum(weights);
    if total > 0.0 && total.is_finite() {
        let share = 1.0 / total;
        weights.iter_mut().for_each(|weight| *weight *= share);
    } else {
        weights.fill(1.0 / n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit_log(gap_hours: u16, n: usize, changed: impl Fn(usize) -> Option<f32>) -> VisitLog {
        let mut visits = VisitLog::default();
        let mut hour = 0u16;
        for observation in 0..n {
            for _ in 0..gap_hours {
                visits.add_piece(BucketPiece { bucket: hour % 24, hours: 1.0, times: 1.0 });
                hour = (hour + 1) % 24;
            }
            visits.close(changed(observation), 1.0);
        }
        visits
    }

    #[test]
    fn rates_are_recovered_from_visits_that_skip_periods() {
        let mixture = Mixture::new(24, ObservedImportance::Difference);
        let mut fit = PageFit::default();
        // Every sixth observation after six hours showed a change: one in 33 hours.
        mixture.fit(
            &visit_log(6, 400, |observation| (observation % 6 == 0).then_some(0.3)),
            None,
            0,
            &BucketCounts::default(),
            &mut fit,
        );
        let mean = fit.rates[..24].iter().sum::<f32>() / 24.0;
        assert!((mean * 33.0 - 1.0).abs() < 0.25, "{mean}");
        assert!((fit.importance[5] - 0.3).abs() < 0.06, "{}", fit.importance[5]);
        assert!((fit.posterior.iter().sum::<f32>() - 1.0).abs() < 1e-3);
    }

    /// A page that is completely new after a week may have changed much or little at a time. The observation does not
    /// show which.
    #[test]
    fn saturated_differences_do_not_make_a_page_dull() {
        let mixture = Mixture::new(24, ObservedImportance::Difference);
        let (mut unseen, mut saturated, mut dull) =
            (PageFit::default(), PageFit::default(), PageFit::default());
        mixture.fit(&VisitLog::default(), None, 0, &BucketCounts::default(), &mut unseen);
        mixture.fit(&visit_log(168, 4, |_| Some(0.97)), None, 0, &BucketCounts::default(), &mut saturated);
        mixture.fit(&visit_log(168, 4, |_| Some(0.3)), None, 0, &BucketCounts::default(), &mut dull);
        assert!(saturated.importance[0] > 0.8 * unseen.importance[0]);
        assert!(dull.importance[0] < 0.3 * unseen.importance[0]);
    }

    /// The page has a large change at 8 and a small one at 20. Observations cover twelve to sixteen hours, so most
    /// contain one of the changes and some both.
    #[test]
    fn a_difference_belongs_to_the_hour_of_large_changes() {
        let mixture = Mixture::new(24, ObservedImportance::Difference);
        let mut visits = VisitLog::default();
        for observation in 0..300u16 {
            let hours =
                (0..12 + observation % 5).map(|hour| (observation * 14 + observation / 5 * 10 + hour) % 24);
            let same: f32 = hours
                .clone()
                .map(|hour| [(8, 0.5), (20, 0.97)].iter().find(|at| at.0 == hour).map_or(1.0, |at| at.1))
                .product();
            hours.for_each(|bucket| visits.add_piece(BucketPiece { bucket, hours: 1.0, times: 1.0 }));
            visits.close((same < 1.0).then_some(1.0 - same), 1.0);
        }
        let (mut fit, mut before) = (PageFit::default(), BucketCounts::default());
        let mut ratios = Vec::new();
        for _ in 0..6 {
            mixture.fit(&visits, None, 0, &before, &mut fit);
            before.clone_from(&fit.counts);
            ratios.push(fit.importance[8] / fit.importance[20]);
        }
        assert!(
            ratios.windows(2).all(|pair| pair[1] > pair[0]),
            "each fit tells them further apart: {ratios:?}"
        );
        assert!(ratios[5] > 3.0, "{ratios:?}");
    }

    /// A page with few observations takes the hours of large changes from its group, and not from a different group.
    #[test]
    fn a_group_shares_its_pattern_of_importance() {
        let mut mixture = Mixture::new(24, ObservedImportance::Difference);
        let mut fit = PageFit::default();
        let hourly = |hour: usize| Some(if hour % 24 == 8 { 0.6 } else { 0.05 });
        mixture.fit(&visit_log(1, 2400, hourly), None, 1, &BucketCounts::default(), &mut fit);
        mixture.add_to_group(1, &fit);
        mixture.fit(&visit_log(1, 2400, |_| Some(0.1)), None, 2, &BucketCounts::default(), &mut fit);
        mixture.add_to_group(2, &fit);
        mixture.settle_groups();
        let few = visit_log(12, 3, |_| Some(0.2));
        let mut ratio = |group: u32| {
            mixture.fit(&few, None, group, &BucketCounts::default(), &mut fit);
            fit.importance[8] / fit.importance[9]
        };
        let (same, other) = (ratio(1), ratio(2));
        assert!(same > 3.0 && other < 0.7 * same, "{same} {other}");
    }
}
