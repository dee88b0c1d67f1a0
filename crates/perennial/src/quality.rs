//! The captures of an archive -> estimates of its completeness and coherence (P-QUALITY 5), without the truth.
//!
//! Between captures nobody looked: the numbers are bounds and likely values, see
//! [`perennial_core::quality::estimate`]. Importance comes from the analysis where it was made, else every new
//! payload counts as 1. A page weighs what it weighs in the crawl: PageRank times the user's word. Only pages that readers see are measured, not their images and scripts.

use perennial_core::page::PageId;
use perennial_core::quality::Coherence;
use perennial_core::quality::estimate::{
    CoherenceEstimate, CompletenessEstimate, Gap, Look, SeenVersion, coherence_bounds, completeness, gaps_of,
    seen_at,
};
use perennial_core::time::Timestamp;
use rusqlite::params;

use crate::history::{Followed, page_ranks, rank_of};
use crate::store::Store;

/// Quality of one site, or of all.
#[derive(Clone, Debug)]
pub struct SiteQuality {
    /// Its host.
    pub host: String,
    /// Pages with at least one capture.
    pub n_pages: u64,
    /// Captures that were looked at.
    pub n_captures: u64,
    /// Captures that showed something new, the first ones included.
    pub n_versions: u64,
    /// Captured importance over all importance, both times omega(P).
    pub pooled: CompletenessEstimate,
    /// Mean of the pages' own shares weighted by omega(P) (Definition 5.13): least, likely, most.
    pub by_page: [f64; 3],
    /// The same as `pooled`, every version counting alike.
    pub count: CompletenessEstimate,
    /// Of the closest versions to the instant asked for.
    pub coherence: CoherenceEstimate,
}

/// What is summed up for a site while its pages come by.
#[derive(Default)]
struct Sums {
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
    let mut statement = store.connection().prepare(
        "SELECT s.host, c.page, c.time, c.digest, o.importance, o.is_noise, p.url
         FROM captures c JOIN pages p ON p.id = c.page JOIN sites s ON s.id = p.site
         LEFT JOIN observations o ON o.page = c.page AND o.time = c.time
         WHERE c.kind IN (0, 1) AND coalesce(c.status, 200) BETWEEN 200 AND 399 AND c.time <= ?1
           AND (?2 IS NULL OR s.host = ?2 OR substr(s.host, 1, length(?2) + 1) = ?2 || ':')
           AND c.page IN (SELECT page FROM captures WHERE mime LIKE 'text/html%' OR mime LIKE 'application/xhtml%')
         ORDER BY s.host, c.page, c.time",
    )?;
    let mut rows = statement.query(params![until.as_millis(), site])?;
    let mut sites: Vec<SiteQuality> = Vec::new();
    let mut current: Option<(String, i64)> = None;
    let mut sums = Sums::default();
    let mut looks: Vec<Look> = Vec::new();
    let mut weight = 1.0;
    let mut last_digest = String::new();
    while let Some(row) = rows.next()? {
        let (host, page): (String, i64) = (row.get(0)?, row.get(1)?);
        let digest: String = row.get(3)?;
        if current.as_ref().is_none_or(|(before, number)| *before != host || *number != page) {
            sums.add_page(&looks, weight, at, until);
            looks.clear();
            if let Some((before, _)) = current.take().filter(|(before, _)| *before != host) {
                sites.push(std::mem::take(&mut sums).finish(before));
            }
            let rank = rank_of(&ranks, PageId(u32::try_from(page).unwrap_or(u32::MAX)));
            weight = f64::from(followed.weight_of(&row.get::<_, String>(6)?, rank));
            current = Some((host, page));
            last_digest.clear();
        }
        let seen: Option<f64> = row.get(4)?;
        let is_noise = row.get::<_, Option<bool>>(5)?.unwrap_or(false);
        let is_new = digest != last_digest && !is_noise && seen != Some(0.0);
        let importance =
            (is_new || looks.is_empty()).then_some(if looks.is_empty() { 1.0 } else { seen.unwrap_or(1.0) });
        looks.push(Look { at: Timestamp::from_millis(row.get(2)?), new: importance });
        last_digest = digest;
    }
    sums.add_page(&looks, weight, at, until);
    if let Some((host, _)) = current {
        sites.push(sums.finish(host));
    }
    Ok(sites)
}

impl Sums {
    fn add_page(&mut self, looks: &[Look], weight: f64, at: Timestamp, until: Timestamp) {
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
