//! One page's visits -> what they add up to by bucket, under the rates believed in.

use super::quick::{exp_neg, one_minus_exp};
use crate::time::DayKind;

/// Differences above the first say little more than that all is new; none counts for more than the second.
const SATURATED: f32 = 0.8;
const FULL_DIFFERENCE: f32 = 0.98;

/// What the importance of a visit means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Observed {
    /// The difference to the last copy, everything in between included: what a crawler sees (C1).
    #[default]
    Difference,
    /// The importance of the last change alone: what some simulated worlds report.
    LastChange,
}

/// A stretch of a visit's interval within one bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BucketPiece {
    /// Which bucket.
    pub bucket: u16,
    /// Its length in hours.
    pub hours: f32,
    /// How many such stretches the interval has.
    pub times: f32,
}

/// Which bucket a period of a day falls into.
pub fn bucket_of(kind: DayKind, period: u16, n_periods: u16) -> u16 {
    if kind == DayKind::Workday { period } else { period + n_periods }
}

/// The visits of one page, cut into pieces by bucket; reused from page to page.
#[derive(Clone, Default, Debug)]
pub struct Visits {
    pieces: Vec<BucketPiece>,
    looks: Vec<Look>,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    end: u32,
    importance: Option<f32>,
    weight: f32,
}

impl Visits {
    /// Forgets all visits, keeps the memory.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.looks.clear();
    }

    /// Adds a piece of the visit that the next [`Visits::close`] ends.
    pub fn add_piece(&mut self, piece: BucketPiece) {
        self.pieces.push(piece);
    }

    /// Ends a visit: what was seen, and how much the visit counts.
    pub fn close(&mut self, importance: Option<f32>, weight: f32) {
        self.looks.push(Look { end: self.pieces.len() as u32, importance, weight });
    }

    /// How many visits there are.
    pub fn len(&self) -> usize {
        self.looks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    /// Whether what was believed of the page's importance bears on how any visit is read.
    pub(super) fn any_saturated(&self) -> bool {
        self.looks.iter().any(|look| look.importance.is_some_and(|importance| importance > SATURATED))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[BucketPiece], Option<f32>, f32)> {
        let mut start = 0;
        self.looks.iter().map(move |look| {
            let pieces = self.pieces.get(start..look.end as usize).unwrap_or_default();
            start = look.end as usize;
            (pieces, look.importance, look.weight)
        })
    }
}

/// u: a difference on the scale on which the changes behind it add up, 1 - exp(-u).
pub(super) fn sum_of(difference: f32) -> f32 {
    -(1.0 - difference.min(FULL_DIFFERENCE)).ln()
}

/// How to read the importance of a visit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale {
    /// What it means.
    pub observed: Observed,
    /// Mean importance of one change of the page, as believed so far, on the scale on which differences add up.
    pub of_page: f32,
}

impl Scale {
    /// A difference on the scale on which the changes behind it add up. When nearly nothing is left of the last
    /// copy, the difference says "at least so much" and no more: if more was believed, it says nothing, or a page
    /// that is seen once a week would seem to change by trifles.
    fn added_up(self, difference: f32, n_changes: f32) -> Option<f32> {
        let seen = sum_of(difference);
        let is_mute = difference > SATURATED && seen < self.of_page * n_changes;
        (!is_mute).then_some(seen)
    }
}

/// What a page's visits add up to, by bucket.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Counts {
    /// Expected changes.
    pub n: Vec<f32>,
    /// Hours looked over.
    pub hours: Vec<f32>,
    /// Importance, on the scale on which differences add up.
    pub wy: Vec<f32>,
    /// Expected changed hours to which it belongs.
    pub ny: Vec<f32>,
}

impl Counts {
    /// Nothing seen.
    pub fn new(n_buckets: usize) -> Counts {
        let zeros = || vec![0.0; n_buckets];
        Counts { n: zeros(), hours: zeros(), wy: zeros(), ny: zeros() }
    }

    /// Everything counts for less.
    pub fn fade(&mut self, factor: f32) {
        for column in [&mut self.n, &mut self.hours, &mut self.wy, &mut self.ny] {
            column.iter_mut().for_each(|value| *value *= factor);
        }
    }

    pub(super) fn reset_changes(&mut self, to: Option<&Counts>) {
        reset(&mut self.n, to.map(|to| &to.n));
    }

    pub(super) fn reset_hours(&mut self, to: Option<&Counts>) {
        reset(&mut self.hours, to.map(|to| &to.hours));
    }

    pub(super) fn reset_importance(&mut self, to: Option<&Counts>) {
        reset(&mut self.wy, to.map(|to| &to.wy));
        reset(&mut self.ny, to.map(|to| &to.ny));
    }

    /// Books one visit under the rates believed in: a change happened somewhere in the interval, more likely
    /// where the rate is high. `rate` gives changes an hour by bucket.
    pub fn add_visit(
        &mut self,
        pieces: &[BucketPiece],
        importance: Option<f32>,
        weight: f32,
        scale: Scale,
        rate: impl Fn(usize) -> f32,
    ) {
        self.add_hours(pieces, weight);
        let Some(importance) = importance else { return };
        self.add_changes(pieces, weight, &rate);
        self.add_importance(pieces, importance, weight, scale, &rate);
    }

    /// Books the hours that a visit looked over, whatever it saw.
    pub fn add_hours(&mut self, pieces: &[BucketPiece], weight: f32) {
        for piece in pieces {
            self.hours[usize::from(piece.bucket)] += weight * piece.hours * piece.times;
        }
    }

    pub(super) fn add_changes(&mut self, pieces: &[BucketPiece], weight: f32, rate: &impl Fn(usize) -> f32) {
        let total = integral(pieces, rate);
        let scale = weight / one_minus_exp(total).max(1e-9);
        for piece in pieces {
            let b = usize::from(piece.bucket);
            self.n[b] += scale * rate(b) * piece.hours * piece.times;
        }
    }

    pub(super) fn add_importance(
        &mut self,
        pieces: &[BucketPiece],
        importance: f32,
        weight: f32,
        scale: Scale,
        rate: &impl Fn(usize) -> f32,
    ) {
        let total = integral(pieces, rate);
        let any = one_minus_exp(total).max(1e-9);
        match scale.observed {
            Observed::Difference => {
                // Changed hours, not changed pieces: cut into two halves, a look an hour after the last would seem to
                // have two changes behind it, and the pages that are seen most often would seem dull.
                let p = |piece: &BucketPiece| {
                    one_minus_exp(rate(usize::from(piece.bucket))) * piece.hours * piece.times
                };
                let sum: f32 = pieces.iter().map(p).sum::<f32>().max(1e-9);
                let Some(seen) = scale.added_up(importance, sum / any) else { return };
                for piece in pieces {
                    let p = p(piece);
                    self.wy[usize::from(piece.bucket)] += weight * seen * p / sum;
                    self.ny[usize::from(piece.bucket)] += weight * p / any;
                }
            }
            Observed::LastChange => {
                // g_b: the last change fell into this piece and none into the later ones.
                let mut later = 0.0f32;
                for piece in pieces.iter().rev() {
                    let x = rate(usize::from(piece.bucket)) * piece.hours * piece.times;
                    let g = weight * exp_neg(later) * one_minus_exp(x) / any;
                    self.wy[usize::from(piece.bucket)] += g * importance;
                    self.ny[usize::from(piece.bucket)] += g;
                    later += x;
                }
            }
        }
    }
}

fn reset(column: &mut [f32], to: Option<&Vec<f32>>) {
    match to {
        Some(to) => column.copy_from_slice(to),
        None => column.fill(0.0),
    }
}

pub(super) fn integral(pieces: &[BucketPiece], rate: &impl Fn(usize) -> f32) -> f32 {
    pieces.iter().map(|piece| rate(usize::from(piece.bucket)) * piece.hours * piece.times).sum()
}
