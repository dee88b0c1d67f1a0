//! Tests whether a stored change satisfies a condition. Reads only what the condition needs.

use perennial_core::notice::{self, ChangeCondition, ChangeKind, ChangeTexts, ReportedOperation};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::diff::{Delta, ItemChangeKind};
use perennial_core::page::segment::{BlockTree, Selector};
use perennial_core::search::passages;
use perennial_core::time::Timestamp;

use crate::analyse::{AdFilters, ChangeDetails, ChangeReader, OperationReport, is_entry_in_part, part_texts};
use perennial_archive::store::{ChangeRow, Store, parse_site_name};
use perennial_archive::{Archive, SharedSnapshot};

/// Tests the changes of an archive one after the other.
pub struct ChangeMatcher<'s> {
    archive: &'s Archive,
    store: &'s Store,
    reader: ChangeReader<'s>,
    /// Needed for conditions with a selector.
    pages: Option<SharedSnapshot>,
}

/// A change, and what was read of it so far.
pub struct CandidateChange<'r> {
    pub row: &'r ChangeRow,
    pub kind: ChangeKind,
    site: String,
    /// `None`: not read yet. `Some(None)`: the two versions cannot be compared.
    changed: Option<Option<ChangeDetails>>,
    entries: Option<Vec<OperationReport>>,
    /// Both trees, if read.
    trees: Option<[Option<BlockTree>; 2]>,
}

impl<'r> CandidateChange<'r> {
    /// Nothing is read yet.
    pub fn new(row: &'r ChangeRow) -> CandidateChange<'r> {
        let kind = ChangeKind::from_status(row.status, row.title_before.is_some());
        CandidateChange {
            row,
            kind,
            site: parse_site_name(&row.url),
            changed: None,
            entries: None,
            trees: None,
        }
    }

    fn change(&self) -> notice::ReportedChange<'_> {
        notice::ReportedChange {
            url: &self.row.url,
            site: &self.site,
            kind: self.kind,
            importance: self.row.status.reported_importance().get(),
            is_noise: self.row.status == ChangeStatus::NoiseOnly,
        }
    }

    /// Whether anything beyond the row was read.
    pub fn is_read(&self) -> bool {
        self.changed.is_some() || self.trees.is_some()
    }
}

impl<'s> ChangeMatcher<'s> {
    pub fn new(archive: &'s Archive, store: &'s Store, filters: &'s AdFilters) -> ChangeMatcher<'s> {
        ChangeMatcher { archive, store, reader: ChangeReader::new(store, filters), pages: None }
    }

    /// Whether a condition holds.
    pub fn holds(
        &mut self,
        candidate: &mut CandidateChange<'_>,
        condition: &ChangeCondition,
    ) -> anyhow::Result<bool> {
        if !condition.may_hold(&candidate.change()) {
            return Ok(false);
        }
        if condition.needs_operations(candidate.kind) {
            self.entries(candidate)?;
        }
        let mut selected = None;
        if let Some(selector) = &condition.selector {
            selected = self.selected(candidate.row, selector)?;
            match &selected {
                None => return Ok(false),
                Some(texts) if self.is_part_noise(candidate, condition, texts)? => return Ok(false),
                Some(_) => {}
            }
        } else if condition.needs_texts() {
            self.read_trees(candidate)?;
        }
        let changed = candidate.changed.as_ref().and_then(Option::as_ref);
        let mut contents = ChangeTexts {
            is_headline_rewritten: changed.is_some_and(|changed| is_rewritten(&changed.delta)),
            operations: candidate.entries.iter().flatten().map(reported_operation).collect(),
            ..ChangeTexts::default()
        };
        if let Some((before, after)) = &selected {
            (contents.before, contents.after) = (vec![before.as_str()], vec![after.as_str()]);
        } else if let Some([before, after]) = &candidate.trees {
            (contents.before, contents.after) = (texts(before), texts(after));
        }
        Ok(condition.holds(&candidate.change(), &contents))
    }

    /// Whether the page's history shows that each operation in the part is noise. Whoever watches a part wants to know
    /// about its first change, also if filter lists or the form of its text speak against it.
    fn is_part_noise(
        &mut self,
        candidate: &mut CandidateChange<'_>,
        condition: &ChangeCondition,
        (before, after): &(String, String),
    ) -> anyhow::Result<bool> {
        if condition.wants_noise() {
            return Ok(false);
        }
        let entries = self.entries(candidate)?;
        let mut inside = entries.iter().filter(|entry| is_entry_in_part(entry, (before, after))).peekable();
        let is_earned = |entry: &OperationReport| entry.reason.is_some_and(|reason| reason.is_earned());
        Ok(inside.peek().is_some() && inside.all(is_earned))
    }

    /// The details of the change; `None` if the two versions cannot be compared.
    pub fn changed<'j>(
        &mut self,
        candidate: &'j mut CandidateChange<'_>,
    ) -> anyhow::Result<Option<&'j ChangeDetails>> {
        if candidate.changed.is_none() {
            candidate.changed = Some(self.reader.read(candidate.row)?);
        }
        Ok(candidate.changed.as_ref().and_then(Option::as_ref))
    }

    /// The operations to report, most important first.
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

    /// Reads the trees of both versions; there is none if there was no page.
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
    delta.items.as_ref().is_some_and(|items| items.is_listing && items.n_changes(ItemChangeKind::Retitle) > 0)
}

/// An operation in the form that filters of operations take.
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
