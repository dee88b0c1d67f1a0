//! Connections to the state for the threads that analyse: a SQLite connection serves one at a time.

use std::sync::{Mutex, PoisonError};

use crate::archive::Archive;
use crate::store::Store;

/// Open connections that nobody uses at the moment.
pub struct Readers {
    archive: Archive,
    idle: Mutex<Vec<Store>>,
}

impl Readers {
    /// Readers of an archive's state; opened as they are needed.
    pub fn new(archive: &Archive) -> Readers {
        Readers { archive: archive.clone(), idle: Mutex::default() }
    }

    /// Works with a connection that nobody else has meanwhile.
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
