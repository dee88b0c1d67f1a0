//! A [`Delta`] -> its importance to a reader, from 0 (nothing changed) to 1 (everything is new).
//!
//! There are two published forms and our own (P-VISUAL 6, P-PATTERN 6.2, P-QUALITY 3; docs/papers.md, Importance of a
//! change). Each combines one contribution per operation, which shows the share of each operation. The caller decides
//! whether an element is an advertisement and how much of an operation is noise. A delta contains neither filter lists
//! nor history.

mod listing;
mod weigh;

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::str::FromStr;

use crate::page::diff::{Delta, Operation};
use crate::page::noise::NoiseReason;
use crate::page::segment::BlockRole;
use listing::ListingPage;
use weigh::{OperationContext, OperationPart, is_counted_elsewhere, is_unread, n_changed_words, part};

/// A number from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Importance(f32);

impl Importance {
    /// Nothing changed.
    pub const NONE: Importance = Importance(0.0);
    /// Everything is new, as in a first capture.
    pub const FULL: Importance = Importance(1.0);

    /// Clamps to [0, 1]. NaN becomes 0.
    pub fn new(value: f64) -> Importance {
        Importance(if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) as f32 })
    }

    pub fn get(self) -> f64 {
        f64::from(self.0)
    }
}

/// How contributions are weighed and combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ImportanceForm {
    /// P-VISUAL 6: shares of elements, averaged over the kinds of operation and of element in a block.
    Visual2009,
    /// P-PATTERN 6.2: shares of elements, averaged over the kinds of operation. Texts count by word distance,
    /// advertisements count little.
    Pattern2011,
    /// Ours: 1 - prod(1 - part) over blocks; the part of a block is a sum of shares of words. An additional change
    /// never lowers it.
    Monotone,
}

impl ImportanceForm {
    pub const NAMES: [(ImportanceForm, &'static str); 3] = [
        (ImportanceForm::Visual2009, "visual-2009"),
        (ImportanceForm::Pattern2011, "pattern-2011"),
        (ImportanceForm::Monotone, "monotone"),
    ];
}

impl Display for ImportanceForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ImportanceForm::NAMES.iter().find(|(form, _)| form == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for ImportanceForm {
    type Err = String;

    fn from_str(text: &str) -> Result<ImportanceForm, String> {
        let found = ImportanceForm::NAMES.iter().find(|(_, name)| *name == text).map(|(form, _)| *form);
        found.ok_or_else(|| format!("{text:?} is not a form; write visual-2009, pattern-2011 or monotone"))
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ImportanceConfig {
    pub form: ImportanceForm,
    /// I(delete) of `visual-2009` and `monotone`; insert and update have 1.
    pub delete_weight: f64,
    /// I(move) of every form. It is small because the content existed before.
    pub move_weight: f64,
    /// Weight of an advertisement, alpha in P-PATTERN.
    pub advertisement_weight: f64,
}

impl ImportanceConfig {
    /// The default weights of a form. In `monotone`, deletions count as much as insertions: a page that lost a third
    /// of its words is a different page. P-PATTERN proposes alpha = 0.1, which ranks a rotated banner above a new menu
    /// entry, so `monotone` uses a lower value.
    pub fn new(form: ImportanceForm) -> ImportanceConfig {
        let (delete_weight, advertisement_weight) =
            if form == ImportanceForm::Monotone { (1.0, 0.001) } else { (0.8, 0.1) };
        ImportanceConfig { form, delete_weight, move_weight: 0.3, advertisement_weight }
    }
}

impl Default for ImportanceConfig {
    /// `docs/decisions/0011-importance.md` explains the choice of the form.
    fn default() -> ImportanceConfig {
        ImportanceConfig::new(ImportanceForm::Monotone)
    }
}

/// The caller's assessment of an operation.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Judgement {
    /// Whether it is about an advertisement.
    pub is_advertisement: bool,
    /// From 0 (all of it is news) to 1 (none is, as in a counter that changes on every visit).
    pub noise: f64,
    /// Why it is noise, if that is known.
    pub reason: Option<NoiseReason>,
}

/// The contribution of one operation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Contribution {
    /// The importance of this operation by itself.
    pub value: f64,
    /// Share of the sum of all values, 0 to 1.
    pub share: f64,
    pub judgement: Judgement,
    /// Whether it changes what is read. Changed URLs do not, and neither does anything that leaves the same words in
    /// the same order.
    pub is_read: bool,
    /// Whether a different operation counts the same words: a link in a text that changed too.
    pub is_counted_elsewhere: bool,
}

/// The importance of a delta and of each of its operations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Assessment {
    pub importance: Importance,
    /// One per operation, in the order of [`Delta::operations`].
    pub contributions: Vec<Contribution>,
}

/// Computes the importance of a delta. A delta that replaces the whole page contains no operations and counts as
/// [`Importance::FULL`]; [`crate::page::diff::diff`] finds its operations.
pub fn assess(
    delta: &Delta,
    config: &ImportanceConfig,
    judge: &mut dyn FnMut(&Operation) -> Judgement,
) -> Assessment {
    if delta.replacement.is_some() {
        return Assessment { importance: Importance::FULL, contributions: Vec::new() };
    }
    let context = OperationContext::new(delta, config.form);
    let is_monotone = config.form == ImportanceForm::Monotone;
    let listing = ListingPage::from_delta(delta).filter(|_| is_monotone);
    let mut contributions: Vec<Contribution> = Vec::new();
    let mut whole = ImportanceSum::default();
    let mut words = ChangedWords::default();
    for operation in delta.operations() {
        let judgement = judge(&operation);
        let prose = listing.as_ref().map_or(1.0, |listing| listing.share_of_prose(&operation));
        let is_read = !(is_monotone && (delta.has_same_words || is_unread(&operation)));
        let part = part(&operation, config, &context, judgement);
        let part = OperationPart { share: prose * part.share, ..part };
        whole.add(&operation, part, is_read);
        let value = part.as_read() * if is_read { 1.0 } else { UNREAD };
        let is_counted_elsewhere = is_counted_elsewhere(&operation, config.form);
        contributions.push(Contribution { value, share: 0.0, judgement, is_read, is_counted_elsewhere });
        if is_monotone && is_read && !is_counted_elsewhere && !operation.is_repeated {
            words.add(&operation, judgement);
        }
    }
    let sum: f64 = contributions.iter().map(|contribution| contribution.value).sum();
    if sum > 0.0 {
        contributions.iter_mut().for_each(|contribution| contribution.share = contribution.value / sum);
    }
    let within = if is_monotone { whole.join() } else { sum };
    let items = if delta.has_same_words { UNREAD } else { 1.0 };
    let importance = listing.map_or(within, |listing| listing.join(within, items));
    let least = if is_monotone && !delta.has_same_words { LEAST_PER_WORDS * words.share(delta) } else { 0.0 };
    Assessment { importance: Importance::new(importance.max(least)), contributions }
}

/// The least importance of a change, per share of the page's words that it changes. A role lowers the weight of words;
/// it never makes them count as nothing.
const LEAST_PER_WORDS: f64 = 0.1;
/// Weights of words in the frame of the page and in advertisements.
const FRAME_WORDS: f64 = 0.3;
const ADVERTISEMENT_WORDS: f64 = 0.02;

/// The words that operations change, weighed by their place, without noise.
#[derive(Default)]
struct ChangedWords(f64);

impl ChangedWords {
    fn add(&mut self, operation: &Operation, judgement: Judgement) {
        let weight = match operation.role {
            _ if judgement.is_advertisement => ADVERTISEMENT_WORDS,
            Some(BlockRole::Advertisement) => ADVERTISEMENT_WORDS,
            Some(BlockRole::Navigation | BlockRole::Header | BlockRole::Footer | BlockRole::Related) => {
                FRAME_WORDS
            }
            Some(BlockRole::Main | BlockRole::Comments | BlockRole::Other) | None => 1.0,
        };
        self.0 += weight * n_changed_words(operation) * (1.0 - judgement.noise.clamp(0.0, 1.0));
    }

    /// The share of the page. Words that came and went in different places did not change.
    fn share(&self, delta: &Delta) -> f64 {
        let changed = self.0.min(f64::from(delta.n_other_words));
        changed / f64::from(delta.n_page_words).max(changed).max(1.0)
    }
}

/// Combines all operations. Parts of one block add up, and an additional operation never lowers the result.
#[derive(Default)]
struct ImportanceSum<'a> {
    blocks: BTreeMap<(bool, Option<&'a [u16]>), OperationPart>,
    /// The unchanged rest after inserted, deleted and moved blocks: of the read content, and of the other content.
    left: [Option<f64>; 2],
}

impl<'a> ImportanceSum<'a> {
    fn add(&mut self, operation: &Operation<'a>, part: OperationPart, is_read: bool) {
        if operation.within.is_none() {
            let left = self.left[usize::from(is_read)].get_or_insert(1.0);
            *left *= 1.0 - part.as_read();
            return;
        }
        let all = self
            .blocks
            .entry((is_read, operation.block_after))
            .or_insert(OperationPart { share: 0.0, ..part });
        all.share += part.share;
        all.most = all.most.max(part.most);
    }

    fn join(&self) -> f64 {
        let left = |is_read: bool| {
            let blocks = self.blocks.iter().filter(|((read, _), _)| *read == is_read);
            let within = blocks.map(|(_, part)| 1.0 - part.as_read()).product::<f64>();
            within * self.left[usize::from(is_read)].unwrap_or(1.0)
        };
        1.0 - left(true) * (1.0 - UNREAD * (1.0 - left(false)))
    }
}

/// The maximum importance of all changes that leave the same words in the same order: URLs, images, wrappers.
const UNREAD: f64 = 0.005;

/// The importance of a delta without knowledge of advertisements and history.
pub fn importance(delta: &Delta, config: &ImportanceConfig) -> Importance {
    assess(delta, config, &mut |_| Judgement::default()).importance
}

#[cfg(test)]
mod tests;
