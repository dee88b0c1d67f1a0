//! RFC 7089: datetime negotiation, links between versions, lists of versions.

use std::fmt::Write;

use hyper::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use perennial_core::memento::date;
use perennial_core::memento::replay_url::{QueryParameters, earliest_time, latest_time};
use perennial_core::time::Timestamp;
use perennial_warc::cdxj::CdxjLine;
use perennial_warc::surt::{KeyRange, MatchType, surt};
use serde_json::json;

use super::cdx::{self, Dialect};
use super::find::CaptureMatch;
use super::problem::Problem;
use super::request::Request;
use crate::body::Body;
use perennial_archive::Snapshot;

/// Mementos per page of a TimeMap.
const PAGE_MEMENTOS: usize = 10_000;

/// Captures around an instant among which the availability API looks for a delivered one.
const N_AROUND: usize = 64;

/// The Memento URLs of an archived URL.
pub struct MementoUrls<'a> {
    /// Origin and base, such as `http://127.0.0.1:8080/news`.
    prefix: String,
    url: &'a str,
}

impl<'a> MementoUrls<'a> {
    pub fn of(request: &Request<'_>, url: &'a str) -> MementoUrls<'a> {
        MementoUrls { prefix: format!("{}{}", request.main_origin(), request.served.base), url }
    }

    /// The URL of a capture.
    pub fn memento(&self, time: Timestamp) -> String {
        format!("{}/web/{}/{}", self.prefix, time.to_digits14(), self.url)
    }

    fn timegate(&self) -> String {
        format!("{}/web/{}", self.prefix, self.url)
    }

    fn timemap(&self) -> String {
        format!("{}/web/timemap/link/{}", self.prefix, self.url)
    }

    fn general_links(&self) -> String {
        format!(
            "<{}>; rel=\"original\", <{}>; rel=\"timegate\", <{}>; rel=\"timemap\"; type=\"application/link-format\"",
            self.url,
            self.timegate(),
            self.timemap()
        )
    }
}

/// The `Link` field: original, TimeGate, TimeMap, and neighbouring mementos.
pub fn links(request: &Request<'_>, found: &CaptureMatch) -> Option<HeaderValue> {
    let url = &found.capture.url;
    let urls = MementoUrls::of(request, url);
    let this = found.capture.time;
    let (first, last) = found.span;
    let mut mementos: Vec<(Timestamp, Vec<&str>)> = Vec::new();
    let named = [
        (Some(first), "first"),
        (found.previous, "prev"),
        (Some(this), ""),
        (found.next, "next"),
        (Some(last), "last"),
    ];
    for (time, name) in named.into_iter().filter_map(|(time, name)| Some((time?, name))) {
        match mementos.iter_mut().find(|other| other.0.as_secs() == time.as_secs()) {
            Some((_, names)) => names.push(name),
            None => mementos.push((time, vec![name])),
        }
    }
    let mut text = urls.general_links();
    for (time, names) in mementos {
        let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).chain(["memento"]).collect();
        let (memento_url, date) = (urls.memento(time), date::write(time));
        // Writing to a string cannot fail.
        let _ = write!(text, ", <{memento_url}>; rel=\"{}\"; datetime=\"{date}\"", names.join(" "));
    }
    HeaderValue::from_str(&text).ok()
}

/// The negotiated instant, or now.
pub fn accept_datetime(request: &Request<'_>) -> Result<Timestamp, Problem> {
    match request.field("accept-datetime") {
        None => Ok(perennial_archive::now()),
        Some(text) => date::parse(text).ok_or_else(|| {
            Problem::bad_request(format!(
                "Accept-Datetime: {text} is not a date; write Tue, 15 Nov 1994 12:45:26 GMT"
            ))
        }),
    }
}

/// The response of a TimeGate.
pub fn timegate(request: &Request<'_>, found: &CaptureMatch) -> Response<Body> {
    let urls = MementoUrls::of(request, &found.capture.url);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("accept-datetime"));
    if let Ok(location) = HeaderValue::from_str(&urls.memento(found.capture.time)) {
        headers.insert(header::LOCATION, location);
    }
    if let Some(links) = links(request, found) {
        headers.insert(header::LINK, links);
    }
    allow_all(headers);
    response
}

/// Lets scripts of other pages read a response. The router removes this again unless the archive is public.
pub fn allow_all(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "Link, Memento-Datetime, Content-Location, Content-Range, X-Perennial-Coherence",
        ),
    );
}

/// `/web/timemap/<form>/<url>`; a time before the URL is the start of the list.
pub fn timemap(request: &Request<'_>, rest: &str) -> Result<Response<Body>, Problem> {
    let (form, url) = rest.split_once('/').unwrap_or((rest, ""));
    let (from, url) = match url.split_once('/') {
        Some((digits, behind)) if digits.len() == 14 && digits.bytes().all(|b| b.is_ascii_digit()) => {
            (Some(digits), behind)
        }
        _ => (None, url),
    };
    if url.is_empty() {
        return Err(Problem::bad_request("URL missing; write /web/timemap/link/https://example.org/"));
    }
    let from = |name: &str| from.map(|from| format!("&{name}={from}")).unwrap_or_default();
    match form {
        "link" => link_timemap(request, url, from("").strip_prefix("&=").map(earliest_time)),
        "cdxj" => cdx::respond(
            request,
            Dialect::Pywb,
            &QueryParameters::parse(&format!("matchType=exact{}", from("from"))),
            Some(url),
        ),
        "json" => {
            let query = QueryParameters::parse(&format!("matchType=exact&output=json{}", from("from")));
            cdx::respond(request, Dialect::Pywb, &query, Some(url))
        }
        _ => Err(Problem::bad_request("unknown TimeMap format; write link, cdxj, json or cdx")),
    }
}

fn link_timemap(
    request: &Request<'_>,
    url: &str,
    from: Option<Timestamp>,
) -> Result<Response<Body>, Problem> {
    let read = request.served.pool.with(|snapshot| read_mementos(snapshot, url, from)).and_then(|read| read);
    let mut mementos = read.map_err(|error| Problem::internal(&error))?;
    if mementos.is_empty() {
        return Err(Problem::not_archived(url));
    }
    let next = (mementos.len() > PAGE_MEMENTOS).then(|| mementos.split_off(PAGE_MEMENTOS)[0].time);
    let text = write_timemap(&MementoUrls::of(request, url), &mementos, from, next);
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/link-format"));
    allow_all(headers);
    Ok(response)
}

struct TimemapEntry {
    time: Timestamp,
    /// The time as in the index.
    digits: String,
    url: String,
}

/// The captures of a URL from an instant on: one page of them, and one more if there are more.
fn read_mementos(
    snapshot: &Snapshot,
    url: &str,
    from: Option<Timestamp>,
) -> anyhow::Result<Vec<TimemapEntry>> {
    let mut range = KeyRange::of(url, MatchType::Exact);
    if let Some(from) = from {
        range.start = format!("{} {}", surt(url), from.to_digits14()).into();
    }
    let mut found = Vec::new();
    for line in snapshot.lines(&range)? {
        let Ok(line) = CdxjLine::parse(&line?) else { continue };
        let Some(time) = line.date() else { continue };
        // A page ends between two instants, so the next page can begin with an instant.
        let is_full = found.len() > PAGE_MEMENTOS;
        if is_full && found.last().is_some_and(|last: &TimemapEntry| last.time != time) {
            break;
        }
        let digits = if line.timestamp.len() == 14 { line.timestamp } else { time.to_digits14() };
        found.push(TimemapEntry { time, digits, url: line.url });
    }
    Ok(found)
}

fn write_timemap(
    urls: &MementoUrls<'_>,
    mementos: &[TimemapEntry],
    from: Option<Timestamp>,
    next: Option<Timestamp>,
) -> String {
    let kind = "type=\"application/link-format\"";
    let page =
        |from: Timestamp| format!("{}/web/timemap/link/{}/{}", urls.prefix, from.to_digits14(), urls.url);
    let own = from.map_or_else(|| urls.timemap(), page);
    let (first, last) = (mementos[0].time, mementos[mementos.len() - 1].time);
    let mut out = format!(
        "<{own}>; rel=\"self\"; {kind}; from=\"{}\"; until=\"{}\",\n<{}>; rel=\"timegate\",\n<{}>; rel=\"original\"",
        date::write(first),
        date::write(last),
        urls.timegate(),
        urls.url
    );
    if let Some(next) = next {
        let _ = write!(out, ",\n<{}>; rel=\"timemap\"; {kind}; from=\"{}\"", page(next), date::write(next));
    }
    for (place, TimemapEntry { time, digits, url }) in mementos.iter().enumerate() {
        let is_first = place == 0 && from.is_none();
        let is_last = place + 1 == mementos.len() && next.is_none();
        let rel = match (is_first, is_last) {
            (true, true) => "first last memento",
            (true, false) => "first memento",
            (false, true) => "last memento",
            (false, false) => "memento",
        };
        let prefix = &urls.prefix;
        let _ = write!(
            out,
            ",\n<{prefix}/web/{digits}/{url}>; rel=\"{rel}\"; datetime=\"{}\"",
            date::write(*time)
        );
    }
    out.push('\n');
    out
}

/// `/wayback/available`: the closest delivered capture.
pub fn available(request: &Request<'_>, query: &QueryParameters) -> Result<Response<Body>, Problem> {
    let url = query.get("url").filter(|url| !url.is_empty());
    let url = url.ok_or_else(|| Problem::bad_request("url: missing parameter"))?;
    let requested = query.get("timestamp").unwrap_or_default();
    let at = if requested.is_empty() { perennial_archive::now() } else { latest_time(requested) };
    let around =
        request.served.pool.with(|snapshot| snapshot.store().captures_around(&surt(url), at, N_AROUND));
    let around = around.and_then(|around| around).map_err(|error| Problem::internal(&error))?;
    let delivered = around.iter().filter(|capture| capture.is_whole() || capture.shows_nothing());
    let closest = delivered.min_by_key(|capture| capture.time.as_millis().abs_diff(at.as_millis()));
    let closest = closest.map(|capture| {
        let memento_url = MementoUrls::of(request, &capture.url).memento(capture.time);
        let status = capture.status.filter(|&status| status != 304).unwrap_or(200);
        json!({ "status": status.to_string(), "available": true, "url": memento_url, "timestamp": capture.time.to_digits14() })
    });
    let snapshots = closest.map_or(json!({}), |closest| json!({ "closest": closest }));
    let mut body = json!({ "url": url, "archived_snapshots": snapshots });
    if !requested.is_empty() {
        body["timestamp"] = requested.into();
    }
    let mut response = Response::new(Body::from(format!("{body}\n")));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    allow_all(response.headers_mut());
    Ok(response)
}
