//! Digits and dates -> [`Timestamp`], an instant in UTC.

use std::fmt;
use std::ops::{Add, Sub};

/// An instant in UTC, as milliseconds since the Unix epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A duration in milliseconds, which may be negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Span(i64);

/// A text that is not an instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a time: write 2026-11-16T09:30:00Z, 2026-11-16 or 4 to 14 digits such as 20261116093000"
)]
pub struct TimestampError {
    text: String,
}

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Timestamp = Timestamp(0);

    /// The end of the year 9999, the last that RFC 3339 can write.
    pub const MAX: Timestamp = Timestamp(253_402_300_799_000);

    /// Creates an instant from milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Timestamp {
        Timestamp(millis)
    }

    /// Creates an instant from seconds since the Unix epoch.
    pub const fn from_secs(secs: i64) -> Timestamp {
        Timestamp(secs.saturating_mul(1000))
    }

    /// Returns milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns whole seconds since the Unix epoch, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Parses RFC 3339 (any offset, or a date alone) or 4 to 14 digits as in CDX. Missing parts get their lowest
    /// value: `2026` is the first instant of that year.
    pub fn parse(text: &str) -> Result<Timestamp, TimestampError> {
        let error = || TimestampError { text: text.chars().take(40).collect() };
        let trimmed = text.trim();
        if trimmed.bytes().all(|b| b.is_ascii_digit()) {
            return Timestamp::from_digits(trimmed).ok_or_else(error);
        }
        if let Ok(instant) = trimmed.parse::<jiff::Timestamp>() {
            return Ok(Timestamp(instant.as_millisecond()));
        }
        let date: jiff::civil::DateTime = trimmed.parse().map_err(|_| error())?;
        Timestamp::from_civil(date).ok_or_else(error)
    }

    fn from_digits(digits: &str) -> Option<Timestamp> {
        if !matches!(digits.len(), 4 | 6 | 8 | 10 | 12 | 14) {
            return None;
        }
        let part = |from: usize, default: i8| -> Option<i8> {
            match digits.get(from..from + 2) {
                Some(two) => two.parse().ok(),
                None => Some(default),
            }
        };
        let year: i16 = digits.get(..4)?.parse().ok()?;
        let date = jiff::civil::DateTime::new(
            year,
            part(4, 1)?,
            part(6, 1)?,
            part(8, 0)?,
            part(10, 0)?,
            part(12, 0)?.min(59),
            0,
        );
        Timestamp::from_civil(date.ok()?)
    }

    fn from_civil(date: jiff::civil::DateTime) -> Option<Timestamp> {
        let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Timestamp(zoned.timestamp().as_millisecond()))
    }

    /// Converts to jiff's type, clamped to its range.
    pub fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        })
    }

    /// Formats as fourteen digits, the form in CDX and in replay URLs.
    pub fn to_digits14(self) -> String {
        self.to_jiff().strftime("%Y%m%d%H%M%S").to_string()
    }

    /// Formats as RFC 3339 in UTC with whole seconds. Every reader accepts this form of WARC-Date.
    pub fn to_rfc3339(self) -> String {
        self.to_jiff().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timestamp({} = {})", self.0, self.to_rfc3339())
    }
}

impl Span {
    /// A span of length 0.
    pub const ZERO: Span = Span(0);

    /// Creates a span from milliseconds.
    pub const fn from_millis(millis: i64) -> Span {
        Span(millis)
    }

    /// Creates a span from seconds.
    pub const fn from_secs(secs: i64) -> Span {
        Span(secs.saturating_mul(1000))
    }

    /// Creates a span from hours.
    pub const fn from_hours(hours: i64) -> Span {
        Span(hours.saturating_mul(3_600_000))
    }

    /// Returns milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns seconds with a fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns hours with a fraction, the unit of time in rates.
    pub fn as_hours_f64(self) -> f64 {
        self.0 as f64 / 3.6e6
    }
}

impl Add<Span> for Timestamp {
    type Output = Timestamp;
    fn add(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Timestamp {
    type Output = Timestamp;
    fn sub(self, span: Span) -> Timestamp {
        Timestamp(self.0.saturating_sub(span.0))
    }
}

impl Sub for Timestamp {
    type Output = Span;
    fn sub(self, earlier: Timestamp) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_rfc3339_agree() {
        let instant = Timestamp::parse("2022-01-06T15:08:49Z").unwrap();
        assert_eq!(instant, Timestamp::parse("20220106150849").unwrap());
        assert_eq!(instant.to_digits14(), "20220106150849");
        assert_eq!(instant.to_rfc3339(), "2022-01-06T15:08:49Z");
        assert_eq!(Timestamp::parse("2022-01-06T16:08:49+01:00").unwrap(), instant);
    }

    #[test]
    fn partial_times_start_their_period() {
        assert_eq!(Timestamp::parse("2022").unwrap().to_rfc3339(), "2022-01-01T00:00:00Z");
        assert_eq!(Timestamp::parse("2022-03-04").unwrap().to_rfc3339(), "2022-03-04T00:00:00Z");
        assert!(Timestamp::parse("202203041").unwrap_err().to_string().contains("4 to 14 digits"));
    }

    #[test]
    fn extremes_do_not_panic() {
        let _ = Timestamp::from_millis(i64::MAX).to_digits14();
        let _ = Timestamp::from_millis(i64::MIN).to_rfc3339();
        let _ = Timestamp::from_millis(i64::MAX) + Span::from_hours(i64::MAX);
    }
}
