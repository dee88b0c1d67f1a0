//! How much a change matters to a reader, from 0 (nothing) to 1 (everything, a first capture).

/// 0 to 1, checked at construction.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Importance(f32);

impl Importance {
    /// Nothing changed.
    pub const NONE: Importance = Importance(0.0);
    /// All is new: a first capture.
    pub const FULL: Importance = Importance(1.0);

    /// Clamps to [0, 1]; NaN counts as 0, because no evidence is no change.
    pub fn new(value: f64) -> Importance {
        Importance(if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) as f32 })
    }

    /// The value as a number.
    pub fn get(self) -> f64 {
        f64::from(self.0)
    }
}
