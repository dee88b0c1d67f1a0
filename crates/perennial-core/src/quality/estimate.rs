//! Captures and patterns, without the true changes -> what was certainly and what was probably missed
//! (docs/papers.md, Estimates on a real archive).
//!
//! If two successive captures of a page differ, at least one version appeared in between, and the later capture
//! contains the last of them. The number of earlier ones is unknown; [`hidden_versions`] estimates it from all gaps of
//! the page. If two captures are equal, the page is assumed unchanged.

use super::hidden::{CaptureGap, HiddenVersions, hidden_versions};
use super::{SnapshotCoherence, ValidVersion, coherence};
use crate::time::Timestamp;

/// The one-sided 95 % quantile in standard deviations.
const CAUTIOUS_DEVIATIONS: f64 = 1.645;
/// The correlation of the errors of two pages. Pages of one site are published in one way, but not at one time.
const CORRELATION: f64 = 0.5;

/// What a page's captures contain, and what they probably do not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageVersions {
    pub weight: f64,
    /// Captures that differ from the one before.
    pub n_captured: f64,
    /// Importance of these differences.
    pub captured: f64,
    /// Mean importance of one change.
    pub mean_importance: f64,
    /// Versions certainly missed: announced, and in no capture.
    pub n_surely_missed: f64,
    /// All missed versions.
    pub missed: HiddenVersions,
    /// Changes announced by feeds, sitemaps or pushes.
    pub n_announced: u32,
}

/// Completeness if the true changes are unknown. The first three are shares from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletenessEstimate {
    /// Upper bound with 95 % probability. It never counts less than what was certainly missed.
    pub at_most: f64,
    /// The expected value.
    pub likely: f64,
    /// Lower bound with 95 % probability.
    pub at_least: f64,
    pub captured: f64,
    /// Importance certainly missed: the change was announced, and no capture can contain it.
    pub surely_missed: f64,
    /// Importance probably missed.
    pub probably_missed: f64,
    /// The probability of any change, at the lower bound and at the expected value: 1 if one was observed or
    /// announced.
    pub probability_of_change: [f64; 2],
}

/// Estimates completeness of any number of pages. Without an observed change, completeness is 1 if nothing was missed
/// and 0 otherwise. Its expected value is then the probability that nothing was missed.
pub fn completeness(pages: impl IntoIterator<Item = PageVersions>) -> CompletenessEstimate {
    let (mut captured, mut surely) = (0.0, 0.0);
    let (mut missed, mut n_missed) = (ErrorSums::default(), ErrorSums::default());
    for page in pages {
        let weight = if page.weight.is_finite() { page.weight.max(0.0) } else { 0.0 };
        let each = weight * page.mean_importance.clamp(0.0, 1.0);
        captured += weight * page.captured.max(0.0);
        surely += each * page.n_surely_missed;
        missed.add(&page.missed, each);
        n_missed.add(&page.missed, f64::from(u8::from(weight > 0.0)));
    }
    let share = |missed: f64| if captured + missed > 0.0 { captured / (captured + missed) } else { 1.0 };
    let (missed, n_missed) = (missed.bounds(), n_missed.bounds());
    let has_changed = captured > 0.0 || surely > 0.0;
    let [at_least, likely, at_most] = match has_changed {
        true => [share(missed.most), share(missed.likely), share(missed.least.max(surely))],
        false => [(-n_missed.most).exp(), (-n_missed.likely).exp(), 1.0],
    };
    CompletenessEstimate {
        at_most,
        likely,
        at_least,
        probability_of_change: match has_changed {
            true => [1.0; 2],
            false => [-(-n_missed.most).exp_m1(), -(-n_missed.likely).exp_m1()],
        },
        captured,
        surely_missed: surely,
        probably_missed: missed.likely,
    }
}

/// Sums of likely values and of the distances to both bounds.
#[derive(Default)]
struct ErrorSums {
    likely: f64,
    below: [f64; 2],
    above: [f64; 2],
}

impl ErrorSums {
    fn add(&mut self, missed: &HiddenVersions, weight: f64) {
        self.likely += weight * missed.likely;
        for (sums, distance) in [
            (&mut self.below, weight * (missed.likely - missed.least)),
            (&mut self.above, weight * (missed.most - missed.likely)),
        ] {
            sums[0] += distance;
            sums[1] += distance * distance;
        }
    }

    /// The bounds of the sum. Independent errors partly cancel each other out, common ones do not.
    fn bounds(&self) -> HiddenVersions {
        let distance = |[sum, squares]: [f64; 2]| {
            (CORRELATION * sum * sum + (1.0 - CORRELATION) * squares).max(0.0).sqrt()
        };
        let likely = self.likely;
        HiddenVersions {
            least: (likely - distance(self.below)).max(0.0),
            likely,
            most: likely + distance(self.above),
        }
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
    /// Added to the observed changes of a page that never changed, see [`rate_per_hour`].
    pub prior_changes: f64,
}

/// The captured and missed versions of a page up to `now`. `estimated` returns the changes that the page's pattern
/// expects between two instants. If it returns `None`, the rate of the observations applies.
pub fn page_versions(
    page: &PageObservations<'_>,
    now: Timestamp,
    estimated: impl Fn(Timestamp, Timestamp) -> Option<f64>,
) -> PageVersions {
    let observations = page.observations;
    let hours = |from: Timestamp, to: Timestamp| (to - from).as_hours_f64().max(0.0);
    let pairs = || observations.iter().zip(observations.iter().skip(1));
    let gaps: Vec<CaptureGap> = pairs()
        .map(|(before, after)| CaptureGap {
            end: after.at,
            hours: hours(before.at, after.at),
            changed: after.new.is_some(),
        })
        .collect();
    let changes = || observations.iter().skip(1).filter_map(|observation| observation.new);
    let n_captured = changes().count() as f64;
    let captured: f64 = changes().sum();
    let announced = AnnouncedChanges::new(page, now);
    let mut missed = hidden_versions(&gaps);
    if let Some(last) = observations.last() {
        let open_hours = hours(last.at, now);
        let expected = estimated(last.at, now);
        missed = with_open_gap(missed, &gaps, page.prior_changes, open_hours, expected);
    }
    let sure = announced.n_surely_missed;
    PageVersions {
        weight: page.weight,
        n_captured,
        captured,
        mean_importance: if n_captured > 0.0 { captured / n_captured } else { 0.5 },
        n_surely_missed: sure,
        missed: HiddenVersions {
            least: missed.least.max(sure),
            likely: missed.likely.max(sure),
            most: missed.most.max(sure),
        },
        n_announced: announced.n,
    }
}

/// Adds the versions since the last capture. All of them are missing.
fn with_open_gap(
    missed: HiddenVersions,
    gaps: &[CaptureGap],
    prior_changes: f64,
    hours: f64,
    expected: Option<f64>,
) -> HiddenVersions {
    let n_captured = gaps.iter().filter(|gap| gap.changed).count() as f64;
    let total: f64 = gaps.iter().map(|gap| gap.hours).sum();
    let rate = |missed: f64| if total > 0.0 { (n_captured + missed) / total * hours } else { 0.0 };
    let likely = match (expected, n_captured > 0.0) {
        // The pattern knows the hours, but not whether a change that always comes is one or many.
        (Some(expected), true) => expected.clamp(0.0, rate(missed.most)),
        (None, true) => rate(missed.likely),
        (_, false) => rate_per_hour(gaps, prior_changes) * hours,
    };
    let deviation = CAUTIOUS_DEVIATIONS * likely.sqrt();
    HiddenVersions {
        least: missed.least + (likely - deviation).max(0.0),
        likely: missed.likely + likely,
        most: missed.most + likely + deviation,
    }
}

/// The announced changes of a page.
struct AnnouncedChanges {
    n: u32,
    n_surely_missed: f64,
}

impl AnnouncedChanges {
    /// AnnouncedChanges versions are missed, apart from the one that the later capture of a gap may contain. If readers could
    /// not see some announced change, such as the time at which a sitemap was made, all are ignored.
    fn new(page: &PageObservations<'_>, now: Timestamp) -> AnnouncedChanges {
        let (mut n, mut n_surely_missed) = (0, 0);
        for (before, after) in page.observations.iter().zip(page.observations.iter().skip(1)) {
            let here = n_between(page.announced, before.at, after.at);
            if here > 0 && after.new.is_none() {
                return AnnouncedChanges { n: 0, n_surely_missed: 0.0 };
            }
            n += here;
            n_surely_missed += here.saturating_sub(1);
        }
        let open = page.observations.last().map_or(0, |last| n_between(page.announced, last.at, now));
        AnnouncedChanges { n: n + open, n_surely_missed: f64::from(n_surely_missed + open) }
    }
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

/// The Poisson rate with maximum likelihood. Some changes are added. So a page that always changed has a finite rate,
/// and a page that never changed has a small one.
pub fn rate_per_hour(gaps: &[CaptureGap], prior_changes: f64) -> f64 {
    let total: f64 = gaps.iter().map(|gap| gap.hours).sum();
    if total <= 0.0 {
        return 0.0;
    }
    // The slope of the log-likelihood falls with the rate, so bisection finds its root.
    let slope = |rate: f64| {
        let each = |gap: &CaptureGap| {
            let x = rate * gap.hours;
            match gap.changed {
                true if x < 1e-9 => 1.0 / rate,
                true => gap.hours / x.exp_m1(),
                false => -gap.hours,
            }
        };
        prior_changes / rate - total / gaps.len() as f64 + gaps.iter().map(each).sum::<f64>()
    };
    let (mut low, mut high) = (1e-6 / total, 1e3 * gaps.len() as f64 / total);
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

    fn missed(least: f64, likely: f64, most: f64) -> PageVersions {
        PageVersions {
            weight: 1.0,
            n_captured: 1.0,
            captured: 0.5,
            mean_importance: 0.5,
            n_surely_missed: 0.0,
            missed: HiddenVersions { least, likely, most },
            n_announced: 0,
        }
    }

    #[test]
    fn bounds_are_those_of_the_missed_versions() {
        let none = completeness([missed(0.0, 0.0, 0.0)]);
        assert_eq!((none.at_most, none.likely, none.at_least), (1.0, 1.0, 1.0));
        let some = completeness([missed(1.0, 2.0, 4.0)]);
        assert!((some.at_most - 0.5).abs() < 1e-9 && (some.likely - 1.0 / 3.0).abs() < 1e-9);
        assert!((some.at_least - 0.2).abs() < 1e-9 && some.probably_missed == 1.0);
        // Errors of many pages partly cancel each other out.
        let many = completeness([missed(1.0, 2.0, 4.0); 9]);
        assert!(many.at_least > some.at_least && many.at_most < some.at_most);
        assert!((many.likely - some.likely).abs() < 1e-9);
    }

    #[test]
    fn announcements_are_sure() {
        let announced = PageVersions { n_surely_missed: 2.0, ..missed(2.0, 2.0, 2.0) };
        let estimate = completeness([announced]);
        assert_eq!(estimate.surely_missed, 1.0);
        assert!(estimate.at_most < 0.34 && estimate.likely <= estimate.at_most);
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
        let gap = |hours: f64, changed: bool| CaptureGap { end: Timestamp::EPOCH, hours, changed };
        let half: Vec<CaptureGap> = (0..1000).map(|n| gap(1.0, n % 2 == 0)).collect();
        assert!((rate_per_hour(&half, PRIOR_CHANGES) - std::f64::consts::LN_2).abs() < 0.01);
        assert!(rate_per_hour(&[gap(1.0, true); 10], PRIOR_CHANGES).is_finite());
        assert!(rate_per_hour(&[gap(24.0, false); 10], PRIOR_CHANGES) < 0.01);
        assert_eq!(rate_per_hour(&[], PRIOR_CHANGES), 0.0);
    }

    #[test]
    fn observations_become_versions_and_snapshots() {
        let observations = observations(&[(0, Some(1.0)), (10, None), (20, Some(0.4)), (30, None)]);
        let page = PageObservations {
            observations: &observations,
            announced: &[],
            weight: 2.0,
            prior_changes: PRIOR_CHANGES,
        };
        let hour = |hour: i64| Timestamp::from_secs(hour * 3600);
        let (at_once, later) =
            (page_versions(&page, hour(30), |_, _| None), page_versions(&page, hour(60), |_, _| None));
        assert_eq!((at_once.n_captured, at_once.captured, at_once.mean_importance), (1.0, 0.4, 0.4));
        assert!(later.missed.likely > at_once.missed.likely + 0.5, "{later:?}");
        // What the pattern expects since the last capture.
        let quiet = page_versions(&page, hour(60), |_, _| Some(0.0));
        assert_eq!(quiet.missed, at_once.missed);
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
        let estimate = completeness([page_versions(&page, Timestamp::from_secs(31 * 3600), |_, _| None)]);
        assert!(estimate.likely > 0.95 && estimate.at_least > 0.5, "{estimate:?}");
        assert_eq!(estimate.at_most, 1.0);
        assert!(estimate.probability_of_change[1] < 0.05);
        // The estimate becomes less certain with time.
        let later = completeness([page_versions(&page, Timestamp::from_secs(3000 * 3600), |_, _| None)]);
        assert!(later.likely < estimate.likely && later.at_least < later.likely, "{later:?}");
    }

    #[test]
    fn only_credible_announcements_are_counted() {
        let at = |hour: i64| Timestamp::from_secs(hour * 3600);
        let observations = observations(&[(0, Some(1.0)), (10, Some(0.5)), (20, None)]);
        let versions = |announced: &[Timestamp]| {
            let page = PageObservations {
                observations: &observations,
                announced,
                weight: 1.0,
                prior_changes: PRIOR_CHANGES,
            };
            page_versions(&page, at(30), |_, _| None)
        };
        let counts = |announced: &[Timestamp]| {
            let found = versions(announced);
            (found.n_announced, found.n_surely_missed)
        };
        assert_eq!(counts(&[at(-5), at(2), at(5), at(9), at(25)]), (4, 3.0));
        let sure = completeness([versions(&[at(2), at(5), at(9), at(25)])]);
        assert_eq!((sure.surely_missed, sure.captured), (1.5, 0.5));
        // The third observation found no change, so the announcement before it was wrong.
        assert_eq!(counts(&[at(2), at(5), at(9), at(15), at(25)]), (0, 0.0));
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
            list in prop::collection::vec((0i64..400, prop::option::of(0.01f64..1.0)), 0..30),
            announced in prop::collection::btree_set(0i64..500, 0..5),
            weight in 0.0f64..9.0,
        ) {
            let list: std::collections::BTreeMap<i64, Option<f64>> = list.into_iter().collect();
            let observations = observations(&list.into_iter().collect::<Vec<_>>());
            let announced: Vec<Timestamp> =
                announced.into_iter().map(|hour| Timestamp::from_secs(hour * 3600)).collect();
            let page = PageObservations {
                observations: &observations,
                announced: &announced,
                weight,
                prior_changes: PRIOR_CHANGES,
            };
            let estimate = completeness([page_versions(&page, Timestamp::from_secs(600 * 3600), |_, _| None)]);
            prop_assert!((0.0..=1.0).contains(&estimate.at_least));
            prop_assert!(estimate.at_least <= estimate.likely && estimate.likely <= estimate.at_most);
            prop_assert!(estimate.at_most <= 1.0);
        }
    }
}
