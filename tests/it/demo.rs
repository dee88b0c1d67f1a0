//! The whole loop on the living web: real crawler, real WARC files, known truth.

use std::process::Command;

use crate::program::{folder, perennial, ran};

/// Three virtual days. The clock waits for a slow machine, so load changes the time the test takes, not what is caught;
/// the margins are for what differs by chance from run to run.
#[test]
fn the_archive_catches_what_the_simulator_says_it_should() {
    let (_dir, archive) = folder();
    let run = ran(Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["demo", "--days", "3", "--json", "--dir"])
        .arg(&archive)
        .env_remove("PERENNIAL_ARCHIVE"))
    .ok();
    let result: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let share = |value: &serde_json::Value| value["completeness_pooled"].as_f64().unwrap();
    let (real, simulated, fixed) =
        (share(&result), share(&result["simulated"]), share(&result["fixed_interval"]));
    assert!((real - simulated).abs() < 0.08, "{real} in the archive, {simulated} simulated");
    assert!(real > fixed + 0.05, "{real} in the archive, {fixed} by a fixed interval");
    let fetches = |value: &serde_json::Value| value["fetches"].as_f64().unwrap();
    assert!(fetches(&result) <= 1.02 * fetches(&result["simulated"]), "the budget was exceeded: {result}");
    assert!(std::fs::read_to_string(archive.join("report.html")).unwrap().contains("</html>"));
    perennial(&archive, ["verify"]).ok();
}
