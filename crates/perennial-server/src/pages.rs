//! Our own pages: home, calendars, lists of captures and of addresses.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use data_encoding::BASE64;
use perennial_core::memento::address::{Query, escape};
use perennial_core::time::Timestamp;
use perennial_warc::cdxj::CdxjLine;
use perennial_warc::surt::{KeyRange, MatchType, surt};
use sha2::{Digest, Sha256};

use super::Server;
use super::problem::Problem;
use super::replay::Asking;
use crate::calendar::{self, Address, Calendar, Day, Listed};
use crate::html_face::{Operating, Place};
use perennial_archive::Snapshot;

/// Rows of one list.
const MAX_ROWS: usize = 1_000;

/// The policy of our own pages: no script at all.
const OWN_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page of ours.
pub fn html(text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(OWN_POLICY));
    // An operator's pages have the token of a session in them.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// A page of ours that may run one script, its own, and do what else its policy allows.
pub(super) fn scripted(text: String, script: &str, allowed: &str) -> Response<Body> {
    let mut response = html(text);
    let hash = BASE64.encode(&Sha256::digest(script.as_bytes()));
    let policy = format!("{OWN_POLICY}; {allowed}; script-src 'sha256-{hash}'");
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The archive that a page is about.
pub(super) fn place_of<'a>(asking: &Asking<'a>) -> Place<'a> {
    Place { name: &asking.served.name, base: &asking.served.base, operating: asking.operating }
}

/// The first page.
pub fn home(server: &Server) -> Response<Body> {
    let places: Vec<Place<'_>> = server
        .archives()
        .iter()
        .map(|served| Place { name: &served.name, base: &served.base, operating: Operating::Off })
        .collect();
    html(calendar::home(&places))
}

/// The form of the first page leads to the calendar.
pub fn search(asking: &Asking<'_>, query: &Query) -> Option<Response<Body>> {
    let url = query.get("url")?.trim();
    let location = HeaderValue::from_str(&format!("{}/web/*/{url}", asking.served.base)).ok()?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(header::LOCATION, location);
    Some(response)
}

/// `/web/*/<url>` and `/web/2026*/<url>`: the calendar, of one year if the digits name one.
pub fn calendar(asking: &Asking<'_>, url: &str, year: Option<i64>) -> Result<Response<Body>, Problem> {
    let key = surt(url);
    let (from, to) = (Timestamp::EPOCH, Timestamp::from_millis(i64::MAX));
    let days = asking.served.pool.with(|snapshot| snapshot.store().days_of_key(&key, from, to));
    let days = days.and_then(|days| days).map_err(|error| Problem::internal(&error))?;
    if days.is_empty() {
        return Err(Problem::not_archived(url));
    }
    let days: Vec<Day> =
        days.into_iter().map(|(number, n_captures, first)| Day { number, n_captures, first }).collect();
    Ok(html(calendar::calendar(&Calendar { place: place_of(asking), url, days: &days, year })))
}

/// `/web/20260102*/<url>`: the captures of a stretch of time.
pub fn captures(
    asking: &Asking<'_>,
    url: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Response<Body>, Problem> {
    let read =
        asking.served.pool.with(|snapshot| read_captures(snapshot, url, from, to)).and_then(|read| read);
    let mut found = read.map_err(|error| Problem::internal(&error))?;
    if found.is_empty() {
        return Err(Problem::not_archived(url));
    }
    let base = &asking.served.base;
    let more = (found.len() > MAX_ROWS).then(|| {
        let next = found.split_off(MAX_ROWS)[0].time.to_digits14();
        format!("{base}/web/timemap/link/{next}/{url}")
    });
    Ok(html(calendar::captures(place_of(asking), url, &found, more.as_deref())))
}

fn read_captures(
    snapshot: &Snapshot,
    url: &str,
    from: Timestamp,
    to: Timestamp,
) -> anyhow::Result<Vec<Listed>> {
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
        if let Some(time) = line.date() {
            found.push(Listed {
                time,
                status: line.status.unwrap_or_default(),
                mime: line.mime.unwrap_or_default(),
            });
        }
    }
    Ok(found)
}

/// `/web/*/<prefix>*`: the addresses that begin so. `after` is where an earlier list ended.
pub fn addresses(asking: &Asking<'_>, prefix: &str, after: Option<&str>) -> Result<Response<Body>, Problem> {
    let range = KeyRange::of(prefix, MatchType::Prefix);
    let after = after.map(|url| (surt(url), url));
    let after = after.as_ref().map(|(key, url)| (key.as_str(), *url));
    let found =
        asking.served.pool.with(|snapshot| snapshot.store().pages_in_keys(&range, after, MAX_ROWS + 1));
    let mut found = found.and_then(|found| found).map_err(|error| Problem::internal(&error))?;
    let base = &asking.served.base;
    let has_more = found.len() > MAX_ROWS;
    found.truncate(MAX_ROWS);
    let more = found.last().filter(|_| has_more);
    let more = more.map(|last| format!("{base}/web/*/{prefix}*?after={}", escape(&last.url)));
    let address = |page: perennial_archive::store::PageRow| Address {
        span: page.first_seen.zip(page.last_seen),
        url: page.url,
        n_captures: page.n_captures,
        mime: page.mime.unwrap_or_default(),
    };
    let found: Vec<Address> = found.into_iter().map(address).collect();
    Ok(html(calendar::addresses(place_of(asking), prefix, &found, more.as_deref())))
}
