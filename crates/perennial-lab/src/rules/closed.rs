//! Runs plans in a closed loop, in which a plan knows only what it fetched.

use std::collections::VecDeque;

use perennial_core::directory::{DirectoryTree, PageChange, PageTransition, SiteHistory};

use super::evidence::{DECAYS, FetchHistory, SiteKnowledge};
use super::history::version_state;
use super::plan::{PageRanking, choose_pages, unfetched_rebuilt_pages};

/// A crawl of many versions with one plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClosedLoop {
    /// Versions that are known completely before the loop begins.
    pub train: usize,
    pub n_weeks: usize,
    /// Share of the known pages that is skipped.
    pub skip: f64,
    /// The ranking of pages; `None` is an oracle that knows which copies are stale.
    pub ranking: Option<PageRanking>,
}

/// Means over the weeks of a closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoopResult {
    pub n_weeks: usize,
    /// Share of the site's pages whose copy is stale or missing.
    pub stale: f64,
    /// Share of changes observed in their own week.
    pub change_recall: f64,
}

/// The archive and the knowledge of the crawler.
struct SimulatedArchive<'a> {
    history: &'a SiteHistory,
    /// Whether each page exists, and whether the crawler knows it.
    is_there: Vec<bool>,
    is_known: Vec<bool>,
    /// Whether the copy differs from the page.
    is_stale: Vec<bool>,
    bytes: Vec<u32>,
    /// The observed changes of each transition in the window.
    seen: VecDeque<Vec<PageChange>>,
    fetched: VecDeque<Vec<u32>>,
    last_fetch: Vec<u32>,
    rebuilt: Vec<f64>,
}

/// Runs the loop over the last versions of a history; `None` if it is too short.
pub fn closed_loop(history: &SiteHistory, config: &ClosedLoop) -> Option<LoopResult> {
    let n = history.versions.len();
    let n_weeks = config.n_weeks.min(n.checked_sub(config.train)?);
    let start = n - n_weeks;
    if config.train < 2 || n_weeks == 0 {
        return None;
    }
    let mut archive = SimulatedArchive::at(history, start - 1, config.train);
    let mut outcome = LoopResult { n_weeks, ..LoopResult::default() };
    let mut n_with_changes = 0;
    for week in start..n {
        let (n_seen, n_changes) = archive.live_week(week, config);
        outcome.stale += archive.share_stale() / n_weeks as f64;
        if n_changes > 0 {
            n_with_changes += 1;
            outcome.change_recall += n_seen as f64 / n_changes as f64;
        }
    }
    outcome.change_recall /= f64::from(n_with_changes.max(1));
    Some(outcome)
}

impl SimulatedArchive<'_> {
    fn at(history: &SiteHistory, version: usize, train: usize) -> SimulatedArchive<'_> {
        let (is_there, bytes) = version_state(history, version);
        let first = (version + 2).saturating_sub(train).max(1);
        let present: Vec<u32> = (0..is_there.len() as u32).filter(|&page| is_there[page as usize]).collect();
        let seen: VecDeque<_> = (first..=version).map(|at| history.versions[at].changes.clone()).collect();
        SimulatedArchive {
            history,
            is_known: is_there.clone(),
            is_stale: vec![false; is_there.len()],
            last_fetch: vec![version as u32; is_there.len()],
            rebuilt: vec![0.0; is_there.len()],
            fetched: seen.iter().map(|_| present.clone()).collect(),
            is_there,
            bytes,
            seen,
        }
    }

    /// Simulates one week: the site changes, the plan fetches, the archive learns. Returns the numbers of observed and
    /// of all changes.
    fn live_week(&mut self, week: usize, config: &ClosedLoop) -> (usize, usize) {
        let changes = &self.history.versions[week].changes;
        for change in changes {
            let page = change.page as usize;
            self.is_there[page] = change.change != PageTransition::Deleted;
            self.is_stale[page] = true;
        }
        let fetched = self.fetch(week, config);
        let observed = self.observe(week, &fetched);
        let mut is_seen = vec![false; self.history.nodes.len()];
        observed.iter().for_each(|change| is_seen[change.page as usize] = true);
        let n_seen = changes.iter().filter(|change| is_seen[change.page as usize]).count();
        self.seen.push_back(observed);
        self.fetched.push_back(fetched);
        self.seen.pop_front();
        self.fetched.pop_front();
        (n_seen, changes.len())
    }

    /// Fetches the pages of the plan, and records which directories were rebuilt.
    fn fetch(&mut self, week: usize, config: &ClosedLoop) -> Vec<u32> {
        let present: Vec<u32> =
            (0..self.is_known.len() as u32).filter(|&page| self.is_known[page as usize]).collect();
        let n = ((1.0 - config.skip) * present.len() as f64).round() as usize;
        let fetches = self.fetch_history(week);
        let known = SiteKnowledge {
            history: self.history,
            transitions: self.seen.iter().map(Vec::as_slice).collect(),
            present,
            bytes: &self.bytes,
            fetches: Some(&fetches),
        };
        let (is_there, is_stale) = (&self.is_there, &self.is_stale);
        let is_changed = |page: u32| !is_there[page as usize] || is_stale[page as usize];
        let Some(ranking) = config.ranking else {
            let mut order = known.present;
            order.sort_by_key(|&page| !is_changed(page));
            order.truncate(n);
            return order;
        };
        let fetched = choose_pages(&known, ranking, n, is_changed);
        let rebuilt = unfetched_rebuilt_pages(&known, &fetched, is_changed);
        for (page, share) in rebuilt {
            let known_share = &mut self.rebuilt[page as usize];
            *known_share = known_share.max(share);
        }
        fetched.iter().for_each(|&page| self.rebuilt[page as usize] = 0.0);
        fetched
    }

    fn fetch_history(&self, week: usize) -> FetchHistory {
        let mut weight = vec![[0.0; 3]; self.history.nodes.len()];
        let n = self.fetched.len();
        for (at, (fetched, seen)) in self.fetched.iter().zip(&self.seen).enumerate() {
            if seen.is_empty() {
                continue;
            }
            let decayed = DECAYS.map(|decay| decay.powi((n - 1 - at) as i32));
            for &page in fetched {
                (0..3).for_each(|d| weight[page as usize][d] += decayed[d]);
            }
        }
        let unseen = self.last_fetch.iter().map(|&last| (week as u32).saturating_sub(last)).collect();
        FetchHistory { weight, unseen, rebuilt: self.rebuilt.clone() }
    }

    /// The changes on the fetched pages. A new page is found when a page in its directory is fetched.
    fn observe(&mut self, week: usize, fetched: &[u32]) -> Vec<PageChange> {
        let (tree, nodes) = (&self.history.tree, &self.history.nodes);
        let mut observed = Vec::new();
        let mut is_reached = vec![false; tree.len()];
        let mut has_known = vec![false; tree.len()];
        let mark = |page: u32, into: &mut Vec<bool>| {
            for up in tree.upwards(nodes[page as usize]).skip(1) {
                if std::mem::replace(&mut into[up.0 as usize], true) {
                    break;
                }
            }
        };
        let n = nodes.len() as u32;
        (0..n).filter(|&page| self.is_known[page as usize]).for_each(|page| mark(page, &mut has_known));
        for &page in fetched {
            mark(page, &mut is_reached);
            let at = page as usize;
            self.last_fetch[at] = week as u32;
            let bytes = self.bytes[at];
            if !self.is_there[at] {
                observed.push(PageChange { page, change: PageTransition::Deleted, bytes });
                (self.is_known[at], self.is_stale[at]) = (false, false);
            } else if std::mem::replace(&mut self.is_stale[at], false) {
                observed.push(PageChange { page, change: PageTransition::Updated(1.0), bytes });
            }
        }
        for page in (0..n).filter(|&page| self.is_there[page as usize]) {
            let at = page as usize;
            if self.is_known[at] {
                continue;
            }
            let mut up = tree.upwards(nodes[at]).skip(1);
            let nearest = up.find(|directory| has_known[directory.0 as usize]).unwrap_or(DirectoryTree::ROOT);
            if is_reached[nearest.0 as usize] {
                observed.push(PageChange { page, change: PageTransition::Inserted, bytes: 0 });
                (self.is_known[at], self.is_stale[at], self.last_fetch[at]) = (true, false, week as u32);
            }
        }
        observed
    }

    /// Share of the pages whose copy is stale, missing, or of a deleted page.
    fn share_stale(&self) -> f64 {
        let n = self.is_there.iter().filter(|there| **there).count();
        let is_stale = |at: &usize| match (self.is_there[*at], self.is_known[*at]) {
            (true, true) => self.is_stale[*at],
            (there, known) => there != known,
        };
        (0..self.is_there.len()).filter(is_stale).count() as f64 / n.max(1) as f64
    }
}
