//! Power loss. A disk may keep any subset of a command's unsynced writes. Even so, no committed capture is lost or
//! duplicated, and after the next start `verify` is clean.
//!
//! strace records the real executable ([`trace`]). After each of its operations, a model of a disk ([`disk`]) derives
//! the states that a power loss may leave. Each such state is written to a folder, opened as the next command would,
//! and checked. The ordinary test checks a sample; `experiments/power-loss` checks all states.

mod disk;
mod scenarios;
mod trace;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use perennial_archive::store::CaptureFilter;
use perennial_archive::verify::{VerifyReport, verify};
use perennial_archive::{Archive, ArchiveWriter, is_archive};
use perennial_core::rng::Rng;

use self::disk::{Loss, Op, Tree, digest_of, lay_out};
use self::scenarios::Scenario;

/// URL, time, kind and digest of every capture, with the number of its occurrences.
type Captures = BTreeMap<(String, i64, u8, String), usize>;

/// Which states of a recording are checked: two for each operation, or about this many in total.
#[derive(Clone, Copy)]
enum Effort {
    Every,
    Sample(usize),
}

#[test]
#[cfg_attr(not(feature = "interop"), ignore = "needs strace: run with --features interop")]
fn whatever_a_disk_keeps_nothing_committed_is_lost() {
    let n_states = check_all(&scenarios::all(12), Effort::Sample(80));
    assert!(n_states >= 300, "only {n_states} states were checked");
}

#[test]
#[ignore = "takes minutes: the command is in experiments/power-loss/README.md"]
fn every_prefix() {
    let n_states = check_all(&scenarios::all(40), Effort::Every);
    println!("{n_states} states in all");
    assert!(n_states >= 10_000, "only {n_states} states were checked");
}

/// Checks the states of all recordings. Returns their number.
fn check_all(scenarios: &[Scenario], effort: Effort) -> usize {
    let (mut n_states, mut n_failures) = (0, 0);
    // One example of each kind of failure. Failures of one kind differ only in numbers.
    let mut examples: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for scenario in scenarios {
        println!("{}: {} operations", scenario.name, scenario.recording.ops.len());
        let (n, failures) = check_recording(scenario, effort);
        println!("{}: {n} states, {} fail", scenario.name, failures.len());
        n_states += n;
        n_failures += failures.len();
        for failure in failures {
            let kind = failure.replace(|c: char| c.is_ascii_digit(), "");
            examples.entry(kind).or_insert((0, format!("{}: {failure}", scenario.name))).0 += 1;
        }
    }
    let examples: Vec<_> = examples.into_values().take(20).collect();
    assert!(examples.is_empty(), "{n_failures} of {n_states} states fail: {examples:#?}");
    n_states
}

/// Checks the states of a recording, each once. Returns their number and the failures.
fn check_recording(scenario: &Scenario, effort: Effort) -> (usize, Vec<String>) {
    let ops = &scenario.recording.ops;
    let cuts = cuts(ops, effort);
    let (seen, failures) = (Mutex::new(HashSet::new()), Mutex::new(Vec::new()));
    let next = AtomicUsize::new(0);
    let check_next = || {
        let mut disk = scenario.recording.before.clone();
        let mut n_done = 0;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(&cut) = cuts.get(at) else { return };
            (n_done..cut).for_each(|at| disk.apply(at, &ops[at]));
            n_done = cut;
            for (number, loss) in losses(at, cut == ops.len()).into_iter().enumerate() {
                let state = disk.after(loss, &mut Rng::from_parts(&[cut as u64, number as u64]));
                // The same state is a different case if more captures were reported as committed.
                let owed = (cut == ops.len(), scenario.reported_before(cut).count());
                if !seen.lock().unwrap().insert((digest_of(&state), owed)) {
                    continue;
                }
                let redo = at.is_multiple_of(scenario.redo_stride);
                if let Err(why) = check(scenario, &state, cut, loss, redo) {
                    println!("{}: {loss:?} at {cut}: {why}", scenario.name);
                    failures.lock().unwrap().push(format!("{loss:?} at {cut}: {why}"));
                }
            }
        }
    };
    let n_threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| (0..n_threads).for_each(|_| drop(scope.spawn(check_next))));
    (seen.into_inner().unwrap().len(), failures.into_inner().unwrap())
}

/// After how many operations the power fails. The last case is the end of the command, when every capture must be
/// durable.
fn cuts(ops: &[Op], effort: Effort) -> Vec<usize> {
    let n_cuts = match effort {
        Effort::Every => return (0..=ops.len()).collect(),
        Effort::Sample(n_states) => n_states / 2,
    };
    // Most operations write to the state database. Half of the sample is therefore taken from renames and syncs.
    let turns: Vec<usize> = (1..ops.len()).filter(|at| !matches!(ops[at - 1], Op::Data(..))).collect();
    let some_of = |from: &[usize]| -> Vec<usize> {
        let stride = (from.len() * 2 / n_cuts).max(1);
        from.iter().copied().step_by(stride).collect()
    };
    let mut cuts = [some_of(&turns), some_of(&(0..ops.len()).collect::<Vec<_>>()), vec![ops.len()]].concat();
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// Two losses for each prefix, all for the last one.
fn losses(at: usize, is_last: bool) -> Vec<Loss> {
    const BY_TURNS: [Loss; 4] = [Loss::Nothing, Loss::Unsynced, Loss::Names, Loss::Bytes];
    if is_last { [&BY_TURNS[..], &[Loss::Some; 4]].concat() } else { vec![BY_TURNS[at % 4], Loss::Some] }
}

/// A folder in memory if possible, because the real disk is slow.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// Starts from a state as the next command would.
fn check(scenario: &Scenario, state: &Tree, cut: usize, loss: Loss, redo: bool) -> Result<(), String> {
    let dir = scratch();
    lay_out(state, dir.path());
    let root = dir.path().join("archive");
    if !is_archive(&root) {
        let is_done = cut == scenario.recording.ops.len();
        let is_reported = !scenario.before.is_empty() || is_done;
        return if is_reported { Err("the archive is gone".to_string()) } else { Ok(()) };
    }
    let words = |error: anyhow::Error| format!("{error:#}");
    let archive = Archive::open(&root).map_err(words)?;
    if loss == Loss::Nothing {
        // Only the process died, so the archive must already be sound.
        sound(&archive).map_err(|why| format!("before the start: {why}"))?;
    }
    ArchiveWriter::open(&archive).map_err(words)?.close().map_err(words)?;
    sound(&archive)?;
    let found = captures(&archive);
    check_captures(scenario, &found, cut)?;
    if redo {
        (scenario.again)(&root, found)?;
        sound(&archive).map_err(|why| format!("done again: {why}"))?;
    }
    Ok(())
}

fn sound(archive: &Archive) -> Result<VerifyReport, String> {
    let report = archive.snapshot().and_then(|snapshot| verify(&snapshot, &|_| ()));
    match report {
        Err(error) => Err(format!("{error:#}")),
        Ok(report) if report.defects.is_empty() => Ok(report),
        Ok(report) => Err(format!("{} defects: {:?}", report.defects.len(), report.defects[0])),
    }
}

fn captures(archive: &Archive) -> Captures {
    let mut found = Captures::new();
    archive
        .store()
        .unwrap()
        .each_capture(&CaptureFilter::default(), |capture| {
            let key = (capture.url, capture.time.as_millis(), capture.kind as u8, capture.digest);
            *found.entry(key).or_default() += 1;
            Ok(())
        })
        .unwrap();
    found
}

/// The archive must contain all earlier captures and all those reported as committed. It must contain none that is
/// missing at the end of the recording, and no duplicates.
fn check_captures(scenario: &Scenario, found: &Captures, cut: usize) -> Result<(), String> {
    if let Some((twice, _)) = found.iter().find(|(_, n)| **n > 1) {
        return Err(format!("there twice: {twice:?}"));
    }
    if let Some(unexpected) = found.keys().find(|key| !scenario.after.contains_key(*key)) {
        return Err(format!("nobody wrote this: {unexpected:?}"));
    }
    let is_done = cut == scenario.recording.ops.len();
    let owed = if is_done { &scenario.after } else { &scenario.before };
    if let Some(lost) = owed.keys().find(|key| !found.contains_key(*key)) {
        return Err(format!("lost: {lost:?}"));
    }
    let mut news: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (url, _, _, digest) in found.keys().filter(|key| !scenario.before.contains_key(*key)) {
        *news.entry((url, digest)).or_default() += 1;
    }
    for (url, digest) in scenario.reported_before(cut) {
        match news.get_mut(&(url, digest)) {
            Some(n) if *n > 0 => *n -= 1,
            _ => return Err(format!("lost although crawl.log had it: {url} {digest}")),
        }
    }
    Ok(())
}

/// The folder of a recording, without symbolic links in its path.
fn real_folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    (dir, root)
}
