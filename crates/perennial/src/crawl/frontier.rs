//! What the crawl remembers of every address between visits: SQL in, rows out.
//!
//! All writes happen inside the transaction that commits the captures they speak of, so a page counts as
//! visited exactly when its capture is safe. Nothing here is needed to read the archive; `verify --rebuild` may
//! lose it, and the crawl then begins again from the seeds, finding that most pages are unchanged.

use std::collections::HashMap;

use anyhow::Context;
use perennial_core::page::{PageId, SiteId};
use perennial_core::politeness::HostState;
use perennial_core::time::Timestamp;
use perennial_core::validator::ValidatorTrust;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::store::PageNumbers;

/// What an address is to the crawl.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageKind {
    /// Visited again and again, read for links.
    Page,
    /// A style sheet, an image: captured with the pages that need it.
    Requisite,
    /// Read for addresses.
    Sitemap,
}

impl PageKind {
    fn from_code(code: i64) -> PageKind {
        match code {
            1 => PageKind::Requisite,
            2 => PageKind::Sitemap,
            _ => PageKind::Page,
        }
    }
}

/// How the last visit ended, as stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// Another content than before.
    Changed,
    /// The same content.
    Unchanged,
    /// Nothing that counts came back.
    Failed,
    /// It is not there, or may not be fetched.
    Gone,
}

impl Ending {
    /// Reads the stored number.
    pub fn from_code(code: i64) -> Ending {
        match code {
            0 => Ending::Changed,
            1 => Ending::Unchanged,
            3 => Ending::Gone,
            _ => Ending::Failed,
        }
    }
}

/// An address on its way to being visited.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its number.
    pub page: PageId,
    /// Its host's number.
    pub site: SiteId,
    /// Where it is.
    pub url: String,
    /// What it is.
    pub kind: PageKind,
    /// Number of its seed in `crawl_seeds`.
    pub seed: i64,
    /// Links from the seed.
    pub depth: u32,
    /// Redirects that led here in a row.
    pub n_redirects: u32,
    /// The last visit that ended.
    pub visited: Option<Timestamp>,
    /// Visits that failed in a row.
    pub n_failures: u16,
    /// Payload of the last full answer.
    pub digest: Option<String>,
    /// Its validators.
    pub etag: Option<String>,
    /// Its validators.
    pub last_modified: Option<String>,
    /// What they are worth.
    pub trust: ValidatorTrust,
}

/// What loading tells of each known address.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its number.
    pub page: PageId,
    /// Its host's number.
    pub site: SiteId,
    /// Where it is.
    pub url: String,
    /// What it is.
    pub kind: PageKind,
    /// Number of its seed in `crawl_seeds`.
    pub seed: i64,
    /// Links from the seed.
    pub depth: u32,
    /// The last visit that ended.
    pub visited: Option<Timestamp>,
    /// How.
    pub ending: Option<Ending>,
    /// Visits that failed in a row.
    pub n_failures: u16,
}

/// What a visit changes in its row.
#[derive(Clone, Debug)]
pub struct Visited {
    /// Whose.
    pub page: PageId,
    /// When it ended.
    pub at: Timestamp,
    /// How.
    pub ending: Ending,
    /// Failures in a row, this one included.
    pub n_failures: u16,
    /// Payload and validators of a full answer; None leaves what is there.
    pub answer: Option<(String, Option<String>, Option<String>)>,
    /// What the validators are worth now.
    pub trust: ValidatorTrust,
}

/// An address that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Canonical.
    pub url: String,
    /// What it is.
    pub kind: PageKind,
    /// Number of its seed in `crawl_seeds`.
    pub seed: i64,
    /// Links from the seed.
    pub depth: u32,
    /// Redirects that led here in a row.
    pub n_redirects: u32,
    /// When a sitemap says that it changed.
    pub changed: Option<Timestamp>,
}

/// Numbers of the seeds, given out once.
pub fn seed_numbers(transaction: &Transaction<'_>, urls: &[String]) -> rusqlite::Result<Vec<i64>> {
    let mut put = transaction.prepare_cached(
        "INSERT INTO crawl_seeds (url) VALUES (?1) ON CONFLICT (url) DO UPDATE SET url = url RETURNING id",
    )?;
    urls.iter().map(|url| put.query_row([url], |row| row.get(0))).collect()
}

/// Adds an address, or makes a requisite a page when a link leads to it. Gives its numbers.
pub fn put_found(
    transaction: &Transaction<'_>,
    numbers: &mut PageNumbers<'_>,
    found: &Found,
) -> anyhow::Result<(PageId, SiteId)> {
    let (page, site) = numbers.page_and_site(&found.url)?;
    transaction
        .prepare_cached(
            "INSERT INTO crawl_pages (page, kind, seed, depth, n_redirects) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (page) DO UPDATE SET kind = min(kind, ?2), depth = min(depth, ?4), seed = ?3
             WHERE kind > ?2 OR (kind = ?2 AND depth > ?4)",
        )?
        .execute(params![page.0, found.kind as i64, found.seed, found.depth, found.n_redirects])?;
    Ok((page, site))
}

/// Books a visit.
pub fn put_visited(transaction: &Transaction<'_>, visited: &Visited) -> rusqlite::Result<()> {
    let (digest, etag, last_modified) = match &visited.answer {
        Some((digest, etag, last_modified)) => (Some(digest), etag.as_ref(), last_modified.as_ref()),
        None => (None, None, None),
    };
    transaction
        .prepare_cached(
            "UPDATE crawl_pages SET visited = ?2, ending = ?3, n_failures = ?4, trust = ?5,
                 etag = CASE WHEN ?6 IS NULL THEN etag ELSE ?7 END,
                 last_modified = CASE WHEN ?6 IS NULL THEN last_modified ELSE ?8 END,
                 digest = coalesce(?6, digest)
             WHERE page = ?1",
        )?
        .execute(params![
            visited.page.0,
            visited.at.as_millis(),
            visited.ending as i64,
            visited.n_failures,
            visited.trust.to_bytes(),
            digest,
            etag,
            last_modified,
        ])?;
    Ok(())
}

/// Remembers when a host may be asked again.
pub fn put_host(transaction: &Transaction<'_>, site: SiteId, state: &HostState) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO crawl_hosts (site, ready_at, n_troubles) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![site.0, state.ready_at.as_millis(), state.n_troubles])?;
    Ok(())
}

/// All hosts that must still be left in peace.
pub fn load_hosts(connection: &Connection) -> rusqlite::Result<HashMap<SiteId, HostState>> {
    let mut statement = connection.prepare("SELECT site, ready_at, n_troubles FROM crawl_hosts")?;
    let rows = statement.query_map([], |row| {
        let state = HostState { ready_at: Timestamp::from_millis(row.get(1)?), n_troubles: row.get(2)? };
        Ok((SiteId(row.get(0)?), state))
    })?;
    rows.collect()
}

/// Everything needed to visit a page; None when it is no longer known.
pub fn target(connection: &Connection, page: PageId) -> anyhow::Result<Option<Target>> {
    connection
        .prepare_cached(
            "SELECT c.page, p.site, p.url, c.kind, c.seed, c.depth, c.n_redirects, c.visited, c.n_failures, c.digest,
                 c.etag, c.last_modified, c.trust
             FROM crawl_pages c JOIN pages p ON p.id = c.page WHERE c.page = ?1",
        )?
        .query_row([page.0], read_target)
        .optional()
        .context("cannot read the crawl's state")
}

fn read_target(row: &Row<'_>) -> rusqlite::Result<Target> {
    Ok(Target {
        page: PageId(row.get(0)?),
        site: SiteId(row.get(1)?),
        url: row.get(2)?,
        kind: PageKind::from_code(row.get(3)?),
        seed: row.get(4)?,
        depth: row.get(5)?,
        n_redirects: row.get(6)?,
        visited: row.get::<_, Option<i64>>(7)?.map(Timestamp::from_millis),
        n_failures: row.get(8)?,
        digest: row.get(9)?,
        etag: row.get(10)?,
        last_modified: row.get(11)?,
        trust: ValidatorTrust::from_bytes(&row.get::<_, Option<Vec<u8>>>(12)?.unwrap_or_default()),
    })
}

/// Calls `each` with every address that the crawl knows, in the order in which they were found.
pub fn each_known(connection: &Connection, mut each: impl FnMut(Known)) -> anyhow::Result<()> {
    let mut statement = connection.prepare(
        "SELECT c.page, p.site, p.url, c.kind, c.seed, c.depth, c.visited, c.ending, c.n_failures
         FROM crawl_pages c JOIN pages p ON p.id = c.page ORDER BY c.page",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        each(Known {
            page: PageId(row.get(0)?),
            site: SiteId(row.get(1)?),
            url: row.get(2)?,
            kind: PageKind::from_code(row.get(3)?),
            seed: row.get(4)?,
            depth: row.get(5)?,
            visited: row.get::<_, Option<i64>>(6)?.map(Timestamp::from_millis),
            ending: row.get::<_, Option<i64>>(7)?.map(Ending::from_code),
            n_failures: row.get(8)?,
        });
    }
    Ok(())
}

/// Begins a pass over everything (`--once`), or goes on with one that did not end. Gives its number and start.
pub fn begin_pass(transaction: &Transaction<'_>, now: Timestamp) -> rusqlite::Result<(i64, Timestamp)> {
    let open = transaction
        .query_row(
            "SELECT id, started FROM crawl_passes WHERE ended IS NULL ORDER BY id DESC LIMIT 1",
            [],
            |row| Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?))),
        )
        .optional()?;
    if let Some(open) = open {
        return Ok(open);
    }
    transaction.execute("INSERT INTO crawl_passes (started) VALUES (?1)", [now.as_millis()])?;
    Ok((transaction.last_insert_rowid(), now))
}

/// Notes that a pass is complete.
pub fn end_pass(transaction: &Transaction<'_>, pass: i64, now: Timestamp) -> rusqlite::Result<()> {
    transaction
        .execute("UPDATE crawl_passes SET ended = ?2 WHERE id = ?1", params![pass, now.as_millis()])?;
    Ok(())
}

/// The latest visit of all: where a virtual clock goes on.
pub fn last_visit(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let millis: Option<i64> =
        connection.query_row("SELECT max(visited) FROM crawl_pages", [], |row| row.get(0))?;
    Ok(millis.map(Timestamp::from_millis))
}

/// The first capture of all: where what can be learned begins.
pub fn first_capture(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let millis: Option<i64> =
        connection.query_row("SELECT min(first_seen) FROM pages", [], |row| row.get(0))?;
    Ok(millis.map(Timestamp::from_millis))
}

/// Whether a page had a visit that ended.
pub fn was_visited(connection: &Connection, page: PageId) -> rusqlite::Result<bool> {
    let visited: Option<Option<i64>> = connection
        .prepare_cached("SELECT visited FROM crawl_pages WHERE page = ?1")?
        .query_row([page.0], |row| row.get(0))
        .optional()?;
    Ok(visited.flatten().is_some())
}

/// The numbers of all seeds that ever were, by address.
pub fn seeds(connection: &Connection) -> rusqlite::Result<HashMap<String, i64>> {
    let mut statement = connection.prepare("SELECT url, id FROM crawl_seeds")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
