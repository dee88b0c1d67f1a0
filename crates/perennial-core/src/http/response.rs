//! An HTTP response -> its meaning for the page, its host, and the page's validators.
//!
//! The crawler uses this module, and so do recovery after a restart and a rebuild of the state from the WARC files.

use std::fmt;

use crate::http::politeness::{HostResponse, parse_retry_after};
use crate::http::validator::{ValidatorResponse, ValidatorTrust};
use crate::time::Timestamp;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ResponseKind {
    /// The page itself.
    Content,
    /// 304: the page is unchanged.
    NotModified,
    /// The page is at another URL.
    Redirect,
    /// The page does not exist, or may not be read.
    Gone,
    /// The server could not respond now, or the response was incomplete: nothing is known about the page.
    Failed,
}

impl ResponseKind {
    /// By the status alone.
    pub fn from_status(status: u16) -> ResponseKind {
        match status {
            200..=299 => ResponseKind::Content,
            304 => ResponseKind::NotModified,
            300..=399 => ResponseKind::Redirect,
            408 | 425 | 429 | 500..=599 => ResponseKind::Failed,
            _ => ResponseKind::Gone,
        }
    }

    /// An incomplete response contains no information about the page, whatever its status.
    pub fn from_response(status: u16, is_broken_off: bool) -> ResponseKind {
        if is_broken_off { ResponseKind::Failed } else { ResponseKind::from_status(status) }
    }

    /// Whether the response shows what a reader of the page would have seen.
    pub fn is_observation(self) -> bool {
        self != ResponseKind::Failed
    }
}

/// Whether a server refuses a page that may well exist: to everybody without a login or a payment, to this crawler, or
/// for legal reasons.
pub fn is_refusal(status: u16) -> bool {
    matches!(status, 401 | 402 | 403 | 407 | 451)
}

/// The meaning of a response: responses with equal identities show the same. A redirect is the same while its status
/// and target are, and an error is the same whatever the error page contains.
///
/// The store and the WARC files contain it as text; [`Identity::parse`] and `Display` convert it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Identity {
    /// The page, by the digest of its payload.
    Payload(String),
    /// A page that a browser rendered, by the digest of the visible content, not of the bytes that its scripts
    /// arrived in.
    RenderedPayload(String),
    /// A redirect; the target is empty if the response has none.
    Redirect {
        status: u16,
        target: String,
    },
    Error {
        status: u16,
    },
    /// An error page delivered with status 200, by its digest.
    SoftError(String),
    /// The same bytes as a different URL, such as `/index.html` and `/`.
    Alias(String),
}

const RENDERED: &str = "drawn ";
const ALIAS: &str = "200 ";
const SOFT_ERROR: &str = "404 ";

impl Identity {
    /// The identity of a response if it is not the digest of its payload.
    pub fn from_response(kind: ResponseKind, status: u16, redirect: Option<&str>) -> Option<Identity> {
        match kind {
            ResponseKind::Content | ResponseKind::NotModified | ResponseKind::Failed => None,
            ResponseKind::Redirect => {
                Some(Identity::Redirect { status, target: redirect.unwrap_or_default().to_owned() })
            }
            ResponseKind::Gone => Some(Identity::Error { status }),
        }
    }

    /// Reads the stored text.
    pub fn parse(text: &str) -> Identity {
        let after = |prefix: &str| text.strip_prefix(prefix).map(str::to_owned);
        // Digits with leading zeros or signs belong to a digest.
        let status = |digits: &str| digits.parse::<u16>().ok().filter(|status| status.to_string() == digits);
        let redirect = || {
            let (digits, target) = text.split_once(' ')?;
            let status = status(digits).filter(|status| (300..400).contains(status))?;
            Some(Identity::Redirect { status, target: target.to_owned() })
        };
        after(RENDERED)
            .map(Identity::RenderedPayload)
            .or_else(|| after(ALIAS).map(Identity::Alias))
            .or_else(|| after(SOFT_ERROR).map(Identity::SoftError))
            .or_else(redirect)
            .or_else(|| status(text).map(|status| Identity::Error { status }))
            .unwrap_or_else(|| Identity::Payload(text.to_owned()))
    }

    /// Whether the response contained a page.
    pub fn is_page(&self) -> bool {
        matches!(self, Identity::Payload(_) | Identity::RenderedPayload(_))
    }

    /// Whether a browser rendered the page.
    pub fn is_rendered(&self) -> bool {
        matches!(self, Identity::RenderedPayload(_))
    }

    pub fn redirect_target(&self) -> Option<&str> {
        match self {
            Identity::Redirect { target, .. } => Some(target),
            _ => None,
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identity::Payload(digest) => f.write_str(digest),
            Identity::RenderedPayload(digest) => write!(f, "{RENDERED}{digest}"),
            Identity::Redirect { status, target } => write!(f, "{status} {target}"),
            Identity::Error { status } => write!(f, "{status}"),
            Identity::SoftError(digest) => write!(f, "{SOFT_ERROR}{digest}"),
            Identity::Alias(url) => write!(f, "{ALIAS}{url}"),
        }
    }
}

/// The name of an error response in statistics.
pub fn error_name(status: u16, is_broken_off: bool) -> Option<&'static str> {
    match (ResponseKind::from_response(status, is_broken_off), status) {
        (ResponseKind::Content | ResponseKind::NotModified | ResponseKind::Redirect, _) => None,
        (ResponseKind::Failed, _) if is_broken_off => Some("disconnected"),
        (_, 404 | 410) => Some("not-found"),
        (_, 401 | 403) => Some("forbidden"),
        (_, 429) => Some("too-many-requests"),
        (_, 400..=499) => Some("client-error"),
        (_, 500..=599) => Some("server-error"),
        _ => Some("odd-status"),
    }
}

/// The same for people.
pub fn error_words(status: u16, is_broken_off: bool) -> Option<String> {
    let words = match error_name(status, is_broken_off)? {
        "disconnected" => {
            return Some("the connection ended before the whole response had arrived".to_owned());
        }
        "not-found" => "there is no such page",
        "forbidden" => "the server refuses access",
        "too-many-requests" => "the server receives too many requests",
        "client-error" => "the server rejects the request",
        "server-error" => "the server has a problem",
        _ => "the response has an unusual status",
    };
    Some(format!("{words} (status {status})"))
}

/// The meaning of a response for its host.
pub fn host_response(
    status: u16,
    is_broken_off: bool,
    retry_after: Option<&str>,
    now: Timestamp,
) -> HostResponse {
    match status {
        429 | 500..=599 => HostResponse::Overloaded {
            retry_after: retry_after.and_then(|value| parse_retry_after(value, now)),
        },
        _ if is_broken_off => HostResponse::Silent,
        _ => HostResponse::Served,
    }
}

/// ETag and Last-Modified of a response.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Validators {
    /// Verbatim.
    pub etag: Option<String>,
    /// Verbatim.
    pub last_modified: Option<String>,
}

impl Validators {
    pub fn is_some(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

/// Updates the trust in a page's validators. `before` contains digest and validators of the last full response.
pub fn trust_after(
    mut trust: ValidatorTrust,
    before: Option<(&str, &Validators)>,
    status: u16,
    is_conditional: bool,
    digest: &str,
    validators: &Validators,
) -> ValidatorTrust {
    let same_payload = before.is_some_and(|(before, _)| before == digest);
    let same_validator = validators.is_some() && before.is_some_and(|(_, before)| before == validators);
    match (status, is_conditional) {
        (304, _) => trust.record(ValidatorResponse::NotModified),
        _ if before.is_none() => {}
        (_, true) => trust.record(ValidatorResponse::FullDespiteCondition { same_payload }),
        (_, false) => trust.record(ValidatorResponse::Full { same_payload, same_validator }),
    }
    trust
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identities() -> impl Strategy<Value = Identity> {
        let digest = || "(sha1|sha256|md5):[A-Z2-7]{0,9}";
        let url = || "(https?://[a-z.]{1,9}/[ -~]{0,9})?";
        prop_oneof![
            digest().prop_map(Identity::Payload),
            digest().prop_map(Identity::RenderedPayload),
            digest().prop_map(Identity::SoftError),
            url().prop_map(Identity::Alias),
            (300u16..400, url()).prop_map(|(status, target)| Identity::Redirect { status, target }),
            any::<u16>().prop_map(|status| Identity::Error { status }),
        ]
    }

    proptest! {
        #[test]
        fn an_identity_is_read_as_it_is_written(identity in identities()) {
            prop_assert_eq!(Identity::parse(&identity.to_string()), identity);
        }

        #[test]
        fn any_text_is_written_as_it_was_read(
            text in prop_oneof![any::<String>(), "(drawn |200 |404 |[0-9]{1,4} ?)?[ -~]{0,12}"]
        ) {
            prop_assert_eq!(Identity::parse(&text).to_string(), text);
        }
    }

    #[test]
    fn stored_identities_have_one_meaning_each() {
        let parse = Identity::parse;
        assert_eq!(parse("sha1:A"), Identity::Payload("sha1:A".into()));
        assert_eq!(parse("drawn sha256:B"), Identity::RenderedPayload("sha256:B".into()));
        assert_eq!(parse("410"), Identity::Error { status: 410 });
        assert_eq!(parse("404 sha1:A"), Identity::SoftError("sha1:A".into()));
        assert_eq!(parse("200 http://a/"), Identity::Alias("http://a/".into()));
        assert_eq!(parse("301 http://a/"), Identity::Redirect { status: 301, target: "http://a/".into() });
        assert_eq!(parse("301 ").redirect_target(), Some(""));
        // Digests of other tools may begin with a digit.
        assert!(parse("3f786850").is_page() && parse("").is_page() && !parse("404").is_page());
    }

    #[test]
    fn statuses_have_one_meaning_each() {
        for (status, kind) in [
            (200, ResponseKind::Content),
            (206, ResponseKind::Content),
            (301, ResponseKind::Redirect),
            (304, ResponseKind::NotModified),
            (308, ResponseKind::Redirect),
            (403, ResponseKind::Gone),
            (404, ResponseKind::Gone),
            (408, ResponseKind::Failed),
            (410, ResponseKind::Gone),
            (429, ResponseKind::Failed),
            (503, ResponseKind::Failed),
            (999, ResponseKind::Gone),
        ] {
            assert_eq!(ResponseKind::from_status(status), kind, "{status}");
            assert_eq!(error_name(status, false).is_none(), status < 400, "{status}");
        }
        assert_eq!(ResponseKind::from_response(200, true), ResponseKind::Failed);
        assert_eq!(error_name(200, true), Some("disconnected"));
    }

    #[test]
    fn a_host_is_overloaded_silent_or_served() {
        let now = Timestamp::from_secs(0);
        assert!(matches!(
            host_response(503, false, Some("120"), now),
            HostResponse::Overloaded { retry_after: Some(_) }
        ));
        assert_eq!(host_response(200, true, None, now), HostResponse::Silent);
        assert_eq!(host_response(404, false, None, now), HostResponse::Served);
    }
}
