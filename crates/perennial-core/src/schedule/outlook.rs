//! The hours around now -> their bucket and day on each clock.
//!
//! Rates are constant within an hour. So between two hours the gain of a page has a closed form, and a page's state
//! at any instant costs one exponential for each hour.

use crate::pattern::calendar::DayPlace;
use crate::pattern::mixture::bucket_index;
use crate::time::{LocalClock, Span, Timestamp};

pub(super) const HOUR_SECS: u32 = 3600;
/// Hours that are known behind and ahead of now.
const DEPTH: u32 = 50;

/// One hour on one clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct HourPlace {
    pub bucket: u16,
    pub day: DayPlace,
}

/// Hours are those of UTC, numbered from the scheduler's base. On a clock that is half an hour off, an hour has the
/// bucket of its middle.
#[derive(Clone, Default)]
pub(super) struct Outlook {
    /// Seconds from an hour's start to the base.
    offset: u32,
    first: u32,
    hours: Vec<Vec<HourPlace>>,
}

impl Outlook {
    /// Covers the hours around an instant on all clocks.
    pub(super) fn extend(&mut self, clocks: &[LocalClock], base: Timestamp, secs: u32, n_periods: u16) {
        if self.hours.len() < clocks.len() {
            self.offset = base.as_secs().rem_euclid(i64::from(HOUR_SECS)) as u32;
            self.first = self.hour(secs).saturating_sub(DEPTH);
            self.hours = vec![Vec::new(); clocks.len()];
        }
        let until = self.hour(secs) + DEPTH;
        let n_old = self.hour(secs).saturating_sub(self.first).saturating_sub(2 * DEPTH);
        for (clock, hours) in clocks.iter().zip(&mut self.hours) {
            while self.first + (hours.len() as u32) < until {
                let hour = self.first + hours.len() as u32;
                let start = i64::from(hour) * i64::from(HOUR_SECS) - i64::from(self.offset);
                let middle = base + Span::from_secs(start + i64::from(HOUR_SECS / 2));
                let (kind, period) = clock.period_at(middle, n_periods);
                let day = DayPlace::on_clock(clock, clock.local(middle).day);
                hours.push(HourPlace { bucket: bucket_index(kind, period, n_periods), day });
            }
            hours.drain(..n_old as usize);
        }
        self.first += n_old;
    }

    /// The number of the hour that contains a second.
    fn hour(&self, secs: u32) -> u32 {
        (secs + self.offset) / HOUR_SECS
    }

    /// The hour that contains a second, and when it ends; `None` if it is too far away.
    #[inline]
    pub(super) fn at(&self, clock: u16, secs: u32) -> Option<(HourPlace, u32)> {
        let hour = self.hour(secs);
        let place = self.hours.get(usize::from(clock))?.get(hour.checked_sub(self.first)? as usize)?;
        Some((*place, (hour + 1) * HOUR_SECS - self.offset))
    }

    /// The end of the hour that contains a second.
    pub(super) fn hour_end(&self, secs: u32) -> u32 {
        (self.hour(secs) + 1) * HOUR_SECS - self.offset
    }
}
