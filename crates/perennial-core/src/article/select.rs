//! A wrapper -> the article's own leaves, without the lines before, between and after them.

use super::boxes::BoxKind;
use super::leaves::{LeafKind, TextLeaf};
use super::page::LeafPage;
use super::phrases::{folded, is_byline, is_call_to_action, is_filing, is_furniture, leads_elsewhere};
use super::wrapper::Wrapper;

/// A heading of related pages ends the text if less than this share of the text follows.
const MAX_TAIL: f64 = 0.3;

/// A longer line is not a heading of related pages.
const MAX_HEADING_LENGTH: f32 = 80.0;
/// A longer paragraph is more than a call to action.
const MAX_CALL_LENGTH: f32 = 400.0;
/// A longer paragraph is not boilerplate, whatever it begins with.
const MAX_FURNITURE_LENGTH: f32 = 300.0;
/// A line with at least this share of links is a link.
const LINK: f32 = 0.9;
/// A heading with a larger share of links is a link.
const MAX_LINKED_HEADING: f32 = 0.3;
/// The minimum share of links in related content.
const MIN_TAIL_LINKED: f32 = 0.25;
/// The maximum share of the text in related content, because references of an encyclopedia are links too.
const MAX_LED_TAIL: f32 = 0.15;
/// The minimum share of links in an entry of a list of related pages.
const MIN_ENTRY_LINK: f32 = 0.2;
/// A line that refers to other pages is partly a link, or shorter than this.
const MAX_WAY_LENGTH: f32 = 40.0;

/// The minimum length of a lead.
const MIN_LEAD_LENGTH: f32 = 40.0;
/// Longer text before the wrapper is not a lead.
const MAX_LEAD_LENGTH: f32 = 1200.0;
/// Maximum number of leaves in a lead.
const MAX_LEAD_LEAVES: usize = 3;
/// Maximum number of leaves between the title and the article that are searched for a lead.
const MAX_LEAD_DISTANCE: usize = 40;

/// The lead: the text between the title and the body, outside of the wrapper or in its header.
pub(super) fn lead(page: &LeafPage<'_>, kept: &[usize], title_leaf: Option<usize>) -> Vec<usize> {
    let Some(&first) = kept.first() else { return Vec::new() };
    let Some(from) = title_leaf.filter(|&title| title < first && first - title <= MAX_LEAD_DISTANCE) else {
        return Vec::new();
    };
    let allowed = BoxKind::Header.bit() | BoxKind::Teaser.bit();
    let mut lead: Vec<usize> = Vec::new();
    for index in from + 1..first {
        let leaf = page.leaf(index);
        let is_free = page.kinds[index] & !allowed == 0 && !page.is_template[index];
        let line = folded(&leaf.text);
        let is_heading = matches!(leaf.kind, LeafKind::Heading(_));
        let is_lead = leaf.is_good || is_heading && leaf.length >= MIN_LEAD_LENGTH && leaf.link_share < 0.3;
        if is_free
            && is_lead
            && leaf.length <= MAX_LEAD_LENGTH
            && !is_byline(&line)
            && !is_call_to_action(&line)
            && !leads_elsewhere(&line)
        {
            lead.push(index);
            if lead.len() == MAX_LEAD_LEAVES {
                break;
            }
        }
    }
    let is_repeated =
        |&index: &usize| kept.iter().any(|&other| page.leaf(other).text == page.leaf(index).text);
    lead.retain(|index| !is_repeated(index));
    lead
}

/// The leaf with the title: the heading nearest to the text that repeats it, or the last `h1` before it.
pub(super) fn title_leaf(page: &LeafPage<'_>, wrapper: &Wrapper, title: &str) -> Option<usize> {
    let title = folded(title);
    let below = page.leaves.below(wrapper.node);
    let first_good = below.clone().find(|&index| page.leaf(index).is_good).unwrap_or(below.start);
    let is_heading = |index: &usize| matches!(page.leaf(*index).kind, LeafKind::Heading(_));
    let before = (0..=first_good.min(page.n_leaves().saturating_sub(1))).rev();
    let by_text = before
        .clone()
        .filter(is_heading)
        .find(|&index| is_title_copy(&folded(&page.leaf(index).text), &title));
    by_text.or_else(|| before.clone().find(|&index| matches!(page.leaf(index).kind, LeafKind::Heading(1))))
}

/// The leaves of the article, in order.
pub(super) fn select(page: &LeafPage<'_>, wrapper: &Wrapper, title: &str) -> Vec<usize> {
    select_from(page, wrapper, page.leaves.below(wrapper.node).collect(), title)
}

/// The same for some leaves of the wrapper.
pub(super) fn select_from(
    page: &LeafPage<'_>,
    wrapper: &Wrapper,
    mut kept: Vec<usize>,
    title: &str,
) -> Vec<usize> {
    kept.retain(|&index| page.kinds[index] & wrapper.dropped == 0 && !page.is_template[index]);
    drop_related_lists(page, &mut kept);
    cut_at_related_heading(page, &mut kept);
    drop_furniture(page, &mut kept);
    drop_head(page, &mut kept, title);
    drop_before_byline(page, &mut kept);
    drop_tail(page, &mut kept);
    kept
}

/// Removes boilerplate lines, and links to other pages between paragraphs.
fn drop_furniture(page: &LeafPage<'_>, kept: &mut Vec<usize>) {
    let length = |is_link: bool| -> f32 {
        let of_kind =
            kept.iter().map(|&index| page.leaf(index)).filter(|leaf| (leaf.link_share >= LINK) == is_link);
        of_kind.map(|leaf| leaf.length).sum()
    };
    // A page of mostly links keeps them, because they are its subject.
    let drops_links = length(true) < length(false);
    kept.retain(|&index| {
        let leaf = page.leaf(index);
        if leaf.length > MAX_FURNITURE_LENGTH {
            return true;
        }
        let line = folded(&leaf.text);
        let is_way = leads_elsewhere(&line) && (leaf.link_share > 0.3 || leaf.length < MAX_WAY_LENGTH);
        let is_link =
            leaf.link_share >= LINK && drops_links && !leaf.leads_out && leaf.kind != LeafKind::Cell;
        !(is_furniture(&line) || is_way || is_link)
    });
}

/// Removes lines before the first running text: copies of the title and bylines.
fn drop_head(page: &LeafPage<'_>, kept: &mut Vec<usize>, title: &str) {
    let title = folded(title);
    let is_text = |leaf: &TextLeaf| leaf.is_good && !is_byline(&folded(&leaf.text));
    // Without running text the head is short.
    let first_good = kept.iter().position(|&index| is_text(page.leaf(index))).unwrap_or(MAX_HEAD_LEAVES);
    let mut place = 0;
    kept.retain(|&index| {
        place += 1;
        if place > first_good {
            return true;
        }
        let leaf = page.leaf(index);
        let line = folded(&leaf.text);
        let is_title = matches!(leaf.kind, LeafKind::Heading(1)) || is_title_copy(&line, &title);
        !(is_title || is_byline(&line))
    });
}

/// Leaves and letters at the beginning that are searched for a byline.
const MAX_HEAD_LEAVES: usize = 5;
const MAX_HEAD_LENGTH: f32 = 400.0;

/// Removes the text before a byline, because the byline often comes between the lead and the body.
fn drop_before_byline(page: &LeafPage<'_>, kept: &mut Vec<usize>) {
    if page.is_bounded || kept.len() < 2 * MAX_HEAD_LEAVES {
        return;
    }
    let mut length = 0.0;
    for place in 0..MAX_HEAD_LEAVES {
        let leaf = page.leaf(kept[place]);
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

fn is_trailing_line(line: &str) -> bool {
    is_byline(line) || is_filing(line)
}

/// Removes lines that lead to other pages, with the lists of links right below them.
fn drop_related_lists(page: &LeafPage<'_>, kept: &mut Vec<usize>) {
    let is_entry = |leaf: &TextLeaf| {
        let is_listed = leaf.kind == LeafKind::Item && leaf.link_share > MIN_ENTRY_LINK;
        (is_listed || leaf.link_share >= LINK) && !leaf.leads_out
    };
    let mut is_led = false;
    kept.retain(|&index| {
        let leaf = page.leaf(index);
        let leads = leaf.length <= MAX_HEADING_LENGTH
            && leaf.link_share < LINK
            && leads_elsewhere(&folded(&leaf.text));
        is_led = leads || is_led && is_entry(leaf);
        leads || !is_led
    });
}

/// Ends the text at a late heading of related pages if mostly links follow. After a heading that is itself a link the
/// text may continue.
fn cut_at_related_heading(page: &LeafPage<'_>, kept: &mut Vec<usize>) {
    if page.is_bounded {
        return;
    }
    let total: f32 = kept.iter().map(|&index| page.leaf(index).length).sum();
    let leads = |&place: &usize| {
        let leaf = page.leaf(kept[place]);
        leaf.length <= MAX_HEADING_LENGTH
            && leaf.link_share < MAX_LINKED_HEADING
            && leads_elsewhere(&folded(&leaf.text))
    };
    let leads_away = |&place: &usize| {
        let behind = kept[place + 1..].iter().map(|&index| page.leaf(index));
        let (length, linked) = behind.fold((0.0, 0.0), |(length, linked), leaf| {
            (length + leaf.length, linked + leaf.length * leaf.link_share)
        });
        linked >= MIN_TAIL_LINKED * length && length <= MAX_LED_TAIL * total
    };
    if let Some(cut) = late_positions(page, kept).filter(leads).find(leads_away) {
        kept.truncate(cut);
    }
}

/// Removes lines after the article: related pages, calls to action, headings without text, dates, tags.
fn drop_tail(page: &LeafPage<'_>, kept: &mut Vec<usize>) {
    if page.is_bounded {
        return;
    }
    if let Some(cut) = late_positions(page, kept).find(|&place| {
        let leaf = page.leaf(kept[place]);
        leaf.length <= MAX_HEADING_LENGTH && leads_elsewhere(&folded(&leaf.text))
    }) {
        kept.truncate(cut);
    }
    let calls_to_action: Vec<usize> = late_positions(page, kept)
        .map(|place| kept[place])
        .filter(|&index| {
            page.leaf(index).length < MAX_CALL_LENGTH && is_call_to_action(&folded(&page.leaf(index).text))
        })
        .collect();
    kept.retain(|index| calls_to_action.binary_search(index).is_err());
    let is_loose =
        |leaf: &TextLeaf| matches!(leaf.kind, LeafKind::Heading(_)) || is_trailing_line(&folded(&leaf.text));
    while kept.len() > 1 && kept.last().is_some_and(|&last| is_loose(page.leaf(last))) {
        kept.pop();
    }
}

/// The positions in the last part of a text.
fn late_positions(page: &LeafPage<'_>, kept: &[usize]) -> std::ops::Range<usize> {
    let length = |index: &usize| f64::from(page.leaf(*index).length);
    let total: f64 = kept.iter().map(length).sum();
    let mut before = 0.0;
    let is_early = |index: &&usize| {
        let is_early = before <= total * (1.0 - MAX_TAIL);
        before += length(index);
        is_early
    };
    let n_early = kept.iter().take_while(is_early).count();
    n_early..kept.len()
}
