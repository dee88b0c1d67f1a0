//! Converts Chromium's DOM snapshot to a [`Layout`].
//!
//! `DOMSnapshot.captureSnapshot` returns all strings in one table, nodes as columns, and boxes with the requested
//! styles. Nodes without a box are invisible.

use std::borrow::Cow;

use perennial_core::page::layout::{Display, Layout, LayoutNode, Rect, Rgba};
use serde_json::Value;

use crate::scope::{self, Position, StyleCues, VisibilityScope};

/// The requested styles, in the order in which they are read.
pub const STYLES: [&str; 11] = [
    "display",
    "visibility",
    "opacity",
    "font-size",
    "font-weight",
    "color",
    "background-color",
    "background-image",
    "position",
    "overflow-x",
    "overflow-y",
];

const OMITTED: u32 = u32::MAX;

/// Reads a snapshot. Missing values are empty in the layout.
pub fn layout(snapshot: &Value, base_url: &str, engine: &str) -> Layout<'static> {
    let document = &snapshot["documents"][0];
    let columns = SnapshotColumns {
        strings: snapshot["strings"].as_array().map_or(&[], Vec::as_slice),
        nodes: &document["nodes"],
        boxes: &document["layout"],
    };
    let base_url = columns.string(&document["baseURL"]).unwrap_or(base_url).to_string();
    let mut read = SnapshotReader {
        first_boxes: columns.first_boxes(),
        columns,
        nodes: Vec::new(),
        scopes: Vec::new(),
        output_index: Vec::new(),
    };
    let n = array(&read.columns.nodes["nodeType"]).len();
    read.output_index = vec![OMITTED; n];
    for index in 0..n {
        read.visit(index);
    }
    let mut nodes = read.nodes;
    nodes.iter_mut().for_each(|node| scope::hide_off_page(&node.rect, &mut node.is_visible));
    let seen = nodes.iter().filter(|node| node.is_visible);
    let (width, height) = scope::extent(seen.map(|node| &node.rect));
    Layout { base_url, engine: engine.to_string(), width, height, is_unstyled: false, nodes }
}

struct SnapshotColumns<'a> {
    strings: &'a [Value],
    nodes: &'a Value,
    boxes: &'a Value,
}

impl<'a> SnapshotColumns<'a> {
    fn string(&self, index: &Value) -> Option<&'a str> {
        self.strings.get(index.as_u64()? as usize)?.as_str()
    }

    /// The first box of each node.
    fn first_boxes(&self) -> Vec<Option<usize>> {
        let mut first_boxes = vec![None; array(&self.nodes["nodeType"]).len()];
        for (place, node) in array(&self.boxes["nodeIndex"]).iter().enumerate() {
            if let Some(slot) = node.as_u64().and_then(|node| first_boxes.get_mut(node as usize)) {
                slot.get_or_insert(place);
            }
        }
        first_boxes
    }
}

struct SnapshotReader<'a> {
    columns: SnapshotColumns<'a>,
    first_boxes: Vec<Option<usize>>,
    nodes: Vec<LayoutNode<'static>>,
    scopes: Vec<VisibilityScope>,
    output_index: Vec<u32>,
}

impl<'a> SnapshotReader<'a> {
    fn visit(&mut self, index: usize) {
        let node_type = self.columns.nodes["nodeType"][index].as_u64();
        let parent =
            self.columns.nodes["parentIndex"][index].as_i64().and_then(|parent| usize::try_from(parent).ok());
        let out = parent.map_or(OMITTED, |parent| self.output_index.get(parent).copied().unwrap_or(OMITTED));
        let above = (out != OMITTED).then_some(out);
        match node_type {
            Some(3) if above.is_some_and(|above| self.is_shown(above)) => self.text(index, above),
            Some(1) if above.is_some_and(|above| self.is_shown(above)) => self.element(index, above),
            // Only the root element has no parent element.
            Some(1) if above.is_none() && self.nodes.is_empty() => self.element(index, above),
            _ => {}
        }
    }

    fn is_shown(&self, out: u32) -> bool {
        self.nodes[out as usize].display != Display::None
    }

    fn push(&mut self, index: usize, node: LayoutNode<'static>, scope: VisibilityScope) {
        self.output_index[index] = self.nodes.len() as u32;
        self.nodes.push(node);
        self.scopes.push(scope);
    }

    fn text(&mut self, index: usize, parent: Option<u32>) {
        let (Some(parent), Some(place)) = (parent, self.first_boxes[index]) else { return };
        let text = self.columns.string(&self.columns.nodes["nodeValue"][index]).unwrap_or_default();
        let above = &self.nodes[parent as usize];
        let mut own = LayoutNode {
            text: if text.trim().is_empty() { " ".into() } else { text.to_string().into() },
            rect: self.rect(place),
            font_size: above.font_size,
            font_weight: above.font_weight,
            color: above.color,
            display: Display::Inline,
            ..blank(Some(parent))
        };
        let scope = self.scopes[parent as usize];
        let sight = scope.enter_text(text, &own.rect, above.is_visible);
        (own.is_fixed, own.is_visible) = (sight.is_fixed, sight.is_visible);
        self.push(index, own, scope);
    }

    fn element(&mut self, index: usize, parent: Option<u32>) {
        let tag = self
            .columns
            .string(&self.columns.nodes["nodeName"][index])
            .unwrap_or_default()
            .to_ascii_lowercase();
        if tag.starts_with(':') {
            return;
        }
        let above = parent.map(|parent| self.scopes[parent as usize]).unwrap_or_default();
        let is_never_shown = scope::is_never_shown(&tag);
        let mut own = LayoutNode { tag: tag.into(), attributes: self.attributes(index), ..blank(parent) };
        if is_never_shown {
            return self.push(index, own, above);
        }
        let Some(place) = self.first_boxes[index] else {
            // `display: contents` has no box either, but its children do.
            own.display = if self.has_shown_child(index) { Display::Inline } else { Display::None };
            own.is_visible = own.display != Display::None && !above.is_hidden && !above.is_cut;
            if let Some(parent) = parent {
                let above = &self.nodes[parent as usize];
                (own.font_size, own.font_weight, own.color) =
                    (above.font_size, above.font_weight, above.color);
            }
            return self.push(index, own, above);
        };
        own.rect = self.rect(place);
        let cues = self.paint(&mut own, place);
        let has_box = own.display != Display::Inline;
        let (scope, sight) = above.enter(has_box.then_some(&own.rect), cues);
        (own.is_fixed, own.is_visible) = (sight.is_fixed, sight.is_visible);
        self.push(index, own, scope);
    }

    fn has_shown_child(&self, index: usize) -> bool {
        // Children follow their parent. Only the next few nodes are searched.
        let parents = array(&self.columns.nodes["parentIndex"]);
        (index + 1..parents.len().min(index + 64))
            .any(|child| parents[child].as_u64() == Some(index as u64) && self.first_boxes[child].is_some())
    }

    fn rect(&self, place: usize) -> Rect {
        let side = |n: usize| self.columns.boxes["bounds"][place][n].as_f64().unwrap_or(0.0) as f32;
        Rect { x: side(0), y: side(1), w: side(2), h: side(3) }
    }

    fn attributes(&self, index: usize) -> Vec<(Cow<'static, str>, Cow<'static, str>)> {
        let strings: Vec<&str> = array(&self.columns.nodes["attributes"][index])
            .iter()
            .map(|string| self.columns.string(string).unwrap_or_default())
            .collect();
        let attribute = |pair: &[&str]| (pair[0].to_ascii_lowercase().into(), pair[1].to_string().into());
        strings.chunks_exact(2).map(attribute).collect()
    }

    fn paint(&self, own: &mut LayoutNode, place: usize) -> StyleCues {
        let style =
            |n: usize| self.columns.string(&self.columns.boxes["styles"][place][n]).unwrap_or_default();
        own.display = display(style(0));
        own.font_size = style(3).trim_end_matches("px").parse().unwrap_or(0.0);
        own.font_weight = style(4).parse().unwrap_or(400);
        own.color = color(style(5));
        own.background = color(style(6));
        own.has_background_image = !matches!(style(7), "" | "none");
        StyleCues {
            position: match style(8) {
                "relative" => Position::Relative,
                "absolute" => Position::Absolute,
                "fixed" => Position::Fixed,
                "sticky" => Position::Sticky,
                _ => Position::Static,
            },
            is_transparent: style(2) == "0",
            is_cutting: style(9) != "visible" || style(10) != "visible",
            is_visible: style(1) == "visible",
        }
    }
}

fn blank(parent: Option<u32>) -> LayoutNode<'static> {
    LayoutNode { parent, font_weight: 400, display: Display::None, ..LayoutNode::default() }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn display(name: &str) -> Display {
    match name {
        "none" => Display::None,
        "flex" | "grid" | "inline-flex" | "inline-grid" => Display::FlexOrGrid,
        _ if name.contains("table") => Display::Table,
        _ if name.starts_with("inline") || name == "contents" || name.starts_with("ruby") => Display::Inline,
        _ => Display::Block,
    }
}

/// Parses `rgb(1, 2, 3)` and `rgba(1, 2, 3, 0.5)`. Other colour spaces are rare and count as grey.
fn color(text: &str) -> Rgba {
    let Some((_, numbers)) = text.split_once('(') else { return Rgba::default() };
    if !text.starts_with("rgb") {
        return Rgba { r: 128, g: 128, b: 128, a: 255 };
    }
    let mut parts = numbers
        .trim_end_matches(')')
        .split([',', ' ', '/'])
        .filter_map(|part| part.trim().parse::<f32>().ok());
    let mut byte =
        |scale: f32, default: f32| (parts.next().unwrap_or(default) * scale).clamp(0.0, 255.0).round() as u8;
    Rgba { r: byte(1.0, 0.0), g: byte(1.0, 0.0), b: byte(1.0, 0.0), a: byte(255.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_small_snapshot_is_read() {
        let snapshot = json!({
            "strings": ["", "#document", "HTML", "BODY", "P", "#text", "Hello", "id", "a", "block", "visible", "1",
                "16px", "400", "rgb(0, 0, 0)", "rgba(255, 0, 0, 0.5)", "none", "static", "HEAD", "http://b.example/"],
            "documents": [{
                "baseURL": 19,
                "nodes": {
                    "parentIndex": [-1, 0, 1, 1, 3, 4],
                    "nodeType": [9, 1, 1, 1, 1, 3],
                    "nodeName": [1, 2, 18, 3, 4, 5],
                    "nodeValue": [-1, -1, -1, -1, -1, 6],
                    "attributes": [[], [], [], [], [7, 8], []]
                },
                "layout": {
                    "nodeIndex": [0, 1, 3, 4, 5],
                    "bounds": [[0, 0, 1280, 800], [0, 0, 1280, 800], [8, 8, 1264, 50], [8, 16, 1264, 18], [8, 16, 40, 18]],
                    "styles": [[], [9, 10, 11, 12, 13, 14, 15, 16, 17, 10, 10], [9, 10, 11, 12, 13, 14, 15, 16, 17, 10, 10],
                        [9, 10, 11, 12, 13, 14, 15, 16, 17, 10, 10], []]
                }
            }]
        });
        let layout = layout(&snapshot, "http://a.example/", "test");
        let tags: Vec<&str> = layout.nodes.iter().map(|node| &*node.tag).collect();
        assert_eq!(tags, ["html", "head", "body", "p", ""]);
        let (p, text) = (&layout.nodes[3], &layout.nodes[4]);
        assert_eq!((p.attribute("id"), p.background), (Some("a"), Rgba { r: 255, g: 0, b: 0, a: 128 }));
        assert_eq!((&*text.text, text.parent, text.is_visible), ("Hello", Some(3), true));
        assert_eq!((layout.base_url.as_str(), layout.height), ("http://b.example/", 800.0));
    }

    #[test]
    fn nonsense_is_an_empty_layout() {
        assert!(
            super::layout(&json!({"documents": [{"nodes": {"nodeType": [1, 3]}}]}), "", "").nodes.len() <= 1
        );
        assert!(super::layout(&json!(null), "", "").nodes.is_empty());
    }
}
