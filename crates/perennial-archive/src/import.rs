//! Files of other tools -> captures like our own, with pages, versions and links.
//!
//! Import copies a file byte for byte up to the first record that no offset can locate. Such a record shares its
//! compressed member with others, or needs a second dictionary. From there on, import rewrites each record. Duplicates
//! change nothing: the same file, or a capture with the same URL, time, kind and payload. All cores read files, and one
//! thread writes the state.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::{Context, bail};
use perennial_core::text::untrusted::{self, BoundedLine, bounded_lines};
use perennial_core::time::Timestamp;
use perennial_warc::cdxj::CdxjLine;
use perennial_warc::request;
use perennial_warc::{Damage, WarcItem, WarcReader};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::recover::BATCH_ROWS;
use super::scan::{ScanItem, ScanSummary, looks_like_warc, scan_reachable};
use super::transcription::transcribe_record;
use super::{ArchiveWriter, files, now, sync_dir, zip_entries};
use crate::store::{CaptureRow, FileRow, FileState, QuarantinedRecord, Store};

/// Links of one commit. Few large commits write less than many small ones, and memory is bounded.
const MAX_BATCH_LINKS: usize = 50_000;

/// Maximum number of problems listed per file; further ones are only counted.
pub const MAX_LISTED: usize = 1_000;

/// The result of an import.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ImportReport {
    /// One report for each WARC file, including those in WACZ files, and one for each rewritten end of such a file.
    pub files: Vec<FileReport>,
    /// One report for each index file.
    pub indexes: Vec<IndexReport>,
}

/// The result of importing one WARC file.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileReport {
    /// The source as the user named it.
    pub source: String,
    /// Its name in `warc/`; `None` if it contained nothing new.
    pub stored_as: Option<String>,
    /// Whether the same file was imported before.
    pub is_known: bool,
    /// Whether it was rewritten with one compressed member per record.
    pub is_rewritten: bool,
    /// Number of sound records.
    pub n_records: u64,
    /// Number of captures new to the archive.
    pub n_captures: u64,
    /// Number of captures already in the archive.
    pub n_duplicates: u64,
    /// Number of damaged ranges, wrong digests, records that cannot be captures, and read errors.
    pub n_problems: u64,
    /// Problems that are defects as in `verify`: all except records that cannot be captures.
    pub n_defects: u64,
    /// The first problems.
    pub problems: Vec<ImportProblem>,
}

/// One problem of an imported file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportProblem {
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes skipped; 0 if the record was imported anyway.
    pub skipped_bytes: u64,
    /// A description for people.
    pub what: String,
    /// Whether bytes are damaged or missing. A record that cannot be a capture may be intentional.
    pub is_defect: bool,
}

/// A source is unreadable. It does not stop the import of other sources.
#[derive(Debug, thiserror::Error)]
#[error("cannot be read: {0}; take it from another copy")]
struct UnreadableSource(String);

/// The result of comparing the lines of one index file with the captures in the archive.
#[derive(Clone, Debug, Default, Serialize)]
pub struct IndexReport {
    /// The source as the user named it.
    pub source: String,
    /// Lines that name a capture of the archive.
    pub n_confirmed: u64,
    /// Lines that name no such capture, or are not CDXJ.
    pub n_unconfirmed: u64,
    /// The first unconfirmed lines.
    pub unconfirmed: Vec<String>,
}

impl IndexReport {
    fn add_unconfirmed(&mut self, line: &str) {
        self.n_unconfirmed += 1;
        if self.unconfirmed.len() < MAX_LISTED {
            self.unconfirmed.push(untrusted::quoted(line).into_owned());
        }
    }
}

/// Imports files into an archive open for writing. `progress` receives the bytes read.
pub fn import(
    writer: &mut ArchiveWriter,
    sources: &[PathBuf],
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<ImportReport> {
    let (indexes, archives): (Vec<&PathBuf>, Vec<&PathBuf>) = sources.iter().partition(|path| is_index(path));
    for path in &archives {
        check_readable(path)?;
    }
    let dir = writer.archive().warc_dir();
    let is_time_lapse = writer.archive().settings().archive.time_lapse;
    let known = known_sources(writer.store())?;
    let (sender, receiver) = sync_channel(4);
    let next = AtomicUsize::new(0);
    let naming = Mutex::new(());
    let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(archives.len());
    let files = std::thread::scope(|scope| {
        for _ in 0..n_threads {
            let reader =
                SourceReader { dir: &dir, known: &known, naming: &naming, progress, sender: sender.clone() };
            let (next, archives) = (&next, &archives);
            scope.spawn(move || {
                while let Some(path) = archives.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let read =
                        reader.read_source(path).or_else(|error| reader.report_unreadable(path, error));
                    if let Err(error) = read {
                        // The receiver is gone only if it failed too.
                        let _ = reader.sender.send(ImportMessage::Failed(error));
                        return;
                    }
                }
            });
        }
        drop(sender);
        take_in(writer.store_mut(), &dir, is_time_lapse, receiver)
    })?;
    let mut report = ImportReport { files, indexes: Vec::new() };
    for path in indexes {
        report.indexes.push(compare_index(writer.store(), path, &report.files)?);
    }
    Ok(report)
}

fn is_index(path: &Path) -> bool {
    let name = path.to_string_lossy();
    [".cdxj", ".cdx", ".cdxj.gz", ".cdx.gz"].iter().any(|extension| name.ends_with(extension))
}

/// A wrong file name stops the import before it begins.
fn check_readable(path: &Path) -> anyhow::Result<()> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    if !is_zip(&mut file)? && !looks_like_warc(&mut file)? {
        bail!(
            "{} is neither WARC, ARC nor WACZ: import takes .warc, .warc.gz, .warc.zst, .arc, .wacz, .cdxj",
            path.display()
        );
    }
    Ok(())
}

fn is_zip(file: &mut File) -> io::Result<bool> {
    let mut magic = [0; 4];
    file.rewind()?;
    let n = file.read(&mut magic)?;
    file.rewind()?;
    Ok(magic[..n] == *b"PK\x03\x04")
}

fn known_sources(store: &Store) -> anyhow::Result<HashMap<String, String>> {
    let files = store.files()?.into_iter();
    Ok(files.filter_map(|file| Some((file.source_digest?, file.name))).collect())
}

/// Messages from the reading threads to the writing one. `source` names the file.
enum ImportMessage {
    /// The archive contains the file already.
    Known {
        source: String,
        name: String,
    },
    /// A file has its final name.
    Begin {
        source: String,
        file: FileRow,
        is_rewritten: bool,
    },
    Captures {
        source: String,
        rows: Vec<CaptureRow>,
        quarantined: Vec<QuarantinedRecord>,
    },
    Problem {
        source: String,
        problem: ImportProblem,
    },
    End {
        source: String,
        scanned: ScanSummary,
        bytes: u64,
    },
    /// The end of a file was rewritten to a new file and cut off.
    Cut {
        source: String,
        bytes: u64,
    },
    Failed(anyhow::Error),
}

struct SourceReader<'a> {
    dir: &'a Path,
    known: &'a HashMap<String, String>,
    /// Locked while a thread chooses a free name and takes it.
    naming: &'a Mutex<()>,
    progress: &'a (dyn Fn(u64) + Sync),
    sender: SyncSender<ImportMessage>,
}

impl SourceReader<'_> {
    fn read_source(&self, path: &Path) -> anyhow::Result<()> {
        let context = || format!("cannot import {}", path.display());
        let mut file = File::open(path).with_context(context)?;
        let source = path.to_string_lossy().into_owned();
        if !is_zip(&mut file)? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            return self.read_warc(source, &name, &mut file).with_context(context);
        }
        let mut n_by_name: HashMap<String, usize> = HashMap::new();
        for entry in zip_entries::entries(&file).map_err(UnreadableSource)? {
            // Only the last part of the name is used. A path with `..` therefore cannot leave the folder.
            let name = entry.name.rsplit('/').next().unwrap_or_default().to_string();
            if entry.name.starts_with("archive/") && files::is_warc_name(&name) {
                let shown = untrusted::terminal_safe(&entry.name).into_owned();
                let n_alike = n_by_name.entry(shown.clone()).or_default();
                *n_alike += 1;
                let entry_source = match n_alike {
                    1 => format!("{source}/{shown}"),
                    n => format!("{source}/{shown} (entry {n} of this name)"),
                };
                let read = entry.open(&file).map_err(|error| UnreadableSource(error.to_string()).into());
                let read = read.and_then(|mut entry| self.read_warc(entry_source.clone(), &name, &mut entry));
                // An unreadable entry must not prevent the import of others.
                read.or_else(|error| self.report_unreadable(Path::new(&entry_source), error))
                    .with_context(context)?;
            }
        }
        if n_by_name.is_empty() {
            let what = "no WARC file in its folder archive/: it is not a WACZ, or part of it is missing";
            self.problem(&source, ImportProblem::without_offset(what.to_string()))?;
        }
        Ok(())
    }

    /// Reports an unreadable file like its other problems. Any other error ends the import.
    fn report_unreadable(&self, path: &Path, error: anyhow::Error) -> anyhow::Result<()> {
        match error.downcast_ref::<UnreadableSource>() {
            Some(unreadable) => {
                self.problem(&path.to_string_lossy(), ImportProblem::without_offset(unreadable.to_string()))
            }
            None => Err(error),
        }
    }

    fn read_warc(&self, source: String, name: &str, input: &mut dyn Read) -> anyhow::Result<()> {
        let mut copy = self.new_file()?;
        let source_digest = copy_digested(input, copy.as_file_mut())?;
        if let Some(name) = self.known.get(&source_digest) {
            return self.send(ImportMessage::Known { source, name: name.clone() });
        }
        let name = name_for(&untrusted::file_name(name), copy.as_file_mut())?;
        if has_shared_members(copy.as_file().try_clone()?)? {
            return self.take_rewritten(source, &name, copy.as_file(), 0, source_digest);
        }
        let file = copy.as_file().try_clone()?;
        let Some(from) = self.take_file(&source, copy, &name, &source_digest, false)? else { return Ok(()) };
        let rest = format!("{source} from byte {from}");
        self.take_rewritten(rest, &name, &file, from, source_digest)?;
        // Everything after that offset is now durable in the rewritten file.
        file.set_len(from)?;
        file.sync_all()?;
        self.send(ImportMessage::Cut { source, bytes: from })
    }

    fn new_file(&self) -> io::Result<tempfile::NamedTempFile> {
        tempfile::Builder::new()
            .prefix("import-")
            .suffix(files::COPYING_SUFFIX)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(self.dir)
    }

    /// Puts a file in its place and reads it. If some records cannot be found by their offsets, returns where they
    /// begin. The file is then not finished yet.
    fn take_file(
        &self,
        source: &str,
        copy: tempfile::NamedTempFile,
        name: &str,
        source_digest: &str,
        is_rewritten: bool,
    ) -> anyhow::Result<Option<u64>> {
        copy.as_file().sync_all()?;
        let bytes = copy.as_file().metadata()?.len();
        let file = copy.as_file().try_clone()?;
        let row = FileRow {
            name: self.put_in_place(copy, name)?,
            state: FileState::Imported,
            committed_bytes: 0,
            source_digest: Some(source_digest.to_string()),
        };
        self.send(ImportMessage::Begin { source: source.to_string(), file: row, is_rewritten })?;
        let scanned = self.read_records(source, file)?;
        self.send(ImportMessage::End { source: source.to_string(), scanned, bytes })?;
        Ok(scanned.unreachable_from)
    }

    /// Imports a file, or its end, with one compressed member per record.
    fn take_rewritten(
        &self,
        source: String,
        name: &str,
        file: &File,
        from: u64,
        source_digest: String,
    ) -> anyhow::Result<()> {
        let mut rewritten = self.new_file()?;
        self.rewrite(&source, file.try_clone()?, from, rewritten.as_file_mut())?;
        let name = format!("{}.warc.gz", files::stem(name));
        self.take_file(&source, rewritten, &name, &source_digest, true)?;
        Ok(())
    }

    fn rewrite(&self, source: &str, mut copy: File, from: u64, out: &mut File) -> anyhow::Result<()> {
        // Reads from the start, because a dictionary applies to the records after it.
        copy.rewind()?;
        let mut reader = WarcReader::seekable(copy)?;
        let mut out = BufWriter::new(out);
        while let Some(item) = reader.next_item()? {
            match item {
                WarcItem::Record(record) if record.offset() < from => {}
                WarcItem::Damage(damage) if damage.offset < from => {}
                WarcItem::Record(record) => {
                    let offset = record.offset();
                    if transcribe_record(record, &mut out)?.is_none() {
                        let what = "a damaged record was left out".to_string();
                        self.problem(
                            source,
                            ImportProblem { offset, skipped_bytes: 0, what, is_defect: true },
                        )?;
                    }
                }
                WarcItem::Damage(damage) => self.problem(source, ImportProblem::from_damage(&damage))?,
            }
        }
        Ok(out.flush()?)
    }

    fn put_in_place(&self, copy: tempfile::NamedTempFile, name: &str) -> anyhow::Result<String> {
        let _naming = self.naming.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let name = files::free_name(self.dir, name);
        copy.persist(self.dir.join(&name)).map_err(|error| error.error)?;
        sync_dir(self.dir)?;
        Ok(name)
    }

    fn read_records(&self, source: &str, file: File) -> anyhow::Result<ScanSummary> {
        let (mut rows, mut quarantined, mut n_links) = (Vec::new(), Vec::new(), 0);
        let scanned = scan_reachable(file, self.progress, &mut |found| {
            quarantined.extend(found.quarantined());
            if rows.len() + quarantined.len() >= BATCH_ROWS || n_links >= MAX_BATCH_LINKS {
                n_links = 0;
                let (rows, quarantined) = (std::mem::take(&mut rows), std::mem::take(&mut quarantined));
                self.send(ImportMessage::Captures { source: source.to_string(), rows, quarantined })?;
            }
            let problem = match found {
                ScanItem::Capture(row) => {
                    n_links += row.links.as_ref().map_or(0, Vec::len) + row.named.len();
                    rows.push(row);
                    return Ok(());
                }
                ScanItem::Damage(damage) => ImportProblem::from_damage(&damage),
                ScanItem::BadDigest { offset, mismatch } => {
                    ImportProblem { offset, skipped_bytes: 0, what: mismatch.to_string(), is_defect: true }
                }
                ScanItem::Unusable { offset, why } => {
                    let what = format!("no capture: {why}");
                    ImportProblem { offset, skipped_bytes: 0, what, is_defect: false }
                }
            };
            self.problem(source, problem)
        })?;
        self.send(ImportMessage::Captures { source: source.to_string(), rows, quarantined })?;
        Ok(scanned)
    }

    fn problem(&self, source: &str, problem: ImportProblem) -> anyhow::Result<()> {
        self.send(ImportMessage::Problem { source: source.to_string(), problem })
    }

    fn send(&self, message: ImportMessage) -> anyhow::Result<()> {
        self.sender.send(message).map_err(|_| anyhow::anyhow!("the import was given up"))
    }
}

/// Copies the input and returns its SHA-256.
pub(super) fn copy_digested(input: &mut dyn Read, copy: &mut dyn Write) -> anyhow::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        let n = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(UnreadableSource(error.to_string()).into()),
        };
        hasher.update(&buffer[..n]);
        copy.write_all(&buffer[..n])?;
    }
    Ok(format!("sha256:{}", data_encoding::HEXLOWER.encode(&hasher.finalize())))
}

impl FileReport {
    fn add(&mut self, problem: ImportProblem) {
        self.n_problems += 1;
        self.n_defects += u64::from(problem.is_defect);
        if self.problems.len() < MAX_LISTED {
            self.problems.push(problem);
        }
    }
}

impl ImportProblem {
    fn from_future(row: &CaptureRow) -> ImportProblem {
        let what = format!("dated {}, in the future: it counts only then", row.time.to_rfc3339());
        ImportProblem { offset: row.offset, skipped_bytes: 0, what, is_defect: false }
    }

    fn from_damage(damage: &Damage) -> ImportProblem {
        let what = damage.cause.to_string();
        ImportProblem { offset: damage.offset, skipped_bytes: damage.length, what, is_defect: true }
    }

    /// A problem of the whole file.
    fn without_offset(what: String) -> ImportProblem {
        ImportProblem { offset: 0, skipped_bytes: 0, what, is_defect: true }
    }
}

/// The writing side: commits the readers' messages.
fn take_in(
    store: &mut Store,
    dir: &Path,
    is_time_lapse: bool,
    receiver: Receiver<ImportMessage>,
) -> anyhow::Result<Vec<FileReport>> {
    let mut reports: Vec<FileReport> = Vec::new();
    let mut open: HashMap<String, FileRow> = HashMap::new();
    for message in receiver {
        match message {
            ImportMessage::Failed(error) => return Err(error),
            ImportMessage::Known { source, name } => {
                let report = file_report(&mut reports, &source);
                (report.is_known, report.stored_as) = (true, Some(name));
            }
            ImportMessage::Begin { source, file, is_rewritten } => {
                let report = file_report(&mut reports, &source);
                (report.stored_as, report.is_rewritten) = (Some(file.name.clone()), is_rewritten);
                store.commit(&file, &[])?;
                open.insert(source, file);
            }
            ImportMessage::Captures { source, rows, quarantined } => {
                let Some(file) = open.get(&source) else { continue };
                let done = store.commit_scan(file, &rows, &quarantined)?;
                let report = file_report(&mut reports, &source);
                report.n_captures += done.n_captures;
                report.n_duplicates += done.n_duplicates;
                let horizon = if is_time_lapse { Timestamp::MAX } else { now() };
                for row in rows.iter().filter(|row| row.time > horizon) {
                    report.add(ImportProblem::from_future(row));
                }
            }
            ImportMessage::Problem { source, problem } => {
                file_report(&mut reports, &source).add(problem);
            }
            ImportMessage::End { source, scanned, bytes } => {
                let report = file_report(&mut reports, &source);
                report.n_records = scanned.n_records;
                if scanned.unreachable_from.is_none() {
                    let Some(file) = open.remove(&source) else { continue };
                    end_file(store, dir, FileRow { committed_bytes: bytes, ..file }, report)?;
                }
            }
            ImportMessage::Cut { source, bytes } => {
                let Some(file) = open.remove(&source) else { continue };
                let report = file_report(&mut reports, &source);
                end_file(store, dir, FileRow { committed_bytes: bytes, ..file }, report)?;
            }
        }
    }
    Ok(reports)
}

/// Marks a file as imported. A file without new captures is removed again.
fn end_file(store: &mut Store, dir: &Path, file: FileRow, report: &mut FileReport) -> anyhow::Result<()> {
    if report.n_captures > 0 || store.has_quarantined_record(&file.name)? {
        store.commit(&file, &[])?;
        return Ok(());
    }
    report.stored_as = None;
    store.forget_file(&file.name)?;
    Ok(fs::remove_file(dir.join(&file.name))?)
}

fn file_report<'a>(reports: &'a mut Vec<FileReport>, source: &str) -> &'a mut FileReport {
    let at = reports.iter().position(|report| report.source == source).unwrap_or_else(|| {
        reports.push(FileReport { source: source.to_string(), ..FileReport::default() });
        reports.len() - 1
    });
    &mut reports[at]
}

/// Checks only the first two records, which reveal most files with shared members. In other files the scan finds them
/// later, and import rewrites the ends.
fn has_shared_members(mut file: File) -> anyhow::Result<bool> {
    file.rewind()?;
    let mut reader = WarcReader::seekable(file)?;
    for _ in 0..2 {
        match reader.next_item()? {
            Some(WarcItem::Record(record)) => {
                if record.finish()?.is_ok_and(|extent| extent.shared) {
                    return Ok(true);
                }
            }
            Some(WarcItem::Damage(_)) => {}
            None => break,
        }
    }
    Ok(false)
}

/// The file's name with the extension that matches its content.
fn name_for(name: &str, file: &mut File) -> io::Result<String> {
    let name = name.strip_suffix(files::OPEN_SUFFIX).unwrap_or(name);
    let mut magic = [0; 4];
    file.rewind()?;
    let n = file.read(&mut magic)?;
    let is_arc = files::stem(name) != name && name.contains(".arc");
    let kind = if is_arc { "arc" } else { "warc" };
    let extension = match &magic[..n] {
        [0x1f, 0x8b, ..] => format!(".{kind}.gz"),
        [0x28, 0xb5, ..] | [_, 0x2a, 0x4d, 0x18] => format!(".{kind}.zst"),
        _ => format!(".{kind}"),
    };
    Ok(format!("{}{extension}", files::stem(name)))
}

/// Index files contain nothing that the records lack. A comparison shows whether records are missing.
fn compare_index(store: &Store, path: &Path, files: &[FileReport]) -> anyhow::Result<IndexReport> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
    let input: Box<dyn Read> =
        if is_gzip { Box::new(flate2::read::MultiGzDecoder::new(file)) } else { Box::new(file) };
    let stored: HashMap<&str, &str> = files
        .iter()
        .filter_map(|file| Some((file.source.rsplit('/').next()?, file.stored_as.as_deref()?)))
        .collect();
    let mut report = IndexReport { source: path.to_string_lossy().into_owned(), ..IndexReport::default() };
    for line in bounded_lines(BufReader::new(input)) {
        let (line, is_confirmed) = match line.with_context(|| format!("cannot read {}", path.display()))? {
            BoundedLine::Whole(line) if line.starts_with('!') || line.trim().is_empty() => continue,
            BoundedLine::Whole(line) => {
                let is_confirmed = is_confirmed(store, &line, &stored)?;
                (line, is_confirmed)
            }
            BoundedLine::TooLong(beginning) => (beginning, false),
        };
        match is_confirmed {
            true => report.n_confirmed += 1,
            false => report.add_unconfirmed(&line),
        }
    }
    Ok(report)
}

/// The URL under which the capture of a line is indexed.
fn capture_url(line: &CdxjLine) -> Cow<'_, str> {
    let field = |wanted: &str| line.extra.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
    match field("method").filter(|method| *method != "GET") {
        Some(method) => {
            let query = field("requestBody").map_or("", String::as_str);
            Cow::Owned(request::with_query(&line.url, method, query))
        }
        None => Cow::Borrowed(&line.url),
    }
}

fn is_confirmed(store: &Store, line: &str, stored: &HashMap<&str, &str>) -> anyhow::Result<bool> {
    let Ok(line) = CdxjLine::parse(line) else { return Ok(false) };
    if let (Some(file), Some(offset)) = (&line.filename, line.offset) {
        let name = file.rsplit('/').next().unwrap_or(file);
        if store.has_capture_at(stored.get(name).copied().unwrap_or(name), offset)? {
            return Ok(true);
        }
    }
    // If the file was known or rewritten, the capture may be in a different file.
    match (line.date(), &line.digest) {
        (Some(date), Some(digest)) => store.has_capture(&capture_url(&line), date, digest),
        _ => Ok(false),
    }
}
