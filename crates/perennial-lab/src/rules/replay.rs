//! Replays the history of a real site with the crawler's scheduler, with and without skipped directories.
//!
//! A version is a week. A seed chooses the hours of its changes. Pages that exist at the start are followed to the end.

use perennial_core::directory::{PageTransition, SiteHistory};
use perennial_core::page::importance::Importance;
use perennial_core::rng::Rng;
use perennial_core::schedule::{Budget, PageInfo, Reason, ScheduleConfig, Scheduler, VisitOutcome};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::{PageId, SiteId};

use super::history::version_state;

const WEEK: Span = Span::from_hours(24 * 7);
/// Importance of every change, because the histories have none.
const IMPORTANCE: f64 = 0.3;

/// The conditions of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayConfig {
    /// Weeks that are crawled but not counted.
    pub burn_in: usize,
    /// Counted weeks, the last of the history.
    pub n_weeks: usize,
    /// Visits per week, as a share of the pages.
    pub budget: f64,
    /// Whether the scheduler may skip directories.
    pub directories: bool,
    pub seed: u64,
}

/// The result of a replay in the counted weeks.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ReplayResult {
    /// Number of followed pages.
    pub n_pages: usize,
    /// Number of pages in directories without a change in the counted weeks.
    pub n_still_pages: usize,
    pub n_visits: usize,
    /// Share of the visits to these pages.
    pub on_still: f64,
    /// Share of the visits that were probes of skipped directories.
    pub on_probes: f64,
    /// Share of the changes captured before the next change of the page.
    pub completeness: f64,
}

struct ReplayVisit {
    at: Timestamp,
    /// The page's number in the history.
    page: u32,
    is_probe: bool,
}

/// Replays the end of a history; `None` if it is too short.
pub fn replay(history: &SiteHistory, config: &ReplayConfig) -> Option<ReplayResult> {
    let first = history.versions.len().checked_sub(config.burn_in + config.n_weeks + 1)?;
    let (is_there, _) = version_state(history, first);
    let pages: Vec<u32> = (0..is_there.len() as u32).filter(|&page| is_there[page as usize]).collect();
    let start = Timestamp::from_secs(1_704_067_200);
    let changes = change_times(history, config, first, start);
    let counted_from = start + Span::from_millis(WEEK.as_millis() * config.burn_in as i64);
    let end = start + Span::from_millis(WEEK.as_millis() * (config.burn_in + config.n_weeks) as i64);
    let still = still_pages(history, &pages, &changes, counted_from);
    let visits = crawl(history, config, &pages, &changes, (start, end));
    let counted: Vec<&ReplayVisit> = visits.iter().filter(|visit| visit.at >= counted_from).collect();
    let n = counted.len().max(1) as f64;
    Some(ReplayResult {
        n_pages: pages.len(),
        n_still_pages: pages.iter().filter(|&&page| still[page as usize]).count(),
        n_visits: counted.len(),
        on_still: counted.iter().filter(|visit| still[visit.page as usize]).count() as f64 / n,
        on_probes: counted.iter().filter(|visit| visit.is_probe).count() as f64 / n,
        completeness: completeness(&pages, &changes, &visits, counted_from),
    })
}

/// The change times of each page, by page number.
fn change_times(
    history: &SiteHistory,
    config: &ReplayConfig,
    first: usize,
    start: Timestamp,
) -> Vec<Vec<Timestamp>> {
    let mut changes = vec![Vec::new(); history.nodes.len()];
    for (week, version) in history.versions[first + 1..].iter().enumerate() {
        for change in
            version.changes.iter().filter(|change| matches!(change.change, PageTransition::Updated(_)))
        {
            let hour = Rng::from_parts(&[config.seed, week as u64, u64::from(change.page)]).below(168);
            changes[change.page as usize].push(start + Span::from_hours(168 * week as i64 + hour as i64));
        }
    }
    changes
}

/// By page number: whether its directory has no change in the counted weeks.
fn still_pages(
    history: &SiteHistory,
    pages: &[u32],
    changes: &[Vec<Timestamp>],
    from: Timestamp,
) -> Vec<bool> {
    let directory =
        |page: u32| history.tree.parent(history.nodes[page as usize]).map_or(0, |node| node.0 as usize);
    let mut is_live = vec![false; history.tree.len()];
    for &page in pages {
        is_live[directory(page)] |= changes[page as usize].iter().any(|at| *at >= from);
    }
    (0..changes.len() as u32).map(|page| !is_live[directory(page)]).collect()
}

fn crawl(
    history: &SiteHistory,
    config: &ReplayConfig,
    pages: &[u32],
    changes: &[Vec<Timestamp>],
    (start, end): (Timestamp, Timestamp),
) -> Vec<ReplayVisit> {
    let budget = Some(Budget { visits: config.budget * pages.len() as f64, period: WEEK });
    let schedule = ScheduleConfig { budget, directories: config.directories, ..ScheduleConfig::default() };
    let mut scheduler = Scheduler::new(schedule, config.seed, start);
    for &page in pages {
        let directory = history.tree.parent(history.nodes[page as usize]).map_or(0, |node| node.0);
        let info = PageInfo { group: u64::from(directory) + 1, ..PageInfo::for_site(SiteId(0)) };
        scheduler.add_seen_page(PageId(page), info, start);
    }
    let mut last = vec![start; changes.len()];
    let (mut now, mut visits) = (start, Vec::new());
    while now < end {
        while let Some(visit) = scheduler.next_visit(now) {
            let page = visit.page.0 as usize;
            let since = std::mem::replace(&mut last[page], now);
            let is_changed = changes[page].iter().any(|at| *at > since && *at <= now);
            let outcome = match is_changed {
                true => VisitOutcome::Changed(Importance::new(IMPORTANCE)),
                false => VisitOutcome::Unchanged,
            };
            scheduler.record(visit.page, outcome, now);
            let is_probe = matches!(visit.reason, Reason::DirectoryProbe { .. });
            visits.push(ReplayVisit { at: now, page: visit.page.0, is_probe });
        }
        let Some(wakeup) = scheduler.next_wakeup() else { break };
        now = wakeup.max(now + Span::from_millis(1));
    }
    visits
}

/// The share of changes after `from` that a visit captured before the page changed again.
fn completeness(pages: &[u32], changes: &[Vec<Timestamp>], visits: &[ReplayVisit], from: Timestamp) -> f64 {
    let mut by_page: Vec<Vec<Timestamp>> = vec![Vec::new(); changes.len()];
    visits.iter().for_each(|visit| by_page[visit.page as usize].push(visit.at));
    let (mut n_changes, mut n_caught) = (0usize, 0usize);
    for &page in pages {
        let (changes, visits) = (&changes[page as usize], &by_page[page as usize]);
        for (nth, at) in changes.iter().enumerate().filter(|(_, at)| **at >= from) {
            let next = visits.partition_point(|visit| visit < at);
            let until = changes.get(nth + 1);
            n_changes += 1;
            n_caught +=
                usize::from(visits.get(next).is_some_and(|visit| until.is_none_or(|until| visit < until)));
        }
    }
    n_caught as f64 / n_changes.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::ExclusiveSite;

    #[test]
    fn budget_leaves_directories_that_cannot_change_and_the_rest_gains() {
        let history = ExclusiveSite { n_pages: 90, n_versions: 81, ..ExclusiveSite::default() }.build();
        let run = |directories| {
            let config = ReplayConfig { burn_in: 40, n_weeks: 40, budget: 0.7, directories, seed: 1 };
            replay(&history, &config).unwrap()
        };
        let (without, with) = (run(false), run(true));
        assert_eq!((with.n_pages, with.n_still_pages), (300, 90));
        assert!(with.on_still < 0.5 * without.on_still, "{with:?} {without:?}");
        assert!(with.completeness >= without.completeness, "{with:?} {without:?}");
        assert!(with.on_probes < 0.02 && without.on_probes == 0.0);
    }
}
