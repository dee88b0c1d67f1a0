//! An answer or a failure -> what the scheduler, the log, the frontier and the host's state are told.

use perennial_core::http::politeness::HostAnswer;
use perennial_core::http::validator::ValidatorTrust;
use perennial_core::http::verdict::{AnswerKind, Validators, error_word};
use perennial_core::page::look::{Before, Seen};
use perennial_core::schedule::VisitOutcome;

use super::failure::FailureKind;
use perennial_archive::store::Target;

/// What an answer means.
pub(super) struct Verdict {
    /// What the scheduler is told.
    pub(super) outcome: VisitOutcome,
    /// The name of the error, if there was one.
    pub(super) error: Option<&'static str>,
    /// Whether the answer leads elsewhere.
    pub(super) is_redirect: bool,
    /// Whether another try soon would end the same way.
    pub(super) is_final: bool,
    /// Digest and validators of a full answer.
    pub(super) answer: Option<(String, Validators)>,
    /// The identity of the answer ([`perennial_core::http::verdict::identity_of`]), if it is a look.
    pub(super) identity: Option<String>,
    /// The trust in the page's validators after this answer.
    pub(super) trust: Option<ValidatorTrust>,
    /// What politeness is told; `None`: the host got no request.
    pub(super) answer_of_host: Option<HostAnswer>,
}

impl Verdict {
    pub(super) fn of_failure(kind: FailureKind) -> Verdict {
        let is_final = kind.is_final();
        let is_absent = is_final && !kind.is_refusal();
        Verdict {
            outcome: if is_absent { VisitOutcome::Absent } else { VisitOutcome::Failed { retry_at: None } },
            error: Some(kind.name()),
            is_redirect: false,
            is_final,
            answer: None,
            identity: None,
            trust: None,
            answer_of_host: kind.host_answer(),
        }
    }

    /// The verdict by the answer alone. For a page that can be laid out the analysis decides later.
    pub(super) fn of_answer(
        kind: AnswerKind,
        status: u16,
        is_broken_off: bool,
        target: &Target,
        identity: &str,
    ) -> Verdict {
        let identity_before = target.identity.as_deref().or(target.digest.as_deref());
        let was_page = target.digest.is_some();
        let before = identity_before.map(|identity| Before { identity, was_page });
        let outcome = match Seen::between(before, kind, identity) {
            Some(seen) => VisitOutcome::from(seen),
            None => VisitOutcome::Failed { retry_at: None },
        };
        Verdict {
            outcome,
            error: error_word(status, is_broken_off),
            is_redirect: kind == AnswerKind::Redirect,
            is_final: kind.is_look(),
            answer: None,
            identity: None,
            trust: None,
            answer_of_host: None,
        }
    }
}
