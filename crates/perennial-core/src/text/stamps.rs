//! A text -> whether it is only a time stamp, a clock or a counter (docs/papers.md, Advertisements and noise).
//!
//! A text with a word that does not belong to a time or a counter says something else: "Updated 3 December" is a stamp,
//! "Applications close on 3 December" is a deadline, "3 December 2026 to 5 January 2027" is a span. The words are those
//! of seven European languages. Text in other languages is never a stamp; its history decides.

use super::words::{class, is_a, is_important};
use crate::time::Timestamp;
use crate::time::dates::{DateOrder, parse};

/// What a text or a part of it is, if it is read by nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassingKind {
    /// The time of day, or the time since something happened: 14:05, "3 minutes ago", "generated in 0.03 seconds".
    Clock,
    /// Today's date, or the date of an update.
    Stamp,
    /// How often something was read, liked or shared; how many people are online.
    Counter,
}

/// Longer texts are not stamps.
const MAX_WORDS: usize = 16;
/// Longer texts are not one date.
const MAX_DATE_BYTES: usize = 60;
/// Maximum number of words of names after "by".
const MAX_NAMES: usize = 4;
/// Maximum number of words of a label before a time to the second, as programs write it.
const MAX_LABEL: usize = 2;

/// The kind of a text that consists of nothing but stamps and counters.
pub fn passing(text: &str) -> Option<PassingKind> {
    let words: Vec<&str> = split_words(text).take(MAX_WORDS + 1).collect();
    if words.is_empty() || words.len() > MAX_WORDS {
        return None;
    }
    all_passing(&words)
}

/// The kind of the clause around a word. A bare time is a stamp only if the whole text is.
pub(super) fn passing_at(words: &[&str], at: usize) -> Option<PassingKind> {
    let mut from = 0;
    for clause in clauses(words) {
        if (from..from + clause.len()).contains(&at) {
            return match Clause::new(clause).kind()? {
                (kind, Form::Labelled) => Some(kind),
                (_, Form::Bare) if words.len() > MAX_WORDS => None,
                (_, Form::Bare) => all_passing(words),
            };
        }
        from += clause.len();
    }
    None
}

/// Whether a date without any label is earlier in the later text. No stamp goes back.
pub(super) fn goes_back(before: &str, after: &str) -> bool {
    let spans = spans_between(before, after);
    !spans.is_empty() && spans.iter().all(|millis| *millis < 0)
}

/// The date of a text that is a date and nothing else.
pub fn only_date(text: &str) -> Option<Timestamp> {
    let is_date = text.len() <= MAX_DATE_BYTES && passing(text) == Some(PassingKind::Stamp);
    is_date.then(|| date(text, DateOrder::DayFirst)).flatten()
}

/// The milliseconds between two dates, for each order of day and month in which both are dates.
fn spans_between(before: &str, after: &str) -> Vec<i64> {
    let span = |order: DateOrder| Some(date(after, order)?.as_millis() - date(before, order)?.as_millis());
    [DateOrder::DayFirst, DateOrder::MonthFirst].into_iter().filter_map(span).collect()
}

fn date(text: &str, order: DateOrder) -> Option<Timestamp> {
    let is_part = |word: &&str| has_digit(word) || is_time_word(&bare(word));
    let words: Vec<&str> = text.split_whitespace().filter(is_part).take(MAX_WORDS).collect();
    parse(&words.join(" "), order)
}

fn all_passing(words: &[&str]) -> Option<PassingKind> {
    let has_words = |clause: &&[&str]| clause.iter().any(|word| !bare(word).is_empty());
    let kinds = clauses(words).filter(has_words).map(|clause| Some(Clause::new(clause).kind()?.0));
    let kinds: Option<Vec<PassingKind>> = kinds.collect();
    let kinds = kinds?;
    let rank = |kind: &&PassingKind| match kind {
        PassingKind::Stamp => 0,
        PassingKind::Clock => 1,
        PassingKind::Counter => 2,
    };
    kinds.iter().min_by_key(rank).copied()
}

/// The words of a text. A slash between a number and a word separates: "(12)/Comments".
pub(super) fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().flat_map(|word| {
        let slash = word.char_indices().zip(word.chars().skip(1)).find(|((at, c), next)| {
            let before = word[..*at].chars().next_back();
            *c == '/' && next.is_alphabetic() && before.is_some_and(|before| !before.is_alphabetic())
        });
        let (first, rest) = slash.map_or((word, ""), |((at, _), _)| (&word[..at], &word[at + 1..]));
        [first, rest].into_iter().filter(|part| !part.is_empty())
    })
}

/// Parts of a text between full stops, bars and dots, each with the separator after it. A dash between two times joins
/// them.
pub(super) fn clauses<'w, 't>(words: &'w [&'t str]) -> impl Iterator<Item = &'w [&'t str]> {
    let is_end = |at: usize| {
        let word = words[at];
        let next = words.get(at + 1).copied().unwrap_or_default();
        if bare(word).is_empty() {
            let joins = matches!(word, "-" | "–" | "—" | "/" | ":" | "&" | "+" | ",");
            let previous = at.checked_sub(1).map_or("", |at| words[at]);
            return !(joins && is_part_of_time(previous) && is_part_of_time(next));
        }
        let is_initials = word.contains('.') && word.split('.').all(|part| part.chars().count() <= 1);
        let ends_sentence = word.trim_end_matches([')', '"', '”', '“', '»']).ends_with(['.', '!', '?', ';']);
        // 12. November, Nov. 12, 3 Min.
        let is_abbreviated = word.ends_with('.') && (has_digit(word) || is_time_word(&bare(word)));
        ends_sentence
            && !is_initials
            && !(is_abbreviated && (is_part_of_time(next) || is_a(&bare(next), class::AGE)))
    };
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = words.get(from..).filter(|rest| !rest.is_empty())?;
        let end = (from..words.len()).find(|&at| is_end(at)).map_or(words.len(), |at| at + 1);
        let clause = &rest[..end - from];
        from = end;
        Some(clause)
    })
}

fn is_part_of_time(word: &str) -> bool {
    has_digit(word) || is_time_word(&bare(word))
}

/// Whether a stamp has a label such as "updated", or is a bare time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Labelled,
    Bare,
}

/// The words of a clause by kind.
#[derive(Default)]
struct Clause {
    n_numbers: usize,
    n_years: usize,
    n_clocks: usize,
    n_months: usize,
    n_weekdays: usize,
    /// Numbers that are days or years; those of ISO dates count as three.
    n_date_parts: usize,
    has_seconds: bool,
    has_unit: bool,
    has_time_word: bool,
    has_age_label: bool,
    has_stamp_label: bool,
    has_counter_label: bool,
    has_copyright: bool,
    has_reserved_sign: bool,
    has_span: bool,
    has_by: bool,
    n_fillers: usize,
    n_rights: usize,
    n_names: usize,
    n_others: usize,
}

impl Clause {
    fn new(words: &[&str]) -> Clause {
        let (label, time) = words.split_at(n_label_words(words));
        let clause = Clause::of_words(time);
        match !label.is_empty() && clause.has_seconds && clause.is_bare_time() {
            true => Clause { has_stamp_label: true, ..clause },
            false => Clause::of_words(words),
        }
    }

    fn of_words(words: &[&str]) -> Clause {
        let mut clause = Clause::default();
        for (at, word) in words.iter().enumerate() {
            let previous = at.checked_sub(1).map(|at| bare(words[at])).unwrap_or_default();
            clause.add(word, &previous);
        }
        clause
    }

    fn add(&mut self, word: &str, previous: &str) {
        let own = bare(word);
        if own.is_empty() {
            self.has_span |= matches!(word, "-" | "–" | "—") && self.n_numbers + self.n_weekdays > 0;
            return;
        }
        if has_digit(&own) {
            return self.add_number(&own);
        }
        let is_span = own.split(['-', '–']).filter(|part| is_time_word(part)).count() > 1;
        // French: "il y a 3 minutes".
        self.has_age_label |= is_a(&own, class::AGE) || own == "a" && previous == "y";
        match () {
            _ if is_span => (self.has_span, self.has_time_word) = (true, true),
            _ if is_a(&own, class::AGE) => {}
            _ if is_time_word(&own) => self.add_time_word(&own),
            _ if is_a(&own, class::STAMP) => self.has_stamp_label = true,
            _ if is_a(&own, class::COUNTER) => self.has_counter_label = true,
            _ if is_a(&own, class::COPYRIGHT) => {
                self.has_copyright = true;
                self.has_reserved_sign |= own.contains('©');
            }
            _ if is_a(&own, class::RESERVED) => self.has_reserved_sign = true,
            _ if is_a(&own, class::RIGHTS) => self.n_rights += 1,
            _ if is_a(&own, class::DATE_FILLER) => {}
            _ if is_a(&own, class::FILLER) => self.n_fillers += 1,
            _ if is_a(&own, class::BY) => self.has_by = true,
            _ if word.chars().any(char::is_uppercase) && !is_important(&own) => self.n_names += 1,
            _ => self.n_others += 1,
        }
    }

    fn add_number(&mut self, word: &str) {
        self.n_numbers += 1;
        self.n_years += usize::from(word.split(['-', '–']).all(is_year));
        self.has_seconds |= word.matches(':').count() >= 2;
        let n_letters = word.chars().filter(|c| c.is_alphabetic()).count();
        match () {
            _ if is_instant(word) => {
                (self.n_clocks, self.n_date_parts) = (self.n_clocks + 1, self.n_date_parts + 3)
            }
            _ if is_clock(word) => self.n_clocks += 1,
            _ if is_calendar_date(word) => self.n_date_parts += 3,
            _ if word.contains(['-', '–']) => self.has_span = true,
            _ if n_letters > 3 => self.n_others += 1,
            _ => self.n_date_parts += 1,
        }
    }

    fn add_time_word(&mut self, word: &str) {
        self.has_time_word = true;
        self.n_months += usize::from(is_a(word, class::MONTH));
        self.n_weekdays += usize::from(is_a(word, class::WEEKDAY));
        self.has_unit |= is_a(word, class::UNIT_OF_TIME);
    }

    /// `None` if the clause says something else.
    fn kind(&self) -> Option<(PassingKind, Form)> {
        let has_time = self.n_clocks > 0 || self.has_time_word || self.n_date_parts >= 3;
        if self.has_copyright && self.n_numbers > 0 && self.n_years == self.n_numbers {
            return Some((PassingKind::Stamp, Form::Labelled));
        }
        // "© The Harbour Post", "All rights reserved."
        if self.has_reserved_sign && self.n_numbers + self.n_others == 0 {
            return Some((PassingKind::Stamp, Form::Labelled));
        }
        let is_by_someone = self.has_by && self.n_names <= MAX_NAMES;
        if self.n_others + self.n_rights > 0 || self.n_names > 0 && !is_by_someone {
            return None;
        }
        if self.has_counter_label && self.n_numbers > 0 {
            return Some((PassingKind::Counter, Form::Labelled));
        }
        if has_time && self.has_age_label {
            return Some((PassingKind::Clock, Form::Labelled));
        }
        if has_time && self.has_stamp_label {
            let is_clock = self.n_months + self.n_weekdays == 0 && self.n_date_parts < 3;
            let kind = if is_clock { PassingKind::Clock } else { PassingKind::Stamp };
            return Some((kind, Form::Labelled));
        }
        self.is_bare_time().then(|| match self.n_months + self.n_weekdays > 0 || self.n_date_parts >= 3 {
            true => (PassingKind::Stamp, Form::Bare),
            false => (PassingKind::Clock, Form::Bare),
        })
    }

    /// One time and nothing else. Two of them are a span, and a number with a unit is a duration.
    fn is_bare_time(&self) -> bool {
        let is_date = self.n_months == 1 && self.n_date_parts <= 2
            || self.n_months == 0 && self.n_date_parts == 3
            || self.n_months == 0 && self.n_date_parts == 0 && self.n_weekdays + self.n_clocks > 0;
        is_date
            && self.n_clocks <= 1
            && self.n_weekdays <= 1
            && self.n_numbers > 0
            && self.n_fillers == 0
            && self.n_names == 0
            && !self.has_by
            && !self.has_unit
            && !self.has_span
    }
}

/// The number of words of a short label with a colon, such as the name of a field. 0 if it says that the time matters,
/// such as "Deadline:".
fn n_label_words(words: &[&str]) -> usize {
    let n_words = words.iter().take(MAX_LABEL).position(|word| word.ends_with(':')).map_or(0, |at| at + 1);
    let is_label = |word: &&str| !has_digit(word) && !is_important(&bare(word));
    if words[..n_words].iter().all(is_label) { n_words } else { 0 }
}

/// Whether a word has a digit.
pub(super) fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The word in lower case without punctuation, and without an article before an apostrophe.
pub(super) fn bare(word: &str) -> String {
    let word =
        word.trim_matches(|c: char| !c.is_alphanumeric() && c != '°' && c != '%' && c != '©').to_lowercase();
    match word.split_once(['\'', '’']) {
        Some((article, rest)) if article.len() <= 2 && !rest.is_empty() => rest.to_owned(),
        _ => word,
    }
}

/// Whether a word is the name of a day or month, a unit of time, or part of a time.
pub(super) fn is_time_word(word: &str) -> bool {
    is_a(word, class::TIME)
}

/// Whether a word is a date, a time of day or a name in one.
pub(super) fn is_date_or_clock(word: &str) -> bool {
    let word = bare(word);
    is_clock(&word)
        || is_instant(&word)
        || is_calendar_date(&word)
        || is_a(&word, class::MONTH | class::WEEKDAY)
}

pub(super) fn is_unit_of_time(word: &str) -> bool {
    is_a(word, class::UNIT_OF_TIME | class::SHORT_UNIT_OF_TIME)
}

/// Whether a word may stand next to a number without saying what it means.
pub(super) fn is_filler(word: &str) -> bool {
    is_a(word, class::FILLER | class::DATE_FILLER | class::BY | class::STAMP | class::AGE)
}

/// A time of day: 9:05, 21:30:07, 9h05.
pub(super) fn is_clock(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let word = word.strip_suffix(['h', 'Z', 'z']).unwrap_or(word);
    let word = word.strip_suffix("am").or(word.strip_suffix("pm")).unwrap_or(word);
    let parts: Vec<&str> = word.split([':', 'h']).collect();
    (2..=3).contains(&parts.len())
        && parts
            .iter()
            .all(|part| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A machine-readable instant: 2026-01-01T05:00:00Z.
fn is_instant(word: &str) -> bool {
    let is_part = |byte: u8| {
        byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.' | b'+' | b'T' | b'Z' | b't' | b'z')
    };
    word.len() >= 16 && matches!(word.as_bytes().get(10), Some(b'T' | b't')) && word.bytes().all(is_part)
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.parse().is_ok_and(|year: u32| (1900..2100).contains(&year))
}

/// Whether three numbers are day, month and year in any order. 9.1.0 is a version, not a date.
pub fn is_calendar_date(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let parts: Vec<&str> = word.split(['-', '/', '.']).collect();
    let [first, second, third] = parts[..] else { return false };
    let number = |part: &str| part.parse::<u32>().unwrap_or(u32::MAX);
    let is_day_and_month = |one: &str, other: &str| {
        let (one, other) = (number(one), number(other));
        (1..=31).contains(&one) && (1..=31).contains(&other) && one.min(other) <= 12
    };
    let is_year = |part: &str| part.len() == 2 || part.len() == 4 && (1900..2100).contains(&number(part));
    (is_year(third) && is_day_and_month(first, second))
        || (first.len() == 4 && is_year(first) && is_day_and_month(second, third))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_and_counters_are_passing() {
        use PassingKind::{Clock, Counter, Stamp};
        for (text, kind) in [
            ("3 minutes ago", Clock),
            ("14:05", Clock),
            ("As of 10:00 today", Clock),
            ("Hora local: 14:05", Clock),
            ("Page generated in 0.031 seconds", Clock),
            ("il y a 3 minutes", Clock),
            ("vor 5 Minuten", Clock),
            ("Last updated 12 November 2026, 10:15", Stamp),
            ("Wednesday, February 01, 2017", Stamp),
            ("Posted on 2026-11-12 by Jane Miller", Stamp),
            ("Mis à jour le 12 novembre 2026 à 10h15", Stamp),
            ("Actualizado el 12 de noviembre de 2026 a las 10:15", Stamp),
            ("Stand: 12. Nov. 2026", Stamp),
            ("14:05 | 12 November 2026", Stamp),
            ("made: 2026-01-01T05:00:00Z", Stamp),
            ("lastBuildDate: Thu, 01 Jan 2026 10:01:00 GMT", Stamp),
            ("Server time: 2026-01-01 10:01:00", Stamp),
            ("pubDate: 10:01:00", Clock),
            ("© 2026 The Harbour Post", Stamp),
            ("© U.S. Department of Ferries. All rights reserved.", Stamp),
            ("Served by node fra-17 in 12 ms", Clock),
            ("© 2010–2026 Capitainerie de la ville", Stamp),
            ("12 comments", Counter),
            ("1,204 views · 3 shares", Counter),
            ("17 people are looking at this right now", Counter),
            ("Dieser Artikel wurde bereits 1.204 Mal gelesen.", Counter),
            ("Number of views (4099)/Comments (0)", Counter),
        ] {
            assert_eq!(passing(text), Some(kind), "{text}");
        }
        for text in [
            "",
            "minutes",
            "Price 12 EUR",
            "12 dead",
            "Copyright fee: 12 per copy",
            "Chapter 12",
            "Your rights",
            "All rights",
            "Copyright",
            "within 30 days",
            "30 days",
            "every 6 hours",
            "Applications close on 2026-12-01",
            "hearing on 24 November",
            "9:00–17:00",
            "9:00 - 17:00",
            "Mo–Fr",
            "Mon - Fri 9:00 - 17:00",
            "12 November 2026 - 5 January 2027",
            "Deadline | 12 November 2026",
            "Deadline: Thu, 12 Nov 2026 10:00:00 GMT",
            "Concert: Thursday, 12 November 2026, 19:00",
            "Next ferry to sea: 10:01:00",
            "Valid until 31 March 2026",
            "Time 19:00 in the hall",
            "two comments on 3 ideas of mine that matter",
            "The shop closed. Updated 3 hours ago.",
        ] {
            assert_eq!(passing(text), None, "{text}");
        }
    }

    #[test]
    fn a_clause_is_judged_by_itself() {
        let at = |text: &str, word: &str| {
            let words: Vec<&str> = split_words(text).collect();
            passing_at(&words, words.iter().position(|other| *other == word).unwrap())
        };
        assert_eq!(at("The shop closed. Updated 3 hours ago.", "3"), Some(PassingKind::Clock));
        assert_eq!(at("The shop closed on 3 December. Updated today.", "3"), None);
        assert_eq!(at("Politics | 12 November 2026", "12"), None);
        assert_eq!(at("Politics | updated 12 November 2026", "12"), Some(PassingKind::Stamp));
    }

    #[test]
    fn a_date_and_nothing_else_is_a_day() {
        let day = |text: &str| only_date(text).map(|date| date.to_rfc3339()[..10].to_owned());
        assert_eq!(day("29 avr. 2022").as_deref(), Some("2022-04-29"));
        assert_eq!(day("1 déc. 2019").as_deref(), Some("2019-12-01"));
        assert_eq!(day("31.12.2026").as_deref(), Some("2026-12-31"));
        assert_eq!(day("Applications close on 5 May 2026"), None);
        assert_eq!(day("14:05"), None);
    }

    #[test]
    fn a_date_that_goes_back_is_seen() {
        assert!(goes_back("1 December 2026", "20 November 2026"));
        assert!(goes_back("2026-12-01", "2026-11-20"));
        assert!(goes_back("31.12.2026", "20.11.2026"));
        assert!(!goes_back("18 November 2026", "19 November 2026"));
        assert!(!goes_back("14:35", "14:05"));
        assert!(!goes_back("05/06/2026", "06/05/2026"), "the order of day and month is unknown");
    }
}
