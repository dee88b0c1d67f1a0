//! Other pages of a site -> lines on many of them, which do not belong to any article.

use std::collections::{HashMap, HashSet};

use super::context::word_hashes;
use super::leaves::Leaves;
use crate::text::dom::Dom;

/// The maximum number of pages; more would add nothing.
pub const MAX_NEIGHBOURS: usize = 64;

/// The common lines of a site's pages.
#[derive(Clone, Debug, Default)]
pub struct Template {
    lines: HashSet<u64>,
    n_pages: usize,
}

impl Template {
    /// The lines on at least half of the neighbours, and on at least two.
    pub fn from_neighbours<'d>(neighbours: impl IntoIterator<Item = &'d Dom>) -> Template {
        let pages: Vec<HashSet<u64>> = neighbours
            .into_iter()
            .take(MAX_NEIGHBOURS)
            .map(|dom| line_hashes(&Leaves::from_dom(dom, None)))
            .collect();
        let n_pages = pages.len();
        let needed = n_pages.div_ceil(2).max(2);
        let mut counts: HashMap<u64, usize> = HashMap::new();
        let mut lines = HashSet::new();
        // The order of the lines does not affect the result.
        for line in pages.into_iter().flatten() {
            let count = counts.entry(line).or_default();
            *count += 1;
            if *count >= needed {
                lines.insert(line);
            }
        }
        Template { lines, n_pages }
    }

    pub fn n_pages(&self) -> usize {
        self.n_pages
    }

    /// Whether a line belongs to the template.
    pub(super) fn holds(&self, text: &str) -> bool {
        !self.lines.is_empty() && self.lines.contains(&line_hash(text))
    }
}

fn line_hashes(leaves: &Leaves<'_>) -> HashSet<u64> {
    leaves.leaves.iter().map(|leaf| line_hash(&leaf.text)).collect()
}

/// Words count, punctuation does not.
fn line_hash(text: &str) -> u64 {
    word_hashes(text).fold(0, |hash, word| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(17))
}
