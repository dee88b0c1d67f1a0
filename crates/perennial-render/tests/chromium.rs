//! A real Chromium. Built only with `--features chromium-tests`, so that a machine without a browser fails loudly
//! when asked to run them, and does not skip them quietly.
#![cfg(feature = "chromium-tests")]

use std::time::Duration;

use perennial_core::layout::Layout;
use perennial_render::{BrowserError, BrowserOptions, BrowserPage, Captured, Chromium, Engine};

const NOON: i64 = 1_767_268_800_000;

fn page(html: &str) -> BrowserPage<'_> {
    BrowserPage { url: "http://a.example/", html, unix_millis: NOON }
}

fn words<'a>(layout: &'a Layout<'_>) -> Vec<&'a str> {
    let texts = layout.nodes.iter().filter(|node| node.is_text() && node.is_visible);
    texts.flat_map(|node| node.text.split_whitespace()).collect()
}

fn chromium() -> Chromium {
    Chromium::new(BrowserOptions { time: Duration::from_secs(60), ..BrowserOptions::default() })
}

#[test]
fn both_engines_see_the_same_words_in_the_same_order() {
    let html = "<link rel=stylesheet href=/s.css><body><nav>Menu one</nav><main><h1>Title</h1><p>Body <b>bold</b> text</main>\
        <div class=gone>never</div><div style='position:absolute;left:-9999px'>off page</div><p aria-hidden=true>hidden";
    let lookup = |url: &str| {
        assert_eq!(url.split('/').nth(2), Some("a.example"), "nothing else is asked for");
        (url == "http://a.example/s.css").then(|| Captured {
            status: 200,
            content_type: "text/css".into(),
            body: b"nav{float:left;width:200px} main{margin-left:220px} .gone{display:none}".to_vec(),
        })
    };
    let seen = chromium().layout(&page(html), &|url, _| lookup(url), true).expect("Chromium lays the page out");
    let own = Engine::new().layout(html, "http://a.example/", &lookup);
    assert_eq!(words(&seen.layout), words(&own));
    assert_eq!(words(&own), ["Menu", "one", "Title", "Body", "bold", "text"]);
    let x_of =
        |layout: &Layout, tag: &str| layout.nodes.iter().find(|node| node.tag == tag).expect("there").rect.x;
    assert!((x_of(&seen.layout, "main") - x_of(&own, "main")).abs() < 2.0);
    assert!(seen.screenshot.is_some_and(|png| png.starts_with(b"\x89PNG")));
}

#[test]
fn scripts_run_with_a_fixed_clock_and_fixed_chance() {
    let html = "<body><p id=p>before<script>setTimeout(() => { p.textContent = \
        `${new Date(Date.now()).getUTCFullYear()} ${Math.random()} ${crypto.getRandomValues(new Uint8Array(2))}` }, 500)</script>";
    let mut chromium = chromium();
    let mut run = || {
        let seen = chromium.layout(&page(html), &|_, _| None, false).expect("laid out");
        words(&seen.layout).join(" ")
    };
    let first = run();
    assert!(first.starts_with("2026 0."), "{first}");
    assert_eq!(first, run());
}

#[test]
fn a_hang_costs_one_page() {
    let mut chromium =
        Chromium::new(BrowserOptions { time: Duration::from_secs(4), ..BrowserOptions::default() });
    let hang = "<script>for(;;);</script><p>never";
    assert!(chromium.layout(&page(hang), &|_, _| None, false).is_err());
    let seen = chromium.layout(&page("<p>next page"), &|_, _| None, false).expect("a fresh browser");
    assert_eq!(words(&seen.layout), ["next", "page"]);
    assert_eq!(chromium.n_restarts(), 1);
}

#[test]
fn a_missing_browser_names_the_cure() {
    let options =
        BrowserOptions { program: Some("/nonexistent/chromium".into()), ..BrowserOptions::default() };
    let error = Chromium::new(options).layout(&page("<p>"), &|_, _| None, false).expect_err("no browser");
    assert!(matches!(error, BrowserError::Missing(_)));
    assert!(
        error.to_string().contains("apt install chromium") && error.to_string().contains("--renderer layout")
    );
}
