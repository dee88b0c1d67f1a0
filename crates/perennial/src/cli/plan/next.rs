//! `perennial plan next`: the archive's observations -> the next visits, with the reason for each.

use std::io::{self, Write};

use anyhow::bail;
use perennial_core::schedule::units::parse_budget;
use perennial_core::schedule::{Budget, Goal, Reason, Scheduler, Strategy, local_minute};
use perennial_core::time::{Span, Timestamp};
use serde::Serialize;

use crate::cli::{Context, Exit, parse_time};
use perennial_archive::now;
use perennial_engine::learn::{
    AHEAD, ENOUGH_VISITS, FAR_AHEAD, NextVisit, PlannedBudget, PlannedCrawl, VisitDescriber, VisitPlan,
    published_plan, with_published,
};

/// Number of URLs without a page in the list; all are counted.
const MOST_PROBES: usize = 10;

const AFTER_HELP: &str = "\
Politeness, slow hosts, budgets of sites and new discoveries may delay a visit. \"change\" is the probability that the page has changed \
by then, \"importance\" the importance that the visit is expected to find, from 0 to 1; both are unknown before ten visits. URLs without a page (dead links, redirects, \
vanished pages) are probed with 2 % of the budget and listed separately. Unchanging directories are skipped, except by 1 % of the \
budget.

--what-if counts the visits of the next 24 hours (30 days if there is less than one per day), and sums up the importance that they are \
expected to find.

Examples:
  perennial plan next
  perennial plan next --at 2026-11-16T09:00:00Z --top 50
  perennial plan next --budget 5000/1d --what-if
  perennial plan next --visits 50 --json
  perennial plan next --strategy fixed-interval --json";

/// Show the next visits, with the reason for each.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct NextArgs {
    /// Start of the plan, which uses earlier captures only [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,

    /// Show the next visit of N pages
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,

    /// Limit of visits, such as 200/1h; without a period per hour [default: that of the crawl, else of perennial.toml, else the archive's mean]
    #[arg(long, value_name = "N/PERIOD", value_parser = |text: &str| parse_budget(text, Span::from_hours(1)))]
    budget: Option<Budget>,

    /// Strategy that ranks the pages [default: that of the running crawl, else expected-gain]
    #[arg(long, value_name = "NAME")]
    strategy: Option<Strategy>,

    /// Show the next N visits in order, repeated visits of a page included
    #[arg(long, value_name = "N", conflicts_with_all = ["top", "what_if"])]
    visits: Option<usize>,

    /// Optimise for balanced, importance, every-page, coherent or count [default: goals in perennial.toml]
    #[arg(long, value_name = "GOAL")]
    goal: Option<Goal>,

    /// Compare half the budget, the budget and twice the budget
    #[arg(long)]
    what_if: bool,
}

#[derive(Serialize)]
struct WhatIf {
    budget_per_hour: f64,
    /// Length of the counted time.
    hours: f64,
    n_visits: usize,
    /// Visits of pages without a capture.
    n_first: usize,
    expected_importance: f64,
}

impl NextArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let snapshot = context.snapshot()?;
        let (archive, store) = (snapshot.archive(), snapshot.store());
        let at = self.at.unwrap_or_else(now);
        let mut planned = PlannedCrawl::load(archive, store, self.budget, at)?;
        self.choose(&mut planned);
        let scheduler = planned.scheduler(store, at)?;
        let PlannedCrawl { followed, pace, .. } = planned;
        if self.what_if {
            let Some(budget) = pace.budget else {
                bail!("--what-if: there is no budget to halve or double; use --budget N/PERIOD")
            };
            let report = what_if(&scheduler, budget, at)?;
            context.print(&report, |out| print_what_if(&report, &pace, out))?;
            return Ok(Exit::Done);
        }
        for site in followed.paused() {
            context.note(format_args!(
                "{site} is paused, so the plan does not visit it; use `perennial resume {site}`"
            ));
        }
        let described = VisitDescriber { store, followed: &followed };
        if let Some(n) = self.visits {
            let entries = described.next(&scheduler, at, n)?;
            context.print(&entries, |out| print_plan(&entries, 0, &pace, out))?;
            return Ok(Exit::Done);
        }
        let published = if self.is_about_the_crawl() { published_plan(archive, at) } else { Vec::new() };
        let plan = VisitPlan::new(&scheduler, at, self.top);
        let visits = plan.visits.iter().map(|(at, ranked)| described.entry(*at, ranked));
        let probes = plan.probes.iter().map(|(at, ranked)| described.entry(*at, ranked));
        let mut planned = with_published(published, visits.collect::<anyhow::Result<Vec<NextVisit>>>()?);
        planned.extend(described.polls(at)?);
        // Visits beyond the plan have no time and come last.
        planned.sort_by_key(|entry| (entry.at.is_none(), entry.at.clone()));
        planned.truncate(self.top);
        let probes = probes.collect::<anyhow::Result<Vec<NextVisit>>>()?;
        let entries: Vec<NextVisit> = planned.into_iter().chain(probes).collect();
        context.print(&entries, |out| print_plan(&entries, plan.n_probes, &pace, out))?;
        Ok(Exit::Done)
    }

    /// Whether the plan of the running crawl answers the question.
    fn is_about_the_crawl(&self) -> bool {
        let is_of_crawl = self.at.is_none() && self.budget.is_none() && self.goal.is_none();
        is_of_crawl && self.strategy.is_none()
    }

    /// Applies the given goal and strategy.
    fn choose(&self, planned: &mut PlannedCrawl) {
        if let Some(goal) = self.goal {
            planned.followed.forget_goals();
            planned.config.goal = goal;
        }
        if let Some(strategy) = self.strategy {
            planned.config.strategy = strategy;
            if strategy == Strategy::FixedInterval {
                planned.followed.forget_watch_interval();
            }
        }
    }
}

/// Half the budget, the budget and twice the budget.
fn what_if(scheduler: &Scheduler, budget: Budget, at: Timestamp) -> anyhow::Result<Vec<WhatIf>> {
    if scheduler.n_pages() == 0 {
        bail!("--what-if: no page is followed; use `perennial add URL`");
    }
    if scheduler.n_histories() == 0 {
        bail!(
            "--what-if: no page was observed twice, so nothing is known about changes; crawl for some days, or import earlier captures with \
             `perennial import`"
        );
    }
    let half = Budget { visits: budget.visits / 2.0, ..budget };
    let ahead = if half.visits_in(AHEAD) < 1.0 { FAR_AHEAD } else { AHEAD };
    let budgets = [0.5, 1.0, 2.0].map(|factor| Budget { visits: budget.visits * factor, ..budget });
    Ok(budgets.into_iter().map(|budget| expect_for_budget(scheduler, budget, at, ahead)).collect())
}

fn expect_for_budget(scheduler: &Scheduler, budget: Budget, at: Timestamp, ahead: Span) -> WhatIf {
    let mut scheduler = scheduler.clone();
    scheduler.set_budget(Some(budget));
    let mut estimate = WhatIf {
        budget_per_hour: budget.visits_in(Span::from_hours(1)),
        hours: ahead.as_hours_f64(),
        n_visits: 0,
        n_first: 0,
        expected_importance: 0.0,
    };
    scheduler.forecast(at, at + ahead, |_, ranked| {
        estimate.n_visits += 1;
        match ranked.reason {
            Reason::FirstCapture => estimate.n_first += 1,
            Reason::Probe => {}
            _ => estimate.expected_importance += ranked.expected.get(),
        }
        true
    });
    estimate
}

fn print_plan(
    entries: &[NextVisit],
    n_probes: usize,
    pace: &PlannedBudget,
    out: &mut dyn Write,
) -> io::Result<()> {
    if entries.is_empty() {
        return writeln!(
            out,
            "nothing to visit: no page is followed, or all sites are paused; use `perennial add URL` or `perennial resume SITE`"
        );
    }
    writeln!(out, "Next visits, times in UTC, with {}:\n", pace.describe())?;
    writeln!(out, "{:<16} {:>7} {:>11}  page and reason", "when", "change", "importance")?;
    for entry in entries.iter().filter(|entry| !entry.probe) {
        let probability = 100.0 * -(-f64::from(entry.expected_changes)).exp_m1();
        let (change, worth) = match entry.n_visits {
            _ if entry.feed => ("-".to_owned(), "-".to_owned()),
            n if n < ENOUGH_VISITS => ("-".to_owned(), "-".to_owned()),
            _ => (format!("{probability:.0} %"), format!("{:.3}", entry.expected_importance)),
        };
        writeln!(out, "{:<16} {change:>7} {worth:>11}  {}", when(entry, "later"), entry.url)?;
        writeln!(out, "{:38}{}", "", entry.reason)?;
    }
    if n_probes == 0 {
        return Ok(());
    }
    writeln!(out, "\nProbed from time to time, {n_probes} URLs without a page:\n")?;
    for entry in entries.iter().filter(|entry| entry.probe).take(MOST_PROBES) {
        writeln!(out, "{:<16} {}\n{:19}{}", when(entry, "some time"), entry.url, "", entry.reason)?;
    }
    match n_probes.saturating_sub(MOST_PROBES) {
        0 => Ok(()),
        n => writeln!(out, "... and {n} more"),
    }
}

/// The minute of a visit.
fn when(entry: &NextVisit, unknown: &str) -> String {
    let at = entry.at.as_deref().and_then(|at| Timestamp::parse(at).ok());
    at.map_or_else(|| unknown.to_owned(), |at| local_minute(at, None))
}

fn print_what_if(lines: &[WhatIf], pace: &PlannedBudget, out: &mut dyn Write) -> io::Result<()> {
    let hours = lines.first().map_or(0.0, |line| line.hours);
    writeln!(
        out,
        "The next {hours:.0} hours with 0.5, 1 and 2 times {}, if the pages keep their patterns:\n",
        pace.describe()
    )?;
    writeln!(
        out,
        "{:>16} {:>9} {:>15} {:>20}",
        "fetches per hour", "fetches", "first captures", "expected importance"
    )?;
    for line in lines {
        writeln!(
            out,
            "{:>16.1} {:>9} {:>15} {:>20.2}",
            line.budget_per_hour, line.n_visits, line.n_first, line.expected_importance
        )?;
    }
    Ok(())
}
