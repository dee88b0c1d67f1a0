//! Builds schedulers that have learned from all observations, links and settings of an archive.
//!
//! Every scheduler of an archive is built here. What it learned is not stored, because rates and patterns are a
//! function of the observations. Learning from a million observations takes a second.
//!
//! | module | purpose |
//! |---|---|
//! | `followed` | the settings of each page: weight, clock, group and interval |
//! | `conflicts` | intervals that a budget or politeness does not allow |
//! | `history` | the observations of a page, for people |
//! | `plan` | the next visits, each with its reason in words |
//! | `versions` | the versions of a site, one per sweep |
//! | `publishing` | when a feed publishes |
//! | `ranks` | PageRank over the links between captured pages |

mod conflicts;
mod followed;
mod history;
mod plan;
mod publishing;
mod ranks;
mod versions;

pub use conflicts::conflicts;
pub use followed::{FollowedSites, WATCH_INTERVAL};
pub use history::{DEFAULT_PERIODS, PageHistory, histories, index_threshold};
pub use plan::{
    AHEAD, ENOUGH_VISITS, FAR_AHEAD, NextVisit, PlannedBudget, PlannedCrawl, VisitDescriber, VisitPlan,
    are_hours_known, confidence, expected_by_period, is_rate_known, published_plan, with_published,
};
pub use publishing::publishing;
pub use ranks::{page_ranks, rank};
pub use versions::site_history;

use perennial_core::schedule::rank::page_weight;
use perennial_core::schedule::{Budget, ScheduleConfig, Scheduler, VisitOutcome};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use perennial_archive::settings::CrawlTable;
use perennial_archive::store::{
    FrontierPage, ObservationOrder, ObservationSelection, PageKind, Store, VisitEnding,
};

/// Most consecutive failures that are replayed. More would not lengthen the wait.
const MOST_FAILURES: u16 = 16;

/// The scheduler configuration in the archive's settings.
pub fn schedule_config(table: &CrawlTable, budget: Option<Budget>) -> ScheduleConfig {
    let (goal, varying_budget, floor) = (table.goal, table.varying_budget, table.floor);
    ScheduleConfig { budget, goal, varying_budget, floor, ..ScheduleConfig::default() }
}

/// A scheduler with all followed pages that has learned from all observations up to `now`. Before the first crawl,
/// all captured documents count as followed.
pub fn scheduler(
    store: &Store,
    followed: &FollowedSites,
    config: ScheduleConfig,
    seed: u64,
    now: Timestamp,
) -> anyhow::Result<Scheduler> {
    let since = store.first_capture()?.map_or(now, |first| first.min(now));
    let mut scheduler = Scheduler::new(config, seed, since);
    let (weights, failed) = add_pages(store, followed, &mut scheduler)?;
    // Values depend on weights, and are computed when all is learned.
    update_weights(store, &weights, &mut scheduler)?;
    relearn(store, &mut scheduler, &failed, now)?;
    if let Some(checkpoint) = store.checkpoint()? {
        scheduler.restore(&checkpoint);
    }
    Ok(scheduler)
}

/// The user's weight of each page, by number; 0 for pages that are not followed.
type UserWeights = Vec<f32>;

/// Adds all followed pages. Returns the user's weights, and the pages whose last visit failed.
fn add_pages(
    store: &Store,
    followed: &FollowedSites,
    scheduler: &mut Scheduler,
) -> anyhow::Result<(UserWeights, Vec<FrontierPage>)> {
    let (mut weights, mut failed) = (UserWeights::new(), Vec::new());
    let mut add = |page: PageId, info: perennial_core::schedule::PageInfo, scheduler: &mut Scheduler| {
        let at = page.0 as usize;
        if at >= weights.len() {
            weights.resize(at + 1, 0.0);
        }
        weights[at] = info.weight;
        scheduler.add_page(page, info);
    };
    let mut has_frontier = false;
    store.each_frontier_page(|known| {
        has_frontier = true;
        if known.kind != PageKind::Page || !followed.has_seed(known.seed) {
            return;
        }
        let info = followed.info(Some(known.seed), &known.url, known.site, scheduler);
        add(known.page, info, scheduler);
        if known.ending == Some(VisitEnding::Failed) {
            failed.push(known);
        }
    })?;
    if !has_frontier {
        store.each_document(|page, site, url| {
            let info = followed.info(None, url, site, scheduler);
            add(page, info, scheduler);
        })?;
    }
    Ok((weights, failed))
}

/// Replays every observation up to `now` in chronological order, then the visits that failed since. A URL that was
/// never fetched because robots.txt or a setting forbade it is tried again, because both may have changed.
fn relearn(
    store: &Store,
    scheduler: &mut Scheduler,
    failed: &[FrontierPage],
    now: Timestamp,
) -> anyhow::Result<()> {
    let changes = channel_changes(store, now)?;
    let mut changes = changes.into_iter().peekable();
    let until = now + Span::from_millis(1);
    store.observations(ObservationSelection::Pages, ObservationOrder::ByTime, until, |observation| {
        while let Some((at, page)) = changes.next_if(|(at, _)| *at <= observation.time) {
            scheduler.note_change_time(page, at);
        }
        scheduler.record(observation.page, VisitOutcome::from(observation.status), observation.time);
        Ok(())
    })?;
    for page in failed {
        let Some(visited) = page.visited.filter(|visited| *visited <= now) else { continue };
        for _ in 0..page.n_failures.min(MOST_FAILURES) {
            scheduler.record(page.page, VisitOutcome::Failed { retry_at: None }, visited);
        }
    }
    scheduler.learn_now(now);
    // Pages that a feed announced remain urgent until they are visited.
    for (page, at) in store.announced_by_items(now)? {
        scheduler.announce(page, at, None);
    }
    Ok(())
}

/// Most item times per feed.
const MAX_ITEMS_READ: usize = 2_000;

/// When channel pages changed, as their feeds say, in chronological order.
fn channel_changes(store: &Store, now: Timestamp) -> anyhow::Result<Vec<(Timestamp, PageId)>> {
    let mut changes = Vec::new();
    for feed in store.feeds_to_poll()? {
        let Some(channel) = feed.channel else { continue };
        let Some(page) = store.page(&channel)? else { continue };
        let times = store.item_times(feed.page, MAX_ITEMS_READ)?;
        changes.extend(times.into_iter().filter(|time| *time <= now).map(|time| (time, page.id)));
    }
    changes.sort_unstable();
    Ok(changes)
}

/// Sets omega(P) of every page.
fn update_weights(store: &Store, user: &UserWeights, scheduler: &mut Scheduler) -> anyhow::Result<()> {
    set_weights(&page_ranks(store, &[])?, user, scheduler);
    Ok(())
}

/// Sets omega(P): PageRank divided by its mean over the followed pages, times the user's weight. `user` is 0 for
/// pages that are not followed.
pub fn set_weights(ranks: &[f32], user: &[f32], scheduler: &mut Scheduler) {
    let followed = || (0..user.len()).filter(|&at| user[at] > 0.0);
    let rank = |at: usize| rank(ranks, PageId(at as u32));
    let sum: f64 = followed().map(|at| f64::from(rank(at))).sum();
    let mean = (sum / followed().count().max(1) as f64).max(1e-9) as f32;
    for at in followed() {
        scheduler.set_weight(PageId(at as u32), page_weight(rank(at) / mean, user[at]));
    }
}
