//! The captures of a page over time: a chart of the shown span, the days around it, a calendar.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};
use perennial_core::time::Timestamp;

use super::PageView;
use super::versions::Version;
use crate::dashboard::calendar::month;
use crate::dashboard::charts::{Axis, VersionMark, days, versions};
use crate::dashboard::components::date_time;
use crate::dashboard::site::ramp;
use perennial_engine::html::dates::{counted, month_name, start_of_day, year_and_month};

/// With more versions in the span there is no chart of them.
const MAX_STEMS: usize = 200;
const N_OVERVIEW_DAYS: i64 = 180;
const MAX_MONTHS: usize = 4;

const LEGEND: PreEscaped<&str> = PreEscaped(
    "<span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><circle class=\"f4\" cx=\"6\" cy=\"6\" r=\"5\"/></svg>indexed version</span>\
     <span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><circle class=\"fb sm\" stroke-width=\"1.5\" cx=\"6\" cy=\"6\" r=\"4\"/></svg>minor version</span>\
     <span><svg width=\"10\" height=\"12\" aria-hidden=\"true\"><line class=\"sm\" x1=\"5\" x2=\"5\" y1=\"2\" y2=\"10\"/></svg>unchanged</span>",
);
const THRESHOLD: PreEscaped<&str> = PreEscaped(
    "<svg width=\"20\" height=\"12\" aria-hidden=\"true\"><line class=\"th\" x1=\"0\" x2=\"20\" y1=\"6\" y2=\"6\"/></svg>",
);

pub(super) fn time_line(view: &PageView, base: &str) -> Markup {
    let axis = Axis { from: *view.from, until: *view.until };
    let marks: Vec<VersionMark> = view
        .versions
        .iter()
        .filter(|version| !version.is_unchanged)
        .map(|version| mark(view, version, base))
        .collect();
    let unchanged: Vec<Timestamp> =
        view.versions.iter().filter(|version| version.is_unchanged).map(|version| *version.time).collect();
    let label = format!("Importance of versions from {} to {}", date_time(axis.from), date_time(axis.until));
    html! {
        section {
            div.sec {
                h2 { "Versions" }
                p.legend { (LEGEND) span { (THRESHOLD) "indexed from importance " (format!("{:.3}", view.index_threshold)) } }
            }
            @if marks.len() <= MAX_STEMS { (versions(axis, &marks, &unchanged, view.index_threshold, &label)) }
            (overview_of_days(view, base))
            p.cap {
                (date_time(axis.from)) " to " (date_time(axis.until)) ": " (counted(marks.len() as u64, "version", "versions")) ", "
                (counted(unchanged.len() as u64, "unchanged capture", "unchanged captures")) ". "
                @if !view.is_whole() { "Below, the strongest change of each day; weekends are paler. Choose a day to see its week." }
            }
        }
    }
}

fn mark(view: &PageView, version: &Version, base: &str) -> VersionMark {
    VersionMark {
        time: *version.time,
        importance: version.importance,
        is_indexed: version.is_indexed,
        href: view.compare(base, version).unwrap_or_else(|| view.open(base, *version.time)),
        title: format!(
            "{}, importance {:.2}, {}",
            date_time(*version.time),
            version.importance,
            counted(version.n_operations as u64, "operation", "operations")
        ),
    }
}

fn overview_of_days(view: &PageView, base: &str) -> Markup {
    let ends = view.days.first().zip(view.days.last()).filter(|(first, last)| first.number != last.number);
    // If the whole history is shown, it needs no overview.
    let Some((first, last)) = ends.filter(|_| !view.is_whole()) else { return html! {} };
    let first = first.number.max(last.number - N_OVERVIEW_DAYS + 1);
    let by_number: BTreeMap<i64, f64> = view.days.iter().map(|day| (day.number, day.strongest)).collect();
    let values: Vec<f64> =
        (first..=last.number).map(|number| by_number.get(&number).copied().unwrap_or(0.0)).collect();
    let number = |at: Timestamp| at.as_millis().div_euclid(86_400_000);
    let framed = (number(*view.from), number(*view.until));
    days(first, &values, framed, |number| view.href(base, Some(start_of_day(number + 1))))
}

pub(super) fn calendar(view: &PageView, base: &str) -> Markup {
    let top = view.days.iter().map(|day| day.total).fold(0.0, f64::max);
    let mut months: Vec<(i16, usize)> =
        view.days.iter().map(|day| year_and_month(start_of_day(day.number))).collect();
    months.dedup();
    let cell = |number: i64, date: usize| {
        let found = view.days.binary_search_by_key(&number, |day| day.number).ok();
        let Some(day) = found.map(|at| view.days[at]) else { return html! { (date) } };
        let step = match day.total / top.max(1e-9) {
            share if share <= 0.0 => 0,
            share => (share * 4.0).ceil().clamp(1.0, 4.0) as u8,
        };
        html! {
            a class={ "h" (step) } href=(view.href(base, Some(start_of_day(number + 1))))
                title={ (counted(day.n_observations, "capture", "captures")) ", importance " (format!("{:.2}", day.total)) } { (date) }
        }
    };
    html! {
        div {
            div.sec { h2 { "Calendar" } p.legend { (ramp()) span { "importance of change per day" } } }
            div.cal {
                @for &(year, number) in &months[months.len().saturating_sub(MAX_MONTHS)..] {
                    (month(year, number, html! { (month_name(number)) " " (year) }, cell))
                }
            }
        }
    }
}
