//! Feeds that announce changes: WebSub hubs over loopback, news sitemaps, and sitemaps with modification dates.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use perennial_core::time::Timestamp;
use sha2::{Digest, Sha256};

use crate::crawled::Archive;
use crate::wait::wait_until;
use crate::web::{Reply, Web, WebRequest, html, status};

/// Sends a message and reads the whole response.
fn exchange(address: &str, message: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(message).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Reads a POST with a form and responds with 202.
fn read_form(stream: &mut TcpStream) -> HashMap<String, String> {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap();
            if body.len() >= length.parse::<usize>().unwrap() {
                stream
                    .write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    .unwrap();
                return url::form_urlencoded::parse(body.as_bytes()).into_owned().collect();
            }
        }
        let n = stream.read(&mut part).unwrap();
        assert!(n > 0, "half a request: {text}");
        bytes.extend_from_slice(&part[..n]);
    }
}

/// A hub that accepts one subscription. Returns its URL and the channel that receives the request.
fn hub() -> (String, Receiver<HashMap<String, String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        sender.send(read_form(&mut stream)).unwrap();
    });
    (format!("http://{address}/hub"), receiver)
}

/// RFC 2104 with SHA-256, implemented separately so the test does not depend on the crawler.
fn signature(secret: &[u8], body: &[u8]) -> String {
    let pad = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(secret).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::digest([&pad(0x36)[..], body].concat());
    let outer = Sha256::digest([&pad(0x5c)[..], &inner[..]].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn hub_subscriptions_accept_signed_notifications_only() {
    let (hub, request) = hub();
    let named = hub.clone();
    let web = Web::serve(move |request: &WebRequest| match request.path.as_str() {
        "/" => html("<link rel=alternate type='application/rss+xml' href=/feed.xml><p>Front"),
        "/feed.xml" => {
            let feed = "<rss version='2.0'><channel><title>T</title><item><title>One</title><guid isPermaLink='false'>1</guid></item></channel></rss>";
            let link = format!("<{named}>; rel=\"hub\"");
            Reply::Page(
                200,
                vec![("Content-Type", "application/rss+xml".into()), ("Link", link)],
                feed.into(),
            )
        }
        _ => status(404),
    });
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let archive = Archive::new();
    archive.append_settings(&format!(
        "[crawl]\nwebsub_callback = \"http://127.0.0.1:{port}/from/hubs\"\nwebsub_listen = \"127.0.0.1:{port}\"\n"
    ));
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    let mut crawl = archive.spawn(&["run", "--no-serve", "--delay", "0", "--no-analysis", "--allow-private"]);
    let form = request.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(
        (form["hub.mode"].as_str(), form["hub.topic"].as_str()),
        ("subscribe", web.url("/feed.xml").as_str())
    );
    let address = format!("127.0.0.1:{port}");
    let path = form["hub.callback"].strip_prefix(&format!("http://{address}")).unwrap();
    assert!(path.starts_with("/from/hubs/") && path.len() > 40, "{path}");
    let verify = |topic: &str| {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.challenge", "why?")])
            .append_pair("hub.lease_seconds", "86400")
            .finish();
        exchange(&address, format!("GET {path}?{query} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
    };
    assert!(verify("http://else.example/").starts_with("HTTP/1.1 404"), "nobody subscribed to that");
    let answer = verify(&form["hub.topic"]);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nwhy?"), "{answer}");
    let tell = |path: &str, signature: &str| {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nX-Hub-Signature: sha256={signature}\r\n\r\nnews"
        );
        exchange(&address, head.as_bytes())
    };
    assert_eq!(web.n_requests("/feed.xml"), 1);
    assert!(tell(path, &signature(b"guessed", b"news")).starts_with("HTTP/1.1 202"), "ignored, not refused");
    assert!(tell("/from/hubs/0123", "00").starts_with("HTTP/1.1 410"));
    assert!(
        exchange(&address, b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")
            .starts_with("HTTP/1.1 413")
    );
    // The crawler handles messages in order, so it would have polled the feed before this visit.
    archive.ok(&["visit", &web.url("/")]);
    wait_until("the requested visit", || web.n_requests("/") == 2);
    assert_eq!(web.n_requests("/feed.xml"), 1, "unsigned messages are ignored");
    let chunked = |body: &str| {
        let signature = signature(form["hub.secret"].as_bytes(), b"news");
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nX-Hub-Signature: sha256={signature}\r\n");
        exchange(&address, format!("{head}Transfer-Encoding: chunked\r\n\r\n{body}").as_bytes())
    };
    assert!(chunked("no chunk").starts_with("HTTP/1.1 400"));
    assert!(exchange(&address, b"POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 411"));
    assert_eq!(web.n_requests("/feed.xml"), 1);
    assert!(chunked("3\r\nnew\r\n1;x=y\r\ns\r\n0\r\n\r\n").starts_with("HTTP/1.1 202"));
    wait_until("the feed is polled at once", || web.n_requests("/feed.xml") == 2);
    wait_until("the log says why", || {
        archive.log().iter().any(|line| {
            line["reason"].as_str().is_some_and(|reason| reason.contains("its hub announced news"))
        })
    });
    crawl.kill().unwrap();
    crawl.wait().unwrap();
}

fn secs_of(request: &WebRequest) -> i64 {
    let start = Timestamp::parse("2026-01-01").unwrap();
    let now = request.field("perennial-time").and_then(|time| Timestamp::parse(time).ok()).unwrap_or(start);
    (now - start).as_millis() / 1000
}

fn date(secs: i64) -> String {
    Timestamp::from_secs(Timestamp::parse("2026-01-01").unwrap().as_secs() + secs).to_rfc3339()
}

/// A site without feeds. It has a news sitemap with a new article every two hours, and a page sitemap with one page
/// that is edited after 30 hours.
fn newspaper(request: &WebRequest) -> Reply {
    let (secs, host) = (secs_of(request), request.field("host").unwrap_or_default());
    let newest = secs / 7200;
    let xml =
        |text: String| Reply::Page(200, vec![("Content-Type", "application/xml".into())], text.into_bytes());
    match request.path.as_str() {
        "/robots.txt" => {
            let text = format!("Sitemap: http://{host}/news.xml\nSitemap: http://{host}/pages.xml\n");
            Reply::Page(200, vec![("Content-Type", "text/plain".into())], text.into_bytes())
        }
        "/" => html("<title>Front</title><p>A front page that stays"),
        "/news.xml" => {
            let url = |n: i64| {
                format!(
                    "<url><loc>http://{host}/a{n}</loc><news:news><news:publication_date>{}</news:publication_date>\
                     <news:title>Article {n}</news:title></news:news></url>",
                    date(n * 7200)
                )
            };
            let urls: String = (0..=newest).rev().take(20).map(url).collect();
            xml(format!(
                "<urlset xmlns:news='http://www.google.com/schemas/sitemap-news/0.9'>{urls}</urlset>"
            ))
        }
        "/pages.xml" => {
            let edited = date(if secs >= 30 * 3600 { 30 * 3600 } else { 0 });
            xml(format!(
                "<urlset><url><loc>http://{host}/rules</loc><lastmod>{edited}</lastmod></url></urlset>"
            ))
        }
        "/rules" => {
            html(if secs >= 30 * 3600 { "<p>New rules for all of us" } else { "<p>Old rules for all of us" })
        }
        path if path.starts_with("/a") => html(&format!("<title>{path}</title><p>An article")),
        _ => status(404),
    }
}

#[test]
fn news_sitemaps_are_polled_and_page_sitemaps_reveal_edits() {
    let web = Web::serve(newspaper);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    let clock = [
        "run",
        "--no-serve",
        "--time-lapse",
        "max",
        "--start",
        "2026-01-01",
        "--delay",
        "0",
        "--no-analysis",
    ];
    let policy = ["--strategy", "fixed-interval", "--interval", "100d", "--time-limit", "72h"];
    archive.ended(&[&clock[..], &policy[..]].concat(), 15);
    let feeds = archive.json(&["feed", "list"]);
    assert_eq!(
        (feeds.as_array().unwrap().len(), &feeds[0]["format"]),
        (1, &"news sitemap".into()),
        "{feeds}"
    );
    assert!(web.n_requests("/news.xml") > 12, "{} polls", web.n_requests("/news.xml"));
    let n_articles = (0..36).filter(|n| web.n_requests(&format!("/a{n}")) > 0).count();
    assert!(n_articles >= 34, "{n_articles} of 36 articles");
    assert!((3..20).contains(&web.n_requests("/pages.xml")), "{} polls", web.n_requests("/pages.xml"));
    assert_eq!(web.n_requests("/rules"), 2, "its lastmod moved once");
    let log = archive.log();
    let reasons = |path: &str| -> Vec<String> {
        let of_path = log.iter().filter(|line| line["url"].as_str().is_some_and(|url| url.ends_with(path)));
        of_path.map(|line| line["reason"].as_str().unwrap().to_owned()).collect()
    };
    assert!(reasons("/rules")[1].contains("announced"), "{:?}", reasons("/rules"));
    assert!(reasons("/pages.xml")[1].contains("the sitemap is due"), "{:?}", reasons("/pages.xml"));
    archive.verify();
}

const N_STORIES: usize = 14;

/// A front page whose fourth headline changes on the second day, and stories that never change.
fn home_page(request: &WebRequest) -> Reply {
    let story = |n: usize| {
        let title = match n {
            3 if request.field("perennial-time").is_some_and(|time| time >= "2026-01-02T12") => {
                "The council takes back its plan for the northern bridge".to_owned()
            }
            _ => format!("The council of district {n} has a plan for its bridge and its market"),
        };
        format!(
            "<article><h2><a href=/story/{n}>{title}</a></h2><p>Teaser of the story {n} with a few more words.</p></article>"
        )
    };
    match request.path.as_str() {
        "/" => html(&format!("<h1>The daily</h1>{}", (0..N_STORIES).map(story).collect::<String>())),
        path if path.starts_with("/story/") => html(&format!(
            "<h1>{path}</h1><p>{}</p>",
            "Words of the story that stay as they are. ".repeat(40)
        )),
        _ => status(404),
    }
}

#[test]
fn a_changed_headline_triggers_a_visit_of_its_story() {
    let web = Web::serve(home_page);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    let lapse = [
        "run",
        "--no-serve",
        "--time-lapse",
        "max",
        "--start",
        "2026-01-01",
        "--delay",
        "0",
        "--budget",
        "4/h",
    ];
    archive.ended(&[&lapse[..], &["--time-limit", "3d"]].concat(), 15);
    let log = archive.log();
    let planned: Vec<(&str, &str)> = log
        .iter()
        .filter(|line| line["reason"].as_str().unwrap().contains("listing page announced"))
        .map(|line| (line["url"].as_str().unwrap(), line["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(planned.len(), 1, "{planned:?}");
    assert!(
        planned[0].0.ends_with("/story/3") && planned[0].1.contains("takes back its plan"),
        "{planned:?}"
    );
}
