//! The archived header fields that a client may receive.
//!
//! An archived field was meant for the origin it came from: its cookie, policy or redirect would act on our origin. So all fields
//! are renamed to `x-archive-orig-...`, as in the Wayback Machine. Only fields that describe the content also keep their names.

use hyper::http::{HeaderMap, HeaderName, HeaderValue, header};
use perennial_core::memento::{Modifier, date};
use url::Url;

use super::Origin;
use super::replay_context::ReplayContext;

/// Fields that describe the content and have no other effect.
const HARMLESS: [&str; 5] =
    ["content-type", "content-language", "content-disposition", "last-modified", "accept-ranges"];

/// Fields that belong to the archived connection.
const OF_THE_CONNECTION: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Archived fields that are passed on.
const MAX_FIELDS: usize = 128;
const MAX_VALUE_BYTES: usize = 8 << 10;

/// The policy of archived content on the main origin: a sandbox without an origin, which loads from this server only.
pub const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups; default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; \
     form-action 'self'; base-uri 'self'";

/// The policy of a document that was not rewritten: nothing in it may run or load.
pub const AS_CAPTURED: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The fields of an archived response: renamed, with `Location` pointing into the archive, and with our policy.
pub fn replayed(context: &ReplayContext) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in context.head.fields().take(MAX_FIELDS) {
        let name = name.to_ascii_lowercase();
        let Some(value) = clean(&value) else { continue };
        if HARMLESS.contains(&name.as_str())
            && let Ok(name) = HeaderName::from_bytes(name.as_bytes())
        {
            headers.append(name, value.clone());
        }
        if !OF_THE_CONNECTION.contains(&name.as_str())
            && let Ok(name) = HeaderName::from_bytes(format!("x-archive-orig-{name}").as_bytes())
        {
            headers.append(name, value);
        }
    }
    if context.head.is_empty()
        && let Some(mime) = context.capture.mime.as_deref().and_then(clean)
    {
        headers.insert(header::CONTENT_TYPE, mime);
    }
    if let Some(location) = location(context) {
        headers.insert(header::LOCATION, location);
    }
    if let Some(policy) = policy(context) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    // A guessed type could turn text into a script.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers
}

/// The policy, which depends on origin and form.
fn policy(context: &ReplayContext) -> Option<HeaderValue> {
    let is_document =
        context.head.media_type().is_none_or(|media| media.contains("html") || media.contains("xml"));
    match context.origin {
        _ if context.modifier == Modifier::Identity && is_document => {
            Some(HeaderValue::from_static(AS_CAPTURED))
        }
        Origin::Main => Some(HeaderValue::from_static(SANDBOX)),
        Origin::Replay => {
            HeaderValue::from_str(&super::rewrite::headers::policy(&context.origins.main, true)).ok()
        }
    }
}

/// The target of a redirect, in the archive and at the same instant.
fn location(context: &ReplayContext) -> Option<HeaderValue> {
    if !(300..400).contains(&context.status) {
        return None;
    }
    let target = Url::parse(&context.capture.url).ok()?.join(&context.head.get("Location")?).ok()?;
    if !matches!(target.scheme(), "http" | "https") {
        return None;
    }
    let modifier = if context.modifier == Modifier::Other { Modifier::Page } else { context.modifier };
    HeaderValue::from_str(&context.replay_url(modifier, target.as_str())).ok()
}

/// A valid header value of bounded length.
fn clean(value: &str) -> Option<HeaderValue> {
    if value.len() > MAX_VALUE_BYTES || value.chars().any(|c| c.is_control() && c != '\t') {
        return None;
    }
    HeaderValue::from_bytes(value.as_bytes()).ok()
}

/// The value of `Memento-Datetime`.
pub fn memento_datetime(context: &ReplayContext) -> Option<HeaderValue> {
    HeaderValue::from_str(&date::write(context.capture.time)).ok()
}
