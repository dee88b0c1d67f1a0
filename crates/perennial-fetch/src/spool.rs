//! Stores large bodies in unnamed files until they are archived, bounded in total.
//!
//! The files are on the archive's own disk, because the temporary folder may be small or in memory. A failure of that
//! disk is never the fault of a host. The first failure is remembered and ends the crawl.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Space is counted in units of this size, because a semaphore counts to 32 bits only.
const PIECE_BYTES: u64 = 64 << 10;

/// The folder and its free space.
#[derive(Debug)]
pub(super) struct Spool {
    /// `None`: the system's temporary folder.
    folder: Option<PathBuf>,
    room: Arc<Semaphore>,
    failure: Arc<Mutex<Option<(io::ErrorKind, String)>>>,
}

/// The body exceeds the total space.
#[derive(Debug)]
pub(super) struct SpoolFull;

/// A body on disk. Dropping it frees its space.
#[derive(Debug)]
pub struct SpoolFile {
    file: File,
    room: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
    failure: Arc<Mutex<Option<(io::ErrorKind, String)>>>,
}

impl Spool {
    pub(super) fn new(folder: Option<PathBuf>, max_bytes: u64) -> Spool {
        let n_pieces = (max_bytes / PIECE_BYTES).clamp(1, u64::from(u32::MAX)) as usize;
        let n_pieces = n_pieces.min(Semaphore::MAX_PERMITS);
        Spool { folder, room: Arc::new(Semaphore::new(n_pieces)), failure: Arc::default() }
    }

    /// An empty file. It has no name, so nothing is left of it after a crash.
    pub(super) fn file(&self) -> io::Result<SpoolFile> {
        let file = match &self.folder {
            Some(folder) => tempfile::tempfile_in(folder),
            None => tempfile::tempfile(),
        };
        let file = file.map_err(|error| remember(&self.failure, &error))?;
        Ok(SpoolFile { file, room: self.room.clone(), taken: None, failure: self.failure.clone() })
    }

    pub(super) fn failure(&self) -> Option<io::Error> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.as_ref().map(|(kind, words)| io::Error::new(*kind, words.clone()))
    }
}

impl SpoolFile {
    /// Waits until there is space for more bytes.
    pub(super) async fn reserve(&mut self, n_bytes: u64) -> Result<(), SpoolFull> {
        let n_pieces = u32::try_from(n_bytes.div_ceil(PIECE_BYTES)).map_err(|_| SpoolFull)?;
        let more = self.room.clone().acquire_many_owned(n_pieces).await.map_err(|_| SpoolFull)?;
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        Ok(())
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).map_err(|error| remember(&self.failure, &error))
    }

    pub(super) fn prefix(&mut self, max: usize) -> io::Result<Vec<u8>> {
        self.file.rewind()?;
        let mut bytes = Vec::new();
        (&self.file).take(max as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub fn as_file(&mut self) -> &mut File {
        &mut self.file
    }
}

fn remember(failure: &Mutex<Option<(io::ErrorKind, String)>>, error: &io::Error) -> io::Error {
    let words = format!("cannot spool a large body: {error}; free space on the archive's disk");
    let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
    first.get_or_insert_with(|| (error.kind(), words.clone()));
    io::Error::new(error.kind(), words)
}

/// Creates the folder, and deletes what a crash left in it.
pub(super) fn clean(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_is_shared_and_comes_back() {
        let spool = Spool::new(None, 10 * PIECE_BYTES);
        let (mut first, mut second) = (spool.file().unwrap(), spool.file().unwrap());
        first.reserve(8 * PIECE_BYTES).await.unwrap();
        let waiting = tokio::spawn(async move { second.reserve(4 * PIECE_BYTES).await.is_ok() });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        assert!(waiting.await.unwrap());
    }

    #[test]
    fn what_a_crash_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("left"), b"x").unwrap();
        clean(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
