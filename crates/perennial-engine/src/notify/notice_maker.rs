//! Matches new analyses against the rules and stores notices in the outbox.

use perennial_core::time::Timestamp;
use perennial_core::url::PageId;

use super::notice::NoticeWriter;
use super::sight::WatchedPages;
use crate::analyse::AdFilters;
use crate::changes::CandidateChange;
use perennial_archive::Archive;
use perennial_archive::store::{CapturePlace, NewNotice, Outbox, PageNotices, Store};

/// Pages per commit.
const PAGES_PER_COMMIT: usize = 32;

/// Opens the outbox of an archive with its rules. A new rule covers captures from now on, no matter when they are
/// analysed. Returns the number of unsent notices of removed rules, which are dropped.
pub fn open_outbox(archive: &Archive) -> anyhow::Result<(Outbox, usize)> {
    let mut outbox = Outbox::open_write(&archive.outbox_path())?;
    let names: Vec<&str> = archive.settings().notify.iter().map(|rule| rule.name.as_str()).collect();
    let store = archive.store()?;
    let (time, number) = (store.last_capture(archive.horizon())?, Some(store.last_capture_number()?));
    let n_forgotten = outbox.keep_rules(&names, CapturePlace { time, number }, store.identity()?)?;
    Ok((outbox, n_forgotten))
}

/// Makes notices from the analyses of pages.
pub struct NoticeMaker {
    archive: Archive,
    store: Store,
    filters: AdFilters,
    outbox: Outbox,
    /// For each rule, the last capture before the rule was added.
    since: Vec<CapturePlace>,
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
        for PageNotices { url, observed, .. } in taken {
            let Some(page) = self.store.page(url)? else { continue };
            for &at in observed {
                n_notices +=
                    self.watched.note_seen(&mut self.outbox, &self.archive, &self.store, page.id, url, at)?;
            }
        }
        Ok(n_notices)
    }

    /// Records a visit that showed no page. Returns the number of notices.
    pub fn note_unseen(&mut self, url: &str, at: Timestamp, reason: &str) -> anyhow::Result<u64> {
        self.watched.note_unseen(&mut self.outbox, url, at, reason)
    }

    /// The last capture before the oldest rule was added.
    fn earliest(&self) -> CapturePlace {
        let time = self.since.iter().map(|since| since.time).min().flatten();
        let numbers = self.since.iter().map(|since| since.number).collect::<Option<Vec<i64>>>();
        CapturePlace { time, number: numbers.and_then(|numbers| numbers.into_iter().min()) }
    }

    /// The last processed observation of a page. If only its time is known and in the future, it is ignored.
    fn processed(&self, url: &str) -> anyhow::Result<CapturePlace> {
        let is_past =
            |seen: &CapturePlace| seen.number.is_some() || seen.time <= Some(self.archive.horizon());
        Ok(self.outbox.seen(url)?.filter(is_past).unwrap_or(self.earliest()))
    }

    /// The notices of a page's new analyses; `None` without new analyses.
    fn new_notices(
        &self,
        writer: &mut NoticeWriter<'_>,
        page: PageId,
    ) -> anyhow::Result<Option<PageNotices>> {
        let url = self.store.page_url(page)?;
        let new = self.store.analysed_after(page, Some(self.processed(&url)?))?;
        // An import is history. It is not sent.
        let new: Vec<_> = new.into_iter().filter(|analysis| !analysis.is_imported).collect();
        let (Some(until), Some(capture)) =
            (new.last().map(|last| last.change.time), new.iter().map(|analysis| analysis.number).max())
        else {
            return Ok(None);
        };
        let observed = new.iter().map(|analysis| analysis.change.time).collect();
        let mut notices = Vec::new();
        for analysis in new.iter().filter(|analysis| analysis.is_change) {
            let row = &analysis.change;
            let mut candidate = CandidateChange::new(row);
            let rules = self.archive.settings().notify.iter().zip(&self.since);
            for (rule, _) in rules.filter(|(_, since)| since.is_before(row.time, analysis.number)) {
                if writer.holds(&mut candidate, &rule.condition)? {
                    let notice =
                        writer.notice(&mut candidate, &rule.name, &rule.condition, rule.link.as_ref())?;
                    let body = serde_json::to_string(&notice)?;
                    notices.push(NewNotice { rule: rule.name.clone(), time: row.time, body });
                }
            }
        }
        Ok(Some(PageNotices { url, until, capture, observed, notices }))
    }
}
