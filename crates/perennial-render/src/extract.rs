//! Extracts [`Boxes`] from the engine's document after layout.
//!
//! The engine has boxes for block-level elements and for boxes inside lines. Texts are found by walking the lines of
//! each inline root once. Elements without a box (inline elements, `display: contents`, table rows) get the union of
//! their children.

use blitz_dom::{BaseDocument, Node, NodeId};
use perennial_core::page::layout::{Boxes, Display, NodeBox, Rect, Rgba};
use style::color::{AbsoluteColor, ColorSpace};
use style::properties::ComputedValues;
use style::properties::generated::longhands::position::computed_value::T as PositionValue;
use style::properties::generated::longhands::visibility::computed_value::T as Visibility;
use style::values::computed::Overflow;
use style::values::specified::box_::{DisplayInside, DisplayOutside};

use crate::collapsed::Collapsible;
use crate::dom::{Dom, DomKind};
use crate::engine::{ENGINE, NodeMap};
use crate::lines;
use crate::scope::{self, Position, StyleCues, VisibilityScope};

/// Ancestors of a text that are searched for a box.
const MAX_STEPS: usize = 64;

/// The cues of an element that hides nothing.
const SHOWN: StyleCues =
    StyleCues { position: Position::Static, is_transparent: false, is_cutting: false, is_visible: true };

/// Marks nodes that are not in the output.
const OMITTED: u32 = u32::MAX;

pub(crate) fn boxes(dom: &Dom, document: &BaseDocument, built: &NodeMap, collapsible: &Collapsible) -> Boxes {
    let mut places = BoxPositions { document, known: ByNode::default() };
    let text_rects = lines::text_rects(document, &mut places);
    let mut extract = BoxExtractor {
        dom,
        collapsible,
        places,
        text_rects,
        output_index: vec![OMITTED; dom.nodes.len()],
        scopes: Vec::new(),
        is_boxless: Vec::new(),
        nodes: Vec::new(),
    };
    for (index, id) in (0..).zip(&built.ids) {
        extract.visit(index, id.and_then(|id| document.get_node(id)));
    }
    extract.finish()
}

/// A value per node of a document, indexed like the document's nodes.
pub(crate) struct ByNode<T>(Vec<Option<T>>);

impl<T> Default for ByNode<T> {
    fn default() -> ByNode<T> {
        ByNode(Vec::new())
    }
}

impl<T: Copy> ByNode<T> {
    pub(crate) fn get(&self, id: NodeId) -> Option<T> {
        self.0.get(Self::place(id)).copied().flatten()
    }

    pub(crate) fn insert(&mut self, id: NodeId, value: T) {
        let place = Self::place(id);
        if place >= self.0.len() {
            self.0.resize(place + 1, None);
        }
        self.0[place] = Some(value);
    }

    /// The lower half of an ID is the index. The upper half distinguishes successive nodes at the same index.
    fn place(id: NodeId) -> usize {
        id.as_u64() as u32 as usize
    }
}

/// The positions of boxes on the page.
pub(crate) struct BoxPositions<'a> {
    document: &'a BaseDocument,
    known: ByNode<(f32, f32)>,
}

impl BoxPositions<'_> {
    /// The upper left corner of a node's border box. Each box is computed once.
    pub(crate) fn of(&mut self, id: NodeId) -> (f32, f32) {
        let mut chain = Vec::new();
        let mut next = Some(id);
        let mut place = (0.0, 0.0);
        while let Some(id) = next {
            if let Some(known) = self.known.get(id) {
                place = known;
                break;
            }
            // There should be no cycle, but the loop must end even if there is one.
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

/// The offset of a box in its containing block, including translations.
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

struct BoxExtractor<'a> {
    dom: &'a Dom,
    collapsible: &'a Collapsible,
    places: BoxPositions<'a>,
    text_rects: ByNode<Rect>,
    /// Index in `nodes` by index in the page.
    output_index: Vec<u32>,
    scopes: Vec<VisibilityScope>,
    is_boxless: Vec<bool>,
    nodes: Vec<NodeBox>,
}

impl BoxExtractor<'_> {
    fn visit(&mut self, index: u32, node: Option<&Node>) {
        let source = &self.dom.nodes[index as usize];
        let parent = source.parent.map(|parent| self.output_index[parent as usize]);
        if parent == Some(OMITTED) {
            return;
        }
        let is_shown_above = parent.is_none_or(|parent| self.nodes[parent as usize].display != Display::None);
        if !is_shown_above {
            return;
        }
        match (&source.kind, node) {
            (DomKind::Element { .. }, _) if scope::is_never_shown(source.tag()) => self.hide(index, parent),
            (DomKind::Text(text), Some(node)) => self.visit_text(index, parent, node, text),
            (DomKind::Element { .. }, Some(node)) => self.visit_element(index, parent, node),
            _ => {}
        }
    }

    fn push(&mut self, node: NodeBox, scope: VisibilityScope, is_boxless: bool) {
        self.output_index[node.source as usize] = self.nodes.len() as u32;
        self.nodes.push(node);
        self.scopes.push(scope);
        self.is_boxless.push(is_boxless);
    }

    fn visit_text(&mut self, source: u32, parent: Option<u32>, node: &Node, text: &str) {
        let Some(parent) = parent else { return };
        let above = &self.nodes[parent as usize];
        let scope = self.scopes[parent as usize];
        let (rect, sight) = match self.text_rects.get(node.id) {
            Some(rect) if rect.area() > 0.0 || text.trim().is_empty() || above.font_size <= 0.0 => {
                (rect, scope.enter_text(text, &rect, above.is_visible))
            }
            None if text.trim().is_empty() => return,
            // The text is visible by its styles, but the engine did not place it. Table captions are an example.
            _ => (self.place_without_box(parent, text), scope.without_place(above.is_visible)),
        };
        let own = NodeBox {
            source,
            parent: Some(parent),
            rect,
            font_size: above.font_size,
            font_weight: above.font_weight,
            color: above.color,
            display: Display::Inline,
            is_fixed: sight.is_fixed,
            is_visible: sight.is_visible,
            is_collapsed: above.is_collapsed || self.collapsible.is_closed(source),
            ..NodeBox::default()
        };
        self.push(own, scope, false);
    }

    /// A position for a text that the engine did not place: the start of the nearest box around it, with the size of
    /// its characters. So no word is lost. Invisible characters need no position.
    fn place_without_box(&self, parent: u32, text: &str) -> Rect {
        let n_letters = text.chars().filter(|c| !c.is_whitespace() && !is_unseen(*c)).count() as f32;
        let font_size = self.nodes[parent as usize].font_size;
        let above = std::iter::successors(Some(parent), |index| self.nodes[*index as usize].parent);
        let mut boxes = above.take(MAX_STEPS).map(|index| self.nodes[index as usize].rect);
        let Rect { x, y, w, .. } = boxes.find(|rect| rect.w > 0.0).unwrap_or_default();
        let length = n_letters * font_size / 2.0;
        let width = if w > 0.0 { length.min(w) } else { length };
        if width <= 0.0 {
            return Rect::default();
        }
        Rect { x, y, w: width, h: (length / width).ceil() * font_size * 1.2 }
    }

    fn hide(&mut self, source: u32, parent: Option<u32>) {
        let above = parent.map(|parent| self.scopes[parent as usize]).unwrap_or_default();
        self.push(hidden(source, parent, &above), above, false);
    }

    fn visit_element(&mut self, index: u32, parent: Option<u32>, node: &Node) {
        let above = parent.map(|parent| self.scopes[parent as usize]).unwrap_or_default();
        let styles = node.primary_styles().filter(|styles| display(styles) != Display::None);
        let Some(styles) = styles else { return self.hide(index, parent) };
        let mut own = NodeBox { display: display(&styles), ..hidden(index, parent, &above) };
        let is_boxless = is_boxless(&styles, node);
        if !is_boxless {
            let (x, y) = self.places.of(node.id);
            let size = node.unrounded_layout().size;
            own.rect = Rect { x, y, w: size.width, h: size.height };
        }
        paint(&mut own, &styles);
        let rect = (!is_boxless).then_some(own.rect);
        let (mut scope, mut sight) = above.enter(rect.as_ref(), cues(&styles));
        let is_in_collapsed = parent.is_some_and(|parent| self.nodes[parent as usize].is_collapsed);
        own.is_collapsed = is_in_collapsed || self.collapsible.is_closed(index);
        // A part without height, or a transparent one, is one click away too.
        if self.collapsible.is_root(index) && scope.is_closed_within(&above) {
            (scope, sight) =
                above.enter(rect.as_ref(), StyleCues { position: cues(&styles).position, ..SHOWN });
            own.is_collapsed = true;
        }
        (own.is_fixed, own.is_visible) = (sight.is_fixed, sight.is_visible);
        self.push(own, scope, is_boxless);
    }

    fn finish(mut self) -> Boxes {
        for index in (1..self.nodes.len()).rev() {
            let (rect, display) = (self.nodes[index].rect, self.nodes[index].display);
            let Some(parent) = self.nodes[index].parent else { continue };
            if self.is_boxless[parent as usize] && display != Display::None {
                let joined = self.nodes[parent as usize].rect.union(&rect);
                self.nodes[parent as usize].rect = joined;
            }
        }
        self.nodes.iter_mut().for_each(|node| scope::hide_off_page(&node.rect, &mut node.is_visible));
        let seen = self.nodes.iter().filter(|node| node.is_visible);
        let (width, height) = scope::extent(seen.map(|node| &node.rect));
        Boxes { engine: ENGINE.to_string(), width, height, is_unstyled: false, nodes: self.nodes }
    }
}

fn hidden(source: u32, parent: Option<u32>, above: &VisibilityScope) -> NodeBox {
    NodeBox {
        source,
        parent,
        font_weight: 400,
        display: Display::None,
        is_fixed: above.is_fixed,
        ..NodeBox::default()
    }
}

/// Invisible characters: joiners, directions, zero-width spaces.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
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

/// Whether the engine has no box for the element, so it gets the union of its children.
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

fn paint(own: &mut NodeBox, styles: &ComputedValues) {
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

fn cues(styles: &ComputedValues) -> StyleCues {
    StyleCues {
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
