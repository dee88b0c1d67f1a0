//! The plan -> the next visits with their reasons; an address -> why it is visited when it is and not earlier.

use axum::body::Body;
use axum::http::Response;
use perennial_core::memento::address::Query;
use perennial_core::time::{Span, Timestamp};

use super::super::pages::place_of;
use super::super::problem::Problem;
use super::super::replay::Asking;
use super::super::standing::Standing;
use super::{Form, known_page, with};
use crate::html_face::{ScheduleView, WhyPage};
use perennial_archive::lock::is_being_written;
use perennial_archive::store::{PageKind, Target, site_of};
use perennial_archive::{Snapshot, now};
use perennial_engine::learn::{Described, NextVisit};

/// Visits that are listed.
const MAX_VISITS: usize = 100;

/// `/schedule`, with `site` and `url` if they are given.
pub fn schedule(asking: &Asking<'_>, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let text = |name: &str| query.get(name).unwrap_or_default().trim();
    let (site, url) = (text("site"), text("url"));
    with(asking, |snapshot, standing| {
        let why = match standing.filter(|_| !url.is_empty()) {
            Some(standing) => Some(why(snapshot, standing, url)?),
            None => None,
        };
        let visits = standing.map(|standing| visits_of(standing, site)).unwrap_or_default();
        let view = ScheduleView {
            place: place_of(asking),
            made: standing.and_then(|standing| standing.overview.made),
            at: standing.map_or_else(now, |standing| standing.at),
            is_running: is_being_written(snapshot.archive().root()),
            pace: standing.map(pace_words).unwrap_or_default(),
            site,
            url,
            why,
            visits,
            n_followed: standing.map_or(0, |standing| standing.scheduler.n_pages() as u64),
            n_probes: standing.map_or(0, |standing| standing.n_probes),
            n_paused: standing.map_or(0, |standing| standing.followed.paused().count() as u64),
        };
        Ok(form.answer(|| view.html(), || view.json()))
    })
}

fn pace_words(standing: &Standing) -> String {
    let an_hour = standing.pace.budget.visits_in(Span::from_hours(1));
    format!("{an_hour:.1} fetches an hour ({})", standing.pace.source)
}

fn visits_of(standing: &Standing, site: &str) -> Vec<NextVisit> {
    let is_of_site = |visit: &&NextVisit| site.is_empty() || site_of(&visit.url) == site;
    standing.visits.iter().filter(is_of_site).take(MAX_VISITS).cloned().collect()
}

fn words(at: Timestamp) -> String {
    let text = at.to_rfc3339();
    format!("{} {}", text.get(..10).unwrap_or_default(), text.get(11..16).unwrap_or_default())
}

/// Why a page is visited when it is.
pub(super) fn why(snapshot: &Snapshot, standing: &Standing, url: &str) -> anyhow::Result<WhyPage> {
    let store = snapshot.store();
    let page = known_page(store, url)?;
    let address = page.as_ref().map_or_else(|| url.to_string(), |page| page.url.clone());
    let url = address.as_str();
    let target = page.as_ref().map(|page| store.target(page.id)).transpose()?.flatten();
    let mut told = WhyPage {
        url: url.to_string(),
        answer: String::new(),
        because: Vec::new(),
        last_visit: target
            .as_ref()
            .and_then(|target| target.visited)
            .or(page.as_ref().and_then(|page| page.last_seen)),
        next: standing.visits.iter().find(|visit| visit.url == url).cloned(),
    };
    let (Some(page), false) = (page, url.is_empty()) else {
        told.answer = "This address is not known to the archive.".to_string();
        told.because.push(
            "No captured page links to it, and no site of perennial.toml begins there. perennial add follows it.".to_string(),
        );
        return Ok(told);
    };
    if let Some(site) = standing.followed.paused_site_of(url) {
        told.answer = "Its site is paused.".to_string();
        told.because.push(format!("{site} is not visited for now. perennial resume, or Resume on the page of the site, lets it go on."));
        return Ok(told);
    }
    tell_next(snapshot, standing, &page, target.as_ref(), &mut told)?;
    tell_state(snapshot, standing, target.as_ref(), &mut told)?;
    Ok(told)
}

/// The answer itself.
fn tell_next(
    snapshot: &Snapshot,
    standing: &Standing,
    page: &perennial_archive::store::PageRow,
    target: Option<&Target>,
    told: &mut WhyPage,
) -> anyhow::Result<()> {
    let day_of = |at: Timestamp| at.as_millis().div_euclid(Span::from_hours(24).as_millis());
    let is_today = told.last_visit.is_some_and(|last| day_of(last) == day_of(standing.at));
    let was = match told.last_visit {
        Some(last) if is_today => format!("It was visited on this day, {}. ", words(last)),
        _ => String::new(),
    };
    let described = Described { store: snapshot.store(), followed: &standing.followed };
    let next =
        told.next.as_ref().and_then(|visit| Some((Timestamp::parse(visit.at.as_deref()?).ok()?, visit)));
    if let Some((at, visit)) = next {
        told.answer = format!("{was}Its next visit is planned for {}.", words(at));
        told.because.push(sentence(&visit.reason));
        return Ok(());
    }
    let is_page = target.is_some_and(|target| target.kind == PageKind::Page);
    told.answer = match standing.ranks.get(&page.id) {
        Some((place, ranked)) => {
            told.because.push(sentence(&described.entry(None, ranked)?.reason));
            let n_pages = standing.scheduler.n_pages();
            format!("{was}Not planned yet: it is number {} of {n_pages} pages by urgency.", place + 1)
        }
        None if target.is_none() => {
            told.because.push("Captured, but no site that perennial.toml follows holds it.".to_string());
            format!("{was}It is not followed.")
        }
        None if !is_page => {
            told.because.push("It is fetched with the pages that need it, or polled as a feed.".to_string());
            format!("{was}It is no page of its own.")
        }
        None => format!("{was}Not planned yet: the plan does not reach it."),
    };
    Ok(())
}

/// What else is known: budget, failures, a host that waits.
fn tell_state(
    snapshot: &Snapshot,
    standing: &Standing,
    target: Option<&Target>,
    told: &mut WhyPage,
) -> anyhow::Result<()> {
    let store = snapshot.store();
    if let Some(last) = told.last_visit {
        told.because.push(format!("Last visited {}.", words(last)));
    }
    if let Some(target) = target.filter(|target| target.n_failures > 0) {
        told.because.push(format!("The last visits failed, {} in a row.", target.n_failures));
    }
    let host = target.and_then(|target| store.host_states().ok()?.remove(&target.site));
    if let Some(host) = host.filter(|host| host.n_troubles > 0 && host.ready_at > standing.at) {
        told.because.push(format!("Its host had troubles and is not asked before {}.", words(host.ready_at)));
    }
    let an_hour = standing.pace.budget.visits_in(Span::from_hours(1));
    told.because.push(format!("{an_hour:.1} visits an hour go to the most urgent pages first."));
    if !is_being_written(snapshot.archive().root()) {
        told.because.push(format!(
            "No crawl is running: this is the plan of one that goes on at {}.",
            words(standing.at)
        ));
    }
    Ok(())
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
