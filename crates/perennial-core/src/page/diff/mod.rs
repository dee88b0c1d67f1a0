//! Two block trees -> a [`Delta`]: inserted, deleted, updated and moved content (P-VISUAL 5; docs/papers.md, Vi-DIFF
//! and Vi-Delta).
//!
//! [`diff`] first matches the blocks (step 0, which the paper omits), descends where IDs differ, then pairs links,
//! images and texts. [`Delta::apply`] turns the version before into exactly the version after. `docs/videlta.md`
//! describes the Vi-Delta format.
//!
//! The cost is O(n log n) in the number of elements. Hash maps find equal IDs. Shared words find similar blocks and
//! texts; words that too many of them share are ignored.
//!
//! | file | input and output |
//! |---|---|
//! | `tree` | a block tree -> an array of nodes |
//! | `matching` | two trees -> pairs of matching blocks |
//! | `elements` | matched blocks -> operations on their links, images and texts |
//! | `similar`, `words` | elements without a partner -> edited ones, by their distance in words |
//! | `align` | two texts -> the words that both have, in order |
//! | `regroup` | texts without a partner -> merged and split paragraphs |
//! | `order`, `structure` | matched blocks -> moves; inserted and deleted blocks, changed boxes |
//! | `items` | two lists -> inserted, removed and rewritten headlines |
//! | `totals` | two trees -> the totals that importance needs |
//! | `delta`, `videlta` | all changes between two trees; the same as Vi-Delta |
//! | `apply` | the version before and a delta -> the version after |

mod align;
mod apply;
mod delta;
mod elements;
mod items;
mod matching;
mod order;
mod regroup;
mod similar;
mod structure;
mod totals;
mod tree;
mod videlta;
mod words;

pub use align::{Word, WordRun, align, split_words};
pub use apply::ApplyError;
pub use delta::{
    Appearance, BlockDelta, BlockOperation, Delta, Element, ElementKind, ElementMove, LinksInTexts,
    Operation, OperationKind, Regrouping, Subject, Update,
};
pub use items::{ItemChange, ItemChangeKind, ItemDelta};
pub use words::{n_words, word_distance, word_hashes};

pub use crate::page::segment::BlockRef;
use crate::page::segment::BlockTree;

/// Whether quotes, dashes, spaces, case and Unicode forms are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Typography {
    #[default]
    Ignored,
    Compared,
}

/// Compares two versions of a page.
pub fn diff(before: &BlockTree, after: &BlockTree) -> Delta {
    diff_with(before, after, Typography::Ignored)
}

/// Like [`diff`], with or without changes of typography.
pub fn diff_with(before: &BlockTree, after: &BlockTree, typography: Typography) -> Delta {
    let mut delta = Delta {
        url: after.url.clone(),
        engine: after.engine.clone(),
        from: before.version.clone(),
        to: after.version.clone(),
        ..Delta::default()
    };
    if has_too_many_siblings(before) || has_too_many_siblings(after) {
        delta.replacement = Some(Box::new(after.clone()));
        return delta;
    }
    let list = after.list.as_ref();
    delta.items = items::compare_items(before.list.as_ref(), list);
    find_operations(before, after, typography, &mut delta);
    if delta.items.is_none() && !delta.is_empty() {
        delta.items = items::same_items(list);
    }
    if !delta.is_empty() {
        totals::add_totals(before, after, &mut delta);
    }
    delta
}

fn find_operations(before: &BlockTree, after: &BlockTree, typography: Typography, delta: &mut Delta) {
    let (before, after) = (tree::DiffTree::new(before), tree::DiffTree::new(after));
    let matching = matching::match_blocks(&before, &after);
    let found = elements::find_changes(&before, &after, &matching, typography, delta);
    structure::find_structure(&before, &after, &matching, &found.moved, delta);
    let relocated = structure::find_relocated(&before, &after, &matching);
    if !(relocated.is_empty() && found.moves.is_empty()) {
        let order = order::find_visible_moves(&before, &after, &found, &relocated);
        structure::add_moves(&before, &after, &relocated, &order.has_block_moved, delta);
        elements::add_moves(&before, &after, &found.moves, &order.has_element_moved, delta);
    }
}

/// References store 16 bits per level, which limits the number of children.
fn has_too_many_siblings(tree: &BlockTree) -> bool {
    let too_many = |n: usize| n >= usize::from(u16::MAX);
    too_many(tree.blocks.len()) || tree.walk().any(|block| too_many(block.children.len()))
}

#[cfg(test)]
mod tests;
