//! The tree of one version -> its links, images and texts in reading order, indexed by block and content.

use std::borrow::Cow;
use std::collections::HashMap;

use perennial_core::page::diff::{Element, ElementKind};
use perennial_core::page::segment::{Block, BlockTree, ListItem, NodeId, item_key};
use url::Url;

use super::words::words;

/// A link, an image or a text of a version.
pub(super) struct Piece<'t> {
    pub(super) kind: ElementKind,
    pub(super) text: &'t str,
    pub(super) url: &'t str,
    /// The names of the links within a text, and the byte offset of each in it.
    names: Vec<(usize, &'t str)>,
    pub(super) id: NodeId,
    /// Number of its leaf, in reading order.
    pub(super) leaf: usize,
    /// Its words.
    pub(super) keys: Vec<u32>,
}

impl Piece<'_> {
    /// Its words as a reader reads them: a text with the names of the links within.
    pub(super) fn read(&self) -> Cow<'_, str> {
        if self.names.is_empty() {
            return Cow::Borrowed(self.text);
        }
        let mut read = String::with_capacity(2 * self.text.len());
        let mut from = 0;
        for &(byte, name) in &self.names {
            push_spaced(&mut read, &self.text[from..byte]);
            push_spaced(&mut read, name);
            from = byte;
        }
        push_spaced(&mut read, &self.text[from..]);
        Cow::Owned(read)
    }
}

/// Appends words, with a space in front unless they begin with closing punctuation.
fn push_spaced(read: &mut String, words: &str) {
    let words = words.trim();
    let is_mark =
        words.starts_with(['.', ',', ';', ':', '!', '?', ')', ']', '\u{2019}', '\u{201d}', '\'', '"']);
    if !(read.is_empty() || words.is_empty() || is_mark || read.ends_with(['(', '['])) {
        read.push(' ');
    }
    read.push_str(words);
}

/// All pieces of a version in reading order. Within a leaf the order is texts, links, images.
pub(super) struct Side<'t> {
    pub(super) tree: &'t BlockTree,
    pub(super) pieces: Vec<Piece<'t>>,
    by_content: HashMap<(&'t [u16], ElementKind, NodeId), Vec<usize>>,
    by_block: HashMap<&'t [u16], std::ops::Range<usize>>,
    links_by_key: HashMap<String, Vec<usize>>,
    texts_by_word: HashMap<u32, Vec<usize>>,
    /// The index of each piece whose content is unique in the version.
    once: HashMap<(ElementKind, NodeId), Option<usize>>,
}

/// Words of a part of a headline or a teaser.
const MIN_WORDS: usize = 3;
/// Maximum number of texts with the same first word that are compared with one headline.
const MAX_ALIKE: usize = 50;

impl<'t> Side<'t> {
    pub(super) fn of(tree: &'t BlockTree) -> Side<'t> {
        let mut side = Side {
            tree,
            pieces: Vec::new(),
            by_content: HashMap::new(),
            by_block: HashMap::new(),
            links_by_key: HashMap::new(),
            texts_by_word: HashMap::new(),
            once: HashMap::new(),
        };
        let mut n_leaves = 0;
        tree.blocks.iter().for_each(|block| side.add_block(block, &mut n_leaves));
        for (place, piece) in side.pieces.iter().enumerate() {
            side.once.entry((piece.kind, piece.id)).and_modify(|place| *place = None).or_insert(Some(place));
            if let (ElementKind::Link, Ok(url)) = (piece.kind, Url::parse(piece.url)) {
                side.links_by_key.entry(item_key(&url)).or_default().push(place);
            }
            if let Some(word) = piece.keys.first().filter(|_| piece.kind == ElementKind::Text) {
                side.texts_by_word.entry(*word).or_default().push(place);
            }
        }
        side
    }

    /// The recursion ends because the tree reader bounds the depth.
    fn add_block(&mut self, block: &'t Block, n_leaves: &mut usize) {
        let start = self.pieces.len();
        if block.is_leaf() {
            self.add_leaf(block, *n_leaves);
            *n_leaves += 1;
        }
        for child in &block.children {
            self.add_block(child, n_leaves);
        }
        self.by_block.insert(&block.reference, start..self.pieces.len());
    }

    fn add_leaf(&mut self, leaf: &'t Block, number: usize) {
        let texts = leaf.texts.iter().map(|text| (ElementKind::Text, &*text.text, "", text.id));
        let links = leaf.links.iter().map(|link| (ElementKind::Link, &*link.name, &*link.url, link.id));
        let images =
            leaf.images.iter().map(|image| (ElementKind::Image, &*image.name, &*image.source, image.id));
        let mut names = names_within(leaf).into_iter().peekable();
        for (n, (kind, text, url, id)) in texts.chain(links).chain(images).enumerate() {
            let key = (leaf.reference.as_slice(), kind, id);
            self.by_content.entry(key).or_default().push(self.pieces.len());
            let own = std::iter::from_fn(|| names.next_if(|(text, ..)| *text == n));
            let names = own.map(|(_, byte, name)| (byte, name)).collect();
            self.pieces.push(Piece { kind, text, url, names, id, leaf: number, keys: keys(text) });
        }
    }

    /// The index of an element of a block. Of several equal ones each is returned once; `taken` marks those already
    /// returned.
    pub(super) fn find(&self, block: &[u16], element: &Element, taken: &[bool]) -> Option<usize> {
        let same = self.by_content.get(&(block, element.kind(), element.id()))?;
        same.iter().copied().find(|&place| !taken[place]).or(same.first().copied())
    }

    /// The piece of the other version next to which a piece of this one belongs: the nearest piece before it that is
    /// unique in both versions, of the same kind if possible.
    pub(super) fn neighbour(&self, place: usize, other: &Side<'_>) -> Option<usize> {
        let kind = self.pieces[place].kind;
        let there = |piece: &Piece<'_>| other.once.get(&(piece.kind, piece.id)).copied().flatten();
        let before = || self.pieces[..place].iter().rev();
        let alike = before().filter(|piece| piece.kind == kind && piece.kind != ElementKind::Image);
        alike.take(MAX_ALIKE).find_map(there).or_else(|| before().take(MAX_ALIKE).find_map(there))
    }

    /// Everything in a block.
    pub(super) fn all_in(&self, block: &[u16]) -> Vec<usize> {
        self.by_block.get(block).cloned().unwrap_or_default().collect()
    }

    /// Headline and teaser of an item at its first place, in reading order.
    pub(super) fn find_item(&self, item: &ListItem) -> Vec<usize> {
        let links = self.links_by_key.get(&item.key()).map_or(&[][..], Vec::as_slice);
        let title = keys(&item.title);
        let is_headline = |place: &&usize| {
            let name = &self.pieces[**place].keys;
            !name.is_empty() && (0..title.len()).any(|at| is_part(name, &title, at))
        };
        let link = links.iter().take(MAX_ALIKE).find(is_headline).or(links.first()).copied();
        let leaf = link.map(|place| self.pieces[place].leaf);
        let mut found: Vec<usize> = link.into_iter().collect();
        for text in [title, keys(&item.teaser)] {
            for at in 0..text.len() {
                found.extend(self.texts_at(&text, at, leaf));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The texts that are part of a headline, starting at one of its words. Labels that every item has are ignored: they
    /// do not identify the item.
    fn texts_at(&self, text: &[u32], at: usize, leaf: Option<usize>) -> Option<usize> {
        let alike = self.texts_by_word.get(&text[at])?.iter().copied();
        let alike = alike.filter(|&place| leaf.is_none_or(|leaf| leaf == self.pieces[place].leaf));
        let alike: Vec<usize> = alike.take(MAX_ALIKE).collect();
        let parts = alike.iter().filter(|&&place| is_part(&self.pieces[place].keys, text, at));
        let ids: Vec<NodeId> = parts.clone().map(|&place| self.pieces[place].id).collect();
        let once = |id: NodeId| ids.iter().filter(|other| **other == id).count() == 1;
        parts.copied().find(|&place| once(self.pieces[place].id))
    }
}

/// The links within the texts of a leaf, in order: number of the text, byte offset in it, name of the link. A link before
/// or after a text is a separate piece.
fn names_within(leaf: &Block) -> Vec<(usize, usize, &str)> {
    let mut names: Vec<(usize, usize, &str)> = Vec::new();
    for (spot, link) in leaf.places.links.iter().zip(&leaf.links) {
        let (number, byte) = (spot.text as usize, spot.byte as usize);
        let is_within = |text: &str| 0 < byte && byte < text.len() && text.is_char_boundary(byte);
        if leaf.texts.get(number).is_some_and(|text| is_within(&text.text)) {
            names.push((number, byte, &link.name));
        }
    }
    names.sort_by_key(|(number, byte, _)| (*number, *byte));
    names
}

fn keys(text: &str) -> Vec<u32> {
    words(text).into_iter().map(|word| word.key).collect()
}

/// Whether a text continues with these words: with all of them, or with enough. One or two words are in many texts.
fn is_part(part: &[u32], text: &[u32], at: usize) -> bool {
    (part.len() >= MIN_WORDS || part.len() == text.len()) && text[at..].starts_with(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perennial_core::page::segment::{Link, Text, TextPosition};

    fn tree() -> BlockTree {
        let links = vec![
            Link::new("A mayor resigns", "http://a.example/1-2-3"),
            Link::new("Home", "http://a.example/"),
        ];
        let texts =
            vec![Text::new("She leaves after nine years in office."), Text::new("twice"), Text::new("twice")];
        let leaf = Block::leaf(links, vec![], texts);
        let other = Block::leaf(vec![], vec![], vec![Text::new("She leaves after nine years in office.")]);
        let mut tree = BlockTree { blocks: vec![Block::inner(vec![leaf, other])], ..BlockTree::default() };
        tree.seal();
        tree
    }

    #[test]
    fn an_item_is_its_link_and_the_words_beside_it() {
        let tree = tree();
        let side = Side::of(&tree);
        let item = ListItem {
            url: "http://a.example/1-2-3?utm_source=x".into(),
            title: "A mayor resigns".into(),
            teaser: "She leaves after nine years in office. 3 comments".into(),
            ..ListItem::default()
        };
        let found: Vec<&str> =
            side.find_item(&item).into_iter().map(|place| side.pieces[place].text).collect();
        assert_eq!(found, ["She leaves after nine years in office.", "A mayor resigns"]);
    }

    #[test]
    fn a_text_is_read_with_the_links_within() {
        let text = "Read the if you plan to upgrade. Download .";
        let links = ["Release notes", "here", "Next page"].map(|name| Link::new(name, "http://a.example/"));
        let mut leaf = Block::leaf(links.to_vec(), vec![], vec![Text::new(text)]);
        let spots = [("Read the".len(), 0), (text.len() - 1, 0), (0, 1)];
        leaf.places.links = spots.map(|(byte, text)| TextPosition { text, byte: byte as u32 }).to_vec();
        let mut tree = BlockTree { blocks: vec![leaf], ..BlockTree::default() };
        tree.seal();
        let side = Side::of(&tree);
        let read: Vec<Cow<'_, str>> = side.pieces.iter().map(Piece::read).collect();
        let whole = "Read the Release notes if you plan to upgrade. Download here.";
        assert_eq!(read, [whole, "Release notes", "here", "Next page"]);
    }

    #[test]
    fn equal_elements_are_found_one_after_the_other() {
        let tree = tree();
        let side = Side::of(&tree);
        let element = Element::Text(Text::new("twice"));
        let mut taken = vec![false; side.pieces.len()];
        assert_eq!(side.find(&[1, 1], &element, &taken), Some(1));
        taken[1] = true;
        assert_eq!(side.find(&[1, 1], &element, &taken), Some(2));
        assert_eq!(side.find(&[1, 2], &element, &taken), None);
        assert_eq!(side.all_in(&[1]).len(), 6);
    }
}
