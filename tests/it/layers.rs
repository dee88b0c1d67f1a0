//! The laws of this crate's rooms, read off the sources: who uses whom, where SQL, clap, the end of the process and the
//! folder of WARC files may be named. `perennial-core` has its own test of its layers.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sources::{Source, modules, sources};

fn crate_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn check(law: &str, found: &[String]) {
    assert!(found.is_empty(), "{law}. This breaks it: {found:#?}");
}

/// The files outside some rooms of which something is true.
fn outside(rooms: &[&str], is_so: impl Fn(&Source) -> bool) -> Vec<String> {
    let all = sources(&crate_dir().join("src"));
    assert!(all.len() > 20, "the sources were not found");
    let (inside, outside): (Vec<&Source>, Vec<&Source>) =
        all.iter().filter(|source| is_so(source)).partition(|source| rooms.contains(&source.module()));
    assert!(!inside.is_empty(), "nothing of the kind was found in {rooms:?}: the law is empty");
    outside.into_iter().map(|source| source.name.clone()).collect()
}

#[test]
fn each_room_uses_only_those_above_it() {
    let rooms = modules(&crate_dir().join("src"));
    let place_of = |name: &str| rooms.iter().position(|room| room == name);
    let mut found = Vec::new();
    let mut n_uses = 0;
    for source in sources(&crate_dir().join("src")) {
        let Some(place) = place_of(source.module()) else { continue };
        let mut used = source.used_modules();
        used.sort();
        used.dedup();
        n_uses += used.len();
        let below = used.iter().filter(|name| place_of(name).is_some_and(|other| other > place));
        found.extend(below.map(|name| format!("{} uses {name}", source.name)));
    }
    assert!(n_uses > 20, "no uses were found: the test no longer understands the sources");
    check("A room uses only rooms that stand above it in lib.rs", &found);
}

#[test]
fn only_the_store_knows_sql() {
    const WORDS: [&str; 8] = [
        "SELECT ",
        "INSERT INTO",
        "INSERT OR",
        "UPDATE ",
        "DELETE FROM",
        "CREATE TABLE",
        "CREATE INDEX",
        "PRAGMA ",
    ];
    let has_sql = |source: &Source| {
        source.names("rusqlite")
            || source.texts.iter().any(|text| WORDS.iter().any(|word| text.contains(word)))
    };
    check("SQL and its crate are named in store/ only", &outside(&["store"], has_sql));
}

#[test]
fn only_the_command_line_knows_arguments() {
    check("clap is named in cli/ only", &outside(&["cli"], |source| source.names("clap")));
}

#[test]
fn only_the_command_line_ends_the_process_and_hears_signals() {
    const WORDS: [&str; 5] = ["process::exit", "process::abort", "ExitCode", "tokio::signal", "signal::unix"];
    let found = outside(&["cli", "main"], |source| WORDS.iter().any(|word| source.names(word)));
    check("Process exit and signals are named in cli/ only", &found);
}

#[test]
fn only_the_archive_knows_where_warc_files_lie() {
    let names_folder =
        |source: &Source| source.texts.iter().any(|text| text == "warc" || text.starts_with("warc/{"));
    // In settings/ the word names a table of perennial.toml.
    let found = outside(&["archive", "settings"], names_folder);
    check("The folder of WARC files is named in archive/ only", &found);
}

/// Folders and files of an archive, which the documents name too.
const OF_AN_ARCHIVE: [&str; 5] = ["warc/", "index/", "state.db", "perennial.toml", "crawl.log"];

#[test]
fn every_path_that_the_architecture_names_exists() {
    let root = crate_dir().join("../..");
    let mut wrong = Vec::new();
    let mut n_paths = 0;
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        for line in fs::read_to_string(root.join(document)).unwrap().lines() {
            let mut folder = PathBuf::new();
            for path in paths_in(line) {
                n_paths += 1;
                match find(&root, &folder, path) {
                    Some(found) => folder = found.parent().map(Path::to_path_buf).unwrap_or_default(),
                    None => wrong.push(format!("{document}: {path}")),
                }
            }
        }
    }
    assert!(n_paths > 20, "only {n_paths} paths were found: the test no longer understands the documents");
    assert!(wrong.is_empty(), "these paths do not exist: {wrong:#?}");
}

/// What looks like a path of the project: in backquotes with a slash or an ending, or `docs/...` in the text.
fn paths_in(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    let plain = line.split('`').step_by(2).flat_map(|text| text.split([' ', '(', ')', ',', ';', ':', '.']));
    let is_path = |text: &&str| {
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
        let has_ending = [".rs", ".md", ".toml"].iter().any(|ending| text.ends_with(ending));
        is_plain && (text.contains('/') || has_ending) && !OF_AN_ARCHIVE.contains(text)
    };
    quoted.filter(is_path).chain(plain.filter(|text| text.starts_with("docs/"))).collect()
}

/// Where a path leads: from the root, from the sources of a crate, or beside the path before it. A decision may be named
/// by its number.
fn find(root: &Path, folder: &Path, path: &str) -> Option<PathBuf> {
    let sources = ["perennial", "perennial-core", "perennial-sim", "perennial-render"]
        .map(|name| root.join("crates").join(name).join("src"));
    let places = [root.to_path_buf(), folder.to_path_buf(), root.join("crates/perennial-core")];
    let found = places.iter().chain(&sources).map(|place| place.join(path)).find(|path| path.exists());
    found.or_else(|| {
        let (dir, number) = path.rsplit_once('/')?;
        let mut entries = fs::read_dir(root.join(dir)).ok()?;
        entries
            .find_map(|entry| {
                entry.ok().filter(|entry| entry.file_name().to_string_lossy().starts_with(number))
            })
            .map(|entry| entry.path())
            .filter(|_| number.len() == 4)
    })
}
