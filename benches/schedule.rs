//! Millions of pages -> the time of visits, learning and PageRank on one core.
//!
//! cargo bench -p perennial-core --bench schedule
//!
//! experiments/paper-world contains the results.

use divan::{Bencher, black_box};
use perennial_core::page::importance::Importance;
use perennial_core::rng::mix;
use perennial_core::schedule::rank::LinkGraph;
use perennial_core::schedule::{Budget, Goal, PageInfo, ScheduleConfig, Scheduler, VisitOutcome};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::{PageId, SiteId};

fn main() {
    divan::main();
}

fn start() -> Timestamp {
    Timestamp::from_secs(1_772_000_000 / 3600 * 3600)
}

/// Pages that were all observed in the previous day, each at a different time.
fn scheduler_of(n_pages: u32, per_hour: f64) -> Scheduler {
    scheduler_for(Goal::Balanced, None, n_pages, per_hour)
}

fn scheduler_for(goal: Goal, evidence_bytes: Option<usize>, n_pages: u32, per_hour: f64) -> Scheduler {
    let budget = Some(Budget::per_hour(per_hour));
    let config = ScheduleConfig { budget, goal, evidence_bytes, ..ScheduleConfig::default() };
    let mut scheduler = Scheduler::new(config, 1, start());
    for page in 0..n_pages {
        let word = mix(u64::from(page));
        let weight = 1.0 + (word % 1000) as f32 / 100.0;
        let info = PageInfo { weight, group: word % 500, ..PageInfo::for_site(SiteId(page % 1000)) };
        let seen = start() - Span::from_secs((word >> 20) as i64 % 86_400);
        scheduler.add_seen_page(PageId(page), info, seen);
    }
    scheduler
}

/// An hour of a crawl that visits a thousandth of its pages in it. `schedule_cost` of perennial-lab has the details.
#[divan::bench(args = [1_000_000, 10_000_000], sample_count = 10, sample_size = 1)]
fn an_hour_of_visits(bencher: Bencher<'_, '_>, n_pages: u32) {
    let mut scheduler = scheduler_of(n_pages, f64::from(n_pages) / 1000.0);
    // As many pages have a history as the memory for histories allows.
    for page in (0..n_pages).step_by(10) {
        scheduler.record(PageId(page), VisitOutcome::Unchanged, start());
    }
    scheduler.learn_now(start());
    let mut now = start();
    assert!(scheduler.bytes_per_page() < 132.0, "{} bytes a page", scheduler.bytes_per_page());
    bencher.bench_local(|| {
        let end = now + Span::from_hours(1);
        while now < end {
            match scheduler.next_visit(now) {
                Some(visit) => scheduler.record(visit.page, VisitOutcome::Unchanged, now),
                None => now = scheduler.next_wakeup().expect("there are pages"),
            }
        }
    });
}

/// The outcomes of a million visits: a hundred visits of each of ten thousand pages, all with a history.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn learn_million_visits(bencher: Bencher<'_, '_>) {
    let scheduler = || scheduler_for(Goal::Balanced, Some(64 << 20), 10_000, 1.0);
    bencher.with_inputs(scheduler).bench_local_values(|mut scheduler| {
        for round in 0..100i64 {
            for page in 0..10_000u32 {
                let word = mix(u64::from(page) << 8 | round as u64);
                let now = start() + Span::from_secs(round * 7 * 3600 + (word % 10_000) as i64);
                let outcome = match word >> 20 & 3 {
                    0 => VisitOutcome::Changed(Importance::new((word >> 24) as f64 % 100.0 / 100.0)),
                    _ => VisitOutcome::Unchanged,
                };
                scheduler.record(PageId(page), outcome, now);
            }
        }
        scheduler
    });
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn page_rank_million_pages(bencher: Bencher<'_, '_>) {
    let n = 1_000_000u64;
    let links = (0..10 * n).map(|at| ((at / 10) as u32, (mix(at) % n) as u32));
    let graph = LinkGraph::from_links(n as usize, links);
    bencher.bench_local(|| black_box(graph.page_rank(&[])));
}
