//! A server started with the real executable and queried over plain sockets, and archives for it, made exchange by
//! exchange.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use perennial_archive::{ArchiveWriter, Exchange, ExchangeBody};
use perennial_core::time::Timestamp;
use serde_json::Value;

/// A server that ends with the test.
pub(crate) struct Serving {
    child: Child,
    pub(crate) main: String,
    pub(crate) replay: String,
}

impl Serving {
    pub(crate) fn start(archives: &[&Path], options: &[&str]) -> Serving {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perennial"));
        for archive in archives {
            command.arg("--archive").arg(archive);
        }
        command.args(["--json", "serve", "--listen", "127.0.0.1:0"]).args(options);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut reported = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            reported.push_str(&line.unwrap());
            if reported.ends_with('}') {
                break;
            }
        }
        let reported: Value = serde_json::from_str(&reported).unwrap();
        let host = |name: &str| reported[name].as_str().unwrap().strip_prefix("http://").unwrap().to_string();
        Serving { child, main: host("url"), replay: host("replay") }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        send_request(&self.main, "GET", path, &[])
    }

    pub(crate) fn get_with(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        send_request(&self.main, "GET", path, fields)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

pub(crate) fn send_request(host: &str, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
    send_body(host, method, path, fields, "")
}

pub(crate) fn send_body(host: &str, method: &str, path: &str, fields: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(host).unwrap();
    let has_host = fields.iter().any(|field| field.0 == "Host");
    let own_host = if has_host { String::new() } else { format!("Host: {host}\r\n") };
    let mut more: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    if !body.is_empty() {
        more.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    write!(stream, "{method} {path} HTTP/1.1\r\n{own_host}{more}Connection: close\r\n\r\n{body}").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let pair =
        |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_string()));
    let fields: BTreeMap<String, String> = lines.filter_map(pair).collect();
    let mut body = answer[end + 4..].to_vec();
    if fields.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        body = dechunked(&body);
    }
    Answer { status, fields, body }
}

fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        body.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 4 + length..];
    }
    body
}

/// Stores a response as a crawl would.
pub(crate) fn append_status(
    writer: &mut ArchiveWriter,
    url: &str,
    time: Timestamp,
    status: &str,
    head: &str,
    body: &[u8],
) {
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {head}\r\n\r\n");
    writer
        .append(Exchange {
            url,
            time,
            ip: None,
            request_head: b"GET / HTTP/1.1\r\n\r\n",
            request_body: b"",
            response_head: head.as_bytes(),
            body: ExchangeBody::Bytes(body),
            truncated: None,
            metadata: &[],
            derived: &[],
            links: None,
        })
        .unwrap();
}
