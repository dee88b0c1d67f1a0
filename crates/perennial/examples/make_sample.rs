//! The pages in `testdata/sample` -> `testdata/sample.warc.gz`, and a damaged copy of it.
//!
//! Run it in the repository's top folder: `cargo run --release --example make_sample`. Dates and record ids are fixed,
//! so the same pages give the same files.

use std::fs;
use std::path::Path;

use perennial_core::time::Timestamp;
use perennial_warc::{Compression, NewRecord, RecordIds, RevisitProfile, WarcWriter, sha1_label};

/// Time, URL, status line, media type, and file with the body.
const CAPTURES: &[(&str, &str, &str, &str, &str)] = &[
    ("2026-03-01T08:00:00Z", "http://garden.example/", "200 OK", "text/html", "garden/home-1.html"),
    ("2026-03-01T08:00:01Z", "http://garden.example/style.css", "200 OK", "text/css", "garden/style.css"),
    ("2026-03-01T08:00:02Z", "http://garden.example/roses", "200 OK", "text/html", "garden/roses.html"),
    ("2026-03-01T09:00:00Z", "http://news.example/", "200 OK", "text/html", "news/front-1.html"),
    ("2026-03-02T08:00:00Z", "http://garden.example/", "200 OK", "text/html", "garden/home-1.html"),
    ("2026-03-29T08:00:00Z", "http://garden.example/", "200 OK", "text/html", "garden/home-2.html"),
    ("2026-03-29T08:00:01Z", "http://garden.example/tulips", "200 OK", "text/html", "garden/tulips.html"),
    ("2026-03-29T08:00:02Z", "http://garden.example/tulip", "301 Moved Permanently", "text/html", ""),
    ("2026-03-29T09:00:00Z", "http://news.example/", "200 OK", "text/html", "news/front-2.html"),
    (
        "2026-03-29T09:00:01Z",
        "http://news.example/2026/garden-opens",
        "200 OK",
        "text/html",
        "news/garden-opens.html",
    ),
    ("2026-04-05T08:00:00Z", "http://garden.example/", "200 OK", "text/html", "garden/home-3.html"),
    ("2026-04-05T09:00:00Z", "http://news.example/", "200 OK", "text/html", "news/front-3.html"),
    ("2026-04-05T09:00:01Z", "http://news.example/2026/bridge-closed", "404 Not Found", "text/html", ""),
];

fn main() -> anyhow::Result<()> {
    let warc = write_sample(Path::new("testdata/sample"))?;
    fs::write("testdata/sample.warc.gz", &warc)?;
    fs::write("testdata/sample-torn.warc.gz", damage(warc))?;
    Ok(())
}

fn write_sample(pages: &Path) -> anyhow::Result<Vec<u8>> {
    let mut ids = RecordIds::new(2026);
    let mut out = WarcWriter::new(Vec::new(), 0, Compression::default())?;
    let start = Timestamp::parse(CAPTURES[0].0)?;
    let facts = [("software", "perennial make_sample"), ("format", "WARC File Format 1.1")];
    out.write(&NewRecord::warcinfo(ids.next_id(), start, "sample.warc.gz", &facts))?;
    let mut stored: Vec<(String, &str, Timestamp)> = Vec::new();
    for (date, url, status, mime, file) in CAPTURES {
        let date = Timestamp::parse(date)?;
        let body = if file.is_empty() { Vec::new() } else { fs::read(pages.join(file))? };
        let location = if status.starts_with("301") { "Location: /tulips\r\n" } else { "" };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {mime}\r\n{location}Content-Length: {length}\r\n\r\n"
        );
        let digest = sha1_label(&body);
        let id = ids.next_id();
        match stored.iter().find(|(known, ..)| *known == digest && length > 0) {
            Some((_, origin_url, origin_date)) => {
                let profile = RevisitProfile::IdenticalPayloadDigest;
                let record = NewRecord::revisit(id, date, url, profile, head.as_bytes(), Some(&digest));
                out.write(&record.refers_to(origin_url, *origin_date))?;
            }
            None => {
                out.write(&NewRecord::response(id, date, url, head.as_bytes(), &body))?;
                stored.push((digest, url, date));
            }
        }
        let host = url.split('/').nth(2).unwrap_or_default();
        let request = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: perennial\r\n\r\n");
        let record = NewRecord::request(ids.next_id(), date, url, request.as_bytes(), b"");
        out.write(&record.concurrent_to(id))?;
    }
    Ok(out.into_inner())
}

/// Flips a bit in the middle and cuts off the end.
fn damage(mut warc: Vec<u8>) -> Vec<u8> {
    let middle = warc.len() / 2;
    warc[middle] ^= 4;
    warc.truncate(warc.len() - 100);
    warc
}
