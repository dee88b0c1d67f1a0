//! A comparison -> the numbered changes that readers see, each with the parts of both versions that it concerns.

use std::collections::HashSet;

use perennial_core::page::diff::{ItemChange, ItemChangeKind, ItemDelta, Operation, OperationKind, Subject};
use perennial_core::page::segment::Block;

use super::elements::Side;
use super::words::Difference;
use perennial_engine::analyse::{Comparison, ElementContent, OperationReport};

/// The changes that one switch shows or hides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Group {
    News,
    Moves,
    Ads,
    Noise,
}

impl Group {
    /// CSS class of its marks.
    pub(super) fn class(self) -> &'static str {
        match self {
            Group::News => "news",
            Group::Moves => "moves",
            Group::Ads => "ads",
            Group::Noise => "noise",
        }
    }
}

/// One change.
pub(super) struct ShownChange {
    pub(super) op: OperationKind,
    /// A short name of the changed part.
    pub(super) subject: &'static str,
    pub(super) role: Option<&'static str>,
    pub(super) group: Group,
    /// Why it is noise.
    pub(super) reason: Option<String>,
    /// Its absolute importance.
    pub(super) value: f64,
    /// Its share of the importance of all changes.
    pub(super) share: f64,
    /// Indices of its pieces in the version before.
    pub(super) before: Vec<usize>,
    /// Indices of its pieces in the version after.
    pub(super) after: Vec<usize>,
    /// For an update, how the words of the pieces differ.
    pub(super) difference: Option<Difference>,
    /// The words to show if they are not those of the pieces: a headline without its surroundings.
    pub(super) words: Option<ShownWords>,
}

/// The words of a change before and after.
pub(super) struct ShownWords {
    pub(super) before: String,
    pub(super) after: String,
    pub(super) difference: Difference,
}

/// Maximum number of shown changes. With more of them the versions have little in common.
pub(super) const MAX_CHANGES: usize = 2_000;

/// The changes of a comparison.
pub(super) struct Changes {
    /// Those that are shown, the most important first.
    pub(super) shown: Vec<ShownChange>,
    /// How many there are beyond these.
    pub(super) n_over: usize,
    /// Changes of links whose names are part of texts that changed too.
    pub(super) links_in_texts: Vec<ShownChange>,
}

/// All changes.
pub(super) fn list_changes(comparison: &Comparison, before: &Side<'_>, after: &Side<'_>) -> Changes {
    let entries = comparison.entries();
    let hub = comparison.delta.items.as_ref().filter(|items| items.is_listing);
    let mut finder = Finder {
        before,
        after,
        taken_before: vec![false; before.pieces.len()],
        taken_after: vec![false; after.pieces.len()],
        shown_before: HashSet::new(),
        shown_after: HashSet::new(),
    };
    let mut changes: Vec<ShownChange> = Vec::new();
    let n_operations = comparison.assessment.contributions.len();
    if let Some(items) = hub {
        let words = items.visible_changes().zip(&entries[n_operations.min(entries.len())..]);
        changes.extend(words.map(|(item, entry)| finder.item(item, entry)));
        changes.extend(finder.moved_items(items));
    }
    let mut links_in_texts = Vec::new();
    for (operation, entry) in comparison.delta.operations().zip(&entries) {
        let list = if operation.is_in_text { &mut links_in_texts } else { &mut changes };
        list.extend(finder.operation(&operation, entry, hub.is_some()));
    }
    links_in_texts.truncate(MAX_CHANGES);
    changes.sort_by(|x, y| x.group.cmp(&y.group).then(y.share.total_cmp(&x.share)));
    let n_over = changes.len().saturating_sub(MAX_CHANGES);
    changes.truncate(MAX_CHANGES);
    Changes { shown: changes, n_over, links_in_texts }
}

struct Finder<'s, 't> {
    before: &'s Side<'t>,
    after: &'s Side<'t>,
    taken_before: Vec<bool>,
    taken_after: Vec<bool>,
    /// Pieces of headlines. The changes of headlines already show them.
    shown_before: HashSet<usize>,
    shown_after: HashSet<usize>,
}

impl Finder<'_, '_> {
    /// `None` for a block that has nothing to show: its contents moved with other operations.
    fn operation(
        &mut self,
        operation: &Operation<'_>,
        entry: &OperationReport,
        is_listing: bool,
    ) -> Option<ShownChange> {
        let (before, after) = match operation.subject {
            Subject::Element { before, after } => {
                let block_before = operation.block_before.unwrap_or_default();
                let block_after = operation.block_after.unwrap_or_default();
                // An element that moved is the same on both sides.
                let before = before.or(after.filter(|_| operation.kind == OperationKind::Move));
                let find = |side: &Side<'_>, block, element, taken: &mut [bool]| {
                    let found = side.find(block, element, taken);
                    found.into_iter().inspect(|&place| taken[place] = true).collect::<Vec<usize>>()
                };
                (
                    before.map(|element| find(self.before, block_before, element, &mut self.taken_before)),
                    after.map(|element| find(self.after, block_after, element, &mut self.taken_after)),
                )
            }
            Subject::Block(None) => (
                operation.block_before.map(|block| self.before.all_in(block)),
                operation.block_after.map(|block| self.after.all_in(block)),
            ),
            Subject::Block(Some(block)) if operation.kind == OperationKind::Delete => {
                (Some(self.own_pieces(block, true)), None)
            }
            Subject::Block(Some(block)) => (None, Some(self.own_pieces(block, false))),
        };
        let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
        let is_shown = before.iter().all(|place| self.shown_before.contains(place))
            && after.iter().all(|place| self.shown_after.contains(place));
        if before.is_empty() && after.is_empty() || is_shown {
            return None;
        }
        let subject = if entry.element == "block" { self.block_name(&before, &after) } else { entry.element };
        Some(self.change(operation.kind, subject, choose_group(entry, is_listing), entry, before, after))
    }

    /// New content of a new block, or lost content of a removed one, without content that moved into it or out of it.
    fn own_pieces(&mut self, block: &Block, is_before: bool) -> Vec<usize> {
        let (side, taken) = match is_before {
            true => (self.before, &mut self.taken_before),
            false => (self.after, &mut self.taken_after),
        };
        let mut found = Vec::new();
        for leaf in block.walk().filter(|block| block.is_leaf()) {
            for element in elements(leaf) {
                if let Some(place) = side.find(&leaf.reference, &element, taken) {
                    taken[place] = true;
                    found.extend((!side.pieces[place].is_in_text).then_some(place));
                }
            }
        }
        found.sort_unstable();
        found
    }

    fn block_name(&self, before: &[usize], after: &[usize]) -> &'static str {
        if before.len().max(after.len()) == 1 { "block" } else { "block of several" }
    }

    fn item(&mut self, change: &ItemChange, entry: &OperationReport) -> ShownChange {
        let before = change.before.as_ref().map(|item| self.before.find_item(item)).unwrap_or_default();
        let after = change.after.as_ref().map(|item| self.after.find_item(item)).unwrap_or_default();
        for (places, taken) in [(&before, &mut self.taken_before), (&after, &mut self.taken_after)] {
            places.iter().for_each(|&place| taken[place] = true);
        }
        self.shown_before.extend(&before);
        self.shown_after.extend(&after);
        let (op, subject) = match change.kind {
            ItemChangeKind::Insert => (OperationKind::Insert, "headline"),
            ItemChangeKind::Leave => (OperationKind::Delete, "headline"),
            ItemChangeKind::Retitle => (OperationKind::Update, "headline rewritten"),
            ItemChangeKind::Readdress => (OperationKind::Update, "headline, address"),
            ItemChangeKind::Edit | ItemChangeKind::Respell => (OperationKind::Update, "teaser"),
        };
        let text = |content: &Option<ElementContent>| {
            content.as_ref().map(|content| content.text.clone()).unwrap_or_default()
        };
        let (old, new) = (text(&entry.before), text(&entry.after));
        let is_update = op == OperationKind::Update;
        let difference = if is_update { Difference::of(&old, &new) } else { Difference::of("", "") };
        let words = ShownWords { difference, before: old, after: new };
        ShownChange {
            words: Some(words),
            ..self.change(op, subject, choose_group(entry, false), entry, before, after)
        }
    }

    /// Headlines that both versions have in a different order.
    fn moved_items(&mut self, items: &ItemDelta) -> Vec<ShownChange> {
        let (Some(before), Some(after)) = (&self.before.tree.list, &self.after.tree.list) else {
            return Vec::new();
        };
        let changed: HashSet<u32> = items.changes.iter().filter_map(|change| change.rank_after).collect();
        let kept_after = (0..after.items.len()).filter(|rank| !changed.contains(&(*rank as u32)));
        let pairs: Vec<(u32, usize)> = items.kept.iter().copied().zip(kept_after).collect();
        let moved = not_ascending(&pairs);
        let mut changes = Vec::new();
        for (rank_before, rank_after) in moved {
            let items = before.items.get(rank_before as usize).zip(after.items.get(rank_after));
            let Some((item_before, item_after)) = items.filter(|(before, after)| before.key() == after.key())
            else {
                continue;
            };
            let (before, after) = (self.before.find_item(item_before), self.after.find_item(item_after));
            let (entry, title) = (OperationReport::default(), item_after.title.clone());
            let words =
                ShownWords { difference: Difference::of("", ""), before: title.clone(), after: title };
            let change = self.change(OperationKind::Move, "headline", Group::Moves, &entry, before, after);
            changes.push(ShownChange { words: Some(words), ..change });
        }
        changes
    }

    fn change(
        &self,
        op: OperationKind,
        subject: &'static str,
        group: Group,
        entry: &OperationReport,
        before: Vec<usize>,
        after: Vec<usize>,
    ) -> ShownChange {
        let is_update = op == OperationKind::Update;
        let difference =
            is_update.then(|| Difference::of(&joined(self.before, &before), &joined(self.after, &after)));
        let words = self.words(is_update, &before, &after);
        ShownChange {
            op,
            subject,
            role: entry.role.filter(|role| *role != "other"),
            group,
            reason: entry.noise_reason.clone().filter(|_| group == Group::Noise),
            value: entry.value,
            share: entry.share,
            before,
            after,
            difference,
            words,
        }
    }

    /// The words of a changed text. The names of links within it are included, because readers see them.
    fn words(&self, is_update: bool, before: &[usize], after: &[usize]) -> Option<ShownWords> {
        let one = |side: &Side<'_>, places: &[usize]| match places {
            [place] => Some(side.pieces[*place].read().into_owned()),
            [] => Some(String::new()),
            _ => None,
        };
        let (old, new) = (one(self.before, before)?, one(self.after, after)?);
        if old == joined(self.before, before) && new == joined(self.after, after) {
            return None;
        }
        let difference = if is_update { Difference::of(&old, &new) } else { Difference::of("", "") };
        Some(ShownWords { before: old, after: new, difference })
    }
}

/// The words of several pieces, as one text.
pub(super) fn joined(side: &Side<'_>, places: &[usize]) -> String {
    let texts = places.iter().map(|&place| side.pieces[place].text).filter(|text| !text.is_empty());
    texts.collect::<Vec<&str>>().join(" ")
}

/// On a listing page the headlines show what changed. Changes without weight are their surroundings.
fn choose_group(entry: &OperationReport, is_listing: bool) -> Group {
    match entry {
        _ if entry.advertisement => Group::Ads,
        _ if entry.judgement().is_noise() || is_listing && entry.value == 0.0 => Group::Noise,
        _ if entry.op == OperationKind::Move.name() => Group::Moves,
        _ => Group::News,
    }
}

/// The smallest set of pairs without which the first numbers ascend.
fn not_ascending(pairs: &[(u32, usize)]) -> Vec<(u32, usize)> {
    let mut ends: Vec<usize> = Vec::new();
    let mut previous = vec![usize::MAX; pairs.len()];
    for (index, (rank, _)) in pairs.iter().enumerate() {
        let at = ends.partition_point(|end| pairs[*end].0 < *rank);
        if at > 0 {
            previous[index] = ends[at - 1];
        }
        match ends.get_mut(at) {
            Some(end) => *end = index,
            None => ends.push(index),
        }
    }
    let mut is_in_order = vec![false; pairs.len()];
    let mut next = ends.last().copied().unwrap_or(usize::MAX);
    while let Some(is_in_order) = is_in_order.get_mut(next) {
        *is_in_order = true;
        next = previous[next];
    }
    pairs.iter().zip(is_in_order).filter(|(_, is_in_order)| !is_in_order).map(|(pair, _)| *pair).collect()
}

fn elements(leaf: &Block) -> impl Iterator<Item = perennial_core::page::diff::Element> + '_ {
    use perennial_core::page::diff::Element;
    let links = leaf.links.iter().cloned().map(Element::Link);
    let images = leaf.images.iter().cloned().map(Element::Image);
    links.chain(images).chain(leaf.texts.iter().cloned().map(Element::Text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_move() {
        assert_eq!(not_ascending(&[(0, 0), (1, 1), (2, 2)]), []);
        assert_eq!(not_ascending(&[(5, 0), (0, 1), (1, 2)]), [(5, 0)]);
        assert_eq!(not_ascending(&[(1, 0), (0, 1)]).len(), 1);
    }
}
