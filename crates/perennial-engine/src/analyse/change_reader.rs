//! Recomputes the operations of a stored change, with their weights.
//!
//! Deltas are not stored. Comparing the two trees again gives the same delta (docs/decisions/0039).

use std::collections::HashMap;

use perennial_core::page::diff::{Delta, diff};
use perennial_core::page::importance::{Assessment, ImportanceConfig};
use perennial_core::page::segment::BlockTree;
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;

use super::compare::{NoiseSource, weigh};
use super::{AdFilters, OperationReport, reported_entries};
use perennial_archive::store::{ChangeRow, Store, TreeReader, remade_at};

/// The difference between two consecutive observations.
pub struct ChangeDetails {
    pub delta: Delta,
    /// The importance and the noise of each operation.
    pub assessment: Assessment,
}

impl ChangeDetails {
    /// The operations to report, most important first.
    pub fn entries(&self) -> Vec<OperationReport> {
        reported_entries(&self.delta, &self.assessment)
    }
}

/// Reads changes of an archive one after the other.
pub struct ChangeReader<'s> {
    trees: TreeReader<'s>,
    filters: &'s AdFilters,
    /// Per page, the later tree of the last change that was read. The page's next change starts from it.
    latest: HashMap<PageId, (Timestamp, BlockTree)>,
    /// Number of elements in these trees.
    n_latest: usize,
}

/// Most elements in cached trees: about 100 MB.
const MAX_LATEST: usize = 400_000;

impl<'s> ChangeReader<'s> {
    pub fn new(store: &'s Store, filters: &'s AdFilters) -> ChangeReader<'s> {
        ChangeReader { trees: TreeReader::new(store), filters, latest: HashMap::new(), n_latest: 0 }
    }

    /// The details of a change. `None` if one of the observations was not laid out, or if no visible content changed.
    pub fn read(&mut self, row: &ChangeRow) -> anyhow::Result<Option<ChangeDetails>> {
        let Some(time_before) = row.before.filter(|_| row.n_operations > 0) else { return Ok(None) };
        let kept = self.latest.remove(&row.page);
        self.n_latest -= kept.as_ref().map_or(0, |(_, tree)| n_elements(tree));
        let before = match kept {
            Some((time, tree)) if time == time_before => Some(tree),
            _ => self.trees.tree_at(row.page, time_before)?,
        };
        let Some(after) = self.trees.tree_at(row.page, row.time)? else { return Ok(None) };
        let is_comparable = |before: &BlockTree| before.engine == after.engine;
        let before = match before {
            // It was compared with an earlier version too, by an earlier engine.
            Some(before) if !is_comparable(&before) => self.trees.tree_at(row.page, remade_at(row.time))?,
            before => before,
        };
        let Some(before) = before.filter(is_comparable) else { return Ok(None) };
        let delta = diff(&before, &after);
        let history = NoiseSource::Stored(&row.noise);
        let assessment = weigh(&delta, &ImportanceConfig::default(), self.filters, &row.url, history);
        self.cache(row.page, row.time, after);
        Ok(Some(ChangeDetails { delta, assessment }))
    }

    fn cache(&mut self, page: PageId, time: Timestamp, tree: BlockTree) {
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
