//! One language: the words that the glossary of ARCHITECTURE.md replaced occur neither in identifiers nor in comments, help
//! texts and documents. A type is found by its name, because no other type has it, and a function says what it does.
//!
//! String literals are left out: tables, columns and log fields on disk keep the names they were written with.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sources::split_source;

/// A word that no identifier contains.
struct OldWord {
    word: &'static str,
    /// What to write.
    new: &'static str,
    /// Identifiers and paths in which the word has its usual meaning. Paths contain a slash.
    except: &'static [&'static str],
}

const fn old(word: &'static str, new: &'static str) -> OldWord {
    OldWord { word, new, except: &[] }
}

const IN_IDENTIFIERS: &[OldWord] = &[
    old("lesson", "analysis"),
    old("lessons", "analyses"),
    old("telling", "report"),
    old("teller", "reporter"),
    old("bearings", "checkpoint"),
    old("standing", "summary"),
    old("standings", "summaries"),
    old("posing", "sweep"),
    old("heed", "watch"),
    old("wishes", "requests"),
    old("stray", "leaked request"),
    old("scene", "replay context"),
    old("requisite", "subresource"),
    old("requisites", "subresources"),
    old("twin", "alias"),
    old("twins", "aliases"),
    old("stranger", "untrusted"),
    old("strangers", "untrusted"),
    old("cure", "hint"),
    old("cures", "hints"),
    old("reckoned", "computed"),
    old("amounts", "units"),
    old("mend", "repair"),
    old("doors", "limits"),
    old("told", "reported"),
    old("untold", "unreported"),
    old("asked", "requested"),
    old("asking", "request"),
    old("ask", "request"),
    old("asks", "requests"),
    old("question", "query"),
    old("questions", "queries"),
    old("believed", "estimated"),
    OldWord { word: "answer", new: "response, result or hit", except: ANSWER },
    OldWord { word: "answers", new: "responses, results or hits", except: ANSWER },
    OldWord { word: "answered", new: "responded", except: ANSWER },
    old("drawn", "rendered"),
    old("looked", "observed"),
    old("chance", "probability, seed or p-value"),
    old("chances", "probabilities"),
    old("adopt", "backfill"),
    old("adopted", "backfilled"),
    OldWord { word: "look", new: "observation", except: &["LOOK_AHEAD", "look_up", "look_up_in_state"] },
    OldWord {
        word: "looks",
        new: "observations",
        except: &["looks_like_feed", "looks_like_html", "looks_like_page", "looks_like_warc"],
    },
    OldWord { word: "foreign", new: "untrusted, imported or unknown", except: &[] },
    OldWord { word: "acts", new: "audit log", except: &[] },
    // The element of HTML.
    OldWord {
        word: "aside",
        new: "sidebar, quarantine or deferred",
        except: &["crates/perennial-server/src/dashboard/overview.rs", "crates/perennial-lab/src/report.rs"],
    },
    // The process that has the lock of an archive.
    OldWord { word: "holder", new: "payload capture", except: &["crates/perennial-archive/src/lock.rs"] },
    // The first element of a queue.
    OldWord { word: "front", new: "home or listing page", except: &["front", "pop_front", "push_front"] },
    // Addresses of hosts and of mail.
    OldWord {
        word: "address",
        new: "url",
        except: &[
            "crates/perennial/examples/",
            "crates/perennial/src/cli/serve.rs",
            "crates/perennial/src/demo/server.rs",
            "crates/perennial-archive/src/exchange.rs",
            "crates/perennial-archive/src/settings/notify.rs",
            "crates/perennial-core/src/http/",
            "crates/perennial-crawler/src/",
            "crates/perennial-engine/src/notify/",
            "crates/perennial-fetch/",
            "crates/perennial-server/src/guard.rs",
            "crates/perennial-server/src/lib.rs",
            "crates/perennial-server/src/listen.rs",
            "crates/perennial-warc/src/",
            "tests/it/",
        ],
    },
];

/// Where an answer is one: the reply in a thread; subresources for a layout worker or browser; visits that the scheduler or
/// a strategy has yet to learn from; JSON that a reader of a test receives.
const ANSWER: &[&str] = &[
    "crates/perennial-core/src/article/",
    "crates/perennial-core/src/page/",
    "crates/perennial-core/src/schedule/",
    "crates/perennial-lab/",
    "crates/perennial-render/",
    "crates/perennial-server/src/rewrite/",
    "crates/perennial/examples/",
    "tests/it/",
];

/// Types that share their name: what both are, and why neither is renamed.
const SHARED_TYPE_NAMES: [(&str, &str); 3] = [
    ("Context", "what a command runs in; what an estimate is conditioned on; each is private to its crate"),
    ("Element", "of a page in a delta; of HTML while it is rewritten"),
    ("Verdict", "on a claim of the papers; on a reproduction of it"),
];

/// Old words that are verbs in the long names of tests.
const IN_SHORT_IDENTIFIERS: [(&str, &str); 3] =
    [("stay", "presence"), ("stays", "presences"), ("stayed", "unchanged")];

/// Names with more words are sentences.
const MAX_WORDS_OF_NAME: usize = 4;

/// Old words in parts of the tree where another meaning is impossible.
const IN_PARTS: [(&str, &str, &str); 9] = [
    ("object", "article", "crates/perennial-core/src/article/"),
    ("object", "article", "crates/perennial-engine/src/feeds/"),
    ("object", "article", "crates/perennial/src/cli/article/"),
    ("objects", "articles", "crates/perennial-engine/src/feeds/"),
    ("objects", "articles", "crates/perennial/src/cli/"),
    ("torn", "incoherent", "crates/perennial-core/src/"),
    ("torn", "incoherent", "crates/perennial-lab/src/"),
    ("figures", "digits", "crates/perennial-core/src/"),
    ("figures", "numbers", "crates/perennial-server/src/"),
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
        let new = replacements(name, identifier);
        found.extend(new.iter().map(|new| format!("{name}: {identifier} (write {new})")));
    }
    found.extend(old_prose_in(name, &split.comments.join("\n")));
    found
}

/// What to write instead of the old words of an identifier.
fn replacements(file: &str, identifier: &str) -> Vec<&'static str> {
    let words = words_in_identifier(identifier);
    let contains = |old: &str| words.iter().any(|word| word == old);
    let is_exempt = |exception: &&str| match exception.contains('/') {
        true => file.starts_with(*exception),
        false => *exception == identifier,
    };
    let mut found = Vec::new();
    for old in IN_IDENTIFIERS.iter().filter(|old| contains(old.word)) {
        if !old.except.iter().any(&is_exempt) {
            found.push(old.new);
        }
    }
    if words.len() <= MAX_WORDS_OF_NAME {
        found.extend(IN_SHORT_IDENTIFIERS.iter().filter(|(word, _)| contains(word)).map(|(_, new)| *new));
    }
    // `Object` is a value of JSON.
    let parts = IN_PARTS.iter().filter(|_| identifier != "Object");
    let in_part = parts.filter(|(word, _, part)| contains(word) && file.starts_with(part));
    found.extend(in_part.map(|(_, new, _)| *new));
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

/// The product's sources without their tests.
fn product_files() -> Vec<(String, String)> {
    let files = files("crates", ".rs").into_iter();
    let product = files.filter(|(name, _)| name.contains("/src/") && !name.contains("/tests"));
    let without_tests = |source: String| match source.find("#[cfg(test)]\nmod tests {") {
        Some(end) => source[..end].to_owned(),
        None => source,
    };
    product.map(|(name, source)| (name, split_source(&without_tests(source)).code)).collect()
}

/// The names of the types that a source defines. Associated types are indented and left out.
fn type_names(code: &str) -> Vec<&str> {
    let defined = |line: &str| {
        let is_definition = |word: &&str| ["struct", "enum", "trait", "type", "union"].contains(word);
        let before = line.split_whitespace().position(|word| is_definition(&word))?;
        let is_visibility =
            |word: &str| word.starts_with("pub") || ["in", "unsafe"].contains(&word) || word.ends_with(')');
        line.split_whitespace().take(before).all(is_visibility).then_some(before)
    };
    let lines = code.lines().filter(|line| !line.starts_with(' '));
    let names = lines.filter_map(|line| line.split_whitespace().nth(defined(line)? + 1));
    names.filter_map(|name| name.split(|c: char| !c.is_ascii_alphanumeric()).next()).collect()
}

fn types_defined_twice(files: &[(String, String)]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, code) in files {
        for defined in type_names(code) {
            places.entry(defined).or_default().push(name);
        }
    }
    let twice = places.into_iter().filter(|(_, files)| files.len() > 1);
    twice.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect()
}

#[test]
fn a_type_is_found_by_its_name() {
    let files = product_files();
    assert!(files.len() > 300, "only {} sources were found", files.len());
    let is_listed =
        |found: &&String| SHARED_TYPE_NAMES.iter().any(|(name, _)| found.starts_with(&format!("{name}:")));
    let found = types_defined_twice(&files);
    let unlisted: Vec<_> = found.iter().filter(|found| !is_listed(found)).collect();
    assert!(unlisted.is_empty(), "give each type a name of its own: {unlisted:#?}");
    assert_eq!(found.len(), SHARED_TYPE_NAMES.len(), "a listed name is no longer shared");
}

/// Visible functions with names like `size_of`, which say what they return, but not what they do.
fn functions_named_of(code: &str) -> Vec<String> {
    let names = code.lines().filter(|line| line.trim_start().starts_with("pub")).filter_map(|line| {
        let (_, rest) = line.split_once("fn ")?;
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()
    });
    names.filter(|name| name.ends_with("_of")).map(str::to_owned).collect()
}

#[test]
fn no_visible_function_is_named_something_of() {
    let found: Vec<String> = product_files()
        .iter()
        .flat_map(|(file, code)| {
            functions_named_of(code).into_iter().map(move |name| format!("{file}: {name}"))
        })
        .filter(|found| !found.ends_with(": for_each_of"))
        .collect();
    assert!(found.is_empty(), "say what the function does: {found:#?}");
}

#[test]
fn a_shared_type_name_and_a_function_named_of_are_found() {
    let file = |name: &str, code: &str| (name.to_owned(), code.to_owned());
    for definition in
        ["pub struct Told {", "pub(crate) enum Told {", "trait Told {", "pub(in crate::a) type Told = u8;"]
    {
        let files = [file("a.rs", definition), file("b.rs", "struct Told<'a>(&'a str);")];
        assert_eq!(types_defined_twice(&files), ["Told: a.rs, b.rs"], "{definition}");
    }
    let different =
        [file("a.rs", "struct A;\nimpl B {\n    type Output = A;\n}"), file("b.rs", "struct Output;")];
    assert_eq!(types_defined_twice(&different), Vec::<String>::new());
    assert_eq!(functions_named_of("    pub(super) async fn host_of(a: u8) {}\nfn name_of() {}"), ["host_of"]);
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
        "fn n_looks() {}",
        "struct Told;",
        "fn read_asked() {}",
        "let stays = 1;",
        "struct FrontPage { url: u8 }",
        "fn f(address: &str) {}",
        "fn read_answer() {}",
    ] {
        assert_eq!(old_words_in("a.rs", source).len(), 1, "{source}");
    }
    for source in [
        "let a = \"lessons\";",
        "/// The column `lessons`.\nstruct A;",
        "fn secure() {}",
        "fn recommend() {}",
        "fn the_rest_of_a_page_stays() {}",
        "fn look_up() { queue.pop_front() }",
    ] {
        assert_eq!(old_words_in("a.rs", source), Vec::<String>::new(), "{source}");
    }
    for (file, source) in [
        ("crates/perennial-core/src/article/mod.rs", "let object = 1;"),
        ("crates/perennial-core/src/schedule/mod.rs", "let torn_pages = 1;"),
    ] {
        assert_eq!(old_words_in(file, source).len(), 1, "{file}");
        assert_eq!(old_words_in("a.rs", source), Vec::<String>::new(), "{source}");
    }
    assert_eq!(
        old_words_in("crates/perennial-fetch/src/guard.rs", "fn f(address: IpAddr) {}"),
        Vec::<String>::new()
    );
    assert_eq!(old_prose_in("a.md", "Pages are read anew.\nSee `anew`.").len(), 1);
}
