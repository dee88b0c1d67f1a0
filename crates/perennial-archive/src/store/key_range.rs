//! Queries of replay: the captures of a key around an instant, its days, the pages in a range of keys.

use std::collections::BTreeMap;

use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use perennial_warc::surt::KeyRange;
use rusqlite::params;

use super::query::read_page;
use super::rows::{Columns, Statements};
use super::{CAPTURE_COLUMNS, CAPTURE_TABLES, Capture, PageRow, Store, read_capture};

/// The captures of a UTC day.
#[derive(Clone, Copy, Debug)]
pub struct CaptureDay {
    /// Days since 1970.
    pub number: i64,
    pub n_captures: u64,
    pub first: Timestamp,
}

impl Store {
    /// The captures of all pages with a key around an instant, earliest first. Each page has at most `n` up to the
    /// instant and `n` after it. Work: two index lookups per page.
    pub fn captures_around(&self, key: &str, time: Timestamp, n: usize) -> anyhow::Result<Vec<Capture>> {
        let mut found = Vec::new();
        for page in self.pages_with_key(key)? {
            for (side, order) in [("<=", "DESC"), (">", "ASC")] {
                let sql = format!(
                    "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES} WHERE c.page = ?1
                        AND c.time {side} ?2
                        ORDER BY c.time {order}, c.id {order} LIMIT ?3"
                );
                let values = params![page.0, time.as_millis(), n as i64];
                found.extend(self.connection.rows::<_, Vec<_>>(&sql, values, read_capture)?);
            }
        }
        found.sort_by_key(|capture| (capture.time, capture.id));
        Ok(found)
    }

    /// When pages with a key were captured first and last.
    pub fn key_span(&self, key: &str) -> anyhow::Result<Option<(Timestamp, Timestamp)>> {
        let sql = "SELECT min(first_seen), max(last_seen) FROM pages WHERE surt = ?1 AND n_captures > 0";
        let span =
            self.connection.row(sql, [key], |row| Ok(row.optional_time(0)?.zip(row.optional_time(1)?)))?;
        Ok(span.flatten())
    }

    /// Captures of the pages with a key between two instants, by UTC day. Work: the index entries of the pages' captures.
    pub fn key_days(&self, key: &str, from: Timestamp, to: Timestamp) -> anyhow::Result<Vec<CaptureDay>> {
        const DAY_MILLIS: i64 = 86_400_000;
        let mut days: BTreeMap<i64, CaptureDay> = BTreeMap::new();
        let mut statement = self.connection.prepare_cached(
            "SELECT time FROM captures WHERE page = ?1 AND time BETWEEN ?2 AND ?3 ORDER BY time",
        )?;
        for page in self.pages_with_key(key)? {
            let mut rows = statement.query(params![page.0, from.as_millis(), to.as_millis()])?;
            // Times ascend, so each day is looked up once.
            let mut at_hand: Option<CaptureDay> = None;
            let mut put = |day: CaptureDay| {
                let known = days.entry(day.number).or_insert(CaptureDay { n_captures: 0, ..day });
                known.n_captures += day.n_captures;
                known.first = known.first.min(day.first);
            };
            while let Some(row) = rows.next()? {
                let time: i64 = row.get(0)?;
                let number = time.div_euclid(DAY_MILLIS);
                match &mut at_hand {
                    Some(known) if known.number == number => known.n_captures += 1,
                    _ => {
                        let day = CaptureDay { number, n_captures: 1, first: Timestamp::from_millis(time) };
                        at_hand.replace(day).into_iter().for_each(&mut put);
                    }
                }
            }
            at_hand.into_iter().for_each(put);
        }
        Ok(days.into_values().collect())
    }

    /// At most `limit` captured pages in a range of keys, in index order, after a key and URL.
    pub fn pages_in_keys(
        &self,
        range: &KeyRange,
        after: Option<(&str, &str)>,
        limit: usize,
    ) -> anyhow::Result<Vec<PageRow>> {
        let (key, url) = after.unwrap_or_default();
        let values = params![range.start, range.end, key, url, limit as i64];
        let sql = "SELECT id, url, surt, first_seen, last_seen, n_captures, mime, status FROM pages
            WHERE surt >= max(CAST(?1 AS TEXT), ?3) AND surt < CAST(?2 AS TEXT) AND (surt, url) > (?3, ?4)
            AND n_captures > 0 ORDER BY surt, url LIMIT ?5";
        self.connection.rows(sql, values, read_page)
    }

    /// Captures of a site's pages.
    pub fn site_capture_count(&self, host: &str) -> anyhow::Result<u64> {
        let sql = "SELECT coalesce(sum(n_captures), 0) FROM pages WHERE site = (SELECT id FROM sites
            WHERE host = ?1)";
        self.connection.count(sql, [host])
    }

    /// The pages with a key: URLs that differ in scheme, `www.` or the like. Their number is bounded.
    pub fn pages_with_key(&self, key: &str) -> anyhow::Result<Vec<PageId>> {
        let sql = "SELECT id FROM pages WHERE surt = ?1 AND n_captures > 0 ORDER BY id LIMIT 64";
        self.connection.rows(sql, [key], |row| row.get(0).map(PageId))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::StatementStatus;

    #[test]
    fn a_statement_that_is_kept_is_planned_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_write(&dir.path().join("state.db")).unwrap();
        let sql = "SELECT id FROM pages WHERE surt > ?1 ORDER BY id LIMIT ?2";
        let mut statement = store.connection.prepare(sql).unwrap();
        for limit in 1..5i64 {
            let rows = statement.query_map(params!["a", limit], |row| row.get::<_, i64>(0)).unwrap();
            assert_eq!(rows.count(), 0);
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
