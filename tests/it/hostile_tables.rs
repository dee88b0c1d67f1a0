//! Tables of hostile input: files to import, header fields to replay, requests, settings. One archive and one server
//! take all cases of a table. Honest input next to them is taken in, no terminal and no
//! response obeys them, and every request has an answer.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use perennial_archive::Archive as Opened;
use perennial_archive::settings::Settings;
use perennial_archive::store::CaptureFilter;

use crate::crawled::{Archive, gzip};
use crate::hostile_archive::{commands_in, record, response, zipped};
use crate::program::perennial;
use crate::server::{Serving, send_request};

const TIME: &str = "2024-01-01T00:00:00Z";
const BODY: &str = "<title>t</title><p>Some words";

/// A file, and whether the honest capture in it must be taken in.
struct FileCase {
    name: &'static str,
    ending: &'static str,
    bytes: Vec<u8>,
    is_found: bool,
}

/// Files that begin as none of a known kind does.
const REFUSED: [&str; 7] = [
    "empty",
    "nulls",
    "zip-of-nothing",
    "version-in-lower-case",
    "marks-before",
    "text-before",
    "blanks-without-end",
];

fn honest(name: &str) -> Vec<u8> {
    response(&format!("http://{name}.example/honest"), TIME, "", BODY)
}

/// A response with these header fields.
fn with_head(name: &str, status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let block = [format!("HTTP/1.1 {status}\r\n{fields}\r\n").as_bytes(), body].concat();
    record("response", &format!("http://{name}.example/hostile"), TIME, "", &block)
}

/// The header of a record, exactly as written, and a block.
fn raw(header: &str, block: &str) -> Vec<u8> {
    format!("{}\r\n\r\n{block}\r\n\r\n", header.replace('\n', "\r\n")).into_bytes()
}

/// Records before an honest one.
fn hostile_records() -> Vec<(&'static str, Vec<u8>)> {
    let typed = "WARC/1.1\nWARC-Type: response\nWARC-Target-URI: http://x.example/\nWARC-Date: 2024-01-01T00:00:00Z\n\
                 Content-Type: application/http; msgtype=response\n";
    let of_length =
        |length: &str| raw(&format!("{typed}Content-Length: {length}"), "HTTP/1.1 200 OK\r\n\r\nx");
    let at = |url: &str| response(url, TIME, "", BODY);
    let on = |time: &str| response("http://x.example/time", time, "", BODY);
    let with = |fields: &str| response("http://x.example/fields", TIME, fields, BODY);
    let revisit = |fields: &str| {
        record("revisit", "http://x.example/revisit", TIME, fields, b"HTTP/1.1 200 OK\r\n\r\n")
    };
    let many: String = (0..20_000).map(|n| format!("X-{n}: y\n")).collect();
    let swapped = |from: &str, to: &str| raw(&format!("{typed}Content-Length: 3").replace(from, to), "abc");
    vec![
        ("length-short", of_length("3")),
        ("length-long", of_length("90")),
        ("length-negative", of_length("-1")),
        ("length-beyond-64-bits", of_length("99999999999999999999999")),
        ("length-of-exabytes", of_length("9223372036854775807")),
        ("length-in-words", of_length("ten")),
        ("length-twice", of_length("18\nContent-Length: 4")),
        ("length-missing", raw(typed.trim_end(), "HTTP/1.1 200 OK\r\n\r\nx")),
        ("version-of-the-future", swapped("WARC/1.1", "WARC/9.9")),
        ("version-in-lower-case", swapped("WARC/1.1", "warc/1.1")),
        ("type-missing", swapped("WARC-Type: response\n", "")),
        ("type-unknown", swapped("Type: response", "Type: poem")),
        ("url-missing", swapped("WARC-Target-URI: http://x.example/\n", "")),
        ("date-missing", swapped("WARC-Date: 2024-01-01T00:00:00Z\n", "")),
        ("date-in-words", on("yesterday")),
        ("date-year-0", on("0000-00-00T00:00:00Z")),
        ("date-before-1970", on("1900-01-01T00:00:00Z")),
        ("date-year-9999", on("9999-12-31T23:59:59Z")),
        ("date-year-99999", on("99999-01-01T00:00:00Z")),
        ("date-negative", on("-2024-01-01T00:00:00Z")),
        ("header-without-colon", swapped("WARC-Type: response", "WARC-Type response")),
        ("header-folded", swapped("WARC-Type: response", "WARC-Type:\n response")),
        ("header-of-a-mebibyte", swapped("WARC-Type: response", &format!("X: {}", "y".repeat(1 << 20)))),
        ("header-fields-without-end", swapped("WARC-Type: response\n", &many)),
        ("header-with-nul", swapped("x.example/", "x.example/\0")),
        (
            "header-with-line-feeds-only",
            String::from_utf8(of_length("18")).unwrap().replace("\r\n", "\n").into(),
        ),
        ("marks-before", [b"\xef\xbb\xbf\r\n\r\n", &of_length("18")[..]].concat()),
        ("text-before", [b"No record at all.\r\n", &of_length("18")[..]].concat()),
        ("url-script", at("javascript:alert(1)")),
        ("url-file", at("file:///etc/passwd")),
        ("url-without-host", at("http://")),
        ("url-empty", at("")),
        ("url-blank", at("http://x.example/a b\tc")),
        ("url-escape", at("http://x.example/\u{1b}[2J\u{9b}31m")),
        ("url-right-to-left", at("http://x.example/\u{202e}gpj.exe")),
        ("url-of-32-kib", at(&format!("http://x.example/{}", "a".repeat(40_000)))),
        ("url-of-many-labels", at(&format!("http://{}x.example/", "a.".repeat(3_000)))),
        ("url-with-credentials", at("http://user:secret@x.example/")),
        ("url-port-0", at("http://x.example:0/")),
        ("url-port-70000", at("http://x.example:70000/")),
        ("url-percent", at("http://x.example/%zz%00%0d%0aSet-Cookie:%20a=b")),
        ("url-of-ours", at("urn:dom:http://x.example/")),
        ("digest-unknown", with("WARC-Payload-Digest: md6:00\r\n")),
        ("digest-empty", with("WARC-Payload-Digest: \r\nWARC-Block-Digest: sha1:\r\n")),
        ("digest-false", with("WARC-Block-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n")),
        ("id-without-form", with("WARC-Record-ID: \"><script>\r\n")),
        ("address-without-form", with("WARC-IP-Address: 999.1.1.1\u{1b}[2J\r\n")),
        ("concurrent-to-nothing", with("WARC-Concurrent-To: <urn:uuid:0>\r\n")),
        ("truncated-for-a-poem", with("WARC-Truncated: poem\r\n")),
        (
            "segment-2-of-none",
            record("continuation", "http://x.example/", TIME, "WARC-Segment-Number: 2\r\n", b"x"),
        ),
        ("revisit-of-nothing", revisit("")),
        (
            "revisit-of-itself",
            revisit(
                "WARC-Refers-To-Target-URI: http://x.example/revisit\r\nWARC-Refers-To-Date: 2024-01-01T00:00:00Z\r\n",
            ),
        ),
        (
            "revisit-of-the-future",
            revisit(
                "WARC-Refers-To-Target-URI: http://x.example/\r\nWARC-Refers-To-Date: 2999-01-01T00:00:00Z\r\n",
            ),
        ),
        (
            "revisit-of-a-false-digest",
            revisit("WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n"),
        ),
        (
            "erased-by-a-stranger",
            record("metadata", "http://x.example/", TIME, "Perennial-Erased: 1\r\n", b"reason: none\r\n"),
        ),
        (
            "delta-of-nothing",
            record(
                "metadata",
                "urn:videlta:http://x.example/",
                TIME,
                "Perennial-Left-Out: unimportant\r\n",
                b"<delta/>",
            ),
        ),
        (
            "warcinfo-that-lies",
            record("warcinfo", "", TIME, "WARC-Filename: ../../etc/passwd\r\n", b"software: \x1b[2J\r\n"),
        ),
        ("response-without-http", record("response", "http://x.example/", TIME, "", b"\0\x01\x02 not HTTP")),
        ("response-empty", record("response", "http://x.example/", TIME, "", b"")),
        ("head-without-end", with_head("x", "200 OK", &format!("X: {}\r\n", "y".repeat(600_000)), b"")),
        ("status-of-no-number", with_head("x", "two hundred", "", b"x")),
        ("status-beyond", with_head("x", "99999 OK", "", b"x")),
        (
            "chunks-without-end",
            with_head("x", "200 OK", "Transfer-Encoding: chunked\r\n", b"ffffffffffffffffff\r\nx"),
        ),
        (
            "chunks-negative",
            with_head("x", "200 OK", "Transfer-Encoding: chunked\r\n", b"-5\r\nhello\r\n0\r\n\r\n"),
        ),
        ("coding-false", with_head("x", "200 OK", "Content-Encoding: gzip\r\n", b"not gzip")),
        ("coding-unknown", with_head("x", "200 OK", "Content-Encoding: rot13\r\n", b"x")),
        (
            "codings-without-end",
            with_head("x", "200 OK", &format!("Content-Encoding: {}\r\n", "gzip, ".repeat(5_000)), b"x"),
        ),
        (
            "coding-bomb",
            with_head("x", "200 OK", "Content-Encoding: gzip\r\n", &gzip(&gzip(&vec![0; 40 << 20]))),
        ),
        ("records-in-a-block", record("response", "http://x.example/", TIME, "", &honest("inner"))),
        ("blanks-without-end", b"\r\n".repeat(100_000)),
    ]
}

/// Whole files, damaged around an honest record.
fn hostile_files() -> Vec<FileCase> {
    let case = |name, ending, bytes, is_found| FileCase { name, ending, bytes, is_found };
    let member = |name: &str| gzip(&honest(name));
    let cut = |bytes: Vec<u8>, n: usize| bytes[..bytes.len() - n].to_vec();
    let flipped = |mut bytes: Vec<u8>, from_end: usize| {
        let at = bytes.len() - from_end;
        bytes[at] ^= 0xff;
        bytes
    };
    let zstd = |name: &str| zstd::encode_all(&honest(name)[..], 1).unwrap();
    let arc = |name: &str, length: &str, body: &str| {
        let version = "1 0 tool\nURL IP-address Archive-date Content-type Archive-length\n";
        let length_of_version = version.len();
        format!(
            "filedesc://x.arc 0.0.0.0 20240101000000 text/plain {length_of_version}\n{version}\n\
             http://{name}.example/honest 192.0.2.1 20240101000000 text/html {length}\n{body}\n"
        )
    };
    let arc_body = format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n{BODY}");
    let arc_length = arc_body.len().to_string();
    let inside = |name: &str, entry: &str| zipped(&[(entry, &member(name))]);
    let page = "archive/data.warc.gz";
    let mut files = vec![
        case("gz-sound", "warc.gz", member("gz-sound"), true),
        case("gz-cut", "warc.gz", [member("gz-cut"), cut(member("other"), 20)].concat(), true),
        case("gz-false-checksum", "warc.gz", [flipped(member("other"), 6), member("gz-false-checksum")].concat(), true),
        case("gz-false-length", "warc.gz", [flipped(member("other"), 2), member("gz-false-length")].concat(), true),
        case("gz-garbage-after", "warc.gz", [member("gz-garbage-after"), vec![7; 3_000]].concat(), true),
        case("gz-garbage-between", "warc.gz", [member("other"), vec![7; 3_000], member("gz-garbage-between")].concat(), true),
        case("gz-empty-members", "warc.gz", [gzip(b"").repeat(3_000), member("gz-empty-members")].concat(), true),
        case("gz-of-gz", "warc.gz", gzip(&member("gz-of-gz")), false),
        case("gz-that-is-plain", "warc.gz", honest("gz-that-is-plain"), true),
        case("plain-that-is-gz", "warc", member("plain-that-is-gz"), true),
        case("zst-sound", "warc.zst", zstd("zst-sound"), true),
        case("zst-cut", "warc.zst", [zstd("zst-cut"), cut(zstd("other"), 9)].concat(), true),
        case("zst-skippable-huge", "warc.zst", [b"\x5d\x2a\x4d\x18\xff\xff\xff\xff", &zstd("x")[..]].concat(), false),
        case("zst-garbage", "warc.zst", [b"\x28\xb5\x2f\xfd", &[9; 4_000][..]].concat(), false),
        case("empty", "warc", Vec::new(), false),
        case("nulls", "warc", vec![0; 1 << 20], false),
        case("arc-sound", "arc", arc("arc-sound", &arc_length, &arc_body).into(), true),
        case("arc-length-negative", "arc", arc("arc-length-negative", "-7", &arc_body).into(), false),
        case("arc-length-long", "arc", arc("arc-length-long", "999999999999", &arc_body).into(), false),
        case("arc-line-of-two-words", "arc", arc("arc-line-of-two-words", "", "").into(), false),
        case("zip-sound", "wacz", inside("zip-sound", page), true),
        case("zip-climbs", "wacz", inside("zip-climbs", "archive/../../../climbed.warc.gz"), true),
        case("zip-absolute", "wacz", inside("zip-absolute", "/archive/absolute.warc.gz"), false),
        case("zip-escape", "wacz", inside("zip-escape", "archive/\u{1b}]0;x\u{7}.warc.gz"), true),
        case("zip-in-zip", "wacz", zipped(&[("archive/a.wacz", &inside("zip-in-zip", page))]), false),
        case("zip-of-nothing", "wacz", zipped(&[]), false),
        case("zip-cut", "wacz", cut(inside("zip-cut", page), 30), false),
        case("zip-that-is-none", "wacz", b"PK\x03\x04 only the beginning".to_vec(), false),
        case("zip-with-a-false-package", "wacz", zipped(&[("datapackage.json", b"{\"resources\": [{\"path\": 7"), (page, &member("zip-with-a-false-package"))]), true),
        case("index-of-garbage", "cdxj", b"\xff\xfe\x00 {\n)/ 1 {}\ncom,a)/ 99999999999999 {\"url\":\n".to_vec(), false),
        case("index-of-climbing-names", "cdxj", b"com,a)/ 20240101000000 {\"url\": \"http://a.com/\", \"filename\": \"../../etc/passwd\", \"offset\": \"-1\", \"length\": \"1e99\"}\n".to_vec(), false),
        case("index-of-deep-json", "cdxj", format!("com,a)/ 20240101000000 {}\n", "[".repeat(200_000)).into(), false),
    ];
    for (name, bytes) in hostile_records() {
        let is_found = !REFUSED.contains(&name);
        files.push(FileCase { name, ending: "warc", bytes: [bytes, honest(name)].concat(), is_found });
    }
    files
}

/// The file because of which an import does not begin.
fn refused_file(archive: &Archive, args: &[String]) -> Option<String> {
    let ran = perennial(&archive.root, args);
    assert_eq!(commands_in(&ran.stderr), Vec::<char>::new());
    let refused = ran.stderr.split_once(" is neither WARC, ARC nor WACZ")?.0;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    refused.strip_prefix("perennial: ").map(str::to_owned)
}

#[test]
fn hostile_files_take_nothing_from_honest_records() {
    let archive = Archive::new();
    let folder = tempfile::tempdir().unwrap();
    let cases = hostile_files();
    let mut args = vec!["import".to_owned(), "--no-analysis".to_owned()];
    for FileCase { name, ending, bytes, .. } in &cases {
        let path = folder.path().join(format!("{name}.{ending}"));
        std::fs::write(&path, bytes).unwrap();
        args.push(path.display().to_string());
    }
    // A file of a wrong kind is refused before anything is imported.
    let mut refused = Vec::new();
    while let Some(path) = refused_file(&archive, &args) {
        args.retain(|other| *other != path);
        let name = Path::new(&path).file_name().unwrap().to_string_lossy().into_owned();
        refused.push(name.split('.').next().unwrap().to_owned());
    }
    assert_eq!(refused, REFUSED);
    let ran = perennial(&archive.root, &args);
    assert!([0, 4].contains(&ran.code), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(commands_in(&(ran.stdout + &ran.stderr)), Vec::<char>::new());
    let mut captured = BTreeMap::new();
    Opened::open(&archive.root)
        .unwrap()
        .store()
        .unwrap()
        .each_capture(&CaptureFilter::default(), |capture| {
            *captured.entry(capture.url).or_insert(0) += 1;
            Ok(())
        })
        .unwrap();
    let mut wrong = Vec::new();
    for FileCase { name, is_found, .. } in &cases {
        let n_found = captured.get(&format!("http://{name}.example/honest")).copied().unwrap_or(0);
        if n_found != u32::from(*is_found) {
            wrong.push(format!("{name}: {n_found}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(cases.len() >= 100, "{}", cases.len());
    // Everything is found again, the same, and nothing was written beside the archive.
    for args in [&["verify", "--accept-imported"][..], &["verify", "--rebuild", "--accept-imported"]] {
        let ran = perennial(&archive.root, args);
        assert_eq!(ran.code, 0, "{args:?}: {} {}", ran.stdout, ran.stderr);
        assert_eq!(commands_in(&(ran.stdout + &ran.stderr)), Vec::<char>::new());
    }
    let outside: Vec<_> = std::fs::read_dir(archive.root.parent().unwrap()).unwrap().flatten().collect();
    assert_eq!(outside.len(), 1, "{outside:?}");
    for name in std::fs::read_dir(archive.root.join("warc")).unwrap() {
        let name = name.unwrap().file_name();
        assert!(!name.to_string_lossy().contains(|c: char| c.is_control() || c == '/'), "{name:?}");
    }
}

/// Fields of an archived response that would act on the reader, on a proxy, or on the framing of our response.
const HOSTILE_FIELDS: &[&str] = &[
    "Set-Cookie: perennial_token=bad; path=/",
    "Set-Cookie2: a=b",
    "Clear-Site-Data: \"*\"",
    "Strict-Transport-Security: max-age=99999999; includeSubDomains; preload",
    "Public-Key-Pins: pin-sha256=\"x\"; max-age=9",
    "Content-Security-Policy: default-src *",
    "Content-Security-Policy-Report-Only: report-uri http://evil.example/",
    "Access-Control-Allow-Origin: http://evil.example",
    "Access-Control-Allow-Credentials: true",
    "Cross-Origin-Resource-Policy: cross-origin",
    "Cross-Origin-Opener-Policy: unsafe-none",
    "X-Frame-Options: ALLOWALL",
    "X-Content-Type-Options: none",
    "Service-Worker-Allowed: /",
    "X-Accel-Redirect: /etc/passwd",
    "X-Accel-Buffering: yes",
    "X-Sendfile: /etc/passwd",
    "X-Lighttpd-Send-File: /etc/passwd",
    "Alt-Svc: h3=\":443\"; ma=99999999",
    "Report-To: {\"endpoints\":[{\"url\":\"http://evil.example/\"}]}",
    "NEL: {\"report_to\":\"x\"}",
    "Reporting-Endpoints: x=\"http://evil.example/\"",
    "WWW-Authenticate: Basic realm=\"Your bank\"",
    "Proxy-Authenticate: Basic",
    "Refresh: 0; url=http://evil.example/",
    "Link: <http://evil.example/x.css>; rel=stylesheet",
    "SourceMap: http://evil.example/map",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Content-Length: 3",
    "Content-Length: 99999",
    "Connection: close, X-Content-Type-Options",
    "Upgrade: websocket",
    "Trailer: Set-Cookie",
    "Memento-Datetime: Thu, 01 Jan 1970 00:00:00 GMT",
    "X-Perennial-Coherence: coherent",
    "X-Name\u{0}: x",
    "X-Value: a\u{b}b",
    "Content-Type: text/html\u{1b}[2J",
    "Content-Type: text/html\r\nContent-Type: text/javascript",
    "Content-Disposition: attachment; filename=\"../../.bashrc\"",
    "Content-Range: bytes 0-1/9999999999999999999",
    "Location: http://evil.example/",
    "Age: 999999999999999999999",
    "Vary: *",
];

/// Fields that only our own server may set, with the values that it may give them.
const OURS: &[(&str, &[&str])] = &[
    ("set-cookie", &[]),
    ("set-cookie2", &[]),
    ("clear-site-data", &[]),
    ("strict-transport-security", &[]),
    ("public-key-pins", &[]),
    ("content-security-policy-report-only", &[]),
    ("access-control-allow-credentials", &[]),
    ("access-control-allow-origin", &[]),
    ("cross-origin-resource-policy", &["same-origin"]),
    ("cross-origin-opener-policy", &["same-origin"]),
    ("x-frame-options", &[]),
    ("x-content-type-options", &["nosniff"]),
    ("service-worker-allowed", &[]),
    ("x-accel-redirect", &[]),
    ("x-accel-buffering", &[]),
    ("x-sendfile", &[]),
    ("x-lighttpd-send-file", &[]),
    ("alt-svc", &[]),
    ("report-to", &[]),
    ("nel", &[]),
    ("reporting-endpoints", &[]),
    ("www-authenticate", &[]),
    ("proxy-authenticate", &[]),
    ("sourcemap", &[]),
    ("upgrade", &[]),
    ("trailer", &[]),
    ("age", &[]),
];

/// The head of a response as sent, and the bytes after it.
fn answer(host: &str, request: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may refuse before everything is written.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes[end..].to_vec())
}

fn hostile_heads(folder: &Path) -> String {
    let mut warc = Vec::new();
    for (n, fields) in HOSTILE_FIELDS.iter().enumerate() {
        for (kind, status) in
            [("page", "200 OK"), ("away", "302 Found"), ("login", "401 No"), ("odd", "999 ?")]
        {
            let typed = if fields.starts_with("Content-Type") { "" } else { "Content-Type: text/html\r\n" };
            let block =
                format!("HTTP/1.1 {status}\r\n{typed}{fields}\r\n\r\n<title>t</title><p>Words of {n}");
            warc.extend(record(
                "response",
                &format!("http://head.example/{kind}/{n}"),
                TIME,
                "",
                block.as_bytes(),
            ));
        }
    }
    let path = folder.join("heads.warc");
    std::fs::write(&path, warc).unwrap();
    path.display().to_string()
}

#[test]
fn hostile_header_fields_stay_in_the_archive() {
    let archive = Archive::new();
    let folder = tempfile::tempdir().unwrap();
    archive.ok(&["import", "--no-analysis", &hostile_heads(folder.path())]);
    let serving = Serving::start(&[&archive.root], &[]);
    let mut wrong = Vec::new();
    for (n, fields) in HOSTILE_FIELDS.iter().enumerate() {
        for (host, modifier) in [
            (&serving.main, ""),
            (&serving.main, "id_"),
            (&serving.replay, "mp_"),
            (&serving.replay, "id_"),
            (&serving.replay, "js_"),
        ] {
            for kind in ["page", "away", "login", "odd"] {
                let path = format!("/web/20240101000000{modifier}/http://head.example/{kind}/{n}");
                let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
                let (head, _) = answer(host, request.as_bytes());
                let lines: Vec<(String, &str)> = head
                    .lines()
                    .skip(1)
                    .filter_map(|line| {
                        line.split_once(':').map(|(name, value)| (name.to_ascii_lowercase(), value.trim()))
                    })
                    .collect();
                let values = |name: &str| {
                    lines
                        .iter()
                        .filter(|(known, _)| known == name)
                        .map(|(_, value)| *value)
                        .collect::<Vec<_>>()
                };
                let mut expect = |is_right: bool, what: &str| {
                    if !is_right {
                        wrong.push(format!("{fields:?} {host}{path}: {what}: {head}"));
                    }
                };
                expect(head.starts_with("HTTP/1.1 ") && !head.starts_with("HTTP/1.1 5"), "status");
                for (name, allowed) in OURS {
                    expect(values(name).iter().all(|value| allowed.contains(value)), name);
                }
                expect(values("x-content-type-options") == ["nosniff"], "nosniff");
                expect(values("content-length").len() + values("transfer-encoding").len() <= 1, "framing");
                expect(
                    values("location").iter().all(|to| {
                        to.starts_with('/')
                            || to.starts_with("http://127.0.0.1:")
                            || to.starts_with("http://localhost:")
                    }),
                    "location",
                );
                expect(!values("refresh").concat().contains("=http://evil"), "refresh");
                expect(!values("link").concat().contains("<http://evil.example/x.css"), "link");
                expect(
                    !values("content-security-policy").iter().any(|policy| policy.contains("default-src *")),
                    "policy",
                );
                expect(
                    !head.contains(|c: char| c.is_control() && !matches!(c, '\r' | '\n' | '\t')),
                    "control characters",
                );
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{} of them", wrong.len());
}

/// Requests as no browser sends them: what follows `GET `.
const HOSTILE_REQUESTS: &[&str] = &[
    "/../../etc/passwd HTTP/1.1",
    "/%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
    "/_perennial/../perennial.toml HTTP/1.1",
    "/_perennial/%2e%2e%2fperennial.toml HTTP/1.1",
    "/record/../../etc/passwd HTTP/1.1",
    "/record/sha1:../../x HTTP/1.1",
    "/wacz/..%2f..%2fx?url=http://a.example/ HTTP/1.1",
    "/wacz/x.wacz?site=a.example%00 HTTP/1.1",
    "/web/2024id_/file:///etc/passwd HTTP/1.1",
    "/web/2024id_/http://127.0.0.1:22/ HTTP/1.1",
    "/web/2024mp_/javascript:alert(1) HTTP/1.1",
    "/web/2024mp_/data:text/html,<script>evil()</script> HTTP/1.1",
    "/web/99999999999999/http://a.example/ HTTP/1.1",
    "/web/-1/http://a.example/ HTTP/1.1",
    "/web/20249999999999/http://a.example/ HTTP/1.1",
    "/web/*/http://a.example/<script>evil()</script> HTTP/1.1",
    "/web/2024/http://a.example/%0d%0aX-Evil:%20yes HTTP/1.1",
    "/web/diff/2024/2025/http://a.example/<script>evil()</script> HTTP/1.1",
    "/web/diff/x/y/z HTTP/1.1",
    "/web/changes/http://a.example/\"><script>evil()</script> HTTP/1.1",
    "/web/timemap/link/99999/http://a.example/\"><script>evil()</script> HTTP/1.1",
    "/web/timemap/json/http://a.example/\",\"evil\":1 HTTP/1.1",
    "/page/http://a.example/<script>evil()</script> HTTP/1.1",
    "/page?url=<script>evil()</script> HTTP/1.1",
    "/page?url=%00 HTTP/1.1",
    "/site/<script>evil()</script> HTTP/1.1",
    "/site/a.example%0d%0aX-Evil:%20yes HTTP/1.1",
    "/search?q=<script>evil()</script> HTTP/1.1",
    "/search?q=%22%22%22%22*%20AND%20NOT%20( HTTP/1.1",
    "/search?q=NEAR(a,%20999999999999) HTTP/1.1",
    "/search?q=text:%7bx%7d%20OR%20rowid:1 HTTP/1.1",
    "/search?q=/(a%2b)%2b%2b$/ HTTP/1.1",
    "/search?q=/(((((((((((x*)*)*)*)*)*)*)*)*)*)*/ HTTP/1.1",
    "/search?q=/x%7b99999%7d%7b99999%7d/ HTTP/1.1",
    "/search?q=%f0%28%8c%28 HTTP/1.1",
    "/changes?since=99999999999999999999d HTTP/1.1",
    "/changes?since=-1d&until=NaN&least=inf HTTP/1.1",
    "/changes?least=<script>evil()</script> HTTP/1.1",
    "/changes?appears=/(a|a)*b/&cursor='%20OR%201=1-- HTTP/1.1",
    "/changes?cursor=AAAAAAAA%00 HTTP/1.1",
    "/changes?order='%3bDROP%20TABLE%20pages-- HTTP/1.1",
    "/changes.atom?site=<script>evil()</script> HTTP/1.1",
    "/api/changes?limit=-1 HTTP/1.1",
    "/api/changes?limit=999999999999999999999 HTTP/1.1",
    "/api/page?url=http://a.example/'%20OR%201=1 HTTP/1.1",
    "/api/diff?url=http://a.example/&from=0&to=99999999999999999999 HTTP/1.1",
    "/api/pin?url=http://a.example/&selector=:has(:has(:has(:has(x)))) HTTP/1.1",
    "/pin?url=http://a.example/&selector=<script>evil()</script> HTTP/1.1",
    "/api/../api/home HTTP/1.1",
    "/cdx?url=*&limit=-1 HTTP/1.1",
    "/cdx?url=*&filter=~url:(a%2b)%2b%2b$ HTTP/1.1",
    "/cdx?url=*&filter=~url:[ HTTP/1.1",
    "/cdx?url=*&collapse=timestamp:99999999999 HTTP/1.1",
    "/cdx?url=*&page=99999999999999&pageSize=0 HTTP/1.1",
    "/cdx?url=*&resumeKey=%00%ff HTTP/1.1",
    "/cdx?url=*&output=<script>evil()</script> HTTP/1.1",
    "/cdx?url=*&fl=<script>evil()</script> HTTP/1.1",
    "/wayback/available?url=<script>evil()</script>&callback=evil HTTP/1.1",
    "/login?token=<script>evil()</script> HTTP/1.1",
    "/login?key=%00&next=//evil.example/ HTTP/1.1",
    "/login?token=x&next=https://evil.example/ HTTP/1.1",
    "//evil.example/ HTTP/1.1",
    "/\\evil.example/ HTTP/1.1",
    "http://evil.example/ HTTP/1.1",
    "evil.example:443 HTTP/1.1",
    "* HTTP/1.1",
    "/ HTTP/9.9",
    "/ HTTP/1.1\r\nHost: evil.example",
    "/ HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.example",
    "/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
    "/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6",
    "/ HTTP/1.1\r\nContent-Length: -1",
    "/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity",
    "/ HTTP/1.1\r\nTransfer-Encoding : chunked",
    "/ HTTP/1.1\r\nX-A: b\r\n folded: X-Evil",
    "/ HTTP/1.1\r\nCookie: \u{1b}[2J\u{ff}=;;;===",
    "/ HTTP/1.1\r\nAuthorization: Bearer",
    "/ HTTP/1.1\r\nAuthorization: Basic !!!!",
    "/ HTTP/1.1\r\nAccept-Datetime: Thu, 99 Foo 99999 99:99:99 GMT",
    "/web/2024id_/http://a.example/ HTTP/1.1\r\nRange: bytes=9999999999999999999999-",
    "/web/2024id_/http://a.example/ HTTP/1.1\r\nRange: bytes=5-1,0-0,-0",
    "/web/2024id_/http://a.example/ HTTP/1.1\r\nAccept-Encoding: gzip;q=nan, br;q=-1",
    "/web/2024id_/http://a.example/ HTTP/1.1\r\nIf-None-Match: \"\u{ff}\"",
    "/web/2024/http://a.example/ HTTP/1.1\r\nReferer: javascript:evil()",
    "/web/2024/http://a.example/ HTTP/1.1\r\nOrigin: null\r\nSec-Fetch-Site: cross-site",
];

#[test]
fn hostile_requests_have_a_harmless_answer() {
    let archive = Archive::new();
    let page = response("http://a.example/", TIME, "", "<title>t</title><p>root: of all words");
    let path = archive.root.join("page.warc");
    std::fs::write(&path, page).unwrap();
    archive.ok(&["import", path.to_str().unwrap()]);
    let serving = Serving::start(&[&archive.root], &["--admin"]);
    let mut wrong = Vec::new();
    for request in HOSTILE_REQUESTS {
        for host in [&serving.main, &serving.replay] {
            let own = if request.contains("\r\nHost:") { String::new() } else { format!("Host: {host}\r\n") };
            let bytes: Vec<u8> =
                format!("GET {request}\r\n{own}Connection: close\r\n\r\n").chars().map(|c| c as u8).collect();
            let (head, body) = answer(host, &bytes);
            let body = String::from_utf8_lossy(&body);
            let mut expect = |is_right: bool, what: &str| {
                if !is_right {
                    wrong.push(format!("{request:?}: {what}: {head}"));
                }
            };
            // Bytes that are not HTTP may end the connection.
            expect(head.is_empty() || head.starts_with("HTTP/1.") && !head.contains(" 500 "), "status");
            let lower = head.to_ascii_lowercase();
            expect(!lower.contains("\r\nx-evil:"), "a field of the request");
            expect(
                !lower.contains("location: //evil")
                    && !lower.contains("location: http://evil")
                    && !lower.contains("location: https://evil"),
                "an open redirect",
            );
            let is_markup = lower.contains("content-type: text/html") || lower.contains("xml");
            expect(!(is_markup && body.contains("<script>evil()")), "a script of the request");
            expect(!body.contains("root:x:") && !body.contains("[[site]]"), "a file of the machine");
            if lower.contains("\r\ncontent-type:") {
                expect(lower.contains("x-content-type-options: nosniff"), "nosniff");
                expect(lower.contains("cross-origin-resource-policy: same-origin"), "policy");
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{} of them", wrong.len());
    assert_eq!(send_request(&serving.main, "GET", "/healthz", &[]).status, 200);
}

/// Lines of perennial.toml that must be refused with their line, or do nothing.
const HOSTILE_SETTINGS: &[&str] = &[
    "[archive]\nformat = 99999999999999999999\n",
    "[archive]\ntimestamp_server = \"file:///etc/passwd\"\n",
    "[archive]\ntimestamp_server = \"ftp://x.example/\"\n",
    "[archive]\ntitle = \"\\u001b]0;x\\u0007\"\ncolour\\u001b = 1\n",
    "[warc]\nprefix = \"../../x\"\n",
    "[warc]\nprefix = \"a\\u0000b\"\n",
    "[warc]\nmax_file_bytes = -1\n",
    "[crawl]\nbudget = \"inf/1h\"\n",
    "[crawl]\nbudget = \"1/0s\"\n",
    "[crawl]\nbudget = \"-5/1h\"\n",
    "[crawl]\ndelay = nan\n",
    "[crawl]\nproxy = \"javascript:x\"\n",
    "[crawl]\nwebsub_callback = \"http://\"\n",
    "[crawl]\nmax_workers = 99999999999999\n",
    "[[site]]\nurl = \"javascript:alert(1)\"\n",
    "[[site]]\nurl = \"file:///etc/passwd\"\n",
    "[[site]]\nurl = \"https://a.example/\"\ninclude = [\"(\"]\n",
    "[[site]]\nurl = \"https://a.example/\"\ninclude = [\"(a{1000}){1000}{1000}\"]\n",
    "[[site]]\nurl = \"https://a.example/\"\nexclude = [\"[[[[[[[\"]\n",
    "[[site]]\nurl = \"https://a.example/\"\ntimezone = \"../../etc/passwd\"\n",
    "[[site]]\nurl = \"https://a.example/\"\nhours = \"Mon-Fri 25:99-99:00\"\n",
    "[[site]]\nurl = \"https://a.example/\"\npin = [\"<script>\"]\n",
    "[[site]]\nurl = \"https://a.example/\"\nweight = 1e999\n",
    "[[site]]\nurl = \"https://a.example/\"\nevery = \"-1m\"\n",
    "[[site]]\nurl = \"https://a.example/\"\ndepth = -1\n",
    "[[notify]]\nname = \"a\"\nto = \"webhook:file:///etc/passwd\"\n",
    "[[notify]]\nname = \"a\"\nto = \"email:a@b.example\\r\\nBcc: c@d.example\"\n",
    "[[notify]]\nname = \"a\"\nto = \"gopher://x\"\n",
    "[[notify]]\nname = \"\\u001b[2J\"\nto = \"x\"\n",
    "[[notify]]\nname = \"a\"\nto = \"webhook:http://a.example/\"\nappears = \"/(/\"\n",
    "[[notify]]\nname = \"a\"\nto = \"webhook:http://a.example/\"\nmin_importance = \"much\"\n",
    "\u{1b}[2J = 1\n",
    "a = \"\u{202e}\"\n",
    "x = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
];

#[test]
fn hostile_settings_are_refused_with_their_line() {
    let path = Path::new("perennial.toml");
    for text in HOSTILE_SETTINGS {
        let error = match Settings::parse(path, text) {
            Ok(_) => panic!("{text:?} was accepted"),
            Err(error) => format!("{error:#}"),
        };
        assert!(error.contains("line "), "{text:?}: {error}");
        assert!(error.len() < 2_000, "{text:?}: {} bytes", error.len());
    }
    // Whatever an error quotes, the terminal gets no commands.
    let archive = Archive::new();
    for text in
        HOSTILE_SETTINGS.iter().filter(|text| text.contains(['\u{1b}', '\u{202e}']) || text.contains("\\u00"))
    {
        std::fs::write(archive.root.join("perennial.toml"), text).unwrap();
        let ran = perennial(&archive.root, ["status"]);
        assert_eq!(ran.code, 1, "{text:?}: {}", ran.stdout);
        assert_eq!(commands_in(&(ran.stdout + &ran.stderr)), Vec::<char>::new(), "{text:?}");
    }
    // Nested values without end are refused and not followed into a full stack.
    assert!(Settings::parse(path, &format!("x = {}", "[".repeat(200_000))).is_err());
    assert!(Settings::parse(path, &format!("{}x = 1", "a.".repeat(200_000))).is_err());
}
