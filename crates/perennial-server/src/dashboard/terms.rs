//! `/terms?since=7d`: terms that are new or more frequent in a span, each linked to a search for it.

use maud::{Markup, html};
use perennial_core::schedule::units;
use perennial_core::time::Span;
use schemars::JsonSchema;
use serde::Serialize;

use super::components::{Time, alert, empty, field, segments, untrusted};
use super::layout::{Place, Shell, Tab, query};
use super::{Problem, Request, ResponseFormat, SPANS};
use perennial_archive::store::Texts;
use perennial_archive::{Snapshot, now};
use perennial_engine::html::dates::{counted, day_and_minute, grouped};
use perennial_engine::search::{TermsQuery, new_terms};

const MAX_TERMS: usize = 60;

#[derive(Serialize, JsonSchema)]
pub(crate) struct Term {
    /// As first seen.
    term: String,
    /// Passages of the span that contain it.
    n_passages: u64,
    /// Earlier passages that contain it.
    n_before: u64,
    /// The log-likelihood ratio.
    surprise: f64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Terms")]
pub(crate) struct TermsView {
    /// The start of the span.
    since: Time,
    /// Passages that appeared in the span.
    n_passages: u64,
    /// Earlier passages.
    n_before: u64,
    /// Whether only the latest passages of the span were read.
    is_partial: bool,
    terms: Vec<Term>,
    #[serde(skip)]
    since_given: String,
    #[serde(skip)]
    site: Option<String>,
    #[serde(skip)]
    problem: Option<String>,
}

pub(crate) fn load(request: &Request<'_>) -> Result<TermsView, Problem> {
    let (since, site) = (request.given("since").unwrap_or("7d"), request.given("site"));
    let view = request.with(|snapshot| read(snapshot, since, site))?;
    match (&view.problem, request.form) {
        (Some(problem), ResponseFormat::Json) if problem.starts_with("since: ") => {
            Err(Problem::bad_request(problem))
        }
        _ => Ok(view),
    }
}

fn read(snapshot: &Snapshot, since_given: &str, site: Option<&str>) -> anyhow::Result<TermsView> {
    let store = snapshot.store();
    // The span ends with the last capture, so an archive that is no longer crawled still has terms.
    let end = store.last_capture(snapshot.archive().horizon())?.unwrap_or_else(now);
    let since = units::parse_time(since_given, end);
    let mut view = TermsView {
        since: since.as_ref().map_or(end - Span::from_hours(168), |since| *since).into(),
        n_passages: 0,
        n_before: 0,
        is_partial: false,
        terms: Vec::new(),
        since_given: since_given.to_owned(),
        site: site.map(str::to_owned),
        problem: since.err().map(|error| format!("since: {error}")),
    };
    if view.problem.is_some() {
        return Ok(view);
    }
    let Some(texts) = Texts::open_read(&snapshot.archive().texts_path())? else {
        view.problem = Some("No text index; run `perennial analyse` to build it.".into());
        return Ok(view);
    };
    let query = TermsQuery { since: *view.since, until: None, host: site, limit: MAX_TERMS };
    let found = new_terms(store, &texts, &query)?;
    (view.n_passages, view.n_before, view.is_partial) = (found.n_passages, found.n_before, found.is_partial);
    view.terms = found
        .terms
        .into_iter()
        .map(|term| Term {
            term: term.shown,
            n_passages: term.n_passages,
            n_before: term.n_before,
            surprise: term.surprise,
        })
        .collect();
    Ok(view)
}

pub(crate) fn render(view: &TermsView, place: Place<'_>) -> Markup {
    let main = html! {
        div.head {
            div {
                h1 {
                    @match view.terms.len() {
                        0 => "No new terms",
                        n => { (counted(n as u64, "term", "terms")) " new or more frequent" },
                    }
                }
                @if view.problem.is_none() {
                    p.lead {
                        "In " (counted(view.n_passages, "passage", "passages")) " that appeared since "
                        (day_and_minute(*view.since)) @if view.is_partial { " (only the latest)" }
                        ", compared with " (grouped(view.n_before)) " earlier ones."
                    }
                }
            }
        }
        (form(view, place.base))
        @match &view.problem {
            Some(problem) => (alert(problem)),
            None if view.terms.is_empty() => (empty(
                "No term became more frequent",
                "Try a longer span. The first capture of a site does not count, because there is nothing to compare it with.",
                None,
            )),
            None => (table(view, place.base)),
        }
    };
    let json = format!("/api/terms?{}", terms_query(view, &view.since_given));
    Shell::new(place, Tab::Search, "New terms", Some(json)).page(&main)
}

fn terms_query(view: &TermsView, since: &str) -> String {
    query(&[("since", Some(since)), ("site", view.site.as_deref())])
}

fn form(view: &TermsView, base: &str) -> Markup {
    html! {
        form.filters aria-label="Span" action={ (base) "/terms" } {
            (segments(SPANS.map(|(since, name)| {
                let href = format!("{base}/terms?{}", terms_query(view, since));
                (name.to_owned(), (since != view.since_given).then_some(href))
            })))
            (field("since", "Since", 12, &view.since_given, "2026-01-28"))
            (field("site", "Site", 16, view.site.as_deref().unwrap_or_default(), "all"))
            button { "Show" }
        }
    }
}

fn table(view: &TermsView, base: &str) -> Markup {
    html! {
        table.t {
            thead {
                tr {
                    th scope="col" { "Term" } th.r scope="col" { "Passages" } th.r scope="col" { "Before" } th.r scope="col" { "Surprise (log-likelihood)" }
                }
            }
            tbody {
                @for term in &view.terms {
                    @let search = query(&[("q", Some(&term.term)), ("phrase", Some("1")), ("site", view.site.as_deref())]);
                    tr {
                        td.w { a href={ (base) "/search?" (search) } { (untrusted(&term.term)) } }
                        td.r { (grouped(term.n_passages)) }
                        td.r { @if term.n_before == 0 { "new" } @else { (grouped(term.n_before)) } }
                        td.r { (format!("{:.1}", term.surprise)) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use perennial_core::time::Timestamp;

    use super::*;

    #[test]
    fn terms_are_escaped_and_linked_to_the_search() {
        let hostile = "<script>alert(1)</script>".to_owned();
        let view = TermsView {
            since: Timestamp::EPOCH.into(),
            n_passages: 9,
            n_before: 1_000,
            is_partial: false,
            terms: vec![Term { term: hostile.clone(), n_passages: 3, n_before: 0, surprise: 12.3 }],
            since_given: "7d".to_owned(),
            site: Some(hostile),
            problem: None,
        };
        let html = render(&view, Place { base: "/b", ..Place::default() }).0;
        assert!(!html.contains("<script") && html.contains("/b/search?q=%3Cscript%3E"), "{html}");
        assert!(html.contains("1 term new"), "{html}");
    }
}
