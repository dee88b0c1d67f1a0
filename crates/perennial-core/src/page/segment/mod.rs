//! A rendered page -> the blocks that a reader sees, by an extended VIPS (P-VISUAL 4; docs/papers.md, Blocks and
//! Vi-XML).
//!
//! `facts` reads the layout. `cut` finds visual blocks and weighs the separators between them. `construct` merges
//! blocks across light separators. `content` fills the leaves, and `weigh` computes their importance and role. `items`
//! finds the entries of lists.
//!
//! | file | input and output |
//! |---|---|
//! | `facts` | a layout -> facts about each subtree: visible text, box, font, background |
//! | `purpose` | tag, `role`, words in `class` and `id` -> the purpose of an element |
//! | `thread` | facts -> lists of comments, by their structure |
//! | `cut` | facts -> visual blocks and the separators between them |
//! | `construct` | visual blocks and separators -> nested regions |
//! | `content` | a region -> its links, images and texts |
//! | `weigh` | leaves -> importance and role |
//! | `item`, `items`, `teasers` | a page -> the entries of its lists, and their share of a part |
//! | `block`, `id` | the resulting tree, and the hashes that let a diff skip equal subtrees |
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
mod thread;
pub mod vixml;
mod weigh;

pub use block::{
    Block, BlockRef, BlockRole, BlockTree, BlockWalk, ElementPositions, Image, LeafPiece, Link, NodeId, Text,
    TextPosition,
};
pub use cut::Cues;
use id::IdHasher;
pub use id::IgnoredParameters;
pub(crate) use item::names_article;
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

/// Increase it whenever this module computes different blocks, words or importances from the same layout. Otherwise an
/// archive written by an earlier program would report a change of the page.
const REVISION: u32 = 5;

/// How finely a page is cut, and how blocks are weighed and hashed. The `Debug` output of this struct and of its
/// fields is hashed into the engine name. A renamed field therefore makes all stored trees with such settings
/// incomparable.
#[derive(Clone, PartialEq, Debug)]
pub struct SegmentConfig {
    /// Permitted degree of coherence, 1 (coarse) to 10 (fine). Less coherent blocks are divided.
    pub coherence: u8,
    /// URL parameters that IDs leave out.
    pub ignore: IgnoredParameters,
    /// Weights of the separator cues.
    pub cues: Cues,
    /// Parts of the site whose importance the user sets. The first matching pin decides.
    pub pins: Vec<Pin>,
    /// Parts of the site that are left out of the tree. Changes inside them are not reported.
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
    /// The engine name of trees that are cut with these settings. Different settings or a new revision give a
    /// different name, because trees cut in different ways must not be compared.
    fn engine(&self, engine: &str) -> String {
        if *self == SegmentConfig::default() {
            return format!("{engine} cut/{REVISION}");
        }
        // The hash covers every field, including future ones.
        let NodeId(hash) = IdHasher::new(b'C').part(&format!("{self:?}")).finish();
        format!("{engine} cut/{REVISION}-{:08x}", hash >> 32)
    }
}

/// Cuts a page into blocks. A layout without boxes gives one block; one without content gives none. The caller sets
/// the version.
pub fn segment(layout: &Layout, config: &SegmentConfig) -> BlockTree {
    segment_with_lost_words(layout, config).0
}

/// Like [`segment`], but also returns the number of visible words that no block contains because the engine gave them
/// no box. Callers should report such a defect of the layout.
pub fn segment_with_lost_words(layout: &Layout, config: &SegmentConfig) -> (BlockTree, u32) {
    let page = PageFacts::new(layout, &config.ignored);
    let (list, teasers) = items::find_items(&page, &layout.base_url);
    let (mut blocks, leaves) = cut_and_fill(&page, config, (&list, &teasers));
    weigh::weigh(&mut blocks, &leaves);
    let (url, engine) = (layout.base_url.clone(), config.engine(&layout.engine));
    let list = Some(list);
    let mut tree = BlockTree { url, version: String::new(), engine, blocks, list };
    tree.seal();
    // A page without boxes is one block with all of its words.
    let n_lost_words = if page.is_usable() { page.n_lost_words() } else { 0 };
    (tree, n_lost_words)
}

/// The features of each leaf from which its importance is computed, in the order of [`BlockTree::leaves`]. They are
/// used to fit the weights.
pub fn leaf_features(layout: &Layout, config: &SegmentConfig) -> Vec<[f32; N_FEATURES]> {
    let page = PageFacts::new(layout, &config.ignored);
    let (list, teasers) = items::find_items(&page, &layout.base_url);
    weigh::features(&cut_and_fill(&page, config, (&list, &teasers)).1)
}

/// Words of prose in one container, outside the items, that make a page an article. The introduction of a front page is
/// shorter.
const MIN_BODY_WORDS: u32 = 100;

/// Maximum words of a part without a full sentence that belongs to an article, such as its head. Longer parts are
/// lists.
const MOST_WORDS_BESIDE: u32 = 100;

/// The blocks with their content, and the facts about each leaf.
fn cut_and_fill(
    page: &PageFacts,
    config: &SegmentConfig,
    (list, teasers): (&ItemList, &Teasers),
) -> (Vec<Block>, Vec<LeafFacts>) {
    // On an article page, list entries are links to other pages. On other pages they are the main content.
    let entries = teasers;
    let teasers = Some(teasers).filter(|_| list.n_body_words >= MIN_BODY_WORDS && !list.is_listing());
    let resolver = UrlResolver::new(&page.layout.base_url, &config.ignore);
    let pinned = selector::pinned_nodes(page, &config.pins);
    let visual = Vec::new();
    let mut builder = BlockBuilder {
        page,
        resolver: &resolver,
        pins: &config.pins,
        pinned,
        visual,
        leaves: Vec::new(),
        teasers,
        entries,
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

/// The facts from which the importance of a leaf is computed.
struct LeafFacts {
    facts: Facts,
    purpose: Purpose,
    /// Index and importance of the pin that matches most of it.
    pin: Option<(usize, f32)>,
    /// Whether most of it consists of links to other pages, on an article page.
    is_teasers: bool,
    /// Whether it is part of an article page but not text to read: the head, buttons, captions.
    is_beside_prose: bool,
    /// Whether most of it consists of list entries, on any page.
    is_entries: bool,
}

impl LeafFacts {
    /// Whether most of it is one click away.
    fn is_collapsed(&self) -> bool {
        2 * self.facts.n_collapsed_letters > self.facts.n_letters
    }
}

fn is_empty(leaf: &Block) -> bool {
    leaf.links.is_empty() && leaf.images.is_empty() && leaf.texts.is_empty()
}

/// Builds blocks from regions.
struct BlockBuilder<'a> {
    page: &'a PageFacts<'a>,
    resolver: &'a UrlResolver<'a>,
    pins: &'a [Pin],
    /// The pin of each node. Empty if the caller gave no pins.
    pinned: Vec<Option<usize>>,
    visual: Vec<VisualBlock>,
    leaves: Vec<LeafFacts>,
    /// The positions of list entries on an article page.
    teasers: Option<&'a Teasers>,
    /// The same on any page.
    entries: &'a Teasers,
}

/// Share of the words of a list's entries that makes a part a list. The rest is headings and buttons between them.
const MIN_ENTRY_SHARE: f32 = 0.6;

impl BlockBuilder<'_> {
    /// Puts the whole page into one block if it has no usable layout.
    fn single(&mut self) -> Vec<Block> {
        let n_nodes = self.page.facts.len() as u32;
        let mut leaf = content::leaf(self.page, self.resolver, 0, n_nodes);
        if is_empty(&leaf) {
            return Vec::new();
        }
        leaf.rect = Rect { x: 0.0, y: 0.0, w: self.page.layout.width, h: self.page.layout.height };
        let facts = self.page.facts.first().cloned().unwrap_or_default();
        let pin = self.pin(0, n_nodes);
        let (purpose, is_teasers, is_beside_prose) = (Purpose::Unknown, false, false);
        let is_entries = false;
        self.leaves.push(LeafFacts { facts, purpose, pin, is_teasers, is_beside_prose, is_entries });
        vec![leaf]
    }

    /// Builds blocks for regions. Regions without content are left out, and an inner block with one child is replaced
    /// by the child.
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
        let mut leaf = content::leaf(self.page, self.resolver, start, end);
        if is_empty(&leaf) {
            return None;
        }
        let visual = &self.visual[region.first..region.end];
        let mut facts = Facts::default();
        visual.iter().for_each(|visual| facts.absorb_later(&visual.facts));
        leaf.rect = facts.rect;
        let purpose = main_purpose(visual);
        let is_entries = self.entries.share(start, end) > MIN_ENTRY_SHARE;
        let is_teasers = is_entries && self.teasers.is_some();
        // Captions do not count, because a gallery may have many images.
        let n_beside = visual.iter().filter(|visual| !visual.is_caption).map(|visual| visual.facts.n_words);
        let is_beside_prose = self.teasers.is_some()
            && n_beside.sum::<u32>() <= MOST_WORDS_BESIDE
            && !visual.iter().any(VisualBlock::is_prose);
        let pin = self.pin(start, end);
        let facts = LeafFacts { facts, purpose, pin, is_teasers, is_beside_prose, is_entries };
        leaf.is_collapsed = facts.is_collapsed();
        self.leaves.push(facts);
        Some(leaf)
    }

    /// The pin that matches more than half of the visible content between two nodes.
    fn pin(&self, start: u32, end: u32) -> Option<(usize, f32)> {
        let pinned = self.pinned.get(start as usize..end as usize)?;
        let mut n_letters = vec![0usize; self.pins.len()];
        let mut n_all = 0;
        for (pin, index) in pinned.iter().zip(start as usize..) {
            // An image counts as much as a line of text.
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
