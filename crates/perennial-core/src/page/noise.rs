//! The history of a page's changes -> how much of a change is noise, and why: counters, dates, nonces, rotating teasers
//! (P-VISUAL 6; docs/papers.md, Advertisements and noise).
//!
//! Noise is earned. A change that repeats at most visits without new words, or that returns to an earlier value, informs
//! nobody. So a small state per page counts how often each element changed without new words, and stores what
//! disappeared and may come back. The form of a text (`text::stamps`) says only where to begin: a clock weighs little at
//! first sight, a number in a sentence fully. A page that changes for the first time is reported in any case.

use std::collections::{HashSet, VecDeque};

use crate::page::diff::{Delta, Element, Operation, OperationKind, Subject};
use crate::page::importance::Judgement;
use crate::page::segment::Block;
use crate::text::numbers::{NumberChange, classify};
use crate::text::stamps::{PassingKind, passing};

/// Maximum number of elements whose changes are counted. Those with the fewest changes are dropped first.
const MAX_CHANGING: usize = 128;
/// Maximum number of stored vanished elements, and of vanished words.
const MAX_VANISHED: usize = 512;
/// Noise of an element that returns after it vanished.
const RETURNING: f64 = 0.75;
/// Maximum number of visits per return of an element that rotates.
const MAX_VISITS_PER_RETURN: u32 = 10;
/// Noise of a date that is renewed regularly, though not at most visits: the date of the day on a page that is visited
/// every hour.
const RENEWED: f64 = 0.75;
/// Number of changes from which a date may be renewed regularly, and the number of visits for each.
const RENEWALS: (f64, f64) = (3.0, 30.0);
/// Minimum noise of an operation that counts as noise.
const MOSTLY_NOISE: f64 = 0.6;
/// Maximum number of new words of a change that may be a nonce.
const FEW_WORDS: usize = 2;
/// Number of visits after which even a number in a sentence may be noise, and its share of visits with a change.
const RESTLESS_NUMBER: (f64, f64) = (12.0, 0.9);
/// The same for other changes.
const RESTLESS: (f64, f64) = (4.0, 0.8);
/// Number of observations in a row with a changed unreadable document after which its changes are noise only.
const MIN_CHANGES_IN_A_ROW: u16 = 5;
/// The IDs under which changes of the page as a whole are counted: of an unreadable document, and visits at which a
/// stamp of this kind changed, came or went.
const WHOLE: u64 = 0;
const CLOCKS: u64 = 1;
const STAMPS: u64 = 2;
const COUNTERS: u64 = 3;
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

/// How much of a change is noise, and why.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Noise {
    /// From 0 (all of it is news) to 1 (none is).
    pub share: f64,
    /// `None` if none of it is noise, and if the reason was not stored.
    pub reason: Option<NoiseReason>,
}

/// Why a change is noise: what changed, and how often it changed before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoiseReason {
    pub kind: NoiseKind,
    /// Visits before this one at which it changed.
    pub n_changes: u16,
    /// Visits before this one that could have shown a change.
    pub n_visits: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoiseKind {
    /// A time of day, or an age.
    Clock,
    /// The date of the day or of an update.
    Stamp,
    Counter,
    /// A number whose meaning is unknown.
    Number,
    /// A text or a URL without new words.
    Wording,
    /// An element that vanished and came back.
    Returning,
    /// A document of which only the bytes are known.
    Unreadable,
}

impl NoiseKind {
    pub const ALL: [NoiseKind; 7] = [
        NoiseKind::Clock,
        NoiseKind::Stamp,
        NoiseKind::Counter,
        NoiseKind::Number,
        NoiseKind::Wording,
        NoiseKind::Returning,
        NoiseKind::Unreadable,
    ];

    /// For people.
    fn name(self) -> &'static str {
        match self {
            NoiseKind::Clock => "a clock",
            NoiseKind::Stamp => "a time stamp",
            NoiseKind::Counter => "a counter",
            NoiseKind::Number => "a number",
            NoiseKind::Wording => "a part without new words",
            NoiseKind::Returning => "an element that comes and goes",
            NoiseKind::Unreadable => "an unreadable document",
        }
    }

    fn from_passing(kind: PassingKind) -> NoiseKind {
        match kind {
            PassingKind::Clock => NoiseKind::Clock,
            PassingKind::Stamp => NoiseKind::Stamp,
            PassingKind::Counter => NoiseKind::Counter,
        }
    }
}

impl NoiseReason {
    /// "a time stamp that changed at 21 of 22 visits"
    pub fn sentence(&self) -> String {
        let (n_changes, n_visits) = (self.n_changes, self.n_visits);
        match (self.kind, n_changes) {
            (NoiseKind::Returning, 0) => format!("{}, seen before", self.kind.name()),
            (_, 0) if n_visits == 0 => format!("{}, by its form", self.kind.name()),
            (_, 0) => format!("{} that did not change at {n_visits} visits before", self.kind.name()),
            _ => format!("{} that changed at {n_changes} of {n_visits} visits", self.kind.name()),
        }
    }

    /// Whether the page's own history shows it, not only the form of the text.
    pub fn is_earned(&self) -> bool {
        self.n_changes > 0
    }
}

impl Noise {
    pub const NONE: Noise = Noise { share: 0.0, reason: None };

    fn new(share: f64, kind: NoiseKind, n_changes: u16, n_visits: u32) -> Noise {
        let reason = Some(NoiseReason { kind, n_changes, n_visits }).filter(|_| share > 0.0);
        Noise { share, reason }
    }

    pub fn is_mostly_noise(self) -> bool {
        self.share >= MOSTLY_NOISE
    }
}

impl Judgement {
    pub fn noise(self) -> Noise {
        Noise { share: self.noise, reason: self.reason }
    }

    /// Whether a reader learns nothing from the operation.
    pub fn is_noise(self) -> bool {
        self.is_advertisement || self.noise >= MOSTLY_NOISE
    }

    /// Whether it is noise and the page's history shows it. A change of such operations only is not reported.
    pub fn is_earned_noise(self) -> bool {
        self.is_advertisement || self.is_noise() && self.reason.is_none_or(|reason| reason.is_earned())
    }

    /// Whether an operation with this share of the change's importance should be reported.
    pub fn is_worth_reporting(self, share: f64) -> bool {
        !self.is_noise() && share > 0.0
    }
}

impl NoiseHistory {
    /// How much of an operation is noise, judged by earlier visits.
    pub fn noise(&self, operation: &Operation) -> Noise {
        if is_replaced_news(operation) {
            return Noise::NONE;
        }
        match (operation.kind, operation.subject) {
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
            _ => Noise::NONE,
        }
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
        let n_visits = self.n_visits;
        let n_before = self.take_changes(WHOLE);
        self.n_visits = self.n_visits.saturating_add(1);
        self.remember_changing(WHOLE, n_before.saturating_add(u16::from(is_soon)));
        let share =
            if n_before >= MIN_CHANGES_IN_A_ROW - 1 { 1.0 } else { 1.0 - 1.0 / f64::from(1 + n_before) };
        Noise::new(share, NoiseKind::Unreadable, n_before, n_visits)
    }

    /// Records a visit and its changes.
    pub fn record(&mut self, delta: &Delta) {
        self.record_unchanged();
        let mut passed = [false; 3];
        let mut see = |before: Option<&Element>, after: Option<&Element>| {
            if let Some(kind) = passing_change(before, after) {
                passed[kind as usize] = true;
            }
        };
        for operation in delta.operations() {
            match (operation.kind, operation.subject) {
                (OperationKind::Update, Subject::Element { before: Some(before), after: Some(after) }) => {
                    see(Some(before), Some(after));
                    self.record_update(before, after);
                }
                (OperationKind::Insert, Subject::Element { after: Some(element), .. }) => {
                    see(None, Some(element));
                    self.record_insert(element);
                }
                (OperationKind::Delete, Subject::Element { before: Some(element), .. }) => {
                    see(Some(element), None);
                    self.record_delete(element);
                }
                (OperationKind::Insert, Subject::Block(Some(block))) => {
                    for element in elements(block) {
                        see(None, Some(&element));
                        self.record_insert(&element);
                    }
                }
                (OperationKind::Delete, Subject::Block(Some(block))) => {
                    for element in elements(block) {
                        see(Some(&element), None);
                        self.record_delete(&element);
                    }
                }
                _ => {}
            }
        }
        for kind in [PassingKind::Clock, PassingKind::Stamp, PassingKind::Counter] {
            if passed[kind as usize] {
                let n_before = self.take_changes(id_of(kind));
                self.remember_changing(id_of(kind), n_before.saturating_add(1));
            }
        }
    }

    fn insert_noise(&self, element: &Element) -> Noise {
        match passing(element.text()) {
            Some(kind) => self.passing_noise(kind, None),
            None if self.vanished.contains(&short_id(element)) => self.returning(element),
            None => Noise::NONE,
        }
    }

    /// An element that vanished and returned before will probably do so again.
    fn delete_noise(&self, element: &Element) -> Noise {
        match passing(element.text()) {
            Some(kind) => self.passing_noise(kind, None),
            None if self.n_changes(element.id().0) > 0 => self.returning(element),
            None => Noise::NONE,
        }
    }

    /// Something that often comes and goes rotates. Something that returns once in a while, such as "sold out", is news.
    fn returning(&self, element: &Element) -> Noise {
        let n_changes = self.n_changes(element.id().0);
        let is_often = MAX_VISITS_PER_RETURN * (u32::from(n_changes) + 1) >= self.n_visits;
        Noise::new(if is_often { RETURNING } else { 0.0 }, NoiseKind::Returning, n_changes, self.n_visits)
    }

    fn n_changes(&self, id: u64) -> u16 {
        self.changing.iter().find(|(other, _)| *other == id).map_or(0, |(_, n)| *n)
    }

    fn take_changes(&mut self, id: u64) -> u16 {
        let place = self.changing.iter().position(|(other, _)| *other == id);
        place.map_or(0, |place| self.changing.remove(place).1)
    }

    /// Whether a change occurred at nearly every visit.
    fn is_restless(&self, n_changes: u16, (min_visits, share): (f64, f64)) -> bool {
        let n_visits = f64::from(self.n_visits);
        n_visits >= min_visits && f64::from(n_changes) >= share * n_visits
    }

    fn update_noise(&self, before: &Element, after: &Element) -> Noise {
        let n_changes = self.n_changes(before.id().0);
        let n_new = self.new_words(before, after);
        let estimate = |kind, prior: Prior| {
            let share = (prior.changes + f64::from(n_changes)) / (prior.visits + f64::from(self.n_visits));
            Noise::new(share.min(1.0), kind, n_changes, self.n_visits)
        };
        let is_another_target = before.text() != after.text() && before.url() != after.url();
        match classify(before.text(), after.text()) {
            NumberChange::Passing(kind) => self.passing_noise(kind, Some(n_changes)),
            NumberChange::News if self.is_restless(n_changes, RESTLESS_NUMBER) => {
                estimate(NoiseKind::Number, Prior::NONE)
            }
            NumberChange::News => Noise::NONE,
            // A new number with a new target is probably the next of a series, such as a release.
            NumberChange::Unclear if is_another_target && !self.is_restless(n_changes, RESTLESS) => {
                Noise::NONE
            }
            NumberChange::Unclear => estimate(NoiseKind::Number, Prior::EVEN),
            NumberChange::Words if before.text() == after.text() && n_new == 0 => {
                estimate(NoiseKind::Wording, Prior::EVEN)
            }
            NumberChange::Words if n_new == 0 => estimate(NoiseKind::Wording, Prior::NONE),
            NumberChange::Words if n_new <= FEW_WORDS && self.is_restless(n_changes, RESTLESS) => {
                estimate(NoiseKind::Wording, Prior::NONE)
            }
            NumberChange::Words => Noise::NONE,
        }
    }

    /// Noise of a stamp or counter with this number of earlier changes, if they are counted. Clocks and counters are so
    /// by their form. For a date the history decides: the date of a document that was always the same is news.
    fn passing_noise(&self, kind: PassingKind, n_changes: Option<u16>) -> Noise {
        let n_visits = f64::from(self.n_visits);
        let prior = if kind == PassingKind::Stamp { Prior::STAMP } else { Prior::PASSING };
        // One clock that ticks shows what the others are. A date is judged alone, unless it came with other content.
        let of_page = self.n_changes(id_of(kind));
        let n_changes = match n_changes {
            Some(own) if kind == PassingKind::Stamp || 2.0 * f64::from(of_page) < n_visits => own,
            Some(own) => own.max(of_page),
            None => of_page,
        };
        let share = (prior.changes + f64::from(n_changes)) / (prior.visits + n_visits);
        let is_renewed = f64::from(n_changes) >= RENEWALS.0 && RENEWALS.1 * f64::from(n_changes) >= n_visits;
        let share = if is_renewed { share.max(RENEWED) } else { share };
        Noise::new(share.min(1.0), NoiseKind::from_passing(kind), n_changes, self.n_visits)
    }

    /// Number of new words in `after`: not in `before`, not numbers, and not among the vanished words.
    fn new_words(&self, before: &Element, after: &Element) -> usize {
        let known: HashSet<&str> = words(before).collect();
        words(after)
            .filter(|word| {
                !known.contains(word) && !is_sign_or_number(word) && !self.words.contains(&hash(word))
            })
            .count()
    }

    fn record_update(&mut self, before: &Element, after: &Element) {
        let is_small =
            passing_change(Some(before), Some(after)).is_some() || self.new_words(before, after) <= FEW_WORDS;
        let n_changes = self.take_changes(before.id().0);
        if is_small {
            self.remember_changing(after.id().0, n_changes.saturating_add(1));
        }
        let kept: HashSet<&str> = words(after).collect();
        for word in words(before).filter(|word| !kept.contains(word) && !is_sign_or_number(word)) {
            remember(&mut self.words, hash(word));
        }
    }

    fn record_insert(&mut self, element: &Element) {
        let id = short_id(element);
        if let Some(place) = self.vanished.iter().position(|other| *other == id) {
            self.vanished.remove(place);
            let n_changes = self.take_changes(element.id().0);
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

/// The visits and changes that are assumed before the first one.
struct Prior {
    changes: f64,
    visits: f64,
}

impl Prior {
    /// Only repetition counts.
    const NONE: Prior = Prior { changes: 0.0, visits: 1.0 };
    /// One change in two visits.
    const EVEN: Prior = Prior { changes: 1.0, visits: 2.0 };
    /// A date weighs little at first sight, and fully if it never changed before.
    const STAMP: Prior = Prior { changes: 1.9, visits: 2.0 };
    /// Clocks and counters.
    const PASSING: Prior = Prior { changes: 39.0, visits: 40.0 };
}

fn id_of(kind: PassingKind) -> u64 {
    match kind {
        PassingKind::Clock => CLOCKS,
        PassingKind::Stamp => STAMPS,
        PassingKind::Counter => COUNTERS,
    }
}

/// The kind of a stamp or counter that changed, came or went.
fn passing_change(before: Option<&Element>, after: Option<&Element>) -> Option<PassingKind> {
    match (before, after) {
        (Some(before), Some(after)) => match classify(before.text(), after.text()) {
            NumberChange::Passing(kind) => Some(kind),
            _ => None,
        },
        (one, other) => passing(one.or(other)?.text()),
    }
}

/// Whether a text was replaced with one that differs in a number that is news: a date that became earlier.
fn is_replaced_news(operation: &Operation) -> bool {
    let texts = operation.element().zip(operation.counterpart()).map(|(own, other)| match operation.kind {
        OperationKind::Insert => (other.text(), own.text()),
        _ => (own.text(), other.text()),
    });
    texts.is_some_and(|(before, after)| classify(before, after) == NumberChange::News)
}

/// The words of the text and the parts of the URL. Splitting the URL makes a nonce in a query one part of several.
fn words(element: &Element) -> impl Iterator<Item = &str> {
    let text = element.text().split_whitespace();
    text.chain(element.url().split(['/', '?', '&', '=', ';', '#']).filter(|part| !part.is_empty()))
}

/// Whether a word is a number, a token with digits, which programs generate without news, or a sign.
fn is_sign_or_number(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit()) || !word.contains(char::is_alphanumeric)
}

fn elements(block: &Block) -> impl Iterator<Item = Element> {
    block.walk().flat_map(Element::in_block)
}

/// The mean noise of a block's elements, with the reason of the noisiest one.
fn mean_noise(block: &Block, noise: impl Fn(&Element) -> Noise) -> Noise {
    let (mut n, mut sum, mut most) = (0.0, 0.0, Noise::NONE);
    for noise in elements(block).map(|element| noise(&element)) {
        (n, sum) = (n + 1.0, sum + noise.share);
        most = if noise.share > most.share { noise } else { most };
    }
    Noise { share: if n == 0.0 { 0.0 } else { sum / n }, reason: most.reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    #[test]
    fn unreadable_documents_that_always_change_become_noise() {
        let mut history = NoiseHistory::default();
        let first: Vec<f64> = (0..9).map(|_| history.record_unreadable(true).share).collect();
        assert!(first[0] == 0.0 && first.is_sorted() && first[3] < 1.0, "{first:?}");
        assert_eq!(first[4..], [1.0; 5]);
        let mut stored = NoiseHistory::from_bytes(&history.to_bytes()).unwrap();
        assert_eq!(stored.record_unreadable(true).share, 1.0, "a restart forgets nothing");
        history.record_unchanged();
        assert_eq!(
            history.record_unreadable(true).share,
            0.0,
            "an observation that finds it the same begins anew"
        );
    }

    #[test]
    fn daily_publications_are_not_noise() {
        let mut history = NoiseHistory::default();
        assert!((0..100).all(|_| history.record_unreadable(false).share == 0.0));
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
                all.push(delta.operations().map(|operation| history.noise(&operation).share).collect());
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
        assert!(seen[10][0] >= MOSTLY_NOISE);
    }

    /// The status of a change and the report of its operations use the same threshold.
    #[test]
    fn operations_are_reported_unless_they_are_noise() {
        for noise in [0.0, 0.3, 0.49, 0.5, 0.55, MOSTLY_NOISE, 1.0] {
            let judgement = Judgement { noise, ..Judgement::default() };
            assert_eq!(judgement.is_worth_reporting(0.1), noise < MOSTLY_NOISE, "{noise}");
            assert_eq!(judgement.is_noise(), !judgement.is_worth_reporting(0.1), "{noise}");
            assert!(!judgement.is_worth_reporting(0.0), "{noise}");
        }
        let advertisement = Judgement { is_advertisement: true, ..Judgement::default() };
        assert!(advertisement.is_noise() && !advertisement.is_worth_reporting(1.0));
    }

    /// The noise of the last operation, after visits with these texts.
    fn last_noise(texts: impl IntoIterator<Item = &'static str>) -> Noise {
        let (mut history, mut last, mut noise) = (NoiseHistory::default(), None::<BlockTree>, Noise::NONE);
        for text in texts {
            let tree = page(&[text.to_string()], "/n");
            if let Some(before) = last.replace(tree.clone()) {
                let delta = diff(&before, &tree);
                noise = delta.operations().next().map_or(Noise::NONE, |operation| history.noise(&operation));
                history.record(&delta);
            }
        }
        noise
    }

    fn is_folded_for_good(noise: Noise) -> bool {
        noise.is_mostly_noise() && noise.reason.is_some_and(|reason| reason.is_earned())
    }

    #[test]
    fn a_counter_weighs_little_at_first_and_is_noise_once_it_repeats() {
        let texts =
            ["you are visitor number 1000", "you are visitor number 1037", "you are visitor number 1074"];
        let first = last_noise(texts[..2].iter().copied());
        assert!(first.share > 0.9 && !is_folded_for_good(first), "{first:?}");
        let second = last_noise(texts);
        assert!(is_folded_for_good(second), "{second:?}");
        assert_eq!(second.reason.unwrap().sentence(), "a counter that changed at 1 of 1 visits");
    }

    #[test]
    fn the_history_decides_about_the_date_of_a_document() {
        let dates =
            ["as of 19 February 2024", "as of 13 March 2024", "as of 2 April 2024", "as of 1 May 2024"];
        assert!(is_folded_for_good(last_noise(dates)), "it changes at every visit");
        let quiet = std::iter::repeat_n(dates[0], 20).chain([dates[1]]);
        let noise = last_noise(quiet);
        assert!(noise.share < 0.1, "{noise:?}");
    }

    #[test]
    fn a_date_that_is_renewed_every_day_is_noise_on_a_page_visited_every_hour() {
        let days = [
            "18 November 2026",
            "19 November 2026",
            "20 November 2026",
            "21 November 2026",
            "22 November 2026",
            "23 November 2026",
            "24 November 2026",
        ];
        let visits = days.iter().flat_map(|day| std::iter::repeat_n(*day, 24)).chain(["25 November 2026"]);
        assert!(is_folded_for_good(last_noise(visits)));
    }

    #[test]
    fn what_returns_once_in_a_while_is_news() {
        let flips = |n_visits: usize| {
            let text =
                |visit: usize| if (visit / n_visits).is_multiple_of(2) { "sold out" } else { "in stock" };
            let noise = last_noise((0..=n_visits * 6).map(text));
            is_folded_for_good(noise)
        };
        assert!(flips(1) && !flips(40));
        assert!(!is_folded_for_good(last_noise(["sold out", "in stock", "sold out"])), "the first return");
    }

    #[test]
    fn words_that_go_are_news() {
        let noise = last_noise(["you may not smoke in the boat", "you may smoke in the boat"]);
        assert_eq!(noise, Noise::NONE);
    }

    #[test]
    fn a_death_toll_that_rises_hour_by_hour_is_news() {
        let texts = (0..10).map(|n| page(&[format!("at least {} people died in the storm", 12 + n)], "/n"));
        assert!(watch(texts).iter().flatten().all(|noise| *noise == 0.0));
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
        assert!(seen[10][0] >= MOSTLY_NOISE, "{seen:?}");
    }

    #[test]
    fn teasers_that_come_back_are_noise_and_new_ones_are_not() {
        let teasers = ["buy green shoes", "visit sunny islands", "learn to dance"];
        let seen = watch((0..9).map(|n| page(&[teasers[n % 3].to_string()], "/n")));
        assert_eq!(seen[0], [0.0, 0.0]);
        assert!(seen[6].iter().all(|noise| *noise >= MOSTLY_NOISE), "{seen:?}");
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
