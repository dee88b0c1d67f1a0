//! Dates as feeds, sitemaps and pages write them -> instants.
//!
//! [`parse`] reads a date, [`parse_lenient`] an attribute of a page. [`find()`] finds a day in a text, [`find_in_url`] in a
//! URL. Accepted are RFC 822 and its variants, ISO 8601 and W3CDTF with any part missing, asctime, dates with names
//! of months in several languages, and numbers alone. A date without a zone is in UTC. `None` means that the text is
//! not a date.

mod find;

pub use find::{find, find_in_url, parse_lenient};

use crate::time::{Span, Timestamp};

/// Longer texts are not dates.
const MAX_DATE_BYTES: usize = 100;

/// The order of `5/6/2026`, which both numbers allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateOrder {
    /// As feed generators write it.
    MonthFirst,
    /// As most people write it.
    DayFirst,
}

pub fn parse(text: &str, order: DateOrder) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_DATE_BYTES {
        return None;
    }
    parse_iso(text).or_else(|| parse_worded(text)).or_else(|| parse_numeric(text, order))
}

/// A civil time without its zone.
#[derive(Clone, Copy, Default)]
struct CivilTime {
    year: i32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

impl CivilTime {
    fn at(self, offset_minutes: i32) -> Option<Timestamp> {
        let is_sound = (1..=12).contains(&self.month)
            && (1..=31).contains(&self.day)
            && self.hour <= 24
            && self.minute < 60
            && self.second <= 60
            && (1..=9999).contains(&self.year);
        if !is_sound {
            return None;
        }
        // People write the 31st of shorter months. The last day of the month is the best guess.
        let days_in_month =
            jiff::civil::Date::new(self.year as i16, self.month as i8, 1).ok()?.days_in_month();
        let day = (self.day as i8).min(days_in_month);
        let date = jiff::civil::date(self.year as i16, self.month as i8, day).at(0, 0, 0, 0);
        let midnight = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
        let secs =
            i64::from(self.hour * 3600 + self.minute * 60 + self.second) - i64::from(offset_minutes) * 60;
        Some(Timestamp::from_secs(midnight) + Span::from_secs(secs))
    }
}

/// `2003-12-31T10:14:55.7+01:00` with any part missing, `20031231`, `2003-335`, `03-12-31`, `2003-12-31 10:14:55 GMT`.
fn parse_iso(text: &str) -> Option<Timestamp> {
    let (date, time) = match text.find(['T', 't', ' ', '_']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => match text.strip_suffix(['Z', 'z']) {
            Some(date) => (date, ""),
            None => (text, ""),
        },
    };
    let mut civil = iso_date(date)?;
    if time.is_empty() {
        return civil.at(0);
    }
    let time_end =
        time.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.' | ','))).unwrap_or(time.len());
    read_clock(&time[..time_end], &mut civil)?;
    let zone = time[time_end..].trim();
    // An unknown zone counts as none.
    civil.at(parse_offset(zone).unwrap_or(0))
}

fn iso_date(text: &str) -> Option<CivilTime> {
    let text = text.trim_start_matches('-');
    let parts: Vec<&str> = text.split('-').collect();
    if parts.iter().any(|part| part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let number = |text: &str| text.parse::<u32>().ok();
    let of = |year: i32, month: u32, day: u32| Some(CivilTime { year, month, day, ..CivilTime::default() });
    match parts[..] {
        [year, month, day] if month.len() <= 2 && day.len() <= 2 && matches!(year.len(), 2 | 4) => {
            of(full_year(year)?, number(month)?, number(day)?)
        }
        [year, rest] if year.len() == 4 && rest.len() <= 2 => of(full_year(year)?, number(rest)?, 1),
        [year, rest] if year.len() == 2 && rest.len() == 2 => of(full_year(year)?, number(rest)?, 1),
        [year, days] if matches!(year.len(), 2 | 4) && days.len() == 3 => {
            ordinal(full_year(year)?, number(days)?)
        }
        [year] if year.len() == 4 => of(full_year(year)?, 1, 1),
        [all] if all.len() == 8 => of(full_year(&all[..4])?, number(&all[4..6])?, number(&all[6..])?),
        // Six digits: a two-digit year, or a year and a month such as `200312` if there is no such day.
        [all] if all.len() == 6 => match (full_year(&all[..2])?, number(&all[2..4])?, number(&all[4..])?) {
            (year, month, day) if (1..=12).contains(&month) && (1..=31).contains(&day) => {
                of(year, month, day)
            }
            _ => of(full_year(&all[..4])?, number(&all[4..])?, 1),
        },
        [all] if all.len() == 5 => ordinal(full_year(&all[..2])?, number(&all[2..])?),
        [all] if all.len() == 7 => ordinal(full_year(&all[..4])?, number(&all[4..])?),
        _ => None,
    }
}

fn ordinal(year: i32, days: u32) -> Option<CivilTime> {
    let first = jiff::civil::Date::new(year as i16, 1, 1).ok()?;
    if days == 0 || days > 366 {
        return None;
    }
    let date = first.checked_add(jiff::Span::new().days(i64::from(days) - 1)).ok()?;
    Some(CivilTime {
        year: i32::from(date.year()),
        month: date.month() as u32,
        day: date.day() as u32,
        ..CivilTime::default()
    })
}

/// Two digits are a year from 1970 to 2069.
fn full_year(text: &str) -> Option<i32> {
    let year: i32 = text.parse().ok()?;
    Some(match (text.len(), year) {
        (0..=2, 0..=69) => 2000 + year,
        (0..=3, 70..=199) => 1900 + year,
        _ => year,
    })
}

/// `10`, `10:14`, `10:14:55.3`, `101455`.
fn read_clock(text: &str, civil: &mut CivilTime) -> Option<()> {
    let whole = text.split(['.', ',']).next().unwrap_or_default();
    let mut parts = whole.split(':');
    let first = parts.next()?;
    let number = |text: &str| text.parse::<u32>().ok();
    if parts.clone().next().is_none() && first.len() > 2 {
        civil.hour = number(first.get(..2)?)?;
        civil.minute = number(first.get(2..4)?)?;
        civil.second = first.get(4..6).and_then(number).unwrap_or(0);
        return Some(());
    }
    civil.hour = number(first)?;
    civil.minute = parts.next().and_then(number).unwrap_or(0);
    civil.second = parts.next().and_then(number).unwrap_or(0);
    Some(())
}

/// Minutes east of Greenwich: `+01:00`, `-0500`, `GMT`, `EST`, `GMT+2`.
fn parse_offset(text: &str) -> Option<i32> {
    let text = text.trim().trim_matches(|c| matches!(c, '(' | ')'));
    let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (name, rest) = text.split_at(letters);
    let named = if name.is_empty() { 0 } else { zone_minutes(name)? };
    let rest = rest.trim_start();
    let Some(sign) = rest.chars().next().filter(|c| matches!(c, '+' | '-')) else {
        return Some(named).filter(|_| !name.is_empty());
    };
    let digits: String =
        rest[1..].chars().take_while(|c| c.is_ascii_digit() || *c == ':').filter(|c| *c != ':').collect();
    let number: i32 = digits.parse().ok()?;
    let minutes = if digits.len() <= 2 { number * 60 } else { number / 100 * 60 + number % 100 };
    (minutes <= 24 * 60).then_some(named + if sign == '-' { -minutes } else { minutes })
}

fn zone_minutes(name: &str) -> Option<i32> {
    let hours = match name.to_ascii_uppercase().as_str() {
        "Z" | "UT" | "UTC" | "GMT" | "WET" | "ETC" => 0,
        "AST" | "EDT" => -4,
        "ADT" => -3,
        "EST" | "ET" | "CDT" => -5,
        "CST" | "CT" | "MDT" => -6,
        "MST" | "MT" | "PDT" => -7,
        "PST" | "PT" | "AKDT" => -8,
        "AKST" => -9,
        "HST" => -10,
        "BST" | "CET" | "MEZ" | "WEST" | "IST" | "MET" => 1,
        "CEST" | "MESZ" | "EET" | "SAST" | "MEST" => 2,
        "EEST" | "MSK" => 3,
        "AWST" | "HKT" | "SGT" => 8,
        "JST" | "KST" => 9,
        "AEST" => 10,
        "AEDT" => 11,
        "NZST" => 12,
        "NZDT" => 13,
        // The military letters of RFC 822; J is unused.
        one if one.len() == 1 => match one.as_bytes()[0] {
            letter @ b'A'..=b'I' => -i32::from(letter - b'A' + 1),
            letter @ b'K'..=b'M' => -i32::from(letter - b'A'),
            letter @ b'N'..=b'Y' => i32::from(letter - b'N' + 1),
            _ => return None,
        },
        _ => return None,
    };
    Some(hours * 60)
}

/// The first letters of the names of months in several languages, lower case. The longest match counts.
const MONTHS: [&[&str]; 12] = [
    &["jan", "jän", "ene", "gen", "ιαν", "янв", "sty"],
    &["feb", "fév", "fev", "φεβ", "фев", "lut"],
    &["mar", "mär", "mrz", "maa", "mrt", "μάρ", "μαρ", "μάώ", "мар", "már"],
    &["apr", "avr", "abr", "απρ", "апр", "kwi", "ápr"],
    &["may", "mai", "mei", "mag", "μάι", "μαϊ", "μαι", "май", "мая", "maj", "máj"],
    &["jun", "juin", "giu", "ιούν", "ιον", "июн", "cze", "jún"],
    &["jul", "juil", "lug", "ιούλ", "ιολ", "июл", "lip", "júl"],
    &["aug", "aoû", "aou", "ago", "αύγ", "αυγ", "авг", "sie"],
    &["sep", "set", "σεπ", "сен", "wrz", "sze"],
    &["oct", "okt", "out", "ott", "οκτ", "окт", "paź"],
    &["nov", "νοέ", "νοε", "ноя", "lis"],
    &["dec", "dez", "déc", "dic", "δεκ", "дек", "gru"],
];

fn month_by_name(word: &str) -> Option<u32> {
    let word = word.to_lowercase();
    let fits =
        |names: &[&str]| names.iter().filter(|name| word.starts_with(**name)).map(|name| name.len()).max();
    let found = MONTHS.iter().zip(1u32..).filter_map(|(names, month)| Some((fits(names)?, month)));
    found.max_by_key(|&(length, _)| length).map(|(_, month)| month)
}

/// A date with the name of its month, in any order: `Thu, 01 Jan 2004 19:48:21 GMT`, `Sun Jan 4 16:29:06 PST 2004`,
/// `4. Januar 2004`. In East Asian dates a character replaces the name.
fn parse_worded(text: &str) -> Option<Timestamp> {
    let mut civil = CivilTime::default();
    let (mut offset, mut numbers, mut has_clock, mut is_afternoon) = (0, Vec::new(), false, None);
    let separated: String = text.chars().map(|c| if is_sign_of_date(c) { ' ' } else { c }).collect();
    // `1-Jan-2004`, but not `-0500`.
    let separated = split_hyphens(&separated);
    for word in separated.split([' ', ',', '\t', '\n', '\r', '/']).filter(|word| !word.is_empty()) {
        let first = word.chars().next()?;
        if !has_clock && word.contains(':') && first.is_ascii_digit() {
            let end =
                word.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.'))).unwrap_or(word.len());
            read_clock(&word[..end], &mut civil)?;
            has_clock = true;
            if end < word.len() {
                offset = parse_offset(&word[end..]).unwrap_or(0);
            }
        } else if first.is_ascii_digit() {
            let end = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
            numbers.push(&word[..end]);
        } else if matches!(first, '+' | '-') {
            offset += parse_offset(word).unwrap_or(0);
        } else if has_clock && matches!(word.to_ascii_lowercase().as_str(), "am" | "pm") {
            is_afternoon = Some(word.eq_ignore_ascii_case("pm"));
        } else if let Some(found) = zone_after_clock(word, has_clock) {
            offset = found;
        } else if (civil.month == 0 || !has_clock)
            && let Some(month) = month_by_name(word)
        {
            // The last one counts, because `mar. 4 nov.` begins with a Tuesday.
            civil.month = month;
        }
    }
    take_numbers(&numbers, &mut civil)?;
    match is_afternoon {
        Some(true) if civil.hour < 12 => civil.hour += 12,
        Some(false) if civil.hour == 12 => civil.hour = 0,
        _ => {}
    }
    civil.at(offset)
}

/// A word is a zone only after the time of day; before it, `MAR` is a month.
fn zone_after_clock(word: &str, has_clock: bool) -> Option<i32> {
    parse_offset(word).filter(|_| has_clock)
}

fn split_hyphens(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut before, mut has_clock) = (' ', false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let after = letters.peek().copied().unwrap_or(' ');
        has_clock |= letter == ':';
        // After the time of day a hyphen before a digit is the sign of a zone.
        let joins = letter == '-' && (after.is_alphabetic() || before.is_alphabetic() && !has_clock);
        out.push(if joins { ' ' } else { letter });
        before = letter;
    }
    out
}

/// Characters between the numbers of an East Asian date.
fn is_sign_of_date(sign: char) -> bool {
    matches!(sign, '年' | '月' | '日' | '년' | '월' | '일' | '時' | '时')
}

/// Day and year, or all three if no month was named.
fn take_numbers(numbers: &[&str], civil: &mut CivilTime) -> Option<()> {
    let number = |text: &str| text.parse::<u32>().ok();
    match (civil.month, numbers) {
        (0, [year, month, day, ..]) if year.len() == 4 => {
            (civil.year, civil.month, civil.day) = (full_year(year)?, number(month)?, number(day)?);
        }
        (0, _) => return None,
        (_, [year, day, ..]) if year.len() == 4 => (civil.year, civil.day) = (full_year(year)?, number(day)?),
        (_, [day, year, ..]) => (civil.day, civil.year) = (number(day)?, full_year(year)?),
        (_, [year]) if year.len() == 4 => (civil.year, civil.day) = (full_year(year)?, 1),
        _ => return None,
    }
    Some(())
}

/// `31/12/2003 10:14`, `12/31/2003`, `31.12.2003`, and seconds or milliseconds since 1970.
fn parse_numeric(text: &str, order: DateOrder) -> Option<Timestamp> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: i64 = text.parse().ok()?;
        return match text.len() {
            9 | 10 => Some(Timestamp::from_secs(number)),
            12 | 13 => Some(Timestamp::from_millis(number)),
            14 => Timestamp::parse(text).ok(),
            _ => None,
        };
    }
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, ""));
    let separator = date.chars().find(|c| matches!(c, '/' | '.'))?;
    let parts: Vec<&str> = date.trim_end_matches(',').split(separator).collect();
    let [one, two, three] = parts[..] else { return None };
    let number = |text: &str| text.parse::<u32>().ok();
    let (first, second) = (number(one)?, number(two)?);
    let mut civil = match (one.len(), separator) {
        (4, _) => {
            CivilTime { year: full_year(one)?, month: second, day: number(three)?, ..CivilTime::default() }
        }
        _ => {
            let (month, day) =
                month_and_day(first, second, separator == '/' && order == DateOrder::MonthFirst);
            CivilTime { year: full_year(three)?, month, day, ..CivilTime::default() }
        }
    };
    let (clock, zone) = time.trim().split_once(' ').unwrap_or((time.trim(), ""));
    if !clock.is_empty() {
        read_clock(clock, &mut civil)?;
    }
    match zone.to_ascii_lowercase().as_str() {
        "pm" if civil.hour < 12 => civil.hour += 12,
        "am" if civil.hour == 12 => civil.hour = 0,
        _ => {}
    }
    civil.at(parse_offset(zone).unwrap_or(0))
}

/// Two numbers as month and day, in the expected order unless that is impossible.
fn month_and_day(first: u32, second: u32, is_month_first: bool) -> (u32, u32) {
    if is_month_first && first <= 12 || second > 12 { (first, second) } else { (second, first) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(
            parse(text, DateOrder::MonthFirst).map(Timestamp::to_rfc3339).as_deref(),
            Some(expected),
            "{text}"
        );
    }

    #[test]
    fn dates_of_mail() {
        check("Thu, 01 Jan 2004 19:48:21 GMT", "2004-01-01T19:48:21Z");
        check("Thu, 1 Jan 04 19:48:21 +0100", "2004-01-01T18:48:21Z");
        check("01 Jan 2004 19:48 EST", "2004-01-02T00:48:00Z");
        check("Thursday, 01-Jan-04 19:48:21 GMT", "2004-01-01T19:48:21Z");
        check("Thu,01 January 2004 7:48:21 PM PST", "2004-01-02T03:48:21Z");
        check("Thu Jan  1 19:48:21 2004", "2004-01-01T19:48:21Z");
        check("Sun Jan  4 16:29:06 PST 2004", "2004-01-05T00:29:06Z");
        check("Thu, 31 Jun 2004 19:48:21 GMT", "2004-06-30T19:48:21Z");
        check("Wed, 02 Apr 2025 10:00:00 GMT-0500", "2025-04-02T15:00:00Z");
    }

    #[test]
    fn dates_of_iso_8601() {
        check("2003-12-31T10:14:55Z", "2003-12-31T10:14:55Z");
        check("2003-12-31T10:14:55.732+01:00", "2003-12-31T09:14:55Z");
        check("2003-12-31 10:14:55.0", "2003-12-31T10:14:55Z");
        check("2003-12-31T10:14-08:00", "2003-12-31T18:14:00Z");
        check("2003-12", "2003-12-01T00:00:00Z");
        check("2003", "2003-01-01T00:00:00Z");
        check("20031231", "2003-12-31T00:00:00Z");
        check("2003-365", "2003-12-31T00:00:00Z");
        check("03-12-31", "2003-12-31T00:00:00Z");
        check("2003-12-31T24:00:00Z", "2004-01-01T00:00:00Z");
    }

    #[test]
    fn dates_of_people() {
        check("4. Januar 2004", "2004-01-04T00:00:00Z");
        check("mer., 4 févr. 2004 10:00:00 +0100", "2004-02-04T09:00:00Z");
        check("2004년 05월 28일 01:31:15", "2004-05-28T01:31:15Z");
        check("mar. 4 nov. 2003 10:00", "2003-11-04T10:00:00Z");
        check("2003-12-31 10:14:55 Nowhere", "2003-12-31T10:14:55Z");
        check("31/12/2003 10:14", "2003-12-31T10:14:00Z");
        let by_day = parse("5/6/2026", DateOrder::DayFirst).map(Timestamp::to_rfc3339);
        assert_eq!(by_day.as_deref(), Some("2026-06-05T00:00:00Z"));
        check("5/6/2026", "2026-05-06T00:00:00Z");
        check("12/31/2003", "2003-12-31T00:00:00Z");
        check("31.12.2003, 10:14:55", "2003-12-31T10:14:55Z");
        check("1072865695", "2003-12-31T10:14:55Z");
        for none in ["", "yesterday", "99999999999999999999", "2003-13-45", "0000-00-00", "Foo, 99 Bar 12345"]
        {
            assert_eq!(parse(none, DateOrder::MonthFirst), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[0-9TZ:+ .,/-]{0,30}|\\PC{0,30}") {
            let _ = parse(&text, DateOrder::MonthFirst);
        }

        /// All common formats of an instant are parsed to that instant.
        #[test]
        fn formats_agree(secs in 0i64..4_000_000_000) {
            let instant = Timestamp::from_secs(secs);
            let formats = ["%Y-%m-%dT%H:%M:%SZ", "%a, %d %b %Y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S UTC"];
            for format in formats {
                let text = instant.to_jiff().strftime(format).to_string();
                prop_assert_eq!(parse(&text, DateOrder::MonthFirst), Some(instant), "{}", text);
            }
        }
    }
}
