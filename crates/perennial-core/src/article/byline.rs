//! The lines near a headline -> author and time of an article, if the page's metadata lack them.

use super::boxes::for_each_word;
use super::leaves::TextLeaf;
use super::metadata::clean_author;
use super::page::LeafPage;
use super::phrases::{folded, is_byline};
use crate::time::Timestamp;
use crate::time::dates;

/// Number of leaves near the headline to search.
const NEAR: usize = 15;

/// The leaves near the headline, or near the start of the text, nearest first.
fn near(page: &LeafPage<'_>, title: Option<usize>, text: &[usize]) -> Vec<usize> {
    let from = title.or(text.first().copied()).unwrap_or_default();
    let to = text.first().copied().unwrap_or(from).max(from) + 3;
    let after = from..(to.min(from + 2 * NEAR)).min(page.n_leaves());
    let before = (from.saturating_sub(5)..from).rev();
    after.chain(before).collect()
}

/// The day in a line near the headline.
pub(super) fn time_near(page: &LeafPage<'_>, title: Option<usize>, text: &[usize]) -> Option<Timestamp> {
    let lines =
        near(page, title, text).into_iter().map(|index| page.leaf(index)).filter(|leaf| leaf.length <= 120.0);
    lines.filter(|leaf| is_byline(&folded(&leaf.text))).find_map(|leaf| dates::find(&leaf.text))
}

/// The name in a line near the headline that begins with "by", or is in a box named after the author.
pub(super) fn author_near(page: &LeafPage<'_>, title: Option<usize>, text: &[usize]) -> String {
    let lines = near(page, title, text).into_iter().map(|index| page.leaf(index));
    lines.filter(|leaf| leaf.length <= 80.0).find_map(|leaf| author_in(page, leaf)).unwrap_or_default()
}

fn author_in(page: &LeafPage<'_>, leaf: &TextLeaf) -> Option<String> {
    const STARTS: [&str; 8] =
        ["by ", "by: ", "von ", "por ", "par ", "written by ", "posted by ", "author: "];
    let line = leaf.text.split(['|', '·', '•', '\n', ',']).next().unwrap_or_default().trim();
    let small = line.to_lowercase();
    let name = clean_author(line);
    let n_words = name.split_whitespace().count();
    let is_name = (1..=5).contains(&n_words)
        && name.starts_with(char::is_alphabetic)
        && !name.contains(|c: char| c.is_ascii_digit() || matches!(c, ':' | '!' | '?'));
    let is_marked = || STARTS.iter().any(|start| small.starts_with(start)) || is_in_author_box(page, leaf);
    (is_name && is_marked()).then_some(name)
}

/// Whether an element around a leaf is named after the author.
fn is_in_author_box(page: &LeafPage<'_>, leaf: &TextLeaf) -> bool {
    let nodes = &page.leaves.dom.nodes;
    let around =
        std::iter::successors(nodes[leaf.node as usize].parent, |&node| nodes[node as usize].parent).take(3);
    let mut is_named = false;
    for node in around {
        let names = nodes[node as usize].attribute("class").unwrap_or_default();
        for_each_word(names, |word| {
            is_named |= matches!(word, "author" | "byline" | "autor" | "autorin" | "authorname")
        });
    }
    is_named
}
