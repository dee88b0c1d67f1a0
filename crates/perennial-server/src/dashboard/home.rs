//! `/`: which changes matter lately, by page, with the words before and after; and the state of the archive beside them.
//!
//! The query is that of `/changes`, with a span of a day and an importance of 0.1 unless it says otherwise. A span ends with the last
//! capture. Of each page the strongest change is shown, and pages of a directory that changed in the same way stand together.

use std::collections::{BTreeSet, HashMap};

use hyper::http::{HeaderValue, Response, header};
use maud::{Markup, PreEscaped, html};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::change::{ShownChange, directory_of, entry, event_of};
use super::changes::{LEAST, ORDERS, Parameters};
use super::components::{Time, choice, empty, segments};
use super::layout::{Place, Shell, Tab, notices_address};
use super::overview::Overview;
use super::reader_cookie::Looked;
use super::{Form, Problem, Request, respond};
use crate::body::Body;
use crate::pages;
use crate::summary::Summary;
use perennial_archive::store::{ChangeOrder, ChangeRow, Store, site_of};
use perennial_archive::{Snapshot, now};
use perennial_engine::analyse::{AdFilters, ChangeReader};
use perennial_engine::changes::{ChangeQuery, each_match};
use perennial_engine::html::dates::{counted, day_and_minute, day_long, minute};

/// Pages that are shown with their words.
const MAX_PAGES: usize = 25;
/// Pages beside one that changed too, and from how many on they are folded.
const MAX_BESIDE: usize = 40;
const MIN_FOLDED: usize = 3;
/// Sites that can be chosen, the largest; others are reached from their own pages.
const MAX_SITES: usize = 300;

/// The script of home while a crawl runs: it requests the margin again and again.
const LIVE: &str = include_str!("live.js");

/// The home page.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Home")]
pub(crate) struct View {
    /// From when on changes are shown.
    since: Option<Time>,
    /// The least importance of a change that is shown.
    least: f64,
    site: Option<String>,
    last_capture: Option<Time>,
    /// How many pages changed so.
    n_pages: usize,
    /// The strongest change of each, the most important ones.
    #[serde(serialize_with = "with_those_beside")]
    pages: Vec<ShownChange>,
    /// The state of the archive.
    archive: Overview,
    #[serde(skip)]
    parameters: Parameters,
    #[serde(skip)]
    order: ChangeOrder,
    /// All sites, and how many of them have a page that changed so.
    #[serde(skip)]
    sites: Vec<String>,
    #[serde(skip)]
    n_sites: usize,
    /// Up to which capture the reader has seen changes before.
    #[serde(skip)]
    looked: Option<Timestamp>,
}

fn with_those_beside<S: Serializer>(pages: &[ShownChange], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(pages.iter().flat_map(|page| std::iter::once(page).chain(&page.beside)))
}

/// The strongest change of a page, and the number of its others.
type Strongest = (ChangeRow, usize);

/// Responds with the page, and reminds the browser of what it has shown.
pub(crate) fn answer(request: &Request<'_>) -> Result<Response<Body>, Problem> {
    let looked = Looked::of(request.parts, &request.origins().main, now());
    let view = load(request, looked)?;
    let mut response = match request.form {
        Form::Html if view.archive.is_running => {
            pages::scripted(render(&view, request.place()), LIVE, "connect-src 'self'")
        }
        _ => respond(request, &view, render),
    };
    if let (Form::Html, Some(last)) = (request.form, view.last_capture) {
        let origin = &request.origins().main;
        let cookie: Option<HeaderValue> = Looked::cookie(looked, *last, origin, &request.served.base, now());
        response.headers_mut().extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    }
    Ok(response)
}

fn load(request: &Request<'_>, looked: Option<Looked>) -> Result<View, Problem> {
    if request.given("hours").is_some() {
        return Err(Problem::bad_request("hours: write since, such as since=7d."));
    }
    let parameters = Parameters::of(request).or("since", "1d").or("least", "0.1");
    let last = request.with(|snapshot| snapshot.store().last_capture())?;
    let question = ChangeQuery::read(|name| parameters.get(name), last.unwrap_or_else(now));
    let question = question.map_err(Problem::bad_request)?;
    request.with_summary(|snapshot, standing| {
        let store = snapshot.store();
        let rows = strongest(snapshot, &question)?;
        let hosts: BTreeSet<String> = rows.iter().map(|(row, _)| site_of(&row.url)).collect();
        Ok(View {
            since: question.since.map(Time),
            least: question.condition.least_importance,
            site: parameters.get("site").map(str::to_owned),
            last_capture: last.map(Time),
            n_pages: rows.len(),
            n_sites: hosts.len(),
            pages: shown(store, rows, question.order)?,
            archive: overview(request, snapshot, standing)?,
            sites: standing.map(Summary::hosts).unwrap_or_default(),
            looked: looked.map(|looked| looked.before).filter(|before| Some(*before) != last),
            order: question.order,
            parameters,
        })
    })
}

fn overview(
    request: &Request<'_>,
    snapshot: &Snapshot,
    standing: Option<&Summary>,
) -> anyhow::Result<Overview> {
    let Some(standing) = standing else { return Ok(Overview::default()) };
    Ok(Overview { past: request.served.standings.past(snapshot)?, ..standing.overview_now(snapshot)? })
}

/// The matching changes by page, the latest first.
fn strongest(snapshot: &Snapshot, question: &ChangeQuery) -> anyhow::Result<Vec<Strongest>> {
    let mut strongest: HashMap<PageId, Strongest> = HashMap::new();
    each_match(snapshot.archive(), snapshot.store(), question, |row| match strongest.get_mut(&row.page) {
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

/// The most important changes with their words, in the order of the query. If several pages of a directory changed in the same way,
/// they stand under the strongest.
fn shown(store: &Store, rows: Vec<Strongest>, order: ChangeOrder) -> anyhow::Result<Vec<ShownChange>> {
    let importance =
        |group: &[Strongest]| group.first().map_or(0.0, |(row, _)| row.status.reported_importance().get());
    let mut groups = folded(rows);
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
        let mut change = ShownChange::whole(store, &mut reader, row, n_more)?;
        change.beside = rest.take(MAX_BESIDE).map(|(row, n_more)| ShownChange::brief(row, n_more)).collect();
        shown.push(change);
    }
    Ok(shown)
}

/// Changes of one kind in one directory together, if there are several; the others alone.
fn folded(rows: Vec<Strongest>) -> Vec<Vec<Strongest>> {
    let mut places: HashMap<(String, Option<&str>), usize> = HashMap::new();
    let mut groups: Vec<Vec<Strongest>> = Vec::new();
    for (row, n_more) in rows {
        // The front page of a directory stands for itself.
        let place = match row.url.ends_with('/') {
            true => groups.len(),
            false => *places.entry((directory_of(&row.url), event_of(row.status))).or_insert(groups.len()),
        };
        match groups.get_mut(place) {
            Some(group) => group.push((row, n_more)),
            None => groups.push(vec![(row, n_more)]),
        }
    }
    let (folded, single): (Vec<_>, Vec<_>) = groups.into_iter().partition(|group| group.len() >= MIN_FOLDED);
    folded.into_iter().chain(single.into_iter().flatten().map(|row| vec![row])).collect()
}

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
    let base = place.base;
    let n_new = n_new(view);
    let main = html! {
        div.head {
            div {
                h1 { (counted(view.n_pages as u64, "page", "pages")) " changed in ways that matter" }
                (lead(view))
            }
            div.row { a.btn href=(notices_address(base, view.site.as_deref(), Some(view.least))) { "Notify me of these" } }
        }
        (view.archive.first_need())
        div.home {
            div {
                (filters(view, base))
                @for (number, page) in view.pages.iter().enumerate() {
                    @if let Some(looked) = view.looked.filter(|_| number > 0 && n_new == Some(number)) {
                        p.here { "You looked last when " (day_and_minute(looked)) " was the latest" }
                    }
                    (entry(base, page))
                }
                (end(view, base))
            }
            (view.archive.render(place))
        }
        @if view.archive.is_running { script { (PreEscaped(LIVE)) } }
    };
    let json = format!("/api/home?{}", view.parameters.query());
    Shell::new(place, Tab::Changes, "What changed", Some(json)).page(&main)
}

/// How many of the pages changed since the reader looked last, where the latest stand first.
fn n_new(view: &View) -> Option<usize> {
    let looked = view.looked.filter(|_| view.order == ChangeOrder::Latest)?;
    Some(view.pages.iter().take_while(|page| *page.time > looked).count())
}

fn lead(view: &View) -> Markup {
    let Some(last) = view.last_capture else { return html! { p.lead { "Nothing is archived yet." } } };
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
            "; changes of importance " (view.least) " or more. Less, and noise, is folded away."
        }
    }
}

fn filters(view: &View, base: &str) -> Markup {
    let parameters = &view.parameters;
    let since = parameters.get("since").unwrap_or_default();
    let offered = &view.sites[..view.sites.len().min(MAX_SITES)];
    let site = view.site.as_deref();
    // One that was asked for and is not offered stays chosen.
    let other = site.filter(|site| !offered.iter().any(|known| known == site));
    let all = (String::new(), format!("All {}", view.sites.len()), site.is_none());
    let named = offered.iter().map(String::as_str).chain(other);
    let sites = named.map(|name| (name.to_owned(), name.to_owned(), site == Some(name)));
    html! {
        form.filters aria-label="Filter" action={ (base) "/" } {
            (segments(super::SPANS.map(|(span, name)| {
                let address = format!("{base}/?{}", parameters.with("since", span).query());
                (name.to_owned(), (span != since).then_some(address))
            })))
            input type="hidden" name="since" value=(since);
            (choice("site", "Site", std::iter::once(all).chain(sites)))
            (parameters.choice("least", "Importance", &LEAST[1..]))
            (parameters.choice("order", "Order", ORDERS))
            button { "Show" } " " a href={ (base) "/changes" } { "Ask for certain changes" }
            @if let Some(last) = view.last_capture {
                @let day = |at: Timestamp| at.to_rfc3339().chars().take(10).collect::<String>();
                @let (before, until) = (day(*last - Span::from_hours(24)), day(*last));
                " "
                a href={ (base) "/changes?since=" (before) "&until=" (until) "&order=importance" } {
                    "Strongest of the day before, " (before)
                }
            }
        }
    }
}

fn end(view: &View, base: &str) -> Markup {
    let n_shown: usize = view.pages.iter().map(|page| 1 + page.beside.len()).sum();
    match (view.last_capture, view.n_pages, view.n_pages.saturating_sub(n_shown)) {
        (None, ..) => empty(
            "Nothing is followed yet",
            "Name a site and Perennial visits it, politely, for as long as it is let.",
            Some("perennial run https://example.org/"),
        ),
        (Some(_), 0, _) => empty(
            &format!("No change of importance {} in this span", view.least),
            "A longer span or less importance shows more. The page of a site has all its pages.",
            None,
        ),
        (Some(_), _, 0) => html! {},
        (Some(_), _, n) => html! {
            p.more.mute {
                (counted(n as u64, "more page", "more pages"))
                " changed. Choose a site or a higher importance, or ask " a href={ (base) "/sites" } { "the sites" } "."
            }
        },
    }
}
