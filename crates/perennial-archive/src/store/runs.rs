//! Files of the index <-> the table `runs`; captures that no file has yet, or whose file is gone.

use perennial_warc::surt::KeyRange;
use rusqlite::params;

use super::{CAPTURE_COLUMNS, Capture, Commit, Store, read_capture};

/// One sorted file of the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Its name in `index/`.
    pub name: String,
    /// Number of the first capture in it.
    pub first_capture: i64,
    /// Number of the last capture in it.
    pub last_capture: i64,
    /// Its length.
    pub bytes: u64,
}

impl Store {
    /// The files of the index, oldest captures first.
    pub fn runs(&self) -> anyhow::Result<Vec<Run>> {
        let mut statement = self.connection().prepare_cached(
            "SELECT name, first_capture, last_capture, bytes FROM runs ORDER BY first_capture",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(Run {
                name: row.get(0)?,
                first_capture: row.get(1)?,
                last_capture: row.get(2)?,
                bytes: row.get::<_, i64>(3)? as u64,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Names a run, in place of those that were merged into it; on disk when this returns if there are any, because their files go
    /// next.
    pub fn put_run(&mut self, run: &Run, merged: &[Run]) -> anyhow::Result<()> {
        let put = |commit: &mut Commit<'_>| {
            for run in merged {
                commit.transaction.execute("DELETE FROM runs WHERE name = ?1", [&run.name])?;
            }
            commit.transaction.execute(
                "INSERT OR REPLACE INTO runs (name, first_capture, last_capture, bytes) VALUES (?1, ?2, ?3, ?4)",
                params![run.name, run.first_capture, run.last_capture, run.bytes as i64],
            )?;
            Ok(())
        };
        if merged.is_empty() { self.write(put) } else { self.write_synced(put) }
    }

    /// Takes this run and all behind it out of the state: their captures are in the tail again.
    pub fn forget_runs_from(&mut self, run: &Run) -> anyhow::Result<()> {
        self.write_synced(|commit| {
            commit.transaction.execute("DELETE FROM runs WHERE first_capture >= ?1", [run.first_capture])?;
            Ok(())
        })
    }

    /// The number of the latest capture; 0 when there is none.
    pub fn last_capture_number(&self) -> anyhow::Result<i64> {
        let mut statement = self.connection().prepare_cached("SELECT coalesce(max(id), 0) FROM captures")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Calls `each` with the captures numbered `from..=to`, in the order of the index.
    pub fn each_capture_numbered(
        &self,
        from: i64,
        to: i64,
        mut each: impl FnMut(Capture) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM captures c JOIN pages p ON p.id = c.page JOIN files f ON f.id = c.file
             WHERE c.id BETWEEN ?1 AND ?2 ORDER BY p.surt, c.time, c.id"
        );
        let mut statement = self.connection().prepare_cached(&sql)?;
        let mut rows = statement.query([from, to])?;
        while let Some(row) = rows.next()? {
            each(read_capture(row)?)?;
        }
        Ok(())
    }

    /// Whether the pages of a range have more captures than `n`, of all times. Work: at most a thousand pages.
    pub fn has_more_captures_in_keys(&self, range: &KeyRange, n: u64) -> anyhow::Result<bool> {
        const MAX_PAGES: i64 = 1_000;
        let mut statement = self.connection().prepare_cached(
            "SELECT count(*), coalesce(sum(n_captures), 0) FROM (SELECT n_captures FROM pages
             WHERE surt >= CAST(?1 AS TEXT) AND surt < CAST(?2 AS TEXT) LIMIT ?3)",
        )?;
        let (n_pages, n_captures): (i64, i64) = statement
            .query_row(params![first_key(range), range.end, MAX_PAGES], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        Ok(n_pages == MAX_PAGES || n_captures as u64 > n)
    }

    /// Calls `each` with the captures numbered `from..=to` whose index keys may belong to the range, and perhaps with
    /// some beside it, in the order of the index. Work: the pages of the range and their captures, whatever else there is.
    pub fn each_capture_in_keys(
        &self,
        range: &KeyRange,
        from: i64,
        to: i64,
        mut each: impl FnMut(Capture) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // The join is crossed so that SQLite begins with the pages.
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM pages p CROSS JOIN captures c ON c.page = p.id JOIN files f ON f.id = c.file
             WHERE p.surt >= CAST(?1 AS TEXT) AND p.surt < CAST(?2 AS TEXT) AND c.id BETWEEN ?3 AND ?4
             ORDER BY p.surt, c.time, c.id"
        );
        let mut statement = self.connection().prepare_cached(&sql)?;
        let mut rows = statement.query(params![first_key(range), range.end, from, to])?;
        while let Some(row) = rows.next()? {
            each(read_capture(row)?)?;
        }
        Ok(())
    }
}

/// The least key whose line may belong to the range. In a line a blank follows the key, so the range may begin behind
/// the key itself.
fn first_key(range: &KeyRange) -> &[u8] {
    let blank = range.start.iter().position(|&byte| byte <= b' ');
    &range.start[..blank.unwrap_or(range.start.len())]
}
