//! `/page/<url>`, `/page?url=`: versions of a page in time with the importance of each, when it changes, what the scheduler expects, its
//! next visit.

use std::collections::{BTreeMap, HashMap};

use maud::{Markup, PreEscaped, html};
use perennial_core::memento::address::{Query, escape, time_of_digits};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::segment::BlockTree;
use perennial_core::schedule::{Ranked, peak_of};
use perennial_core::time::{DayKind, LocalClock, Span, Timestamp};
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::Serialize;

use super::admin::button;
use super::calendar::month;
use super::change::{Reported, event_of};
use super::charts::{Axis, HATCH, Hours, Mark, days, hours, versions};
use super::components::{
    Time, crumbs, empty, importance, operations, segments, short, time, title, untrusted, words,
};
use super::headlines::{Headline, ItemView, Items};
use super::layout::{
    Place, Shell, Tab, compare_address, host_with_port, notices_address, page_address, path_of,
    version_address,
};
use super::plan::why;
use super::site::ramp;
use super::{Problem, Request, known_page, thumbnail};
use crate::summary::Summary;
use perennial_archive::Snapshot;
use perennial_archive::store::{
    AnalysisCounts, AnalysisDay, AnalysisLine, ChangeFilter, ChangeRow, PageRow, Store, TreeReader,
};
use perennial_engine::analyse::{AdFilters, ChangeReader};
use perennial_engine::html::dates::{
    counted, day_long, day_of_year, day_short, grouped, minute, month_name, start_of_day, year_and_month,
};
use perennial_engine::learn::{confidence, expected_by_period};

/// The stretch that is shown whole.
const WINDOW: Span = Span::from_hours(7 * 24);
/// A history that is not much longer is shown as a whole.
const WHOLE: Span = Span::from_hours(10 * 24);
/// Captures of the window that are read.
const MAX_LOOKS: usize = 2_000;
/// Versions whose words are looked up, and those that are drawn.
const MAX_TOLD: usize = 20;
const MAX_PICTURES: usize = 8;
/// Days that are shown hour by hour.
const N_SERIES: usize = 14;
/// Lists of headlines that are followed.
const MAX_LISTS: usize = 80;
/// Days that the calendar and the overview reach back.
const MAX_DAYS: Span = Span::from_hours(370 * 24);
/// With more versions than this in view no stems are drawn.
const MAX_STEMS: usize = 200;
/// Days of the overview.
const N_OVERVIEW_DAYS: i64 = 180;
/// Months of the calendar.
const MAX_MONTHS: usize = 4;

/// A version of the page.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Version {
    /// When the capture was that showed it first.
    time: Time,
    /// The observation before.
    before: Option<Time>,
    /// Importance of the change.
    importance: f64,
    /// Whether it is kept in the index.
    is_indexed: bool,
    /// Whether it differs by noise only, or not at all.
    is_noise: bool,
    /// What happened, if it is not an edit.
    event: Option<&'static str>,
    n_operations: usize,
    /// What is reported of it; `None` if that is not looked up.
    #[serde(skip)]
    reported: Option<Reported>,
}

/// A drawing of one version.
struct Picture {
    time: Timestamp,
    importance: f64,
    tree: BlockTree,
    /// The blocks that changed.
    changed: Vec<String>,
}

/// What the captures of one local day showed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SeriesDay {
    day: String,
    /// For each hour the importance that was seen to have changed; null without a capture.
    hours: [Option<f64>; 24],
    /// The day, as the number of days since 1970.
    #[serde(skip)]
    number: i64,
}

/// When the page changes, as the scheduler expects.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Pattern {
    /// The time zone of the site.
    zone: String,
    /// Importance of change to expect in each part of a workday.
    workdays: Vec<f64>,
    weekends: Vec<f64>,
    /// How sure that is, 0 to 1.
    sureness: f64,
    /// The busiest hours: on which kind of day (0 or 1), from, to.
    #[serde(skip)]
    peak: Option<(usize, f32, f32)>,
    /// The kind of day and the hour of now.
    #[serde(skip)]
    now: (usize, f64),
}

/// What the scheduler says of the page, in sentences.
#[derive(Default, Serialize, JsonSchema)]
struct Expected {
    /// How often the page changes.
    believes: String,
    /// What is expected to have changed by now.
    expects: String,
    /// When the page is visited next, and why.
    next_visit: String,
}

/// The page about a page.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Page")]
pub(crate) struct View {
    url: String,
    title: Option<String>,
    n_captures: u64,
    first_capture: Option<Time>,
    last_capture: Option<Time>,
    /// Captures that were analysed.
    n_looks: u64,
    n_changes: u64,
    /// Captures that differ by noise only.
    n_noise: u64,
    /// Versions that are kept in the index.
    n_indexed: u64,
    /// The importance from which a version is kept in the index.
    index_threshold: f64,
    /// The stretch of time that is shown.
    from: Time,
    until: Time,
    /// The captures of it, latest first.
    versions: Vec<Version>,
    pattern: Option<Pattern>,
    /// The days that the pattern was learned from, the latest first.
    series: Vec<SeriesDay>,
    #[serde(flatten)]
    expected: Expected,
    /// The headlines, if it is a listing page.
    items: Option<Items>,
    /// Whether there are more versions than those.
    #[serde(skip)]
    has_more: bool,
    /// Whether versions below the threshold are listed too.
    #[serde(skip)]
    shows_all: bool,
    /// All days with captures.
    #[serde(skip)]
    days: Vec<AnalysisDay>,
    /// The last important version before the stretch, and the first behind it.
    #[serde(skip)]
    important: [Option<Timestamp>; 2],
    /// The last important change: the observation before it, and its own.
    #[serde(skip)]
    last_important: Option<(Timestamp, Timestamp)>,
    /// Drawings of some versions, latest first.
    #[serde(skip)]
    pictures: Vec<Picture>,
    /// The capture that found no page any more, and the last that found one.
    #[serde(skip)]
    vanished: Option<(Timestamp, Option<Timestamp>)>,
    /// Whether a site that is followed holds it.
    #[serde(skip)]
    is_followed: bool,
}

/// A page by its URL in the path, as it is, or in the parameter `url`.
pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    let url = if request.rest.is_empty() { request.needed("url")? } else { request.rest };
    let found = request.with_summary(|snapshot, standing| match known_page(snapshot.store(), url)? {
        Some(row) => Asked { row: &row, parameters: &request.query }.view(snapshot, standing).map(Some),
        None => Ok(None),
    })?;
    found.ok_or_else(|| Problem::not_archived(url))
}

struct Asked<'a> {
    row: &'a PageRow,
    parameters: &'a Query,
}

impl Asked<'_> {
    fn view(&self, snapshot: &Snapshot, standing: Option<&Summary>) -> anyhow::Result<View> {
        let store = snapshot.store();
        let PageRow { id: page, url, n_captures, .. } = self.row.clone();
        let span = self.row.first_seen.zip(self.row.last_seen);
        let window = self.window(span);
        let shows_all = self.parameters.get("show") == Some("all");
        let lines = store.analysis_lines(page, window.0, window.1 + Span::from_millis(1), MAX_LOOKS + 1)?;
        let until = span.map_or(window.1, |(_, last)| last);
        let lists = headlines(store, page, window)?;
        let steps_before = store.steps_around(page, window.0 - Span::from_millis(1))?;
        let steps_after = store.steps_around(page, window.1)?;
        let before = steps_before.here.filter(|step| step.is_important).or(steps_before.previous_important);
        let mut looks: Vec<&AnalysisLine> = lines.iter().collect();
        looks.sort_by_key(|look| std::cmp::Reverse(look.time));
        // The first of the captures that found no page, back from the last one.
        let vanished = looks.into_iter().take_while(|look| !look.status.is_page()).last();
        let parsed = url::Url::parse(&url).ok();
        let AnalysisCounts { n_looks, n_changes, n_noise, n_indexed } = store.analysis_counts(page)?;
        let item_view = self.parameters.get("items").and_then(ItemView::of).unwrap_or_default();
        Ok(View {
            vanished: vanished.map(|gone| (gone.time, gone.before)),
            is_followed: parsed
                .is_some_and(|url| snapshot.archive().settings().seeds.of_page(&url).is_some()),
            title: store.title_of(page)?,
            n_captures,
            first_capture: span.map(|(first, _)| first.into()),
            last_capture: span.map(|(_, last)| last.into()),
            n_looks,
            n_changes,
            n_noise,
            n_indexed,
            index_threshold: store.index_threshold(page)?,
            from: window.0.into(),
            until: window.1.into(),
            has_more: lines.len() > MAX_LOOKS,
            versions: versions_of(store, &url, &lines[..lines.len().min(MAX_LOOKS)], shows_all)?,
            shows_all,
            days: store.analysis_days(page, until - MAX_DAYS)?,
            important: [before.map(|step| step.time), steps_after.next_important.map(|step| step.time)],
            last_important: last_important(store, page, until)?,
            pattern: standing.and_then(|standing| pattern_of(standing, page, &url)),
            series: match standing {
                Some(standing) => series_of(store, page, until, &clock_of(standing, &url))?,
                None => Vec::new(),
            },
            expected: expected_of(snapshot, standing, page, &url)?,
            pictures: pictures_of(store, page, &url, &lines)?,
            items: Items::of(&lists, item_view),
            url,
        })
    }

    /// The week up to the instant in the query, or up to the last capture; all of a short history.
    fn window(&self, span: Option<(Timestamp, Timestamp)>) -> (Timestamp, Timestamp) {
        let digits =
            self.parameters.get("until").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let until = digits.filter(|digits| (4..=14).contains(&digits.len())).map(time_of_digits);
        let Some((first, last)) = span else { return (Timestamp::EPOCH, Timestamp::EPOCH) };
        if last - first <= WHOLE && until.is_none() {
            return (first, last);
        }
        let until = until.unwrap_or(last).clamp(first, last.max(first));
        ((until - WINDOW).max(first), until)
    }
}

fn last_important(
    store: &Store,
    page: PageId,
    until: Timestamp,
) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
    let steps = store.steps_around(page, until)?;
    let important = steps.here.filter(|step| step.is_important).or(steps.previous_important);
    let Some(time) = important.map(|step| step.time) else { return Ok(None) };
    let line = store.analysis_lines(page, time, time + Span::from_millis(1), 1)?;
    Ok(line.first().and_then(|line| Some((line.before?, line.time))))
}

/// The captures as they are shown, the latest important ones with their words.
fn versions_of(
    store: &Store,
    url: &str,
    lines: &[AnalysisLine],
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
    let mut n_told = 0;
    let mut shown = Vec::with_capacity(lines.len());
    for line in lines {
        let is_noise = !line.status.is_new_version();
        let wants_words = !is_noise && (line.is_indexed || shows_all) && n_told < MAX_TOLD;
        let reported = match rows.get(&line.time).filter(|_| wants_words) {
            Some(row) => Some(Reported::read(&mut reader, row)?),
            None => wants_words.then(Reported::default),
        };
        n_told += usize::from(reported.is_some());
        shown.push(Version {
            time: line.time.into(),
            before: line.before.map(Time),
            importance: line.status.reported_importance().get(),
            is_indexed: line.is_indexed,
            is_noise,
            event: if line.status == ChangeStatus::New {
                Some("First capture")
            } else {
                event_of(line.status)
            },
            n_operations: line.n_operations,
            reported,
        });
    }
    Ok(shown)
}

/// Drawings of the latest important versions.
fn pictures_of(
    store: &Store,
    page: PageId,
    url: &str,
    lines: &[AnalysisLine],
) -> anyhow::Result<Vec<Picture>> {
    let mut reader = TreeReader::new(store);
    let filters = AdFilters::built_in();
    let mut changed = ChangeReader::new(store, &filters);
    let mut pictures = Vec::new();
    for line in lines.iter().filter(|line| {
        line.is_indexed && !matches!(line.status, ChangeStatus::Vanished | ChangeStatus::Redirected(_))
    }) {
        if pictures.len() == MAX_PICTURES {
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
                blocks = Reported::read(&mut changed, &row)?.blocks;
                Ok(())
            })?;
            let importance = line.status.reported_importance().get();
            pictures.push(Picture { time: line.time, importance, tree, changed: blocks });
        }
    }
    Ok(pictures)
}

/// The lists of headlines in the window, where the last of them is that of a front page.
fn headlines(store: &Store, page: PageId, window: (Timestamp, Timestamp)) -> anyhow::Result<Vec<Headline>> {
    let mut reader = TreeReader::new(store);
    let last = reader.tree_at(page, window.1)?;
    if !last.and_then(|tree| tree.list).is_some_and(|list| list.is_hub()) {
        return Ok(Vec::new());
    }
    let looks = store.analysed_observations(page, Some(window.0 - Span::from_millis(1)))?;
    let looks: Vec<_> = looks.into_iter().filter(|look| look.time <= window.1).collect();
    let trees: Vec<usize> = (0..looks.len()).filter(|at| looks[*at].has_tree).collect();
    let trees = &trees[trees.len().saturating_sub(MAX_LISTS)..];
    let mut lists = Vec::with_capacity(trees.len());
    // Backwards: a tree is kept as what differs from the next.
    for (place, at) in trees.iter().enumerate().rev() {
        let next = trees.get(place + 1).copied().unwrap_or(looks.len());
        let Some(tree) = reader.tree_at(page, looks[*at].time)? else { continue };
        let last = looks[*at..next].last().map_or(looks[*at].time, |look| look.time);
        lists.push(Headline { first: looks[*at].time, last, items: tree.list.unwrap_or_default().items });
    }
    lists.reverse();
    Ok(lists)
}

fn clock_of(standing: &Summary, url: &str) -> LocalClock {
    standing.followed.local_clock(url).unwrap_or_else(LocalClock::utc)
}

fn pattern_of(standing: &Summary, page: PageId, url: &str) -> Option<Pattern> {
    let belief = standing.scheduler.belief(page).filter(|belief| belief.n_visits > 0)?;
    let clock = clock_of(standing, url);
    let local = clock.local(standing.at);
    let kind = |kind: DayKind| usize::from(kind != DayKind::Workday);
    let [workdays, weekends] = expected_by_period(&belief);
    // What is shaded is what the bars say: how much is expected, and not how often.
    let bars: Vec<f32> = workdays.iter().chain(&weekends).map(|value| *value as f32).collect();
    Some(Pattern {
        workdays,
        weekends,
        sureness: confidence(&belief),
        peak: peak_of(&bars).map(|peak| (kind(peak.kind), peak.from_hour, peak.to_hour)),
        now: (kind(clock.kind_of(local.day)), local.millis_of_day as f64 / 3_600_000.0),
        zone: clock.zone().to_string(),
    })
}

/// The latest local days with what was seen in each of their hours.
fn series_of(
    store: &Store,
    page: PageId,
    until: Timestamp,
    clock: &LocalClock,
) -> anyhow::Result<Vec<SeriesDay>> {
    let from = until - Span::from_hours(24 * N_SERIES as i64);
    let lines = store.analysis_lines(page, from, until + Span::from_millis(1), MAX_LOOKS)?;
    let mut days: Vec<SeriesDay> = Vec::new();
    for line in &lines {
        let local = clock.local(line.time);
        let (number, hour) = (i64::from(local.day.0), (local.millis_of_day / 3_600_000) as usize);
        if days.last().is_none_or(|day| day.number != number) {
            let day = start_of_day(number).to_rfc3339().chars().take(10).collect();
            days.push(SeriesDay { day, number, hours: [None; 24] });
        }
        let cell = days.last_mut().and_then(|day| day.hours.get_mut(hour));
        if let Some(cell) = cell {
            // What a first look shows has not changed then.
            let is_change = line.status.is_change();
            let importance = if is_change { line.status.observed_importance().get() } else { 0.0 };
            *cell = Some(cell.unwrap_or(0.0) + importance);
        }
    }
    days.truncate(N_SERIES);
    Ok(days)
}

/// What the scheduler says of the page, in sentences.
fn expected_of(
    snapshot: &Snapshot,
    standing: Option<&Summary>,
    page: PageId,
    url: &str,
) -> anyhow::Result<Expected> {
    let Some(standing) = standing else {
        let next_visit = "Being reckoned. Reload in a moment.".to_string();
        return Ok(Expected { next_visit, ..Expected::default() });
    };
    let why = why(snapshot, standing, url)?;
    let next_visit = std::iter::once(why.answer.as_str()).chain(why.because.first().map(String::as_str));
    let mut expected =
        Expected { next_visit: next_visit.collect::<Vec<_>>().join(" "), ..Expected::default() };
    let Some(belief) = standing.scheduler.belief(page).filter(|belief| belief.n_visits > 0) else {
        expected.believes = "Nothing yet: the page must be looked at twice.".to_string();
        return Ok(expected);
    };
    let ranked = standing.ranks.get(&page).map(|(_, ranked)| ranked);
    let habit = ranked.and_then(Ranked::habit).map(|habit| format!(", most {habit}")).unwrap_or_default();
    expected.believes = format!(
        "{:.1} changes a day{habit}. Learned from {} looks, {} of which found a change; sure to {:.0} %.",
        belief.changes_per_day(),
        belief.n_visits,
        belief.n_changed,
        100.0 * confidence(&belief)
    );
    if let (Some(ranked), Some(since)) = (ranked, why.last_visit) {
        let clock = clock_of(standing, url);
        let zone = Some(&clock).filter(|clock| clock.zone() != "UTC");
        expected.expects = format!(
            "{:.3} of important change since {}.",
            ranked.expected.get(),
            perennial_core::schedule::local_minute(*since, zone)
        );
    }
    Ok(expected)
}

impl View {
    fn name(&self) -> &str {
        self.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(path_of(&self.url))
    }

    /// The address of this page with another end of its stretch.
    fn address(&self, base: &str, until: Option<Timestamp>) -> String {
        let until = until.map(|until| format!("&until={}", until.to_digits14())).unwrap_or_default();
        let show = if self.shows_all { "&show=all" } else { "" };
        format!("{}{until}{show}", page_address(base, &self.url))
    }

    fn open(&self, base: &str, at: Timestamp) -> String {
        version_address(base, at, &self.url)
    }

    /// The comparison of a version with the one before, if it is an edit.
    fn compare(&self, base: &str, version: &Version) -> Option<String> {
        let before = version.before.filter(|_| version.event.is_none())?;
        Some(compare_address(base, *before, *version.time, &self.url))
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
        @if view.n_looks == 0 {
            (empty(
                "No look at this page was analysed yet",
                "Its captures wait, or it is nothing that people read. The calendar has them all.",
                Some("perennial analyse"),
            ))
        } @else {
            (time_line(view, base))
            @if let Some(items) = &view.items { (items.render(&view.address(base, None))) }
            section { div.two { (calendar(view, base)) (pattern(view, base)) } }
            @if !view.pictures.is_empty() { (pictures(view, base)) }
            (table(view, base))
        }
    };
    let title = format!("{} - {}", view.name(), host_with_port(&view.url));
    let json = format!("/api/page?url={}", escape(&view.url));
    Shell::new(place, Tab::Sites, &title, Some(json)).page(&main)
}

fn head(view: &View, place: Place<'_>) -> Markup {
    let (base, url) = (place.base, &view.url);
    html! {
        (crumbs(place, url, &untrusted(path_of(url).trim_start_matches('/'))))
        h1 { (title(view.name())) }
        div.head {
            div {
                p.lead {
                    @if let Some((gone, last)) = view.vanished {
                        b { "The page has vanished" } ", "
                        @match last { Some(last) => { "between " (time(last)) " and " }, None => "before " }
                        (time(gone)) ". "
                    }
                    @if let Some((first, last)) = view.first_capture.zip(view.last_capture) {
                        (counted(view.n_captures, "capture", "captures")) " since " (day_of_year(*first)) ": "
                        (counted(view.n_changes, "says", "say")) " something new, " (grouped(view.n_noise))
                        " are noise. Last seen " (time(*last)) "."
                    }
                    @if let Some(items) = &view.items { " " (items.told()) }
                    @if let Some(pattern) = &view.pattern { " Zone of the site: " (pattern.zone) "." }
                }
            }
            div.row {
                @if let Some(last) = view.last_capture { a.btn.go href=(view.open(base, *last)) { "Open latest" } }
                @if let Some((before, after)) = view.last_important {
                    a.btn href=(compare_address(base, before, after, url)) { "Last important change" }
                }
                a.btn href={ (base) "/object?url=" (escape(url)) } { "Article and edits" }
                a.btn href={ (base) "/web/*/" (url) } { "All captures" }
                a.btn href=(notices_address(base, Some(url), None)) { "Notify" }
                @if view.is_followed {
                    a.btn href={ (base) "/pin?url=" (escape(url)) } { "Pin a part" }
                    (button(place, "retry", &[("url", url)], "Visit now", &page_address(base, url)))
                }
            }
        }
    }
}

const LEGEND: PreEscaped<&str> = PreEscaped(
    "<span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><circle class=\"f4\" cx=\"6\" cy=\"6\" r=\"5\"/></svg>kept in the index</span>\
     <span><svg width=\"12\" height=\"12\" aria-hidden=\"true\"><circle class=\"fb sm\" stroke-width=\"1.5\" cx=\"6\" cy=\"6\" r=\"4\"/></svg>below</span>\
     <span><svg width=\"10\" height=\"12\" aria-hidden=\"true\"><line class=\"sm\" x1=\"5\" x2=\"5\" y1=\"2\" y2=\"10\"/></svg>noise only</span>",
);
const THRESHOLD: PreEscaped<&str> = PreEscaped(
    "<svg width=\"20\" height=\"12\" aria-hidden=\"true\"><line class=\"th\" x1=\"0\" x2=\"20\" y1=\"6\" y2=\"6\"/></svg>",
);

fn time_line(view: &View, base: &str) -> Markup {
    let axis = Axis { from: *view.from, until: *view.until };
    let marks: Vec<Mark> = view
        .versions
        .iter()
        .filter(|version| !version.is_noise)
        .map(|version| mark(view, version, base))
        .collect();
    let noise: Vec<Timestamp> =
        view.versions.iter().filter(|version| version.is_noise).map(|version| *version.time).collect();
    let label = format!("Versions from {} to {}, height is importance", short(axis.from), short(axis.until));
    html! {
        section {
            div.sec {
                h2 { "Versions" }
                p.legend { (LEGEND) span { (THRESHOLD) "index threshold " (format!("{:.3}", view.index_threshold)) } }
            }
            @if marks.len() <= MAX_STEMS { (versions(axis, &marks, &noise, view.index_threshold, &label)) }
            (overview_of_days(view, base))
            p.cap {
                "Above: " (short(axis.from)) " to " (short(axis.until)) ", " (counted(marks.len() as u64, "change", "changes")) " and "
                (counted(noise.len() as u64, "capture", "captures")) " with noise only. "
                @if !view.is_whole() { "Below: strongest change of each day; weekends are fainter. A day opens its week." }
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
            short(*version.time),
            version.importance,
            counted(version.n_operations as u64, "operation", "operations")
        ),
    }
}

fn overview_of_days(view: &View, base: &str) -> Markup {
    let ends = view.days.first().zip(view.days.last()).filter(|(first, last)| first.number != last.number);
    // A history that is shown whole needs no overview.
    let Some((first, last)) = ends.filter(|_| !view.is_whole()) else { return html! {} };
    let first = first.number.max(last.number - N_OVERVIEW_DAYS + 1);
    let by_number: BTreeMap<i64, f64> = view.days.iter().map(|day| (day.number, day.strongest)).collect();
    let values: Vec<f64> =
        (first..=last.number).map(|number| by_number.get(&number).copied().unwrap_or(0.0)).collect();
    let number_of = |at: Timestamp| at.as_millis().div_euclid(86_400_000);
    let framed = (number_of(*view.from), number_of(*view.until));
    days(first, &values, framed, |number| view.address(base, Some(start_of_day(number + 1))))
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
            a class={ "h" (step) } href=(view.address(base, Some(start_of_day(number + 1))))
                title={ (counted(day.n_looks, "look", "looks")) ", importance " (format!("{:.2}", day.total)) } { (date) }
        }
    };
    html! {
        div {
            div.sec { h2 { "Calendar" } p.legend { (ramp()) span { "more important change in a day" } } }
            div.cal {
                @for &(year, number) in &months[months.len().saturating_sub(MAX_MONTHS)..] {
                    (month(year, number, html! { (month_name(number)) " " (year) }, cell))
                }
            }
        }
    }
}

fn pattern(view: &View, base: &str) -> Markup {
    let Expected { believes, expects, next_visit } = &view.expected;
    html! {
        div {
            div.sec { h2 { "When it changes" } p.legend { "important change to expect in each hour, local time" } }
            @if let Some(pattern) = &view.pattern {
                @let top = pattern.workdays.iter().chain(&pattern.weekends).copied().fold(0.0, f64::max);
                @let top = [0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6].into_iter().find(|step| top <= *step).unwrap_or(1.0);
                @for (kind, name, values) in [(0, "Workdays", &pattern.workdays), (1, "Weekends", &pattern.weekends)] {
                    (hours(&Hours {
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
            @if !view.series.is_empty() { (series(&view.series)) }
            dl.belief #next {
                @for (name, text) in [("Believes", believes), ("Expects", expects), ("Next visit", next_visit)] {
                    @if !text.is_empty() { div { dt { (name) } dd { (untrusted(text)) } } }
                }
            }
            p.cap { a href={ (base) "/schedule?url=" (escape(&view.url)) } { "Why not today?" } }
        }
    }
}

/// The days that the bars were learned from, hour by hour.
fn series(days: &[SeriesDay]) -> Markup {
    let top = days.iter().flat_map(|day| day.hours).flatten().fold(0.0, f64::max);
    html! {
        div.heat.series role="img" aria-label="Importance of what was seen to have changed, by day and hour" {
            @for day in days {
                @let name = day_short(start_of_day(day.number));
                // A day and its number fit beside the hours, on a phone too.
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
        p.cap { "What it was learned from: the latest days, hour by hour. Filled: something changed. Framed: seen, nothing new. Bare: nobody looked." }
    }
}

fn pictures(view: &View, base: &str) -> Markup {
    html! {
        section {
            div.sec {
                h2 { "Pictures of versions" }
                p.legend { "drawn from the boxes of the layout, what changed framed; latest first" }
            }
            ul.pics {
                @for picture in &view.pictures {
                    li {
                        a href=(view.open(base, picture.time)) {
                            (thumbnail::svg(&picture.tree, &picture.changed))
                            span.small { (short(picture.time)) br; (format!("{:.2}", picture.importance)) }
                        }
                    }
                }
            }
        }
    }
}

fn table(view: &View, base: &str) -> Markup {
    let (from, until) = (day_of_year(*view.from), day_of_year(*view.until));
    let other = format!(
        "{}&until={}{}",
        page_address(base, &view.url),
        view.until.to_digits14(),
        if view.shows_all { "" } else { "&show=all" }
    );
    let all = format!("All {}", grouped(view.n_looks));
    let choices = match view.shows_all {
        true => [("Important".to_owned(), Some(other)), (all, None)],
        false => [("Important".to_owned(), None), (all, Some(other))],
    };
    let [previous, next] = view.important;
    let steps = [("prev", "Previous important, ", previous), ("next", "Next important, ", next)];
    html! {
        section #versions {
            div.sec {
                h2 { (from) @if from != until { " to " (until) } }
                p.row {
                    (segments(choices))
                    @for (rel, words, at) in steps {
                        @if let Some(at) = at {
                            a.btn rel=(rel) href=(view.address(base, Some(Timestamp::from_secs(at.as_secs() + 1)))) { (words) (short(at)) }
                        }
                    }
                }
            }
            table.t.vers {
                thead {
                    tr {
                        th scope="col" { "Time" } th scope="col" { "Importance" } th scope="col" { "Strongest words" }
                        th.wide-only scope="col" { "Operations" } th scope="col" { span.vh { "Compare" } }
                    }
                }
                tbody { @for row in rows(view, base) { (row) } }
            }
            @if view.has_more {
                p.more { a.btn href=(view.address(base, view.versions.last().map(|version| *version.time))) { "Older" } }
            }
        }
    }
}

/// One row for each version that is listed; what lies between two of them is folded and counted.
fn rows(view: &View, base: &str) -> Vec<Markup> {
    let is_listed = |version: &Version| version.reported.is_some() || view.shows_all && !version.is_noise;
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
    let reported = version.reported.clone().unwrap_or_default();
    html! {
        tr {
            td.nowrap { a href=(view.open(base, *version.time)) { time datetime=(version.time.to_rfc3339()) { (minute(*version.time)) } } }
            td { (importance(version.importance, version.is_indexed, Some(view.index_threshold))) }
            td.w {
                div.pair {
                    @if let Some(event) = version.event { span { (event) } }
                    @for line in &reported.words { (words(line)) }
                }
            }
            td.wide-only { (operations(&reported.operations)) }
            td.r { @if let Some(compare) = view.compare(base, version) { a href=(compare) { "Compare" } } }
        }
    }
}

fn fold(folded: &[Version]) -> Markup {
    let (Some(last), Some(first)) = (folded.first(), folded.last()) else { return html! {} };
    let n_noise = folded.iter().filter(|version| version.is_noise).count();
    let n_below = folded.len() - n_noise;
    html! {
        tr.fold {
            td.nowrap { time { (minute(*first.time)) @if first.time != last.time { " to " (minute(*last.time)) } } }
            td colspan="4" {
                @if n_noise > 0 { (n_noise) " with noise only or nothing new" }
                @if n_noise > 0 && n_below > 0 { ", " }
                @if n_below > 0 { (n_below) " below the index threshold or without words at hand" }
            }
        }
    }
}
