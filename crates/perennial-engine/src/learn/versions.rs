//! The versions of a site: which pages appeared, changed and disappeared from one sweep to the next.

use std::collections::HashMap;

use perennial_core::directory::{PageTransition, SiteHistory};
use perennial_core::page::change_status::ChangeStatus;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;
use url::Url;

use perennial_archive::store::{ObservationOrder, ObservationSelection, Store};

/// Most versions per site. With more, sweeps are longer.
const MOST_VERSIONS: i64 = 5000;
/// The shortest sweep.
const SHORTEST: Span = Span::from_hours(1);

/// The result of one observation.
struct SiteEvent {
    page: PageId,
    time: Timestamp,
    status: ChangeStatus,
}

/// The versions of a site, one per sweep. A sweep takes `every`, or the median time between two observations of a
/// page. A page without an observation in a sweep counts as unchanged. The importance of an update comes from the
/// analysis.
pub fn site_history(
    store: &Store,
    site: &str,
    every: Option<Span>,
    until: Timestamp,
) -> anyhow::Result<SiteHistory> {
    let mut events: Vec<SiteEvent> = Vec::new();
    store.observations(ObservationSelection::Of(site), ObservationOrder::ByTime, until, |observation| {
        events.push(SiteEvent { page: observation.page, time: observation.time, status: observation.status });
        Ok(())
    })?;
    let mut history = SiteHistory::new(site);
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(history) };
    let whole = last.time - first.time;
    let least = Span::from_millis(whole.as_millis() / MOST_VERSIONS).max(SHORTEST);
    let every = every.unwrap_or_else(|| median_wait(&events)).max(least);
    let mut pages: HashMap<PageId, (u32, bool)> = HashMap::new();
    let mut end = first.time;
    let mut of_pass: Vec<(u32, PageTransition)> = Vec::new();
    for event in &events {
        while event.time >= end {
            close(&mut history, &mut of_pass);
            history.begin_version(&end.to_rfc3339());
            end = end + every;
        }
        let (page, is_there) = match pages.get(&event.page) {
            Some(known) => *known,
            None => (history.add_page(&path_and_query(&store.page_url(event.page)?)), false),
        };
        let change = page_transition(event.status, is_there);
        if let Some(change) = change {
            of_pass.push((page, change));
        }
        let is_there = change.map_or(is_there, |change| change != PageTransition::Deleted);
        pages.insert(event.page, (page, is_there));
    }
    close(&mut history, &mut of_pass);
    Ok(history)
}

/// How an observation changes the version, given whether the page was there.
fn page_transition(status: ChangeStatus, is_there: bool) -> Option<PageTransition> {
    match (status, is_there) {
        (ChangeStatus::Absent, _) => None,
        (ChangeStatus::Vanished | ChangeStatus::Redirected(_), true) => Some(PageTransition::Deleted),
        (ChangeStatus::Vanished | ChangeStatus::Redirected(_), false) => None,
        (_, false) => Some(PageTransition::Inserted),
        (status, true) if status.is_change() => {
            Some(PageTransition::Updated(status.observed_importance().get() as f32))
        }
        _ => None,
    }
}

/// Adds the changes of a sweep to its version. Several changes of one page become one.
fn close(history: &mut SiteHistory, of_pass: &mut Vec<(u32, PageTransition)>) {
    of_pass.sort_by_key(|(page, _)| *page);
    for group in of_pass.chunk_by(|a, b| a.0 == b.0) {
        let (page, first) = group[0];
        let last = group[group.len() - 1].1;
        let net = match (first, last) {
            (PageTransition::Inserted, PageTransition::Deleted) => continue,
            (PageTransition::Inserted, _) => PageTransition::Inserted,
            (_, PageTransition::Deleted) => PageTransition::Deleted,
            // The page disappeared and returned, or was updated several times.
            _ => PageTransition::Updated(
                group.iter().map(|(_, change)| change_degree(*change)).fold(0.0, f32::max),
            ),
        };
        history.add_change(page, net, 0);
    }
    of_pass.clear();
}

fn change_degree(change: PageTransition) -> f32 {
    match change {
        PageTransition::Updated(degree) => degree,
        PageTransition::Inserted | PageTransition::Deleted => 1.0,
    }
}

fn median_wait(events: &[SiteEvent]) -> Span {
    let mut last: HashMap<PageId, Timestamp> = HashMap::new();
    let mut waits: Vec<Span> =
        events.iter().filter_map(|event| Some(event.time - last.insert(event.page, event.time)?)).collect();
    waits.sort_unstable();
    waits.get(waits.len() / 2).copied().unwrap_or(SHORTEST)
}

fn path_and_query(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) => url[url::Position::BeforePath..url::Position::AfterQuery].to_owned(),
        Err(_) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perennial_core::page::importance::Importance;

    #[test]
    fn a_observation_changes_the_version_by_what_was_there() {
        let changed = ChangeStatus::Changed(Importance::new(0.25));
        assert_eq!(page_transition(ChangeStatus::New, false), Some(PageTransition::Inserted));
        assert_eq!(page_transition(changed, true), Some(PageTransition::Updated(0.25)));
        assert_eq!(page_transition(ChangeStatus::Unchanged, true), None);
        assert_eq!(page_transition(ChangeStatus::Vanished, true), Some(PageTransition::Deleted));
        assert_eq!(page_transition(ChangeStatus::Vanished, false), None);
        assert_eq!(page_transition(ChangeStatus::Returned, false), Some(PageTransition::Inserted));
    }

    #[test]
    fn several_observations_of_a_pass_are_one_change() {
        let mut history = SiteHistory::new("s");
        let pages: Vec<u32> = ["a", "b", "c"].iter().map(|path| history.add_page(path)).collect();
        history.begin_version("1");
        close(&mut history, &mut pages.iter().map(|&page| (page, PageTransition::Inserted)).collect());
        history.begin_version("2");
        let mut observations = vec![
            (pages[0], PageTransition::Updated(0.1)),
            (pages[1], PageTransition::Deleted),
            (pages[0], PageTransition::Updated(0.4)),
            (pages[1], PageTransition::Inserted),
            (pages[2], PageTransition::Updated(0.2)),
            (pages[2], PageTransition::Deleted),
        ];
        close(&mut history, &mut observations);
        let found: Vec<(u32, PageTransition)> =
            history.versions[1].changes.iter().map(|c| (c.page, c.change)).collect();
        let expected = [
            (0, PageTransition::Updated(0.4)),
            (1, PageTransition::Updated(1.0)),
            (2, PageTransition::Deleted),
        ];
        assert_eq!((found.as_slice(), history.n_skipped), (expected.as_slice(), 0));
    }
}
