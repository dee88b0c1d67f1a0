//! The frame around a replayed page, with a banner that shows the version and its coherence.
//!
//! The banner is on the main origin and the archived page in a frame on the replay origin, so archived scripts cannot reach
//! the banner. A banner is about one capture for as long as it exists: if the frame reports a different page, the whole window goes
//! there. The frame also reports what it loaded, which can only worsen the stated coherence, and which words were clicked.
//!
//! | file | responsibility |
//! |---|---|
//! | [`parts`] | the parts of a page with their coherence, and that of the whole |
//! | [`block`] | when the words of a block were added and removed |
//! | [`page`] | HTML |

pub mod block;
pub mod page;
pub mod parts;

use hyper::http::{HeaderValue, Response, StatusCode, header};
use perennial_core::memento::Modifier;
use perennial_core::memento::replay_url::{escape, latest_time};
use perennial_core::text::untrusted;
use perennial_core::time::Timestamp;
use perennial_core::url::canonical::host_name;
use serde_json::json;

use self::page::BannerContent;
use self::parts::CompositePage;
use super::ServedArchive;
use super::body::StoredBody;
use super::find::{CaptureMatch, find};
use super::origins::is_loopback_name;
use super::problem::Problem;
use super::replay_context::ReplayContext;
use super::request::Request;
use crate::body::Body;
use perennial_archive::Snapshot;
use perennial_archive::store::VersionSteps;

const STYLE: &str = include_str!("banner.css");
const SCRIPT: &str = include_str!("banner.js");
/// The path on the replay origin at which our frame shows its pass.
pub const ENTRANCE: &str = "/_perennial/enter";

const ICON: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 20 20\" fill=\"none\" stroke=\"#4a73a3\" stroke-width=\"1.5\">\
     <circle cx=\"10\" cy=\"10\" r=\"9\"/><circle cx=\"9.2\" cy=\"10.6\" r=\"5.8\"/><circle cx=\"8.6\" cy=\"11\" r=\"2.8\"/></svg>";

/// The frame around an archived page.
pub fn wrapper(
    request: &Request<'_>,
    context: &ReplayContext,
    found: CaptureMatch,
) -> Result<Response<Body>, Problem> {
    let body = StoredBody::new(found.record, &found.payload_capture.digest);
    let closest = request.server.is_closest();
    let result = request.served.pool.with(|snapshot| {
        let whole = CompositePage::of(snapshot, context, body, &[], closest);
        steps(snapshot, &context.capture.url, context.capture.time).map(|steps| (whole, steps))
    });
    let (whole, steps) = result.and_then(|inner| inner).map_err(|error| Problem::internal(&error))?;
    let shown = BannerContent { context, whole: &whole, steps: &steps, archive: &request.served.name };
    let mut response = html(page::wrapper(&shown, &frame_url(request, context)).0);
    let policy = format!(
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
         frame-src {}; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        context.origins.replay
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert("x-perennial-coherence", HeaderValue::from_static(whole.composite.state.as_str()));
    if let Ok(spread) = HeaderValue::from_str(&format!("{:.0}", whole.composite.spread().as_secs_f64())) {
        headers.insert("x-perennial-spread", spread);
    }
    if let Some(time) = super::headers::memento_datetime(context) {
        headers.insert("memento-datetime", time);
    }
    Ok(response)
}

/// Redirects a browser that would show archived content without our frame.
pub fn to_wrapper(context: &ReplayContext) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    let to = format!("{}{}", context.origins.main, context.replay_url(Modifier::Top, &context.capture.url));
    if let Ok(to) = HeaderValue::from_str(&to) {
        *response.status_mut() = StatusCode::FOUND;
        response.headers_mut().insert(header::LOCATION, to);
    }
    response
}

/// The URL of the frame. If reading needs a token and browsers keep cookies of frames apart, the frame first shows its pass.
fn frame_url(request: &Request<'_>, context: &ReplayContext) -> String {
    let replay = &context.origins.replay;
    let path = context.replay_url(Modifier::Page, &context.capture.url);
    let is_trustworthy = replay.starts_with("https:") || host_name(replay).is_some_and(is_loopback_name);
    match request.server.guard().pass().filter(|_| is_trustworthy) {
        Some(pass) => format!("{replay}{ENTRANCE}?pass={pass}&to={}", escape(&path)),
        None => format!("{replay}{path}"),
    }
}

/// Exchanges the pass of a frame for a cookie.
pub fn enter(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let guard = request.server.guard();
    guard.check_host(request.parts)?;
    let to = request.needed("to")?;
    if !to.starts_with('/') || to.starts_with("//") || to.contains('\\') {
        return Err(Problem::bad_request("to: write the path of an archived page"));
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let to = HeaderValue::from_bytes(to.as_bytes()).map_err(|error| Problem::internal(&error.into()))?;
    response.headers_mut().insert(header::LOCATION, to);
    if guard.admits(request.needed("pass")?)
        && let Some(cookie) = guard.pass_cookie(&request.origins().replay)
        && let Ok(cookie) = HeaderValue::from_str(&cookie)
    {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Redirects a browser that uses the IPv6 address of loopback to `localhost`, because policies cannot name IPv6 addresses.
pub fn to_named_host(request: &Request<'_>) -> Option<Response<Body>> {
    let origins = request.origins();
    let port = origins.main.strip_prefix("http://[::1]:")?;
    let target = request.parts.uri.path_and_query()?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let to = HeaderValue::from_str(&format!("http://localhost:{port}{target}")).ok()?;
    response.headers_mut().insert(header::LOCATION, to);
    Some(response)
}

/// The requests of the banner.
pub fn respond(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    match request.rest {
        "banner.css" => Ok(text("text/css; charset=utf-8", STYLE)),
        "icon.svg" => Ok(text("image/svg+xml", ICON)),
        "banner.js" => Ok(text("text/javascript; charset=utf-8", SCRIPT)),
        "banner" => BannerRequest::read(request)?.banner(),
        "block" => BannerRequest::read(request)?.block(),
        other => Err(Problem::no_such_page(other)),
    }
}

/// A page about which the banner requests facts.
struct BannerRequest<'s> {
    request: &'s Request<'s>,
    served: &'s ServedArchive,
    url: String,
    at: Timestamp,
}

impl<'s> BannerRequest<'s> {
    fn read(request: &'s Request<'s>) -> Result<BannerRequest<'s>, Problem> {
        let query = &request.query;
        let missing = || Problem::bad_request("archive, url, at: missing parameter");
        let name = query.get("archive").ok_or_else(missing)?;
        let served =
            request.server.archives().iter().find(|served| served.name == name).ok_or_else(missing)?;
        let url = query.get("url").and_then(|url| untrusted::checked_url(url).ok()).ok_or_else(missing)?;
        let at = query.get("at").filter(|digits| !digits.is_empty()).ok_or_else(missing)?;
        Ok(BannerRequest { request, served, url: url.to_string(), at: latest_time(at) })
    }

    /// The capture that is shown for a URL, and its banner with what the frame loaded in addition.
    fn banner(&self) -> Result<Response<Body>, Problem> {
        let more: Vec<&str> =
            self.request.query.get("parts").unwrap_or_default().lines().take(parts::MAX_PARTS).collect();
        let closest = self.request.server.is_closest();
        let result = self.served.pool.with(|snapshot| {
            let Ok(found) = find(snapshot, &self.url, self.at, closest) else { return Ok(None) };
            let context = ReplayContext {
                base: self.served.base.clone(),
                origins: self.request.origins(),
                origin: super::Origin::Main,
                time: self.at,
                modifier: Modifier::Top,
                capture: found.capture.clone(),
                head: found.head.clone(),
                status: 200,
                callback: None,
                state: found.state,
            };
            let body = StoredBody::new(found.record, &found.payload_capture.digest);
            let whole = CompositePage::of(snapshot, &context, body, &more, closest);
            let steps = steps(snapshot, &context.capture.url, context.capture.time)?;
            let shown =
                BannerContent { context: &context, whole: &whole, steps: &steps, archive: &self.served.name };
            let facts = json!({
                "html": page::banner(&shown).0,
                "url": context.capture.url,
                "state": whole.composite.state.as_str(),
                "time": context.capture.time.to_digits14(),
                "missing": whole.missing(),
            });
            anyhow::Ok(Some(facts))
        });
        let facts = result.and_then(|inner| inner).map_err(|error| Problem::internal(&error))?;
        // A script may have invented the URL, so an unknown URL is not an error.
        Ok(json_response(&facts.unwrap_or_default()))
    }

    /// When a block got its words, and when it changed next.
    fn block(&self) -> Result<Response<Body>, Problem> {
        let words = self.request.query.get("text").unwrap_or_default();
        let result = self.served.pool.with(|snapshot| {
            let capture = find(snapshot, &self.url, self.at, self.request.server.is_closest()).ok();
            let Some(url) = capture.map(|found| found.capture.url) else { return Ok(None) };
            block::changes(snapshot.store(), &url, self.at, words).map(|changes| Some((url, changes)))
        });
        let found = result.and_then(|inner| inner).map_err(|error| Problem::internal(&error))?;
        let Some((url, changes)) = found else { return Ok(json_response(&serde_json::Value::Null)) };
        let html = page::block(&changes, &self.served.base, &url, self.at);
        Ok(json_response(&json!({ "changes": changes, "html": html.0 })))
    }
}

fn steps(snapshot: &Snapshot, url: &str, at: Timestamp) -> anyhow::Result<VersionSteps> {
    match snapshot.store().page(url)? {
        Some(page) => snapshot.store().versions_around(page.id, at),
        None => Ok(VersionSteps::default()),
    }
}

fn html(text: String) -> Response<Body> {
    let mut response = text_response("text/html; charset=utf-8", text);
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

fn json_response(value: &serde_json::Value) -> Response<Body> {
    text_response("application/json", value.to_string())
}

fn text(mime: &'static str, body: &'static str) -> Response<Body> {
    text_response(mime, body.to_string())
}

fn text_response(mime: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
