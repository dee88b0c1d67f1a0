//! `/web/...`: archived content with its Memento headers.

use std::io;

use hyper::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use perennial_core::memento::{Modifier, ReplayUrl, RequestedTime};
use perennial_core::time::Timestamp;
use perennial_warc::request::{capture_url, requested_url};
use perennial_warc::surt::surt;

use super::body::{Coding, StoredBody};
use super::find::{CaptureMatch, NoCapture, find_by_key, with_bytes};
use super::fuzzy::callbacks;
use super::problem::Problem;
use super::range::CapturedRange;
use super::replay_context::ReplayContext;
use super::request::Request;
use super::{Origin, banner, headers, memento, range, rewrite};
use crate::body::Body;
use perennial_archive::Snapshot;
use perennial_archive::store::Capture;

/// Responds with a capture.
pub fn replay(request: &Request<'_>, replay_url: &ReplayUrl) -> Result<Response<Body>, Problem> {
    let has_body = request.is_archived_method();
    let is_timegate =
        replay_url.when == RequestedTime::Unsaid && replay_url.modifier == Modifier::Top && !has_body;
    let at = match replay_url.when {
        RequestedTime::At { time, .. } => time,
        _ if is_timegate => memento::accept_datetime(request)?,
        _ => perennial_archive::now(),
    };
    let is_closest = request.server.is_closest() || names_capture(replay_url.modifier);
    let (found, fuzzy_url) =
        request.with(|snapshot| find_fuzzily(request, snapshot, replay_url, at, is_closest))?;
    let found = found.map_err(|lost| problem_of(lost, &replay_url.url))?;
    if is_timegate {
        return Ok(memento::timegate(request, &found));
    }
    let range = request.field("range");
    let mut found = request.with(|snapshot| Ok(with_bytes(snapshot, found, at, range)))?;
    found.capture.url = requested_url(&found.capture.url).to_string();
    // A browser would repeat other methods as GET.
    if let Some(response) = redirect_to_exact(request, replay_url, &found).filter(|_| !has_body) {
        return Ok(response);
    }
    let links = memento::links(request, &found);
    let context = replay_context(request, replay_url, at, &found);
    if request.is_navigation() && context.modifier != Modifier::Identity {
        match request.origin {
            // With `mp_`, the page at this very instant.
            Origin::Main if matches!(context.modifier, Modifier::Top | Modifier::Page) => {
                return match banner::to_named_host(request) {
                    Some(redirect) => Ok(redirect),
                    None => banner::wrapper(request, &context, found),
                };
            }
            // Archived content is shown only in our frame.
            _ => return Ok(banner::to_wrapper(&context)),
        }
    }
    let mut response = respond(request, &context, found).map_err(|error| Problem::damaged(&error.into()))?;
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::from_u16(context.status).unwrap_or(StatusCode::OK);
    }
    add_memento(&context, links, response.headers_mut());
    if let Some(url) = fuzzy_url.and_then(|url| HeaderValue::from_str(&url).ok()) {
        response.headers_mut().insert("x-perennial-fuzzy", url);
    }
    Ok(response)
}

fn respond(
    request: &Request<'_>,
    context: &ReplayContext,
    found: CaptureMatch,
) -> io::Result<Response<Body>> {
    let body = StoredBody::new(found.record, &found.payload_capture.digest);
    let range = request.field("range");
    if let Some(part) = CapturedRange::of(&context.head).filter(|_| context.status == 206) {
        if let Some(slice) = range.and_then(|range| part.slice(range)) {
            return part.respond(slice, headers::replayed(context), body.into_reader(Coding::Plain));
        }
        let mut response = identity(request, context, body)?;
        if let Some(said) =
            context.head.get("Content-Range").and_then(|said| HeaderValue::from_str(&said).ok())
        {
            response.headers_mut().insert(header::CONTENT_RANGE, said);
        }
        return Ok(response);
    }
    let range = range.filter(|_| context.status == 200);
    if let Some(range) = range.filter(|_| context.modifier == Modifier::Identity || is_media(context)) {
        return part_of(request, context, body, &found.payload_capture, range);
    }
    match context.modifier {
        Modifier::Identity => identity(request, context, body),
        _ => rewrite::respond(context, request.field("sec-fetch-dest"), body),
    }
}

/// Content that is never rewritten and may be read in parts.
fn is_media(context: &ReplayContext) -> bool {
    let mime = context.head.media_type().unwrap_or_default();
    let is_drawing = mime.starts_with("image/svg");
    let is_media = ["audio/", "video/", "image/", "font/"].iter().any(|kind| mime.starts_with(kind));
    is_media && !is_drawing
        || matches!(mime.as_str(), "application/pdf" | "application/octet-stream" | "application/ogg")
}

/// A part of the decoded body. If its length is unknown, the body is first decoded once to count it.
fn part_of(
    request: &Request<'_>,
    context: &ReplayContext,
    body: StoredBody,
    payload_capture: &Capture,
    range: &str,
) -> io::Result<Response<Body>> {
    let headers = headers::replayed(context);
    let archive = request.served.pool.archive();
    let (length, body) = match body.plain_length() {
        Some(length) => (length, body),
        None => {
            let length = io::copy(&mut body.into_reader(Coding::Plain), &mut io::sink())?;
            let record = archive.open_record(payload_capture).map_err(io::Error::other)?;
            (length, StoredBody::new(record, &payload_capture.digest))
        }
    };
    range::respond(Some(range), length, headers, |from| range::skipped(body.into_reader(Coding::Plain), from))
}

fn problem_of(lost: NoCapture, url: &str) -> Problem {
    match lost {
        NoCapture::NotArchived => Problem::not_archived(url),
        NoCapture::NotHeld(time) => Problem::not_held(url, &time.to_rfc3339()),
        NoCapture::Damaged(error) => Problem::damaged(&error),
        NoCapture::Failed(error) => Problem::internal(&error),
    }
}

fn replay_context(
    request: &Request<'_>,
    replay_url: &ReplayUrl,
    at: Timestamp,
    found: &CaptureMatch,
) -> ReplayContext {
    let time = match replay_url.when {
        RequestedTime::At { .. } => at,
        _ => found.capture.time,
    };
    let status = found.head.status().or(found.payload_capture.status).unwrap_or(200);
    ReplayContext {
        base: request.served.base.clone(),
        origins: request.origins(),
        origin: request.origin,
        time,
        modifier: replay_url.modifier,
        capture: found.capture.clone(),
        head: found.head.clone(),
        status: match status {
            206 if CapturedRange::of(&found.head).is_none_or(CapturedRange::is_whole) => 200,
            // Statuses with a body; an archived status may be anything.
            304 | ..200 | 600.. => 200,
            status => status,
        },
        callback: callbacks(&replay_url.url, &found.capture.url),
        state: found.state,
    }
}

/// Finds the capture of a URL; if it is not archived, one of a URL that differs only in parameters that do not choose the content,
/// and that URL.
fn find_fuzzily(
    request: &Request<'_>,
    snapshot: &Snapshot,
    replay_url: &ReplayUrl,
    at: Timestamp,
    is_closest: bool,
) -> anyhow::Result<(Result<CaptureMatch, NoCapture>, Option<String>)> {
    let content_type = request.field("content-type").unwrap_or_default();
    let url = capture_url(&replay_url.url, request.archived_method(), content_type, request.body);
    let with_loops = replay_url.modifier == Modifier::Identity;
    let found = find_by_key(snapshot, &surt(&url), &url, at, is_closest, with_loops);
    if !matches!(found, Err(NoCapture::NotArchived)) {
        return Ok((found, None));
    }
    Ok(match request.server.fuzzy().find(snapshot, &url, at)? {
        Some(line) => {
            let found = find_by_key(snapshot, &line.key, &line.url, at, is_closest, with_loops);
            (found, Some(line.url))
        }
        None => (found, None),
    })
}

/// Whether a client names a capture, of which it expects the closest. Parts of a page are chosen by the page's time instead.
fn names_capture(modifier: Modifier) -> bool {
    matches!(modifier, Modifier::Top | Modifier::Identity)
}

/// Redirects to the exact time of the capture, as clients expect. Parts of a page are served directly, because their URLs have
/// the page's time.
fn redirect_to_exact(
    request: &Request<'_>,
    replay_url: &ReplayUrl,
    found: &CaptureMatch,
) -> Option<Response<Body>> {
    let RequestedTime::At { time, n_digits } = replay_url.when else { return None };
    let is_exact = n_digits == 14 && time.as_secs() == found.capture.time.as_secs();
    if is_exact || n_digits == 14 && !names_capture(replay_url.modifier) {
        return None;
    }
    let (digits, modifier) = (found.capture.time.to_digits14(), replay_url.modifier.as_str());
    let location = format!("{}/web/{digits}{modifier}/{}", request.served.base, replay_url.url);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_str(&location).ok()?);
    if let Some(links) = memento::links(request, found) {
        headers.insert(header::LINK, links);
    }
    memento::allow_all(headers);
    Some(response)
}

/// The bytes as captured, in their content coding if the client understands it.
fn identity(request: &Request<'_>, context: &ReplayContext, body: StoredBody) -> io::Result<Response<Body>> {
    let content = body.content_codings();
    let accepted = request.field("accept-encoding").unwrap_or_default().to_ascii_lowercase();
    let is_understood =
        !content.is_empty() && content.iter().all(|coding| accepted.contains(coding.as_str()));
    let coding = if is_understood { Coding::AsSent } else { Coding::Plain };
    let mut response = Response::new(body.into_body(coding)?);
    *response.headers_mut() = headers::replayed(context);
    if is_understood && let Ok(value) = HeaderValue::from_str(&content.join(", ")) {
        response.headers_mut().insert(header::CONTENT_ENCODING, value);
    }
    Ok(response)
}

fn add_memento(context: &ReplayContext, links: Option<HeaderValue>, to: &mut HeaderMap) {
    if let Some(time) = headers::memento_datetime(context) {
        to.insert("memento-datetime", time);
    }
    if let Some(links) = links {
        to.append(header::LINK, links);
    }
    if let Ok(value) = HeaderValue::from_str(&context.own_url(context.modifier)) {
        to.insert(header::CONTENT_LOCATION, value);
    }
    to.insert("x-perennial-coherence", HeaderValue::from_static(context.state.as_str()));
    memento::allow_all(to);
}
