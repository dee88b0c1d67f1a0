//! Page histories and a budget -> the page to visit next, and when to ask again (P-PATTERN 8, P-QUALITY 6;
//! docs/papers.md, Strategies and Expected gain).
//!
//! A page is due at the instant at which a visit gains as much as visits cost: the shadow price, which follows the
//! budget. The crawler (real clock) and the simulator (virtual clock) drive the same [`Scheduler`]:
//!
//! ```
//! use perennial_core::url::{PageId, SiteId};
//! use perennial_core::schedule::{PageInfo, ScheduleConfig, Scheduler, VisitOutcome};
//! use perennial_core::time::{Span, Timestamp};
//!
//! let mut now = Timestamp::parse("2026-11-16T09:00:00Z").unwrap();
//! let mut scheduler = Scheduler::new(ScheduleConfig::default(), 7, now);
//! scheduler.add_page(PageId(0), PageInfo::for_site(SiteId(0)));
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
//! | `config` | strategy, budget and goal |
//! | `visit` | the values that the scheduler and its driver exchange |
//! | `reason` | the reason of a visit -> a phrase |
//! | `pages` | one column per fact about a page |
//! | `rows` | rates by bucket, two bytes each |
//! | `learn` | outcomes -> rates and importance of the changes of each page |
//! | `days` | outcomes by day of the week and of the month -> how fast time passes for a page |
//! | `announced` | change times from feeds -> observations that are finer than visits |
//! | `gain` | the expected gain of a visit, which ranks the pages |
//! | `outlook` | the hours around now, in which rates are constant |
//! | `due` | the gain of a page at any instant, and when it gains enough |
//! | `ladder` | the pages by their gain |
//! | `timers` | the seconds at which pages are looked at again |
//! | `renew` | what concerns all pages, a slice at a time |
//! | `worth` | the value of pages to each goal, in one currency |
//! | `sites` | pages -> their sites, which are swept |
//! | `account` | the budget's account: visits granted, handed out and made |
//! | `balance` | savings and results -> the shadow price of a visit |
//! | `sweep` | sites whose pages are visited together |
//! | `choose` | all of these -> the next visit |
//! | `checkpoint` | what the scheduler learned about shadow prices <-> a value that survives a restart |
//! | `directories` | observations by directory -> skipped directories, and a few visits that check them |
//! | `every` | pages that are visited at an interval of their own |
//! | `probe` | URLs without a page -> a few visits that check whether one has appeared |

mod account;
mod announced;
mod balance;
mod checkpoint;
mod choose;
mod config;
mod days;
mod directories;
mod due;
mod every;
mod explain;
mod gain;
mod ladder;
mod learn;
mod outlook;
mod pages;
mod probe;
pub mod rank;
mod reason;
mod renew;
mod rows;
mod sites;
mod sweep;
mod timers;
pub mod units;
mod visit;
mod worth;

use std::collections::VecDeque;

pub use crate::pattern::mixture::ObservedImportance;
pub use checkpoint::Checkpoint;
pub use config::{Budget, Goal, GoalError, ScheduleConfig, Strategy, StrategyError};
pub use every::Every;
pub use explain::{Belief, peak_hours};
pub use reason::{ReasonContext, local_minute};
pub use visit::{ClockId, KnownPattern, PageInfo, Peak, RankedPage, Reason, SkipRule, Visit, VisitOutcome};

use crate::page::importance::Importance;
use crate::pattern::mixture::BucketPiece;
use crate::rng;
use crate::time::{LocalClock, Span, Timestamp};
use crate::url::PageId;
use account::Account;
use announced::AnnouncedTimes;
use balance::Balance;
use directories::DirectoryRules;
use every::Promises;
use ladder::Ladder;
use learn::Learner;
use outlook::Outlook;
use pages::{ABSENT, ANNOUNCED, FRESH, IN_SWEEP, KNOWN, NONE, PENDING, PROMISED, PageColumns, STARTED};
use probe::Probes;
use renew::Renewal;
use sites::Sites;
use sweep::Sweeps;
use worth::ArchiveTotals;

/// The wait after the first failure. It doubles with each further failure, up to a day.
const FIRST_RETRY_SECS: u32 = 60;
const LONGEST_RETRY_SECS: u32 = 86_400;
/// The shared patterns are fitted at most this often after a history was replayed.
const MOST_REFITS: u32 = 5;
/// Expected changes of a page that was announced as changed: so many that the gain is the page's value times the
/// expected importance.
const ANNOUNCED_CHANGES: f32 = 8.0;

/// Decides which page to visit next. The same configuration, seed and calls give the same visits.
#[derive(Clone)]
pub struct Scheduler {
    config: ScheduleConfig,
    seed: u64,
    /// Times in the columns are seconds since this instant. They are at least 1, so 0 can mean "never".
    base: Timestamp,
    pages: PageColumns,
    /// When pages changed since their last observation, according to their feeds.
    announced: AnnouncedTimes,
    clocks: Vec<LocalClock>,
    learner: Learner,
    /// The latest `now` of a call.
    now: Timestamp,
    /// The second of the next hour, when prices change; 0 before the first call of `next_visit`.
    next_hour: u32,
    /// When to ask again; `None` if something changed since.
    wakeup: Option<Timestamp>,
    outlook: Outlook,
    ladder: Ladder,
    /// Pages that were never captured, in order of arrival.
    fresh: VecDeque<u32>,
    /// New pages that were handed out in a row.
    n_new_in_a_row: u32,
    /// The position from which old captures are looked for.
    oldest_from: usize,
    account: Account,
    balance: Balance,
    sites: Sites,
    sweeps: Sweeps,
    totals: ArchiveTotals,
    probes: Probes,
    promises: Promises,
    /// Probes that wait for a grant.
    probing: VecDeque<(u32, Reason)>,
    directories: DirectoryRules,
    /// Pages whose directory is no longer skipped.
    unskipped: Vec<u32>,
    /// The next page to place, while all are placed again.
    unplaced: Option<usize>,
    /// Rates and values of all pages that are computed again, a slice at a time.
    renewal: Option<Renewal>,
    /// Whether more is due now than one event may do.
    is_busy: bool,
    pieces: Vec<BucketPiece>,
}

impl Scheduler {
    pub fn new(config: ScheduleConfig, seed: u64, now: Timestamp) -> Scheduler {
        let config = sanitised(config);
        let base = now - Span::from_hours(24 * 366 * 30);
        let mut learner =
            Learner::new(config.n_periods, config.observed, config.half_life, config.spells, config.calendar);
        learner.start(base, ((now - base).as_millis() / 1000) as u32);
        Scheduler {
            config,
            seed,
            base,
            pages: PageColumns::default(),
            clocks: vec![LocalClock::utc()],
            learner,
            now,
            next_hour: 0,
            wakeup: None,
            outlook: Outlook::default(),
            ladder: Ladder::default(),
            fresh: VecDeque::new(),
            n_new_in_a_row: 0,
            oldest_from: 0,
            account: Account::default(),
            balance: Balance::default(),
            sites: Sites::default(),
            sweeps: Sweeps::default(),
            totals: ArchiveTotals::default(),
            probes: Probes::default(),
            promises: Promises::default(),
            directories: DirectoryRules::default(),
            probing: VecDeque::new(),
            unskipped: Vec::new(),
            unplaced: None,
            renewal: None,
            is_busy: false,
            announced: AnnouncedTimes::default(),
            pieces: Vec::new(),
        }
    }

    pub fn config(&self) -> &ScheduleConfig {
        &self.config
    }

    /// Sets the budget from now on.
    pub fn set_budget(&mut self, budget: Option<Budget>) {
        if self.config.budget.is_some() != budget.is_some() {
            self.place_all();
        }
        if self.config.budget != budget {
            self.config.budget = budget;
            self.find_largest_sweep();
        }
        self.wake_now();
    }

    /// Adds a local clock, whose days and hours apply to the pages that use it. Clock 0 is UTC.
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

    pub fn n_pages(&self) -> usize {
        self.pages.n_present()
    }

    /// Adds a page that was never captured, or updates the description of a known page.
    pub fn add_page(&mut self, page: PageId, info: PageInfo) {
        let (at, is_new) = self.pages.insert(page);
        self.update_page(at, is_new, info);
        if is_new && !self.pages.has(at, PROMISED) {
            if self.is_doubtful(at) {
                self.defer_doubtful(at);
            } else {
                self.queue_new(at);
            }
        }
    }

    /// Adds a page whose last capture, at `seen`, is older than this scheduler.
    pub fn add_seen_page(&mut self, page: PageId, info: PageInfo, seen: Timestamp) {
        let (at, is_new) = self.pages.insert(page);
        self.update_page(at, is_new, info);
        self.pages.flags[at] &= !FRESH;
        self.pages.seen_at[at] = self.secs(seen);
        self.recompute_state(at);
        self.keep_promise(at, self.pages.seen_at[at], None);
        self.place(at);
    }

    fn update_page(&mut self, at: usize, is_new: bool, info: PageInfo) {
        let site = self.sites.place(info.site, info.goal.unwrap_or(self.config.goal));
        if is_new || self.pages.site[at] != site {
            self.sweeps.list(at, site as usize, self.secs(self.now));
        }
        self.pages.site[at] = site;
        self.pages.clock[at] = info.clock.0.min((self.clocks.len() - 1) as u16);
        self.pages.weight[at] = sane_weight(info.weight);
        let group = self.learner.group(info.group);
        if group != self.pages.group[at] {
            self.exempt(at);
        }
        self.pages.group[at] = group;
        if is_new {
            self.learner.start_page(&mut self.pages, at);
        }
        if let Some(known) = info.known {
            self.learner.set_known(&mut self.pages, at, &known.rates, &known.importance);
        }
        self.set_value(at);
        let had = self.pages.has(at, PROMISED);
        if had || info.every.is_some() {
            self.promise(at, info.every);
        }
        if had && self.pages.has(at, FRESH) && !self.pages.has(at, PROMISED) {
            self.queue_new(at);
        }
    }

    pub fn remove_page(&mut self, page: PageId) {
        let Some(at) = self.pages.position(page) else { return };
        self.set_present(at);
        self.exempt(at);
        self.promise(at, None);
        self.learner.forget(&mut self.pages, at);
        if self.pages.has(at, PENDING) && !self.pages.has(at, STARTED) {
            self.refund();
        }
        self.ladder.grow(self.pages.len());
        self.ladder.remove(at);
        self.pages.remove(page);
        self.announced.take(page, (0, 0));
        self.wake_now();
    }

    /// Sets omega(P). Weights of all pages change together, so values follow within the hour, a slice at a time.
    pub fn set_weight(&mut self, page: PageId, weight: f32) {
        if let Some(at) = self.pages.position(page) {
            self.pages.weight[at] = sane_weight(weight);
            self.totals.is_outdated = true;
        }
    }

    /// Fits all pages to the recorded history and makes `now` the present. A driver calls it after it replayed a
    /// history. Otherwise the scheduler would wait for the next day on which it fits all pages.
    pub fn learn_now(&mut self, now: Timestamp) {
        let secs = self.secs(now);
        self.now = now;
        if self.config.learn {
            // Shared patterns improve with every fit, so this makes as many as a crawl would have made, up to a
            // bound.
            for _ in 0..self.learner.n_refits_due(secs).clamp(1, MOST_REFITS) {
                self.learner.refit_all(&mut self.pages, &self.clocks, secs);
            }
        }
        for at in 0..self.pages.len() {
            self.recompute_state(at);
        }
        self.recompute_values();
        self.estimate_last_sweeps();
        self.place_all();
    }

    /// The next page to fetch, or nothing until [`Scheduler::next_wakeup`].
    pub fn next_visit(&mut self, now: Timestamp) -> Option<Visit> {
        self.advance(now);
        let visit = self.hand_out();
        self.wakeup = if visit.is_none() { Some(self.find_wakeup()) } else { None };
        visit
    }

    /// Returns a visit that the driver did not make, for example because it is shutting down.
    pub fn release(&mut self, page: PageId) {
        if let Some(at) = self.pages.position(page) {
            if self.pages.has(at, PENDING) && !self.pages.has(at, STARTED) {
                self.refund();
            }
            self.pages.flags[at] &= !(PENDING | STARTED);
            self.renew_promise(at, 0);
            self.place(at);
        }
    }

    /// Keeps a page from being visited before an instant although nothing failed, for example because its site's
    /// budget is spent.
    pub fn defer(&mut self, page: PageId, until: Timestamp) {
        if let Some(at) = self.pages.position(page) {
            self.pages.not_before[at] = self.pages.not_before[at].max(self.secs(until));
            self.queue_probe(at);
            self.renew_promise(at, self.pages.not_before[at]);
            self.place(at);
        }
    }

    /// The earliest time at which [`Scheduler::next_visit`] may return a visit; `None` without pages.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        if self.pages.n_present() == 0 {
            return None;
        }
        Some(self.wakeup.unwrap_or(self.now))
    }

    /// Records the outcome of a visit, even of one that the scheduler did not request.
    pub fn record(&mut self, page: PageId, outcome: VisitOutcome, now: Timestamp) {
        let Some(at) = self.pages.position(page) else { return };
        self.settle(at, now);
        let secs = self.secs(now);
        match outcome {
            VisitOutcome::Changed(importance) => self.record_seen(at, Some(importance), secs),
            VisitOutcome::Unchanged => self.record_seen(at, None, secs),
            VisitOutcome::Failed { retry_at } => {
                let wait = backoff_secs(FIRST_RETRY_SECS, self.pages.n_failures[at], LONGEST_RETRY_SECS);
                let requested = retry_at.map_or(0, |retry| self.secs(retry));
                let retry = secs.saturating_add(self.jitter(at, wait));
                self.back_off(at, retry.max(requested));
                self.keep_promise(at, secs, Some(retry));
                if requested > secs {
                    self.renew_promise(at, requested);
                }
            }
            VisitOutcome::Vanished(importance) => {
                self.record_seen(at, Some(importance), secs);
                self.set_absent(at, secs);
            }
            VisitOutcome::Absent => self.set_absent(at, secs),
        }
        self.place(at);
    }

    /// Ends a visit that was handed out.
    fn settle(&mut self, at: usize, now: Timestamp) {
        if self.pages.has(at, PENDING) && !self.pages.has(at, STARTED) {
            self.start(at, now);
        }
        self.pages.flags[at] &= !(PENDING | STARTED);
    }

    /// Records that a feed, a sitemap or a push announced a change, with its importance if known. The page is visited
    /// at once if the budget allows it.
    pub fn announce(&mut self, page: PageId, at: Timestamp, importance: Option<Importance>) {
        let Some(position) = self.pages.position(page) else { return };
        if self.pages.has(position, FRESH) || self.secs(at) <= self.pages.seen_at[position] {
            return;
        }
        if self.pages.has(position, ABSENT) && !self.pages.has(position, PROMISED) {
            // The announcement suggests that the page exists, so it is due for a probe.
            self.pages.not_before[position] = self.secs(at);
            self.queue_probe(position);
            return;
        }
        self.exempt(position);
        self.pages.flags[position] |= ANNOUNCED;
        self.carry(position);
        self.expect_change(position, importance.map_or(0.0, |given| given.get() as f32));
        if self.pages.has(position, PROMISED) {
            self.renew_promise(position, self.pages.not_before[position]);
        }
        self.place(position);
    }

    fn record_seen(&mut self, at: usize, importance: Option<Importance>, secs: u32) {
        self.set_present(at);
        let is_first = self.pages.has(at, FRESH);
        let before = self.pages.seen_at[at];
        if !is_first && self.config.learn && !self.pages.has(at, KNOWN) && secs > before {
            self.learner.allow_histories(self.most_histories());
            let clock = &self.clocks[usize::from(self.pages.clock[at])];
            let importance = importance.map(|importance| importance.get() as f32);
            let times = self.announced.take(self.pages.id[at], (before, secs));
            self.learner.observe_announced(&mut self.pages, clock, at, (before, secs), &times, importance);
        }
        if !is_first {
            if self.has_begun() {
                self.carry(at);
            }
            self.count_gain(at, importance.is_some());
            self.count_observation(at, importance.is_some(), (before, secs));
        }
        self.pages.flags[at] &= !(FRESH | ANNOUNCED);
        self.pages.n_failures[at] = 0;
        self.pages.not_before[at] = 0;
        self.pages.seen_at[at] = secs.max(before);
        self.keep_promise(at, secs, None);
        self.recompute_state(at);
    }

    fn back_off(&mut self, at: usize, until: u32) {
        self.pages.n_failures[at] = self.pages.n_failures[at].saturating_add(1);
        self.pages.sweep_flags[at] &= !IN_SWEEP;
        self.pages.not_before[at] = until;
        self.queue_probe(at);
    }

    /// Adds up to a quarter, so the pages of a host that failed together do not return together.
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

fn backoff_secs(first: u32, times: u8, longest: u32) -> u32 {
    first.saturating_mul(1 << u32::from(times.min(20))).min(longest)
}

fn sane_weight(weight: f32) -> f32 {
    if weight.is_finite() { weight.clamp(0.0, 1e9) } else { 0.0 }
}

fn sanitised(mut config: ScheduleConfig) -> ScheduleConfig {
    config.n_periods = config.n_periods.clamp(1, 120);
    config.floor = config.floor.map(|share| if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 });
    config
}

#[cfg(test)]
mod tests;
