//! Rewrites archived content so that its URLs point into the archive.
//!
//! There are three layers (docs/replay.md, docs/decisions/0036-rewriting.md). This module rewrites on the server. `replay.js` runs before
//! the page's scripts and rewrites what they create. `worker.js` is a service worker for the remaining requests. The policy of each
//! response limits what all three miss.
//!
//! | file | responsibility |
//! |---|---|
//! | [`url`] | a URL in a document -> the URL in this archive |
//! | [`css`] | stylesheets |
//! | `tokens`, [`script`] | scripts, which see the archived page's own location |
//! | [`attributes`], [`html`] | pages |
//! | [`headers`] | header fields with URLs, and the policy |
//! | [`body`] | bodies, as streams |
//! | [`assets`] | our own scripts, and redirects of leaked requests |
//!
//! [`respond`] handles every modifier except `id_`. It runs on a thread that may block.

pub mod assets;
pub mod attributes;
pub mod body;
pub mod css;
pub mod headers;
pub mod html;
pub mod script;
mod tokens;
pub mod url;

use std::io::{self, Cursor, Read};

use ::url::Url;
use hyper::http::{HeaderMap, HeaderValue, Response, header};
use perennial_core::memento::Modifier;
use perennial_core::text::charset::Charset;
use serde_json::json;

use self::body::{BodyRewriter, MAX_TEXT_BYTES, Treatment, is_enough, rewrite_whole, treatment};
use self::html::{Injection, PageOptions};
use self::url::RewritePlace;
use super::Origin;
use super::body::{Coding, StoredBody, streamed};
use super::headers as fields;
use super::replay_context::ReplayContext;
use crate::body::Body;

/// Bytes per read.
const PIECE_BYTES: usize = 64 << 10;

/// Responds with a rewritten capture. The caller adds the Memento headers. A body with a wrong digest is an error, which the caller
/// shows as a page.
pub fn respond(
    context: &ReplayContext,
    destination: Option<&str>,
    body: StoredBody,
) -> io::Result<Response<Body>> {
    let mut headers = fields::replayed(context);
    let Some(place) = place_of(context) else {
        return answer(headers, body.into_body(Coding::Plain)?);
    };
    for (name, value) in headers::leading_fields(&context.head, &place) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.append(name, value);
        }
    }
    let said = context.head.get("Content-Type");
    let said = said.as_deref();
    let mut reader = body.into_reader(Coding::Plain);
    let mut start = Vec::new();
    read_until(&mut reader, &mut start, |start| start.len() >= 1024)?;
    let treatment = treatment(context.modifier, destination, media_type(context).as_deref(), &start);
    read_until(&mut reader, &mut start, |start| is_enough(treatment, start, said))?;
    set_policy(context, treatment, &mut headers);
    match treatment {
        Treatment::Bytes => answer(headers, streamed(Box::new(Cursor::new(start).chain(reader)))?),
        Treatment::Style | Treatment::Script if start.len() > MAX_TEXT_BYTES => {
            answer(headers, streamed(Box::new(Cursor::new(start).chain(reader)))?)
        }
        Treatment::Style | Treatment::Script => {
            let whole = rewrite_whole(treatment, &start, said, &place);
            set_type(
                &mut headers,
                if treatment == Treatment::Style { "text/css" } else { "text/javascript" },
                whole.charset,
            );
            answer(headers, Body::from(whole.bytes))
        }
        Treatment::Page | Treatment::Xml => {
            let options = page_options(context, treatment, place);
            let (rewriter, charset) = BodyRewriter::page(options, &start, said);
            let is_decoded = matches!(rewriter, BodyRewriter::Decoded(..));
            if treatment == Treatment::Page || is_decoded {
                let media_type = media_type(context).unwrap_or_else(|| "text/html".to_string());
                set_type(&mut headers, &media_type, Some(charset));
            }
            let source = Box::new(Cursor::new(start).chain(reader));
            let rewriting = Rewriting { source, rewriter: Some(rewriter), ready: Cursor::new(Vec::new()) };
            answer(headers, streamed(Box::new(rewriting))?)
        }
    }
}

/// How URLs of a document are rewritten; `None` if the document has no web URL.
fn place_of(context: &ReplayContext) -> Option<RewritePlace> {
    let base = Url::parse(&context.capture.url).ok().filter(|url| !url.cannot_be_a_base())?;
    let (root, time) = (format!("{}/web/", context.base), context.time.to_digits14());
    Some(RewritePlace { root, time, base, charset: Charset::default() })
}

/// The archived media type, or that in the index.
fn media_type(context: &ReplayContext) -> Option<String> {
    context.head.media_type().or_else(|| context.capture.mime.clone())
}

fn page_options(context: &ReplayContext, treatment: Treatment, place: RewritePlace) -> PageOptions {
    let is_drawing = media_type(context).as_deref() == Some("image/svg+xml");
    let modifier = match context.modifier {
        Modifier::Frame | Modifier::Frameset => context.modifier,
        _ => Modifier::Page,
    };
    let knowledge = json!({
        "root": place.root,
        "time": place.time,
        "modifier": modifier.as_str(),
        "url": context.capture.url,
        "main": context.origins.main,
        "own": assets::ROOT,
        "script": assets::SCRIPT_URL,
        "frame": attributes::FRAME_NAME,
    });
    let injection = Injection::script(assets::SCRIPT_URL, &knowledge.to_string());
    PageOptions {
        place,
        // A drawing runs no scripts, including ours.
        injection: (treatment == Treatment::Page || !is_drawing).then_some(injection),
        is_outermost: modifier == Modifier::Page,
        n_nested: 0,
    }
}

/// Content on the replay origin may run scripts within our policy. A drawing may not: as an image it never does, and as a document
/// it would run without our script.
fn set_policy(context: &ReplayContext, treatment: Treatment, headers: &mut HeaderMap) {
    if context.origin == Origin::Main {
        return;
    }
    let is_drawing = treatment == Treatment::Xml && media_type(context).as_deref() == Some("image/svg+xml");
    let is_other_xml = treatment == Treatment::Bytes
        && media_type(context).is_some_and(|media| media.ends_with("/xml") || media.ends_with("+xml"));
    if is_drawing || is_other_xml {
        let policy = headers::policy(&context.origins.main, false);
        if let Ok(policy) = HeaderValue::from_str(&policy) {
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
    }
    headers.insert("permissions-policy", HeaderValue::from_static(headers::PERMISSIONS));
    headers.insert("x-dns-prefetch-control", HeaderValue::from_static("off"));
}

fn set_type(headers: &mut HeaderMap, media_type: &str, charset: Option<&str>) {
    let value = match charset {
        Some(charset) => format!("{media_type}; charset={charset}"),
        None => media_type.to_string(),
    };
    if let Ok(value) = HeaderValue::from_str(&value) {
        headers.insert(header::CONTENT_TYPE, value);
    }
}

fn answer(headers: HeaderMap, body: Body) -> io::Result<Response<Body>> {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    Ok(response)
}

/// Reads until there is enough, or to the end.
fn read_until(
    reader: &mut dyn Read,
    into: &mut Vec<u8>,
    is_enough: impl Fn(&[u8]) -> bool,
) -> io::Result<()> {
    while !is_enough(into) {
        // The amount doubles, so that repeated checks cost no more than reading.
        let n_more = (into.len().max(1024)) as u64;
        if reader.take(n_more).read_to_end(into)? == 0 {
            return Ok(());
        }
    }
    Ok(())
}

/// A page that is rewritten while it is read.
struct Rewriting {
    source: Box<dyn Read + Send>,
    /// `None` after the end.
    rewriter: Option<BodyRewriter>,
    ready: Cursor<Vec<u8>>,
}

impl Read for Rewriting {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let n_read = self.ready.read(out)?;
            if n_read > 0 || out.is_empty() {
                return Ok(n_read);
            }
            let Some(rewriter) = &mut self.rewriter else { return Ok(0) };
            let n_piece = self.source.read(&mut piece)?;
            let rewritten = match n_piece {
                0 => self.rewriter.take().map_or(Ok(Vec::new()), BodyRewriter::end),
                _ => rewriter.write(&piece[..n_piece]),
            };
            self.ready = Cursor::new(rewritten.map_err(io::Error::other)?);
        }
    }
}
