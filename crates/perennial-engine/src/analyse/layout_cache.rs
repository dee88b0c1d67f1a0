//! Reuses the layout of an earlier capture for a page with the same structure, without running the engine (P-VISUAL
//! 7.1, 8; docs/papers.md, Reuse of structure).
//!
//! Most changes put different words into the same tags and styles. Then the boxes come from the last layout with this
//! structure, and only the content is read. Blocks, IDs and importance are the same as after a full layout. This is
//! verified: every 64th reuse is compared with a full layout. If they differ, the structure is never reused again.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use perennial_core::page::layout::{Boxes, Layout, ParsedNode};
use perennial_core::page::segment::{NodeId, ReusableLayout, fingerprint};
use perennial_render::resource::image_size;
use perennial_render::{CapturedResource, SubresourceLookup};
use url::Url;

/// Most nodes in all cached layouts: some tens of megabytes.
const MAX_NODES: usize = 200_000;
/// Larger layouts are not cached, because they would evict those of all other pages.
const MAX_NODES_OF_ONE: usize = MAX_NODES / 10;
/// Every n-th reuse is compared with a full layout.
const CHECK_EVERY: u32 = 64;

/// Layouts by structure, shared by all analysing threads.
#[derive(Default)]
pub(super) struct LayoutCache {
    kept: Mutex<CachedPlans>,
}

#[derive(Default)]
struct CachedPlans {
    by_key: HashMap<u64, CachedPlan>,
    n_nodes: usize,
    /// Clock for least-recently-used eviction.
    n_uses: u64,
}

/// URLs of subresources and hashes of their content.
type SubresourceHashes = Vec<(String, u64)>;

struct CachedPlan {
    /// `None`: this structure must not be reused.
    plan: Option<Arc<ReusableLayout>>,
    /// Stylesheets, and images whose size affects the layout.
    subresources: Arc<SubresourceHashes>,
    n_reused: u32,
    last_use: u64,
}

/// A parsed page before its layout.
pub(super) struct Structure<'a> {
    pub(super) base: &'a Url,
    nodes: &'a [ParsedNode<'a>],
    fingerprint: NodeId,
    key: u64,
}

/// Which part of an earlier layout can be reused.
pub(super) enum Reuse<'a> {
    /// None: the engine lays the page out.
    None,
    /// Reuse this layout.
    Layout(Layout<'a>),
    /// Compare this layout with a full one.
    Check(Layout<'a>),
}

impl<'a> Structure<'a> {
    /// Reads the structure. Pages of one folder may share a layout, because relative URLs resolve to the same
    /// subresources.
    pub(super) fn new(base: &'a Url, nodes: &'a [ParsedNode<'a>]) -> Structure<'a> {
        let mut hasher = DefaultHasher::new();
        base.join(".").ok().as_ref().map(Url::as_str).hash(&mut hasher);
        let fingerprint = fingerprint(nodes, 0);
        fingerprint.0.hash(&mut hasher);
        Structure { base, nodes, fingerprint, key: hasher.finish() }
    }

    /// Places the boxes around the text of this page.
    pub(super) fn fill(&self, boxes: &Boxes) -> Option<Layout<'a>> {
        boxes.fill(self.nodes, self.base.as_str())
    }

    /// Images with a size in the HTML. Their content does not affect the layout.
    fn sized_images(&self) -> HashSet<String> {
        let attribute = |node: &ParsedNode<'_>, wanted: &str| {
            node.attributes.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_string())
        };
        let images = self.nodes.iter().filter(|node| node.tag == "img");
        let sized = images.filter(|node| attribute(node, "width").and(attribute(node, "height")).is_some());
        sized.filter_map(|node| Some(self.base.join(&attribute(node, "src")?).ok()?.into())).collect()
    }
}

/// The subresources that a layout requested.
#[derive(Default)]
pub(super) struct LookupLog(Mutex<SubresourceHashes>);

impl LookupLog {
    /// Looks a subresource up and records it.
    pub(super) fn find(&self, lookup: &SubresourceLookup<'_>, url: &str) -> Option<CapturedResource> {
        let found = lookup(url);
        let noted = (url.to_owned(), content_hash(found.as_ref()));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
        found
    }
}

fn content_hash(captured: Option<&CapturedResource>) -> u64 {
    let Some(captured) = captured else { return 0 };
    let mut hasher = DefaultHasher::new();
    captured.status.hash(&mut hasher);
    match image_size(&captured.body) {
        Some(size) => size.hash(&mut hasher),
        None => captured.body.hash(&mut hasher),
    }
    hasher.finish()
}

impl LayoutCache {
    /// Places the content of this page into the last layout with the same structure.
    pub(super) fn reuse<'a>(&self, structure: &Structure<'a>, lookup: &SubresourceLookup<'_>) -> Reuse<'a> {
        let Some((plan, subresources, n_reused)) = self.find(structure.key) else { return Reuse::None };
        if subresources.iter().any(|(url, hash)| content_hash(lookup(url).as_ref()) != *hash) {
            return Reuse::None;
        }
        let Some(layout) = plan.fill(structure.nodes, structure.base.as_str()) else { return Reuse::None };
        match n_reused % CHECK_EVERY {
            0 => Reuse::Check(layout),
            _ => Reuse::Layout(layout),
        }
    }

    fn find(&self, key: u64) -> Option<(Arc<ReusableLayout>, Arc<SubresourceHashes>, u32)> {
        let mut kept = self.lock();
        kept.n_uses += 1;
        let n_uses = kept.n_uses;
        let entry = kept.by_key.get_mut(&key)?;
        entry.last_use = n_uses;
        entry.n_reused = entry.n_reused.wrapping_add(1);
        Some((entry.plan.clone()?, entry.subresources.clone(), entry.n_reused))
    }

    /// Caches the engine's boxes for the next page with this structure.
    pub(super) fn insert(&self, structure: &Structure<'_>, boxes: Boxes, lookups: LookupLog) {
        if boxes.nodes.len() > MAX_NODES_OF_ONE {
            return;
        }
        let sized = structure.sized_images();
        let mut subresources = lookups.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        subresources.retain(|(url, _)| !sized.contains(url));
        self.put(structure.key, Some(ReusableLayout::new(structure.fingerprint, boxes)), subresources);
    }

    /// Marks a structure as not reusable, because a reused layout gave different blocks than a full one.
    pub(super) fn refuse(&self, structure: &Structure<'_>) {
        self.put(structure.key, None, Vec::new());
    }

    fn put(&self, key: u64, plan: Option<ReusableLayout>, subresources: SubresourceHashes) {
        let mut kept = self.lock();
        kept.n_uses += 1;
        kept.n_nodes += plan.as_ref().map_or(1, ReusableLayout::n_nodes);
        let n_reused = kept.by_key.get(&key).map_or(0, |entry| entry.n_reused);
        let is_refused = kept.by_key.get(&key).is_some_and(|entry| entry.plan.is_none());
        let plan = plan.filter(|_| !is_refused).map(Arc::new);
        let entry =
            CachedPlan { plan, subresources: Arc::new(subresources), n_reused, last_use: kept.n_uses };
        if let Some(before) = kept.by_key.insert(key, entry) {
            kept.n_nodes -= before.plan.map_or(1, |plan| plan.n_nodes());
        }
        kept.make_room();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, CachedPlans> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedPlans {
    /// Evicts the less recently used half.
    fn make_room(&mut self) {
        if self.n_nodes <= MAX_NODES {
            return;
        }
        let mut uses: Vec<u64> = self.by_key.values().map(|entry| entry.last_use).collect();
        uses.sort_unstable();
        let from = uses[uses.len() / 2];
        self.by_key.retain(|_, entry| entry.last_use > from);
        self.n_nodes = self.by_key.values().map(|entry| entry.plan.as_ref().map_or(1, |p| p.n_nodes())).sum();
    }
}
