//! Stores passages of pages and their presences in `search.db`, with SQLite's full-text index over the passages.
//!
//! Everything in it follows from the analyses and trees of the state, so it is a separate file that can be deleted and
//! rebuilt. A passage that is on many pages, or returns, is stored and indexed once. A presence is one row with its
//! beginning and its end. An observation without a change therefore only updates the page's last observation.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::Context;
use perennial_core::page::segment::BlockRole;
use perennial_core::search::{PassagePresence, TextClause, TextQuery, terms};
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use rusqlite::{Connection, Transaction, params};
use serde::Serialize;

use super::page_sums::PageSums;
use super::reading::open_read_only;
use super::rows::{Columns, Statements};
use super::{BUSY_TIMEOUT, CACHE_KIB, remove_state, url_hash};

/// A different number means a different schema: the file is then rebuilt.
const TEXTS_VERSION: i64 = 2;

/// At most this many presences are read per passage counted.
const ROWS_PER_PASSAGE: u64 = 10;

/// Words are stored folded and separated by spaces, so the index need not find word boundaries. Its tokenizer `ascii`
/// treats every character outside ASCII as part of a word.
const SCHEMA: &str = "
    CREATE TABLE texts (
        id INTEGER PRIMARY KEY,
        hash INTEGER NOT NULL,           -- 64 bits of the text
        text TEXT NOT NULL
    );
    CREATE INDEX texts_hash ON texts(hash);
    CREATE VIRTUAL TABLE words USING fts5(folded, content='', tokenize='ascii');
    CREATE TABLE stays (
        id INTEGER PRIMARY KEY,
        text INTEGER NOT NULL REFERENCES texts(id),
        page INTEGER NOT NULL,
        role TEXT NOT NULL,              -- of the block it stands in
        absent_until INTEGER,            -- the look before the first one; NULL: there was none
        first INTEGER NOT NULL,          -- the first look that showed it
        last INTEGER,                    -- the last look that showed it; NULL: it is there
        gone INTEGER,                    -- the look that did not show it any more
        is_important INTEGER NOT NULL    -- whether the version that brought it is worth indexing
    );
    CREATE INDEX stays_text ON stays(text);
    CREATE INDEX stays_page ON stays(page, gone);
    CREATE INDEX stays_first ON stays(first);
    CREATE TABLE seen (
        page INTEGER PRIMARY KEY,
        until INTEGER NOT NULL,          -- the last look that was taken in
        n_lessons INTEGER NOT NULL       -- how many lessons were
    );
";

/// An open text index.
#[derive(Debug)]
pub struct Texts {
    connection: Connection,
    /// Only of an index for writing.
    sums: Option<PageSums>,
}

impl Drop for Texts {
    fn drop(&mut self) {
        if let Some(sums) = &mut self.sums {
            // Without room on the disk, the log remains, and the next writer copies it.
            let _ = sums.checkpoint(&self.connection);
        }
    }
}

/// A passage that an observation shows.
#[derive(Clone, Copy, Debug)]
pub struct ShownText<'t> {
    pub text: &'t str,
    /// Role of its block.
    pub role: BlockRole,
}

/// An observation of a page, as the text index stores it.
#[derive(Clone, Copy, Debug)]
pub struct ObservationRow {
    pub time: Timestamp,
    /// The observation before.
    pub before: Option<Timestamp>,
    /// Whether its version is worth indexing.
    pub is_indexed: bool,
}

/// A presence of a passage that matches a query.
#[derive(Clone, Debug)]
pub struct PresenceHit {
    pub page: PageId,
    /// Role of the block.
    pub role: BlockRole,
    /// The passage.
    pub text: String,
    /// The presence itself.
    pub presence: PassagePresence,
}

/// Selects presences that satisfy all given conditions.
#[derive(Clone, Copy, Debug, Default)]
pub struct PresenceFilter<'a> {
    /// Only these pages, in ascending order.
    pub pages: Option<&'a [PageId]>,
    /// Only passages that a version worth indexing brought.
    pub is_important: bool,
}

/// The two ends of a presence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PresenceEdge {
    /// The passage appears on a page.
    Comes,
    /// The passage disappears from a page.
    Goes,
}

/// Size of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TextCounts {
    /// Distinct passages.
    pub n_texts: u64,
    /// Presences of passages on pages.
    pub n_presences: u64,
    /// Presences that began with an important version.
    pub n_important_presences: u64,
    /// Bytes of all passages.
    pub text_bytes: u64,
    /// Passages that an important version brought to a page, which `--important` searches.
    pub n_important_texts: u64,
    /// Bytes of these passages.
    pub important_text_bytes: u64,
    /// Bytes of the file.
    pub n_bytes: u64,
}

impl Texts {
    /// Opens for writing. A missing file is created, and one with a different schema is replaced. The caller holds the
    /// archive's write lock.
    pub fn open_write(path: &Path) -> anyhow::Result<Texts> {
        let opened = Texts::try_open_write(path);
        let is_current = opened.as_ref().is_ok_and(|texts| texts.version().is_ok_and(|v| v == TEXTS_VERSION));
        if is_current {
            return opened;
        }
        drop(opened);
        Texts::remove(path)?;
        let texts = Texts::try_open_write(path).with_context(|| format!("cannot make {}", path.display()))?;
        texts
            .connection
            .execute_batch(&format!("BEGIN; {SCHEMA} PRAGMA user_version = {TEXTS_VERSION}; COMMIT"))?;
        Ok(texts)
    }

    fn try_open_write(path: &Path) -> anyhow::Result<Texts> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let sums = PageSums::take_over(&connection, path)?;
        let mut texts = Texts::tuned(connection)?;
        texts.sums = Some(sums);
        Ok(texts)
    }

    /// Opens for reading; `None` if there is no file with the schema of this program.
    pub fn open_read(path: &Path) -> anyhow::Result<Option<Texts>> {
        if !path.exists() {
            return Ok(None);
        }
        let texts = Texts::tuned(open_read_only(path)?)?;
        Ok((texts.version()? == TEXTS_VERSION).then_some(texts))
    }

    fn tuned(connection: Connection) -> anyhow::Result<Texts> {
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Texts { connection, sums: None })
    }

    /// Deletes the index, before the state that it was made from is replaced.
    pub fn remove(path: &Path) -> anyhow::Result<()> {
        remove_state(path).with_context(|| format!("cannot remove {}", path.display()))
    }

    fn version(&self) -> anyhow::Result<i64> {
        Ok(self.connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
    }

    /// The last observation of a page in the index, and the number of its analyses up to there.
    pub fn seen(&self, page: PageId) -> anyhow::Result<Option<(Timestamp, u64)>> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.time(0)?, row.count(1)?));
        self.connection.row("SELECT until, n_lessons FROM seen WHERE page = ?1", [page.0], read)
    }

    /// Runs `change` as one commit.
    pub fn write<T>(
        &mut self,
        change: impl FnOnce(&TextCommit<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let done = {
            let commit = TextCommit { transaction: self.connection.transaction()? };
            let done = change(&commit)?;
            commit.transaction.commit()?;
            done
        };
        if let Some(sums) = &mut self.sums {
            sums.after_commit(&self.connection)?;
        }
        Ok(done)
    }

    /// At most `limit` presences of matching passages, newest passages first, and whether there are more.
    pub fn find(
        &self,
        query: &TextQuery,
        filter: &PresenceFilter<'_>,
        limit: usize,
    ) -> anyhow::Result<(Vec<PresenceHit>, bool)> {
        let mut statement = self.connection.prepare_cached(
            "SELECT s.page, s.role, t.text, s.absent_until, s.first, coalesce(s.last, v.until), s.gone
             FROM words w JOIN texts t ON t.id = w.rowid JOIN stays s ON s.text = t.id JOIN seen v ON v.page = s.page
             WHERE words MATCH ?1 AND (?2 = 0 OR s.is_important)
             ORDER BY w.rowid DESC",
        )?;
        let mut rows = statement.query(params![expression(query), filter.is_important])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let page = PageId(row.get(0)?);
            if filter.pages.is_some_and(|pages| pages.binary_search(&page).is_err()) {
                continue;
            }
            if found.len() == limit {
                return Ok((found, true));
            }
            found.push(PresenceHit {
                page,
                role: BlockRole::from_name(row.get_ref(1)?.as_str()?),
                text: row.get(2)?,
                presence: PassagePresence {
                    absent_until: row.optional_time(3)?,
                    first: row.time(4)?,
                    last: row.time(5)?,
                    gone: row.optional_time(6)?,
                },
            });
        }
        Ok((found, false))
    }

    /// The observations in a span at which a matching passage appeared or disappeared; `None` if there are more than
    /// `limit`.
    pub fn turns(
        &self,
        query: &TextQuery,
        turn: PresenceEdge,
        (since, until): (Option<Timestamp>, Option<Timestamp>),
        limit: usize,
    ) -> anyhow::Result<Option<Vec<(PageId, Timestamp)>>> {
        let column = match turn {
            PresenceEdge::Comes => "first",
            PresenceEdge::Goes => "gone",
        };
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT DISTINCT s.page, s.{column} FROM words w JOIN stays s ON s.text = w.rowid
             WHERE words MATCH ?1 AND s.{column} >= ?2 AND s.{column} < ?3 LIMIT ?4"
        ))?;
        let since = since.map_or(i64::MIN, Timestamp::as_millis);
        let until = until.map_or(i64::MAX, Timestamp::as_millis);
        let found = statement
            .query_map(params![expression(query), since, until, limit as i64 + 1], |row| {
                Ok((PageId(row.get(0)?), row.time(1)?))
            })?;
        let found = found.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok((found.len() <= limit).then_some(found))
    }

    /// Calls `each` with the passages that appeared in a span, each once, latest first, without advertisements and
    /// comments. It
    /// stops after `limit` passages of pages for which `is_wanted`, and returns whether there are more.
    pub fn each_new_passage(
        &self,
        (since, until): (Timestamp, Option<Timestamp>),
        pages: Option<&[PageId]>,
        limit: usize,
        is_wanted: &mut dyn FnMut(PageId) -> anyhow::Result<bool>,
        each: &mut dyn FnMut(PageId, &str),
    ) -> anyhow::Result<bool> {
        let mut statement = self.connection.prepare_cached(
            "SELECT s.page, s.text, t.text FROM stays s CROSS JOIN texts t ON t.id = s.text
             WHERE s.first >= ?1 AND s.first < ?2 AND s.role NOT IN ('advertisement', 'comments') ORDER BY s.first DESC",
        )?;
        let until = until.map_or(i64::MAX, Timestamp::as_millis);
        let mut rows = statement.query(params![since.as_millis(), until])?;
        let mut seen: HashSet<i64> = HashSet::new();
        while let Some(row) = rows.next()? {
            let page = PageId(row.get(0)?);
            let is_elsewhere = pages.is_some_and(|pages| pages.binary_search(&page).is_err());
            let text: i64 = row.get(1)?;
            if is_elsewhere || seen.contains(&text) || !is_wanted(page)? {
                continue;
            }
            if seen.len() == limit {
                return Ok(true);
            }
            seen.insert(text);
            each(page, row.get_ref(2)?.as_str()?);
        }
        Ok(false)
    }

    /// How many passages were on these pages before an instant. Without pages: all passages ever stored, except those
    /// that appeared since then.
    pub fn count_passages_before(&self, since: Timestamp, pages: Option<&[PageId]>) -> anyhow::Result<u64> {
        let since = since.as_millis();
        let Some(pages) = pages else {
            // Numbers of passages are never reused, so the largest number is their count.
            let n = self.connection.count("SELECT coalesce(max(id), 0) FROM texts", [])?;
            let sql = "SELECT count(DISTINCT text) FROM stays WHERE first >= ?1";
            return Ok(n.saturating_sub(self.connection.count(sql, [since])?));
        };
        let sql = "SELECT count(DISTINCT text) FROM stays WHERE page = ?1 AND first < ?2";
        pages.iter().map(|page| self.connection.count(sql, params![page.0, since])).sum()
    }

    /// How many matching passages were on these pages, or on any, before an instant. `None` if they are more than
    /// `most`, or if counting them would read too many rows.
    pub fn count_before(
        &self,
        query: &TextQuery,
        since: Timestamp,
        pages: Option<&[PageId]>,
        most: u64,
    ) -> anyhow::Result<Option<u64>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT w.rowid, s.page FROM words w CROSS JOIN stays s ON s.text = w.rowid
             WHERE words MATCH ?1 AND s.first < ?2",
        )?;
        let mut rows = statement.query(params![expression(query), since.as_millis()])?;
        let (mut n, mut n_rows, mut last) = (0, 0, None);
        while let Some(row) = rows.next()? {
            n_rows += 1;
            if n > most || n_rows > ROWS_PER_PASSAGE * most {
                return Ok(None);
            }
            let (text, page): (i64, PageId) = (row.get(0)?, PageId(row.get(1)?));
            if last != Some(text) && pages.is_none_or(|pages| pages.binary_search(&page).is_ok()) {
                last = Some(text);
                n += 1;
            }
        }
        Ok((n <= most).then_some(n))
    }

    /// How many analyses are in the index.
    pub fn n_analyses(&self) -> anyhow::Result<u64> {
        let sql = "SELECT coalesce(sum(n_lessons), 0) FROM seen";
        self.connection.count(sql, [])
    }

    pub fn counts(&self) -> anyhow::Result<TextCounts> {
        let count = |sql: &str| self.connection.count(sql, []);
        const IMPORTANT: &str =
            "FROM texts t WHERE EXISTS (SELECT 1 FROM stays s WHERE s.text = t.id AND s.is_important)";
        let bytes = "coalesce(sum(length(CAST(t.text AS BLOB))), 0)";
        Ok(TextCounts {
            text_bytes: count(&format!("SELECT {bytes} FROM texts t"))?,
            n_important_texts: count(&format!("SELECT count(*) {IMPORTANT}"))?,
            important_text_bytes: count(&format!("SELECT {bytes} {IMPORTANT}"))?,
            n_texts: count("SELECT count(*) FROM texts")?,
            n_presences: count("SELECT count(*) FROM stays")?,
            n_important_presences: count("SELECT count(*) FROM stays WHERE is_important")?,
            n_bytes: count("PRAGMA page_count")? * count("PRAGMA page_size")?,
        })
    }
}

/// Changes of the text index that become visible together.
pub struct TextCommit<'t> {
    transaction: Transaction<'t>,
}

impl TextCommit<'_> {
    /// Stores the passages of an observation. The presences of new passages begin, and those of missing passages end.
    pub fn show(
        &self,
        page: PageId,
        observation: &ObservationRow,
        shown: &[ShownText<'_>],
    ) -> anyhow::Result<()> {
        let mut open = self.open_presences(page)?;
        for text in shown {
            let hash = url_hash(text.text) as i64;
            if open.remove(&hash).is_none() {
                self.begin(page, observation, self.text_id(hash, text.text)?, text.role)?;
            }
        }
        let mut ended: Vec<i64> = open.into_values().collect();
        ended.sort_unstable();
        ended.into_iter().try_for_each(|presence| self.end(presence, observation))
    }

    /// Ends all presences of a page that has vanished.
    pub fn close(&self, page: PageId, observation: &ObservationRow) -> anyhow::Result<()> {
        self.show(page, observation, &[])
    }

    /// Records that the index contains everything up to this observation.
    pub fn set_seen(&self, page: PageId, until: Timestamp, n_analyses: u64) -> anyhow::Result<()> {
        let sql = "INSERT OR REPLACE INTO seen (page, until, n_lessons) VALUES (?1, ?2, ?3)";
        self.transaction.run(sql, params![page.0, until.as_millis(), n_analyses as i64])
    }

    /// Removes a page, before it is indexed again from its first observation. Its passages remain, because other pages
    /// may have them.
    pub fn forget(&self, page: PageId) -> anyhow::Result<()> {
        self.transaction.execute("DELETE FROM stays WHERE page = ?1", [page.0])?;
        self.transaction.execute("DELETE FROM seen WHERE page = ?1", [page.0])?;
        Ok(())
    }

    /// The unfinished presences of a page, by the hash of their passage.
    fn open_presences(&self, page: PageId) -> anyhow::Result<HashMap<i64, i64>> {
        let sql = "SELECT t.hash, s.id FROM stays s JOIN texts t ON t.id = s.text WHERE s.page = ?1
            AND s.gone IS NULL";
        self.transaction.rows(sql, [page.0], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn begin(
        &self,
        page: PageId,
        observation: &ObservationRow,
        text: i64,
        role: BlockRole,
    ) -> anyhow::Result<()> {
        let sql = "INSERT INTO stays (text, page, role, absent_until, first, is_important)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.transaction.run(
            sql,
            params![
                text,
                page.0,
                role.name(),
                observation.before.map(Timestamp::as_millis),
                observation.time.as_millis(),
                observation.is_indexed
            ],
        )
    }

    fn end(&self, presence: i64, observation: &ObservationRow) -> anyhow::Result<()> {
        let sql = "UPDATE stays SET last = coalesce(?2, first), gone = ?3 WHERE id = ?1";
        self.transaction.run(
            sql,
            params![presence, observation.before.map(Timestamp::as_millis), observation.time.as_millis()],
        )
    }

    /// The number of a passage. A new passage is added to the index.
    fn text_id(&self, hash: i64, text: &str) -> anyhow::Result<i64> {
        let sql = "SELECT id FROM texts WHERE hash = ?1 AND text = ?2";
        if let Some(id) = self.transaction.row(sql, params![hash, text], |row| row.get(0))? {
            return Ok(id);
        }
        let sql = "INSERT INTO texts (hash, text) VALUES (?1, ?2)";
        let id = self.transaction.insert(sql, params![hash, text])?;
        let words: Vec<String> = terms(text).into_iter().map(|term| term.word).collect();
        self.transaction
            .run("INSERT INTO words (rowid, folded) VALUES (?1, ?2)", params![id, words.join(" ")])?;
        Ok(id)
    }
}

/// The query in the language of the full-text index. Every word is quoted, so no word is an operator.
fn expression(query: &TextQuery) -> String {
    let clause = |clause: &TextClause| {
        format!("\"{}\"{}", clause.words.join(" "), if clause.is_prefix { " *" } else { "" })
    };
    let alternative = |clauses: &Vec<TextClause>| {
        let of = |is_excluded: bool| clauses.iter().filter(move |clause| clause.is_excluded == is_excluded);
        let wanted = of(false).map(clause).collect::<Vec<_>>().join(" AND ");
        of(true).fold(format!("({wanted})"), |all, excluded| format!("({all} NOT {})", clause(excluded)))
    };
    query.alternatives.iter().map(alternative).collect::<Vec<_>>().join(" OR ")
}
