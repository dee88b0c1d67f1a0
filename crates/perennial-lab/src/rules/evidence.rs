//! Statistics of the observed changes, by page and by directory.
//!
//! Sums are over observed changes, so the work is proportional to the changes plus one pass over the pages. The measure
//! of a site is a mean over weeks, so a change in a busy week is worth less. Each counts 1 / (C + 2), where C is the
//! number of changes in its week. A complete rebuild of the site therefore reveals little about single pages.

use std::collections::HashMap;

use perennial_core::directory::{DirectoryNode, DirectoryTree, PageChange, PageTransition, SiteHistory};

/// No directory.
const NONE: u32 = u32::MAX;
/// Decay per transition of the three rates: current, recent and long-term.
pub(super) const DECAYS: [f64; 3] = [0.5, 0.9, 0.95];
/// The age of pages from before the window, in weeks.
const LONG_AGO: f64 = 25.0;

/// What is known of a site when a plan is made.
#[derive(Clone)]
pub struct SiteKnowledge<'a> {
    pub history: &'a SiteHistory,
    /// The observed changes of each transition, oldest first.
    pub transitions: Vec<&'a [PageChange]>,
    /// The pages assumed to exist, ascending.
    pub present: Vec<u32>,
    /// Bytes by page number.
    pub bytes: &'a [u32],
    /// Which pages were visited in which transition, if not all of them always were.
    pub fetches: Option<&'a FetchHistory>,
}

/// Visits of a crawl that skips pages. A page that was not fetched in a week is unknown, not unchanged.
#[derive(Clone, Debug, Default)]
pub struct FetchHistory {
    /// By page number: decayed number of visits within the window, for each of the three decays.
    pub weight: Vec<[f64; 3]>,
    /// By page number: transitions since the last visit; 1 if it was in the last one.
    pub unseen: Vec<u32>,
    /// By page number: probability that the page changed in a rebuild of its directory while it was not visited.
    pub rebuilt: Vec<f64>,
}

/// The directories that hold a page, parents before children.
#[derive(Debug, Default)]
pub struct PageDirectories {
    /// The node of each directory.
    pub nodes: Vec<DirectoryNode>,
    /// The index of the parent. The site is its own parent.
    pub parents: Vec<u32>,
    /// The directory of each page, by the page's index.
    pub of_page: Vec<u32>,
    place: Vec<u32>,
}

impl PageDirectories {
    fn new(known: &SiteKnowledge<'_>) -> PageDirectories {
        let tree = &known.history.tree;
        let mut place = vec![NONE; tree.len()];
        let mut nodes = vec![DirectoryTree::ROOT];
        place[DirectoryTree::ROOT.0 as usize] = 0;
        for &page in &known.present {
            for directory in tree.upwards(known.history.nodes[page as usize]).skip(1) {
                if place[directory.0 as usize] != NONE {
                    break;
                }
                place[directory.0 as usize] = 0;
                nodes.push(directory);
            }
        }
        nodes.sort_by_key(|node| (tree.level(*node), *node));
        for (at, node) in (0..).zip(&nodes) {
            place[node.0 as usize] = at;
        }
        let parent = |node: &DirectoryNode| tree.parent(*node).map_or(0, |parent| place[parent.0 as usize]);
        let parents = nodes.iter().map(parent).collect();
        let page = |page: &u32| parent(&known.history.nodes[*page as usize]);
        let of_page = known.present.iter().map(page).collect();
        PageDirectories { nodes, parents, of_page, place }
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Always false, because the site itself is a directory.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The nearest known directory above a node.
    pub fn nearest(&self, tree: &DirectoryTree, node: DirectoryNode) -> u32 {
        let known = |up: DirectoryNode| self.place.get(up.0 as usize).copied().filter(|&place| place != NONE);
        tree.upwards(node).skip(1).find_map(known).unwrap_or(0)
    }

    /// Adds the sums of each directory to its ancestors.
    pub fn add_to_ancestors<T: Copy + std::ops::AddAssign>(&self, sums: &mut [T]) {
        for at in (1..self.len()).rev() {
            let below = sums[at];
            sums[self.parents[at] as usize] += below;
        }
    }
}

/// Columns of facts, one entry per page or directory.
pub struct SiteEvidence {
    pub directories: PageDirectories,
    /// Pages directly in each directory.
    pub n_own: Vec<f64>,
    /// Pages in each directory and below.
    pub n_below: Vec<f64>,
    /// By page: shares of its updates, for each of the three decays (0.5, 0.9, 0.95).
    pub shares: Vec<[f64; 3]>,
    /// By page: the share with decay 0.9, plus half of its own insertion.
    pub share_with_birth: Vec<f64>,
    /// By page: updates and insertions, each counted 1 and decayed by 0.9.
    pub plain: Vec<f64>,
    /// By page: number of observed updates.
    pub n_updates: Vec<f64>,
    /// By page: transitions since its creation.
    pub age: Vec<f64>,
    /// By page: transitions since its last update.
    pub quiet: Vec<f64>,
    /// By directory: decayed share of insertions directly into it.
    pub insertions: Vec<f64>,
    /// By directory: shares of updates and deletions directly in it, including deleted pages.
    pub in_directory: Vec<[f64; 3]>,
    /// By extension: slowest decayed share of updates and deletions, including deleted pages.
    pub in_extension: Vec<f64>,
    /// Pages of each extension.
    pub n_extension: Vec<f64>,
    /// By page: its extension.
    pub extension: Vec<u32>,
    /// The sum of the decayed weights of transitions with a change, for each of the three decays.
    pub weight: [f64; 3],
    /// The sum of the weights of all transitions, decayed by 0.9.
    pub plain_weight: f64,
    /// Changes per transition, decayed by 0.9.
    pub n_expected: f64,
}

impl SiteEvidence {
    /// Takes one pass over the transitions and one over the pages.
    pub fn new(known: &SiteKnowledge<'_>) -> SiteEvidence {
        let directories = PageDirectories::new(known);
        let (n, n_directories) = (known.present.len(), directories.len());
        let mut n_own = vec![0.0; n_directories];
        directories.of_page.iter().for_each(|&at| n_own[at as usize] += 1.0);
        let mut n_below = n_own.clone();
        directories.add_to_ancestors(&mut n_below);
        let mut evidence = SiteEvidence {
            directories,
            n_own,
            n_below,
            shares: vec![[0.0; 3]; n],
            share_with_birth: vec![0.0; n],
            plain: vec![0.0; n],
            n_updates: vec![0.0; n],
            age: vec![LONG_AGO; n],
            quiet: vec![LONG_AGO; n],
            insertions: vec![0.0; n_directories],
            in_directory: vec![[0.0; 3]; n_directories],
            in_extension: Vec::new(),
            n_extension: Vec::new(),
            extension: Vec::new(),
            weight: [0.0; 3],
            plain_weight: 0.0,
            n_expected: 0.0,
        };
        let mut extensions = PageExtensions::default();
        evidence.extension = known.present.iter().map(|&page| extensions.number(known, page)).collect();
        evidence.n_extension = vec![0.0; extensions.0.len()];
        evidence.extension.iter().for_each(|&at| evidence.n_extension[at as usize] += 1.0);
        evidence.in_extension = vec![0.0; extensions.0.len()];
        let mut place = vec![NONE; known.history.nodes.len()];
        (0..).zip(&known.present).for_each(|(at, &page)| place[page as usize] = at);
        let n_transitions = known.transitions.len();
        for (at, changes) in known.transitions.iter().enumerate() {
            evidence.add(known, &place, &extensions, changes, n_transitions - 1 - at);
        }
        evidence.n_expected /= evidence.plain_weight.max(1e-9);
        evidence
    }

    /// Adds the changes of a transition, `ago` transitions before the last one.
    fn add(
        &mut self,
        known: &SiteKnowledge<'_>,
        place: &[u32],
        extensions: &PageExtensions<'_>,
        changes: &[PageChange],
        ago: usize,
    ) {
        let weights = DECAYS.map(|decay| decay.powi(ago as i32));
        let n_changes = changes.len() as f64;
        self.plain_weight += weights[1];
        self.n_expected += weights[1] * n_changes;
        if changes.is_empty() {
            return;
        }
        (0..3).for_each(|d| self.weight[d] += weights[d]);
        let worth = weights.map(|weight| weight / (n_changes + 2.0));
        let weeks = ago as f64 + 1.0;
        for change in changes {
            let at = place[change.page as usize];
            if change.change != PageTransition::Inserted {
                let node = known.history.nodes[change.page as usize];
                let directory = self.directories.nearest(&known.history.tree, node) as usize;
                (0..3).for_each(|d| self.in_directory[directory][d] += worth[d]);
                if let Some(extension) = extensions.find(known, change.page) {
                    self.in_extension[extension as usize] += worth[2];
                }
            }
            match change.change {
                PageTransition::Inserted => {
                    let node = known.history.nodes[change.page as usize];
                    let directory = self.directories.nearest(&known.history.tree, node);
                    self.insertions[directory as usize] += worth[1];
                    if at != NONE {
                        self.plain[at as usize] += weights[1];
                        self.share_with_birth[at as usize] += 0.5 * worth[1];
                        self.age[at as usize] = weeks;
                    }
                }
                PageTransition::Updated(_) if at != NONE => {
                    let at = at as usize;
                    (0..3).for_each(|d| self.shares[at][d] += worth[d]);
                    self.share_with_birth[at] += worth[1];
                    self.plain[at] += weights[1];
                    self.n_updates[at] += 1.0;
                    self.quiet[at] = weeks;
                }
                _ => {}
            }
        }
    }
}

/// The extensions of existing pages, numbered.
#[derive(Default)]
struct PageExtensions<'a>(HashMap<&'a str, u32>);

impl<'a> PageExtensions<'a> {
    fn number(&mut self, known: &SiteKnowledge<'a>, page: u32) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(extension(known, page)).or_insert(next)
    }

    fn find(&self, known: &SiteKnowledge<'a>, page: u32) -> Option<u32> {
        self.0.get(extension(known, page)).copied()
    }
}

fn extension<'a>(known: &SiteKnowledge<'a>, page: u32) -> &'a str {
    let label = known.history.tree.label(known.history.nodes[page as usize]);
    let name = label.split('?').next().unwrap_or(label);
    name.rfind('.').map_or("", |dot| &name[dot..])
}
