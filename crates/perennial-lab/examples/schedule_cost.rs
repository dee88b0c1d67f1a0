//! Many pages and a budget -> what the scheduler costs: start-up, time per event, longest call, memory per page.
//!
//! cargo run --release -p perennial-core --example schedule_cost -- PAGES VISITS_PER_HOUR HOURS [GOAL]
//!
//! An event is a visit that was chosen, or an outcome that was recorded. experiments/paper-world has results.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use perennial_core::page::importance::Importance;
use perennial_core::rng::mix;
use perennial_core::schedule::{Budget, Goal, PageInfo, ScheduleConfig, Scheduler, VisitOutcome};
use perennial_core::time::{Span, Timestamp};
use perennial_core::url::{PageId, SiteId};

struct Counting;

static N_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        N_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        N_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn start() -> Timestamp {
    Timestamp::from_secs(1_772_000_000 / 3600 * 3600)
}

/// The version of a page: most pages change every few days, some every hour.
fn version(page: u32, at: Timestamp) -> i64 {
    let hours = [1, 6, 24, 24, 72, 72, 168, 168, 700, 700][mix(u64::from(page)) as usize % 10];
    (at.as_secs() + (mix(u64::from(page)) >> 40) as i64) / (3600 * hours)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize, or: f64| args.get(nth).map_or(or, |text| text.parse().expect("a number"));
    let (n_pages, per_hour, hours) = (number(0, 1e6) as u32, number(1, 36_000.0), number(2, 3.0));
    let goal: Goal = args.get(3).map_or(Goal::Balanced, |text| text.parse().expect("a goal"));
    let is_even = args.get(4).is_some_and(|text| text == "even");
    let per_site = number(5, 1000.0) as u32;
    let budget = match is_even {
        true => Budget::per_hour(per_hour),
        false => Budget { visits: 24.0 * per_hour, period: Span::from_hours(24) },
    };
    let config = ScheduleConfig { goal, budget: Some(budget), ..ScheduleConfig::default() };
    let before = N_BYTES.load(Ordering::Relaxed);
    let mut scheduler = Scheduler::new(config, 1, start());
    let mut seen: Vec<Timestamp> = Vec::with_capacity(n_pages as usize);
    let started = Instant::now();
    for page in 0..n_pages {
        let word = mix(u64::from(page));
        let weight = 1.0 + (word % 1000) as f32 / 100.0;
        let group = u64::from(page / per_site) * 8 + word % 8;
        let info = PageInfo { weight, group, ..PageInfo::for_site(SiteId(page / per_site)) };
        seen.push(start() - Span::from_secs((word >> 20) as i64 % 86_400));
        scheduler.add_seen_page(PageId(page), info, seen[page as usize]);
    }
    scheduler.learn_now(start());
    let _ = scheduler.next_visit(start());
    println!("start-up: {:.2} s", started.elapsed().as_secs_f64());

    let (mut now, end) = (start(), start() + Span::from_millis((hours * 3.6e6) as i64));
    let (mut n_events, mut n_changed, mut n_calls) = (0u64, 0u64, 0u64);
    let (mut total, mut longest) = (Duration::ZERO, Duration::ZERO);
    let mut reported = start();
    while now < end {
        let at = Instant::now();
        let visit = scheduler.next_visit(now);
        let Some(visit) = visit else {
            let next = scheduler.next_wakeup().expect("there are pages");
            let took = at.elapsed();
            (total, longest, n_calls) = (total + took, longest.max(took), n_calls + 1);
            assert!(next > now, "a wakeup in the past");
            now = next;
            if now - reported >= Span::from_hours(1) {
                reported = now;
                println!(
                    "{} h: {n_events} events, {n_calls} idle calls, {:.2} us an event, longest call {:.1} ms, {:.1} bytes a page",
                    (now - start()).as_hours_f64() as u32,
                    total.as_secs_f64() * 1e6 / n_events.max(1) as f64,
                    longest.as_secs_f64() * 1e3,
                    (N_BYTES.load(Ordering::Relaxed) - before - 8 * n_pages as usize) as f64
                        / f64::from(n_pages),
                );
            }
            continue;
        };
        let page = visit.page;
        let has_changed = version(page.0, seen[page.0 as usize]) != version(page.0, now);
        let outcome = match has_changed {
            true => VisitOutcome::Changed(Importance::new(
                0.05 + (mix(u64::from(page.0) ^ 7) % 90) as f64 / 100.0,
            )),
            false => VisitOutcome::Unchanged,
        };
        seen[page.0 as usize] = now;
        scheduler.record(page, outcome, now);
        let took = at.elapsed();
        (total, longest) = (total + took, longest.max(took));
        n_changed += u64::from(has_changed);
        n_events += 2;
    }
    println!("{:.1} % of the visits found a change", 200.0 * n_changed as f64 / n_events.max(1) as f64);
}
