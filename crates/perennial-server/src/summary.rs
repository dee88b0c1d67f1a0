//! Caches aggregates over a whole archive: holdings, quality, the plan of visits, problems that need a person. Computing them takes
//! longer the larger the archive is. Small archives are computed while the request waits; large ones on a thread, while requests
//! receive the previous summary.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perennial_core::schedule::{RankedPage, Scheduler};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::PageId;

use super::dashboard::components::{Bounds, Range, date_time};
use super::dashboard::overview::{Overview, QualityPoint, Spending, Warning};
use super::dashboard::site::SiteSummary;
use super::dashboard::sites::SiteRow;
use super::pool::Pool;
use perennial_archive::manifest::files_behind;
use perennial_archive::store::{ArchiveCounts, FailingHost, SiteCounts, Store, Texts};
use perennial_archive::{Archive, Snapshot, now};
use perennial_engine::learn::{
    self, FollowedSites, NextVisit, PlannedBudget, PlannedCrawl, VisitDescriber, VisitPlan,
};
use perennial_engine::quality::{ArchiveQuality, SiteQuality, measure};

/// A request waits for the summary of an archive with at most so many captures.
const QUICK_CAPTURES: i64 = 20_000;
/// A summary is reused for this time, or for twenty times the time it took to compute.
const FRESH: Duration = Duration::from_secs(5);
const COST_FACTOR: u32 = 20;
const MOST_VISITS: usize = 300;
/// Pages whose rank is kept.
const MOST_RANKED: usize = 50_000;
/// Visits and captures listed in the sidebar of the home page.
const N_MARGIN: usize = 5;
/// Hosts with problems that are listed.
const MAX_WARNINGS: usize = 5;
const N_PAST: i64 = 8;
/// The chart of quality needs captures over at least this time.
const LEAST_PAST: Span = Span::from_hours(12);
const N_HOURS: usize = 24;
/// If the last capture is older, no crawl is running; the plan then assumes that the crawl continues where it ended.
const STALE: Span = Span::from_hours(24);

/// The aggregates over one archive.
pub(crate) struct Summary {
    /// The sidebar of the home page, without the facts that are read again for each request.
    pub(crate) overview: Overview,
    pub(crate) followed: FollowedSites,
    /// The scheduler's state, as a crawl would have it at `at`.
    pub(crate) scheduler: Scheduler,
    pub(crate) pace: PlannedBudget,
    /// When the plan begins.
    pub(crate) at: Timestamp,
    /// The next visits, soonest first.
    pub(crate) visits: Vec<NextVisit>,
    /// URLs that may have no page.
    pub(crate) n_probes: u64,
    /// Pages by urgency, with their rank from 0.
    pub(crate) ranks: HashMap<PageId, (usize, RankedPage)>,
    /// Bytes of text in important versions, and of all searchable text.
    pub(crate) text_bytes: Option<(u64, u64)>,
    /// Largest first.
    pub(crate) sites: Vec<SiteRow>,
    /// Summaries of the sites that were requested.
    pub(crate) by_site: Mutex<HashMap<String, Arc<SiteSummary>>>,
}

impl std::fmt::Debug for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summary").field("at", &self.at).finish_non_exhaustive()
    }
}

/// The summary of an archive, reused between requests.
#[derive(Debug)]
pub(crate) struct SummaryCache {
    latest: Arc<Mutex<CachedSummary>>,
    past: Arc<Mutex<PastQuality>>,
    /// A request waits for the summary of an archive with at most so many captures.
    quick: i64,
}

impl Default for SummaryCache {
    fn default() -> SummaryCache {
        SummaryCache { latest: Arc::default(), past: Arc::default(), quick: QUICK_CAPTURES }
    }
}

/// The quality at earlier instants. Each instant costs as much as the present one, so a thread computes them for any archive.
#[derive(Debug, Default)]
struct PastQuality {
    points: Vec<QualityPoint>,
    last_capture: Option<Timestamp>,
    computed: Option<Instant>,
    cost: Duration,
    is_computing: bool,
}

impl PastQuality {
    fn is_due(&self, last: Timestamp) -> bool {
        let is_old =
            self.computed.is_none_or(|computed| computed.elapsed() > FRESH.max(self.cost * COST_FACTOR));
        !self.is_computing && self.last_capture != Some(last) && is_old
    }
}

#[derive(Debug, Default)]
struct CachedSummary {
    summary: Option<Arc<Summary>>,
    computed: Option<Instant>,
    cost: Duration,
    is_computing: bool,
    problem: Option<String>,
}

impl CachedSummary {
    fn is_fresh(&self) -> bool {
        self.computed.is_some_and(|computed| computed.elapsed() < FRESH.max(self.cost * COST_FACTOR))
    }

    fn replace(&mut self, new: anyhow::Result<Summary>, started: Instant) {
        (self.cost, self.computed, self.is_computing) = (started.elapsed(), Some(Instant::now()), false);
        match new {
            Ok(summary) => (self.summary, self.problem) = (Some(Arc::new(summary)), None),
            Err(error) => self.problem = Some(format!("{error:#}")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SummaryCache {
    /// Makes the next request compute the summary again, because the settings changed.
    pub(crate) fn invalidate(&self) {
        lock(&self.latest).computed = None;
    }

    /// The latest summary; `None` while that of a large archive is computed for the first time.
    pub(crate) fn latest(&self, pool: &Pool) -> anyhow::Result<Option<Arc<Summary>>> {
        let n_captures = pool.with(|snapshot| snapshot.store().last_capture_number())??;
        let mut latest = lock(&self.latest);
        if latest.is_fresh() || latest.is_computing {
            return match &latest.problem {
                Some(problem) if latest.summary.is_none() => anyhow::bail!("{problem}"),
                _ => Ok(latest.summary.clone()),
            };
        }
        let started = Instant::now();
        if n_captures <= self.quick {
            let new = pool.with(Summary::new).and_then(|new| new);
            latest.replace(new, started);
            return match &latest.problem {
                Some(problem) => anyhow::bail!("{problem}"),
                None => Ok(latest.summary.clone()),
            };
        }
        latest.is_computing = true;
        let (root, shared) = (pool.archive().root().to_path_buf(), self.latest.clone());
        std::thread::spawn(move || {
            let new = Archive::open(&root).and_then(|archive| archive.snapshot());
            let new = new.and_then(|snapshot| Summary::new(&snapshot));
            lock(&shared).replace(new, started);
        });
        Ok(latest.summary.clone())
    }

    /// The quality at earlier instants, as computed last; empty while it is computed for the first time.
    pub(crate) fn past(&self, snapshot: &Snapshot) -> anyhow::Result<Vec<QualityPoint>> {
        let store = snapshot.store();
        let Some((first, last)) =
            store.first_capture()?.zip(store.last_capture(snapshot.archive().horizon())?)
        else {
            return Ok(Vec::new());
        };
        let mut past = lock(&self.past);
        if last - first >= LEAST_PAST && past.is_due(last) {
            past.is_computing = true;
            let (root, shared) = (snapshot.archive().root().to_path_buf(), self.past.clone());
            std::thread::spawn(move || {
                let started = Instant::now();
                // After an error there is no chart; the present quality shows the error.
                let points = measure_past(&root, first, last).unwrap_or_default();
                *lock(&shared) = PastQuality {
                    points,
                    last_capture: Some(last),
                    computed: Some(Instant::now()),
                    cost: started.elapsed(),
                    is_computing: false,
                };
            });
        }
        Ok(past.points.clone())
    }
}

/// The quality at instants that divide the archive's time evenly.
fn measure_past(root: &Path, first: Timestamp, last: Timestamp) -> anyhow::Result<Vec<QualityPoint>> {
    let snapshot = Archive::open(root)?.snapshot()?;
    let followed = FollowedSites::load(snapshot.archive(), snapshot.store())?;
    let step = (last - first).as_millis() / N_PAST;
    let instants = (1..N_PAST).map(|n| first + Span::from_millis(step * n)).chain([last]);
    let mut points = Vec::new();
    for at in instants {
        let quality = measure(&snapshot, None, at, at, &followed)?;
        let coherence = &quality.all.coherence;
        points.extend(completeness(&quality.all).map(|completeness| QualityPoint {
            time: at.into(),
            completeness,
            coherence: Bounds { at_least: coherence.at_least.weighted, at_most: coherence.at_most.weighted },
        }));
    }
    Ok(points)
}

impl Summary {
    pub(crate) fn new(snapshot: &Snapshot) -> anyhow::Result<Summary> {
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let (present, last) = (now(), store.last_capture(archive.horizon())?);
        let at = last.filter(|last| present - *last > STALE || *last > present).unwrap_or(present);
        let planned = PlannedCrawl::load(archive, store, None, at)?;
        let scheduler = planned.scheduler(store, at)?;
        let PlannedCrawl { followed, pace, .. } = planned;
        let described = VisitDescriber { store, followed: &followed };
        let plan = VisitPlan::new(&scheduler, at, MOST_VISITS);
        let visits = plan.visits.iter().map(|(at, ranked)| described.entry(*at, ranked));
        let visits = visits.collect::<anyhow::Result<Vec<NextVisit>>>()?;
        let mut visits = learn::with_published(learn::published_plan(archive, present), visits);
        visits.extend(described.polls(at)?);
        visits.sort_by_key(|visit| (visit.at.is_none(), visit.at.clone()));
        let ranks = scheduler.ranking(at, MOST_RANKED.min(scheduler.n_pages())).into_iter().enumerate();
        let ranks = ranks.map(|(rank, ranked)| (ranked.page, (rank, ranked))).collect();
        let quality = last.map(|last| measure(snapshot, None, last, last, &followed)).transpose()?;
        let (counts, failing) = (store.counts(archive.horizon())?, store.failing_hosts(MAX_WARNINGS)?);
        let sites = site_rows(store, quality.as_ref(), &failing)?;
        let mut overview = Overview {
            computed: Some(present.into()),
            warnings: state_warning(archive, store)?
                .into_iter()
                .chain(failing.iter().map(host_warning))
                .collect(),
            plan_at: Some(at),
            next: visits.iter().filter(|visit| !visit.feed).take(N_MARGIN).cloned().collect(),
            n_followed: scheduler.n_pages() as u64,
            n_unanalysed: store.count_backlog(archive.horizon())?,
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

    /// The sidebar of the home page, with what is read again for each request: whether a crawl runs, and its latest captures.
    pub(crate) fn overview_now(&self, snapshot: &Snapshot) -> anyhow::Result<Overview> {
        let mut overview = self.overview.clone();
        overview.is_running = perennial_archive::lock::is_being_written(snapshot.archive().root());
        overview.latest = snapshot.store().latest_captures(N_MARGIN)?;
        Ok(overview)
    }

    /// The problem of a host.
    pub(crate) fn warning(&self, host: &str) -> Option<&Warning> {
        self.overview.warnings.iter().find(|warning| warning.site.as_deref() == Some(host))
    }

    /// All hosts, largest sites first.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.sites.iter().map(|site| site.host.clone()).collect()
    }
}

fn text_bytes(archive: &Archive) -> anyhow::Result<Option<(u64, u64)>> {
    let sizes = Texts::open_read(&archive.texts_path())?.map(|texts| texts.counts()).transpose()?;
    Ok(sizes.map(|sizes| (sizes.important_text_bytes, sizes.text_bytes)))
}

fn completeness(site: &SiteQuality) -> Option<Range> {
    let pooled = &site.pooled;
    let range = Range { at_least: pooled.at_least, likely: pooled.likely, at_most: pooled.at_most };
    site.is_known().then_some(range)
}

fn add_quality(overview: &mut Overview, quality: Option<&ArchiveQuality>) {
    let Some(quality) = quality else { return };
    let known = quality.sites.iter().filter_map(|site| Some((site.host.clone(), completeness(site)?)));
    overview.by_site = known.collect();
    overview.by_site.sort_by(|a, b| a.1.likely.total_cmp(&b.1.likely));
    overview.completeness = completeness(&quality.all);
    let coherence = &quality.all.coherence;
    let bounds = Bounds { at_least: coherence.at_least.weighted, at_most: coherence.at_most.weighted };
    overview.coherence = quality.all.is_known().then_some(bounds);
}

fn add_counts(overview: &mut Overview, counts: &ArchiveCounts, warc_bytes: u64) {
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
    overview.visits_per_hour = pace.budget.map(|budget| budget.visits_in(Span::from_hours(1)));
    overview.visits_last_day = Some(hours.iter().sum());
    let source = if pace.source == "perennial.toml" { "" } else { pace.source };
    overview.spending = Some(Spending { hours, until: at, source });
    Ok(())
}

fn site_rows(
    store: &Store,
    quality: Option<&ArchiveQuality>,
    failing: &[FailingHost],
) -> anyhow::Result<Vec<SiteRow>> {
    let known: HashMap<&str, &SiteQuality> =
        quality.iter().flat_map(|quality| &quality.sites).map(|site| (site.host.as_str(), site)).collect();
    let row = |SiteCounts { host, n_pages, n_captures }| SiteRow {
        completeness: known.get(host.as_str()).and_then(|site| completeness(site)),
        warning: failing.iter().find(|failing| failing.host == host).map(failure_title),
        host,
        n_pages,
        n_captures,
    };
    Ok(store.sites()?.into_iter().map(row).collect())
}

fn failure_title(failing: &FailingHost) -> String {
    match (failing.n_failed, failing.n_visited) {
        (0, all) if failing.n_gone == 1 => format!("1 page of {all} is gone"),
        (0, all) => format!("{} pages of {all} are gone", failing.n_gone),
        (n, all) if n == all => "does not respond".to_string(),
        (1, all) => format!("1 page of {all} fails"),
        (n, all) => format!("{n} pages of {all} fail"),
    }
}

/// The problem of a failing host, and what to do about it.
/// A state that lacks captures shows an archive with less in it.
fn state_warning(archive: &Archive, store: &Store) -> anyhow::Result<Option<Warning>> {
    let behind = files_behind(archive, store)?;
    let Some(first) = behind.first() else { return Ok(None) };
    Ok(Some(Warning {
        title: "The state lacks captures".to_owned(),
        text: format!(
            "It was replaced by an older or empty one: {} WARC files are not in it, {first} is the first.",
            behind.len()
        ),
        hint: "The next command that writes adds them:".to_owned(),
        command: Some("perennial analyse".to_owned()),
        site: None,
    }))
}

fn host_warning(failing: &FailingHost) -> Warning {
    let host = &failing.host;
    let (text, hint, command) = match failing.n_failed {
        0 => (
            format!("The last visit that found a page gone was on {}.", date_time(failing.last)),
            "If it moved, follow the new URL with perennial add. If it is gone, end its visits with perennial remove; its captures are kept. Its seed:",
            "perennial list".to_string(),
        ),
        _ => {
            let wait = failing.ready_at.filter(|ready| *ready > failing.last);
            let wait = wait.map(|ready| format!(" The next attempt is not before {}.", date_time(ready)));
            let rows = failing.n_in_a_row;
            (
                format!(
                    "Up to {rows} failures in a row, the last on {}.{}",
                    date_time(failing.last),
                    wait.unwrap_or_default()
                ),
                "The crawl retries by itself, less and less often. The log shows each response:",
                format!("perennial log --outcome failed --url {host}"),
            )
        }
    };
    Warning {
        title: format!("{host}: {}", failure_title(failing)),
        text,
        hint: hint.to_string(),
        command: Some(command),
        site: Some(host.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_computes_the_summary_of_a_large_archive() {
        let dir = tempfile::tempdir().unwrap();
        let pool = Pool::open(Archive::create(&dir.path().join("a")).unwrap()).unwrap();
        let quick = SummaryCache::default().latest(&pool).unwrap().unwrap();
        assert_eq!((quick.overview.n_followed, quick.visits.len(), quick.sites.len()), (0, 0, 0));
        let slow = SummaryCache { quick: -1, ..SummaryCache::default() };
        assert!(slow.latest(&pool).unwrap().is_none(), "the request does not wait for it");
        let deadline = Instant::now() + Duration::from_secs(60);
        while slow.latest(&pool).unwrap().is_none() {
            assert!(Instant::now() < deadline, "the thread never finishes");
            std::thread::yield_now();
        }
    }
}
