//! Estimates completeness and coherence of an archive, whose true changes are unknown (P-QUALITY 5; docs/papers.md,
//! Estimates on a real archive).
//!
//! The changes between two observations are unknown, so the results are bounds and likely values
//! ([`perennial_core::quality::estimate`]). The scheduler's pattern gives the changes since the last one. The page weights
//! are those of the crawl: omega(P) is PageRank times the user's weight of the site. Images and scripts are not
//! measured. The demonstration uses the same definitions with the true changes. Feeds and sitemaps in the archive
//! announce changes, which give upper bounds.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::quality::SnapshotCoherence;
use perennial_core::quality::estimate::{
    CoherenceEstimate, CompletenessEstimate, ObservedVersion, PRIOR_CHANGES, PageObservations, PageVersions,
    TimedObservation, coherence_bounds, completeness, page_versions, quiet_prior, version_at,
};
use perennial_core::schedule::Scheduler;
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::canonical;
use perennial_core::url::{PageId, SiteId};
use url::Url;

use crate::learn::{self, FollowedSites, page_ranks, rank};
use perennial_archive::links::read_sitemap;
use perennial_archive::store::{Observation, ObservationOrder, ObservationSelection, PageKind, Store};
use perennial_archive::{Archive, Snapshot};

/// Most captures of feeds and sitemaps that are read, latest first.
const MAX_ANNOUNCERS: usize = 2_000;

/// Quality of one site, or of all.
#[derive(Clone, Debug)]
pub struct SiteQuality {
    pub host: String,
    /// Pages with at least one capture.
    pub n_pages: u64,
    /// Captures that are observations.
    pub n_captures: u64,
    /// Captures with new content, first captures included.
    pub n_versions: u64,
    /// Credible changes that feeds and sitemaps announced while the pages were watched.
    pub n_announced: u64,
    /// Captured importance divided by all importance, both weighted by omega(P).
    pub pooled: CompletenessEstimate,
    /// Mean share of the pages, weighted by omega(P) (Definition 5.13): lower bound, likely value, upper bound.
    pub by_page: [f64; 3],
    /// Like `pooled`, with equal weight for every version.
    pub count: CompletenessEstimate,
    /// Coherence of the versions closest to the requested instant.
    pub coherence: CoherenceEstimate,
}

impl SiteQuality {
    /// Whether any page was observed twice. Otherwise nothing is known about changes.
    pub fn is_known(&self) -> bool {
        self.n_captures > self.n_pages
    }

    /// Whether a change was observed or announced.
    pub fn has_changes(&self) -> bool {
        self.n_versions > self.n_pages || self.n_announced > 0
    }
}

#[derive(Clone, Debug)]
pub struct ArchiveQuality {
    pub sites: Vec<SiteQuality>,
    /// Completeness over all pages of all sites. Coherence is the mean over sites (Definition 5.24).
    pub all: SiteQuality,
}

/// One page: its observations and its announced changes.
struct PageSample {
    observations: Vec<TimedObservation>,
    announced: Vec<Timestamp>,
    weight: f64,
    page: PageId,
}

impl PageSample {
    fn has_changed(&self) -> bool {
        self.observations.iter().skip(1).any(|observation| observation.new.is_some())
    }
}

/// Sums over the pages of one site, or of all sites.
#[derive(Default)]
struct SiteSums {
    n_pages: u64,
    n_captures: u64,
    n_versions: u64,
    n_announced: u64,
    pages: Vec<PageVersions>,
    shares: [f64; 3],
    /// Sums of page weights times the probability that the page changed.
    weights: [f64; 3],
}

/// Measures every site, or one, from the captures up to `until`. SnapshotCoherence is measured at `at`.
pub fn measure(
    snapshot: &Snapshot,
    site: Option<&str>,
    at: Timestamp,
    until: Timestamp,
    followed: &FollowedSites,
) -> anyhow::Result<ArchiveQuality> {
    let store = snapshot.store();
    let mut sites = watched_pages(store, site, until, followed)?;
    let config = learn::schedule_config(&snapshot.archive().settings().crawl, None);
    let scheduler = learn::scheduler(store, followed, config, 0, until)?;
    let mut announced = announcements(snapshot.archive(), store, until)?;
    let mut all = SiteSums::default();
    let mut named = Vec::new();
    for (site, pages) in &mut sites {
        for (page, watched) in pages.iter_mut() {
            watched.announced = announced.remove(page).unwrap_or_default().into_iter().collect();
        }
        let pages: Vec<&PageSample> = pages.values().collect();
        let mut sums = SiteSums::default();
        sums.add_pages(&pages, &scheduler, until);
        all.add_pages(&pages, &scheduler, until);
        let versions: Vec<ObservedVersion> =
            pages.iter().filter_map(|page| version_at(&page.observations, page.weight, at)).collect();
        named.push(sums.finish(store.site_host(*site)?.unwrap_or_default(), coherence_bounds(&versions)));
    }
    named.sort_by(|one, other| one.host.cmp(&other.host));
    let coherence = mean_coherence(&named);
    Ok(ArchiveQuality { all: all.finish("all sites".to_owned(), coherence), sites: named })
}

/// The coherence of a site at several instants.
pub fn coherence_over(
    store: &Store,
    site: &str,
    instants: &[Timestamp],
    until: Timestamp,
    followed: &FollowedSites,
) -> anyhow::Result<Vec<CoherenceEstimate>> {
    let sites = watched_pages(store, Some(site), until, followed)?;
    let pages: Vec<&PageSample> = sites.values().flat_map(BTreeMap::values).collect();
    let at = |at: &Timestamp| {
        let versions: Vec<ObservedVersion> =
            pages.iter().filter_map(|page| version_at(&page.observations, page.weight, *at)).collect();
        coherence_bounds(&versions)
    };
    Ok(instants.iter().map(at).collect())
}

type PagesBySite = BTreeMap<SiteId, BTreeMap<PageId, PageSample>>;

/// The pages of every site, or of one, with their observations.
fn watched_pages(
    store: &Store,
    site: Option<&str>,
    until: Timestamp,
    followed: &FollowedSites,
) -> anyhow::Result<PagesBySite> {
    let ranks = page_ranks(store, &[])?;
    let mut sites = PagesBySite::new();
    let selection = site.map_or(ObservationSelection::Pages, ObservationSelection::Of);
    store.observations(selection, ObservationOrder::ByPage, until + Span::from_millis(1), |observation| {
        if observation.status == ChangeStatus::Absent {
            return Ok(());
        }
        let pages = sites.entry(observation.site).or_default();
        let page = match pages.entry(observation.page) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let rank = rank(&ranks, observation.page);
                let weight = f64::from(followed.page_weight(&store.page_url(observation.page)?, rank));
                let (page, observations, announced) = (observation.page, Vec::new(), Vec::new());
                new.insert(PageSample { observations, announced, weight, page })
            }
        };
        page.observations.push(sighting(&observation));
        Ok(())
    })?;
    Ok(sites)
}

fn sighting(observation: &Observation) -> TimedObservation {
    let importance = observation.status.observed_importance().get();
    TimedObservation { at: observation.time, new: Some(importance).filter(|importance| *importance > 0.0) }
}

/// When pages changed, as the feeds and sitemaps in the archive announce. Unreadable ones are skipped.
fn announcements(
    archive: &Archive,
    store: &Store,
    until: Timestamp,
) -> anyhow::Result<HashMap<PageId, BTreeSet<Timestamp>>> {
    let mut announced: HashMap<PageId, BTreeSet<Timestamp>> = HashMap::new();
    let mut captures = Vec::new();
    for page in announcers(store)? {
        captures.extend(store.page_captures(page)?);
    }
    captures.retain(|capture| capture.time <= until);
    captures.sort_by_key(|capture| std::cmp::Reverse(capture.time));
    let mut known = BTreeSet::new();
    captures.retain(|capture| known.insert((capture.page, capture.digest.clone())));
    for capture in captures.iter().take(MAX_ANNOUNCERS) {
        let (Ok(Some(payload)), Ok(base)) = (archive.payload(store, capture), Url::parse(&capture.url))
        else {
            continue;
        };
        for entry in read_sitemap(&payload.bytes).pages {
            let Some(changed) = entry.changed.filter(|changed| *changed <= until) else { continue };
            let Some(to) = canonical::resolve(&base, &entry.loc) else { continue };
            if let Some(page) = store.page(to.as_str())? {
                announced.entry(page.id).or_default().insert(changed);
            }
        }
    }
    Ok(announced)
}

/// The captured feeds and sitemaps.
fn announcers(store: &Store) -> anyhow::Result<BTreeSet<PageId>> {
    let mut announcers = BTreeSet::new();
    store.each_frontier_page(|known| {
        if matches!(known.kind, PageKind::Sitemap | PageKind::Feed) {
            announcers.insert(known.page);
        }
    })?;
    store.each_page(|page| {
        let mime = page.mime.as_deref().unwrap_or_default();
        let name = page.url.rsplit('/').next().unwrap_or_default();
        let is_feed = mime.ends_with("/rss+xml") || mime.ends_with("/atom+xml");
        if is_feed || mime.ends_with("/xml") && name.contains("sitemap") {
            announcers.insert(page.id);
        }
        Ok(())
    })?;
    Ok(announcers)
}

impl SiteSums {
    fn add_pages(&mut self, pages: &[&PageSample], scheduler: &Scheduler, until: Timestamp) {
        let n_changed = pages.iter().filter(|page| page.has_changed()).count();
        for page in pages {
            let is_quiet = !page.has_changed();
            self.add_page(
                page,
                scheduler,
                if is_quiet { quiet_prior(n_changed, pages.len()) } else { PRIOR_CHANGES },
                until,
            );
        }
    }

    fn add_page(&mut self, page: &PageSample, scheduler: &Scheduler, prior_changes: f64, until: Timestamp) {
        self.n_pages += 1;
        self.n_captures += page.observations.len() as u64;
        self.n_versions +=
            page.observations.iter().filter(|observation| observation.new.is_some()).count() as u64;
        let (observations, announced) = (&page.observations, &page.announced);
        let expected = |from, to| scheduler.expected_changes(page.page, from, to);
        let versions = page_versions(
            &PageObservations { observations, announced, weight: page.weight, prior_changes },
            until,
            expected,
        );
        self.n_announced += u64::from(versions.n_announced);
        let estimate = completeness([versions]);
        let [at_worst, likely] = estimate.probability_of_change;
        // A page without a change has no share (Definition 5.12). If it did change, no change of it was captured.
        let has_changed = estimate.captured > 0.0;
        let is_known = has_changed || estimate.surely_missed > 0.0;
        let shares = [estimate.at_least, estimate.likely, estimate.at_most];
        let probabilities = [at_worst, likely, f64::from(u8::from(is_known))];
        for (place, (share, probability)) in shares.into_iter().zip(probabilities).enumerate() {
            self.weights[place] += page.weight * probability;
            self.shares[place] += if has_changed { page.weight * share } else { 0.0 };
        }
        self.pages.push(versions);
    }

    fn finish(self, host: String, coherence: CoherenceEstimate) -> SiteQuality {
        let alike = |page: &PageVersions| PageVersions {
            weight: 1.0,
            captured: page.n_captured,
            mean_importance: 1.0,
            ..*page
        };
        let pooled = completeness(self.pages.iter().copied());
        let of_all = [pooled.at_least, pooled.likely, pooled.at_most];
        let by_page = match pooled.captured + pooled.surely_missed > 0.0 {
            true => std::array::from_fn(|place| match self.weights[place] {
                weight if weight > 0.0 => self.shares[place] / weight,
                _ => 1.0,
            }),
            false => of_all,
        };
        SiteQuality {
            host,
            n_pages: self.n_pages,
            n_captures: self.n_captures,
            n_versions: self.n_versions,
            n_announced: self.n_announced,
            pooled,
            by_page,
            count: completeness(self.pages.iter().map(alike)),
            coherence,
        }
    }
}

fn mean_coherence(sites: &[SiteQuality]) -> CoherenceEstimate {
    CoherenceEstimate {
        at_least: SnapshotCoherence::mean(sites.iter().map(|site| site.coherence.at_least)),
        at_most: SnapshotCoherence::mean(sites.iter().map(|site| site.coherence.at_most)),
    }
}
