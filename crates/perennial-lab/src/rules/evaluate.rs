//! Measures what each plan would have skipped and missed, by the protocol of P-NEAR 6: train on some versions, test on
//! the next, take the mean over windows.

use perennial_core::directory::{
    Alpha, DirectoryNode, DirectoryTree, MinedRules, PageChange, PageTransition, Significance, SiteHistory,
    Subsumption, Thresholds, mine_from,
};

use super::evidence::SiteKnowledge;
use super::measure::{SkipMeasures, TestedVersion, VersionCounts};
use super::plan::{PageRanking, choose_pages};
use super::skip::{delta_tree, near_skipped_directories, pages_outside, static_directories};

/// Thresholds are tuned on so many versions at the end of the training window.
const HELD_BACK: usize = 5;
/// Shares of skipped pages among which a plan with a maximum loss chooses.
const SHARES: [f64; 11] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

/// How the fetched pages are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SkipPlan {
    /// Skips nothing; a sanity check.
    Nothing,
    /// Skips the tails of rules (WARM).
    Near(Thresholds),
    /// Like `Near`, with the rules of all starting directories: an extension.
    NearEverywhere(Thresholds),
    /// Like `Near`, with thresholds chosen on the training window.
    NearTuned,
    /// Skips the tails of the rules that are subsumed in this way, or not at all, to compare them (Fig. 5 e, f).
    NearSubsumed(Thresholds, Option<Subsumption>),
    /// Skips directories without a change in training.
    Static,
    /// Skips directories without a change in the last transition.
    LastVersion,
    /// Fetches the best share of the pages by a ranking.
    Ranked(PageRanking),
    /// Like `Ranked`, but with knowledge of the changes. No plan is much better.
    Oracle,
}

/// How much a ranking plan skips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SkipAim {
    /// This share of the pages.
    Skip(f64),
    /// As much as possible while the training window loses at most this share of the changes.
    MaxLoss(f64),
}

/// The versions for training and testing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Versions to learn from.
    pub train: usize,
    /// How many versions after the training the tested one is.
    pub distance: usize,
    /// Whether all changes since the training count, or only those of the tested version.
    pub accumulate: bool,
    pub windows: usize,
    /// Whether the windows are spread over the history. Otherwise they are the last ones in a row.
    pub spread: bool,
    pub aim: SkipAim,
    /// Maximum loss of tuned rules in training.
    pub tune_loss: f64,
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol {
            train: 20,
            distance: 1,
            accumulate: false,
            windows: 10,
            spread: false,
            aim: SkipAim::Skip(0.5),
            tune_loss: 0.05,
        }
    }
}

/// Means over the windows of a site.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanOutcome {
    /// Windows with a change.
    pub n_windows: usize,
    /// Windows without a change, which have no change recall.
    pub n_quiet: usize,
    /// Rules per window.
    pub n_rules: f64,
    /// Rules that are not used because a directory below the tail changes with the head.
    pub n_contradicted: f64,
    pub mean: SkipMeasures,
}

/// A training window and the tested version.
pub struct TestWindow<'a> {
    pub known: SiteKnowledge<'a>,
    changes: Vec<PageChange>,
}

impl TestWindow<'_> {
    pub fn test(&self) -> TestedVersion<'_> {
        TestedVersion { history: self.known.history, present: &self.known.present, changes: &self.changes }
    }

    /// Counts what a plan that fetches these pages skips and misses.
    pub fn count(&self, fetched: &[u32]) -> VersionCounts {
        self.test().count(fetched)
    }
}

/// The tested versions, oldest first; empty if the history is too short.
pub fn tested_versions(history: &SiteHistory, protocol: &Protocol) -> Vec<usize> {
    let (n, first) = (history.versions.len(), (protocol.train + protocol.distance).saturating_sub(1));
    if n <= first || protocol.train < 2 || protocol.windows == 0 {
        return Vec::new();
    }
    let n_possible = n - first;
    let n_windows = protocol.windows.min(n_possible);
    let at = |window: usize| match protocol.spread {
        false => n - n_windows + window,
        true => first + (n_possible - 1) * window / (n_windows - 1).max(1),
    };
    (0..n_windows).map(at).collect()
}

/// The window that tests a version, given the state of pages and bytes from [`each_window`].
fn test_window<'a>(
    history: &'a SiteHistory,
    train: usize,
    train_end: usize,
    tested: usize,
    accumulate: bool,
    bytes: &'a [u32],
    present: &[bool],
) -> TestWindow<'a> {
    let transitions =
        (train_end + 1 - train + 1..=train_end).map(|at| history.versions[at].changes.as_slice());
    let changes = match accumulate {
        true => net_changes(history, train_end, tested, present),
        false => history.versions[tested].changes.clone(),
    };
    let present = (0..present.len() as u32).filter(|&page| present[page as usize]).collect();
    TestWindow {
        known: SiteKnowledge { history, transitions: transitions.collect(), present, bytes, fetches: None },
        changes,
    }
}

/// The differences of two versions that are not consecutive.
fn net_changes(history: &SiteHistory, from: usize, to: usize, present: &[bool]) -> Vec<PageChange> {
    let mut touched: Vec<PageChange> =
        history.versions[from + 1..=to].iter().flat_map(|version| version.changes.iter().copied()).collect();
    // The last change of a page decides whether it exists.
    touched.sort_by_key(|change| change.page);
    let mut net: Vec<PageChange> = Vec::new();
    for group in touched.chunk_by(|a, b| a.page == b.page) {
        let last = group[group.len() - 1];
        let change = match (present[last.page as usize], last.change != PageTransition::Deleted) {
            (false, true) => PageTransition::Inserted,
            (true, false) => PageTransition::Deleted,
            (true, true) => PageTransition::Updated(1.0),
            (false, false) => continue,
        };
        net.push(PageChange { change, ..last });
    }
    net
}

/// Calls `each` with every window of a history.
pub fn each_window(history: &SiteHistory, protocol: &Protocol, mut each: impl FnMut(&TestWindow<'_>)) {
    let (mut present, mut bytes) = (vec![false; history.nodes.len()], vec![0; history.nodes.len()]);
    let mut n_applied = 0;
    for tested in tested_versions(history, protocol) {
        let train_end = tested - protocol.distance;
        let state_at = if protocol.accumulate { train_end } else { tested - 1 };
        for version in &history.versions[n_applied..=state_at] {
            for change in &version.changes {
                present[change.page as usize] = change.change != PageTransition::Deleted;
                bytes[change.page as usize] = change.bytes;
            }
        }
        n_applied = state_at + 1;
        each(&test_window(history, protocol.train, train_end, tested, protocol.accumulate, &bytes, &present));
    }
}

pub fn evaluate_plan(history: &SiteHistory, protocol: &Protocol, plan: SkipPlan) -> PlanOutcome {
    let mut outcome = PlanOutcome::default();
    each_window(history, protocol, |window| outcome.add(window, protocol, plan));
    outcome.finish()
}

/// Mean bypass ratio and change recall of a plan for each share of skipped pages. A plan without a ranking has one
/// point.
pub fn recall_curve(
    history: &SiteHistory,
    protocol: &Protocol,
    plan: SkipPlan,
    shares: &[f64],
) -> Vec<(f64, f64)> {
    let is_ranked = matches!(plan, SkipPlan::Ranked(_) | SkipPlan::Oracle);
    let shares = if is_ranked { shares } else { &shares[..shares.len().min(1)] };
    let mut outcomes = vec![PlanOutcome::default(); shares.len()];
    each_window(history, protocol, |window| {
        for (outcome, share) in outcomes.iter_mut().zip(shares) {
            outcome.add(window, &Protocol { aim: SkipAim::Skip(*share), ..*protocol }, plan);
        }
    });
    let point = |outcome: PlanOutcome| {
        let outcome = outcome.finish();
        (outcome.n_windows > 0).then_some((outcome.mean.bypass, outcome.mean.change_recall))
    };
    outcomes.into_iter().filter_map(point).collect()
}

impl PlanOutcome {
    fn add(&mut self, window: &TestWindow<'_>, protocol: &Protocol, plan: SkipPlan) {
        let fetched = pages_to_fetch(window, protocol, plan, self);
        let Some(m) = window.count(&fetched).measures() else {
            self.n_quiet += 1;
            return;
        };
        self.n_windows += 1;
        let sum = &mut self.mean;
        sum.bypass += m.bypass;
        sum.precision += m.precision;
        sum.recall += m.recall;
        sum.change_recall += m.change_recall;
        sum.precision_7 += m.precision_7;
        sum.change_recall_9 += m.change_recall_9;
    }

    fn finish(mut self) -> PlanOutcome {
        let n = self.n_windows.max(1) as f64;
        let n_all = (self.n_windows + self.n_quiet).max(1) as f64;
        (self.n_rules, self.n_contradicted) = (self.n_rules / n_all, self.n_contradicted / n_all);
        let m = &mut self.mean;
        for value in [
            &mut m.bypass,
            &mut m.precision,
            &mut m.recall,
            &mut m.change_recall,
            &mut m.precision_7,
            &mut m.change_recall_9,
        ] {
            *value /= n;
        }
        self
    }
}

/// The pages that a plan fetches. The rules are counted in `outcome`.
fn pages_to_fetch(
    window: &TestWindow<'_>,
    protocol: &Protocol,
    plan: SkipPlan,
    outcome: &mut PlanOutcome,
) -> Vec<u32> {
    let known = &window.known;
    match plan {
        SkipPlan::Nothing => known.present.clone(),
        SkipPlan::Near(thresholds) => fetch_by_near(known, &thresholds, false, outcome),
        SkipPlan::NearEverywhere(thresholds) => fetch_by_near(known, &thresholds, true, outcome),
        SkipPlan::NearSubsumed(thresholds, by) => {
            let delta = delta_tree(known, Significance::Later);
            let mut mined = MinedRules::default();
            mine_from(&delta, DirectoryTree::ROOT, &thresholds, true, &mut mined);
            mined.rules.retain(|rule| rule.subsumed == by && !rule.is_contradicted);
            outcome.n_rules += mined.rules.len() as f64;
            pages_outside(known, &mined.rules.iter().map(|rule| rule.tail).collect::<Vec<DirectoryNode>>())
        }
        SkipPlan::NearTuned => match tune_thresholds(known, protocol.tune_loss) {
            Some(thresholds) => fetch_by_near(known, &thresholds, false, outcome),
            None => known.present.clone(),
        },
        SkipPlan::Static => {
            pages_outside(known, &static_directories(&delta_tree(known, Significance::From(1.0))))
        }
        SkipPlan::LastVersion => {
            let last = known.transitions.len().saturating_sub(1);
            let last = SiteKnowledge { transitions: known.transitions[last..].to_vec(), ..known.clone() };
            pages_outside(known, &static_directories(&delta_tree(&last, Significance::From(1.0))))
        }
        SkipPlan::Ranked(ranking) => {
            let changed = changed_pages(known, &window.changes);
            let n = n_fetched(known, skipped_share(known, protocol.aim, ranking));
            choose_pages(known, ranking, n, |page| changed[page as usize])
        }
        SkipPlan::Oracle => {
            let share = if let SkipAim::Skip(share) = protocol.aim { share } else { 0.5 };
            let mut order = window.test().oracle();
            order.truncate(n_fetched(known, share));
            order
        }
    }
}

fn n_fetched(known: &SiteKnowledge<'_>, share: f64) -> usize {
    ((1.0 - share) * known.present.len() as f64).round() as usize
}

fn changed_pages(known: &SiteKnowledge<'_>, changes: &[PageChange]) -> Vec<bool> {
    let mut changed = vec![false; known.history.nodes.len()];
    let are_known = changes.iter().filter(|change| change.change != PageTransition::Inserted);
    are_known.for_each(|change| changed[change.page as usize] = true);
    changed
}

fn fetch_by_near(
    known: &SiteKnowledge<'_>,
    thresholds: &Thresholds,
    everywhere: bool,
    outcome: &mut PlanOutcome,
) -> Vec<u32> {
    let delta = delta_tree(known, Significance::Later);
    let (skipped, mined) = near_skipped_directories(&delta, thresholds, everywhere);
    outcome.n_rules += mined.rules.len() as f64;
    outcome.n_contradicted += mined.rules.iter().filter(|rule| rule.is_contradicted).count() as f64;
    pages_outside(known, &skipped)
}

/// Windows within the training window, one for each of its last transitions.
fn held_back_windows<'a>(known: &SiteKnowledge<'a>) -> Vec<TestWindow<'a>> {
    let n = known.transitions.len();
    let mut present = vec![false; known.history.nodes.len()];
    known.present.iter().for_each(|&page| present[page as usize] = true);
    let mut windows = Vec::new();
    for at in (n.saturating_sub(HELD_BACK).max(2)..n).rev() {
        for change in known.transitions[at] {
            match change.change {
                PageTransition::Inserted => present[change.page as usize] = false,
                PageTransition::Deleted => present[change.page as usize] = true,
                PageTransition::Updated(_) => {}
            }
        }
        let present = (0..present.len() as u32).filter(|&page| present[page as usize]).collect();
        let transitions = known.transitions[..at].to_vec();
        let known_then = SiteKnowledge { transitions, present, fetches: None, ..known.clone() };
        windows.push(TestWindow { known: known_then, changes: known.transitions[at].to_vec() });
    }
    windows
}

/// The share to skip. With a maximum loss, it is the largest share that the training window allows.
fn skipped_share(known: &SiteKnowledge<'_>, aim: SkipAim, ranking: PageRanking) -> f64 {
    let loss = match aim {
        SkipAim::Skip(share) => return share,
        SkipAim::MaxLoss(loss) => loss,
    };
    let windows = held_back_windows(known);
    let is_borne_out = |share: &&f64| {
        let recall = |window: &TestWindow<'_>| {
            let changed = changed_pages(&window.known, &window.changes);
            let n = n_fetched(&window.known, **share);
            let fetched = choose_pages(&window.known, ranking, n, |page| changed[page as usize]);
            window.count(&fetched).measures().map(|measures| measures.change_recall)
        };
        let recalls: Vec<f64> = windows.iter().filter_map(recall).collect();
        !recalls.is_empty() && recalls.iter().sum::<f64>() / recalls.len() as f64 >= 1.0 - loss
    };
    SHARES.iter().take_while(is_borne_out).last().copied().unwrap_or(0.0)
}

/// The thresholds that skip most of the held-back versions at a loss of at most `most_loss`; `None` if none skip
/// anything.
pub fn tune_thresholds(known: &SiteKnowledge<'_>, most_loss: f64) -> Option<Thresholds> {
    let windows: Vec<TestWindow<'_>> = held_back_windows(known);
    let oldest = windows.last()?;
    let delta = delta_tree(&oldest.known, Significance::Later);
    let mut best: Option<(f64, Thresholds)> = None;
    for thresholds in grid() {
        let (skipped, _) = near_skipped_directories(&delta, &thresholds, false);
        if skipped.is_empty() {
            continue;
        }
        let measured =
            |window: &TestWindow<'_>| window.count(&pages_outside(&window.known, &skipped)).measures();
        let measures: Vec<SkipMeasures> = windows.iter().filter_map(measured).collect();
        let mean = |of: fn(&SkipMeasures) -> f64| {
            measures.iter().map(of).sum::<f64>() / measures.len().max(1) as f64
        };
        let bypass = mean(|m| m.bypass);
        let is_safe = !measures.is_empty() && mean(|m| m.change_recall) >= 1.0 - most_loss;
        if is_safe && best.is_none_or(|(most, _)| bypass > most) {
            best = Some((bypass, thresholds));
        }
    }
    best.map(|(_, thresholds)| thresholds)
}

fn grid() -> impl Iterator<Item = Thresholds> {
    let alphas = [Alpha::Adaptive, Alpha::Fixed(0.001), Alpha::Fixed(0.01), Alpha::Fixed(0.05)];
    let betas = [0.1, 0.2, 0.3, 0.5];
    let gammas = [Some(0.1), Some(0.3), Some(0.5)];
    alphas.into_iter().flat_map(move |alpha| {
        betas.into_iter().flat_map(move |beta| {
            gammas.into_iter().flat_map(move |gamma| {
                let all = move |theta| Thresholds { alpha, beta, gamma, theta, is_strict: false };
                [0.5, 0.7, 0.9].map(all)
            })
        })
    })
}
