//! Captures and patterns, without the true changes -> what was certainly and what was probably missed
//! (docs/papers.md, Estimates on a real archive).
//!
//! If two successive captures of a page differ, at least one version appeared in between, and the later capture
//! contains the last of them. The number of earlier ones is unknown. The page's pattern gives its mean and variance.
//! If two captures are equal, the page is assumed unchanged.

use super::{SnapshotCoherence, ValidVersion, coherence};
use crate::time::Timestamp;

/// The one-sided 95 % quantile in standard deviations.
const CAUTIOUS_DEVIATIONS: f64 = 1.645;

/// The time between two captures of a page, or from the last one until now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CaptureGap {
    pub weight: f64,
    /// Importance of the difference between the two captures; `None` if they are equal or the gap is open.
    pub difference: Option<f64>,
    /// Whether a capture ends the gap.
    pub is_closed: bool,
    /// Changes expected by the page's pattern.
    pub expected_changes: f64,
    /// Mean importance of one change, by the pattern.
    pub mean_importance: f64,
    /// Changes announced by feeds, sitemaps or pushes.
    pub n_announced: u32,
}

/// Completeness if the true changes are unknown. The first three are shares from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletenessEstimate {
    /// Upper bound: counts only what was certainly missed.
    pub at_most: f64,
    /// The expected value.
    pub likely: f64,
    /// Lower bound with 95 % confidence, if the patterns are correct.
    pub at_least: f64,
    pub captured: f64,
    /// Importance certainly missed: the change was announced, and no capture can contain it.
    pub surely_missed: f64,
    /// Importance probably missed, according to the patterns.
    pub probably_missed: f64,
    /// The probability of any change, at the lower bound and at the expected value: 1 if one was observed or
    /// announced.
    pub probability_of_change: [f64; 2],
}

/// Mean and variance of the number of versions hidden in a gap.
fn hidden_versions(gap: &CaptureGap) -> (f64, f64) {
    let expected = if gap.expected_changes.is_finite() { gap.expected_changes.clamp(0.0, 1e6) } else { 0.0 };
    match (gap.is_closed, gap.difference) {
        (false, _) => (expected, expected),
        (true, None) => (0.0, 0.0),
        // A Poisson number conditioned on not being 0, minus the captured version.
        (true, Some(_)) if expected < 1e-6 => (0.0, 0.0),
        (true, Some(_)) => {
            let at_least_one = -(-expected).exp_m1();
            let mean = expected / at_least_one;
            let variance = (expected + expected * expected) / at_least_one - mean * mean;
            (mean - 1.0, variance.max(0.0))
        }
    }
}

/// Announced versions minus the one that the later capture may contain. If both captures are equal, no announced
/// change was visible to readers.
fn certainly_hidden(gap: &CaptureGap) -> f64 {
    match (gap.is_closed, gap.difference) {
        (true, None) => 0.0,
        (is_closed, _) => f64::from(gap.n_announced.saturating_sub(u32::from(is_closed))),
    }
}

/// Estimates completeness from the gaps of any number of pages. Without an observed change, completeness is 1 if
/// nothing was missed and 0 otherwise. Its expected value is then the probability that nothing was missed.
pub fn completeness(gaps: impl IntoIterator<Item = CaptureGap>) -> CompletenessEstimate {
    let (mut captured, mut surely, mut probably, mut variance) = (0.0, 0.0, 0.0, 0.0);
    let (mut n_hidden, mut n_variance) = (0.0, 0.0);
    for gap in gaps {
        let weight = if gap.weight.is_finite() { gap.weight.max(0.0) } else { 0.0 };
        let each = weight * gap.mean_importance.clamp(0.0, 1.0);
        let (mean, spread) = hidden_versions(&gap);
        let sure = certainly_hidden(&gap);
        captured += weight * gap.difference.unwrap_or(0.0).clamp(0.0, 1.0);
        surely += each * sure;
        probably += each * mean.max(sure);
        variance += each * each * spread;
        if weight > 0.0 {
            n_hidden += mean.max(sure);
            n_variance += spread;
        }
    }
    let share = |missed: f64| if captured + missed > 0.0 { captured / (captured + missed) } else { 1.0 };
    let cautiously = |mean: f64, variance: f64| mean + CAUTIOUS_DEVIATIONS * variance.sqrt();
    let n_at_worst = cautiously(n_hidden, n_variance);
    let [likely, at_least] = if captured > 0.0 || surely > 0.0 {
        [share(probably), share(cautiously(probably, variance))]
    } else {
        [(-n_hidden).exp(), (-n_at_worst).exp()]
    };
    CompletenessEstimate {
        at_most: share(surely),
        likely,
        at_least,
        probability_of_change: match captured > 0.0 || surely > 0.0 {
            true => [1.0; 2],
            false => [-(-n_at_worst).exp_m1(), -(-n_hidden).exp_m1()],
        },
        captured,
        surely_missed: surely,
        probably_missed: probably,
    }
}

/// A version with the surrounding captures: when its content was first and last captured, and the nearest captures
/// with different content.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservedVersion {
    pub weight: f64,
    /// Last capture of different content before it.
    pub other_before: Option<Timestamp>,
    /// First capture of this content.
    pub first_seen: Timestamp,
    /// Last capture of this content.
    pub last_seen: Timestamp,
    /// First capture of different content after it.
    pub other_after: Option<Timestamp>,
}

/// Bounds of coherence if the true changes are unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoherenceEstimate {
    /// Coherence if every version lasted only from its first to its last capture.
    pub at_least: SnapshotCoherence,
    /// Coherence if every version lasted from the last capture of different content to the next one.
    pub at_most: SnapshotCoherence,
}

pub fn coherence_bounds(versions: &[ObservedVersion]) -> CoherenceEstimate {
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

/// An observation of a page with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedObservation {
    pub at: Timestamp,
    /// Importance of the change; `None` if the page was unchanged.
    pub new: Option<f64>,
}

/// A page's observations, and its announced changes.
#[derive(Clone, Copy, Debug)]
pub struct PageObservations<'a> {
    /// Oldest first.
    pub observations: &'a [TimedObservation],
    /// The instants of changes according to feeds and sitemaps, sorted and unique.
    pub announced: &'a [Timestamp],
    pub weight: f64,
    /// Added to the observed changes, see [`rate_per_hour`].
    pub prior_changes: f64,
}

/// The gaps between a page's observations, and the open one up to `now`. `believed` returns the changes that the
/// page's pattern expects between two instants. If it returns `None`, the rate of the observations applies.
pub fn capture_gaps(
    page: &PageObservations<'_>,
    now: Timestamp,
    estimated: impl Fn(Timestamp, Timestamp) -> Option<f64>,
) -> Vec<CaptureGap> {
    let observations = page.observations;
    let hours = |from: Timestamp, to: Timestamp| (to - from).as_hours_f64().max(0.0);
    let between = || observations.iter().zip(observations.iter().skip(1));
    let seen: Vec<(f64, bool)> =
        between().map(|(before, after)| (hours(before.at, after.at), after.new.is_some())).collect();
    let rate = rate_per_hour(&seen, page.prior_changes);
    let changes = || observations.iter().skip(1).filter_map(|observation| observation.new);
    let n_changes = changes().count();
    let mean_importance = if n_changes > 0 { changes().sum::<f64>() / n_changes as f64 } else { 0.5 };
    let gap = |from: Timestamp, to: Timestamp, difference: Option<f64>, is_closed: bool| CaptureGap {
        weight: page.weight,
        difference,
        is_closed,
        expected_changes: estimated(from, to).unwrap_or_else(|| rate * hours(from, to)),
        mean_importance,
        n_announced: n_between(page.announced, from, to),
    };
    let closed = between().map(|(before, after)| gap(before.at, after.at, after.new, true));
    let open = observations.last().map(|last| gap(last.at, now, None, false));
    let mut gaps: Vec<CaptureGap> = closed.chain(open).collect();
    // Ignores the announcements of a site if readers could not see some of them, such as the time at which its
    // sitemap was made.
    if gaps.iter().any(|gap| gap.is_closed && gap.difference.is_none() && gap.n_announced > 0) {
        gaps.iter_mut().for_each(|gap| gap.n_announced = 0);
    }
    gaps
}

/// The number of sorted instants after `from` and not after `to`.
fn n_between(instants: &[Timestamp], from: Timestamp, to: Timestamp) -> u32 {
    let up_to = |end: Timestamp| instants.partition_point(|at| *at <= end);
    up_to(to).saturating_sub(up_to(from)) as u32
}

/// Added to the observed changes of a page that changed.
pub const PRIOR_CHANGES: f64 = 0.5;

/// The same for a page that never changed: less if hardly any page of its site did.
pub fn quiet_prior(n_changed_pages: usize, n_pages: usize) -> f64 {
    PRIOR_CHANGES * (n_changed_pages as f64 + 0.5) / (n_pages as f64 + 1.0)
}

/// The Poisson rate with maximum likelihood, given (hours, whether changed) per observation. Some changes are added.
/// So a page that always changed has a finite rate, and a page that never changed has a small one.
pub fn rate_per_hour(seen: &[(f64, bool)], prior_changes: f64) -> f64 {
    let total: f64 = seen.iter().map(|(hours, _)| hours).sum();
    if total <= 0.0 {
        return 0.0;
    }
    // The slope of the log-likelihood falls with the rate, so bisection finds its root.
    let slope = |rate: f64| {
        let each = |(hours, changed): &(f64, bool)| {
            let x = rate * hours;
            if *changed { if x < 1e-9 { 1.0 / rate } else { hours / x.exp_m1() } } else { -hours }
        };
        prior_changes / rate - total / seen.len() as f64 + seen.iter().map(each).sum::<f64>()
    };
    let (mut low, mut high) = (1e-6 / total, 1e3 * seen.len() as f64 / total);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if slope(middle) > 0.0 { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}

/// The version of a page closest to an instant, from its sorted observations. The work is proportional to the number
/// of observations of that version.
pub fn version_at(
    observations: &[TimedObservation],
    weight: f64,
    query: Timestamp,
) -> Option<ObservedVersion> {
    let place = super::closest(observations, |observation| observation.at, query)?;
    let first =
        observations.get(..=place)?.iter().rposition(|observation| observation.new.is_some()).unwrap_or(0);
    let next = observations
        .iter()
        .skip(place + 1)
        .position(|observation| observation.new.is_some())
        .map(|n| place + 1 + n);
    let last = next.unwrap_or(observations.len()) - 1;
    let time = |place: usize| observations.get(place).map(|observation| observation.at);
    Some(ObservedVersion {
        weight: weight * observations.get(first).and_then(|observation| observation.new).unwrap_or(1.0),
        other_before: first.checked_sub(1).and_then(time),
        first_seen: time(first)?,
        last_seen: time(last)?,
        other_after: next.and_then(time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gap(difference: Option<f64>, expected_changes: f64) -> CaptureGap {
        CaptureGap {
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
        // Five changes expected, one captured: about four were missed.
        let estimate = completeness([gap(Some(0.5), 5.0)]);
        assert!((estimate.probably_missed - 0.5 * (5.0 / (1.0 - (-5f64).exp()) - 1.0)).abs() < 1e-9);
        assert!(estimate.at_least < estimate.likely && estimate.likely < estimate.at_most);
    }

    #[test]
    fn announcements_are_sure() {
        let announced = CaptureGap { n_announced: 3, ..gap(Some(0.5), 0.1) };
        let estimate = completeness([announced]);
        assert_eq!(estimate.surely_missed, 1.0);
        assert!(estimate.at_most < 0.34 && estimate.likely <= estimate.at_most);
        let open = CaptureGap { is_closed: false, difference: None, ..gap(None, 2.0) };
        assert_eq!(completeness([open]).probably_missed, 1.0);
    }

    #[test]
    fn coherence_lies_between_seen_and_possible() {
        let at = Timestamp::from_secs;
        let seen = |before: i64, first: i64, last: i64, after: i64| ObservedVersion {
            weight: 1.0,
            other_before: Some(at(before)),
            first_seen: at(first),
            last_seen: at(last),
            other_after: Some(at(after)),
        };
        let bounds = coherence_bounds(&[seen(0, 5, 6, 20), seen(2, 10, 12, 30)]);
        assert_eq!((bounds.at_least.count, bounds.at_most.count), (0.5, 1.0));
    }

    fn observations(list: &[(i64, Option<f64>)]) -> Vec<TimedObservation> {
        list.iter()
            .map(|(hour, new)| TimedObservation { at: Timestamp::from_secs(hour * 3600), new: *new })
            .collect()
    }

    #[test]
    fn the_rate_fits_what_was_seen() {
        // Changed in half of the hours: 1 - exp(-rate) = 1/2.
        let seen: Vec<(f64, bool)> = (0..1000).map(|n| (1.0, n % 2 == 0)).collect();
        assert!((rate_per_hour(&seen, PRIOR_CHANGES) - std::f64::consts::LN_2).abs() < 0.01);
        assert!(rate_per_hour(&[(1.0, true); 10], PRIOR_CHANGES).is_finite());
        assert!(rate_per_hour(&[(24.0, false); 10], PRIOR_CHANGES) < 0.01);
        assert_eq!(rate_per_hour(&[], PRIOR_CHANGES), 0.0);
    }

    #[test]
    fn observations_become_gaps_and_snapshots() {
        let observations = observations(&[(0, Some(1.0)), (10, None), (20, Some(0.4)), (30, None)]);
        let page = PageObservations {
            observations: &observations,
            announced: &[],
            weight: 2.0,
            prior_changes: PRIOR_CHANGES,
        };
        let gaps = capture_gaps(&page, Timestamp::from_secs(40 * 3600), |_, _| None);
        assert_eq!(gaps.len(), 4);
        assert_eq!(gaps.iter().map(|gap| gap.difference).collect::<Vec<_>>(), [None, Some(0.4), None, None]);
        assert!(!gaps[3].is_closed && gaps[3].expected_changes > 0.0);
        let seen = version_at(&observations, 2.0, Timestamp::from_secs(24 * 3600)).unwrap();
        assert_eq!((seen.first_seen.as_secs(), seen.last_seen.as_secs()), (20 * 3600, 30 * 3600));
        assert_eq!((seen.other_before.unwrap().as_secs(), seen.other_after), (10 * 3600, None));
        assert!((seen.weight - 0.8).abs() < 1e-12);
        assert_eq!(version_at(&[], 1.0, Timestamp::EPOCH), None);
    }

    #[test]
    fn where_nothing_changed_nothing_was_probably_missed() {
        let observations = observations(&[(0, Some(1.0)), (10, None), (20, None), (30, None)]);
        let page = PageObservations {
            observations: &observations,
            announced: &[],
            weight: 1.0,
            prior_changes: quiet_prior(0, 1),
        };
        let estimate = completeness(capture_gaps(&page, Timestamp::from_secs(31 * 3600), |_, _| None));
        assert!(estimate.likely > 0.95 && estimate.at_least > 0.5, "{estimate:?}");
        assert_eq!(estimate.at_most, 1.0);
        assert!(estimate.probability_of_change[1] < 0.05);
        // The estimate becomes less certain with time.
        let later = completeness(capture_gaps(&page, Timestamp::from_secs(3000 * 3600), |_, _| None));
        assert!(later.likely < estimate.likely && later.at_least < later.likely, "{later:?}");
    }

    #[test]
    fn only_credible_announcements_are_counted() {
        let at = |hour: i64| Timestamp::from_secs(hour * 3600);
        let observations = observations(&[(0, Some(1.0)), (10, Some(0.5)), (20, None)]);
        let gaps = |announced: &[Timestamp]| {
            let page = PageObservations {
                observations: &observations,
                announced,
                weight: 1.0,
                prior_changes: PRIOR_CHANGES,
            };
            capture_gaps(&page, at(30), |_, _| None)
        };
        let counts = |announced: &[Timestamp]| -> Vec<u32> {
            gaps(announced).iter().map(|gap| gap.n_announced).collect()
        };
        assert_eq!(counts(&[at(-5), at(2), at(5), at(9), at(25)]), [3, 0, 1]);
        let sure = completeness(gaps(&[at(2), at(5), at(9), at(25)]));
        assert_eq!((sure.surely_missed, sure.captured), (1.5, 0.5));
        // The third observation found no change, so the announcement before it was wrong.
        assert_eq!(counts(&[at(2), at(5), at(9), at(15), at(25)]), [0, 0, 0]);
    }

    /// Finds the closest version by scanning all observations.
    fn closest_by_scanning(
        observations: &[TimedObservation],
        weight: f64,
        query: Timestamp,
    ) -> Option<ObservedVersion> {
        let apart = |observation: &TimedObservation| (observation.at - query).as_millis().abs();
        let closest = observations
            .iter()
            .enumerate()
            .min_by_key(|(place, observation)| (apart(observation), *place))?
            .0;
        let begins: Vec<usize> =
            (0..observations.len()).filter(|at| *at == 0 || observations[*at].new.is_some()).collect();
        let first = *begins.iter().rfind(|at| **at <= closest)?;
        let next = begins.iter().find(|at| **at > closest).copied();
        Some(ObservedVersion {
            weight: weight * observations[first].new.unwrap_or(1.0),
            other_before: (first > 0).then(|| observations[first - 1].at),
            first_seen: observations[first].at,
            last_seen: observations[next.unwrap_or(observations.len()) - 1].at,
            other_after: next.map(|next| observations[next].at),
        })
    }

    proptest! {
        #[test]
        fn the_closest_version_is_the_one_of_all_observations(
            list in prop::collection::btree_map(0i64..60, prop::option::of(0.0f64..1.0), 0..20),
            query in -5i64..65,
        ) {
            let list: Vec<(i64, Option<f64>)> = list.into_iter().collect();
            let (observations, query) = (observations(&list), Timestamp::from_secs(query * 3600));
            prop_assert_eq!(version_at(&observations, 2.0, query), closest_by_scanning(&observations, 2.0, query));
        }

        #[test]
        fn bounds_are_in_order(
            list in prop::collection::vec(
                (0.0f64..9.0, prop::option::of(0.0f64..1.0), any::<bool>(), 0.0f64..50.0, 0.0f64..1.0, 0u32..5),
                0..30,
            )
        ) {
            let gaps = list.into_iter().map(|(weight, difference, is_closed, expected_changes, mean, n)| CaptureGap {
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
