//! Two trees -> pairs of matching blocks: step 0, which P-VISUAL omits (docs/papers.md, Vi-DIFF and Vi-Delta).
//!
//! There are five passes, the most certain first, because a wrong pair would take the partner of a right one. Each one
//! matches blocks that the passes before it left open:
//!
//! 1. the same ID at the same reference;
//! 2. the same ID anywhere;
//! 3. leaves with the most similar content, preferably at the same reference and level;
//! 4. inner blocks, by where most of their content was before;
//! 5. blocks between the same neighbours in the same column, because a region whose content was replaced is still the
//!    same region.

use std::collections::{BTreeMap, HashMap};

use super::tree::DiffTree;
use super::words::{hash, n_shared, word_hashes};
use crate::page::segment::{Block, NodeId};

/// Minimum similarity of two leaves that match. It is low, because a leaf that matches wrongly costs nothing (its elements
/// are compared one by one, and moves are found anywhere), while a missed match turns edits into deletions and
/// insertions.
const SIMILAR: f64 = 0.3;
/// Features that more leaves share are ignored: they identify no leaf, and comparing all their holders is expensive.
const MAX_SHARERS: usize = 8;
/// Maximum difference in left edge and width of boxes in the same column: more than a scroll bar or a margin, less than
/// the gap between columns.
const SAME_COLUMN_PX: f32 = 24.0;

/// For each block of one tree, the number of its partner in the other one. The roots are partners.
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

/// Walks both trees in parallel. Returns true if every block was matched.
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

/// Pairs two blocks with equal IDs and all of their descendants. Returns the number of pairs.
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
    // Candidates are taken from the end, so the reverse order pairs equal blocks in document order.
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
        // A pair with an already paired descendant would break that pair.
        while let Some(b) = same.pop() {
            if all_free(before, after, b, a, matching) {
                pair_subtrees(before, after, b, a, matching);
                break;
            }
        }
    }
}

/// Whether a leaf has no content. Empty blocks all have the same ID, so it does not identify them.
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

/// An unmatched leaf with the sorted hashes of its content.
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
    let links = block.links.iter().flat_map(|link| [hash(&link.name), hash(&link.url)]);
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

/// The mean of two ratios: common content to the smaller leaf, and common content to both leaves. So a block that has
/// grown still matches.
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

/// Pairs of unmatched leaves that share a rare feature or a reference, as indexes into the two lists.
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

/// Index pairs of leaves that share a rare feature. Each bag is sorted.
fn pairs_by_shared<'a>(
    before: impl Iterator<Item = &'a [u32]>,
    after: impl Iterator<Item = &'a [u32]>,
) -> Vec<(usize, usize)> {
    let mut sharers: HashMap<u32, Vec<usize>> = HashMap::new();
    for (i, bag) in before.enumerate() {
        for feature in distinct(bag) {
            let sharers = sharers.entry(feature).or_default();
            if sharers.len() <= MAX_SHARERS {
                sharers.push(i);
            }
        }
    }
    let mut pairs = Vec::new();
    for (j, bag) in after.enumerate() {
        let start = pairs.len();
        for feature in distinct(bag) {
            let rare = sharers.get(&feature).filter(|sharers| sharers.len() <= MAX_SHARERS);
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

/// Matches inner blocks bottom-up. Each matched child votes for the old parent of its partner, with its size as
/// weight.
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

/// Number of elements in each block and its descendants, plus 1 for each block.
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

/// Pairs unmatched blocks between matched neighbours, if both sides have the same number of them and each pair is in
/// the same column.
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

/// Unmatched children of a block, grouped by the nearest matched sibling before them (0 if there is none).
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
