//! A time axis: positions, ticks and their labels.

use std::fmt::Write;

use maud::{Markup, PreEscaped};
use perennial_core::text::markup::escaped;
use perennial_core::time::{Span, Timestamp};

use perennial_engine::html::dates::{day_short, minute};

/// A time axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

/// A labelled position on a time axis, in per cent.
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
    pub(super) is_day: bool,
    pub(super) is_minor: bool,
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

    pub(super) fn ticks(&self) -> Vec<Tick> {
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

/// `Tue 3 Mar`, of which narrow screens show only the day of the month.
pub(super) fn narrow_label(label: &str) -> String {
    let parts: Vec<&str> = label.split(' ').collect();
    match parts[..] {
        [weekday, day, month] => format!(
            "<tspan class=\"wide-only\">{weekday} </tspan>{day}<tspan class=\"wide-only\"> {month}</tspan>"
        ),
        _ => escaped(label).to_string(),
    }
}
