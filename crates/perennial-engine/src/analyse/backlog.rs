//! Captures that were not analysed -> analyses, page by page, on all cores.
//!
//! A crash between fetching and analysing leaves such captures, and an import brings thousands. Pages are independent of each
//! other; the observations of one page are compared in order of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use perennial_core::http::soft_error::{is_error_page, title_of};
use perennial_core::http::verdict::{AnswerKind, Identity};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::diff::Delta;
use perennial_core::page::document::{Document, DocumentFormat};
use perennial_core::page::observe::VersionComparison;
use perennial_core::page::segment::BlockTree;
use perennial_core::text::charset::decode_text;
use perennial_core::text::untrusted;
use perennial_core::text::xml::unescaped;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use perennial_core::url::canonical;
use perennial_warc::PayloadDigests;
use perennial_warc::payload::Limits;
use rayon::prelude::*;

use super::analysis::{analyse_answer, analyse_version, delta_xml, empty_delta_xml, n_letters};
use super::store_pool::StorePool;
use super::{Analyst, PageText, SubresourceCache};
use perennial_archive::store::{Analysis, AsideReason, Capture, Commit, Kind, PageState, SetAside, Store};
use perennial_archive::{Archive, LEFT_OUT_BASE, LeftOut, Response, links};

/// Pages between two commits. After a crash at most these are analysed again.
const PAGES_PER_COMMIT: usize = 64;
/// Observations of one page that are laid out before they are compared: their trees are in memory together.
const LAYOUTS_AHEAD: usize = 16;

/// A page with fewer letters than this may be one that its scripts have not rendered.
const MAX_SHELL_LETTERS: usize = 200;

/// A version that was left out so often is stored whole when it is seen again: it is no passing state of the page, and its bytes are
/// fetched and stored for the last time.
const MAX_LEFT_OUT: u64 = 2;

/// What became of a backlog.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BacklogCounts {
    /// Captures that were analysed.
    pub n_captures: u64,
    /// Of them, those that changed in what a reader sees.
    pub n_changed: u64,
    /// Of them, those whose payload could not be read: the archive quarantines them.
    pub n_failed: u64,
    /// Pages whose captures could not even be listed. None of them was analysed.
    pub n_failed_pages: u64,
}

/// Analyses every capture that was not. `progress` is called with the number of captures of each page that is done. The work
/// ends early, after a commit, when `stop` is set. An unreadable capture does not keep others from being analysed.
pub fn analyse_backlog(
    archive: &Archive,
    store: &mut Store,
    analyst: &Arc<Analyst>,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<BacklogCounts> {
    let mut done = BacklogCounts::default();
    let worker = PageAnalyst::new(archive, Arc::clone(analyst));
    for pages in store.backlog()?.chunks(PAGES_PER_COMMIT) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let analysed: Vec<Option<PageAnalyses>> = pages
            .par_iter()
            .map(|&(page, earliest)| {
                let done = worker.analyse_backlog_of_page(page, earliest).ok()?;
                progress(done.analyses.len() as u64);
                Some(done)
            })
            .collect();
        done.n_failed_pages += analysed.iter().filter(|page| page.is_none()).count() as u64;
        store.write(|commit| analysed.iter().flatten().try_for_each(|page| page.keep(commit)))?;
        for page in analysed.iter().flatten() {
            done.n_captures += page.analyses.len() as u64;
            let changes = page.analyses.iter().filter(|analysis| analysis.status.is_change());
            done.n_changed += changes.count() as u64;
            done.n_failed += page.failed.len() as u64;
        }
    }
    Ok(done)
}

/// The analyses of one page.
pub struct PageAnalyses {
    page: PageId,
    /// A capture is older than those that were analysed: the page's analyses are replaced from the first on.
    is_begun_anew: bool,
    /// In order of time.
    pub analyses: Vec<Analysis>,
    /// What the next observation is compared with.
    state: Option<Box<PageState>>,
    /// What the last observation says of other pages, if the page is a listing page.
    pub headlines: Vec<PageHeadline>,
    /// Captures whose payload is not in the archive or could not be read, with their files.
    failed: Vec<(String, SetAside)>,
}

/// What a listing page says of another page of the archive: that it is new, or that it got another headline.
#[derive(Clone, Debug, PartialEq)]
pub struct PageHeadline {
    /// The page that it links to.
    pub page: PageId,
    /// Its words.
    pub title: String,
}

impl PageAnalyses {
    /// The page they are of.
    pub fn page(&self) -> PageId {
        self.page
    }

    /// Stores them.
    pub fn keep(&self, commit: &Commit<'_>) -> anyhow::Result<()> {
        if self.is_begun_anew {
            commit.forget_analyses(self.page)?;
        }
        self.failed.iter().try_for_each(|(file, aside)| commit.set_aside(file, aside))?;
        self.analyses.iter().try_for_each(|analysis| commit.put_analysis(analysis))?;
        match self.state.as_deref().filter(|_| !self.analyses.is_empty()) {
            Some(state) => commit.put_page_state(self.page, state),
            None => Ok(()),
        }
    }
}

/// Analyses the captures of one page after the other; shared by all threads that analyse.
pub struct PageAnalyst {
    analyst: Arc<Analyst>,
    stores: StorePool,
    subresources: SubresourceCache,
}

impl PageAnalyst {
    /// Reads payloads and subresources from `archive`.
    pub fn new(archive: &Archive, analyst: Arc<Analyst>) -> PageAnalyst {
        PageAnalyst { analyst, stores: StorePool::new(archive), subresources: SubresourceCache::default() }
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
        let found = self.stores.with(|archive, store| {
            let is_stored = store.origin_of(url, &sha1, &content)?.is_some();
            if is_stored || store.n_left_out_looks(page, &content)? >= MAX_LEFT_OUT {
                return Ok(None);
            }
            // The visit before may not be analysed yet: the state must be that after it.
            Ok(self.analyse(archive, store, page, store.page_state(page)?, false)?.state)
        })?;
        let Some(state) = found.as_deref() else { return Ok(None) };
        // A delta from a version that nobody could name later would be lost.
        let Some(base) = state.shown.clone() else { return Ok(None) };
        let identity = Identity::Payload(content.clone());
        let (analysis, delta) = match state.identity == identity {
            true => {
                let status = ChangeStatus::Unchanged;
                (analyse_answer(page, time, &identity, Some(state), status).0, empty_delta_xml())
            }
            false => {
                let comparison = self.compare(Some(state), self.tree(url, time, html))?;
                let (delta, title) = (delta_xml(&comparison), Some(shown_title(html)));
                (analyse_version(page, time, identity, Some(state), comparison, title)?.0, delta)
            }
        };
        let left_out = LeftOut {
            delta,
            content,
            length: payload.len() as u64,
            importance: analysis.status.observed_importance().get(),
            base,
        };
        Ok((!analysis.is_indexed).then_some(left_out))
    }

    /// Analyses the captures since the last one that was analysed.
    pub fn analyse_new(&self, page: PageId) -> anyhow::Result<PageAnalyses> {
        self.stores.with(|archive, store| {
            let mut done = self.analyse(archive, store, page, store.page_state(page)?, false)?;
            done.headlines = new_headlines(store, &done.analyses)?;
            Ok(done)
        })
    }

    /// Analyses all captures that were not, also if some are older than those that were.
    fn analyse_backlog_of_page(&self, page: PageId, earliest: Timestamp) -> anyhow::Result<PageAnalyses> {
        self.stores.with(|archive, store| {
            let (state, is_begun_anew) = match store.page_state(page)? {
                Some(state) if earliest < state.time => (None, true),
                state => (state, false),
            };
            self.analyse(archive, store, page, state, is_begun_anew)
        })
    }

    /// Analyses the captures after the last one that was analysed.
    fn analyse(
        &self,
        archive: &Archive,
        store: &Store,
        page: PageId,
        state: Option<PageState>,
        is_begun_anew: bool,
    ) -> anyhow::Result<PageAnalyses> {
        let analysed = state.as_ref().map(|state| state.time);
        let (analyses, headlines, failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut done =
            PageAnalyses { page, is_begun_anew, analyses, state: state.map(Box::new), headlines, failed };
        // From the last observation that was analysed on: that one stands before the first that waits.
        let from = analysed.map(|time| time - Span::from_millis(1));
        let (mut before, mut waiting) = (None, Vec::new());
        for capture in store.observed_captures(page, from)? {
            let before: Option<Capture> = before.replace(capture.clone());
            if analysed.is_none_or(|analysed| capture.time > analysed) {
                waiting.push(PendingCapture { before, capture });
            }
        }
        for window in waiting.chunks(LAYOUTS_AHEAD) {
            for (waiting, ahead) in window.iter().zip(self.lay_out_ahead(window)) {
                let state = done.state.as_deref();
                let before = state.map(|state| Predecessor { state, capture: waiting.before.as_ref() });
                let analysed = self.analyse_capture(archive, store, &waiting.capture, before, ahead);
                let (analysis, state) =
                    match analysed.and_then(|found| found.context("its payload is not in the archive")) {
                        Ok(found) => found,
                        // A capture that cannot be read gets an analysis too, so that no later start tries it again.
                        Err(error) => {
                            done.failed.push(failed_capture(&waiting.capture, &error));
                            by_answer(&waiting.capture, state)
                        }
                    };
                done.analyses.push(analysis);
                done.state = Some(Box::new(state));
            }
        }
        Ok(done)
    }

    fn compare(&self, state: Option<&PageState>, tree: BlockTree) -> anyhow::Result<VersionComparison> {
        let before =
            state.map(|state| Ok::<_, anyhow::Error>((state.read_tree()?, &state.noise))).transpose()?;
        let before = before.as_ref().and_then(|(tree, noise)| Some((tree.as_deref()?, *noise)));
        Ok(self.analyst.compare(before, tree))
    }

    /// Lays out the captures of a window that need it, on all cores: what a capture shows does not depend on those before
    /// it. So a page with a long history keeps all cores busy, although its captures are compared one by one.
    fn lay_out_ahead(&self, window: &[PendingCapture]) -> Vec<Option<anyhow::Result<CaptureContent>>> {
        match window {
            // While a crawl runs there is one capture, which its analyst lays out itself.
            [_] => vec![None],
            _ => window
                .par_iter()
                .with_max_len(1)
                .map(|waiting| waiting.needs_layout().then(|| self.shown(&waiting.capture)))
                .collect(),
        }
    }

    /// `None` when the payload is not in the archive. `ahead` is what was laid out already.
    fn analyse_capture(
        &self,
        archive: &Archive,
        store: &Store,
        capture: &Capture,
        before: Option<Predecessor<'_>>,
        ahead: Option<anyhow::Result<CaptureContent>>,
    ) -> anyhow::Result<Option<(Analysis, PageState)>> {
        if capture.kind == Kind::Metadata {
            return self.analyse_delta(archive, store, capture, before);
        }
        let state = before.map(|before| before.state);
        let is_same = state.is_some_and(|state| state.identity == capture.identity);
        if is_same || capture.answer != Some(AnswerKind::Content) {
            return Ok(Some(by_answer(capture, state)));
        }
        let (page, time, identity) = (capture.page, capture.time, &capture.identity);
        match ahead.unwrap_or_else(|| self.shown(capture))? {
            CaptureContent::Missing => Ok(None),
            CaptureContent::Unreadable => Ok(Some(by_answer(capture, state))),
            CaptureContent::Error => {
                let identity = Identity::SoftError(capture.digest.clone());
                let before = state.map(PageState::before);
                let status = ChangeStatus::between(before, AnswerKind::Gone, &identity);
                let status = status.unwrap_or(ChangeStatus::Absent);
                Ok(Some(analyse_answer(page, time, &identity, state, status)))
            }
            CaptureContent::Tree(tree, _) if is_unrendered(capture, state, &tree)? => {
                Ok(Some(analyse_answer(page, time, identity, state, ChangeStatus::Unchanged)))
            }
            CaptureContent::Tree(tree, title) => {
                let comparison = self.compare(state, *tree)?;
                analyse_version(page, time, identity.clone(), state, comparison, Some(title)).map(Some)
            }
        }
    }

    /// Reads and lays out what a capture shows.
    fn shown(&self, capture: &Capture) -> anyhow::Result<CaptureContent> {
        let document = self.stores.with(|archive, store| archive.document(store, capture))?;
        let Some(document) = document else { return Ok(CaptureContent::Missing) };
        if !links::is_html(&document.head) {
            return Ok(shown_document(capture, &document));
        }
        let html = decode_text(&document.bytes, document.head.get("Content-Type").as_deref());
        let tree = self.tree(&capture.url, capture.time, &html);
        let texts = tree.leaves().flat_map(|leaf| &leaf.texts).map(|text| text.text.as_str());
        let title = shown_title(&html);
        match is_error_page(&title, texts) {
            true => Ok(CaptureContent::Error),
            false => Ok(CaptureContent::Tree(Box::new(tree), title)),
        }
    }

    fn tree(&self, url: &str, time: Timestamp, html: &str) -> BlockTree {
        let subresources = |wanted: &str| self.subresources.find(&self.stores, wanted, time);
        self.analyst.tree(&PageText { url, version: &time.to_rfc3339(), html, subresources: &subresources })
    }

    /// A version that was left out: its delta applied to the version that it was made from gives what was seen. `None` if the
    /// page's state is of another version.
    fn analyse_delta(
        &self,
        archive: &Archive,
        store: &Store,
        capture: &Capture,
        before: Option<Predecessor<'_>>,
    ) -> anyhow::Result<Option<(Analysis, PageState)>> {
        let Some(before) = before else { return Ok(None) };
        let (state, identity) = (before.state, &capture.identity);
        let stored = archive.stored(capture, Limits::default())?;
        if is_named(store, identity, &state.identity) {
            return Ok(Some(by_answer(capture, Some(state))));
        }
        if !before.is_delta_base(store, capture, stored.header.get(LEFT_OUT_BASE)) {
            return Ok(None);
        }
        let Some(tree_before) = state.read_tree()? else { return Ok(None) };
        let Ok(delta) = Delta::from_xml(&String::from_utf8_lossy(&stored.payload.bytes)) else {
            return Ok(None);
        };
        let Ok(mut tree) = delta.apply(&tree_before) else { return Ok(None) };
        tree.url.clone_from(&capture.url);
        tree.version = capture.time.to_rfc3339();
        let comparison = self.analyst.compare(Some((&tree_before, &state.noise)), tree);
        let (page, time) = (capture.page, capture.time);
        analyse_version(page, time, identity.clone(), Some(state), comparison, None).map(Some)
    }
}

/// What a capture follows: the page's state, and the capture just before it.
#[derive(Clone, Copy)]
struct Predecessor<'a> {
    state: &'a PageState,
    capture: Option<&'a Capture>,
}

impl Predecessor<'_> {
    /// Whether the delta of a left-out version was made from the version of the state. If its record does not say what it was
    /// made from, that is sure only if nothing can have come between: the capture before it was analysed and precedes it in
    /// the same file.
    fn is_delta_base(&self, store: &Store, delta: &Capture, named: Option<&str>) -> bool {
        let Some(shown) = &self.state.shown else { return false };
        match named {
            Some(named) => is_named(store, &Identity::parse(named), &shown.identity),
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

/// A new item is a headline of a page that was never captured: another link to a captured page is not a change of it.
fn new_headlines(store: &Store, analyses: &[Analysis]) -> anyhow::Result<Vec<PageHeadline>> {
    let mut headlines = Vec::new();
    for item in analyses.last().iter().flat_map(|analysis| &analysis.items) {
        let Some(url) = canonical::parse(&item.url) else { continue };
        let Some(page) = store.page(url.as_str())? else { continue };
        if item.is_retitled || page.n_captures == 0 {
            headlines.push(PageHeadline { page: page.id, title: item.title.clone() });
        }
    }
    Ok(headlines)
}

/// What is noted of a capture that could not be read.
fn failed_capture(capture: &Capture, error: &anyhow::Error) -> (String, SetAside) {
    let what = untrusted::quoted(&format!("{error:#}")).into_owned();
    (capture.file.clone(), SetAside { offset: capture.offset, reason: AsideReason::Analysis, what })
}

/// A capture that was not analysed, and the one just before it.
struct PendingCapture {
    before: Option<Capture>,
    capture: Capture,
}

impl PendingCapture {
    /// The same answer again, a redirect or a delta needs no layout.
    fn needs_layout(&self) -> bool {
        let is_repeated = self.before.as_ref().is_some_and(|before| before.identity == self.capture.identity);
        self.capture.kind != Kind::Metadata
            && self.capture.answer == Some(AnswerKind::Content)
            && !is_repeated
    }
}

/// What a capture shows.
enum CaptureContent {
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
fn shown_document(capture: &Capture, document: &Response) -> CaptureContent {
    let content_type = document.head.get("Content-Type");
    let format = DocumentFormat::of(content_type.as_deref(), &capture.url, &document.bytes);
    let read = format.and_then(|format| format.read(&capture.url, content_type.as_deref(), &document.bytes));
    let Some(Document { mut tree, title }) = read else { return CaptureContent::Unreadable };
    tree.url.clone_from(&capture.url);
    tree.version = capture.time.to_rfc3339();
    CaptureContent::Tree(Box::new(tree), title)
}

/// Whether a page that a browser rendered before was delivered and not rendered: without its scripts there is hardly anything
/// to see, which says nothing of the page.
fn is_unrendered(capture: &Capture, state: Option<&PageState>, tree: &BlockTree) -> anyhow::Result<bool> {
    let Some(state) = state.filter(|state| state.identity.is_rendered()) else { return Ok(false) };
    let n_now = n_letters(tree);
    let is_shell = !capture.identity.is_rendered() && n_now < MAX_SHELL_LETTERS;
    Ok(is_shell && state.read_tree()?.is_some_and(|before| n_now < n_letters(&before)))
}

/// Analyses a capture by its answer and the answer before it.
fn by_answer(capture: &Capture, state: Option<&PageState>) -> (Analysis, PageState) {
    let kind = capture.answer.unwrap_or(AnswerKind::Content);
    let status = ChangeStatus::between(state.map(PageState::before), kind, &capture.identity);
    let status = status.unwrap_or_else(ChangeStatus::unknown);
    analyse_answer(capture.page, capture.time, &capture.identity, state, status)
}

/// The title as a reader sees it: without references such as `&amp;`.
fn shown_title(html: &str) -> String {
    unescaped(&title_of(html)).split_whitespace().collect::<Vec<_>>().join(" ")
}
