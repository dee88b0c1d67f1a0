//! Versions of a site -> the General Delta Tree: for each node, the transitions in which it changed significantly
//! (P-NEAR 4.1, Definitions 1, 2 and 11).
//!
//! A version is handed in as its differences from the one before and costs as much as these: each changed page and each
//! directory above one is touched once. The window slides by itself. The bits of a node lie in a ring; those that fell out
//! of the window are cleared when the node is touched next, and masked until then.

use super::bits::Bits;
use super::tree::{Node, Tree};

/// What happened to a page between two versions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PageTransition {
    /// It was not there before.
    Inserted,
    /// It is not there any more.
    Deleted,
    /// Its content is another. The number says how much of it, from 0 to 1: the paper counts 1, and suggests in its section
    /// 8 to do better.
    Updated(f32),
}

/// What is recorded of a directory and a transition in which something below it changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Degree {
    /// The transition, counted from the first one ever.
    pub transition: u32,
    /// DoC: the share of the consolidated subtree that changed.
    pub degree: f32,
    /// How many pages changed.
    pub n_pages: u32,
}

/// Which DoC is significant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Significance {
    /// From this DoC on. Only bits are kept.
    From(f64),
    /// Decided when rules are mined: the degrees are kept beside the bits, which say whether anything changed.
    Later,
}

/// The union tree with a bit for each node and transition.
#[derive(Clone, Debug)]
pub struct DeltaTree {
    tree: Tree,
    significance: Significance,
    /// Length of the window in transitions.
    window: usize,
    n_transitions: u32,
    /// Nodes of the subtree that are there now, with the node itself; 0 when it is not there.
    size: Vec<u32>,
    /// The last transition that touched the node, plus one.
    touched: Vec<u32>,
    bits: Vec<u64>,
    /// Degrees by directory, oldest first; empty for pages and where only bits are kept.
    degrees: Vec<Vec<Degree>>,
    scratch: Scratch,
}

/// Sums of one transition, by directory.
#[derive(Clone, Debug, Default)]
struct Scratch {
    sums: Vec<Sums>,
    /// Directories that were touched, by level.
    by_level: Vec<Vec<u32>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    is_listed: bool,
    /// Nodes that came, less nodes that went.
    growth: i64,
    n_inserted: u32,
    n_pages: u32,
    changed: f64,
}

impl DeltaTree {
    /// A tree without versions, which remembers `window` transitions.
    pub fn new(site: &str, window: usize, significance: Significance) -> DeltaTree {
        DeltaTree::with_tree(Tree::new(site), window, significance)
    }

    /// The same over the nodes of a tree that is there.
    pub fn with_tree(tree: Tree, window: usize, significance: Significance) -> DeltaTree {
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
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The node of a page, a new one if it was never met.
    pub fn page(&mut self, path: &str) -> Node {
        self.tree.page(path)
    }

    /// Transitions in the window so far.
    pub fn n_transitions(&self) -> usize {
        self.window.min(self.n_transitions as usize)
    }

    /// Transitions that the window can hold.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Number of the oldest transition in the window, counted from the first one ever.
    pub fn oldest(&self) -> u32 {
        self.n_transitions - self.n_transitions() as u32
    }

    /// Which DoC is significant.
    pub fn significance(&self) -> Significance {
        self.significance
    }

    /// Nodes of the present subtree, with the directory itself; 0 when it is not there.
    pub fn size(&self, node: Node) -> u32 {
        self.size.get(node.0 as usize).copied().unwrap_or(0)
    }

    /// Takes in the first version: its pages are there, and no transition is counted.
    pub fn begin(&mut self, pages: impl IntoIterator<Item = Node>) {
        self.take_in(pages.into_iter().map(|page| (page, PageTransition::Inserted)), false);
    }

    /// Takes in the next version by its differences. A change that cannot be, such as the deletion of a page that is not
    /// there, is passed over; the number of these is returned.
    pub fn add(&mut self, changes: impl IntoIterator<Item = (Node, PageTransition)>) -> usize {
        self.n_transitions += 1;
        self.take_in(changes, true)
    }

    fn take_in(
        &mut self,
        changes: impl IntoIterator<Item = (Node, PageTransition)>,
        is_transition: bool,
    ) -> usize {
        self.grow();
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.sums.resize(self.tree.len(), Sums::default());
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
                self.note(page, changed, 1);
            }
            let sums =
                Sums { growth, n_inserted: u32::from(growth == 1), n_pages: 1, changed, ..Sums::default() };
            scratch.add(&self.tree, page, sums);
        }
        self.settle(&mut scratch, is_transition);
        self.scratch = scratch;
        n_passed_over
    }

    /// Makes place for the nodes of the tree. Capacity grows by an eighth and not by half, so that little lies idle.
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

    /// From the deepest directories up: sizes, degrees, bits.
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
                    self.note(Node(directory), sums.changed / n_consolidated, sums.n_pages);
                }
                scratch.add(&self.tree, Node(directory), sums);
            }
            scratch.by_level[level] = directories;
        }
    }

    /// Notes the DoC of a node in the current transition.
    fn note(&mut self, node: Node, degree: f64, n_pages: u32) {
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
            // A batch at a time, so that a degree is moved as often as it is kept.
            let n_expired = degrees.partition_point(|degree| degree.transition < oldest);
            if n_expired > degrees.len() / 2 {
                degrees.drain(..n_expired);
            }
            degrees.push(Degree { transition: self.n_transitions - 1, degree: degree as f32, n_pages });
        }
    }

    /// Clears the bits of transitions after the one that touched the node last: they are those of a window ago.
    fn expire(&mut self, at: usize) {
        let stride = self.window.div_ceil(64);
        let (from, to) = (self.touched[at], self.n_transitions);
        clear_ring(&mut self.bits[at * stride..(at + 1) * stride], self.window, from, to);
    }

    /// The transitions of the window in which a node changed significantly, by their place in the ring. All nodes have the
    /// same places, so that they can be compared.
    pub fn bits(&self, node: Node) -> Bits {
        let (at, stride) = (node.0 as usize, self.window.div_ceil(64));
        let Some(words) = self.bits.get(at * stride..(at + 1) * stride) else {
            return Bits::none(self.window);
        };
        let mut words = words.to_vec();
        clear_ring(&mut words, self.window, self.touched[at], self.n_transitions);
        Bits { words }
    }

    /// The same for a DoC of `alpha`, where degrees are kept.
    pub fn bits_from(&self, node: Node, alpha: f64) -> Bits {
        let mut bits = Bits::none(self.window);
        for degree in self.degrees(node).filter(|degree| f64::from(degree.degree) >= alpha) {
            bits.set(degree.transition as usize % self.window);
        }
        bits
    }

    /// The degrees of a directory within the window, oldest first; transitions without a change have none.
    pub fn degrees(&self, node: Node) -> impl DoubleEndedIterator<Item = &Degree> + Clone {
        let all: &[Degree] = self.degrees.get(node.0 as usize).map_or(&[], Vec::as_slice);
        let oldest = self.oldest();
        all[all.partition_point(|degree| degree.transition < oldest)..].iter()
    }

    /// Whether nothing in a subtree changed within the window: it is static.
    pub fn is_static(&self, node: Node) -> bool {
        self.touched.get(node.0 as usize).is_none_or(|&touched| touched <= self.oldest())
    }

    /// Bytes that the tree and its bits take.
    pub fn n_bytes(&self) -> usize {
        let columns = 4 * (self.size.capacity() + self.touched.capacity()) + 8 * self.bits.capacity();
        let degrees: usize = self.degrees.iter().map(|d| 24 + 12 * d.capacity()).sum();
        let scratch = std::mem::size_of::<Sums>() * self.scratch.sums.capacity()
            + self.scratch.by_level.iter().map(|level| 24 + 4 * level.capacity()).sum::<usize>();
        self.tree.n_bytes() + columns + degrees + scratch
    }
}

impl Scratch {
    /// Adds the sums of a node to those of its directory.
    fn add(&mut self, tree: &Tree, node: Node, sums: Sums) {
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
