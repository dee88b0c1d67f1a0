//! Queries the counts, a page's captures and versions, and all captures that pass a filter.

use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::notice::PageFilter;
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};
use rusqlite::types::Value;
use rusqlite::{Row, params, params_from_iter};
use serde::Serialize;

use super::ingest::{CaptureKind, FileRow, FileState};
use super::observations::{PAGES, parse_response_kind};
use super::rows::{Columns, Statements};
use super::{QuarantineCounts, Store};

/// A site with captures.
#[derive(Clone, Debug, Serialize)]
pub struct SiteCounts {
    pub host: String,
    /// Captured pages that people read.
    pub n_pages: u64,
    pub n_captures: u64,
}

/// One capture with the URL of its page and its place in the WARC files.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Capture {
    pub id: i64,
    pub page: PageId,
    pub url: String,
    pub surt: String,
    pub time: Timestamp,
    pub kind: CaptureKind,
    pub status: Option<u16>,
    pub mime: Option<String>,
    /// Payload digest as in the index.
    pub digest: String,
    /// SHA-256 of the payload; `None` if it is unknown.
    pub content: Option<String>,
    /// The kind of response; `None` if the capture is not an observation.
    pub response_kind: Option<ResponseKind>,
    /// Identity of the response: the payload's content, or the target of a redirect.
    pub identity: Identity,
    pub file: String,
    pub offset: u64,
    pub length: u64,
    pub group_offset: u64,
    pub group_length: u64,
}

impl Capture {
    /// Whether its own record shows nothing to a reader: a 304, or the delta of an omitted version.
    pub fn shows_nothing(&self) -> bool {
        self.is_delta() || self.kind == CaptureKind::Revisit && self.status == Some(304)
    }

    /// Whether it is an omitted version, of which the archive contains only the delta.
    pub fn is_delta(&self) -> bool {
        self.kind == CaptureKind::Metadata && self.response_kind == Some(ResponseKind::Content)
    }

    /// Whether its record shows a page, by itself or as a revisit that other tools can resolve.
    pub fn is_whole(&self) -> bool {
        let is_delivered = self.status.is_some_and(|status| (200..300).contains(&status));
        self.kind <= CaptureKind::Revisit && is_delivered && self.response_kind != Some(ResponseKind::Failed)
    }
}

/// Selects captures that satisfy all given conditions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CaptureFilter {
    /// Host of the page, with its port if that is not the scheme's default.
    pub site: Option<String>,
    /// URL of the page.
    pub page: Option<String>,
    /// Further URLs that showing the page requires; only used with `page`.
    pub parts: Vec<String>,
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
}

impl CaptureFilter {
    /// The page or site of these captures.
    pub fn place(&self) -> PageFilter {
        match (&self.page, &self.site) {
            (Some(url), _) => PageFilter::Page(url.clone()),
            (None, Some(host)) => PageFilter::Site(host.clone()),
            (None, None) => PageFilter::Anywhere,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct PageRow {
    pub id: PageId,
    pub url: String,
    pub surt: String,
    pub first_seen: Option<Timestamp>,
    pub last_seen: Option<Timestamp>,
    pub n_captures: u64,
    pub mime: Option<String>,
    pub status: Option<u16>,
}

/// One distinct content of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct VersionRow {
    pub digest: String,
    pub content: Option<String>,
    pub first_time: Timestamp,
    pub last_time: Timestamp,
    pub n_captures: u64,
    /// The capture whose record contains the payload; `None` if the archive has only revisits of it.
    pub origin: Option<i64>,
}

/// The size of an archive.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ArchiveCounts {
    /// Hosts with at least one captured page.
    pub n_sites: u64,
    /// Pages that people read with at least one capture.
    pub n_pages: u64,
    /// Pages known from links only.
    pub n_pages_linked_only: u64,
    /// Captures of all kinds.
    pub n_captures: u64,
    /// Captures that are revisits.
    pub n_revisits: u64,
    /// Revisits whose payload is in no record of the archive.
    pub n_unfounded: u64,
    /// Versions of which only the delta is stored.
    pub n_left_out: u64,
    /// Distinct contents.
    pub n_versions: u64,
    /// Analysed versions that are worth indexing.
    pub n_indexed: u64,
    /// Pages whose links are known.
    pub n_pages_with_links: u64,
    pub n_files: u64,
    /// Bytes of the WARC files.
    pub warc_bytes: u64,
    /// RFC 3339.
    pub first_capture: Option<String>,
    /// RFC 3339. Captures dated in the future do not count.
    pub last_capture: Option<String>,
    /// Captures dated in the future.
    pub n_future: u64,
    /// Records that could not be imported, trusted or analysed.
    pub quarantine: QuarantineCounts,
}

/// The payload that a 304 confirms.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct LatestPayload {
    pub digest: String,
    pub content: Option<String>,
    pub time: Timestamp,
    /// Identity of the payload if the version was omitted; `time` is then the time of its delta.
    pub left_out: Option<String>,
}

/// [`IDENTITY`] as a literal.
macro_rules! identity {
    () => {
        "coalesce(c.identity, c.content,
     (SELECT v.content FROM versions v WHERE v.page = c.page AND v.digest = c.digest AND v.content > ''
         ORDER BY v.content LIMIT 1),
     (SELECT v.content FROM versions v WHERE v.digest = c.digest AND v.content > '' AND v.origin IS NOT NULL
         ORDER BY v.content LIMIT 1),
     c.digest)"
    };
}

/// Whether a capture `c` is a 304 that confirms an omitted version. No other 304 has an identity.
macro_rules! confirms_left_out {
    () => {
        "(c.kind = 1 AND c.answer = 1 AND c.identity IS NOT NULL)"
    };
}
pub(super) use confirms_left_out;

const CONFIRMS: &str = confirms_left_out!();

/// The identity of the response of a capture `c`. A revisit by a different tool names its payload only by SHA-1. It
/// counts as its page's payload with that digest, or else as any page's.
pub(super) const IDENTITY: &str = identity!();

pub(super) const CAPTURE_COLUMNS: &str = concat!(
    "c.id, c.page, p.url, p.surt, c.time, c.kind, c.status, c.mime, c.digest, f.name, c.offset, c.length, \
     c.group_offset, c.group_length, c.answer, ",
    identity!(),
    ", c.content"
);

pub(super) const CAPTURE_TABLES: &str =
    "captures c JOIN pages p ON p.id = c.page JOIN files f ON f.id = c.file";

/// [`PAYLOAD`] as a literal.
macro_rules! payload {
    () => {
        "(c.kind <= 1 AND (c.status < 300 OR c.status = 304 AND c.kind = 1))"
    };
}

/// [`DELTA`] as a literal.
macro_rules! delta {
    () => {
        "(c.kind = 3 AND c.answer = 0)"
    };
}

/// [`WHOLE`] as a literal.
macro_rules! whole {
    () => {
        "(c.kind <= 1 AND c.status BETWEEN 200 AND 299 AND coalesce(c.answer, 0) <> 4)"
    };
}

/// A capture `c` that brought or confirmed a payload.
const PAYLOAD: &str = payload!();
/// A capture `c` whose version was omitted.
const DELTA: &str = delta!();
/// [`Capture::is_whole`] of a capture `c`.
const WHOLE: &str = whole!();

const LATEST_PAYLOAD: &str = concat!(
    "SELECT c.digest, c.content, c.time, CASE WHEN c.kind = 3 OR ",
    confirms_left_out!(),
    " THEN c.identity END, c.page FROM pages p JOIN captures c ON c.page = p.id
     WHERE p.url = ?1 AND c.time <= ?2 AND (",
    payload!(),
    " OR ",
    delta!(),
    ") ORDER BY c.time DESC, c.id DESC LIMIT 1"
);

/// This query runs for each page of each run, so it reads only the necessary columns.
const WHOLE_CAPTURE: &str = concat!(
    "SELECT c.id, c.time, c.kind, c.status, c.mime, c.content, c.answer, f.name, c.offset, c.length, c.group_offset,
         c.group_length
     FROM versions v CROSS JOIN captures c CROSS JOIN files f
     WHERE v.page = ?1 AND v.digest = ?2 AND v.content = coalesce(?3, v.content) AND c.page = v.page
     AND c.time = v.first_time AND c.digest = v.digest AND (c.content = ?3 OR ?3 IS NULL) AND f.id = c.file AND ",
    whole!(),
    " ORDER BY c.kind, c.id LIMIT 1"
);

pub(super) fn read_capture(row: &Row<'_>) -> rusqlite::Result<Capture> {
    Ok(Capture {
        id: row.get(0)?,
        page: PageId(row.get(1)?),
        url: row.get(2)?,
        surt: row.get(3)?,
        time: row.time(4)?,
        kind: CaptureKind::from_code(row.get(5)?),
        status: row.get(6)?,
        mime: row.get(7)?,
        digest: row.get(8)?,
        file: row.get(9)?,
        offset: row.count(10)?,
        length: row.count(11)?,
        group_offset: row.count(12)?,
        group_length: row.count(13)?,
        response_kind: row.get::<_, Option<i64>>(14)?.map(parse_response_kind),
        identity: Identity::parse(row.get_ref(15)?.as_str()?),
        content: row.get(16)?,
    })
}

impl Store {
    /// The numbers of the archive's contents. Captures after `until` are dated in the future.
    pub fn counts(&self, until: Timestamp) -> anyhow::Result<ArchiveCounts> {
        let count = |sql: &str| self.connection.count(sql, []);
        Ok(ArchiveCounts {
            n_sites: count("SELECT count(DISTINCT site) FROM pages WHERE n_captures > 0")?,
            n_pages: count(&format!("SELECT count(*) FROM pages p WHERE n_captures > 0 AND {PAGES}"))?,
            n_pages_linked_only: count("SELECT count(*) FROM pages WHERE n_captures = 0")?,
            n_captures: count("SELECT count(*) FROM captures")?,
            n_revisits: count("SELECT count(*) FROM captures WHERE kind = 1")?,
            n_unfounded: count(&format!(
                "SELECT count(*) FROM captures c WHERE c.kind = 1 AND NOT {CONFIRMS} AND NOT EXISTS (SELECT 1 FROM versions v
                     WHERE v.digest = c.digest AND v.content = coalesce(c.content, v.content) AND v.origin IS NOT NULL)",
            ))?,
            n_left_out: count(
                "SELECT count(*) FROM captures WHERE kind = 3 AND mime = 'application/x-vi-delta+xml'",
            )?,
            // A revisit that names its payload only by SHA-1 is not a separate version if the payload is in the
            // archive.
            n_versions: count(
                "SELECT count(*) FROM versions v WHERE v.content > '' OR NOT EXISTS (
                     SELECT 1 FROM versions w WHERE w.page = v.page AND w.digest = v.digest AND w.content > '')",
            )?,
            n_indexed: count("SELECT count(*) FROM lessons WHERE is_indexed")?,
            n_pages_with_links: count("SELECT count(*) FROM links")?,
            n_files: count("SELECT count(*) FROM files")?,
            warc_bytes: count("SELECT coalesce(sum(committed), 0) FROM files")?,
            first_capture: self.first_capture()?.map(Timestamp::to_rfc3339),
            last_capture: self.last_capture(until)?.map(Timestamp::to_rfc3339),
            n_future: self.count_after(until)?,
            quarantine: self.count_quarantined()?,
        })
    }

    /// Whether any page has two captures. Before, nothing can have changed.
    pub fn has_second_capture(&self) -> anyhow::Result<bool> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM pages p WHERE n_captures > 1 AND {PAGES})");
        Ok(self.connection.count(&sql, [])? > 0)
    }

    /// How many captures are dated after an instant.
    pub fn count_after(&self, until: Timestamp) -> anyhow::Result<u64> {
        let sql =
            "SELECT coalesce(sum((SELECT count(*) FROM captures c WHERE c.page = p.id AND c.time > ?1)), 0)
            FROM pages p WHERE p.last_seen > ?1";
        self.connection.count(sql, [until.as_millis()])
    }

    /// The first captures dated after an instant, by time: file, offset, URL, time.
    pub fn captures_after(
        &self,
        until: Timestamp,
        limit: usize,
    ) -> anyhow::Result<Vec<(String, u64, String, Timestamp)>> {
        let sql = "SELECT f.name, c.offset, p.url, c.time FROM pages p JOIN captures c ON c.page = p.id
            JOIN files f ON f.id = c.file WHERE p.last_seen > ?1 AND c.time > ?1 ORDER BY c.time, c.id LIMIT ?2";
        self.connection.rows(sql, params![until.as_millis(), limit as i64], |row| {
            Ok((row.get(0)?, row.count(1)?, row.get(2)?, row.time(3)?))
        })
    }

    /// Every site with captures, largest first. Documents rendered by a browser have no host, because they are captures
    /// of the pages that they show.
    pub fn sites(&self) -> anyhow::Result<Vec<SiteCounts>> {
        let sql = format!(
            "SELECT s.host, count(CASE WHEN {PAGES} THEN 1 END), sum(p.n_captures) FROM pages p
             JOIN sites s ON s.id = p.site
             WHERE p.n_captures > 0 AND s.host <> '' GROUP BY s.id ORDER BY 2 DESC, 1"
        );
        let read = |row: &Row<'_>| {
            Ok(SiteCounts { host: row.get(0)?, n_pages: row.count(1)?, n_captures: row.count(2)? })
        };
        self.connection.rows(&sql, [], read)
    }

    /// A page by its URL.
    pub fn page(&self, url: &str) -> anyhow::Result<Option<PageRow>> {
        let sql =
            "SELECT id, url, surt, first_seen, last_seen, n_captures, mime, status FROM pages WHERE url = ?1";
        self.connection.row(sql, [url], read_page)
    }

    /// Calls `each` with every captured page, in order of their numbers.
    pub fn each_page(&self, mut each: impl FnMut(PageRow) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let sql = "SELECT id, url, surt, first_seen, last_seen, n_captures, mime, status FROM pages
            WHERE n_captures > 0 ORDER BY id";
        self.connection.each_row(sql, [], |row| each(read_page(row)?))
    }

    /// The URL of a page; empty if there is no such page.
    pub fn page_url(&self, page: PageId) -> anyhow::Result<String> {
        let url = self.connection.row("SELECT url FROM pages WHERE id = ?1", [page.0], |row| row.get(0))?;
        Ok(url.unwrap_or_default())
    }

    /// A page's title at its last observation, if it was analysed and has one.
    pub fn page_title(&self, page: PageId) -> anyhow::Result<Option<String>> {
        let sql = "SELECT title FROM known WHERE page = ?1";
        Ok(self.connection.row(sql, [page.0], |row| row.get(0))?.flatten())
    }

    /// All pages of a host, in order of their numbers.
    pub fn host_pages(&self, host: &str) -> anyhow::Result<Vec<PageId>> {
        let sql = "SELECT p.id FROM pages p JOIN sites s ON s.id = p.site WHERE s.host = ?1 ORDER BY p.id";
        self.connection.rows(sql, [host], |row| row.get(0).map(PageId))
    }

    /// Calls `each` with every captured page that people read, with its site and URL, in order of their numbers.
    pub fn each_document(&self, mut each: impl FnMut(PageId, SiteId, &str)) -> anyhow::Result<()> {
        let sql = format!(
            "SELECT p.id, p.site, p.url FROM pages p
                WHERE p.first_seen IS NOT NULL AND {PAGES} ORDER BY p.id"
        );
        self.connection.each_row(&sql, [], |row| {
            each(PageId(row.get(0)?), SiteId(row.get(1)?), row.get_ref(2)?.as_str()?);
            Ok(())
        })
    }

    /// A capture by its number.
    pub fn capture(&self, id: i64) -> anyhow::Result<Option<Capture>> {
        let sql = format!("SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} WHERE c.id = ?1");
        self.connection.row(&sql, [id], read_capture)
    }

    /// All captures of a page, earliest first.
    pub fn page_captures(&self, page: PageId) -> anyhow::Result<Vec<Capture>> {
        let sql =
            format!("SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} WHERE c.page = ?1 ORDER BY c.time, c.id");
        self.connection.rows(&sql, [page.0], read_capture)
    }

    /// All versions of a page, by first appearance. A revisit that names its payload only by the index digest counts
    /// for it.
    pub fn page_versions(&self, page: PageId) -> anyhow::Result<Vec<VersionRow>> {
        let sql = "WITH named AS (SELECT v.digest, v.first_time, v.last_time, v.n_captures, v.origin,
                CASE WHEN v.content > '' THEN v.content ELSE (SELECT w.content FROM versions w
                WHERE w.page = v.page
                    AND w.digest = v.digest AND w.content > '' ORDER BY w.content LIMIT 1) END AS content
                FROM versions v WHERE v.page = ?1)
            SELECT digest, content, min(first_time), max(last_time), sum(n_captures), max(origin)
            FROM named
            GROUP BY digest, content ORDER BY min(first_time), max(origin), digest";
        self.connection.rows(sql, [page.0], |row| {
            Ok(VersionRow {
                digest: row.get(0)?,
                content: row.get(1)?,
                first_time: row.time(2)?,
                last_time: row.time(3)?,
                n_captures: row.count(4)?,
                origin: row.get(5)?,
            })
        })
    }

    /// A capture whose record was checked and contains this payload: the first of the same page, or else of any page.
    /// Both digests must match, and the SHA-256 decides.
    pub fn payload_origin(&self, url: &str, digest: &str, content: &str) -> anyhow::Result<Option<Capture>> {
        self.origin_where("v.content = ?2", url, digest, content)
    }

    /// The same for a payload known only by its index digest, as in revisits by other tools.
    pub fn origin_by_digest(&self, url: &str, digest: &str) -> anyhow::Result<Option<Capture>> {
        self.origin_where("v.content >= ?2", url, digest, "")
    }

    fn origin_where(
        &self,
        condition: &str,
        url: &str,
        digest: &str,
        content: &str,
    ) -> anyhow::Result<Option<Capture>> {
        let here = "v.page = (SELECT id FROM pages WHERE url = ?3) AND";
        for (place, values) in [(here, &[digest, content, url][..]), ("", &[digest, content])] {
            let sql = format!(
                "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} WHERE c.id = (
                    SELECT v.origin FROM versions v CROSS JOIN captures o ON o.id = v.origin
                    WHERE {place} v.digest = ?1 AND {condition} AND v.origin IS NOT NULL AND o.kind = 0
                    ORDER BY v.content, v.origin LIMIT 1)"
            );
            let found = self.connection.row(&sql, params_from_iter(values), read_capture)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Whether an index digest belongs to the payload with this content.
    pub fn digest_matches(&self, digest: &str, content: &str) -> anyhow::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM versions WHERE digest = ?1 AND content = ?2
            AND origin IS NOT NULL)";
        self.connection.value(sql, [digest, content])
    }

    /// Digests and time of the latest capture of a URL that brought or confirmed a payload, which a 304 confirms. An
    /// error page in between does not count.
    pub fn latest_payload(&self, url: &str, until: Timestamp) -> anyhow::Result<Option<LatestPayload>> {
        let read = |row: &Row<'_>| {
            let time = row.time(2)?;
            let payload =
                LatestPayload { digest: row.get(0)?, content: row.get(1)?, time, left_out: row.get(3)? };
            Ok((payload, PageId(row.get(4)?)))
        };
        let found = self.connection.row(LATEST_PAYLOAD, params![url, until.as_millis()], read)?;
        let Some((mut latest, page)) = found else { return Ok(None) };
        if let Some(left_out) = &latest.left_out {
            latest.time = self.time_of_delta(page, left_out, latest.time)?;
        }
        Ok(Some(latest))
    }

    /// When the delta of an omitted version was stored that an observation at this time confirms.
    fn time_of_delta(&self, page: PageId, left_out: &str, time: Timestamp) -> anyhow::Result<Timestamp> {
        let values = params![page.0, time.as_millis(), left_out];
        let sql = "SELECT max(time) FROM captures WHERE page = ?1 AND time <= ?2 AND kind = 3
            AND identity = ?3";
        Ok(self.connection.time(sql, values)?.unwrap_or(time))
    }

    /// A capture of the same page whose record shows the payload that a revisit names. Work: one lookup in the
    /// versions.
    pub fn whole_capture_for(&self, revisit: &Capture) -> anyhow::Result<Option<Capture>> {
        let read = |row: &Row<'_>| {
            Ok(Capture {
                id: row.get(0)?,
                time: row.time(1)?,
                kind: CaptureKind::from_code(row.get(2)?),
                status: row.get(3)?,
                mime: row.get(4)?,
                content: row.get(5)?,
                response_kind: row.get::<_, Option<i64>>(6)?.map(parse_response_kind),
                file: row.get(7)?,
                offset: row.count(8)?,
                length: row.count(9)?,
                group_offset: row.count(10)?,
                group_length: row.count(11)?,
                // Page and payload are the same.
                ..revisit.clone()
            })
        };
        let values = params![revisit.page.0, revisit.digest, revisit.content];
        self.connection.row(WHOLE_CAPTURE, values, read)
    }

    /// The last capture of a page at or before an instant whose record shows the page.
    pub fn whole_capture_before(&self, page: PageId, time: Timestamp) -> anyhow::Result<Option<Capture>> {
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} WHERE c.page = ?1 AND c.time <= ?2
                AND {WHOLE}
                ORDER BY c.time DESC, c.id DESC LIMIT 1"
        );
        self.connection.row(&sql, params![page.0, time.as_millis()], read_capture)
    }

    /// Whether a capture showed an omitted version: its delta, or a 304 that confirms it.
    pub fn is_left_out(&self, capture: &Capture) -> anyhow::Result<bool> {
        let sql = format!("SELECT {DELTA} OR {CONFIRMS} FROM captures c WHERE c.id = ?1");
        Ok(self.connection.value::<Option<bool>>(&sql, [capture.id])?.unwrap_or_default())
    }

    /// How often a page showed an omitted version.
    pub fn n_left_out_observations(&self, page: PageId, content: &str) -> anyhow::Result<u64> {
        let sql = "SELECT count(*) FROM captures WHERE page = ?1 AND answer <= 1 AND identity = ?2";
        self.connection.count(sql, params![page.0, content])
    }

    /// True if a capture of the URL had this payload.
    pub fn has_version(&self, url: &str, digest: &str, content: Option<&str>) -> anyhow::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM versions v JOIN pages p ON p.id = v.page
            WHERE p.url = ?1 AND v.digest = ?2 AND v.content IN (coalesce(?3, ''), ''))";
        self.connection.value(sql, params![url, digest, content])
    }

    /// True if a capture's record begins there.
    pub fn has_capture_at(&self, file: &str, offset: u64) -> anyhow::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM captures WHERE file = (SELECT id FROM files
            WHERE name = ?1) AND offset = ?2)";
        self.connection.value(sql, params![file, offset as i64])
    }

    /// True if a capture of this URL and second has this payload.
    pub fn has_capture(&self, url: &str, time: Timestamp, digest: &str) -> anyhow::Result<bool> {
        let millis = Timestamp::from_secs(time.as_secs()).as_millis();
        let sql = "SELECT EXISTS (SELECT 1 FROM captures c JOIN pages p ON p.id = c.page
            WHERE p.url = ?1 AND c.time = ?2 AND c.digest = ?3)";
        self.connection.value(sql, params![url, millis, digest])
    }

    /// The capture of a URL closest to an instant that brought or confirmed a payload, including omitted ones.
    pub fn closest_observation(&self, url: &str, time: Timestamp) -> anyhow::Result<Option<Capture>> {
        self.closest_where(&format!("({PAYLOAD} OR {DELTA})"), url, time)
    }

    /// The capture of a URL closest to an instant that brought or confirmed a payload.
    pub fn closest_payload(&self, url: &str, time: Timestamp) -> anyhow::Result<Option<Capture>> {
        self.closest_where(PAYLOAD, url, time)
    }

    fn closest_where(&self, what: &str, url: &str, time: Timestamp) -> anyhow::Result<Option<Capture>> {
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} WHERE p.url = ?1 AND {what}
                ORDER BY abs(c.time - ?2), c.id LIMIT 1"
        );
        self.connection.row(&sql, params![url, time.as_millis()], read_capture)
    }

    /// The capture of a URL at an instant.
    pub fn capture_at(&self, url: &str, time: Timestamp) -> anyhow::Result<Option<Capture>> {
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} WHERE p.url = ?1 AND c.time = ?2
                ORDER BY c.id LIMIT 1"
        );
        self.connection.row(&sql, params![url, time.as_millis()], read_capture)
    }

    /// The latest capture of a URL at or before an instant.
    pub fn latest_capture(&self, url: &str, until: Timestamp) -> anyhow::Result<Option<Capture>> {
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} WHERE p.url = ?1 AND c.time <= ?2
                ORDER BY c.time DESC, c.id DESC LIMIT 1"
        );
        self.connection.row(&sql, params![url, until.as_millis()], read_capture)
    }

    /// Calls `each` with every capture that passes the filter, in index order.
    pub fn each_capture(
        &self,
        filter: &CaptureFilter,
        mut each: impl FnMut(Capture) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // The text contains only the given conditions, so SQLite can plan for them.
        let mut sql = format!("SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} WHERE 1");
        let mut values: Vec<Value> = Vec::new();
        if let Some(site) = &filter.site {
            sql.push_str(" AND p.site = (SELECT id FROM sites WHERE host = ?)");
            values.push(site.clone().into());
        }
        if let Some(page) = &filter.page {
            sql.push_str(&format!(" AND p.url IN (?{})", ", ?".repeat(filter.parts.len())));
            values.extend([page].into_iter().chain(&filter.parts).map(|url| Value::from(url.clone())));
        }
        if let Some(since) = filter.since {
            sql.push_str(" AND c.time >= ?");
            values.push(since.as_millis().into());
        }
        if let Some(until) = filter.until {
            sql.push_str(" AND c.time < ?");
            values.push(until.as_millis().into());
        }
        sql.push_str(" ORDER BY p.surt, c.time, c.id");
        self.connection.each_row(&sql, params_from_iter(values), |row| each(read_capture(row)?))
    }

    /// At most `limit` captures in one file from an offset on, in order of their offsets.
    pub fn captures_in(&self, file: &str, from: u64, limit: usize) -> anyhow::Result<Vec<Capture>> {
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES}
                WHERE c.file = (SELECT id FROM files WHERE name = ?1) AND c.offset >= ?2 ORDER BY c.offset
                LIMIT ?3"
        );
        self.connection.rows(&sql, params![file, from as i64, limit as i64], read_capture)
    }

    /// All WARC files in the state, oldest first.
    pub fn files(&self) -> anyhow::Result<Vec<FileRow>> {
        let sql = "SELECT name, state, committed, source_digest FROM files ORDER BY id";
        self.connection.rows(sql, [], |row| {
            Ok(FileRow {
                name: row.get(0)?,
                state: FileState::from_name(&row.get::<_, String>(1)?),
                committed_bytes: row.count(2)?,
                source_digest: row.get(3)?,
            })
        })
    }
}

pub(super) fn read_page(row: &Row<'_>) -> rusqlite::Result<PageRow> {
    let time = |millis: Option<i64>| millis.map(Timestamp::from_millis);
    Ok(PageRow {
        id: PageId(row.get(0)?),
        url: row.get(1)?,
        surt: row.get(2)?,
        first_seen: time(row.get(3)?),
        last_seen: time(row.get(4)?),
        n_captures: row.count(5)?,
        mime: row.get(6)?,
        status: row.get(7)?,
    })
}
