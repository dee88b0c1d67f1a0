//! `/page/<url>`, `/page?url=`: versions of a page with their importance, its pattern of change, its next visit.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, PreEscaped, html};
use perennial_core::memento::replay_url::{QueryParameters, escape, latest_time};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::segment::BlockTree;
use perennial_core::schedule::{RankedPage, peak_hours};
use perennial_core::time::{DayKind, LocalClock, Span, Timestamp};
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::Serialize;

use super::admin::button;
use super::calendar::month;
use super::change::{ChangeSummary, event};
use super::charts::{Axis, HATCH, HourChart, Mark, days, hours, versions};
use super::components::{
    Time, crumbs, date_time, empty, importance, operations, segments, time, title, untrusted, words,
};
use super::headlines::{HeadlineList, Headlines, ItemView};
use super::layout::{
    Place, Shell, Tab, compare_href, host_with_port, notices_href, page_href, path, version_href,
};
use super::plan::explain;
use super::site::ramp;
use super::{Problem, Request, known_page, thumbnail};
use crate::summary::Summary;
use perennial_archive::Snapshot;
use perennial_archive::store::{
    AnalysisCounts, AnalysisDay, AnalysisRow, ChangeFilter, ChangeRow, PageRow, Store, TreeReader,
};
use perennial_core::text::quantity::{counted, grouped};
use perennial_engine::analyse::{AdFilters, ChangeReader};
use perennial_engine::html::dates::{
    day_long, day_of_year, day_short, minute, month_name, start_of_day, year_and_month,
};
use perennial_engine::learn::{
    ENOUGH_VISITS, are_hours_known, confidence, expected_by_period, index_threshold, is_rate_known,
};

/// The span shown in detail.
const WINDOW: Span = Span::from_hours(7 * 24);
/// A shorter history is shown whole.
const WHOLE: Span = Span::from_hours(10 * 24);
/// Captures read within the span.
const MAX_CAPTURES: usize = 2_000;
/// Versions whose words are looked up.
const MAX_WITH_WORDS: usize = 20;
/// Thumbnails.
const MAX_THUMBNAILS: usize = 8;
/// Days in the chart of hours.
const N_SERIES: usize = 14;
/// Lists of headlines that are compared.
const MAX_LISTS: usize = 80;
/// How far back the calendar and the overview reach.
const MAX_DAYS: Span = Span::from_hours(370 * 24);
/// With more versions in the span there is no chart of them.
const MAX_STEMS: usize = 200;
const N_OVERVIEW_DAYS: i64 = 180;
const MAX_MONTHS: usize = 4;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Version {
    /// The first capture that showed it.
    time: Time,
    /// The observation before.
    before: Option<Time>,
    importance: f64,
    is_indexed: bool,
    /// Whether the capture shows no new version, because nothing or only noise changed.
    is_unchanged: bool,
    /// What happened, if it is not an edit.
    event: Option<&'static str>,
    n_operations: usize,
    /// The operations; `None` if they are not looked up.
    #[serde(skip)]
    summary: Option<ChangeSummary>,
}

struct Thumbnail {
    time: Timestamp,
    importance: f64,
    tree: BlockTree,
    changed: Vec<String>,
}

/// The captures of a local day.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ActivityDay {
    day: String,
    /// The observed importance of change in each hour; null without a capture.
    hours: [Option<f64>; 24],
    /// Days since 1970.
    #[serde(skip)]
    number: i64,
}

/// When the page is expected to change.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PagePattern {
    /// The site's time zone.
    zone: String,
    /// Expected importance of change in each period of a workday.
    workdays: Vec<f64>,
    weekends: Vec<f64>,
    /// How reliable the pattern is, 0 to 1.
    confidence: f64,
    /// The busiest hours: kind of day, from, to.
    #[serde(skip)]
    peak: Option<(usize, f32, f32)>,
    /// The present kind of day and hour.
    #[serde(skip)]
    now: (usize, f64),
}

/// What the scheduler expects, in sentences.
#[derive(Default, Serialize, JsonSchema)]
struct Expectation {
    /// How often the page changes.
    frequency: String,
    /// The change since the last visit.
    change: String,
    /// When the page is visited next, and why.
    next_visit: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Page")]
pub(crate) struct View {
    url: String,
    title: Option<String>,
    n_captures: u64,
    first_capture: Option<Time>,
    last_capture: Option<Time>,
    /// Whether the page has no capture up to now.
    #[serde(skip)]
    is_future: bool,
    /// Analysed captures.
    n_observations: u64,
    n_changes: u64,
    /// Captures without a new version, because nothing or only noise changed.
    n_unchanged: u64,
    n_indexed: u64,
    /// Versions of at least this importance are indexed.
    index_threshold: f64,
    /// The span shown in detail.
    from: Time,
    until: Time,
    /// Within the span, latest first.
    versions: Vec<Version>,
    pattern: Option<PagePattern>,
    /// The days from which the pattern was learned, latest first.
    activity: Vec<ActivityDay>,
    #[serde(flatten)]
    expected: Expectation,
    /// The headlines of a listing page.
    items: Option<Headlines>,
    /// Whether the span has more versions than those listed.
    #[serde(skip)]
    has_more: bool,
    /// Whether versions below the threshold are listed.
    #[serde(skip)]
    shows_all: bool,
    /// All days with captures.
    #[serde(skip)]
    days: Vec<AnalysisDay>,
    /// The last important version before the span, and the first after it.
    #[serde(skip)]
    important: [Option<Timestamp>; 2],
    /// The last important change: the observation before it, and the change.
    #[serde(skip)]
    last_important: Option<(Timestamp, Timestamp)>,
    /// Thumbnails of versions, latest first.
    #[serde(skip)]
    thumbnails: Vec<Thumbnail>,
    /// The capture that found the page gone, and the last one before it.
    #[serde(skip)]
    vanished: Option<(Timestamp, Option<Timestamp>)>,
    /// Whether it belongs to a followed site.
    #[serde(skip)]
    is_followed: bool,
}

/// The URL of the page is in the path, unencoded, or in the parameter `url`.
pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    let url = if request.rest.is_empty() { request.needed("url")? } else { request.rest };
    let view = request.with_summary(|snapshot, summary| match known_page(snapshot.store(), url)? {
        Some(page) => View::load(&page, &request.query, snapshot, summary).map(Some),
        None => Ok(None),
    })?;
    view.ok_or_else(|| Problem::not_archived(url))
}

impl View {
    fn load(
        row: &PageRow,
        parameters: &QueryParameters,
        snapshot: &Snapshot,
        summary: Option<&Summary>,
    ) -> anyhow::Result<View> {
        let store = snapshot.store();
        let PageRow { id: page, url, n_captures, .. } = row.clone();
        let horizon = snapshot.archive().horizon();
        let span = row.first_seen.zip(store.last_seen(row, horizon)?);
        let window = window(parameters, span);
        let shows_all = parameters.get("show") == Some("all");
        let lines =
            store.analysis_lines(page, window.0, window.1 + Span::from_millis(1), MAX_CAPTURES + 1)?;
        let until = span.map_or(window.1, |(_, last)| last);
        let lists = headlines(store, page, window)?;
        let steps_before = store.versions_around(page, window.0 - Span::from_millis(1))?;
        let steps_after = store.versions_around(page, window.1)?;
        let before = steps_before.here.filter(|step| step.is_important).or(steps_before.previous_important);
        // The first of the final captures that found no page.
        let vanished = lines.iter().take_while(|line| !line.status.is_page()).last();
        let parsed = url::Url::parse(&url).ok();
        let AnalysisCounts { n_observations, n_changes, n_unchanged, n_indexed } =
            store.analysis_counts(page)?;
        let item_view = parameters.get("items").and_then(ItemView::parse).unwrap_or_default();
        Ok(View {
            vanished: vanished.map(|gone| (gone.time, gone.before)),
            is_followed: parsed
                .is_some_and(|url| snapshot.archive().settings().seeds.of_page(&url).is_some()),
            title: store.page_title(page)?,
            n_captures,
            first_capture: span.map(|(first, _)| first.into()),
            last_capture: span.map(|(_, last)| last.into()),
            is_future: span.is_some_and(|(_, last)| last > horizon),
            n_observations,
            n_changes,
            n_unchanged,
            n_indexed,
            index_threshold: index_threshold(snapshot, page, &url)?,
            from: window.0.into(),
            until: window.1.into(),
            has_more: lines.len() > MAX_CAPTURES,
            versions: load_versions(store, &url, &lines[..lines.len().min(MAX_CAPTURES)], shows_all)?,
            shows_all,
            days: store.analysis_days(page, until - MAX_DAYS)?,
            important: [before.map(|step| step.time), steps_after.next_important.map(|step| step.time)],
            last_important: last_important(store, page, until)?,
            pattern: summary
                .zip(span)
                .and_then(|(summary, (first, last))| page_pattern(summary, page, &url, last - first)),
            activity: match summary {
                Some(summary) => load_activity(store, page, until, &site_clock(summary, &url))?,
                None => Vec::new(),
            },
            expected: expectation(snapshot, summary, page, &url)?,
            thumbnails: load_thumbnails(store, page, &url, &lines)?,
            items: Headlines::new(&lists, item_view),
            url,
        })
    }
}

/// The week up to the instant in the query or up to the last capture; the whole of a short history.
fn window(parameters: &QueryParameters, span: Option<(Timestamp, Timestamp)>) -> (Timestamp, Timestamp) {
    let digits = parameters.get("until").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let until = digits.filter(|digits| (4..=14).contains(&digits.len())).map(latest_time);
    let Some((first, last)) = span else { return (Timestamp::EPOCH, Timestamp::EPOCH) };
    if last - first <= WHOLE && until.is_none() {
        return (first, last);
    }
    let until = until.unwrap_or(last).clamp(first, last.max(first));
    ((until - WINDOW).max(first), until)
}

fn last_important(
    store: &Store,
    page: PageId,
    until: Timestamp,
) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let steps = store.versions_around(page, until)?;
    let important = steps.here.filter(|step| step.is_important).or(steps.previous_important);
    let Some(time) = important.map(|step| step.time) else { return Ok(None) };
    let line = store.analysis_lines(page, time, time + Span::from_millis(1), 1)?;
    Ok(line.first().and_then(|line| Some((line.before?, line.time))))
}

/// The listed captures; the latest important ones have their words.
fn load_versions(
    store: &Store,
    url: &str,
    lines: &[AnalysisRow],
    shows_all: bool,
) -> anyhow::Result<Vec<Version>> {
    let (Some(last), Some(first)) = (lines.first(), lines.last()) else { return Ok(Vec::new()) };
    let mut rows: HashMap<Timestamp, ChangeRow> = HashMap::new();
    let until = Some(last.time + Span::from_millis(1));
    let filter = ChangeFilter { url: Some(url), since: Some(first.time), until, ..ChangeFilter::default() };
    store.each_change(&filter, |row| {
        rows.insert(row.time, row);
        Ok(())
    })?;
    let filters = AdFilters::built_in();
    let mut reader = ChangeReader::new(store, &filters);
    let mut n_with_words = 0;
    let mut versions = Vec::with_capacity(lines.len());
    for line in lines {
        let is_unchanged = !line.status.is_new_version();
        let wants_words = !is_unchanged && (line.is_indexed || shows_all) && n_with_words < MAX_WITH_WORDS;
        let summary = match rows.get(&line.time).filter(|_| wants_words) {
            Some(row) => Some(ChangeSummary::read(&mut reader, row)?),
            None => wants_words.then(ChangeSummary::default),
        };
        n_with_words += usize::from(summary.is_some());
        versions.push(Version {
            time: line.time.into(),
            before: line.before.map(Time),
            importance: line.status.reported_importance().get(),
            is_indexed: line.is_indexed,
            is_unchanged,
            event: if line.status == ChangeStatus::New { Some("First capture") } else { event(line.status) },
            n_operations: line.n_operations,
            summary,
        });
    }
    Ok(versions)
}

/// Thumbnails of the latest important versions.
fn load_thumbnails(
    store: &Store,
    page: PageId,
    url: &str,
    lines: &[AnalysisRow],
) -> anyhow::Result<Vec<Thumbnail>> {
    let mut reader = TreeReader::new(store);
    let filters = AdFilters::built_in();
    let mut changed = ChangeReader::new(store, &filters);
    let mut thumbnails = Vec::new();
    for line in lines.iter().filter(|line| {
        line.is_indexed && !matches!(line.status, ChangeStatus::Vanished | ChangeStatus::Redirected(_))
    }) {
        if thumbnails.len() == MAX_THUMBNAILS {
            break;
        }
        if let Some(tree) = reader.tree_at(page, line.time)? {
            let filter = ChangeFilter {
                url: Some(url),
                since: Some(line.time),
                until: Some(line.time + Span::from_millis(1)),
                ..ChangeFilter::default()
            };
            let mut blocks = Vec::new();
            store.each_change(&filter, |row| {
                blocks = ChangeSummary::read(&mut changed, &row)?.blocks;
                Ok(())
            })?;
            let importance = line.status.reported_importance().get();
            thumbnails.push(Thumbnail { time: line.time, importance, tree, changed: blocks });
        }
    }
    Ok(thumbnails)
}

/// The lists of headlines in the window, if the last one belongs to a listing page.
fn headlines(
    store: &Store,
    page: PageId,
    window: (Timestamp, Timestamp),
) -> anyhow::Result<Vec<HeadlineList>> {
    let mut reader = TreeReader::new(store);
    let last = reader.tree_at(page, window.1)?;
    if !last.and_then(|tree| tree.list).is_some_and(|list| list.is_listing()) {
        return Ok(Vec::new());
    }
    let observations = store.analysed_observations(page, Some(window.0 - Span::from_millis(1)))?;
    let observations: Vec<_> =
        observations.into_iter().filter(|observation| observation.time <= window.1).collect();
    let trees: Vec<usize> = (0..observations.len()).filter(|at| observations[*at].has_tree).collect();
    let trees = &trees[trees.len().saturating_sub(MAX_LISTS)..];
    let mut lists = Vec::with_capacity(trees.len());
    // Backwards, because a tree is stored as its difference from the next one.
    for (number, at) in trees.iter().enumerate().rev() {
        let next = trees.get(number + 1).copied().unwrap_or(observations.len());
        let Some(tree) = reader.tree_at(page, observations[*at].time)? else { continue };
        let last =
            observations[*at..next].last().map_or(observations[*at].time, |observation| observation.time);
        lists.push(HeadlineList {
            first: observations[*at].time,
            last,
            items: tree.list.unwrap_or_default().items,
        });
    }
    lists.reverse();
    Ok(lists)
}

fn site_clock(summary: &Summary, url: &str) -> LocalClock {
    summary.followed.local_clock(url).unwrap_or_else(LocalClock::utc)
}

/// `None` if the page was not observed for long enough.
fn page_pattern(summary: &Summary, page: PageId, url: &str, observed: Span) -> Option<PagePattern> {
    let belief = summary.scheduler.belief(page).filter(|belief| are_hours_known(belief, observed))?;
    let clock = site_clock(summary, url);
    let local = clock.local(summary.at);
    let kind = |kind: DayKind| usize::from(kind != DayKind::Workday);
    let [workdays, weekends] = expected_by_period(&belief);
    // The peak is that of the bars, which show importance and not the number of changes.
    let bars: Vec<f32> = workdays.iter().chain(&weekends).map(|value| *value as f32).collect();
    Some(PagePattern {
        workdays,
        weekends,
        confidence: confidence(&belief),
        peak: peak_hours(&bars).map(|peak| (kind(peak.kind), peak.from_hour, peak.to_hour)),
        now: (kind(clock.day_kind(local.day)), local.millis_of_day as f64 / 3_600_000.0),
        zone: clock.zone().to_string(),
    })
}

/// The latest local days with the observed change in each hour.
fn load_activity(
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
fn expectation(
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
    let next_visit = std::iter::once(why.answer.as_str()).chain(why.reasons.first().map(String::as_str));
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

impl View {
    fn name(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(path(&self.url))
    }

    /// The path of this page with a different end of its span.
    fn href(&self, base: &str, until: Option<Timestamp>) -> String {
        let until = until.map(|until| format!("&until={}", until.to_digits14())).unwrap_or_default();
        let show = if self.shows_all { "&show=all" } else { "" };
        format!("{}{until}{show}", page_href(base, &self.url))
    }

    fn open(&self, base: &str, at: Timestamp) -> String {
        version_href(base, at, &self.url)
    }

    /// The comparison of a version with the one before, if it is an edit.
    fn compare(&self, base: &str, version: &Version) -> Option<String> {
        let before = version.before.filter(|_| version.event.is_none())?;
        Some(compare_href(base, *before, *version.time, &self.url))
    }

    fn is_whole(&self) -> bool {
        (self.first_capture, self.last_capture) == (Some(self.from), Some(self.until))
    }
}

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
    let base = place.base;
    let main = html! {
        (PreEscaped(HATCH))
        (head(view, place))
        @if view.n_observations == 0 {
            (empty(
                "No capture of this page is analysed yet",
                "Its captures are waiting, or it has no text. The calendar lists them all.",
                Some("perennial analyse"),
            ))
        } @else {
            (time_line(view, base))
            @if let Some(items) = &view.items { (items.render(&view.href(base, None))) }
            section { div.two { (calendar(view, base)) (pattern(view, base)) } }
            @if !view.thumbnails.is_empty() { (thumbnails(view, base)) }
            (version_table(view, base))
        }
    };
    let title = format!("{} - {}", view.name(), host_with_port(&view.url));
    let json = format!("/api/page?url={}", escape(&view.url));
    Shell::new(place, Tab::Sites, &title, Some(json)).page(&main)
}

fn head(view: &View, place: Place<'_>) -> Markup {
    let (base, url) = (place.base, &view.url);
    html! {
        (crumbs(place, url, &untrusted(path(url).trim_start_matches('/'))))
        h1 { (title(view.name())) }
        div.head {
            div {
                p.lead {
                    @if let Some((gone, last)) = view.vanished {
                        b { "The page is gone" } ", "
                        @match last { Some(last) => { "between " (time(last)) " and " }, None => "before " }
                        (time(gone)) ". "
                    }
                    @if let Some((first, last)) = view.first_capture.zip(view.last_capture) {
                        (counted(view.n_captures, "capture", "captures")) " since " (day_of_year(*first)) ": "
                        (counted(view.n_changes, "change", "changes")) ", " (grouped(view.n_unchanged))
                        " times unchanged. Last capture " (time(*last))
                        @if view.is_future { ", which is in the future" } "."
                    }
                    @if let Some(items) = &view.items { " " (items.describe()) }
                    @if let Some(pattern) = &view.pattern { " Time zone of the site: " (pattern.zone) "." }
                }
            }
            div.row {
                @if let Some(last) = view.last_capture { a.btn.go href=(view.open(base, *last)) { "Open latest" } }
                @if let Some((before, after)) = view.last_important {
                    a.btn href=(compare_href(base, before, after, url)) { "Last important change" }
                }
                a.btn href={ (base) "/article?url=" (escape(url)) } { "Article and edits" }
                a.btn href={ (base) "/web/*/" (url) } { "Calendar" }
                a.btn href=(notices_href(base, Some(url), None)) { "Notify me" }
                @if view.is_followed {
                    a.btn href={ (base) "/pin?url=" (escape(url)) } { "Pin a part" }
                    (button(place, "retry", &[("url", url)], "Visit now", &page_href(base, url)))
                }
            }
        }
    }
}

const LEGEND: PreEscaped<&str> = PreEscaped(
    "<span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><circle class=\"f4\" cx=\"6\" cy=\"6\" r=\"5\"/></svg>indexed version</span>\
     <span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><circle class=\"fb sm\" stroke-width=\"1.5\" cx=\"6\" cy=\"6\" r=\"4\"/></svg>minor version</span>\
     <span><svg width=\"10\" height=\"12\" aria-hidden=\"true\"><line class=\"sm\" x1=\"5\" x2=\"5\" y1=\"2\" y2=\"10\"/></svg>unchanged</span>",
);
const THRESHOLD: PreEscaped<&str> = PreEscaped(
    "<svg width=\"20\" height=\"12\" aria-hidden=\"true\"><line class=\"th\" x1=\"0\" x2=\"20\" y1=\"6\" y2=\"6\"/></svg>",
);

fn time_line(view: &View, base: &str) -> Markup {
    let axis = Axis { from: *view.from, until: *view.until };
    let marks: Vec<Mark> = view
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

fn mark(view: &View, version: &Version, base: &str) -> Mark {
    Mark {
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

fn overview_of_days(view: &View, base: &str) -> Markup {
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

fn calendar(view: &View, base: &str) -> Markup {
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

fn pattern(view: &View, base: &str) -> Markup {
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
                        expected: pattern.peak.filter(|peak| peak.0 == kind).map(|(_, from, to)| (from, to)),
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
                // The short names of day and date fit beside the hours even on a phone.
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

fn thumbnails(view: &View, base: &str) -> Markup {
    html! {
        section {
            div.sec {
                h2 { "Thumbnails" }
                p.legend { "layout of the latest versions; changed blocks are framed" }
            }
            ul.pics {
                @for thumbnail in &view.thumbnails {
                    li {
                        a href=(view.open(base, thumbnail.time)) {
                            (thumbnail::svg(&thumbnail.tree, &thumbnail.changed))
                            span.small { (date_time(thumbnail.time)) br; (format!("{:.2}", thumbnail.importance)) }
                        }
                    }
                }
            }
        }
    }
}

fn version_table(view: &View, base: &str) -> Markup {
    let (from, until) = (day_of_year(*view.from), day_of_year(*view.until));
    let other = format!(
        "{}&until={}{}",
        page_href(base, &view.url),
        view.until.to_digits14(),
        if view.shows_all { "" } else { "&show=all" }
    );
    let all = format!("All {}", grouped(view.n_observations));
    let choices = match view.shows_all {
        true => [("Important".to_owned(), Some(other)), (all, None)],
        false => [("Important".to_owned(), None), (all, Some(other))],
    };
    let [previous, next] = view.important;
    let steps =
        [("prev", "Previous important version, ", previous), ("next", "Next important version, ", next)];
    html! {
        section #versions {
            div.sec {
                h2 { (from) @if from != until { " to " (until) } }
                p.row {
                    (segments(choices))
                    @for (rel, words, at) in steps {
                        @if let Some(at) = at {
                            a.btn rel=(rel) href=(view.href(base, Some(Timestamp::from_secs(at.as_secs() + 1)))) { (words) (date_time(at)) }
                        }
                    }
                }
            }
            table.t.vers {
                thead {
                    tr {
                        th scope="col" { "Time" } th scope="col" { "Importance" } th scope="col" { "Words" }
                        th.wide-only scope="col" { "Operations" } th scope="col" { span.vh { "Compare" } }
                    }
                }
                tbody { @for row in rows(view, base) { (row) } }
            }
            @if view.has_more {
                p.more { a.btn href=(view.href(base, view.versions.last().map(|version| *version.time))) { "Older" } }
            }
        }
    }
}

/// One row per listed version; the versions between two of them are folded and counted.
fn rows(view: &View, base: &str) -> Vec<Markup> {
    let is_listed = |version: &Version| version.summary.is_some() || view.shows_all && !version.is_unchanged;
    let mut last_day = String::new();
    let row = |versions: &[Version]| match versions {
        [version] if is_listed(version) => {
            let day = day_long(*version.time);
            let is_new = std::mem::replace(&mut last_day, day.clone()) != day;
            html! {
                @if is_new { tr.day { th colspan="5" scope="colgroup" { (day) } } }
                (row(view, version, base))
            }
        }
        folded => fold(folded),
    };
    view.versions.chunk_by(|a, b| !is_listed(a) && !is_listed(b)).map(row).collect()
}

fn row(view: &View, version: &Version, base: &str) -> Markup {
    let summary = version.summary.clone().unwrap_or_default();
    html! {
        tr {
            td.nowrap { a href=(view.open(base, *version.time)) { time datetime=(version.time.to_rfc3339()) { (minute(*version.time)) } } }
            td { (importance(version.importance, version.is_indexed, Some(view.index_threshold))) }
            td.w {
                div.pair {
                    @if let Some(event) = version.event { span { (event) } }
                    @for line in &summary.words { (words(line)) }
                }
            }
            td.wide-only { (operations(&summary.operations)) }
            td.r { @if let Some(compare) = view.compare(base, version) { a href=(compare) { "Compare" } } }
        }
    }
}

fn fold(folded: &[Version]) -> Markup {
    let (Some(last), Some(first)) = (folded.first(), folded.last()) else { return html! {} };
    let n_unchanged = folded.iter().filter(|version| version.is_unchanged).count();
    let n_minor = folded.len() - n_unchanged;
    html! {
        tr.fold {
            td.nowrap { time { (minute(*first.time)) @if first.time != last.time { " to " (minute(*last.time)) } } }
            td colspan="4" {
                @if n_unchanged > 0 { (n_unchanged) " unchanged" }
                @if n_unchanged > 0 && n_minor > 0 { ", " }
                @if n_minor > 0 { (counted(n_minor as u64, "minor version", "minor versions")) }
            }
        }
    }
}
