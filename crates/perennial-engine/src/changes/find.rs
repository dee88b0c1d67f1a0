//! Finds the changes that match a query, in batches of bounded work.

use std::collections::HashSet;

use perennial_core::notice::{ChangeKind, PageFilter, Wording};
use perennial_core::time::Timestamp;
use perennial_core::url::PageId;

use super::matcher::reported_operation;
use super::{CandidateChange, ChangeMatcher, ChangeQuery, MatchingChange};
use crate::analyse::{AdFilters, OperationReport, headlines};
use perennial_archive::Archive;
use perennial_archive::store::{ChangeFilter, ChangeKey, ChangeOrder, ChangeRow, PresenceEdge, Store, Texts};

/// Keys fetched per step.
const KEYS_AT_A_TIME: usize = 1_000;
/// Keys sorted per step: 24 MB.
const KEYS_SORTED: usize = 1_000_000;
/// If the text index names more observations, the list is walked instead.
const MAX_TURNS: usize = 5_000;

/// The most work per batch.
#[derive(Clone, Copy, Debug)]
pub struct WorkLimits {
    /// Changes in the result.
    pub max_found: usize,
    /// Changes whose two versions are read.
    pub max_read: usize,
    /// Changes that are examined.
    pub max_rows: usize,
}

/// One batch of the result.
pub struct ChangeBatch {
    /// The changes in the requested order.
    pub changes: Vec<MatchingChange>,
    /// Where the next batch starts; `None` at the end.
    pub next: Option<ChangeKey>,
    /// How many changes were examined.
    pub n_rows: usize,
}

/// Finds the changes of one archive that match a query.
pub struct ChangeFinder<'s> {
    matcher: ChangeMatcher<'s>,
    store: &'s Store,
    texts: Option<Texts>,
    change_query: &'s ChangeQuery,
    /// Keys that were fetched but not yet examined. The next batch starts with them.
    ahead: Option<KeyBatch>,
}

/// Consecutive keys of the list.
struct KeyBatch {
    keys: Vec<ChangeKey>,
    /// How many of them were examined.
    n_done: usize,
    /// Whether the list ends with them.
    is_end: bool,
}

impl KeyBatch {
    fn begin_behind(&self, after: Option<&ChangeKey>) -> bool {
        self.n_done.checked_sub(1).and_then(|at| self.keys.get(at)) == after
    }
}

impl<'s> ChangeFinder<'s> {
    pub fn new(
        archive: &'s Archive,
        store: &'s Store,
        filters: &'s AdFilters,
        change_query: &'s ChangeQuery,
    ) -> anyhow::Result<ChangeFinder<'s>> {
        let texts = Texts::open_read(&archive.texts_path())?;
        Ok(ChangeFinder {
            matcher: ChangeMatcher::new(archive, store, filters),
            store,
            texts,
            change_query,
            ahead: None,
        })
    }

    /// The batch after a key, or the first one.
    pub fn find(&mut self, after: Option<&ChangeKey>, bounds: WorkLimits) -> anyhow::Result<ChangeBatch> {
        let mut part = BatchBuilder {
            found: ChangeBatch { changes: Vec::new(), next: None, n_rows: 0 },
            n_read: 0,
            bounds,
        };
        let mut keys = match self.ahead.take().filter(|ahead| ahead.begin_behind(after)) {
            Some(ahead) => ahead,
            None => match self.keys_by_words(after)? {
                Some(keys) => KeyBatch { keys, n_done: 0, is_end: true },
                None => self.fetched(after, bounds)?,
            },
        };
        loop {
            if self.walk(&mut keys, &mut part)? {
                self.ahead = Some(keys);
                return Ok(part.found);
            }
            if keys.is_end {
                return Ok(part.found);
            }
            keys = self.fetched(keys.keys.last(), bounds)?;
        }
    }

    /// Fetches the next keys. If they must be sorted by importance, many are fetched at once.
    fn fetched(&self, after: Option<&ChangeKey>, bounds: WorkLimits) -> anyhow::Result<KeyBatch> {
        let (filter, order) = (change_filter(self.change_query), self.change_query.order);
        let must_sort = order == ChangeOrder::Strongest && !self.store.is_sorted_by(&filter, order)?;
        let most = if must_sort { KEYS_SORTED } else { KEYS_AT_A_TIME };
        let limit = most.min(bounds.max_rows.saturating_add(1));
        let keys = self.store.change_keys(&filter, order, after, limit)?;
        Ok(KeyBatch { is_end: keys.len() < limit, keys, n_done: 0 })
    }

    /// Matches changes until a limit is reached. Returns whether it was reached.
    fn walk(&mut self, keys: &mut KeyBatch, part: &mut BatchBuilder) -> anyhow::Result<bool> {
        while let Some(key) = keys.keys.get(keys.n_done).copied() {
            keys.n_done += 1;
            part.found.n_rows += 1;
            if let Some(row) = self.store.change_at(key.page, key.time)? {
                let mut candidate = CandidateChange::new(&row);
                let matching_operations =
                    match self.matcher.holds(&mut candidate, &self.change_query.condition)? {
                        true => Some(self.matching_operations(&mut candidate)?),
                        false => None,
                    };
                part.n_read += usize::from(candidate.is_read());
                let kind = candidate.kind;
                let change = matching_operations
                    .map(|(headlines, entries)| MatchingChange::new(row, kind, headlines, entries));
                part.found.changes.extend(change);
            }
            if part.is_full() {
                let is_last = keys.is_end && keys.n_done == keys.keys.len();
                part.found.next = Some(key).filter(|_| !is_last);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The headlines of a change, and its matching operations.
    fn matching_operations(
        &mut self,
        candidate: &mut CandidateChange<'_>,
    ) -> anyhow::Result<(Option<String>, Vec<OperationReport>)> {
        let headlines = self.matcher.changed(candidate)?.and_then(|changed| headlines(&changed.delta));
        let mut entries = self.matcher.entries(candidate)?.to_vec();
        entries.retain(|entry| self.change_query.condition.matches_operation(&reported_operation(entry)));
        // A query for rewritten headlines alone should not list all other headlines too.
        let wants_rewritten = self.change_query.condition.kinds == [ChangeKind::Retitled];
        if wants_rewritten && entries.iter().any(|entry| entry.is_rewritten) {
            entries.retain(|entry| entry.is_rewritten);
        }
        Ok((headlines, entries))
    }

    /// If the query contains words that appeared or vanished, the text index names the candidates. `None` if the
    /// index is missing, incomplete, or names too many.
    fn keys_by_words(&self, after: Option<&ChangeKey>) -> anyhow::Result<Option<Vec<ChangeKey>>> {
        let (change_query, Some(texts)) = (self.change_query, &self.texts) else { return Ok(None) };
        let condition = &change_query.condition;
        let query = |wording: &Option<Wording>| match wording {
            Some(Wording::Words(_, query)) => Some(query.clone()),
            _ => None,
        };
        let conditions = [
            (PresenceEdge::Comes, query(&condition.appears)),
            (PresenceEdge::Goes, query(&condition.vanishes)),
        ];
        // The index covers whole pages. It does not know the words of a selected part.
        if condition.selector.is_some() || conditions.iter().all(|(_, query)| query.is_none()) {
            return Ok(None);
        }
        if texts.n_analyses()? != self.store.count_all_analyses()? {
            return Ok(None);
        }
        let mut observed: Option<HashSet<(PageId, Timestamp)>> = None;
        for (turn, query) in conditions {
            let Some(query) = query else { continue };
            let span = (change_query.since, change_query.until);
            let Some(named) = texts.turns(&query, turn, span, MAX_TURNS)? else { return Ok(None) };
            let both = |known: HashSet<_>| named.iter().copied().filter(|key| known.contains(key)).collect();
            observed = Some(observed.map_or_else(|| named.iter().copied().collect(), both));
        }
        let mut keys = Vec::new();
        for (page, time) in observed.unwrap_or_default() {
            let row = self.store.change_at(page, time)?;
            let importance = |row: ChangeRow| row.status.reported_importance().get();
            keys.extend(row.map(|row| ChangeKey { time, page, importance: importance(row) }));
        }
        change_query.order.arrange(&mut keys, after);
        Ok(Some(keys))
    }
}

/// Calls `each` with every matching change, earliest first. Reads only what the query needs.
pub fn each_match(
    archive: &Archive,
    store: &Store,
    change_query: &ChangeQuery,
    mut each: impl FnMut(ChangeRow),
) -> anyhow::Result<()> {
    let filters = AdFilters::built_in();
    let mut matcher = ChangeMatcher::new(archive, store, &filters);
    store.each_change(&change_filter(change_query), |row| {
        if matcher.holds(&mut CandidateChange::new(&row), &change_query.condition)? {
            each(row);
        }
        Ok(())
    })
}

struct BatchBuilder {
    found: ChangeBatch,
    n_read: usize,
    bounds: WorkLimits,
}

impl BatchBuilder {
    fn is_full(&self) -> bool {
        let bounds = &self.bounds;
        self.found.changes.len() >= bounds.max_found
            || self.n_read >= bounds.max_read
            || self.found.n_rows >= bounds.max_rows
    }
}

/// The part of a query that the store itself can filter by.
fn change_filter(change_query: &ChangeQuery) -> ChangeFilter<'_> {
    let (host, url) = match &change_query.condition.place {
        PageFilter::Anywhere => (None, None),
        PageFilter::Site(host) => (Some(host.as_str()), None),
        PageFilter::Page(url) => (None, Some(url.as_str())),
    };
    let (since, until) = (change_query.since, change_query.until);
    ChangeFilter { host, url, since, until, min_importance: change_query.condition.min_importance }
}
