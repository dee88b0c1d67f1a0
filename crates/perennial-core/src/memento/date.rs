//! HTTP dates: `Tue, 15 Nov 1994 12:45:26 GMT` <-> an instant, as in Memento-Datetime, Accept-Datetime and
//! Last-Modified.

use jiff::fmt::rfc2822::DateTimePrinter;

use crate::http::politeness::parse_http_date;
use crate::time::Timestamp;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// In the format of RFC 7231.
pub fn write(time: Timestamp) -> String {
    let time = time.to_jiff();
    // The printer is fast, because long lists contain many dates. It rejects years before Christ, which strftime
    // approximates.
    let written = DateTimePrinter::new().timestamp_to_rfc9110_string(&time);
    written.unwrap_or_else(|_| time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

/// Parses the date of RFC 7231, its two obsolete forms, and ISO 8601 or digits as some clients send them.
pub fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.len() > 64 {
        return None;
    }
    parse_http_date(text).or_else(|| parse_obsolete(text)).or_else(|| Timestamp::parse(text).ok())
}

/// `Tuesday, 15-Nov-94 12:45:26 GMT` and `Tue Nov 15 12:45:26 1994`.
fn parse_obsolete(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split([' ', '-', ',']).filter(|word| !word.is_empty()).collect();
    match words[..] {
        [_, day, month, year, clock, ..] if is_month(month) => civil(year, month, day, clock),
        [_, month, day, clock, year] if is_month(month) => civil(year, month, day, clock),
        _ => None,
    }
}

fn is_month(word: &str) -> bool {
    MONTHS.iter().any(|month| month.eq_ignore_ascii_case(word))
}

fn civil(year: &str, month: &str, day: &str, clock: &str) -> Option<Timestamp> {
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? + 1;
    let year: u32 = match (year.len(), year.parse().ok()?) {
        (2, short @ 0..70) => 2000 + short,
        (2, short) => 1900 + short,
        (_, year) => year,
    };
    let day: u32 = day.parse().ok()?;
    if year > 9999 || day > 31 || !clock.is_ascii() {
        return None;
    }
    Timestamp::parse(&format!("{year:04}-{month:02}-{day:02}T{clock}Z")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_forms_are_read() {
        let expected = Timestamp::parse("1994-11-15T12:45:26Z").ok();
        for text in [
            "Tue, 15 Nov 1994 12:45:26 GMT",
            "tue, 15 nov 1994 12:45:26 gmt",
            "Tuesday, 15-Nov-94 12:45:26 GMT",
            "Tue Nov 15 12:45:26 1994",
            "1994-11-15T12:45:26Z",
            "19941115124526",
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
        for text in
            ["", "yesterday", "Tue, 15 Nov", "Tue, 32 Nov 1994 12:45:26 GMT", "Tue, 15 Nov 1994 é GMT"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(secs in 0i64..7_000_000_000) {
            let time = Timestamp::from_secs(secs);
            prop_assert_eq!(parse(&write(time)), Some(time));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
