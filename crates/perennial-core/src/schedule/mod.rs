//! Page histories and a budget -> the page to visit next, and when to ask again (P-PATTERN 8, P-QUALITY 6;
//! docs/papers.md, Strategies and Expected gain).
//!
//! Time is cut into slots. All pages are ranked at the start of a slot. The best are handed out over the slot, each
//! at most once. The crawler (real clock) and the simulator (virtual clock) drive the same [`Scheduler`]:
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
//! | `ahead` | the same if a visit costs less at other hours |
//! | `worth` | the value of pages to each goal, in one currency |
//! | `sites` | pages -> their sites, which are swept |
//! | `sweep` | shadow prices -> the pages that a sweep of their site would include |
//! | `balance` | sweeps and single visits that serve all measures at once |
//! | `select` | the n largest of millions |
//! | `plan` | a slot's budget -> its list of visits |
//! | `checkpoint` | what the scheduler learned about shadow prices <-> a value that survives a restart |
//! | `directories` | observations by directory -> skipped directories, and a few visits that check them |
//! | `every` | pages that are visited at an interval of their own |
//! | `probe` | URLs without a page -> a few visits that check whether one has appeared |

mod ahead;
mod announced;
mod balance;
mod checkpoint;
mod config;
mod days;
mod directories;
mod every;
mod explain;
mod gain;
mod learn;
mod pages;
mod plan;
mod probe;
pub mod rank;
mod reason;
mod rows;
mod select;
mod sites;
mod sweep;
pub mod units;
mod visit;
mod worth;

use std::collections::{HashSet, VecDeque};

pub use crate::pattern::mixture::ObservedImportance;
pub use checkpoint::Checkpoint;
pub use config::{Budget, Goal, GoalError, Pacing, ScheduleConfig, Strategy, StrategyError};
pub use every::Every;
pub use explain::{Belief, peak_hours};
pub use reason::{ReasonContext, local_minute};
pub use visit::{ClockId, KnownPattern, PageInfo, Peak, RankedPage, Reason, SkipRule, Visit, VisitOutcome};

use crate::page::importance::Importance;
use crate::pattern::mixture::BucketPiece;
use crate::rng;
use crate::time::{LocalClock, Span, Timestamp};
use crate::url::PageId;
use ahead::HourlyPlans;
use announced::AnnouncedTimes;
use balance::Balance;
use directories::DirectoryRules;
use every::Promises;
use learn::Learner;
use pages::{ABSENT, ANNOUNCED, FRESH, IN_SWEEP, KNOWN, NONE, PENDING, PROMISED, PageColumns};
use plan::{PlannedVisit, VisitSavings};
use probe::Probes;
use sites::Sites;
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
    slot: CurrentSlot,
    /// The end of the slot. The expected changes and importance of every page refer to this instant.
    state_at: Timestamp,
    /// The bucket of each clock in this slot.
    steps: Vec<gain::SlotStep>,
    /// Pages that were never captured, in order of arrival.
    fresh: VecDeque<u32>,
    bank: VisitSavings,
    balance: Balance,
    sites: Sites,
    totals: ArchiveTotals,
    probes: Probes,
    promises: Promises,
    directories: DirectoryRules,
    ahead: HourlyPlans,
    /// The buckets of the hours after the current slot, for each clock.
    hours_ahead: Vec<[ahead::UpcomingHour; ahead::DEPTH]>,
    pieces: Vec<BucketPiece>,
    /// Visits that the budget granted and no slot has used.
    credit: f64,
    /// The same for the share that is reserved for the pages with the oldest captures.
    floor_credit: f64,
    /// The urgency at about twice the length of the list in the last two slots, newest first; 0 if unknown.
    last_bounds: [f32; 2],
    /// A wait in seconds, and the second before which no page will have waited that long. No search for such pages is
    /// needed until then.
    oldest_due: (f64, u32),
}

/// The time span for which the pages are ranked.
#[derive(Clone, Default)]
struct CurrentSlot {
    range: Option<(Timestamp, Timestamp)>,
    /// How many visits the slot may hand out.
    capacity: usize,
    n_handed_out: usize,
    /// Positions of the pages that this slot handed out.
    had_turn: HashSet<u32>,
    /// The visits still to hand out, in order.
    plan: VecDeque<PlannedVisit>,
    /// Visits that were added during the slot. They go before the plan.
    at_once: VecDeque<PlannedVisit>,
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
            slot: CurrentSlot::default(),
            state_at: now,
            steps: Vec::new(),
            fresh: VecDeque::new(),
            bank: VisitSavings::default(),
            balance: Balance::default(),
            sites: Sites::default(),
            totals: ArchiveTotals::default(),
            probes: Probes::default(),
            promises: Promises::default(),
            directories: DirectoryRules::default(),
            ahead: HourlyPlans::default(),
            announced: AnnouncedTimes::default(),
            hours_ahead: Vec::new(),
            pieces: Vec::new(),
            credit: 0.0,
            floor_credit: 0.0,
            last_bounds: [0.0; 2],
            oldest_due: (f64::INFINITY, 0),
        }
    }

    pub fn config(&self) -> &ScheduleConfig {
        &self.config
    }

    /// Sets the budget from the next slot on.
    pub fn set_budget(&mut self, budget: Option<Budget>) {
        self.config.budget = budget;
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
                self.plan_at_once(at);
            }
        }
    }

    /// Adds a page whose last capture, at `seen`, is older than this scheduler.
    pub fn add_seen_page(&mut self, page: PageId, info: PageInfo, seen: Timestamp) {
        let (at, is_new) = self.pages.insert(page);
        self.update_page(at, is_new, info);
        self.pages.flags[at] &= !FRESH;
        self.pages.seen_at[at] = self.secs(seen);
        self.oldest_due.1 = 0;
        self.recompute_state(at);
        self.keep_promise(at, self.pages.seen_at[at], None);
    }

    fn update_page(&mut self, at: usize, is_new: bool, info: PageInfo) {
        self.pages.site[at] = self.sites.place(info.site, info.goal.unwrap_or(self.config.goal));
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
        self.pages.remove(page);
        self.announced.take(page, (0, 0));
        self.slot.had_turn.remove(&(at as u32));
        let is_other = |other: &u32| *other != at as u32;
        self.slot.plan.retain(|planned| is_other(&planned.at));
        self.slot.at_once.retain(|planned| is_other(&planned.at));
        self.fresh.retain(is_other);
    }

    pub fn set_weight(&mut self, page: PageId, weight: f32) {
        if let Some(at) = self.pages.position(page) {
            self.pages.weight[at] = sane_weight(weight);
            self.set_value(at);
        }
    }

    /// Fits all pages to the recorded history and makes `now` the present. A driver calls it after it replayed a
    /// history. Otherwise the scheduler would wait for the next day on which it fits all pages.
    pub fn learn_now(&mut self, now: Timestamp) {
        let secs = self.secs(now);
        self.state_at = now;
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
        self.recompute_values(secs);
        self.estimate_last_sweeps();
    }

    /// The next page to fetch, or nothing until [`Scheduler::next_wakeup`].
    pub fn next_visit(&mut self, now: Timestamp) -> Option<Visit> {
        self.enter_slot(now);
        if let Some(visit) = self.next_promised(now) {
            return Some(visit);
        }
        let planned = loop {
            let planned = match self.slot.at_once.pop_front() {
                Some(planned) => planned,
                None if self.slot.plan.front()?.due <= now => self.slot.plan.pop_front()?,
                None => return None,
            };
            if !self.has_become_doubtful(planned.at as usize) {
                break planned;
            }
            self.defer_doubtful(planned.at as usize);
        };
        self.slot.n_handed_out += 1;
        self.spend();
        self.slot.had_turn.insert(planned.at);
        let at = planned.at as usize;
        self.pages.flags[at] |= PENDING;
        Some(Visit { page: self.pages.id[at], site: self.site(at), at: planned.due, reason: planned.reason })
    }

    /// Returns a visit that the driver did not make, for example because it is shutting down.
    pub fn release(&mut self, page: PageId) {
        if let Some(at) = self.pages.position(page) {
            if self.pages.has(at, PENDING) {
                self.refund();
            }
            self.pages.flags[at] &= !PENDING;
            self.slot.had_turn.remove(&(at as u32));
            self.renew_promise(at, 0);
        }
    }

    /// Keeps a page from being visited before an instant although nothing failed, for example because its site's
    /// budget is spent.
    pub fn defer(&mut self, page: PageId, until: Timestamp) {
        if let Some(at) = self.pages.position(page) {
            self.pages.not_before[at] = self.pages.not_before[at].max(self.secs(until));
            self.queue_probe(at);
            self.renew_promise(at, self.pages.not_before[at]);
        }
    }

    /// The earliest time at which [`Scheduler::next_visit`] may return a visit; `None` without pages.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        if self.pages.n_present() == 0 {
            return None;
        }
        let ranked = match (self.slot.at_once.front().or(self.slot.plan.front()), self.slot.range) {
            (Some(planned), _) => planned.due,
            (None, Some((_, end))) => end,
            (None, None) => self.base,
        };
        Some(self.promised_wakeup().map_or(ranked, |due| due.min(ranked)))
    }

    /// Records the outcome of a visit, even of one that the scheduler did not request.
    pub fn record(&mut self, page: PageId, outcome: VisitOutcome, now: Timestamp) {
        let Some(at) = self.pages.position(page) else { return };
        self.pages.flags[at] &= !PENDING;
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
    }

    /// Records that a feed, a sitemap or a push announced a change, with its importance if known. The page is visited
    /// at once if the budget allows it and the page was not visited in this slot.
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
        let importance = importance.map_or(self.pages.importance[position], |given| given.get() as f32);
        self.pages.expected_importance[position] = self.pages.expected_importance[position].max(importance);
        // The change is certain, so waiting earns nothing more.
        self.pages.expected_changes[position] = self.pages.expected_changes[position].max(ANNOUNCED_CHANGES);
        self.pages.urgency[position] = match self.config.strategy {
            Strategy::ExpectedGain => gain::page_gain(&self.pages, position),
            Strategy::FixedInterval => f32::MAX,
        };
        if self.pages.has(position, PROMISED) {
            self.renew_promise(position, self.pages.not_before[position]);
            return;
        }
        let may_visit = self.pages.not_before[position] <= self.secs(at);
        if may_visit && !self.has_had_its_turn(position) {
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
            let times = self.announced.take(self.pages.id[at], (before, secs));
            self.learner.observe_announced(&mut self.pages, clock, at, (before, secs), &times, importance);
        }
        if !is_first {
            self.count_gain(at, importance.is_some());
            self.count_observation(at, importance.is_some(), (before, secs));
        }
        self.pages.flags[at] &= !(FRESH | ANNOUNCED);
        self.pages.n_failures[at] = 0;
        self.pages.not_before[at] = 0;
        self.pages.seen_at[at] = secs.max(before);
        self.keep_promise(at, secs, None);
        self.recompute_state(at);
        self.plan_ahead(at);
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
    config.slot = config.slot.max(Span::from_secs(1));
    config.floor = config.floor.map(|share| if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 });
    config
}

#[cfg(test)]
mod tests;
