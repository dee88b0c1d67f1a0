//! `/web/...` -> archived content: the capture to show, its bytes, what Memento says of it.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use perennial_core::memento::{Modifier, ReplayAddress, When};
use perennial_core::time::Timestamp;

use super::body::{Coding, StoredBody};
use super::find::{Found, Lost, find};
use super::problem::Problem;
use super::scene::Scene;
use super::{Origin, Served, Server, banner, headers, rewrite};
use crate::archive;

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
}

impl Asking<'_> {
    /// A field of the request, if it is text.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// Where a request belongs that a replayed page made to the root of the replay origin: to the archive of the page that asked.
    pub fn stray(&self, target: &str) -> Option<Response<Body>> {
        let (replay, referer) = (&self.server.origins().replay, self.field("referer"));
        let archives = self.server.archives().iter();
        archives.filter_map(|served| rewrite::own::stray(referer, replay, &served.base, target)).next()
    }

    /// Whether a browser goes to this address to show it as a page.
    pub fn is_navigation(&self) -> bool {
        self.field("sec-fetch-dest") == Some("document")
    }
}

/// Answers a request for one capture.
pub fn replay(asking: &Asking<'_>, address: &ReplayAddress) -> Result<Response<Body>, Problem> {
    let at = match address.when {
        When::At { time, .. } => time,
        When::Unsaid | When::All => archive::now(),
    };
    let found =
        asking.served.pool.with(|snapshot| find(snapshot, &address.url, at, asking.server.is_closest()));
    let found =
        found.map_err(|error| Problem::internal(&error))?.map_err(|lost| problem_of(lost, &address.url))?;
    if let Some(response) = redirect_to_exact(asking, address, &found) {
        return Ok(response);
    }
    let scene = scene_of(asking, address, at, &found);
    if asking.is_navigation() && scene.modifier != Modifier::Identity {
        match asking.origin {
            // Archived content is shown in our frame only.
            Origin::Replay => return Ok(banner::to_wrapper(&scene)),
            Origin::Main if scene.modifier == Modifier::Top => return banner::wrapper(asking, &scene, found),
            Origin::Main => {}
        }
    }
    let body = StoredBody::new(found.record, &found.holder.digest);
    let response = match scene.modifier {
        Modifier::Identity => identity(asking, &scene, body),
        _ => rewrite::respond(&scene, asking.field("sec-fetch-dest"), body),
    };
    let mut response = response.map_err(|error| Problem::damaged(&error.into()))?;
    *response.status_mut() = StatusCode::from_u16(scene.status).unwrap_or(StatusCode::OK);
    add_memento(&scene, response.headers_mut());
    Ok(response)
}

fn problem_of(lost: Lost, url: &str) -> Problem {
    match lost {
        Lost::NotArchived => Problem::not_archived(url),
        Lost::NotHeld(capture) => Problem::not_held(&capture.url, &capture.time.to_rfc3339()),
        Lost::Damaged(error) => Problem::damaged(&error),
        Lost::Failed(error) => Problem::internal(&error),
    }
}

fn scene_of(asking: &Asking<'_>, address: &ReplayAddress, at: Timestamp, found: &Found) -> Scene {
    let time = match address.when {
        When::At { .. } => at,
        _ => found.capture.time,
    };
    let status = found.record.head.status().or(found.holder.status).unwrap_or(200);
    Scene {
        base: asking.served.base.clone(),
        origins: asking.server.origins().clone(),
        origin: asking.origin,
        time,
        modifier: address.modifier,
        capture: found.capture.clone(),
        head: found.record.head.clone(),
        // A body goes with these statuses or not at all; an archived one may claim anything.
        status: if (200..600).contains(&status) && status != 304 { status } else { 200 },
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
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_str(&location).ok()?);
    Some(response)
}

/// The bytes as they were captured, in the content coding that they had if the client knows it.
fn identity(asking: &Asking<'_>, scene: &Scene, body: StoredBody) -> std::io::Result<Response<Body>> {
    let (content, _) = scene.head.codings();
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

fn add_memento(scene: &Scene, to: &mut HeaderMap) {
    if let Some(time) = headers::memento_datetime(scene) {
        to.insert("memento-datetime", time);
    }
    if let Ok(value) = HeaderValue::from_str(&scene.own_address(scene.modifier)) {
        to.insert(header::CONTENT_LOCATION, value);
    }
    to.insert("x-perennial-coherence", HeaderValue::from_static(scene.state.as_str()));
}
