//! The state of an archive -> the margin of home: what needs a person, budget, plan, quality, holdings.

use maud::{Markup, html};
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::admin::button;
use super::charts::{Axis, ranges, spent, trend};
use super::components::{Bounds, Range, Time, percent, untrusted};
use super::layout::{AdminAccess, Place, page_address, site_address, without_scheme};
use perennial_engine::html::dates::{counted, day_and_minute, grouped, minute, size};
use perennial_engine::learn::NextVisit;

/// Something that a person should look at, and what to do about it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Need")]
pub(crate) struct Need {
    /// What is so, in few words.
    pub(crate) title: String,
    /// Since when and how often.
    pub(crate) text: String,
    /// What to do.
    pub(crate) cure: String,
    /// The command that does it.
    pub(crate) command: Option<String>,
    /// The site that it is about.
    pub(crate) site: Option<String>,
}

/// Visits in the hours before an instant.
#[derive(Clone, Debug)]
pub(crate) struct Spending {
    /// Visits of pages in each hour; the last is that of `until`.
    pub(crate) hours: Vec<u64>,
    pub(crate) until: Timestamp,
    /// Where the limit is from; empty where the user set it.
    pub(crate) source: &'static str,
}

/// The quality of an archive as it was at an instant.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct QualityPoint {
    pub(crate) time: Time,
    /// Completeness of what was captured by then.
    pub(crate) completeness: Range,
    /// Coherence of all sites as of then.
    pub(crate) coherence: Bounds,
}

/// The state of an archive, as it is computed now and then.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Archive")]
pub(crate) struct Overview {
    /// When it was computed; null while the first time is under way.
    pub(crate) made: Option<Time>,
    /// Whether a process writes the archive.
    pub(crate) is_running: bool,
    /// Captures that wait for their analysis.
    pub(crate) n_waiting: u64,
    pub(crate) n_captures: u64,
    pub(crate) n_versions: u64,
    /// Versions that are kept in the index.
    pub(crate) n_indexed: u64,
    pub(crate) n_pages: u64,
    pub(crate) n_sites: u64,
    pub(crate) warc_bytes: u64,
    pub(crate) first_capture: Option<Time>,
    pub(crate) last_capture: Option<Time>,
    /// Visits an hour that are allowed.
    pub(crate) visits_per_hour: Option<f64>,
    pub(crate) visits_last_day: Option<u64>,
    pub(crate) completeness: Option<Range>,
    /// Coherence at the last capture.
    pub(crate) coherence: Option<Bounds>,
    /// How both were at earlier instants, earliest first.
    pub(crate) past: Vec<QualityPoint>,
    /// What needs a person, worst first.
    pub(crate) needs: Vec<Need>,
    /// The captures that came last.
    #[serde(skip)]
    pub(crate) latest: Vec<(Timestamp, String)>,
    #[serde(skip)]
    pub(crate) spending: Option<Spending>,
    /// The instant of the plan, and the next visits.
    #[serde(skip)]
    pub(crate) plan_at: Option<Timestamp>,
    #[serde(skip)]
    pub(crate) next: Vec<NextVisit>,
    /// Pages that the scheduler follows.
    #[serde(skip)]
    pub(crate) n_followed: u64,
    /// Completeness of each site of which it is known.
    #[serde(skip)]
    pub(crate) by_site: Vec<(String, Range)>,
}

/// Rows of completeness in the margin.
const MAX_SITES: usize = 12;

impl Overview {
    /// The worst need in one line, for narrow pages.
    pub(crate) fn first_need(&self) -> Markup {
        html! {
            @if let Some(need) = self.needs.first() {
                p.alert.narrow-block { b { (untrusted(&need.title)) "." } " " a href="#needs" { "What to do" } }
            }
        }
    }

    /// The margin.
    pub(crate) fn render(&self, place: Place<'_>) -> Markup {
        html! {
            aside aria-label="State of the archive" {
                (self.all_needs(place))
                @if self.made.is_none() {
                    section {
                        h2.h3 { "Being reckoned" }
                        p.mute { "Plan, quality and holdings are learned from all captures. Reload in a moment." }
                    }
                }
                @if let Some(spending) = &self.spending { (self.budget(spending)) }
                @if !self.latest.is_empty() { (self.fetched(place.base)) }
                @if !self.next.is_empty() { (self.next_visits(place.base)) }
                (self.quality())
                @if self.made.is_some() { (self.holdings()) }
            }
        }
    }

    fn all_needs(&self, place: Place<'_>) -> Markup {
        let n = self.needs.len() + usize::from(self.n_waiting > 0);
        let back = format!("{}/#needs", place.base);
        html! {
            @if n > 0 {
                section #needs {
                    h2.h3 { "Needs you " span { (n) } }
                    @for need in &self.needs {
                        div.alert {
                            p {
                                b {
                                    @match &need.site {
                                        Some(host) => a.quiet href=(site_address(place.base, host)) { (untrusted(&need.title)) },
                                        None => (untrusted(&need.title)),
                                    }
                                    "."
                                } " " (untrusted(&need.text))
                            }
                            p.cure { (untrusted(&need.cure)) @if let Some(command) = &need.command { " " code { (untrusted(command)) } } }
                            @if let Some(host) = &need.site { (need_actions(place, host, &back)) }
                        }
                    }
                    @if self.n_waiting > 0 {
                        div.alert {
                            p {
                                b { (counted(self.n_waiting, "capture waits", "captures wait")) " for their analysis." }
                                " They are in none of these figures, and completeness is likely higher than it says."
                            }
                            p.cure { "The next crawl completes it, or at once: " code { "perennial analyse" } }
                        }
                    }
                }
            }
        }
    }

    fn budget(&self, spending: &Spending) -> Markup {
        let allowed = self.visits_per_hour.unwrap_or_default();
        html! {
            section {
                h2.h3 { "Budget " span { (format!("{allowed:.0} visits an hour")) @if !spending.source.is_empty() { ", not set" } } }
                (spent(&spending.hours, Some(allowed), spending.until))
                p.cap {
                    (counted(spending.hours.iter().sum(), "visit", "visits")) " in the "
                    (counted(spending.hours.len() as u64, "hour", "hours")) " before " (day_and_minute(spending.until)) "."
                    @if !spending.source.is_empty() { " The line is " (spending.source) "." }
                }
            }
        }
    }

    fn fetched(&self, base: &str) -> Markup {
        html! {
            section {
                h2.h3 {
                    @if self.is_running {
                        span.live style="color:var(--ink);font-weight:600" { "Being fetched" } " " span { "newest first" }
                    } @else {
                        "Fetched last " span { "no crawl is running" }
                    }
                }
                ul.now {
                    @for (time, url) in &self.latest {
                        li {
                            time.mute datetime=(time.to_rfc3339()) { (minute(*time)) }
                            a.cut.quiet href=(page_address(base, url)) { (untrusted(without_scheme(url))) }
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
                        @if self.is_running { "when, why" }
                        @else { "as of " (self.plan_at.map(day_and_minute).unwrap_or_default()) }
                    }
                }
                ul.next {
                    @for visit in &self.next {
                        @let at = visit.at.as_deref().and_then(|at| Timestamp::parse(at).ok());
                        li {
                            span.num { (at.map_or("later".to_string(), minute)) }
                            span {
                                span.cut style="display:block" { a href=(page_address(base, &visit.url)) { (untrusted(without_scheme(&visit.url))) } }
                                span.mute.small { (untrusted(&visit.reason)) }
                            }
                        }
                    }
                }
                p.small style="margin-top:4px" {
                    a href={ (base) "/schedule" } { (counted(self.n_followed, "page", "pages")) " with their reasons" }
                }
            }
        }
    }

    fn quality(&self) -> Markup {
        let rows = &self.by_site[..self.by_site.len().min(MAX_SITES)];
        html! {
            @if let Some(Range { at_least, likely, .. }) = self.completeness {
                section {
                    h2.h3 { "Completeness " span { "likely " (percent(likely)) " %, at least " (percent(at_least)) " %" } }
                    (ranges(rows, "Completeness of each site: least, likely, most"))
                    p.cap {
                        "Share of what changed and mattered that was caught. Line: least to most. Dot: likely."
                        @if self.by_site.len() > rows.len() { " The lowest of all sites." }
                    }
                    (self.trend("Completeness over time, of what was captured by then", |point| point.completeness))
                }
            }
            @if let (Some(Bounds { at_least, at_most }), Some(last)) = (self.coherence, self.last_capture) {
                section {
                    h2.h3 { "Coherence " span { (percent(at_least)) " to " (percent(at_most)) " %" } }
                    p.cap {
                        "Share of what belongs together, if all sites are shown as of " (day_and_minute(*last))
                        ". The page of a site has its own."
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

    /// A range through time, where it is known of more than one instant.
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
                    dt { "kept in the index" } dd { (grouped(self.n_indexed)) }
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

/// What can be done about a host that fails.
pub(crate) fn need_actions(place: Place<'_>, host: &str, back: &str) -> Markup {
    let fields = [("url", host)];
    html! {
        @if let AdminAccess::On(_) = place.operating {
            div.row.cure {
                (button(place, "retry", &fields, "Try again now", back))
                (button(place, "pause", &fields, "Pause", back))
            }
        }
    }
}
