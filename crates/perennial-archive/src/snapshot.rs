//! The archive as one reader sees it, unchanging: all that questions get.
//!
//! A snapshot is one read transaction of the state. It takes no lock, writes nothing, and is never blocked; a crawl may
//! commit meanwhile. WARC files only grow, so whatever the snapshot's state names is there.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Archive, ArchivedResponse};
use crate::store::{Capture, Store};

/// The archive at one moment.
#[derive(Debug)]
pub struct Snapshot {
    archive: Archive,
    store: Store,
}

impl Archive {
    /// The archive as it is now.
    pub fn snapshot(&self) -> anyhow::Result<Snapshot> {
        Ok(Snapshot { archive: self.clone(), store: Store::open_snapshot(&self.state_path())? })
    }
}

impl Snapshot {
    /// The archive as it is now, in place of what this snapshot was.
    pub fn renew(&self) -> anyhow::Result<()> {
        self.store.renew()
    }

    /// Gives the state up until [`Snapshot::renew`]: a snapshot that is kept for later shall hold up no writer.
    pub fn rest(&self) -> anyhow::Result<()> {
        self.store.rest()
    }

    /// Folder and settings.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// What was known at that moment.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What a reader saw; see [`Archive::document`].
    pub fn document(&self, capture: &Capture) -> anyhow::Result<Option<ArchivedResponse>> {
        self.archive.document(&self.store, capture)
    }
}

/// A snapshot that several threads ask, one at a time.
#[derive(Debug)]
pub struct SharedSnapshot(Mutex<Snapshot>);

impl SharedSnapshot {
    /// Shares it.
    pub fn new(snapshot: Snapshot) -> SharedSnapshot {
        SharedSnapshot(Mutex::new(snapshot))
    }

    /// Waits for its turn.
    pub fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
