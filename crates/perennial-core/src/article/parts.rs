//! A page with several articles and the context of one -> the part with that article.
//!
//! P-FEED 4.2: "when the Web page contains various consecutive articles, our method will make the difference between
//! them". A part is used only if the page clearly has several. Its siblings must have the same structure and
//! headings. Also, either these headings are links, as in lists of posts, or the page has a different title.

use std::collections::HashSet;

use super::leaves::LeafKind;
use super::page::LeafPage;
use super::phrases::folded;
use super::select::is_title_copy;

/// The minimum share of the page's grams in the part.
const MIN_SHARE: f64 = 0.8;
/// Fewer grams of the context on the page are not evidence.
const MIN_GRAMS: usize = 2;
/// The minimum text of a sibling.
const MIN_PEER_LENGTH: f32 = 40.0;
/// Siblings that are checked.
const MAX_SIBLINGS: u32 = 2_000;

/// The position of an article among others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ArticlePart {
    /// An element.
    Element(u32),
    /// From a heading to the next one of its kind, as leaves; the heading comes first.
    Section(usize, usize),
}

/// The part of the page with the article, if there are several. `is_named_so` is true if the page has the article's
/// title.
pub(super) fn find_part(page: &LeafPage<'_>, title: &str, is_named_so: bool) -> Option<ArticlePart> {
    section_by_heading(page, title, is_named_so)
        .or_else(|| element_among_peers(page, is_named_so).map(ArticlePart::Element))
}

/// Descends towards the grams, and returns the innermost element on the path that has peers.
fn element_among_peers(page: &LeafPage<'_>, is_named_so: bool) -> Option<u32> {
    let dom = page.leaves.dom;
    let bearing: Vec<usize> = (0..page.n_leaves()).filter(|&index| !page.grams[index].is_empty()).collect();
    let held = |node: u32| -> usize {
        let below = page.leaves.below(node);
        let from = bearing.partition_point(|&index| index < below.start);
        let to = bearing.partition_point(|&index| index < below.end);
        let grams = bearing[from..to].iter().flat_map(|&index| page.grams[index].iter());
        grams.collect::<HashSet<_>>().len()
    };
    let mut node = dom.child_of_root("body")?;
    let total = held(node);
    if total < MIN_GRAMS {
        return None;
    }
    let mut found = None;
    loop {
        let children = dom.children(node).filter(|&child| !page.leaves.below(child).is_empty());
        let Some((most, child)) = children
            .map(|child| (held(child), child))
            .max_by_key(|&(n_held, child)| (n_held, std::cmp::Reverse(child)))
        else {
            break;
        };
        if (most as f64) < MIN_SHARE * total as f64 {
            break;
        }
        if has_peers(page, node, child, is_named_so) {
            found = Some(child);
        }
        node = child;
    }
    found
}

/// Whether a child has siblings that are articles like it.
fn has_peers(page: &LeafPage<'_>, parent: u32, child: u32, is_named_so: bool) -> bool {
    let dom = page.leaves.dom;
    let own = &dom.nodes[child as usize];
    if matches!(own.tag(), "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "a" | "td" | "")
        || !has_heading(page, child, false)
    {
        return false;
    }
    let is_alike = |sibling: u32| {
        let other = &dom.nodes[sibling as usize];
        sibling != child && other.tag() == own.tag() && other.first_class() == own.first_class()
    };
    let mut peers = dom.children(parent).take(MAX_SIBLINGS as usize).filter(|&sibling| is_alike(sibling));
    peers.any(|sibling| {
        let length: f32 = page.leaves.below(sibling).map(|index| page.leaf(index).length).sum();
        length >= MIN_PEER_LENGTH && has_heading(page, sibling, is_named_so)
    })
}

fn has_heading(page: &LeafPage<'_>, node: u32, is_linked: bool) -> bool {
    page.leaves.below(node).any(|index| {
        let leaf = page.leaf(index);
        matches!(leaf.kind, LeafKind::Heading(_)) && (!is_linked || leaf.link_share >= 0.9)
    })
}

/// Finds posts without separate elements: a heading, paragraphs, the next heading, all with one parent.
fn section_by_heading(page: &LeafPage<'_>, title: &str, is_named_so: bool) -> Option<ArticlePart> {
    let title = folded(title);
    if title.is_empty() {
        return None;
    }
    let dom = page.leaves.dom;
    let is_heading = |index: usize| matches!(page.leaf(index).kind, LeafKind::Heading(_));
    let heading = (0..page.n_leaves())
        .find(|&index| is_heading(index) && is_title_copy(&folded(&page.leaf(index).text), &title))?;
    let own = page.leaf(heading);
    let block = &dom.nodes[own.block as usize];
    let parent = block.parent?;
    let is_linked = own.link_share >= 0.9;
    let is_peer = |index: usize| {
        let leaf = page.leaf(index);
        let other = &dom.nodes[leaf.block as usize];
        index != heading
            && other.parent == Some(parent)
            && other.tag() == block.tag()
            && other.first_class() == block.first_class()
            && (leaf.link_share >= 0.9) == is_linked
    };
    if !is_linked && is_named_so {
        return None;
    }
    let below = page.leaves.below(parent);
    let next = (heading + 1..below.end).find(|&index| is_peer(index));
    let has_peers = next.is_some() || (below.start..heading).any(is_peer);
    let end = next.unwrap_or(below.end);
    (has_peers && end > heading + 1).then_some(ArticlePart::Section(heading, end))
}
