//! A part of the archive -> one file that other tools read: WARC, CDXJ, or WACZ (1.1.1) with everything inside.
//!
//! An exchange goes whole: response, request, metadata, what was derived. A revisit whose payload was captured
//! outside the part takes that payload's record along, or it could not be replayed. Memory is constant:
//! what is chosen and the lines of the new index wait in temporary tables of SQLite.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use anyhow::{Context, bail};
use perennial_core::time::Timestamp;
use perennial_core::warc::{Compression, Item, NewRecord, RecordIds, WarcReader, WarcWriter};
use rusqlite::params;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;

use super::index::line_of;
use super::transcribe::transcribe;
use super::trees::write_trees;
use super::writer::random_seed;
use super::{Archive, files};
use crate::store::{Capture, Filter, Store};

/// Name of the WARC file inside a WACZ.
const WARC_IN_WACZ: &str = "data.warc.gz";

/// Lines in one compressed block of a WACZ's index, as other tools make them.
const LINES_PER_BLOCK: usize = 3_000;

/// What an export is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    /// A zip with WARC, index and page list, for ReplayWeb.page and others.
    Wacz,
    /// One WARC file, a gzip member for each record.
    Warc,
    /// The index lines, with the names of this archive's files.
    Cdxj,
}

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// Captures that were asked for.
    pub n_captures: u64,
    /// Captures outside the part whose payload revisits in it need.
    pub n_origins: u64,
    /// Trees of blocks, as `urn:vixml:` records.
    pub n_trees: u64,
    /// Length of the file.
    pub bytes: u64,
}

/// Writes the captures that the filter lets through to `out`, a new file, with the blocks of each analysed page if
/// asked for. `progress` hears of captures written.
pub fn export(
    archive: &Archive,
    format: Format,
    filter: &Filter,
    with_trees: bool,
    now: Timestamp,
    out: &mut File,
    progress: &dyn Fn(u64),
) -> anyhow::Result<ExportReport> {
    let store = archive.store()?;
    let mut report = choose(&store, filter)?;
    if report.n_captures == 0 {
        bail!("no capture fits: see what there is with `perennial info`");
    }
    match format {
        Format::Cdxj => write_cdxj(&store, filter, out)?,
        Format::Warc => {
            let mut counted = Counted::new(&mut *out);
            write_warc(archive, &store, "export.warc.gz", now, &mut counted, progress)?;
            report.n_trees = if with_trees { write_trees(&store, &mut counted)? } else { 0 };
        }
        Format::Wacz => report.n_trees = write_wacz(archive, &store, with_trees, now, out, progress)?,
    }
    out.sync_all()?;
    report.bytes = out.metadata()?.len();
    Ok(report)
}

/// Fills the temporary table `chosen` with capture numbers.
fn choose(store: &Store, filter: &Filter) -> anyhow::Result<ExportReport> {
    let connection = store.connection();
    connection.execute_batch(
        "DROP TABLE IF EXISTS temp.chosen; DROP TABLE IF EXISTS temp.lines;
         CREATE TEMP TABLE chosen (capture INTEGER PRIMARY KEY, is_asked_for INTEGER NOT NULL);
         CREATE TEMP TABLE lines (line TEXT NOT NULL);
         BEGIN",
    )?;
    let mut report = ExportReport::default();
    store.each_capture(filter, |capture| {
        connection.prepare_cached("INSERT INTO chosen VALUES (?1, 1)")?.execute([capture.id])?;
        report.n_captures += 1;
        Ok(())
    })?;
    report.n_origins = connection.execute(
        "INSERT OR IGNORE INTO chosen SELECT DISTINCT coalesce(
             (SELECT v.origin FROM versions v WHERE v.page = c.page AND v.digest = c.digest),
             (SELECT v.origin FROM versions v WHERE v.digest = c.digest AND v.origin IS NOT NULL LIMIT 1)) AS o, 0
         FROM chosen JOIN captures c ON c.id = chosen.capture WHERE c.kind = 1 AND o IS NOT NULL",
        [],
    )? as u64;
    connection.execute_batch("COMMIT")?;
    Ok(report)
}

fn write_cdxj(store: &Store, filter: &Filter, out: &mut File) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(out);
    super::index::each_line_sorted(|each| store.each_capture(filter, each), |line| writeln!(out, "{line}"))?;
    Ok(out.flush()?)
}

/// Writes the chosen exchanges, in the order in which the archive has them, and notes their new index lines.
fn write_warc<W: Write>(
    archive: &Archive,
    store: &Store,
    name: &str,
    now: Timestamp,
    out: &mut Counted<W>,
    progress: &dyn Fn(u64),
) -> anyhow::Result<()> {
    write_warcinfo(archive, name, now, out)?;
    let mut source: Option<(String, File)> = None;
    store.connection().execute_batch("BEGIN")?;
    each_group(store, |group| {
        let file = match &mut source {
            Some((open, file)) if *open == group.file => file,
            _ => {
                let file = files::open(&archive.warc_dir(), &group.file)
                    .with_context(|| format!("cannot open {} of the archive", group.file))?;
                &mut source.insert((group.file.clone(), file)).1
            }
        };
        let places = copy_group(file, &group, out)
            .with_context(|| format!("cannot copy from {} at {}", group.file, group.offset))?;
        for capture in &group.captures {
            let Some(&(_, offset, length)) = places.iter().find(|place| place.0 == capture.offset) else {
                bail!("{} has no sound record at {}: see `perennial verify`", group.file, capture.offset);
            };
            // A player would show the 304 itself, an empty page; without its line it shows the capture before,
            // which is the same content.
            if capture.status == Some(304) {
                continue;
            }
            let moved = Capture { offset, length, file: name.to_string(), ..capture.clone() };
            let mut statement = store.connection().prepare_cached("INSERT INTO lines VALUES (?1)")?;
            statement.execute([line_of(&moved)])?;
        }
        progress(group.captures.len() as u64);
        Ok(())
    })?;
    store.connection().execute_batch("COMMIT")?;
    Ok(())
}

fn write_warcinfo<W: Write>(
    archive: &Archive,
    name: &str,
    now: Timestamp,
    out: &mut Counted<W>,
) -> anyhow::Result<()> {
    let settings = archive.settings();
    let mut facts = vec![
        ("software", concat!("perennial/", env!("CARGO_PKG_VERSION"))),
        ("format", "WARC File Format 1.1"),
    ];
    if !settings.warc.operator.is_empty() {
        facts.push(("operator", &settings.warc.operator));
    }
    if !settings.archive.title.is_empty() {
        facts.push(("isPartOf", &settings.archive.title));
    }
    let record = NewRecord::warcinfo(RecordIds::new(random_seed()).next_id(), now, name, &facts);
    WarcWriter::new(out, 0, Compression::default())?.write(&record)?;
    Ok(())
}

/// Records that belong together, and the captures among them that go into the index.
struct Group {
    file: String,
    offset: u64,
    length: u64,
    captures: Vec<Capture>,
}

fn each_group(store: &Store, mut each: impl FnMut(Group) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut statement = store.connection().prepare(
        "SELECT DISTINCT c.file, c.group_offset, c.group_length, f.name FROM chosen
         JOIN captures c ON c.id = chosen.capture JOIN files f ON f.id = c.file ORDER BY c.file, c.group_offset",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (offset, length) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64);
        let file: String = row.get(3)?;
        // What was derived from a capture goes with it, so the index of the export names it too.
        let mut captures = store.captures_in(&file, offset, 64)?;
        captures.retain(|capture| capture.group_offset == offset);
        each(Group { file, offset, length, captures })?;
    }
    Ok(())
}

/// Copies a group; gives old offset, new offset and new length of each record in it that matters.
fn copy_group<W: Write>(
    file: &mut File,
    group: &Group,
    out: &mut Counted<W>,
) -> anyhow::Result<Vec<(u64, u64, u64)>> {
    file.seek(SeekFrom::Start(group.offset))?;
    if group.file.ends_with(".warc.gz") {
        let start = out.n_bytes;
        let copied = io::copy(&mut file.take(group.length), out)?;
        if copied < group.length {
            bail!("the file is shorter than the state says: use `perennial verify --repair`");
        }
        let moved =
            |capture: &Capture| (capture.offset, start + capture.offset - group.offset, capture.length);
        return Ok(group.captures.iter().map(moved).collect());
    }
    let mut places = Vec::new();
    let mut reader = WarcReader::seekable(file.try_clone()?)?;
    if group.file.ends_with(".zst") {
        // The dictionary, if there is one, stands before the first record.
        file.rewind()?;
        reader = WarcReader::seekable(file.try_clone()?)?;
    }
    while let Some(item) = reader.next_item()? {
        let Item::Record(record) = item else { continue };
        if record.offset() >= group.offset + group.length {
            break;
        }
        if record.offset() < group.offset {
            continue;
        }
        let start = out.n_bytes;
        if let Some(done) = transcribe(record, out)? {
            places.push((done.from.offset, start, done.length));
        }
    }
    Ok(places)
}

fn write_wacz(
    archive: &Archive,
    store: &Store,
    with_trees: bool,
    now: Timestamp,
    out: &mut File,
    progress: &dyn Fn(u64),
) -> anyhow::Result<u64> {
    let mut n_trees = 0;
    let mut wacz = Wacz { zip: zip::ZipWriter::new(io::BufWriter::new(out)), resources: Vec::new() };
    wacz.add(&format!("archive/{WARC_IN_WACZ}"), |out| {
        let mut counted = Counted::new(out);
        write_warc(archive, store, WARC_IN_WACZ, now, &mut counted, progress)?;
        if with_trees {
            n_trees = write_trees(store, &mut counted)?;
        }
        Ok(())
    })?;
    let mut blocks = String::new();
    wacz.add("indexes/index.cdx.gz", |out| write_index_blocks(store, out, &mut blocks))?;
    wacz.add("indexes/index.idx", |out| Ok(out.write_all(blocks.as_bytes())?))?;
    wacz.add("pages/pages.jsonl", |out| write_pages(store, out))?;
    wacz.finish(archive, now)?;
    Ok(n_trees)
}

/// A WACZ under construction.
struct Wacz<W: Write + Seek> {
    zip: zip::ZipWriter<W>,
    resources: Vec<serde_json::Value>,
}

impl<W: Write + Seek> Wacz<W> {
    /// Adds a stored entry and notes its digest; readers fetch parts of it by range, so nothing is deflated.
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

    fn finish(mut self, archive: &Archive, now: Timestamp) -> anyhow::Result<()> {
        let mut package = json!({
            // The specification wants "wacz"; its own validator takes only this.
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
        let digest = json!({ "path": "datapackage.json", "hash": hash });
        let text = serde_json::to_string_pretty(&digest)?;
        self.add("datapackage-digest.json", |out| Ok(out.write_all(text.as_bytes())?))?;
        self.zip.finish()?.flush()?;
        Ok(())
    }
}

/// The sorted lines in gzip members of some thousand, and for each member a line that says where it is.
fn write_index_blocks(store: &Store, out: &mut dyn Write, blocks: &mut String) -> anyhow::Result<()> {
    blocks.push_str("!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}\n");
    let mut statement = store.connection().prepare("SELECT line FROM lines ORDER BY line")?;
    let mut rows = statement.query([])?;
    let mut offset = 0;
    loop {
        let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        let mut first = None;
        for _ in 0..LINES_PER_BLOCK {
            let Some(row) = rows.next()? else { break };
            let line: String = row.get(0)?;
            writeln!(member, "{line}")?;
            first.get_or_insert(line);
        }
        let Some(first) = first else { return Ok(()) };
        let member = member.finish()?;
        out.write_all(&member)?;
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&member));
        let place = json!({ "offset": offset, "length": member.len(), "digest": format!("sha256:{digest}"), "filename": "index.cdx.gz" });
        let prefix = first.split('{').next().unwrap_or_default();
        blocks.push_str(&format!("{prefix}{place}\n"));
        offset += member.len();
    }
}

/// The HTML captures that were asked for: what a reader can start from.
fn write_pages(store: &Store, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(out);
    writeln!(out, "{}", json!({ "format": "json-pages-1.0", "id": "pages", "title": "All Pages" }))?;
    let mut statement = store.connection().prepare(
        "SELECT c.id, p.url, c.time FROM chosen JOIN captures c ON c.id = chosen.capture JOIN pages p ON p.id = c.page
         WHERE is_asked_for AND c.kind <= 1 AND c.status = 200 AND p.mime IN ('text/html', 'application/xhtml+xml')
         ORDER BY c.time, c.id",
    )?;
    let mut rows = statement.query(params![])?;
    while let Some(row) = rows.next()? {
        let (id, url, millis): (i64, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let ts = Timestamp::from_millis(millis).to_rfc3339();
        writeln!(out, "{}", json!({ "id": id.to_string(), "url": url, "ts": ts }))?;
    }
    Ok(out.flush()?)
}

/// Counts what goes through.
struct Counted<W> {
    out: W,
    n_bytes: u64,
}

impl<W> Counted<W> {
    fn new(out: W) -> Counted<W> {
        Counted { out, n_bytes: 0 }
    }
}

impl<W: Write> Write for Counted<W> {
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
