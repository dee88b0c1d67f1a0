//! What a crash left -> an archive whose state and WARC files agree, and a list of what was put right.
//!
//! The WARC is synced before the state commits, so usually the state is behind: the file holds sound records
//! that the state does not know, and perhaps a torn one at its end. After a power cut on a disk that lies the
//! state can be ahead; then it is made anew from the files.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Serialize;

use super::repair::repair_file;
use super::scan::{ScanItem, scan};
use super::{Archive, files, index, make_dir, sync_dir};
use crate::store::{CaptureRow, FileRow, FileState, QuarantinedRecord, Store, Texts, remove_state};

/// Rows that are committed together.
pub(crate) const BATCH_ROWS: usize = 4_000;

/// One thing that was put right.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "repair", rename_all = "kebab-case")]
pub enum Repair {
    /// A record that was written in part was cut off and kept beside the file.
    CutTorn {
        /// The WARC file.
        file: String,
        /// Where it was cut.
        offset: u64,
        /// How much was cut off.
        bytes: u64,
        /// Where that is now.
        kept_in: String,
    },
    /// Records that the state did not know were taken in.
    Recovered {
        /// The WARC file.
        file: String,
        /// How many captures.
        n_captures: u64,
    },
    /// A state of an earlier version of this program, which believed what records claim, was checked against their bytes.
    Checked {
        /// How many captures there are.
        n_captures: u64,
        /// How many contradict their digests.
        n_mismatching: u64,
        /// How many revisits stand for a payload that no record holds.
        n_unfounded: u64,
    },
    /// A file could not be read to its end. What the state knows of it stays.
    Unread {
        /// The WARC file.
        file: String,
        /// Why.
        why: String,
    },
    /// A file of the index was not as it had been written: the index is made anew from there on.
    ForgotRuns {
        /// The file in `index/`.
        file: String,
    },
    /// The state knew more than the files hold: it was made anew from them.
    MadeStateAnew {
        /// Why.
        why: String,
    },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::CutTorn { file, offset, bytes, kept_in } => {
                write!(f, "repaired {file}: cut {bytes} torn bytes off at {offset}, kept in {kept_in}")
            }
            Repair::Recovered { file, n_captures } => {
                write!(f, "repaired: {n_captures} captures of {file} were not in the state yet")
            }
            Repair::Checked { n_captures, n_mismatching, n_unfounded } => write!(
                f,
                "checked {n_captures} captures against their bytes: {n_mismatching} contradict their digests, {n_unfounded} \
                 revisits stand for a payload that is in no record; see `perennial verify`"
            ),
            Repair::Unread { file, why } => {
                write!(f, "cannot read {file} to its end, going on without the rest of it: {why}")
            }
            Repair::ForgotRuns { file } => {
                write!(
                    f,
                    "repaired: {file} was not as it had been written, the index is made anew from there on"
                )
            }
            Repair::MadeStateAnew { why } => write!(f, "repaired: state and index made anew, because {why}"),
        }
    }
}

/// Brings state and files together; the caller holds the write lock.
pub(crate) fn recover(archive: &Archive) -> anyhow::Result<(Store, Vec<Repair>)> {
    make_dir(&archive.warc_dir())?;
    make_dir(&archive.index_dir())?;
    remove_partial_copies(&archive.warc_dir())?;
    remove_new_state(archive)?;
    let was_unchecked = Store::is_unchecked(&archive.state_path())?;
    let mut store = Store::open_write_with(&archive.state_path(), Some(archive))?;
    let mut repairs = Vec::new();
    if was_unchecked {
        let counts = store.counts()?;
        repairs.push(Repair::Checked {
            n_captures: counts.n_captures,
            n_mismatching: counts.set_aside.n_mismatching,
            n_unfounded: counts.n_unfounded,
        });
    }
    match state_is_ahead(archive, &store)? {
        Some(why) => {
            drop(store);
            repairs.push(Repair::MadeStateAnew { why });
            store = rebuild_state(archive, &mut repairs, &|_| {})?;
        }
        None => catch_up(archive, &mut store, &mut repairs, &|_| {})?,
    }
    if let Some(run) = index::forget_lost_runs(&mut store, &archive.index_dir())? {
        repairs.push(Repair::ForgotRuns { file: run.name });
    }
    index::remove_unnamed_runs(&store, &archive.index_dir())?;
    Ok((store, repairs))
}

/// Makes state and index from the WARC files alone; the caller holds the write lock. Readers see the state as it was
/// until the new one is complete.
pub(crate) fn rebuild_state(
    archive: &Archive,
    repairs: &mut Vec<Repair>,
    progress: &dyn Fn(u64),
) -> anyhow::Result<Store> {
    remove_new_state(archive)?;
    make_dir(&archive.index_dir())?;
    let mut fresh = Store::open_write(&new_state_path(archive))?;
    catch_up(archive, &mut fresh, repairs, progress)?;
    keep_sources(archive, &mut fresh)?;
    index::write_tail_run(&mut fresh, &archive.index_dir())?;
    // Its pages have the numbers of the state that goes.
    Texts::remove(&archive.texts_path())?;
    let store = fresh.replace_state(&archive.state_path())?;
    drop(fresh);
    remove_new_state(archive)?;
    index::remove_unnamed_runs(&store, &archive.index_dir())?;
    Ok(store)
}

/// What an import noted of its files cannot be read from them again: which came from elsewhere, and with what bytes. It is taken over
/// from the present state, if that can be read.
fn keep_sources(archive: &Archive, fresh: &mut Store) -> anyhow::Result<()> {
    let Ok(noted) = archive.store().and_then(|store| store.files()) else { return Ok(()) };
    let made = fresh.files()?;
    for row in noted.into_iter().filter(|row| row.source_digest.is_some()) {
        if let Some(anew) = made.iter().find(|anew| anew.name == row.name) {
            fresh.commit(&FileRow { committed_bytes: anew.committed_bytes, ..row }, &[])?;
        }
    }
    Ok(())
}

/// Where a state is made that is to take the place of the present one; worthless after a crash.
fn new_state_path(archive: &Archive) -> PathBuf {
    archive.state_path().with_added_extension("new")
}

fn remove_new_state(archive: &Archive) -> anyhow::Result<()> {
    let beside = new_state_path(archive);
    remove_state(&beside).with_context(|| format!("cannot remove {}", beside.display()))
}

fn remove_partial_copies(dir: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(files::COPYING_SUFFIX) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn state_is_ahead(archive: &Archive, store: &Store) -> anyhow::Result<Option<String>> {
    let dir = archive.warc_dir();
    for file in store.files()? {
        let path = files::locate(&dir, &file.name);
        let Ok(metadata) = fs::metadata(&path) else {
            bail!(
                "{} is missing: put it back, or go on without it with `perennial verify --rebuild`",
                path.display()
            );
        };
        if metadata.len() < file.committed_bytes {
            return Ok(Some(format!(
                "{} has {} bytes where {} were committed",
                file.name,
                metadata.len(),
                file.committed_bytes
            )));
        }
    }
    Ok(None)
}

/// Takes in whatever the files hold and the state does not know.
pub(crate) fn catch_up(
    archive: &Archive,
    store: &mut Store,
    repairs: &mut Vec<Repair>,
    progress: &dyn Fn(u64),
) -> anyhow::Result<()> {
    let known = store.files()?;
    for on_disk in files::list(&archive.warc_dir())? {
        let row = known.iter().find(|file| file.name == on_disk.name);
        let is_behind = row.is_none_or(|row| row.committed_bytes < on_disk.bytes);
        let was_open = row.is_some_and(|row| row.state == FileState::Open);
        if is_behind {
            match catch_up_file(archive, store, &on_disk, row, repairs, progress) {
                // One file that cannot be read keeps nobody from the others.
                Err(error) if error.downcast_ref::<std::io::Error>().is_some() => {
                    repairs.push(Repair::Unread { file: on_disk.name, why: format!("{error:#}") });
                }
                done => done?,
            }
        } else if let Some(row) = row
            && was_open
            && !on_disk.is_open
        {
            // A crash between the file's final name and the state's note of it.
            sync_dir(&archive.warc_dir())?;
            store.commit(&FileRow { state: FileState::Closed, ..row.clone() }, &[])?;
        }
    }
    Ok(())
}

fn catch_up_file(
    archive: &Archive,
    store: &mut Store,
    on_disk: &files::FileOnDisk,
    row: Option<&FileRow>,
    repairs: &mut Vec<Repair>,
    progress: &dyn Fn(u64),
) -> anyhow::Result<()> {
    // Only our own files grow at their end. A zstd file needs its first frame to be read at all.
    let is_own = row.is_some_and(|row| row.state != FileState::Imported);
    let from = row.filter(|_| is_own).map_or(0, |row| row.committed_bytes);
    let base = FileRow {
        name: on_disk.name.clone(),
        state: match row {
            Some(row) if row.state == FileState::Imported => FileState::Imported,
            _ if on_disk.is_open => FileState::Open,
            _ => FileState::Closed,
        },
        committed_bytes: from,
        source_digest: row.and_then(|row| row.source_digest.clone()),
    };
    if on_disk.is_open {
        let path = files::locate(&archive.warc_dir(), &on_disk.name);
        repairs.extend(repair_file(&path, &on_disk.name, from)?);
    }
    let file = files::open(&archive.warc_dir(), &on_disk.name)?;
    // What a killed process wrote, or whoever put the file here, may not be on disk yet: the state must not be ahead of it.
    file.sync_all()?;
    sync_dir(&archive.warc_dir())?;
    let end = file.metadata()?.len();
    let mut taken = CaptureBatch::new(store, base);
    scan(file, from, progress, &mut |found| {
        match (found.quarantined(), found) {
            (_, ScanItem::Capture(row)) => taken.push(row)?,
            (Some(quarantined), _) => taken.set_aside(quarantined),
            // Damage in a file that is complete is for `verify` to name; every sound record around it is taken in.
            (None, _) => {}
        }
        Ok(())
    })?;
    let n_captures = taken.finish(end)?;
    if n_captures > 0 {
        repairs.push(Repair::Recovered { file: on_disk.name.clone(), n_captures });
    }
    Ok(())
}

/// Rows on their way into the state, a batch at a time.
pub(crate) struct CaptureBatch<'s> {
    store: &'s mut Store,
    file: FileRow,
    batch: Vec<CaptureRow>,
    quarantined: Vec<QuarantinedRecord>,
    n_captures: u64,
}

impl<'s> CaptureBatch<'s> {
    pub(crate) fn new(store: &'s mut Store, file: FileRow) -> CaptureBatch<'s> {
        CaptureBatch { store, file, batch: Vec::new(), quarantined: Vec::new(), n_captures: 0 }
    }

    pub(crate) fn push(&mut self, row: CaptureRow) -> anyhow::Result<()> {
        self.batch.push(row);
        if self.batch.len() >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    pub(crate) fn set_aside(&mut self, quarantined: QuarantinedRecord) {
        self.quarantined.push(quarantined);
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.n_captures += self.store.commit_scan(&self.file, &self.batch, &self.quarantined)?.n_captures;
        self.batch.clear();
        self.quarantined.clear();
        Ok(())
    }

    /// Notes that all up to `end` is known; gives the number of captures that were new.
    pub(crate) fn finish(&mut self, end: u64) -> anyhow::Result<u64> {
        self.file.committed_bytes = end;
        self.flush()?;
        Ok(self.n_captures)
    }
}
