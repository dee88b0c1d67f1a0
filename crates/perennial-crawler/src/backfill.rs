//! Adds captures and links to the frontier that no crawl has put there.
//!
//! A state that was rebuilt from its WARC files has no frontier, and an import brings pages that no crawl has
//! visited. With their captures in the frontier, the crawl continues from them instead of starting again at its
//! seeds. A crash or a restored state leaves captures of known pages that the frontier does not know: they count as
//! visits, with their digest, validators and links.

use std::collections::{HashMap, VecDeque};

use perennial_core::http::response::{ResponseKind, Validators};
use perennial_core::time::Timestamp;
use perennial_core::url::trap::find_trap;
use perennial_core::url::{PageId, SiteId};
use url::Url;

use super::discover::Discoveries;
use super::known_urls::KnownUrls;
use perennial_archive::Archive;
use perennial_archive::settings::Seeds;
use perennial_archive::store::{
    Capture, CapturedUrl, Discovery, PageKind, Store, VisitEnding, VisitRow, VisitTarget,
};

/// Number of links between a URL and its seed, and the seed's number.
type FrontierPosition = (u32, i64);

/// Adds captured URLs that belong to a seed, and the URLs that they link to. Returns the number of pages among them.
pub(super) fn backfill(
    archive: &Archive,
    store: &mut Store,
    seeds: &Seeds,
    known_urls: &mut KnownUrls,
    now: Timestamp,
) -> anyhow::Result<usize> {
    let visited = count_captures_as_visits(archive, store, now)?;
    let captured = store.captured_outside_frontier()?;
    if captured.is_empty() && visited.is_empty() {
        return Ok(0);
    }
    let mut backfill = Backfill { archive, store, seeds, known_urls, now, found: Vec::new() };
    backfill.follow_links(if captured.is_empty() { Some(&visited) } else { None })?;
    captured.iter().try_for_each(|captured| backfill.add_captured(captured))?;
    let found = backfill.found;
    store.write(|commit| found.iter().try_for_each(|found| commit.backfill(found, now)))?;
    Ok(found.iter().filter(|found| found.kind == PageKind::Page).count())
}

/// Stores the last capture of each page as its last visit, if it is later. Returns these pages.
fn count_captures_as_visits(
    archive: &Archive,
    store: &mut Store,
    now: Timestamp,
) -> anyhow::Result<Vec<PageId>> {
    let captures = store.captured_after_visit(now)?;
    let mut targets = Vec::with_capacity(captures.len());
    for capture in &captures {
        targets.push((capture, store.target(capture.page)?, validators(archive, capture)));
    }
    store.write(|commit| {
        targets.iter().try_for_each(|(capture, target, validators)| match target {
            Some(target) => commit.put_visit(&visit_row(capture, target, validators)),
            None => Ok(()),
        })
    })?;
    Ok(captures.iter().map(|capture| capture.page).collect())
}

/// The visit that made a capture.
fn visit_row<'a>(capture: &'a Capture, target: &VisitTarget, validators: &'a Validators) -> VisitRow<'a> {
    let response_kind = capture.response_kind.unwrap_or(ResponseKind::Failed);
    let content = capture.content.as_deref().filter(|_| response_kind == ResponseKind::Content);
    let is_same = target.digest.as_deref() == content;
    VisitRow {
        page: capture.page,
        at: capture.time,
        ending: match response_kind {
            ResponseKind::Content if !is_same => VisitEnding::Changed,
            ResponseKind::Content | ResponseKind::NotModified => VisitEnding::Unchanged,
            ResponseKind::Redirect => VisitEnding::Redirected,
            ResponseKind::Gone => VisitEnding::Gone,
            ResponseKind::Failed => VisitEnding::Failed,
        },
        n_failures: match response_kind {
            ResponseKind::Failed => target.n_failures.saturating_add(1),
            _ => 0,
        },
        payload: content.map(|content| (content, validators)),
        identity: (response_kind != ResponseKind::Failed).then_some(&capture.identity),
        trust: target.trust,
    }
}

/// The validators in a capture's head. If its record cannot be read, the next visit sends no condition.
fn validators(archive: &Archive, capture: &Capture) -> Validators {
    let Ok(record) = archive.open_record(capture) else { return Validators::default() };
    let field = |name: &str| record.head.get(name).map(|value| value.into_owned());
    Validators { etag: field("ETag"), last_modified: field("Last-Modified") }
}

struct Backfill<'a> {
    archive: &'a Archive,
    store: &'a Store,
    seeds: &'a Seeds,
    known_urls: &'a mut KnownUrls,
    now: Timestamp,
    found: Vec<Discovery>,
}

impl Backfill<'_> {
    /// Follows the stored links from pages of the frontier, those nearest to their seeds first; from all, or only from
    /// some.
    fn follow_links(&mut self, only: Option<&[PageId]>) -> anyhow::Result<()> {
        let mut places: HashMap<PageId, FrontierPosition> = HashMap::new();
        self.store.each_frontier_page(|known| {
            if known.kind == PageKind::Page {
                places.insert(known.page, (known.depth, known.seed));
            }
        })?;
        let is_start = |page: &PageId| only.is_none_or(|only| only.binary_search(page).is_ok());
        let mut starts: Vec<(PageId, FrontierPosition)> =
            places.iter().filter(|(page, _)| is_start(page)).map(|(&page, &place)| (page, place)).collect();
        starts.sort_unstable_by_key(|&(page, (depth, _))| (depth, page));
        let mut queue: VecDeque<(PageId, FrontierPosition)> = starts.into();
        while let Some((page, (depth, seed))) = queue.pop_front() {
            for target in self.store.page_links(page.0)?.into_iter().map(PageId) {
                if places.contains_key(&target) {
                    continue;
                }
                if let Some(seed) = self.add_linked(target, depth + 1, seed)? {
                    places.insert(target, (depth + 1, seed));
                    queue.push_back((target, (depth + 1, seed)));
                }
            }
        }
        Ok(())
    }

    /// Adds a linked URL that belongs to a seed. Returns the seed's number; `None` if the URL is not added.
    fn add_linked(&mut self, page: PageId, depth: u32, finder: i64) -> anyhow::Result<Option<i64>> {
        let url = self.store.page_url(page)?;
        let Some(parsed) = Url::parse(&url).ok().filter(|url| find_trap(url, self.now).is_none()) else {
            return Ok(None);
        };
        let Some(seed) = self.seeds.owner(&parsed, depth, finder) else { return Ok(None) };
        let found = Discovery::new(url, PageKind::Page, seed, depth);
        if !self.known_urls.is_wanted(&found, self.now) {
            return Ok(None);
        }
        self.found.push(found);
        Ok(Some(seed))
    }

    /// Adds a captured URL that no link points to.
    fn add_captured(&mut self, captured: &CapturedUrl) -> anyhow::Result<()> {
        let Ok(url) = Url::parse(&captured.url) else { return Ok(()) };
        let owner = self.seeds.owner(&url, 1, 0);
        let any = || self.seeds.iter_numbered().next().map(|(number, _)| number);
        let seed = match captured.kind {
            PageKind::Page => owner,
            // A subresource may be on any host. Its seed matters for budgets only.
            PageKind::Subresource | PageKind::Sitemap | PageKind::Feed => owner.or_else(any),
        };
        let Some(seed) = seed else { return Ok(()) };
        self.add(Discovery::new(captured.url.clone(), captured.kind, seed, 1));
        if matches!(captured.kind, PageKind::Sitemap | PageKind::Feed) {
            self.read_sitemap(captured, &url, seed)?;
        }
        Ok(())
    }

    /// Adds the pages in the last capture of a sitemap or a feed. If the capture is unreadable, the next visit finds
    /// them.
    fn read_sitemap(&mut self, captured: &CapturedUrl, url: &Url, seed: i64) -> anyhow::Result<()> {
        let Some(capture) = self.store.closest_payload(&captured.url, self.now)? else { return Ok(()) };
        let Ok(Some(payload)) = self.archive.payload(self.store, &capture) else { return Ok(()) };
        let target =
            VisitTarget::unvisited(capture.page, SiteId(0), captured.url.clone(), PageKind::Sitemap, seed);
        let table = &self.archive.settings().crawl;
        let mut found = Discoveries::new(self.seeds, table, self.now, &target);
        found.read_sitemap(url, &payload.bytes);
        for found in found.into_found() {
            self.add(Discovery { changed: None, ..found });
        }
        Ok(())
    }

    fn add(&mut self, found: Discovery) {
        if self.known_urls.is_wanted(&found, self.now) {
            self.found.push(found);
        }
    }
}
