//! Facts about nodes -> visual blocks and the separators between them (VIPS, Cai et al. 2003, sections 4.1 and 4.2;
//! docs/papers.md, Blocks and Vi-XML).
//!
//! The page is walked once. A node with one kind of content is a visual block; other nodes are divided. There is a
//! separator between neighbouring blocks. Its weight depends on the two subtrees that meet there, below their nearest
//! common ancestor. Blocks keep document order, so each block is a run of nodes, and each visible word is in exactly
//! one block.

use super::facts::{Facts, NONE, PageFacts, is_heading};
use super::purpose::Purpose;
use super::teasers::Teasers;
use crate::page::layout::{Display, Rect};

/// Deeper nodes are not divided, because the division recurses and a hostile page could exhaust the stack.
const MAX_DEPTH: usize = 160;

/// Maximum number of levels between a caption and its figure. Content management systems wrap both a few times; a limit
/// keeps the walk linear.
const MAX_FIGURE_DEPTH: usize = 6;

/// Maximum words of an element whose class name marks it as a caption. Longer ones are texts in a box with such a name.
const MAX_CAPTION_WORDS: u32 = 100;

/// How much each cue adds to the weight of a separator, 0 (none) to 10. Renaming a field changes the engine name of
/// stored trees ([`super::SegmentConfig`]).
#[derive(Clone, PartialEq, Debug)]
pub struct Cues {
    /// Neighbours in running text, such as paragraphs, headings and figures.
    pub flow: f32,
    /// One side has several paragraphs.
    pub one_container: f32,
    /// Both sides have several paragraphs.
    pub two_containers: f32,
    /// Subtracted if both are items of one list, with the same tag and class.
    pub same_kind: f32,
    /// For each two lines of empty space between them.
    pub distance: f32,
    /// A horizontal line (`<hr>`) between them.
    pub line: f32,
    /// A different background.
    pub background: f32,
    /// Columns side by side.
    pub columns: f32,
    /// Larger or bolder font below: a heading starts a section.
    pub heading_below: f32,
    /// Subtracted if the font above is larger: a heading belongs to the text below it.
    pub heading_above: f32,
    /// Navigation, footer, comments and similar next to anything else.
    pub purpose: f32,
    /// Added to `purpose` if one side is navigation, header or footer of the page.
    pub frame: f32,
    /// Mostly links next to mostly text.
    pub links: f32,
    /// List entries next to anything else, on an article page.
    pub teasers: f32,
    /// One side is fixed while the other scrolls.
    pub fixed: f32,
    /// Subtracted if one side has only a few words.
    pub small: f32,
    /// Minimum share of the page for a node to be divided.
    pub undivided_share: f32,
}

impl Default for Cues {
    fn default() -> Cues {
        Cues {
            flow: 0.5,
            one_container: 2.0,
            two_containers: 3.0,
            same_kind: 2.0,
            distance: 1.0,
            line: 2.0,
            background: 2.0,
            columns: 2.0,
            heading_below: 1.0,
            heading_above: 1.5,
            purpose: 3.0,
            frame: 1.0,
            links: 1.5,
            teasers: 4.0,
            fixed: 4.0,
            small: 1.0,
            undivided_share: 0.004,
        }
    }
}

/// A visual block: the run of nodes from `start` to the start of the next block.
#[derive(Clone, Debug)]
pub(super) struct VisualBlock {
    pub(super) start: u32,
    pub(super) facts: Facts,
    /// The nearest landmark purpose, at the node or above it.
    pub(super) purpose: Purpose,
    /// Whether it is a list entry or part of a table.
    pub(super) is_entry: bool,
    /// Whether it is a figure or part of one.
    pub(super) is_in_figure: bool,
    /// Whether it consists of image captions, by element or class name. Known on article pages only.
    pub(super) is_caption: bool,
    /// Weight of the separator before it. Unused for the first block.
    pub(super) weight: u8,
}

impl VisualBlock {
    /// Whether it is text to read, not a heading, list of links or caption.
    pub(super) fn is_prose(&self) -> bool {
        let facts = &self.facts;
        // A long headline has as many words as a sentence.
        let least = if facts.has_heading { 250 } else { 50 };
        facts.n_prose_letters >= least && facts.link_share() < 0.5 && !self.is_in_figure && !self.is_caption
    }
}

/// The visual blocks of a page in document order, with the separators between them.
pub(super) fn visual_blocks(page: &PageFacts, cues: &Cues, teasers: Option<&Teasers>) -> Vec<VisualBlock> {
    let mut walk = PageCutter { page, cues, teasers, page_mass: 0.0, pending: 0, blocks: Vec::new() };
    if let Some(root) = page.facts.first().filter(|root| root.has_content()) {
        walk.page_mass = root.mass;
        walk.divide(0, Purpose::Unknown, 0);
        if walk.blocks.is_empty() {
            walk.emit(&walk.unit(0, true, false), Purpose::Unknown);
        }
    }
    walk.blocks
}

/// One side of a separator: a child, or a run of inline children (a virtual text node).
struct CutUnit {
    start: u32,
    /// `None` for a run of inline children.
    node: Option<u32>,
    facts: Facts,
    is_after_line: bool,
}

struct PageCutter<'a> {
    page: &'a PageFacts<'a>,
    cues: &'a Cues,
    teasers: Option<&'a Teasers>,
    page_mass: f32,
    pending: u8,
    blocks: Vec<VisualBlock>,
}

impl PageCutter<'_> {
    /// Divides a node with the given own or inherited purpose.
    fn divide(&mut self, node: u32, purpose: Purpose, depth: usize) {
        let mut units = self.units(node);
        if matches!(purpose, Purpose::Main | Purpose::Article) {
            units.iter_mut().for_each(clear_header_purpose);
        }
        let mut before: Option<&CutUnit> = None;
        for unit in &units {
            if let Some(before) = before {
                self.pending = self.weigh(before, unit);
            }
            match unit.node.filter(|node| depth < MAX_DEPTH && self.is_dividable(*node)) {
                Some(node) => self.divide(node, inherited_purpose(purpose, unit.facts.purpose), depth + 1),
                None => self.emit(unit, inherited_purpose(purpose, unit.facts.purpose)),
            }
            before = Some(unit);
        }
    }

    fn emit(&mut self, unit: &CutUnit, purpose: Purpose) {
        self.blocks.push(VisualBlock {
            start: unit.start,
            facts: unit.facts.clone(),
            purpose,
            is_entry: matches!(&*self.page.node(unit.start).tag, "li" | "dt" | "dd" | "tr" | "td" | "th"),
            is_in_figure: self
                .is_within(unit.start, |node| matches!(&*self.page.node(node).tag, "figure" | "figcaption")),
            is_caption: self.teasers.is_some() && self.is_captions(unit),
            weight: self.pending,
        });
        self.pending = 0;
    }

    /// Whether a predicate holds for a node or one of the nearest nodes above it.
    fn is_within(&self, node: u32, is_such: impl Fn(u32) -> bool) -> bool {
        let above = std::iter::successors(Some(node), |node| {
            Some(self.page.parents[*node as usize]).filter(|above| *above != NONE)
        });
        above.take(MAX_FIGURE_DEPTH).any(is_such)
    }

    /// Whether a unit is inside a caption, or at least four fifths of it are captions.
    fn is_captions(&self, unit: &CutUnit) -> bool {
        if self.is_within(unit.start, |node| self.is_caption(node)) {
            return true;
        }
        let (mut at, mut n_outside) = (unit.start, 0);
        let end = unit.node.map_or(at, |node| self.page.facts(node).end);
        while at < end {
            if self.is_caption(at) {
                at = self.page.facts(at).end.max(at + 1);
                continue;
            }
            if self.page.node(at).is_text() {
                n_outside += self.page.facts(at).n_words;
            }
            at += 1;
        }
        unit.node.is_some() && 5 * n_outside < unit.facts.n_words
    }

    fn is_caption(&self, node: u32) -> bool {
        let element = self.page.node(node);
        let names_caption = || {
            let mut names =
                element.attribute("class").unwrap_or("").split(|c: char| !c.is_ascii_alphabetic());
            names.any(|name| name.to_ascii_lowercase().ends_with("caption"))
        };
        let is_short = self.page.facts(node).n_words <= MAX_CAPTION_WORDS;
        is_short && !element.is_text() && (element.tag == "figcaption" || names_caption())
    }

    /// The visible children. Adjacent inline children form one run.
    fn units(&self, node: u32) -> Vec<CutUnit> {
        let mut units: Vec<CutUnit> = Vec::new();
        let mut is_after_line = false;
        for child in self.page.children(node) {
            let facts = self.page.facts(child);
            if !facts.has_content() {
                is_after_line |= self.page.node(child).tag == "hr";
                continue;
            }
            let is_inline = self.flows(child);
            match units.last_mut() {
                Some(last) if is_inline && last.node.is_none() && !is_after_line => {
                    last.facts.absorb_later(facts)
                }
                _ => units.push(self.unit(child, is_inline, is_after_line)),
            }
            is_after_line = false;
        }
        units
    }

    fn unit(&self, child: u32, is_inline: bool, is_after_line: bool) -> CutUnit {
        let mut facts = self.page.facts(child).clone();
        if is_inline {
            facts.n_paragraphs = 1;
            facts.kind = 0;
        }
        CutUnit { start: child, node: (!is_inline).then_some(child), facts, is_after_line }
    }

    /// Whether it is part of running text (a text node or virtual text node of VIPS).
    fn flows(&self, node: u32) -> bool {
        let own = self.page.node(node);
        (own.is_text() || own.display == Display::Inline) && !self.page.facts(node).has_blocks
    }

    /// Whether a node is divided, by heuristics 1 to 13 of VIPS on tag, colour, text and size.
    fn is_dividable(&self, node: u32) -> bool {
        let (own, facts) = (self.page.node(node), self.page.facts(node));
        if !facts.has_blocks || is_heading(own) {
            return false;
        }
        let share = facts.mass / self.page_mass;
        match &*own.tag {
            "p" | "pre" | "button" | "figure" | "picture" | "svg" | "label" | "caption" | "dt"
            | "address" | "summary" => share > 0.5,
            "a" => share > 0.25,
            "table" | "tbody" | "thead" | "tr" => facts.has_laid_out_cells || share > 0.5,
            _ => share > self.cues.undivided_share,
        }
    }

    /// The weight of the separator between two neighbours (VIPS section 4.2.2, with cues for current pages).
    fn weigh(&self, before: &CutUnit, after: &CutUnit) -> u8 {
        let (a, b) = (&before.facts, &after.facts);
        let cues = self.cues;
        let mut weight = match (a.n_paragraphs > 1, b.n_paragraphs > 1) {
            (false, false) => cues.flow,
            (true, true) => cues.two_containers,
            _ => cues.one_container,
        };
        let is_same_kind = a.kind == b.kind
            && a.purpose == b.purpose
            && self.is_list_item(before)
            && self.is_list_item(after)
            && !are_unlike_columns(a, b);
        weight -= if is_same_kind { cues.same_kind } else { 0.0 };
        weight += self.weigh_place(a, b);
        weight += if after.is_after_line { cues.line } else { 0.0 };
        weight += if a.background != b.background { cues.background } else { 0.0 };
        weight += self.weigh_font(a, b);
        weight += self.weigh_content(a, b);
        weight += self.weigh_teasers(before, after);
        weight += if a.is_fixed != b.is_fixed { cues.fixed } else { 0.0 };
        weight.round().clamp(0.0, 10.0) as u8
    }

    /// Whether it may be one of several similar items. Cells and rows of a layout table may not: its cells are columns
    /// of the page, and its rows differ.
    fn is_list_item(&self, unit: &CutUnit) -> bool {
        let Some(node) = unit.node else { return false };
        let is_part_of_layout = match &*self.page.node(node).tag {
            "td" | "th" => unit.facts.has_blocks,
            "tr" | "tbody" | "table" => unit.facts.has_laid_out_cells,
            _ => false,
        };
        !is_part_of_layout
    }

    fn weigh_place(&self, a: &Facts, b: &Facts) -> f32 {
        match relative_position(&a.rect, &b.rect) {
            RelativePosition::Below(gap) => self.cues.distance * distance_steps(gap),
            RelativePosition::Beside => {
                let is_column =
                    a.mass.min(b.mass) > 0.01 * self.page_mass && a.n_paragraphs.min(b.n_paragraphs) > 1;
                if is_column { self.cues.columns } else { 0.0 }
            }
            RelativePosition::Overlapping => 0.0,
        }
    }

    fn weigh_font(&self, a: &Facts, b: &Facts) -> f32 {
        let (above, below) = (a.last_font, b.first_font);
        if above.0 == 0.0 || below.0 == 0.0 {
            return 0.0;
        }
        if below.0 > above.0 * 1.15 || (below.0 >= above.0 && below.1 >= above.1 + 200) {
            return self.cues.heading_below;
        }
        let is_heading = a.n_paragraphs <= 1 && (above.0 > below.0 * 1.15 || above.1 >= below.1 + 200);
        if is_heading { -self.cues.heading_above } else { 0.0 }
    }

    fn weigh_teasers(&self, before: &CutUnit, after: &CutUnit) -> f32 {
        let Some(teasers) = self.teasers else { return 0.0 };
        let share = |unit: &CutUnit| teasers.share(unit.start, unit.facts.end);
        let (one, other) = (share(before), share(after));
        let are_unlike = one.max(other) > 0.8 && one.min(other) < 0.2;
        // A heading above a list belongs to the list.
        let is_word_apart = before.facts.n_words.min(after.facts.n_words) < 8;
        if are_unlike && !is_word_apart { self.cues.teasers } else { 0.0 }
    }

    fn weigh_content(&self, a: &Facts, b: &Facts) -> f32 {
        let cues = self.cues;
        let mut weight = 0.0;
        if a.purpose != b.purpose && (a.purpose.is_landmark() || b.purpose.is_landmark()) {
            weight += cues.purpose;
            weight += if a.purpose.is_frame() || b.purpose.is_frame() { cues.frame } else { 0.0 };
        } else if is_small(a) || is_small(b) {
            weight -= cues.small;
        }
        if a.n_words.min(b.n_words) >= 5 && (a.link_share() - b.link_share()).abs() > 0.5 {
            weight += cues.links;
        }
        weight
    }
}

/// The header of an article contains its title; it is not the header of the site.
fn clear_header_purpose(unit: &mut CutUnit) {
    if unit.facts.purpose == Purpose::Header {
        unit.facts.purpose = Purpose::Unknown;
    }
}

/// Whether two nodes are columns: side by side with different widths. Columns of a grid may have the same class, but
/// cards of one kind are equally wide.
fn are_unlike_columns(a: &Facts, b: &Facts) -> bool {
    let is_beside = matches!(relative_position(&a.rect, &b.rect), RelativePosition::Beside);
    is_beside
        && a.n_paragraphs.min(b.n_paragraphs) > 1
        && a.rect.w.max(b.rect.w) > 1.5 * a.rect.w.min(b.rect.w)
}

fn is_small(facts: &Facts) -> bool {
    facts.n_words < 8 && facts.image_area < 10_000.0
}

/// A landmark purpose holds for all descendants until one of them has a landmark purpose itself. A comment may be
/// marked as an article with a header.
fn inherited_purpose(above: Purpose, own: Purpose) -> Purpose {
    if above == Purpose::Comments && own != Purpose::Advertisement {
        return above;
    }
    if own.is_landmark() || above == Purpose::Unknown { own } else { above }
}

/// Two lines of space are one step, rounded to halves. Designers prefer multiples of 8, so the limits between steps
/// are not multiples of 8. Otherwise a fraction of a pixel could decide.
fn distance_steps(gap: f32) -> f32 {
    ((gap - 14.0) / 16.0).floor().clamp(0.0, 4.0) / 2.0
}

enum RelativePosition {
    /// Below, with this distance in pixels.
    Below(f32),
    Beside,
    Overlapping,
}

fn relative_position(a: &Rect, b: &Rect) -> RelativePosition {
    let shared = a.bottom().min(b.bottom()) - a.y.max(b.y);
    let is_apart = b.x >= a.right() - 2.0 || a.x >= b.right() - 2.0;
    if is_apart && shared > 0.3 * a.h.min(b.h) {
        RelativePosition::Beside
    } else if b.y >= a.bottom() - 2.0 {
        RelativePosition::Below(b.y - a.bottom())
    } else {
        RelativePosition::Overlapping
    }
}
