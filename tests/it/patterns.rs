//! `plan patterns`, `plan next` and `plan quality` on an archive of a different crawler.

use std::path::Path;

use perennial_core::time::{Span, Timestamp};
use perennial_warc::{Compression, NewRecord, RecordIds, WarcWriter};
use tempfile::TempDir;

use crate::crawled::Archive;
use crate::program::{folder, html, perennial};
use crate::web::{Web, html as html_reply};

const HOME: &str = "http://shop.example:8080/";

/// Ten days of captures every three hours. The home page changes at noon, the other page never.
fn archive_with_pattern() -> (TempDir, std::path::PathBuf) {
    let (dir, archive) = folder();
    let mut ids = RecordIds::new(11);
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::Gzip(1)).unwrap();
    let start = Timestamp::parse("2024-03-04T00:30:00Z").unwrap();
    for visit in 0..80i64 {
        let at = start + Span::from_hours(3 * visit);
        let noons = (3 * visit + 12) / 24;
        for (url, title) in
            [(HOME.to_owned(), format!("edition {noons}")), (format!("{HOME}about"), "about".to_owned())]
        {
            let body = html(&title, &["/", "/about"]);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            out.write(&NewRecord::response(ids.next_id(), at, &url, head.as_bytes(), body.as_bytes()))
                .unwrap();
        }
    }
    let file = dir.path().join("visits.warc.gz");
    std::fs::write(&file, out.into_inner()).unwrap();
    perennial(&archive, ["init"]).ok();
    perennial(&archive, ["import", file.to_str().unwrap()]).ok();
    (dir, archive)
}

fn append_settings(archive: &Path, text: &str) {
    let path = archive.join("perennial.toml");
    let settings = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{settings}\n{text}")).unwrap();
}

#[test]
fn patterns_show_when_a_page_changes() {
    let (_dir, archive) = archive_with_pattern();
    // The host has a port. It is found without the port, too.
    for only in ["shop.example:8080", "shop.example", HOME] {
        let pages = perennial(&archive, ["plan", "patterns", only, "--json"]).ok().json();
        let home = pages.as_array().unwrap().iter().find(|page| page["url"] == HOME).unwrap();
        let rate = home["changes_per_day"].as_f64().unwrap();
        assert!((0.7..1.3).contains(&rate), "{rate} changes a day");
        let omega: Vec<f64> =
            home["patterns"][0]["omega"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        let busiest = (0..24).max_by(|a, b| omega[*a].total_cmp(&omega[*b])).unwrap();
        assert!((9..=12).contains(&busiest), "busiest at {busiest}: {omega:?}");
    }
    let text = perennial(&archive, ["plan", "patterns", HOME]).ok().stdout;
    assert!(text.contains('█') && text.contains("workday"), "{text}");
    let svg = perennial(&archive, ["plan", "patterns", HOME, "--format", "svg"]).ok().stdout;
    assert!(svg.starts_with("<svg") && svg.contains("<rect"));
}

#[test]
fn unknown_names_are_answered_with_known_ones() {
    let (_dir, archive) = archive_with_pattern();
    for command in ["patterns", "quality"] {
        let run = perennial(&archive, ["plan", command, "nowhere.example"]);
        assert_ne!(run.code, 0);
        assert!(
            run.stderr.contains("nowhere.example") && run.stderr.contains("shop.example:8080"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn the_plan_ranks_with_reasons() {
    let (_dir, archive) = archive_with_pattern();
    let at = ["plan", "next", "--at", "2024-03-14T09:00:00Z"];
    let ranked = perennial(&archive, at.iter().chain(&["--json"])).ok().json();
    let entries = ranked.as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["url"], HOME, "the page that changes is the more urgent one");
    assert!(entries[0]["reason"].as_str().unwrap().contains("last seen 2024-03-1"));
    // The site's own clock in the reasons, the user's weight in the ranks.
    let urgency = entries[0]["urgency"].as_f64().unwrap();
    let site = format!("[[site]]\nurl = \"{HOME}\"\nweight = 4.0\ntimezone = \"Asia/Tokyo\"\n");
    append_settings(&archive, &site);
    let weighed = perennial(&archive, at.iter().chain(&["--json"])).ok().json();
    assert!(weighed[0]["urgency"].as_f64().unwrap() > 2.0 * urgency, "{weighed}");
    assert!(weighed[0]["reason"].as_str().unwrap().contains("Asia/Tokyo"), "{weighed}");
}

#[test]
fn half_and_twice_the_budget_are_compared() {
    let (_dir, archive) = archive_with_pattern();
    let args = ["plan", "next", "--at", "2024-03-14T09:00:00Z", "--budget", "1", "--what-if", "--json"];
    let report = perennial(&archive, args).ok().json();
    let lines = report.as_array().unwrap();
    let budgets: Vec<f64> = lines.iter().map(|line| line["budget_per_hour"].as_f64().unwrap()).collect();
    assert_eq!(budgets, [0.5, 1.0, 2.0]);
    let visits: Vec<u64> = lines.iter().map(|line| line["n_visits"].as_u64().unwrap()).collect();
    // A daily budget. Each of the two pages is visited at most once per hour.
    assert_eq!(visits, [12, 24, 48]);
    let a_day = ["plan", "next", "--at", "2024-03-14T09:00:00Z", "--budget", "24/1d", "--what-if", "--json"];
    // A daily budget may save visits: it makes no more visits, and finds hardly less.
    let by_day = perennial(&archive, a_day).ok().json();
    for (day, hour) in by_day.as_array().unwrap().iter().zip(lines) {
        assert_eq!(day["budget_per_hour"], hour["budget_per_hour"]);
        assert!(day["n_visits"].as_u64() <= hour["n_visits"].as_u64(), "{day} {hour}");
        let found = |line: &serde_json::Value| line["expected_importance"].as_f64().unwrap();
        assert!(found(day) > 0.7 * found(hour), "{day} {hour}");
    }
    let text = perennial(&archive, &args[..7]).ok().stdout;
    assert_eq!(text.lines().count(), 6);
    assert!(text.lines().any(|line| line.trim_start().starts_with("2.0 ")), "{text}");
}

#[test]
fn times_are_instants_or_durations_everywhere() {
    let (_dir, archive) = archive_with_pattern();
    for args in [&["changes", "--since"][..], &["plan", "quality", "--at"], &["plan", "next", "--at"]] {
        perennial(&archive, [args, &["2d", "--json"]].concat()).ok();
        let run = perennial(&archive, [args, &["soon"]].concat());
        assert_eq!(run.code, 2, "{args:?}");
        assert!(
            run.stderr.contains("`soon` is not a time") && run.stderr.contains("2d for two days ago"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn quality_is_reported_as_an_estimate_with_bounds() {
    let (_dir, archive) = archive_with_pattern();
    let quality = perennial(&archive, ["plan", "quality", "shop.example", "--json"]).ok().json();
    assert_eq!(quality["is_estimate"], true);
    let site = &quality["sites"][0];
    assert_eq!((site["host"].as_str(), site["n_pages"].as_u64()), (Some("shop.example:8080"), Some(2)));
    assert_eq!(site["n_captures"], 160);
    for name in ["completeness_pooled", "completeness_weighted", "completeness_count"] {
        let of = |bound: &str| site[name][bound].as_f64().unwrap();
        assert!(
            0.0 < of("at_least") && of("at_least") <= of("likely") && of("likely") <= of("at_most"),
            "{site}"
        );
    }
    let of = |bound: &str| site["coherence"]["weighted"][bound].as_f64().unwrap();
    assert!(0.0 <= of("at_least") && of("at_least") <= of("at_most") && of("at_most") <= 1.0);
}

#[test]
fn two_visits_are_too_few_to_name_the_hours_of_changes() {
    let web = Web::serve(|_| html_reply("<p>Words of a page that a reader can read</p>"));
    let archive = Archive::new();
    archive.ok(&["run", &web.url("/"), "--once", "--allow-private", "--delay", "0"]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    let plan = archive.ok(&["plan", "next"]);
    assert!(plan.contains(&web.url("/")) && !plan.contains("usually updates"), "{plan}");
}
