//! `/changes?...`: a question about changes -> a part of the list, for people and for programs.

use axum::body::Body;
use axum::http::Response;
use perennial_core::memento::address::Query;

use super::words::{event_of, told_entries};
use super::{Form, Problem, place_of};
use crate::html_face::{AskedPage, ChangedPage};
use crate::replay::Asking;
use perennial_archive::store::{ChangeKey, Store};
use perennial_archive::{Snapshot, now};
use perennial_engine::analyse::Filters;
use perennial_engine::changes::{Bounds, Change, Finder, Question};

/// Work for one page: changes that are shown, read with both versions, and looked at.
const BOUNDS: Bounds = Bounds { max_found: 25, max_read: 300, max_rows: 20_000 };
/// Changes that a program may ask for at a time.
const MAX_LIMIT: usize = 200;

/// The names of all parameters of the form.
const NAMES: [&str; 15] = [
    "site", "page", "since", "until", "least", "kind", "appears", "vanishes", "op", "element", "block",
    "text", "selector", "noise", "order",
];

/// The changes for which a question holds.
pub fn changes(asking: &Asking<'_>, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let given = |name: &str| query.get(name).map(str::trim).filter(|value| !value.is_empty());
    let read = || -> Result<(Question, Option<ChangeKey>, usize), String> {
        let question = Question::read(|name| query.get(name), now())?;
        let after =
            given("after").map(str::parse).transpose().map_err(|cure: String| format!("after: {cure}."))?;
        let limit = match given("limit").map(str::parse::<usize>) {
            None => BOUNDS.max_found,
            Some(Ok(limit)) if (1..=MAX_LIMIT).contains(&limit) => limit,
            Some(_) => return Err(format!("limit: write a number from 1 to {MAX_LIMIT}.")),
        };
        Ok((question, after, limit))
    };
    let values: Vec<(&'static str, String)> =
        NAMES.into_iter().filter_map(|name| Some((name, given(name)?.to_owned()))).collect();
    let mut page = AskedPage {
        place: place_of(asking),
        given: &values,
        problem: None,
        changes: &[],
        json: Vec::new(),
        next: None,
        n_rows: 0,
        is_later: given("after").is_some(),
    };
    let (question, after, limit) = match (read(), form) {
        (Ok(read), _) => read,
        (Err(problem), Form::Json) => return Err(Problem::bad_request(problem)),
        (Err(problem), Form::Html) => {
            page.problem = Some(problem);
            return Ok(form.answer(|| page.html(), || serde_json::Value::Null));
        }
    };
    let asked = asking.served.pool.with(|snapshot: &Snapshot| -> anyhow::Result<_> {
        let filters = Filters::built_in();
        let mut finder = Finder::new(snapshot.archive(), snapshot.store(), &filters, &question)?;
        let found = finder.find(after.as_ref(), Bounds { max_found: limit, ..BOUNDS })?;
        page.next = found.next.map(|next| next.to_string());
        page.n_rows = found.n_rows;
        if form == Form::Json {
            page.json = found.changes.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
            return Ok(form.answer(String::new, || page.json()));
        }
        let shown = found.changes.into_iter().map(|change| shown(snapshot.store(), change));
        let shown = shown.collect::<anyhow::Result<Vec<ChangedPage>>>()?;
        let page = AskedPage { changes: &shown, ..page };
        Ok(form.answer(|| page.html(), || serde_json::Value::Null))
    });
    asked.and_then(|answer| answer).map_err(|error| Problem::internal(&error))
}

/// A change with the words that were asked for, and a drawing of the page.
fn shown(store: &Store, change: Change) -> anyhow::Result<ChangedPage> {
    let told = told_entries(change.operations.iter());
    let drawn = store.tree_at(change.page, change.after)?.map(|tree| (tree, told.blocks));
    Ok(ChangedPage {
        event: event_of(change.status),
        time: change.after,
        before: change.before,
        importance: change.importance,
        is_indexed: change.is_indexed,
        lines: told.lines,
        n_operations: told.n_operations,
        part: told.part,
        drawn,
        n_more: 0,
        beside: Vec::new(),
        title: change.title,
        url: change.url,
    })
}
