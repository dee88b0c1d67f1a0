//! `perennial schedule`: the archive's looks -> the most urgent pages, with the reason of each.

use std::io::{self, Write};

use perennial_core::amounts::parse_budget;
use perennial_core::schedule::{Budget, Peak, Ranked, Reason, ScheduleConfig, Scheduler, Strategy};
use perennial_core::time::{DayKind, LocalClock, Span, Timestamp};
use serde::Serialize;

use super::{Context, Exit, parse_time};
use crate::archive::now;
use crate::learn::{self, Followed};
use crate::store::{LookOrder, Selection, Store};

/// Shows the most urgent pages and the reason of each.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  perennial schedule\n  perennial schedule --at 2026-11-16T09:00:00Z --top 50\n  \
    perennial schedule --budget 5000/1d --what-if\n  perennial schedule --strategy importance-pattern --json"
)]
pub(super) struct Schedule {
    /// Instant of the ranking, which uses only captures before it [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,

    /// How many pages to show
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,

    /// Visits in a period, such as 200/1h; a number alone is visits an hour [default: the archive's mean so far]
    #[arg(long, value_name = "N/PERIOD", value_parser = |text: &str| parse_budget(text, Span::from_hours(1)))]
    budget: Option<Budget>,

    /// Strategy that ranks the pages
    #[arg(long, default_value_t = Strategy::ExpectedGain, value_name = "NAME")]
    strategy: Strategy,

    /// Compare half the budget, the budget and twice the budget instead
    #[arg(long)]
    what_if: bool,
}

#[derive(Serialize)]
struct UrgentPage {
    url: String,
    urgency: f32,
    expected_importance: f64,
    expected_changes: f32,
    changes_per_day: f32,
    n_visits: u32,
    planned: bool,
    reason: String,
}

#[derive(Serialize)]
struct WhatIf {
    budget_per_hour: f64,
    n_visits: usize,
    expected_importance: f64,
    /// Hours since the last visit of the most recently visited page among those that the budget allows.
    shortest_wait_hours: Option<f64>,
}

impl Schedule {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let followed = Followed::of(archive, store)?;
        let at = self.at.unwrap_or_else(now);
        let budget = match self.budget {
            Some(budget) => budget,
            None => Budget::per_hour(looks_per_hour(store, at)?),
        };
        let config =
            ScheduleConfig { strategy: self.strategy, budget: Some(budget), ..ScheduleConfig::default() };
        let scheduler = learn::scheduler(store, &followed, config, 0, at)?;
        if self.what_if {
            let report = [0.5, 1.0, 2.0].map(|factor| what_if(&scheduler, times(budget, factor), at));
            context.print(&report, |out| report.iter().try_for_each(|line| print_what_if(line, out)))?;
            return Ok(Exit::Done);
        }
        let ranking = scheduler.ranking(at, self.top);
        let entries: Vec<UrgentPage> = ranking
            .iter()
            .map(|ranked| Ok(entry(ranked, store.url_of(ranked.page)?, &followed)))
            .collect::<anyhow::Result<_>>()?;
        context.print(&entries, |out| entries.iter().try_for_each(|entry| print_entry(entry, out)))?;
        Ok(Exit::Done)
    }
}

/// The pace of the archive so far, at least one visit an hour.
fn looks_per_hour(store: &Store, at: Timestamp) -> anyhow::Result<f64> {
    let (mut n_looks, mut first) = (0u64, at);
    store.looks(Selection::Pages, LookOrder::ByTime, at, |look| {
        n_looks += 1;
        first = first.min(look.time);
        Ok(())
    })?;
    Ok((n_looks as f64 / (at - first).as_hours_f64().max(1.0)).max(1.0))
}

fn times(budget: Budget, factor: f64) -> Budget {
    Budget { visits: budget.visits * factor, ..budget }
}

fn what_if(scheduler: &Scheduler, budget: Budget, at: Timestamp) -> WhatIf {
    let mut scheduler = scheduler.clone();
    scheduler.set_budget(Some(budget));
    let n_pages = scheduler.n_pages();
    let planned: Vec<Ranked> = scheduler.ranking(at, n_pages).into_iter().filter(|r| r.is_planned).collect();
    let waits = planned.iter().filter_map(|ranked| match ranked.reason {
        Reason::Urgent { since, .. } | Reason::Oldest { since } => Some((at - since).as_hours_f64()),
        _ => None,
    });
    WhatIf {
        budget_per_hour: budget.visits_in(Span::from_hours(1)),
        n_visits: planned.len(),
        // A sum of no floats would be -0.
        expected_importance: planned.iter().fold(0.0, |sum, ranked| sum + ranked.expected.get()),
        shortest_wait_hours: waits.min_by(f64::total_cmp),
    }
}

fn entry(ranked: &Ranked, url: String, followed: &Followed) -> UrgentPage {
    UrgentPage {
        urgency: ranked.urgency,
        expected_importance: ranked.expected.get(),
        expected_changes: ranked.n_expected,
        changes_per_day: ranked.changes_per_day,
        n_visits: ranked.n_visits,
        planned: ranked.is_planned,
        reason: in_words(ranked, followed.clock_of(&url)),
        url,
    }
}

/// The reason as a sentence, in the site's own time.
fn in_words(ranked: &Ranked, clock: Option<&LocalClock>) -> String {
    let local = |at: Timestamp| in_local_words(at, clock);
    let habit =
        ranked.peak.map(|peak| format!(", usually updates {}", hours_in_words(peak))).unwrap_or_default();
    match ranked.reason {
        Reason::FirstCapture => "never captured".to_owned(),
        Reason::Announced => "announced as changed".to_owned(),
        Reason::Probe => "there was no page here, to be looked at again".into(),
        Reason::Retry { n_failures } => format!("failed {n_failures} times, to be tried again"),
        Reason::Oldest { since } => format!("not seen since {}, longer than any other", local(since)),
        Reason::Urgent { since, .. } => {
            format!("expected {:.2} important change since {}{habit}", ranked.expected.get(), local(since))
        }
    }
}

/// An instant on the site's clock, with the zone's name where it is not UTC.
fn in_local_words(at: Timestamp, clock: Option<&LocalClock>) -> String {
    let Some(clock) = clock else { return at.to_string() };
    let local = clock.local(at);
    let minutes = local.millis_of_day / 60_000;
    format!("{} {:02}:{:02} {}", local.day.to_date(), minutes / 60, minutes % 60, clock.zone())
}

fn hours_in_words(peak: Peak) -> String {
    let days = if peak.kind == DayKind::Workday { "workdays" } else { "weekends" };
    format!("{:.0}-{:.0}h on {days}", peak.from_hour, peak.to_hour)
}

fn print_entry(entry: &UrgentPage, out: &mut dyn Write) -> io::Result<()> {
    let mark = if entry.planned { '*' } else { ' ' };
    writeln!(out, "{mark} {:>9.4}  {}\n             {}", entry.urgency, entry.url, entry.reason)
}

fn print_what_if(line: &WhatIf, out: &mut dyn Write) -> io::Result<()> {
    let wait = line.shortest_wait_hours.map_or_else(|| "-".to_owned(), |hours| format!("{hours:.1} h"));
    writeln!(
        out,
        "{:>8.1} visits an hour: {} now, {:.2} importance expected, shortest time since the last visit {wait}",
        line.budget_per_hour, line.n_visits, line.expected_importance
    )
}
