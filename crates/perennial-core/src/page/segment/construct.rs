//! Content structure construction (VIPS, section 4.3): visual blocks and separators -> nested regions.
//!
//! Neighbours are merged across the lightest separators first. Blocks whose separators are all lighter than the
//! permitted degree of coherence become one leaf. The coherence of a region is 10 minus its heaviest inner separator.
//! Weights are integers, so regions nest at most ten levels deep.

use super::cut::VisualBlock;
use super::facts::Facts;
use super::purpose::Purpose;

/// A region: the visual blocks from `first` to `end` (exclusive).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Region {
    pub(super) first: usize,
    pub(super) end: usize,
    pub(super) doc: u8,
    pub(super) children: Vec<Region>,
}

/// Cuts at every separator that is too heavy for `coherence`.
pub(super) fn regions(blocks: &mut [VisualBlock], coherence: u8, has_article: bool) -> Vec<Region> {
    if blocks.is_empty() {
        return Vec::new();
    }
    let heaviest_kept = 10 - coherence.clamp(1, 10);
    merge_scraps(blocks, heaviest_kept);
    if has_article {
        separate_article_edges(blocks, heaviest_kept);
    }
    let all = region(blocks, 0, blocks.len(), heaviest_kept);
    if all.children.is_empty() { vec![all] } else { all.children }
}

fn region(blocks: &[VisualBlock], first: usize, end: usize, heaviest_kept: u8) -> Region {
    let heaviest = blocks[first + 1..end].iter().map(|block| block.weight).max().unwrap_or(0);
    let doc = (10 - heaviest).max(1);
    let mut children = Vec::new();
    if heaviest > heaviest_kept {
        let cuts = (first + 1..end).filter(|index| blocks[*index].weight == heaviest).chain([end]);
        let mut from = first;
        for cut in cuts {
            children.push(region(blocks, from, cut, heaviest_kept));
            from = cut;
        }
    }
    Region { first, end, doc, children }
}

/// Minimum characters of prose in a run of blocks that is an article: some eighty words. Teasers and descriptions of
/// products are shorter.
const MIN_ARTICLE_LETTERS: u32 = 500;

/// Minimum words above or below an article that become a separate block. A lone headline is part of its text, and
/// headlines rarely have more words.
const MIN_WORDS_APART: u32 = 12;

/// Separates the text of an article from its head (headline, author, date, first picture) and its tail (author note,
/// tags, subscription forms).
fn separate_article_edges(blocks: &mut [VisualBlock], heaviest_kept: u8) {
    let mut first = 0;
    while first < blocks.len() {
        let end =
            (first + 1..blocks.len()).find(|i| blocks[*i].weight > heaviest_kept).unwrap_or(blocks.len());
        let n_prose: u32 = blocks[first..end].iter().map(|block| block.facts.n_prose_letters).sum();
        let is_prose = |index: &usize| blocks[*index].is_prose();
        let (begins, ends) = ((first..end).find(is_prose), (first..end).rfind(is_prose));
        if let Some((mut begins, mut ends)) = begins.zip(ends).filter(|_| n_prose >= MIN_ARTICLE_LETTERS) {
            // Short list entries belong to the long ones.
            while begins > first && blocks[begins].is_entry && blocks[begins - 1].is_entry {
                begins -= 1;
            }
            while ends + 1 < end && blocks[ends].is_entry && blocks[ends + 1].is_entry {
                ends += 1;
            }
            let n_words = |range: std::ops::Range<usize>| -> u32 {
                blocks[range].iter().map(|block| block.facts.n_words).sum()
            };
            let is_head = n_words(first..begins) >= MIN_WORDS_APART;
            let is_tail = n_words(ends + 1..end) >= MIN_WORDS_APART;
            if is_head {
                blocks[begins].weight = heaviest_kept + 1;
            }
            if is_tail {
                blocks[ends + 1].weight = heaviest_kept + 1;
            }
        }
        first = end;
    }
}

/// Maximum number of merge rounds. Each one at least halves the number of adjacent short blocks, so a row of 64 scraps
/// ends as one block.
const MAX_ROUNDS: usize = 6;

/// Merges a few isolated words (a date, a button, a caption) into the neighbour across the lighter separator. A reader
/// would not see them as a block.
fn merge_scraps(blocks: &mut [VisualBlock], heaviest_kept: u8) {
    let page_mass: f32 = blocks.iter().map(|block| block.facts.mass).sum();
    for _ in 0..MAX_ROUNDS {
        let mut has_joined = false;
        let mut first = 0;
        while first < blocks.len() {
            let end =
                (first + 1..blocks.len()).find(|i| blocks[*i].weight > heaviest_kept).unwrap_or(blocks.len());
            if is_scrap(&blocks[first..end], page_mass) {
                has_joined |= merge_scrap(blocks, first, end, heaviest_kept);
            }
            first = end;
        }
        if !has_joined {
            return;
        }
    }
}

fn merge_scrap(blocks: &mut [VisualBlock], first: usize, end: usize, heaviest_kept: u8) -> bool {
    let above = (first > 0).then(|| blocks[first].weight);
    let below = blocks.get(end).map(|block| block.weight);
    let at = match (above, below) {
        (Some(above), Some(below)) => {
            if above <= below {
                first
            } else {
                end
            }
        }
        (Some(_), None) => first,
        (None, Some(_)) => end,
        (None, None) => return false,
    };
    blocks[at].weight = heaviest_kept;
    true
}

fn is_scrap(blocks: &[VisualBlock], page_mass: f32) -> bool {
    if blocks.iter().all(|block| block.purpose == Purpose::Navigation && block.facts.n_links > 1) {
        return false;
    }
    let mut all = Facts::default();
    for block in blocks {
        all.absorb_later(&block.facts);
    }
    all.n_words < 6 && all.n_links < 4 && all.mass < 0.02 * page_mass && all.n_controls < 2
}
