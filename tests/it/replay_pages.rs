//! Pages that use the less common parts of the web platform: each check that holds on the live site holds in the replay.

use crate::replay_scripts::{Resource, check_site};

const PAGES: [Resource; 30] = [
    ("/vector", "text/html", VECTOR),
    ("/modules", "text/html", MODULES),
    ("/frames2", "text/html", FRAMES),
    ("/network", "text/html", NETWORK),
    ("/state", "text/html", STATE),
    ("/markup", "text/html", MARKUP),
    ("/policy", "text/html", POLICY),
    ("/media", "text/html", MEDIA),
    ("/based", "text/html", BASED),
    ("/refreshed", "text/html", "<meta http-equiv=refresh content='0; url=/landed?refreshed'><p>wait"),
    (
        "/landed",
        "text/html",
        "<p id=landed>landed</p><script>parent !== self && parent.postMessage('landed ' + location.search, location.origin)</script>",
    ),
    (
        "/landed?refreshed",
        "text/html",
        "<script>parent.postMessage('landed ' + location.search, location.origin)</script>",
    ),
    (
        "/landed?q=1",
        "text/html",
        "<script>parent.postMessage('landed ' + location.search, location.origin)</script>",
    ),
    (
        "/landed?target",
        "text/html",
        "<script>parent.postMessage('landed ' + location.search, location.origin)</script>",
    ),
    (
        "/pics/icons.svg",
        "image/svg+xml",
        "<svg xmlns='http://www.w3.org/2000/svg'><symbol id='star' viewBox='0 0 10 10'><rect width='10' height='10'/></symbol></svg>",
    ),
    ("/pics/a.svg", "image/svg+xml", PICTURE),
    ("/pics/b.svg", "image/svg+xml", PICTURE),
    ("/pics/c.svg", "image/svg+xml", PICTURE),
    ("/pics/wide.svg", "image/svg+xml", PICTURE),
    (
        "/lib/tool.js",
        "text/javascript",
        "export const place = import.meta.url; export const beside = new URL('data.json', import.meta.url).pathname; export const load = () => fetch(new URL('data.json', import.meta.url)).then((answer) => answer.json());",
    ),
    ("/lib/data.json", "application/json", "{\"word\": \"beside\"}"),
    ("/lib/late.js", "text/javascript", "export default 'late'"),
    (
        "/shared.js",
        "text/javascript",
        "onconnect = (event) => { const port = event.ports[0]; fetch('/lib/data.json').then((answer) => answer.json()).then((data) => port.postMessage(data.word + location.pathname)); }",
    ),
    ("/first.css", "text/css", "@import 'deep/second.css'; p { margin-left: 1px }"),
    ("/deep/second.css", "text/css", "@import url(third.css) screen; p { margin-right: 2px }"),
    (
        "/deep/third.css",
        "text/css",
        "@font-face { font-family: own; src: url('font.woff2') } p { margin-top: 3px; background: url(../pics/c.svg); font-family: own }",
    ),
    ("/deep/font.woff2", "font/woff2", "no font"),
    ("/film.webm", "video/webm", "no film, but bytes to seek in"),
    ("/plain.txt", "text/plain", "0123456789"),
    (
        "/classic.js",
        "text/javascript",
        "window.classic = document.currentScript.src === location.origin + '/classic.js' && '/classic.js'",
    ),
];

const PICTURE: &str =
    "<svg xmlns='http://www.w3.org/2000/svg' width='10' height='10'><rect width='10' height='10'/></svg>";

const VECTOR: &str = r##"<svg width=20 height=20><use href="/pics/icons.svg#star"></use><image href="pics/a.svg" width=5 height=5></image></svg><script>
const use = document.querySelector('use');
checks.use = new URL(use.href.baseVal, document.baseURI).href === location.origin + '/pics/icons.svg#star';
checks.image = loaded('/pics/a.svg');
const made = document.createElementNS('http://www.w3.org/2000/svg', 'image');
made.setAttributeNS('http://www.w3.org/1999/xlink', 'xlink:href', '/pics/b.svg');
document.querySelector('svg').append(made);
checks.made = loaded('/pics/b.svg');
</script>"##;

const MODULES: &str = r##"<script type=importmap>{"imports": {"tool": "/lib/tool.js", "lib/": "/lib/"}}</script><script src=/classic.js></script><script type=module>
import {place, beside, load} from 'tool';
import late from 'lib/late.js';
window.got = {place: place === location.origin + '/lib/tool.js', beside: beside === '/lib/data.json', mapped: late === 'late', own: new URL(import.meta.url).pathname === '/modules'};
load().then((data) => { got.loaded = data.word === 'beside'; });
import('/lib/late.js').then((module) => { got.dynamic = module.default === 'late'; });
const name = 'la' + 'te'; import(`./lib/${name}.js`).then((module) => { got.template = module.default === 'late'; });
</script><script>
for (const name of ['place', 'beside', 'mapped', 'own', 'loaded', 'dynamic', 'template']) checks[name] = until(() => window.got && got[name]);
checks.classic = window.classic === '/classic.js';
const shared = new SharedWorker('/shared.js'); shared.port.onmessage = (event) => { window.shared = event.data; };
checks.shared = until(() => window.shared === 'beside/shared.js');
</script>"##;

const FRAMES: &str = r##"<iframe id=blank></iframe><iframe id=doc srcdoc="<img src=/pics/a.svg><p id=p></p><script>p.textContent = location.href + '|' + document.baseURI + '|' + parent.location.pathname</script>"></iframe><iframe id=refresh src=/refreshed></iframe><iframe name=named></iframe>
<form id=form action=/landed target=named><input name=q value=1></form><a id=link href=/landed?target target=named>x</a><script>
const heard = []; addEventListener('message', (event) => { if (event.origin === location.origin) heard.push(event.data); });
const blank = document.getElementById('blank');
blank.contentDocument.body.innerHTML = '<img src="/pics/b.svg"><a href="/x">x</a>';
checks.blankImage = until(() => blank.contentDocument.querySelector('img')?.naturalWidth === 10);
checks.blankLink = blank.contentDocument.querySelector('a').href === location.origin + '/x';
checks.blankFetch = blank.contentWindow.fetch('/plain.txt').then((answer) => answer.text()).then((text) => text === '0123456789', () => false);
const written = document.createElement('iframe'); document.body.append(written);
written.contentDocument.open(); written.contentDocument.write('<body><img src=/pics/c.svg><script>parent.wrote = document.querySelector("img").getAttribute("src")<\/script>'); written.contentDocument.close();
checks.written = until(() => new URL(window.wrote || '', location).pathname === '/pics/c.svg');
checks.writtenImage = until(() => written.contentDocument.querySelector('img')?.naturalWidth === 10);
checks.srcdoc = until(() => document.getElementById('doc').contentDocument.getElementById('p')?.textContent === 'about:srcdoc|' + location.href + '|/frames2');
checks.srcdocImage = until(() => document.getElementById('doc').contentDocument.querySelector('img')?.naturalWidth === 10);
checks.refresh = until(() => heard.includes('landed ?refreshed'));
form.submit();
checks.form = until(() => heard.includes('landed ?q=1')).then((found) => { link.click(); return found; });
checks.target = until(() => heard.includes('landed ?target'));
checks.name = frames.named !== undefined && window.length >= 5;
</script>"##;

const NETWORK: &str = r##"<script>
const text = (answer) => answer.text();
checks.request = fetch(new Request('plain.txt', {headers: {'X-A': 'b'}})).then((answer) => answer.url === location.origin + '/plain.txt');
checks.clone = (() => { const request = new Request('/plain.txt'); return request.url === location.origin + '/plain.txt' && new Request(request).url === request.url; })();
checks.url = fetch(new URL('/plain.txt', location)).then(text).then((found) => found === '0123456789');
checks.xhr = new Promise((done) => { const request = new XMLHttpRequest(); request.open('GET', '/plain.txt'); request.onload = () => done(request.responseURL === location.origin + '/plain.txt' && request.getResponseHeader('content-type').startsWith('text/plain')); request.send(); });
checks.missing = fetch('/nothing-here').then((answer) => answer.status === 404);
checks.head = fetch('/plain.txt', {method: 'HEAD'}).then((answer) => answer.ok);
checks.performance = fetch('/plain.txt?').then(() => until(() => performance.getEntriesByType('resource').some((entry) => new URL(entry.name).pathname === '/plain.txt')));
checks.navigation = new URL(performance.getEntriesByType('navigation')[0].name).pathname === '/network';
checks.observer = new Promise((done) => { new PerformanceObserver((list) => { if (list.getEntriesByName(location.origin + '/pics/a.svg').length) done(true); }).observe({type: 'resource', buffered: true}); new Image().src = '/pics/a.svg'; setTimeout(() => done(false), 2500); });
checks.socket = (() => { const socket = new WebSocket('ws://' + location.host + '/socket'); return socket.readyState === 0 && socket instanceof WebSocket && until(() => socket.readyState === 3); })();
checks.beacon = navigator.sendBeacon('/beacon', 'x');
checks.service = 'serviceWorker' in navigator && typeof navigator.serviceWorker.register === 'function' && Promise.race([navigator.serviceWorker.getRegistrations().then((all) => Array.isArray(all))]);
checks.image = new Promise((done) => { const image = new Image(3, 4); image.onload = () => done(image.src === location.origin + '/pics/b.svg' && image.currentSrc === image.src && image.width === 3); image.src = 'pics/b.svg'; });
checks.headers = fetch('/plain.txt').then((answer) => answer.headers.get('content-type').startsWith('text/plain') && answer.type === 'basic');
checks.stream = fetch('/plain.txt').then((answer) => answer.body.getReader().read()).then(({value}) => value.length === 10);
checks.abort = (() => { const stop = new AbortController(); const asked = fetch('/plain.txt', {signal: stop.signal}); stop.abort(); return asked.then(() => false, (error) => error.name === 'AbortError'); })();
</script>"##;

const STATE: &str = r##"<script>
document.cookie = 'a=1'; document.cookie = 'b=2; path=/'; document.cookie = 'a=3';
checks.cookies = document.cookie.includes('a=3') && document.cookie.includes('b=2') && (document.cookie = 'a=; max-age=0', !document.cookie.includes('a='));
localStorage.setItem('k', 'v'); localStorage.other = 'w';
checks.storage = localStorage.k === 'v' && localStorage.getItem('other') === 'w' && localStorage.length === 2 && Object.keys(localStorage).sort().join() === 'k,other' && 'k' in localStorage && localStorage.getItem('none') === null;
checks.clear = (localStorage.clear(), localStorage.length === 0 && localStorage.k === undefined);
checks.json = (sessionStorage.setItem('s', JSON.stringify({a: 1})), JSON.parse(sessionStorage.getItem('s')).a === 1);
history.pushState({n: 1}, '', '/state/pushed?x=1#y');
checks.pushed = location.pathname === '/state/pushed' && location.search === '?x=1' && location.hash === '#y' && history.state.n === 1 && document.URL === location.href;
checks.relative = new URL('z', location).pathname === '/state/z' && new URL('/z', document.baseURI).href === location.origin + '/z';
history.replaceState(null, '', 'again');
checks.replaced = location.pathname === '/state/again';
checks.popped = new Promise((done) => { addEventListener('popstate', () => done(location.pathname === '/state'), {once: true}); history.back(); setTimeout(() => done(false), 2500); });
checks.foreign = (() => { try { history.pushState(null, '', 'http://other.example/'); return false; } catch (error) { return error.name === 'SecurityError'; } })();
checks.domain = document.domain === location.hostname && (() => { try { document.domain = location.hostname; return true; } catch (error) { return /domain/.test(error.message); } })();
checks.strings = `${location}` === location.href && location + '' === location.toString() && JSON.stringify({l: location.href}).includes(location.pathname);
checks.windows = window === self && self === globalThis && top === window && parent === window && window.frameElement === null && opener === null;
checks.message = new Promise((done) => { addEventListener('message', (event) => { if (event.data === 'self') done(event.origin === location.origin && event.source === window); }); postMessage('self', location.origin); setTimeout(() => done(false), 2500); });
checks.channel = new Promise((done) => { const {port1, port2} = new MessageChannel(); port1.onmessage = (event) => done(event.data === 5); port2.postMessage(5); });
checks.database = new Promise((done) => { const request = indexedDB.open('db', 1); request.onsuccess = () => done(request.result.name.endsWith('db')); request.onerror = () => done(false); });
checks.opened = window.open('about:blank', '_self_none') === null || true;
</script>"##;

const MARKUP: &str = r##"<link rel=stylesheet href=first.css><p id=p>p</p><a id=a href="deep/x?y#z">a</a><div id=d></div><script>
const a = document.getElementById('a'), d = document.getElementById('d');
checks.link = a.href === location.origin + '/deep/x?y#z' && a.pathname === '/deep/x' && a.hash === '#z' && String(a) === a.href;
checks.dataset = (d.innerHTML = '<img data-src="/pics/b.svg" src="/pics/a.svg">', d.firstChild.dataset.src === '/pics/b.svg' && d.innerHTML.includes('src="/pics/a.svg"'));
checks.clone = d.firstChild.cloneNode().getAttribute('src') === '/pics/a.svg';
checks.template = (() => { const template = document.createElement('template'); template.innerHTML = '<a href="/t">t</a>'; const link = document.importNode(template.content, true).firstChild; return link.getAttribute('href') === '/t' && link.href === location.origin + '/t'; })();
checks.parser = new DOMParser().parseFromString('<a href="/t">t</a>', 'text/html').querySelector('a').getAttribute('href') === '/t';
checks.serializer = !new XMLSerializer().serializeToString(a).includes('/web/');
checks.importChain = until(() => getComputedStyle(p).marginLeft === '1px' && getComputedStyle(p).marginRight === '2px' && getComputedStyle(p).marginTop === '3px');
checks.cssPicture = loaded('/pics/c.svg');
checks.sheets = until(() => document.styleSheets.length === 1 && document.styleSheets[0].href === location.origin + '/first.css');
checks.computed = until(() => getComputedStyle(p).backgroundImage === `url("${location.origin}/pics/c.svg")`);
checks.shadow = (() => { const root = d.attachShadow({mode: 'open'}); root.innerHTML = '<a href="/s">s</a><slot></slot>'; return root.querySelector('a').href === location.origin + '/s' && root.innerHTML.includes('href="/s"'); })();
checks.html = (() => { class Own extends HTMLElement { connectedCallback() { this.innerHTML = '<img src="/pics/b.svg">'; } } customElements.define('own-element', Own); document.body.append(document.createElement('own-element')); return document.querySelector('own-element img').src === location.origin + '/pics/b.svg'; })();
checks.mutation = new Promise((done) => { new MutationObserver((records) => done(records[0].target.getAttribute('href') === '/changed')).observe(a, {attributes: true}); a.setAttribute('href', '/changed'); setTimeout(() => done(false), 2000); });
</script>"##;

const POLICY: &str = r##"<meta http-equiv=Content-Security-Policy content="default-src 'self' 'unsafe-inline'; img-src 'self'; require-trusted-types-for 'script'"><script src=/classic.js integrity="sha384-oqVuAfXRKap7fdgcCY5uykM6+R9GqQ8K/uxy9rx7HNQlGYl1kPzQho1wx4JwY8wC"></script><div id=d></div><script>
checks.integrity = typeof window.classic === 'undefined' || window.classic === '/classic.js';
checks.types = (() => { if (!window.trustedTypes) return true; const policy = trustedTypes.createPolicy('own', {createHTML: (text) => text, createScriptURL: (text) => text, createScript: (text) => text}); d.innerHTML = policy.createHTML('<img src="/pics/a.svg">'); const script = document.createElement('script'); script.src = policy.createScriptURL('/classic.js'); document.head.append(script); return d.firstChild.src === location.origin + '/pics/a.svg'; })();
checks.picture = loaded('/pics/a.svg');
</script>"##;

const MEDIA: &str = r##"<picture><source media="(min-width: 1px)" srcset="/pics/wide.svg 1x, /pics/b.svg 9x"><img id=i src=/pics/a.svg></picture><img id=s src=/pics/a.svg srcset="pics/c.svg 1x" sizes=10px><video id=v src=/film.webm preload=metadata></video><script>
const i = document.getElementById('i'), s = document.getElementById('s'), v = document.getElementById('v');
checks.picture = until(() => i.currentSrc.startsWith(location.origin + '/pics/'));
checks.srcset = until(() => s.currentSrc === location.origin + '/pics/c.svg');
checks.video = v.src === location.origin + '/film.webm';
checks.range = fetch('/film.webm', {headers: {Range: 'bytes=3-6'}}).then((answer) => answer.arrayBuffer()).then((part) => part.byteLength === 4 || part.byteLength === 29);
checks.font = new FontFace('none', 'url(/deep/font.woff2)').load().then(() => false, () => loaded('/deep/font.woff2'));
checks.preload = (() => { const link = document.createElement('link'); link.rel = 'preload'; link.as = 'image'; link.href = '/pics/b.svg'; document.head.append(link); return loaded('/pics/b.svg'); })();
checks.blob = fetch('/pics/a.svg').then((answer) => answer.blob()).then((blob) => new Promise((done) => { const image = new Image(); image.onload = () => done(image.src.startsWith('blob:')); image.src = URL.createObjectURL(blob); }));
checks.canvas = new Promise((done) => { const image = new Image(); image.crossOrigin = 'anonymous'; image.onload = () => { const canvas = document.createElement('canvas'); canvas.getContext('2d').drawImage(image, 0, 0); try { done(canvas.toDataURL().startsWith('data:')); } catch (error) { done(false); } }; image.src = '/pics/a.svg'; });
</script>"##;

const BASED: &str = r##"<base href="/deep/"><img id=i src="../pics/a.svg"><a id=a href=x>x</a><link rel=stylesheet href=third.css><script>
checks.base = document.baseURI === location.origin + '/deep/' && document.querySelector('base').href === location.origin + '/deep/';
checks.link = a.href === location.origin + '/deep/x';
checks.image = i.src === location.origin + '/pics/a.svg' && loaded('/pics/a.svg');
checks.fetch = fetch('../plain.txt').then((answer) => answer.text()).then((text) => text === '0123456789');
checks.style = until(() => getComputedStyle(a).display === 'inline' && document.styleSheets.length === 1 && document.styleSheets[0].href === location.origin + '/deep/third.css');
</script>"##;

#[test]
fn uncommon_parts_of_the_platform_work_as_on_the_live_site() {
    check_site(&PAGES);
}
