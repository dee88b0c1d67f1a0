//! Measures pages that follow days of the week, of the month and holidays, with and without a calendar: pooled
//! completeness, Definition 5.13 and visits per page and day.
//!
//! `cargo run --release -p perennial-lab --example calendar [-- --budget 5,10] [--goal importance] [--seed 1] [--vary]`

use std::error::Error;
use std::sync::Arc;

use perennial_core::schedule::Goal;
use perennial_core::time::Span;
use perennial_lab::calendar::{CalendarWorld, PageCycle};
use perennial_lab::drive::Visibility;
use perennial_lab::experiment::{Experiment, StrategyRun};
use perennial_lab::quality::{PageRecord, completeness, page_completeness};
use perennial_lab::strategy::SimulatedStrategy;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let seed = option("--seed").map_or(Ok(1), |text| text.parse())?;
    let (world, kinds) = CalendarWorld { seed, ..CalendarWorld::default() }.build();
    let run = StrategyRun { strategy: SimulatedStrategy::EXPECTED_GAIN, learned: true };
    println!("{:>24} {}", "", PageCycle::ALL.map(|kind| format!("{:>18}", kind.name())).join(" "));
    for budget in option("--budget").map_or("2,5,10", String::as_str).split(',') {
        let budget = budget.parse::<f64>()? / 100.0;
        for calendar in [false, true] {
            let experiment = Experiment {
                goal: option("--goal").map_or(Ok(Goal::Importance), |name| name.parse())?,
                calendar: Some(calendar),
                burn_in: Span::from_hours(24 * 182),
                visibility: Visibility::Difference,
                varying_budget: args.iter().any(|arg| arg == "--vary"),
                ..Experiment::default()
            };
            let crawl = experiment.crawl(&world, &Arc::new(Vec::new()), budget, run);
            let window = experiment.window(&world);
            let caught = PageCycle::ALL.map(|wanted| {
                let pages = world.pages.iter().zip(&crawl.captures).zip(&kinds);
                let of_kind = pages.filter(|(_, kind)| **kind == wanted).map(|((page, captures), _)| {
                    let (site, weight) = (page.site, page.weight);
                    let record = PageRecord { site, weight, changes: &page.changes, captures };
                    (site, weight, page_completeness(&record, window))
                });
                let found = completeness(of_kind);
                let visits = crawl.captures.iter().zip(&kinds).filter(|(_, kind)| **kind == wanted);
                let n_visits: Vec<usize> = visits
                    .map(|(visits, _)| visits.iter().filter(|at| window.contains(**at)).count())
                    .collect();
                let days = (window.until - window.from).as_hours_f64() / 24.0;
                let a_day = n_visits.iter().sum::<usize>() as f64 / n_visits.len() as f64 / days;
                format!("{:.3} / {:.3} {a_day:4.1}", found.pooled, found.weighted)
            });
            let with = if calendar { "with" } else { "without" };
            println!("{:4.0} % {with:>8} calendar  {}", 100.0 * budget, caught.join(" "));
        }
    }
    Ok(())
}
