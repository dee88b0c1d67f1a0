//! Measures a strategy in several stretches of traces, because a gain in one stretch may be chance.
//!
//! `cargo run --release -p perennial-lab --example stretches -- FILE... [--goal NAME] [--budget 5,10] [--strategy
//! NAME,...] [--from 0] [--n 10] [--step-days 14] [--days 70] [--burn-in 14] [--floor SHARE] [--spells false]
//! [--calendar false] [--vary] [--daily] [--known] [--each] [--slot 60]`

use std::collections::HashMap;
use std::error::Error;

use perennial_core::schedule::Goal;
use perennial_core::time::{LocalClock, Span};
use perennial_lab::drive::Visibility;
use perennial_lab::experiment::{Experiment, StrategyRun};
use perennial_lab::strategy::SimulatedStrategy;
use perennial_lab::trace::{self, TraceStart};
use perennial_lab::world::World;

/// The arguments of the command line: files, and options with their values.
struct Arguments {
    files: Vec<String>,
    options: HashMap<String, String>,
}

impl Arguments {
    fn read() -> Arguments {
        let mut arguments = Arguments { files: Vec::new(), options: HashMap::new() };
        let mut args = std::env::args().skip(1).peekable();
        while let Some(arg) = args.next() {
            match arg.strip_prefix("--") {
                None => arguments.files.push(arg),
                Some(name) => {
                    let value = args.next_if(|next| {
                        !next.starts_with("--")
                            && !matches!(name, "vary" | "daily" | "known" | "each" | "no-bounds")
                    });
                    arguments.options.insert(name.to_owned(), value.unwrap_or_default());
                }
            }
        }
        arguments
    }

    fn number(&self, name: &str, otherwise: f64) -> Result<f64, Box<dyn Error>> {
        Ok(self.options.get(name).map_or(Ok(otherwise), |text| text.parse())?)
    }

    fn experiment(&self) -> Result<Experiment, Box<dyn Error>> {
        let learned = !self.options.contains_key("known");
        let names = self.options.get("strategy").map_or("expected-gain", String::as_str);
        let run = |name: &str| {
            Ok::<StrategyRun, Box<dyn Error>>(StrategyRun {
                strategy: name.parse::<SimulatedStrategy>()?,
                learned,
            })
        };
        let budgets = self.options.get("budget").map_or("5,10,20,30", String::as_str);
        Ok(Experiment {
            runs: names.split(',').map(run).collect::<Result<_, _>>()?,
            budgets: budgets
                .split(',')
                .map(|m| Ok::<f64, Box<dyn Error>>(m.parse::<f64>()? / 100.0))
                .collect::<Result<_, _>>()?,
            slot: Span::from_secs((60.0 * self.number("slot", 60.0)?) as i64),
            period: Span::from_hours(if self.options.contains_key("daily") { 24 } else { 1 }),
            burn_in: Span::from_hours(24 * self.number("burn-in", 14.0)? as i64),
            goal: self.options.get("goal").map_or(Ok(Goal::default()), |name| name.parse())?,
            visibility: Visibility::Difference,
            varying_budget: self.options.contains_key("vary"),
            spells: self.options.get("spells").map(|text| text != "false"),
            calendar: self.options.get("calendar").map(|text| text != "false"),
            floor: self.options.get("floor").map(|text| text.parse()).transpose()?,
            clock: LocalClock::from_zone(self.options.get("zone").map_or("UTC", String::as_str))?,
            bounds: !self.options.contains_key("no-bounds"),
            ..Experiment::default()
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::read();
    let experiment = arguments.experiment()?;
    let worlds: Vec<World> = arguments.files.iter().map(|file| read(file)).collect::<Result<_, _>>()?;
    let first = worlds.first().ok_or("name a trace file")?.start;
    // Stretches begin at midnight, as in `perennial lab simulate`.
    let first = first - Span::from_secs(first.as_secs().rem_euclid(86_400));
    let days = (arguments.number("burn-in", 14.0)? + arguments.number("days", 70.0)?) as u32;
    let without = arguments.options.get("without");
    let mut sums: HashMap<(String, String), [f64; 5]> = HashMap::new();
    let (from, until) = (arguments.number("from", 0.0)? as i64, arguments.number("n", 10.0)? as i64);
    let n = (until - from).max(1);
    for stretch in from..until {
        let start = first + Span::from_hours(24 * stretch * arguments.number("step-days", 14.0)? as i64);
        let start = if worlds.len() == 1 { TraceStart::At(start) } else { TraceStart::Auto };
        let mut world = trace::combine_worlds("stretch", &worlds, days, start);
        if let Some(site) = without {
            world.pages.retain(|page| !page.name.contains(site.as_str()));
        }
        for line in experiment.run(&world, 1, || {}) {
            for result in &line.results {
                let key = (format!("{:5.1} %", 100.0 * line.budget), result.strategy.clone());
                let measures = [
                    result.completeness_pooled,
                    result.completeness_weighted,
                    result.completeness_count,
                    result.coherence_weighted,
                    result.share_of_clairvoyant.unwrap_or(f64::NAN),
                ];
                if arguments.options.contains_key("each") {
                    println!("{stretch} {} {:20} {}", key.0, key.1, words(&measures));
                }
                let sum = sums.entry(key).or_default();
                sum.iter_mut().zip(measures).for_each(|(sum, measure)| *sum += measure / n as f64);
            }
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| a.0.cmp(&b.0));
    println!("{:30} pooled   5.13  count coherence of clairvoyant", "");
    for ((budget, strategy), measures) in sums {
        println!("{budget} {strategy:20} {}", words(&measures));
    }
    Ok(())
}

fn words(measures: &[f64; 5]) -> String {
    measures.iter().map(|measure| format!(" {measure:6.3}")).collect()
}

fn read(file: &str) -> Result<World, Box<dyn Error>> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("reading {file}: {error}"))?;
    Ok(trace::parse(file, &text)?)
}
