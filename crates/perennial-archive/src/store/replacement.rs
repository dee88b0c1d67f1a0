//! A state file made beside another -> that state in the other's place, in one step for whoever reads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::Store;

impl Store {
    /// Puts this state in the place of the one at `path`, whatever is there. The caller holds the archive's write lock.
    ///
    /// It is copied in one transaction, so that a reader sees either state whole. Only a file that is no database
    /// any more, which nobody can be reading, is replaced as a file.
    pub fn replace_state(&self, path: &Path) -> anyhow::Result<Store> {
        let context = || format!("cannot replace {}", path.display());
        if self.copy_to(path).is_err() {
            remove_state(path).with_context(context)?;
            self.copy_to(path).with_context(context)?;
        }
        Store::open_write(path)
    }

    fn copy_to(&self, path: &Path) -> rusqlite::Result<()> {
        let mut target = Connection::open(path)?;
        target.pragma_update(None, "journal_mode", "WAL")?;
        target.busy_timeout(super::BUSY_TIMEOUT)?;
        // On disk when this returns: next the files go that only the former state named.
        target.pragma_update(None, "synchronous", "FULL")?;
        let whole = -1;
        Backup::new(&self.connection, &mut target)?.step(whole).map(drop)
    }
}

/// Removes a state file and what SQLite keeps beside it.
pub fn remove_state(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_os_string();
        name.push(suffix);
        match fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
