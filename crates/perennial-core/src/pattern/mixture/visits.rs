//! One page's visits -> their sums by bucket, under the rates that are believed (C1: docs/papers.md, Learning from visits).

use super::quick::{exp_neg, one_minus_exp};
use crate::time::DayKind;

/// A difference above this says only "at least this much", because little is left of the last copy.
const SATURATED: f32 = 0.8;
/// Larger differences count as this, so that their logarithm stays finite.
const FULL_DIFFERENCE: f32 = 0.98;

/// What the importance of a visit means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Observed {
    /// The difference to the last copy, with all changes in between: what a crawler sees (C1).
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
    looks: Vec<VisitRow>,
}

#[derive(Clone, Copy, Debug)]
struct VisitRow {
    end: u32,
    /// `None` when nothing had changed.
    magnitude: Option<Magnitude>,
    weight: f32,
}

/// How large a change was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Magnitude {
    pub(super) importance: f32,
    /// The same on the scale on which the changes behind a difference add up: 1 - exp(-sum).
    pub(super) sum: f32,
}

impl Magnitude {
    fn new(importance: f32) -> Magnitude {
        Magnitude { importance, sum: sum_of(importance) }
    }
}

impl Visits {
    /// Forgets all visits but keeps the memory for the next page.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.looks.clear();
    }

    /// Adds a piece of the visit that the next [`Visits::close`] ends.
    pub fn add_piece(&mut self, piece: BucketPiece) {
        self.pieces.push(piece);
    }

    /// Ends a visit, with the importance that it saw and the weight with which it counts.
    pub fn close(&mut self, importance: Option<f32>, weight: f32) {
        let magnitude = importance.map(Magnitude::new);
        self.looks.push(VisitRow { end: self.pieces.len() as u32, magnitude, weight });
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    /// Whether any visit saw a saturated difference, whose reading depends on the page's importance.
    pub(super) fn any_saturated(&self) -> bool {
        self.looks.iter().any(|look| look.magnitude.is_some_and(|magnitude| magnitude.importance > SATURATED))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[BucketPiece], Option<Magnitude>, f32)> {
        let mut start = 0;
        self.looks.iter().map(move |look| {
            let pieces = self.pieces.get(start..look.end as usize).unwrap_or_default();
            start = look.end as usize;
            (pieces, look.magnitude, look.weight)
        })
    }
}

/// u: a difference on the scale on which the changes behind it add up, 1 - exp(-u).
pub(super) fn sum_of(difference: f32) -> f32 {
    -(1.0 - difference.min(FULL_DIFFERENCE)).ln()
}

/// How the importance of a visit is read.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale {
    /// What the importance means.
    pub observed: Observed,
    /// Mean importance of one change of the page, as believed so far, on the scale on which differences add up.
    pub of_page: f32,
}

impl Scale {
    /// A difference on the scale on which the changes behind it add up. A saturated difference says only "at least this
    /// much". When more was believed it says nothing and is left out; otherwise a page that is seen once a week would seem
    /// to change little at a time.
    fn added_up(self, magnitude: Magnitude, n_changed: impl Fn() -> f32) -> Option<f32> {
        let is_mute = magnitude.importance > SATURATED && magnitude.sum < self.of_page * n_changed();
        (!is_mute).then_some(magnitude.sum)
    }
}

/// The sums of a page's visits in one bucket. They lie side by side because a visit moves all of them in a few buckets.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tally {
    /// Expected changes.
    pub n_changes: f32,
    /// Hours that the visits cover.
    pub hours: f32,
    /// Importance, on the scale on which differences add up.
    pub size_sum: f32,
    /// Expected changed hours to which `size_sum` belongs.
    pub n_changed_hours: f32,
    /// Changes an hour by the prior, without the page's own counts.
    pub prior_rate: f32,
}

/// The sums of a page's visits.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Counts {
    /// By bucket.
    pub buckets: Vec<Tally>,
    /// Sums of `size_sum` and `n_changed_hours` over all buckets.
    pub(super) totals: (f32, f32),
}

impl Counts {
    /// Nothing seen.
    pub fn new(n_buckets: usize) -> Counts {
        Counts { buckets: vec![Tally::default(); n_buckets], totals: (0.0, 0.0) }
    }

    /// Multiplies all sums by a factor below 1.
    pub fn fade(&mut self, factor: f32) {
        for tally in &mut self.buckets {
            tally.n_changes *= factor;
            tally.hours *= factor;
            tally.size_sum *= factor;
            tally.n_changed_hours *= factor;
        }
        self.totals = (self.totals.0 * factor, self.totals.1 * factor);
    }

    pub(super) fn reset_changes(&mut self, to: Option<&Counts>) {
        self.reset(to, |own, to| own.n_changes = to.n_changes);
    }

    pub(super) fn reset_hours(&mut self, to: Option<&Counts>) {
        self.reset(to, |own, to| own.hours = to.hours);
    }

    pub(super) fn reset_importance(&mut self, to: Option<&Counts>) {
        self.reset(to, |own, to| (own.size_sum, own.n_changed_hours) = (to.size_sum, to.n_changed_hours));
        self.totals = to.map_or((0.0, 0.0), |to| to.totals);
    }

    fn reset(&mut self, to: Option<&Counts>, set: impl Fn(&mut Tally, &Tally)) {
        match to {
            Some(to) => self.buckets.iter_mut().zip(&to.buckets).for_each(|(own, to)| set(own, to)),
            None => self.buckets.iter_mut().for_each(|own| set(own, &Tally::default())),
        }
    }

    /// Adds one visit under the rates that are believed: a change happened somewhere in the interval, more likely
    /// where the rate is high. `rate` gives changes an hour by bucket, `size` the size of a change.
    pub fn add_visit(
        &mut self,
        pieces: &[BucketPiece],
        importance: Option<f32>,
        weight: f32,
        scale: Scale,
        (rate, size): (impl Fn(usize) -> f32, impl Fn(usize) -> f32),
    ) {
        self.add_hours(pieces, weight);
        let Some(importance) = importance else { return };
        self.add_changes(pieces, weight, &rate);
        let changed = |b: usize| one_minus_exp(rate(b));
        self.add_importance(pieces, Magnitude::new(importance), weight, scale, (&rate, &changed, &size));
    }

    /// Adds the hours that a visit covers, whatever it saw.
    pub fn add_hours(&mut self, pieces: &[BucketPiece], weight: f32) {
        for piece in pieces {
            self.buckets[usize::from(piece.bucket)].hours += weight * piece.hours * piece.times;
        }
    }

    pub(super) fn add_changes(&mut self, pieces: &[BucketPiece], weight: f32, rate: &impl Fn(usize) -> f32) {
        let total = integral(pieces, rate);
        let scale = weight / one_minus_exp(total).max(1e-9);
        for piece in pieces {
            let b = usize::from(piece.bucket);
            self.buckets[b].n_changes += scale * rate(b) * piece.hours * piece.times;
        }
    }

    /// `rate` gives changes an hour by bucket, `changed` the probability of a change in an hour, `size` the size of a change.
    pub(super) fn add_importance(
        &mut self,
        pieces: &[BucketPiece],
        magnitude: Magnitude,
        weight: f32,
        scale: Scale,
        (rate, changed, size): (&impl Fn(usize) -> f32, &impl Fn(usize) -> f32, &impl Fn(usize) -> f32),
    ) {
        let total = integral(pieces, rate);
        let any = one_minus_exp(total).max(1e-9);
        match scale.observed {
            Observed::Difference => {
                // Hours with a change are counted, not pieces. An interval of one hour that is cut into two pieces would
                // otherwise seem to hold two changes, and the pages that are seen most often would seem unimportant.
                let n_changed = || integral(pieces, changed) / any;
                let Some(seen) = scale.added_up(magnitude, n_changed) else { return };
                // Each hour gets its expected share of the difference, so that the large change of the morning is not
                // booked on the night before, which the same look covers.
                let expected = integral(pieces, &|b| changed(b) * size(b)).max(1e-9);
                let (size_sum, n_changed_hours) = (weight * seen / expected, weight / any);
                for piece in pieces {
                    let b = usize::from(piece.bucket);
                    let p = changed(b) * piece.hours * piece.times;
                    self.add_part(piece, size_sum * p * size(b), n_changed_hours * p);
                }
            }
            Observed::LastChange => {
                // g is the probability that the last change fell into this piece and none into the later ones.
                let mut later = 0.0f32;
                for piece in pieces.iter().rev() {
                    let x = rate(usize::from(piece.bucket)) * piece.hours * piece.times;
                    let g = weight * exp_neg(later) * one_minus_exp(x) / any;
                    self.add_part(piece, g * magnitude.importance, g);
                    later += x;
                }
            }
        }
    }

    fn add_part(&mut self, piece: &BucketPiece, size_sum: f32, n_changed_hours: f32) {
        let tally = &mut self.buckets[usize::from(piece.bucket)];
        tally.size_sum += size_sum;
        tally.n_changed_hours += n_changed_hours;
        self.totals = (self.totals.0 + size_sum, self.totals.1 + n_changed_hours);
    }
}

pub(super) fn integral(pieces: &[BucketPiece], rate: &impl Fn(usize) -> f32) -> f32 {
    pieces.iter().map(|piece| rate(usize::from(piece.bucket)) * piece.hours * piece.times).sum()
}
