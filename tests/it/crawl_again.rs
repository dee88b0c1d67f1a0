//! Visits after the first: conditional requests, revisits, limits, signals, resuming, virtual time.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perennial_core::time::Timestamp;

use crate::crawled::Archive;
use crate::wait::{dawdle, wait_until};
use crate::web::{Reply, Web, WebRequest, html, status};

fn page(fields: Vec<(&'static str, String)>, body: &str) -> Reply {
    let mut fields = fields;
    fields.push(("Content-Type", "text/html".into()));
    Reply::Page(200, fields, body.as_bytes().to_vec())
}

fn once(archive: &Archive) {
    archive.ok(&["run", "--once", "--delay", "0"]);
}

fn lines(archive: &Archive, url: &str) -> Vec<serde_json::Value> {
    archive.log().into_iter().filter(|line| line["url"] == url).collect()
}

#[test]
fn conditional_requests_give_revisits() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" if request.field("if-none-match") == Some("\"v1\"") => Reply::Page(304, vec![], vec![]),
        "/" => page(vec![("ETag", "\"v1\"".into())], "the same"),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    once(&archive);
    once(&archive);
    let lines = lines(&archive, &web.url("/"));
    assert_eq!(lines[0]["outcome"], "new");
    assert_eq!(lines[1]["status"], 304);
    assert_eq!(
        (lines[1]["outcome"].as_str(), lines[1]["stored"].as_str()),
        (Some("unchanged"), Some("revisit"))
    );
    assert_eq!(lines[1]["conditional"], true);
    archive.verify();
}

#[test]
fn the_same_payload_is_a_revisit() {
    let web = Web::serve(|request| if request.path == "/" { page(vec![], "the same") } else { status(404) });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    once(&archive);
    once(&archive);
    let lines = lines(&archive, &web.url("/"));
    assert_eq!(
        (lines[1]["outcome"].as_str(), lines[1]["stored"].as_str()),
        (Some("unchanged"), Some("revisit"))
    );
}

#[test]
fn a_wrong_304_is_detected() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" if request.field("if-none-match").is_some() => Reply::Page(304, vec![], vec![]),
        "/" => page(vec![("ETag", "\"always\"".into())], &format!("content {}", request.n_before)),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    for _ in 0..8 {
        once(&archive);
    }
    let lines = lines(&archive, &web.url("/"));
    assert_eq!(lines.len(), 8);
    let statuses: Vec<u64> = lines.iter().map(|line| line["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses[1], 304, "trusted at first");
    let found_out = statuses.iter().skip(2).position(|&status| status == 200).unwrap() + 2;
    assert!(found_out <= 5, "{statuses:?}");
    assert!(statuses[found_out..].iter().all(|&status| status == 200), "never trusted again: {statuses:?}");
    assert!(lines[found_out..].iter().all(|line| line["outcome"] == "changed"));
}

#[test]
fn a_last_modified_that_is_always_now_is_given_up() {
    let clock = AtomicUsize::new(0);
    let web = Web::serve(move |request| match request.path.as_str() {
        "/" => {
            let now = clock.fetch_add(1, Ordering::Relaxed);
            page(vec![("Last-Modified", format!("Mon, 16 Nov 2026 03:00:{now:02} GMT"))], "the same")
        }
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    for _ in 0..6 {
        once(&archive);
    }
    let requests = web.requests();
    let conditions: Vec<bool> = requests
        .iter()
        .filter(|request| request.path == "/")
        .map(|request| request.field("if-modified-since").is_some())
        .collect();
    assert_eq!(conditions, [false, true, true, true, false, false]);
}

fn chain(request: &WebRequest, n_pages: usize, delay: Duration) -> Reply {
    match request.path.trim_start_matches("/p").parse::<usize>() {
        Ok(n) if n < n_pages => {
            dawdle(delay);
            html(&format!("<a href=/p{}>next</a> {n} {}", n + 1, "text ".repeat(200)))
        }
        _ => status(404),
    }
}

#[test]
fn limits_end_a_crawl_and_the_next_continues() {
    let web = Web::serve(|request| chain(request, 20, Duration::from_millis(5)));
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/p0"), "--allow-private"]);
    archive.ok(&["run", "--once", "--delay", "0", "--limit", "4"]);
    assert_eq!((web.n_requests("/p3"), web.n_requests("/p4")), (1, 0));
    let by_size = archive.run(&["run", "--once", "--delay", "0", "--size-limit", "3kB"]);
    assert_eq!(by_size.status.code(), Some(14), "{by_size:?}");
    let by_time = archive.run(&["run", "--once", "--delay", "200ms", "--time-limit", "300ms"]);
    assert_eq!(by_time.status.code(), Some(15), "{by_time:?}");
    once(&archive);
    for n in 0..20 {
        assert_eq!(web.n_requests(&format!("/p{n}")), 1, "page {n}");
    }
    archive.verify();
}

#[test]
fn an_interrupt_finishes_fetches_in_flight() {
    let web = Web::serve(|request| chain(request, 50, Duration::from_millis(40)));
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/p0"), "--allow-private"]);
    let mut child = archive.spawn(&["run", "--once", "--delay", "0"]);
    wait_until("the request for the sixth page", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
        web.n_requests("/p5") > 0
    });
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(11));
    assert_eq!(web.n_requests("/p20"), 0);
    once(&archive);
    for n in 0..50 {
        assert_eq!(web.n_requests(&format!("/p{n}")), 1, "page {n}");
    }
    archive.verify();
}

#[test]
fn run_creates_an_archive_and_crawls() {
    let web = Web::serve(|request| chain(request, 3, Duration::ZERO));
    let archive = Archive::new();
    std::fs::remove_dir_all(&archive.root).unwrap();
    for _ in 0..2 {
        archive.ok(&["run", &web.url("/p0"), "--once", "--delay", "0", "--allow-private"]);
    }
    assert_eq!(web.n_requests("/p2"), 2);
    let listed = archive.ok(&["list", "--json"]);
    assert_eq!(listed.matches("/p0").count(), 1, "{listed}");
    archive.verify();
}

#[test]
fn subresources_are_fetched_with_their_page_and_once() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html("<link rel=stylesheet href=/s.css><img src=/i.png><a href=/b>b</a>"),
        "/b" => html("<link rel=stylesheet href=/s.css><img src=/i.png><script src=/j.js></script>"),
        "/s.css" => Reply::Page(
            200,
            vec![("Content-Type", "text/css".into())],
            b"@font-face{src:url(f.woff)}".to_vec(),
        ),
        "/i.png" | "/j.js" | "/f.woff" => Reply::Page(200, vec![], request.path.as_bytes().to_vec()),
        _ => status(404),
    });
    let archive = Archive::new();
    // Pages without text look like shells. No browser may request the subresources again.
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    once(&archive);
    for path in ["/s.css", "/i.png", "/j.js", "/f.woff"] {
        assert_eq!(web.n_requests(path), 1, "{path}");
    }
    once(&archive);
    assert_eq!((web.n_requests("/"), web.n_requests("/s.css")), (2, 1), "subresources are fresh for a day");
}

#[test]
fn time_lapse_runs_days_in_seconds_and_dates_captures_by_them() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html(&format!("version {}", request.n_before)),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    let times = || -> Vec<Timestamp> {
        let lines = lines(&archive, &web.url("/"));
        lines.iter().map(|line| Timestamp::parse(line["time"].as_str().unwrap()).unwrap()).collect()
    };
    archive.lapse("1d", "12d");
    let first = times();
    assert_eq!(first[0], Timestamp::parse("2026-01-01").unwrap());
    let is_a_day = |pair: &[Timestamp]| (23.9..=24.1).contains(&(pair[1] - pair[0]).as_hours_f64());
    assert!(first.windows(2).all(is_a_day), "{first:?}");
    assert!((first[first.len() - 1] - first[0]).as_hours_f64() >= 11.0 * 24.0, "{first:?}");
    archive.lapse("1d", "2d");
    let all = times();
    assert!(
        all.len() > first.len() && all.windows(2).all(is_a_day),
        "virtual time goes on where it was: {all:?}"
    );
}

#[test]
fn time_lapse_is_refused_for_other_hosts() {
    let archive = Archive::new();
    archive.ok(&["add", "https://example.org/"]);
    let output = archive.run(&["run", "--no-serve", "--time-lapse", "100"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("on this machine only"), "{output:?}");
}

#[test]
fn sites_are_added_listed_and_removed() {
    let archive = Archive::new();
    archive.ok(&[
        "add",
        "example.org",
        "https://example.com/a/",
        "--scope",
        "prefix",
        "--depth",
        "2",
        "--exclude",
        "x",
    ]);
    let rows = archive.json(&["list"]);
    assert_eq!(rows[0]["url"], "https://example.org/");
    assert_eq!((rows[1]["scope"].as_str(), rows[1]["depth"].as_u64()), (Some("prefix"), Some(2)));
    archive.ok(&["remove", "example.org"]);
    assert_eq!(archive.json(&["list"]).as_array().unwrap().len(), 1);
    assert!(!archive.run(&["remove", "https://nowhere.example/"]).status.success());
    let wrong = archive.run(&["add", "https://example.org/", "--include", "("]);
    assert!(!wrong.status.success(), "a pattern that cannot be read is refused");
    let text = std::fs::read_to_string(archive.root.join("perennial.toml")).unwrap();
    assert!(text.contains("# The settings of this Perennial archive."), "comments stay: {text}");
}
