//! The archive's link graph -> omega(P): PageRank times the user's weight (P-PATTERN 3.1; docs/papers.md, Page
//! weight).
//!
//! Links are stored by target in two flat arrays (compressed sparse rows), so an iteration reads memory in
//! order. A million pages with ten million links take about half a second.

/// Probability that a reader follows a link instead of starting on a random page.
const DAMPING: f64 = 0.85;
/// Iterations end when the ranks move by less than this in total.
const CLOSE_ENOUGH: f64 = 1e-7;
const MAX_ITERATIONS: usize = 100;

/// The links among `n_pages` numbered pages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkGraph {
    /// Where the sources of each target begin in `sources`, followed by its length.
    starts: Vec<u32>,
    sources: Vec<u32>,
    n_links_from: Vec<u32>,
}

impl LinkGraph {
    /// From (source, target) pairs. Links of a page to itself, repeated links and links to unknown pages do not
    /// count.
    pub fn from_links(n_pages: usize, links: impl IntoIterator<Item = (u32, u32)>) -> LinkGraph {
        let n = n_pages.min(u32::MAX as usize) as u32;
        let is_link = |&(source, target): &(u32, u32)| source != target && source < n && target < n;
        let mut links: Vec<(u32, u32)> = links.into_iter().filter(is_link).map(|(s, t)| (t, s)).collect();
        links.sort_unstable();
        links.dedup();
        let mut starts = vec![0u32; n as usize + 1];
        let mut n_links_from = vec![0u32; n as usize];
        for &(target, source) in &links {
            starts[target as usize + 1] += 1;
            n_links_from[source as usize] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        LinkGraph { starts, sources: links.into_iter().map(|(_, source)| source).collect(), n_links_from }
    }

    pub fn n_pages(&self) -> usize {
        self.n_links_from.len()
    }

    /// PageRank of every page, with a mean of 1. `start` may contain the ranks of an earlier, smaller graph, which
    /// saves iterations.
    pub fn page_rank(&self, start: &[f32]) -> Vec<f32> {
        let n = self.n_pages();
        let usable = |at: usize| start.get(at).copied().filter(|rank| rank.is_finite() && *rank > 0.0);
        let mut ranks: Vec<f64> = (0..n).map(|at| f64::from(usable(at).unwrap_or(1.0))).collect();
        let mut after = vec![0.0; n];
        let mut handed_on = vec![0.0; n];
        for _ in 0..MAX_ITERATIONS {
            let moved = self.iterate(&ranks, &mut handed_on, &mut after);
            std::mem::swap(&mut ranks, &mut after);
            if moved < CLOSE_ENOUGH * n as f64 {
                break;
            }
        }
        ranks.into_iter().map(|rank| rank as f32).collect()
    }

    /// One iteration. Returns the sum of how far the ranks moved.
    fn iterate(&self, ranks: &[f64], handed_on: &mut [f64], after: &mut [f64]) -> f64 {
        let mut dangling = 0.0;
        for ((rank, n_links), handed_on) in ranks.iter().zip(&self.n_links_from).zip(handed_on.iter_mut()) {
            match n_links {
                0 => dangling += rank,
                n_links => *handed_on = rank / f64::from(*n_links),
            }
        }
        let n = ranks.len().max(1) as f64;
        let total: f64 = ranks.iter().sum();
        let to_all = (1.0 - DAMPING) + DAMPING * dangling / n + DAMPING * (1.0 - total / n);
        let mut moved = 0.0;
        for (target, (after, rank)) in after.iter_mut().zip(ranks).enumerate() {
            let sources = &self.sources[self.starts[target] as usize..self.starts[target + 1] as usize];
            let received: f64 = sources.iter().map(|&source| handed_on[source as usize]).sum();
            *after = to_all + DAMPING * received;
            moved += (*after - rank).abs();
        }
        moved
    }
}

/// omega(P): PageRank times the user's weight, which is 1 by default.
pub fn page_weight(page_rank: f32, user_weight: f32) -> f32 {
    let weight = page_rank * user_weight;
    if weight.is_finite() { weight.max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// PageRank by its definition, without sparse rows.
    fn by_definition(n: usize, links: &[(u32, u32)]) -> Vec<f64> {
        let mut out = vec![std::collections::BTreeSet::new(); n];
        for &(s, t) in links {
            if s != t {
                out[s as usize].insert(t as usize);
            }
        }
        let mut ranks = vec![1.0; n];
        for _ in 0..300 {
            let mut after = vec![0.15; n];
            for (s, targets) in out.iter().enumerate() {
                if targets.is_empty() {
                    after.iter_mut().for_each(|rank| *rank += 0.85 * ranks[s] / n as f64);
                }
                for &t in targets {
                    after[t] += 0.85 * ranks[s] / targets.len() as f64;
                }
            }
            ranks = after;
        }
        ranks
    }

    #[test]
    fn pages_that_are_linked_to_rank_higher() {
        let graph = LinkGraph::from_links(4, [(1, 0), (2, 0), (3, 0), (0, 1), (9, 0), (2, 2)]);
        assert_eq!((graph.n_pages(), graph.sources.len()), (4, 4));
        let ranks = graph.page_rank(&[]);
        assert!(ranks[0] > ranks[1] && ranks[1] > ranks[2]);
        assert!((ranks[2] - ranks[3]).abs() < 1e-6);
        assert!((ranks.iter().sum::<f32>() - 4.0).abs() < 1e-4);
        assert!(LinkGraph::from_links(0, []).page_rank(&[]).is_empty());
        assert_eq!(page_weight(f32::NAN, 1.0), 0.0);
    }

    proptest! {
        #[test]
        fn equals_the_definition_from_any_start(
            links in prop::collection::vec((0u32..12, 0u32..12), 0..60),
            start in prop::collection::vec(prop_oneof![0.0f32..5.0, Just(f32::NAN)], 0..15),
        ) {
            let expected = by_definition(12, &links);
            let ranks = LinkGraph::from_links(12, links).page_rank(&start);
            for (rank, expected) in ranks.iter().zip(expected) {
                prop_assert!((f64::from(*rank) - expected).abs() < 1e-4, "{} {}", rank, expected);
            }
        }
    }
}
