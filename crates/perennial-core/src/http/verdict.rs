//! An HTTP answer -> what it says of the page, of its host, and of the page's validators.
//!
//! This module is used while a crawl runs, when an archive is read again after a restart, and when its state is made anew
//! from the WARC files.

use std::fmt;

use crate::http::politeness::{HostAnswer, parse_retry_after};
use crate::http::validator::{Answer, ValidatorTrust};
use crate::time::Timestamp;

/// What kind of answer came back for a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AnswerKind {
    /// The page itself.
    Content,
    /// 304: the page is as it was.
    NotModified,
    /// The page is elsewhere.
    Redirect,
    /// There is no such page, or it may not be read.
    Gone,
    /// The server could not answer now, or the answer broke off: nothing is known of the page.
    Failed,
}

impl AnswerKind {
    /// By the status alone.
    pub fn of_status(status: u16) -> AnswerKind {
        match status {
            200..=299 => AnswerKind::Content,
            304 => AnswerKind::NotModified,
            300..=399 => AnswerKind::Redirect,
            408 | 425 | 429 | 500..=599 => AnswerKind::Failed,
            _ => AnswerKind::Gone,
        }
    }

    /// An answer whose connection broke off says nothing of the page, whatever its status.
    pub fn of_answer(status: u16, is_broken_off: bool) -> AnswerKind {
        if is_broken_off { AnswerKind::Failed } else { AnswerKind::of_status(status) }
    }

    /// Whether the answer says what a reader of the page would have seen.
    pub fn is_look(self) -> bool {
        self != AnswerKind::Failed
    }
}

/// What a URL answered: two answers with equal identities show the same. A redirect is the same while its status and target
/// are, and a page is gone whatever the error page says.
///
/// The store and the WARC files have it as text, which is read by [`Identity::parse`] and written by `Display`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Identity {
    /// The page, by the digest of its payload.
    Payload(String),
    /// A page that a browser rendered, by the digest of what a reader saw: not of the bytes that its scripts came in.
    RenderedPayload(String),
    /// Another URL to go to; empty if the answer names none.
    Redirect {
        /// HTTP status.
        status: u16,
        /// The other URL.
        target: String,
    },
    /// There is no page.
    Error {
        /// HTTP status.
        status: u16,
    },
    /// An error page that is delivered as if it were the page, by its digest.
    SoftError(String),
    /// The page of another URL again, such as `/index.html` where `/` has the same bytes.
    Alias(String),
}

const RENDERED: &str = "drawn ";
const ALIAS: &str = "200 ";
const SOFT_ERROR: &str = "404 ";

impl Identity {
    /// Of an answer whose identity is not the digest of its payload.
    pub fn of_answer(kind: AnswerKind, status: u16, redirect: Option<&str>) -> Option<Identity> {
        match kind {
            AnswerKind::Content | AnswerKind::NotModified | AnswerKind::Failed => None,
            AnswerKind::Redirect => {
                Some(Identity::Redirect { status, target: redirect.unwrap_or_default().to_owned() })
            }
            AnswerKind::Gone => Some(Identity::Error { status }),
        }
    }

    /// Reads the stored text.
    pub fn parse(text: &str) -> Identity {
        let after = |prefix: &str| text.strip_prefix(prefix).map(str::to_owned);
        // Digits that would not be written as they are read are part of a digest.
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

    /// Whether the answer showed a page.
    pub fn is_page(&self) -> bool {
        matches!(self, Identity::Payload(_) | Identity::RenderedPayload(_))
    }

    /// Whether a browser rendered the page.
    pub fn is_rendered(&self) -> bool {
        matches!(self, Identity::RenderedPayload(_))
    }

    /// Where a redirect leads.
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

/// The name of an answer that is not the page, for counting.
pub fn error_word(status: u16, is_broken_off: bool) -> Option<&'static str> {
    match (AnswerKind::of_answer(status, is_broken_off), status) {
        (AnswerKind::Content | AnswerKind::NotModified | AnswerKind::Redirect, _) => None,
        (AnswerKind::Failed, _) if is_broken_off => Some("disconnected"),
        (_, 404 | 410) => Some("not-found"),
        (_, 401 | 403) => Some("forbidden"),
        (_, 429) => Some("too-many-requests"),
        (_, 400..=499) => Some("client-error"),
        (_, 500..=599) => Some("server-error"),
        _ => Some("odd-status"),
    }
}

/// What an answer says of its host.
pub fn host_answer(
    status: u16,
    is_broken_off: bool,
    retry_after: Option<&str>,
    now: Timestamp,
) -> HostAnswer {
    match status {
        429 | 500..=599 => HostAnswer::Overloaded {
            retry_after: retry_after.and_then(|value| parse_retry_after(value, now)),
        },
        _ if is_broken_off => HostAnswer::Silent,
        _ => HostAnswer::Served,
    }
}

/// ETag and Last-Modified of an answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Validators {
    /// As the server wrote it.
    pub etag: Option<String>,
    /// As the server wrote it.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Whether there is any.
    pub fn is_some(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

/// What an answer taught about the page's validators. `before` holds digest and validators of the last full answer.
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
        (304, _) => trust.record(Answer::NotModified),
        _ if before.is_none() => {}
        (_, true) => trust.record(Answer::FullDespiteCondition { same_payload }),
        (_, false) => trust.record(Answer::Full { same_payload, same_validator }),
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
            (200, AnswerKind::Content),
            (206, AnswerKind::Content),
            (301, AnswerKind::Redirect),
            (304, AnswerKind::NotModified),
            (308, AnswerKind::Redirect),
            (403, AnswerKind::Gone),
            (404, AnswerKind::Gone),
            (408, AnswerKind::Failed),
            (410, AnswerKind::Gone),
            (429, AnswerKind::Failed),
            (503, AnswerKind::Failed),
            (999, AnswerKind::Gone),
        ] {
            assert_eq!(AnswerKind::of_status(status), kind, "{status}");
            assert_eq!(error_word(status, false).is_none(), status < 400, "{status}");
        }
        assert_eq!(AnswerKind::of_answer(200, true), AnswerKind::Failed);
        assert_eq!(error_word(200, true), Some("disconnected"));
    }

    #[test]
    fn a_host_is_overloaded_silent_or_served() {
        let now = Timestamp::from_secs(0);
        assert!(matches!(
            host_answer(503, false, Some("120"), now),
            HostAnswer::Overloaded { retry_after: Some(_) }
        ));
        assert_eq!(host_answer(200, true, None, now), HostAnswer::Silent);
        assert_eq!(host_answer(404, false, None, now), HostAnswer::Served);
    }
}
