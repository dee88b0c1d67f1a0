//! `perennial lab simulate`: its JSON, its report, its errors for malformed traces.

use std::process::Command;

use crate::program::{Ran, ran};

fn simulate(args: &[&str]) -> Ran {
    ran(Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["lab", "simulate"])
        .args(args)
        .env_remove("PERENNIAL_ARCHIVE"))
}

const SMALL: [&str; 12] =
    ["--sites", "2", "--pages", "40", "--days", "3", "--burn-in", "1", "--seed", "4", "--budget", "10%,30%"];

/// One object per budget, with the documented names. All values are shares of 1.
#[test]
fn json_has_one_object_a_budget() {
    let args =
        [&SMALL[..], &["--strategy", "expected-gain,importance-pattern", "--patterns", "both", "--json"]];
    let run = simulate(&args.concat()).ok();
    let lines: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    for (line, budget) in lines.iter().zip([0.1, 0.3]) {
        assert_eq!((line["world"].as_str(), line["seed"].as_u64()), (Some("paper"), Some(4)));
        assert_eq!((line["budget"].as_f64(), line["slot_minutes"].as_f64()), (Some(budget), Some(60.0)));
        let results = line["results"].as_array().unwrap();
        let names: Vec<_> =
            results.iter().map(|r| (r["strategy"].as_str().unwrap(), r["learned"].as_bool())).collect();
        assert_eq!(names.len(), 4);
        assert_eq!(names[0], ("expected-gain", Some(false)));
        assert_eq!(names[3], ("importance-pattern", Some(true)));
        let clairvoyant = line["bounds"]["clairvoyant"].as_f64().unwrap();
        assert!(line["bounds"]["pattern_known"].as_f64().unwrap() <= clairvoyant);
        for result in results {
            for name in [
                "completeness_pooled",
                "completeness_weighted",
                "completeness_count",
                "coherence_weighted",
                "coherence_max_weight",
                "share_of_clairvoyant",
            ] {
                let value = result[name].as_f64().unwrap_or_else(|| panic!("{name} is missing: {result}"));
                assert!((0.0..=1.0).contains(&value), "{name} {value}");
            }
            assert!(result["completeness_pooled"].as_f64().unwrap() <= clairvoyant);
        }
    }
    assert_eq!(simulate(&args.concat()).stdout, run.stdout, "the same seed gives the same figures");
}

#[test]
fn a_report_is_one_page_with_the_papers_figures() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let args = [
        &SMALL[..],
        &["--strategy", "expected-gain,relevance", "--no-bounds", "--report", out.to_str().unwrap()],
    ];
    simulate(&args.concat()).ok();
    let html = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(html.contains("<svg") && html.contains("</html>") && html.contains("Fig"));
    assert!(!html.contains("src=\"http") && !html.contains("<link"), "the report is self-contained");
}

/// Changes of two pages, one hourly and one daily, as a user would write them.
#[test]
fn a_plain_trace_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.tsv");
    let mut text = String::new();
    for hour in 0..24 * 6 {
        let at = 1_767_571_200 + hour * 3600 + 600;
        text.push_str(&format!("https://a.example/busy\t{at}\t0.5\n"));
        if hour % 24 == 9 {
            text.push_str(&format!("https://a.example/slow\t{at}\t0.5\n"));
        }
    }
    std::fs::write(&file, text).unwrap();
    let args =
        ["--trace", file.to_str().unwrap(), "--days", "4", "--burn-in", "2", "--budget", "100%", "--json"];
    let run = simulate(&args).ok();
    let line: serde_json::Value = serde_json::from_str(run.stdout.trim()).unwrap();
    assert_eq!(line["world"], "mine");
    let fixed =
        line["results"].as_array().unwrap().iter().find(|r| r["strategy"] == "fixed-interval").unwrap();
    assert!(
        fixed["completeness_pooled"].as_f64().unwrap() > 0.95,
        "a visit an hour sees a change an hour: {fixed}"
    );
}

#[test]
fn a_bad_trace_is_named_with_line_and_hint() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.tsv");
    std::fs::write(&file, "https://a.example/\t2026-01-05T10:00:00Z\t0.5\nhttps://a.example/\tsoon\t0.5\n")
        .unwrap();
    let run = simulate(&["--trace", file.to_str().unwrap()]);
    assert_ne!(run.code, 0);
    for part in ["bad.tsv", "line 2", "`soon` is not a time", "write `page<TAB>time<TAB>importance`"] {
        assert!(run.stderr.contains(part), "{part} is missing: {}", run.stderr);
    }
    let run = simulate(&["--strategy", "best"]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("expected-gain"), "{}", run.stderr);
}
