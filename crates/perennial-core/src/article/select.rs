//! A wrapper -> the leaves of it that are the object's own: what stands before, between and behind them goes.

use super::boxes::BoxKind;
use super::leaves::{Leaf, LeafKind};
use super::page::Page;
use super::phrases::{asks, folded, is_byline, is_filing, is_furniture, leads_on};
use super::wrapper::Wrapper;

/// A heading of related pages cuts the rest when less than this share of the text stands behind it.
const MAX_TAIL: f64 = 0.3;

/// A longer line is no heading of other pages.
const MAX_HEADING_LENGTH: f32 = 80.0;
/// A longer paragraph does not only ask for something.
const MAX_ASKING_LENGTH: f32 = 400.0;
/// A longer paragraph is no furniture, whatever it begins with.
const MAX_FURNITURE_LENGTH: f32 = 300.0;
/// A line with so large a share of links is a link.
const LINK: f32 = 0.9;
/// A heading with a larger share of links is a link.
const MAX_LINKED_HEADING: f32 = 0.3;
/// What leads away has this share of links.
const MIN_TAIL_LINKED: f32 = 0.25;
/// It is no larger a share of the text: references of an encyclopedia are links too.
const MAX_LED_TAIL: f32 = 0.15;
/// An entry of a list that leads on is a link in part.
const MIN_ENTRY_LINK: f32 = 0.2;
/// A line that leads on is a link in part, or shorter than this.
const MAX_WAY_LENGTH: f32 = 40.0;

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
        let leaf = page.leaf(index);
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
        |&index: &usize| kept.iter().any(|&other| page.leaf(other).text == page.leaf(index).text);
    lead.retain(|index| !is_repeated(index));
    lead
}

/// The leaf that holds the title: the heading nearest to the text that repeats it, else the last `h1` before it.
pub(super) fn title_leaf(page: &Page<'_>, wrapper: &Wrapper, title: &str) -> Option<usize> {
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
    drop_led_lists(page, &mut kept);
    cut_at_way(page, &mut kept);
    drop_furniture(page, &mut kept);
    drop_head(page, &mut kept, title);
    drop_before_byline(page, &mut kept);
    drop_tail(page, &mut kept);
    kept
}

/// Lines of one word that say what to do, and links that lead away between paragraphs.
fn drop_furniture(page: &Page<'_>, kept: &mut Vec<usize>) {
    let length = |is_link: bool| -> f32 {
        let of_kind =
            kept.iter().map(|&index| page.leaf(index)).filter(|leaf| (leaf.link_share >= LINK) == is_link);
        of_kind.map(|leaf| leaf.length).sum()
    };
    // A page that consists of links keeps them: they are what it is about.
    let drops_links = length(true) < length(false);
    kept.retain(|&index| {
        let leaf = page.leaf(index);
        if leaf.length > MAX_FURNITURE_LENGTH {
            return true;
        }
        let line = folded(&leaf.text);
        let is_way = leads_on(&line) && (leaf.link_share > 0.3 || leaf.length < MAX_WAY_LENGTH);
        let is_link =
            leaf.link_share >= LINK && drops_links && !leaf.leads_out && leaf.kind != LeafKind::Cell;
        !(is_furniture(&line) || is_way || is_link)
    });
}

/// What stands before the first running text: copies of the title, who wrote it and when.
fn drop_head(page: &Page<'_>, kept: &mut Vec<usize>, title: &str) {
    let title = folded(title);
    let is_text = |leaf: &Leaf| leaf.is_good && !is_byline(&folded(&leaf.text));
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

fn is_behind(line: &str) -> bool {
    is_byline(line) || is_filing(line)
}

/// A line that leads on, and the list of links to other pages of the site right below it, anywhere in the text.
fn drop_led_lists(page: &Page<'_>, kept: &mut Vec<usize>) {
    let is_entry = |leaf: &Leaf| {
        let is_listed = leaf.kind == LeafKind::Item && leaf.link_share > MIN_ENTRY_LINK;
        (is_listed || leaf.link_share >= LINK) && !leaf.leads_out
    };
    let mut is_led = false;
    kept.retain(|&index| {
        let leaf = page.leaf(index);
        let leads =
            leaf.length <= MAX_HEADING_LENGTH && leaf.link_share < LINK && leads_on(&folded(&leaf.text));
        is_led = leads || is_led && is_entry(leaf);
        leads || !is_led
    });
}

/// What follows a heading of other pages near the end is not the object's, where it mostly leads on too: behind a line that is itself a
/// link the text may go on.
fn cut_at_way(page: &Page<'_>, kept: &mut Vec<usize>) {
    if page.is_bounded {
        return;
    }
    let total: f32 = kept.iter().map(|&index| page.leaf(index).length).sum();
    let leads = |&place: &usize| {
        let leaf = page.leaf(kept[place]);
        leaf.length <= MAX_HEADING_LENGTH
            && leaf.link_share < MAX_LINKED_HEADING
            && leads_on(&folded(&leaf.text))
    };
    let leads_away = |&place: &usize| {
        let behind = kept[place + 1..].iter().map(|&index| page.leaf(index));
        let (length, linked) = behind.fold((0.0, 0.0), |(length, linked), leaf| {
            (length + leaf.length, linked + leaf.length * leaf.link_share)
        });
        linked >= MIN_TAIL_LINKED * length && length <= MAX_LED_TAIL * total
    };
    if let Some(cut) = late(page, kept).filter(leads).find(leads_away) {
        kept.truncate(cut);
    }
}

/// What stands behind the object: a heading of other pages with all that follows, lines that ask for something, headings without text, dates, tags.
fn drop_tail(page: &Page<'_>, kept: &mut Vec<usize>) {
    if page.is_bounded {
        return;
    }
    if let Some(cut) = late(page, kept).find(|&place| {
        let leaf = page.leaf(kept[place]);
        leaf.length <= MAX_HEADING_LENGTH && leads_on(&folded(&leaf.text))
    }) {
        kept.truncate(cut);
    }
    let asking: Vec<usize> = late(page, kept)
        .map(|place| kept[place])
        .filter(|&index| page.leaf(index).length < MAX_ASKING_LENGTH && asks(&folded(&page.leaf(index).text)))
        .collect();
    kept.retain(|index| asking.binary_search(index).is_err());
    let is_loose = |leaf: &Leaf| matches!(leaf.kind, LeafKind::Heading(_)) || is_behind(&folded(&leaf.text));
    while kept.len() > 1 && kept.last().is_some_and(|&last| is_loose(page.leaf(last))) {
        kept.pop();
    }
}

/// The places in the last part of a text.
fn late(page: &Page<'_>, kept: &[usize]) -> std::ops::Range<usize> {
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
