//! Replaces a state by a rebuilt one, in one step for readers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::Store;
use super::page_sums::{PageSums, SUFFIXES};

impl Store {
    /// Replaces the state at `path`, whatever is there, by this one. The caller holds the archive's write lock.
    ///
    /// The copy is one transaction, so a reader sees one of the two states whole. Only a file that is no longer a
    /// database is replaced as a file, because nobody can be reading it.
    pub fn replace_state(&self, path: &Path) -> anyhow::Result<Store> {
        let context = || format!("cannot replace {}", path.display());
        if self.copy_to(path).is_err() {
            remove_state(path).with_context(context)?;
            self.copy_to(path).with_context(context)?;
        }
        Store::open_write(path)
    }

    fn copy_to(&self, path: &Path) -> anyhow::Result<()> {
        let mut target = Connection::open(path)?;
        target.pragma_update(None, "journal_mode", "WAL")?;
        target.busy_timeout(super::BUSY_TIMEOUT)?;
        // The copy is on disk when this returns, because the caller then removes files that only the former state
        // named.
        target.pragma_update(None, "synchronous", "FULL")?;
        let mut sums = PageSums::take_over(&target, path)?;
        let whole = -1;
        Backup::new(&self.connection, &mut target)?.step(whole)?;
        sums.checkpoint(&target)
    }
}

/// Removes a state file with its WAL, its shared memory and its checksums.
pub fn remove_state(path: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm"].into_iter().chain(SUFFIXES) {
        let mut name = path.as_os_str().to_os_string();
        name.push(suffix);
        match fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
