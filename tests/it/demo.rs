//! The whole crawl on the living web: real crawler, real WARC files, known truth, two virtual weeks.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use perennial::demo::LivingWeb;
use perennial_core::time::Timestamp;
use perennial_engine::analyse::{AdFilters, Analyst, PageText};
use perennial_render::CapturedResource;

use crate::program::{folder, perennial};
use crate::server::send_request;
use crate::wait::wait_until;

/// One goal suffices to compare the archive with the simulator. This one differs least between two runs.
const SINGLE: &str = "importance";
/// How often the second crawl is killed.
const N_KILLS: u32 = 20;
/// Captures before each kill. `N_KILLS` runs of this length are shorter than the two weeks.
const CAPTURES_A_LIFE: u32 = 420;
/// Two runs of one seed differ by one point, sometimes by two, because they find pages in a different order.
const MOST_APART: f64 = 0.04;
/// True coherence is a point or two lower, because noise counts as change at first.
const MOST_INCOHERENT: f64 = 0.04;

/// Without feeds, because the simulator has none. Without a browser, because not every machine has one.
fn demo(archive: &Path, goal: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["demo", "--no-feeds", "--no-browser", "--json", "--goal", goal, "--dir"])
        .arg(archive)
        .env_remove("PERENNIAL_ARCHIVE")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn ended(child: Child) -> serde_json::Value {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The number of committed captures; 0 while the archive is being created.
fn n_captures(archive: &Path) -> u32 {
    let Ok(archive) = perennial_archive::Archive::open(archive) else { return 0 };
    let Ok(store) = archive.store() else { return 0 };
    store.counts().map_or(0, |counts| counts.n_captures as u32)
}

/// Kills the demonstration repeatedly, then lets it finish.
fn killed(archive: &Path) -> serde_json::Value {
    for life in 1..=N_KILLS {
        let mut child = demo(archive, SINGLE);
        wait_until("enough captures for a kill", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed {life} times");
            n_captures(archive) >= life * CAPTURES_A_LIFE
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    ended(demo(archive, SINGLE))
}

/// Bytes of the state and of the WARC files.
fn sizes(archive: &Path) -> (u64, u64) {
    let files = std::fs::read_dir(archive.join("warc")).unwrap();
    let warc = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    (std::fs::metadata(archive.join("state.db")).unwrap().len(), warc)
}

/// All visits that two weeks allow: a tenth of the pages per hour.
fn budget() -> f64 {
    let n_pages = LivingWeb::new(1, Timestamp::parse("2026-03-02").unwrap(), 14).pages.len() as f64;
    14.0 * (2.4 * n_pages).ceil()
}

fn share(value: &serde_json::Value, name: &str) -> f64 {
    value[name].as_f64().unwrap()
}

/// The clock stops while there is work, so load on the machine prolongs the test and does not change the result.
#[test]
fn the_archive_catches_what_the_simulator_says_also_when_it_is_killed() {
    let (dir, archive) = folder();
    let often_killed = dir.path().join("killed");
    let (result, result_killed) = std::thread::scope(|scope| {
        let undisturbed = scope.spawn(|| ended(demo(&archive, SINGLE)));
        let result_killed = killed(&often_killed);
        (undisturbed.join().unwrap(), result_killed)
    });
    let pooled = |value: &serde_json::Value| share(value, "completeness_pooled");
    let (real, simulated) = (pooled(&result), pooled(&result["simulated"]));
    assert!((real - simulated).abs() < MOST_APART, "{real} in the archive, {simulated} simulated");
    let coherence = |value: &serde_json::Value| share(value, "coherence_weighted");
    let (real_coherence, simulated_coherence) = (coherence(&result), coherence(&result["simulated"]));
    assert!(
        (real_coherence - simulated_coherence).abs() < MOST_INCOHERENT,
        "coherence {real_coherence} in the archive, {simulated_coherence} simulated"
    );
    let (fixed, of_papers) = (pooled(&result["fixed_interval"]), pooled(&result["importance_pattern"]));
    assert!(real > fixed + 0.10, "{real} in the archive, {fixed} by a fixed interval");
    assert!(real > of_papers + 0.03, "{real} in the archive, {of_papers} by importance-pattern");
    let noise = share(&result, "noise_share");
    assert!(noise < 0.03, "{noise} of the visits went to pages that show nothing but noise");
    let fetches = |value: &serde_json::Value| share(value, "fetches");
    assert!(fetches(&result) <= budget(), "the budget was exceeded: {result}");
    assert!(std::fs::read_to_string(archive.join("report.html")).unwrap().contains("</html>"));
    perennial(&archive, ["verify"]).ok();
    let (state, warc) = sizes(&archive);
    assert!(5 * state <= 2 * warc, "a state of {state} bytes for {warc} bytes of WARC");

    // Compared with the mean of six simulated crawls, which is steadier than a second run.
    let disturbed = pooled(&result_killed);
    println!("{real} undisturbed, {disturbed} killed, {simulated} simulated; coherence {real_coherence}");
    assert!(
        (disturbed - simulated).abs() < MOST_APART,
        "{disturbed} when killed {N_KILLS} times, {simulated} simulated"
    );
    perennial(&often_killed, ["verify"]).ok();
}

/// Stops a process as Ctrl-C does.
pub(crate) fn interrupt(child: &Child) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
}

#[test]
fn a_demonstration_ends_on_the_dashboard_until_it_is_stopped() {
    let (_dir, archive) = folder();
    let mut child = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["demo", "--serve", "--days", "1", "--no-feeds", "--no-browser", "--dir"])
        .arg(&archive)
        .env_remove("PERENNIAL_ARCHIVE")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.find_map(|line| Some(line.split_once("the dashboard is at http://")?.1.to_owned()));
    let url = url.expect("no line contains the dashboard's URL");
    let home = send_request(url.trim_end_matches('/'), "GET", "/", &[]);
    assert_eq!(home.status, 200);
    assert!(home.text().contains("Holdings"), "{}", home.text());
    interrupt(&child);
    let rest: Vec<String> = lines.collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    assert!(
        !rest.iter().any(|line| line.contains("fetches in flight")),
        "nothing is being fetched: {rest:?}"
    );
}

/// With as many visits, the crawl beats a fixed interval in importance and pages. In coherence it is hardly worse.
#[test]
fn balanced_is_ahead_of_a_fixed_interval_in_every_measure_but_coherence() {
    let (_dir, archive) = folder();
    let result = ended(demo(&archive, "balanced"));
    let fixed = &result["fixed_interval"];
    let of = |name: &str| (share(&result, name), share(fixed, name));
    let (pooled, by_page) = (of("completeness_pooled"), of("completeness_weighted"));
    assert!(pooled.0 > 2.4 * pooled.1, "{pooled:?}");
    assert!(by_page.0 > 1.3 * by_page.1, "{by_page:?}");
    let coherence = of("coherence_weighted");
    assert!(coherence.0 > coherence.1 - 0.025, "{coherence:?}");
    let n_visits = share(&result, "fetches");
    assert!((0.94 * budget()..=budget()).contains(&n_visits), "{n_visits} visits");
}

#[test]
fn a_reused_layout_gives_the_blocks_of_a_full_one() {
    let web = LivingWeb::new(5, Timestamp::parse("2026-03-02").unwrap(), 3);
    let analyst =
        Analyst::with_worker(env!("CARGO_BIN_EXE_perennial").into(), AdFilters::load(None).unwrap());
    let style = |url: &str| {
        let body = perennial::demo::STYLE.as_bytes().to_vec();
        url.ends_with(".css").then(|| CapturedResource { status: 200, content_type: "text/css".into(), body })
    };
    let busy = web.pages.iter().enumerate().filter(|(_, page)| page.changes.len() >= 4);
    let mut n_versions = 0;
    for (index, page) in busy.take(40) {
        let url = format!("http://{}.localhost{}", web.sites[page.site].name, page.path);
        for (n, change) in page.changes.iter().take(4).enumerate() {
            let html = web.html(index, 7 * n as u64, change.at);
            let page_text = PageText { url: &url, version: "v", html: &html, subresources: &style };
            assert_eq!(
                analyst.tree(&page_text).without_boxes(),
                analyst.tree_in_full(&page_text).without_boxes(),
                "{url}"
            );
            n_versions += 1;
        }
    }
    let n_by_engine = analyst.n_layouts() - n_versions;
    assert!(
        n_versions >= 100 && 2 * n_by_engine < n_versions,
        "{n_by_engine} of {n_versions} versions were laid out"
    );
}
