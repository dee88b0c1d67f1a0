//! A rendered page as types: for each DOM node its tag, text, box, font and colours (P-VISUAL 4; docs/papers.md, Blocks
//! and Vi-XML).
//!
//! Both engines, the embedded one and Chromium, fill these types. Segmentation reads nothing else, so that it can
//! be tested without an engine. A layout borrows its words from the parsed page; [`Boxes`] are what a renderer adds.

use std::borrow::Cow;

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

/// A node of a parsed page, before styles are applied.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParsedNode<'a> {
    /// Index of the parent; parents come before children. `None` for the root alone.
    pub parent: Option<u32>,
    /// Lower-case tag name; empty for a text node.
    pub tag: &'a str,
    /// Attributes in document order.
    pub attributes: Vec<(&'a str, &'a str)>,
    /// The text of a text node.
    pub text: &'a str,
}

/// What a renderer adds to a node of a parsed page.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct NodeBox {
    /// Index of the node among the [`ParsedNode`]s of the page.
    pub source: u32,
    /// Index of the parent in [`Boxes::nodes`]; `None` for the root alone. Parents come before children.
    pub parent: Option<u32>,
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

/// A layout without its words: they may be those of any page of the same structure.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Boxes {
    /// Name and version of what made them.
    pub engine: String,
    /// Width and height of the whole page.
    pub width: f32,
    /// See `width`.
    pub height: f32,
    /// The nodes that were laid out, in document order; the first is the root element.
    pub nodes: Vec<NodeBox>,
}

impl Boxes {
    /// The boxes around the words of a page. `None` when the page has no such nodes.
    pub fn fill<'a>(&self, page: &[ParsedNode<'a>], base_url: &str) -> Option<Layout<'a>> {
        let filled = self.nodes.iter().map(|own| Some(own.around(page.get(own.source as usize)?)));
        Some(Layout {
            base_url: base_url.to_owned(),
            engine: self.engine.clone(),
            width: self.width,
            height: self.height,
            nodes: filled.collect::<Option<_>>()?,
        })
    }
}

impl NodeBox {
    fn around<'a>(&self, node: &ParsedNode<'a>) -> LayoutNode<'a> {
        let attribute = |&(name, value): &(&'a str, &'a str)| (Cow::Borrowed(name), Cow::Borrowed(value));
        // Space between words is a space, whatever it is made of.
        let is_blank = node.tag.is_empty() && node.text.trim().is_empty();
        LayoutNode {
            parent: self.parent,
            tag: Cow::Borrowed(node.tag),
            attributes: node.attributes.iter().map(attribute).collect(),
            text: Cow::Borrowed(if is_blank { " " } else { node.text }),
            rect: self.rect,
            font_size: self.font_size,
            font_weight: self.font_weight,
            color: self.color,
            background: self.background,
            has_background_image: self.has_background_image,
            display: self.display,
            is_fixed: self.is_fixed,
            is_visible: self.is_visible,
        }
    }
}

/// One element or one run of text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LayoutNode<'a> {
    /// Index of the parent in [`Layout::nodes`]; `None` for the root alone. Parents come before children.
    pub parent: Option<u32>,
    /// Lower-case tag name; empty for a text node.
    pub tag: Cow<'a, str>,
    /// Attributes in document order, names in lower case; empty for a text node.
    pub attributes: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The text of a text node with white space as in the document; empty for an element.
    pub text: Cow<'a, str>,
    /// Where it is.
    pub rect: Rect,
    /// In CSS pixels.
    pub font_size: f32,
    /// 100 to 900.
    pub font_weight: u16,
    /// Colour of text.
    pub color: Rgba,
    /// Own background, not what shows through from the parent.
    pub background: Rgba,
    /// Has a background image, which counts as a background of its own.
    pub has_background_image: bool,
    /// How it takes part in layout.
    pub display: Display,
    /// `position: fixed` or `sticky`: it stays in view and belongs to no place in the page.
    pub is_fixed: bool,
    /// False when a reader cannot see it: display none, visibility hidden, opacity 0, aria-hidden, hidden.
    pub is_visible: bool,
}

impl LayoutNode<'_> {
    /// The value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Whether it is a run of text and not an element.
    pub fn is_text(&self) -> bool {
        self.tag.is_empty()
    }
}

/// A rendered page: nodes in document order, each after its parent.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layout<'a> {
    /// The address against which links resolve: that of the page, or its `<base>`.
    pub base_url: String,
    /// Name and version of the engine. Trees of two engines are never compared.
    pub engine: String,
    /// Width of the whole page.
    pub width: f32,
    /// Height of the whole page.
    pub height: f32,
    /// All nodes in document order; the first is the root element.
    pub nodes: Vec<LayoutNode<'a>>,
}

impl Layout<'_> {
    /// The same with words of its own.
    pub fn into_owned(self) -> Layout<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let nodes = self.nodes.into_iter().map(|node| LayoutNode {
            parent: node.parent,
            tag: own(node.tag),
            attributes: node.attributes.into_iter().map(|(name, value)| (own(name), own(value))).collect(),
            text: own(node.text),
            rect: node.rect,
            font_size: node.font_size,
            font_weight: node.font_weight,
            color: node.color,
            background: node.background,
            has_background_image: node.has_background_image,
            display: node.display,
            is_fixed: node.is_fixed,
            is_visible: node.is_visible,
        });
        Layout {
            nodes: nodes.collect(),
            base_url: self.base_url,
            engine: self.engine,
            width: self.width,
            height: self.height,
        }
    }
}
