//! Crawls a world with a scheduler, and measures the quality of the captures.
//!
//! The clock leaps from one wakeup of the scheduler to the next. This module decides nothing: visits come from
//! [`Scheduler::next_visit`] and outcomes go to [`Scheduler::record`], as in the crawler. The strategies of the papers
//! implement the same calls.

use perennial_core::page::change_status::ChangeStatus;
use perennial_core::page::importance::Importance;
use perennial_core::quality::SnapshotCoherence;
use perennial_core::schedule::{ClockId, KnownPattern, PageInfo, ScheduleConfig, Scheduler, VisitOutcome};
use perennial_core::time::{LocalClock, Span, Timestamp};
use perennial_core::url::PageId;

use crate::papers::PaperScheduler;
use crate::quality::{
    Completeness, PageRecord, Timeliness, Window, archive_coherence, archive_coherence_of_changed,
    completeness, page_completeness, timeliness,
};
use crate::rng::WorldRng;
use crate::strategy::SimulatedStrategy;
use crate::world::{Change, ChangeEvent, World};

/// The importance that a visit observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Visibility {
    /// The importance of the last change before the visit, as in the papers.
    #[default]
    LastChange,
    /// The difference to the crawler's last copy, 1 - prod(1 - m). A real crawler observes only this.
    Difference,
}

/// How a world is crawled.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    pub strategy: SimulatedStrategy,
    /// The scheduler's configuration. Its strategy is ignored.
    pub schedule: ScheduleConfig,
    /// How often the strategies of the papers rank pages. The crawler's scheduler has no slots.
    pub slot: Span,
    pub visibility: Visibility,
    /// Patterns given to the scheduler. Without them it learns.
    pub known: Option<std::sync::Arc<Vec<KnownPattern>>>,
    /// Share of pages whose changes are announced by feeds, sitemaps or pushes.
    pub announced_share: f64,
    /// The clock of sites without a clock in the world.
    pub clock: LocalClock,
    /// Seed of the scheduler and of the choice of pages that announce their changes.
    pub seed: u64,
}

/// The captures of a simulated crawl.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedCrawl {
    /// When each page was captured, oldest first.
    pub captures: Vec<Vec<Timestamp>>,
}

/// Quality of a simulated crawl within a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrawlQuality {
    /// Share of the changes that was captured.
    pub completeness: Completeness,
    /// Share of a snapshot that existed at one instant; mean over queries.
    pub coherence: SnapshotCoherence,
    /// Coherence without the versions before the first known change.
    pub coherence_of_changed: SnapshotCoherence,
    /// How close captures are to the instants of the same queries.
    pub timeliness: Timeliness,
}

/// Chooses visits: the crawler's scheduler, or a strategy of the papers.
pub trait VisitScheduler {
    /// Adds a local clock, whose days and hours the patterns use.
    fn add_clock(&mut self, clock: LocalClock) -> ClockId;
    /// Adds a page that was never captured.
    fn add_page(&mut self, page: PageId, info: PageInfo);
    /// A page announced that it changed at an instant.
    fn announce(&mut self, page: PageId, at: Timestamp);
    /// The next page to fetch, or `None` until [`VisitScheduler::next_wakeup`].
    fn next_visit(&mut self, now: Timestamp) -> Option<PageId>;
    /// When [`VisitScheduler::next_visit`] may return a page again; `None` if there are no pages.
    fn next_wakeup(&self) -> Option<Timestamp>;
    /// Records the outcome of a visit.
    fn record(&mut self, page: PageId, outcome: VisitOutcome, now: Timestamp);
}

impl VisitScheduler for Scheduler {
    fn add_clock(&mut self, clock: LocalClock) -> ClockId {
        self.add_clock(clock)
    }

    fn add_page(&mut self, page: PageId, info: PageInfo) {
        self.add_page(page, info);
    }

    fn announce(&mut self, page: PageId, at: Timestamp) {
        self.announce(page, at, None);
    }

    fn next_visit(&mut self, now: Timestamp) -> Option<PageId> {
        self.next_visit(now).map(|visit| visit.page)
    }

    fn next_wakeup(&self) -> Option<Timestamp> {
        self.next_wakeup()
    }

    fn record(&mut self, page: PageId, outcome: VisitOutcome, now: Timestamp) {
        self.record(page, outcome, now);
    }
}

/// Crawls the world from its start to its end.
pub fn crawl(world: &World, config: &DriveConfig) -> SimulatedCrawl {
    match config.strategy {
        SimulatedStrategy::Crawler(strategy) => {
            let schedule = ScheduleConfig { strategy, ..config.schedule.clone() };
            crawl_with(&mut Scheduler::new(schedule, config.seed, world.start), world, config)
        }
        SimulatedStrategy::Baseline(strategy) => {
            let schedule = config.schedule.clone();
            crawl_with(&mut PaperScheduler::new(strategy, schedule, config.slot, world.start), world, config)
        }
    }
}

fn crawl_with<S: VisitScheduler>(scheduler: &mut S, world: &World, config: &DriveConfig) -> SimulatedCrawl {
    let clock = scheduler.add_clock(config.clock.clone());
    let clocks: Vec<ClockId> = world.clocks.iter().map(|clock| scheduler.add_clock(clock.clone())).collect();
    for (place, page) in world.pages.iter().enumerate() {
        let known = config.known.as_ref().and_then(|all| all.get(place).cloned());
        let clock = clocks.get(page.site.0 as usize).copied().unwrap_or(clock);
        let weight = page.weight as f32;
        let group = PageInfo::directory_group(&format!("{}/{}", page.site.0, page.name));
        let info = PageInfo { weight, clock, known, group, ..PageInfo::for_site(page.site) };
        scheduler.add_page(PageId(place as u32), info);
    }
    let mut announcements = Announcements::new(world, config);
    let mut crawl = SimulatedCrawl { captures: vec![Vec::new(); world.pages.len()] };
    let visit = |page: PageId, now: Timestamp| {
        let captures = &mut crawl.captures[page.0 as usize];
        let outcome = visit_outcome(world, page.0 as usize, captures.last().copied(), now, config.visibility);
        captures.push(now);
        outcome
    };
    let before = |scheduler: &mut S, now| announcements.deliver(scheduler, now);
    drive(scheduler, world.start, world.end, before, visit);
    crawl
}

/// Drives a scheduler under a virtual clock. `before` is called after each leap of the clock, `visit` returns the
/// outcome of a visit.
pub fn drive<S: VisitScheduler>(
    scheduler: &mut S,
    start: Timestamp,
    end: Timestamp,
    mut before: impl FnMut(&mut S, Timestamp),
    mut visit: impl FnMut(PageId, Timestamp) -> VisitOutcome,
) {
    let mut now = start;
    while now < end {
        before(scheduler, now);
        while let Some(page) = scheduler.next_visit(now) {
            let outcome = visit(page, now);
            scheduler.record(page, outcome, now);
        }
        match scheduler.next_wakeup() {
            // A wakeup in the past would make this loop endless.
            Some(wakeup) => now = wakeup.max(now + Span::from_millis(1)),
            None => break,
        }
    }
}

fn visit_outcome(
    world: &World,
    place: usize,
    last: Option<Timestamp>,
    now: Timestamp,
    visibility: Visibility,
) -> VisitOutcome {
    let Some(last) = last else { return VisitOutcome::from(ChangeStatus::New) };
    let changes = world.pages[place].changes_between(last, now);
    let Some(newest) = changes.last() else { return VisitOutcome::Unchanged };
    // The threshold for changes is the same as in an archive.
    VisitOutcome::from(ChangeStatus::Changed(match visibility {
        Visibility::LastChange => newest.importance,
        Visibility::Difference => difference(changes),
    }))
}

/// 1 - prod(1 - m). Each change leaves the share 1 - m of the page unchanged.
pub fn difference(changes: &[Change]) -> Importance {
    let same: f64 = changes.iter().map(|change| 1.0 - change.importance.get()).product();
    Importance::new(1.0 - same)
}

/// The announced changes, sorted by time.
struct Announcements {
    events: Vec<ChangeEvent>,
    next: usize,
}

impl Announcements {
    fn new(world: &World, config: &DriveConfig) -> Announcements {
        if config.announced_share <= 0.0 {
            return Announcements { events: Vec::new(), next: 0 };
        }
        let announces: Vec<bool> = (0..world.pages.len())
            .map(|place| {
                WorldRng::fork(config.seed ^ 0x6E6F_7469_6365, place as u64).unit() < config.announced_share
            })
            .collect();
        let mut events = world.events();
        events.retain(|event| announces[event.page.0 as usize]);
        Announcements { events, next: 0 }
    }

    fn deliver(&mut self, scheduler: &mut impl VisitScheduler, now: Timestamp) {
        while let Some(event) = self.events.get(self.next).filter(|event| event.at <= now) {
            scheduler.announce(event.page, event.at);
            self.next += 1;
        }
    }
}

impl SimulatedCrawl {
    pub fn n_visits(&self, window: Window) -> usize {
        self.captures.iter().flatten().filter(|at| window.contains(**at)).count()
    }

    /// Completeness over the changes of a window, and coherence at `n_queries` instants within it.
    pub fn quality(&self, world: &World, window: Window, n_queries: u32) -> CrawlQuality {
        let records: Vec<PageRecord<'_>> = world
            .pages
            .iter()
            .zip(&self.captures)
            .map(|(page, captures)| PageRecord {
                site: page.site,
                weight: page.weight,
                changes: &page.changes,
                captures,
            })
            .collect();
        let pages = records.iter().map(|page| (page.site, page.weight, page_completeness(page, window)));
        let length = (window.until - window.from).as_millis();
        let instants = || {
            (0..n_queries).map(|n| {
                // Multiples of the golden ratio are spread evenly over the window and over the hours of the day. Equal
                // parts of a window of whole days would always query the same hours.
                let share = (f64::from(n + 1) * 0.618_033_988_749_895).fract();
                window.from + Span::from_millis((length as f64 * share) as i64)
            })
        };
        CrawlQuality {
            completeness: completeness(pages),
            coherence: SnapshotCoherence::mean(instants().map(|at| archive_coherence(&records, at))),
            coherence_of_changed: SnapshotCoherence::mean(
                instants().map(|at| archive_coherence_of_changed(&records, at)),
            ),
            timeliness: Timeliness::mean(instants().map(|at| timeliness(&records, at))),
        }
    }
}
