//! The tree of blocks, the links, images and texts of its leaves, and their IDs, at which a diff can stop (P-VISUAL 4;
//! docs/papers.md, Blocks and Vi-XML).

use std::fmt::{self, Display};
use std::str::FromStr;

use super::id::{IdHasher, IgnoredParameters};
use super::item::ItemList;
use crate::page::layout::Rect;
use crate::text::markup::xml_safe;

/// A hash of a node's content and its children's IDs. Equal IDs mean equal content.
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
        let wrong = || format!("{text:?} is no block reference: write B1 or B1.2.3");
        let numbers = text.strip_prefix('B').ok_or_else(wrong)?;
        if numbers.is_empty() {
            return Ok(BlockRef::default());
        }
        let parsed: Result<Vec<u16>, _> = numbers.split('.').map(u16::from_str).collect();
        parsed.map(BlockRef).map_err(|_| wrong())
    }
}

/// The part that a block plays on the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
#[allow(missing_docs)]
pub enum BlockRole {
    Main,
    Navigation,
    Advertisement,
    Header,
    Footer,
    #[default]
    Other,
}

impl BlockRole {
    /// All roles, with their names in Vi-XML.
    pub const NAMES: [(BlockRole, &str); 6] = [
        (BlockRole::Main, "main"),
        (BlockRole::Navigation, "navigation"),
        (BlockRole::Advertisement, "advertisement"),
        (BlockRole::Header, "header"),
        (BlockRole::Footer, "footer"),
        (BlockRole::Other, "other"),
    ];

    /// The name in Vi-XML, in lower case.
    pub fn name(self) -> &'static str {
        BlockRole::NAMES.iter().find(|(role, _)| *role == self).map_or("other", |(_, name)| name)
    }

    /// The role of that name; an unknown name is [`BlockRole::Other`].
    pub fn from_name(name: &str) -> BlockRole {
        BlockRole::NAMES.iter().find(|(_, known)| *known == name).map_or(BlockRole::Other, |(role, _)| *role)
    }
}

/// An anchor: its text and where it leads.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Link {
    /// Hash of name and address.
    pub id: NodeId,
    /// Text of the anchor, white space folded.
    pub name: String,
    /// Absolute address.
    pub address: String,
}

impl Link {
    /// A link whose ID covers its whole address.
    pub fn new(name: impl Into<String>, address: impl Into<String>) -> Link {
        Link::ignoring(&IgnoredParameters::none(), name, address)
    }

    /// A link whose ID leaves the ignored parameters out.
    pub fn ignoring(
        ignored: &IgnoredParameters,
        name: impl Into<String>,
        address: impl Into<String>,
    ) -> Link {
        let (name, address) = (xml_safe(name.into()), xml_safe(address.into()));
        let id = IdHasher::new(b'L').part(&name).part(&ignored.strip(&address)).finish();
        Link { id, name, address }
    }
}

/// An image: its alternative text or file name, and its source.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Image {
    /// Hash of name and source.
    pub id: NodeId,
    /// `alt`, or the file name.
    pub name: String,
    /// Absolute address.
    pub source: String,
}

impl Image {
    /// An image whose ID covers its whole source.
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Image {
        Image::ignoring(&IgnoredParameters::none(), name, source)
    }

    /// An image whose ID leaves the ignored parameters out.
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

/// A run of text outside links: a paragraph, a heading, a cell.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Text {
    /// Hash of the text.
    pub id: NodeId,
    /// The text with white space folded.
    pub text: String,
}

impl Text {
    /// A run of text with its ID.
    pub fn new(text: impl Into<String>) -> Text {
        let text = xml_safe(text.into());
        Text { id: IdHasher::new(b'T').part(&text).finish(), text }
    }
}

/// A region of the page. An inner block has children, a leaf block has content, and none has both.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    /// Position in reading order, one number for each level: [1, 2] is B1.2.
    pub reference: Vec<u16>,
    /// Hash of the content and of the children's IDs, in order, without geometry and importance.
    pub id: NodeId,
    /// Where it is.
    pub rect: Rect,
    /// Degree of coherence, 1 to 10.
    pub doc: u8,
    /// Share of the page's importance. It sums to 1 over the leaves, and an inner block has the sum of its leaves.
    pub importance: f32,
    /// Its role.
    pub role: BlockRole,
    /// Blocks within, in reading order.
    pub children: Vec<Block>,
    /// Anchors, in reading order.
    pub links: Vec<Link>,
    /// Images, in reading order.
    pub images: Vec<Image>,
    /// Texts, in reading order.
    pub texts: Vec<Text>,
    /// Where the links and the images stand among the texts.
    pub places: ElementPositions,
}

/// Where the links and images of a leaf stand among its texts, so that it can be read as a reader does. Trees of earlier
/// releases do not say it; their lists are empty.
#[derive(Clone, PartialEq, Eq, Debug, Default, Hash)]
pub struct ElementPositions {
    /// One for each link.
    pub links: Vec<TextPosition>,
    /// One for each image.
    pub images: Vec<TextPosition>,
}

/// A place among the texts of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct TextPosition {
    /// The number of the text in which or before which it is; the number of texts after the last one.
    pub text: u32,
    /// Bytes of that text before it.
    pub byte: u32,
}

/// A piece of a leaf, in reading order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeafPiece<'a> {
    /// A part of the text of this number: all of it where no link stands within.
    Text(u32, &'a str),
    /// The link of this number.
    Link(u32),
    /// The image of this number.
    Image(u32),
}

impl Block {
    /// A leaf with its content. The caller sets importance, geometry and role; [`BlockTree::seal`] computes the rest.
    pub fn leaf(links: Vec<Link>, images: Vec<Image>, texts: Vec<Text>) -> Block {
        Block { doc: 10, links, images, texts, ..Block::default() }
    }

    /// A block of blocks, whose box is drawn around theirs.
    pub fn inner(children: Vec<Block>) -> Block {
        let rect = children.iter().fold(Rect::default(), |all, child| all.union(&child.rect));
        Block { doc: 1, rect, children, ..Block::default() }
    }

    /// Whether it has no blocks within.
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

    /// Computes [`Block::id`] from the content and the children's IDs.
    pub fn content_id(&self) -> NodeId {
        if self.is_leaf() {
            let parts = [self.links_id(), self.images_id(), self.texts_id()];
            IdHasher::new(b'B').ids(parts.into_iter()).finish()
        } else {
            IdHasher::new(b'b').ids(self.children.iter().map(|child| child.id)).finish()
        }
    }

    /// This block and all within, in reading order, each before its children.
    pub fn walk(&self) -> BlockWalk<'_> {
        BlockWalk { pending: vec![self] }
    }

    /// What a leaf holds, in the order in which it is read. Where the tree does not tell, texts come before links and images.
    pub fn pieces(&self) -> Vec<LeafPiece<'_>> {
        let after_all = TextPosition { text: self.texts.len() as u32, byte: 0 };
        let mut inserts: Vec<(TextPosition, LeafPiece)> =
            Vec::with_capacity(self.links.len() + self.images.len());
        let spot = |spots: &[TextPosition], all: usize, n: usize| match spots.len() == all {
            true => spots.get(n).copied().unwrap_or(after_all),
            false => after_all,
        };
        let links = (0..self.links.len())
            .map(|n| (spot(&self.places.links, self.links.len(), n), LeafPiece::Link(n as u32)));
        inserts.extend(links);
        let images = (0..self.images.len())
            .map(|n| (spot(&self.places.images, self.images.len(), n), LeafPiece::Image(n as u32)));
        inserts.extend(images);
        inserts.sort_by_key(|(spot, _)| *spot);
        let mut inserts = inserts.into_iter().peekable();
        let mut pieces = Vec::new();
        for (number, text) in (0u32..).zip(&self.texts) {
            let mut from = 0;
            while let Some((spot, piece)) = inserts.next_if(|(spot, _)| spot.text <= number) {
                let to = if spot.text == number { floor(&text.text, spot.byte as usize) } else { 0 };
                if to > from {
                    pieces.push(LeafPiece::Text(number, &text.text[from..to]));
                    from = to;
                }
                pieces.push(piece);
            }
            if from < text.text.len() {
                pieces.push(LeafPiece::Text(number, &text.text[from..]));
            }
        }
        pieces.extend(inserts.map(|(_, piece)| piece));
        pieces
    }

    /// The words of a leaf as a reader reads them: texts with the names of links where the links stand.
    pub fn read(&self) -> Vec<&str> {
        let words = self.pieces().into_iter().filter_map(|piece| match piece {
            LeafPiece::Text(_, text) => Some(text),
            LeafPiece::Link(number) => self.links.get(number as usize).map(|link| link.name.as_str()),
            LeafPiece::Image(_) => None,
        });
        words.map(str::trim).filter(|piece| !piece.is_empty()).collect()
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

/// The nearest border of a character at or before a byte.
fn floor(text: &str, byte: usize) -> usize {
    text.floor_char_boundary(byte.min(text.len()))
}

fn seal_all(blocks: &mut [Block], above: &[u16]) {
    for (index, block) in blocks.iter_mut().enumerate() {
        let number = u16::try_from(index + 1).unwrap_or(u16::MAX);
        block.seal(above.iter().copied().chain([number]).collect());
    }
}

/// Blocks in reading order, each before its children.
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

/// What a reader sees of one version of a page, as nested regions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockTree {
    /// Address of the page.
    pub url: String,
    /// Time or name of the version, as text.
    pub version: String,
    /// The engine whose layout it was cut from.
    pub engine: String,
    /// The top-level blocks B1, B2, ...
    pub blocks: Vec<Block>,
    /// The entries of its lists. `None` for a document that is not a page, and in trees of earlier releases.
    pub list: Option<ItemList>,
}

impl BlockTree {
    /// Computes from the leaves up what follows from content: references, IDs and the importance of inner blocks.
    /// It must be called after a tree was built or changed by hand.
    pub fn seal(&mut self) {
        seal_all(&mut self.blocks, &[]);
    }

    /// Whether two trees are equal but for their boxes. A reused layout must give such a tree.
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

    /// Hash of the whole page's content: the ID of the document node.
    pub fn id(&self) -> NodeId {
        IdHasher::new(b'D').ids(self.blocks.iter().map(|block| block.id)).finish()
    }

    /// All blocks in reading order, each before its children.
    pub fn walk(&self) -> BlockWalk<'_> {
        BlockWalk { pending: self.blocks.iter().rev().collect() }
    }

    /// The leaf blocks in reading order.
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
    fn one_word_changes_the_ids_up_to_the_root_and_no_other() {
        let before = sample();
        let mut after = before.clone();
        after.blocks[0].children[1].texts[0] = Text::new("A word.");
        after.seal();
        assert_ne!(before.id(), after.id());
        assert_ne!(before.blocks[0].id, after.blocks[0].id);
        assert_eq!(before.blocks[0].children[0].id, after.blocks[0].children[0].id);
    }

    #[test]
    fn geometry_and_importance_have_no_part_in_ids() {
        let before = sample();
        let mut after = before.clone();
        after.blocks[0].children[1].rect.x = 7.0;
        after.blocks[0].children[1].importance = 0.5;
        after.seal();
        assert_eq!(before.id(), after.id());
    }

    #[test]
    fn a_leaf_is_read_with_its_links_where_they_stand() {
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
        let spot = |text, byte| TextPosition { text, byte };
        leaf.places =
            ElementPositions { links: vec![spot(0, 0), spot(0, 5), spot(2, 0)], images: vec![spot(1, 0)] };
        assert_eq!(leaf.read(), ["Home", "What", "the divers", "saw?", "Nothing.", "More"]);
        leaf.places.links[1] = spot(9, 9);
        assert_eq!(leaf.read().len(), 5, "a place that is none is one after all");
    }

    #[test]
    fn ids_are_the_same_in_every_release() {
        assert_eq!(Link::new("Home", "http://a.org/").id.to_string(), "ed650a24a41033bc");
    }

    #[test]
    fn a_tree_has_no_text_that_vixml_cannot_hold() {
        assert_eq!(Text::new("a\u{1}b\u{ffff}\t").text, "a\u{fffd}b\u{fffd}\t");
        assert_eq!(Link::new("\u{fffe}", "\0").name, "\u{fffd}");
    }

    #[test]
    fn the_same_words_as_link_image_and_text_differ() {
        assert_ne!(Link::new("a", "b").id, Image::new("a", "b").id);
        assert_ne!(Link::new("ab", "").id, Link::new("a", "b").id);
    }
}
