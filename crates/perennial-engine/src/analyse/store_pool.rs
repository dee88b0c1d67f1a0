//! Gives each thread a connection to the state. A SQLite connection serves one thread at a time.

use std::sync::{Mutex, PoisonError};

use perennial_archive::Archive;
use perennial_archive::store::Store;

/// A pool of open connections.
pub struct StorePool {
    archive: Archive,
    idle: Mutex<Vec<Store>>,
}

impl StorePool {
    /// Connections are opened on demand.
    pub fn new(archive: &Archive) -> StorePool {
        StorePool { archive: archive.clone(), idle: Mutex::default() }
    }

    /// Calls `work` with a connection that no other thread uses.
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
