//! Captures without an observation -> observations, page by page, on all cores.
//!
//! A crash between fetching and analysing leaves such captures, an import brings them by the thousand. Pages
//! are independent of each other; within one page captures are compared in order of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use perennial_core::charset::decode_text;
use perennial_core::diff::Delta;
use perennial_core::page::PageId;
use perennial_core::payload::Limits;
use perennial_core::time::Timestamp;
use perennial_core::warc::sha1_label;
use rayon::prelude::*;
use rusqlite::Connection;

use super::reader::Readers;
use super::record::{self, KnownPage, Lesson};
use super::{Analyst, Look, Requisites};
use crate::archive::{Archive, DELTA_MIME, LEFT_OUT_DIGEST, LeftOut, links};
use crate::store::{Capture, Kind, Store};

/// Pages between two commits: what a crash may cost is analysed again.
const PAGES_PER_COMMIT: usize = 64;

/// HTML that was delivered, or a revisit of some; whether a revisit is of HTML its page's type tells.
const BACKLOG: &str = "FROM captures c JOIN pages p ON p.id = c.page
     LEFT JOIN observations o ON o.page = c.page AND o.time = c.time
     WHERE o.page IS NULL AND (c.kind <= 1 AND (c.status BETWEEN 200 AND 299 OR c.status = 304)
       AND (c.mime IN ('text/html', 'application/xhtml+xml')
            OR c.kind = 1 AND p.mime IN ('text/html', 'application/xhtml+xml', 'warc/revisit'))
       OR c.kind = 3 AND c.mime = 'application/x-vi-delta+xml')";

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
    analyst: &Arc<Analyst>,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<Analysed> {
    let mut done = Analysed::default();
    let worker = PageAnalyst::new(archive, Arc::clone(analyst));
    for pages in waiting_pages(store.connection())?.chunks(PAGES_PER_COMMIT) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let analysed: Vec<PageLessons> = pages
            .par_iter()
            .map(|&page| {
                let lessons = worker.catch_up(page)?;
                progress(lessons.lessons.len() as u64 + lessons.n_failed);
                Ok(lessons)
            })
            .collect::<anyhow::Result<_>>()?;
        let transaction = store.connection_mut().transaction()?;
        for page in &analysed {
            page.keep(&transaction)?;
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

/// What the captures of one page taught.
pub struct PageLessons {
    page: PageId,
    /// A capture came that is older than what was analysed: the page's history is told again.
    is_begun_anew: bool,
    /// In order of time.
    pub lessons: Vec<Lesson>,
    /// Captures whose payload is not in the archive.
    pub n_failed: u64,
}

impl PageLessons {
    /// Writes them down.
    pub fn keep(&self, connection: &Connection) -> anyhow::Result<()> {
        if self.is_begun_anew {
            record::forget(connection, self.page)?;
        }
        self.lessons.iter().try_for_each(|lesson| lesson.keep(connection))
    }
}

/// Analyses the captures of one page after the other; shared by all threads that do.
pub struct PageAnalyst {
    analyst: Arc<Analyst>,
    readers: Readers,
    requisites: Requisites,
}

impl PageAnalyst {
    /// Reads payloads and requisites from `archive`.
    pub fn new(archive: &Archive, analyst: Arc<Analyst>) -> PageAnalyst {
        PageAnalyst { analyst, readers: Readers::new(archive), requisites: Requisites::default() }
    }

    /// What is to be stored in place of a payload that is not worth its bytes (`keep = "important"`): what the next
    /// analysis will find. `None`: it is worth them, or the archive has them already.
    pub fn leave_out(
        &self,
        page: PageId,
        url: &str,
        time: Timestamp,
        payload: &[u8],
        html: &str,
    ) -> anyhow::Result<Option<LeftOut>> {
        let digest = sha1_label(payload);
        let found = self.readers.with(|_, store| {
            if store.origin_of(url, &digest)?.is_some() {
                return Ok(None);
            }
            record::known_page(store.connection(), page)
        })?;
        let Some(mut known) = found else { return Ok(None) };
        let lesson = match known.digest == digest {
            true => Lesson::same_payload(page, time, &mut known),
            false => {
                let look = PageLook { page, url, time, digest: digest.clone(), html };
                self.look(look, Some(&known))?.0
            }
        };
        let left_out = LeftOut {
            delta: lesson.delta_xml()?,
            digest,
            length: payload.len() as u64,
            importance: lesson.importance.get(),
        };
        Ok((!lesson.is_indexed).then_some(left_out))
    }

    /// The captures since the last one that was analysed.
    pub fn go_on(&self, page: PageId) -> anyhow::Result<PageLessons> {
        self.readers.with(|archive, store| {
            let known = record::known_page(store.connection(), page)?;
            self.analyse(archive, store, page, known, false)
        })
    }

    /// All captures that wait, also when some are older than what was analysed.
    fn catch_up(&self, page: PageId) -> anyhow::Result<PageLessons> {
        self.readers.with(|archive, store| {
            let known = record::known_page(store.connection(), page)?;
            let sql = format!("SELECT min(c.time) {BACKLOG} AND c.page = ?1");
            let waiting: Option<i64> = store.connection().query_row(&sql, [page.0], |row| row.get(0))?;
            let is_late = |known: &KnownPage| waiting.is_some_and(|waiting| waiting < known.time.as_millis());
            match known {
                Some(known) if is_late(&known) => self.analyse(archive, store, page, None, true),
                known => self.analyse(archive, store, page, known, false),
            }
        })
    }

    fn analyse(
        &self,
        archive: &Archive,
        store: &Store,
        page: PageId,
        mut known: Option<KnownPage>,
        is_begun_anew: bool,
    ) -> anyhow::Result<PageLessons> {
        let mut done = PageLessons { page, is_begun_anew, lessons: Vec::new(), n_failed: 0 };
        for capture in store.captures_after(page, known.as_ref().map(|known| known.time))? {
            if !is_page(&capture) {
                continue;
            }
            match self.lesson(archive, store, &capture, known.as_ref())? {
                Some((lesson, next)) => {
                    done.lessons.push(lesson);
                    known = Some(next);
                }
                None => done.n_failed += 1,
            }
        }
        Ok(done)
    }

    /// `None` when the payload is not in the archive or is no HTML.
    fn lesson(
        &self,
        archive: &Archive,
        store: &Store,
        capture: &Capture,
        known: Option<&KnownPage>,
    ) -> anyhow::Result<Option<(Lesson, KnownPage)>> {
        if capture.kind == Kind::Metadata {
            return self.lesson_of_delta(archive, capture, known);
        }
        if let Some(mut known) = known.filter(|known| known.digest == capture.digest).cloned() {
            return Ok(Some((Lesson::same_payload(capture.page, capture.time, &mut known), known)));
        }
        let Some(payload) = archive.payload(store, capture)? else { return Ok(None) };
        if !links::is_html(&payload.head) {
            return Ok(None);
        }
        let html = decode_text(&payload.bytes, payload.head.get("Content-Type").as_deref());
        let digest = capture.digest.clone();
        let look =
            PageLook { page: capture.page, url: &capture.url, time: capture.time, digest, html: &html };
        self.look(look, known).map(Some)
    }

    fn look(&self, page: PageLook<'_>, known: Option<&KnownPage>) -> anyhow::Result<(Lesson, KnownPage)> {
        let version = page.time.to_rfc3339();
        let requisites = |url: &str| self.requisites.find(&self.readers, url, page.time);
        let look = Look { url: page.url, version: &version, html: page.html, requisites: &requisites };
        let before = known.map(KnownPage::known).transpose()?;
        let observation = self.analyst.observe(before.as_ref(), &look);
        Lesson::seen(page.page, page.time, page.digest, known, observation)
    }

    /// A version that was left out: its delta applied to the version before gives what was seen. `None` when that
    /// version is not known.
    fn lesson_of_delta(
        &self,
        archive: &Archive,
        capture: &Capture,
        known: Option<&KnownPage>,
    ) -> anyhow::Result<Option<(Lesson, KnownPage)>> {
        let Some(known) = known else { return Ok(None) };
        let stored = archive.stored(capture, Limits::default())?;
        let digest = stored.header.get(LEFT_OUT_DIGEST).unwrap_or_default().to_string();
        if known.digest == digest {
            let mut known = known.clone();
            return Ok(Some((Lesson::same_payload(capture.page, capture.time, &mut known), known)));
        }
        let before = known.known()?;
        let Ok(delta) = Delta::from_xml(&String::from_utf8_lossy(&stored.payload.bytes)) else {
            return Ok(None);
        };
        let Ok(mut tree) = delta.apply(&before.tree) else { return Ok(None) };
        tree.url.clone_from(&capture.url);
        tree.version = capture.time.to_rfc3339();
        let observation = self.analyst.compare(Some(&before), tree);
        Lesson::seen(capture.page, capture.time, digest, Some(known), observation).map(Some)
    }
}

/// A page on its way to being looked at.
struct PageLook<'a> {
    page: PageId,
    url: &'a str,
    time: Timestamp,
    digest: String,
    html: &'a str,
}

fn is_page(capture: &Capture) -> bool {
    if capture.kind == Kind::Metadata {
        return capture.mime.as_deref() == Some(DELTA_MIME);
    }
    capture.kind <= Kind::Revisit
        && capture.status.is_some_and(|status| (200..300).contains(&status) || status == 304)
}
