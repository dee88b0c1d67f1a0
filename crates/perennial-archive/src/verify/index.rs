//! The index against the state.

use std::fs::File;
use std::io::Seek;

use perennial_warc::cdxj::{CdxjLine, lines};

use super::{Defect, DefectKind};
use crate::Snapshot;
use crate::index::{SHOWS, index_line, is_substitute, record_line};
use crate::store::{CaptureFilter, IndexRun, Store};
use crate::substitute::Substitutes;

/// Reads state and runs in parallel in key order. Memory contains the lines of one key.
pub(super) fn check_index(snapshot: &Snapshot, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
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
            // A damaged line may still be one, with other values.
            Ok(parsed) if parsed.to_string() == line => {
                check_substitute(store, &parsed, defects)?;
                found.push(as_compared(parsed));
            }
            _ => found.push(line),
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

/// The substitute of a capture must be the record of another capture, and the line must describe that record.
fn check_substitute(store: &Store, line: &CdxjLine, defects: &mut Vec<Defect>) -> anyhow::Result<()> {
    if !is_substitute(line) {
        return Ok(());
    }
    let (file, offset) = (line.filename.as_deref().unwrap_or_default(), line.offset.unwrap_or(u64::MAX));
    let Some(shown) = store.captures_in(file, offset, 1)?.pop().filter(|shown| shown.offset == offset) else {
        add_index(defects, "", format!("it names a record that is not a capture: {line}"));
        return Ok(());
    };
    let mut described = CdxjLine { timestamp: line.timestamp.clone(), ..record_line(&shown) };
    if line.extra.iter().any(|(name, _)| name == SHOWS) {
        described.extra = vec![(SHOWS.to_owned(), shown.time.to_digits14())];
    }
    if described != *line {
        add_index(defects, "", format!("it does not describe the record that it names: {line}"));
    }
    Ok(())
}
