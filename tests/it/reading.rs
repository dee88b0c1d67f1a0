//! Queries never write. They work during writes, on a read-only disk and from many processes, and each sees one
//! consistent state.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use perennial_archive::{Archive, ArchiveWriter, Exchange, ExchangeBody, IndexPace};
use perennial_core::time::{Span, Timestamp};
use perennial_warc::surt::{KeyRange, MatchType};

use crate::index::lookup;
use crate::program::{folder, perennial, sample_file};

/// Files and folders with their contents, for comparison.
pub(crate) fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

pub(crate) fn copy_dir(from: &Path, to: &Path, wanted: &dyn Fn(&str) -> bool) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            copy_dir(&entry.path(), &to.join(name), wanted);
        } else if wanted(&name) {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

pub(crate) fn set_mode(path: &Path, folder: u32, file: u32) {
    let mode = if path.is_dir() { folder } else { file };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            set_mode(&entry.unwrap().path(), folder, file);
        }
    }
}

/// Runs the program as a user without write permission. Root may write everywhere, so root becomes `nobody`, with the
/// program in a place that `nobody` can read.
pub(crate) struct Reader {
    program: PathBuf,
    is_root: bool,
}

impl Reader {
    pub(crate) fn new(dir: &Path) -> Reader {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_perennial"));
        let is_root =
            fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
        if !is_root {
            return Reader { program, is_root };
        }
        let copy = dir.join("perennial");
        if fs::hard_link(&program, &copy).is_err() {
            fs::copy(&program, &copy).unwrap();
        }
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        Reader { program: copy, is_root }
    }

    fn run(&self, archive: &Path, args: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.arg("--archive").arg(archive).args(args);
        if self.is_root {
            command.uid(65534).gid(65534);
        }
        command.output().unwrap()
    }
}

/// Every query of the program; `home` is a page, `time` one of its captures.
fn commands(home: &str, time: &str, out: &str) -> Vec<Vec<String>> {
    let before = format!("{home}@{time}");
    let after = format!("{home}@");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_string()).collect::<Vec<_>>();
    vec![
        words(&["status", "--json"]),
        words(&["list", "--json"]),
        words(&["log", "--json"]),
        words(&["changes", "--json"]),
        words(&["plan", "quality", "--json"]),
        words(&["plan", "patterns", "--json"]),
        words(&["plan", "next", "--json", "--at", "2026-06-01T00:00:00Z"]),
        words(&["lab", "segment", &after]),
        words(&["diff", &before, &after, "--json"]),
        words(&["verify", "--json"]),
        words(&["export", "--format", "cdxj", "--force", "-o", &format!("{out}/x.cdxj")]),
        words(&["export", "--format", "warc", "--trees", "--force", "-o", &format!("{out}/x.warc.gz")]),
        words(&["export", "--format", "wacz", "--force", "-o", &format!("{out}/x.wacz")]),
    ]
}

pub(crate) fn answers(reader: &Reader, archive: &Path, home: &str, time: &str) -> Vec<String> {
    let out = tempfile::tempdir().unwrap();
    fs::set_permissions(out.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let run = |command: Vec<String>| {
        let args: Vec<&str> = command.iter().map(String::as_str).collect();
        let output = reader.run(archive, &args);
        let (said, news) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{args:?}: {said}{news}");
        // A writer that closes lists its files in the manifest.
        let mut said = said.into_owned();
        if let (Some(&"verify"), Ok(mut report)) =
            (args.first(), serde_json::from_str::<serde_json::Value>(&said))
        {
            report["manifest"].take();
            said = report.to_string();
        }
        // Paths of the archive and of the exports, and the length of identifiers.
        let said = said
            .replace(&*archive.to_string_lossy(), "ARCHIVE")
            .replace(&*out.path().to_string_lossy(), "OUT");
        said.split(", ").filter(|word| !word.contains("kB")).collect::<Vec<_>>().join(", ")
    };
    commands(home, time, &out.path().to_string_lossy()).into_iter().map(run).collect()
}

const HOME: &str = "http://a.example/";
const TIME: &str = "2024-03-01";

/// An analysed and closed archive. Its last commits are in the WAL, left by a writer that was killed.
fn with_wal(dir: &Path) -> (PathBuf, ArchiveWriter) {
    let root = dir.join("with-wal");
    let file = sample_file(dir, "a");
    perennial(&root, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    let mut writer = ArchiveWriter::open(&Archive::open(&root).unwrap()).unwrap();
    append(&mut writer, "http://late.example/", 0);
    writer.commit().unwrap();
    (root, writer)
}

fn append(writer: &mut ArchiveWriter, url: &str, minute: i64) {
    writer
        .append(Exchange {
            url,
            time: Timestamp::parse("2025-01-01").unwrap() + Span::from_secs(60 * minute),
            ip: None,
            request_head: b"",
            request_body: b"",
            response_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n",
            body: ExchangeBody::Bytes(format!("{url} at {minute}").as_bytes()),
            truncated: None,
            metadata: &[],
            derived: &[],
            links: None,
        })
        .unwrap();
}

#[test]
fn all_queries_work_on_a_read_only_disk() {
    let dir = tempfile::tempdir().unwrap();
    let reader = Reader::new(dir.path());
    let (root, writer) = with_wal(dir.path());
    assert!(fs::metadata(root.join("state.db-wal")).unwrap().len() > 0);
    set_mode(&root, 0o755, 0o644);
    let expected = {
        let run = Reader { program: env!("CARGO_BIN_EXE_perennial").into(), is_root: false };
        answers(&run, &root, HOME, TIME)
    };
    assert!(expected[0].contains("\"n_captures\": 7"), "{}", expected[0]);
    let copies = [("wal", &["state.db-shm"][..]), ("wal-and-shm", &[][..])];
    for (name, left_out) in copies {
        let copy = dir.path().join(name);
        copy_dir(&root, &copy, &|file| !left_out.contains(&file) && file != "write.lock");
        set_mode(&copy, 0o555, 0o444);
        let before = contents(&copy);
        let found = answers(&reader, &copy, HOME, TIME);
        assert_eq!(contents(&copy), before, "a question wrote to {name}");
        set_mode(&copy, 0o755, 0o644);
        assert_eq!(found, expected, "{name}");
    }
    writer.close().unwrap();
    let copy = dir.path().join("closed");
    copy_dir(&root, &copy, &|file| file != "write.lock");
    assert!(!copy.join("state.db-wal").exists());
    set_mode(&copy, 0o555, 0o444);
    let found = answers(&reader, &copy, HOME, TIME);
    set_mode(&copy, 0o755, 0o644);
    assert_eq!(found, expected);
}

#[test]
fn changes_reports_unanalysed_captures_and_writes_nothing() {
    let (dir, root) = folder();
    let file = sample_file(dir.path(), "a");
    perennial(&root, ["import".as_ref(), "--create".as_ref(), "--no-analysis".as_ref(), file.as_os_str()])
        .ok();
    let before = contents(&root);
    let request = perennial(&root, ["changes", "--json"]).ok();
    assert_eq!(request.json(), serde_json::json!([]));
    assert!(
        request.stderr.contains("captures have not been analysed")
            && request.stderr.contains("perennial analyse")
    );
    let is_kept = |(path, _): &&(PathBuf, Vec<u8>)| !path.to_string_lossy().contains("state.db-");
    assert!(contents(&root).iter().filter(is_kept).eq(before.iter().filter(is_kept)));
    perennial(&root, ["analyse"]).ok();
    let request = perennial(&root, ["changes", "--json"]).ok();
    assert_ne!(request.json(), serde_json::json!([]));
    assert_eq!(request.stderr, "");
}

/// Commits until its standard input ends, and prints how often.
#[test]
#[ignore = "the process that `many_processes_read_during_writes` starts; alone it would run for ever"]
fn busy_writer() {
    let Ok(dir) = std::env::var("PERENNIAL_TEST_ARCHIVE") else { panic!("started by another test only") };
    let pace = IndexPace { max_captures: 40, max_age: Span::from_hours(1) };
    let mut writer =
        ArchiveWriter::open(&Archive::open(Path::new(&dir)).unwrap()).unwrap().with_index_pace(pace);
    let ended = std::thread::spawn(|| std::io::stdin().read_to_end(&mut Vec::new()));
    for n in 0.. {
        append(&mut writer, &format!("http://busy-{}.example/{}", n % 7, n % 100), n);
        append(&mut writer, &format!("http://busy-{}.example/other", n % 7), n);
        writer.commit().unwrap();
        println!("\ncommits {}", n + 1);
        if ended.is_finished() {
            break;
        }
    }
    writer.close().unwrap();
}

/// Repeats a query until the writer has committed often enough. Returns the number of queries.
fn run_beside(
    root: &Path,
    args: &[&str],
    is_over: &dyn Fn() -> bool,
    check: &dyn Fn(&serde_json::Value),
) -> u32 {
    for n_requests in 1.. {
        let request = perennial(root, args).ok();
        check(&request.json());
        if is_over() && n_requests >= 5 {
            return n_requests;
        }
    }
    0
}

/// The captures of all sites sum to all captures, and no partial commit is visible.
fn add_up(info: &serde_json::Value) {
    let sites = info["sites"].as_array().unwrap();
    let of_sites: u64 = sites.iter().map(|site| site["n_captures"].as_u64().unwrap()).sum();
    assert_eq!(info["n_captures"], of_sites, "{info}");
    assert_eq!(of_sites % 2, 0, "half a commit: {info}");
}

fn are_sound(report: &serde_json::Value) {
    assert_eq!(report["defects"], serde_json::json!([]), "{report}");
}

#[test]
fn many_processes_read_during_writes() {
    const N_COMMITS: u32 = 300;
    let (_dir, root) = folder();
    Archive::create(&root).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "reading::busy_writer", "--ignored", "--nocapture"])
        .env("PERENNIAL_TEST_ARCHIVE", &root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let n_commits = std::sync::atomic::AtomicU32::new(0);
    let is_over = || n_commits.load(std::sync::atomic::Ordering::Relaxed) >= N_COMMITS;
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let stdin = child.stdin.take();
    let (first, begun) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let n_commits = &n_commits;
        scope.spawn(move || {
            for n in lines.filter_map(|line| line.strip_prefix("commits ")?.parse().ok()) {
                n_commits.store(n, std::sync::atomic::Ordering::Relaxed);
                let _ = first.send(());
            }
        });
        begun.recv().unwrap();
        let readers = [
            scope.spawn(|| run_beside(&root, &["status", "--json", "--sites", "99"], &is_over, &add_up)),
            scope.spawn(|| run_beside(&root, &["status", "--json", "--sites", "99"], &is_over, &add_up)),
            scope.spawn(|| run_beside(&root, &["verify", "--json"], &is_over, &are_sound)),
            scope.spawn(|| run_beside(&root, &["changes", "--json"], &is_over, &|_| ())),
        ];
        readers.into_iter().for_each(|reader| assert!(reader.join().unwrap() >= 5));
        drop(stdin);
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    perennial(&root, ["verify"]).ok();
}

#[test]
fn readers_see_a_complete_state_during_a_rebuild() {
    let (dir, root) = folder();
    for salt in ["a", "b", "c"] {
        let file = sample_file(dir.path(), salt);
        perennial(
            &root,
            ["import".as_ref(), "--create".as_ref(), "--no-analysis".as_ref(), file.as_os_str()],
        )
        .ok();
    }
    let info = || perennial(&root, ["status", "--json"]).ok().json();
    let before = info();
    let snapshot = Archive::open(&root).unwrap().snapshot().unwrap();
    let counts = snapshot.store().counts(perennial_core::time::Timestamp::MAX).unwrap();
    std::thread::scope(|scope| {
        let rebuilding =
            scope.spawn(|| (0..5).for_each(|_| drop(perennial(&root, ["verify", "--rebuild"]).ok())));
        while !rebuilding.is_finished() {
            assert_eq!(info(), before);
        }
    });
    assert_eq!(snapshot.store().counts(perennial_core::time::Timestamp::MAX).unwrap(), counts);
    assert_eq!(lookup(&snapshot, &KeyRange::of("http://a.example/", MatchType::Host)).len(), 6);
    assert!(!root.join("state.db.new").exists());
}

#[test]
fn a_snapshot_does_not_change() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let pace = IndexPace { max_captures: 2, max_age: Span::from_hours(1) };
    let mut writer = ArchiveWriter::open(&archive).unwrap().with_index_pace(pace);
    let url = "http://a.example/";
    for minute in 0..20 {
        append(&mut writer, url, minute);
        writer.commit().unwrap();
    }
    let snapshot = archive.snapshot().unwrap();
    let range = KeyRange::of(url, MatchType::Exact);
    let lines = lookup(&snapshot, &range);
    assert_eq!(lines.len(), 20);
    for minute in 20..60 {
        append(&mut writer, url, minute);
        writer.commit().unwrap();
    }
    writer.close().unwrap();
    assert_eq!(lookup(&snapshot, &range), lines, "although its runs were merged with others since");
    assert_eq!(snapshot.store().counts(perennial_core::time::Timestamp::MAX).unwrap().n_captures, 20);
    assert_eq!(lookup(&archive.snapshot().unwrap(), &range).len(), 60);
}
