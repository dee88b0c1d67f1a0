//! When a page changes: its pattern by hour, the days from which it was learned, the next visit.

use maud::{Markup, html};
use perennial_core::memento::replay_url::escape;
use perennial_core::schedule::{Peak, RankedPage, peak_hours};
use perennial_core::time::{DayKind, LocalClock, Span, Timestamp};
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::Serialize;

use super::{MAX_CAPTURES, PageView};
use crate::dashboard::charts::{HourChart, hours};
use crate::dashboard::components::{date_time, untrusted};
use crate::dashboard::plan::explain;
use crate::summary::Summary;
use perennial_archive::Snapshot;
use perennial_archive::store::Store;
use perennial_engine::html::dates::{counted, day_short, start_of_day};
use perennial_engine::learn::{
    ENOUGH_VISITS, are_hours_known, confidence, expected_by_period, is_rate_known,
};

/// Days in the chart of hours.
const N_SERIES: usize = 14;

/// The captures of a local day.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ActivityDay {
    pub(super) day: String,
    /// The observed importance of change in each hour; null without a capture.
    pub(super) hours: [Option<f64>; 24],
    /// Days since 1970.
    #[serde(skip)]
    pub(super) number: i64,
}

/// When the page is expected to change.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PagePattern {
    /// The site's time zone.
    pub(super) zone: String,
    /// Expected importance of change in each period of a workday.
    pub(super) workdays: Vec<f64>,
    pub(super) weekends: Vec<f64>,
    /// How reliable the pattern is, 0 to 1.
    pub(super) confidence: f64,
    /// The busiest hours.
    #[serde(skip)]
    pub(super) peak: Option<Peak>,
    /// The present kind of day and hour.
    #[serde(skip)]
    pub(super) now: (usize, f64),
}

/// What the scheduler expects, in sentences.
#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Expectation {
    /// How often the page changes.
    pub(super) frequency: String,
    /// The change since the last visit.
    pub(super) change: String,
    /// When the page is visited next, and why.
    pub(super) next_visit: String,
}

/// The index of the chart of a kind of day.
fn index_by_kind(kind: DayKind) -> usize {
    usize::from(kind != DayKind::Workday)
}

/// `None` if the page was not observed for long enough.
pub(super) fn page_pattern(
    summary: &Summary,
    page: PageId,
    url: &str,
    observed: Span,
) -> Option<PagePattern> {
    let belief = summary.scheduler.belief(page).filter(|belief| are_hours_known(belief, observed))?;
    let clock = site_clock(summary, url);
    let local = clock.local(summary.at);
    let [workdays, weekends] = expected_by_period(&belief);
    // The peak is that of the bars, which show importance and not the number of changes.
    let bars: Vec<f32> = workdays.iter().chain(&weekends).map(|value| *value as f32).collect();
    Some(PagePattern {
        workdays,
        weekends,
        confidence: confidence(&belief),
        peak: peak_hours(&bars),
        now: (index_by_kind(clock.day_kind(local.day)), local.millis_of_day as f64 / 3_600_000.0),
        zone: clock.zone().to_string(),
    })
}

/// The latest local days with the observed change in each hour.
pub(super) fn load_activity(
    store: &Store,
    page: PageId,
    until: Timestamp,
    clock: &LocalClock,
) -> anyhow::Result<Vec<ActivityDay>> {
    let from = until - Span::from_hours(24 * N_SERIES as i64);
    let lines = store.analysis_lines(page, from, until + Span::from_millis(1), MAX_CAPTURES)?;
    let mut days: Vec<ActivityDay> = Vec::new();
    for line in &lines {
        let local = clock.local(line.time);
        let (number, hour) = (i64::from(local.day.0), (local.millis_of_day / 3_600_000) as usize);
        if days.last().is_none_or(|day| day.number != number) {
            let day = start_of_day(number).to_rfc3339().chars().take(10).collect();
            days.push(ActivityDay { day, number, hours: [None; 24] });
        }
        let cell = days.last_mut().and_then(|day| day.hours.get_mut(hour));
        if let Some(cell) = cell {
            // The first observation of a page shows no change.
            let is_change = line.status.is_change();
            let importance = if is_change { line.status.observed_importance().get() } else { 0.0 };
            *cell = Some(cell.unwrap_or(0.0) + importance);
        }
    }
    days.truncate(N_SERIES);
    Ok(days)
}

/// What the scheduler expects, in sentences.
pub(super) fn expectation(
    snapshot: &Snapshot,
    summary: Option<&Summary>,
    page: PageId,
    url: &str,
) -> anyhow::Result<Expectation> {
    let Some(summary) = summary else {
        let next_visit = "Being computed. Reload in a moment.".to_string();
        return Ok(Expectation { next_visit, ..Expectation::default() });
    };
    let why = explain(snapshot, summary, url)?;
    let next_visit = std::iter::once(why.summary.as_str()).chain(why.reasons.first().map(String::as_str));
    let mut expected =
        Expectation { next_visit: next_visit.collect::<Vec<_>>().join(" "), ..Expectation::default() };
    let belief = summary.scheduler.belief(page);
    let Some(belief) = belief.as_ref().filter(|belief| is_rate_known(belief)) else {
        let n_visits = u64::from(belief.map_or(0, |belief| belief.n_visits));
        expected.frequency = format!(
            "Too early to tell after {}; after {ENOUGH_VISITS} there is a first estimate, and after a day one by hour.",
            counted(n_visits, "visit", "visits")
        );
        return Ok(expected);
    };
    let ranked = summary.ranks.get(&page).map(|(_, ranked)| ranked);
    let habit =
        ranked.and_then(RankedPage::habit).map(|habit| format!(", mostly {habit}")).unwrap_or_default();
    expected.frequency = format!(
        "{:.1} changes per day{habit}. This is learned from {} visits, {} of which found a change; reliability {:.0} %.",
        belief.changes_per_day(),
        belief.n_visits,
        belief.n_changed,
        100.0 * confidence(belief)
    );
    if let (Some(ranked), Some(since)) = (ranked, why.last_visit) {
        expected.change =
            format!("Change of importance {:.3} since {}.", ranked.expected.get(), date_time(*since));
    }
    Ok(expected)
}

pub(super) fn site_clock(summary: &Summary, url: &str) -> LocalClock {
    summary.followed.local_clock(url).unwrap_or_else(LocalClock::utc)
}

pub(super) fn pattern(view: &PageView, base: &str) -> Markup {
    let Expectation { frequency, change, next_visit } = &view.expected;
    html! {
        div {
            div.sec {
                h2 { "When it changes" }
                @if view.pattern.is_some() {
                    p.legend { "expected importance of change by hour, in the site's time zone" }
                }
            }
            @if let Some(pattern) = &view.pattern {
                @let top = pattern.workdays.iter().chain(&pattern.weekends).copied().fold(0.0, f64::max);
                @let top = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6].into_iter().find(|step| top <= *step).unwrap_or(1.0);
                @for (kind, name, values) in [(0, "Workdays", &pattern.workdays), (1, "Weekends", &pattern.weekends)] {
                    (hours(&HourChart {
                        name,
                        values,
                        top,
                        expected: pattern.peak.filter(|peak| index_by_kind(peak.kind) == kind).map(|peak| (peak.from_hour, peak.to_hour)),
                        now: (pattern.now.0 == kind).then_some(pattern.now.1),
                        class: if kind == 0 { "f4" } else { "f3" },
                    }))
                    div style="height:16px" {}
                }
            }
            @if !view.activity.is_empty() { (activity(&view.activity)) }
            dl.belief #next {
                @for (name, text) in [("Changes", frequency), ("Expected now", change), ("Next visit", next_visit)] {
                    @if !text.is_empty() { div { dt { (name) } dd { (untrusted(text)) } } }
                }
            }
            p.cap { a href={ (base) "/plan?url=" (escape(&view.url)) } { "Why then?" } }
        }
    }
}

/// The days from which the pattern was learned, hour by hour.
fn activity(days: &[ActivityDay]) -> Markup {
    let top = days.iter().flat_map(|day| day.hours).flatten().fold(0.0, f64::max);
    html! {
        div.heat.series role="img" aria-label="Observed change by day and hour" {
            @for day in days {
                @let name = day_short(start_of_day(day.number));
                // The short names of day and date fit next to the hours even on a phone.
                @let mut parts = name.split(' ');
                span { (parts.next().unwrap_or_default()[..2]) " " (parts.next().unwrap_or_default()) }
                @for (hour, value) in day.hours.iter().enumerate() {
                    @match value {
                        None => i.none {},
                        Some(value) => {
                            @let step = (4.0 * value / top.max(1e-9)).ceil().clamp(0.0, 4.0) as u8;
                            i class=[(step > 0).then(|| format!("b{step}"))]
                                title={ (name) ", " (hour) " to " (hour + 1) " h: " (format!("{value:.2}")) } {}
                        },
                    }
                }
            }
        }
        p.cap { "The latest days, hour by hour. Filled: something changed. Framed: unchanged. Empty: not visited." }
    }
}
