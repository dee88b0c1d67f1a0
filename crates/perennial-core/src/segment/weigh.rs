//! Leaves -> importance and role, in the manner of Song et al. 2004.

use super::purpose::Purpose;
use super::{Block, BlockRole, LeafFacts};

/// Gives every leaf its share of the page's importance and its role.
pub(super) fn weigh(blocks: &mut [Block], leaves: &[LeafFacts]) {
    let scores: Vec<f32> = leaves.iter().map(score).collect();
    let total: f32 = scores.iter().sum();
    let mut shares = scores.iter().zip(leaves);
    set(blocks, &mut |leaf| {
        if let Some((score, facts)) = shares.next() {
            leaf.importance = if total > 0.0 { score / total } else { 0.0 };
            leaf.role = role(facts, leaf.importance);
        }
    });
}

fn set(blocks: &mut [Block], each: &mut dyn FnMut(&mut Block)) {
    for block in blocks {
        if block.is_leaf() {
            each(block);
        }
        set(&mut block.children, each);
    }
}

fn score(leaf: &LeafFacts) -> f32 {
    1.0 + leaf.facts.n_prose_letters as f32
}

fn role(leaf: &LeafFacts, importance: f32) -> BlockRole {
    match leaf.purpose {
        Purpose::Navigation => BlockRole::Navigation,
        Purpose::Header => BlockRole::Header,
        Purpose::Footer => BlockRole::Footer,
        Purpose::Advertisement => BlockRole::Advertisement,
        Purpose::Main | Purpose::Article => BlockRole::Main,
        Purpose::Unknown | Purpose::Section if importance > 0.2 => BlockRole::Main,
        _ => BlockRole::Other,
    }
}
