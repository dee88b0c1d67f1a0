//! A state rebuilt from the WARC files equals the state that the crawl made.

use std::collections::BTreeMap;
use std::path::Path;

use perennial_archive::{Archive, ArchiveWriter, DerivedResource, Exchange, ExchangeBody};
use perennial_core::schedule::{Goal, RankedPage, ScheduleConfig};
use perennial_core::time::{Span, Timestamp};
use perennial_engine::learn::{self, FollowedSites};

use crate::crawled;
use crate::facts::Facts;
use crate::program::{folder, perennial, ran};
use crate::web::{Reply, Web, WebRequest, html, redirect, status};

/// Rebuilds the state, analyses every capture again, and compares.
#[track_caller]
fn assert_rebuild_gives_the_same(archive: &Path) {
    perennial(archive, ["analyse"]).ok();
    let (before, ranking) = (Facts::of(archive), Ranking::of(archive));
    perennial(archive, ["verify", "--rebuild"]).ok();
    perennial(archive, ["analyse"]).ok();
    before.assert_same_after(&Facts::of(archive));
    ranking.assert_like(&Ranking::of(archive));
}

/// The scheduler's estimates for each page of an archive an hour after its last capture, by URL. All estimates belong
/// to one instant. The plan of `perennial plan next` would list each page at its next visit, and might swap equal
/// pages.
struct Ranking(BTreeMap<String, [f64; 4]>);

/// The names of the estimates for a page.
const BELIEFS: [&str; 4] = ["urgency", "expected importance", "changes a day", "visits"];

impl Ranking {
    fn of(archive: &Path) -> Ranking {
        let archive = Archive::open(archive).unwrap();
        let store = archive.store().unwrap();
        let at = store.last_capture(Timestamp::MAX).unwrap().unwrap() + Span::from_hours(1);
        let followed = FollowedSites::load(&archive, &store).unwrap();
        // The crawl's shadow prices are not in the WARC files. This goal differs from the crawl's, so the scheduler
        // ignores them.
        let config = ScheduleConfig { goal: Goal::Importance, ..ScheduleConfig::default() };
        let scheduler = learn::scheduler(&store, &followed, config, 0, at).unwrap();
        let belief = |page: &RankedPage| {
            let [urgency, per_day] = [page.urgency, page.changes_per_day].map(f64::from);
            [urgency, page.expected.get(), per_day, f64::from(page.n_visits)]
        };
        let pages = scheduler.ranking(at, scheduler.n_pages());
        Ranking(pages.iter().map(|page| (store.page_url(page.page).unwrap(), belief(page))).collect())
    }

    /// The numbers are equal except for rounding, because the order of summation differs.
    #[track_caller]
    fn assert_like(&self, other: &Ranking) {
        let urls = |ranking: &Ranking| ranking.0.keys().cloned().collect::<Vec<_>>();
        assert_eq!(urls(self), urls(other));
        assert!(self.0.len() > 5, "{:?}", urls(self));
        for (url, one) in &self.0 {
            for ((name, one), other) in BELIEFS.iter().zip(one).zip(&other.0[url]) {
                assert!((one - other).abs() <= 1e-3 * one.abs().max(1e-3), "{url}: {name} {one} and {other}");
            }
        }
    }
}

/// Changing pages that write their links in every possible way.
fn odd_site(request: &WebRequest) -> Reply {
    let edition = request.n_before;
    match request.path.as_str() {
        "/" => html(&format!(
            "<base href=/dir/><h1>Edition {edition}</h1><a href=../b/./c?utm_source=mail>c</a><a href=HTTP://LOCALHOST:1/X>x</a>
             <a href='../d#part'>d</a><a href='../d#other'>d again</a><a href=%7euser?sid=9f8e7d6c5b4a3928>user</a>
             <a href=/moved>moved</a><a href=/xhtml>xhtml</a><iframe src=/frame></iframe><img src=/i.png?x=%2f>
             <link rel=stylesheet href=/style.css><a href=/moved-too>moved</a><a href='/latin?q=ä'>latin</a><a href=/pdf>pdf</a>"
        )),
        "/moved" | "/moved-too" => {
            Reply::Page(301, vec![("Location", "../B/c?fbclid=1&x=2#top".into())], b"the same words".to_vec())
        }
        "/xhtml" => Reply::Page(
            200,
            vec![("Content-Type", "application/xhtml+xml".into())],
            b"<html xmlns='http://www.w3.org/1999/xhtml'><body><p>x</p><a href='/b/c'>c</a><a href='/b/c?'>c</a></body></html>".to_vec(),
        ),
        "/latin?q=%C3%A4" => Reply::Page(
            200,
            vec![("Content-Type", "text/html; charset=iso-8859-1".into())],
            b"<p>Latin</p><a href='/find?q=\xe4'>find</a>".to_vec(),
        ),
        "/frame" => html("<a href=/d?PHPSESSID=abcdef0123456789&a=1>d</a> in a frame"),
        "/style.css" => Reply::Page(200, vec![("Content-Type", "text/css".into())], b"@import '/more.css'; p{color:red}".to_vec()),
        "/pdf" => Reply::Page(200, vec![("Content-Type", "application/pdf".into())], format!("%PDF {edition}").into_bytes()),
        "/sitemap.xml" => Reply::Page(
            200,
            vec![("Content-Type", "text/html".into())],
            b"<urlset><url><loc>/only-here</loc></url></urlset><a href=/D/../d>d</a>".to_vec(),
        ),
        "/robots.txt" => html("<a href=/from-robots>no rules</a>"),
        "/gone" => redirect("mailto:nobody@localhost"),
        path if path.starts_with("/d") || path.starts_with("/b/") || path.starts_with("/B/") => {
            html(&format!("<p>{path} in edition {}</p><a href=/>home</a><a href=/gone>gone</a>", edition / 2))
        }
        _ => status(404),
    }
}

#[test]
fn a_crawl_and_a_rebuild_of_it_know_the_same() {
    let web = Web::serve(odd_site);
    let archive = crawled::Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive.lapse("1h", "5h");
    archive.verify();
    assert_rebuild_gives_the_same(&archive.root);
}

#[test]
fn the_living_web_and_a_rebuild_of_it_are_the_same() {
    let (_dir, archive) = folder();
    let mut demo = std::process::Command::new(env!("CARGO_BIN_EXE_perennial"));
    demo.args(["demo", "--json", "--days", "2", "--dir"]).arg(&archive).env_remove("PERENNIAL_ARCHIVE");
    ran(&mut demo).ok();
    assert_rebuild_gives_the_same(&archive);
}

/// One visit of a page whose scripts rendered `drawn`.
fn append_rendered(writer: &mut ArchiveWriter, url: &str, hour: i64, sent: &str, rendered: &str) {
    let uri = format!("urn:dom:{url}");
    let derived =
        DerivedResource { uri: &uri, content_type: "text/html; charset=utf-8", bytes: rendered.as_bytes() };
    writer
        .append(Exchange {
            url,
            time: Timestamp::parse("2026-01-01").unwrap() + Span::from_hours(hour),
            ip: None,
            request_head: b"GET / HTTP/1.1\r\n\r\n",
            request_body: b"",
            response_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
            body: ExchangeBody::Bytes(sent.as_bytes()),
            truncated: None,
            metadata: &[("fetchTimeMs", "1")],
            derived: &[derived],
            links: None,
        })
        .unwrap();
}

#[test]
fn rendered_pages_have_the_links_that_were_rendered() {
    let (_dir, root) = folder();
    let archive = Archive::create(&root).unwrap();
    let mut writer = ArchiveWriter::open(&archive).unwrap();
    let shell = "<div id=app></div><script src=app.js></script><a href=/sent>sent</a>";
    append_rendered(&mut writer, "http://app.example/", 0, shell, "<a href=/First#x>1</a>");
    // The same shell again is a revisit, but the rendered page is different.
    append_rendered(&mut writer, "http://app.example/", 1, shell, "<a href=/second?gclid=9>2</a>");
    append_rendered(&mut writer, "http://app.example/other", 1, shell, "<a href=/third>3</a>");
    writer.close().unwrap();
    let links = |path: &str| -> Vec<String> {
        let store = archive.store().unwrap();
        let page = store.page(&format!("http://app.example{path}")).unwrap().unwrap();
        let url_of = |page: u32| store.page_url(perennial_core::url::PageId(page)).unwrap();
        store.page_links(page.id.0).unwrap().into_iter().map(url_of).collect()
    };
    assert_eq!(links("/"), ["http://app.example/second"]);
    assert_eq!(links("/other"), ["http://app.example/third"]);
    let before = Facts::of(&root);
    perennial(&root, ["verify", "--rebuild"]).ok();
    before.assert_same_after(&Facts::of(&root));
}
