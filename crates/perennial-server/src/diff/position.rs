//! The elements of a tree -> their words and images in the captured page, where changes are marked.
//!
//! A tree contains the visible words without their DOM nodes. Tree and page have the same order, so the words of the tree
//! are aligned with all words of the page. Only the page contains hidden words.

use std::collections::HashMap;
use std::ops::Range;

use perennial_core::page::diff::{ElementKind, word_hashes};
use perennial_core::text::dom::{Dom, DomKind};
use url::Url;

use super::elements::Side;
use super::words::{WordRun, align, words};

/// A word of a text node.
pub(super) struct DomWord {
    pub(super) node: u32,
    pub(super) range: Range<usize>,
    key: u32,
    is_in_link: bool,
}

/// A captured page with its words, in document order.
pub(super) struct Page {
    pub(super) dom: Dom,
    pub(super) words: Vec<DomWord>,
}

/// Elements whose text is not part of the visible text.
const UNREAD: [&str; 14] = [
    "script", "style", "title", "noscript", "template", "textarea", "select", "iframe", "object", "svg",
    "math", "head", "audio", "video",
];

impl Page {
    pub(super) fn of(html: &str) -> Page {
        let dom = Dom::parse(html);
        let mut found = Vec::new();
        let (mut unread_until, mut link_until) = (0, 0);
        for (index, node) in dom.nodes.iter().enumerate() {
            let index = index as u32;
            match &node.kind {
                DomKind::Element { .. } if UNREAD.contains(&node.tag()) => {
                    unread_until = unread_until.max(node.end)
                }
                DomKind::Element { .. } if node.tag() == "a" => link_until = link_until.max(node.end),
                DomKind::Text(text) if index >= unread_until => {
                    let is_in_link = index < link_until;
                    let here = words(text).into_iter();
                    found.extend(here.map(|word| DomWord {
                        node: index,
                        range: word.range,
                        key: word.key,
                        is_in_link,
                    }));
                }
                _ => {}
            }
        }
        Page { dom, words: found }
    }

    /// The words within a node.
    pub(super) fn words_in(&self, node: u32) -> Range<usize> {
        let end = self.dom.nodes[node as usize].end;
        self.words.partition_point(|word| word.node < node)
            ..self.words.partition_point(|word| word.node < end)
    }

    /// The smallest element with both nodes in it.
    pub(super) fn common(&self, first: u32, last: u32) -> Option<u32> {
        let mut node = Some(first);
        while let Some(at) = node {
            let here = &self.dom.nodes[at as usize];
            if self.dom.is_element(at) && at <= last && last < here.end {
                return Some(at);
            }
            node = here.parent;
        }
        None
    }
}

/// The position of each piece of a version in its page.
pub(super) struct Places {
    /// For each piece its words in the page; `None` for pieces not found.
    words: Vec<Vec<Option<usize>>>,
    /// For each piece without words, such as a picture, its element.
    nodes: Vec<Option<u32>>,
}

impl Places {
    pub(super) fn of(side: &Side<'_>, page: &Page, base: Option<&Url>) -> Places {
        let mut places = Places {
            words: side.pieces.iter().map(|piece| vec![None; piece.keys.len()]).collect(),
            nodes: vec![None; side.pieces.len()],
        };
        let has_links_in_texts = has_links_in_texts(side);
        places.find(side, page, ElementKind::Text, |word| has_links_in_texts || !word.is_in_link);
        places.find(side, page, ElementKind::Link, |word| word.is_in_link);
        places.find_by_url(side, page, base, ElementKind::Image);
        places.find_by_url(side, page, base, ElementKind::Link);
        places
    }

    fn find(&mut self, side: &Side<'_>, page: &Page, kind: ElementKind, is_one: impl Fn(&DomWord) -> bool) {
        let mut wanted: Vec<(usize, usize)> = Vec::new();
        let mut keys = Vec::new();
        for (piece, found) in side.pieces.iter().enumerate().filter(|(_, piece)| piece.kind == kind) {
            wanted.extend((0..found.keys.len()).map(|place| (piece, place)));
            keys.extend(&found.keys);
        }
        let there: Vec<usize> = (0..page.words.len()).filter(|&word| is_one(&page.words[word])).collect();
        let there_keys: Vec<u32> = there.iter().map(|&word| page.words[word].key).collect();
        for run in align(&keys, &there_keys) {
            let WordRun::Same(ours, theirs) = run else { continue };
            for (our, their) in ours.zip(theirs) {
                let (piece, place) = wanted[our];
                self.words[piece][place] = Some(there[their]);
            }
        }
    }

    /// Finds pictures by their sources, and links without words by their URLs.
    fn find_by_url(&mut self, side: &Side<'_>, page: &Page, base: Option<&Url>, kind: ElementKind) {
        let (tags, attributes) = match kind {
            ElementKind::Image => (&["img", "input"][..], &SOURCES[..]),
            _ => (&["a"][..], &["href"][..]),
        };
        let pieces = side.pieces.iter().enumerate().filter(|(_, piece)| piece.kind == kind);
        let pieces: Vec<(usize, &str)> = pieces
            .filter(|(place, _)| kind == ElementKind::Image || self.words[*place].iter().all(Option::is_none))
            .map(|(place, piece)| (place, piece.url))
            .collect();
        let known: HashMap<&str, u32> = pieces.iter().map(|(_, source)| (*source, hash(source))).collect();
        let mut there = Vec::new();
        for (index, node) in page.dom.nodes.iter().enumerate().filter(|(_, node)| tags.contains(&node.tag()))
        {
            let sources = attributes.iter().filter_map(|name| node.attribute(name));
            let mut resolved = sources.filter_map(|source| Some(base?.join(source.trim()).ok()?.to_string()));
            if kind == ElementKind::Link && !page.words_in(index as u32).is_empty() {
                continue;
            }
            if let Some(key) = resolved.find_map(|source| known.get(source.as_str()).copied()) {
                there.push((index as u32, key));
            }
        }
        let ours: Vec<u32> = pieces.iter().map(|(_, source)| known[source]).collect();
        let theirs: Vec<u32> = there.iter().map(|(_, key)| *key).collect();
        for run in align(&ours, &theirs) {
            let WordRun::Same(ours, theirs) = run else { continue };
            for (our, their) in ours.zip(theirs) {
                self.nodes[pieces[our].0] = Some(there[their].0);
            }
        }
    }

    /// The words of some pieces in the page, in one list, as [`super::changes::joined`] joins them.
    pub(super) fn piece_words(&self, pieces: &[usize]) -> Vec<Option<usize>> {
        pieces.iter().flat_map(|&piece| self.words[piece].iter().copied()).collect()
    }

    /// The element of a piece without words.
    pub(super) fn piece_node(&self, piece: usize) -> Option<u32> {
        self.nodes[piece]
    }

    /// The start of a piece in the page. It sorts pieces in reading order.
    pub(super) fn piece_start(&self, piece: usize, page: &Page) -> Option<u32> {
        let word = self.words[piece].iter().flatten().next();
        word.map(|&word| page.words[word].node).or(self.nodes[piece])
    }
}

/// Attributes with the source of an image, including those of lazy loading.
pub(super) const SOURCES: [&str; 4] = ["src", "data-src", "data-original", "data-lazy-src"];

fn hash(text: &str) -> u32 {
    word_hashes(text).into_iter().fold(0, |all, word| all.rotate_left(5) ^ word)
}

/// Whether the texts of this tree include the names of their links.
fn has_links_in_texts(side: &Side<'_>) -> bool {
    if side.pieces.iter().any(|piece| piece.is_in_text) {
        return true;
    }
    const MIN_LETTERS: usize = 12;
    const N_CANDIDATES: usize = 50;
    let mut texts: HashMap<usize, Vec<&str>> = HashMap::new();
    for piece in side.pieces.iter().filter(|piece| piece.kind == ElementKind::Text) {
        let texts = texts.entry(piece.leaf).or_default();
        if texts.len() < N_CANDIDATES {
            texts.push(piece.text);
        }
    }
    let links =
        side.pieces.iter().filter(|piece| piece.kind == ElementKind::Link && piece.text.len() >= MIN_LETTERS);
    let (mut n_links, mut n_within) = (0, 0);
    for link in links.take(N_CANDIDATES) {
        let within =
            texts.get(&link.leaf).is_some_and(|texts| texts.iter().any(|text| text.contains(link.text)));
        n_links += 1;
        n_within += usize::from(within);
    }
    2 * n_within > n_links
}
