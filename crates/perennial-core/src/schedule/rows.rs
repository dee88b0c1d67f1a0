//! Rates and importances by bucket, relative to the page's mean <-> two bytes per bucket.
//!
//! A page with a history owns a row; pages without one share the row of their group. A few rows have a calendar: how
//! much busier than usual each day of the week and of the month is.

use crate::pattern::calendar::DayFactors;

/// Codes are logarithmic with a step of 5 %; code 0 means 0.
const CODE_OF_ONE: f32 = 160.0;
const STEP: f32 = 0.05;

#[derive(Clone)]
pub(super) struct Rows {
    n_buckets: usize,
    codes: Vec<[u8; 2]>,
    free: Vec<u32>,
    decode: Vec<f32>,
    /// By row; shorter than the rows if the last ones have none.
    calendars: Vec<Option<Box<DayFactors>>>,
    n_calendars: usize,
}

impl Rows {
    /// Starts with row 0, which is 1 everywhere.
    pub(super) fn new(n_buckets: usize) -> Rows {
        let value = |code: usize| if code == 0 { 0.0 } else { ((code as f32 - CODE_OF_ONE) * STEP).exp() };
        let mut rows = Rows {
            n_buckets,
            codes: Vec::new(),
            free: Vec::new(),
            decode: (0..256).map(value).collect(),
            calendars: Vec::new(),
            n_calendars: 0,
        };
        rows.take();
        rows
    }

    /// Allocates a row of ones.
    pub(super) fn take(&mut self) -> u32 {
        let one = [CODE_OF_ONE as u8; 2];
        match self.free.pop() {
            Some(row) => {
                let from = row as usize * self.n_buckets;
                self.codes[from..from + self.n_buckets].fill(one);
                row
            }
            None => {
                self.codes.resize(self.codes.len() + self.n_buckets, one);
                (self.codes.len() / self.n_buckets - 1) as u32
            }
        }
    }

    /// Allocates a copy of a row.
    pub(super) fn copy(&mut self, row: u32) -> u32 {
        let copy = self.take();
        let from = row as usize * self.n_buckets;
        self.codes.copy_within(from..from + self.n_buckets, copy as usize * self.n_buckets);
        self.set_calendar(copy, self.calendar(row).cloned());
        copy
    }

    pub(super) fn release_row(&mut self, row: u32) {
        self.set_calendar(row, None);
        self.free.push(row);
    }

    /// The calendar of a row, if some days are busier than others.
    #[inline]
    pub(super) fn calendar(&self, row: u32) -> Option<&DayFactors> {
        if self.n_calendars == 0 {
            return None;
        }
        self.calendars.get(row as usize)?.as_deref()
    }

    pub(super) fn set_calendar(&mut self, row: u32, calendar: Option<DayFactors>) {
        let row = row as usize;
        if calendar.is_some() && row >= self.calendars.len() {
            self.calendars.resize(row + 1, None);
        }
        let Some(place) = self.calendars.get_mut(row) else { return };
        self.n_calendars -= usize::from(place.is_some());
        *place = calendar.map(Box::new);
        self.n_calendars += usize::from(place.is_some());
    }

    #[inline]
    pub(super) fn set(&mut self, row: u32, bucket: usize, rate: f32, importance: f32) {
        self.codes[row as usize * self.n_buckets + bucket] = [encode(rate), encode(importance)];
    }

    #[inline]
    pub(super) fn set_rate(&mut self, row: u32, bucket: usize, rate: f32) {
        self.codes[row as usize * self.n_buckets + bucket][0] = encode(rate);
    }

    /// Writes a row from rates, importances and the inverses of the means to which the row is relative.
    pub(super) fn fill(
        &mut self,
        row: u32,
        rates: &[f32],
        importances: &[f32],
        (per_rate, per_importance): (f32, f32),
    ) {
        let from = row as usize * self.n_buckets;
        let codes = &mut self.codes[from..from + self.n_buckets];
        for ((code, rate), importance) in codes.iter_mut().zip(rates).zip(importances) {
            *code = [encode(rate * per_rate), encode(importance * per_importance)];
        }
    }

    /// Rate and importance of a bucket, relative to the page's mean.
    #[inline]
    pub(super) fn get(&self, row: u32, bucket: usize) -> (f32, f32) {
        let [rate, importance] = self.codes[row as usize * self.n_buckets + bucket];
        (self.decode[usize::from(rate)], self.decode[usize::from(importance)])
    }

    #[inline]
    pub(super) fn rate(&self, row: u32, bucket: usize) -> f32 {
        self.decode[usize::from(self.codes[row as usize * self.n_buckets + bucket][0])]
    }

    pub(super) fn n_bytes(&self) -> usize {
        let of_calendars =
            self.calendars.capacity() * 8 + self.n_calendars * std::mem::size_of::<DayFactors>();
        self.codes.capacity() * 2 + self.free.capacity() * 4 + of_calendars
    }
}

/// The code of a value. It has no branch and no call, so the compiler vectorises a loop over it.
#[inline]
fn encode(relative: f32) -> u8 {
    /// Adding it to a small number leaves the nearest integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let place = crate::pattern::mixture::quick_ln(relative) * (1.0 / STEP) + CODE_OF_ONE;
    let code = (place.clamp(1.0, 255.0) + ROUND).to_bits() as u8;
    if relative > 1e-6 { code } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keep_values_within_three_percent() {
        let mut rows = Rows::new(2);
        let row = rows.take();
        for value in [0.0, 0.001, 0.03, 0.5, 1.0, 1.7, 24.0, 100.0] {
            rows.set(row, 1, value, value);
            let (rate, importance) = rows.get(row, 1);
            assert_eq!(rate, importance);
            assert!((rate - value).abs() <= 0.03 * value, "{value} became {rate}");
        }
        assert_eq!(rows.get(row, 0), (1.0, 1.0));
    }
}
