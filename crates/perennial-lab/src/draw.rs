//! Draws the blocks of a page in SVG, with reference, importance, role and texts, so that a person can check the
//! segmentation.

use std::fmt::Write;

use perennial_core::page::layout::{Layout, LayoutNode, Rect};
use perennial_core::page::segment::{Block, BlockTree};
use perennial_core::text::markup::escaped;

/// Higher pages are cut off here to limit the size of the file.
const MAX_HEIGHT: f32 = 12_000.0;

const MAX_TEXTS: usize = 6_000;

/// Draws the page with its blocks. More important leaves are redder.
pub fn draw_svg(tree: &BlockTree, layout: &Layout) -> String {
    let (width, height) = (clamp(layout.width, 320.0, 4000.0), clamp(layout.height, 200.0, MAX_HEIGHT));
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
    );
    tree.leaves().for_each(|leaf| fill(&mut out, leaf));
    draw_content(&mut out, layout);
    let mut blocks: Vec<&Block> = tree.walk().collect();
    // Inner blocks are drawn last, because the lines of the leaves would hide theirs.
    blocks.sort_by_key(|block| std::cmp::Reverse(block.reference.len()));
    blocks.iter().for_each(|block| outline(&mut out, block));
    tree.leaves().for_each(|leaf| label(&mut out, leaf));
    out.push_str("</svg>\n");
    out
}

fn clamp(value: f32, low: f32, high: f32) -> f32 {
    if value.is_finite() { value.clamp(low, high) } else { low }
}

/// From pale blue (no importance) over yellow to red (full importance). The square root makes small differences
/// visible.
fn colour(importance: f32) -> String {
    let hue = 210.0 * (1.0 - importance.clamp(0.0, 1.0).sqrt());
    format!("hsl({hue:.0},85%,60%)")
}

fn fill(out: &mut String, leaf: &Block) {
    let Rect { x, y, w, h } = leaf.rect;
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" fill=\"{}\" fill-opacity=\"0.28\"/>",
        colour(leaf.importance)
    );
}

fn outline(out: &mut String, block: &Block) {
    let level = block.reference.len() as f32;
    let (stroke, dash, grow) = if block.is_leaf() {
        ("#345", "", 0.0)
    } else {
        ("#c3c", " stroke-dasharray=\"8 5\"", (6.0 - level).max(1.0))
    };
    let Rect { x, y, w, h } = block.rect;
    let _ = writeln!(
        out,
        "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"{stroke}\" \
         stroke-width=\"{:.1}\"{dash}/>",
        x - grow,
        y - grow,
        w + 2.0 * grow,
        h + 2.0 * grow,
        (4.0 - level * 0.5).max(1.2)
    );
}

fn label(out: &mut String, leaf: &Block) {
    let text = format!(
        "{} · {:.0}% · {} · DoC {}",
        leaf.name(),
        leaf.importance * 100.0,
        leaf.role.name(),
        leaf.doc
    );
    let width = 7.2 * text.chars().count() as f32 + 8.0;
    let (x, y) = ((leaf.rect.right() - width).max(0.0), leaf.rect.y.max(0.0));
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"17\" fill=\"#123\" fill-opacity=\"0.82\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" fill=\"#fff\">{text}</text>",
        x + 4.0,
        y + 13.0
    );
}

/// Draws texts at their position and images as grey boxes.
fn draw_content(out: &mut String, layout: &Layout) {
    let seen = layout
        .nodes
        .iter()
        .filter(|node| node.is_visible && node.rect.area() > 0.0 && node.rect.y < MAX_HEIGHT);
    for node in seen.filter(|node| node.is_text() || node.tag == "img").take(MAX_TEXTS) {
        if node.is_text() { draw_text(out, node) } else { draw_image(out, node) }
    }
}

fn draw_image(out: &mut String, node: &LayoutNode) {
    let Rect { x, y, w, h } = node.rect;
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" fill=\"#999\" fill-opacity=\"0.4\" stroke=\"#777\"/>"
    );
}

/// Distributes the characters evenly over the lines of the layout, because the drawing has no fonts.
fn draw_text(out: &mut String, node: &LayoutNode) {
    let size = clamp(node.font_size, 6.0, 60.0);
    let line_height = size * 1.25;
    let n_lines = ((node.rect.h / line_height).round() as usize).clamp(1, 60);
    let letters: Vec<char> = node.text.split_whitespace().collect::<Vec<_>>().join(" ").chars().collect();
    let per_line = letters.len().div_ceil(n_lines).clamp(1, 400);
    for (nth, line) in letters.chunks(per_line).take(n_lines).enumerate() {
        let y = node.rect.y + size + nth as f32 * node.rect.h / n_lines as f32;
        let weight = if node.font_weight >= 600 { " font-weight=\"bold\"" } else { "" };
        let line: String = line.iter().collect();
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\"{weight} fill=\"#222\">{}</text>",
            node.rect.x,
            escaped(&line)
        );
    }
}

#[cfg(test)]
mod tests {
    use perennial_core::page::segment::{SegmentConfig, segment};
    use perennial_core::text::dom::Dom;
    use perennial_render::structural;

    use super::*;

    #[test]
    fn a_drawing_is_well_formed_and_names_every_leaf() {
        let page = "<html><body><nav><p>a &amp; b</p></nav><p>the main text of it all with a \u{2} in it</p></body></html>";
        let dom = Dom::parse(page);
        let layout = structural::layout(&dom, "http://a.org/");
        let tree = segment(&layout, &SegmentConfig::default());
        let svg = draw_svg(&tree, &layout);
        let mut reader = quick_xml::Reader::from_str(&svg);
        while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
        assert!(tree.leaves().next().is_some());
        assert!(tree.leaves().all(|leaf| svg.contains(&format!(">{} · ", leaf.name()))));
        assert!(svg.contains("a &amp; b") && !svg.contains('\u{2}'));
    }
}
