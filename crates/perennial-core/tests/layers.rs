//! Checks that each module of the core uses only those above it in `lib.rs`.

// A test that cannot go on should panic; clippy's own exception ends at the `#[test]` functions.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

fn source_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The modules in the order of `lib.rs`.
fn modules() -> Vec<String> {
    let lib = fs::read_to_string(source_dir().join("lib.rs")).unwrap();
    let name = |line: &str| Some(line.strip_prefix("pub mod ")?.strip_suffix(';')?.to_string());
    lib.lines().filter_map(name).collect()
}

/// All source files of a module: `name.rs` and everything in `name/`.
fn files_of(module: &str) -> Vec<PathBuf> {
    let mut files = vec![source_dir().join(format!("{module}.rs"))];
    let mut folders = vec![source_dir().join(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|file| file.is_file());
    files
}

/// Names after `crate::`, also those in braces, in code outside comments and tests.
fn used_modules(source: &str) -> Vec<String> {
    let code: String = source
        .split("#[cfg(test)]\nmod ")
        .next()
        .unwrap_or_default()
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut used = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(list) => top_level_names(list),
            None => vec![rest],
        };
        let word =
            |name: &str| name.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        used.extend(names.into_iter().map(word));
    }
    used
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

#[test]
fn each_module_uses_only_those_above_it() {
    let modules = modules();
    assert!(modules.len() > 5, "lib.rs was not understood: {modules:?}");
    let mut wrong = Vec::new();
    let mut n_uses = 0;
    for (place, module) in modules.iter().enumerate() {
        let files = files_of(module);
        assert!(!files.is_empty(), "no source of {module}");
        for file in files {
            for used in used_modules(&fs::read_to_string(&file).unwrap()) {
                n_uses += 1;
                if modules.iter().position(|name| *name == used).is_some_and(|found| found > place) {
                    wrong.push(format!(
                        "{} uses {used}, which stands below {module} in lib.rs",
                        file.display()
                    ));
                }
            }
        }
    }
    assert!(n_uses > 5, "no uses were found: the test no longer understands the sources");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_check_sees_uses_in_all_their_forms() {
    let source = "use crate::time::Timestamp;\nuse crate::{page::{A, B}, warc};\n// crate::no\nfn f() { crate::links::x() }\n#[cfg(test)]\nmod tests { use crate::later; }";
    assert_eq!(used_modules(source), ["time", "page", "warc", "links"]);
}
