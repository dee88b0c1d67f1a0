//! Replayed pages in a real browser: they look as they did when captured, and they can reach only the server. The tests
//! need the feature `interop`, so a machine without a browser fails them loudly.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use perennial_core::page::segment::{BlockTree, SegmentConfig, segment};

use crate::browser::{Serving, Viewer};
use crate::crawled::Archive;
use crate::hostile_replay::push_record;
use crate::web::{Reply, Web, WebRequest, html, status};

fn typed(mime: &str, body: impl Into<Vec<u8>>) -> Reply {
    Reply::Page(200, vec![("Content-Type", mime.to_string())], body.into())
}

/// An SVG image of one colour.
fn drawing(colour: &str) -> Reply {
    typed(
        "image/svg+xml",
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' width='120' height='60'><rect width='120' height='60' fill='{colour}'/></svg>"
        ),
    )
}

/// A second of a tone, in a file format that browsers play.
fn tone() -> Vec<u8> {
    let n_bytes: u32 = 2 * 44_100 * 2;
    let mut bytes = Vec::new();
    bytes.extend(b"RIFF");
    bytes.extend((36 + n_bytes).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    bytes.extend(44_100u32.to_le_bytes());
    bytes.extend(88_200u32.to_le_bytes());
    bytes.extend(b"\x02\0\x10\0data");
    bytes.extend(n_bytes.to_le_bytes());
    bytes.extend((0..n_bytes / 2).flat_map(|sample| ((sample % 100) as i16 * 50).to_le_bytes()));
    bytes
}

const PAGE: &str = r##"<!DOCTYPE html>
<html lang=en><head><meta charset=utf-8><title>Harbour news</title>
<link rel=stylesheet href=/style.css><link rel=icon href=/icon.svg>
<script>var early = location.pathname; window.seen = [early, document.URL, top === self, parent === window];</script>
<script src=/app.js defer></script><script type=module src=/module.js></script></head>
<body><header><img src=/logo.svg alt=Logo width=120 height=60><h1>HEADLINE</h1></header>
<nav><a href=/about>About the harbour</a> <a href="/contact?a=1&amp;b=2">Contact</a></nav>
<main><p id=lead>LEAD</p><div id=list></div>
<img srcset="/one.svg 1x, /two.svg 2x" alt=Responsive width=120 height=60>
<div class=pictured>A block with a picture behind it</div>
<p id=routed></p><p id=built></p></main>
<iframe src=/frame.html width=400 height=120 title=Tides></iframe>
<video src=/clip.wav width=200 height=40 preload=auto></video>
<footer style="background: url('/foot.svg')">The harbour office, all rights reserved</footer></body></html>"##;

const SCRIPT: &str = r"
const base = window.location.origin;
fetch('/data.json').then((answer) => answer.json()).then((data) => {
  document.getElementById('list').innerHTML = data.items.map((item) => `<article><h2><a href='/item/${item.id}'>${item.title}</a></h2>
    <p>${item.text}</p><img src='/pictures/${item.id}.svg' alt='' width=120 height=60></article>`).join('');
  const picture = new Image();
  picture.src = base + '/built' + '.svg';
  picture.width = 120; picture.height = 60;
  picture.onload = () => { document.getElementById('built').append(picture); };
});
const route = (path) => { history.pushState({path}, '', path); show(); };
const show = () => { document.getElementById('routed').textContent = 'You are at ' + location.pathname + location.search; };
addEventListener('popstate', show);
route('/section/ships?page=2');
";

const STYLE: &str = "@import '/more.css'; @font-face { font-family: Harbour; src: url(/font.woff2); }
body { font: 16px/24px Harbour, sans-serif; margin: 0; COLOUR } header { display: flex; gap: 20px; padding: 10px; background: #dde }
.pictured { background: url(/behind.svg); width: 400px; height: 60px }";

fn site(request: &WebRequest, version: usize) -> Reply {
    let is_second = version == 2;
    let lead = if is_second {
        "The lighthouse was repaired in spring and its lamp is lit again every night of the year."
    } else {
        "The lighthouse is dark while the harbour office looks for somebody who can repair its lamp."
    };
    match request.path.as_str() {
        "/" => {
            let headline = if is_second { "Lighthouse lit again" } else { "Lighthouse stays dark" };
            html(&PAGE.replace("HEADLINE", headline).replace("LEAD", lead))
        }
        "/style.css" => {
            let colour = if is_second { "background: #eef" } else { "background: #fee" };
            typed("text/css", STYLE.replace("COLOUR", colour))
        }
        "/more.css" => {
            typed("text/css", "nav { padding: 10px; border-bottom: 1px solid } article { margin: 20px 10px }")
        }
        "/app.js" => typed("text/javascript", SCRIPT),
        "/module.js" => typed(
            "text/javascript",
            "import {word} from '/parts/word.js'; import('./late.js').then((late) => { document.body.dataset.late = word + late.word; });",
        ),
        "/parts/word.js" => typed("text/javascript", "export const word = 'early ';"),
        "/late.js" => typed("text/javascript", "export const word = 'and late';"),
        "/data.json" => {
            let items: Vec<String> = ["Ships", "Cranes", "Tides"]
                .iter()
                .enumerate()
                .map(|(id, title)| {
                    format!("{{\"id\": {id}, \"title\": \"{title} of version {version}\", \"text\": \"What there is to say of the {title} in this week.\"}}")
                })
                .collect();
            typed("application/json", format!("{{\"items\": [{}]}}", items.join(",")))
        }
        "/frame.html" => html(
            "<p>High water at <b id=time>noon</b></p><script>document.getElementById('time').textContent = 'six, says ' + document.referrer.split('/')[2] + (parent !== window)</script>",
        ),
        "/clip.wav" => ranged(request, tone()),
        path if path.ends_with(".svg") => drawing(if is_second { "#37a" } else { "#a73" }),
        "/about" => html("<title>About</title><p>About the harbour and its office</p><a href=/>Back</a>"),
        "/contact?a=1&b=2" => html("<title>Contact</title><p>Ask at the office</p>"),
        path if path.starts_with("/item/") => html("<title>Item</title><p>More of it</p>"),
        _ => status(404),
    }
}

/// A file that supports range requests.
fn ranged(request: &WebRequest, bytes: Vec<u8>) -> Reply {
    let fields = vec![("Content-Type", "audio/wav".to_string()), ("Accept-Ranges", "bytes".into())];
    let Some(range) = request.field("range").and_then(|range| range.strip_prefix("bytes=")) else {
        return Reply::Page(200, fields, bytes);
    };
    let (from, to) = range.split_once('-').unwrap();
    let from: usize = from.parse().unwrap();
    let to = to.parse().unwrap_or(bytes.len() - 1).min(bytes.len() - 1);
    let part = format!("bytes {from}-{to}/{}", bytes.len());
    Reply::Page(206, [fields, vec![("Content-Range", part)]].concat(), bytes[from..=to].to_vec())
}

/// The host and port, as the browser's list of servers expects them.
fn host(origin: &str) -> String {
    origin.trim_start_matches("http://").to_string()
}

/// The times of a URL's captures with a body, oldest first.
fn captured(archive: &Archive, url: &str) -> Vec<String> {
    let index = archive.root.join("all.cdxj");
    archive.ok(&["export", "--format", "cdxj", "-o", index.to_str().unwrap(), "--force"]);
    let text = std::fs::read_to_string(index).unwrap();
    let wanted = format!("\"url\":\"{url}\"");
    let lines = text.lines().filter(|line| line.replace(": ", ":").contains(&wanted));
    let mut times: Vec<String> = lines.map(|line| line.split(' ').nth(1).unwrap().to_string()).collect();
    times.sort();
    times.dedup();
    times
}

/// The leaf of each word. Equal words are numbered.
fn places(tree: &BlockTree) -> HashMap<(String, u32), usize> {
    let (mut counts, mut places) = (HashMap::<String, u32>::new(), HashMap::new());
    for (leaf, block) in tree.leaves().enumerate() {
        let texts = block.texts.iter().map(|text| text.text.as_str());
        let links = block.links.iter().map(|link| link.name.as_str());
        for word in texts.chain(links).flat_map(str::split_whitespace) {
            let count = counts.entry(word.to_string()).or_default();
            places.insert((word.to_string(), *count), leaf);
            *count += 1;
        }
    }
    places
}

/// How far two layouts agree on which words share a block: the harmonic mean over pairs of words. Words that occur in
/// only one layout count against it.
fn pair_f(a: &BlockTree, b: &BlockTree) -> f64 {
    let (a, b) = (places(a), places(b));
    let n_shared = a.keys().filter(|word| b.contains_key(*word)).count();
    let shared = 2.0 * n_shared as f64 / (a.len() + b.len()) as f64;
    let (mut in_a, mut in_b, mut in_both) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (word, leaf_a) in &a {
        let Some(leaf_b) = b.get(word) else { continue };
        *in_a.entry(*leaf_a).or_insert(0u64) += 1;
        *in_b.entry(*leaf_b).or_insert(0u64) += 1;
        *in_both.entry((*leaf_a, *leaf_b)).or_insert(0u64) += 1;
    }
    let pairs = |n: &u64| (n * (n.saturating_sub(1)) / 2) as f64;
    let (a, b): (f64, f64) = (in_a.values().map(pairs).sum(), in_b.values().map(pairs).sum());
    let both: f64 = in_both.values().map(pairs).sum();
    shared * if a + b == 0.0 { 1.0 } else { 2.0 * both / (a + b) }
}

fn blocks(viewer: &mut Viewer, is_inside: bool) -> BlockTree {
    segment(&viewer.layout(is_inside), &SegmentConfig::default())
}

const IS_READY: &str = "document.querySelectorAll('#list article img').length === 3 && document.body.dataset.late === 'early and late' \
     && document.querySelector('#built img') !== null && [...document.images].every((image) => image.complete && image.naturalWidth > 0) \
     && document.querySelector('video').readyState > 0";

/// A frame without a URL has the browser's own functions. If they request a root path of our origin, the server
/// redirects the request to the page's host.
const LEAKED: &str = "(async () => { const clean = document.createElement('iframe'); clean.hidden = true; document.body.append(clean); \
     const data = await (await clean.contentWindow.fetch.call(window, '/data.json')).json(); \
     return `${data.items.length} items`; })()";

/// The site is crawled twice and replayed twice. By our own measure each replay looks as the site did, and it requests
/// only the server.
#[test]
fn a_site_with_scripts_is_replayed_as_it_was() {
    let version = Arc::new(AtomicUsize::new(1));
    let served = version.clone();
    let web = Web::serve(move |request| site(request, served.load(Ordering::SeqCst)));
    let archive = Archive::new();
    let root = web.url("/");
    archive.ok(&["add", &root, "--allow-private", "--renderer", "chromium"]);
    let serving = Serving::start(&archive);
    let reachable = [host(&serving.main), host(&serving.replay), web.address.to_string()];
    let mut viewer = Viewer::start(&reachable);
    let mut live = Vec::new();
    for number in [1, 2] {
        version.store(number, Ordering::SeqCst);
        archive.ok(&["run", "--once", "--delay", "0"]);
        viewer.visit(&root);
        viewer.until(false, IS_READY);
        let text = viewer.outside("document.body.innerText").as_str().unwrap().to_string();
        live.push((blocks(&mut viewer, false), text, viewer.errors.clone()));
        viewer.picture(&format!("live-{number}"));
    }
    let times = captured(&archive, &root);
    assert_eq!(times.len(), 2, "{times:?}");
    let n_requests = web.requests().len();
    for (number, (time, (tree, text, errors))) in times.iter().zip(&live).enumerate() {
        viewer.visit(&format!("{}/web/{time}/{root}", serving.main));
        viewer.until(true, IS_READY);
        viewer.picture(&format!("replay-{}", number + 1));
        assert_eq!(viewer.inside("document.body.innerText").as_str().unwrap(), text);
        let score = pair_f(tree, &blocks(&mut viewer, true));
        assert!(score >= 0.95, "version {}: {score}", number + 1);
        // An error names the URL that failed, which in a replay is a URL of the archive.
        let original = |error: &String| {
            let (before, rest) = error.split_once(&format!("{}/web/{time}", serving.replay))?;
            Some(format!("{before}{}", rest.split_once('/')?.1))
        };
        // The archive does not store a server's own reason phrase.
        let plain = |error: &String| error.replace("(Some Reason)", "(Not Found)");
        let known: Vec<String> = errors.iter().map(plain).collect();
        let is_new = |error: &&String| {
            !known.contains(error) && !original(error).is_some_and(|error| known.contains(&error))
        };
        let new: Vec<&String> = viewer.errors.iter().filter(is_new).collect();
        assert!(new.is_empty(), "{new:?}");
        let seen = viewer.inside("JSON.stringify(window.seen)");
        assert_eq!(seen.as_str().unwrap(), format!("[\"/\",\"{root}\",true,true]"));
        let played = viewer.inside("new Promise((done) => { const video = document.querySelector('video'); video.onseeked = () => done(video.duration); video.currentTime = 1.5; })");
        assert_eq!(played, 2.0);
        assert_eq!(viewer.inside(LEAKED), "3 items", "{:?}", viewer.errors);
        viewer.until(false, "document.querySelectorAll('.t tbody tr').length >= 12");
        let elsewhere: Vec<&String> = viewer
            .requested
            .iter()
            .filter(|url| {
                !url.starts_with(&serving.main)
                    && !url.starts_with(&serving.replay)
                    && url.starts_with("http")
            })
            .collect();
        assert!(elsewhere.is_empty(), "{elsewhere:?}");
    }
    the_banner_leads_through_time(&mut viewer, &serving, &root, &times);
    links_keep_one_instant_if_wanted(&mut viewer, &serving, &root, &times);
    assert_eq!(web.requests().len(), n_requests, "{:?}", &web.requests()[n_requests..]);
    assert_eq!(viewer.escaped(), Vec::<String>::new());
}

/// The banner shows the versions before and after, the importance of a change, and when a paragraph changed.
fn the_banner_leads_through_time(viewer: &mut Viewer, serving: &Serving, root: &str, times: &[String]) {
    let place = |time: &str| format!("{}/web/{time}/{root}", serving.main);
    viewer.visit(&place(&times[0]));
    viewer.until(true, IS_READY);
    let links =
        "[...document.querySelectorAll('#ban a[rel]')].map((link) => link.rel + ' ' + link.href).join()";
    let expected = format!("next {0},next {0}", place(&times[1]));
    assert_eq!(viewer.outside(links), expected);
    viewer.inside("document.getElementById('lead').click()");
    viewer.until(false, "document.getElementById('block').textContent.includes('lit again every night')");
    let said = viewer.outside("document.getElementById('block').textContent").as_str().unwrap().to_string();
    assert!(
        said.contains("No earlier change of this block is known") && said.contains("Changed again"),
        "{said}"
    );
    viewer.visit(&place(&times[1]));
    viewer.until(true, IS_READY);
    assert_eq!(viewer.outside(links), format!("prev {0},prev {0}", place(&times[0])));
    let importance =
        viewer.outside("document.querySelector('#ban .imp span').innerText").as_str().unwrap().to_string();
    let importance: f64 = importance.trim_start_matches("importance").trim().parse().unwrap();
    assert!(importance > 0.05 && importance <= 1.0, "{importance}");
    for (width, is_dark, name) in
        [(1280, false, "wide"), (1280, true, "wide-dark"), (390, false, "narrow"), (390, true, "narrow-dark")]
    {
        viewer.size(width, 800, is_dark);
        viewer.outside("document.querySelector('#ban details').open = true");
        let is_fitting = viewer.outside("document.documentElement.scrollWidth <= innerWidth");
        assert_eq!(is_fitting, true, "{name}");
        viewer.picture(&format!("banner-{name}"));
    }
    viewer.size(1280, 800, false);
    // By keyboard: the first stop is a link to the page, and Escape closes any open panel.
    viewer.outside("document.activeElement.blur()");
    for key in ["Tab", "Escape"] {
        for kind in ["keyDown", "keyUp"] {
            viewer.call("Input.dispatchKeyEvent", serde_json::json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": if key == "Tab" { 9 } else { 27 }}));
        }
    }
    assert_eq!(viewer.outside("document.querySelectorAll('#ban details[open]').length"), 0);
    assert_eq!(viewer.outside("document.activeElement.className"), "skip");
}

/// A link uses the page's own time, or keeps the chosen instant. The banner then shows how far the page is from it.
fn links_keep_one_instant_if_wanted(viewer: &mut Viewer, serving: &Serving, root: &str, times: &[String]) {
    let about = format!("{root}about");
    let start = format!("{}/web/{}/{root}", serving.main, times[0]);
    viewer.visit(&start);
    viewer.until(true, IS_READY);
    viewer.outside("document.getElementById('keep').click()");
    viewer.inside("document.links[0].click()");
    viewer.until(true, "document.title === 'About'");
    viewer.until(false, &format!("location.href === '{}/web/{}mp_/{about}'", serving.main, times[0]));
    viewer.until(true, &format!("document.URL === '{about}'"));
    viewer.inside("document.links[0].click()");
    viewer.until(true, IS_READY);
    viewer.until(false, &format!("location.href === '{}/web/{}mp_/{root}'", serving.main, times[0]));
    viewer.outside("document.getElementById('keep').click()");
    viewer.inside("document.links[0].click()");
    let is_own_time = format!(
        "location.href.endsWith('{about}') && document.querySelector('.when').dateTime.replace(/\\D/g, '').slice(0, 14) === location.pathname.split('/')[2]"
    );
    viewer.until(false, &is_own_time);
}

/// Without scripts a page has its styles, images, frames and links.
#[test]
fn a_page_is_whole_without_scripts() {
    let web = Web::serve(|request| site(request, 1));
    let archive = Archive::new();
    let root = web.url("/");
    archive.ok(&["add", &root, "--allow-private", "--renderer", "layout"]);
    archive.ok(&["run", "--once", "--delay", "0"]);
    let serving = Serving::start(&archive);
    let mut viewer = Viewer::start(&[host(&serving.main), host(&serving.replay)]);
    let n_requests = web.requests().len();
    viewer.call("Emulation.setScriptExecutionDisabled", serde_json::json!({"value": true}));
    viewer.visit(&format!("{}/web/{}/{root}", serving.main, captured(&archive, &root)[0]));
    let check = "(() => { const page = document; return [getComputedStyle(page.body).backgroundColor, page.images[0].naturalWidth, \
                 page.links[0].pathname.endsWith('/about')].join(' '); })()";
    viewer.until(true, &format!("{check} === 'rgb(255, 238, 238) 120 true'"));
    let banner = viewer.outside("document.getElementById('ban').innerText").as_str().unwrap().to_string();
    assert!(banner.contains("coherent") || banner.contains("possibly"), "{banner}");
    assert_eq!(web.requests().len(), n_requests);
    assert_eq!(viewer.escaped(), Vec::<String>::new());
}

/// On a phone, browsers lay out a page without a viewport at 980 pixels.
#[test]
fn a_page_without_a_viewport_is_wide_on_a_phone() {
    let archive = Archive::new();
    let mut warc = Vec::new();
    for (path, head) in [("old", ""), ("new", "<meta name=viewport content='width=device-width'>")] {
        let body = format!("<!doctype html><title>{path}</title>{head}<p>Words</p>");
        push_record(
            &mut warc,
            &format!("http://a.example/{path}"),
            "200 OK",
            "Content-Type: text/html",
            &body,
        );
    }
    let file = archive.root.join("pages.warc");
    std::fs::write(&file, warc).unwrap();
    archive.ok(&["import", file.to_str().unwrap()]);
    let serving = Serving::start(&archive);
    let mut viewer = Viewer::start(&[host(&serving.main), host(&serving.replay)]);
    for (is_phone, path, width) in [(true, "old", 980), (true, "new", 390), (false, "old", 390)] {
        let metrics =
            serde_json::json!({"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": is_phone});
        viewer.call("Emulation.setDeviceMetricsOverride", metrics);
        viewer.call("Emulation.setTouchEmulationEnabled", serde_json::json!({"enabled": is_phone}));
        viewer.visit(&format!("{}/web/20260102030405/http://a.example/{path}", serving.main));
        viewer.until(true, &format!("document.title === '{path}' && innerWidth === {width}"));
        viewer.until(false, "document.documentElement.scrollWidth <= 390");
    }
}
