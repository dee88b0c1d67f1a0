//! Versions of a site -> the General Delta Tree: for each node, the transitions in which it changed significantly
//! (P-NEAR 4.1, Definitions 1, 2 and 11).
//!
//! The input of a version is its differences from the previous one, and the work is proportional to them: each
//! changed page and each directory above one is updated once. The window slides automatically. The bits of a node
//! form a ring. Bits outside of the window are cleared at the node's next update, and masked until then.

use super::bits::TransitionBits;
use super::tree::{DirectoryNode, DirectoryTree};

/// A page's change between two versions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PageTransition {
    /// The page is new.
    Inserted,
    /// The page is gone.
    Deleted,
    /// The content changed, by this share from 0 to 1. The paper always counts 1, and its section 8 suggests shares.
    Updated(f32),
}

/// A directory's change in one transition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeDegree {
    /// The transition, counted from the first one ever.
    pub transition: u32,
    /// DoC: the share of the consolidated subtree that changed.
    pub degree: f32,
    /// Number of changed pages.
    pub n_pages: u32,
}

/// Which DoC is significant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Significance {
    /// From this DoC on. Only bits are kept.
    From(f64),
    /// Decided by the miner: degrees are kept in addition to the bits, which show any change.
    Later,
}

/// The union tree with a bit for each node and transition.
#[derive(Clone, Debug)]
pub struct DeltaTree {
    tree: DirectoryTree,
    significance: Significance,
    window: usize,
    n_transitions: u32,
    /// Number of existing nodes in the subtree, including the node itself; 0 if it does not exist.
    size: Vec<u32>,
    /// The last transition that updated the node, plus one.
    touched: Vec<u32>,
    bits: Vec<u64>,
    /// Degrees by directory, oldest first; empty for pages, and if only bits are kept.
    degrees: Vec<Vec<ChangeDegree>>,
    scratch: Scratch,
}

/// Sums of one transition, by directory.
#[derive(Clone, Debug, Default)]
struct Scratch {
    sums: Vec<DirectorySums>,
    /// Updated directories by level.
    by_level: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct DirectorySums {
    is_listed: bool,
    /// Added nodes minus removed nodes.
    growth: i64,
    n_inserted: u32,
    n_pages: u32,
    changed: f64,
}

impl DeltaTree {
    /// A tree without versions and with a window of this many transitions.
    pub fn new(site: &str, window: usize, significance: Significance) -> DeltaTree {
        DeltaTree::with_tree(DirectoryTree::new(site), window, significance)
    }

    /// The same with the nodes of an existing tree.
    pub fn with_tree(tree: DirectoryTree, window: usize, significance: Significance) -> DeltaTree {
        DeltaTree {
            tree,
            significance,
            window: window.max(1),
            n_transitions: 0,
            size: Vec::new(),
            touched: Vec::new(),
            bits: Vec::new(),
            degrees: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// The union of all versions.
    pub fn tree(&self) -> &DirectoryTree {
        &self.tree
    }

    /// The node of a page, which is added if it is new.
    pub fn page(&mut self, path: &str) -> DirectoryNode {
        self.tree.page(path)
    }

    /// Number of transitions in the window so far.
    pub fn n_transitions(&self) -> usize {
        self.window.min(self.n_transitions as usize)
    }

    pub fn window(&self) -> usize {
        self.window
    }

    /// Number of the oldest transition in the window, counted from the first one ever.
    pub fn oldest(&self) -> u32 {
        self.n_transitions - self.n_transitions() as u32
    }

    pub fn significance(&self) -> Significance {
        self.significance
    }

    /// Number of existing nodes in the subtree, including the directory itself; 0 if it does not exist.
    pub fn size(&self, node: DirectoryNode) -> u32 {
        self.size.get(node.0 as usize).copied().unwrap_or(0)
    }

    /// Adds the pages of the first version, without counting a transition.
    pub fn begin(&mut self, pages: impl IntoIterator<Item = DirectoryNode>) {
        self.record_version(pages.into_iter().map(|page| (page, PageTransition::Inserted)), false);
    }

    /// Adds a version by its differences. Impossible changes, such as the deletion of a missing page, are skipped;
    /// their number is returned.
    pub fn add(&mut self, changes: impl IntoIterator<Item = (DirectoryNode, PageTransition)>) -> usize {
        self.n_transitions += 1;
        self.record_version(changes, true)
    }

    fn record_version(
        &mut self,
        changes: impl IntoIterator<Item = (DirectoryNode, PageTransition)>,
        is_transition: bool,
    ) -> usize {
        self.grow();
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.sums.resize(self.tree.len(), DirectorySums::default());
        scratch.by_level.resize(self.tree.len().min(256), Vec::new());
        let mut n_passed_over = 0;
        for (page, change) in changes {
            let is_there = self.size[page.0 as usize] != 0;
            let (growth, changed) = match change {
                PageTransition::Inserted if !is_there => (1, 1.0),
                PageTransition::Deleted if is_there => (-1, 1.0),
                PageTransition::Updated(degree) if is_there => (0, f64::from(degree).clamp(0.0, 1.0)),
                _ => {
                    n_passed_over += 1;
                    continue;
                }
            };
            self.size[page.0 as usize] = u32::from(growth == 1 || is_there && growth == 0);
            if is_transition {
                self.record_degree(page, changed, 1);
            }
            let sums = DirectorySums {
                growth,
                n_inserted: u32::from(growth == 1),
                n_pages: 1,
                changed,
                ..DirectorySums::default()
            };
            scratch.add(&self.tree, page, sums);
        }
        self.settle(&mut scratch, is_transition);
        self.scratch = scratch;
        n_passed_over
    }

    /// Makes room for the nodes of the tree. Capacity grows by an eighth instead of doubling, to waste little memory.
    fn grow(&mut self) {
        let (n, stride) = (self.tree.len(), self.window.div_ceil(64));
        if self.size.capacity() < n {
            let more = n + n / 8 - self.size.len();
            self.size.reserve_exact(more);
            self.touched.reserve_exact(more);
            self.bits.reserve_exact(more * stride);
        }
        self.size.resize(n, 0);
        self.touched.resize(n, 0);
        self.bits.resize(n * stride, 0);
        if self.significance == Significance::Later {
            self.degrees.resize(n, Vec::new());
        }
    }

    /// Updates sizes, degrees and bits, the deepest directories first.
    fn settle(&mut self, scratch: &mut Scratch, is_transition: bool) {
        for level in (0..scratch.by_level.len()).rev() {
            let mut directories = std::mem::take(&mut scratch.by_level[level]);
            for directory in directories.drain(..) {
                let at = directory as usize;
                let mut sums = std::mem::take(&mut scratch.sums[at]);
                let before = self.size[at];
                let below = i64::from(before.saturating_sub(1)) + sums.growth;
                if before == 0 && below > 0 {
                    (sums.growth, sums.n_inserted, sums.changed) =
                        (sums.growth + 1, sums.n_inserted + 1, sums.changed + 1.0);
                } else if before > 0 && below <= 0 {
                    (sums.growth, sums.changed) = (sums.growth - 1, sums.changed + 1.0);
                }
                self.size[at] = (i64::from(before) + sums.growth).max(0) as u32;
                if is_transition {
                    let n_consolidated = f64::from(before + sums.n_inserted).max(1.0);
                    self.record_degree(DirectoryNode(directory), sums.changed / n_consolidated, sums.n_pages);
                }
                scratch.add(&self.tree, DirectoryNode(directory), sums);
            }
            scratch.by_level[level] = directories;
        }
    }

    /// Records the DoC of a node in the current transition.
    fn record_degree(&mut self, node: DirectoryNode, degree: f64, n_pages: u32) {
        let at = node.0 as usize;
        self.expire(at);
        self.touched[at] = self.n_transitions;
        let is_significant = match self.significance {
            Significance::From(alpha) => degree >= alpha && degree > 0.0,
            Significance::Later => degree > 0.0,
        };
        if is_significant {
            let place = (self.n_transitions as usize - 1) % self.window;
            self.bits[at * self.window.div_ceil(64) + place / 64] |= 1 << (place % 64);
        }
        if self.significance == Significance::Later && degree > 0.0 && !self.tree.is_page(node) {
            let oldest = self.oldest();
            let degrees = &mut self.degrees[at];
            // Removes expired degrees in batches, so each degree is moved about once.
            let n_expired = degrees.partition_point(|degree| degree.transition < oldest);
            if n_expired > degrees.len() / 2 {
                degrees.drain(..n_expired);
            }
            degrees.push(ChangeDegree { transition: self.n_transitions - 1, degree: degree as f32, n_pages });
        }
    }

    /// Clears the bits of transitions since the node's last update, which are from the previous round of the ring.
    fn expire(&mut self, at: usize) {
        let stride = self.window.div_ceil(64);
        let (from, to) = (self.touched[at], self.n_transitions);
        clear_ring(&mut self.bits[at * stride..(at + 1) * stride], self.window, from, to);
    }

    /// The transitions of the window in which a node changed significantly, by their position in the ring. The
    /// positions are the same for all nodes, so bits can be compared.
    pub fn bits(&self, node: DirectoryNode) -> TransitionBits {
        let (at, stride) = (node.0 as usize, self.window.div_ceil(64));
        let Some(words) = self.bits.get(at * stride..(at + 1) * stride) else {
            return TransitionBits::none(self.window);
        };
        let mut words = words.to_vec();
        clear_ring(&mut words, self.window, self.touched[at], self.n_transitions);
        TransitionBits { words }
    }

    /// The same for a DoC of `alpha`, if degrees are kept.
    pub fn bits_from(&self, node: DirectoryNode, alpha: f64) -> TransitionBits {
        let mut bits = TransitionBits::none(self.window);
        for degree in self.degrees(node).filter(|degree| f64::from(degree.degree) >= alpha) {
            bits.set(degree.transition as usize % self.window);
        }
        bits
    }

    /// The degrees of a directory within the window, oldest first; transitions without a change have none.
    pub fn degrees(&self, node: DirectoryNode) -> impl DoubleEndedIterator<Item = &ChangeDegree> + Clone {
        let all: &[ChangeDegree] = self.degrees.get(node.0 as usize).map_or(&[], Vec::as_slice);
        let oldest = self.oldest();
        all[all.partition_point(|degree| degree.transition < oldest)..].iter()
    }

    /// Whether nothing in a subtree changed within the window: it is static.
    pub fn is_static(&self, node: DirectoryNode) -> bool {
        self.touched.get(node.0 as usize).is_none_or(|&touched| touched <= self.oldest())
    }

    pub fn n_bytes(&self) -> usize {
        let columns = 4 * (self.size.capacity() + self.touched.capacity()) + 8 * self.bits.capacity();
        let degrees: usize = self.degrees.iter().map(|d| 24 + 12 * d.capacity()).sum();
        let scratch = std::mem::size_of::<DirectorySums>() * self.scratch.sums.capacity()
            + self.scratch.by_level.iter().map(|level| 24 + 4 * level.capacity()).sum::<usize>();
        self.tree.n_bytes() + columns + degrees + scratch
    }
}

impl Scratch {
    /// Adds the sums of a node to those of its directory.
    fn add(&mut self, tree: &DirectoryTree, node: DirectoryNode, sums: DirectorySums) {
        let Some(parent) = tree.parent(node) else { return };
        let above = &mut self.sums[parent.0 as usize];
        above.growth += sums.growth;
        above.n_inserted += sums.n_inserted;
        above.n_pages += sums.n_pages;
        above.changed += sums.changed;
        if !above.is_listed {
            above.is_listed = true;
            self.by_level[tree.level(parent)].push(parent.0);
        }
    }
}

/// Clears the places of the transitions `from..to` in a ring of `window` bits.
fn clear_ring(words: &mut [u64], window: usize, from: u32, to: u32) {
    let n = to.saturating_sub(from) as usize;
    if n >= window {
        words.fill(0);
        return;
    }
    let start = from as usize % window;
    clear_range(words, start, (start + n).min(window));
    clear_range(words, 0, (start + n).saturating_sub(window));
}

fn clear_range(words: &mut [u64], start: usize, end: usize) {
    let mut at = start;
    while at < end {
        let (word, bit) = (at / 64, at % 64);
        let n = (64 - bit).min(end - at);
        let mask = if n == 64 { u64::MAX } else { ((1u64 << n) - 1) << bit };
        words[word] &= !mask;
        at += n;
    }
}
