//! Captures and what analysis made of them -> the looks from which patterns and schedules are learned.
//!
//! Works for any archive, also one that another crawler filled: every two captures of a page in a row are a look. Where
//! a capture was analysed its importance counts; where it was not, another digest counts as a change of middling
//! importance, and the report says so.

use perennial_core::importance::Importance;
use perennial_core::page::{PageId, SiteId};
use perennial_core::rank::LinkGraph;
use perennial_core::schedule::{PageInfo, ScheduleConfig, Scheduler, VisitOutcome};
use perennial_core::series::SeenChange;
use perennial_core::time::Timestamp;
use rusqlite::params;

use crate::store::Store;

/// What a change counts for when nobody has looked at what changed.
const NOT_ANALYSED: f64 = 0.3;

/// One page's looks, oldest first.
#[derive(Clone, Debug)]
pub struct PageHistory {
    /// Which page.
    pub page: PageId,
    /// Its site.
    pub site: SiteId,
    /// Its address.
    pub url: String,
    /// The first capture.
    pub first: Timestamp,
    /// The last capture.
    pub last: Timestamp,
    /// Each capture after the first, compared with the one before.
    pub looks: Vec<SeenChange>,
    /// Looks at captures that were not analysed yet.
    pub n_not_analysed: usize,
}

/// The histories of all pages, of one site's, or of one page, with captures before `until`.
pub fn histories(store: &Store, only: Option<&str>, until: Timestamp) -> anyhow::Result<Vec<PageHistory>> {
    let mut statement = store.connection().prepare(
        "SELECT c.page, p.site, p.url, c.time, c.digest, o.importance, o.is_noise
         FROM captures c JOIN pages p ON p.id = c.page JOIN sites s ON s.id = p.site
         LEFT JOIN observations o ON o.page = c.page AND o.time = c.time
         WHERE c.kind IN (0, 1) AND c.time < ?1 AND (c.status IS NULL OR c.status IN (200, 304))
           AND ((?2 IS NULL AND p.mime LIKE 'text/html%') OR s.host = ?2 AND p.mime LIKE 'text/html%' OR p.url = ?2)
         ORDER BY c.page, c.time",
    )?;
    let mut rows = statement.query(params![until.as_millis(), only])?;
    let mut histories: Vec<PageHistory> = Vec::new();
    let mut digest_before = String::new();
    while let Some(row) = rows.next()? {
        let (page, time) = (PageId(row.get(0)?), Timestamp::from_millis(row.get(3)?));
        let digest: String = row.get(4)?;
        match histories.last_mut().filter(|history| history.page == page) {
            Some(history) if time > history.last => {
                let analysed: Option<f64> = row.get(5)?;
                let is_noise: Option<bool> = row.get(6)?;
                let importance = match analysed {
                    Some(importance) => {
                        if is_noise == Some(true) {
                            0.0
                        } else {
                            importance
                        }
                    }
                    None if digest == digest_before => 0.0,
                    None => NOT_ANALYSED,
                };
                history.n_not_analysed += usize::from(analysed.is_none() && digest != digest_before);
                let importance = Importance::new(importance);
                history.looks.push(SeenChange { from: history.last, to: time, importance });
                history.last = time;
            }
            Some(_) => {}
            None => histories.push(PageHistory {
                page,
                site: SiteId(row.get(1)?),
                url: row.get(2)?,
                first: time,
                last: time,
                looks: Vec::new(),
                n_not_analysed: 0,
            }),
        }
        digest_before = digest;
    }
    Ok(histories)
}

/// A scheduler that knows what the archive knows, ready to rank at `now`.
pub fn scheduler_of(
    store: &Store,
    histories: &[PageHistory],
    config: ScheduleConfig,
    now: Timestamp,
) -> anyhow::Result<Scheduler> {
    let ranks = page_ranks(store)?;
    let start = histories.iter().map(|history| history.first).min().unwrap_or(now);
    let mut scheduler = Scheduler::new(config, 0, start);
    for history in histories {
        let weight = ranks.get(history.page.0 as usize).copied().unwrap_or(1.0);
        let info = PageInfo { weight, ..PageInfo::of_site(history.site) };
        scheduler.add_seen_page(history.page, info, history.first);
        for look in &history.looks {
            let outcome = match look.importance.get() {
                0.0 => VisitOutcome::Unchanged,
                _ => VisitOutcome::Changed(look.importance),
            };
            scheduler.record(history.page, outcome, look.to);
        }
    }
    scheduler.learn_now(now);
    Ok(scheduler)
}

/// PageRank by page number, over the links that the archive holds.
pub fn page_ranks(store: &Store) -> anyhow::Result<Vec<f32>> {
    let mut statement = store.connection().prepare("SELECT page, targets FROM links")?;
    let mut rows = statement.query([])?;
    let mut links: Vec<(u32, u32)> = Vec::new();
    let mut n_pages = 0;
    while let Some(row) = rows.next()? {
        let source: u32 = row.get(0)?;
        let targets: Vec<u8> = row.get(1)?;
        for target in crate::store::decode_targets(&targets) {
            n_pages = n_pages.max(source.max(target) as usize + 1);
            links.push((source, target));
        }
    }
    Ok(LinkGraph::from_links(n_pages, links).page_rank(&[]))
}
