//! What changed, pages, sites, the schedule, search, comparisons: the pages of the server that people read first, and the same
//! for programs.
//!
//! | file | what becomes what |
//! |---|---|
//! | `asked` | a question about changes -> a part of the list |
//! | `words` | a change -> the words that differ |
//! | `objects` | what feeds announced -> a list, and the history of one |
//! | `notices` | a choice of changes -> how somebody is told of them |
//! | `page` | an address -> its versions, pattern, next visit, headlines |
//! | `site` | a host -> its hours, directories, pages, feeds |
//! | `schedule` | the plan -> the next visits; an address -> why it is not visited |
//! | `pin` | a part of a site's pages -> what it would have changed |
//! | `terms` | a span -> the terms that are new in it |
//! | `looked` | a cookie -> what the reader of home has seen before |
//! | `compare` | two instants and an address -> the diff view |

mod asked;
mod compare;
mod looked;
mod notices;
mod objects;
mod page;
mod pin;
mod schedule;
mod site;
mod terms;
mod words;

pub use asked::changes;
pub use compare::{changes_of, compare, operations};
pub use notices::notices;
pub use objects::{object, objects};
pub use page::page;
pub use pin::pin;
pub use schedule::schedule;
pub use site::{SiteFigures, site, sites};
pub use terms::terms;

use std::collections::{BTreeSet, HashMap};

use axum::body::Body;
use axum::http::{Response, header};
use perennial_core::memento::address::Query;
use perennial_core::page::look::ChangeStatus;
use perennial_core::search::Query as Words;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use perennial_core::url::canonical;

use self::looked::Looked;
use self::words::{importance_of, told_change};
use super::pages::place_of;
use super::problem::Problem;
use super::replay::Asking;
use super::standing::Standing;
use super::{api, pages};
use crate::html_face::{
    ChangedPage, Changes, LIVE, Overview, Restricted, SearchForm, SearchPage, SearchRow, directory_of,
};
use perennial_archive::store::{ChangeFilter, ChangeRow, PageRow, Store, Texts};
use perennial_archive::{Snapshot, now};
use perennial_engine::analyse::{ChangedReader, Filters};
use perennial_engine::search::{Answer, Question, answer};

/// Pages that home shows with their words, and those that a search shows.
const MAX_PAGES: usize = 25;
const MAX_ANSWERS: usize = 50;
/// Looks that are drawn under a bar.
const MAX_LOOKS: usize = 200;
/// Pages beside one that changed too, and from how many on they are folded.
const MAX_BESIDE: usize = 40;
const MIN_FOLDED: usize = 3;

/// In what form an answer is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// For people.
    Html,
    /// For programs.
    Json,
}

impl Form {
    /// By `format=json` in the query.
    pub fn of(query: &Query) -> Form {
        if query.get("format") == Some("json") { Form::Json } else { Form::Html }
    }

    /// The answer.
    pub(super) fn answer(
        self,
        html: impl FnOnce() -> String,
        json: impl FnOnce() -> serde_json::Value,
    ) -> Response<Body> {
        match self {
            Form::Html => pages::html(html()),
            Form::Json => api::json(&json()),
        }
    }
}

/// Asks the archive and what is reckoned over it.
fn with<T>(
    asking: &Asking<'_>,
    ask: impl FnOnce(&Snapshot, Option<&Standing>) -> anyhow::Result<T>,
) -> Result<T, Problem> {
    let standing =
        asking.served.standings.of(&asking.served.pool).map_err(|error| Problem::internal(&error))?;
    let asked = asking.served.pool.with(|snapshot| ask(snapshot, standing.as_deref()));
    asked.and_then(|answer| answer).map_err(|error| Problem::internal(&error))
}

/// The page that somebody means by an address: as it is stored, as the crawl would write it, with the other scheme, or with one.
fn known_page(store: &Store, asked: &str) -> anyhow::Result<Option<PageRow>> {
    if let Some(page) = store.page(asked)? {
        return Ok(Some(page));
    }
    let rest = asked.strip_prefix("https://").or_else(|| asked.strip_prefix("http://")).unwrap_or(asked);
    let is_secure_first = !asked.starts_with("http://");
    let schemes = if is_secure_first { ["https", "http"] } else { ["http", "https"] };
    for scheme in schemes {
        let Some(url) = canonical::parse(&format!("{scheme}://{rest}")) else { continue };
        if let Some(page) = store.page(url.as_str())? {
            return Ok(Some(page));
        }
    }
    Ok(None)
}

/// The longest span of changes that is told: a year.
const MOST_HOURS: u32 = 8_760;

/// Home: the changes that matter, the latest first.
pub fn home(asking: &Asking<'_>, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let given = |name: &str| query.get(name).filter(|text| !text.is_empty());
    let hours = match given("hours").map(str::parse) {
        None => 24,
        Some(Ok(hours)) if (1..=MOST_HOURS).contains(&hours) => hours,
        Some(_) => return Err(Problem::bad_request("Write hours from 1 to 8760, such as hours=24.")),
    };
    let least = match given("least").map(str::parse) {
        None => 0.1,
        Some(Ok(least)) if (0.0..=1.0).contains(&least) => least,
        Some(_) => return Err(Problem::bad_request("Write least from 0 to 1, such as least=0.1.")),
    };
    let by_importance = match given("order") {
        None | Some("time") => false,
        Some("importance") => true,
        Some(_) => return Err(Problem::bad_request("Write order=time or order=importance.")),
    };
    let asked = AskedChanges { hours, least, site: given("site"), by_importance };
    with(asking, |snapshot, standing| asked.answer(asking, snapshot, standing, form))
}

struct AskedChanges<'a> {
    hours: u32,
    least: f64,
    site: Option<&'a str>,
    by_importance: bool,
}

/// The strongest change of each page, with the number of its others.
type Strongest = Vec<(ChangeRow, usize)>;

impl AskedChanges<'_> {
    fn answer(
        &self,
        asking: &Asking<'_>,
        snapshot: &Snapshot,
        standing: Option<&Standing>,
        form: Form,
    ) -> anyhow::Result<Response<Body>> {
        let store = snapshot.store();
        let last = store.last_capture()?;
        let rows = self.strongest(store, last)?;
        let n_pages = rows.len();
        let hosts: BTreeSet<String> =
            rows.iter().map(|(row, _)| perennial_archive::store::site_of(&row.url)).collect();
        let shown = told_pages(store, rows, self.by_importance)?;
        let sites: Vec<String> = standing
            .map(|standing| standing.sites.iter().map(|site| site.host.clone()).collect())
            .unwrap_or_default();
        let overview = match standing {
            Some(standing) => {
                Overview { past: asking.served.standings.past(snapshot)?, ..standing.overview_now(snapshot)? }
            }
            None => Overview::default(),
        };
        let looked = Looked::of(asking.parts, &asking.origins().main, now());
        let page = Changes {
            place: place_of(asking),
            hours: self.hours,
            least: self.least,
            site: self.site,
            by_importance: self.by_importance,
            sites: &sites,
            n_pages,
            n_sites: hosts.len(),
            pages: &shown,
            last,
            looked: looked.map(|looked| looked.before).filter(|before| Some(*before) != last),
            overview: &overview,
        };
        let mut response = match form {
            Form::Html if overview.is_running => pages::scripted(page.html(), LIVE, "connect-src 'self'"),
            _ => form.answer(|| page.html(), || page.json()),
        };
        let origin = &asking.origins().main;
        let cookie = last.and_then(|last| Looked::cookie(looked, last, origin, &asking.served.base, now()));
        if let Some(cookie) = cookie.filter(|_| form == Form::Html) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        Ok(response)
    }

    /// The changes of the span by page, the latest first. Work: the lessons of the span.
    fn strongest(&self, store: &Store, last: Option<Timestamp>) -> anyhow::Result<Strongest> {
        let since = last.map(|last| last - Span::from_hours(i64::from(self.hours)));
        let mut strongest: HashMap<PageId, (ChangeRow, usize)> = HashMap::new();
        let filter =
            ChangeFilter { host: self.site, since, min_importance: self.least, ..ChangeFilter::default() };
        store.each_change(&filter, |row| {
            if row.status == ChangeStatus::NoiseOnly {
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
        let mut rows: Strongest = strongest.into_values().collect();
        rows.sort_by_key(|(row, _)| (std::cmp::Reverse(row.time), row.page));
        Ok(rows)
    }
}

/// The most important changes in words, the latest first unless they are asked for by importance. Where several pages of one
/// directory changed in the same way, they stand under the strongest.
fn told_pages(store: &Store, rows: Strongest, by_importance: bool) -> anyhow::Result<Vec<ChangedPage>> {
    let mut places: HashMap<(String, Option<&str>), usize> = HashMap::new();
    let mut groups: Vec<Strongest> = Vec::new();
    for (row, n_more) in rows {
        // The front page of a directory stands for itself.
        let key = (directory_of(&row.url), words::event_of(row.status));
        let place = match row.url.ends_with('/') {
            true => groups.len(),
            false => *places.entry(key).or_insert(groups.len()),
        };
        match groups.get_mut(place) {
            Some(group) => group.push((row, n_more)),
            None => groups.push(vec![(row, n_more)]),
        }
    }
    let (folded, single): (Vec<Strongest>, Vec<Strongest>) =
        groups.into_iter().partition(|group| group.len() >= MIN_FOLDED);
    let mut groups: Vec<Strongest> =
        folded.into_iter().chain(single.into_iter().flatten().map(|row| vec![row])).collect();
    for group in &mut groups {
        group.sort_by(|(a, _), (b, _)| importance_of(b).total_cmp(&importance_of(a)));
    }
    let importance = |group: &Strongest| group.first().map_or(0.0, |(row, _)| importance_of(row));
    groups.sort_by(|a, b| importance(b).total_cmp(&importance(a)));
    groups.truncate(MAX_PAGES);
    if !by_importance {
        groups.sort_by_key(|group| std::cmp::Reverse(group.first().map(|(row, _)| row.time)));
    }
    let filters = Filters::built_in();
    let mut reader = ChangedReader::new(store, &filters);
    let mut told = Vec::with_capacity(groups.len());
    for group in groups {
        let mut rest = group.into_iter();
        let Some((row, n_more)) = rest.next() else { continue };
        let mut page = told_change(store, &mut reader, row, n_more)?;
        page.beside = rest.take(MAX_BESIDE).map(|(row, n_more)| words::untold_change(row, n_more)).collect();
        told.push(page);
    }
    Ok(told)
}

/// `/search?q=...`: which pages said it, from when to when.
pub fn search(asking: &Asking<'_>, query: &Query, form: Form) -> Result<Response<Body>, Problem> {
    let text = |name: &str| query.get(name).unwrap_or_default().trim();
    let asked = SearchForm {
        words: text("q"),
        site: text("site"),
        from: text("from"),
        to: text("to"),
        is_phrase: query.is_on("phrase"),
        is_vanished: query.is_on("vanished"),
        is_important: query.is_on("important"),
    };
    let made = asking.served.pool.with(|snapshot| search_page(asking, snapshot, asked, form));
    made.and_then(|made| made).map_err(|error| Problem::internal(&error))
}

/// A day or an instant as users write it.
fn instant(text: &str) -> Result<Option<Timestamp>, String> {
    match text {
        "" => Ok(None),
        text => Timestamp::parse(text).map(Some).map_err(|error| error.to_string()),
    }
}

fn search_page(
    asking: &Asking<'_>,
    snapshot: &Snapshot,
    asked: SearchForm<'_>,
    form: Form,
) -> anyhow::Result<Response<Body>> {
    let mut page = SearchPage {
        place: place_of(asking),
        form: asked,
        problem: None,
        rows: &[],
        n_pages: 0,
        is_partial: false,
        restricted: None,
    };
    if asked.words.is_empty() {
        return Ok(form.answer(|| page.html(), || page.json()));
    }
    let quoted = format!("\"{}\"", asked.words.replace('"', " "));
    let words =
        Words::parse(if asked.is_phrase { &quoted } else { asked.words }).map_err(|error| error.to_string());
    let read = words.and_then(|words| Ok((words, instant(asked.from)?, instant(asked.to)?)));
    let (words, since, to) = match read {
        Ok(read) => read,
        Err(problem) => {
            page.problem = Some(problem);
            return Ok(form.answer(|| page.html(), || page.json()));
        }
    };
    let Some(texts) = Texts::open_read(&snapshot.archive().texts_path())? else {
        page.problem = Some(
            "Nothing of this archive can be searched yet: `perennial analyse` makes the text index.".into(),
        );
        return Ok(form.answer(|| page.html(), || page.json()));
    };
    let question = Question {
        host: Some(asked.site).filter(|site| !site.is_empty()),
        since,
        // A day that is named belongs to the span.
        until: to.map(|to| if asked.to.len() == 10 { to + Span::from_hours(24) } else { to }),
        is_vanished: asked.is_vanished,
        is_important: asked.is_important,
        limit: MAX_ANSWERS,
        ..Question::default()
    };
    let answers = answer(snapshot.store(), &texts, &words, &question)?;
    let restricted = match asked.is_important {
        true => {
            let all = Question { is_important: false, limit: 1, ..question };
            let n_pages_in_all = answer(snapshot.store(), &texts, &words, &all)?.n_pages;
            let standing = asking.served.standings.of(&asking.served.pool)?;
            Some(Restricted { n_pages_in_all, bytes: standing.and_then(|standing| standing.text_bytes) })
        }
        false => None,
    };
    let rows = answers.answers.into_iter().map(|answer| search_row(snapshot.store(), answer));
    let rows = rows.collect::<anyhow::Result<Vec<_>>>()?;
    let page = SearchPage {
        rows: &rows,
        n_pages: answers.n_pages,
        is_partial: answers.is_partial,
        restricted,
        ..page
    };
    Ok(form.answer(|| page.html(), || page.json()))
}

fn search_row(store: &Store, answer: Answer) -> anyhow::Result<SearchRow> {
    let looks = store.analysed_observations(answer.page, None)?;
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
}
