//! Drives the policy with a virtual web, without clock, network or disk.

use perennial_core::schedule::{Budget, Every, PageInfo, ScheduleConfig, Strategy};

use super::*;
use crate::polls::FeedPoll;
use crate::record::samples::{SEED, SITE, failed, found, target};
use perennial_archive::settings::{BudgetTable, Seed, Seeds};

fn start() -> Timestamp {
    Timestamp::parse("2026-03-02").unwrap()
}

fn config() -> PolicyConfig {
    PolicyConfig {
        only_requested: false,
        max_workers: 4,
        connections: 1,
        max_tries: 3,
        max_wait: Span::from_secs(600),
        limit: None,
        time_limit: None,
        size_limit: None,
        is_analysing: true,
        feeds_only: false,
        polls_sitemaps: true,
    }
}

fn policy(config: PolicyConfig, order: VisitOrder, allowance: BudgetTable) -> Policy {
    let seed = Seed::of_host("http://a.example/".parse().unwrap());
    let followed = FollowedSites::from_seeds(Seeds::new(vec![seed]).numbered(vec![SEED]));
    let budgets = BudgetAccounts::new(BudgetTable::default(), [(SEED, allowance)].into_iter());
    Policy::new(config, order, followed, budgets, start())
}

fn once() -> Policy {
    policy(config(), VisitOrder::Once { started: start() }, BudgetTable::default())
}

fn scheduled(config: PolicyConfig, schedule: ScheduleConfig, allowance: BudgetTable) -> Policy {
    let scheduler = Scheduler::new(schedule, 0, start());
    policy(config, VisitOrder::Scheduled(Box::new(scheduler)), allowance)
}

fn new_page(page: u32, kind: PageKind) -> NewPage {
    NewPage {
        page: PageId(page),
        site: SITE,
        kind,
        seed: SEED,
        url: format!("http://a.example/{page}"),
        changed: None,
        item: None,
        is_new: true,
    }
}

/// Starts the next visit, if one may start.
fn start_next(policy: &mut Policy, kind: PageKind, now: Timestamp) -> Option<PageId> {
    let (page, why) = policy.next(now)?;
    policy.admit(&target(page, kind), why, now).then_some(page)
}

/// Drives the policy until it ends, at most until `until`. Returns the visits. Analysis takes no time.
fn drive(
    policy: &mut Policy,
    until: Timestamp,
    mut response: impl FnMut(PageId, Timestamp) -> VisitRecord,
) -> Vec<(PageId, Timestamp)> {
    let (mut now, mut visits) = (start(), Vec::new());
    while now < until && policy.end(now).is_none() {
        while let Some((page, why)) = policy.next(now) {
            if policy.admit(&target(page, PageKind::Page), why, now) {
                visits.push((page, now));
                for page in policy.finish_visit(&response(page, now), now) {
                    policy.finish_analysis(page, None, Vec::new());
                }
            }
        }
        match policy.wakeup() {
            Some(at) => now = at.max(now + Span::from_secs(1)),
            None => break,
        }
    }
    visits
}

#[test]
fn a_pass_visits_everything_once_and_ends() {
    let mut policy = once();
    policy.add_new_page(&new_page(1, PageKind::Page));
    let visits = drive(&mut policy, start() + Span::from_hours(1), |page, now| {
        let next = (page.0 < 5).then(|| new_page(page.0 + 1, PageKind::Page));
        VisitRecord { new_pages: next.into_iter().collect(), ..found(page, PageKind::Page, now) }
    });
    assert_eq!(visits.iter().map(|(page, _)| page.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(policy.end(start()), Some(CrawlEnd::Done));
    assert!(policy.is_pass_complete());
}

#[test]
fn a_page_is_analysed_when_its_last_subresource_is_there() {
    let (mut policy, now) = (once(), start());
    policy.add_new_page(&new_page(1, PageKind::Page));
    let page = start_next(&mut policy, PageKind::Page, now).unwrap();
    let needs = vec![new_page(8, PageKind::Subresource), new_page(9, PageKind::Subresource)];
    let record = VisitRecord { new_pages: needs, ..found(page, PageKind::Page, now) };
    assert!(policy.finish_visit(&record, now).is_empty());
    let mut ready = Vec::new();
    while let Some(subresource) = start_next(&mut policy, PageKind::Subresource, now) {
        assert!(ready.is_empty(), "analysed before all subresources were there");
        ready = policy.finish_visit(&found(subresource, PageKind::Subresource, now), now);
    }
    assert_eq!(ready, [page]);
    assert_eq!(policy.end(now), None, "its analysis is not done");
    policy.finish_analysis(page, None, Vec::new());
    assert_eq!(policy.end(now), Some(CrawlEnd::Done));
}

#[test]
fn a_pass_tries_a_failing_page_again_and_then_gives_up() {
    let mut policy = once();
    policy.add_new_page(&new_page(1, PageKind::Page));
    let mut n_failures = 0;
    let visits = drive(&mut policy, start() + Span::from_hours(24), |page, now| {
        n_failures += 1;
        failed(page, n_failures, now)
    });
    assert_eq!(visits.len(), 3);
    assert_eq!(policy.end(visits[2].1), Some(CrawlEnd::Done));
}

#[test]
fn a_pass_gives_up_the_pages_of_a_host_that_requests_too_long_a_pause() {
    let mut policy = once();
    (1..=5).for_each(|page| policy.add_new_page(&new_page(page, PageKind::Page)));
    let visits = drive(&mut policy, start() + Span::from_hours(24), |page, now| {
        let host = HostState { ready_at: now + Span::from_hours(2), n_troubles: 1 };
        VisitRecord { host, ..failed(page, 1, now) }
    });
    assert_eq!((visits.len(), policy.n_given_up()), (1, 4));
}

#[test]
fn an_interval_of_twelve_days_gives_two_visits_in_two_weeks() {
    let schedule = ScheduleConfig {
        strategy: Strategy::FixedInterval,
        interval: Some(Span::from_hours(12 * 24)),
        ..ScheduleConfig::default()
    };
    let mut policy = scheduled(config(), schedule, BudgetTable::default());
    policy.add_new_page(&new_page(1, PageKind::Page));
    let visits =
        drive(&mut policy, start() + Span::from_hours(14 * 24), |page, now| found(page, PageKind::Page, now));
    assert_eq!(visits.len(), 2, "{visits:?}");
    let gap = (visits[1].1 - visits[0].1).as_hours_f64() / 24.0;
    // Pages are ranked once per hour, so a visit may be up to an hour early.
    assert!((12.0 - 1.0 / 24.0..=12.0 + 1.0 / 24.0).contains(&gap), "{gap} days");
}

#[test]
fn no_period_has_more_visits_than_its_budget() {
    let schedule = ScheduleConfig { budget: Some(Budget::per_hour(100.0)), ..ScheduleConfig::default() };
    let allowance = BudgetTable { visits: Some(Budget::per_hour(3.0)), bytes_per_day: None };
    let mut policy = scheduled(config(), schedule, allowance);
    (1..=20).for_each(|page| policy.add_new_page(&new_page(page, PageKind::Page)));
    let until = start() + Span::from_hours(10);
    let visits = drive(&mut policy, until, |page, now| found(page, PageKind::Page, now));
    let mut n_by_hour = [0; 10];
    visits.iter().for_each(|(_, at)| n_by_hour[(*at - start()).as_hours_f64() as usize] += 1);
    assert_eq!(n_by_hour, [3; 10]);
}

#[test]
fn the_scheduler_learns_the_result_of_the_analysis_and_not_the_response() {
    let schedule = ScheduleConfig { budget: Some(Budget::per_hour(1.0)), ..ScheduleConfig::default() };
    let mut policy = scheduled(config(), schedule, BudgetTable::default());
    policy.add_new_page(&new_page(1, PageKind::Page));
    let mut now = start();
    for _ in 0..48 {
        if let Some(page) = start_next(&mut policy, PageKind::Page, now) {
            for page in policy.finish_visit(&found(page, PageKind::Page, now), now) {
                policy.finish_analysis(page, Some(VisitOutcome::Unchanged), Vec::new());
            }
        }
        now = now + Span::from_hours(1);
    }
    let scheduler = policy.scheduler_mut().unwrap();
    let rates = scheduler.belief(PageId(1)).unwrap().rates;
    let changes_per_day: f32 = rates.iter().take(24).sum();
    assert!(
        changes_per_day < 2.0,
        "every response differed, every observation was the same: {changes_per_day}"
    );
}

#[test]
fn fetching_waits_for_the_analysis() {
    let (mut policy, now) = (once(), start());
    (1..=200).for_each(|page| policy.add_new_page(&new_page(page, PageKind::Page)));
    let mut ready = Vec::new();
    while let Some(page) = start_next(&mut policy, PageKind::Page, now) {
        ready.extend(policy.finish_visit(&found(page, PageKind::Page, now), now));
    }
    assert_eq!(ready.len(), MAX_ANALYSING);
    policy.finish_analysis(ready[0], None, Vec::new());
    assert!(start_next(&mut policy, PageKind::Page, now).is_some());
}

#[test]
fn a_stop_lets_visits_in_flight_end() {
    let (mut policy, now) = (once(), start());
    (1..=3).for_each(|page| policy.add_new_page(&new_page(page, PageKind::Page)));
    let page = start_next(&mut policy, PageKind::Page, now).unwrap();
    policy.stop();
    assert_eq!((policy.next(now), policy.end(now)), (None, None));
    policy.finish_visit(&found(page, PageKind::Page, now), now);
    assert_eq!((policy.next(now), policy.end(now)), (None, Some(CrawlEnd::Interrupted)));
}

#[test]
fn limits_end_the_crawl_when_nothing_is_in_flight() {
    for (limits, end) in [
        (PolicyConfig { limit: Some(2), ..config() }, CrawlEnd::Done),
        (PolicyConfig { size_limit: Some(1000), ..config() }, CrawlEnd::SizeLimit),
    ] {
        let mut policy = policy(limits, VisitOrder::Once { started: start() }, BudgetTable::default());
        (1..=9).for_each(|page| policy.add_new_page(&new_page(page, PageKind::Page)));
        let visits =
            drive(&mut policy, start() + Span::from_hours(1), |page, now| found(page, PageKind::Page, now));
        assert_eq!((visits.len(), policy.end(start())), (2, Some(end)));
        assert!(end == CrawlEnd::SizeLimit || !policy.is_pass_complete());
    }
    let timed = PolicyConfig { time_limit: Some(Span::from_hours(5)), ..config() };
    let mut policy = scheduled(timed, ScheduleConfig::default(), BudgetTable::default());
    policy.add_new_page(&new_page(1, PageKind::Page));
    drive(&mut policy, start() + Span::from_hours(99), |page, now| found(page, PageKind::Page, now));
    assert_eq!(policy.end(start() + Span::from_hours(5)), Some(CrawlEnd::TimeLimit));
}

/// A page whose subresources are on a different host. `first` is the response to the first of them.
fn settle_with_subresources(
    policy: &mut Policy,
    response: impl Fn(PageId, Timestamp) -> VisitRecord,
) -> Vec<PageId> {
    const OTHER: SiteId = SiteId(2);
    let now = start();
    policy.add_new_page(&new_page(1, PageKind::Page));
    let page = start_next(policy, PageKind::Page, now).unwrap();
    let subresources =
        (10..15).map(|n| NewPage { site: OTHER, ..new_page(n, PageKind::Subresource) }).collect();
    let mut ready = policy
        .finish_visit(&VisitRecord { new_pages: subresources, ..found(page, PageKind::Page, now) }, now);
    assert!(ready.is_empty(), "it waits for its subresources");
    let subresource = start_next(policy, PageKind::Subresource, now).unwrap();
    let target = VisitTarget { site: OTHER, ..target(subresource, PageKind::Subresource) };
    ready.extend(policy.finish_visit(&VisitRecord { target, ..response(subresource, now) }, now));
    ready
}

/// 429 with a Retry-After that exceeds the longest wait of a pass.
fn sent_away(page: PageId, at: Timestamp) -> VisitRecord {
    let host = HostState { ready_at: at + Span::from_hours(20), n_troubles: 1 };
    VisitRecord { host, ..failed(page, 1, at) }
}

#[test]
fn a_page_does_not_wait_for_a_host_that_sends_us_away_for_long() {
    let mut policy = once();
    assert_eq!(settle_with_subresources(&mut policy, sent_away), [PageId(1)]);
    policy.finish_analysis(PageId(1), None, Vec::new());
    assert_eq!(policy.end(start()), Some(CrawlEnd::Done));
    // The host is known now, so the next page does not wait for it.
    policy.add_new_page(&new_page(2, PageKind::Page));
    let page = start_next(&mut policy, PageKind::Page, start()).unwrap();
    let subresource = NewPage { site: SiteId(2), ..new_page(20, PageKind::Subresource) };
    let record = VisitRecord { new_pages: vec![subresource], ..found(page, PageKind::Page, start()) };
    assert_eq!(policy.finish_visit(&record, start()), [PageId(2)]);
    policy.finish_analysis(PageId(2), None, Vec::new());
    assert_eq!(policy.end(start()), Some(CrawlEnd::Done));
}

#[test]
fn a_scheduled_crawl_does_not_wait_for_such_a_host_either() {
    let mut policy = scheduled(config(), ScheduleConfig::default(), BudgetTable::default());
    assert_eq!(settle_with_subresources(&mut policy, sent_away), [PageId(1)]);
}

#[test]
fn visits_of_the_future_are_none_of_this_pass() {
    let mut policy = once();
    let known = |page: u32, visited: Timestamp| FrontierPage {
        page: PageId(page),
        site: SITE,
        url: format!("http://a.example/{page}"),
        kind: PageKind::Page,
        seed: SEED,
        depth: 0,
        visited: Some(visited),
        ending: Some(VisitEnding::Changed),
        n_failures: 0,
    };
    policy.load(&known(1, start()));
    assert_eq!(policy.n_waiting(), 0, "visited in this pass");
    policy.load(&known(2, start() + Span::from_hours(72)));
    assert_eq!(policy.n_waiting(), 1);
}

#[test]
fn large_documents_do_not_hold_up_other_visits() {
    let mut policy = once();
    (0..200).for_each(|page| policy.add_new_page(&new_page(page, PageKind::Page)));
    let mut n_visits = 0;
    while let Some(page) = start_next(&mut policy, PageKind::Page, start()) {
        n_visits += 1;
        let mut record = found(page, PageKind::Page, start());
        record.response.as_mut().unwrap().is_large = n_visits <= 100;
        assert_eq!(policy.finish_visit(&record, start()), [page]);
    }
    assert_eq!(n_visits, 100 + MAX_ANALYSING);
    assert!(policy.is_large(PageId(0)) && !policy.is_large(PageId(150)));
    (100..200).for_each(|page| policy.finish_analysis(PageId(page), None, Vec::new()));
    policy.config.time_limit = Some(Span::from_secs(60));
    assert_eq!(policy.end(start()), None, "a pass waits for them");
    assert_eq!(policy.end(start() + Span::from_secs(60)), Some(CrawlEnd::TimeLimit), "a time limit does not");
}

/// A waiting crawl reports the next page.
#[test]
fn the_next_visit_is_known_while_nothing_is_to_be_done() {
    let schedule = ScheduleConfig { budget: Some(Budget::per_hour(2.0)), ..ScheduleConfig::default() };
    let mut policy = scheduled(config(), schedule, BudgetTable::default());
    assert_eq!(once().next_visit(start()), None);
    (1..=4).for_each(|page| policy.add_new_page(&new_page(page, PageKind::Page)));
    let mut visited = 0;
    for minute in 0..180 {
        let now = start() + Span::from_secs(60 * minute);
        let awaited = policy.next_visit(now).filter(|_| policy.n_waiting() == 0);
        let awaited = awaited.map(|(at, ranked)| (at, ranked.page));
        let Some(page) = start_next(&mut policy, PageKind::Page, now) else { continue };
        if let Some((at, expected)) = awaited {
            assert_eq!((page, at <= now), (expected, true), "at {now}");
            visited += 1;
        }
        policy.finish_visit(&found(page, PageKind::Page, now), now);
        policy.finish_analysis(page, Some(VisitOutcome::Unchanged), Vec::new());
    }
    assert!(visited >= 4, "{visited} visits were foreseen");
}

/// A feed is polled on its own schedule. Pages of changed items are visited with the item's title as the reason.
#[test]
fn an_item_of_a_feed_makes_its_page_urgent_and_names_it() {
    let hour = Span::from_hours(1);
    let schedule = ScheduleConfig { budget: Some(Budget::per_hour(2.0)), ..ScheduleConfig::default() };
    let mut policy =
        scheduled(PolicyConfig { is_analysing: false, ..config() }, schedule, BudgetTable::default());
    let mut now = start();
    policy.add_new_page(&new_page(1, PageKind::Page));
    policy.add_new_page(&new_page(2, PageKind::Feed));
    let next_pages = |policy: &mut Policy, now: Timestamp| -> Vec<PageId> {
        std::iter::from_fn(|| {
            let (page, why) = policy.next(now)?;
            let kind = if page == PageId(2) { PageKind::Feed } else { PageKind::Page };
            assert_eq!(why == QueueReason::Feed, kind == PageKind::Feed);
            assert!(policy.admit(&target(page, kind), why, now));
            let poll = (kind == PageKind::Feed).then(FeedPoll::default);
            policy.finish_visit(&VisitRecord { poll, ..found(page, kind, now) }, now);
            Some(page)
        })
        .collect()
    };
    let mut first = next_pages(&mut policy, now);
    first.sort_unstable();
    assert_eq!(first, [PageId(1), PageId(2)]);
    assert_eq!(policy.visit_cause(PageId(1)), None);
    now = now + hour + hour + hour;
    let changed = NewPage {
        changed: Some(now),
        item: Some("Two dead".into()),
        is_new: false,
        ..new_page(1, PageKind::Page)
    };
    let poll = VisitRecord {
        new_pages: vec![changed],
        poll: Some(FeedPoll::default()),
        ..found(PageId(2), PageKind::Feed, now)
    };
    policy.finish_visit(&poll, now);
    assert_eq!(policy.visit_cause(PageId(1)), Some("Two dead"));
    assert!(next_pages(&mut policy, now + hour).contains(&PageId(1)));
    assert_eq!(policy.visit_cause(PageId(1)), None, "it was visited");
}

#[test]
fn a_page_with_an_interval_is_visited_again_in_time_on_a_failing_host() {
    let mut policy = scheduled(config(), ScheduleConfig::default(), BudgetTable::default());
    let every = Some(Every { interval: Span::from_secs(300), hours: None });
    policy.scheduler_mut().unwrap().add_page(PageId(1), PageInfo { every, ..PageInfo::for_site(SITE) });
    let (mut now, mut visits) = (start(), Vec::new());
    while visits.len() < 40 {
        while let Some(page) = start_next(&mut policy, PageKind::Page, now) {
            visits.push(now);
            // The host's own backoff has grown to a day.
            let host = HostState { ready_at: now + Span::from_hours(24), n_troubles: visits.len() as u16 };
            let mut record = VisitRecord { host, ..failed(page, visits.len() as u16, now) };
            policy.shorten_backoff(&mut record);
            policy.finish_visit(&record, now);
        }
        now = policy.wakeup().unwrap().max(now + Span::from_millis(1));
    }
    assert!(visits.windows(2).all(|pair| pair[1] - pair[0] <= Span::from_secs(300)), "{visits:?}");
}
