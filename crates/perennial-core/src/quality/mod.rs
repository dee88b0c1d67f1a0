//! Captured versions -> [`SnapshotCoherence`], and bounds of completeness and coherence for an archive of the web
//! (P-QUALITY 5; docs/papers.md, Completeness and Coherence).
//!
//! The changes of the web are unknown, so [`estimate`] gives bounds and the most likely value.
//! `perennial_lab::quality` contains the measures that need all changes.

pub mod estimate;
pub mod hidden;

use crate::time::Timestamp;

/// A share of the whole; 1 if the whole is 0, because then nothing was missed.
pub fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// A captured version in the result of a query, with its validity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValidVersion {
    /// Importance of the version: omega(P) times the importance of its change (Definition 4.25).
    pub weight: f64,
    /// The last change before the capture.
    pub since: Timestamp,
    /// The next change after it.
    pub until: Timestamp,
}

/// The shares of a snapshot's versions that were valid at one common instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SnapshotCoherence {
    /// Weight of the largest set of coherent versions over the total weight (Definition 5.22); among sets of one size
    /// the heaviest.
    pub weighted: f64,
    /// Weight of the heaviest set of coherent versions over the total weight.
    pub max_weight: f64,
    /// Size of the largest set over the number of versions.
    pub count: f64,
}

impl SnapshotCoherence {
    /// The coherence of a result without versions.
    pub const FULL: SnapshotCoherence = SnapshotCoherence { weighted: 1.0, max_weight: 1.0, count: 1.0 };

    /// Mean over queries or sites (Definitions 5.23, 5.24); [`SnapshotCoherence::FULL`] for none.
    pub fn mean(values: impl IntoIterator<Item = SnapshotCoherence>) -> SnapshotCoherence {
        let mut sum = SnapshotCoherence { weighted: 0.0, max_weight: 0.0, count: 0.0 };
        let mut n = 0.0;
        for value in values {
            sum.weighted += value.weighted;
            sum.max_weight += value.max_weight;
            sum.count += value.count;
            n += 1.0;
        }
        if n == 0.0 {
            return SnapshotCoherence::FULL;
        }
        SnapshotCoherence { weighted: sum.weighted / n, max_weight: sum.max_weight / n, count: sum.count / n }
    }
}

/// One pass over the sorted ends of the invariance intervals, O(N log N). Intervals are closed, as in Definition
/// 5.21, so starts come before ends of the same instant.
pub fn coherence(versions: &[ValidVersion]) -> SnapshotCoherence {
    let mut ends: Vec<(Timestamp, bool, f64)> = Vec::with_capacity(versions.len() * 2);
    for version in versions {
        let (since, until) = (version.since.min(version.until), version.until.max(version.since));
        ends.push((since, false, sane(version.weight)));
        ends.push((until, true, sane(version.weight)));
    }
    ends.sort_by_key(|(at, is_end, _)| (*at, *is_end));
    let (mut n_open, mut open) = (0u32, 0.0f64);
    let (mut most, mut weight_of_most, mut heaviest) = (0u32, 0.0f64, 0.0f64);
    for (_, is_end, weight) in ends {
        if is_end {
            n_open -= 1;
            // Rounding errors add up, but an empty set weighs exactly 0.
            open = if n_open == 0 { 0.0 } else { open - weight };
            continue;
        }
        n_open += 1;
        open += weight;
        heaviest = heaviest.max(open);
        if n_open > most || (n_open == most && open > weight_of_most) {
            (most, weight_of_most) = (n_open, open);
        }
    }
    let total: f64 = versions.iter().map(|version| sane(version.weight)).sum();
    SnapshotCoherence {
        weighted: ratio(weight_of_most, total).min(1.0),
        max_weight: ratio(heaviest, total).min(1.0),
        count: ratio(f64::from(most), versions.len() as f64),
    }
}

fn sane(weight: f64) -> f64 {
    if weight.is_finite() { weight.max(0.0) } else { 0.0 }
}

/// The index of the entry closest to an instant, in a list sorted by time.
pub fn closest<T>(list: &[T], at: impl Fn(&T) -> Timestamp, query: Timestamp) -> Option<usize> {
    let next = list.partition_point(|one| at(one) < query);
    let before = next.checked_sub(1);
    match (before.and_then(|place| list.get(place)), list.get(next)) {
        (Some(before), Some(after)) if at(after) - query >= query - at(before) => next.checked_sub(1),
        (_, Some(_)) => Some(next),
        (_, None) => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    fn version(weight: f64, since: i64, until: i64) -> ValidVersion {
        ValidVersion { weight, since: at(since), until: at(until) }
    }

    #[test]
    fn example_5_21_query_result_coherence() {
        let versions = [
            version(0.2, 0, 10),
            version(0.54, 5, 12),
            version(0.34, 8, 20),
            version(0.22, 15, 25),
            version(0.6, 22, 30),
        ];
        let result = coherence(&versions);
        assert!(close(result.weighted, 0.568), "{result:?}");
        assert!(close(result.max_weight, 0.568));
        assert!(close(result.count, 0.6));
    }

    #[test]
    fn the_heaviest_set_need_not_be_the_largest() {
        let versions = [version(0.1, 0, 10), version(0.1, 0, 10), version(1.0, 20, 30)];
        let result = coherence(&versions);
        assert!(close(result.weighted, 0.2 / 1.2) && close(result.max_weight, 1.0 / 1.2));
        // Closed intervals: a common end is a common point.
        assert_eq!(coherence(&[version(1.0, 0, 10), version(1.0, 10, 20)]).count, 1.0);
    }

    /// Tries every start as the common point.
    fn brute_force_coherence(versions: &[ValidVersion]) -> SnapshotCoherence {
        let total: f64 = versions.iter().map(|v| v.weight).sum();
        let mut best = (0usize, 0.0f64);
        let mut heaviest = 0.0f64;
        for point in versions.iter().map(|v| v.since) {
            let holding = versions.iter().filter(|v| v.since <= point && point <= v.until);
            let (n, weight) = holding.fold((0, 0.0), |(n, sum), v| (n + 1, sum + v.weight));
            heaviest = heaviest.max(weight);
            if n > best.0 || (n == best.0 && weight > best.1) {
                best = (n, weight);
            }
        }
        SnapshotCoherence {
            weighted: ratio(best.1, total),
            max_weight: ratio(heaviest, total),
            count: ratio(best.0 as f64, versions.len() as f64),
        }
    }

    proptest! {
        #[test]
        fn the_sweep_equals_brute_force(
            list in prop::collection::vec((0.0f64..1.0, 0i64..30, 0i64..12), 0..40)
        ) {
            let versions: Vec<ValidVersion> =
                list.iter().map(|(weight, since, length)| version(*weight, *since, since + length)).collect();
            let (fast, slow) = (coherence(&versions), brute_force_coherence(&versions));
            prop_assert!((fast.weighted - slow.weighted).abs() < 1e-9, "{fast:?} {slow:?}");
            prop_assert!((fast.max_weight - slow.max_weight).abs() < 1e-9, "{fast:?} {slow:?}");
            prop_assert_eq!(fast.count, slow.count);
        }
    }
}
