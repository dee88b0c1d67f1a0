//! Removes erased captures from the state, with all that was derived from them.

use std::collections::{HashMap, VecDeque};

use perennial_core::url::PageId;
use rusqlite::params;

use super::ingest::CaptureRow;
use super::quarantine::QuarantinedRecord;
use super::query::confirms_left_out;
use super::rows::Statements;
use super::{Commit, Store};

/// Identifies a capture within a file, wherever it is.
type CaptureKey = (String, i64, i64, String);

/// Tables with rows of a page that follow from its captures.
const DERIVED: [&str; 7] = ["lessons", "known", "trees", "past_trees", "links", "versions", "crawl_pages"];

/// Versions name the captures with their payloads. Both are complete again at the end of the transaction.
const DEFERRED: &str = "PRAGMA defer_foreign_keys = ON";

impl Store {
    /// Gives the captures of a rewritten file the places that a scan found, and deletes those that it did not find.
    pub(crate) fn replace_places(
        &mut self,
        file: &str,
        bytes: u64,
        rows: &[CaptureRow],
        quarantined: &[QuarantinedRecord],
    ) -> anyhow::Result<()> {
        self.write_synced(|commit| {
            commit.transaction.execute_batch(DEFERRED)?;
            let captures = "SELECT c.id, p.url, c.time, c.kind, c.digest, c.page FROM captures c
                JOIN pages p ON p.id = c.page WHERE c.file = (SELECT id FROM files WHERE name = ?1) ORDER BY c.offset";
            let mut known: HashMap<CaptureKey, VecDeque<(i64, u32)>> = HashMap::new();
            commit.transaction.each_row(captures, [file], |row| {
                let key = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
                known.entry(key).or_default().push_back((row.get(0)?, row.get(5)?));
                Ok(())
            })?;
            // No two captures may have one place, not even for a moment.
            let moved = "UPDATE captures SET offset = -1 - offset WHERE file = (SELECT id FROM files WHERE name = ?1)";
            commit.transaction.run(moved, [file])?;
            for row in rows {
                let key = (row.url.clone(), row.time.as_millis(), row.kind.code(), row.digest.clone());
                let Some((id, _)) = known.get_mut(&key).and_then(VecDeque::pop_front) else { continue };
                let sql = "UPDATE captures SET offset = ?2, length = ?3, group_offset = ?4, group_length = ?5 WHERE id = ?1";
                let place = [row.offset, row.length, row.group_offset, row.group_length].map(|n| n as i64);
                commit.transaction.run(sql, params![id, place[0], place[1], place[2], place[3]])?;
            }
            let gone: Vec<(i64, u32)> = known.into_values().flatten().collect();
            for (id, _) in &gone {
                commit.transaction.run("DELETE FROM captures WHERE id = ?1", [id])?;
            }
            gone.iter().try_for_each(|(_, page)| commit.count_again(PageId(*page)))?;
            commit.forget_quarantined(file)?;
            quarantined.iter().try_for_each(|record| commit.quarantine(file, record))?;
            let sql = "UPDATE files SET committed = ?2 WHERE name = ?1";
            commit.transaction.run(sql, params![file, bytes as i64])
        })
    }

    /// Deletes the captures of the pages that `is_erased` names by their URLs, and all that was derived from them. The
    /// URLs remain, because other pages link to them. Returns them.
    pub(crate) fn forget_erased(&mut self, is_erased: impl Fn(&str) -> bool) -> anyhow::Result<Vec<String>> {
        let mut erased: Vec<(u32, String)> = Vec::new();
        self.connection.each_row("SELECT id, url FROM pages", [], |row| {
            let url: String = row.get(1)?;
            if is_erased(&url) {
                erased.push((row.get(0)?, url));
            }
            Ok(())
        })?;
        self.write_synced(|commit| {
            commit.transaction.execute_batch(DEFERRED)?;
            for (page, _) in &erased {
                for table in DERIVED {
                    commit.transaction.execute(&format!("DELETE FROM {table} WHERE page = ?1"), [page])?;
                }
                for table in ["items", "feed_reads"] {
                    commit.transaction.execute(&format!("DELETE FROM {table} WHERE feed = ?1"), [page])?;
                }
                commit.transaction.run("DELETE FROM feeds WHERE page = ?1", [page])?;
                commit.transaction.run("DELETE FROM captures WHERE page = ?1", [page])?;
                commit.count_again(PageId(*page))?;
            }
            Ok(())
        })?;
        // Deleted rows remain in the free pages of the file until it is rewritten.
        self.connection.execute_batch("VACUUM")?;
        self.after_commit()?;
        Ok(erased.into_iter().map(|(_, url)| url).collect())
    }
}

impl Commit<'_> {
    /// Computes again what the state stores about the captures of a page.
    fn count_again(&self, page: PageId) -> anyhow::Result<()> {
        let facts = "UPDATE pages SET (n_captures, first_seen, last_seen) =
                (SELECT count(*), min(time), max(time) FROM captures WHERE page = ?1),
            status = (SELECT status FROM captures WHERE page = ?1 ORDER BY time DESC LIMIT 1),
            mime = (SELECT mime FROM captures WHERE page = ?1 AND kind IN (0, 2) ORDER BY time DESC LIMIT 1),
            kind = CASE WHEN EXISTS (SELECT 1 FROM captures WHERE page = ?1) THEN kind END WHERE id = ?1";
        let versions = concat!(
            "INSERT INTO versions (page, digest, content, first_time, last_time, n_captures, origin)
             SELECT c.page, c.digest, coalesce(c.content, ''), min(c.time), max(c.time), count(*),
                 (SELECT o.id FROM captures o WHERE o.page = c.page AND o.digest = c.digest AND o.content = c.content
                     AND o.kind IN (0, 2) AND NOT EXISTS (SELECT 1 FROM set_aside s
                         WHERE s.file = o.file AND s.offset = o.offset AND s.reason = 'digest')
                     ORDER BY o.time, o.id LIMIT 1)
             FROM captures c WHERE c.page = ?1 AND c.kind < 3 AND NOT ",
            confirms_left_out!(),
            " GROUP BY c.page, c.digest, coalesce(c.content, '')"
        );
        self.transaction.run(facts, [page.0])?;
        self.transaction.run("DELETE FROM versions WHERE page = ?1", [page.0])?;
        self.transaction.run(versions, [page.0])
    }
}
