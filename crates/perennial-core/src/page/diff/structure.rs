//! Matched blocks -> operations on the block tree (insert, delete, move), and changed boxes and weights.

use std::collections::HashMap;

use super::elements::MovedElements;
use super::matching::Matching;
use super::tree::DiffTree;
use super::{Appearance, BlockOperation, Delta, ElementKind};
use crate::page::segment::Block;

/// Adds structural operations and appearances to the delta. Moved elements (`moved_elements`) are not part of the
/// inserted and deleted blocks.
pub(super) fn find_structure(
    before: &DiffTree,
    after: &DiffTree,
    matching: &Matching,
    moved_elements: &MovedElements,
    delta: &mut Delta,
) {
    for (number, partner) in matching.to_before.iter().enumerate().skip(1) {
        match partner {
            None if matching.to_before[after.all[number].parent].is_some() => {
                let block = unmatched_part(after, number, &matching.to_before, &moved_elements.moved_in);
                add_block_operation(block, BlockOperation::Insert, delta);
            }
            Some(partner) => delta.appearances.extend(appearance(before, after, *partner, number)),
            None => {}
        }
    }
    for number in 1..before.len() {
        let is_parent_kept = matching.to_after[before.all[number].parent].is_some();
        if matching.to_after[number].is_none() && is_parent_kept {
            let block = unmatched_part(before, number, &matching.to_after, &moved_elements.moved_out);
            add_block_operation(block, BlockOperation::Delete, delta);
        }
    }
}

/// A block without content is a wrapper. A reader sees neither its insertion nor its deletion.
fn add_block_operation(block: Option<Block>, wrap: fn(Block) -> BlockOperation, delta: &mut Delta) {
    let Some(block) = block else { return };
    let is_read = block
        .walk()
        .any(|block| !(block.links.is_empty() && block.images.is_empty() && block.texts.is_empty()));
    let operations = if is_read { &mut delta.structure } else { &mut delta.nested };
    operations.push(wrap(block));
}

/// A copy of the block with unmatched content only: child blocks without a partner, and elements that did not move.
fn unmatched_part(
    nodes: &DiffTree,
    number: usize,
    partners: &[Option<usize>],
    moved: &HashMap<(usize, ElementKind), Vec<u32>>,
) -> Option<Block> {
    let block = nodes.all[number].block?;
    let mut copy = Block { reference: nodes.reference(number).0, ..shallow(block) };
    copy.links = without(&block.links, moved.get(&(number, ElementKind::Link)));
    copy.images = without(&block.images, moved.get(&(number, ElementKind::Image)));
    copy.texts = without(&block.texts, moved.get(&(number, ElementKind::Text)));
    let open = nodes.all[number].children.iter().filter(|&&child| partners[child].is_none());
    copy.children = open.filter_map(|&child| unmatched_part(nodes, child, partners, moved)).collect();
    Some(copy)
}

/// A block without its ID and content, but with the positions of all of its links and images.
pub(super) fn shallow(block: &Block) -> Block {
    Block {
        rect: block.rect,
        doc: block.doc,
        importance: block.importance,
        role: block.role,
        places: block.places.clone(),
        ..Block::default()
    }
}

fn without<T: Clone>(all: &[T], gone: Option<&Vec<u32>>) -> Vec<T> {
    let Some(gone) = gone else { return all.to_vec() };
    let gone: std::collections::HashSet<u32> = gone.iter().copied().collect();
    (0u32..).zip(all).filter(|(index, _)| !gone.contains(index)).map(|(_, item)| item.clone()).collect()
}

fn appearance(before: &DiffTree, after: &DiffTree, b: usize, a: usize) -> Option<Appearance> {
    let (was, is) = (before.all[b].block?, after.all[a].block?);
    let importance = (is.is_leaf() && was.importance != is.importance).then_some(is.importance);
    let appearance = Appearance {
        block: super::BlockRef::default(),
        rect: (was.rect != is.rect).then_some(is.rect),
        doc: (was.doc != is.doc).then_some(is.doc),
        importance,
        role: (was.role != is.role).then_some(is.role),
        places: (was.places != is.places).then(|| is.places.clone()),
    };
    let changed = appearance.rect.is_some()
        || appearance.doc.is_some()
        || appearance.importance.is_some()
        || appearance.role.is_some()
        || appearance.places.is_some();
    changed.then(|| Appearance { block: after.reference(a), ..appearance })
}

/// A block whose place in the tree changed.
pub(super) struct RelocatedBlock {
    pub(super) before: usize,
    pub(super) after: usize,
}

/// Blocks with a new parent, and siblings outside the longest run that kept its order.
pub(super) fn find_relocated(
    before: &DiffTree,
    after: &DiffTree,
    matching: &Matching,
) -> Vec<RelocatedBlock> {
    let mut found = Vec::new();
    for (parent, node) in after.all.iter().enumerate() {
        let home = matching.to_before[parent];
        let partners = node.children.iter().filter_map(|&child| Some((matching.to_before[child]?, child)));
        let (unmoved, came): (Vec<_>, Vec<_>) =
            partners.partition(|&(partner, _)| Some(before.all[partner].parent) == home);
        let positions: Vec<usize> =
            unmoved.iter().map(|&(partner, _)| before.all[partner].position).collect();
        let in_order = longest_increasing(&positions);
        let out_of_order = unmoved.iter().zip(in_order).filter(|(_, kept)| !kept).map(|(pair, _)| *pair);
        found.extend(
            came.into_iter().chain(out_of_order).map(|(before, after)| RelocatedBlock { before, after }),
        );
    }
    found
}

/// Adds moved blocks to the delta. `is_seen` marks those that change the reading order.
pub(super) fn add_moves(
    before: &DiffTree,
    after: &DiffTree,
    relocated: &[RelocatedBlock],
    is_seen: &[bool],
    delta: &mut Delta,
) {
    for (moved, is_seen) in relocated.iter().zip(is_seen) {
        let operations = if *is_seen { &mut delta.structure } else { &mut delta.nested };
        operations.push(BlockOperation::Move {
            from: before.reference(moved.before),
            to: after.reference(moved.after),
            importance: after.all[moved.after].block.map_or(0.0, |block| block.importance),
        });
    }
}

/// Marks a longest increasing subsequence by patience sorting, in O(n log n).
pub(super) fn longest_increasing(values: &[usize]) -> Vec<bool> {
    let mut kept = vec![false; values.len()];
    if values.windows(2).all(|pair| pair[0] < pair[1]) {
        kept.fill(true);
        return kept;
    }
    let mut piles: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let pile = piles.partition_point(|&top| values[top] < *value);
        previous.push(pile.checked_sub(1).map(|below| piles[below]));
        if pile == piles.len() {
            piles.push(index);
        } else {
            piles[pile] = index;
        }
    }
    let mut at = piles.last().copied();
    while let Some(index) = at {
        kept[index] = true;
        at = previous[index];
    }
    kept
}
