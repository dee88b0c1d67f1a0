//! An archive of the living web -> when the crawler has learned that each page changes.

use std::collections::HashMap;

use perennial_core::page::SiteId;
use perennial_core::schedule::{PageInfo, ScheduleConfig, Scheduler};
use perennial_core::time::LocalClock;

use super::web::LivingWeb;
use crate::archive::Archive;
use crate::history::{Which, each_history};

/// Changes an hour by local hour of a workday, as believed at the end; empty for a page that was never captured.
pub(super) fn rates_of(archive: &Archive, web: &LivingWeb, urls: &[String]) -> anyhow::Result<Vec<Vec<f64>>> {
    let store = archive.store()?;
    let mut histories = HashMap::new();
    // Of all, because the last that a dead page showed was no HTML.
    each_history(store.connection(), Which::All, web.end, |history| {
        histories.insert(history.url.clone(), history);
    })?;
    let mut scheduler = Scheduler::new(ScheduleConfig::default(), web.seed, web.start);
    let mut pages = Vec::with_capacity(urls.len());
    for (page, url) in web.pages.iter().zip(urls) {
        let history = histories.get(url);
        pages.push(history.map(|history| history.page));
        let Some(history) = history else { continue };
        let zone = LocalClock::of_zone(web.sites[page.site].timezone).unwrap_or(LocalClock::utc());
        let clock = scheduler.add_clock(zone);
        let info = PageInfo { clock, ..PageInfo::of_site(SiteId(page.site as u32)) };
        scheduler.add_seen_page(history.page, info, history.first);
        history.tell(&mut scheduler);
    }
    scheduler.learn_now(web.end);
    let workday = |page| {
        let belief = scheduler.belief(page)?;
        Some(belief.rates.iter().take(belief.rates.len() / 2).map(|&rate| f64::from(rate)).collect())
    };
    Ok(pages.into_iter().map(|page| page.and_then(workday).unwrap_or_default()).collect())
}
