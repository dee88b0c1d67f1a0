//! Captures without an observation -> observations, page by page, on all cores.
//!
//! A crash between fetching and analysing leaves such captures, an import brings them by the thousand. Pages
//! are independent of each other; within one page captures are compared in order of time.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use perennial_core::charset::decode_text;
use perennial_core::page::PageId;
use perennial_core::time::Timestamp;
use rayon::prelude::*;
use rusqlite::Connection;

use super::record::{self, KnownPage, Lesson};
use super::{Analyst, Look, Requisites};
use crate::archive::Archive;
use crate::store::{Capture, Kind, Store};

/// Pages between two commits: what a crash may cost is analysed again.
const PAGES_PER_COMMIT: usize = 64;

/// HTML that was delivered, or a revisit of some; whether a revisit is of HTML its page's type tells.
const BACKLOG: &str = "FROM captures c JOIN pages p ON p.id = c.page
     LEFT JOIN observations o ON o.page = c.page AND o.time = c.time
     WHERE o.page IS NULL AND c.kind <= 1 AND (c.status BETWEEN 200 AND 299 OR c.status = 304)
       AND (c.mime IN ('text/html', 'application/xhtml+xml')
            OR c.kind = 1 AND p.mime IN ('text/html', 'application/xhtml+xml', 'warc/revisit'))";

/// What an analysis did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Analysed {
    /// Captures that have an observation now.
    pub n_captures: u64,
    /// Of them, those that changed in what a reader sees.
    pub n_changed: u64,
    /// Captures whose payload could not be read.
    pub n_failed: u64,
}

/// How many captures wait for their analysis.
pub fn count_backlog(store: &Store) -> anyhow::Result<u64> {
    let sql = format!("SELECT count(*) {BACKLOG}");
    Ok(store.connection().query_row(&sql, [], |row| row.get::<_, i64>(0))? as u64)
}

/// Analyses every capture that waits for it. `progress` hears how many captures were done; the work ends
/// early, at a commit, when `stop` is set.
pub fn analyse_backlog(
    archive: &Archive,
    store: &mut Store,
    analyst: &Analyst,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Analysed> {
    let mut done = Analysed::default();
    let requisites = Requisites::default();
    for pages in waiting_pages(store.connection())?.chunks(PAGES_PER_COMMIT) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let analysed: Vec<PageAnalysis> = pages
            .par_iter()
            .map(|&page| {
                let work = PageWork { archive, analyst, requisites: &requisites, progress, page };
                with_reader(archive, |store| work.analyse(store))
            })
            .collect::<anyhow::Result<_>>()?;
        let transaction = store.connection_mut().transaction()?;
        for page in &analysed {
            if page.is_begun_anew {
                record::forget(&transaction, page.page)?;
            }
            page.lessons.iter().try_for_each(|lesson| lesson.keep(&transaction))?;
            done.n_captures += page.lessons.len() as u64;
            done.n_changed += page.lessons.iter().filter(|lesson| !lesson.is_unchanged()).count() as u64;
            done.n_failed += page.n_failed;
        }
        transaction.commit()?;
    }
    Ok(done)
}

fn waiting_pages(connection: &Connection) -> anyhow::Result<Vec<PageId>> {
    let mut statement = connection.prepare(&format!("SELECT DISTINCT c.page {BACKLOG} ORDER BY c.page"))?;
    let pages = statement.query_map([], |row| Ok(PageId(row.get(0)?)))?;
    Ok(pages.collect::<rusqlite::Result<_>>()?)
}

thread_local! {
    static READER: RefCell<Option<Store>> = const { RefCell::new(None) };
}

/// Each thread reads the state through a connection of its own.
fn with_reader<T>(archive: &Archive, work: impl FnOnce(&Store) -> anyhow::Result<T>) -> anyhow::Result<T> {
    READER.with(|cell| {
        let mut cell = cell.borrow_mut();
        let is_ours =
            cell.as_ref().is_some_and(|store| store.connection().path() == archive.state_path().to_str());
        if !is_ours {
            *cell = Some(archive.store()?);
        }
        match cell.as_ref() {
            Some(store) => work(store),
            None => work(&archive.store()?),
        }
    })
}

struct PageAnalysis {
    page: PageId,
    /// A capture came that is older than what was analysed: the page's history is told again.
    is_begun_anew: bool,
    lessons: Vec<Lesson>,
    n_failed: u64,
}

struct PageWork<'a> {
    archive: &'a Archive,
    analyst: &'a Analyst,
    requisites: &'a Requisites,
    progress: &'a (dyn Fn(u64) + Sync),
    page: PageId,
}

impl PageWork<'_> {
    fn analyse(&self, store: &Store) -> anyhow::Result<PageAnalysis> {
        let mut known = record::known_page(store.connection(), self.page)?;
        let mut captures = store.captures_of(self.page)?;
        captures.retain(|capture| capture.kind <= Kind::Revisit && is_page(capture));
        captures.sort_by_key(|capture| (capture.time, capture.id));
        let waiting = self.first_waiting(store)?;
        let is_begun_anew = known.as_ref().is_some_and(|known| waiting < known.time);
        if is_begun_anew {
            known = None;
        }
        let from = known.as_ref().map(|known| known.time);
        captures.retain(|capture| from.is_none_or(|from| capture.time > from));
        let mut analysis = PageAnalysis { page: self.page, is_begun_anew, lessons: Vec::new(), n_failed: 0 };
        for capture in captures {
            match self.lesson(store, &capture, known.take())? {
                Some((lesson, next)) => {
                    analysis.lessons.push(lesson);
                    known = Some(next);
                }
                None => analysis.n_failed += 1,
            }
            (self.progress)(1);
        }
        Ok(analysis)
    }

    fn first_waiting(&self, store: &Store) -> anyhow::Result<Timestamp> {
        let sql = format!("SELECT min(c.time) {BACKLOG} AND c.page = ?1");
        let millis: Option<i64> = store.connection().query_row(&sql, [self.page.0], |row| row.get(0))?;
        Ok(Timestamp::from_millis(millis.unwrap_or(i64::MAX)))
    }

    /// `None` when the payload is not in the archive or is no HTML.
    fn lesson(
        &self,
        store: &Store,
        capture: &Capture,
        known: Option<KnownPage>,
    ) -> anyhow::Result<Option<(Lesson, KnownPage)>> {
        if let Some(mut known) = known.clone().filter(|known| known.digest == capture.digest) {
            return Ok(Some((Lesson::same_payload(self.page, capture.time, &mut known), known)));
        }
        let Some(payload) = self.archive.payload(store, capture)? else { return Ok(None) };
        let html = decode_text(&payload.bytes, payload.head.get("Content-Type").as_deref());
        let lookup = |url: &str| {
            with_reader(self.archive, |store| {
                Ok(self.requisites.find(self.archive, store, url, capture.time))
            })
            .ok()
            .flatten()
        };
        let look =
            Look { url: &capture.url, version: &capture.time.to_rfc3339(), html: &html, requisites: &lookup };
        let observation = self.analyst.observe(known.as_ref().map(|known| &known.known), &look);
        Lesson::seen(self.page, capture.time, capture.digest.clone(), known.as_ref(), observation).map(Some)
    }
}

fn is_page(capture: &Capture) -> bool {
    capture.status.is_none_or(|status| (200..300).contains(&status) || status == 304)
}
