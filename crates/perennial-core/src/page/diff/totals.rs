//! Two trees -> totals of the page that a delta stores: the length of the page, whether its words changed, and
//! repeated links. With them, importance can be computed from the delta alone.

use std::collections::HashSet;

use super::words::{hash, n_words};
use super::{Delta, Element};
use crate::page::segment::{Block, BlockRole, BlockTree};

/// Words that people read of a page. They read a few hundred words of a long page, however long it is.
const WORDS_TAKEN_IN: f32 = 600.0;
/// Entries that people read of a list.
const ENTRIES_TAKEN_IN: f32 = 40.0;
/// A shorter page is not compared by its words alone.
const MIN_WORDS: usize = 30;

pub(super) fn add_totals(before: &BlockTree, after: &BlockTree, delta: &mut Delta) {
    // On a listing page the items have their own weights.
    let is_listing = delta.items.as_ref().is_some_and(|items| items.is_listing);
    delta.length = if is_listing { 1.0 } else { length(before) };
    delta.has_same_words = has_same_words(before, after);
    mark_repeated(before, after, delta);
}

/// The length of a page as a multiple of what people read of a page. Blocks below the importance of the main block
/// count less.
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

/// The words of a page in reading order, without punctuation.
fn words(tree: &BlockTree) -> impl Iterator<Item = &str> {
    let pieces = tree.leaves().flat_map(|leaf| leaf.read());
    pieces.flat_map(str::split_whitespace).filter(|word| word.contains(char::is_alphanumeric))
}

/// Marks inserted links whose target was linked before, and deleted links whose target is still linked.
fn mark_repeated(before: &BlockTree, after: &BlockTree, delta: &mut Delta) {
    let links = |element: &Element| matches!(element, Element::Link(_));
    let has_inserted =
        delta.blocks.iter().any(|block| block.inserted.iter().any(|(_, element)| links(element)));
    let has_deleted =
        delta.blocks.iter().any(|block| block.deleted.iter().any(|(_, element)| links(element)));
    let (led, leads) = (targets(before, has_inserted), targets(after, has_deleted));
    let repeated = |elements: &[(u32, Element)], known: &HashSet<u32>, url: &str| {
        let is_known = |element: &Element| match element {
            Element::Link(link) => target(&link.url, url).is_some_and(|target| known.contains(&target)),
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
    leaves.flat_map(|leaf| &leaf.links).filter_map(|link| target(&link.url, &tree.url)).collect()
}

/// The hash of a link's target. `None` for a link within the page, because many of them share one URL.
fn target(url: &str, page: &str) -> Option<u32> {
    let bare = bare(url.split('#').next().unwrap_or(url));
    let is_elsewhere = !bare.is_empty() && bare != self::bare(page);
    is_elsewhere.then(|| hash(bare))
}

/// A URL without scheme, `www.` and trailing slash.
fn bare(url: &str) -> &str {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or(url);
    rest.strip_prefix("www.").unwrap_or(rest).trim_end_matches('/')
}
