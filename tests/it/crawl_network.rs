//! Network paths (TLS, a proxy's tunnel, IPv6), a full disk, and an impatient user.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use perennial_core::rng::Rng;
use tokio_rustls::rustls::{ServerConnection, StreamOwned};

use crate::crawled::Archive;
use crate::program::{localhost_tls, testdata};
use crate::wait::wait_until;
use crate::web::{Reply, Web, html, status};

/// A server with the certificate of testdata/tls for `localhost`. Returns its port. It ends with the process.
fn serve_tls() -> u16 {
    let config = localhost_tls();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            std::thread::spawn(move || answer_once(StreamOwned::new(connection, tcp)));
        }
    });
    port
}

fn answer_once(stream: impl Read + Write) {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        if reader.read_line(&mut request).map_or(true, |n| n == 0) {
            return;
        }
    }
    let (code, body) =
        if request.starts_with("GET / ") { ("200 OK", "a secret page") } else { ("404 None", "") };
    let head = format!("HTTP/1.1 {code}\r\nContent-Type: text/html\r\nConnection: close\r\n");
    let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let _ = reader.get_mut().write_all(answer.as_bytes());
    let _ = reader.get_mut().flush();
}

/// A proxy that only opens tunnels. Returns its port.
fn serve_tunnels() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            std::thread::spawn(move || tunnel(client));
        }
    });
    port
}

fn tunnel(mut client: TcpStream) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?;
    let mut server = TcpStream::connect(target).ok()?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
    let (mut from_client, mut to_server) = (client.try_clone().ok()?, server.try_clone().ok()?);
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    std::io::copy(&mut server, &mut client).ok().map(drop)
}

fn crawl(archive: &Archive, url: &str) -> serde_json::Value {
    archive.ok(&["add", url, "--allow-private"]);
    archive.run(&["run", "--once", "--delay", "0", "--limit", "1"]);
    let log = archive.log();
    log.into_iter().find(|line| line["url"] == url).unwrap()
}

#[test]
fn tls_works_if_the_authority_is_trusted() {
    let url = format!("https://localhost:{}/", serve_tls());
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nrobots = false\nmax_tries = 1\n");
    let line = crawl(&archive, &url);
    assert_eq!((line["error"].as_str(), line["outcome"].as_str()), (Some("tls"), Some("failed")));
    assert!(line["detail"].as_str().unwrap().contains("crawl.tls_roots"), "{line}");

    let archive = Archive::new();
    let roots = testdata("tls/authority.pem");
    archive.append_settings(&format!("\n[crawl]\nrobots = false\ntls_roots = {roots:?}\n"));
    let line = crawl(&archive, &url);
    assert_eq!((line["status"].as_u64(), line["stored"].as_str()), (Some(200), Some("response")), "{line}");
    archive.verify();
}

#[test]
fn https_uses_a_proxy_tunnel() {
    let url = format!("https://localhost:{}/", serve_tls());
    let archive = Archive::new();
    let roots = testdata("tls/authority.pem");
    let proxy = format!("http://127.0.0.1:{}", serve_tunnels());
    archive
        .append_settings(&format!("\n[crawl]\nrobots = false\ntls_roots = {roots:?}\nproxy = {proxy:?}\n"));
    let line = crawl(&archive, &url);
    assert_eq!((line["status"].as_u64(), line["stored"].as_str()), (Some(200), Some("response")), "{line}");
}

#[test]
fn ipv6_works() {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let url = format!("http://[::1]:{}/", listener.local_addr().unwrap().port());
    std::thread::spawn(move || listener.incoming().flatten().for_each(answer_once));
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nrobots = false\n");
    let line = crawl(&archive, &url);
    assert_eq!((line["status"].as_u64(), line["stored"].as_str()), (Some(200), Some("response")), "{line}");
    archive.verify();
}

/// A large incompressible page with links to the next ones.
fn large_page(path: &str) -> Reply {
    let Some(number) = path.strip_prefix("/p").and_then(|n| n.parse::<u64>().ok()).filter(|n| *n < 30) else {
        return status(404);
    };
    let mut rng = Rng::new(number);
    let noise: String = (0..4000).map(|_| format!("{:x} ", rng.bits() >> 16)).collect();
    html(&format!("<a href=/p{}>next</a><p>{noise}</p>", number + 1))
}

#[test]
fn a_full_disk_stops_the_crawl_and_loses_nothing() {
    let web = Web::serve(|request| large_page(&request.path));
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nrobots = false\n");
    archive.ok(&["add", &web.url("/p0"), "--allow-private"]);
    // No file may exceed 300 blocks, so writing fails as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 300; exec \"$@\"";
    let program = env!("CARGO_BIN_EXE_perennial");
    let output = Command::new("bash")
        .args(["-c", script, "sh", program, "--archive"])
        .arg(&archive.root)
        .args(["run", "--once", "--delay", "0"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("disk full: free space"), "{said}");
    assert!(web.n_requests("/p29") == 0, "the limit was never reached");
    archive.ok(&["run", "--once", "--delay", "0"]);
    archive.verify();
    let index = archive.root.join("all.cdxj");
    archive.ok(&["export", "--format", "cdxj", "-o", index.to_str().unwrap()]);
    let index = std::fs::read_to_string(index).unwrap();
    for n in 0..30 {
        assert!(index.contains(&format!("\"{}\"", web.url(&format!("/p{n}")))), "page {n}: {index}");
    }
}

#[test]
fn a_second_interrupt_stops_at_once() {
    let web = Web::serve(|request| match request.path.as_str() {
        "/" => Reply::Drip(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".to_vec(), b'x'),
        _ => status(404),
    });
    let archive = Archive::new();
    archive.append_settings("\n[crawl]\nrobots = false\nmin_bytes_per_window = 1\n");
    archive.ok(&["add", &web.url("/"), "--allow-private"]);
    let mut child = archive.spawn_with_stderr(&["run", "--once", "--delay", "0"]);
    let interrupt = |id: u32| Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap();
    wait_until("the first request", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
        web.n_requests("/") > 0
    });
    assert!(interrupt(child.id()).success());
    let said = BufReader::new(child.stderr.take().unwrap());
    assert!(said.lines().any(|line| line.unwrap().contains("a second signal stops at once")));
    assert!(child.try_wait().unwrap().is_none(), "the first one waits for what is in flight");
    assert!(interrupt(child.id()).success());
    // The page would drip for twenty minutes.
    assert_eq!(child.wait().unwrap().code(), Some(11));
    archive.verify();
}
