//! Visits and bytes that were spent <-> the table `crawl_spent`, summed by minute.

use perennial_core::time::{Span, Timestamp};
use rusqlite::params;

use super::{Commit, Store};

/// Spending is summed over spans of this length.
const GRAIN: Span = Span::from_secs(60);
/// Number under which the spending of all sites together is stored; seeds count from 1.
pub const OVERALL: i64 = 0;

impl Commit<'_> {
    /// Adds a visit and its bytes to its seed and to the overall spending.
    pub fn put_spent(&self, seed: i64, is_page: bool, n_bytes: u64, at: Timestamp) -> anyhow::Result<()> {
        let mut put = self.transaction.prepare_cached(
            "INSERT INTO crawl_spent (seed, start, n_visits, n_bytes) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET n_visits = n_visits + ?3, n_bytes = n_bytes + ?4",
        )?;
        let grain = GRAIN.as_millis();
        let start = at.as_millis().div_euclid(grain).saturating_mul(grain);
        for of in [OVERALL, seed] {
            put.execute(params![of, start, i64::from(is_page), n_bytes as i64])?;
        }
        Ok(())
    }

    /// Deletes what was spent before an instant.
    pub fn forget_spent(&self, before: Timestamp) -> anyhow::Result<()> {
        self.transaction.execute("DELETE FROM crawl_spent WHERE start < ?1", [before.as_millis()])?;
        Ok(())
    }
}

impl Store {
    /// Visits of pages and bytes that were spent on a seed since an instant.
    pub fn spent(&self, seed: i64, since: Timestamp) -> anyhow::Result<(u64, u64)> {
        let mut sum = self.connection().prepare_cached(
            "SELECT coalesce(sum(n_visits), 0), coalesce(sum(n_bytes), 0) FROM crawl_spent
             WHERE seed = ?1 AND start >= ?2",
        )?;
        Ok(sum.query_row(params![seed, since.as_millis()], |row| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64))
        })?)
    }
}
