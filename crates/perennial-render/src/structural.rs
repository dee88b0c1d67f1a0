//! Lays out a page by its tags alone, if the engine fails.
//!
//! Tags determine the blocks. A character counts as half an em, blocks are stacked, and the cells of a table row are
//! side by side. The algorithm takes linear time, cannot fail, and keeps every word in a block.

use perennial_core::page::layout::{Display, Layout, LayoutNode, Rect, Rgba, VIEWPORT_WIDTH};

use crate::alternative;
use crate::dom::{Dom, DomKind, DomNode};
use crate::engine::base_url;
use crate::scope::is_never_shown;

/// Name and version of this layout, as recorded in its results.
pub const ENGINE: &str = concat!("perennial-structural/", env!("CARGO_PKG_VERSION"));

const FONT_SIZE: f32 = 16.0;
const BODY_MARGIN: f32 = 8.0;
const BLACK: Rgba = Rgba { r: 0, g: 0, b: 0, a: 255 };
const LINK: Rgba = Rgba { r: 0, g: 0, b: 238, a: 255 };

/// Lays a page out by its tags.
pub fn layout<'a>(dom: &'a Dom, url: &str) -> Layout<'a> {
    let mut flow = Flow { dom, nodes: Vec::new(), blocks: Vec::new(), stand_ins: alternative::sizes(dom) };
    if let Some(root) = dom.root() {
        flow.run(root);
    }
    let height = flow.nodes.iter().map(|node| node.rect.bottom()).fold(0.0, f32::max);
    Layout {
        base_url: base_url(dom, url).to_string(),
        engine: ENGINE.to_string(),
        width: VIEWPORT_WIDTH,
        height,
        nodes: flow.nodes,
    }
}

enum WalkStep {
    Enter(u32, Option<u32>),
    Leave(u32, FlowKind),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FlowKind {
    Inline,
    Block,
    Row,
}

/// An open block, and the position of its next line or child.
struct OpenBlock {
    x: f32,
    y: f32,
    w: f32,
    /// Filled width and height of the current line.
    line_x: f32,
    line_h: f32,
    /// For a row: width of a cell, number of placed cells, lowest edge so far.
    row: Option<(f32, f32, f32)>,
    after: f32,
}

struct Flow<'a> {
    dom: &'a Dom,
    nodes: Vec<LayoutNode<'a>>,
    blocks: Vec<OpenBlock>,
    /// Sizes for images without a size of their own.
    stand_ins: Vec<Option<(u32, u32)>>,
}

impl<'a> Flow<'a> {
    fn run(&mut self, root: u32) {
        self.blocks.push(OpenBlock::new(0.0, 0.0, VIEWPORT_WIDTH));
        let mut steps = vec![WalkStep::Enter(root, None)];
        while let Some(step) = steps.pop() {
            match step {
                WalkStep::Enter(index, parent) => self.enter(index, parent, &mut steps),
                WalkStep::Leave(out, kind) => self.leave(out, kind),
            }
        }
    }

    fn enter(&mut self, index: u32, parent: Option<u32>, steps: &mut Vec<WalkStep>) {
        let dom = self.dom;
        let source = &dom.nodes[index as usize];
        match &source.kind {
            DomKind::Text(text) => self.text(text, parent),
            DomKind::Element { .. } => {
                let out = self.nodes.len() as u32;
                let kind = kind(source.tag());
                self.open(index, parent, kind);
                if self.nodes[out as usize].display == Display::None {
                    return;
                }
                steps.push(WalkStep::Leave(out, kind));
                if source.is_html() && !matches!(source.tag(), "select" | "textarea" | "iframe" | "object") {
                    let first = steps.len();
                    steps.extend(dom.children(index).map(|child| WalkStep::Enter(child, Some(out))));
                    steps[first..].reverse();
                }
            }
        }
    }

    fn open(&mut self, index: u32, parent: Option<u32>, kind: FlowKind) {
        let dom = self.dom;
        let source = &dom.nodes[index as usize];
        let mut node = element(source, parent.map(|parent| &self.nodes[parent as usize]));
        node.parent = parent;
        if node.display == Display::None {
            self.nodes.push(node);
            return;
        }
        if kind == FlowKind::Inline {
            node.rect = self.replaced(index);
            self.nodes.push(node);
            return;
        }
        let (before, after) = margins(source.tag(), node.font_size);
        let Some(open) = self.blocks.last_mut() else { return self.nodes.push(node) };
        open.end_line();
        let (x, y, w) = match &mut open.row {
            Some((cell_w, n, _)) => {
                let x = open.x + *cell_w * *n;
                *n += 1.0;
                (x, open.y, *cell_w)
            }
            None => {
                open.y += before;
                (open.x, open.y, open.w)
            }
        };
        let indent = indent(source.tag());
        node.rect = Rect { x, y, w, h: 0.0 };
        let mut block =
            OpenBlock::new(x + indent, y + body_margin(source.tag()), (w - 2.0 * indent).max(40.0));
        block.after = after;
        if kind == FlowKind::Row {
            let n_cells = dom.children(index).filter(|&child| dom.is_element(child)).count().max(1);
            block.row = Some((block.w / n_cells as f32, 0.0, y));
        }
        self.nodes.push(node);
        self.blocks.push(block);
    }

    fn leave(&mut self, out: u32, kind: FlowKind) {
        if kind == FlowKind::Inline {
            return self.join(out);
        }
        let Some(mut block) = self.blocks.pop() else { return };
        block.end_line();
        let bottom = block.row.map_or(block.y, |(_, _, bottom)| bottom);
        let node = &mut self.nodes[out as usize];
        node.rect.h = (bottom - node.rect.y).max(0.0) + body_margin(&node.tag);
        let bottom = node.rect.bottom() + block.after;
        if let Some(open) = self.blocks.last_mut() {
            match &mut open.row {
                Some((_, _, lowest)) => *lowest = lowest.max(bottom),
                None => open.y = bottom,
            }
        }
        self.join(out);
    }

    /// An inline element gets the union of its children.
    fn join(&mut self, out: u32) {
        let (rect, parent) = (self.nodes[out as usize].rect, self.nodes[out as usize].parent);
        if let Some(parent) =
            parent.filter(|&parent| kind(&self.nodes[parent as usize].tag) == FlowKind::Inline)
        {
            let above = &mut self.nodes[parent as usize];
            above.rect = above.rect.union(&rect);
        }
    }

    fn text(&mut self, text: &'a str, parent: Option<u32>) {
        let Some(parent) = parent else { return };
        let above = &self.nodes[parent as usize];
        let n_chars = text.split_whitespace().map(|word| word.chars().count() + 1).sum::<usize>();
        let mut node = text_node(above, parent, text);
        if n_chars > 0 {
            let (width, height) = (n_chars as f32 * node.font_size * 0.5, node.font_size * 1.25);
            node.rect = self.place(width, height);
        } else {
            node.text = " ".into();
        }
        self.nodes.push(node);
        self.join(self.nodes.len() as u32 - 1);
    }

    /// An image or a control counts as a long word of its line.
    fn replaced(&mut self, index: u32) -> Rect {
        let dom = self.dom;
        let source = &dom.nodes[index as usize];
        let size = |name: &str, default: f32| {
            let given = source
                .attribute(name)
                .and_then(|value| value.trim().trim_end_matches("px").parse::<f32>().ok());
            given.filter(|size| size.is_finite()).unwrap_or(default).clamp(0.0, 10_000.0)
        };
        match source.tag() {
            "img" | "svg" | "canvas" | "video" | "iframe" | "embed" | "object" => {
                let (w, h) = (size("width", 0.0), size("height", 0.0));
                match self.stand_ins[index as usize] {
                    _ if w * h > 0.0 => self.place(w, h),
                    Some((w, h)) => self.place(w as f32, h as f32),
                    None => Rect::default(),
                }
            }
            "input" if source.attribute("type") != Some("hidden") => self.place(160.0, 21.0),
            "select" => self.place(120.0, 21.0),
            "textarea" => self.place(180.0, 40.0),
            "br" => {
                if let Some(open) = self.blocks.last_mut() {
                    open.line_h = open.line_h.max(FONT_SIZE * 1.25);
                    open.end_line();
                }
                Rect::default()
            }
            _ => Rect::default(),
        }
    }

    fn place(&mut self, width: f32, height: f32) -> Rect {
        let Some(open) = self.blocks.last_mut() else { return Rect::default() };
        if open.line_x + width <= open.w {
            let rect = Rect { x: open.x + open.line_x, y: open.y, w: width, h: height };
            open.line_x += width;
            open.line_h = open.line_h.max(height);
            return rect;
        }
        let n_lines = ((open.line_x + width) / open.w).ceil().clamp(1.0, 1e6);
        let rect = Rect { x: open.x, y: open.y, w: open.w, h: n_lines * height };
        open.y += (n_lines - 1.0) * height;
        open.line_x = (open.line_x + width - (n_lines - 1.0) * open.w).clamp(0.0, open.w);
        open.line_h = height;
        rect
    }
}

impl OpenBlock {
    fn new(x: f32, y: f32, w: f32) -> OpenBlock {
        OpenBlock { x, y, w, line_x: 0.0, line_h: 0.0, row: None, after: 0.0 }
    }

    fn end_line(&mut self) {
        self.y += self.line_h;
        self.line_x = 0.0;
        self.line_h = 0.0;
    }
}

fn text_node<'a>(above: &LayoutNode, parent: u32, text: &'a str) -> LayoutNode<'a> {
    LayoutNode {
        parent: Some(parent),
        text: text.into(),
        font_size: above.font_size,
        font_weight: above.font_weight,
        color: above.color,
        display: Display::Inline,
        is_visible: above.is_visible,
        ..LayoutNode::default()
    }
}

fn element<'a>(source: &'a DomNode, above: Option<&LayoutNode>) -> LayoutNode<'a> {
    let tag = source.tag();
    let DomKind::Element { attributes, .. } = &source.kind else { unreachable!("called for elements only") };
    let style = source.attribute("style").unwrap_or_default().replace(' ', "").to_ascii_lowercase();
    let is_hidden = source.attribute("hidden").is_some()
        || style.contains("display:none")
        || is_never_shown(tag)
        || matches!(tag, "title" | "datalist")
        || (tag == "input" && source.attribute("type") == Some("hidden"));
    let is_seen = above.is_none_or(|above| above.is_visible)
        && source.attribute("aria-hidden") != Some("true")
        && !style.contains("visibility:hidden");
    let scale = font_scale(tag);
    LayoutNode {
        tag: tag.into(),
        attributes: attributes.iter().map(|a| ((*a.name.local).into(), (*a.value).into())).collect(),
        font_size: scale.map_or(above.map_or(FONT_SIZE, |above| above.font_size), |scale| FONT_SIZE * scale),
        font_weight: if is_bold(tag) { 700 } else { above.map_or(400, |above| above.font_weight) },
        color: if tag == "a" { LINK } else { above.map_or(BLACK, |above| above.color) },
        display: if is_hidden { Display::None } else { display(tag) },
        is_visible: is_seen && !is_hidden,
        ..LayoutNode::default()
    }
}

fn kind(tag: &str) -> FlowKind {
    match tag {
        "tr" => FlowKind::Row,
        "html" | "body" | "address" | "article" | "aside" | "blockquote" | "center" | "dd" | "details"
        | "dialog" | "dir" | "div" | "dl" | "dt" | "fieldset" | "figcaption" | "figure" | "footer"
        | "form" | "frameset" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "header" | "hgroup" | "hr"
        | "li" | "listing" | "main" | "menu" | "nav" | "ol" | "p" | "pre" | "search" | "section"
        | "summary" | "ul" | "xmp" | "table" | "thead" | "tbody" | "tfoot" | "td" | "th" | "caption" => {
            FlowKind::Block
        }
        _ => FlowKind::Inline,
    }
}

fn display(tag: &str) -> Display {
    match tag {
        "table" | "thead" | "tbody" | "tfoot" | "tr" | "td" | "th" | "caption" => Display::Table,
        _ if kind(tag) == FlowKind::Inline => Display::Inline,
        _ => Display::Block,
    }
}

fn font_scale(tag: &str) -> Option<f32> {
    Some(match tag {
        "h1" => 2.0,
        "h2" => 1.5,
        "h3" => 1.17,
        "h5" => 0.83,
        "h6" => 0.67,
        "small" => 0.83,
        _ => return None,
    })
}

fn is_bold(tag: &str) -> bool {
    matches!(tag, "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "b" | "strong" | "th")
}

/// Space above and below a block.
fn margins(tag: &str, font_size: f32) -> (f32, f32) {
    match tag {
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => (font_size * 0.7, font_size * 0.7),
        "p" | "ul" | "ol" | "dl" | "pre" | "blockquote" | "figure" | "menu" => {
            (font_size * 0.5, font_size * 0.5)
        }
        "hr" => (font_size * 0.5, font_size * 0.5 + 1.0),
        _ => (0.0, 0.0),
    }
}

fn indent(tag: &str) -> f32 {
    match tag {
        "body" => BODY_MARGIN,
        "ul" | "ol" | "menu" | "dd" | "blockquote" | "figure" => 40.0,
        _ => 0.0,
    }
}

fn body_margin(tag: &str) -> f32 {
    if tag == "body" { BODY_MARGIN } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(html: &str) -> Layout<'static> {
        let layout = layout(&Dom::parse(html), "http://a.example/").into_owned();
        for (index, node) in layout.nodes.iter().enumerate() {
            assert!(node.parent.is_none_or(|parent| (parent as usize) < index));
            assert!([node.rect.x, node.rect.y, node.rect.w, node.rect.h].iter().all(|side| side.is_finite()));
        }
        layout
    }

    fn find<'a>(layout: &'a Layout<'static>, text: &str) -> &'a LayoutNode<'static> {
        layout.nodes.iter().find(|node| node.text.contains(text)).expect("the text is laid out")
    }

    #[test]
    fn blocks_stack_and_cells_stand_side_by_side() {
        let layout = check("<h1>top</h1><p>below</p><table><tr><td>one<td>two</table><p>last");
        assert!(find(&layout, "top").rect.bottom() <= find(&layout, "below").rect.y);
        let (one, two) = (find(&layout, "one").rect, find(&layout, "two").rect);
        assert!(one.right() <= two.x && one.y == two.y);
        assert!(two.bottom() <= find(&layout, "last").rect.y);
    }

    #[test]
    fn long_text_takes_several_lines() {
        let layout = check(&format!("<p>{}</p><p>next", "word ".repeat(400)));
        assert!(find(&layout, "word").rect.h > 10.0 * FONT_SIZE);
        assert!(find(&layout, "next").rect.y >= find(&layout, "word").rect.bottom());
    }

    #[test]
    fn hidden_things_are_not_visible() {
        let layout = check("<p hidden>a</p><p style='display: none'>b</p><p aria-hidden=true>c<p>d");
        assert!(
            layout.nodes.iter().filter(|node| node.is_text() && node.is_visible).all(|node| node.text == "d")
        );
    }

    proptest! {
        #[test]
        fn any_text_gives_a_layout(html in "(<(div|p|table|tr|td|b|a|img width=9|li|select|svg)>|</(div|p|b|table)>|[a-z ]{0,9}|\\PC{0,4}){0,60}") {
            let layout = check(&html);
            let n_words: usize = layout.nodes.iter().filter(|node| node.is_text()).map(|node| node.text.split_whitespace().count()).sum();
            prop_assert!(n_words <= html.split_whitespace().count() + html.len());
        }
    }
}
