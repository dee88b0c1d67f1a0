//! Scores pages by their expected share of a site's next changes.
//!
//! The weights come from a study of weekly versions of sixteen sites (docs/decisions/0030-directories.md). The score is
//! a product of two estimates with different errors: the page's own decayed share, with its directory as prior, and
//! odds from a dozen facts about page, directory and file name.

use super::evidence::{SiteEvidence, SiteKnowledge};

/// Weight of the prior for a page's own share, in transitions, and for a directory's share, in pages.
const PRIOR_OF_PAGE: f64 = 4.0;
const PRIOR_OF_DIRECTORY: f64 = 2.0;

/// Scores of the existing pages.
pub struct PageScores {
    /// The expected share of the next changes.
    pub score: Vec<f64>,
    /// The score, plus the insertions that a visit would find.
    pub with_insertions: Vec<f64>,
}

/// The plain ranking: decayed past changes with back-off to the directory.
pub fn plain_rates(known: &SiteKnowledge<'_>, evidence: &SiteEvidence) -> Vec<f64> {
    let of_page = &evidence.directories.of_page;
    let mut sums = vec![0.0; evidence.directories.len()];
    for (at, &directory) in of_page.iter().enumerate() {
        sums[directory as usize] += evidence.plain[at];
    }
    let site: f64 = sums.iter().sum::<f64>() / known.present.len().max(1) as f64;
    let k = 2.0;
    let prior = |d: usize| (sums[d] + k * site) / (evidence.n_own[d] + k);
    let rate = |at: usize| {
        let weight = fetch_weights(known, at).map_or(evidence.plain_weight, |fetches| fetches[1]);
        (evidence.plain[at] + prior(of_page[at] as usize) / evidence.plain_weight.max(1e-9) * k)
            / (weight + k)
    };
    (0..of_page.len()).map(rate).collect()
}

fn fetch_weights(known: &SiteKnowledge<'_>, at: usize) -> Option<[f64; 3]> {
    known.fetches.map(|fetches| fetches.weight[known.present[at] as usize])
}

/// The share of the next changes by the page's own past. Directory, parent directory and site are the prior.
pub fn own_shares(known: &SiteKnowledge<'_>, evidence: &SiteEvidence) -> Vec<f64> {
    let directories = &evidence.directories;
    let weight = evidence.weight[1];
    let shares = evidence.in_directory.iter().zip(&evidence.insertions);
    let own: Vec<f64> = shares.map(|(changes, insertions)| changes[1] + 0.5 * insertions).collect();
    let mut below = own.clone();
    directories.add_to_ancestors(&mut below);
    let site = below[0] / (known.present.len().max(1) as f64 * weight.max(1e-9));
    let k = PRIOR_OF_DIRECTORY;
    let blend = |sum: f64, n: f64, prior: f64| (sum / weight.max(1e-9) + k * prior) / (n + k);
    let share = |at: usize| {
        let directory = directories.of_page[at] as usize;
        let parent = directories.parents[directory] as usize;
        let prior = blend(below[parent], evidence.n_below[parent], site);
        let prior = blend(own[directory], evidence.n_own[directory], prior);
        let fetched = fetch_weights(known, at).map_or(weight, |fetches| fetches[1]);
        (evidence.share_with_birth[at] + PRIOR_OF_PAGE * prior) / (fetched + PRIOR_OF_PAGE)
    };
    (0..known.present.len()).map(share).collect()
}

pub fn scores(known: &SiteKnowledge<'_>, evidence: &SiteEvidence) -> PageScores {
    let n = known.present.len().max(1) as f64;
    let (own, odds) = (own_shares(known, evidence), odds(known, evidence));
    let mut score: Vec<f64> =
        own.iter().zip(&odds).map(|(own, odds)| own.max(1e-12).powf(0.4) * (odds / n).powf(0.6)).collect();
    if let Some(fetches) = known.fetches {
        let a_change = score.iter().sum::<f64>() / evidence.n_expected.max(1.0);
        for (score, &page) in score.iter_mut().zip(&known.present) {
            *score *= f64::from(fetches.unseen[page as usize].max(1)).sqrt();
            *score += a_change * fetches.rebuilt[page as usize];
        }
    }
    let with_insertions = with_insertions(evidence, &score);
    PageScores { score, with_insertions }
}

/// Adds the insertions expected in each directory to its best page.
fn with_insertions(evidence: &SiteEvidence, score: &[f64]) -> Vec<f64> {
    let directories = &evidence.directories;
    let mut best: Vec<Option<usize>> = vec![None; directories.len()];
    let better = |a: Option<usize>, b: usize| a.filter(|&a| score[a] >= score[b]).unwrap_or(b);
    for (at, &directory) in directories.of_page.iter().enumerate() {
        let best = &mut best[directory as usize];
        *best = Some(better(*best, at));
    }
    for at in (1..directories.len()).rev() {
        if let Some(below) = best[at] {
            let above = &mut best[directories.parents[at] as usize];
            *above = Some(better(*above, below));
        }
    }
    let mut with_insertions = score.to_vec();
    for (best, insertions) in best.iter().zip(&evidence.insertions) {
        if let Some(best) = best {
            with_insertions[*best] += insertions / (evidence.weight[1] + PRIOR_OF_PAGE);
        }
    }
    with_insertions
}

/// How much likelier than a mean page each page is to be among the next changes.
fn odds(known: &SiteKnowledge<'_>, evidence: &SiteEvidence) -> Vec<f64> {
    let directories = &evidence.directories;
    let n = known.present.len();
    let own: Vec<f64> = evidence.in_directory.iter().map(|shares| shares[2]).collect();
    let mut below = own.clone();
    directories.add_to_ancestors(&mut below);
    let ranks = youth_ranks(known, evidence);
    let level = |share: f64, weight: f64| (n as f64 * share / (weight + 0.5) + 0.02).ln();
    let odds_of = |at: usize| {
        let fetched = fetch_weights(known, at).unwrap_or(evidence.weight);
        let share = evidence.shares[at];
        let directory = directories.of_page[at] as usize;
        let parent = directories.parents[directory] as usize;
        let above = below[parent] / evidence.n_below[parent].max(1.0);
        let n_beside = evidence.n_own[directory] - 1.0;
        let beside = if n_beside > 0.0 { (own[directory] - share[2]) / n_beside } else { above };
        let extension = evidence.extension[at] as usize;
        let alike = evidence.in_extension[extension] / evidence.n_extension[extension];
        let weight = evidence.weight[2];
        let file = FileFacts::new(known, at);
        let sum = 1.095
            + 0.348 * level(share[0], fetched[0])
            + 0.164 * level(share[2], fetched[2])
            + 0.221 * level(beside, weight)
            + 0.245 * level(above, weight)
            + 0.393 * level(alike, weight)
            + 0.228 * (1.0 + evidence.n_updates[at]).ln()
            - 0.543 * evidence.age[at].ln()
            + 0.751 * evidence.quiet[at].ln()
            - 0.260 * (1.0 + ranks[at]).ln()
            - 0.208 * file.depth
            + if file.is_index { 0.751 } else { 0.0 }
            + 0.174 * file.ln_bytes;
        sum.exp()
    };
    (0..n).map(odds_of).collect()
}

struct FileFacts {
    depth: f64,
    is_index: bool,
    ln_bytes: f64,
}

impl FileFacts {
    fn new(known: &SiteKnowledge<'_>, at: usize) -> FileFacts {
        let page = known.present[at] as usize;
        let (tree, node) = (&known.history.tree, known.history.nodes[page]);
        let label = tree.label(node);
        FileFacts {
            depth: tree.level(node) as f64,
            is_index: label.starts_with("index.") || label == "/" || label.is_empty(),
            ln_bytes: (1.0 + f64::from(known.bytes[page])).ln(),
        }
    }
}

/// The rank of each page by age within its directory, the youngest 0. Pages of the same age share a rank.
fn youth_ranks(known: &SiteKnowledge<'_>, evidence: &SiteEvidence) -> Vec<f64> {
    let of_page = &evidence.directories.of_page;
    let mut order: Vec<usize> = (0..known.present.len()).collect();
    order.sort_by(|&a, &b| of_page[a].cmp(&of_page[b]).then(evidence.age[a].total_cmp(&evidence.age[b])));
    let mut ranks = vec![0.0; order.len()];
    let mut first = 0;
    let mut rank = 0;
    for at in 0..order.len() {
        if of_page[order[at]] != of_page[order[first]] {
            first = at;
        }
        if at == first {
            rank = 0;
        } else if evidence.age[order[at]] > evidence.age[order[at - 1]] {
            rank = at - first;
        }
        ranks[order[at]] = rank as f64;
    }
    ranks
}
