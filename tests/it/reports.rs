//! Reports for users: the next visits, the quality of the archive, when pages change.

use std::path::{Path, PathBuf};

use perennial_core::time::{Span, Timestamp};
use perennial_warc::{Compression, NewRecord, RecordIds, WarcWriter};
use serde_json::Value;

use crate::crawled::Archive;
use crate::program::sample_file;
use crate::web::{Reply, Web, WebRequest, html, redirect, status};

/// A front page that changes every day at noon of the virtual clock, as its number of visits shows. The site also has a
/// feed, a redirected URL, and one that never existed.
fn site(request: &WebRequest) -> Reply {
    match (request.path.as_str(), request.n_before) {
        ("/", n) => html(&format!(
            "<title>City</title><h1>Edition {}</h1><p>What the city council decided on its day number {}.</p>
            <a href=/old>old</a><a href=/dead>dead</a><a href=/about>about</a><a href=/feed.xml>feed</a>",
            n / 4,
            n / 4
        )),
        ("/about", _) => html("<title>About</title><h1>About the city</h1><p>Founded long ago.</p>"),
        ("/feed.xml", n) => Reply::Page(
            200,
            vec![("Content-Type", "application/rss+xml".into())],
            format!("<rss><channel><item><title>Edition {}</title></item></channel></rss>", n / 4)
                .into_bytes(),
        ),
        ("/old", _) => redirect("/about"),
        _ => status(404),
    }
}

fn followed(web: &Web) -> Archive {
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive
}

fn crawled(web: &Web, time: &str) -> Archive {
    let archive = followed(web);
    archive.lapse("6h", time);
    archive
}

fn urls(entries: &Value, is_wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let entries = entries.as_array().unwrap().iter().filter(|entry| is_wanted(entry));
    entries.map(|entry| entry["url"].as_str().unwrap().to_string()).collect()
}

#[test]
fn the_plan_lists_the_next_visits_with_times() {
    let web = Web::serve(site);
    let archive = crawled(&web, "5d");
    let args = ["plan", "next", "--at", "2026-01-06T00:10:00Z", "--budget", "2/1h"];
    let entries = archive.json(&args);
    let mut visits = urls(&entries, |entry| entry["planned"] == true);
    let times: Vec<&str> = entries
        .as_array()
        .unwrap()
        .iter()
        .filter(|e| e["planned"] == true)
        .map(|e| e["at"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted() && times[0].starts_with("2026-01-06T00:1"), "{times:?}");
    visits.sort();
    assert_eq!(visits, [web.url("/"), web.url("/about"), web.url("/feed.xml")], "{entries}");
    // URLs without a page are listed separately.
    let mut probes = urls(&entries, |entry| entry["probe"] == true);
    probes.sort();
    assert_eq!(probes, [web.url("/dead"), web.url("/old")], "{entries}");
    let text = archive.ok(&args);
    let mut lines = text.lines();
    assert!(lines.next().is_some_and(|line| line.contains("2.0 visits per hour (--budget)")), "{text}");
    assert!(lines.any(|line| line.starts_with("when ") && line.contains("importance")), "{text}");
    assert!(text.contains("Probed from time to time, 2 URLs without a page"), "{text}");
    assert!(text.contains(&format!("redirects to {}", web.url("/about"))), "{text}");
    assert!(text.contains("last seen 2026-01-0"), "{text}");
    // The crawl's own budget applies unless a different one is given.
    archive.append_settings("[crawl]\nbudget = \"12/1d\"\n");
    let text = archive.ok(&["plan", "next", "--at", "2026-01-06T00:10:00Z"]);
    assert!(text.contains("0.5 visits per hour (perennial.toml)"), "{text}");
}

#[test]
fn the_plan_contains_no_removed_sites() {
    let (web, other) = (Web::serve(site), Web::serve(site));
    let archive = crawled(&web, "1d");
    archive.ok(&["add", &other.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "1d");
    archive.ok(&["remove", &web.url("/")]);
    let entries = archive.json(&["plan", "next", "--at", "2026-01-03T00:10:00Z", "--top", "100"]);
    let listed = urls(&entries, |_| true);
    assert!(!listed.is_empty() && listed.iter().all(|url| url.starts_with(&other.url("/"))), "{listed:?}");
    archive.ok(&["remove", &other.url("/")]);
    assert_eq!(archive.json(&["plan", "next"]), Value::Array(Vec::new()));
    let text = archive.ok(&["plan", "next"]);
    assert!(text.contains("no page is followed") && text.contains("perennial add"), "{text}");
}

#[test]
fn what_if_reports_fetches_and_importance_or_an_error() {
    let web = Web::serve(site);
    let archive = followed(&web);
    let args = ["plan", "next", "--at", "2026-01-06T00:10:00Z", "--budget", "1", "--what-if"];
    let refused = archive.run(&args);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("--what-if: no page is followed"), "{why}");
    archive.lapse("6h", "1h");
    let why = String::from_utf8_lossy(&archive.run(&args).stderr).into_owned();
    assert!(why.contains("no page was observed twice"), "{why}");
    archive.lapse("6h", "5d");
    let answers = archive.json(&args);
    let numbers = |field: &str| -> Vec<f64> {
        answers.as_array().unwrap().iter().map(|answer| answer[field].as_f64().unwrap()).collect()
    };
    assert_eq!(numbers("budget_per_hour"), [0.5, 1.0, 2.0]);
    let (fetches, worth) = (numbers("n_visits"), numbers("expected_importance"));
    assert!((10.0..=13.0).contains(&fetches[0]) && (22.0..=25.0).contains(&fetches[1]), "{fetches:?}");
    assert!(
        fetches[2] > fetches[1] && worth[0] > 0.0 && worth[0] <= worth[1] + 1e-9,
        "{fetches:?} {worth:?}"
    );
    let text = archive.ok(&args);
    assert!(text.contains("The next 24 hours") && text.contains("expected importance"), "{text}");
}

fn bounds(quality: &Value, name: &str) -> [f64; 3] {
    ["at_least", "likely", "at_most"].map(|bound| quality[name][bound].as_f64().unwrap())
}

#[test]
fn a_site_where_nothing_changed_is_probably_complete() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html("<title>Still</title><h1>Nothing happens here</h1><a href=/about>about</a>"),
        "/about" => html("<title>About</title><h1>About</h1><p>Nothing happens here either.</p>"),
        _ => status(404),
    });
    let archive = crawled(&web, "3d");
    let quality = archive.json(&["plan", "quality"]);
    for name in ["completeness_pooled", "completeness_weighted", "completeness_count"] {
        let [least, likely, most] = bounds(&quality["sites"][0], name);
        assert!(0.5 < least && least <= likely && likely > 0.9 && most == 1.0, "{name}: {quality}");
    }
    assert_eq!(quality["sites"][0]["has_changes"], false);
    let text = archive.ok(&["plan", "quality"]);
    assert!(text.contains(" * ") && text.contains("No change was observed"), "{text}");
    assert!(text.contains("definitions of the demonstration's report"), "{text}");
}

/// A file with captures, given by hour, URL, media type and body.
fn imported(captures: &[(i64, &str, &str, String)]) -> Archive {
    let archive = Archive::new();
    let mut ids = RecordIds::new(5);
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::Gzip(1)).unwrap();
    let start = Timestamp::parse("2026-01-01").unwrap();
    for (hour, url, mime, body) in captures {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\nContent-Length: {}\r\n\r\n", body.len());
        let at = start + Span::from_hours(*hour);
        out.write(&NewRecord::response(ids.next_id(), at, url, head.as_bytes(), body.as_bytes())).unwrap();
    }
    let file = archive.root.join("made.warc.gz");
    std::fs::write(&file, out.into_inner()).unwrap();
    archive.ok(&["import", file.to_str().unwrap()]);
    archive
}

/// The sitemap announces an edition every two hours, and every sixth hour there is a capture.
#[test]
fn sitemaps_bound_quality_from_above() {
    const PAGE: &str = "http://city.example/";
    const STORIES: [&str; 5] = [
        "Bridge closed for repairs",
        "New mayor elected",
        "Museum opens a wing",
        "Trams run at night",
        "River flooded",
    ];
    let page =
        |n: usize| format!("<title>City</title><h1>{0}</h1><p>{0}, as the council says.</p>", STORIES[n]);
    let entries: String = (0..12)
        .map(|n| format!("<url><loc>{PAGE}</loc><lastmod>2026-01-01T{:02}:30:00Z</lastmod></url>", 2 * n))
        .collect();
    let mut captures: Vec<(i64, &str, &str, String)> =
        (0..5).map(|n| (6 * n as i64, PAGE, "text/html", page(n))).collect();
    captures.push((
        24,
        "http://city.example/sitemap.xml",
        "application/xml",
        format!("<urlset>{entries}</urlset>"),
    ));
    let quality = imported(&captures).json(&["plan", "quality"]);
    assert_eq!(quality["n_announced"], 12, "{quality}");
    // Of twelve editions four were captured after the first capture.
    let [least, likely, most] = bounds(&quality, "completeness_count");
    assert!(
        (most - 4.0 / 12.0).abs() < 1e-9 && 0.0 < least && least <= likely && likely <= most,
        "{quality}"
    );
    for name in ["completeness_pooled", "completeness_weighted"] {
        assert!(bounds(&quality, name)[2] < 0.5, "{name}: {quality}");
    }
    let archive = imported(&captures[..5]);
    assert_eq!(bounds(&archive.json(&["plan", "quality"]), "completeness_count")[2], 1.0);
    assert!(archive.ok(&["plan", "quality"]).contains("all bounds are estimates"));
}

#[test]
fn patterns_have_axes_and_explanations() {
    const PAGE: &str = "http://city.example/";
    let page = |n: i64| {
        format!(
            "<title>City</title><h1>Edition {}</h1><p>{}</p>",
            n / 8,
            "news ".repeat((n / 8) as usize + 1)
        )
    };
    let captures: Vec<(i64, &str, &str, String)> =
        (0..60).map(|n| (3 * n, PAGE, "text/html", page(n))).collect();
    let archive = imported(&captures);
    let text = archive.ok(&["plan", "patterns", PAGE]);
    assert!(text.contains("0  3  6  9  12 15 18 21"), "{text}");
    assert!(
        text.contains("hour of the day, UTC") && text.contains("a dot is an hour without observations"),
        "{text}"
    );
    let svg = archive.ok(&["plan", "patterns", PAGE, "--format", "svg"]);
    assert!(svg.contains(">21</text>") && svg.contains("hour of the day"), "{svg}");
    let help = archive.ok(&["plan", "patterns", "--help"]);
    for word in ["sure", "index threshold", "group", "up to"] {
        assert!(help.contains(&format!("\n  {word} ")), "{word}: {help}");
    }
    // A page that changes once in three days gets a chart by day of the week.
    let rare: Vec<(i64, &str, &str, String)> =
        (0..60).map(|n| (6 * n, PAGE, "text/html", page(n * 2 / 3))).collect();
    let text = imported(&rare).ok(&["plan", "patterns", PAGE]);
    assert!(text.contains("Mo Tu We Th Fr Sa Su") && text.contains("day of the week, UTC"), "{text}");
}

#[test]
fn the_log_is_filtered_by_time_and_its_hints_work() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html("<h1>Front</h1><a href=/gone>gone</a><a href=/broken>broken</a>"),
        "/broken" => status(500),
        _ => status(404),
    });
    let archive = followed(&web);
    archive.lapse("6h", "1d");
    let all = archive.json(&["log", "-n", "1000"]).as_array().unwrap().len();
    let late = archive.json(&["log", "-n", "1000", "--since", "2026-01-01T12:00:00Z"]);
    let late = late.as_array().unwrap();
    assert!(!late.is_empty() && late.len() < all, "{} of {all}", late.len());
    assert!(late.iter().all(|line| line["time"].as_str().unwrap() >= "2026-01-01T12"), "{late:?}");
    let run = archive.run(&["log", "--since", "2027-01-01"]);
    assert!(
        run.status.success() && String::from_utf8_lossy(&run.stderr).contains("no such visit"),
        "{run:?}"
    );
    let run = archive.run(&["log", "-n", "1"]);
    assert!(String::from_utf8_lossy(&run.stderr).contains(&format!("-n {all} shows all")), "{run:?}");
    // Each hint in a crawl's summary works.
    let summary = archive.run(&["run", "--once", "--time-lapse", "max", "--delay", "0"]);
    let summary = String::from_utf8_lossy(&summary.stdout).into_owned();
    let hints: Vec<&str> = summary.split('`').filter(|part| part.starts_with("perennial log")).collect();
    assert_eq!(hints.len(), 3, "{summary}");
    for hint in hints {
        let args: Vec<&str> = hint.split(' ').skip(1).collect();
        assert!(!archive.json(&args).as_array().unwrap().is_empty(), "{hint} finds nothing: {summary}");
    }
}

#[test]
fn pages_and_subresources_are_counted_separately() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html("<link rel=stylesheet href=/a.css><h1>Front</h1><img src=/b.png><a href=/next>next</a>"),
        "/next" => html("<h1>Next</h1>"),
        "/a.css" => {
            Reply::Page(200, vec![("Content-Type", "text/css".into())], b"h1 { color: red }".to_vec())
        }
        _ => status(404),
    });
    let archive = followed(&web);
    let status = archive.json(&["run", "--once", "--delay", "0"]);
    assert_eq!((&status["pages"]["n_visits"], &status["pages"]["n_new"]), (&2.into(), &2.into()), "{status}");
    let subresources = &status["subresources"];
    assert_eq!((&subresources["n_new"], &subresources["n_missing"]), (&1.into(), &2.into()), "{status}");
    let text = archive.ok(&["run", "--once", "--delay", "0"]);
    assert!(text.starts_with("2 visits of pages, 2 known: 0 new, 0 changed, 2 unchanged"), "{text}");
}

/// Nothing is fetched, because the limit is reached before the first visit.
#[test]
fn a_crawl_without_a_contact_gives_a_warning() {
    let archive = Archive::new();
    archive.ok(&["add", "http://city.invalid/"]);
    let crawl = ["run", "--once", "--limit", "0"];
    let warned = |archive: &Archive| {
        String::from_utf8_lossy(&archive.run(&crawl).stderr).contains("sets no `contact`")
    };
    assert!(warned(&archive));
    archive.append_settings("[crawl]\ncontact = \"archive@example.org\"\n");
    assert!(!warned(&archive));
}

/// The exit code of an import, and its output.
fn import(archive: &Archive, files: &[&Path]) -> (Option<i32>, String) {
    let names: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    let run = archive.run(&[&["import"], &names[..]].concat());
    (
        run.status.code(),
        String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr),
    )
}

fn beside(archive: &Archive, name: &str, bytes: &[u8]) -> PathBuf {
    let path = archive.root.with_file_name(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_failed_import_has_its_own_exit_code() {
    let archive = Archive::new();
    let good = sample_file(archive.root.parent().unwrap(), "good");
    let broken = beside(&archive, "broken.warc.gz", &[&[0x1f, 0x8b, 8, 0][..], &[7; 700]].concat());
    let (code, text) = import(&archive, &[&broken]);
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("unreadable, 1 problem\n") && !text.contains("already"), "{text}");
    // An unreadable WACZ, and one without WARC files, are reported. The others are imported.
    let cut = beside(&archive, "cut.wacz", &[&b"PK\x03\x04"[..], &[7; 700]].concat());
    let mut empty = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    empty
        .start_file(
            "datapackage.json",
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored),
        )
        .unwrap();
    let empty = beside(&archive, "empty.wacz", &empty.finish().unwrap().into_inner());
    let (code, text) = import(&archive, &[&cut, &empty, &good]);
    assert_eq!(code, Some(4), "{text}");
    assert!(
        text.contains("cut.wacz: unreadable, 1 problem\n") && text.contains("take it from another copy"),
        "{text}"
    );
    assert!(text.contains("empty.wacz: unreadable") && text.contains("no WARC file"), "{text}");
    assert!(text.contains("2 of 3 files are damaged or unreadable"), "{text}");
    assert!(text.contains("good.warc.gz: 6 captures"), "{text}");
    let (code, text) = import(&archive, &[&good]);
    assert_eq!(code, Some(0), "{text}");
    archive.verify();
}

#[test]
fn an_arc_with_blanks_in_its_lines_is_read() {
    let record = |url: &str, mime: &str| {
        let body = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<h1>Words</h1>";
        format!("{url} 192.0.2.1 20100101000000 {mime} {}\n{body}\n", body.len())
    };
    let about = "1 0 A test\nURL IP-address Archive-date Content-type Archive-length\n\n";
    let about = format!("filedesc://x.arc 0.0.0.0 20100101000000 text/plain {}\n{about}\n", about.len());
    let arc = [
        about,
        record("http://a.example/a b.html", "text/html"),
        record("http://a.example/c", "text/html; charset=utf-8"),
        record("http://a.example/d", "text/html"),
    ]
    .concat();
    let archive = Archive::new();
    let (code, text) = import(&archive, &[&beside(&archive, "old.arc", arc.as_bytes())]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("3 captures from 4 records"), "{text}");
    archive.verify();
}

#[test]
fn defects_of_imports_are_listed_separately_and_can_be_accepted() {
    let archive = Archive::new();
    let whole = std::fs::read(sample_file(archive.root.parent().unwrap(), "whole")).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    let (code, text) = import(&archive, &[&beside(&archive, "flipped.warc.gz", &flipped)]);
    assert_eq!(code, Some(4), "{text}");
    let verify = |args: &[&str]| {
        let run = archive.run(&[&["verify"], args].concat());
        (run.status.code(), String::from_utf8_lossy(&run.stdout).into_owned())
    };
    let (code, text) = verify(&[]);
    assert!(
        code == Some(4) && text.contains("imported with this defect: ") && text.contains("--accept-imported"),
        "{text}"
    );
    let (code, text) = verify(&["--accept-imported"]);
    assert!(code == Some(0) && text.contains("accepted"), "{text}");
    // A rebuild remembers the imports.
    assert_eq!(verify(&["--rebuild", "--accept-imported"]).0, Some(0));
    // Later damage to the file is the archive's own.
    let stored = archive.root.join("warc/flipped.warc.gz");
    let mut bytes = std::fs::read(&stored).unwrap();
    let near_end = bytes.len() - 30;
    bytes[near_end] ^= 0x10;
    std::fs::write(&stored, bytes).unwrap();
    let (code, text) = verify(&["--accept-imported"]);
    assert!(code == Some(4) && !text.contains("imported with this defect"), "{text}");
}

#[test]
fn an_uncaptured_image_has_a_box() {
    let page = "<title>City</title><h1>City</h1><p>Words of the city.</p>
        <a href=/map><img src=/map.png alt='Map of the city'></a>";
    let archive = imported(&[(0, "http://city.example/", "text/html", page.to_string())]);
    let blocks = archive.ok(&["lab", "segment", "http://city.example/@2026", "--format", "json"]);
    assert!(blocks.contains("Map of the city") && blocks.contains("http://city.example/map"), "{blocks}");
}
