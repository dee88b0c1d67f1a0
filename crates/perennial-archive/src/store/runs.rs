//! Stores the files of the index in the table `runs`, and finds captures that are in no file or whose file is missing.

use perennial_warc::surt::KeyRange;
use rusqlite::params;

use super::rows::{Columns, Statements};
use super::{CAPTURE_COLUMNS, Capture, Commit, Store, read_capture};

/// One sorted file of the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexRun {
    /// Its name in `index/`.
    pub name: String,
    /// Number of the first capture in it.
    pub first_capture: i64,
    /// Number of the last capture in it.
    pub last_capture: i64,
    pub bytes: u64,
}

impl Store {
    /// The files of the index, oldest captures first.
    pub fn runs(&self) -> anyhow::Result<Vec<IndexRun>> {
        let sql = "SELECT name, first_capture, last_capture, bytes FROM runs ORDER BY first_capture";
        self.connection.rows(sql, [], |row| {
            Ok(IndexRun {
                name: row.get(0)?,
                first_capture: row.get(1)?,
                last_capture: row.get(2)?,
                bytes: row.count(3)?,
            })
        })
    }

    /// Adds a run in place of the runs merged into it. If there are any, it is on disk when this returns, because the
    /// caller then removes their files.
    pub fn put_run(&mut self, run: &IndexRun, merged: &[IndexRun]) -> anyhow::Result<()> {
        let put = |commit: &mut Commit<'_>| {
            for run in merged {
                commit.transaction.execute("DELETE FROM runs WHERE name = ?1", [&run.name])?;
            }
            let sql = "INSERT OR REPLACE INTO runs (name, first_capture, last_capture, bytes) VALUES (?1, ?2, ?3, ?4)";
            let values = params![run.name, run.first_capture, run.last_capture, run.bytes as i64];
            commit.transaction.run(sql, values)
        };
        if merged.is_empty() { self.write(put) } else { self.write_synced(put) }
    }

    /// Removes this run and all later ones from the state. Their captures are in the tail again.
    pub fn forget_runs_from(&mut self, run: &IndexRun) -> anyhow::Result<()> {
        let sql = "DELETE FROM runs WHERE first_capture >= ?1";
        self.write_synced(|commit| commit.transaction.run(sql, [run.first_capture]))
    }

    /// The number of the latest capture; 0 if there is none.
    pub fn last_capture_number(&self) -> anyhow::Result<i64> {
        self.connection.value("SELECT coalesce(max(id), 0) FROM captures", [])
    }

    /// Calls `each` with the captures numbered `from..=to`, in the order of the index.
    pub fn each_capture_numbered(
        &self,
        from: i64,
        to: i64,
        mut each: impl FnMut(Capture) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM captures c JOIN pages p ON p.id = c.page
                JOIN files f ON f.id = c.file
                WHERE c.id BETWEEN ?1 AND ?2 ORDER BY p.surt, c.time, c.id"
        );
        self.connection.each_row(&sql, [from, to], |row| each(read_capture(row)?))
    }

    /// Whether the pages of a range have more than `n` captures of any time. Work: at most a thousand pages.
    pub fn has_more_captures_in_keys(&self, range: &KeyRange, n: u64) -> anyhow::Result<bool> {
        const MAX_PAGES: i64 = 1_000;
        let sql =
            "SELECT count(*) = ?3 OR coalesce(sum(n_captures), 0) > ?4 FROM (SELECT n_captures FROM pages
             WHERE surt >= CAST(?1 AS TEXT) AND surt < CAST(?2 AS TEXT) LIMIT ?3)";
        self.connection.value(sql, params![first_key(range), range.end, MAX_PAGES, n as i64])
    }

    /// Calls `each` with the captures numbered `from..=to` whose index keys may belong to the range, in index order. A
    /// few keys next to the range may be included. Work: only the pages of the range and their captures.
    pub fn each_capture_in_keys(
        &self,
        range: &KeyRange,
        from: i64,
        to: i64,
        mut each: impl FnMut(Capture) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // The cross join makes SQLite begin with the pages.
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM pages p CROSS JOIN captures c ON c.page = p.id
                JOIN files f ON f.id = c.file
                WHERE p.surt >= CAST(?1 AS TEXT) AND p.surt < CAST(?2 AS TEXT) AND c.id BETWEEN ?3 AND ?4
                ORDER BY p.surt, c.time, c.id"
        );
        self.connection
            .each_row(&sql, params![first_key(range), range.end, from, to], |row| each(read_capture(row)?))
    }
}

/// The least key whose line may belong to the range. In a line a space follows the key, so the range may begin after
/// the key itself.
fn first_key(range: &KeyRange) -> &[u8] {
    let blank = range.start.iter().position(|&byte| byte <= b' ');
    &range.start[..blank.unwrap_or(range.start.len())]
}
