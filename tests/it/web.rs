//! A web server on 127.0.0.1:0 that behaves or misbehaves as each test requires.
//!
//! Raw TCP and a thread per connection: the client receives exactly the bytes that a test writes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::wait::dawdle;

#[derive(Clone, Debug)]
pub(crate) struct WebRequest {
    pub(crate) path: String,
    pub(crate) fields: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// How often this path was requested before.
    pub(crate) n_before: usize,
}

impl WebRequest {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

pub(crate) enum Reply {
    /// Status line, fields, and body with its length. The connection is kept.
    Page(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// These bytes, then close.
    Raw(Vec<u8>),
    /// These bytes, then this byte every 20 ms forever.
    Drip(Vec<u8>, u8),
    /// These bytes, then this block forever.
    Endless(Vec<u8>, Vec<u8>),
    /// Nothing, forever.
    Silence,
    /// Nothing, and close.
    Close,
}

pub(crate) fn html(body: &str) -> Reply {
    Reply::Page(200, vec![("Content-Type", "text/html; charset=utf-8".into())], body.as_bytes().to_vec())
}

/// A status with a short text.
pub(crate) fn status(code: u16) -> Reply {
    Reply::Page(code, vec![("Content-Type", "text/plain".into())], format!("status {code}").into_bytes())
}

pub(crate) fn redirect(to: &str) -> Reply {
    Reply::Page(302, vec![("Location", to.to_string())], Vec::new())
}

type Handler = dyn Fn(&WebRequest) -> Reply + Send + Sync;

/// The server. It ends with the test.
pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<WebRequest>>>,
    is_over: Arc<AtomicBool>,
}

impl Web {
    /// Serves until dropped.
    pub(crate) fn serve(handler: impl Fn(&WebRequest) -> Reply + Send + Sync + 'static) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, is_over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let handler: Arc<Handler> = Arc::new(handler);
        let (seen, over) = (requests.clone(), is_over.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (handler, seen, over) = (handler.clone(), seen.clone(), over.clone());
                std::thread::spawn(move || serve_connection(stream, &*handler, &seen, &over));
            }
        });
        Web { address, requests, is_over }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<WebRequest> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn n_requests(&self, path: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|request| request.path == path).count()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve_connection(stream: TcpStream, handler: &Handler, seen: &Mutex<Vec<WebRequest>>, over: &AtomicBool) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let Ok(reading) = stream.try_clone() else { return };
    let mut reader = BufReader::new(reading);
    while let Some(mut request) = read_request(&mut reader) {
        {
            let mut seen = seen.lock().unwrap();
            request.n_before = seen.iter().filter(|other| other.path == request.path).count();
            seen.push(request.clone());
        }
        if !send(&stream, handler(&request), over) {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<WebRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&n| n > 0)?;
    let path = line.split(' ').nth(1)?.to_string();
    let mut fields = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|&n| n > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        fields.insert(name.to_ascii_lowercase(), value.trim().to_string());
    }
    let n_bytes = fields.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; n_bytes];
    reader.read_exact(&mut body).ok()?;
    Some(WebRequest { path, fields, body, n_before: 0 })
}

/// Whether the connection remains open.
fn send(mut stream: &TcpStream, reply: Reply, over: &AtomicBool) -> bool {
    match reply {
        Reply::Page(code, fields, body) => {
            let mut head = format!("HTTP/1.1 {code} Some Reason\r\nContent-Length: {}\r\n", body.len());
            for (name, value) in fields {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str("\r\n");
            let mut bytes = head.into_bytes();
            if code != 304 {
                bytes.extend_from_slice(&body);
            }
            stream.write_all(&bytes).is_ok()
        }
        Reply::Raw(bytes) => {
            let _ = stream.write_all(&bytes);
            false
        }
        Reply::Drip(bytes, byte) => {
            let _ = stream.write_all(&bytes);
            while !over.load(Ordering::Relaxed) && stream.write_all(&[byte]).is_ok() {
                dawdle(Duration::from_millis(20));
            }
            false
        }
        Reply::Endless(bytes, block) => {
            let _ = stream.write_all(&bytes);
            while !over.load(Ordering::Relaxed) && stream.write_all(&block).is_ok() {}
            false
        }
        Reply::Silence => {
            let mut byte = [0];
            while !over.load(Ordering::Relaxed) {
                match stream.read(&mut byte) {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
            }
            false
        }
        Reply::Close => false,
    }
}
