//! `/page/<url>`, `/page?url=`: versions of a page with their importance, its pattern of change, its next visit.

mod pattern;
mod thumbnails;
mod time_line;
mod versions;

use hyper::http::Response;
use maud::{Markup, PreEscaped, html};
use perennial_core::memento::replay_url::{QueryParameters, escape, latest_time};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::Serialize;

use self::pattern::{
    ActivityDay, Expectation, PagePattern, expectation, load_activity, page_pattern, pattern, site_clock,
};
use self::thumbnails::{Thumbnail, load_thumbnails, thumbnails};
use self::time_line::{calendar, time_line};
use self::versions::{Version, load_versions, version_table};
use super::admin::button;
use super::charts::HATCH;
use super::components::{Time, crumbs, empty, time, title, untrusted};
use super::follow::waiting;
use super::headlines::{Headlines, ItemView, headline_lists};
use super::layout::{
    Place, Shell, Tab, compare_href, host_with_port, notices_href, page_href, path, version_href,
};
use super::{Problem, Request, ResponseFormat, known_page, respond};
use crate::body::Body;
use crate::summary::Summary;
use perennial_archive::Snapshot;
use perennial_archive::store::{AnalysisCounts, AnalysisDay, PageRow, Store};
use perennial_engine::html::dates::{counted, day_of_year, grouped};
use perennial_engine::learn::index_threshold;

/// The span shown in detail.
const WINDOW: Span = Span::from_hours(7 * 24);
/// A shorter history is shown whole.
const WHOLE: Span = Span::from_hours(10 * 24);
/// Captures read within the span.
const MAX_CAPTURES: usize = 2_000;
/// How far back the calendar and the overview reach.
const MAX_DAYS: Span = Span::from_hours(370 * 24);

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Page")]
pub(crate) struct PageView {
    url: String,
    title: Option<String>,
    n_captures: u64,
    first_capture: Option<Time>,
    last_capture: Option<Time>,
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

/// Responds with the page, or with its state while a followed page waits for its first capture.
pub(crate) fn show(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let url = named_url(request)?;
    let is_captured = |store: &Store| Ok(known_page(store, url)?.is_some_and(|page| page.n_captures > 0));
    if request.form == ResponseFormat::Html
        && !request.with(|snapshot| is_captured(snapshot.store()))?
        && let Some(waiting) = waiting(request, url)?
    {
        return Ok(waiting);
    }
    Ok(respond(request, &load(request)?, render))
}

/// The URL of the page is in the path, unencoded, or in the parameter `url`.
fn named_url<'r>(request: &'r Request<'_>) -> Result<&'r str, Problem> {
    if request.rest.is_empty() { request.needed("url") } else { Ok(request.rest) }
}

pub(crate) fn load(request: &Request<'_>) -> Result<PageView, Problem> {
    let url = named_url(request)?;
    let view = request.with_summary(|snapshot, summary| match known_page(snapshot.store(), url)? {
        Some(page) => PageView::load(&page, &request.query, snapshot, summary).map(Some),
        None => Ok(None),
    })?;
    view.ok_or_else(|| Problem::not_archived(url))
}

impl PageView {
    fn load(
        row: &PageRow,
        parameters: &QueryParameters,
        snapshot: &Snapshot,
        summary: Option<&Summary>,
    ) -> anyhow::Result<PageView> {
        let store = snapshot.store();
        let PageRow { id: page, url, n_captures, .. } = row.clone();
        let span = row.first_seen.zip(row.last_seen);
        let window = window(parameters, span);
        let shows_all = parameters.get("show") == Some("all");
        let lines =
            store.analysis_lines(page, window.0, window.1 + Span::from_millis(1), MAX_CAPTURES + 1)?;
        let until = span.map_or(window.1, |(_, last)| last);
        let lists = headline_lists(store, page, window)?;
        let steps_before = store.versions_around(page, window.0 - Span::from_millis(1))?;
        let steps_after = store.versions_around(page, window.1)?;
        let before = steps_before.here.filter(|step| step.is_important).or(steps_before.previous_important);
        // The first of the final captures that found no page.
        let vanished = lines.iter().take_while(|line| !line.status.is_page()).last();
        let parsed = url::Url::parse(&url).ok();
        let AnalysisCounts { n_observations, n_changes, n_unchanged, n_indexed } =
            store.analysis_counts(page)?;
        let item_view = parameters.get("items").and_then(ItemView::parse).unwrap_or_default();
        Ok(PageView {
            vanished: vanished.map(|gone| (gone.time, gone.before)),
            is_followed: parsed
                .is_some_and(|url| snapshot.archive().settings().seeds.of_page(&url).is_some()),
            title: store.page_title(page)?,
            n_captures,
            first_capture: span.map(|(first, _)| first.into()),
            last_capture: span.map(|(_, last)| last.into()),
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

impl PageView {
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

pub(crate) fn render(view: &PageView, place: Place<'_>) -> Markup {
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

fn head(view: &PageView, place: Place<'_>) -> Markup {
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
                        " times unchanged. Last capture " (time(*last)) "."
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
