//! Rates and importances -> the expected gain of a visit, for all pages in one pass.
//!
//! Per page r, the expected importance of the last change since the visit, and L, the expected number of
//! changes since then, are carried to the end of the slot. The index is
//! v * r * (1 - q (1 + L)) / (1 - q) with q = exp(-L): what a visit earns, less what waiting would earn. At a
//! constant rate that is v * m * P(at least two changes since the visit), the exact Whittle index. Written as
//! v * r * (1 - L / (exp(L) - 1)) it needs one exponential.

use super::learn::Learner;
use super::pages::{FRESH, PENDING, Pages, VACANT};
use super::rows::Rows;
use super::select::Histogram;
use crate::pattern::mixture::{BucketPiece, HIGHEST_RATE, exp_neg, one_minus_exp};

/// Pages worked on at a time, so that the numbers in between stay in the nearest cache.
const CHUNK: usize = 512;

/// How long a busy or quiet spell is remembered.
pub(super) const SPELL_HOURS: f32 = 96.0;

/// The stretch of a slot that falls into one bucket, for each clock.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Step {
    pub bucket: u16,
    pub hours: f32,
}

/// Carries r and L of every page over one step; `steps` has one entry a clock. So much is left of spells after it.
/// With the last step, pages are ranked while their numbers are at hand.
pub(super) fn advance(
    pages: &mut Pages,
    rows: &Rows,
    steps: &[Step],
    spell_left: f32,
    mut then_rank: Option<(u32, &mut Histogram)>,
) {
    let mut x = [0.0f32; CHUNK];
    let mut m = [0.0f32; CHUNK];
    for start in (0..pages.len()).step_by(CHUNK) {
        let range = start..(start + CHUNK).min(pages.len());
        let n = range.len();
        gather(pages, rows, steps, range.clone(), &mut x[..n], &mut m[..n]);
        carry(&x[..n], &m[..n], &mut pages.reward[range.clone()], &mut pages.load[range.clone()]);
        pages.spell[range.clone()].iter_mut().for_each(|spell| *spell = 1.0 + (*spell - 1.0) * spell_left);
        if let Some((now_secs, histogram)) = &mut then_rank {
            rank(pages, *now_secs, range, histogram);
        }
    }
}

/// The rates times the hours and the importances of a range of pages.
fn gather(
    pages: &Pages,
    rows: &Rows,
    steps: &[Step],
    range: std::ops::Range<usize>,
    x: &mut [f32],
    m: &mut [f32],
) {
    let (codes, n_buckets, decode) = rows.codes();
    let columns = pages.row[range.clone()]
        .iter()
        .zip(&pages.clock[range.clone()])
        .zip(&pages.rate[range.clone()])
        .zip(&pages.spell[range.clone()])
        .zip(&pages.importance[range]);
    for (((((row, clock), rate), spell), importance), (x, m)) in columns.zip(x.iter_mut().zip(m)) {
        let step = steps.get(usize::from(*clock)).copied().unwrap_or_default();
        let place = *row as usize * n_buckets + usize::from(step.bucket);
        let [rate_code, importance_code] = codes.get(place).copied().unwrap_or_default();
        let relative = |code: u8| decode.get(usize::from(code)).copied().unwrap_or(0.0);
        *x = (rate * spell * relative(rate_code)).min(HIGHEST_RATE) * step.hours;
        *m = (importance * relative(importance_code)).min(1.0);
    }
}

/// r = r e + m (1 - e), L = L + x; straight-line code that the compiler turns into vector instructions.
fn carry(x: &[f32], m: &[f32], reward: &mut [f32], load: &mut [f32]) {
    for (((x, m), reward), load) in x.iter().zip(m).zip(reward).zip(load) {
        let changed = one_minus_exp(*x);
        *reward += (*m - *reward) * changed;
        *load += *x;
    }
}

/// What is left of a spell after some hours: every page goes back to its usual rate (C2).
pub(super) fn spell_left(hours: f32) -> f32 {
    (-hours / SPELL_HOURS).exp()
}

/// Fills a range of the column of urgencies with the index, 0 where a visit is not allowed, and counts them.
fn rank(pages: &mut Pages, now_secs: u32, range: std::ops::Range<usize>, histogram: &mut Histogram) {
    let first = range.start;
    let urgency = &mut pages.urgency[range.clone()];
    let loads = &pages.load[range.clone()];
    let rewards = &pages.reward[range.clone()];
    let values = &pages.value[range.clone()];
    for (((urgency, load), reward), value) in urgency.iter_mut().zip(loads).zip(rewards).zip(values) {
        *urgency = value * reward * patience(*load);
    }
    let not_before = &pages.not_before[range.clone()];
    for ((urgency, flags), not_before) in urgency.iter_mut().zip(&pages.flags[range]).zip(not_before) {
        let blocked = flags & (FRESH | PENDING | VACANT) != 0 || *not_before > now_secs;
        *urgency = if blocked { 0.0 } else { *urgency };
    }
    histogram.add_range(first, urgency);
}

/// The index of one page.
pub(super) fn index_of(pages: &Pages, at: usize) -> f32 {
    pages.value[at] * pages.reward[at] * patience(pages.load[at])
}

/// r and L of one page from nothing over the given pieces.
pub(super) fn integrate(learner: &Learner, pages: &Pages, at: usize, pieces: &[BucketPiece]) -> (f32, f32) {
    let (mut reward, mut load) = (0.0, 0.0);
    for piece in pieces {
        let (rate, importance) = learner.believed(pages, at, usize::from(piece.bucket));
        let x = rate * piece.hours * piece.times;
        reward += (importance - reward) * one_minus_exp(x);
        load += x;
    }
    (reward, load)
}

/// 1 - L / (exp(L) - 1): the share of r that waiting would not earn.
#[inline]
fn patience(load: f32) -> f32 {
    let square = load * load;
    let near = load * 0.5 - square * (1.0 / 12.0) + square * square * (1.0 / 720.0);
    let e = exp_neg(load);
    let far = 1.0 - load * e / (1.0 - e).max(1e-6);
    if load < 0.7 { near } else { far }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_the_probability_of_two_changes() {
        for load in [1e-6f64, 1e-3, 0.1, 0.69, 0.71, 2.0, 9.0, 40.0] {
            let q = (-load).exp();
            let two = 1.0 - q * (1.0 + load);
            let reward = -(-load).exp_m1();
            let index = reward * f64::from(patience(load as f32));
            assert!((index - two).abs() <= 1e-5 + 1e-3 * two, "{load}: {index} {two}");
        }
        assert!((patience(1e-4) - 5e-5).abs() < 1e-8);
        assert!(patience(1e9).is_finite());
    }
}
