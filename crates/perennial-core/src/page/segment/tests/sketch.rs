//! Short markup -> a [`Layout`], for tests. Blocks stack from top to bottom, texts take lines by length, `class="row"`
//! puts children side by side.

use std::borrow::Cow;

use crate::page::layout::{Display, Layout, LayoutNode, Rect, Rgba};

/// Lays out well-formed markup. Attributes are written `name="value"`.
pub(crate) fn sketch(markup: &str) -> Layout<'static> {
    let mut layout = Layout {
        base_url: "http://a.org/dir/page".into(),
        engine: "sketch".into(),
        width: 1280.0,
        height: 0.0,
        is_unstyled: false,
        nodes: Vec::new(),
    };
    let mut open: Vec<u32> = Vec::new();
    for piece in markup.split_inclusive('>').flat_map(|piece| piece.split_inclusive_before('<')) {
        read_piece(piece, &mut layout, &mut open);
    }
    layout.height = place(&mut layout, 0, 0.0, 0.0, 1280.0);
    layout
}

trait SplitBefore {
    fn split_inclusive_before(&self, c: char) -> Vec<&str>;
}

impl SplitBefore for str {
    fn split_inclusive_before(&self, c: char) -> Vec<&str> {
        match self.find(c) {
            Some(0) | None => vec![self],
            Some(at) => vec![&self[..at], &self[at..]],
        }
    }
}

fn read_piece(piece: &str, layout: &mut Layout, open: &mut Vec<u32>) {
    if let Some(rest) = piece.strip_prefix("</") {
        assert_eq!(Some(rest.trim_end_matches('>')), open.pop().map(|i| &*layout.nodes[i as usize].tag));
    } else if let Some(rest) = piece.strip_prefix('<') {
        let body = rest.trim_end_matches('>');
        let tag = body.split(' ').next().unwrap_or("").trim_end_matches('/');
        let mut node = blank(open.last().copied(), tag);
        node.attributes = attributes(body);
        node.is_visible = node.attribute("hidden").is_none();
        layout.nodes.push(node);
        if !body.ends_with('/') && !matches!(tag, "img" | "br" | "hr" | "input") {
            open.push(layout.nodes.len() as u32 - 1);
        }
    } else if !open.is_empty() {
        let mut node = blank(open.last().copied(), "");
        node.text = piece.to_string().into();
        layout.nodes.push(node);
    }
}

fn attributes(body: &str) -> Vec<(Cow<'static, str>, Cow<'static, str>)> {
    let mut found = Vec::new();
    for part in body.split("\" ").flat_map(|part| part.split_once("=\"")) {
        let name = part.0.rsplit(' ').next().unwrap_or("");
        found.push((name.to_string().into(), part.1.trim_end_matches(['"', '/']).to_string().into()));
    }
    found
}

fn blank(parent: Option<u32>, tag: &str) -> LayoutNode<'static> {
    let is_inline = matches!(tag, "" | "a" | "b" | "i" | "span" | "img" | "br" | "input");
    let font_size = match tag {
        "h1" => 32.0,
        "h2" => 24.0,
        _ => 16.0,
    };
    LayoutNode {
        parent,
        tag: tag.to_string().into(),
        attributes: Vec::new(),
        text: "".into(),
        rect: Rect::default(),
        font_size,
        font_weight: if font_size > 16.0 { 700 } else { 400 },
        color: Rgba { r: 0, g: 0, b: 0, a: 255 },
        background: Rgba::default(),
        has_background_image: false,
        display: if is_inline { Display::Inline } else { Display::Block },
        is_fixed: false,
        is_visible: true,
        is_collapsed: false,
    }
}

/// Places a node and its descendants. Returns its height.
fn place(layout: &mut Layout, index: u32, x: f32, y: f32, w: f32) -> f32 {
    let children: Vec<u32> = (index + 1..layout.nodes.len() as u32)
        .filter(|i| layout.nodes[*i as usize].parent == Some(index))
        .collect();
    let is_row = layout.nodes[index as usize].attribute("class") == Some("row");
    let column = if is_row { w / children.len().max(1) as f32 } else { w };
    let mut height = 0.0f32;
    for (nth, child) in children.iter().enumerate() {
        let (font_size, font_weight) =
            (layout.nodes[index as usize].font_size, layout.nodes[index as usize].font_weight);
        let node = &mut layout.nodes[*child as usize];
        if node.is_text() {
            (node.font_size, node.font_weight) = (font_size, font_weight);
        }
        let margin = if node.display == Display::Block { 16.0 } else { 0.0 };
        if is_row {
            height = height.max(place(layout, *child, x + nth as f32 * column, y, column - 20.0));
        } else {
            height += margin + place(layout, *child, x, y + height + margin, w);
        }
    }
    let node = &mut layout.nodes[index as usize];
    let n_lines = (node.text.trim().len() as f32 * node.font_size * 0.5 / w.max(1.0)).ceil();
    height += match &*node.tag {
        "" => n_lines * node.font_size * 1.3,
        "img" => 200.0,
        _ => 0.0,
    };
    let w = if node.tag == "img" { 300.0 } else { w };
    node.rect = Rect { x, y, w: if height > 0.0 { w } else { 0.0 }, h: height };
    height
}
