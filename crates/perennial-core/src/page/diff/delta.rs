//! All changes between two trees, grouped as in Vi-Delta by block and then by operation (P-VISUAL 5.1; docs/papers.md,
//! Vi-DIFF and Vi-Delta).

use std::str::FromStr;

use super::items::ItemDelta;
use crate::page::layout::Rect;
use crate::page::segment::{
    Block, BlockRef, BlockRole, BlockTree, ElementPositions, Image, Link, NodeId, Text,
};

/// The kinds of content of a leaf block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum ElementKind {
    Link,
    Image,
    Text,
}

impl ElementKind {
    /// All kinds, in the order of Vi-XML.
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
        found.ok_or_else(|| format!("{text:?} is no kind of element: write link, image or text"))
    }
}

/// What happens to an element or a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum OperationKind {
    Insert,
    Delete,
    Update,
    Move,
}

impl OperationKind {
    /// All kinds.
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
        found.ok_or_else(|| format!("{text:?} is no operation: write insert, delete, update or move"))
    }
}

/// A link, an image or a text.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Element {
    Link(Link),
    Image(Image),
    Text(Text),
}

impl Element {
    /// Its kind.
    pub fn kind(&self) -> ElementKind {
        match self {
            Element::Link(_) => ElementKind::Link,
            Element::Image(_) => ElementKind::Image,
            Element::Text(_) => ElementKind::Text,
        }
    }

    /// The content's hash.
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

    /// What a reader reads: the name, or the text.
    pub fn text(&self) -> &str {
        match self {
            Element::Link(link) => &link.name,
            Element::Image(image) => &image.name,
            Element::Text(text) => &text.text,
        }
    }

    /// Where it leads or comes from; empty for a text.
    pub fn address(&self) -> &str {
        match self {
            Element::Link(link) => &link.address,
            Element::Image(image) => &image.source,
            Element::Text(_) => "",
        }
    }

    /// An element whose ID covers all of its content.
    pub(super) fn new(kind: ElementKind, text: &str, address: &str) -> Element {
        match kind {
            ElementKind::Link => Element::Link(Link::new(text, address)),
            ElementKind::Image => Element::Image(Image::new(text, address)),
            ElementKind::Text => Element::Text(Text::new(text)),
        }
    }

    /// The links, images and texts of a block, without those of the blocks within it.
    pub(crate) fn in_block(block: &Block) -> impl Iterator<Item = Element> {
        let links = block.links.iter().cloned().map(Element::Link);
        let images = block.images.iter().cloned().map(Element::Image);
        links.chain(images).chain(block.texts.iter().cloned().map(Element::Text))
    }
}

/// An element that became another in its block: its name or its address stayed, or at least half of its words.
#[derive(Clone, PartialEq, Debug)]
pub struct Update {
    /// Place among the block's elements of its kind before.
    pub index: u32,
    /// The element before.
    pub before: Element,
    /// The element after.
    pub after: Element,
}

/// The changes within one block that both versions have.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockDelta {
    /// Reference of the block before.
    pub before: BlockRef,
    /// Reference of the block after.
    pub after: BlockRef,
    /// The block's share of the page's importance, after.
    pub importance: f32,
    /// The same before: what went weighs by what the block was.
    pub importance_before: f32,
    /// Its role after.
    pub role: BlockRole,
    /// Links, images and texts of the block in both versions together; an updated one counts once.
    pub n_elements: [u32; 3],
    /// Words of texts and names in the block before.
    pub n_words: u32,
    /// Elements that came, with their place among those of their kind after.
    pub inserted: Vec<(u32, Element)>,
    /// Elements that went, with their place among those of their kind before.
    pub deleted: Vec<(u32, Element)>,
    /// Elements that became others.
    pub updated: Vec<Update>,
    /// ElementPositions of the inserted links that lead where another link of the page led before.
    pub again: Vec<u32>,
    /// ElementPositions of the deleted links that lead where another link of the page leads after.
    pub still: Vec<u32>,
    /// No change to a reader: for each kind whose remaining elements stand in another order, that order, as
    /// their ranks in the order before.
    pub reordered: Vec<(ElementKind, Vec<u32>)>,
    /// No change to a reader: elements whose IDs are equal because they differ only in ignored parameters, with their
    /// place after.
    pub respelled: Vec<(u32, Element)>,
}

impl BlockDelta {
    /// Whether a reader sees a change.
    pub fn has_operations(&self) -> bool {
        !(self.inserted.is_empty() && self.deleted.is_empty() && self.updated.is_empty())
    }
}

/// An element that left one block and stands in another.
#[derive(Clone, PartialEq, Debug)]
pub struct ElementMove {
    /// The block it left, in the version before.
    pub from: BlockRef,
    /// Its place there among those of its kind.
    pub from_index: u32,
    /// The block it came to, in the version after.
    pub to: BlockRef,
    /// Its place there.
    pub to_index: u32,
    /// Importance of the block it came to.
    pub importance: f32,
    /// The element as it is after.
    pub element: Element,
}

/// A change of the tree of blocks itself.
#[derive(Clone, PartialEq, Debug)]
pub enum BlockOperation {
    /// A new block at its reference after, with all of it that is new: blocks and elements that were
    /// elsewhere before are moves into it.
    Insert(Block),
    /// A block that has gone from its reference before, with all of it that went.
    Delete(Block),
    /// A block with another parent or another order among its siblings.
    Move {
        /// Reference before.
        from: BlockRef,
        /// Reference after.
        to: BlockRef,
        /// The block's share of the page's importance, after.
        importance: f32,
    },
}

/// The new box, coherence, importance or role of a block. It is no operation, but part of the version.
#[derive(Clone, PartialEq, Debug)]
pub struct Appearance {
    /// The block, after.
    pub block: BlockRef,
    /// Box, when it changed.
    pub rect: Option<Rect>,
    /// Degree of coherence, when it changed.
    pub doc: Option<u8>,
    /// Importance of a leaf, when it changed.
    pub importance: Option<f32>,
    /// Role, when it changed.
    pub role: Option<BlockRole>,
    /// Where links and images stand among the texts, when it changed.
    pub places: Option<ElementPositions>,
}

/// All changes between two trees.
#[derive(Clone, PartialEq, Debug)]
pub struct Delta {
    /// Address of the page, after.
    pub url: String,
    /// Engine of the tree after.
    pub engine: String,
    /// Version before.
    pub from: String,
    /// Version after.
    pub to: String,
    /// How many times what a reader takes in at once there was to read before; at least 1.
    pub length: f32,
    /// Whether the same words are read in the same order before and after.
    pub has_same_words: bool,
    /// Blocks inserted, deleted, moved.
    pub structure: Vec<BlockOperation>,
    /// No change to a reader: wrappers that came or went, and blocks that are elsewhere in the tree and are read in the same
    /// order.
    pub nested: Vec<BlockOperation>,
    /// Changes within blocks that both versions have.
    pub blocks: Vec<BlockDelta>,
    /// Elements that went from block to block.
    pub moves: Vec<ElementMove>,
    /// No change to a reader: elements that are in another block and are read in the same order.
    pub shifted: Vec<ElementMove>,
    /// Boxes and weights that changed.
    pub appearances: Vec<Appearance>,
    /// Changes of the items; `None` when the lists are equal, unless the page is a hub and something else on it changed.
    pub items: Option<ItemDelta>,
    /// The version after as a whole, when a stored delta would have been longer. The operations are then found by
    /// [`super::diff`].
    pub replacement: Option<Box<BlockTree>>,
}

/// What an operation is about.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Subject<'a> {
    /// An element of a block; before or after is absent when it was inserted or deleted.
    #[allow(missing_docs)]
    Element { before: Option<&'a Element>, after: Option<&'a Element> },
    /// A block; absent when it only moved.
    Block(Option<&'a Block>),
}

/// One change, as the importance, a list or a query sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Operation<'a> {
    /// Its kind.
    pub kind: OperationKind,
    /// The element or block.
    pub subject: Subject<'a>,
    /// The block before, if there was one.
    pub block_before: Option<&'a [u16]>,
    /// The block after, if there is one.
    pub block_after: Option<&'a [u16]>,
    /// The changes of the block around it, for a change within a block.
    pub within: Option<&'a BlockDelta>,
    /// Importance of the block.
    pub importance: f32,
    /// Role of the block where known.
    pub role: Option<BlockRole>,
    /// Whether it is about a link that leads where the page leads anyway, before and after.
    pub is_repeated: bool,
}

impl<'a> Operation<'a> {
    /// Kind of the element; `None` for a block.
    pub fn element_kind(&self) -> Option<ElementKind> {
        self.element().map(Element::kind)
    }

    /// The element after, or before when it has gone.
    pub fn element(&self) -> Option<&'a Element> {
        match self.subject {
            Subject::Element { before, after } => after.or(before),
            Subject::Block(_) => None,
        }
    }

    /// `link`, `image`, `text` or `block`.
    pub fn subject_name(&self) -> &'static str {
        self.element_kind().map_or("block", ElementKind::name)
    }
}

impl Default for Delta {
    /// No change of a short page.
    fn default() -> Delta {
        Delta {
            url: String::new(),
            engine: String::new(),
            from: String::new(),
            to: String::new(),
            length: 1.0,
            has_same_words: false,
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
    /// Whether a reader sees no change. Boxes may have shifted.
    pub fn is_empty(&self) -> bool {
        self.replacement.is_none() && self.operations().next().is_none()
    }

    /// Whether nothing changed, neither boxes nor ignored parameters.
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

    /// Every operation: structure first, then block by block, then moves of elements.
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
    }
}

fn operations_within(block: &BlockDelta) -> impl Iterator<Item = Operation<'_>> {
    let operation = move |kind, before, after, is_repeated| Operation {
        kind,
        subject: Subject::Element { before, after },
        block_before: Some(block.before.0.as_slice()),
        block_after: Some(block.after.0.as_slice()),
        within: Some(block),
        importance: block.importance,
        role: Some(block.role),
        is_repeated,
    };
    let is_link = |element: &Element| element.kind() == ElementKind::Link;
    let inserted = block.inserted.iter().map(move |(place, e)| {
        let is_repeated = is_link(e) && block.again.binary_search(place).is_ok();
        operation(OperationKind::Insert, None, Some(e), is_repeated)
    });
    let deleted = block.deleted.iter().map(move |(place, e)| {
        let is_repeated = is_link(e) && block.still.binary_search(place).is_ok();
        operation(OperationKind::Delete, Some(e), None, is_repeated)
    });
    let updated = block.updated.iter().map(move |update| {
        operation(OperationKind::Update, Some(&update.before), Some(&update.after), false)
    });
    inserted.chain(deleted).chain(updated)
}

fn element_move(moved: &ElementMove) -> Operation<'_> {
    Operation {
        kind: OperationKind::Move,
        subject: Subject::Element { before: Some(&moved.element), after: Some(&moved.element) },
        block_before: Some(&moved.from.0),
        block_after: Some(&moved.to.0),
        within: None,
        importance: moved.importance,
        role: None,
        is_repeated: false,
    }
}
