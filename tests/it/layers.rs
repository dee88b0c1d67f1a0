//! Rules that the compiler cannot check, read from manifests and sources:
//! - Which crate may depend on which?
//! - Which crates may contain SQL, clap, process exits or the name of the WARC folder?
//!
//! `perennial-core` has its own test of its groups.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sources::{Source, sources};

/// The crates, each with our crates that it may depend on.
const CRATES: [(&str, &[&str]); 10] = [
    ("perennial-warc", &[]),
    ("perennial-core", &["warc"]),
    ("perennial-render", &["core"]),
    ("perennial-fetch", &["core", "warc"]),
    ("perennial-archive", &["core", "warc"]),
    ("perennial-engine", &["archive", "core", "fetch", "render", "warc"]),
    ("perennial-crawler", &["archive", "core", "engine", "fetch", "render", "warc"]),
    ("perennial-server", &["archive", "core", "engine", "render", "warc"]),
    ("perennial-lab", &["archive", "core", "engine", "warc"]),
    ("perennial", &["archive", "core", "crawler", "engine", "fetch", "lab", "render", "server", "warc"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn check(law: &str, found: &[String]) {
    assert!(found.is_empty(), "{law}. This breaks it: {found:#?}");
}

/// The sources of all crates without tests, named by crate and path.
fn all_sources() -> Vec<Source> {
    let in_crate = |(name, _): &(&str, &[&str])| {
        let dir = root().join("crates").join(name).join("src");
        let mut found = sources(&dir);
        for source in &mut found {
            source.name = format!("{name}/{}", source.name);
        }
        found
    };
    CRATES.iter().flat_map(in_crate).collect()
}

/// The files outside these folders that satisfy a condition.
fn outside(folders: &[&str], is_so: impl Fn(&Source) -> bool) -> Vec<String> {
    let found: Vec<String> =
        all_sources().iter().filter(|source| is_so(source)).map(|source| source.name.clone()).collect();
    let is_inside = |name: &&String| folders.iter().any(|folder| name.starts_with(folder));
    let (inside, outside): (Vec<&String>, Vec<&String>) = found.iter().partition(is_inside);
    assert!(!inside.is_empty(), "nothing of the kind was found in {folders:?}: the law is empty");
    outside.into_iter().cloned().collect()
}

#[test]
fn each_crate_depends_only_on_those_below_it() {
    let mut found = Vec::new();
    for (name, allowed) in CRATES {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
        let dependencies = dependencies.lines().take_while(|line| !line.starts_with("[dev-"));
        let ours = dependencies.filter_map(|line| line.strip_prefix("perennial-")?.split(['.', ' ']).next());
        found.extend(ours.filter(|one| !allowed.contains(one)).map(|one| format!("{name} needs {one}")));
    }
    check("A crate depends only on crates below it, the server not on the crawler or the network", &found);
    let listed = fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(listed, CRATES.len(), "a crate is missing in this list");
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
    check("SQL and its crate are named in the store only", &outside(&["perennial-archive/store/"], has_sql));
}

#[test]
fn only_the_command_line_knows_arguments() {
    check("clap is named in cli/ only", &outside(&["perennial/cli/"], |source| source.names("clap")));
}

#[test]
fn only_the_command_line_ends_the_process_and_handles_signals() {
    const WORDS: [&str; 5] = ["process::exit", "process::abort", "ExitCode", "tokio::signal", "signal::unix"];
    // A layout worker exits if the process that reads its layouts has ended.
    let places = ["perennial/cli/", "perennial/main.rs", "perennial-render/confine.rs"];
    let found = outside(&places, |source| WORDS.iter().any(|word| source.names(word)));
    check("Process exit and signals are named in cli/ only", &found);
}

#[test]
fn only_the_archive_knows_where_warc_files_lie() {
    let names_folder =
        |source: &Source| source.texts.iter().any(|text| text == "warc" || text.starts_with("warc/{"));
    // In perennial-warc the word is a file extension.
    let found = outside(&["perennial-archive/", "perennial-warc/compress.rs"], names_folder);
    check("The folder of WARC files is named in perennial-archive only", &found);
}

/// Folders and files of an archive, which the documents name too.
const OF_AN_ARCHIVE: [&str; 5] = ["warc/", "index/", "state.db", "perennial.toml", "crawl.log"];

#[test]
fn every_path_that_the_architecture_names_exists() {
    let root = root();
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

/// Texts that look like paths of the project: in backquotes with a slash or an extension, or `docs/...` in the text.
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

/// Resolves a path from the root, from the sources of a crate, or next to the previous path. Decisions may be named by
/// number.
fn find(root: &Path, folder: &Path, path: &str) -> Option<PathBuf> {
    let sources = CRATES.map(|(name, _)| root.join("crates").join(name).join("src"));
    let places = [root.to_path_buf(), folder.to_path_buf(), root.join("crates")];
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
