//! What websites may learn through a reader's browser.
//!
//! Any website can make its visitors' browsers send requests to this server. It must not learn from them what is archived: neither by
//! reading a response, nor by running it as a script, nor from whether an image loads. Everybody may read a public archive, so every
//! website may as well.

use hyper::http::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::{Method, StatusCode};

use super::problem::Problem;
use super::{Options, Origin, Server};

/// The page of a request that a browser sent.
pub struct Asker {
    /// The value of `Origin`, or the origin in `Referer`.
    origin: Option<HeaderValue>,
}

impl Asker {
    pub fn of(parts: &Parts) -> Asker {
        let referer =
            parts.headers.get(header::REFERER).and_then(|value| url::Url::parse(value.to_str().ok()?).ok());
        let referer = referer.and_then(|url| HeaderValue::from_str(&url.origin().ascii_serialization()).ok());
        Asker { origin: parts.headers.get(header::ORIGIN).cloned().or(referer) }
    }

    fn is_allowed(&self, options: &Options) -> bool {
        let is_it = |origin: &HeaderValue| {
            options.allow_origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes())
        };
        self.origin.as_ref().is_some_and(is_it)
    }
}

/// Refuses requests of other websites' pages, except links to us. A frame is refused by its policy, so the page around it
/// does not learn whether there is anything to show.
pub fn check(server: &Server, origin: Origin, parts: &Parts) -> Result<(), Problem> {
    let field = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let is_ours = matches!(field("sec-fetch-site"), None | Some("same-origin" | "none"));
    let is_shown = match field("sec-fetch-dest") {
        // Forms are checked by the handlers of their actions.
        Some("document") => true,
        Some("iframe" | "frame") => origin == Origin::Replay && parts.method == Method::GET,
        _ => false,
    };
    let is_shown = is_shown && field("sec-fetch-mode") == Some("navigate");
    let options = server.options();
    if options.public || is_ours || is_shown || Asker::of(parts).is_allowed(options) {
        return Ok(());
    }
    Err(Problem {
        status: StatusCode::FORBIDDEN,
        kind: "website",
        title: "The page of a different website made this request".to_string(),
        text: "If it may read this archive, start the server with --allow-origin and its origin.".to_string(),
    })
}

/// Tells the browser which websites may use a response. On the replay origin, pages of the main origin may frame it.
pub fn label(server: &Server, asker: &Asker, main_origin: Option<&str>, headers: &mut HeaderMap) {
    let options = server.options();
    let is_allowed = asker.is_allowed(options);
    let readers = if options.public || is_allowed { "cross-origin" } else { "same-origin" };
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static(readers));
    let policies = headers.get_all(header::CONTENT_SECURITY_POLICY);
    if !policies.iter().any(|policy| policy.as_bytes().starts_with(b"sandbox")) {
        // Otherwise a website that opens a window can count the frames in it. Browsers refuse this field in a sandbox.
        headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    }
    let framing = main_origin.map(|main| HeaderValue::from_str(&format!("frame-ancestors 'self' {main}")));
    if let Some(Ok(framing)) = framing {
        headers.append(header::CONTENT_SECURITY_POLICY, framing);
    }
    if options.public || headers.remove(header::ACCESS_CONTROL_ALLOW_ORIGIN).is_none() {
        return;
    }
    // In one field, because some clients ignore a second one.
    let varies = match headers.get(header::VARY).and_then(|varies| varies.to_str().ok()) {
        Some(varies) => format!("{varies}, origin"),
        None => "origin".to_owned(),
    };
    if let Ok(varies) = HeaderValue::from_str(&varies) {
        headers.insert(header::VARY, varies);
    }
    if let Some(reader) = asker.origin.clone().filter(|_| is_allowed) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, reader);
    }
}
