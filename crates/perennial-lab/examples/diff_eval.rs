//! Checks on real pages whether Vi-DIFF finds the right operations, and how fast.
//!
//!     cargo run --release -p perennial-lab --example diff_eval -- plant FOLDER [RATE]
//!     cargo run --release -p perennial-lab --example diff_eval -- versions FOLDER
//!     cargo run --release -p perennial-lab --example diff_eval -- vixml FOLDER OUT
//!     cargo run --release -p perennial-lab --example diff_eval -- pairs LIST
//!
//! `plant` plants known changes into every page below FOLDER (P-VISUAL 7.2, docs/papers.md) and prints precision and
//! recall of the operations found. `versions` takes the files of each folder, in name order, as versions of one page.
//! For each successive pair it checks that the delta gives the later version and is not larger than its Vi-XML, and
//! prints the time. `vixml` writes each page as Vi-XML for other tools. `pairs` takes two Vi-XML files per line of
//! LIST, separated by a tab, and prints the seconds for reading both, diff and importance (see
//! `benches/diff_peers.py`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perennial_core::page::diff::{Delta, diff};
use perennial_core::page::importance::{ImportanceConfig, importance};
use perennial_core::page::segment::{BlockTree, SegmentConfig, segment, vixml};
use perennial_core::text::charset::decode_text;
use perennial_lab::plant::{PlantRates, Recovery, measure_recovery, plant};
use perennial_render::{LayoutEngine, resource::nothing};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: diff_eval plant|versions|vixml|pairs FOLDER [RATE|OUT]";
    let (mode, folder) = (args.first().ok_or(usage)?, PathBuf::from(args.get(1).ok_or(usage)?));
    if mode == "pairs" {
        return time_pairs(&folder);
    }
    let mut pages = Vec::new();
    find_pages(&folder, &mut pages)?;
    pages.sort();
    match mode.as_str() {
        "plant" => evaluate_plant(&pages, args.get(2).map_or(Ok(0.1), |rate| rate.parse())?),
        "versions" => evaluate_versions(&pages),
        "vixml" => write_vixml(&pages, &folder, Path::new(args.get(2).ok_or(usage)?))?,
        _ => return Err(usage.into()),
    }
    Ok(())
}

fn find_pages(folder: &Path, pages: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_pages(&path, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.push(path);
        }
    }
    Ok(())
}

fn tree(engine: &LayoutEngine, page: &Path) -> Option<BlockTree> {
    let html = decode_text(&std::fs::read(page).ok()?, None).into_owned();
    let layout = engine.layout(&html, "http://page.example/", &nothing);
    Some(BlockTree { version: page.display().to_string(), ..segment(&layout, &SegmentConfig::default()) })
}

fn evaluate_plant(pages: &[PathBuf], rate: f64) {
    let engine = LayoutEngine::new();
    let rates = PlantRates { elements: rate, blocks: rate };
    let (mut total, mut n_pages, mut n_exact) = (Recovery::default(), 0, 0);
    let mut worst: Vec<(f64, String)> = Vec::new();
    for (seed, page) in (0u64..).zip(pages) {
        let Some(before) = tree(&engine, page) else { continue };
        let (after, planted) = plant(&before, rates, seed);
        let delta = diff(&before, &after);
        assert_eq!(delta.apply(&before).as_ref(), Ok(&after), "{}", page.display());
        let found = measure_recovery(&before, &planted, &delta);
        if found.n_planted == 0 {
            continue;
        }
        n_pages += 1;
        n_exact += usize::from(found.n_right == found.n_planted && found.n_right == found.n_found);
        worst.push((found.precision().min(found.recall()), format!("{} {found:?}", page.display())));
        total.add(found);
    }
    worst.sort_by(|x, y| x.0.total_cmp(&y.0));
    println!("pages {n_pages}, exact {n_exact}, operations planted {}", total.n_planted);
    println!("precision {:.4} recall {:.4}", total.precision(), total.recall());
    for (score, page) in worst.iter().take(5) {
        println!("worst {score:.3} {page}");
    }
}

fn evaluate_versions(pages: &[PathBuf]) {
    let engine = LayoutEngine::new();
    let mut times: Vec<Duration> = Vec::new();
    let (mut n_operations, mut n_unchanged, mut n_whole) = (Vec::new(), 0, 0);
    let mut sizes: Vec<f64> = Vec::new();
    for versions in pages.chunk_by(|x, y| x.parent() == y.parent()) {
        let trees: Vec<BlockTree> = versions.iter().filter_map(|page| tree(&engine, page)).collect();
        for pair in trees.windows(2) {
            let began = Instant::now();
            let delta = diff(&pair[0], &pair[1]);
            let weight = importance(&delta, &ImportanceConfig::default()).get();
            times.push(began.elapsed());
            assert_eq!(delta.apply(&pair[0]).as_ref(), Ok(&pair[1]), "{}", pair[1].version);
            assert!((0.0..=1.0).contains(&weight));
            let (stored, whole) = (delta.to_xml(&pair[1]), vixml::write(&pair[1]));
            assert!(stored.len() <= whole.len(), "{}", pair[1].version);
            let read = Delta::from_xml(&stored).map(|delta| delta.apply(&pair[0]));
            assert_eq!(read, Ok(Ok(pair[1].clone())), "{}", pair[1].version);
            assert!(diff(&pair[1], &pair[1]).is_empty());
            n_whole += usize::from(stored.len() == whole.len());
            n_unchanged += usize::from(delta.is_empty());
            n_operations.push(delta.operations().count());
            sizes.push(stored.len() as f64 / whole.len() as f64);
        }
    }
    times.sort();
    n_operations.sort();
    sizes.sort_by(f64::total_cmp);
    let n = times.len();
    println!(
        "pairs {n}, every delta gives the version after and fits; {n_whole} stored as whole, {n_unchanged} without operations"
    );
    println!(
        "operations: median {}, p95 {}, most {}",
        n_operations[n / 2],
        n_operations[n * 95 / 100],
        n_operations[n - 1]
    );
    println!("delta / Vi-XML: median {:.3}, p95 {:.3}", sizes[n / 2], sizes[n * 95 / 100]);
    println!(
        "diff + importance: median {:?}, p95 {:?}, slowest {:?}",
        times[n / 2],
        times[n * 95 / 100],
        times[n - 1]
    );
    println!("pairs per second and core at the median: {:.0}", 1.0 / times[n / 2].as_secs_f64());
}

fn write_vixml(pages: &[PathBuf], folder: &Path, out: &Path) -> std::io::Result<()> {
    let engine = LayoutEngine::new();
    for page in pages {
        let Some(tree) = tree(&engine, page) else { continue };
        let path = out.join(page.strip_prefix(folder).unwrap_or(page)).with_extension("xml");
        std::fs::create_dir_all(path.parent().unwrap_or(out))?;
        std::fs::write(path, vixml::write(&tree))?;
    }
    Ok(())
}

fn time_pairs(list: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for line in std::fs::read_to_string(list)?.lines() {
        let (before, after) =
            line.split_once('\t').ok_or("a line of the list has no tab between two files")?;
        let (before, after) = (std::fs::read_to_string(before)?, std::fs::read_to_string(after)?);
        let began = Instant::now();
        let delta = diff(&vixml::read(&before)?, &vixml::read(&after)?);
        std::hint::black_box(importance(&delta, &ImportanceConfig::default()));
        println!("{}", began.elapsed().as_secs_f64());
    }
    Ok(())
}
