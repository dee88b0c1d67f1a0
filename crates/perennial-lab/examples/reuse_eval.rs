//! Measures how often the structure of a version can be reused, whether the result equals that of a full run, and the
//! time of both.
//!
//!     cargo run --release -p perennial-lab --example reuse_eval -- FOLDER
//!
//! FOLDER holds versions; those of one page share a folder and sort by name. Prints how many successive versions have
//! the same structure, for how many of these the reused tree equals that of a full run (except for boxes), and the
//! times.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perennial_core::page::segment::{BlockTree, ReusableLayout, SegmentConfig, fingerprint, segment};
use perennial_core::text::charset::decode_text;
use perennial_render::dom::Dom;
use perennial_render::engine::base_url;
use perennial_render::parsed::parsed_nodes;
use perennial_render::{LayoutEngine, resource};

#[derive(Default)]
struct ReuseScore {
    n_pairs: usize,
    n_same: usize,
    n_changed_text: usize,
    n_equal: usize,
    full: Duration,
    reused: Duration,
    /// Ratios of single pages.
    ratios: Vec<f64>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: reuse_eval FOLDER")?;
    let engine = LayoutEngine::new();
    let mut score = ReuseScore::default();
    walk(Path::new(&folder), &engine, &mut score)?;
    println!("successive versions      {}", score.n_pairs);
    println!("same structure           {}", score.n_same);
    println!("  with other content     {}", score.n_changed_text);
    println!("  equal to a full run    {}", score.n_equal);
    let (full, reused) = (score.full.as_secs_f64(), score.reused.as_secs_f64());
    println!(
        "full {:.1} ms, reused {:.1} ms a page: {:.1} x",
        per(full, score.n_same),
        per(reused, score.n_same),
        full / reused.max(1e-9)
    );
    score.ratios.sort_by(f64::total_cmp);
    if let Some(median) = score.ratios.get(score.ratios.len() / 2) {
        println!("median of the pages' own ratios: {median:.1} x");
    }
    Ok(())
}

fn per(secs: f64, n: usize) -> f64 {
    secs * 1e3 / n.max(1) as f64
}

fn walk(folder: &Path, engine: &LayoutEngine, score: &mut ReuseScore) -> std::io::Result<()> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    let mut plan: Option<(ReusableLayout, BlockTree)> = None;
    for path in entries {
        if path.is_dir() {
            walk(&path, engine, score)?;
        } else if path.extension().is_none_or(|ending| ending == "html" || ending == "htm") {
            plan = step(&decode_text(&std::fs::read(&path)?, None), engine, plan, score, &path);
        }
    }
    Ok(())
}

fn step(
    html: &str,
    engine: &LayoutEngine,
    before: Option<(ReusableLayout, BlockTree)>,
    score: &mut ReuseScore,
    path: &Path,
) -> Option<(ReusableLayout, BlockTree)> {
    let config = SegmentConfig::default();
    let url = "http://page.example/";
    let began = Instant::now();
    let dom = Dom::parse(html);
    let base = base_url(&dom, url);
    let boxes = engine.boxes(&dom, &base, &resource::nothing);
    let nodes = parsed_nodes(&dom);
    let tree = segment(&boxes.fill(&nodes, base.as_str())?, &config);
    let full = began.elapsed();
    let began = Instant::now();
    let dom = Dom::parse(html);
    let nodes = parsed_nodes(&dom);
    let reused = before.as_ref().and_then(|(plan, _)| {
        let layout =
            plan.fill(&nodes, base.as_str()).filter(|_| fingerprint(&nodes, 0) == plan.fingerprint());
        layout.map(|layout| segment(&layout, &config))
    });
    let fast = began.elapsed();
    score.n_pairs += usize::from(before.is_some());
    if let (Some(reused), Some((_, last))) = (reused, &before) {
        score.n_same += 1;
        score.n_changed_text += usize::from(last.id() != tree.id());
        score.full += full;
        score.reused += fast;
        score.ratios.push(full.as_secs_f64() / fast.as_secs_f64().max(1e-9));
        let is_equal = reused.clone().without_boxes() == tree.clone().without_boxes();
        score.n_equal += usize::from(is_equal);
        if !is_equal {
            eprintln!(
                "differs: {} ({} against {} leaves)",
                path.display(),
                reused.leaves().count(),
                tree.leaves().count()
            );
        }
    }
    Some((ReusableLayout::new(fingerprint(&nodes, 0), boxes), tree))
}
