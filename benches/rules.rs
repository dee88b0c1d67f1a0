//! Synthetic histories -> the time and memory of the General Delta Tree and the miner on one core.
//!
//! cargo bench -p perennial-lab --bench rules
//!
//! experiments/rules contains the results.

use divan::{Bencher, black_box};
use perennial_core::directory::{Alpha, DeltaTree, Significance, SiteHistory, Thresholds, mine};
use perennial_lab::rules::RandomTrees;

fn main() {
    divan::main();
}

fn history_of(n_nodes: usize, n_versions: usize) -> SiteHistory {
    RandomTrees { n_nodes, n_versions, depth: 8, ..RandomTrees::default() }.build()
}

fn organise(history: &SiteHistory) -> DeltaTree {
    let window = history.versions.len() - 1;
    let mut delta = DeltaTree::with_tree(history.tree.clone(), window, Significance::From(0.05));
    let mut versions = history.versions.iter();
    let nodes = |changes: &[perennial_core::directory::PageChange]| {
        changes.iter().map(|change| (history.nodes[change.page as usize], change.change)).collect::<Vec<_>>()
    };
    if let Some(first) = versions.next() {
        delta.begin(nodes(&first.changes).into_iter().map(|(node, _)| node));
    }
    for version in versions {
        delta.add(nodes(&version.changes));
    }
    delta
}

/// Below 200 bytes per node, plus a bit for each transition.
fn check_memory(delta: &DeltaTree) {
    let n_nodes = delta.tree().len() as f64;
    let bytes = delta.n_bytes() as f64 / n_nodes - delta.n_transitions() as f64 / 8.0;
    assert!(bytes < 200.0, "{bytes} bytes a node beside its bits");
}

/// (nodes, versions): the ends of the paper's axes, then far larger values.
const CASES: [(usize, usize); 6] =
    [(16_000, 50), (1_000, 800), (100_000, 100), (1_000_000, 50), (100_000, 1_000), (1_000_000, 200)];

/// Phase 1: organise changes.
#[divan::bench(args = CASES, sample_count = 3, sample_size = 1)]
fn organise_changes(bencher: Bencher<'_, '_>, (n_nodes, n_versions): (usize, usize)) {
    let history = history_of(n_nodes, n_versions);
    check_memory(&organise(&history));
    bencher.bench_local(|| black_box(organise(&history)));
}

/// Phase 2: generate rules.
#[divan::bench(args = CASES, sample_count = 3, sample_size = 1)]
fn generate_rules(bencher: Bencher<'_, '_>, (n_nodes, n_versions): (usize, usize)) {
    let delta = organise(&history_of(n_nodes, n_versions));
    let thresholds =
        Thresholds { alpha: Alpha::Fixed(0.05), beta: 0.1, gamma: Some(0.3), theta: 0.5, is_strict: false };
    bencher.bench_local(|| black_box(mine(&delta, &thresholds, false)));
}
