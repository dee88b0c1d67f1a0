//! Hosts that send what no honest host sends: nested codings, endless tags, truncated bodies, endless sitemaps. None of
//! it may stop, fill or mislead a crawl. Counts of work bound each case, and the number of visits bounds the crawl.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use perennial_render::dom::{Dom, DomKind, MAX_NODES};
use serde_json::Value;
use tokio_rustls::rustls::{ServerConnection, StreamOwned};

use crate::crawled::{Archive, gzip};
use crate::program::{localhost_tls, testdata};
use crate::wait::found_within;
use crate::web::{Reply, Web, WebRequest, html, redirect, status};

/// A command that takes longer than this hangs, even on a slow machine.
const HANGS: Duration = Duration::from_secs(600);

/// Runs a command that must end by itself.
fn ends(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if found_within(HANGS, || child.try_wait().unwrap()).is_none() {
        child.kill().unwrap();
        panic!("{command:?} hangs: {:?}", child.wait_with_output());
    }
    child.wait_with_output().unwrap()
}

/// Visits everything once without delays between fetches. The crawl must succeed.
fn once(archive: &Archive, more: &[&str]) -> Value {
    let args = [&["run", "--once", "--delay", "0", "--json"][..], more].concat();
    let output = ends(&mut archive.command(&args));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn following(web: &Web, settings: &str) -> Archive {
    let archive = Archive::new();
    archive.append_settings(&format!("\n[crawl]\nrobots = false\nsitemaps = false\n{settings}"));
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    archive
}

fn line_of(archive: &Archive, url: &str) -> Value {
    archive.log().into_iter().rfind(|line| line["url"] == url).unwrap_or_else(|| panic!("no visit of {url}"))
}

fn html_of(body: Vec<u8>, coding: &str) -> Reply {
    let fields = vec![("Content-Type", "text/html".to_string()), ("Content-Encoding", coding.to_string())];
    Reply::Page(200, fields, body)
}

/// Six nested gzip codings over empty members, hundreds in each member of the next: a few kilobytes that unpack
/// forever.
fn nested_empty_codings() -> Vec<u8> {
    let nothing = gzip(b"").repeat(300);
    let inner = (0..4).fold(nothing, |file, _| gzip(&file).repeat(300));
    gzip(&inner)
}

#[test]
fn nested_empty_codings_end_in_crawl_import_and_verify() {
    let bomb = nested_empty_codings();
    assert!(bomb.len() < 40_000, "{} bytes", bomb.len());
    let web = Web::serve(move |request| match request.path.as_str() {
        "/" => html("<a href=/bomb>1</a><a href=/after>2</a>"),
        "/bomb" => html_of(bomb.clone(), "gzip, gzip, gzip, gzip, gzip, gzip"),
        "/after" => html("<p>goes on"),
        _ => status(404),
    });
    let archive = following(&web, "");
    let summary = once(&archive, &[]);
    assert_eq!((summary["n_pages"].as_u64(), summary["n_unread"].as_u64()), (Some(3), Some(1)), "{summary}");
    let line = line_of(&archive, &web.url("/bomb"));
    assert!(line["unread"].as_str().unwrap().contains("unpack too much"), "{line}");
    assert_eq!(line["stored"], "response");
    let file = std::fs::read_dir(archive.root.join("warc")).unwrap().next().unwrap().unwrap().path();
    let other = Archive::new();
    for args in [
        &["import", file.to_str().unwrap()][..],
        &["verify"],
        &["verify", "--repair"],
        &["verify", "--rebuild"],
    ] {
        let output = ends(&mut other.command(args));
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
}

/// Pages with quadratic cost if nothing bounds it, each with a link at the end that must still be found.
fn quadratic_pages() -> Vec<(&'static str, String)> {
    let attributes = |n: usize| (0..n).map(|n| format!(" x{n}")).collect::<String>();
    vec![
        ("scripts", "<script>".repeat(1_000_000)),
        ("attributes", format!("<p{}>", attributes(200_000))),
        ("attributes-of-end", format!("</p{}>", attributes(200_000))),
        ("attributes-after-reference", format!("&am<a y=\"<b z='\"{}>", attributes(200_000))),
        ("roots", (0..400).map(|n| format!("<html{}>", attributes(200 + n))).collect()),
        ("names", (0..300_000).map(|n| format!("<p data-name-{n}>")).collect()),
        ("formatting", (0..40_000).map(|n| format!("<b id={n} {}>x</b>", attributes(20))).collect()),
        ("nested", "<div>".repeat(400_000)),
        ("misnested", "<b><div><i><p>".repeat(100_000)),
        ("ends", "</x>".repeat(1_000_000)),
        ("tables", "<table><tr>x".repeat(100_000)),
        ("references", "&amp&am&#x0".repeat(300_000)),
        ("comments", "<!--".repeat(400_000)),
        ("styles", "<style>@import ".repeat(200_000)),
        ("imports", format!("<style>{}</style>", "@import\turl(x".repeat(200_000))),
        ("quotes", "<a href=\"".repeat(400_000)),
    ]
}

#[test]
fn quadratic_pages_are_bounded() {
    let pages: Arc<Vec<(&str, Vec<u8>)>> =
        Arc::new(quadratic_pages().into_iter().map(|(name, page)| (name, gzip(page.as_bytes()))).collect());
    let n_pages = pages.len() as u64 + 1;
    let served = pages.clone();
    let web = Web::serve(move |request| {
        if request.path == "/" {
            return html(
                &served.iter().map(|(name, _)| format!("<a href=/{name}>{name}</a>")).collect::<String>(),
            );
        }
        match served.iter().find(|(name, _)| request.path[1..] == **name) {
            Some((_, page)) => html_of(page.clone(), "gzip"),
            None => status(404),
        }
    });
    let archive = following(&web, "subresources = false\n");
    let summary = once(&archive, &["--limit", "40"]);
    let captured = |name: &str| {
        archive.log().iter().any(|line| line["url"] == web.url(name) && line["stored"] == "response")
    };
    assert!(pages.iter().all(|(name, _)| captured(&format!("/{name}"))), "{summary}");
    assert!(summary["n_pages"].as_u64().unwrap() >= n_pages, "{summary}");
    assert!(ends(&mut archive.command(&["verify"])).status.success());
}

#[test]
fn trees_of_hostile_pages_are_bounded() {
    for (name, page) in quadratic_pages() {
        let dom = Dom::parse(&page);
        let most = dom.nodes.iter().map(|node| match &node.kind {
            DomKind::Element { attributes, .. } => attributes.len(),
            DomKind::Text(_) => 0,
        });
        assert!(dom.nodes.len() <= MAX_NODES + 1000 && most.max().unwrap_or(0) <= 257, "{name}");
    }
}

#[test]
fn a_full_disk_ends_the_crawl_and_is_not_blamed_on_the_host() {
    // 21 MB that compress well. Only the spooled body is too large for the disk.
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => Reply::Page(200, vec![("Content-Type", "text/plain".into())], vec![b'x'; 21 << 20]),
        _ => status(404),
    });
    let archive = following(&web, "");
    let script = "trap '' XFSZ; ulimit -f 18000; exec \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_perennial"), "--archive"]).arg(&archive.root);
    let output = ends(command.args(["run", "--once", "--delay", "0"]));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("free space on the archive's disk") && said.contains("disk full"), "{said}");
    assert!(archive.log().is_empty(), "nothing is noted of the host");
    once(&archive, &[]);
    let line = line_of(&archive, &web.url("/"));
    assert_eq!((line["body_bytes"].as_u64(), &line["truncated"]), (Some(21 << 20), &Value::Null), "{line}");
    archive.verify();
    assert_eq!(std::fs::read_dir(archive.root.join("spool")).unwrap().count(), 0, "nothing is left of it");
}

/// A host that sends the beginning of a body without a length and resets the connection, by leaving a request unread.
fn serve_resets() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten().take(10) {
            // An unread request turns the end of the connection into a reset.
            let _ = stream.peek(&mut [0]);
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>half of a");
        }
    });
    url
}

#[test]
fn a_reset_inside_a_body_without_a_length_is_recorded() {
    let url = serve_resets();
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nrobots = false\nsitemaps = false\nmax_tries = 1\n");
    archive.ok(&["add", &url, "--allow-private"]);
    once(&archive, &[]);
    let line = line_of(&archive, &url);
    assert_eq!(
        (line["truncated"].as_str(), line["stored"].as_str()),
        (Some("disconnect"), Some("response")),
        "{line}"
    );
}

/// A server of bodies without a length over TLS. Returns its port. It closes the session properly only for `/ended`.
fn serve_tls_bodies() -> u16 {
    let config = localhost_tls();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for tcp in listener.incoming().flatten().take(10) {
            let session = ServerConnection::new(config.clone()).unwrap();
            let mut reader = BufReader::new(StreamOwned::new(session, tcp));
            let mut request = String::new();
            while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).is_ok_and(|n| n > 0) {}
            let stream = reader.get_mut();
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>text");
            if request.starts_with("GET /ended ") {
                stream.conn.send_close_notify();
            }
            let _ = stream.flush();
        }
    });
    port
}

#[test]
fn a_tls_session_without_close_notify_is_recorded() {
    let port = serve_tls_bodies();
    let archive = Archive::new();
    let roots = testdata("tls/authority.pem");
    let settings = format!("robots = false\nsitemaps = false\nmax_tries = 1\ntls_roots = {roots:?}\n");
    archive.append_settings(&format!("\n[crawl]\n{settings}"));
    let [ended, torn] = ["ended", "torn"].map(|path| format!("https://localhost:{port}/{path}"));
    archive.ok(&["add", &ended, "--allow-private", "--scope", "page"]);
    archive.ok(&["add", &torn, "--allow-private", "--scope", "page"]);
    once(&archive, &[]);
    assert_eq!(line_of(&archive, &ended)["truncated"], Value::Null);
    assert_eq!(line_of(&archive, &torn)["truncated"], "disconnect");
}

#[test]
fn a_host_with_a_long_retry_after_does_not_hold_its_pages() {
    let away = Web::serve(|_| Reply::Page(429, vec![("Retry-After", "72000".into())], Vec::new()));
    let styles: String =
        (0..5).map(|n| format!("<link rel=stylesheet href={}>", away.url(&format!("/{n}.css")))).collect();
    let web = Web::serve(move |request| match request.path.as_str() {
        "/" => html(&format!("{styles}<p>one<a href=/two>two</a>")),
        "/two" => html(&format!("{styles}<link rel=stylesheet href={}><p>two", "/own.css")),
        _ => status(404),
    });
    let archive = following(&web, "");
    let summary = once(&archive, &["--allow-private"]);
    assert_eq!(summary["n_analysed"].as_u64(), Some(2), "{summary}");
    assert_eq!(away.requests().len(), 1, "it is requested once only");
}

#[test]
fn visits_of_a_clock_that_was_ahead_do_not_stop_the_crawl() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html("<a href=/two>two</a>"),
        "/two" => html("<p>two"),
        _ => status(404),
    });
    let archive = following(&web, "");
    let ahead = "2099-01-01";
    let args = ["run", "--once", "--delay", "0", "--time-lapse", "max", "--start", ahead];
    assert!(ends(&mut archive.command(&args)).status.success());
    assert_eq!((web.n_requests("/"), web.n_requests("/two")), (1, 1));
    let output = ends(&mut archive.command(&["run", "--once", "--delay", "0"]));
    assert_eq!((web.n_requests("/"), web.n_requests("/two")), (2, 2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("the archive has visits of up to 2099"),
        "{output:?}"
    );
}

fn sitemap_index(request: &WebRequest) -> Reply {
    let from = request.path.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap_or(0);
    let entries: String = (1..400)
        .map(|n| {
            format!(
                "<sitemap><loc>http://{}/sitemap{}.xml</loc></sitemap>",
                request.field("host").unwrap(),
                from * 400 + n
            )
        })
        .collect();
    let body = format!("<sitemapindex>{entries}</sitemapindex>");
    Reply::Page(200, vec![("Content-Type", "application/xml".into())], body.into_bytes())
}

#[test]
fn endless_sitemaps_leave_room_for_pages() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => html(&(0..60).map(|n| format!("<a href=/page/{n}>{n}</a>")).collect::<String>()),
        path if path.starts_with("/page/") => html(path),
        path if path.starts_with("/sitemap") => sitemap_index(request),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    let summary = once(&archive, &["--limit", "61", "--no-analysis"]);
    assert_eq!(summary["n_pages"].as_u64(), Some(61), "{summary}");
    let n_sitemaps = web.requests().iter().filter(|request| request.path.starts_with("/sitemap")).count();
    assert!((2..=40).contains(&n_sitemaps), "{n_sitemaps} sitemaps beside 61 pages");
}

#[test]
fn an_endless_robots_txt_is_cut_and_obeyed() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/robots.txt" => Reply::Endless(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nUser-agent: *\nDisallow: /private\n"
                .to_vec(),
            b"Disallow: /never-there\n".repeat(1000),
        ),
        "/" => html("<a href=/private>no</a><a href=/open>yes</a>"),
        _ => html("<p>x"),
    });
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nsitemaps = false\n");
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    once(&archive, &[]);
    assert_eq!((web.n_requests("/private"), web.n_requests("/open")), (0, 1));
    let line = line_of(&archive, &web.url("/robots.txt"));
    assert!(line["body_bytes"].as_u64().unwrap() <= 1_024_000, "{line}");
    archive.verify();
    let index = archive.root.join("all.cdxj");
    archive.ok(&["export", "--format", "cdxj", "-o", index.to_str().unwrap()]);
    assert!(std::fs::read_to_string(index).unwrap().contains("robots.txt"));
}

#[test]
fn a_private_host_is_contacted_only_if_the_user_named_it() {
    let secret = Web::serve(|_| html("<p>secret"));
    let to = secret.url("/secret");
    let to_page = to.clone();
    let web = Web::serve(move |request| match request.path.as_str() {
        "/" => html(&format!("<a href=/away>1</a><img src={to_page}><link rel=stylesheet href={to_page}>")),
        "/away" => redirect(&to_page),
        _ => status(404),
    });
    let archive = following(&web, "");
    once(&archive, &[]);
    assert_eq!(
        (web.n_requests("/away"), secret.requests().len()),
        (1, 0),
        "a different port is a different service"
    );
    assert_eq!(line_of(&archive, &to)["error"], "guarded");
    // `diff` does not follow redirects of untrusted pages or load their private subresources either.
    let page = archive.root.join("page.html");
    std::fs::write(&page, "<p>before").unwrap();
    let page = page.to_str().unwrap();
    assert!(archive.run(&["diff", page, &web.url("/")]).status.success());
    let refused = archive.run(&["diff", page, &web.url("/away")]);
    assert!(
        !refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("refused"),
        "{refused:?}"
    );
    assert_eq!(secret.requests().len(), 0);
    assert!(archive.run(&["diff", page, &to]).status.success(), "named by the user");
}

fn peak_kilobytes(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?
        .trim()
        .strip_suffix(" kB")?
        .trim()
        .parse()
        .ok()
}

/// Elements, links and words of this total size.
fn swollen_page(n_bytes: usize) -> Vec<u8> {
    let part = "<div class=entry><p>Some words of a page <a href=/x>that never</a> ends.</p></div>\n";
    gzip(part.repeat(n_bytes / part.len()).as_bytes())
}

/// Crawls endless honest hosts beside `n_hostile` hosts that send one page of `n_bytes`, for a while. Returns the
/// number of requested honest pages, and the peak memory in kilobytes.
fn crawl_beside(n_hostile: usize, n_bytes: usize, time_limit: &str) -> (usize, u64) {
    let swollen = Arc::new(swollen_page(n_bytes));
    let hostile: Vec<Web> = (0..n_hostile)
        .map(|_| {
            let swollen = swollen.clone();
            Web::serve(move |request| match request.path.as_str() {
                "/" => html_of(swollen.to_vec(), "gzip"),
                _ => status(404),
            })
        })
        .collect();
    let honest: Vec<Web> = (0..4).map(|_| Web::serve(honest_page)).collect();
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nrobots = false\nsitemaps = false\nmax_depth = 1000000\n");
    for web in hostile.iter().chain(&honest) {
        archive.ok(&["add", &web.url("/"), "--allow-private"]);
    }
    let crawl = ["run", "--once", "--delay", "0", "--time-limit", time_limit];
    // As docs/security.md recommends. Otherwise the freed memory that the C library keeps would depend on other work
    // of the machine.
    let mut child = archive
        .command(&crawl)
        .env("MALLOC_ARENA_MAX", "2")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    let ended = found_within(HANGS, || {
        peak = peak_kilobytes(child.id()).unwrap_or(0).max(peak);
        child.try_wait().unwrap()
    });
    assert_eq!(ended.expect("it hangs").code(), Some(15));
    assert!(hostile.iter().all(|web| web.n_requests("/") == 1), "all of them were requested");
    (honest.iter().map(|web| web.requests().len()).sum(), peak)
}

fn honest_page(request: &WebRequest) -> Reply {
    let number = request.path[1..].parse::<usize>().unwrap_or(0);
    html(&format!("<h1>Page {number}</h1><p>{}</p><a href=/{}>next</a>", "words ".repeat(300), number + 1))
}

#[test]
fn swollen_pages_of_thirty_hosts_stay_within_memory() {
    let (n_honest, peak) = crawl_beside(30, 32 << 20, "8s");
    println!("{n_honest} honest pages, {peak} kB");
    assert!(n_honest > 4 && peak < 500_000, "{n_honest} honest pages, {peak} kB");
}

/// A manual measurement, because other work on the machine would distort it: `cargo test --release -p perennial
/// --test it swollen_pages_leave -- --ignored --nocapture`.
#[test]
#[ignore = "compares speeds, which needs a machine without other work"]
fn swollen_pages_leave_others_half_their_speed() {
    let (alone, _) = crawl_beside(30, 2 << 10, "30s");
    let (beside, peak) = crawl_beside(30, 32 << 20, "30s");
    println!("{alone} honest pages beside 30 small ones, {beside} beside 30 swollen ones; peak {peak} kB");
    assert!(2 * beside >= alone, "{beside} of {alone}");
}
