//! The records of the WARC files against the captures in the state, and the bytes of complete files against the manifest.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::sync_channel;

use super::manifest::listed_difference;
use super::{Defect, DefectKind, MAX_LISTED, UnfinishedWork, VerifyReport};
use crate::files::FileOnDisk;
use crate::manifest::Manifest;
use crate::scan::{ScanItem, scan};
use crate::store::{Capture, CaptureRow, FileRow, FileState, Store};
use crate::{Archive, Snapshot, files};

pub(super) fn check_files(
    snapshot: &Snapshot,
    manifest: &Manifest,
    being_erased: &[String],
    report: &mut VerifyReport,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<()> {
    let archive = snapshot.archive();
    let known: HashMap<String, FileRow> =
        snapshot.store().files()?.into_iter().map(|file| (file.name.clone(), file)).collect();
    let on_disk = files::list(&archive.warc_dir())?;
    let missing = known.keys().filter(|name| !on_disk.iter().any(|file| file.name == **name)).cloned();
    let missing = missing.collect();
    // A writer commits a file before the manifest lists it. If no file is known, somebody replaced the state.
    let knows_none = known.is_empty() && manifest.entries.is_empty();
    let listed = manifest.listed();
    let mut files = with_rows(archive, on_disk, &known)?;
    files.retain(|(file, _)| !being_erased.contains(&file.name));
    // One reader per file, on all cores. Each reader has a connection and reads the state's captures in step.
    let next = std::sync::atomic::AtomicUsize::new(0);
    let (sender, receiver) = sync_channel(4);
    let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(files.len());
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            let (sender, next, files, listed) = (sender.clone(), &next, &files, &listed);
            scope.spawn(move || {
                while let Some((file, row)) =
                    files.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let listed = listed.get(file.name.as_str()).copied();
                    let is_due = listed.is_some() || knows_none;
                    let checked = check_file(archive, file, row, is_due, progress).and_then(|mut checked| {
                        if let Some(listed) = listed {
                            checked.defects.extend(listed_difference(archive, &file.name, listed)?);
                        }
                        Ok(checked)
                    });
                    let checked = checked.or_else(unread(file));
                    if sender.send(checked).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for checked in receiver {
            let checked = checked?;
            report.n_files += 1;
            report.n_records += checked.n_records;
            report.n_captures += checked.n_captures;
            report.n_mismatching += checked.n_mismatching;
            report.n_quarantined += checked.n_quarantined;
            report.quarantined.extend(checked.quarantined);
            report.quarantined.truncate(MAX_LISTED);
            report.defects.extend(checked.defects);
            report.unfinished.extend(checked.unfinished);
        }
        anyhow::Ok(())
    })?;
    check_missing(archive, missing, &mut report.defects)?;
    report.defects.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
    report.unfinished.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(())
}

/// An unreadable file becomes a defect, and the check of other files continues.
fn unread(file: &FileOnDisk) -> impl FnOnce(anyhow::Error) -> anyhow::Result<VerifyReport> {
    let name = file.name.clone();
    move |error| match error.downcast_ref::<io::Error>() {
        Some(_) => {
            let what = format!("cannot read it to its end: {error:#}; take it from another copy");
            let defect = Defect::new(DefectKind::Unread, name, None, what);
            Ok(VerifyReport { defects: vec![defect], ..VerifyReport::default() })
        }
        None => Err(error),
    }
}

/// The files to read, each with its row in the state. An unknown file was added after the state was read, or the next
/// writer will add it. A file in progress without a commit is left to its writer.
fn with_rows(
    archive: &Archive,
    on_disk: Vec<FileOnDisk>,
    known: &HashMap<String, FileRow>,
) -> anyhow::Result<Vec<(FileOnDisk, FileRow)>> {
    let is_known = |file: &FileOnDisk| known.contains_key(&file.name);
    let later = if on_disk.iter().all(is_known) { Vec::new() } else { archive.store()?.files()? };
    let file_row = |file: &FileOnDisk| {
        let row = known.get(&file.name).or_else(|| later.iter().find(|row| row.name == file.name));
        row.cloned().unwrap_or(FileRow {
            name: file.name.clone(),
            state: FileState::Imported,
            committed_bytes: 0,
            source_digest: None,
        })
    };
    let mut files: Vec<(FileOnDisk, FileRow)> = Vec::with_capacity(on_disk.len());
    for file in on_disk.into_iter().filter(|file| is_known(file) || !file.is_open) {
        let row = file_row(&file);
        files.push((file, row));
    }
    Ok(files)
}

/// Reports files that the state names and the disk lacks. The state is queried again first, because a writer may have
/// removed the files since.
fn check_missing(archive: &Archive, missing: Vec<String>, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    let known: HashSet<String> = archive.store()?.files()?.into_iter().map(|file| file.name).collect();
    for file in missing.into_iter().filter(|name| known.contains(name)) {
        let what = "the state names this file and it is not there: put it back, or use --rebuild".to_string();
        defects.push(Defect::new(DefectKind::File, file, None, what));
    }
    Ok(())
}

fn is_in_state(archive: &Archive, name: &str) -> anyhow::Result<bool> {
    Ok(archive.store()?.files()?.iter().any(|file| file.name == name))
}

/// Captures fetched from the state ahead of the scan.
const AHEAD: usize = 1_000;

/// Compares a file with the state. If `is_due`, the state must have all its captures.
fn check_file(
    archive: &Archive,
    file: &FileOnDisk,
    row: &FileRow,
    is_due: bool,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let snapshot = archive.snapshot()?;
    // A writer may be active. Bytes after the committed length are left to it.
    let is_growing = file.is_open || row.state == FileState::Open;
    let end = if is_growing { row.committed_bytes } else { u64::MAX };
    let mut expected = ExpectedCaptures::new(snapshot.store(), &file.name, end);
    let mut n_behind = 0;
    let opened = match files::open(&archive.warc_dir(), &file.name) {
        // An import removes a file without new captures. It may have done so since the listing.
        Err(error) if error.kind() == ErrorKind::NotFound && !is_in_state(archive, &file.name)? => {
            return Ok(report);
        }
        opened => opened?,
    };
    let scanned = scan(opened, 0, progress, &mut |found| {
        if found.offset() >= end {
            return Ok(());
        }
        match check_found(found, &mut expected, &mut report.defects)? {
            RecordCheck::Agrees => report.n_captures += 1,
            RecordCheck::IsElsewhere => {}
            // An import commits a file's length last. Until then the import is still running, or the next writer
            // completes it.
            RecordCheck::IsUnknown { offset, .. } if offset >= row.committed_bytes => n_behind += 1,
            RecordCheck::IsUnknown { offset, what } => {
                report.add(Defect::new(DefectKind::State, &file.name, Some(offset), what));
            }
            RecordCheck::Fault { kind, offset, what } => {
                report.add(Defect::new(kind, &file.name, Some(offset), what));
            }
        }
        Ok(())
    })?;
    expected.take_up_to(u64::MAX, &mut report.defects)?;
    report.mark_imported(archive, file, row)?;
    report.n_records = scanned.n_records;
    let n_bytes = if is_growing { file.bytes.saturating_sub(row.committed_bytes) } else { 0 };
    let what = match (n_behind, n_bytes) {
        (0, 0) => return Ok(report),
        (0, n) => format!("{n} bytes behind the last commit"),
        (n, _) => format!("{n} captures are not in the state yet"),
    };
    match is_due && n_behind > 0 {
        true => {
            let what = format!(
                "the state lacks {n_behind} captures of this file: the next command that writes adds them"
            );
            report.defects.push(Defect::new(DefectKind::State, &file.name, None, what));
        }
        false => report.unfinished.push(UnfinishedWork { file: file.name.clone(), what }),
    }
    Ok(report)
}

impl VerifyReport {
    /// Marks damage and false digests as imported if the file still has its imported bytes. Only files with such
    /// defects are read for this check.
    fn mark_imported(&mut self, archive: &Archive, file: &FileOnDisk, row: &FileRow) -> anyhow::Result<()> {
        let may_be_imported =
            |defect: &Defect| matches!(defect.kind, DefectKind::Damage | DefectKind::Digest);
        let Some(source_digest) = &row.source_digest else { return Ok(()) };
        if self.defects.iter().any(may_be_imported) && imported_digest(archive, file)? == *source_digest {
            for defect in self.defects.iter_mut().filter(|defect| may_be_imported(defect)) {
                defect.is_imported = true;
            }
        }
        Ok(())
    }
}

/// The digest of a file as imported. It includes the end that a repair has moved to a side file.
fn imported_digest(archive: &Archive, file: &FileOnDisk) -> anyhow::Result<String> {
    let dir = archive.warc_dir();
    let side = dir.join(format!("{}-{}.torn", file.name, file.bytes));
    let mut whole: Box<dyn Read> = Box::new(files::open(&dir, &file.name)?);
    if side.exists() {
        whole = Box::new(whole.chain(File::open(side)?));
    }
    crate::import::copy_digested(&mut whole, &mut io::sink())
}

/// How a scanned record compares with the state.
enum RecordCheck {
    /// The state agrees with the record.
    Agrees,
    /// The state has the capture from a different record.
    IsElsewhere,
    /// The state lacks the capture.
    IsUnknown {
        offset: u64,
        what: String,
    },
    Fault {
        kind: DefectKind,
        offset: u64,
        what: String,
    },
}

fn check_found(
    found: ScanItem,
    expected: &mut ExpectedCaptures<'_>,
    defects: &mut Vec<Defect>,
) -> anyhow::Result<RecordCheck> {
    let offset = found.offset();
    let (kind, what) = match found {
        ScanItem::Capture(row) => match expected.take_up_to(row.offset, defects)? {
            Some(capture) => match difference(&capture, &row) {
                None => return Ok(RecordCheck::Agrees),
                Some(what) => (DefectKind::State, what),
            },
            None if expected.store.has_capture(&row.url, row.time, &row.digest)? => {
                return Ok(RecordCheck::IsElsewhere);
            }
            None => {
                let what = format!("the state lacks this capture of {}", row.url);
                return Ok(RecordCheck::IsUnknown { offset, what });
            }
        },
        ScanItem::Damage(damage) => {
            (DefectKind::Damage, format!("{} bytes: {}", damage.length, damage.cause))
        }
        ScanItem::BadDigest { mismatch, .. } => {
            (DefectKind::Digest, format!("{mismatch}: take the record from another copy"))
        }
        ScanItem::Unusable { why, .. } => (DefectKind::Record, format!("no capture: {why}")),
    };
    Ok(RecordCheck::Fault { kind, offset, what })
}

/// The state's captures of one file in order, read in batches.
struct ExpectedCaptures<'a> {
    store: &'a Store,
    name: &'a str,
    ahead: VecDeque<Capture>,
    from: u64,
    /// Captures from this offset on were added later.
    end: u64,
    is_done: bool,
}

impl<'a> ExpectedCaptures<'a> {
    fn new(store: &'a Store, name: &'a str, end: u64) -> ExpectedCaptures<'a> {
        ExpectedCaptures { store, name, ahead: VecDeque::new(), from: 0, end, is_done: false }
    }

    /// The capture at `offset`, if the state has one. Captures before it have no record, which is a defect.
    fn take_up_to(&mut self, offset: u64, defects: &mut Vec<Defect>) -> anyhow::Result<Option<Capture>> {
        loop {
            if self.ahead.is_empty() && !self.is_done {
                let mut ahead = self.store.captures_in(self.name, self.from, AHEAD)?;
                let n_found = ahead.len();
                ahead.retain(|capture| capture.offset < self.end);
                self.is_done = ahead.len() < AHEAD || n_found < AHEAD;
                self.from = ahead.last().map_or(self.from, |last| last.offset + 1);
                self.ahead = ahead.into();
            }
            match self.ahead.front() {
                Some(capture) if capture.offset < offset => {
                    let url = &capture.url;
                    let what = format!("the state has a capture of {url} here, the file has no such record");
                    defects.push(Defect::new(DefectKind::State, self.name, Some(capture.offset), what));
                    self.ahead.pop_front();
                }
                Some(capture) if capture.offset == offset => return Ok(self.ahead.pop_front()),
                _ => return Ok(None),
            }
        }
    }
}

fn difference(capture: &Capture, row: &CaptureRow) -> Option<String> {
    // A state of an earlier schema lacks content digests until a writer upgrades it.
    let content = capture.content.as_ref().and(row.content.as_ref());
    differs("URL", &capture.url, &row.url)
        .or_else(|| differs("key", &capture.surt, &row.surt))
        .or_else(|| differs("time", &capture.time.to_rfc3339(), &row.time.to_rfc3339()))
        .or_else(|| differs("digest", &capture.digest, &row.digest))
        .or_else(|| differs("content", &capture.content.as_ref(), &content))
        .or_else(|| differs("kind and status", &(capture.kind, capture.status), &(row.kind, row.status)))
        .or_else(|| differs("length", &capture.length, &row.length))
        .or_else(|| differs("media type", &capture.mime, &row.mime))
}

fn differs<T: PartialEq + std::fmt::Debug>(what: &str, state: &T, record: &T) -> Option<String> {
    (state != record).then(|| format!("the state has {what} {state:?}, the record {record:?}"))
}
