//! Changes and where their parts stand -> what is marked in a page: words, frames around elements, a numbered tag.

use std::collections::HashMap;
use std::ops::Range;

use perennial_core::page::diff::OperationKind;

use super::changes::{ShownChange, joined};
use super::elements::Side;
use super::position::{Page, Places};
use super::words::WordRun;

/// Words of a move that are marked where no frame is around them.
const MAX_MOVED_WORDS: usize = 40;

/// What is marked in one page.
pub(super) struct Marks {
    /// For each word of the page the change that marks it.
    pub(super) words: Vec<Option<usize>>,
    /// The change that frames an element.
    pub(super) frames: HashMap<u32, usize>,
    /// Changes whose tag stands before a word.
    pub(super) tags: HashMap<usize, Vec<usize>>,
    /// Changes whose tag stands before an element.
    pub(super) image_tags: HashMap<u32, Vec<usize>>,
    /// Changes that are in the other page alone, before the word where they were or would be.
    pub(super) absent: HashMap<usize, Vec<usize>>,
    /// What the version before said, by the word of the version after before which it stood.
    pub(super) gone_before: HashMap<usize, Vec<Gone>>,
    /// The same where no such word follows: behind the last one.
    pub(super) gone_behind: HashMap<usize, Vec<Gone>>,
    /// Whether a change is anywhere in the page.
    pub(super) is_shown: Vec<bool>,
}

/// Words that only the version before has, where the version after would have them.
pub(super) struct Gone {
    pub(super) number: usize,
    pub(super) text: String,
    /// Whether a text went as a whole, and not words of one that stayed.
    pub(super) is_whole: bool,
}

impl Marks {
    /// `is_before`: the page is the version before. Of two changes that want the same word the more important one gets it.
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

    /// Notes where changes that only the other version has were or would be, so that both can be looked at side by side.
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
            let word = beside.and_then(|piece| places.words_of(&[piece]).into_iter().flatten().next());
            if let Some(word) = word {
                self.absent.entry(word).or_default().push(number);
            }
        }
    }

    /// Notes in the version after what went, so that both can be read in one page.
    pub(super) fn add_gone(
        &mut self,
        changes: &[ShownChange],
        before: &Side<'_>,
        after: &Side<'_>,
        places: &Places,
    ) {
        for (number, change) in changes.iter().enumerate() {
            let text = joined(before, &change.before);
            let own = places.words_of(&change.after);
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
                    let words = beside.map(|piece| places.words_of(&[piece])).unwrap_or_default();
                    self.put_gone(&words, words.len(), Gone { number, text, is_whole: true });
                }
                (None, _) => {}
            }
        }
    }

    /// Before the word at this place of a text, or behind the last word before it.
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
        let own = places.words_of(pieces);
        let found: Vec<usize> = own.iter().flatten().copied().collect();
        for image in pieces.iter().filter_map(|&piece| places.node_of(piece)) {
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

    /// Of an update the words that differ; of others all words, unless a frame says it.
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
            // A move adds no words; a large one would cover those that others add.
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

/// The words of the page that a range of a text's words are. Words that were not found stand between those that were, because a
/// page may split a word over several nodes.
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
        // Far more words than the range has are somebody else's.
        Some((start, end)) if start < end && end - start <= 2 * range.len() + 4 => start..end,
        _ => within().min().map_or(0..0, |word| word..word + 1),
    }
}

/// The largest element that holds these words and hardly any others. `None` where there is none but the page itself.
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

/// Whether an inline element has blocks within, so that a browser draws no frame around it.
fn is_around_blocks(page: &Page, node: u32) -> bool {
    let tag = |node: u32| page.dom.nodes[node as usize].tag();
    INLINE.contains(&tag(node))
        && page.dom.children(node).any(|child| page.dom.is_element(child) && !INLINE.contains(&tag(child)))
}

const INLINE: [&str; 22] = [
    "a", "abbr", "b", "bdi", "br", "cite", "code", "del", "em", "font", "i", "img", "ins", "label", "mark",
    "q", "s", "small", "span", "strong", "sub", "sup",
];
