//! What users write for time, bytes and budgets <-> numbers: `15m`, `200MB`, `1000/1h`.

use perennial_core::schedule::Budget;
use perennial_core::time::Span;

/// `90`, `90s`, `15m`, `1h`, `14d`, `2w`, `250ms`.
pub fn parse_span(text: &str) -> Result<Span, String> {
    let error = || format!("`{text}` is not a length of time: write 30s, 15m, 1h, 14d or 2w");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..split].parse().map_err(|_| error())?;
    let millis = match text[split..].trim() {
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
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let error = || format!("`{text}` is not a size: write 1000, 200MB or 1GiB");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..split].parse().map_err(|_| error())?;
    let unit = match text[split..].trim().to_ascii_lowercase().as_str() {
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
    Ok((number * unit) as u64)
}

/// `1000/1h`, `24/d`, or `5` for a period that is given elsewhere.
pub fn parse_budget(text: &str, period: Span) -> Result<Budget, String> {
    let (visits, period) = match text.split_once('/') {
        Some((visits, unit)) if unit.starts_with(|c: char| c.is_ascii_digit()) => (visits, parse_span(unit)?),
        Some((visits, unit)) => (visits, parse_span(&format!("1{unit}"))?),
        None => (text, period),
    };
    let error = || format!("the budget `{text}`: write it like 1000/1h, both numbers above 0");
    let visits: f64 = visits.trim().parse().map_err(|_| error())?;
    let is_some = visits.is_finite() && visits > 0.0 && period > Span::ZERO;
    is_some.then_some(Budget { visits, period }).ok_or_else(error)
}

/// A budget as [`parse_budget`] reads it.
pub fn write_budget(budget: Budget) -> String {
    format!("{}/{}", budget.visits, write_span(budget.period))
}

/// A length of time as [`parse_span`] reads it, in the largest unit that gives a whole number.
pub fn write_span(span: Span) -> String {
    const UNITS: [(i64, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let millis = span.as_millis();
    let fits = |(unit, _): &&(i64, &str)| millis % unit == 0;
    let (unit, name) = UNITS.iter().find(fits).unwrap_or(&(1, "ms"));
    format!("{}{name}", millis / unit)
}

/// A size as [`parse_bytes`] reads it, in the largest unit that gives a whole number.
pub fn write_bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB"), (1, "B")];
    let (unit, name) = UNITS.iter().find(|(unit, _)| bytes.is_multiple_of(*unit)).unwrap_or(&(1, "B"));
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_spans_and_sizes() {
        assert_eq!(parse_budget("1000/1h", Span::ZERO).unwrap(), Budget::per_hour(1000.0));
        assert_eq!(parse_budget("24/d", Span::ZERO).unwrap().period, Span::from_hours(24));
        assert_eq!(parse_budget("5", Span::from_hours(1)).unwrap(), Budget::per_hour(5.0));
        assert!(parse_budget("0/1h", Span::ZERO).is_err());
        assert!(parse_budget("many", Span::from_hours(1)).unwrap_err().contains("1000/1h"));
        assert_eq!(parse_span("90"), Ok(Span::from_secs(90)));
        assert_eq!(parse_span("250ms"), Ok(Span::from_millis(250)));
        assert!(parse_span("soon").unwrap_err().contains("15m"));
        assert_eq!(parse_bytes("1.5kB"), Ok(1500));
        assert!(parse_bytes("big").is_err());
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(visits in 0.001..1e9f64, millis in 1..1_000_000_000i64, bytes in 0..1u64 << 50) {
            for millis in [millis, millis * 1000, millis / 3_600_000 * 3_600_000 + 3_600_000] {
                let budget = Budget { visits, period: Span::from_millis(millis) };
                proptest::prop_assert_eq!(parse_budget(&write_budget(budget), Span::ZERO), Ok(budget));
            }
            for bytes in [bytes, bytes / 1_000_000 * 1_000_000] {
                proptest::prop_assert_eq!(parse_bytes(&write_bytes(bytes)), Ok(bytes));
            }
        }
    }
}
