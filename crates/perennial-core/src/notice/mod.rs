//! A change of a page, and what a user wants to hear of -> whether the change is told.
//!
//! A condition is asked twice. [`Condition::may_hold`] needs only what the list of changes has, so that most changes cost
//! nothing; [`Condition::holds`] also needs the texts of both versions.

mod operation;

pub use operation::{BlockPlace, OperationFilter, ReportedElement, ReportedOperation};

use std::fmt;
use std::str::FromStr;

use regex::Regex;

use crate::page::change_status::ChangeStatus;
use crate::page::importance::Judgement;
use crate::page::segment::Selector;
use crate::search::Query;

/// What happened to a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChangeKind {
    /// What a reader sees has changed.
    Edited,
    /// Edited, with another title, or with a headline that was rewritten.
    Retitled,
    /// A page came to its site.
    New,
    /// The page was there and is not any more.
    Vanished,
    /// The page is there again.
    Returned,
    /// The address leads to another page now.
    Redirected,
}

impl ChangeKind {
    /// All of them.
    pub const ALL: [ChangeKind; 6] = [
        ChangeKind::Edited,
        ChangeKind::Retitled,
        ChangeKind::New,
        ChangeKind::Vanished,
        ChangeKind::Returned,
        ChangeKind::Redirected,
    ];

    /// By the status of an observation; `has_new_title`: the title changed.
    pub fn of(status: ChangeStatus, has_new_title: bool) -> ChangeKind {
        match status {
            ChangeStatus::New => ChangeKind::New,
            ChangeStatus::Vanished => ChangeKind::Vanished,
            ChangeStatus::Returned => ChangeKind::Returned,
            ChangeStatus::Redirected(_) => ChangeKind::Redirected,
            _ if has_new_title => ChangeKind::Retitled,
            _ => ChangeKind::Edited,
        }
    }

    /// The word for it.
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

/// Words to look for, as in a search, or a regular expression between slashes.
#[derive(Clone, Debug)]
pub enum Wording {
    /// As `perennial search` takes them.
    Words(String, Query),
    /// A regular expression.
    Pattern(Regex),
}

impl Wording {
    /// Whether a text has it.
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
                let told = error.to_string();
                told.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
            }),
            None => match Query::parse(text) {
                Ok(query) => Ok(Wording::Words(text.to_owned(), query)),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

impl fmt::Display for Wording {
    /// As it was given.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wording::Words(text, _) => f.write_str(text),
            Wording::Pattern(pattern) => write!(f, "/{pattern}/"),
        }
    }
}

/// Which pages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Place {
    /// All.
    #[default]
    Anywhere,
    /// Those of a host, with its port if that is unusual.
    Site(String),
    /// The one with this address.
    Page(String),
}

/// What a user wants to hear of: all that is given must hold.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// On which pages.
    pub place: Place,
    /// Only where the text of this part has changed.
    pub selector: Option<Selector>,
    /// Only what matters at least so much.
    pub least_importance: f64,
    /// Only these kinds; empty: all.
    pub kinds: Vec<ChangeKind>,
    /// Only where this is said now and was not before.
    pub appears: Option<Wording>,
    /// Only where this was said and is not any more.
    pub vanishes: Option<Wording>,
    /// Only where one of the operations is so.
    pub operations: OperationFilter,
    /// Also changes and operations that are only noise.
    pub with_noise: bool,
}

/// A change, as the list of changes has it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change<'a> {
    /// Address of the page.
    pub url: &'a str,
    /// Its host, with its port if that is unusual.
    pub site: &'a str,
    /// What happened.
    pub kind: ChangeKind,
    /// How much it matters ([`ChangeStatus::reported_importance`]).
    pub importance: f64,
    /// Whether all of it is noise.
    pub is_noise: bool,
}

/// What was said before and after a change: all passages of both versions, or the texts of the part that a selector names.
#[derive(Clone, Debug, Default)]
pub struct Said<'a> {
    /// Before; none where there was no page.
    pub before: Vec<&'a str>,
    /// After; none where there is no page.
    pub after: Vec<&'a str>,
    /// Whether a headline of a front page was rewritten.
    pub is_headline_rewritten: bool,
    /// The operations between both versions.
    pub operations: Vec<ReportedOperation<'a>>,
}

impl Condition {
    /// Whether the texts of both versions must be known to tell whether it holds.
    pub fn asks_for_texts(&self) -> bool {
        self.selector.is_some() || self.appears.is_some() || self.vanishes.is_some()
    }

    /// Whether an operation is one of those that are asked for. Noise and advertisements are only where they are asked for.
    pub fn lets_through(&self, operation: &ReportedOperation<'_>) -> bool {
        let asks_for_advertisements = self.operations.is_in_advertisements();
        let Judgement { is_advertisement, noise } = operation.judgement;
        let judgement = Judgement { is_advertisement: is_advertisement && !asks_for_advertisements, noise };
        (self.with_noise || judgement.is_worth_reporting(operation.share))
            && self.operations.lets_through(operation)
    }

    /// Whether the operations between both versions must be known for a change of this kind.
    pub fn asks_for_operations(&self, kind: ChangeKind) -> bool {
        self.operations.asks() || !self.wants(kind, false)
    }

    /// Whether it may hold for a change whose texts are not known yet. Noise is told only to those who ask for it or wait for
    /// certain words.
    pub fn may_hold(&self, change: &Change<'_>) -> bool {
        let is_there = match &self.place {
            Place::Anywhere => true,
            Place::Site(site) => site == change.site,
            Place::Page(url) => url == change.url,
        };
        let names_words = self.appears.is_some() || self.vanishes.is_some();
        is_there
            && (!change.is_noise || names_words || self.with_noise)
            && change.importance >= self.least_importance
            // Only the texts tell whether a headline of a front page was rewritten.
            && (self.wants(change.kind, false) || self.wants(change.kind, true))
    }

    /// Whether it holds.
    pub fn holds(&self, change: &Change<'_>, said: &Said<'_>) -> bool {
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
            && (!self.operations.asks()
                || said.operations.iter().any(|operation| self.lets_through(operation)))
    }

    fn wants(&self, kind: ChangeKind, is_headline_rewritten: bool) -> bool {
        let is_retitled = kind == ChangeKind::Retitled || kind == ChangeKind::Edited && is_headline_rewritten;
        self.kinds.is_empty()
            || self.kinds.contains(&kind)
            || is_retitled && self.kinds.contains(&ChangeKind::Retitled)
            || kind == ChangeKind::Retitled && self.kinds.contains(&ChangeKind::Edited)
    }
}

/// The pause before a notice is sent again that could not be sent `n_failures` times in a row: a quarter of a minute, doubled with each
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

    const EDIT: Change<'_> = Change {
        url: "https://a.org/x",
        site: "a.org",
        kind: ChangeKind::Edited,
        importance: 0.4,
        is_noise: false,
    };

    fn said<'a>(before: &[&'a str], after: &[&'a str]) -> Said<'a> {
        Said { before: before.to_vec(), after: after.to_vec(), ..Said::default() }
    }

    #[test]
    fn words_appear_where_they_were_not_before() {
        let condition = Condition { appears: Some("resign*".parse().unwrap()), ..Condition::default() };
        assert!(condition.holds(&EDIT, &said(&["He stays."], &["He stays.", "She resigned."])));
        assert!(
            !condition.holds(&EDIT, &said(&["She resigns."], &["He stays.", "She resigned."])),
            "said before"
        );
        assert!(!condition.holds(&EDIT, &said(&["She resigned."], &[])));
        let condition =
            Condition { vanishes: Some("/resign(s|ed)/".parse().unwrap()), ..Condition::default() };
        assert!(condition.holds(&EDIT, &said(&["She resigned."], &["She stays."])));
        assert!(!condition.holds(&EDIT, &said(&["She stays."], &["She resigned."])));
        assert!(condition.holds(&Change { is_noise: true, ..EDIT }, &said(&["She resigned."], &[])));
    }

    #[test]
    fn each_part_of_a_condition_keeps_changes_out() {
        let all = Condition::default();
        assert!(all.may_hold(&EDIT) && all.holds(&EDIT, &Said::default()));
        assert!(!all.may_hold(&Change { is_noise: true, ..EDIT }));
        let elsewhere = [Place::Site("b.org".into()), Place::Page("https://a.org/".into())];
        for place in elsewhere {
            assert!(!Condition { place, ..all.clone() }.may_hold(&EDIT));
        }
        let here = [Place::Site("a.org".into()), Place::Page("https://a.org/x".into())];
        for place in here {
            assert!(Condition { place, ..all.clone() }.may_hold(&EDIT));
        }
        assert!(!Condition { least_importance: 0.5, ..all.clone() }.may_hold(&EDIT));
        let selector = Some(Selector::parse("#price").unwrap());
        let part = Condition { selector, ..all };
        assert!(part.holds(&EDIT, &said(&["9 EUR"], &["8 EUR"])));
        assert!(!part.holds(&EDIT, &said(&["9 EUR"], &["9 EUR"])));
    }

    #[test]
    fn noise_and_advertisements_are_told_where_they_are_asked_for() {
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
        let plain = Condition { operations, ..Condition::default() };
        let said = |operation| Said { operations: vec![operation], ..Said::default() };
        assert!(plain.holds(&EDIT, &said(operation)));
        assert!(!plain.holds(&EDIT, &said(noise)) && !plain.holds(&EDIT, &said(ad)));
        let with_noise = Condition { with_noise: true, ..plain.clone() };
        assert!(with_noise.holds(&EDIT, &said(noise)) && with_noise.holds(&EDIT, &said(ad)));
        let ads = OperationFilter { block: Some("ad".parse().unwrap()), ..OperationFilter::default() };
        assert!(Condition { operations: ads, ..Condition::default() }.holds(&EDIT, &said(ad)));
    }

    #[test]
    fn a_headline_that_is_rewritten_is_an_edit_and_a_new_title() {
        let of = |kinds: &[ChangeKind]| Condition { kinds: kinds.to_vec(), ..Condition::default() };
        let rewritten = Said { is_headline_rewritten: true, ..Said::default() };
        let retitled = Change { kind: ChangeKind::Retitled, ..EDIT };
        assert!(of(&[ChangeKind::Retitled]).holds(&EDIT, &rewritten));
        assert!(!of(&[ChangeKind::Retitled]).holds(&EDIT, &Said::default()));
        assert!(of(&[ChangeKind::Edited]).holds(&retitled, &Said::default()));
        assert!(!of(&[ChangeKind::Vanished]).may_hold(&retitled));
        assert_eq!(ChangeKind::of(ChangeStatus::Changed(Importance::FULL), true), ChangeKind::Retitled);
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
        /// What appears in one direction vanishes in the other, and never both.
        #[test]
        fn appearing_and_vanishing_mirror_each_other(
            before in prop::collection::vec("[ab c]{0,6}", 0..4), after in prop::collection::vec("[ab c]{0,6}", 0..4),
            word in "[ab]{1,2}",
        ) {
            let of = |appears: bool| {
                let wording = Some(word.parse::<Wording>().unwrap());
                let (appears, vanishes) = if appears { (wording, None) } else { (None, wording) };
                Condition { appears, vanishes, ..Condition::default() }
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
