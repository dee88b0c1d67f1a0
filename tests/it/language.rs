//! One language: the words that the glossary of ARCHITECTURE.md replaced occur neither in identifiers nor in comments, help
//! texts and documents.
//!
//! String literals are left out: tables, columns and log fields on disk keep the names they were written with.

use std::fs;
use std::path::{Path, PathBuf};

use crate::sources::split_source;

/// Words that no identifier contains, with what to write.
const IN_IDENTIFIERS: [(&str, &str); 24] = [
    ("lesson", "analysis"),
    ("lessons", "analyses"),
    ("telling", "report"),
    ("teller", "reporter"),
    ("bearings", "checkpoint"),
    ("standing", "summary"),
    ("standings", "summaries"),
    ("posing", "sweep"),
    ("heed", "watch"),
    ("wishes", "requests"),
    ("stray", "leaked request"),
    ("scene", "replay context"),
    ("requisite", "subresource"),
    ("requisites", "subresources"),
    ("twin", "alias"),
    ("twins", "aliases"),
    ("stranger", "untrusted"),
    ("strangers", "untrusted"),
    ("cure", "hint"),
    ("cures", "hints"),
    ("reckoned", "computed"),
    ("amounts", "units"),
    ("mend", "repair"),
    ("doors", "limits"),
];

/// Words that no sentence of a comment, a help text or a document contains.
const IN_PROSE: [&str; 15] = [
    "requisite",
    "requisites",
    "lesson",
    "lessons",
    "bearings",
    "posing",
    "stranger",
    "strangers",
    "reckon",
    "reckoned",
    "heed",
    "untold",
    "twin",
    "twins",
    "anew",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder with an ending, by their path from the root.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut folders = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
            let is_ours = !["target", "vendor", ".git"].iter().any(|skipped| name.ends_with(skipped));
            match path.is_dir() {
                true if is_ours => folders.push(path),
                false if name.ends_with(ending) => found.push((name, fs::read_to_string(&path).unwrap())),
                _ => (),
            }
        }
    }
    found.sort();
    found
}

fn rust_files() -> Vec<(String, String)> {
    ["crates", "tests", "benches", "fuzz"].iter().flat_map(|folder| files(folder, ".rs")).collect()
}

/// `isTornPage2` and `is_torn_page` -> the words of an identifier in lower case.
fn words_in_identifier(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in identifier.chars() {
        if !c.is_ascii_alphabetic() || (c.is_ascii_uppercase() && was_lower) {
            words.push(String::new());
        }
        if c.is_ascii_alphabetic() {
            words.last_mut().unwrap().push(c.to_ascii_lowercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Sentences without the code that they quote, as words in lower case.
fn words_in_prose(text: &str) -> Vec<String> {
    let plain: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let words = plain.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '/' && c != '.');
    words.map(|word| word.trim_matches('.').to_lowercase()).filter(|word| !word.is_empty()).collect()
}

fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

fn old_words_in(name: &str, source: &str) -> Vec<String> {
    let split = split_source(source);
    let mut found = Vec::new();
    for identifier in identifiers(&split.code) {
        let words = words_in_identifier(identifier);
        let is_old = |word: &str| words.iter().any(|one| one == word);
        found.extend(
            IN_IDENTIFIERS
                .iter()
                .filter(|(word, _)| is_old(word))
                .map(|(_, new)| format!("{name}: {identifier} (write {new})")),
        );
    }
    found.extend(old_prose_in(name, &split.comments.join("\n")));
    found
}

fn old_prose_in(name: &str, text: &str) -> Vec<String> {
    let words = words_in_prose(text);
    words
        .iter()
        .filter(|word| IN_PROSE.contains(&word.as_str()))
        .map(|word| format!("{name}: {word}"))
        .collect()
}

#[test]
fn no_source_uses_an_old_word() {
    let mut found: Vec<String> =
        rust_files().iter().flat_map(|(name, source)| old_words_in(name, source)).collect();
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "{} old words, see the glossary of ARCHITECTURE.md: {found:#?}", found.len());
}

#[test]
fn no_help_text_or_document_uses_an_old_word() {
    let documents = files("", ".md").into_iter().chain(files("tests/it/snapshots/help", ".snap"));
    let documents: Vec<(String, String)> =
        documents.filter(|(name, _)| !name.starts_with("target")).collect();
    assert!(documents.len() > 60, "only {} documents were found", documents.len());
    let found: Vec<String> = documents.iter().flat_map(|(name, text)| old_prose_in(name, text)).collect();
    assert!(found.is_empty(), "see the glossary of ARCHITECTURE.md: {found:#?}");
}

#[test]
fn an_old_word_is_found_wherever_it_is_put_back() {
    for source in [
        "struct TwinPage;",
        "fn has_stray() {}",
        "let a_lesson = 1;",
        "/// A stranger's page.\nstruct A;",
        "fn a() {} // reckoned again",
        "enum A { Requisite }",
    ] {
        assert_eq!(old_words_in("a.rs", source).len(), 1, "{source}");
    }
    for source in [
        "let a = \"lessons\";",
        "/// The column `lessons`.\nstruct A;",
        "fn secure() {}",
        "fn recommend() {}",
    ] {
        assert_eq!(old_words_in("a.rs", source), Vec::<String>::new(), "{source}");
    }
    assert_eq!(old_prose_in("a.md", "Pages are read anew.\nSee `anew`.").len(), 1);
}
