//! Captures -> sorted CDXJ files in `index/`, merged as they grow, never loaded whole.
//!
//! The index works like a log-structured merge tree. The tail is the captures that are in the state but in no file yet.
//! From time to time the tail becomes a sorted run, and runs of similar size are merged (`archive/indexer.rs` decides
//! when). Each run contains the captures numbered `first..=last`. Together the runs contain all captures before the
//! tail. A lookup is one binary search per run and one query of the state. A run is complete on disk before the state
//! names it. A crash therefore leaves at most one file to remove.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use perennial_warc::cdxj::{self, CdxjLine, SortedCdxj};
use perennial_warc::request::CapturedRequest;
use perennial_warc::surt::KeyRange;

use super::content::index_mime;
use super::substitute::Substitutes;
use super::writer::DELTA_MIME;
use super::{Snapshot, sync_dir};
use crate::store::{Capture, CaptureKind, IndexRun, Store};

/// A run is merged with the one before it unless that one is this many times larger.
const GROWTH: u64 = 4;

/// The extra field of a line that names a substitute record: the time of that record.
pub(super) const SHOWS: &str = "shows";

/// The index line of a capture's own record, as `cdxj-indexer` would write it.
pub(super) fn record_line(capture: &Capture) -> CdxjLine {
    let request = CapturedRequest::parse(&capture.url);
    CdxjLine {
        key: capture.surt.clone(),
        timestamp: capture.time.to_digits14(),
        url: request.map_or(&*capture.url, |request| request.url).to_string(),
        mime: match capture.kind {
            CaptureKind::Revisit => Some("warc/revisit".to_string()),
            _ => capture.mime.clone(),
        },
        status: capture.status.map(|status| status.to_string()),
        digest: Some(capture.digest.clone()),
        length: Some(capture.length),
        offset: Some(capture.offset),
        filename: Some(capture.file.clone()),
        extra: request.map(request_fields).unwrap_or_default(),
    }
}

/// The method and the body of a request other than GET.
fn request_fields(request: CapturedRequest<'_>) -> Vec<(String, String)> {
    let mut fields = vec![("method".to_string(), request.method.to_string())];
    if !request.body.is_empty() {
        fields.push(("requestBody".to_string(), request.query()));
    }
    fields
}

/// The index line of a capture, for its record or its substitute.
pub(super) fn index_line(capture: &Capture, substitutes: &mut Substitutes<'_>) -> anyhow::Result<CdxjLine> {
    let Some(shown) = substitutes.find(capture)? else { return Ok(record_line(capture)) };
    let shows = shown.time.to_digits14();
    Ok(CdxjLine {
        timestamp: capture.time.to_digits14(),
        extra: vec![(SHOWS.to_string(), shows)],
        ..record_line(&shown)
    })
}

/// Whether the line belongs to a capture without a displayable record. The substitute that it names depends on the
/// captures present when the run was written.
pub(super) fn is_substitute(line: &CdxjLine) -> bool {
    let names_another = line.extra.iter().any(|(name, _)| name == SHOWS);
    let is_delta = line.mime.as_deref() == index_mime(DELTA_MIME).as_deref();
    names_another || is_delta || line.is_revisit() && line.status.as_deref() == Some("304")
}

/// The number of the first capture that is in no run.
pub(super) fn tail_start(runs: &[IndexRun]) -> i64 {
    runs.last().map_or(1, |run| run.last_capture + 1)
}

/// Writes the tail as a new run and merges runs of similar size, in the calling thread.
pub(super) fn write_tail_run(store: &mut Store, dir: &Path) -> anyhow::Result<()> {
    let (first, last) = (tail_start(&store.runs()?), store.last_capture_number()?);
    if first <= last {
        let run = write_run_of_captures(store, dir, first, last)?;
        register_run(store, dir, &run, &[])?;
    }
    loop {
        let runs = store.runs()?;
        let alike = runs_to_merge(&runs);
        if alike.is_empty() {
            return Ok(());
        }
        let run = merge_or_write(store, dir, alike)?;
        register_run(store, dir, &run, alike)?;
    }
}

/// Merges runs into one. If a run is unreadable, all of them are rewritten from the state, which has all their
/// captures.
pub(super) fn merge_or_write(store: &Store, dir: &Path, runs: &[IndexRun]) -> anyhow::Result<IndexRun> {
    match (merge(dir, runs), runs) {
        (Err(_), [first, .., last]) => {
            write_run_of_captures(store, dir, first.first_capture, last.last_capture)
        }
        (merged, _) => merged,
    }
}

/// Writes the captures numbered `first..=last` as a run. The state does not name it yet.
pub(super) fn write_run_of_captures(
    store: &Store,
    dir: &Path,
    first: i64,
    last: i64,
) -> anyhow::Result<IndexRun> {
    write_run(dir, first, last, |out| {
        each_line_sorted(
            store,
            |each| store.each_capture_numbered(first, last, each),
            |line| writeln!(out, "{line}"),
        )
    })
}

/// Merges runs into a new run. The state does not name it yet.
fn merge(dir: &Path, runs: &[IndexRun]) -> anyhow::Result<IndexRun> {
    let (first, last) = match runs {
        [first, .., last] => (first.first_capture, last.last_capture),
        _ => anyhow::bail!("one run cannot be merged"),
    };
    write_run(dir, first, last, |out| {
        for line in merged_lines(dir, runs)? {
            writeln!(out, "{}", line?)?;
        }
        Ok(())
    })
}

/// The newest runs, if they should be merged. None if each run is much larger than all later runs together. The number
/// of runs is therefore about the logarithm of the archive's size to the base [`GROWTH`].
pub(super) fn runs_to_merge(runs: &[IndexRun]) -> &[IndexRun] {
    let Some(last) = runs.last() else { return &[] };
    let mut from = runs.len() - 1;
    let mut bytes = last.bytes;
    while from > 0 && runs[from - 1].bytes <= bytes.saturating_mul(GROWTH) {
        from -= 1;
        bytes += runs[from].bytes;
    }
    let alike = &runs[from..];
    if alike.len() < 2 { &[] } else { alike }
}

/// Replaces the merged runs in the state with the new one, and removes their files.
pub(super) fn register_run(
    store: &mut Store,
    dir: &Path,
    run: &IndexRun,
    merged: &[IndexRun],
) -> anyhow::Result<()> {
    store.put_run(run, merged)?;
    for run in merged {
        // A reader that has the file open can still read it. A later reader queries its state instead.
        let _ = fs::remove_file(dir.join(&run.name));
    }
    Ok(())
}

/// Removes runs with missing or changed files from the state, and all later runs. Their captures join the tail again.
/// Returns the first such run. Until a new run exists, readers use the state.
pub(super) fn forget_lost_runs(store: &mut Store, dir: &Path) -> anyhow::Result<Option<IndexRun>> {
    for run in store.runs()? {
        if open_run(dir, &run)?.is_none() {
            store.forget_runs_from(&run)?;
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// Writes the whole index again from the state.
pub(super) fn rewrite(store: &mut Store, dir: &Path) -> anyhow::Result<()> {
    if let Some(first) = store.runs()?.first() {
        store.forget_runs_from(first)?;
    }
    remove_unnamed_runs(store, dir)?;
    write_tail_run(store, dir)
}

/// Removes index files that the state does not name; a crash left them.
pub(super) fn remove_unnamed_runs(store: &Store, dir: &Path) -> anyhow::Result<()> {
    let runs = store.runs()?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_run_name(&name) && !runs.iter().any(|run| run.name == name) {
            fs::remove_file(entry.path())?;
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

/// Sorts by bytes the lines that have the same key and time. The state returns captures by key and time only.
pub(super) fn each_line_sorted(
    store: &Store,
    source: impl FnOnce(&mut dyn FnMut(Capture) -> anyhow::Result<()>) -> anyhow::Result<()>,
    mut emit: impl FnMut(&str) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut alike: Vec<String> = Vec::new();
    let mut place = (String::new(), 0);
    let mut substitutes = Substitutes::new(store);
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
        alike.push(index_line(&capture, &mut substitutes)?.to_string());
        Ok(())
    })?;
    Ok(emit_all(&mut alike)?)
}

/// Writes a run to a temporary file, syncs it and renames it.
fn write_run(
    dir: &Path,
    first_capture: i64,
    last_capture: i64,
    fill: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
) -> anyhow::Result<IndexRun> {
    let name = format!("{first_capture:012}-{last_capture:012}.cdxj");
    let path: PathBuf = dir.join(&name);
    let beside = path.with_added_extension("tmp");
    let context = || format!("cannot write {}", path.display());
    let mut out = BufWriter::with_capacity(1 << 18, File::create(&beside).with_context(context)?);
    fill(&mut out).with_context(context)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error).with_context(context)?;
    file.sync_all().with_context(context)?;
    fs::rename(&beside, &path).with_context(context)?;
    sync_dir(dir).with_context(context)?;
    Ok(IndexRun { name, first_capture, last_capture, bytes: file.metadata()?.len() })
}

/// Merges the lines of several runs in sorted order. Memory contains one line per run.
fn merged_lines(dir: &Path, runs: &[IndexRun]) -> anyhow::Result<impl Iterator<Item = io::Result<String>>> {
    let mut sources = Vec::new();
    for run in runs {
        let path = dir.join(&run.name);
        let file = File::open(&path).with_context(|| {
            format!("cannot open {}: make it again with `perennial verify --repair`", path.display())
        })?;
        sources.push(cdxj::lines(file));
    }
    Ok(cdxj::merge(sources))
}

impl Snapshot {
    /// The sorted index lines of a range of keys, without duplicates. Memory contains one line per run, and the tail.
    pub fn lines(
        &self,
        range: &KeyRange,
    ) -> anyhow::Result<impl Iterator<Item = io::Result<String>> + use<>> {
        let runs = self.store().runs()?;
        let mut sources: Vec<Box<dyn Iterator<Item = io::Result<String>>>> = Vec::new();
        let mut tail = Vec::new();
        for run in &runs {
            match open_run(&self.archive().index_dir(), run)? {
                Some(file) => sources.push(Box::new(SortedCdxj::new(file)?.range(range)?)),
                None => self.look_up_in_state(range, run.first_capture, run.last_capture, &mut tail)?,
            }
        }
        self.look_up_in_state(range, tail_start(&runs), i64::MAX, &mut tail)?;
        tail.sort_unstable();
        sources.push(Box::new(tail.into_iter().map(Ok)));
        Ok(cdxj::merge(sources))
    }

    fn look_up_in_state(
        &self,
        range: &KeyRange,
        from: i64,
        to: i64,
        lines: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        let n_captures = self.store().last_capture_number()?.min(to) - from + 1;
        if n_captures <= 0 {
            return Ok(());
        }
        let mut substitutes = Substitutes::new(self.store());
        let take = |capture: Capture| {
            let line = index_line(&capture, &mut substitutes)?.to_string();
            if range.contains(line.as_bytes()) {
                lines.push(line);
            }
            Ok(())
        };
        // The tail is short. If the pages of the range have more captures than the tail, reading the tail is faster.
        match self.store().has_more_captures_in_keys(range, n_captures as u64)? {
            true => self.store().each_capture_numbered(from, to, take),
            false => self.store().each_capture_in_keys(range, from, to, take),
        }
    }
}

/// Opens the run's file; `None` if a merge has replaced it since.
fn open_run(dir: &Path, run: &IndexRun) -> io::Result<Option<File>> {
    match File::open(dir.join(&run.name)) {
        Ok(file) if file.metadata()?.len() == run.bytes => Ok(Some(file)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(at: i64, bytes: u64) -> IndexRun {
        IndexRun { name: format!("{at}"), first_capture: at, last_capture: at, bytes }
    }

    proptest! {
        /// For any sizes of new runs, few runs remain and each byte is rewritten few times.
        #[test]
        fn runs_presence_few_and_rewriting_cheap(sizes in prop::collection::vec(1u64..1000, 1..300)) {
            let mut runs: Vec<IndexRun> = Vec::new();
            let (mut n_bytes, mut n_written) = (0u64, 0u64);
            for (at, bytes) in (1..).zip(sizes) {
                runs.push(run(at, bytes));
                n_bytes += bytes;
                loop {
                    let alike = runs_to_merge(&runs);
                    if alike.is_empty() {
                        break;
                    }
                    let merged: u64 = alike.iter().map(|run| run.bytes).sum();
                    let from = runs.len() - alike.len();
                    n_written += merged;
                    runs.truncate(from);
                    runs.push(run(at, merged));
                }
                prop_assert!(runs.len() as f64 <= 1.0 + (n_bytes as f64).log(GROWTH as f64).ceil());
            }
            // Each time a byte is rewritten, its run has grown by at least a quarter.
            prop_assert!(n_written as f64 <= n_bytes as f64 * (1.0 + (n_bytes as f64).log(1.25)));
        }
    }
}
