//! Stores analyses and page states in the tables `lessons` and `known`; `trees` stores their trees. All of it can be
//! computed again from the captures.

use std::borrow::Cow;

use perennial_core::http::response::Identity;
use perennial_core::page::change_status::{ChangeStatus, PreviousResponse};
use perennial_core::page::importance::Importance;
use perennial_core::page::noise::{Noise, NoiseHistory};
use perennial_core::page::segment::BlockTree;
use perennial_core::page::threshold::IndexSums;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use rusqlite::{Row, params};

use super::observations::ANALYSED;
use super::rows::{Columns, Statements};
use super::{
    CAPTURE_COLUMNS, CAPTURE_TABLES, Capture, CapturePlace, Commit, NewTree, PackedTree, Store, read_capture,
    unpack_noise,
};

/// A page that has analyses.
#[derive(Clone, Copy, Debug)]
pub struct AnalysedPage {
    pub page: PageId,
    /// The time of its last analysis.
    pub last: Timestamp,
    pub n_analyses: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownVersion {
    /// The digest of its payload.
    pub identity: Identity,
    /// The observation that was laid out.
    pub time: Timestamp,
}

/// Everything that the next comparison needs to know about a page.
#[derive(Clone, Debug)]
pub struct PageState {
    /// The last observation.
    pub time: Timestamp,
    /// Identity of its response.
    pub identity: Identity,
    /// Whether any observation showed a page.
    pub was_page: bool,
    /// The title at the last observation.
    pub title: Option<String>,
    /// The last tree, and the observation that first showed it; `None` if no version could be laid out.
    pub tree: Option<(Timestamp, PackedTree)>,
    /// The tree as the last observation showed it, possibly with shifted boxes. It is not stored. It is unpacked only
    /// when needed, because most visits find the same payload.
    pub unpacked: Option<BlockTree>,
    /// The version that the tree shows; `None` if a later version could not be laid out.
    pub shown: Option<ShownVersion>,
    /// The noise that earlier observations showed.
    pub noise: NoiseHistory,
    /// The sums for the index threshold.
    pub sums: IndexSums,
}

impl PageState {
    /// The state of a page at its first observation.
    pub fn new(time: Timestamp, identity: Identity) -> PageState {
        PageState {
            time,
            identity,
            was_page: false,
            title: None,
            tree: None,
            unpacked: None,
            shown: None,
            noise: NoiseHistory::default(),
            sums: IndexSums::new(time),
        }
    }

    /// The previous answer, for comparison with the next one before layout.
    pub fn before(&self) -> PreviousResponse<'_> {
        PreviousResponse { identity: &self.identity, was_page: self.was_page }
    }

    pub fn read_tree(&self) -> anyhow::Result<Option<Cow<'_, BlockTree>>> {
        match (&self.unpacked, &self.tree) {
            (Some(tree), _) => Ok(Some(Cow::Borrowed(tree))),
            (None, Some((_, packed))) => packed.read().map(|tree| Some(Cow::Owned(tree))),
            (None, None) => Ok(None),
        }
    }
}

/// The result of analysing one capture.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub page: PageId,
    /// When the capture was made.
    pub time: Timestamp,
    /// The observation that it was compared with.
    pub before: Option<Timestamp>,
    /// How the two observations relate.
    pub status: ChangeStatus,
    /// Number of operations of the change.
    pub n_operations: usize,
    /// How much of each operation is noise; `None` if none is.
    pub noise_of_operations: Option<Vec<u8>>,
    pub is_indexed: bool,
    /// The tree, if it differs from the one before or is the first one of another engine.
    pub tree: Option<NewTree>,
    /// The tree before, with the time of that observation, if it was made again because it was of an earlier engine.
    pub remade_before: Option<(Timestamp, NewTree)>,
    /// The title at this observation, or the last one that showed a title.
    pub title: Option<String>,
    /// The previous title, if this observation changed it.
    pub title_before: Option<String>,
    /// The items that appeared on a listing page or were retitled there. They are not stored, because the trees contain
    /// them.
    pub items: Vec<NewsItem>,
    /// The most important operation in words. It is not stored either.
    pub summary: Option<String>,
}

/// An item that appeared on a listing page or was retitled there.
#[derive(Clone, Debug, PartialEq)]
pub struct NewsItem {
    /// The URL that it links to.
    pub url: String,
    pub title: String,
    /// Whether the item was there before with a different headline.
    pub is_retitled: bool,
}

/// An analysed observation with its place in the sequence of captures.
#[derive(Clone, Debug)]
pub struct NumberedAnalysis {
    pub change: ChangeRow,
    /// Whether it is listed as a change.
    pub is_change: bool,
    /// The number of its capture.
    pub number: i64,
    /// Whether its capture was imported.
    pub is_imported: bool,
}

/// An observation that differs from the one before.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    pub page: PageId,
    pub url: String,
    /// The observation that showed the change.
    pub time: Timestamp,
    /// The observation before; `None` for the first.
    pub before: Option<Timestamp>,
    pub status: ChangeStatus,
    /// Number of operations between the two trees, if both observations were laid out.
    pub n_operations: usize,
    /// How much of each operation is noise by the page's history at that time, and why; empty if none is.
    pub noise: Vec<Noise>,
    pub title: Option<String>,
    /// The previous title, if the change replaced it.
    pub title_before: Option<String>,
    /// Identity of the response.
    pub identity: Identity,
    /// Whether the page appeared while its site was followed: an earlier observation had no link, sitemap entry or feed
    /// item for it.
    pub is_new: bool,
    /// Whether the version is worth indexing.
    pub is_indexed: bool,
}

/// The part of an analysed observation that the text index needs.
#[derive(Clone, Copy, Debug)]
pub struct AnalysedObservation {
    pub time: Timestamp,
    /// The observation before.
    pub before: Option<Timestamp>,
    pub status: ChangeStatus,
    /// Whether the version is worth indexing.
    pub is_indexed: bool,
    /// Whether the tree differs from the one before.
    pub has_tree: bool,
}

/// Selects changes that satisfy all given conditions.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangeFilter<'a> {
    /// URL of the page.
    pub url: Option<&'a str>,
    /// Host of the site.
    pub host: Option<&'a str>,
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
    pub min_importance: f64,
}

impl ChangeFilter<'_> {
    /// The time bounds as plain numbers, which an index supports.
    pub(super) fn span(&self) -> (i64, i64) {
        let since = self.since.map_or(i64::MIN, Timestamp::as_millis);
        (since, self.until.map_or(i64::MAX, Timestamp::as_millis))
    }
}

/// Observations of pages that were not analysed.
const BACKLOG: &str = "FROM captures c JOIN pages p ON p.id = c.page
     LEFT JOIN lessons l ON l.page = c.page AND l.time = c.time
     WHERE l.page IS NULL AND c.answer IS NOT NULL AND c.answer < 4 AND c.time <= ?1 AND";

/// The number in the state file. A second column contains the reported importance.
fn change_status_code(status: ChangeStatus) -> i64 {
    match status {
        ChangeStatus::New => 0,
        ChangeStatus::Unchanged => 1,
        ChangeStatus::NoiseOnly => 2,
        ChangeStatus::Changed(_) => 3,
        ChangeStatus::Unknown(_) => 4,
        ChangeStatus::Absent => 5,
        ChangeStatus::Vanished => 6,
        ChangeStatus::Redirected(_) => 7,
        ChangeStatus::Returned => 8,
    }
}

/// The inverse of [`change_status_code`].
pub(super) fn parse_change_status(code: i64, importance: f64) -> ChangeStatus {
    match code {
        0 => ChangeStatus::New,
        1 => ChangeStatus::Unchanged,
        2 => ChangeStatus::NoiseOnly,
        3 => ChangeStatus::Changed(Importance::new(importance)),
        4 => ChangeStatus::Unknown(Importance::new(importance)),
        5 => ChangeStatus::Absent,
        6 => ChangeStatus::Vanished,
        7 => ChangeStatus::Redirected(Importance::new(importance)),
        8 => ChangeStatus::Returned,
        _ => ChangeStatus::unknown(),
    }
}

impl Commit<'_> {
    /// Stores an analysis. The caller stores the analyses of a page in order of time, then the page's state.
    pub fn put_analysis(&self, analysis: &Analysis) -> anyhow::Result<()> {
        let Analysis { page, time, status, .. } = *analysis;
        let sql = "INSERT OR REPLACE INTO lessons
                (page, time, before, seen, importance, n_operations, noise, is_indexed, title,
                title_before)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        self.transaction.run(
            sql,
            params![
                page.0,
                time.as_millis(),
                analysis.before.map(Timestamp::as_millis),
                change_status_code(status),
                status.reported_importance().get(),
                analysis.n_operations as i64,
                analysis.noise_of_operations,
                analysis.is_indexed,
                // Most observations change nothing, so they need no title.
                analysis.title.as_ref().filter(|_| status.observed_importance() > Importance::NONE),
                analysis.title_before
            ],
        )?;
        if let Some((time, tree)) = &analysis.remade_before {
            self.put_tree(page, *time, tree)?;
        }
        match &analysis.tree {
            Some(tree) => self.put_tree(page, time, tree),
            None => Ok(()),
        }
    }

    /// Stores what the next observation of a page is compared with. The analysis that found its tree stores the tree.
    pub fn put_page_state(&self, page: PageId, state: &PageState) -> anyhow::Result<()> {
        let sql = "INSERT OR REPLACE INTO known (page, time, tree_time, identity, noise, first, total,
            gathered,
                shown_identity, shown_time, was_page, title)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        self.transaction.run(
            sql,
            params![
                page.0,
                state.time.as_millis(),
                state.tree.as_ref().map(|(time, _)| time.as_millis()),
                state.identity.to_string(),
                state.noise.to_bytes(),
                state.sums.first.as_millis(),
                state.sums.total,
                state.sums.gathered,
                state.shown.as_ref().map(|shown| shown.identity.to_string()),
                state.shown.as_ref().map(|shown| shown.time.as_millis()),
                state.was_page,
                state.title
            ],
        )
    }

    /// Deletes the analyses of a page, before it is analysed again from its first capture.
    pub fn forget_analyses(&self, page: PageId) -> anyhow::Result<()> {
        self.forget_trees(page)?;
        for table in ["lessons", "known"] {
            self.transaction.execute(&format!("DELETE FROM {table} WHERE page = ?1"), [page.0])?;
        }
        Ok(())
    }
}

impl Store {
    /// How many observations of pages up to `until` were not analysed.
    pub fn count_backlog(&self, until: Timestamp) -> anyhow::Result<u64> {
        let sql = format!("SELECT count(*) {BACKLOG} {ANALYSED}");
        self.connection.count(&sql, [until.as_millis()])
    }

    /// The pages with such observations, each with the earliest.
    pub fn backlog(&self, until: Timestamp) -> anyhow::Result<Vec<(PageId, Timestamp)>> {
        let sql = format!("SELECT c.page, min(c.time) {BACKLOG} {ANALYSED} GROUP BY c.page ORDER BY c.page");
        self.connection.rows(&sql, [until.as_millis()], |row| Ok((PageId(row.get(0)?), row.time(1)?)))
    }

    /// The captures of a page that are observations, in order of time, up to `until`; all, or those after an instant.
    pub fn observed_captures(
        &self,
        page: PageId,
        after: Option<Timestamp>,
        until: Timestamp,
    ) -> anyhow::Result<Vec<Capture>> {
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES}
                WHERE c.page = ?1 AND c.time > ?2 AND c.time <= ?3 AND c.answer IS NOT NULL AND c.answer < 4
                ORDER BY c.time, c.id"
        );
        let after = after.map_or(i64::MIN, Timestamp::as_millis);
        self.connection.rows(&sql, params![page.0, after, until.as_millis()], read_capture)
    }

    /// The state that the next observation of a page is compared with; `None` before the first analysis.
    pub fn page_state(&self, page: PageId) -> anyhow::Result<Option<PageState>> {
        let sql =
            "SELECT time, identity, noise, first, total, gathered, shown_identity, shown_time, was_page,
            title, tree_time FROM known WHERE page = ?1";
        let read = |row: &Row<'_>| Ok((read_state(row)?, row.optional_time(10)?));
        let Some((mut state, tree_time)) = self.connection.row(sql, [page.0], read)? else { return Ok(None) };
        if tree_time.is_some() {
            state.tree = self.last_packed_tree(page)?.filter(|(time, _)| Some(*time) == tree_time);
        }
        Ok(Some(state))
    }

    /// The importance of the change between two consecutive observations, and how much of each operation is noise by
    /// the page's history. `None` if they are not consecutive or one was not laid out.
    pub fn change_between(
        &self,
        url: &str,
        before: Timestamp,
        after: Timestamp,
    ) -> anyhow::Result<Option<(f64, Vec<Noise>)>> {
        let times = params![url, before.as_millis(), after.as_millis()];
        let read = |row: &Row<'_>| Ok((row.get(0)?, noise_in(row, 1)?));
        let sql = "SELECT l.importance, l.noise FROM lessons l JOIN pages p ON p.id = l.page
            WHERE p.url = ?1 AND l.before / 1000 = ?2 / 1000 AND l.time / 1000 = ?3 / 1000
            AND l.seen BETWEEN 1 AND 3";
        self.connection.row(sql, times, read)
    }

    /// The analysed observations of a page in order of time; all, or those after an instant.
    pub fn analysed_observations(
        &self,
        page: PageId,
        after: Option<Timestamp>,
    ) -> anyhow::Result<Vec<AnalysedObservation>> {
        let sql = "SELECT l.time, l.before, l.seen, l.importance, l.is_indexed,
              EXISTS (SELECT 1 FROM past_trees t WHERE t.page = l.page AND t.time = l.time)
                OR EXISTS (SELECT 1 FROM trees t WHERE t.page = l.page AND t.time = l.time)
            FROM lessons l WHERE l.page = ?1 AND l.time > ?2 ORDER BY l.time";
        self.connection.rows(sql, params![page.0, after.map_or(i64::MIN, Timestamp::as_millis)], |row| {
            Ok(AnalysedObservation {
                time: row.time(0)?,
                before: row.optional_time(1)?,
                status: parse_change_status(row.get(2)?, row.get(3)?),
                is_indexed: row.get(4)?,
                has_tree: row.get(5)?,
            })
        })
    }

    /// How many analyses a page has up to an instant.
    pub fn count_analyses(&self, page: PageId, until: Timestamp) -> anyhow::Result<u64> {
        let sql = "SELECT count(*) FROM lessons WHERE page = ?1 AND time <= ?2";
        self.connection.count(sql, params![page.0, until.as_millis()])
    }

    pub fn analysed_pages(&self) -> anyhow::Result<Vec<AnalysedPage>> {
        let sql = "SELECT page, max(time), count(*) FROM lessons GROUP BY page ORDER BY page";
        self.connection.rows(sql, [], |row| {
            Ok(AnalysedPage { page: PageId(row.get(0)?), last: row.time(1)?, n_analyses: row.count(2)? })
        })
    }

    /// Calls `each` with the changes that pass the filter, oldest first.
    pub fn each_change(
        &self,
        filter: &ChangeFilter<'_>,
        mut each: impl FnMut(ChangeRow) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // The page's number selects one page, so SQLite reads only that page's analyses.
        let page = match filter.url {
            Some(_) => "l.page = (SELECT id FROM pages WHERE url = ?2)",
            None => "?2 IS NULL",
        };
        let sql = format!(
            "SELECT {CHANGE_COLUMNS} FROM lessons l JOIN pages p ON p.id = l.page
             JOIN sites s ON s.id = p.site WHERE {IS_CHANGE} AND l.importance >= ?1
               AND {page} AND (?3 IS NULL OR s.host = ?3) AND l.time >= ?4 AND l.time < ?5
             ORDER BY l.time, l.page"
        );
        let (since, until) = filter.span();
        let values = params![filter.min_importance, filter.url, filter.host, since, until];
        self.connection.each_row(&sql, values, |row| each(read_change(row)?))
    }

    /// The analysed observations of a page after a place in the sequence of captures, oldest first. Work: proportional
    /// to their number.
    pub fn analysed_after(
        &self,
        page: PageId,
        after: Option<CapturePlace>,
    ) -> anyhow::Result<Vec<NumberedAnalysis>> {
        let sql = format!(
            "SELECT {CHANGE_COLUMNS}, coalesce({IS_CHANGE}, 0), o.id, o.file FROM lessons l JOIN pages p ON p.id = l.page
                JOIN captures o ON o.id = (SELECT min(c.id) FROM captures c WHERE c.page = l.page AND c.time = l.time)
                WHERE l.page = ?1 ORDER BY l.time DESC"
        );
        let imported: Vec<i64> =
            self.connection.rows("SELECT id FROM files WHERE state = 'imported'", [], |row| row.get(0))?;
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query([page.0])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let file: i64 = row.get(15)?;
            let analysis = NumberedAnalysis {
                change: read_change(row)?,
                is_change: row.get(13)?,
                number: row.get(14)?,
                is_imported: imported.contains(&file),
            };
            let is_seen = |after: CapturePlace| !after.is_before(analysis.change.time, analysis.number);
            if !analysis.is_imported && after.is_some_and(is_seen) {
                break;
            }
            found.push(analysis);
        }
        found.reverse();
        Ok(found)
    }

    /// The last observation of a page that was analysed.
    pub fn last_analysed(&self, page: PageId) -> anyhow::Result<Option<Timestamp>> {
        self.connection.time("SELECT max(time) FROM lessons WHERE page = ?1", [page.0])
    }

    /// The pages with an analysis of a capture after a place in the sequence of captures.
    pub fn pages_analysed_after(&self, after: CapturePlace) -> anyhow::Result<Vec<PageId>> {
        let time = after.time.map_or(i64::MIN, Timestamp::as_millis);
        let (sql, after) = match after.number {
            Some(number) => (
                "SELECT DISTINCT c.page FROM captures c JOIN lessons l ON l.page = c.page AND l.time = c.time
                    WHERE c.id > ?1 ORDER BY c.page",
                number,
            ),
            None => ("SELECT DISTINCT page FROM lessons WHERE time > ?1 ORDER BY page", time),
        };
        self.connection.rows(sql, [after], |row| row.get(0).map(PageId))
    }
}

/// The columns of a change; `l` are analyses, `p` are pages.
pub(super) const CHANGE_COLUMNS: &str =
    "l.page, p.url, l.time, l.before, l.seen, l.importance, l.n_operations, l.noise, l.title, l.title_before,
     (SELECT coalesce(c.identity, c.digest) FROM captures c WHERE c.page = l.page AND c.time = l.time ORDER BY c.id LIMIT 1),
     p.linked_at > (SELECT q.first_seen FROM pages q WHERE q.id = p.linked_from), l.is_indexed";

/// Which analyses `l` show a new version ([`ChangeStatus::is_new_version`]).
pub(super) const IS_NEW_VERSION: &str = "l.seen NOT IN (1, 2, 5)";

macro_rules! is_later_version {
    () => {
        "l.seen IN (3, 4, 6, 7, 8)"
    };
}

/// Which analyses `l` show a version after the first.
pub(super) const IS_LATER_VERSION: &str = is_later_version!();

/// Which analyses are listed as changes. A new page is one if its site was followed before the page appeared.
pub(super) const IS_CHANGE: &str = concat!(
    "(",
    is_later_version!(),
    " OR l.seen = 2 AND l.n_operations > 0 OR l.seen = 0
       AND p.linked_at > (SELECT q.first_seen FROM pages q WHERE q.id = p.linked_from))"
);

pub(super) fn read_change(row: &Row<'_>) -> rusqlite::Result<ChangeRow> {
    Ok(ChangeRow {
        page: PageId(row.get(0)?),
        url: row.get(1)?,
        time: row.time(2)?,
        before: row.optional_time(3)?,
        status: parse_change_status(row.get(4)?, row.get(5)?),
        n_operations: row.get::<_, i64>(6)? as usize,
        noise: noise_in(row, 7)?,
        title: row.get(8)?,
        title_before: row.get(9)?,
        identity: Identity::parse(row.get_ref(10)?.as_str_or_null()?.unwrap_or_default()),
        is_new: row.get::<_, Option<bool>>(11)?.unwrap_or_default(),
        is_indexed: row.get(12)?,
    })
}

fn noise_in(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<Noise>> {
    Ok(row.get::<_, Option<Vec<u8>>>(column)?.map(|packed| unpack_noise(&packed)).unwrap_or_default())
}

/// Reads a state without its tree.
fn read_state(row: &Row<'_>) -> rusqlite::Result<PageState> {
    let time = |column| row.get(column).map(Timestamp::from_millis);
    let identity =
        |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str_or_null()?.map(Identity::parse));
    let shown_time = row.optional_time(7)?;
    Ok(PageState {
        was_page: row.get(8)?,
        title: row.get(9)?,
        shown: identity(6)?.zip(shown_time).map(|(identity, time)| ShownVersion { identity, time }),
        // An unreadable history is learned again.
        noise: NoiseHistory::from_bytes(row.get_ref(2)?.as_blob()?).unwrap_or_default(),
        sums: IndexSums { first: time(3)?, total: row.get(4)?, gathered: row.get(5)? },
        ..PageState::new(time(0)?, Identity::parse(row.get_ref(1)?.as_str()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &str, code: i64) -> bool {
        let sql = format!("SELECT {condition} FROM (SELECT ?1 AS seen) l");
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.query_row(&sql, [code], |row| row.get(0)).unwrap()
    }

    /// Lists sort and filter by the reported importance, and the SQL agrees with the type.
    #[test]
    fn a_status_is_read_as_it_is_stored() {
        let importance = Importance::new(0.001);
        let with_importance = [ChangeStatus::Changed, ChangeStatus::Unknown, ChangeStatus::Redirected];
        let others = [
            ChangeStatus::New,
            ChangeStatus::Unchanged,
            ChangeStatus::NoiseOnly,
            ChangeStatus::Absent,
            ChangeStatus::Vanished,
            ChangeStatus::Returned,
        ];
        for status in with_importance.map(|status| status(importance)).into_iter().chain(others) {
            let code = change_status_code(status);
            assert_eq!(parse_change_status(code, status.reported_importance().get()), status);
            assert_eq!(holds(IS_NEW_VERSION, code), status.is_new_version(), "{status:?}");
            let is_later = status.is_new_version() && status != ChangeStatus::New;
            assert_eq!(holds(IS_LATER_VERSION, code), is_later, "{status:?}");
        }
    }
}
