//! Pages that are visited at an interval of their own, whatever a visit gains.
//!
//! The user promised these visits to somebody, perhaps to herself. So no ranking, sweep or rule about directories
//! concerns such a page, and neither failures nor a missing page make the interval longer. The visits are charged to
//! the budget before all others, and what they will need until the end of its period is held back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::pages::{FRESH, PENDING, PROMISED, VACANT};
use super::{Reason, Scheduler};
use crate::time::{LocalClock, Span, Timestamp, WeeklyHours};
use crate::url::PageId;

/// How often a page is visited, and at which hours.
#[derive(Clone, PartialEq, Debug)]
pub struct Every {
    pub interval: Span,
    /// Without hours it is visited at any time.
    pub hours: Option<WeeklyHours>,
}

impl Every {
    /// When it is due after a visit at `last`.
    pub fn next(&self, clock: &LocalClock, last: Timestamp) -> Timestamp {
        self.open_from(clock, last + self.interval.max(Span::from_secs(1)))
    }

    fn open_from(&self, clock: &LocalClock, at: Timestamp) -> Timestamp {
        self.hours.as_ref().map_or(at, |hours| hours.next_open(clock, at))
    }

    /// Visits an hour while its hours are open.
    fn per_hour(&self) -> f64 {
        1.0 / self.interval.max(Span::from_secs(1)).as_hours_f64()
    }
}

/// One page with an interval of its own.
#[derive(Clone, Debug)]
struct Promise {
    every: Every,
    /// When it is due, in seconds since the scheduler's base.
    due: u32,
    /// When it was last handed out, if no outcome has come since.
    requested: Option<u32>,
}

/// All such pages.
#[derive(Clone, Default, Debug)]
pub(super) struct Promises {
    /// By position in the columns.
    pages: BTreeMap<u32, Promise>,
    /// The second at which a page is due, and its position. An entry is outdated if its second is not the page's.
    due: BinaryHeap<Reverse<(u32, u32)>>,
    per_hour: f64,
}

impl Promises {
    fn set_due(&mut self, at: u32, due: u32) {
        if let Some(promise) = self.pages.get_mut(&at) {
            promise.due = due;
            self.due.push(Reverse((due, at)));
        }
        // A replayed history leaves an outdated entry for each visit.
        if self.due.len() > 2 * self.pages.len() + 64 {
            self.due = self.pages.iter().map(|(at, promise)| Reverse((promise.due, *at))).collect();
        }
    }

    /// Drops outdated entries and gives the first that is left.
    fn first(&mut self) -> Option<(u32, u32)> {
        while let Some(&Reverse((due, at))) = self.due.peek() {
            if self.pages.get(&at).is_some_and(|promise| promise.due == due) {
                return Some((due, at));
            }
            self.due.pop();
        }
        None
    }
}

impl Scheduler {
    /// Gives a page an interval of its own, or takes it away.
    pub(super) fn promise(&mut self, at: usize, every: Option<Every>) {
        let place = at as u32;
        let before = self.promises.pages.remove(&place);
        self.promises.per_hour -= before.as_ref().map_or(0.0, |promise| promise.every.per_hour());
        match every {
            Some(every) => {
                let seen = self.pages.seen_at[at];
                let due = if self.pages.has(at, FRESH) { 0 } else { self.next_by(at, &every, seen) };
                self.pages.flags[at] |= PROMISED;
                self.promises.per_hour += every.per_hour();
                self.promises.pages.insert(
                    place,
                    Promise { every, due, requested: before.and_then(|promise| promise.requested) },
                );
                self.promises.set_due(place, due);
            }
            None => self.pages.flags[at] &= !PROMISED,
        }
    }

    fn next_by(&self, at: usize, every: &Every, last: u32) -> u32 {
        self.secs(every.next(&self.clocks[usize::from(self.pages.clock[at])], self.instant(last)))
    }

    /// The next page whose interval has passed.
    pub(super) fn next_promised(&mut self) -> Option<usize> {
        let secs = self.secs(self.now);
        while let Some((due, place)) = self.promises.first().filter(|(due, _)| *due <= secs) {
            let at = place as usize;
            self.promises.due.pop();
            if self.pages.has(at, PENDING | VACANT) {
                // Its outcome makes it due again.
                continue;
            }
            if let Some(promise) = self.promises.pages.get_mut(&place) {
                promise.requested = Some(if due > 0 && due + 60 > secs { due } else { secs });
            }
            return Some(at);
        }
        None
    }

    /// When [`Scheduler::next_promised`] may give a page.
    pub(super) fn promised_wakeup(&self) -> Option<Timestamp> {
        // An outdated entry only wakes the driver too early.
        self.promises.due.peek().map(|Reverse((due, _))| self.instant(*due))
    }

    /// The page with an interval of its own that is due next, and when.
    pub(super) fn first_promise(&self) -> Option<(Timestamp, usize)> {
        let waiting = self.promises.pages.iter().filter(|(at, _)| !self.pages.has(**at as usize, PENDING));
        waiting.map(|(at, promise)| (self.instant(promise.due), *at as usize)).min()
    }

    /// Makes a page due again after an outcome at `secs`. After a failure it is due at `retry`, if that is earlier.
    pub(super) fn keep_promise(&mut self, at: usize, secs: u32, retry: Option<u32>) {
        let place = at as u32;
        let Some(promise) = self.promises.pages.get_mut(&place) else { return };
        // The interval runs from one request to the next, so a slow answer does not delay the one after it.
        let last = promise.requested.take().filter(|requested| *requested <= secs).unwrap_or(secs);
        let every = promise.every.clone();
        let mut due = self.next_by(at, &every, last);
        if let Some(retry) = retry.filter(|retry| *retry < due) {
            let clock = &self.clocks[usize::from(self.pages.clock[at])];
            due = self.secs(every.open_from(clock, self.instant(retry))).min(due);
        }
        self.promises.set_due(place, due.max(secs.saturating_add(1)));
    }

    /// Makes a page due at an instant at the earliest, because its visit was not made or it was announced.
    pub(super) fn renew_promise(&mut self, at: usize, due: u32) {
        let place = at as u32;
        let Some(promise) = self.promises.pages.get_mut(&place) else { return };
        promise.requested = None;
        let every = promise.every.clone();
        let clock = &self.clocks[usize::from(self.pages.clock[at])];
        let due = self.secs(every.open_from(clock, self.instant(due)));
        self.promises.set_due(place, due);
    }

    /// How often a page is visited if it has an interval of its own.
    pub fn every(&self, page: PageId) -> Option<&Every> {
        let at = self.pages.position(page)? as u32;
        self.promises.pages.get(&at).map(|promise| &promise.every)
    }

    /// How many visits the pages with intervals of their own need in a span while all their hours are open.
    pub fn promised_in(&self, span: Span) -> f64 {
        (self.promises.per_hour * span.as_hours_f64()).max(0.0)
    }

    pub(super) fn promise_reason(&self, at: usize) -> Option<Reason> {
        let promise = self.promises.pages.get(&(at as u32))?;
        let since = self.instant(self.pages.seen_at[at]);
        Some(Reason::Every { interval: promise.every.interval, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::importance::Importance;
    use crate::schedule::{Budget, Goal, PageInfo, ScheduleConfig, Strategy, VisitOutcome};
    use crate::url::SiteId;

    fn start() -> Timestamp {
        // A Monday.
        Timestamp::parse("2026-03-02T11:31:00Z").unwrap()
    }

    fn every(secs: i64, hours: Option<&str>) -> Option<Every> {
        Some(Every { interval: Span::from_secs(secs), hours: hours.map(|hours| hours.parse().unwrap()) })
    }

    /// A scheduler with `n` pages, the first of which has an interval.
    fn scheduler(config: ScheduleConfig, n: u32, of_first: Option<Every>) -> Scheduler {
        let mut scheduler = Scheduler::new(config, 7, start());
        for page in 0..n {
            let every = of_first.clone().filter(|_| page == 0);
            scheduler.add_page(PageId(page), PageInfo { every, ..PageInfo::for_site(SiteId(page / 50)) });
        }
        scheduler
    }

    /// The seconds after the start at which each page was visited. A visit takes `took`.
    fn visits(
        scheduler: &mut Scheduler,
        hours: i64,
        took: Span,
        mut answer: impl FnMut(PageId, i64) -> VisitOutcome,
    ) -> Vec<Vec<i64>> {
        let mut seen = vec![Vec::new(); scheduler.n_pages()];
        let (mut now, end) = (start(), start() + Span::from_hours(hours));
        while now < end {
            while let Some(visit) = scheduler.next_visit(now) {
                let secs = (now - start()).as_millis() / 1000;
                seen[visit.page.0 as usize].push(secs);
                let outcome = answer(visit.page, secs);
                now = now + took;
                scheduler.record(visit.page, outcome, now);
            }
            now = scheduler.next_wakeup().unwrap().max(now + Span::from_millis(1));
        }
        seen
    }

    fn gaps(seen: &[i64]) -> Vec<i64> {
        seen.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    fn changing(page: PageId, _: i64) -> VisitOutcome {
        if page.0.is_multiple_of(3) {
            VisitOutcome::Changed(Importance::new(0.3))
        } else {
            VisitOutcome::Unchanged
        }
    }

    #[test]
    fn an_interval_is_kept_under_every_goal_and_charged_to_the_budget() {
        let budget = Some(Budget::per_hour(40.0));
        let fixed = ScheduleConfig { strategy: Strategy::FixedInterval, budget, ..ScheduleConfig::default() };
        let goals = Goal::ALL.map(|goal| ScheduleConfig { goal, budget, ..ScheduleConfig::default() });
        for config in goals.into_iter().chain([fixed]) {
            let mut scheduler = scheduler(config.clone(), 200, every(300, None));
            let seen = visits(&mut scheduler, 24, Span::ZERO, changing);
            assert!(gaps(&seen[0]).iter().all(|gap| *gap == 300), "{:?}: {:?}", config.goal, seen[0]);
            assert_eq!((seen[0][0], seen[0].len()), (0, 24 * 12));
            let n_visits: usize = seen.iter().map(Vec::len).sum();
            assert!((24 * 36..=25 * 40).contains(&n_visits), "{:?}: {n_visits} of {}", config.goal, 24 * 40);
        }
    }

    #[test]
    fn an_interval_is_kept_without_a_budget_and_by_a_slow_answer() {
        let mut scheduler = scheduler(ScheduleConfig::default(), 1, every(300, None));
        let seen = visits(&mut scheduler, 10, Span::from_millis(2500), changing);
        assert!(gaps(&seen[0]).iter().all(|gap| *gap == 300), "{:?}", seen[0]);
    }

    #[test]
    fn neither_failures_nor_a_missing_page_make_an_interval_longer() {
        let answers: [fn(PageId, i64) -> VisitOutcome; 3] = [
            |_, _| VisitOutcome::Failed { retry_at: None },
            |_, _| VisitOutcome::Absent,
            |_, secs| {
                if secs < 3600 { VisitOutcome::Unchanged } else { VisitOutcome::Vanished(Importance::FULL) }
            },
        ];
        for answer in answers {
            let mut scheduler = scheduler(ScheduleConfig::default(), 1, every(300, None));
            let seen = visits(&mut scheduler, 24, Span::ZERO, answer);
            assert!(gaps(&seen[0]).iter().all(|gap| *gap <= 300), "{:?}", seen[0]);
            assert!(
                (288..=294).contains(&seen[0].len()),
                "soon after the first failures, then every five minutes"
            );
        }
    }

    #[test]
    fn a_pause_that_a_host_requests_is_respected() {
        let mut scheduler = scheduler(ScheduleConfig::default(), 1, every(300, None));
        let seen = visits(&mut scheduler, 2, Span::ZERO, |_, secs| VisitOutcome::Failed {
            retry_at: Some(start() + Span::from_secs(secs + 1800)),
        });
        assert!(gaps(&seen[0]).iter().all(|gap| *gap == 1800), "{:?}", seen[0]);
    }

    #[test]
    fn outside_its_hours_a_page_is_not_visited() {
        let hours = "Mon-Fri 08:00-18:00";
        let mut scheduler = scheduler(ScheduleConfig::default(), 1, every(1800, Some(hours)));
        let seen = visits(&mut scheduler, 24 * 7, Span::ZERO, |_, _| VisitOutcome::Unchanged);
        let utc = LocalClock::utc();
        let hours: WeeklyHours = hours.parse().unwrap();
        for secs in &seen[0] {
            let at = start() + Span::from_secs(*secs);
            assert_eq!(hours.next_open(&utc, at), at);
        }
        // From 11:31 on Monday, four whole days, and until 11:30 on Monday; each morning at eight.
        assert_eq!(seen[0].len(), 13 + 4 * 20 + 8);
        let eight = |day: i64| day * 86_400 - (3 * 3600 + 31 * 60);
        assert!((1..5).all(|day| seen[0].contains(&eight(day))), "{:?}", seen[0]);
    }

    #[test]
    fn a_visit_that_was_not_made_is_due_again_and_a_held_page_waits() {
        let mut scheduler = scheduler(ScheduleConfig::default(), 1, every(300, None));
        assert!(scheduler.next_visit(start()).is_some());
        scheduler.release(PageId(0));
        assert!(scheduler.next_visit(start()).is_some(), "not made, so still due");
        scheduler.release(PageId(0));
        let until = start() + Span::from_hours(1);
        scheduler.defer(PageId(0), until);
        assert_eq!(scheduler.next_visit(until - Span::from_secs(1)), None);
        assert_eq!(scheduler.next_wakeup(), Some(until));
        assert!(scheduler.next_visit(until).is_some());
    }

    #[test]
    fn an_announcement_is_visited_at_once_and_an_interval_can_be_taken_away() {
        let mut scheduler = scheduler(ScheduleConfig::default(), 1, every(86_400, None));
        visits(&mut scheduler, 1, Span::ZERO, changing);
        let now = start() + Span::from_hours(2);
        assert_eq!(scheduler.next_visit(now), None);
        scheduler.announce(PageId(0), now, None);
        assert_eq!(scheduler.next_visit(now).map(|visit| visit.reason), Some(Reason::Announced));
        scheduler.record(PageId(0), VisitOutcome::Unchanged, now);
        scheduler.add_page(PageId(0), PageInfo::for_site(SiteId(0)));
        assert_eq!((scheduler.every(PageId(0)), scheduler.promised_in(Span::from_hours(24))), (None, 0.0));
    }

    #[test]
    fn what_intervals_need_is_held_back_from_a_spent_day() {
        let budget = Some(Budget { visits: 100.0, period: Span::from_hours(24) });
        let config = ScheduleConfig { budget, ..ScheduleConfig::default() };
        // Three quarters of the day's visits are promised to one page.
        let mut scheduler = scheduler(config, 300, every(86_400 / 75, None));
        let seen = visits(&mut scheduler, 60, Span::ZERO, changing);
        assert!(gaps(&seen[0]).iter().all(|gap| *gap == 86_400 / 75), "{:?}", seen[0]);
        assert!(seen[1..].iter().map(Vec::len).sum::<usize>() >= 25, "the others have the rest");
    }
}
