//! Captures and what the crawl and the analysis learned <-> one SQLite file: sites, pages, captures, versions, links, looks,
//! frontier.
//!
//! WAL mode lets readers see a consistent state while a writer works. All of it can be rebuilt from the WARC files and
//! `perennial.toml`; what cannot is not stored here.
//!
//! | file | what becomes what |
//! |---|---|
//! | `schema` | a state file of any earlier version -> one of today's, in numbered steps |
//! | `reading`, `replace` | a state file -> a connection that reads it; a rebuilt state -> the one in use |
//! | `ingest` | rows of captures -> sites, pages, captures, versions, links, in one transaction |
//! | `query`, `chosen`, `around` | a filter, an export, an instant -> captures and counts |
//! | `analyses`, `trees`, `packed` | results of analyses and their block trees <-> rows and bytes |
//! | `observations`, `steps` | captures and analyses -> observations of a page; steps from version to version |
//! | `changes`, `overview` | a list of changes that continues at a cursor; what the dashboard shows of a page or site |
//! | `frontier`, `spent`, `bearings` | URLs between visits, visits and bytes spent, scheduler state <-> tables |
//! | `rows` | cached statements -> rows |
//! | `feeds`, `links`, `runs` | feeds and items, the link graph, files of the index <-> tables |
//! | `quarantined` | records that could not be imported or analysed <-> the quarantine table |
//! | `checks` | the state -> pages for which an invariant does not hold |
//! | `texts` | passages and when they were on a page <-> `search.db` |
//! | `outbox` | notices on their way <-> `outbox.db` |
//! | `sql` | documented views, read by the user's own statements within bounds |

mod analyses;
mod changes;
mod checkpoint;
mod checks;
mod export_selection;
mod feeds;
mod frontier;
mod ingest;
mod key_range;
mod links;
mod observations;
mod outbox;
mod overview;
mod quarantine;
mod query;
mod reading;
mod replacement;
mod rows;
mod runs;
mod schema;
mod spending;
mod sql;
mod texts;
mod tree_packing;
mod trees;
mod version_steps;

pub use analyses::{
    AnalysedObservation, Analysis, ChangeFilter, ChangeRow, NewsItem, PageState, ShownVersion,
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
use links::encode_targets;
pub use observations::{Observation, ObservationOrder, ObservationSelection};
pub use outbox::{NewNotice, Outbox, PageNotices, PendingNotice, RuleState};
pub use overview::{AnalysisCounts, AnalysisDay, AnalysisRow, FailingHost, SitePage};
pub use quarantine::{QuarantineCounts, QuarantineReason, QuarantinedRecord};
pub use query::{ArchiveCounts, Capture, CaptureFilter, LatestPayload, PageRow, VersionRow};
use query::{CAPTURE_COLUMNS, CAPTURE_TABLES, IDENTITY, read_capture};
pub use replacement::remove_state;
pub use runs::IndexRun;
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

/// SQLite's page cache. With the rows of one commit this is all memory that the store uses.
const CACHE_KIB: i64 = 64 * 1024;

/// How long SQLite waits for another process: longer than any commit takes.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(30);

/// An open state file.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    /// Where the file lies, when it is a copy made to be read; it goes with the store.
    _copy: Option<TempDir>,
}

impl Store {
    /// Opens for writing, creates or migrates the schema. The caller holds the archive's write lock.
    pub fn open_write(path: &Path) -> anyhow::Result<Store> {
        Store::open_write_with(path, None)
    }

    /// The same where the WARC files can be read, which know what states of earlier schemas lack.
    pub fn open_write_with(path: &Path, records: Option<&dyn RecordSource>) -> anyhow::Result<Store> {
        let connection =
            Connection::open(path).with_context(|| format!("cannot open {} for writing", path.display()))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // NORMAL: after a power cut the last commits may be missing, but none is there in part. The WARC file is synced
        // before the commit, and opening for writing reads from it what the state lacks.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let mut store = Store::tuned(connection, None)?;
        schema::migrate(&mut store.connection, records)
            .with_context(|| format!("cannot bring {} up to date", path.display()))?;
        Ok(store)
    }

    /// Whether the state is of a schema that believed what records claim of themselves; opening it for writing checks it.
    pub fn is_unchecked(path: &Path) -> anyhow::Result<bool> {
        if !path.exists() {
            return Ok(false);
        }
        let version = Connection::open(path).and_then(|connection| schema::version(&connection));
        let version = version.with_context(|| format!("cannot open {} for writing", path.display()))?;
        Ok((1..schema::CHECKED_SINCE).contains(&version))
    }

    fn tuned(connection: Connection, copy: Option<TempDir>) -> anyhow::Result<Store> {
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "temp_store", "FILE")?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(64);
        // Or a kept statement with a bound LIMIT is planned anew whenever it is bound, which costs more than it runs.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(Store { connection, _copy: copy })
    }
}

/// 64 bits of an address: with a million addresses two share them once in 36 million archives.
pub fn url_hash(url: &str) -> u64 {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
    BuildHasherDefault::<DefaultHasher>::default().hash_one(url)
}

/// Whether an error says that the disk is full.
pub fn is_disk_full(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<rusqlite::Error>() {
        Some(rusqlite::Error::SqliteFailure(failure, _)) => {
            failure.code == rusqlite::ErrorCode::DiskFull
                || failure.extended_code == rusqlite::ffi::SQLITE_IOERR_WRITE
        }
        _ => false,
    })
}
