//! An archive after a crash -> an archive whose state and WARC files agree, and a list of repairs.
//!
//! The WARC file is synced before the state commits, so usually the state is behind. The file then contains sound
//! records that the state lacks, and perhaps an incomplete one at its end. Some disks lose synced writes in a power
//! failure, which can leave the state ahead. It is then rebuilt from the files.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Serialize;

use super::erase::complete_erasure;
use super::repair::repair_file;
use super::scan::{ScanItem, scan};
use super::{Archive, files, index, make_dir, sync_dir};
use crate::store::{CaptureRow, FileRow, FileState, QuarantinedRecord, Store, Texts, remove_state};

/// Rows per transaction.
pub(crate) const BATCH_ROWS: usize = 4_000;

/// One repair.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "repair", rename_all = "kebab-case")]
pub enum Repair {
    /// An incomplete record was moved to a side file.
    CutTorn {
        file: String,
        /// Offset of the cut.
        offset: u64,
        /// Bytes moved.
        bytes: u64,
        /// Name of the side file.
        kept_in: String,
    },
    /// Records that the state lacked were added to it.
    Recovered {
        file: String,
        /// Number of captures added.
        n_captures: u64,
    },
    /// A state of an earlier version of this program was checked. That version trusted claimed digests without reading
    /// the bytes.
    Checked {
        /// Number of captures.
        n_captures: u64,
        /// Number of captures that contradict their digests.
        n_mismatching: u64,
        /// Number of revisits whose payload is in no record.
        n_unfounded: u64,
    },
    /// A file could not be read to its end. Its rows in the state remain.
    Unread { file: String, why: String },
    /// An index file had changed since it was written. The index is rebuilt from this file on.
    ForgotRuns { file: String },
    /// The state named captures that the files lack, or was damaged. It was rebuilt from the files.
    MadeStateAnew { why: String },
    /// The former state was kept next to the rebuilt one.
    KeptState { file: String },
    /// The index contradicted the state. It was rebuilt from the state.
    MadeIndexAnew,
    /// The damaged text index was removed.
    RemovedTexts,
    /// A removal that was begun was completed.
    Erased { what: String },
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
                    "repaired: {file} differed from its recorded state; the index was rebuilt from there"
                )
            }
            Repair::KeptState { file } => {
                write!(f, "kept the former state as {file}; delete it when you no longer need it")
            }
            Repair::Erased { what } => write!(f, "completed the removal of {what}, which was begun"),
            Repair::MadeIndexAnew => write!(f, "repaired: the index was rebuilt from the state"),
            Repair::RemovedTexts => {
                write!(f, "repaired: search.db was damaged and is removed; `perennial analyse` rebuilds it")
            }
            Repair::MadeStateAnew { why } => {
                write!(f, "repaired: state and index were rebuilt, because {why}")
            }
        }
    }
}

/// Makes state and files agree. The caller must hold the write lock.
pub(crate) fn recover(archive: &Archive) -> anyhow::Result<(Store, Vec<Repair>)> {
    make_dir(&archive.warc_dir())?;
    make_dir(&archive.index_dir())?;
    remove_partial_copies(&archive.warc_dir())?;
    remove_new_state(archive)?;
    let was_unchecked = Store::is_unchecked(&archive.state_path())?;
    let mut store = Store::open_write_with(&archive.state_path(), Some(archive))?;
    let mut repairs = Vec::new();
    if was_unchecked {
        let counts = store.counts(archive.horizon())?;
        repairs.push(Repair::Checked {
            n_captures: counts.n_captures,
            n_mismatching: counts.quarantine.n_mismatching,
            n_unfounded: counts.n_unfounded,
        });
    }
    if let Some(what) = complete_erasure(archive, &mut store)? {
        repairs.push(Repair::Erased { what });
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

/// Rebuilds state and index from the WARC files alone. The caller must hold the write lock. Readers see the previous
/// state until the new one is complete.
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
    fresh.carry_over(&archive.state_path())?;
    index::write_tail_run(&mut fresh, &archive.index_dir())?;
    // The text index has the page numbers of the replaced state.
    Texts::remove(&archive.texts_path())?;
    let store = fresh.replace_state(&archive.state_path())?;
    drop(fresh);
    remove_new_state(archive)?;
    index::remove_unnamed_runs(&store, &archive.index_dir())?;
    Ok(store)
}

/// Copies from the present state, if it is readable, which files were imported and the digests of their sources. The
/// files do not contain this information.
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

/// Path of the state under construction; worthless after a crash.
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

/// Adds records to the state that only the files contain.
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
                // An unreadable file must not prevent the recovery of others.
                Err(error) if error.downcast_ref::<std::io::Error>().is_some() => {
                    repairs.push(Repair::Unread { file: on_disk.name, why: format!("{error:#}") });
                }
                done => done?,
            }
        } else if let Some(row) = row
            && was_open
            && !on_disk.is_open
        {
            // A crash happened after the file's final rename and before the commit of its new name.
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
    // Only our files grow at their end. Other files are read from the start, because a zstd file needs its first frame.
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
    // The file may contain unsynced bytes from a killed process or a copy. The state must not be ahead of the disk.
    file.sync_all()?;
    sync_dir(&archive.warc_dir())?;
    let end = file.metadata()?.len();
    let mut taken = CaptureBatch::new(store, base);
    scan(file, from, progress, &mut |found| {
        match (found.quarantined(), found) {
            (_, ScanItem::Capture(row)) => taken.push(row)?,
            (Some(quarantined), _) => taken.quarantine(quarantined),
            // `verify` reports the damage of complete files. All sound records around it are added.
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

/// Adds rows to the state in batches.
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

    pub(crate) fn quarantine(&mut self, quarantined: QuarantinedRecord) {
        self.quarantined.push(quarantined);
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.n_captures += self.store.commit_scan(&self.file, &self.batch, &self.quarantined)?.n_captures;
        self.batch.clear();
        self.quarantined.clear();
        Ok(())
    }

    /// Records that the file is known up to `end`. Returns the number of new captures.
    pub(crate) fn finish(&mut self, end: u64) -> anyhow::Result<u64> {
        self.file.committed_bytes = end;
        self.flush()?;
        Ok(self.n_captures)
    }
}
