//! `perennial serve`, `get` and `view` with the real executable: requests of common clients, rejected requests, damaged
//! archives.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use hyper::http::Request;
use perennial_archive::{Archive, ArchiveWriter};
use perennial_core::time::Timestamp;
use perennial_server::{Options, Origin, Origins, Server, router};
use proptest::prelude::*;
use serde_json::Value;

use crate::program::{folder, html, perennial, ran, sample_file};
use crate::server::{Serving, append_status, send_request};

/// An archive with the sample of other tests: three captures of the home page, a page, a redirect, a style sheet.
fn sample(dir: &Path, name: &str) -> PathBuf {
    let archive = dir.join(name);
    perennial(&archive, ["init", archive.to_str().unwrap()]).ok();
    perennial(&archive, [Path::new("import"), &sample_file(dir, name)]).ok();
    archive
}

fn first_version() -> String {
    html("a one", &["/second", "http://elsewhere.example/x"])
}

fn at(time: &str) -> Timestamp {
    Timestamp::parse(time).unwrap()
}

fn append(writer: &mut ArchiveWriter, url: &str, time: &str, head: &str, body: &[u8]) {
    append_status(writer, url, at(time), "200 OK", head, body);
}

#[test]
fn captures_are_replayed_by_time() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&[&sample(dir.path(), "a")], &[]);
    let raw = serving.get("/web/20240301080000id_/http://a.example/");
    assert_eq!((raw.status, raw.text()), (200, first_version()));
    assert_eq!(raw.field("memento-datetime"), "Fri, 01 Mar 2024 08:00:00 GMT");
    assert_eq!(raw.field("x-perennial-coherence"), "coherent");
    assert!(raw.field("content-security-policy").contains("sandbox"), "{:?}", raw.fields);
    let link = raw.field("link");
    for rel in [
        "\"original\"",
        "\"timegate\"",
        "\"timemap\"",
        "\"first memento\"",
        "\"next memento\"",
        "\"last memento\"",
    ] {
        assert!(link.contains(rel), "{rel} in {link}");
    }
    // A partial time redirects to the closest capture, and so does a time without a capture.
    for path in ["/web/2024/http://a.example/", "/web/20240304090000/http://a.example/"] {
        let led = serving.get(path);
        assert_eq!(
            (led.status, led.field("location")),
            (302, "/web/20240304080000/http://a.example/"),
            "{path}"
        );
    }
    // A subresource is served without a redirect. A later capture confirmed that it was current at this time.
    let part = serving.get("/web/20240302230000id_/http://a.example/");
    assert_eq!((part.text(), part.field("x-perennial-coherence")), (first_version(), "coherent"));
    // A revisit returns its payload with its own time.
    let revisit = serving.get("/web/20240303080000id_/http://a.example/");
    assert_eq!(revisit.text(), first_version());
    assert_eq!(revisit.field("memento-datetime"), "Sun, 03 Mar 2024 08:00:00 GMT");
    let redirect = serving.get("/web/20240302080000id_/http://a.example/old");
    assert_eq!(redirect.status, 301);
    assert_eq!(redirect.field("location"), "/web/20240302080000id_/http://a.example/second");
    let unknown = serving.get("/web/2024/http://a.example/none");
    assert_eq!((unknown.status, unknown.field("x-perennial-problem")), (404, "not-archived"));
    let head = send_request(&serving.main, "HEAD", "/web/20240301080000id_/http://a.example/", &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    // The replay origin serves only archived content.
    assert_eq!(
        send_request(&serving.replay, "GET", "/web/20240301080000id_/http://a.example/", &[]).text(),
        first_version()
    );
    for path in ["/cdx?url=http://a.example/", "/status", "/web/*/http://a.example/"] {
        assert_eq!(send_request(&serving.replay, "GET", path, &[]).status, 404, "{path}");
    }
}

#[test]
fn memento_clients_negotiate_and_list() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&[&sample(dir.path(), "a")], &[]);
    let gate =
        serving.get_with("/web/http://a.example/", &[("Accept-Datetime", "Fri, 01 Mar 2024 12:00:00 GMT")]);
    let base = format!("http://{}", serving.main);
    assert_eq!(gate.status, 302);
    assert_eq!(gate.field("location"), format!("{base}/web/20240301080000/http://a.example/"));
    assert_eq!(gate.field("vary"), "accept-datetime, origin");
    let latest = serving.get("/web/http://a.example/");
    assert_eq!(latest.field("location"), format!("{base}/web/20240304080000/http://a.example/"));
    assert_eq!(serving.get_with("/web/http://a.example/", &[("Accept-Datetime", "soon")]).status, 400);
    let map = serving.get("/web/timemap/link/http://a.example/");
    assert_eq!(map.field("content-type"), "application/link-format");
    let times: Vec<String> = map
        .text()
        .lines()
        .filter(|line| line.contains("memento\""))
        .map(|line| line.split("/web/").nth(1).unwrap()[..14].to_string())
        .collect();
    assert_eq!(times, ["20240301080000", "20240303080000", "20240304080000"]);
    assert!(map.text().contains("rel=\"self\""), "{}", map.text());
    assert_eq!(serving.get("/web/timemap/link/http://none.example/").status, 404);
    assert_eq!(serving.get("/web/timemap/json/http://a.example/").text().lines().count(), 3);
    assert_eq!(serving.get("/web/timemap/cdxj/http://a.example/").text().lines().count(), 3);
    let available = serving.get("/wayback/available?url=a.example&timestamp=20240301").json();
    let closest = &available["archived_snapshots"]["closest"];
    assert_eq!(closest["timestamp"], "20240301080000");
    assert_eq!(closest["available"], true);
    assert_eq!(
        serving.get("/wayback/available?url=none.example").json()["archived_snapshots"],
        serde_json::json!({})
    );
}

#[test]
fn both_dialects_of_cdx_give_the_same_captures() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&[&sample(dir.path(), "a")], &[]);
    let pywb = serving.get("/cdx?url=http://a.example/&output=json");
    let rows: Vec<Value> = pywb.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!((rows[0]["status"].as_str(), rows[1]["mime"].as_str()), (Some("200"), Some("warc/revisit")));
    let wayback = serving.get("/cdx/search/cdx?url=a.example&output=json").json();
    assert_eq!(wayback[0][2], "original");
    let key = |row: &Value, digest: &str| (row["timestamp"].clone(), digest.to_string());
    let of_wayback: Vec<(Value, String)> = wayback.as_array().unwrap()[1..]
        .iter()
        .map(|row| (row[1].clone(), row[5].as_str().unwrap().to_string()))
        .collect();
    let of_pywb: Vec<(Value, String)> = rows
        .iter()
        .map(|row| key(row, row["digest"].as_str().unwrap().strip_prefix("sha1:").unwrap()))
        .collect();
    assert_eq!(of_wayback, of_pywb);
    let count = |query: &str| serving.get(&format!("/cdx?{query}")).text().lines().count();
    for (query, expected) in [
        ("url=http://a.example/*", 6),
        ("url=a.example&matchType=host", 6),
        ("url=*.example", 6),
        ("url=a.example&from=20240302&to=20240303", 1),
        ("url=a.example/*&filter=%3Dstatus:301", 1),
        ("url=a.example/*&filter=!%3Dstatus:200", 1),
        ("url=a.example/*&filter=~mime:text/.*", 5),
        ("url=a.example/*&limit=2", 2),
        ("url=a.example&collapse=digest", 2),
        ("url=none.example", 0),
    ] {
        assert_eq!(count(query), expected, "{query}");
    }
    let times = |query: &str| -> Vec<String> {
        let text = serving.get(&format!("/cdx?url=a.example&output=text&fl=timestamp&{query}")).text();
        text.lines().map(str::to_string).collect()
    };
    assert_eq!(times("closest=20240303080000&limit=2"), ["20240303080000", "20240304080000"]);
    assert_eq!(times("sort=reverse&limit=1"), ["20240304080000"]);
    assert_eq!(times("limit=-2"), ["20240303080000", "20240304080000"]);
    assert_eq!(serving.get("/cdx/search/cdx?url=*&showNumPages=true").text(), "1\n");
    for query in [
        "limit=2",
        "url=a.example&output=xml",
        "url=a.example&filter=x",
        "url=a&matchType=near",
        "url=a&filter=~a:(",
    ] {
        assert_eq!(serving.get(&format!("/cdx?{query}")).status, 400, "{query}");
    }
}

#[test]
fn resume_keys_lead_through_everything_once() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&[&sample(dir.path(), "a")], &[]);
    let all = serving.get("/cdx/search/cdx?url=*").text();
    let mut walked = String::new();
    let mut resume = String::new();
    for _ in 0..10 {
        let path = format!("/cdx/search/cdx?url=*&limit=2&showResumeKey=true{resume}");
        let text = serving.get(&path).text();
        let (rows, key) = text.split_once("\n\n").unwrap_or((text.trim_end(), ""));
        walked.push_str(rows);
        walked.push('\n');
        if key.is_empty() {
            break;
        }
        resume = format!("&resumeKey={}", key.trim());
    }
    assert_eq!(walked, all);
    assert_eq!(all.lines().count(), 6);
}

#[test]
fn calendars_and_lists_read_without_scripts() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&[&sample(dir.path(), "a")], &[]);
    let calendar = serving.get("/web/*/http://a.example/");
    assert!(calendar.text().contains("3 captures on 3 days"), "{}", calendar.text());
    assert!(calendar.text().contains("/web/20240303080000/http://a.example/"));
    assert!(!calendar.text().contains("<script"));
    assert!(calendar.field("content-security-policy").contains("default-src 'none'"));
    let days = serving.get("/web/202403*/http://a.example/").text();
    assert_eq!(days.matches("<time ").count(), 3, "{days}");
    let list = serving.get("/web/*/http://a.example/*").text();
    assert!(list.contains("4 captured URLs") && list.contains("http://a.example/style.css"), "{list}");
    let found = serving.get("/web/?url=a.example");
    assert_eq!((found.status, found.field("location")), (302, "/web/*/a.example"));
    assert!(serving.get("/").text().contains("<form"));
}

#[test]
fn errors_have_the_requested_format_and_old_paths_redirect() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&[&sample(dir.path(), "a")], &[]);
    let wrong = serving.get("/changes?selector=%3Cb%3E&format=json");
    assert_eq!((wrong.status, wrong.field("content-type")), (400, "application/json"), "{}", wrong.text());
    assert!(serving.get("/changes?least=7").text().starts_with("<!DOCTYPE html>"));
    for (old, new) in [
        ("/schedule?url=a", "/plan?url=a"),
        ("/objects", "/articles"),
        ("/object?url=a", "/article?url=a"),
        ("/acts", "/audit"),
        ("/api/schedule?site=a", "/api/plan?site=a"),
    ] {
        let moved = serving.get(old);
        assert_eq!((moved.status, moved.field("location")), (301, new), "{old}");
    }
}

#[test]
fn scripts_of_other_pages_read_where_they_are_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let archive = sample(dir.path(), "a");
    let player = ("Origin", "https://player.example");
    let paths =
        ["/cdx?url=a.example/*", "/web/timemap/link/http://a.example/", "/wacz/s.wacz?site=a.example"];
    let readers = |options: &[&str], field: (&str, &str)| -> Vec<String> {
        let serving = Serving::start(&[&archive], options);
        let read =
            |path: &&str| serving.get_with(path, &[field]).field("access-control-allow-origin").to_owned();
        paths.iter().map(read).collect()
    };
    assert_eq!(readers(&[], player), ["", "", ""]);
    assert_eq!(readers(&["--allow-origin", "https://player.example/"], player), [player.1; 3]);
    assert_eq!(readers(&["--allow-origin", "https://player.example"], ("Origin", "null")), ["", "", ""]);
    assert_eq!(readers(&["--public"], player), ["*", "*", "*"]);
}

#[test]
fn files_for_other_tools_are_read_in_ranges() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&[&sample(dir.path(), "a")], &[]);
    let whole = serving.get("/wacz/site.wacz?site=a.example");
    assert_eq!((whole.status, whole.field("content-type")), (200, "application/wacz"));
    assert_eq!(&whole.body[..2], b"PK");
    let end = serving.get_with("/wacz/site.wacz?site=a.example", &[("Range", "bytes=-100")]);
    assert_eq!((end.status, &end.body[..]), (206, &whole.body[whole.body.len() - 100..]));
    let total = whole.body.len();
    assert_eq!(end.field("content-range"), format!("bytes {}-{}/{total}", total - 100, total - 1));
    assert_eq!(end.field("access-control-allow-origin"), "", "no website may read what this machine may");
    let page = serving.get("/wacz/page.wacz?url=http://a.example/second");
    assert!(page.status == 200 && page.body.len() < total);
    assert_eq!(serving.get("/wacz/x.wacz").status, 400);
    assert_eq!(serving.get("/wacz/x.wacz?site=none.example").status, 404);
    let rows = serving.get("/cdx?url=a.example/second&output=json").json();
    let record = serving.get(&format!("/record/{}", rows["digest"].as_str().unwrap()));
    assert_eq!(record.body.len().to_string(), rows["length"].as_str().unwrap());
    let mut text = String::new();
    flate2::read::GzDecoder::new(&record.body[..]).read_to_string(&mut text).unwrap();
    assert!(text.starts_with("WARC/1.1\r\n") && text.contains("a second page"), "{text}");
    assert_eq!(serving.get("/record/sha1:NONE").status, 404);
    let part = serving.get_with("/web/20240301080000id_/http://a.example/", &[("Range", "bytes=5-9")]);
    assert_eq!((part.status, part.text()), (206, first_version()[5..10].to_string()));
    let beyond = serving.get_with("/web/20240301080000id_/http://a.example/", &[("Range", "bytes=99999-")]);
    assert_eq!(beyond.status, 416);
}

#[test]
fn large_and_coded_bodies_are_streamed_whole_and_in_parts() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n / 7) as u8 ^ (n >> 11) as u8).collect();
    append(&mut writer, "http://a.example/large", "2026-01-01", "video/mp4", &large);
    let coded = crate::crawled::gzip(&large);
    append(
        &mut writer,
        "http://a.example/coded",
        "2026-01-01",
        "video/mp4\r\nContent-Encoding: gzip",
        &coded,
    );
    writer.commit().unwrap();
    writer.close().unwrap();
    let serving = Serving::start(&[&root], &[]);
    for name in ["large", "coded"] {
        let path = format!("/web/20260101000000oe_/http://a.example/{name}");
        assert!(serving.get(&path).body == large, "{name}");
        let part = serving.get_with(&path, &[("Range", "bytes=1000000-1999999")]);
        assert_eq!(
            (part.status, part.field("content-range")),
            (206, "bytes 1000000-1999999/3000000"),
            "{name}"
        );
        assert!(part.body == large[1_000_000..2_000_000], "{name}");
    }
    let path = "/web/20260101000000id_/http://a.example/coded";
    let as_sent = serving.get_with(path, &[("Accept-Encoding", "gzip, br")]);
    assert_eq!(as_sent.field("content-encoding"), "gzip");
    assert!(as_sent.body == coded);
    let plain = serving.get(path);
    assert!(plain.field("content-encoding").is_empty() && plain.body == large);
}

#[test]
fn a_captured_part_is_a_part_and_a_whole_one_is_whole() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    for (name, range) in [("part", "bytes 5-9/100"), ("whole", "bytes 0-4/5")] {
        let head = format!("video/mp4\r\nContent-Range: {range}");
        let url = format!("http://a.example/{name}");
        append_status(&mut writer, &url, at("2026-01-01"), "206 Partial Content", &head, b"abcde");
    }
    writer.commit().unwrap();
    writer.close().unwrap();
    let serving = Serving::start(&[&root], &[]);
    let send_request = |name: &str, range: &str| {
        let path = format!("/web/20260101000000oe_/http://a.example/{name}");
        let answer = serving.get_with(&path, &[("Range", range)]);
        (answer.status, answer.field("content-range").to_string(), answer.text())
    };
    assert_eq!(send_request("part", "bytes=0-"), (206, "bytes 5-9/100".to_string(), "abcde".to_string()));
    assert_eq!(send_request("whole", "bytes=1-2"), (206, "bytes 1-2/5".to_string(), "bc".to_string()));
    assert_eq!(serving.get("/web/20260101000000oe_/http://a.example/whole").status, 200);
}

#[test]
fn equal_bodies_keep_the_heads_that_they_came_with() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    for name in ["a", "b"] {
        let url = format!("http://{name}.example/");
        let head = format!("text/html\r\nLocation: /to-{name}");
        append_status(&mut writer, &url, at("2026-01-01"), "301 Moved", &head, b"moved");
        append(&mut writer, &format!("{url}page"), "2026-01-01", &format!("text/{name}"), b"the same");
    }
    writer.commit().unwrap();
    writer.close().unwrap();
    let serving = Serving::start(&[&root], &[]);
    for name in ["a", "b"] {
        let redirect = serving.get(&format!("/web/20260101000000id_/http://{name}.example/"));
        let expected = format!("/web/20260101000000id_/http://{name}.example/to-{name}");
        assert_eq!((redirect.status, redirect.field("location")), (301, expected.as_str()));
        let page = serving.get(&format!("/web/20260101000000id_/http://{name}.example/page"));
        assert_eq!(
            (page.text().as_str(), page.field("content-type")),
            ("the same", format!("text/{name}").as_str())
        );
    }
}

#[test]
fn what_is_damaged_is_said_and_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let archive = sample(dir.path(), "a");
    let serving = Serving::start(&[&archive], &[]);
    let path = "/web/20240302080000id_/http://a.example/second";
    assert_eq!(serving.get(path).status, 200);
    let rows = serving.get("/cdx?url=a.example/second&output=json").json();
    let number = |name: &str| rows[name].as_str().unwrap().parse::<usize>().unwrap();
    let file = archive.join("warc").join(rows["filename"].as_str().unwrap());
    let sound = std::fs::read(&file).unwrap();
    let mut n_refused = 0;
    for place in (12..number("length")).step_by(29) {
        let mut bytes = sound.clone();
        bytes[number("offset") + place] ^= 0x55;
        std::fs::write(&file, &bytes).unwrap();
        let answer = serving.get(path);
        let is_right = answer.status == 200 && answer.text() == html("a second page", &["/"]);
        assert!(is_right || answer.status == 502, "{place}: {} {}", answer.status, answer.text());
        n_refused += u64::from(answer.status == 502);
    }
    assert!(n_refused > 3, "{n_refused}");
    std::fs::remove_file(&file).unwrap();
    let missing = serving.get_with(path, &[("Accept", "application/json")]);
    assert_eq!((missing.status, missing.json()["error"].as_str()), (502, Some("damaged")));
    assert_eq!(serving.get("/status").json()["problems"]["damaged"], n_refused + 1);
    // The intact captures are served as before.
    std::fs::write(&file, &sound).unwrap();
    assert_eq!(serving.get(path).status, 200);
}

#[test]
fn a_capture_is_seen_when_it_is_committed() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    let serving = Serving::start(&[&root], &[]);
    for n in 1..=5 {
        let path = format!("/web/2026010{n}000000id_/http://a.example/");
        append(
            &mut writer,
            "http://a.example/",
            &format!("2026-01-0{n}"),
            "text/plain",
            n.to_string().as_bytes(),
        );
        writer.commit().unwrap();
        assert_eq!(serving.get(&path).text(), n.to_string());
        assert_eq!(serving.get("/cdx?url=a.example").text().lines().count(), n);
    }
}

#[test]
fn a_part_that_came_later_is_not_shown_where_an_earlier_one_may_have_lasted() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    let style = "http://a.example/style.css";
    append(&mut writer, style, "2026-01-01T00:00:00Z", "text/css", b"before");
    let dated = "text/css\r\nLast-Modified: Thu, 01 Jan 2026 10:30:00 GMT";
    append(&mut writer, style, "2026-01-01T11:00:00Z", dated, b"after");
    writer.commit().unwrap();
    writer.close().unwrap();
    // At ten the later version did not exist yet. At a quarter to eleven it did, so the closest capture does not
    // matter.
    for (options, at_ten, at_eleven) in [
        (&[][..], ("before", "possibly-coherent"), ("after", "coherent")),
        (&["--closest"], ("after", "violating"), ("after", "coherent")),
    ] {
        let serving = Serving::start(&[&root], options);
        for (time, expected) in [("20260101100000", at_ten), ("20260101104500", at_eleven)] {
            let answer = serving.get(&format!("/web/{time}cs_/{style}"));
            assert_eq!(
                (answer.text().as_str(), answer.field("x-perennial-coherence")),
                expected,
                "{options:?} {time}"
            );
        }
    }
}

#[test]
fn several_archives_have_names() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (sample(dir.path(), "a"), sample(dir.path(), "b"));
    let serving = Serving::start(&[&a, &b], &[]);
    assert_eq!(serving.get("/b/web/20240302080000id_/http://b.example/second").status, 200);
    assert_eq!(serving.get("/a/web/20240302080000id_/http://b.example/second").status, 404);
    let redirect = serving.get("/b/web/20240302080000id_/http://b.example/old");
    assert_eq!(redirect.field("location"), "/b/web/20240302080000id_/http://b.example/second");
    assert!(serving.get("/b/web/timemap/link/http://b.example/").text().contains("/b/web/20240301080000/"));
    assert_eq!(serving.get("/b/cdx?url=b.example").text().lines().count(), 3);
    assert_eq!(serving.get("/status").json()["archives"], serde_json::json!(["a", "b"]));
    let two = ran(Command::new(env!("CARGO_BIN_EXE_perennial"))
        .arg("--archive")
        .arg(&a)
        .arg("--archive")
        .arg(&b)
        .arg("status"));
    assert!(two.code == 1 && two.stderr.contains("one --archive"), "{}", two.stderr);
}

#[test]
fn unauthorised_readers_are_not_answered() {
    let dir = tempfile::tempdir().unwrap();
    let archive = sample(dir.path(), "a");
    let open = perennial(&archive, ["serve", "--listen", "0.0.0.0:0"]);
    assert!(open.code == 1 && open.stderr.contains("--token-file"), "{}", open.stderr);
    let serving = Serving::start(&[&archive], &["--allow-host", "mine.example"]);
    let status = |fields: &[(&str, &str)]| serving.get_with("/status", fields).status;
    assert_eq!(status(&[("Host", "evil.example")]), 421);
    assert_eq!(status(&[("Host", "mine.example:80")]), 200);
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        assert_eq!(send_request(&serving.main, method, "/", &[]).status, 405, "{method}");
    }
    let token_file = dir.path().join("token");
    let serving = Serving::start(&[&archive], &["--token-file", token_file.to_str().unwrap()]);
    let token = std::fs::read_to_string(&token_file).unwrap();
    assert_eq!(serving.get("/status").status, 401);
    let bearer = format!("Bearer {}", token.trim());
    assert_eq!(serving.get_with("/status", &[("Authorization", &bearer)]).status, 200);
    let logged_in = serving.get(&format!("/login?token={}", token.trim()));
    let cookie = logged_in.field("set-cookie").split(';').next().unwrap().to_string();
    assert!(logged_in.field("set-cookie").contains("HttpOnly"));
    assert_eq!(serving.get_with("/status", &[("Cookie", &cookie)]).status, 200);
}

#[test]
fn nothing_of_the_archive_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let archive = sample(dir.path(), "a");
    let contents = || {
        let mut all = crate::reading::contents(&archive);
        // SQLite's shared memory lists the readers.
        all.retain(|(path, _)| {
            !path.to_string_lossy().ends_with("-shm") && !path.to_string_lossy().ends_with("-wal")
        });
        all
    };
    let before = contents();
    let serving = Serving::start(&[&archive], &[]);
    for path in [
        "/",
        "/web/*/http://a.example/",
        "/cdx?url=*",
        "/web/2024mp_/http://a.example/",
        "/wacz/s.wacz?site=a.example",
    ] {
        assert!(serving.get(path).status < 500, "{path}");
    }
    drop(serving);
    assert!(before == contents(), "a file of the archive changed");
}

#[test]
fn get_writes_bodies_and_view_names_urls() {
    let dir = tempfile::tempdir().unwrap();
    let archive = sample(dir.path(), "a");
    assert_eq!(
        perennial(&archive, ["view", "--raw", "http://a.example/@20240301"]).ok().stdout,
        first_version()
    );
    let latest = perennial(&archive, ["view", "--raw", "http://a.example/"]).ok().stdout;
    assert!(latest.contains("a two"), "{latest}");
    let raw = perennial(&archive, ["view", "--response", "http://a.example/old"]).ok().stdout;
    assert!(raw.starts_with("HTTP/1.1 301 Moved\r\n") && raw.contains("Location: /second"), "{raw}");
    let facts = perennial(&archive, ["--json", "view", "--raw", "http://a.example/@2024-03-03T09:00:00Z"])
        .ok()
        .json();
    assert_eq!(
        (facts["time"].as_str(), facts["is_revisit"].as_bool()),
        (Some("2024-03-03T08:00:00Z"), Some(true))
    );
    let none = perennial(&archive, ["view", "--raw", "http://none.example/"]);
    assert!(none.code == 1 && none.stderr.contains("is not archived"), "{}", none.stderr);
    let serving = Serving::start(&[&archive], &[]);
    let args = ["view", "--no-browser", "--listen", &serving.main, "http://a.example/@20240301"];
    let seen = perennial(&archive, args).ok().stdout;
    assert_eq!(seen.trim(), format!("http://{}/web/20240301000000/http://a.example/", serving.main));
}

#[test]
fn a_client_that_is_slow_or_odd_keeps_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(&[&sample(dir.path(), "a")], &[]);
    let mut slow: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&serving.main).unwrap()).collect();
    for stream in &mut slow {
        let _ = stream.write_all(b"GET /web/2024/http");
    }
    assert_eq!(serving.get("/status").status, 200);
    let mut odd = TcpStream::connect(&serving.main).unwrap();
    let _ = odd.write_all(b"\x16\x03\x01\x00\xff\r\n\r\n");
    let long = format!("/web/2024/http://a.example/{}", "x".repeat(20_000));
    assert_eq!(serving.get(&long).status, 400);
    // The server stops reading an overlong head, so writing it may fail.
    let mut endless = TcpStream::connect(&serving.main).unwrap();
    let _ = endless.write_all(b"GET /status HTTP/1.1\r\n");
    let line = format!("X-Long: {}\r\n", "y".repeat(1000));
    let n_taken = (0..100_000).take_while(|_| endless.write_all(line.as_bytes()).is_ok()).count();
    assert!(n_taken < 100_000, "a head without end was read");
    assert_eq!(serving.get("/status").status, 200);
}

fn targets() -> impl Strategy<Value = String> {
    let time = "([0-9]{0,15}|\\*)((id|mp|if|js|cs|im|oe|fr|xx)_)?";
    let url = "(https?:/{0,3})?(a\\.example|\\[::1\\]|%zz|é)?(/[a-z*%.]{0,6}){0,3}(\\?[a-z=&%+]{0,8})?";
    let names = "(url|from|to|limit|page|pageSize|filter|collapse|sort|closest|fl|output|matchType|resumeKey|showNumPages)";
    let apis = "(cdx|cdx/search/cdx|wayback/available|wacz/x|web/timemap/cdx|web/)";
    let texts = [
        format!("/(web/)?{time}/{url}"),
        format!("/web/timemap/(link|cdxj|json|cdx|x)/?([0-9]{{14}}/)?{url}"),
        format!("/{apis}\\?({names}=[a-z0-9*:!=~()\\[\\].-]{{0,9}}&){{0,4}}url=a.example[/*]{{0,2}}"),
        "/[!-~]{0,40}".to_string(),
    ];
    let [replay, timemap, api, any] = texts.map(|text| proptest::string::string_regex(&text).unwrap());
    prop_oneof![replay, timemap, api, any]
}

#[test]
fn any_request_has_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Archive::open(&sample(dir.path(), "a")).unwrap();
    let origins = Origins { main: "http://127.0.0.1:1".into(), replay: "http://127.0.0.1:2".into() };
    let server =
        Server::new(vec![archive], Options::on_loopback(([127, 0, 0, 1], 1).into()), origins).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let config = ProptestConfig { cases: 500, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let case = (targets(), prop::bool::ANY, prop::option::of("(bytes=)?[0-9-]{0,6}"));
    runner
        .run(&case, |(target, is_main, range)| {
            let mut request = Request::builder().uri(&target).header("host", "localhost");
            if let Some(range) = range {
                request = request.header("range", range);
            }
            // The HTTP library rejects an invalid URL before our code sees it.
            let Ok(request) = request.body(()) else { return Ok(()) };
            let origin = if is_main { Origin::Main } else { Origin::Replay };
            let (parts, ()) = request.into_parts();
            let status = match router::route(&server, origin, &parts) {
                Ok(response) => response.status(),
                Err(problem) => problem.status,
            };
            prop_assert!(status.as_u16() < 500, "{}: {}", target, status);
            Ok(())
        })
        .unwrap();
}
