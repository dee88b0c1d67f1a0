//! Looks without a lesson -> lessons, page by page, on all cores.
//!
//! A crash between fetching and analysing leaves such looks, an import brings them by the thousand. Pages
//! are independent of each other; within one page looks are compared in order of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use perennial_core::charset::decode_text;
use perennial_core::diff::Delta;
use perennial_core::look::Seen;
use perennial_core::page::PageId;
use perennial_core::payload::Limits;
use perennial_core::time::Timestamp;
use perennial_core::verdict::AnswerKind;
use perennial_core::warc::sha1_label;
use rayon::prelude::*;

use super::lesson::{KnownPage, Lesson};
use super::reader::Readers;
use super::{Analyst, Look, Requisites};
use crate::archive::{Archive, LEFT_OUT_DIGEST, LeftOut, links};
use crate::store::{Capture, Commit, Kind, Store};

/// Pages between two commits: what a crash may cost is analysed again.
const PAGES_PER_COMMIT: usize = 64;

/// What an analysis did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Analysed {
    /// Looks that have a lesson now.
    pub n_captures: u64,
    /// Of them, those that changed in what a reader sees.
    pub n_changed: u64,
    /// Of them, those whose payload could not be read.
    pub n_failed: u64,
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
    for pages in store.backlog()?.chunks(PAGES_PER_COMMIT) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let analysed: Vec<PageLessons> = pages
            .par_iter()
            .map(|&(page, earliest)| {
                let lessons = worker.catch_up(page, earliest)?;
                progress(lessons.lessons.len() as u64);
                Ok(lessons)
            })
            .collect::<anyhow::Result<_>>()?;
        store.write(|commit| analysed.iter().try_for_each(|page| page.keep(commit)))?;
        for page in &analysed {
            done.n_captures += page.lessons.len() as u64;
            done.n_changed += page.lessons.iter().filter(|lesson| !lesson.is_unchanged()).count() as u64;
            done.n_failed += page.n_failed;
        }
    }
    Ok(done)
}

/// What the captures of one page taught.
pub struct PageLessons {
    page: PageId,
    /// A capture came that is older than what was analysed: the page's history is told again.
    is_begun_anew: bool,
    /// In order of time.
    pub lessons: Vec<Lesson>,
    /// Looks whose payload is not in the archive.
    pub n_failed: u64,
}

impl PageLessons {
    /// Writes them down.
    pub fn keep(&self, commit: &Commit<'_>) -> anyhow::Result<()> {
        if self.is_begun_anew {
            commit.forget_lessons(self.page)?;
        }
        self.lessons.iter().try_for_each(|lesson| lesson.keep(commit))
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
            KnownPage::load(store, page)
        })?;
        let Some(known) = found else { return Ok(None) };
        let lesson = match known.shown() == Some(&digest) {
            true => Lesson::without_layout(page, time, &digest, Some(&known), Seen::Same).0,
            false => {
                let look = PageLook { page, url, time, digest: digest.clone(), html };
                self.look(look, Some(&known))?.0
            }
        };
        let left_out = LeftOut {
            delta: lesson.delta_xml()?,
            digest,
            length: payload.len() as u64,
            importance: lesson.seen().importance().get(),
        };
        Ok((!lesson.is_indexed()).then_some(left_out))
    }

    /// The captures since the last one that was analysed.
    pub fn go_on(&self, page: PageId) -> anyhow::Result<PageLessons> {
        self.readers.with(|archive, store| {
            let known = KnownPage::load(store, page)?;
            self.analyse(archive, store, page, known, false)
        })
    }

    /// All looks that wait, also when some are older than what was analysed.
    fn catch_up(&self, page: PageId, earliest: Timestamp) -> anyhow::Result<PageLessons> {
        self.readers.with(|archive, store| match KnownPage::load(store, page)? {
            Some(known) if earliest < known.time => self.analyse(archive, store, page, None, true),
            known => self.analyse(archive, store, page, known, false),
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
        for capture in store.looks_after(page, known.as_ref().map(|known| known.time))? {
            let (lesson, next) = match self.lesson(archive, store, &capture, known.as_ref()) {
                Ok(Some(learned)) => learned,
                // What cannot be read is no reason to stop, nor to try again at every start.
                Ok(None) | Err(_) => {
                    done.n_failed += 1;
                    without_layout(&capture, known.as_ref())
                }
            };
            done.lessons.push(lesson);
            known = Some(next);
        }
        Ok(done)
    }

    /// `None` when the payload is not in the archive.
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
        let is_same = known.is_some_and(|known| known.shown() == Some(&capture.identity));
        if is_same || capture.answer != Some(AnswerKind::Content) {
            return Ok(Some(without_layout(capture, known)));
        }
        let Some(payload) = archive.payload(store, capture)? else { return Ok(None) };
        if !links::is_html(&payload.head) {
            return Ok(Some(without_layout(capture, known)));
        }
        let html = decode_text(&payload.bytes, payload.head.get("Content-Type").as_deref());
        let digest = capture.identity.clone();
        let look =
            PageLook { page: capture.page, url: &capture.url, time: capture.time, digest, html: &html };
        self.look(look, known).map(Some)
    }

    fn look(&self, page: PageLook<'_>, known: Option<&KnownPage>) -> anyhow::Result<(Lesson, KnownPage)> {
        let version = page.time.to_rfc3339();
        let requisites = |url: &str| self.requisites.find(&self.readers, url, page.time);
        let look = Look { url: page.url, version: &version, html: page.html, requisites: &requisites };
        let before = known.map(KnownPage::known).transpose()?.flatten();
        let observation = self.analyst.observe(before.as_ref(), &look);
        Lesson::of_observation(page.page, page.time, page.digest, known, observation)
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
        if known.shown() == Some(&digest) {
            return Ok(Some(without_layout(capture, Some(known))));
        }
        let Some(before) = known.known()? else { return Ok(None) };
        let Ok(delta) = Delta::from_xml(&String::from_utf8_lossy(&stored.payload.bytes)) else {
            return Ok(None);
        };
        let Ok(mut tree) = delta.apply(&before.tree) else { return Ok(None) };
        tree.url.clone_from(&capture.url);
        tree.version = capture.time.to_rfc3339();
        let observation = self.analyst.compare(Some(&before), tree);
        Lesson::of_observation(capture.page, capture.time, digest, Some(known), observation).map(Some)
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

/// What a look tells by its answer and the answer before it.
fn without_layout(capture: &Capture, known: Option<&KnownPage>) -> (Lesson, KnownPage) {
    let kind = capture.answer.unwrap_or(AnswerKind::Content);
    let before = known.and_then(KnownPage::shown);
    let seen = Seen::between(before, kind, &capture.identity).unwrap_or(Seen::Unjudged);
    Lesson::without_layout(capture.page, capture.time, &capture.identity, known, seen)
}
