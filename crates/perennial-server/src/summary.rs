//! An archive -> what is reckoned over the whole of it: holdings, quality, the plan of visits, what needs a person. This takes as
//! long as the archive is large, so it is made now and then and kept: at once where that is quick, else on a thread of its
//! own while requests get the last one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perennial_core::schedule::{Ranked, Scheduler};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use super::dashboard::components::{Bounds, Range};
use super::dashboard::overview::{Need, Overview, QualityPoint, Spending};
use super::dashboard::site::SiteSummary;
use super::dashboard::sites::SiteRow;
use super::pool::Pool;
use perennial_archive::store::{Counts, Failing, Store, Texts};
use perennial_archive::{Archive, Snapshot, now};
use perennial_engine::learn::{self, FollowedSites, NextVisit, PlannedBudget, VisitDescriber, VisitPlan};
use perennial_engine::quality::{ArchiveQuality, SiteQuality, measure};

/// Archives with no more captures are reckoned while a request waits.
const QUICK_CAPTURES: i64 = 20_000;
/// What was reckoned is not made again before this time, or twenty times what it took.
const FRESH: Duration = Duration::from_secs(5);
const COST_FACTOR: u32 = 20;
/// Visits of the plan, and pages whose rank is kept.
const MOST_VISITS: usize = 300;
const MOST_RANKED: usize = 50_000;
/// Visits and captures in the margin of home.
const N_MARGIN: usize = 5;
/// Hosts with troubles that are named.
const MOST_NEEDS: usize = 5;
/// Instants at which the quality of an archive is drawn, and the least time that it must be old.
const N_PAST: i64 = 8;
const LEAST_PAST: Span = Span::from_hours(12);
/// Hours of spending that are shown.
const N_HOURS: usize = 24;
/// An archive whose last capture is older is not being crawled: its plan is that of going on where it ended.
const STALE: Span = Span::from_hours(24);

/// What is reckoned over one archive.
pub(crate) struct Summary {
    /// What the margin of home shows, without what each request asks anew.
    pub(crate) overview: Overview,
    /// The user's settings of the sites.
    pub(crate) followed: FollowedSites,
    /// The scheduler as a crawl would have it at `at`.
    pub(crate) scheduler: Scheduler,
    /// The budget.
    pub(crate) pace: PlannedBudget,
    /// Where the plan begins.
    pub(crate) at: Timestamp,
    /// The next visits, soonest first.
    pub(crate) visits: Vec<NextVisit>,
    /// Addresses without a page.
    pub(crate) n_probes: u64,
    /// Pages by urgency: their place, from 0.
    pub(crate) ranks: HashMap<PageId, (usize, Ranked)>,
    /// Bytes of text that important versions brought, and of all text that can be searched.
    pub(crate) text_bytes: Option<(u64, u64)>,
    /// All sites, largest first.
    pub(crate) sites: Vec<SiteRow>,
    /// Summaries of single sites, as they were asked for.
    pub(crate) by_site: Mutex<HashMap<String, Arc<SiteSummary>>>,
}

impl std::fmt::Debug for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summary").field("at", &self.at).finish_non_exhaustive()
    }
}

/// The standing of an archive, kept between requests.
#[derive(Debug)]
pub(crate) struct SummaryCache {
    kept: Arc<Mutex<Kept>>,
    past: Arc<Mutex<Past>>,
    /// Captures up to which a request waits for it.
    quick: i64,
}

impl Default for SummaryCache {
    fn default() -> SummaryCache {
        SummaryCache { kept: Arc::default(), past: Arc::default(), quick: QUICK_CAPTURES }
    }
}

/// The quality at earlier instants. Each costs as much as that of now, so it is made on a thread of its own for any archive.
#[derive(Debug, Default)]
struct Past {
    points: Vec<QualityPoint>,
    until: Option<Timestamp>,
    made: Option<Instant>,
    cost: Duration,
    is_making: bool,
}

impl Past {
    fn is_due(&self, last: Timestamp) -> bool {
        let is_old = self.made.is_none_or(|made| made.elapsed() > FRESH.max(self.cost * COST_FACTOR));
        !self.is_making && self.until != Some(last) && is_old
    }
}

#[derive(Debug, Default)]
struct Kept {
    standing: Option<Arc<Summary>>,
    made: Option<Instant>,
    cost: Duration,
    is_making: bool,
    problem: Option<String>,
}

impl Kept {
    fn is_fresh(&self) -> bool {
        self.made.is_some_and(|made| made.elapsed() < FRESH.max(self.cost * COST_FACTOR))
    }

    fn put(&mut self, made: anyhow::Result<Summary>, begun: Instant) {
        (self.cost, self.made, self.is_making) = (begun.elapsed(), Some(Instant::now()), false);
        match made {
            Ok(standing) => (self.standing, self.problem) = (Some(Arc::new(standing)), None),
            Err(error) => self.problem = Some(format!("{error:#}")),
        }
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SummaryCache {
    /// Lets the next request reckon anew, because the settings are others.
    pub(crate) fn forget(&self) {
        lock(&self.kept).made = None;
    }

    /// The latest that was reckoned; `None` while a large archive is reckoned for the first time.
    pub(crate) fn of(&self, pool: &Pool) -> anyhow::Result<Option<Arc<Summary>>> {
        let n_captures = pool.with(|snapshot| snapshot.store().last_capture_number())??;
        let mut kept = lock(&self.kept);
        if kept.is_fresh() || kept.is_making {
            return match &kept.problem {
                Some(problem) if kept.standing.is_none() => anyhow::bail!("{problem}"),
                _ => Ok(kept.standing.clone()),
            };
        }
        let begun = Instant::now();
        if n_captures <= self.quick {
            let made = pool.with(Summary::of).and_then(|made| made);
            kept.put(made, begun);
            return match &kept.problem {
                Some(problem) => anyhow::bail!("{problem}"),
                None => Ok(kept.standing.clone()),
            };
        }
        kept.is_making = true;
        let (root, shared) = (pool.archive().root().to_path_buf(), self.kept.clone());
        std::thread::spawn(move || {
            let made = made_apart(&root);
            lock(&shared).put(made, begun);
        });
        Ok(kept.standing.clone())
    }
}

impl SummaryCache {
    /// The quality at earlier instants, as it was reckoned last; nothing where that is under way for the first time.
    pub(crate) fn past(&self, snapshot: &Snapshot) -> anyhow::Result<Vec<QualityPoint>> {
        let store = snapshot.store();
        let Some((first, last)) = store.first_capture()?.zip(store.last_capture()?) else {
            return Ok(Vec::new());
        };
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        if last - first >= LEAST_PAST && past.is_due(last) {
            past.is_making = true;
            let (root, shared) = (snapshot.archive().root().to_path_buf(), self.past.clone());
            std::thread::spawn(move || {
                let begun = Instant::now();
                // What cannot be reckoned is not drawn; the quality of now says why.
                let points = past_of(&root, first, last).unwrap_or_default();
                let (made, cost) = (Some(Instant::now()), begun.elapsed());
                let new = Past { points, until: Some(last), made, cost, is_making: false };
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = new;
            });
        }
        Ok(past.points.clone())
    }
}

/// The quality at instants that divide the time of an archive evenly.
fn past_of(root: &Path, first: Timestamp, last: Timestamp) -> anyhow::Result<Vec<QualityPoint>> {
    let snapshot = Archive::open(root)?.snapshot()?;
    let followed = FollowedSites::load(snapshot.archive(), snapshot.store())?;
    let step = (last - first).as_millis() / N_PAST;
    let instants = (1..N_PAST).map(|n| first + Span::from_millis(step * n)).chain([last]);
    let mut points = Vec::new();
    for at in instants {
        let quality = measure(&snapshot, None, at, at, &followed)?;
        let coherence = &quality.all.coherence;
        points.extend(completeness_of(&quality.all).map(|completeness| QualityPoint {
            time: at.into(),
            completeness,
            coherence: Bounds { at_least: coherence.at_least.weighted, at_most: coherence.at_most.weighted },
        }));
    }
    Ok(points)
}

fn made_apart(root: &Path) -> anyhow::Result<Summary> {
    Summary::of(&Archive::open(root)?.snapshot()?)
}

impl Summary {
    /// Reckons everything.
    pub(crate) fn of(snapshot: &Snapshot) -> anyhow::Result<Summary> {
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let (present, last) = (now(), store.last_capture()?);
        let at = last.filter(|last| present - *last > STALE || *last > present).unwrap_or(present);
        let followed = FollowedSites::load(archive, store)?;
        let pace = PlannedBudget::choose(archive, store, None, at)?;
        let config = learn::schedule_config(&archive.settings().crawl, Some(pace.budget));
        let mut scheduler = learn::scheduler(store, &followed, config, 0, at)?;
        pace.record_spent(store, &mut scheduler, at)?;
        let described = VisitDescriber { store, followed: &followed };
        let plan = VisitPlan::new(&scheduler, at, MOST_VISITS);
        let visits = plan.visits.iter().map(|(at, ranked)| described.entry(*at, ranked));
        let mut visits = visits.collect::<anyhow::Result<Vec<NextVisit>>>()?;
        visits.extend(described.polls(at)?);
        visits.sort_by_key(|visit| (visit.at.is_none(), visit.at.clone()));
        let ranks = scheduler.ranking(at, MOST_RANKED.min(scheduler.n_pages())).into_iter().enumerate();
        let ranks = ranks.map(|(place, ranked)| (ranked.page, (place, ranked))).collect();
        let quality = last.map(|last| measure(snapshot, None, last, last, &followed)).transpose()?;
        let (counts, failing) = (store.counts()?, store.failing_hosts(MOST_NEEDS)?);
        let sites = site_rows(store, quality.as_ref(), &failing)?;
        let mut overview = Overview {
            made: Some(present.into()),
            needs: failing.iter().map(need_of).collect(),
            plan_at: Some(at),
            next: visits.iter().filter(|visit| !visit.feed).take(N_MARGIN).cloned().collect(),
            n_followed: scheduler.n_pages() as u64,
            n_waiting: store.count_backlog()?,
            ..Overview::default()
        };
        add_spending(&mut overview, store, &pace, at)?;
        add_quality(&mut overview, quality.as_ref());
        add_counts(&mut overview, &counts, archive.warc_bytes()?);
        let (n_probes, by_site) = (plan.n_probes as u64, Mutex::default());
        Ok(Summary {
            overview,
            followed,
            scheduler,
            pace,
            at,
            visits,
            n_probes,
            ranks,
            text_bytes: text_bytes(archive)?,
            sites,
            by_site,
        })
    }

    /// What the margin of home shows, with what is asked anew: whether a crawl runs, and what it fetched last.
    pub(crate) fn overview_now(&self, snapshot: &Snapshot) -> anyhow::Result<Overview> {
        let mut overview = self.overview.clone();
        overview.is_running = perennial_archive::lock::is_being_written(snapshot.archive().root());
        overview.latest = snapshot.store().latest_captures(N_MARGIN)?;
        Ok(overview)
    }

    /// What is wrong with a host.
    pub(crate) fn need_of(&self, host: &str) -> Option<&Need> {
        self.overview.needs.iter().find(|need| need.site.as_deref() == Some(host))
    }

    /// All hosts, those of the largest sites first.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.sites.iter().map(|site| site.host.clone()).collect()
    }
}

fn text_bytes(archive: &Archive) -> anyhow::Result<Option<(u64, u64)>> {
    let sizes = Texts::open_read(&archive.texts_path())?.map(|texts| texts.counts()).transpose()?;
    Ok(sizes.map(|sizes| (sizes.important_text_bytes, sizes.text_bytes)))
}

fn completeness_of(site: &SiteQuality) -> Option<Range> {
    let pooled = &site.pooled;
    let range = Range { at_least: pooled.at_least, likely: pooled.likely, at_most: pooled.at_most };
    site.is_known().then_some(range)
}

fn add_quality(overview: &mut Overview, quality: Option<&ArchiveQuality>) {
    let Some(quality) = quality else { return };
    let known = quality.sites.iter().filter_map(|site| Some((site.host.clone(), completeness_of(site)?)));
    overview.by_site = known.collect();
    overview.by_site.sort_by(|a, b| a.1.likely.total_cmp(&b.1.likely));
    overview.completeness = completeness_of(&quality.all);
    let coherence = &quality.all.coherence;
    let bounds = Bounds { at_least: coherence.at_least.weighted, at_most: coherence.at_most.weighted };
    overview.coherence = quality.all.is_known().then_some(bounds);
}

fn add_counts(overview: &mut Overview, counts: &Counts, warc_bytes: u64) {
    (overview.n_captures, overview.n_versions, overview.n_indexed) =
        (counts.n_captures, counts.n_versions, counts.n_indexed);
    (overview.n_pages, overview.n_sites, overview.warc_bytes) = (counts.n_pages, counts.n_sites, warc_bytes);
    let instant = |text: &Option<String>| Some(Timestamp::parse(text.as_deref()?).ok()?.into());
    (overview.first_capture, overview.last_capture) =
        (instant(&counts.first_capture), instant(&counts.last_capture));
}

fn add_spending(
    overview: &mut Overview,
    store: &Store,
    pace: &PlannedBudget,
    at: Timestamp,
) -> anyhow::Result<()> {
    let hours = store.spent_by_hour(at, N_HOURS)?;
    if hours.iter().all(|n| *n == 0) {
        return Ok(());
    }
    overview.visits_per_hour = Some(pace.budget.visits_in(Span::from_hours(1)));
    overview.visits_last_day = Some(hours.iter().sum());
    let source = if pace.source == "perennial.toml" { "" } else { pace.source };
    overview.spending = Some(Spending { hours, until: at, source });
    Ok(())
}

fn site_rows(
    store: &Store,
    quality: Option<&ArchiveQuality>,
    failing: &[Failing],
) -> anyhow::Result<Vec<SiteRow>> {
    let known: HashMap<&str, &SiteQuality> =
        quality.iter().flat_map(|quality| &quality.sites).map(|site| (site.host.as_str(), site)).collect();
    let row = |(host, n_pages, n_captures): (String, u64, u64)| SiteRow {
        completeness: known.get(host.as_str()).and_then(|site| completeness_of(site)),
        need: failing.iter().find(|failing| failing.host == host).map(title_of),
        host,
        n_pages,
        n_captures,
    };
    Ok(store.sites()?.into_iter().map(row).collect())
}

fn title_of(failing: &Failing) -> String {
    match (failing.n_failed, failing.n_visited) {
        (0, all) if failing.n_gone == 1 => format!("1 page of {all} is gone"),
        (0, all) => format!("{} pages of {all} are gone", failing.n_gone),
        (n, all) if n == all => "does not answer".to_string(),
        (1, all) => format!("1 page of {all} fails"),
        (n, all) => format!("{n} pages of {all} fail"),
    }
}

/// What a person is told of a host, and the cure.
fn need_of(failing: &Failing) -> Need {
    let host = &failing.host;
    let last = failing.last.to_rfc3339();
    let last = format!("{} {}", last.get(..10).unwrap_or_default(), last.get(11..16).unwrap_or_default());
    let (text, cure, command) = match failing.n_failed {
        0 => (
            format!("The last visit that found nothing was on {last}."),
            "Moved? Follow the new address with perennial add. Gone? Stop visiting with perennial remove; what is archived stays. Its seed:",
            "perennial list".to_string(),
        ),
        _ => {
            let wait = failing.ready_at.filter(|ready| *ready > failing.last);
            let wait = wait.map(|ready| format!(" It is not asked again before {}.", ready.to_rfc3339()));
            let rows = failing.n_in_a_row;
            (
                format!("Up to {rows} failures in a row, the last on {last}.{}", wait.unwrap_or_default()),
                "The crawl tries again by itself, later each time. What came back is in the log:",
                format!("perennial log --outcome failed --url {host}"),
            )
        }
    };
    Need {
        title: format!("{host}: {}", title_of(failing)),
        text,
        cure: cure.to_string(),
        command: Some(command),
        site: Some(host.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_archive_is_reckoned_apart_and_an_empty_one_has_a_standing() {
        let dir = tempfile::tempdir().unwrap();
        let pool = Pool::open(Archive::create(&dir.path().join("a")).unwrap()).unwrap();
        let at_once = SummaryCache::default().of(&pool).unwrap().unwrap();
        assert_eq!((at_once.overview.n_followed, at_once.visits.len(), at_once.sites.len()), (0, 0, 0));
        let apart = SummaryCache { quick: -1, ..SummaryCache::default() };
        assert!(apart.of(&pool).unwrap().is_none(), "nobody waits for it");
        let deadline = Instant::now() + Duration::from_secs(60);
        while apart.of(&pool).unwrap().is_none() {
            assert!(Instant::now() < deadline, "it is never made");
            std::thread::yield_now();
        }
    }
}
