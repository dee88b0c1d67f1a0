//! A wrapper -> the leaves of it that are the object's own: what stands before, between and behind them goes.

use super::boxes::{BoxKind, for_each_word};
use super::leaves::{Leaf, LeafKind};
use super::page::Page;
use super::phrases::{asks, folded, is_byline, is_filing, is_furniture, leads_on};
use super::wrapper::Wrapper;
use super::{dates, metadata::clean_author};
use crate::time::Timestamp;

/// A heading of related pages cuts the rest when less than this share of the text stands behind it.
const MAX_TAIL: f64 = 0.3;

/// A lead has at least this length.
const MIN_LEAD_LENGTH: f32 = 40.0;
/// Longer text before the wrapper is no lead.
const MAX_LEAD_LENGTH: f32 = 1200.0;
/// Leaves of a lead.
const MAX_LEAD_LEAVES: usize = 3;
/// Leaves between the title and the object in which a lead is looked for.
const MAX_LEAD_DISTANCE: usize = 40;

/// The lead: what stands between the title and the text, outside of the wrapper or in its header.
pub(super) fn lead(page: &Page<'_>, kept: &[usize], title_leaf: Option<usize>) -> Vec<usize> {
    let Some(&first) = kept.first() else { return Vec::new() };
    let Some(from) = title_leaf.filter(|&title| title < first && first - title <= MAX_LEAD_DISTANCE) else {
        return Vec::new();
    };
    let allowed = BoxKind::Header.bit() | BoxKind::Teaser.bit();
    let mut lead: Vec<usize> = Vec::new();
    for index in from + 1..first {
        let leaf = leaf(page, index);
        let is_free = page.kinds[index] & !allowed == 0 && !page.is_template[index];
        let line = folded(&leaf.text);
        let is_heading = matches!(leaf.kind, LeafKind::Heading(_));
        let is_lead = leaf.is_good || is_heading && leaf.length >= MIN_LEAD_LENGTH && leaf.link_share < 0.3;
        if is_free
            && is_lead
            && leaf.length <= MAX_LEAD_LENGTH
            && !is_byline(&line)
            && !asks(&line)
            && !leads_on(&line)
        {
            lead.push(index);
            if lead.len() == MAX_LEAD_LEAVES {
                break;
            }
        }
    }
    let is_repeated =
        |&index: &usize| kept.iter().any(|&other| leaf(page, other).text == leaf(page, index).text);
    lead.retain(|index| !is_repeated(index));
    lead
}

/// The leaf that holds the title: the heading nearest to the text that repeats it, else the last `h1` before it.
pub(super) fn title_leaf(page: &Page<'_>, wrapper: &Wrapper, title: &str) -> Option<usize> {
    let title = folded(title);
    let below = page.leaves.below(wrapper.node);
    let first_good = below.clone().find(|&index| leaf(page, index).is_good).unwrap_or(below.start);
    let is_heading = |index: &usize| matches!(leaf(page, *index).kind, LeafKind::Heading(_));
    let before = (0..=first_good.min(page.n_leaves().saturating_sub(1))).rev();
    let by_text = before
        .clone()
        .filter(is_heading)
        .find(|&index| is_title_copy(&folded(&leaf(page, index).text), &title));
    by_text.or_else(|| before.clone().find(|&index| matches!(leaf(page, index).kind, LeafKind::Heading(1))))
}

/// The leaves of the object, in order.
pub(super) fn select(page: &Page<'_>, wrapper: &Wrapper, title: &str) -> Vec<usize> {
    select_from(page, wrapper, page.leaves.below(wrapper.node).collect(), title)
}

/// The same for some leaves of the wrapper.
pub(super) fn select_from(
    page: &Page<'_>,
    wrapper: &Wrapper,
    mut kept: Vec<usize>,
    title: &str,
) -> Vec<usize> {
    kept.retain(|&index| page.kinds[index] & wrapper.dropped == 0 && !page.is_template[index]);
    drop_furniture(page, &mut kept);
    drop_head(page, &mut kept, title);
    drop_before_byline(page, &mut kept);
    drop_tail(page, &mut kept, page.is_bounded);
    kept
}

fn leaf<'p>(page: &'p Page<'_>, index: usize) -> &'p Leaf {
    page.leaf(index)
}

/// Lines of one word that say what to do, and links that lead away between paragraphs.
fn drop_furniture(page: &Page<'_>, kept: &mut Vec<usize>) {
    let length = |is_link: bool| -> f32 {
        let of_kind =
            kept.iter().map(|&index| leaf(page, index)).filter(|leaf| (leaf.link_share >= 0.9) == is_link);
        of_kind.map(|leaf| leaf.length).sum()
    };
    // A page that consists of links keeps them: they are what it is about.
    let drops_links = length(true) < length(false);
    kept.retain(|&index| {
        let leaf = leaf(page, index);
        if leaf.length > 300.0 {
            return true;
        }
        let line = folded(&leaf.text);
        let is_way = leads_on(&line) && (leaf.link_share > 0.3 || leaf.length < 40.0);
        let is_link = leaf.link_share >= 0.9 && drops_links && !leaf.leads_out && leaf.kind != LeafKind::Cell;
        !(is_furniture(&line) || is_way || is_link)
    });
}

/// What stands before the first running text: copies of the title, who wrote it and when.
fn drop_head(page: &Page<'_>, kept: &mut Vec<usize>, title: &str) {
    let title = folded(title);
    let is_text = |leaf: &Leaf| leaf.is_good && !is_byline(&folded(&leaf.text));
    let first_good = kept.iter().position(|&index| is_text(leaf(page, index))).unwrap_or(0);
    let mut place = 0;
    kept.retain(|&index| {
        place += 1;
        if place > first_good {
            return true;
        }
        let leaf = leaf(page, index);
        let line = folded(&leaf.text);
        let is_title = matches!(leaf.kind, LeafKind::Heading(1)) || is_title_copy(&line, &title);
        !(is_title || is_byline(&line))
    });
}

/// Leaves at the beginning in which a byline is looked for, and how much may stand before it.
const MAX_HEAD_LEAVES: usize = 5;
const MAX_HEAD_LENGTH: f32 = 400.0;

/// Who wrote it and when often stands between the lead and the text: what is before that line is not text.
fn drop_before_byline(page: &Page<'_>, kept: &mut Vec<usize>) {
    if page.is_bounded || kept.len() < 2 * MAX_HEAD_LEAVES {
        return;
    }
    let mut length = 0.0;
    for place in 0..MAX_HEAD_LEAVES {
        let leaf = leaf(page, kept[place]);
        if is_byline(&folded(&leaf.text)) {
            kept.drain(..=place);
            return;
        }
        length += leaf.length;
        if length > MAX_HEAD_LENGTH {
            return;
        }
    }
}

pub(super) fn is_title_copy(line: &str, title: &str) -> bool {
    !line.is_empty()
        && !title.is_empty()
        && (line == title || line.len() > 15 && (title.starts_with(line) || line.starts_with(title)))
}

fn is_behind(line: &str) -> bool {
    is_byline(line) || is_filing(line)
}

/// What stands behind the object: headings of related pages with what follows, and lines that ask for something.
fn drop_tail(page: &Page<'_>, kept: &mut Vec<usize>, is_bounded: bool) {
    if is_bounded {
        return;
    }
    let total: f64 = kept.iter().map(|&index| f64::from(leaf(page, index).length)).sum();
    let mut before = 0.0;
    let mut cut = None;
    for (place, &index) in kept.iter().enumerate() {
        let leaf = leaf(page, index);
        let is_short = leaf.length <= 80.0;
        if is_short && before > total * (1.0 - MAX_TAIL) && leads_on(&folded(&leaf.text)) {
            cut = Some(place);
            break;
        }
        before += f64::from(leaf.length);
    }
    if let Some(cut) = cut {
        kept.truncate(cut);
    }
    let total: f64 = kept.iter().map(|&index| f64::from(leaf(page, index).length)).sum();
    let mut before = 0.0;
    kept.retain(|&index| {
        let leaf = leaf(page, index);
        before += f64::from(leaf.length);
        let is_late = before > total * (1.0 - MAX_TAIL);
        !(is_late && leaf.length < 400.0 && asks(&folded(&leaf.text)))
    });
    while let Some(&last) = kept.last() {
        let leaf = leaf(page, last);
        let is_orphan = matches!(leaf.kind, LeafKind::Heading(_));
        if kept.len() > 1 && (is_orphan || is_behind(&folded(&leaf.text))) {
            kept.pop();
        } else {
            break;
        }
    }
}

/// Leaves around the headline in which author and time are looked for.
const NEAR: usize = 15;

/// The leaves near the headline, else near the beginning of the text, nearest first.
fn near(page: &Page<'_>, title: Option<usize>, text: &[usize]) -> Vec<usize> {
    let from = title.or(text.first().copied()).unwrap_or_default();
    let to = text.first().copied().unwrap_or(from).max(from) + 3;
    let after = from..(to.min(from + 2 * NEAR)).min(page.n_leaves());
    let before = (from.saturating_sub(5)..from).rev();
    after.chain(before).collect()
}

/// The day that a line near the headline tells.
pub(super) fn time_near(page: &Page<'_>, title: Option<usize>, text: &[usize]) -> Option<Timestamp> {
    let lines = near(page, title, text)
        .into_iter()
        .map(|index| leaf(page, index))
        .filter(|leaf| leaf.length <= 120.0);
    lines.filter(|leaf| is_byline(&folded(&leaf.text))).find_map(|leaf| dates::in_words(&leaf.text))
}

/// The name in a line near the headline that begins with "by", or stands in a box that is named after the author.
pub(super) fn author_near(page: &Page<'_>, title: Option<usize>, text: &[usize]) -> String {
    let lines = near(page, title, text).into_iter().map(|index| leaf(page, index));
    lines.filter(|leaf| leaf.length <= 80.0).find_map(|leaf| author_in(page, leaf)).unwrap_or_default()
}

fn author_in(page: &Page<'_>, leaf: &Leaf) -> Option<String> {
    const STARTS: [&str; 8] =
        ["by ", "by: ", "von ", "por ", "par ", "written by ", "posted by ", "author: "];
    let line = leaf.text.split(['|', '·', '•', '\n', ',']).next().unwrap_or_default().trim();
    let small = line.to_lowercase();
    let name = clean_author(line);
    let n_words = name.split_whitespace().count();
    let is_name = (1..=5).contains(&n_words)
        && name.starts_with(char::is_alphabetic)
        && !name.contains(|c: char| c.is_ascii_digit() || matches!(c, ':' | '!' | '?'));
    let is_told = || STARTS.iter().any(|start| small.starts_with(start)) || is_in_author_box(page, leaf);
    (is_name && is_told()).then_some(name)
}

/// Whether an element right around a leaf is named after the author.
fn is_in_author_box(page: &Page<'_>, leaf: &Leaf) -> bool {
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
