//! The settings of `[[site]]` in perennial.toml for each page: weight, clock and group.

use perennial_core::schedule::rank::page_weight;
use perennial_core::schedule::{PageInfo, Scheduler};
use perennial_core::time::LocalClock;
use perennial_core::url::SiteId;
use url::Url;

use perennial_archive::Archive;
use perennial_archive::settings::{Seed, Seeds};
use perennial_archive::store::Store;

/// The user's settings of the followed sites.
#[derive(Clone, Default)]
pub struct FollowedSites(Seeds);

impl FollowedSites {
    /// Combines the archive's settings with the numbers that the state gave the seeds.
    pub fn load(archive: &Archive, store: &Store) -> anyhow::Result<FollowedSites> {
        let (seeds, known) = (archive.settings().seeds.clone(), store.seeds()?);
        let number = |seed: &Seed| known.get(seed.scope.seed.as_str()).copied().unwrap_or(0);
        let numbers = seeds.iter().map(number).collect();
        Ok(FollowedSites::from_seeds(seeds.numbered(numbers)))
    }

    /// From numbered seeds.
    pub fn from_seeds(seeds: Seeds) -> FollowedSites {
        FollowedSites(seeds)
    }

    /// Drops the goals of single sites, because the user set one goal for all.
    pub fn forget_goals(&mut self) {
        self.0.forget_goals();
    }

    /// Whether the user follows this seed and has not paused it.
    pub fn has_seed(&self, seed: i64) -> bool {
        self.0.with_number(seed).is_some_and(|seed| !seed.paused)
    }

    /// The site of a page, if it is paused.
    pub fn paused_site(&self, url: &str) -> Option<&Url> {
        self.seed_for(url).filter(|seed| seed.paused).map(|seed| &seed.scope.seed)
    }

    pub fn paused(&self) -> impl Iterator<Item = &Url> {
        self.0.iter().filter(|seed| seed.paused).map(|seed| &seed.scope.seed)
    }

    pub fn seed_weight(&self, seed: i64) -> f32 {
        self.0.with_number(seed).map_or(1.0, |seed| seed.weight as f32)
    }

    pub fn seed_tags(&self, seed: i64) -> &[String] {
        self.0.with_number(seed).map_or(&[], |seed| &seed.tags)
    }

    /// The scheduler's information about a new page. The weight is the user's, without PageRank.
    pub fn info(&self, seed: Option<i64>, url: &str, site: SiteId, scheduler: &mut Scheduler) -> PageInfo {
        let seed = seed.and_then(|seed| self.0.with_number(seed)).or_else(|| self.seed_for(url));
        let clock = seed.and_then(Seed::calendar);
        PageInfo {
            weight: seed.map_or(1.0, |seed| seed.weight as f32),
            clock: clock.map(|clock| scheduler.add_clock(clock)).unwrap_or_default(),
            goal: seed.and_then(|seed| seed.goal),
            group: PageInfo::directory_group(url),
            ..PageInfo::for_site(site)
        }
    }

    fn seed_for(&self, url: &str) -> Option<&Seed> {
        self.0.of_page(&Url::parse(url).ok()?)
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
