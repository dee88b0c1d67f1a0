//! A site whose scripts do what a rewriter easily misses, in a real browser: each check that holds on the live site holds in
//! the replay. The tests need the feature `interop`, so a machine without a browser fails them loudly.

use crate::browser::{Serving, Viewer};
use crate::crawled::Archive;
use crate::hostile_replay::push_record;
use crate::web::{Reply, Web, WebRequest, status};

/// Path, media type, body. A page collects its checks in `checks`: by name, whether each holds, or a promise of that.
pub(crate) type Resource = (&'static str, &'static str, &'static str);

const SITE: [Resource; 17] = [
    ("/code", "text/html", CODE),
    ("/styles", "text/html", STYLES),
    ("/workers", "text/html", WORKERS),
    ("/frames", "text/html", FRAMES),
    ("/dir/pic.svg", "image/svg+xml", PICTURE),
    ("/pic.svg", "image/svg+xml", PICTURE),
    ("/pic.svg?a", "image/svg+xml", PICTURE),
    ("/pic.svg?b", "image/svg+xml", PICTURE),
    ("/dir/pic.svg?c", "image/svg+xml", PICTURE),
    ("/pic.svg?d", "image/svg+xml", PICTURE),
    ("/pic.svg?e", "image/svg+xml", PICTURE),
    ("/data.json", "application/json", "{\"word\": \"data\"}"),
    ("/lib.js", "text/javascript", "self.lib = 'lib of ' + self.location.pathname"),
    ("/module.js", "text/javascript", "export const word = 'module'"),
    ("/worker.js", "text/javascript", WORKER),
    (
        "/module-worker.js",
        "text/javascript",
        "import {word} from './module.js'; fetch('/data.json').then((answer) => answer.json()).then((data) => postMessage({module: word + data.word}))",
    ),
    (
        "/inner",
        "text/html",
        "<title>inner</title><p id=said></p><script>document.getElementById('said').textContent = location.pathname + origin; parent.heard = document.referrer</script>",
    ),
];

const PICTURE: &str =
    "<svg xmlns='http://www.w3.org/2000/svg' width='10' height='10'><rect width='10' height='10'/></svg>";

/// Waits until a value is there.
const HELPERS: &str = "<script>const checks = {}; const until = (made) => new Promise((done) => { let n = 0; const look = () => made() || ++n > 300 ? done(Boolean(made())) : setTimeout(look, 10); look(); });
const loaded = (end) => until(() => performance.getEntriesByType('resource').some((entry) => entry.name.endsWith(end) && entry.responseStatus === 200));</script>";

const CODE: &str = r#"<p id=p></p><script>
checks.eval = eval('location.pathname') === '/code';
checks.scope = (() => { const local = 'x'; return eval('local + location.pathname') === 'x/code'; })();
checks.indirect = (0, eval)('window.location.pathname') === '/code';
checks.declares = (eval('var declared = location.pathname'), declared === '/code');
checks.member = window.eval('document.location.pathname') === '/code';
checks.function = new Function('return location.pathname')() === '/code' && Function('a', 'return a + window.location.pathname')('x') === 'x/code';
checks.parameter = new Function('location', 'return location')('mine') === 'mine';
checks.constructor = (function () {}).constructor('return location.pathname')() === '/code' && new Function('') instanceof Function;
setTimeout("window.timed = location.pathname", 1);
checks.timer = until(() => window.timed === '/code');
const script = (fill) => { const element = document.createElement('script'); fill(element); document.head.append(element); };
script((element) => { element.text = 'window.texted = location.pathname'; });
checks.text = window.texted === '/code';
script((element) => { element.textContent = 'window.contained = top === self && location.pathname'; });
checks.textContent = window.contained === '/code';
script((element) => { element.append('window.appended = location.pathname'); });
checks.append = window.appended === '/code';
script((element) => { element.appendChild(document.createTextNode('const kept = location.pathname')); });
checks.textNode = kept === '/code';
script((element) => { element.type = 'application/json'; element.textContent = '{"location": 1, "top": 2}'; window.json = element; });
checks.data = JSON.parse(window.json.textContent).location === 1;
document.write('<script>window.written = location.pathname<\/script>');
checks.written = window.written === '/code';
checks.computed = window['loc' + 'ation'].pathname === '/code' && self['loca'.concat('tion')].pathname === '/code';
checks.otherKeys = (() => { const self = {location: 5, top: 6}; return self['loc' + 'ation'] === 5 && self['t' + 'op'] === 6; })();
checks.destructured = (() => { const {location, document: {title}} = window; return location.pathname === '/code'; })();
checks.renamed = (() => { const {location: place, history: {length}} = self, {location = 4} = {}; return place.pathname === '/code' && location === 4; })();
checks.attribute = (() => { const image = document.createElement('img'); image.setAttribute('src', 'dir/pic.svg'); return image.getAttribute('src') === 'dir/pic.svg' && image.src === location.origin + '/dir/pic.svg'; })();
checks.property = (() => { const link = document.createElement('a'); link.href = '/x?y'; return link.getAttribute('href') === '/x?y' && link.href === location.origin + '/x?y'; })();
checks.plain = eval({a: 1}).a === 1 && eval('1 + 1') === 2;
</script>"#;

const STYLES: &str = r#"<p id=a>a</p><p id=b>b</p><p id=c>c</p><p id=d>d</p><p id=e>e</p><script>
const [a, b, c, d, e] = 'abcde'.split('').map((id) => document.getElementById(id));
a.style.backgroundImage = 'url(/pic.svg?a)';
b.style['background-image'] = 'url("/pic.svg?b")';
c.style.background = 'no-repeat url(dir/pic.svg?c)';
d.style.listStyleImage = "url('/pic.svg?d')"; d.style.display = 'list-item';
const sheet = new CSSStyleSheet(); sheet.replaceSync('#e { color: red }'); document.adoptedStyleSheets = [sheet];
sheet.cssRules[0].style.backgroundImage = 'url(/pic.svg?e)';
for (const [name, path] of Object.entries({a: '/pic.svg?a', b: '/pic.svg?b', c: '/dir/pic.svg?c', d: '/pic.svg?d', e: '/pic.svg?e'})) checks[name] = loaded(path);
checks.read = /^url\("[^"]*pic\.svg\?a"\)$/.test(a.style.backgroundImage) && !/web.2026/.test(a.style.backgroundImage) && /no-repeat/.test(c.style.background);
checks.removed = (() => { e.style.backgroundImage = 'url(/pic.svg?a)'; e.style.backgroundImage = ''; return e.style.backgroundImage === '' && e.style.length === 0; })();
checks.others = (() => { e.style.color = 'blue'; e.style.marginTop = '3px'; return getComputedStyle(e).marginTop === '3px' && e.style.color === 'blue'; })();
</script>"#;

const WORKER: &str = r#"importScripts('/lib.js', 'lib.js');
const own = {lib: self.lib, path: location.pathname, origin: self.origin === location.origin, date: new Date().getFullYear() > 2000};
fetch('data.json').then((answer) => answer.json()).then((data) => { postMessage({...own, relative: data.word}); });
fetch(location.origin + '/data.json').then((answer) => answer.json()).then((data) => { postMessage({absolute: data.word}); });
const request = new XMLHttpRequest(); request.open('GET', '/data.json', false); request.send(); postMessage({xhr: JSON.parse(request.responseText).word});"#;

const WORKERS: &str = r#"<script>
const heard = {}, hear = (worker) => { worker.onmessage = (event) => Object.assign(heard, event.data); };
hear(new Worker('/worker.js'));
hear(new Worker('/module-worker.js', {type: 'module'}));
hear(new Worker(URL.createObjectURL(new Blob([`importScripts('${location.origin}/lib.js'); fetch('${location.origin}/data.json').then((answer) => answer.json()).then((data) => postMessage({blob: data.word + typeof self.lib}))`]))));
for (const [name, value] of Object.entries({lib: 'lib of /worker.js', path: '/worker.js', origin: true, date: true, relative: 'data', absolute: 'data', xhr: 'data', module: 'moduledata', blob: 'datastring'})) {
  checks[name] = until(() => heard[name] === value);
}
</script>"#;

const FRAMES: &str = r#"<iframe id=plain src=/inner></iframe><iframe id=sandboxed sandbox=allow-scripts src=/inner></iframe><script>
const made = document.createElement('iframe'); made.sandbox = 'allow-scripts'; made.src = '/inner'; document.body.append(made);
checks.plain = until(() => document.getElementById('plain').contentDocument.getElementById('said')?.textContent === '/inner' + location.origin);
checks.referrer = until(() => window.heard === location.href);
checks.loaded = loaded('/inner');
</script>"#;

fn answer(site: &[Resource], request: &WebRequest) -> Reply {
    match site.iter().find(|(known, ..)| *known == request.path) {
        Some((_, mime, body)) => {
            Reply::Page(200, vec![("Content-Type", (*mime).to_string())], page(mime, body).into())
        }
        None => status(404),
    }
}

fn page(mime: &str, body: &str) -> String {
    let helpers = if mime == "text/html" && body.contains("checks") { HELPERS } else { "" };
    format!("{helpers}{body}")
}

/// The site as a WARC file.
fn warc(site: &[Resource], root: &str) -> Vec<u8> {
    let mut warc = Vec::new();
    for (path, mime, body) in site {
        let fields = format!("Content-Type: {mime}");
        push_record(&mut warc, &format!("{root}{path}"), "200 OK", &fields, &page(mime, body));
    }
    warc
}

const LOADED: &str = "document.readyState === 'complete' && typeof checks === 'object'";

const FAILED: &str = "Promise.all(Object.entries(checks).map(async ([name, check]) => await check ? '' : name)).then((names) => names.filter(Boolean).join() || Object.keys(checks).length)";

#[test]
fn scripts_run_as_on_the_live_site() {
    check_site(&SITE);
}

/// Opens each page with checks on the live site and in the replay.
pub(crate) fn check_site(site: &'static [Resource]) {
    let web = Web::serve(|request| answer(site, request));
    let root = web.url("");
    let root = root.trim_end_matches('/');
    let archive = Archive::new();
    let file = archive.root.join("site.warc");
    std::fs::write(&file, warc(site, root)).unwrap();
    archive.ok(&["import", file.to_str().unwrap()]);
    let serving = Serving::start(&archive);
    let host = |origin: &str| origin.trim_start_matches("http://").to_string();
    let mut viewer = Viewer::start(&[host(&serving.main), host(&serving.replay), web.address.to_string()]);
    let mut found = Vec::new();
    for (path, ..) in site.iter().filter(|(_, mime, body)| *mime == "text/html" && body.contains("checks")) {
        viewer.visit(&format!("{root}{path}"));
        viewer.until(false, LOADED);
        let live = viewer.outside(FAILED);
        let n_requests = web.requests().len();
        viewer.visit(&format!("{}/web/20260102030405/{root}{path}", serving.main));
        viewer.until(true, LOADED);
        let replayed = viewer.inside(FAILED);
        if live != replayed || !live.is_u64() {
            found.push(format!("{path}: live {live}, replayed {replayed} {:?}", viewer.errors));
        }
        let mut live_requests: Vec<String> =
            web.requests().split_off(n_requests).into_iter().map(|request| request.path).collect();
        // Chromium asks for the icon of the live page at any time after it has loaded.
        live_requests.retain(|path| path != "/favicon.ico");
        assert!(live_requests.is_empty(), "{path} live_requests the live site: {live_requests:?}");
    }
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(viewer.escaped(), Vec::<String>::new());
}
