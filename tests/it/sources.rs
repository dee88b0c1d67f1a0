//! Reads Rust sources for the tests of layers: code without comments and tests, literals, used modules.
//!
//! `perennial-core` uses this file too, to check the order of its modules.

#![allow(dead_code, reason = "each of the two crates uses its part")]

use std::fs;
use std::path::{Path, PathBuf};

/// One source file, split into code and literals.
pub(crate) struct Source {
    /// Relative to the source folder, with `/` between names.
    pub(crate) name: String,
    /// The code without comments, literals and the tests at the end.
    pub(crate) code: String,
    /// String literals as written.
    pub(crate) texts: Vec<String>,
}

/// The modules that a `lib.rs` declares, in order.
pub(crate) fn modules(source_dir: &Path) -> Vec<String> {
    let lib = fs::read_to_string(source_dir.join("lib.rs")).unwrap();
    let name = |line: &str| Some(line.strip_prefix("pub mod ")?.strip_suffix(';')?.to_string());
    lib.lines().filter_map(name).collect()
}

/// All source files in a folder and its subfolders, by name.
pub(crate) fn sources(source_dir: &Path) -> Vec<Source> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![source_dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.retain(|file| !file.ends_with("tests.rs"));
    files.sort();
    let read = |file: &PathBuf| {
        let name = file.strip_prefix(source_dir).unwrap().to_string_lossy().replace('\\', "/");
        take_apart(name, &fs::read_to_string(file).unwrap())
    };
    files.iter().map(read).collect()
}

impl Source {
    /// The module of `lib.rs` that contains the file.
    pub(crate) fn module(&self) -> &str {
        self.name.split(['/', '.']).next().unwrap_or_default()
    }

    /// Names after `crate::`, including those in braces.
    pub(crate) fn used_modules(&self) -> Vec<String> {
        let mut used = Vec::new();
        for (at, _) in self.code.match_indices("crate::") {
            let rest = &self.code[at + "crate::".len()..];
            let names: Vec<&str> = match rest.strip_prefix('{') {
                Some(list) => top_level_names(list),
                None => vec![rest],
            };
            used.extend(names.into_iter().map(|name| first_word(name).to_owned()));
        }
        used
    }

    /// Whether the code contains a word or a path such as `std::fs`.
    pub(crate) fn names(&self, path: &str) -> bool {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        self.code.match_indices(path).any(|(at, _)| {
            let (before, after) = (&self.code[..at], &self.code[at + path.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    }
}

fn first_word(name: &str) -> &str {
    let name = name.trim_start();
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    &name[..end]
}

/// `a::{b, c}, d}` -> `a::{b, c}`, `d`.
fn top_level_names(list: &str) -> Vec<&str> {
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(&list[start..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

/// One source without the tests at the end, split into code and literals.
pub(crate) fn take_apart(name: String, source: &str) -> Source {
    let split = split_source(source.split("#[cfg(test)]\nmod ").next().unwrap_or_default());
    Source { name, code: split.code, texts: split.texts }
}

/// A Rust source, split by who reads it.
pub(crate) struct SplitSource {
    /// The code without comments and literals.
    pub(crate) code: String,
    /// String literals as written.
    pub(crate) texts: Vec<String>,
    /// Line comments with their slashes.
    pub(crate) comments: Vec<String>,
}

/// Separates comments and literals from the code. Supports the syntax of these sources: line comments, plain and raw
/// strings, character literals.
pub(crate) fn split_source(source: &str) -> SplitSource {
    let (mut code, mut texts, mut comments) = (String::new(), Vec::new(), Vec::new());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            comments.push(rest[..length].to_owned());
            length
        } else if let Some((text, length)) = string_at(rest, &code) {
            texts.push(text);
            code.push_str("\"\"");
            length
        } else if let Some(length) = character_at(rest) {
            length
        } else {
            code.push(c);
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    SplitSource { code, texts, comments }
}

/// A string literal at the start: its content, and its length with all quotes.
fn string_at(rest: &str, code_before: &str) -> Option<(String, usize)> {
    let opening = rest.trim_start_matches('#');
    let n_hashes = rest.len() - opening.len();
    let is_raw = code_before.ends_with('r') && (n_hashes > 0 || rest.starts_with('"'));
    if is_raw {
        let body = opening.strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(n_hashes));
        let end = body.find(&close)?;
        return Some((body[..end].to_owned(), n_hashes + 1 + end + close.len()));
    }
    let body = rest.strip_prefix('"')?;
    let mut is_escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            '"' if !is_escaped => return Some((body[..at].to_owned(), at + 2)),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    None
}

/// The length of a character literal at the start. A lifetime is not a literal.
fn character_at(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'')?;
    let mut characters = body.char_indices();
    let (_, first) = characters.next()?;
    if first == '\\' {
        let end = body[2..].find('\'')?;
        return Some(end + 4);
    }
    let (at, second) = characters.next()?;
    (second == '\'').then_some(at + 2)
}
