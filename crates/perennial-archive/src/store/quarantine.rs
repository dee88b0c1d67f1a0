//! What could not be taken in or analysed <-> the table `set_aside`: named and counted, and in nobody's way.

use rusqlite::params;
use serde::Serialize;

use super::rows::{Columns, Statements};
use super::{Commit, Store};

/// Why something was set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QuarantineReason {
    /// A record that cannot be a capture; it stays in its WARC file.
    Record,
    /// A capture whose bytes contradict the digests that its record claims: no other capture refers to it.
    Digest,
    /// A look whose payload could not be read when it was analysed.
    Analysis,
}

impl QuarantineReason {
    /// The name in the state file.
    pub fn name(self) -> &'static str {
        match self {
            QuarantineReason::Record => "record",
            QuarantineReason::Digest => "digest",
            QuarantineReason::Analysis => "analysis",
        }
    }
}

/// One thing that was set aside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuarantinedRecord {
    /// Where its record is in its file.
    pub offset: u64,
    /// Why, as a class.
    pub reason: QuarantineReason,
    /// Why, in words.
    pub what: String,
}

/// How much was set aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct QuarantineCounts {
    /// Records that cannot be captures.
    pub n_records: u64,
    /// Captures that contradict their digests.
    pub n_mismatching: u64,
    /// Looks that could not be read.
    pub n_unread: u64,
}

impl Commit<'_> {
    /// Notes something of a file that the state knows. The same thing is noted once.
    pub fn set_aside(&self, file: &str, quarantined: &QuarantinedRecord) -> anyhow::Result<()> {
        let sql = "INSERT OR REPLACE INTO set_aside (file, offset, reason, what)
            SELECT id, ?2, ?3, ?4 FROM files WHERE name = ?1";
        self.transaction
            .run(sql, params![file, quarantined.offset as i64, quarantined.reason.name(), quarantined.what])
    }

    pub(super) fn forget_set_aside(&self, file: &str) -> anyhow::Result<()> {
        let sql = "DELETE FROM set_aside WHERE file = (SELECT id FROM files WHERE name = ?1)";
        self.transaction.run(sql, [file])
    }
}

impl Store {
    /// How much was set aside.
    pub fn count_set_aside(&self) -> anyhow::Result<QuarantineCounts> {
        let sql = "SELECT count(*) FROM set_aside WHERE reason = ?1";
        let count = |reason: QuarantineReason| self.connection.count(sql, [reason.name()]);
        Ok(QuarantineCounts {
            n_records: count(QuarantineReason::Record)?,
            n_mismatching: count(QuarantineReason::Digest)?,
            n_unread: count(QuarantineReason::Analysis)?,
        })
    }

    /// The first things that were set aside for a reason, with the files that they are in.
    pub fn set_aside(
        &self,
        reason: QuarantineReason,
        limit: usize,
    ) -> anyhow::Result<Vec<(String, QuarantinedRecord)>> {
        let sql = "SELECT f.name, s.offset, s.what FROM set_aside s JOIN files f ON f.id = s.file
            WHERE s.reason = ?1
            ORDER BY f.name, s.offset LIMIT ?2";
        self.connection.rows(sql, params![reason.name(), limit as i64], |row| {
            Ok((row.get(0)?, QuarantinedRecord { offset: row.count(1)?, reason, what: row.get(2)? }))
        })
    }

    /// Whether anything in a file was set aside as no capture.
    pub fn has_set_aside_record(&self, file: &str) -> anyhow::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM set_aside WHERE reason = ?2
            AND file = (SELECT id FROM files WHERE name = ?1))";
        self.connection.value(sql, [file, QuarantineReason::Record.name()])
    }
}
