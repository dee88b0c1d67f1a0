//! Lays out and segments every page below the given folders. It prints failures, times, and pages with a visible word
//! that is not in exactly one leaf block. `LOST` marks pages with words that the engine gave no place.
//!
//!     cargo run --release -p perennial-lab --example render_all -- [--in-process] FOLDER...
//!
//! Stylesheets and images are in the page's folder, by file name. Without `--in-process` pages go through workers; this
//! program is its own worker.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perennial_core::page::layout::{Display, Layout};
use perennial_core::page::segment::{SegmentConfig, segment, segment_with_lost_words};
use perennial_core::text::charset::decode_text;
use perennial_render::worker::{self, WorkerLimits};
use perennial_render::{CapturedResource, LayoutEngine, PageLimits, WorkerCommand, WorkerPool};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "render-worker") {
        return Ok(worker::serve(WorkerLimits::default())?);
    }
    let in_process = args.iter().any(|arg| arg == "--in-process");
    args.retain(|arg| arg != "--in-process");
    let mut pages = Vec::new();
    for folder in &args {
        collect(Path::new(folder), &mut pages);
    }
    pages.sort();
    let command =
        WorkerCommand { program: std::env::current_exe()?, arguments: vec!["render-worker".into()] };
    let pool =
        WorkerPool::new(command, PageLimits { time: Duration::from_secs(20), ..PageLimits::default() });
    let engine = LayoutEngine::new();
    let mut times = Vec::new();
    let (mut n_empty, mut n_nodes, mut n_bytes, mut n_texts, mut n_astray) = (0, 0, 0, 0, 0);
    let mut n_lost_words = 0;
    for page in &pages {
        let Ok(bytes) = std::fs::read(page) else { continue };
        let html = decode_text(&bytes, None).into_owned();
        let lookup = |wanted: &str| beside(wanted, page);
        let began = Instant::now();
        let layout = if in_process {
            engine.layout(&html, "http://page.example/", &lookup)
        } else {
            let rendered = pool.layout(&html, "http://page.example/", &lookup);
            if let Some(fallback) = rendered.fallback {
                println!("FALLBACK {} {fallback}", page.display());
            }
            rendered.layout
        };
        times.push((began.elapsed(), page));
        let (n_kept, n_seen) = texts_in_one_leaf(&layout);
        n_texts += n_seen;
        if n_kept < n_seen {
            n_astray += 1;
            println!(
                "WORDS {}: {} of {n_seen} texts not in exactly one leaf",
                page.display(),
                n_seen - n_kept
            );
        }
        let (_, n_lost) = segment_with_lost_words(&layout, &SegmentConfig::default());
        n_lost_words += n_lost;
        if n_lost > 0 {
            println!("LOST {}: {n_lost} words", page.display());
        }
        n_nodes += layout.nodes.len();
        n_bytes += html.len();
        if !layout.nodes.iter().any(|node| node.is_text() && node.is_visible && node.rect.area() > 0.0) {
            n_empty += 1;
            println!("EMPTY {} ({} bytes)", page.display(), html.len());
        }
    }
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].0;
    println!(
        "{} pages, {n_bytes} bytes, {n_nodes} nodes, {} fallbacks, {n_empty} without visible text; median {:?}, p95 {:?}, slowest {:?} ({})",
        times.len(),
        pool.n_fallbacks(),
        at(0.5),
        at(0.95),
        at(1.0),
        times[times.len() - 1].1.display()
    );
    println!(
        "{n_texts} visible texts; {n_astray} pages with a text that is in no leaf or in two; {n_lost_words} words lost"
    );
    println!("total {:?}", times.iter().map(|(time, _)| *time).sum::<Duration>());
    Ok(())
}

/// How many of the visible texts are in exactly one leaf, and their number. Every text is marked with its number before
/// segmentation, and the marks are searched for in the leaves.
fn texts_in_one_leaf(layout: &Layout) -> (usize, usize) {
    let mut marked = layout.clone();
    let mut n_leaves = HashMap::new();
    for index in visible_texts(layout) {
        marked.nodes[index].text.to_mut().push_str(&format!(" \u{27e6}{index}\u{27e7} "));
        n_leaves.insert(index, 0);
    }
    for leaf in segment(&marked, &SegmentConfig::default()).leaves() {
        let texts = leaf.texts.iter().map(|text| &text.text);
        for text in texts.chain(leaf.links.iter().map(|link| &link.name)) {
            for mark in text.split('\u{27e6}').skip(1) {
                let index = mark.split('\u{27e7}').next().and_then(|number| number.parse().ok());
                if let Some(n) = index.and_then(|index: usize| n_leaves.get_mut(&index)) {
                    *n += 1;
                }
            }
        }
    }
    (n_leaves.values().filter(|n| **n == 1).count(), n_leaves.len())
}

/// The visible texts. A text without a box, left of or above the page, or hidden by the page is not visible.
fn visible_texts(layout: &Layout) -> Vec<usize> {
    let mut is_hidden: Vec<bool> = Vec::with_capacity(layout.nodes.len());
    let mut texts = Vec::new();
    for (index, node) in layout.nodes.iter().enumerate() {
        let is_hidden_above = node.parent.is_some_and(|parent| is_hidden[parent as usize]);
        let hides = (!node.is_text() && node.display == Display::None)
            || matches!(&*node.tag, "title" | "desc" | "option" | "metadata");
        is_hidden.push(is_hidden_above || hides);
        let rect = &node.rect;
        let is_in_sight = rect.w > 0.0 && rect.h > 0.0 && rect.right() > 0.0 && rect.bottom() > 0.0;
        if node.is_text()
            && node.is_visible
            && is_in_sight
            && !is_hidden_above
            && !node.text.trim().is_empty()
        {
            texts.push(index);
        }
    }
    texts
}

fn collect(path: &Path, pages: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            collect(&entry.path(), pages);
        }
    } else if is_page(path) {
        pages.push(path.to_path_buf());
    }
}

fn is_page(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".html") || name.ends_with(".htm") || name.ends_with(".html.gz") || !name.contains('.')
}

fn beside(wanted: &str, page: &Path) -> Option<CapturedResource> {
    let name = wanted.split(['?', '#']).next()?.rsplit('/').next()?;
    let path = page.with_file_name(name);
    if name.is_empty() || path == page {
        return None;
    }
    Some(CapturedResource {
        status: 200,
        content_type: String::new(),
        body: std::fs::read(path).ok()?,
        ..CapturedResource::default()
    })
}
