//! Matches new analyses against the rules and stores notices in the outbox.

use perennial_core::time::Timestamp;
use perennial_core::url::PageId;

use super::notice::NoticeWriter;
use super::sight::WatchedPages;
use crate::analyse::AdFilters;
use crate::changes::CandidateChange;
use perennial_archive::Archive;
use perennial_archive::store::{NewNotice, Outbox, PageNotices, Store};

/// Pages per commit.
const PAGES_PER_COMMIT: usize = 32;

/// Opens the outbox of an archive with its rules. A new rule covers captures from now on, no matter when they are
/// analysed. Returns the number of unsent notices of removed rules, which are dropped.
pub fn open_outbox(archive: &Archive) -> anyhow::Result<(Outbox, usize)> {
    let mut outbox = Outbox::open_write(&archive.outbox_path())?;
    let names: Vec<&str> = archive.settings().notify.iter().map(|rule| rule.name.as_str()).collect();
    let n_forgotten = outbox.keep_rules(&names, archive.store()?.last_capture()?)?;
    Ok((outbox, n_forgotten))
}

/// Makes notices from the analyses of pages.
pub struct NoticeMaker {
    archive: Archive,
    store: Store,
    filters: AdFilters,
    outbox: Outbox,
    /// For each rule, the last capture before the rule was added.
    since: Vec<Option<Timestamp>>,
    watched: WatchedPages,
}

impl NoticeMaker {
    /// The outbox must exist ([`open_outbox`]).
    pub fn open(archive: &Archive) -> anyhow::Result<NoticeMaker> {
        let outbox = Outbox::open_write(&archive.outbox_path())?;
        let since = archive.settings().notify.iter().map(|rule| outbox.since(&rule.name));
        let since = since.collect::<anyhow::Result<_>>()?;
        let filters = AdFilters::load(Some(archive.root()))?;
        let watched = WatchedPages::new(archive.settings());
        Ok(NoticeMaker { archive: archive.clone(), store: archive.store()?, filters, outbox, since, watched })
    }

    /// Processes every new analysis. `progress` is called with the number of processed pages and of all pages.
    pub fn catch_up(&mut self, mut progress: impl FnMut(u64, u64)) -> anyhow::Result<u64> {
        let pages = self.store.pages_analysed_after(self.earliest())?;
        let (mut n_done, mut n_notices) = (0, 0);
        for part in pages.chunks(PAGES_PER_COMMIT) {
            n_notices += self.process(part)?;
            n_done += part.len() as u64;
            progress(n_done, pages.len() as u64);
        }
        Ok(n_notices)
    }

    /// Processes the new analyses of these pages in one commit. Returns the number of notices.
    pub fn process(&mut self, pages: &[PageId]) -> anyhow::Result<u64> {
        let mut taken = Vec::with_capacity(pages.len());
        {
            let mut writer = NoticeWriter::new(&self.archive, &self.store, &self.filters);
            for &page in pages {
                taken.extend(self.new_notices(&mut writer, page)?);
            }
        }
        self.outbox.put(&taken)?;
        let n_changes: u64 = taken.iter().map(|page| page.notices.len() as u64).sum();
        Ok(n_changes + self.note_seen(&taken)?)
    }

    /// Records that the watches of these pages see them, or that they see nothing in them.
    fn note_seen(&mut self, taken: &[PageNotices]) -> anyhow::Result<u64> {
        let mut n_notices = 0;
        for PageNotices { url, until, .. } in taken {
            let Some(page) = self.store.page(url)? else { continue };
            n_notices +=
                self.watched.note_seen(&mut self.outbox, &self.archive, &self.store, page.id, url, *until)?;
        }
        Ok(n_notices)
    }

    /// Records a visit that showed no page. Returns the number of notices.
    pub fn note_unseen(&mut self, url: &str, at: Timestamp, reason: &str) -> anyhow::Result<u64> {
        self.watched.note_unseen(&mut self.outbox, url, at, reason)
    }

    /// The last capture before the oldest rule was added.
    fn earliest(&self) -> Option<Timestamp> {
        self.since.iter().copied().min().flatten()
    }

    /// The notices of a page's new analyses; `None` without new analyses.
    fn new_notices(
        &self,
        writer: &mut NoticeWriter<'_>,
        page: PageId,
    ) -> anyhow::Result<Option<PageNotices>> {
        let url = self.store.page_url(page)?;
        let after = self.outbox.seen(&url)?.max(self.earliest());
        // Analyses that are added meanwhile are processed next time.
        let Some(until) = self.store.last_analysed(page)?.filter(|until| Some(*until) > after) else {
            return Ok(None);
        };
        let mut notices = Vec::new();
        for row in &self.store.page_changes(page, after, until)? {
            let mut candidate = CandidateChange::new(row);
            let rules = self.archive.settings().notify.iter().zip(&self.since);
            for (rule, _) in rules.filter(|(_, since)| Some(row.time) > **since) {
                if writer.holds(&mut candidate, &rule.condition)? {
                    let notice =
                        writer.notice(&mut candidate, &rule.name, &rule.condition, rule.link.as_ref())?;
                    let body = serde_json::to_string(&notice)?;
                    notices.push(NewNotice { rule: rule.name.clone(), time: row.time, body });
                }
            }
        }
        Ok(Some(PageNotices { url, until, notices }))
    }
}
