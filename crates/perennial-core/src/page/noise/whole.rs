//! A delta -> what its operations show together, though none of them shows it alone: dates that all moved by one day,
//! boxes whose stories were all replaced.

use std::collections::HashSet;

use url::Url;

use crate::page::diff::{BlockDelta, Delta, Element, Operation, OperationKind, Subject};
use crate::page::segment::{Block, BlockRole, item_key, names_article};
use crate::text::stamps::{PassingKind, days_between, passing};

/// Number of dates that must move by the same day. Two appointments may be put off together; three dates of a list that
/// all move by one day are the same instants in a different time zone.
const MIN_SHIFTED_DATES: usize = 3;
/// Minimum number of stories that a box showed before, and shows after.
const MIN_STORIES: usize = 2;
/// Links of a box that may stay, as a share of those that changed: "All stories", "Share".
const MAX_KEPT_LINKS: f64 = 1.0 / 3.0;
/// Maximum importance of a box without the role of a frame. A list with more is what the page is about.
const MAX_BOX_IMPORTANCE: f32 = 0.25;

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

/// Whether at least three dates changed, and all by the same day.
fn has_shifted_dates(delta: &Delta) -> bool {
    let updates = delta.blocks.iter().flat_map(|block| &block.updated);
    let shifts = updates.filter_map(|update| days_between(update.before.text(), update.after.text()));
    let shifts: Vec<i64> = shifts.collect();
    shifts.len() >= MIN_SHIFTED_DATES
        && (shifts.iter().all(|days| *days == 1) || shifts.iter().all(|days| *days == -1))
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
    let mut boxes = HashSet::new();
    for block in delta.blocks.iter().filter(|block| is_beside(block)) {
        let mut own = Stories::default();
        block.deleted.iter().for_each(|(_, element)| own.add(0, element));
        block.inserted.iter().for_each(|(_, element)| own.add(1, element));
        for update in &block.updated {
            own.add(0, &update.before);
            own.add(1, &update.after);
        }
        if own.0.iter().any(|side| !side.is_empty()) && is_replaced(block) {
            boxes.insert((Some(&*block.before.0), Some(&*block.after.0)));
            own.0.into_iter().zip(&mut stories.0).for_each(|(own, all)| all.extend(own));
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
        if leaves().all(is_leaf_beside) && !own.0[side].is_empty() {
            boxes.insert((operation.block_before, operation.block_after));
            stories.0[side].extend(std::mem::take(&mut own.0[side]));
        }
    }
    let [before, after] = &stories.0;
    let is_rotated = before.len() >= MIN_STORIES && after.len() >= MIN_STORIES;
    if is_rotated { boxes } else { HashSet::new() }
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
    let n_all = block.n_elements[crate::page::diff::ElementKind::Link as usize] as usize;
    let n_kept = n_all.saturating_sub(n_changed + n_updated(false)) + n_updated(false);
    n_kept as f64 <= MAX_KEPT_LINKS * n_changed as f64
}

fn is_beside(block: &BlockDelta) -> bool {
    is_role_beside(block.role, block.importance.max(block.importance_before))
}

fn is_leaf_beside(leaf: &Block) -> bool {
    is_role_beside(leaf.role, leaf.importance)
}

fn is_role_beside(role: BlockRole, importance: f32) -> bool {
    match role {
        BlockRole::Main | BlockRole::Comments => false,
        BlockRole::Other => importance <= MAX_BOX_IMPORTANCE,
        BlockRole::Navigation | BlockRole::Header | BlockRole::Footer | BlockRole::Advertisement => true,
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
