//! The looks at a page -> its history, which `perennial patterns` shows.

use perennial_core::page::look::ChangeStatus;
use perennial_core::pattern::series::SeenChange;
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};

use perennial_archive::store::{Look, LookOrder, Selection, Store};

/// The looks at one page, oldest first.
#[derive(Clone, Debug)]
pub struct PageHistory {
    /// Number of the page.
    pub page: PageId,
    /// Number of its site.
    pub site: SiteId,
    /// Its address.
    pub url: String,
    /// When the first look found the page.
    pub first: Timestamp,
    /// When the last look found the page.
    pub last: Timestamp,
    /// Each look after the first, compared with the one before.
    pub looks: Vec<SeenChange>,
    /// Number of looks whose change was not analysed.
    pub n_unjudged: usize,
}

/// The histories of all pages, of one site's, or of one page, with looks before `until`. A host without a port stands
/// for that host on any port.
pub fn histories(store: &Store, only: Option<&str>, until: Timestamp) -> anyhow::Result<Vec<PageHistory>> {
    let mut histories: Vec<PageHistory> = Vec::new();
    let selection = only.map_or(Selection::Pages, Selection::Of);
    store.looks(selection, LookOrder::ByPage, until, |look| {
        if look.status == ChangeStatus::Absent {
            return Ok(());
        }
        match histories.last_mut().filter(|history| history.page == look.page) {
            Some(history) => history.add(&look),
            None => histories.push(PageHistory::begin(&look)),
        }
        Ok(())
    })?;
    for history in &mut histories {
        history.url = store.url_of(history.page)?;
    }
    Ok(histories)
}

impl PageHistory {
    fn begin(look: &Look) -> PageHistory {
        PageHistory {
            page: look.page,
            site: look.site,
            url: String::new(),
            first: look.time,
            last: look.time,
            looks: Vec::new(),
            n_unjudged: 0,
        }
    }

    fn add(&mut self, look: &Look) {
        self.n_unjudged += usize::from(matches!(look.status, ChangeStatus::Unknown(_)));
        let importance = look.status.observed_importance();
        self.looks.push(SeenChange { from: self.last, to: look.time, importance });
        self.last = look.time;
    }
}
