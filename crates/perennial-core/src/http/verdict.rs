//! An HTTP answer -> what it says of the page, of its host, and of the page's validators.
//!
//! This module is used while a crawl runs, when an archive is read again after a restart, and when its state is made anew
//! from the WARC files.

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

/// What tells an answer from another, where that is not the digest of its payload. A redirect is the same while its status
/// and target are, and a page is gone whatever the error page says. Answers of different kinds are never alike: only
/// those without a page begin with their status.
pub fn identity_of(kind: AnswerKind, status: u16, redirect: Option<&str>) -> Option<String> {
    match kind {
        AnswerKind::Content | AnswerKind::NotModified | AnswerKind::Failed => None,
        AnswerKind::Redirect => Some(format!("{status} {}", redirect.unwrap_or_default())),
        AnswerKind::Gone => Some(status.to_string()),
    }
}

/// The identity of a page that a browser drew: what a reader saw is the page, and not the bytes that its scripts came in.
pub fn drawn_identity(digest: &str) -> String {
    format!("drawn {digest}")
}

/// Whether an identity is that of a page that a browser drew.
pub fn is_drawn(identity: &str) -> bool {
    identity.starts_with("drawn ")
}

/// The identity of an answer that is another address's page again, such as `/index.html` where `/` has the same bytes.
pub fn twin_identity(other: &str) -> String {
    format!("{TWIN}{other}")
}

const TWIN: &str = "200 ";

/// Whether an identity says that another address has this page.
pub fn names_twin(identity: &str) -> bool {
    identity.starts_with(TWIN)
}

/// The identity of an answer that delivers an error page as if it were the page.
pub fn soft_error_identity(digest: &str) -> String {
    format!("404 {digest}")
}

/// Whether an identity is that of an answer that showed a page. The others begin with their status.
pub fn shows_page(identity: &str) -> bool {
    !identity.starts_with(|first: char| first.is_ascii_digit())
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
