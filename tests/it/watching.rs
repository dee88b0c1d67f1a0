//! Watched pages are visited as often as asked, their edits arrive with their words, and a watch that sees nothing says
//! so. A running crawl says what it does, and visits any page on request.

use std::collections::HashMap;
use std::fs::File;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use perennial_archive::now;
use perennial_core::time::Timestamp;
use serde_json::Value;

use crate::crawled::Archive;
use crate::demo::interrupt;
use crate::wait::wait_until;
use crate::web::{Reply, Web, WebRequest, html, redirect, status};

/// A crawl in the background, with what it prints.
struct Running {
    child: Child,
    log: std::path::PathBuf,
}

impl Running {
    fn start(archive: &Archive, options: &[&str]) -> Running {
        let log = archive.root.join("said");
        let args = [&["run", "--no-serve", "--delay", "0"], options].concat();
        let mut command = archive.command(&args);
        let child = command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap();
        Running { child, log }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    #[track_caller]
    fn wait_to_say(&mut self, text: &str) {
        wait_until(text, || {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended: {}", self.said());
            self.said().contains(text)
        });
    }

    fn stop(mut self) -> String {
        interrupt(&self.child);
        self.child.wait().unwrap();
        self.said()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A receiver of notices.
fn receiver() -> Web {
    Web::serve(|_| status(200))
}

fn notices(receiver: &Web) -> Vec<Value> {
    receiver.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

fn of_kind(receiver: &Web, kind: &str) -> Vec<Value> {
    notices(receiver).into_iter().filter(|notice| notice["kind"] == kind).collect()
}

const N_PAGES: usize = 10;
const N_EDITS: usize = 4;
/// Seconds between two visits of a page.
const EVERY: u64 = 6;
/// Seconds between two edits of a page: a visit falls between them.
const BETWEEN: u64 = 14;

/// When a page is edited for the `nth` time. The first edit comes after the first captures, and pages do not change at
/// the same time.
fn edit_time(page: usize, nth: usize) -> Duration {
    Duration::from_millis(1000 * (12 + BETWEEN * nth as u64) + 1300 * page as u64)
}

fn n_edits(page: usize, passed: Duration) -> usize {
    (0..N_EDITS).filter(|nth| passed >= edit_time(page, *nth)).count()
}

const WORDS: [&str; 10] =
    ["amber", "birch", "cedar", "dahlia", "elder", "fennel", "ginger", "hazel", "iris", "juniper"];

/// The words of an edit, which no other edit has.
fn words(page: usize, nth: usize) -> String {
    format!("{} {}", WORDS[page], 100 * (page + 1) + nth)
}

/// A page of a shop with a date of its making, a counter of visitors and an advertisement, which inform nobody.
fn shop(page: usize, n_edits: usize, n_before: usize, passed: Duration) -> Reply {
    let state = match n_edits {
        0 => "There is nothing to report yet.".to_owned(),
        n => format!("Since the last delivery we offer {} at a lower price.", words(page, n - 1)),
    };
    let ad = ["Cheap flights to the south", "Win a new car today", "Loans without questions"][n_before % 3];
    html(&format!(
        "<!doctype html><html><head><title>Shop {page}</title></head><body><header><h1>Shop number {page}</h1></header>\
         <main><p>Welcome to the shop on the corner, which has sold plants and seeds for eighty years.</p><p>{state}</p>\
         <p>Our opening hours are from nine to six on every day but Sunday.</p></main>\
         <aside class=\"ad\"><a href=\"https://ads.example/{n_before}\">{ad}</a></aside>\
         <footer>Page generated at 12:{:02}:{:02}. {} visitors so far.</footer></body></html>",
        passed.as_secs() / 60 % 60,
        passed.as_secs() % 60,
        4_000 + 17 * n_before
    ))
}

/// The visits of each page: when, and how many edits it showed.
type Visits = Arc<Mutex<HashMap<usize, Vec<(Duration, usize)>>>>;

#[test]
fn nine_of_ten_edits_of_watched_pages_arrive_with_their_words_and_in_time() {
    let (began, visits) = (Arc::new(Mutex::new(None::<Instant>)), Visits::default());
    let (clock, seen) = (began.clone(), visits.clone());
    let web = Web::serve(move |request: &WebRequest| {
        let Some(page) = request.path.strip_prefix("/p").and_then(|n| n.parse::<usize>().ok()) else {
            return status(404);
        };
        let passed = clock.lock().unwrap().get_or_insert_with(Instant::now).elapsed();
        let n_edits = n_edits(page, passed);
        seen.lock().unwrap().entry(page).or_default().push((passed, n_edits));
        shop(page, n_edits, request.n_before, passed)
    });
    let (receiver, archive) = (receiver(), Archive::new());
    for page in 0..N_PAGES {
        let (url, to) = (web.url(&format!("/p{page}")), format!("webhook:{}", receiver.url("/")));
        let every = format!("{EVERY}s");
        archive.ok(&["watch", &url, "--every", &every, "--notify", &to, "--allow-private"]);
    }
    let running = Running::start(&archive, &[]);
    let last = edit_time(N_PAGES - 1, N_EDITS - 1) + Duration::from_secs(EVERY);
    wait_until("a visit of each page after its last edit", || {
        let visits = visits.lock().unwrap();
        (0..N_PAGES)
            .all(|page| visits.get(&page).and_then(|visits| visits.last()).is_some_and(|(at, _)| *at >= last))
    });
    running.stop();
    let notices = notices(&receiver);
    let text = |notice: &Value| notice["changes"].to_string();
    let is_edit = |notice: &&Value| {
        let url = notice["url"].as_str().unwrap();
        (0..N_PAGES).any(|page| {
            url == web.url(&format!("/p{page}"))
                && (0..N_EDITS).any(|nth| text(notice).contains(&words(page, nth)))
        })
    };
    let n_real = notices.iter().filter(is_edit).count();
    let arrived = |page: usize, nth: usize| {
        let url = web.url(&format!("/p{page}"));
        notices.iter().any(|notice| notice["url"] == url.as_str() && text(notice).contains(&words(page, nth)))
    };
    let edits = || (0..N_PAGES).flat_map(|page| (0..N_EDITS).map(move |nth| (page, nth)));
    let n_arrived = edits().filter(|(page, nth)| arrived(*page, *nth)).count();
    let visits = visits.lock().unwrap();
    let mut delays: Vec<Duration> = edits()
        .filter_map(|(page, nth)| {
            let shown = visits.get(&page)?.iter().find(|(_, n_edits)| *n_edits > nth)?;
            Some(shown.0.saturating_sub(edit_time(page, nth)))
        })
        .collect();
    delays.sort_unstable();
    let n_all = N_PAGES * N_EDITS;
    let listed = notices.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    println!(
        "{n_arrived} of {n_all} edits; {n_real} of {} notices; median {:?}",
        notices.len(),
        delays[n_all / 2]
    );
    assert!(n_arrived * 10 >= n_all * 9, "{n_arrived} of {n_all} edits arrived\n{listed}");
    assert!(n_real * 10 >= notices.len() * 9, "{n_real} of {} notices are of edits\n{listed}", notices.len());
    assert!(delays[delays.len() / 2] <= Duration::from_secs(EVERY), "{delays:?}");
}

#[test]
fn an_interval_holds_for_every_kind_of_page_and_new_watches_join_a_running_crawl() {
    let feed =
        "<rss version=\"2.0\"><channel><title>News</title><item><title>Ferry</title></item></channel></rss>";
    let web = Web::serve(move |request| match request.path.as_str() {
        "/gone" if request.n_before > 0 => status(404),
        "/moved" => redirect("/"),
        "/never" => status(404),
        "/guide.pdf" => {
            Reply::Page(200, vec![("Content-Type", "application/pdf".into())], b"%PDF-1.4\n%%EOF\n".to_vec())
        }
        "/feed.xml" => {
            Reply::Page(200, vec![("Content-Type", "application/rss+xml".into())], feed.as_bytes().to_vec())
        }
        "/robots.txt" => status(404),
        _ => html("<title>A page</title><p>It is always the same.</p>"),
    });
    let archive = Archive::new();
    let watch = |path: &str| {
        archive.ok(&["watch", &web.url(path), "--every", "1s", "--allow-private"]);
    };
    ["/gone", "/moved", "/never", "/guide.pdf"].into_iter().for_each(watch);
    let mut running = Running::start(&archive, &[]);
    running.wait_to_say("crawling 4 sites");
    ["/feed.xml", "/later"].into_iter().for_each(watch);
    let paths = ["/gone", "/moved", "/never", "/guide.pdf", "/feed.xml", "/later"];
    wait_until("four visits of each", || {
        assert!(running.child.try_wait().unwrap().is_none(), "{}", running.said());
        paths.iter().all(|path| web.n_requests(path) >= 4)
    });
    running.stop();
}

#[test]
fn a_watch_that_sees_nothing_says_so_and_says_when_it_sees_again() {
    let phase = Arc::new(AtomicUsize::new(0));
    let now = phase.clone();
    let web = Web::serve(move |request| {
        let is_well = now.load(Ordering::Relaxed) == 1;
        match request.path.as_str() {
            "/robots.txt" => Reply::Page(200, Vec::new(), b"User-agent: *\nDisallow: /private".to_vec()),
            "/missing" if !is_well => status(404),
            "/prices" if is_well || request.n_before == 0 => {
                html("<title>Prices</title><h1>Prices</h1><p id=price>A lamp costs 10.</p>")
            }
            "/prices" => html("<title>Prices</title><h1>Prices</h1><p class=new>A lamp costs 10.</p>"),
            "/empty" if !is_well => html("<title></title>"),
            _ => html("<title>A page</title><h1>A page</h1><p>It has some words.</p>"),
        }
    });
    let (receiver, archive) = (receiver(), Archive::new());
    let watch = |path: &str, more: &[&str]| {
        let (url, to) = (web.url(path), format!("webhook:{}", receiver.url("/")));
        let usual = ["watch", &url, "--every", "1s", "--failures", "2", "--notify", &to, "--allow-private"];
        archive.ok(&[&usual[..], more].concat());
    };
    watch("/private", &[]);
    watch("/missing", &[]);
    watch("/prices", &["--selector", "#price"]);
    watch("/empty", &[]);
    let running = Running::start(&archive, &[]);
    wait_until("four blind watches", || of_kind(&receiver, "failing").len() >= 4);
    let listed = archive.ok(&["notify", "list"]);
    assert!(listed.contains("robots.txt forbids it") && listed.contains("`#price` matches"), "{listed}");
    phase.store(1, Ordering::Relaxed);
    wait_until("three that see again", || of_kind(&receiver, "working").len() >= 3);
    running.stop();
    let mut reasons: Vec<(String, String)> = of_kind(&receiver, "failing")
        .iter()
        .map(|notice| {
            let url = notice["url"].as_str().unwrap();
            (
                url.rsplit('/').next().unwrap().to_owned(),
                notice["changes"][0]["after"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    reasons.sort();
    let reason = |page: &str, reason: &str| (page.to_owned(), reason.to_owned());
    let expected = [
        reason("empty", "the page is empty"),
        reason("missing", "there is no such page (status 404)"),
        reason("prices", "`#price` matches no text of the page"),
        reason("private", "robots.txt forbids it"),
    ];
    assert_eq!(reasons, expected, "each once");
}

/// Each of these has a host of its own, because a host in trouble is left alone for a while.
#[test]
fn a_watch_is_blind_through_server_errors_silence_and_names_that_do_not_resolve() {
    let busy = Web::serve(|request| status(if request.path == "/robots.txt" { 404 } else { 503 }));
    let silent = Web::serve(|_| Reply::Silence);
    let refusing = Web::serve(|request| match request.path.as_str() {
        "/robots.txt" => status(404),
        _ if request.n_before == 0 => html("<title>A page</title><h1>A page</h1><p>It has some words.</p>"),
        _ => status(403),
    });
    let (receiver, archive) = (receiver(), Archive::new());
    let to = format!("webhook:{}", receiver.url("/"));
    archive.append_settings("[crawl]\nhead_timeout_secs = 1\n");
    for url in [&busy.url("/"), &silent.url("/"), &refusing.url("/"), "http://no-such-host.invalid/"] {
        let once = ["watch", url, "--every", "1s", "--failures", "1", "--notify", &to, "--allow-private"];
        archive.ok(&once);
    }
    let running = Running::start(&archive, &[]);
    wait_until("four blind watches", || of_kind(&receiver, "failing").len() >= 4);
    running.stop();
    let reasons: Vec<String> = of_kind(&receiver, "failing")
        .iter()
        .map(|notice| notice["changes"][0]["after"].as_str().unwrap().to_owned())
        .collect();
    for reason in ["(status 503)", "no response within", "(status 403)", "cannot be resolved"] {
        assert_eq!(reasons.iter().filter(|found| found.contains(reason)).count(), 1, "{reason}: {reasons:?}");
    }
    // A page that is refused is not gone.
    let of_refusing =
        |line: &Value| line["url"] == refusing.url("/").as_str() && line["outcome"] == "refused";
    assert!(archive.log().iter().any(of_refusing), "{:?}", archive.log());
}

/// `run --once` tells scripts that no host answered.
#[test]
fn a_pass_that_fetches_nothing_fails() {
    let archive = Archive::new();
    let pass = |more: &[&str]| {
        let output = archive.run(&[&["run", "http://127.0.0.1:9/", "--once", "--delay", "0"], more].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = pass(&[]);
    assert_eq!(code, Some(6), "{said}");
    assert!(said.contains("127.0.0.1, a loopback address: refused"), "{said}");
}

/// An idle crawl sleeps: it looks for changed settings once a second, and nothing else wakes it.
#[test]
fn an_idle_crawl_wakes_about_once_a_second() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html("<title>A page</title><p>It is always the same.</p>"),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private", "--every", "1h"]);
    let mut running = Running::start(&archive, &[]);
    running.wait_to_say("idle until");
    let n_switches = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", running.child.id())).unwrap();
        let of_task = |task: std::io::Result<std::fs::DirEntry>| {
            let text = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
            line.trim().parse::<u64>().ok()
        };
        tasks.filter_map(of_task).sum::<u64>()
    };
    let (before, since) = (n_switches(), Instant::now());
    wait_until("three seconds", || since.elapsed() > Duration::from_secs(3));
    let per_second = (n_switches() - before) as f64 / since.elapsed().as_secs_f64();
    assert!(per_second < 10.0, "{per_second} wakeups a second");
    running.stop();
}

#[test]
fn a_crawl_says_what_it_does() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html(&format!(
            "<title>News</title><h1>News of the town</h1><p>Edition number {} of the paper is out.</p>\
             <p>The ferry runs every hour.</p><a href=/a>a</a> <a href=/b>b</a> <a href=/dead>dead</a>",
            ["one", "two", "three", "four", "five", "six", "seven"][request.n_before.min(6)]
        )),
        "/a" | "/b" => html("<title>A page</title><p>It is always the same.</p>"),
        _ => status(404),
    });
    let (receiver, archive) = (receiver(), Archive::new());
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    let to = format!("webhook:{}", receiver.url("/"));
    archive.ok(&["watch", &web.url("/"), "--every", "1s", "--notify", &to, "--allow-private"]);
    let mut running = Running::start(&archive, &["--budget", "5000/1h"]);
    running.wait_to_say("notice sent by rule");
    let plan = archive.ok(&["plan", "next"]);
    assert!(plan.contains("5000.0 visits per hour (--budget of the running crawl)"), "{plan}");
    assert!(plan.contains("visited every 1s"), "{plan}");
    assert!(archive.ok(&["status"]).contains("budget 5000/1h"));
    let said = running.stop();
    for line in [
        "crawling 1 site, ".to_owned(),
        format!("first capture of {}", web.url("/")),
        format!("first pass of {} is complete: 3 pages captured, 1 missing", web.url("/")),
        format!("edited {} (importance", web.url("/")),
        "Edition number [one => ".to_owned(),
    ] {
        assert!(said.contains(&line), "{line} is not in\n{said}");
    }
    let outcomes: Vec<String> =
        archive.log().iter().map(|line| line["outcome"].as_str().unwrap().to_owned()).collect();
    let n = |outcome: &str| outcomes.iter().filter(|other| *other == outcome).count();
    assert_eq!((n("missing") >= 1, n("gone")), (true, 0), "a dead link was never there");
    assert!(archive.ok(&["plan", "next"]).contains("--budget of the last crawl"));
}

#[test]
fn a_page_is_visited_now_with_and_without_a_running_crawl() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/once" => html("<title>Once</title><link rel=stylesheet href=/once.css><p>A page to save.</p>"),
        "/once.css" => {
            Reply::Page(200, vec![("Content-Type", "text/css".into())], b"p { color: red }".to_vec())
        }
        "/edited" => html(&format!(
            "<title>Edited</title><p>The price is {} today.</p>",
            ["low", "high"][request.n_before.min(1)]
        )),
        "/" => html("<title>Start</title><p>A start.</p>"),
        _ => status(404),
    });
    let archive = Archive::new();
    let visit = |path: &str, code: i32| {
        let output = archive.run(&["visit", &web.url(path), "--allow-private", "--json"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{path}: {text}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let first = visit("/once", 0);
    assert_eq!((&first["outcome"], &first["title"]), (&"new".into(), &"Once".into()), "{first}");
    assert_eq!(web.n_requests("/once.css"), 1, "a page is saved with its style");
    assert_eq!(visit("/once", 0)["outcome"], "unchanged");
    let new = visit("/edited", 0);
    assert_eq!(new["outcome"], "new");
    let second = |time: &str| Timestamp::parse(time).unwrap().as_millis() / 1000;
    // Two captures within a second are one observation.
    wait_until("the next second", || now().as_millis() / 1000 > second(new["time"].as_str().unwrap()));
    let changed = visit("/edited", 0);
    assert!(changed["changes"][0].as_str().unwrap().contains("[low => high]"), "{changed}");
    let missing = visit("/missing", 6);
    assert_eq!(
        (&missing["outcome"], &missing["reason"]),
        (&"missing".into(), &"there is no such page (status 404)".into())
    );
    let refused = archive.run(&["visit", &web.url("/once")]);
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(refused.status.code() == Some(6) && text.contains("--allow-private"), "{text}");
    // A page that was only saved is not followed.
    assert!(archive.json(&["list"]).as_array().unwrap().is_empty());
    archive.ok(&["add", &web.url("/"), "--scope", "page", "--allow-private"]);
    let mut running = Running::start(&archive, &[]);
    running.wait_to_say("first capture of");
    assert_eq!(visit("/other", 6)["outcome"], "missing");
    assert_eq!(visit("/once", 0)["outcome"], "unchanged");
    let said = running.stop();
    assert!(!said.contains("/other"), "a dead link is not news: {said}");
}

#[test]
fn what_stands_in_the_way_is_said_when_a_page_is_added() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/robots.txt" => {
            Reply::Page(200, Vec::new(), b"User-agent: *\nDisallow: /private\nCrawl-delay: 100".to_vec())
        }
        _ => html("<title>A page</title>"),
    });
    let archive = Archive::new();
    let said = |args: &[&str]| {
        let output = archive.run(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (args, expected) in [
        (vec!["add", "http://127.0.0.1:9/"], "allow it with --allow-private"),
        (vec!["watch", "http://no-such-host.invalid/"], "check its spelling and this machine's network"),
        (vec!["watch", &web.url("/private"), "--allow-private"], "its robots.txt forbids it"),
        (
            vec!["watch", &web.url("/"), "--allow-private", "--every", "5s"],
            "will be visited every 100s at best",
        ),
        (vec!["set", &web.url("/"), "--every", "1s"], "the pause of 3s between two fetches allows 1200"),
    ] {
        let text = said(&args);
        assert!(text.contains(expected), "{args:?}: {text}");
    }
    archive.append_settings("[crawl]\nbudget = \"10/1h\"\n");
    let text = said(&["set", &web.url("/"), "--every", "30s"]);
    assert!(text.contains("and the budget (10/1h) allows 10: they will be visited about"), "{text}");
    let options = ["--interval", "1m", "--strategy", "fixed-interval", "--no-serve", "--time-limit", "1s"];
    let output = archive.run(&[&["run", "--allow-private"], &options[..]].concat());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("shorter"), "any interval is kept: {text}");
    let output = archive.run(&["run", "--period", "5m"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && text.contains("write the period into --budget"), "{text}");
}

#[test]
fn times_of_sites_and_pages_are_set_shown_and_removed() {
    let archive = Archive::new();
    archive.ok(&["add", "http://127.0.0.1:9/", "--every", "1h", "--hours", "Mon-Fri 08:00-18:00"]);
    let watched = archive.ok(&["watch", "http://127.0.0.1:9/prices", "--allow-private"]);
    assert!(watched.contains("visits it every 1h, Mon-Fri 08:00-18:00"), "{watched}");
    archive.ok(&["set", "http://127.0.0.1:9/prices", "--every", "5m"]);
    let again = archive.ok(&["watch", "http://127.0.0.1:9/prices"]);
    assert!(again.contains("visits it every 5m"), "{again}");
    let listed = archive.ok(&["list"]);
    assert!(
        listed.contains("every 1h, Mon-Fri 08:00-18:00") && listed.contains("/prices  every 5m"),
        "{listed}"
    );
    archive.ok(&["remove", "http://127.0.0.1:9/prices"]);
    assert!(!archive.ok(&["list"]).contains("/prices"));
    let alone = archive.ok(&["watch", "http://127.0.0.2:9/", "--allow-private"]);
    assert!(alone.contains("visits it every 15m; --every TIME sets another interval"), "{alone}");
    let output = archive.run(&["set", "127.0.0.1:9", "--every", "soon"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("30s, 15m, 1h"), "{output:?}");
}
