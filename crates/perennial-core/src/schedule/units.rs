//! Times, durations, sizes, shares and budgets as users write them -> values: `2026-11-16` or `2d`, `15m`, `200MB`,
//! `5%`, `1000/1h`. The command line and the settings use these parsers.

use crate::schedule::Budget;
use crate::time::{Span, Timestamp};

/// A value that cannot be read, with examples of valid ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}; write {examples}")]
pub struct UnitError {
    text: String,
    what: &'static str,
    examples: &'static str,
}

fn error(text: &str, what: &'static str, examples: &'static str) -> UnitError {
    UnitError { text: text.chars().take(40).collect(), what, examples }
}

/// Any form that [`Timestamp::parse`] accepts; a duration before `now`, such as `2d`, `90m` or `2d ago`; or `today`
/// and `yesterday`, which begin at midnight UTC.
pub fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp, UnitError> {
    if let Ok(time) = Timestamp::parse(text) {
        return Ok(time);
    }
    let midnight = now - Span::from_millis(now.as_millis().rem_euclid(86_400_000));
    match text.trim() {
        "now" => return Ok(now),
        "today" => return Ok(midnight),
        "yesterday" => return Ok(midnight - Span::from_hours(24)),
        _ => {}
    }
    let length = text.trim().strip_suffix("ago").map_or(text, str::trim_end).trim();
    // Digits alone would be a mistyped year or date.
    let has_unit = length.ends_with(|c: char| c.is_ascii_alphabetic());
    match parse_span(length) {
        Ok(span) if has_unit => Ok(now - span),
        _ => Err(error(
            text,
            "a time",
            "2026-11-16T09:30:00Z, 2026-11-16, 4 to 14 digits such as 20261116093000, yesterday, or 2d for two days ago",
        )),
    }
}

/// `90`, `90s`, `15m`, `1h`, `14d`, `2w`, `250ms`.
pub fn parse_span(text: &str) -> Result<Span, UnitError> {
    let error = || error(text, "a length of time", "30s, 15m, 1h, 14d or 2w");
    let (number, unit) = number_and_unit(text).ok_or_else(error)?;
    let millis = match unit {
        "ms" => 1.0,
        "" | "s" => 1e3,
        "m" | "min" => 6e4,
        "h" => 3.6e6,
        "d" => 8.64e7,
        "w" => 6.048e8,
        _ => return Err(error()),
    };
    Ok(Span::from_millis((number * millis).min(1e15) as i64))
}

/// `1000`, `200MB`, `1GiB`.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let error = || error(text, "a size", "1000, 200MB or 1GiB");
    let (number, unit) = number_and_unit(text).ok_or_else(error)?;
    let bytes = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1048576.0,
        "gib" => 1073741824.0,
        _ => return Err(error()),
    };
    Ok((number * bytes) as u64)
}

/// `5%` or `0.05`.
pub fn parse_share(text: &str) -> Result<f64, UnitError> {
    let error = || error(text, "a share", "5% or 0.05");
    let (number, unit) = number_and_unit(text).ok_or_else(error)?;
    let share = match unit {
        "%" => number / 100.0,
        "" => number,
        _ => return Err(error()),
    };
    // Nobody fetches every page more than a hundred times per hour.
    if share <= 100.0 { Ok(share) } else { Err(error()) }
}

/// `1000/1h`, `24/d`, or `5` for the given period.
pub fn parse_budget(text: &str, period: Span) -> Result<Budget, UnitError> {
    let error = || error(text, "a budget", "visits in a time such as 1000/1h, both numbers above 0");
    let (visits, period) = match text.split_once('/') {
        Some((visits, time)) => (visits, parse_period(time.trim()).map_err(|_| error())?),
        None => (text, period),
    };
    let (visits, unit) = number_and_unit(visits).ok_or_else(error)?;
    let is_some = visits > 0.0 && unit.is_empty() && period > Span::ZERO;
    is_some.then_some(Budget { visits, period }).ok_or_else(error)
}

/// `1h`, or `h` for `1h`.
fn parse_period(text: &str) -> Result<Span, UnitError> {
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        parse_span(text)
    } else {
        parse_span(&format!("1{text}"))
    }
}

/// Formats a budget for [`parse_budget`].
pub fn write_budget(budget: Budget) -> String {
    format!("{}/{}", budget.visits, write_span(budget.period))
}

/// Formats a duration for [`parse_span`], in the largest unit that gives a whole number.
pub fn write_span(span: Span) -> String {
    const UNITS: [(i64, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let millis = span.as_millis();
    let fits = |(unit, _): &&(i64, &str)| millis % unit == 0;
    let (unit, name) = UNITS.iter().find(fits).unwrap_or(&(1, "ms"));
    format!("{}{name}", millis / unit)
}

/// Formats a size for [`parse_bytes`], in the largest unit that gives a whole number.
pub fn write_bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB"), (1, "B")];
    let (unit, name) = UNITS.iter().find(|(unit, _)| bytes.is_multiple_of(*unit)).unwrap_or(&(1, "B"));
    format!("{}{name}", bytes / unit)
}

/// Splits a non-negative number from the unit after it.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..split].parse().ok()?;
    number.is_finite().then_some((number, text[split..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn budgets_spans_shares_and_sizes() {
        assert_eq!(parse_budget("1000/1h", Span::ZERO), Ok(Budget::per_hour(1000.0)));
        assert_eq!(parse_budget("24/d", Span::ZERO).unwrap().period, Span::from_hours(24));
        assert_eq!(parse_budget("5", Span::from_hours(1)), Ok(Budget::per_hour(5.0)));
        for wrong in ["0/1h", "many", "-3/1h", "inf", "5/0h", "5/", "5h", "1/2/3"] {
            let error = parse_budget(wrong, Span::from_hours(1)).unwrap_err().to_string();
            assert!(error.contains("1000/1h") && error.contains(wrong), "{error}");
        }
        assert_eq!(parse_span("90"), Ok(Span::from_secs(90)));
        assert_eq!(parse_span("250ms"), Ok(Span::from_millis(250)));
        assert!(parse_span("soon").unwrap_err().to_string().contains("15m"));
        assert_eq!(parse_bytes("1.5kB"), Ok(1500));
        assert!(parse_bytes("big").is_err());
        assert_eq!((parse_share("5%"), parse_share("0.05")), (Ok(0.05), Ok(0.05)));
        assert!(parse_share("much").is_err() && parse_share("-1%").is_err() && parse_share("101").is_err());
    }

    #[test]
    fn times_are_instants_or_so_long_ago() {
        let now = Timestamp::parse("2026-11-16T09:30:00Z").unwrap();
        let time = |text: &str| parse_time(text, now).map(|time| time.to_rfc3339());
        for (text, expected) in [
            ("2026-11-16T09:30:00+01:00", "2026-11-16T08:30:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026", "2026-01-01T00:00:00Z"),
            ("20261116093001", "2026-11-16T09:30:01Z"),
            ("2d", "2026-11-14T09:30:00Z"),
            ("90m ago", "2026-11-16T08:00:00Z"),
            ("1.5h", "2026-11-16T08:00:00Z"),
        ] {
            assert_eq!(time(text).as_deref(), Ok(expected), "{text}");
        }
        for wrong in ["", "soon", "123", "2x", "ago", "90 ago", "-2d"] {
            assert!(time(wrong).unwrap_err().to_string().contains("two days ago"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn formatted_values_are_parsed_again(visits in 0.001..1e9f64, millis in 1..1_000_000_000i64, bytes in 0..1u64 << 50) {
            for millis in [millis, millis * 1000, millis / 3_600_000 * 3_600_000 + 3_600_000] {
                let budget = Budget { visits, period: Span::from_millis(millis) };
                prop_assert_eq!(parse_budget(&write_budget(budget), Span::ZERO), Ok(budget));
            }
            for bytes in [bytes, bytes / 1_000_000 * 1_000_000] {
                prop_assert_eq!(parse_bytes(&write_bytes(bytes)), Ok(bytes));
            }
        }

        #[test]
        fn any_text_is_parsed_without_panics(text in ".{0,30}") {
            let now = Timestamp::EPOCH;
            let _ = (parse_time(&text, now), parse_span(&text), parse_bytes(&text), parse_share(&text));
            if let Ok(budget) = parse_budget(&text, Span::from_hours(1)) {
                prop_assert!(budget.visits > 0.0 && budget.visits.is_finite());
            }
        }
    }
}
