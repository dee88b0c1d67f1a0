//! Two trees -> which block after is which block before: step 0, which P-VISUAL leaves out (docs/papers.md, Vi-DIFF and
//! Vi-Delta).
//!
//! Blocks are matched in this order, and each pass takes the blocks that the one before left open: the same ID at the
//! same reference; the same ID anywhere; leaves by best similarity of content, where the same reference and level are
//! preferred; inner blocks by where the blocks within them went; and last the blocks between the same neighbours in the
//! same column, because a region whose whole content was exchanged is still that region.

use std::collections::{BTreeMap, HashMap};

use super::tree::DiffTree;
use super::words::{hash, n_shared, word_hashes};
use crate::page::segment::{Block, NodeId};

/// Least similarity of content at which two leaves are one block.
const SIMILAR: f64 = 0.3;
/// A feature that more leaves than this share is not used to find partners: it tells little and costs much.
const MAX_SHARERS: usize = 8;
/// Boxes whose left edges and widths differ by at most this many pixels stand in one column.
const SAME_COLUMN_PX: f32 = 24.0;

/// For each block of one tree its partner in the other, by number. The roots are partners.
pub(super) struct Matching {
    pub(super) to_after: Vec<Option<usize>>,
    pub(super) to_before: Vec<Option<usize>>,
}

impl Matching {
    fn pair(&mut self, before: usize, after: usize) {
        self.to_after[before] = Some(after);
        self.to_before[after] = Some(before);
    }

    fn both_free(&self, before: usize, after: usize) -> bool {
        self.to_after[before].is_none() && self.to_before[after].is_none()
    }
}

pub(super) fn match_blocks(before: &DiffTree, after: &DiffTree) -> Matching {
    let mut matching = Matching { to_after: vec![None; before.len()], to_before: vec![None; after.len()] };
    matching.pair(0, 0);
    if match_same_reference(before, after, &mut matching) {
        return matching;
    }
    match_same_id(before, after, &mut matching);
    match_similar_leaves(before, after, &mut matching);
    match_by_votes(before, after, &mut matching);
    match_between_neighbours(before, after, &mut matching);
    matching
}

/// Walks both trees at once; true when that matched every block.
fn match_same_reference(before: &DiffTree, after: &DiffTree, matching: &mut Matching) -> bool {
    let mut pending = vec![(0, 0)];
    let mut n_paired = 1;
    while let Some((b, a)) = pending.pop() {
        for (&child_b, &child_a) in before.all[b].children.iter().zip(&after.all[a].children) {
            if same_id(before, after, child_b, child_a) {
                n_paired += pair_subtrees(before, after, child_b, child_a, matching);
            } else {
                pending.push((child_b, child_a));
            }
        }
    }
    n_paired == before.len() && n_paired == after.len()
}

fn same_id(before: &DiffTree, after: &DiffTree, b: usize, a: usize) -> bool {
    before.all[b].block.map(|block| block.id) == after.all[a].block.map(|block| block.id)
}

/// Pairs two blocks of one ID and all within them; returns how many.
fn pair_subtrees(before: &DiffTree, after: &DiffTree, b: usize, a: usize, matching: &mut Matching) -> usize {
    let mut pending = vec![(b, a)];
    let mut n_paired = 0;
    while let Some((b, a)) = pending.pop() {
        matching.pair(b, a);
        n_paired += 1;
        pending.extend(before.all[b].children.iter().copied().zip(after.all[a].children.iter().copied()));
    }
    n_paired
}

fn match_same_id(before: &DiffTree, after: &DiffTree, matching: &mut Matching) {
    let mut candidates: HashMap<NodeId, Vec<usize>> = HashMap::new();
    for b in (1..before.len()).rev() {
        if let Some(block) = before.all[b].block.filter(|block| !is_empty_leaf(block)) {
            candidates.entry(block.id).or_default().push(b);
        }
    }
    for a in 1..after.len() {
        let Some(block) = after.all[a].block else { continue };
        if matching.to_before[a].is_some() {
            continue;
        }
        let Some(same) = candidates.get_mut(&block.id) else { continue };
        while let Some(b) = same.pop() {
            if all_free(before, after, b, a, matching) {
                pair_subtrees(before, after, b, a, matching);
                break;
            }
        }
    }
}

/// Whether it is empty. The ID of an empty block tells nothing.
fn is_empty_leaf(block: &Block) -> bool {
    block.is_leaf() && block.links.is_empty() && block.images.is_empty() && block.texts.is_empty()
}

fn all_free(before: &DiffTree, after: &DiffTree, b: usize, a: usize, matching: &Matching) -> bool {
    let mut pending = vec![(b, a)];
    while let Some((b, a)) = pending.pop() {
        if !matching.both_free(b, a) {
            return false;
        }
        pending.extend(before.all[b].children.iter().copied().zip(after.all[a].children.iter().copied()));
    }
    true
}

/// A leaf whose partner is still open, with sorted hashes of what it holds.
struct UnmatchedLeaf {
    number: usize,
    features: Vec<u32>,
}

fn unmatched_leaves(nodes: &DiffTree, partners: &[Option<usize>]) -> Vec<UnmatchedLeaf> {
    let open = (1..nodes.len()).filter(|&n| partners[n].is_none() && nodes.all[n].children.is_empty());
    open.filter_map(|number| {
        let features = features(nodes.all[number].block?);
        Some(UnmatchedLeaf { number, features })
    })
    .collect()
}

fn features(block: &Block) -> Vec<u32> {
    let links = block.links.iter().flat_map(|link| [hash(&link.name), hash(&link.address)]);
    let images = block.images.iter().flat_map(|image| [hash(&image.name), hash(&image.source)]);
    let mut features: Vec<u32> = links.chain(images).collect();
    for text in &block.texts {
        features.append(&mut word_hashes(&text.text));
    }
    features.sort_unstable();
    features
}

fn match_similar_leaves(before: &DiffTree, after: &DiffTree, matching: &mut Matching) {
    let open_before = unmatched_leaves(before, &matching.to_after);
    let open_after = unmatched_leaves(after, &matching.to_before);
    let mut scored: Vec<(f64, usize, usize)> = Vec::new();
    for (i, j) in candidate_pairs(before, after, &open_before, &open_after) {
        let (b, a) = (&open_before[i], &open_after[j]);
        let similarity = similarity(&b.features, &a.features);
        if similarity >= SIMILAR {
            let preference = preference(before, after, b.number, a.number);
            scored.push((similarity + preference, b.number, a.number));
        }
    }
    scored.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)).then(x.2.cmp(&y.2)));
    for (_, b, a) in scored {
        if matching.both_free(b, a) {
            matching.pair(b, a);
        }
    }
}

/// The mean of two shares: what both have in common over the smaller one, and over both together. So a block that has
/// grown is still the same block.
fn similarity(before: &[u32], after: &[u32]) -> f64 {
    if before.is_empty() || after.is_empty() {
        return 0.0;
    }
    let shared = n_shared(before, after) as f64;
    let of_both = 2.0 * shared / (before.len() + after.len()) as f64;
    let of_smaller = shared / before.len().min(after.len()) as f64;
    (of_both + of_smaller) / 2.0
}

fn preference(before: &DiffTree, after: &DiffTree, b: usize, a: usize) -> f64 {
    let same_level = before.all[b].depth == after.all[a].depth;
    let same_reference = same_level && before.reference(b) == after.reference(a);
    f64::from(u8::from(same_reference)) * 0.1 + f64::from(u8::from(same_level)) * 0.05
}

/// Pairs of open leaves that share a rare feature or a reference, as places in the two lists.
fn candidate_pairs(
    before: &DiffTree,
    after: &DiffTree,
    open_before: &[UnmatchedLeaf],
    open_after: &[UnmatchedLeaf],
) -> Vec<(usize, usize)> {
    let features = open_before.iter().map(|leaf| leaf.features.as_slice());
    let mut pairs = pairs_by_shared(features, open_after.iter().map(|leaf| leaf.features.as_slice()));
    let by_reference: HashMap<_, usize> =
        open_before.iter().enumerate().map(|(i, leaf)| (before.reference(leaf.number), i)).collect();
    for (j, leaf) in open_after.iter().enumerate() {
        pairs.extend(by_reference.get(&after.reference(leaf.number)).map(|&i| (i, j)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Pairs of the first and the second list that share a rare feature. Each bag is sorted.
fn pairs_by_shared<'a>(
    before: impl Iterator<Item = &'a [u32]>,
    after: impl Iterator<Item = &'a [u32]>,
) -> Vec<(usize, usize)> {
    let mut holders: HashMap<u32, Vec<usize>> = HashMap::new();
    for (i, bag) in before.enumerate() {
        for feature in distinct(bag) {
            let holders = holders.entry(feature).or_default();
            if holders.len() <= MAX_SHARERS {
                holders.push(i);
            }
        }
    }
    let mut pairs = Vec::new();
    for (j, bag) in after.enumerate() {
        let start = pairs.len();
        for feature in distinct(bag) {
            let rare = holders.get(&feature).filter(|holders| holders.len() <= MAX_SHARERS);
            pairs.extend(rare.into_iter().flatten().map(|&i| (i, j)));
        }
        dedup_from(&mut pairs, start);
    }
    pairs
}

fn distinct(bag: &[u32]) -> impl Iterator<Item = u32> {
    bag.chunk_by(|x, y| x == y).map(|run| run[0])
}

fn dedup_from(pairs: &mut Vec<(usize, usize)>, start: usize) {
    let mut added = pairs.split_off(start);
    added.sort_unstable();
    added.dedup();
    pairs.append(&mut added);
}

/// An inner block is matched to the block from which most of its content came, from the deepest level up.
fn match_by_votes(before: &DiffTree, after: &DiffTree, matching: &mut Matching) {
    let (sizes_before, sizes_after) = (sizes(before), sizes(after));
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for a in 1..after.len() {
        if matching.to_before[a].is_none() && !after.all[a].children.is_empty() {
            let depth = after.all[a].depth;
            levels.resize_with(levels.len().max(depth + 1), Vec::new);
            levels[depth].push(a);
        }
    }
    for level in levels.iter().rev() {
        let mut elected: Vec<(usize, usize, usize)> = Vec::new();
        for &a in level {
            let Some((b, weight)) = most_votes(before, after, a, &sizes_after, matching) else { continue };
            if weight * 10 >= 3 * sizes_before[b].min(sizes_after[a]) {
                elected.push((weight, b, a));
            }
        }
        elected.sort_unstable_by_key(|&(weight, b, a)| (std::cmp::Reverse(weight), b, a));
        for (_, b, a) in elected {
            if matching.both_free(b, a) {
                matching.pair(b, a);
            }
        }
    }
}

/// Elements of each block and of all within it, at least 1.
fn sizes(nodes: &DiffTree) -> Vec<usize> {
    let mut sizes = vec![1; nodes.len()];
    for number in (1..nodes.len()).rev() {
        if let Some(block) = nodes.all[number].block {
            sizes[number] += block.links.len() + block.images.len() + block.texts.len();
        }
        sizes[nodes.all[number].parent] += sizes[number];
    }
    sizes
}

fn most_votes(
    before: &DiffTree,
    after: &DiffTree,
    a: usize,
    sizes: &[usize],
    matching: &Matching,
) -> Option<(usize, usize)> {
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for &child in &after.all[a].children {
        if let Some(partner) = matching.to_before[child] {
            *votes.entry(before.all[partner].parent).or_default() += sizes[child];
        }
    }
    let free = votes.into_iter().filter(|&(b, _)| b != 0 && matching.to_after[b].is_none());
    free.max_by_key(|&(b, weight)| (weight, std::cmp::Reverse(b)))
}

/// Pairs the open blocks between neighbours that are partners, when both sides have the same number of blocks there and
/// each is in the column of its counterpart.
fn match_between_neighbours(before: &DiffTree, after: &DiffTree, matching: &mut Matching) {
    for a in 0..after.len() {
        let Some(b) = matching.to_before[a] else { continue };
        let mut gap_before = gaps(before, b, a, &matching.to_after, after);
        let gap_after = gaps(after, a, b, &matching.to_before, before);
        for (anchor, open_after) in gap_after {
            let anchor_before = if anchor == 0 { Some(0) } else { matching.to_before[anchor] };
            let open_before = anchor_before.and_then(|anchor| gap_before.remove(&anchor)).unwrap_or_default();
            pair_columns(before, after, &open_before, &open_after, matching);
        }
    }
}

/// Open children of a block, grouped by the last matched child before them (0 when there is none).
fn gaps(
    nodes: &DiffTree,
    parent: usize,
    partner: usize,
    partners: &[Option<usize>],
    other: &DiffTree,
) -> BTreeMap<usize, Vec<usize>> {
    let mut gaps: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut anchor = 0;
    for &child in &nodes.all[parent].children {
        match partners[child] {
            Some(there) if other.all[there].parent == partner => anchor = child,
            Some(_) => {}
            None => gaps.entry(anchor).or_default().push(child),
        }
    }
    gaps
}

fn pair_columns(
    before: &DiffTree,
    after: &DiffTree,
    open_before: &[usize],
    open_after: &[usize],
    matching: &mut Matching,
) {
    let pairs = || open_before.iter().copied().zip(open_after.iter().copied());
    if open_before.len() == open_after.len() && pairs().all(|(b, a)| same_column(before, after, b, a)) {
        for (b, a) in pairs() {
            matching.pair(b, a);
        }
    }
}

fn same_column(before: &DiffTree, after: &DiffTree, b: usize, a: usize) -> bool {
    let (Some(before), Some(after)) = (before.all[b].block, after.all[a].block) else { return false };
    before.is_leaf() == after.is_leaf()
        && (before.rect.x - after.rect.x).abs() <= SAME_COLUMN_PX
        && (before.rect.w - after.rect.w).abs() <= SAME_COLUMN_PX
}
