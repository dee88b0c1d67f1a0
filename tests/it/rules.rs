//! `lab rules`: rules of a history and of an archive, what plans would have skipped, and errors for malformed files.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use perennial_core::time::{Span, Timestamp};
use perennial_warc::{Compression, NewRecord, RecordIds, WarcWriter};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Ran, folder, html, perennial, ran};

fn rules(args: &[&str]) -> Ran {
    ran(Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["lab", "rules"])
        .args(args)
        .env_remove("PERENNIAL_ARCHIVE"))
}

/// Thirty versions: `news` changes in two of three, `archive` in the others, `about` never.
fn text() -> String {
    let mut text = String::from("#rendered yes\n");
    let pages = [("news", 30), ("archive", 20), ("about", 50)];
    for version in 0..30 {
        let _ = writeln!(text, "W\t{version}\t2026-01-{:02}", version + 1);
        for (directory, n) in pages {
            for page in 0..n {
                let is_changed = match (directory, version % 3) {
                    ("news", 1 | 2) => true,
                    ("archive", 0) => page < 15,
                    _ => false,
                };
                if version == 0 || is_changed {
                    let kind = if version == 0 { 'A' } else { 'M' };
                    let _ = writeln!(text, "{kind}\t{directory}/{page}.html\tx{version}\t100");
                }
            }
        }
    }
    text
}

fn history() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ruled.tsv");
    std::fs::write(&file, text()).unwrap();
    (dir, file)
}

#[test]
fn mine_finds_the_rule_and_draws_the_tree() {
    let (_dir, file) = history();
    let file = file.to_str().unwrap();
    let options =
        ["mine", "--history", file, "--alpha", "0.25", "--beta", "0.4", "--gamma", "0.5", "--theta", "0.9"];
    let sites = rules(&[&options[..], &["--json"]].concat()).ok().json();
    let site = &sites[0];
    assert_eq!(
        (site["site"].as_str(), site["n_pages"].as_u64(), site["n_rules"].as_u64()),
        (Some("ruled"), Some(100), Some(1))
    );
    let rule = &site["rules"][0];
    assert_eq!((rule["head"][0].as_str(), rule["tail"].as_str()), (Some("/"), Some("/archive/")));
    assert_eq!((rule["correlation"].as_f64(), rule["confidence"].as_f64()), (Some(-1.0), Some(1.0)));
    assert_eq!((rule["saved_fetches"].as_u64(), rule["missed_changes"].as_u64()), (Some(13 * 20), Some(0)));
    assert_eq!((site["n_static_pages"].as_u64(), site["sizes"].as_array().unwrap().len()), (Some(50), 20));
    assert_eq!(site["patterns"][0]["directories"], serde_json::json!(["/", "/news/"]));
    let words = rules(&options).ok().stdout;
    assert!(words.contains("/ => not /archive/") && words.contains("saved 260 fetches"), "{words}");
    let svg = rules(&[&options[..], &["--format", "svg"]].concat()).ok().stdout;
    assert!(
        svg.starts_with("<svg") && svg.contains("ruled: size") && svg.contains("/news/ (30 pages)"),
        "{svg}"
    );
}

#[test]
fn eval_has_one_object_per_site_and_plan() {
    let (dir, file) = history();
    let other = dir.path().join("same.tsv.gz");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text().as_bytes()).unwrap();
    std::fs::write(&other, packed.finish().unwrap()).unwrap();
    let files = ["eval", "--history", file.to_str().unwrap(), other.to_str().unwrap(), "--json"];
    let rows =
        rules(&[&files[..], &["--plan", "all", "--skip", "0.5", "--windows", "9"]].concat()).ok().json();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 22);
    for row in rows {
        for name in ["n_rules", "BR", "OP", "OR", "CR5", "CR9"] {
            assert!(row[name].as_f64().is_some(), "{name} is missing: {row}");
        }
        assert_eq!(row["n_windows"].as_u64(), Some(9));
    }
    let value = |site: &str, plan: &str, name: &str| {
        let is_meant = |row: &&Value| row["site"] == site && row["plan"] == plan;
        rows.iter().find(is_meant).unwrap()[name].as_f64().unwrap()
    };
    assert_eq!((value("ruled", "nothing", "BR"), value("ruled", "nothing", "CR5")), (0.0, 1.0));
    assert_eq!((value("ruled", "static", "BR"), value("ruled", "static", "CR5")), (0.5, 1.0));
    assert_eq!((value("ruled", "combined", "BR"), value("ruled", "combined", "CR5")), (0.5, 1.0));
    assert_eq!(value("ruled", "combined", "CR5"), value("same", "combined", "CR5"));
    assert_eq!(
        value("ruled", "near-0.01", "n_rules"),
        0.0,
        "a site that always changes gives no correlation"
    );
}

#[test]
fn curves_tuning_and_closed_loops() {
    let (_dir, file) = history();
    let file = file.to_str().unwrap();
    let curve =
        rules(&["eval", "--history", file, "--plan", "rate,combined", "--curve", "--json"]).ok().json();
    let points = curve[1]["points"].as_array().unwrap();
    assert_eq!(
        (points[0]["BR"].as_f64(), points[0]["CR5"].as_f64(), points.len()),
        (Some(0.0), Some(1.0), 12)
    );
    let tuned =
        rules(&["eval", "--history", file, "--plan", "combined", "--max-loss", "0.05", "--json"]).ok().json();
    assert!(tuned[0]["BR"].as_f64().unwrap() >= 0.5 && tuned[0]["CR5"].as_f64().unwrap() >= 0.9, "{tuned}");
    let looped =
        rules(&["eval", "--history", file, "--plan", "combined", "--loop", "9", "--json"]).ok().json();
    assert_eq!((looped[0]["n_weeks"].as_u64(), looped[0]["stale"].as_f64()), (Some(9), Some(0.0)));
    let without = rules(&["mine", "--history", file, "--without", "about/", "--json"]).ok().json();
    assert_eq!(without[0]["n_pages"].as_u64(), Some(50));
}

#[test]
fn bad_input_gives_errors_with_hints() {
    let (dir, file) = history();
    let bad = dir.path().join("bad.tsv");
    std::fs::write(&bad, "W\t0\td\nA\tx\th\tmany\n").unwrap();
    let refusal = |args: &[&str]| {
        let run = rules(args);
        assert_ne!(run.code, 0, "{args:?}");
        run.stderr
    };
    let bad = bad.to_str().unwrap();
    assert!(refusal(&["mine", "--history", bad]).contains("line 2: the bytes are not a number"));
    std::fs::write(bad, b"\xfd7zXZ\0broken").unwrap();
    assert!(refusal(&["mine", "--history", bad]).contains("unpack it with `xz -d`"));
    let file = file.to_str().unwrap();
    assert!(refusal(&["eval", "--history", file, "--plan", "best"]).contains("is not a plan"));
    assert!(refusal(&["eval", "--history", file, "--train", "40"]).contains("--train makes windows shorter"));
}

#[test]
fn the_papers_figures_are_reproduced() {
    let times = rules(&["figure", "6c", "--json"]).ok().json();
    assert_eq!(times.as_array().unwrap().len(), 45);
    assert!(times.as_array().unwrap().iter().all(|row| row["bytes_per_node"].as_f64().unwrap() < 210.0));
    let (_dir, file) = history();
    let rows = rules(&["figure", "5e", "--history", file.to_str().unwrap(), "--json"]).ok().json();
    let plans: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["plan"].as_str().unwrap()).collect();
    assert_eq!(plans, ["near", "subsumed", "subsumed / near"].repeat(3));
}

/// A site of two directories. The pages of one change in each sweep, those of the other never.
struct Paper {
    n_passes: usize,
    /// Between two sweeps.
    hours: i64,
    n_pages: i64,
}

/// Imports every sweep of the site without analysis. A heading that differs every time would soon count as noise.
fn import_paper(dir: &Path, archive: &Path, paper: &Paper) {
    let mut ids = RecordIds::new(5);
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::Gzip(1)).unwrap();
    let start = Timestamp::parse("2024-03-04T00:30:00Z").unwrap();
    for pass in 0..paper.n_passes {
        for page in 0..paper.n_pages {
            let is_news = 2 * page < paper.n_pages;
            let (directory, subject) =
                if is_news { ("news", SUBJECTS[pass % SUBJECTS.len()]) } else { ("about", "ourselves") };
            let at = start + Span::from_hours(paper.hours * pass as i64) + Span::from_secs(60 * page);
            let body = html(&format!("All that is known of {subject}, told by {directory} {page}"), &["/"]);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let url = format!("http://paper.example/{directory}/{page}");
            out.write(&NewRecord::response(ids.next_id(), at, &url, head.as_bytes(), body.as_bytes()))
                .unwrap();
        }
    }
    let file = dir.join("passes.warc.gz");
    std::fs::write(&file, out.into_inner()).unwrap();
    perennial(archive, ["init"]).ok();
    perennial(archive, ["import", "--no-analysis", file.to_str().unwrap()]).ok();
}

const SUBJECTS: [&str; 15] = [
    "harbours",
    "bridges",
    "orchards",
    "railways",
    "glaciers",
    "theatres",
    "lighthouses",
    "markets",
    "canals",
    "museums",
    "bakeries",
    "observatories",
    "gardens",
    "printers",
    "clocks",
];

/// An archive of a different crawler: fifteen weekly sweeps, in which /news/ changes and /about/ does not.
#[test]
fn an_archive_with_sweeps_has_rules_too() {
    let (dir, archive) = folder();
    import_paper(dir.path(), &archive, &Paper { n_passes: SUBJECTS.len(), hours: 168, n_pages: 6 });
    let sites = perennial(&archive, ["lab", "rules", "mine", "paper.example", "--json"]).ok().json();
    let site = &sites[0];
    assert_eq!(
        (site["n_versions"].as_u64(), site["n_pages"].as_u64(), site["n_static_pages"].as_u64()),
        (Some(15), Some(6), Some(3))
    );
    let rows = perennial(
        &archive,
        ["lab", "rules", "eval", "paper.example", "--train", "8", "--plan", "static", "--json"],
    )
    .ok()
    .json();
    assert_eq!((rows[0]["BR"].as_f64(), rows[0]["CR5"].as_f64()), (Some(0.5), Some(1.0)));
    let unknown = perennial(&archive, ["lab", "rules", "mine", "nowhere.example"]);
    assert!(unknown.stderr.contains("paper.example"), "{}", unknown.stderr);
}

/// Thirty daily visits of five pages that change and five that do not. The crawl would skip the directory of the
/// latter.
#[test]
fn the_plan_names_skipped_directories_and_rules() {
    let (dir, archive) = folder();
    import_paper(dir.path(), &archive, &Paper { n_passes: 30, hours: 24, n_pages: 10 });
    let args = ["plan", "next", "--budget", "1/2h", "--at", "2024-04-03T02:00:00Z", "--top", "20", "--json"];
    let plan = perennial(&archive, args).ok().json();
    let n_skipped = |directory: &str| {
        let is_meant = |entry: &&Value| entry["url"].as_str().unwrap().contains(directory);
        let entries = plan.as_array().unwrap().iter().filter(is_meant);
        let is_rule = |entry: &&Value| {
            entry["reason"] == "skipped by rule: no page of its directory changed in 145 observations"
        };
        entries.filter(is_rule).count()
    };
    assert_eq!((n_skipped("/about/"), n_skipped("/news/")), (5, 0), "{plan:#}");
}
