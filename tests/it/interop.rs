//! Established tools read our files (warcio, cdxj-indexer, wacz and pywb), and clients of the Internet Archive and of pywb
//! query our server (wayback, waybackpy, cdx_toolkit).
//!
//! The first test installs them into a virtual environment (`target/interop-venv`), pinned with their hashes in
//! `tests/it/python`. Without `--features interop` these tests are ignored. With it they fail and report the reason if
//! Python or the packages are unavailable.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use perennial_archive::{Archive, ArchiveWriter, DerivedResource, Exchange, ExchangeBody};
use perennial_core::time::{Span, Timestamp};
use perennial_warc::{Compression, NewRecord, RecordIds, Truncation, WarcWriter};

use crate::program::{folder, html, perennial, ran, sample_file};
use crate::server::Serving;

/// The build requirements of the tools without a wheel, and all the tools. `tests/it/python/pin.py` writes both files.
const REQUIREMENTS: [&str; 2] = ["build.txt", "requirements.txt"];

/// A command of the virtual environment, which is created first if necessary.
pub(crate) fn tool(name: &str) -> Command {
    static VENV: OnceLock<PathBuf> = OnceLock::new();
    let bin = VENV.get_or_init(|| make_venv().unwrap_or_else(|why| panic!("{why}")));
    Command::new(bin.join(name))
}

fn make_venv() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let venv = root.join("target/interop-venv");
    let bin = venv.join("bin");
    let files = REQUIREMENTS.map(|name| root.join("tests/it/python").join(name));
    let wanted: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let marker = venv.join("installed.txt");
    if fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) {
        return Ok(bin);
    }
    let hint = "install python3 (3.11 or newer) and python3-venv, allow pip to reach its registry, or run without --features interop";
    let run = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{command:?} failed: {}\n{hint}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => Err(format!("{command:?} failed: {error}\n{hint}")),
    };
    // Recreated, so nothing of an earlier list remains.
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    for file in &files {
        // An isolated build would fetch unpinned packages.
        let install = ["install", "--quiet", "--require-hashes", "--no-build-isolation", "-r"];
        run(Command::new(bin.join("pip")).args(install).arg(file))?;
    }
    fs::write(marker, wanted).map_err(|error| error.to_string())?;
    Ok(bin)
}

/// An archive with every kind of record that we write: responses, revisits of both profiles, truncated and chunked
/// bodies, metadata, derived records, odd URLs.
fn full_archive(root: &Path) -> Archive {
    let archive = Archive::create(root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    let start = Timestamp::parse("2025-02-03T04:05:06Z").unwrap();
    let page = html("Überschrift", &["/next", "?q=a%20b"]);
    let chunked = format!("{:x}\r\n{page}\r\n0\r\n\r\n", page.len());
    let zipped = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, page.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let plain = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";
    let cases: Vec<(&str, &str, &[u8], Option<Truncation>)> = vec![
        ("http://www.example.org/", plain, page.as_bytes(), None),
        ("http://www.example.org/", plain, page.as_bytes(), None),
        ("http://www.example.org/", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", b"", None),
        ("https://example.org:8443/Path/A;jsessionid=1?b=2&a=1", plain, b"<p>odd address", None),
        (
            "http://example.org/chunked",
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n",
            chunked.as_bytes(),
            None,
        ),
        (
            "http://example.org/gzip",
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n",
            &zipped,
            None,
        ),
        ("http://example.org/cut", plain, b"<p>and then the li", Some(Truncation::Disconnect)),
        ("http://example.org/none", "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b"", None),
        ("http://example.org/moved", "HTTP/1.1 302 Found\r\nLocation: /gzip\r\n\r\n", b"", None),
        ("http://xn--bcher-kva.example/%C3%A4?utm=1", plain, b"<p>\xc3\xa4", None),
        ("http://192.0.2.7/", plain, b"<p>by address", None),
    ];
    for (n, (url, head, body, truncated)) in cases.into_iter().enumerate() {
        let uri = format!("urn:vixml:{url}");
        let derived = [DerivedResource { uri: &uri, content_type: "application/xml", bytes: b"<Document/>" }];
        writer
            .append(Exchange {
                url,
                time: start + Span::from_secs(n as i64 * 60),
                ip: Some("192.0.2.1".parse().unwrap()),
                request_head: b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
                response_head: head.as_bytes(),
                body: ExchangeBody::Bytes(body),
                truncated,
                metadata: &[("fetchTimeMs", "12"), ("via", "http://example.org/")],
                derived: if n % 3 == 0 { &derived } else { &[] },
                links: None,
            })
            .unwrap();
    }
    writer.close().unwrap();
    archive
}

fn warc_files(archive: &Archive) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(archive.warc_dir()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
#[cfg_attr(not(feature = "interop"), ignore = "needs Python tools: run with --features interop")]
fn warcio_reads_every_record_and_finds_the_digests_right() {
    let (_dir, root) = folder();
    let archive = full_archive(&root);
    let report = perennial(&root, ["verify", "--json"]).ok().json();
    let mut n_records = 0;
    for file in warc_files(&archive) {
        ran(tool("warcio").arg("check").arg(&file)).ok();
        let index = ran(tool("warcio").args(["index", "-f", "warc-type,warc-target-uri"]).arg(&file)).ok();
        n_records += index.stdout.lines().count() as u64;
    }
    assert_eq!(report["n_records"].as_u64(), Some(n_records));
    assert!(n_records > 30, "{n_records}");
}

#[test]
#[cfg_attr(not(feature = "interop"), ignore = "needs Python tools: run with --features interop")]
fn cdxj_indexer_gives_our_index() {
    let (_dir, root) = folder();
    let archive = full_archive(&root);
    let theirs = ran(tool("cdxj-indexer").arg("--sort").args(warc_files(&archive))).ok();
    let ours = root.join("ours.cdxj");
    perennial(&root, ["export", "--format", "cdxj", "-o", ours.to_str().unwrap()]).ok();
    let ours = fs::read_to_string(ours).unwrap();
    // Our line for a 304 names the record that it confirms. The tool's line names the empty record.
    let (shown, own): (Vec<_>, Vec<_>) = ours.lines().partition(|line| line.contains("\"shows\""));
    let (empty, theirs): (Vec<_>, Vec<_>) =
        theirs.stdout.lines().partition(|line| line.contains("\"status\": \"304\""));
    assert_eq!(parsed(&own.join("\n")), parsed(&theirs.join("\n")));
    let when = |lines: &[&str]| -> Vec<String> {
        parsed(&lines.join("\n")).into_iter().map(|(key_and_time, _)| key_and_time).collect()
    };
    assert_eq!((when(&shown), shown.len()), (when(&empty), 1));
    let in_runs: String = fs::read_dir(archive.index_dir())
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(in_runs, ours);
}

/// The key, time and all fields of each line, so spaces in the JSON do not matter.
fn parsed(index: &str) -> Vec<(String, serde_json::Value)> {
    let line = |line: &str| {
        let at = line.find('{').unwrap();
        (line[..at].to_string(), serde_json::from_str(&line[at..]).unwrap())
    };
    index.lines().map(line).collect()
}

#[test]
#[cfg_attr(not(feature = "interop"), ignore = "needs Python tools: run with --features interop")]
fn wacz_accepts_our_exports() {
    let (dir, root) = folder();
    full_archive(&root);
    let file = sample_file(dir.path(), "a");
    perennial(&root, ["import".as_ref(), file.as_os_str()]).ok();
    for (name, args) in [("all.wacz", &[][..]), ("site.wacz", &["--site", "www.example.org"][..])] {
        let wacz = dir.path().join(name);
        let mut all = vec!["export", "--format", "wacz", "-o", wacz.to_str().unwrap()];
        all.extend(args);
        perennial(&root, all).ok();
        let verdict = ran(tool("wacz").args(["validate", "-f"]).arg(&wacz)).ok();
        assert!(verdict.stdout.contains("the passed WACZ is valid"), "{} {}", verdict.stdout, verdict.stderr);
        // The WARC file inside is complete. Its index equals the one that cdxj-indexer makes, without responses 304,
        // which players would show as empty pages.
        let unpacked = dir.path().join(format!("{name}.d"));
        ran(tool("python3").args(["-m", "zipfile", "-e"]).arg(&wacz).arg(&unpacked)).ok();
        let warc = unpacked.join("archive/data.warc.gz");
        ran(tool("warcio").arg("check").arg(&warc)).ok();
        let theirs = ran(tool("cdxj-indexer").arg("--sort").arg(&warc)).ok();
        let inside = fs::File::open(unpacked.join("indexes/index.cdx.gz")).unwrap();
        let mut ours = String::new();
        std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(inside), &mut ours).unwrap();
        let is_shown = |line: &&str| !line.contains("\"status\": \"304\"");
        let theirs: Vec<&str> = theirs.stdout.lines().filter(is_shown).collect();
        assert_eq!(parsed(&ours), parsed(&theirs.join("\n")));
    }
}

/// A WARC file with `n_versions` captures of each of `n_urls` URLs, six hours apart.
fn many_captures(n_urls: usize, n_versions: usize) -> Vec<u8> {
    let start = Timestamp::parse("2024-01-01T03:04:05Z").unwrap();
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    let mut ids = RecordIds::new(5);
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::None).unwrap();
    for (url, version) in (0..n_urls).flat_map(|url| (0..n_versions).map(move |version| (url, version))) {
        let (address, body) = (format!("http://a.example/{url}"), format!("page {url}, version {version}"));
        let time = start + Span::from_secs(version as i64 * 6 * 3600);
        out.write(&NewRecord::response(ids.next_id(), time, &address, head, body.as_bytes())).unwrap();
    }
    out.into_inner()
}

#[test]
#[cfg_attr(not(feature = "interop"), ignore = "needs Python tools: run with --features interop")]
fn clients_page_through_all_captures_and_end() {
    let (dir, root) = folder();
    let file = dir.path().join("many.warc");
    fs::write(&file, many_captures(50, 100)).unwrap();
    perennial(&root, ["import".as_ref(), "--create".as_ref(), file.as_os_str()]).ok();
    let serving = Serving::start(&[&root], &[]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/cdx_clients.py");
    let found =
        ran(tool("python3").arg(script).arg(format!("http://{}", serving.main)).arg("700")).ok().json();
    let counts = found["counts"].as_object().unwrap();
    assert_eq!(counts.len(), 4);
    for (client, count) in counts {
        assert_eq!(*count, serde_json::json!([5000, 5000]), "{client}: all captures, each once");
    }
    // Half past two at night is nearer to the capture at three than to that of the evening.
    assert_eq!(
        (found["time"].as_str(), found["text"].as_str()),
        (Some("20240102030405"), Some("page 0, version 4"))
    );
}
