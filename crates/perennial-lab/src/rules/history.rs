//! Reads a [`SiteHistory`] from a file of versions.
//!
//! Fields are separated by tabs (docs/rules.md). `#key value` lines come first; `#host` names the site. `W number date` starts a version, `A
//! path hash bytes` adds a page, `M path hash bytes` changes one, `D path` deletes one. An optional sixth field of `M`
//! is the changed share of the page, from 0 to 1.

use std::collections::HashMap;
use std::io::BufRead;

use perennial_core::directory::{PageTransition, SiteHistory, SiteKind, SiteVersion};

/// Longest accepted line; URLs are shorter.
const MOST_LINE_BYTES: usize = 1 << 16;
/// Most pages and changes of a history. A larger file is not read into memory.
const MOST_PAGES: usize = 20_000_000;
const MOST_CHANGES: usize = 200_000_000;

/// The error for an unreadable history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("line {line}: {problem}; docs/rules.md describes the format")]
    Line {
        /// The line number, starting at 1.
        line: usize,
        problem: &'static str,
    },
    #[error("the history has more than {0}; split it by directory")]
    TooLarge(&'static str),
    #[error("the history could not be read: {0}")]
    Read(#[from] std::io::Error),
}

/// Reads a history. `name` is the name of the site.
pub fn parse_history(name: &str, mut input: impl BufRead) -> Result<SiteHistory, HistoryError> {
    let mut history = SiteHistory::new(name);
    let mut numbers: HashMap<Box<str>, u32> = HashMap::new();
    let (mut raw, mut n) = (Vec::new(), 0);
    loop {
        raw.clear();
        let limit = MOST_LINE_BYTES as u64 + 1;
        let n_read = std::io::Read::take(&mut input, limit).read_until(b'\n', &mut raw)?;
        if n_read == 0 {
            break;
        }
        n += 1;
        let wrong = |problem| HistoryError::Line { line: n, problem };
        if raw.len() > MOST_LINE_BYTES {
            return Err(wrong("it is longer than 64 KiB"));
        }
        let line = String::from_utf8_lossy(&raw);
        read_line(line.trim_end_matches(['\n', '\r']), &mut history, &mut numbers).map_err(wrong)?;
        if history.nodes.len() > MOST_PAGES {
            return Err(HistoryError::TooLarge("20 million pages"));
        }
        if n > MOST_CHANGES {
            return Err(HistoryError::TooLarge("200 million changes"));
        }
    }
    Ok(history)
}

fn read_line(
    line: &str,
    history: &mut SiteHistory,
    numbers: &mut HashMap<Box<str>, u32>,
) -> Result<(), &'static str> {
    if line.is_empty() {
        return Ok(());
    }
    if let Some(header) = line.strip_prefix('#') {
        let header = header.trim();
        if header == "rendered no" {
            history.kind = SiteKind::Source;
        }
        if let Some(host) = header.strip_prefix("host ") {
            history.name = host.trim().to_owned();
        }
        return Ok(());
    }
    let mut fields = line.split('\t');
    let kind = fields.next().unwrap_or_default();
    if kind == "W" {
        history.begin_version(fields.nth(1).unwrap_or_default());
        return Ok(());
    }
    let path = fields.next().filter(|path| !path.is_empty()).ok_or("the path is missing")?;
    if history.versions.is_empty() {
        return Err("a version begins with a line W");
    }
    let (_hash, bytes) = (fields.next(), fields.next().unwrap_or("0"));
    let change = match kind {
        "A" => PageTransition::Inserted,
        "M" => PageTransition::Updated(parse_degree(fields.next())?),
        "D" => PageTransition::Deleted,
        _ => return Err("it does not begin with W, A, M or D"),
    };
    // -1 is an unknown size.
    let bytes = bytes.parse::<i64>().map_err(|_| "the bytes are not a number")?;
    let page = match numbers.get(path) {
        Some(&page) => page,
        None => {
            let page = history.add_page(path);
            numbers.insert(path.into(), page);
            page
        }
    };
    history.add_change(page, change, bytes.clamp(0, i64::from(u32::MAX)) as u32);
    Ok(())
}

fn parse_degree(field: Option<&str>) -> Result<f32, &'static str> {
    let Some(field) = field else { return Ok(1.0) };
    let degree: f32 = field.parse().map_err(|_| "the degree of the change is not a number")?;
    if (0.0..=1.0).contains(&degree) {
        Ok(degree)
    } else {
        Err("the degree of the change is not from 0 to 1")
    }
}

/// The history without the pages whose path contains `text`.
pub fn without_paths(history: &SiteHistory, text: &str) -> SiteHistory {
    let mut kept = SiteHistory::new(&history.name);
    kept.kind = history.kind;
    let mut numbers: Vec<Option<u32>> = Vec::with_capacity(history.nodes.len());
    for &node in &history.nodes {
        let path = history.tree.path(node);
        numbers.push((!path.contains(text)).then(|| kept.add_page(&path)));
    }
    for version in &history.versions {
        kept.begin_version(&version.date);
        for change in &version.changes {
            if let Some(page) = numbers[change.page as usize] {
                kept.add_change(page, change.change, change.bytes);
            }
        }
    }
    kept
}

/// The number of pages of each version.
pub fn version_sizes(history: &SiteHistory) -> Vec<usize> {
    let mut n = 0usize;
    let size = |version: &SiteVersion| {
        for change in &version.changes {
            match change.change {
                PageTransition::Inserted => n += 1,
                PageTransition::Deleted => n -= 1,
                PageTransition::Updated(_) => {}
            }
        }
        n
    };
    history.versions.iter().map(size).collect()
}

/// The number of versions with fewer than half of the pages of both neighbours. The crawler that took them was probably
/// blocked.
pub fn n_broken(history: &SiteHistory) -> usize {
    let sizes = version_sizes(history);
    sizes.windows(3).filter(|three| 2 * three[1] < three[0] && 2 * three[1] < three[2]).count()
}

/// Whether each page exists in a version, by page number, and its bytes.
pub(super) fn version_state(history: &SiteHistory, version: usize) -> (Vec<bool>, Vec<u32>) {
    let (mut present, mut bytes) = (vec![false; history.nodes.len()], vec![0; history.nodes.len()]);
    for change in history.versions.iter().take(version + 1).flat_map(|version| &version.changes) {
        present[change.page as usize] = change.change != PageTransition::Deleted;
        bytes[change.page as usize] = change.bytes;
    }
    (present, bytes)
}
#[cfg(test)]
mod tests {
    use super::*;
    use perennial_core::directory::Significance;
    use proptest::prelude::*;

    const SMALL: &str = "#rendered no\nW\t0\t2026-01-04\tx\t2\nA\ta/x\th1\t10\nA\tb\th2\t20\nW\t1\t2026-01-11\nM\ta/x\th3\t11\nD\tb\n\
                         W\t2\t2026-01-18\nD\tb\nM\ta/x\th3\t12\t0.25\nA\tc\th\t1\n";

    #[test]
    fn versions_are_read_and_contradictions_counted() {
        let history = parse_history("s", SMALL.as_bytes()).unwrap();
        assert_eq!(
            (history.kind, version_sizes(&history), history.n_skipped),
            (SiteKind::Source, vec![2, 1, 2], 1)
        );
        assert_eq!(history.versions[1].date, "2026-01-11");
        assert_eq!(history.versions[2].changes[0].change, PageTransition::Updated(0.25));
        let (present, bytes) = version_state(&history, 1);
        assert_eq!((present, bytes), (vec![true, false, false], vec![11, 0, 0]));
        assert_eq!(history.tree.path(history.nodes[0]), "/a/x");
        let kept = without_paths(&history, "a/");
        assert_eq!((version_sizes(&kept), kept.nodes.len()), (vec![1, 0, 1], 2));
        let delta = history.delta_of_last(2, Significance::Later);
        let is_there = |page: usize| delta.size(history.nodes[page]) > 0;
        assert_eq!((delta.n_transitions(), [0, 1, 2].map(is_there)), (1, [true, false, true]));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let problem = |text: &str| parse_history("s", text.as_bytes()).unwrap_err().to_string();
        assert!(problem("A\tx\th\t1\n").starts_with("line 1: a version begins with a line W"));
        assert!(problem("W\t0\td\nQ\tx\n").starts_with("line 2: it does not begin with"));
        assert!(problem("W\t0\td\nM\tx\th\tmany\n").contains("not a number"));
        assert!(problem("W\t0\td\nM\tx\th\t1\t7\n").contains("not from 0 to 1"));
        assert!(problem(&format!("W\t0\t{}\n", "x".repeat(70_000))).contains("64 KiB"));
    }

    #[test]
    fn a_version_with_most_pages_missing_is_broken() {
        let mut text = String::from("W\t0\td\n");
        (0..9).for_each(|n| text.push_str(&format!("A\tp{n}\th\t1\n")));
        text.push_str("W\t1\td\n");
        (0..6).for_each(|n| text.push_str(&format!("D\tp{n}\n")));
        text.push_str("W\t2\td\n");
        (0..6).for_each(|n| text.push_str(&format!("A\tp{n}\th\t1\n")));
        assert_eq!(n_broken(&parse_history("s", text.as_bytes()).unwrap()), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_history_or_an_error(bytes in prop::collection::vec(prop_oneof![
            Just(b'\t'), Just(b'\n'), Just(b'W'), Just(b'A'), Just(b'M'), Just(b'D'), Just(b'/'), any::<u8>()
        ], 0..300)) {
            if let Ok(history) = parse_history("s", bytes.as_slice()) {
                let n = history.versions.len();
                prop_assert_eq!(version_sizes(&history).len(), n);
                prop_assert!(history.tree.len() > history.nodes.len() || history.nodes.len() < 2 || n > 0);
            }
        }
    }
}
