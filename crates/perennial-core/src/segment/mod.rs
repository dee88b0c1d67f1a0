//! A rendered page -> the blocks that a reader sees (P-VISUAL 4: extended VIPS).
//!
//! `facts` reads the layout, `cut` takes visual blocks and weighs the separators between them, `construct`
//! merges across the light ones, `content` fills the leaves, `weigh` gives each its importance and role.

mod block;
mod construct;
mod content;
mod cut;
mod facts;
mod id;
mod purpose;
pub mod vixml;
mod weigh;

pub use block::{Block, BlockRole, BlockTree, Image, Link, NodeId, Text, Walk};
pub use cut::Cues;
pub use id::IgnoreRules;

use crate::layout::{Layout, Rect};
use construct::Region;
use content::Addresses;
use cut::VisualBlock;
use facts::{Facts, Page};
use purpose::Purpose;

/// How finely to cut, and what IDs overlook.
#[derive(Clone, PartialEq, Debug)]
pub struct SegmentConfig {
    /// Permitted degree of coherence, 1 (coarse) to 10 (fine): blocks less coherent than this are divided.
    pub coherence: u8,
    /// What of an address IDs overlook.
    pub ignore: IgnoreRules,
    /// Weights of the cues.
    pub cues: Cues,
}

impl Default for SegmentConfig {
    fn default() -> SegmentConfig {
        SegmentConfig { coherence: 6, ignore: IgnoreRules::default(), cues: Cues::default() }
    }
}

/// Cuts a page into blocks. Any layout gives a tree: one without boxes gives one block, one without content
/// none. The version's name is the caller's to set.
pub fn segment(layout: &Layout, config: &SegmentConfig) -> BlockTree {
    let page = Page::new(layout);
    let addresses = Addresses::new(&layout.base_url, &config.ignore);
    let mut leaves = Vec::new();
    let mut blocks = if page.is_usable() {
        let mut visual = cut::visual_blocks(&page, &config.cues);
        let regions = construct::regions(&mut visual, config.coherence);
        Planting { page: &page, addresses: &addresses, visual: &visual, leaves: &mut leaves }.plant(&regions)
    } else {
        single(&page, &addresses, &mut leaves)
    };
    weigh::weigh(&mut blocks, &leaves);
    let mut tree = BlockTree {
        url: layout.base_url.clone(),
        version: String::new(),
        engine: layout.engine.clone(),
        blocks,
    };
    tree.seal();
    tree
}

/// What a leaf's weight is computed from, in the order of the leaves.
struct LeafFacts {
    facts: Facts,
    purpose: Purpose,
}

/// A page with no usable layout: everything in one block.
fn single(page: &Page, addresses: &Addresses, leaves: &mut Vec<LeafFacts>) -> Vec<Block> {
    let Some(root) = page.facts.first() else { return Vec::new() };
    let mut leaf = content::leaf(page, addresses, 0, page.facts.len() as u32);
    if is_empty(&leaf) {
        return Vec::new();
    }
    leaf.rect = Rect { x: 0.0, y: 0.0, w: page.layout.width, h: page.layout.height };
    leaves.push(LeafFacts { facts: root.clone(), purpose: Purpose::Unknown });
    vec![leaf]
}

fn is_empty(leaf: &Block) -> bool {
    leaf.links.is_empty() && leaf.images.is_empty() && leaf.texts.is_empty()
}

/// Regions on their way to become blocks.
struct Planting<'a> {
    page: &'a Page<'a>,
    addresses: &'a Addresses<'a>,
    visual: &'a [VisualBlock],
    leaves: &'a mut Vec<LeafFacts>,
}

impl Planting<'_> {
    /// Regions that turn out empty (fields without words) are left out, an inner block with one child is that child.
    fn plant(&mut self, regions: &[Region]) -> Vec<Block> {
        regions.iter().filter_map(|region| self.block(region)).collect()
    }

    fn block(&mut self, region: &Region) -> Option<Block> {
        let mut block = if region.children.is_empty() {
            self.leaf(region)?
        } else {
            let mut children = self.plant(&region.children);
            if children.len() <= 1 {
                return children.pop();
            }
            Block::inner(children)
        };
        block.doc = region.doc;
        Some(block)
    }

    fn leaf(&mut self, region: &Region) -> Option<Block> {
        let start = if region.first == 0 { 0 } else { self.visual[region.first].start };
        let end = self.visual.get(region.end).map_or(self.page.facts.len() as u32, |next| next.start);
        let mut leaf = content::leaf(self.page, self.addresses, start, end);
        if is_empty(&leaf) {
            return None;
        }
        let mut facts = Facts::default();
        for visual in &self.visual[region.first..region.end] {
            facts.absorb_later(&visual.facts);
        }
        leaf.rect = facts.rect;
        self.leaves.push(LeafFacts { facts, purpose: main_purpose(&self.visual[region.first..region.end]) });
        Some(leaf)
    }
}

/// The purpose of most of the region's content.
fn main_purpose(visual: &[VisualBlock]) -> Purpose {
    let mut masses: Vec<(Purpose, f32)> = Vec::new();
    for block in visual {
        match masses.iter_mut().find(|(purpose, _)| *purpose == block.purpose) {
            Some((_, mass)) => *mass += block.facts.mass,
            None => masses.push((block.purpose, block.facts.mass)),
        }
    }
    masses.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(Purpose::Unknown, |(purpose, _)| purpose)
}

#[cfg(test)]
mod sketch;
#[cfg(test)]
mod tests;
