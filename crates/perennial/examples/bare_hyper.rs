//! The upper bound: a bare hyper client that fetches all pages of `bench_site` and stores nothing.
//!
//! `cargo run --release --example bare_hyper -- http://127.0.0.1:PORT/page/0.html PAGES CONNECTIONS` prints pages per
//! second.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let url = url::Url::parse(args.first().expect("a URL")).expect("a URL");
    let n_pages: usize = args.get(1).and_then(|text| text.parse().ok()).unwrap_or(5000);
    let n_connections: usize = args.get(2).and_then(|text| text.parse().ok()).unwrap_or(32);
    let address = format!("{}:{}", url.host_str().expect("a host"), url.port().unwrap_or(80));
    let next = Arc::new(AtomicUsize::new(0));
    let started = std::time::Instant::now();
    let tasks: Vec<_> =
        (0..n_connections).map(|_| tokio::spawn(fetch_all(address.clone(), next.clone(), n_pages))).collect();
    let mut n_bytes = 0;
    for task in tasks {
        n_bytes += task.await.expect("a task that ends");
    }
    let secs = started.elapsed().as_secs_f64();
    let _ = writeln!(
        std::io::stdout(),
        "bare hyper: {n_pages} pages, {n_bytes} bytes in {secs:.2} s, {:.0} pages/s",
        n_pages as f64 / secs
    );
}

async fn fetch_all(address: String, next: Arc<AtomicUsize>, n_pages: usize) -> usize {
    let stream = tokio::net::TcpStream::connect(&address).await.expect("a connection");
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("a handshake");
    tokio::spawn(connection);
    let mut n_bytes = 0;
    loop {
        let page = next.fetch_add(1, Ordering::Relaxed);
        if page >= n_pages {
            return n_bytes;
        }
        let request = hyper::Request::get(format!("/page/{page}.html"))
            .header("Host", &address)
            .body(Empty::<Bytes>::new())
            .expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        n_bytes += response.into_body().collect().await.expect("a body").to_bytes().len();
    }
}
