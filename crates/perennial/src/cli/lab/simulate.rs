//! `perennial lab simulate`: a world of changing pages -> the completeness and coherence of each strategy under a budget.
//!
//! docs/papers.md describes the papers' world and defines the measures.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use perennial_core::schedule::Goal;
use perennial_core::schedule::units::{UnitError, parse_share};
use perennial_core::time::{LocalClock, Span};
use perennial_lab::drive::Visibility;
use perennial_lab::experiment::{BudgetResult, Experiment, StrategyRun};
use perennial_lab::paper::PaperWorld;
use perennial_lab::strategy::SimulatedStrategy;
use perennial_lab::trace::{self, TraceStart};
use perennial_lab::world::World;

use crate::cli::{Context, Exit, parse_time};
use perennial_lab::report::{self, SimulationReport};

/// Compare strategies on a simulated or recorded web.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  perennial lab simulate
  perennial lab simulate --strategy expected-gain,importance-pattern --budget 10% --json
  perennial lab simulate --slot-minutes 15 --patterns both
  perennial lab simulate --trace fronts.tsv --zone Europe/Berlin --report out
  perennial lab simulate --trace fronts.tsv --frontier --budget 10% --report out
  perennial lab simulate --world my-changes.tsv --goal every-page
  perennial lab simulate --help-all       explain the other options

A trace is a file of lines `page<TAB>time<TAB>importance`, or a history of polled pages; docs/traces.md has both.")]
pub(super) struct Simulate {
    /// `paper` (the world of the papers' experiments) or a trace file
    #[arg(long, value_name = "paper|FILE", default_value = "paper")]
    world: String,

    /// Simulate observed changes; several files run side by side, shifted by whole weeks
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "world")]
    trace: Vec<PathBuf>,

    /// Start of a trace: auto, first, busiest or a time
    #[arg(long, hide = true, value_name = "WHERE", default_value = "auto", value_parser = parse_start)]
    trace_start: TraceStart,

    /// Move each change of a trace to a random time since the poll before, at most an hour earlier; polls at the same instant
    /// would overstate coherence
    #[arg(long, hide = true)]
    spread_polls: bool,

    /// `all`, or names separated by commas
    #[arg(long, value_name = "all|NAME,...", default_value = "all")]
    strategy: String,

    /// Fetches per hour, as shares of the number of pages [default: 5%,10%,20%,30%,50%]
    #[arg(long, value_name = "SHARE,...", value_delimiter = ',', value_parser = parse_share)]
    budget: Vec<f64>,

    /// Number of measured days [default: 28, for traces 70]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: Option<u32>,

    /// Number of days crawled before the measured ones [default: 7, for traces 14]
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=3650))]
    burn_in: Option<u32>,

    /// Periods per day in patterns; pages are ranked once per period, or as --slot-minutes says
    #[arg(long, hide = true, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=120))]
    periods: u16,

    /// Minutes between two rankings; a page is fetched at most once in that time
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1440))]
    slot_minutes: Option<u16>,

    /// Sites of the papers' world
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    sites: u32,

    /// Pages of each of its sites
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pages: u32,

    /// Seeds of the papers' world, one world per seed
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1")]
    seed: Vec<u64>,

    /// Give the strategies the patterns, or let them learn [default: known, for traces learned]
    #[arg(long, value_enum)]
    patterns: Option<PatternSource>,

    /// Goal of expected-gain: balanced, importance, every-page, coherent or count. The bounds are for the matching measure
    #[arg(long, value_name = "GOAL", default_value_t = Goal::default())]
    goal: Goal,

    /// Let a visit observe the last change (as in the papers), or the difference to the last copy [default: last-change, for
    /// traces difference]
    #[arg(long, hide = true, value_enum)]
    visibility: Option<VisibilityName>,

    /// Let expected-gain save fetches in quiet hours for busy ones, at the same mean [default: true for balanced and coherent]
    #[arg(long, hide = true, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    varying_budget: Option<bool>,

    /// Model busy and quiet spells of single pages [default: as in the crawler]
    #[arg(long, hide = true, value_name = "true|false")]
    spells: Option<bool>,

    /// Learn the days of the week and of the month on which pages change [default: as in the crawler]
    #[arg(long, hide = true, value_name = "true|false")]
    calendar: Option<bool>,

    /// Share of the budget for the least recently visited pages [default: set by the strategy]
    #[arg(long, hide = true, value_name = "SHARE", value_parser = parse_share)]
    floor: Option<f64>,

    /// Share of pages whose changes are announced by feeds, sitemaps or pushes
    #[arg(long, hide = true, value_name = "SHARE", value_parser = parse_share, default_value = "0")]
    announced: f64,

    /// Time zone of the pages
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    zone: String,

    /// Run expected-gain with every goal too, and show the trade-off between the measures
    #[arg(long)]
    frontier: bool,

    /// Skip the bounds, which take most of the time
    #[arg(long, hide = true)]
    no_bounds: bool,

    /// Write the papers' figures with these results into DIR/index.html
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PatternSource {
    Known,
    Learned,
    Both,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum VisibilityName {
    LastChange,
    Difference,
}

impl Simulate {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let experiment = self.experiment()?;
        let mut all = Vec::new();
        let mut report = None;
        for seed in &self.seed {
            let world = self.world(*seed)?;
            let bar = context.progress_count(experiment.n_steps() as u64, "simulating");
            let mut lines = experiment.run(&world, *seed, || bar.inc(1));
            bar.finish_and_clear();
            if self.frontier {
                let bar = context.progress_count((Goal::ALL.len() * lines.len()) as u64, "goals");
                experiment.add_goals(&world, *seed, self.varying_budget, &mut lines, || bar.inc(1));
                bar.finish_and_clear();
            }
            print_lines(context, &lines)?;
            if report.is_none() && self.report.is_some() {
                report = Some(self.build_report(context, &experiment, &world, *seed, lines.clone()));
            }
            all.extend(lines);
        }
        if let (Some(dir), Some(report)) = (&self.report, report) {
            let path = write_report(dir, &report)?;
            context.note(format_args!("report: {}", path.display()));
        }
        Ok(Exit::Done)
    }

    fn is_recorded(&self) -> bool {
        !self.trace.is_empty() || self.world != "paper"
    }

    fn n_days(&self) -> (u32, u32) {
        let (burn_in, days) = if self.is_recorded() { (14, 70) } else { (7, 28) };
        (self.burn_in.unwrap_or(burn_in), self.days.unwrap_or(days))
    }

    fn paper_world(&self, seed: u64) -> PaperWorld {
        let (burn_in, days) = self.n_days();
        PaperWorld { n_sites: self.sites, pages_per_site: self.pages, days: burn_in + days, seed }
    }

    fn world(&self, seed: u64) -> anyhow::Result<World> {
        let (burn_in, days) = self.n_days();
        if !self.is_recorded() {
            return Ok(self.paper_world(seed).build());
        }
        let files = if self.trace.is_empty() { vec![PathBuf::from(&self.world)] } else { self.trace.clone() };
        let spread = self.spread_polls.then_some(seed);
        trace::read_files(&files, burn_in + days, self.trace_start, spread)
    }

    fn experiment(&self) -> anyhow::Result<Experiment> {
        let default_patterns = if self.is_recorded() { PatternSource::Learned } else { PatternSource::Known };
        let patterns = self.patterns.unwrap_or(default_patterns);
        let strategies: Vec<SimulatedStrategy> = match self.strategy.as_str() {
            "all" => SimulatedStrategy::all().collect(),
            names => names.split(',').map(str::parse).collect::<Result<_, _>>()?,
        };
        let learned: &[bool] = match patterns {
            PatternSource::Known => &[false],
            PatternSource::Learned => &[true],
            PatternSource::Both => &[false, true],
        };
        let runs = strategies
            .iter()
            .flat_map(|strategy| {
                learned.iter().map(|learned| StrategyRun { strategy: *strategy, learned: *learned })
            })
            .collect();
        let visibility = match (self.visibility, self.is_recorded()) {
            (Some(VisibilityName::LastChange), _) | (None, false) => Visibility::LastChange,
            (Some(VisibilityName::Difference), _) | (None, true) => Visibility::Difference,
        };
        let slot_secs = match self.slot_minutes {
            Some(minutes) => i64::from(minutes) * 60,
            None => 86_400 / i64::from(self.periods),
        };
        Ok(Experiment {
            runs,
            budgets: self.budgets(),
            slot: Span::from_secs(slot_secs),
            n_periods: self.periods,
            burn_in: Span::from_hours(24 * i64::from(self.n_days().0)),
            goal: self.goal,
            visibility,
            varying_budget: self.varying_budget.unwrap_or(self.goal.sweeps_sites()),
            period: Span::from_hours(1),
            spells: self.spells,
            calendar: self.calendar,
            floor: self.floor.map(|share| share as f32),
            announced_share: self.announced,
            clock: LocalClock::from_zone(&self.zone)?,
            seed: 1,
            bounds: !self.no_bounds,
        })
    }

    fn budgets(&self) -> Vec<f64> {
        let mut budgets = match (self.budget.is_empty(), &self.report) {
            (false, _) => self.budget.clone(),
            (true, None) => vec![0.05, 0.1, 0.2, 0.3, 0.5],
            // The papers' figures go up to all pages an hour.
            (true, Some(_)) => vec![0.05, 0.1, 0.2, 0.3, 0.5, 1.0],
        };
        budgets.sort_by(f64::total_cmp);
        budgets.dedup();
        budgets
    }

    /// Runs the simulations that only the report needs.
    fn build_report(
        &self,
        context: &Context,
        experiment: &Experiment,
        world: &World,
        seed: u64,
        lines: Vec<BudgetResult>,
    ) -> SimulationReport {
        let bar = context.progress_count(report::N_STEPS_OF_PERIODS, "periods of Figure 7");
        let periods = report::run_over_periods(experiment, world, seed, || bar.inc(1));
        bar.finish_and_clear();
        let unlike = match self.is_recorded() {
            true => Vec::new(),
            false => report::run_on_unlike(experiment, &self.paper_world(seed).build_unlike(), seed),
        };
        let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
        let world = report::describe_world(experiment, world, self.n_days(), seed);
        SimulationReport { command: format!("perennial {command}"), world, lines, periods, unlike }
    }
}

fn parse_start(text: &str) -> Result<TraceStart, UnitError> {
    match text {
        "auto" => Ok(TraceStart::Auto),
        "first" => Ok(TraceStart::First),
        "busiest" => Ok(TraceStart::Busiest),
        time => parse_time(time).map(TraceStart::At),
    }
}

/// Prints a table, or with `--json` one object per line, so programs can read results during the computation.
fn print_lines(context: &Context, lines: &[BudgetResult]) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in lines {
        if context.json {
            serde_json::to_writer(&mut out, line)?;
            writeln!(out)?;
        } else {
            write_table(&mut out, line)?;
        }
    }
    Ok(out.flush()?)
}

fn write_table(out: &mut dyn Write, line: &BudgetResult) -> std::io::Result<()> {
    writeln!(
        out,
        "{}, seed {}: {:.0} % of the pages an hour, ranked every {:.0} minutes (shares in percent)",
        line.world,
        line.seed,
        line.budget * 100.0,
        line.slot_minutes
    )?;
    writeln!(
        out,
        "  {:<28} {:>7} {:>9} {:>7} {:>10} {:>9} {:>6} {:>6} {:>14}",
        "strategy",
        "pooled",
        "Def. 5.13",
        "count",
        "coherence",
        "heaviest",
        "fresh",
        "blur",
        "of clairvoyant"
    )?;
    for result in &line.results {
        let name = format!("{}{}", result.strategy, if result.learned { ", learned" } else { "" });
        writeln!(
            out,
            "  {name:<28} {:>7.1} {:>9.1} {:>7.1} {:>10.1} {:>9.1} {:>6.1} {:>6.2} {:>14}",
            result.completeness_pooled * 100.0,
            result.completeness_weighted * 100.0,
            result.completeness_count * 100.0,
            result.coherence_weighted * 100.0,
            result.coherence_max_weight * 100.0,
            result.freshness * 100.0,
            result.blur,
            percent(result.share_of_clairvoyant)
        )?;
    }
    for (name, bound) in [
        ("bound: patterns known", line.bounds.map(|bounds| bounds.pattern_known)),
        ("bound: clairvoyant", line.bounds.map(|bounds| bounds.clairvoyant)),
    ] {
        writeln!(out, "  {name:<28} {:>7}", percent(bound))?;
    }
    writeln!(out)
}

/// A dash if it was not computed.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0))
}

fn write_report(dir: &Path, report: &SimulationReport) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(dir).with_context(|| format!("making the folder {}", dir.display()))?;
    let path = dir.join("index.html");
    std::fs::write(&path, report.to_html()).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
