//! Responses with our own HTML, and their content security policy.

use data_encoding::BASE64;
use hyper::http::{HeaderValue, Response, header};
use maud::Markup;
use sha2::{Digest, Sha256};

use super::body::Body;

/// Allows no script.
const OWN_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub fn html(page: Markup) -> Response<Body> {
    let mut response = Response::new(Body::from(page.0));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(OWN_POLICY));
    // The pages of an admin contain the token of a session.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// A page that may run one script of ours, and what else the extended policy allows.
pub(super) fn scripted(page: Markup, script: &str, allowed: &str) -> Response<Body> {
    let mut response = html(page);
    let hash = BASE64.encode(&Sha256::digest(script.as_bytes()));
    let policy = format!("{OWN_POLICY}; {allowed}; script-src 'sha256-{hash}'");
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
