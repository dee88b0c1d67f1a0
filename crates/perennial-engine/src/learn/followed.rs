//! `[[site]]` of perennial.toml -> weight, clock and group of each page.

use perennial_core::schedule::rank::page_weight;
use perennial_core::schedule::{PageInfo, Scheduler};
use perennial_core::time::LocalClock;
use perennial_core::url::SiteId;
use url::Url;

use perennial_archive::Archive;
use perennial_archive::settings::{Seed, Seeds};
use perennial_archive::store::Store;

/// The user's settings of the sites that are followed.
#[derive(Clone, Default)]
pub struct FollowedSites(Seeds);

impl FollowedSites {
    /// From the archive's settings; the state knows the numbers of the seeds.
    pub fn load(archive: &Archive, store: &Store) -> anyhow::Result<FollowedSites> {
        let (seeds, known) = (archive.settings().seeds.clone(), store.seeds()?);
        let number = |seed: &Seed| known.get(seed.scope.seed.as_str()).copied().unwrap_or(0);
        let numbers = seeds.iter().map(number).collect();
        Ok(FollowedSites::from_seeds(seeds.numbered(numbers)))
    }

    /// From seeds that have their numbers.
    pub fn from_seeds(seeds: Seeds) -> FollowedSites {
        FollowedSites(seeds)
    }

    /// Lets no site have a goal of its own, because the user asks for one goal of all.
    pub fn forget_goals(&mut self) {
        self.0.forget_goals();
    }

    /// Whether the user still follows the seed of this number and has not paused it.
    pub fn has_seed(&self, seed: i64) -> bool {
        self.0.with_number(seed).is_some_and(|seed| !seed.paused)
    }

    /// The site of a page, if it is paused.
    pub fn paused_site(&self, url: &str) -> Option<&Url> {
        self.seed_for(url).filter(|seed| seed.paused).map(|seed| &seed.scope.seed)
    }

    /// The sites that are paused.
    pub fn paused(&self) -> impl Iterator<Item = &Url> {
        self.0.iter().filter(|seed| seed.paused).map(|seed| &seed.scope.seed)
    }

    /// The user's weight of the pages of a seed.
    pub fn seed_weight(&self, seed: i64) -> f32 {
        self.0.with_number(seed).map_or(1.0, |seed| seed.weight as f32)
    }

    /// The user's tags of the site of a seed.
    pub fn seed_tags(&self, seed: i64) -> &[String] {
        self.0.with_number(seed).map_or(&[], |seed| &seed.tags)
    }

    /// What the scheduler is told of a new page. Its weight is the user's, without PageRank.
    pub fn info(&self, seed: Option<i64>, url: &str, site: SiteId, scheduler: &mut Scheduler) -> PageInfo {
        let seed = seed.and_then(|seed| self.0.with_number(seed)).or_else(|| self.seed_for(url));
        let clock = seed.and_then(Seed::calendar);
        PageInfo {
            weight: seed.map_or(1.0, |seed| seed.weight as f32),
            clock: clock.map(|clock| scheduler.add_clock(clock)).unwrap_or_default(),
            goal: seed.and_then(|seed| seed.goal),
            group: PageInfo::group_of(url),
            ..PageInfo::of_site(site)
        }
    }

    fn seed_for(&self, url: &str) -> Option<&Seed> {
        self.0.of_page(&Url::parse(url).ok()?)
    }

    /// omega(P) of a page with this PageRank.
    pub fn page_weight(&self, url: &str, page_rank: f32) -> f32 {
        page_weight(page_rank, self.seed_for(url).map_or(1.0, |seed| seed.weight as f32))
    }

    /// The clock of the page's site, where the user set holidays or a time zone other than UTC.
    pub fn local_clock(&self, url: &str) -> Option<LocalClock> {
        self.seed_for(url)?.calendar().filter(|clock| clock.zone() != "UTC" || clock.has_holidays())
    }
}
