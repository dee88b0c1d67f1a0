//! An archive -> every defect in it, named: records against their digests, state against records, index
//! against state. With repair: torn ends are cut off and kept, state and index are made anew.

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

/// One thing that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Defect {
    /// Which check found it.
    pub kind: DefectKind,
    /// File in `warc/` or `index/`, or `state.db`.
    pub file: String,
    /// Where in the file, if it has a place.
    pub offset: Option<u64>,
    /// In words.
    pub what: String,
    /// Whether it came with an imported file, whose bytes are still those that were imported.
    pub is_foreign: bool,
}

impl Defect {
    fn new(kind: DefectKind, file: impl Into<String>, offset: Option<u64>, what: String) -> Defect {
        Defect { kind, file: file.into(), offset, what, is_foreign: false }
    }
}

/// Which check found a defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefectKind {
    /// Bytes that are no sound record.
    Damage,
    /// A record whose bytes contradict its digest: it was forged, or damaged.
    Digest,
    /// A record that lacks what makes it a capture.
    Record,
    /// A look that could not be read when it was analysed.
    Analysis,
    /// A file that could not be read to its end.
    Unread,
    /// A WARC file that the state does not know, or the other way round.
    File,
    /// The state contradicts the records, or itself.
    State,
    /// The index contradicts the state.
    Index,
}

/// Something that a writer has begun, or was stopped at: the next start completes it by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unfinished {
    /// File in `warc/`.
    pub file: String,
    /// In words.
    pub what: String,
}

/// What a verification found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// WARC files read.
    pub n_files: u64,
    /// Sound records in them.
    pub n_records: u64,
    /// Captures that state and records agree on.
    pub n_captures: u64,
    /// Records whose bytes contradict the digests that they claim: forged, or damaged.
    pub n_mismatching: u64,
    /// Records that are set aside, because they cannot be captures or could not be analysed. They are no defects.
    pub n_set_aside: u64,
    /// The first of those.
    pub set_aside: Vec<Defect>,
    /// All that is wrong.
    pub defects: Vec<Defect>,
    /// What is not complete, and no defect.
    pub unfinished: Vec<Unfinished>,
    /// What was put right.
    pub repairs: Vec<Repair>,
}

/// Things set aside that are listed; further ones are counted.
const MAX_LISTED: usize = 1_000;

/// Reads everything and names every defect; changes nothing. `progress` hears of bytes read.
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

/// Adds the looks that could not be analysed. The WARC files do not tell: the analysis found it.
fn list_unread(store: &Store, report: &mut VerifyReport) -> anyhow::Result<()> {
    report.n_set_aside += store.count_set_aside()?.n_unread;
    let room = MAX_LISTED.saturating_sub(report.set_aside.len());
    for (file, QuarantinedRecord { offset, what, .. }) in store.set_aside(QuarantineReason::Analysis, room)? {
        report.set_aside.push(Defect::new(DefectKind::Analysis, file, Some(offset), what));
    }
    Ok(())
}

/// Cuts torn ends off (kept in side files), takes in what the state lacks, and makes state and index anew if they
/// contradict the records. Sound bytes are never touched.
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
        // A state that cannot be read, or a file that is gone: what is left is all there is.
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

/// Makes state and index anew from the WARC files alone.
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

/// Also of files that were closed or imported: recovery alone leaves those as they are.
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
    // One reader a file on all cores; each has its own connection and follows the state's captures in step.
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
            report.n_set_aside += checked.n_set_aside;
            report.set_aside.extend(checked.set_aside);
            report.set_aside.truncate(MAX_LISTED);
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

/// A file that cannot be read is a defect of its own, and the others are checked all the same.
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

/// The files to be read, each with what the state knows of it. One that it does not know came since the state was read, or
/// is taken in by the next start. A file that is being written and has no commit yet is its writer's business.
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

/// Files that the state names and the disk lacks. A writer may have removed them since the state was read, so it is asked
/// again.
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

/// Records of a file that the state may know, read ahead of the scan.
const AHEAD: usize = 1_000;

fn check_file(
    archive: &Archive,
    file: &FileOnDisk,
    row: &FileRow,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let snapshot = archive.snapshot()?;
    // A writer may be at work: what lies behind the length that was committed is its business.
    let is_growing = file.is_open || row.state == FileState::Open;
    let end = if is_growing { row.committed_bytes } else { u64::MAX };
    let mut expected = ExpectedCaptures::new(snapshot.store(), &file.name, end);
    let mut n_behind = 0;
    let opened = match files::open(&archive.warc_dir(), &file.name) {
        // An import that brought nothing new has removed it since.
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
            // An import commits a file's length last: until then it is at work, or the next start goes on with it.
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
    report.unfinished.push(Unfinished { file: file.name.clone(), what });
    Ok(report)
}

impl VerifyReport {
    /// How many defects came with imported files.
    pub fn n_foreign(&self) -> usize {
        self.defects.iter().filter(|defect| defect.is_foreign).count()
    }

    /// Damage and false digests of a file came with it if its bytes are those that were imported. Only files with such
    /// defects are read for that.
    fn mark_imported(&mut self, archive: &Archive, file: &FileOnDisk, row: &FileRow) -> anyhow::Result<()> {
        let may_be_foreign = |defect: &Defect| matches!(defect.kind, DefectKind::Damage | DefectKind::Digest);
        let Some(source_digest) = &row.source_digest else { return Ok(()) };
        if self.defects.iter().any(may_be_foreign) && imported_digest(archive, file)? == *source_digest {
            for defect in self.defects.iter_mut().filter(|defect| may_be_foreign(defect)) {
                defect.is_foreign = true;
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
        self.n_set_aside += 1;
        if self.set_aside.len() < MAX_LISTED {
            self.set_aside.push(defect);
        }
    }
}

/// The digest of a file as it was imported: with the end that a repair has cut off and kept.
fn imported_digest(archive: &Archive, file: &FileOnDisk) -> anyhow::Result<String> {
    let dir = archive.warc_dir();
    let side = dir.join(format!("{}-{}.torn", file.name, file.bytes));
    let mut whole: Box<dyn Read> = Box::new(files::open(&dir, &file.name)?);
    if side.exists() {
        whole = Box::new(whole.chain(File::open(side)?));
    }
    super::import::copy_digested(&mut whole, &mut io::sink())
}

/// What became of something that a scan found.
enum RecordCheck {
    /// A capture that the state has as the record says.
    Agrees,
    /// A capture that the state has from another record.
    IsElsewhere,
    /// A capture that the state lacks.
    IsUnknown { offset: u64, what: String },
    /// A defect.
    Fault { kind: DefectKind, offset: u64, what: String },
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

/// The state's captures of one file in order, some at a time.
struct ExpectedCaptures<'a> {
    store: &'a Store,
    name: &'a str,
    ahead: VecDeque<Capture>,
    from: u64,
    /// Captures from here on came later.
    end: u64,
    is_done: bool,
}

impl<'a> ExpectedCaptures<'a> {
    fn new(store: &'a Store, name: &'a str, end: u64) -> ExpectedCaptures<'a> {
        ExpectedCaptures { store, name, ahead: VecDeque::new(), from: 0, end, is_done: false }
    }

    /// The capture at `offset`, if the state has one; those before it have no record: defects.
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
    // A state of an earlier schema has no contents until a writer brings it over.
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

/// Walks state and runs side by side in the order of keys; holds the lines of one key.
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
        // Also of one that no file has: the lines behind it may name it.
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

/// A line as it is compared. Which record stands in for a capture depends on what the archive had when the line was written:
/// of such a line only address and time are compared.
fn as_compared(line: CdxjLine) -> String {
    match is_substitute(&line) {
        true => format!("{} {} {} (another record stands in for it)", line.key, line.timestamp, line.url),
        false => line.to_string(),
    }
}

/// The files of the runs, which are sorted and of the right length; those that are not are defects. One that a writer
/// merged with others since the snapshot was taken is none, and neither it nor its captures are compared.
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

/// Compares the lines that the state wants for a key with those in the runs, and everything in the runs that
/// sorts before it with nothing.
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

/// The record that stands in for a capture must be that of another one.
fn check_substitute(store: &Store, line: &CdxjLine, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    if !is_substitute(line) {
        return Ok(());
    }
    let (file, offset) = (line.filename.as_deref().unwrap_or_default(), line.offset.unwrap_or(u64::MAX));
    if !store.has_capture_at(file, offset)? {
        add_index(defects, "", format!("it names a record that is no capture: {line}"));
    }
    Ok(())
}
