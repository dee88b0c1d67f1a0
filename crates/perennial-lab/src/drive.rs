//! A world and a configuration -> the captures that the scheduler would have made of it, and their quality.
//!
//! The clock leaps from one wakeup of the scheduler to the next. This module decides nothing: visits come from
//! [`Scheduler::next_visit`] and answers go to [`Scheduler::record`], as in the crawler. The strategies of the papers are driven
//! through the same calls.

use perennial_core::page::importance::Importance;
use perennial_core::page::look::ChangeStatus;
use perennial_core::quality::Coherence;
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

/// What a visit shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Visibility {
    /// The importance of the last change before the visit, as in the papers.
    #[default]
    LastChange,
    /// The difference to the crawler's own last copy, 1 - prod(1 - m), which is all that a real crawler can see.
    Difference,
}

/// How a world is crawled.
#[derive(Clone, Debug)]
pub struct DriveConfig {
    /// How pages are ranked.
    pub strategy: SimulatedStrategy,
    /// The scheduler's configuration but for its strategy: budget, slots and so on.
    pub schedule: ScheduleConfig,
    /// What a visit shows.
    pub visibility: Visibility,
    /// Patterns that are given to the scheduler; without them it learns.
    pub known: Option<std::sync::Arc<Vec<KnownPattern>>>,
    /// Share of pages whose changes are announced by feeds, sitemaps or pushes.
    pub announced_share: f64,
    /// The clock of sites that have none of their own.
    pub clock: LocalClock,
    /// Seed of the scheduler and of the choice of pages that announce their changes.
    pub seed: u64,
}

/// What a simulated crawl left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedCrawl {
    /// When each page was captured, oldest first.
    pub captures: Vec<Vec<Timestamp>>,
}

/// Quality of a simulated crawl within a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrawlQuality {
    /// The share of what existed that was captured.
    pub completeness: Completeness,
    /// The share of a snapshot that existed at one instant, as the mean over queries.
    pub coherence: Coherence,
    /// The same without the versions before any known change.
    pub coherence_of_changed: Coherence,
    /// How near captures are to the instants of the same queries.
    pub timeliness: Timeliness,
}

/// What decides on visits: the crawler's own scheduler, or a strategy of the papers.
pub trait VisitScheduler {
    /// Adds a local clock, by whose days and hours pages are judged.
    fn add_clock(&mut self, clock: LocalClock) -> ClockId;
    /// Adds a page that was never captured.
    fn add_page(&mut self, page: PageId, info: PageInfo);
    /// A page announced that it changed at an instant.
    fn announce(&mut self, page: PageId, at: Timestamp);
    /// The next page to fetch, or nothing until [`VisitScheduler::next_wakeup`].
    fn next_visit(&mut self, now: Timestamp) -> Option<PageId>;
    /// When [`VisitScheduler::next_visit`] may have something again; nothing when there are no pages.
    fn next_wakeup(&self) -> Option<Timestamp>;
    /// Takes in what a visit found.
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
            crawl_with(&mut PaperScheduler::new(strategy, schedule, world.start), world, config)
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
        let group = PageInfo::group_of(&format!("{}/{}", page.site.0, page.name));
        let info = PageInfo { weight, clock, known, group, ..PageInfo::of_site(page.site) };
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

/// Drives a scheduler under a virtual clock. `before` is called when the clock has leapt, `visit` says what a visit finds.
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
            // If the scheduler asked for a wakeup in the past, the loop would never end.
            Some(wakeup) => now = wakeup.max(now + Span::from_millis(1)),
            None => break,
        }
    }
}

/// What a visit finds.
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
    // What counts as no change in an archive counts as none here.
    VisitOutcome::from(ChangeStatus::Changed(match visibility {
        Visibility::LastChange => newest.importance,
        Visibility::Difference => difference(changes),
    }))
}

/// 1 - prod(1 - m): every change leaves the share 1 - m of the page as it was.
pub fn difference(changes: &[Change]) -> Importance {
    let same: f64 = changes.iter().map(|change| 1.0 - change.importance.get()).product();
    Importance::new(1.0 - same)
}

/// The announced changes in the order of time, and the next one to deliver.
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
    /// How many visits were made in a window.
    pub fn n_visits(&self, window: Window) -> usize {
        self.captures.iter().flatten().filter(|at| window.contains(**at)).count()
    }

    /// Completeness over the changes of a window and coherence at `n_queries` instants spread over it.
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
                // Multiples of the golden ratio spread evenly over the window, and in it over the hours of the day. Equal parts of a
                // window of whole days would ask at the same hours of all days, on the border of two slots.
                let share = (f64::from(n + 1) * 0.618_033_988_749_895).fract();
                window.from + Span::from_millis((length as f64 * share) as i64)
            })
        };
        CrawlQuality {
            completeness: completeness(pages),
            coherence: Coherence::mean(instants().map(|at| archive_coherence(&records, at))),
            coherence_of_changed: Coherence::mean(
                instants().map(|at| archive_coherence_of_changed(&records, at)),
            ),
            timeliness: Timeliness::mean(instants().map(|at| timeliness(&records, at))),
        }
    }
}
