//! Stores the visits and bytes spent in the table `crawl_spent`, summed by minute.

use perennial_core::time::{Span, Timestamp};
use rusqlite::{Row, params};

use super::rows::{Columns, Statements};
use super::{Commit, Store};

/// Spending is summed over spans of this length.
const GRAIN: Span = Span::from_secs(60);
/// Stores the spending of all sites together under this number; seeds count from 1.
pub const OVERALL: i64 = 0;

impl Commit<'_> {
    /// Adds a visit and its bytes to its seed and to the overall spending.
    pub fn put_spent(&self, seed: i64, is_page: bool, n_bytes: u64, at: Timestamp) -> anyhow::Result<()> {
        let sql = "INSERT INTO crawl_spent (seed, start, n_visits, n_bytes) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET n_visits = n_visits + ?3, n_bytes = n_bytes + ?4";
        let start = spending_minute(at).as_millis();
        let put = |seed: i64| self.transaction.run(sql, params![seed, start, is_page, n_bytes as i64]);
        [OVERALL, seed].into_iter().try_for_each(put)
    }

    /// Raises the spending of the minute that contains an instant to these numbers.
    pub fn restore_spent(&self, seed: i64, at: Timestamp, n_visits: u64, n_bytes: u64) -> anyhow::Result<()> {
        let sql = "INSERT INTO crawl_spent (seed, start, n_visits, n_bytes) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT DO UPDATE SET n_visits = max(n_visits, ?3), n_bytes = max(n_bytes, ?4)";
        let row = params![seed, spending_minute(at).as_millis(), n_visits as i64, n_bytes as i64];
        self.transaction.run(sql, row)
    }

    /// Deletes the spending before an instant.
    pub fn forget_spent(&self, before: Timestamp) -> anyhow::Result<()> {
        self.transaction.run("DELETE FROM crawl_spent WHERE start < ?1", [before.as_millis()])
    }
}

/// The start of the span in which spending at an instant is summed.
pub fn spending_minute(at: Timestamp) -> Timestamp {
    let grain = GRAIN.as_millis();
    Timestamp::from_millis(at.as_millis().div_euclid(grain).saturating_mul(grain))
}

impl Store {
    /// The start of the last minute with spending.
    pub fn last_spent(&self) -> anyhow::Result<Option<Timestamp>> {
        self.connection.time("SELECT max(start) FROM crawl_spent", [])
    }

    /// Visits of pages and bytes spent on a seed since an instant.
    pub fn spent(&self, seed: i64, since: Timestamp) -> anyhow::Result<(u64, u64)> {
        let sql = "SELECT sum(n_visits), sum(n_bytes) FROM crawl_spent WHERE seed = ?1 AND start >= ?2";
        let read = |row: &Row<'_>| Ok((row.count(0)?, row.count(1)?));
        Ok(self.connection.row(sql, params![seed, since.as_millis()], read)?.unwrap_or_default())
    }
}
