//! A rendered page as types: for each DOM node its tag, text, box, font and colours (P-VISUAL 4; docs/papers.md, Blocks
//! and Vi-XML).
//!
//! Both engines, the embedded one and Chromium, fill these types. Segmentation reads nothing else, so that it can
//! be tested without an engine.

/// A rectangle in CSS pixels of a page laid out at [`VIEWPORT_WIDTH`]; `y` grows downwards.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rect {
    /// Left edge.
    pub x: f32,
    /// Top edge.
    pub y: f32,
    /// Width.
    pub w: f32,
    /// Height.
    pub h: f32,
}

impl Rect {
    /// The right edge.
    pub fn right(&self) -> f32 {
        self.x + self.w
    }

    /// The lower edge.
    pub fn bottom(&self) -> f32 {
        self.y + self.h
    }

    /// Width times height, 0 for an empty box.
    pub fn area(&self) -> f32 {
        self.w.max(0.0) * self.h.max(0.0)
    }

    /// The smallest rectangle around both; an empty one adds nothing.
    pub fn union(&self, other: &Rect) -> Rect {
        if self.area() == 0.0 {
            return *other;
        }
        if other.area() == 0.0 {
            return *self;
        }
        let x = self.x.min(other.x);
        let y = self.y.min(other.y);
        Rect { x, y, w: self.right().max(other.right()) - x, h: self.bottom().max(other.bottom()) - y }
    }
}

/// Width of the viewport for which every page is laid out.
pub const VIEWPORT_WIDTH: f32 = 1280.0;

/// Height of the viewport, at which the fold lies.
pub const VIEWPORT_HEIGHT: f32 = 800.0;

/// A colour; `a` = 0 is transparent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[allow(missing_docs)]
pub struct Rgba {
    pub r: u8,
    pub g: u8,
    pub b: u8,
    pub a: u8,
}

/// How a node takes part in layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Display {
    /// `display: none`, or never laid out.
    None,
    /// Flows with text.
    #[default]
    Inline,
    /// Takes lines of its own.
    Block,
    /// A flex or grid container.
    FlexOrGrid,
    /// Tables and their parts.
    Table,
}

/// One element or one run of text.
#[derive(Clone, PartialEq, Debug)]
pub struct LayoutNode {
    /// Index of the parent in [`Layout::nodes`]; `None` for the root alone. Parents come before children.
    pub parent: Option<u32>,
    /// Lower-case tag name; empty for a text node.
    pub tag: String,
    /// Attributes in document order, names in lower case; empty for a text node.
    pub attributes: Vec<(String, String)>,
    /// The text of a text node with white space as in the document; empty for an element.
    pub text: String,
    /// Where it is.
    pub rect: Rect,
    /// Font size in CSS pixels.
    pub font_size: f32,
    /// Font weight, 100 to 900.
    pub font_weight: u16,
    /// Colour of text.
    pub color: Rgba,
    /// Background of its own, not that of the parent.
    pub background: Rgba,
    /// Whether it has a background image, which counts as a background of its own.
    pub has_background_image: bool,
    /// How it takes part in layout.
    pub display: Display,
    /// Whether it has `position: fixed` or `sticky`, so that it stays in view and has no place in the page.
    pub is_fixed: bool,
    /// False when a reader cannot see it: display none, visibility hidden, opacity 0, aria-hidden, hidden.
    pub is_visible: bool,
}

impl LayoutNode {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is a run of text and not an element.
    pub fn is_text(&self) -> bool {
        self.tag.is_empty()
    }
}

/// A rendered page: nodes in document order, each after its parent.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layout {
    /// The address against which links resolve: that of the page, or its `<base>`.
    pub base_url: String,
    /// Name and version of the engine. Trees of two engines are never compared.
    pub engine: String,
    /// Width of the whole page.
    pub width: f32,
    /// Height of the whole page.
    pub height: f32,
    /// All nodes in document order; the first is the root element.
    pub nodes: Vec<LayoutNode>,
}
