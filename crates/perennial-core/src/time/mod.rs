//! Digits and dates -> [`Timestamp`], an instant in UTC that other modules take as an argument. [`LocalClock`]
//! converts instants to a site's local days and times, and [`dates`] parses human-readable dates.

pub mod dates;
mod hours;
mod local;

pub use hours::{HoursError, WeeklyHours};
pub use local::{ClockError, DayKind, LocalClock, LocalDay, LocalTime, PeriodPiece};
pub use perennial_warc::time::{Span, Timestamp, TimestampError};
