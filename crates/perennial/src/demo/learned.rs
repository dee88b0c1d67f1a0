//! An archive of the living web -> the hourly rates of change that the crawler learned for each page.

use super::web::LivingWeb;
use perennial_archive::Archive;
use perennial_engine::learn::{self, FollowedSites};

/// The learned changes per hour, by local hour of a workday. The list of a page that was never captured is empty.
pub(super) fn learned_rates(
    archive: &Archive,
    web: &LivingWeb,
    urls: &[String],
) -> anyhow::Result<Vec<Vec<f64>>> {
    let store = archive.store()?;
    let followed = FollowedSites::load(archive, &store)?;
    let scheduler = learn::scheduler(
        &store,
        &followed,
        learn::schedule_config(&archive.settings().crawl, None),
        web.seed,
        web.end,
    )?;
    let workday = |url: &String| {
        let belief = store.page(url)?.and_then(|page| scheduler.belief(page.id));
        let rates = belief.map(|belief| belief.rates).unwrap_or_default();
        Ok(rates.iter().take(rates.len() / 2).map(|&rate| f64::from(rate)).collect())
    };
    urls.iter().map(workday).collect()
}
