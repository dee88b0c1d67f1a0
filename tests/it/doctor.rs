//! `perennial doctor` works on this machine, whatever is installed.

use perennial_core::time::Timestamp;
use serde_json::Value;

use crate::crawled::Archive;
use crate::program::{folder, ran};

const PARTS: [&str; 7] =
    ["user", "browser", "workers", "archive's disk", "temporary disk", "open files", "clock"];

fn finding<'a>(report: &'a Value, part: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["part"] == part).unwrap_or_else(|| panic!("{part}: {report}"))
}

#[test]
fn every_part_is_checked_and_each_fault_has_a_hint() {
    // It works without an archive too.
    let (_dir, archive) = folder();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_perennial"));
    let run = ran(command.arg("--archive").arg(&archive).args(["doctor", "--json"]));
    let report = run.json();
    for part in PARTS {
        finding(&report, part);
    }
    for finding in report["findings"].as_array().unwrap() {
        assert_eq!(finding["hint"].is_string(), finding["health"] != "well", "{finding}");
        assert!(finding["found"].as_str().is_some_and(|text| !text.is_empty()), "{finding}");
    }
    assert_eq!(run.code, if report["n_faults"] == 0 { 0 } else { 4 });
    assert!(!archive.exists(), "it writes nothing");
}

#[test]
fn a_missing_browser_is_a_warning_with_its_hint() {
    let archive = Archive::new();
    let mut command = archive.command(&["doctor", "--json"]);
    let run = ran(command.env("PERENNIAL_CHROMIUM", "/nowhere/chromium"));
    let report = run.json();
    let browser = finding(&report, "browser");
    assert_eq!(browser["health"], "warning");
    assert!(browser["hint"].as_str().unwrap().contains("apt install chromium"), "{browser}");
}

#[test]
fn a_temporary_folder_that_is_not_there_is_a_fault() {
    let archive = Archive::new();
    let mut command = archive.command(&["doctor"]);
    command.env("TMPDIR", "/nowhere/temporary").env("PERENNIAL_CHROMIUM", "/nowhere/chromium");
    let run = ran(&mut command);
    assert_eq!(run.code, 4, "{}", run.stdout);
    assert!(run.stdout.contains("FAULT    temporary disk"), "{}", run.stdout);
    assert!(run.stdout.contains("hint: "), "{}", run.stdout);
}

#[test]
fn captures_ahead_of_the_clock_are_a_fault() {
    let web = crate::web::Web::serve(|_| crate::web::html("<p>a page"));
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    let ahead = Timestamp::from_millis(4_000_000_000_000).to_rfc3339();
    let clock = ["run", "--no-serve", "--time-lapse", "max", "--start", &ahead, "--delay", "0"];
    let policy = ["--strategy", "fixed-interval", "--interval", "1h", "--time-limit", "2h"];
    archive.ended(&[&clock[..], &policy[..]].concat(), 15);
    let mut command = archive.command(&["doctor", "--json"]);
    let run = ran(command.env("PERENNIAL_CHROMIUM", "/nowhere/chromium"));
    assert_eq!(run.code, 4, "{}", run.stdout);
    assert_eq!(finding(&run.json(), "clock")["health"], "fault");
}

#[cfg(feature = "interop")]
#[test]
fn the_browser_is_seen_in_its_sandbox_without_a_network() {
    let archive = Archive::new();
    let report = ran(&mut archive.command(&["doctor", "--json"])).json();
    assert_eq!(finding(&report, "sandbox")["health"], "well", "{report}");
    assert_eq!(finding(&report, "browser network")["health"], "well", "{report}");
    archive.append_settings("\n[crawl]\nbrowser_sandbox = false\n");
    let report = ran(&mut archive.command(&["doctor", "--json"])).json();
    assert_eq!(finding(&report, "sandbox")["health"], "warning", "{report}");
}
