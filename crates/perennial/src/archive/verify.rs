//! An archive -> every defect in it, named: records against their digests, state against records, index
//! against state. With repair: torn ends are cut off and kept, state and index are made anew.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::sync::mpsc::sync_channel;

use perennial_core::cdxj::lines_of;
use serde::Serialize;

use super::index::{self, line_of};
use super::lock::WriteLock;
use super::recover::{self, Repair};
use super::scan::{Found, scan};
use super::{Archive, files};
use crate::store::{Capture, CaptureRow, Filter, Store};

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
}

/// Which check found a defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefectKind {
    /// Bytes that are no sound record.
    Damage,
    /// A record whose bytes contradict its digest.
    Digest,
    /// A record that lacks what makes it a capture.
    Record,
    /// A WARC file that the state does not know, or the other way round.
    File,
    /// The state contradicts the records, or itself.
    State,
    /// The index contradicts the state.
    Index,
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
    /// All that is wrong.
    pub defects: Vec<Defect>,
    /// What was put right.
    pub repairs: Vec<Repair>,
}

/// Reads everything and names every defect; changes nothing. `progress` hears of bytes read.
pub fn verify(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let store = archive.store()?;
    let mut report = VerifyReport::default();
    check_files(archive, &store, &mut report, progress)?;
    check_state(&store, &mut report.defects)?;
    check_index(archive, &store, &mut report.defects)?;
    Ok(report)
}

/// Cuts torn ends off (kept in side files), takes in what the state lacks, and makes state and index anew if they
/// contradict the records. Sound bytes are never touched.
pub fn repair(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let lock = WriteLock::take(archive.root())?;
    let mut repairs = Vec::new();
    cut_torn_ends(archive, &mut repairs)?;
    if archive.store().is_err() {
        recover::make_state_anew(archive)?;
    }
    match recover::recover(archive) {
        Ok((mut store, found)) => {
            index::flush_tail(&mut store, &archive.index_dir())?;
            repairs.extend(found);
        }
        // A file that is gone: what is left is all there is.
        Err(_) => drop(rebuild_locked(archive, progress)?),
    }
    let mut report = verify(archive, progress)?;
    let is_derived =
        |defect: &Defect| matches!(defect.kind, DefectKind::State | DefectKind::Index | DefectKind::File);
    if report.defects.iter().any(is_derived) {
        repairs.push(Repair::MadeStateAnew { why: "it contradicted the WARC files".to_string() });
        rebuild_locked(archive, progress)?;
        report = verify(archive, progress)?;
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
    let mut store = recover::make_state_anew(archive)?;
    recover::catch_up(archive, &mut store, &mut repairs, progress)?;
    index::flush_tail(&mut store, &archive.index_dir())?;
    repairs.retain(|repair| matches!(repair, Repair::CutTorn { .. }));
    Ok(repairs)
}

/// Also of files that were closed or imported: recovery alone leaves those as they are.
fn cut_torn_ends(archive: &Archive, repairs: &mut Vec<Repair>) -> anyhow::Result<()> {
    let dir = archive.warc_dir();
    for file in files::list(&dir)? {
        let mut torn_at = None;
        scan(files::open(&dir, &file.name)?, 0, &|_| {}, &mut |found| {
            if let Found::Damage(damage) = found {
                torn_at = (damage.offset + damage.length >= file.bytes).then_some(damage.offset);
            }
            Ok(())
        })?;
        if let Some(offset) = torn_at {
            repairs.push(recover::cut_torn(&files::locate(&dir, &file.name), &file.name, offset)?);
        }
    }
    Ok(())
}

fn check_files(
    archive: &Archive,
    store: &Store,
    report: &mut VerifyReport,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<()> {
    let dir = archive.warc_dir();
    let known = store.files()?;
    let on_disk = files::list(&dir)?;
    for file in known.iter().filter(|file| !on_disk.iter().any(|on_disk| on_disk.name == file.name)) {
        let what = "the state names this file and it is not there: put it back, or use --rebuild".to_string();
        report.defects.push(Defect { kind: DefectKind::File, file: file.name.clone(), offset: None, what });
    }
    // One reader a file on all cores; each has its own connection and follows the state's captures in step.
    let next = std::sync::atomic::AtomicUsize::new(0);
    let (sender, receiver) = sync_channel(4);
    let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(on_disk.len());
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            let (sender, next, on_disk, known) = (sender.clone(), &next, &on_disk, &known);
            scope.spawn(move || {
                while let Some(file) = on_disk.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let committed =
                        known.iter().find(|row| row.name == file.name).map(|row| row.committed_bytes);
                    if sender.send(check_file(archive, file, committed, progress)).is_err() {
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
            report.defects.extend(checked.defects);
        }
        report.defects.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
        Ok(())
    })
}

/// Records of a file that the state may know, read ahead of the scan.
const AHEAD: usize = 1_000;

fn check_file(
    archive: &Archive,
    file: &files::FileOnDisk,
    committed: Option<u64>,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let name = &file.name;
    let Some(committed) = committed else {
        let what = "the state does not know this file: take it in with --repair".to_string();
        report.defects.push(Defect { kind: DefectKind::File, file: name.clone(), offset: None, what });
        return Ok(report);
    };
    let store = archive.store()?;
    let mut expected = Expected { store: &store, name, ahead: VecDeque::new(), from: 0, is_done: false };
    // A writer may be at work: what lies behind the committed length is its business.
    let is_ours_now = |offset: u64| file.is_open && offset >= committed;
    let scanned = scan(files::open(&archive.warc_dir(), name)?, 0, progress, &mut |found| {
        let (kind, offset, what) = match found {
            Found::Capture(row) if is_ours_now(row.offset) => return Ok(()),
            Found::Capture(row) => match expected.take_up_to(row.offset, &mut report.defects)? {
                Some(capture) => match difference(&capture, &row) {
                    None => {
                        report.n_captures += 1;
                        return Ok(());
                    }
                    Some(what) => (DefectKind::State, row.offset, what),
                },
                None if store.has_capture(&row.url, row.time, &row.digest)? => return Ok(()),
                None => {
                    (DefectKind::State, row.offset, format!("the state lacks this capture of {}", row.url))
                }
            },
            Found::Damage(damage) if is_ours_now(damage.offset) => return Ok(()),
            Found::Damage(damage) => {
                (DefectKind::Damage, damage.offset, format!("{} bytes: {}", damage.length, damage.cause))
            }
            Found::BadDigest { offset, which, claimed, computed } => (
                DefectKind::Digest,
                offset,
                format!(
                    "the {which} digest is {claimed}, the bytes have {computed}: take the record from another copy"
                ),
            ),
            Found::Unusable { offset, why } => (DefectKind::Record, offset, format!("no capture: {why}")),
        };
        report.defects.push(Defect { kind, file: name.clone(), offset: Some(offset), what });
        Ok(())
    })?;
    expected.take_up_to(u64::MAX, &mut report.defects)?;
    report.n_records = scanned.n_records;
    Ok(report)
}

/// The state's captures of one file in order, some at a time.
struct Expected<'a> {
    store: &'a Store,
    name: &'a str,
    ahead: VecDeque<Capture>,
    from: u64,
    is_done: bool,
}

impl Expected<'_> {
    /// The capture at `offset`, if the state has one; those before it have no record: defects.
    fn take_up_to(&mut self, offset: u64, defects: &mut Vec<Defect>) -> anyhow::Result<Option<Capture>> {
        loop {
            if self.ahead.is_empty() && !self.is_done {
                self.ahead = self.store.captures_in(self.name, self.from, AHEAD)?.into();
                self.is_done = self.ahead.len() < AHEAD;
                self.from = self.ahead.back().map_or(self.from, |last| last.offset + 1);
            }
            match self.ahead.front() {
                Some(capture) if capture.offset < offset => {
                    defects.push(Defect {
                        kind: DefectKind::State,
                        file: self.name.to_string(),
                        offset: Some(capture.offset),
                        what: format!(
                            "the state has a capture of {} here, the file has no such record",
                            capture.url
                        ),
                    });
                    self.ahead.pop_front();
                }
                Some(capture) if capture.offset == offset => return Ok(self.ahead.pop_front()),
                _ => return Ok(None),
            }
        }
    }
}

fn difference(capture: &Capture, row: &CaptureRow) -> Option<String> {
    let told = |what: &str, state: String, record: String| {
        Some(format!("the state has {what} {state}, the record {record}"))
    };
    if capture.url != row.url {
        return told("address", capture.url.clone(), row.url.clone());
    }
    if capture.surt != row.surt {
        return told("key", capture.surt.clone(), row.surt.clone());
    }
    if capture.time != row.time {
        return told("time", capture.time.to_string(), row.time.to_string());
    }
    if capture.digest != row.digest {
        return told("digest", capture.digest.clone(), row.digest.clone());
    }
    if (capture.kind, capture.status) != (row.kind, row.status) {
        return told(
            "kind and status",
            format!("{:?} {:?}", capture.kind, capture.status),
            format!("{:?} {:?}", row.kind, row.status),
        );
    }
    if capture.length != row.length {
        return told("length", capture.length.to_string(), row.length.to_string());
    }
    if capture.mime != row.mime {
        return told("media type", format!("{:?}", capture.mime), format!("{:?}", row.mime));
    }
    None
}

/// What must hold inside the state: each question names the rows for which it does not.
const STATE_CHECKS: &[(&str, &str)] = &[
    (
        "counts other captures than it has",
        "SELECT p.url FROM pages p LEFT JOIN (SELECT page, count(*) AS n FROM captures GROUP BY page) c
         ON c.page = p.id WHERE p.n_captures <> coalesce(c.n, 0)",
    ),
    (
        "has another first or last time than its captures",
        "SELECT p.url FROM pages p JOIN (SELECT page, min(time) AS a, max(time) AS b FROM captures GROUP BY page) c
         ON c.page = p.id WHERE p.first_seen <> c.a OR p.last_seen <> c.b",
    ),
    (
        "has versions that do not add up to its captures",
        "SELECT p.url FROM pages p JOIN (SELECT page, digest, count(*) AS n FROM captures WHERE kind < 3
         GROUP BY page, digest) c ON c.page = p.id LEFT JOIN versions v ON v.page = c.page AND v.digest = c.digest
         WHERE coalesce(v.n_captures, 0) <> c.n",
    ),
];

fn check_state(store: &Store, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    let mut add = |what: String| {
        defects.push(Defect { kind: DefectKind::State, file: "state.db".to_string(), offset: None, what });
    };
    let mut statement = store.connection().prepare("PRAGMA quick_check(20)")?;
    for line in statement.query_map([], |row| row.get::<_, String>(0))? {
        let line = line?;
        if line != "ok" {
            add(line);
        }
    }
    for (what, sql) in STATE_CHECKS {
        let mut statement = store.connection().prepare(sql)?;
        for url in statement.query_map([], |row| row.get::<_, String>(0))? {
            add(format!("page {} {what}", url?));
        }
    }
    Ok(())
}

/// Walks state and runs side by side in the order of keys; holds the lines of one key.
fn check_index(archive: &Archive, store: &Store, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    // One read transaction: a writer may flush its tail meanwhile.
    let transaction = store.connection().unchecked_transaction()?;
    let runs = index::runs(store)?;
    let tail_from = runs.last().map_or(1, |run| run.last_capture + 1);
    let mut sources = Vec::new();
    for run in &runs {
        match File::open(archive.index_dir().join(&run.name)) {
            Ok(file) => {
                if fs::metadata(archive.index_dir().join(&run.name))?.len() != run.bytes {
                    add_index(
                        defects,
                        &run.name,
                        format!("it should have {} bytes: use --repair", run.bytes),
                    );
                }
                sources.push((run.name.clone(), file));
            }
            Err(error) => add_index(defects, &run.name, format!("cannot open it: {error}; use --repair")),
        }
    }
    let names: Vec<String> = sources.iter().map(|(name, _)| name.clone()).collect();
    check_sorted(archive, &names, defects)?;
    let mut lines =
        perennial_core::cdxj::merge(sources.into_iter().map(|(_, file)| lines_of(file)).collect())
            .map_while(Result::ok)
            .peekable();
    let mut key = String::new();
    let mut wanted: Vec<String> = Vec::new();
    store.each_capture(&Filter::default(), |capture| {
        if capture.surt != key {
            compare_key(&key, &mut wanted, &mut lines, defects);
            key = capture.surt.clone();
        }
        if capture.id < tail_from {
            wanted.push(line_of(&capture));
        }
        Ok(())
    })?;
    compare_key(&key, &mut wanted, &mut lines, defects);
    for line in lines {
        add_index(defects, "", format!("a line of no capture: {line}"));
    }
    drop(transaction);
    Ok(())
}

fn add_index(defects: &mut Vec<Defect>, file: &str, what: String) {
    let file = if file.is_empty() { "index" } else { file };
    defects.push(Defect { kind: DefectKind::Index, file: file.to_string(), offset: None, what });
}

fn check_sorted(archive: &Archive, names: &[String], defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    for name in names {
        let mut before = String::new();
        for line in lines_of(File::open(archive.index_dir().join(name))?) {
            let line = line?;
            if line.as_bytes() < before.as_bytes() {
                add_index(defects, name, format!("not sorted at: {line}"));
                break;
            }
            before = line;
        }
    }
    Ok(())
}

/// Compares the lines that the state wants for a key with those in the runs, and everything in the runs that
/// sorts before it with nothing.
fn compare_key(
    key: &str,
    wanted: &mut Vec<String>,
    lines: &mut std::iter::Peekable<impl Iterator<Item = String>>,
    defects: &mut Vec<Defect>,
) {
    wanted.sort_unstable();
    wanted.dedup();
    let end = format!("{key}!");
    let mut wanted = wanted.drain(..).peekable();
    while let Some(line) = lines.next_if(|line| line.as_bytes() < end.as_bytes()) {
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
}
