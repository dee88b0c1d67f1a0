//! [`Layout`] -> facts about the subtree of each node: its visible content, amount, place, font and background. One
//! pass down and one pass up compute them.
//!
//! Sizes are estimated from content (characters times the squared font size, and boxes of images), not from heights.
//! The y positions of the embedded engine are unreliable, and a longer paragraph must not change cuts elsewhere on the
//! page.

use super::purpose::{Purpose, element_purpose, purpose_by_markup};
use super::selector::{Selector, matching_nodes};
use crate::page::layout::{Display, Layout, LayoutNode, Rect, Rgba};

/// Marks a missing node.
pub(super) const NONE: u32 = u32::MAX;

/// Area of a character in units of the squared font size: half as wide as high, plus leading.
const AREA_PER_LETTER: f32 = 0.65;

/// Area in square pixels of a field or button.
const AREA_PER_CONTROL: f32 = 3000.0;

/// Letters of prose that make an element a section of the text. The real footers of an article, with tags and a note
/// about the author, have fewer.
const MIN_SECTION_LETTERS: u32 = 500;
/// Letters of prose outside a header or footer that make it one: two or three sentences. Without them it contains the
/// page.
const MIN_PROSE_OUTSIDE: u32 = 200;

/// Characters of prose (about fifty words) that outweigh the purpose suggested by a name. Shares of less prose than that
/// say nothing.
const MIN_PROSE_LETTERS: u32 = 250;

/// A colour that represents any background image.
const HAS_IMAGE: Rgba = Rgba { r: 1, g: 2, b: 3, a: 4 };

/// Facts about a subtree or a run of neighbouring subtrees.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// One past the last node of the subtree.
    pub(super) end: u32,
    /// Visible characters without white space.
    pub(super) n_letters: u32,
    pub(super) n_link_letters: u32,
    /// Characters that are one click away.
    pub(super) n_collapsed_letters: u32,
    pub(super) n_words: u32,
    pub(super) n_links: u32,
    pub(super) n_images: u32,
    pub(super) n_controls: u32,
    /// Area of the images in square pixels.
    pub(super) image_area: f32,
    /// Estimated area of the content in square pixels.
    pub(super) mass: f32,
    /// Bounding box of all visible content.
    pub(super) rect: Rect,
    /// Size and weight of the first and the last text.
    pub(super) first_font: (f32, u16),
    pub(super) last_font: (f32, u16),
    /// Sum of the font sizes of all characters, used for the mean.
    pub(super) font_sum: f32,
    /// Number of paragraphs, headings and cells: block-level nodes that contain running text only.
    pub(super) n_paragraphs: u32,
    /// Characters outside links in paragraphs of at least twelve words.
    pub(super) n_prose_letters: u32,
    /// The visible background of the node.
    pub(super) background: Rgba,
    /// Whether a descendant is block-level.
    pub(super) has_blocks: bool,
    /// Whether it contains a table cell with blocks in it, as layout tables do.
    pub(super) has_laid_out_cells: bool,
    pub(super) has_heading: bool,
    pub(super) is_fixed: bool,
    pub(super) purpose: Purpose,
    /// Hash of tag and class. Neighbours of the same kind are items of one list.
    pub(super) kind: u64,
}

impl Facts {
    /// Whether a reader sees any of it.
    pub(super) fn has_content(&self) -> bool {
        self.mass > 0.0
    }

    /// Share of characters inside links.
    pub(super) fn link_share(&self) -> f32 {
        if self.n_letters == 0 { 0.0 } else { self.n_link_letters as f32 / self.n_letters as f32 }
    }

    /// Adds the facts of the preceding content. Passes up run from the last node to the first.
    pub(super) fn absorb_earlier(&mut self, earlier: &Facts) {
        self.add_counts(earlier);
        if earlier.n_letters > 0 {
            self.first_font = earlier.first_font;
            if self.last_font.0 == 0.0 {
                self.last_font = earlier.last_font;
            }
        }
    }

    /// Adds the facts of the following content.
    pub(super) fn absorb_later(&mut self, later: &Facts) {
        self.add_counts(later);
        self.end = self.end.max(later.end);
        if later.n_letters > 0 {
            self.last_font = later.last_font;
            if self.first_font.0 == 0.0 {
                self.first_font = later.first_font;
            }
        }
    }

    fn add_counts(&mut self, other: &Facts) {
        self.end = self.end.max(other.end);
        self.n_letters = self.n_letters.saturating_add(other.n_letters);
        self.n_link_letters = self.n_link_letters.saturating_add(other.n_link_letters);
        self.n_collapsed_letters = self.n_collapsed_letters.saturating_add(other.n_collapsed_letters);
        self.n_words = self.n_words.saturating_add(other.n_words);
        self.n_links += other.n_links;
        self.n_images += other.n_images;
        self.n_controls += other.n_controls;
        self.image_area += other.image_area;
        self.mass += other.mass;
        self.font_sum += other.font_sum;
        self.n_paragraphs += other.n_paragraphs;
        self.n_prose_letters = self.n_prose_letters.saturating_add(other.n_prose_letters);
        self.has_heading |= other.has_heading;
        self.has_laid_out_cells |= other.has_laid_out_cells;
        if other.has_content() {
            self.rect = self.rect.union(&other.rect);
        }
    }
}

/// A layout with the facts about each node.
pub(super) struct PageFacts<'a> {
    pub(super) layout: &'a Layout<'a>,
    pub(super) parents: Vec<u32>,
    pub(super) first_children: Vec<u32>,
    pub(super) next_siblings: Vec<u32>,
    /// Whether the node's own text, image or field is visible.
    pub(super) is_seen: Vec<bool>,
    /// The link at or above each node.
    pub(super) anchors: Vec<u32>,
    /// The nearest block-level node at or above each node.
    pub(super) paragraphs: Vec<u32>,
    pub(super) facts: Vec<Facts>,
}

impl<'a> PageFacts<'a> {
    /// Computes the facts of a page without the parts that the `ignored` selectors match.
    pub(super) fn new(layout: &'a Layout<'a>, ignored: &[Selector]) -> PageFacts<'a> {
        let n_nodes = layout.nodes.len().min(NONE as usize - 1);
        let mut page = PageFacts {
            layout,
            parents: parents(&layout.nodes[..n_nodes]),
            first_children: vec![NONE; n_nodes],
            next_siblings: vec![NONE; n_nodes],
            is_seen: vec![false; n_nodes],
            anchors: vec![NONE; n_nodes],
            paragraphs: vec![NONE; n_nodes],
            facts: Vec::new(),
        };
        let has_boxes = layout.nodes.iter().any(|node| is_content(node) && is_boxed(node) && node.is_visible);
        page.facts = vec![Facts::default(); n_nodes];
        let is_ignored = matching_nodes(&page, ignored);
        page.inherit_from_ancestors(has_boxes, &is_ignored);
        page.sum_over_subtrees();
        page.mark_comment_lists();
        page.discard_implausible_purposes();
        page.correct_nested_purposes();
        page
    }

    /// Number of visible words without a box. No block contains them.
    pub(super) fn n_lost_words(&self) -> u32 {
        let mut is_held = vec![false; self.parents.len()];
        let mut n_words = 0;
        for (index, node) in self.layout.nodes.iter().enumerate().take(self.parents.len()) {
            let above = self.parents[index];
            is_held[index] = above != NONE && is_held[above as usize]
                || hides_subtree(node)
                || holds_words_of_its_own(node);
            let is_lost = node.is_text() && node.is_visible && !is_held[index] && !self.is_seen[index];
            if is_lost
                && node.rect.w == 0.0
                && node.rect.h == 0.0
                && node.text.contains(char::is_alphanumeric)
            {
                n_words += count(&node.text).1;
            }
        }
        n_words
    }

    /// Discards purposes that contradict the content: an element with a large share of the page's prose is not an
    /// advertisement, overlay or widget, whatever its class name.
    fn discard_implausible_purposes(&mut self) {
        let n_all = self.facts.first().map_or(0, |root| root.n_prose_letters) as f32;
        for index in 0..self.facts.len() {
            let (purpose, n_prose) = (self.facts[index].purpose, self.facts[index].n_prose_letters);
            let Some(most) = purpose.most_prose() else { continue };
            if n_prose >= MIN_PROSE_LETTERS && n_prose as f32 > most * n_all {
                self.facts[index].purpose = purpose_by_markup(&self.layout.nodes[index]);
            }
        }
    }

    /// Corrects purposes that contradict the markup around them. A part of the main element with this much prose is
    /// not the footer of the page, whatever its class name: "legal" is also what a page of terms is about. An article
    /// inside the header or footer of a page with other prose is a card of a different page.
    fn correct_nested_purposes(&mut self) {
        let n_all = self.facts.first().map_or(0, |root| root.n_prose_letters);
        let n_nodes = self.facts.len();
        let (mut is_in_main, mut is_in_entry) = (vec![false; n_nodes], vec![false; n_nodes]);
        let mut is_in_frame = vec![false; n_nodes];
        for index in 0..n_nodes {
            let node = &self.layout.nodes[index];
            if node.is_text() {
                continue;
            }
            let parent = self.parents[index] as usize;
            let above = |flags: &[bool]| flags.get(parent).copied().unwrap_or(false);
            let (by_markup, facts) = (purpose_by_markup(node), &self.facts[index]);
            let is_frame = by_markup.is_frame()
                && !above(&is_in_entry)
                && n_all.saturating_sub(facts.n_prose_letters) >= MIN_PROSE_OUTSIDE;
            is_in_main[index] = above(&is_in_main) || by_markup == Purpose::Main;
            is_in_frame[index] = by_markup != Purpose::Main && (above(&is_in_frame) || is_frame);
            is_in_entry[index] =
                above(&is_in_entry) || matches!(&*node.tag, "article" | "main" | "section" | "li");
            let is_long = facts.n_prose_letters >= MIN_SECTION_LETTERS;
            if is_in_main[index] && facts.purpose.is_frame() && facts.purpose != by_markup && is_long {
                self.facts[index].purpose = by_markup;
            } else if is_in_frame[index] && facts.purpose == Purpose::Article {
                self.facts[index].purpose = Purpose::Related;
            }
        }
    }

    /// Whether the page has boxes to cut by.
    pub(super) fn is_usable(&self) -> bool {
        self.facts.first().is_some_and(|root| root.has_content() && root.rect.area() > 0.0)
    }

    pub(super) fn node(&self, index: u32) -> &'a LayoutNode<'a> {
        &self.layout.nodes[index as usize]
    }

    pub(super) fn facts(&self, index: u32) -> &Facts {
        &self.facts[index as usize]
    }

    pub(super) fn children(&self, index: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.first_children[index as usize];
        std::iter::successors((first != NONE).then_some(first), |child| {
            let next = self.next_siblings[*child as usize];
            (next != NONE).then_some(next)
        })
    }

    /// Computes what nodes inherit from their ancestors: visibility, background, link, paragraph.
    fn inherit_from_ancestors(&mut self, has_boxes: bool, is_ignored: &[bool]) {
        let mut is_hidden = vec![false; self.parents.len()];
        for index in 0..self.parents.len() {
            let node = &self.layout.nodes[index];
            let parent =
                Some(self.parents[index]).filter(|parent| *parent != NONE).map(|parent| parent as usize);
            let above = |values: &[u32]| parent.map_or(NONE, |parent| values[parent]);
            let is_anchor = node.tag == "a" && node.attribute("href").is_some();
            self.anchors[index] = if is_anchor { index as u32 } else { above(&self.anchors) };
            let has_lines = !node.is_text() && node.display != Display::Inline;
            self.paragraphs[index] = if has_lines { index as u32 } else { above(&self.paragraphs) };
            is_hidden[index] = parent.is_some_and(|parent| is_hidden[parent])
                || hides_subtree(node)
                || is_ignored.get(index).is_some_and(|is_ignored| *is_ignored);
            self.is_seen[index] = !is_hidden[index] && node.is_visible && (!has_boxes || is_in_sight(node));
            self.facts[index] = self.own_facts(index, parent);
        }
    }

    fn own_facts(&self, index: usize, parent: Option<usize>) -> Facts {
        let node = &self.layout.nodes[index];
        let mut facts = Facts {
            end: index as u32 + 1,
            background: own_background(node, parent.map(|parent| self.facts[parent].background)),
            is_fixed: node.is_fixed,
            ..Facts::default()
        };
        if !node.is_text() {
            facts.purpose = element_purpose(node);
            facts.kind = node_kind(node);
        }
        if self.is_seen[index] {
            self.add_own_content(index, &mut facts);
        }
        facts
    }

    fn add_own_content(&self, index: usize, facts: &mut Facts) {
        let node = &self.layout.nodes[index];
        if node.is_text() {
            let (n_letters, n_words) = count(&node.text);
            let size = if node.font_size.is_finite() { node.font_size.clamp(6.0, 96.0) } else { 16.0 };
            facts.n_letters = n_letters;
            facts.n_words = n_words;
            facts.n_collapsed_letters = if node.is_collapsed { n_letters } else { 0 };
            facts.n_link_letters = if self.anchors[index] == NONE { 0 } else { n_letters };
            facts.mass = n_letters as f32 * size * size * AREA_PER_LETTER;
            facts.font_sum = n_letters as f32 * size;
            if n_letters > 0 {
                facts.first_font = (size, node.font_weight);
                facts.last_font = facts.first_font;
                facts.rect = finite(&node.rect);
            }
        } else if is_image(node) {
            facts.n_images = 1;
            facts.rect = finite(&node.rect);
            facts.image_area = facts.rect.area().clamp(100.0, 1280.0 * 1000.0);
            facts.mass = facts.image_area;
        } else if is_control(node) {
            facts.n_controls = 1;
            facts.rect = finite(&node.rect);
            facts.mass = AREA_PER_CONTROL;
        } else if self.anchors[index] == index as u32 {
            facts.n_links = 1;
        } else if is_heading(node) {
            facts.has_heading = true;
        }
    }

    fn sum_over_subtrees(&mut self) {
        for index in (0..self.parents.len()).rev() {
            self.close(index);
            let parent = self.parents[index];
            if parent == NONE {
                continue;
            }
            self.next_siblings[index] = self.first_children[parent as usize];
            self.first_children[parent as usize] = index as u32;
            let (above, below) = self.facts.split_at_mut(index);
            let (above, own) = (&mut above[parent as usize], &below[0]);
            let node = &self.layout.nodes[index];
            let has_lines = !node.is_text() && node.display != Display::Inline;
            above.has_blocks |= own.has_content() && (has_lines || own.has_blocks);
            above.has_laid_out_cells |= own.has_blocks && matches!(&*node.tag, "td" | "th");
            above.absorb_earlier(own);
        }
    }

    /// Counts a node as a paragraph if it is one. All of its descendants have been counted.
    fn close(&mut self, index: usize) {
        let node = &self.layout.nodes[index];
        let facts = &mut self.facts[index];
        let has_lines = !node.is_text() && node.display != Display::Inline;
        if has_lines && facts.has_content() && !facts.has_blocks {
            facts.n_paragraphs = 1;
            let n_plain = facts.n_letters - facts.n_link_letters.min(facts.n_letters);
            facts.n_prose_letters = if facts.n_words >= 12 && facts.link_share() < 0.5 { n_plain } else { 0 };
        } else if facts.has_blocks && facts.n_paragraphs == 0 {
            facts.n_paragraphs = 1;
        }
    }
}

fn parents(nodes: &[LayoutNode]) -> Vec<u32> {
    let mut path = OpenPath { open: Vec::new(), is_open: vec![false; nodes.len()] };
    let parents = nodes.iter().enumerate().map(|(index, node)| path.enter(index, node.parent));
    parents.map(|parent| parent.map_or(NONE, |parent| parent as u32)).collect()
}

/// The open nodes at a position in document order.
struct OpenPath {
    open: Vec<usize>,
    is_open: Vec<bool>,
}

impl OpenPath {
    /// Advances to the next node and returns its parent. If document order has already left the parent, subtrees would
    /// overlap; the root becomes the parent then.
    fn enter(&mut self, index: usize, parent: Option<u32>) -> Option<usize> {
        let parent =
            parent.map(|parent| parent as usize).filter(|parent| *parent < index && self.is_open[*parent]);
        let parent = if index == 0 { None } else { parent.or(Some(0)) };
        while let Some(top) = self.open.pop_if(|top| Some(*top) != parent) {
            self.is_open[top] = false;
        }
        self.open.push(index);
        self.is_open[index] = true;
        parent
    }
}

fn hides_subtree(node: &LayoutNode) -> bool {
    (!node.is_text() && node.display == Display::None)
        || matches!(
            &*node.tag,
            "script"
                | "style"
                | "template"
                | "noscript"
                | "head"
                | "title"
                | "desc"
                | "option"
                | "datalist"
                | "metadata"
        )
}

/// Whether the element displays the words inside it by itself, or not at all, instead of as lines of the page.
fn holds_words_of_its_own(node: &LayoutNode) -> bool {
    matches!(
        &*node.tag,
        "select"
            | "textarea"
            | "svg"
            | "math"
            | "iframe"
            | "object"
            | "canvas"
            | "video"
            | "audio"
            | "details"
            | "button"
            | "progress"
            | "meter"
            | "map"
            | "noframes"
            | "embed"
            | "ruby"
    )
}

fn is_content(node: &LayoutNode) -> bool {
    if node.is_text() { !node.text.trim().is_empty() } else { is_image(node) || is_control(node) }
}

fn is_boxed(node: &LayoutNode) -> bool {
    node.rect.w > 0.0 && node.rect.h > 0.0
}

/// Whether its box is not left of or above the page.
fn is_in_sight(node: &LayoutNode) -> bool {
    if !is_content(node) {
        return true;
    }
    is_boxed(node) && node.rect.right() > 0.0 && node.rect.bottom() > 0.0
}

/// Whether it is a visible image. Images of a few pixels are tracking pixels.
pub(super) fn is_image(node: &LayoutNode) -> bool {
    let is_tagged = match &*node.tag {
        "img" => true,
        "input" => node.attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case("image")),
        _ => false,
    };
    let is_dot = is_boxed(node) && node.rect.w <= 3.0 && node.rect.h <= 3.0;
    is_tagged && !is_dot
}

fn is_control(node: &LayoutNode) -> bool {
    match &*node.tag {
        "input" => !node.attribute("type").is_some_and(|kind| kind.eq_ignore_ascii_case("hidden")),
        "select" | "textarea" => true,
        _ => false,
    }
}

pub(super) fn is_heading(node: &LayoutNode) -> bool {
    matches!(&*node.tag, "h1" | "h2" | "h3" | "h4" | "h5" | "h6")
}

fn own_background(node: &LayoutNode, above: Option<Rgba>) -> Rgba {
    match above {
        _ if node.has_background_image && !node.is_text() => HAS_IMAGE,
        _ if node.background.a >= 26 => node.background,
        Some(above) => above,
        None => Rgba { r: 255, g: 255, b: 255, a: 255 },
    }
}

/// Counts characters and words. In scripts without spaces two characters count as a word.
fn count(text: &str) -> (u32, u32) {
    if text.is_ascii() {
        return count_ascii(text.as_bytes());
    }
    let (mut n_letters, mut n_words, mut n_unspaced) = (0u32, 0u32, 0u32);
    let mut is_between = true;
    for c in text.chars() {
        let is_space = c.is_whitespace() || c.is_control();
        n_words += u32::from(is_between && !is_space);
        is_between = is_space;
        n_letters += u32::from(!is_space);
        n_unspaced +=
            u32::from(('\u{2e80}'..='\u{9fff}').contains(&c) || ('\u{ac00}'..='\u{d7af}').contains(&c));
    }
    (n_letters, n_words.max(n_unspaced / 2))
}

/// The same for ASCII, in which a byte is a character.
fn count_ascii(text: &[u8]) -> (u32, u32) {
    let (mut n_letters, mut n_words, mut is_between) = (0, 0, true);
    for byte in text {
        let is_letter = matches!(byte, b'!'..=b'~');
        n_words += u32::from(is_between & is_letter);
        is_between = !is_letter;
        n_letters += u32::from(is_letter);
    }
    (n_letters, n_words)
}

/// Replaces values that are not finite, because comparisons need finite ones.
fn finite(rect: &Rect) -> Rect {
    let finite = |value: f32| if value.is_finite() { value.clamp(-1e7, 1e7) } else { 0.0 };
    Rect { x: finite(rect.x), y: finite(rect.y), w: finite(rect.w).max(0.0), h: finite(rect.h).max(0.0) }
}

/// Hash of tag and first class without digits: `li.post-17` and `li.post-18` are of one kind.
fn node_kind(node: &LayoutNode) -> u64 {
    let class = node.attribute("class").and_then(|class| class.split_ascii_whitespace().next()).unwrap_or("");
    let letters = class.bytes().filter(|byte| !byte.is_ascii_digit());
    let bytes = node.tag.bytes().chain([b'.']).chain(letters);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn letters_are_counted_alike_with_and_without_others(text in "[ -~\t\n]{0,40}") {
            let (n_letters, n_words) = count(&text);
            let (n_more_letters, n_more_words) = count(&format!("{text} \u{e9}"));
            prop_assert_eq!((n_letters + 1, n_words + 1), (n_more_letters, n_more_words));
        }
    }
}
