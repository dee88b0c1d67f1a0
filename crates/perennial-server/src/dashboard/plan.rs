//! `/plan`: the next visits with their reasons, or why a page is visited when it is and not earlier.

use maud::{Markup, html};
use perennial_core::memento::replay_url::escape;
use perennial_core::time::{Span, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::components::{Time, columns, date_time, empty, untrusted};
use super::layout::{Place, Shell, Tab, page_href, without_scheme};
use super::{Problem, Request, known_page};
use crate::summary::Summary;
use perennial_archive::lock::is_being_written;
use perennial_archive::store::{PageKind, PageRow, VisitTarget, parse_site_name};
use perennial_archive::{CrawlRecord, Snapshot, now};
use perennial_engine::html::dates::{counted, day_and_minute, day_long, minute};
use perennial_engine::learn::{ENOUGH_VISITS, NextVisit, VisitDescriber};

const MAX_VISITS: usize = 100;

/// Why a page is visited when it is.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct VisitExplanation {
    pub(crate) url: String,
    /// In one sentence.
    pub(crate) summary: String,
    /// The facts behind it, one sentence each.
    pub(crate) reasons: Vec<String>,
    pub(crate) last_visit: Option<Time>,
    /// The next visit, if it is planned.
    pub(crate) next: Option<NextVisit>,
}

/// The plan of visits.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub(crate) struct PlanView {
    /// Null while the plan is computed for the first time.
    computed: Option<Time>,
    /// When the plan begins.
    at: Time,
    /// Whether a process writes the archive.
    is_running: bool,
    /// URLs that the running crawl fetches now.
    fetching: Vec<String>,
    /// For people.
    budget: String,
    /// Pages in the plan.
    n_followed: u64,
    /// URLs without a page that are tried now and then.
    n_probes: u64,
    n_paused: u64,
    explanation: Option<VisitExplanation>,
    visits: Vec<NextVisit>,
    #[serde(skip)]
    site: String,
    #[serde(skip)]
    url: String,
}

pub(crate) fn load(request: &Request<'_>) -> Result<PlanView, Problem> {
    let text = |name: &str| request.given(name).unwrap_or_default().to_owned();
    let (site, url) = (text("site"), text("url"));
    request.with_summary(|snapshot, summary| {
        let explanation = summary
            .filter(|_| !url.is_empty())
            .map(|summary| explain(snapshot, summary, &url))
            .transpose()?;
        Ok(PlanView {
            computed: summary.and_then(|summary| summary.overview.computed),
            at: summary.map_or_else(now, |summary| summary.at).into(),
            is_running: is_being_written(snapshot.archive().root()),
            fetching: CrawlRecord::of_running(snapshot.archive().root())
                .map(|crawl| crawl.fetching.into_iter().map(|fetch| fetch.url).collect())
                .unwrap_or_default(),
            budget: summary.map(|summary| summary.pace.describe()).unwrap_or_default(),
            n_followed: summary.map_or(0, |summary| summary.scheduler.n_pages() as u64),
            n_probes: summary.map_or(0, |summary| summary.n_probes),
            n_paused: summary.map_or(0, |summary| summary.followed.paused().count() as u64),
            explanation,
            visits: summary.map(|summary| visits_to(summary, &site)).unwrap_or_default(),
            site,
            url,
        })
    })
}

fn visits_to(summary: &Summary, site: &str) -> Vec<NextVisit> {
    let is_of_site = |visit: &&NextVisit| site.is_empty() || parse_site_name(&visit.url) == site;
    summary.visits.iter().filter(is_of_site).take(MAX_VISITS).cloned().collect()
}

pub(crate) fn explain(snapshot: &Snapshot, summary: &Summary, url: &str) -> anyhow::Result<VisitExplanation> {
    let store = snapshot.store();
    let page = known_page(store, url)?;
    let url = page.as_ref().map_or_else(|| url.to_string(), |page| page.url.clone());
    let target = page.as_ref().map(|page| store.target(page.id)).transpose()?.flatten();
    let last_visit = target.as_ref().and_then(|target| target.visited);
    let mut why = VisitExplanation {
        summary: String::new(),
        reasons: Vec::new(),
        last_visit: last_visit.or(page.as_ref().and_then(|page| page.last_seen)).map(Time),
        next: summary.visits.iter().find(|visit| visit.url == url).cloned(),
        url,
    };
    let (Some(page), false) = (page, why.url.is_empty()) else {
        why.summary = "The archive does not know this URL.".to_string();
        let reason =
            "No captured page links to it, and no followed site starts there. Follow it with perennial add.";
        why.reasons.push(reason.to_string());
        return Ok(why);
    };
    if let Some(site) = summary.followed.paused_site(&why.url) {
        why.summary = "The site is paused.".to_string();
        why.reasons.push(format!(
            "{site} is not visited until you run perennial resume, or press Resume on the site's page."
        ));
        return Ok(why);
    }
    add_next(snapshot, summary, &page, target.as_ref(), &mut why)?;
    add_state(snapshot, summary, target.as_ref(), &mut why)?;
    Ok(why)
}

/// Adds the next visit and its reason.
fn add_next(
    snapshot: &Snapshot,
    summary: &Summary,
    page: &PageRow,
    target: Option<&VisitTarget>,
    why: &mut VisitExplanation,
) -> anyhow::Result<()> {
    let day = |at: Timestamp| at.as_millis().div_euclid(Span::from_hours(24).as_millis());
    let was = match why.last_visit.filter(|last| day(**last) == day(summary.at)) {
        Some(last) => format!("The page was visited today, {}. ", date_time(*last)),
        None => String::new(),
    };
    let described = VisitDescriber { store: snapshot.store(), followed: &summary.followed };
    let next =
        why.next.as_ref().and_then(|visit| Some((Timestamp::parse(visit.at.as_deref()?).ok()?, visit)));
    if let Some((at, visit)) = next {
        why.summary = format!("{was}Its next visit is planned for {}.", date_time(at));
        why.reasons.push(sentence(&visit.reason));
        return Ok(());
    }
    let is_page = target.is_some_and(|target| target.kind == PageKind::Page);
    why.summary = match summary.ranks.get(&page.id) {
        Some((place, ranked)) => {
            why.reasons.push(sentence(&described.entry(None, ranked)?.reason));
            let n_pages = summary.scheduler.n_pages();
            format!("{was}No visit is planned yet. By urgency it is page {} of {n_pages}.", place + 1)
        }
        None if target.is_none() => {
            why.reasons.push("It was captured, but does not belong to a followed site.".to_string());
            format!("{was}It is not followed.")
        }
        None if !is_page => {
            why.reasons
                .push("It is fetched together with the pages that use it, or polled as a feed.".to_string());
            format!("{was}It is a subresource or a feed, not a page.")
        }
        None => format!("{was}No visit is planned yet; it would be after the end of the plan."),
    };
    Ok(())
}

/// Adds what else affects the visit: budget, failures, an unavailable host.
fn add_state(
    snapshot: &Snapshot,
    summary: &Summary,
    target: Option<&VisitTarget>,
    why: &mut VisitExplanation,
) -> anyhow::Result<()> {
    if let Some(last) = why.last_visit {
        why.reasons.push(format!("It was last visited on {}.", date_time(*last)));
    }
    if let Some(target) = target.filter(|target| target.n_failures > 0) {
        why.reasons.push(match target.n_failures {
            1 => "The last visit failed.".to_string(),
            n => format!("The last {n} visits failed."),
        });
    }
    let host = target.and_then(|target| snapshot.store().host_states().ok()?.remove(&target.site));
    if let Some(host) = host.filter(|host| host.n_troubles > 0 && host.ready_at > summary.at) {
        why.reasons.push(format!("Its host failed and is not visited before {}.", date_time(host.ready_at)));
    }
    why.reasons.push(match summary.pace.budget {
        Some(_) => format!("The budget, {}, goes to the most urgent pages first.", summary.pace.describe()),
        None => "There is no budget: a page is visited when the expected change is worth it.".to_string(),
    });
    if !is_being_written(snapshot.archive().root()) {
        why.reasons.push(format!(
            "No crawl is running; the plan assumes that it continues on {}.",
            date_time(summary.at)
        ));
    }
    Ok(())
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn instant(visit: &NextVisit) -> Option<Timestamp> {
    visit.at.as_deref().and_then(|at| Timestamp::parse(at).ok())
}

pub(crate) fn render(view: &PlanView, place: Place<'_>) -> Markup {
    let main = html! {
        (head(view, place.base))
        @if let Some(why) = &view.explanation {
            section {
                div.sec { h2 { a.quiet href=(page_href(place.base, &why.url)) { (untrusted(without_scheme(&why.url))) } } }
                p { b { (untrusted(&why.summary)) } }
                dl.belief {
                    @for (number, sentence) in why.reasons.iter().enumerate() {
                        div { dt { @if number == 0 { "Reasons" } } dd { (untrusted(sentence)) } }
                    }
                }
            }
        }
        @if !view.fetching.is_empty() {
            section {
                div.sec { h2 { "Being fetched" } }
                @for url in &view.fetching { p { a href=(page_href(place.base, url)) { (untrusted(without_scheme(url))) } } }
            }
        }
        section {
            div.sec {
                h2 { "Next visits" }
                p.legend { "politeness, slow hosts and new findings can delay these visits" }
            }
            @if view.visits.is_empty() { (no_visits(view)) } @else { (visits(view, place.base)) }
        }
    };
    let json = format!("/api/plan?site={}&url={}", escape(&view.site), escape(&view.url));
    Shell::new(place, Tab::Plan, "Plan", Some(json)).page(&main)
}

fn head(view: &PlanView, base: &str) -> Markup {
    let first = view.visits.iter().find(|visit| visit.at.is_some()).and_then(instant);
    html! {
        div.head {
            div {
                h1 {
                    @match first {
                        Some(first) => { "Next visit on " (day_and_minute(first)) },
                        None if view.computed.is_none() => "Computing the plan",
                        None => "No visit is planned",
                    }
                }
                p.lead {
                    (counted(view.n_followed, "page", "pages")) ", " (view.budget) ", "
                    (counted(view.n_probes, "URL", "URLs")) " without a page tried now and then. "
                    @if view.is_running { "A crawl is running; what it finds changes this plan." }
                    @else { "No crawl is running. The plan assumes that it continues on " (date_time(*view.at)) "." }
                    @if view.n_paused > 0 {
                        " " (counted(view.n_paused, "site is paused", "sites are paused")) " and not in the plan."
                    }
                }
            }
        }
        form.filters action={ (base) "/plan" } aria-label="Filter" {
            label.long {
                "Why is this page not visited? "
                input type="text" inputmode="url" name="url" size="40" value=(view.url) placeholder="https://example.org/";
            }
            (super::components::field("site", "Site", 20, &view.site, "all"))
            button.btn.go { "Show" }
        }
    }
}

fn no_visits(view: &PlanView) -> Markup {
    match (view.computed, view.site.as_str()) {
        (None, _) => {
            empty("Computing the plan", "It is computed from all captures. Reload in a moment.", None)
        }
        (Some(_), "") => empty(
            "No visits",
            "Nothing is followed. Name a site, and Perennial visits it politely until you stop it.",
            Some("perennial add https://example.org/"),
        ),
        _ => empty(
            "No visit of this site in the plan",
            "Its pages are visited later, or are not followed.",
            None,
        ),
    }
}

fn visits(view: &PlanView, base: &str) -> Markup {
    let day = |visit: &NextVisit| instant(visit).map_or("After the end of the plan".to_string(), day_long);
    html! {
        table.t.vers {
            (columns(&["When", "Page and reason", "Probability of change", "Expected importance"]))
            tbody {
                @for visits in view.visits.chunk_by(|a, b| day(a) == day(b)) {
                    @if let Some(first) = visits.first() {
                        tr.day { th colspan="4" scope="colgroup" { (day(first)) } }
                    }
                    @for visit in visits { (row(visit, base)) }
                }
            }
        }
    }
}

fn row(visit: &NextVisit, base: &str) -> Markup {
    let probability = 100.0 * -(-f64::from(visit.expected_changes)).exp_m1();
    let is_known = visit.n_visits >= ENOUGH_VISITS && !visit.feed && !visit.probe;
    html! {
        tr {
            td.nowrap { (instant(visit).map_or("later".to_string(), minute)) }
            td.w {
                a href=(page_href(base, &visit.url)) { (untrusted(without_scheme(&visit.url))) } br;
                span.small.mute { (untrusted(&visit.reason)) }
            }
            td data-l="Probability of change" { @if is_known { (format!("{probability:.0} %")) } @else { "-" } }
            td data-l="Importance" { @if is_known { (format!("{:.3}", visit.expected_importance)) } @else { "-" } }
        }
    }
}
