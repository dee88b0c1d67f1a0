//! A [`World`] holds the pages of a simulation and every change of them.
//!
//! It has the pages of some sites, their weights, and all changes within a span of time (P-QUALITY 7; docs/papers.md,
//! The papers' world). A seed draws the changes from the hourly patterns of [`WorldPageSpec`]s, or the changes come from a
//! trace.

pub use crate::quality::Change;
use perennial_core::page::importance::Importance;
use perennial_core::time::{LocalClock, Span, Timestamp};
use perennial_core::url::{PageId, SiteId};

use crate::rng::WorldRng;

/// Hours of a day: the periods of a true pattern.
pub const HOURS: usize = 24;

/// Concentration of the Beta distribution of single importances around their hourly mean.
const IMPORTANCE_CONCENTRATION: f64 = 4.0;

#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// The name in reports.
    pub name: String,
    pub start: Timestamp,
    /// The end, exclusive.
    pub end: Timestamp,
    /// Names of the sites; a [`SiteId`] is an index into this list.
    pub sites: Vec<String>,
    /// The pages; a [`PageId`] is an index into this list.
    pub pages: Vec<WorldPage>,
    /// The local clock of each site; sites without one use the clock of the experiment.
    pub clocks: Vec<LocalClock>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct WorldPage {
    /// A path or URL.
    pub name: String,
    pub site: SiteId,
    /// omega(P): the importance of the page.
    pub weight: f64,
    /// Changes, oldest first.
    pub changes: Vec<Change>,
    /// The pattern from which the changes were drawn, if any.
    pub truth: Option<TruePattern>,
}

/// A [`Change`] together with its page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeEvent {
    pub at: Timestamp,
    pub page: PageId,
    pub importance: Importance,
}

/// Rate and importance of changes in each hour of a day, UTC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DayProfile {
    /// Changes per hour.
    pub rate: [f64; HOURS],
    /// Mean importance of a change.
    pub importance: [f64; HOURS],
}

#[derive(Clone, Debug, PartialEq)]
pub struct TruePattern {
    /// Monday to Friday.
    pub workday: DayProfile,
    /// Saturday and Sunday.
    pub weekend: DayProfile,
}

/// A page whose changes [`World::from_specs`] draws.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldPageSpec {
    /// A path or URL.
    pub name: String,
    /// The site's name. Specifications with the same name share a site.
    pub site: String,
    /// omega(P): the importance of the page.
    pub weight: f64,
    pub pattern: TruePattern,
    /// The page never changes from this instant on.
    pub dies_at: Option<Timestamp>,
}

impl DayProfile {
    /// `shape`, scaled to `changes_per_day` changes per day and at most `max_per_hour` per hour.
    pub fn from_shape(
        shape: &[f64; HOURS],
        changes_per_day: f64,
        max_per_hour: f64,
        importance: [f64; HOURS],
    ) -> DayProfile {
        let sum: f64 = shape.iter().sum();
        let scale = if sum > 0.0 { changes_per_day / sum } else { 0.0 };
        DayProfile { rate: shape.map(|share| (share * scale).min(max_per_hour)), importance }
    }

    /// The profile, moved by some hours as in a different time zone.
    pub fn shifted(mut self, hours: usize) -> DayProfile {
        self.rate.rotate_right(hours % HOURS);
        self.importance.rotate_right(hours % HOURS);
        self
    }
}

impl TruePattern {
    /// The profile that holds at an instant.
    pub fn at(&self, instant: Timestamp) -> &DayProfile {
        if is_weekend(instant) { &self.weekend } else { &self.workday }
    }
}

impl WorldPage {
    /// The changes in (after, until]: the difference between copies made at these instants.
    pub fn changes_between(&self, after: Timestamp, until: Timestamp) -> &[Change] {
        let first = self.changes.partition_point(|change| change.at <= after);
        let last = self.changes.partition_point(|change| change.at <= until);
        self.changes.get(first..last).unwrap_or(&[])
    }

    /// The index of the last change at or before an instant, which is the current version.
    pub fn version_at(&self, instant: Timestamp) -> Option<usize> {
        self.changes.partition_point(|change| change.at <= instant).checked_sub(1)
    }
}

impl World {
    /// Draws the changes of `specs`: an inhomogeneous Poisson process per page, with Beta-distributed importances
    /// around the mean of the hour. Each page has its own random stream, so its changes depend only on the seed and its
    /// index.
    pub fn from_specs(name: &str, start: Timestamp, days: u32, specs: &[WorldPageSpec], seed: u64) -> World {
        let end = start + Span::from_hours(i64::from(days) * 24);
        let mut sites = SiteNames::default();
        let pages = specs.iter().enumerate().map(|(place, spec)| {
            let mut rng = WorldRng::fork(seed, place as u64);
            WorldPage {
                name: spec.name.clone(),
                site: sites.id(&spec.site),
                weight: spec.weight,
                changes: draw_changes(spec, start, end, &mut rng),
                truth: Some(spec.pattern.clone()),
            }
        });
        let pages = pages.collect();
        World { name: name.to_owned(), start, end, sites: sites.into_names(), pages, clocks: Vec::new() }
    }

    /// A world of given pages. Their changes are sorted, and the world spans all of them.
    pub fn from_pages(name: &str, sites: Vec<String>, mut pages: Vec<WorldPage>) -> World {
        for page in &mut pages {
            page.changes.sort_by_key(|change| change.at);
        }
        let times = || pages.iter().flat_map(|page| &page.changes).map(|change| change.at);
        let start = times().min().unwrap_or(Timestamp::EPOCH);
        let end = times().max().unwrap_or(Timestamp::EPOCH) + Span::from_secs(1);
        World { name: name.to_owned(), start, end, sites, pages, clocks: Vec::new() }
    }

    /// All changes of all pages, sorted by time.
    pub fn events(&self) -> Vec<ChangeEvent> {
        let mut events: Vec<ChangeEvent> = Vec::with_capacity(self.n_changes());
        for (place, page) in self.pages.iter().enumerate() {
            let page_id = PageId(place as u32);
            events.extend(page.changes.iter().map(|change| ChangeEvent {
                at: change.at,
                page: page_id,
                importance: change.importance,
            }));
        }
        events.sort_by_key(|event| (event.at, event.page));
        events
    }

    pub fn n_changes(&self) -> usize {
        self.pages.iter().map(|page| page.changes.len()).sum()
    }

    pub fn hours(&self) -> f64 {
        (self.end - self.start).as_hours_f64()
    }
}

/// Names of sites, numbered by first appearance.
#[derive(Default)]
pub struct SiteNames {
    names: Vec<String>,
    ids: std::collections::HashMap<String, SiteId>,
}

impl SiteNames {
    pub fn id(&mut self, name: &str) -> SiteId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = SiteId(self.names.len() as u32);
        self.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// All names, sorted by number.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// Saturday or Sunday, UTC.
pub fn is_weekend(instant: Timestamp) -> bool {
    // 1970-01-01 was a Thursday.
    let day = instant.as_secs().div_euclid(86_400);
    (day + 3).rem_euclid(7) >= 5
}

/// The hour of the day, UTC.
pub fn hour_of_day(instant: Timestamp) -> usize {
    (instant.as_secs().rem_euclid(86_400) / 3600) as usize
}

/// Takes exponential steps in the integrated rate, hour by hour. The rest of a step carries over to the next hour.
fn draw_changes(spec: &WorldPageSpec, start: Timestamp, end: Timestamp, rng: &mut WorldRng) -> Vec<Change> {
    let end = spec.dies_at.map_or(end, |dies_at| dies_at.min(end));
    let mut changes = Vec::new();
    let mut hour_start = start;
    let mut until_next = rng.exponential();
    while hour_start < end {
        let profile = spec.pattern.at(hour_start);
        let hour = hour_of_day(hour_start);
        let rate = profile.rate[hour].max(0.0);
        let mut passed = 0.0;
        while rate > 0.0 && passed + until_next / rate < 1.0 {
            passed += until_next / rate;
            until_next = rng.exponential();
            let at = hour_start + Span::from_millis((passed * 3.6e6) as i64);
            let importance = Importance::new(rng.beta(profile.importance[hour], IMPORTANCE_CONCENTRATION));
            if at < end {
                changes.push(Change { at, importance });
            }
        }
        until_next -= (1.0 - passed) * rate;
        hour_start = hour_start + Span::from_hours(1);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monday() -> Timestamp {
        Timestamp::parse("2026-01-05").unwrap()
    }

    fn spec(pattern: TruePattern) -> WorldPageSpec {
        WorldPageSpec { name: "/".to_owned(), site: "a".to_owned(), weight: 1.0, pattern, dies_at: None }
    }

    fn flat(rate: f64, importance: f64) -> DayProfile {
        DayProfile { rate: [rate; HOURS], importance: [importance; HOURS] }
    }

    fn daily(profile: DayProfile) -> TruePattern {
        TruePattern { workday: profile, weekend: profile }
    }

    #[test]
    fn the_calendar_is_that_of_utc() {
        assert!(!is_weekend(monday()));
        assert!(is_weekend(Timestamp::parse("2026-01-10T00:00:00Z").unwrap()));
        assert!(is_weekend(Timestamp::parse("2026-01-11T23:59:59Z").unwrap()));
        assert!(!is_weekend(Timestamp::parse("2026-01-09T23:59:59Z").unwrap()));
        assert_eq!(hour_of_day(Timestamp::parse("2026-01-09T23:59:59Z").unwrap()), 23);
    }

    #[test]
    fn counts_follow_the_rates_of_each_hour_and_day() {
        let mut workday = flat(0.0, 0.5);
        workday.rate[9] = 2.0;
        let pattern = TruePattern { workday, weekend: flat(0.25, 0.1) };
        let specs: Vec<WorldPageSpec> = (0..50).map(|_| spec(pattern.clone())).collect();
        let world = World::from_specs("test", monday(), 28, &specs, 1);
        let (mut at_nine, mut on_weekends) = (0, 0);
        for event in world.events() {
            if is_weekend(event.at) {
                on_weekends += 1;
            } else {
                assert_eq!(hour_of_day(event.at), 9);
                at_nine += 1;
            }
        }
        let (expected_nine, expected_weekend) = (50.0 * 20.0 * 2.0, 50.0 * 8.0 * 24.0 * 0.25);
        assert!((f64::from(at_nine) / expected_nine - 1.0).abs() < 0.08, "{at_nine}");
        assert!((f64::from(on_weekends) / expected_weekend - 1.0).abs() < 0.08, "{on_weekends}");
    }

    #[test]
    fn the_same_seed_gives_the_same_world_and_pages_are_independent() {
        let one = spec(daily(flat(0.5, 0.4)));
        let few = World::from_specs("w", monday(), 7, std::slice::from_ref(&one), 5);
        let more = World::from_specs("w", monday(), 7, &[one.clone(), one.clone()], 5);
        assert_eq!(few.pages[0], more.pages[0]);
        assert_ne!(more.pages[0].changes, more.pages[1].changes);
        assert_ne!(World::from_specs("w", monday(), 7, std::slice::from_ref(&one), 6).pages, few.pages);
    }

    #[test]
    fn a_dead_page_stands_still() {
        let mut dying = spec(daily(flat(1.0, 0.4)));
        let dies_at = monday() + Span::from_hours(48);
        dying.dies_at = Some(dies_at);
        let world = World::from_specs("w", monday(), 7, &[dying], 5);
        assert!(!world.pages[0].changes.is_empty());
        assert!(world.pages[0].changes.iter().all(|change| change.at < dies_at));
    }

    #[test]
    fn versions_and_differences() {
        let change = |secs| Change { at: Timestamp::from_secs(secs), importance: Importance::new(0.5) };
        let page = WorldPage {
            name: "p".to_owned(),
            site: SiteId(0),
            weight: 1.0,
            changes: vec![change(30), change(10), change(20)],
            truth: None,
        };
        let world = World::from_pages("w", vec!["s".to_owned()], vec![page]);
        let page = &world.pages[0];
        assert_eq!(page.version_at(Timestamp::from_secs(9)), None);
        assert_eq!(page.version_at(Timestamp::from_secs(20)), Some(1));
        assert_eq!(page.changes_between(Timestamp::from_secs(10), Timestamp::from_secs(30)).len(), 2);
        assert!(page.changes_between(Timestamp::from_secs(30), Timestamp::from_secs(10)).is_empty());
        assert_eq!((world.start.as_secs(), world.end.as_secs()), (10, 31));
    }
}
