//! The crawl against misbehaving servers: every case has a defined and recorded outcome, and the crawl continues.

use crate::crawled::{Archive, gzip};
use crate::web::{Reply, Web, WebRequest, html, redirect, status};

/// Short limits end endless responses soon.
const SHORT: &str = "\n[crawl]\nconnect_timeout_secs = 2\nhead_timeout_secs = 1.0\ntotal_timeout_secs = 4\n\
    drip_window_secs = 0.5\nmin_bytes_per_window = 100\nmax_body_bytes = 300000\nfirst_backoff_secs = 0.05\n\
    max_backoff_secs = 0.2\nmax_tries = 2\nmax_wait_secs = 5\n";

fn head(fields: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n").into_bytes()
}

fn with(mut head: Vec<u8>, body: &[u8]) -> Vec<u8> {
    head.extend_from_slice(body);
    head
}

const CASES: [&str; 23] = [
    "fine",
    "drip",
    "endless",
    "short",
    "long",
    "chunk-broken",
    "chunk-cut",
    "gzip-broken",
    "gzip-bomb",
    "gzip-fine",
    "silence",
    "close",
    "not-http",
    "huge-head",
    "loop-a",
    "to-private",
    "to-metadata",
    "429",
    "500",
    "cookie",
    "charset",
    "no-type",
    "chunk-fine",
];

fn misbehave(request: &WebRequest) -> Reply {
    let link = |name: &str| format!("<a href=\"/after-{name}\">on</a>");
    match request.path.as_str() {
        "/" => html(&CASES.map(|case| format!("<a href=\"/{case}\">{case}</a>\n")).concat()),
        "/robots.txt" => status(404),
        "/sitemap.xml" => status(404),
        "/fine" => html(&link("fine")),
        "/drip" => Reply::Drip(head("Content-Length: 99999\r\n"), b'x'),
        "/endless" => Reply::Endless(head(""), vec![b'y'; 8192]),
        "/short" => Reply::Raw(with(head("Content-Length: 5000\r\n"), link("short").as_bytes())),
        "/long" => Reply::Raw(with(head("Content-Length: 3\r\n"), b"abcdefgh")),
        "/chunk-broken" => {
            Reply::Raw(with(head("Transfer-Encoding: chunked\r\n"), b"5\r\nhello\r\nnonsense\r\n"))
        }
        "/chunk-cut" => Reply::Raw(with(head("Transfer-Encoding: chunked\r\n"), b"50\r\nhello")),
        "/chunk-fine" => {
            let body = link("chunk-fine");
            let (one, two) = body.split_at(10);
            let chunks = format!("{:x}\r\n{one}\r\n{:X};ext=1\r\n{two}\r\n0\r\n\r\n", one.len(), two.len());
            Reply::Raw(with(head("Transfer-Encoding: chunked\r\n"), chunks.as_bytes()))
        }
        "/gzip-fine" => {
            Reply::Raw(with(head("Content-Encoding: gzip\r\n"), &gzip(link("gzip-fine").as_bytes())))
        }
        "/gzip-broken" => {
            Reply::Raw(with(head("Content-Encoding: gzip\r\n"), b"\x1f\x8b\x08\x00broken bytes"))
        }
        "/gzip-bomb" => Reply::Raw(with(head("Content-Encoding: gzip\r\n"), &gzip(&vec![0; 40_000_000]))),
        "/silence" => Reply::Silence,
        "/close" => Reply::Close,
        "/not-http" => Reply::Raw(b"220 mail.example.org ESMTP\r\n".to_vec()),
        "/huge-head" => Reply::Endless(
            b"HTTP/1.1 200 OK\r\n".to_vec(),
            b"X-Fill: aaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(50),
        ),
        "/loop-a" => redirect("/loop-b"),
        "/loop-b" => redirect("/loop-a"),
        "/to-private" => redirect("http://127.0.0.2:9/secret"),
        "/to-metadata" => redirect("http://169.254.169.254/latest/meta-data/"),
        "/429" if request.n_before == 0 => {
            Reply::Page(429, vec![("Retry-After", "0".into())], b"wait".to_vec())
        }
        "/429" => html(&link("429")),
        "/500" => status(500),
        "/cookie" if request.field("cookie").is_none() => {
            let fields = vec![("Set-Cookie", "seen=1".into()), ("Location", "/cookie?again".into())];
            Reply::Page(302, fields, Vec::new())
        }
        "/charset" => {
            let body = b"<meta charset=windows-1251><a href=\"/after-charset\">\xcf\xf0\xe8\xe2\xe5\xf2</a>";
            Reply::Page(200, vec![("Content-Type", "text/html; charset=windows-1251".into())], body.to_vec())
        }
        "/no-type" => Reply::Raw(b"HTTP/1.0 200\n\nplain".to_vec()),
        path if path.starts_with("/after-") => html("<p>reached</p>"),
        path if path.starts_with("/cookie?") => redirect("/cookie"),
        _ => status(404),
    }
}

#[test]
fn every_misbehaviour_has_a_defined_outcome() {
    let web = Web::serve(misbehave);
    let archive = Archive::new();
    archive.append_settings(SHORT);
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    let summary = archive.json(&["run", "--once", "--delay", "0", "--connections", "8"]);
    assert_eq!(summary["end"], "done");
    let log = archive.log();
    let last = |path: &str| {
        let url = if path.starts_with("http") { path.to_string() } else { web.url(path) };
        let line = log.iter().rev().find(|line| line["url"] == url.as_str());
        line.unwrap_or_else(|| panic!("{path} is not in the log")).clone()
    };
    let check = |path: &str, outcome: &str, error: Option<&str>, truncated: Option<&str>| {
        let line = last(path);
        assert_eq!(line["outcome"], outcome, "{line}");
        assert_eq!(line["error"].as_str(), error, "{line}");
        assert_eq!(line["truncated"].as_str(), truncated, "{line}");
    };
    check("/fine", "new", None, None);
    check("/drip", "new", None, Some("time"));
    check("/endless", "new", None, Some("length"));
    check("/short", "failed", Some("disconnected"), Some("disconnect"));
    check("/long", "new", None, None);
    check("/chunk-broken", "failed", Some("disconnected"), Some("disconnect"));
    check("/chunk-cut", "failed", Some("disconnected"), Some("disconnect"));
    check("/chunk-fine", "new", None, None);
    check("/gzip-fine", "new", None, None);
    check("/gzip-broken", "new", None, None);
    check("/gzip-bomb", "new", None, None);
    check("/silence", "failed", Some("timeout"), None);
    check("/close", "failed", Some("disconnected"), None);
    check("/not-http", "failed", Some("not-http"), None);
    check("/huge-head", "failed", Some("head-too-large"), None);
    check("/loop-a", "redirected", None, None);
    check("/loop-b", "redirected", None, None);
    check("http://127.0.0.2:9/secret", "failed", Some("guarded"), None);
    check("http://169.254.169.254/latest/meta-data/", "failed", Some("guarded"), None);
    check("/429", "new", None, None);
    check("/500", "failed", Some("server-error"), None);
    check("/cookie", "redirected", None, None);
    check("/no-type", "new", None, None);
    for reached in ["fine", "short", "chunk-fine", "gzip-fine", "429", "charset"] {
        check(&format!("/after-{reached}"), "new", None, None);
    }
    assert_eq!((web.n_requests("/loop-a"), web.n_requests("/loop-b")), (1, 1));
    assert_eq!(web.n_requests("/500"), 2, "tried max_tries times");
    archive.verify();
}

#[test]
fn robots_txt_of_every_kind() {
    let rules = |text: &'static str| {
        move |request: &WebRequest| match request.path.as_str() {
            "/robots.txt" => {
                Reply::Page(200, vec![("Content-Type", "text/plain".into())], text.as_bytes().to_vec())
            }
            "/" => html("<a href=/private/x>x</a><a href=/public>p</a>"),
            _ => html("text"),
        }
    };
    let n_private = |web: &Web, settings: &str| {
        let archive = Archive::new();
        archive.append_settings(SHORT);
        archive.append_settings(settings);
        archive.ok(&["add", &web.url("/"), "--allow-private"]);
        archive.ok(&["run", "--once", "--delay", "0"]);
        (web.n_requests("/private/x"), web.n_requests("/public"))
    };
    let web =
        Web::serve(rules("User-agent: perennial/0.1\nDisallow: /private/\n\nUser-agent: *\nDisallow: /\n"));
    assert_eq!(n_private(&web, ""), (0, 1));
    let web = Web::serve(rules("User-agent: *\nDisallow: /private/\n"));
    assert_eq!(n_private(&web, "[crawl]\nrobots = false\n"), (1, 1));
    let web = Web::serve(rules("<html><body>Welcome to our site</body></html>"));
    assert_eq!(n_private(&web, ""), (1, 1));
    let big = move |request: &WebRequest| match request.path.as_str() {
        "/robots.txt" => {
            let filler = b"# filler filler filler filler filler\n".repeat(100);
            Reply::Endless(b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\nDisallow: /private/\n".to_vec(), filler)
        }
        path => rules("")(&WebRequest {
            method: "GET".into(),
            path: path.into(),
            fields: Default::default(),
            body: Vec::new(),
            n_before: 0,
        }),
    };
    assert_eq!(n_private(&Web::serve(big), ""), (0, 1));
    for broken in [|| status(503), || Reply::Silence, || Reply::Close] {
        let web = Web::serve(move |request| match request.path.as_str() {
            "/robots.txt" => broken(),
            _ => html("<a href=/private/x>x</a><a href=/public>p</a>"),
        });
        assert_eq!(n_private(&web, ""), (0, 0), "nothing may be fetched while robots.txt cannot be read");
        assert_eq!(web.n_requests("/"), 0);
    }
}

#[test]
fn a_dead_host_does_not_stall_the_others() {
    let good = Web::serve(|request| match request.path.as_str() {
        "/" => html(&(0..20).map(|n| format!("<a href=/p{n}>p</a>")).collect::<String>()),
        "/robots.txt" | "/sitemap.xml" => status(404),
        _ => html("fine"),
    });
    let dead = Web::serve(|_| Reply::Silence);
    let archive = Archive::new();
    archive.append_settings(SHORT);
    archive.ok(&["add", &good.url("/"), &dead.url("/"), "--allow-private"]);
    let summary = archive.json(&["run", "--once", "--delay", "0"]);
    assert_eq!(summary["n_new"], 21);
    assert!(summary["errors"]["timeout"].as_u64().unwrap() >= 1);
    let log = archive.log();
    let first_timeout = log.iter().position(|line| line["error"] == "timeout").unwrap();
    assert!(first_timeout > 20, "all pages of the good host come while the dead one is waited for");
}

#[test]
fn retry_after_and_backoff_are_respected() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html("<a href=/busy>b</a>"),
        "/busy" if request.n_before == 0 => {
            Reply::Page(503, vec![("Retry-After", "1".into())], b"busy".to_vec())
        }
        "/busy" => html("now"),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.append_settings(SHORT.replace("max_backoff_secs = 0.2", "max_backoff_secs = 60").as_str());
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    let log = archive.log();
    let busy: Vec<_> = log.iter().filter(|line| line["url"] == web.url("/busy").as_str()).collect();
    assert_eq!(busy.len(), 2);
    assert_eq!((busy[0]["status"].as_u64(), busy[0]["outcome"].as_str()), (Some(503), Some("failed")));
    assert_eq!((busy[1]["status"].as_u64(), busy[1]["outcome"].as_str()), (Some(200), Some("new")));
    assert!(busy[0]["time"].as_str() < busy[1]["time"].as_str(), "a second lies between: {busy:?}");
}

#[test]
fn traps_are_bounded() {
    let web = Web::serve(|request| {
        let path = request.path.clone();
        match path.as_str() {
            "/" => html(
                "<a href=/nest/>n</a><a href=/cal/2026/11>c</a><a href=/s?PHPSESSID=1a2b3c4d5e6f7a8b>s</a><a href=/chain/0>c</a>",
            ),
            "/robots.txt" | "/sitemap.xml" => status(404),
            _ if path.starts_with("/nest") => html("<a href=\"nest/\">deeper</a>"),
            _ if path.starts_with("/cal/") => {
                let mut parts = path.trim_start_matches("/cal/").split('/');
                let year: i32 = parts.next().unwrap().parse().unwrap();
                html(&format!("<a href=/cal/{}/11>next</a><a href=/cal/{}/11>before</a>", year + 1, year - 1))
            }
            _ if path.starts_with("/s") => {
                html(&format!("<a href=/s?PHPSESSID={:016x}7a>again</a>", request.n_before + 77_000_001))
            }
            _ if path.starts_with("/chain/") => {
                let n: u32 = path.trim_start_matches("/chain/").parse().unwrap();
                html(&format!("<a href=/chain/{}>on</a>", n + 1))
            }
            _ => status(404),
        }
    });
    let archive = Archive::new();
    archive.append_settings(SHORT);
    archive.append_settings("[crawl]\nmax_pages_per_shape = 60\n");
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.ok(&["run", "--once", "--delay", "0", "--limit", "2000"]);
    let count =
        |prefix: &str| web.requests().iter().filter(|request| request.path.starts_with(prefix)).count();
    assert!(count("/nest") <= 5, "{}", count("/nest"));
    assert!((20..=45).contains(&count("/cal")), "{}", count("/cal"));
    assert_eq!(count("/s?") + web.n_requests("/s"), 1);
    assert_eq!(count("/chain"), 60);
}

#[test]
fn private_addresses_are_refused_unless_allowed() {
    let web = Web::serve(|_| html("secret"));
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/")]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    assert_eq!(web.requests().len(), 0);
    let log = archive.log();
    assert_eq!(log[0]["error"], "guarded");
    assert!(log[0]["detail"].as_str().unwrap().contains("--allow-private"));
    archive.ok(&["run", "--once", "--delay", "0", "--allow-private"]);
    assert_eq!(web.n_requests("/"), 1);
}

#[test]
fn sitemaps_reveal_unlinked_pages() {
    let web = Web::serve(|request| {
        let host = request.field("host").unwrap().to_string();
        let xml = |text: String| {
            Reply::Page(200, vec![("Content-Type", "application/xml".into())], text.into_bytes())
        };
        match request.path.as_str() {
            "/robots.txt" => {
                Reply::Page(200, vec![], format!("Sitemap: http://{host}/index.xml\n").into_bytes())
            }
            "/index.xml" => xml(format!(
                "<sitemapindex><sitemap><loc>http://{host}/1.xml.gz</loc></sitemap><sitemap><loc>/news.xml</loc></sitemap></sitemapindex>"
            )),
            "/1.xml.gz" => {
                let xml = format!(
                    "<urlset><url><loc>http://{host}/a</loc></url><url><loc>http://other.example/x</loc></url></urlset>"
                );
                Reply::Page(200, vec![("Content-Type", "application/x-gzip".into())], gzip(xml.as_bytes()))
            }
            "/news.xml" => xml(format!(
                "<urlset><url><loc>http://{host}/n</loc><news:news><news:publication_date>2026-01-01</news:publication_date></news:news></url></urlset>"
            )),
            "/" => html("no links"),
            _ => html("page"),
        }
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    assert_eq!((web.n_requests("/a"), web.n_requests("/n")), (1, 1));
}

#[test]
fn noarchive_is_respected_if_set() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => {
            html("<html><head><meta name=\"robots\" content=\"NOARCHIVE\"></head><a href=/next>n</a></html>")
        }
        "/next" => html("fine"),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nnoarchive = true\n");
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    let log = archive.log();
    let root = log.iter().find(|line| line["url"] == web.url("/").as_str()).unwrap();
    assert_eq!((root["error"].as_str(), root["stored"].as_str()), (Some("noarchive"), None));
}

#[test]
fn the_log_explains_every_visit() {
    let web = Web::serve(|request| if request.path == "/" { html("<a href=/x>x</a>") } else { status(404) });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    let text = archive.ok(&["log"]);
    assert!(text.contains("[first capture]") && text.contains("response"), "{text}");
    let errors = archive.json(&["log", "--errors"]);
    assert!(errors.as_array().unwrap().iter().any(|row| row["error"] == "not-found"), "{errors}");
}
