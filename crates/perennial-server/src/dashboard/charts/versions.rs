//! Charts of a page's versions by importance, and of its days.

use std::fmt::Write;

use maud::{Markup, PreEscaped};
use perennial_core::text::markup::escaped;
use perennial_core::time::Timestamp;

use super::axis::{Axis, narrow_label};
use super::without_zeros;
use perennial_engine::html::dates::{day_short, month_name, start_of_day, weekday, year_and_month};

/// A version in a chart.
#[derive(Clone, Debug)]
pub(crate) struct VersionMark {
    pub(crate) time: Timestamp,
    pub(crate) importance: f64,
    pub(crate) is_indexed: bool,
    pub(crate) href: String,
    /// The tooltip.
    pub(crate) title: String,
}

/// The scale of a chart. First captures and vanished pages reach the top in any case, so the edits determine the scale.
fn strongest_edit(marks: &[VersionMark]) -> Option<f64> {
    marks.iter().map(|mark| mark.importance).filter(|importance| *importance < 1.0).reduce(f64::max)
}

/// Height of the chart of versions above its axis.
const STEMS: f64 = 150.0;

/// A chart of versions: height and size of each dot are its importance; unchanged captures are ticks below; the threshold is dashed.
pub(crate) fn versions(
    axis: Axis,
    marks: &[VersionMark],
    unchanged: &[Timestamp],
    threshold: f64,
    label: &str,
) -> Markup {
    let strongest = strongest_edit(marks).unwrap_or(1.0).max(threshold);
    let top = [0.1, 0.2, 0.4, 0.6, 0.8].into_iter().find(|top| strongest <= *top).unwrap_or(1.0);
    let y = |value: f64| STEMS - STEMS * (value / top).clamp(0.0, 1.0);
    let mut out = String::from("<div class=\"plot\"><div class=\"yl\">");
    for share in [1.0, 0.5, 0.0] {
        let _ = write!(
            out,
            "<span style=\"top:{:.1}px\">{}</span>",
            STEMS * (1.0 - share),
            without_zeros(top * share)
        );
    }
    let _ = write!(
        out,
        "</div><svg class=\"c\" height=\"196\" role=\"group\" aria-label=\"{}\">",
        escaped(label)
    );
    for height in [0.5, STEMS / 2.0 + 0.5] {
        let _ = write!(out, "<line class=\"gl\" x1=\"0\" x2=\"100%\" y1=\"{height}\" y2=\"{height}\"/>");
    }
    for tick in axis.ticks() {
        let (at, minor) = (tick.at, if tick.is_minor { " class=\"wide-only\"" } else { "" });
        let _ = write!(out, "<line class=\"gl\" x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"174\"/>");
        if at < 93.0 {
            let _ = write!(
                out,
                "<text x=\"{at:.2}%\" dx=\"4\" y=\"190\"{minor}>{}</text>",
                narrow_label(&tick.label)
            );
        }
    }
    out.push_str("<line class=\"ax\" x1=\"0\" x2=\"100%\" y1=\"150.5\" y2=\"150.5\"/><g class=\"sm\">");
    for time in unchanged {
        let _ = write!(out, "<line x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1=\"158\" y2=\"166\"/>", axis.at(*time));
    }
    out.push_str("</g>");
    for mark in marks {
        let (x, top) = (axis.at(mark.time), y(mark.importance));
        let kind = if mark.is_indexed { "class=\"f4\"" } else { "class=\"fb sm\" stroke-width=\"1.5\"" };
        let _ = write!(
            out,
            "<line class=\"sm\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"150\" y2=\"{top:.1}\"/><a href=\"{}\" tabindex=\"-1\">\
             <circle cx=\"{x:.2}%\" cy=\"{top:.1}\" r=\"{:.1}\" {kind}><title>{}</title></circle></a>",
            escaped(&mark.href),
            3.0 + 3.0 * mark.importance,
            escaped(&mark.title)
        );
    }
    let line = y(threshold);
    let _ = write!(
        out,
        "<line class=\"th\" x1=\"0\" x2=\"100%\" y1=\"{line:.1}\" y2=\"{line:.1}\"/></svg></div>"
    );
    PreEscaped(out)
}

/// Height of the strip above its axis.
const STRIP: f64 = 40.0;

/// A strip of versions: height is importance; unchanged captures are short ticks; the span between the compared versions is shaded.
/// Each version is a link.
pub(crate) fn strip(
    axis: Axis,
    marks: &[VersionMark],
    unchanged: &[Timestamp],
    compared: (Timestamp, Timestamp),
    label: &str,
) -> Markup {
    let top = strongest_edit(marks).unwrap_or(1.0).max(0.1);
    let mut out = format!("<svg class=\"c\" height=\"60\" role=\"group\" aria-label=\"{}\">", escaped(label));
    let (from, until) = (axis.at(compared.0), axis.at(compared.1));
    let _ = write!(
        out,
        "<rect class=\"f1\" x=\"{from:.2}%\" width=\"{:.2}%\" y=\"0\" height=\"{STRIP}\"/><g class=\"sm\">",
        (until - from).max(0.0)
    );
    for time in unchanged {
        let _ = write!(
            out,
            "<line x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1=\"{STRIP}\" y2=\"{1}\"/>",
            axis.at(*time),
            STRIP - 4.0
        );
    }
    out.push_str("</g>");
    for mark in marks {
        let (x, height) = (axis.at(mark.time), (STRIP * mark.importance / top).clamp(3.0, STRIP));
        let class = if mark.is_indexed { "si" } else { "sm" };
        // The clickable area is wider than the visible line.
        let _ = write!(
            out,
            "<a href=\"{}\" tabindex=\"-1\"><line x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"{STRIP}\" stroke=\"transparent\" stroke-width=\"6\"/>\
             <line class=\"{class}\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{STRIP}\" y2=\"{:.1}\" stroke-width=\"2\"><title>{}</title></line></a>",
            escaped(&mark.href),
            STRIP - height,
            escaped(&mark.title)
        );
    }
    let _ = write!(out, "<line class=\"ax\" x1=\"0\" x2=\"100%\" y1=\"{0}\" y2=\"{0}\"/>", STRIP + 0.5);
    for tick in axis.ticks().iter().filter(|tick| tick.at < 93.0) {
        let minor = if tick.is_minor { " class=\"wide-only\"" } else { "" };
        let _ = write!(
            out,
            "<line class=\"ax\" x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1=\"{STRIP}\" y2=\"{1}\"/><text x=\"{0:.2}%\" dx=\"4\" y=\"56\"{minor}>{2}</text>",
            tick.at,
            STRIP + 4.0,
            narrow_label(&tick.label)
        );
    }
    PreEscaped(out + "</svg>")
}

/// One bar per day from `first` on, in days since 1970: the strongest change; weekends are paler. `framed` is the span that the chart
/// above shows in detail.
pub(crate) fn days(first: i64, values: &[f64], framed: (i64, i64), href: impl Fn(i64) -> String) -> Markup {
    let n = values.len().max(1) as f64;
    let top = values.iter().copied().fold(0.05, f64::max);
    let mut out = format!(
        "<div class=\"plot\" style=\"margin-top:16px\"><div class=\"yl\"><span style=\"top:0\">{}</span>\
         <span style=\"top:64px\">0</span></div><svg class=\"c\" height=\"84\" role=\"img\" aria-label=\"Strongest change of each day\">",
        without_zeros(top)
    );
    let mut month = 0;
    for (index, value) in values.iter().enumerate() {
        let (number, x) = (first + index as i64, 100.0 * index as f64 / n);
        let start = start_of_day(number);
        let (height, class) = (64.0 * value / top, if weekday(start) > 4 { "f2" } else { "f3" });
        let _ = write!(
            out,
            "<a href=\"{}\" tabindex=\"-1\"><rect class=\"{class}\" x=\"{x:.2}%\" width=\"{:.2}%\" y=\"{:.1}\" height=\"{height:.1}\">\
             <title>{}: {value:.2}</title></rect></a>",
            escaped(&href(number)),
            80.0 / n,
            64.0 - height,
            day_short(start)
        );
        let is_new = year_and_month(start).1 != month;
        if is_new
            && x < 94.0
            && (index > 0
                || n < 40.0
                || year_and_month(start_of_day(number + 6)).1 == year_and_month(start).1)
        {
            let _ = write!(
                out,
                "<line class=\"ax\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"64\" y2=\"69\"/><text x=\"{x:.2}%\" dx=\"4\" y=\"80\">{}</text>",
                month_name(year_and_month(start).1)
            );
        }
        month = year_and_month(start).1;
    }
    let (left, right) = (framed.0.max(first) - first, (framed.1 - first + 1).min(values.len() as i64));
    let _ = write!(
        out,
        "<line class=\"ax\" x1=\"0\" x2=\"100%\" y1=\"64.5\" y2=\"64.5\"/>\
         <rect class=\"si\" fill=\"none\" stroke-width=\"1.5\" x=\"{:.2}%\" width=\"{:.2}%\" y=\"-3\" height=\"71\" rx=\"2\"/></svg></div>",
        100.0 * left as f64 / n,
        100.0 * (right - left).max(0) as f64 / n
    );
    PreEscaped(out)
}
