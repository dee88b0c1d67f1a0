//! What is known of pages -> which one to visit next, and when to ask again (P-PATTERN 8, P-QUALITY 6).
//!
//! Time is cut into slots. At the start of a slot all pages are ranked at once; the best are handed out over
//! the slot, a page at most once. The crawler (real clock) and the simulator (virtual clock) drive the same
//! [`Scheduler`]:
//!
//! ```
//! use perennial_core::page::{PageId, SiteId};
//! use perennial_core::schedule::{PageInfo, ScheduleConfig, Scheduler, VisitOutcome};
//! use perennial_core::time::{Span, Timestamp};
//!
//! let mut now = Timestamp::parse("2026-11-16T09:00:00Z").unwrap();
//! let mut scheduler = Scheduler::new(ScheduleConfig::default(), 7, now);
//! scheduler.add_page(PageId(0), PageInfo::of_site(SiteId(0)));
//! while now < Timestamp::parse("2026-11-18").unwrap() {
//!     if let Some(visit) = scheduler.next_visit(now) {
//!         scheduler.record(visit.page, VisitOutcome::Unchanged, now);
//!     } else {
//!         now = scheduler.next_wakeup().unwrap();
//!     }
//! }
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `config` | what the user wants |
//! | `visit` | what goes between scheduler and driver |
//! | `pages` | the columns |
//! | `select` | the n largest of millions |
//! | `plan` | a slot's budget -> its list of visits |

mod config;
mod pages;
mod plan;
mod select;
mod visit;

use std::collections::VecDeque;

pub use config::{Budget, Goal, Pacing, ScheduleConfig, Strategy, StrategyError};
pub use visit::{ClockId, KnownPattern, PageInfo, Peak, Ranked, Reason, Visit, VisitOutcome};

use crate::importance::Importance;
use crate::page::{PageId, SiteId};
use crate::time::{LocalClock, Span, Timestamp};
use pages::{FRESH, GONE, NONE, NOTICED, PENDING, Pages};
use plan::Planned;

/// First wait after a failure; doubled with each further one, up to a day.
const FIRST_RETRY_SECS: u32 = 60;
const LONGEST_RETRY_SECS: u32 = 86_400;
/// First probe of a page that is gone; doubled each time, up to two months.
const FIRST_PROBE_SECS: u32 = 86_400;
const LONGEST_PROBE_SECS: u32 = 60 * 86_400;

/// Decides which page to visit next. Same configuration, seed and calls: same visits.
#[derive(Clone)]
pub struct Scheduler {
    config: ScheduleConfig,
    seed: u64,
    /// Times in the columns are seconds since here; one second is taken off so that 0 can mean "never".
    base: Timestamp,
    pages: Pages,
    clocks: Vec<LocalClock>,
    slot: Slot,
    /// Visits the budget has granted and no slot has taken.
    credit: f64,
    /// The same for the share of the oldest.
    floor_credit: f64,
}

/// The stretch of time for which the pages are ranked.
#[derive(Clone, Default)]
struct Slot {
    range: Option<(Timestamp, Timestamp)>,
    /// How many visits it may hand out in all.
    capacity: usize,
    n_handed_out: usize,
    /// What is left to hand out, the next first.
    plan: VecDeque<Planned>,
}

impl Scheduler {
    /// A scheduler that knows no page yet.
    pub fn new(config: ScheduleConfig, seed: u64, now: Timestamp) -> Scheduler {
        let config = sane(config);
        Scheduler {
            config,
            seed,
            base: now - Span::from_hours(24 * 366 * 30),
            pages: Pages::default(),
            clocks: vec![LocalClock::utc()],
            slot: Slot::default(),
            credit: 0.0,
            floor_credit: 0.0,
        }
    }

    /// The configuration in force.
    pub fn config(&self) -> &ScheduleConfig {
        &self.config
    }

    /// Changes the budget from the next slot on.
    pub fn set_budget(&mut self, budget: Option<Budget>) {
        self.config.budget = budget;
    }

    /// A local clock for pages to live by. The clock 0 is UTC.
    pub fn add_clock(&mut self, clock: LocalClock) -> ClockId {
        if let Some(known) = self.clocks.iter().position(|other| *other == clock) {
            return ClockId(known as u16);
        }
        if self.clocks.len() > usize::from(u16::MAX) {
            return ClockId(0);
        }
        self.clocks.push(clock);
        ClockId((self.clocks.len() - 1) as u16)
    }

    /// How many pages there are.
    pub fn n_pages(&self) -> usize {
        self.pages.n_present()
    }

    /// Adds a page that was never captured, or changes what is known of one that is there.
    pub fn add_page(&mut self, page: PageId, info: PageInfo) {
        let (at, is_new) = self.pages.insert(page);
        self.pages.site[at] = info.site.0;
        self.pages.clock[at] = info.clock.0.min((self.clocks.len() - 1) as u16);
        self.pages.weight[at] = sane_weight(info.weight);
        self.pages.value[at] = self.pages.weight[at];
        if is_new {
            self.plan_fresh(at);
        }
    }

    /// Adds a page that was captured before this scheduler began, last at `seen`.
    pub fn add_seen_page(&mut self, page: PageId, info: PageInfo, seen: Timestamp) {
        let (at, _) = self.pages.insert(page);
        self.pages.flags[at] &= !FRESH;
        self.pages.seen_at[at] = self.secs(seen);
        self.add_page(page, info);
    }

    /// Forgets a page.
    pub fn remove_page(&mut self, page: PageId) {
        if let Some(at) = self.pages.remove(page) {
            self.slot.plan.retain(|planned| planned.at != at as u32);
        }
    }

    /// Changes omega(P).
    pub fn set_weight(&mut self, page: PageId, weight: f32) {
        if let Some(at) = self.pages.position(page) {
            self.pages.weight[at] = sane_weight(weight);
            self.pages.value[at] = self.pages.weight[at];
        }
    }

    /// The next page to fetch, or nothing until [`Scheduler::next_wakeup`].
    pub fn next_visit(&mut self, now: Timestamp) -> Option<Visit> {
        self.enter_slot(now);
        let due = self.slot.plan.front().is_some_and(|planned| planned.due <= now);
        let planned = if due { self.slot.plan.pop_front()? } else { return None };
        self.slot.n_handed_out += 1;
        let at = planned.at as usize;
        self.pages.flags[at] |= PENDING;
        Some(Visit {
            page: self.pages.id[at],
            site: SiteId(self.pages.site[at]),
            at: planned.due,
            reason: planned.reason,
        })
    }

    /// When [`Scheduler::next_visit`] may have something again; nothing when there are no pages.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        if self.pages.n_present() == 0 {
            return None;
        }
        match (self.slot.plan.front(), self.slot.range) {
            (Some(planned), _) => Some(planned.due),
            (None, Some((_, end))) => Some(end),
            (None, None) => Some(self.base),
        }
    }

    /// What a visit found. Also takes visits that the scheduler did not ask for.
    pub fn record(&mut self, page: PageId, outcome: VisitOutcome, now: Timestamp) {
        let Some(at) = self.pages.position(page) else { return };
        self.pages.flags[at] &= !PENDING;
        let secs = self.secs(now);
        match outcome {
            VisitOutcome::Changed(importance) => self.record_seen(at, Some(importance), secs),
            VisitOutcome::Unchanged => self.record_seen(at, None, secs),
            VisitOutcome::Failed { retry_at } => {
                let wait = doubled(FIRST_RETRY_SECS, self.pages.n_failures[at], LONGEST_RETRY_SECS);
                let asked = retry_at.map_or(0, |retry| self.secs(retry));
                self.back_off(at, secs.saturating_add(wait).max(asked));
            }
            VisitOutcome::Gone => {
                let wait = doubled(FIRST_PROBE_SECS, self.pages.n_failures[at], LONGEST_PROBE_SECS);
                self.pages.flags[at] |= GONE;
                self.back_off(at, secs.saturating_add(wait));
            }
        }
    }

    /// Word from a feed, a sitemap or a push that a page changed at an instant, and how much if it says so.
    pub fn notice(&mut self, page: PageId, at: Timestamp, importance: Option<Importance>) {
        let Some(position) = self.pages.position(page) else { return };
        let _ = importance;
        if self.secs(at) > self.pages.seen_at[position] {
            self.pages.flags[position] |= NOTICED;
        }
    }

    fn record_seen(&mut self, at: usize, importance: Option<Importance>, secs: u32) {
        let _ = importance;
        self.pages.flags[at] &= !(FRESH | GONE | NOTICED);
        self.pages.n_failures[at] = 0;
        self.pages.not_before[at] = 0;
        self.pages.seen_at[at] = secs;
    }

    fn back_off(&mut self, at: usize, until: u32) {
        self.pages.n_failures[at] = self.pages.n_failures[at].saturating_add(1);
        self.pages.not_before[at] = until;
    }

    fn secs(&self, at: Timestamp) -> u32 {
        ((at - self.base).as_millis() / 1000).clamp(1, i64::from(NONE - 1)) as u32
    }

    fn instant(&self, secs: u32) -> Timestamp {
        self.base + Span::from_secs(i64::from(secs))
    }
}

fn doubled(first: u32, times: u8, longest: u32) -> u32 {
    first.saturating_mul(1 << u32::from(times.min(20))).min(longest)
}

fn sane_weight(weight: f32) -> f32 {
    if weight.is_finite() { weight.clamp(0.0, 1e9) } else { 0.0 }
}

fn sane(mut config: ScheduleConfig) -> ScheduleConfig {
    config.n_periods = config.n_periods.clamp(1, 120);
    config.slot = config.slot.max(Span::from_secs(1));
    config.floor = config.floor.map(|share| if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 });
    config
}
