//! The history of a page's observations, for people: its patterns and its index threshold.

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::pattern::page_patterns;
use perennial_core::pattern::series::ObservedChange;
use perennial_core::time::{LocalClock, Timestamp};
use perennial_core::url::{PageId, SiteId};

use super::FollowedSites;
use perennial_archive::Snapshot;
use perennial_archive::store::{Observation, ObservationOrder, ObservationSelection, Store};

/// Periods per day of a pattern, unless the user chooses.
pub const DEFAULT_PERIODS: u16 = 24;

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

/// delta(P) of a page: the mean of its pattern with [`DEFAULT_PERIODS`], as `perennial plan patterns` shows it.
pub fn index_threshold(snapshot: &Snapshot, page: PageId, url: &str) -> anyhow::Result<f64> {
    let histories = histories(snapshot.store(), Some(url), perennial_archive::now())?;
    let Some(history) = histories.iter().find(|history| history.page == page) else { return Ok(0.0) };
    let followed = FollowedSites::from_seeds(snapshot.archive().settings().seeds.clone());
    let clock = followed.local_clock(url).unwrap_or_else(LocalClock::utc);
    Ok(page_patterns(&history.observations, &clock, None, DEFAULT_PERIODS).index_threshold())
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
