//! Matched elements -> which relocated ones changed the reading order.
//!
//! A new wrapper gives new parents to its content, and a split block leaves its elements in two blocks. In both cases
//! the reading order does not change. So all content is put into reading order, and the heaviest common subsequence of
//! both versions counts as unmoved. Content is matched by words, not by element: if a menu appears twice on a page,
//! its copies are indistinguishable.

use std::collections::HashMap;

use super::elements::{ElementMatches, ElementPair};
use super::structure::RelocatedBlock;
use super::tree::DiffTree;
use super::words::hash;
use super::{ElementKind, n_words};
use crate::page::segment::{Block, LeafPiece};

/// Weight of an element per word. An element that kept its place in the tree weighs 1 more, which breaks ties.
const WEIGHT: u64 = 1 << 10;
/// Number of occurrences of repeated words that are tried on each side of the expected one. A menu appears twice or three
/// times on a page, hardly more.
const MAX_TRIED: usize = 2;

/// The relocated blocks and elements that a reader sees in a different order.
pub(super) struct MoveVisibility {
    /// For each relocated block, whether its reading order changed.
    pub(super) has_block_moved: Vec<bool>,
    /// For each moved element, whether its reading order changed.
    pub(super) has_element_moved: Vec<bool>,
}

pub(super) fn find_visible_moves(
    before: &DiffTree,
    after: &DiffTree,
    found: &ElementMatches,
    relocated: &[RelocatedBlock],
) -> MoveVisibility {
    let nearest_relocated = nearest_relocated(after, relocated);
    let (was, is) = (ReadingOrder::new(before), ReadingOrder::new(after));
    let partners = partners(&was, &is, found, &nearest_relocated);
    let is_in_order = heaviest_common_order(&was, &is, &partners);
    let (mut moved, mut total) = (vec![0u64; relocated.len()], vec![0u64; relocated.len()]);
    for (rank, read) in is.all.iter().enumerate().filter(|(rank, _)| partners[*rank].is_some()) {
        let mut carrier = nearest_relocated[read.leaf];
        while let Some(number) = carrier {
            total[number] += read.weight;
            moved[number] += if is_in_order[rank] { 0 } else { read.weight };
            carrier = nearest_relocated[after.all[relocated[number].after].parent];
        }
    }
    let has_block_moved = moved.iter().zip(&total).map(|(moved, total)| 2 * moved > *total).collect();
    let has_moved = |pair: &ElementPair| {
        is.rank(pair.kind, pair.after).is_some_and(|rank| is.all[rank].is_seen && !is_in_order[rank])
    };
    MoveVisibility { has_block_moved, has_element_moved: found.moves.iter().map(has_moved).collect() }
}

/// For each new block, the nearest relocated block at or above it.
fn nearest_relocated(after: &DiffTree, relocated: &[RelocatedBlock]) -> Vec<Option<usize>> {
    let mut nearest_relocated: Vec<Option<usize>> = vec![None; after.len()];
    for (number, block) in relocated.iter().enumerate() {
        nearest_relocated[block.after] = Some(number);
    }
    // Parents come before their children.
    for number in 1..after.len() {
        if nearest_relocated[number].is_none() {
            nearest_relocated[number] = nearest_relocated[after.all[number].parent];
        }
    }
    nearest_relocated
}

/// An element in reading order.
struct ReadElement {
    leaf: usize,
    words: u32,
    weight: u64,
    /// Whether a reader would notice it: an image, or a text with at least one word. Punctuation alone does not count.
    is_seen: bool,
}

/// All elements of a page in reading order, and the rank of each.
struct ReadingOrder {
    all: Vec<ReadElement>,
    /// For each leaf, the ranks of its links, images and texts.
    ranks: Vec<[Vec<u32>; 3]>,
}

impl ReadingOrder {
    fn new(nodes: &DiffTree) -> ReadingOrder {
        let mut reading = ReadingOrder { all: Vec::new(), ranks: Vec::with_capacity(nodes.len()) };
        for (leaf, node) in nodes.all.iter().enumerate() {
            let block = node.block.filter(|block| block.is_leaf());
            let ranks = block.map(|block| reading.add(leaf, block));
            reading.ranks.push(ranks.unwrap_or_default());
        }
        reading
    }

    fn add(&mut self, leaf: usize, block: &Block) -> [Vec<u32>; 3] {
        let mut ranks = [block.links.len(), block.images.len(), block.texts.len()].map(|n| vec![u32::MAX; n]);
        for piece in block.pieces() {
            let (kind, number) = match piece {
                LeafPiece::Link(number) | LeafPiece::LinkInText(number) => (ElementKind::Link, number),
                LeafPiece::Image(number) => (ElementKind::Image, number),
                LeafPiece::Text(number, _) => (ElementKind::Text, number),
            };
            let words = match kind {
                ElementKind::Link => &block.links[number as usize].name,
                ElementKind::Image => &block.images[number as usize].name,
                ElementKind::Text => &block.texts[number as usize].text,
            };
            // A text that contains a link is split into several pieces. Its rank is that of the first.
            let place = &mut ranks[kind as usize][number as usize];
            if *place == u32::MAX {
                *place = self.all.len() as u32;
                let has_words = kind != ElementKind::Image && words.contains(char::is_alphanumeric);
                // The words of a link in a text weigh with the text.
                let is_weighed = has_words && !matches!(piece, LeafPiece::LinkInText(_));
                let weight = 1 + if is_weighed { n_words(words) as u64 } else { 0 };
                self.all.push(ReadElement {
                    leaf,
                    words: hash(words),
                    weight,
                    is_seen: has_words || kind == ElementKind::Image,
                });
            }
        }
        ranks
    }

    fn rank(&self, kind: ElementKind, (leaf, index): (usize, u32)) -> Option<usize> {
        let rank = self.ranks.get(leaf)?[kind as usize].get(index as usize)?;
        (*rank != u32::MAX).then_some(*rank as usize)
    }
}

/// For each new rank, the old rank of its partner, and whether it kept its place in the tree.
fn partners(
    was: &ReadingOrder,
    is: &ReadingOrder,
    found: &ElementMatches,
    nearest_relocated: &[Option<usize>],
) -> Vec<Option<(usize, bool)>> {
    let mut partners = vec![None; is.all.len()];
    let mut pair = |kind: ElementKind, before: (usize, u32), after: (usize, u32), is_kept: bool| {
        if let (Some(rank_before), Some(rank)) = (was.rank(kind, before), is.rank(kind, after)) {
            // An edited text may be paired with the wrong partner.
            let is_steady = is_kept
                && nearest_relocated[after.0].is_none()
                && was.all[rank_before].words == is.all[rank].words;
            partners[rank] = Some((rank_before, is_steady));
        }
    };
    for &(b, a) in &found.same_leaves {
        for kind in ElementKind::ALL {
            for index in 0..is.ranks[a][kind as usize].len() as u32 {
                pair(kind, (b, index), (a, index), true);
            }
        }
    }
    found.pairs.iter().for_each(|each| pair(each.kind, each.before, each.after, true));
    found.moves.iter().for_each(|each| pair(each.kind, each.before, each.after, false));
    partners
}

/// Marks the new ranks in the heaviest common subsequence. A Fenwick tree of best sums makes it O(n log n).
fn heaviest_common_order(
    was: &ReadingOrder,
    is: &ReadingOrder,
    partners: &[Option<(usize, bool)>],
) -> Vec<bool> {
    let occurrences = WordOccurrences::new(was, is);
    let mut best = BestSums { sums: vec![(0, None); was.all.len() + 1] };
    // Each step: the new rank, and the index of the step before it.
    let mut steps: Vec<(usize, Option<usize>)> = Vec::new();
    for (rank, read) in is.all.iter().enumerate() {
        let mut tried: Vec<(usize, bool)> = partners[rank].into_iter().collect();
        tried.extend(occurrences.around(rank, read.words).map(|before| (before as usize, false)));
        // The partner may also be an occurrence of the same words; keep its steady flag.
        tried.sort_unstable_by_key(|&(before, is_steady)| (before, !is_steady));
        tried.dedup_by_key(|each| each.0);
        let sums: Vec<_> = tried.iter().map(|&(before, _)| best.below(before)).collect();
        for ((before, is_steady), (sum, last)) in tried.into_iter().zip(sums) {
            let weight = read.weight * WEIGHT + u64::from(is_steady);
            steps.push((rank, last));
            best.raise(before, (sum.saturating_add(weight), Some(steps.len() - 1)));
        }
    }
    let mut is_in_order = vec![false; is.all.len()];
    let mut at = best.below(was.all.len()).1;
    while let Some(step) = at {
        is_in_order[steps[step].0] = true;
        at = steps[step].1;
    }
    is_in_order
}

/// The positions of the same words in the version before.
struct WordOccurrences {
    before: HashMap<u32, Vec<u32>>,
    /// For each new rank, the number of earlier occurrences of the same words.
    ordinals: Vec<u32>,
    n_after: HashMap<u32, u32>,
}

impl WordOccurrences {
    fn new(was: &ReadingOrder, is: &ReadingOrder) -> WordOccurrences {
        let mut before: HashMap<u32, Vec<u32>> = HashMap::new();
        for (rank, read) in (0u32..).zip(&was.all) {
            before.entry(read.words).or_default().push(rank);
        }
        let mut n_after: HashMap<u32, u32> = HashMap::new();
        let mut ordinals = Vec::with_capacity(is.all.len());
        for read in &is.all {
            let n = n_after.entry(read.words).or_default();
            ordinals.push(*n);
            *n += 1;
        }
        WordOccurrences { before, ordinals, n_after }
    }

    /// Old ranks with the same words: those with as many occurrences before or after them, and their neighbours.
    fn around(&self, rank: usize, words: u32) -> impl Iterator<Item = u32> + '_ {
        let ranks: &[u32] = self.before.get(&words).map_or(&[], Vec::as_slice);
        let ordinal = self.ordinals[rank] as usize;
        let n_later = self.n_after.get(&words).map_or(0, |n| *n as usize).saturating_sub(ordinal);
        [ordinal, ranks.len().saturating_sub(n_later)]
            .into_iter()
            .flat_map(move |at| {
                let from = at.saturating_sub(MAX_TRIED).min(ranks.len());
                &ranks[from..(at + MAX_TRIED + 1).min(ranks.len())]
            })
            .copied()
    }
}

/// Best sums of subsequences that end before a rank, with their last step: a Fenwick tree of maxima.
struct BestSums {
    sums: Vec<(u64, Option<usize>)>,
}

impl BestSums {
    fn below(&self, rank: usize) -> (u64, Option<usize>) {
        let mut best = (0, None);
        let mut at = rank;
        while at > 0 {
            if self.sums[at].0 > best.0 {
                best = self.sums[at];
            }
            at &= at - 1;
        }
        best
    }

    fn raise(&mut self, rank: usize, sum: (u64, Option<usize>)) {
        let mut at = rank + 1;
        while at < self.sums.len() {
            if sum.0 > self.sums[at].0 {
                self.sums[at] = sum;
            }
            at += at & at.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two readings of the same words in different orders.
    fn readings(places: &[usize], weights: &[u64]) -> (ReadingOrder, ReadingOrder) {
        let read = |n: usize| ReadElement { leaf: 0, words: n as u32, weight: weights[n], is_seen: true };
        let mut order: Vec<usize> = (0..places.len()).collect();
        let was = ReadingOrder { all: order.iter().map(|n| read(*n)).collect(), ranks: Vec::new() };
        order.sort_by_key(|n| places[*n]);
        (was, ReadingOrder { all: order.into_iter().map(read).collect(), ranks: Vec::new() })
    }

    proptest! {
        /// The unmoved part is in order, and no heavier part is.
        #[test]
        fn the_heaviest_part_in_order_stays(weights in proptest::collection::vec(1u64..9, 1..9), seed in any::<u64>()) {
            let mut places: Vec<usize> = (0..weights.len()).collect();
            crate::rng::Rng::new(seed).shuffle(&mut places);
            let (was, is) = readings(&places, &weights);
            let is_in_order = |part: u32| (0..is.all.len()).filter(move |n| part >> n & 1 == 1);
            let is_ordered = |part: u32| {
                let ranks: Vec<u32> = is_in_order(part).map(|n| is.all[n].words).collect();
                ranks.windows(2).all(|pair| pair[0] < pair[1])
            };
            let weight = |part: u32| is_in_order(part).map(|n| is.all[n].weight).sum::<u64>();
            let found = heaviest_common_order(&was, &is, &vec![None; is.all.len()]);
            let found = found.iter().enumerate().map(|(n, is_in_order)| u32::from(*is_in_order) << n).sum::<u32>();
            prop_assert!(is_ordered(found));
            let best = (0..1u32 << is.all.len()).filter(|part| is_ordered(*part)).map(weight).max();
            prop_assert_eq!(Some(weight(found)), best);
        }
    }
}
