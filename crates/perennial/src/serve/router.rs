//! A request -> whoever answers it. Paths are read here and not decoded: an archived address stands in them as it is.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, Response};
use perennial_core::memento::ReplayAddress;

use super::problem::Problem;
use super::replay::{Asking, replay};
use super::{Origin, Server, banner, rewrite};

/// The longest path with its query that is read.
const MAX_TARGET_BYTES: usize = 16 << 10;

/// The routes of one origin.
pub fn router(server: Arc<Server>, origin: Origin) -> Router {
    Router::new().fallback(answer).with_state((server, origin))
}

async fn answer(State((server, origin)): State<(Arc<Server>, Origin)>, request: Request) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let wants_json = wants_json(&parts);
    // The archive is asked and its files are read on threads that may wait for the disk.
    let answered = tokio::task::spawn_blocking(move || route(&server, origin, &parts)).await;
    let result = answered.unwrap_or_else(|error| Err(Problem::internal(&error.into())));
    result.unwrap_or_else(|problem| problem.into_response(wants_json))
}

fn wants_json(parts: &Parts) -> bool {
    let accept = parts.headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.contains("json")
}

fn route(server: &Server, origin: Origin, parts: &Parts) -> Result<Response<Body>, Problem> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(Problem::method());
    }
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    if target.len() > MAX_TARGET_BYTES {
        return Err(Problem::bad_request("The address is too long."));
    }
    if parts.headers.get("service-worker").is_some() && !target.starts_with(rewrite::own::ROOT) {
        return Err(Problem::bad_request("Archived service workers are not registered."));
    }
    if let Some(rest) = target.strip_prefix(rewrite::own::ROOT) {
        let own = match origin {
            Origin::Replay => rewrite::own::file(rest, &server.origins().main),
            Origin::Main => banner::answer(server, rest)?,
        };
        return own.ok_or_else(|| Problem::no_such_page(target));
    }
    let (served, path) = archive_of(server, target)?;
    let asking = Asking { server, served, origin, parts };
    if let Some(rest) = path.strip_prefix("/web/") {
        let address = ReplayAddress::parse(rest).ok_or_else(|| {
            Problem::bad_request("No address: write /web/20260102030405/https://example.org/")
        })?;
        return replay(&asking, &address);
    }
    let led = match origin {
        Origin::Replay => asking.stray(target),
        Origin::Main => None,
    };
    led.ok_or_else(|| Problem::no_such_page(path))
}

/// The archive that a path begins with, and the rest of the path; without a name it is the first one.
fn archive_of<'s, 't>(server: &'s Server, target: &'t str) -> Result<(&'s super::Served, &'t str), Problem> {
    let (name, _) = target[1.min(target.len())..].split_once('/').unwrap_or_default();
    let named = server.archives().iter().find(|served| served.name == name && !name.is_empty());
    if let Some(served) = named {
        return Ok((served, &target[1 + name.len()..]));
    }
    let first = server.archives().first();
    first.map(|served| (served, target)).ok_or_else(|| Problem::no_such_page(target))
}
