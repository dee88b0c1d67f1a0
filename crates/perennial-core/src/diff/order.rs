//! Partners -> which of those that are elsewhere in the tree are read in another order.
//!
//! A wrapper that appears or vanishes gives other parents to all within it, and a block that falls apart leaves its elements in two;
//! a reader reads the same words in the same order. So everything that is in both versions is put into reading order, and the
//! heaviest part that kept its order did not move. What kept its place in the tree is in that part before anything else.

use std::collections::HashMap;

use super::elements::{Found, Pair};
use super::structure::Relocated;
use super::tree::Nodes;
use super::{ElementKind, n_words};
use crate::segment::{Block, Piece};

/// How much more what kept its place in the tree counts than what did not.
const STEADY: u64 = 1 << 20;

/// What is read in another order than before.
pub(super) struct Order {
    /// For each block that is elsewhere in the tree, whether it moved to a reader.
    pub(super) has_block_moved: Vec<bool>,
    /// For each element that is in another block, whether it moved to a reader.
    pub(super) has_element_moved: Vec<bool>,
}

/// Something that is read in both versions: a leaf with the same content, or an element.
struct Read {
    before: (usize, u32),
    after: (usize, u32),
    weight: u64,
    is_steady: bool,
}

pub(super) fn find_order(before: &Nodes, after: &Nodes, found: &Found, relocated: &[Relocated]) -> Order {
    let carriers = carriers(after, relocated);
    let mut all: Vec<Read> = Vec::new();
    for &(b, a) in &found.same_leaves {
        let weight = after.all[a].block.map_or(0, words_of);
        all.push(Read { before: (b, 0), after: (a, 0), weight, is_steady: carriers[a].is_none() });
    }
    let (mut ranks_before, mut ranks_after) = (Ranks::default(), Ranks::default());
    for (number, pair) in found.pairs.iter().chain(&found.moves).enumerate() {
        let &Pair { kind, before: (b, i), after: (a, j) } = pair;
        let (Some(was), Some(is)) = (before.all[b].block, after.all[a].block) else { continue };
        let (rank_before, rank_after) =
            (ranks_before.rank(b, was, kind, i), ranks_after.rank(a, is, kind, j));
        let weight = 1 + words_of_element(is, kind, j);
        let is_steady = carriers[a].is_none() && number < found.pairs.len();
        all.push(Read { before: (b, rank_before), after: (a, rank_after), weight, is_steady });
    }
    let has_moved = out_of_order(&all);
    let (mut moved, mut total) = (vec![0u64; relocated.len()], vec![0u64; relocated.len()]);
    for (read, has_moved) in all.iter().zip(&has_moved) {
        let mut carrier = carriers[read.after.0];
        while let Some(number) = carrier {
            total[number] += read.weight;
            moved[number] += if *has_moved { read.weight } else { 0 };
            carrier = carriers[after.all[relocated[number].after].parent];
        }
    }
    let is_seen = |number: usize, block: &Relocated| {
        total[number] > 0 && (block.is_out_of_order || 2 * moved[number] > total[number])
    };
    let has_block_moved =
        relocated.iter().enumerate().map(|(number, block)| is_seen(number, block)).collect();
    Order { has_block_moved, has_element_moved: has_moved[all.len() - found.moves.len()..].to_vec() }
}

/// For each block after the nearest relocated block at or above it.
fn carriers(after: &Nodes, relocated: &[Relocated]) -> Vec<Option<usize>> {
    let mut carriers: Vec<Option<usize>> = vec![None; after.len()];
    for (number, block) in relocated.iter().enumerate() {
        carriers[block.after] = Some(number);
    }
    // Each block comes after its parent.
    for number in 1..after.len() {
        if carriers[number].is_none() {
            carriers[number] = carriers[after.all[number].parent];
        }
    }
    carriers
}

fn words_of(block: &Block) -> u64 {
    let texts = block.texts.iter().map(|text| n_words(&text.text));
    let links = block.links.iter().map(|link| n_words(&link.name));
    1 + texts.chain(links).sum::<usize>() as u64
}

fn words_of_element(block: &Block, kind: ElementKind, index: u32) -> u64 {
    let text = match kind {
        ElementKind::Link => block.links.get(index as usize).map(|link| link.name.as_str()),
        ElementKind::Text => block.texts.get(index as usize).map(|text| text.text.as_str()),
        ElementKind::Image => None,
    };
    text.map_or(0, n_words) as u64
}

/// The place of each element of a leaf in the order in which it is read, found once for each leaf.
#[derive(Default)]
struct Ranks {
    known: HashMap<usize, [Vec<u32>; 3]>,
}

impl Ranks {
    fn rank(&mut self, leaf: usize, block: &Block, kind: ElementKind, index: u32) -> u32 {
        let ranks = self.known.entry(leaf).or_insert_with(|| ranks_of(block));
        ranks[kind as usize].get(index as usize).copied().unwrap_or(u32::MAX)
    }
}

fn ranks_of(block: &Block) -> [Vec<u32>; 3] {
    let mut ranks = [
        vec![u32::MAX; block.links.len()],
        vec![u32::MAX; block.images.len()],
        vec![u32::MAX; block.texts.len()],
    ];
    // A text with a link in it comes in several pieces; the first counts.
    for (rank, piece) in (0u32..).zip(block.pieces()) {
        let (kind, number) = match piece {
            Piece::Link(number) => (ElementKind::Link, number),
            Piece::Image(number) => (ElementKind::Image, number),
            Piece::Text(number, _) => (ElementKind::Text, number),
        };
        if let Some(place) = ranks[kind as usize].get_mut(number as usize) {
            *place = (*place).min(rank);
        }
    }
    ranks
}

/// Marks what is not in the heaviest part that is in the same order in both versions. A tree of best sums makes it O(n log n).
fn out_of_order(all: &[Read]) -> Vec<bool> {
    let mut by_before: Vec<usize> = (0..all.len()).collect();
    by_before.sort_by_key(|&n| all[n].before);
    let mut rank_before = vec![0; all.len()];
    by_before.iter().enumerate().for_each(|(rank, &n)| rank_before[n] = rank);
    let mut by_after: Vec<usize> = (0..all.len()).collect();
    by_after.sort_by_key(|&n| (all[n].after, rank_before[n]));
    let mut best = BestSums { sums: vec![(0, None); all.len() + 1] };
    let mut previous: Vec<Option<usize>> = vec![None; all.len()];
    for &n in &by_after {
        let (sum, last) = best.below(rank_before[n]);
        previous[n] = last;
        let weight = all[n].weight * if all[n].is_steady { STEADY } else { 1 };
        best.raise(rank_before[n], (sum.saturating_add(weight), Some(n)));
    }
    let mut has_moved = vec![true; all.len()];
    let mut at = best.below(all.len()).1;
    while let Some(n) = at {
        has_moved[n] = false;
        at = previous[n];
    }
    has_moved
}

/// The largest sum that ends before a rank, and where it ends: a Fenwick tree of maxima.
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

    fn read(before: usize, after: usize, weight: u64) -> Read {
        Read { before: (before, 0), after: (after, 0), weight, is_steady: false }
    }

    proptest! {
        /// The part that stays is in order, and no other part in order is heavier.
        #[test]
        fn the_heaviest_part_in_order_stays(weights in proptest::collection::vec(1u64..9, 1..9), seed in any::<u64>()) {
            let mut places: Vec<usize> = (0..weights.len()).collect();
            crate::chance::Chance::new(seed).shuffle(&mut places);
            let all: Vec<Read> = places.iter().zip(&weights).enumerate().map(|(n, (p, w))| read(n, *p, *w)).collect();
            let stays = |part: u32| (0..all.len()).filter(move |n| part >> n & 1 == 1);
            let is_in_order = |part: u32| {
                let places: Vec<usize> = stays(part).map(|n| all[n].after.0).collect();
                places.windows(2).all(|pair| pair[0] < pair[1])
            };
            let weight = |part: u32| stays(part).map(|n| all[n].weight).sum::<u64>();
            let found = out_of_order(&all).iter().enumerate().map(|(n, moved)| u32::from(!moved) << n).sum::<u32>();
            prop_assert!(is_in_order(found));
            let best = (0..1u32 << all.len()).filter(|part| is_in_order(*part)).map(weight).max();
            prop_assert_eq!(Some(weight(found)), best);
        }
    }
}
