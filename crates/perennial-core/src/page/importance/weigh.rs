//! One operation -> the share of the page that it changes, in each of the forms.

use std::collections::HashMap;

use super::{ImportanceConfig, ImportanceForm, Judgement};
use crate::page::diff::{BlockDelta, Delta, Element, ElementKind, Operation, OperationKind, Subject};
use crate::page::diff::{n_words, word_distance};
use crate::page::segment::{Block, BlockRole, item_key};
use crate::text::numbers::{NumberChange, classify};
use crate::text::typography::without_typography;

/// The changed blocks, and the kinds of operation and of element in each.
pub(super) struct OperationContext<'a> {
    blocks: HashMap<&'a [u16], &'a BlockDelta>,
    kinds: HashMap<&'a [u16], (u8, u8)>,
    /// Number of words that moved into each block, and out of it.
    moved: [HashMap<&'a [u16], f64>; 2],
    /// Length of the page as a multiple of what people read of a page.
    length: f64,
}

impl<'a> OperationContext<'a> {
    pub(super) fn new(delta: &'a Delta, form: ImportanceForm) -> OperationContext<'a> {
        let blocks = delta.blocks.iter().map(|block| (block.after.0.as_slice(), block)).collect();
        let mut kinds: HashMap<&[u16], (u8, u8)> = HashMap::new();
        for operation in delta.operations().filter(|operation| !is_counted_elsewhere(operation, form)) {
            if let (Some(kind), Some(block)) = (operation.element_kind(), operation.block_after) {
                let seen = kinds.entry(block).or_default();
                seen.0 |= 1 << operation.kind as u8;
                seen.1 |= 1 << kind as u8;
            }
        }
        let mut moved = [HashMap::new(), HashMap::new()];
        for each in delta.moves.iter().chain(&delta.shifted) {
            *moved[0].entry(each.to.0.as_slice()).or_default() += element_mass(&each.element);
            *moved[1].entry(each.from.0.as_slice()).or_default() += element_mass(&each.element);
        }
        let length = f64::from(delta.length);
        let length = if length.is_finite() { length.clamp(1.0, MAX_LENGTH) } else { 1.0 };
        OperationContext { blocks, kinds, moved, length }
    }

    /// The block of an element, its number of operation kinds, and its number of element kinds.
    fn at(&self, operation: &Operation) -> Option<(&BlockDelta, f64, f64)> {
        let reference = operation.block_after?;
        let (operations, elements) = self.kinds.get(reference)?;
        let block = self.blocks.get(reference)?;
        Some((block, f64::from(operations.count_ones()), f64::from(elements.count_ones())))
    }
}

/// Greater lengths make no difference.
const MAX_LENGTH: f64 = 1e4;

/// How much of the page an operation changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperationPart {
    /// Its share of the page's importance, without noise and advertisements.
    pub(super) share: f64,
    /// The share of its whole block, which limits the sum of all operations in it.
    pub(super) most: f64,
    /// Length of the page as a multiple of what people read of a page, if the block is content.
    pub(super) length: f64,
}

impl OperationPart {
    /// People read only part of a long page, so the share of that part counts.
    pub(super) fn as_read(&self) -> f64 {
        1.0 - (1.0 - self.share.min(self.most).clamp(0.0, 1.0)).powf(self.length)
    }
}

pub(super) fn part(
    operation: &Operation,
    config: &ImportanceConfig,
    context: &OperationContext,
    judgement: Judgement,
) -> OperationPart {
    let news = 1.0 - judgement.noise.clamp(0.0, 1.0);
    let weight = if judgement.is_advertisement && config.form != ImportanceForm::Visual2009 {
        config.advertisement_weight
    } else {
        1.0
    };
    let importance = match operation.subject {
        Subject::Block(Some(block)) => importance_of_content(operation, block, context),
        Subject::Element { .. } if config.form == ImportanceForm::Monotone => importance_of_block(operation),
        _ => f64::from(operation.importance),
    };
    let share = match operation.subject {
        Subject::Block(_) => operation_weight(operation.kind, config),
        Subject::Element { before, after } => element_share(operation, before, after, config, context),
    };
    let length = if config.form == ImportanceForm::Monotone { length_at(operation, context) } else { 1.0 };
    OperationPart { share: importance * share * weight * news, most: importance.clamp(0.0, 1.0), length }
}

/// Navigation, header, footer, other stories and advertisements are not read through, however long they are.
fn length_at(operation: &Operation, context: &OperationContext) -> f64 {
    match operation.role {
        Some(
            BlockRole::Navigation
            | BlockRole::Header
            | BlockRole::Footer
            | BlockRole::Related
            | BlockRole::Advertisement,
        ) => 1.0,
        _ => context.length,
    }
}

/// Insertions are weighed by the new importance of the block, deletions by the old one.
fn importance_of_block(operation: &Operation) -> f64 {
    let Some(block) = operation.within else { return f64::from(operation.importance) };
    f64::from(match operation.kind {
        OperationKind::Insert | OperationKind::Move => block.importance,
        OperationKind::Delete => block.importance_before,
        OperationKind::Update => block.importance.max(block.importance_before),
    })
}

/// An inserted or deleted block counts with its leaves. Words that moved in from or out to other blocks do not count,
/// because they can be read before and after.
fn importance_of_content(operation: &Operation, block: &Block, context: &OperationContext) -> f64 {
    let is_read = |leaf: &&Block| {
        leaf.is_leaf() && !(leaf.links.is_empty() && leaf.images.is_empty() && leaf.texts.is_empty())
    };
    let moved = &context.moved[usize::from(operation.kind == OperationKind::Delete)];
    let part = |leaf: &Block| match moved.get(leaf.reference.as_slice()) {
        Some(moved) => {
            let own = leaf_mass(leaf);
            f64::from(leaf.importance) * own / (own + moved).max(1.0)
        }
        None => f64::from(leaf.importance),
    };
    block.walk().filter(is_read).map(part).sum()
}

fn leaf_mass(leaf: &Block) -> f64 {
    let links = leaf.links_outside_texts().map(|link| link_mass(&link.name));
    let texts = leaf.texts.iter().map(|text| n_words(&text.text) as f64);
    links.chain(texts).sum::<f64>() + WORDS_OF_IMAGE * leaf.images.len() as f64
}

fn operation_weight(kind: OperationKind, config: &ImportanceConfig) -> f64 {
    match kind {
        OperationKind::Insert | OperationKind::Update => 1.0,
        OperationKind::Delete if config.form == ImportanceForm::Pattern2011 => 1.0,
        OperationKind::Delete => config.delete_weight,
        OperationKind::Move => config.move_weight,
    }
}

/// The share of its block that an operation changes. An element that moved into a new block adds nothing, because the
/// insertion of that block counts.
fn element_share(
    operation: &Operation,
    before: Option<&Element>,
    after: Option<&Element>,
    config: &ImportanceConfig,
    context: &OperationContext,
) -> f64 {
    if is_counted_elsewhere(operation, config.form) {
        return 0.0;
    }
    let Some(kind) = operation.element_kind() else { return 0.0 };
    let Some((block, n_operations, n_kinds)) = context.at(operation) else {
        // A text that was edited and is in a new block now.
        return match (operation.kind, before, after) {
            (OperationKind::Update, Some(before), Some(after)) => {
                words_changed(before, after) / element_mass(before).max(element_mass(after)).max(1.0)
            }
            _ => 0.0,
        };
    };
    let weight = operation_weight(operation.kind, config);
    let distance = || match (before, after) {
        (Some(before), Some(after)) if operation.kind == OperationKind::Update => {
            let outside_links = operation.distance_outside_links.map(f64::from);
            outside_links.unwrap_or_else(|| word_distance(before.text(), after.text()))
        }
        _ => 1.0,
    };
    match config.form {
        ImportanceForm::Visual2009 => {
            let n = f64::from(block.n_elements[kind as usize].max(1));
            weight / (n_operations * n_kinds * n)
        }
        ImportanceForm::Pattern2011 => {
            let n = f64::from(block.n_elements.iter().sum::<u32>().max(1));
            let importance = if kind == ElementKind::Text { distance() } else { 1.0 };
            weight * importance / (n_operations * n)
        }
        ImportanceForm::Monotone if operation.is_repeated => 0.0,
        ImportanceForm::Monotone => {
            let change = match (before, after) {
                (Some(before), Some(after)) if operation.kind == OperationKind::Update => {
                    words_changed(before, after)
                }
                _ => before.into_iter().chain(after).map(element_mass).fold(0.0, f64::max),
            };
            weight * share_of_words(operation.kind, change, block)
        }
    }
}

/// The number of words that an update is equivalent to.
fn words_changed(before: &Element, after: &Element) -> f64 {
    let element_mass = element_mass(before).max(element_mass(after));
    if before.text() == after.text() {
        return element_mass * if leads_elsewhere(before, after) { 0.5 } else { 0.05 };
    }
    let changed = element_mass
        * word_distance(&words_without_punctuation(before.text()), &words_without_punctuation(after.text()));
    let changed = match classify(before.text(), after.text()) {
        NumberChange::News => changed.max(WORDS_OF_NUMBER),
        _ => changed,
    };
    match after.kind() {
        // A changed name and a changed target mean a different link in the same place.
        ElementKind::Link if leads_elsewhere(before, after) => changed.max(link_mass(after.text())),
        ElementKind::Image => changed.max(0.5 * WORDS_OF_IMAGE),
        _ => changed,
    }
}

/// A text without punctuation and typography, which do not count as a change of words.
fn words_without_punctuation(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    words.filter(|word| !word.is_empty()).map(without_typography).collect::<Vec<_>>().join(" ")
}

/// Whether two URLs differ in more than their form, such as http and https, or campaign tags.
fn leads_elsewhere(before: &Element, after: &Element) -> bool {
    let key = |url: &str| url::Url::parse(url).map_or_else(|_| url.to_owned(), |url| item_key(&url));
    before.url() != after.url() && key(before.url()) != key(after.url())
}

/// Whether the words of an operation are those of another one. Ours counts a text as it is read, with the names of its
/// links. The published forms count the links, and texts without them.
pub(super) fn is_counted_elsewhere(operation: &Operation, form: ImportanceForm) -> bool {
    match form {
        ImportanceForm::Monotone => operation.is_in_text,
        ImportanceForm::Visual2009 | ImportanceForm::Pattern2011 => {
            operation.distance_outside_links == Some(0.0)
        }
    }
}

/// The number of words that an operation changes.
pub(super) fn n_changed_words(operation: &Operation) -> f64 {
    let own = |element: &Element| match element.kind() {
        ElementKind::Image => 0.0,
        ElementKind::Link | ElementKind::Text => n_words(element.text()) as f64,
    };
    match (operation.kind, operation.subject) {
        (OperationKind::Move, _) | (_, Subject::Block(None)) => 0.0,
        (_, Subject::Block(Some(block))) => {
            let leaves = block.walk().filter(|block| block.is_leaf());
            leaves.flat_map(Block::words).map(n_words).sum::<usize>() as f64
        }
        (OperationKind::Update, Subject::Element { before: Some(before), after: Some(after) }) => {
            own(before).max(own(after)) * word_distance(before.text(), after.text())
        }
        (_, Subject::Element { before, after }) => {
            before.into_iter().chain(after).map(own).fold(0.0, f64::max)
        }
    }
}

/// Whether an update changes only a URL.
pub(super) fn is_unread(operation: &Operation) -> bool {
    match operation.subject {
        Subject::Element { before: Some(before), after: Some(after) } => {
            operation.kind == OperationKind::Update
                && after.kind() == ElementKind::Link
                && before.text() == after.text()
        }
        _ => false,
    }
}

/// The number of words that an image is equivalent to.
const WORDS_OF_IMAGE: f64 = 10.0;
/// The minimum number of words that a link is equivalent to, because it represents a page.
const WORDS_OF_LINK: f64 = 4.0;

/// The number of words that a number with a unit or label is equivalent to.
const WORDS_OF_NUMBER: f64 = 15.0;

fn element_mass(element: &Element) -> f64 {
    match element.kind() {
        ElementKind::Image => WORDS_OF_IMAGE,
        ElementKind::Link => link_mass(element.text()),
        ElementKind::Text => (n_words(element.text()) as f64).max(1.0),
    }
}

/// An anchor sign (a pilcrow, a hash) is not a word.
fn link_mass(name: &str) -> f64 {
    match name.contains(char::is_alphanumeric) {
        true => (n_words(name) as f64).max(WORDS_OF_LINK),
        false => 0.0,
    }
}

/// Changed words divided by the words of the block. It does not depend on other operations, so none of them can lower
/// it.
fn share_of_words(kind: OperationKind, words: f64, block: &BlockDelta) -> f64 {
    let n_before = f64::from(block.n_words);
    match kind {
        OperationKind::Insert | OperationKind::Move => words / (n_before + words).max(1.0),
        OperationKind::Delete | OperationKind::Update => words / n_before.max(words).max(1.0),
    }
}
