//! A part of the archive -> one file for other tools: WARC, CDXJ, or WACZ (1.1.1) with all contents.
//!
//! An exchange is exported whole: response, request, metadata and derived resources. A revisit with its origin outside
//! the part includes the origin's record, because replay needs the payload. For a 304 or a left-out version, the export
//! adds a revisit that other tools can follow (`substitute`). Memory use is constant.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use anyhow::{Context, bail};
use perennial_core::time::Timestamp;
use perennial_warc::{Compression, NewRecord, RecordIds, RevisitProfile, WarcItem, WarcReader, WarcWriter};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;

use super::index::record_line;
use super::signature::SigningKey;
use super::substitute::Substitutes;
use super::transcription::transcribe_record;
use super::tree_export::write_trees;
use super::writer::{STANDS_FOR, random_seed, warcinfo_facts};
use super::{Archive, Snapshot, files};
use crate::store::{Capture, CaptureFilter, CaptureKind, ExchangeGroup, ExportSelection};

const WARC_IN_WACZ: &str = "data.warc.gz";

/// Lines per compressed block of a WACZ's index, as in other tools.
const LINES_PER_BLOCK: usize = 3_000;

/// The format of an export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordFormat {
    /// A zip file with WARC, index and page list, for ReplayWeb.page and others.
    Wacz,
    /// One WARC file with one gzip member per record.
    Warc,
    /// The index lines, which name this archive's files.
    Cdxj,
}

/// What the exported file contains apart from captures.
pub struct ExportOptions<'a> {
    pub format: RecordFormat,
    /// The blocks of each analysed page.
    pub with_trees: bool,
    /// Signs a WACZ file.
    pub key: Option<&'a SigningKey>,
}

/// The result of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// Captures that the filter selects.
    pub n_captures: u64,
    /// Captures outside the part with payloads that its revisits need.
    pub n_origins: u64,
    /// Trees of blocks, as `urn:vixml:` records.
    pub n_trees: u64,
    /// Captures left out because their records are damaged.
    pub n_damaged: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// Exports the captures that match the filter to `out`, a new file. `progress` receives the number of captures written.
pub fn export(
    snapshot: &Snapshot,
    options: &ExportOptions<'_>,
    filter: &CaptureFilter,
    now: Timestamp,
    out: &mut File,
    progress: &dyn Fn(u64),
) -> anyhow::Result<ExportReport> {
    let store = snapshot.store();
    let &ExportOptions { format, with_trees, key } = options;
    let mut substitutes = Substitutes::new(store);
    let chosen = store.select_captures(filter, |capture| match format {
        // The lines name records of the archive, all of which exist.
        RecordFormat::Cdxj => Ok(None),
        RecordFormat::Warc | RecordFormat::Wacz => substitutes.find(capture),
    })?;
    if chosen.n_captures == 0 {
        bail!("no capture fits: see what there is with `perennial status`");
    }
    let n_damaged = Cell::new(0);
    let part = ExportJob { archive: snapshot.archive(), chosen, with_trees, key, now, progress, n_damaged };
    let n_trees = match format {
        RecordFormat::Cdxj => {
            write_cdxj(snapshot, filter, out)?;
            0
        }
        RecordFormat::Warc => part.write_warc("export.warc.gz", &mut CountingWriter::new(&mut *out))?,
        RecordFormat::Wacz => part.write_wacz(out)?,
    };
    out.sync_all()?;
    Ok(ExportReport {
        n_captures: part.chosen.n_captures,
        n_origins: part.chosen.n_origins,
        n_trees,
        n_damaged: part.n_damaged.get(),
        bytes: out.metadata()?.len(),
    })
}

struct ExportJob<'a> {
    archive: &'a Archive,
    chosen: ExportSelection<'a>,
    with_trees: bool,
    key: Option<&'a SigningKey>,
    now: Timestamp,
    progress: &'a dyn Fn(u64),
    /// Captures left out so far.
    n_damaged: Cell<u64>,
}

fn write_cdxj(snapshot: &Snapshot, filter: &CaptureFilter, out: &mut File) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(out);
    let store = snapshot.store();
    let captures = |each: &mut dyn FnMut(Capture) -> anyhow::Result<()>| store.each_capture(filter, each);
    super::index::each_line_sorted(store, captures, |line| writeln!(out, "{line}"))?;
    Ok(out.flush()?)
}

impl ExportJob<'_> {
    /// Writes the chosen exchanges in the archive's order and stores their new index lines. Returns the number of
    /// trees.
    fn write_warc<W: Write>(&self, name: &str, out: &mut CountingWriter<W>) -> anyhow::Result<u64> {
        write_warcinfo(self.archive, name, self.now, out)?;
        let mut source: Option<(String, Option<File>)> = None;
        let mut ids = RecordIds::new(random_seed());
        self.chosen.each_group(|group| {
            if source.as_ref().is_none_or(|(open, _)| *open != group.file) {
                source = Some((group.file.clone(), files::open(&self.archive.warc_dir(), &group.file).ok()));
            }
            let places = match &mut source {
                Some((_, Some(file))) => copy_group(file, &group, out)
                    .with_context(|| format!("cannot copy from {} at {}", group.file, group.offset))?,
                _ => Vec::new(),
            };
            for capture in &group.captures {
                match self.chosen.shown_for(capture)? {
                    Some(shown) => {
                        if let Some(moved) = self.write_substitute(capture, &shown, &mut ids, out)? {
                            let moved = Capture { file: name.to_string(), ..moved };
                            self.chosen.add_line(&record_line(&moved).to_string())?;
                        }
                    }
                    None => self.note_line(name, capture, &places)?,
                }
            }
            (self.progress)(group.captures.len() as u64);
            Ok(())
        })?;
        if self.with_trees { write_trees(&self.chosen, out) } else { Ok(0) }
    }

    /// Stores the index line of a capture at its new offset.
    fn note_line(&self, name: &str, capture: &Capture, places: &[CopiedRecord]) -> anyhow::Result<()> {
        let Some(&CopiedRecord { offset, length, .. }) =
            places.iter().find(|place| place.original_offset == capture.offset)
        else {
            // The other captures of the group are still useful.
            self.n_damaged.set(self.n_damaged.get() + 1);
            return Ok(());
        };
        // A player would show the record itself: an empty page, or a delta as XML.
        if capture.status == Some(304) || capture.is_delta() {
            return Ok(());
        }
        let moved = Capture { offset, length, file: name.to_string(), ..capture.clone() };
        self.chosen.add_line(&record_line(&moved).to_string())
    }

    /// Writes a revisit for a 304 or a left-out version, which other tools follow to the capture valid at that time.
    /// Returns the capture for its index line, or `None` if the target record is damaged. An import skips such
    /// revisits.
    fn write_substitute<W: Write>(
        &self,
        capture: &Capture,
        shown: &Capture,
        ids: &mut RecordIds,
        out: &mut CountingWriter<W>,
    ) -> anyhow::Result<Option<Capture>> {
        let Ok((header, head)) = self.archive.read_heads(&shown.url, &shown.file, shown.offset) else {
            self.n_damaged.set(self.n_damaged.get() + 1);
            return Ok(None);
        };
        let (url, time) = match shown.kind {
            CaptureKind::Revisit => (header.refers_to_target_uri(), header.refers_to_date()),
            _ => (None, None),
        };
        let reason = if capture.is_delta() { "left-out" } else { "304" };
        let profile = RevisitProfile::IdenticalPayloadDigest;
        let (id, digest, head) = (ids.next_id(), Some(shown.digest.as_str()), head.unwrap_or_default());
        let record = NewRecord::revisit(id, capture.time, &capture.url, profile, head.as_bytes(), digest)
            .refers_to(url.unwrap_or(&shown.url), time.unwrap_or(shown.time))
            .field(STANDS_FOR, reason);
        let offset = out.n_bytes;
        WarcWriter::new(&mut *out, 0, Compression::default())?.write(&record)?;
        Ok(Some(Capture {
            kind: CaptureKind::Revisit,
            status: shown.status,
            digest: shown.digest.clone(),
            offset,
            length: out.n_bytes - offset,
            ..capture.clone()
        }))
    }

    fn write_wacz(&self, out: &mut File) -> anyhow::Result<u64> {
        let mut n_trees = 0;
        let mut wacz =
            WaczWriter { zip: zip::ZipWriter::new(io::BufWriter::new(out)), resources: Vec::new() };
        wacz.add(&format!("archive/{WARC_IN_WACZ}"), |out| {
            n_trees = self.write_warc(WARC_IN_WACZ, &mut CountingWriter::new(out))?;
            Ok(())
        })?;
        let mut blocks = String::new();
        wacz.add("indexes/index.cdx.gz", |out| write_index_blocks(&self.chosen, out, &mut blocks))?;
        wacz.add("indexes/index.idx", |out| Ok(out.write_all(blocks.as_bytes())?))?;
        wacz.add("pages/pages.jsonl", |out| write_pages(&self.chosen, out))?;
        wacz.finish(self.archive, self.key, self.now)?;
        Ok(n_trees)
    }
}

fn write_warcinfo<W: Write>(
    archive: &Archive,
    name: &str,
    now: Timestamp,
    out: &mut CountingWriter<W>,
) -> anyhow::Result<()> {
    let facts = warcinfo_facts(archive.settings());
    let record = NewRecord::warcinfo(RecordIds::new(random_seed()).next_id(), now, name, &facts);
    WarcWriter::new(out, 0, Compression::default())?.write(&record)?;
    Ok(())
}

/// The place of a record in an exported file.
#[derive(Clone, Copy, Debug)]
struct CopiedRecord {
    original_offset: u64,
    offset: u64,
    length: u64,
}

/// Copies the sound records of a group. Returns the new place of each relevant record.
fn copy_group<W: Write>(
    file: &mut File,
    group: &ExchangeGroup,
    out: &mut CountingWriter<W>,
) -> anyhow::Result<Vec<CopiedRecord>> {
    if group.file.ends_with(".warc.gz") && is_sound(file, group).unwrap_or(false) {
        file.seek(SeekFrom::Start(group.offset))?;
        let start = out.n_bytes;
        io::copy(&mut file.take(group.length), out)?;
        let moved = |capture: &Capture| CopiedRecord {
            original_offset: capture.offset,
            offset: start + capture.offset - group.offset,
            length: capture.length,
        };
        return Ok(group.captures.iter().map(moved).collect());
    }
    file.seek(SeekFrom::Start(group.offset))?;
    let mut places = Vec::new();
    let mut reader = WarcReader::seekable(file.try_clone()?)?;
    if group.file.ends_with(".zst") {
        // A dictionary precedes the first record.
        file.rewind()?;
        reader = WarcReader::seekable(file.try_clone()?)?;
    }
    while let Some(item) = reader.next_item()? {
        let WarcItem::Record(record) = item else { continue };
        if record.offset() >= group.offset + group.length {
            break;
        }
        if record.offset() < group.offset {
            continue;
        }
        let start = out.n_bytes;
        if let Some(done) = transcribe_record(record, out)? {
            places.push(CopiedRecord {
                original_offset: done.from.offset,
                offset: start,
                length: done.length,
            });
        }
    }
    Ok(places)
}

/// Whether all records of a group can be read to their ends. Damaged records must not be copied, because other tools
/// stop at them.
fn is_sound(file: &mut File, group: &ExchangeGroup) -> io::Result<bool> {
    file.seek(SeekFrom::Start(group.offset))?;
    let mut part = file.take(group.length);
    let mut reader = WarcReader::new(&mut part);
    let mut is_sound = true;
    while let Some(item) = reader.next_item()? {
        is_sound &= match item {
            WarcItem::Record(record) => record.finish()?.is_ok(),
            WarcItem::Damage(_) => false,
        };
    }
    drop(reader);
    Ok(is_sound && part.limit() == 0)
}

struct WaczWriter<W: Write + Seek> {
    zip: zip::ZipWriter<W>,
    resources: Vec<serde_json::Value>,
}

impl<W: Write + Seek> WaczWriter<W> {
    /// Adds an uncompressed entry and records its digest. Readers fetch parts of it by range, which rules out
    /// compression.
    fn add(
        &mut self,
        path: &str,
        fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<String> {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Stored)
            .unix_permissions(0o644)
            .large_file(true);
        self.zip.start_file(path, options)?;
        let mut hashed = HashedWriter { out: &mut self.zip, hasher: Sha256::new(), n_bytes: 0 };
        fill(&mut hashed)?;
        let hash = format!("sha256:{}", data_encoding::HEXLOWER.encode(&hashed.hasher.finalize()));
        let name = path.rsplit('/').next().unwrap_or(path);
        self.resources.push(json!({ "name": name, "path": path, "hash": hash, "bytes": hashed.n_bytes }));
        Ok(hash)
    }

    fn finish(mut self, archive: &Archive, key: Option<&SigningKey>, now: Timestamp) -> anyhow::Result<()> {
        // Whoever has the signed export can check the archive with it later. Validators only know files in folders.
        if let Ok(mut manifest) = File::open(archive.manifest_path()) {
            self.add("perennial/manifest.jsonl", |out| Ok(io::copy(&mut manifest, out).map(drop)?))?;
        }
        let mut package = json!({
            // The specification requires "wacz", but its own validator accepts only this value.
            "profile": "data-package",
            "wacz_version": "1.1.1",
            "software": concat!("perennial/", env!("CARGO_PKG_VERSION")),
            "created": now.to_rfc3339(),
            "resources": self.resources,
        });
        if !archive.settings().archive.title.is_empty() {
            package["title"] = archive.settings().archive.title.clone().into();
        }
        let text = serde_json::to_string_pretty(&package)?;
        let hash = self.add("datapackage.json", |out| Ok(out.write_all(text.as_bytes())?))?;
        let mut digest = json!({ "path": "datapackage.json", "hash": hash });
        if let Some(key) = key {
            digest["signedData"] = key.signed_data(&hash, now)?;
        }
        let text = serde_json::to_string_pretty(&digest)?;
        self.add("datapackage-digest.json", |out| Ok(out.write_all(text.as_bytes())?))?;
        self.zip.finish()?.flush()?;
        Ok(())
    }
}

/// Writes the sorted lines in gzip members of [`LINES_PER_BLOCK`], and for each member a line with its offset.
fn write_index_blocks(
    chosen: &ExportSelection<'_>,
    out: &mut dyn Write,
    blocks: &mut String,
) -> anyhow::Result<()> {
    blocks.push_str("!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}\n");
    let mut lines: Vec<String> = Vec::with_capacity(LINES_PER_BLOCK);
    let mut offset = 0;
    chosen.each_line(|line| {
        lines.push(line.to_string());
        if lines.len() == LINES_PER_BLOCK {
            offset += write_index_block(&lines, offset, out, blocks)?;
            lines.clear();
        }
        Ok(())
    })?;
    if !lines.is_empty() {
        write_index_block(&lines, offset, out, blocks)?;
    }
    Ok(())
}

/// Returns the member's length.
fn write_index_block(
    lines: &[String],
    offset: usize,
    out: &mut dyn Write,
    blocks: &mut String,
) -> anyhow::Result<usize> {
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    lines.iter().try_for_each(|line| writeln!(member, "{line}"))?;
    let member = member.finish()?;
    out.write_all(&member)?;
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&member));
    let place = json!({ "offset": offset, "length": member.len(), "digest": format!("sha256:{digest}"), "filename": "index.cdx.gz" });
    let prefix = lines.first().and_then(|line| line.split('{').next()).unwrap_or_default();
    blocks.push_str(&format!("{prefix}{place}\n"));
    Ok(member.len())
}

/// Writes the selected HTML captures, from which a reader can start.
fn write_pages(chosen: &ExportSelection<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(out);
    writeln!(out, "{}", json!({ "format": "json-pages-1.0", "id": "pages", "title": "All Pages" }))?;
    chosen.each_page(|id, url, time| {
        let page = json!({ "id": id.to_string(), "url": url, "ts": time.to_rfc3339() });
        Ok(writeln!(out, "{page}")?)
    })?;
    Ok(out.flush()?)
}

struct CountingWriter<W> {
    out: W,
    n_bytes: u64,
}

impl<W> CountingWriter<W> {
    fn new(out: W) -> CountingWriter<W> {
        CountingWriter { out, n_bytes: 0 }
    }
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.n_bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

struct HashedWriter<'a> {
    out: &'a mut dyn Write,
    hasher: Sha256,
    n_bytes: u64,
}

impl Write for HashedWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.hasher.update(&bytes[..n]);
        self.n_bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
