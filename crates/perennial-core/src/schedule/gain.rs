//! Rates and importances -> the expected gain of a visit, for all pages in one pass (docs/papers.md, Expected gain).
//!
//! For each page r, the expected importance of the last change since the visit, and L, the expected number of
//! changes since then, are carried to the end of the slot. The gain is
//! v * r * (1 - q (1 + L)) / (1 - q) with q = exp(-L): what a visit earns, less what waiting would earn. At a
//! constant rate that is v * m * P(at least two changes since the visit), which is exactly the Whittle index of the page.
//! Written as v * r * (1 - L / (exp(L) - 1)) it needs one exponential.
//!
//! Poisson's law says of a page that changes rarely that waiting loses next to nothing. Real changes come in bursts, so the
//! version of a rare change is replaced sooner than that. By Definition 5.13 the rare pages are worth as much as the others, so a
//! small share of what they are worth there does not wait: the gain is r * (standing + (v - standing) * (1 - L / (exp(L) - 1))).

use super::ahead::Ahead;
use super::learn::Learner;
use super::pages::{ABSENT, FRESH, PENDING, Pages, SKIPPED, VACANT};
use super::rows::Rows;
use super::select::Histogram;
use crate::pattern::calendar::DayPlace;
use crate::pattern::mixture::{BucketPiece, HIGHEST_RATE, exp_neg, one_minus_exp};

/// Pages that are worked on at a time, so that intermediate results stay in the nearest cache.
const CHUNK: usize = 512;

/// The time in which a busy or quiet spell fades to 1/e.
pub(super) const SPELL_HOURS: f32 = 96.0;

/// The stretch of a slot that falls into one bucket of a clock.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Step {
    pub bucket: u16,
    pub hours: f32,
    /// The local day; none where the step stands for several.
    pub day: Option<DayPlace>,
}

/// What the ranking at the end of a slot needs.
pub(super) struct Ranking<'a> {
    pub now_secs: u32,
    pub histogram: &'a mut Histogram,
    /// The plans of pages, where there are any.
    pub ahead: Option<&'a Ahead>,
}

/// Carries r and L of every page over one step; `steps` has one entry a clock. Spells keep the share `spell_left` of their
/// distance from the usual rate. With the last step the pages are ranked in the same pass, while their numbers are cached.
pub(super) fn advance(
    pages: &mut Pages,
    rows: &Rows,
    steps: &[Step],
    spell_left: f32,
    mut then_rank: Option<Ranking<'_>>,
) {
    let slot = SlotRates::new(rows, steps);
    let mut x = [0.0f32; CHUNK];
    let mut m = [0.0f32; CHUNK];
    for start in (0..pages.len()).step_by(CHUNK) {
        let range = start..(start + CHUNK).min(pages.len());
        let n = range.len();
        slot.gather(pages, range.clone(), &mut x[..n], &mut m[..n]);
        carry(&x[..n], &m[..n], &mut pages.reward[range.clone()], &mut pages.load[range.clone()]);
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

/// The rates and importances of all rows in one step. Many pages share a row, so a row is decoded once a step and not once
/// a page.
struct SlotRates<'a> {
    steps: &'a [Step],
    n_rows: usize,
    /// Relative rate and importance by clock and row.
    relative: Vec<[f32; 2]>,
}

impl<'a> SlotRates<'a> {
    fn new(rows: &Rows, steps: &'a [Step]) -> SlotRates<'a> {
        let mut relative: Vec<[f32; 2]> =
            steps.iter().flat_map(|step| rows.of_bucket(usize::from(step.bucket))).collect();
        let n_rows = rows.len();
        for (clock, day) in steps.iter().enumerate().filter_map(|(clock, step)| Some((clock, step.day?))) {
            for (row, calendar) in rows.calendars() {
                relative[clock * n_rows + row][0] *= calendar.at(day);
            }
        }
        SlotRates { steps, n_rows, relative }
    }

    /// The rates times the hours and the importances of a range of pages.
    fn gather(&self, pages: &Pages, range: std::ops::Range<usize>, x: &mut [f32], m: &mut [f32]) {
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

/// r = r e + m (1 - e), L = L + x; straight-line code that the compiler turns into vector instructions.
fn carry(x: &[f32], m: &[f32], reward: &mut [f32], load: &mut [f32]) {
    for (((x, m), reward), load) in x.iter().zip(m).zip(reward).zip(load) {
        let changed = one_minus_exp(*x);
        *reward += (*m - *reward) * changed;
        *load += *x;
    }
}

/// The share that is left of a spell after some hours: every page goes back to its usual rate (C2).
pub(super) fn spell_left(hours: f32) -> f32 {
    (-hours / SPELL_HOURS).exp()
}

/// Fills a range of the column of urgencies with the gains.
fn rank(pages: &mut Pages, range: std::ops::Range<usize>) {
    let urgency = &mut pages.urgency[range.clone()];
    let loads = &pages.load[range.clone()];
    let rewards = &pages.reward[range.clone()];
    let values = pages.value[range.clone()].iter().zip(&pages.standing[range]);
    for (((urgency, load), reward), (value, standing)) in
        urgency.iter_mut().zip(loads).zip(rewards).zip(values)
    {
        *urgency = reward * (standing + (value - standing) * patience(*load));
    }
}

/// Sets the urgency of pages that may not be visited to 0, and counts all urgencies.
fn count(pages: &mut Pages, now_secs: u32, range: std::ops::Range<usize>, histogram: &mut Histogram) {
    let first = range.start;
    let urgency = &mut pages.urgency[range.clone()];
    let not_before = &pages.not_before[range.clone()];
    for ((urgency, flags), not_before) in urgency.iter_mut().zip(&pages.flags[range]).zip(not_before) {
        // Bits instead of branches, which the compiler turns into vector instructions.
        let allowed = u32::from(flags & (FRESH | PENDING | VACANT | ABSENT | SKIPPED) == 0)
            & u32::from(*not_before <= now_secs);
        *urgency = f32::from_bits(urgency.to_bits() & allowed.wrapping_neg());
    }
    histogram.add_range(first, urgency);
}

/// The gain of a visit to one page.
pub(super) fn gain_of(pages: &Pages, at: usize) -> f32 {
    let standing = pages.standing[at];
    pages.reward[at] * (standing + (pages.value[at] - standing) * patience(pages.load[at]))
}

/// The gain of a visit to a page that is worth `value`, when `load` changes of an importance are expected since the last one.
pub(super) fn gain_at(value: f32, importance: f32, load: f32) -> f32 {
    value * importance * one_minus_exp(load) * patience(load)
}

/// r and L of one page over the given pieces, from 0.
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

/// 1 - L / (exp(L) - 1): the share of r that waiting would not earn anyway.
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
    fn gain_is_the_probability_of_two_changes() {
        for load in [1e-6f64, 1e-3, 0.1, 0.69, 0.71, 2.0, 9.0, 40.0] {
            let q = (-load).exp();
            let two = 1.0 - q * (1.0 + load);
            let reward = -(-load).exp_m1();
            let gain = reward * f64::from(patience(load as f32));
            assert!((gain - two).abs() <= 1e-5 + 1e-3 * two, "{load}: {gain} {two}");
        }
        assert!((patience(1e-4) - 5e-5).abs() < 1e-8);
        assert!(patience(1e9).is_finite());
    }
}
