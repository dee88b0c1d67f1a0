//! Counts what a plan skipped and missed in a version (P-NEAR 6.1).

use perennial_core::directory::{DirectoryNode, DirectoryTree, PageChange, PageTransition, SiteHistory};

/// Counts of one version under a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VersionCounts {
    pub n_pages: usize,
    /// Pages that were not fetched, including new ones that were not found.
    pub n_skipped: usize,
    /// Changes: insertions, deletions, updates.
    pub n_changes: usize,
    /// C1s: insertions that were not found.
    pub n_missed_insertions: usize,
    /// C2s: deletions that were not found.
    pub n_missed_deletions: usize,
    /// Updates that were not found.
    pub n_missed_updates: usize,
}

/// The measures of one version.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SkipMeasures {
    /// Bypass ratio, eq. 2 (and 6).
    pub bypass: f64,
    /// Overall precision by its definition, eq. 3.
    pub precision: f64,
    /// Overall recall, eq. 4 (and 8).
    pub recall: f64,
    /// Change recall by its definition, eq. 5: skipped updates count as missed.
    pub change_recall: f64,
    /// Overall precision as the paper computes it, eq. 7.
    pub precision_7: f64,
    /// Change recall as the paper computes it, eq. 9: skipped updates do not count as missed.
    pub change_recall_9: f64,
}

impl VersionCounts {
    /// The measures; `None` for a version without a change.
    pub fn measures(&self) -> Option<SkipMeasures> {
        let [n, skipped, changes] = [self.n_pages, self.n_skipped, self.n_changes].map(|n| n as f64);
        let [inserted, deleted, updated] =
            [self.n_missed_insertions, self.n_missed_deletions, self.n_missed_updates].map(|n| n as f64);
        let right = n - inserted;
        (self.n_changes > 0 && self.n_pages > 0).then(|| SkipMeasures {
            bypass: skipped / n,
            precision: right / (right + deleted).max(1.0),
            recall: right / n,
            change_recall: (changes - inserted - deleted - updated) / changes,
            precision_7: right / (n + deleted),
            change_recall_9: (changes - inserted - deleted) / changes,
        })
    }
}

/// A version after the training window: the pages before it, and its changes.
pub struct TestedVersion<'a> {
    pub history: &'a SiteHistory,
    /// The existing pages before this version, ascending.
    pub present: &'a [u32],
    pub changes: &'a [PageChange],
}

impl TestedVersion<'_> {
    /// Counts what a plan that fetched these pages skipped and missed.
    pub fn count(&self, fetched: &[u32]) -> VersionCounts {
        let history = self.history;
        let mut is_fetched = vec![false; history.nodes.len()];
        fetched.iter().for_each(|&page| is_fetched[page as usize] = true);
        let reach = ReachedDirectories::new(history, self.present);
        let seen = ReachedDirectories::new(history, fetched);
        let mut counted = VersionCounts { n_changes: self.changes.len(), ..VersionCounts::default() };
        let n_skipped_before = self.present.iter().filter(|&&page| !is_fetched[page as usize]).count();
        let (mut n_inserted, mut n_deleted) = (0, 0);
        for change in self.changes {
            let is_fetched = is_fetched[change.page as usize];
            match change.change {
                PageTransition::Inserted => {
                    n_inserted += 1;
                    let directory = reach.nearest(history, history.nodes[change.page as usize]);
                    counted.n_missed_insertions += usize::from(!seen.has(directory));
                }
                PageTransition::Deleted => {
                    n_deleted += 1;
                    counted.n_missed_deletions += usize::from(!is_fetched);
                }
                PageTransition::Updated(_) => counted.n_missed_updates += usize::from(!is_fetched),
            }
        }
        // A page that comes and goes within one version is not in the count before it.
        counted.n_pages = (self.present.len() + n_inserted).saturating_sub(n_deleted);
        let n_skipped = n_skipped_before + counted.n_missed_insertions;
        counted.n_skipped = n_skipped.saturating_sub(counted.n_missed_deletions).min(counted.n_pages);
        counted
    }

    /// The pages in the order of an oracle: those that show most changes first. An inserted page is found when any page
    /// in its directory is fetched.
    pub fn oracle(&self) -> Vec<u32> {
        let history = self.history;
        let reach = ReachedDirectories::new(history, self.present);
        let mut gain = vec![0u32; history.nodes.len()];
        let mut shown_by = vec![u32::MAX; history.tree.len()];
        let known = |change: &&PageChange| change.change != PageTransition::Inserted;
        let changed: Vec<u32> = self.changes.iter().filter(known).map(|change| change.page).collect();
        changed.iter().for_each(|&page| gain[page as usize] += 1);
        for &page in changed.iter().chain(self.present) {
            for up in history.tree.upwards(history.nodes[page as usize]).skip(1) {
                let shown_by = &mut shown_by[up.0 as usize];
                if *shown_by != u32::MAX {
                    break;
                }
                *shown_by = page;
            }
        }
        for change in self.changes.iter().filter(|change| change.change == PageTransition::Inserted) {
            let directory = reach.nearest(history, history.nodes[change.page as usize]);
            if let Some(gain) = gain.get_mut(shown_by[directory.0 as usize] as usize) {
                *gain += 1;
            }
        }
        let mut order: Vec<u32> = self.present.to_vec();
        order.sort_by_key(|&page| std::cmp::Reverse(gain[page as usize]));
        order
    }
}

/// The directories with some given page below them.
struct ReachedDirectories(Vec<bool>);

impl ReachedDirectories {
    fn new(history: &SiteHistory, pages: &[u32]) -> ReachedDirectories {
        let mut reached = vec![false; history.tree.len()];
        for &page in pages {
            for up in history.tree.upwards(history.nodes[page as usize]).skip(1) {
                if std::mem::replace(&mut reached[up.0 as usize], true) {
                    break;
                }
            }
        }
        ReachedDirectories(reached)
    }

    fn has(&self, directory: DirectoryNode) -> bool {
        self.0[directory.0 as usize]
    }

    /// The nearest reached directory above a page, else the site.
    fn nearest(&self, history: &SiteHistory, page: DirectoryNode) -> DirectoryNode {
        let mut up = history.tree.upwards(page).skip(1);
        up.find(|directory| self.has(*directory)).unwrap_or(DirectoryTree::ROOT)
    }
}
