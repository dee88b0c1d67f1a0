//! Captures and patterns, without the true changes -> what was surely and what was probably missed (docs/papers.md,
//! Estimates on a real archive).
//!
//! Between two captures of a page that differ, at least one version appeared, and the later capture holds the
//! last of them. Nobody saw how many came before it. The page's pattern says how many to expect and how sure that is.
//! Where two captures are alike it is assumed that nothing changed in between.

use super::{Coherence, ValidVersion, coherence};
use crate::time::Timestamp;

/// Deviations from the middle of an estimate to its cautious end, which 95 % of cases exceed.
const CAUTIOUS_DEVIATIONS: f64 = 1.645;

/// The time between two captures of a page, or from the last one to now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// omega(P): the importance of the page.
    pub weight: f64,
    /// Importance of the difference between the two captures; `None` when they are alike or the gap is still open.
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

/// Completeness where the true changes are unknown. The first three are shares from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletenessEstimate {
    /// Upper bound: only what was surely missed counts as missed.
    pub at_most: f64,
    /// The expected value by the patterns.
    pub likely: f64,
    /// Lower bound with 95 % confidence, if the patterns hold.
    pub at_least: f64,
    /// Importance captured.
    pub captured: f64,
    /// Importance surely missed: the change was announced, and no capture can hold it.
    pub surely_missed: f64,
    /// Importance probably missed, by the patterns.
    pub probably_missed: f64,
    /// The probability that there was any change, at the lower bound and at the expected value: 1 where one was seen or announced.
    pub chance_of_change: [f64; 2],
}

/// Mean and variance of the number of versions that a gap hides.
fn hidden(gap: &Gap) -> (f64, f64) {
    let expected = if gap.expected_changes.is_finite() { gap.expected_changes.clamp(0.0, 1e6) } else { 0.0 };
    match (gap.is_closed, gap.difference) {
        (false, _) => (expected, expected),
        (true, None) => (0.0, 0.0),
        // A Poisson number that is known not to be 0, less the one version that was captured.
        (true, Some(_)) if expected < 1e-6 => (0.0, 0.0),
        (true, Some(_)) => {
            let at_least_one = -(-expected).exp_m1();
            let mean = expected / at_least_one;
            let variance = (expected + expected * expected) / at_least_one - mean * mean;
            (mean - 1.0, variance.max(0.0))
        }
    }
}

/// Announced versions less the one that the later capture may hold. Where both captures are alike nothing was announced that a
/// reader could see.
fn surely_hidden(gap: &Gap) -> f64 {
    match (gap.is_closed, gap.difference) {
        (true, None) => 0.0,
        (is_closed, _) => f64::from(gap.n_announced.saturating_sub(u32::from(is_closed))),
    }
}

/// Estimates completeness from the gaps of any number of pages. Where no change was seen there is no share to speak of: it is 1
/// if nothing was missed and 0 otherwise, so its expected value is the probability that nothing was missed.
pub fn completeness(gaps: impl IntoIterator<Item = Gap>) -> CompletenessEstimate {
    let (mut captured, mut surely, mut probably, mut variance) = (0.0, 0.0, 0.0, 0.0);
    let (mut n_hidden, mut n_variance) = (0.0, 0.0);
    for gap in gaps {
        let weight = if gap.weight.is_finite() { gap.weight.max(0.0) } else { 0.0 };
        let each = weight * gap.mean_importance.clamp(0.0, 1.0);
        let (mean, spread) = hidden(&gap);
        let sure = surely_hidden(&gap);
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
        chance_of_change: match captured > 0.0 || surely > 0.0 {
            true => [1.0; 2],
            false => [-(-n_at_worst).exp_m1(), -(-n_hidden).exp_m1()],
        },
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

/// Bounds of coherence where the true changes are unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoherenceEstimate {
    /// Coherence if every version lived only from its first to its last capture.
    pub at_least: Coherence,
    /// Coherence if every version lived from the last capture of other content to the next one.
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

/// One look at a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sighting {
    /// When the page was looked at.
    pub at: Timestamp,
    /// Importance of what was new; `None` when it showed the same as the look before.
    pub new: Option<f64>,
}

/// A page's looks, and what others say of its changes.
#[derive(Clone, Copy, Debug)]
pub struct Watched<'a> {
    /// The looks, oldest first.
    pub looks: &'a [Sighting],
    /// The instants at which it changed, as feeds and sitemaps say, in order and each once.
    pub announced: &'a [Timestamp],
    /// omega(P): the importance of the page.
    pub weight: f64,
    /// Changes that are believed in beside those seen, in [`rate_per_hour`].
    pub prior_changes: f64,
}

/// The gaps between the looks at a page and the open one up to `now`. `believed` says how many changes the page's pattern expects
/// between two instants. Where it says nothing, they follow from the rate that the looks themselves show.
pub fn gaps_of(
    page: &Watched<'_>,
    now: Timestamp,
    believed: impl Fn(Timestamp, Timestamp) -> Option<f64>,
) -> Vec<Gap> {
    let looks = page.looks;
    let hours = |from: Timestamp, to: Timestamp| (to - from).as_hours_f64().max(0.0);
    let between = || looks.iter().zip(looks.iter().skip(1));
    let seen: Vec<(f64, bool)> =
        between().map(|(before, after)| (hours(before.at, after.at), after.new.is_some())).collect();
    let rate = rate_per_hour(&seen, page.prior_changes);
    let changes = || looks.iter().skip(1).filter_map(|look| look.new);
    let n_changes = changes().count();
    let mean_importance = if n_changes > 0 { changes().sum::<f64>() / n_changes as f64 } else { 0.5 };
    let gap = |from: Timestamp, to: Timestamp, difference: Option<f64>, is_closed: bool| Gap {
        weight: page.weight,
        difference,
        is_closed,
        expected_changes: believed(from, to).unwrap_or_else(|| rate * hours(from, to)),
        mean_importance,
        n_announced: n_between(page.announced, from, to),
    };
    let closed = between().map(|(before, after)| gap(before.at, after.at, after.new, true));
    let open = looks.last().map(|last| gap(last.at, now, None, false));
    let mut gaps: Vec<Gap> = closed.chain(open).collect();
    // A site that announces what no reader can see, such as the time at which its sitemap was made, is not believed.
    if gaps.iter().any(|gap| gap.is_closed && gap.difference.is_none() && gap.n_announced > 0) {
        gaps.iter_mut().for_each(|gap| gap.n_announced = 0);
    }
    gaps
}

/// How many of the instants, which are in order, are later than `from` and not later than `to`.
fn n_between(instants: &[Timestamp], from: Timestamp, to: Timestamp) -> u32 {
    let up_to = |end: Timestamp| instants.partition_point(|at| *at <= end);
    up_to(to).saturating_sub(up_to(from)) as u32
}

/// Changes that are believed in beside those seen of a page that changed.
pub const PRIOR_CHANGES: f64 = 0.5;

/// The same for a page that never changed: less where hardly any page of its site did.
pub fn prior_of_quiet(n_changed_pages: usize, n_pages: usize) -> f64 {
    PRIOR_CHANGES * (n_changed_pages as f64 + 0.5) / (n_pages as f64 + 1.0)
}

/// The Poisson rate under which the looks, given as (hours, whether changed), are most likely. Some changes are added, so
/// that a page that changed at every look has a finite rate and a page that never changed has a small one.
pub fn rate_per_hour(seen: &[(f64, bool)], prior_changes: f64) -> f64 {
    let total: f64 = seen.iter().map(|(hours, _)| hours).sum();
    if total <= 0.0 {
        return 0.0;
    }
    // The slope of the log-likelihood falls with the rate, so that its root is found by bisection.
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

/// The version of a page that is closest to an instant, and the looks around it, which are in order of time. Work: as many looks
/// as show that version.
pub fn seen_at(looks: &[Sighting], weight: f64, query: Timestamp) -> Option<SeenVersion> {
    let place = super::closest(looks, |look| look.at, query)?;
    let first = looks.get(..=place)?.iter().rposition(|look| look.new.is_some()).unwrap_or(0);
    let next = looks.iter().skip(place + 1).position(|look| look.new.is_some()).map(|n| place + 1 + n);
    let last = next.unwrap_or(looks.len()) - 1;
    let time = |place: usize| looks.get(place).map(|look| look.at);
    Some(SeenVersion {
        weight: weight * looks.get(first).and_then(|look| look.new).unwrap_or(1.0),
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

    fn looks(list: &[(i64, Option<f64>)]) -> Vec<Sighting> {
        list.iter().map(|(hour, new)| Sighting { at: Timestamp::from_secs(hour * 3600), new: *new }).collect()
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
    fn looks_become_gaps_and_snapshots() {
        let looks = looks(&[(0, Some(1.0)), (10, None), (20, Some(0.4)), (30, None)]);
        let page = Watched { looks: &looks, announced: &[], weight: 2.0, prior_changes: PRIOR_CHANGES };
        let gaps = gaps_of(&page, Timestamp::from_secs(40 * 3600), |_, _| None);
        assert_eq!(gaps.len(), 4);
        assert_eq!(gaps.iter().map(|gap| gap.difference).collect::<Vec<_>>(), [None, Some(0.4), None, None]);
        assert!(!gaps[3].is_closed && gaps[3].expected_changes > 0.0);
        let seen = seen_at(&looks, 2.0, Timestamp::from_secs(24 * 3600)).unwrap();
        assert_eq!((seen.first_seen.as_secs(), seen.last_seen.as_secs()), (20 * 3600, 30 * 3600));
        assert_eq!((seen.other_before.unwrap().as_secs(), seen.other_after), (10 * 3600, None));
        assert!((seen.weight - 0.8).abs() < 1e-12);
        assert_eq!(seen_at(&[], 1.0, Timestamp::EPOCH), None);
    }

    #[test]
    fn where_nothing_changed_nothing_was_probably_missed() {
        let looks = looks(&[(0, Some(1.0)), (10, None), (20, None), (30, None)]);
        let page =
            Watched { looks: &looks, announced: &[], weight: 1.0, prior_changes: prior_of_quiet(0, 1) };
        let estimate = completeness(gaps_of(&page, Timestamp::from_secs(31 * 3600), |_, _| None));
        assert!(estimate.likely > 0.95 && estimate.at_least > 0.5, "{estimate:?}");
        assert_eq!(estimate.at_most, 1.0);
        assert!(estimate.chance_of_change[1] < 0.05);
        // The longer nobody looks, the less sure it is.
        let later = completeness(gaps_of(&page, Timestamp::from_secs(3000 * 3600), |_, _| None));
        assert!(later.likely < estimate.likely && later.at_least < later.likely, "{later:?}");
    }

    #[test]
    fn announcements_are_counted_where_they_can_be_believed() {
        let at = |hour: i64| Timestamp::from_secs(hour * 3600);
        let looks = looks(&[(0, Some(1.0)), (10, Some(0.5)), (20, None)]);
        let gaps = |announced: &[Timestamp]| {
            let page = Watched { looks: &looks, announced, weight: 1.0, prior_changes: PRIOR_CHANGES };
            gaps_of(&page, at(30), |_, _| None)
        };
        let counts = |announced: &[Timestamp]| -> Vec<u32> {
            gaps(announced).iter().map(|gap| gap.n_announced).collect()
        };
        assert_eq!(counts(&[at(-5), at(2), at(5), at(9), at(25)]), [3, 0, 1]);
        let sure = completeness(gaps(&[at(2), at(5), at(9), at(25)]));
        assert_eq!((sure.surely_missed, sure.captured), (1.5, 0.5));
        // The third look showed no change: what was announced before it was none.
        assert_eq!(counts(&[at(2), at(5), at(9), at(15), at(25)]), [0, 0, 0]);
    }

    /// The version closest to an instant, by going through all looks.
    fn plainly_seen_at(looks: &[Sighting], weight: f64, query: Timestamp) -> Option<SeenVersion> {
        let apart = |look: &Sighting| (look.at - query).as_millis().abs();
        let closest = looks.iter().enumerate().min_by_key(|(place, look)| (apart(look), *place))?.0;
        let begins: Vec<usize> = (0..looks.len()).filter(|at| *at == 0 || looks[*at].new.is_some()).collect();
        let first = *begins.iter().rfind(|at| **at <= closest)?;
        let next = begins.iter().find(|at| **at > closest).copied();
        Some(SeenVersion {
            weight: weight * looks[first].new.unwrap_or(1.0),
            other_before: (first > 0).then(|| looks[first - 1].at),
            first_seen: looks[first].at,
            last_seen: looks[next.unwrap_or(looks.len()) - 1].at,
            other_after: next.map(|next| looks[next].at),
        })
    }

    proptest! {
        #[test]
        fn the_closest_version_is_the_one_that_all_looks_tell(
            list in prop::collection::btree_map(0i64..60, prop::option::of(0.0f64..1.0), 0..20),
            query in -5i64..65,
        ) {
            let list: Vec<(i64, Option<f64>)> = list.into_iter().collect();
            let (looks, query) = (looks(&list), Timestamp::from_secs(query * 3600));
            prop_assert_eq!(seen_at(&looks, 2.0, query), plainly_seen_at(&looks, 2.0, query));
        }

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
