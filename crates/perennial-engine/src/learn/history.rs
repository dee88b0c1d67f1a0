//! The observations of a page -> its history, which `perennial patterns` shows.

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::pattern::series::SeenChange;
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};

use perennial_archive::store::{Observation, ObservationOrder, Selection, Store};

/// The observations of one page, oldest first.
#[derive(Clone, Debug)]
pub struct PageHistory {
    /// Number of the page.
    pub page: PageId,
    /// Number of its site.
    pub site: SiteId,
    /// Its address.
    pub url: String,
    /// When the first observation found the page.
    pub first: Timestamp,
    /// When the last observation found the page.
    pub last: Timestamp,
    /// Each observation after the first, compared with the one before.
    pub looks: Vec<SeenChange>,
    /// Number of observations whose change was not analysed.
    pub n_unknown: usize,
}

/// The histories of all pages, of one site's, or of one page, with observations before `until`. A host without a port stands
/// for that host on any port.
pub fn histories(store: &Store, only: Option<&str>, until: Timestamp) -> anyhow::Result<Vec<PageHistory>> {
    let mut histories: Vec<PageHistory> = Vec::new();
    let selection = only.map_or(Selection::Pages, Selection::Of);
    store.observations(selection, ObservationOrder::ByPage, until, |observation| {
        if observation.status == ChangeStatus::Absent {
            return Ok(());
        }
        match histories.last_mut().filter(|history| history.page == observation.page) {
            Some(history) => history.add(&observation),
            None => histories.push(PageHistory::begin(&observation)),
        }
        Ok(())
    })?;
    for history in &mut histories {
        history.url = store.url_of(history.page)?;
    }
    Ok(histories)
}

impl PageHistory {
    fn begin(observation: &Observation) -> PageHistory {
        PageHistory {
            page: observation.page,
            site: observation.site,
            url: String::new(),
            first: observation.time,
            last: observation.time,
            looks: Vec::new(),
            n_unknown: 0,
        }
    }

    fn add(&mut self, observation: &Observation) {
        self.n_unknown += usize::from(matches!(observation.status, ChangeStatus::Unknown(_)));
        let importance = observation.status.observed_importance();
        self.looks.push(SeenChange { from: self.last, to: observation.time, importance });
        self.last = observation.time;
    }
}
