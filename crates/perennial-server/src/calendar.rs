//! Captures of an address by day -> a calendar; captures and addresses -> lists. All readable without a script.

use std::collections::BTreeMap;
use std::fmt::Write;

use perennial_core::text::markup::{escaped, isolated};
use perennial_core::time::{Span, Timestamp};

use super::SERVE_STYLE;
use crate::html_face::{Framed, Place, Tab, page_address};
use perennial_engine::html::dates::month_name;
use perennial_engine::html::page;

const DAY: Span = Span::from_hours(24);

/// Captures of one UTC day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Day {
    /// Days since 1970.
    pub number: i64,
    /// How many.
    pub n_captures: u64,
    /// The first of them.
    pub first: Timestamp,
}

impl Day {
    fn date(&self) -> (i64, u32, u32) {
        date_of(Timestamp::EPOCH + Span::from_millis(DAY.as_millis() * self.number))
    }
}

/// Year, month and day of an instant.
fn date_of(time: Timestamp) -> (i64, u32, u32) {
    let digits = time.to_digits14();
    let part = |from: usize, to: usize| digits.get(from..to).and_then(|text| text.parse().ok()).unwrap_or(1);
    (i64::from(part(0, 4)), part(4, 6), part(6, 8))
}

/// All captures of an address, one year of them day by day.
pub struct Calendar<'a> {
    /// Which archive.
    pub place: Place<'a>,
    /// The address.
    pub url: &'a str,
    /// Days with captures, earliest first.
    pub days: &'a [Day],
    /// The year that is shown; the last one with captures if there is none of it.
    pub year: Option<i64>,
}

/// The page.
pub fn calendar(shown: &Calendar<'_>) -> String {
    let Calendar { url, days, .. } = shown;
    let base = shown.place.base;
    let n_captures: u64 = days.iter().map(|day| day.n_captures).sum();
    let mut years: BTreeMap<i64, u64> = BTreeMap::new();
    for day in *days {
        *years.entry(day.date().0).or_default() += day.n_captures;
    }
    let last = years.keys().next_back().copied().unwrap_or(1970);
    let year = shown.year.filter(|year| years.contains_key(year)).unwrap_or(last);
    let captures = if n_captures == 1 { "capture" } else { "captures" };
    let mut body = format!("<h1>{n_captures} {captures} on {} days</h1>{}", days.len(), about(base, url));
    body.push_str("<ul class=\"years\">");
    for (other, n) in &years {
        // Writing into a string cannot fail.
        let _ = match *other == year {
            true => write!(body, "<li><b>{other}</b> <span class=\"mute\">{n}</span></li>"),
            false => {
                write!(
                    body,
                    "<li><a href=\"{base}/web/{other}*/{0}\">{other}</a> <span class=\"mute\">{n}</span></li>",
                    escaped(url)
                )
            }
        };
    }
    body.push_str("</ul><div class=\"cal year\">");
    for month in 1..=12 {
        push_month(&mut body, shown, year, month);
    }
    let _ = write!(
        body,
        "</div><p class=\"mute\">Days are UTC. The stronger the colour of a day, the more captures: 1, up to 4, up to 16, more. \
         <a href=\"{base}/web/timemap/link/{0}\">All captures as a TimeMap</a></p>",
        escaped(url)
    );
    framed(shown.place, "Captures", &body)
}

/// The page under the head that all pages have.
fn framed(place: Place<'_>, title: &str, body: &str) -> String {
    Framed { place, tab: Tab::Calendar, title, query: "", json: None }.html(body)
}

/// The address, which leads to the page about it.
fn about(base: &str, url: &str) -> String {
    format!("<p class=\"lead\"><a href=\"{}\">{}</a></p>", escaped(&page_address(base, url)), isolated(url))
}

fn push_month(out: &mut String, shown: &Calendar<'_>, year: i64, month: u32) {
    let name = month_name(month as usize);
    let _ = write!(out, "<table><caption>{name}</caption><thead><tr>");
    for day in ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"] {
        let _ = write!(out, "<th scope=\"col\">{day}</th>");
    }
    out.push_str("</tr></thead><tbody><tr>");
    let Ok(first) = Timestamp::parse(&format!("{year:04}-{month:02}-01")) else { return };
    let first_number = first.as_millis().div_euclid(DAY.as_millis());
    // 1 January 1970 was a Thursday.
    let mut column = (first_number + 3).rem_euclid(7);
    out.push_str(&"<td></td>".repeat(column as usize));
    for number in first_number.. {
        let date = Day { number, n_captures: 0, first }.date();
        if date.1 != month {
            break;
        }
        if column == 7 {
            out.push_str("</tr><tr>");
            column = 0;
        }
        column += 1;
        push_day(out, shown, number, date.2);
    }
    out.push_str("</tr></tbody></table>");
}

fn push_day(out: &mut String, shown: &Calendar<'_>, number: i64, day_of_month: u32) {
    let found =
        shown.days.binary_search_by_key(&number, |day| day.number).ok().map(|place| shown.days[place]);
    let Some(day) = found else {
        let _ = write!(out, "<td>{day_of_month}</td>");
        return;
    };
    let step = match day.n_captures {
        1 => 1,
        2..=4 => 2,
        5..=16 => 3,
        _ => 4,
    };
    let digits = day.first.to_digits14();
    // One capture is shown at once, several are listed.
    let time = if day.n_captures == 1 { digits.clone() } else { format!("{}*", &digits[..8]) };
    let _ = write!(
        out,
        "<td><a class=\"h{step}\" href=\"{}/web/{time}/{}\" title=\"{} captures\">{day_of_month}</a></td>",
        shown.place.base,
        escaped(shown.url),
        day.n_captures
    );
}

/// One capture in a list.
pub struct Listed {
    /// When.
    pub time: Timestamp,
    /// HTTP status, as the index has it.
    pub status: String,
    /// Media type, as the index has it.
    pub mime: String,
}

/// The captures of an address in a stretch of time.
pub fn captures(place: Place<'_>, url: &str, captures: &[Listed], more: Option<&str>) -> String {
    let base = place.base;
    let mut body = format!("<h1>{} captures</h1>{}", captures.len(), about(base, url));
    body.push_str("<table class=\"list\"><thead><tr><th>Time (UTC)</th><th>Status</th><th>Type</th></tr></thead><tbody>");
    for capture in captures {
        let (digits, time) = (capture.time.to_digits14(), capture.time.to_rfc3339());
        let _ = write!(
            body,
            "<tr><td><a href=\"{base}/web/{digits}/{}\"><time>{time}</time></a></td><td>{}</td><td>{}</td></tr>",
            escaped(url),
            escaped(&capture.status),
            escaped(&capture.mime)
        );
    }
    body.push_str("</tbody></table>");
    push_more(&mut body, more);
    let _ = write!(body, "<p><a href=\"{base}/web/*/{}\">Calendar</a></p>", escaped(url));
    framed(place, "Captures", &body)
}

/// One captured address.
pub struct Address {
    /// The address.
    pub url: String,
    /// How many captures.
    pub n_captures: u64,
    /// The first and the last.
    pub span: Option<(Timestamp, Timestamp)>,
    /// Media type of the last.
    pub mime: String,
}

/// The addresses that begin with a text.
pub fn addresses(place: Place<'_>, prefix: &str, found: &[Address], more: Option<&str>) -> String {
    let base = place.base;
    let n_found = found.len();
    let count = if more.is_some() { format!("More than {n_found}") } else { n_found.to_string() };
    let mut body = format!("<h1>{count} addresses begin so</h1><p class=\"lead\">{}</p>", isolated(prefix));
    body.push_str(
        "<table class=\"list\"><thead><tr><th>Address</th><th>Captures</th><th>First</th><th>Last</th><th>Type</th></tr></thead><tbody>",
    );
    for address in found {
        let dates =
            address.span.map(|(first, last)| [first, last].map(|time| time.to_rfc3339()[..10].to_string()));
        let [first, last] = dates.unwrap_or_default();
        let _ = write!(
            body,
            "<tr><td><a href=\"{base}/web/*/{0}\">{0}</a></td><td class=\"figure\">{1}</td><td><time>{first}</time></td>\
             <td><time>{last}</time></td><td>{2}</td></tr>",
            escaped(&address.url),
            address.n_captures,
            escaped(&address.mime)
        );
    }
    body.push_str("</tbody></table>");
    push_more(&mut body, more);
    framed(place, "Captured addresses", &body)
}

fn push_more(out: &mut String, more: Option<&str>) {
    if let Some(more) = more {
        let _ = write!(out, "<p><a href=\"{}\">More</a></p>", escaped(more));
    }
}

/// A field for an address, of one archive or of several.
pub fn home(places: &[Place<'_>]) -> String {
    let mut body = "<h1>What was there?</h1>".to_string();
    for place in places {
        let _ = write!(
            body,
            "<h2><a href=\"{0}/\">{1}</a></h2><form class=\"searchbar\" action=\"{0}/web/\" method=\"get\"><input name=\"url\" type=\"search\" inputmode=\"url\" \
             aria-label=\"Address of a page\" placeholder=\"https://example.org/ or example.org/news*\" required><button class=\"btn go\">Show captures</button></form>",
            place.base,
            escaped(place.name)
        );
    }
    body.push_str(
        "<p class=\"lead\">A page at a time is at <code>/web/20260102030405/https://example.org/</code>, its calendar at \
         <code>/web/*/https://example.org/</code>. Programs use <code>/cdx</code>, <code>/web/timemap/link/</code> and \
         <code>Accept-Datetime</code>.</p>",
    );
    // Several archives have no place of their own.
    match places {
        [place] => framed(*place, "Captures", &body),
        _ => page("Perennial", crate::html_face::FACE_STYLE, &format!("<main class=\"wrap\">{body}</main>")),
    }
}

/// What went wrong, and the cure, under the head that all pages of ours have.
pub fn problem_page(place: Place<'_>, title: &str, text: &str) -> String {
    let main = format!(
        "<div class=\"head\"><div><h1>{}</h1><p class=\"lead\">{}</p></div></div>",
        isolated(title),
        isolated(text)
    );
    Framed { place, tab: Tab::Other, title, query: "", json: None }.html(&main)
}

/// What went wrong, and the cure.
pub fn problem(title: &str, text: &str) -> String {
    let body = format!("<main class=\"failure\"><h1>{}</h1><p>{}</p></main>", escaped(title), isolated(text));
    page(title, SERVE_STYLE, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(date: &str, n_captures: u64) -> Day {
        let first = Timestamp::parse(date).unwrap();
        Day { number: first.as_millis().div_euclid(DAY.as_millis()), n_captures, first }
    }

    #[test]
    fn each_day_with_captures_is_a_link_and_each_month_has_its_days() {
        let days = [day("2023-12-31", 1), day("2024-02-29", 1), day("2024-03-01", 30)];
        let place = Place { name: "a", base: "/a", operating: Default::default() };
        let shown = Calendar { place, url: "http://x.example/?<b>", days: &days, year: None };
        let page = calendar(&shown);
        assert!(page.contains("32 captures on 3 days"));
        assert!(page.contains("href=\"/a/web/20240229000000/http://x.example/?&lt;b&gt;\""), "{page}");
        assert!(page.contains("class=\"h4\" href=\"/a/web/20240301*/"));
        assert!(page.contains("href=\"/a/web/2023*/"));
        assert!(!page.contains("<b>\""), "an address is escaped");
        let cells = page.matches("<td>").count() - page.matches("<td></td>").count();
        assert_eq!(cells, 366, "2024 was a leap year");
        // 1 February 2024 was a Thursday: three empty cells before it.
        let february = page.split("<caption>February</caption>").nth(1).unwrap();
        assert!(
            february
                .split("<tbody>")
                .nth(1)
                .unwrap()
                .starts_with("<tr><td></td><td></td><td></td><td>1</td>")
        );
    }

    #[test]
    fn nothing_captured_is_a_calendar_too() {
        let page = calendar(&Calendar {
            place: Place { name: "", base: "", operating: Default::default() },
            url: "http://x.example/",
            days: &[],
            year: Some(2020),
        });
        assert!(page.contains("0 captures on 0 days"));
    }
}
