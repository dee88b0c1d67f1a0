//! The server's pages that people read first: changes, search, comparisons. They contain no script of the archived
//! pages, nor anything else from hostile ones.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::http::Request;
use perennial_archive::Archive as Library;
use perennial_server::{Options, Origin, Origins, Server, router};

use crate::crawled::Archive;
use crate::web::{Reply, Web, WebRequest, html, status};

const HOSTILE: &str = "</title><script>alert(1)</script>";

/// `/limits` changes a number at its third visit, `/gone` vanishes at the next, and the titles are hostile.
fn site(request: &WebRequest) -> Reply {
    match (request.path.as_str(), request.n_before) {
        ("/", _) => {
            html("<title>Front</title><h1>Front</h1><a href=/limits>Limits</a> <a href=/gone>Plan</a>")
        }
        ("/limits", n) => {
            let limit = if n < 2 { "thirty" } else { "fifty" };
            let page = format!(
                "<title>Limits &lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;</title><h1>Limits</h1><p>Cars on the ring \
                 road must not drive faster than {limit} kilometres an hour, says the city, from Monday on and until further notice.</p>"
            );
            html(&page)
        }
        ("/gone", 0..3) => {
            html("<title>Flood plan</title><h1>Flood plan</h1><p>What to do when the river rises.</p>")
        }
        _ => status(404),
    }
}

pub(crate) struct TestDashboard {
    server: Arc<Server>,
    runtime: tokio::runtime::Runtime,
}

impl TestDashboard {
    pub(crate) fn of(archive: &Archive) -> TestDashboard {
        let options = Options::on_loopback("127.0.0.1:0".parse().unwrap());
        let origins = Origins { main: "http://127.0.0.1:1".into(), replay: "http://127.0.0.1:2".into() };
        let server = Server::new(vec![Library::open(&archive.root).unwrap()], options, origins).unwrap();
        TestDashboard { server, runtime: tokio::runtime::Builder::new_current_thread().build().unwrap() }
    }

    /// The target of a redirect.
    fn location(&self, path: &str) -> String {
        let (parts, ()) = Request::get(path).header("Host", "127.0.0.1:1").body(()).unwrap().into_parts();
        let response = router::route(&self.server, Origin::Main, &parts).unwrap();
        assert_eq!(response.status(), 302, "{path}");
        response.headers()["location"].to_str().unwrap().to_string()
    }

    /// The page, its status and its policy.
    pub(crate) fn get(&self, path: &str) -> (u16, String, String) {
        let request = Request::get(path).header("Host", "127.0.0.1:1").body(()).unwrap();
        let (parts, ()) = request.into_parts();
        let response = router::route(&self.server, Origin::Main, &parts)
            .unwrap_or_else(|problem| problem.into_response(false));
        let (status, policy) =
            (response.status().as_u16(), response.headers().get("content-security-policy"));
        let policy = policy.map(|policy| policy.to_str().unwrap().to_string()).unwrap_or_default();
        let body = self.runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap(), policy)
    }
}

/// The time of the earliest change on home, in seconds since 1970.
fn oldest_of(home: &str) -> i64 {
    let entries = home.split("<article").skip(1);
    let times = entries.filter_map(|entry| entry.split("datetime=\"").nth(1)?.split('"').next());
    let times = times.map(|time| perennial_core::time::Timestamp::parse(time).unwrap().as_secs());
    times.min().unwrap()
}

#[test]
fn what_changed_is_shown_in_words_and_can_be_compared_and_searched() {
    let web = Web::serve(site);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "1d");
    let face = TestDashboard::of(&archive);

    let (status, home, policy) = face.get("/?since=7d&least=0.01");
    assert_eq!(status, 200, "{home}");
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("script-src"), "{policy}");
    assert!(!home.contains("<script") && !home.contains(HOSTILE), "{home}");
    assert!(home.contains("<h1>2 important page changes</h1>"), "{home}");
    assert!(home.contains("<del>thirty</del>") && home.contains("<ins>fifty</ins>"), "{home}");
    assert!(home.contains("The page has vanished"), "{home}");
    // A page has the same index threshold everywhere.
    let limits = web.url("/limits");
    let page: serde_json::Value =
        serde_json::from_str(&face.get(&format!("/page?url={limits}&format=json")).1).unwrap();
    let pattern = &archive.json(&["plan", "patterns", &limits])[0];
    assert!(page["index_threshold"].as_f64().unwrap() > 0.0, "{page}");
    assert_eq!(pattern["index_threshold"], page["index_threshold"]);
    // Home shows which part of the page changed, and links to a rule for such changes.
    assert!(
        home.contains("<span>main text</span>") && home.contains("href=\"/notices?least=0.01\""),
        "{home}"
    );
    // A returning reader sees the changes since the last visit.
    assert!(!home.contains("since your last visit"), "{home}");
    let (parts, ()) = Request::get("/?since=7d&least=0.01")
        .header("Host", "127.0.0.1:1")
        .header("Cookie", format!("perennial_looked_1=0.{}.0", oldest_of(&home) + 1))
        .body(())
        .unwrap()
        .into_parts();
    let again = router::route(&face.server, Origin::Main, &parts).unwrap();
    assert!(again.headers()["set-cookie"].to_str().unwrap().starts_with("perennial_looked_1="));
    let again = face.runtime.block_on(again.into_body().collect()).unwrap().to_bytes();
    assert_eq!(String::from_utf8_lossy(&again).matches("since your last visit").count(), 1);
    let (status, notices, _) = face.get("/notices?place=http%3A%2F%2Fa.example%2Fit's&least=0.2");
    assert!(status == 200 && notices.contains("place = &quot;http://a.example/it's&quot;"), "{notices}");
    assert!(
        notices.contains("/changes.atom?place=http%3A%2F%2Fa.example%2Fit%27s&amp;least=0.2"),
        "{notices}"
    );
    assert_eq!(face.get("/notices?least=7").0, 400);
    let compare = home
        .split("href=\"")
        .find(|part| part.starts_with("/web/diff/") && part.contains("/limits"))
        .unwrap();

    let (status, diff, policy) = face.get(compare.split('"').next().unwrap());
    assert_eq!(status, 200, "{diff}");
    assert!(diff.contains("thirty") && diff.contains("fifty"), "{diff}");
    // One script, which is ours and which the policy names by its hash.
    assert!(diff.matches("<script").count() == 1 && policy.contains("script-src 'sha256-"), "{policy}");

    let (_, found, _) = face.get("/search?q=%22must+not+drive+faster%22");
    assert!(
        found.contains("<mark>must not drive faster</mark>")
            && found.contains("still there at the last capture"),
        "{found}"
    );
    // A narrower search shows how much text it skips and which pages it loses.
    assert!(!found.contains("Important versions only"), "{found}");
    let (_, narrow, _) = face.get("/search?q=%22must+not+drive+faster%22&important=1");
    assert!(narrow.contains("of text searched. It misses no page."), "{narrow}");
    let (_, gone, _) = face.get("/search?q=river&vanished=1");
    assert!(gone.contains("removed between") && gone.contains("Flood plan"), "{gone}");
    for (path, hint) in [
        ("/search?q=-river", "only excluded words"),
        ("/search?q=%3Cscript%3E", "No page contained these words"),
        ("/search", "The search covers everything"),
        ("/?site=nowhere.example", "<h1>0 important page changes"),
    ] {
        let (status, page, _) = face.get(path);
        assert!(status == 200 && page.contains(hint) && !page.contains("<script"), "{path}: {page}");
    }
    for path in
        ["/web/diff/1/2", "/web/diff/x/2026/http://a.example/", "/web/diff/2026/2027/file:///etc/passwd"]
    {
        let (status, page, _) = face.get(path);
        assert!((400..500).contains(&status), "{path}: {status} {page}");
    }
}

#[test]
fn a_comparison_stands_among_all_versions_of_its_page() {
    let web = Web::serve(|request| match request.n_before {
        n if request.path == "/" => html(&format!(
            "<title>Ferry</title><h1>Ferry</h1><p>The ferry leaves the old harbour at {} every morning of the week, says the company.</p>",
            ["six", "seven", "eight", "nine"][n.min(3)]
        )),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive.lapse("6h", "1d");
    let face = TestDashboard::of(&archive);
    let url = web.url("/");
    let last = face.location(&format!("/web/changes/{url}"));
    let (status, page, _) = face.get(&last);
    assert_eq!(status, 200, "{last}: {page}");
    assert!(page.contains("eight") && page.contains("nine") && page.contains("rel=\"prev\""), "{page}");
    assert!(!page.contains("rel=\"next\"") && !page.contains("T00:"), "{page}");
    // Links to the site and the page, a handle for each version, and every change as a link.
    for part in ["href=\"/site/", "href=\"/page?url=", "name=\"before\"", "name=\"after\"", "Importance 0."] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let n_links = page.matches("tabindex=\"-1\"><line").count();
    assert_eq!(n_links, 3, "{page}");
    let earlier = page.split("rel=\"prev\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let (_, before, _) = face.get(earlier);
    assert!(before.contains("seven") && before.contains("rel=\"next\""), "{before}");
    // The handles select the closest versions, in either order.
    let times = page.split("data-times=\"").nth(1).unwrap().split('"').next().unwrap();
    let times: Vec<i64> = times.split(' ').map(|time| time.parse().unwrap()).collect();
    let compare_path = |before: i64, after: i64| {
        face.location(&format!("/web/changes?url={url}&before={before}&after={after}"))
    };
    let whole = compare_path(times[0] + 60, times[times.len() - 1] - 60);
    assert_eq!(whole, compare_path(times[times.len() - 1], times[0]));
    let (_, whole, _) = face.get(&whole);
    assert!(whole.contains("six") && whole.contains("nine") && !whole.contains("seven"), "{whole}");
    // Two handles at one place do not compare a version with itself.
    let (status, _, _) = face.get(&compare_path(times[0], times[0]));
    assert_eq!(status, 200);
    assert!((400..500).contains(&face.get("/web/changes/http://nowhere.example/").0));
    assert_eq!(face.get("/web/changes?before=1&after=2").0, 400);
}
