//! Lays one page out with Chromium and prints the time and the size of the result.
//!
//!     cargo run --release -p perennial-lab --example chromium_dump -- PAGE.html

use std::path::PathBuf;
use std::time::Instant;

use perennial_core::text::charset::decode_text;
use perennial_render::{BrowserOptions, BrowserPage, CapturedResource, Chromium};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().ok_or("usage: chromium_dump PAGE.html")?);
    let html = decode_text(&std::fs::read(&path)?, None).into_owned();
    let lookup = |wanted: &str| {
        let name = wanted.split(['?', '#']).next()?.rsplit('/').next()?;
        let kind = if name.ends_with(".css") { "text/css" } else { "" };
        Some(CapturedResource {
            status: 200,
            content_type: kind.into(),
            body: std::fs::read(path.with_file_name(name)).ok()?,
            ..CapturedResource::default()
        })
    };
    let mut chromium = Chromium::new(BrowserOptions::default());
    let page = BrowserPage { url: "http://page.example/", html: &html, unix_millis: 1_411_570_000_000 };
    for run in 0..3 {
        let began = Instant::now();
        let seen = chromium.layout(&page, &|request, _| lookup(&request.url))?;
        let n_words: usize = seen
            .layout
            .nodes
            .iter()
            .filter(|node| node.is_text() && node.is_visible)
            .map(|node| node.text.split_whitespace().count())
            .sum();
        eprintln!(
            "run {run}: {} nodes, {n_words} visible words, {} px high, {:?}, {}",
            seen.layout.nodes.len(),
            seen.layout.height,
            began.elapsed(),
            seen.layout.engine
        );
    }
    Ok(())
}
