//! A URL -> whether it looks like one of endlessly many that a server generates.
//!
//! Endless calendars, relative links that nest themselves and sorting parameters in every order produce new URLs
//! without new content. Each check is a limit that real pages hardly reach. The result names the limit, so the
//! log can explain it.

use url::Url;

use crate::time::Timestamp;

/// The limit that a URL exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trap {
    /// Too many path segments.
    DeepPath,
    /// A segment, or a run of segments, is repeated too often.
    RepeatedSegments,
    /// A parameter occurs too often, or there are too many parameters.
    ManyParameters,
    /// A calendar page too far from today.
    FarDate,
}

const MAX_SEGMENTS: usize = 24;
const MAX_REPEATS: usize = 3;
const MAX_PARAMETERS: usize = 16;
const MAX_SAME_PARAMETER: usize = 4;
const FIRST_YEAR: i64 = 1990;
const YEARS_AHEAD: i64 = 2;

/// The limit that `url` exceeds at the time `now`, if any.
pub fn find_trap(url: &Url, now: Timestamp) -> Option<Trap> {
    let segments: Vec<&str> = url.path().split('/').filter(|segment| !segment.is_empty()).collect();
    if segments.len() > MAX_SEGMENTS {
        return Some(Trap::DeepPath);
    }
    if repeats(&segments) {
        return Some(Trap::RepeatedSegments);
    }
    let names = parameter_names(url);
    if names.len() > MAX_PARAMETERS || most_common(&names) > MAX_SAME_PARAMETER {
        return Some(Trap::ManyParameters);
    }
    is_far_date(url, &segments, now).then_some(Trap::FarDate)
}

/// Whether a run of one to four segments occurs more than [`MAX_REPEATS`] times in a row.
fn repeats(segments: &[&str]) -> bool {
    (1..=4).any(|width| {
        let mut n_same = 0;
        for at in width..segments.len() {
            n_same = if segments[at] == segments[at - width] { n_same + 1 } else { 0 };
            if n_same >= width * MAX_REPEATS {
                return true;
            }
        }
        false
    })
}

fn parameter_names(url: &Url) -> Vec<&str> {
    let pairs = url.query().into_iter().flat_map(|query| query.split('&'));
    let mut names: Vec<&str> = pairs.filter_map(|pair| pair.split('=').next()).collect();
    names.sort_unstable();
    names
}

fn most_common(sorted: &[&str]) -> usize {
    sorted.chunk_by(|a, b| a == b).map(<[&str]>::len).max().unwrap_or(0)
}

/// Judges only URLs that look like a calendar: a year next to a month, or a year parameter.
fn is_far_date(url: &Url, segments: &[&str], now: Timestamp) -> bool {
    let this_year = 1970 + (now.as_secs() as f64 / 31_556_952.0).floor() as i64;
    let is_far = |year: i64| year < FIRST_YEAR || year > this_year + YEARS_AHEAD;
    let in_path = segments.windows(2).any(|pair| {
        let month = pair[1].parse::<u32>().is_ok_and(|month| (1..=12).contains(&month) && pair[1].len() <= 2);
        month && year(pair[0]).is_some_and(is_far)
    });
    in_path
        || url
            .query_pairs()
            .any(|(name, value)| is_date_name(&name) && first_year(&value).is_some_and(is_far))
}

fn is_date_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ["year", "month", "date", "day", "yr", "ical"].iter().any(|word| lower.contains(word))
}

fn first_year(value: &str) -> Option<i64> {
    year(value.split(|c: char| !c.is_ascii_digit()).next()?.get(..4)?)
}

fn year(text: &str) -> Option<i64> {
    let is_year = text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit());
    is_year.then(|| text.parse().ok()).flatten().filter(|year| (1000..=9999).contains(year))
}

/// URLs that differ only in numbers, long tokens and parameter values have the same shape. A limit on the pages per
/// shape and host ends the traps that no single URL reveals.
pub fn shape(url: &Url) -> String {
    let mut shape = String::with_capacity(url.path().len() + 16);
    for segment in url.path().split('/').filter(|segment| !segment.is_empty()) {
        shape.push('/');
        shape.push_str(if is_token(segment) { "*" } else { segment });
    }
    for name in parameter_names(url) {
        shape.push('&');
        shape.push_str(name);
    }
    shape
}

fn is_token(segment: &str) -> bool {
    segment.bytes().any(|b| b.is_ascii_digit()) || segment.len() > 24
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<Trap>) {
        let url = Url::parse(&format!("https://e.org{path}")).unwrap();
        assert_eq!(find_trap(&url, Timestamp::parse("2026-11-16").unwrap()), expected, "{path}");
    }

    #[test]
    fn traps_are_named() {
        check(&"/x1/y2".repeat(3), None);
        check(&"/a/b".repeat(5), Some(Trap::RepeatedSegments));
        check("/a/a/a/a", Some(Trap::RepeatedSegments));
        check(&(0..30).map(|n| format!("/s{n}")).collect::<String>(), Some(Trap::DeepPath));
        check("/l?s=1&s=2&s=3&s=4&s=5", Some(Trap::ManyParameters));
        check("/calendar/2054/03", Some(Trap::FarDate));
        check("/calendar?month=2031-05", Some(Trap::FarDate));
        check("/calendar?year=1804", Some(Trap::FarDate));
    }

    #[test]
    fn real_pages_pass() {
        for path in [
            "/",
            "/2026/11/16/title",
            "/2027/01",
            "/a/a/b",
            "/blog/blog/x",
            "/item/2054",
            "/p?id=3054&year=2026",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn shapes_fold_numbers_and_values() {
        let shape_of = |path: &str| shape(&Url::parse(&format!("https://e.org{path}")).unwrap());
        assert_eq!(shape_of("/news/123/x?b=2&a=1"), shape_of("/news/77/x?a=9&b=1"));
        assert_ne!(shape_of("/news/123"), shape_of("/shop/123"));
    }
}
