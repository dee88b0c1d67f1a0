//! The CDX APIs of pywb (`/cdx`) and of the Internet Archive (`/cdx/search/cdx`, `/web/timemap/cdx`). The cost of a query is
//! bounded; a resume key continues it.

mod output;
mod query;

pub use output::Dialect;
pub use query::CdxQuery;

use std::collections::VecDeque;
use std::io;

use hyper::http::{HeaderValue, Response, header};
use perennial_core::memento::replay_url::QueryParameters;
use perennial_warc::cdxj::CdxjLine;
use perennial_warc::surt::KeyRange;

use super::problem::Problem;
use super::request::Request;
use crate::body::Body;
use perennial_archive::Snapshot;
use query::Order;

/// Rows per response.
pub const MAX_ROWS: usize = 100_000;

/// Lines of the index that a query may read.
pub const MAX_LINES: usize = 1_000_000;

/// Captures nearest to an instant that are looked up in the state.
const MAX_NEAREST: usize = 1_000;

/// Lines per block; blocks are the unit of the page count.
const BLOCK_LINES: usize = 3_000;

/// The rows of a response.
pub struct CdxRows {
    /// In the requested order.
    pub rows: Vec<CdxjLine>,
    /// Continues the query, if there is more.
    pub resume_key: Option<String>,
    /// Whether there is more.
    is_cut: bool,
}

pub fn respond(
    request: &Request<'_>,
    dialect: Dialect,
    query: &QueryParameters,
    url: Option<&str>,
) -> Result<Response<Body>, Problem> {
    let cdx = CdxQuery::parse(query, url, dialect).map_err(Problem::bad_request)?;
    let (mime, text) = match cdx.counts_pages {
        true => output::n_pages(&cdx, request.with(|snapshot| Ok(count(snapshot, &cdx)?))?),
        false => {
            let rows = request.with(|snapshot| collect(snapshot, &cdx))?;
            check_page(&cdx, &rows)?;
            output::write(&cdx, &rows)
        }
    };
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    Ok(response)
}

/// A page after the last one ends the list: pywb answers with an error, the Internet Archive with nothing.
fn check_page(query: &CdxQuery, rows: &CdxRows) -> Result<(), Problem> {
    let Some(page) = query.page.filter(|_| rows.rows.is_empty()) else { return Ok(()) };
    if rows.is_cut {
        let limit = format!("page={page}: behind {MAX_LINES} lines; go on with showResumeKey instead");
        return Err(Problem::bad_request(limit));
    }
    match query.dialect {
        Dialect::Pywb if page > 0 => Err(Problem::bad_request(format!("page={page}: there is no such page"))),
        _ => Ok(()),
    }
}

/// The rows of a query.
pub fn collect(snapshot: &Snapshot, query: &CdxQuery) -> anyhow::Result<CdxRows> {
    let mut collector = Collector::new(query);
    let mut n_lines = 0;
    for line in snapshot.lines(&range_of(snapshot, query)?)? {
        // An invalid line is damaged, which `perennial verify` reports; the other lines are still right.
        let Ok(line) = CdxjLine::parse(&line?) else { continue };
        n_lines += 1;
        if n_lines > MAX_LINES || !collector.take(line) {
            collector.is_cut = true;
            break;
        }
    }
    Ok(collector.finish())
}

/// The lines to read. For captures nearest to an instant, the state knows their range, so a long history is not read whole.
fn range_of(snapshot: &Snapshot, query: &CdxQuery) -> anyhow::Result<KeyRange> {
    let mut range = query.start();
    if let Some((key, at, n)) = query.nearest().filter(|nearest| nearest.2 <= MAX_NEAREST) {
        let around = snapshot.store().captures_around(key, at, n)?;
        if let (Some(first), Some(last)) = (around.first(), around.last()) {
            range.start = format!("{key} {}", first.time.to_digits14()).into();
            range.end = format!("{key} {}!", last.time.to_digits14()).into();
        }
    }
    Ok(range)
}

/// Counts lines up to the limit.
fn count(snapshot: &Snapshot, query: &CdxQuery) -> io::Result<usize> {
    let lines = snapshot.lines(&query.range).map_err(io::Error::other)?;
    Ok(lines.take(MAX_LINES).filter(|line| line.is_ok()).count())
}

/// Filters, collapses, sorts and limits rows.
struct Collector<'q> {
    query: &'q CdxQuery,
    rows: VecDeque<CdxjLine>,
    /// Key and time of the last line read, and how many lines had both.
    place: (String, String, usize),
    /// The value by which adjacent rows are compared.
    collapsed: Option<String>,
    n_passed: usize,
    is_cut: bool,
}

impl<'q> Collector<'q> {
    fn new(query: &'q CdxQuery) -> Collector<'q> {
        Collector {
            query,
            rows: VecDeque::new(),
            place: Default::default(),
            collapsed: None,
            n_passed: 0,
            is_cut: false,
        }
    }

    /// Returns false if no later line is wanted; the line itself was not taken then.
    fn take(&mut self, line: CdxjLine) -> bool {
        let query = self.query;
        let is_same_place = self.place.0 == line.key && self.place.1 == line.timestamp;
        let n_here = if is_same_place { self.place.2 + 1 } else { 1 };
        let is_known = query.resume.as_ref().is_some_and(|resume| resume.is_before(&line, n_here));
        let is_wanted = !is_known && query.is_wanted(&line);
        if is_wanted && query.order == Order::Ascending && self.rows.len() == query.limit {
            return false;
        }
        self.place = (line.key.clone(), line.timestamp.clone(), n_here);
        if !is_wanted || self.is_collapsed(&line) {
            return true;
        }
        self.n_passed += 1;
        if self.n_passed <= query.n_skipped {
            return true;
        }
        self.rows.push_back(line);
        if query.order != Order::Ascending && self.rows.len() > query.limit {
            self.drop_one();
        }
        true
    }

    fn is_collapsed(&mut self, line: &CdxjLine) -> bool {
        let Some((field, length)) = &self.query.collapse else { return false };
        let value = output::find_field(line, field).unwrap_or_default();
        let cut: String = value.chars().take(*length).collect();
        let is_same = self.collapsed.as_deref() == Some(&cut);
        self.collapsed = Some(cut);
        is_same
    }

    /// Drops the earliest row, or when sorting by distance the farther end, because lines arrive in order of time.
    fn drop_one(&mut self) {
        let is_first_farther = |at: i64| {
            let distance = |line: Option<&CdxjLine>| {
                line.and_then(CdxjLine::date).map_or(u64::MAX, |date| date.as_secs().abs_diff(at))
            };
            distance(self.rows.front()) > distance(self.rows.back())
        };
        match self.query.order {
            Order::Closest(at) if !is_first_farther(at.as_secs()) => drop(self.rows.pop_back()),
            _ => drop(self.rows.pop_front()),
        }
    }

    fn finish(self) -> CdxRows {
        let Collector { query, rows, place, is_cut, .. } = self;
        let mut rows = Vec::from(rows);
        match query.order {
            Order::Closest(at) => rows.sort_by_key(|line| {
                line.date().map_or(u64::MAX, |date| date.as_secs().abs_diff(at.as_secs()))
            }),
            Order::Descending => rows.reverse(),
            Order::Ascending | Order::Last => {}
        }
        let goes_on = is_cut && query.order == Order::Ascending;
        let resume_key = goes_on.then(|| format!("{} {} {}", place.0, place.1, place.2));
        CdxRows { rows, resume_key, is_cut }
    }
}
