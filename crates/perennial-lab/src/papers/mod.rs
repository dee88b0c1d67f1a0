//! A scheduler for the strategies of P-QUALITY 7 and the adaptive interval.
//!
//! It has the interface and the budget of the crawler's scheduler. Time is cut into slots, and the pages of a slot are
//! chosen at its start. The strategies learn plain averages.
//!
//! | file | input -> output |
//! |---|---|
//! | `averages` | outcomes of visits -> mean rates and importances by period |
//! | `urgency` | averages -> the order in which pages are visited |

mod averages;
mod urgency;

use std::collections::{HashMap, HashSet, VecDeque};

use perennial_core::pattern::mixture::{Mixture, bucket_index};
use perennial_core::schedule::{Budget, ClockId, PageInfo, ScheduleConfig, VisitOutcome};
use perennial_core::time::{LocalClock, Span, Timestamp};
use perennial_core::url::{PageId, SiteId};

use crate::drive::VisitScheduler;
use crate::strategy::BaselineStrategy;
use averages::Averages;

/// Share of a slot's visits that new pages leave to other pages.
const KEPT_FROM_NEW: f64 = 0.2;

pub struct PaperScheduler {
    strategy: BaselineStrategy,
    config: ScheduleConfig,
    /// How often pages are ranked. A page is visited at most once in this time.
    slot_length: Span,
    budget: Budget,
    start: Timestamp,
    /// Only the length of its periods is used.
    mixture: Mixture,
    clocks: Vec<LocalClock>,
    pages: Vec<PaperPage>,
    /// Sites, numbered by first appearance.
    sites: HashMap<SiteId, u32>,
    slot: PaperSlot,
    ranked_until: Timestamp,
    /// The period of each clock at the end of the slot.
    buckets: Vec<usize>,
    /// Pages without a capture, in order of arrival.
    fresh: VecDeque<u32>,
    /// The remaining pages of the current round, for strategies that visit all pages in rounds.
    round: VecDeque<u32>,
    /// When the frequency strategy distributes its visits again, in seconds since the start.
    shared_until: u32,
    /// Granted visits that no slot has used.
    credit: f64,
    /// The same for the share of the pages visited longest ago.
    floor_credit: f64,
}

struct PaperPage {
    site: u32,
    weight: f32,
    clock: usize,
    averages: Averages,
    /// A number of the strategy: an interval in hours (adaptive interval) or visits per hour (frequency).
    parameter: f32,
    /// The last capture, in seconds since the start.
    seen_at: u32,
    is_new: bool,
    is_pending: bool,
    urgency: f32,
}

/// The slot for which pages were chosen.
#[derive(Default)]
struct PaperSlot {
    range: Option<(Timestamp, Timestamp)>,
    capacity: usize,
    n_handed_out: usize,
    had_turn: HashSet<u32>,
    plan: VecDeque<(u32, Timestamp)>,
    /// Pages announced during the slot. They precede the plan.
    at_once: VecDeque<(u32, Timestamp)>,
}

impl PaperScheduler {
    /// A scheduler without pages. Without a budget it makes no visits.
    pub fn new(
        strategy: BaselineStrategy,
        config: ScheduleConfig,
        slot_length: Span,
        start: Timestamp,
    ) -> PaperScheduler {
        let config = ScheduleConfig { n_periods: config.n_periods.clamp(1, 120), ..config };
        PaperScheduler {
            strategy,
            budget: config.budget.unwrap_or(Budget::per_hour(0.0)),
            mixture: Mixture::new(config.n_periods, config.observed),
            config,
            slot_length: slot_length.max(Span::from_secs(1)),
            start,
            clocks: vec![LocalClock::utc()],
            pages: Vec::new(),
            sites: HashMap::new(),
            slot: PaperSlot::default(),
            ranked_until: start,
            buckets: Vec::new(),
            fresh: VecDeque::new(),
            round: VecDeque::new(),
            shared_until: 0,
            credit: 0.0,
            floor_credit: 0.0,
        }
    }

    fn secs(&self, at: Timestamp) -> u32 {
        ((at - self.start).as_millis() / 1000).clamp(0, i64::from(u32::MAX)) as u32
    }

    /// The period at the end of a span of time.
    fn last_bucket(&self, clock: usize, from: Timestamp, to: Timestamp) -> Option<usize> {
        let (mut last, n_periods) = (None, self.config.n_periods);
        self.clocks[clock].pieces(from, to, n_periods, |piece| {
            last = Some(usize::from(bucket_index(piece.kind, piece.period, n_periods)));
        });
        last
    }

    fn enter_slot(&mut self, now: Timestamp) {
        if self.slot.range.is_some_and(|(_, end)| now < end) {
            return;
        }
        let millis = self.slot_length.as_millis();
        let place = now.as_millis().div_euclid(millis);
        let start = match self.slot.range {
            Some(_) => Timestamp::from_millis(place.saturating_mul(millis)),
            None => now,
        };
        let end = Timestamp::from_millis(place.saturating_add(1).saturating_mul(millis));
        if self.strategy == BaselineStrategy::Frequency && self.secs(start) >= self.shared_until {
            self.distribute_visits();
            self.shared_until = self.secs(start).saturating_add(86_400);
        }
        let from = self.ranked_until.min(end);
        let buckets = (0..self.clocks.len()).map(|clock| self.last_bucket(clock, from, end).unwrap_or(0));
        self.buckets = buckets.collect();
        self.ranked_until = end;
        let granted = self.budget.visits_in(end - start).min(1e9);
        self.credit = self.credit.fract() + granted;
        self.slot = PaperSlot { range: Some((start, end)), ..PaperSlot::default() };
        self.rank(self.secs(end));
        let chosen = self.choose(granted, self.secs(end));
        self.spread_over_slot(&chosen, start, end);
    }

    /// Chooses new pages first, then those visited longest ago within their share, then the most urgent ones.
    fn choose(&mut self, granted: f64, end_secs: u32) -> Vec<u32> {
        self.slot.capacity = self.credit.floor() as usize;
        let capacity = self.slot.capacity.min(self.pages.len());
        let mut chosen = self.choose_new(capacity);
        let n_first = (capacity as f64 * (1.0 - KEPT_FROM_NEW)).ceil() as usize;
        let mut waiting = chosen.split_off(n_first.min(chosen.len()));
        let mut rest = self.choose_oldest(granted, capacity, capacity - chosen.len(), end_secs);
        rest.extend(self.choose_urgent(capacity - chosen.len() - rest.len()));
        waiting.truncate(capacity - chosen.len() - rest.len());
        chosen.append(&mut waiting);
        if !self.visits_in_rounds() {
            let urgency = |at: u32| self.pages[at as usize].urgency.abs();
            rest.sort_by(|&a, &b| urgency(b).total_cmp(&urgency(a)).then(a.cmp(&b)));
        }
        chosen.extend(rest);
        chosen
    }

    fn choose_new(&mut self, n: usize) -> Vec<u32> {
        let mut chosen = Vec::new();
        for _ in 0..self.fresh.len() {
            if chosen.len() >= n {
                break;
            }
            let Some(at) = self.fresh.pop_front() else { break };
            let page = &self.pages[at as usize];
            if !page.is_new {
                continue;
            }
            if !page.is_pending {
                chosen.push(at);
            }
            // The page stays in the queue until it is captured.
            self.fresh.push_back(at);
        }
        chosen
    }

    /// Chooses the pages that have waited for as long as their share needs to visit all pages once.
    fn choose_oldest(&mut self, granted: f64, capacity: usize, n_free: usize, end_secs: u32) -> Vec<u32> {
        let share = self.config.floor.map_or(0.0, f64::from).clamp(0.0, 1.0);
        self.floor_credit = self.floor_credit.fract() + share * granted.min(capacity as f64);
        let n = (self.floor_credit.floor() as usize).min(n_free);
        let per_slot = (share * granted).max(1e-9);
        let longest_wait = self.pages.len() as f64 / per_slot * self.slot_length.as_secs_f64();
        let seen_before = f64::from(end_secs) - longest_wait;
        let has_waited =
            |page: &PaperPage| !page.is_new && !page.is_pending && f64::from(page.seen_at) <= seen_before;
        let mut oldest: Vec<u32> =
            (0..self.pages.len() as u32).filter(|&at| has_waited(&self.pages[at as usize])).collect();
        oldest.sort_by_key(|&at| self.pages[at as usize].seen_at);
        oldest.truncate(n);
        oldest.sort_unstable();
        for &at in &oldest {
            // A negative urgency marks a chosen page and keeps the value for sorting.
            let urgency = &mut self.pages[at as usize].urgency;
            *urgency = -*urgency;
        }
        oldest
    }

    fn choose_urgent(&mut self, n: usize) -> Vec<u32> {
        if self.visits_in_rounds() {
            return self.take_from_round(n);
        }
        let urgency = |at: u32| self.pages[at as usize].urgency;
        let mut urgent: Vec<u32> = (0..self.pages.len() as u32).filter(|&at| urgency(at) > 0.0).collect();
        urgent.sort_by(|&a, &b| urgency(b).total_cmp(&urgency(a)).then(a.cmp(&b)));
        urgent.truncate(n);
        urgent
    }

    /// Spreads the chosen pages over the slot.
    fn spread_over_slot(&mut self, chosen: &[u32], start: Timestamp, end: Timestamp) {
        let n = chosen.len().max(1) as i64;
        let length = (end - start).as_millis();
        for (rank, &at) in chosen.iter().enumerate() {
            let page = &mut self.pages[at as usize];
            page.urgency = page.urgency.abs();
            self.slot.plan.push_back((at, start + Span::from_millis(length.saturating_mul(rank as i64) / n)));
        }
    }

    fn is_visited_or_planned(&self, at: u32) -> bool {
        let page = &self.pages[at as usize];
        let was_visited = self.slot.range.is_some_and(|(start, _)| page.seen_at >= self.secs(start));
        let is_planned = || self.slot.plan.iter().chain(&self.slot.at_once).any(|planned| planned.0 == at);
        page.is_pending || self.slot.had_turn.contains(&at) || was_visited || is_planned()
    }

    /// Puts an announced page before the plan. If the slot's budget is used up, it replaces the last page of the plan,
    /// provided that page is less urgent.
    fn plan_at_once(&mut self, at: u32) {
        let Some((start, _)) = self.slot.range else { return };
        let used = self.slot.n_handed_out + self.slot.plan.len() + self.slot.at_once.len();
        if used >= self.slot.capacity {
            let Some(&(last, _)) = self.slot.plan.back() else { return };
            let last = &self.pages[last as usize];
            if last.is_new || last.urgency >= self.pages[at as usize].urgency {
                return;
            }
            self.slot.plan.pop_back();
        }
        self.slot.at_once.push_back((at, start));
    }
}

impl VisitScheduler for PaperScheduler {
    fn add_clock(&mut self, clock: LocalClock) -> ClockId {
        let known = self.clocks.iter().position(|other| *other == clock);
        let place = known.unwrap_or_else(|| {
            self.clocks.push(clock);
            self.clocks.len() - 1
        });
        ClockId(place.min(usize::from(u16::MAX)) as u16)
    }

    /// Pages must be numbered consecutively, as in worlds.
    fn add_page(&mut self, page: PageId, info: PageInfo) {
        debug_assert_eq!(page.0 as usize, self.pages.len());
        let next = self.sites.len() as u32;
        let averages = match &info.known {
            Some(known) => Averages::known(&self.mixture, known),
            None => Averages::new(self.mixture.n_buckets()),
        };
        self.pages.push(PaperPage {
            site: *self.sites.entry(info.site).or_insert(next),
            weight: if info.weight.is_finite() { info.weight.clamp(0.0, 1e9) } else { 0.0 },
            clock: usize::from(info.clock.0).min(self.clocks.len() - 1),
            averages,
            parameter: 0.0,
            seen_at: 0,
            is_new: true,
            is_pending: false,
            urgency: 0.0,
        });
        self.adapt_interval(page.0 as usize, None);
        self.fresh.push_back(page.0);
    }

    fn announce(&mut self, page: PageId, at: Timestamp) {
        let secs = self.secs(at);
        let Some(known) = self.pages.get_mut(page.0 as usize) else { return };
        if known.is_new || secs <= known.seen_at {
            return;
        }
        known.urgency = f32::MAX;
        if !self.is_visited_or_planned(page.0) {
            self.plan_at_once(page.0);
        }
    }

    fn next_visit(&mut self, now: Timestamp) -> Option<PageId> {
        self.enter_slot(now);
        let (at, _) = match self.slot.at_once.pop_front() {
            Some(planned) => planned,
            None if self.slot.plan.front()?.1 <= now => self.slot.plan.pop_front()?,
            None => return None,
        };
        self.slot.n_handed_out += 1;
        self.slot.had_turn.insert(at);
        self.pages[at as usize].is_pending = true;
        Some(PageId(at))
    }

    fn next_wakeup(&self) -> Option<Timestamp> {
        if self.pages.is_empty() {
            return None;
        }
        let planned = self.slot.at_once.front().or(self.slot.plan.front()).map(|planned| planned.1);
        planned.or(self.slot.range.map(|(_, end)| end)).or(Some(self.start))
    }

    /// A failed visit, or one without a page, is ignored.
    fn record(&mut self, page: PageId, outcome: VisitOutcome, now: Timestamp) {
        let at = page.0 as usize;
        let importance = match outcome {
            VisitOutcome::Changed(importance) | VisitOutcome::Vanished(importance) => Some(importance),
            VisitOutcome::Unchanged => None,
            VisitOutcome::Failed { .. } | VisitOutcome::Absent => {
                self.pages[at].is_pending = false;
                return;
            }
        };
        let (secs, before) = (self.secs(now), self.pages[at].seen_at);
        let is_first = self.pages[at].is_new;
        if !is_first && self.config.learn && secs > before {
            let instant = |secs: u32| self.start + Span::from_secs(i64::from(secs));
            let bucket = self.last_bucket(self.pages[at].clock, instant(before), instant(secs));
            let importance = importance.map(|importance| importance.get() as f32);
            self.pages[at].averages.observe(bucket, secs - before, importance);
        }
        if !is_first {
            self.adapt_interval(at, Some(importance.is_some()));
        }
        let page = &mut self.pages[at];
        page.is_pending = false;
        page.is_new = false;
        page.seen_at = secs.max(before);
    }
}
