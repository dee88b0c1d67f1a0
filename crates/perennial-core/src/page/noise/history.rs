//! Evidence of a page's noise from earlier visits: the number of changes of each element without new words, and vanished
//! elements and words, which may come back.

use std::collections::{HashSet, VecDeque};

use super::reason::{Noise, NoiseKind};
use super::whole::WholeChange;
use crate::page::diff::{Delta, Element, OperationKind, Subject};
use crate::page::segment::Block;
use crate::text::numbers::{NumberChange, classify};
use crate::text::stamps::{PassingKind, passing};

/// Maximum number of elements whose changes are counted. Those with the fewest changes are dropped first.
const MAX_CHANGING: usize = 128;
/// Maximum number of stored vanished elements, and of vanished words.
const MAX_VANISHED: usize = 512;
/// Maximum number of new words of a change that may be a nonce.
pub(super) const FEW_WORDS: usize = 2;
/// Number of observations in a row with a changed unreadable document after which its changes are noise only.
const MIN_CHANGES_IN_A_ROW: u16 = 5;
/// The IDs under which changes of the page as a whole are counted: of an unreadable document, and visits at which a
/// stamp of this kind changed, came or went.
const WHOLE: u64 = 0;
const CLOCKS: u64 = 1;
const STAMPS: u64 = 2;
const COUNTERS: u64 = 3;
/// The same for visits at which the stories of a box were replaced.
pub(super) const BOXES: u64 = 4;

/// Evidence from earlier visits of a page about its noise.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NoiseHistory {
    /// Observations of the page after the first one.
    pub(super) n_visits: u32,
    /// Number of changes with few or no new words, by the element's current ID, most recent last.
    pub(super) changing: Vec<(u64, u16)>,
    /// Vanished elements, most recent last.
    pub(super) vanished: VecDeque<u32>,
    /// Vanished words, most recent last.
    pub(super) words: VecDeque<u32>,
}

impl NoiseHistory {
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
        let passing = [PassingKind::Clock, PassingKind::Stamp, PassingKind::Counter];
        let passed = passing.into_iter().filter(|kind| passed[*kind as usize]).map(passing_id);
        let boxes = WholeChange::new(delta).has_rotated_box().then_some(BOXES);
        for id in passed.chain(boxes) {
            let n_before = self.take_changes(id);
            self.remember_changing(id, n_before.saturating_add(1));
        }
    }

    pub(super) fn n_changes(&self, id: u64) -> u16 {
        self.changing.iter().find(|(other, _)| *other == id).map_or(0, |(_, n)| *n)
    }

    fn take_changes(&mut self, id: u64) -> u16 {
        let place = self.changing.iter().position(|(other, _)| *other == id);
        place.map_or(0, |place| self.changing.remove(place).1)
    }

    /// Number of new words in `after`: not in `before`, not numbers, and not among the vanished words.
    pub(super) fn new_words(&self, before: &Element, after: &Element) -> usize {
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

pub(super) fn short_id(element: &Element) -> u32 {
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

pub(super) fn passing_id(kind: PassingKind) -> u64 {
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

/// The words of the text and the parts of the URL. Splitting the URL makes a nonce in a query one part of several.
fn words(element: &Element) -> impl Iterator<Item = &str> {
    let text = element.text().split_whitespace();
    text.chain(element.url().split(['/', '?', '&', '=', ';', '#']).filter(|part| !part.is_empty()))
}

/// Whether a word is a number, a token with digits, which programs generate without news, or a sign.
fn is_sign_or_number(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit()) || !word.contains(char::is_alphanumeric)
}

pub(super) fn elements(block: &Block) -> impl Iterator<Item = Element> {
    block.walk().flat_map(Element::in_block)
}
