//! Captures of a page in order of time -> what each showed beside the one before: [`Seen`].
//!
//! Only this module decides what counts as a look at a page and what counts as a change. It is used while a crawl runs,
//! when it relearns after a restart, in `quality` and in `patterns`.

use crate::http::verdict::{AnswerKind, names_twin, shows_page};
use crate::page::importance::Importance;

/// What one look at a page showed beside the look before it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Seen {
    /// There was no page before.
    First,
    /// A reader sees no difference.
    Same,
    /// There are differences, and all of them are noise: advertisements, counters, dates.
    Noise,
    /// What a reader sees has changed, and it matters this much.
    Changed(Importance),
    /// The answer has changed, and nothing says how much that matters: a file that cannot be read, a capture that was not
    /// analysed yet. It counts with this much.
    Unjudged(Importance),
    /// The page was there and is not any more.
    Vanished,
    /// The address leads elsewhere now, and it matters this much: there was a page, or it led to another one.
    Redirected(Importance),
    /// The page is there again.
    Returned,
    /// There is no page, and there was none at the look before: nothing was ever there, it has not come back, or the
    /// address leads where it led.
    Absent,
}

/// What is known of an address before a look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Before<'a> {
    /// The identity of the answer before ([`crate::http::verdict::identity_of`]).
    pub identity: &'a str,
    /// Whether any look showed a page.
    pub was_page: bool,
}

impl Seen {
    /// The most that an unjudged change counts with: the mean of what is seen of pages that can be analysed. It is less where a page
    /// has shown that its changes are worth little ([`crate::page::noise::NoiseHistory::record_unreadable`]).
    pub const UNJUDGED: f64 = 0.3;

    /// A change that matters less than this counts as none. If it counted, a scheduler would learn how often it happens
    /// and forget that it is worth nothing: a counter that a first look cannot tell from news, a rotated banner.
    pub const LEAST: f64 = 0.005;

    /// What two answers in a row tell before their content was analysed. `None` when the later answer is no look.
    pub fn between(before: Option<Before<'_>>, kind: AnswerKind, identity: &str) -> Option<Seen> {
        let had_page = before.is_some_and(|before| shows_page(before.identity));
        let is_same = before.is_some_and(|before| before.identity == identity);
        let was_page = before.is_some_and(|before| before.was_page);
        Some(match kind {
            AnswerKind::Failed => return None,
            AnswerKind::Gone if had_page => Seen::Vanished,
            AnswerKind::Gone => Seen::Absent,
            AnswerKind::Redirect if before.is_none() || is_same || names_twin(identity) => Seen::Absent,
            AnswerKind::Redirect if had_page => Seen::Redirected(Importance::FULL),
            AnswerKind::Redirect => Seen::Redirected(Importance::new(Seen::UNJUDGED)),
            AnswerKind::Content | AnswerKind::NotModified if !was_page => Seen::First,
            AnswerKind::Content | AnswerKind::NotModified if !had_page => Seen::Returned,
            AnswerKind::NotModified => Seen::Same,
            AnswerKind::Content if is_same => Seen::Same,
            AnswerKind::Content => Seen::Unjudged(Importance::new(Seen::UNJUDGED)),
        })
    }

    /// The importance with which the look counts. At the first look everything is new, but nothing of it is a change. A page
    /// that vanishes takes all that it held with it, and brings it back when it returns.
    pub fn importance(self) -> Importance {
        match self {
            Seen::First | Seen::Same | Seen::Noise | Seen::Absent => Importance::NONE,
            Seen::Vanished | Seen::Returned => Importance::FULL,
            Seen::Changed(importance) | Seen::Unjudged(importance) | Seen::Redirected(importance) => {
                if importance < Importance::new(Seen::LEAST) {
                    Importance::NONE
                } else {
                    importance
                }
            }
        }
    }

    /// Whether the look counts as a change of the page.
    pub fn is_change(self) -> bool {
        self.importance() > Importance::NONE
    }

    /// Whether the look showed the page.
    pub fn is_page(self) -> bool {
        !matches!(self, Seen::Vanished | Seen::Redirected(_) | Seen::Absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a look shows after the answers before it, the last of them with `identity`.
    fn after(identity: &str, was_page: bool, kind: AnswerKind, now: &str) -> Option<Seen> {
        Seen::between(Some(Before { identity, was_page }), kind, now)
    }

    #[test]
    fn answers_in_a_row() {
        use AnswerKind::{Content, Failed, NotModified};
        assert_eq!(Seen::between(None, Content, "sha1:A"), Some(Seen::First));
        assert_eq!(after("sha1:A", true, Content, "sha1:A"), Some(Seen::Same));
        let unjudged = Seen::Unjudged(Importance::new(Seen::UNJUDGED));
        assert_eq!(after("sha1:A", true, Content, "sha1:B"), Some(unjudged));
        assert_eq!(after("sha1:A", true, NotModified, ""), Some(Seen::Same));
        assert_eq!(after("sha1:A", true, Failed, ""), None);
    }

    #[test]
    fn pages_vanish_move_and_return() {
        use AnswerKind::{Content, Gone, Redirect};
        let (full, unjudged) = (Importance::FULL, Importance::new(Seen::UNJUDGED));
        assert_eq!(after("sha1:A", true, Gone, "404"), Some(Seen::Vanished));
        assert_eq!(after("404", true, Gone, "410"), Some(Seen::Absent));
        assert_eq!(after("404", true, Content, "sha1:A"), Some(Seen::Returned));
        assert_eq!(after("sha1:A", true, Redirect, "301 http://a/"), Some(Seen::Redirected(full)));
        assert_eq!(after("301 http://a/", true, Redirect, "301 http://a/"), Some(Seen::Absent));
        assert_eq!(after("301 http://a/", true, Redirect, "302 http://b/"), Some(Seen::Redirected(unjudged)));
        assert_eq!(after("301 http://a/", true, Gone, "404"), Some(Seen::Absent));
        assert_eq!(after("301 http://a/", true, Content, "sha1:A"), Some(Seen::Returned));
    }

    #[test]
    fn what_never_answered_is_no_page() {
        use AnswerKind::{Content, Gone, Redirect};
        assert_eq!(Seen::between(None, Gone, "404"), Some(Seen::Absent));
        assert_eq!(Seen::between(None, Redirect, "301 http://a/"), Some(Seen::Absent));
        assert_eq!(after("404", false, Gone, "404"), Some(Seen::Absent));
        assert_eq!(after("404", false, Content, "sha1:A"), Some(Seen::First));
        assert_eq!(after("sha1:A", true, Redirect, "200 http://a/"), Some(Seen::Absent), "a twin is no news");
    }

    #[test]
    fn only_what_matters_is_a_change() {
        assert!(!Seen::First.is_change() && !Seen::Noise.is_change() && !Seen::Absent.is_change());
        assert!(!Seen::Changed(Importance::new(Seen::LEAST / 2.0)).is_change());
        assert!(Seen::Changed(Importance::new(Seen::LEAST)).is_change());
        assert!(Seen::Vanished.is_change() && !Seen::Vanished.is_page());
        assert!(Seen::Returned.is_change() && Seen::Returned.is_page());
        assert!(Seen::Unjudged(Importance::new(Seen::UNJUDGED)).is_change());
    }
}
