//! Rows of intervals: when a headline or a passage was on a page.

use std::fmt::Write;

use maud::{Markup, PreEscaped};
use perennial_core::text::markup::escaped;
use perennial_core::time::Timestamp;

use super::axis::Axis;

/// An element of a row of intervals.
pub(crate) enum Bar {
    /// Present in this interval; tall and dark if prominent.
    Present(Timestamp, Timestamp, bool),
    /// Added or removed in this gap.
    Gap(Timestamp, Timestamp),
    Added(Timestamp),
    Retitled(Timestamp, String),
    /// Still present at the end.
    Open(Timestamp),
    Capture(Timestamp),
}

/// A row of intervals. Gaps are hatched, which requires [`HATCH`] on the page.
pub(crate) fn intervals(axis: Axis, bars: &[Bar], label: &str) -> Markup {
    let mut out = format!("<svg class=\"c\" height=\"30\" role=\"img\" aria-label=\"{}\">", escaped(label));
    for bar in bars {
        let _ = match bar {
            Bar::Present(from, until, is_high) => {
                let (x, end) = (axis.at(*from), axis.at(*until));
                let (class, y, height) = if *is_high { ("f4", 4, 12) } else { ("f3", 7, 6) };
                let width = (end - x).max(0.35);
                write!(
                    out,
                    "<rect class=\"{class}\" x=\"{x:.2}%\" width=\"{width:.2}%\" y=\"{y}\" height=\"{height}\"/>"
                )
            }
            Bar::Gap(from, until) => {
                let (x, end) = (axis.at(*from), axis.at(*until));
                write!(
                    out,
                    "<rect x=\"{x:.2}%\" width=\"{:.2}%\" y=\"7\" height=\"6\" fill=\"url(#hatch)\"/>",
                    (end - x).max(0.2)
                )
            }
            Bar::Added(at) => {
                write!(
                    out,
                    "<line class=\"si\" x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1=\"3\" y2=\"17\" stroke-width=\"1.5\"/>",
                    axis.at(*at)
                )
            }
            Bar::Retitled(at, words) => write!(
                out,
                "<svg x=\"{:.2}%\" y=\"10\" overflow=\"visible\"><path d=\"M0-7 7 0 0 7-7 0z\" fill=\"var(--upd)\" stroke=\"var(--bg)\" stroke-width=\"1.5\"><title>{}</title></path></svg>",
                axis.at(*at),
                escaped(words)
            ),
            Bar::Open(at) => {
                let x = axis.at(*at);
                let position = if x > 98.0 {
                    "text-anchor=\"end\" x=\"100%\" dx=\"2\"".to_string()
                } else {
                    format!("x=\"{x:.2}%\" dx=\"6\"")
                };
                write!(out, "<text class=\"k\" {position} y=\"14\">&#9656;</text>")
            }
            Bar::Capture(at) => {
                write!(
                    out,
                    "<line x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1=\"22\" y2=\"27\" class=\"sm\"/>",
                    axis.at(*at)
                )
            }
        };
    }
    PreEscaped(out + "</svg>")
}

/// The fill of gaps; include it once per page.
pub(crate) const HATCH: &str = "<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs><pattern id=\"hatch\" width=\"5\" height=\"5\" \
    patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"var(--d1)\"/>\
    <rect width=\"1.6\" height=\"5\" fill=\"var(--d3)\"/></pattern></defs></svg>";
