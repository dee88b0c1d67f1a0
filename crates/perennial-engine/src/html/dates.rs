//! Formats instants and numbers for people: days, times, durations, counts.

pub use perennial_core::text::quantity::{counted, grouped};
use perennial_core::time::{LocalClock, LocalDay, Span, Timestamp};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Day, month (from 1) and year of a UTC day.
fn date(at: Timestamp) -> (i8, usize, i16) {
    let date = LocalClock::utc().local(at).day.to_date();
    (date.day(), date.month() as usize, date.year())
}

/// The name of a month, from 1.
pub fn month_name(month: usize) -> &'static str {
    MONTHS.get(month.wrapping_sub(1)).copied().unwrap_or_default()
}

/// The name of a weekday, from Monday 0.
pub fn weekday_name(day: usize) -> &'static str {
    WEEKDAYS.get(day).copied().unwrap_or_default()
}

/// `Mon 29 Jun`.
pub fn day_short(at: Timestamp) -> String {
    let (day, month, _) = date(at);
    format!("{} {day} {}", &weekday_name(weekday(at))[..3], &month_name(month)[..3])
}

/// `Monday 29 June 2026`.
pub fn day_long(at: Timestamp) -> String {
    let (day, month, year) = date(at);
    format!("{} {day} {} {year}", weekday_name(weekday(at)), month_name(month))
}

/// `29 Jun 2026`.
pub fn day_of_year(at: Timestamp) -> String {
    let (day, month, year) = date(at);
    format!("{day} {} {year}", &month_name(month)[..3])
}

pub fn year_and_month(at: Timestamp) -> (i16, usize) {
    let (_, month, year) = date(at);
    (year, month)
}

/// Monday is 0.
pub fn weekday(at: Timestamp) -> usize {
    usize::from(LocalClock::utc().local(at).day.weekday())
}

/// `23:30`.
pub fn minute(at: Timestamp) -> String {
    at.to_rfc3339().get(11..16).unwrap_or_default().to_string()
}

/// `29 Jun 23:30`.
pub fn day_and_minute(at: Timestamp) -> String {
    let (day, month, _) = date(at);
    format!("{day} {} {}", &month_name(month)[..3], minute(at))
}

/// The first instant of the UTC day with this number.
pub fn start_of_day(number: i64) -> Timestamp {
    LocalClock::utc().day_start(LocalDay(i32::try_from(number).unwrap_or_default()))
}

/// `26 h`, `30 min`, `3 days`.
pub fn span_words(span: Span) -> String {
    match span.as_secs_f64() {
        secs if secs < 90.0 => format!("{secs:.0} s"),
        secs if secs < 5_400.0 => format!("{:.0} min", secs / 60.0),
        secs if secs < 172_800.0 => format!("{:.0} h", secs / 3_600.0),
        secs => format!("{:.0} days", secs / 86_400.0),
    }
}

/// `226 MB`.
pub fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e6 => format!("{:.0} kB", bytes / 1e3),
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.1} GB", bytes / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_written_as_people_read_them() {
        let at = Timestamp::parse("2026-06-29T23:30:05Z").unwrap();
        assert_eq!((day_short(at).as_str(), minute(at).as_str()), ("Mon 29 Jun", "23:30"));
        assert_eq!(day_long(at), "Monday 29 June 2026");
        assert_eq!(day_and_minute(at), "29 Jun 23:30");
        assert_eq!(start_of_day(20_633), Timestamp::parse("2026-06-29").unwrap());
        assert_eq!(span_words(Span::from_hours(26)), "26 h");
        assert_eq!(span_words(Span::from_secs(1_800)), "30 min");
        assert_eq!(size(226_000_000), "226.0 MB");
    }
}
