//! The engine's document after layout -> [`Layout`].
//!
//! The engine gives boxes to block-level elements and to boxes inside lines. Texts are found by walking the lines
//! of each inline root once; elements without a box of their own (inline elements, `display: contents`, table
//! rows) get the union of their children.

use std::collections::HashMap;

use blitz_dom::{BaseDocument, Node, NodeId};
use perennial_core::layout::{Display, Layout, LayoutNode, Rect, Rgba};
use style::color::{AbsoluteColor, ColorSpace};
use style::properties::ComputedValues;
use style::properties::generated::longhands::position::computed_value::T as PositionValue;
use style::properties::generated::longhands::visibility::computed_value::T as Visibility;
use style::values::computed::Overflow;
use style::values::specified::box_::{DisplayInside, DisplayOutside};

use crate::dom::{Dom, DomKind};
use crate::engine::{Built, ENGINE};
use crate::lines;
use crate::scope::{self, Cues, Position, Scope};

/// Marks nodes that are not part of the output.
const OMITTED: u32 = u32::MAX;

pub(crate) fn layout(dom: &Dom, document: &BaseDocument, built: &Built, base_url: String) -> Layout {
    let mut places = Places { document, known: HashMap::new() };
    let text_rects = lines::text_rects(document, &mut places);
    let mut extract = Extract {
        dom,
        document,
        built,
        places,
        text_rects,
        out_of: vec![OMITTED; dom.nodes.len()],
        scopes: Vec::new(),
        is_boxless: Vec::new(),
        nodes: Vec::new(),
    };
    for &index in &built.order {
        extract.visit(index);
    }
    extract.finish(base_url)
}

/// Where boxes are on the page.
pub(crate) struct Places<'a> {
    document: &'a BaseDocument,
    known: HashMap<NodeId, (f32, f32)>,
}

impl Places<'_> {
    /// The upper left corner of a node's border box. Each box is looked at once over all calls.
    pub(crate) fn of(&mut self, id: NodeId) -> (f32, f32) {
        let mut chain = Vec::new();
        let mut next = Some(id);
        let mut place = (0.0, 0.0);
        while let Some(id) = next {
            if let Some(&known) = self.known.get(&id) {
                place = known;
                break;
            }
            // There should be no cycle, but if there were one the loop must end.
            if chain.len() > 100_000 {
                break;
            }
            chain.push(id);
            next = self.document.get_node(id).and_then(|node| node.containing_block());
        }
        for id in chain.into_iter().rev() {
            if let Some(node) = self.document.get_node(id) {
                let (dx, dy) = offset(node);
                place = (place.0 + dx, place.1 + dy);
            }
            self.known.insert(id, place);
        }
        place
    }
}

/// The place of a box in its containing block, with a transform that only moves it.
fn offset(node: &Node) -> (f32, f32) {
    if node.is_text_node() || node.element_data().is_none() {
        return (0.0, 0.0);
    }
    let location = node.unrounded_layout().location;
    let moved = node.transform().as_deref().map(|transform| transform.as_coeffs());
    match moved {
        Some([1.0, 0.0, 0.0, 1.0, dx, dy]) => (location.x + dx as f32, location.y + dy as f32),
        _ => (location.x, location.y),
    }
}

struct Extract<'a> {
    dom: &'a Dom,
    document: &'a BaseDocument,
    built: &'a Built,
    places: Places<'a>,
    text_rects: HashMap<NodeId, Rect>,
    /// Index in `nodes` by index in the page.
    out_of: Vec<u32>,
    scopes: Vec<Scope>,
    is_boxless: Vec<bool>,
    nodes: Vec<LayoutNode>,
}

impl Extract<'_> {
    fn visit(&mut self, index: u32) {
        let parent = self.built.parents[index as usize].map(|parent| self.out_of[parent as usize]);
        if parent == Some(OMITTED) {
            return;
        }
        let Some(node) = self.built.ids[index as usize].and_then(|id| self.document.get_node(id)) else {
            return;
        };
        let is_shown_above = parent.is_none_or(|parent| self.nodes[parent as usize].display != Display::None);
        if !is_shown_above {
            return;
        }
        match &self.dom.nodes[index as usize].kind {
            DomKind::Text(text) => self.visit_text(index, parent, node, text),
            DomKind::Element { .. } => self.visit_element(index, parent, node),
            DomKind::Document | DomKind::Comment => {}
        }
    }

    fn push(&mut self, index: u32, node: LayoutNode, scope: Scope, is_boxless: bool) {
        self.out_of[index as usize] = self.nodes.len() as u32;
        self.nodes.push(node);
        self.scopes.push(scope);
        self.is_boxless.push(is_boxless);
    }

    fn visit_text(&mut self, index: u32, parent: Option<u32>, node: &Node, text: &str) {
        let (Some(parent), Some(&rect)) = (parent, self.text_rects.get(&node.id)) else { return };
        let above = &self.nodes[parent as usize];
        let scope = self.scopes[parent as usize];
        let text = if text.trim().is_empty() { " " } else { text };
        let is_parent_visible = above.is_visible;
        let mut own = LayoutNode {
            parent: Some(parent),
            tag: String::new(),
            attributes: Vec::new(),
            text: text.to_string(),
            rect,
            font_size: above.font_size,
            font_weight: above.font_weight,
            color: above.color,
            background: Rgba::default(),
            has_background_image: false,
            display: Display::Inline,
            is_fixed: false,
            is_visible: false,
        };
        scope.enter_text(&mut own, is_parent_visible);
        self.push(index, own, scope, false);
    }

    fn visit_element(&mut self, index: u32, parent: Option<u32>, node: &Node) {
        let source = &self.dom.nodes[index as usize];
        if matches!(source.tag(), "head" | "script" | "style" | "link" | "template" | "noscript") {
            return;
        }
        let above = parent.map(|parent| self.scopes[parent as usize]).unwrap_or_default();
        let DomKind::Element { attributes, .. } = &source.kind else { return };
        let attributes: Vec<(String, String)> =
            attributes.iter().map(|a| (a.name.local.to_string(), a.value.to_string())).collect();
        let mut own = LayoutNode {
            parent,
            tag: source.tag().to_string(),
            attributes,
            text: String::new(),
            rect: Rect::default(),
            font_size: 0.0,
            font_weight: 400,
            color: Rgba::default(),
            background: Rgba::default(),
            has_background_image: false,
            display: Display::None,
            is_fixed: above.is_fixed,
            is_visible: false,
        };
        let Some(styles) = node.primary_styles() else { return self.push(index, own, above, false) };
        own.display = display(&styles);
        if own.display == Display::None {
            return self.push(index, own, above, false);
        }
        let is_boxless = is_boxless(&styles, node);
        if !is_boxless {
            let (x, y) = self.places.of(node.id);
            let size = node.unrounded_layout().size;
            own.rect = Rect { x, y, w: size.width, h: size.height };
        }
        paint(&mut own, &styles);
        let scope = above.enter(&mut own, cues(&styles), !is_boxless);
        self.push(index, own, scope, is_boxless);
    }

    fn finish(mut self, base_url: String) -> Layout {
        for index in (1..self.nodes.len()).rev() {
            let (rect, display) = (self.nodes[index].rect, self.nodes[index].display);
            let Some(parent) = self.nodes[index].parent else { continue };
            if self.is_boxless[parent as usize] && display != Display::None {
                let joined = self.nodes[parent as usize].rect.union(&rect);
                self.nodes[parent as usize].rect = joined;
            }
        }
        let mut layout =
            Layout { base_url, engine: ENGINE.to_string(), width: 0.0, height: 0.0, nodes: self.nodes };
        scope::finish(&mut layout);
        layout
    }
}

fn display(styles: &ComputedValues) -> Display {
    let display = styles.clone_display();
    match (display.outside(), display.inside()) {
        (_, DisplayInside::None) => Display::None,
        (_, DisplayInside::Flex | DisplayInside::Grid) => Display::FlexOrGrid,
        (
            _,
            DisplayInside::Table
            | DisplayInside::TableRow
            | DisplayInside::TableCell
            | DisplayInside::TableRowGroup
            | DisplayInside::TableHeaderGroup
            | DisplayInside::TableFooterGroup
            | DisplayInside::TableColumn
            | DisplayInside::TableColumnGroup,
        )
        | (DisplayOutside::TableCaption, _) => Display::Table,
        (DisplayOutside::Inline, _) | (_, DisplayInside::Contents) => Display::Inline,
        _ => Display::Block,
    }
}

/// Whether the engine has no box for it, so that it gets the union of its children.
fn is_boxless(styles: &ComputedValues, node: &Node) -> bool {
    let display = styles.clone_display();
    let is_part_of_table = matches!(
        display.inside(),
        DisplayInside::TableRow
            | DisplayInside::TableRowGroup
            | DisplayInside::TableHeaderGroup
            | DisplayInside::TableFooterGroup
    ) || display.outside() == DisplayOutside::TableCaption;
    let size = node.unrounded_layout().size;
    (is_part_of_table && size.width * size.height == 0.0)
        || display.inside() == DisplayInside::Contents
        || node.is_non_atomic_inline()
}

fn paint(own: &mut LayoutNode, styles: &ComputedValues) {
    own.font_size = styles.clone_font_size().used_size().px();
    own.font_weight = styles.clone_font_weight().value() as u16;
    own.color = rgba(styles.clone_color());
    own.background = rgba(styles.resolve_color(&styles.clone_background_color()));
    own.has_background_image = styles
        .get_background()
        .background_image
        .0
        .iter()
        .any(|image| !matches!(image, style::values::generics::image::GenericImage::None));
}

fn rgba(color: AbsoluteColor) -> Rgba {
    let srgb = color.to_color_space(ColorSpace::Srgb);
    let byte = |part: f32| (part.clamp(0.0, 1.0) * 255.0).round() as u8;
    let parts = srgb.components;
    Rgba { r: byte(parts.0), g: byte(parts.1), b: byte(parts.2), a: byte(srgb.alpha) }
}

fn cues(styles: &ComputedValues) -> Cues {
    Cues {
        position: match styles.clone_position() {
            PositionValue::Static => Position::Static,
            PositionValue::Relative => Position::Relative,
            PositionValue::Absolute => Position::Absolute,
            PositionValue::Fixed => Position::Fixed,
            PositionValue::Sticky => Position::Sticky,
        },
        is_transparent: styles.clone_opacity() == 0.0,
        is_cutting: styles.clone_overflow_x() != Overflow::Visible
            || styles.clone_overflow_y() != Overflow::Visible,
        is_visible: styles.clone_visibility() == Visibility::Visible,
    }
}
