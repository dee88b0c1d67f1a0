//! Documents other than HTML: their words are compared, and unreadable ones are not fetched forever.

use std::path::Path;
use std::process::Command;

use crate::crawled::Archive;
use crate::web::{Reply, Web, WebRequest, html, status};

fn of_type(mime: &str, body: Vec<u8>) -> Reply {
    Reply::Page(200, vec![("Content-Type", mime.to_string())], body)
}

/// A PDF with one compressed page of these lines. `made` is part of its metadata, which is invisible.
fn pdf(lines: &[&str], made: &str) -> Vec<u8> {
    let shown: String = lines.iter().map(|line| format!("({line}) Tj 0 -14 Td ")).collect();
    let content = zlib(format!("BT /F1 12 Tf 72 720 Td {shown} ET").as_bytes());
    let mut file = b"%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n\
        2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj\n\
        3 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >> endobj\n\
        5 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >> endobj\n"
        .to_vec();
    file.extend(format!("6 0 obj << /Title (Speed limits) /CreationDate ({made}) >> endobj\n").into_bytes());
    file.extend(
        format!("4 0 obj << /Length {} /Filter /FlateDecode >> stream\n", content.len()).into_bytes(),
    );
    file.extend(&content);
    file.extend(b"\nendstream endobj\ntrailer << /Root 1 0 R /Info 6 0 R >>\n%%EOF\n");
    file
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One document of each format, with a speed limit in km/h.
fn document(path: &str, limit: usize, n: usize) -> Option<(&'static str, Vec<u8>)> {
    let text = |text: String| text.into_bytes();
    Some(match path {
        "/limits.pdf" => {
            let line = format!("The limit on the ring road is {limit} km/h from Monday on.");
            (
                "application/pdf",
                pdf(&["Speed limits", &line, "All other roads stay as they are."], &n.to_string()),
            )
        }
        "/limits.json" => (
            "application/json; charset=utf-8",
            text(format!(
                "{{\"title\":\"Speed limits\",\"roads\":[{{\"name\":\"Ring\",\"limit\":\"{limit} km/h on the ring road\"}},\
                {{\"name\":\"Quay\",\"limit\":\"30 km/h along the quay\"}}]}}"
            )),
        ),
        "/limits.csv" => (
            "text/csv",
            text(format!(
                "road,limit,since\nRing road,{limit} km/h for all cars,Monday\nQuay,30 km/h for all cars,Sunday\n"
            )),
        ),
        "/limits.txt" => (
            "text/plain",
            text(format!(
                "Speed limits\n\nThe limit on the ring road\nis {limit} km/h from Monday on.\n\nAll other roads stay as they are.\n"
            )),
        ),
        "/limits.rss" => (
            "application/rss+xml",
            text(format!(
                "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>Speed limits</title>\
                <lastBuildDate>Thu, 01 Jan 2026 10:{:02}:00 GMT</lastBuildDate>\
                <item><title>Ring road</title><link>http://city.example/ring</link>\
                <description>&lt;p&gt;The limit on the ring road is {limit} km/h from Monday on.&lt;/p&gt;</description></item>\
                <item><title>Quay</title><link>http://city.example/quay</link><description>As it was.</description></item>\
                </channel></rss>",
                n % 60
            )),
        ),
        _ => return None,
    })
}

const PATHS: [&str; 5] = ["/limits.pdf", "/limits.json", "/limits.csv", "/limits.txt", "/limits.rss"];

fn home() -> Reply {
    let links: String = PATHS.iter().map(|path| format!("<a href={path}>limits</a> ")).collect();
    html(&format!("<h1>Speed limits</h1>{links}<a href=/cam.png>camera</a>"))
}

/// Each document changes its speed limit once. The webcam image changes on every observation.
fn site(request: &WebRequest) -> Reply {
    let n = request.n_before;
    match request.path.as_str() {
        "/" => home(),
        "/cam.png" => of_type("image/png", format!("\u{89}PNG picture {n}").into_bytes()),
        path => match document(path, if n < 4 { 50 } else { 60 }, n) {
            Some((mime, body)) => of_type(mime, body),
            None => status(404),
        },
    }
}

fn added(web: &Web) -> Archive {
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive
}

const FIRST: i64 = 0;
const NOISE: i64 = 2;
const UNJUDGED: i64 = 4;

#[test]
fn document_changes_show_their_words() {
    let web = Web::serve(site);
    let archive = added(&web);
    archive.lapse("6h", "3d");
    for path in PATHS {
        let text = archive.ok(&["changes", &web.url(path)]);
        assert!(text.contains("[50 => 60] km/h"), "{path}: {text}");
        let changes = archive.json(&["changes", &web.url(path)]);
        let importance = |change: &serde_json::Value| change["importance"].as_f64().unwrap();
        let (changes, little): (Vec<_>, Vec<_>) = changes
            .as_array()
            .unwrap()
            .iter()
            .filter(|change| change["noise"] != true)
            .partition(|change| importance(change) > 0.02);
        assert_eq!(changes.len(), 1, "{path}: {changes:?}");
        assert!(little.len() <= 1, "only the first sight of a stamp: {path}: {little:?}");
        assert_eq!(changes[0]["kind"], "edited", "{path}");
        assert!(importance(changes[0]) < 0.9, "{path}: {changes:?}");
        if !path.ends_with(".csv") {
            assert_eq!(changes[0]["title"], "Speed limits", "{path}");
        }
    }
    let before = archive.json(&["changes"]);
    archive.ok(&["verify", "--rebuild"]);
    archive.ok(&["analyse"]);
    assert_eq!(archive.json(&["changes"]), before, "the archive lists all captures again");
}

#[test]
fn archived_versions_and_files_of_documents_are_compared() {
    let web = Web::serve(site);
    let archive = added(&web);
    archive.lapse("6h", "2d");
    let dir = tempfile::tempdir().unwrap();
    for path in PATHS {
        let (early, late) = (format!("{}@20260101", web.url(path)), format!("{}@", web.url(path)));
        let text = archive.ok(&["diff", &early, &late]);
        assert!(text.contains("[50 => 60] km/h"), "{path}: {text}");
        let shown = archive.ok(&["lab", "segment", &late]);
        assert!(shown.contains("60 km/h"), "{path}: {shown}");
        let file = |limit: usize| {
            let name = dir.path().join(format!("{limit}-{}", &path[1..]));
            std::fs::write(&name, document(path, limit, limit).unwrap().1).unwrap();
            name
        };
        let text = diff_of_files(&file(50), &file(60));
        assert!(text.contains("[50 => 60] km/h"), "{path}: {text}");
    }
}

fn diff_of_files(before: &Path, after: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perennial"));
    let output = command.arg("diff").args([before, after]).env_remove("PERENNIAL_ARCHIVE").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// News pages that change twice a day, and documents that the server generates for each request. Their words never
/// change, or they have none.
fn busy_site(request: &WebRequest) -> Reply {
    let path = request.path.as_str();
    let time = request.field("perennial-time").unwrap_or_default();
    let part =
        |range: std::ops::Range<usize>| time.get(range).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let half_day: usize = 2 * part(8..10) + part(11..13) / 12;
    match path {
        "/" => {
            let links: String = (0..N_NEWS).map(|n| format!("<a href=/news/{n}>news</a> ")).collect();
            html(&format!(
                "<h1>News</h1>{links}<a href=/cam.png>camera</a><a href=/limits.pdf>limits</a><a href=/limits.rss>feed</a>"
            ))
        }
        "/cam.png" => site(request),
        _ if path.starts_with("/news/") => {
            let word = |n: usize| WORDS[(half_day * n + n) % WORDS.len()];
            let story = format!("The {} of the {} met the {} of the {}.", word(1), word(3), word(5), word(7));
            html(&format!("<h1>News of {path}</h1><p>{story}</p><p>Read more of it tomorrow.</p>"))
        }
        _ => document(path, 50, request.n_before)
            .map_or_else(|| status(404), |(mime, body)| of_type(mime, body)),
    }
}

const N_NEWS: usize = 12;
const WORDS: [&str; 13] = [
    "mayor",
    "council",
    "river",
    "school",
    "harbour",
    "market",
    "theatre",
    "bridge",
    "library",
    "garden",
    "museum",
    "station",
    "orchestra",
];

#[test]
fn unreadable_documents_are_not_fetched_forever() {
    let web = Web::serve(busy_site);
    let archive = added(&web);
    // The feed is a document here. A sweep of the site would include the unreadable documents, so only single visits
    // are counted.
    archive.append_settings("[crawl]\nfeeds = false\ngoal = \"importance\"\n");
    let clock = ["run", "--no-serve", "--time-lapse", "max", "--start", "2026-01-01", "--delay", "0"];
    archive.ended(&[&clock[..], &["--budget", "3/h", "--time-limit", "14d"]].concat(), 15);
    let camera = archive.seen(&web.url("/cam.png"));
    assert_eq!(camera[0], FIRST);
    assert_eq!(camera.iter().filter(|&&seen| seen == UNJUDGED).count(), 4, "{camera:?}");
    assert_eq!(camera.last(), Some(&NOISE), "{camera:?}");
    let requests = web.requests();
    // In the second week, when the crawler has learned the site.
    let n_late = |path: &str| {
        let is_late =
            |request: &&WebRequest| request.field("perennial-time").is_some_and(|time| time >= "2026-01-08");
        requests.iter().filter(is_late).filter(|request| request.path.starts_with(path)).count()
    };
    for path in ["/cam.png", "/limits.pdf", "/limits.rss"] {
        let (n_requests, n_news) = (n_late(path), n_late("/news/") / N_NEWS);
        println!("{path}: {n_requests} ({} in all), a page of news: {n_news}", web.n_requests(path));
        assert!(5 * n_requests < 3 * n_news, "{path}: {n_requests}, a page of news: {n_news}");
        assert!(web.n_requests(path) >= 2);
    }
}

#[test]
fn segment_rejects_drawings_of_documents() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("limits.csv");
    std::fs::write(&file, document("/limits.csv", 50, 0).unwrap().1).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_perennial"));
    let output = command.args(["lab", "segment"]).arg(&file).args(["--format", "svg"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("--format vixml"), "{said}");
}
