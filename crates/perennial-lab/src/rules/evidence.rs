//! What was seen of a site's pages -> how likely each is to have changed since, and what its directory says of it.
//!
//! Every sum is over the changes that were seen, so that the work is that of the changes and one pass over the pages. The site's
//! measure is a mean over weeks, so a change in a week of many changes is worth less: each counts 1 / (C + 2), with C the
//! changes of the site in that week. A site that was rebuilt as a whole teaches little about its pages.

use std::collections::HashMap;

use perennial_core::directory::{Node, PageChange, PageTransition, SiteHistory, Tree};

/// No such directory.
const NONE: u32 = u32::MAX;
/// What one transition was worth when the next came: for rates of now, of some time, of long.
pub(super) const DECAYS: [f64; 3] = [0.5, 0.9, 0.95];
/// Weeks that stand for "before the window".
const LONG_AGO: f64 = 25.0;

/// What is known of a site when a plan is made.
#[derive(Clone)]
pub struct SiteKnowledge<'a> {
    /// The tree and the pages.
    pub history: &'a SiteHistory,
    /// What was seen in each transition, the oldest first.
    pub transitions: Vec<&'a [PageChange]>,
    /// The pages that are believed to be there, ascending.
    pub present: Vec<u32>,
    /// Bytes by page number.
    pub bytes: &'a [u32],
    /// Which transitions were looked at, where not all pages were always.
    pub looks: Option<&'a FetchHistory>,
}

/// What was looked at, where a crawl decides it. A week in which a page was not fetched is unknown, not unchanged.
#[derive(Clone, Debug, Default)]
pub struct FetchHistory {
    /// By page number: the looks within the window, each decayed, with the decays of the three rates.
    pub weight: Vec<[f64; 3]>,
    /// By page number: transitions since the last look, 1 when it was looked at in the last one.
    pub unseen: Vec<u32>,
    /// By page number: the probability that it changed with all pages around it when it was not looked at.
    pub rebuilt: Vec<f64>,
}

/// The directories that hold a page, each after the one it lies in.
#[derive(Debug, Default)]
pub struct PageDirectories {
    /// The node of each.
    pub nodes: Vec<Node>,
    /// The place of the directory it lies in; that of the site is its own.
    pub parents: Vec<u32>,
    /// The place of the directory of each page, by the page's place.
    pub of_page: Vec<u32>,
    place: Vec<u32>,
}

impl PageDirectories {
    fn new(known: &SiteKnowledge<'_>) -> PageDirectories {
        let tree = &known.history.tree;
        let mut place = vec![NONE; tree.len()];
        let mut nodes = vec![Tree::ROOT];
        place[Tree::ROOT.0 as usize] = 0;
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
        let parent = |node: &Node| tree.parent(*node).map_or(0, |parent| place[parent.0 as usize]);
        let parents = nodes.iter().map(parent).collect();
        let page = |page: &u32| parent(&known.history.nodes[*page as usize]);
        let of_page = known.present.iter().map(page).collect();
        PageDirectories { nodes, parents, of_page, place }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// There is always the site itself.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The nearest directory with pages above a node that may be new.
    pub fn nearest(&self, tree: &Tree, node: Node) -> u32 {
        let known = |up: Node| self.place.get(up.0 as usize).copied().filter(|&place| place != NONE);
        tree.upwards(node).skip(1).find_map(known).unwrap_or(0)
    }

    /// Adds to every directory what those inside it have.
    pub fn add_up<T: Copy + std::ops::AddAssign>(&self, sums: &mut [T]) {
        for at in (1..self.len()).rev() {
            let below = sums[at];
            sums[self.parents[at] as usize] += below;
        }
    }
}

/// One column for each fact about a page that is there.
pub struct SiteEvidence {
    /// Where the pages lie.
    pub directories: PageDirectories,
    /// Pages of each directory, without those deeper.
    pub n_own: Vec<f64>,
    /// Pages of each directory and below it.
    pub n_below: Vec<f64>,
    /// By page: the shares of its updates, for each of the three decays (0.5, 0.9, 0.95).
    pub shares: Vec<[f64; 3]>,
    /// By page: the middle one of these with half of its own insertion.
    pub share_with_birth: Vec<f64>,
    /// By page: its updates, decayed by 0.9, each counting 1.
    pub plain: Vec<f64>,
    /// By page: how many updates were seen.
    pub n_updates: Vec<f64>,
    /// By page: transitions since its creation and since its last update.
    pub age: Vec<f64>,
    /// See `age`.
    pub quiet: Vec<f64>,
    /// By directory: the decayed share of insertions straight into it.
    pub insertions: Vec<f64>,
    /// By directory: the shares of updates and deletions straight in it, also of pages that are gone.
    pub in_directory: Vec<[f64; 3]>,
    /// By extension: the slowest decayed share of updates and deletions, also of pages that are gone.
    pub in_extension: Vec<f64>,
    /// Pages of each extension.
    pub n_extension: Vec<f64>,
    /// By page: its extension.
    pub extension: Vec<u32>,
    /// The sum of the decayed weights of transitions with a change, for each of the three decays (0.5, 0.9, 0.95).
    pub weight: [f64; 3],
    /// The sum of the weights of all transitions, decayed by 0.9.
    pub plain_weight: f64,
    /// Changes in a mean transition, decayed by 0.9.
    pub n_expected: f64,
}

impl SiteEvidence {
    /// One pass over the transitions, one over the pages.
    pub fn new(known: &SiteKnowledge<'_>) -> SiteEvidence {
        let directories = PageDirectories::new(known);
        let (n, n_directories) = (known.present.len(), directories.len());
        let mut n_own = vec![0.0; n_directories];
        directories.of_page.iter().for_each(|&at| n_own[at as usize] += 1.0);
        let mut n_below = n_own.clone();
        directories.add_up(&mut n_below);
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

    /// Adds the changes of a transition that was `ago` transitions before the last one.
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

/// The extensions of the pages that are there, numbered.
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
