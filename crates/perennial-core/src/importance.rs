//! A [`Delta`] -> how much it matters to a reader, from 0 (nothing) to 1 (everything, a first capture).
//!
//! There are two published forms and one of our own (P-VISUAL 6, P-PATTERN 6.2, P-QUALITY 3; docs/papers.md, Importance
//! of a change). All of them sum or join one contribution per operation, so that each operation's share of the whole is
//! known. The caller judges whether an element is an advertisement and how much of an operation is noise, because filter
//! lists and history are not in a delta.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::str::FromStr;

use crate::diff::{BlockDelta, Delta, Element, ElementKind, ItemDelta, Operation, OperationKind, Subject};
use crate::diff::{n_words, word_distance};
use crate::segment::Block;

/// 0 to 1, checked at construction.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Importance(f32);

impl Importance {
    /// Nothing changed.
    pub const NONE: Importance = Importance(0.0);
    /// Everything is new, as in a first capture.
    pub const FULL: Importance = Importance(1.0);

    /// Clamps to [0, 1]. NaN counts as 0.
    pub fn new(value: f64) -> Importance {
        Importance(if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) as f32 })
    }

    /// The value as a number.
    pub fn get(self) -> f64 {
        f64::from(self.0)
    }
}

/// The form in which contributions are weighed and joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Form {
    /// P-VISUAL 6: shares of elements, averaged over the kinds of operation and of element in a block.
    Visual2009,
    /// P-PATTERN 6.2: shares of elements, averaged over the kinds of operation; word distance of texts; little
    /// for advertisements.
    Pattern2011,
    /// Ours: 1 - prod(1 - contribution) over shares of words. One more change never lowers it.
    Monotone,
}

impl Form {
    /// All forms with their names.
    pub const NAMES: [(Form, &'static str); 3] = [
        (Form::Visual2009, "visual-2009"),
        (Form::Pattern2011, "pattern-2011"),
        (Form::Monotone, "monotone"),
    ];
}

impl Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Form::NAMES.iter().find(|(form, _)| form == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Form, String> {
        let found = Form::NAMES.iter().find(|(_, name)| *name == text).map(|(form, _)| *form);
        found.ok_or_else(|| format!("{text:?} is no form: write visual-2009, pattern-2011 or monotone"))
    }
}

/// The form and its weights.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ImportanceConfig {
    /// The form.
    pub form: Form,
    /// I(delete) of `visual-2009` and `monotone`; insert and update have 1.
    pub delete_weight: f64,
    /// I(move) of every form. It is small because the content was there before.
    pub move_weight: f64,
    /// Weight of an advertisement, alpha in P-PATTERN.
    pub advertisement_weight: f64,
}

impl ImportanceConfig {
    /// The usual weights of a form. P-PATTERN proposes alpha = 0.1, which still ranks a rotated banner above a new entry
    /// in a menu. That of `monotone` is lower.
    pub fn of(form: Form) -> ImportanceConfig {
        let advertisement_weight = if form == Form::Monotone { 0.001 } else { 0.1 };
        ImportanceConfig { form, delete_weight: 0.8, move_weight: 0.3, advertisement_weight }
    }
}

impl Default for ImportanceConfig {
    /// Why this form: `docs/decisions/0011-importance-form.md`.
    fn default() -> ImportanceConfig {
        ImportanceConfig::of(Form::Monotone)
    }
}

/// What the caller knows of one operation.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Judgement {
    /// Whether it is about an advertisement.
    pub is_advertisement: bool,
    /// From 0, where all of it is news, to 1, where none is, as in a counter that moves at every visit.
    pub noise: f64,
}

/// One operation's part in the whole.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contribution {
    /// The importance of this operation alone.
    pub value: f64,
    /// Share of the sum of all values, 0 to 1.
    pub share: f64,
    /// What the caller judged.
    pub judgement: Judgement,
}

/// The importance of a delta, and of each of its operations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Assessment {
    /// Importance of the whole delta.
    pub importance: Importance,
    /// One for each operation, in the order of [`Delta::operations`].
    pub contributions: Vec<Contribution>,
}

/// Weighs a delta. A delta that was stored as a whole replacement has no operations and counts as [`Importance::FULL`];
/// [`crate::diff::diff`] finds its operations.
pub fn assess(
    delta: &Delta,
    config: &ImportanceConfig,
    judge: &mut dyn FnMut(&Operation) -> Judgement,
) -> Assessment {
    if delta.replacement.is_some() {
        return Assessment { importance: Importance::FULL, contributions: Vec::new() };
    }
    let around = Surroundings::of(delta);
    let hub = Hub::of(delta).filter(|_| config.form == Form::Monotone);
    let mut contributions: Vec<Contribution> = Vec::new();
    for operation in delta.operations() {
        let judgement = judge(&operation);
        let prose = hub.as_ref().map_or(1.0, |hub| hub.share_of_prose(&operation));
        let value = (prose * contribution(&operation, config, &around, judgement)).clamp(0.0, 1.0);
        contributions.push(Contribution { value, share: 0.0, judgement });
    }
    let sum: f64 = contributions.iter().map(|contribution| contribution.value).sum();
    if sum > 0.0 {
        contributions.iter_mut().for_each(|contribution| contribution.share = contribution.value / sum);
    }
    let within = join(config.form, sum, &contributions);
    let importance = hub.map_or(within, |hub| hub.join(within));
    Assessment { importance: Importance::new(importance), contributions }
}

/// The importance of a delta when nothing is known of advertisements and history.
pub fn importance(delta: &Delta, config: &ImportanceConfig) -> Importance {
    assess(delta, config, &mut |_| Judgement::default()).importance
}

fn join(form: Form, sum: f64, contributions: &[Contribution]) -> f64 {
    match form {
        Form::Visual2009 | Form::Pattern2011 => sum,
        Form::Monotone => 1.0 - contributions.iter().map(|each| 1.0 - each.value).product::<f64>(),
    }
}

/// A page that is read for its items: front page, list. Of what changes around them only prose counts.
struct Hub<'a> {
    items: &'a ItemDelta,
    /// The words of all items that changed, before and after.
    texts: String,
}

/// Words of a text that is prose and not a label.
const MIN_PROSE_WORDS: usize = 15;
/// How much of a text is looked for among the words of the items.
const PROBE_BYTES: usize = 60;

impl<'a> Hub<'a> {
    fn of(delta: &'a Delta) -> Option<Hub<'a>> {
        let items = delta.items.as_ref().filter(|items| items.is_hub)?;
        let mut texts = String::new();
        for item in items.changes.iter().flat_map(|change| change.before.iter().chain(&change.after)) {
            texts.extend([item.title.as_str(), "\n", item.teaser.as_str(), "\n"]);
        }
        Some(Hub { items, texts })
    }

    /// The importance of the whole page.
    fn join(&self, within_prose: f64) -> f64 {
        1.0 - (1.0 - self.items.importance()) * (1.0 - self.items.prose_share * within_prose)
    }

    /// How much of what an operation is about is prose outside the items.
    fn share_of_prose(&self, operation: &Operation) -> f64 {
        match operation.subject {
            Subject::Element { before, after } => {
                let is_prose = before
                    .into_iter()
                    .chain(after)
                    .any(|element| self.is_prose(element.text(), element.kind()));
                f64::from(u8::from(is_prose))
            }
            Subject::Block(Some(block)) => self.prose_of_block(block),
            Subject::Block(None) => 0.0,
        }
    }

    fn is_prose(&self, text: &str, kind: ElementKind) -> bool {
        kind == ElementKind::Text
            && n_words(text) >= MIN_PROSE_WORDS
            && !self.texts.contains(&text[..text.floor_char_boundary(PROBE_BYTES)])
    }

    fn prose_of_block(&self, block: &Block) -> f64 {
        let (mut n_prose, mut n_all) = (0, 0);
        for leaf in block.walk().filter(|block| block.is_leaf()) {
            n_all += leaf.links.iter().map(|link| n_words(&link.name)).sum::<usize>();
            for text in &leaf.texts {
                let n = n_words(&text.text);
                n_all += n;
                n_prose += if self.is_prose(&text.text, ElementKind::Text) { n } else { 0 };
            }
        }
        n_prose as f64 / n_all.max(1) as f64
    }
}

/// The blocks with changes, and the kinds of operation and of element that occur in each.
struct Surroundings<'a> {
    blocks: HashMap<&'a [u16], &'a BlockDelta>,
    kinds: HashMap<&'a [u16], (u8, u8)>,
}

impl<'a> Surroundings<'a> {
    fn of(delta: &'a Delta) -> Surroundings<'a> {
        let blocks = delta.blocks.iter().map(|block| (block.after.0.as_slice(), block)).collect();
        let mut kinds: HashMap<&[u16], (u8, u8)> = HashMap::new();
        for operation in delta.operations() {
            if let (Some(kind), Some(block)) = (operation.element_kind(), operation.block_after) {
                let seen = kinds.entry(block).or_default();
                seen.0 |= 1 << operation.kind as u8;
                seen.1 |= 1 << kind as u8;
            }
        }
        Surroundings { blocks, kinds }
    }

    /// The block around an element, its number of kinds of operation, its number of kinds of element.
    fn at(&self, operation: &Operation) -> Option<(&BlockDelta, f64, f64)> {
        let reference = operation.block_after?;
        let (operations, elements) = self.kinds.get(reference)?;
        let block = self.blocks.get(reference)?;
        Some((block, f64::from(operations.count_ones()), f64::from(elements.count_ones())))
    }
}

fn contribution(
    operation: &Operation,
    config: &ImportanceConfig,
    around: &Surroundings,
    judgement: Judgement,
) -> f64 {
    let news = 1.0 - judgement.noise.clamp(0.0, 1.0);
    let weight = if judgement.is_advertisement && config.form != Form::Visual2009 {
        config.advertisement_weight
    } else {
        1.0
    };
    let importance = match operation.subject {
        Subject::Block(Some(block)) => importance_of_content(block),
        _ => f64::from(operation.importance),
    };
    let share = match operation.subject {
        Subject::Block(_) => operation_weight(operation.kind, config),
        Subject::Element { before, after } => element_share(operation, before, after, config, around),
    };
    importance * share * weight * news
}

/// A block that came or went counts with the leaves that came or went with it. Content that only moved out of a wrapper
/// or into one can be read before and after.
fn importance_of_content(block: &Block) -> f64 {
    let is_read = |leaf: &&Block| {
        leaf.is_leaf() && !(leaf.links.is_empty() && leaf.images.is_empty() && leaf.texts.is_empty())
    };
    block.walk().filter(is_read).map(|leaf| f64::from(leaf.importance)).sum()
}

fn operation_weight(kind: OperationKind, config: &ImportanceConfig) -> f64 {
    match kind {
        OperationKind::Insert | OperationKind::Update => 1.0,
        OperationKind::Delete if config.form == Form::Pattern2011 => 1.0,
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
    around: &Surroundings,
) -> f64 {
    let Some((block, n_operations, n_kinds)) = around.at(operation) else { return 0.0 };
    let Some(kind) = operation.element_kind() else { return 0.0 };
    let weight = operation_weight(operation.kind, config);
    let distance = || match (before, after) {
        (Some(before), Some(after)) if operation.kind == OperationKind::Update => {
            word_distance(before.text(), after.text())
        }
        _ => 1.0,
    };
    match config.form {
        Form::Visual2009 => {
            let n = f64::from(block.n_elements[kind as usize].max(1));
            weight / (n_operations * n_kinds * n)
        }
        Form::Pattern2011 => {
            let n = f64::from(block.n_elements.iter().sum::<u32>().max(1));
            let importance = if kind == ElementKind::Text { distance() } else { 1.0 };
            weight * importance / (n_operations * n)
        }
        Form::Monotone => {
            let distance =
                if kind == ElementKind::Text { distance() } else { update_of_reference(before, after) };
            weight * distance * share_of_words(operation.kind, before, after, block)
        }
    }
}

/// A link or image with another address or another name counts half of one that was inserted.
fn update_of_reference(before: Option<&Element>, after: Option<&Element>) -> f64 {
    match (before, after) {
        (Some(before), Some(after)) if before != after => 0.5,
        _ => 1.0,
    }
}

/// The number of words that an image counts as, whatever its name.
const WORDS_OF_IMAGE: f64 = 10.0;
/// The least number of words that a link counts as: it stands for a page, however short its name is.
const WORDS_OF_LINK: f64 = 4.0;

fn mass(element: &Element) -> f64 {
    let words = n_words(element.text()) as f64;
    match element.kind() {
        ElementKind::Image => WORDS_OF_IMAGE,
        ElementKind::Link => words.max(WORDS_OF_LINK),
        ElementKind::Text => words.max(1.0),
    }
}

/// Words of the element over words of the block. No other operation has a part in it, so that none can lower it.
fn share_of_words(
    kind: OperationKind,
    before: Option<&Element>,
    after: Option<&Element>,
    block: &BlockDelta,
) -> f64 {
    let words = before.into_iter().chain(after).map(mass).fold(1.0, f64::max);
    let n_before = f64::from(block.n_words);
    match kind {
        OperationKind::Insert | OperationKind::Move => words / (n_before + words),
        OperationKind::Delete | OperationKind::Update => words / n_before.max(words),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::diff::diff;
    use crate::diff::plant::{PlantRates, plant};
    use crate::segment::{Block, BlockTree, Image, Link, Text};

    fn config(form: Form) -> ImportanceConfig {
        ImportanceConfig::of(form)
    }

    fn sealed(blocks: Vec<Block>) -> BlockTree {
        let mut tree = BlockTree { blocks, ..BlockTree::default() };
        tree.seal();
        tree
    }

    fn links(n: usize, prefix: &str) -> Vec<Link> {
        (0..n).map(|i| Link::new(format!("{prefix}{i}"), format!("/{prefix}{i}"))).collect()
    }

    fn images(n: usize) -> Vec<Image> {
        (0..n).map(|i| Image::new(format!("image{i}"), format!("/image{i}"))).collect()
    }

    fn weighed(importance: f32, block: Block) -> Block {
        Block { importance, ..block }
    }

    /// P-VISUAL 6, example 1 (figure 7): B1 0.1, B2.1 0.3, B2.2 0.4, B3 0.2.
    fn figure_7() -> (BlockTree, BlockTree) {
        let page = |text: &str, n_links: usize, n_images: usize| {
            let mut many = links(2, "link");
            many.extend(links(n_links, "more"));
            sealed(vec![
                weighed(0.1, Block::leaf(vec![], vec![], vec![Text::new(text)])),
                Block::inner(vec![
                    weighed(0.3, Block::leaf(vec![], vec![], vec![Text::new("untouched words")])),
                    weighed(0.4, Block::leaf(many, vec![], vec![])),
                ]),
                weighed(0.2, Block::leaf(vec![], images(n_images), vec![])),
            ])
        };
        (page("a text of five words", 0, 4), page("a text of five changes", 4, 2))
    }

    #[test]
    fn the_example_of_2009() {
        let (before, after) = figure_7();
        let found = importance(&diff(&before, &after), &config(Form::Visual2009)).get();
        let expected = 0.1 * 1.0 * (1.0 / 1.0) + 0.4 * 1.0 * (4.0 / 6.0) + 0.2 * 0.8 * (2.0 / 4.0);
        assert!((expected - 0.4467f64).abs() < 1e-4);
        assert!((found - expected).abs() < 1e-6, "{found}");
    }

    /// The same changes by Algorithm 2 of P-PATTERN: the text counts by its distance, a deletion counts fully.
    #[test]
    fn the_example_by_the_form_of_2011() {
        let (before, after) = figure_7();
        let delta = diff(&before, &after);
        let found = importance(&delta, &config(Form::Pattern2011)).get();
        let expected = 0.1 * (1.0 / 5.0) + 0.4 * (4.0 / 6.0) + 0.2 * (2.0 / 4.0);
        assert!((found - expected).abs() < 1e-6, "{found}");
        let all_advertisements = &mut |operation: &Operation| Judgement {
            is_advertisement: operation.element_kind() == Some(ElementKind::Image),
            noise: 0.0,
        };
        let found = assess(&delta, &config(Form::Pattern2011), all_advertisements).importance.get();
        let expected = 0.1 * (1.0 / 5.0) + 0.4 * (4.0 / 6.0) + 0.1 * 0.2 * (2.0 / 4.0);
        assert!((found - expected).abs() < 1e-6, "alpha = 0.1 for images: {found}");
    }

    #[test]
    fn averaging_over_operations_is_not_monotone_and_our_form_is() {
        let page = |links: Vec<Link>, n_images: usize| {
            sealed(vec![weighed(1.0, Block::leaf(links, images(n_images), vec![]))])
        };
        let mut grown = links(4, "a");
        grown.extend(links(8, "b"));
        let before = page(links(4, "a"), 9);
        let (one, two) = (page(grown.clone(), 9), page(grown, 8));
        for (form, falls) in [(Form::Visual2009, true), (Form::Pattern2011, true), (Form::Monotone, false)] {
            let one = importance(&diff(&before, &one), &config(form)).get();
            let two = importance(&diff(&before, &two), &config(form)).get();
            assert_eq!(two < one, falls, "{form}: {one} {two}");
        }
    }

    #[test]
    fn a_structural_operation_counts_with_its_block() {
        let old = || weighed(0.7, Block::leaf(links(3, "old"), vec![], vec![Text::new("words of old")]));
        let new = weighed(0.3, Block::leaf(links(3, "new"), vec![], vec![Text::new("news of today")]));
        let delta = diff(&sealed(vec![old()]), &sealed(vec![old(), new]));
        for (form, _) in Form::NAMES {
            assert!((importance(&delta, &config(form)).get() - 0.3).abs() < 1e-6, "{form}");
        }
    }

    #[test]
    fn noise_takes_its_part_away() {
        let (before, after) = figure_7();
        let delta = diff(&before, &after);
        for (form, _) in Form::NAMES {
            let judged =
                assess(&delta, &config(form), &mut |_| Judgement { noise: 1.0, is_advertisement: false });
            assert_eq!(judged.importance, Importance::NONE, "{form}");
        }
    }

    fn any_page() -> impl Strategy<Value = BlockTree> {
        let leaf = (0usize..6, 0usize..4, proptest::collection::vec("([a-e] ){1,6}", 0..4), 0.01f32..1.0);
        proptest::collection::vec(leaf, 1..6).prop_map(|leaves| {
            let total: f32 = leaves.iter().map(|leaf| leaf.3).sum();
            let block = |(n_links, n_images, texts, importance): (usize, usize, Vec<String>, f32)| {
                let texts = texts.into_iter().map(Text::new).collect();
                weighed(importance / total, Block::leaf(links(n_links, "l"), images(n_images), texts))
            };
            sealed(leaves.into_iter().map(block).collect())
        })
    }

    proptest! {
        #[test]
        fn always_between_none_and_full(before in any_page(), other in any_page(), seed in any::<u64>()) {
            let (planted, _) = plant(&before, PlantRates { elements: 0.4, blocks: 0.4 }, seed);
            for after in [&other, &planted, &before] {
                let delta = diff(&before, after);
                for (form, _) in Form::NAMES {
                    let assessment = assess(&delta, &config(form), &mut |_| Judgement::default());
                    let value = assessment.importance.get();
                    prop_assert!((0.0..=1.0).contains(&value), "{form}: {value}");
                    prop_assert_eq!(delta.is_empty(), assessment.contributions.is_empty());
                    if delta.is_empty() {
                        prop_assert_eq!(assessment.importance, Importance::NONE);
                    }
                    let shares: f64 = assessment.contributions.iter().map(|each| each.share).sum();
                    prop_assert!(shares == 0.0 || (shares - 1.0).abs() < 1e-9);
                }
            }
        }
    }
}
