//! Captures and what the crawl and the analysis learned <-> one SQLite file: sites, pages, captures, versions, links, looks,
//! frontier.
//!
//! WAL mode lets readers see a consistent state while a writer works. All of it can be rebuilt from the WARC files and
//! `perennial.toml`; what cannot is not stored here.

mod frontier;
mod ingest;
mod lessons;
mod links;
mod looks;
mod query;
mod schema;
mod spent;

pub use frontier::{CapturedAddress, Discovery, Ending, FrontierPage, PageKind, Target, Visited};
pub use ingest::{CaptureRow, Commit, FileRow, FileState, Ingested, Kind, LinkTarget, site_of};
pub use lessons::{ChangeFilter, ChangeRow, KnownRow, LessonRow, Worth};
use links::encode_targets;
pub use looks::{Look, LookOrder, Selection};
use query::{CAPTURE_COLUMNS, CAPTURE_TABLES, read_capture};
pub use query::{Capture, Counts, Filter, PageRow, VersionRow};
pub use schema::SCHEMA_VERSION;
pub use spent::OVERALL;

use std::path::Path;

use anyhow::{Context, bail};
use rusqlite::{Connection, OpenFlags};

/// SQLite's page cache. With the rows of one commit this is all memory that the store uses.
const CACHE_KIB: i64 = 64 * 1024;

/// An open state file.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
}

impl Store {
    /// Opens for writing, creates or migrates the schema. The caller holds the archive's write lock.
    pub fn open_write(path: &Path) -> anyhow::Result<Store> {
        let connection =
            Connection::open(path).with_context(|| format!("cannot open {} for writing", path.display()))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // NORMAL: after a power cut the last commits may be missing, but none is there in part. The WARC file is synced
        // before the commit, and opening for writing reads from it what the state lacks.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let mut store = Store::tuned(connection)?;
        schema::migrate(&mut store.connection)
            .with_context(|| format!("cannot bring {} up to date", path.display()))?;
        Ok(store)
    }

    /// Opens for reading, also while another process writes, and on a read-only disk.
    pub fn open_read(path: &Path) -> anyhow::Result<Store> {
        if !path.exists() {
            bail!(
                "{} is missing: make it again from the WARC files with `perennial verify --rebuild`",
                path.display()
            );
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let open = |uri: String| {
            Connection::open_with_flags(uri, flags).and_then(|c| schema::version(&c).map(|v| (c, v)))
        };
        let name = uri_path(path);
        // A WAL needs its shared-memory file. Where that cannot be created nothing is written either, so the file can be
        // opened as immutable.
        let (connection, version) = open(format!("file:{name}"))
            .or_else(|_| open(format!("file:{name}?immutable=1")))
            .with_context(|| format!("cannot read {}", path.display()))?;
        if version != SCHEMA_VERSION {
            bail!(
                "{} has schema {version}, this program reads {SCHEMA_VERSION}: {}",
                path.display(),
                if version < SCHEMA_VERSION {
                    "bring it up to date with `perennial verify --rebuild`"
                } else {
                    "install a later perennial"
                }
            );
        }
        Store::tuned(connection)
    }

    fn tuned(connection: Connection) -> anyhow::Result<Store> {
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "temp_store", "FILE")?;
        connection.busy_timeout(std::time::Duration::from_secs(30))?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(Store { connection })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
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

/// A path as a part of SQLite's `file:` URI.
fn uri_path(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}
