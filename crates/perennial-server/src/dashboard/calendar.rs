//! `/calendar`, `/web/*/<url>`, `/web/2026*/<url>`: captures of a URL by day; lists of captures and of URLs.

use std::collections::BTreeMap;

use hyper::http::Response;
use maud::{Markup, PreEscaped, html};
use perennial_core::memento::replay_url::escape;
use perennial_core::time::Timestamp;
use perennial_warc::cdxj::CdxjLine;
use perennial_warc::surt::{KeyRange, MatchType, surt};

use super::components::{date_time, untrusted};
use super::layout::{Place, STYLE, Shell, Tab, page_href, version_href};
use super::{Problem, Request};
use crate::body::Body;
use crate::pages;
use perennial_archive::Snapshot;
use perennial_archive::store::{CaptureDay, PageRow};
use perennial_engine::html;
use perennial_engine::html::dates::{day_of_year, month_name, start_of_day, year_and_month};

/// The longest list.
const MAX_ROWS: usize = 1_000;

struct Calendar<'a> {
    url: &'a str,
    /// Earliest first.
    days: Vec<CaptureDay>,
    /// If it has no captures, the last year with captures is shown.
    year: Option<i16>,
}

pub(crate) fn calendar(
    request: &Request<'_>,
    url: &str,
    year: Option<i16>,
) -> Result<Response<Body>, Problem> {
    let key = surt(url);
    let (from, to) = (Timestamp::EPOCH, Timestamp::from_millis(i64::MAX));
    let days = request.with(|snapshot| snapshot.store().key_days(&key, from, to))?;
    if days.is_empty() {
        return Err(Problem::not_archived(url));
    }
    Ok(pages::html(render(&Calendar { url, days, year }, request.place())))
}

fn render(calendar: &Calendar<'_>, place: Place<'_>) -> Markup {
    let Calendar { url, days, .. } = calendar;
    let base = place.base;
    let n_captures: u64 = days.iter().map(|day| day.n_captures).sum();
    let mut years: BTreeMap<i16, u64> = BTreeMap::new();
    for day in days {
        *years.entry(year_and_month(start_of_day(day.number)).0).or_default() += day.n_captures;
    }
    let last = years.keys().next_back().copied().unwrap_or(1970);
    let year = calendar.year.filter(|year| years.contains_key(year)).unwrap_or(last);
    let main = html! {
        h1 { (n_captures) " " @if n_captures == 1 { "capture" } @else { "captures" } " on " (days.len()) " days" }
        (url_link(base, url))
        ul.years {
            @for (other, n) in &years {
                li {
                    @if *other == year { b { (other) } } @else { a href={ (base) "/web/" (other) "*/" (url) } { (other) } }
                    " " span.mute { (n) }
                }
            }
        }
        div.cal.year {
            @for month in 1..=12 {
                (self::month(year, month, html! { (month_name(month)) }, |number, date| cell(calendar, base, number, date)))
            }
        }
        p.mute {
            "Days are UTC. Darker days have more captures: 1, up to 4, up to 16, more. "
            a href={ (base) "/web/timemap/link/" (url) } { "All captures as a TimeMap" }
        }
    };
    Shell::new(place, Tab::Calendar, "Captures", None).page(&main)
}

/// The URL, linked to the page about it.
fn url_link(base: &str, url: &str) -> Markup {
    html! { p.lead { a href=(page_href(base, url)) { (untrusted(url)) } } }
}

/// A month as a table of weeks. `cell` gets the day as the number of days since 1970 and as the day of the month.
pub(crate) fn month(year: i16, month: usize, caption: Markup, cell: impl Fn(i64, usize) -> Markup) -> Markup {
    let Ok(start) = Timestamp::parse(&format!("{year:04}-{month:02}-01")) else { return html! {} };
    let first = start.as_millis().div_euclid(86_400_000);
    let n_days = (first..first + 31)
        .take_while(|number| year_and_month(start_of_day(*number)) == (year, month))
        .count();
    // 1 January 1970 was a Thursday.
    let n_before = (first + 3).rem_euclid(7) as usize;
    let cells: Vec<Option<usize>> =
        std::iter::repeat_n(None, n_before).chain((1..=n_days).map(Some)).collect();
    html! {
        table {
            caption { (caption) }
            thead { tr { @for day in ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"] { th scope="col" { (day) } } } }
            tbody {
                @for week in cells.chunks(7) {
                    tr {
                        @for date in week {
                            td { @if let Some(date) = date { (cell(first + *date as i64 - 1, *date)) } }
                        }
                    }
                }
            }
        }
    }
}

fn cell(calendar: &Calendar<'_>, base: &str, number: i64, date: usize) -> Markup {
    let found = calendar.days.binary_search_by_key(&number, |day| day.number).ok();
    let Some(day) = found.map(|index| &calendar.days[index]) else { return html! { (date) } };
    let step = match day.n_captures {
        1 => 1,
        2..=4 => 2,
        5..=16 => 3,
        _ => 4,
    };
    let digits = day.first.to_digits14();
    // A single capture is replayed, several are listed.
    let time = if day.n_captures == 1 { digits } else { format!("{}*", &digits[..8]) };
    html! {
        a class={ "h" (step) } href={ (base) "/web/" (time) "/" (calendar.url) } title={ (day.n_captures) " captures" } { (date) }
    }
}

/// `/web/20260102*/<url>`: the captures of a span.
pub(crate) fn captures(
    request: &Request<'_>,
    url: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Response<Body>, Problem> {
    let mut found = request.with(|snapshot| read_captures(snapshot, url, from, to))?;
    if found.is_empty() {
        return Err(Problem::not_archived(url));
    }
    let base = &request.served.base;
    let more = (found.len() > MAX_ROWS).then(|| {
        let next = found.split_off(MAX_ROWS)[0].0.to_digits14();
        format!("{base}/web/timemap/link/{next}/{url}")
    });
    let main = html! {
        h1 { (found.len()) " captures" }
        (url_link(base, url))
        table.list {
            thead { tr { th { "Time (UTC)" } th { "Status" } th { "Type" } } }
            tbody {
                @for (time, line) in &found {
                    tr {
                        td { a href=(version_href(base, *time, url)) { time datetime=(time.to_rfc3339()) { (date_time(*time)) } } }
                        td { (line.status.as_deref().unwrap_or_default()) }
                        td { (line.mime.as_deref().unwrap_or_default()) }
                    }
                }
            }
        }
        (more_link(more.as_deref()))
        p { a href={ (base) "/web/*/" (url) } { "Calendar" } }
    };
    Ok(pages::html(Shell::new(request.place(), Tab::Calendar, "Captures", None).page(&main)))
}

fn read_captures(
    snapshot: &Snapshot,
    url: &str,
    from: Timestamp,
    to: Timestamp,
) -> anyhow::Result<Vec<(Timestamp, CdxjLine)>> {
    let end = to.to_digits14();
    let range = KeyRange {
        start: format!("{} {}", surt(url), from.to_digits14()).into(),
        end: KeyRange::of(url, MatchType::Exact).end,
    };
    let mut found = Vec::new();
    for line in snapshot.lines(&range)? {
        let Ok(line) = CdxjLine::parse(&line?) else { continue };
        if line.timestamp > end || found.len() > MAX_ROWS {
            break;
        }
        found.extend(line.date().map(|time| (time, line)));
    }
    Ok(found)
}

/// `/web/*/<prefix>*`: the URLs that begin with a prefix. `after` is the last URL of the part before.
pub(crate) fn urls(
    request: &Request<'_>,
    prefix: &str,
    after: Option<&str>,
) -> Result<Response<Body>, Problem> {
    let range = KeyRange::of(prefix, MatchType::Prefix);
    let after = after.map(|url| (surt(url), url));
    let after = after.as_ref().map(|(key, url)| (key.as_str(), *url));
    let mut found = request.with(|snapshot| snapshot.store().pages_in_keys(&range, after, MAX_ROWS + 1))?;
    let base = &request.served.base;
    let has_more = found.len() > MAX_ROWS;
    found.truncate(MAX_ROWS);
    let more = found.last().filter(|_| has_more);
    let more = more.map(|last| format!("{base}/web/*/{prefix}*?after={}", escape(&last.url)));
    let day = |at: Option<Timestamp>| at.map(day_of_year).unwrap_or_default();
    let row = |page: &PageRow| {
        html! {
            tr {
                td { a href={ (base) "/web/*/" (page.url) } { (page.url) } }
                td.figure { (page.n_captures) }
                td { time { (day(page.first_seen)) } }
                td { time { (day(page.last_seen)) } }
                td { (page.mime.as_deref().unwrap_or_default()) }
            }
        }
    };
    let main = html! {
        h1 { @if has_more { "More than " } (found.len()) " captured URLs" }
        p.lead { (untrusted(prefix)) }
        table.list {
            thead { tr { @for name in ["URL", "Captures", "First", "Last", "Type"] { th { (name) } } } }
            tbody { @for page in &found { (row(page)) } }
        }
        (more_link(more.as_deref()))
    };
    Ok(pages::html(Shell::new(request.place(), Tab::Calendar, "Captured URLs", None).page(&main)))
}

fn more_link(more: Option<&str>) -> Markup {
    html! { @if let Some(more) = more { p { a href=(more) { "More" } } } }
}

/// A field for a URL for each archive.
pub(crate) fn home(places: &[Place<'_>]) -> Markup {
    let main = html! {
        h1 { "Captures of a URL" }
        @for place in places {
            h2 { a href={ (place.base) "/" } { (place.name) } }
            form.searchbar action={ (place.base) "/web/" } method="get" {
                input name="url" type="search" inputmode="url" aria-label="URL of a page" placeholder="https://example.org/ or example.org/news*" required;
                button.btn.go { "Show captures" }
            }
        }
        p.lead {
            "Replay a page with " code { "/web/20260102030405/https://example.org/" } ", or see its calendar at "
            code { "/web/*/https://example.org/" } ". Programs can use " code { "/cdx" } ", " code { "/web/timemap/link/" } " and "
            code { "Accept-Datetime" } "."
        }
    };
    // A list of several archives has no navigation.
    match places {
        [place] => Shell::new(*place, Tab::Calendar, "Captures", None).page(&main),
        _ => PreEscaped(html::page("Perennial", STYLE, &html! { main.wrap { (main) } }.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(date: &str, n_captures: u64) -> CaptureDay {
        let first = Timestamp::parse(date).unwrap();
        CaptureDay { number: first.as_millis().div_euclid(86_400_000), n_captures, first }
    }

    #[test]
    fn each_day_with_captures_is_a_link() {
        let days = vec![day("2023-12-31", 1), day("2024-02-29", 1), day("2024-03-01", 30)];
        let place = Place { name: "a", base: "/a", ..Place::default() };
        let page = render(&Calendar { url: "http://x.example/?<b>", days, year: None }, place).0;
        assert!(page.contains("32 captures on 3 days"));
        assert!(page.contains("href=\"/a/web/20240229000000/http://x.example/?&lt;b&gt;\""), "{page}");
        assert!(page.contains("class=\"h4\" href=\"/a/web/20240301*/"));
        assert!(page.contains("href=\"/a/web/2023*/"));
        assert!(!page.contains("<b>\""), "the URL is escaped");
        let cells = page.matches("<td>").count() - page.matches("<td></td>").count();
        assert_eq!(cells, 366, "2024 was a leap year");
        // 1 February 2024 was a Thursday: three empty cells before it.
        let february = page.split("<caption>February</caption>").nth(1).unwrap();
        let first_week = february.split("<tbody>").nth(1).unwrap();
        assert!(first_week.starts_with("<tr><td></td><td></td><td></td><td>1</td>"));
    }

    #[test]
    fn a_calendar_may_be_empty() {
        let calendar = Calendar { url: "http://x.example/", days: Vec::new(), year: Some(2020) };
        assert!(render(&calendar, Place::default()).0.contains("0 captures on 0 days"));
    }
}
