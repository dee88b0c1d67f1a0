//! Charts with one bar per hour: expected change, visits, activity.

use std::fmt::Write;

use maud::{Markup, PreEscaped};
use perennial_core::text::markup::escaped;
use perennial_core::time::{Span, Timestamp};

use super::without_zeros;
use perennial_engine::html::dates::day_and_minute;

/// Expected change per hour on a kind of day.
#[derive(Clone, Debug)]
pub(crate) struct HourChart<'a> {
    /// The kind of day.
    pub(crate) name: &'a str,
    /// One value per period of the day.
    pub(crate) values: &'a [f64],
    /// The value of the highest line, the same for all charts of a page.
    pub(crate) top: f64,
    /// The hours with the most expected change.
    pub(crate) expected: Option<(f32, f32)>,
    /// The present hour, if today is a day of this kind.
    pub(crate) now: Option<f64>,
    /// CSS class of the bars.
    pub(crate) class: &'a str,
}

/// Draws the expected change per hour.
pub(crate) fn hours(chart: &HourChart<'_>) -> Markup {
    let n = chart.values.len().max(1) as f64;
    let mut out = format!(
        "<div class=\"plot\"><div class=\"yl\"><span style=\"top:0\">{}</span><span style=\"top:48px\">{}</span>\
         <span style=\"top:96px\">0</span></div><svg class=\"c\" height=\"118\" role=\"img\" aria-label=\"Expected importance of change by hour, {}\">",
        without_zeros(chart.top),
        without_zeros(chart.top / 2.0),
        escaped(chart.name)
    );
    if let Some((from, to)) = chart.expected {
        // A span over midnight has a part in the evening and a part in the morning.
        let until = if to > from { to } else { 24.0 };
        let (x, width) = (f64::from(from) / 0.24, f64::from(until - from) / 0.24);
        let after = if to > from { 0.0 } else { f64::from(to) / 0.24 };
        for (x, width) in [(x, width), (0.0, after)].into_iter().filter(|(_, width)| *width > 0.0) {
            let _ =
                write!(out, "<rect x=\"{x:.2}%\" width=\"{width:.2}%\" y=\"0\" height=\"96\" class=\"f1\"/>");
        }
        let words = format!("busiest<tspan class=\"wide-only\"> {from:.0} to {to:.0} h</tspan>");
        let _ = match x + width < 60.0 {
            true => write!(out, "<text class=\"k\" x=\"{:.2}%\" dx=\"6\" y=\"12\">{words}</text>", x + width),
            false => write!(
                out,
                "<text class=\"k\" x=\"{x:.2}%\" dx=\"-6\" y=\"12\" text-anchor=\"end\">{words}</text>"
            ),
        };
    }
    for y in [0.5, 48.5] {
        let _ = write!(out, "<line class=\"gl\" x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>");
    }
    for (index, value) in chart.values.iter().enumerate() {
        let height = if chart.top > 0.0 { 96.0 * (value / chart.top).clamp(0.0, 1.0) } else { 0.0 };
        let from = 24.0 * index as f64 / n;
        let _ = write!(
            out,
            "<rect class=\"{}\" x=\"{:.2}%\" width=\"{:.2}%\" y=\"{:.1}\" height=\"{height:.1}\"><title>{from:.0} to {:.0} h: {value:.3}</title></rect>",
            chart.class,
            100.0 * (index as f64 + 0.12) / n,
            76.0 / n,
            96.0 - height,
            from + 24.0 / n
        );
    }
    let _ = write!(
        out,
        "<line class=\"ax\" x1=\"0\" x2=\"100%\" y1=\"96.5\" y2=\"96.5\"/><text class=\"k s\" x=\"0\" dx=\"6\" y=\"12\">{}</text>",
        escaped(chart.name)
    );
    if let Some(now) = chart.now {
        let x = now / 0.24;
        let anchor = if x > 85.0 { " text-anchor=\"end\" dx=\"-5\"" } else { " dx=\"5\"" };
        let _ = write!(
            out,
            "<line class=\"si\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"70\" y2=\"96\" stroke-width=\"1.5\"/><text class=\"k\" x=\"{x:.2}%\" y=\"66\"{anchor}>now</text>"
        );
    }
    out.push_str(&hour_axis(112));
    out.push_str("</svg></div>");
    PreEscaped(out)
}

fn hour_axis(y: u32) -> String {
    let mut out = String::new();
    for (x, hour) in [(0, "0"), (25, "6"), (50, "12"), (75, "18")] {
        let _ = write!(out, "<text x=\"{x}%\" y=\"{y}\">{hour}</text>");
    }
    let _ = write!(out, "<text x=\"100%\" y=\"{y}\" text-anchor=\"end\">24 h</text>");
    out
}

/// Visits per hour up to now, with a line at the budget.
pub(crate) fn spent(hours: &[u64], allowed: Option<f64>, until: Timestamp) -> Markup {
    let n = hours.len().max(1) as f64;
    let most = hours.iter().copied().max().unwrap_or(0) as f64;
    let top = most.max(allowed.unwrap_or(0.0)).max(1.0);
    let mut out =
        String::from("<svg class=\"c\" height=\"54\" role=\"img\" aria-label=\"Visits in each hour\">");
    if let Some(allowed) = allowed {
        let y = 36.0 - 28.0 * allowed / top;
        let _ = write!(out, "<line class=\"th\" x1=\"0\" x2=\"100%\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
    }
    for (index, count) in hours.iter().enumerate() {
        let height = 28.0 * *count as f64 / top;
        let _ = write!(
            out,
            "<rect class=\"f3\" x=\"{:.2}%\" width=\"{:.2}%\" y=\"{:.1}\" height=\"{height:.1}\"><title>{count} visits</title></rect>",
            100.0 * (index as f64 + 0.1) / n,
            80.0 / n,
            36.0 - height
        );
    }
    let from = until - Span::from_hours(hours.len() as i64 - 1);
    let _ = write!(
        out,
        "<line class=\"ax\" x1=\"0\" x2=\"100%\" y1=\"36.5\" y2=\"36.5\"/><text x=\"0\" y=\"51\">{}</text>\
         <text x=\"100%\" y=\"51\" text-anchor=\"end\">{}</text></svg>",
        day_and_hour(from),
        day_and_hour(until)
    );
    PreEscaped(out)
}

fn day_and_hour(at: Timestamp) -> String {
    let text = day_and_minute(at);
    text.rsplit_once(':').map_or(text.clone(), |(hour, _)| format!("{hour} h"))
}

/// Small bars for a table cell.
pub(crate) fn small_bars(values: &[f64], label: &str) -> Markup {
    let (n, top) = (values.len().max(1) as f64, values.iter().copied().fold(0.0, f64::max));
    let mut out =
        format!("<svg class=\"c spark\" height=\"20\" role=\"img\" aria-label=\"{}\">", escaped(label));
    for (index, value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
        let height = (19.0 * value / top).max(1.0);
        let _ = write!(
            out,
            "<rect class=\"f3\" x=\"{:.2}%\" width=\"{:.2}%\" y=\"{:.1}\" height=\"{height:.1}\"/>",
            100.0 * index as f64 / n,
            80.0 / n,
            20.0 - height
        );
    }
    PreEscaped(out + "<line class=\"gl\" x1=\"0\" x2=\"100%\" y1=\"19.5\" y2=\"19.5\"/></svg>")
}
