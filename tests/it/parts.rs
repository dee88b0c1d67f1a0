//! Pinned and ignored parts of a site's pages, in the crawl, in the backlog and in queries.

use serde_json::Value;

use crate::crawled::Archive;
use crate::web::{Web, html, status};

/// A constant story, a price list that changes once after a number of requests, and a line that changes on every
/// request.
fn shop(n_before_rise: usize) -> Web {
    Web::serve(move |request| match request.path.as_str() {
        "/" => {
            let story: String = (0..8)
                .map(|line| format!("<p>Line {line} of the story: {}</p>", "a word of it ".repeat(20)))
                .collect();
            let price = if request.n_before < n_before_rise {
                "1.10 for milk of the day"
            } else {
                "9.90 for cream and cheese"
            };
            let visitors = ["one", "two", "three", "four", "five", "six", "seven"][request.n_before % 7];
            html(&format!(
                "<main><h1>The story</h1>{story}</main><hr><ul id=prices><li>The price of bread is 3.20</li>\
                 <li>The price is {price}</li><li>The price of salt is 0.90</li></ul>\
                 <footer class=visitors><p>So many people read this page today: {visitors}</p></footer>"
            ))
        }
        _ => status(404),
    })
}

/// Visits the page once an hour for some hours, continuing after the last crawl.
fn crawl(archive: &Archive, hours: u32) {
    let limit = format!("{hours}h");
    let args = "run --no-serve --time-lapse max --start 2026-01-01 --delay 0 --strategy fixed-interval --interval 1h --time-limit";
    let args: Vec<&str> = args.split(' ').chain([limit.as_str()]).collect();
    archive.ended(&args, 15);
}

fn follow(web: &Web, rules: &[&str]) -> Archive {
    let archive = Archive::new();
    archive.ok(&[&["add", &web.url("/"), "--allow-private", "--scope", "page"], rules].concat());
    archive
}

fn changes(archive: &Archive) -> Vec<Value> {
    archive.json(&["changes"]).as_array().unwrap().clone()
}

fn importance(changes: &[Value]) -> f64 {
    changes.iter().map(|change| change["importance"].as_f64().unwrap()).fold(0.0, f64::max)
}

#[test]
fn a_change_in_an_ignored_part_is_not_a_change() {
    let web = shop(usize::MAX);
    let archive = follow(&web, &["--ignore", ".visitors"]);
    crawl(&archive, 6);
    assert!(web.n_requests("/") >= 6);
    assert!(changes(&archive).is_empty(), "{:?}", changes(&archive));
    let latest = format!("{}@", web.url("/"));
    assert!(!archive.ok(&["lab", "segment", &latest]).contains("So many people"));
    let first = format!("{}@2026", web.url("/"));
    let diff = archive.json(&["diff", &first, &latest]);
    assert_eq!(diff["operations"].as_array().map(Vec::len), Some(0), "{diff}");

    let indifferent = follow(&web, &[]);
    crawl(&indifferent, 6);
    assert!(changes(&indifferent).len() >= 4, "the page does change");
    assert!(indifferent.ok(&["lab", "segment", &latest]).contains("So many people"));

    // A second analysis from the captures alone gives the same report.
    std::fs::remove_file(archive.path().join("state.db")).unwrap();
    archive.ok(&["verify", "--rebuild"]);
    assert!(changes(&archive).is_empty(), "{:?}", changes(&archive));
}

#[test]
fn a_change_in_a_pinned_part_counts_more() {
    let found = |rules: &[&str]| {
        let web = shop(3);
        let archive = follow(&web, &[&["--ignore", ".visitors"], rules].concat());
        crawl(&archive, 6);
        let changes = changes(&archive);
        assert_eq!(changes.len(), 1, "{changes:?}");
        importance(&changes)
    };
    let (usual, pinned) = (found(&[]), found(&["--pin", "#prices"]));
    assert!(usual < 0.1 && pinned > 0.3, "{usual} without, {pinned} with a pin");
}

#[test]
fn versions_with_different_settings_are_not_compared() {
    let web = shop(8);
    let archive = follow(&web, &[]);
    crawl(&archive, 4);
    let before = changes(&archive);
    assert!(!before.is_empty());
    archive.ok(&["add", &web.url("/"), "--allow-private", "--scope", "page", "--ignore", ".visitors"]);
    crawl(&archive, 2);
    assert!(web.n_requests("/") >= 6 && web.n_requests("/") <= 8, "the price has not risen yet");
    assert_eq!(changes(&archive), before, "the footer went from what is looked at, not from the page");
    crawl(&archive, 4);
    let after = changes(&archive);
    assert_eq!(after.len(), before.len() + 1, "the price rose: {after:?}");
    let rise = after.iter().find(|change| !before.contains(change)).unwrap();
    assert!(rise["operations"].to_string().contains("cream and cheese"), "{rise}");
}

#[test]
fn a_selector_that_is_not_understood_is_refused() {
    let archive = Archive::new();
    let output = archive.run(&["add", "https://example.org/", "--ignore", "a:hover"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("this pseudo-class is not supported"),
        "{output:?}"
    );
}
