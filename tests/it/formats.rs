//! The program reads every earlier format of an archive, and the next writer migrates it (`testdata/formats`).

use std::fs;
use std::path::{Path, PathBuf};

use perennial_archive::store::SCHEMA_VERSION;
use perennial_archive::{Archive, ArchiveWriter};
use perennial_core::page::diff::Delta;
use perennial_core::page::noise::NoiseHistory;
use perennial_core::page::segment::vixml;

use crate::facts::Facts;
use crate::program::{perennial, testdata};
use crate::reading::{Reader, answers, contents, copy_dir, set_mode};

const HOME: &str = "http://127.0.0.1:8137/";
const TIME: &str = "20260501030000";

/// The stored states, with their schema versions.
fn states() -> Vec<(u32, PathBuf)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(testdata("formats")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(number) = name.strip_prefix("schema-").and_then(|name| name.strip_suffix(".db.zst")) {
            found.push((number.parse().unwrap(), path));
        }
    }
    found.sort();
    assert!(
        found.iter().map(|(number, _)| *number).eq(1..=found.len() as u32),
        "a schema is missing: {found:?}"
    );
    assert!(found.len() >= 4);
    found
}

/// The archive of the fixtures with one of its states.
fn unpack(state: &Path, to: &Path) {
    copy_dir(&testdata("formats/archive"), to, &|_| true);
    let packed = fs::read(state).unwrap();
    fs::write(to.join("state.db"), zstd::stream::decode_all(&packed[..]).unwrap()).unwrap();
}

fn schema_of(archive: &Path) -> u32 {
    let state = rusqlite::Connection::open(archive.join("state.db")).unwrap();
    state.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn a_writer_brings_every_past_state_over_and_a_rebuild_gives_the_same() {
    for (number, state) in states() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("archive");
        unpack(&state, &root);
        assert_eq!(schema_of(&root), number);
        perennial(&root, ["analyse"]).ok();
        assert_eq!(schema_of(&root), SCHEMA_VERSION);
        perennial(&root, ["verify"]).ok();
        let before = facts_since(number, &root);
        perennial(&root, ["verify", "--rebuild"]).ok();
        perennial(&root, ["analyse"]).ok();
        before.assert_same_after(&facts_since(number, &root));
    }
}

/// The facts that must agree between a migrated and a rebuilt state.
fn facts_since(number: u32, root: &Path) -> Facts {
    let mut facts = Facts::of(root);
    facts.frontier.extend(facts.urls.iter().filter(|url| url.starts_with(HOME)).cloned());
    // WARC files of that time do not record which URLs a crawl visited as pages. Only the state did.
    let is_kept = |line: &String| {
        let is_page = ["'page' ", "'lesson' ", "'known' "].iter().any(|word| line.starts_with(word));
        let rewritten_later = ["moved", "notes.pdf", "style.css", "sitemap.xml"];
        !(number >= 3
            && is_page
            && rewritten_later.iter().any(|path| line.contains(&format!("'{HOME}{path}'"))))
    };
    facts.lines.retain(is_kept);
    // Earlier versions observed pages differently, so trees and importance differ.
    if number < SCHEMA_VERSION {
        facts.lines.retain(|line| !line.starts_with("'tree' "));
        for line in &mut facts.lines {
            // The URL and times of an analysis. The state of a page also contains its digest.
            let n_words = if line.starts_with("'lesson' ") { 4 } else { 5 };
            if line.starts_with("'lesson' ") || line.starts_with("'known' ") {
                line.truncate(line.match_indices(' ').nth(n_words - 1).expect("its words").0);
            }
        }
    }
    // Before schema 4, states did not record which versions were worth indexing.
    if number < 4 && number > 1 {
        facts.lines.retain(|line| !line.starts_with("'known' "));
    }
    facts.lines.sort();
    facts
}

#[test]
fn a_reader_reads_every_past_state_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let reader = Reader::new(dir.path());
    for (number, state) in states() {
        let root = dir.path().join(format!("archive-{number}"));
        unpack(&state, &root);
        set_mode(&root, 0o555, 0o444);
        let before = contents(&root);
        let found = answers(&reader, &root, HOME, TIME);
        assert_eq!(contents(&root), before, "a question wrote to schema {number}");
        set_mode(&root, 0o755, 0o644);
        ArchiveWriter::open(&Archive::open(&root).unwrap()).unwrap().close().unwrap();
        assert_eq!(schema_of(&root), SCHEMA_VERSION);
        assert_eq!(found, answers(&reader, &root, HOME, TIME), "schema {number}");
    }
}

#[test]
fn what_analysis_stored_is_read_as_it_was_written() {
    let noise = fs::read(testdata("formats/noise-1.bin")).unwrap();
    let history = NoiseHistory::from_bytes(&noise).unwrap();
    assert_ne!(history, NoiseHistory::default());
    assert_eq!(history.to_bytes(), noise);
    let xml = fs::read_to_string(testdata("formats/tree.vixml")).unwrap();
    let tree = vixml::read(&xml).unwrap();
    assert!(tree.leaves().count() > 0);
    assert_eq!(vixml::write(&tree), xml);
    let delta = Delta::from_xml(&fs::read_to_string(testdata("formats/delta.videlta")).unwrap()).unwrap();
    assert!(delta.replacement.is_some() || delta.operations().count() > 0);
}
