//! Stores rows of captures as sites, pages, captures, versions and links, in one transaction.
//!
//! Writer, recovery, import and rebuild all use [`Store::commit`], so a rebuild from the WARC files returns the same
//! state as the crawl. The order of captures does not matter: every column is a minimum, a maximum, a sum, or the value
//! at the latest time.

use std::collections::HashMap;

use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::time::Timestamp;
use perennial_core::url::canonical::site_name;
use perennial_core::url::{PageId, SiteId};
use rusqlite::{Transaction, params};

use super::feeds::FeedRow;
use super::frontier::PageKind;
use super::observations::response_kind_code;
use super::quarantine::QuarantinedRecord;
use super::rows::Statements;
use super::{Store, encode_targets};

/// The kind of a capture's record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CaptureKind {
    /// An HTTP response with its payload.
    Response,
    /// A response whose payload is in an earlier record.
    Revisit,
    /// A payload without HTTP, such as a screenshot.
    Resource,
    /// A metadata record in a form other than warc-fields, such as JSON.
    Metadata,
}

impl CaptureKind {
    /// The number in the state file.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// From the number in the state file.
    pub fn from_code(code: i64) -> CaptureKind {
        match code {
            1 => CaptureKind::Revisit,
            2 => CaptureKind::Resource,
            3 => CaptureKind::Metadata,
            _ => CaptureKind::Response,
        }
    }
}

/// One capture, as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureRow {
    /// The URL of the record.
    pub url: String,
    /// Its key in the index.
    pub surt: String,
    /// The date of the record, in whole seconds.
    pub time: Timestamp,
    pub kind: CaptureKind,
    /// HTTP status, if there was HTTP.
    pub status: Option<u16>,
    /// Media type as in the index.
    pub mime: Option<String>,
    /// Payload digest as in the index. It is computed from the bytes, in the form of the record's claim if that is
    /// correct. A revisit has no payload, so its claim is stored.
    pub digest: String,
    /// SHA-256 of the payload, computed from the bytes; of a revisit, as its record names it. `None` if it is unknown.
    pub content: Option<String>,
    /// Whether the bytes agree with the digests that the record claims. Only then may other captures refer to it.
    pub is_sound: bool,
    /// The kind of response; `None` if the capture is not an observation.
    pub response_kind: Option<ResponseKind>,
    /// Identity of the response if it differs from the digest: the target of a redirect, or the digest of an omitted
    /// payload.
    pub identity: Option<Identity>,
    /// The kind of URL in the crawl, if the record contains it.
    pub purpose: Option<PageKind>,
    /// Offset of the record in its file.
    pub offset: u64,
    /// Bytes of the record in its file.
    pub length: u64,
    /// Offset of the exchange: the record with its request and metadata.
    pub group_offset: u64,
    /// Bytes of the exchange.
    pub group_length: u64,
    /// The links of the page with their index keys; `None` if it is not HTML or the payload is elsewhere. Many threads
    /// compute the keys in advance, because the state has one writer.
    pub links: Option<Vec<LinkTarget>>,
    /// URLs of the site that a sitemap names. They are not links, because readers cannot follow them.
    pub named: Vec<LinkTarget>,
    /// Its contents as a feed; `None` if it is not a feed or the payload is elsewhere.
    pub feed: Option<Box<FeedRow>>,
}

/// The target of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkTarget {
    /// Absolute, without fragment.
    pub url: String,
    /// Its key in the index.
    pub surt: String,
}

/// How a WARC file came into the archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileState {
    /// This program is writing it; on disk it has the suffix `.open`.
    Open,
    /// This program wrote it.
    Closed,
    /// A different tool wrote it.
    Imported,
}

impl FileState {
    /// The name in the state file.
    pub fn name(self) -> &'static str {
        match self {
            FileState::Open => "open",
            FileState::Closed => "closed",
            FileState::Imported => "imported",
        }
    }

    /// From the name in the state file.
    pub fn from_name(name: &str) -> FileState {
        match name {
            "open" => FileState::Open,
            "imported" => FileState::Imported,
            _ => FileState::Closed,
        }
    }
}

/// One WARC file, as stored.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct FileRow {
    /// Its name in `warc/`, without `.open`.
    pub name: String,
    /// How it came into the archive.
    pub state: FileState,
    /// Bytes whose captures are in the state.
    pub committed_bytes: u64,
    /// SHA-256 of an imported file in its original form.
    pub source_digest: Option<String>,
}

/// Counts of the captures in a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommitCounts {
    /// New captures.
    pub n_captures: u64,
    /// Captures already in the archive, with the same URL, time, kind and payload.
    pub n_duplicates: u64,
}

impl Store {
    /// Stores captures of one file and how far the file is committed, in one transaction.
    pub fn commit(&mut self, file: &FileRow, rows: &[CaptureRow]) -> anyhow::Result<CommitCounts> {
        self.commit_with(file, rows, |_| Ok(()))
    }

    /// Like [`Store::commit`], with the records that a scan of the file quarantined.
    pub fn commit_scan(
        &mut self,
        file: &FileRow,
        rows: &[CaptureRow],
        quarantined: &[QuarantinedRecord],
    ) -> anyhow::Result<CommitCounts> {
        let quarantine = |commit: &mut Commit<'_>| {
            quarantined.iter().try_for_each(|quarantined| commit.quarantine(&file.name, quarantined))
        };
        self.commit_with(file, rows, quarantine)
    }

    /// Like [`Store::commit`]; `also` writes results of the crawl and the analysis in the same transaction.
    pub fn commit_with(
        &mut self,
        file: &FileRow,
        rows: &[CaptureRow],
        also: impl FnOnce(&mut Commit<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<CommitCounts> {
        self.write(|commit| {
            let sql = "INSERT INTO files (name, state, committed, source_digest) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (name) DO UPDATE SET state = ?2, committed = ?3, source_digest = ?4 RETURNING id";
            let values =
                params![file.name, file.state.name(), file.committed_bytes as i64, file.source_digest];
            let file_id = commit.transaction.value(sql, values)?;
            let mut done = CommitCounts::default();
            for row in rows {
                match commit.capture(file_id, row)? {
                    true => done.n_captures += 1,
                    false => done.n_duplicates += 1,
                }
            }
            also(commit)?;
            Ok(done)
        })
    }

    /// Runs `work` in one transaction, which is stored whole or not at all.
    pub fn write<T>(&mut self, work: impl FnOnce(&mut Commit<'_>) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let transaction = self.connection.transaction()?;
        let done = work(&mut Commit::new(&transaction))?;
        transaction.commit()?;
        self.after_commit()?;
        Ok(done)
    }

    /// Like [`Store::write`], and on disk when this returns, before the caller removes a file that the state named.
    /// Other commits need not wait for the disk, because the WARC files contain the same facts.
    pub(super) fn write_synced<T>(
        &mut self,
        work: impl FnOnce(&mut Commit<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        let done = self.write(work);
        self.connection.pragma_update(None, "synchronous", "NORMAL")?;
        done
    }

    /// Removes a file without captures from the state; on disk when this returns.
    pub fn forget_file(&mut self, name: &str) -> anyhow::Result<()> {
        self.write_synced(|commit| {
            commit.forget_quarantined(name)?;
            commit.transaction.run("DELETE FROM files WHERE name = ?1", [name])
        })
    }

    /// The number of a page; a new URL gets the next number.
    pub fn page_id(&mut self, url: &str, surt: &str) -> anyhow::Result<PageId> {
        self.write(|commit| Ok(PageId(commit.page(url, surt)?)))
    }
}

/// An open transaction. This file writes captures, `frontier` the frontier, `spending` what was spent, and `analyses`
/// the analyses.
pub struct Commit<'t> {
    pub(super) transaction: &'t Transaction<'t>,
    /// Page numbers looked up in this transaction. Pages of a site link to the same pages again and again.
    pages: HashMap<String, u32>,
    sites: HashMap<String, u32>,
}

/// Bound of the two maps above; a larger map is emptied.
const MAX_REMEMBERED: usize = 100_000;

impl<'t> Commit<'t> {
    fn new(transaction: &'t Transaction<'t>) -> Commit<'t> {
        Commit { transaction, pages: HashMap::new(), sites: HashMap::new() }
    }

    /// The numbers of a page and its site; a new URL gets the next numbers.
    pub(super) fn page_and_site(&mut self, url: &str) -> anyhow::Result<(PageId, SiteId)> {
        let site = self.site(&parse_site_name(url))?;
        let page = self.page(url, &perennial_warc::surt::surt(url))?;
        Ok((PageId(page), site))
    }

    /// False if the capture was already stored.
    fn capture(&mut self, file: i64, row: &CaptureRow) -> anyhow::Result<bool> {
        let page = self.page(&row.url, &row.surt)?;
        if self.is_known(page, file, row)? {
            return Ok(false);
        }
        let capture = self.put_capture(page, file, row)?;
        self.touch_page(page, row)?;
        // An omitted version has no payload in the archive, nor does a 304 that confirms it.
        let is_left_out = row.response_kind == Some(ResponseKind::NotModified) && row.identity.is_some();
        if matches!(row.kind, CaptureKind::Response | CaptureKind::Revisit | CaptureKind::Resource)
            && !is_left_out
        {
            self.put_version(page, capture, row)?;
        }
        if let Some(links) = &row.links {
            self.put_links(page, row.time, links)?;
        }
        for named in &row.named {
            self.linked_page(&named.url, &named.surt, Some((page, row.time)))?;
        }
        if let Some(feed) = &row.feed {
            self.put_feed(page, row.time, feed)?;
        }
        Ok(true)
    }

    fn is_known(&self, page: u32, file: i64, row: &CaptureRow) -> anyhow::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM captures WHERE page = ?1 AND time = ?2 AND kind = ?3 AND digest = ?4
                AND content IS ?7)
            OR EXISTS (SELECT 1 FROM captures WHERE file = ?5 AND offset = ?6)";
        let (time, kind, offset) = (row.time.as_millis(), row.kind.code(), row.offset as i64);
        self.transaction.value(sql, params![page, time, kind, row.digest, file, offset, row.content])
    }

    fn put_capture(&self, page: u32, file: i64, row: &CaptureRow) -> anyhow::Result<i64> {
        let sql = "INSERT INTO captures (page, time, kind, status, mime, digest, file, offset, length, group_offset,
                group_length, answer, identity, content)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let values = params![
            page,
            row.time.as_millis(),
            row.kind.code(),
            row.status,
            row.mime,
            row.digest,
            file,
            row.offset as i64,
            row.length as i64,
            row.group_offset as i64,
            row.group_length as i64,
            row.response_kind.map(response_kind_code),
            row.identity.as_ref().map(Identity::to_string),
            row.content,
        ];
        self.transaction.insert(sql, values)
    }

    /// Revisits and metadata do not contain the media type, so the payload's record determines it.
    fn touch_page(&self, page: u32, row: &CaptureRow) -> anyhow::Result<()> {
        let mime =
            row.mime.as_deref().filter(|_| matches!(row.kind, CaptureKind::Response | CaptureKind::Resource));
        let sql = "UPDATE pages SET n_captures = n_captures + 1,
                first_seen = min(coalesce(first_seen, ?2), ?2),
                mime = CASE WHEN coalesce(last_seen, ?2) <= ?2 OR mime IS NULL THEN coalesce(?3, mime) ELSE mime END,
                status = CASE WHEN coalesce(last_seen, ?2) <= ?2 THEN coalesce(?4, status) ELSE status END,
                last_seen = max(coalesce(last_seen, ?2), ?2),
                kind = min(coalesce(kind, ?5), coalesce(?5, kind))
            WHERE id = ?1";
        let purpose = row.purpose.map(PageKind::code);
        self.transaction.run(sql, params![page, row.time.as_millis(), mime, row.status, purpose])
    }

    fn put_version(&self, page: u32, capture: i64, row: &CaptureRow) -> anyhow::Result<()> {
        let origin = (row.kind != CaptureKind::Revisit && row.is_sound).then_some(capture);
        let sql = "INSERT INTO versions (page, digest, content, first_time, last_time, n_captures, origin)
                VALUES (?1, ?2, coalesce(?5, ''), ?3, ?3, 1, ?4)
            ON CONFLICT (page, digest, content) DO UPDATE SET
                first_time = min(first_time, ?3), last_time = max(last_time, ?3),
                n_captures = n_captures + 1,
                origin = CASE WHEN ?4 IS NOT NULL AND (origin IS NULL
                    OR ?3 < (SELECT time FROM captures WHERE id = origin)) THEN ?4 ELSE origin END";
        self.transaction.run(sql, params![page, row.digest, row.time.as_millis(), origin, row.content])
    }

    /// Every URL that any version linked to becomes a page. The link graph contains the latest version's links.
    fn put_links(&mut self, page: u32, time: Timestamp, links: &[LinkTarget]) -> anyhow::Result<()> {
        let mut targets = Vec::with_capacity(links.len());
        for link in links {
            let target = self.linked_page(&link.url, &link.surt, Some((page, time)))?;
            if target != page {
                targets.push(target);
            }
        }
        let sql = "INSERT INTO links (page, time, targets) VALUES (?1, ?2, ?3)
            ON CONFLICT (page) DO UPDATE SET time = ?2, targets = ?3 WHERE time <= ?2";
        self.transaction.run(sql, params![page, time.as_millis(), encode_targets(&mut targets)])
    }

    /// The number of a page that a feed announces. A new page stores the capture of the feed.
    pub(super) fn announced_page(&mut self, url: &str, feed: u32, time: Timestamp) -> anyhow::Result<u32> {
        self.linked_page(url, &perennial_warc::surt::surt(url), Some((feed, time)))
    }

    fn page(&mut self, url: &str, surt: &str) -> anyhow::Result<u32> {
        self.linked_page(url, surt, None)
    }

    /// The number of a page. A new page stores the capture that linked to it or named it.
    fn linked_page(&mut self, url: &str, surt: &str, from: Option<(u32, Timestamp)>) -> anyhow::Result<u32> {
        if let Some(&page) = self.pages.get(url) {
            return Ok(page);
        }
        let known = self.transaction.row("SELECT id FROM pages WHERE url = ?1", [url], |row| row.get(0))?;
        let page: u32 = match known {
            Some(page) => page,
            None => {
                let site = self.site(&parse_site_name(url))?;
                let sql =
                    "INSERT INTO pages (url, surt, site, linked_from, linked_at) VALUES (?1, ?2, ?3, ?4, ?5)";
                let (linked_from, linked_at) = from.map(|(page, time)| (page, time.as_millis())).unzip();
                let id = self.transaction.insert(sql, params![url, surt, site.0, linked_from, linked_at])?;
                u32::try_from(id).map_err(|_| anyhow::anyhow!("an archive holds at most 2^32 pages"))?
            }
        };
        if self.pages.len() >= MAX_REMEMBERED {
            self.pages.clear();
        }
        self.pages.insert(url.to_string(), page);
        Ok(page)
    }

    fn site(&mut self, host: &str) -> anyhow::Result<SiteId> {
        if let Some(&site) = self.sites.get(host) {
            return Ok(SiteId(site));
        }
        let known = self.transaction.row("SELECT id FROM sites WHERE host = ?1", [host], |row| row.get(0))?;
        let site: u32 = match known {
            Some(site) => site,
            None => self.transaction.insert("INSERT INTO sites (host) VALUES (?1)", [host])? as u32,
        };
        if self.sites.len() >= MAX_REMEMBERED {
            self.sites.clear();
        }
        self.sites.insert(host.to_string(), site);
        Ok(SiteId(site))
    }
}

/// The name of a URL's site; empty for `urn:` and the like.
pub fn parse_site_name(url: &str) -> String {
    url::Url::parse(url).ok().and_then(|url| site_name(&url)).unwrap_or_default()
}
