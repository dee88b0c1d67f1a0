//! An archive -> a list of its defects. It checks records against their digests, the state against the records, and the
//! index against the state. A repair moves half-written ends to side files and rebuilds state and index.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::sync::mpsc::sync_channel;

use perennial_warc::cdxj::{CdxjLine, lines};
use serde::Serialize;

use super::files::FileOnDisk;
use super::index::{self, index_line, is_substitute};
use super::lock::WriteLock;
use super::recover::{self, Repair};
use super::repair;
use super::scan::{ScanItem, scan};
use super::substitute::Substitutes;
use super::{Archive, Snapshot, files};
use crate::store::{
    Capture, CaptureFilter, CaptureRow, FileRow, FileState, IndexRun, QuarantineReason, QuarantinedRecord,
    Store,
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
    /// Unfinished work, which is not a defect.
    pub unfinished: Vec<UnfinishedWork>,
    /// Repairs made.
    pub repairs: Vec<Repair>,
}

/// Maximum number of quarantined records listed; further ones are only counted.
const MAX_LISTED: usize = 1_000;

/// Reads everything and reports each defect, without changing the archive. `progress` receives the bytes read.
pub fn verify(snapshot: &Snapshot, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let mut report = VerifyReport::default();
    check_files(snapshot, &mut report, progress)?;
    for what in snapshot.store().contradictions()? {
        report.defects.push(Defect::new(DefectKind::State, "state.db", None, what));
    }
    check_index(snapshot, &mut report.defects)?;
    list_unread(snapshot.store(), &mut report)?;
    Ok(report)
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

/// Moves half-written ends to side files, adds missing captures to the state, and rebuilds state and index if they
/// contradict the records. Sound bytes are never changed.
pub fn repair(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let lock = WriteLock::take(archive.root())?;
    let mut repairs = Vec::new();
    cut_torn_ends(archive, &mut repairs)?;
    let recovered = archive.store().and_then(|_| recover::recover(archive));
    match recovered {
        Ok((mut store, found)) => {
            index::write_tail_run(&mut store, &archive.index_dir())?;
            repairs.extend(found);
        }
        // The state is unreadable, or a file is missing. The remaining files are all there is.
        Err(error) => {
            repairs.push(Repair::MadeStateAnew { why: format!("{error:#}") });
            rebuild_locked(archive, progress)?;
        }
    }
    let mut report = verify(&archive.snapshot()?, progress)?;
    let is_derived =
        |defect: &Defect| matches!(defect.kind, DefectKind::State | DefectKind::Index | DefectKind::File);
    if report.defects.iter().any(is_derived) {
        repairs.push(Repair::MadeStateAnew { why: "it contradicted the WARC files".to_string() });
        rebuild_locked(archive, progress)?;
        report = verify(&archive.snapshot()?, progress)?;
    }
    drop(lock);
    report.repairs = repairs;
    Ok(report)
}

/// Rebuilds state and index from the WARC files alone.
pub fn rebuild(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<Vec<Repair>> {
    let _lock = WriteLock::take(archive.root())?;
    rebuild_locked(archive, progress)
}

fn rebuild_locked(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<Vec<Repair>> {
    let mut repairs = Vec::new();
    recover::rebuild_state(archive, &mut repairs, progress)?;
    repairs.retain(|repair| matches!(repair, Repair::CutTorn { .. }));
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
            repairs.push(repair::cut_torn_end(&files::locate(&dir, &file.name), &file.name, offset)?);
        }
    }
    Ok(())
}

fn check_files(
    snapshot: &Snapshot,
    report: &mut VerifyReport,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<()> {
    let archive = snapshot.archive();
    let known: HashMap<String, FileRow> =
        snapshot.store().files()?.into_iter().map(|file| (file.name.clone(), file)).collect();
    let on_disk = files::list(&archive.warc_dir())?;
    let missing = known.keys().filter(|name| !on_disk.iter().any(|file| file.name == **name)).cloned();
    let missing = missing.collect();
    let files = with_rows(archive, on_disk, &known)?;
    // One reader per file, on all cores. Each reader has a connection and reads the state's captures in step.
    let next = std::sync::atomic::AtomicUsize::new(0);
    let (sender, receiver) = sync_channel(4);
    let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(files.len());
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            let (sender, next, files) = (sender.clone(), &next, &files);
            scope.spawn(move || {
                while let Some((file, row)) =
                    files.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let checked = check_file(archive, file, row, progress).or_else(unread(file));
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

fn check_file(
    archive: &Archive,
    file: &FileOnDisk,
    row: &FileRow,
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
    report.unfinished.push(UnfinishedWork { file: file.name.clone(), what });
    Ok(report)
}

impl VerifyReport {
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
            Ok(parsed) => {
                check_substitute(store, &parsed, defects)?;
                found.push(as_compared(parsed));
            }
            Err(_) => found.push(line),
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

/// The substitute of a capture must be the record of another capture.
fn check_substitute(store: &Store, line: &CdxjLine, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    if !is_substitute(line) {
        return Ok(());
    }
    let (file, offset) = (line.filename.as_deref().unwrap_or_default(), line.offset.unwrap_or(u64::MAX));
    if !store.has_capture_at(file, offset)? {
        add_index(defects, "", format!("it names a record that is not a capture: {line}"));
    }
    Ok(())
}
