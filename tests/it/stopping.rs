//! A crawl ends when it should, whatever a server does and whoever started it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::crawled::Archive;
use crate::wait::wait_until;
use crate::web::{Reply, Web, WebRequest};

/// A body that goes on for ever, faster than the client's limit for stalled transfers.
fn dripping(_: &WebRequest) -> Reply {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000000\r\n\r\n";
    let block = vec![b' '; 4096];
    Reply::Drip([&head[..], &block].concat(), b'x')
}

fn following(web: &Web) -> Archive {
    let archive = Archive::new();
    archive.append_settings("[crawl]\nrobots = false\n");
    archive.ok(&["add", &web.url("/"), "--allow-private", "--renderer", "layout"]);
    archive
}

const CRAWL: [&str; 5] = ["run", "--once", "--delay", "0", "--no-serve"];

#[test]
fn a_time_limit_holds_while_a_body_drips() {
    let web = Web::serve(dripping);
    let archive = following(&web);
    for limit in [["--time-limit", "1s"], ["--deadline", "2026-01-01"]] {
        let mut crawl = archive.spawn(&[&CRAWL[..], &limit].concat());
        wait_until("the end of the crawl", || crawl.try_wait().unwrap().is_some());
        assert_eq!(crawl.wait().unwrap().code(), Some(15), "{limit:?}");
    }
    archive.verify();
}

#[test]
fn a_request_to_stop_holds_while_a_body_drips() {
    let web = Web::serve(dripping);
    let archive = following(&web);
    // `add` may have made requests.
    let n_before = web.requests().len();
    let mut crawl = archive.spawn(&CRAWL);
    wait_until("a request", || web.requests().len() > n_before);
    let term = Command::new("kill").arg(crawl.id().to_string()).status().unwrap();
    assert!(term.success());
    wait_until("the end of the crawl", || crawl.try_wait().unwrap().is_some());
    assert_eq!(crawl.wait().unwrap().code(), Some(11));
    archive.verify();
}

#[test]
fn a_crawl_ends_with_its_parent() {
    let web = Web::serve(dripping);
    let archive = following(&web);
    let command = "\"$0\" --archive \"$1\" run --once --delay 0 --no-serve --with-parent & echo $!; wait";
    let n_before = web.requests().len();
    let mut parent = Command::new("sh")
        .args(["-c", command, env!("CARGO_BIN_EXE_perennial")])
        .arg(&archive.root)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut number = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut number).unwrap();
    let process = PathBuf::from(format!("/proc/{}", number.trim()));
    wait_until("a request", || web.requests().len() > n_before);
    assert!(process.exists());
    parent.kill().unwrap();
    parent.wait().unwrap();
    // Nobody may be there to collect an orphan, so a zombie counts as ended.
    let has_ended = || {
        let state = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
        state.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
    };
    wait_until("the end of the crawl", has_ended);
    archive.verify();
}
