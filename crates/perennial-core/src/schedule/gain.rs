//! Rates and importances -> the expected gain of a visit, for all pages in one pass (docs/papers.md, Expected gain).
//!
//! For each page two numbers are carried to the end of the slot: r, the expected importance of the last change since
//! the visit, and L, the expected number of changes since then. The gain is v * r * (1 - q (1 + L)) / (1 - q) with q
//! = exp(-L): what a visit earns, minus what waiting would earn. At a constant rate that equals v * m * P(at least
//! two changes since the visit), which is exactly the Whittle index of the page. Written as v * r * (1 - L / (exp(L)
//! - 1)) it needs one exponential.
//!
//! If changes followed Poisson's law, waiting would cost next to nothing for a page that rarely changes. Real changes
//! come in bursts, so the version of a rare change is replaced sooner. By Definition 5.13 rare pages count as much as
//! others. So a small share s of their value does not wait: the gain is r * (s + (v - s) * (1 - L / (exp(L) - 1))).

use super::ahead::HourlyPlans;
use super::learn::Learner;
use super::pages::{ABSENT, FRESH, PENDING, PROMISED, PageColumns, SKIPPED, VACANT};
use super::rows::Rows;
use super::select::Histogram;
use crate::pattern::calendar::DayPlace;
use crate::pattern::mixture::{BucketPiece, HIGHEST_RATE, exp_neg, one_minus_exp};

/// Pages per pass, so intermediate results stay in the first-level cache.
const CHUNK: usize = 512;

/// The time in which a busy or quiet spell fades to 1/e.
pub(super) const SPELL_HOURS: f32 = 96.0;

/// The part of a slot that falls into one bucket of a clock.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct SlotStep {
    pub bucket: u16,
    pub hours: f32,
    /// The local day; `None` if the step covers several.
    pub day: Option<DayPlace>,
}

pub(super) struct RankingPass<'a> {
    pub now_secs: u32,
    pub histogram: &'a mut Histogram,
    /// The plans of pages, if there are any.
    pub ahead: Option<&'a HourlyPlans>,
}

/// Carries the expected importance and changes of every page over one step. `steps` has one entry per clock. Spells
/// keep the share `spell_left` of their distance from the usual rate. The last step also ranks the pages, while their
/// numbers are in the cache.
pub(super) fn advance(
    pages: &mut PageColumns,
    rows: &Rows,
    steps: &[SlotStep],
    spell_left: f32,
    mut then_rank: Option<RankingPass<'_>>,
) {
    let slot = SlotRates::new(rows, steps);
    let mut x = [0.0f32; CHUNK];
    let mut m = [0.0f32; CHUNK];
    for start in (0..pages.len()).step_by(CHUNK) {
        let range = start..(start + CHUNK).min(pages.len());
        let n = range.len();
        slot.gather(pages, range.clone(), &mut x[..n], &mut m[..n]);
        carry(
            &x[..n],
            &m[..n],
            &mut pages.expected_importance[range.clone()],
            &mut pages.expected_changes[range.clone()],
        );
        fade_spells(&mut pages.spell[range.clone()], spell_left);
        if let Some(ranking) = &mut then_rank {
            rank(pages, range.clone());
            if let Some(ahead) = ranking.ahead {
                ahead.follow(pages, range.clone(), ranking.now_secs);
            }
            count(pages, ranking.now_secs, range, ranking.histogram);
        }
    }
}

/// The rates and importances of all rows in one step. Many pages share a row, so each row is decoded once per step.
struct SlotRates<'a> {
    steps: &'a [SlotStep],
    n_rows: usize,
    /// Relative rate and importance by clock and row.
    relative: Vec<[f32; 2]>,
}

impl<'a> SlotRates<'a> {
    fn new(rows: &Rows, steps: &'a [SlotStep]) -> SlotRates<'a> {
        let mut relative: Vec<[f32; 2]> =
            steps.iter().flat_map(|step| rows.bucket(usize::from(step.bucket))).collect();
        let n_rows = rows.len();
        for (clock, day) in steps.iter().enumerate().filter_map(|(clock, step)| Some((clock, step.day?))) {
            for (row, calendar) in rows.calendars() {
                relative[clock * n_rows + row][0] *= calendar.at(day);
            }
        }
        SlotRates { steps, n_rows, relative }
    }

    /// The expected changes and the importances of a range of pages in this step.
    fn gather(&self, pages: &PageColumns, range: std::ops::Range<usize>, x: &mut [f32], m: &mut [f32]) {
        let rows = &pages.row[range.clone()];
        let clocks = &pages.clock[range.clone()];
        let relative = |clock: usize, row: &u32| {
            self.relative.get(clock * self.n_rows + *row as usize).copied().unwrap_or_default()
        };
        let both = x.iter_mut().zip(m.iter_mut());
        if let [_] = self.steps {
            both.zip(rows).for_each(|((x, m), row)| [*x, *m] = relative(0, row));
        } else {
            let places = rows.iter().zip(clocks);
            both.zip(places).for_each(|((x, m), (row, clock))| [*x, *m] = relative(usize::from(*clock), row));
        }
        let rates = pages.rate[range.clone()].iter().zip(&pages.spell[range.clone()]);
        for ((x, m), ((rate, spell), importance)) in
            x.iter_mut().zip(m).zip(rates.zip(&pages.importance[range]))
        {
            *x = (rate * spell * *x).min(HIGHEST_RATE);
            *m = (importance * *m).min(1.0);
        }
        match self.steps {
            [step] => x.iter_mut().for_each(|x| *x *= step.hours),
            steps => {
                let hours = |clock: &u16| steps.get(usize::from(*clock)).map_or(0.0, |step| step.hours);
                x.iter_mut().zip(clocks).for_each(|(x, clock)| *x *= hours(clock));
            }
        }
    }
}

/// Moves every page towards its usual rate. Most chunks have no page in a spell, and nothing is written there.
fn fade_spells(spells: &mut [f32], left: f32) {
    let unusual = spells.iter().fold(0, |bits, spell| bits | (spell.to_bits() ^ 1f32.to_bits()));
    if unusual != 0 {
        spells.iter_mut().for_each(|spell| *spell = 1.0 + (*spell - 1.0) * left);
    }
}

/// r = r e + m (1 - e), L = L + x, as straight-line code that the compiler vectorises.
fn carry(x: &[f32], m: &[f32], expected_importance: &mut [f32], expected_changes: &mut [f32]) {
    for (((x, m), expected_importance), expected_changes) in
        x.iter().zip(m).zip(expected_importance).zip(expected_changes)
    {
        let changed = one_minus_exp(*x);
        *expected_importance += (*m - *expected_importance) * changed;
        *expected_changes += *x;
    }
}

/// The share of a spell that is left after some hours: every page returns to its usual rate (C2).
pub(super) fn spell_left(hours: f32) -> f32 {
    (-hours / SPELL_HOURS).exp()
}

/// Writes the gains of a range of pages to the column of urgencies.
fn rank(pages: &mut PageColumns, range: std::ops::Range<usize>) {
    let urgency = &mut pages.urgency[range.clone()];
    let expected_changes = &pages.expected_changes[range.clone()];
    let expected_importances = &pages.expected_importance[range.clone()];
    let values = pages.value[range.clone()].iter().zip(&pages.sure_value[range]);
    for (((urgency, expected_changes), expected_importance), (value, sure_value)) in
        urgency.iter_mut().zip(expected_changes).zip(expected_importances).zip(values)
    {
        *urgency = expected_importance * (sure_value + (value - sure_value) * patience(*expected_changes));
    }
}

/// Sets the urgency of pages that may not be visited to 0, and counts all urgencies.
fn count(pages: &mut PageColumns, now_secs: u32, range: std::ops::Range<usize>, histogram: &mut Histogram) {
    let first = range.start;
    let urgency = &mut pages.urgency[range.clone()];
    let not_before = &pages.not_before[range.clone()];
    for ((urgency, flags), not_before) in urgency.iter_mut().zip(&pages.flags[range]).zip(not_before) {
        // Bits replace branches, so the compiler vectorises the loop.
        let allowed = u32::from(flags & (FRESH | PENDING | VACANT | ABSENT | SKIPPED | PROMISED) == 0)
            & u32::from(*not_before <= now_secs);
        *urgency = f32::from_bits(urgency.to_bits() & allowed.wrapping_neg());
    }
    histogram.add_range(first, urgency);
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
fn patience(expected_changes: f32) -> f32 {
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
