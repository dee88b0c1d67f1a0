//! Opens a state file for reading: while a writer works, on a read-only medium, or with an earlier schema.
//!
//! SQLite's WAL mode needs a shared-memory file next to the database. If that file can neither be used nor created,
//! nobody on this machine writes the state. The state is then read as an immutable file. If its WAL contains commits,
//! it is read from a copy in the system's temporary folder. A state of an earlier schema is also copied, and the copy
//! is migrated, because queries never change the archive.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tempfile::TempDir;

use super::{SCHEMA_VERSION, Store, schema};

/// How often a copy is repeated because the file changed meanwhile.
const COPY_ATTEMPTS: usize = 5;

impl Store {
    /// Opens for reading. Each query sees the state at the time of the query.
    pub fn open_read(path: &Path) -> anyhow::Result<Store> {
        if !path.exists() {
            bail!(
                "{} is missing: make it again from the WARC files with `perennial verify --rebuild`",
                path.display()
            );
        }
        let opened = OpenState::at(path).with_context(|| format!("cannot read {}", path.display()))?;
        match opened.version {
            SCHEMA_VERSION => opened.into_store(),
            version if version < SCHEMA_VERSION => opened
                .migrated_copy()
                .with_context(|| format!("cannot read {}, whose schema is {version}", path.display())),
            version => bail!(
                "{} has schema {version}, this program reads {SCHEMA_VERSION}: install a later perennial",
                path.display()
            ),
        }
    }

    /// Opens for reading as one transaction, which lasts as long as the store: all queries see one state.
    pub fn open_snapshot(path: &Path) -> anyhow::Result<Store> {
        let store = Store::open_read(path)?;
        store.begin()?;
        Ok(store)
    }

    fn begin(&self) -> anyhow::Result<()> {
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        // The transaction begins with its first read.
        self.connection.prepare_cached("SELECT 1 FROM runs LIMIT 1")?.exists([])?;
        Ok(())
    }

    /// Ends the transaction of a snapshot, which would prevent truncation of the writer's log.
    pub fn rest(&self) -> anyhow::Result<()> {
        if !self.connection.is_autocommit() {
            self.connection.prepare_cached("COMMIT")?.execute([])?;
        }
        Ok(())
    }

    /// Replaces the snapshot by one of the current state.
    pub fn renew(&self) -> anyhow::Result<()> {
        self.rest()?;
        self.begin()
    }

    /// Whether this is a copy, which does not contain later commits.
    pub fn is_copy(&self) -> bool {
        self._copy.is_some()
    }

    /// Limits the cache of this connection, for callers with many connections.
    pub fn limit_cache(&self, kib: i64) -> anyhow::Result<()> {
        Ok(self.connection.pragma_update(None, "cache_size", -kib)?)
    }
}

/// A state file of any schema, open for reading.
struct OpenState {
    connection: Connection,
    version: u32,
    copy: Option<TempDir>,
}

impl OpenState {
    fn at(path: &Path) -> anyhow::Result<OpenState> {
        let error = match OpenState::with(path, "", None) {
            Ok(opened) => return Ok(opened),
            Err(error) => error,
        };
        // Any other error is not about permissions, and a fallback would read garbage.
        if !matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
        ) {
            return Err(error.into());
        }
        if file_length(&wal_path(path))? == 0 {
            return Ok(OpenState::with(path, "?immutable=1", None)?);
        }
        let copy = copy_with_wal(path)?;
        let copied = copy.path().join("state.db");
        Ok(OpenState::with(&copied, "", Some(copy))?)
    }

    fn with(path: &Path, options: &str, copy: Option<TempDir>) -> rusqlite::Result<OpenState> {
        // One thread at a time uses a connection, so SQLite's mutex is unnecessary.
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(format!("file:{}{options}", uri_path(path)), flags)?;
        let version = schema::version(&connection)?;
        Ok(OpenState { connection, version, copy })
    }

    fn into_store(self) -> anyhow::Result<Store> {
        Store::tuned(self.connection, self.copy)
    }

    /// A copy of the state as it is now, with today's schema. New columns that only the WARC files could fill are
    /// empty.
    fn migrated_copy(self) -> anyhow::Result<Store> {
        let copy = tempfile::tempdir()?;
        let path = copy.path().join("state.db");
        self.connection.execute("VACUUM INTO ?1", [path.to_string_lossy()])?;
        drop(Store::open_write(&path)?);
        OpenState::with(&path, "", Some(copy))?.into_store()
    }
}

fn wal_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push("-wal");
    name.into()
}

fn file_length(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Copies a state file and its WAL as of one moment.
fn copy_with_wal(path: &Path) -> anyhow::Result<TempDir> {
    let copy = tempfile::tempdir()?;
    for _ in 0..COPY_ATTEMPTS {
        let before = stamps(path)?;
        fs::copy(path, copy.path().join("state.db"))?;
        fs::copy(wal_path(path), copy.path().join("state.db-wal"))?;
        if stamps(path)? == before {
            return Ok(copy);
        }
    }
    bail!("another user is writing it, and its folder is closed to you: ask for permission to write there")
}

fn stamps(path: &Path) -> io::Result<[(u64, SystemTime); 2]> {
    let stamp = |path: &Path| fs::metadata(path).and_then(|file| Ok((file.len(), file.modified()?)));
    Ok([stamp(path)?, stamp(&wal_path(path))?])
}

/// Opens a database other than the state for reading. If SQLite cannot read it alongside a writer, the medium is
/// read-only, so it is opened as immutable.
pub(super) fn open_read_only(path: &Path) -> anyhow::Result<Connection> {
    let open = |options: &str| -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(format!("file:{}{options}", uri_path(path)), flags)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
        Ok(connection)
    };
    open("").or_else(|_| open("?immutable=1")).with_context(|| format!("cannot read {}", path.display()))
}

/// Escapes a path for SQLite's `file:` URIs.
pub(super) fn uri_path(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}
