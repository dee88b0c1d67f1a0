//! Rates and importances -> the expected gain of a visit, (docs/papers.md, Expected gain).
//!
//! For each page two numbers are known at any instant: r, the expected importance of the last change since
//! the visit, and L, the expected number of changes since then. The gain is v * r * (1 - q (1 + L)) / (1 - q) with q
//! = exp(-L): what a visit earns, minus what waiting would earn. At a constant rate that equals v * m * P(at least
//! two changes since the visit), which is exactly the Whittle index of the page. Written as v * r * (1 - L / (exp(L)
//! - 1)) it needs one exponential.
//!
//! If changes followed Poisson's law, waiting would cost next to nothing for a page that rarely changes. Real changes
//! come in bursts, so the version of a rare change is replaced sooner. By Definition 5.13 rare pages count as much as
//! others. So a small share s of their value does not wait: the gain is r * (s + (v - s) * (1 - L / (exp(L) - 1))).

use super::learn::Learner;
use super::pages::PageColumns;
use crate::pattern::mixture::{BucketPiece, exp_neg, one_minus_exp};

/// The time in which a busy or quiet spell fades to 1/e.
pub(super) const SPELL_HOURS: f32 = 96.0;

/// The share of a spell that is left after some hours: every page returns to its usual rate (C2).
pub(super) fn spell_left(hours: f32) -> f32 {
    (-hours / SPELL_HOURS).exp()
}

pub(super) fn page_gain(pages: &PageColumns, at: usize) -> f32 {
    let sure_value = pages.sure_value[at];
    pages.expected_importance[at]
        * (sure_value + (pages.value[at] - sure_value) * patience(pages.expected_changes[at]))
}

/// The gain of a visit to a page worth `value`, with the expected changes of this importance since the last visit.
pub(super) fn gain_at(value: f32, importance: f32, expected_changes: f32) -> f32 {
    value * importance * one_minus_exp(expected_changes) * patience(expected_changes)
}

/// The expected importance and changes of one page over the given pieces, from 0.
pub(super) fn integrate(
    learner: &Learner,
    pages: &PageColumns,
    at: usize,
    pieces: &[BucketPiece],
) -> (f32, f32) {
    let (mut expected_importance, mut expected_changes) = (0.0, 0.0);
    for piece in pieces {
        let (rate, importance) = learner.estimated(pages, at, usize::from(piece.bucket));
        let x = rate * piece.hours * piece.times;
        expected_importance += (importance - expected_importance) * one_minus_exp(x);
        expected_changes += x;
    }
    (expected_importance, expected_changes)
}

/// 1 - L / (exp(L) - 1): the share of r that waiting would lose. Near 0 the quotient loses all digits, so a series
/// replaces it.
#[inline]
pub(super) fn patience(expected_changes: f32) -> f32 {
    let square = expected_changes * expected_changes;
    let near = expected_changes * 0.5 - square * (1.0 / 12.0) + square * square * (1.0 / 720.0);
    let e = exp_neg(expected_changes);
    // Both branches are computed and one is selected, so the loop stays free of branches.
    let far = 1.0 - expected_changes * e / (1.0 - e).max(1e-6);
    if expected_changes < 0.7 { near } else { far }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gain_is_the_probability_of_two_changes() {
        for expected_changes in [1e-6f64, 1e-3, 0.1, 0.69, 0.71, 2.0, 9.0, 40.0] {
            let q = (-expected_changes).exp();
            let two = 1.0 - q * (1.0 + expected_changes);
            let expected_importance = -(-expected_changes).exp_m1();
            let gain = expected_importance * f64::from(patience(expected_changes as f32));
            assert!((gain - two).abs() <= 1e-5 + 1e-3 * two, "{expected_changes}: {gain} {two}");
        }
        assert!((patience(1e-4) - 5e-5).abs() < 1e-8);
        assert!(patience(1e9).is_finite());
    }
}
