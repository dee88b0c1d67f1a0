//! Lays out, segments and compares pages.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use perennial_core::page::diff::Element;
use perennial_core::page::importance::ImportanceConfig;
use perennial_core::page::noise::NoiseHistory;
use perennial_core::page::observe::{VersionComparison, compare};
use perennial_core::page::segment::{BlockTree, SegmentConfig, segment, segment_with_lost_words};
use perennial_render::dom::Dom;
use perennial_render::engine::base_url;
use perennial_render::parsed::parsed_nodes;
use perennial_render::{PageLimits, SubresourceLookup, WorkerCommand, WorkerPool, structural};

use super::AdFilters;
use super::layout_cache::{LayoutCache, LookupLog, Reuse, Structure};
use perennial_archive::Archive;
use perennial_archive::links::LARGE_TEXT_BYTES;
use perennial_archive::settings::Seeds;

/// The text of a captured page, with access to its subresources.
pub struct PageText<'a> {
    pub url: &'a str,
    /// Name of the version in its tree: the capture time.
    pub version: &'a str,
    pub html: &'a str,
    pub subresources: &'a SubresourceLookup<'a>,
}

/// Lays out pages, segments and compares them, and computes importance. All threads of a process share one.
pub struct Analyst {
    pool: WorkerPool,
    /// Workers for large pages. A crawl starts them from a low-priority thread, so they run at low priority too.
    large_pool: WorkerPool,
    filters: AdFilters,
    /// Their `pin` and `ignore` settings change the segmentation.
    seeds: Seeds,
    usual: SegmentConfig,
    importance: ImportanceConfig,
    layouts: LayoutCache,
    /// Visible words that are in no block.
    n_lost_words: AtomicU64,
}

impl Analyst {
    /// Runs the layout engine in worker processes of this executable.
    pub fn new(filters: AdFilters) -> anyhow::Result<Analyst> {
        Ok(Analyst::with_worker(std::env::current_exe()?, filters))
    }

    /// Runs the layout engine in worker processes of a different executable. Examples and benches use it.
    pub fn with_worker(program: PathBuf, filters: AdFilters) -> Analyst {
        let command = WorkerCommand { program, arguments: vec!["render-worker".into()] };
        Analyst {
            pool: WorkerPool::new(command.clone(), PageLimits::default()),
            large_pool: WorkerPool::new(command, PageLimits::default()),
            filters,
            seeds: Seeds::default(),
            usual: SegmentConfig::default(),
            importance: ImportanceConfig::default(),
            layouts: LayoutCache::default(),
            n_lost_words: AtomicU64::new(0),
        }
    }

    pub fn for_archive(archive: &Archive) -> anyhow::Result<Analyst> {
        let analyst = Analyst::new(AdFilters::load(Some(archive.root()))?)?;
        Ok(Analyst { seeds: archive.settings().seeds.clone(), ..analyst })
    }

    /// A warning if this machine cannot confine the layout workers.
    pub fn confinement_warning(&self) -> Option<String> {
        let gaps = self.pool.command().confinement_gaps().unwrap_or_else(|error| vec![error.to_string()]);
        let hint = "see `perennial doctor`";
        (!gaps.is_empty())
            .then(|| format!("layout workers are not fully confined here ({}): {hint}", gaps.join("; ")))
    }

    fn config(&self, url: &str) -> &SegmentConfig {
        self.seeds.segment_config(url).unwrap_or(&self.usual)
    }

    pub fn filters(&self) -> &AdFilters {
        &self.filters
    }

    fn pool_for(&self, page: &PageText<'_>) -> &WorkerPool {
        if page.html.len() as u64 > LARGE_TEXT_BYTES { &self.large_pool } else { &self.pool }
    }

    /// The blocks that a reader sees. If an earlier page had the same structure, its layout is reused (module
    /// `layout_cache`).
    pub fn tree(&self, page: &PageText<'_>) -> BlockTree {
        let dom = Dom::parse(page.html);
        let (base, nodes) = (base_url(&dom, page.url), parsed_nodes(&dom));
        let structure = Structure::new(&base, &nodes);
        let config = self.config(page.url);
        let mut tree = match self.layouts.reuse(&structure, page.subresources) {
            Reuse::Layout(layout) => segment(&layout, config),
            Reuse::None => self.lay_out(page, &dom, &structure),
            Reuse::Check(layout) => {
                let tree = self.lay_out(page, &dom, &structure);
                if tree.clone().without_boxes() != segment(&layout, config).without_boxes() {
                    self.layouts.refuse(&structure);
                }
                tree
            }
        };
        tree.url = page.url.to_owned();
        tree.version = page.version.to_owned();
        tree
    }

    /// Like [`Analyst::tree`], but never reuses a layout.
    pub fn tree_in_full(&self, page: &PageText<'_>) -> BlockTree {
        let rendered = self.pool_for(page).layout(page.html, page.url, page.subresources);
        let mut tree = segment(&rendered.layout, self.config(page.url));
        tree.url = page.url.to_owned();
        tree.version = page.version.to_owned();
        tree
    }

    fn lay_out(&self, page: &PageText<'_>, dom: &Dom, structure: &Structure<'_>) -> BlockTree {
        let lookups = LookupLog::default();
        let find = |url: &str| lookups.find(page.subresources, url);
        let boxes = self.pool_for(page).boxes(dom, structure.base, &find);
        match boxes.ok().and_then(|boxes| Some((structure.fill(&boxes)?, boxes))) {
            Some((layout, boxes)) => {
                self.layouts.insert(structure, boxes, lookups);
                let (tree, n_lost_words) = segment_with_lost_words(&layout, self.config(page.url));
                self.n_lost_words.fetch_add(u64::from(n_lost_words), Ordering::Relaxed);
                tree
            }
            None => segment(&structural::layout(dom, page.url), self.config(page.url)),
        }
    }

    /// Compares a tree with its predecessor, given the page's noise history.
    pub fn compare(&self, before: Option<(&BlockTree, &NoiseHistory)>, tree: BlockTree) -> VersionComparison {
        let page_url = tree.url.clone();
        let is_advertisement = |element: &Element| self.filters.is_advertisement(element, &page_url);
        compare(before, tree, &self.importance, &is_advertisement)
    }

    /// Number of pages that the engine laid out. The others reused a layout.
    pub fn n_layouts(&self) -> u64 {
        self.pool.n_pages() + self.large_pool.n_pages()
    }

    /// Number of visible words of laid-out pages that no block contains, because the engine gave them no position.
    /// Resets the count.
    pub fn take_lost_words(&self) -> u64 {
        self.n_lost_words.swap(0, Ordering::Relaxed)
    }

    /// Number of pages that got the structural layout, because the engine failed.
    pub fn n_fallbacks(&self) -> u64 {
        self.pool.n_fallbacks() + self.large_pool.n_fallbacks()
    }
}
