//! Reads feeds named on standard input and prints each as a JSON line, for experiments/feeds.
//!
//! A line of input has a file, its Content-Type and its URL, separated by tabs. The last two are optional.

use std::io::{BufRead, Write};

use perennial_core::feed;

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut parts = line.split('\t');
        let path = parts.next().unwrap_or_default();
        let content_type = parts.next().filter(|text| !text.is_empty());
        let url = parts.next().unwrap_or_default();
        let bytes = std::fs::read(path)?;
        let read = match feed::parse(&bytes, content_type, url) {
            Ok(feed) => serde_json::json!({ "path": path, "feed": feed }),
            Err(error) => serde_json::json!({ "path": path, "error": error.to_string() }),
        };
        writeln!(out, "{read}")?;
    }
    out.flush()
}
