//! The looks of an archive -> estimates of its completeness and coherence, where the true changes are unknown (P-QUALITY 5;
//! docs/papers.md, Estimates on a real archive).
//!
//! Changes between two looks are not observed, so the numbers are bounds and likely values
//! ([`perennial_core::quality::estimate`]). The looks and the weights of pages are those of the crawl: omega(P) is PageRank
//! times the user's weight of the site. Images and scripts are not measured.

use std::collections::BTreeMap;

use perennial_core::look::Seen;
use perennial_core::page::{PageId, SiteId};
use perennial_core::quality::Coherence;
use perennial_core::quality::estimate::{
    CoherenceEstimate, CompletenessEstimate, Gap, SeenVersion, Sighting, coherence_bounds, completeness,
    gaps_of, seen_at,
};
use perennial_core::time::{Span, Timestamp};

use crate::learn::{Followed, page_ranks, rank_of};
use crate::store::{Look, LookOrder, Selection, Store};

/// Quality of one site, or of all.
#[derive(Clone, Debug)]
pub struct SiteQuality {
    /// Its host.
    pub host: String,
    /// Pages with at least one capture.
    pub n_pages: u64,
    /// Captures that are looks.
    pub n_captures: u64,
    /// Captures that showed something new, the first ones included.
    pub n_versions: u64,
    /// Captured importance over all importance, both times omega(P).
    pub pooled: CompletenessEstimate,
    /// Mean of the pages' own shares weighted by omega(P) (Definition 5.13): least, likely, most.
    pub by_page: [f64; 3],
    /// The same as `pooled`, every version counting alike.
    pub count: CompletenessEstimate,
    /// Coherence of the versions closest to the instant asked for.
    pub coherence: CoherenceEstimate,
}

/// The sums of one site over its pages.
#[derive(Default)]
struct SiteSums {
    n_pages: u64,
    n_captures: u64,
    n_versions: u64,
    gaps: Vec<Gap>,
    shares: [f64; 3],
    /// Sum of the weights of the pages whose shares were added up.
    weights: f64,
    snapshot: Vec<SeenVersion>,
}

/// Measures every site, or one, from the captures up to `until`; coherence is that of the site at `at`.
pub fn measure(
    store: &Store,
    site: Option<&str>,
    at: Timestamp,
    until: Timestamp,
    followed: &Followed,
) -> anyhow::Result<Vec<SiteQuality>> {
    let ranks = page_ranks(store, &[])?;
    let mut sites: BTreeMap<SiteId, SiteSums> = BTreeMap::new();
    let mut of_page: Option<PageLooks> = None;
    let mut end_page = |done: PageLooks| -> anyhow::Result<()> {
        let rank = rank_of(&ranks, done.page);
        let weight = f64::from(followed.weight_of(&store.url_of(done.page)?, rank));
        sites.entry(done.site).or_default().add_page(&done.looks, weight, at, until);
        Ok(())
    };
    let selection = site.map_or(Selection::Pages, Selection::Of);
    store.looks(selection, LookOrder::ByPage, until + Span::from_millis(1), |look| {
        if look.seen == Seen::Absent {
            return Ok(());
        }
        if let Some(done) = of_page.take_if(|page| page.page != look.page) {
            end_page(done)?;
        }
        let page =
            of_page.get_or_insert_with(|| PageLooks { page: look.page, site: look.site, looks: Vec::new() });
        page.add(&look);
        Ok(())
    })?;
    of_page.map_or(Ok(()), end_page)?;
    let named =
        sites.into_iter().map(|(site, sums)| Ok(sums.finish(store.host_of(site)?.unwrap_or_default())));
    let mut named = named.collect::<anyhow::Result<Vec<SiteQuality>>>()?;
    named.sort_by(|one, other| one.host.cmp(&other.host));
    Ok(named)
}

/// The looks at one page.
struct PageLooks {
    page: PageId,
    site: SiteId,
    looks: Vec<Sighting>,
}

impl PageLooks {
    /// Adds a look. The first look counts as a version of importance 1.
    fn add(&mut self, look: &Look) {
        let importance = match self.looks.is_empty() {
            true => Some(1.0),
            false => look.seen.is_change().then(|| look.seen.importance().get()),
        };
        self.looks.push(Sighting { at: look.time, new: importance });
    }
}

impl SiteSums {
    fn add_page(&mut self, looks: &[Sighting], weight: f64, at: Timestamp, until: Timestamp) {
        if looks.is_empty() {
            return;
        }
        self.n_pages += 1;
        self.n_captures += looks.len() as u64;
        self.n_versions += looks.iter().filter(|look| look.new.is_some()).count() as u64;
        let gaps = gaps_of(looks, weight, until);
        let page = completeness(gaps.iter().copied());
        if page.captured + page.probably_missed > 0.0 {
            self.weights += weight;
            for (sum, share) in self.shares.iter_mut().zip([page.at_least, page.likely, page.at_most]) {
                *sum += weight * share;
            }
        }
        self.gaps.extend(gaps);
        self.snapshot.extend(seen_at(looks, weight, at));
    }

    fn finish(self, host: String) -> SiteQuality {
        let alike = |gap: &Gap| Gap {
            weight: 1.0,
            difference: gap.difference.map(|_| 1.0),
            mean_importance: 1.0,
            ..*gap
        };
        let n = self.weights;
        SiteQuality {
            host,
            n_pages: self.n_pages,
            n_captures: self.n_captures,
            n_versions: self.n_versions,
            pooled: completeness(self.gaps.iter().copied()),
            by_page: self.shares.map(|sum| if n > 0.0 { sum / n } else { 1.0 }),
            count: completeness(self.gaps.iter().map(alike)),
            coherence: coherence_bounds(&self.snapshot),
        }
    }
}

/// Mean over sites (Definitions 5.14 and 5.24): completeness by page (least, likely, most), coherence bounds.
pub fn archive_means(sites: &[SiteQuality]) -> ([f64; 3], CoherenceEstimate) {
    let n = (sites.len() as f64).max(1.0);
    let by_page = std::array::from_fn(|place| {
        if sites.is_empty() { 1.0 } else { sites.iter().map(|site| site.by_page[place]).sum::<f64>() / n }
    });
    let coherence = CoherenceEstimate {
        at_least: Coherence::mean(sites.iter().map(|site| site.coherence.at_least)),
        at_most: Coherence::mean(sites.iter().map(|site| site.coherence.at_most)),
    };
    (by_page, coherence)
}
