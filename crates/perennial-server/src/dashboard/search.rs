//! `/search?q=...`: which pages contained the words, and when, on a common time axis.

use std::collections::BTreeSet;
use std::ops;

use maud::{Markup, PreEscaped, html};
use perennial_core::search::{PassagePresence, TextQuery as Words};
use perennial_core::time::{Span, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::charts::{Axis, Bar, HATCH, intervals};
use super::components::{Time, alert, date_time, empty, field, tick, title, untrusted};
use super::layout::{
    Place, Shell, Tab, host_with_port, page_href, query, site_href, version_href, without_scheme,
};
use super::{Problem, Request};
use perennial_archive::Snapshot;
use perennial_archive::store::{Store, Texts};
use perennial_engine::html::dates::{counted, day_and_minute, minute, size};
use perennial_engine::search::{SearchHit, SearchQuery, find_pages};

/// Pages that are shown.
const MAX_HITS: usize = 50;
/// Captures that are drawn per page.
const MAX_CAPTURES: usize = 200;
/// Intervals per page that are listed without unfolding.
const MAX_INTERVALS: usize = 4;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SearchHit")]
pub(crate) struct SearchRow {
    url: String,
    title: Option<String>,
    /// The sentence that contains the words.
    text: String,
    /// The part of the page.
    place: &'static str,
    /// When the sentence was on the page.
    presence: Vec<PresenceView>,
    /// The matching words in the sentence.
    #[serde(skip)]
    matches: Vec<ops::Range<usize>>,
    #[serde(skip)]
    captures: Vec<Timestamp>,
}

/// An interval in which a passage was on a page, as far as captures show.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct PresenceView {
    /// The last capture before the interval; null if the first capture shows the passage.
    absent_until: Option<Time>,
    first: Time,
    last: Time,
    /// The first capture after the interval; null while the passage is on the page.
    gone: Option<Time>,
}

impl From<PassagePresence> for PresenceView {
    fn from(presence: PassagePresence) -> PresenceView {
        PresenceView {
            absent_until: presence.absent_until.map(Time),
            first: presence.first.into(),
            last: presence.last.into(),
            gone: presence.gone.map(Time),
        }
    }
}

/// What a search in important versions saves and misses.
#[derive(Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct RestrictionCost {
    /// Pages with the words in any version.
    n_pages_in_all: usize,
    /// Bytes of text that are searched; null until computed.
    text_bytes: Option<u64>,
    all_text_bytes: Option<u64>,
}

/// The search form.
#[derive(Default)]
struct SearchForm {
    site: Option<String>,
    from: Option<String>,
    to: Option<String>,
    is_phrase: bool,
    is_vanished: bool,
    is_important: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Search")]
pub(crate) struct SearchView {
    words: String,
    /// Why there is no result.
    problem: Option<String>,
    /// Pages that contain the words.
    n_pages: usize,
    /// Whether there may be more pages.
    is_partial: bool,
    restricted: Option<RestrictionCost>,
    hits: Vec<SearchRow>,
    #[serde(skip)]
    form: SearchForm,
}

pub(crate) fn load(request: &Request<'_>) -> Result<SearchView, Problem> {
    let text = |name: &str| request.given(name).map(str::to_owned);
    let mut view = SearchView {
        words: text("q").unwrap_or_default(),
        problem: None,
        n_pages: 0,
        is_partial: false,
        restricted: None,
        hits: Vec::new(),
        form: SearchForm {
            site: text("site"),
            from: text("from"),
            to: text("to"),
            is_phrase: request.query.is_on("phrase"),
            is_vanished: request.query.is_on("vanished"),
            is_important: request.query.is_on("important"),
        },
    };
    if !view.words.is_empty() {
        request.with(|snapshot| search(request, snapshot, &mut view))?;
    }
    Ok(view)
}

/// Parses a day or an instant.
fn instant(text: Option<&str>) -> Result<Option<Timestamp>, String> {
    text.map(Timestamp::parse).transpose().map_err(|error| error.to_string())
}

fn search(request: &Request<'_>, snapshot: &Snapshot, view: &mut SearchView) -> anyhow::Result<()> {
    let form = &view.form;
    let quoted = format!("\"{}\"", view.words.replace('"', " "));
    let words =
        Words::parse(if form.is_phrase { &quoted } else { &view.words }).map_err(|error| error.to_string());
    let (from, to) = (form.from.as_deref(), form.to.as_deref());
    let (words, since, until) = match words.and_then(|words| Ok((words, instant(from)?, instant(to)?))) {
        Ok(read) => read,
        Err(problem) => {
            view.problem = Some(problem);
            return Ok(());
        }
    };
    let Some(texts) = Texts::open_read(&snapshot.archive().texts_path())? else {
        let problem = "No text index; run `perennial analyse` to build it.";
        view.problem = Some(problem.into());
        return Ok(());
    };
    // If `to` is a day, the span includes it.
    let is_day = to.is_some_and(|to| to.len() == 10);
    let search = SearchQuery {
        host: form.site.as_deref(),
        since,
        until: until.map(|until| if is_day { until + Span::from_hours(24) } else { until }),
        is_vanished: form.is_vanished,
        is_important: form.is_important,
        limit: MAX_HITS,
        ..SearchQuery::default()
    };
    let store = snapshot.store();
    let found = find_pages(store, &texts, &words, &search)?;
    if form.is_important {
        let all = SearchQuery { is_important: false, limit: 1, ..search };
        let summary = request.served.summaries.latest(&request.served.pool)?;
        let bytes = summary.and_then(|summary| summary.text_bytes);
        view.restricted = Some(RestrictionCost {
            n_pages_in_all: find_pages(store, &texts, &words, &all)?.n_pages,
            text_bytes: bytes.map(|(searched, _)| searched),
            all_text_bytes: bytes.map(|(_, all)| all),
        });
    }
    (view.n_pages, view.is_partial) = (found.n_pages, found.is_partial);
    view.hits = found.hits.into_iter().map(|hit| row(store, hit)).collect::<anyhow::Result<_>>()?;
    Ok(())
}

fn row(store: &Store, hit: SearchHit) -> anyhow::Result<SearchRow> {
    let observations = store.analysed_observations(hit.page, None)?;
    let step = observations.len().div_ceil(MAX_CAPTURES).max(1);
    Ok(SearchRow {
        url: hit.url,
        title: hit.title,
        text: hit.excerpt.text,
        matches: hit.excerpt.found,
        place: hit.excerpt.role.name(),
        presence: hit.presences.into_iter().map(PresenceView::from).collect(),
        captures: observations.iter().step_by(step).map(|observation| observation.time).collect(),
    })
}

pub(crate) fn render(view: &SearchView, place: Place<'_>) -> Markup {
    let main = html! {
        (PreEscaped(HATCH))
        h1.vh { "Search all versions" }
        (form(view, place.base))
        @if let Some(restricted) = &view.restricted { (restriction_cost(view, restricted)) }
        @if let Some(problem) = &view.problem {
            (alert(problem))
        } @else if view.words.is_empty() {
            div.empty {
                h2.h3 { "Search all versions" }
                p {
                    "The search covers everything that analysed pages ever showed. Examples: " code { "ferry harbour" } " for both words, "
                    code { "\"new ferry line\"" } " for a phrase, " code { "harb*" } " for words that begin so, " code { "-boat" } " to exclude a word, "
                    code { "OR" } " for either word."
                }
            }
        } @else if view.hits.is_empty() {
            (empty(
                "No page contained these words",
                "No analysed page of this archive showed these words. Try fewer words, or the beginning of a word followed by *.",
                None,
            ))
        } @else {
            (facts(view))
            (hit_list(view, place.base))
        }
    };
    let json = (!view.words.is_empty()).then(|| format!("/api/search?{}", search_query(view)));
    Shell { place, tab: Tab::Search, title: "Search", query: &view.words, json }.page(&main)
}

fn search_query(view: &SearchView) -> String {
    let form = &view.form;
    let on = |is_on: bool| is_on.then_some("1");
    query(&[
        ("q", Some(&view.words)),
        ("site", form.site.as_deref()),
        ("from", form.from.as_deref()),
        ("to", form.to.as_deref()),
        ("phrase", on(form.is_phrase)),
        ("vanished", on(form.is_vanished)),
        ("important", on(form.is_important)),
    ])
}

/// What the restriction to important versions saves and misses.
fn restriction_cost(view: &SearchView, restricted: &RestrictionCost) -> Markup {
    html! {
        p.cap {
            "Important versions only: "
            @if let Some((searched, all)) = restricted.text_bytes.zip(restricted.all_text_bytes) {
                (size(searched)) " of " (size(all)) " of text searched. "
            }
            @match restricted.n_pages_in_all.saturating_sub(view.n_pages) {
                0 => "It misses no page.",
                n => { "It misses " (counted(n as u64, "page", "pages")) " with the words in minor versions." },
            }
        }
    }
}

fn form(view: &SearchView, base: &str) -> Markup {
    let values = &view.form;
    html! {
        form role="search" action={ (base) "/search" } {
            div.searchbar {
                input type="search" name="q" value=(view.words) aria-label="Words in any version" placeholder="Words in any version" required autocomplete="off";
                button.btn.go { "Search" }
            }
            div.row style="padding:8px 0 16px;gap:8px 16px" {
                (field("site", "Site", 16, values.site.as_deref().unwrap_or_default(), "all"))
                (field("from", "From", 10, values.from.as_deref().unwrap_or_default(), "2026-01-28"))
                (field("to", "to", 10, values.to.as_deref().unwrap_or_default(), "2026-01-30"))
                (tick("phrase", "exact phrase", values.is_phrase))
                (tick("vanished", "no longer on the page", values.is_vanished))
                (tick("important", "important versions only", values.is_important))
            }
        }
    }
}

fn facts(view: &SearchView) -> Markup {
    let rows = &view.hits;
    let n_present =
        rows.iter().filter(|row| row.presence.last().is_some_and(|last| last.gone.is_none())).count();
    let first =
        rows.iter().filter_map(|row| Some((row.presence.first()?, row))).min_by_key(|(first, _)| first.first);
    let gone = rows.iter().filter_map(|row| Some((row.presence.last()?, row.presence.last()?.gone?, row)));
    let gone = gone.max_by_key(|(_, gone, _)| *gone);
    let hosts: BTreeSet<&str> = rows.iter().map(|row| host_with_port(&row.url)).collect();
    let day = |at: Time| at.as_secs().div_euclid(86_400);
    html! {
        dl.facts {
            div {
                dt { "Found on" }
                dd {
                    @if view.is_partial { "at least " }
                    (counted(view.n_pages as u64, "page", "pages"))
                    small { "on " (counted(hosts.len() as u64, "site", "sites")) }
                }
            }
            @if let Some((interval, row)) = first {
                div {
                    dt { "First seen" }
                    dd {
                        (day_and_minute(*interval.first))
                        small {
                            (untrusted(host_with_port(&row.url))) ", "
                            @match interval.absent_until {
                                Some(absent) => { "not on the page at " (day_and_minute(*absent)) },
                                None => "at the first capture",
                            }
                        }
                    }
                }
            }
            div {
                dt { "Last removed" }
                dd {
                    @match gone {
                        Some((interval, gone, row)) => {
                            (day_and_minute(*interval.last)) " to "
                            @if day(interval.last) == day(gone) { (minute(*gone)) } @else { (day_and_minute(*gone)) }
                            small { (untrusted(host_with_port(&row.url))) }
                        },
                        None => { "never" small { "all pages still contain it" } },
                    }
                }
            }
            div {
                dt { "Still on the page" }
                dd { (n_present) " of " (rows.len()) " shown" small { (rows.len() - n_present) " removed" } }
            }
        }
    }
}

const LEGEND: PreEscaped<&str> = PreEscaped(
    "<span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect class=\"f4\" y=\"1\" width=\"24\" height=\"12\"/></svg>on the page</span>\
     <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><rect y=\"4\" width=\"24\" height=\"6\" fill=\"url(#hatch)\"/></svg>added or removed in this gap</span>\
     <span><svg width=\"24\" height=\"14\" aria-hidden=\"true\"><path class=\"sm\" d=\"M4 5v6M12 5v6M20 5v6\"/></svg>captures</span><span>&#9656; still on the page</span>",
);

fn hit_list(view: &SearchView, base: &str) -> Markup {
    let axis = time_axis(&view.hits);
    let mut hosts: Vec<(&str, Vec<&SearchRow>)> = Vec::new();
    for row in &view.hits {
        let host = host_with_port(&row.url);
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            Some((_, rows)) => rows.push(row),
            None => hosts.push((host, vec![row])),
        }
    }
    html! {
        section style="padding-top:16px" {
            div.sec { h2 { "When the words were on each page" } p.legend { (LEGEND) } }
            div.rows {
                (axis.grid("grid wide-only"))
                div.iv.axisrow { div.say.small.mute style="padding-bottom:4px" { "By site" } (axis.head()) }
                @for (host, rows) in &hosts {
                    h3.grp {
                        a.quiet href=(site_href(base, host)) { (untrusted(host)) } " "
                        span { (counted(rows.len() as u64, "page", "pages")) }
                    }
                    @for row in rows { (hit_row(row, base, axis)) }
                }
            }
        }
        @if view.n_pages > view.hits.len() {
            p.more.mute {
                (counted((view.n_pages - view.hits.len()) as u64, "more page", "more pages"))
                ". Restrict the search by site, dates or words; " code { "perennial search --limit" } " lists all."
            }
        }
    }
}

fn hit_row(row: &SearchRow, base: &str, axis: Axis) -> Markup {
    let open =
        row.presence.last().map(|interval| version_href(base, *interval.last, &row.url)).unwrap_or_default();
    let label = row.presence.first().map(describe).unwrap_or_default();
    html! {
        div.iv {
            div.say {
                p { a.quiet href=(open) { (marked(&row.text, &row.matches)) } }
                p.small.mute {
                    a href=(page_href(base, &row.url)) { (untrusted(without_scheme(&row.url))) } ", "
                    @if let Some(name) = &row.title { (title(name)) ", " } (row.place)
                }
                (presence_list(&row.presence))
            }
            (intervals(axis, &bars(row, axis), &label))
        }
    }
}

fn bars(row: &SearchRow, axis: Axis) -> Vec<Bar> {
    let mut bars = Vec::new();
    for interval in &row.presence {
        bars.extend(interval.absent_until.map(|absent| Bar::Gap(*absent, *interval.first)));
        bars.extend(interval.gone.map(|gone| Bar::Gap(*interval.last, *gone)));
        bars.push(Bar::Present(*interval.first, *interval.last, true));
        if interval.gone.is_none() {
            bars.push(Bar::Open(*interval.last));
        }
    }
    let captures = row.captures.iter().filter(|time| **time >= axis.from && **time <= axis.until);
    bars.extend(captures.map(|time| Bar::Capture(*time)));
    bars
}

/// The intervals as sentences: the first and the last ones visible, those between folded.
fn presence_list(intervals: &[PresenceView]) -> Markup {
    let n_folded = intervals.len().saturating_sub(MAX_INTERVALS);
    let line = |interval: &PresenceView| html! { p.small.mute { (describe(interval)) } };
    let (first, rest) = intervals.split_at(intervals.len().min(1));
    let (folded, last) = rest.split_at(n_folded);
    html! {
        @for interval in first { (line(interval)) }
        @if !folded.is_empty() {
            details.small.mute {
                summary { (n_folded) " more intervals" }
                @for interval in folded { (line(interval)) }
            }
        }
        @for interval in last { (line(interval)) }
    }
}

fn describe(interval: &PresenceView) -> String {
    let appeared = match interval.absent_until {
        Some(absent) => format!("added between {} and {}", date_time(*absent), date_time(*interval.first)),
        None => format!("on the page at the first capture, {}", date_time(*interval.first)),
    };
    match interval.gone {
        Some(gone) => {
            format!("{appeared}; removed between {} and {}", date_time(*interval.last), date_time(*gone))
        }
        None => format!("{appeared}; still there at the last capture, {}", date_time(*interval.last)),
    }
}

fn marked(text: &str, found: &[ops::Range<usize>]) -> Markup {
    let mut done = 0;
    let mut segments = Vec::new();
    for at in found.iter().filter(|at| at.end <= text.len()) {
        if at.start >= done {
            segments.push((&text[done..at.start], &text[at.clone()]));
            done = at.end;
        }
    }
    html! { @for (before, found) in segments { (before) mark { (found) } } (&text[done..]) }
}

fn time_axis(rows: &[SearchRow]) -> Axis {
    let intervals = || rows.iter().flat_map(|row| &row.presence);
    let from = intervals().map(|interval| *interval.absent_until.unwrap_or(interval.first)).min();
    let from = from.unwrap_or(Timestamp::EPOCH);
    let until = intervals().map(|interval| *interval.gone.unwrap_or(interval.last)).max().unwrap_or(from);
    Axis { from, until }
}
