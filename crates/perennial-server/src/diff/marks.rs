//! Changes and the positions of their parts -> marks in a page: words, frames around elements, numbered tags.

use std::collections::HashMap;
use std::ops::Range;

use perennial_core::page::diff::OperationKind;

use super::changes::{ShownChange, joined};
use super::elements::Side;
use super::position::{Page, Places};
use super::words::WordRun;

/// Maximum number of marked words of a move without a frame.
const MAX_MOVED_WORDS: usize = 40;

/// The marks of one page.
pub(super) struct Marks {
    /// For each word of the page the change that marks it.
    pub(super) words: Vec<Option<usize>>,
    /// The change that frames an element.
    pub(super) frames: HashMap<u32, usize>,
    /// Changes with a tag before a word.
    pub(super) tags: HashMap<usize, Vec<usize>>,
    /// Changes with a tag before an element.
    pub(super) image_tags: HashMap<u32, Vec<usize>>,
    /// Changes that only the other page shows, by the word before which they belong.
    pub(super) absent: HashMap<usize, Vec<usize>>,
    /// Removed words, by the word of the version after before which they were.
    pub(super) gone_before: HashMap<usize, Vec<Gone>>,
    /// Removed words after the last word.
    pub(super) gone_behind: HashMap<usize, Vec<Gone>>,
    /// Whether the page shows each change.
    pub(super) is_shown: Vec<bool>,
}

/// Words of the version before only, at their position in the version after.
pub(super) struct Gone {
    pub(super) number: usize,
    pub(super) text: String,
    /// Whether the whole text was removed, not only some of its words.
    pub(super) is_whole: bool,
}

impl Marks {
    /// `is_before`: the page is the version before. If two changes concern the same word, the more important one marks it.
    pub(super) fn of(changes: &[ShownChange], is_before: bool, page: &Page, places: &Places) -> Marks {
        let mut marks = Marks {
            words: vec![None; page.words.len()],
            frames: HashMap::new(),
            tags: HashMap::new(),
            image_tags: HashMap::new(),
            absent: HashMap::new(),
            gone_before: HashMap::new(),
            gone_behind: HashMap::new(),
            is_shown: vec![false; changes.len()],
        };
        for (number, change) in changes.iter().enumerate() {
            marks.add(number, change, is_before, page, places);
        }
        marks
    }

    /// Adds the positions of changes that only the other version shows, so both can be compared side by side.
    pub(super) fn add_absent(
        &mut self,
        changes: &[ShownChange],
        is_before: bool,
        own: &Side<'_>,
        other: &Side<'_>,
        places: &Places,
    ) {
        for (number, change) in changes.iter().enumerate().filter(|(number, _)| !self.is_shown[*number]) {
            let there = if is_before { &change.after } else { &change.before };
            let beside = there.first().and_then(|&place| other.neighbour(place, own));
            let word = beside.and_then(|piece| places.piece_words(&[piece]).into_iter().flatten().next());
            if let Some(word) = word {
                self.absent.entry(word).or_default().push(number);
            }
        }
    }

    /// Adds removed words to the version after, so one page shows both versions.
    pub(super) fn add_gone(
        &mut self,
        changes: &[ShownChange],
        before: &Side<'_>,
        after: &Side<'_>,
        places: &Places,
    ) {
        for (number, change) in changes.iter().enumerate() {
            let text = joined(before, &change.before);
            let own = places.piece_words(&change.after);
            match (&change.difference, change.op) {
                (Some(difference), _) if !difference.is_rewritten => {
                    let mut at = 0;
                    for run in &difference.runs {
                        let (WordRun::Same(gone, come) | WordRun::Other(gone, come)) = run;
                        at = at.max(come.start);
                        if let (WordRun::Other(..), Some((first, last))) =
                            (run, difference.before.get(gone.start).zip(difference.before[..gone.end].last()))
                            && !gone.is_empty()
                        {
                            let text = text[first.range.start..last.range.end].to_string();
                            self.put_gone(&own, at, Gone { number, text, is_whole: false });
                        }
                        at = at.max(come.end);
                    }
                }
                (Some(_), _) => self.put_gone(&own, 0, Gone { number, text, is_whole: true }),
                (None, OperationKind::Delete) => {
                    let beside = change.before.first().and_then(|&place| before.neighbour(place, after));
                    let words = beside.map(|piece| places.piece_words(&[piece])).unwrap_or_default();
                    self.put_gone(&words, words.len(), Gone { number, text, is_whole: true });
                }
                (None, _) => {}
            }
        }
    }

    /// Puts removed text before the word at an index of its text, or after the last word that is on the page.
    fn put_gone(&mut self, own: &[Option<usize>], at: usize, gone: Gone) {
        let (before, from) = own.split_at(at.min(own.len()));
        if gone.text.is_empty() {
            return;
        }
        if let Some(word) = from.iter().flatten().next() {
            self.gone_before.entry(*word).or_default().push(gone);
        } else if let Some(word) = before.iter().flatten().next_back() {
            self.gone_behind.entry(*word).or_default().push(gone);
        }
    }

    fn add(&mut self, number: usize, change: &ShownChange, is_before: bool, page: &Page, places: &Places) {
        let pieces = if is_before { &change.before } else { &change.after };
        let own = places.piece_words(pieces);
        let found: Vec<usize> = own.iter().flatten().copied().collect();
        for image in pieces.iter().filter_map(|&piece| places.piece_node(piece)) {
            self.frames.entry(image).or_insert(number);
            if !std::mem::replace(&mut self.is_shown[number], true) {
                self.image_tags.entry(image).or_default().push(number);
            }
        }
        let (Some(&first), Some(&last)) = (found.iter().min(), found.iter().max()) else { return };
        let frame = frame_around(page, first, last, found.len(), change.op == OperationKind::Update);
        if let Some(frame) = frame {
            self.frames.entry(frame).or_insert(number);
        }
        self.mark_words(number, change, is_before, &own, frame.is_some());
        if !std::mem::replace(&mut self.is_shown[number], true) {
            self.tags.entry(first).or_default().push(number);
        }
    }

    /// Marks the differing words of an update, and all words of other changes that have no frame.
    fn mark_words(
        &mut self,
        number: usize,
        change: &ShownChange,
        is_before: bool,
        own: &[Option<usize>],
        is_framed: bool,
    ) {
        let ranges = match &change.difference {
            Some(difference) if difference.is_rewritten && is_framed => return,
            Some(difference) => {
                let (before, after) = difference.changed();
                if is_before { before } else { after }
            }
            None if is_framed => return,
            // A move adds no words, and a large one would hide the marks of added words.
            None if change.op == OperationKind::Move && own.len() > MAX_MOVED_WORDS => return,
            None => std::iter::once(0..own.len()).collect(),
        };
        for range in ranges {
            for word in filled(own, range) {
                if let Some(free @ None) = self.words.get_mut(word) {
                    *free = Some(number);
                }
            }
        }
    }
}

/// The words of the page for a range of a text's words. Words not found are assumed between found ones, because a page may
/// split a word over several nodes.
fn filled(own: &[Option<usize>], range: Range<usize>) -> Range<usize> {
    let before = own[..range.start.min(own.len())].last().copied().flatten();
    let after = own.get(range.end).copied().flatten();
    let within = || own[range.start.min(own.len())..range.end.min(own.len())].iter().flatten().copied();
    let start = match own.get(range.start).copied().flatten() {
        Some(word) => Some(word),
        None => before.map(|word| word + 1).or(within().min()),
    };
    let end = match own.get(range.end.wrapping_sub(1)).copied().flatten() {
        Some(word) => Some(word + 1),
        None => after.or(within().max().map(|word| word + 1)),
    };
    match start.zip(end) {
        // A range with far more words contains words of other texts.
        Some((start, end)) if start < end && end - start <= 2 * range.len() + 4 => start..end,
        _ => within().min().map_or(0..0, |word| word..word + 1),
    }
}

/// The largest element with these words and hardly any others; `None` if only the whole page contains them.
fn frame_around(page: &Page, first: usize, last: usize, n_own: usize, is_update: bool) -> Option<u32> {
    let most = if is_update { 2 * n_own + 8 } else { n_own + n_own / 4 + 1 };
    let mut frame = None;
    let mut next = page.common(page.words[first].node, page.words[last].node);
    while let Some(node) = next {
        let here = &page.dom.nodes[node as usize];
        let n_words = page.words_in(node).len();
        let is_larger = frame.is_some_and(|frame| page.words_in(frame).len() < n_words);
        if n_words > most || is_larger || matches!(here.tag(), "body" | "html" | "main") || !here.is_html() {
            break;
        }
        if !is_around_blocks(page, node) {
            frame = Some(node);
        }
        next = here.parent;
    }
    frame
}

/// Whether an inline element contains blocks. A browser draws no frame around such an element.
fn is_around_blocks(page: &Page, node: u32) -> bool {
    let tag = |node: u32| page.dom.nodes[node as usize].tag();
    INLINE.contains(&tag(node))
        && page.dom.children(node).any(|child| page.dom.is_element(child) && !INLINE.contains(&tag(child)))
}

const INLINE: [&str; 22] = [
    "a", "abbr", "b", "bdi", "br", "cite", "code", "del", "em", "font", "i", "img", "ins", "label", "mark",
    "q", "s", "small", "span", "strong", "sub", "sup",
];
