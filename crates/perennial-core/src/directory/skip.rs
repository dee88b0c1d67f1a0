//! Rules, static directories and the last version -> directories that are skipped as a whole (P-NEAR 5).

use super::delta::{DeltaTree, PageTransition, Significance};
use super::evidence::Known;
use super::mine::{Mined, Thresholds, mine, mine_from, skipped_by_rules};
use super::tree::{Node, Tree};

/// The General Delta Tree of what is known, over the nodes of the history's own tree.
pub fn delta_of(known: &Known<'_>, significance: Significance) -> DeltaTree {
    let history = known.history;
    let mut delta = DeltaTree::with_tree(history.tree.clone(), known.transitions.len(), significance);
    let mut present = vec![false; history.nodes.len()];
    known.present.iter().for_each(|&page| present[page as usize] = true);
    // Back from what is there now to what was there first.
    for change in known.transitions.iter().rev().flat_map(|changes| changes.iter().rev()) {
        match change.change {
            PageTransition::Inserted => present[change.page as usize] = false,
            PageTransition::Deleted => present[change.page as usize] = true,
            PageTransition::Updated(_) => {}
        }
    }
    let first = (0..present.len()).filter(|&page| present[page]).map(|page| history.nodes[page]);
    delta.begin(first);
    for changes in &known.transitions {
        delta.add(changes.iter().map(|change| (history.nodes[change.page as usize], change.change)));
    }
    delta
}

/// The directories that WARM skips, and what was mined. `everywhere` adds the rules of other starting directories than the
/// site, which the paper does not.
pub fn skipped_by_near(delta: &DeltaTree, thresholds: &Thresholds, everywhere: bool) -> (Vec<Node>, Mined) {
    let mut mined = Mined::default();
    if everywhere {
        mined = mine(delta, thresholds, false);
        let usable = mined.rules.iter().filter(|rule| !rule.is_contradicted);
        return (usable.map(|rule| rule.tail).collect(), mined);
    }
    mine_from(delta, Tree::ROOT, thresholds, false, &mut mined);
    (skipped_by_rules(&mined, Tree::ROOT).map(|rule| rule.tail).collect(), mined)
}

/// The largest directories in which nothing changed within the window.
pub fn static_directories(delta: &DeltaTree) -> Vec<Node> {
    let tree = delta.tree();
    let (mut found, mut open) = (Vec::new(), vec![Tree::ROOT]);
    while let Some(directory) = open.pop() {
        if delta.is_static(directory) {
            found.push(directory);
        } else {
            open.extend(tree.children(directory).filter(|child| !tree.is_page(*child)));
        }
    }
    found
}

/// The pages that are fetched when these directories are skipped.
pub fn outside(known: &Known<'_>, skipped: &[Node]) -> Vec<u32> {
    let tree = &known.history.tree;
    let mut is_skipped = vec![false; tree.len()];
    skipped.iter().for_each(|node| is_skipped[node.0 as usize] = true);
    let stays = |page: &&u32| {
        let mut up = tree.upwards(known.history.nodes[**page as usize]);
        !up.any(|node| is_skipped[node.0 as usize])
    };
    known.present.iter().filter(stays).copied().collect()
}
