//! A part of a page, named by a CSS selector -> its words in both versions of a change; which changes of the past touched it.

use perennial_core::dom::Dom;
use perennial_core::look::Seen;
use perennial_core::notice::told_importance;
use perennial_core::segment::Selector;
use perennial_core::time::Timestamp;
use serde::Serialize;

use super::{ChangedReader, Content, Entry, Filters, PageSpec};
use crate::archive::SharedSnapshot;
use crate::store::{ChangeFilter, ChangeRow};

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
    let before = text(row.before, !matches!(row.seen, Seen::First | Seen::Returned))?;
    Some((before, text(Some(row.time), row.seen.is_page())?))
}

/// Which edits of a time touched a part.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
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
}

impl PartEffect {
    /// Of the edits since an instant on the pages that `is_of` lets through.
    pub fn since(
        snapshot: &SharedSnapshot,
        filters: &Filters,
        selector: &Selector,
        since: Option<Timestamp>,
        is_of: impl Fn(&str) -> bool,
        progress: &dyn Fn(),
    ) -> anyhow::Result<PartEffect> {
        let mut rows = std::collections::VecDeque::new();
        let mut effect = PartEffect::default();
        let filter = ChangeFilter { since, ..ChangeFilter::default() };
        snapshot.lock().store().each_change(&filter, |row| {
            if row.n_operations > 0 && row.seen != Seen::Noise && is_of(&row.url) {
                rows.push_back(row);
            }
            if rows.len() > MAX_CHANGES {
                rows.pop_front();
                effect.is_cut = true;
            }
            Ok(())
        })?;
        for row in &rows {
            progress();
            let entries = {
                let shared = snapshot.lock();
                let changed = ChangedReader::new(shared.store(), filters).read(row)?;
                changed.map(|changed| changed.entries()).unwrap_or_default()
            };
            match part_texts(snapshot, row, selector) {
                Some(texts) => effect.add(row, &entries, &texts),
                None => effect.n_unread += 1,
            }
        }
        Ok(effect)
    }

    fn add(&mut self, row: &ChangeRow, entries: &[Entry], (before, after): &(String, String)) {
        let importance = told_importance(row.seen);
        let is_inside = |entry: &Entry| is_said(&entry.before, before) && is_said(&entry.after, after);
        let counted: Vec<&Entry> = entries.iter().filter(|entry| entry.share > 0.0).collect();
        self.n_changes += 1;
        self.importance += importance;
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
fn is_said(content: &Option<Content>, part: &str) -> bool {
    content.as_ref().is_none_or(|content| {
        let words = content.text.split_whitespace().collect::<Vec<_>>().join(" ");
        part.contains(&words)
    })
}
