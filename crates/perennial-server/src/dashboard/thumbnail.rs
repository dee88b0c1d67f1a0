//! A small drawing of a page from its tree, with changed blocks framed, in SVG.

use std::fmt::Write;

use maud::{Markup, PreEscaped};
use perennial_core::page::segment::{BlockRole, BlockTree};

const WIDTH: f32 = 72.0;
const HEIGHT: f32 = 94.0;
/// Distance of drawn text lines.
const LINE: f32 = 4.0;
const MAX_LINES: usize = 120;

/// Draws the upper part of a page: lines for text, dashed frames for advertisements, frames around changed blocks.
pub(crate) fn svg(tree: &BlockTree, changed: &[String]) -> Markup {
    let leaves: Vec<_> = tree.leaves().filter(|block| block.rect.w > 0.0 && block.rect.h > 0.0).collect();
    // Documents without layout, such as feeds, have no thumbnail.
    if leaves.is_empty() {
        return PreEscaped(String::new());
    }
    let page_width = leaves.iter().map(|block| block.rect.x + block.rect.w).fold(1.0, f32::max);
    let scale = (WIDTH - 3.0) / page_width;
    let mut out = format!(
        "<svg class=\"thumb\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Page layout with changed blocks framed\">"
    );
    let mut n_lines = 0;
    for block in leaves {
        let (x, y) = (1.5 + block.rect.x * scale, 1.5 + block.rect.y * scale);
        let (width, height) = (block.rect.w * scale, (block.rect.h * scale).min(HEIGHT - y));
        if y >= HEIGHT - 1.0 {
            continue;
        }
        // Writing to a string cannot fail.
        if block.role == BlockRole::Advertisement {
            let _ = write!(
                out,
                "<rect class=\"ad\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
            );
        } else {
            let mut top = y + 0.8;
            while top < y + height && n_lines < MAX_LINES {
                let _ = write!(
                    out,
                    "<rect class=\"tx\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"1.4\"/>",
                    width * 0.92
                );
                top += LINE;
                n_lines += 1;
            }
        }
        if changed.contains(&block.name()) {
            let _ = write!(
                out,
                "<rect class=\"ch\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>",
                x - 0.5,
                y - 0.5
            );
        }
    }
    PreEscaped(out + "</svg>")
}
