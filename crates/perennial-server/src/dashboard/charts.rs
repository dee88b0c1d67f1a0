//! Charts that stretch with the page: x in per cent, y in pixels, so that text is not distorted. Colours are CSS classes.

use std::fmt::Write;

use maud::{Markup, PreEscaped};
use perennial_core::text::markup::escaped;
use perennial_core::text::untrusted::shorten;
use perennial_core::time::{Span, Timestamp};

use super::components::Range;
use perennial_engine::html::dates::{
    day_and_minute, day_short, minute, month_name, start_of_day, weekday, year_and_month,
};

/// A time axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

/// A labelled position on a time axis, in per cent.
struct Tick {
    at: f64,
    label: String,
    is_day: bool,
    is_minor: bool,
}

const DAY: Span = Span::from_hours(24);
/// Ticks per axis.
const MAX_TICKS: i64 = 9;

impl Axis {
    /// The position of an instant, in per cent.
    pub(crate) fn at(&self, time: Timestamp) -> f64 {
        let (length, passed) = ((self.until - self.from).as_hours_f64(), (time - self.from).as_hours_f64());
        if length > 0.0 { (100.0 * passed / length).clamp(0.0, 100.0) } else { 0.0 }
    }

    fn ticks(&self) -> Vec<Tick> {
        let length = (self.until - self.from).as_millis().max(1);
        let steps = [1, 3, 6, 12, 24, 48, 7 * 24, 14 * 24, 30 * 24, 91 * 24, 365 * 24];
        let fits = |hours: &&i64| length / Span::from_hours(**hours).as_millis() <= MAX_TICKS;
        let step = Span::from_hours(*steps.iter().find(fits).unwrap_or(&(365 * 24))).as_millis();
        let first = self.from.as_millis().div_euclid(step) + 1;
        let last = self.until.as_millis().div_euclid(step);
        (first..=last.min(first + 2 * MAX_TICKS))
            .map(|number| {
                let time = Timestamp::from_millis(number.saturating_mul(step));
                let is_day = time.as_millis().rem_euclid(DAY.as_millis()) == 0;
                let label = if is_day { day_short(time) } else { minute(time)[..2].to_string() };
                Tick { at: self.at(time), label, is_day, is_minor: !is_day && number % 2 != 0 }
            })
            .collect()
    }

    /// Vertical lines through all rows below an axis.
    pub(crate) fn grid(&self, class: &str) -> Markup {
        let mut out = format!("<svg class=\"c {class}\" aria-hidden=\"true\">");
        for tick in self.ticks() {
            let line = if tick.is_day { "ax" } else { "gl" };
            let _ = write!(
                out,
                "<line class=\"{line}\" x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1=\"0\" y2=\"100%\"/>",
                tick.at
            );
        }
        PreEscaped(out + "</svg>")
    }

    /// The labels above the rows: days, and hours below them.
    pub(crate) fn head(&self) -> Markup {
        let ticks = self.ticks();
        let mut out = String::from("<svg class=\"c\" height=\"36\" aria-hidden=\"true\">");
        // A day that begins before the axis, or near its end, is labelled only if there is room.
        let mut labelled = f64::MIN;
        if ticks.iter().find(|tick| tick.is_day).is_none_or(|tick| tick.at > 16.0) {
            let _ = write!(out, "<text class=\"k s\" x=\"0\" y=\"13\">{}</text>", day_short(self.from));
            labelled = 0.0;
        }
        for tick in &ticks {
            let (at, minor) = (tick.at, if tick.is_minor { " class=\"wide-only\"" } else { "" });
            let hour = if tick.is_day { "00" } else { tick.label.as_str() };
            let _ = write!(out, "<text x=\"{at:.2}%\" y=\"31\" text-anchor=\"middle\"{minor}>{hour}</text>");
            if tick.is_day && at < 92.0 {
                // A phone has room for few labels, and for none at the end.
                let has_room = at - labelled >= NARROW_NAME && at <= 100.0 - NARROW_NAME;
                let wide = if has_room { "" } else { " wide-only" };
                labelled = if has_room { at } else { labelled };
                let _ = write!(
                    out,
                    "<text class=\"k s{wide}\" x=\"{at:.2}%\" dx=\"4\" y=\"13\">{}</text>",
                    tick.label
                );
            }
        }
        PreEscaped(out + "</svg>")
    }
}

/// The width of a day's label on a phone, in per cent of the axis.
const NARROW_NAME: f64 = 22.0;

/// A version in a chart.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) time: Timestamp,
    pub(crate) importance: f64,
    pub(crate) is_indexed: bool,
    pub(crate) href: String,
    /// The tooltip.
    pub(crate) title: String,
}

/// The scale of a chart. First captures and vanished pages reach the top in any case, so the edits determine the scale.
fn strongest_edit(marks: &[Mark]) -> Option<f64> {
    marks.iter().map(|mark| mark.importance).filter(|importance| *importance < 1.0).reduce(f64::max)
}

/// Height of the chart of versions above its axis.
const STEMS: f64 = 150.0;

/// A chart of versions: height and size of each dot are its importance; unchanged captures are ticks below; the threshold is dashed.
pub(crate) fn versions(
    axis: Axis,
    marks: &[Mark],
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
    marks: &[Mark],
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

/// `Tue 3 Mar`, of which narrow screens show only the day of the month.
fn narrow_label(label: &str) -> String {
    let parts: Vec<&str> = label.split(' ').collect();
    match parts[..] {
        [weekday, day, month] => format!(
            "<tspan class=\"wide-only\">{weekday} </tspan>{day}<tspan class=\"wide-only\"> {month}</tspan>"
        ),
        _ => escaped(label).to_string(),
    }
}

/// `0.6` for 0.600.
fn without_zeros(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
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

/// Shortens a host to fit beside a chart.
fn cut_name(name: &str) -> String {
    let name = name.split(':').next().unwrap_or(name).trim_start_matches("www.");
    shorten(name, 16).into_owned()
}

/// Shares over time; the area between the bounds is filled.
pub(crate) fn curve(
    axis: Axis,
    points: &[(Timestamp, f64, f64)],
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
    let point = |(time, share): (Timestamp, f64)| {
        format!("{:.2},{:.1}", axis.at(time), HEIGHT - HEIGHT * share.clamp(0.0, 1.0))
    };
    let lower: Vec<String> = points.iter().map(|(time, least, _)| point((*time, *least))).collect();
    let upper: Vec<String> = points.iter().rev().map(|(time, _, most)| point((*time, *most))).collect();
    let _ = write!(
        out,
        "<svg width=\"100%\" height=\"72\" viewBox=\"0 0 100 72\" preserveAspectRatio=\"none\"><polygon class=\"f1\" points=\"{0} {1}\"/>\
         <polyline points=\"{0}\" fill=\"none\" stroke=\"var(--d4)\" stroke-width=\"1.5\" vector-effect=\"non-scaling-stroke\"/></svg>",
        lower.join(" "),
        upper.join(" ")
    );
    let width = 100.0 / points.len().max(1) as f64;
    for (time, least, most) in points {
        let _ = write!(
            out,
            "<a href=\"{}\" tabindex=\"-1\"><rect x=\"{:.2}%\" width=\"{width:.2}%\" y=\"0\" height=\"72\" fill=\"transparent\"><title>{}: {:.0} to {:.0} %</title></rect></a>",
            escaped(&href(*time)),
            (axis.at(*time) - width / 2.0).max(0.0),
            day_and_minute(*time),
            100.0 * least,
            100.0 * most
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn an_axis_of_any_length_has_a_few_ticks() {
        for hours in [1, 5, 24, 72, 7 * 24, 40 * 24, 400 * 24, 5_000 * 24] {
            let from = at("2026-03-02T05:00:00Z");
            let ticks = Axis { from, until: from + Span::from_hours(hours) }.ticks();
            assert!(!ticks.is_empty() && ticks.len() <= 20, "{hours} h: {}", ticks.len());
        }
        let instant = Axis { from: at("2026-03-02"), until: at("2026-03-02") };
        assert_eq!(instant.at(at("2026-03-02")), 0.0);
    }

    #[test]
    fn untrusted_text_is_escaped_and_positions_are_right() {
        let axis = Axis { from: at("2026-03-02"), until: at("2026-03-04") };
        let hostile = "</title><script>";
        let mark = Mark {
            time: at("2026-03-03"),
            importance: 0.2,
            is_indexed: false,
            href: format!("/x\"{hostile}"),
            title: hostile.into(),
        };
        let svg = versions(axis, &[mark], &[at("2026-03-02T12:00:00Z")], 0.1, hostile).0;
        assert!(svg.contains("cx=\"50.00%\" cy=\"0.0\"") && svg.contains("x1=\"25.00%\""), "{svg}");
        let rows = intervals(axis, &[Bar::Retitled(at("2026-03-03"), hostile.into())], hostile).0;
        let range = Range { at_least: 0.1, likely: 0.5, at_most: 1.0 };
        let rows = rows + &ranges(&[(hostile.into(), range)], hostile).0;
        assert!(!(svg + &rows).contains("<script"));
    }

    #[test]
    fn a_first_capture_does_not_flatten_edits() {
        let axis = Axis { from: at("2026-03-02"), until: at("2026-03-04") };
        let mark = |time: &str, importance| Mark {
            time: at(time),
            importance,
            is_indexed: true,
            href: String::new(),
            title: String::new(),
        };
        let svg =
            versions(axis, &[mark("2026-03-02", 1.0), mark("2026-03-03", 0.2)], &[], 0.0, "").into_string();
        assert!(svg.contains("cx=\"0.00%\" cy=\"0.0\"") && svg.contains("cx=\"50.00%\" cy=\"0.0\""), "{svg}");
    }

    #[test]
    fn charts_may_be_empty() {
        let axis = Axis { from: at("2026-03-02"), until: at("2026-03-02") };
        let charts = [
            versions(axis, &[], &[], 0.0, ""),
            days(0, &[], (0, 0), |_| String::new()),
            spent(&[], None, axis.from),
            curve(axis, &[], "", |_| String::new()),
            small_bars(&[], ""),
        ];
        assert!(charts.iter().all(|svg| !svg.0.contains("NaN")));
    }
}
