//! Stores the frontier, which is the state of every URL between visits, in the tables `crawl_pages`, `crawl_seeds`,
//! `crawl_hosts` and `crawl_passes`.
//!
//! The transaction that commits a visit's captures also stores the visit. A page therefore counts as visited exactly
//! when its capture is committed.

use std::collections::HashMap;

use anyhow::Context;
use perennial_core::http::politeness::HostState;
use perennial_core::http::response::{Identity, Validators};
use perennial_core::http::validator::ValidatorTrust;
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};
use rusqlite::{Row, params};

use super::rows::{Columns, Statements};
use super::{CAPTURE_COLUMNS, CAPTURE_TABLES, Capture, Commit, Store, read_capture};

/// The kind of a URL in the crawl.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageKind {
    /// A page: visited repeatedly, and its links are followed.
    Page,
    /// A style sheet, image, font or script: captured with the pages that need it.
    #[serde(rename = "requisite")]
    Subresource,
    /// A sitemap: its URLs are followed.
    Sitemap,
    /// A feed: polled by its own pattern, and its items are followed.
    Feed,
}

impl PageKind {
    /// The number in the state file. If a URL has several kinds, the least number is stored: a linked page that turns
    /// out to be a feed is a feed.
    pub(super) fn code(self) -> i64 {
        match self {
            PageKind::Page => 0,
            PageKind::Subresource => 1,
            PageKind::Sitemap => 2,
            PageKind::Feed => -1,
        }
    }

    fn from_code(code: i64) -> PageKind {
        match code {
            1 => PageKind::Subresource,
            2 => PageKind::Sitemap,
            -1 => PageKind::Feed,
            _ => PageKind::Page,
        }
    }

    /// The name in the log.
    pub fn name(self) -> &'static str {
        match self {
            PageKind::Page => "page",
            PageKind::Subresource => "requisite",
            PageKind::Sitemap => "sitemap",
            PageKind::Feed => "feed",
        }
    }
}

/// How the last visit ended, as stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VisitEnding {
    /// The content changed.
    Changed,
    Unchanged,
    /// No response arrived, or one that counts as a failure.
    Failed,
    /// There was a page, and it is gone.
    Gone,
    /// The URL redirects to a different page.
    Redirected,
    /// The first content of the URL.
    New,
    /// There never was a page: a dead link.
    Missing,
    /// robots.txt forbids the visit, or the page forbids archiving.
    Refused,
}

impl VisitEnding {
    /// From the number in the state file.
    pub fn from_code(code: i64) -> VisitEnding {
        match code {
            0 => VisitEnding::Changed,
            1 => VisitEnding::Unchanged,
            3 => VisitEnding::Gone,
            4 => VisitEnding::Redirected,
            5 => VisitEnding::New,
            6 => VisitEnding::Missing,
            7 => VisitEnding::Refused,
            _ => VisitEnding::Failed,
        }
    }

    /// The name in the log.
    pub fn name(self) -> &'static str {
        match self {
            VisitEnding::Changed => "changed",
            VisitEnding::Unchanged => "unchanged",
            VisitEnding::Failed => "failed",
            VisitEnding::Gone => "gone",
            VisitEnding::Redirected => "redirected",
            VisitEnding::New => "new",
            VisitEnding::Missing => "missing",
            VisitEnding::Refused => "refused",
        }
    }
}

/// Everything that a visit of a URL needs.
#[derive(Clone, Debug)]
pub struct VisitTarget {
    pub page: PageId,
    /// Number of its host.
    pub site: SiteId,
    pub url: String,
    pub kind: PageKind,
    /// Number of its seed in `crawl_seeds`.
    pub seed: i64,
    /// Links from the seed.
    pub depth: u32,
    /// Consecutive redirects that led to it.
    pub n_redirects: u32,
    /// When the last visit ended.
    pub visited: Option<Timestamp>,
    /// Consecutive failed visits.
    pub n_failures: u16,
    /// Payload digest of the last full response.
    pub digest: Option<String>,
    /// Identity of the last response, if it differs from the digest.
    pub identity: Option<Identity>,
    /// Validators of the last full response.
    pub validators: Validators,
    /// The trust in the validators.
    pub trust: ValidatorTrust,
}

impl VisitTarget {
    /// A URL of the frontier, without what is known of its last response.
    pub fn from_frontier(known: &FrontierPage) -> VisitTarget {
        let FrontierPage { page, site, kind, seed, depth, visited, n_failures, .. } = *known;
        let unvisited = VisitTarget::unvisited(page, site, known.url.clone(), kind, seed);
        VisitTarget { depth, visited, n_failures, ..unvisited }
    }

    /// A URL one link from its seed that was never visited.
    pub fn unvisited(page: PageId, site: SiteId, url: String, kind: PageKind, seed: i64) -> VisitTarget {
        VisitTarget {
            page,
            site,
            url,
            kind,
            seed,
            depth: 1,
            n_redirects: 0,
            visited: None,
            n_failures: 0,
            digest: None,
            identity: None,
            validators: Validators::default(),
            trust: ValidatorTrust::default(),
        }
    }
}

/// A URL of the frontier, as loaded at the start of a crawl.
#[derive(Clone, Debug)]
pub struct FrontierPage {
    pub page: PageId,
    /// Number of its host.
    pub site: SiteId,
    pub url: String,
    pub kind: PageKind,
    /// Number of its seed in `crawl_seeds`.
    pub seed: i64,
    /// Links from the seed.
    pub depth: u32,
    /// When the last visit ended.
    pub visited: Option<Timestamp>,
    /// How the last visit ended.
    pub ending: Option<VisitEnding>,
    /// Consecutive failed visits.
    pub n_failures: u16,
}

/// The columns that a visit changes in its row.
#[derive(Clone, Copy, Debug)]
pub struct VisitRow<'a> {
    pub page: PageId,
    /// When the visit ended.
    pub at: Timestamp,
    /// How the visit ended.
    pub ending: VisitEnding,
    /// Consecutive failures, including this one.
    pub n_failures: u16,
    /// Digest and validators of a full response; `None` keeps the previous ones.
    pub payload: Option<(&'a str, &'a Validators)>,
    /// Identity of the response; `None` keeps the previous one.
    pub identity: Option<&'a Identity>,
    /// The trust in the validators.
    pub trust: ValidatorTrust,
}

/// A URL found in a document.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// The canonical URL.
    pub url: String,
    pub kind: PageKind,
    /// Number of its seed in `crawl_seeds`.
    pub seed: i64,
    /// Links from the seed.
    pub depth: u32,
    /// Consecutive redirects that led to it.
    pub n_redirects: u32,
    /// When it changed, according to a sitemap or feed.
    pub changed: Option<Timestamp>,
    /// The feed item that names it.
    pub item: Option<Box<NamingItem>>,
}

impl Discovery {
    /// A URL that a link led to.
    pub fn new(url: impl Into<String>, kind: PageKind, seed: i64, depth: u32) -> Discovery {
        Discovery { url: url.into(), kind, seed, depth, n_redirects: 0, changed: None, item: None }
    }
}

/// A feed item that names a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamingItem {
    /// Identifies the item within its feed.
    pub key: String,
    pub title: String,
}

impl Commit<'_> {
    /// The numbers of the seeds. A new seed gets the next number; a known seed keeps its number.
    pub fn seed_numbers(&self, urls: &[String]) -> anyhow::Result<Vec<i64>> {
        let sql = "INSERT INTO crawl_seeds (url) VALUES (?1) ON CONFLICT (url) DO UPDATE SET url = url RETURNING id";
        urls.iter().map(|url| self.transaction.value(sql, [url])).collect()
    }

    /// Adds a URL. A linked subresource becomes a page. Returns the numbers of page and site.
    pub fn put_discovery(&mut self, found: &Discovery) -> anyhow::Result<(PageId, SiteId)> {
        let (page, site) = self.page_and_site(&found.url)?;
        let sql = "INSERT INTO crawl_pages (page, kind, seed, depth, n_redirects)
            VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (page) DO UPDATE SET kind = min(kind, ?2), depth = min(depth, ?4), seed = ?3
            WHERE kind > ?2 OR (kind = ?2 AND depth > ?4)";
        self.transaction
            .run(sql, params![page.0, found.kind.code(), found.seed, found.depth, found.n_redirects])?;
        Ok((page, site))
    }

    /// Adds a URL that may have captures. The last capture up to `until` counts as the last visit.
    pub fn backfill(&mut self, found: &Discovery, until: Timestamp) -> anyhow::Result<()> {
        let (page, _) = self.put_discovery(found)?;
        let sql = "UPDATE crawl_pages SET visited = c.time,
                ending = CASE c.answer WHEN 4 THEN 2 WHEN 3 THEN
                    CASE WHEN EXISTS (SELECT 1 FROM captures p WHERE p.page = ?1 AND p.answer = 0) THEN 3 ELSE 6 END
                    ELSE 1 END,
                n_failures = CASE c.answer WHEN 4 THEN 1 ELSE 0 END
            FROM (SELECT time, answer FROM captures WHERE page = ?1 AND answer IS NOT NULL AND time <= ?2
                  ORDER BY time DESC, id DESC LIMIT 1) c
            WHERE page = ?1 AND visited IS NULL";
        self.transaction.run(sql, params![page.0, until.as_millis()])
    }

    /// Stores how a visit ended.
    pub fn put_visit(&self, visit: &VisitRow<'_>) -> anyhow::Result<()> {
        let (digest, validators) = visit.payload.unzip();
        let etag = validators.and_then(|validators| validators.etag.as_deref());
        let last_modified = validators.and_then(|validators| validators.last_modified.as_deref());
        let sql = "UPDATE crawl_pages SET visited = ?2, ending = ?3, n_failures = ?4, trust = ?5,
                etag = CASE WHEN ?6 IS NULL THEN etag ELSE ?7 END,
                last_modified = CASE WHEN ?6 IS NULL THEN last_modified ELSE ?8 END,
                digest = coalesce(?6, digest), identity = coalesce(?9, identity)
            WHERE page = ?1";
        self.transaction.run(
            sql,
            params![
                visit.page.0,
                visit.at.as_millis(),
                visit.ending as i64,
                visit.n_failures,
                visit.trust.to_bytes(),
                digest,
                etag,
                last_modified,
                visit.identity.map(Identity::to_string),
            ],
        )
    }

    /// Stores when the next fetch from a host may start.
    pub fn put_host(&self, site: SiteId, state: &HostState) -> anyhow::Result<()> {
        let sql = "INSERT OR REPLACE INTO crawl_hosts (site, ready_at, n_troubles) VALUES (?1, ?2, ?3)";
        self.transaction.run(sql, params![site.0, state.ready_at.as_millis(), state.n_troubles])
    }

    /// Begins a pass over everything (`--once`), or continues an unfinished one, and returns its number and start. A
    /// pass with a future start, from a clock that was ahead, is not continued.
    pub fn begin_pass(&self, now: Timestamp) -> anyhow::Result<(i64, Timestamp)> {
        let sql = "SELECT id, started FROM crawl_passes WHERE ended IS NULL AND started <= ?1
            ORDER BY id DESC LIMIT 1";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.time(1)?));
        if let Some(open) = self.transaction.row(sql, [now.as_millis()], read)? {
            return Ok(open);
        }
        let sql = "INSERT INTO crawl_passes (started) VALUES (?1)";
        Ok((self.transaction.insert(sql, [now.as_millis()])?, now))
    }

    /// Marks a pass as complete.
    pub fn end_pass(&self, pass: i64, now: Timestamp) -> anyhow::Result<()> {
        let sql = "UPDATE crawl_passes SET ended = ?2 WHERE id = ?1";
        self.transaction.run(sql, params![pass, now.as_millis()])
    }

    /// Whether the frontier contains a URL.
    pub fn is_followed(&self, url: &str) -> anyhow::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM crawl_pages c JOIN pages p ON p.id = c.page
            WHERE p.url = ?1)";
        self.transaction.value(sql, [url])
    }

    /// The number of a URL in the frontier.
    pub fn followed_page(&self, url: &str) -> anyhow::Result<Option<PageId>> {
        let sql = "SELECT p.id FROM crawl_pages c JOIN pages p ON p.id = c.page WHERE p.url = ?1";
        self.transaction.row(sql, [url], |row| row.get(0).map(PageId))
    }

    /// Whether a visit of the page has ended.
    pub fn was_visited(&self, page: PageId) -> anyhow::Result<bool> {
        let visited = self.transaction.time("SELECT visited FROM crawl_pages WHERE page = ?1", [page.0])?;
        Ok(visited.is_some())
    }
}

/// A captured URL that is not in the frontier.
#[derive(Clone, Debug)]
pub struct CapturedUrl {
    pub url: String,
    pub kind: PageKind,
}

impl Store {
    /// Captured URLs that are not in the frontier, in order of their numbers.
    pub fn captured_outside_frontier(&self) -> anyhow::Result<Vec<CapturedUrl>> {
        let sql = "SELECT p.url, p.kind FROM pages p LEFT JOIN crawl_pages f ON f.page = p.id
            WHERE f.page IS NULL AND p.first_seen IS NOT NULL AND p.kind IS NOT NULL ORDER BY p.id";
        self.connection
            .rows(sql, [], |row| Ok(CapturedUrl { url: row.get(0)?, kind: PageKind::from_code(row.get(1)?) }))
    }

    /// The frontier's pages with an answer up to `until` that is later than their last visit, with the last such
    /// capture. A crash or an import leaves them.
    pub fn captured_after_visit(&self, until: Timestamp) -> anyhow::Result<Vec<Capture>> {
        let pages: Vec<i64> = self.connection.rows(
            "SELECT f.page FROM crawl_pages f JOIN pages p ON p.id = f.page
                WHERE p.last_seen > coalesce(f.visited, -1) ORDER BY f.page",
            [],
            |row| row.get(0),
        )?;
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} JOIN crawl_pages v ON v.page = c.page
                WHERE c.page = ?1 AND c.time <= ?2 AND c.time > coalesce(v.visited, -1) AND c.answer IS NOT NULL
                ORDER BY c.time DESC, c.id DESC LIMIT 1"
        );
        let mut found = Vec::new();
        for page in pages {
            found.extend(self.connection.row(&sql, params![page, until.as_millis()], read_capture)?);
        }
        Ok(found)
    }

    /// The states of all hosts that had trouble.
    pub fn host_states(&self) -> anyhow::Result<HashMap<SiteId, HostState>> {
        self.connection.rows("SELECT site, ready_at, n_troubles FROM crawl_hosts", [], |row| {
            let state = HostState { ready_at: row.time(1)?, n_troubles: row.get(2)? };
            Ok((SiteId(row.get(0)?), state))
        })
    }

    /// Everything that a visit of a page needs; `None` if the page is not in the frontier.
    pub fn target(&self, page: PageId) -> anyhow::Result<Option<VisitTarget>> {
        let sql =
            "SELECT c.page, p.site, p.url, c.kind, c.seed, c.depth, c.n_redirects, c.visited, c.n_failures,
                c.digest, c.etag, c.last_modified, c.trust, c.identity
            FROM crawl_pages c JOIN pages p ON p.id = c.page WHERE c.page = ?1";
        self.connection.row(sql, [page.0], read_target).context("cannot read the crawl's state")
    }

    /// Calls `each` with every URL of the frontier, in the order of discovery.
    pub fn each_frontier_page(&self, mut each: impl FnMut(FrontierPage)) -> anyhow::Result<()> {
        let sql = "SELECT c.page, p.site, p.url, c.kind, c.seed, c.depth, c.visited, c.ending,
            c.n_failures
            FROM crawl_pages c JOIN pages p ON p.id = c.page ORDER BY c.page";
        self.connection.each_row(sql, [], |row| {
            each(FrontierPage {
                page: PageId(row.get(0)?),
                site: SiteId(row.get(1)?),
                url: row.get(2)?,
                kind: PageKind::from_code(row.get(3)?),
                seed: row.get(4)?,
                depth: row.get(5)?,
                visited: row.optional_time(6)?,
                ending: row.get::<_, Option<i64>>(7)?.map(VisitEnding::from_code),
                n_failures: row.get(8)?,
            });
            Ok(())
        })
    }

    /// The seed for which a URL is in the frontier.
    pub fn frontier_seed(&self, url: &str) -> anyhow::Result<Option<i64>> {
        let sql = "SELECT f.seed FROM crawl_pages f JOIN pages p ON p.id = f.page WHERE p.url = ?1";
        self.connection.row(sql, [url], |row| row.get(0))
    }

    /// When the latest visit of all pages ended. A virtual clock continues there.
    pub fn last_visit(&self) -> anyhow::Result<Option<Timestamp>> {
        self.connection.time("SELECT max(visited) FROM crawl_pages", [])
    }

    /// When the first capture of all pages was made.
    pub fn first_capture(&self) -> anyhow::Result<Option<Timestamp>> {
        self.connection.time("SELECT min(first_seen) FROM pages", [])
    }

    /// When the last capture of all pages up to `until` was made.
    pub fn last_capture(&self, until: Timestamp) -> anyhow::Result<Option<Timestamp>> {
        let sql = "SELECT max(CASE WHEN p.last_seen <= ?1 THEN p.last_seen
                ELSE (SELECT max(c.time) FROM captures c WHERE c.page = p.id AND c.time <= ?1) END) FROM pages p";
        self.connection.time(sql, [until.as_millis()])
    }

    /// The numbers of all seeds by URL, including those no longer followed.
    pub fn seeds(&self) -> anyhow::Result<HashMap<String, i64>> {
        self.connection.rows("SELECT url, id FROM crawl_seeds", [], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    /// The host of a site.
    pub fn site_host(&self, site: SiteId) -> anyhow::Result<Option<String>> {
        self.connection.row("SELECT host FROM sites WHERE id = ?1", [site.0], |row| row.get(0))
    }
}

fn read_target(row: &Row<'_>) -> rusqlite::Result<VisitTarget> {
    Ok(VisitTarget {
        page: PageId(row.get(0)?),
        site: SiteId(row.get(1)?),
        url: row.get(2)?,
        kind: PageKind::from_code(row.get(3)?),
        seed: row.get(4)?,
        depth: row.get(5)?,
        n_redirects: row.get(6)?,
        visited: row.optional_time(7)?,
        n_failures: row.get(8)?,
        digest: row.get(9)?,
        validators: Validators { etag: row.get(10)?, last_modified: row.get(11)? },
        identity: row.get::<_, Option<String>>(13)?.map(|text| Identity::parse(&text)),
        trust: ValidatorTrust::from_bytes(&row.get::<_, Option<Vec<u8>>>(12)?.unwrap_or_default()),
    })
}
