//! A change of a page and a user's condition -> whether the change is reported.
//!
//! A condition is checked in two steps. [`ChangeCondition::may_hold`] needs only the list of changes, so most changes
//! cost nothing. [`ChangeCondition::holds`] also needs the texts of both versions.

mod health;
mod operation;

pub use health::{BlindWatch, HealthNotice, after_visit};
pub use operation::{BlockPlace, OperationFilter, ReportedElement, ReportedOperation};

use std::fmt;
use std::str::FromStr;

use regex::Regex;

use crate::page::change_status::ChangeStatus;
use crate::page::importance::Judgement;
use crate::page::segment::Selector;
use crate::search::TextQuery;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChangeKind {
    /// The visible content changed.
    Edited,
    /// Edited, with a different title or a rewritten headline.
    Retitled,
    /// A page was added to its site.
    New,
    /// The page existed and is gone.
    Vanished,
    /// The page exists again.
    Returned,
    /// The URL redirects to a different page.
    Redirected,
}

impl ChangeKind {
    pub const ALL: [ChangeKind; 6] = [
        ChangeKind::Edited,
        ChangeKind::Retitled,
        ChangeKind::New,
        ChangeKind::Vanished,
        ChangeKind::Returned,
        ChangeKind::Redirected,
    ];

    /// From the status of an observation, and whether the title changed.
    pub fn from_status(status: ChangeStatus, has_new_title: bool) -> ChangeKind {
        match status {
            ChangeStatus::New => ChangeKind::New,
            ChangeStatus::Vanished => ChangeKind::Vanished,
            ChangeStatus::Returned => ChangeKind::Returned,
            ChangeStatus::Redirected(_) => ChangeKind::Redirected,
            _ if has_new_title => ChangeKind::Retitled,
            _ => ChangeKind::Edited,
        }
    }

    /// The name in settings, commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Edited => "edited",
            ChangeKind::Retitled => "retitled",
            ChangeKind::New => "new",
            ChangeKind::Vanished => "vanished",
            ChangeKind::Returned => "returned",
            ChangeKind::Redirected => "redirected",
        }
    }
}

impl FromStr for ChangeKind {
    type Err = String;

    fn from_str(text: &str) -> Result<ChangeKind, String> {
        let found = ChangeKind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| "choose edited, retitled, new, vanished, returned or redirected".to_owned())
    }
}

/// Words to search for, or a regular expression between slashes.
#[derive(Clone, Debug)]
pub enum Wording {
    /// In the syntax of `perennial search`.
    Words(String, TextQuery),
    Pattern(Regex),
}

impl Wording {
    /// Whether a text matches.
    pub fn is_in(&self, text: &str) -> bool {
        match self {
            Wording::Words(_, query) => !query.find(text).is_empty(),
            Wording::Pattern(pattern) => pattern.is_match(text),
        }
    }

    fn is_in_any<'t>(&self, texts: impl IntoIterator<Item = &'t str>) -> bool {
        texts.into_iter().any(|text| self.is_in(text))
    }
}

impl FromStr for Wording {
    type Err = String;

    fn from_str(text: &str) -> Result<Wording, String> {
        let pattern = text.strip_prefix('/').and_then(|text| text.strip_suffix('/'));
        match pattern {
            Some("") => Err("write a regular expression between the slashes".to_owned()),
            Some(pattern) => Regex::new(pattern).map(Wording::Pattern).map_err(|error| {
                let message = error.to_string();
                message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            }),
            None => match TextQuery::parse(text) {
                Ok(query) => Ok(Wording::Words(text.to_owned(), query)),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

impl fmt::Display for Wording {
    /// As written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wording::Words(text, _) => f.write_str(text),
            Wording::Pattern(pattern) => write!(f, "/{pattern}/"),
        }
    }
}

/// The pages to which a condition applies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum PageFilter {
    #[default]
    Anywhere,
    /// The pages of a host, with any non-default port.
    Site(String),
    /// The page with this URL.
    Page(String),
}

impl PageFilter {
    /// The host or URL; empty for all pages.
    pub fn name(&self) -> &str {
        match self {
            PageFilter::Anywhere => "",
            PageFilter::Site(name) | PageFilter::Page(name) => name,
        }
    }
}

/// A condition on changes; all given fields must match.
#[derive(Clone, Debug, Default)]
pub struct ChangeCondition {
    pub place: PageFilter,
    /// Only changes of the text in this part.
    pub selector: Option<Selector>,
    /// Only changes of at least this importance.
    pub min_importance: f64,
    /// Only these kinds; empty means all.
    pub kinds: Vec<ChangeKind>,
    /// Only if the new version matches and the old one does not.
    pub appears: Option<Wording>,
    /// Only if the old version matches and the new one does not.
    pub vanishes: Option<Wording>,
    /// Only if an operation matches.
    pub operations: OperationFilter,
    /// Include changes and operations that are only noise.
    pub with_noise: bool,
}

/// A change in the list of changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReportedChange<'a> {
    pub url: &'a str,
    /// The host, with any non-default port.
    pub site: &'a str,
    pub kind: ChangeKind,
    /// Importance, see [`ChangeStatus::reported_importance`].
    pub importance: f64,
    pub is_noise: bool,
}

/// The texts of both versions: all passages, or the texts of the selected part.
#[derive(Clone, Debug, Default)]
pub struct ChangeTexts<'a> {
    /// Empty if the page did not exist.
    pub before: Vec<&'a str>,
    /// Empty if the page no longer exists.
    pub after: Vec<&'a str>,
    /// Whether a headline of a listing page was rewritten.
    pub is_headline_rewritten: bool,
    pub operations: Vec<ReportedOperation<'a>>,
}

impl ChangeCondition {
    /// Whether it depends on the texts of both versions.
    pub fn needs_texts(&self) -> bool {
        self.selector.is_some() || self.appears.is_some() || self.vanishes.is_some()
    }

    /// Whether an operation matches. Noise and advertisements only match on request.
    pub fn matches_operation(&self, operation: &ReportedOperation<'_>) -> bool {
        let wants_advertisements = self.operations.is_in_advertisements();
        let is_advertisement = operation.judgement.is_advertisement && !wants_advertisements;
        let judgement = Judgement { is_advertisement, ..operation.judgement };
        (self.with_noise || judgement.is_worth_reporting(operation.share))
            && self.operations.matches_operation(operation)
    }

    /// Whether it depends on the operations for a change of this kind.
    pub fn needs_operations(&self, kind: ChangeKind) -> bool {
        self.operations.is_set() || !self.wants(kind, false)
    }

    /// Whether it holds for changes that are only noise: it includes them or names certain words.
    pub fn wants_noise(&self) -> bool {
        self.with_noise || self.appears.is_some() || self.vanishes.is_some()
    }

    /// Whether it may hold for a change with unknown texts.
    pub fn may_hold(&self, change: &ReportedChange<'_>) -> bool {
        let is_there = match &self.place {
            PageFilter::Anywhere => true,
            PageFilter::Site(site) => site == change.site,
            PageFilter::Page(url) => url == change.url,
        };
        is_there
            && (!change.is_noise || self.wants_noise())
            && change.importance >= self.min_importance
            // Only the texts show whether a headline of a listing page was rewritten.
            && (self.wants(change.kind, false) || self.wants(change.kind, true))
    }

    pub fn holds(&self, change: &ReportedChange<'_>, said: &ChangeTexts<'_>) -> bool {
        let appears = |wording: &Wording| {
            wording.is_in_any(said.after.iter().copied()) && !wording.is_in_any(said.before.iter().copied())
        };
        let vanishes = |wording: &Wording| {
            wording.is_in_any(said.before.iter().copied()) && !wording.is_in_any(said.after.iter().copied())
        };
        self.may_hold(change)
            && self.wants(change.kind, said.is_headline_rewritten)
            && (self.selector.is_none() || said.before != said.after)
            && self.appears.as_ref().is_none_or(appears)
            && self.vanishes.as_ref().is_none_or(vanishes)
            && (!self.operations.is_set()
                || said.operations.iter().any(|operation| self.matches_operation(operation)))
    }

    fn wants(&self, kind: ChangeKind, is_headline_rewritten: bool) -> bool {
        let is_retitled = kind == ChangeKind::Retitled || kind == ChangeKind::Edited && is_headline_rewritten;
        self.kinds.is_empty()
            || self.kinds.contains(&kind)
            || is_retitled && self.kinds.contains(&ChangeKind::Retitled)
            || kind == ChangeKind::Retitled && self.kinds.contains(&ChangeKind::Edited)
    }
}

/// The pause before a notice is sent again after `n_failures` failures in a row: 15 seconds, doubled with each
/// failure, at most an hour.
pub fn pause_secs(n_failures: u32) -> i64 {
    const FIRST_SECS: i64 = 15;
    const MOST_SECS: i64 = 3_600;
    (FIRST_SECS << n_failures.saturating_sub(1).min(16)).min(MOST_SECS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::importance::Importance;
    use proptest::prelude::*;

    const EDIT: ReportedChange<'_> = ReportedChange {
        url: "https://a.org/x",
        site: "a.org",
        kind: ChangeKind::Edited,
        importance: 0.4,
        is_noise: false,
    };

    fn said<'a>(before: &[&'a str], after: &[&'a str]) -> ChangeTexts<'a> {
        ChangeTexts { before: before.to_vec(), after: after.to_vec(), ..ChangeTexts::default() }
    }

    #[test]
    fn words_appear_where_they_were_not_before() {
        let condition =
            ChangeCondition { appears: Some("resign*".parse().unwrap()), ..ChangeCondition::default() };
        assert!(condition.holds(&EDIT, &said(&["He stays."], &["He stays.", "She resigned."])));
        assert!(
            !condition.holds(&EDIT, &said(&["She resigns."], &["He stays.", "She resigned."])),
            "said before"
        );
        assert!(!condition.holds(&EDIT, &said(&["She resigned."], &[])));
        let condition = ChangeCondition {
            vanishes: Some("/resign(s|ed)/".parse().unwrap()),
            ..ChangeCondition::default()
        };
        assert!(condition.holds(&EDIT, &said(&["She resigned."], &["She stays."])));
        assert!(!condition.holds(&EDIT, &said(&["She stays."], &["She resigned."])));
        assert!(condition.holds(&ReportedChange { is_noise: true, ..EDIT }, &said(&["She resigned."], &[])));
    }

    #[test]
    fn each_part_of_a_condition_keeps_changes_out() {
        let all = ChangeCondition::default();
        assert!(all.may_hold(&EDIT) && all.holds(&EDIT, &ChangeTexts::default()));
        assert!(!all.may_hold(&ReportedChange { is_noise: true, ..EDIT }));
        let elsewhere = [PageFilter::Site("b.org".into()), PageFilter::Page("https://a.org/".into())];
        for place in elsewhere {
            assert!(!ChangeCondition { place, ..all.clone() }.may_hold(&EDIT));
        }
        let here = [PageFilter::Site("a.org".into()), PageFilter::Page("https://a.org/x".into())];
        for place in here {
            assert!(ChangeCondition { place, ..all.clone() }.may_hold(&EDIT));
        }
        assert!(!ChangeCondition { min_importance: 0.5, ..all.clone() }.may_hold(&EDIT));
        let selector = Some(Selector::parse("#price").unwrap());
        let part = ChangeCondition { selector, ..all };
        assert!(part.holds(&EDIT, &said(&["9 EUR"], &["8 EUR"])));
        assert!(!part.holds(&EDIT, &said(&["9 EUR"], &["9 EUR"])));
    }

    #[test]
    fn noise_and_advertisements_are_reported_if_requested() {
        let operation =
            ReportedOperation { op: "insert", element: "text", share: 0.5, ..ReportedOperation::default() };
        let (noise, ad) = (
            Judgement { noise: 0.9, ..Judgement::default() },
            Judgement { is_advertisement: true, ..Judgement::default() },
        );
        let (noise, ad) = (
            ReportedOperation { judgement: noise, ..operation },
            ReportedOperation { judgement: ad, ..operation },
        );
        let operations =
            OperationFilter { op: Some("insert".parse().unwrap()), ..OperationFilter::default() };
        let plain = ChangeCondition { operations, ..ChangeCondition::default() };
        let said = |operation| ChangeTexts { operations: vec![operation], ..ChangeTexts::default() };
        assert!(plain.holds(&EDIT, &said(operation)));
        assert!(!plain.holds(&EDIT, &said(noise)) && !plain.holds(&EDIT, &said(ad)));
        let with_noise = ChangeCondition { with_noise: true, ..plain.clone() };
        assert!(with_noise.holds(&EDIT, &said(noise)) && with_noise.holds(&EDIT, &said(ad)));
        let ads = OperationFilter { block: Some("ad".parse().unwrap()), ..OperationFilter::default() };
        assert!(ChangeCondition { operations: ads, ..ChangeCondition::default() }.holds(&EDIT, &said(ad)));
    }

    #[test]
    fn a_headline_that_is_rewritten_is_an_edit_and_a_new_title() {
        let of =
            |kinds: &[ChangeKind]| ChangeCondition { kinds: kinds.to_vec(), ..ChangeCondition::default() };
        let rewritten = ChangeTexts { is_headline_rewritten: true, ..ChangeTexts::default() };
        let retitled = ReportedChange { kind: ChangeKind::Retitled, ..EDIT };
        assert!(of(&[ChangeKind::Retitled]).holds(&EDIT, &rewritten));
        assert!(!of(&[ChangeKind::Retitled]).holds(&EDIT, &ChangeTexts::default()));
        assert!(of(&[ChangeKind::Edited]).holds(&retitled, &ChangeTexts::default()));
        assert!(!of(&[ChangeKind::Vanished]).may_hold(&retitled));
        assert_eq!(
            ChangeKind::from_status(ChangeStatus::Changed(Importance::FULL), true),
            ChangeKind::Retitled
        );
        for kind in ChangeKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
    }

    #[test]
    fn wording_is_read_as_it_is_written() {
        for text in ["ferry -boat", "\"a b\"", "/a|b/"] {
            assert_eq!(text.parse::<Wording>().unwrap().to_string(), text);
        }
        for text in ["", "-x", "//", "/(/"] {
            assert!(text.parse::<Wording>().is_err(), "{text}");
        }
    }

    #[test]
    fn pauses_grow_to_an_hour() {
        let pauses: Vec<i64> = [0, 1, 2, 3, 8, 9, u32::MAX].into_iter().map(pause_secs).collect();
        assert_eq!(pauses, [15, 15, 30, 60, 1_920, 3_600, 3_600]);
    }

    proptest! {
        /// Words that appear in one direction vanish in the other, and never both.
        #[test]
        fn appearing_and_vanishing_mirror_each_other(
            before in prop::collection::vec("[ab c]{0,6}", 0..4), after in prop::collection::vec("[ab c]{0,6}", 0..4),
            word in "[ab]{1,2}",
        ) {
            let of = |appears: bool| {
                let wording = Some(word.parse::<Wording>().unwrap());
                let (appears, vanishes) = if appears { (wording, None) } else { (None, wording) };
                ChangeCondition { appears, vanishes, ..ChangeCondition::default() }
            };
            let texts = |texts: &'_ Vec<String>| texts.iter().map(|text| text.to_owned()).collect::<Vec<_>>();
            let (old, new) = (texts(&before), texts(&after));
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let there = said(&old, &new);
            let back = said(&new, &old);
            prop_assert_eq!(of(true).holds(&EDIT, &there), of(false).holds(&EDIT, &back));
            prop_assert!(!(of(true).holds(&EDIT, &there) && of(false).holds(&EDIT, &there)));
            let brute = new.iter().any(|text| text.split(' ').any(|own| own == word))
                && !old.iter().any(|text| text.split(' ').any(|own| own == word));
            prop_assert_eq!(of(true).holds(&EDIT, &there), brute);
        }
    }
}
