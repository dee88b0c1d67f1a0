//! A delta -> what its operations show together, though none of them shows it alone: dates that all moved by one day,
//! boxes whose stories were all replaced.

use std::collections::{HashMap, HashSet};

use url::Url;

use crate::page::diff::{BlockDelta, Delta, Element, ElementKind, Operation, OperationKind, Subject};
use crate::page::segment::{BlockRole, item_key, names_article};
use crate::text::stamps::{PassingKind, only_date, passing};

/// Number of dates that must move by the same day. Two appointments may be put off together; three dates of a list that
/// all move by one day are the same instants in a different time zone.
const MIN_SHIFTED_DATES: usize = 3;
/// Minimum share of the changed dates that moved. One of them may have changed besides.
const SHIFTED_SHARE: f64 = 0.8;
/// Minimum number of stories that a box showed before, and shows after.
const MIN_STORIES: usize = 2;
/// Links of a box that may stay, as a share of those that changed: "All stories", "Share".
const MAX_KEPT_LINKS: f64 = 1.0 / 3.0;

/// References of a block before and after.
type BlockPlace<'d> = (Option<&'d [u16]>, Option<&'d [u16]>);

/// What the operations of a delta show together.
#[derive(Debug, Default)]
pub(super) struct WholeChange<'d> {
    has_shifted_dates: bool,
    boxes: HashSet<BlockPlace<'d>>,
}

impl<'d> WholeChange<'d> {
    pub(super) fn new(delta: &'d Delta) -> WholeChange<'d> {
        WholeChange { has_shifted_dates: has_shifted_dates(delta), boxes: rotated_boxes(delta) }
    }

    /// Whether the operation is part of a box of stories, all of which were replaced.
    pub(super) fn is_in_rotated_box(&self, operation: &Operation<'_>) -> bool {
        self.boxes.contains(&(operation.block_before, operation.block_after))
    }

    pub(super) fn has_rotated_box(&self) -> bool {
        !self.boxes.is_empty()
    }

    /// Whether the operation is about a date that moved with all the others.
    pub(super) fn is_shifted_date(&self, operation: &Operation<'_>) -> bool {
        let is_date = |element: &Element| passing(element.text()) == Some(PassingKind::Stamp);
        match operation.subject {
            Subject::Element { before, after } if self.has_shifted_dates => {
                before.into_iter().chain(after).all(is_date)
            }
            _ => false,
        }
    }
}

/// Whether at least three dates changed, and nearly all by the same day. Which date replaced which does not matter.
fn has_shifted_dates(delta: &Delta) -> bool {
    let mut days = [Vec::new(), Vec::new()];
    for block in &delta.blocks {
        let gone = block.deleted.iter().map(|(_, element)| element);
        let come = block.inserted.iter().map(|(_, element)| element);
        days[0].extend(gone.chain(block.updated.iter().map(|update| &update.before)).filter_map(day));
        days[1].extend(come.chain(block.updated.iter().map(|update| &update.after)).filter_map(day));
    }
    let [before, after] = days;
    let n_most = before.len().max(after.len());
    n_most >= MIN_SHIFTED_DATES
        && [1, -1].into_iter().any(|shift| {
            let mut left: HashMap<i64, usize> = HashMap::new();
            after.iter().for_each(|day| *left.entry(*day).or_default() += 1);
            let is_paired =
                |day: &&i64| left.get_mut(&(**day + shift)).filter(|n| **n > 0).map(|n| *n -= 1).is_some();
            let n_paired = before.iter().filter(is_paired).count();
            n_paired as f64 >= SHIFTED_SHARE * n_most as f64
        })
}

fn day(element: &Element) -> Option<i64> {
    const DAY: i64 = 86_400_000;
    Some(only_date(element.text())?.as_millis().div_euclid(DAY))
}

/// The stories to which the links of a place led before, and lead after.
#[derive(Default)]
struct Stories([HashSet<String>; 2]);

impl Stories {
    fn add(&mut self, side: usize, element: &Element) {
        if let Element::Link(link) = element {
            self.0[side].extend(story(&link.url));
        }
    }
}

/// The boxes outside of the main content whose links led to other articles and now all lead to others. What such a box
/// shows is not news of the page that contains it.
fn rotated_boxes(delta: &Delta) -> HashSet<BlockPlace<'_>> {
    let mut stories = Stories::default();
    // Boxes with links to stories, and parts of such boxes.
    let (mut boxes, mut parts) = (HashSet::new(), HashSet::new());
    for block in delta.blocks.iter().filter(|block| is_beside(block.role)) {
        let mut own = Stories::default();
        block.deleted.iter().for_each(|(_, element)| own.add(0, element));
        block.inserted.iter().for_each(|(_, element)| own.add(1, element));
        for update in &block.updated {
            own.add(0, &update.before);
            own.add(1, &update.after);
        }
        let place = (Some(&*block.before.0), Some(&*block.after.0));
        if !is_replaced(block) {
            continue;
        }
        if own.0.iter().any(|side| !side.is_empty()) {
            boxes.insert(place);
            own.0.into_iter().zip(&mut stories.0).for_each(|(own, all)| all.extend(own));
        } else if block.role == BlockRole::Related {
            parts.insert(place);
        }
    }
    for operation in delta.operations() {
        let (side, block) = match (operation.kind, operation.subject) {
            (OperationKind::Delete, Subject::Block(Some(block))) => (0, block),
            (OperationKind::Insert, Subject::Block(Some(block))) => (1, block),
            _ => continue,
        };
        let mut own = Stories::default();
        let leaves = || block.walk().filter(|leaf| leaf.is_leaf());
        leaves().flat_map(Element::in_block).for_each(|element| own.add(side, &element));
        let place = (operation.block_before, operation.block_after);
        if leaves().all(|leaf| leaf.role == BlockRole::Related) {
            parts.insert(place);
        }
        if leaves().all(|leaf| is_beside(leaf.role)) && !own.0[side].is_empty() {
            boxes.insert(place);
            stories.0[side].extend(std::mem::take(&mut own.0[side]));
        }
    }
    let [before, after] = &stories.0;
    let is_rotated = before.len() >= MIN_STORIES && after.len() >= MIN_STORIES;
    if is_rotated { boxes.union(&parts).copied().collect() } else { HashSet::new() }
}

/// Whether most links of a block lead elsewhere now.
fn is_replaced(block: &BlockDelta) -> bool {
    let is_link = |(_, element): &&(u32, Element)| matches!(element, Element::Link(_));
    let n_updated = |is_elsewhere: bool| {
        let links = block.updated.iter().filter(|update| matches!(update.after, Element::Link(_)));
        links.filter(|update| (update.before.url() != update.after.url()) == is_elsewhere).count()
    };
    let n_replaced =
        block.inserted.iter().filter(is_link).count() + block.deleted.iter().filter(is_link).count();
    let n_changed = n_replaced + n_updated(true);
    let n_all = block.n_elements[ElementKind::Link as usize] as usize;
    let n_kept = n_all.saturating_sub(n_changed + n_updated(false)) + n_updated(false);
    n_kept as f64 <= MAX_KEPT_LINKS * n_changed as f64
}

/// Whether a block shows something other than the content of its page.
fn is_beside(role: BlockRole) -> bool {
    match role {
        BlockRole::Main | BlockRole::Comments | BlockRole::Other => false,
        BlockRole::Navigation
        | BlockRole::Header
        | BlockRole::Footer
        | BlockRole::Related
        | BlockRole::Advertisement => true,
    }
}

/// The key of the article to which a URL leads, or which it shares: buttons that share a page contain its URL.
fn story(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let key = |url: &Url| Some(item_key(url)).filter(|key| names_article(key));
    key(&url).or_else(|| {
        let shared = url.query_pairs().filter_map(|(_, value)| Url::parse(&value).ok());
        shared.filter(Url::has_host).find_map(|url| key(&url))
    })
}
