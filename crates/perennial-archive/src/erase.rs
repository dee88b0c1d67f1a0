//! Removal for legal reasons: records of a page or a site -> tombstones, in rewritten WARC files, and nothing derived from
//! them remains.
//!
//! A removal is written to `erase.pending` first. Each of its steps can be repeated, so after a crash the next writer
//! completes it (`complete_erasure`):
//! 1. Files with matching records are rewritten beside themselves, and renamed.
//! 2. The manifest records the act.
//! 3. Captures in these files get their new places in the state; erased ones leave it with all that was derived from
//!    them. The index is written again, the text index is removed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use perennial_core::url::canonical;
use perennial_warc::{
    Compression, NewRecord, RecordHeader, RecordIds, RecordType, WarcItem, WarcReader, WarcWriter,
};
use serde::{Deserialize, Serialize};

use super::lock::WriteLock;
use super::manifest::{self, Manifest, ManifestAct};
use super::scan::{ScanItem, scan};
use super::writer::{ArchiveWriter, DELTA_PREFIX, random_seed};
use super::{Archive, files, index, now, sync_dir, write_whole};
use crate::store::{CaptureRow, Outbox, QuarantinedRecord, Store, Texts, parse_site_name};

/// The field of a tombstone with the number of the removal.
const ERASED: &str = "Perennial-Erased";

/// URLs that a plan lists; further ones are only counted.
const MAX_LISTED: usize = 100;

/// Prefixes of records that are derived from a page.
const DERIVED: [&str; 3] = ["urn:dom:", "urn:vixml:", DELTA_PREFIX];

/// What is erased.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErasedPart {
    /// The page with this URL.
    Page(String),
    /// All pages of a host, with any non-default port.
    Site(String),
}

impl ErasedPart {
    /// Reads what a user named: a URL, or a host.
    pub fn parse(text: &str) -> anyhow::Result<ErasedPart> {
        match text.contains("://") {
            true => Ok(ErasedPart::Page(text.to_owned())),
            false if text.is_empty() || text.contains('/') => {
                bail!("{text}: write a URL with its scheme, or the name of a host")
            }
            false => Ok(ErasedPart::Site(text.to_lowercase())),
        }
    }

    /// The URL or host.
    pub fn name(&self) -> &str {
        match self {
            ErasedPart::Page(name) | ErasedPart::Site(name) => name,
        }
    }

    /// Whether a record with this target belongs to it.
    fn contains(&self, uri: &str) -> bool {
        let url = DERIVED.iter().find_map(|prefix| uri.strip_prefix(prefix)).unwrap_or(uri);
        match self {
            ErasedPart::Page(page) => {
                let is_same = |other: url::Url| other.as_str() == url;
                page == url || canonical::parse(page).is_some_and(is_same)
            }
            ErasedPart::Site(host) => parse_site_name(url) == *host,
        }
    }
}

/// A removal that was begun. The file `erase.pending` contains it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Erasure {
    /// Distinguishes the tombstones of different removals.
    number: String,
    part: ErasedPart,
    reason: String,
    /// The WARC files with matching records.
    files: Vec<String>,
}

/// What a removal would erase, or has erased.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ErasureReport {
    /// The URL or host.
    pub what: String,
    pub is_done: bool,
    /// WARC files with matching records.
    pub files: Vec<String>,
    pub n_records: u64,
    /// Bytes of these records in their files.
    pub bytes: u64,
    /// Distinct URLs.
    pub n_urls: u64,
    /// The first URLs.
    pub urls: Vec<String>,
    /// Files next to the archive's own that may contain the same bytes: torn ends, former states.
    pub not_erased: Vec<String>,
}

/// Lists what a removal would erase. Reads every record, and changes nothing.
pub fn plan_erasure(
    archive: &Archive,
    part: &ErasedPart,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<ErasureReport> {
    let mut report = ErasureReport { what: part.name().to_owned(), ..ErasureReport::default() };
    let mut urls = std::collections::BTreeSet::new();
    for file in files::list(&archive.warc_dir())? {
        let n_before = report.n_records;
        each_record(archive, &file.name, progress, &mut |header, extent| {
            if let Some(uri) = header.target_uri().filter(|uri| is_to_erase(header, uri, part)) {
                report.n_records += 1;
                report.bytes += extent.1;
                urls.insert(uri.to_owned());
            }
            Ok(())
        })?;
        if report.n_records > n_before {
            report.files.push(file.name);
        }
    }
    report.n_urls = urls.len() as u64;
    report.urls = urls.into_iter().take(MAX_LISTED).collect();
    report.not_erased = side_files(archive)?;
    Ok(report)
}

/// Erases. The caller has obtained confirmation.
pub fn erase(
    archive: &Archive,
    part: &ErasedPart,
    reason: &str,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<ErasureReport> {
    // A file of a killed crawl gets its final name, and the manifest lists all files.
    ArchiveWriter::open(archive)?.close()?;
    let _lock = WriteLock::take(archive.root())?;
    let mut report = plan_erasure(archive, part, progress)?;
    if report.n_records == 0 {
        return Ok(report);
    }
    let erasure = Erasure {
        number: format!("{:032x}", random_seed()),
        part: part.clone(),
        reason: reason.to_owned(),
        files: report.files.clone(),
    };
    let text = serde_json::to_vec(&erasure)?;
    write_whole(&pending_path(archive), &text).context("cannot write erase.pending")?;
    complete_erasure(archive, &mut Store::open_write(&archive.state_path())?)?;
    report.is_done = true;
    Ok(report)
}

/// The files of a removal that was begun. Until the next writer completes it, the state does not agree with them.
pub(crate) fn files_being_erased(archive: &Archive) -> anyhow::Result<Vec<String>> {
    Ok(read_pending(archive)?.map(|erasure| erasure.files).unwrap_or_default())
}

fn read_pending(archive: &Archive) -> anyhow::Result<Option<Erasure>> {
    let path = pending_path(archive);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let erasure = serde_json::from_slice(&text);
    erasure.map(Some).with_context(|| format!("{} is damaged: remove it, and erase again", path.display()))
}

/// Completes a removal that was begun. Returns what was erased; `None` if there was none. The caller holds the write lock.
pub(crate) fn complete_erasure(archive: &Archive, store: &mut Store) -> anyhow::Result<Option<String>> {
    let Some(erasure) = read_pending(archive)? else { return Ok(None) };
    for name in &erasure.files {
        rewrite_file(archive, &erasure, name).with_context(|| format!("cannot rewrite {name}"))?;
    }
    record_in_manifest(archive, &erasure)?;
    for name in &erasure.files {
        update_places(archive, store, name)?;
    }
    let urls = store.forget_erased(|url| erasure.part.contains(url))?;
    index::rewrite(store, &archive.index_dir())?;
    Texts::remove(&archive.texts_path())?;
    if archive.outbox_path().exists() {
        Outbox::open_write(&archive.outbox_path())?.forget_pages(&urls)?;
    }
    fs::remove_file(pending_path(archive))?;
    sync_dir(archive.root())?;
    Ok(Some(erasure.part.name().to_owned()))
}

fn pending_path(archive: &Archive) -> PathBuf {
    archive.root().join("erase.pending")
}

fn is_to_erase(header: &RecordHeader, uri: &str, part: &ErasedPart) -> bool {
    header.record_type() != RecordType::Warcinfo && header.get(ERASED).is_none() && part.contains(uri)
}

/// Receives the header of a record, and its offset and length.
type EachRecord<'a> = dyn FnMut(&RecordHeader, (u64, u64)) -> anyhow::Result<()> + 'a;

fn each_record(
    archive: &Archive,
    name: &str,
    progress: &(dyn Fn(u64) + Sync),
    each: &mut EachRecord<'_>,
) -> anyhow::Result<()> {
    let mut reader = WarcReader::seekable(files::open(&archive.warc_dir(), name)?)?;
    let mut behind = 0;
    while let Some(item) = reader.next_item()? {
        if let WarcItem::Record(record) = item {
            let header = record.header().clone();
            if let Ok(extent) = record.finish()? {
                if extent.shared && header.target_uri().is_some() {
                    bail!(
                        "{name}: a record at {} shares its compressed member; import the file again",
                        extent.offset
                    );
                }
                each(&header, (extent.offset, extent.length))?;
            }
        }
        progress(reader.offset().saturating_sub(behind));
        behind = reader.offset();
    }
    Ok(())
}

/// Replaces matching records of a file by tombstones. All other bytes are copied as they are.
fn rewrite_file(archive: &Archive, erasure: &Erasure, name: &str) -> anyhow::Result<()> {
    let mut erased: Vec<(u64, u64, RecordHeader)> = Vec::new();
    each_record(archive, name, &|_| (), &mut |header, (offset, length)| {
        if header.target_uri().is_some_and(|uri| is_to_erase(header, uri, &erasure.part)) {
            erased.push((offset, length, header.clone()));
        }
        Ok(())
    })?;
    if erased.is_empty() {
        return Ok(());
    }
    let dir = archive.warc_dir();
    let path = files::locate(&dir, name);
    let beside = path.with_added_extension(files::COPYING_SUFFIX.trim_start_matches('.'));
    let mut source = File::open(&path)?;
    let mut out = BufWriter::new(File::create(&beside)?);
    let mut ids = RecordIds::new(random_seed());
    let mut done = 0;
    for (offset, length, header) in &erased {
        copy_range(&mut source, done, *offset, &mut out)?;
        out.write_all(&tombstone(erasure, name, header, &mut ids)?)?;
        done = offset + length;
    }
    let end = source.metadata()?.len();
    copy_range(&mut source, done, end, &mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&beside, &path)?;
    Ok(sync_dir(&dir)?)
}

fn copy_range(source: &mut File, from: u64, to: u64, out: &mut impl Write) -> io::Result<()> {
    source.seek(SeekFrom::Start(from))?;
    io::copy(&mut source.take(to.saturating_sub(from)), out)?;
    Ok(())
}

/// The record in place of an erased one. It records the type, time and digest of the record that was here, and the reason of the erasure.
fn tombstone(
    erasure: &Erasure,
    file: &str,
    header: &RecordHeader,
    ids: &mut RecordIds,
) -> anyhow::Result<Vec<u8>> {
    let compression = match file {
        name if name.ends_with(".gz") => Compression::Gzip(6),
        name if name.ends_with(".zst") => Compression::Zstd(3),
        _ => Compression::None,
    };
    let (erased_at, kind) = (now().to_rfc3339(), header.record_type());
    let mut facts =
        vec![("erased", erased_at.as_str()), ("reason", &erasure.reason), ("type", kind.as_str())];
    facts.extend(header.payload_digest().map(|digest| ("payload-digest", digest)));
    let date = header.date().unwrap_or_else(now);
    let record = NewRecord::metadata(ids.next_id(), date, header.target_uri().unwrap_or_default(), &facts)
        .field(ERASED, erasure.number.as_str());
    let mut out = WarcWriter::new(Vec::new(), 0, compression)?;
    out.write(&record)?;
    Ok(out.into_inner())
}

/// The manifest records each rewritten file once.
fn record_in_manifest(archive: &Archive, erasure: &Erasure) -> anyhow::Result<()> {
    let mut manifest = Manifest::load(&archive.manifest_path())?;
    let mut changes = Vec::new();
    for name in &erasure.files {
        let (bytes, sha256) = manifest::file_digest(&archive.warc_dir(), name)?;
        if manifest.listed().get(name.as_str()).is_some_and(|(_, listed)| *listed == sha256) {
            continue;
        }
        let mut n_records = 0;
        each_record(archive, name, &|_| (), &mut |header, _| {
            n_records += u64::from(header.get(ERASED) == Some(erasure.number.as_str()));
            Ok(())
        })?;
        let (what, reason) = (erasure.part.name().to_owned(), erasure.reason.clone());
        changes.push(ManifestAct::Erased { file: name.clone(), bytes, sha256, what, n_records, reason });
    }
    manifest.append(&archive.manifest_path(), changes, now())
}

/// Gives the captures of a rewritten file their new places, and removes the erased ones.
fn update_places(archive: &Archive, store: &mut Store, name: &str) -> anyhow::Result<()> {
    let (mut rows, mut quarantined): (Vec<CaptureRow>, Vec<QuarantinedRecord>) = Default::default();
    let file = files::open(&archive.warc_dir(), name)?;
    let bytes = file.metadata()?.len();
    scan(file, 0, &|_| (), &mut |found| {
        match (found.quarantined(), found) {
            (_, ScanItem::Capture(row)) => rows.push(row),
            (Some(record), _) => quarantined.push(record),
            (None, _) => {}
        }
        Ok(())
    })?;
    store.replace_places(name, bytes, &rows, &quarantined)
}

/// Files that an erasure does not touch and that may contain the same bytes.
fn side_files(archive: &Archive) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for (dir, prefix) in [(archive.warc_dir(), "warc/"), (archive.root().to_path_buf(), "")] {
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".torn") || name.starts_with("state-") || name == "crawl.log" {
                found.push(format!("{prefix}{name}"));
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
