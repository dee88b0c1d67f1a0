//! What is known of pages -> which one to visit next, and when to ask again (P-PATTERN 8, P-QUALITY 6: docs/papers.md,
//! Strategies and Expected gain).
//!
//! Time is cut into slots. At the start of a slot all pages are ranked at once; the best are handed out over
//! the slot, a page at most once. The crawler (real clock) and the simulator (virtual clock) drive the same
//! [`Scheduler`]:
//!
//! ```
//! use perennial_core::url::{PageId, SiteId};
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
//! | `visit` | what the scheduler and its driver hand to each other |
//! | `words` | the reason of a visit -> a phrase |
//! | `pages` | one column for each fact about a page |
//! | `rows` | rates by bucket, two bytes each |
//! | `learn` | outcomes -> what is believed of pages |
//! | `days` | outcomes by day of the week and of the month -> time as it passes for a page |
//! | `told` | when pages changed, as their feeds tell -> the same, finer than looks |
//! | `gain` | the expected gain of a visit, which ranks pages in our own strategy |
//! | `ahead` | the same where a visit costs less at other hours |
//! | `worth` | what pages are worth to the goals, in one currency |
//! | `sites` | pages -> their sites, which are visited as a whole |
//! | `balance` | visits that serve all measures at once |
//! | `select` | the n largest of millions |
//! | `plan` | a slot's budget -> its list of visits |
//! | `bearings` | what was found out about prices <-> a value that outlives the scheduler |
//! | `directories` | looks by directory -> directories that are skipped, and a few visits that check it |
//! | `probe` | addresses without a page -> a few visits that see whether one has come |

mod ahead;
pub mod amounts;
mod balance;
mod bearings;
mod config;
mod days;
mod directories;
mod explain;
mod gain;
mod learn;
mod pages;
mod plan;
mod posing;
mod probe;
pub mod rank;
mod rows;
mod select;
mod sites;
mod told;
mod visit;
mod words;
mod worth;

use std::collections::{HashSet, VecDeque};

pub use crate::pattern::mixture::Observed;
pub use bearings::Bearings;
pub use config::{Budget, Goal, GoalError, Pacing, ScheduleConfig, Strategy, StrategyError};
pub use explain::{Belief, peak_of};
pub use visit::{ClockId, KnownPattern, PageInfo, Peak, Ranked, Reason, SkipRule, Visit, VisitOutcome};
pub use words::{ReasonContext, local_minute};

use crate::page::importance::Importance;
use crate::pattern::mixture::BucketPiece;
use crate::rng;
use crate::time::{LocalClock, Span, Timestamp};
use crate::url::PageId;
use ahead::Ahead;
use balance::Balance;
use directories::Directories;
use learn::Learner;
use pages::{ABSENT, ANNOUNCED, FRESH, KNOWN, NONE, PENDING, POSING, Pages};
use plan::{Bank, Planned};
use probe::Probes;
use sites::Sites;
use told::Told;
use worth::Totals;

/// First wait after a failure; doubled with each further one, up to a day.
const FIRST_RETRY_SECS: u32 = 60;
const LONGEST_RETRY_SECS: u32 = 86_400;
/// Most fits of the shared patterns after a history was learned anew.
const MOST_REFITS: u32 = 5;
/// L of a page that was announced as changed. It is so high that the gain is the value of the page times r.
const ANNOUNCED_LOAD: f32 = 8.0;

/// Decides which page to visit next. Same configuration, seed and calls: same visits.
#[derive(Clone)]
pub struct Scheduler {
    config: ScheduleConfig,
    seed: u64,
    /// Times in the columns are seconds since this instant. No time is below 1, so that 0 can mean "never".
    base: Timestamp,
    pages: Pages,
    /// When pages changed since they were looked at, as their feeds tell.
    told: Told,
    clocks: Vec<LocalClock>,
    learner: Learner,
    slot: Slot,
    /// The instant to which r and L of every page were carried: the end of the slot.
    state_at: Timestamp,
    /// The bucket of each clock in this slot.
    steps: Vec<gain::Step>,
    /// Pages never captured, in the order in which they came.
    fresh: VecDeque<u32>,
    bank: Bank,
    balance: Balance,
    sites: Sites,
    totals: Totals,
    probes: Probes,
    directories: Directories,
    ahead: Ahead,
    /// The buckets of the hours after the current slot, for each clock.
    hours_ahead: Vec<[ahead::HourAhead; ahead::DEPTH]>,
    pieces: Vec<BucketPiece>,
    /// Visits the budget has granted and no slot has taken.
    credit: f64,
    /// The same for the share that is kept for the pages seen longest ago.
    floor_credit: f64,
    /// The urgency at about twice the length of the list in the last two slots, the later slot first; 0 when it is not known.
    last_bounds: [f32; 2],
    /// A wait in seconds, and the second before which no page will have waited that long. Until then no search for such
    /// pages is needed.
    oldest_due: (f64, u32),
}

/// The stretch of time for which the pages are ranked.
#[derive(Clone, Default)]
struct Slot {
    range: Option<(Timestamp, Timestamp)>,
    /// How many visits the slot may hand out.
    capacity: usize,
    n_handed_out: usize,
    /// Positions of the pages that were handed out in this slot.
    had_turn: HashSet<u32>,
    /// What is left to hand out, the next first.
    plan: VecDeque<Planned>,
    /// Visits that came up during the slot; they go before the plan.
    at_once: VecDeque<Planned>,
}

impl Scheduler {
    /// A scheduler that knows no page yet.
    pub fn new(config: ScheduleConfig, seed: u64, now: Timestamp) -> Scheduler {
        let config = sane(config);
        let base = now - Span::from_hours(24 * 366 * 30);
        let mut learner =
            Learner::new(config.n_periods, config.observed, config.half_life, config.spells, config.calendar);
        learner.start(base, ((now - base).as_millis() / 1000) as u32);
        Scheduler {
            config,
            seed,
            base,
            pages: Pages::default(),
            clocks: vec![LocalClock::utc()],
            learner,
            slot: Slot::default(),
            state_at: now,
            steps: Vec::new(),
            fresh: VecDeque::new(),
            bank: Bank::default(),
            balance: Balance::default(),
            sites: Sites::default(),
            totals: Totals::default(),
            probes: Probes::default(),
            directories: Directories::default(),
            ahead: Ahead::default(),
            told: Told::default(),
            hours_ahead: Vec::new(),
            pieces: Vec::new(),
            credit: 0.0,
            floor_credit: 0.0,
            last_bounds: [0.0; 2],
            oldest_due: (f64::INFINITY, 0),
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

    /// Adds a local clock, by whose days and hours pages are judged. Clock 0 is UTC.
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
        self.describe(at, is_new, info);
        if is_new {
            if self.is_doubtful(at) {
                self.doubt(at);
            } else {
                self.queue_new(at);
                self.plan_at_once(at);
            }
        }
    }

    /// Adds a page that was captured before this scheduler began, last at `seen`.
    pub fn add_seen_page(&mut self, page: PageId, info: PageInfo, seen: Timestamp) {
        let (at, is_new) = self.pages.insert(page);
        self.describe(at, is_new, info);
        self.pages.flags[at] &= !FRESH;
        self.pages.seen_at[at] = self.secs(seen);
        self.oldest_due.1 = 0;
        self.restate(at);
    }

    fn describe(&mut self, at: usize, is_new: bool, info: PageInfo) {
        self.pages.site[at] = self.sites.place(info.site, info.goal.unwrap_or(self.config.goal));
        self.pages.clock[at] = info.clock.0.min((self.clocks.len() - 1) as u16);
        self.pages.weight[at] = sane_weight(info.weight);
        let group = self.learner.group(info.group);
        if group != self.pages.group[at] {
            self.except(at);
        }
        self.pages.group[at] = group;
        if is_new {
            self.learner.start_page(&mut self.pages, at);
        }
        if let Some(known) = info.known {
            self.learner.set_known(&mut self.pages, at, &known.rates, &known.importance);
        }
        self.set_value(at);
    }

    /// Forgets a page.
    pub fn remove_page(&mut self, page: PageId) {
        let Some(at) = self.pages.position(page) else { return };
        self.set_present(at);
        self.except(at);
        self.learner.forget(&mut self.pages, at);
        self.pages.remove(page);
        self.told.take(page, (0, 0));
        self.slot.had_turn.remove(&(at as u32));
        let stays = |other: &u32| *other != at as u32;
        self.slot.plan.retain(|planned| stays(&planned.at));
        self.slot.at_once.retain(|planned| stays(&planned.at));
        self.fresh.retain(stays);
    }

    /// Changes omega(P).
    pub fn set_weight(&mut self, page: PageId, weight: f32) {
        if let Some(at) = self.pages.position(page) {
            self.pages.weight[at] = sane_weight(weight);
            self.set_value(at);
        }
    }

    /// Learns from all that was recorded and makes `now` the present. A driver calls it after it has recorded a history,
    /// so that the scheduler need not wait for the next day on which it would fit all pages.
    pub fn learn_now(&mut self, now: Timestamp) {
        let secs = self.secs(now);
        self.state_at = now;
        if self.config.learn {
            // Shared patterns get better with every fit. There are as many fits as a crawl would have made, up to a bound.
            for _ in 0..self.learner.n_refits_due(secs).clamp(1, MOST_REFITS) {
                self.learner.refit_all(&mut self.pages, &self.clocks, secs);
            }
        }
        for at in 0..self.pages.len() {
            self.restate(at);
        }
        self.make_values(secs);
        self.recall_pictures();
    }

    /// The next page to fetch, or nothing until [`Scheduler::next_wakeup`].
    pub fn next_visit(&mut self, now: Timestamp) -> Option<Visit> {
        self.enter_slot(now);
        let planned = loop {
            let planned = match self.slot.at_once.pop_front() {
                Some(planned) => planned,
                None if self.slot.plan.front()?.due <= now => self.slot.plan.pop_front()?,
                None => return None,
            };
            if !self.has_become_doubtful(planned.at as usize) {
                break planned;
            }
            self.doubt(planned.at as usize);
        };
        self.slot.n_handed_out += 1;
        self.spend();
        self.slot.had_turn.insert(planned.at);
        let at = planned.at as usize;
        self.pages.flags[at] |= PENDING;
        Some(Visit {
            page: self.pages.id[at],
            site: self.site_of(at),
            at: planned.due,
            reason: planned.reason,
        })
    }

    /// The driver gives a visit back without having asked the host, for example because it is shutting down.
    pub fn release(&mut self, page: PageId) {
        if let Some(at) = self.pages.position(page) {
            if self.pages.has(at, PENDING) {
                self.take_back();
            }
            self.pages.flags[at] &= !PENDING;
            self.slot.had_turn.remove(&(at as u32));
        }
    }

    /// A page is not to be visited before an instant although nothing failed, for example because the budget of its site is
    /// spent.
    pub fn hold(&mut self, page: PageId, until: Timestamp) {
        if let Some(at) = self.pages.position(page) {
            self.pages.not_before[at] = self.pages.not_before[at].max(self.secs(until));
            self.queue_probe(at);
        }
    }

    /// When [`Scheduler::next_visit`] may have something again; nothing when there are no pages.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        if self.pages.n_present() == 0 {
            return None;
        }
        match (self.slot.at_once.front().or(self.slot.plan.front()), self.slot.range) {
            (Some(planned), _) => Some(planned.due),
            (None, Some((_, end))) => Some(end),
            (None, None) => Some(self.base),
        }
    }

    /// Takes in what a visit found, also of visits that the scheduler did not ask for.
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
                self.back_off(at, secs.saturating_add(self.jitter(at, wait)).max(asked));
            }
            VisitOutcome::Vanished(importance) => {
                self.record_seen(at, Some(importance), secs);
                self.set_absent(at, secs);
            }
            VisitOutcome::Absent => self.set_absent(at, secs),
        }
    }

    /// A feed, a sitemap or a push announced that a page changed at an instant, and how important the change is if it says
    /// so. The page is visited at once when the budget allows it and the page has not been visited in this slot.
    pub fn announce(&mut self, page: PageId, at: Timestamp, importance: Option<Importance>) {
        let Some(position) = self.pages.position(page) else { return };
        if self.pages.has(position, FRESH) || self.secs(at) <= self.pages.seen_at[position] {
            return;
        }
        if self.pages.has(position, ABSENT) {
            // Somebody says that the page is there: look at once, as far as probes may.
            self.pages.not_before[position] = self.secs(at);
            self.queue_probe(position);
            return;
        }
        self.except(position);
        self.pages.flags[position] |= ANNOUNCED;
        let importance = importance.map_or(self.pages.importance[position], |given| given.get() as f32);
        self.pages.reward[position] = self.pages.reward[position].max(importance);
        // The change is certain, so waiting earns nothing more.
        self.pages.load[position] = self.pages.load[position].max(ANNOUNCED_LOAD);
        self.pages.urgency[position] = match self.config.strategy {
            Strategy::ExpectedGain => gain::gain_of(&self.pages, position),
            Strategy::FixedInterval => f32::MAX,
        };
        let may_ask = self.pages.not_before[position] <= self.secs(at);
        if may_ask && !self.has_had_its_turn(position) {
            self.plan_at_once(position);
        }
    }

    fn record_seen(&mut self, at: usize, importance: Option<Importance>, secs: u32) {
        self.set_present(at);
        let is_first = self.pages.has(at, FRESH);
        let before = self.pages.seen_at[at];
        if !is_first && self.config.learn && !self.pages.has(at, KNOWN) && secs > before {
            self.learner.allow_histories(self.most_histories());
            let clock = &self.clocks[usize::from(self.pages.clock[at])];
            let importance = importance.map(|importance| importance.get() as f32);
            let times = self.told.take(self.pages.id[at], (before, secs));
            self.learner.observe_told(&mut self.pages, clock, at, (before, secs), &times, importance);
        }
        if !is_first {
            self.note_found(at, importance.is_some());
            self.note_look(at, importance.is_some(), (before, secs));
        }
        self.pages.flags[at] &= !(FRESH | ANNOUNCED);
        self.pages.n_failures[at] = 0;
        self.pages.not_before[at] = 0;
        self.pages.seen_at[at] = secs.max(before);
        self.restate(at);
        self.plan_ahead(at);
    }

    fn back_off(&mut self, at: usize, until: u32) {
        self.pages.n_failures[at] = self.pages.n_failures[at].saturating_add(1);
        self.pages.picture[at] &= !POSING;
        self.pages.not_before[at] = until;
        self.queue_probe(at);
    }

    /// Up to a quarter more, so that the pages of a host that failed together do not return together.
    fn jitter(&self, at: usize, wait: u32) -> u32 {
        let share = rng::spread(self.seed, u64::from(self.pages.id[at].0));
        wait + (u64::from(wait) * u64::from(share) / (4 << 16)) as u32
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

#[cfg(test)]
mod tests;
