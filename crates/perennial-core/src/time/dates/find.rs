//! A text that contains a date, or a URL -> the day.

use super::{DateOrder, month_and_day, month_by_name, parse};
use crate::time::Timestamp;

/// Longer texts are not searched for a date.
const MAX_BYTES: usize = 200;
/// No page is older than the web, and later numbers are not years.
const YEARS: std::ops::RangeInclusive<u32> = 1990..=2100;

/// Finds a day in words or numbers in a short text: `18 November 2019`, `Nov. 18, 2019`, `18.11.2019`, `2019/11/18`,
/// `2019年11月18日`.
pub fn find(text: &str) -> Option<Timestamp> {
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    let pieces: Vec<DateToken> = date_tokens(text);
    let years =
        (0..pieces.len()).filter(|&at| matches!(pieces[at], DateToken::Number(n, 4) if YEARS.contains(&n)));
    years.filter_map(|at| date_around_year(&pieces, at)).next()
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum DateToken {
    /// A number, and its count of digits.
    Number(u32, usize),
    Month(u32),
    Other,
}

fn date_tokens(text: &str) -> Vec<DateToken> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let same = |c: char| if first.is_ascii_digit() { c.is_ascii_digit() } else { c.is_alphabetic() };
        let end = rest.find(|c| !same(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let word = &rest[..end];
        rest = &rest[end..];
        if first.is_ascii_digit() {
            pieces.push(DateToken::Number(word.parse().unwrap_or(u32::MAX), word.len()));
        } else if first.is_alphabetic() {
            pieces.push(month_in_word(word).map_or(DateToken::Other, DateToken::Month));
        }
    }
    // `18th of November`, `18 de noviembre de 2019`, `2019年11月18日`.
    pieces.retain(|piece| *piece != DateToken::Other);
    pieces
}

fn month_in_word(word: &str) -> Option<u32> {
    (3..=12).contains(&word.chars().count()).then(|| month_by_name(word)).flatten()
}

fn date_around_year(pieces: &[DateToken], year_at: usize) -> Option<Timestamp> {
    let DateToken::Number(year, _) = pieces[year_at] else { return None };
    let at = |offset: isize| year_at.checked_add_signed(offset).and_then(|place| pieces.get(place)).copied();
    let day = |piece: Option<DateToken>| match piece {
        Some(DateToken::Number(n @ 1..=31, 1 | 2)) => Some(n),
        _ => None,
    };
    let (month, day) = match (at(-2), at(-1), at(1), at(2)) {
        (first, Some(DateToken::Month(month)), _, _) if day(first).is_some() => (month, day(first)?),
        (Some(DateToken::Month(month)), second, _, _) if day(second).is_some() => (month, day(second)?),
        (first, second, _, _) if day(first).is_some() && day(second).is_some() => {
            // Day first, as most of the world writes it, unless that is not a date.
            month_and_day(day(first)?, day(second)?, false)
        }
        (_, _, Some(DateToken::Month(month)), second) if day(second).is_some() => (month, day(second)?),
        (_, _, first, second) if day(first).is_some_and(|n| n <= 12) && day(second).is_some() => {
            (day(first)?, day(second)?)
        }
        _ => return None,
    };
    Timestamp::parse(&format!("{year:04}-{month:02}-{day:02}")).ok()
}

/// Finds the day in a URL: `/2019/11/18/`, `/2019-11-18-`.
pub fn find_in_url(url: &str) -> Option<Timestamp> {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = &path[..path.floor_char_boundary(MAX_BYTES * 4)];
    let numbers: Vec<&str> = path.split(['/', '-', '_', '.']).collect();
    let day = |window: &[&str]| -> Option<Timestamp> {
        let is_date = window[0].len() == 4 && window[1].len() == 2 && window[2].len() == 2;
        let is_number = window.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        (is_date && is_number).then(|| Timestamp::parse(&window.join("-")).ok()).flatten().filter(is_in_range)
    };
    numbers.windows(3).find_map(day)
}

fn is_in_range(time: &Timestamp) -> bool {
    time.to_digits14().get(..4).and_then(|year| year.parse().ok()).is_some_and(|year| YEARS.contains(&year))
}

/// Parses an attribute or a field of a page: a date, or a day in a text. A year alone, or a date before the web, is
/// not a date.
pub fn parse_lenient(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    let whole = (text.len() >= MIN_BYTES).then(|| parse(text, DateOrder::DayFirst)).flatten();
    whole.filter(is_in_range).or_else(|| find(text))
}

/// Shorter texts are a year, or a year and a month.
const MIN_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Option<String> {
        parse_lenient(text).map(|time| time.to_rfc3339())
    }

    #[test]
    fn what_machines_write() {
        for (text, expected) in [
            ("2019-11-18T08:22:00-05:00", "2019-11-18T13:22:00Z"),
            ("2019-11-18T08:22:00+0100", "2019-11-18T07:22:00Z"),
            ("2019-11-18 08:22:00", "2019-11-18T08:22:00Z"),
            ("2019-11-18 08:22:00 +01:00", "2019-11-18T07:22:00Z"),
            ("2019-11-18T08:22:00.123Z", "2019-11-18T08:22:00Z"),
            ("2019-11-18", "2019-11-18T00:00:00Z"),
            ("2019-11-18T08:22 nonsense", "2019-11-18T08:22:00Z"),
            ("Mon, 18 Nov 2019 08:22:00 GMT", "2019-11-18T08:22:00Z"),
            ("1574065320", "2019-11-18T08:22:00Z"),
            ("1574065320000", "2019-11-18T08:22:00Z"),
        ] {
            assert_eq!(day(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_people_write() {
        for text in [
            "November 18, 2019",
            "18 November 2019",
            "Monday, 18th of November, 2019",
            "18.11.2019",
            "11/18/2019",
            "2019/11/18",
            "2019年11月18日",
            "18 de noviembre de 2019",
            "18 novembre 2019",
            "18 ноября 2019",
        ] {
            assert_eq!(day(text).as_deref(), Some("2019-11-18T00:00:00Z"), "{text}");
        }
        assert_eq!(day("Nov. 18, 2019 at 9:08").as_deref(), Some("2019-11-18T09:08:00Z"));
        assert_eq!(day("18. November 2019, 10:15 Uhr").as_deref(), Some("2019-11-18T10:15:00Z"));
        assert_eq!(
            day("By Ann Example on 18. November 2019, who knows").as_deref(),
            Some("2019-11-18T00:00:00Z")
        );
        assert_eq!(day("2 juillet 2020").as_deref(), Some("2020-07-02T00:00:00Z"));
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "Room 2019",
            "2019",
            "12 of 30",
            "Version 2.0.1",
            "32.13.2019",
            "18 November 1850",
            "0",
            "-----------",
            "é".repeat(300).as_str(),
        ] {
            assert_eq!(day(text), None, "{text}");
        }
    }

    #[test]
    fn days_in_urls() {
        let of = |url: &str| find_in_url(url).map(|time| time.to_digits14()[..8].to_owned());
        assert_eq!(of("https://a.example/2019/11/18/title.html").as_deref(), Some("20191118"));
        assert_eq!(of("https://a.example/blog/2019-11-18-title").as_deref(), Some("20191118"));
        assert_eq!(of("https://a.example/2019/99/18/"), None);
        assert_eq!(of("https://a.example/20191118"), None);
    }
}
