//! Looks without a lesson -> lessons, page by page, on all cores.
//!
//! A crash between fetching and analysing leaves such looks, and an import brings thousands. Pages are independent of each
//! other; the looks at one page are compared in order of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use perennial_core::http::soft_error::{is_error_page, title_of};
use perennial_core::http::verdict::{AnswerKind, Identity};
use perennial_core::page::diff::Delta;
use perennial_core::page::document::{Document, DocumentFormat};
use perennial_core::page::look::ChangeStatus;
use perennial_core::page::segment::BlockTree;
use perennial_core::text::charset::decode_text;
use perennial_core::text::foreign;
use perennial_core::text::xml::unescaped;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use perennial_core::url::canonical;
use perennial_warc::PayloadDigests;
use perennial_warc::payload::Limits;
use rayon::prelude::*;

use super::lesson::{KnownPage, Lesson, delta_xml, empty_delta_xml, n_letters};
use super::reader::Readers;
use super::{Analyst, PageText, Requisites};
use perennial_archive::store::{AsideReason, Capture, Commit, Kind, SetAside, Store};
use perennial_archive::{Archive, LEFT_OUT_BASE, LeftOut, Response, links};

/// Pages between two commits. After a crash at most these are analysed again.
const PAGES_PER_COMMIT: usize = 64;
/// Looks at one page that are laid out before they are compared: their trees are in memory together.
const LOOKS_AHEAD: usize = 16;

/// A page with fewer letters than this may be one that its scripts have not drawn.
const MAX_SHELL_LETTERS: usize = 200;

/// A version that was left out so often is stored whole when it is seen again: it is no passing state of the page, and its bytes are
/// fetched and stored for the last time.
const MAX_LEFT_OUT: u64 = 2;

/// The counts of an analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Analysed {
    /// Looks that have a lesson now.
    pub n_captures: u64,
    /// Of them, those that changed in what a reader sees.
    pub n_changed: u64,
    /// Of them, those whose payload could not be read: the archive names them as set aside.
    pub n_failed: u64,
    /// Pages of which not even the looks could be read. They have no lesson.
    pub n_failed_pages: u64,
}

/// Analyses every look without a lesson. `progress` is called with the number of looks of each page that is done. The work
/// ends early, after a commit, when `stop` is set. What cannot be read keeps nothing else from being analysed.
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
        let analysed: Vec<Option<PageLessons>> = pages
            .par_iter()
            .map(|&(page, earliest)| {
                let lessons = worker.catch_up(page, earliest).ok()?;
                progress(lessons.lessons.len() as u64);
                Some(lessons)
            })
            .collect();
        done.n_failed_pages += analysed.iter().filter(|page| page.is_none()).count() as u64;
        store.write(|commit| analysed.iter().flatten().try_for_each(|page| page.keep(commit)))?;
        for page in analysed.iter().flatten() {
            done.n_captures += page.lessons.len() as u64;
            done.n_changed += page.lessons.iter().filter(|lesson| lesson.is_change()).count() as u64;
            done.n_failed += page.failed.len() as u64;
        }
    }
    Ok(done)
}

/// The lessons of one page.
pub struct PageLessons {
    page: PageId,
    /// A look is older than those that were analysed: the page's lessons are replaced from the first look on.
    is_begun_anew: bool,
    /// In order of time.
    pub lessons: Vec<Lesson>,
    /// What the last look says of other pages, if it was at a front page.
    pub headlines: Vec<Headline>,
    /// Looks whose payload is not in the archive or could not be read, with their files.
    failed: Vec<(String, SetAside)>,
}

/// What a front page says of another page of the archive: that it is new, or that it got another headline.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The page that it leads to.
    pub page: PageId,
    /// Its words.
    pub title: String,
}

impl PageLessons {
    /// The page they are of.
    pub fn page(&self) -> PageId {
        self.page
    }

    /// Stores them.
    pub fn keep(&self, commit: &Commit<'_>) -> anyhow::Result<()> {
        if self.is_begun_anew {
            commit.forget_lessons(self.page)?;
        }
        self.failed.iter().try_for_each(|(file, aside)| commit.set_aside(file, aside))?;
        self.lessons.iter().try_for_each(|lesson| lesson.keep(commit))
    }
}

/// Analyses the looks at one page after the other; shared by all threads that analyse.
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

    /// How many words pages show and no block holds, since this was last asked.
    pub fn take_lost_words(&self) -> u64 {
        self.analyst.take_lost_words()
    }

    /// What is stored instead of the payload of a version that is not worth indexing (`keep = "important"`): the delta
    /// that the next analysis will find. `None`: the version is worth indexing or seen again and again, or the archive has its
    /// payload already.
    pub fn leave_out(
        &self,
        page: PageId,
        url: &str,
        time: Timestamp,
        payload: &[u8],
        html: &str,
    ) -> anyhow::Result<Option<LeftOut>> {
        let PayloadDigests { sha1, content } = PayloadDigests::of(payload);
        let found = self.readers.with(|archive, store| {
            let is_stored = store.origin_of(url, &sha1, &content)?.is_some();
            if is_stored || store.n_left_out_looks(page, &content)? >= MAX_LEFT_OUT {
                return Ok(None);
            }
            // The lesson of the visit before may still be on its way: what is known must be what that visit showed.
            let known = KnownPage::load(store, page)?;
            Ok(self.analyse(archive, store, page, known, false)?.1)
        })?;
        let Some(known) = found else { return Ok(None) };
        // A delta from a version that nobody could name later would be lost.
        let Some(base) = known.laid_out().cloned() else { return Ok(None) };
        let identity = Identity::Payload(content.clone());
        let (lesson, delta) = match *known.identity() == identity {
            true => {
                let lesson =
                    Lesson::without_layout(page, time, &identity, Some(&known), ChangeStatus::Unchanged).0;
                (lesson, empty_delta_xml())
            }
            false => {
                let observation = self.analyst.compare(known.known()?.as_ref(), self.tree(url, time, html));
                let (delta, title) = (delta_xml(&observation), Some(shown_title(html)));
                (Lesson::of_observation(page, time, identity, Some(&known), observation, title)?.0, delta)
            }
        };
        let left_out = LeftOut {
            delta,
            content,
            length: payload.len() as u64,
            importance: lesson.status().observed_importance().get(),
            base,
        };
        Ok((!lesson.is_indexed()).then_some(left_out))
    }

    /// Analyses the looks since the last one that was analysed.
    pub fn go_on(&self, page: PageId) -> anyhow::Result<PageLessons> {
        self.readers.with(|archive, store| {
            let known = KnownPage::load(store, page)?;
            let mut done = self.analyse(archive, store, page, known, false)?.0;
            done.headlines = headlines_of(store, &done.lessons)?;
            Ok(done)
        })
    }

    /// Analyses all looks without a lesson, also when some are older than those that were analysed.
    fn catch_up(&self, page: PageId, earliest: Timestamp) -> anyhow::Result<PageLessons> {
        self.readers.with(|archive, store| {
            let (known, is_begun_anew) = match KnownPage::load(store, page)? {
                Some(known) if earliest < known.time => (None, true),
                known => (known, false),
            };
            Ok(self.analyse(archive, store, page, known, is_begun_anew)?.0)
        })
    }

    /// What the looks after the last one that was analysed taught, and what is known then.
    fn analyse(
        &self,
        archive: &Archive,
        store: &Store,
        page: PageId,
        mut known: Option<KnownPage>,
        is_begun_anew: bool,
    ) -> anyhow::Result<(PageLessons, Option<KnownPage>)> {
        let mut done = PageLessons {
            page,
            is_begun_anew,
            lessons: Vec::new(),
            headlines: Vec::new(),
            failed: Vec::new(),
        };
        let analysed = known.as_ref().map(|known| known.time);
        // From the last look that was analysed on: that one stands before the first that waits.
        let from = analysed.map(|time| time - Span::from_millis(1));
        let (mut before, mut waiting) = (None, Vec::new());
        for capture in store.looks_after(page, from)? {
            let before: Option<Capture> = before.replace(capture.clone());
            if analysed.is_none_or(|analysed| capture.time > analysed) {
                waiting.push(WaitingLook { before, capture });
            }
        }
        for window in waiting.chunks(LOOKS_AHEAD) {
            for (look, ahead) in window.iter().zip(self.lay_out_ahead(window)) {
                let before = known.as_ref().map(|known| Before { known, capture: look.before.as_ref() });
                let learned = self.lesson(archive, store, &look.capture, before, ahead);
                let (lesson, next) =
                    match learned.and_then(|learned| learned.context("its payload is not in the archive")) {
                        Ok(learned) => learned,
                        // A look that cannot be read gets a lesson too, so that no later start tries it again.
                        Err(error) => {
                            done.failed.push(failed_look(&look.capture, &error));
                            without_layout(&look.capture, known.as_ref())
                        }
                    };
                done.lessons.push(lesson);
                known = Some(next);
            }
        }
        Ok((done, known))
    }

    /// Lays out the looks of a window that need it, on all cores: what a capture shows does not depend on the looks before
    /// it. So a page with a long history keeps all cores busy, although its looks are compared one by one.
    fn lay_out_ahead(&self, window: &[WaitingLook]) -> Vec<Option<anyhow::Result<Shown>>> {
        match window {
            // While a crawl runs there is one look, which its analyst lays out itself.
            [_] => vec![None],
            _ => window
                .par_iter()
                .with_max_len(1)
                .map(|look| look.needs_layout().then(|| self.shown(&look.capture)))
                .collect(),
        }
    }

    /// `None` when the payload is not in the archive. `ahead` is what was laid out already.
    fn lesson(
        &self,
        archive: &Archive,
        store: &Store,
        capture: &Capture,
        before: Option<Before<'_>>,
        ahead: Option<anyhow::Result<Shown>>,
    ) -> anyhow::Result<Option<(Lesson, KnownPage)>> {
        if capture.kind == Kind::Metadata {
            return self.lesson_of_delta(archive, store, capture, before);
        }
        let known = before.map(|before| before.known);
        let is_same = known.is_some_and(|known| *known.identity() == capture.identity);
        if is_same || capture.answer != Some(AnswerKind::Content) {
            return Ok(Some(without_layout(capture, known)));
        }
        match ahead.unwrap_or_else(|| self.shown(capture))? {
            Shown::Missing => Ok(None),
            Shown::Unreadable => Ok(Some(without_layout(capture, known))),
            Shown::Error => {
                let identity = Identity::SoftError(capture.digest.clone());
                let before = known.map(KnownPage::before);
                let status = ChangeStatus::between(before, AnswerKind::Gone, &identity);
                let status = status.unwrap_or(ChangeStatus::Absent);
                Ok(Some(Lesson::without_layout(capture.page, capture.time, &identity, known, status)))
            }
            Shown::Tree(tree, _) if is_unrendered(capture, known, &tree)? => {
                let (page, time, identity) = (capture.page, capture.time, &capture.identity);
                Ok(Some(Lesson::without_layout(page, time, identity, known, ChangeStatus::Unchanged)))
            }
            Shown::Tree(tree, title) => {
                let before = known.map(KnownPage::known).transpose()?.flatten();
                let observation = self.analyst.compare(before.as_ref(), *tree);
                let (page, time, identity) = (capture.page, capture.time, capture.identity.clone());
                Lesson::of_observation(page, time, identity, known, observation, Some(title)).map(Some)
            }
        }
    }

    /// Reads and lays out what a capture shows.
    fn shown(&self, capture: &Capture) -> anyhow::Result<Shown> {
        let document = self.readers.with(|archive, store| archive.document(store, capture))?;
        let Some(document) = document else { return Ok(Shown::Missing) };
        if !links::is_html(&document.head) {
            return Ok(shown_document(capture, &document));
        }
        let html = decode_text(&document.bytes, document.head.get("Content-Type").as_deref());
        let tree = self.tree(&capture.url, capture.time, &html);
        let texts = tree.leaves().flat_map(|leaf| &leaf.texts).map(|text| text.text.as_str());
        let title = shown_title(&html);
        match is_error_page(&title, texts) {
            true => Ok(Shown::Error),
            false => Ok(Shown::Tree(Box::new(tree), title)),
        }
    }

    fn tree(&self, url: &str, time: Timestamp, html: &str) -> BlockTree {
        let requisites = |wanted: &str| self.requisites.find(&self.readers, wanted, time);
        self.analyst.tree(&PageText { url, version: &time.to_rfc3339(), html, requisites: &requisites })
    }

    /// A version that was left out: its delta applied to the version that it was made from gives what was seen. `None` when
    /// what is known is another version.
    fn lesson_of_delta(
        &self,
        archive: &Archive,
        store: &Store,
        capture: &Capture,
        before: Option<Before<'_>>,
    ) -> anyhow::Result<Option<(Lesson, KnownPage)>> {
        let Some(before) = before else { return Ok(None) };
        let stored = archive.stored(capture, Limits::default())?;
        let identity = capture.identity.clone();
        if is_named(store, &identity, before.known.identity()) {
            return Ok(Some(without_layout(capture, Some(before.known))));
        }
        if !before.is_base_of(store, capture, stored.header.get(LEFT_OUT_BASE)) {
            return Ok(None);
        }
        let Some(known) = before.known.known()? else { return Ok(None) };
        let Ok(delta) = Delta::from_xml(&String::from_utf8_lossy(&stored.payload.bytes)) else {
            return Ok(None);
        };
        let Ok(mut tree) = delta.apply(&known.tree) else { return Ok(None) };
        tree.url.clone_from(&capture.url);
        tree.version = capture.time.to_rfc3339();
        let observation = self.analyst.compare(Some(&known), tree);
        let (page, time) = (capture.page, capture.time);
        Lesson::of_observation(page, time, identity, Some(before.known), observation, None).map(Some)
    }
}

/// What stands before a look: what is known, and the look just before it.
#[derive(Clone, Copy)]
struct Before<'a> {
    known: &'a KnownPage,
    capture: Option<&'a Capture>,
}

impl Before<'_> {
    /// Whether the delta of a left-out version was made from what is known. Where its record does not say what it was
    /// made from, that is sure only if nothing can have come between: the look before it was analysed and stands before
    /// it in the same file.
    fn is_base_of(&self, store: &Store, delta: &Capture, named: Option<&str>) -> bool {
        let Some(laid_out) = self.known.laid_out() else { return false };
        match named {
            Some(named) => is_named(store, &Identity::parse(named), &laid_out.identity),
            None => {
                self.capture.is_some_and(|before| before.file == delta.file && before.offset < delta.offset)
            }
        }
    }
}

/// Whether a record means the version with this identity. Records of earlier versions of this program name it by the
/// SHA-1 of its payload.
fn is_named(store: &Store, named: &Identity, identity: &Identity) -> bool {
    named == identity || store.is_digest_of(&named.to_string(), &identity.to_string()).unwrap_or_default()
}

/// An item that came is told of a page that was never seen: that it is linked from here, too, is no news of a page that is known.
fn headlines_of(store: &Store, lessons: &[Lesson]) -> anyhow::Result<Vec<Headline>> {
    let mut headlines = Vec::new();
    for item in lessons.last().map_or(&[][..], Lesson::items) {
        let Some(url) = canonical::parse(&item.address) else { continue };
        let Some(page) = store.page(url.as_str())? else { continue };
        if item.is_retitled || page.n_captures == 0 {
            headlines.push(Headline { page: page.id, title: item.title.clone() });
        }
    }
    Ok(headlines)
}

/// What is noted of a look that could not be read.
fn failed_look(capture: &Capture, error: &anyhow::Error) -> (String, SetAside) {
    let what = foreign::quoted(&format!("{error:#}")).into_owned();
    (capture.file.clone(), SetAside { offset: capture.offset, reason: AsideReason::Analysis, what })
}

/// A look without a lesson, and the look just before it.
struct WaitingLook {
    before: Option<Capture>,
    capture: Capture,
}

impl WaitingLook {
    /// The same answer again, a redirect or a delta needs no layout.
    fn needs_layout(&self) -> bool {
        let is_repeated = self.before.as_ref().is_some_and(|before| before.identity == self.capture.identity);
        self.capture.kind != Kind::Metadata
            && self.capture.answer == Some(AnswerKind::Content)
            && !is_repeated
    }
}

/// What a capture shows.
enum Shown {
    /// The blocks of a page, and its title.
    Tree(Box<BlockTree>, String),
    /// Something that cannot be read, such as a picture: it is judged by its digest.
    Unreadable,
    /// A page that says that there is none.
    Error,
    /// Nothing, because its payload is not in the archive.
    Missing,
}

/// What a capture of a document that is no HTML shows.
fn shown_document(capture: &Capture, document: &Response) -> Shown {
    let content_type = document.head.get("Content-Type");
    let format = DocumentFormat::of(content_type.as_deref(), &capture.url, &document.bytes);
    let read = format.and_then(|format| format.read(&capture.url, content_type.as_deref(), &document.bytes));
    let Some(Document { mut tree, title }) = read else { return Shown::Unreadable };
    tree.url.clone_from(&capture.url);
    tree.version = capture.time.to_rfc3339();
    Shown::Tree(Box::new(tree), title)
}

/// Whether a page that a browser drew before was delivered and not drawn: without its scripts there is hardly anything to
/// see, which says nothing of the page.
fn is_unrendered(capture: &Capture, known: Option<&KnownPage>, tree: &BlockTree) -> anyhow::Result<bool> {
    let Some(known) = known.filter(|known| known.identity().is_rendered()) else { return Ok(false) };
    let n_now = n_letters(tree);
    Ok(!capture.identity.is_rendered() && n_now < MAX_SHELL_LETTERS && n_now < known.n_letters()?)
}

/// The lesson of a look by its answer and the answer before it.
fn without_layout(capture: &Capture, known: Option<&KnownPage>) -> (Lesson, KnownPage) {
    let kind = capture.answer.unwrap_or(AnswerKind::Content);
    let before = known.map(KnownPage::before);
    let status = ChangeStatus::between(before, kind, &capture.identity);
    let status = status.unwrap_or_else(ChangeStatus::unknown);
    Lesson::without_layout(capture.page, capture.time, &capture.identity, known, status)
}

/// The title as a reader sees it: without references such as `&amp;`.
fn shown_title(html: &str) -> String {
    unescaped(&title_of(html)).split_whitespace().collect::<Vec<_>>().join(" ")
}
