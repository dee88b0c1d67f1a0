//! One page's visits -> their sums by bucket, under the estimated rates (C1: docs/papers.md, Learning from visits).

use super::quick::{exp_neg, one_minus_exp};
use crate::time::DayKind;

/// A larger difference means "at least this much", because little is left of the previous copy.
const SATURATED: f32 = 0.8;
/// The maximum difference, so its logarithm remains finite.
const FULL_DIFFERENCE: f32 = 0.98;

/// What the importance of a visit measures.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ObservedImportance {
    /// The difference from the previous copy, including all changes in between: what a crawler observes (C1).
    #[default]
    Difference,
    /// The importance of the last change alone, as in some simulated worlds.
    LastChange,
}

/// The part of a visit's interval within one bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BucketPiece {
    pub bucket: u16,
    pub hours: f32,
    /// How often this piece occurs in the interval.
    pub times: f32,
}

/// The bucket of a period of a day.
pub fn bucket_index(kind: DayKind, period: u16, n_periods: u16) -> u16 {
    if kind == DayKind::Workday { period } else { period + n_periods }
}

/// The visits of one page, split into pieces by bucket. The buffers are reused for other pages.
#[derive(Clone, Default, Debug)]
pub struct VisitLog {
    pieces: Vec<BucketPiece>,
    observations: Vec<LoggedInterval>,
}

#[derive(Clone, Copy, Debug)]
struct LoggedInterval {
    end: u32,
    /// `None` without a change.
    magnitude: Option<Magnitude>,
    weight: f32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Magnitude {
    pub(super) importance: f32,
    /// The same on the scale on which the changes behind a difference add up: 1 - exp(-sum).
    pub(super) sum: f32,
}

impl Magnitude {
    fn new(importance: f32) -> Magnitude {
        Magnitude { importance, sum: additive_size(importance) }
    }
}

impl VisitLog {
    /// Clears the visits but keeps the memory.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.observations.clear();
    }

    /// Adds a piece of the visit that the next [`VisitLog::close`] ends.
    pub fn add_piece(&mut self, piece: BucketPiece) {
        self.pieces.push(piece);
    }

    /// Ends a visit, with its importance and its weight.
    pub fn close(&mut self, importance: Option<f32>, weight: f32) {
        let magnitude = importance.map(Magnitude::new);
        self.observations.push(LoggedInterval { end: self.pieces.len() as u32, magnitude, weight });
    }

    pub fn is_empty(&self) -> bool {
        self.observations.is_empty()
    }

    /// Whether any visit has a saturated difference, whose interpretation depends on the page's importance.
    pub(super) fn any_saturated(&self) -> bool {
        self.observations.iter().any(|observation| {
            observation.magnitude.is_some_and(|magnitude| magnitude.importance > SATURATED)
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[BucketPiece], Option<Magnitude>, f32)> {
        let mut start = 0;
        self.observations.iter().map(move |observation| {
            let pieces = self.pieces.get(start..observation.end as usize).unwrap_or_default();
            start = observation.end as usize;
            (pieces, observation.magnitude, observation.weight)
        })
    }
}

/// u: a difference on the scale on which the changes behind it add up, 1 - exp(-u).
pub(super) fn additive_size(difference: f32) -> f32 {
    -(1.0 - difference.min(FULL_DIFFERENCE)).ln()
}

/// How to interpret the importance of a visit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SizeScale {
    pub observed: ObservedImportance,
    /// The estimated mean importance of one change of the page, on the scale on which differences add up.
    pub of_page: f32,
}

impl SizeScale {
    /// A difference on the scale on which the changes behind it add up. A saturated difference means only "at least
    /// this much". If the estimate is larger, the difference contains no information and is left out. Otherwise a
    /// page that is visited weekly would seem to change little at a time.
    fn added_up(self, magnitude: Magnitude, n_changed: impl Fn() -> f32) -> Option<f32> {
        let is_mute = magnitude.importance > SATURATED && magnitude.sum < self.of_page * n_changed();
        (!is_mute).then_some(magnitude.sum)
    }
}

/// The sums of a page's visits in one bucket. They are adjacent in memory because a visit updates all of them in a
/// few buckets.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct BucketTally {
    pub n_changes: f32,
    pub hours: f32,
    /// Importance, on the scale on which differences add up.
    pub size_sum: f32,
    /// Expected changed hours to which `size_sum` belongs.
    pub n_changed_hours: f32,
    /// Changes per hour by the prior, without the page's own counts.
    pub prior_rate: f32,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct BucketCounts {
    pub buckets: Vec<BucketTally>,
    /// Sums of `size_sum` and `n_changed_hours` over all buckets.
    pub(super) totals: (f32, f32),
}

impl BucketCounts {
    pub fn new(n_buckets: usize) -> BucketCounts {
        BucketCounts { buckets: vec![BucketTally::default(); n_buckets], totals: (0.0, 0.0) }
    }

    pub fn fade(&mut self, factor: f32) {
        for tally in &mut self.buckets {
            tally.n_changes *= factor;
            tally.hours *= factor;
            tally.size_sum *= factor;
            tally.n_changed_hours *= factor;
        }
        self.totals = (self.totals.0 * factor, self.totals.1 * factor);
    }

    pub(super) fn reset_changes(&mut self, to: Option<&BucketCounts>) {
        self.reset(to, |own, to| own.n_changes = to.n_changes);
    }

    pub(super) fn reset_hours(&mut self, to: Option<&BucketCounts>) {
        self.reset(to, |own, to| own.hours = to.hours);
    }

    pub(super) fn reset_importance(&mut self, to: Option<&BucketCounts>) {
        self.reset(to, |own, to| (own.size_sum, own.n_changed_hours) = (to.size_sum, to.n_changed_hours));
        self.totals = to.map_or((0.0, 0.0), |to| to.totals);
    }

    fn reset(&mut self, to: Option<&BucketCounts>, set: impl Fn(&mut BucketTally, &BucketTally)) {
        match to {
            Some(to) => self.buckets.iter_mut().zip(&to.buckets).for_each(|(own, to)| set(own, to)),
            None => self.buckets.iter_mut().for_each(|own| set(own, &BucketTally::default())),
        }
    }

    /// Adds one visit. A change happened somewhere in the interval, more likely where the rate is high. `rate`
    /// returns changes per hour by bucket, `size` the size of a change.
    pub fn add_visit(
        &mut self,
        pieces: &[BucketPiece],
        importance: Option<f32>,
        weight: f32,
        scale: SizeScale,
        (rate, size): (impl Fn(usize) -> f32, impl Fn(usize) -> f32),
    ) {
        self.add_hours(pieces, weight);
        let Some(importance) = importance else { return };
        self.add_changes(pieces, weight, &rate);
        let changed = |b: usize| one_minus_exp(rate(b));
        self.add_importance(pieces, Magnitude::new(importance), weight, scale, (&rate, &changed, &size));
    }

    /// Adds the hours of a visit, regardless of its outcome.
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

    /// `rate` returns changes per hour by bucket, `changed` the probability of a change in an hour, `size` the size
    /// of a change.
    pub(super) fn add_importance(
        &mut self,
        pieces: &[BucketPiece],
        magnitude: Magnitude,
        weight: f32,
        scale: SizeScale,
        (rate, changed, size): (&impl Fn(usize) -> f32, &impl Fn(usize) -> f32, &impl Fn(usize) -> f32),
    ) {
        let total = integral(pieces, rate);
        let any = one_minus_exp(total).max(1e-9);
        match scale.observed {
            ObservedImportance::Difference => {
                // Counts hours with a change, not pieces. Otherwise an interval of one hour that is split into two
                // pieces would seem to contain two changes. The most visited pages would then seem unimportant.
                let n_changed = || integral(pieces, changed) / any;
                let Some(seen) = scale.added_up(magnitude, n_changed) else { return };
                // Each hour gets its expected share of the difference. Otherwise the large change of the morning
                // would be spread over the night before, which the same observation covers.
                let expected = integral(pieces, &|b| changed(b) * size(b)).max(1e-9);
                let (size_sum, n_changed_hours) = (weight * seen / expected, weight / any);
                for piece in pieces {
                    let b = usize::from(piece.bucket);
                    let p = changed(b) * piece.hours * piece.times;
                    self.add_part(piece, size_sum * p * size(b), n_changed_hours * p);
                }
            }
            ObservedImportance::LastChange => {
                // g is the probability that the last change was in this piece and none in a later one.
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
