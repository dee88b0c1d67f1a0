//! A flipped bit in any file that the program keeps is named by `verify`, and repaired by the smallest change.

use std::fs;
use std::path::{Path, PathBuf};

use perennial_core::rng::Rng;
use rusqlite::Connection;

use crate::crawled::Archive;
use crate::program::perennial;
use crate::web::{Web, WebRequest, html, status};

const N_FLIPS: usize = 12;

/// An archive with all kinds of files: captures, analyses, texts, notices, spending.
fn complete() -> (Web, Archive) {
    let web = Web::serve(|request: &WebRequest| match request.path.as_str() {
        "/" | "/a" | "/b" => html(&format!(
            "<!doctype html><title>t</title><h1>A page</h1><p>Edition {} has words to read.</p><a href=/a>a</a><a href=/b>b</a>",
            request.n_before
        )),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.append_settings("[[notify]]\nname = \"all\"\nto = \"webhook:http://127.0.0.1:9/\"\n");
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("1h", "6h");
    archive.verify();
    (web, archive)
}

/// The files of a folder with this ending, by name.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = found.filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    found.sort();
    assert!(!found.is_empty(), "{}", folder.display());
    found
}

fn flip(path: &Path, rng: &mut Rng) -> usize {
    let mut bytes = fs::read(path).unwrap();
    let at = rng.below(bytes.len());
    bytes[at] ^= 1 << rng.below(8);
    fs::write(path, bytes).unwrap();
    at
}

/// The files with defects. The exit code says whether there are any.
fn defective(archive: &Archive) -> Vec<String> {
    let ran = perennial(&archive.root, ["verify", "--json"]);
    let report = ran.json();
    let files = report["defects"].as_array().unwrap().iter();
    let files: Vec<String> = files.map(|defect| defect["file"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ran.code, if files.is_empty() { 0 } else { 4 }, "{report}");
    files
}

#[test]
fn every_flip_in_every_kind_of_file_is_named() {
    let (_web, archive) = complete();
    let mut paths = files(&archive.root.join("warc"), ".warc.gz");
    paths.extend(files(&archive.root.join("index"), ".cdxj"));
    paths
        .extend(["state.db", "search.db", "outbox.db", "manifest.jsonl"].map(|name| archive.root.join(name)));
    let mut rng = Rng::new(3);
    for path in paths {
        let name = path.file_name().unwrap().to_str().unwrap();
        let sound = fs::read(&path).unwrap();
        for _ in 0..N_FLIPS {
            let at = flip(&path, &mut rng);
            let named = defective(&archive);
            let is_named = |file: &String| file == name || name.ends_with(".cdxj") && file == "index";
            assert!(named.iter().any(is_named), "{name}, byte {at}: {named:?}");
            fs::write(&path, &sound).unwrap();
        }
    }
    assert_eq!(defective(&archive), Vec::<String>::new());
}

fn count(archive: &Archive, sql: &str) -> i64 {
    let state = Connection::open_with_flags(
        archive.root.join("state.db"),
        rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
    );
    state.unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

const ANALYSES: &str = "SELECT count(*) FROM lessons";
const SPENT: &str = "SELECT coalesce(sum(n_visits), 0) FROM crawl_spent WHERE seed = 0";

#[test]
fn a_flip_in_the_index_costs_the_index_alone() {
    let (_web, archive) = complete();
    let before = [ANALYSES, SPENT].map(|sql| count(&archive, sql));
    assert!(before[0] > 10 && before[1] > 10, "{before:?}");
    let path = &files(&archive.root.join("index"), ".cdxj")[0];
    let mut bytes = fs::read(path).unwrap();
    bytes[40] ^= 1;
    fs::write(path, bytes).unwrap();
    assert!(!defective(&archive).is_empty());
    let repaired = archive.ok(&["verify", "--repair"]);
    assert!(repaired.contains("the index was rebuilt from the state"), "{repaired}");
    assert_eq!([ANALYSES, SPENT].map(|sql| count(&archive, sql)), before);
    archive.verify();
}

#[test]
fn a_flip_in_a_database_is_turned_back_and_nothing_is_lost() {
    let (_web, archive) = complete();
    let before = [ANALYSES, SPENT].map(|sql| count(&archive, sql));
    let mut rng = Rng::new(8);
    for name in ["state.db", "search.db", "outbox.db", "state.db-sums"] {
        let path = archive.root.join(name);
        let sound = fs::read(&path).unwrap();
        for n in 0..4 {
            // The first ones are in SQLite's header, without which it reads nothing.
            let at = if n < 2 { 16 + n * 8 } else { rng.below(sound.len()) };
            let mut bytes = sound.clone();
            bytes[at] ^= 1 << rng.below(8);
            fs::write(&path, bytes).unwrap();
            let repaired = archive.ok(&["verify", "--repair"]);
            assert!(repaired.contains("turned 1 flipped bit back"), "{name}, byte {at}: {repaired}");
            assert!(!repaired.contains("rebuilt"), "{repaired}");
            assert_eq!(fs::read(&path).unwrap(), sound, "{name}, byte {at}");
        }
    }
    assert_eq!([ANALYSES, SPENT].map(|sql| count(&archive, sql)), before);
    archive.verify();
}

#[test]
fn a_damaged_state_is_replaced_and_kept_with_what_cannot_be_derived() {
    let (_web, archive) = complete();
    let spent = count(&archive, SPENT);
    assert!(spent > 10, "{spent}");
    // A table that can be derived becomes unreadable.
    let page = count(&archive, "SELECT rootpage FROM sqlite_schema WHERE name = 'captures'") as usize;
    let page_bytes = count(&archive, "PRAGMA page_size") as usize;
    let state = archive.root.join("state.db");
    let mut bytes = fs::read(&state).unwrap();
    bytes[(page - 1) * page_bytes..][..64].fill(0xff);
    fs::write(&state, bytes).unwrap();
    let repaired = archive.ok(&["verify", "--repair"]);
    assert!(repaired.contains("kept the former state as state-"), "{repaired}");
    assert_eq!(count(&archive, SPENT), spent);
    let kept = fs::read_dir(&archive.root).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(kept.into_iter().any(|name| name.to_string_lossy().starts_with("state-")));
    archive.verify();
    archive.ok(&["analyse"]);
    archive.verify();
}

/// The spending of each minute, of all sites and of each.
fn spending(archive: &Archive) -> Vec<String> {
    let state = Connection::open(archive.root.join("state.db")).unwrap();
    let sql = "SELECT seed || ' ' || start || ' ' || n_visits || ' ' || n_bytes FROM crawl_spent ORDER BY 1";
    state.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn spent_budgets_survive_the_loss_of_the_state() {
    let web = Web::serve(|request: &WebRequest| match request.path.as_str() {
        "/robots.txt" => status(404),
        path => html(&format!("<p>{path}<a href=/{}>next</a>", path.len())),
    });
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nsitemaps = false\nbudget = \"100/10d\"\n");
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    let crawl = ["run", "--once", "--no-serve", "--delay", "0"];
    archive.ok(&crawl);
    let (spent, n_spent) = (spending(&archive), count(&archive, SPENT));
    assert_eq!(n_spent, 3, "{spent:?}");
    let state = archive.root.join("state.db");
    for lost in ["header", "file"] {
        match lost {
            "header" => {
                let mut bytes = fs::read(&state).unwrap();
                bytes[..100].fill(0);
                fs::write(&state, bytes).unwrap();
                archive.ok(&["verify", "--repair"]);
            }
            _ => {
                for name in ["state.db", "state.db-sums"] {
                    fs::remove_file(archive.root.join(name)).unwrap();
                }
                archive.ok(&["verify", "--rebuild"]);
            }
        }
        assert_eq!(spending(&archive), spent, "{lost}");
        archive.verify();
    }
    fs::remove_file(&state).unwrap();
    fs::remove_file(archive.root.join("state.db-sums")).unwrap();
    archive.ok(&crawl);
    assert_eq!(count(&archive, SPENT), 2 * n_spent, "the crawl itself restores what was spent");
}

#[test]
fn a_state_of_a_later_program_is_not_replaced() {
    let (_web, archive) = complete();
    fs::remove_file(archive.root.join("state.db-sums")).unwrap();
    Connection::open(archive.root.join("state.db"))
        .unwrap()
        .execute_batch("PRAGMA user_version = 999")
        .unwrap();
    let before = fs::read(archive.root.join("state.db")).unwrap();
    for args in [&["verify", "--repair"][..], &["verify", "--rebuild"], &["verify"]] {
        let ran = perennial(&archive.root, args);
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        assert!(ran.stderr.contains("install a later perennial"), "{}", ran.stderr);
    }
    assert_eq!(fs::read(archive.root.join("state.db")).unwrap(), before);
}

/// Puts a state in place of the archive's, with its checksums, as a restore from a backup does.
fn restore(archive: &Archive, from: &Path) {
    for suffix in ["", "-wal", "-shm", "-sums", "-sums-pending"] {
        let name = format!("state.db{suffix}");
        let _ = fs::remove_file(archive.root.join(&name));
        if from.join(&name).exists() {
            fs::copy(from.join(&name), archive.root.join(&name)).unwrap();
        }
    }
}

#[test]
fn a_state_that_lacks_captures_is_a_defect_until_they_are_taken_in() {
    let (_web, archive) = complete();
    let n_captures = count(&archive, "SELECT count(*) FROM captures");
    restore(&archive, &Archive::new().root);
    let ran = perennial(&archive.root, ["verify"]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(ran.stdout.contains("the state lacks"), "{}", ran.stdout);
    let mut server =
        archive.spawn_with_stderr(&["serve", "--listen", "127.0.0.1:0", "--replay-listen", "127.0.0.1:0"]);
    let mut line = String::new();
    let mut said = std::io::BufReader::new(server.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(line.contains("the state lacks captures of 1 WARC files"), "{line}");
    archive.ok(&["analyse"]);
    assert_eq!(count(&archive, "SELECT count(*) FROM captures"), n_captures);
    archive.verify();
}

#[test]
fn a_restored_state_learns_its_visits_from_the_captures() {
    let web = Web::serve(|request: &WebRequest| {
        let fields = vec![
            ("Content-Type", "text/html".to_owned()),
            ("ETag", format!("\"edition {}\"", request.n_before)),
        ];
        let link = if request.n_before == 1 { "<a href=/later>later</a>" } else { "" };
        match request.path.as_str() {
            "/" => {
                crate::web::Reply::Page(200, fields, format!("<p>edition {} {link}", request.n_before).into())
            }
            "/later" => html("<p>found later"),
            _ => status(404),
        }
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    let crawl = ["run", "--once", "--delay", "0", "--no-serve"];
    archive.ok(&crawl);
    let backup = tempfile::tempdir().unwrap();
    for name in ["state.db", "state.db-sums"] {
        fs::copy(archive.root.join(name), backup.path().join(name)).unwrap();
    }
    let second = perennial_archive::now().as_secs();
    crate::wait::wait_until("the next second", || perennial_archive::now().as_secs() > second);
    archive.ok(&[&crawl[..], &["--limit", "1"]].concat());
    assert_eq!(web.n_requests("/later"), 0);
    restore(&archive, backup.path());
    archive.ok(&crawl);
    let conditions: Vec<Option<String>> = web
        .requests()
        .iter()
        .filter(|request| request.path == "/")
        .map(|request| {
            request
                .fields
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("if-none-match"))
                .map(|(_, value)| value.clone())
        })
        .collect();
    assert_eq!(conditions.len(), 3, "{conditions:?}");
    assert_eq!(conditions[2].as_deref(), Some("\"edition 1\""), "the validator of the second visit");
    assert_eq!(web.n_requests("/later"), 1, "the link of the second visit");
    archive.verify();
}
