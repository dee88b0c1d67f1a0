//! Text of a page and what was known of it -> what this look taught.

use std::path::PathBuf;

use perennial_core::diff::Element;
use perennial_core::importance::ImportanceConfig;
use perennial_core::observe::{Known, Observation, observe};
use perennial_core::segment::{BlockTree, SegmentConfig, segment};
use perennial_render::dom::Dom;
use perennial_render::engine::base_url;
use perennial_render::parsed::parsed_nodes;
use perennial_render::{Limits, Lookup, Pool, WorkerCommand, structural};

use super::Filters;
use super::plans::{Asked, Offer, Plans, Structure};
use crate::archive::Archive;
use crate::settings::Seeds;

/// One look at a page: its text as captured.
pub struct Look<'a> {
    /// Address of the page.
    pub url: &'a str,
    /// Name of the version in its tree: the time of the capture.
    pub version: &'a str,
    /// The page, decoded.
    pub html: &'a str,
    /// Finds captured stylesheets and images.
    pub requisites: &'a Lookup<'a>,
}

/// Lays out, segments, compares and weighs. One for the whole process; any number of threads may ask it.
pub struct Analyst {
    pool: Pool,
    filters: Filters,
    /// Whose `pin` and `ignore` say how their pages are cut.
    seeds: Seeds,
    usual: SegmentConfig,
    importance: ImportanceConfig,
    plans: Plans,
}

impl Analyst {
    /// An analyst whose layout engine runs in processes of their own: this executable, started again.
    pub fn new(filters: Filters) -> anyhow::Result<Analyst> {
        Ok(Analyst::with_worker(std::env::current_exe()?, filters))
    }

    /// The same with the executable named: for programs that are not this one.
    pub fn with_worker(program: PathBuf, filters: Filters) -> Analyst {
        let command = WorkerCommand { program, arguments: vec!["render-worker".into()] };
        Analyst {
            pool: Pool::new(command, Limits::default()),
            filters,
            seeds: Seeds::default(),
            usual: SegmentConfig::default(),
            importance: ImportanceConfig::default(),
            plans: Plans::default(),
        }
    }

    /// An analyst who knows the archive's filter lists and settings.
    pub fn for_archive(archive: &Archive) -> anyhow::Result<Analyst> {
        let analyst = Analyst::new(Filters::load(Some(archive.root()))?)?;
        Ok(Analyst { seeds: archive.settings().seeds.clone(), ..analyst })
    }

    /// How a page is cut.
    fn config(&self, url: &str) -> &SegmentConfig {
        self.seeds.segment_config(url).unwrap_or(&self.usual)
    }

    /// The lists by which it knows advertisements.
    pub fn filters(&self) -> &Filters {
        &self.filters
    }

    /// What a reader sees. A page with the structure of an earlier one is not laid out again (module `plans`).
    pub fn tree(&self, look: &Look<'_>) -> BlockTree {
        let dom = Dom::parse(look.html);
        let (base, nodes) = (base_url(&dom, look.url), parsed_nodes(&dom));
        let structure = Structure::of(&base, &nodes);
        let config = self.config(look.url);
        let mut tree = match self.plans.offer(&structure, look.requisites) {
            Offer::Layout(layout) => segment(&layout, config),
            Offer::None => self.lay_out(look, &dom, &structure),
            Offer::Check(layout) => {
                let tree = self.lay_out(look, &dom, &structure);
                if tree.clone().without_boxes() != segment(&layout, config).without_boxes() {
                    self.plans.refuse(&structure);
                }
                tree
            }
        };
        tree.url = look.url.to_owned();
        tree.version = look.version.to_owned();
        tree
    }

    /// The same by the engine, whatever is known of the page's structure.
    pub fn tree_in_full(&self, look: &Look<'_>) -> BlockTree {
        let rendered = self.pool.layout(look.html, look.url, look.requisites);
        let mut tree = segment(&rendered.layout, self.config(look.url));
        tree.url = look.url.to_owned();
        tree.version = look.version.to_owned();
        tree
    }

    fn lay_out(&self, look: &Look<'_>, dom: &Dom, structure: &Structure<'_>) -> BlockTree {
        let asked = Asked::default();
        let find = |url: &str| asked.find(look.requisites, url);
        let boxes = self.pool.boxes(dom, structure.base, &find);
        match boxes.ok().and_then(|boxes| Some((structure.fill(&boxes)?, boxes))) {
            Some((layout, boxes)) => {
                self.plans.keep(structure, boxes, asked);
                segment(&layout, self.config(look.url))
            }
            None => segment(&structural::layout(dom, look.url), self.config(look.url)),
        }
    }

    /// What a look taught, against what was known.
    pub fn observe(&self, known: Option<&Known>, look: &Look<'_>) -> Observation {
        let tree = self.tree(look);
        self.compare(known, tree)
    }

    /// The same for a tree that is there already.
    pub fn compare(&self, known: Option<&Known>, tree: BlockTree) -> Observation {
        let page_url = tree.url.clone();
        let is_advertisement = |element: &Element| self.filters.is_advertisement(element, &page_url);
        observe(known, tree, &self.importance, &is_advertisement)
    }

    /// Pages that were laid out by the engine; the others had the structure of an earlier one.
    pub fn n_layouts(&self) -> u64 {
        self.pool.n_pages()
    }

    /// Pages that the engine could not lay out and that got the structural layout.
    pub fn n_fallbacks(&self) -> u64 {
        self.pool.n_fallbacks()
    }
}
