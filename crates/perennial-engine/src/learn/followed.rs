//! The settings of perennial.toml for each page: weight, clock, group and interval.

use std::collections::HashMap;

use perennial_core::notice::PageFilter;
use perennial_core::schedule::rank::page_weight;
use perennial_core::schedule::{Budget, Every, PageInfo, Scheduler};
use perennial_core::time::{LocalClock, Span};
use perennial_core::url::SiteId;
use perennial_core::url::scope::ScopeKind;
use url::Url;

use perennial_archive::Archive;
use perennial_archive::settings::{Seed, Seeds, Settings, VisitTimes};
use perennial_archive::store::Store;

/// A watched page without an interval is visited this often, because its next change is unknown and somebody waits
/// for it.
pub const WATCH_INTERVAL: Span = Span::from_secs(15 * 60);

/// The user's settings of the followed sites and watched pages.
#[derive(Clone)]
pub struct FollowedSites {
    seeds: Seeds,
    /// The watched pages by URL, with the times that they have of their own.
    watched: HashMap<String, VisitTimes>,
    /// The interval of a watched page without one; `None` if the strategy visits all pages at an interval.
    watch_interval: Option<Span>,
}

impl FollowedSites {
    /// Combines the archive's settings with the numbers that the state gave the seeds.
    pub fn load(archive: &Archive, store: &Store) -> anyhow::Result<FollowedSites> {
        let (seeds, known) = (archive.settings().seeds.clone(), store.seeds()?);
        let number = |seed: &Seed| known.get(seed.scope.seed.as_str()).copied().unwrap_or(0);
        let numbers = seeds.iter().map(number).collect();
        let watched = watched_pages(archive.settings());
        let mut followed = FollowedSites { watched, ..FollowedSites::from_seeds(seeds.numbered(numbers)) };
        followed.fit_to(archive.settings().crawl.allowance.visits);
        Ok(followed)
    }

    /// From numbered seeds, without watched pages.
    pub fn from_seeds(seeds: Seeds) -> FollowedSites {
        FollowedSites { seeds, watched: HashMap::new(), watch_interval: Some(WATCH_INTERVAL) }
    }

    /// Stretches the interval of watched pages without one, so they need at most half of the budget.
    pub fn fit_to(&mut self, budget: Option<Budget>) {
        let own = |(url, times): &(&String, &VisitTimes)| {
            times.every.or_else(|| self.seed_for(url)?.times.every).is_none()
        };
        let n_pages = self.watched.iter().filter(own).count() as f64;
        let per_hour = budget.map_or(f64::INFINITY, |budget| budget.visits_in(Span::from_hours(1)) / 2.0);
        let needed = Span::from_millis((n_pages / per_hour * 3_600_000.0).min(1e15) as i64);
        self.watch_interval = Some(WATCH_INTERVAL.max(needed));
    }

    /// Visits watched pages without an interval like all others, because the user chose one interval for all pages.
    pub fn forget_watch_interval(&mut self) {
        self.watch_interval = None;
    }

    /// How often a page is visited, if not when a change is expected.
    pub fn every(&self, url: &str, seed: Option<&Seed>) -> Option<Every> {
        let own = self.watched.get(url);
        let of_site = seed.map(|seed| &seed.times);
        let every = own.and_then(|own| own.every).or_else(|| of_site.and_then(|times| times.every));
        let hours = own.and_then(|own| own.hours.clone());
        Some(Every {
            interval: every.or_else(|| own.and(self.watch_interval))?,
            hours: hours.or_else(|| of_site.and_then(|times| times.hours.clone())),
        })
    }

    pub(super) fn seeds(&self) -> &Seeds {
        &self.seeds
    }

    /// How often a page is visited, by the settings that apply to its URL.
    pub fn visit_interval(&self, url: &str) -> Option<Every> {
        self.every(url, self.seed_for(url))
    }

    /// How often a feed of a seed is polled, if not when items are expected, and on which clock.
    pub fn poll_interval(&self, url: &str, seed: i64) -> Option<(Every, LocalClock)> {
        let seed = self.seeds.with_number(seed);
        let clock = seed.and_then(Seed::calendar).unwrap_or_default();
        Some((self.every(url, seed)?, clock))
    }

    /// Drops the goals of single sites, because the user set one goal for all.
    pub fn forget_goals(&mut self) {
        self.seeds.forget_goals();
    }

    /// Whether the user follows this seed and has not paused it.
    pub fn has_seed(&self, seed: i64) -> bool {
        self.seeds.with_number(seed).is_some_and(|seed| !seed.paused)
    }

    /// The site of a page, if it is paused.
    pub fn paused_site(&self, url: &str) -> Option<&Url> {
        self.seed_for(url).filter(|seed| seed.paused).map(|seed| &seed.scope.seed)
    }

    pub fn paused(&self) -> impl Iterator<Item = &Url> {
        self.seeds.iter().filter(|seed| seed.paused).map(|seed| &seed.scope.seed)
    }

    pub fn seed_weight(&self, seed: i64) -> f32 {
        self.seeds.with_number(seed).map_or(1.0, |seed| seed.weight as f32)
    }

    pub fn seed_tags(&self, seed: i64) -> &[String] {
        self.seeds.with_number(seed).map_or(&[], |seed| &seed.tags)
    }

    /// The scheduler's information about a new page. The weight is the user's, without PageRank.
    pub fn info(&self, seed: Option<i64>, url: &str, site: SiteId, scheduler: &mut Scheduler) -> PageInfo {
        let seed = seed.and_then(|seed| self.seeds.with_number(seed)).or_else(|| self.seed_for(url));
        let clock = seed.and_then(Seed::calendar);
        PageInfo {
            every: self.every(url, seed),
            weight: seed.map_or(1.0, |seed| seed.weight as f32),
            clock: clock.map(|clock| scheduler.add_clock(clock)).unwrap_or_default(),
            goal: seed.and_then(|seed| seed.goal),
            group: PageInfo::directory_group(url),
            ..PageInfo::for_site(site)
        }
    }

    fn seed_for(&self, url: &str) -> Option<&Seed> {
        self.seeds.of_page(&Url::parse(url).ok()?)
    }

    /// omega(P) of a page with this PageRank.
    pub fn page_weight(&self, url: &str, page_rank: f32) -> f32 {
        page_weight(page_rank, self.seed_for(url).map_or(1.0, |seed| seed.weight as f32))
    }

    /// The clock of the page's site, if the user set holidays or a time zone other than UTC.
    pub fn local_clock(&self, url: &str) -> Option<LocalClock> {
        self.seed_for(url)?.calendar().filter(|clock| clock.zone() != "UTC" || clock.has_holidays())
    }
}

/// Pages with their own tables, sites of one page, and pages that a notification rule names.
fn watched_pages(settings: &Settings) -> HashMap<String, VisitTimes> {
    let sites = settings.seeds.iter().filter(|seed| seed.scope.kind == ScopeKind::Page);
    let sites = sites.map(|seed| seed.scope.seed.to_string());
    let rules = settings.notify.iter().filter_map(|rule| match &rule.condition.place {
        PageFilter::Page(url) => Some(url.clone()),
        PageFilter::Site(_) | PageFilter::Anywhere => None,
    });
    let mut watched: HashMap<String, VisitTimes> =
        sites.chain(rules).map(|url| (url, VisitTimes::default())).collect();
    watched.extend(settings.pages.iter().map(|page| (page.url.to_string(), page.times.clone())));
    watched
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn followed(text: &str) -> FollowedSites {
        let settings = Settings::parse(Path::new("perennial.toml"), text).unwrap();
        let watched = watched_pages(&settings);
        FollowedSites { watched, ..FollowedSites::from_seeds(settings.seeds) }
    }

    fn minutes(followed: &FollowedSites, url: &str) -> Option<i64> {
        followed.visit_interval(url).map(|every| every.interval.as_millis() / 60_000)
    }

    const SITES: &str = "[[site]]\nurl = \"https://a.org/\"\n[[site]]\nurl = \"https://b.org/\"\nevery = \"30m\"\n\
        hours = \"Mon-Fri 08:00-18:00\"\n[[site]]\nurl = \"https://c.org/x\"\nscope = \"page\"\n\
        [[page]]\nurl = \"https://a.org/p\"\nevery = \"5m\"\n[[page]]\nurl = \"https://b.org/p\"\nevery = \"1m\"\n\
        [[notify]]\nname = \"r\"\nto = \"email:a@b.org\"\nplace = \"https://a.org/q\"\n";

    #[test]
    fn the_interval_of_a_page_comes_before_that_of_its_site() {
        let followed = followed(SITES);
        for (url, expected) in [
            ("https://a.org/", None),
            ("https://a.org/p", Some(5)),
            ("https://b.org/y", Some(30)),
            ("https://b.org/p", Some(1)),
            ("https://c.org/x", Some(15)),
            ("https://a.org/q", Some(15)),
        ] {
            assert_eq!(minutes(&followed, url), expected, "{url}");
        }
        let hours = followed.visit_interval("https://b.org/p").and_then(|every| every.hours);
        assert_eq!(hours.map(|hours| hours.to_string()).as_deref(), Some("Mon-Fri 08:00-18:00"));
    }

    #[test]
    fn one_interval_for_all_pages_leaves_only_those_that_were_set() {
        let mut followed = followed(SITES);
        followed.forget_watch_interval();
        let found =
            ["https://c.org/x", "https://a.org/q", "https://a.org/p"].map(|url| minutes(&followed, url));
        assert_eq!(found, [None, None, Some(5)]);
    }

    #[test]
    fn watched_pages_without_an_interval_leave_half_of_a_small_budget() {
        let mut followed = followed(SITES);
        let hour = Span::from_hours(1);
        // Two pages have no interval.
        for (visits, expected) in [(100.0, 15), (16.0, 15), (4.0, 60), (1.0, 240)] {
            followed.fit_to(Some(Budget { visits, period: hour }));
            assert_eq!(minutes(&followed, "https://c.org/x"), Some(expected), "{visits}");
            assert_eq!(minutes(&followed, "https://a.org/p"), Some(5));
        }
    }
}
