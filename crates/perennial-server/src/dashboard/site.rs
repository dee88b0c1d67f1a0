//! `/site/<host>`: activity by hour, directories, pages, coherence and feeds of a site.

use std::sync::{Arc, PoisonError};

use maud::{Markup, html};
use perennial_core::directory::{
    DirectoryNode, DirectoryRule, DirectoryTree, Significance, Thresholds, live_directories, mine, n_pages,
};
use perennial_core::memento::replay_url::{escape, unescape};
use perennial_core::time::{LocalClock, Span, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::admin::host_settings;
use super::charts::{Axis, BoundedShare, curve, small_bars};
use super::components::{Range, Time, columns, empty, percent, segments, time, title, untrusted};
use super::layout::{Place, Shell, Tab, page_href, path, site_href, version_href};
use super::overview::{Warning, warning_actions};
use super::{Problem, Request};
use crate::summary::Summary;
use perennial_archive::Snapshot;
use perennial_archive::settings::Seed;
use perennial_archive::store::{SitePage, Store, StoredFeed, parse_site_name};
use perennial_engine::html::dates::{counted, day_and_minute, day_of_year, grouped, weekday_name};
use perennial_engine::learn::{is_rate_known, site_history};
use perennial_engine::quality::coherence_over;

/// Pages of a site that are read.
const MAX_PAGES: usize = 20_000;
/// Pages that are listed.
const MAX_LISTED: usize = 60;
/// Changes in the heat map.
const MAX_CHANGES: usize = 200_000;
/// The time that the heat map covers.
const HEAT_SPAN: Span = Span::from_hours(8 * 7 * 24);
/// For a site with more captures, directories are not computed, because a reader is waiting.
const MAX_CAPTURES: u64 = 200_000;
/// Sweeps of the site from which directories are computed.
const MAX_SWEEPS: usize = 40;
const MAX_DIRECTORIES: usize = 20;
const N_INSTANTS: i64 = 48;
const MAX_FEEDS: usize = 20;
const MAX_ITEMS: usize = 5;

/// Aggregates over all captures of a site, cached with the summary of the archive.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct SiteSummary {
    /// Importance of change by weekday, from Monday, and hour, in the site's time zone.
    heat: [[f64; 24]; 7],
    /// Changes in `heat`.
    n_changes: u64,
    /// The start of `heat`.
    since: Option<Time>,
    /// The directories with the most change, in the order of the tree.
    directories: Vec<SiteDirectory>,
    coherence: Vec<SiteCoherence>,
    /// Sweeps of the site from which the directories were computed.
    #[serde(skip)]
    n_sweeps: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct SiteDirectory {
    path: String,
    /// Including pages in subdirectories.
    n_pages: u64,
    /// The share of its pages that changed between successive sweeps of the site.
    changed_shares: Vec<f64>,
    rule: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct SiteCoherence {
    at: Time,
    at_least: f64,
    at_most: f64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SitePage")]
pub(crate) struct ListedPage {
    url: String,
    title: Option<String>,
    /// Of all its changes together.
    importance: f64,
    n_captures: u64,
    last_seen: Time,
    /// HTTP status of the last capture.
    status: Option<u16>,
    /// As the scheduler expects.
    changes_per_day: Option<f32>,
}

/// An item of a feed.
#[derive(Clone, Debug)]
struct FeedHeadline {
    first_seen: Timestamp,
    title: String,
    link: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SiteFeed")]
pub(crate) struct SiteFeed {
    url: String,
    title: String,
    n_items: u64,
    /// How often items were lost between two reads.
    n_gaps: u64,
    /// When it was last read with new items.
    last_read: Time,
    /// The latest items.
    #[serde(skip)]
    latest: Vec<FeedHeadline>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Site")]
pub(crate) struct SiteView {
    host: String,
    zone: String,
    /// Documents, without subresources.
    n_pages: u64,
    /// Including subresources.
    n_captures: u64,
    #[serde(flatten)]
    summary: SiteSummary,
    completeness: Option<Range>,
    pages: Vec<ListedPage>,
    /// The followed sites on this host.
    followed: Vec<Seed>,
    feeds: Vec<SiteFeed>,
    #[serde(skip)]
    is_by_freshness: bool,
    #[serde(skip)]
    warning: Option<Warning>,
}

/// The host is in the path or in the parameter `host`.
pub(crate) fn load(request: &Request<'_>) -> Result<SiteView, Problem> {
    let host = match request.rest {
        "" => request.needed("host")?.to_owned(),
        host => unescape(host, false),
    };
    let is_by_freshness = request.given("order") == Some("fresh");
    let found = request.with_summary(|snapshot, summary| {
        let store = snapshot.store();
        let n_captures = store.site_capture_count(&host)?;
        if n_captures == 0 {
            return Ok(None);
        }
        let mut pages = store.site_pages(&host, MAX_PAGES)?;
        if is_by_freshness {
            pages.sort_by_key(|page| (std::cmp::Reverse(page.last_seen), page.page));
        }
        let clock =
            summary.zip(pages.first()).and_then(|(summary, page)| summary.followed.local_clock(&page.url));
        let clock = clock.unwrap_or_else(LocalClock::utc);
        let known = summary.and_then(|summary| summary.sites.iter().find(|site| site.host == host));
        let seeds = snapshot.archive().settings().seeds.iter();
        Ok(Some(SiteView {
            followed: seeds
                .filter(|seed| parse_site_name(seed.scope.seed.as_str()) == host)
                .cloned()
                .collect(),
            zone: clock.zone().to_string(),
            n_pages: pages.len() as u64,
            n_captures,
            summary: SiteSummary::clone(&*site_summary(snapshot, summary, &host, &clock, n_captures)?),
            pages: pages.into_iter().map(|page| listed(page, summary)).collect(),
            is_by_freshness,
            completeness: known.and_then(|site| site.completeness),
            feeds: load_feeds(store, &host)?,
            warning: summary.and_then(|summary| summary.warning(&host)).cloned(),
            host: host.clone(),
        }))
    })?;
    found.ok_or_else(|| Problem::not_archived(&host))
}

fn listed(page: SitePage, summary: Option<&Summary>) -> ListedPage {
    let belief = summary.and_then(|summary| summary.scheduler.belief(page.page));
    ListedPage {
        url: page.url,
        title: page.title,
        importance: page.total,
        n_captures: page.n_captures,
        last_seen: page.last_seen.into(),
        status: page.status,
        changes_per_day: belief.filter(is_rate_known).map(|belief| belief.changes_per_day()),
    }
}

/// The cached summary of the site, or a new one.
fn site_summary(
    snapshot: &Snapshot,
    summary: Option<&Summary>,
    host: &str,
    clock: &LocalClock,
    n_captures: u64,
) -> anyhow::Result<Arc<SiteSummary>> {
    let cached = summary.and_then(|summary| {
        summary.by_site.lock().unwrap_or_else(PoisonError::into_inner).get(host).cloned()
    });
    if let Some(cached) = cached {
        return Ok(cached);
    }
    let mut site = SiteSummary::default();
    let store = snapshot.store();
    let last = store.last_capture(snapshot.archive().horizon())?.unwrap_or(Timestamp::EPOCH);
    let since = (last - HEAT_SPAN).max(store.first_capture()?.unwrap_or(last));
    site.since = Some(since.into());
    store.each_site_change(host, since, MAX_CHANGES, |time, importance| {
        let local = clock.local(time);
        let (day, hour) = (usize::from(local.day.weekday()), (local.millis_of_day / 3_600_000) as usize);
        if let Some(cell) = site.heat.get_mut(day).and_then(|hours| hours.get_mut(hour)) {
            *cell += importance;
        }
        site.n_changes += 1;
    })?;
    if n_captures <= MAX_CAPTURES {
        add_directories(&mut site, store, host, last)?;
        if let Some(summary) = summary {
            site.coherence = site_coherence(store, summary, host, (since, last))?;
        }
    }
    let site = Arc::new(site);
    if let Some(summary) = summary {
        let mut all = summary.by_site.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(host.to_string(), site.clone());
    }
    Ok(site)
}

/// Adds the directories with the most changed pages, in the order of the tree, each with its rule.
fn add_directories(
    summary: &mut SiteSummary,
    store: &Store,
    host: &str,
    last: Timestamp,
) -> anyhow::Result<()> {
    let history = site_history(store, host, None, last + Span::from_millis(1))?;
    let delta = history.delta_of_last(MAX_SWEEPS, Significance::Later);
    let mined = mine(&delta, &Thresholds::default(), false);
    let path = |node: DirectoryNode| delta.tree().path(node);
    let changed =
        |node: &DirectoryNode| delta.degrees(*node).map(|degree| u64::from(degree.n_pages)).sum::<u64>();
    let rule = |node: DirectoryNode| -> Option<String> {
        let found: &DirectoryRule =
            mined.rules.iter().find(|rule| rule.tail == node && !rule.is_contradicted)?;
        let head: Vec<String> = found.head.iter().map(|node| path(*node)).collect();
        let share = percent(found.counts.confidence());
        Some(format!("unchanged when {} changes, in {share} % of the visits to the site", head.join(" and ")))
    };
    let mut nodes = live_directories(&delta);
    nodes.sort_by_cached_key(|node| (*node != DirectoryTree::ROOT, std::cmp::Reverse(changed(node))));
    nodes.truncate(MAX_DIRECTORIES);
    let directory = |node: &DirectoryNode| {
        let mut changed_shares = vec![0.0; delta.n_transitions()];
        for degree in delta.degrees(*node) {
            if let Some(share) = changed_shares.get_mut((degree.transition - delta.oldest()) as usize) {
                *share = f64::from(degree.degree);
            }
        }
        SiteDirectory {
            path: path(*node),
            n_pages: n_pages(&delta, *node),
            changed_shares,
            rule: rule(*node),
        }
    };
    summary.directories = nodes.iter().map(directory).collect();
    summary.directories.sort_by(|a, b| a.path.cmp(&b.path));
    summary.n_sweeps = delta.n_transitions();
    Ok(())
}

fn site_coherence(
    store: &Store,
    summary: &Summary,
    host: &str,
    (from, until): (Timestamp, Timestamp),
) -> anyhow::Result<Vec<SiteCoherence>> {
    let length = (until - from).as_millis();
    let instants: Vec<Timestamp> =
        (0..=N_INSTANTS).map(|n| from + Span::from_millis(length / N_INSTANTS * n)).collect();
    let shares = coherence_over(store, host, &instants, until, &summary.followed)?;
    let points = instants.iter().zip(&shares).map(|(at, share)| SiteCoherence {
        at: Time(*at),
        at_least: share.at_least.weighted,
        at_most: share.at_most.weighted,
    });
    Ok(points.collect())
}

fn load_feeds(store: &Store, host: &str) -> anyhow::Result<Vec<SiteFeed>> {
    let feeds = store.feeds()?.into_iter().filter(|feed| parse_site_name(&feed.url) == host).take(MAX_FEEDS);
    let feed = |feed: StoredFeed| -> anyhow::Result<SiteFeed> {
        let items = store.items_at(feed.page, Timestamp::from_millis(i64::MAX), MAX_ITEMS)?;
        let latest = items.into_iter().map(|item| {
            let first_seen = Timestamp::parse(&item.first_seen).unwrap_or(feed.last_read);
            FeedHeadline { first_seen, title: item.title, link: item.link }
        });
        Ok(SiteFeed {
            latest: latest.collect(),
            title: feed.title,
            n_items: feed.n_items,
            n_gaps: feed.n_gaps,
            last_read: feed.last_read.into(),
            url: feed.url,
        })
    };
    feeds.map(feed).collect()
}

pub(crate) fn render(view: &SiteView, place: Place<'_>) -> Markup {
    let back = site_href(place.base, &view.host);
    let main = html! {
        (head(view, place))
        (heat(view))
        (coherence(view, place.base))
        @if !view.summary.directories.is_empty() { (directories(&view.summary)) }
        (pages(view, place.base))
        @if !view.feeds.is_empty() { (feeds(view, place.base)) }
        (host_settings(place, &view.followed, &back))
    };
    Shell::new(place, Tab::Sites, &view.host, Some(format!("/api/site?host={}", escape(&view.host))))
        .page(&main)
}

fn head(view: &SiteView, place: Place<'_>) -> Markup {
    let (base, host) = (place.base, escape(&view.host));
    html! {
        p.crumbs {
            a href={ (base) "/" } { (place.name) } " / " a href={ (base) "/sites" } { "sites" } " / " (untrusted(&view.host))
        }
        div.head {
            div {
                h1 { (untrusted(&view.host)) }
                p.lead {
                    (counted(view.n_pages, "page", "pages")) ", " (counted(view.n_captures, "capture", "captures")) "."
                    @if let Some(Range { at_least, likely, at_most }) = view.completeness {
                        " Completeness is likely " (percent(likely)) " %, between " (percent(at_least)) " and " (percent(at_most)) " %."
                    }
                    " Time zone of the site: " (view.zone) "."
                }
            }
            div.row {
                a.btn href={ (base) "/?since=30d&site=" (host) } { "What changed" }
                a.btn href={ (base) "/plan?site=" (host) } { "Next visits" }
            }
        }
        @if let Some(warning) = &view.warning {
            div.alert style="margin-bottom:24px" {
                p {
                    b { (untrusted(&warning.title)) "." } " "
                    (untrusted(&format!("{} {} {}", warning.text, warning.hint, warning.command.as_deref().unwrap_or_default())))
                }
                (warning_actions(place, &view.host, &site_href(base, &view.host)))
            }
        }
    }
}

/// The legend of a colour scale.
pub(crate) fn ramp() -> Markup {
    html! {
        span { "less" }
        span.ramp { @for step in 1..=4 { i style={ "background:var(--d" (step) ")" } {} } }
    }
}

fn heat(view: &SiteView) -> Markup {
    let SiteSummary { heat, n_changes, since, .. } = &view.summary;
    let top = heat.iter().flatten().copied().fold(0.0, f64::max);
    html! {
        section {
            div.sec {
                h2 { "When it changes" }
                p.legend { (ramp()) span { "importance of change by hour of the week" } }
            }
            @if *n_changes == 0 {
                (empty("No changes yet", "A change is known after the second visit of a page.", None))
            } @else {
                div.heat role="img" aria-label=(busiest(heat)) {
                    @for (day, hours) in heat.iter().enumerate() {
                        span.wd { (weekday_name(day)[..3]) }
                        @for (hour, value) in hours.iter().enumerate() {
                            @let step = ((4.0 * value / top.max(1e-9)).ceil() as u8).clamp(1, 4);
                            i class=[(*value > 0.0).then(|| format!("b{step}"))]
                                title={ (weekday_name(day)) " " (hour) " to " (hour + 1) " h: " (format!("{value:.2}")) } {}
                        }
                    }
                    span {}
                    @for hour in 0..24 { span { @if hour % 6 == 0 { (hour) } } }
                }
                p.cap {
                    (counted(*n_changes, "change", "changes")) " since " (day_of_year(since.map_or(Timestamp::EPOCH, |since| *since)))
                    ", by the time of the visit that found them, in the time zone " (view.zone) ". " (busiest(heat))
                }
            }
        }
    }
}

fn busiest(heat: &[[f64; 24]; 7]) -> String {
    let cells = heat
        .iter()
        .enumerate()
        .flat_map(|(day, hours)| hours.iter().enumerate().map(move |(hour, value)| (day, hour, *value)));
    let most = cells.max_by(|a, b| a.2.total_cmp(&b.2));
    most.map(|(day, hour, _)| format!("Most on {}s, {hour} to {} h.", weekday_name(day), hour + 1))
        .unwrap_or_default()
}

fn coherence(view: &SiteView, base: &str) -> Markup {
    let points = &view.summary.coherence;
    let ends = points.first().zip(points.last()).filter(|(first, last)| first.at != last.at);
    let Some((first, last)) = ends else { return html! {} };
    // The home page of the site, or else its most important page.
    let home = view.pages.iter().find(|page| path(&page.url) == "/").or(view.pages.first());
    let href = |at: Timestamp| home.map(|page| version_href(base, at, &page.url)).unwrap_or_default();
    let axis = Axis { from: *first.at, until: *last.at };
    let bounds = points.iter().map(|point| BoundedShare {
        time: *point.at,
        at_least: point.at_least,
        at_most: point.at_most,
    });
    let intervals: Vec<_> = bounds.collect();
    html! {
        section {
            div.sec { h2 { "Coherence over time" } p.legend { "line: lower bound; shaded: up to the upper bound" } }
            (curve(axis, &intervals, "Coherence of the site over time", href))
            p.cap {
                "Share of the site's content that is consistent if it is replayed as of an instant. On "
                (day_and_minute(*last.at)) " it is " (percent(last.at_least)) " to " (percent(last.at_most))
                " %. Click the chart to open the site at an instant."
            }
        }
    }
}

fn directories(summary: &SiteSummary) -> Markup {
    html! {
        section {
            div.sec {
                h2 { "Directories" }
                p.legend {
                    "share of pages that changed between " (counted(summary.n_sweeps as u64, "visit", "visits"))
                    " to the whole site, and when visits can be skipped"
                }
            }
            table.t.vers.tree {
                (columns(&["Directory", "Pages", "Share changed", "Skipping visits"]))
                tbody {
                    @for row in &summary.directories {
                        @let depth = row.path.trim_matches('/').split('/').filter(|part| !part.is_empty()).count();
                        @let n_changed = row.changed_shares.iter().filter(|share| **share > 0.0).count();
                        tr style={ "--deep:" (depth.saturating_sub(1).min(6)) } {
                            td { (untrusted(&row.path)) }
                            td data-l="Pages" { (grouped(row.n_pages)) }
                            td.w {
                                (small_bars(&row.changed_shares, "Share of pages that changed at each visit"))
                                span.small.mute {
                                    "changed in " (n_changed) " of " (row.changed_shares.len())
                                    ", at most " (percent(row.changed_shares.iter().copied().fold(0.0, f64::max))) " % of its pages"
                                }
                            }
                            td.w data-l="Skipping visits" { @match &row.rule { Some(rule) => (rule), None => span.mute { "no pattern found" } } }
                        }
                    }
                }
            }
        }
    }
}

fn pages(view: &SiteView, base: &str) -> Markup {
    let href = site_href(base, &view.host);
    let choices = [
        ("By importance".to_owned(), view.is_by_freshness.then(|| format!("{href}#pages"))),
        ("By last capture".to_owned(), (!view.is_by_freshness).then(|| format!("{href}?order=fresh#pages"))),
    ];
    html! {
        section #pages {
            div.sec { h2 { "Pages" } p.row { (segments(choices)) } }
            table.t.vers {
                (columns(&["Page", "Total importance", "Changes per day", "Captures", "Last capture"]))
                tbody {
                    @for page in view.pages.iter().take(MAX_LISTED) {
                        tr {
                            td.w {
                                a href=(page_href(base, &page.url)) { (untrusted(path(&page.url))) } br;
                                span.small.mute { (title(page.title.as_deref().filter(|title| !title.is_empty()).unwrap_or("untitled"))) }
                            }
                            td data-l="Total importance" { (format!("{:.2}", page.importance)) }
                            td data-l="Changes per day" { (page.changes_per_day.map_or("-".to_string(), |rate| format!("{rate:.1}"))) }
                            td data-l="Captures" { (grouped(page.n_captures)) }
                            td.nowrap {
                                (time(*page.last_seen))
                                @if let Some(status) = page.status.filter(|status| !(200..300).contains(status) && *status != 304) {
                                    " " b { (status) }
                                }
                            }
                        }
                    }
                }
            }
            @if view.pages.len() > MAX_LISTED {
                p.more.mute {
                    (MAX_LISTED) " of " (grouped(view.pages.len() as u64)) " shown. "
                    a href={ (base) "/web/*/" (view.host) "*" } { "All URLs" }
                }
            }
        }
    }
}

fn feeds(view: &SiteView, base: &str) -> Markup {
    html! {
        section {
            div.sec {
                h2 { "Feeds" }
                p { a href={ (base) "/articles?site=" (escape(&view.host)) } { "Articles and posts" } }
            }
            table.t.vers {
                (columns(&["Feed", "Items", "Items lost", "Last new item", "Latest items"]))
                tbody {
                    @for feed in &view.feeds {
                        tr {
                            td.w {
                                a href=(page_href(base, &feed.url)) { (untrusted(path(&feed.url))) } br;
                                span.small.mute { (title(&feed.title)) }
                            }
                            td data-l="Items" { (grouped(feed.n_items)) }
                            td data-l="Items lost" { @if feed.n_gaps == 0 { "never" } @else { (counted(feed.n_gaps, "time", "times")) } }
                            td.nowrap data-l="Last new item" { (time(*feed.last_read)) }
                            td.w {
                                @for FeedHeadline { first_seen, title: headline, link } in &feed.latest {
                                    p.small {
                                        span.mute { (day_and_minute(*first_seen)) } " "
                                        @match link {
                                            Some(link) => a.quiet href=(page_href(base, link)) { (title(headline)) },
                                            None => (title(headline)),
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
