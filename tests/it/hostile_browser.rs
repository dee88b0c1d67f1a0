//! Hostile pages in a real Chromium: every known way to the network, slow subresources and floods. They are built
//! with the feature `interop`. Then a machine without a browser fails them and does not skip them silently.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::crawled::Archive;
use crate::wait::{dawdle, wait_for, wait_until};
use crate::web::{Reply, Web, WebRequest, html, status};

/// A forbidden listener, on a different loopback address than the test sites.
struct Forbidden {
    address: SocketAddr,
    n_connections: Arc<AtomicUsize>,
}

impl Forbidden {
    fn listen() -> Forbidden {
        let listener = TcpListener::bind("127.0.0.2:0").unwrap();
        let (address, n_connections) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = n_connections.clone();
        std::thread::spawn(move || {
            for _stream in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Forbidden { address, n_connections }
    }

    fn n_connections(&self) -> usize {
        self.n_connections.load(Ordering::SeqCst)
    }

    /// A page whose scripts try every way out, and then request `/tried` from their own host.
    fn page(&self) -> String {
        let to = self.address;
        let script = WAYS_OUT.replace("FORBIDDEN", &to.to_string());
        format!(
            "<link rel=preconnect href=http://{to}><link rel=dns-prefetch href=http://{to}>\
             <link rel=prefetch href=http://{to}/prefetch><link rel=prerender href=http://{to}/prerender>\
             <script type=speculationrules>{{\"prerender\": [{{\"urls\": [\"http://{to}/s\"], \"eagerness\": \"immediate\"}}]}}</script>\
             <body><p id=p>nothing tried</p><img src=http://{to}/img><iframe src=http://{to}/frame></iframe>\
             <form id=form method=post target=hidden action=http://{to}/post><input name=a value=b></form>\
             <iframe name=hidden></iframe><a id=ping ping=http://{to}/ping href='#here'>x</a><script>{script}</script>"
        )
    }
}

const WAYS_OUT: &str = r"
const out = 'FORBIDDEN', tried = [];
const attempt = (name, way) => { try { way(); tried.push(name) } catch (error) { tried.push(name + ' refused') } };
const inWorker = `try { new WebSocket('ws://${out}/worker-socket') } catch (e) {}
  fetch('http://${out}/worker-fetch').catch(() => 0);
  try { importScripts('http://${out}/worker-script') } catch (e) {}`;
const blob = (text) => URL.createObjectURL(new Blob([text], {type: 'text/javascript'}));
attempt('socket', () => new WebSocket('ws://' + out + '/socket'));
attempt('worker', () => new Worker(blob(inWorker)));
attempt('worker of the host', () => new Worker('/worker.js'));
attempt('shared worker', () => new SharedWorker('/worker.js'));
attempt('service worker', () => navigator.serviceWorker.register('/worker.js').catch(() => 0));
attempt('fetch', () => fetch('http://' + out + '/fetch', {mode: 'no-cors', keepalive: true}).catch(() => 0));
attempt('beacon', () => navigator.sendBeacon('http://' + out + '/beacon', 'x'));
attempt('event source', () => new EventSource('http://' + out + '/events'));
attempt('form', () => document.getElementById('form').submit());
attempt('ping', () => document.getElementById('ping').click());
attempt('window', () => window.open('http://' + out + '/window'));
attempt('transport', () => new WebTransport('https://' + out + '/transport').ready.catch(() => 0));
attempt('peer', () => {
  const turn = {urls: 'turn:' + out + '?transport=tcp', username: 'u', credential: 'c'};
  const peer = new RTCPeerConnection({iceServers: [turn, {urls: 'stun:' + out}]});
  peer.createDataChannel('x');
  peer.createOffer().then((offer) => peer.setLocalDescription(offer));
});
document.getElementById('p').textContent = 'tried ' + tried.length + ' ways out';
setTimeout(() => fetch('/tried'), 2500);
";

const N_WAYS: usize = 13;

/// A site whose first page tries every way out.
fn site(forbidden: &Forbidden) -> Web {
    let page = forbidden.page();
    let worker = format!(
        "try {{ new WebSocket('ws://{0}/w') }} catch (e) {{}} fetch('http://{0}/w').catch(() => 0); \
         self.addEventListener && addEventListener('install', () => fetch('http://{0}/install').catch(() => 0))",
        forbidden.address
    );
    Web::serve(move |request| match request.path.as_str() {
        "/" => html(&page),
        "/worker.js" => script(&worker),
        "/tried" => html("well tried"),
        _ => status(404),
    })
}

fn script(text: &str) -> Reply {
    Reply::Page(200, vec![("Content-Type", "text/javascript".into())], text.as_bytes().to_vec())
}

/// Crawls a site once with the browser. Returns the program's output and its peak memory.
fn crawl(archive: &Archive, web: &Web) -> (String, u64) {
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "chromium"]);
    let mut child = archive.spawn_with_stderr(&["run", "--once", "--delay", "0"]);
    let mut most = 0;
    wait_until("the end of the crawl", || {
        most = most.max(peak_memory(child.id()).unwrap_or(0));
        child.try_wait().unwrap().is_some()
    });
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    archive.verify();
    (said, most)
}

fn peak_memory(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// The archived document of a page after its scripts ran.
fn rendered(archive: &Archive, web: &Web) -> String {
    let file = archive.root.join("drawn.warc");
    archive.ok(&["export", "--format", "warc", "-o", file.to_str().unwrap(), "--force"]);
    let bytes = std::fs::read(&file).unwrap();
    let mut text = Vec::new();
    // Each record is a gzip member, or the file is uncompressed.
    if flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text).is_err() {
        text = bytes;
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let at = text.find(&format!("urn:dom:{}", web.url("/"))).unwrap_or_else(|| panic!("nothing was drawn"));
    text[at..].split("WARC/1.").next().unwrap_or_default().to_owned()
}

#[test]
fn no_way_out_reaches_a_forbidden_listener_in_a_crawl() {
    let forbidden = Forbidden::listen();
    let web = site(&forbidden);
    let archive = Archive::new();
    let (said, _) = crawl(&archive, &web);
    assert!(rendered(&archive, &web).contains(&format!("tried {N_WAYS} ways out")), "{said}");
    assert!(web.n_requests("/tried") >= 1, "the page had time for all of them: {said}");
    assert_eq!(forbidden.n_connections(), 0);
}

#[test]
fn no_way_out_reaches_a_forbidden_listener_from_a_file() {
    let forbidden = Forbidden::listen();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    std::fs::write(&file, forbidden.page()).unwrap();
    let output = segment(&[file.to_str().unwrap()]);
    assert!(output.contains(&format!("tried {N_WAYS} ways out")), "{output}");
    assert_eq!(forbidden.n_connections(), 0);
}

fn segment(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["lab", "segment", "--renderer", "chromium"])
        .args(args)
        .output()
        .unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_live_page_goes_through_the_address_guard() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => {
            html("<link rel=stylesheet href=/a.css><p id=p><script>p.textContent='made by script'</script>")
        }
        _ => status(404),
    });
    let refused = segment(&[&web.url("/")]);
    assert!(refused.contains("--allow-private"), "{refused}");
    assert_eq!(web.requests().len(), 0);
    let allowed = segment(&[&web.url("/"), "--allow-private"]);
    assert!(allowed.contains("made by script"), "{allowed}");
    assert_eq!((web.n_requests("/"), web.n_requests("/a.css")), (1, 1));
}

#[test]
fn slow_subresources_do_not_hold_a_visit_beyond_its_deadline() {
    const N_PARTS: usize = 100;
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html(&format!(
            "<p id=p>drawn</p><script>for (let i = 0; i < {N_PARTS}; i++) fetch('/slow/' + i).catch(() => 0)</script>"
        )),
        path if path.starts_with("/slow/") => {
            dawdle(Duration::from_secs(1));
            html("slow")
        }
        _ => status(404),
    });
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nbrowser_timeout_secs = 12.0\n");
    crawl(&archive, &web);
    // Each subresource takes a second, and they are fetched one after the other. A dozen fits.
    let n_fetched = web.requests().iter().filter(|request| request.path.starts_with("/slow/")).count();
    assert!((1..=20).contains(&n_fetched), "{n_fetched} of {N_PARTS} slow parts were fetched in 12 s");
    assert!(rendered(&archive, &web).contains("drawn"), "the page is taken as it is");
}

#[test]
fn a_missing_subresource_does_not_hold_a_visit() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html("<p id=p>drawn</p><script>fetch('/never').catch(() => fetch('/later'))</script>"),
        "/never" => Reply::Silence,
        _ => status(404),
    });
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nbrowser_timeout_secs = 12.0\nhead_timeout_secs = 3600.0\n");
    crawl(&archive, &web);
    assert_eq!((web.n_requests("/never"), web.n_requests("/later")), (1, 0));
    assert!(rendered(&archive, &web).contains("drawn"), "the page is taken as it is");
}

#[test]
fn a_flood_of_requests_is_bounded_in_number_bytes_and_memory() {
    let body = "x".repeat(1 << 20);
    let web = Web::serve(move |request: &WebRequest| match request.path.as_str() {
        "/" => html(
            "<p>flood</p><script>let n = 0; const next = () => fetch('/part/' + n++).finally(next);\
             for (let i = 0; i < 200; i++) next()</script>",
        ),
        path if path.starts_with("/part/") => html(&body),
        _ => status(404),
    });
    let archive = Archive::new();
    let (_, most) = crawl(&archive, &web);
    let n_fetched = web.requests().iter().filter(|request| request.path.starts_with("/part/")).count();
    assert!((10..=80).contains(&n_fetched), "{n_fetched} parts of a megabyte were fetched for one page");
    assert!(most < 500_000_000, "the crawler grew to {most} bytes");
}

#[test]
fn small_floods_are_bounded_in_number() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html(
            "<p>flood</p><script>let n = 0; const next = () => fetch('/part/' + n++).finally(next);\
             for (let i = 0; i < 500; i++) next()</script>",
        ),
        path if path.starts_with("/part/") => html("x"),
        _ => status(404),
    });
    let archive = Archive::new();
    let (_, most) = crawl(&archive, &web);
    let n_fetched = web.requests().iter().filter(|request| request.path.starts_with("/part/")).count();
    assert!((100..=300).contains(&n_fetched), "{n_fetched} parts were fetched for one page");
    assert!(most < 500_000_000, "the crawler grew to {most} bytes");
}

#[test]
fn a_hanging_host_does_not_affect_others() {
    let hanging = Arc::new(Web::serve(|request| match request.path.as_str() {
        "/" => html("<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a><script>for(;;);</script>"),
        "/1" | "/2" | "/3" => html("<script>for(;;);</script>"),
        _ => status(404),
    }));
    let before = hanging.clone();
    let well = Web::serve(move |request| match request.path.as_str() {
        "/" => {
            // Three pages have failed when the fourth is requested.
            wait_until("the fourth request", || before.n_requests("/3") > 0);
            html("<p id=p></p><script>p.textContent = 'dra' + 'wn'</script>")
        }
        _ => status(404),
    });
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nbrowser_timeout_secs = 6.0\n");
    let name = format!("http://localhost:{}/", well.address.port());
    archive.ok(&["add", &name, "--allow-private", "--renderer", "chromium"]);
    let (said, _) = crawl(&archive, &hanging);
    assert_eq!(hanging.n_requests("/3"), 1);
    assert!(said.contains("pages that need scripts are captured without running them"), "{said}");
    let index = archive.root.join("all.cdxj");
    archive.ok(&["export", "--format", "cdxj", "-o", index.to_str().unwrap(), "--force"]);
    let index = std::fs::read_to_string(index).unwrap();
    assert!(index.contains(&format!("\"urn:dom:{name}\"")), "{index}");
}

/// The processes whose command line contains a text, with their group numbers.
fn groups_with(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let has_text = |path: &std::path::PathBuf| {
        std::fs::read(path.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    };
    processes.filter(has_text).filter_map(|path| group_of(&path)).collect()
}

/// The group of a living process.
fn group_of(process: &std::path::Path) -> Option<String> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let is_alive = !matches!(fields.next()?, "Z" | "X");
    is_alive.then(|| fields.nth(1).map(str::to_owned))?
}

fn n_in_group(group: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes.filter(|path| group_of(path).as_deref() == Some(group)).count()
}

#[test]
fn a_browser_that_hangs_ends_with_its_killed_parent() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    std::fs::write(&file, "<p>hangs<script>for(;;);</script>").unwrap();
    let mut parent = Command::new(env!("CARGO_BIN_EXE_perennial"))
        .args(["lab", "segment", "--renderer", "chromium"])
        .arg(&file)
        .env("TMPDIR", dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let profile = format!("--user-data-dir={}", dir.path().display());
    let group = wait_for("the browser's processes", || {
        groups_with(&profile).into_iter().find(|group| n_in_group(group) > 3)
    });
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("the end of the browser", || n_in_group(&group) == 0);
}

/// A browser that records its command line and exits.
fn recording_browser(archive: &Archive) -> std::path::PathBuf {
    let browser = archive.root.join("browser");
    let text = format!(
        "#!/bin/sh\nenv > {0}/environment\necho \"$@\" > {0}/arguments\nexit 3\n",
        archive.root.display()
    );
    std::fs::write(&browser, text).unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    browser
}

#[test]
fn the_sandbox_is_on_unless_the_user_says_otherwise_and_is_warned() {
    for is_on in [true, false] {
        let web = Web::serve(|request| match request.path.as_str() {
            "/" => html("<p>page</p>"),
            _ => status(404),
        });
        let archive = Archive::new();
        archive.append_settings(&format!("\n[crawl]\nbrowser_sandbox = {is_on}\n"));
        archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "chromium"]);
        let mut command = archive.command(&["run", "--once", "--delay", "0"]);
        let output = command
            .env("PERENNIAL_CHROMIUM", recording_browser(&archive))
            .env("SECRET_OF_THE_USER", "1")
            .stdout(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let arguments = std::fs::read_to_string(archive.root.join("arguments")).unwrap();
        assert_eq!(arguments.contains("--no-sandbox"), !is_on, "{arguments}");
        assert_eq!(said.contains("without its sandbox"), !is_on, "{said}");
        let environment = std::fs::read_to_string(archive.root.join("environment")).unwrap();
        assert!(!environment.contains("SECRET_OF_THE_USER"), "{environment}");
    }
}
