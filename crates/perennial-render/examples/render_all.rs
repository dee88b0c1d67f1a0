//! Lays out every page under the given folders and prints failures and timing.
//!
//!     cargo run --release -p perennial-render --example render_all -- [--in-process] FOLDER...
//!
//! Stylesheets and images are looked for beside each page by file name. Through workers by default: this program is
//! its own worker.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perennial_core::charset::decode_text;
use perennial_render::pool::WORKER_MEMORY_BYTES;
use perennial_render::{Captured, Engine, Limits, Pool, WorkerCommand, worker};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "render-worker") {
        return Ok(worker::serve(WORKER_MEMORY_BYTES)?);
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
    let pool = Pool::new(command, Limits { time: Duration::from_secs(20), ..Limits::default() });
    let engine = Engine::new();
    let mut times = Vec::new();
    let (mut n_empty, mut n_nodes, mut n_bytes) = (0, 0, 0);
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
    println!("total {:?}", times.iter().map(|(time, _)| *time).sum::<Duration>());
    Ok(())
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

fn beside(wanted: &str, page: &Path) -> Option<Captured> {
    let name = wanted.split(['?', '#']).next()?.rsplit('/').next()?;
    let path = page.with_file_name(name);
    if name.is_empty() || path == page {
        return None;
    }
    Some(Captured { status: 200, content_type: String::new(), body: std::fs::read(path).ok()? })
}
