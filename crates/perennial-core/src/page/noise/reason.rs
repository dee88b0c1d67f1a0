//! How much of a change is noise, and the reason in words.

use crate::page::importance::Judgement;
use crate::text::stamps::PassingKind;

/// Minimum noise of an operation that counts as noise.
pub(super) const MOSTLY_NOISE: f64 = 0.6;

/// How much of a change is noise, and why.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Noise {
    /// From 0 (all of it is news) to 1 (none is).
    pub share: f64,
    /// `None` if none of it is noise, and if the reason was not stored.
    pub reason: Option<NoiseReason>,
}

/// Why a change is noise: what changed, and how often it changed before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoiseReason {
    pub kind: NoiseKind,
    /// Visits before this one at which it changed.
    pub n_changes: u16,
    /// Visits before this one that could have shown a change.
    pub n_visits: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoiseKind {
    /// A time of day, or an age.
    Clock,
    /// The date of the day or of an update.
    Stamp,
    Counter,
    /// A number whose meaning is unknown.
    Number,
    /// A text or a URL without new words.
    Wording,
    /// An element that vanished and came back.
    Returning,
    /// A document of which only the bytes are known.
    Unreadable,
    /// Dates that all moved by one day.
    Shift,
    /// A box of stories outside of the content, all of which were replaced.
    Box,
    /// The numbers of entries that moved together.
    Numbering,
}

impl NoiseKind {
    pub const ALL: [NoiseKind; 10] = [
        NoiseKind::Clock,
        NoiseKind::Stamp,
        NoiseKind::Counter,
        NoiseKind::Number,
        NoiseKind::Wording,
        NoiseKind::Returning,
        NoiseKind::Unreadable,
        NoiseKind::Shift,
        NoiseKind::Box,
        NoiseKind::Numbering,
    ];

    /// For people.
    fn name(self) -> &'static str {
        match self {
            NoiseKind::Clock => "a clock",
            NoiseKind::Stamp => "a time stamp",
            NoiseKind::Counter => "a counter",
            NoiseKind::Number => "a number",
            NoiseKind::Wording => "a part without new words",
            NoiseKind::Returning => "an element that comes and goes",
            NoiseKind::Unreadable => "an unreadable document",
            NoiseKind::Shift => "a date that moved by one day like all others",
            NoiseKind::Box => "a box of other stories",
            NoiseKind::Numbering => "an entry that was renumbered like the others",
        }
    }

    pub(super) fn from_passing(kind: PassingKind) -> NoiseKind {
        match kind {
            PassingKind::Clock => NoiseKind::Clock,
            PassingKind::Stamp => NoiseKind::Stamp,
            PassingKind::Counter => NoiseKind::Counter,
        }
    }
}

impl NoiseReason {
    /// "a time stamp that changed at 21 of 22 visits"
    pub fn sentence(&self) -> String {
        let (n_changes, n_visits) = (self.n_changes, self.n_visits);
        match (self.kind, n_changes) {
            (NoiseKind::Shift | NoiseKind::Numbering, _) => self.kind.name().to_owned(),
            (NoiseKind::Returning, 0) => format!("{}, seen before", self.kind.name()),
            (_, 0) if n_visits == 0 => format!("{}, by its form", self.kind.name()),
            (_, 0) => format!("{} that did not change at {n_visits} visits before", self.kind.name()),
            _ => format!("{} that changed at {n_changes} of {n_visits} visits", self.kind.name()),
        }
    }

    /// Whether the page's own history shows it, not only the form of the text.
    pub fn is_earned(&self) -> bool {
        self.n_changes > 0
    }
}

impl Noise {
    pub const NONE: Noise = Noise { share: 0.0, reason: None };

    pub(super) fn new(share: f64, kind: NoiseKind, n_changes: u16, n_visits: u32) -> Noise {
        let reason = Some(NoiseReason { kind, n_changes, n_visits }).filter(|_| share > 0.0);
        Noise { share, reason }
    }

    pub fn is_mostly_noise(self) -> bool {
        self.share >= MOSTLY_NOISE
    }
}

impl Judgement {
    pub fn noise(self) -> Noise {
        Noise { share: self.noise, reason: self.reason }
    }

    /// Whether a reader learns nothing from the operation.
    pub fn is_noise(self) -> bool {
        self.is_advertisement || self.noise >= MOSTLY_NOISE
    }

    /// Whether it is noise and the page's history shows it. A change of such operations only is not reported.
    pub fn is_earned_noise(self) -> bool {
        self.is_advertisement || self.is_noise() && self.reason.is_none_or(|reason| reason.is_earned())
    }

    /// Whether an operation with this share of the change's importance should be reported.
    pub fn is_worth_reporting(self, share: f64) -> bool {
        !self.is_noise() && share > 0.0
    }
}
