//! The tables, as numbered steps that migrate a state file of any earlier version.
//!
//! To add tables, append a step; never change a released step. `verify --rebuild` starts from an empty file. A step may
//! therefore leave new columns empty if filling them needs the WARC files.

use anyhow::bail;
use perennial_core::http::response::Identity;
use rusqlite::{Connection, params};

use super::ingest::{CaptureKind, CaptureRow};
use super::quarantine::QuarantinedRecord;
use super::rows::Columns;
use super::trees;

/// Each step runs once, in order; `user_version` counts the completed ones.
const STEPS: &[&str] = &[
    // 1: archive
    "
    CREATE TABLE sites (
        id INTEGER PRIMARY KEY,          -- dense
        host TEXT NOT NULL UNIQUE        -- lower case, with a port if not the scheme's own
    );
    CREATE TABLE pages (
        id INTEGER PRIMARY KEY,          -- dense, fits in 32 bits
        url TEXT NOT NULL UNIQUE,
        surt TEXT NOT NULL,              -- key of the CDXJ index
        site INTEGER NOT NULL REFERENCES sites(id),
        first_seen INTEGER,              -- milliseconds since 1970; NULL: known from links only
        last_seen INTEGER,
        n_captures INTEGER NOT NULL DEFAULT 0,
        mime TEXT,                       -- of the latest capture
        status INTEGER                   -- of the latest capture
    );
    CREATE INDEX pages_surt ON pages(surt);
    CREATE INDEX pages_site ON pages(site);
    CREATE TABLE files (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,       -- without .open
        state TEXT NOT NULL,             -- open: we write it; closed: we wrote it; imported
        committed INTEGER NOT NULL,      -- bytes whose captures are in this state
        source_digest TEXT               -- sha256 of an imported file as it was given
    );
    CREATE TABLE captures (
        id INTEGER PRIMARY KEY,
        page INTEGER NOT NULL REFERENCES pages(id),
        time INTEGER NOT NULL,
        kind INTEGER NOT NULL,           -- 0 response, 1 revisit, 2 resource, 3 metadata
        status INTEGER,
        mime TEXT,
        digest TEXT NOT NULL,            -- of the payload, sha1:BASE32 unless another tool wrote it
        file INTEGER NOT NULL REFERENCES files(id),
        offset INTEGER NOT NULL,
        length INTEGER NOT NULL,
        group_offset INTEGER NOT NULL,   -- the exchange: this record with its request and metadata
        group_length INTEGER NOT NULL
    );
    CREATE INDEX captures_page ON captures(page, time);
    CREATE UNIQUE INDEX captures_place ON captures(file, offset);
    CREATE TABLE versions (
        id INTEGER PRIMARY KEY,
        page INTEGER NOT NULL REFERENCES pages(id),
        digest TEXT NOT NULL,
        first_time INTEGER NOT NULL,
        last_time INTEGER NOT NULL,
        n_captures INTEGER NOT NULL,
        origin INTEGER REFERENCES captures(id), -- earliest known record that holds the payload; NULL: only revisits
        UNIQUE (page, digest)
    );
    CREATE INDEX versions_digest ON versions(digest);
    CREATE TABLE links (
        page INTEGER PRIMARY KEY REFERENCES pages(id),
        time INTEGER NOT NULL,           -- of the capture they were taken from, the latest one
        targets BLOB NOT NULL            -- page numbers ascending, LEB128 of the differences
    );
    CREATE TABLE runs (
        name TEXT PRIMARY KEY,           -- file in index/
        first_capture INTEGER NOT NULL,  -- the run holds the captures numbered from here
        last_capture INTEGER NOT NULL,   -- to here
        bytes INTEGER NOT NULL
    );
    ",
    // 2: analysis, computed from the captures alone
    "
    CREATE TABLE observations (
        page INTEGER NOT NULL REFERENCES pages(id),
        time INTEGER NOT NULL,           -- of the capture
        before INTEGER,                  -- of the capture it was compared with; NULL: the first
        importance REAL NOT NULL,        -- 0 to 1
        is_noise INTEGER NOT NULL,       -- there were changes, all of them noise
        n_operations INTEGER NOT NULL,
        delta BLOB,                      -- Vi-Delta, zstd; NULL: a reader sees no difference
        PRIMARY KEY (page, time)
    ) WITHOUT ROWID;
    CREATE INDEX observations_time ON observations(time);
    CREATE TABLE trees (
        page INTEGER NOT NULL REFERENCES pages(id),
        time INTEGER NOT NULL,           -- of the first capture that showed it
        vixml BLOB NOT NULL,             -- Vi-XML, zstd
        PRIMARY KEY (page, time)
    );
    CREATE TABLE known (                 -- what the next capture of a page is compared with
        page INTEGER PRIMARY KEY REFERENCES pages(id),
        time INTEGER NOT NULL,           -- of the capture that was analysed last
        tree_time INTEGER NOT NULL,      -- of the tree it showed
        digest TEXT NOT NULL,            -- of its payload
        noise BLOB NOT NULL              -- history of what changes without saying anything
    );
    ",
    // 3: crawl
    "
    CREATE TABLE crawl_seeds (
        id INTEGER PRIMARY KEY,
        url TEXT NOT NULL UNIQUE         -- as in perennial.toml, canonical
    );
    CREATE TABLE crawl_pages (           -- what the crawl knows, pages in its scope and what they need
        page INTEGER PRIMARY KEY REFERENCES pages(id),
        kind INTEGER NOT NULL,           -- 0 page, 1 requisite, 2 sitemap
        seed INTEGER NOT NULL REFERENCES crawl_seeds(id),
        depth INTEGER NOT NULL,          -- links from the seed
        n_redirects INTEGER NOT NULL,    -- that led here in a row
        visited INTEGER,                 -- end of the last visit; NULL: never
        ending INTEGER,                  -- 0 changed, 1 unchanged, 2 failed, 3 gone
        n_failures INTEGER NOT NULL DEFAULT 0, -- in a row
        digest TEXT,                     -- payload of the last full answer
        etag TEXT,                       -- sent with it
        last_modified TEXT,
        trust BLOB                       -- what the two are worth
    );
    CREATE TABLE crawl_hosts (
        site INTEGER PRIMARY KEY REFERENCES sites(id),
        ready_at INTEGER NOT NULL,       -- not to be asked before
        n_troubles INTEGER NOT NULL      -- overloads and silences in a row
    );
    CREATE TABLE crawl_passes (          -- crawl --once
        id INTEGER PRIMARY KEY,
        started INTEGER NOT NULL,
        ended INTEGER                    -- NULL: the next crawl --once goes on with it
    );
    ",
    // 4: budgets; which versions are worth indexing
    "
    ALTER TABLE observations ADD COLUMN is_indexed INTEGER NOT NULL DEFAULT 1;
                                         -- importance since the last indexed version reached the page's threshold
    ALTER TABLE known ADD COLUMN first INTEGER;              -- of the first capture that was analysed
    ALTER TABLE known ADD COLUMN total REAL NOT NULL DEFAULT 0;    -- importance since then
    ALTER TABLE known ADD COLUMN gathered REAL NOT NULL DEFAULT 0; -- importance since the last indexed version
    CREATE TABLE crawl_spent (           -- what budgets are counted by, for two days or two periods
        seed INTEGER NOT NULL,           -- 0: all together
        start INTEGER NOT NULL,          -- the minute
        n_visits INTEGER NOT NULL,       -- of pages
        n_bytes INTEGER NOT NULL,        -- of bodies, subresources too
        PRIMARY KEY (seed, start)
    ) WITHOUT ROWID;
    ",
    // 5: every observation of a page has an analysis, even if nothing can be laid out
    "
    ALTER TABLE captures ADD COLUMN answer INTEGER;
                                         -- 0 content, 1 not modified, 2 redirect, 3 gone, 4 failed; NULL: no look at a page
    ALTER TABLE captures ADD COLUMN identity TEXT;
                                         -- what tells the answer from another, where that is not its digest
    UPDATE captures SET
        answer = CASE WHEN kind = 3 OR status BETWEEN 200 AND 299 THEN 0 WHEN status = 304 THEN 1
            WHEN status BETWEEN 300 AND 399 THEN 2 WHEN status IN (408, 425, 429) OR status BETWEEN 500 AND 599 THEN 4
            ELSE 3 END,
        identity = CASE WHEN kind = 3 OR status BETWEEN 200 AND 299 OR status = 304 THEN NULL
            WHEN status BETWEEN 300 AND 399 THEN status || ' ' -- and where to: see fill_identities
            WHEN status IN (408, 425, 429) OR status BETWEEN 500 AND 599 THEN NULL ELSE CAST(status AS TEXT) END
        WHERE kind <= 1 AND status IS NOT NULL OR kind = 3 AND mime = 'application/x-vi-delta+xml';
    CREATE TABLE lessons (
        page INTEGER NOT NULL REFERENCES pages(id),
        time INTEGER NOT NULL,           -- of the capture
        before INTEGER,                  -- of the capture it was compared with; NULL: the first
        seen INTEGER NOT NULL,           -- 0 first, 1 same, 2 noise, 3 changed, 4 unjudged, 5 gone
        importance REAL NOT NULL,        -- 0 to 1
        n_operations INTEGER NOT NULL,
        delta BLOB,                      -- Vi-Delta, zstd; NULL: a reader sees no difference, or nobody can tell
        is_indexed INTEGER NOT NULL,     -- importance since the last indexed version reached the page's threshold
        PRIMARY KEY (page, time)
    ) WITHOUT ROWID;
    CREATE INDEX lessons_time ON lessons(time);
    INSERT INTO lessons SELECT page, time, before,
        CASE WHEN before IS NULL THEN 0 WHEN is_noise THEN 2 WHEN delta IS NULL THEN 1 ELSE 3 END,
        CASE WHEN is_noise THEN 0 ELSE importance END, n_operations, delta, is_indexed FROM observations;
    DROP TABLE observations;
    CREATE TABLE known_5 (               -- what the next look at a page is compared with
        page INTEGER PRIMARY KEY REFERENCES pages(id),
        time INTEGER NOT NULL,           -- of the last look
        tree_time INTEGER,               -- of the last tree; NULL: none could be laid out
        identity TEXT NOT NULL,          -- what tells the last answer from another
        noise BLOB NOT NULL,             -- history of what changes without saying anything
        first INTEGER NOT NULL,          -- of the first look
        total REAL NOT NULL,             -- importance since then
        gathered REAL NOT NULL           -- importance since the last indexed version
    );
    INSERT INTO known_5 SELECT page, time, tree_time, digest, noise, coalesce(first, time), total, gathered FROM known;
    DROP TABLE known;
    ALTER TABLE known_5 RENAME TO known;
    ALTER TABLE crawl_pages ADD COLUMN identity TEXT; -- what tells the last answer from another, where that is not its digest
    ",
    // 6: the kind of a URL, from its captures, so a rebuilt state has it too; the version that a page's last tree shows
    "
    ALTER TABLE pages ADD COLUMN kind INTEGER; -- 0 page, 1 requisite, 2 sitemap; NULL: no capture tells
    UPDATE pages SET kind = coalesce(
        (SELECT f.kind FROM crawl_pages f WHERE f.page = pages.id),
        (SELECT 0 FROM captures c WHERE c.page = pages.id AND (c.answer = 0 AND c.kind = 0
            AND c.mime IN ('text/html', 'application/xhtml+xml') OR c.kind = 3 AND c.answer = 0) LIMIT 1))
        WHERE n_captures > 0;
    DELETE FROM links WHERE length(targets) = 0    -- robots.txt, which links to nothing
        AND page NOT IN (SELECT id FROM pages WHERE mime IN ('text/html', 'application/xhtml+xml'));
    ALTER TABLE known ADD COLUMN shown_identity TEXT;  -- the version that the last tree shows
    ALTER TABLE known ADD COLUMN shown_time INTEGER;   -- the look at it; both NULL: a later version could not be laid out
    UPDATE known SET shown_identity = identity, shown_time =
            (SELECT min(c.time) FROM captures c WHERE c.page = known.page AND c.answer <= 1
                AND coalesce(c.identity, c.digest) = known.identity AND c.time > coalesce(
                    (SELECT max(d.time) FROM captures d WHERE d.page = known.page AND d.answer <= 1
                        AND coalesce(d.identity, d.digest) <> known.identity), -1))
        WHERE tree_time IS NOT NULL
        AND EXISTS (SELECT 1 FROM captures c WHERE c.page = known.page AND c.time = known.time AND c.answer <= 1)
        AND EXISTS (SELECT 1 FROM lessons l WHERE l.page = known.page AND l.time = known.time AND l.seen <> 4);
    ",
    // 7: payloads are identified by their SHA-256, which is computed and never trusted; quarantine
    "
    ALTER TABLE captures ADD COLUMN content TEXT; -- sha256:BASE32 of the payload, computed from the record; of a revisit as
                                         -- it names it; NULL: nobody could tell
    CREATE TABLE versions_7 (
        id INTEGER PRIMARY KEY,
        page INTEGER NOT NULL REFERENCES pages(id),
        digest TEXT NOT NULL,            -- as the index has it
        content TEXT NOT NULL,           -- what tells it from other payloads; empty: revisits that do not name it
        first_time INTEGER NOT NULL,
        last_time INTEGER NOT NULL,
        n_captures INTEGER NOT NULL,
        origin INTEGER REFERENCES captures(id), -- earliest known sound record that holds the payload; NULL: none
        UNIQUE (page, digest, content)
    );
    INSERT INTO versions_7 SELECT id, page, digest, '', first_time, last_time, n_captures, origin FROM versions;
    DROP TABLE versions;
    ALTER TABLE versions_7 RENAME TO versions;
    CREATE INDEX versions_payload ON versions(digest, content, origin) WHERE origin IS NOT NULL;
    CREATE TABLE set_aside (
        id INTEGER PRIMARY KEY,
        file INTEGER NOT NULL REFERENCES files(id),
        offset INTEGER NOT NULL,         -- of the record
        reason TEXT NOT NULL,            -- record: it cannot be a capture; digest: its bytes contradict what it claims;
                                         -- analysis: it could not be read when it was to be analysed
        what TEXT NOT NULL,              -- in words
        UNIQUE (file, offset, reason)
    );
    ",
    // 8: pages that vanish, move and return; pages rendered by a browser; `/index.html` that is `/`. Such pages are
    // analysed again from their captures. lessons.seen: 5 absent, 6 vanished, 7 redirected, 8 returned
    "
    ALTER TABLE known ADD COLUMN was_page INTEGER NOT NULL DEFAULT 1; -- whether any look showed a page
    ALTER TABLE known ADD COLUMN title TEXT;           -- as the last look showed it
    ALTER TABLE lessons ADD COLUMN title TEXT;         -- of the page, where the look showed a change
    ALTER TABLE lessons ADD COLUMN title_before TEXT;  -- where it had another
    ALTER TABLE pages ADD COLUMN linked_at INTEGER;    -- the capture that first linked to it
    ALTER TABLE pages ADD COLUMN linked_from INTEGER;  -- the page that was captured then
    UPDATE captures SET identity = 'drawn ' || (SELECT coalesce(d.content, d.digest) FROM captures d JOIN pages q ON q.id = d.page
            WHERE q.url = 'urn:dom:' || (SELECT p.url FROM pages p WHERE p.id = captures.page)
            AND d.time = captures.time AND d.kind = 2)
        WHERE answer = 0 AND kind <= 1 AND EXISTS (SELECT 1 FROM captures d JOIN pages q ON q.id = d.page
            WHERE q.url = 'urn:dom:' || (SELECT p.url FROM pages p WHERE p.id = captures.page)
            AND d.time = captures.time AND d.kind = 2);
    CREATE TEMP TABLE learn_again AS SELECT DISTINCT page FROM captures
        WHERE answer IN (2, 3) OR identity LIKE 'drawn %';
    DELETE FROM lessons WHERE page IN (SELECT page FROM learn_again);
    DELETE FROM trees WHERE page IN (SELECT page FROM learn_again);
    DELETE FROM known WHERE page IN (SELECT page FROM learn_again);
    DROP TABLE learn_again;
    DELETE FROM runs;                    -- the lines of 304s and left-out versions name the record that a reader should see
    ",
    // 9: feeds and their items, from the captures of feeds. A rebuild adds feeds captured before this step. pages.kind
    // and crawl_pages.kind: -1 feed
    "
    CREATE TABLE feeds (
        page INTEGER PRIMARY KEY REFERENCES pages(id),
        format TEXT NOT NULL,
        title TEXT NOT NULL,             -- from here to frequency as the latest capture has it
        channel TEXT,                    -- address of the channel page
        hub TEXT,                        -- of WebSub
        updated INTEGER,                 -- lastBuildDate or the like
        ttl_minutes INTEGER,
        skip_hours INTEGER NOT NULL,     -- a bit an hour, UTC
        skip_days INTEGER NOT NULL,      -- a bit a day, Monday first
        period_secs INTEGER,             -- sy:updatePeriod
        frequency INTEGER,               -- sy:updateFrequency
        first_read INTEGER NOT NULL,     -- of the first capture with items
        last_read INTEGER NOT NULL
    );
    CREATE TABLE feed_reads (            -- captures that hold a feed's document, not those that repeat it
        feed INTEGER NOT NULL REFERENCES feeds(page),
        time INTEGER NOT NULL,
        n_items INTEGER NOT NULL,
        PRIMARY KEY (feed, time)
    ) WITHOUT ROWID;
    CREATE TABLE items (
        id INTEGER PRIMARY KEY,
        feed INTEGER NOT NULL REFERENCES feeds(page),
        key TEXT NOT NULL,               -- its identity, else its address, else its headline and date
        page INTEGER REFERENCES pages(id), -- that it links to
        title TEXT NOT NULL,             -- texts as the latest capture has them, without markup
        summary TEXT NOT NULL,
        author TEXT NOT NULL,
        categories TEXT NOT NULL,        -- one a line
        published INTEGER,
        updated INTEGER,
        comments TEXT,                   -- address of the page with comments
        comment_feed TEXT,               -- and of their feed
        digest INTEGER NOT NULL,         -- tells its texts from others
        changed INTEGER NOT NULL,        -- the capture that first had these texts
        first_seen INTEGER NOT NULL,     -- the first capture of the feed that had it
        last_seen INTEGER NOT NULL,
        UNIQUE (feed, key)
    );
    CREATE INDEX items_page ON items(page);
    ",
    // 10: the last tree of each page whole, and of earlier trees only the difference to the next. Their deltas are
    // dropped, because two trees determine them. Versions lose the second copy that a table with row numbers needs
    "
    DROP INDEX versions_payload;
    CREATE TABLE versions_10 (
        page INTEGER NOT NULL REFERENCES pages(id),
        digest TEXT NOT NULL,            -- as the index has it
        content TEXT NOT NULL,           -- what tells it from other payloads; empty: revisits that do not name it
        first_time INTEGER NOT NULL,
        last_time INTEGER NOT NULL,
        n_captures INTEGER NOT NULL,
        origin INTEGER REFERENCES captures(id), -- earliest known sound record that holds the payload; NULL: none
        PRIMARY KEY (page, digest, content)
    ) WITHOUT ROWID;
    INSERT INTO versions_10 SELECT page, digest, content, first_time, last_time, n_captures, origin FROM versions;
    DROP TABLE versions;
    ALTER TABLE versions_10 RENAME TO versions;
    CREATE INDEX versions_payload ON versions(digest, content, origin) WHERE origin IS NOT NULL;
    ALTER TABLE trees RENAME TO trees_9;
    CREATE TABLE trees (                 -- the last tree of each page
        page INTEGER PRIMARY KEY REFERENCES pages(id),
        time INTEGER NOT NULL,           -- of the first capture that showed it
        packed BLOB NOT NULL,            -- Vi-XML without what follows from it, zstd with `tree.dictionary`
        n_steps INTEGER NOT NULL,        -- differences in a row that lead back from it
        n_bytes INTEGER NOT NULL         -- that they unpack to
    );
    CREATE TABLE past_trees (
        id INTEGER PRIMARY KEY,
        page INTEGER NOT NULL REFERENCES pages(id),
        time INTEGER NOT NULL,           -- of the first capture that showed it
        is_whole INTEGER NOT NULL,
        packed BLOB NOT NULL,            -- the same, or zstd with the next tree's text as its dictionary
        UNIQUE (page, time)
    );
    ALTER TABLE lessons ADD COLUMN noise BLOB; -- how much of each operation is noise, in two-hundredths: value, repetitions
    ALTER TABLE lessons DROP COLUMN delta;
    ",
    // 11: changes by importance, without the observations that showed nothing; shadow prices of the crawl
    "
    CREATE INDEX lessons_importance ON lessons(importance DESC, time, page, seen, n_operations) WHERE seen NOT IN (1, 5);
    CREATE TABLE crawl_bearings (        -- one row: what the crawl found out about prices, so that a restart goes on with them
        id INTEGER PRIMARY KEY CHECK (id = 1),
        bearings TEXT NOT NULL           -- JSON
    );
    ",
];

/// The schema that this program reads and writes.
pub const SCHEMA_VERSION: u32 = STEPS.len() as u32;

/// The first schema that stores the last trees separately.
const TREES_APART_SINCE: u32 = 10;

/// The first schema whose digests are computed.
pub(super) const CHECKED_SINCE: u32 = 7;

/// The schema of a state file.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The place and kind of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordLocation {
    /// URL of the page.
    pub url: String,
    pub kind: CaptureKind,
    /// The WARC file.
    pub file: String,
    /// Offset in the file.
    pub offset: u64,
}

/// A record that a scan of a WARC file found.
#[derive(Clone, Debug)]
pub enum ScannedRecord {
    /// A capture with computed digests.
    Capture(Box<CaptureRow>),
    /// A record that is quarantined.
    Quarantined(QuarantinedRecord),
}

/// The queries to the WARC files that migration needs.
pub trait RecordSource {
    /// The identity of the response at a place, if it differs from the digest.
    fn identity_at(&self, place: &RecordLocation) -> Option<Identity>;

    /// Reads a file and calls `each` with everything in it.
    fn check(
        &self,
        file: &str,
        each: &mut dyn FnMut(ScannedRecord) -> anyhow::Result<()>,
    ) -> anyhow::Result<()>;
}

/// Runs the remaining steps, each in its own transaction. A reader migrates a copy of the state without the WARC files.
pub(super) fn migrate(connection: &mut Connection, records: Option<&dyn RecordSource>) -> anyhow::Result<()> {
    let done = version(connection)?;
    if done > SCHEMA_VERSION {
        bail!("its schema is {done}, this program knows {SCHEMA_VERSION}: install a later perennial");
    }
    for (step, number) in STEPS.iter().zip(1u32..).skip(done as usize) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(step)?;
        match (records, number) {
            (Some(records), 5) => fill_identities(&transaction, records)?,
            (Some(records), CHECKED_SINCE) => check_captures(&transaction, records)?,
            _ => {}
        }
        if number == TREES_APART_SINCE {
            trees::migrate_trees(&transaction)?;
            transaction.execute_batch("DROP TABLE trees_9")?;
        }
        transaction.pragma_update(None, "user_version", number)?;
        transaction.commit()?;
    }
    if (1..TREES_APART_SINCE).contains(&done) {
        // Most of the file is empty now. Without enough room to rewrite it, the file keeps its size.
        let _ = connection.execute_batch("VACUUM");
    }
    Ok(())
}

/// Fills in the facts that step 5 lacks: targets of redirects, and omitted payloads. Their records contain them. The
/// rows of unreadable records do not change.
fn fill_identities(transaction: &Connection, records: &dyn RecordSource) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare(
        "SELECT c.id, p.url, c.kind, f.name, c.offset FROM captures c JOIN pages p ON p.id = c.page
         JOIN files f ON f.id = c.file WHERE c.answer = 2 OR c.kind = 3 AND c.answer = 0",
    )?;
    let mut update = transaction.prepare("UPDATE captures SET identity = ?2 WHERE id = ?1")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let place = RecordLocation {
            url: row.get(1)?,
            kind: CaptureKind::from_code(row.get(2)?),
            file: row.get(3)?,
            offset: row.count(4)?,
        };
        if let Some(identity) = records.identity_at(&place) {
            update.execute(params![row.get::<_, i64>(0)?, identity.to_string()])?;
        }
    }
    Ok(())
}

/// Fills in the facts that step 7 lacks. It reads every record once, and replaces its claims by computed values.
fn check_captures(transaction: &Connection, records: &dyn RecordSource) -> anyhow::Result<()> {
    let mut files = transaction.prepare("SELECT id, name FROM files")?;
    let files: Vec<(i64, String)> =
        files.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    let mut n_corrected = 0;
    for (file, name) in &files {
        n_corrected += check_file_captures(transaction, records, *file, name)?;
    }
    n_corrected += quarantine_long_urls(transaction)?;
    transaction.execute_batch(VERSIONS_ANEW)?;
    if n_corrected > 0 {
        // The index lines contain the old digests, so the index is written again from the state.
        transaction.execute_batch("DELETE FROM runs")?;
    }
    Ok(())
}

/// Returns the number of captures with a wrong digest in the index.
fn check_file_captures(
    transaction: &Connection,
    records: &dyn RecordSource,
    file: i64,
    name: &str,
) -> anyhow::Result<usize> {
    let mut n_corrected = 0;
    let mut wrong = transaction
        .prepare("SELECT EXISTS (SELECT 1 FROM captures WHERE file = ?1 AND offset = ?2 AND digest <> ?3)")?;
    let mut correct = transaction.prepare(
        "UPDATE captures SET digest = ?3, content = ?4, mime = ?5 WHERE file = ?1 AND offset = ?2",
    )?;
    let mut quarantined = transaction
        .prepare("INSERT OR REPLACE INTO set_aside (file, offset, reason, what) VALUES (?1, ?2, ?3, ?4)")?;
    records.check(name, &mut |found| {
        match found {
            ScannedRecord::Capture(row) => {
                let is_wrong: bool =
                    wrong.query_row(params![file, row.offset as i64, row.digest], |row| row.get(0))?;
                n_corrected += usize::from(is_wrong);
                correct.execute(params![file, row.offset as i64, row.digest, row.content, row.mime])?;
            }
            ScannedRecord::Quarantined(QuarantinedRecord { offset, reason, what }) => {
                quarantined.execute(params![file, offset as i64, reason.name(), what])?;
            }
        }
        Ok(())
    })?;
    Ok(n_corrected)
}

/// Removes captures whose URLs are longer than an index allows. Their records are in the quarantine by now.
fn quarantine_long_urls(transaction: &Connection) -> anyhow::Result<usize> {
    let mut found = transaction.prepare("SELECT id FROM pages WHERE length(CAST(url AS BLOB)) > ?1")?;
    let pages: Vec<i64> = found
        .query_map([perennial_core::text::untrusted::MAX_URL_BYTES as i64], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for page in &pages {
        for table in ["versions", "captures", "links", "lessons", "trees", "known", "crawl_pages"] {
            transaction.execute(&format!("DELETE FROM {table} WHERE page = ?1"), [page])?;
        }
        // The row remains as a URL without captures, because links may contain its number.
        transaction.execute(
            "UPDATE pages SET n_captures = 0, first_seen = NULL, last_seen = NULL, mime = NULL, status = NULL, kind = NULL
             WHERE id = ?1",
            [page],
        )?;
    }
    Ok(pages.len())
}

/// Recomputes the versions of all pages from their captures, and replaces old digests in the page states and the
/// frontier.
const VERSIONS_ANEW: &str = "
    DELETE FROM versions;
    INSERT INTO versions (page, digest, content, first_time, last_time, n_captures)
        SELECT page, digest, coalesce(content, ''), min(time), max(time), count(*)
        FROM captures WHERE kind < 3 GROUP BY page, digest, coalesce(content, '');
    UPDATE versions SET origin = o.id FROM (
            SELECT c.page, c.digest, c.content, c.id, min(c.time) FROM captures c
            WHERE c.kind IN (0, 2) AND c.content IS NOT NULL AND NOT EXISTS (
                SELECT 1 FROM set_aside s WHERE s.file = c.file AND s.offset = c.offset AND s.reason = 'digest')
            GROUP BY c.page, c.digest, c.content) o
        WHERE versions.page = o.page AND versions.digest = o.digest AND versions.content = o.content;
    CREATE TEMP TABLE renamed (digest TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
    INSERT OR IGNORE INTO renamed SELECT digest, content FROM versions WHERE origin IS NOT NULL ORDER BY content;
    UPDATE known SET identity = coalesce((SELECT content FROM renamed WHERE digest = identity), identity),
        shown_identity = coalesce((SELECT content FROM renamed WHERE digest = shown_identity), shown_identity);
    UPDATE crawl_pages SET digest = coalesce((SELECT r.content FROM renamed r WHERE r.digest = crawl_pages.digest), digest),
        identity = coalesce((SELECT content FROM renamed r WHERE r.digest = identity), identity);
    DROP TABLE temp.renamed;
    ";
