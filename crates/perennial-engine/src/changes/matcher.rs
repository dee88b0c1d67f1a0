//! A change in the state and a condition -> whether it holds. What a condition does not ask for is not read.

use perennial_core::notice::{self, ChangeKind, Condition, ReportedOperation, Said};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::diff::{Delta, ItemChangeKind};
use perennial_core::page::segment::{BlockTree, Selector};
use perennial_core::search::passages;
use perennial_core::time::Timestamp;

use crate::analyse::{AdFilters, ChangeDetails, ChangeReader, OperationReport, part_texts};
use perennial_archive::store::{ChangeRow, Store, site_of};
use perennial_archive::{Archive, SharedSnapshot};

/// Judges the changes of an archive, one after the other.
pub struct ChangeMatcher<'s> {
    archive: &'s Archive,
    store: &'s Store,
    reader: ChangeReader<'s>,
    /// For conditions that name a part by a selector.
    pages: Option<SharedSnapshot>,
}

/// A change with whatever conditions have asked of it.
pub struct CandidateChange<'r> {
    /// The change.
    pub row: &'r ChangeRow,
    /// What happened.
    pub kind: ChangeKind,
    site: String,
    /// Read when a condition asks for it; the inner `None`: nothing can be compared.
    changed: Option<Option<ChangeDetails>>,
    entries: Option<Vec<OperationReport>>,
    /// Both trees, likewise.
    trees: Option<[Option<BlockTree>; 2]>,
}

impl<'r> CandidateChange<'r> {
    /// Of a change nothing was asked yet.
    pub fn new(row: &'r ChangeRow) -> CandidateChange<'r> {
        let kind = ChangeKind::of(row.status, row.title_before.is_some());
        CandidateChange { row, kind, site: site_of(&row.url), changed: None, entries: None, trees: None }
    }

    fn change(&self) -> notice::Change<'_> {
        notice::Change {
            url: &self.row.url,
            site: &self.site,
            kind: self.kind,
            importance: self.row.status.reported_importance().get(),
            is_noise: self.row.status == ChangeStatus::NoiseOnly,
        }
    }

    /// Whether anything was read of it that costs more than its row.
    pub fn is_read(&self) -> bool {
        self.changed.is_some() || self.trees.is_some()
    }
}

impl<'s> ChangeMatcher<'s> {
    /// Reads from a store; filters say what is an advertisement.
    pub fn new(archive: &'s Archive, store: &'s Store, filters: &'s AdFilters) -> ChangeMatcher<'s> {
        ChangeMatcher { archive, store, reader: ChangeReader::new(store, filters), pages: None }
    }

    /// Whether a condition holds.
    pub fn holds(
        &mut self,
        candidate: &mut CandidateChange<'_>,
        condition: &Condition,
    ) -> anyhow::Result<bool> {
        if !condition.may_hold(&candidate.change()) {
            return Ok(false);
        }
        if condition.asks_for_operations(candidate.kind) {
            self.entries(candidate)?;
        }
        let mut selected = None;
        if let Some(selector) = &condition.selector {
            selected = self.selected(candidate.row, selector)?;
            if selected.is_none() {
                return Ok(false);
            }
        } else if condition.asks_for_texts() {
            self.read_trees(candidate)?;
        }
        let changed = candidate.changed.as_ref().and_then(Option::as_ref);
        let mut said = Said {
            is_headline_rewritten: changed.is_some_and(|changed| is_rewritten(&changed.delta)),
            operations: candidate.entries.iter().flatten().map(reported_operation).collect(),
            ..Said::default()
        };
        if let Some((before, after)) = &selected {
            (said.before, said.after) = (vec![before.as_str()], vec![after.as_str()]);
        } else if let Some([before, after]) = &candidate.trees {
            (said.before, said.after) = (texts(before), texts(after));
        }
        Ok(condition.holds(&candidate.change(), &said))
    }

    /// What changed between both versions, where both can be compared.
    pub fn changed<'j>(
        &mut self,
        candidate: &'j mut CandidateChange<'_>,
    ) -> anyhow::Result<Option<&'j ChangeDetails>> {
        if candidate.changed.is_none() {
            candidate.changed = Some(self.reader.read(candidate.row)?);
        }
        Ok(candidate.changed.as_ref().and_then(Option::as_ref))
    }

    /// The operations between both versions for people, most important first.
    pub fn entries<'j>(
        &mut self,
        candidate: &'j mut CandidateChange<'_>,
    ) -> anyhow::Result<&'j [OperationReport]> {
        if candidate.entries.is_none() {
            let entries = self.changed(candidate)?.map(ChangeDetails::entries).unwrap_or_default();
            candidate.entries = Some(entries);
        }
        Ok(candidate.entries.as_deref().unwrap_or_default())
    }

    /// The words of a part in both versions.
    pub fn selected(
        &mut self,
        row: &ChangeRow,
        selector: &Selector,
    ) -> anyhow::Result<Option<(String, String)>> {
        let pages = match &self.pages {
            Some(pages) => pages,
            None => self.pages.insert(SharedSnapshot::new(self.archive.snapshot()?)),
        };
        Ok(part_texts(pages, row, selector))
    }

    /// The trees of both versions; there is none where there was no page.
    fn read_trees(&self, candidate: &mut CandidateChange<'_>) -> anyhow::Result<()> {
        if candidate.trees.is_none() {
            let row = candidate.row;
            let tree = |time: Option<Timestamp>| {
                time.map(|time| self.store.tree_at(row.page, time)).transpose().map(Option::flatten)
            };
            candidate.trees = Some([
                tree(row.before.filter(|_| row.status.had_page()))?,
                tree(Some(row.time).filter(|_| row.status.is_page()))?,
            ]);
        }
        Ok(())
    }
}

fn texts(tree: &Option<BlockTree>) -> Vec<&str> {
    tree.as_ref().map(passages).unwrap_or_default().into_iter().map(|passage| passage.text).collect()
}

fn is_rewritten(delta: &Delta) -> bool {
    delta.items.as_ref().is_some_and(|items| items.is_hub && items.n(ItemChangeKind::Retitle) > 0)
}

/// An operation as a filter of operations looks at it.
pub(super) fn reported_operation(entry: &OperationReport) -> ReportedOperation<'_> {
    ReportedOperation {
        op: entry.op,
        element: entry.element,
        role: entry.role,
        blocks: [entry.block_before.as_deref(), entry.block_after.as_deref()],
        texts: [&entry.before, &entry.after].map(|side| side.as_ref().map(|content| content.text.as_str())),
        judgement: entry.judgement(),
        share: entry.share,
    }
}
