//! `/schedule`: the next visits with their reasons, or why a page is visited when it is and not earlier.

use maud::{Markup, html};
use perennial_core::memento::address::escape;
use perennial_core::time::{Span, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::components::{Time, columns, empty, short, untrusted};
use super::layout::{Place, Shell, Tab, page_address, without_scheme};
use super::{Problem, Request, known_page};
use crate::summary::Summary;
use perennial_archive::lock::is_being_written;
use perennial_archive::store::{PageKind, PageRow, Target, site_of};
use perennial_archive::{Snapshot, now};
use perennial_engine::html::dates::{counted, day_and_minute, day_long, minute};
use perennial_engine::learn::{NextVisit, VisitDescriber};

/// Visits that are listed.
const MAX_VISITS: usize = 100;

/// Why a page is visited when it is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Why {
    pub(crate) url: String,
    /// The answer in one sentence.
    pub(crate) answer: String,
    /// What it follows from, one sentence each.
    pub(crate) because: Vec<String>,
    pub(crate) last_visit: Option<Time>,
    /// Its next visit, if the plan has one.
    pub(crate) next: Option<NextVisit>,
}

/// The page about the schedule.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Schedule")]
pub(crate) struct View {
    /// When the plan was made; null while it is being made.
    made: Option<Time>,
    /// Where the plan begins.
    at: Time,
    /// Whether a process writes the archive.
    is_running: bool,
    /// The budget in words.
    budget: String,
    /// Pages that are followed.
    n_followed: u64,
    /// URLs without a page that are looked at now and then.
    n_probes: u64,
    /// Sites that are paused.
    n_paused: u64,
    why: Option<Why>,
    visits: Vec<NextVisit>,
    #[serde(skip)]
    site: String,
    #[serde(skip)]
    url: String,
}

pub(crate) fn load(request: &Request<'_>) -> Result<View, Problem> {
    let text = |name: &str| request.given(name).unwrap_or_default().to_owned();
    let (site, url) = (text("site"), text("url"));
    request.with_summary(|snapshot, standing| {
        let why =
            standing.filter(|_| !url.is_empty()).map(|standing| why(snapshot, standing, &url)).transpose()?;
        Ok(View {
            made: standing.and_then(|standing| standing.overview.made),
            at: standing.map_or_else(now, |standing| standing.at).into(),
            is_running: is_being_written(snapshot.archive().root()),
            budget: standing.map(budget_words).unwrap_or_default(),
            n_followed: standing.map_or(0, |standing| standing.scheduler.n_pages() as u64),
            n_probes: standing.map_or(0, |standing| standing.n_probes),
            n_paused: standing.map_or(0, |standing| standing.followed.paused().count() as u64),
            why,
            visits: standing.map(|standing| visits_of(standing, &site)).unwrap_or_default(),
            site,
            url,
        })
    })
}

fn budget_words(standing: &Summary) -> String {
    let an_hour = standing.pace.budget.visits_in(Span::from_hours(1));
    format!("{an_hour:.1} fetches an hour ({})", standing.pace.source)
}

fn visits_of(standing: &Summary, site: &str) -> Vec<NextVisit> {
    let is_of_site = |visit: &&NextVisit| site.is_empty() || site_of(&visit.url) == site;
    standing.visits.iter().filter(is_of_site).take(MAX_VISITS).cloned().collect()
}

/// Why a page is visited when it is.
pub(crate) fn why(snapshot: &Snapshot, standing: &Summary, url: &str) -> anyhow::Result<Why> {
    let store = snapshot.store();
    let page = known_page(store, url)?;
    let url = page.as_ref().map_or_else(|| url.to_string(), |page| page.url.clone());
    let target = page.as_ref().map(|page| store.target(page.id)).transpose()?.flatten();
    let last_visit = target.as_ref().and_then(|target| target.visited);
    let mut why = Why {
        answer: String::new(),
        because: Vec::new(),
        last_visit: last_visit.or(page.as_ref().and_then(|page| page.last_seen)).map(Time),
        next: standing.visits.iter().find(|visit| visit.url == url).cloned(),
        url,
    };
    let (Some(page), false) = (page, why.url.is_empty()) else {
        why.answer = "This address is not known to the archive.".to_string();
        why.because.push(
            "No captured page links to it, and no site of perennial.toml begins there. perennial add follows it.".to_string(),
        );
        return Ok(why);
    };
    if let Some(site) = standing.followed.paused_site(&why.url) {
        why.answer = "Its site is paused.".to_string();
        why.because.push(format!("{site} is not visited for now. perennial resume, or Resume on the page of the site, lets it go on."));
        return Ok(why);
    }
    add_next(snapshot, standing, &page, target.as_ref(), &mut why)?;
    add_state(snapshot, standing, target.as_ref(), &mut why)?;
    Ok(why)
}

/// The answer itself.
fn add_next(
    snapshot: &Snapshot,
    standing: &Summary,
    page: &PageRow,
    target: Option<&Target>,
    why: &mut Why,
) -> anyhow::Result<()> {
    let day_of = |at: Timestamp| at.as_millis().div_euclid(Span::from_hours(24).as_millis());
    let was = match why.last_visit.filter(|last| day_of(**last) == day_of(standing.at)) {
        Some(last) => format!("It was visited on this day, {}. ", short(*last)),
        None => String::new(),
    };
    let described = VisitDescriber { store: snapshot.store(), followed: &standing.followed };
    let next =
        why.next.as_ref().and_then(|visit| Some((Timestamp::parse(visit.at.as_deref()?).ok()?, visit)));
    if let Some((at, visit)) = next {
        why.answer = format!("{was}Its next visit is planned for {}.", short(at));
        why.because.push(sentence(&visit.reason));
        return Ok(());
    }
    let is_page = target.is_some_and(|target| target.kind == PageKind::Page);
    why.answer = match standing.ranks.get(&page.id) {
        Some((place, ranked)) => {
            why.because.push(sentence(&described.entry(None, ranked)?.reason));
            let n_pages = standing.scheduler.n_pages();
            format!("{was}Not planned yet: it is number {} of {n_pages} pages by urgency.", place + 1)
        }
        None if target.is_none() => {
            why.because.push("Captured, but no site that perennial.toml follows holds it.".to_string());
            format!("{was}It is not followed.")
        }
        None if !is_page => {
            why.because.push("It is fetched with the pages that need it, or polled as a feed.".to_string());
            format!("{was}It is no page of its own.")
        }
        None => format!("{was}Not planned yet: the plan does not reach it."),
    };
    Ok(())
}

/// What else is known: budget, failures, a host that waits.
fn add_state(
    snapshot: &Snapshot,
    standing: &Summary,
    target: Option<&Target>,
    why: &mut Why,
) -> anyhow::Result<()> {
    if let Some(last) = why.last_visit {
        why.because.push(format!("Last visited {}.", short(*last)));
    }
    if let Some(target) = target.filter(|target| target.n_failures > 0) {
        why.because.push(format!("The last visits failed, {} in a row.", target.n_failures));
    }
    let host = target.and_then(|target| snapshot.store().host_states().ok()?.remove(&target.site));
    if let Some(host) = host.filter(|host| host.n_troubles > 0 && host.ready_at > standing.at) {
        why.because.push(format!("Its host had troubles and is not asked before {}.", short(host.ready_at)));
    }
    let an_hour = standing.pace.budget.visits_in(Span::from_hours(1));
    why.because.push(format!("{an_hour:.1} visits an hour go to the most urgent pages first."));
    if !is_being_written(snapshot.archive().root()) {
        why.because.push(format!(
            "No crawl is running: this is the plan of one that goes on at {}.",
            short(standing.at)
        ));
    }
    Ok(())
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn instant_of(visit: &NextVisit) -> Option<Timestamp> {
    visit.at.as_deref().and_then(|at| Timestamp::parse(at).ok())
}

pub(crate) fn render(view: &View, place: Place<'_>) -> Markup {
    let main = html! {
        (head(view, place.base))
        @if let Some(why) = &view.why {
            section {
                div.sec { h2 { a.quiet href=(page_address(place.base, &why.url)) { (untrusted(without_scheme(&why.url))) } } }
                p { b { (untrusted(&why.answer)) } }
                dl.belief {
                    @for (number, sentence) in why.because.iter().enumerate() {
                        div { dt { @if number == 0 { "Because" } } dd { (untrusted(sentence)) } }
                    }
                }
            }
        }
        section {
            div.sec {
                h2 { "Next visits" }
                p.legend { "times of the plan: politeness, a slow host and what is found until then may delay them" }
            }
            @if view.visits.is_empty() { (nothing(view)) } @else { (visits(view, place.base)) }
        }
    };
    let json = format!("/api/schedule?site={}&url={}", escape(&view.site), escape(&view.url));
    Shell::new(place, Tab::Schedule, "Schedule", Some(json)).page(&main)
}

fn head(view: &View, base: &str) -> Markup {
    let first = view.visits.iter().find(|visit| visit.at.is_some()).and_then(instant_of);
    html! {
        div.head {
            div {
                h1 {
                    @match first {
                        Some(first) => { "The next visit is due " (day_and_minute(first)) },
                        None if view.made.is_none() => "The plan is being made",
                        None => "No visit is planned",
                    }
                }
                p.lead {
                    (counted(view.n_followed, "page", "pages")) ", " (view.budget) ", "
                    (counted(view.n_probes, "address", "addresses")) " without a page looked at now and then. "
                    @if view.is_running { "A process writes the archive: what it finds changes this plan." }
                    @else { "No crawl is running. This is the plan of one that goes on at " (short(*view.at)) "." }
                    @if view.n_paused > 0 {
                        " " (counted(view.n_paused, "site is paused", "sites are paused")) ": no visit of them is planned."
                    }
                }
            }
        }
        form.filters action={ (base) "/schedule" } aria-label="Filter" {
            label.long {
                "Why is this page not visited? "
                input type="text" inputmode="url" name="url" size="40" value=(view.url) placeholder="https://example.org/";
            }
            (super::components::field("site", "Site", 20, &view.site, "all"))
            button.btn.go { "Show" }
        }
    }
}

fn nothing(view: &View) -> Markup {
    match (view.made, view.site.as_str()) {
        (None, _) => {
            empty("The plan is being made", "It is learned from all captures. Reload in a moment.", None)
        }
        (Some(_), "") => empty(
            "Nothing to do",
            "No page is followed. Name a site and Perennial visits it, politely, for as long as it is let.",
            Some("perennial add https://example.org/"),
        ),
        _ => empty(
            "No visit of this site within the plan",
            "Its pages come later, or none of them is followed.",
            None,
        ),
    }
}

fn visits(view: &View, base: &str) -> Markup {
    let day_of =
        |visit: &NextVisit| instant_of(visit).map_or("Later than the plan reaches".to_string(), day_long);
    html! {
        table.t.vers {
            (columns(&["When", "Page and reason", "Rng of change", "Importance expected"]))
            tbody {
                @for visits in view.visits.chunk_by(|a, b| day_of(a) == day_of(b)) {
                    @if let Some(first) = visits.first() {
                        tr.day { th colspan="4" scope="colgroup" { (day_of(first)) } }
                    }
                    @for visit in visits { (row(visit, base)) }
                }
            }
        }
    }
}

fn row(visit: &NextVisit, base: &str) -> Markup {
    let rng = 100.0 * -(-f64::from(visit.expected_changes)).exp_m1();
    let is_known = visit.n_visits > 0 && !visit.feed && !visit.probe;
    html! {
        tr {
            td.nowrap { (instant_of(visit).map_or("later".to_string(), minute)) }
            td.w {
                a href=(page_address(base, &visit.url)) { (untrusted(without_scheme(&visit.url))) } br;
                span.small.mute { (untrusted(&visit.reason)) }
            }
            td data-l="Rng of change" { @if is_known { (format!("{rng:.0} %")) } @else { "-" } }
            td data-l="Importance" { @if is_known { (format!("{:.3}", visit.expected_importance)) } @else { "-" } }
        }
    }
}
