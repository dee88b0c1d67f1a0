//! Analyses and the states of pages <-> the tables `lessons` and `known`; their trees are stored by `trees`. All of it can be computed again from the captures.

use std::borrow::Cow;

use perennial_core::http::response::Identity;
use perennial_core::page::change_status::{ChangeStatus, PreviousAnswer};
use perennial_core::page::importance::Importance;
use perennial_core::page::noise::NoiseHistory;
use perennial_core::page::segment::BlockTree;
use perennial_core::page::threshold::IndexSums;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;
use rusqlite::{Row, params};

use super::observations::ANALYSED;
use super::rows::{Columns, Statements};
use super::{
    CAPTURE_COLUMNS, CAPTURE_TABLES, Capture, Commit, NewTree, PackedTree, Store, read_capture, unpack_noise,
};

/// The version of a page that its last tree shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownVersion {
    /// What tells it from another: the digest of its payload.
    pub identity: Identity,
    /// The observation of it that was laid out.
    pub time: Timestamp,
}

/// Everything that the next comparison needs to know about a page.
#[derive(Clone, Debug)]
pub struct PageState {
    /// The last observation.
    pub time: Timestamp,
    /// What the URL answered then.
    pub identity: Identity,
    /// Whether any observation showed a page.
    pub was_page: bool,
    /// The title as it was last shown.
    pub title: Option<String>,
    /// The last tree, and the observation that first showed it; `None` if none could be laid out.
    pub tree: Option<(Timestamp, PackedTree)>,
    /// The tree as the last observation showed it, which may have shifted its boxes. Not stored, and not unpacked before it is
    /// needed: most visits find the same payload.
    pub unpacked: Option<BlockTree>,
    /// Which version the tree shows; `None` if a later one could not be laid out.
    pub shown: Option<ShownVersion>,
    /// What earlier observations taught about the page's noise.
    pub noise: NoiseHistory,
    /// The sums for the index threshold.
    pub sums: IndexSums,
}

impl PageState {
    /// Of a page at its first observation, before anything is known of it.
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

    /// What the next answer is compared with, before it is laid out.
    pub fn before(&self) -> PreviousAnswer<'_> {
        PreviousAnswer { identity: &self.identity, was_page: self.was_page }
    }

    /// The last tree.
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
    /// The page that was observed.
    pub page: PageId,
    /// When it was captured.
    pub time: Timestamp,
    /// The observation that it was compared with.
    pub before: Option<Timestamp>,
    /// How it relates to that one.
    pub status: ChangeStatus,
    /// Number of operations of the change.
    pub n_operations: usize,
    /// How much of each of them is noise; `None`: nothing is.
    pub noise_of_operations: Option<Vec<u8>>,
    /// Whether the version is indexed.
    pub is_indexed: bool,
    /// The tree, if it differs from the one before.
    pub tree: Option<NewTree>,
    /// The title as it was last shown.
    pub title: Option<String>,
    /// The title before, if this observation changed it.
    pub title_before: Option<String>,
    /// The items that came to a listing page or got another headline there. They are not stored: its trees have them.
    pub items: Vec<NewsItem>,
}

/// An item that came to a listing page, or got another headline there.
#[derive(Clone, Debug, PartialEq)]
pub struct NewsItem {
    /// Where it links to.
    pub url: String,
    /// Its headline.
    pub title: String,
    /// Whether it was there under another headline.
    pub is_retitled: bool,
}

/// An observation that showed something else than the observation before it.
#[derive(Clone, Debug)]
pub struct ChangeRow {
    /// The page that changed.
    pub page: PageId,
    /// Its address.
    pub url: String,
    /// When the observation was that showed the change.
    pub time: Timestamp,
    /// When the observation before was; `None` for the first.
    pub before: Option<Timestamp>,
    /// What it showed.
    pub status: ChangeStatus,
    /// Number of operations between the trees of the two observations, where both were laid out.
    pub n_operations: usize,
    /// How much of each operation is noise, as the page's history had it then; empty where nothing was.
    pub noise: Vec<f64>,
    /// The page's title.
    pub title: Option<String>,
    /// Its title before, where it had another.
    pub title_before: Option<String>,
    /// What the URL answered.
    pub identity: Identity,
    /// Whether the page came to its site while the site was followed: the link to it, or its entry in a sitemap or feed, was not
    /// there at an earlier observation.
    pub is_new: bool,
    /// Whether the version is worth indexing.
    pub is_indexed: bool,
}

/// An analysed observation, as far as the text index needs it.
#[derive(Clone, Copy, Debug)]
pub struct AnalysedObservation {
    /// When it was.
    pub time: Timestamp,
    /// The observation before.
    pub before: Option<Timestamp>,
    /// What it showed.
    pub status: ChangeStatus,
    /// Whether its version is worth indexing.
    pub is_indexed: bool,
    /// Whether its tree differs from the one before.
    pub has_tree: bool,
}

/// Which changes: all conditions that are given must hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangeFilter<'a> {
    /// Address of the page.
    pub url: Option<&'a str>,
    /// Host of the site.
    pub host: Option<&'a str>,
    /// Not before this instant.
    pub since: Option<Timestamp>,
    /// Before this instant.
    pub until: Option<Timestamp>,
    /// The least importance.
    pub min_importance: f64,
}

impl ChangeFilter<'_> {
    /// The bounds in time as plain numbers, which an index can serve.
    pub(super) fn span(&self) -> (i64, i64) {
        let since = self.since.map_or(i64::MIN, Timestamp::as_millis);
        (since, self.until.map_or(i64::MAX, Timestamp::as_millis))
    }
}

/// Observations of pages that were not analysed.
const BACKLOG: &str = "FROM captures c JOIN pages p ON p.id = c.page
     LEFT JOIN lessons l ON l.page = c.page AND l.time = c.time
     WHERE l.page IS NULL AND c.answer IS NOT NULL AND c.answer < 4 AND";

/// The number in the state file. The reported importance is stored beside it.
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

/// From the number in the state file and the importance beside it.
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
    /// Stores an analysis. Those of one page must come in order of time, and the page's state after the last of them.
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
                // Most observations change nothing and need no title of their own.
                analysis.title.as_ref().filter(|_| status.observed_importance() > Importance::NONE),
                analysis.title_before
            ],
        )?;
        match &analysis.tree {
            Some(tree) => self.put_tree(page, time, tree),
            None => Ok(()),
        }
    }

    /// Stores what the next observation of a page is compared with. Its tree is stored with the analysis that found it.
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

    /// Deletes the analyses of a page, before they are made again from its first capture on.
    pub fn forget_analyses(&self, page: PageId) -> anyhow::Result<()> {
        self.forget_trees(page)?;
        for table in ["lessons", "known"] {
            self.transaction.execute(&format!("DELETE FROM {table} WHERE page = ?1"), [page.0])?;
        }
        Ok(())
    }
}

impl Store {
    /// How many observations of pages were not analysed.
    pub fn count_backlog(&self) -> anyhow::Result<u64> {
        let sql = format!("SELECT count(*) {BACKLOG} {ANALYSED}");
        self.connection.count(&sql, [])
    }

    /// The pages that have such observations, with the earliest of them.
    pub fn backlog(&self) -> anyhow::Result<Vec<(PageId, Timestamp)>> {
        let sql = format!("SELECT c.page, min(c.time) {BACKLOG} {ANALYSED} GROUP BY c.page ORDER BY c.page");
        self.connection.rows(&sql, [], |row| Ok((PageId(row.get(0)?), row.time(1)?)))
    }

    /// The captures of a page after an instant that are observations, or all, in order of time.
    pub fn observed_captures(&self, page: PageId, after: Option<Timestamp>) -> anyhow::Result<Vec<Capture>> {
        let sql = format!(
            "SELECT {CAPTURE_COLUMNS} FROM {CAPTURE_TABLES}
                WHERE c.page = ?1 AND c.time > ?2 AND c.answer IS NOT NULL AND c.answer < 4
                ORDER BY c.time, c.id"
        );
        let after = after.map_or(i64::MIN, Timestamp::as_millis);
        self.connection.rows(&sql, params![page.0, after], read_capture)
    }

    /// What the next observation of a page is compared with, if any was analysed.
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

    /// The change between two observations of a page in a row, as the analysis found it: its importance, and how much of each operation
    /// is noise by the page's history. `None` when these are not in a row, or one of them was not laid out.
    pub fn change_between(
        &self,
        url: &str,
        before: Timestamp,
        after: Timestamp,
    ) -> anyhow::Result<Option<(f64, Vec<f64>)>> {
        let times = params![url, before.as_millis(), after.as_millis()];
        let read = |row: &Row<'_>| Ok((row.get(0)?, noise_in(row, 1)?));
        let sql = "SELECT l.importance, l.noise FROM lessons l JOIN pages p ON p.id = l.page
            WHERE p.url = ?1 AND l.before / 1000 = ?2 / 1000 AND l.time / 1000 = ?3 / 1000
            AND l.seen BETWEEN 1 AND 3";
        self.connection.row(sql, times, read)
    }

    /// The observations of a page after an instant that were analysed, or all, in order of time.
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

    /// Every page that has analyses, with the last of them and their number.
    pub fn analysed_pages(&self) -> anyhow::Result<Vec<(PageId, Timestamp, u64)>> {
        let sql = "SELECT page, max(time), count(*) FROM lessons GROUP BY page ORDER BY page";
        self.connection.rows(sql, [], |row| Ok((PageId(row.get(0)?), row.time(1)?, row.count(2)?)))
    }

    /// Calls `each` with the changes that pass the filter, oldest first.
    pub fn each_change(
        &self,
        filter: &ChangeFilter<'_>,
        mut each: impl FnMut(ChangeRow) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // One page is found by its number, so that only its own analyses are read.
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

    /// The changes of a page after an instant, or all, up to another one, oldest first.
    pub fn page_changes(
        &self,
        page: PageId,
        after: Option<Timestamp>,
        until: Timestamp,
    ) -> anyhow::Result<Vec<ChangeRow>> {
        let sql = format!(
            "SELECT {CHANGE_COLUMNS} FROM lessons l JOIN pages p ON p.id = l.page
                WHERE l.page = ?1 AND l.time > ?2 AND l.time <= ?3 AND {IS_CHANGE} ORDER BY l.time"
        );
        let after = after.map_or(i64::MIN, Timestamp::as_millis);
        self.connection.rows(&sql, params![page.0, after, until.as_millis()], read_change)
    }

    /// The last observation of a page that was analysed.
    pub fn last_analysed(&self, page: PageId) -> anyhow::Result<Option<Timestamp>> {
        self.connection.time("SELECT max(time) FROM lessons WHERE page = ?1", [page.0])
    }

    /// The pages with an analysis of an observation after an instant, or with any.
    pub fn pages_analysed_after(&self, after: Option<Timestamp>) -> anyhow::Result<Vec<PageId>> {
        let after = after.map_or(i64::MIN, Timestamp::as_millis);
        let sql = "SELECT DISTINCT page FROM lessons WHERE time > ?1 ORDER BY page";
        self.connection.rows(sql, [after], |row| row.get(0).map(PageId))
    }
}

/// What is read of a change; analyses are `l`, pages `p`.
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

/// Which of them are not the first version of a page.
pub(super) const IS_LATER_VERSION: &str = is_later_version!();

/// Which analyses are listed as changes. A new page is one if it came to a site that was already followed.
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

fn noise_in(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<f64>> {
    Ok(row.get::<_, Option<Vec<u8>>>(column)?.map(|packed| unpack_noise(&packed)).unwrap_or_default())
}

/// A state without its tree.
fn read_state(row: &Row<'_>) -> rusqlite::Result<PageState> {
    let time = |column| row.get(column).map(Timestamp::from_millis);
    let identity =
        |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str_or_null()?.map(Identity::parse));
    let shown_time = row.optional_time(7)?;
    Ok(PageState {
        was_page: row.get(8)?,
        title: row.get(9)?,
        shown: identity(6)?.zip(shown_time).map(|(identity, time)| ShownVersion { identity, time }),
        // A history that cannot be read is learned again.
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

    /// What people are shown is what lists are sorted and filtered by, and the SQL agrees with the type.
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
