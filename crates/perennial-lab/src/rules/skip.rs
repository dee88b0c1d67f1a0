//! Finds directories that are skipped as a whole, by rules, static directories or the last version (P-NEAR 5).

use perennial_core::directory::{
    DeltaTree, DirectoryNode, DirectoryRule, DirectoryTree, MinedRules, PageTransition, Significance,
    Thresholds, mine, mine_from, n_pages,
};

use super::evidence::SiteKnowledge;

/// The General Delta Tree of the known transitions, over the nodes of the history's tree.
pub fn delta_tree(known: &SiteKnowledge<'_>, significance: Significance) -> DeltaTree {
    let mut present = vec![false; known.history.nodes.len()];
    known.present.iter().for_each(|&page| present[page as usize] = true);
    // Undo the changes to find the first state.
    for change in known.transitions.iter().rev().flat_map(|changes| changes.iter().rev()) {
        match change.change {
            PageTransition::Inserted => present[change.page as usize] = false,
            PageTransition::Deleted => present[change.page as usize] = true,
            PageTransition::Updated(_) => {}
        }
    }
    let first = (0..present.len() as u32).filter(|&page| present[page as usize]);
    known.history.delta(first, known.transitions.iter().copied(), significance)
}

/// The directories that WARM skips, and the mined rules: tails of rules, and directories that never changed. `everywhere` adds the rules of starting directories other than
/// the site, an extension of the paper.
pub fn near_skipped_directories(
    delta: &DeltaTree,
    thresholds: &Thresholds,
    everywhere: bool,
) -> (Vec<DirectoryNode>, MinedRules) {
    let mut mined = MinedRules::default();
    if everywhere {
        mined = mine(delta, thresholds, false);
        let usable = mined.rules.iter().filter(|rule| !rule.is_contradicted).map(|rule| rule.tail);
        return (usable.chain(mined.static_tails.iter().copied()).collect(), mined);
    }
    mine_from(delta, DirectoryTree::ROOT, thresholds, false, &mut mined);
    let by_rules = skipped_by_rules(&mined, DirectoryTree::ROOT).map(|rule| rule.tail);
    (by_rules.chain(mined.static_tails.iter().copied()).collect(), mined)
}

/// The largest directories without a change within the window.
pub fn static_directories(delta: &DeltaTree) -> Vec<DirectoryNode> {
    let tree = delta.tree();
    let (mut found, mut open) = (Vec::new(), vec![DirectoryTree::ROOT]);
    while let Some(directory) = open.pop() {
        if delta.is_static(directory) {
            found.push(directory);
        } else {
            open.extend(tree.children(directory).filter(|child| !tree.is_page(*child)));
        }
    }
    found
}

/// The pages outside of the skipped directories.
pub fn pages_outside(known: &SiteKnowledge<'_>, skipped: &[DirectoryNode]) -> Vec<u32> {
    let tree = &known.history.tree;
    let mut is_skipped = vec![false; tree.len()];
    skipped.iter().for_each(|node| is_skipped[node.0 as usize] = true);
    let is_kept = |page: &&u32| {
        let mut up = tree.upwards(known.history.nodes[**page as usize]);
        !up.any(|node| is_skipped[node.0 as usize])
    };
    known.present.iter().filter(is_kept).copied().collect()
}

/// The directories that WARM skips when it archives `target` (P-NEAR 5): the tails of the rules that start there. WARM
/// walks with the miner's own chain, so no other rule can apply to the directory.
fn skipped_by_rules(mined: &MinedRules, target: DirectoryNode) -> impl Iterator<Item = &DirectoryRule> {
    let is_used = move |rule: &&DirectoryRule| rule.head.first() == Some(&target) && !rule.is_contradicted;
    mined.rules.iter().filter(is_used).filter(|rule| rule.subsumed.is_none())
}

/// What a rule would have saved in the transitions in which its head changed: fetches of the tail's current pages, and
/// changes that would have been missed. (0, 0) if the degrees were not stored.
pub fn rule_savings(delta: &DeltaTree, rule: &DirectoryRule) -> (u64, u64) {
    let bits = rule.head.iter().map(|node| delta.bits_from(*node, rule.alpha));
    let Some(head) = bits.reduce(|all, bits| all.and(&bits)) else { return (0, 0) };
    let n_missed =
        delta.degrees(rule.tail).filter(|degree| head.has(degree.transition as usize % delta.window()));
    let n_missed = n_missed.map(|degree| u64::from(degree.n_pages)).sum();
    (n_pages(delta, rule.tail) * u64::from(head.count()), n_missed)
}
