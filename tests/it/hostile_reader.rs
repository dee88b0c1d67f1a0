//! A reader's browser, with archived pages and websites that try to forge, to lock out or to spy. The tests need the
//! feature `interop`, so a machine without a browser fails them loudly.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use tokio_rustls::TlsAcceptor;

use crate::browser::{Serving, Viewer};
use crate::crawled::Archive;
use crate::hostile_replay::push_record;
use crate::program::localhost_tls;
use crate::wait::found_within;
use crate::web::{Web, html};

const TIME: &str = "20260102030405";
const HONEST: &str = "http://honest.example/";

/// The archived pages of a site that cheats, by path. `ABOVE` is the window of the banner.
const CHEATS: [(&str, &str); 5] = [
    ("/names", "<script>const above = ABOVE; above['postMessage']({perennial: 'page', url: 'http://honest.example/', time: '20260102030405', document: 1}, '*')</script>"),
    ("/invents", "<script>const above = ABOVE; above['postMessage']({perennial: 'page', url: 'http://bank.example/', time: '20260102030405', document: 1}, '*')</script>"),
    ("/floods", "<script>const above = ABOVE; for (let i = 0; i < 300; i++) for (const url of ['http://cheat.example/floods', 'http://honest.example/']) above['postMessage']({perennial: 'page', url, time: '20260102030405', document: i}, '*')</script>"),
    ("/becomes", "<script>addEventListener('load', () => setTimeout(() => { location.href = '/picture.svg' }, 10))</script>"),
    ("/bakes", "<iframe></iframe><script>const bake = (text) => { Object.getOwnPropertyDescriptor(frames[0].Document.prototype, 'cookie').set.call(document, text) };
        for (const path of ['/', '/web', '/_perennial']) for (const name of ['perennial_token', 'perennial_replay', 'perennial_admin_0']) bake(`${name}=bad; path=${path}`);
        bake('perennial_token=\u{e9}; path=/login'); for (let i = 0; i < 60; i++) bake(`large${i}=${'x'.repeat(4000)}; path=/`)</script>"),
];

/// The way to the banner that no script of ours can close: the functions of a clean frame.
const ABOVE: &str = "Object.getOwnPropertyDescriptor(document.documentElement.appendChild(document.createElement('iframe')).contentWindow, 'parent').get.call(window)";

fn archive() -> Archive {
    let archive = Archive::new();
    let mut warc = Vec::new();
    let mut push = |url: &str, mime: &str, body: &str| {
        push_record(&mut warc, url, "200 OK", &format!("Content-Type: {mime}"), body);
    };
    push(HONEST, "text/html", "<title>honest</title><p>Honest words</p><iframe src=/part.html></iframe>");
    push("http://honest.example/part.html", "text/html", "<p>A part</p>");
    push("http://honest.example/script.js", "text/javascript", "window.read = 'a secret of the archive'");
    push(
        "http://honest.example/picture.svg",
        "image/svg+xml",
        "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
    );
    push(
        "http://cheat.example/picture.svg",
        "image/svg+xml",
        "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
    );
    // Two types that make lines of the index a script.
    push("http://trick.example/a", "text/x=1;'", "x");
    push("http://trick.example/b", "';alert(1)//", "x");
    for (path, body) in CHEATS {
        let body = format!("<title>cheat</title><p>Forged words</p>{}", body.replace("ABOVE", ABOVE));
        push(&format!("http://cheat.example{path}"), "text/html", &body);
    }
    let file = archive.root.join("pages.warc");
    std::fs::write(&file, warc).unwrap();
    archive.ok(&["import", file.to_str().unwrap()]);
    archive
}

fn host(origin: &str) -> String {
    origin.split_once("://").unwrap().1.to_string()
}

fn viewer(serving: &Serving, more: &[&str]) -> Viewer {
    let reachable = [&serving.main, &serving.replay].map(|origin| host(origin)).into_iter();
    Viewer::start(&reachable.chain(more.iter().map(|host| host.to_string())).collect::<Vec<_>>())
}

/// What the banner is about, and what the frame shows.
const CLAIM: &str =
    "document.getElementById('ban').innerText.includes('oherent') ? document.body.dataset.url : ''";

#[test]
fn the_banner_is_about_what_the_frame_shows() {
    let archive = archive();
    let serving = Serving::start(&archive);
    let mut viewer = viewer(&serving, &[]);
    let place = |url: &str| format!("{}/web/{TIME}/{url}", serving.main);
    for (path, ends_at) in [("/names", HONEST), ("/floods", HONEST), ("/invents", ""), ("/becomes", "")] {
        let cheat = format!("http://cheat.example{path}");
        viewer.visit(&place(&cheat));
        // The forged message may also never arrive, because empty frames have our functions too. Then the banner is right.
        let or_its_own = if path == "/becomes" { ends_at } else { &cheat };
        viewer.until(false, &format!("['{ends_at}', '{or_its_own}'].includes({CLAIM})"));
        if viewer.outside(CLAIM) == HONEST {
            viewer.until(
                true,
                "document.title === 'honest' && document.body.innerText.includes('Honest words')",
            );
        }
        assert_eq!(viewer.escaped(), Vec::<String>::new());
    }
    // A link leads the whole window, and the way back is one step.
    viewer.visit(&place(HONEST));
    for is_inside in [true, false] {
        // A page that leads away before it has loaded is replaced.
        viewer.until(is_inside, "document.readyState === 'complete'");
    }
    viewer.inside("location.href = document.baseURI.replace('honest.example/', 'cheat.example/bakes')");
    viewer.until(false, "document.body.dataset.url === 'http://cheat.example/bakes'");
    viewer.outside("history.back()");
    viewer.until(false, &format!("({CLAIM}) === '{HONEST}'"));
    viewer.until(true, "document.title === 'honest'");
}

/// Where the server is reached, with a reader who has the token.
fn reads_on(serving: &Serving, viewer: &mut Viewer, token: &str) {
    viewer.visit(&format!("{}/login?token={token}", serving.main));
    for url in ["http://cheat.example/bakes", HONEST] {
        viewer.visit(&format!("{}/web/{TIME}/{url}", serving.main));
        viewer.until(true, "document.body.innerText.includes('words')");
    }
    for path in ["/", "/changes", &format!("/web/*/{HONEST}")] {
        viewer.visit(&format!("{}{path}", serving.main));
        viewer.until(
            false,
            "document.body.innerText.length > 100 && !/token|431/.test(document.body.innerText)",
        );
    }
    assert_eq!(viewer.escaped(), Vec::<String>::new());
}

fn token_of(archive: &Archive) -> (String, String) {
    let file = archive.root.join("token").display().to_string();
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    (file, "0123456789abcdef".to_string())
}

#[test]
fn cookies_of_archived_pages_lock_nobody_out() {
    let archive = archive();
    let (file, token) = token_of(&archive);
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let serving = Serving::start_with(&archive, &["--listen", listen, "--token-file", &file]);
        assert!(serving.replay.starts_with("http://localhost:"), "{}", serving.replay);
        let ports =
            [&serving.main, &serving.replay].map(|origin| origin.rsplit(':').next().unwrap().to_string());
        let names: Vec<String> = ports
            .iter()
            .flat_map(|port| ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}")))
            .collect();
        let mut viewer = viewer(&serving, &names.iter().map(String::as_str).collect::<Vec<_>>());
        match listen.starts_with('[') {
            false => reads_on(&serving, &mut viewer, &token),
            // Archived pages are shown under a name, at which the reader logs in too.
            true => {
                viewer.visit(&format!("http://localhost:{}/login?token={token}", ports[0]));
                viewer.visit(&format!("{}/login?token={token}", serving.main));
                viewer.visit(&format!("{}/web/{TIME}/{HONEST}", serving.main));
                viewer.until(true, "document.body.innerText.includes('words')");
                assert_eq!(viewer.outside("location.hostname"), "localhost");
            }
        }
    }
}

/// Ends TLS and passes the bytes on, as a reverse proxy with one host name and two ports does.
fn forward(listener: TcpListener, to: SocketAddr) {
    listener.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let acceptor = TlsAcceptor::from(localhost_tls());
    std::thread::spawn(move || {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((from, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut from) = acceptor.accept(from).await else { return };
                    let Ok(mut onward) = tokio::net::TcpStream::connect(to).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut from, &mut onward).await;
                });
            }
        });
    });
}

#[test]
fn two_origins_work_behind_a_proxy_with_tls_and_one_host_name() {
    let archive = archive();
    let (file, token) = token_of(&archive);
    let bound = || TcpListener::bind("127.0.0.1:0").unwrap();
    let proxies = [bound(), bound()];
    let [url, replay_url] = [0, 1]
        .map(|n: usize| format!("https://archive.localhost:{}", proxies[n].local_addr().unwrap().port()));
    // The server's own ports are free until it takes them.
    let own = [bound(), bound()].map(|listener| listener.local_addr().unwrap());
    let [listen, replay_listen] = own.map(|address| address.to_string());
    let options = [
        "--listen",
        &listen,
        "--replay-listen",
        &replay_listen,
        "--url",
        &url,
        "--replay-url",
        &replay_url,
        "--token-file",
        &file,
    ];
    let serving = Serving::start_with(&archive, &options);
    assert_eq!((&serving.main, &serving.replay), (&url, &replay_url));
    proxies.into_iter().zip(own).for_each(|(proxy, to)| forward(proxy, to));
    let mut viewer = viewer(&serving, &[]);
    reads_on(&serving, &mut viewer, &token);
}

/// A website that tries to learn what is archived. Its title becomes what it found.
const SPY: &str = r#"<title>spying</title><script>
const found = [];
const ends = (make) => new Promise((done) => { const it = make(); it.onload = () => done('loads'); it.onerror = () => done('fails'); document.documentElement.append(it); setTimeout(() => done('fails'), 8000); });
const element = (tag, name, url) => ends(() => { const it = document.createElement(tag); it[name] = url; if (tag === 'link') it.rel = 'stylesheet'; return it; });
const opened = async (url) => { const view = open(url, '_blank'); if (!view) return 'none'; await new Promise((done) => setTimeout(done, 1500)); let n = 'closed'; try { n = view.closed ? 'closed' : view.length; } catch (error) {} return n; };
(async () => {
  for (const origin of ['MAIN', 'REPLAY']) {
    const at = `${origin}/web/20260102030405`, there = 'http://honest.example';
    for (const [tag, name, url] of [
      ['img', 'src', `${at}im_/${there}/picture.svg`], ['img', 'src', `${at}im_/${there}/none.svg`],
      ['script', 'src', `${at}js_/${there}/script.js`], ['script', 'src', `${at}id_/${there}/script.js`], ['link', 'href', `${at}cs_/${there}/picture.svg`],
      ['script', 'src', `${origin}/cdx?url=trick.example/*`], ['script', 'src', `${origin}/cdx/search/cdx?url=trick.example/*`],
      ['script', 'src', `${origin}/cdx?url=trick.example/*&output=json&fl=mime`], ['video', 'src', `${at}oe_/${there}/picture.svg`],
      ['img', 'src', `${origin}/login?token=wrong`], ['img', 'src', `${origin}/changes`],
    ]) { const how = await element(tag, name, url); if (how !== 'fails') found.push(`${tag} ${url} ${how}`); }
    for (const mode of ['cors', 'no-cors']) for (const url of [`${at}id_/${there}/`, `${origin}/cdx?url=*`, `${origin}/`]) {
      try { await fetch(url, {mode, credentials: 'include'}); found.push(`${mode} ${url}`); } catch (error) {}
    }
    for (const [tag, name] of [['iframe', 'src'], ['object', 'data'], ['embed', 'src']]) {
      const both = [];
      for (const path of ['/', '/none']) both.push(await element(tag, name, `${at}mp_/${there}${path}`));
      if (both[0] !== both[1]) found.push(`${tag}: ${both}`);
    }
    const windows = [];
    for (const path of ['/', '/none']) windows.push(await opened(`${at}/${there}${path}`));
    if (windows[0] !== windows[1]) found.push(`windows: ${windows}`);
  }
  if (window.read) found.push(window.read);
  document.title = `done ${JSON.stringify(found)}`;
})();
</script>"#;

#[test]
fn no_website_learns_what_is_archived() {
    let archive = archive();
    let serving = Serving::start(&archive);
    let page = SPY.replace("MAIN", &serving.main).replace("REPLAY", &serving.replay);
    let web = Web::serve(move |_| html(&page));
    let port = web.address.port();
    // A different port of the same host, and a different host.
    for origin in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("spy.localhost:{port}")]
    {
        let mut viewer = viewer(&serving, &[&origin]);
        viewer.visit(&format!("http://{origin}/"));
        let found = found_within(Duration::from_secs(90), || {
            let title = viewer.outside("document.title");
            title.as_str().filter(|title| title.starts_with("done")).map(str::to_string)
        });
        assert_eq!(found.as_deref(), Some("done []"), "{origin}");
        // A link is followed.
        viewer.outside(&format!("location.href = '{}/web/{TIME}/{HONEST}'", serving.main));
        viewer.until(false, &format!("({CLAIM}) === '{HONEST}'"));
    }
}
