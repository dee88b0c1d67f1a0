//! Chooses the pages to fetch by their scores, and corrects the scores by the first outcomes.
//!
//! The first half of the budget goes to the best scores. Then rounds follow, in which each directory's scores are
//! multiplied by the found over the expected changes, with the parent directory as prior. If a directory changes with a
//! second one or excludes it, the changes found there count too. A directory is skipped if none of its pages is
//! selected.

use super::associate::{Association, associations};
use super::evidence::{SiteEvidence, SiteKnowledge};
use super::score::{PageScores, own_shares, plain_rates, scores};

/// The shares of the budget at which the remaining pages are ranked again.
const ROUNDS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// How pages are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageRanking {
    /// By decayed past changes, with back-off to the directory.
    Rate,
    /// By score, before the crawl.
    Score,
    /// By score, corrected in rounds.
    InRounds,
    /// Like `InRounds`, with associations between directories.
    Combined,
}

/// The pages to fetch, in order, at most `n`. `look` fetches a page and returns whether it changed or was deleted.
pub fn choose_pages(
    known: &SiteKnowledge<'_>,
    ranking: PageRanking,
    n: usize,
    fetch: impl FnMut(u32) -> bool,
) -> Vec<u32> {
    let evidence = SiteEvidence::new(known);
    let in_order = |keys: &[f64]| {
        let order = largest_keys(keys, n, &vec![false; keys.len()]);
        order.into_iter().map(|at| known.present[at as usize]).collect()
    };
    match ranking {
        PageRanking::Rate => in_order(&plain_rates(known, &evidence)),
        PageRanking::Score => in_order(&scores(known, &evidence).with_insertions),
        PageRanking::InRounds | PageRanking::Combined => {
            let scores = scores(known, &evidence);
            let mut associated = Vec::new();
            if ranking == PageRanking::Combined {
                associated = associations(known, &evidence.directories);
            }
            RankingRounds::new(known, &evidence, &scores, &associated).run(n, fetch)
        }
    }
}

/// The indexes of the `n` largest keys among those not taken, the largest first.
fn largest_keys(keys: &[f64], n: usize, taken: &[bool]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..keys.len() as u32).filter(|&at| !taken[at as usize]).collect();
    let by_key = |a: &u32, b: &u32| keys[*b as usize].total_cmp(&keys[*a as usize]).then(a.cmp(b));
    if n < order.len() {
        order.select_nth_unstable_by(n, by_key);
        order.truncate(n);
    }
    order.sort_unstable_by(by_key);
    order
}

/// Rounds of fetches that correct the ranking by their outcomes.
struct RankingRounds<'a> {
    known: &'a SiteKnowledge<'a>,
    evidence: &'a SiteEvidence,
    scores: &'a PageScores,
    associated: &'a [Option<Association>],
    /// Converts a score to a number of changes.
    scale: f64,
    /// By directory: changes found and expected on the fetched pages, and expected on all pages.
    found: Vec<f64>,
    expected: Vec<f64>,
    of_all: Vec<f64>,
}

impl<'a> RankingRounds<'a> {
    fn new(
        known: &'a SiteKnowledge<'a>,
        evidence: &'a SiteEvidence,
        scores: &'a PageScores,
        associated: &'a [Option<Association>],
    ) -> RankingRounds<'a> {
        let directories = &evidence.directories;
        let scale = evidence.n_expected / scores.score.iter().sum::<f64>().max(1e-12);
        let mut of_all = vec![0.0; directories.len()];
        for (score, &directory) in scores.score.iter().zip(&directories.of_page) {
            of_all[directory as usize] += (score * scale).min(1.0);
        }
        directories.add_to_ancestors(&mut of_all);
        let none = vec![0.0; directories.len()];
        RankingRounds {
            known,
            evidence,
            scores,
            associated,
            scale,
            found: none.clone(),
            expected: none,
            of_all,
        }
    }

    fn run(mut self, n: usize, mut fetch: impl FnMut(u32) -> bool) -> Vec<u32> {
        let mut taken = vec![false; self.known.present.len()];
        let mut keys = self.scores.with_insertions.clone();
        let mut chosen = Vec::with_capacity(n);
        for (round, share) in ROUNDS.iter().enumerate() {
            if round > 0 {
                self.rerank(&mut keys);
            }
            let n_more = ((n as f64 * share).round() as usize).saturating_sub(chosen.len());
            for at in largest_keys(&keys, n_more, &taken) {
                let at = at as usize;
                taken[at] = true;
                let directory = self.evidence.directories.of_page[at] as usize;
                self.expected[directory] += (self.scores.score[at] * self.scale).min(1.0);
                self.found[directory] += f64::from(u8::from(fetch(self.known.present[at])));
                chosen.push(self.known.present[at]);
            }
        }
        chosen
    }

    fn rerank(&self, keys: &mut [f64]) {
        let directories = &self.evidence.directories;
        let (mut found, mut expected) = (self.found.clone(), self.expected.clone());
        directories.add_to_ancestors(&mut found);
        directories.add_to_ancestors(&mut expected);
        let mut factors = vec![1.0f64; directories.len()];
        for at in 0..directories.len() {
            let mut prior = if at == 0 { 1.0 } else { factors[directories.parents[at] as usize] };
            if let Some(association) = self.associated.get(at).copied().flatten() {
                prior *= self.factor_from_head(&association, &found, &expected);
            }
            factors[at] = (found[at] + prior) / (expected[at] + 1.0);
        }
        for (at, key) in keys.iter_mut().enumerate() {
            *key = self.scores.with_insertions[at] * factors[directories.of_page[at] as usize];
        }
    }

    fn factor_from_head(&self, association: &Association, found: &[f64], expected: &[f64]) -> f64 {
        let (head, tail) = (association.head as usize, association.tail as usize);
        // The head without the tail, if the head is an ancestor.
        let contains = {
            let parents = &self.evidence.directories.parents;
            let mut up = tail;
            while up > head {
                up = parents[up] as usize;
            }
            up == head
        };
        let beside = |sums: &[f64]| if contains { sums[head] - sums[tail] } else { sums[head] };
        let share = beside(expected) / beside(&self.of_all).max(1e-9);
        association.factor(share.clamp(0.0, 1.0), beside(found))
    }
}

/// A change is a surprise if fewer changes were expected.
const UNEXPECTED: f64 = 0.2;
/// The number of surprises that suffice to judge a directory, and the changed share from which on it was rebuilt.
const FEWEST_SURPRISES: f64 = 3.0;
const REBUILT: f64 = 0.5;

/// The unfetched pages of rebuilt directories, with the changed share of their directory. A directory was rebuilt if
/// most of its pages changed, including pages on which no change was expected.
pub fn unfetched_rebuilt_pages(
    known: &SiteKnowledge<'_>,
    fetched: &[u32],
    is_changed: impl Fn(u32) -> bool,
) -> Vec<(u32, f64)> {
    let evidence = SiteEvidence::new(known);
    let directories = &evidence.directories;
    let shares = own_shares(known, &evidence);
    let mut is_fetched = vec![false; known.history.nodes.len()];
    fetched.iter().for_each(|&page| is_fetched[page as usize] = true);
    let (mut n_fetched, mut changed) = (vec![0.0; directories.len()], vec![0.0; directories.len()]);
    for (at, &page) in known.present.iter().enumerate() {
        // Pages of an earlier rebuild count too, although they may reveal nothing new. Without them a second rebuild is
        // noticed too late, which costs more than a few superfluous fetches.
        if is_fetched[page as usize] && shares[at] * evidence.n_expected < UNEXPECTED {
            let directory = directories.of_page[at] as usize;
            n_fetched[directory] += 1.0;
            changed[directory] += f64::from(u8::from(is_changed(page)));
        }
    }
    directories.add_to_ancestors(&mut n_fetched);
    directories.add_to_ancestors(&mut changed);
    let mut share = vec![0.0; directories.len()];
    for at in 0..directories.len() {
        share[at] = if n_fetched[at] >= FEWEST_SURPRISES {
            changed[at] / n_fetched[at]
        } else {
            share[directories.parents[at] as usize]
        };
    }
    let of_page = |(at, &page): (usize, &u32)| {
        let share = share[directories.of_page[at] as usize];
        (share >= REBUILT && !is_fetched[page as usize]).then_some((page, share))
    };
    known.present.iter().enumerate().filter_map(of_page).collect()
}
