//! `perennial diff` on pairs of pages that are named after their change.

use std::path::PathBuf;
use std::process::Command;

fn pages() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pages")
}

fn diff(case: &str, format: &str) -> String {
    let dir = pages().join(case);
    let output = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["diff", "--format", format])
        .args([dir.join("before.html"), dir.join("after.html")])
        .env_remove("PERENNIAL_ARCHIVE")
        .output()
        .unwrap();
    assert!(output.status.success(), "{case}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn report(case: &str) -> serde_json::Value {
    serde_json::from_str(&diff(case, "json")).unwrap()
}

/// One sorted line per operation: kind, element, and whether it is an advertisement.
fn lines(case: &str) -> String {
    let report = report(case);
    let all = report["structure"].as_array().unwrap().iter().chain(report["operations"].as_array().unwrap());
    let mut lines: Vec<String> = all
        .map(|entry| {
            let text = |side: &str| entry[side]["text"].as_str().unwrap_or("-").to_string();
            let url = |side: &str| entry[side]["url"].as_str().unwrap_or("").to_string();
            let ad = if entry["advertisement"] == true { " advertisement" } else { "" };
            let (op, element) = (entry["op"].as_str().unwrap(), entry["element"].as_str().unwrap());
            format!(
                "{op} {element}{ad}: {} {} => {} {}\n",
                text("before"),
                url("before"),
                text("after"),
                url("after")
            )
        })
        .collect();
    lines.sort();
    lines.concat()
}

/// Each folder of `testdata/pages` contains before.html, after.html and the expected operations. Set UPDATE_EXPECT=1
/// to rewrite `expected`, and review the difference.
#[test]
fn pairs_of_pages_named_after_their_change() {
    let mut cases: Vec<String> = std::fs::read_dir(pages())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    cases.sort();
    assert!(cases.len() >= 20, "{cases:?}");
    let mut wrong = String::new();
    for case in &cases {
        let (found, file) = (lines(case), pages().join(case).join("expected"));
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&file, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        if found != expected {
            wrong += &format!("{case}\nexpected\n{expected}found\n{found}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Some folders contain a file `reader` with the minimum and maximum importance that a reader would give, and the
/// reason.
#[test]
fn importance_matches_a_readers_judgement() {
    let mut wrong = String::new();
    let mut n_checked = 0;
    for entry in std::fs::read_dir(pages()).unwrap() {
        let case = entry.unwrap().file_name().into_string().unwrap();
        let Ok(said) = std::fs::read_to_string(pages().join(&case).join("reader")) else { continue };
        let (bounds, why) = said.split_once('\n').unwrap();
        let bounds: Vec<f64> = bounds
            .strip_prefix("importance ")
            .unwrap()
            .split(' ')
            .map(|bound| bound.parse().unwrap())
            .collect();
        let found = report(&case)["importance"].as_f64().unwrap();
        n_checked += 1;
        if !(bounds[0]..=bounds[1]).contains(&found) {
            wrong += &format!("{case}: {found}, not {bounds:?}: {why}");
        }
    }
    assert!(n_checked >= 24, "{n_checked}");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn importance_orders_changes_like_a_reader() {
    let importance = |case: &str| report(case)["importance"].as_f64().unwrap();
    assert_eq!(importance("unchanged"), 0.0);
    assert_eq!(importance("change-style-only"), 0.0);
    let low = ["rotate-advertisement", "change-footer-year"].map(importance);
    let middle = importance("add-menu-entry");
    let high = ["rewrite-paragraph", "add-paragraph", "add-second-article"].map(importance);
    assert!(
        importance("remove-advertisement") < importance("rewrite-paragraph"),
        "a removed wrapper is not a loss"
    );
    assert!(low.iter().all(|low| *low < middle), "{low:?} {middle}");
    assert!(high.iter().all(|high| *high > middle), "{high:?} {middle}");
}

#[test]
fn the_html_view_is_one_file_with_both_versions() {
    let html = diff("add-paragraph", "html");
    assert!(html.starts_with("<!DOCTYPE html>"));
    assert!(html.contains("name=\"pd-before\"") && html.contains("name=\"pd-after\""));
    assert!(html.contains("A ferry for walkers"));
    assert!(!html.contains(" src=") && !html.contains("<link"), "it must need nothing else");
}

#[test]
fn videlta_applies_to_the_version_before() {
    let xml = diff("change-word-in-paragraph", "videlta");
    let delta = perennial_core::page::diff::Delta::from_xml(&xml).unwrap();
    assert_eq!(delta.operations().count(), 1);
}

#[test]
fn errors_name_the_hint() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_perennial")).args(["diff", "no.html", "no.html"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot read the page no.html"));
}
