//! A part of a page, named by a CSS selector: its words in both versions of a change, and which past changes touched
//! it.

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

/// Latest changes that an estimate reads.
const MAX_CHANGES: usize = 2_000;

/// The words that a selector matches in both versions of a change; empty if there was no page. `None` if the bytes of
/// either version are not stored or are not HTML.
pub fn part_texts(
    snapshot: &SharedSnapshot,
    row: &ChangeRow,
    selector: &Selector,
) -> Option<(String, String)> {
    let text = |time: Option<Timestamp>, is_page: bool| -> Option<String> {
        let Some(time) = time.filter(|_| is_page) else { return Some(String::new()) };
        let spec = PageSpec::Archived { url: row.url.clone(), time: Some(time) };
        // `verify` reports unreadable records. Here there is nothing to compare.
        let page = spec.load_named(Some(snapshot)).ok()?;
        (page.document.is_none() && page.note.is_none()).then(|| selector.text_in(&Dom::parse(&page.html)))
    };
    let before = text(row.before, row.status.had_page())?;
    Some((before, text(Some(row.time), row.status.is_page())?))
}

/// How a part is weighted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PartTreatment {
    /// With this share of the page's importance.
    Pinned(f32),
    /// With no importance.
    Ignored,
}

/// Which edits touched a part, and what their importance would have been.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct PartEffect {
    /// Edits that were examined.
    pub n_changes: usize,
    /// Those that changed something inside the part.
    pub n_touching: usize,
    /// Those that changed nothing outside the part.
    pub n_inside: usize,
    /// Importance of all examined edits.
    pub importance: f64,
    /// Importance of those that touched the part.
    pub importance_touching: f64,
    /// Importance of those that changed nothing outside it.
    pub importance_inside: f64,
    /// Edits with a version that is not readable HTML.
    pub n_unread: usize,
    /// Whether there were more edits than the limit.
    pub is_cut: bool,
    /// Those whose importance would differ by 0.01 or more.
    pub n_other: usize,
    /// Approximate importance that all edits would have had.
    pub importance_then: f64,
    /// The edits whose importance would differ most, largest difference first.
    pub strongest: Vec<ImportanceShift>,
}

/// An edit whose importance would have differed.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ImportanceShift {
    pub url: String,
    /// Time of the previous observation, RFC 3339.
    pub before: Option<String>,
    /// Time of the observation that showed the edit, RFC 3339.
    pub time: String,
    /// Actual importance.
    pub importance: f64,
    /// Approximate importance under the new rule. Blocks with the words of the part are weighted again; no page is
    /// laid out again.
    pub importance_then: f64,
}

/// Smallest difference that is reported.
const LEAST_DIFFERENCE: f64 = 0.01;
/// Most edits in `strongest`.
const MAX_NAMED: usize = 8;

/// A query for the effect of a part on the edits of a site.
pub struct PartEffectQuery<'a> {
    pub selector: &'a Selector,
    pub treatment: PartTreatment,
    /// Only edits since then.
    pub since: Option<Timestamp>,
    /// Only this many latest edits.
    pub most: usize,
}

impl PartEffectQuery<'_> {
    /// Examines the edits on pages for which `is_of` holds.
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

    /// The operations of an edit, and its importance under the new rule.
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
        let reported = row.status.reported_importance().get();
        if texts.0 == texts.1 && self.treatment == PartTreatment::Ignored {
            return (entries, reported);
        }
        let (_, then) = weighed(&self.reweighed(before, &texts.0), &self.reweighed(after, &texts.1));
        // The reported importance may exceed that of the operations, for instance after a new title. The excess
        // remains.
        (entries, (reported + then - now).clamp(0.0, 1.0))
    }

    /// A tree in which the blocks inside the part together have its share of the importance. A tree without such
    /// blocks is unchanged.
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
            // The part is the whole page, so there is no other block to share with.
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

/// Scales the leaves outside and inside the part. Returns the block's new importance.
fn scale(block: &mut Block, part: &str, factors: [f32; 2]) -> f32 {
    block.importance = match block.children.is_empty() {
        true => block.importance * factors[usize::from(is_leaf_in_part(block, part))],
        false => block.children.iter_mut().map(|child| scale(child, part, factors)).sum(),
    };
    block.importance
}

/// Whether the part contains all words of a block.
fn is_leaf_in_part(leaf: &Block, part: &str) -> bool {
    let mut texts = leaf
        .texts
        .iter()
        .map(|text| text.text.as_str())
        .chain(leaf.links.iter().map(|link| link.name.as_str()));
    let has_words = leaf.texts.iter().any(|text| !text.text.is_empty())
        || leaf.links.iter().any(|link| !link.name.is_empty());
    has_words && texts.all(|text| part.contains(&collapse_whitespace(text)))
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

/// Whether the part contains the words of an element.
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
            let query = PartEffectQuery { selector: &selector, treatment, since: None, most: 1 };
            let tree = query.reweighed(&tree, part);
            tree.walk().map(|block| (block.importance * 100.0).round() as i32).collect::<Vec<_>>()
        };
        assert_eq!(weights(PartTreatment::Pinned(0.9), "the weather today"), [10, 8, 3, 90]);
        assert_eq!(weights(PartTreatment::Ignored, "the weather today"), [100, 75, 25, 0]);
        assert_eq!(weights(PartTreatment::Pinned(0.9), "nothing of it"), [80, 60, 20, 20]);
        assert_eq!(weights(PartTreatment::Pinned(0.9), "the news more the weather"), [80, 60, 20, 20]);
        assert_eq!(weights(PartTreatment::Ignored, "the news more the weather"), [0, 0, 0, 0]);
    }
}
