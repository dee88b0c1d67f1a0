//! Holds pages whose stylesheets and images are not captured yet, until they can be analysed.
//!
//! A page is captured before its subresources. If it were laid out at once, its layout would differ from that of the
//! next visit, and the difference would count as a change.

use std::collections::{HashMap, HashSet};

use perennial_core::url::PageId;

#[derive(Debug, Default)]
pub(super) struct PendingStyles {
    /// The pages that wait for each subresource.
    waiting: HashMap<PageId, Vec<PageId>>,
    /// The missing subresources of each page.
    missing: HashMap<PageId, HashSet<PageId>>,
}

impl PendingStyles {
    /// Whether the page has to wait for its new subresources.
    pub(super) fn put(&mut self, page: PageId, subresources: impl Iterator<Item = PageId>) -> bool {
        let missing: HashSet<PageId> = subresources.collect();
        if missing.is_empty() {
            return false;
        }
        for subresource in &missing {
            self.waiting.entry(*subresource).or_default().push(page);
        }
        self.missing.insert(page, missing);
        true
    }

    /// Marks a subresource as captured or failed. Returns the pages that need no other.
    pub(super) fn take(&mut self, subresource: PageId) -> Vec<PageId> {
        let mut pages = self.waiting.remove(&subresource).unwrap_or_default();
        pages.retain(|page| {
            let Some(missing) = self.missing.get_mut(page) else { return false };
            missing.remove(&subresource);
            missing.is_empty()
        });
        for page in &pages {
            self.missing.remove(page);
        }
        pages
    }

    pub(super) fn n_waiting(&self) -> usize {
        self.missing.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.missing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_waits_for_the_last_of_its_subresources() {
        let mut pending_styles = PendingStyles::default();
        assert!(!pending_styles.put(PageId(1), [].into_iter()));
        assert!(pending_styles.put(PageId(2), [PageId(8), PageId(9)].into_iter()));
        assert!(pending_styles.put(PageId(3), [PageId(9)].into_iter()));
        assert_eq!(pending_styles.take(PageId(9)), [PageId(3)]);
        assert_eq!(pending_styles.take(PageId(7)), []);
        assert_eq!(pending_styles.take(PageId(8)), [PageId(2)]);
        assert!(pending_styles.is_empty());
    }
}
