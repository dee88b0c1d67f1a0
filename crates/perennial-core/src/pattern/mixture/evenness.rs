//! The variation of a page's differences -> the number of changes behind each (docs/papers.md, Learning from visits).
//!
//! If every observation shows a change, many small changes look like a few large ones: only the product of rate and
//! size is known. But a sum of many parts varies less than a sum of few. With n changes behind a difference y, u =
//! -ln(1 - y) is about Gamma distributed around its expected value, with a shape k that grows with n. For the ratio q
//! of u to its expected value the log-likelihood is -k (q - 1 - ln q) + ln(6 k^2 / (6 k + 1)) / 2. That is Stirling's
//! series in a form that is valid for small k too.

use super::visits::{additive_size, integral};
use super::{Mixture, N_RATES, PageFit, VisitLog, exponentiate, quick_ln};

/// Observations with fewer expected changes are left out, because the share without a change determines the rate.
const FEWEST_CHANGES: f32 = 1.0;
/// Observations with a larger expected sum are left out, because nearly the whole page is new.
const LARGEST_SUM: f32 = 2.5;
const FEWEST_OBSERVATIONS: usize = 4;
/// Changes per unit of the shape k. It is above 1 because the changes of one page differ in size.
const CHANGES_PER_SHAPE: f32 = 1.3;
/// The weight of this evidence. It is below 1 because busy and quiet days add variation.
const TRUST: f32 = 0.5;

/// One observation with a change.
struct Sum {
    /// Expected changes in its interval.
    n: f32,
    /// The observed and the expected difference, on the scale on which changes add up.
    seen: f32,
    expected: f32,
    weight: f32,
}

impl Mixture {
    /// Weighs the rates of a fitted page by evenness. Returns false if there are too few observations.
    pub(super) fn weigh_by_evenness(&self, visits: &VisitLog, fit: &mut PageFit) -> bool {
        let sums = self.comparable_sums(visits, fit);
        if sums.len() < FEWEST_OBSERVATIONS {
            return false;
        }
        let mean_rate: f32 = fit.rates.iter().zip(&self.week).map(|(rate, share)| rate * share).sum();
        let by_rate = self.ln_likelihoods(&sums, mean_rate.max(1e-9));
        for shares in fit.posterior.chunks_mut(N_RATES) {
            for (share, more) in shares.iter_mut().zip(&by_rate) {
                *share = quick_ln(share.max(1e-12)) + more;
            }
        }
        exponentiate(&mut fit.posterior);
        true
    }

    fn comparable_sums(&self, visits: &VisitLog, fit: &PageFit) -> Vec<Sum> {
        let size: Vec<f32> = fit.importance.iter().map(|importance| additive_size(*importance)).collect();
        let mut sums = Vec::new();
        for (pieces, magnitude, weight) in visits.iter() {
            let Some(magnitude) = magnitude else { continue };
            let n = integral(pieces, &|b| fit.rates[b]);
            let expected = integral(pieces, &|b| fit.rates[b] * size[b]);
            if n >= FEWEST_CHANGES && expected > 1e-6 && expected <= LARGEST_SUM {
                sums.push(Sum { n, seen: magnitude.sum, expected, weight });
            }
        }
        sums
    }

    /// ln of the likelihood of the sums under each rate, up to a constant.
    fn ln_likelihoods(&self, sums: &[Sum], mean_rate: f32) -> [f32; N_RATES] {
        let seen: f32 = sums.iter().map(|sum| sum.weight * sum.seen).sum();
        let expected: f32 = sums.iter().map(|sum| sum.weight * sum.expected).sum();
        let level = (seen / expected.max(1e-9)).max(1e-6);
        let mut by_rate = [0.0f32; N_RATES];
        for sum in sums {
            let ratio = (sum.seen / (level * sum.expected)).max(1e-3);
            let unevenness = ratio - 1.0 - ratio.ln();
            for (ln, rate) in by_rate.iter_mut().zip(&self.rates) {
                let k = (rate / mean_rate * sum.n / CHANGES_PER_SHAPE).max(0.3);
                let likely = 0.5 * quick_ln(6.0 * k * k / (6.0 * k + 1.0)) - k * unevenness;
                *ln += TRUST * sum.weight * likely;
            }
        }
        by_rate
    }
}
