//! The laws of the core: each module uses only those above it in `lib.rs`, and none has effects. Clippy bans the
//! same calls; this test does not need clippy.

// A test that cannot go on should panic; clippy's own exception ends at the `#[test]` functions.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test reads the sources")]

#[path = "../../../tests/it/sources.rs"]
mod sources;

use std::path::{Path, PathBuf};

use sources::{Source, modules, sources, take_apart};

fn source_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn each_module_uses_only_those_above_it() {
    let modules = modules(&source_dir());
    assert!(modules.len() > 5, "lib.rs was not understood: {modules:?}");
    let place_of = |name: &str| modules.iter().position(|module| module == name);
    let mut wrong = Vec::new();
    let mut n_uses = 0;
    for source in sources(&source_dir()).iter().filter(|source| source.name != "lib.rs") {
        let place = place_of(source.module()).unwrap_or_else(|| panic!("lib.rs lacks {}", source.name));
        for used in source.used_modules() {
            n_uses += 1;
            if place_of(&used).is_some_and(|found| found > place) {
                wrong.push(format!("{} uses {used}, which stands below it in lib.rs", source.name));
            }
        }
    }
    assert!(n_uses > 5, "no uses were found: the test no longer understands the sources");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of effects.
const BANNED: [&str; 14] = [
    "std::fs",
    "fs::File",
    "OpenOptions",
    "read_to_string",
    "std::process",
    "process::Command",
    "std::env",
    "env::var",
    "std::thread",
    "std::os",
    "TcpStream",
    "SystemTime",
    "Instant",
    "tokio",
];

#[test]
fn no_module_has_effects() {
    let banned_in = |source: &Source| {
        let named = BANNED.iter().filter(|word| source.names(word));
        named.map(|word| format!("{} names {word}", source.name)).collect::<Vec<_>>()
    };
    let found: Vec<String> = sources(&source_dir()).iter().flat_map(banned_in).collect();
    assert!(
        found.is_empty(),
        "the core is pure: take time, bytes and settings as arguments\n{}",
        found.join("\n")
    );
}

#[test]
fn the_check_sees_uses_in_all_their_forms() {
    let source = "use crate::time::Timestamp;\nuse crate::{page::{A, B}, warc};\n// crate::no\nfn f<'a>() { \
                  crate::links::x(\"http://crate::no\", '\"', r#\"crate::no \"SELECT\"\"#) } use std::fs;\n\
                  #[cfg(test)]\nmod tests { use crate::later; }";
    let source: Source = take_apart("a.rs".to_owned(), source);
    assert_eq!(source.used_modules(), ["time", "page", "warc", "links"]);
    assert_eq!(source.texts, ["http://crate::no", "crate::no \"SELECT\""]);
    assert!(source.names("std::fs") && !source.names("fs::File") && !source.names("std::f"));
}
