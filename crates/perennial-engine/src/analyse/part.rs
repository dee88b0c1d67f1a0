//! A part of a page, named by a CSS selector -> its words in both versions of a change; which changes of the past touched it.

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::diff::diff;
use perennial_core::page::importance::ImportanceConfig;
use perennial_core::page::segment::{Block, BlockTree, Selector};
use perennial_core::text::dom::Dom;
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::compare::{NoiseSource, weigh};
use super::{AdFilters, ElementContent, OperationReport, PageSpec, reported_entries};
use perennial_archive::SharedSnapshot;
use perennial_archive::store::{ChangeFilter, ChangeRow};

/// Changes that are read for an estimate: the latest.
const MAX_CHANGES: usize = 2_000;

/// What a selector finds in both versions of a change, as words; nothing where there was no page. `None` where the bytes of one of the two
/// are not stored or are no HTML.
pub fn part_texts(
    snapshot: &SharedSnapshot,
    row: &ChangeRow,
    selector: &Selector,
) -> Option<(String, String)> {
    let text = |time: Option<Timestamp>, is_page: bool| -> Option<String> {
        let Some(time) = time.filter(|_| is_page) else { return Some(String::new()) };
        let spec = PageSpec::Archived { url: row.url.clone(), time: Some(time) };
        // A record that cannot be read is named by `verify`; here there is nothing to compare.
        let page = spec.load_named(Some(snapshot)).ok()?;
        (page.document.is_none() && page.note.is_none()).then(|| selector.text_in(&Dom::parse(&page.html)))
    };
    let before = text(row.before, row.status.had_page())?;
    Some((before, text(Some(row.time), row.status.is_page())?))
}

/// What a part of a page would be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PartTreatment {
    /// It has this share of the page's importance.
    Pinned(f32),
    /// It is not looked at.
    Ignored,
}

/// Which edits of a time touched a part, and what they would have been worth.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct PartEffect {
    /// Edits that were looked at.
    pub n_changes: usize,
    /// Those in which something inside the part changed.
    pub n_touching: usize,
    /// Those in which nothing else changed.
    pub n_inside: usize,
    /// Importance of all of them.
    pub importance: f64,
    /// Of those that touched the part.
    pub importance_touching: f64,
    /// Of those in which nothing else changed.
    pub importance_inside: f64,
    /// Those of which a version cannot be read as HTML.
    pub n_unread: usize,
    /// Whether there were more than are looked at.
    pub is_cut: bool,
    /// Those that would have had another importance, by about a hundredth or more.
    pub n_other: usize,
    /// Importance that all would have had, about.
    pub importance_then: f64,
    /// Those that would have changed most, the most first.
    pub strongest: Vec<ImportanceShift>,
}

/// An edit that would have had another importance.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ImportanceShift {
    /// Its page.
    pub url: String,
    /// The observation before it and the observation that saw it, RFC 3339.
    pub before: Option<String>,
    /// See `before`.
    pub time: String,
    /// What it was worth.
    pub importance: f64,
    /// What it would have been worth, about: the blocks that say what the part says are weighed anew, and no page is laid out again.
    pub importance_then: f64,
}

/// A difference that is told.
const LEAST_DIFFERENCE: f64 = 0.01;
/// Edits that are named.
const MAX_NAMED: usize = 8;

/// What is asked of the edits of a site.
pub struct PartEffectQuery<'a> {
    /// The part.
    pub selector: &'a Selector,
    /// What it would be.
    pub treatment: PartTreatment,
    /// Edits from then on.
    pub since: Option<Timestamp>,
    /// The latest so many, at most.
    pub most: usize,
}

impl PartEffectQuery<'_> {
    /// Examines the edits on the pages that `is_of` lets through.
    pub fn estimate(
        &self,
        snapshot: &SharedSnapshot,
        filters: &AdFilters,
        is_of: impl Fn(&str) -> bool,
        progress: &dyn Fn(),
    ) -> anyhow::Result<PartEffect> {
        let mut rows = std::collections::VecDeque::new();
        let mut effect = PartEffect::default();
        let filter = ChangeFilter { since: self.since, ..ChangeFilter::default() };
        snapshot.lock().store().each_change(&filter, |row| {
            if row.n_operations > 0 && row.status != ChangeStatus::NoiseOnly && is_of(&row.url) {
                rows.push_back(row);
            }
            if rows.len() > self.most.min(MAX_CHANGES) {
                rows.pop_front();
                effect.is_cut = true;
            }
            Ok(())
        })?;
        for row in &rows {
            progress();
            let Some(texts) = part_texts(snapshot, row, self.selector) else {
                effect.n_unread += 1;
                continue;
            };
            let trees = {
                let shared = snapshot.lock();
                let store = shared.store();
                let before = row.before.map(|before| store.tree_at(row.page, before)).transpose()?.flatten();
                before.zip(store.tree_at(row.page, row.time)?)
            };
            let trees = trees.filter(|(before, after)| before.engine == after.engine);
            let (entries, then) = match &trees {
                Some(trees) => self.judge(row, trees, &texts, filters),
                None => (Vec::new(), row.status.reported_importance().get()),
            };
            effect.add(row, &entries, &texts, then);
        }
        effect.strongest.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
        effect.strongest.truncate(MAX_NAMED);
        Ok(effect)
    }

    /// The operations of an edit, and what it would have been worth.
    fn judge(
        &self,
        row: &ChangeRow,
        (before, after): &(BlockTree, BlockTree),
        texts: &(String, String),
        filters: &AdFilters,
    ) -> (Vec<OperationReport>, f64) {
        let config = ImportanceConfig::default();
        let weighed = |before: &BlockTree, after: &BlockTree| {
            let delta = diff(before, after);
            let assessment = weigh(&delta, &config, filters, &row.url, NoiseSource::Stored(&row.noise));
            (reported_entries(&delta, &assessment), assessment.importance.get())
        };
        let (entries, now) = weighed(before, after);
        let told = row.status.reported_importance().get();
        if texts.0 == texts.1 && self.treatment == PartTreatment::Ignored {
            return (entries, told);
        }
        let (_, then) = weighed(&self.reweighed(before, &texts.0), &self.reweighed(after, &texts.1));
        // What was told may be worth more than its operations: a new title, a vanished page. That stays.
        (entries, (told + then - now).clamp(0.0, 1.0))
    }

    /// A tree whose blocks inside the part have its share of the importance together. One without such blocks is as it was.
    fn reweighed(&self, tree: &BlockTree, part: &str) -> BlockTree {
        let share = match self.treatment {
            PartTreatment::Pinned(share) => share.clamp(0.0, 1.0),
            PartTreatment::Ignored => 0.0,
        };
        let mut tree = tree.clone();
        let mut sums = [0.0f32; 2];
        let leaves = tree.walk().filter(|block| block.children.is_empty());
        leaves.for_each(|leaf| sums[usize::from(is_leaf_in_part(leaf, part))] += leaf.importance);
        let factors = match sums {
            [_, 0.0] => return tree,
            // The part is the whole page: there is nothing to share with.
            [0.0, _] if self.treatment != PartTreatment::Ignored => return tree,
            [0.0, _] => [1.0, 0.0],
            [outside, inside] => [(1.0 - share) / outside, share / inside],
        };
        tree.blocks.iter_mut().for_each(|block| {
            scale(block, part, factors);
        });
        tree
    }
}

/// Scales the leaves outside and inside a part; gives the importance of the block.
fn scale(block: &mut Block, part: &str, factors: [f32; 2]) -> f32 {
    block.importance = match block.children.is_empty() {
        true => block.importance * factors[usize::from(is_leaf_in_part(block, part))],
        false => block.children.iter_mut().map(|child| scale(child, part, factors)).sum(),
    };
    block.importance
}

/// Whether a block says nothing that the part does not say.
fn is_leaf_in_part(leaf: &Block, part: &str) -> bool {
    let mut said = leaf
        .texts
        .iter()
        .map(|text| text.text.as_str())
        .chain(leaf.links.iter().map(|link| link.name.as_str()));
    let has_words = leaf.texts.iter().any(|text| !text.text.is_empty())
        || leaf.links.iter().any(|link| !link.name.is_empty());
    has_words && said.all(|text| part.contains(&collapse_whitespace(text)))
}

fn collapse_whitespace(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn difference(other: &ImportanceShift) -> f64 {
    (other.importance_then - other.importance).abs()
}

impl PartEffect {
    fn add(
        &mut self,
        row: &ChangeRow,
        entries: &[OperationReport],
        (before, after): &(String, String),
        then: f64,
    ) {
        let importance = row.status.reported_importance().get();
        let is_inside =
            |entry: &OperationReport| is_in_part(&entry.before, before) && is_in_part(&entry.after, after);
        let counted: Vec<&OperationReport> = entries.iter().filter(|entry| entry.share > 0.0).collect();
        self.n_changes += 1;
        self.importance += importance;
        self.importance_then += then;
        let other = ImportanceShift {
            url: row.url.clone(),
            before: row.before.map(Timestamp::to_rfc3339),
            time: row.time.to_rfc3339(),
            importance,
            importance_then: then,
        };
        if difference(&other) >= LEAST_DIFFERENCE {
            self.n_other += 1;
            self.strongest.push(other);
        }
        if before != after {
            self.n_touching += 1;
            self.importance_touching += importance;
            if counted.iter().all(|entry| is_inside(entry)) {
                self.n_inside += 1;
                self.importance_inside += importance;
            }
        }
    }
}

/// Whether the words of an element are among those of the part.
fn is_in_part(content: &Option<ElementContent>, part: &str) -> bool {
    content.as_ref().is_none_or(|content| part.contains(&collapse_whitespace(&content.text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use perennial_core::page::segment::Text;

    fn leaf(text: &str, importance: f32) -> Block {
        Block { texts: vec![Text::new(text)], importance, ..Block::default() }
    }

    #[test]
    fn a_pinned_part_has_its_share_and_an_ignored_one_none() {
        let inner = Block {
            importance: 0.8,
            children: vec![leaf("the news", 0.6), leaf("more", 0.2)],
            ..Block::default()
        };
        let tree = BlockTree { blocks: vec![inner, leaf("the weather", 0.2)], ..BlockTree::default() };
        let selector = Selector::parse("#w").unwrap();
        let weights = |treatment: PartTreatment, part: &str| {
            let question = PartEffectQuery { selector: &selector, treatment, since: None, most: 1 };
            let tree = question.reweighed(&tree, part);
            tree.walk().map(|block| (block.importance * 100.0).round() as i32).collect::<Vec<_>>()
        };
        assert_eq!(weights(PartTreatment::Pinned(0.9), "the weather today"), [10, 8, 3, 90]);
        assert_eq!(weights(PartTreatment::Ignored, "the weather today"), [100, 75, 25, 0]);
        assert_eq!(weights(PartTreatment::Pinned(0.9), "nothing of it"), [80, 60, 20, 20]);
        assert_eq!(weights(PartTreatment::Pinned(0.9), "the news more the weather"), [80, 60, 20, 20]);
        assert_eq!(weights(PartTreatment::Ignored, "the news more the weather"), [0, 0, 0, 0]);
    }
}
