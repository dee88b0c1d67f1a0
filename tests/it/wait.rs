//! Tests wait for a condition, never for a fixed time. On a slow machine they take longer, on a fast one they do not.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest wait, even on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// The pause between two checks. It is short at first to notice early results, and grows so checks do not slow
/// long waits.
const INTERVALS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_millis(50);

/// Waits until a condition holds. Fails with its description.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until a value exists. Fails with its description.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, check: impl FnMut() -> Option<T>) -> T {
    found_within(PATIENCE, check).unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain: {what}"))
}

/// Returns the value if it exists in time. For tests in which both outcomes are correct.
pub(crate) fn found_within<T>(time: Duration, mut check: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        let found = check();
        let passed = began.elapsed();
        if found.is_some() || passed >= time {
            return found;
        }
        dawdle((passed / 50).clamp(*INTERVALS.start(), *INTERVALS.end()).min(time - passed));
    }
}

/// Sleeps because time is the subject of the test: a slow server, or a kill at a random moment.
pub(crate) fn dawdle(time: Duration) {
    std::thread::sleep(time);
}

/// The files below a folder with one of these extensions.
fn files(folder: &Path, endings: &[&str], into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, endings, into),
            false if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) => {
                into.push(path)
            }
            false => {}
        }
    }
}

/// The lines of a file that are tests, with their numbers.
fn test_lines<'a>(path: &Path, text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
    text.lines().enumerate().skip_while(move |(_, line)| !is_test && *line != "mod tests {")
}

#[test]
fn no_test_sleeps() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut all = Vec::new();
    ["crates", "tests"].iter().for_each(|folder| files(&root.join(folder), &["rs", "py"], &mut all));
    let (mut found, mut n_dawdles) = (Vec::new(), 0);
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut before = "";
        for (number, line) in test_lines(path.strip_prefix(&root).unwrap(), &text) {
            match (line.contains(concat!("sleep", "(")), before.contains("fn dawdle(")) {
                (true, true) => n_dawdles += 1,
                (true, false) => found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim())),
                (false, _) => {}
            }
            before = line;
        }
    }
    assert!(n_dawdles > 0, "no sleep was found at all: the test no longer understands the sources");
    assert!(found.is_empty(), "wait for a condition, or name it `dawdle` if time is the subject: {found:#?}");
}
