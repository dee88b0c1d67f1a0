//! During an endless crawl the index remains small and up to date, and it finds every capture exactly once.

use perennial_archive::{Archive, ArchiveWriter, Exchange, ExchangeBody, IndexPace, Snapshot};
use perennial_core::time::{Span, Timestamp};
use perennial_warc::surt::{KeyRange, MatchType};

use crate::program::{folder, perennial};

/// The URL of capture `n`: seven hosts, some pages captured repeatedly, some once.
fn url_of(n: i64) -> String {
    format!("http://{}.example/{}", ["a", "b", "c", "d", "e", "f", "g"][n as usize % 7], n % 40)
}

fn append(writer: &mut ArchiveWriter, n: i64, step: Span) {
    let start = Timestamp::parse("2026-01-01").unwrap();
    writer
        .append(Exchange {
            url: &url_of(n),
            time: start + Span::from_millis(step.as_millis() * n),
            ip: None,
            request_head: b"",
            response_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n",
            body: ExchangeBody::Bytes(n.to_string().as_bytes()),
            truncated: None,
            metadata: &[],
            derived: &[],
            links: None,
        })
        .unwrap();
}

pub(crate) fn lookup(snapshot: &Snapshot, range: &KeyRange) -> Vec<String> {
    snapshot.lines(range).unwrap().map(Result::unwrap).collect()
}

/// Every kind of range query finds all captures so far, each once.
fn assert_found_once(archive: &Archive, n_captures: i64) {
    let snapshot = archive.snapshot().unwrap();
    let count = |url: &str, matching| {
        let lines = lookup(&snapshot, &KeyRange::of(url, matching));
        assert!(lines.is_sorted_by(|a, b| a < b), "{url}: a line is there twice or out of order");
        lines.len()
    };
    let expected =
        |is_meant: &dyn Fn(&str) -> bool| (0..n_captures).filter(|&n| is_meant(&url_of(n))).count();
    assert_eq!(
        count("http://c.example/", MatchType::Host),
        expected(&|url| url.starts_with("http://c.example/"))
    );
    assert_eq!(
        count("http://c.example/3", MatchType::Prefix),
        expected(&|url| url.starts_with("http://c.example/3"))
    );
    assert_eq!(count("http://d.example/10", MatchType::Exact), expected(&|url| url == "http://d.example/10"));
    assert_eq!(count("http://none.example/", MatchType::Domain), 0);
}

fn runs_of(archive: &Archive) -> Vec<perennial_archive::store::IndexRun> {
    archive.snapshot().unwrap().store().runs().unwrap()
}

#[test]
fn a_crawl_is_found_by_the_index_while_it_goes_on() {
    const N_CAPTURES: i64 = 3_000;
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let pace = IndexPace { max_captures: 25, max_age: Span::from_hours(1_000_000) };
    let mut writer = ArchiveWriter::open(&archive).unwrap().with_index_pace(pace);
    for n in 0..N_CAPTURES {
        append(&mut writer, n, Span::from_secs(1));
        if n % 5 == 4 {
            writer.commit().unwrap();
        }
        if n % 50 == 49 {
            assert_found_once(&archive, n + 1);
            // Runs that are 4 times as large as all later ones, the run just written, and the one being merged.
            assert!(runs_of(&archive).len() <= 2 + 8, "{:?}", runs_of(&archive));
        }
    }
    assert!(!runs_of(&archive).is_empty(), "the index did not change");
    writer.close().unwrap();
    assert_found_once(&archive, N_CAPTURES);
    assert!(runs_of(&archive).len() <= 6, "{:?}", runs_of(&archive));
    assert_eq!(std::fs::read_dir(archive.index_dir()).unwrap().count(), runs_of(&archive).len());
    perennial(&root, ["verify"]).ok();
}

#[test]
fn a_slow_crawl_is_indexed_by_its_own_clock() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    // Ten minutes between captures. A run needs far more captures than that, so the hourly flush writes it.
    let mut n = 0;
    while runs_of(&archive).len() < 2 && n < 100_000 {
        append(&mut writer, n, Span::from_secs(600));
        writer.commit().unwrap();
        n += 1;
    }
    assert!(n < 100_000, "no run was made");
    assert_found_once(&archive, n);
    writer.close().unwrap();
    assert_found_once(&archive, n);
}

#[test]
fn a_crawl_that_stands_still_writes_no_runs() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    for n in 0..50 {
        append(&mut writer, n, Span::from_secs(1));
        writer.commit().unwrap();
    }
    assert_eq!(runs_of(&archive), []);
    assert_found_once(&archive, 50);
}
