//! Lays one page out with the embedded engine and prints the layout as JSON lines.
//!
//!     cargo run --release -p perennial-lab --example layout_dump -- PAGE.html [--url URL] [STYLE.css...]
//!
//! Stylesheets are looked up among the given ones by file name, then in the page's folder. The first line describes the
//! page, each further line one node.

use std::path::{Path, PathBuf};

use perennial_core::page::layout::Layout;
use perennial_core::text::charset::decode_text;
use perennial_render::{CapturedResource, LayoutEngine};
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let page = PathBuf::from(args.next().ok_or("usage: layout_dump PAGE.html [--url URL] [STYLE.css...]")?);
    let mut url = "http://page.example/".to_string();
    let mut styles = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--url" => url = args.next().ok_or("--url needs an address")?,
            _ => styles.push(PathBuf::from(arg)),
        }
    }
    let html = decode_text(&std::fs::read(&page)?, None).into_owned();
    let lookup = |wanted: &str| find(wanted, &page, &styles);
    let began = std::time::Instant::now();
    let engine = LayoutEngine::new();
    let ready = began.elapsed();
    let layout = engine.layout(&html, &url, &lookup);
    eprintln!(
        "engine ready after {ready:?}, layout of {} nodes took {:?}",
        layout.nodes.len(),
        began.elapsed() - ready
    );
    print(&layout);
    Ok(())
}

fn find(wanted: &str, page: &Path, styles: &[PathBuf]) -> Option<CapturedResource> {
    let name = wanted.split(['?', '#']).next()?.rsplit('/').next()?;
    let given = styles.iter().find(|path| path.file_name().is_some_and(|own| own == name)).cloned();
    let body = std::fs::read(given.unwrap_or_else(|| page.with_file_name(name))).ok()?;
    Some(CapturedResource { status: 200, content_type: String::new(), body, ..CapturedResource::default() })
}

fn print(layout: &Layout) {
    println!(
        "{}",
        json!({"base_url": layout.base_url, "engine": layout.engine, "width": layout.width, "height": layout.height})
    );
    for node in &layout.nodes {
        println!(
            "{}",
            json!({
                "parent": node.parent,
                "tag": node.tag,
                "attributes": node.attributes,
                "text": node.text,
                "rect": [node.rect.x, node.rect.y, node.rect.w, node.rect.h],
                "font_size": node.font_size,
                "font_weight": node.font_weight,
                "color": [node.color.r, node.color.g, node.color.b, node.color.a],
                "background": [node.background.r, node.background.g, node.background.b, node.background.a],
                "has_background_image": node.has_background_image,
                "display": format!("{:?}", node.display),
                "is_fixed": node.is_fixed,
                "is_visible": node.is_visible,
            })
        );
    }
}
