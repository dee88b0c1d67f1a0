//! What could not be taken in or analysed <-> the table `set_aside`: named and counted, and in nobody's way.

use rusqlite::params;
use serde::Serialize;

use super::{Commit, Store};

/// Why something was set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AsideReason {
    /// A record that cannot be a capture; it stays in its WARC file.
    Record,
    /// A capture whose bytes contradict the digests that its record claims: no other capture refers to it.
    Digest,
    /// A look whose payload could not be read when it was analysed.
    Analysis,
}

impl AsideReason {
    /// The name in the state file.
    pub fn name(self) -> &'static str {
        match self {
            AsideReason::Record => "record",
            AsideReason::Digest => "digest",
            AsideReason::Analysis => "analysis",
        }
    }
}

/// One thing that was set aside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetAside {
    /// Where its record is in its file.
    pub offset: u64,
    /// Why, as a class.
    pub reason: AsideReason,
    /// Why, in words.
    pub what: String,
}

/// How much was set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct SetAsideCounts {
    /// Records that cannot be captures.
    pub n_records: u64,
    /// Captures that contradict their digests.
    pub n_mismatching: u64,
    /// Looks that could not be read.
    pub n_unread: u64,
}

impl Commit<'_> {
    /// Notes something of a file that the state knows. The same thing is noted once.
    pub fn set_aside(&self, file: &str, aside: &SetAside) -> anyhow::Result<()> {
        self.transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO set_aside (file, offset, reason, what)
                 SELECT id, ?2, ?3, ?4 FROM files WHERE name = ?1",
            )?
            .execute(params![file, aside.offset as i64, aside.reason.name(), aside.what])?;
        Ok(())
    }

    pub(super) fn forget_set_aside(&self, file: &str) -> anyhow::Result<()> {
        let sql = "DELETE FROM set_aside WHERE file = (SELECT id FROM files WHERE name = ?1)";
        self.transaction.execute(sql, [file])?;
        Ok(())
    }
}

impl Store {
    /// How much was set aside.
    pub fn count_set_aside(&self) -> anyhow::Result<SetAsideCounts> {
        let count = |reason: AsideReason| -> rusqlite::Result<u64> {
            let sql = "SELECT count(*) FROM set_aside WHERE reason = ?1";
            self.connection().query_row(sql, [reason.name()], |row| row.get::<_, i64>(0)).map(|n| n as u64)
        };
        Ok(SetAsideCounts {
            n_records: count(AsideReason::Record)?,
            n_mismatching: count(AsideReason::Digest)?,
            n_unread: count(AsideReason::Analysis)?,
        })
    }

    /// The first things that were set aside for a reason, with the files that they are in.
    pub fn set_aside(&self, reason: AsideReason, limit: usize) -> anyhow::Result<Vec<(String, SetAside)>> {
        let mut statement = self.connection().prepare(
            "SELECT f.name, s.offset, s.what FROM set_aside s JOIN files f ON f.id = s.file WHERE s.reason = ?1
             ORDER BY f.name, s.offset LIMIT ?2",
        )?;
        let rows = statement.query_map(params![reason.name(), limit as i64], |row| {
            Ok((row.get(0)?, SetAside { offset: row.get::<_, i64>(1)? as u64, reason, what: row.get(2)? }))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Whether anything in a file was set aside as no capture.
    pub fn has_set_aside_record(&self, file: &str) -> anyhow::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM set_aside WHERE reason = ?2
             AND file = (SELECT id FROM files WHERE name = ?1))";
        Ok(self.connection().query_row(sql, [file, AsideReason::Record.name()], |row| row.get(0))?)
    }
}
