//! Captures of a page in order of time -> what each showed beside the one before: [`Seen`].
//!
//! Only this module decides what counts as a look at a page and what counts as a change. It is used while a crawl runs,
//! when it relearns after a restart, in `quality` and in `patterns`.

use crate::importance::Importance;
use crate::verdict::AnswerKind;

/// What one look at a page showed beside the look before it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Seen {
    /// Nothing was known of the page before.
    First,
    /// A reader sees no difference.
    Same,
    /// There are differences, and all of them are noise: advertisements, counters, dates.
    Noise,
    /// What a reader sees has changed, and it matters this much.
    Changed(Importance),
    /// The answer has changed, and nothing says how much that matters: a PDF, a redirect to another page, a capture
    /// that was not analysed yet.
    Unjudged,
    /// The page is not there.
    Gone,
}

impl Seen {
    /// The importance that an unjudged change counts with: the mean of what is seen of pages that can be analysed.
    pub const UNJUDGED: f64 = 0.3;

    /// A change that matters less than this counts as none. If it counted, a scheduler would learn how often it happens
    /// and forget that it is worth nothing: a counter that a first look cannot tell from news, a rotated banner.
    pub const LEAST: f64 = 0.005;

    /// What two answers in a row tell before their content was analysed. `before` is the identity of the answer before
    /// ([`crate::verdict::identity_of`]). `None` when the later answer is no look.
    pub fn between(before: Option<&str>, kind: AnswerKind, identity: &str) -> Option<Seen> {
        Some(match (before, kind) {
            (_, AnswerKind::Failed) => return None,
            (_, AnswerKind::Gone) => Seen::Gone,
            (None, _) => Seen::First,
            (Some(_), AnswerKind::NotModified) => Seen::Same,
            (Some(before), _) if before == identity => Seen::Same,
            (Some(_), _) => Seen::Unjudged,
        })
    }

    /// The importance with which the look counts. At the first look everything is new, but nothing of it is a change.
    pub fn importance(self) -> Importance {
        match self {
            Seen::First | Seen::Same | Seen::Noise | Seen::Gone => Importance::NONE,
            Seen::Unjudged => Importance::new(Seen::UNJUDGED),
            Seen::Changed(importance) if importance < Importance::new(Seen::LEAST) => Importance::NONE,
            Seen::Changed(importance) => importance,
        }
    }

    /// Whether the look counts as a change of the page.
    pub fn is_change(self) -> bool {
        self.importance() > Importance::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_a_row() {
        use AnswerKind::{Content, Failed, Gone, NotModified, Redirect};
        let between = Seen::between;
        assert_eq!(between(None, Content, "a"), Some(Seen::First));
        assert_eq!(between(Some("a"), Content, "a"), Some(Seen::Same));
        assert_eq!(between(Some("a"), Content, "b"), Some(Seen::Unjudged));
        assert_eq!(between(Some("a"), NotModified, ""), Some(Seen::Same));
        assert_eq!(between(Some("a"), Redirect, "301 http://a/"), Some(Seen::Unjudged));
        assert_eq!(between(Some("301 http://a/"), Redirect, "301 http://a/"), Some(Seen::Same));
        assert_eq!(between(Some("301 http://a/"), Redirect, "301 http://b/"), Some(Seen::Unjudged));
        assert_eq!(between(Some("a"), Gone, "404"), Some(Seen::Gone));
        assert_eq!(between(Some("404"), Content, "a"), Some(Seen::Unjudged));
        assert_eq!(between(Some("a"), Failed, ""), None);
    }

    #[test]
    fn only_what_matters_is_a_change() {
        assert!(!Seen::First.is_change() && !Seen::Noise.is_change() && !Seen::Gone.is_change());
        assert!(!Seen::Changed(Importance::new(Seen::LEAST / 2.0)).is_change());
        assert!(Seen::Changed(Importance::new(Seen::LEAST)).is_change());
        assert_eq!(Seen::Unjudged.importance(), Importance::new(Seen::UNJUDGED));
    }
}
