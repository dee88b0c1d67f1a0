//! Captures -> sorted CDXJ files in `index/`, merged as they grow, never loaded whole.
//!
//! Like a log-structured merge tree: captures that are in the state and in no file yet (the tail) become a
//! sorted run now and then; runs of like size are merged into one (`archive/indexer.rs` says when). Each run holds the
//! captures numbered `first..=last`, and together the runs hold all up to the tail. A lookup is one binary search per
//! run and one question to the state. A run is complete on disk before the state names it, so a crash leaves at most a
//! file to sweep up.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use perennial_warc::cdxj::{self, CdxjLine, SortedCdxj};
use perennial_warc::surt::KeyRange;

use super::content::index_mime;
use super::substitute::Substitutes;
use super::writer::DELTA_MIME;
use super::{Snapshot, sync_dir};
use crate::store::{Capture, CaptureKind, IndexRun, Store};

/// A run is merged with the one before it unless that one is so many times larger.
const GROWTH: u64 = 4;

/// The field of a line that names another record than that of its capture: the time of the record that it names.
const SHOWS: &str = "shows";

/// The index line of a capture's own record, as `cdxj-indexer` would write it.
pub(super) fn record_line(capture: &Capture) -> CdxjLine {
    CdxjLine {
        key: capture.surt.clone(),
        timestamp: capture.time.to_digits14(),
        url: capture.url.clone(),
        mime: match capture.kind {
            CaptureKind::Revisit => Some("warc/revisit".to_string()),
            _ => capture.mime.clone(),
        },
        status: capture.status.map(|status| status.to_string()),
        digest: Some(capture.digest.clone()),
        length: Some(capture.length),
        offset: Some(capture.offset),
        filename: Some(capture.file.clone()),
        extra: Vec::new(),
    }
}

/// The index line of a capture: that of its own record, or of the one that is shown in its place.
pub(super) fn index_line(capture: &Capture, substitutes: &mut Substitutes<'_>) -> anyhow::Result<CdxjLine> {
    let Some(shown) = substitutes.find(capture)? else { return Ok(record_line(capture)) };
    let shows = shown.time.to_digits14();
    Ok(CdxjLine {
        timestamp: capture.time.to_digits14(),
        extra: vec![(SHOWS.to_string(), shows)],
        ..record_line(&shown)
    })
}

/// Whether a line is that of a capture whose own record shows nothing. Which record it names depends on what the archive
/// had when the run was written.
pub(super) fn is_substitute(line: &CdxjLine) -> bool {
    let names_another = line.extra.iter().any(|(name, _)| name == SHOWS);
    let is_delta = line.mime.as_deref() == index_mime(DELTA_MIME).as_deref();
    names_another || is_delta || line.is_revisit() && line.status.as_deref() == Some("304")
}

/// The number of the first capture that no run holds.
pub(super) fn tail_start(runs: &[IndexRun]) -> i64 {
    runs.last().map_or(1, |run| run.last_capture + 1)
}

/// Writes the tail as a new run and merges runs of like size, at once.
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

/// One run in place of several. Where one of them cannot be read, all are written again from the state, which knows
/// every line of them.
pub(super) fn merge_or_write(store: &Store, dir: &Path, runs: &[IndexRun]) -> anyhow::Result<IndexRun> {
    match (merge(dir, runs), runs) {
        (Err(_), [first, .., last]) => {
            write_run_of_captures(store, dir, first.first_capture, last.last_capture)
        }
        (merged, _) => merged,
    }
}

/// Writes the captures numbered `first..=last` as a run that the state does not name yet.
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

/// Writes one run in place of several, which the state does not name yet.
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

/// The youngest runs that are to become one; none when each run is much larger than all behind it together. So there are
/// about as many runs as the archive's size has digits to the base of [`GROWTH`].
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

/// Names the run in the state, in place of those that were merged into it, and removes their files.
pub(super) fn register_run(
    store: &mut Store,
    dir: &Path,
    run: &IndexRun,
    merged: &[IndexRun],
) -> anyhow::Result<()> {
    store.put_run(run, merged)?;
    for run in merged {
        // A reader that has it open keeps it; one that comes too late asks its state instead.
        let _ = fs::remove_file(dir.join(&run.name));
    }
    Ok(())
}

/// Takes runs out of the state whose files are not those that were written, with all behind them: their captures are in the
/// tail again. Gives the first. A reader answers from the state meanwhile.
pub(super) fn forget_lost_runs(store: &mut Store, dir: &Path) -> anyhow::Result<Option<IndexRun>> {
    for run in store.runs()? {
        if open_run(dir, &run)?.is_none() {
            store.forget_runs_from(&run)?;
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// Removes files of the index's own naming that the state does not know: left by a crash.
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

/// Captures come by key and time; lines with both alike still have to be sorted as bytes.
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

/// Writes a run beside its place, syncs it and puts it there.
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

/// The lines of several runs as one sorted sequence: one line of each in memory.
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
    /// The index lines of a stretch of keys one after the other, sorted, equal ones once. A line of each run is in memory, and the tail.
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
        // A tail is short. Where the pages of the range have more captures than it, it is read instead of them.
        match self.store().has_more_captures_in_keys(range, n_captures as u64)? {
            true => self.store().each_capture_numbered(from, to, take),
            false => self.store().each_capture_in_keys(range, from, to, take),
        }
    }
}

/// The run's file; `None` when it is not the one that this state names, because it was merged away since.
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
        /// However large the runs that come, few are left, and a byte is rewritten few times.
        #[test]
        fn runs_stay_few_and_rewriting_cheap(sizes in prop::collection::vec(1u64..1000, 1..300)) {
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
            // Each time a byte is rewritten its run has grown by a quarter at least.
            prop_assert!(n_written as f64 <= n_bytes as f64 * (1.0 + (n_bytes as f64).log(1.25)));
        }
    }
}
