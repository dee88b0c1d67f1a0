//! The comment sections of a page, and their comments.
//!
//! A section is identified by its names ([`super::boxes`]), or by a heading that counts comments. Its content does
//! not belong to the article, so a new comment does not make a new version (P-FEED 4.3).

use super::boxes::BoxKind;
use super::leaves::LeafKind;
use super::page::LeafPage;
use super::phrases::{folded, is_byline, is_comment_heading, is_furniture};

const MAX_COMMENTS: usize = 10_000;

/// The heading of comments outside of a named section. `first` is the first leaf of the article.
pub(super) fn begin(page: &LeafPage<'_>, first: usize) -> Option<usize> {
    let zone = BoxKind::Comments.bit();
    (first + 1..page.n_leaves()).find(|&index| {
        let leaf = page.leaf(index);
        let is_line = matches!(leaf.kind, LeafKind::Heading(_)) || leaf.length <= 60.0;
        is_line
            && page.kinds[index] & zone == 0
            && leaf.link_share < 0.5
            && is_comment_heading(&folded(&leaf.text))
    })
}

/// The end of the section below a heading. The section is the nearest enclosing element that contains more than the
/// heading.
pub(super) fn end(page: &LeafPage<'_>, heading: usize) -> usize {
    let dom = page.leaves.dom;
    let mut node = page.leaf(heading).block;
    loop {
        let below = page.leaves.below(node);
        let length: f32 = (heading + 1..below.end).map(|index| page.leaf(index).length).sum();
        match dom.nodes[node as usize].parent {
            Some(parent) if length < MIN_ZONE_LENGTH => node = parent,
            _ => return below.end,
        }
    }
}

/// A section has more text than its form.
const MIN_ZONE_LENGTH: f32 = 40.0;

/// The texts of the comments.
pub(super) fn texts(page: &LeafPage<'_>, by_heading: Option<usize>) -> Vec<String> {
    let zone = BoxKind::Comments.bit();
    let other = BoxKind::Form.bit();
    let by_heading = by_heading.map(|from| from + 1..end(page, from)).unwrap_or_default();
    let is_inside = |&index: &usize| page.kinds[index] & zone != 0 || by_heading.contains(&index);
    let is_said = |&index: &usize| {
        let leaf = page.leaf(index);
        let line = folded(&leaf.text);
        let is_about = page.kinds[index] & other != 0
            || matches!(leaf.kind, LeafKind::Heading(_))
            || leaf.link_share >= 0.9;
        !is_about
            && !page.is_template[index]
            && leaf.text.chars().count() > 1
            && !is_furniture(&line)
            && !is_byline(&line)
            && !is_comment_heading(&line)
    };
    let inside = (0..page.n_leaves()).filter(is_inside).filter(is_said);
    inside.take(MAX_COMMENTS).map(|index| page.leaf(index).text.clone()).collect()
}
