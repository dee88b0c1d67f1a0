//! What changed, search, comparisons: the pages of the server that people read first.

use std::collections::HashMap;

use anyhow::Context as _;
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use data_encoding::BASE64;
use perennial_core::importance::ImportanceConfig;
use perennial_core::look::Seen;
use perennial_core::memento::address::{Query, time_of_digits};
use perennial_core::page::PageId;
use perennial_core::search::Query as Words;
use perennial_core::time::{Span, Timestamp};
use sha2::{Digest, Sha256};

use super::pages;
use super::problem::Problem;
use super::replay::Asking;
use crate::analyse::{ChangedReader, Comparison, Entry, Filters, History, PageSpec};
use crate::archive::{SharedSnapshot, Snapshot};
use crate::html::diff::{self, DiffView, Original};
use crate::html::face::{
    ChangedPage, Changes, Holdings, Line, LineKind, Place, SearchForm, SearchPage, SearchRow, Tab, framed,
};
use crate::search::{Answer, Question, answer};
use crate::store::{ChangeFilter, ChangeRow, Store, Texts};

/// Pages that home shows, and those that a search shows.
const MAX_PAGES: usize = 25;
const MAX_ANSWERS: usize = 50;
/// Lines of words of one change.
const MAX_LINES: usize = 3;
/// Letters of words that came or went.
const MAX_LETTERS: usize = 240;
/// Looks that are drawn under a bar.
const MAX_LOOKS: usize = 200;

/// Home: the changes that matter, the latest first.
pub fn changes(asking: &Asking<'_>, query: &Query) -> Result<Response<Body>, Problem> {
    let hours = query
        .get("hours")
        .and_then(|hours| hours.parse().ok())
        .filter(|hours| [24, 168, 720].contains(hours));
    let least =
        query.get("least").and_then(|least| least.parse().ok()).filter(|least| (0.0..=1.0).contains(least));
    let site = query.get("site").filter(|site| !site.is_empty());
    let asked = AskedChanges { hours: hours.unwrap_or(24), least: least.unwrap_or(0.1), site };
    let made = asking.served.pool.with(|snapshot| asked.page(asking, snapshot)).and_then(|made| made);
    Ok(pages::html(made.map_err(|error| Problem::internal(&error))?))
}

struct AskedChanges<'a> {
    hours: u32,
    least: f64,
    site: Option<&'a str>,
}

impl AskedChanges<'_> {
    fn page(&self, asking: &Asking<'_>, snapshot: &Snapshot) -> anyhow::Result<String> {
        let store = snapshot.store();
        let counts = store.counts()?;
        let instant = |text: &Option<String>| text.as_deref().and_then(|text| Timestamp::parse(text).ok());
        let span = instant(&counts.first_capture).zip(instant(&counts.last_capture));
        let since = span.map(|(_, last)| last - Span::from_hours(i64::from(self.hours)));
        let mut strongest: HashMap<PageId, (ChangeRow, usize)> = HashMap::new();
        let filter =
            ChangeFilter { host: self.site, since, min_importance: self.least, ..ChangeFilter::default() };
        store.each_change(&filter, |row| {
            if row.seen == Seen::Noise {
                return Ok(());
            }
            match strongest.get_mut(&row.page) {
                Some((kept, n_more)) => {
                    *n_more += 1;
                    if importance_of(&row) > importance_of(kept) {
                        *kept = row;
                    }
                }
                None => {
                    strongest.insert(row.page, (row, 0));
                }
            }
            Ok(())
        })?;
        let mut rows: Vec<(ChangeRow, usize)> = strongest.into_values().collect();
        rows.sort_by_key(|(row, _)| (std::cmp::Reverse(row.time), row.page));
        let n_pages = rows.len();
        rows.truncate(MAX_PAGES);
        let filters = Filters::built_in();
        let mut reader = ChangedReader::new(store, &filters);
        let mut shown = Vec::with_capacity(rows.len());
        for (row, n_more) in rows {
            shown.push(changed_page(store, &mut reader, row, n_more)?);
        }
        let sites: Vec<String> = store.sites()?.into_iter().map(|(host, ..)| host).collect();
        let holdings = Holdings {
            n_captures: counts.n_captures,
            n_pages: counts.n_pages,
            n_sites: sites.len() as u64,
            warc_bytes: snapshot.archive().warc_bytes()?,
            span,
            n_waiting: store.count_backlog()?,
        };
        let (place, hours, least, site) = (place_of(asking), self.hours, self.least, self.site);
        Ok(Changes { place, hours, least, site, sites: &sites, n_pages, pages: &shown, holdings }.html())
    }
}

fn place_of<'a>(asking: &Asking<'a>) -> Place<'a> {
    Place { name: &asking.served.name, base: &asking.served.base }
}

fn importance_of(row: &ChangeRow) -> f64 {
    row.seen.importance().get()
}

fn changed_page(
    store: &Store,
    reader: &mut ChangedReader<'_>,
    row: ChangeRow,
    n_more: usize,
) -> anyhow::Result<ChangedPage> {
    let entries = reader.read(&row)?.map(|changed| changed.entries()).unwrap_or_default();
    let told: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.noise < 0.5 && !entry.advertisement && entry.share > 0.0)
        .collect();
    let n_of = |op: &str| told.iter().filter(|entry| entry.op == op).count();
    let blocks = told.iter().take(MAX_LINES).filter_map(|entry| entry.block_after.clone()).collect();
    Ok(ChangedPage {
        time: row.time,
        before: row.before,
        importance: importance_of(&row),
        event: event_of(&row),
        lines: told.iter().filter_map(|entry| line_of(entry)).take(MAX_LINES).collect(),
        n_operations: ["insert", "delete", "update", "move"].map(n_of),
        drawn: store.tree_at(row.page, row.time)?.map(|tree| (tree, blocks)),
        title: row.title,
        url: row.url,
        n_more,
    })
}

fn event_of(row: &ChangeRow) -> Option<&'static str> {
    match row.seen {
        Seen::First => Some("New page"),
        Seen::Vanished => Some("The page has vanished"),
        Seen::Returned => Some("The page is there again"),
        Seen::Redirected(_) => Some("The address leads elsewhere now"),
        _ => None,
    }
}

fn line_of(entry: &Entry) -> Option<Line> {
    let text = |content: &Option<crate::analyse::Content>| {
        content
            .as_ref()
            .map(|content| content.text.chars().take(MAX_LETTERS).collect::<String>())
            .unwrap_or_default()
    };
    let (kind, before, after) = match entry.op {
        "insert" => (LineKind::Inserted, String::new(), text(&entry.after)),
        "delete" => (LineKind::Deleted, text(&entry.before), String::new()),
        "update" => {
            let whole = |content: &Option<crate::analyse::Content>| {
                content.as_ref().map(|c| c.text.clone()).unwrap_or_default()
            };
            (LineKind::Updated, whole(&entry.before), whole(&entry.after))
        }
        _ => return None,
    };
    (!(before.is_empty() && after.is_empty()) && before != after).then_some(Line { kind, before, after })
}

/// `/search?q=...`: which pages said it, from when to when.
pub fn search(asking: &Asking<'_>, query: &Query) -> Result<Response<Body>, Problem> {
    let form = SearchForm {
        words: query.get("q").unwrap_or_default().trim(),
        site: query.get("site").unwrap_or_default().trim(),
        is_vanished: query.is_on("vanished"),
        is_important: query.is_on("important"),
    };
    let made = asking.served.pool.with(|snapshot| search_page(asking, snapshot, form)).and_then(|made| made);
    Ok(pages::html(made.map_err(|error| Problem::internal(&error))?))
}

fn search_page(asking: &Asking<'_>, snapshot: &Snapshot, form: SearchForm<'_>) -> anyhow::Result<String> {
    let mut page =
        SearchPage { place: place_of(asking), form, problem: None, rows: &[], n_pages: 0, is_partial: false };
    if form.words.is_empty() {
        return Ok(page.html());
    }
    let words = match Words::parse(form.words) {
        Ok(words) => words,
        Err(error) => {
            page.problem = Some(error.to_string());
            return Ok(page.html());
        }
    };
    let Some(texts) = Texts::open_read(&snapshot.archive().texts_path())? else {
        page.problem = Some(
            "Nothing of this archive can be searched yet: `perennial analyse` makes the text index.".into(),
        );
        return Ok(page.html());
    };
    let question = Question {
        host: Some(form.site).filter(|site| !site.is_empty()),
        is_vanished: form.is_vanished,
        is_important: form.is_important,
        limit: MAX_ANSWERS,
        ..Question::default()
    };
    let answers = answer(snapshot.store(), &texts, &words, &question)?;
    let row = |answer: Answer| -> anyhow::Result<SearchRow> {
        let looks = snapshot.store().learned_looks(answer.page, None)?;
        let step = looks.len().div_ceil(MAX_LOOKS).max(1);
        Ok(SearchRow {
            url: answer.url,
            title: answer.title,
            text: answer.sentence.text,
            found: answer.sentence.found,
            role: answer.sentence.role.name(),
            stays: answer.stays,
            looks: looks.iter().step_by(step).map(|look| look.time).collect(),
        })
    };
    let rows = answers.answers.into_iter().map(row).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(SearchPage { rows: &rows, n_pages: answers.n_pages, is_partial: answers.is_partial, ..page }.html())
}

/// `/web/diff/<time>/<time>/<url>`: the two versions beside each other.
pub fn compare(asking: &Asking<'_>, rest: &str) -> Result<Response<Body>, Problem> {
    let mut parts = rest.splitn(3, '/');
    let digits = |part: Option<&str>| {
        part.filter(|part| !part.is_empty() && part.len() <= 14 && part.bytes().all(|b| b.is_ascii_digit()))
            .map(time_of_digits)
    };
    let times = digits(parts.next()).zip(digits(parts.next()));
    let Some(((before, after), url)) = times.zip(parts.next().filter(|url| !url.is_empty())) else {
        return Err(Problem::bad_request(
            "Write /web/diff/20260102030405/20260103030405/https://example.org/",
        ));
    };
    let held = asking.served.pool.with(|snapshot| snapshot.store().page(url).map(|page| page.is_some()));
    if !held.and_then(|held| held).map_err(|error| Problem::internal(&error))? {
        return Err(Problem::not_archived(url));
    }
    let made = comparison(asking, url, before, after).map_err(|error| Problem::internal(&error))?;
    made.map(|body| with_script(asking, &body)).ok_or_else(|| Problem::not_held(url, &before.to_digits14()))
}

/// The diff component; `None` where one of the two versions was not laid out.
fn comparison(
    asking: &Asking<'_>,
    url: &str,
    before: Timestamp,
    after: Timestamp,
) -> anyhow::Result<Option<String>> {
    let snapshot = SharedSnapshot::new(asking.served.pool.archive().snapshot()?);
    let (trees, noise) = {
        let shared = snapshot.lock();
        let store = shared.store();
        let page = store.page(url)?.context("the page has gone")?;
        let trees = store.tree_at(page.id, end_of(before))?.zip(store.tree_at(page.id, end_of(after))?);
        (trees, store.change_between(url, before, after)?)
    };
    let Some((tree_before, tree_after)) = trees else { return Ok(None) };
    let history = noise.as_ref().map_or(History::Unknown, |(_, noise)| History::Stored(noise));
    let filters = Filters::load(Some(asking.served.pool.archive().root()))?;
    let comparison =
        Comparison::new(tree_before, tree_after, &ImportanceConfig::default(), &filters, history);
    let load = |time: Timestamp| {
        PageSpec::Archived { url: url.to_string(), time: Some(time) }.load_named(Some(&snapshot))
    };
    let (page_before, page_after) = (load(before)?, load(after)?);
    let (requisites_before, requisites_after) =
        (|url: &str| page_before.requisite(url), |url: &str| page_after.requisite(url));
    let view = DiffView {
        comparison: &comparison,
        form: "monotone",
        before: Some(Original { url, html: &page_before.html, requisites: &requisites_before }),
        after: Some(Original { url, html: &page_after.html, requisites: &requisites_after }),
    };
    Ok(Some(view.body()))
}

/// The last instant of a second: an address has seconds, a capture has milliseconds.
fn end_of(second: Timestamp) -> Timestamp {
    Timestamp::from_secs(second.as_secs() + 1) - Span::from_millis(1)
}

/// The page around the diff component, which may run its own script and no other.
fn with_script(asking: &Asking<'_>, body: &str) -> Response<Body> {
    let main = format!("<style>{}</style>{body}<script>{}</script>", diff::STYLE, diff::SCRIPT);
    let mut response = pages::html(framed(place_of(asking), Tab::Other, "Compare", "", &main));
    let hash = BASE64.encode(&Sha256::digest(diff::SCRIPT.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; script-src 'sha256-{hash}'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
