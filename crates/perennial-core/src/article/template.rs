//! Other pages of a site -> the lines that stand on many of them, which are no part of any object.

use std::collections::{HashMap, HashSet};

use super::context::word_hashes;
use super::leaves::Leaves;
use crate::text::dom::Dom;

/// Pages that are read; more teach nothing new.
pub const MAX_NEIGHBOURS: usize = 64;

/// What a page shares with its neighbours.
#[derive(Clone, Debug, Default)]
pub struct Template {
    lines: HashSet<u64>,
    n_pages: usize,
}

impl Template {
    /// The lines that stand on at least half of the neighbours, and on two at least.
    pub fn of<'d>(neighbours: impl IntoIterator<Item = &'d Dom>) -> Template {
        let pages: Vec<HashSet<u64>> =
            neighbours.into_iter().take(MAX_NEIGHBOURS).map(|dom| lines_of(&Leaves::of(dom, None))).collect();
        let n_pages = pages.len();
        let needed = n_pages.div_ceil(2).max(2);
        let mut counts: HashMap<u64, usize> = HashMap::new();
        let mut lines = HashSet::new();
        // In which order the lines of a page are counted does not reach the result.
        for line in pages.into_iter().flatten() {
            let count = counts.entry(line).or_default();
            *count += 1;
            if *count >= needed {
                lines.insert(line);
            }
        }
        Template { lines, n_pages }
    }

    /// How many pages it is made from.
    pub fn n_pages(&self) -> usize {
        self.n_pages
    }

    /// Whether a line is the site's and not the page's.
    pub(super) fn holds(&self, text: &str) -> bool {
        !self.lines.is_empty() && self.lines.contains(&line_hash(text))
    }
}

fn lines_of(leaves: &Leaves<'_>) -> HashSet<u64> {
    leaves.leaves.iter().map(|leaf| line_hash(&leaf.text)).collect()
}

/// Words count, not the marks between them.
fn line_hash(text: &str) -> u64 {
    word_hashes(text).fold(0, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(17))
}
