//! A change in the state -> the operations between its two trees, with their weights.
//!
//! Deltas are not stored beside the trees: the two trees give the same delta again (docs/decisions/0039).

use std::collections::HashMap;

use perennial_core::page::diff::{Delta, diff};
use perennial_core::page::importance::{Assessment, ImportanceConfig};
use perennial_core::page::segment::BlockTree;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;

use super::compare::{NoiseSource, weigh};
use super::{AdFilters, OperationReport, reported_entries};
use perennial_archive::store::{ChangeRow, Store, TreeReader};

/// What changed between two observations in a row.
pub struct ChangeDetails {
    /// The operations.
    pub delta: Delta,
    /// How much each of them matters, with what the page's history says of its noise.
    pub assessment: Assessment,
}

impl ChangeDetails {
    /// The operations for people, most important first.
    pub fn entries(&self) -> Vec<OperationReport> {
        reported_entries(&self.delta, &self.assessment)
    }
}

/// Reads the changes of an archive, one after the other.
pub struct ChangeReader<'s> {
    trees: TreeReader<'s>,
    filters: &'s AdFilters,
    /// The later tree of the change that was read last of each page: the next change of the page begins with it.
    latest: HashMap<PageId, (Timestamp, BlockTree)>,
    /// Elements of these trees.
    n_latest: usize,
}

/// Elements of all trees that are kept: about a hundred megabytes.
const MAX_LATEST: usize = 400_000;

impl<'s> ChangeReader<'s> {
    /// Reads from a store; filters say what is an advertisement.
    pub fn new(store: &'s Store, filters: &'s AdFilters) -> ChangeReader<'s> {
        ChangeReader { trees: TreeReader::new(store), filters, latest: HashMap::new(), n_latest: 0 }
    }

    /// What a change consists of; `None` where one of the two observations was not laid out, or a reader sees no difference.
    pub fn read(&mut self, row: &ChangeRow) -> anyhow::Result<Option<ChangeDetails>> {
        let Some(time_before) = row.before.filter(|_| row.n_operations > 0) else { return Ok(None) };
        let kept = self.latest.remove(&row.page);
        self.n_latest -= kept.as_ref().map_or(0, |(_, tree)| n_elements(tree));
        let before = match kept {
            Some((time, tree)) if time == time_before => Some(tree),
            _ => self.trees.tree_at(row.page, time_before)?,
        };
        let after = self.trees.tree_at(row.page, row.time)?;
        let Some((before, after)) = before.zip(after).filter(|(before, after)| before.engine == after.engine)
        else {
            return Ok(None);
        };
        let delta = diff(&before, &after);
        let history = NoiseSource::Stored(&row.noise);
        let assessment = weigh(&delta, &ImportanceConfig::default(), self.filters, &row.url, history);
        self.keep(row.page, row.time, after);
        Ok(Some(ChangeDetails { delta, assessment }))
    }

    fn keep(&mut self, page: PageId, time: Timestamp, tree: BlockTree) {
        if self.n_latest > MAX_LATEST {
            self.latest.clear();
            self.n_latest = 0;
        }
        self.n_latest += n_elements(&tree);
        self.latest.insert(page, (time, tree));
    }
}

fn n_elements(tree: &BlockTree) -> usize {
    tree.walk().map(|block| 1 + block.links.len() + block.images.len() + block.texts.len()).sum()
}
