//! Threads that read the state -> a connection for each: a SQLite connection serves one thread at a time.

use std::sync::{Mutex, PoisonError};

use perennial_archive::Archive;
use perennial_archive::store::Store;

/// A pool of open connections.
pub struct StorePool {
    archive: Archive,
    idle: Mutex<Vec<Store>>,
}

impl StorePool {
    /// Readers of an archive's state. Connections are opened when they are needed.
    pub fn new(archive: &Archive) -> StorePool {
        StorePool { archive: archive.clone(), idle: Mutex::default() }
    }

    /// Calls `work` with a connection that no other thread uses meanwhile.
    pub fn with<T>(&self, work: impl FnOnce(&Archive, &Store) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let store = match idle {
            Some(store) => store,
            None => self.archive.store()?,
        };
        let done = work(&self.archive, &store);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(store);
        done
    }
}
