//! With `keep = "important"`, the archive stores unimportant versions as deltas. Everything else remains the same.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use perennial_core::time::{Span, Timestamp};
use perennial_warc::{Compression, NewRecord, RecordIds, WarcItem, WarcReader, WarcWriter};

use crate::crawled::Archive;
use crate::program::{folder, perennial};
use crate::web::{Reply, Web, html, status};

/// An article that is rewritten at every sixth request. A word in its margin changes at every request.
fn article() -> Web {
    const MARGIN: [&str; 7] = ["sunny", "cloudy", "windy", "rainy", "foggy", "frosty", "mild"];
    Web::serve(|request| match request.path.as_str() {
        "/" => {
            let edition = request.n_before / 6;
            let story: String = (0..12)
                .map(|line| {
                    format!(
                        "<p>Edition {edition} reports in line {line}: {}</p>",
                        "word of it ".repeat(20 + edition)
                    )
                })
                .collect();
            let weather = MARGIN[request.n_before % MARGIN.len()];
            html(&format!(
                "<main><h1>The story of edition {edition}</h1>{story}</main><footer><p>Outside it is {weather}</p></footer>"
            ))
        }
        _ => status(404),
    })
}

fn crawled(keep: &str) -> (Web, Archive) {
    let (web, archive) = (article(), Archive::new());
    archive.ok(&["add", &web.url("/"), "--allow-private", "--keep", keep]);
    archive.lapse("1h", "24h");
    (web, archive)
}

fn stored(archive: &Archive, how: &str) -> usize {
    archive.log().iter().filter(|line| line["kind"] == "page" && line["stored"] == how).count()
}

#[test]
fn unimportant_versions_are_kept_as_what_changed() {
    let (_web, archive) = crawled("important");
    let (whole, deltas) = (stored(&archive, "response"), stored(&archive, "delta"));
    assert!(whole >= 4, "every edition is stored whole, {whole} versions were");
    assert!(deltas >= 12, "most weather is left out, {deltas} versions were");
    let info = perennial(archive.path(), ["status", "--json"]).ok().json();
    assert_eq!(info["n_left_out"], deltas);
    archive.verify();

    let changes = |archive: &Archive| perennial(archive.path(), ["changes", "--json"]).ok().json();
    let before = changes(&archive);
    assert!(before.as_array().unwrap().len() >= 16, "{before}");
    std::fs::remove_file(archive.path().join("state.db")).unwrap();
    perennial(archive.path(), ["verify", "--rebuild"]).ok();
    perennial(archive.path(), ["analyse"]).ok();
    assert_eq!(changes(&archive), before, "what was left out is learned again from its deltas");
}

#[test]
fn all_versions_are_whole_by_default() {
    let (_web, archive) = crawled("all");
    assert_eq!(stored(&archive, "delta"), 0);
    assert!(stored(&archive, "response") >= 20);
}

#[test]
fn an_import_learns_from_the_history_of_a_collection() {
    let (web, collected) = crawled("all");
    let (_dir, archive) = folder();
    let warcs: Vec<_> =
        std::fs::read_dir(collected.path().join("warc")).unwrap().map(|file| file.unwrap().path()).collect();
    let mut args = vec!["--json".into(), "import".into(), "--create".into()];
    args.extend(warcs.into_iter().map(std::path::PathBuf::into_os_string));
    let report = perennial(&archive, args).ok().json();
    assert!(report["learned"]["n_captures"].as_u64().unwrap() >= 20, "{report}");
    // First captures are not changes.
    assert!(report["learned"]["n_changed"].as_u64().unwrap() >= 3, "{report}");
    let patterns = perennial(&archive, ["--json", "plan", "patterns"]).ok().json();
    let page = patterns.as_array().unwrap().iter().find(|page| page["url"] == web.url("/")).unwrap();
    assert!(page["n_observations"].as_u64().unwrap() >= 20, "{page}");
    assert_eq!(page["n_not_analysed"], 0);
    assert!(page["changes_per_day"].as_f64().unwrap() > 3.0, "{page}");
}

/// The names and values of a record's header fields.
type Fields = Vec<(String, String)>;

/// Copies the records of the archive's one WARC file to a file outside the archive. `change` edits the header fields or
/// drops the record.
fn rewritten(archive: &Archive, name: &str, change: &dyn Fn(&mut Fields) -> bool) -> PathBuf {
    let file = fs::read_dir(archive.path().join("warc")).unwrap().next().unwrap().unwrap().path();
    let mut reader = WarcReader::new(fs::File::open(file).unwrap());
    let mut out = Vec::new();
    while let Some(item) = reader.next_item().unwrap() {
        let WarcItem::Record(mut record) = item else { panic!("damage") };
        let mut fields: Vec<(String, String)> =
            record.header().fields().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let mut block = Vec::new();
        record.read_to_end(&mut block).unwrap();
        if change(&mut fields) {
            out.extend_from_slice(b"WARC/1.1\r\n");
            fields.iter().for_each(|(name, value)| out.extend(format!("{name}: {value}\r\n").bytes()));
            out.extend([b"\r\n".as_slice(), &block, b"\r\n\r\n"].concat());
        }
    }
    let path = archive.path().join(name);
    fs::write(&path, out).unwrap();
    path
}

const BASE: &str = "Perennial-Left-Out-Base";

fn is_delta(fields: &[(String, String)]) -> bool {
    fields.iter().any(|(name, _)| name == "Perennial-Left-Out-Digest")
}

/// Imports files one after the other. Returns the number of captures that could not be read, and the changes.
fn learned_from(files: &[&Path]) -> (u64, Vec<(String, f64)>) {
    let (_dir, archive) = folder();
    perennial(&archive, ["init"]).ok();
    for file in files {
        perennial(&archive, ["import".as_ref(), "--no-analysis".as_ref(), file.as_os_str()]).ok();
    }
    let report = perennial(&archive, ["analyse", "--json"]).ok().json();
    (report["n_failed"].as_u64().unwrap(), changes_of(&archive))
}

/// The time and importance of each change.
fn changes_of(archive: &Path) -> Vec<(String, f64)> {
    let changes = perennial(archive, ["changes", "--json"]).ok().json();
    let changes = changes.as_array().unwrap().iter();
    let change = |change: &serde_json::Value| {
        (change["after"].as_str().unwrap().to_string(), change["importance"].as_f64().unwrap())
    };
    // Captures that could not be compared have no operations.
    changes.filter(|change| change["operations"] != serde_json::json!([])).map(change).collect()
}

#[test]
fn a_delta_is_applied_only_to_the_version_that_it_was_made_from() {
    let (_web, archive) = crawled("important");
    let changes = changes_of(archive.path());
    let whole = rewritten(&archive, "whole.warc", &|_| true);
    assert_eq!(learned_from(&[&whole]), (0, changes.clone()));

    let of_another = rewritten(&archive, "of-another.warc", &|fields| {
        let is_delta = is_delta(fields);
        let base = fields.iter_mut().find(|(name, _)| name == BASE);
        assert_eq!(base.is_some(), is_delta, "every delta names its versions");
        base.into_iter().for_each(|(_, value)| *value = "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".into());
        true
    });
    let n_deltas = stored(&archive, "delta") as u64;
    let (n_failed, without_deltas) = learned_from(&[&of_another]);
    // A delta with the same payload as the observation before it does not depend on an earlier record.
    assert!(n_failed > n_deltas / 2 && n_failed <= n_deltas, "{n_failed} of {n_deltas}");
    assert!(without_deltas.len() < changes.len());
}

#[test]
fn a_delta_that_does_not_say_what_it_was_made_from_is_applied_where_that_is_sure() {
    let (web, archive) = crawled("important");
    let changes = changes_of(archive.path());
    let before_bases = rewritten(&archive, "before-bases.warc", &|fields| {
        if is_delta(fields) {
            fields.retain(|(name, _)| name != BASE && !name.starts_with("WARC-Refers-To"));
            // Earlier deltas also had the page's own URL.
            let uri = fields.iter_mut().find(|(name, _)| name == "WARC-Target-URI").unwrap();
            uri.1 = uri.1.strip_prefix("urn:videlta:").unwrap().to_string();
        }
        true
    });
    assert_eq!(learned_from(&[&before_bases]), (0, changes));
    // A capture of the same page from another source. The following delta may or may not be based on it.
    let mut ids = RecordIds::new(9);
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::None).unwrap();
    let log = archive.log();
    let delta = log.iter().rfind(|line| line["stored"] == "delta").unwrap();
    let time = Timestamp::parse(delta["time"].as_str().unwrap()).unwrap() - Span::from_secs(1800);
    let url = web.url("/");
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    out.write(&NewRecord::response(ids.next_id(), time, &url, head, b"<p>from elsewhere")).unwrap();
    let elsewhere = archive.path().join("elsewhere.warc");
    fs::write(&elsewhere, out.into_inner()).unwrap();
    let (n_failed, _) = learned_from(&[&before_bases, &elsewhere]);
    assert!(n_failed > 0);
}

/// A page whose margin changes temporarily and then returns to its earlier text. Equal text has an equal ETag.
fn with_validators(margin: fn(usize) -> usize) -> Web {
    Web::serve(move |request| match request.path.as_str() {
        "/" => {
            let story = "<p>A long story that stays as it is, line by line and word by word</p>".repeat(30);
            // The page is rewritten at its seventh and eighth requests, so there is a mean importance for comparison.
            let edition = usize::from(request.n_before >= 6) + usize::from(request.n_before >= 7);
            let margin = margin(request.n_before);
            let body = format!(
                "<main><h1>Edition {edition}</h1>{}</main><footer><p>Outside it is the {margin}. day</p></footer>",
                story.replace("story", ["story", "tale", "report"][edition])
            );
            let etag = format!("\"{edition}-{margin}\"");
            match request.field("if-none-match") == Some(etag.as_str()) {
                true => Reply::Page(304, vec![("ETag", etag)], Vec::new()),
                false => {
                    let fields = vec![("Content-Type", "text/html".into()), ("ETag", etag)];
                    Reply::Page(200, fields, body.into_bytes())
                }
            }
        }
        _ => status(404),
    })
}

fn kept(web: &Web, time: &str) -> Archive {
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--keep", "important"]);
    archive.lapse("1h", time);
    archive
}

/// Status, storage and digest of each visit of the page.
fn visits(archive: &Archive) -> Vec<(u64, String, String)> {
    let is_page = |line: &&serde_json::Value| line["kind"] == "page" && line["status"].as_u64() != Some(404);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let visit = |line: &serde_json::Value| {
        (line["status"].as_u64().unwrap(), text(&line["stored"]), text(&line["digest"]))
    };
    archive.log().iter().filter(is_page).map(visit).collect()
}

#[test]
fn a_version_that_stays_is_left_out_once_confirmed_once_and_stored_whole() {
    let web = with_validators(|n| n / 12);
    let archive = kept(&web, "46h");
    let visits = visits(&archive);
    let deltas: Vec<_> = visits.iter().filter(|visit| visit.1 == "delta").collect();
    assert!(deltas.len() >= 2, "{visits:?}");
    for delta in &deltas {
        let of_it: Vec<_> = visits.iter().skip_while(|visit| visit != delta).take(5).collect();
        let how: Vec<_> = of_it.iter().map(|visit| (visit.0, visit.1.as_str())).collect();
        let wanted =
            [(200, "delta"), (304, "revisit"), (200, "response"), (304, "revisit"), (304, "revisit")];
        assert_eq!(how, wanted, "{visits:?}");
        assert_eq!(of_it[1].2, delta.2, "the 304 confirms the version that was left out, and no other");
    }
    let n_bodies = visits.iter().filter(|visit| visit.0 == 200).count();
    assert!(n_bodies <= visits.len() / 2, "{n_bodies} of {}: conditions save bodies", visits.len());
    archive.verify();
    assert_eq!(perennial(archive.path(), ["status", "--json"]).ok().json()["n_unfounded"], 0);
}

#[test]
fn a_version_that_comes_again_and_again_is_stored_whole_the_third_time() {
    // Without validators every visit receives the body.
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => {
            let edition = usize::from(request.n_before >= 6) + usize::from(request.n_before >= 7);
            let tale = ["story", "tale", "report"][edition];
            let body = format!("<p>A long {tale} that stays as it is, line by line</p>").repeat(30);
            let day = request.n_before % 3;
            html(&format!("<main>{body}</main><footer><p>Outside it is the {day}. day</p></footer>"))
        }
        _ => status(404),
    });
    let archive = kept(&web, "40h");
    let visits = visits(&archive);
    assert!(visits.iter().any(|visit| visit.1 == "delta"), "{visits:?}");
    for (_, _, content) in visits.iter().filter(|visit| visit.1 == "delta") {
        let n_deltas = visits.iter().filter(|visit| visit.1 == "delta" && visit.2 == *content).count();
        assert!(n_deltas <= 2, "{n_deltas} times: {visits:?}");
    }
    let last: Vec<_> = visits.iter().rev().take(9).map(|visit| visit.1.as_str()).collect();
    assert_eq!(last, ["revisit"; 9], "nothing is stored any more");
}

#[test]
fn a_304_of_a_left_out_version_is_known_after_a_rebuild() {
    let archive = kept(&with_validators(|n| n / 12), "40h");
    let listed = |archive: &Archive| {
        let info = perennial(archive.path(), ["status", "--json"]).ok().json();
        let counts = ["n_captures", "n_revisits", "n_left_out", "n_versions"].map(|name| info[name].clone());
        (counts, changes_of(archive.path()))
    };
    let before = listed(&archive);
    fs::remove_file(archive.path().join("state.db")).unwrap();
    perennial(archive.path(), ["verify", "--rebuild"]).ok();
    perennial(archive.path(), ["analyse"]).ok();
    assert_eq!(listed(&archive), before);
    archive.verify();
}

#[test]
fn a_left_out_version_is_shown_by_its_blocks_with_a_note() {
    let web = with_validators(|n| n / 12);
    let archive = kept(&web, "40h");
    let log = archive.log();
    let at = log.iter().rposition(|line| line["stored"] == "delta").unwrap();
    let time = |line: &serde_json::Value| {
        let time = Timestamp::parse(line["time"].as_str().unwrap()).unwrap();
        Timestamp::from_secs(time.as_secs()).to_rfc3339()
    };
    let confirmed =
        log[at + 1..].iter().find(|line| line["kind"] == "page" && line["status"] == 304).unwrap();
    for time in [time(&log[at]), time(confirmed)] {
        let page = format!("{}@{time}", web.url("/"));
        let shown = perennial(archive.path(), ["lab", "segment", &page, "--format", "json"]).ok();
        assert!(shown.stdout.contains("Outside it is the 3. day"), "{}", shown.stdout);
        assert!(shown.stderr.contains("was left out") && shown.stderr.contains("blocks"), "{}", shown.stderr);
        assert_eq!(shown.json()["version"], time.as_str());
        let first = format!("{}@2026-01-01T08:00:00Z", web.url("/"));
        let diff = perennial(archive.path(), ["diff", &first, &page, "--json"]).ok();
        assert!(diff.stdout.contains("3. day"), "{}", diff.stdout);
        assert!(diff.stderr.contains("was left out"), "{}", diff.stderr);
    }
    let page = format!("{}@{}", web.url("/"), time(&log[at]));
    let rendered = perennial(archive.path(), ["lab", "segment", &page, "--format", "svg"]);
    assert!(rendered.code != 0 && rendered.stderr.contains("--format vixml"), "{}", rendered.stderr);
}
