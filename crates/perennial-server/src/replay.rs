//! `/web/...` -> archived content: the capture to show, its bytes, what Memento says of it.

use std::io;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use perennial_core::memento::{Modifier, ReplayAddress, When};
use perennial_core::time::Timestamp;
use perennial_core::url::canonical::host_name;
use perennial_warc::http::HttpHead;

use super::body::{Coding, StoredBody};
use super::find::{Found, Lost, find};
use super::problem::Problem;
use super::scene::Scene;
use super::{Origin, Origins, Served, Server, banner, headers, memento, range, rewrite};
use crate::html_face::Operating;
use perennial_archive::store::Capture;

/// A request as the answers see it.
pub struct Asking<'a> {
    /// All that is served.
    pub server: &'a Server,
    /// The archive that it is about.
    pub served: &'a Served,
    /// Where it came to.
    pub origin: Origin,
    /// Its head.
    pub parts: &'a Parts,
    /// Whether whoever asks may act.
    pub operating: Operating<'a>,
}

impl Asking<'_> {
    /// A field of the request, if it is text.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// Whether several archives are served and the path names none of them.
    pub fn is_unnamed(&self) -> bool {
        let is_named = self.parts.uri.path().trim_start_matches('/').split('/').next()
            == Some(self.served.name.as_str());
        self.server.archives().len() > 1 && !is_named
    }

    /// Where a request belongs that a replayed page made to the root of the replay origin: to the archive of the page that asked.
    pub fn stray(&self, target: &str) -> Option<Response<Body>> {
        let (origins, referer) = (self.origins(), self.field("referer"));
        let archives = self.server.archives().iter();
        archives
            .filter_map(|served| rewrite::own::stray(referer, &origins.replay, &served.base, target))
            .next()
    }

    /// The two origins under the name that the client knows this machine by, where both are on it.
    pub fn origins(&self) -> Origins {
        let configured = self.server.origins();
        let host = self.field("host").map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
        match (
            host.filter(|host| !host.is_empty()),
            host_name(&configured.main),
            host_name(&configured.replay),
        ) {
            (Some(host), Some(main), Some(replay)) if main == replay && main != host => Origins {
                main: configured.main.replacen(main, host, 1),
                replay: configured.replay.replacen(replay, host, 1),
            },
            _ => configured.clone(),
        }
    }

    /// Our own origin under the name that the client knows it by.
    pub fn main_origin(&self) -> String {
        let main = &self.server.origins().main;
        match (self.origin, self.field("host")) {
            (Origin::Main, Some(host)) if !host.is_empty() => {
                let scheme = main.split("://").next().unwrap_or("http");
                format!("{scheme}://{host}")
            }
            _ => main.clone(),
        }
    }

    /// Whether a browser goes to this address to show it as a page.
    pub fn is_navigation(&self) -> bool {
        self.field("sec-fetch-dest") == Some("document")
    }
}

/// Answers a request for one capture.
pub fn replay(asking: &Asking<'_>, address: &ReplayAddress) -> Result<Response<Body>, Problem> {
    let is_timegate = address.when == When::Unsaid && address.modifier == Modifier::Top;
    let at = match address.when {
        When::At { time, .. } => time,
        _ if is_timegate => memento::accept_datetime(asking)?,
        _ => perennial_archive::now(),
    };
    // Who asks for a page at a time expects the closest; parts of a page are chosen by the page's time.
    let is_closest = asking.server.is_closest() || address.modifier == Modifier::Top;
    let found = asking.served.pool.with(|snapshot| find(snapshot, &address.url, at, is_closest));
    let found =
        found.map_err(|error| Problem::internal(&error))?.map_err(|lost| problem_of(lost, &address.url))?;
    if is_timegate {
        return Ok(memento::timegate(asking, &found));
    }
    if let Some(response) = redirect_to_exact(asking, address, &found) {
        return Ok(response);
    }
    let links = memento::links(asking, &found);
    let scene = scene_of(asking, address, at, &found);
    if asking.is_navigation() && scene.modifier != Modifier::Identity {
        match asking.origin {
            Origin::Main if scene.modifier == Modifier::Top => return banner::wrapper(asking, &scene, found),
            // Archived content is shown in our frame only.
            _ => return Ok(banner::to_wrapper(&scene)),
        }
    }
    let mut response = respond(asking, &scene, found).map_err(|error| Problem::damaged(&error.into()))?;
    if response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::from_u16(scene.status).unwrap_or(StatusCode::OK);
    }
    add_memento(&scene, links, response.headers_mut());
    Ok(response)
}

fn respond(asking: &Asking<'_>, scene: &Scene, found: Found) -> io::Result<Response<Body>> {
    let body = StoredBody::new(found.record, &found.holder.digest);
    if let Some(said) = captured_part(scene) {
        let mut response = identity(asking, scene, body)?;
        response.headers_mut().insert(header::CONTENT_RANGE, said);
        return Ok(response);
    }
    let range = asking.field("range").filter(|_| scene.status == 200);
    if let Some(range) = range.filter(|_| scene.modifier == Modifier::Identity || is_media(scene)) {
        return part_of(asking, scene, body, &found.holder, range);
    }
    match scene.modifier {
        Modifier::Identity => identity(asking, scene, body),
        _ => rewrite::respond(scene, asking.field("sec-fetch-dest"), body),
    }
}

/// Where the archived server gave a part of its body: which one. The client gets that part, whichever it asked for.
fn captured_part(scene: &Scene) -> Option<HeaderValue> {
    let said = scene.head.get("Content-Range").filter(|_| scene.status == 206)?;
    HeaderValue::from_str(&said).ok()
}

/// Whether an archived 206 has all of its body: the crawler asked for everything from byte 0 on.
fn is_whole_part(head: &HttpHead) -> bool {
    let Some(said) = head.get("Content-Range") else { return true };
    let whole = |said: &str| {
        let (part, total) = said.trim().strip_prefix("bytes")?.trim().split_once('/')?;
        let (first, last) = part.split_once('-')?;
        Some(first == "0" && last.parse::<u64>().ok()?.checked_add(1)? == total.parse::<u64>().ok()?)
    };
    whole(&said) == Some(true)
}

/// What is never rewritten and may be read in parts.
fn is_media(scene: &Scene) -> bool {
    let mime = scene.head.media_type().unwrap_or_default();
    let is_drawing = mime.starts_with("image/svg");
    let is_media = ["audio/", "video/", "image/", "font/"].iter().any(|kind| mime.starts_with(kind));
    is_media && !is_drawing
        || matches!(mime.as_str(), "application/pdf" | "application/octet-stream" | "application/ogg")
}

/// A part of the plain body. Where its length shows only when it is decoded, it is decoded once more to count it.
fn part_of(
    asking: &Asking<'_>,
    scene: &Scene,
    body: StoredBody,
    holder: &Capture,
    range: &str,
) -> io::Result<Response<Body>> {
    let headers = headers::replayed(scene);
    let archive = asking.served.pool.archive();
    let (length, body) = match body.plain_length() {
        Some(length) => (length, body),
        None => {
            let length = io::copy(&mut body.into_reader(Coding::Plain), &mut io::sink())?;
            let record = archive.open_record(holder).map_err(io::Error::other)?;
            (length, StoredBody::new(record, &holder.digest))
        }
    };
    range::respond(Some(range), length, headers, |from| range::skipped(body.into_reader(Coding::Plain), from))
}

fn problem_of(lost: Lost, url: &str) -> Problem {
    match lost {
        Lost::NotArchived => Problem::not_archived(url),
        Lost::NotHeld(time) => Problem::not_held(url, &time.to_rfc3339()),
        Lost::Damaged(error) => Problem::damaged(&error),
        Lost::Failed(error) => Problem::internal(&error),
    }
}

fn scene_of(asking: &Asking<'_>, address: &ReplayAddress, at: Timestamp, found: &Found) -> Scene {
    let time = match address.when {
        When::At { .. } => at,
        _ => found.capture.time,
    };
    let status = found.head.status().or(found.holder.status).unwrap_or(200);
    Scene {
        base: asking.served.base.clone(),
        origins: asking.origins(),
        origin: asking.origin,
        time,
        modifier: address.modifier,
        capture: found.capture.clone(),
        head: found.head.clone(),
        status: match status {
            206 if is_whole_part(&found.head) => 200,
            // A body goes with these statuses or not at all; an archived one may claim anything.
            304 | ..200 | 600.. => 200,
            status => status,
        },
        state: found.state,
    }
}

/// A time that is no capture's leads to the address of the capture, as clients expect. Parts of a page are answered in place: they
/// carry the page's time.
fn redirect_to_exact(asking: &Asking<'_>, address: &ReplayAddress, found: &Found) -> Option<Response<Body>> {
    let When::At { time, n_digits } = address.when else { return None };
    let is_exact = n_digits == 14 && time.as_secs() == found.capture.time.as_secs();
    if is_exact || n_digits == 14 && address.modifier != Modifier::Top {
        return None;
    }
    let (digits, modifier) = (found.capture.time.to_digits14(), address.modifier.as_str());
    let location = format!("{}/web/{digits}{modifier}/{}", asking.served.base, address.url);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_str(&location).ok()?);
    if let Some(links) = memento::links(asking, found) {
        headers.insert(header::LINK, links);
    }
    memento::allow_all(headers);
    Some(response)
}

/// The bytes as they were captured, in the content coding that they had if the client knows it.
fn identity(asking: &Asking<'_>, scene: &Scene, body: StoredBody) -> io::Result<Response<Body>> {
    let content = body.content_codings();
    let accepted = asking.field("accept-encoding").unwrap_or_default().to_ascii_lowercase();
    let is_understood =
        !content.is_empty() && content.iter().all(|coding| accepted.contains(coding.as_str()));
    let coding = if is_understood { Coding::AsSent } else { Coding::Plain };
    let mut response = Response::new(body.into_body(coding)?);
    *response.headers_mut() = headers::replayed(scene);
    if is_understood && let Ok(value) = HeaderValue::from_str(&content.join(", ")) {
        response.headers_mut().insert(header::CONTENT_ENCODING, value);
    }
    Ok(response)
}

fn add_memento(scene: &Scene, links: Option<HeaderValue>, to: &mut HeaderMap) {
    if let Some(time) = headers::memento_datetime(scene) {
        to.insert("memento-datetime", time);
    }
    if let Some(links) = links {
        to.append(header::LINK, links);
    }
    if let Ok(value) = HeaderValue::from_str(&scene.own_address(scene.modifier)) {
        to.insert(header::CONTENT_LOCATION, value);
    }
    to.insert("x-perennial-coherence", HeaderValue::from_static(scene.state.as_str()));
    memento::allow_all(to);
}
