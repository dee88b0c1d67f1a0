//! Analyses captures that have no analysis yet, page by page, on all cores.
//!
//! A crash between fetching and analysing leaves such captures, and an import brings thousands. Pages are independent
//! of each other. The observations of one page are compared in chronological order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::http::soft_error::{html_title, is_error_page};
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
use perennial_warc::payload::DecodingLimits;
use rayon::prelude::*;

use super::analysis::{analyse_response, analyse_version, delta_xml, empty_delta_xml, n_letters};
use super::store_pool::StorePool;
use super::{Analyst, PageText, SubresourceCache};
use perennial_archive::store::{
    Analysis, Capture, CaptureKind, Commit, NewTree, PackedTree, PageState, QuarantineReason,
    QuarantinedRecord, Store,
};
use perennial_archive::{Archive, ArchivedResponse, LEFT_OUT_BASE, LeftOutVersion, links};

/// Pages per commit. After a crash at most these are analysed again.
const PAGES_PER_COMMIT: usize = 64;
/// Observations of one page that are laid out before they are compared. All their trees are in memory at once.
const LAYOUTS_AHEAD: usize = 16;

/// A page with less text than this may be a shell that its scripts have not filled.
const MAX_SHELL_LETTERS: usize = 200;

/// A version that was left out this often is stored whole when it appears again. It is evidently not a passing state
/// of the page. Its bytes are then fetched and stored for the last time.
const MAX_LEFT_OUT: u64 = 2;

/// The outcome of [`analyse_backlog`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BacklogCounts {
    /// Analysed captures.
    pub n_captures: u64,
    /// Those whose visible content changed.
    pub n_changed: u64,
    /// Those whose payload was unreadable. The archive quarantines them.
    pub n_failed: u64,
    /// Pages whose captures could not be listed. None of their captures was analysed.
    pub n_failed_pages: u64,
}

/// Analyses every capture up to `until` without an analysis. After each page, `progress` is called with its number of captures.
/// When `stop` is set, the work ends after the current commit. An unreadable capture does not stop the others.
pub fn analyse_backlog(
    archive: &Archive,
    store: &mut Store,
    analyst: &Arc<Analyst>,
    until: Timestamp,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<BacklogCounts> {
    let mut done = BacklogCounts::default();
    let worker = PageAnalyst::new(archive, Arc::clone(analyst), Box::new(move || until));
    for pages in store.backlog(until)?.chunks(PAGES_PER_COMMIT) {
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
        store.write(|commit| analysed.iter().flatten().try_for_each(|page| page.store(commit)))?;
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
    /// Whether a new capture is older than an analysed one. Then all analyses of the page are replaced.
    replaces_all: bool,
    /// In chronological order.
    pub analyses: Vec<Analysis>,
    /// The predecessor of the next observation.
    state: Option<Box<PageState>>,
    /// The headlines in the last observation, if the page is a listing page.
    pub headlines: Vec<PageHeadline>,
    /// Captures with a missing or unreadable payload, with their files.
    failed: Vec<(String, QuarantinedRecord)>,
}

/// A headline on a listing page: the linked page is new, or its headline changed.
#[derive(Clone, Debug, PartialEq)]
pub struct PageHeadline {
    /// The linked page.
    pub page: PageId,
    pub title: String,
}

impl PageAnalyses {
    pub fn page(&self) -> PageId {
        self.page
    }

    pub fn store(&self, commit: &Commit<'_>) -> anyhow::Result<()> {
        if self.replaces_all {
            commit.forget_analyses(self.page)?;
        }
        self.failed.iter().try_for_each(|(file, record)| commit.quarantine(file, record))?;
        self.analyses.iter().try_for_each(|analysis| commit.put_analysis(analysis))?;
        match self.state.as_deref().filter(|_| !self.analyses.is_empty()) {
            Some(state) => commit.put_page_state(self.page, state),
            None => Ok(()),
        }
    }
}

/// Analyses the captures of single pages. All analysing threads share it.
pub struct PageAnalyst {
    analyst: Arc<Analyst>,
    stores: StorePool,
    subresources: SubresourceCache,
    /// The present. Captures dated later are not analysed, because they would hide those made until then.
    now: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

impl PageAnalyst {
    pub fn new(
        archive: &Archive,
        analyst: Arc<Analyst>,
        now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> PageAnalyst {
        let (stores, subresources) = (StorePool::new(archive), SubresourceCache::default());
        PageAnalyst { analyst, stores, subresources, now }
    }

    /// Number of visible words in no block since the last call.
    pub fn take_lost_words(&self) -> u64 {
        self.analyst.take_lost_words()
    }

    /// The delta to store instead of the payload of a version that is not worth indexing (`keep = "important"`).
    /// `None` if the version is worth indexing or keeps coming back, or if the archive already has its payload.
    pub fn leave_out(
        &self,
        page: PageId,
        url: &str,
        time: Timestamp,
        payload: &[u8],
        html: &str,
    ) -> anyhow::Result<Option<LeftOutVersion>> {
        let PayloadDigests { sha1, content } = PayloadDigests::of(payload);
        let found = self.stores.with(|archive, store| {
            let is_stored = store.payload_origin(url, &sha1, &content)?.is_some();
            if is_stored || store.n_left_out_observations(page, &content)? >= MAX_LEFT_OUT {
                return Ok(None);
            }
            // The visit before may not be analysed yet, and its state is needed.
            let (state, replaces_all) = self.state_now(store, page)?;
            Ok(self.analyse(archive, store, page, state, replaces_all)?.state)
        })?;
        let Some(state) = found.as_deref() else { return Ok(None) };
        // Without a named base the delta could never be applied.
        let Some(base) = state.shown.clone() else { return Ok(None) };
        let identity = Identity::Payload(content.clone());
        let (analysis, delta) = match state.identity == identity {
            true => {
                let status = ChangeStatus::Unchanged;
                (analyse_response(page, time, &identity, Some(state), status).0, empty_delta_xml())
            }
            false => {
                let comparison = self.compare(Some(state), self.tree(url, time, html))?;
                let (delta, title) = (delta_xml(&comparison), Some(shown_title(html)));
                (analyse_version(page, time, identity, Some(state), comparison, title)?.0, delta)
            }
        };
        let left_out = LeftOutVersion {
            delta,
            content,
            length: payload.len() as u64,
            importance: analysis.status.observed_importance().get(),
            base,
        };
        Ok((!analysis.is_indexed).then_some(left_out))
    }

    /// Analyses the captures since the last analysed one.
    pub fn analyse_new(&self, page: PageId) -> anyhow::Result<PageAnalyses> {
        self.stores.with(|archive, store| {
            let (state, replaces_all) = self.state_now(store, page)?;
            let mut done = self.analyse(archive, store, page, state, replaces_all)?;
            done.headlines = new_headlines(store, &done.analyses)?;
            Ok(done)
        })
    }

    /// The state of a page, and whether all its analyses must be replaced. A state dated in the future is one of a clock
    /// that was ahead: every capture until then would be older than it, and never analysed.
    fn state_now(&self, store: &Store, page: PageId) -> anyhow::Result<(Option<PageState>, bool)> {
        Ok(match store.page_state(page)? {
            Some(state) if state.time > (self.now)() => (None, true),
            state => (state, false),
        })
    }

    /// Analyses all captures without an analysis, including those older than analysed ones.
    fn analyse_backlog_of_page(&self, page: PageId, earliest: Timestamp) -> anyhow::Result<PageAnalyses> {
        self.stores.with(|archive, store| {
            let (state, replaces_all) = match self.state_now(store, page)? {
                (Some(state), _) if earliest < state.time => (None, true),
                found => found,
            };
            self.analyse(archive, store, page, state, replaces_all)
        })
    }

    fn analyse(
        &self,
        archive: &Archive,
        store: &Store,
        page: PageId,
        state: Option<PageState>,
        replaces_all: bool,
    ) -> anyhow::Result<PageAnalyses> {
        let analysed = state.as_ref().map(|state| state.time);
        let (analyses, headlines, failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut done =
            PageAnalyses { page, replaces_all, analyses, state: state.map(Box::new), headlines, failed };
        // Starts at the last analysed observation, because the first pending one is compared with it.
        let from = analysed.map(|time| time - Span::from_millis(1));
        let (mut before, mut waiting) = (None, Vec::new());
        for capture in store.observed_captures(page, from, (self.now)())? {
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
                        // An unreadable capture gets an analysis too, so later runs do not retry it.
                        Err(error) => {
                            done.failed.push(failed_capture(&waiting.capture, &error));
                            by_response(&waiting.capture, state)
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

    /// Lays out the captures of a window that need it, on all cores. A layout does not depend on earlier captures, so
    /// even one page with a long history keeps all cores busy. The comparisons are sequential.
    fn lay_out_ahead(&self, window: &[PendingCapture]) -> Vec<Option<anyhow::Result<CaptureContent>>> {
        match window {
            // A crawl analyses one capture at a time, on the calling thread.
            [_] => vec![None],
            _ => window
                .par_iter()
                .with_max_len(1)
                .map(|waiting| waiting.needs_layout().then(|| self.shown(&waiting.capture)))
                .collect(),
        }
    }

    /// `None` if the archive lacks the payload. `ahead` is the capture's content if it is already laid out.
    fn analyse_capture(
        &self,
        archive: &Archive,
        store: &Store,
        capture: &Capture,
        before: Option<Predecessor<'_>>,
        ahead: Option<anyhow::Result<CaptureContent>>,
    ) -> anyhow::Result<Option<(Analysis, PageState)>> {
        if capture.kind == CaptureKind::Metadata {
            return self.analyse_delta(archive, store, capture, before);
        }
        let state = before.map(|before| before.state);
        let is_same = state.is_some_and(|state| state.identity == capture.identity);
        if is_same || capture.response_kind != Some(ResponseKind::Content) {
            return Ok(Some(by_response(capture, state)));
        }
        let (page, time, identity) = (capture.page, capture.time, &capture.identity);
        match ahead.unwrap_or_else(|| self.shown(capture))? {
            CaptureContent::Missing => Ok(None),
            CaptureContent::Unreadable => Ok(Some(by_response(capture, state))),
            CaptureContent::Error => {
                let identity = Identity::SoftError(capture.digest.clone());
                let before = state.map(PageState::before);
                let status = ChangeStatus::between(before, ResponseKind::Gone, &identity);
                let status = status.unwrap_or(ChangeStatus::Absent);
                Ok(Some(analyse_response(page, time, &identity, state, status)))
            }
            CaptureContent::Tree(tree, _) if is_unrendered(capture, state, &tree)? => {
                Ok(Some(analyse_response(page, time, identity, state, ChangeStatus::Unchanged)))
            }
            CaptureContent::Tree(tree, title) => {
                let remade = state.map(|state| self.remade(store, page, state, &tree)).transpose()?.flatten();
                let state = remade.as_ref().or(state);
                let comparison = self.compare(state, *tree)?;
                let (mut analysis, mut next) =
                    analyse_version(page, time, identity.clone(), state, comparison, Some(title))?;
                // Earlier changes are read with the tree of the earlier engine, so it remains where it can.
                match (remade.and_then(|state| state.tree), &mut next.tree) {
                    (Some((time_before, tree)), _) if analysis.tree.is_some() => {
                        analysis.remade_before = Some((time_before, NewTree::following(tree, None)?));
                    }
                    (Some(_), Some((tree_time, tree))) => {
                        *tree_time = time;
                        analysis.tree = Some(NewTree::following(tree.clone(), None)?);
                    }
                    _ => {}
                }
                Ok(Some((analysis, next)))
            }
        }
    }

    /// The state with its tree made again from the archive, if an earlier engine made it. Trees of two engines are not
    /// compared, because they differ where the page does not. Its time is that of the last observation. `None` if the
    /// tree is comparable or cannot be made again.
    fn remade(
        &self,
        store: &Store,
        page: PageId,
        state: &PageState,
        tree: &BlockTree,
    ) -> anyhow::Result<Option<PageState>> {
        let (Some(before), Some(shown)) = (state.read_tree()?, &state.shown) else { return Ok(None) };
        let is_same_format =
            DocumentFormat::from_engine(&before.engine) == DocumentFormat::from_engine(&tree.engine);
        if before.engine == tree.engine || !is_same_format {
            return Ok(None);
        }
        let captures = store.observed_captures(page, Some(shown.time - Span::from_millis(1)), shown.time)?;
        let is_shown =
            |capture: &Capture| capture.time == shown.time && capture.kind != CaptureKind::Metadata;
        let Some(capture) = captures.into_iter().find(is_shown) else { return Ok(None) };
        // An unreadable capture has been reported when it was analysed.
        let Ok(CaptureContent::Tree(again, _)) = self.shown(&capture) else { return Ok(None) };
        if again.engine != tree.engine {
            return Ok(None);
        }
        let packed = PackedTree::of(&again)?;
        Ok(Some(PageState { tree: Some((state.time, packed)), unpacked: Some(*again), ..state.clone() }))
    }

    /// Reads a capture and lays it out.
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

    /// Analyses a left-out version by applying its delta to its base. `None` if the page's state is a different
    /// version.
    fn analyse_delta(
        &self,
        archive: &Archive,
        store: &Store,
        capture: &Capture,
        before: Option<Predecessor<'_>>,
    ) -> anyhow::Result<Option<(Analysis, PageState)>> {
        let Some(before) = before else { return Ok(None) };
        let (state, identity) = (before.state, &capture.identity);
        let stored = archive.stored(capture, DecodingLimits::default())?;
        if is_named(store, identity, &state.identity) {
            return Ok(Some(by_response(capture, Some(state))));
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

/// What precedes a capture: the page's state, and the capture just before it.
#[derive(Clone, Copy)]
struct Predecessor<'a> {
    state: &'a PageState,
    capture: Option<&'a Capture>,
}

impl Predecessor<'_> {
    /// Whether the delta of a left-out version applies to the version in the state. Old records do not name their
    /// base. Then the answer is certain only if nothing can have come between: the capture before was analysed and
    /// precedes the delta in the same file.
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

/// Whether a record names the version with this identity. Records of earlier releases name a version by the SHA-1 of
/// its payload.
fn is_named(store: &Store, named: &Identity, identity: &Identity) -> bool {
    named == identity || store.digest_matches(&named.to_string(), &identity.to_string()).unwrap_or_default()
}

/// Headlines of pages that were never captured, and changed headlines. An additional link to a captured page is not a
/// change of that page.
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

/// The quarantine entry of an unreadable capture.
fn failed_capture(capture: &Capture, error: &anyhow::Error) -> (String, QuarantinedRecord) {
    let what = untrusted::quoted(&format!("{error:#}")).into_owned();
    (
        capture.file.clone(),
        QuarantinedRecord { offset: capture.offset, reason: QuarantineReason::Analysis, what },
    )
}

/// A capture without an analysis, and the capture just before it.
struct PendingCapture {
    before: Option<Capture>,
    capture: Capture,
}

impl PendingCapture {
    /// Repeated responses, redirects and deltas need no layout.
    fn needs_layout(&self) -> bool {
        let is_repeated = self.before.as_ref().is_some_and(|before| before.identity == self.capture.identity);
        self.capture.kind != CaptureKind::Metadata
            && self.capture.response_kind == Some(ResponseKind::Content)
            && !is_repeated
    }
}

/// The content of a capture.
enum CaptureContent {
    /// The blocks of a page, and its title.
    Tree(Box<BlockTree>, String),
    /// A format that cannot be read, such as an image. Only its digest is compared.
    Unreadable,
    /// A "not found" page with status 200.
    Error,
    /// The archive lacks the payload.
    Missing,
}

/// The content of a capture that is not HTML.
fn shown_document(capture: &Capture, document: &ArchivedResponse) -> CaptureContent {
    let content_type = document.head.get("Content-Type");
    let format = DocumentFormat::detect(content_type.as_deref(), &capture.url, &document.bytes);
    let read = format.and_then(|format| format.read(&capture.url, content_type.as_deref(), &document.bytes));
    let Some(Document { mut tree, title }) = read else { return CaptureContent::Unreadable };
    tree.url.clone_from(&capture.url);
    tree.version = capture.time.to_rfc3339();
    CaptureContent::Tree(Box::new(tree), title)
}

/// Whether a page that was rendered in a browser before now came without running its scripts. Its near-empty shell
/// must not count as a change.
fn is_unrendered(capture: &Capture, state: Option<&PageState>, tree: &BlockTree) -> anyhow::Result<bool> {
    let Some(state) = state.filter(|state| state.identity.is_rendered()) else { return Ok(false) };
    let n_now = n_letters(tree);
    let is_shell = !capture.identity.is_rendered() && n_now < MAX_SHELL_LETTERS;
    Ok(is_shell && state.read_tree()?.is_some_and(|before| n_now < n_letters(&before)))
}

/// Analyses a capture by comparing its response with the previous one.
fn by_response(capture: &Capture, state: Option<&PageState>) -> (Analysis, PageState) {
    let kind = capture.response_kind.unwrap_or(ResponseKind::Content);
    let status = ChangeStatus::between(state.map(PageState::before), kind, &capture.identity);
    let status = status.unwrap_or_else(ChangeStatus::unknown);
    analyse_response(capture.page, capture.time, &capture.identity, state, status)
}

/// The title as a reader sees it, with references such as `&amp;` resolved.
fn shown_title(html: &str) -> String {
    unescaped(&html_title(html)).split_whitespace().collect::<Vec<_>>().join(" ")
}
