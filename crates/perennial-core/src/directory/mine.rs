//! The General Delta Tree -> rules "when these change, that one below them does not" (P-NEAR 3.4 and 4.2).
//!
//! From a starting directory the tree is walked down with a chain of directories that change together (a positive evolution
//! pattern). A child that keeps the chain frequent extends it; a child that is rarely with it, and negatively correlated, ends
//! it as the tail of a rule; any other is walked through with the chain unchanged. So the rules are found that no pattern and
//! no other rule subsumes (Lemma 1), and a directory is never in the head of one rule and the tail of another (Lemma 2).

use super::bits::{Bits, Counts};
use super::delta::{DeltaTree, Significance};
use super::tree::{Node, Tree};

/// With no gamma given, gammas are tried from the first to the last of these (Cohen's strong and moderate correlation).
const GAMMAS: [f64; 5] = [0.5, 0.45, 0.4, 0.35, 0.3];
/// Rules and patterns of one call; with subsumed rules there can be very many.
const MOST_FOUND: usize = 1 << 20;

/// Which DoC counts as a significant change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alpha {
    /// From this value on.
    Fixed(f64),
    /// For each starting directory the median of its DoC in transitions in which it changed. A site of ten thousand pages has a
    /// DoC of 0.001 in most weeks, and one that always changes has no correlation with anything.
    Adaptive,
}

/// The thresholds of Definitions 4 to 7.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// DoC from which a change is significant.
    pub alpha: Alpha,
    /// FoC from which a chain is a pattern.
    pub beta: f64,
    /// Least negative correlation; without it 0.5, lowered for each starting directory down to 0.3 until a rule appears.
    pub gamma: Option<f64>,
    /// Least confidence.
    pub theta: f64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { alpha: Alpha::Adaptive, beta: 0.3, gamma: None, theta: 0.7 }
    }
}

/// What makes a rule superfluous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subsumed {
    /// A pattern goes through a directory that the rule leaves out (Definition 9).
    ByPattern,
    /// Its tail lies below the tail of another rule (Definition 8).
    ByRule,
}

/// A negative evolution association rule: when all of the head change significantly, the tail does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Each directory lies in the one before; the first is the starting directory.
    pub head: Vec<Node>,
    /// A directory below the last of the head.
    pub tail: Node,
    /// Transitions in which the head, the tail, and both changed.
    pub counts: Counts,
    /// CoC.
    pub correlation: f64,
    /// The alpha with which it was found.
    pub alpha: f64,
    /// Why it is superfluous, where such rules were asked for.
    pub subsumed: Option<Subsumed>,
    /// A directory below the tail changes with the head after all, so that the tail must not be skipped.
    pub is_contradicted: bool,
}

/// A positive evolution pattern: directories, each in the one before, that change together.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectoryPattern {
    /// Two or more directories.
    pub chain: Vec<Node>,
    /// Transitions in which all of them changed.
    pub n_together: u32,
}

/// What was mined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mined {
    /// In the order of the walk.
    pub rules: Vec<Rule>,
    /// In the order of the walk.
    pub patterns: Vec<DirectoryPattern>,
    /// Whether there were more than can be kept.
    pub is_cut: bool,
}

/// Mines the rules that start at any directory.
pub fn mine(delta: &DeltaTree, thresholds: &Thresholds, with_subsumed: bool) -> Mined {
    let mut mined = Mined::default();
    for start in live_directories(delta) {
        mine_from(delta, start, thresholds, with_subsumed, &mut mined);
    }
    mined
}

/// The directories below which something changed in the window, each before those in it.
pub fn live_directories(delta: &DeltaTree) -> Vec<Node> {
    let (mut found, mut open) = (Vec::new(), vec![Tree::ROOT]);
    while let Some(directory) = open.pop() {
        if !delta.is_static(directory) {
            found.push(directory);
            open.extend(delta.tree().children(directory).filter(|child| !delta.tree().is_page(*child)));
        }
    }
    found
}

/// Adds the rules that start at one directory.
pub fn mine_from(
    delta: &DeltaTree,
    start: Node,
    thresholds: &Thresholds,
    with_subsumed: bool,
    mined: &mut Mined,
) {
    let Some(alpha) = alpha_of(delta, start, thresholds.alpha) else { return };
    let given = thresholds.gamma.map(|gamma| [gamma]);
    let gammas: &[f64] = given.as_ref().map_or(&GAMMAS, |gamma| gamma);
    let (n_rules, n_patterns) = (mined.rules.len(), mined.patterns.len());
    for &gamma in gammas {
        mined.patterns.truncate(n_patterns);
        let mut walk = Walk {
            delta,
            alpha,
            beta: thresholds.beta,
            gamma,
            theta: thresholds.theta,
            with_subsumed,
            mined,
        };
        walk.start(start);
        if mined.rules.len() > n_rules {
            break;
        }
    }
}

/// The DoC that is significant for rules starting at a directory. Nothing where it never changed, or always by the same.
fn alpha_of(delta: &DeltaTree, start: Node, alpha: Alpha) -> Option<f64> {
    match (alpha, delta.significance()) {
        (_, Significance::From(alpha)) | (Alpha::Fixed(alpha), _) => Some(alpha),
        (Alpha::Adaptive, Significance::Later) => {
            let mut degrees: Vec<f32> = delta.degrees(start).map(|degree| degree.degree).collect();
            degrees.sort_by(f32::total_cmp);
            let median = *degrees.get(degrees.len() / 2)?;
            if degrees.len() < delta.n_transitions() || degrees[0] < median {
                return Some(f64::from(median));
            }
            degrees.into_iter().find(|degree| *degree > median).map(f64::from)
        }
    }
}

/// One walk from a starting directory.
struct Walk<'a> {
    delta: &'a DeltaTree,
    alpha: f64,
    beta: f64,
    gamma: f64,
    theta: f64,
    with_subsumed: bool,
    mined: &'a mut Mined,
}

/// The chain on the way down, and where all of it changed.
#[derive(Clone)]
struct Chain {
    members: Vec<Node>,
    bits: Bits,
    subsumed: Option<Subsumed>,
}

impl Walk<'_> {
    fn start(&mut self, start: Node) {
        let bits = self.bits(start);
        if self.is_frequent(bits.count()) {
            self.below(start, &Chain { members: vec![start], bits, subsumed: None });
        }
    }

    fn bits(&self, node: Node) -> Bits {
        match self.delta.significance() {
            Significance::From(_) => self.delta.bits(node),
            Significance::Later => self.delta.bits_from(node, self.alpha),
        }
    }

    /// FoC >= beta. A chain that never changed together is no pattern, whatever beta is.
    fn is_frequent(&self, n_together: u32) -> bool {
        n_together > 0 && f64::from(n_together) >= self.beta * self.delta.n_transitions() as f64 - 1e-9
    }

    fn is_full(&mut self) -> bool {
        let is_full = self.mined.rules.len() + self.mined.patterns.len() >= MOST_FOUND;
        self.mined.is_cut |= is_full;
        is_full
    }

    /// Recursion is bounded by the levels of a tree.
    fn below(&mut self, directory: Node, chain: &Chain) {
        let children: Vec<Node> = self.live_children(directory).collect();
        for child in children {
            if self.is_full() {
                return;
            }
            let bits = self.bits(child);
            let both = chain.bits.count_with(&bits);
            if self.is_frequent(both) {
                self.extend(child, chain, &bits, both);
            } else {
                self.end(child, chain, &bits, both);
            }
        }
    }

    fn live_children(&self, directory: Node) -> impl Iterator<Item = Node> + use<'_> {
        let (delta, tree) = (self.delta, self.delta.tree());
        tree.children(directory).filter(move |child| !tree.is_page(*child) && !delta.is_static(*child))
    }

    /// The child makes a longer pattern. Rules that leave it out are subsumed by that pattern.
    fn extend(&mut self, child: Node, chain: &Chain, bits: &Bits, n_together: u32) {
        let mut members = chain.members.clone();
        members.push(child);
        if chain.subsumed.is_none() {
            self.mined.patterns.push(DirectoryPattern { chain: members.clone(), n_together });
        }
        self.below(child, &Chain { members, bits: chain.bits.and(bits), subsumed: chain.subsumed });
        if self.with_subsumed {
            self.below(
                child,
                &Chain { subsumed: chain.subsumed.or(Some(Subsumed::ByPattern)), ..chain.clone() },
            );
        }
    }

    /// The child makes a rule, or is walked through. Rules below the tail are subsumed by this one.
    fn end(&mut self, child: Node, chain: &Chain, bits: &Bits, both: u32) {
        let n = self.delta.n_transitions() as u32;
        let counts = Counts { n, first: chain.bits.count(), second: bits.count(), both };
        let correlation = counts.correlation().filter(|correlation| *correlation <= -self.gamma + 1e-9);
        let rule = correlation.filter(|_| counts.confidence() >= self.theta - 1e-9).map(|correlation| Rule {
            head: chain.members.clone(),
            tail: child,
            counts,
            correlation,
            alpha: self.alpha,
            subsumed: chain.subsumed,
            is_contradicted: self.changes_below(child, &chain.bits),
        });
        let Some(rule) = rule else { return self.below(child, chain) };
        self.mined.rules.push(rule);
        if self.with_subsumed {
            self.below(
                child,
                &Chain { subsumed: chain.subsumed.or(Some(Subsumed::ByRule)), ..chain.clone() },
            );
        }
    }

    /// Whether a directory below the tail is frequently with the head: the tail's own DoC hides it.
    fn changes_below(&self, tail: Node, head: &Bits) -> bool {
        let mut open: Vec<Node> = self.live_children(tail).collect();
        while let Some(directory) = open.pop() {
            if self.is_frequent(head.count_with(&self.bits(directory))) {
                return true;
            }
            open.extend(self.live_children(directory));
        }
        false
    }
}

/// How many pages lie in a directory now.
pub fn n_pages(delta: &DeltaTree, directory: Node) -> u64 {
    let (mut n, mut open) = (0, vec![directory]);
    while let Some(node) = open.pop() {
        if delta.size(node) > 0 {
            n += u64::from(delta.tree().is_page(node));
            open.extend(delta.tree().children(node));
        }
    }
    n
}
