//! Items of a page -> the share of list entries in any part of it.

use super::facts::PageFacts;

/// Positions of the words of items.
#[derive(Default)]
pub(super) struct Teasers {
    /// Words of items, and all words, before each node.
    n_before: Vec<(u32, u32)>,
}

impl Teasers {
    pub(super) fn new(page: &PageFacts, is_covered: &[bool]) -> Teasers {
        let (mut n_items, mut n_all) = (0u32, 0u32);
        let mut n_before = Vec::with_capacity(page.facts.len() + 1);
        for (index, is_covered) in is_covered.iter().enumerate() {
            n_before.push((n_items, n_all));
            if page.node(index as u32).is_text() && page.is_seen[index] {
                let n = page.facts[index].n_words;
                n_all = n_all.saturating_add(n);
                n_items = n_items.saturating_add(if *is_covered { n } else { 0 });
            }
        }
        n_before.push((n_items, n_all));
        Teasers { n_before }
    }

    /// The share of words between two nodes that belong to items.
    pub(super) fn share(&self, start: u32, end: u32) -> f32 {
        let Some(last) = self.n_before.len().checked_sub(1) else { return 0.0 };
        let at = |index: u32| self.n_before[(index as usize).min(last)];
        let ((items_before, all_before), (items, all)) = (at(start), at(end));
        items.saturating_sub(items_before) as f32 / all.saturating_sub(all_before).max(1) as f32
    }
}
