//! The history of a page's observations, for `perennial plan patterns`.

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::pattern::series::ObservedChange;
use perennial_core::time::Timestamp;
use perennial_core::url::{PageId, SiteId};

use perennial_archive::store::{Observation, ObservationOrder, ObservationSelection, Store};

#[derive(Clone, Debug)]
pub struct PageHistory {
    pub page: PageId,
    pub site: SiteId,
    pub url: String,
    /// First observation that found the page.
    pub first: Timestamp,
    /// Last observation that found the page.
    pub last: Timestamp,
    /// Each observation after the first, compared with its predecessor.
    pub observations: Vec<ObservedChange>,
    /// Number of observations without an analysed change.
    pub n_unknown: usize,
}

/// The histories of all pages, of one site, or of one page, with observations before `until`. A host without a port
/// matches any port.
pub fn histories(store: &Store, only: Option<&str>, until: Timestamp) -> anyhow::Result<Vec<PageHistory>> {
    let mut histories: Vec<PageHistory> = Vec::new();
    let selection = only.map_or(ObservationSelection::Pages, ObservationSelection::Of);
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
        history.url = store.page_url(history.page)?;
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
            observations: Vec::new(),
            n_unknown: 0,
        }
    }

    fn add(&mut self, observation: &Observation) {
        self.n_unknown += usize::from(matches!(observation.status, ChangeStatus::Unknown(_)));
        let importance = observation.status.observed_importance();
        self.observations.push(ObservedChange { from: self.last, to: observation.time, importance });
        self.last = observation.time;
    }
}
