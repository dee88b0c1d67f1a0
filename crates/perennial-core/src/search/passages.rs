//! A tree -> the texts of its blocks, without repetitions.

use std::collections::HashSet;

use crate::page::segment::{BlockRole, BlockTree};

/// A text of a page, with the role of its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage<'t> {
    /// The text as a reader sees it.
    pub text: &'t str,
    /// Role of the first block with this text.
    pub role: BlockRole,
}

/// All passages of a page, in reading order. A text in several blocks is one passage.
pub fn passages(tree: &BlockTree) -> Vec<Passage<'_>> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for block in tree.leaves() {
        for text in block.words().filter(|text| text.contains(char::is_alphanumeric)) {
            if seen.insert(text) {
                found.push(Passage { text, role: block.role });
            }
        }
    }
    found
}
