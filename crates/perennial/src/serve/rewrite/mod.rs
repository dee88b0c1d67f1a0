//! Archived content -> content whose addresses lead into the archive.
//!
//! This is the one door: every modifier but `id_` goes through [`respond`]. It runs on a thread that may block.

use std::io;

use axum::body::Body;
use axum::http::Response;

use super::body::{Coding, StoredBody};
use super::headers;
use super::scene::Scene;

/// The answer to a request for an archived address, for what the browser says it needs it for. The caller adds what Memento says of it; the headers made here are those of
/// [`headers::replayed`], and what the rewriting itself needs. A body that cannot be trusted is an error, which the caller shows as a page.
pub fn respond(scene: &Scene, _destination: Option<&str>, body: StoredBody) -> io::Result<Response<Body>> {
    let mut response = Response::new(body.into_body(Coding::Plain)?);
    *response.headers_mut() = headers::replayed(scene);
    Ok(response)
}
