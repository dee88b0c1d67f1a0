//! An answer, or the lack of one -> what a visit means: for the scheduler, the log, the frontier and the host.

use perennial_core::look::Seen;
use perennial_core::politeness::HostAnswer;
use perennial_core::schedule::VisitOutcome;
use perennial_core::validator::ValidatorTrust;
use perennial_core::verdict::{AnswerKind, Validators, error_word};

use super::failure::FailureKind;
use crate::store::Target;

/// What an answer means.
pub(super) struct Verdict {
    /// What the scheduler is told.
    pub(super) outcome: VisitOutcome,
    /// One word for the error, if there was one.
    pub(super) error: Option<&'static str>,
    /// Whether trying again soon makes no sense.
    pub(super) is_final: bool,
    /// Digest and validators of a full answer.
    pub(super) answer: Option<(String, Validators)>,
    /// What tells the answer from another, if it is a look.
    pub(super) identity: Option<String>,
    /// What the validators are worth now.
    pub(super) trust: Option<ValidatorTrust>,
    /// None: the host was not asked.
    pub(super) answer_of_host: Option<HostAnswer>,
}

impl Verdict {
    pub(super) fn of_failure(kind: FailureKind) -> Verdict {
        let is_final = kind.is_final();
        Verdict {
            outcome: if is_final { VisitOutcome::Gone } else { VisitOutcome::Failed { retry_at: None } },
            error: Some(kind.name()),
            is_final,
            answer: None,
            identity: None,
            trust: None,
            answer_of_host: kind.host_answer(),
        }
    }

    /// What the answer alone tells; for a page that can be laid out the analysis decides.
    pub(super) fn of_answer(
        kind: AnswerKind,
        status: u16,
        is_broken_off: bool,
        target: &Target,
        identity: &str,
    ) -> Verdict {
        let before = target.identity.as_deref().or(target.digest.as_deref());
        let outcome = match Seen::between(before, kind, identity) {
            Some(seen) => VisitOutcome::from(seen),
            None => VisitOutcome::Failed { retry_at: None },
        };
        Verdict {
            outcome,
            error: error_word(status, is_broken_off),
            is_final: kind.is_look(),
            answer: None,
            identity: None,
            trust: None,
            answer_of_host: None,
        }
    }
}
