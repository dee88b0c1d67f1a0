//! A rendered page -> the blocks that a reader sees, by extended VIPS (P-VISUAL 4; docs/papers.md, Blocks and Vi-XML).
//!
//! `facts` reads the layout, `cut` takes visual blocks and weighs the separators between them, `construct`
//! merges across the light ones, `content` fills the leaves, `weigh` gives each its importance and role. `items` finds the
//! entries of the page's lists.
//!
//! | file | what becomes what |
//! |---|---|
//! | `facts` | a layout -> facts about each subtree: visible text, box, font, background |
//! | `purpose` | tag, `role`, words in `class` and `id` -> what an element is for |
//! | `cut` | facts -> visual blocks and the separators between them |
//! | `construct` | visual blocks and separators -> nested regions |
//! | `content` | a region -> its links, images and texts |
//! | `weigh` | leaves -> importance and role |
//! | `item`, `items`, `teasers` | a page -> the entries of its lists, and how much of a part they are |
//! | `block`, `id` | the resulting tree, and the hashes at which a diff can stop |
//! | `selector` | CSS selectors of pinned and ignored parts |
//! | `structure` | the layout of an earlier version -> one for an unchanged structure, without the engine |
//! | [`vixml`] | a tree <-> Vi-XML |

mod block;
mod construct;
mod content;
mod css;
mod cut;
mod facts;
mod id;
mod item;
mod items;
mod purpose;
mod selector;
mod structure;
mod teasers;
pub mod vixml;
mod weigh;

pub use block::{
    Block, BlockRef, BlockRole, BlockTree, BlockWalk, ElementPositions, Image, LeafPiece, Link, NodeId, Text,
    TextPosition,
};
pub use cut::Cues;
use id::IdHasher;
pub use id::IgnoredParameters;
pub use item::{
    ItemList, ItemPlace, ListItem, MAX_ITEMS, MAX_PLACES, MAX_TEASER_BYTES, MAX_TITLE_BYTES, item_key,
};
pub use selector::{Pin, Selector, SelectorError};
pub use structure::{ReusableLayout, fingerprint};
pub use weigh::N_FEATURES;

use crate::page::layout::{Layout, Rect};
use construct::Region;
use content::UrlResolver;
use cut::VisualBlock;
use facts::{Facts, PageFacts};
use purpose::Purpose;
use teasers::Teasers;

/// One more each time that this module sees other blocks, words or importances in the same layout: an archive that an earlier
/// program wrote must not take that for a change of the page.
const REVISION: u32 = 3;

/// How finely a page is cut, and how its blocks are weighed and hashed.
#[derive(Clone, PartialEq, Debug)]
pub struct SegmentConfig {
    /// Permitted degree of coherence, 1 (coarse) to 10 (fine): blocks less coherent than this are divided.
    pub coherence: u8,
    /// Parameters of addresses that IDs leave out.
    pub ignore: IgnoredParameters,
    /// Weights of the cues.
    pub cues: Cues,
    /// Parts of the site whose importance the user fixes. The first pin that matches decides.
    pub pins: Vec<Pin>,
    /// Parts of the site that are left out of the tree: what changes in them is no change.
    pub ignored: Vec<Selector>,
}

impl Default for SegmentConfig {
    fn default() -> SegmentConfig {
        SegmentConfig {
            coherence: 6,
            ignore: IgnoredParameters::default(),
            cues: Cues::default(),
            pins: Vec::new(),
            ignored: Vec::new(),
        }
    }
}

impl SegmentConfig {
    /// The name of trees that are cut in this way from layouts of an engine. A change of the settings or of this module gives
    /// another name, so that a tree cut as before is not compared with one cut as after.
    fn engine(&self, engine: &str) -> String {
        if *self == SegmentConfig::default() {
            return format!("{engine} cut/{REVISION}");
        }
        // Every field takes part, also one that is yet to come.
        let NodeId(hash) = IdHasher::new(b'C').part(&format!("{self:?}")).finish();
        format!("{engine} cut/{REVISION}-{:08x}", hash >> 32)
    }
}

/// Cuts a page into blocks. Any layout gives a tree: one without boxes gives one block, one without content
/// none. The version's name is the caller's to set.
pub fn segment(layout: &Layout, config: &SegmentConfig) -> BlockTree {
    segment_with_lost_words(layout, config).0
}

/// The same, with the number of words that the page shows by its styles and that no block holds, because the engine gave them no
/// place: a defect of the layout that whoever relies on the blocks should know of.
pub fn segment_with_lost_words(layout: &Layout, config: &SegmentConfig) -> (BlockTree, u32) {
    let page = PageFacts::new(layout, &config.ignored);
    let (list, teasers) = items::find_items(&page, &layout.base_url);
    let (mut blocks, leaves) = cut_and_fill(&page, config, (&list, &teasers));
    weigh::weigh(&mut blocks, &leaves);
    let (url, engine) = (layout.base_url.clone(), config.engine(&layout.engine));
    let list = Some(list);
    let mut tree = BlockTree { url, version: String::new(), engine, blocks, list };
    tree.seal();
    // A page without any box is one block with all of its words.
    let n_lost_words = if page.is_usable() { page.n_lost_words() } else { 0 };
    (tree, n_lost_words)
}

/// The features from which the importance of each leaf is computed, in the order of [`BlockTree::leaves`]. The weights
/// are fitted with them.
pub fn leaf_features(layout: &Layout, config: &SegmentConfig) -> Vec<[f32; N_FEATURES]> {
    let page = PageFacts::new(layout, &config.ignored);
    let (list, teasers) = items::find_items(&page, &layout.base_url);
    weigh::features(&cut_and_fill(&page, config, (&list, &teasers)).1)
}

/// Words of paragraphs that stand together, outside the items, from which a page has an article of its own.
const MIN_BODY_WORDS: u32 = 100;

/// Words up to which something without a sentence to read is the head of an article or stands around it. More are a list.
const MOST_WORDS_BESIDE: u32 = 100;

/// The blocks with their content, and what is known of each leaf.
fn cut_and_fill(
    page: &PageFacts,
    config: &SegmentConfig,
    (list, teasers): (&ItemList, &Teasers),
) -> (Vec<Block>, Vec<LeafFacts>) {
    // Beside an article the entries of lists lead to other pages. On other pages they are what is read.
    let teasers = Some(teasers).filter(|_| list.n_body_words >= MIN_BODY_WORDS && !list.is_listing());
    let addresses = UrlResolver::new(&page.layout.base_url, &config.ignore);
    let pinned = selector::pinned_nodes(page, &config.pins);
    let visual = Vec::new();
    let mut builder = BlockBuilder {
        page,
        addresses: &addresses,
        pins: &config.pins,
        pinned,
        visual,
        leaves: Vec::new(),
        teasers,
    };
    let blocks = if page.is_usable() {
        builder.visual = cut::visual_blocks(page, &config.cues, teasers);
        let regions = construct::regions(&mut builder.visual, config.coherence, teasers.is_some());
        builder.build_all(&regions)
    } else {
        builder.single()
    };
    (blocks, builder.leaves)
}

/// What a leaf's weight is computed from.
struct LeafFacts {
    facts: Facts,
    purpose: Purpose,
    /// Number of the pin that matches most of it, and its importance.
    pin: Option<(usize, f32)>,
    /// Whether most of it leads to other pages, beside an article.
    is_teasers: bool,
    /// Whether the page has an article and this is nothing to read on: its head, buttons, captions.
    is_beside_prose: bool,
}

fn is_empty(leaf: &Block) -> bool {
    leaf.links.is_empty() && leaf.images.is_empty() && leaf.texts.is_empty()
}

/// What is needed to turn regions into blocks.
struct BlockBuilder<'a> {
    page: &'a PageFacts<'a>,
    addresses: &'a UrlResolver<'a>,
    pins: &'a [Pin],
    /// The pin of each node; empty when there are no pins.
    pinned: Vec<Option<usize>>,
    visual: Vec<VisualBlock>,
    leaves: Vec<LeafFacts>,
    /// Where the entries of lists stand beside an article.
    teasers: Option<&'a Teasers>,
}

impl BlockBuilder<'_> {
    /// Puts everything into one block, for a page without a usable layout.
    fn single(&mut self) -> Vec<Block> {
        let n_nodes = self.page.facts.len() as u32;
        let mut leaf = content::leaf(self.page, self.addresses, 0, n_nodes);
        if is_empty(&leaf) {
            return Vec::new();
        }
        leaf.rect = Rect { x: 0.0, y: 0.0, w: self.page.layout.width, h: self.page.layout.height };
        let facts = self.page.facts.first().cloned().unwrap_or_default();
        let pin = self.pin(0, n_nodes);
        let (purpose, is_teasers, is_beside_prose) = (Purpose::Unknown, false, false);
        self.leaves.push(LeafFacts { facts, purpose, pin, is_teasers, is_beside_prose });
        vec![leaf]
    }

    /// Regions without content (fields without words) are left out. An inner block with one child is replaced by the child.
    fn build_all(&mut self, regions: &[Region]) -> Vec<Block> {
        regions.iter().filter_map(|region| self.build(region)).collect()
    }

    fn build(&mut self, region: &Region) -> Option<Block> {
        let mut block = if region.children.is_empty() {
            self.leaf(region)?
        } else {
            let mut children = self.build_all(&region.children);
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
        let visual = &self.visual[region.first..region.end];
        let mut facts = Facts::default();
        visual.iter().for_each(|visual| facts.absorb_later(&visual.facts));
        leaf.rect = facts.rect;
        let purpose = main_purpose(visual);
        let is_teasers = self.teasers.is_some_and(|teasers| teasers.share(start, end) > 0.6);
        // However many pictures a gallery has.
        let n_beside = visual.iter().filter(|visual| !visual.is_caption).map(|visual| visual.facts.n_words);
        let is_beside_prose = self.teasers.is_some()
            && n_beside.sum::<u32>() <= MOST_WORDS_BESIDE
            && !visual.iter().any(VisualBlock::is_prose);
        let pin = self.pin(start, end);
        self.leaves.push(LeafFacts { facts, purpose, pin, is_teasers, is_beside_prose });
        Some(leaf)
    }

    /// The pin that matches more than half of what is visible between two nodes.
    fn pin(&self, start: u32, end: u32) -> Option<(usize, f32)> {
        let pinned = self.pinned.get(start as usize..end as usize)?;
        let mut n_letters = vec![0usize; self.pins.len()];
        let mut n_all = 0;
        for (pin, index) in pinned.iter().zip(start as usize..) {
            // An image weighs as much as a line of text.
            let node = &self.page.layout.nodes[index];
            let own =
                if node.is_text() { node.text.trim().len() } else { 80 * usize::from(facts::is_image(node)) };
            let own = own * usize::from(self.page.is_seen[index]);
            n_all += own;
            if let Some(pin) = pin {
                n_letters[*pin] += own;
            }
        }
        let pin = n_letters.iter().position(|n| 2 * n > n_all)?;
        Some((pin, self.pins[pin].importance.clamp(0.0, 1.0)))
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
mod tests;
