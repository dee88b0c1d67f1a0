//! Names and counts the records that could not be imported or analysed, in the table `set_aside`. They do not stop
//! other work.

use rusqlite::params;
use serde::Serialize;

use super::rows::{Columns, Statements};
use super::{Commit, Store};

/// Why a record was quarantined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum QuarantineReason {
    /// A record that cannot be a capture; it remains in its WARC file.
    Record,
    /// A capture whose bytes contradict the digests that its record claims. No other capture refers to it.
    Digest,
    /// An observation whose payload was unreadable during analysis.
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

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuarantinedRecord {
    /// Offset of the record in its file.
    pub offset: u64,
    pub reason: QuarantineReason,
    /// The reason in words.
    pub what: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct QuarantineCounts {
    /// Records that cannot be captures.
    pub n_records: u64,
    /// Captures that contradict their digests.
    pub n_mismatching: u64,
    /// Observations with an unreadable payload.
    pub n_unread: u64,
}

impl Commit<'_> {
    /// Quarantines a record of a file in the state. The same record and reason are stored once.
    pub fn quarantine(&self, file: &str, quarantined: &QuarantinedRecord) -> anyhow::Result<()> {
        let sql = "INSERT OR REPLACE INTO set_aside (file, offset, reason, what)
            SELECT id, ?2, ?3, ?4 FROM files WHERE name = ?1";
        self.transaction
            .run(sql, params![file, quarantined.offset as i64, quarantined.reason.name(), quarantined.what])
    }

    pub(super) fn forget_quarantined(&self, file: &str) -> anyhow::Result<()> {
        let sql = "DELETE FROM set_aside WHERE file = (SELECT id FROM files WHERE name = ?1)";
        self.transaction.run(sql, [file])
    }
}

impl Store {
    pub fn count_quarantined(&self) -> anyhow::Result<QuarantineCounts> {
        let sql = "SELECT count(*) FROM set_aside WHERE reason = ?1";
        let count = |reason: QuarantineReason| self.connection.count(sql, [reason.name()]);
        Ok(QuarantineCounts {
            n_records: count(QuarantineReason::Record)?,
            n_mismatching: count(QuarantineReason::Digest)?,
            n_unread: count(QuarantineReason::Analysis)?,
        })
    }

    /// The first records quarantined for a reason, with their files.
    pub fn quarantined(
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

    /// Whether a file contains a record that was quarantined because it cannot be a capture.
    pub fn has_quarantined_record(&self, file: &str) -> anyhow::Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM set_aside WHERE reason = ?2
            AND file = (SELECT id FROM files WHERE name = ?1))";
        self.connection.value(sql, [file, QuarantineReason::Record.name()])
    }
}
