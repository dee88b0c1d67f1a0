//! Coherent page views: each subresource is one that existed at that time, if the archive contains such a version.
//! Exports of one page contain all of its subresources.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use hyper::http::Request;
use perennial_archive::{Archive, ArchiveWriter};
use perennial_core::memento::coherence::{PartObservation, TemporalCoherence, closest, coherence_at};
use perennial_core::memento::date;
use perennial_core::rng::Rng;
use perennial_core::time::Timestamp;
use perennial_server::{Options, Origin, Origins, Server, router};

use crate::program::{folder, perennial};
use crate::server::append_status;

const PARTS: [&str; 3] =
    ["http://a.example/style.css", "http://a.example/logo.gif", "http://cdn.example/photo.gif"];
const PAGE: &str = "http://a.example/";

fn append(writer: &mut ArchiveWriter, url: &str, time: Timestamp, head: &str, body: &[u8]) {
    append_status(writer, url, time, "200 OK", head, body);
}

fn hour(n: i64) -> Timestamp {
    Timestamp::parse("2026-01-01").unwrap() + perennial_core::time::Span::from_hours(n)
}

/// Observations of a subresource that changes: its version and, for two of three, since when.
fn random_observations(part: u64, seed: u64) -> Vec<PartObservation> {
    let mut rng = Rng::from_parts(&[seed, part]);
    let mut observations: Vec<PartObservation> = Vec::new();
    let (mut time, mut content, mut since) = (0, 0, -5);
    while time < 60 {
        if rng.below(2) == 0 {
            since = time - rng.below(4) as i64;
            content = rng.below(3) as u64;
        }
        let says_date = rng.below(3) > 0;
        observations.push(PartObservation {
            time: hour(time),
            content,
            modified: says_date.then(|| hour(since)),
            is_held: true,
        });
        time += 1 + rng.below(8) as i64;
    }
    observations
}

fn archive_of(root: &Path, parts: &[Vec<PartObservation>]) -> Archive {
    let archive = Archive::create(root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    let page: String = PARTS.iter().map(|part| format!("<img src=\"{part}\">")).collect();
    for n in 0..20 {
        append(&mut writer, PAGE, hour(3 * n), "text/html", format!("<p>hour {n}</p>{page}").as_bytes());
    }
    for (url, observations) in PARTS.iter().zip(parts) {
        for observation in observations {
            let dated = observation.modified.map(|time| format!("\r\nLast-Modified: {}", date::write(time)));
            let head = format!("image/gif{}", dated.unwrap_or_default());
            append(
                &mut writer,
                url,
                observation.time,
                &head,
                format!("content {}", observation.content).as_bytes(),
            );
        }
    }
    writer.commit().unwrap();
    writer.close().unwrap();
    archive
}

fn server_of(archive: &Archive, closest: bool) -> Arc<Server> {
    let origins = Origins { main: "http://127.0.0.1:1".into(), replay: "http://127.0.0.1:2".into() };
    let options = Options { closest, ..Options::on_loopback(([127, 0, 0, 1], 1).into()) };
    Server::new(vec![Archive::open(archive.root()).unwrap()], options, origins).unwrap()
}

/// The coherence state that a server reports for a path.
fn state_at(server: &Server, path: &str, is_page: bool) -> String {
    let mut request = Request::builder().uri(path).header("host", "localhost");
    if is_page {
        request = request.header("sec-fetch-dest", "document");
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    let response = router::route(server, Origin::Main, &parts).map_err(|problem| problem.kind).unwrap();
    response.headers()["x-perennial-coherence"].to_str().unwrap().to_string()
}

fn class(state: TemporalCoherence) -> u8 {
    match state {
        TemporalCoherence::Coherent => 0,
        TemporalCoherence::PossiblyCoherent | TemporalCoherence::PossiblyViolative => 1,
        TemporalCoherence::Violating => 2,
    }
}

fn class_of(name: &str) -> u8 {
    match name {
        "coherent" => 0,
        "violating" => 2,
        _ => 1,
    }
}

/// Tries every version of every subresource. None is better than the one that the server shows. Choosing by time alone
/// is worse.
#[test]
fn no_view_is_worse_than_the_archive_must_show_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let (mut n_ours, mut n_closest, mut n_views) = (0, 0, 0);
    for seed in 0..3 {
        let (_dir, root) = folder();
        let parts: Vec<Vec<PartObservation>> = (0..3).map(|part| random_observations(part, seed)).collect();
        let archive = archive_of(&root, &parts);
        let (ours, by_distance) = (server_of(&archive, false), server_of(&archive, true));
        for n in 0..20 {
            let (at, digits) = (hour(3 * n), hour(3 * n).to_digits14());
            let (mut worst, mut worst_closest) = (0, 0);
            for (url, observations) in PARTS.iter().zip(&parts) {
                let best = (0..observations.len())
                    .map(|index| class(coherence_at(observations, index, at)))
                    .min()
                    .unwrap();
                let shown = state_at(&ours, &format!("/web/{digits}im_/{url}"), false);
                assert_eq!(class_of(&shown), best, "seed {seed}: {url} at {at} is {shown}");
                let near = closest(observations, at).unwrap().state;
                let shown = state_at(&by_distance, &format!("/web/{digits}im_/{url}"), false);
                assert_eq!(class_of(&shown), class(near), "seed {seed}: closest of {url} at {at}");
                (worst, worst_closest) = (best.max(worst), class(near).max(worst_closest));
            }
            let path = format!("/web/{digits}/{PAGE}");
            assert_eq!(class_of(&state_at(&ours, &path, true)), worst, "seed {seed} at {at}");
            assert_eq!(class_of(&state_at(&by_distance, &path, true)), worst_closest, "seed {seed} at {at}");
            n_ours += u32::from(worst == 2);
            n_closest += u32::from(worst_closest == 2);
            n_views += 1;
        }
    }
    assert_eq!((n_views, n_ours), (60, 0));
    assert!(n_closest > 0, "dates of modification should contradict the closest of some part");
}

#[test]
fn a_wacz_of_a_page_has_the_parts_of_all_its_versions() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    let page =
        |style: &str| format!("<link rel=stylesheet href=/{style}.css><p>words</p><a href=/other>other</a>");
    append(&mut writer, PAGE, hour(0), "text/html", page("old").as_bytes());
    append(&mut writer, PAGE, hour(9), "text/html", page("new").as_bytes());
    append(&mut writer, "http://a.example/old.css", hour(0), "text/css", b"p { background: url(dot.gif) }");
    append(&mut writer, "http://a.example/dot.gif", hour(0), "image/gif", b"GIF");
    append(
        &mut writer,
        "http://a.example/new.css",
        hour(9),
        "text/css",
        b"@import 'http://cdn.example/deep.css';",
    );
    append(&mut writer, "http://cdn.example/deep.css", hour(9), "text/css", b"p { color: red }");
    append(&mut writer, "http://a.example/other", hour(9), "text/html", page("foreign").as_bytes());
    append(&mut writer, "http://a.example/foreign.css", hour(9), "text/css", b"p { color: blue }");
    writer.commit().unwrap();
    writer.close().unwrap();
    let wacz = root.join("page.wacz");
    let output = wacz.to_str().unwrap();
    perennial(&root, ["export", "--format", "wacz", "--page", PAGE, "--output", output]).ok();
    let mut zip = zip::ZipArchive::new(std::fs::File::open(&wacz).unwrap()).unwrap();
    let mut index = String::new();
    let packed = zip.by_name("indexes/index.cdx.gz").unwrap();
    flate2::read::MultiGzDecoder::new(packed).read_to_string(&mut index).unwrap();
    let urls: Vec<&str> = index
        .lines()
        .filter_map(|line| {
            line.split("\"url\": \"").nth(1).or_else(|| line.split("\"url\":\"").nth(1))?.split('"').next()
        })
        .collect();
    let expected =
        [PAGE, PAGE, "http://a.example/dot.gif", "http://a.example/new.css", "http://a.example/old.css"];
    assert_eq!(urls, [&expected[..], &["http://cdn.example/deep.css"]].concat());
    // A WARC export contains what was requested.
    let warc = root.join("page.warc.gz");
    let output = warc.to_str().unwrap();
    let reported =
        perennial(&root, ["--json", "export", "--format", "warc", "--page", PAGE, "--output", output]);
    assert_eq!(reported.ok().json()["n_captures"], 2);
}
