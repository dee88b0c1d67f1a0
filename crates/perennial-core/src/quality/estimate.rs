//! Captures and patterns, without the truth -> what was surely and what was probably missed.
//!
//! Between two captures of a page that differ, at least one version appeared and the later capture holds the
//! last of them. How many came before it nobody saw; the page's pattern says how many to expect, and how sure
//! that is. Two captures that are alike are taken to mean that nothing changed in between.

use super::{Coherence, ValidVersion, coherence};
use crate::time::Timestamp;

/// How many deviations the cautious end of an estimate lies from its middle: 95 % of cases are better.
const CAUTIOUS_DEVIATIONS: f64 = 1.645;

/// The time between two captures of a page, or from the last one to now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// omega(P): the importance of the page.
    pub weight: f64,
    /// Importance of the difference between the two captures; none when they are alike, or when the gap is still
    /// open.
    pub difference: Option<f64>,
    /// Whether a later capture closes it.
    pub is_closed: bool,
    /// Changes that the page's pattern expects in this time.
    pub expected_changes: f64,
    /// Mean importance of one change, by the pattern.
    pub mean_importance: f64,
    /// Changes that feeds, sitemaps or pushes announced in this time.
    pub n_announced: u32,
}

/// Completeness without the truth. All are shares of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletenessEstimate {
    /// At most this: only what is known to have been missed counts.
    pub at_most: f64,
    /// What the patterns say.
    pub likely: f64,
    /// With 95 % confidence, if the patterns hold, at least this.
    pub at_least: f64,
    /// Importance captured.
    pub captured: f64,
    /// Importance surely missed: announced, and no capture can hold it.
    pub surely_missed: f64,
    /// Importance probably missed, by the patterns.
    pub probably_missed: f64,
}

/// Mean and variance of the number of versions that a gap hides.
fn hidden(gap: &Gap) -> (f64, f64) {
    let expected = if gap.expected_changes.is_finite() { gap.expected_changes.clamp(0.0, 1e6) } else { 0.0 };
    match (gap.is_closed, gap.difference) {
        (false, _) => (expected, expected),
        (true, None) => (0.0, 0.0),
        // A Poisson number that is known not to be 0, less the one that was captured.
        (true, Some(_)) if expected < 1e-6 => (0.0, 0.0),
        (true, Some(_)) => {
            let at_least_one = -(-expected).exp_m1();
            let mean = expected / at_least_one;
            let variance = (expected + expected * expected) / at_least_one - mean * mean;
            (mean - 1.0, variance.max(0.0))
        }
    }
}

fn surely_hidden(gap: &Gap) -> f64 {
    let captured = u32::from(gap.is_closed);
    f64::from(gap.n_announced.saturating_sub(captured))
}

/// Puts the gaps of any number of pages together.
pub fn completeness(gaps: impl IntoIterator<Item = Gap>) -> CompletenessEstimate {
    let (mut captured, mut surely, mut probably, mut variance) = (0.0, 0.0, 0.0, 0.0);
    for gap in gaps {
        let weight = if gap.weight.is_finite() { gap.weight.max(0.0) } else { 0.0 };
        let each = weight * gap.mean_importance.clamp(0.0, 1.0);
        let (mean, spread) = hidden(&gap);
        let sure = surely_hidden(&gap);
        captured += weight * gap.difference.unwrap_or(0.0).clamp(0.0, 1.0);
        surely += each * sure;
        probably += each * mean.max(sure);
        variance += each * each * spread;
    }
    let share = |missed: f64| if captured + missed > 0.0 { captured / (captured + missed) } else { 1.0 };
    let cautious = probably + CAUTIOUS_DEVIATIONS * variance.sqrt();
    CompletenessEstimate {
        at_most: share(surely),
        likely: share(probably),
        at_least: share(cautious),
        captured,
        surely_missed: surely,
        probably_missed: probably,
    }
}

/// A capture and the captures around it of the same page: when its content was first and last seen, and the
/// nearest captures that had other content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeenVersion {
    /// omega(P) times the importance of the version.
    pub weight: f64,
    /// Last capture of other content before it.
    pub other_before: Option<Timestamp>,
    /// First capture of this content.
    pub first_seen: Timestamp,
    /// Last capture of this content.
    pub last_seen: Timestamp,
    /// First capture of other content after it.
    pub other_after: Option<Timestamp>,
}

/// Coherence without the truth: it lies between the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoherenceEstimate {
    /// If every version lived only as long as it was seen.
    pub at_least: Coherence,
    /// If every version lived from the capture before to the capture after.
    pub at_most: Coherence,
}

/// Bounds on the coherence of one snapshot.
pub fn coherence_bounds(versions: &[SeenVersion]) -> CoherenceEstimate {
    let surely: Vec<ValidVersion> = versions
        .iter()
        .map(|seen| ValidVersion { weight: seen.weight, since: seen.first_seen, until: seen.last_seen })
        .collect();
    let possibly: Vec<ValidVersion> = versions
        .iter()
        .map(|seen| ValidVersion {
            weight: seen.weight,
            since: seen.other_before.unwrap_or(Timestamp::from_millis(i64::MIN)),
            until: seen.other_after.unwrap_or(Timestamp::from_millis(i64::MAX)),
        })
        .collect();
    CoherenceEstimate { at_least: coherence(&surely), at_most: coherence(&possibly) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gap(difference: Option<f64>, expected_changes: f64) -> Gap {
        Gap {
            weight: 1.0,
            difference,
            is_closed: true,
            expected_changes,
            mean_importance: 0.5,
            n_announced: 0,
        }
    }

    #[test]
    fn a_quiet_page_missed_nothing() {
        let estimate = completeness([gap(None, 3.0), gap(Some(0.5), 0.0)]);
        assert_eq!((estimate.at_most, estimate.likely, estimate.at_least), (1.0, 1.0, 1.0));
    }

    #[test]
    fn a_busy_gap_hides_what_the_pattern_expects() {
        // Five changes expected, one of them captured: about four were missed.
        let estimate = completeness([gap(Some(0.5), 5.0)]);
        assert!((estimate.probably_missed - 0.5 * (5.0 / (1.0 - (-5f64).exp()) - 1.0)).abs() < 1e-9);
        assert!(estimate.at_least < estimate.likely && estimate.likely < estimate.at_most);
    }

    #[test]
    fn announcements_are_sure() {
        let told = Gap { n_announced: 3, ..gap(Some(0.5), 0.1) };
        let estimate = completeness([told]);
        assert_eq!(estimate.surely_missed, 1.0);
        assert!(estimate.at_most < 0.34 && estimate.likely <= estimate.at_most);
        let open = Gap { is_closed: false, difference: None, ..gap(None, 2.0) };
        assert_eq!(completeness([open]).probably_missed, 1.0);
    }

    #[test]
    fn coherence_lies_between_seen_and_possible() {
        let at = Timestamp::from_secs;
        let seen = |before: i64, first: i64, last: i64, after: i64| SeenVersion {
            weight: 1.0,
            other_before: Some(at(before)),
            first_seen: at(first),
            last_seen: at(last),
            other_after: Some(at(after)),
        };
        let bounds = coherence_bounds(&[seen(0, 5, 6, 20), seen(2, 10, 12, 30)]);
        assert_eq!((bounds.at_least.count, bounds.at_most.count), (0.5, 1.0));
    }

    proptest! {
        #[test]
        fn bounds_are_in_order(
            list in prop::collection::vec(
                (0.0f64..9.0, prop::option::of(0.0f64..1.0), any::<bool>(), 0.0f64..50.0, 0.0f64..1.0, 0u32..5),
                0..30,
            )
        ) {
            let gaps = list.into_iter().map(|(weight, difference, is_closed, expected_changes, mean, n)| Gap {
                weight,
                difference: difference.filter(|_| is_closed),
                is_closed,
                expected_changes,
                mean_importance: mean,
                n_announced: n,
            });
            let estimate = completeness(gaps);
            prop_assert!((0.0..=1.0).contains(&estimate.at_least));
            prop_assert!(estimate.at_least <= estimate.likely && estimate.likely <= estimate.at_most);
            prop_assert!(estimate.at_most <= 1.0);
        }
    }
}
