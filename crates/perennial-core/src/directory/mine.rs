//! The General Delta Tree -> rules of the form "if these change, that one below them does not" (P-NEAR 3.4 and 4.2).
//!
//! From a starting directory the search descends with a chain of directories that change together (a positive
//! evolution pattern). A child that keeps the chain frequent extends it. A child that rarely changes with it and is
//! negatively correlated ends it, as the tail of a rule. Any other child is passed with the chain unchanged. This
//! finds the rules that no pattern and no other rule subsumes (Lemma 1). No directory is in the head of one rule and
//! the tail of another (Lemma 2).

use super::bits::{CoOccurrence, TransitionBits};
use super::delta::{DeltaTree, Significance};
use super::tree::{DirectoryNode, DirectoryTree};

/// The values of gamma to try in order if none is given (Cohen's strong to moderate correlation).
const GAMMAS: [f64; 5] = [0.5, 0.45, 0.4, 0.35, 0.3];
/// The maximum number of rules and patterns per call, because there can be very many subsumed rules.
const MOST_FOUND: usize = 1 << 20;

/// Which DoC counts as a significant change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alpha {
    /// At least this value.
    Fixed(f64),
    /// For each starting directory the median of its DoC in transitions with a change. In most weeks a site of ten
    /// thousand pages has a DoC of 0.001. A directory that always changes has no correlation with anything.
    Adaptive,
}

/// The thresholds of Definitions 4 to 7.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// The minimum DoC of a significant change.
    pub alpha: Alpha,
    /// The minimum FoC of a pattern. With the median as alpha, a site that changes in every second version changes
    /// significantly in a quarter of them, so the default is a little less.
    pub beta: f64,
    /// The minimum negative correlation. By default 0.5, lowered down to 0.3 per starting directory until a rule is
    /// found.
    pub gamma: Option<f64>,
    /// The minimum confidence.
    pub theta: f64,
    /// Whether an undefined correlation excludes a rule. By default it does not.
    pub is_strict: bool,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { alpha: Alpha::Adaptive, beta: 0.2, gamma: None, theta: 0.7, is_strict: false }
    }
}

/// Why a rule is redundant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subsumption {
    /// A pattern contains a directory that the rule leaves out (Definition 9).
    ByPattern,
    /// Its tail is below the tail of another rule (Definition 8).
    ByRule,
}

/// A negative evolution association rule: if the whole head changes significantly, the tail does not.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectoryRule {
    /// Each directory contains the next; the first is the starting directory.
    pub head: Vec<DirectoryNode>,
    /// A directory below the last one of the head.
    pub tail: DirectoryNode,
    /// Transitions in which the head, the tail, and both changed.
    pub counts: CoOccurrence,
    /// CoC; `None` if head or tail changed always or never.
    pub correlation: Option<f64>,
    pub alpha: f64,
    /// Why it is redundant, if such rules were requested.
    pub subsumed: Option<Subsumption>,
    /// Whether a directory below the tail changes with the head, so the tail must not be skipped.
    pub is_contradicted: bool,
}

/// A positive evolution pattern: nested directories that change together.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectoryPattern {
    /// At least two directories.
    pub chain: Vec<DirectoryNode>,
    /// Transitions in which all of them changed.
    pub n_together: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MinedRules {
    /// In the order of the search.
    pub rules: Vec<DirectoryRule>,
    /// In the order of the search.
    pub patterns: Vec<DirectoryPattern>,
    /// Directories below a chain that never changed. Their correlation is undefined and their confidence is 1, so WARM
    /// skips them unless the thresholds are strict. They are not rules, because nothing about them correlates.
    pub static_tails: Vec<DirectoryNode>,
    /// Whether the maximum number was reached.
    pub is_cut: bool,
}

/// Finds the rules of all starting directories.
pub fn mine(delta: &DeltaTree, thresholds: &Thresholds, with_subsumed: bool) -> MinedRules {
    let mut mined = MinedRules::default();
    for start in live_directories(delta) {
        mine_from(delta, start, thresholds, with_subsumed, &mut mined);
    }
    mined
}

/// The directories with changes in the window, each before its subdirectories.
pub fn live_directories(delta: &DeltaTree) -> Vec<DirectoryNode> {
    let (mut found, mut open) = (Vec::new(), vec![DirectoryTree::ROOT]);
    while let Some(directory) = open.pop() {
        if !delta.is_static(directory) {
            found.push(directory);
            open.extend(delta.tree().children(directory).filter(|child| !delta.tree().is_page(*child)));
        }
    }
    found
}

/// Adds the rules of one starting directory.
pub fn mine_from(
    delta: &DeltaTree,
    start: DirectoryNode,
    thresholds: &Thresholds,
    with_subsumed: bool,
    mined: &mut MinedRules,
) {
    let Some(alpha) = effective_alpha(delta, start, thresholds.alpha) else { return };
    let given = thresholds.gamma.map(|gamma| [gamma]);
    let gammas: &[f64] = given.as_ref().map_or(&GAMMAS, |gamma| gamma);
    let (n_rules, n_patterns, n_static) = (mined.rules.len(), mined.patterns.len(), mined.static_tails.len());
    for &gamma in gammas {
        mined.patterns.truncate(n_patterns);
        mined.static_tails.truncate(n_static);
        let mut walk = RuleWalk { delta, alpha, gamma, thresholds, with_subsumed, mined };
        walk.start(start);
        if mined.rules.len() > n_rules {
            break;
        }
    }
}

/// The significant DoC for rules of a starting directory; `None` if it never changed, or always by the same amount.
fn effective_alpha(delta: &DeltaTree, start: DirectoryNode, alpha: Alpha) -> Option<f64> {
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

/// The search from one starting directory.
struct RuleWalk<'a> {
    delta: &'a DeltaTree,
    thresholds: &'a Thresholds,
    /// The significant DoC and the negative correlation that are tried.
    alpha: f64,
    gamma: f64,
    with_subsumed: bool,
    mined: &'a mut MinedRules,
}

/// The chain of the current path, and the transitions in which all of it changed.
#[derive(Clone)]
struct DirectoryChain {
    members: Vec<DirectoryNode>,
    bits: TransitionBits,
    subsumed: Option<Subsumption>,
}

impl RuleWalk<'_> {
    fn start(&mut self, start: DirectoryNode) {
        let bits = self.bits(start);
        if self.is_frequent(bits.count()) {
            self.search_below(start, &DirectoryChain { members: vec![start], bits, subsumed: None });
        }
    }

    fn bits(&self, node: DirectoryNode) -> TransitionBits {
        match self.delta.significance() {
            Significance::From(_) => self.delta.bits(node),
            Significance::Later => self.delta.bits_from(node, self.alpha),
        }
    }

    /// FoC >= beta. A chain that never changed together is not a pattern, whatever beta is.
    fn is_frequent(&self, n_together: u32) -> bool {
        n_together > 0
            && f64::from(n_together) >= self.thresholds.beta * self.delta.n_transitions() as f64 - 1e-9
    }

    fn is_full(&mut self) -> bool {
        let is_full = self.mined.rules.len() + self.mined.patterns.len() >= MOST_FOUND;
        self.mined.is_cut |= is_full;
        is_full
    }

    /// The depth of the tree limits the recursion.
    fn search_below(&mut self, directory: DirectoryNode, chain: &DirectoryChain) {
        let children: Vec<DirectoryNode> = self.subdirectories(directory).collect();
        for child in children {
            if self.is_full() {
                return;
            }
            if self.delta.is_static(child) {
                if !self.thresholds.is_strict && chain.subsumed.is_none() {
                    self.mined.static_tails.push(child);
                }
                continue;
            }
            let bits = self.bits(child);
            let both = chain.bits.count_with(&bits);
            if self.is_frequent(both) {
                self.extend_chain(child, chain, &bits, both);
            } else {
                self.end_chain(child, chain, &bits, both);
            }
        }
    }

    fn subdirectories(&self, directory: DirectoryNode) -> impl Iterator<Item = DirectoryNode> + use<'_> {
        let tree = self.delta.tree();
        tree.children(directory).filter(move |child| !tree.is_page(*child))
    }

    fn live_children(&self, directory: DirectoryNode) -> impl Iterator<Item = DirectoryNode> + use<'_> {
        let delta = self.delta;
        self.subdirectories(directory).filter(move |child| !delta.is_static(*child))
    }

    /// Extends the chain by a child. The longer pattern subsumes rules without the child.
    fn extend_chain(
        &mut self,
        child: DirectoryNode,
        chain: &DirectoryChain,
        bits: &TransitionBits,
        n_together: u32,
    ) {
        let mut members = chain.members.clone();
        members.push(child);
        if chain.subsumed.is_none() {
            self.mined.patterns.push(DirectoryPattern { chain: members.clone(), n_together });
        }
        self.search_below(
            child,
            &DirectoryChain { members, bits: chain.bits.and(bits), subsumed: chain.subsumed },
        );
        if self.with_subsumed {
            self.search_below(
                child,
                &DirectoryChain {
                    subsumed: chain.subsumed.or(Some(Subsumption::ByPattern)),
                    ..chain.clone()
                },
            );
        }
    }

    /// Ends the chain with a rule, or passes the child. The rule subsumes rules below its tail.
    fn end_chain(&mut self, child: DirectoryNode, chain: &DirectoryChain, bits: &TransitionBits, both: u32) {
        let n = self.delta.n_transitions() as u32;
        let counts = CoOccurrence { n, first: chain.bits.count(), second: bits.count(), both };
        if !self.is_rule(&counts) {
            return self.search_below(child, chain);
        }
        self.mined.rules.push(DirectoryRule {
            head: chain.members.clone(),
            tail: child,
            counts,
            correlation: counts.correlation(),
            alpha: self.alpha,
            subsumed: chain.subsumed,
            is_contradicted: self.changes_below(child, &chain.bits),
        });
        if self.with_subsumed {
            self.search_below(
                child,
                &DirectoryChain { subsumed: chain.subsumed.or(Some(Subsumption::ByRule)), ..chain.clone() },
            );
        }
    }

    /// CoC <= -gamma and Conf >= theta. An undefined CoC is evidence neither for nor against the rule, so confidence
    /// decides.
    fn is_rule(&self, counts: &CoOccurrence) -> bool {
        let is_negative = match counts.correlation() {
            Some(correlation) => correlation <= -self.gamma + 1e-9,
            None => !self.thresholds.is_strict,
        };
        is_negative && counts.confidence() >= self.thresholds.theta - 1e-9
    }

    /// Whether a directory below the tail often changes with the head, although the tail's own DoC is small.
    fn changes_below(&self, tail: DirectoryNode, head: &TransitionBits) -> bool {
        let mut open: Vec<DirectoryNode> = self.live_children(tail).collect();
        while let Some(directory) = open.pop() {
            if self.is_frequent(head.count_with(&self.bits(directory))) {
                return true;
            }
            open.extend(self.live_children(directory));
        }
        false
    }
}

/// Number of existing pages in a directory.
pub fn n_pages(delta: &DeltaTree, directory: DirectoryNode) -> u64 {
    let (mut n, mut open) = (0, vec![directory]);
    while let Some(node) = open.pop() {
        if delta.size(node) > 0 {
            n += u64::from(delta.tree().is_page(node));
            open.extend(delta.tree().children(node));
        }
    }
    n
}
