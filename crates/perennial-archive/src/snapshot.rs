//! The archive as one reader sees it, unchanging. Queries use only this view.
//!
//! A snapshot is one read transaction of the state. It takes no lock, writes nothing, and is never blocked, even while
//! a crawl commits. WARC files only grow, so every record that the snapshot names exists.

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
    pub fn snapshot(&self) -> anyhow::Result<Snapshot> {
        Ok(Snapshot { archive: self.clone(), store: Store::open_snapshot(&self.state_path())? })
    }
}

impl Snapshot {
    /// Moves this snapshot to the present state of the archive.
    pub fn renew(&self) -> anyhow::Result<()> {
        self.store.renew()
    }

    /// Ends the read transaction until [`Snapshot::renew`], because an idle snapshot would hold up the writer.
    pub fn rest(&self) -> anyhow::Result<()> {
        self.store.rest()
    }

    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The state at that moment.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The document that a reader would have seen; see [`Archive::document`].
    pub fn document(&self, capture: &Capture) -> anyhow::Result<Option<ArchivedResponse>> {
        self.archive.document(&self.store, capture)
    }
}

/// A snapshot that several threads query, one at a time.
#[derive(Debug)]
pub struct SharedSnapshot(Mutex<Snapshot>);

impl SharedSnapshot {
    pub fn new(snapshot: Snapshot) -> SharedSnapshot {
        SharedSnapshot(Mutex::new(snapshot))
    }

    /// Waits until no other thread uses the snapshot.
    pub fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
