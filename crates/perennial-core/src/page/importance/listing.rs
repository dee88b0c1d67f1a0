//! Importance of changes on listing pages, such as front pages (docs/decisions/0011-importance.md).

use crate::page::diff::{Delta, ElementKind, ItemDelta, Operation, Subject, n_words};
use crate::page::segment::Block;

/// A listing page. Of the changes around its items only prose counts.
pub(super) struct ListingPage<'a> {
    items: &'a ItemDelta,
    /// The words of all changed items, before and after.
    texts: String,
}

/// Minimum number of words of prose.
const MIN_PROSE_WORDS: usize = 15;
/// Bytes of a text that are searched among the words of the items.
const PROBE_BYTES: usize = 60;

impl<'a> ListingPage<'a> {
    pub(super) fn from_delta(delta: &'a Delta) -> Option<ListingPage<'a>> {
        let items = delta.items.as_ref().filter(|items| items.is_listing)?;
        let mut texts = String::new();
        for item in items.changes.iter().flat_map(|change| change.before.iter().chain(&change.after)) {
            texts.extend([item.title.as_str(), " ", item.teaser.as_str(), "\n"]);
        }
        Some(ListingPage { items, texts })
    }

    /// The importance of the whole page. Items have their own weights.
    pub(super) fn join(&self, within_prose: f64, items: f64) -> f64 {
        1.0 - (1.0 - items * self.items.importance()) * (1.0 - self.items.prose_share * within_prose)
    }

    /// The share of an operation's content that is prose outside the items.
    pub(super) fn share_of_prose(&self, operation: &Operation) -> f64 {
        match operation.subject {
            Subject::Element { before, after } => {
                let is_prose = before
                    .into_iter()
                    .chain(after)
                    .any(|element| self.is_prose(element.text(), element.kind()));
                f64::from(u8::from(is_prose))
            }
            Subject::Block(Some(block)) => self.prose_of_block(block),
            Subject::Block(None) => 0.0,
        }
    }

    fn is_prose(&self, text: &str, kind: ElementKind) -> bool {
        kind == ElementKind::Text && n_words(text) >= MIN_PROSE_WORDS && !self.is_part_of_item(text)
    }

    /// The words of an item are one text, or several. Its headline may be in the middle.
    fn is_part_of_item(&self, text: &str) -> bool {
        let first = &text[..text.floor_char_boundary(PROBE_BYTES)];
        let last = &text[text.ceil_char_boundary(text.len().saturating_sub(PROBE_BYTES))..];
        self.texts.contains(first) || self.texts.contains(last)
    }

    fn prose_of_block(&self, block: &Block) -> f64 {
        let (mut n_prose, mut n_all) = (0, 0);
        for leaf in block.walk().filter(|block| block.is_leaf()) {
            n_all += leaf.links_outside_texts().map(|link| n_words(&link.name)).sum::<usize>();
            for text in &leaf.texts {
                let n = n_words(&text.text);
                n_all += n;
                n_prose += if self.is_prose(&text.text, ElementKind::Text) { n } else { 0 };
            }
        }
        n_prose as f64 / n_all.max(1) as f64
    }
}
