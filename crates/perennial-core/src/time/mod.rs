//! Digits and dates -> [`Timestamp`], an instant in UTC that every other module takes as an argument;
//! [`LocalClock`] gives the local day and time of a site at an instant; [`dates`] reads dates as people write them.

pub mod dates;
mod local;

pub use local::{ClockError, DayKind, LocalClock, LocalDay, LocalTime, Piece};
pub use perennial_warc::time::{Span, Timestamp, TimestampError};
