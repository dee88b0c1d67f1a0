//! `/terms?since=7d`: which terms are new in a span, for people and for programs.

use axum::body::Body;
use axum::http::Response;
use perennial_core::memento::address::Query;
use perennial_core::schedule::amounts;
use perennial_core::time::{Span, Timestamp};

use super::{Form, Problem, place_of};
use crate::html_face::{TermRow, TermsPage};
use crate::replay::Asking;
use perennial_archive::store::Texts;
use perennial_archive::{Snapshot, now};
use perennial_engine::search::{TermsQuestion, new_terms};

/// Terms that are shown.
const MAX_TERMS: usize = 60;

/// The terms.
pub fn terms(asking: &Asking<'_>, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let given = |name: &str| query.get(name).map(str::trim).filter(|value| !value.is_empty());
    let asked =
        asking.served.pool.with(|snapshot| answer(asking, snapshot, given("since"), given("site"), form));
    asked.map_err(|error| Problem::internal(&error))?
}

fn answer(
    asking: &Asking<'_>,
    snapshot: &Snapshot,
    asked_since: Option<&str>,
    site: Option<&str>,
    form: Form,
) -> Result<Response<Body>, Problem> {
    let internal = |error: anyhow::Error| Problem::internal(&error);
    let store = snapshot.store();
    // An archive that is not crawled any more has its last week too.
    let end = store.last_capture().map_err(internal)?.unwrap_or_else(now);
    let since = amounts::parse_time(asked_since.unwrap_or("7d"), end);
    let mut page = TermsPage {
        place: place_of(asking),
        since_asked: asked_since.unwrap_or("7d"),
        site: site.unwrap_or_default(),
        problem: None,
        since: *since.as_ref().unwrap_or(&(end - Span::from_hours(168))),
        rows: &[],
        n_passages: 0,
        n_before: 0,
        is_partial: false,
    };
    let problem = match &since {
        Err(error) => Some(format!("since: {error}.")),
        Ok(_) => None,
    };
    let texts = Texts::open_read(&snapshot.archive().texts_path()).map_err(internal)?;
    let (texts, since): (Texts, Timestamp) = match (problem, texts, since) {
        (None, Some(texts), Ok(since)) => (texts, since),
        (Some(problem), ..) if form == Form::Json => return Err(Problem::bad_request(problem)),
        (Some(problem), ..) => {
            page.problem = Some(problem);
            return Ok(form.answer(|| page.html(), || page.json()));
        }
        _ => {
            page.problem =
                Some("There is no text index of this release: `perennial analyse` makes it.".into());
            return Ok(form.answer(|| page.html(), || page.json()));
        }
    };
    let question = TermsQuestion { since, until: None, host: site, limit: MAX_TERMS };
    let found = new_terms(store, &texts, &question).map_err(internal)?;
    let rows: Vec<TermRow> = found
        .terms
        .into_iter()
        .map(|term| TermRow {
            shown: term.shown,
            n_passages: term.n_passages,
            n_before: term.n_before,
            surprise: term.surprise,
        })
        .collect();
    let (n_passages, n_before, is_partial) = (found.n_passages, found.n_before, found.is_partial);
    let page = TermsPage { rows: &rows, n_passages, n_before, is_partial, ..page };
    Ok(form.answer(|| page.html(), || page.json()))
}
