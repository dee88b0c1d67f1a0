//! Leaves -> importance and role, by features and a learned model after Song et al., "Learning Block Importance Models
//! for Web Pages" (WWW 2004).
//!
//! Song's features are position, size and content of a block. Here content replaces heights and absolute positions:
//! how much of the page comes before the block. The embedded engine's positions are unreliable, and a page should keep
//! its weights when one paragraph grows. See docs/papers.md, Block importance. `experiments/block-importance/fit.py`
//! computes the weights; its README lists seed and scores.

use super::purpose::Purpose;
use super::{Block, BlockRole, LeafFacts};
use crate::page::layout::{VIEWPORT_HEIGHT, VIEWPORT_WIDTH};

pub const N_FEATURES: usize = 26;

/// Totals of the page, to which features are relative.
struct PageTotals {
    n_words: f32,
    n_prose_letters: f32,
    mass: f32,
    mean_font: f32,
}

/// One row of features per leaf, in reading order.
pub(super) fn features(leaves: &[LeafFacts]) -> Vec<[f32; N_FEATURES]> {
    let sum = |of: fn(&LeafFacts) -> f32| leaves.iter().map(of).sum::<f32>();
    let totals = PageTotals {
        n_words: sum(|leaf| leaf.facts.n_words as f32).max(1.0),
        n_prose_letters: sum(|leaf| leaf.facts.n_prose_letters as f32).max(1.0),
        mass: sum(|leaf| leaf.facts.mass).max(1.0),
        mean_font: sum(|leaf| leaf.facts.font_sum) / sum(|leaf| leaf.facts.n_letters as f32).max(1.0),
    };
    let mut mass_before = 0.0;
    let mut rows = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        rows.push(row(leaf, &totals, mass_before));
        mass_before += leaf.facts.mass;
    }
    rows
}

fn row(leaf: &LeafFacts, totals: &PageTotals, mass_before: f32) -> [f32; N_FEATURES] {
    let facts = &leaf.facts;
    let n_letters = (facts.n_letters as f32).max(1.0);
    let position = (mass_before + facts.mass / 2.0) / totals.mass;
    let centre = facts.rect.x + facts.rect.w / 2.0;
    let font = if totals.mean_font > 0.0 && facts.n_letters > 0 {
        facts.font_sum / n_letters / totals.mean_font
    } else {
        1.0
    };
    let is = |purposes: &[Purpose]| f32::from(u8::from(purposes.contains(&leaf.purpose)));
    [
        (1.0 + facts.n_words as f32).ln(),
        facts.link_share(),
        facts.n_prose_letters as f32 / n_letters,
        facts.n_words as f32 / totals.n_words,
        facts.n_prose_letters as f32 / totals.n_prose_letters,
        ((centre - VIEWPORT_WIDTH / 2.0).abs() / (VIEWPORT_WIDTH / 2.0)).min(1.0),
        (facts.rect.w / VIEWPORT_WIDTH).clamp(0.0, 1.0),
        position,
        position * position,
        (1.0 - mass_before / (VIEWPORT_WIDTH * VIEWPORT_HEIGHT)).max(0.0),
        (1.0 + facts.n_images as f32).ln(),
        facts.image_area / facts.mass.max(1.0),
        (1.0 + facts.n_controls as f32).ln(),
        font.clamp(0.5, 3.0),
        f32::from(u8::from(facts.has_heading)),
        (1.0 + facts.n_paragraphs as f32).ln(),
        f32::from(u8::from(facts.is_fixed)),
        is(&[Purpose::Main, Purpose::Article]),
        is(&[Purpose::Navigation]),
        is(&[Purpose::Header]),
        is(&[Purpose::Footer]),
        is(&[Purpose::Sidebar]),
        is(&[Purpose::Dialog]),
        is(&[Purpose::Comments]),
        is(&[Purpose::Related, Purpose::Share]),
        is(&[Purpose::Advertisement]),
    ]
}

/// Fitted weights of the features: logistic regression of "this word belongs to the main content". Horizontal position
/// and width have weight 0: they hardly help, and they depend on line lengths, which a reused layout lacks.
const WEIGHTS: [f32; N_FEATURES] = [
    0.5402, -3.3627, -0.7795, 0.4031, 4.5992, 0.0, 0.0, 1.2929, -3.9749, 0.2231, -0.3871, 0.9365, -0.4909,
    -1.2794, 0.4753, -0.2014, 0.0000, 0.1956, -0.5512, -0.4125, -1.6804, -0.7976, -1.3546, -3.1106, -2.6591,
    0.2625,
];

const BIAS: f32 = -0.1607;

/// Fitted exponent of the number of words. A block twice as long is not twice as important.
const SIZE_POWER: f32 = 0.5;

/// Factor on the likelihood that list entries are main content on an article page. Their words look like prose to the
/// model, which knows single blocks only.
const TEASER_FACTOR: f32 = 0.2;

/// Factor on the score of content that is one click away: fewer people read it, and those who do read it fully.
const COLLAPSED_FACTOR: f32 = 0.5;

/// Characters of prose (about seventy words) that make a leaf a possible continuation of an article. A note about the
/// author is shorter.
const MIN_PART_LETTERS: u32 = 400;

/// Added to the squared likelihood of every leaf, because a leaf outside the main content has some importance too.
const FLOOR: f32 = 0.01;

/// The probability that a leaf is main content.
fn likelihood(row: &[f32; N_FEATURES]) -> f32 {
    let sum: f32 = row.iter().zip(WEIGHTS).map(|(feature, weight)| feature * weight).sum();
    1.0 / (1.0 + (-(sum + BIAS)).exp())
}

/// Sets the importance and role of every leaf.
pub(super) fn weigh(blocks: &mut [Block], leaves: &[LeafFacts]) {
    let likelihoods = features(leaves).into_iter().zip(leaves);
    let likelihoods: Vec<f32> = likelihoods
        .map(|(row, leaf)| likelihood(&row) * if leaf.is_teasers { TEASER_FACTOR } else { 1.0 })
        .collect();
    let scores = leaves.iter().zip(&likelihoods).map(|(leaf, likelihood)| {
        score(leaf, *likelihood) * if leaf.is_collapsed() { COLLAPSED_FACTOR } else { 1.0 }
    });
    let shares = share(scores.collect(), leaves);
    let roles = roles(leaves, &likelihoods);
    let mut rows = shares.into_iter().zip(roles);
    for_leaves(blocks, &mut |block| {
        if let Some((share, role)) = rows.next() {
            (block.importance, block.role) = (share, role);
        }
    });
}

/// The roles of the leaves. An article continues in the same column after an interruption, such as an image or other
/// stories. That holds even if its next part alone would not be recognised as an article.
fn roles(leaves: &[LeafFacts], likelihoods: &[f32]) -> Vec<BlockRole> {
    let mut part: Option<&LeafFacts> = None;
    // Without any other text, an article is in an element with a misleading name.
    let is_beside_comments = |leaf: &LeafFacts| {
        leaf.purpose != Purpose::Comments && leaf.facts.n_prose_letters >= MIN_BESIDE_LETTERS
    };
    let has_comments = leaves.iter().any(is_beside_comments);
    let mut roles = Vec::with_capacity(leaves.len());
    for (leaf, likelihood) in leaves.iter().zip(likelihoods) {
        if leaf.purpose == Purpose::Comments && has_comments {
            roles.push(BlockRole::Comments);
            continue;
        }
        let alone = role(leaf, *likelihood);
        let goes_on = alone == BlockRole::Other && part.is_some_and(|part| is_further_part(leaf, part));
        let role = if goes_on { BlockRole::Main } else { alone };
        if role == BlockRole::Main {
            part = Some(leaf);
        }
        roles.push(role);
    }
    roles
}

/// Whether a leaf continues the article that `part` belongs to.
fn is_further_part(leaf: &LeafFacts, part: &LeafFacts) -> bool {
    let facts = &leaf.facts;
    facts.n_prose_letters >= MIN_PART_LETTERS
        && facts.link_share() < 0.2
        && leaf.purpose == part.purpose
        && !leaf.purpose.is_apart()
        && is_one_column(leaf, part)
}

fn is_one_column(leaf: &LeafFacts, other: &LeafFacts) -> bool {
    let (a, b) = (&leaf.facts.rect, &other.facts.rect);
    (a.x - b.x).abs() <= 0.1 * b.w && (a.right() - b.right()).abs() <= 0.1 * b.w
}

/// Computes the score of a leaf. The likelihood is squared; otherwise many small unlikely leaves would outweigh the
/// main one. Every leaf has a small share, because a change of a menu matters a little too.
fn score(leaf: &LeafFacts, likelihood: f32) -> f32 {
    let size = 2.0 + leaf.facts.n_words as f32 + leaf.facts.image_area / 2000.0;
    (likelihood * likelihood + FLOOR) * size.powf(SIZE_POWER)
}

/// Scales scores to shares that sum to 1. The leaves of a pin share its importance; all others share the rest.
fn share(mut scores: Vec<f32>, leaves: &[LeafFacts]) -> Vec<f32> {
    let pins: Vec<(usize, f32)> = pinned(leaves);
    let pinned_sum: f32 = pins.iter().map(|(_, share)| share).sum();
    let has_free = leaves.iter().any(|leaf| leaf.pin.is_none());
    // If pins sum to more than 1, or every leaf has a pin, their values are used as proportions.
    let scale = if pinned_sum > 1.0 || (!has_free && pinned_sum > 0.0) { 1.0 / pinned_sum } else { 1.0 };
    for (pin, pinned_share) in pins {
        spread(&mut scores, leaves, Some(pin), pinned_share * scale);
    }
    spread(&mut scores, leaves, None, (1.0 - pinned_sum * scale).max(0.0));
    let total: f32 = scores.iter().sum();
    if total > 0.0 {
        scores.iter().map(|score| score / total).collect()
    } else {
        vec![1.0 / scores.len().max(1) as f32; scores.len()]
    }
}

/// The pins that match a leaf, with their shares.
fn pinned(leaves: &[LeafFacts]) -> Vec<(usize, f32)> {
    let mut pins: Vec<(usize, f32)> = leaves.iter().filter_map(|leaf| leaf.pin).collect();
    pins.sort_by_key(|(pin, _)| *pin);
    pins.dedup_by_key(|(pin, _)| *pin);
    pins
}

/// Scales the scores of the leaves with this pin to the sum `share`.
fn spread(scores: &mut [f32], leaves: &[LeafFacts], pin: Option<usize>, share: f32) {
    let is_of = |leaf: &LeafFacts| leaf.pin.map(|(pin, _)| pin) == pin;
    let sum: f32 = scores.iter().zip(leaves).filter(|(_, leaf)| is_of(leaf)).map(|(score, _)| score).sum();
    for (score, _) in scores.iter_mut().zip(leaves).filter(|(_, leaf)| is_of(leaf)) {
        *score = if sum > 0.0 { *score * share / sum } else { 0.0 };
    }
}

fn for_leaves(blocks: &mut [Block], each: &mut dyn FnMut(&mut Block)) {
    for block in blocks {
        if block.is_leaf() {
            each(block);
        }
        for_leaves(&mut block.children, each);
    }
}

/// Letters of running text outside of comments, from which on comments are comments. A headline has fewer, and an article
/// more.
const MIN_BESIDE_LETTERS: u32 = 40;

fn role(leaf: &LeafFacts, likelihood: f32) -> BlockRole {
    // Advertisements contain little text.
    let is_prose = leaf.facts.n_prose_letters > 400 && leaf.facts.link_share() < 0.3;
    match leaf.purpose {
        Purpose::Advertisement if !is_prose => BlockRole::Advertisement,
        // By what it links to: a list of stories is not a menu, whatever its class name.
        Purpose::Navigation if !leaf.is_entries => BlockRole::Navigation,
        _ if likelihood >= 0.5 && !leaf.is_beside_prose => BlockRole::Main,
        Purpose::Related => BlockRole::Related,
        Purpose::Sidebar if leaf.is_entries => BlockRole::Related,
        Purpose::Header => BlockRole::Header,
        Purpose::Footer => BlockRole::Footer,
        // A list of stories consists of links too, but people read it.
        _ if leaf.is_entries => BlockRole::Other,
        _ if leaf.facts.n_links >= 4 && leaf.facts.link_share() > 0.8 => BlockRole::Navigation,
        _ => BlockRole::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::segment::facts::Facts;

    fn leaf(n_words: u32, pin: Option<(usize, f32)>) -> LeafFacts {
        let facts =
            Facts { n_words, n_letters: 5 * n_words, mass: 100.0 * n_words as f32, ..Facts::default() };
        LeafFacts {
            facts,
            purpose: Purpose::Unknown,
            pin,
            is_teasers: false,
            is_beside_prose: false,
            is_entries: false,
        }
    }

    #[test]
    fn pinned_shares_are_exact_and_other_leaves_share_the_rest() {
        let leaves =
            [leaf(10, Some((0, 0.5))), leaf(10, Some((1, 0.0))), leaf(20, None), leaf(30, Some((0, 0.5)))];
        let shares = share(vec![1.0, 1.0, 1.0, 3.0], &leaves);
        assert_eq!(shares, [0.125, 0.0, 0.5, 0.375]);
    }

    #[test]
    fn pins_beyond_one_are_proportions() {
        let leaves = [leaf(10, Some((0, 0.9))), leaf(10, Some((1, 0.9))), leaf(20, None)];
        assert_eq!(share(vec![1.0; 3], &leaves), [0.5, 0.5, 0.0]);
    }

    #[test]
    fn leaves_without_scores_share_evenly() {
        let leaves = [leaf(0, Some((0, 0.0))), leaf(0, Some((0, 0.0)))];
        assert_eq!(share(vec![1.0; 2], &leaves), [0.5, 0.5]);
    }
}
