//! Two trees -> what a delta must know of the whole page, so that its importance follows from the delta alone: how much there is
//! to read, whether the words are the same, and which links lead where the page leads anyway.

use std::collections::HashSet;

use super::words::{hash, n_words};
use super::{Delta, Element};
use crate::page::segment::{Block, BlockRole, BlockTree};

/// Words that a reader takes in of a page. Visitors read a few hundred words of a long page, whatever its length.
const WORDS_TAKEN_IN: f32 = 600.0;
/// Entries of a list that a reader takes in.
const ENTRIES_TAKEN_IN: f32 = 40.0;
/// A page of fewer words is not read for its words alone.
const MIN_WORDS: usize = 30;

/// Adds what the whole page says to the delta.
pub(super) fn add_totals(before: &BlockTree, after: &BlockTree, delta: &mut Delta) {
    // On a hub the items tell what changed, by their own weights.
    let is_listing = delta.items.as_ref().is_some_and(|items| items.is_listing);
    delta.length = if is_listing { 1.0 } else { length(before) };
    delta.has_same_words = has_same_words(before, after);
    mark_repeated(before, after, delta);
}

/// How many times what a reader takes in at once there is to read. What is less important than the main part counts less.
fn length(tree: &BlockTree) -> f32 {
    let is_read = |leaf: &&Block| matches!(leaf.role, BlockRole::Main | BlockRole::Other);
    let most = tree.leaves().filter(is_read).map(|leaf| leaf.importance).fold(0.0, f32::max);
    let (mut words, mut entries) = (0.0, 0.0);
    for leaf in tree.leaves().filter(is_read).filter(|_| most > 0.0) {
        let part = leaf.importance / most;
        let texts = leaf.texts.iter().map(|text| n_words(&text.text));
        let links = leaf.links.iter().map(|link| n_words(&link.name));
        words += part * texts.chain(links).sum::<usize>() as f32;
        entries += part * leaf.links.len().max(leaf.texts.len()) as f32;
    }
    (words / WORDS_TAKEN_IN).max(entries / ENTRIES_TAKEN_IN).max(1.0)
}

fn has_same_words(before: &BlockTree, after: &BlockTree) -> bool {
    words(before).eq(words(after)) && words(after).take(MIN_WORDS).count() == MIN_WORDS
}

/// The words of a page as they are read, without signs that are no words.
fn words(tree: &BlockTree) -> impl Iterator<Item = &str> {
    let pieces = tree.leaves().flat_map(|leaf| leaf.read());
    pieces.flat_map(str::split_whitespace).filter(|word| word.contains(char::is_alphanumeric))
}

/// Marks the links that came and lead where another link led before, and those that went while another one stays.
fn mark_repeated(before: &BlockTree, after: &BlockTree, delta: &mut Delta) {
    let links = |element: &Element| matches!(element, Element::Link(_));
    let has_inserted =
        delta.blocks.iter().any(|block| block.inserted.iter().any(|(_, element)| links(element)));
    let has_deleted =
        delta.blocks.iter().any(|block| block.deleted.iter().any(|(_, element)| links(element)));
    let (led, leads) = (targets(before, has_inserted), targets(after, has_deleted));
    let repeated = |elements: &[(u32, Element)], known: &HashSet<u32>, url: &str| {
        let is_known = |element: &Element| match element {
            Element::Link(link) => target(&link.address, url).is_some_and(|target| known.contains(&target)),
            _ => false,
        };
        elements
            .iter()
            .filter(|(_, element)| is_known(element))
            .map(|(place, _)| *place)
            .collect::<Vec<u32>>()
    };
    for block in &mut delta.blocks {
        block.again = repeated(&block.inserted, &led, &before.url);
        block.still = repeated(&block.deleted, &leads, &after.url);
    }
}

fn targets(tree: &BlockTree, is_wanted: bool) -> HashSet<u32> {
    let leaves = tree.leaves().filter(|_| is_wanted);
    leaves.flat_map(|leaf| &leaf.links).filter_map(|link| target(&link.address, &tree.url)).collect()
}

/// Where a link leads, without what does not change it. `None` for a link within the page, because many of those are one page.
fn target(address: &str, page: &str) -> Option<u32> {
    let bare = bare(address.split('#').next().unwrap_or(address));
    let is_elsewhere = !bare.is_empty() && bare != self::bare(page);
    is_elsewhere.then(|| hash(bare))
}

/// An address without its scheme, `www.` and the slash at its end.
fn bare(address: &str) -> &str {
    let rest =
        address.strip_prefix("https://").or_else(|| address.strip_prefix("http://")).unwrap_or(address);
    rest.strip_prefix("www.").unwrap_or(rest).trim_end_matches('/')
}
