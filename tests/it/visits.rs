//! Every visit is classified correctly: pages that vanish, move, return, pretend to exist, or never existed. The
//! server's list of requests is the reference.

use serde_json::Value;

use crate::crawled::Archive;
use crate::dashboard_pages::TestDashboard;
use crate::web::{Reply, Web, WebRequest, html, redirect, status};

const STORY: &str = "<title>Flood plan</title><h1>Flood plan</h1><p>What the city does when the river rises, street by \
    street, with telephone numbers of those who help.</p>";

fn soft_error() -> Reply {
    html(
        "<title>Example City</title><nav><a href=/>Home</a></nav><h1>Page not found</h1><p>Try our search.</p>",
    )
}

/// `/plan` exists at first, is gone, and returns. `/old` moves to the home page. `/soft` reports "gone" with status
/// 200. `/dead/...` never existed. `/index.html` is the front page.
fn site(request: &WebRequest) -> Reply {
    let home = "<h1>Example City</h1><a href=/plan>plan</a><a href=/old>old</a><a href=/soft>soft</a>
        <a href=/index.html>home</a><a href=/dead/0>dead</a>";
    match (request.path.as_str(), request.n_before) {
        ("/" | "/index.html", _) => html(home),
        ("/plan", 4 | 5) => status(404),
        ("/plan", _) => html(STORY),
        ("/old", 0..3) => html(&STORY.replace("Flood", "Fire")),
        ("/old", _) => redirect("/"),
        ("/soft", 0..3) => html(&STORY.replace("Flood", "Heat")),
        ("/soft", _) => soft_error(),
        _ => status(404),
    }
}

fn crawled(web: &Web, interval: &str, time: &str) -> Archive {
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse(interval, time);
    archive
}

/// The kinds of all changes of a page, in chronological order.
fn kinds(archive: &Archive, url: &str) -> Vec<String> {
    let changes = archive.json(&["changes", url]);
    changes.as_array().unwrap().iter().map(|change| change["kind"].as_str().unwrap().to_string()).collect()
}

#[test]
fn vanished_moved_and_returned_pages_are_reported() {
    let web = Web::serve(site);
    let archive = crawled(&web, "6h", "9d");
    assert_eq!(kinds(&archive, &web.url("/plan")), ["vanished", "returned"]);
    assert_eq!(kinds(&archive, &web.url("/old")), ["redirected"]);
    assert_eq!(kinds(&archive, &web.url("/soft")), ["vanished"]);
    let all = archive.json(&["changes", "--kind", "vanished", "--sort", "importance"]);
    let vanished: Vec<&str> = all.as_array().unwrap().iter().map(|c| c["url"].as_str().unwrap()).collect();
    assert_eq!(vanished.len(), 2, "{all}");
    for change in all.as_array().unwrap() {
        assert_eq!(change["importance"], 1.0, "a page that vanished is as important as all that it held");
        assert!(change["title"].as_str().is_some_and(|title| title.ends_with("plan")), "{change}");
    }
    let moved = &archive.json(&["changes", "--kind", "redirected"])[0];
    assert_eq!(moved["redirects_to"], web.url("/"), "{moved}");
    let text = archive.ok(&["changes", &web.url("/old")]);
    assert!(
        text.contains("redirected") && text.contains(&format!("redirects to {}", web.url("/"))),
        "{text}"
    );
}

#[test]
fn vanished_pages_are_known_after_a_rebuild() {
    let web = Web::serve(site);
    let archive = crawled(&web, "6h", "9d");
    let of = |archive: &Archive| archive.json(&["changes"]);
    let before = of(&archive);
    archive.ok(&["verify", "--rebuild"]);
    archive.ok(&["analyse"]);
    assert_eq!(of(&archive), before);
}

#[test]
fn a_url_without_a_page_is_tried_rarely() {
    let web = Web::serve(site);
    let archive = crawled(&web, "6h", "9d");
    // At once, and after 1, 2 and 4 more days.
    assert_eq!(web.n_requests("/dead/0"), 4);
    assert!(web.n_requests("/") >= 35, "{}", web.n_requests("/"));
    // `/index.html` has the bytes of `/`: it is an alias.
    assert_eq!(web.n_requests("/index.html"), 4);
    archive.verify();
}

#[test]
fn dead_links_get_a_small_share_of_a_budget() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => {
            let dead: String = (0..200).map(|n| format!("<a href=/dead/{n}>{n}</a>")).collect();
            let live: String = (0..40).map(|n| format!("<a href=/live/{n}>{n}</a>")).collect();
            html(&format!("<h1>Links</h1>{live}{dead}"))
        }
        path if path.starts_with("/live/") => {
            html(&format!("<h1>Page {path}, edition {}</h1>", request.n_before))
        }
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    let clock = ["run", "--no-serve", "--time-lapse", "max", "--start", "2026-01-01", "--delay", "0"];
    archive.ended(&[&clock[..], &["--budget", "10/h", "--time-limit", "7d"]].concat(), 15);
    let requests = web.requests();
    let dead = requests.iter().filter(|request| request.path.starts_with("/dead/")).count();
    let live = requests.iter().filter(|request| request.path.starts_with("/live/")).count();
    // Four visits show that links into that folder are dead. The other URLs wait for their share.
    assert!(dead * 100 <= 3 * (dead + live), "{dead} of {}", dead + live);
}

#[test]
fn new_pages_of_known_sites_are_reported_but_first_captures_are_not() {
    let web = Web::serve(|request| match (request.path.as_str(), request.n_before) {
        ("/", 0..3) => html("<h1>News</h1><a href=/old>Old story</a>"),
        ("/", _) => html("<h1>News</h1><a href=/old>Old story</a><a href=/new>New story</a>"),
        ("/old", _) => html("<title>Old story</title><h1>Old story</h1><p>Words.</p>"),
        ("/new", _) => html("<title>New story</title><h1>New story</h1><p>Other words.</p>"),
        _ => status(404),
    });
    let archive = crawled(&web, "6h", "2d");
    let new = archive.json(&["changes", "--kind", "new"]);
    let urls: Vec<&Value> = new.as_array().unwrap().iter().map(|change| &change["url"]).collect();
    assert_eq!(urls, [&Value::from(web.url("/new"))]);
    assert_eq!(new[0]["title"], "New story");
    // The importance is the same on every page that shows it.
    let face = TestDashboard::of(&archive);
    let importance = |path: &str, list: &str| {
        let page: Value = serde_json::from_str(&face.get(path).1).unwrap();
        let mut changes = page[list].as_array().unwrap().iter();
        changes.find(|change| change["url"] == web.url("/new")).unwrap()["importance"].clone()
    };
    assert_eq!(new[0]["importance"], 1.0);
    assert_eq!(importance("/?since=7d&format=json", "pages"), 1.0, "home");
    assert_eq!(importance("/api/changes", "changes"), 1.0, "changes");
    let page = face.get(&format!("/page?url={}&format=json", web.url("/new"))).1;
    let page: Value = serde_json::from_str(&page).unwrap();
    let first = page["versions"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(first["importance"], 1.0, "page");
}

/// `/first` and `/second` are in the sitemap and the feed. `/named` is in the sitemap only, `/told` in the feed only.
/// No page links to either.
fn announcing_site(request: &WebRequest) -> Reply {
    let typed = |mime: &str, body: String| {
        Reply::Page(200, vec![("Content-Type", mime.to_string())], body.into_bytes())
    };
    match (request.path.as_str(), request.n_before) {
        ("/", n) => html(&format!(
            "<title>Front</title><link rel=alternate type=application/rss+xml href=/feed.xml><h1>Front {n}</h1>"
        )),
        ("/sitemap.xml", n) => {
            let names: &[&str] = if n < 2 { &["first", "second"] } else { &["first", "second", "named"] };
            let entry = |name: &&str| format!("<url><loc>/{name}</loc></url>");
            let entries: String = names.iter().map(entry).collect();
            typed("application/xml", format!("<urlset>{entries}</urlset>"))
        }
        ("/feed.xml", n) => {
            let names: &[&str] = if n < 2 { &["first", "second"] } else { &["told", "first", "second"] };
            let item = |name: &&str| format!("<item><title>{name}</title><link>/{name}</link></item>");
            let items: String = names.iter().map(item).collect();
            typed("application/rss+xml", format!("<rss version=\"2.0\"><channel>{items}</channel></rss>"))
        }
        ("/first" | "/second" | "/named" | "/told", _) => {
            html(&format!("<title>{0}</title><h1>Page {0}</h1><p>Words of its own.</p>", request.path))
        }
        _ => status(404),
    }
}

#[test]
fn a_page_found_by_sitemap_or_feed_only_is_new_too() {
    let web = Web::serve(announcing_site);
    let archive = crawled(&web, "6h", "4d");
    let new = |archive: &Archive| {
        let rows = archive.json(&["changes", "--kind", "new"]);
        let urls = rows.as_array().unwrap().iter().map(|change| change["url"].as_str().unwrap().to_owned());
        urls.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(new(&archive), [web.url("/named"), web.url("/told")].into());
    archive.ok(&["verify", "--rebuild"]);
    archive.ok(&["analyse"]);
    assert_eq!(new(&archive), [web.url("/named"), web.url("/told")].into(), "after a rebuild");
}

#[test]
fn changes_show_differing_words_and_reject_unknown_sites() {
    let web = Web::serve(|request| match (request.path.as_str(), request.n_before) {
        ("/", n) => html(&format!(
            "<title>Limits {}</title><h1>Limits</h1><p>The limit for cars on the ring road is {} km/h from Monday on.</p>",
            n / 3,
            50 + 10 * (n / 2)
        )),
        _ => status(404),
    });
    let archive = crawled(&web, "6h", "2d");
    let text = archive.ok(&["changes", &web.url("/"), "--limit", "100"]);
    assert!(text.contains("[50 => 60] km/h"), "{text}");
    assert!(kinds(&archive, &web.url("/")).contains(&"retitled".to_string()), "{text}");
    for change in archive.json(&["changes", &web.url("/")]).as_array().unwrap() {
        let at = |field: &str| {
            let digits = change[field].as_str().unwrap().chars().filter(char::is_ascii_digit);
            format!("{}@{}", web.url("/"), digits.collect::<String>())
        };
        let diff = archive.json(&["diff", &at("before"), &at("after")]);
        assert_eq!(diff["importance"], change["importance"], "the same two versions, the same number");
    }
    let one = archive.json(&["changes", "--sort", "importance", "--limit", "1"]);
    assert_eq!(one.as_array().unwrap().len(), 1);
    let output = archive.run(&["changes", "unknown.example"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("does not contain the site unknown.example"), "{said}");
}

#[test]
fn rewritten_headlines_are_listed_alone() {
    let home = |first: usize, bridge: &str| {
        let story = |n: usize| match n {
            5 => format!(
                "<article><h2><a href=\"/news/{n}-bridge-of-the-harbour\">{bridge}</a></h2></article>"
            ),
            _ => format!(
                "<article><h2><a href=\"/news/{n}-story-of-the-day\">Council number {n} decides about the old market hall</a></h2></article>"
            ),
        };
        html(&format!(
            "<title>Front</title><main>{}</main>",
            (first..first + 12).map(story).collect::<String>()
        ))
    };
    let web = Web::serve(move |request| match (request.path.as_str(), request.n_before) {
        ("/", 0) => home(3, "Mayor may resign over the harbour bridge"),
        ("/", _) => home(0, "Mayor to resign over the harbour bridge"),
        _ => status(404),
    });
    let archive = crawled(&web, "6h", "12h");
    let all = archive.ok(&["changes", &web.url("/")]);
    assert!(all.contains("1 retitled") && all.contains("decides about"), "{all}");
    let rewritten = archive.ok(&["changes", "--kind", "retitled"]);
    assert!(rewritten.contains("Mayor [may => to] resign"), "{rewritten}");
    assert!(!rewritten.contains("decides about"), "{rewritten}");
}

#[test]
fn kept_versions_and_refusals_are_classified() {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--renderer", "layout"]);
    // A loopback address is refused until the user allows it.
    archive.run(&["run", "--once", "--delay", "0"]);
    assert_eq!(web.requests().len(), 0);
    let refused = archive.ok(&["log"]);
    assert!(refused.contains("127.0.0.1, a loopback address: refused"), "{refused}");
    archive.ok(&["run", &web.url("/"), "--allow-private", "--once", "--delay", "0"]);
    let n_requests = web.n_requests("/plan");
    assert_eq!(n_requests, 1, "what was refused is fetched as soon as it may be");
    archive.ok(&["run", "--once", "--delay", "0"]);
    assert_eq!(web.n_requests("/plan"), 2, "the next crawl allows it too");
    let log = archive.log();
    assert!(log.iter().skip(1).all(|line| line["error"] != "guarded"), "{log:?}");
    for other in ["mailto:a@example.org", "ftp://example.org/", "javascript:alert(1)"] {
        assert!(!archive.run(&["add", other]).status.success(), "{other}");
    }
}

#[test]
fn a_server_receives_the_time_of_a_time_lapse() {
    let web = Web::serve(site);
    let archive = crawled(&web, "6h", "1d");
    let heard = |request: &WebRequest| request.field("perennial-time").map(str::to_string);
    let times: Vec<String> =
        web.requests().iter().filter(|request| request.path == "/").filter_map(heard).collect();
    assert!(times.len() >= 4 && times[0].starts_with("2026-01-01T00:"), "{times:?}");
    assert!(times.is_sorted() && times[3].as_str() > "2026-01-01T12", "{times:?}");
    archive.verify();
}
