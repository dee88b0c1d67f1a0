//! Completeness, coherence and timeliness of captures, given all changes (P-QUALITY 5; docs/papers.md, Completeness and
//! SnapshotCoherence).
//!
//! In a simulation every change is known, so these measures are exact. The changes of the web are unknown;
//! [`perennial_core::quality::estimate`] gives bounds and expected values for an archive.

use perennial_core::page::importance::Importance;
use perennial_core::quality::{SnapshotCoherence, ValidVersion, closest, coherence, ratio};
use perennial_core::time::Timestamp;
use perennial_core::url::SiteId;

/// A change of a page, which creates a version.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub at: Timestamp,
    pub importance: Importance,
}

/// All changes and all captures of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageRecord<'a> {
    pub site: SiteId,
    /// omega(P): the importance of the page.
    pub weight: f64,
    /// Changes, oldest first.
    pub changes: &'a [Change],
    /// Captures, oldest first.
    pub captures: &'a [Timestamp],
}

/// The span whose changes count, from `from` (inclusive) to `until` (exclusive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: Timestamp,
    pub until: Timestamp,
}

impl Window {
    pub fn contains(self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}

/// Captured and existing versions of one page, by number and by importance, without the page's weight.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct PageCompleteness {
    /// Number of captured versions.
    pub n_captured: u32,
    /// Number of versions.
    pub n_existing: u32,
    /// Importance of the captured versions.
    pub captured: f64,
    /// Importance of all versions.
    pub existing: f64,
}

impl PageCompleteness {
    /// Definition 5.12; `None` for a page that never changed.
    pub fn share(&self) -> Option<f64> {
        (self.existing > 0.0).then(|| self.captured / self.existing)
    }

    /// The captured share of the versions, each counted 1; `None` for a page that never changed.
    pub fn count_share(&self) -> Option<f64> {
        (self.n_existing > 0).then(|| f64::from(self.n_captured) / f64::from(self.n_existing))
    }
}

/// The captured share by all published definitions. Each is 1 if nothing changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Completeness {
    /// Captured weight over total weight. A version weighs omega(P) times its importance (the text of P-PATTERN 9 and
    /// P-QUALITY 5.1).
    pub pooled: f64,
    /// Mean of the pages' own shares, weighted by omega(P) (Definition 5.13).
    pub weighted: f64,
    /// Definition 5.14, the mean of Definition 5.13 over sites.
    pub weighted_by_site: f64,
    /// Number of captured versions over number of versions.
    pub count: f64,
    /// Mean of the pages' captured shares of versions, with equal weights.
    pub unweighted: f64,
}

/// Counts the captured versions of a page in a window. A capture has the last change before it. Two captures of one
/// version count once (Definition 5.12).
pub fn page_completeness(page: &PageRecord<'_>, window: Window) -> PageCompleteness {
    let mut result = PageCompleteness::default();
    let first = page.changes.partition_point(|change| change.at < window.from);
    let mut captures = page.captures.iter().peekable();
    for (place, change) in page.changes.iter().enumerate().skip(first) {
        if change.at >= window.until {
            break;
        }
        let gone_at = page.changes.get(place + 1).map(|next| next.at);
        while captures.next_if(|capture| **capture < change.at).is_some() {}
        let is_captured = captures.peek().is_some_and(|capture| gone_at.is_none_or(|gone| **capture < gone));
        result.n_existing += 1;
        result.existing += change.importance.get();
        if is_captured {
            result.n_captured += 1;
            result.captured += change.importance.get();
        }
    }
    result
}

/// Sums over a group of pages, for its shares.
#[derive(Clone, Copy, Default)]
struct Sums {
    captured: f64,
    existing: f64,
    n_captured: f64,
    n_existing: f64,
    weighted_share: f64,
    weight: f64,
    share: f64,
    n_pages: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, page: &PageCompleteness) {
        self.captured += weight * page.captured;
        self.existing += weight * page.existing;
        self.n_captured += f64::from(page.n_captured);
        self.n_existing += f64::from(page.n_existing);
        if let Some(share) = page.share() {
            self.weighted_share += weight * share;
            self.weight += weight;
        }
        if let Some(share) = page.count_share() {
            self.share += share;
            self.n_pages += 1.0;
        }
    }
}

/// Completeness of an archive, from each page's weight, site and captured versions.
pub fn completeness(pages: impl IntoIterator<Item = (SiteId, f64, PageCompleteness)>) -> Completeness {
    let mut all = Sums::default();
    let mut sites: std::collections::BTreeMap<SiteId, Sums> = std::collections::BTreeMap::new();
    for (site, weight, page) in pages {
        all.add(weight, &page);
        sites.entry(site).or_default().add(weight, &page);
    }
    let alive: Vec<f64> = sites
        .values()
        .filter(|sums| sums.weight > 0.0)
        .map(|sums| ratio(sums.weighted_share, sums.weight))
        .collect();
    Completeness {
        pooled: ratio(all.captured, all.existing),
        weighted: ratio(all.weighted_share, all.weight),
        weighted_by_site: ratio(alive.iter().sum(), alive.len() as f64),
        count: ratio(all.n_captured, all.n_existing),
        unweighted: ratio(all.share, all.n_pages),
    }
}

/// The capture closest to an instant (Definition 4.24); the earlier one of two equally close.
pub fn closest_capture(captures: &[Timestamp], query: Timestamp) -> Option<Timestamp> {
    captures.get(closest(captures, |capture| *capture, query)?).copied()
}

/// The version of a page that answers a query, and its interval. A version before the first known change counts as a
/// first capture: importance 1, valid since ever.
pub fn valid_version(page: &PageRecord<'_>, query: Timestamp) -> Option<ValidVersion> {
    let capture = closest_capture(page.captures, query)?;
    let next = page.changes.partition_point(|change| change.at <= capture);
    let last = next.checked_sub(1).and_then(|place| page.changes.get(place));
    let importance = last.map_or(Importance::FULL, |change| change.importance);
    Some(ValidVersion {
        weight: page.weight * importance.get(),
        since: last.map_or(Timestamp::from_millis(i64::MIN), |change| change.at),
        until: page.changes.get(next).map_or(Timestamp::from_millis(i64::MAX), |change| change.at),
    })
}

/// How close an archive is to an instant (P-PATTERN 10 proposes both measures in addition to completeness).
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Timeliness {
    /// Share of pages, weighted by omega(P), whose last capture before the instant was up to date then.
    pub freshness: f64,
    /// Changes between the instant and the closest capture; mean over pages, weighted by omega(P). This is the blur of
    /// SHARC (Denev et al.). Pages without a capture are left out. A sharp snapshot has 0.
    pub blur: f64,
}

impl Timeliness {
    /// Mean over instants; 0 if there are none.
    pub fn mean(values: impl IntoIterator<Item = Timeliness>) -> Timeliness {
        let (mut sum, mut n) = (Timeliness::default(), 0.0);
        for value in values {
            sum.freshness += value.freshness;
            sum.blur += value.blur;
            n += 1.0;
        }
        let n = f64::max(n, 1.0);
        Timeliness { freshness: sum.freshness / n, blur: sum.blur / n }
    }
}

pub fn timeliness(pages: &[PageRecord<'_>], query: Timestamp) -> Timeliness {
    let (mut fresh, mut blurred, mut weight, mut captured) = (0.0, 0.0, 0.0, 0.0);
    for page in pages {
        let weight_of_page = if page.weight.is_finite() { page.weight.max(0.0) } else { 0.0 };
        weight += weight_of_page;
        let version_at = |at: Timestamp| page.changes.partition_point(|change| change.at <= at);
        let now = version_at(query);
        let last = page.captures.partition_point(|capture| *capture <= query).checked_sub(1);
        let is_fresh = last.is_some_and(|last| version_at(page.captures[last]) == now);
        fresh += if is_fresh { weight_of_page } else { 0.0 };
        if let Some(closest) = closest_capture(page.captures, query) {
            captured += weight_of_page;
            blurred += weight_of_page * version_at(closest).abs_diff(now) as f64;
        }
    }
    let blur = if captured > 0.0 { blurred / captured } else { 0.0 };
    Timeliness { freshness: ratio(fresh, weight), blur }
}

/// The coherence of an archive at an instant: the coherence of each site's closest versions, as the mean over sites.
pub fn archive_coherence(pages: &[PageRecord<'_>], query: Timestamp) -> SnapshotCoherence {
    mean_coherence(pages, query, |_| true)
}

/// Coherence without the versions before the first known change. Each of them weighs as much as the whole page, and all
/// of them are valid together. They would hide the effect of a strategy in the first days.
pub fn archive_coherence_of_changed(pages: &[PageRecord<'_>], query: Timestamp) -> SnapshotCoherence {
    mean_coherence(pages, query, |version| version.since > Timestamp::from_millis(i64::MIN))
}

fn mean_coherence(
    pages: &[PageRecord<'_>],
    query: Timestamp,
    counts: impl Fn(&ValidVersion) -> bool,
) -> SnapshotCoherence {
    let mut sites: std::collections::BTreeMap<SiteId, Vec<ValidVersion>> = std::collections::BTreeMap::new();
    for page in pages {
        if let Some(version) = valid_version(page, query).filter(&counts) {
            sites.entry(page.site).or_default().push(version);
        }
    }
    SnapshotCoherence::mean(sites.values().map(|versions| coherence(versions)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALWAYS: Window =
        Window { from: Timestamp::from_millis(i64::MIN), until: Timestamp::from_millis(i64::MAX) };

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn changes(list: &[(i64, f64)]) -> Vec<Change> {
        list.iter()
            .map(|(secs, importance)| Change { at: at(*secs), importance: Importance::new(*importance) })
            .collect()
    }

    fn of(changes: &[Change], captures: &[i64]) -> PageCompleteness {
        let captures: Vec<Timestamp> = captures.iter().map(|secs| at(*secs)).collect();
        let page = PageRecord { site: SiteId(0), weight: 1.0, changes, captures: &captures };
        page_completeness(&page, ALWAYS)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn a_fresh_page_shows_what_is_there_and_a_blurred_one_does_not() {
        let changes = changes(&[(10, 0.5), (20, 0.5), (30, 0.5)]);
        let captures = [at(12), at(33)];
        let page = PageRecord { site: SiteId(0), weight: 2.0, changes: &changes, captures: &captures };
        let never = PageRecord { weight: 1.0, captures: &[], ..page };
        for (query, freshness, blur) in
            [(15, 1.0, 0.0), (21, 0.0, 1.0), (24, 0.0, 1.0), (31, 0.0, 0.0), (40, 1.0, 0.0)]
        {
            let seen = timeliness(&[page], at(query));
            assert_eq!((seen.freshness, seen.blur), (freshness, blur), "{query}");
        }
        // A page without a capture is not fresh, and does not count in the blur.
        let both = timeliness(&[page, never], at(40));
        assert!(close(both.freshness, 2.0 / 3.0) && both.blur == 0.0);
        assert_eq!(Timeliness::mean([both, both]), both);
    }

    #[test]
    fn versions_before_any_known_change_can_be_left_out() {
        let (early, late, still) = (changes(&[(10, 0.5)]), changes(&[(20, 0.5)]), changes(&[]));
        let page = |changes, captures| PageRecord { site: SiteId(0), weight: 1.0, changes, captures };
        // The first page was captured before the second changed to its captured version, and had changed again by then.
        let (first, second, third) = ([at(12)], [at(25)], [at(13)]);
        let replaced = changes(&[(10, 0.5), (15, 0.5)]);
        let pages = [page(&replaced, &first), page(&late, &second), page(&still, &third)];
        assert!(close(archive_coherence(&pages, at(20)).weighted, 0.75));
        assert!(close(archive_coherence_of_changed(&pages, at(20)).weighted, 0.5));
        let pages = [page(&early, &first), page(&late, &second), page(&still, &third)];
        assert_eq!(archive_coherence_of_changed(&pages, at(20)), SnapshotCoherence::FULL);
    }

    #[test]
    fn example_5_11_site_completeness() {
        let first = of(&changes(&[(10, 0.1), (20, 0.6), (30, 0.5), (40, 0.2)]), &[25, 35]);
        let second = of(&changes(&[(10, 0.12), (20, 0.45)]), &[15]);
        assert!(close(first.share().unwrap(), 0.786));
        assert!(close(second.share().unwrap(), 0.2105));
        let site = completeness([(SiteId(0), 1.0, first), (SiteId(0), 1.0, second)]);
        assert!(close(site.weighted, 0.498));
        assert!(close(site.weighted_by_site, 0.498));
        assert!(close(site.pooled, 1.22 / 1.97));
        assert_eq!(site.count, 0.5);
        assert_eq!(site.unweighted, 0.5);
    }

    #[test]
    fn weights_and_sites_count_as_defined() {
        let all = PageCompleteness { n_captured: 1, n_existing: 1, captured: 0.5, existing: 0.5 };
        let none = PageCompleteness { captured: 0.0, n_captured: 0, existing: 0.25, n_existing: 1 };
        let result = completeness([(SiteId(0), 3.0, all), (SiteId(0), 1.0, none), (SiteId(1), 4.0, none)]);
        assert!(close(result.weighted, 3.0 / 8.0));
        assert!(close(result.weighted_by_site, (0.75 + 0.0) / 2.0));
        assert!(close(result.pooled, 1.5 / (1.5 + 0.25 + 1.0)));
        assert!(close(result.unweighted, 1.0 / 3.0));
    }

    #[test]
    fn two_captures_of_one_version_count_once_and_the_window_cuts() {
        let list = changes(&[(10, 0.5), (20, 0.5), (30, 0.5)]);
        assert_eq!(of(&list, &[21, 22, 23]).n_captured, 1);
        assert_eq!(of(&list, &[5]).n_captured, 0);
        assert_eq!(of(&list, &[10]).n_captured, 1);
        let captures = [at(12), at(29)];
        let page = PageRecord { site: SiteId(0), weight: 1.0, changes: &list, captures: &captures };
        let inside = page_completeness(&page, Window { from: at(15), until: at(30) });
        assert_eq!((inside.n_existing, inside.n_captured), (1, 1));
    }

    #[test]
    fn nothing_to_catch_is_nothing_missed() {
        assert_eq!(of(&[], &[1, 2]).share(), None);
        assert_eq!(completeness([]).pooled, 1.0);
        assert_eq!(coherence(&[]), SnapshotCoherence::FULL);
        assert_eq!(archive_coherence(&[], at(0)), SnapshotCoherence::FULL);
    }

    fn version(weight: f64, since: i64, until: i64) -> ValidVersion {
        ValidVersion { weight, since: at(since), until: at(until) }
    }

    #[test]
    fn the_closest_capture_answers() {
        let captures = [at(10), at(20), at(40)];
        assert_eq!(closest_capture(&captures, at(14)), Some(at(10)));
        assert_eq!(closest_capture(&captures, at(15)), Some(at(10)));
        assert_eq!(closest_capture(&captures, at(16)), Some(at(20)));
        assert_eq!(closest_capture(&captures, at(99)), Some(at(40)));
        assert_eq!(closest_capture(&[], at(99)), None);
    }

    #[test]
    fn a_version_is_valid_between_its_changes() {
        let list = changes(&[(10, 0.5), (30, 0.25)]);
        let captures = [at(5), at(12)];
        let page = PageRecord { site: SiteId(0), weight: 2.0, changes: &list, captures: &captures };
        assert_eq!(valid_version(&page, at(100)), Some(version(1.0, 10, 30)));
        let first = valid_version(&page, at(0)).unwrap();
        assert_eq!((first.weight, first.until), (2.0, at(10)));
    }

    /// Checks for each version whether any capture has it.
    fn brute_force_completeness(changes: &[Change], captures: &[Timestamp], window: Window) -> (u32, u32) {
        let shown = |place: usize| {
            captures.iter().any(|capture| {
                let last = changes.iter().rposition(|change| change.at <= *capture);
                last == Some(place)
            })
        };
        let inside = || (0..changes.len()).filter(|place| window.contains(changes[*place].at));
        (inside().filter(|place| shown(*place)).count() as u32, inside().count() as u32)
    }

    proptest! {
        #[test]
        fn one_pass_over_captures_equals_brute_force(
            mut times in prop::collection::vec(0i64..60, 0..30),
            mut visit_secs in prop::collection::vec(0i64..60, 0..30),
            from in 0i64..60, length in 0i64..60,
        ) {
            times.sort_unstable();
            visit_secs.sort_unstable();
            let list = changes(&times.iter().map(|secs| (*secs, 0.5)).collect::<Vec<_>>());
            let captures: Vec<Timestamp> = visit_secs.iter().map(|secs| at(*secs)).collect();
            let window = Window { from: at(from), until: at(from + length) };
            let page = PageRecord { site: SiteId(0), weight: 1.0, changes: &list, captures: &captures };
            let fast = page_completeness(&page, window);
            prop_assert_eq!(
                (fast.n_captured, fast.n_existing),
                brute_force_completeness(&list, &captures, window)
            );
        }
    }
}
