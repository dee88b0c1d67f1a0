//! `perennial lab reproduce`: verdicts, tables, the report, and data that the tree does not have.

use std::process::Command;

use serde_json::Value;

use crate::program::{Ran, ran};

fn reproduce(args: &[&str]) -> Ran {
    ran(Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["lab", "reproduce"])
        .args(args)
        .env_remove("PERENNIAL_ARCHIVE"))
}

/// The findings of an item, and the rows of its table.
fn of(found: &Value, item: &str) -> (Vec<Value>, Vec<Value>) {
    let findings = found["findings"].as_array().unwrap().iter().filter(|finding| finding["item"] == item);
    let table = found["tables"].as_array().unwrap().iter().find(|table| table["item"] == item);
    let rows = table.map(|table| table["rows"].as_array().unwrap().clone()).unwrap_or_default();
    (findings.cloned().collect(), rows)
}

#[test]
fn every_claim_has_a_verdict_and_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report");
    for paper in ["feed", "visual", "near"] {
        let found = reproduce(&[paper, "--json", "--report", report.to_str().unwrap()]).ok().json();
        for finding in found["findings"].as_array().unwrap() {
            let verdict = finding["verdict"].as_str().unwrap();
            assert!(!finding["reason"].as_str().unwrap().is_empty(), "{finding}");
            let low = finding["effect"]["low"].as_f64();
            let needs_effect = !finding["claim"].as_str().unwrap().contains("deteriorate")
                && finding["published"] != "it does not"
                && finding["effect"].is_object();
            let is_repeated = verdict.starts_with("repeated");
            assert!(!is_repeated || !needs_effect || low.is_some_and(|low| low > 0.0), "{finding}");
        }
        let html = std::fs::read_to_string(report.join("index.html")).unwrap();
        assert!(html.contains("Can the papers be repeated?") && html.contains("<table>"), "{paper}");
        let written: Value =
            serde_json::from_str(&std::fs::read_to_string(report.join("findings.json")).unwrap()).unwrap();
        assert_eq!(written, found);
    }
    let found = reproduce(&["feed", "--json"]).ok().json();
    let (_, rows) = of(&found, "Table 3");
    assert_eq!(rows[0]["values"][2], 0.79, "{rows:?}");
    assert!(reproduce(&["far"]).stderr.contains("choose pattern, quality, visual, near or feed"));
}

#[test]
fn real_data_are_read_from_folders() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for (host, word) in [("www.a.org", "a"), ("b.gov", "b"), ("c.org", "c"), ("www.d.com", "d")] {
        let mut text = format!("#host {host}\n");
        for version in 0..30 {
            text += &format!("W\t{version}\t2026-01-{:02}\n", version + 1);
            for page in 0..20 {
                match (version, page) {
                    (0, _) => text += &format!("A\tnews/{page}.html\tx\t9\nA\told/{page}.html\tx\t9\n"),
                    (_, page) if page % 3 == version % 3 => {
                        text += &format!("M\tnews/{page}.html\tx{version}\t9\n")
                    }
                    _ => {}
                }
            }
        }
        write(&format!("sites/{word}.tsv"), text);
    }
    for domain in ["art", "science"] {
        let items: String = (1..9)
            .map(|day| {
                format!(
                    "<item><title>{day}</title><pubDate>Mon, {day:02} Jun 2026 10:00:00 GMT</pubDate></item>"
                )
            })
            .collect();
        write(
            &format!("feeds/{domain}/f.rss"),
            format!("<rss version='2.0'><channel><title>F</title>{items}</channel></rss>"),
        );
    }
    let data = dir.path().to_str().unwrap();
    let near = reproduce(&["near", "--json", "--data", data]).ok().json();
    let (findings, rows) = of(&near, "Table 2");
    assert!(rows.len() > 5 && findings[0]["effect"]["n"] == 4, "{findings:?}");
    // Half of the pages never change, so the rules of a site skip them.
    let own = rows.iter().find(|row| row["name"].as_str().unwrap().starts_with("b.gov, default")).unwrap();
    assert!(own["values"][0].as_f64().unwrap() > 0.4, "{own}");
    let (findings, rows) = of(&near, "Fig. 5c");
    assert_eq!(
        rows.iter().map(|row| row["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["com", "gov", "org"]
    );
    assert_eq!(findings[0]["effect"]["n"], 3);
    let feed = reproduce(&["feed", "--json", "--data", data]).ok().json();
    let (_, rows) = of(&feed, "Table 2");
    assert_eq!(
        rows.iter().map(|row| row["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["art", "feeds", "science", "all"]
    );
    let empty = dir.path().join("feeds/art");
    std::fs::remove_file(empty.join("f.rss")).unwrap();
    assert!(reproduce(&["near", "--data", empty.to_str().unwrap()]).stderr.contains("no file ends with"));
}
