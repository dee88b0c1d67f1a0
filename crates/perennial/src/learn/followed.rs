//! `[[site]]` of perennial.toml -> weight, clock and group of each page.

use std::collections::HashMap;

use perennial_core::page::SiteId;
use perennial_core::rank::page_weight;
use perennial_core::schedule::{PageInfo, Scheduler};
use perennial_core::time::LocalClock;

use crate::archive::Archive;
use crate::crawl::settings::{CrawlSettings, SiteTable};
use crate::store::Store;

/// What the user said of the sites that are followed.
#[derive(Clone, Default)]
pub struct Followed {
    sites: Vec<FollowedSite>,
    /// Places of the sites, by the numbers of their seeds.
    by_seed: HashMap<i64, usize>,
}

#[derive(Clone)]
struct FollowedSite {
    url: String,
    /// Scheme, host and port.
    origin: String,
    weight: f64,
    clock: LocalClock,
}

/// Scheme, host and port of an address.
fn origin_of(url: &str) -> Option<String> {
    url::Url::parse(url).ok().map(|url| url[..url::Position::BeforePath].to_owned())
}

/// Pages of one directory are expected to behave alike.
pub fn group_of(url: &str) -> u64 {
    crate::store::url_hash(url.rfind('/').map_or(url, |slash| &url[..slash]))
}

impl Followed {
    /// From the archive's settings; the state knows the numbers of the seeds.
    pub fn of(archive: &Archive, store: &Store) -> anyhow::Result<Followed> {
        let tables = CrawlSettings::load(&archive.settings_path())?.site;
        let seeds = store.seeds()?;
        let mut followed = Followed::default();
        for table in tables {
            let address = perennial_core::canonical::parse(&table.url).map(|url| url.to_string());
            let Some(site) = followed_site(table) else { continue };
            if let Some(&seed) = address.and_then(|address| seeds.get(&address)) {
                followed.by_seed.insert(seed, followed.sites.len());
            }
            followed.sites.push(site);
        }
        Ok(followed)
    }

    /// Whether the user still follows the seed of this number.
    pub fn has_seed(&self, seed: i64) -> bool {
        self.by_seed.contains_key(&seed)
    }

    /// How much the user says that the pages of a seed matter.
    pub fn weight_of_seed(&self, seed: i64) -> f32 {
        let site = self.by_seed.get(&seed).and_then(|&at| self.sites.get(at));
        site.map_or(1.0, |site| site.weight as f32)
    }

    /// What the scheduler is told of a page: the weight is the user's alone, without PageRank.
    pub fn info(&self, seed: Option<i64>, url: &str, site: SiteId, scheduler: &mut Scheduler) -> PageInfo {
        let by_seed = seed.and_then(|seed| self.sites.get(*self.by_seed.get(&seed)?));
        let followed = by_seed.or_else(|| self.site_of(url));
        PageInfo {
            weight: followed.map_or(1.0, |followed| followed.weight as f32),
            clock: followed.map(|followed| scheduler.add_clock(followed.clock.clone())).unwrap_or_default(),
            group: group_of(url),
            ..PageInfo::of_site(site)
        }
    }

    /// The site of the page's origin whose address begins most like the page's.
    fn site_of(&self, url: &str) -> Option<&FollowedSite> {
        let origin = origin_of(url)?;
        let n_alike = |site: &&FollowedSite| {
            let pairs = site.url.bytes().zip(url.bytes());
            pairs.take_while(|(of_site, of_page)| of_site == of_page).count()
        };
        self.sites.iter().filter(|site| site.origin == origin).max_by_key(n_alike)
    }

    /// omega(P) of a page with this PageRank.
    pub fn weight_of(&self, url: &str, page_rank: f32) -> f32 {
        page_weight(page_rank, self.site_of(url).map_or(1.0, |site| site.weight as f32))
    }

    /// The clock by which a page's people live, where the user named one that is not UTC.
    pub fn clock_of(&self, url: &str) -> Option<&LocalClock> {
        self.site_of(url).map(|site| &site.clock).filter(|clock| clock.zone() != "UTC")
    }
}

fn followed_site(table: SiteTable) -> Option<FollowedSite> {
    let clock = table.timezone.as_deref().and_then(|zone| LocalClock::of_zone(zone).ok());
    Some(FollowedSite {
        origin: origin_of(&table.url)?,
        weight: table.weight,
        clock: clock.unwrap_or_else(LocalClock::utc),
        url: table.url,
    })
}
