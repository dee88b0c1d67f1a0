//! Units in reading order -> leaf blocks with their importance.

use crate::page::diff::n_words;
use crate::page::segment::{Block, BlockRole, BlockTree, Image, Link, Text};

use super::Document;

/// Maximum stored links, images and texts of a document.
pub(super) const MAX_ELEMENTS: usize = 50_000;
/// Maximum stored bytes of text.
const MAX_BYTES: usize = 8 << 20;
/// Maximum length of one text. A longer one is split.
const MAX_TEXT_BYTES: usize = 4096;
/// Maximum blocks of a document. The last one contains all the rest.
const MAX_BLOCKS: usize = 4000;
/// Maximum elements of a block.
const MAX_BLOCK_ELEMENTS: usize = 64;
/// On average one in so many keys ends a block.
const MEAN_BLOCK_UNITS: u32 = 8;
/// Weight of a word in a heading, compared with other words.
const HEADING_WEIGHT: f32 = 3.0;
/// The first words count twice as much as the last ones of a long document. Half of the difference is gone after this
/// many words.
const HALF_WORDS: f32 = 500.0;

/// Minimum share of the first and of the last block. Long tables, logs and lists grow at one of their ends, and a new
/// row there is news, however many rows there are.
const OF_ENDS: f32 = 0.05;

/// The smallest unit of a document: a paragraph, a row, a record, a feed item.
#[derive(Default)]
pub(super) struct DocumentUnit {
    pub(super) texts: Vec<String>,
    /// Its links: name and URL.
    pub(super) links: Vec<(String, String)>,
    /// Its images: name and identifier.
    pub(super) images: Vec<(String, String)>,
    /// Identifies the unit while its content changes, such as the first cell of a row. It decides where blocks end.
    pub(super) key: String,
    pub(super) place: UnitPlacement,
}

/// The position of a unit among the blocks.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum UnitPlacement {
    /// In a block with its neighbours.
    #[default]
    Among,
    /// At the start of a block.
    Heading,
    /// In a separate block.
    Apart,
}

impl DocumentUnit {
    pub(super) fn from_text(text: &str, place: UnitPlacement) -> DocumentUnit {
        let key: Vec<&str> = text.split_whitespace().take(2).collect();
        DocumentUnit { texts: vec![text.to_owned()], key: key.join(" "), place, ..DocumentUnit::default() }
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.links.is_empty() && self.images.is_empty()
    }

    fn n_elements(&self) -> usize {
        self.texts.len() + self.links.len() + self.images.len()
    }
}

/// A document during reading.
#[derive(Default)]
pub(super) struct DocumentDraft {
    pub(super) title: String,
    blocks: Vec<Block>,
    /// Number of words so far.
    n_words: f32,
    n_elements: usize,
    n_bytes: usize,
    /// Whether something was left out. The checksum of the whole document represents it.
    pub(super) is_cut: bool,
    /// Whether the next unit begins a block.
    is_closed: bool,
}

impl DocumentDraft {
    /// Whether the limits are reached.
    pub(super) fn is_full(&self) -> bool {
        self.n_elements >= MAX_ELEMENTS || self.n_bytes >= MAX_BYTES
    }

    /// Adds a unit. Empty units are ignored.
    pub(super) fn add(&mut self, mut unit: DocumentUnit) {
        unit.texts = unit.texts.iter().flat_map(|text| pieces(text)).collect();
        if unit.is_empty() {
            return;
        }
        if self.is_full() {
            self.is_cut = true;
            return;
        }
        let begins = self.is_closed || self.blocks.is_empty() || unit.place != UnitPlacement::Among;
        if begins && self.blocks.len() < MAX_BLOCKS {
            self.blocks.push(Block::leaf(Vec::new(), Vec::new(), Vec::new()));
        }
        self.n_elements += unit.n_elements();
        self.n_bytes += unit.texts.iter().map(String::len).sum::<usize>();
        let weight = self.weight(&unit);
        let Some(block) = self.blocks.last_mut() else { return };
        block.role = BlockRole::Main;
        block.importance += weight;
        block.links.extend(unit.links.into_iter().map(|(name, url)| Link::new(name, url)));
        block.images.extend(unit.images.into_iter().map(|(name, source)| Image::new(name, source)));
        block.texts.extend(unit.texts.into_iter().map(Text::new));
        let n_elements = block.texts.len() + block.links.len() + block.images.len();
        self.is_closed = unit.place == UnitPlacement::Apart
            || n_elements >= MAX_BLOCK_ELEMENTS
            || unit.place == UnitPlacement::Among && ends_block(&unit.key);
    }

    /// The weight of a unit. More people read the first words of a document than the last ones.
    fn weight(&mut self, unit: &DocumentUnit) -> f32 {
        let names = unit.links.iter().chain(&unit.images).map(|(name, _)| name);
        let n_words = unit.texts.iter().chain(names).map(|text| n_words(text)).sum::<usize>().max(1) as f32;
        let of_heading = if unit.place == UnitPlacement::Heading { HEADING_WEIGHT } else { 1.0 };
        let of_place = 1.0 + HALF_WORDS / (HALF_WORDS + self.n_words);
        self.n_words += n_words;
        n_words * of_heading * of_place
    }

    /// Raises the first and the last block to their minimum share, and returns the sum of all weights.
    fn weigh_ends(&mut self) -> f32 {
        let sum: f32 = self.blocks.iter().map(|block| block.importance).sum();
        for place in [0, self.blocks.len().saturating_sub(1)] {
            if let Some(block) = self.blocks.get_mut(place) {
                block.importance = block.importance.max(sum * OF_ENDS);
            }
        }
        self.blocks.iter().map(|block| block.importance).sum()
    }

    /// Finishes the document that was read from `bytes`. `None` if it has no words and links.
    pub(super) fn finish(mut self, engine: &str, bytes: &[u8]) -> Option<Document> {
        let has_words = |block: &Block| !block.texts.is_empty() || !block.links.is_empty();
        if !self.blocks.iter().any(has_words) {
            return None;
        }
        if self.is_cut
            && let Some(last) = self.blocks.last_mut()
        {
            let checksum = crc32fast::hash(bytes);
            last.texts.push(Text::new(format!("and more, {} bytes in all ({checksum:08x})", bytes.len())));
        }
        let sum = self.weigh_ends();
        self.blocks.iter_mut().for_each(|block| block.importance /= sum.max(f32::MIN_POSITIVE));
        let mut tree = BlockTree { engine: engine.to_owned(), blocks: self.blocks, ..BlockTree::default() };
        tree.seal();
        Some(Document { tree, title: folded(&self.title) })
    }
}

/// Whether a unit with this key is the last of its block.
fn ends_block(key: &str) -> bool {
    crc32fast::hash(key.as_bytes()).is_multiple_of(MEAN_BLOCK_UNITS)
}

/// Folds the white space of a text and splits it into pieces of bounded length.
fn pieces(text: &str) -> Vec<String> {
    let (folded, mut pieces) = (folded(text), Vec::new());
    let mut rest = folded.as_str();
    while !rest.is_empty() {
        let mut end = rest.floor_char_boundary(MAX_TEXT_BYTES);
        if end < rest.len() {
            end = rest[..end].rfind(' ').map_or(end, |space| space + 1);
        }
        pieces.push(rest[..end].trim_end().to_owned());
        rest = &rest[end..];
    }
    pieces
}

/// Folds the white space of a text and removes control characters.
pub(super) fn folded(text: &str) -> String {
    let is_shown = |c: char| !c.is_control() && !matches!(c, '\u{feff}' | '\u{ad}' | '\u{200b}');
    let mut folded = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace()).filter(|word| !word.is_empty()) {
        let start = folded.len();
        folded.push(' ');
        folded.extend(word.chars().filter(|&c| is_shown(c)));
        if folded.len() == start + 1 {
            folded.truncate(start);
        }
    }
    folded.strip_prefix(' ').map(str::to_owned).unwrap_or(folded)
}
