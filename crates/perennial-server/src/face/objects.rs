//! `/objects`, `/object?url=`: the articles and posts that feeds announced, and the history of one.

use axum::body::Body;
use axum::http::Response;
use perennial_core::article::version::{Run, edits};
use perennial_core::memento::address::Query;
use perennial_core::time::Timestamp;

use super::{Form, Problem, known_page, place_of};
use crate::html_face::{EditWords, ObjectPage, ObjectRow, ObjectStep, ObjectsPage};
use crate::replay::Asking;
use perennial_archive::SharedSnapshot;
use perennial_archive::store::{AnnouncedFilter, site_of};
use perennial_engine::feeds::objects::{ArchivedObject, Templates, field_name};

/// Objects of one part of the list.
const MAX_OBJECTS: usize = 50;
/// Pages that an object's page is compared with, to know what it shares with them.
const MAX_BESIDE: usize = 12;

/// The list, the latest first.
pub fn objects(asking: &Asking<'_>, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let given = |name: &str| query.get(name).map(str::trim).filter(|value| !value.is_empty());
    let skip = given("skip").map(str::parse::<u32>).transpose();
    let skip = skip.map_err(|_| Problem::bad_request("skip: take it from `next` of the answer before."))?;
    let skip = skip.unwrap_or_default() as usize;
    let site = given("site");
    let asked = asking.served.pool.with(|snapshot| -> anyhow::Result<_> {
        let store = snapshot.store();
        let filter =
            AnnouncedFilter { site, skip, limit: Some(MAX_OBJECTS + 1), ..AnnouncedFilter::default() };
        let mut pages = store.announced_pages(&filter)?;
        let has_more = pages.len() > MAX_OBJECTS;
        pages.truncate(MAX_OBJECTS);
        let mut rows = Vec::with_capacity(pages.len());
        for page in pages {
            rows.push(ObjectRow {
                n_versions: store.versions_of(page.page)?.len(),
                time: page.published.unwrap_or(page.first_seen),
                url: page.url,
                title: page.title,
                feed: page.feed,
            });
        }
        let next = has_more.then_some(skip + MAX_OBJECTS);
        let page = ObjectsPage { place: place_of(asking), site: site.unwrap_or_default(), rows: &rows, next };
        Ok(form.answer(|| page.html(), || page.json()))
    });
    asked.and_then(|answer| answer).map_err(|error| Problem::internal(&error))
}

/// One object with its versions.
pub fn object(asking: &Asking<'_>, url: &str, form: Form) -> Result<Response<Body>, Problem> {
    let asked = || -> anyhow::Result<Option<Response<Body>>> {
        let found = asking.served.pool.with(|snapshot| known_page(snapshot.store(), url))??;
        let Some(row) = found else { return Ok(None) };
        // The captures are read without holding a snapshot of those that others wait for.
        let archive = asking.served.pool.with(|snapshot| snapshot.archive().clone())?;
        let shared = SharedSnapshot::new(archive.snapshot()?);
        let site = site_of(&row.url);
        let (announced, beside) = {
            let locked = shared.lock();
            let filter =
                AnnouncedFilter { site: Some(&site), limit: Some(MAX_BESIDE), ..AnnouncedFilter::default() };
            (locked.store().announced_page(row.id)?, locked.store().announced_pages(&filter)?)
        };
        let mut templates = Templates::of(&beside);
        let told = ArchivedObject::of(&shared, &row.url, row.id, announced, &mut templates, (None, None))?;
        let Some(latest) = told.versions.last() else { return Ok(None) };
        let mut steps: Vec<ObjectStep> = Vec::new();
        for (number, version) in told.versions.iter().enumerate() {
            let before = number.checked_sub(1).and_then(|before| told.versions.get(before));
            let edits = before.map(|before| edits(&before.object, &version.object)).unwrap_or_default();
            let words = |run: &Run| match run {
                Run::Kept(words) => EditWords::Kept(words.clone()),
                Run::TakenOut(words) => EditWords::TakenOut(words.clone()),
                Run::Added(words) => EditWords::Added(words.clone()),
            };
            let edits =
                edits.iter().map(|edit| (field_name(edit.field), edit.runs.iter().map(words).collect()));
            steps.push(ObjectStep {
                since: version.since,
                title: version.object.title.clone(),
                edits: edits.collect(),
            });
        }
        let time = latest.object.time.map(Timestamp::to_rfc3339).unwrap_or_default();
        let page = ObjectPage {
            place: place_of(asking),
            url: &row.url,
            latest: [&latest.object.title, &latest.object.author, &time, &latest.object.text],
            steps: &steps,
            n_unread: told.n_unread,
            json: told.to_json(false).unwrap_or_default(),
        };
        Ok(Some(form.answer(|| page.html(), || page.json.clone())))
    };
    let answer = asked().map_err(|error| Problem::internal(&error))?;
    answer.ok_or_else(|| Problem::no_such_page(url))
}
