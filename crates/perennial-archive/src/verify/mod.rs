//! An archive -> a list of its defects. It checks records against their digests, files against the manifest, the state
//! against the records, the index against the state, and databases against their checksums. A repair moves half-written
//! ends to side files and rebuilds the smallest part that is wrong.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use perennial_warc::cdxj::{CdxjLine, lines};
use serde::Serialize;

use super::erase::files_being_erased;
use super::files::FileOnDisk;
use super::index::{self, SHOWS, index_line, is_substitute, record_line};
use super::lock::WriteLock;
use super::manifest::{self, Manifest, ManifestAct, ManifestEntry};
use super::recover::{self, Repair};
use super::repair;
use super::scan::{ScanItem, scan};
use super::substitute::Substitutes;
use super::{Archive, Snapshot, files, now};
use crate::store::{
    Capture, CaptureFilter, CaptureRow, FileRow, FileState, IndexRun, PageCheck, QuarantineReason,
    QuarantinedRecord, Store, Texts, check_pages, is_database_error, keep_copy,
};

/// One defect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Defect {
    pub kind: DefectKind,
    /// File in `warc/` or `index/`, or `state.db`.
    pub file: String,
    /// Byte offset in the file, if the defect has one.
    pub offset: Option<u64>,
    /// A description for people.
    pub what: String,
    /// Whether the defect came with an imported file, whose bytes have not changed since the import.
    pub is_imported: bool,
}

impl Defect {
    fn new(kind: DefectKind, file: impl Into<String>, offset: Option<u64>, what: String) -> Defect {
        Defect { kind, file: file.into(), offset, what, is_imported: false }
    }

    /// A difference from an earlier manifest.
    pub fn of_manifest(what: String) -> Defect {
        Defect::new(DefectKind::Manifest, MANIFEST, None, what)
    }
}

/// The check that found a defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefectKind {
    /// Bytes that are not a sound record.
    Damage,
    /// A record whose bytes contradict its digest: it was forged or damaged.
    Digest,
    /// A record without the fields that a capture needs.
    Record,
    /// An observation that the analysis could not read.
    Analysis,
    /// A file that could not be read to its end.
    Unread,
    /// A WARC file missing from the state, or from the disk.
    File,
    /// The state contradicts the records or itself.
    State,
    /// The index contradicts the state.
    Index,
    /// A page of a database contradicts its checksum.
    Page,
    /// A file contradicts the manifest, or the manifest itself.
    Manifest,
    /// A capture is dated in the future.
    Future,
}

/// Work that a writer has begun and not finished. The next writer completes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct UnfinishedWork {
    /// File in `warc/`.
    pub file: String,
    /// A description for people.
    pub what: String,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// WARC files read.
    pub n_files: u64,
    /// Sound records in them.
    pub n_records: u64,
    /// Captures on which state and records agree.
    pub n_captures: u64,
    /// Records whose bytes contradict the digests that they claim: forged or damaged.
    pub n_mismatching: u64,
    /// Quarantined records: they cannot be captures, or could not be analysed. They do not count as defects.
    pub n_quarantined: u64,
    /// The first quarantined records.
    pub quarantined: Vec<Defect>,
    pub defects: Vec<Defect>,
    /// Captures dated in the future, which count only then. They are not defects.
    pub n_future: u64,
    /// The first of these captures.
    pub future: Vec<Defect>,
    pub manifest: ManifestReport,
    /// Unfinished work, which is not a defect.
    pub unfinished: Vec<UnfinishedWork>,
    /// Repairs made.
    pub repairs: Vec<Repair>,
}

/// The chain of digests of complete files.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ManifestReport {
    pub n_entries: u64,
    /// The hash of the last entry. Whoever keeps it can prove later that nothing up to there was changed.
    pub head: String,
    /// Acts that changed or removed bytes: erasures, cut ends, lost files.
    pub removals: Vec<ManifestEntry>,
}

/// Maximum number of quarantined records listed; further ones are only counted.
const MAX_LISTED: usize = 1_000;

/// Reads everything and reports each defect, without changing the archive. `progress` receives the bytes read.
pub fn verify(snapshot: &Snapshot, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let (archive, store) = (snapshot.archive(), snapshot.store());
    let manifest = Manifest::load(&archive.manifest_path())?;
    let being_erased = files_being_erased(archive)?;
    for file in &being_erased {
        let what = "an erasure was begun".to_owned();
        report.unfinished.push(UnfinishedWork { file: file.clone(), what });
    }
    unless_unreadable(&mut report, |report| {
        check_files(snapshot, &manifest, &being_erased, report, progress)
    })?;
    unless_unreadable(&mut report, |report| {
        let defect = |what| Defect::new(DefectKind::State, STATE, None, what);
        report.defects.extend(store.contradictions()?.into_iter().map(defect));
        Ok(())
    })?;
    if being_erased.is_empty() {
        unless_unreadable(&mut report, |report| check_index(snapshot, &mut report.defects))?;
    }
    unless_unreadable(&mut report, |report| list_unread(store, report))?;
    unless_unreadable(&mut report, |report| list_future(archive, store, report))?;
    check_databases(archive, &mut report)?;
    check_manifest(archive, &manifest, &mut report)?;
    Ok(report)
}

/// Like [`verify`] with a snapshot of the present. A state that cannot be read is a defect. The others are then unknown,
/// except those of the files that the manifest lists.
pub fn verify_present(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let error = match archive.snapshot() {
        Ok(snapshot) => return verify(&snapshot, progress),
        Err(error) => error,
    };
    if !archive.state_path().exists() {
        return Err(error);
    }
    Store::refuse_later_schema(&archive.state_path())?;
    let mut report = VerifyReport::default();
    let what = format!("{error:#}: use --repair");
    report.defects.push(Defect::new(DefectKind::State, STATE, None, what));
    let manifest = Manifest::load(&archive.manifest_path())?;
    for (name, listed) in manifest.listed() {
        if files::locate(&archive.warc_dir(), name).exists() {
            report.defects.extend(listed_difference(archive, name, listed)?);
        }
    }
    check_databases(archive, &mut report)?;
    check_manifest(archive, &manifest, &mut report)?;
    Ok(report)
}

const STATE: &str = "state.db";
const MANIFEST: &str = "manifest.jsonl";

/// Runs a check. If SQLite cannot read the state, that is a defect and the other checks continue.
fn unless_unreadable(
    report: &mut VerifyReport,
    check: impl FnOnce(&mut VerifyReport) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    match check(report) {
        Err(error) if is_database_error(&error) => {
            let what = format!("it cannot be read: {error:#}; use --repair");
            report.defects.push(Defect::new(DefectKind::State, STATE, None, what));
            Ok(())
        }
        done => done,
    }
}

/// Compares each page of the databases with its checksum.
fn check_databases(archive: &Archive, report: &mut VerifyReport) -> anyhow::Result<()> {
    let hints = [
        (archive.state_path(), STATE, "use --repair"),
        (archive.texts_path(), SEARCH, "use --repair"),
        (archive.outbox_path(), "outbox.db", "move it away, and rules start again"),
    ];
    for (path, name, hint) in hints {
        let PageCheck::Contradicting(pages) = check_pages(&path)? else { continue };
        let (n_pages, first) = (pages.len(), pages.iter().take(20));
        if n_pages > 0 {
            let first: Vec<String> = first.map(u32::to_string).collect();
            let what = format!("{n_pages} pages contradict their checksums ({}): {hint}", first.join(", "));
            report.defects.push(Defect::new(DefectKind::Page, name, None, what));
        }
    }
    Ok(())
}

const SEARCH: &str = "search.db";

/// Checks the chain, and that every listed file is there. [`check_file`] compares their bytes.
fn check_manifest(archive: &Archive, manifest: &Manifest, report: &mut VerifyReport) -> anyhow::Result<()> {
    for (line, what) in &manifest.problems {
        let what = format!("line {line}: {what}; compare it with a copy (--since-manifest)");
        report.defects.push(Defect::of_manifest(what));
    }
    if manifest.has_torn_end {
        let what = "its last entry is incomplete".to_owned();
        report.unfinished.push(UnfinishedWork { file: MANIFEST.to_owned(), what });
    }
    for name in manifest.listed().into_keys() {
        if !files::locate(&archive.warc_dir(), name).exists() {
            let what = "the manifest lists this file and it is not there: put it back, or use --rebuild";
            report.defects.push(Defect::new(DefectKind::Manifest, name, None, what.to_owned()));
        }
    }
    let removals = manifest.entries.iter().filter(|entry| entry.act.is_removal());
    report.manifest = ManifestReport {
        n_entries: manifest.entries.len() as u64,
        head: manifest.head().to_owned(),
        removals: removals.cloned().collect(),
    };
    Ok(())
}

/// How the bytes of a file differ from those that the manifest lists.
fn listed_difference(
    archive: &Archive,
    name: &str,
    (bytes, sha256): (u64, &str),
) -> anyhow::Result<Option<Defect>> {
    let (found_bytes, found) = manifest::file_digest(&archive.warc_dir(), name)?;
    let what = match found_bytes == bytes {
        true if found == sha256 => return Ok(None),
        true => "its bytes are not those that the manifest lists: take it from another copy".to_owned(),
        false => format!("it has {found_bytes} bytes, the manifest lists {bytes}: take it from another copy"),
    };
    Ok(Some(Defect::new(DefectKind::Manifest, name, None, what)))
}

/// Adds the captures dated in the future.
fn list_future(archive: &Archive, store: &Store, report: &mut VerifyReport) -> anyhow::Result<()> {
    let horizon = archive.horizon();
    report.n_future = store.count_after(horizon)?;
    for (file, offset, url, time) in store.captures_after(horizon, MAX_LISTED)? {
        let what = format!("a capture of {url} is dated {}, in the future", time.to_rfc3339());
        report.future.push(Defect::new(DefectKind::Future, file, Some(offset), what));
    }
    Ok(())
}

/// Adds the observations that could not be analysed. Only the analysis finds them; a scan of the WARC files does not.
fn list_unread(store: &Store, report: &mut VerifyReport) -> anyhow::Result<()> {
    report.n_quarantined += store.count_quarantined()?.n_unread;
    let room = MAX_LISTED.saturating_sub(report.quarantined.len());
    for (file, QuarantinedRecord { offset, what, .. }) in
        store.quarantined(QuarantineReason::Analysis, room)?
    {
        report.quarantined.push(Defect::new(DefectKind::Analysis, file, Some(offset), what));
    }
    Ok(())
}

/// Moves half-written ends to side files, adds missing captures to the state, and rebuilds what contradicts the records:
/// the index alone, if the state agrees with them. Sound bytes are never changed. A state that is replaced is kept beside
/// the new one.
pub fn repair(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let lock = WriteLock::take(archive.root())?;
    Store::refuse_later_schema(&archive.state_path())?;
    let mut repairs = Vec::new();
    cut_torn_ends(archive, &mut repairs)?;
    let recovered = archive.store().and_then(|_| recover::recover(archive)).and_then(|(mut store, found)| {
        repairs.extend(found);
        index::write_tail_run(&mut store, &archive.index_dir())
    });
    // The state is unreadable, or a file is missing. The remaining files are all there is.
    if let Err(error) = recovered {
        replace_state(archive, format!("{error:#}"), &mut repairs, progress)?;
    }
    let mut report = verify(&archive.snapshot()?, progress)?;
    if report.has(|defect| defect.kind == DefectKind::Page && defect.file == SEARCH) {
        Texts::remove(&archive.texts_path())?;
        repairs.push(Repair::RemovedTexts);
    }
    let is_of_state = |defect: &Defect| {
        matches!(defect.kind, DefectKind::State | DefectKind::File)
            || defect.kind == DefectKind::Page && defect.file == STATE
    };
    if report.has(is_of_state) {
        let why = "it was damaged or contradicted the WARC files".to_owned();
        replace_state(archive, why, &mut repairs, progress)?;
    } else if report.has(|defect| defect.kind == DefectKind::Index) {
        index::rewrite(&mut Store::open_write(&archive.state_path())?, &archive.index_dir())?;
        repairs.push(Repair::MadeIndexAnew);
    }
    if report.has(|_| true) {
        report = verify(&archive.snapshot()?, progress)?;
    }
    drop(lock);
    report.repairs = repairs;
    Ok(report)
}

/// Rebuilds the state, and keeps the former one beside it.
fn replace_state(
    archive: &Archive,
    why: String,
    repairs: &mut Vec<Repair>,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<()> {
    let kept = keep_copy(&archive.state_path(), now());
    let kept = kept.context("cannot keep a copy of state.db: free space, or move state.db away")?;
    repairs.push(Repair::MadeStateAnew { why });
    repairs.extend(kept.map(|file| Repair::KeptState { file }));
    rebuild_locked(archive, progress).map(drop)
}

/// Rebuilds state and index from the WARC files. What they do not contain, such as spent budgets, is taken over from the
/// present state as far as it is readable.
pub fn rebuild(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<Vec<Repair>> {
    let _lock = WriteLock::take(archive.root())?;
    Store::refuse_later_schema(&archive.state_path())?;
    rebuild_locked(archive, progress)
}

fn rebuild_locked(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<Vec<Repair>> {
    let mut repairs = Vec::new();
    recover::rebuild_state(archive, &mut repairs, progress)?;
    repairs.retain(|repair| matches!(repair, Repair::CutTorn { .. }));
    let mut manifest = Manifest::load(&archive.manifest_path())?;
    let is_missing = |name: &&str| !files::locate(&archive.warc_dir(), name).exists();
    let lost = |name: &str| ManifestAct::Lost { file: name.to_owned() };
    let lost: Vec<ManifestAct> = manifest.listed().into_keys().filter(is_missing).map(lost).collect();
    manifest.append(&archive.manifest_path(), lost, now())?;
    Ok(repairs)
}

/// Includes the ends of closed and imported files, which recovery alone does not change.
fn cut_torn_ends(archive: &Archive, repairs: &mut Vec<Repair>) -> anyhow::Result<()> {
    let dir = archive.warc_dir();
    for file in files::list(&dir)? {
        let mut torn_at = None;
        scan(files::open(&dir, &file.name)?, 0, &|_| {}, &mut |found| {
            if let ScanItem::Damage(damage) = found {
                torn_at = (damage.offset + damage.length >= file.bytes).then_some(damage.offset);
            }
            Ok(())
        })?;
        if let Some(offset) = torn_at {
            let cut = repair::cut_torn_end(&files::locate(&dir, &file.name), &file.name, offset)?;
            record_cut(archive, &file.name, &cut)?;
            repairs.push(cut);
        }
    }
    Ok(())
}

/// The manifest records that a listed file lost its end.
fn record_cut(archive: &Archive, name: &str, cut: &Repair) -> anyhow::Result<()> {
    let mut manifest = Manifest::load(&archive.manifest_path())?;
    let Repair::CutTorn { kept_in, .. } = cut else { return Ok(()) };
    if !manifest.listed().contains_key(name) {
        return Ok(());
    }
    let (bytes, sha256) = manifest::file_digest(&archive.warc_dir(), name)?;
    let act = ManifestAct::Cut { file: name.to_owned(), bytes, sha256, kept_in: kept_in.clone() };
    manifest.append(&archive.manifest_path(), [act], now())
}

fn check_files(
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
    fn has(&self, is_wanted: impl Fn(&Defect) -> bool) -> bool {
        self.defects.iter().any(is_wanted)
    }

    /// Number of defects that came with imported files.
    pub fn n_imported(&self) -> usize {
        self.defects.iter().filter(|defect| defect.is_imported).count()
    }

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

    fn add(&mut self, defect: Defect) {
        let is_again = |last: &Defect| (last.kind, last.offset) == (defect.kind, defect.offset);
        if defect.kind == DefectKind::Digest && !self.defects.last().is_some_and(is_again) {
            self.n_mismatching += 1;
        }
        if defect.kind != DefectKind::Record {
            return self.defects.push(defect);
        }
        self.n_quarantined += 1;
        if self.quarantined.len() < MAX_LISTED {
            self.quarantined.push(defect);
        }
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
    super::import::copy_digested(&mut whole, &mut io::sink())
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

/// Reads state and runs in parallel in key order. Memory contains the lines of one key.
fn check_index(snapshot: &Snapshot, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    let runs = snapshot.store().runs()?;
    let opened = open_runs(snapshot, &runs, defects)?;
    let is_in_file = |capture: i64| {
        opened.iter().any(|(run, _)| (run.first_capture..=run.last_capture).contains(&capture))
    };
    let sources = opened.iter().map(|(_, file)| file.try_clone().map(lines)).collect::<Result<_, _>>()?;
    let mut lines = perennial_warc::cdxj::merge(sources).map_while(Result::ok).peekable();
    let mut key = String::new();
    let mut wanted: Vec<String> = Vec::new();
    let store = snapshot.store();
    let mut substitutes = Substitutes::new(store);
    store.each_capture(&CaptureFilter::default(), |capture| {
        if capture.surt != key {
            compare_key(store, &key, &mut wanted, &mut lines, defects)?;
            key = capture.surt.clone();
        }
        // A capture in no file is included too, because later lines may name it as substitute.
        let line = index_line(&capture, &mut substitutes)?;
        if is_in_file(capture.id) {
            wanted.push(as_compared(line));
        }
        Ok(())
    })?;
    compare_key(store, &key, &mut wanted, &mut lines, defects)?;
    for line in lines {
        add_index(defects, "", format!("a line of no capture: {line}"));
    }
    Ok(())
}

/// A line in its comparable form. The substitute of a capture depends on the captures present when the line was
/// written. Only URL and time of such a line are compared.
fn as_compared(line: CdxjLine) -> String {
    match is_substitute(&line) {
        true => format!("{} {} {} (another record stands in for it)", line.key, line.timestamp, line.url),
        false => line.to_string(),
    }
}

/// Opens the runs and reports runs of the wrong length or order as defects. A run that a writer has merged since the
/// snapshot is not a defect. It is skipped together with its captures.
fn open_runs(
    snapshot: &Snapshot,
    runs: &[IndexRun],
    defects: &mut Vec<Defect>,
) -> anyhow::Result<Vec<(IndexRun, File)>> {
    let dir = snapshot.archive().index_dir();
    let mut opened = Vec::new();
    for run in runs {
        let mut file = match File::open(dir.join(&run.name)) {
            Ok(file) => file,
            Err(error) => {
                if snapshot.archive().store()?.runs()?.contains(run) {
                    add_index(defects, &run.name, format!("cannot open it: {error}; use --repair"));
                }
                continue;
            }
        };
        if file.metadata()?.len() != run.bytes {
            add_index(defects, &run.name, format!("it should have {} bytes: use --repair", run.bytes));
        }
        check_sorted(&run.name, &file, defects)?;
        file.rewind()?;
        opened.push((run.clone(), file));
    }
    Ok(opened)
}

fn add_index(defects: &mut Vec<Defect>, file: &str, what: String) {
    let file = if file.is_empty() { "index" } else { file };
    defects.push(Defect::new(DefectKind::Index, file, None, what));
}

fn check_sorted(name: &str, file: &File, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    let mut before = String::new();
    for line in lines(file) {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                add_index(defects, name, format!("{error}; use --repair"));
                break;
            }
        };
        if line.as_bytes() < before.as_bytes() {
            add_index(defects, name, format!("not sorted at: {line}"));
            break;
        }
        before = line;
    }
    Ok(())
}

/// Compares the expected lines of a key with those in the runs. Lines in the runs that sort before the key are
/// unexpected.
fn compare_key(
    store: &Store,
    key: &str,
    wanted: &mut Vec<String>,
    lines: &mut std::iter::Peekable<impl Iterator<Item = String>>,
    defects: &mut Vec<Defect>,
) -> anyhow::Result<()> {
    wanted.sort_unstable();
    wanted.dedup();
    let end = format!("{key}!");
    let mut found = Vec::new();
    while let Some(line) = lines.next_if(|line| line.as_bytes() < end.as_bytes()) {
        match CdxjLine::parse(&line) {
            // A damaged line may still be one, with other values.
            Ok(parsed) if parsed.to_string() == line => {
                check_substitute(store, &parsed, defects)?;
                found.push(as_compared(parsed));
            }
            _ => found.push(line),
        }
    }
    found.sort_unstable();
    found.dedup();
    let mut wanted = wanted.drain(..).peekable();
    for line in found {
        while let Some(missing) = wanted.next_if(|want| *want < line) {
            add_index(defects, "", format!("a capture is missing: {missing}"));
        }
        if wanted.next_if(|want| *want == line).is_none() {
            add_index(defects, "", format!("a line of no capture: {line}"));
        }
    }
    for missing in wanted {
        add_index(defects, "", format!("a capture is missing: {missing}"));
    }
    Ok(())
}

/// The substitute of a capture must be the record of another capture, and the line must describe that record.
fn check_substitute(store: &Store, line: &CdxjLine, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    if !is_substitute(line) {
        return Ok(());
    }
    let (file, offset) = (line.filename.as_deref().unwrap_or_default(), line.offset.unwrap_or(u64::MAX));
    let Some(shown) = store.captures_in(file, offset, 1)?.pop().filter(|shown| shown.offset == offset) else {
        add_index(defects, "", format!("it names a record that is not a capture: {line}"));
        return Ok(());
    };
    let mut described = CdxjLine { timestamp: line.timestamp.clone(), ..record_line(&shown) };
    if line.extra.iter().any(|(name, _)| name == SHOWS) {
        described.extra = vec![(SHOWS.to_owned(), shown.time.to_digits14())];
    }
    if described != *line {
        add_index(defects, "", format!("it does not describe the record that it names: {line}"));
    }
    Ok(())
}
