//! Synthetic histories: the random trees of P-NEAR 6.3, and sites whose directories exclude each other.

use perennial_core::directory::{PageTransition, SiteHistory};
use perennial_core::rng::Rng;

/// The random trees of P-NEAR 6.3. Size, fan-out and depth shape the first version, a share of changes the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomTrees {
    /// N: nodes of the first version.
    pub n_nodes: usize,
    /// F: nodes in a directory.
    pub fan_out: usize,
    /// D: levels below the site.
    pub depth: usize,
    /// V: versions.
    pub n_versions: usize,
    /// C: share of the pages that change per version. A third each are inserted, deleted and updated.
    pub change: f64,
    pub seed: u64,
}

impl Default for RandomTrees {
    fn default() -> RandomTrees {
        RandomTrees { n_nodes: 1000, fan_out: 10, depth: 5, n_versions: 50, change: 0.03, seed: 1 }
    }
}

impl RandomTrees {
    pub fn build(&self) -> SiteHistory {
        let mut rng = Rng::from_parts(&[self.seed, 0x7472_6565]);
        let mut history = SiteHistory::new("random");
        let directories = self.directories();
        history.begin_version("0");
        let n_pages = self.n_nodes.saturating_sub(directories.len()).max(1);
        let mut present = Vec::with_capacity(n_pages);
        for page in 0..n_pages {
            present.push(add_page(&mut history, &directories, page, page));
        }
        let n_changes = ((self.change * n_pages as f64) as usize).max(1);
        for version in 1..self.n_versions {
            history.begin_version(&version.to_string());
            // Each version changes a page at most once, because pages are drawn without replacement.
            let n_sampled = n_changes.min(present.len());
            for sampled in 0..n_sampled {
                let other = sampled + rng.below(present.len() - sampled);
                present.swap(sampled, other);
            }
            let n_deleted = n_sampled / 3;
            for &page in &present[n_deleted..n_sampled - n_sampled / 3] {
                history.add_change(page, PageTransition::Updated(1.0), 1000);
            }
            for page in &mut present[..n_deleted] {
                history.add_change(*page, PageTransition::Deleted, 0);
                let number = history.nodes.len();
                *page = add_page(&mut history, &directories, rng.below(directories.len()), number);
            }
        }
        history
    }

    /// Paths of the directories. Each level is full before the next begins. With a fan-out of ten they are a tenth of
    /// all nodes.
    fn directories(&self) -> Vec<String> {
        let n_wanted = (self.n_nodes / self.fan_out.max(2)).max(1);
        let mut all = vec![String::new()];
        let (mut level_start, mut level) = (0, 1);
        while all.len() < n_wanted && level < self.depth {
            let level_end = all.len();
            'full: for above in level_start..level_end {
                for child in 0..self.fan_out.max(1) {
                    if all.len() >= n_wanted {
                        break 'full;
                    }
                    let path = format!("{}d{child}/", all[above]);
                    all.push(path);
                }
            }
            (level_start, level) = (level_end, level + 1);
        }
        all
    }
}

fn add_page(history: &mut SiteHistory, directories: &[String], directory: usize, number: usize) -> u32 {
    let page = history.add_page(&format!("{}p{number}", directories[directory % directories.len()]));
    history.add_change(page, PageTransition::Inserted, 1000);
    page
}

/// A site with pairs of directories of which one changes at a time, one that always changes a little, and one that
/// never changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExclusiveSite {
    pub n_pairs: usize,
    /// Pages of each directory of a pair.
    pub n_pages: usize,
    pub n_versions: usize,
    pub seed: u64,
}

impl Default for ExclusiveSite {
    fn default() -> ExclusiveSite {
        ExclusiveSite { n_pairs: 1, n_pages: 60, n_versions: 60, seed: 1 }
    }
}

impl ExclusiveSite {
    pub fn build(&self) -> SiteHistory {
        let mut rng = Rng::from_parts(&[self.seed, 0x6578_636c]);
        let mut history = SiteHistory::new(&format!("exclusive-{}", self.seed));
        history.begin_version("0");
        let mut add = |directory: String, n: usize| -> Vec<u32> {
            let page = |page: usize| {
                let page = history.add_page(&format!("{directory}/{page}.html"));
                history.add_change(page, PageTransition::Inserted, 1000);
                page
            };
            (0..n).map(page).collect()
        };
        let pairs: Vec<[Vec<u32>; 2]> = (0..self.n_pairs)
            .map(|pair| {
                [add(format!("spring{pair}"), self.n_pages), add(format!("autumn{pair}"), self.n_pages)]
            })
            .collect();
        let news = add("news".to_owned(), self.n_pages / 3);
        add("about".to_owned(), self.n_pages);
        let mut season = vec![0; self.n_pairs];
        for version in 1..self.n_versions {
            history.begin_version(&version.to_string());
            for (pair, season) in pairs.iter().zip(&mut season) {
                *season ^= usize::from(rng.unit() < 0.5);
                change_some(&mut history, &pair[*season], 0.3, &mut rng);
            }
            change_some(&mut history, &news, 0.15, &mut rng);
        }
        history
    }
}

fn change_some(history: &mut SiteHistory, pages: &[u32], share: f64, rng: &mut Rng) {
    for &page in pages {
        if rng.unit() < share {
            history.add_change(page, PageTransition::Updated(1.0), 1000);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_the_configured_size_and_changes() {
        let trees = RandomTrees { n_nodes: 1000, change: 0.06, n_versions: 10, ..RandomTrees::default() };
        let history = trees.build();
        assert_eq!((history.versions.len(), history.n_skipped), (10, 0));
        assert_eq!(crate::rules::version_sizes(&history), vec![900; 10]);
        assert!(history.versions[1..].iter().all(|version| version.changes.len() == 54));
        assert_eq!(history.nodes, trees.build().nodes);
        assert!(history.nodes.iter().all(|node| history.tree.level(*node) <= 5));
    }

    #[test]
    fn of_a_pair_one_directory_changes_at_a_time() {
        let history = ExclusiveSite { n_pairs: 2, ..ExclusiveSite::default() }.build();
        for version in &history.versions[1..] {
            let changed = |directory: &str| {
                version.changes.iter().any(|change| {
                    history.tree.path(history.nodes[change.page as usize]).starts_with(directory)
                })
            };
            assert!(changed("/spring0/") != changed("/autumn0/"));
            assert!(changed("/spring1/") != changed("/autumn1/"));
            assert!(!changed("/about/"));
        }
    }
}
