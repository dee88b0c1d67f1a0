//! The block tree, the links, images and texts of its leaves, and the IDs by which a diff skips equal subtrees
//! (P-VISUAL 4; docs/papers.md, Blocks and Vi-XML).

use std::fmt::{self, Display};
use std::str::FromStr;

use super::id::{IdHasher, IgnoredParameters};
use super::item::ItemList;
use crate::page::layout::Rect;
use crate::text::markup::xml_safe;

/// A hash of a node's content and of its children's IDs. Equal IDs mean equal content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeId(pub u64);

impl Display for NodeId {
    /// Sixteen hexadecimal digits, as in Vi-XML.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Position of a block in reading order: B1.2 is the second block within the first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BlockRef(pub Vec<u16>);

impl Display for BlockRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("B")?;
        for (level, number) in self.0.iter().enumerate() {
            write!(f, "{}{number}", if level == 0 { "" } else { "." })?;
        }
        Ok(())
    }
}

impl FromStr for BlockRef {
    type Err = String;

    fn from_str(text: &str) -> Result<BlockRef, String> {
        let wrong = || format!("{text:?} is not a block reference; write B1 or B1.2.3");
        let numbers = text.strip_prefix('B').ok_or_else(wrong)?;
        if numbers.is_empty() {
            return Ok(BlockRef::default());
        }
        let parsed: Result<Vec<u16>, _> = numbers.split('.').map(u16::from_str).collect();
        parsed.map(BlockRef).map_err(|_| wrong())
    }
}

/// The role of a block on the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
#[allow(missing_docs)]
pub enum BlockRole {
    Main,
    Navigation,
    Advertisement,
    Header,
    Footer,
    Comments,
    /// Stories of other pages.
    Related,
    #[default]
    Other,
}

impl BlockRole {
    /// All roles, with their names in Vi-XML.
    pub const NAMES: [(BlockRole, &str); 8] = [
        (BlockRole::Main, "main"),
        (BlockRole::Navigation, "navigation"),
        (BlockRole::Advertisement, "advertisement"),
        (BlockRole::Header, "header"),
        (BlockRole::Footer, "footer"),
        (BlockRole::Comments, "comments"),
        (BlockRole::Related, "related"),
        (BlockRole::Other, "other"),
    ];

    pub fn name(self) -> &'static str {
        BlockRole::NAMES.iter().find(|(role, _)| *role == self).map_or("other", |(_, name)| name)
    }

    /// The role of that name; an unknown name is [`BlockRole::Other`].
    pub fn from_name(name: &str) -> BlockRole {
        BlockRole::NAMES.iter().find(|(_, known)| *known == name).map_or(BlockRole::Other, |(role, _)| *role)
    }
}

/// A link: its text and its URL.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Link {
    /// Hash of name and URL.
    pub id: NodeId,
    /// Text of the link, with white space folded.
    pub name: String,
    /// Absolute URL.
    pub url: String,
}

impl Link {
    /// Creates a link whose ID covers its whole URL.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Link {
        Link::ignoring(&IgnoredParameters::none(), name, url)
    }

    /// Creates a link whose ID leaves out ignored parameters.
    pub fn ignoring(ignored: &IgnoredParameters, name: impl Into<String>, url: impl Into<String>) -> Link {
        let (name, url) = (xml_safe(name.into()), xml_safe(url.into()));
        let id = IdHasher::new(b'L').part(&name).part(&ignored.strip(&url)).finish();
        Link { id, name, url }
    }
}

/// An image: its alternative text or file name, and its source.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Image {
    pub id: NodeId,
    /// The `alt` text, or the file name.
    pub name: String,
    /// Absolute URL.
    pub source: String,
}

impl Image {
    /// Creates an image whose ID covers its whole URL.
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Image {
        Image::ignoring(&IgnoredParameters::none(), name, source)
    }

    /// Creates an image whose ID leaves out ignored parameters.
    pub fn ignoring(
        ignored: &IgnoredParameters,
        name: impl Into<String>,
        source: impl Into<String>,
    ) -> Image {
        let (name, source) = (xml_safe(name.into()), xml_safe(source.into()));
        let id = IdHasher::new(b'I').part(&name).part(&ignored.strip(&source)).finish();
        Image { id, name, source }
    }
}

/// A text as it is read, with the words of the links in it: a paragraph, a heading, a cell. A paragraph that consists of
/// links, such as an entry of a menu, has no text: its links stand alone.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Text {
    pub id: NodeId,
    /// The text with white space folded.
    pub text: String,
}

impl Text {
    pub fn new(text: impl Into<String>) -> Text {
        let text = xml_safe(text.into());
        Text { id: IdHasher::new(b'T').part(&text).finish(), text }
    }
}

/// A region of the page. An inner block has children, a leaf has content, and no block has both.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    /// Position in reading order, one number per level: [1, 2] is B1.2.
    pub reference: Vec<u16>,
    /// Hash of the content and of the children's IDs in order, without geometry and importance.
    pub id: NodeId,
    pub rect: Rect,
    /// Degree of coherence, 1 to 10.
    pub doc: u8,
    /// Share of the page's importance. The leaves sum to 1. An inner block has the sum of its leaves.
    pub importance: f32,
    pub role: BlockRole,
    /// Whether most of a leaf is one click away, as in a closed `<details>` or a tab.
    pub is_collapsed: bool,
    /// Child blocks in reading order.
    pub children: Vec<Block>,
    pub links: Vec<Link>,
    pub images: Vec<Image>,
    pub texts: Vec<Text>,
    /// Positions of the links and images among the texts.
    pub places: ElementPositions,
}

/// Positions of the links and images of a leaf among its texts, which give the reading order of the leaf. In trees of
/// earlier releases the lists are empty.
#[derive(Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct ElementPositions {
    /// One per link.
    pub links: Vec<TextPosition>,
    /// One per image.
    pub images: Vec<TextPosition>,
}

/// A position among the texts of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct TextPosition {
    /// Index of the text that contains it or follows it; the number of texts if it is after the last one.
    pub text: u32,
    /// Bytes before it in that text.
    pub byte: u32,
    /// Bytes of the text that are the name of the link. 0 for images, and for links whose name is not part of a text.
    pub n_bytes: u32,
}

/// A piece of a leaf in reading order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeafPiece<'a> {
    /// Part of the text with this index: up to the next image or link that is not part of its words.
    Text(u32, &'a str),
    /// The link with this index, whose name is not part of a text.
    Link(u32),
    /// The link with this index, whose name is part of the text before it.
    LinkInText(u32),
    /// The image with this index.
    Image(u32),
}

impl Block {
    /// Creates a leaf. The caller sets importance, geometry and role; [`BlockTree::seal`] computes the rest.
    pub fn leaf(links: Vec<Link>, images: Vec<Image>, texts: Vec<Text>) -> Block {
        Block { doc: 10, links, images, texts, ..Block::default() }
    }

    /// Creates an inner block whose box encloses its children.
    pub fn inner(children: Vec<Block>) -> Block {
        let rect = children.iter().fold(Rect::default(), |all, child| all.union(&child.rect));
        Block { doc: 1, rect, children, ..Block::default() }
    }

    pub fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }

    /// The reference as text: `B1.2`.
    pub fn name(&self) -> String {
        BlockRef(self.reference.clone()).to_string()
    }

    /// Hash of the IDs of all links, in order.
    pub fn links_id(&self) -> NodeId {
        IdHasher::new(b'l').ids(self.links.iter().map(|link| link.id)).finish()
    }

    /// Hash of the IDs of all images, in order.
    pub fn images_id(&self) -> NodeId {
        IdHasher::new(b'i').ids(self.images.iter().map(|image| image.id)).finish()
    }

    /// Hash of the IDs of all texts, in order.
    pub fn texts_id(&self) -> NodeId {
        IdHasher::new(b't').ids(self.texts.iter().map(|text| text.id)).finish()
    }

    /// Computes [`Block::id`].
    pub fn content_id(&self) -> NodeId {
        if self.is_leaf() {
            let parts = [self.links_id(), self.images_id(), self.texts_id()];
            IdHasher::new(b'B').ids(parts.into_iter()).finish()
        } else {
            IdHasher::new(b'b').ids(self.children.iter().map(|child| child.id)).finish()
        }
    }

    /// This block and its descendants in reading order, parents before children.
    pub fn walk(&self) -> BlockWalk<'_> {
        BlockWalk { pending: vec![self] }
    }

    /// The content of a leaf in reading order. If positions are unknown, texts come before links and images.
    pub fn pieces(&self) -> Vec<LeafPiece<'_>> {
        let mut inserts: Vec<(TextPosition, LeafPiece)> =
            Vec::with_capacity(self.links.len() + self.images.len());
        let links = (0..self.links.len()).map(|n| {
            let position = self.position(&self.places.links, self.links.len(), n);
            let is_in_text = position.n_bytes > 0 && (position.text as usize) < self.texts.len();
            let piece = if is_in_text { LeafPiece::LinkInText } else { LeafPiece::Link };
            (position, piece(n as u32))
        });
        inserts.extend(links);
        let images = (0..self.images.len()).map(|n| {
            let position = self.position(&self.places.images, self.images.len(), n);
            (position, LeafPiece::Image(n as u32))
        });
        inserts.extend(images);
        inserts.sort_by_key(|(position, _)| *position);
        let mut inserts = inserts.into_iter().peekable();
        let mut pieces = Vec::new();
        let mut links_in_text = Vec::new();
        for (number, text) in (0u32..).zip(&self.texts) {
            let mut from = 0;
            while let Some((position, piece)) = inserts.next_if(|(position, _)| position.text <= number) {
                if matches!(piece, LeafPiece::LinkInText(_)) {
                    links_in_text.push(piece);
                    continue;
                }
                let to = if position.text == number { floor(&text.text, position.byte as usize) } else { 0 };
                if to > from {
                    pieces.push(LeafPiece::Text(number, &text.text[from..to]));
                    from = to;
                }
                pieces.push(piece);
            }
            if from < text.text.len() {
                pieces.push(LeafPiece::Text(number, &text.text[from..]));
            }
            pieces.append(&mut links_in_text);
        }
        pieces.extend(inserts.map(|(_, piece)| piece));
        pieces
    }

    /// The position of element `n` of `n_elements`; after all texts if it is unknown.
    fn position(&self, positions: &[TextPosition], n_elements: usize, n: usize) -> TextPosition {
        let after_all = TextPosition { text: self.texts.len() as u32, ..TextPosition::default() };
        let known = positions.get(n).filter(|_| positions.len() == n_elements);
        known.copied().unwrap_or(after_all)
    }

    /// The index of the text that contains the name of a link.
    pub fn text_around_link(&self, link: u32) -> Option<u32> {
        let position = self.position(&self.places.links, self.links.len(), link as usize);
        (position.n_bytes > 0 && (position.text as usize) < self.texts.len()).then_some(position.text)
    }

    /// The links whose names are not part of a text.
    pub fn links_outside_texts(&self) -> impl Iterator<Item = &Link> {
        (0u32..).zip(&self.links).filter(|(n, _)| self.text_around_link(*n).is_none()).map(|(_, link)| link)
    }

    /// All words of a leaf, each once: its texts, then the names of the links outside them.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let texts = self.texts.iter().map(|text| text.text.as_str());
        texts.chain(self.links_outside_texts().map(|link| link.name.as_str()))
    }

    /// The words of a leaf in reading order, each once.
    pub fn read(&self) -> Vec<&str> {
        let words = self.pieces().into_iter().filter_map(|piece| match piece {
            LeafPiece::Text(_, text) => Some(text),
            LeafPiece::Link(number) => self.links.get(number as usize).map(|link| link.name.as_str()),
            LeafPiece::LinkInText(_) | LeafPiece::Image(_) => None,
        });
        words.map(str::trim).filter(|piece| !piece.is_empty()).collect()
    }

    /// The words of a text outside the names of the links in it.
    pub fn words_outside_links(&self, text: u32) -> String {
        let whole = self.texts.get(text as usize).map_or("", |text| &text.text);
        let mut names: Vec<TextPosition> = self
            .places
            .links
            .iter()
            .filter(|place| place.text == text && place.n_bytes > 0)
            .copied()
            .collect();
        names.sort_unstable();
        let (mut plain, mut from) = (String::with_capacity(whole.len()), 0);
        for name in names {
            let start = floor(whole, name.byte as usize).max(from);
            plain.push_str(&whole[from..start]);
            plain.push(' ');
            from = floor(whole, (name.byte + name.n_bytes) as usize).max(from);
        }
        plain.push_str(&whole[from..]);
        plain
    }

    fn seal(&mut self, reference: Vec<u16>) {
        seal_all(&mut self.children, &reference);
        self.reference = reference;
        if !self.is_leaf() {
            self.importance = self.children.iter().map(|child| child.importance).sum();
        }
        self.id = self.content_id();
    }
}

/// The nearest character boundary at or before a byte.
fn floor(text: &str, byte: usize) -> usize {
    text.floor_char_boundary(byte.min(text.len()))
}

fn seal_all(blocks: &mut [Block], above: &[u16]) {
    for (index, block) in blocks.iter_mut().enumerate() {
        let number = u16::try_from(index + 1).unwrap_or(u16::MAX);
        block.seal(above.iter().copied().chain([number]).collect());
    }
}

/// Iterates over blocks in reading order, parents before children.
pub struct BlockWalk<'a> {
    pending: Vec<&'a Block>,
}

impl<'a> Iterator for BlockWalk<'a> {
    type Item = &'a Block;

    fn next(&mut self) -> Option<&'a Block> {
        let block = self.pending.pop()?;
        self.pending.extend(block.children.iter().rev());
        Some(block)
    }
}

/// The visible content of one version of a page, as nested blocks.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockTree {
    /// URL of the page.
    pub url: String,
    /// Time or name of the version, as text.
    pub version: String,
    /// The engine that made the layout.
    pub engine: String,
    /// The top-level blocks B1, B2, ...
    pub blocks: Vec<Block>,
    /// The entries of its lists. `None` for documents that are not pages, and in trees of earlier releases.
    pub list: Option<ItemList>,
}

impl BlockTree {
    /// Computes references, IDs and the importance of inner blocks from the leaves up. Call it after building or
    /// changing a tree.
    pub fn seal(&mut self) {
        seal_all(&mut self.blocks, &[]);
    }

    /// Removes all boxes. A reused layout must give the same tree except for boxes.
    pub fn without_boxes(mut self) -> BlockTree {
        fn clear(blocks: &mut [Block]) {
            for block in blocks {
                block.rect = Rect::default();
                clear(&mut block.children);
            }
        }
        clear(&mut self.blocks);
        self
    }

    /// Hash of the whole page: the ID of the document node.
    pub fn id(&self) -> NodeId {
        IdHasher::new(b'D').ids(self.blocks.iter().map(|block| block.id)).finish()
    }

    /// All blocks in reading order, parents before children.
    pub fn walk(&self) -> BlockWalk<'_> {
        BlockWalk { pending: self.blocks.iter().rev().collect() }
    }

    pub fn leaves(&self) -> impl Iterator<Item = &Block> {
        self.walk().filter(|block| block.is_leaf())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> BlockTree {
        let mut first = Block::leaf(vec![Link::new("Home", "http://a.org/")], vec![], vec![]);
        first.importance = 0.25;
        let mut second = Block::leaf(vec![], vec![], vec![Text::new("A text.")]);
        second.importance = 0.75;
        let mut tree = BlockTree { blocks: vec![Block::inner(vec![first, second])], ..BlockTree::default() };
        tree.seal();
        tree
    }

    #[test]
    fn seal_numbers_blocks_and_sums_importance() {
        let tree = sample();
        let names: Vec<String> = tree.walk().map(Block::name).collect();
        assert_eq!(names, ["B1", "B1.1", "B1.2"]);
        assert_eq!(tree.blocks[0].importance, 1.0);
    }

    #[test]
    fn one_word_changes_only_the_ids_up_to_the_root() {
        let before = sample();
        let mut after = before.clone();
        after.blocks[0].children[1].texts[0] = Text::new("A word.");
        after.seal();
        assert_ne!(before.id(), after.id());
        assert_ne!(before.blocks[0].id, after.blocks[0].id);
        assert_eq!(before.blocks[0].children[0].id, after.blocks[0].children[0].id);
    }

    #[test]
    fn geometry_and_importance_do_not_affect_ids() {
        let before = sample();
        let mut after = before.clone();
        after.blocks[0].children[1].rect.x = 7.0;
        after.blocks[0].children[1].importance = 0.5;
        after.seal();
        assert_eq!(before.id(), after.id());
    }

    #[test]
    fn a_leaf_is_read_with_its_links_in_place() {
        let links = vec![Link::new("Home", "/"), Link::new("the divers", "/d"), Link::new("More", "/m")];
        let mut leaf = Block::leaf(
            links,
            vec![Image::new("pier", "/p.jpg")],
            vec![Text::new("What saw?"), Text::new("Nothing.")],
        );
        assert_eq!(
            leaf.read(),
            ["What saw?", "Nothing.", "Home", "the divers", "More"],
            "nothing is known of places"
        );
        let spot = |text, byte| TextPosition { text, byte, n_bytes: 0 };
        leaf.places =
            ElementPositions { links: vec![spot(0, 0), spot(0, 5), spot(2, 0)], images: vec![spot(1, 0)] };
        assert_eq!(leaf.read(), ["Home", "What", "the divers", "saw?", "Nothing.", "More"]);
        leaf.places.links[1] = spot(9, 9);
        assert_eq!(leaf.read().len(), 5, "an invalid position means after all texts");
    }

    #[test]
    fn a_text_is_read_with_the_names_of_its_links_once() {
        let links = vec![Link::new("bus", "/b"), Link::new("Berlin", "/c"), Link::new("More", "/m")];
        let mut leaf = Block::leaf(links, vec![], vec![Text::new("Old buses in Berlin.")]);
        let position = |text, byte, n_bytes| TextPosition { text, byte, n_bytes };
        leaf.places.links = vec![position(0, 4, 3), position(0, 13, 6), position(1, 0, 0)];
        assert_eq!(leaf.read(), ["Old buses in Berlin.", "More"]);
        assert_eq!(leaf.words().collect::<Vec<_>>(), ["Old buses in Berlin.", "More"]);
        assert_eq!(leaf.words_outside_links(0), "Old  es in  .");
        assert_eq!(
            leaf.pieces(),
            [
                LeafPiece::Text(0, "Old buses in Berlin."),
                LeafPiece::LinkInText(0),
                LeafPiece::LinkInText(1),
                LeafPiece::Link(2)
            ]
        );
        leaf.places.links.pop();
        assert_eq!(leaf.links_outside_texts().count(), 3, "positions of other links say nothing");
    }

    #[test]
    fn ids_are_the_same_in_every_release() {
        assert_eq!(Link::new("Home", "http://a.org/").id.to_string(), "ed650a24a41033bc");
    }

    #[test]
    fn a_tree_contains_only_text_that_is_valid_in_vixml() {
        assert_eq!(Text::new("a\u{1}b\u{ffff}\t").text, "a\u{fffd}b\u{fffd}\t");
        assert_eq!(Link::new("\u{fffe}", "\0").name, "\u{fffd}");
    }

    #[test]
    fn the_same_words_as_link_image_and_text_differ() {
        assert_ne!(Link::new("a", "b").id, Image::new("a", "b").id);
        assert_ne!(Link::new("ab", "").id, Link::new("a", "b").id);
    }
}
