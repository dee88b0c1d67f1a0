//! Times each step of analysing sequences of versions, from bytes to importance, in CPU seconds, so that other work on
//! the machine hardly matters.
//!
//!     cargo run --release -p perennial-lab --example analysis_speed -- [--digests] FOLDER...
//!
//! Versions of one page share a folder and sort by name. Stylesheets and images are in the page's folder, by file name.
//! `--digests` prints one line per version to compare two builds: digests of layout, Vi-XML and Vi-Delta, and the
//! importance.

use std::path::{Path, PathBuf};
use std::time::Duration;

use perennial_core::page::importance::ImportanceConfig;
use perennial_core::page::observe::{VersionComparison, compare, has_advertising_words};
use perennial_core::page::segment::{SegmentConfig, fingerprint, segment, vixml};
use perennial_core::text::charset::decode_text;
use perennial_render::dom::Dom;
use perennial_render::engine::base_url;
use perennial_render::parsed::parsed_nodes;
use perennial_render::{CapturedResource, LayoutEngine};
use perennial_warc::sha1_label;

/// Time per step, in order of execution.
#[derive(Default)]
struct StepTimes(Vec<(&'static str, Duration)>);

impl StepTimes {
    fn time<T>(&mut self, step: &'static str, work: impl FnOnce() -> T) -> T {
        let began = processor_time();
        let done = work();
        let taken = processor_time().saturating_sub(began);
        match self.0.iter_mut().find(|(name, _)| *name == step) {
            Some((_, sum)) => *sum += taken,
            None => self.0.push((step, taken)),
        }
        done
    }
}

/// The CPU time of this thread, as counted by Linux.
fn processor_time() -> Duration {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = counted.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}

struct VersionWalk {
    engine: LayoutEngine,
    times: StepTimes,
    has_digests: bool,
    n_pages: usize,
    n_bytes: usize,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut folders: Vec<String> = std::env::args().skip(1).collect();
    let has_digests = folders.iter().any(|arg| arg == "--digests");
    folders.retain(|arg| arg != "--digests");
    let mut walk = VersionWalk {
        engine: LayoutEngine::new(),
        times: StepTimes::default(),
        has_digests,
        n_pages: 0,
        n_bytes: 0,
    };
    for folder in &folders {
        walk.folder(Path::new(folder))?;
    }
    let n = walk.n_pages.max(1) as f64;
    println!("{} versions of {:.0} kB", walk.n_pages, walk.n_bytes as f64 / 1e3 / n);
    for (step, time) in &walk.times.0 {
        println!("{step:>10} {:8.3} ms", time.as_secs_f64() * 1e3 / n);
    }
    let all: f64 = walk.times.0.iter().map(|(_, time)| time.as_secs_f64()).sum();
    println!("       all {:8.3} ms a version, {:.1} versions a second", all * 1e3 / n, n / all);
    Ok(())
}

impl VersionWalk {
    fn folder(&mut self, folder: &Path) -> std::io::Result<()> {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        entries.sort();
        let mut known = None;
        for path in entries {
            if path.is_dir() {
                self.folder(&path)?;
            } else if path.extension().is_some_and(|ending| ending == "html" || ending == "htm") {
                known = Some(self.version(&path, known)?);
            }
        }
        Ok(())
    }

    fn version(
        &mut self,
        path: &Path,
        before: Option<VersionComparison>,
    ) -> std::io::Result<VersionComparison> {
        let bytes = std::fs::read(path)?;
        let VersionWalk { engine, times, .. } = self;
        let html = times.time("decode", || decode_text(&bytes, None));
        let dom = times.time("parse", || Dom::parse(&html));
        let base = base_url(&dom, "http://page.example/");
        let nodes = times.time("structure", || {
            let nodes = parsed_nodes(&dom);
            std::hint::black_box(fingerprint(&nodes, 0));
            nodes
        });
        let lookup = |wanted: &str| beside(wanted, path);
        let boxes = times.time("layout", || engine.boxes(&dom, &base, &lookup));
        let layout = times.time("fill", || boxes.fill(&nodes, base.as_str()).unwrap_or_default());
        let tree = times.time("segment", || segment(&layout, &SegmentConfig::default()));
        let seen = times.time("observe", || {
            let before = before.as_ref().map(|before| (&before.tree, &before.noise));
            compare(before, tree, &ImportanceConfig::default(), &|element| {
                has_advertising_words(element.url())
            })
        });
        self.n_pages += 1;
        self.n_bytes += html.len();
        if self.has_digests {
            let tree = &seen.tree;
            let delta = seen.delta.as_ref().map(|delta| delta.to_xml(tree)).unwrap_or_default();
            let digests = [
                format!("{layout:?}").as_bytes(),
                vixml::write(tree).as_bytes(),
                delta.as_bytes(),
                &seen.noise.to_bytes(),
            ]
            .map(sha1_label);
            println!("{} {} {:?}", path.display(), digests.join(" "), seen.assessment.importance.get());
        }
        Ok(seen)
    }
}

fn beside(wanted: &str, page: &Path) -> Option<CapturedResource> {
    let name = wanted.split(['?', '#']).next()?.rsplit('/').next()?;
    let body = std::fs::read(page.parent()?.join(name)).ok()?;
    let content_type = if name.ends_with(".css") { "text/css" } else { "" };
    Some(CapturedResource { status: 200, content_type: content_type.to_string(), body })
}
