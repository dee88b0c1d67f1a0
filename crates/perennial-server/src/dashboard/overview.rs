//! The sidebar of the home page: warnings, budget, plan, quality, holdings.

use maud::{Markup, html};
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::admin::button;
use super::charts::{Axis, ranges, spent, trend};
use super::components::{Bounds, Range, Time, percent, untrusted};
use super::layout::{AdminAccess, Place, page_href, site_href, without_scheme};
use perennial_core::text::quantity::{counted, grouped};
use perennial_engine::html::dates::{day_and_minute, minute, size};
use perennial_engine::learn::NextVisit;

/// A problem that needs a person, and what to do about it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Warning")]
pub(crate) struct Warning {
    pub(crate) title: String,
    /// Since when, and how often.
    pub(crate) text: String,
    pub(crate) hint: String,
    /// The command for it.
    pub(crate) command: Option<String>,
    pub(crate) site: Option<String>,
}

/// Visits in the hours before an instant.
#[derive(Clone, Debug)]
pub(crate) struct Spending {
    /// Visits per hour; the last hour ends at `until`.
    pub(crate) hours: Vec<u64>,
    pub(crate) until: Timestamp,
    /// Where the budget comes from; empty if the user set it.
    pub(crate) source: &'static str,
}

/// The quality of an archive at an instant.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct QualityPoint {
    pub(crate) time: Time,
    pub(crate) completeness: Range,
    pub(crate) coherence: Bounds,
}

/// The state of an archive, which is computed at intervals.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Archive")]
pub(crate) struct Overview {
    /// Null while it is computed for the first time.
    pub(crate) computed: Option<Time>,
    /// Whether a process writes the archive.
    pub(crate) is_running: bool,
    /// Captures not yet analysed.
    pub(crate) n_unanalysed: u64,
    pub(crate) n_captures: u64,
    pub(crate) n_versions: u64,
    pub(crate) n_indexed: u64,
    pub(crate) n_pages: u64,
    pub(crate) n_sites: u64,
    pub(crate) warc_bytes: u64,
    pub(crate) first_capture: Option<Time>,
    pub(crate) last_capture: Option<Time>,
    /// The budget.
    pub(crate) visits_per_hour: Option<f64>,
    pub(crate) visits_last_day: Option<u64>,
    pub(crate) completeness: Option<Range>,
    /// At the last capture.
    pub(crate) coherence: Option<Bounds>,
    /// Earlier quality, earliest first.
    pub(crate) past: Vec<QualityPoint>,
    /// Problems that need a person, worst first.
    pub(crate) warnings: Vec<Warning>,
    /// The latest captures.
    #[serde(skip)]
    pub(crate) latest: Vec<(Timestamp, String)>,
    #[serde(skip)]
    pub(crate) spending: Option<Spending>,
    /// When the plan begins.
    #[serde(skip)]
    pub(crate) plan_at: Option<Timestamp>,
    /// The next visits.
    #[serde(skip)]
    pub(crate) next: Vec<NextVisit>,
    /// Pages that the scheduler follows.
    #[serde(skip)]
    pub(crate) n_followed: u64,
    /// Completeness of each site for which it is known.
    #[serde(skip)]
    pub(crate) by_site: Vec<(String, Range)>,
}

/// Sites in the chart of completeness.
const MAX_SITES: usize = 12;

impl Overview {
    /// The worst warning in one line, for narrow screens.
    pub(crate) fn first_warning(&self) -> Markup {
        html! {
            @if let Some(warning) = self.warnings.first() {
                p.alert.narrow-block { b { (untrusted(&warning.title)) "." } " " a href="#warnings" { "What to do" } }
            }
        }
    }

    pub(crate) fn render(&self, place: Place<'_>) -> Markup {
        html! {
            aside aria-label="State of the archive" {
                (self.all_warnings(place))
                @if self.computed.is_none() {
                    section {
                        h2.h3 { "Being computed" }
                        p.mute { "Plan, quality and holdings are computed from all captures. Reload in a moment." }
                    }
                }
                @if let Some(spending) = &self.spending { (self.budget(spending)) }
                @if !self.latest.is_empty() { (self.fetched(place.base)) }
                @if !self.next.is_empty() { (self.next_visits(place.base)) }
                (self.quality())
                @if self.computed.is_some() { (self.holdings()) }
            }
        }
    }

    fn all_warnings(&self, place: Place<'_>) -> Markup {
        let n = self.warnings.len() + usize::from(self.n_unanalysed > 0);
        let back = format!("{}/#warnings", place.base);
        html! {
            @if n > 0 {
                section #warnings {
                    h2.h3 { "Warnings " span { (n) } }
                    @for warning in &self.warnings {
                        div.alert {
                            p {
                                b {
                                    @match &warning.site {
                                        Some(host) => a.quiet href=(site_href(place.base, host)) { (untrusted(&warning.title)) },
                                        None => (untrusted(&warning.title)),
                                    }
                                    "."
                                } " " (untrusted(&warning.text))
                            }
                            p.hint { (untrusted(&warning.hint)) @if let Some(command) = &warning.command { " " code { (untrusted(command)) } } }
                            @if let Some(host) = &warning.site { (warning_actions(place, host, &back)) }
                        }
                    }
                    @if self.n_unanalysed > 0 {
                        div.alert {
                            p {
                                b { (counted(self.n_unanalysed, "capture is", "captures are")) " not yet analysed." }
                                " No number here includes them. Completeness is probably higher than shown."
                            }
                            p.hint { "The next crawl analyses them. To do it now: " code { "perennial analyse" } }
                        }
                    }
                }
            }
        }
    }

    fn budget(&self, spending: &Spending) -> Markup {
        html! {
            section {
                h2.h3 {
                    "Budget "
                    @match self.visits_per_hour {
                        Some(allowed) => span { (format!("{allowed:.0} visits per hour")) },
                        None => span { "no budget" },
                    }
                }
                (spent(&spending.hours, self.visits_per_hour, spending.until))
                p.cap {
                    (counted(spending.hours.iter().sum(), "visit", "visits")) " in the "
                    (counted(spending.hours.len() as u64, "hour", "hours")) " up to " (day_and_minute(spending.until)) "."
                    @if self.visits_per_hour.is_some() && !spending.source.is_empty() { " The line shows " (spending.source) "." }
                }
            }
        }
    }

    fn fetched(&self, base: &str) -> Markup {
        html! {
            section {
                h2.h3 {
                    @if self.is_running {
                        span.live style="color:var(--ink);font-weight:600" { "Latest captures" } " " span { "a crawl is running" }
                    } @else {
                        "Latest captures " span { "no crawl is running" }
                    }
                }
                ul.now {
                    @for (time, url) in &self.latest {
                        li {
                            time.mute datetime=(time.to_rfc3339()) { (minute(*time)) }
                            a.cut.quiet href=(page_href(base, url)) { (untrusted(without_scheme(url))) }
                        }
                    }
                }
            }
        }
    }

    fn next_visits(&self, base: &str) -> Markup {
        html! {
            section {
                h2.h3 {
                    "Next visits "
                    span {
                        @if self.is_running { "time and reason" }
                        @else { "as of " (self.plan_at.map(day_and_minute).unwrap_or_default()) }
                    }
                }
                ul.next {
                    @for visit in &self.next {
                        @let at = visit.at.as_deref().and_then(|at| Timestamp::parse(at).ok());
                        li {
                            span.num { (at.map_or("later".to_string(), minute)) }
                            span {
                                span.cut style="display:block" { a href=(page_href(base, &visit.url)) { (untrusted(without_scheme(&visit.url))) } }
                                span.mute.small { (untrusted(&visit.reason)) }
                            }
                        }
                    }
                }
                p.small style="margin-top:4px" {
                    a href={ (base) "/plan" } { (counted(self.n_followed, "page", "pages")) " in the plan" }
                }
            }
        }
    }

    fn quality(&self) -> Markup {
        let rows = &self.by_site[..self.by_site.len().min(MAX_SITES)];
        html! {
            @if let Some(Range { at_least, likely, .. }) = self.completeness {
                section {
                    h2.h3 { "Completeness " span { "likely " (percent(likely)) " %; at least " (percent(at_least)) " %" } }
                    (ranges(rows, "Completeness by site: lower bound, likely value, upper bound"))
                    p.cap {
                        "Share of the important changes that were captured. Line: lower to upper bound. Dot: likely value."
                        @if self.by_site.len() > rows.len() { " Only the lowest sites are shown." }
                    }
                    (self.trend("Completeness over time", |point| point.completeness))
                }
            }
            @if let (Some(Bounds { at_least, at_most }), Some(last)) = (self.coherence, self.last_capture) {
                section {
                    h2.h3 { "Coherence " span { (percent(at_least)) " to " (percent(at_most)) " %" } }
                    p.cap {
                        "Share of the content that is consistent if all sites are replayed as of " (day_and_minute(*last))
                        ". Each site's page shows its own."
                    }
                    (self.trend("Coherence over time", |QualityPoint { coherence, .. }| Range {
                        at_least: coherence.at_least,
                        likely: coherence.at_least,
                        at_most: coherence.at_most,
                    }))
                }
            }
        }
    }

    /// A chart of a range over time, if there is more than one point.
    fn trend(&self, label: &str, value: impl Fn(&QualityPoint) -> Range) -> Markup {
        let ends = self.past.first().zip(self.past.last()).filter(|(first, last)| first.time < last.time);
        let Some((first, last)) = ends else { return html! {} };
        let points: Vec<(Timestamp, Range)> =
            self.past.iter().map(|point| (*point.time, value(point))).collect();
        let axis = Axis { from: *first.time, until: *last.time };
        html! { (trend(axis, &points, label)) p.cap { (label) "." } }
    }

    fn holdings(&self) -> Markup {
        html! {
            section {
                h2.h3 { "Holdings" }
                dl.kv {
                    dt { "Captures" } dd { (grouped(self.n_captures)) }
                    dt { "Versions" } dd { (grouped(self.n_versions)) }
                    dt { "Indexed versions" } dd { (grouped(self.n_indexed)) }
                    dt { "Pages, sites" } dd { (grouped(self.n_pages)) ", " (grouped(self.n_sites)) }
                    dt { "WARC files" } dd { (size(self.warc_bytes)) }
                    @if let Some((first, last)) = self.first_capture.zip(self.last_capture) {
                        dt { "First, last capture" } dd { (day_and_minute(*first)) ", " (day_and_minute(*last)) }
                    }
                }
            }
        }
    }
}

/// Buttons for a failing host.
pub(crate) fn warning_actions(place: Place<'_>, host: &str, back: &str) -> Markup {
    let fields = [("url", host)];
    html! {
        @if let AdminAccess::On(_) = place.admin {
            div.row.hint {
                (button(place, "retry", &fields, "Try again now", back))
                (button(place, "pause", &fields, "Pause", back))
            }
        }
    }
}
