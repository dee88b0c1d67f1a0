//! Captures of a page in order of time -> how each observation relates to the one before it: [`ChangeStatus`].
//!
//! Only this module decides which captures are observations of a page, which observations are changes, and how
//! important each is. The crawler, `quality`, `patterns`, reports and notices all use it.

use crate::http::response::{Identity, ResponseKind};
use crate::page::importance::Importance;

/// How an observation of a page relates to the one before it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ChangeStatus {
    /// The first observation of a page.
    New,
    /// A reader sees no difference.
    Unchanged,
    /// All differences are noise: advertisements, counters, dates.
    NoiseOnly,
    Changed(Importance),
    /// The payload changed, but its importance is unknown: the file is unreadable, or the capture was not analysed
    /// yet. The importance is an assumption.
    Unknown(Importance),
    /// The page no longer exists.
    Vanished,
    /// The URL redirects now. There was a page before, or it redirected elsewhere.
    Redirected(Importance),
    /// The page exists again.
    Returned,
    /// There is still no page: it never existed, it has not come back, or the URL redirects as before.
    Absent,
}

/// The known state of a URL before an observation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PreviousResponse<'a> {
    /// The last response of the URL.
    pub identity: &'a Identity,
    /// Whether any earlier observation showed a page.
    pub was_page: bool,
}

impl ChangeStatus {
    /// The maximum importance assumed for an unknown change: the mean over all pages that can be analysed. It is lower
    /// if earlier unknown changes of the page were mostly noise
    /// ([`crate::page::noise::NoiseHistory::record_unreadable`]).
    pub const UNKNOWN: f64 = 0.3;

    /// The scheduler ignores less important changes, such as a counter that a first observation cannot distinguish
    /// from news, or a rotated banner. Otherwise it would learn their frequency but not that they are worthless.
    pub const LEAST_OBSERVED: f64 = 0.005;

    /// A change of unknown importance.
    pub fn unknown() -> ChangeStatus {
        ChangeStatus::Unknown(Importance::new(ChangeStatus::UNKNOWN))
    }

    /// The status that follows from two successive responses, before the content is analysed. `None` if the later one
    /// is not an observation.
    pub fn between(
        before: Option<PreviousResponse<'_>>,
        kind: ResponseKind,
        identity: &Identity,
    ) -> Option<ChangeStatus> {
        let had_page = before.is_some_and(|before| before.identity.is_page());
        let is_same = before.is_some_and(|before| before.identity == identity);
        let was_page = before.is_some_and(|before| before.was_page);
        let is_alias = matches!(identity, Identity::Alias(_));
        Some(match kind {
            ResponseKind::Failed => return None,
            ResponseKind::Gone if had_page => ChangeStatus::Vanished,
            ResponseKind::Gone => ChangeStatus::Absent,
            ResponseKind::Redirect if before.is_none() || is_same || is_alias => ChangeStatus::Absent,
            ResponseKind::Redirect if had_page => ChangeStatus::Redirected(Importance::FULL),
            ResponseKind::Redirect => ChangeStatus::Redirected(Importance::new(ChangeStatus::UNKNOWN)),
            ResponseKind::Content | ResponseKind::NotModified if !was_page => ChangeStatus::New,
            ResponseKind::Content | ResponseKind::NotModified if !had_page => ChangeStatus::Returned,
            ResponseKind::NotModified => ChangeStatus::Unchanged,
            ResponseKind::Content if is_same => ChangeStatus::Unchanged,
            ResponseKind::Content => ChangeStatus::unknown(),
        })
    }

    /// The importance from which the scheduler and the quality estimates learn. Negligible changes count as none.
    pub fn observed_importance(self) -> Importance {
        let importance = self.reported_importance();
        if importance < Importance::new(ChangeStatus::LEAST_OBSERVED) { Importance::NONE } else { importance }
    }

    /// The importance that people see, and by which they sort and filter. A new page counts in full, and so does one
    /// that vanishes or returns. The store keeps it next to the status.
    pub fn reported_importance(self) -> Importance {
        match self {
            ChangeStatus::Unchanged | ChangeStatus::NoiseOnly | ChangeStatus::Absent => Importance::NONE,
            ChangeStatus::New | ChangeStatus::Vanished | ChangeStatus::Returned => Importance::FULL,
            ChangeStatus::Changed(importance)
            | ChangeStatus::Unknown(importance)
            | ChangeStatus::Redirected(importance) => importance,
        }
    }

    /// Whether the scheduler observes a change. A new page is not a change.
    pub fn is_change(self) -> bool {
        self != ChangeStatus::New && self.observed_importance() > Importance::NONE
    }

    /// Whether the URL shows something new, however small.
    pub fn is_new_version(self) -> bool {
        !matches!(self, ChangeStatus::Unchanged | ChangeStatus::NoiseOnly | ChangeStatus::Absent)
    }

    /// Whether the observation showed a page.
    pub fn is_page(self) -> bool {
        !matches!(self, ChangeStatus::Vanished | ChangeStatus::Redirected(_) | ChangeStatus::Absent)
    }

    /// Whether there is a version before it to compare with.
    pub fn had_page(self) -> bool {
        !matches!(self, ChangeStatus::New | ChangeStatus::Returned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status after the given responses; `now` is the last one.
    fn after(identity: &str, was_page: bool, kind: ResponseKind, now: &str) -> Option<ChangeStatus> {
        let identity = &Identity::parse(identity);
        ChangeStatus::between(Some(PreviousResponse { identity, was_page }), kind, &Identity::parse(now))
    }

    fn at_first(kind: ResponseKind, now: &str) -> Option<ChangeStatus> {
        ChangeStatus::between(None, kind, &Identity::parse(now))
    }

    #[test]
    fn status_after_successive_answers() {
        use ResponseKind::{Content, Failed, NotModified};
        assert_eq!(at_first(Content, "sha1:A"), Some(ChangeStatus::New));
        assert_eq!(after("sha1:A", true, Content, "sha1:A"), Some(ChangeStatus::Unchanged));
        let unjudged = ChangeStatus::unknown();
        assert_eq!(after("sha1:A", true, Content, "sha1:B"), Some(unjudged));
        assert_eq!(after("sha1:A", true, NotModified, ""), Some(ChangeStatus::Unchanged));
        assert_eq!(after("sha1:A", true, Failed, ""), None);
    }

    #[test]
    fn pages_vanish_move_and_return() {
        use ResponseKind::{Content, Gone, Redirect};
        let (full, unjudged) = (Importance::FULL, Importance::new(ChangeStatus::UNKNOWN));
        assert_eq!(after("sha1:A", true, Gone, "404"), Some(ChangeStatus::Vanished));
        assert_eq!(after("404", true, Gone, "410"), Some(ChangeStatus::Absent));
        assert_eq!(after("404", true, Content, "sha1:A"), Some(ChangeStatus::Returned));
        assert_eq!(after("sha1:A", true, Redirect, "301 http://a/"), Some(ChangeStatus::Redirected(full)));
        assert_eq!(after("301 http://a/", true, Redirect, "301 http://a/"), Some(ChangeStatus::Absent));
        assert_eq!(
            after("301 http://a/", true, Redirect, "302 http://b/"),
            Some(ChangeStatus::Redirected(unjudged))
        );
        assert_eq!(after("301 http://a/", true, Gone, "404"), Some(ChangeStatus::Absent));
        assert_eq!(after("301 http://a/", true, Content, "sha1:A"), Some(ChangeStatus::Returned));
    }

    #[test]
    fn a_url_that_never_answered_is_not_a_page() {
        use ResponseKind::{Content, Gone, Redirect};
        assert_eq!(at_first(Gone, "404"), Some(ChangeStatus::Absent));
        assert_eq!(at_first(Redirect, "301 http://a/"), Some(ChangeStatus::Absent));
        assert_eq!(after("404", false, Gone, "404"), Some(ChangeStatus::Absent));
        assert_eq!(after("404", false, Content, "sha1:A"), Some(ChangeStatus::New));
        assert_eq!(
            after("sha1:A", true, Redirect, "200 http://a/"),
            Some(ChangeStatus::Absent),
            "an alias is not a change"
        );
    }

    #[test]
    fn only_what_matters_is_a_change() {
        assert!(
            !ChangeStatus::New.is_change()
                && !ChangeStatus::NoiseOnly.is_change()
                && !ChangeStatus::Absent.is_change()
        );
        assert!(!ChangeStatus::Changed(Importance::new(ChangeStatus::LEAST_OBSERVED / 2.0)).is_change());
        assert!(ChangeStatus::Changed(Importance::new(ChangeStatus::LEAST_OBSERVED)).is_change());
        assert!(ChangeStatus::Vanished.is_change() && !ChangeStatus::Vanished.is_page());
        assert!(ChangeStatus::Returned.is_change() && ChangeStatus::Returned.is_page());
        assert!(ChangeStatus::unknown().is_change());
    }

    #[test]
    fn people_and_scheduler_see_the_same_importance_unless_negligible() {
        let negligible = Importance::new(ChangeStatus::LEAST_OBSERVED / 2.0);
        let statuses = [ChangeStatus::Changed, ChangeStatus::Unknown, ChangeStatus::Redirected];
        for status in statuses.map(|status| status(negligible)) {
            assert_eq!(
                (status.observed_importance(), status.reported_importance()),
                (Importance::NONE, negligible)
            );
        }
        for status in [ChangeStatus::New, ChangeStatus::Vanished, ChangeStatus::Returned] {
            assert_eq!(
                (status.observed_importance(), status.reported_importance()),
                (Importance::FULL, Importance::FULL)
            );
        }
        for status in [ChangeStatus::Unchanged, ChangeStatus::NoiseOnly, ChangeStatus::Absent] {
            assert_eq!(
                (status.observed_importance(), status.reported_importance()),
                (Importance::NONE, Importance::NONE)
            );
        }
    }
}
