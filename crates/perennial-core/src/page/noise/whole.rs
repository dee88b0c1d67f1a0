//! A delta -> patterns that only several operations show together: dates that all moved by one day, entries that were all
//! renumbered, boxes whose stories were all replaced.

use std::collections::{HashMap, HashSet};

use url::Url;

use crate::page::diff::{BlockDelta, Delta, Element, ElementKind, Operation, OperationKind, Subject};
use crate::page::segment::{BlockRole, item_key, names_article};
use crate::text::stamps::{PassingKind, only_date, passing};

/// Number of dates that must move by the same day. Two appointments may be put off together; three dates of a list that
/// all move by one day are the same instants in a different time zone.
const MIN_SHIFTED_DATES: usize = 3;
/// Minimum share of the changed dates that moved. A few may have changed for a different reason.
const SHIFTED_SHARE: f64 = 0.8;
/// Minimum number of stories that a box showed before, and shows after.
const MIN_STORIES: usize = 2;
/// Links of a box that may stay, as a share of those that changed: "All stories", "Share".
const MAX_KEPT_LINKS: f64 = 1.0 / 3.0;

/// References of a block before and after.
type OperationPlace<'d> = (Option<&'d [u16]>, Option<&'d [u16]>);

/// Patterns across the operations of a delta.
#[derive(Debug, Default)]
pub(super) struct WholeChange<'d> {
    has_shifted_dates: bool,
    is_renumbered: bool,
    boxes: HashSet<OperationPlace<'d>>,
}

impl<'d> WholeChange<'d> {
    pub(super) fn new(delta: &'d Delta) -> WholeChange<'d> {
        WholeChange {
            has_shifted_dates: has_shifted_dates(delta),
            is_renumbered: is_renumbered(delta),
            boxes: rotated_boxes(delta),
        }
    }

    /// Whether the operation is part of a box of stories, all of which were replaced.
    pub(super) fn is_in_rotated_box(&self, operation: &Operation<'_>) -> bool {
        self.boxes.contains(&(operation.block_before, operation.block_after))
    }

    pub(super) fn has_rotated_box(&self) -> bool {
        !self.boxes.is_empty()
    }

    /// Whether the operation changes the number of a list entry, like those of the other entries.
    pub(super) fn is_renumbering(&self, operation: &Operation<'_>) -> bool {
        match operation.subject {
            Subject::Element { before: Some(before), after: Some(after) } if self.is_renumbered => {
                renumbering(before.text(), after.text()).is_some()
            }
            _ => false,
        }
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

/// Whether the numbers of at least two entries moved by the same amount, as after an entry that came or went. In a list
/// by rank, some entries go up and others down.
fn is_renumbered(delta: &Delta) -> bool {
    let updates = delta.blocks.iter().flat_map(|block| &block.updated);
    let mut shifts = updates.filter_map(|update| renumbering(update.before.text(), update.after.text()));
    let first = shifts.next();
    let others: Vec<i64> = shifts.collect();
    !others.is_empty() && others.iter().all(|shift| Some(*shift) == first)
}

/// Number of words at the beginning of a text that may contain its number: `4.2`, `§ 4`, `Article 7`.
const NUMBER_WORDS: usize = 2;

/// The difference of the numbers at the beginnings of two texts that differ in nothing else.
fn renumbering(before: &str, after: &str) -> Option<i64> {
    if before == after {
        return None;
    }
    let (mut old, mut new) = (before.split_whitespace(), after.split_whitespace());
    let mut shift = None;
    for place in 0.. {
        match (old.next(), new.next()) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) if place < NUMBER_WORDS && shift.is_none() => {
                let (old, new) = (entry_number(old)?, entry_number(new)?);
                shift = Some(new - old).filter(|_| place + 1 < before.split_whitespace().count());
                shift?;
            }
            (None, None) => break,
            _ => return None,
        }
    }
    shift
}

/// The last part of a number such as `4.`, `(4)` or `4.2`.
fn entry_number(word: &str) -> Option<i64> {
    let word = word.trim_matches(|c: char| !c.is_ascii_digit());
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    word.rsplit('.').next().filter(|_| is_number && word.len() <= 12)?.parse().ok()
}

/// The stories to which the links of a place led before, and lead after.
#[derive(Default)]
struct Stories([HashSet<String>; 2]);

impl Stories {
    fn add(&mut self, side: usize, element: &Element, host: Option<&str>) {
        if let Element::Link(link) = element {
            self.0[side].extend(story(&link.url, host));
        }
    }
}

/// The boxes outside of the main content with links to articles, if all of these links are different now. Their stories
/// are not news of the page that contains the box.
fn rotated_boxes(delta: &Delta) -> HashSet<OperationPlace<'_>> {
    let page = Url::parse(&delta.url).ok();
    let host = page.as_ref().and_then(Url::host_str);
    let mut stories = Stories::default();
    // Boxes with links to stories, and parts of such boxes.
    let (mut boxes, mut parts) = (HashSet::new(), HashSet::new());
    for block in delta.blocks.iter().filter(|block| is_beside(block.role)) {
        let mut own = Stories::default();
        block.deleted.iter().for_each(|(_, element)| own.add(0, element, host));
        block.inserted.iter().for_each(|(_, element)| own.add(1, element, host));
        for update in &block.updated {
            own.add(0, &update.before, host);
            own.add(1, &update.after, host);
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
        leaves().flat_map(Element::in_block).for_each(|element| own.add(side, &element, host));
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
    if !is_rotated {
        return HashSet::new();
    }
    boxes.extend(parts);
    boxes
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

/// The key of the article to which a URL leads, or which it shares: buttons that share a page contain its URL. Every
/// page of a different host is one.
fn story(url: &str, host: Option<&str>) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let key = |url: &Url| Some(item_key(url)).filter(|key| names_article(key));
    let shared = || url.query_pairs().filter_map(|(_, value)| Url::parse(&value).ok()).find(Url::has_host);
    let is_elsewhere = || host.is_some() && url.host_str().is_some_and(|own| Some(own) != host);
    key(&url).or_else(|| key(&shared()?)).or_else(|| is_elsewhere().then(|| item_key(&url)))
}
