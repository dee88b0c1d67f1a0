//! Compares the embedded engine with Chromium on the same pages: whether both put the same words into the same blocks,
//! and how long each takes.
//!
//!     cargo run --release -p perennial-lab --example engines_eval -- [--limit N] [--no-scripts] FOLDER...
//!
//! Pages are the files index.html, source.html or *.html below the folders, thinned to at most N. Subresources are in
//! the page's folder. Words are matched by their order among equal words. Pair F is over pairs of words: those in one
//! leaf block in both engines, against those in one leaf block in either. All pages go through one engine, then through
//! the other, so that clean-up of one does not disturb the timing of the other. The crawl opens a tab per page, which
//! is not part of loading; ratios are printed with and without it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perennial_core::page::segment::{BlockTree, SegmentConfig, segment};
use perennial_core::text::charset::decode_text;
use perennial_render::{BrowserOptions, BrowserPage, CapturedResource, Chromium, LayoutEngine};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let (mut limit, mut run_scripts, mut pages) = (100, true, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--limit" => limit = args.next().ok_or("--limit needs a number")?.parse()?,
            "--no-scripts" => run_scripts = false,
            folder => collect(Path::new(folder), &mut pages),
        }
    }
    pages.sort();
    let step = pages.len().div_ceil(limit).max(1);
    let pages: Vec<(PathBuf, String)> = pages
        .into_iter()
        .step_by(step)
        .map(|path| std::fs::read(&path).map(|bytes| (path, decode_text(&bytes, None).into_owned())))
        .collect::<Result<_, _>>()?;
    let engine = LayoutEngine::new();
    let own: Vec<(BlockTree, Duration)> = pages
        .iter()
        .map(|(path, html)| {
            let began = Instant::now();
            let layout = engine.layout(html, URL, &|wanted: &str| beside(wanted, path));
            (segment(&layout, &SegmentConfig::default()), began.elapsed())
        })
        .collect();
    let mut chromium = Chromium::new(BrowserOptions { run_scripts, ..BrowserOptions::default() });
    println!("browser: {}", chromium.engine()?);
    warm_up(&mut chromium)?;
    let (mut scores, mut own_times, mut browser_times, mut loading_times) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for ((path, html), (own, own_time)) in pages.iter().zip(own) {
        let lookup = |wanted: &str| beside(wanted, path);
        let began = Instant::now();
        let page = BrowserPage { url: URL, html, unix_millis: 1_411_570_000_000 };
        let seen = match chromium.layout(&page, &|request, _| lookup(&request.url)) {
            Ok(seen) => seen,
            Err(error) => {
                println!("{}: {error}", path.display());
                continue;
            }
        };
        let browser_time = began.elapsed();
        let score = pair_f(&own, &segment(&seen.layout, &SegmentConfig::default()));
        let loading_time = seen.time;
        println!(
            "{score:.3} {own_time:>10.1?} {browser_time:>10.1?} {loading_time:>10.1?} {}",
            path.display()
        );
        scores.push(score);
        own_times.push(own_time);
        browser_times.push(browser_time);
        loading_times.push(loading_time);
    }
    scores.sort_by(f64::total_cmp);
    own_times.sort();
    browser_times.sort();
    loading_times.sort();
    let n = scores.len().max(1);
    let share = scores.iter().filter(|score| **score >= 0.85).count() as f64 / n as f64;
    let (own, browser) = (own_times[n / 2], browser_times[n / 2]);
    println!("{n} pages: pair F median {:.3}, {:.0} % at least 0.85", scores[n / 2], share * 100.0);
    println!("median: embedded parse + style + layout + segment {own:?}");
    println!("median: warm Chromium, tab + load + snapshot {browser:?}, {:.1} x", ratio(browser, own));
    let loading = loading_times[n / 2];
    println!("median: the same in an open tab, load + snapshot {loading:?}, {:.1} x", ratio(loading, own));
    Ok(())
}

/// Opens pages before timing starts, because the first pages of a browser take longer.
fn warm_up(chromium: &mut Chromium) -> Result<(), Box<dyn std::error::Error>> {
    for _ in 0..9 {
        let page = BrowserPage { url: URL, html: "<p>", unix_millis: 1_411_570_000_000 };
        chromium.layout(&page, &|_, _| None)?;
    }
    Ok(())
}

const URL: &str = "http://page.example/";

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(1e-9)
}

/// The leaf of each word, by the word and its number among equal words.
fn places(tree: &BlockTree) -> HashMap<(String, u32), usize> {
    let mut counts: HashMap<String, u32> = HashMap::new();
    let mut places = HashMap::new();
    for (leaf, block) in tree.leaves().enumerate() {
        let texts = block.texts.iter().map(|text| text.text.as_str());
        let links = block.links.iter().map(|link| link.name.as_str());
        for word in texts.chain(links).flat_map(str::split_whitespace) {
            let count = counts.entry(word.to_string()).or_default();
            places.insert((word.to_string(), *count), leaf);
            *count += 1;
        }
    }
    places
}

fn pair_f(a: &BlockTree, b: &BlockTree) -> f64 {
    let (a, b) = (places(a), places(b));
    let (mut in_a, mut in_b, mut in_both) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (word, leaf_a) in &a {
        let Some(leaf_b) = b.get(word) else { continue };
        *in_a.entry(*leaf_a).or_insert(0u64) += 1;
        *in_b.entry(*leaf_b).or_insert(0u64) += 1;
        *in_both.entry((*leaf_a, *leaf_b)).or_insert(0u64) += 1;
    }
    let pairs = |n: &u64| (n * (n.saturating_sub(1)) / 2) as f64;
    let (a, b): (f64, f64) = (in_a.values().map(pairs).sum(), in_b.values().map(pairs).sum());
    let both: f64 = in_both.values().map(pairs).sum();
    if a + b == 0.0 { 1.0 } else { 2.0 * both / (a + b) }
}

fn collect(path: &Path, pages: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            collect(&entry.path(), pages);
        }
    } else if path.extension().is_some_and(|kind| kind == "html") && !is_frame(path) {
        pages.push(path.to_path_buf());
    }
}

/// Whether the file is a frame or an advertisement saved with a page.
fn is_frame(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name != "index.html" && name.starts_with("index")
}

fn beside(wanted: &str, page: &Path) -> Option<CapturedResource> {
    let name = wanted.split(['?', '#']).next()?.rsplit('/').next()?;
    let path = page.with_file_name(name);
    if name.is_empty() || path == page {
        return None;
    }
    let content_type = if name.ends_with(".css") { "text/css" } else { "" };
    Some(CapturedResource {
        status: 200,
        content_type: content_type.into(),
        body: std::fs::read(path).ok()?,
        ..CapturedResource::default()
    })
}
