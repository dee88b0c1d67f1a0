//! The site for benchmarks of crawlers: N pages of about 30 KB with 20 links each, served on loopback from memory.
//!
//! `cargo run --release --example bench_site -- [PAGES] [PORT]` prints its URL and serves until it is stopped. It
//! makes all bodies in advance, so the server costs little compared to the crawler.

use std::io::Write;
use std::sync::Arc;

use perennial_core::rng::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const WORDS: [&str; 24] = [
    "archive", "river", "council", "morning", "paper", "station", "winter", "garden", "market", "people",
    "letter", "harbour", "museum", "window", "history", "report", "bridge", "school", "village", "weather",
    "season", "library", "record", "change",
];

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let n_pages: usize = args.next().and_then(|text| text.parse().ok()).unwrap_or(5000);
    let port: u16 = args.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    let responses: Arc<Vec<Vec<u8>>> = Arc::new((0..n_pages).map(|page| response(page, n_pages)).collect());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let _ = writeln!(std::io::stdout(), "http://{address}/page/0.html");
    while let Ok((stream, _)) = listener.accept().await {
        let responses = responses.clone();
        tokio::spawn(serve(stream, responses));
    }
}

async fn serve(mut stream: tokio::net::TcpStream, responses: Arc<Vec<Vec<u8>>>) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::with_capacity(4096);
    loop {
        while !buffer.windows(4).any(|window| window == b"\r\n\r\n") {
            match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let head = String::from_utf8_lossy(&buffer).into_owned();
        buffer.clear();
        let number = head
            .strip_prefix("GET /page/")
            .and_then(|rest| rest.split('.').next())
            .and_then(|number| number.parse::<usize>().ok());
        let missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec();
        let reply = number.and_then(|number| responses.get(number)).unwrap_or(&missing);
        if stream.write_all(reply).await.is_err() || head.contains("onnection: close") {
            return;
        }
    }
}

/// Links form a random graph in which every page is reachable: page n / 10 links to page n.
fn response(page: usize, n_pages: usize) -> Vec<u8> {
    let mut rng = Rng::new(page as u64);
    let mut body =
        format!("<!DOCTYPE html><html><head><title>Page {page}</title></head><body><h1>Page {page}</h1>\n");
    for link in 0..20 {
        let to = if link < 10 { page * 10 + link } else { rng.below(n_pages) };
        if to < n_pages {
            body.push_str(&format!("<p><a href=\"/page/{to}.html\">{} {to}</a></p>\n", WORDS[rng.below(24)]));
        }
    }
    while body.len() < 30_000 {
        body.push_str("<p>");
        for _ in 0..40 {
            body.push_str(WORDS[rng.below(24)]);
            body.push_str(if rng.below(5) == 0 { ", " } else { " " });
            if rng.below(3) == 0 {
                body.push_str(&format!("{:x} ", rng.below(65536)));
            }
        }
        body.push_str("</p>\n");
    }
    body.push_str("</body></html>\n");
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}
