//! The scheduler's promises under random worlds and hostile drivers.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::{Strategy, *};
use crate::rng::Rng;
use crate::url::SiteId;

fn start() -> Timestamp {
    Timestamp::parse("2026-03-02").unwrap()
}

fn config(strategy: Strategy, per_hour: f64) -> ScheduleConfig {
    ScheduleConfig { strategy, budget: Some(Budget::per_hour(per_hour)), ..ScheduleConfig::default() }
}

fn new_scheduler(config: ScheduleConfig, n_pages: u32) -> Scheduler {
    let mut scheduler = Scheduler::new(config, 7, start());
    for page in 0..n_pages {
        scheduler.add_page(
            PageId(page),
            PageInfo { weight: 1.0 + page as f32, ..PageInfo::for_site(SiteId(page % 3)) },
        );
    }
    scheduler
}

/// Drives a scheduler for some hours; `answer` returns the outcome of each visit.
fn drive(
    scheduler: &mut Scheduler,
    hours: i64,
    mut answer: impl FnMut(&Visit, Timestamp) -> VisitOutcome,
) -> Vec<(Timestamp, Visit)> {
    let (mut now, end) = (start(), start() + Span::from_hours(hours));
    let mut visits = Vec::new();
    while now < end {
        while let Some(visit) = scheduler.next_visit(now) {
            let outcome = answer(&visit, now);
            scheduler.record(visit.page, outcome, now);
            visits.push((now, visit));
        }
        match scheduler.next_wakeup() {
            Some(wakeup) => {
                assert!(wakeup > now, "a driver would ask again at once");
                now = wakeup;
            }
            None => break,
        }
    }
    visits
}

fn hour(at: Timestamp) -> i64 {
    (at - start()).as_millis() / 3_600_000
}

/// A scheduler with nothing to do sleeps.
#[test]
fn an_idle_scheduler_wakes_seldom() {
    let with_goal = |goal| ScheduleConfig { goal, ..config(Strategy::ExpectedGain, 40.0) };
    let configs = Goal::ALL.map(with_goal).into_iter().chain([
        ScheduleConfig::default(),
        ScheduleConfig { varying_budget: Some(true), ..with_goal(Goal::Balanced) },
        ScheduleConfig { interval: Some(Span::from_hours(6)), ..config(Strategy::FixedInterval, 40.0) },
    ]);
    for config in configs {
        let is_even = config.budget.is_some() && !config.saves_visits() && config.interval.is_none();
        let mut scheduler = new_scheduler(config.clone(), 3);
        let (mut now, mut n_wakeups, mut n_visits) = (start(), 0, 0);
        while now < start() + Span::from_hours(48) {
            while let Some(visit) = scheduler.next_visit(now) {
                scheduler.record(visit.page, VisitOutcome::Unchanged, now);
                n_visits += 1;
            }
            now = scheduler.next_wakeup().unwrap();
            n_wakeups += 1;
        }
        let most = if is_even { 5 * n_visits + 48 * 60 } else { 48 * 360 };
        assert!(n_wakeups < most, "{config:?}: {n_wakeups} wakeups, {n_visits} visits");
    }
}

/// A large archive has prices and sweeps in the first hour, although its pages are looked at in slices.
#[test]
fn a_large_archive_uses_its_budget_from_the_first_hours() {
    for (goal, n_sites) in [(Goal::Balanced, 20), (Goal::Balanced, 1), (Goal::Importance, 20)] {
        let budget = Some(Budget { visits: 24_000.0, period: Span::from_hours(24) });
        let mut scheduler =
            Scheduler::new(ScheduleConfig { budget, goal, ..ScheduleConfig::default() }, 7, start());
        for page in 0..20_000 {
            let seen = start() - Span::from_secs(i64::from(page) * 3);
            scheduler.add_seen_page(PageId(page), PageInfo::for_site(SiteId(page % n_sites)), seen);
        }
        scheduler.learn_now(start());
        let mut n = 0;
        let visits = drive(&mut scheduler, 6, |_, now| {
            n += 1;
            random_outcome(mixed(1, n), now)
        });
        let least = if n_sites == 1 { 1000 } else { 3000 };
        assert!(visits.len() > least, "{goal:?}, {n_sites} sites: {} visits", visits.len());
    }
}

#[test]
fn histories_stay_within_their_memory_from_the_first_hour() {
    let evidence_bytes = Some(20 * super::learn::BYTES_PER_HISTORY);
    let config = ScheduleConfig { evidence_bytes, ..config(Strategy::ExpectedGain, 200.0) };
    let mut scheduler = new_scheduler(config, 300);
    let visits = drive(&mut scheduler, 10, |_, _| VisitOutcome::Unchanged);
    assert!(visits.len() > 1000);
    assert_eq!(scheduler.n_histories(), 20);
}

fn random_outcome(word: u64, now: Timestamp) -> VisitOutcome {
    match word % 7 {
        0 => VisitOutcome::Unchanged,
        1 => VisitOutcome::Absent,
        2 => VisitOutcome::Failed { retry_at: None },
        3 => VisitOutcome::Failed { retry_at: Some(now + Span::from_hours((word >> 8) as i64 % 50 - 10)) },
        _ => VisitOutcome::Changed(Importance::new((word >> 8) as f64 % 101.0 / 100.0)),
    }
}

fn mixed(seed: u64, at: u64) -> u64 {
    Rng::from_parts(&[seed, at]).bits() >> 16
}

fn any_goal() -> impl proptest::strategy::Strategy<Value = Goal> {
    prop::sample::select(Goal::ALL.to_vec())
}

fn any_strategy() -> impl proptest::strategy::Strategy<Value = Strategy> {
    prop::sample::select(Strategy::ALL.to_vec())
}

/// The actions of a hostile driver after a request for a visit.
fn disturb(scheduler: &mut Scheduler, visit: Option<&Visit>, word: u64, now: Timestamp) {
    let page = PageId((word >> 20) as u32 % 60);
    match (visit, word % 11) {
        (Some(visit), 0) => scheduler.release(visit.page),
        (Some(visit), 1) => scheduler.remove_page(visit.page),
        (Some(visit), _) => scheduler.record(visit.page, random_outcome(word / 11, now), now),
        (None, 2) => scheduler.announce(page, now, None),
        (None, 3) => scheduler.add_page(page, PageInfo::for_site(SiteId(1))),
        (None, 4) => scheduler.defer(page, now + Span::from_hours(5)),
        (None, 5) => scheduler.set_weight(page, (word >> 30) as f32 % 7.0),
        (None, 6) => scheduler.record(page, random_outcome(word / 11, now), now),
        (None, _) => {}
    }
}

/// A ranking contains each page once.
fn check_ranking(scheduler: &Scheduler, now: Timestamp) -> Result<(), TestCaseError> {
    let all = scheduler.ranking(now, scheduler.n_pages() + 10);
    prop_assert_eq!(all.len(), scheduler.n_pages());
    prop_assert_eq!(all.iter().map(|ranked| ranked.page).collect::<HashSet<_>>().len(), all.len());
    prop_assert_eq!(&scheduler.ranking(now, 3)[..], &all[..all.len().min(3)]);
    Ok(())
}

/// The next visit of a forecast is the one that is then made.
fn check_forecast(scheduler: &Scheduler, now: Timestamp) -> Result<(), TestCaseError> {
    let mut foreseen = None;
    scheduler.forecast(now, now + Span::from_hours(6), |at, ranked| {
        foreseen = Some((at, ranked.page, ranked.reason));
        false
    });
    let (mut then, mut at, mut made) = (scheduler.clone(), now, None);
    // A forecast learns nothing.
    then.config.learn = false;
    while made.is_none() && at < now + Span::from_hours(6) {
        made = then.next_visit(at).map(|visit| (at, visit.page, visit.reason));
        at = then
            .next_wakeup()
            .map_or(now + Span::from_hours(6), |wakeup| wakeup.max(at + Span::from_millis(1)));
    }
    prop_assert_eq!(foreseen, made);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// No period has more visits than its budget, whenever a visit that was handed out starts and ends. Urgencies are
    /// finite and no wakeup is in the past, with any outcomes and any pages added and removed.
    #[test]
    fn promises_hold_under_random_outcomes(
        strategy in any_strategy(), n_pages in 1u32..40, budget in 0.0f64..30.0, seed: u64,
        minutes in prop::sample::select(vec![7i64, 60, 180, 24 * 60]), varying: bool, spells: bool, goal in any_goal(),
    ) {
        let period = Span::from_secs(minutes * 60);
        let budget = Budget { visits: budget, period };
        let config = ScheduleConfig {
            budget: Some(budget), varying_budget: Some(varying), spells, goal, ..config(strategy, 0.0)
        };
        let mut scheduler = new_scheduler(config, n_pages);
        scheduler.add_page(PageId(1000), PageInfo {
            every: Some(Every { interval: Span::from_secs(1700), hours: None }), ..PageInfo::for_site(SiteId(2))
        });
        let mut n = 0u64;
        let mut started: HashMap<i64, u64> = HashMap::new();
        let mut waiting: VecDeque<PageId> = VecDeque::new();
        let (mut now, end) = (start(), start() + Span::from_hours(60));
        let mut total = 0.0;
        while now < end {
            while let Some(visit) = scheduler.next_visit(now) {
                n += 1;
                prop_assert!(!waiting.contains(&visit.page), "it was handed out twice");
                if let Reason::Urgent { urgency, .. } = visit.reason {
                    prop_assert!(urgency.is_finite());
                }
                waiting.push_back(visit.page);
                let word = mixed(seed, n);
                if word.is_multiple_of(13) {
                    scheduler.announce(PageId((word >> 9) as u32 % 50), now, None);
                    scheduler.add_page(PageId((word >> 20) as u32 % 60), PageInfo::for_site(SiteId(1)));
                }
            }
            let wakeup = scheduler.next_wakeup();
            prop_assert!(wakeup.is_none_or(|wakeup| wakeup > now), "{wakeup:?} at {now}");
            // Some visits wait for their host, into the next period.
            while waiting.len() > (mixed(seed, n) % 4) as usize {
                let Some(page) = waiting.pop_front() else { break };
                n += 1;
                let word = mixed(seed, n);
                match word % 11 {
                    0 => scheduler.release(page),
                    1 => scheduler.remove_page(page),
                    _ => {
                        total += 1.0;
                        *started.entry(now.as_millis().div_euclid(period.as_millis())).or_default() += 1;
                        if word % 11 < 6 {
                            scheduler.start_visit(page, now);
                        }
                        scheduler.record(page, random_outcome(word / 11, now), now);
                    }
                }
            }
            let Some(wakeup) = wakeup else { break };
            now = wakeup;
        }
        let granted = budget.visits_in(now - start());
        if varying && period < Span::from_hours(24) {
            let saved = budget.visits_in(Span::from_hours(24)).max(1.5 * 60.0);
            prop_assert!(total <= granted + saved + 1.0, "{total} visits, {granted} granted");
        } else {
            let most = started.values().copied().max().unwrap_or(0);
            prop_assert!(most as f64 <= budget.visits.ceil(), "{most} of {}", budget.visits);
        }
        for page in 0..60 {
            if let Some(belief) = scheduler.belief(PageId(page)) {
                prop_assert!(belief.rates.iter().chain(&belief.importance).all(|x| x.is_finite() && *x >= 0.0));
            }
        }
    }

    #[test]
    fn same_seed_and_calls_same_visits(strategy in any_strategy(), n_pages in 1u32..30, seed: u64) {
        let run = || {
            let mut scheduler = new_scheduler(config(strategy, 4.0), n_pages);
            let mut n = 0;
            drive(&mut scheduler, 72, |_, now| { n += 1; random_outcome(mixed(seed, n), now) })
        };
        prop_assert_eq!(run(), run());
    }

    /// Rankings and forecasts change no state, at any time and for any time, and a forecast comes true.
    #[test]
    fn rankings_change_no_state_and_come_true(
        strategy in any_strategy(), n_pages in 1u32..40, budget in prop::option::of(0.0f64..30.0), seed: u64,
        varying: bool, goal in any_goal(),
    ) {
        let config = ScheduleConfig {
            budget: budget.map(Budget::per_hour), varying_budget: Some(varying), goal, ..config(strategy, 1.0)
        };
        let mut never = new_scheduler(config, n_pages);
        let mut queried = never.clone();
        let (mut now, mut n) = (start(), 0);
        while now < start() + Span::from_hours(60) {
            n += 1;
            let word = mixed(seed, n);
            if word.is_multiple_of(3) {
                let about = now + Span::from_secs((word >> 8) as i64 % 400_000 - 100_000);
                let _ = queried.ranking(about, (word >> 4) as usize % 50);
            }
            if word.is_multiple_of(40) {
                check_ranking(&queried, now)?;
                check_forecast(&queried, now)?;
            }
            let (visit, other) = (never.next_visit(now), queried.next_visit(now));
            prop_assert_eq!(&visit, &other);
            for scheduler in [&mut never, &mut queried] {
                disturb(scheduler, visit.as_ref(), word, now);
            }
            if visit.is_none() {
                let Some(wakeup) = never.next_wakeup() else { break };
                now = wakeup.max(now + Span::from_millis(1));
            }
        }
    }

    /// The floor covers all pages in n / F hours, and a page that has waited so long gets its turn. So no page waits
    /// longer than twice that.
    #[test]
    fn no_page_starves(
        n_pages in 5u32..60, budget in 2.0f64..12.0, floor in 0.1f32..0.5, goal in any_goal(), seed: u64,
    ) {
        let mut scheduler = Scheduler::new(
            ScheduleConfig { floor: Some(floor), goal, ..config(Strategy::ExpectedGain, budget) }, 1, start());
        for page in 0..n_pages {
            // One page is worth more than all others together.
            let weight = if page == 0 { 1e6 } else { 1e-3 };
            scheduler.add_page(PageId(page), PageInfo { weight, ..PageInfo::for_site(SiteId(0)) });
        }
        let mut n = 0;
        let visits = drive(&mut scheduler, 24 * 30, |_, _| {
            n += 1;
            if mixed(seed, n).is_multiple_of(3) { VisitOutcome::Unchanged } else { VisitOutcome::Changed(Importance::new(0.4)) }
        });
        let round = f64::from(n_pages) / (f64::from(floor) * budget);
        let mut last: HashMap<PageId, f64> = (0..n_pages).map(|page| (PageId(page), 0.0)).collect();
        for (at, visit) in &visits {
            let hours = (*at - start()).as_hours_f64();
            let waited = hours - last.insert(visit.page, hours).unwrap();
            prop_assert!(waited <= 2.0 * round + 2.0 + f64::from(n_pages) / budget, "{waited} of {round}");
        }
        let end = 24.0 * 30.0;
        prop_assert!(last.values().all(|seen| end - seen <= 2.0 * round + 2.0 + f64::from(n_pages) / budget));
    }
}

#[test]
fn new_pages_come_first_and_at_once() {
    let mut scheduler = new_scheduler(config(Strategy::ExpectedGain, 4.0), 10);
    let first: Vec<Visit> = std::iter::from_fn(|| scheduler.next_visit(start())).collect();
    assert_eq!(first.len(), 4, "the visits of an hour");
    assert!(first.iter().all(|visit| visit.reason == Reason::FirstCapture));
    let mut scheduler = new_scheduler(config(Strategy::ExpectedGain, 4.0), 4);
    drive(&mut scheduler, 3, |_, _| VisitOutcome::Changed(Importance::FULL));
    scheduler.add_page(PageId(99), PageInfo::for_site(SiteId(0)));
    let visit = scheduler.next_visit(start() + Span::from_hours(3)).unwrap();
    assert_eq!((visit.page, visit.reason), (PageId(99), Reason::FirstCapture));
}

/// A new archive knows one page, whose first visit finds the others. It starts in the middle of an hour.
#[test]
fn pages_found_in_the_first_minute_of_a_crawl_are_visited_in_it() {
    for (goal, budget) in Goal::ALL.iter().flat_map(|goal| [20.0, 100.0].map(|budget| (*goal, budget))) {
        let start = start() + Span::from_secs(31 * 60);
        let mut scheduler =
            Scheduler::new(ScheduleConfig { goal, ..config(Strategy::ExpectedGain, budget) }, 7, start);
        scheduler.add_page(PageId(0), PageInfo::for_site(SiteId(0)));
        let mut seen = HashSet::new();
        for second in 0..60 {
            let now = start + Span::from_secs(second);
            while let Some(visit) = scheduler.next_visit(now) {
                seen.insert(visit.page);
                scheduler.record(visit.page, VisitOutcome::Changed(Importance::FULL), now);
                if visit.page == PageId(0) {
                    (1..41).for_each(|page| scheduler.add_page(PageId(page), PageInfo::for_site(SiteId(0))));
                }
            }
        }
        assert_eq!(seen.len(), budget.min(41.0) as usize, "{goal:?}");
    }
}

#[test]
fn a_fixed_interval_visits_pages_in_turn_as_often_as_the_budget_allows() {
    let mut scheduler = new_scheduler(config(Strategy::FixedInterval, 6.0), 30);
    let visits = drive(&mut scheduler, 24, |_, _| VisitOutcome::Unchanged);
    let late = visits.iter().skip(60);
    let pages: Vec<u32> = late.clone().map(|(_, visit)| visit.page.0).take(30).collect();
    assert_eq!(pages.iter().collect::<HashSet<_>>().len(), 30, "{pages:?}");
    let minutes: Vec<i64> = late.map(|(at, _)| (*at - start()).as_millis() / 60_000).collect();
    assert!(minutes.windows(2).all(|pair| pair[1] - pair[0] == 10), "{minutes:?}");
}

#[test]
fn busy_hours_are_learned_and_dead_pages_fade() {
    let mut scheduler = new_scheduler(config(Strategy::ExpectedGain, 2.0), 8);
    // Page 0 changes from 9 to 12 UTC, page 1 vanished on the fifth day, the others never change.
    let mut seen: HashMap<PageId, Timestamp> = HashMap::new();
    let changes = |page: PageId, from: Timestamp, to: Timestamp| {
        (hour(from) + 1..=hour(to)).any(|hour| match page.0 {
            0 => (9..12).contains(&(hour % 24)),
            1 => hour < 120 && hour % 3 == 0,
            _ => false,
        })
    };
    drive(&mut scheduler, 24 * 28, |visit, now| match seen.insert(visit.page, now) {
        None => VisitOutcome::Changed(Importance::FULL),
        Some(before) if changes(visit.page, before, now) => VisitOutcome::Changed(Importance::new(0.3)),
        Some(_) => VisitOutcome::Unchanged,
    });
    let belief = scheduler.belief(PageId(0)).unwrap();
    let by_day: f32 = belief.rates[9..12].iter().sum();
    let by_night: f32 = belief.rates[0..6].iter().sum();
    assert!(by_day > 4.0 * by_night, "{by_day} {by_night}");
    // It changed eight times per day while it existed.
    let dead = scheduler.belief(PageId(1)).unwrap().changes_per_day();
    assert!(dead < 1.0, "{dead} changes a day");
    assert!(belief.changes_per_day() > 3.0 * dead);
    let peak = peak_hours(&belief.rates).unwrap();
    assert!(peak.from_hour >= 7.0 && peak.to_hour <= 14.0, "{peak:?}");
}

/// Two visits per day cannot show when a page changes; the items of its feed can.
#[test]
fn hours_from_a_feed_are_learned_between_visits() {
    let learned = |is_reported: bool| {
        let mut scheduler = new_scheduler(config(Strategy::ExpectedGain, 2.0), 1);
        for half_day in 0..80 {
            if is_reported && half_day % 2 == 1 {
                for hour in 9..12 {
                    scheduler
                        .note_change_time(PageId(0), start() + Span::from_hours(half_day / 2 * 24 + hour));
                }
            }
            let outcome = match half_day % 2 {
                1 => VisitOutcome::Changed(Importance::new(0.3)),
                _ => VisitOutcome::Unchanged,
            };
            scheduler.record(PageId(0), outcome, start() + Span::from_hours(half_day * 12));
        }
        let rates = scheduler.belief(PageId(0)).unwrap().rates;
        rates[9..12].iter().sum::<f32>() / rates[1..9].iter().sum::<f32>()
    };
    let (announced, unannounced) = (learned(true), learned(false));
    assert!(announced > 3.0 * unannounced, "{announced} {unannounced}");
}

#[test]
fn zones_shift_the_pattern() {
    let mut scheduler = Scheduler::new(config(Strategy::ExpectedGain, 10.0), 1, start());
    let tokyo = scheduler.add_clock(LocalClock::from_zone("Asia/Tokyo").unwrap());
    let known = KnownPattern {
        rates: (0..48).map(|b| if b == 9 { 3.0 } else { 0.001 }).collect(),
        importance: vec![0.5; 48],
    };
    for (page, clock) in [(0, ClockId(0)), (1, tokyo)] {
        let known = Some(known.clone());
        scheduler.add_page(PageId(page), PageInfo { clock, known, ..PageInfo::for_site(SiteId(page)) });
    }
    drive(&mut scheduler, 2, |_, _| VisitOutcome::Unchanged);
    // 09 local in Tokyo is 00 UTC, in London 09 UTC.
    let top = |scheduler: &Scheduler, hour: i64| {
        let ranking = scheduler.ranking(start() + Span::from_secs(3600 * hour + 3540), 2);
        let top = ranking.into_iter().max_by(|a, b| a.urgency.total_cmp(&b.urgency)).unwrap();
        (top.page, top.peak.map(|peak| peak.from_hour))
    };
    assert_eq!(top(&scheduler, 9), (PageId(0), Some(9.0)));
    for page in 0..2 {
        scheduler.record(PageId(page), VisitOutcome::Unchanged, start() + Span::from_hours(20));
    }
    assert_eq!(top(&scheduler, 24), (PageId(1), Some(9.0)));
}

#[test]
fn an_announcement_makes_a_page_urgent_as_soon_as_the_budget_allows() {
    let config = ScheduleConfig { goal: Goal::Importance, ..config(Strategy::ExpectedGain, 1.0) };
    let mut scheduler = new_scheduler(config, 5);
    let visits = drive(&mut scheduler, 12, |_, _| VisitOutcome::Unchanged);
    let last = visits.last().unwrap();
    let now = last.0 + Span::from_secs(60);
    let other = PageId(if last.1.page == PageId(0) { 1 } else { 0 });
    scheduler.announce(other, now, Some(Importance::FULL));
    assert_eq!(scheduler.next_visit(now), None, "the budget is spent");
    let next = scheduler.next_wakeup().unwrap();
    let visit = std::iter::successors(Some(next), |at| Some(*at + Span::from_secs(60)));
    let (at, visit) = visit.take(120).find_map(|at| Some((at, scheduler.next_visit(at)?))).unwrap();
    assert_eq!((visit.page, visit.reason), (other, Reason::Announced));
    assert!(at - last.0 <= Span::from_secs(3720), "as soon as a visit is granted: {at}");
}

#[test]
fn failures_back_off_and_gone_pages_are_probed_rarely() {
    let mut scheduler = new_scheduler(ScheduleConfig { worth: 0.0, ..ScheduleConfig::default() }, 2);
    let visits = drive(&mut scheduler, 24 * 20, |visit, _| match visit.page.0 {
        0 => VisitOutcome::Failed { retry_at: None },
        _ => VisitOutcome::Absent,
    });
    let count = |page: u32| visits.iter().filter(|(_, visit)| visit.page == PageId(page)).count();
    assert!((15..45).contains(&count(0)), "{}", count(0));
    assert!((3..8).contains(&count(1)), "{}", count(1));
}

#[test]
fn invalid_input_is_accepted() {
    let mut scheduler = Scheduler::new(
        ScheduleConfig {
            n_periods: 0,
            floor: Some(f32::NAN),
            half_life: Some(Span::ZERO),
            budget: Some(Budget { visits: f64::NAN, period: Span::ZERO }),
            ..ScheduleConfig::default()
        },
        0,
        Timestamp::from_millis(i64::MAX),
    );
    assert_eq!(scheduler.next_wakeup(), None);
    scheduler.record(PageId(3), VisitOutcome::Absent, start());
    scheduler.add_page(PageId(0), PageInfo { weight: f32::NAN, ..PageInfo::for_site(SiteId(0)) });
    assert_eq!(scheduler.next_visit(start()), None);
    scheduler.set_weight(PageId(0), f32::INFINITY);
    scheduler.record(PageId(0), VisitOutcome::Changed(Importance::FULL), Timestamp::from_millis(i64::MIN));
    let _ = scheduler.ranking(Timestamp::EPOCH, 10);
}

/// Visits of a scheduler with `budget` per hour over `days`, by page. `is_page` decides which URLs have a page.
fn visits_of_a_site(n_urls: u32, budget: f64, days: i64, is_page: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut scheduler = Scheduler::new(config(Strategy::ExpectedGain, budget), 1, start());
    for id in 0..n_urls {
        let group = u64::from(id / 50);
        scheduler.add_page(PageId(id), PageInfo { group, ..PageInfo::for_site(SiteId(0)) });
    }
    let mut n_visits = vec![0; n_urls as usize];
    let mut now = start();
    while now < start() + Span::from_hours(24 * days) {
        match scheduler.next_visit(now) {
            Some(visit) => {
                n_visits[visit.page.0 as usize] += 1;
                let outcome = match is_page(visit.page.0) {
                    true => VisitOutcome::Changed(Importance::new(0.3)),
                    false => VisitOutcome::Absent,
                };
                scheduler.record(visit.page, outcome, now);
            }
            None => now = scheduler.next_wakeup().unwrap(),
        }
    }
    n_visits
}

#[test]
fn urls_without_a_page_get_a_small_share() {
    // A site with nearly only dead links: 50 pages, 950 URLs without one.
    let visits = visits_of_a_site(1000, 10.0, 14, |id| id < 50);
    let (pages, dead): (u32, u32) = (visits[..50].iter().sum(), visits[50..].iter().sum());
    assert!(visits[..50].iter().all(|&n| n > 0), "{visits:?}");
    assert!(dead * 100 <= 3 * (pages + dead), "{dead} of {}", pages + dead);
    assert!(visits[50..].iter().filter(|&&n| n > 0).count() > 20, "they are tried one after the other");
}

#[test]
fn where_links_are_good_every_url_is_tried_soon() {
    // Every tenth link is dead.
    let visits = visits_of_a_site(300, 30.0, 2, |id| id % 10 != 0);
    assert!(visits.iter().all(|&n| n > 0), "{visits:?}");
    assert!(visits.iter().step_by(10).all(|&n| n <= 2), "a dead one is tried once, and again after a day");
}

#[test]
fn a_page_that_vanished_is_probed_and_followed_again_when_it_returns() {
    let mut scheduler = Scheduler::new(ScheduleConfig::default(), 1, start());
    scheduler.add_page(PageId(0), PageInfo::for_site(SiteId(0)));
    scheduler.record(PageId(0), VisitOutcome::Changed(Importance::FULL), start());
    let hour = |n: i64| start() + Span::from_hours(n);
    scheduler.record(PageId(0), VisitOutcome::Vanished(Importance::FULL), hour(1));
    let mut probes = Vec::new();
    for n in 2..24 * 10 {
        while let Some(visit) = scheduler.next_visit(hour(n)) {
            assert_eq!(visit.reason, Reason::Probe);
            probes.push(n);
            scheduler.record(visit.page, VisitOutcome::Absent, hour(n));
        }
    }
    assert_eq!(probes.len(), 5, "after a quarter of a day, and twice as long each time: {probes:?}");
    scheduler.record(PageId(0), VisitOutcome::Changed(Importance::FULL), hour(240));
    let is_followed = (241..500).any(|n| {
        scheduler.next_visit(hour(n)).is_some_and(|visit| matches!(visit.reason, Reason::Urgent { .. }))
    });
    assert!(is_followed);
}

#[test]
fn neighbours_of_pages_are_tried_before_neighbours_of_dead_links() {
    // A home page with dead links except for one list of twenty, late on the page and in the same directory.
    let list = 300..320;
    let visits = visits_of_a_site(400, 10.0, 14, |id| id == 0 || list.contains(&id));
    let n_found = list.clone().filter(|&id| visits[id as usize] > 0).count();
    let n_dead: u32 = (1..400).filter(|id| !list.contains(id)).map(|id| visits[id as usize]).sum();
    let n_granted = 10 * 24 * 14;
    assert!(n_found >= 18, "{n_found} of 20 pages were found: {visits:?}");
    assert!(n_dead * 100 <= 3 * n_granted, "{n_dead} of {n_granted}");
}
