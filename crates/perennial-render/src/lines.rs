//! Finds the rectangle of each text node in the engine's lines.
//!
//! A line knows the element of each glyph run, but not its text node. Both sides have their characters in document
//! order, so the n-th visible character of the lines is the n-th visible character of the texts. The counts may
//! diverge, because `text-transform` can turn one character into two. Then the element corrects them.

use blitz_dom::node::{TextBrush, TextLayout};
use blitz_dom::{BaseDocument, Node, NodeData, NodeId};
use parley::layout::{GlyphRun, Line, PositionedLayoutItem};
use perennial_core::page::layout::Rect;
use style::values::specified::box_::{DisplayInside, DisplayOutside};

use crate::extract::{BoxPositions, ByNode};

/// One text node within an inline root.
struct TextRun {
    text: NodeId,
    /// The element whose style its glyphs have.
    element: NodeId,
    /// Number of visible characters of the inline root before it.
    start: usize,
}

/// The rectangle of each text node. White space between words has an empty one.
pub(crate) fn text_rects(document: &BaseDocument, places: &mut BoxPositions<'_>) -> ByNode<Rect> {
    let mut rects = ByNode::default();
    for (id, node) in document.tree().iter() {
        if !node.flags.is_inline_root() || !node.flags.is_in_document() {
            continue;
        }
        let Some(lines) = node.element_data().and_then(|element| element.inline_layout_data.as_deref())
        else {
            continue;
        };
        let text_runs = text_runs(document, node);
        for text_run in &text_runs {
            if rects.get(text_run.text).is_none() {
                rects.insert(text_run.text, Rect::default());
            }
        }
        let (x, y) = places.of(id);
        let layout = node.unrounded_layout();
        let origin = (
            x + layout.padding.left + layout.border.left,
            y + layout.padding.top + layout.border.top + lines.block_offset,
        );
        InlineRoot { text_runs: &text_runs, lines, origin, n_before: None }.place(&mut rects);
    }
    rects
}

/// The texts of an inline root in document order, as the engine walks them.
fn text_runs(document: &BaseDocument, root: &Node) -> Vec<TextRun> {
    let mut text_runs = Vec::new();
    let mut start = 0;
    let mut stack: Vec<(NodeId, NodeId)> = Vec::new();
    push_children(root, root.id, &mut stack);
    while let Some((id, element)) = stack.pop() {
        let Some(node) = document.get_node(id) else { continue };
        match &node.data {
            NodeData::Text(text) => {
                text_runs.push(TextRun { text: id, element, start });
                start += n_visible(&text.content);
            }
            NodeData::Element(_) | NodeData::AnonymousBlock(_) => {
                let display = node.primary_styles().map(|styles| styles.clone_display());
                let Some(display) = display else { continue };
                if display.inside() == DisplayInside::Contents {
                    push_children(node, element, &mut stack);
                } else if (display.outside(), display.inside())
                    == (DisplayOutside::Inline, DisplayInside::Flow)
                    && (node.is_non_atomic_inline() || node.is_anonymous())
                {
                    push_children(node, id, &mut stack);
                }
            }
            NodeData::Comment { .. } | NodeData::Document(_) => {}
        }
    }
    text_runs
}

fn push_children(node: &Node, element: NodeId, stack: &mut Vec<(NodeId, NodeId)>) {
    stack.extend(node.after().map(|after| (after, element)));
    stack.extend(node.children.iter().rev().map(|&child| (child, element)));
    stack.extend(node.before().map(|before| (before, element)));
}

fn n_visible(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

struct InlineRoot<'a> {
    text_runs: &'a [TextRun],
    lines: &'a TextLayout,
    origin: (f32, f32),
    /// Number of visible characters before each byte of the text, computed on demand.
    n_before: Option<Vec<u32>>,
}

impl InlineRoot<'_> {
    fn place(mut self, rects: &mut ByNode<Rect>) {
        match self.text_runs {
            [] => return,
            // In a paragraph with a single text, all lines belong to it.
            [only] if self.lines.layout.inline_boxes().len() == 0 => {
                for line in self.lines.layout.lines() {
                    let metrics = line.metrics();
                    self.add(
                        rects,
                        only.text,
                        &line,
                        metrics.inline_min_coord + metrics.offset,
                        metrics.advance,
                    );
                }
                return;
            }
            _ => {}
        }
        let mut texts: Vec<(NodeId, NodeId)> =
            self.text_runs.iter().map(|text_run| (text_run.element, text_run.text)).collect();
        texts.sort_unstable();
        // The text of an element that has only one.
        let only_text = |element: NodeId| {
            let start = texts.partition_point(|(other, _)| *other < element);
            match &texts[start..] {
                [(own, _), (next, _), ..] if *own == element && *next == element => None,
                [(own, text), ..] if *own == element => Some(*text),
                _ => None,
            }
        };
        for line in self.lines.layout.lines() {
            let mut run_clusters: Option<(usize, usize)> = None;
            for item in line.items() {
                let PositionedLayoutItem::GlyphRun(run) = item else { continue };
                match only_text(run.style().brush.id) {
                    Some(text) => self.add(rects, text, &line, run.offset(), run.advance()),
                    None => self.split(rects, &line, &run, &mut run_clusters),
                }
            }
        }
    }

    fn add(&self, rects: &mut ByNode<Rect>, text: NodeId, line: &Line<'_, TextBrush>, x: f32, w: f32) {
        let metrics = line.metrics();
        let rect = Rect {
            x: self.origin.0 + x,
            y: self.origin.1 + metrics.block_min_coord,
            w,
            h: metrics.block_max_coord - metrics.block_min_coord,
        };
        let joined = rects.get(text).unwrap_or_default().union(&rect);
        rects.insert(text, joined);
    }

    /// Finds the text of each cluster, for a run whose element has several texts. `place` is the current run on this
    /// line, and how many of its clusters are used.
    fn split(
        &mut self,
        rects: &mut ByNode<Rect>,
        line: &Line<'_, TextBrush>,
        run: &GlyphRun<'_, TextBrush>,
        place: &mut Option<(usize, usize)>,
    ) {
        let index = run.run().index();
        let mut n_used = place.filter(|(known, _)| *known == index).map_or(0, |(_, n)| n);
        let element = run.style().brush.id;
        let (mut x, end) = (run.offset(), run.offset() + run.advance());
        let mut has_begun = false;
        for cluster in run.run().visual_clusters().skip(n_used) {
            let is_own = cluster.style_index() == run.style_index();
            if has_begun && !is_own {
                break;
            }
            n_used += 1;
            // A link before this text is in the same run and already placed.
            if !is_own {
                continue;
            }
            has_begun = true;
            let is_blank = cluster.is_space_or_nbsp();
            if let Some(text) = self.text_at(cluster.text_range().start, element).filter(|_| !is_blank) {
                self.add(rects, text, line, x, cluster.advance());
            }
            x += cluster.advance();
            if x > end + 0.5 {
                break;
            }
        }
        *place = Some((index, n_used));
    }

    /// The text node that contains a byte of the inline root's text.
    fn text_at(&mut self, byte: usize, element: NodeId) -> Option<NodeId> {
        let n_before = self.n_before.get_or_insert_with(|| {
            let mut counts = Vec::with_capacity(self.lines.text.len() + 1);
            let mut n = 0;
            for character in self.lines.text.chars() {
                counts.extend(std::iter::repeat_n(n, character.len_utf8()));
                n += u32::from(!character.is_whitespace());
            }
            counts
        });
        let n = *n_before.get(byte)? as usize;
        let after = self.text_runs.partition_point(|text_run| text_run.start <= n);
        let is_own = |text_run: &&TextRun| text_run.element == element;
        let before = self.text_runs[..after].iter().rev().take(8).find(is_own);
        before.or_else(|| self.text_runs[after..].iter().take(8).find(is_own)).map(|text_run| text_run.text)
    }
}
