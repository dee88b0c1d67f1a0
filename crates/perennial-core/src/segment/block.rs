//! The tree of blocks and what its leaves hold; the IDs by which a diff stops early (P-VISUAL 4.2).

use crate::layout::Rect;

/// A hash of a node's content and its children's IDs: equal IDs mean equal content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NodeId(pub u64);

/// What a block is to a reader.
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

/// A run of text outside links: a paragraph, a heading, a cell.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Text {
    /// Hash of the text.
    pub id: NodeId,
    /// White space folded.
    pub text: String,
}

/// A region of the page. Inner blocks have children, leaf blocks have content, never both.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Block {
    /// Position in reading order, one number a level: [1, 2] is B1.2.
    pub reference: Vec<u16>,
    /// Hash of the content and of the children's IDs, in order; geometry and importance have no part in it.
    pub id: NodeId,
    /// Where it is.
    pub rect: Rect,
    /// Degree of coherence, 1 to 10.
    pub doc: u8,
    /// Share of the page's importance; sums to 1 over the leaves, an inner block has its leaves' sum.
    pub importance: f32,
    /// What it is to a reader.
    pub role: BlockRole,
    /// Blocks within, in reading order.
    pub children: Vec<Block>,
    /// Anchors, in reading order.
    pub links: Vec<Link>,
    /// Images, in reading order.
    pub images: Vec<Image>,
    /// Texts, in reading order.
    pub texts: Vec<Text>,
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
}
