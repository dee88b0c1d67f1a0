//! However the writer ends, no committed capture is lost or duplicated.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use perennial_archive::store::{CaptureFilter, CaptureKind};
use perennial_archive::{Archive, ArchiveWriter, Exchange, ExchangeBody, Repair};
use perennial_core::rng::Rng;
use perennial_core::time::{Span, Timestamp};
use perennial_warc::{WarcItem, WarcReader};

use crate::program::{folder, perennial};
use crate::wait::dawdle;

const N_KILLS: usize = 220;

/// The body of capture `n`. Sizes differ widely, the bytes compress badly, and every fifth body repeats the one before.
fn body_of(n: u64) -> Vec<u8> {
    let n = if n.is_multiple_of(5) && n > 0 { n - 1 } else { n };
    let length = [10, 300, 5_000, 40_000, 200_000][(n % 5) as usize];
    let mut rng = Rng::new(n);
    (0..length).map(|_| rng.bits() as u8).collect()
}

fn time_of(n: u64) -> Timestamp {
    Timestamp::parse("2025-01-01").unwrap() + Span::from_secs(n as i64)
}

fn append(writer: &mut ArchiveWriter, n: u64) {
    let body = body_of(n);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    writer
        .append(Exchange {
            url: &format!("http://kill.example/{n}"),
            time: time_of(n),
            ip: None,
            request_head: b"GET / HTTP/1.1\r\nHost: kill.example\r\n\r\n",
            response_head: head.as_bytes(),
            body: ExchangeBody::Bytes(&body),
            truncated: None,
            metadata: &[("n", &n.to_string())],
            derived: &[],
            links: None,
        })
        .unwrap();
}

/// Writes endlessly and prints what is committed, until it is killed.
#[test]
#[ignore = "the process that `a_killed_writer_loses_nothing` starts and kills; alone it would run for ever"]
fn writer_process() {
    let Ok(dir) = std::env::var("PERENNIAL_TEST_ARCHIVE") else { panic!("started by another test only") };
    let archive = Archive::open(Path::new(&dir)).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    let mut n = writer.store().counts(perennial_core::time::Timestamp::MAX).unwrap().n_captures;
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nat {n}").unwrap();
    loop {
        for _ in 0..1 + n % 7 {
            append(&mut writer, n);
            n += 1;
        }
        writer.commit().unwrap();
        // The index sometimes grows too, so a kill may hit that as well.
        if n.is_multiple_of(11) {
            writer.flush_index().unwrap();
        }
        writeln!(out, "at {n}").unwrap();
    }
}

#[test]
fn a_killed_writer_loses_nothing() {
    let (_dir, root) = folder();
    perennial(&root, ["init"]).ok();
    // Small files, so kills hit the switch from one file to the next.
    perennial_archive::settings::edit(&root.join("perennial.toml"), |document, _| {
        document["warc"]["max_file_bytes"] = toml_edit::value(3_000_000);
        Ok(())
    })
    .unwrap();
    let mut committed = 0;
    let mut rng = 88_172_645_463_325_252u64;
    for kill in 0..N_KILLS {
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        let n_reported = run_and_kill(&root, rng % 4, Duration::from_micros(rng >> 8 & 0x1fff));
        assert!(
            n_reported >= committed,
            "kill {kill}: {n_reported} captures, {committed} were committed before"
        );
        committed = n_reported;
    }
    assert!(committed > N_KILLS as u64, "the writer hardly wrote: {committed}");
    ArchiveWriter::open(&Archive::open(&root).unwrap()).unwrap().close().unwrap();
    let report = perennial(&root, ["verify", "--json"]).ok().json();
    assert!(report["n_captures"].as_u64().unwrap() >= committed);
    check_all_readable(&root, committed);
}

/// Starts the writer, waits for some commits and then for `delay`, and kills it. A slow machine progresses too. Returns
/// the number of commits that the writer reported.
fn run_and_kill(root: &Path, n_commits: u64, delay: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durability::writer_process", "--ignored", "--nocapture"])
        .env("PERENNIAL_TEST_ARCHIVE", root)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let number = |line: &str| line.strip_prefix("at ").and_then(|n| n.parse::<u64>().ok());
    let mut n_reported = 0;
    for _ in 0..=n_commits {
        let Some(n) = lines.by_ref().find_map(|line| number(&line)) else {
            let mut stderr = String::new();
            child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            panic!("the writer ended by itself: {stderr}");
        };
        n_reported = n;
    }
    dawdle(delay);
    child.kill().unwrap();
    child.wait().unwrap();
    for line in lines {
        // The kill may have truncated the last line. A shorter number is still a lower bound.
        n_reported = n_reported.max(number(&line).unwrap_or(0));
    }
    n_reported
}

/// Every capture from 0 on occurs once, with the payload that was written.
fn check_all_readable(root: &Path, at_least: u64) {
    let archive = Archive::open(root).unwrap();
    let store = archive.store().unwrap();
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut places = Vec::new();
    store
        .each_capture(&CaptureFilter::default(), |capture| {
            *seen.entry(capture.url.clone()).or_default() += 1;
            places.push(capture);
            Ok(())
        })
        .unwrap();
    assert!(seen.len() as u64 >= at_least);
    assert!(seen.values().all(|&n| n == 1), "a capture is there twice");
    for n in 0..seen.len() as u64 {
        assert!(seen.contains_key(&format!("http://kill.example/{n}")), "{n} is missing");
    }
    for capture in places {
        let n: u64 = capture.url.rsplit('/').next().unwrap().parse().unwrap();
        let mut file = fs::File::open(root.join("warc").join(&capture.file)).unwrap();
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(capture.offset)).unwrap();
        let mut reader = WarcReader::new(file);
        let Some(WarcItem::Record(mut record)) = reader.next_item().unwrap() else {
            panic!("no record of {n}")
        };
        assert_eq!(record.header().target_uri(), Some(&*capture.url));
        record.http_head().unwrap();
        let mut body = Vec::new();
        record.read_to_end(&mut body).unwrap();
        match capture.kind {
            CaptureKind::Response => assert!(body == body_of(n), "{n} has another body"),
            CaptureKind::Revisit => assert_eq!(n % 5, 0, "{n} need not be a revisit"),
            other => panic!("{other:?}"),
        }
    }
}

/// An archive whose writer vanished after some commits, with more records appended but not committed.
fn abandoned(root: &Path) -> Archive {
    let archive = Archive::create(root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    for n in 0..22 {
        append(&mut writer, n);
        if n % 5 == 4 {
            writer.commit().unwrap();
        }
    }
    drop(writer);
    archive
}

fn open_file(root: &Path) -> std::path::PathBuf {
    let mut names = fs::read_dir(root.join("warc")).unwrap().map(|entry| entry.unwrap().path());
    names.find(|path| path.extension().is_some_and(|e| e == "open")).unwrap()
}

#[test]
fn a_torn_record_is_cut_off_and_kept() {
    let (_dir, root) = folder();
    let archive = abandoned(&root);
    let path = open_file(&root);
    let sound = fs::read(&path).unwrap();
    let torn = b"\x1f\x8b\x08\0\0\0\0\0\0\xff and then the power went";
    fs::write(&path, [&sound[..], torn].concat()).unwrap();
    let writer = ArchiveWriter::open(&archive).unwrap();
    let Some(Repair::CutTorn { offset, bytes, kept_in, .. }) = writer.repairs().first() else {
        panic!("{:?}", writer.repairs())
    };
    assert_eq!((*offset, *bytes), (sound.len() as u64, torn.len() as u64));
    assert_eq!(fs::read(root.join("warc").join(kept_in)).unwrap(), torn);
    assert_eq!(fs::read(&path).unwrap(), sound);
    writer.close().unwrap();
    perennial(&root, ["verify"]).ok();
    check_all_readable(&root, 20);
}

#[test]
fn every_command_that_writes_tells_what_it_repaired() {
    let web = crate::web::Web::serve(|_| crate::web::status(404));
    let commands: [&[&str]; 3] =
        [&["run", "--once", "--delay", "0"], &["analyse"], &["import", "SAMPLE", "--no-analysis"]];
    for command in commands {
        let (dir, root) = folder();
        abandoned(&root);
        perennial(&root, ["add", &web.url("/"), "--allow-private"]).ok();
        let path = open_file(&root);
        let sound = fs::read(&path).unwrap();
        fs::write(&path, [&sound[..], b"\x1f\x8b\x08\0 and then the power went"].concat()).unwrap();
        let sample = crate::program::sample_file(dir.path(), "a").to_string_lossy().into_owned();
        let args: Vec<&str> =
            command.iter().map(|word| if *word == "SAMPLE" { &sample } else { *word }).collect();
        let ran = perennial(&root, &args).ok();
        assert!(ran.stderr.contains("torn bytes off at"), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("were not in the state yet"), "{args:?}: {}", ran.stderr);
        let again = perennial(&root, &args).ok();
        assert!(!again.stderr.contains("repaired"), "{args:?}: {}", again.stderr);
    }
}

#[test]
fn a_state_that_is_behind_catches_up() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    (0..7).for_each(|n| append(&mut writer, n));
    writer.commit().unwrap();
    let state = rusqlite::Connection::open(root.join("state.db")).unwrap();
    state.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(state);
    fs::copy(root.join("state.db"), root.join("earlier.db")).unwrap();
    (7..15).for_each(|n| append(&mut writer, n));
    writer.commit().unwrap();
    drop(writer);
    fs::rename(root.join("earlier.db"), root.join("state.db")).unwrap();
    for suffix in ["-wal", "-shm", "-sums", "-sums-pending"] {
        let _ = fs::remove_file(root.join(format!("state.db{suffix}")));
    }
    let writer = ArchiveWriter::open(&archive).unwrap();
    assert!(matches!(writer.repairs(), [Repair::Recovered { n_captures: 8, .. }]), "{:?}", writer.repairs());
    writer.close().unwrap();
    perennial(&root, ["verify"]).ok();
    check_all_readable(&root, 15);
}

#[test]
fn a_state_that_is_ahead_is_made_anew() {
    let (_dir, root) = folder();
    let archive = abandoned(&root);
    let path = open_file(&root);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let writer = ArchiveWriter::open(&archive).unwrap();
    assert!(
        writer.repairs().iter().any(|r| matches!(r, Repair::MadeStateAnew { .. })),
        "{:?}",
        writer.repairs()
    );
    writer.close().unwrap();
    perennial(&root, ["verify"]).ok();
    check_all_readable(&root, 5);
}

#[test]
fn a_second_writer_is_refused_with_the_first_one_s_process_and_readers_go_on() {
    let (dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    append(&mut writer, 0);
    writer.commit().unwrap();
    append(&mut writer, 1);
    let file = crate::program::sample_file(dir.path(), "a");
    let second = perennial(&root, ["import".as_ref(), file.as_os_str()]);
    assert_eq!(second.code, 1);
    let message = format!("process {} is writing", std::process::id());
    assert!(second.stderr.contains(&message), "{}", second.stderr);
    assert_eq!(perennial(&root, ["status", "--json"]).ok().json()["n_captures"], 1);
    perennial(&root, ["verify"]).ok();
    writer.close().unwrap();
    perennial(&root, ["import".as_ref(), file.as_os_str()]).ok();
    perennial(&root, ["verify"]).ok();
    assert_eq!(perennial(&root, ["status", "--json"]).ok().json()["n_captures"], 8);
}
