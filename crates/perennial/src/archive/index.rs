//! Captures -> sorted CDXJ files in `index/`, merged as they grow, never loaded whole.
//!
//! Like a log-structured merge tree: captures that are in the state and in no file yet (the tail) become a
//! sorted run when a writer closes; runs of like size are merged into one. Each run holds the captures
//! numbered `first..=last`, and together the runs hold all up to the tail. A lookup is one binary search per
//! run. A run is complete on disk before the state names it, so a crash leaves at most a file to sweep up.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rusqlite::params;

use super::{Archive, sync_dir};
use crate::store::{Capture, Kind, Store};
use perennial_core::cdxj::{self, CdxjLine, SortedCdxj};
use perennial_core::surt::KeyRange;

/// A run is merged with the one before it unless that one is so many times larger.
const GROWTH: u64 = 4;

/// One sorted file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Its name in `index/`.
    pub name: String,
    /// Number of the first capture in it.
    pub first_capture: i64,
    /// Number of the last capture in it.
    pub last_capture: i64,
    /// Its length.
    pub bytes: u64,
}

/// The index line of a capture, as `cdxj-indexer` would write it.
pub fn line_of(capture: &Capture) -> String {
    CdxjLine {
        key: capture.surt.clone(),
        timestamp: capture.time.to_digits14(),
        url: capture.url.clone(),
        mime: match capture.kind {
            Kind::Revisit => Some("warc/revisit".to_string()),
            _ => capture.mime.clone(),
        },
        status: capture.status.map(|status| status.to_string()),
        digest: Some(capture.digest.clone()),
        length: Some(capture.length),
        offset: Some(capture.offset),
        filename: Some(capture.file.clone()),
        extra: Vec::new(),
    }
    .to_string()
}

/// The runs that the state names, oldest captures first.
pub fn runs(store: &Store) -> anyhow::Result<Vec<Run>> {
    let mut statement = store
        .connection()
        .prepare("SELECT name, first_capture, last_capture, bytes FROM runs ORDER BY first_capture")?;
    let rows = statement.query_map([], |row| {
        Ok(Run {
            name: row.get(0)?,
            first_capture: row.get(1)?,
            last_capture: row.get(2)?,
            bytes: row.get::<_, i64>(3)? as u64,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Writes the tail as a new run and merges runs of like size.
pub fn flush_tail(store: &mut Store, dir: &Path) -> anyhow::Result<()> {
    let mut runs = runs(store)?;
    let first = runs.last().map_or(1, |run| run.last_capture + 1);
    let last: i64 =
        store.connection().query_row("SELECT coalesce(max(id), 0) FROM captures", [], |row| row.get(0))?;
    if last < first {
        return Ok(());
    }
    let path = run_path(dir, first, last);
    write_run(&path, |out| {
        each_line_sorted(
            |each| store.each_capture_numbered(first, last, each),
            |line| writeln!(out, "{line}"),
        )
    })?;
    runs.push(adopt(store, &path, first, last, &[])?);
    merge_alike(store, dir, runs)
}

/// Removes files of the index's own naming that the state does not know: left by a crash.
pub fn sweep(store: &Store, dir: &Path) -> anyhow::Result<()> {
    let runs = runs(store)?;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_run_name(&name) && !runs.iter().any(|run| run.name == name) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn is_run_name(name: &str) -> bool {
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    name.strip_suffix(".cdxj")
        .and_then(|stem| stem.split_once('-'))
        .is_some_and(|(a, b)| [a, b].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit())))
}

fn run_path(dir: &Path, first: i64, last: i64) -> PathBuf {
    dir.join(format!("{first:012}-{last:012}.cdxj"))
}

/// Captures come by key and time; lines with both alike still have to be sorted as bytes.
pub(super) fn each_line_sorted(
    source: impl FnOnce(&mut dyn FnMut(Capture) -> anyhow::Result<()>) -> anyhow::Result<()>,
    mut emit: impl FnMut(&str) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut alike: Vec<String> = Vec::new();
    let mut place = (String::new(), 0);
    let mut emit_all = |alike: &mut Vec<String>| -> io::Result<()> {
        alike.sort_unstable();
        alike.drain(..).try_for_each(|line| emit(&line))
    };
    source(&mut |capture| {
        let here = (capture.surt.clone(), capture.time.as_secs());
        if here != place {
            emit_all(&mut alike)?;
            place = here;
        }
        alike.push(line_of(&capture));
        Ok(())
    })?;
    Ok(emit_all(&mut alike)?)
}

/// Writes a run beside its place, syncs it and puts it there.
fn write_run(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let beside = path.with_added_extension("tmp");
    let context = || format!("cannot write {}", path.display());
    let mut out = BufWriter::with_capacity(1 << 18, File::create(&beside).with_context(context)?);
    fill(&mut out).with_context(context)?;
    out.into_inner().map_err(io::IntoInnerError::into_error).with_context(context)?.sync_all()?;
    std::fs::rename(&beside, path).with_context(context)?;
    Ok(sync_dir(path.parent().unwrap_or(Path::new(".")))?)
}

/// Names the run in the state, in place of those that were merged into it, and removes their files.
fn adopt(store: &mut Store, path: &Path, first: i64, last: i64, merged: &[Run]) -> anyhow::Result<Run> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = std::fs::metadata(path)?.len();
    let transaction = store.connection_mut().transaction()?;
    for run in merged {
        transaction.execute("DELETE FROM runs WHERE name = ?1", [&run.name])?;
    }
    transaction.execute(
        "INSERT OR REPLACE INTO runs (name, first_capture, last_capture, bytes) VALUES (?1, ?2, ?3, ?4)",
        params![name, first, last, bytes as i64],
    )?;
    transaction.commit()?;
    for run in merged {
        // A reader that has it open keeps it; one that comes too late asks the state again.
        let _ = std::fs::remove_file(path.with_file_name(&run.name));
    }
    Ok(Run { name, first_capture: first, last_capture: last, bytes })
}

fn merge_alike(store: &mut Store, dir: &Path, mut runs: Vec<Run>) -> anyhow::Result<()> {
    let mut from = runs.len() - 1;
    let mut bytes = runs[from].bytes;
    while from > 0 && runs[from - 1].bytes <= bytes.saturating_mul(GROWTH) {
        from -= 1;
        bytes += runs[from].bytes;
    }
    let merged = runs.split_off(from);
    let (Some(first), Some(last)) = (merged.first(), merged.last()) else { return Ok(()) };
    if merged.len() < 2 {
        return Ok(());
    }
    let path = run_path(dir, first.first_capture, last.last_capture);
    write_run(&path, |out| {
        for line in merged_lines(dir, &merged)? {
            writeln!(out, "{}", line?)?;
        }
        Ok(())
    })?;
    adopt(store, &path, first.first_capture, last.last_capture, &merged)?;
    Ok(())
}

/// The lines of several runs as one sorted sequence: one line of each in memory.
pub fn merged_lines(dir: &Path, runs: &[Run]) -> anyhow::Result<impl Iterator<Item = io::Result<String>>> {
    let mut sources = Vec::new();
    for run in runs {
        let path = dir.join(&run.name);
        let file = File::open(&path).with_context(|| {
            format!("cannot open {}: make it again with `perennial verify --repair`", path.display())
        })?;
        sources.push(cdxj::lines_of(file));
    }
    Ok(cdxj::merge(sources))
}

/// All index lines of a stretch of keys: a binary search in each run, and the tail from the state.
pub fn lookup(archive: &Archive, store: &Store, range: &KeyRange) -> anyhow::Result<Vec<String>> {
    // One read transaction, so that runs and tail fit; a run that was merged away is looked for anew.
    for attempt in 0.. {
        let transaction = store.connection().unchecked_transaction()?;
        match lookup_once(archive, store, range) {
            Err(error) if attempt < 3 && is_gone(&error) => drop(transaction),
            found => return found,
        }
    }
    Ok(Vec::new())
}

fn lookup_once(archive: &Archive, store: &Store, range: &KeyRange) -> anyhow::Result<Vec<String>> {
    let runs = runs(store)?;
    let mut lines = Vec::new();
    for run in &runs {
        let mut sorted = SortedCdxj::new(File::open(archive.index_dir().join(&run.name))?)?;
        for line in sorted.range(range)? {
            lines.push(line?);
        }
    }
    let first = runs.last().map_or(1, |run| run.last_capture + 1);
    store.each_capture_numbered(first, i64::MAX, |capture| {
        let line = line_of(&capture);
        if range.contains(line.as_bytes()) {
            lines.push(line);
        }
        Ok(())
    })?;
    lines.sort_unstable();
    Ok(lines)
}

fn is_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}
