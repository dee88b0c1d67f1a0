//! The tree of one version -> its links, images and texts in reading order, found again by block and content.

use std::collections::HashMap;

use perennial_core::diff::{Element, ElementKind};
use perennial_core::segment::{Block, BlockTree, Item, NodeId, key_of};
use url::Url;

use super::words::words;

/// A link, an image or a text of a version.
pub(super) struct Piece<'t> {
    pub(super) kind: ElementKind,
    pub(super) text: &'t str,
    pub(super) address: &'t str,
    pub(super) id: NodeId,
    /// Number of its leaf, in reading order.
    pub(super) leaf: usize,
    /// Its words.
    pub(super) keys: Vec<u32>,
}

/// All of a version, in reading order as far as the tree knows it: within a leaf texts, links, images.
pub(super) struct Side<'t> {
    pub(super) tree: &'t BlockTree,
    pub(super) pieces: Vec<Piece<'t>>,
    by_content: HashMap<(&'t [u16], ElementKind, NodeId), Vec<usize>>,
    by_block: HashMap<&'t [u16], std::ops::Range<usize>>,
    links_by_key: HashMap<String, Vec<usize>>,
    texts_by_word: HashMap<u32, Vec<usize>>,
    /// Of content that stands once in the version, where.
    once: HashMap<(ElementKind, NodeId), Option<usize>>,
}

/// Words of a part of a headline or a teaser.
const MIN_WORDS: usize = 3;
/// Texts that begin with the same word and are compared with the words of one headline.
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
            if let (ElementKind::Link, Ok(url)) = (piece.kind, Url::parse(piece.address)) {
                side.links_by_key.entry(key_of(&url)).or_default().push(place);
            }
            if let Some(word) = piece.keys.first().filter(|_| piece.kind == ElementKind::Text) {
                side.texts_by_word.entry(*word).or_default().push(place);
            }
        }
        side
    }

    /// Trees nest at most as deep as their reader lets them.
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
        let links = leaf.links.iter().map(|link| (ElementKind::Link, &*link.name, &*link.address, link.id));
        let images =
            leaf.images.iter().map(|image| (ElementKind::Image, &*image.name, &*image.source, image.id));
        for (kind, text, address, id) in texts.chain(links).chain(images) {
            let key = (leaf.reference.as_slice(), kind, id);
            self.by_content.entry(key).or_default().push(self.pieces.len());
            self.pieces.push(Piece { kind, text, address, id, leaf: number, keys: keys(text) });
        }
    }

    /// Where an element of a block stands. Of several equal ones each is found once, as long as there are some; `taken` says which
    /// were.
    pub(super) fn find(&self, block: &[u16], element: &Element, taken: &[bool]) -> Option<usize> {
        let same = self.by_content.get(&(block, element.kind(), element.id()))?;
        same.iter().copied().find(|&place| !taken[place]).or(same.first().copied())
    }

    /// The piece of another version beside which a piece of this one stood or would stand: the nearest one before it that both
    /// have once, of the same kind if there is one.
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
    pub(super) fn find_item(&self, item: &Item) -> Vec<usize> {
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

    /// The texts that stand in a text of a headline from one of its words on. A label that every item has says nothing of where this
    /// one stands.
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

fn keys(text: &str) -> Vec<u32> {
    words(text).into_iter().map(|word| word.key).collect()
}

/// Whether words stand in a text from a place on: all of it, or enough of them; one or two stand in many texts.
fn is_part(part: &[u32], text: &[u32], at: usize) -> bool {
    (part.len() >= MIN_WORDS || part.len() == text.len()) && text[at..].starts_with(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perennial_core::segment::{Link, Text};

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
        let item = Item {
            address: "http://a.example/1-2-3?utm_source=x".into(),
            title: "A mayor resigns".into(),
            teaser: "She leaves after nine years in office. 3 comments".into(),
            ..Item::default()
        };
        let found: Vec<&str> =
            side.find_item(&item).into_iter().map(|place| side.pieces[place].text).collect();
        assert_eq!(found, ["She leaves after nine years in office.", "A mayor resigns"]);
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
