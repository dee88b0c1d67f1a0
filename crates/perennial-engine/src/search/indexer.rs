//! Adds new analyses to the text index, as passages and their presence.

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::search::passages;
use perennial_core::url::PageId;

use crate::background::{PageFollower, next_pages};
use perennial_archive::Archive;
use perennial_archive::store::{
    AnalysedObservation, AnalysedPage, ObservationRow, ShownText, Store, TextCommit, Texts,
};

/// Pages per commit.
const PAGES_PER_COMMIT: usize = 64;

pub struct TextIndexer {
    store: Store,
    texts: Texts,
}

impl TextIndexer {
    /// The caller holds the archive's write lock.
    pub fn open(archive: &Archive) -> anyhow::Result<TextIndexer> {
        Ok(TextIndexer { store: archive.store()?, texts: Texts::open_write(&archive.texts_path())? })
    }

    /// Indexes the new analyses of these pages in one commit.
    pub fn index(&mut self, pages: &[PageId]) -> anyhow::Result<()> {
        let mut plans = Vec::with_capacity(pages.len());
        for &page in pages {
            plans.push(self.plan(page)?);
        }
        let store = &self.store;
        self.texts.write(|commit| plans.iter().try_for_each(|plan| plan.apply(store, commit)))
    }

    /// The unindexed analyses of a page. If earlier analyses were replaced, the page is indexed from its first
    /// observation.
    fn plan(&self, page: PageId) -> anyhow::Result<IndexUpdate> {
        let seen = self.texts.seen(page)?;
        let is_reindexed = match seen {
            Some((until, n_analyses)) => self.store.count_analyses(page, until)? != n_analyses,
            None => false,
        };
        let from = seen.filter(|_| !is_reindexed);
        let observations = self.store.analysed_observations(page, from.map(|(until, _)| until))?;
        Ok(IndexUpdate {
            page,
            is_reindexed,
            n_before: from.map_or(0, |(_, n_analyses)| n_analyses),
            observations,
        })
    }

    /// The pages with unindexed analyses.
    fn behind(&self) -> anyhow::Result<Vec<PageId>> {
        let mut behind = Vec::new();
        for AnalysedPage { page, last, n_analyses } in self.store.analysed_pages()? {
            if self.texts.seen(page)? != Some((last, n_analyses)) {
                behind.push(page);
            }
        }
        Ok(behind)
    }
}

struct IndexUpdate {
    page: PageId,
    is_reindexed: bool,
    n_before: u64,
    observations: Vec<AnalysedObservation>,
}

impl IndexUpdate {
    fn apply(&self, store: &Store, commit: &TextCommit<'_>) -> anyhow::Result<()> {
        if self.is_reindexed {
            commit.forget(self.page)?;
        }
        for observation in &self.observations {
            let row = ObservationRow {
                time: observation.time,
                before: observation.before,
                is_indexed: observation.is_indexed,
            };
            let is_shown = match observation.status {
                ChangeStatus::Vanished | ChangeStatus::Absent | ChangeStatus::Redirected(_) => {
                    commit.close(self.page, &row)?;
                    continue;
                }
                ChangeStatus::New | ChangeStatus::Returned => true,
                _ => observation.has_tree,
            };
            if is_shown && let Some(tree) = store.tree_at(self.page, observation.time)? {
                let passages = passages(&tree);
                let shown: Vec<ShownText<'_>> = passages
                    .iter()
                    .map(|passage| ShownText { text: passage.text, role: passage.role })
                    .collect();
                commit.show(self.page, &row, &shown)?;
            }
        }
        match self.observations.last() {
            Some(last) => {
                commit.set_seen(self.page, last.time, self.n_before + self.observations.len() as u64)
            }
            None => Ok(()),
        }
    }
}

/// Indexes all new analyses. `progress` is called with the number of indexed pages and of all pages.
pub fn catch_up(archive: &Archive, mut progress: impl FnMut(u64, u64)) -> anyhow::Result<()> {
    let mut indexer = TextIndexer::open(archive)?;
    let behind = indexer.behind()?;
    let mut n_done = 0;
    for pages in behind.chunks(PAGES_PER_COMMIT) {
        indexer.index(pages)?;
        n_done += pages.len() as u64;
        progress(n_done, behind.len() as u64);
    }
    Ok(())
}

/// Starts a thread that catches up and then indexes pages as their analyses are committed.
pub fn start_indexing(archive: &Archive) -> anyhow::Result<PageFollower> {
    let archive = archive.clone();
    PageFollower::start("text index", move |pages| {
        catch_up(&archive, |_, _| ())?;
        let mut indexer = TextIndexer::open(&archive)?;
        while let Some(pages) = next_pages(pages, PAGES_PER_COMMIT) {
            indexer.index(&pages)?;
        }
        Ok(())
    })
}
