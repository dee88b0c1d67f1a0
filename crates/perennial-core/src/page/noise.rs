//! The history of a page's changes -> how much of a change is noise: counters, dates, nonces, rotating teasers
//! (P-VISUAL 6; docs/papers.md, Advertisements and noise).
//!
//! Text that changes on every visit without new words is noise. For some numbers the text decides (`text::numbers`): a
//! price is news, a clock is not. For others only the history can decide. So a small state per page counts how often
//! each element changed without new words, and stores what disappeared and may come back. The share of visits with
//! such a change is estimated with a prior: one change in two visits, and 39 in 40 for a date.

use std::collections::{HashSet, VecDeque};

use crate::page::diff::{Delta, Element, Operation, OperationKind, Subject};
use crate::page::importance::Judgement;
use crate::page::segment::Block;
use crate::text::numbers::{NumberChange, classify, is_passing};

/// Maximum number of elements whose changes are counted. Those with the fewest changes are dropped first.
const MAX_CHANGING: usize = 128;
/// Maximum number of stored vanished elements, and of vanished words.
const MAX_VANISHED: usize = 512;
/// Noise of an element that returns after it vanished.
const RETURNING: f64 = 0.75;
/// Minimum noise of an operation that counts as noise.
const MOSTLY_NOISE: f64 = 0.6;
/// Maximum number of new words of a change that may be a nonce.
const FEW_WORDS: usize = 2;
/// Number of observations in a row with a changed unreadable document after which its changes are noise only.
const MIN_CHANGES_IN_A_ROW: u16 = 5;
/// The ID under which changes of an unreadable document are counted.
const WHOLE: u64 = 0;
/// Maximum number of words of a text that is mainly a date.
const MAX_DATE_WORDS: usize = 15;
/// First byte of the stored form.
const FORMAT: u8 = 1;

/// Evidence from earlier visits of a page about its noise.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NoiseHistory {
    /// Observations of the page after the first one.
    n_visits: u32,
    /// Number of changes with few or no new words, by the element's current ID, most recent last.
    changing: Vec<(u64, u16)>,
    /// Vanished elements, most recent last.
    vanished: VecDeque<u32>,
    /// Vanished words, most recent last.
    words: VecDeque<u32>,
}

/// A stored history is unreadable.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("noise history, byte {offset}: {reason}; delete it, it is relearned")]
pub struct NoiseError {
    /// Position of the error in bytes.
    pub offset: usize,
    pub reason: &'static str,
}

/// How much of a change is noise, from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Noise(pub f64);

impl Noise {
    pub fn is_mostly_noise(self) -> bool {
        self.0 >= MOSTLY_NOISE
    }
}

impl Judgement {
    /// Whether a reader learns nothing from the operation. A change is noise only if all of its operations are.
    pub fn is_noise(self) -> bool {
        self.is_advertisement || Noise(self.noise).is_mostly_noise()
    }

    /// Whether an operation with this share of the change's importance should be reported.
    pub fn is_worth_reporting(self, share: f64) -> bool {
        !self.is_noise() && share > 0.0
    }
}

impl NoiseHistory {
    /// How much of an operation is noise, judged by earlier visits.
    pub fn noise(&self, operation: &Operation) -> Noise {
        let noise = match (operation.kind, operation.subject) {
            (OperationKind::Insert, Subject::Element { after: Some(element), .. }) => {
                self.insert_noise(element)
            }
            (OperationKind::Delete, Subject::Element { before: Some(element), .. }) => {
                self.delete_noise(element)
            }
            (OperationKind::Update, Subject::Element { before: Some(before), after: Some(after) }) => {
                self.update_noise(before, after)
            }
            (OperationKind::Insert, Subject::Block(Some(block))) => {
                mean_noise(block, |element| self.insert_noise(element))
            }
            (OperationKind::Delete, Subject::Block(Some(block))) => {
                mean_noise(block, |element| self.delete_noise(element))
            }
            _ => 0.0,
        };
        Noise(noise)
    }

    /// Records a visit without a change.
    pub fn record_unchanged(&mut self) {
        self.n_visits = self.n_visits.saturating_add(1);
        self.changing.retain(|(id, _)| *id != WHOLE);
    }

    /// Records a visit that found a changed unreadable document, and returns how much of the change is noise. Webcam
    /// images, counters and archives that are packed for each request change on every observation. The longer such a
    /// run, the less each change matters. `is_soon`: the last observation was recent enough that a file with daily
    /// updates would sometimes have been unchanged.
    pub fn record_unreadable(&mut self, is_soon: bool) -> Noise {
        let place = self.changing.iter().position(|(id, _)| *id == WHOLE);
        let n_before = place.map_or(0, |place| self.changing.remove(place).1);
        self.n_visits = self.n_visits.saturating_add(1);
        self.remember_changing(WHOLE, n_before.saturating_add(u16::from(is_soon)));
        Noise(if n_before >= MIN_CHANGES_IN_A_ROW - 1 { 1.0 } else { 1.0 - 1.0 / f64::from(1 + n_before) })
    }

    /// Records a visit and its changes.
    pub fn record(&mut self, delta: &Delta) {
        self.record_unchanged();
        for operation in delta.operations() {
            match (operation.kind, operation.subject) {
                (OperationKind::Update, Subject::Element { before: Some(before), after: Some(after) }) => {
                    self.record_update(before, after);
                }
                (OperationKind::Insert, Subject::Element { after: Some(element), .. }) => {
                    self.record_insert(element);
                }
                (OperationKind::Delete, Subject::Element { before: Some(element), .. }) => {
                    self.record_delete(element);
                }
                (OperationKind::Insert, Subject::Block(Some(block))) => {
                    elements(block).for_each(|element| self.record_insert(&element));
                }
                (OperationKind::Delete, Subject::Block(Some(block))) => {
                    elements(block).for_each(|element| self.record_delete(&element));
                }
                _ => {}
            }
        }
    }

    fn insert_noise(&self, element: &Element) -> f64 {
        if is_passing(element.text()) {
            return 1.0;
        }
        if self.vanished.contains(&short_id(element)) { RETURNING } else { 0.0 }
    }

    /// An element that vanished and returned before will probably do so again.
    fn delete_noise(&self, element: &Element) -> f64 {
        if is_passing(element.text()) {
            return 1.0;
        }
        if self.n_changes(element) > 0 { RETURNING } else { 0.0 }
    }

    fn n_changes(&self, element: &Element) -> u16 {
        let id = element.id().0;
        self.changing.iter().find(|(other, _)| *other == id).map_or(0, |(_, n)| *n)
    }

    fn update_noise(&self, before: &Element, after: &Element) -> f64 {
        let n_new = self.new_words(before, after);
        let (n_changes, n_visits) = (f64::from(self.n_changes(before)), f64::from(self.n_visits));
        let at_nearly_every_visit = n_visits >= 4.0 && n_changes >= 0.8 * n_visits;
        match classify(before.text(), after.text()) {
            NumberChange::Passing => return 1.0,
            NumberChange::News if !at_nearly_every_visit => return 0.0,
            _ => {}
        }
        let is_date = is_date_change(before, after);
        let is_another_target = before.text() != after.text() && before.url() != after.url();
        if n_new == 0 && is_another_target && !is_date && !at_nearly_every_visit {
            // A new number with a new target is probably the next of a series, such as a release.
            return 0.0;
        }
        if n_new == 0 {
            // The prior: dates change on nearly every visit, other elements on every second one.
            let (prior_changes, prior_visits) = if is_date { (39.0, 40.0) } else { (1.0, 2.0) };
            return (prior_changes + n_changes) / (prior_visits + n_visits);
        }
        if n_new <= FEW_WORDS && at_nearly_every_visit { n_changes / (1.0 + n_visits) } else { 0.0 }
    }

    /// Number of new words in `after`: not in `before`, not numbers or dates, and not among the vanished words.
    fn new_words(&self, before: &Element, after: &Element) -> usize {
        let known: HashSet<&str> = words(before).collect();
        words(after)
            .filter(|word| {
                !known.contains(word) && !is_number_or_date(word) && !self.words.contains(&hash(word))
            })
            .count()
    }

    fn record_update(&mut self, before: &Element, after: &Element) {
        let is_small = self.new_words(before, after) <= FEW_WORDS;
        let place = self.changing.iter().position(|(id, _)| *id == before.id().0);
        let n_changes = place.map_or(0, |place| self.changing.remove(place).1);
        if is_small {
            self.remember_changing(after.id().0, n_changes.saturating_add(1));
        }
        let kept: HashSet<&str> = words(after).collect();
        for word in words(before).filter(|word| !kept.contains(word) && !is_number_or_date(word)) {
            remember(&mut self.words, hash(word));
        }
    }

    fn record_insert(&mut self, element: &Element) {
        let id = short_id(element);
        if let Some(place) = self.vanished.iter().position(|other| *other == id) {
            self.vanished.remove(place);
            let n_changes = self.n_changes(element);
            self.changing.retain(|(other, _)| *other != element.id().0);
            self.remember_changing(element.id().0, n_changes.saturating_add(1));
        }
    }

    fn record_delete(&mut self, element: &Element) {
        remember(&mut self.vanished, short_id(element));
    }

    fn remember_changing(&mut self, id: u64, n_changes: u16) {
        if self.changing.len() >= MAX_CHANGING
            && let Some(least) = (0..self.changing.len()).min_by_key(|&place| self.changing[place].1)
        {
            self.changing.remove(least);
        }
        self.changing.push((id, n_changes));
    }

    /// The stored form. It has at most six kilobytes, and a few dozen bytes for a quiet page.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.n_visits.to_le_bytes());
        for n in [self.changing.len(), self.vanished.len(), self.words.len()] {
            bytes.extend((n as u16).to_le_bytes());
        }
        for (id, n_changes) in &self.changing {
            bytes.extend(id.to_le_bytes());
            bytes.extend(n_changes.to_le_bytes());
        }
        for hash in self.vanished.iter().chain(&self.words) {
            bytes.extend(hash.to_le_bytes());
        }
        bytes
    }

    /// Reads the stored form.
    pub fn from_bytes(bytes: &[u8]) -> Result<NoiseHistory, NoiseError> {
        let mut input = ByteReader { bytes, offset: 0 };
        if input.take::<1>()? != [FORMAT] {
            return Err(NoiseError { offset: 0, reason: "unknown format" });
        }
        let n_visits = u32::from_le_bytes(input.take()?);
        let mut lengths = [0; 3];
        for length in &mut lengths {
            *length = u16::from_le_bytes(input.take()?);
        }
        let mut history = NoiseHistory { n_visits, ..NoiseHistory::default() };
        for _ in 0..lengths[0] {
            history.changing.push((u64::from_le_bytes(input.take()?), u16::from_le_bytes(input.take()?)));
        }
        for _ in 0..lengths[1] {
            history.vanished.push_back(u32::from_le_bytes(input.take()?));
        }
        for _ in 0..lengths[2] {
            history.words.push_back(u32::from_le_bytes(input.take()?));
        }
        Ok(history)
    }
}

struct ByteReader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl ByteReader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NoiseError> {
        let found = self.bytes.get(self.offset..self.offset + N).and_then(|bytes| bytes.try_into().ok());
        let taken = found.ok_or(NoiseError { offset: self.offset, reason: "truncated" })?;
        self.offset += N;
        Ok(taken)
    }
}

fn remember(ring: &mut VecDeque<u32>, hash: u32) {
    if ring.contains(&hash) {
        return;
    }
    if ring.len() >= MAX_VANISHED {
        ring.pop_front();
    }
    ring.push_back(hash);
}

fn short_id(element: &Element) -> u32 {
    let id = element.id().0;
    (id ^ (id >> 32)) as u32
}

fn hash(word: &str) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in word.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash
}

/// The words of the text and the parts of the URL. Splitting the URL makes a nonce in a query one part of several.
fn words(element: &Element) -> impl Iterator<Item = &str> {
    let text = element.text().split_whitespace();
    text.chain(element.url().split(['/', '?', '&', '=', ';', '#']).filter(|part| !part.is_empty()))
}

/// Whether a word is a number, date, time or token with digits, which programs generate without news.
fn is_number_or_date(word: &str) -> bool {
    if word.bytes().any(|byte| byte.is_ascii_digit()) {
        return true;
    }
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    bare.is_empty() || is_date_word(bare)
}

/// Whether a date or time changed in a short text: the name of a month or day, a time, a calendar date or a year, or a
/// word next to one. Other numbers do not count: in a table row with a date they may be news.
fn is_date_change(before: &Element, after: &Element) -> bool {
    let known: HashSet<&str> = before.text().split_whitespace().collect();
    let words: Vec<&str> = after.text().split_whitespace().take(MAX_DATE_WORDS + 1).collect();
    if words.len() > MAX_DATE_WORDS {
        return false;
    }
    let is_date = |word: &&str| is_date_part(word.trim_matches(|c: char| !c.is_alphanumeric()));
    let is_changed = |place: &usize| !known.contains(words[*place]);
    let mut changed = (0..words.len()).filter(is_changed).peekable();
    if changed.peek().is_none() {
        return words.iter().any(is_date);
    }
    changed.any(|place| words[place.saturating_sub(1)..words.len().min(place + 2)].iter().any(is_date))
}

fn is_date_part(word: &str) -> bool {
    let is_year = word.len() == 4
        && (word.starts_with("19") || word.starts_with("20"))
        && word.bytes().all(|b| b.is_ascii_digit());
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let marks = word.bytes().filter(|byte| matches!(byte, b':' | b'-' | b'/' | b'.')).count();
    let is_written_date = digits >= 3 && marks >= 1 && digits + marks == word.len() && word.len() <= 10;
    let is_clock = is_written_date && word.contains(':');
    let is_calendar = is_written_date && is_calendar_date(word);
    let is_name = word.len() > 2 && is_date_word(word);
    is_year || is_clock || is_calendar || is_name || is_timestamp(word)
}

/// Whether three numbers are day, month and year in any order. 9.1.0 is a version, not a date.
fn is_calendar_date(word: &str) -> bool {
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

/// Whether a word is a machine-readable instant, such as 2026-01-01T05:00:00Z.
fn is_timestamp(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.' | b'+' | b'T' | b'Z');
    word.len() >= 16 && word.as_bytes().get(10) == Some(&b'T') && word.bytes().all(is_part)
}

/// Names of months and days and other words next to times, in several languages.
const DATE_WORDS: &str = "\
    january february march april may june july august september october november december jan feb mar \
    apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon \
    tue wed thu fri sat sun am pm utc gmt ago today yesterday second seconds minute minutes hour hours \
    day days januar februar mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag \
    samstag sonntag uhr janvier mars avril juin juillet septembre octobre novembre lundi mardi mercredi \
    jeudi vendredi samedi dimanche enero febrero abril mayo junio julio lunes martes jueves viernes \
    domingo an a";

fn is_date_word(word: &str) -> bool {
    DATE_WORDS.split(' ').any(|known| known.eq_ignore_ascii_case(word))
}

fn elements(block: &Block) -> impl Iterator<Item = Element> {
    block.walk().flat_map(Element::in_block)
}

fn mean_noise(block: &Block, noise: impl Fn(&Element) -> f64) -> f64 {
    let (n, sum) = elements(block).fold((0.0, 0.0), |(n, sum), element| (n + 1.0, sum + noise(&element)));
    if n == 0.0 { 0.0 } else { sum / n }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    #[test]
    fn unreadable_documents_that_always_change_become_noise() {
        let mut history = NoiseHistory::default();
        let first: Vec<f64> = (0..9).map(|_| history.record_unreadable(true).0).collect();
        assert!(first[0] == 0.0 && first.is_sorted() && first[3] < 1.0, "{first:?}");
        assert_eq!(first[4..], [1.0; 5]);
        let mut stored = NoiseHistory::from_bytes(&history.to_bytes()).unwrap();
        assert_eq!(stored.record_unreadable(true), Noise(1.0), "a restart forgets nothing");
        history.record_unchanged();
        assert_eq!(
            history.record_unreadable(true),
            Noise(0.0),
            "an observation that finds it the same begins anew"
        );
    }

    #[test]
    fn a_number_next_to_a_date_belongs_to_it() {
        let is_date_change = |before: &str, after: &str| {
            super::is_date_change(&Element::Text(Text::new(before)), &Element::Text(Text::new(after)))
        };
        assert!(is_date_change("Updated 5 minutes ago", "Updated 6 minutes ago"));
        assert!(is_date_change("Monday, 5 January 2026", "Tuesday, 6 January 2026"));
        assert!(is_date_change("made: 2026-01-01T05:00:00Z", "made: 2026-01-01T06:00:00.25+01:00"));
        assert!(is_date_change("as of 10:00 today", "as of 10:01 today"));
        assert!(!is_date_change(
            "road: Ring; limit: 50; since: Monday",
            "road: Ring; limit: 60; since: Monday"
        ));
    }

    #[test]
    fn daily_publications_are_not_noise() {
        let mut history = NoiseHistory::default();
        assert!((0..100).all(|_| history.record_unreadable(false) == Noise(0.0)));
    }

    use super::*;
    use crate::page::diff::diff;
    use crate::page::segment::{BlockTree, Link, Text};

    fn page(texts: &[String], link: &str) -> BlockTree {
        let mut all = vec![Text::new("an article of some words that stays as it is")];
        all.extend(texts.iter().map(|text| Text::new(text.as_str())));
        let block = Block::leaf(vec![Link::new("next", link)], vec![], all);
        let mut tree = BlockTree { blocks: vec![Block { importance: 1.0, ..block }], ..BlockTree::default() };
        tree.seal();
        tree
    }

    /// The noise of each operation on each visit.
    fn watch(visits: impl Iterator<Item = BlockTree>) -> Vec<Vec<f64>> {
        let mut history = NoiseHistory::default();
        let mut last: Option<BlockTree> = None;
        let mut all = Vec::new();
        for tree in visits {
            if let Some(before) = &last {
                let delta = diff(before, &tree);
                all.push(delta.operations().map(|operation| history.noise(&operation).0).collect());
                history.record(&delta);
                let stored = history.to_bytes();
                assert_eq!(NoiseHistory::from_bytes(&stored).unwrap(), history);
            }
            last = Some(tree);
        }
        all
    }

    #[test]
    fn a_counter_becomes_noise_visit_by_visit() {
        // The text does not show what is counted, so only the history can decide.
        let seen = watch((0..12).map(|n| page(&[format!("this is number {}", 1000 + n * 37)], "/n")));
        assert_eq!(seen[0], [0.5]);
        assert!(seen.windows(2).all(|pair| pair[0][0] < pair[1][0]), "{seen:?}");
        assert!(Noise(seen[10][0]).is_mostly_noise());
    }

    /// The status of a change and the report of its operations use the same threshold.
    #[test]
    fn operations_are_reported_unless_they_are_noise() {
        for noise in [0.0, 0.3, 0.49, 0.5, 0.55, MOSTLY_NOISE, 1.0] {
            let judgement = Judgement { is_advertisement: false, noise };
            assert_eq!(judgement.is_worth_reporting(0.1), noise < MOSTLY_NOISE, "{noise}");
            assert_eq!(judgement.is_noise(), !judgement.is_worth_reporting(0.1), "{noise}");
            assert!(!judgement.is_worth_reporting(0.0), "{noise}");
        }
        let advertisement = Judgement { is_advertisement: true, noise: 0.0 };
        assert!(advertisement.is_noise() && !advertisement.is_worth_reporting(1.0));
    }

    #[test]
    fn a_labelled_counter_is_noise_at_once() {
        let seen = watch((0..3).map(|n| page(&[format!("you are visitor number {}", 1000 + n * 37)], "/n")));
        assert_eq!(seen, [[1.0], [1.0]]);
    }

    #[test]
    fn a_changed_price_is_news_on_the_first_visit() {
        let seen = watch((0..2).map(|n| page(&[format!("the price is {} euro", 10 + n)], "/n")));
        assert_eq!(seen, [[0.0]]);
    }

    #[test]
    fn a_price_that_rarely_changes_is_news() {
        let price = |visit: usize| if visit < 20 { "the price is 10 euro" } else { "the price is 12 euro" };
        let seen = watch((0..25).map(|visit| page(&[price(visit).to_string()], "/n")));
        assert!(seen[19][0] < 0.1, "{seen:?}");
    }

    #[test]
    fn a_nonce_in_a_url_becomes_noise() {
        let seen = watch(
            (0..12).map(|n: u64| page(&[], &format!("/next?token=q{:x}", n.wrapping_mul(0x9e37_79b9)))),
        );
        assert!(Noise(seen[10][0]).is_mostly_noise(), "{seen:?}");
    }

    #[test]
    fn teasers_that_come_back_are_noise_and_new_ones_are_not() {
        let teasers = ["buy green shoes", "visit sunny islands", "learn to dance"];
        let seen = watch((0..9).map(|n| page(&[teasers[n % 3].to_string()], "/n")));
        assert_eq!(seen[0], [0.0, 0.0]);
        assert!(seen[6].iter().all(|noise| Noise(*noise).is_mostly_noise()), "{seen:?}");
        let fresh = ["first story", "second tale", "third report", "fourth account", "fifth column"];
        let seen = watch(fresh.iter().map(|text| page(&[text.to_string()], "/n")));
        assert!(seen.iter().flatten().all(|noise| *noise == 0.0), "{seen:?}");
    }

    #[test]
    fn new_words_are_news_however_often_they_come() {
        let words = [
            "alpha bravo charlie",
            "delta echo foxtrot",
            "golf hotel india",
            "juliet kilo lima",
            "mike november oscar",
        ];
        let seen = watch(
            words
                .iter()
                .map(|words| page(&[format!("the latest of all our many reports says {words}")], "/n")),
        );
        assert!(seen.iter().flatten().all(|noise| *noise == 0.0), "{seen:?}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_history_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(history) = NoiseHistory::from_bytes(&bytes) {
                prop_assert!(bytes.starts_with(&history.to_bytes()));
            }
        }

        #[test]
        fn the_stored_form_stays_small(seed in any::<u64>()) {
            let mut history = NoiseHistory::default();
            let many = |n: u64| page(&(0..200).map(|i| format!("text {} of {}", seed ^ (n * 1000 + i), i)).collect::<Vec<_>>(), "/n");
            for n in 0..4 {
                history.record(&diff(&many(n), &many(n + 1)));
            }
            prop_assert!(history.to_bytes().len() < 6_000);
        }
    }
}
