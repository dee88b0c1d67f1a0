//! Tests with a real Chromium. They are built only with `--features chromium-tests`. Then a machine without a browser
//! fails them and does not skip them silently.
#![cfg(feature = "chromium-tests")]

use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use perennial_core::page::layout::Layout;
use perennial_render::chromium::{LoadEnd, MAX_REQUESTS};
use perennial_render::launch::LaunchOptions;
use perennial_render::{
    BrowserError, BrowserOptions, BrowserPage, BrowserRequest, CapturedResource, Chromium, LayoutEngine,
};

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

/// A deliberately slow server.
fn dawdle(time: Duration) {
    std::thread::sleep(time);
}

#[test]
fn both_engines_see_the_same_words_in_the_same_order() {
    let html = "<link rel=stylesheet href=/s.css><body><nav>Menu one</nav><main><h1>Title</h1><p>Body <b>bold</b> text</main>\
        <div class=gone>never</div><div style='position:absolute;left:-9999px'>off page</div><p aria-hidden=true>silent";
    let lookup = |url: &str| {
        assert_eq!(url.split('/').nth(2), Some("a.example"), "nothing else is requested");
        (url == "http://a.example/s.css").then(|| CapturedResource {
            status: 200,
            content_type: "text/css".into(),
            body: b"nav{float:left;width:200px} main{margin-left:220px} .gone{display:none}".to_vec(),
            ..CapturedResource::default()
        })
    };
    let seen = chromium()
        .layout(&page(html), &|request, _| lookup(&request.url))
        .expect("Chromium lays the page out");
    let own = LayoutEngine::new().layout(html, "http://a.example/", &lookup);
    assert_eq!(words(&seen.layout), words(&own));
    assert_eq!(words(&own), ["Menu", "one", "Title", "Body", "bold", "text", "silent"]);
    let x_of =
        |layout: &Layout, tag: &str| layout.nodes.iter().find(|node| node.tag == tag).expect("there").rect.x;
    assert!((x_of(&seen.layout, "main") - x_of(&own, "main")).abs() < 2.0);
}

#[test]
fn scripts_run_with_a_fixed_clock_and_fixed_random_numbers() {
    let html = "<body><p id=p>before<script>setTimeout(() => { p.textContent = \
        `${new Date(Date.now()).getUTCFullYear()} ${Math.random()} ${crypto.getRandomValues(new Uint8Array(2))}` }, 500)</script>";
    let mut chromium = chromium();
    let mut run = || {
        let seen = chromium.layout(&page(html), &|_, _| None).expect("laid out");
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
    assert!(chromium.layout(&page(hang), &|_, _| None).is_err());
    let seen = chromium.layout(&page("<p>next page"), &|_, _| None).expect("a fresh browser");
    assert_eq!(words(&seen.layout), ["next", "page"]);
    assert_eq!(chromium.n_restarts(), 1);
}

#[test]
fn a_missing_browser_names_the_hint() {
    let options =
        BrowserOptions { program: Some("/nonexistent/chromium".into()), ..BrowserOptions::default() };
    let error = Chromium::new(options).layout(&page("<p>"), &|_, _| None).expect_err("no browser");
    assert!(matches!(error, BrowserError::Missing(_)));
    assert!(
        error.to_string().contains("apt install chromium") && error.to_string().contains("--renderer layout")
    );
}

/// Tries network paths that bypass interception, and text that marks the end.
const WAYS_OUT: &str = r"<link rel=preconnect href=http://OUT><link rel=prefetch href=http://OUT/prefetch><p id=p>before
<script>
const socket = `try { new WebSocket('ws://OUT/') } catch (e) {} fetch('http://OUT/').catch(() => 0)`;
eval(socket);
new Worker(URL.createObjectURL(new Blob([socket], {type: 'text/javascript'})));
try { new WebTransport('https://OUT/').ready.catch(() => 0) } catch (e) {}
const turn = {urls: 'turn:OUT?transport=tcp', username: 'u', credential: 'c'};
const peer = new RTCPeerConnection({iceServers: [turn, {urls: 'stun:PACKETS'}, {urls: 'turn:PACKETS', username: 'u', credential: 'c'}]});
peer.createDataChannel('x');
peer.createOffer().then((offer) => peer.setLocalDescription(offer));
fetch('/wait').finally(() => { p.textContent = 'tried' });
</script>";

#[test]
fn without_a_namespace_the_settings_alone_keep_a_page_from_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let out = listener.local_addr().expect("an address").to_string();
    let n_connections = Arc::new(AtomicUsize::new(0));
    let counted = n_connections.clone();
    std::thread::spawn(move || {
        for _stream in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    // Without a namespace root cannot use the sandbox. That does not matter to this test.
    let launch = LaunchOptions { own_network: false, sandbox: false, ..LaunchOptions::default() };
    let mut chromium =
        Chromium::new(BrowserOptions { time: Duration::from_secs(60), launch, ..BrowserOptions::default() });
    let answers = |request: &BrowserRequest, _| {
        let url = request.url.as_str();
        // Time in which the connections would be made.
        dawdle(Duration::from_secs(u64::from(url.ends_with("/wait")) * 3));
        None
    };
    let packets = UdpSocket::bind("127.0.0.1:0").expect("a port");
    packets.set_nonblocking(true).expect("it does not wait");
    let html = WAYS_OUT.replace("OUT", &out);
    let html = html.replace("PACKETS", &packets.local_addr().expect("an address").to_string());
    let seen = chromium.layout(&page(&html), &answers).expect("laid out");
    assert_eq!(words(&seen.layout), ["tried"]);
    assert_eq!(n_connections.load(Ordering::SeqCst), 0);
    assert!(packets.recv(&mut [0; 1500]).is_err(), "a packet came");
    assert!(!chromium.isolation().expect("it runs").has_own_network);
}

#[test]
fn frames_of_other_hosts_and_workers_are_answered_too() {
    // The page keeps making requests until the worker has responded, because virtual time waits for requests of the
    // page, not of its workers.
    let html = "<p id=p>before<iframe src=http://b.example/></iframe><script>let done = false;\
        const worker = new Worker('/w.js'); worker.onmessage = (e) => { p.textContent = e.data; done = true };\
        const hold = () => done || fetch('/hold').finally(hold); hold()</script>";
    let answers = |request: &BrowserRequest, _| {
        let url = request.url.as_str();
        let (kind, body) = match url {
            "http://b.example/" => ("text/html", "<body><script src=/inner.js></script>"),
            "http://b.example/inner.js" => ("text/javascript", "fetch('/from-frame')"),
            "http://a.example/w.js" => {
                ("text/javascript", "fetch('/data').then((r) => r.text()).then(postMessage)")
            }
            "http://a.example/data" => ("text/plain", "by a worker"),
            _ => {
                dawdle(Duration::from_millis(20));
                return None;
            }
        };
        Some(CapturedResource {
            status: 200,
            content_type: kind.into(),
            body: body.as_bytes().to_vec(),
            ..CapturedResource::default()
        })
    };
    let requested = std::sync::Mutex::new(Vec::new());
    let noting = |request: &BrowserRequest, deadline| {
        let url = request.url.as_str();
        requested.lock().expect("asked").push(url.to_owned());
        answers(request, deadline)
    };
    let seen = chromium().layout(&page(html), &noting).expect("laid out");
    let requested = requested.into_inner().expect("asked");
    assert!(requested.contains(&"http://b.example/from-frame".to_string()), "{requested:?}");
    assert_eq!(words(&seen.layout), ["by", "a", "worker"], "{requested:?}");
    assert_eq!(seen.ending, LoadEnd::Whole);
}

#[test]
fn a_page_that_never_stops_requesting_is_taken_as_it_is() {
    let html = "<p>flood<script>const next = (n) => fetch('/part/' + n).finally(() => next(n + 1)); \
        for (let i = 0; i < 50; i++) next(i)</script>";
    let n_requested = AtomicUsize::new(0);
    let answers = |_: &BrowserRequest, _| {
        n_requested.fetch_add(1, Ordering::SeqCst);
        None
    };
    let seen = chromium().layout(&page(html), &answers).expect("laid out");
    assert_eq!((words(&seen.layout), seen.ending), (vec!["flood"], LoadEnd::Flood));
    assert!(n_requested.load(Ordering::SeqCst) < MAX_REQUESTS);
}

#[test]
fn a_page_that_waits_for_ever_ends_with_its_deadline() {
    let time = Duration::from_secs(8);
    let mut chromium = Chromium::new(BrowserOptions { time, ..BrowserOptions::default() });
    let html =
        "<p>there<script>setInterval(() => fetch('/again').catch(() => 0), 100)</script><img src=/slow>";
    let answers = |request: &BrowserRequest, deadline: std::time::Instant| {
        let url = request.url.as_str();
        if url.ends_with("/slow") {
            dawdle(deadline.saturating_duration_since(std::time::Instant::now()));
        }
        None
    };
    let seen = chromium.layout(&page(html), &answers).expect("laid out");
    assert_eq!((words(&seen.layout), seen.ending), (vec!["there"], LoadEnd::Deadline));
    assert_eq!(chromium.n_restarts(), 0);
}

#[test]
fn a_page_that_eats_memory_costs_one_page() {
    let launch = LaunchOptions { memory_bytes: 700 << 20, ..LaunchOptions::default() };
    let mut chromium =
        Chromium::new(BrowserOptions { time: Duration::from_secs(60), launch, ..BrowserOptions::default() });
    let hungry = "<p>eats<script>const kept = []; for (;;) kept.push(new Uint8Array(1 << 24).fill(kept.length))</script>";
    let error = chromium.layout(&page(hungry), &|_, _| None).expect_err("it is too large");
    // The page's own process may reach a limit of the browser first.
    assert!(matches!(error, BrowserError::OverLimit(_) | BrowserError::Ended(_)), "{error}");
    let seen = chromium.layout(&page("<p>next page"), &|_, _| None).expect("a fresh browser");
    assert_eq!(words(&seen.layout), ["next", "page"]);
}

#[test]
fn pages_are_rendered_in_the_sandbox_and_without_a_network() {
    let isolation = chromium().isolation().expect("it starts");
    assert!(
        isolation.has_sandbox && isolation.has_own_network,
        "`perennial doctor` lists the missing parts: {isolation:?}"
    );
}
