//! Feeds: discovery, polling, immediate visits of their items, statistics, lists of subscriptions, inferred channel
//! pages.

use std::sync::Mutex;

use perennial_core::time::Timestamp;
use serde_json::Value;

use crate::crawled::Archive;
use crate::web::{Reply, Web, WebRequest, html, status};

/// Interval between two articles, from the start of 2026.
const EVERY_SECS: i64 = 5400;
const N_HELD: i64 = 10;

fn start() -> Timestamp {
    Timestamp::parse("2026-01-01").unwrap()
}

/// Seconds since the start of 2026 on the requesting crawl's clock.
fn secs_of(request: &WebRequest) -> i64 {
    let now = request.field("perennial-time").and_then(|time| Timestamp::parse(time).ok()).unwrap_or(start());
    (now - start()).as_millis() / 1000
}

fn date(secs: i64) -> String {
    Timestamp::from_secs(start().as_secs() + secs).to_jiff().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn feed_at(secs: i64, host: &str) -> String {
    let newest = secs / EVERY_SECS;
    let items: String = (0..=newest)
        .rev()
        .take(N_HELD as usize)
        .map(|n| {
            format!(
                "<item><title>Article {n}</title><link>http://{host}/a{n}</link><guid isPermaLink='false'>id-{n}</guid>\
                 <pubDate>{}</pubDate><description>About {n} &amp;amp; more</description></item>",
                date(n * EVERY_SECS)
            )
        })
        .collect();
    format!(
        "<rss version='2.0'><channel><title>Living</title><link>http://{host}/</link>{items}</channel></rss>"
    )
}

/// A site with a feed. Its front page never changes and links to no article.
fn living(request: &WebRequest) -> Reply {
    let secs = secs_of(request);
    let host = request.field("host").unwrap_or_default();
    let newest = secs / EVERY_SECS;
    match request.path.as_str() {
        "/" => html(
            "<title>Front</title><link rel=alternate type='application/rss+xml' href=/feed.xml><p>A front page that stays",
        ),
        "/feed.xml" => {
            let etag = format!("\"{newest}\"");
            if request.field("if-none-match") == Some(&etag) {
                return Reply::Page(304, vec![], vec![]);
            }
            let fields = vec![("Content-Type", "application/rss+xml".into()), ("ETag", etag)];
            Reply::Page(200, fields, feed_at(secs, host).into_bytes())
        }
        path => match path.strip_prefix("/a").and_then(|n| n.parse::<i64>().ok()) {
            Some(n) if n <= newest => {
                html(&format!("<title>Article {n}</title><h1>Article {n}</h1><p>{}", "words ".repeat(60)))
            }
            _ => status(404),
        },
    }
}

fn crawl(archive: &Archive, hours: &str) {
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
    archive.ended(&[&clock[..], &["--budget", "4/1h", "--time-limit", hours]].concat(), 15);
}

fn visits<'a>(log: &'a [Value], path: &str) -> Vec<&'a Value> {
    log.iter().filter(|line| line["url"].as_str().is_some_and(|url| url.ends_with(path))).collect()
}

#[test]
fn no_item_is_lost_and_each_article_is_captured_within_one_poll_interval() {
    let web = Web::serve(living);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    crawl(&archive, "72h");
    let log = archive.log();
    let n_articles = 72 * 3600 / EVERY_SECS;
    let time = |line: &Value| Timestamp::parse(line["time"].as_str().unwrap()).unwrap();
    let polls: Vec<Timestamp> = visits(&log, "/feed.xml").into_iter().map(time).collect();
    assert!(polls.len() > 30 && polls.len() < 200, "{} polls", polls.len());
    for n in 0..n_articles - 2 {
        let captured = visits(&log, &format!("/a{n}"));
        assert_eq!(
            captured.first().map(|line| &line["outcome"]),
            Some(&"new".into()),
            "article {n} was captured"
        );
        let published = Timestamp::from_secs(start().as_secs() + n * EVERY_SECS);
        let next_poll = polls.iter().find(|poll| **poll >= published).unwrap();
        let waited = (time(captured[0]) - *next_poll).as_millis() / 60_000;
        assert!(waited <= 60, "article {n} waited {waited} minutes after the poll that showed it");
        assert!(
            captured[0]["reason"].as_str().unwrap().contains(&format!("Article {n}")),
            "{}",
            captured[0]["reason"]
        );
    }
    // An unchanged feed costs one 304 per poll.
    let unchanged = visits(&log, "/feed.xml").into_iter().filter(|line| line["outcome"] == "unchanged");
    assert!(
        unchanged.clone().count() > 0
            && unchanged.clone().all(|line| line["status"] == 304 && line["body_bytes"] == 0)
    );
    let feeds = archive.json(&["feed", "list"]);
    assert_eq!((&feeds[0]["reads_without_overlap"], &feeds[0]["items_held"]), (&0.into(), &N_HELD.into()));
    assert!(feeds[0]["items_seen"].as_i64().unwrap() >= n_articles - 2, "{feeds}");
    archive.verify();
}

#[test]
fn items_are_rebuilt_from_the_warc_files() {
    let web = Web::serve(living);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    crawl(&archive, "24h");
    let (feeds, schedule) = (
        archive.json(&["feed", "list"]),
        archive.json(&["plan", "next", "--at", "2026-01-02", "--top", "3"]),
    );
    archive.ok(&["verify", "--rebuild"]);
    let again = archive.json(&["feed", "list"]);
    for key in
        ["items_seen", "items_held", "captures", "reads_without_overlap", "title", "channel", "is_followed"]
    {
        assert_eq!(feeds[0][key], again[0][key], "{key}");
    }
    assert_eq!(
        archive.json(&["plan", "next", "--at", "2026-01-02", "--top", "3"]).as_array().map(Vec::len),
        schedule.as_array().map(Vec::len)
    );
    let before = web.n_requests("/feed.xml");
    archive.ok(&["feed", "poll", "--delay", "0"]);
    assert_eq!(web.n_requests("/feed.xml"), before + 1, "the feed is still followed");
}

/// A slow feed with an edited item: the page is visited again, with the item's title as the reason.
#[test]
fn an_edited_item_makes_its_page_urgent() {
    let web = Web::serve(|request| {
        let is_edited = secs_of(request) > 20 * 3600;
        match request.path.as_str() {
            "/" => html("<link rel=alternate type='application/atom+xml' href=/feed><p>Front"),
            "/feed" => {
                let (title, updated) = if is_edited {
                    ("Two dead", "2026-01-01T20:00:00Z")
                } else {
                    ("One dead", "2026-01-01T00:00:00Z")
                };
                let atom = format!(
                    "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title><entry><id>urn:1</id><title>{title}</title><link href='/a'/>\
                     <published>2026-01-01T00:00:00Z</published><updated>{updated}</updated></entry></feed>"
                );
                Reply::Page(200, vec![("Content-Type", "application/atom+xml".into())], atom.into_bytes())
            }
            "/a" => html(if is_edited { "<h1>Two dead</h1>" } else { "<h1>One dead</h1>" }),
            _ => status(404),
        }
    });
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
    let log = archive.log();
    let reasons: Vec<String> =
        visits(&log, "/a").iter().map(|line| line["reason"].as_str().unwrap().to_owned()).collect();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(
        reasons[0].ends_with(": One dead")
            && reasons[1].contains("announced")
            && reasons[1].ends_with(": Two dead"),
        "{reasons:?}"
    );
}

#[test]
fn a_seed_that_is_a_feed_is_polled_as_one() {
    let web = Web::serve(living);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/feed.xml"), "--depth", "1", "--allow-private"]);
    crawl(&archive, "24h");
    let log = archive.log();
    assert_eq!(visits(&log, "/feed.xml")[0]["kind"], "page");
    assert!(visits(&log, "/feed.xml").iter().skip(1).all(|line| line["kind"] == "feed"));
    assert!(visits(&log, "/feed.xml").len() > 10 && !visits(&log, "/a10").is_empty());
}

#[test]
fn polls_are_bounded_by_a_budget_of_their_own() {
    let web = Web::serve(living);
    let archive = Archive::new();
    archive.append_settings("[crawl]\nfeed_polls = \"2/1d\"\n");
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    crawl(&archive, "96h");
    let n_polls = web.n_requests("/feed.xml");
    assert!((4..=10).contains(&n_polls), "two a day for four days, and a part of a fifth: {n_polls}");
    let feeds = archive.json(&["feed", "list"]);
    let n_seen = feeds[0]["items_seen"].as_i64().unwrap();
    assert!(n_seen <= N_HELD * n_polls as i64, "k items and p polls hold at most k p: {n_seen}");
    assert!(
        feeds[0]["reads_without_overlap"].as_i64().unwrap() > 0,
        "16 a day against 10 held: items were lost, and the report contains it"
    );
}

#[test]
fn feeds_are_found_by_links_and_at_common_paths() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/named" => html(
            "<link rel=alternate type='application/rss+xml' href=/feed.xml><link rel=alternate type='application/atom+xml' href=/gone>",
        ),
        "/silent" => html("<p>no feed here"),
        _ => living(request),
    });
    let archive = Archive::new();
    let found = |path: &str| archive.json(&["feed", "find", &web.url(path), "--allow-private"]);
    let named = found("/named");
    assert_eq!((&named[0]["url"], &named[0]["format"]), (&web.url("/feed.xml").into(), &"RSS 2.0".into()));
    assert_eq!(named.as_array().unwrap().len(), 1, "{named}");
    assert_eq!(found("/silent")[0]["found"], "at a common path");
    assert_eq!(found("/feed.xml")[0]["found"], "given");
}

#[test]
fn a_list_of_subscriptions_is_followed_with_its_folders_as_tags() {
    let web = Web::serve(living);
    let archive = Archive::new();
    let list = archive.root.join("list.opml");
    let opml = format!(
        "<opml><body><outline text='News'><outline type='rss' text='L' xmlUrl='{}' htmlUrl='{}'/></outline><outline xmlUrl='ftp://x'/></body></opml>",
        web.url("/feed.xml"),
        web.url("/")
    );
    std::fs::write(&list, opml).unwrap();
    archive.ok(&["feed", "import", list.to_str().unwrap(), "--allow-private"]);
    let sites = archive.json(&["list"]);
    assert_eq!((&sites[0]["tags"][0], &sites[0]["feeds"][0]), (&"News".into(), &web.url("/feed.xml").into()));
    archive.ok(&["feed", "poll", "--delay", "0"]);
    assert_eq!((web.n_requests("/feed.xml"), web.n_requests("/")), (1, 0), "nothing but feeds is fetched");
    let statistics = archive.json(&["lab", "feeds"]);
    assert_eq!((&statistics["n_active"], &statistics["tags"]["News"]["n_feeds"]), (&1.into(), &1.into()));
    let url_list = archive.root.join("list.txt");
    std::fs::write(&url_list, "# more\nhttps://b.example/\n").unwrap();
    archive.ok(&["add", "--from", url_list.to_str().unwrap(), "--tag", "later"]);
    let sites = archive.json(&["list"]);
    assert_eq!((sites.as_array().unwrap().len(), &sites[1]["tags"][0]), (2, &"later".into()));
}

/// The clock of the tests is years after the crawl, but a rate is that of the time in which the feed was read.
#[test]
fn the_rate_of_a_feed_ends_with_its_last_capture() {
    let (web, archive) = (Web::serve(living), Archive::new());
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    crawl(&archive, "48h");
    let feeds = archive.json(&["feed", "list"]);
    let a_day = feeds[0]["items_per_day"].as_f64().unwrap();
    let expected = 86_400.0 / EVERY_SECS as f64;
    assert!((a_day - expected).abs() < 0.2 * expected, "{a_day} instead of {expected}");
}

#[test]
fn folders_of_feed_files_are_tags() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["art", "science/physics"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        std::fs::write(dir.path().join(folder).join("f.xml"), feed_at(40 * EVERY_SECS, "a.example")).unwrap();
    }
    let statistics = Archive::new().json(&["lab", "feeds", dir.path().to_str().unwrap()]);
    let tags: Vec<&String> = statistics["tags"].as_object().unwrap().keys().collect();
    assert_eq!(tags, ["art", "physics", "science"]);
}

#[test]
fn statistics_of_files_work_without_an_archive() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.xml"), feed_at(40 * EVERY_SECS, "a.example")).unwrap();
    std::fs::write(
        dir.path().join("b.xml"),
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>T</title></feed>",
    )
    .unwrap();
    std::fs::write(dir.path().join("c.png"), b"\x89PNG\x00").unwrap();
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_perennial"));
        let output = command.args(["lab", "feeds"]).arg(dir.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let statistics: Value = serde_json::from_str(&run(&["--format", "json"])).unwrap();
    assert_eq!(
        (&statistics["n_tried"], &statistics["n_active"], &statistics["n_unreadable"]),
        (&3.into(), &1.into(), &1.into())
    );
    assert_eq!(statistics["all"]["mean_interval"].as_f64(), Some(EVERY_SECS as f64));
    assert_eq!(statistics["histogram"], serde_json::json!([0, 1]));
    assert!(run(&[]).contains("Median of a day or less: 100 % (60 %)"));
    assert!(run(&["--format", "svg"]).starts_with("<svg xmlns="));
}

#[test]
fn a_channel_page_is_inferred_between_its_captures() {
    let web = Web::serve(living);
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    crawl(&archive, "48h");
    let place = format!("{}@2026-01-01T12:10:00Z", web.url("/"));
    let page = archive.json(&["lab", "channel", &place]);
    let titles: Vec<&str> =
        page["items"].as_array().unwrap().iter().map(|item| item["title"].as_str().unwrap()).collect();
    let expected: Vec<String> = (0..=8).rev().map(|n| format!("Article {n}")).collect();
    assert_eq!(titles, expected, "what was published by ten past twelve, the latest first");
    let html = archive.ok(&["lab", "channel", &place, "--html"]);
    assert!(html.contains("Inferred, not captured") && html.contains("About 8 &amp; more"), "{html}");
    let too_early = archive.run(&["lab", "channel", &format!("{}@2025-01-01", web.url("/"))]);
    assert_eq!(too_early.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&too_early.stderr).contains("perennial feed list"));
}

/// Four days of the demonstration's web, with and without its feeds.
#[test]
fn feeds_of_the_living_web_lose_no_item_and_add_to_completeness() {
    let run = |options: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_perennial"));
        command
            .args(["demo", "--no-browser", "--days", "4", "--budget", "5", "--json", "--dir"])
            .arg(dir.path().join("a"))
            .args(options);
        let output = command.env_remove("PERENNIAL_ARCHIVE").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let (with, without) = std::thread::scope(|scope| {
        let without = scope.spawn(|| run(&["--no-feeds"]));
        (run(&[]), without.join().unwrap())
    });
    assert_eq!(without["feeds"], Value::Null);
    let count = |name: &str| with["feeds"][name].as_u64().unwrap();
    assert!(count("items_published") > 100 && count("polls_with_news") > 50, "{}", with["feeds"]);
    assert_eq!(count("items_lost"), 0, "{}", with["feeds"]);
    let caught = |result: &Value| result["completeness_count"].as_f64().unwrap();
    println!(
        "versions caught: {} with feeds, {} without; {}",
        caught(&with),
        caught(&without),
        with["feeds"]
    );
    assert!(
        caught(&with) > caught(&without) + 0.03,
        "{} with feeds, {} without",
        caught(&with),
        caught(&without)
    );
    let fetches = |result: &Value| result["fetches"].as_u64().unwrap();
    assert!(
        fetches(&with) <= fetches(&without) + fetches(&without) / 20,
        "pages are visited within the same budget"
    );
}

/// A hostile feed is bounded, and the crawl continues.
#[test]
fn a_hostile_feed_does_not_end_a_crawl() {
    let bomb = Mutex::new(0);
    let web = Web::serve(move |request| match request.path.as_str() {
        "/" => {
            let feeds: String = (0..200)
                .map(|n| format!("<link rel=alternate type='application/rss+xml' href=/f{n}>"))
                .collect();
            html(&feeds)
        }
        path if path.starts_with("/f") => {
            *bomb.lock().unwrap() += 1;
            let depth = "<a>".repeat(50_000);
            let text = format!(
                "<!DOCTYPE x [<!ENTITY a '{}'>]><rss><channel><item><title>{}{depth}",
                "x".repeat(200),
                "&a;".repeat(100_000)
            );
            Reply::Page(200, vec![("Content-Type", "application/rss+xml".into())], text.into_bytes())
        }
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.ok(&["run", "--once", "--delay", "0", "--no-analysis"]);
    let n_feeds = web.requests().iter().filter(|request| request.path.starts_with("/f")).count();
    assert_eq!(n_feeds, 50, "of one page no more are followed");
    archive.verify();
}
