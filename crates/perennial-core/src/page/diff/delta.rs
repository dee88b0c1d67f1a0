//! All changes between two trees, grouped as in Vi-Delta by block and then by operation (P-VISUAL 5.1; docs/papers.md,
//! Vi-DIFF and Vi-Delta).

use std::str::FromStr;

use super::items::ItemDelta;
use crate::page::layout::Rect;
use crate::page::segment::{
    Block, BlockRef, BlockRole, BlockTree, ElementPositions, Image, Link, NodeId, Text,
};
use crate::text::typography::without_typography;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum ElementKind {
    Link,
    Image,
    Text,
}

impl ElementKind {
    pub const ALL: [ElementKind; 3] = [ElementKind::Link, ElementKind::Image, ElementKind::Text];

    /// `link`, `image` or `text`.
    pub fn name(self) -> &'static str {
        match self {
            ElementKind::Link => "link",
            ElementKind::Image => "image",
            ElementKind::Text => "text",
        }
    }
}

impl FromStr for ElementKind {
    type Err = String;

    fn from_str(text: &str) -> Result<ElementKind, String> {
        let found = ElementKind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("{text:?} is not a kind of element; write link, image or text"))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum OperationKind {
    Insert,
    Delete,
    Update,
    Move,
}

impl OperationKind {
    pub const ALL: [OperationKind; 4] =
        [OperationKind::Insert, OperationKind::Delete, OperationKind::Update, OperationKind::Move];

    /// `insert`, `delete`, `update` or `move`.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Insert => "insert",
            OperationKind::Delete => "delete",
            OperationKind::Update => "update",
            OperationKind::Move => "move",
        }
    }
}

impl FromStr for OperationKind {
    type Err = String;

    fn from_str(text: &str) -> Result<OperationKind, String> {
        let found = OperationKind::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("{text:?} is not an operation; write insert, delete, update or move"))
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Element {
    Link(Link),
    Image(Image),
    Text(Text),
}

impl Element {
    pub fn kind(&self) -> ElementKind {
        match self {
            Element::Link(_) => ElementKind::Link,
            Element::Image(_) => ElementKind::Image,
            Element::Text(_) => ElementKind::Text,
        }
    }

    pub fn id(&self) -> NodeId {
        match self {
            Element::Link(link) => link.id,
            Element::Image(image) => image.id,
            Element::Text(text) => text.id,
        }
    }

    pub(super) fn id_mut(&mut self) -> &mut NodeId {
        match self {
            Element::Link(link) => &mut link.id,
            Element::Image(image) => &mut image.id,
            Element::Text(text) => &mut text.id,
        }
    }

    /// The visible text: the name of a link or image, or the text itself.
    pub fn text(&self) -> &str {
        match self {
            Element::Link(link) => &link.name,
            Element::Image(image) => &image.name,
            Element::Text(text) => &text.text,
        }
    }

    /// The target of a link or the source of an image. Empty for a text.
    pub fn url(&self) -> &str {
        match self {
            Element::Link(link) => &link.url,
            Element::Image(image) => &image.source,
            Element::Text(_) => "",
        }
    }

    /// Creates an element whose ID covers all of its content.
    pub(super) fn new(kind: ElementKind, text: &str, url: &str) -> Element {
        match kind {
            ElementKind::Link => Element::Link(Link::new(text, url)),
            ElementKind::Image => Element::Image(Image::new(text, url)),
            ElementKind::Text => Element::Text(Text::new(text)),
        }
    }

    /// The links, images and texts of a block itself, without those of its child blocks.
    pub(crate) fn in_block(block: &Block) -> impl Iterator<Item = Element> {
        let links = block.links.iter().cloned().map(Element::Link);
        let images = block.images.iter().cloned().map(Element::Image);
        links.chain(images).chain(block.texts.iter().cloned().map(Element::Text))
    }
}

/// An element that was edited: its name, its URL or at least half of its words are unchanged.
#[derive(Clone, PartialEq, Debug)]
pub struct Update {
    /// Index among the block's elements of this kind, before.
    pub index: u32,
    pub before: Element,
    pub after: Element,
    /// Of a text with links: its word distance outside their names, which the published forms of importance count.
    pub distance_outside_links: Option<f32>,
}

/// Paragraphs that were merged or split: the same words in a different number of texts, perhaps edited.
#[derive(Clone, PartialEq, Debug)]
pub struct Regrouping {
    /// The texts before, with their indexes.
    pub before: Vec<(u32, Element)>,
    /// The texts after, with their indexes.
    pub after: Vec<(u32, Element)>,
    /// All words of the texts before and after.
    joined: [Element; 2],
}

impl Regrouping {
    pub fn new(before: Vec<(u32, Element)>, after: Vec<(u32, Element)>) -> Regrouping {
        let join = |texts: &[(u32, Element)]| {
            let texts: Vec<&str> = texts.iter().map(|(_, element)| element.text()).collect();
            Element::Text(Text::new(texts.join(" ")))
        };
        let joined = [join(&before), join(&after)];
        Regrouping { before, after, joined }
    }

    /// Whether words changed too.
    pub fn is_edited(&self) -> bool {
        let [before, after] = &self.joined;
        without_typography(before.text()) != without_typography(after.text())
    }
}

/// Links of a block whose names are part of a text that changed too. Their words count once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinksInTexts {
    /// Indexes of inserted links after.
    pub inserted: Vec<u32>,
    /// Indexes of deleted links before.
    pub deleted: Vec<u32>,
    /// Indexes of updated links before.
    pub updated: Vec<u32>,
}

/// The changes within a block that exists in both versions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockDelta {
    /// Reference of the block before.
    pub before: BlockRef,
    /// Reference of the block after.
    pub after: BlockRef,
    /// The block's share of the page's importance, after.
    pub importance: f32,
    /// The same before. Deletions are weighed by the block's importance before.
    pub importance_before: f32,
    pub role: BlockRole,
    /// Number of links, images and texts in both versions together. An updated element counts once.
    pub n_elements: [u32; 3],
    /// Number of words in the block before.
    pub n_words: u32,
    /// Inserted elements, with their index among those of their kind after.
    pub inserted: Vec<(u32, Element)>,
    /// Deleted elements, with their index among those of their kind before.
    pub deleted: Vec<(u32, Element)>,
    pub updated: Vec<Update>,
    /// Indexes of inserted links whose target was already linked from the page before.
    pub again: Vec<u32>,
    /// Indexes of deleted links whose target is still linked from the page after.
    pub still: Vec<u32>,
    /// Links whose words are counted with the change of a text.
    pub in_texts: LinksInTexts,
    /// Merged and split paragraphs.
    pub regrouped: Vec<Regrouping>,
    /// Changed orders, which a reader does not notice: for each kind, the old ranks of the remaining elements in their
    /// new order.
    pub reordered: Vec<(ElementKind, Vec<u32>)>,
    /// Elements with equal IDs that differ in ignored parameters only, with their index after. A reader does not
    /// notice them.
    pub respelled: Vec<(u32, Element)>,
}

impl BlockDelta {
    /// Whether a reader sees a change.
    pub fn has_operations(&self) -> bool {
        !(self.inserted.is_empty() && self.deleted.is_empty() && self.updated.is_empty())
            || self.regrouped.iter().any(Regrouping::is_edited)
    }
}

/// An element that moved to a different block.
#[derive(Clone, PartialEq, Debug)]
pub struct ElementMove {
    /// The block that contained it before.
    pub from: BlockRef,
    /// Its index there among elements of its kind.
    pub from_index: u32,
    /// The block that contains it after.
    pub to: BlockRef,
    /// Its index there.
    pub to_index: u32,
    /// Importance of the new block.
    pub importance: f32,
    /// The element as it is after.
    pub element: Element,
    /// The element as it was, if it was edited too.
    pub before: Option<Element>,
    /// Whether it is a link whose name is part of a text that moved too.
    pub is_in_text: bool,
}

/// A change of the block tree itself.
#[derive(Clone, PartialEq, Debug)]
pub enum BlockOperation {
    /// A new block at its new reference, with its new content only. Blocks and elements that existed elsewhere are
    /// separate moves.
    Insert(Block),
    /// A deleted block at its old reference, with its deleted content only.
    Delete(Block),
    /// A block whose parent or whose order among its siblings changed.
    Move {
        /// Reference before.
        from: BlockRef,
        /// Reference after.
        to: BlockRef,
        /// The block's share of the page's importance, after.
        importance: f32,
    },
}

/// The changed box, coherence, importance or role of a block. It is stored, but does not count as an operation.
#[derive(Clone, PartialEq, Debug)]
pub struct Appearance {
    pub block: BlockRef,
    /// Box, when it changed.
    pub rect: Option<Rect>,
    /// Degree of coherence, when it changed.
    pub doc: Option<u8>,
    /// Importance of a leaf, when it changed.
    pub importance: Option<f32>,
    /// Role, when it changed.
    pub role: Option<BlockRole>,
    /// Whether it is one click away, when that changed.
    pub is_collapsed: Option<bool>,
    /// Positions of links and images among the texts, when they changed.
    pub places: Option<ElementPositions>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Delta {
    /// URL of the page, after.
    pub url: String,
    /// Engine of the tree after.
    pub engine: String,
    /// Version before.
    pub from: String,
    /// Version after.
    pub to: String,
    /// Length of the page before as a multiple of what a reader reads of a page; at least 1.
    pub length: f32,
    /// Whether both versions contain the same words in the same order.
    pub has_same_words: bool,
    /// Words of the longer version; 0 in a delta of an earlier release.
    pub n_page_words: u32,
    /// Words that only one version contains, in any order.
    pub n_other_words: u32,
    /// Inserted, deleted and moved blocks.
    pub structure: Vec<BlockOperation>,
    /// Inserted or deleted wrappers, and moved blocks that leave the reading order unchanged. A reader does not notice
    /// them.
    pub nested: Vec<BlockOperation>,
    /// Changes within blocks that exist in both versions.
    pub blocks: Vec<BlockDelta>,
    /// Elements that moved between blocks.
    pub moves: Vec<ElementMove>,
    /// Elements that moved between blocks and leave the reading order unchanged. A reader does not notice them.
    pub shifted: Vec<ElementMove>,
    /// Changed boxes and weights.
    pub appearances: Vec<Appearance>,
    /// Changes of the item list. `None` if the lists are equal, except on a listing page that changed elsewhere.
    pub items: Option<ItemDelta>,
    /// The complete new version, if the stored delta would have been longer. [`super::diff`] then finds the
    /// operations.
    pub replacement: Option<Box<BlockTree>>,
}

/// The object of an operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Subject<'a> {
    /// An element of a block. `before` is missing for an insertion and `after` for a deletion.
    #[allow(missing_docs)]
    Element { before: Option<&'a Element>, after: Option<&'a Element> },
    /// A block. `None` if it only moved.
    Block(Option<&'a Block>),
}

/// One change, as used by importance, reports and queries.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Operation<'a> {
    pub kind: OperationKind,
    pub subject: Subject<'a>,
    /// Reference of the block before, if it existed.
    pub block_before: Option<&'a [u16]>,
    /// Reference of the block after, if it exists.
    pub block_after: Option<&'a [u16]>,
    /// The delta of the block that contains the element.
    pub within: Option<&'a BlockDelta>,
    /// Importance of the block.
    pub importance: f32,
    /// Role of the block, if known.
    pub role: Option<BlockRole>,
    /// Whether it inserts or deletes a link to a page that is linked before and after anyway.
    pub is_repeated: bool,
    /// Whether it concerns a link whose name is part of a text with an operation of its own.
    pub is_in_text: bool,
    /// Of an updated text with links: its word distance outside their names.
    pub distance_outside_links: Option<f32>,
}

impl<'a> Operation<'a> {
    /// The kind of the element. `None` for a block.
    pub fn element_kind(&self) -> Option<ElementKind> {
        self.element().map(Element::kind)
    }

    /// The new element, or the old one if it was deleted.
    pub fn element(&self) -> Option<&'a Element> {
        match self.subject {
            Subject::Element { before, after } => after.or(before),
            Subject::Block(_) => None,
        }
    }

    /// The number of elements of its kind that stayed before an inserted or deleted element of a block. A deletion and
    /// an insertion with the same number replace one element with another.
    pub fn place(&self) -> Option<usize> {
        let (block, element) = (self.within?, self.element()?);
        let changed = match self.kind {
            OperationKind::Insert => &block.inserted,
            OperationKind::Delete => &block.deleted,
            OperationKind::Update | OperationKind::Move => return None,
        };
        if block.inserted.len() + block.deleted.len() > MAX_REPLACEMENTS {
            return None;
        }
        let found = places(changed, element.kind()).find(|(_, other)| std::ptr::eq(*other, element));
        found.map(|(place, _)| place)
    }

    /// The element that an inserted one replaces, or that replaces a deleted one.
    pub fn counterpart(&self) -> Option<&'a Element> {
        let (block, element, place) = (self.within?, self.element()?, self.place()?);
        let others = match self.kind {
            OperationKind::Insert => &block.deleted,
            _ => &block.inserted,
        };
        places(others, element.kind()).find(|(other, _)| *other == place).map(|(_, other)| other)
    }

    /// `link`, `image`, `text` or `block`.
    pub fn subject_name(&self) -> &'static str {
        self.element_kind().map_or("block", ElementKind::name)
    }
}

/// In a block with more insertions and deletions, replacements are not searched: each search passes all of them.
const MAX_REPLACEMENTS: usize = 300;

/// The inserted or deleted elements of a kind, each with the number of elements that stayed before it.
fn places(changed: &[(u32, Element)], kind: ElementKind) -> impl Iterator<Item = (usize, &Element)> {
    let alike = changed.iter().filter(move |(_, element)| element.kind() == kind).enumerate();
    alike.map(|(n_before, (index, element))| ((*index as usize).saturating_sub(n_before), element))
}

impl Default for Delta {
    /// An empty delta of a short page.
    fn default() -> Delta {
        Delta {
            url: String::new(),
            engine: String::new(),
            from: String::new(),
            to: String::new(),
            length: 1.0,
            has_same_words: false,
            n_page_words: 0,
            n_other_words: 0,
            structure: Vec::new(),
            nested: Vec::new(),
            blocks: Vec::new(),
            moves: Vec::new(),
            shifted: Vec::new(),
            appearances: Vec::new(),
            items: None,
            replacement: None,
        }
    }
}

impl Delta {
    /// Whether a reader sees no change. Boxes may have moved.
    pub fn is_empty(&self) -> bool {
        self.replacement.is_none() && self.operations().next().is_none()
    }

    /// Whether nothing changed at all, including boxes and ignored parameters.
    #[cfg(test)]
    pub(super) fn is_identity(&self) -> bool {
        self.structure.is_empty()
            && self.blocks.is_empty()
            && self.moves.is_empty()
            && self.nested.is_empty()
            && self.shifted.is_empty()
            && self.appearances.is_empty()
            && self.items.is_none()
            && self.replacement.is_none()
    }

    /// All operations: first blocks, then elements block by block, then moves of elements.
    pub fn operations(&self) -> impl Iterator<Item = Operation<'_>> {
        let structure = self.structure.iter().map(block_operation);
        let blocks = self.blocks.iter().flat_map(operations_within);
        structure.chain(blocks).chain(self.moves.iter().map(element_move))
    }
}

fn block_operation(operation: &BlockOperation) -> Operation<'_> {
    let (kind, block) = match operation {
        BlockOperation::Insert(block) => (OperationKind::Insert, Some(block)),
        BlockOperation::Delete(block) => (OperationKind::Delete, Some(block)),
        BlockOperation::Move { .. } => (OperationKind::Move, None),
    };
    let (block_before, block_after, importance) = match operation {
        BlockOperation::Insert(block) => (None, Some(block.reference.as_slice()), block.importance),
        BlockOperation::Delete(block) => (Some(block.reference.as_slice()), None, block.importance),
        BlockOperation::Move { from, to, importance } => {
            (Some(from.0.as_slice()), Some(to.0.as_slice()), *importance)
        }
    };
    let role = block.map(|block| block.role);
    Operation {
        kind,
        subject: Subject::Block(block),
        block_before,
        block_after,
        within: None,
        importance,
        role,
        is_repeated: false,
        is_in_text: false,
        distance_outside_links: None,
    }
}

fn operations_within(block: &BlockDelta) -> impl Iterator<Item = Operation<'_>> {
    let operation = move |kind, before, after| Operation {
        kind,
        subject: Subject::Element { before, after },
        block_before: Some(block.before.0.as_slice()),
        block_after: Some(block.after.0.as_slice()),
        within: Some(block),
        importance: block.importance,
        role: Some(block.role),
        is_repeated: false,
        is_in_text: false,
        distance_outside_links: None,
    };
    let is_listed = |links: &[u32], element: &Element, place: &u32| {
        element.kind() == ElementKind::Link && links.binary_search(place).is_ok()
    };
    let inserted = block.inserted.iter().map(move |(place, e)| Operation {
        is_repeated: is_listed(&block.again, e, place),
        is_in_text: is_listed(&block.in_texts.inserted, e, place),
        ..operation(OperationKind::Insert, None, Some(e))
    });
    let deleted = block.deleted.iter().map(move |(place, e)| Operation {
        is_repeated: is_listed(&block.still, e, place),
        is_in_text: is_listed(&block.in_texts.deleted, e, place),
        ..operation(OperationKind::Delete, Some(e), None)
    });
    let updated = block.updated.iter().map(move |update| Operation {
        is_in_text: is_listed(&block.in_texts.updated, &update.before, &update.index),
        distance_outside_links: update.distance_outside_links,
        ..operation(OperationKind::Update, Some(&update.before), Some(&update.after))
    });
    let regrouped = block.regrouped.iter().filter(|regrouping| regrouping.is_edited());
    let regrouped = regrouped.map(move |Regrouping { joined: [before, after], .. }| {
        operation(OperationKind::Update, Some(before), Some(after))
    });
    inserted.chain(deleted).chain(updated).chain(regrouped)
}

/// A reader sees an edit first, wherever the text is now.
fn element_move(moved: &ElementMove) -> Operation<'_> {
    let before = moved.before.as_ref();
    Operation {
        kind: if before.is_some() { OperationKind::Update } else { OperationKind::Move },
        subject: Subject::Element { before: before.or(Some(&moved.element)), after: Some(&moved.element) },
        block_before: Some(&moved.from.0),
        block_after: Some(&moved.to.0),
        within: None,
        importance: moved.importance,
        role: None,
        is_repeated: false,
        is_in_text: moved.is_in_text,
        distance_outside_links: None,
    }
}
