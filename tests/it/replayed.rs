//! Other tools replay every capture as the page that was valid then, from the archive's index and from exports.
//!
//! Our own player follows an index as pywb, ReplayWeb.page and OpenWayback do. With `interop`, the tests compare pywb
//! itself with the same truth: the server's own log.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use perennial_core::time::Timestamp;
use perennial_warc::cdxj::CdxjLine;
use perennial_warc::{
    Compression, NewRecord, RecordHeader, RecordIds, RecordType, RevisitProfile, WarcItem, WarcReader,
    WarcWriter, sha1_label,
};

use crate::crawled::Archive;
use crate::interop::tool;
use crate::program::{folder, perennial, ran};
use crate::web::{Reply, Web, WebRequest, html, status};

/// The fields of every page of the site below.
fn page_fields(body: &str) -> Vec<(&'static str, String)> {
    vec![
        ("Content-Type", "text/html; charset=utf-8".into()),
        ("ETag", format!("\"{}\"", sha1_label(body.as_bytes()))),
    ]
}

/// The hours since the start of the time-lapse.
fn hour_of(request: &WebRequest) -> i64 {
    let now = request.field("perennial-time").and_then(|time| Timestamp::parse(time).ok());
    let start = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    now.map_or(0, |now| (now.as_secs() - start.as_secs()) / 3600)
}

/// The site's body at an hour. The story is rewritten every nine hours, and the weather in its margin changes every
/// three. Two URLs have the same page.
fn shown_at(path: &str, hour: i64) -> Option<String> {
    const MARGIN: [&str; 7] = ["sunny", "cloudy", "windy", "rainy", "foggy", "frosty", "mild"];
    let edition = hour / 9;
    let weather = MARGIN[(hour / 3) as usize % MARGIN.len()];
    let line =
        |n: usize| format!("<p>Edition {edition} reports in line {n}: {}</p>", "word of it ".repeat(20));
    let story: String = (0..12).map(line).collect();
    match path {
        "/" => Some(format!(
            "<main><h1>The story of edition {edition}</h1>{story}</main><footer><p>Outside it is {weather}</p>
             <a href=/one>one</a> <a href=/two>two</a></footer>"
        )),
        "/one" | "/two" => Some("<p>The very same words are to be read at two addresses</p>".repeat(9)),
        _ => None,
    }
}

/// The site, with an ETag for each version and 304 for an unchanged page.
pub(crate) fn site() -> Web {
    Web::serve(|request| match shown_at(&request.path, hour_of(request)) {
        Some(body) => {
            let fields = page_fields(&body);
            match request.field("if-none-match") == Some(fields[1].1.as_str()) {
                true => Reply::Page(304, fields, Vec::new()),
                false => Reply::Page(200, fields, body.into_bytes()),
            }
        }
        None => status(404),
    })
}

/// The site, crawled every hour for a day and a half.
pub(crate) fn crawled(keep: &str) -> (Web, Archive) {
    let (web, archive) = (site(), Archive::new());
    archive.ok(&["add", &web.url("/"), "--allow-private", "--keep", keep]);
    archive.lapse("1h", "36h");
    (web, archive)
}

/// The words of each page at each time that the crawler requested it: those of the story and, if wanted, of the
/// weather.
pub(crate) fn truth(web: &Web, with_weather: bool) -> BTreeMap<(String, String), Vec<String>> {
    let words = |path: &str, hour: i64| {
        let body = shown_at(path, hour)?;
        let text = |from: &str, n: usize| body.find(from).map(|at| body[at..at + n].to_string());
        let weather = text("Outside it is ", 18).filter(|_| with_weather);
        Some([text("Edition ", 17), text("The very same words", 30), weather].into_iter().flatten().collect())
    };
    let seen = |request: WebRequest| {
        let time = Timestamp::parse(request.field("perennial-time")?).ok()?.to_digits14();
        Some(((web.url(&request.path), time), words(&request.path, hour_of(&request))?))
    };
    web.requests().into_iter().filter_map(seen).collect()
}

#[derive(Debug)]
pub(crate) struct View {
    pub(crate) url: String,
    pub(crate) time: String,
    pub(crate) status: u16,
    pub(crate) text: String,
}

/// Asserts that the views contain each page as the server sent it then.
pub(crate) fn assert_shown_as_they_were(views: &[View], truth: &BTreeMap<(String, String), Vec<String>>) {
    let seen: Vec<_> = views.iter().map(|view| (view.url.clone(), view.time.clone())).collect();
    let missing: Vec<_> = truth.keys().filter(|wanted| !seen.contains(wanted)).collect();
    assert!(missing.is_empty(), "no view of {missing:?}");
    assert!(truth.len() >= 90, "{}", truth.len());
    for view in views {
        let Some(words) = truth.get(&(view.url.clone(), view.time.clone())) else { continue };
        let is_right = view.status == 200 && words.iter().all(|words| view.text.contains(words));
        assert!(is_right, "{words:?} were to be seen, and not {view:?}");
    }
}

/// A player that follows an index.
struct Player {
    lines: Vec<CdxjLine>,
    folder: PathBuf,
    /// ReplayWeb.page shows only records with exactly the URL and time of the line.
    is_strict: bool,
}

impl Player {
    fn new(index: &str, folder: &Path, is_strict: bool) -> Player {
        let lines: Vec<_> = index.lines().map(|line| CdxjLine::parse(line).unwrap()).collect();
        Player { lines, folder: folder.to_path_buf(), is_strict }
    }

    fn record(&self, line: &CdxjLine) -> (RecordHeader, u16, String) {
        let mut file = fs::File::open(self.folder.join(line.filename.as_ref().unwrap())).unwrap();
        file.seek(SeekFrom::Start(line.offset.unwrap())).unwrap();
        let mut reader = WarcReader::new(file.take(line.length.unwrap()));
        let Some(WarcItem::Record(mut record)) = reader.next_item().unwrap() else {
            panic!("no record: {line}")
        };
        let header = record.header().clone();
        let status = record.http_head().unwrap().and_then(|head| head.status()).unwrap_or(0);
        let mut text = Vec::new();
        record.read_to_end(&mut text).unwrap();
        (header, status, String::from_utf8_lossy(&text).into_owned())
    }

    fn view(&self, line: &CdxjLine) -> View {
        let (header, status, mut text) = self.record(line);
        if self.is_strict {
            let time = header.date().unwrap().to_digits14();
            assert_eq!((header.target_uri(), time), (Some(line.url.as_str()), line.timestamp.clone()));
        }
        assert_eq!(header.payload_digest(), line.digest.as_deref());
        assert_eq!(line.status.as_deref(), Some(status.to_string().as_str()), "{line}");
        match header.record_type() {
            RecordType::Response => assert!(!line.is_revisit()),
            RecordType::Revisit => {
                assert!(line.is_revisit());
                text = self.original(&header, line);
            }
            other => panic!("{other:?} shown as a page: {line}"),
        }
        View { url: line.url.clone(), time: line.timestamp.clone(), status, text }
    }

    /// The record that a revisit refers to.
    fn original(&self, revisit: &RecordHeader, line: &CdxjLine) -> String {
        let (url, time) = (revisit.refers_to_target_uri().unwrap(), revisit.refers_to_date().unwrap());
        let is_original = |other: &&CdxjLine| {
            !other.is_revisit()
                && other.url == url
                && other.digest == line.digest
                && other.date() == Some(time)
        };
        let original = self.lines.iter().find(is_original).unwrap_or_else(|| panic!("no original of {line}"));
        self.record(original).2
    }

    fn views(&self) -> Vec<View> {
        let is_page =
            |line: &&CdxjLine| line.url.starts_with("http") && line.status.as_deref() != Some("404");
        self.lines.iter().filter(is_page).map(|line| self.view(line)).collect()
    }
}

fn exported(archive: &Archive, format: &str) -> PathBuf {
    let path = archive.path().join(format!("export.{format}"));
    archive.ok(&["export", "--format", format, "-o", path.to_str().unwrap()]);
    path
}

/// The index of a WACZ, and the folder of its WARC file.
pub(crate) fn unpacked(wacz: &Path) -> (String, PathBuf) {
    let mut zip = zip::ZipArchive::new(fs::File::open(wacz).unwrap()).unwrap();
    let folder = wacz.with_extension("unpacked");
    zip.extract(&folder).unwrap();
    let packed = fs::File::open(folder.join("indexes/index.cdx.gz")).unwrap();
    let mut index = String::new();
    flate2::read::MultiGzDecoder::new(packed).read_to_string(&mut index).unwrap();
    (index, folder.join("archive"))
}

#[test]
fn the_index_shows_every_capture_as_the_page_that_was_valid_then() {
    for keep in ["all", "important"] {
        let (web, archive) = crawled(keep);
        let index = fs::read_to_string(exported(&archive, "cdxj")).unwrap();
        let views = Player::new(&index, &archive.path().join("warc"), false).views();
        assert_shown_as_they_were(&views, &truth(&web, keep == "all"));
        let runs = fs::read_dir(archive.path().join("index")).unwrap();
        let mut lines: Vec<String> = runs
            .flat_map(|run| {
                let text = fs::read_to_string(run.unwrap().path()).unwrap();
                text.lines().map(str::to_string).collect::<Vec<_>>()
            })
            .collect();
        lines.sort_unstable();
        assert_eq!(lines, index.lines().collect::<Vec<_>>(), "the live index has the same lines");
        archive.verify();
    }
}

#[test]
fn an_export_shows_every_capture_as_the_page_that_was_valid_then() {
    for keep in ["all", "important"] {
        let (web, archive) = crawled(keep);
        let (index, folder) = unpacked(&exported(&archive, "wacz"));
        assert_shown_as_they_were(&Player::new(&index, &folder, true).views(), &truth(&web, keep == "all"));
    }
}

#[test]
fn a_part_takes_along_what_its_captures_show() {
    let (web, archive) = crawled("important");
    let part = archive.path().join("part.wacz");
    let path = part.to_str().unwrap();
    archive.ok(&["export", "--format", "wacz", "--since", "2026-01-01T16:30:00Z", "-o", path]);
    let (index, folder) = unpacked(&part);
    let views = Player::new(&index, &folder, true).views();
    let truth: BTreeMap<_, _> =
        truth(&web, false).into_iter().filter(|((_, time), _)| time.as_str() > "20260101163000").collect();
    assert!(truth.len() > 40 && views.len() > truth.len(), "{} of {}", views.len(), truth.len());
    for view in &views {
        if let Some(words) = truth.get(&(view.url.clone(), view.time.clone())) {
            assert!(words.iter().all(|words| view.text.contains(words)), "{view:?}");
        }
    }
}

#[test]
fn an_export_is_imported_as_the_captures_that_it_was_made_from() {
    let (_web, archive) = crawled("important");
    let captures = |archive: &Path| {
        let info = perennial(archive, ["status", "--json"]).ok().json();
        ["n_captures", "n_revisits", "n_left_out", "n_versions", "n_unfounded"].map(|name| info[name].clone())
    };
    let (_dir, other) = folder();
    let wacz = exported(&archive, "wacz");
    perennial(&other, ["import".as_ref(), "--create".as_ref(), wacz.as_os_str()]).ok();
    assert_eq!(captures(&other), captures(archive.path()));
    perennial(&other, ["verify"]).ok();
}

#[test]
fn a_page_that_never_changes_costs_one_index_lookup_per_request() {
    let web = Web::serve(|request| match (request.path.as_str(), request.field("if-none-match")) {
        ("/", Some(_)) => Reply::Page(304, vec![("ETag", "\"1\"".into())], Vec::new()),
        ("/", None) => {
            let Reply::Page(code, mut fields, body) =
                html("<p>For ever the same page with the same words</p>")
            else {
                unreachable!()
            };
            fields.push(("ETag", "\"1\"".into()));
            Reply::Page(code, fields, body)
        }
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.lapse("1h", "200h");
    let index = fs::read_to_string(exported(&archive, "cdxj")).unwrap();
    let lines: Vec<_> = index.lines().map(|line| CdxjLine::parse(line).unwrap()).collect();
    let page: Vec<_> = lines.iter().filter(|line| line.url == web.url("/")).collect();
    assert!(page.len() > 190, "{}", page.len());
    // Each line names the one record with the payload, or a revisit that refers to it.
    assert!(page.iter().all(|line| line.status.as_deref() == Some("200")));
    assert!(page.iter().all(|line| line.digest == page[0].digest));
    archive.verify();
}

/// A page and a 304 that confirms it, as a different crawler writes them, each in a separate file.
fn page_and_304(dir: &Path) -> [PathBuf; 2] {
    let (url, head) = ("http://elsewhere.example/", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
    let day = |n: u32| Timestamp::parse(&format!("2024-03-{n:02}T08:00:00Z")).unwrap();
    let body = b"<p>The page that is confirmed";
    let mut ids = RecordIds::new(3);
    let page = NewRecord::response(ids.next_id(), day(1), url, head, body);
    let (profile, digest) = (RevisitProfile::ServerNotModified, sha1_label(body));
    let unchanged = b"HTTP/1.1 304 Not Modified\r\n\r\n";
    let confirmed = NewRecord::revisit(ids.next_id(), day(2), url, profile, unchanged, Some(&digest));
    let written = |name: &str, record: &NewRecord<'_>| {
        let mut out = WarcWriter::new(Vec::new(), 0, Compression::None).unwrap();
        out.write(record).unwrap();
        let path = dir.join(name);
        fs::write(&path, out.into_inner()).unwrap();
        path
    };
    [written("page.warc", &page), written("confirmed.warc", &confirmed.refers_to(url, day(1)))]
}

#[test]
fn a_304_that_is_imported_before_its_page_is_shown_as_soon_as_that_is_there() {
    let archive = Archive::new();
    let [page, confirmed] = page_and_304(archive.path());
    for file in [confirmed, page] {
        archive.ok(&["import", file.to_str().unwrap()]);
        archive.verify();
    }
    let index = fs::read_to_string(exported(&archive, "cdxj")).unwrap();
    let views = Player::new(&index, &archive.path().join("warc"), false).views();
    assert_eq!(views.len(), 2);
    assert!(views.iter().all(|view| view.text.contains("that is confirmed")), "{views:?}");
}

#[test]
fn verify_finds_a_line_that_names_no_record() {
    let (_web, archive) = crawled("all");
    let run = fs::read_dir(archive.path().join("index")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&run).unwrap();
    let line = text.lines().find(|line| line.contains("\"shows\"")).unwrap();
    let offset = CdxjLine::parse(line).unwrap().offset.unwrap().to_string();
    let (rest, last) = offset.split_at(offset.len() - 1);
    let wrong = format!("\"{rest}{}\"", if last == "7" { 3 } else { 7 });
    let broken = text.replace(line, &line.replacen(&format!("\"{offset}\""), &wrong, 1));
    assert!(broken != text && broken.len() == text.len(), "{line}");
    fs::write(&run, broken).unwrap();
    let verified = perennial(archive.path(), ["verify"]);
    assert!(
        verified.code != 0 && verified.stdout.contains("names a record that is not a capture"),
        "{}",
        verified.stdout
    );
}

/// The views of every page in an index, as pywb shows them.
fn views_in_pywb(index: &Path, folder: &Path) -> Vec<View> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/replay_in_pywb.py");
    let shown = ran(tool("python3").arg(script).arg(index).arg(folder)).ok();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_string();
    let view = |line: &str| {
        let view: serde_json::Value = serde_json::from_str(line).unwrap();
        let status = view["status"].as_u64().unwrap() as u16;
        View { url: text(&view["url"]), time: text(&view["time"]), status, text: text(&view["text"]) }
    };
    shown.stdout.lines().map(view).collect()
}

#[test]
#[cfg_attr(not(feature = "interop"), ignore = "needs Python tools: run with --features interop")]
fn pywb_shows_every_capture_as_the_page_that_was_valid_then() {
    for keep in ["all", "important"] {
        let (web, archive) = crawled(keep);
        let truth = truth(&web, keep == "all");
        let live = exported(&archive, "cdxj");
        assert_shown_as_they_were(&views_in_pywb(&live, &archive.path().join("warc")), &truth);
        let (index, folder) = unpacked(&exported(&archive, "wacz"));
        let inside = archive.path().join("inside.cdxj");
        fs::write(&inside, index).unwrap();
        assert_shown_as_they_were(&views_in_pywb(&inside, &folder), &truth);
    }
}

#[test]
#[cfg_attr(not(feature = "interop"), ignore = "needs Python tools: run with --features interop")]
fn pywb_shows_the_same_with_an_index_of_another_tool() {
    let (web, archive) = crawled("important");
    let folder = archive.path().join("export");
    fs::create_dir(&folder).unwrap();
    let warc = folder.join("export.warc.gz");
    archive.ok(&["export", "--format", "warc", "-o", warc.to_str().unwrap()]);
    let theirs = ran(tool("cdxj-indexer").arg("--sort").arg(&warc)).ok();
    let index = archive.path().join("theirs.cdxj");
    fs::write(&index, theirs.stdout).unwrap();
    assert_shown_as_they_were(&views_in_pywb(&index, &folder), &truth(&web, false));
}
