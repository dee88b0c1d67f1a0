//! Shares between bounds: per site, and over time.

use std::fmt::Write;

use maud::{Markup, PreEscaped};
use perennial_core::text::markup::escaped;
use perennial_core::text::untrusted::shorten;
use perennial_core::time::Timestamp;

use super::axis::{Axis, narrow_label};
use crate::dashboard::components::Range;
use perennial_engine::html::dates::{day_and_minute, day_short};

/// Ranges with a likely value, one row per name.
pub(crate) fn ranges(rows: &[(String, Range)], label: &str) -> Markup {
    let height = 20 * rows.len();
    let mut out = format!(
        "<svg class=\"c\" height=\"{}\" role=\"img\" aria-label=\"{}\">",
        height + 18,
        escaped(label)
    );
    let x = |share: f64| 36.0 + 64.0 * share.clamp(0.0, 1.0);
    for (share, text, anchor) in [(0.0, "0", "start"), (0.5, "50", "middle"), (1.0, "100 %", "end")] {
        let _ = write!(
            out,
            "<line class=\"gl\" x1=\"{0}%\" x2=\"{0}%\" y1=\"0\" y2=\"{height}\"/><text x=\"{0}%\" y=\"{1}\" text-anchor=\"{anchor}\">{text}</text>",
            x(share),
            height + 14
        );
    }
    for (index, (name, Range { at_least, likely, at_most })) in rows.iter().enumerate() {
        let y = 20 * index + 10;
        let _ = write!(
            out,
            "<text class=\"k\" x=\"0\" y=\"{}\">{}</text><line x1=\"{:.1}%\" x2=\"{:.1}%\" y1=\"{y}\" y2=\"{y}\" stroke=\"var(--d2)\" stroke-width=\"4\"/>\
             <circle cx=\"{:.1}%\" cy=\"{y}\" r=\"4\" class=\"f4\"><title>{}: {:.0} to {:.0} %, likely {:.0} %</title></circle>",
            y + 4,
            escaped(&cut_name(name)),
            x(*at_least),
            x(*at_most),
            x(*likely),
            escaped(name),
            100.0 * at_least,
            100.0 * at_most,
            100.0 * likely
        );
    }
    PreEscaped(out + "</svg>")
}

/// Shortens a host to fit next to a chart.
fn cut_name(name: &str) -> String {
    let name = name.split(':').next().unwrap_or(name).trim_start_matches("www.");
    shorten(name, 16).into_owned()
}

/// The bounds of a share at an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundedShare {
    pub(crate) time: Timestamp,
    pub(crate) at_least: f64,
    pub(crate) at_most: f64,
}

/// Shares over time; the area between the bounds is filled.
pub(crate) fn curve(
    axis: Axis,
    points: &[BoundedShare],
    label: &str,
    href: impl Fn(Timestamp) -> String,
) -> Markup {
    const HEIGHT: f64 = 72.0;
    let mut out = format!(
        "<div class=\"plot\"><div class=\"yl\"><span style=\"top:0\">100</span><span style=\"top:36px\">50</span><span style=\"top:72px\">0 %</span></div>\
         <svg class=\"c\" height=\"92\" role=\"group\" aria-label=\"{}\">",
        escaped(label)
    );
    for y in [0.5, 36.5] {
        let _ = write!(out, "<line class=\"gl\" x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>");
    }
    let position = |time: Timestamp, share: f64| {
        format!("{:.2},{:.1}", axis.at(time), HEIGHT - HEIGHT * share.clamp(0.0, 1.0))
    };
    let lower: Vec<String> = points.iter().map(|point| position(point.time, point.at_least)).collect();
    let upper: Vec<String> = points.iter().rev().map(|point| position(point.time, point.at_most)).collect();
    let _ = write!(
        out,
        "<svg width=\"100%\" height=\"72\" viewBox=\"0 0 100 72\" preserveAspectRatio=\"none\"><polygon class=\"f1\" points=\"{0} {1}\"/>\
         <polyline points=\"{0}\" fill=\"none\" stroke=\"var(--d4)\" stroke-width=\"1.5\" vector-effect=\"non-scaling-stroke\"/></svg>",
        lower.join(" "),
        upper.join(" ")
    );
    let width = 100.0 / points.len().max(1) as f64;
    for BoundedShare { time, at_least, at_most } in points {
        let _ = write!(
            out,
            "<a href=\"{}\" tabindex=\"-1\"><rect x=\"{:.2}%\" width=\"{width:.2}%\" y=\"0\" height=\"72\" fill=\"transparent\"><title>{}: {:.0} to {:.0} %</title></rect></a>",
            escaped(&href(*time)),
            (axis.at(*time) - width / 2.0).max(0.0),
            day_and_minute(*time),
            100.0 * at_least,
            100.0 * at_most
        );
    }
    out.push_str("<line class=\"ax\" x1=\"0\" x2=\"100%\" y1=\"72.5\" y2=\"72.5\"/>");
    for tick in axis.ticks().iter().filter(|tick| tick.at < 93.0) {
        let minor = if tick.is_minor { " class=\"wide-only\"" } else { "" };
        let _ =
            write!(out, "<text x=\"{:.2}%\" y=\"88\"{minor}>{}</text>", tick.at, narrow_label(&tick.label));
    }
    PreEscaped(out + "</svg></div>")
}

/// A small chart of a range with a likely value over time; the area between the bounds is filled.
pub(crate) fn trend(axis: Axis, points: &[(Timestamp, Range)], label: &str) -> Markup {
    const HEIGHT: f64 = 48.0;
    let mut out = format!(
        "<div class=\"plot trend\"><div class=\"yl\"><span style=\"top:0\">100</span><span style=\"top:48px\">0 %</span></div>\
         <svg class=\"c\" height=\"66\" role=\"img\" aria-label=\"{}: {}\"><line class=\"gl\" x1=\"0\" x2=\"100%\" y1=\"0.5\" y2=\"0.5\"/>",
        escaped(label),
        points
            .iter()
            .map(|(time, Range { at_least, likely, at_most })| format!(
                "{} {:.0}, {:.0} to {:.0} %",
                day_and_minute(*time),
                100.0 * likely,
                100.0 * at_least,
                100.0 * at_most
            ))
            .collect::<Vec<_>>()
            .join("; ")
    );
    let line = |value: fn(&Range) -> f64| {
        let point = |(time, values): &(Timestamp, Range)| {
            format!("{:.2},{:.1}", axis.at(*time), HEIGHT - HEIGHT * value(values).clamp(0.0, 1.0))
        };
        points.iter().map(point).collect::<Vec<String>>()
    };
    let (least, likely, mut most) = (line(|v| v.at_least), line(|v| v.likely), line(|v| v.at_most));
    most.reverse();
    let _ = write!(
        out,
        "<svg width=\"100%\" height=\"48\" viewBox=\"0 0 100 48\" preserveAspectRatio=\"none\"><polygon class=\"f1\" points=\"{} {}\"/>\
         <polyline points=\"{}\" fill=\"none\" stroke=\"var(--d4)\" stroke-width=\"1.5\" vector-effect=\"non-scaling-stroke\"/></svg>\
         <line class=\"ax\" x1=\"0\" x2=\"100%\" y1=\"48.5\" y2=\"48.5\"/><text x=\"0\" y=\"63\">{}</text><text x=\"100%\" y=\"63\" text-anchor=\"end\">{}</text></svg></div>",
        least.join(" "),
        most.join(" "),
        likely.join(" "),
        day_short(axis.from),
        day_short(axis.until)
    );
    PreEscaped(out)
}
