//! A rendered page: tag, text, box, font and colours of each DOM node (P-VISUAL 4; docs/papers.md, Blocks and Vi-XML).
//!
//! Both the embedded engine and Chromium fill these types. Segmentation uses nothing else, so it can be tested without
//! an engine. A layout borrows its text from the parsed page; a renderer computes the [`Boxes`].

use std::borrow::Cow;

/// A rectangle in CSS pixels of a page with a width of [`VIEWPORT_WIDTH`]; `y` grows downwards.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rect {
    pub x: f32,
    pub y: f32,
    pub w: f32,
    pub h: f32,
}

impl Rect {
    pub fn right(&self) -> f32 {
        self.x + self.w
    }

    pub fn bottom(&self) -> f32 {
        self.y + self.h
    }

    /// Width times height, or 0 for an empty box.
    pub fn area(&self) -> f32 {
        self.w.max(0.0) * self.h.max(0.0)
    }

    /// The smallest rectangle around both. Empty rectangles are ignored.
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

/// Width of the viewport for every layout.
pub const VIEWPORT_WIDTH: f32 = 1280.0;

/// Height of the viewport, which is the position of the fold.
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

/// The layout mode of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Display {
    /// `display: none`, or not laid out.
    None,
    /// In a line of text.
    #[default]
    Inline,
    /// On lines by itself.
    Block,
    /// A flex or grid container.
    FlexOrGrid,
    /// A table or a part of it.
    Table,
}

/// A node of a parsed page, before styles are applied.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ParsedNode<'a> {
    /// Index of the parent. Parents come before children. `None` for the root only.
    pub parent: Option<u32>,
    /// Lower-case tag name; empty for a text node.
    pub tag: &'a str,
    pub attributes: Vec<(&'a str, &'a str)>,
    pub text: &'a str,
}

/// The values that a renderer computes for a node of a parsed page.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct NodeBox {
    /// Index of the node among the [`ParsedNode`]s of the page.
    pub source: u32,
    /// Index of the parent in [`Boxes::nodes`]. Parents come before children. `None` for the root only.
    pub parent: Option<u32>,
    pub rect: Rect,
    /// Font size in CSS pixels.
    pub font_size: f32,
    /// Font weight, 100 to 900.
    pub font_weight: u16,
    /// Text colour.
    pub color: Rgba,
    /// The node's own background, not that of its parent.
    pub background: Rgba,
    /// Whether it has a background image, which counts as its own background.
    pub has_background_image: bool,
    pub display: Display,
    /// Whether it has `position: fixed` or `sticky`. If so, its position on the page varies.
    pub is_fixed: bool,
    /// False if a reader cannot see it: `display: none`, `visibility: hidden`, opacity 0 or `hidden`.
    pub is_visible: bool,
    /// Whether it is one click away, as in a closed `<details>` or a tab. Such content counts as visible.
    pub is_collapsed: bool,
}

/// A layout without text. It fits every page with the same structure.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Boxes {
    /// Name and version of the engine.
    pub engine: String,
    /// Width of the whole page.
    pub width: f32,
    /// Height of the whole page.
    pub height: f32,
    /// Whether the page was read without its styles, because almost nothing was visible with them.
    pub is_unstyled: bool,
    /// The laid-out nodes in document order. The first is the root element.
    pub nodes: Vec<NodeBox>,
}

impl Boxes {
    /// Combines the boxes with the text of a page. `None` if the page lacks one of the nodes.
    pub fn fill<'a>(&self, page: &[ParsedNode<'a>], base_url: &str) -> Option<Layout<'a>> {
        let filled = self.nodes.iter().map(|own| Some(own.around(page.get(own.source as usize)?)));
        Some(Layout {
            base_url: base_url.to_owned(),
            engine: self.engine.clone(),
            width: self.width,
            height: self.height,
            is_unstyled: self.is_unstyled,
            nodes: filled.collect::<Option<_>>()?,
        })
    }
}

impl NodeBox {
    fn around<'a>(&self, node: &ParsedNode<'a>) -> LayoutNode<'a> {
        let attribute = |&(name, value): &(&'a str, &'a str)| (Cow::Borrowed(name), Cow::Borrowed(value));
        // White space between words is reduced to one space.
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
            is_collapsed: self.is_collapsed,
        }
    }
}

/// An element or a run of text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LayoutNode<'a> {
    /// Index of the parent in [`Layout::nodes`]. Parents come before children. `None` for the root only.
    pub parent: Option<u32>,
    /// Lower-case tag name; empty for a text node.
    pub tag: Cow<'a, str>,
    /// Attributes in document order, names in lower case; empty for a text node.
    pub attributes: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// The text of a text node with its original white space; empty for an element.
    pub text: Cow<'a, str>,
    pub rect: Rect,
    /// In CSS pixels.
    pub font_size: f32,
    /// 100 to 900.
    pub font_weight: u16,
    /// Text colour.
    pub color: Rgba,
    /// The node's own background, not that of its parent.
    pub background: Rgba,
    /// Whether it has a background image, which counts as its own background.
    pub has_background_image: bool,
    pub display: Display,
    /// Whether it has `position: fixed` or `sticky`. If so, its position on the page varies.
    pub is_fixed: bool,
    /// False if a reader cannot see it: `display: none`, `visibility: hidden`, opacity 0 or `hidden`.
    pub is_visible: bool,
    /// Whether it is one click away, as in a closed `<details>` or a tab. Such content counts as visible.
    pub is_collapsed: bool,
}

impl LayoutNode<'_> {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Whether it is a run of text.
    pub fn is_text(&self) -> bool {
        self.tag.is_empty()
    }
}

/// A rendered page: nodes in document order, parents before children.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Layout<'a> {
    /// The URL against which links resolve: that of the page or of its `<base>`.
    pub base_url: String,
    /// Name and version of the engine. Trees of different engines are never compared.
    pub engine: String,
    /// Width of the whole page.
    pub width: f32,
    /// Height of the whole page.
    pub height: f32,
    /// Whether the page was read without its styles, because almost nothing was visible with them.
    pub is_unstyled: bool,
    /// All nodes in document order. The first is the root element.
    pub nodes: Vec<LayoutNode<'a>>,
}

impl Layout<'_> {
    /// Copies all borrowed text.
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
            is_collapsed: node.is_collapsed,
        });
        Layout {
            nodes: nodes.collect(),
            base_url: self.base_url,
            engine: self.engine,
            width: self.width,
            height: self.height,
            is_unstyled: self.is_unstyled,
        }
    }
}
