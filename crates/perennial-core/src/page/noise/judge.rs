//! An operation and the page's history -> how much of the operation is noise.

use super::history::{BOXES, FEW_WORDS, NoiseHistory, elements, passing_id, short_id};
use super::reason::{Noise, NoiseKind};
use super::whole::WholeChange;
use crate::page::diff::{Delta, Element, Operation, OperationKind, Subject};
use crate::page::segment::Block;
use crate::text::numbers::{NumberChange, classify};
use crate::text::stamps::{PassingKind, passing};

/// Noise of an element that returns after it vanished.
const RETURNING: f64 = 0.75;
/// Maximum number of visits per return of an element that rotates.
const MAX_VISITS_PER_RETURN: u32 = 10;
/// Noise of a date that is renewed regularly, though not at most visits: the date of the day on a page that is visited
/// every hour.
const RENEWED: f64 = 0.75;
/// Number of changes from which a date may be renewed regularly, and the number of visits for each.
const RENEWALS: (f64, f64) = (3.0, 30.0);
/// Number of visits after which even a number in a sentence may be noise, and its share of visits with a change.
const RESTLESS_NUMBER: (f64, f64) = (12.0, 0.9);
/// The same for other changes.
const RESTLESS: (f64, f64) = (4.0, 0.8);

/// Noise of dates that all moved by one day, and of entries that were all renumbered. As little of it is news as of an
/// advertisement.
const SHIFTED: f64 = 0.999;

/// Judges the operations of one delta by the page's history.
pub struct NoiseJudge<'a> {
    history: &'a NoiseHistory,
    whole: WholeChange<'a>,
}

impl NoiseHistory {
    /// A judge of the operations of this delta.
    pub fn judge<'a>(&'a self, delta: &'a Delta) -> NoiseJudge<'a> {
        NoiseJudge { history: self, whole: WholeChange::new(delta) }
    }
}

impl NoiseJudge<'_> {
    /// How much of an operation is noise.
    pub fn noise(&self, operation: &Operation) -> Noise {
        if self.whole.is_shifted_date(operation) {
            return Noise::new(SHIFTED, NoiseKind::Shift, 0, self.history.n_visits);
        }
        if self.whole.is_renumbering(operation) {
            return Noise::new(SHIFTED, NoiseKind::Numbering, 0, self.history.n_visits);
        }
        let own = self.history.noise(operation);
        match self.whole.is_in_rotated_box(operation) {
            true => [own, self.history.box_noise()]
                .into_iter()
                .max_by(|a, b| a.share.total_cmp(&b.share))
                .unwrap_or(own),
            false => own,
        }
    }
}

impl NoiseHistory {
    /// How much of an operation is noise by itself.
    fn noise(&self, operation: &Operation) -> Noise {
        if is_replaced_news(operation) {
            return Noise::NONE;
        }
        match (operation.kind, operation.subject) {
            (OperationKind::Insert, Subject::Element { after: Some(element), .. }) => {
                self.insert_noise(element)
            }
            (OperationKind::Delete, Subject::Element { before: Some(element), .. }) => {
                self.delete_noise(element)
            }
            (OperationKind::Update, Subject::Element { before: Some(before), after: Some(after) }) => {
                self.update_noise(before, after)
            }
            (OperationKind::Insert, Subject::Block(Some(block))) => {
                mean_noise(block, |element| self.insert_noise(element))
            }
            (OperationKind::Delete, Subject::Block(Some(block))) => {
                mean_noise(block, |element| self.delete_noise(element))
            }
            _ => Noise::NONE,
        }
    }

    fn insert_noise(&self, element: &Element) -> Noise {
        match passing(element.text()) {
            Some(kind) => self.passing_noise(kind, None),
            None if self.vanished.contains(&short_id(element)) => self.returning(element),
            None => Noise::NONE,
        }
    }

    /// An element that vanished and returned before will probably do so again.
    fn delete_noise(&self, element: &Element) -> Noise {
        match passing(element.text()) {
            Some(kind) => self.passing_noise(kind, None),
            None if self.n_changes(element.id().0) > 0 => self.returning(element),
            None => Noise::NONE,
        }
    }

    /// Something that often comes and goes rotates. Something that returns once in a while, such as "sold out", is news.
    fn returning(&self, element: &Element) -> Noise {
        let n_changes = self.n_changes(element.id().0);
        let is_often = MAX_VISITS_PER_RETURN * (u32::from(n_changes) + 1) >= self.n_visits;
        Noise::new(if is_often { RETURNING } else { 0.0 }, NoiseKind::Returning, n_changes, self.n_visits)
    }

    /// Noise of a box of stories, all of which were replaced.
    fn box_noise(&self) -> Noise {
        let (n_changes, prior) = (self.n_changes(BOXES), Prior::BOX);
        let share = (prior.changes + f64::from(n_changes)) / (prior.visits + f64::from(self.n_visits));
        Noise::new(share.min(1.0), NoiseKind::Box, n_changes, self.n_visits)
    }

    /// Whether a change occurred at nearly every visit.
    fn is_restless(&self, n_changes: u16, (min_visits, share): (f64, f64)) -> bool {
        let n_visits = f64::from(self.n_visits);
        n_visits >= min_visits && f64::from(n_changes) >= share * n_visits
    }

    fn update_noise(&self, before: &Element, after: &Element) -> Noise {
        let n_changes = self.n_changes(before.id().0);
        let n_new = self.new_words(before, after);
        let estimate = |kind, prior: Prior| {
            let share = (prior.changes + f64::from(n_changes)) / (prior.visits + f64::from(self.n_visits));
            Noise::new(share.min(1.0), kind, n_changes, self.n_visits)
        };
        let is_another_target = before.text() != after.text() && before.url() != after.url();
        match classify(before.text(), after.text()) {
            NumberChange::Passing(kind) => self.passing_noise(kind, Some(n_changes)),
            NumberChange::News if self.is_restless(n_changes, RESTLESS_NUMBER) => {
                estimate(NoiseKind::Number, Prior::NONE)
            }
            NumberChange::News => Noise::NONE,
            // A new number with a new target is probably the next of a series, such as a release.
            NumberChange::Unclear if is_another_target && !self.is_restless(n_changes, RESTLESS) => {
                Noise::NONE
            }
            NumberChange::Unclear => estimate(NoiseKind::Number, Prior::EVEN),
            NumberChange::Words if before.text() == after.text() && n_new == 0 => {
                estimate(NoiseKind::Wording, Prior::EVEN)
            }
            NumberChange::Words if n_new == 0 => estimate(NoiseKind::Wording, Prior::NONE),
            NumberChange::Words if n_new <= FEW_WORDS && self.is_restless(n_changes, RESTLESS) => {
                estimate(NoiseKind::Wording, Prior::NONE)
            }
            NumberChange::Words => Noise::NONE,
        }
    }

    /// Noise of a stamp or counter with this number of earlier changes, if they are counted. Clocks and counters are so
    /// by their form. For a date the history decides: the date of a document that was always the same is news.
    fn passing_noise(&self, kind: PassingKind, n_changes: Option<u16>) -> Noise {
        let n_visits = f64::from(self.n_visits);
        let prior = if kind == PassingKind::Stamp { Prior::STAMP } else { Prior::PASSING };
        // One clock that ticks shows what the others are. A date is judged alone, unless it came with other content.
        let of_page = self.n_changes(passing_id(kind));
        let n_changes = match n_changes {
            Some(own) if kind == PassingKind::Stamp || 2.0 * f64::from(of_page) < n_visits => own,
            Some(own) => own.max(of_page),
            None => of_page,
        };
        let share = (prior.changes + f64::from(n_changes)) / (prior.visits + n_visits);
        let is_renewed = f64::from(n_changes) >= RENEWALS.0 && RENEWALS.1 * f64::from(n_changes) >= n_visits;
        let share = if is_renewed { share.max(RENEWED) } else { share };
        Noise::new(share.min(1.0), NoiseKind::from_passing(kind), n_changes, self.n_visits)
    }
}

/// The visits and changes that are assumed before the first one.
struct Prior {
    changes: f64,
    visits: f64,
}

impl Prior {
    /// Only repetition counts.
    const NONE: Prior = Prior { changes: 0.0, visits: 1.0 };
    /// One change in two visits.
    const EVEN: Prior = Prior { changes: 1.0, visits: 2.0 };
    /// A date weighs little at first sight, and fully if it never changed before.
    const STAMP: Prior = Prior { changes: 1.9, visits: 2.0 };
    /// Clocks and counters.
    const PASSING: Prior = Prior { changes: 39.0, visits: 40.0 };
    /// A box of other stories is as little news of its page as an advertisement.
    const BOX: Prior = Prior { changes: 999.0, visits: 1000.0 };
}

/// Whether a text was replaced with one that differs in a number that is news: a date that became earlier.
fn is_replaced_news(operation: &Operation) -> bool {
    let texts = operation.element().zip(operation.counterpart()).map(|(own, other)| match operation.kind {
        OperationKind::Insert => (other.text(), own.text()),
        _ => (own.text(), other.text()),
    });
    texts.is_some_and(|(before, after)| classify(before, after) == NumberChange::News)
}

/// The mean noise of a block's elements, with the reason of the noisiest one.
fn mean_noise(block: &Block, noise: impl Fn(&Element) -> Noise) -> Noise {
    let (mut n, mut sum, mut most) = (0.0, 0.0, Noise::NONE);
    for noise in elements(block).map(|element| noise(&element)) {
        (n, sum) = (n + 1.0, sum + noise.share);
        most = if noise.share > most.share { noise } else { most };
    }
    Noise { share: if n == 0.0 { 0.0 } else { sum / n }, reason: most.reason }
}
