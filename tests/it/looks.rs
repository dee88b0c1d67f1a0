//! What a visit showed is one answer: in the log, in the lessons, in patterns, in the schedule, after a restart.

use crate::crawled::Archive;
use crate::web::{Asked, Reply, Web, html, status};

fn of_type(mime: &str, body: String) -> Reply {
    Reply::Page(200, vec![("Content-Type", mime.to_string())], body.into_bytes())
}

/// Pages of every kind. The second half of the visits finds `/leaving` gone and `/pointer` pointing elsewhere.
fn site(asked: &Asked) -> Reply {
    let n = asked.n_before;
    match asked.path.as_str() {
        "/" => html(
            "<h1>All kinds of pages</h1><a href=/report>report</a><a href=/data>data</a><a href=/steady>steady</a>
             <a href=/pointer>pointer</a><a href=/x>x</a><a href=/leaving>leaving</a>",
        ),
        "/report" => of_type("application/pdf", format!("%PDF-1.7 edition {n}")),
        "/data" => of_type("application/json", format!("{{\"edition\": {}}}", n / 2)),
        "/steady" => Reply::Page(302, vec![("Location", "/".into())], Vec::new()),
        "/pointer" => {
            let to = if n < 3 { "/steady" } else { "/" };
            Reply::Page(302, vec![("Location", to.into())], Vec::new())
        }
        "/x" => of_type(
            "application/xhtml+xml",
            format!("<html xmlns='http://www.w3.org/1999/xhtml'><body><h1>News {n}</h1><p>Words that stay.</p></body></html>"),
        ),
        "/leaving" if n < 3 => html("<h1>Leaving soon</h1><p>Read it while it is there.</p>"),
        _ => status(404),
    }
}

const FIRST: i64 = 0;
const SAME: i64 = 1;
const NOISE: i64 = 2;
const CHANGED: i64 = 3;
const UNJUDGED: i64 = 4;
const ABSENT: i64 = 5;
const VANISHED: i64 = 6;
const REDIRECTED: i64 = 7;

#[test]
fn every_look_has_its_lesson_whatever_was_found() {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "9d");
    let of = |path: &str| archive.seen(&web.url(path));
    assert_eq!(of("/")[0], FIRST);
    assert!(of("/")[1..].iter().all(|&seen| seen == SAME));
    // Every answer is another one, and nobody can say how much that matters. In the end it is held for noise.
    let report = of("/report");
    assert!(report.len() >= 30 && report[1..5].iter().all(|&seen| seen == UNJUDGED), "{report:?}");
    assert!(report[5..].iter().all(|&seen| seen == NOISE), "{report:?}");
    assert_eq!(of("/data")[..5], [FIRST, SAME, CHANGED, SAME, CHANGED]);
    // A redirect is no page, and the same while its status and target are. It is looked at after 1, 2 and 4 more days.
    assert_eq!(of("/steady"), [ABSENT; 4]);
    assert_eq!(of("/pointer")[..4], [ABSENT, ABSENT, ABSENT, REDIRECTED]);
    assert_eq!(of("/leaving")[..4], [FIRST, SAME, SAME, VANISHED]);
    assert!(of("/leaving")[4..].iter().all(|&seen| seen == ABSENT));
    let lines = archive.log();
    let redirects: Vec<_> = lines.iter().filter(|line| line["url"] == web.url("/steady")).collect();
    assert!(redirects.iter().all(|line| line["outcome"] == "redirected"), "{redirects:?}");
}

#[test]
fn xhtml_and_documents_without_layout_are_in_patterns_and_schedule() {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("1h", "6h");
    let schedule = archive.ok(&["schedule", "--json", "--at", "2026-01-01T07:00:00Z", "--top", "100"]);
    let patterns = archive.ok(&["patterns", "--json", "--top", "100"]);
    for path in ["/x", "/report", "/data"] {
        let quoted = format!("{:?}", web.url(path));
        assert!(schedule.contains(&quoted), "{path} is not in {schedule}");
        assert!(patterns.contains(&quoted), "{path} is not in {patterns}");
    }
}

/// A restart in the middle, with the state made anew, ends with the lessons of a crawl that nobody disturbed.
#[test]
fn a_restart_changes_nothing_of_what_is_believed() {
    let lessons = |disturb: bool| {
        let web = Web::serve(site);
        let archive = Archive::new();
        archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
        archive.lapse("1h", "3h");
        if disturb {
            archive.ok(&["verify", "--rebuild"]);
        }
        archive.lapse("1h", "3h");
        let paths = ["/", "/report", "/data", "/steady", "/pointer", "/x", "/leaving"];
        paths.map(|path| archive.seen(&web.url(path)))
    };
    assert_eq!(lessons(true), lessons(false));
}
