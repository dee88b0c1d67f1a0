//! A host -> its hours, directories, pages, coherence and feeds; all hosts -> a list.

use std::sync::{Arc, PoisonError};

use axum::body::Body;
use axum::http::Response;
use perennial_core::directory::{
    Node, Rule, Significance, Thresholds, Tree, live_directories, mine, n_pages,
};
use perennial_core::memento::address::Query;
use perennial_core::time::{LocalClock, Span, Timestamp};

use super::super::pages::place_of;
use super::super::problem::Problem;
use super::super::replay::Asking;
use super::super::standing::Standing;
use super::{Form, with};
use crate::html_face::{DirectoryRow, FeedLine, PageRow, SiteView, Sites};
use perennial_archive::Snapshot;
use perennial_archive::settings::Seed;
use perennial_archive::store::{KnownFeed, SitePage, Store, site_of};
use perennial_engine::learn::site_history;
use perennial_engine::quality::coherence_over;

/// Pages of a site that are read.
const MAX_PAGES: usize = 20_000;
/// Changes that the hours are made of, and how far back.
const MAX_CHANGES: usize = 200_000;
const HEAT_SPAN: Span = Span::from_hours(8 * 7 * 24);
/// Directories of a site with more captures are not reckoned while somebody waits.
const MAX_CAPTURES: u64 = 200_000;
/// Passes, directories, instants, feeds and their items that are shown.
const MAX_PASSES: usize = 40;
const MAX_DIRECTORIES: usize = 20;
const N_INSTANTS: i64 = 48;
const MAX_FEEDS: usize = 20;
const MAX_ITEMS: usize = 5;

/// What is reckoned over all looks at a site, kept as long as the standing of its archive.
#[derive(Debug, Default)]
pub struct SiteFigures {
    heat: [[f64; 24]; 7],
    n_changes: u64,
    since: Option<Timestamp>,
    directories: Vec<DirectoryRow>,
    n_passes: usize,
    coherence: Vec<(Timestamp, f64, f64)>,
}

/// `/sites`: all of them.
pub fn sites(asking: &Asking<'_>, form: Form) -> Result<Response<Body>, Problem> {
    with(asking, |snapshot, standing| {
        let followed: Vec<&Seed> = snapshot.archive().settings().seeds.iter().collect();
        let (rows, made) = match standing {
            Some(standing) => (standing.sites.as_slice(), standing.overview.made),
            None => (&[][..], None),
        };
        let page = Sites { place: place_of(asking), rows, made, followed: &followed };
        Ok(form.answer(|| page.html(), || page.json()))
    })
}

/// `/site/<host>`: one.
pub fn site(asking: &Asking<'_>, host: &str, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let is_by_freshness = query.get("order") == Some("fresh");
    let answered = with(asking, |snapshot, standing| {
        let Some(view) = view_of(asking, snapshot, standing, host, is_by_freshness)? else { return Ok(None) };
        Ok(Some(form.answer(|| view.html(), || view.json())))
    })?;
    answered.ok_or_else(|| Problem::not_archived(host))
}

fn view_of<'a>(
    asking: &Asking<'a>,
    snapshot: &'a Snapshot,
    standing: Option<&Standing>,
    host: &'a str,
    is_by_freshness: bool,
) -> anyhow::Result<Option<SiteView<'a>>> {
    let store = snapshot.store();
    let n_captures = store.n_captures_of_site(host)?;
    if n_captures == 0 {
        return Ok(None);
    }
    let mut pages = store.pages_of_site(host, MAX_PAGES)?;
    if is_by_freshness {
        pages.sort_by_key(|page| (std::cmp::Reverse(page.last_seen), page.page));
    }
    let address = pages.first().map(|page| page.url.clone());
    let clock = standing.zip(address).and_then(|(standing, url)| standing.followed.clock_of(&url));
    let clock = clock.unwrap_or_else(LocalClock::utc);
    let figures = figures_of(store, standing, host, &clock, n_captures)?;
    let rate = |page: &SitePage| {
        let belief = standing?.scheduler.belief(page.page)?;
        (belief.n_visits > 0).then(|| belief.changes_per_day())
    };
    let completeness =
        standing.and_then(|standing| standing.sites.iter().find(|site| site.host == host)?.completeness);
    let rows = pages.iter().map(|page| PageRow {
        url: page.url.clone(),
        title: page.title.clone(),
        total: page.total,
        n_captures: page.n_captures,
        last_seen: page.last_seen,
        status: page.status,
        changes_per_day: rate(page),
    });
    let seeds = snapshot.archive().settings().seeds.iter();
    Ok(Some(SiteView {
        followed: seeds.filter(|seed| site_of(seed.scope.seed.as_str()) == host).collect(),
        place: place_of(asking),
        host,
        zone: clock.zone().to_string(),
        n_pages: pages.len() as u64,
        n_captures,
        heat: figures.heat,
        n_changes: figures.n_changes,
        since: figures.since.unwrap_or(Timestamp::EPOCH),
        directories: figures.directories.clone(),
        n_passes: figures.n_passes,
        pages: rows.collect(),
        is_by_freshness,
        completeness,
        coherence: figures.coherence.clone(),
        feeds: feeds_of(store, host)?,
        need: standing.and_then(|standing| standing.need_of(host)).map(|need| {
            (
                need.title.clone(),
                format!("{} {} {}", need.text, need.cure, need.command.as_deref().unwrap_or_default()),
            )
        }),
    }))
}

/// The figures that are kept, or new ones.
fn figures_of(
    store: &Store,
    standing: Option<&Standing>,
    host: &str,
    clock: &LocalClock,
    n_captures: u64,
) -> anyhow::Result<Arc<SiteFigures>> {
    let kept = standing.and_then(|standing| {
        standing.figures.lock().unwrap_or_else(PoisonError::into_inner).get(host).cloned()
    });
    if let Some(kept) = kept {
        return Ok(kept);
    }
    let mut figures = SiteFigures::default();
    let last = store.last_capture()?.unwrap_or(Timestamp::EPOCH);
    let since = (last - HEAT_SPAN).max(store.first_capture()?.unwrap_or(last));
    figures.since = Some(since);
    store.each_change_of_site(host, since, MAX_CHANGES, |time, importance| {
        let local = clock.local(time);
        let (day, hour) = (usize::from(local.day.weekday()), (local.millis_of_day / 3_600_000) as usize);
        if let Some(cell) = figures.heat.get_mut(day).and_then(|hours| hours.get_mut(hour)) {
            *cell += importance;
        }
        figures.n_changes += 1;
    })?;
    if n_captures <= MAX_CAPTURES {
        add_directories(&mut figures, store, host, last)?;
        if let Some(standing) = standing {
            add_coherence(&mut figures, store, standing, host, (since, last))?;
        }
    }
    let figures = Arc::new(figures);
    if let Some(standing) = standing {
        let mut all = standing.figures.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(host.to_string(), figures.clone());
    }
    Ok(figures)
}

/// The directories with most changed pages, in the order of the tree, each with the rule that holds for it.
fn add_directories(
    figures: &mut SiteFigures,
    store: &Store,
    host: &str,
    last: Timestamp,
) -> anyhow::Result<()> {
    let history = site_history(store, host, None, last + Span::from_millis(1))?;
    let delta = history.delta_of_last(MAX_PASSES, Significance::Later);
    let mined = mine(&delta, &Thresholds::default(), false);
    let path = |node: Node| delta.tree().path(node);
    let changed = |node: &Node| delta.degrees(*node).map(|degree| u64::from(degree.n_pages)).sum::<u64>();
    let rule_of = |node: Node| -> Option<String> {
        let rule: &Rule = mined.rules.iter().find(|rule| rule.tail == node && !rule.is_contradicted)?;
        let head: Vec<String> = rule.head.iter().map(|node| path(*node)).collect();
        Some(format!(
            "stands still when {} changes, in {:.0} % of the passes",
            head.join(" and "),
            100.0 * rule.counts.confidence()
        ))
    };
    let mut nodes = live_directories(&delta);
    nodes.sort_by_cached_key(|node| (*node != Tree::ROOT, std::cmp::Reverse(changed(node))));
    nodes.truncate(MAX_DIRECTORIES);
    let row = |node: &Node| {
        let mut degrees = vec![0.0; delta.n_transitions()];
        for degree in delta.degrees(*node) {
            if let Some(place) = degrees.get_mut((degree.transition - delta.oldest()) as usize) {
                *place = f64::from(degree.degree);
            }
        }
        DirectoryRow { path: path(*node), n_pages: n_pages(&delta, *node), degrees, rule: rule_of(*node) }
    };
    figures.directories = nodes.iter().map(row).collect();
    figures.directories.sort_by(|a, b| a.path.cmp(&b.path));
    figures.n_passes = delta.n_transitions();
    Ok(())
}

fn add_coherence(
    figures: &mut SiteFigures,
    store: &Store,
    standing: &Standing,
    host: &str,
    (from, until): (Timestamp, Timestamp),
) -> anyhow::Result<()> {
    let length = (until - from).as_millis();
    let instants: Vec<Timestamp> =
        (0..=N_INSTANTS).map(|n| from + Span::from_millis(length / N_INSTANTS * n)).collect();
    let shares = coherence_over(store, host, &instants, until, &standing.followed)?;
    let point = |(at, share): (&Timestamp, &perennial_core::quality::estimate::CoherenceEstimate)| {
        (*at, share.at_least.weighted, share.at_most.weighted)
    };
    figures.coherence = instants.iter().zip(&shares).map(point).collect();
    Ok(())
}

fn feeds_of(store: &Store, host: &str) -> anyhow::Result<Vec<FeedLine>> {
    let of_site = store.feeds()?.into_iter().filter(|feed| site_of(&feed.url) == host).take(MAX_FEEDS);
    let line = |feed: KnownFeed| -> anyhow::Result<FeedLine> {
        let items = store.items_at(feed.page, Timestamp::from_millis(i64::MAX), MAX_ITEMS)?;
        let latest = items.into_iter().map(|item| {
            let seen = Timestamp::parse(&item.first_seen).unwrap_or(feed.last_read);
            (seen, item.title, item.link)
        });
        Ok(FeedLine {
            title: feed.title.clone(),
            n_items: feed.n_items,
            n_gaps: feed.n_gaps,
            last_read: feed.last_read,
            latest: latest.collect(),
            url: feed.url,
        })
    };
    of_site.map(line).collect()
}
