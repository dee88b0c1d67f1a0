//! Stores everything that the crawl and the analysis know in one SQLite file: sites, pages, captures, versions, links,
//! observations, frontier.
//!
//! WAL mode gives readers a consistent state while a writer works. The file can be rebuilt from the WARC files and
//! `perennial.toml`, because it stores only what follows from them.
//!
//! | file | what it contains |
//! |---|---|
//! | `schema` | the tables, and the steps that migrate a state file of an earlier version |
//! | `page_sums` | checksums of the pages of a database |
//! | `reading`, `replacement` | connections for reading; replacing the state in use by a rebuilt one |
//! | `ingest` | storing rows of captures as sites, pages, captures, versions and links, in one transaction |
//! | `query`, `export_selection`, `key_range` | captures and counts for a filter, an export, an instant |
//! | `analyses`, `trees`, `tree_packing` | results of analyses and their block trees, as rows and bytes |
//! | `observations`, `version_steps` | observations of a page from captures and analyses; steps between versions |
//! | `changes`, `overview` | a list of changes that continues at a cursor; a page or site on the dashboard |
//! | `frontier`, `spending`, `checkpoint` | URLs between visits, visits and bytes spent, scheduler state |
//! | `rows` | cached statements and their rows |
//! | `feeds`, `links`, `runs` | feeds and items, the link graph, files of the index |
//! | `salvage` | a former state -> what no WARC file contains, in a rebuilt one |
//! | `erasure` | removing erased captures and all that was derived from them |
//! | `quarantine` | records that could not be imported or analysed |
//! | `checks` | pages that violate an invariant |
//! | `texts` | passages and their presences on pages, in `search.db` |
//! | `outbox` | notices not yet sent, in `outbox.db` |
//! | `sql` | documented views, which users query within limits |

mod analyses;
mod changes;
mod checkpoint;
mod checks;
mod erasure;
mod export_selection;
mod feeds;
mod frontier;
mod ingest;
mod key_range;
mod links;
mod observations;
mod outbox;
mod overview;
mod page_sums;
mod quarantine;
mod query;
mod reading;
mod replacement;
mod rows;
mod runs;
mod salvage;
mod schema;
mod spending;
mod sql;
mod texts;
mod tree_packing;
mod trees;
mod version_steps;

pub use analyses::{
    AnalysedObservation, AnalysedPage, Analysis, ChangeFilter, ChangeRow, NewsItem, NumberedAnalysis,
    PageState, ShownVersion,
};
pub use changes::{ChangeKey, ChangeOrder};
pub use export_selection::{ExchangeGroup, ExportSelection};
pub use feeds::{AnnouncedFilter, AnnouncedPage, FeedRow, ItemRow, ItemStatus, StoredFeed, StoredItem};
pub use frontier::{
    CapturedUrl, Discovery, FrontierPage, NamingItem, PageKind, VisitEnding, VisitRow, VisitTarget,
};
pub use ingest::{
    CaptureKind, CaptureRow, Commit, CommitCounts, FileRow, FileState, LinkTarget, parse_site_name,
};
pub use key_range::CaptureDay;
use links::encode_targets;
pub use observations::{Observation, ObservationOrder, ObservationSelection};
pub use outbox::{BlindPage, CapturePlace, NewNotice, Outbox, PageNotices, PendingNotice, RuleState};
pub use overview::{AnalysisCounts, AnalysisDay, AnalysisRow, FailingHost, SitePage};
pub use page_sums::{PageCheck, check_pages};
pub use quarantine::{QuarantineCounts, QuarantineReason, QuarantinedRecord};
pub use query::{ArchiveCounts, Capture, CaptureFilter, LatestPayload, PageRow, SiteCounts, VersionRow};
use query::{CAPTURE_COLUMNS, CAPTURE_TABLES, IDENTITY, read_capture};
pub use replacement::remove_state;
pub use runs::IndexRun;
pub use salvage::keep_copy;
pub use schema::{RecordLocation, RecordSource, SCHEMA_VERSION, ScannedRecord};
pub use spending::OVERALL;
pub use sql::{SqlLimits, SqlRows, SqlValue, each_view_row, query_views, sql_views};
pub use texts::{
    ObservationRow, PresenceEdge, PresenceFilter, PresenceHit, ShownText, TextCommit, TextCounts, Texts,
};
pub use tree_packing::{pack_noise, unpack_noise};
pub use trees::{NewTree, PackedTree, TreeReader};
pub use version_steps::{VersionStep, VersionSteps};

use std::path::Path;

use anyhow::Context;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tempfile::TempDir;

use page_sums::PageSums;

/// SQLite's page cache. The store uses no other memory except the rows of one commit.
const CACHE_KIB: i64 = 64 * 1024;

/// How long SQLite waits for another process. No commit takes longer.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// Only of a store for writing.
    sums: Option<PageSums>,
    /// The folder of a temporary copy made for reading. It is deleted with the store.
    _copy: Option<TempDir>,
}

impl Store {
    /// Opens for writing, and creates or migrates the schema. The caller holds the archive's write lock.
    pub fn open_write(path: &Path) -> anyhow::Result<Store> {
        Store::open_write_with(path, None)
    }

    /// Like [`Store::open_write`], with access to the WARC files, which contain what states of earlier schemas lack.
    pub fn open_write_with(path: &Path, records: Option<&dyn RecordSource>) -> anyhow::Result<Store> {
        let connection =
            Connection::open(path).with_context(|| format!("cannot open {} for writing", path.display()))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // NORMAL: a power cut may lose the last commits, but never half a commit. The WARC file is synced before the
        // commit. The next opening for writing reads the lost captures from it.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let mut store = Store::tuned(connection, None)?;
        let sums = PageSums::take_over(&store.connection, path);
        store.sums = Some(sums.with_context(|| format!("cannot write the checksums of {}", path.display()))?);
        if schema::version(&store.connection)? == 0 {
            let identity = (crate::random_seed() as i32).max(1);
            store.connection.pragma_update(None, "application_id", identity)?;
        }
        schema::migrate(&mut store.connection, records)
            .with_context(|| format!("cannot bring {} up to date", path.display()))?;
        Ok(store)
    }

    /// Identifies the numbering of captures. A rebuilt state has a different one; states of earlier releases have 0.
    pub fn identity(&self) -> anyhow::Result<i64> {
        Ok(self.connection.pragma_query_value(None, "application_id", |row| row.get(0))?)
    }

    /// Whether the state has a schema that trusted the digests claimed by records. Opening it for writing checks them.
    pub fn is_unchecked(path: &Path) -> anyhow::Result<bool> {
        if !path.exists() {
            return Ok(false);
        }
        Ok((1..schema::CHECKED_SINCE).contains(&Store::schema_number(path)?))
    }

    /// The schema of a state file.
    pub fn schema_number(path: &Path) -> anyhow::Result<u32> {
        // A connection for writing would copy the log when it is closed.
        let version = reading::open_read_only(path).and_then(|connection| Ok(schema::version(&connection)?));
        version.with_context(|| format!("cannot read {}", path.display()))
    }

    /// Stores the checksums of what was committed. Called after each commit.
    fn after_commit(&mut self) -> anyhow::Result<()> {
        match &mut self.sums {
            Some(sums) => sums.after_commit(&self.connection),
            None => Ok(()),
        }
    }

    fn tuned(connection: Connection, copy: Option<TempDir>) -> anyhow::Result<Store> {
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "temp_store", "FILE")?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(64);
        // Without this, SQLite plans a cached statement again at each binding of its LIMIT. Planning costs more than
        // running.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(Store { connection, sums: None, _copy: copy })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(sums) = &mut self.sums {
            // Without room on the disk, the log remains, and the next writer copies it.
            let _ = sums.checkpoint(&self.connection);
        }
    }
}

/// 64 bits of a URL. Among a million URLs, two share a hash in one of 36 million archives.
pub fn url_hash(url: &str) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(url)
}

/// Whether SQLite could not read or write a database.
pub fn is_database_error(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<rusqlite::Error>())
}

/// Whether SQLite reported a full disk. A failed write counts as one.
pub fn is_disk_full(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<rusqlite::Error>() {
        Some(rusqlite::Error::SqliteFailure(failure, _)) => {
            failure.code == rusqlite::ErrorCode::DiskFull
                || failure.extended_code == rusqlite::ffi::SQLITE_IOERR_WRITE
        }
        _ => false,
    })
}
