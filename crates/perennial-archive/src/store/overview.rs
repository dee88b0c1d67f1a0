//! Queries of the dashboard: the latest changes, the versions of a page, the pages and hours of a site. Each query
//! reads a range of an index and returns a bounded number of rows.

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};
use rusqlite::params;

use super::analyses::{IS_LATER_VERSION, IS_NEW_VERSION, parse_change_status};
use super::observations::PAGES;
use super::rows::{Columns, Statements};
use super::{OVERALL, Store};

const HOUR_MILLIS: i64 = 3_600_000;

/// An analysed observation, as the dashboard shows it.
#[derive(Clone, Debug)]
pub struct AnalysisRow {
    pub time: Timestamp,
    /// The observation before.
    pub before: Option<Timestamp>,
    pub status: ChangeStatus,
    /// Operations of the change.
    pub n_operations: usize,
    /// Whether the version is worth indexing.
    pub is_indexed: bool,
    /// The page's title, if the observation showed a change.
    pub title: Option<String>,
}

/// Analyses of one UTC day of a page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AnalysisDay {
    /// Days since 1970.
    pub number: i64,
    /// Number of observations.
    pub n_observations: u64,
    /// Observations that showed a new version.
    pub n_changes: u64,
    /// Importance of the strongest change.
    pub strongest: f64,
    /// Importance of all changes.
    pub total: f64,
}

/// Analyses of a page, counted by result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AnalysisCounts {
    /// All analysed observations.
    pub n_observations: u64,
    /// Observations after the first that showed a new version.
    pub n_changes: u64,
    /// Observations that showed nothing new, or noise only.
    pub n_unchanged: u64,
    /// Versions worth indexing.
    pub n_indexed: u64,
}

/// A page in the list of a site.
#[derive(Clone, Debug)]
pub struct SitePage {
    pub page: PageId,
    pub url: String,
    /// The title at its last observation.
    pub title: Option<String>,
    pub n_captures: u64,
    /// When it was last captured.
    pub last_seen: Timestamp,
    /// Status of the last capture.
    pub status: Option<u16>,
    /// Importance of all its changes since its first capture.
    pub total: f64,
}

/// A host whose pages failed or are gone.
#[derive(Clone, Debug)]
pub struct FailingHost {
    pub host: String,
    /// Pages that were visited.
    pub n_visited: u64,
    /// Visited pages whose last visit failed.
    pub n_failed: u64,
    /// Visited pages that are gone.
    pub n_gone: u64,
    /// Most consecutive failures of a page.
    pub n_in_a_row: u64,
    /// The latest visit that failed or found a page gone.
    pub last: Timestamp,
    /// Earliest time of the next request, if the host had trouble.
    pub ready_at: Option<Timestamp>,
}

impl Store {
    pub fn page_site(&self, page: PageId) -> anyhow::Result<Option<SiteId>> {
        self.connection.row("SELECT site FROM pages WHERE id = ?1", [page.0], |row| row.get(0).map(SiteId))
    }

    /// When a site was first captured.
    pub fn site_first_capture(&self, site: SiteId) -> anyhow::Result<Option<Timestamp>> {
        self.connection.time("SELECT min(first_seen) FROM pages WHERE site = ?1", [site.0])
    }

    /// At most `limit` analyses of a page in a span, latest first.
    pub fn analysis_lines(
        &self,
        page: PageId,
        from: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> anyhow::Result<Vec<AnalysisRow>> {
        let values = params![page.0, from.as_millis(), until.as_millis(), limit as i64];
        let sql = "SELECT time, before, seen, importance, n_operations, is_indexed, title FROM lessons
            WHERE page = ?1 AND time >= ?2 AND time < ?3 ORDER BY time DESC LIMIT ?4";
        self.connection.rows(sql, values, |row| {
            Ok(AnalysisRow {
                time: row.time(0)?,
                before: row.optional_time(1)?,
                status: parse_change_status(row.get(2)?, row.get(3)?),
                n_operations: row.get::<_, i64>(4)? as usize,
                is_indexed: row.get(5)?,
                title: row.get(6)?,
            })
        })
    }

    /// The analyses of a page by UTC day, earliest first.
    pub fn analysis_days(&self, page: PageId, from: Timestamp) -> anyhow::Result<Vec<AnalysisDay>> {
        let sql = format!(
            "SELECT l.time / 86400000, count(*), sum({IS_NEW_VERSION}),
                max(l.importance * ({IS_LATER_VERSION})),
                    sum(l.importance * ({IS_LATER_VERSION}))
                FROM lessons l WHERE l.page = ?1 AND l.time >= ?2 GROUP BY 1 ORDER BY 1"
        );
        self.connection.rows(&sql, params![page.0, from.as_millis()], |row| {
            Ok(AnalysisDay {
                number: row.get(0)?,
                n_observations: row.count(1)?,
                n_changes: row.count(2)?,
                strongest: row.get(3)?,
                total: row.get(4)?,
            })
        })
    }

    /// The analyses of a page, counted by result.
    pub fn analysis_counts(&self, page: PageId) -> anyhow::Result<AnalysisCounts> {
        let sql = format!(
            "SELECT count(*), sum({IS_LATER_VERSION}), sum(l.seen IN (1, 2)), sum(l.is_indexed) FROM lessons l WHERE l.page = ?1"
        );
        let counts = self.connection.row(&sql, [page.0], |row| {
            Ok(AnalysisCounts {
                n_observations: row.count(0)?,
                n_changes: row.count(1)?,
                n_unchanged: row.count(2)?,
                n_indexed: row.count(3)?,
            })
        })?;
        Ok(counts.unwrap_or_default())
    }

    /// The pages of a host that people read, most important changes first. Only the first `limit` pages found are
    /// considered. Captures after `until` do not count as the last ones, unless a page has no others.
    pub fn site_pages(&self, host: &str, until: Timestamp, limit: usize) -> anyhow::Result<Vec<SitePage>> {
        let sql = format!(
            "SELECT * FROM (
                  SELECT p.id, p.url, k.title, p.n_captures, CASE WHEN p.last_seen <= ?3 THEN p.last_seen
                  ELSE coalesce((SELECT max(c.time) FROM captures c WHERE c.page = p.id AND c.time <= ?3), p.last_seen) END,
                  p.status, coalesce(k.total, 0) AS total
                  FROM pages p LEFT JOIN known k ON k.page = p.id
                  WHERE p.site = (SELECT id FROM sites WHERE host = ?1) AND p.n_captures > 0 AND {PAGES}
                  LIMIT ?2)
                ORDER BY total DESC, id"
        );
        self.connection.rows(&sql, params![host, limit as i64, until.as_millis()], |row| {
            Ok(SitePage {
                page: PageId(row.get(0)?),
                url: row.get(1)?,
                title: row.get(2)?,
                n_captures: row.count(3)?,
                last_seen: row.optional_time(4)?.unwrap_or(Timestamp::EPOCH),
                status: row.get(5)?,
                total: row.get(6)?,
            })
        })
    }

    /// Calls `each` with time and importance of at most `limit` changes of a host's pages since an instant.
    pub fn each_site_change(
        &self,
        host: &str,
        since: Timestamp,
        limit: usize,
        mut each: impl FnMut(Timestamp, f64),
    ) -> anyhow::Result<()> {
        let sql = format!(
            "SELECT l.time, l.importance FROM pages p JOIN lessons l ON l.page = p.id
                WHERE p.site = (SELECT id FROM sites WHERE host = ?1) AND l.time >= ?2
                AND {IS_LATER_VERSION}
                LIMIT ?3"
        );
        self.connection.each_row(&sql, params![host, since.as_millis(), limit as i64], |row| {
            each(row.time(0)?, row.get(1)?);
            Ok(())
        })
    }

    /// The latest captures of pages that people read, latest first.
    pub fn latest_captures(&self, limit: usize) -> anyhow::Result<Vec<(Timestamp, String)>> {
        let sql = format!(
            "SELECT c.time, p.url FROM (SELECT page, time, id FROM captures ORDER BY id DESC
                LIMIT 500) c
                JOIN pages p ON p.id = c.page WHERE {PAGES} ORDER BY c.id DESC LIMIT ?1"
        );
        self.connection.rows(&sql, [limit as i64], |row| Ok((row.time(0)?, row.get(1)?)))
    }

    /// Visits of pages spent in each hour up to an instant, earliest first. The last hour contains the instant.
    pub fn spent_by_hour(&self, until: Timestamp, n_hours: usize) -> anyhow::Result<Vec<u64>> {
        let last = until.as_millis().div_euclid(HOUR_MILLIS);
        let first = last - n_hours as i64 + 1;
        let mut hours = vec![0; n_hours];
        let sql = "SELECT start / 3600000, sum(n_visits) FROM crawl_spent
            WHERE seed = ?1 AND start >= ?2 AND start < ?3 GROUP BY 1";
        let values = params![OVERALL, first * HOUR_MILLIS, (last + 1) * HOUR_MILLIS];
        self.connection.each_row(sql, values, |row| {
            let at = usize::try_from(row.get::<_, i64>(0)? - first).ok();
            if let Some(n_visits) = at.and_then(|at| hours.get_mut(at)) {
                *n_visits = row.count(1)?;
            }
            Ok(())
        })?;
        Ok(hours)
    }

    /// The hosts with failing or vanished pages, most failures first. Reads the whole frontier.
    pub fn failing_hosts(&self, limit: usize) -> anyhow::Result<Vec<FailingHost>> {
        let sql = "SELECT s.host, count(*), sum(c.ending = 2), sum(c.ending = 3),
                max(CASE WHEN c.ending = 2 THEN c.n_failures ELSE 0 END),
                max(CASE WHEN c.ending IN (2, 3) THEN c.visited END), max(h.ready_at)
            FROM crawl_pages c JOIN pages p ON p.id = c.page JOIN sites s ON s.id = p.site
            LEFT JOIN crawl_hosts h ON h.site = p.site AND h.n_troubles > 0
            WHERE c.kind = 0 AND c.visited IS NOT NULL GROUP BY s.id
            HAVING sum(c.ending = 2) > 0 OR 2 * sum(c.ending = 3) >= count(*)
            ORDER BY 3 DESC, 4 DESC, 1 LIMIT ?1";
        self.connection.rows(sql, [limit as i64], |row| {
            Ok(FailingHost {
                host: row.get(0)?,
                n_visited: row.count(1)?,
                n_failed: row.count(2)?,
                n_gone: row.count(3)?,
                n_in_a_row: row.count(4)?,
                last: row.optional_time(5)?.unwrap_or(Timestamp::EPOCH),
                ready_at: row.optional_time(6)?,
            })
        })
    }
}
