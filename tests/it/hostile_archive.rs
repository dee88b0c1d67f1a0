//! Untrusted files are imported, verified and analysed. Nothing in them can forge captures, stop the program or exhaust
//! memory and disk.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::write::GzEncoder;
use perennial_warc::sha1_label;
use rusqlite::Connection;

use crate::crawled::Archive;
use crate::program::{Ran, perennial, ran};
use crate::web::{Reply, Web, html, status};

/// A page that can be laid out.
const PAGE: &str = "<!doctype html><title>t</title><h1>A page</h1><p>With some words to read on it.</p>";

/// A record exactly as an attacker writes it, with any additional fields.
pub(crate) fn record(kind: &str, url: &str, time: &str, fields: &str, block: &[u8]) -> Vec<u8> {
    let content_type = match kind {
        "response" => "application/http; msgtype=response",
        _ => "text/plain",
    };
    let mut bytes = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: {time}\r\nContent-Type: {content_type}\r\n\
         {fields}Content-Length: {}\r\n\r\n",
        block.len()
    )
    .into_bytes();
    bytes.extend_from_slice(block);
    bytes.extend_from_slice(b"\r\n\r\n");
    bytes
}

pub(crate) fn response(url: &str, time: &str, fields: &str, body: &str) -> Vec<u8> {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    record("response", url, time, fields, block.as_bytes())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), flate2::Compression::default());
    member.write_all(bytes).unwrap();
    member.finish().unwrap()
}

/// Writes a file outside the archive.
fn file(archive: &Archive, name: &str, bytes: &[u8]) -> PathBuf {
    let path = archive.root.parent().unwrap().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn import(archive: &Archive, path: &Path) -> serde_json::Value {
    imported_with(archive, &["import", "--json", path.to_str().unwrap()])
}

fn import_only(archive: &Archive, path: &Path) -> serde_json::Value {
    imported_with(archive, &["import", "--json", "--no-analysis", path.to_str().unwrap()])
}

/// The report of an import. The exit code shows whether the import found defects.
fn imported_with(archive: &Archive, args: &[&str]) -> serde_json::Value {
    let ran = perennial(&archive.root, args);
    let report = ran.json();
    let code = if total(&report, "n_defects") > 0 { 4 } else { 0 };
    assert_eq!(ran.code, code, "{} {}", ran.stdout, ran.stderr);
    report
}

/// The sum of a count over all files of an import.
fn total(report: &serde_json::Value, name: &str) -> u64 {
    report["files"].as_array().unwrap().iter().map(|file| file[name].as_u64().unwrap()).sum()
}

/// The state, open for changes by hand. Earlier versions of this program kept no checksums of it.
fn state(archive: &Archive) -> Connection {
    let _ = std::fs::remove_file(archive.root.join("state.db-sums"));
    Connection::open(archive.root.join("state.db")).unwrap()
}

fn count(archive: &Archive, sql: &str) -> i64 {
    state(archive).query_row(sql, [], |row| row.get(0)).unwrap()
}

/// The defects that `verify` found, with the expected exit code.
fn verified(archive: &Archive, code: i32) -> serde_json::Value {
    let ran = perennial(&archive.root, ["verify", "--json"]);
    assert_eq!(ran.code, code, "{} {}", ran.stdout, ran.stderr);
    ran.json()
}

/// Adds a page of a server and visits it once.
fn crawl_once(archive: &Archive, web: &Web) -> Ran {
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    perennial(&archive.root, ["run", "--once", "--delay", "0"])
}

fn one_page() -> Web {
    Web::serve(|request| if request.path == "/" { html(PAGE) } else { status(404) })
}

/// How the crawl stored a URL.
fn stored(archive: &Archive, url: &str) -> Vec<String> {
    let of_url = |line: &&serde_json::Value| line["url"] == url;
    archive.log().iter().filter(of_url).map(|line| line["stored"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_claimed_digest_makes_no_revisit_of_another_page() {
    for segment in ["", "WARC-Segment-Number: 1\r\n"] {
        let archive = Archive::new();
        let fields = format!("WARC-Payload-Digest: {}\r\n{segment}", sha1_label(PAGE.as_bytes()));
        let forged = response("http://forger.example/", "2024-01-01T00:00:00Z", &fields, "<p>forged");
        let report = import(&archive, &file(&archive, "forged.warc", &forged));
        assert_eq!(total(&report, "n_problems"), 1, "{report}");
        let web = one_page();
        crawl_once(&archive, &web).ok();
        assert_eq!(stored(&archive, &web.url("/")), ["response"], "the true bytes are stored");
        let found = verified(&archive, 4);
        assert_eq!(found["n_mismatching"], 1, "{found}");
        let defects = found["defects"].as_array().unwrap();
        assert!(defects.iter().all(|defect| defect["kind"] == "digest"), "{found}");
        assert_eq!(archive.json(&["status"])["quarantine"]["n_mismatching"], 1);
        archive.ended(&["verify", "--rebuild"], 4);
        assert_eq!(archive.json(&["status"])["quarantine"]["n_mismatching"], 1);
        assert_eq!(count(&archive, "SELECT count(*) FROM captures WHERE kind = 1 AND status = 200"), 0);
    }
}

#[test]
fn a_record_that_contradicts_its_digest_is_no_origin() {
    let archive = Archive::new();
    // The exact bytes of the page, labelled with a different digest. No revisit may refer to this record.
    let fields = format!("WARC-Payload-Digest: {}\r\n", sha1_label(b"another page"));
    let doubtful = response("http://doubtful.example/", "2024-01-01T00:00:00Z", &fields, PAGE);
    import(&archive, &file(&archive, "doubtful.warc", &doubtful));
    let web = one_page();
    crawl_once(&archive, &web).ok();
    assert_eq!(stored(&archive, &web.url("/")), ["response"]);
}

#[test]
fn the_true_page_under_its_true_digest_is_stored_once() {
    let archive = Archive::new();
    let fields = format!("WARC-Payload-Digest: {}\r\n", sha1_label(PAGE.as_bytes()));
    let honest = response("http://honest.example/", "2024-01-01T00:00:00Z", &fields, PAGE);
    import(&archive, &file(&archive, "honest.warc", &honest));
    let web = one_page();
    crawl_once(&archive, &web).ok();
    assert_eq!(stored(&archive, &web.url("/")), ["revisit"]);
    verified(&archive, 0);
}

/// Two payloads with the same SHA-1, published in 2017 (shattered.io): a common beginning and two endings.
fn colliding() -> [Vec<u8>; 2] {
    const BEGINNING: &str = "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f48656967687420\
         33203020522f547970652034203020522f537562747970652035203020522f46696c7465722036203020522f436f6c6f7253706163652037\
         203020522f4c656e6774682038203020522f42697473506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe002453484\
         12d3120697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe01";
    const ONE: &str = "7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3dc3\
         8e96ac22fe7bd728f0e45bce046d23c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500eb4ddc0decc1a8647\
         90c782c76215660dd309791d06bd0af3f98cda4bc4629b1";
    const OTHER: &str = "7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb76\
         038e972722fe7ad728f0e4904e046c230570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514e74ddc0f2cc1a87\
         4cd0c78305a21566461309789606bd0bf3f98cda8044629a1";
    [ONE, OTHER].map(|end| {
        let digits = format!("{BEGINNING}{end}").replace(char::is_whitespace, "");
        unhex(&digits)
    })
}

fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

#[test]
fn two_payloads_with_one_sha1_are_two() {
    let [one, other] = colliding();
    assert_ne!(one, other);
    assert_eq!(sha1_label(&one), sha1_label(&other));
    let web = Web::serve(move |request| match request.path.as_str() {
        "/" => html("<a href=/one>1</a><a href=/other>2</a>"),
        "/one" => Reply::Page(200, vec![("Content-Type", "application/pdf".into())], one.clone()),
        "/other" => Reply::Page(200, vec![("Content-Type", "application/pdf".into())], other.clone()),
        _ => status(404),
    });
    let archive = Archive::new();
    crawl_once(&archive, &web).ok();
    for path in ["/one", "/other"] {
        assert_eq!(stored(&archive, &web.url(path)), ["response"], "{path}");
    }
    // A second visit makes each a revisit of itself, even after a rebuild from the WARC files.
    crawl_once(&archive, &web).ok();
    std::fs::remove_file(archive.root.join("state.db")).unwrap();
    archive.ok(&["verify", "--rebuild"]);
    for path in ["/one", "/other"] {
        assert_eq!(stored(&archive, &web.url(path)), ["response", "revisit"], "{path}");
        let sql = format!(
            "SELECT count(DISTINCT content) FROM captures c JOIN pages p ON p.id = c.page WHERE p.url = '{}'",
            web.url(path)
        );
        assert_eq!(count(&archive, &sql), 1, "{path}");
    }
    assert_eq!(
        count(&archive, "SELECT count(DISTINCT content) FROM captures WHERE digest LIKE 'sha1:7EWX%'"),
        2
    );
    verified(&archive, 0);
}

#[test]
fn an_unreadable_capture_that_waits_does_not_stop_a_crawl() {
    let archive = Archive::new();
    let page = |n: u32| {
        gzip(&response(&format!("http://old.example/{n}"), "2024-01-01T00:00:00Z", "", &format!("{PAGE}{n}")))
    };
    let (first, second) = (page(1), page(2));
    import_only(&archive, &file(&archive, "old.warc.gz", &[first.clone(), second].concat()));
    let inside = archive.root.join("warc/old.warc.gz");
    let mut bytes = std::fs::read(&inside).unwrap();
    bytes[first.len() / 2] ^= 0x55;
    bytes[first.len() / 2 + 1] ^= 0x55;
    std::fs::write(&inside, bytes).unwrap();
    crawl_once(&archive, &one_page()).ok();
    let quarantine = &archive.json(&["status"])["quarantine"];
    assert_eq!(quarantine["n_unread"], 1, "{quarantine}");
    assert_eq!(count(&archive, "SELECT count(*) FROM lessons"), 3, "every observation has its analysis");
    let found = verified(&archive, 4);
    assert!(found["defects"].as_array().unwrap().iter().any(|defect| defect["kind"] == "damage"), "{found}");
    assert_eq!(found["quarantined"][0]["kind"], "analysis", "it is named: {found}");
}

/// A skippable frame that contains a dictionary, and frames that need it.
fn with_dictionary(dictionary: &[u8], records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = 0x184d_2a5d_u32.to_le_bytes().to_vec();
    bytes.extend_from_slice(&(dictionary.len() as u32).to_le_bytes());
    bytes.extend_from_slice(dictionary);
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
    records.iter().for_each(|record| bytes.extend(compressor.compress(record).unwrap()));
    bytes
}

#[test]
fn a_file_with_two_dictionaries_is_read_to_its_end() {
    let archive = Archive::new();
    let page = |n: u32| {
        response(&format!("http://two.example/{n}"), "2024-01-01T00:00:00Z", "", &format!("{PAGE}{n}"))
    };
    let dictionaries = [PAGE.repeat(20), "WARC/1.1 response text/html HTTP/1.1 200 OK".repeat(30)];
    let bytes: Vec<u8> = (0..)
        .zip(&dictionaries)
        .flat_map(|(n, dictionary)| with_dictionary(dictionary.as_bytes(), &[page(2 * n), page(2 * n + 1)]))
        .collect();
    let report = import(&archive, &file(&archive, "two.warc.zst", &bytes));
    assert_eq!(total(&report, "n_captures"), 4, "{report}");
    assert_eq!(report["learned"]["n_failed"], 0, "{report}");
    crawl_once(&archive, &one_page()).ok();
    verified(&archive, 0);
    archive.ok(&["verify", "--rebuild"]);
    let sql = "SELECT count(*) FROM captures c JOIN pages p ON p.id = c.page WHERE p.url LIKE 'http://two.example/%'";
    assert_eq!(count(&archive, sql), 4);
}

#[test]
fn records_that_share_a_member_in_part_of_a_file_are_all_taken_in() {
    let archive = Archive::new();
    let page = |n: u32| {
        response(&format!("http://part.example/{n}"), "2024-01-01T00:00:00Z", "", &format!("{PAGE}{n}"))
    };
    let alone = [page(0), page(1), page(2)].map(|page| gzip(&page)).concat();
    let shared = gzip(&[page(3), page(4), page(5)].concat());
    let path = file(&archive, "part.warc.gz", &[&alone[..], &shared, &gzip(&page(6))].concat());
    let report = import(&archive, &path);
    assert_eq!(total(&report, "n_captures"), 7, "{report}");
    assert_eq!(total(&report, "n_records"), 7, "{report}");
    assert_eq!(report["learned"]["n_failed"], 0, "{report}");
    assert_eq!(std::fs::read(archive.root.join("warc/part.warc.gz")).unwrap(), alone, "as it was given");
    verified(&archive, 0);
    assert_eq!(import(&archive, &path)["files"][0]["is_known"], true);
    archive.ok(&["verify", "--rebuild"]);
    assert_eq!(count(&archive, "SELECT count(*) FROM captures"), 7);
    verified(&archive, 0);
}

#[test]
fn an_endless_chain_of_companions_is_cut() {
    const N: u32 = 5_000;
    let archive = Archive::new();
    let mut bytes = Vec::new();
    for n in 0..N {
        let fields =
            format!("WARC-Record-ID: <urn:x:{n}>\r\nWARC-Concurrent-To: <urn:x:{}>\r\n", n.saturating_sub(1));
        bytes.extend(record(
            "resource",
            &format!("http://chain.example/{n}"),
            "2024-01-01T00:00:00Z",
            &fields,
            b"x",
        ));
    }
    let report = import(&archive, &file(&archive, "chain.warc", &bytes));
    assert_eq!(total(&report, "n_captures"), u64::from(N), "{report}");
    let most = count(
        &archive,
        "SELECT max(n) FROM (SELECT count(*) AS n FROM captures GROUP BY file, group_offset)",
    );
    assert!(most <= 64, "{most} records are held at a time");
}

#[test]
fn an_oversized_url_is_quarantined_and_stops_nothing() {
    let archive = Archive::new();
    let long = format!("http://long.example/{}", "a".repeat(600_000));
    let bytes = [
        response(&long, "2024-01-01T00:00:00Z", "", PAGE),
        response("http://long.example/", "2024-01-01T00:00:00Z", "", PAGE),
    ]
    .concat();
    let report = import(&archive, &file(&archive, "long.warc", &bytes));
    assert_eq!((total(&report, "n_captures"), total(&report, "n_problems")), (1, 1), "{report}");
    let only_long = response(&long, "2024-01-02T00:00:00Z", "", PAGE);
    let report = import(&archive, &file(&archive, "only.warc", &only_long));
    assert_eq!(report["files"][0]["stored_as"], "only.warc", "the record is kept: {report}");
    for repair in ["", "--repair", "--rebuild"] {
        let args = ["verify", "--json", repair];
        let found = perennial(&archive.root, args.iter().filter(|arg| !arg.is_empty())).ok().json();
        assert_eq!(found["n_quarantined"], 2, "{found}");
        assert!(found["quarantined"][0]["what"].as_str().unwrap().len() < 1_000);
        assert_eq!(archive.json(&["status"])["quarantine"]["n_records"], 2, "{repair}");
    }
    let later = response("http://later.example/", "2024-01-01T00:00:00Z", "", PAGE);
    assert_eq!(total(&import(&archive, &file(&archive, "later.warc", &later)), "n_captures"), 1);
    verified(&archive, 0);
}

#[test]
fn labels_without_measure_do_not_reach_the_index() {
    let archive = Archive::new();
    let kind = "x/".to_string() + &"y".repeat(700_000);
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n\r\nx");
    let mut bytes = record("response", "http://kind.example/", "2024-01-01T00:00:00Z", "", block.as_bytes());
    let digest = format!("WARC-Payload-Digest: sha1:{}\r\n", "A".repeat(700_000));
    bytes.extend(record("revisit", "http://digest.example/", "2024-01-01T00:00:00Z", &digest, b""));
    import(&archive, &file(&archive, "labels.warc", &bytes));
    assert!(count(&archive, "SELECT max(length(digest) + length(coalesce(mime, ''))) FROM captures") < 600);
    verified(&archive, 0);
}

#[test]
fn a_line_of_an_index_without_end_is_passed_over_in_little_memory() {
    const LINE_MIB: usize = 1_500;
    let archive = Archive::new();
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let block = vec![b'a'; 1 << 20];
    (0..LINE_MIB).for_each(|_| packed.write_all(&block).unwrap());
    packed.write_all(b"\ncom,example)/ 2024 {}\n").unwrap();
    let path = file(&archive, "bomb.cdxj.gz", &packed.finish().unwrap());
    // Less memory than the line has bytes.
    let command = "ulimit -v 1200000; exec \"$0\" --archive \"$1\" import --no-analysis --json \"$2\"";
    let ran = ran(Command::new("sh")
        .args(["-c", command, env!("CARGO_BIN_EXE_perennial")])
        .arg(&archive.root)
        .arg(&path));
    let report = ran.ok().json();
    assert_eq!(report["indexes"][0]["n_unconfirmed"], 2, "{report}");
    assert!(report.to_string().len() < 10_000);
}

/// Characters that control a terminal.
pub(crate) fn commands_in(text: &str) -> Vec<char> {
    let obeys = |c: &char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || ('\u{202a}'..='\u{202e}').contains(c)
            || ('\u{2066}'..='\u{2069}').contains(c)
    };
    text.chars().filter(obeys).collect()
}

#[test]
fn untrusted_text_never_commands_the_terminal() {
    let archive = Archive::new();
    let url = "http://evil.example/\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}gpj.exe";
    let mut bytes = Vec::new();
    for (hour, text) in (0..6).zip(["one", "two", "three", "four", "five", "six"]) {
        let time = format!("2024-01-01T0{hour}:00:00Z");
        bytes.extend(response(
            url,
            &time,
            "",
            &format!("{PAGE}<p>{text} \u{1b}[31m\u{202e} words that change"),
        ));
    }
    let fields = format!("WARC-Payload-Digest: {}\u{1b}[31m\r\n", sha1_label(b"x"));
    bytes.extend(response(&format!("{url}2"), "2024-01-01T00:00:00Z", &fields, PAGE));
    bytes.extend(response(&format!("{url}{}", "a".repeat(40_000)), "2024-01-01T00:00:00Z", "", PAGE));
    let path = file(&archive, "evil\u{1b}[2J.warc", &bytes);
    let index = file(&archive, "evil.cdxj", format!("{url} 2024 {{\"url\": \"{url}\"}}\n").as_bytes());
    let mut n_named = 0;
    let (path, index) = (path.to_str().unwrap(), index.to_str().unwrap());
    for args in [
        &["import", path, index][..],
        &["import", path],
        &["status"],
        &["plan", "patterns"],
        &["plan", "patterns", "--format", "json"],
        &["plan", "next", "--budget", "60/1h"],
        &["changes"],
        &["plan", "quality"],
        &["verify"],
        &["diff", &format!("{url}@2024010100"), &format!("{url}@2024010105")],
        &["import", &format!("{url}.warc")],
    ] {
        for json in [&[][..], &["--json"]] {
            let ran = perennial(&archive.root, args.iter().chain(json));
            assert!(commands_in(&ran.stdout).is_empty(), "{args:?} {json:?}: {}", ran.stdout);
            assert!(commands_in(&ran.stderr).is_empty(), "{args:?} {json:?}: {}", ran.stderr);
            n_named += usize::from(ran.stdout.contains("evil.example/\\u"));
            if !json.is_empty() && !ran.stdout.is_empty() {
                let value: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
                let text = value.to_string();
                assert!(!text.contains("\\\\u{1b}"), "JSON keeps the values as they are: {text}");
            }
        }
    }
    assert!(n_named >= 8, "the address was printed {n_named} times only");
}

/// Removes what the schemas since 7 added, and adds what schema 6 assumed. Analysed captures become due again.
fn age(archive: &Archive, trusted: &str) {
    let sql = "
        CREATE TABLE old (id INTEGER PRIMARY KEY, page INTEGER NOT NULL, digest TEXT NOT NULL, first_time INTEGER NOT NULL,
            last_time INTEGER NOT NULL, n_captures INTEGER NOT NULL, origin INTEGER, UNIQUE (page, digest));
        INSERT INTO old SELECT NULL, page, digest, min(time), max(time), count(*), min(CASE WHEN kind <> 1 THEN id END)
            FROM captures WHERE kind < 3 GROUP BY page, digest;
        DROP TABLE versions;
        ALTER TABLE old RENAME TO versions;
        CREATE INDEX versions_digest ON versions(digest);
        DROP TABLE set_aside; DROP INDEX lessons_importance; DROP TABLE crawl_bearings;
        ALTER TABLE captures DROP COLUMN content;
        ALTER TABLE known DROP COLUMN was_page; ALTER TABLE known DROP COLUMN title;
        ALTER TABLE lessons DROP COLUMN title; ALTER TABLE lessons DROP COLUMN title_before;
        ALTER TABLE pages DROP COLUMN linked_at; ALTER TABLE pages DROP COLUMN linked_from;
        DROP TABLE items; DROP TABLE feed_reads; DROP TABLE feeds;
        DROP TABLE trees; DROP TABLE past_trees; DELETE FROM lessons; DELETE FROM known;
        CREATE TABLE trees (page INTEGER NOT NULL, time INTEGER NOT NULL, vixml BLOB NOT NULL, PRIMARY KEY (page, time));
        ALTER TABLE lessons ADD COLUMN delta BLOB; ALTER TABLE lessons DROP COLUMN noise;
        PRAGMA user_version = 6";
    state(archive).execute_batch(&format!("{trusted};{sql}")).unwrap();
}

#[test]
fn an_archive_of_an_earlier_version_is_checked_when_it_is_brought_over() {
    let archive = Archive::new();
    let claimed = sha1_label(PAGE.as_bytes());
    let forged = response(
        "http://forger.example/",
        "2024-01-01T00:00:00Z",
        &format!("WARC-Payload-Digest: {claimed}\r\n"),
        "forged",
    );
    let fields =
        format!("WARC-Payload-Digest: {claimed}\r\nWARC-Refers-To-Target-URI: http://forger.example/\r\n");
    let fields = format!("{fields}WARC-Refers-To-Date: 2024-01-01T00:00:00Z\r\n");
    let revisit = record(
        "revisit",
        "http://true.example/",
        "2024-01-02T00:00:00Z",
        &fields,
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
    );
    import(&archive, &file(&archive, "forged.warc", &[forged, revisit].concat()));
    age(&archive, &format!("UPDATE captures SET digest = '{claimed}'"));

    let brought_over = perennial(&archive.root, ["analyse"]).ok();
    assert!(
        brought_over.stderr.contains("1 contradict their digests, 1 revisits stand"),
        "{}",
        brought_over.stderr
    );
    let info = archive.json(&["status"]);
    assert_eq!(
        (&info["n_unfounded"], &info["quarantine"]["n_mismatching"]),
        (&1.into(), &1.into()),
        "{info}"
    );
    assert!(
        perennial(&archive.root, ["lab", "segment", "http://true.example/@"]).code != 0,
        "the forgery is not shown"
    );
    let found = verified(&archive, 4);
    assert_eq!(found["defects"].as_array().unwrap().len(), 1, "state, index and records agree: {found}");
    // If the server now sends the same page, the crawl stores its bytes.
    let web = one_page();
    crawl_once(&archive, &web).ok();
    assert_eq!(stored(&archive, &web.url("/")), ["response"]);
}

#[test]
fn an_oversized_url_of_an_earlier_version_is_quarantined() {
    let archive = Archive::new();
    let long = format!("http://long.example/{}", "a".repeat(600_000));
    let pages = [
        response(&long, "2024-01-01T00:00:00Z", "", PAGE),
        response("http://a.example/", "2024-01-01T00:00:00Z", "", PAGE),
    ];
    import(&archive, &file(&archive, "long.warc", &pages.concat()));
    let taken = format!(
        "UPDATE pages SET n_captures = 2, url = '{long}' WHERE url = 'http://a.example/';
         INSERT INTO captures (page, time, kind, status, mime, digest, file, offset, length, group_offset, group_length, answer)
             SELECT page, time, kind, status, mime, digest, file, 0, length, 0, group_length, answer FROM captures"
    );
    age(&archive, &taken);
    std::fs::write(archive.root.join("index/000000000001-000000000001.cdxj"), "x".repeat(2 << 20)).unwrap();
    crawl_once(&archive, &one_page()).ok();
    assert_eq!(archive.json(&["status"])["quarantine"]["n_records"], 1);
    let longest = "SELECT max(length(p.url)) FROM captures c JOIN pages p ON p.id = c.page";
    assert!(count(&archive, longest) < 1_000);
    archive.ok(&["verify", "--repair"]);
    verified(&archive, 0);
}

#[test]
fn a_run_of_the_index_that_cannot_be_read_is_written_again() {
    let archive = Archive::new();
    for n in 0..3 {
        let page = response(&format!("http://run.example/{n}"), "2024-01-01T00:00:00Z", "", PAGE);
        let path = file(&archive, &format!("run-{n}.warc"), &page);
        import_only(&archive, &path);
        let runs: Vec<PathBuf> = std::fs::read_dir(archive.root.join("index"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(runs.len(), 1, "runs of like size are merged");
        if n < 2 {
            std::fs::remove_file(&runs[0]).unwrap();
        }
    }
    verified(&archive, 0);
}

/// A zip file with these entries, deflated, as plain `zip -r` makes it. Names may occur several times.
pub(crate) fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in entries {
        let mut member = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        member.write_all(content).unwrap();
        let (packed, offset) = (member.finish().unwrap(), file.len() as u32);
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let mut facts = vec![20, 0, 0, 0, 8, 0, 0, 0, 0, 0];
        for number in [crc.sum(), packed.len() as u32, content.len() as u32] {
            facts.extend(number.to_le_bytes());
        }
        facts.extend((name.len() as u16).to_le_bytes());
        facts.extend([0, 0]);
        file.extend([b"PK\x03\x04", &facts[..], name.as_bytes(), &packed].concat());
        directory.extend(
            [b"PK\x01\x02\x14\0", &facts[..], &[0; 10], &offset.to_le_bytes(), name.as_bytes()].concat(),
        );
    }
    let n = (entries.len() as u16).to_le_bytes();
    let (start, length) = ((file.len() as u32).to_le_bytes(), (directory.len() as u32).to_le_bytes());
    [&file[..], &directory, b"PK\x05\x06\0\0\0\0", &n, &n, &length, &start, &[0, 0]].concat()
}

#[test]
fn all_entries_of_a_zip_file_are_read_even_deflated_and_of_one_name() {
    let archive = Archive::new();
    let page = |n: u32| {
        gzip(&response(&format!("http://zip.example/{n}"), "2024-01-01T00:00:00Z", "", &format!("{PAGE}{n}")))
    };
    let (one, two, three) = (page(1), page(2), page(3));
    let evil = "archive/evil\u{1b}[2J\u{9b}31m.warc.gz";
    let bytes = zipped(&[("archive/a.warc.gz", &one), ("archive/a.warc.gz", &two), (evil, &three)]);
    let path = file(&archive, "plain.wacz", &bytes);
    let ran = perennial(&archive.root, ["import", "--no-analysis", path.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    assert!(commands_in(&ran.stdout).is_empty(), "{}", ran.stdout);
    assert!(ran.stdout.contains("entry 2 of this name"), "{}", ran.stdout);
    for n in 1..=3 {
        let sql =
            format!("SELECT count(*) FROM pages WHERE url = 'http://zip.example/{n}' AND n_captures = 1");
        assert_eq!(count(&archive, &sql), 1, "page {n}");
    }
    verified(&archive, 0);
}

#[test]
fn a_damaged_entry_of_a_zip_file_is_named_and_the_others_are_read() {
    let archive = Archive::new();
    let page = |n: u32| {
        gzip(&response(&format!("http://zip.example/{n}"), "2024-01-01T00:00:00Z", "", &format!("{PAGE}{n}")))
    };
    let (one, two) = (page(1), page(2));
    let mut bytes = zipped(&[("archive/a.warc.gz", &one), ("archive/b.warc.gz", &two)]);
    bytes[30 + "archive/a.warc.gz".len() + 20] ^= 0x10;
    let report = import_only(&archive, &file(&archive, "damaged.wacz", &bytes));
    assert_eq!((total(&report, "n_captures"), total(&report, "n_defects")), (1, 1), "{report}");
    verified(&archive, 0);
}

#[test]
fn an_erasure_names_the_urls_that_lose_their_content() {
    let archive = Archive::new();
    let fields = format!(
        "WARC-Payload-Digest: {}\r\nWARC-Refers-To-Target-URI: http://a.example/private\r\nWARC-Refers-To-Date: 2024-01-01T00:00:00Z\r\n",
        sha1_label(PAGE.as_bytes())
    );
    let revisit =
        |url: &str| record("revisit", url, "2024-01-02T00:00:00Z", &fields, b"HTTP/1.1 200 OK\r\n\r\n");
    let bytes = [
        response("http://a.example/private", "2024-01-01T00:00:00Z", "", PAGE),
        revisit("http://a.example/private"),
        revisit("http://mirror.example/"),
    ];
    import_only(&archive, &file(&archive, "mirrored.warc", &bytes.concat()));
    let erase = ["erase", "http://a.example/private", "--reason", "request 7"];
    let planned = archive.json(&erase);
    assert_eq!(planned["losing"], serde_json::json!(["http://mirror.example/"]), "{planned}");
    let done = archive.ok(&[&erase[..], &["--yes"]].concat());
    assert!(done.contains("refers to it: http://mirror.example/"), "{done}");
    assert!(done.contains("erased 2 records of 1 URL,"), "{done}");
    verified(&archive, 0);
    let shown = perennial(&archive.root, ["view", "--raw", "http://mirror.example/"]);
    assert!(shown.stderr.contains("no record of this archive contains its payload"), "{}", shown.stderr);
}

#[test]
fn a_zip_file_that_would_fill_the_disk_is_not_unpacked() {
    let archive = Archive::new();
    let page = response("http://bomb.example/", "2024-01-01T00:00:00Z", "", PAGE);
    // It unpacks to a thousand times its size.
    let large = [&page[..], &vec![b'\n'; 80 << 20]].concat();
    let bytes = zipped(&[("archive/large.warc", &large), ("archive/small.warc", &page)]);
    let report = import_only(&archive, &file(&archive, "bomb.wacz", &bytes));
    assert!(report.to_string().contains("more than 200 times its size"), "{report}");
    assert_eq!(total(&report, "n_captures"), 1, "the other entry is read: {report}");
    // A thousand entries with one content.
    let one = zipped(&[("archive/a.warc", &[&page[..], &page.repeat(200)].concat())]);
    let start = one.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    let end = one.windows(4).position(|four| four == b"PK\x05\x06").unwrap();
    let mut many = [&one[..start], &one[start..end].repeat(1_000), &one[end..]].concat();
    let (n, length) = (many.len(), ((end - start) * 1_000) as u32);
    many[n - 14..n - 10].copy_from_slice(&[1_000u16.to_le_bytes(), 1_000u16.to_le_bytes()].concat());
    many[n - 10..n - 6].copy_from_slice(&length.to_le_bytes());
    let report = import_only(&archive, &file(&archive, "overlapping.wacz", &many));
    assert!(report.to_string().contains("entries overlap"), "{report}");
    verified(&archive, 0);
}
