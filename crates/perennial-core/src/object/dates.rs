//! What pages write for a date -> an instant: the forms of machines, and the words of people in some languages.

use crate::time::Timestamp;

/// Longer texts are not searched for a date.
const MAX_BYTES: usize = 200;
/// No page is older than the web, by its own account.
const FIRST_YEAR: i16 = 1990;
/// A later year is a number of something else.
const LAST_YEAR: i16 = 2100;

/// Reads what stands in an attribute or a field: RFC 3339 and its relatives, or a date in words. A date without a time is
/// the beginning of its day; one without an offset is in UTC.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    by_machine(text).or_else(|| in_words(text))
}

fn by_machine(text: &str) -> Option<Timestamp> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return jiff::fmt::rfc2822::parse(text).ok().map(|zoned| from_jiff(zoned.timestamp()));
    }
    if text.len() >= 10 && text.len() <= 13 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: i64 = text.parse().ok()?;
        return in_range(if text.len() >= 13 {
            Timestamp::from_millis(number)
        } else {
            Timestamp::from_secs(number)
        });
    }
    let has_date = text.len() >= 10 && text.as_bytes()[4] == b'-' && text.as_bytes()[7] == b'-';
    if !has_date {
        return None;
    }
    // `2026-11-17 09:30:00 +01:00` and `2026-11-17T09:30+0100` are common and no RFC 3339.
    let joined: String = text.char_indices().filter(|&(at, c)| at < 11 || c != ' ').map(|(_, c)| c).collect();
    let joined = joined.replacen(' ', "T", 1);
    let whole = Timestamp::parse(&joined).ok();
    let without_name =
        || Timestamp::parse(joined.trim_end_matches(|c: char| c.is_ascii_alphabetic() && c != 'Z')).ok();
    let day = || Timestamp::parse(text.get(..10)?).ok();
    in_range(whole.or_else(without_name).or_else(day)?)
}

fn from_jiff(instant: jiff::Timestamp) -> Timestamp {
    Timestamp::from_millis(instant.as_millisecond())
}

fn in_range(time: Timestamp) -> Option<Timestamp> {
    let year: i16 = time.to_digits14().get(..4)?.parse().ok()?;
    (FIRST_YEAR..=LAST_YEAR).contains(&year).then_some(time)
}

/// A day in words or numbers anywhere in a short text: `18 November 2019`, `Nov. 18, 2019`, `18.11.2019`, `2019/11/18`,
/// `2019年11月18日`.
pub(super) fn in_words(text: &str) -> Option<Timestamp> {
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    let pieces: Vec<Piece> = pieces(text);
    let years = (0..pieces.len())
        .filter(|&at| matches!(pieces[at], Piece::Number(n, 4) if (1990..=2100).contains(&n)));
    years.filter_map(|at| around_year(&pieces, at)).next()
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Piece {
    /// A number, and how many digits it has.
    Number(u32, usize),
    Month(i8),
    Other,
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let same = |c: char| if first.is_ascii_digit() { c.is_ascii_digit() } else { c.is_alphabetic() };
        let end = rest.find(|c| !same(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let word = &rest[..end];
        rest = &rest[end..];
        if first.is_ascii_digit() {
            pieces.push(Piece::Number(word.parse().unwrap_or(u32::MAX), word.len()));
        } else if first.is_alphabetic() {
            pieces.push(month(word).map_or(Piece::Other, Piece::Month));
        }
    }
    // `18th of November`, `18 de noviembre de 2019`, `2019年11月18日`.
    pieces.retain(|piece| *piece != Piece::Other);
    pieces
}

fn around_year(pieces: &[Piece], year_at: usize) -> Option<Timestamp> {
    let Piece::Number(year, _) = pieces[year_at] else { return None };
    let at = |offset: isize| year_at.checked_add_signed(offset).and_then(|place| pieces.get(place)).copied();
    let day = |piece: Option<Piece>| match piece {
        Some(Piece::Number(n @ 1..=31, 1 | 2)) => Some(n),
        _ => None,
    };
    let (month, day) = match (at(-2), at(-1), at(1), at(2)) {
        (first, Some(Piece::Month(month)), _, _) if day(first).is_some() => (month, day(first)?),
        (Some(Piece::Month(month)), second, _, _) if day(second).is_some() => (month, day(second)?),
        (first, second, _, _) if day(first).is_some() && day(second).is_some() => {
            by_numbers(day(first)?, day(second)?)?
        }
        (_, _, Some(Piece::Month(month)), second) if day(second).is_some() => (month, day(second)?),
        (_, _, first, second) if day(first).is_some_and(|n| n <= 12) && day(second).is_some() => {
            (day(first)? as i8, day(second)?)
        }
        _ => return None,
    };
    Timestamp::parse(&format!("{year:04}-{month:02}-{day:02}")).ok()
}

/// Day and month, in the order of most of the world unless that makes no date.
fn by_numbers(first: u32, second: u32) -> Option<(i8, u32)> {
    match (first, second) {
        (day, month @ 1..=12) => Some((month as i8, day)),
        (month @ 1..=12, day) => Some((month as i8, day)),
        _ => None,
    }
}

/// Months by the first letters of their names in English, German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian.
fn month(word: &str) -> Option<i8> {
    const STARTS: [&[&str]; 12] = [
        &["jan", "jän", "ene", "gen", "sty", "янв"],
        &["feb", "fév", "fev", "lut", "фев"],
        &["mar", "mär", "maa", "mrz", "мар"],
        &["apr", "avr", "abr", "kwi", "апр"],
        &["may", "mai", "mag", "mei", "maj", "мая", "май"],
        &["jun", "juin", "giu", "cze", "июн"],
        &["jul", "juil", "lug", "lip", "июл"],
        &["aug", "aoû", "aou", "ago", "sie", "авг"],
        &["sep", "set", "wrz", "сен"],
        &["oct", "okt", "out", "ott", "paź", "окт"],
        &["nov", "lis", "ноя"],
        &["dec", "dez", "déc", "dic", "gru", "дек"],
    ];
    if word.chars().count() < 3 || word.chars().count() > 12 {
        return None;
    }
    let small = word.to_lowercase();
    // `juin` and `juil` begin alike.
    let found = STARTS.iter().position(|starts| starts.iter().any(|start| small.starts_with(start)))?;
    Some(if small.starts_with("juil") { 7 } else { found as i8 + 1 })
}

/// The day that an address names: `/2019/11/18/`, `/2019-11-18-`.
pub(super) fn in_address(address: &str) -> Option<Timestamp> {
    let path = address.split_once("://").map_or(address, |(_, rest)| rest);
    let path = &path[..path.floor_char_boundary(MAX_BYTES * 4)];
    let numbers: Vec<&str> = path.split(['/', '-', '_', '.']).collect();
    let day = |window: &[&str]| -> Option<Timestamp> {
        let is_date = window[0].len() == 4 && window[1].len() == 2 && window[2].len() == 2;
        let is_number = window.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        (is_date && is_number).then(|| Timestamp::parse(&window.join("-")).ok()).flatten().and_then(in_range)
    };
    numbers.windows(3).find_map(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Option<String> {
        parse(text).map(|time| time.to_rfc3339())
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
            "Nov. 18, 2019 at 9:08",
            "18 November 2019",
            "Monday, 18th of November, 2019",
            "18. November 2019, 10:15 Uhr",
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
        assert_eq!(day("2 juillet 2020").as_deref(), Some("2020-07-02T00:00:00Z"));
    }

    #[test]
    fn what_is_no_date() {
        for text in [
            "",
            "Room 2019",
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
    fn days_in_addresses() {
        let of = |address: &str| in_address(address).map(|time| time.to_digits14()[..8].to_owned());
        assert_eq!(of("https://a.example/2019/11/18/title.html").as_deref(), Some("20191118"));
        assert_eq!(of("https://a.example/blog/2019-11-18-title").as_deref(), Some("20191118"));
        assert_eq!(of("https://a.example/2019/99/18/"), None);
        assert_eq!(of("https://a.example/20191118"), None);
    }
}
