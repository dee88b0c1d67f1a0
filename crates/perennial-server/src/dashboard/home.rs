//! `/`: recent important changes by page, with the words before and after, and the state of the archive next to them.
//!
//! The query is that of `/changes`; by default it covers a day and importance from 0.1. A span ends with the last capture. Only the
//! strongest change of each page is shown, and pages of a directory that changed in the same way are grouped.

use std::collections::{BTreeSet, HashMap};

use hyper::http::{HeaderValue, Response, header};
use maud::{Markup, PreEscaped, html};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::change::{ChangeView, directory, entry, event};
use super::changes::{LEAST, ORDERS, Parameters};
use super::components::{Time, choice, empty, segments};
use super::follow::follow_form;
use super::layout::{Place, Shell, Tab, notices_href};
use super::overview::Overview;
use super::reader_cookie::ReaderCookie;
use super::{Problem, Request, ResponseFormat, respond};
use crate::body::Body;
use crate::pages;
use crate::summary::Summary;
use perennial_archive::store::{ChangeOrder, ChangeRow, Store, parse_site_name};
use perennial_archive::{Snapshot, now};
use perennial_engine::analyse::{AdFilters, ChangeReader};
use perennial_engine::changes::{ChangeQuery, each_match};
use perennial_engine::html::dates::{counted, day_and_minute, day_long, day_of_year, minute};

/// Entries with words.
const MAX_PAGES: usize = 25;
/// Pages listed below a similar one.
const MAX_BESIDE: usize = 40;
/// Fewer similar pages are not grouped.
const MIN_GROUP: usize = 3;
/// Sites in the select field, largest first; others have a link on their own pages.
const MAX_SITES: usize = 300;

/// Reloads the sidebar of the home page while a crawl runs.
const LIVE: &str = include_str!("live.js");

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Home")]
pub(crate) struct HomeView {
    /// Only changes since this instant.
    since: Option<Time>,
    /// Only changes of at least this importance.
    least: f64,
    site: Option<String>,
    last_capture: Option<Time>,
    /// Pages with matching changes.
    n_pages: usize,
    /// The strongest change of each page; the most important ones.
    #[serde(serialize_with = "serialize_with_similar")]
    pages: Vec<ChangeView>,
    /// The state of the archive.
    archive: Overview,
    #[serde(skip)]
    parameters: Parameters,
    #[serde(skip)]
    order: ChangeOrder,
    /// Whether no page was visited twice, so that nothing can have changed.
    #[serde(skip)]
    is_too_early: bool,
    /// All sites.
    #[serde(skip)]
    sites: Vec<String>,
    /// Sites with matching changes.
    #[serde(skip)]
    n_sites: usize,
    /// The last capture at the reader's previous session.
    #[serde(skip)]
    last_seen: Option<Timestamp>,
}

fn serialize_with_similar<S: Serializer>(pages: &[ChangeView], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(pages.iter().flat_map(|page| std::iter::once(page).chain(&page.similar)))
}

/// The strongest change of a page, and the number of its other changes.
type Strongest = (ChangeRow, usize);

/// Responds with the page and with a cookie that records what it has shown.
pub(crate) fn show(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let cookie = ReaderCookie::read(request.parts, &request.origins().main, now());
    let view = load(request, cookie)?;
    let mut response = match request.form {
        ResponseFormat::Html if view.archive.is_running => {
            pages::scripted(render(&view, request.place()), LIVE, "connect-src 'self'")
        }
        _ => respond(request, &view, render),
    };
    if let (ResponseFormat::Html, Some(last)) = (request.form, view.last_capture) {
        let origin = &request.origins().main;
        let cookie: Option<HeaderValue> =
            ReaderCookie::next(cookie, *last, origin, &request.served.base, now());
        response.headers_mut().extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    }
    Ok(response)
}

fn load(request: &Request<'_>, cookie: Option<ReaderCookie>) -> Result<HomeView, Problem> {
    if request.given("hours").is_some() {
        return Err(Problem::bad_request("unknown parameter `hours`; write since, such as since=7d"));
    }
    let parameters = Parameters::from_request(request).or("since", "1d").or("least", "0.1");
    let last = request.with(|snapshot| snapshot.store().last_capture(snapshot.archive().horizon()))?;
    let query = ChangeQuery::read(|name| parameters.get(name), last.unwrap_or_else(now));
    let query = query.map_err(Problem::bad_request)?;
    request.with_summary(|snapshot, summary| {
        let store = snapshot.store();
        let rows = strongest(snapshot, &query)?;
        let hosts: BTreeSet<String> = rows.iter().map(|(row, _)| parse_site_name(&row.url)).collect();
        Ok(HomeView {
            since: query.since.map(Time),
            least: query.condition.min_importance,
            site: parameters.get("site").map(str::to_owned),
            last_capture: last.map(Time),
            n_pages: rows.len(),
            is_too_early: rows.is_empty() && last.is_some() && !store.has_second_capture()?,
            n_sites: hosts.len(),
            pages: entries(store, rows, query.order)?,
            archive: overview(request, snapshot, summary)?,
            sites: summary.map(Summary::hosts).unwrap_or_default(),
            last_seen: cookie.map(|cookie| cookie.last_seen).filter(|last_seen| Some(*last_seen) != last),
            order: query.order,
            parameters,
        })
    })
}

fn overview(
    request: &Request<'_>,
    snapshot: &Snapshot,
    summary: Option<&Summary>,
) -> anyhow::Result<Overview> {
    let Some(summary) = summary else { return Ok(Overview::default()) };
    Ok(Overview { past: request.served.summaries.past(snapshot)?, ..summary.overview_now(snapshot)? })
}

/// The strongest matching change of each page, the latest first.
fn strongest(snapshot: &Snapshot, query: &ChangeQuery) -> anyhow::Result<Vec<Strongest>> {
    let mut strongest: HashMap<PageId, Strongest> = HashMap::new();
    each_match(snapshot.archive(), snapshot.store(), query, |row| match strongest.get_mut(&row.page) {
        Some((kept, n_more)) => {
            *n_more += 1;
            if row.status.reported_importance().get() > kept.status.reported_importance().get() {
                *kept = row;
            }
        }
        None => drop(strongest.insert(row.page, (row, 0))),
    })?;
    let mut rows: Vec<Strongest> = strongest.into_values().collect();
    rows.sort_by_key(|(row, _)| (std::cmp::Reverse(row.time), row.page));
    Ok(rows)
}

/// The most important changes with their words, in the order of the query. Pages of a directory that changed in the same way are
/// grouped below the strongest.
fn entries(store: &Store, rows: Vec<Strongest>, order: ChangeOrder) -> anyhow::Result<Vec<ChangeView>> {
    let importance =
        |group: &[Strongest]| group.first().map_or(0.0, |(row, _)| row.status.reported_importance().get());
    let mut groups = grouped_by_directory(rows);
    for group in &mut groups {
        group.sort_by(|(a, _), (b, _)| {
            b.status.reported_importance().get().total_cmp(&a.status.reported_importance().get())
        });
    }
    groups.sort_by(|a, b| importance(b).total_cmp(&importance(a)));
    groups.truncate(MAX_PAGES);
    let time = |group: &Vec<Strongest>| group.first().map(|(row, _)| row.time);
    match order {
        ChangeOrder::Latest => groups.sort_by_key(|group| std::cmp::Reverse(time(group))),
        ChangeOrder::Oldest => groups.sort_by_key(time),
        ChangeOrder::Strongest => {}
    }
    let filters = AdFilters::built_in();
    let mut reader = ChangeReader::new(store, &filters);
    let mut shown = Vec::with_capacity(groups.len());
    for group in groups {
        let mut rest = group.into_iter();
        let Some((row, n_more)) = rest.next() else { continue };
        let mut change = ChangeView::with_words(store, &mut reader, row, n_more)?;
        change.similar = rest.take(MAX_BESIDE).map(|(row, n_more)| ChangeView::brief(row, n_more)).collect();
        shown.push(change);
    }
    Ok(shown)
}

/// Groups changes of the same kind in the same directory; small groups are split again.
fn grouped_by_directory(rows: Vec<Strongest>) -> Vec<Vec<Strongest>> {
    let mut places: HashMap<(String, Option<&str>), usize> = HashMap::new();
    let mut groups: Vec<Vec<Strongest>> = Vec::new();
    for (row, n_more) in rows {
        // The index page of a directory is not grouped.
        let place = match row.url.ends_with('/') {
            true => groups.len(),
            false => *places.entry((directory(&row.url), event(row.status))).or_insert(groups.len()),
        };
        match groups.get_mut(place) {
            Some(group) => group.push((row, n_more)),
            None => groups.push(vec![(row, n_more)]),
        }
    }
    let (large, small): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.len() >= MIN_GROUP);
    large.into_iter().chain(small.into_iter().flatten().map(|row| vec![row])).collect()
}

pub(crate) fn render(view: &HomeView, place: Place<'_>) -> Markup {
    let base = place.base;
    let n_new = n_new(view);
    let main = html! {
        div.head {
            div {
                @if view.is_too_early {
                    h1 { "Too early to tell what changes" }
                    p.lead { (too_early(view)) }
                } @else {
                    h1 { (counted(view.n_pages as u64, "important page change", "important page changes")) }
                    (lead(view))
                }
            }
            div.row { @if view.last_capture.is_some() { (follow_form(place, false)) } a.btn href=(notices_href(base, view.site.as_deref(), Some(view.least))) { "Notify me of changes like these" } }
        }
        (view.archive.first_warning())
        div.home {
            div {
                (filters(view, base))
                @for (number, page) in view.pages.iter().enumerate() {
                    @if let Some(last_seen) = view.last_seen.filter(|_| number > 0 && n_new == Some(number)) {
                        p.here { "Changes above are new since your last visit, when the latest capture was of " (day_and_minute(last_seen)) "." }
                    }
                    (entry(base, page))
                }
                (end(view, place))
            }
            (view.archive.render(place))
        }
        @if view.archive.is_running { script { (PreEscaped(LIVE)) } }
    };
    let json = format!("/api/home?{}", view.parameters.query());
    Shell::new(place, Tab::Changes, "What changed", Some(json)).page(&main)
}

/// How many pages changed since the reader's previous session, if the latest changes come first.
fn n_new(view: &HomeView) -> Option<usize> {
    let last_seen = view.last_seen.filter(|_| view.order == ChangeOrder::Latest)?;
    Some(view.pages.iter().take_while(|page| *page.time > last_seen).count())
}

fn lead(view: &HomeView) -> Markup {
    let Some(last) = view.last_capture else { return html! { p.lead { "The archive is empty." } } };
    let since = view.parameters.get("since").unwrap_or_default();
    let span = super::SPANS.iter().find(|(known, _)| *known == since);
    html! {
        p.lead {
            @match (span, view.since) {
                (Some((_, span)), _) => { "In the " (span) " up to " },
                (None, Some(since)) => { "From " (day_and_minute(*since)) " up to " },
                (None, None) => "Up to ",
            }
            (day_long(*last)) ", " (minute(*last)) ", on " (view.n_sites) " of "
            (counted(view.sites.len() as u64, "site", "sites"))
            "; importance " (view.least) " or more. Less important changes are hidden."
        }
    }
}

/// Before a page was visited twice: what happens next.
fn too_early(view: &HomeView) -> &'static str {
    match view.archive.is_running {
        true => {
            "No page was visited twice yet. The crawl is running: first it captures all pages that it finds, then it visits them again. Plan shows when."
        }
        false => "No page was visited twice yet, and no crawl is running. Start one with perennial run.",
    }
}

fn filters(view: &HomeView, base: &str) -> Markup {
    let parameters = &view.parameters;
    let since = parameters.get("since").unwrap_or_default();
    let offered = &view.sites[..view.sites.len().min(MAX_SITES)];
    let site = view.site.as_deref();
    // A site that is not offered remains chosen.
    let other = site.filter(|site| !offered.iter().any(|known| known == site));
    let all = (String::new(), format!("All {}", view.sites.len()), site.is_none());
    let named = offered.iter().map(String::as_str).chain(other);
    let sites = named.map(|name| (name.to_owned(), name.to_owned(), site == Some(name)));
    html! {
        form.filters aria-label="Filter" action={ (base) "/" } {
            (segments(super::SPANS.map(|(span, name)| {
                let href = format!("{base}/?{}", parameters.with("since", span).query());
                (name.to_owned(), (span != since).then_some(href))
            })))
            input type="hidden" name="since" value=(since);
            (choice("site", "Site", std::iter::once(all).chain(sites)))
            (parameters.choice("least", "Importance", &LEAST[1..]))
            (parameters.choice("order", "Order", ORDERS))
            button { "Show" } " " a href={ (base) "/changes" } { "Search all changes" }
            @if let Some(last) = view.last_capture {
                @let date = |at: Timestamp| at.to_rfc3339().chars().take(10).collect::<String>();
                @let (before, until) = (date(*last - Span::from_hours(24)), date(*last));
                " "
                a href={ (base) "/changes?since=" (before) "&until=" (until) "&order=importance" } {
                    "Most important of the day before, " (day_of_year(*last - Span::from_hours(24)))
                }
            }
        }
    }
}

fn end(view: &HomeView, place: Place<'_>) -> Markup {
    let base = place.base;
    let n_shown: usize = view.pages.iter().map(|page| 1 + page.similar.len()).sum();
    match (view.last_capture, view.n_pages, view.n_pages.saturating_sub(n_shown)) {
        (None, ..) => html! {
            (empty(
                "Nothing is captured yet",
                "Name a page or a site, and Perennial visits it politely until you stop it.",
                Some("perennial run https://example.org/"),
            ))
            (follow_form(place, true))
        },
        (Some(_), 0, _) if view.is_too_early => html! {},
        (Some(_), 0, _) => empty(
            &format!("No change of importance {} or more in this span", view.least),
            "Choose a longer span or a lower importance. The page of each site lists all its pages.",
            None,
        ),
        (Some(_), _, 0) => html! {},
        (Some(_), _, n) => html! {
            p.more.mute {
                (counted(n as u64, "more page", "more pages"))
                " changed. Choose a site or a higher importance, or see " a href={ (base) "/sites" } { "all sites" } "."
            }
        },
    }
}
