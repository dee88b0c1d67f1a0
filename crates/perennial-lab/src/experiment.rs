//! Runs strategies on a world at several budgets. Each budget gives a [`BudgetResult`] with the quality of each
//! strategy and the bounds.

use std::sync::Arc;

use perennial_core::quality::ratio;
use perennial_core::schedule::{Budget, Goal, KnownPattern, ObservedImportance, ScheduleConfig};
use perennial_core::time::{LocalClock, Span};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::bound::{BoundSpec, VisitConstraint, clairvoyant, known_rates, pattern_known};
use crate::drive::{CrawlQuality, DriveConfig, SimulatedCrawl, Visibility, crawl};
use crate::quality::Window;
use crate::strategy::SimulatedStrategy;
use crate::world::World;

/// Coherence is measured at so many snapshots per day of the window.
const QUERIES_PER_DAY: f64 = 2.0;
const MAX_QUERIES: u32 = 200;

/// The strategies and conditions of an experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    pub runs: Vec<StrategyRun>,
    /// Visits per hour, as shares of the number of pages.
    pub budgets: Vec<f64>,
    /// The period of the budget. A daily budget is never exceeded on any day.
    pub period: Span,
    /// Length of a slot. The strategies of the papers rank pages once per slot, and visit a page at most once in it. The
    /// crawler's strategies have no slots.
    pub slot: Span,
    /// Periods per day in patterns.
    pub n_periods: u16,
    /// Changes before this time are not counted.
    pub burn_in: Span,
    /// The goal of expected gain, whose completeness the bounds limit.
    pub goal: Goal,
    pub visibility: Visibility,
    /// Whether unused visits of quiet hours are kept for busy ones.
    pub varying_budget: bool,
    /// Whether the scheduler follows busy and quiet spells of a page; `None` is its default.
    pub spells: Option<bool>,
    /// Whether the scheduler learns days of the week and of the month; `None` is its default.
    pub calendar: Option<bool>,
    /// Share of the budget for the pages visited longest ago; `None` is the strategy's default.
    pub floor: Option<f32>,
    /// Share of pages whose changes are announced.
    pub announced_share: f64,
    /// The clock of sites without a clock in the world.
    pub clock: LocalClock,
    pub seed: u64,
    /// Whether the bounds are computed.
    pub bounds: bool,
}

/// Prefix of the strategy name in results that show one goal each.
pub const FRONTIER: &str = "expected-gain/";

/// A strategy, with given or learned patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrategyRun {
    pub strategy: SimulatedStrategy,
    /// Whether the scheduler learns the patterns while it crawls.
    pub learned: bool,
}

impl Default for Experiment {
    /// Expected gain with known patterns, a tenth of the pages per hour, hourly slots, and a burn-in of one week.
    fn default() -> Experiment {
        Experiment {
            runs: vec![StrategyRun { strategy: SimulatedStrategy::EXPECTED_GAIN, learned: false }],
            budgets: vec![0.1],
            period: Span::from_hours(1),
            slot: Span::from_hours(1),
            n_periods: 24,
            burn_in: Span::from_hours(24 * 7),
            goal: Goal::Importance,
            visibility: Visibility::LastChange,
            varying_budget: false,
            spells: None,
            calendar: None,
            floor: None,
            announced_share: 0.0,
            clock: LocalClock::utc(),
            seed: 1,
            bounds: true,
        }
    }
}

/// The results of all strategies at one budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetResult {
    pub world: String,
    /// Visits per hour, as a share of the number of pages.
    pub budget: f64,
    pub slot_minutes: f64,
    pub seed: u64,
    pub results: Vec<StrategyResult>,
    /// `None` if they were not computed.
    pub bounds: Option<CompletenessBounds>,
}

/// The quality of one strategy. Numbers are shares from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StrategyResult {
    pub strategy: String,
    pub learned: bool,
    /// Captured weight over total weight.
    pub completeness_pooled: f64,
    /// Definition 5.13.
    pub completeness_weighted: f64,
    /// Definition 5.14, the mean of Definition 5.13 over sites.
    pub completeness_by_site: f64,
    /// Number of captured versions over number of versions.
    pub completeness_count: f64,
    /// Definition 5.22: weight of the most numerous coherent set.
    pub coherence_weighted: f64,
    /// Coherence without the versions before the first known change.
    pub coherence_of_changed: f64,
    /// Weight of the heaviest coherent set.
    pub coherence_max_weight: f64,
    /// Share of pages whose last capture is up to date; mean over instants.
    pub freshness: f64,
    /// Changes between an instant and the closest capture of a page; mean over pages and instants. Not a share.
    pub blur: f64,
    /// Completeness by the goal, relative to the clairvoyant bound; `None` if that was not computed.
    pub share_of_clairvoyant: Option<f64>,
}

/// Bounds on completeness by the goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompletenessBounds {
    /// All changes are known in advance. Slots and budget are those of the strategies.
    pub clairvoyant: f64,
    /// Only rates and mean importances are known.
    pub pattern_known: f64,
}

/// A unit of work for one core.
enum ExperimentJob {
    SimulatedCrawl(StrategyRun),
    Clairvoyant,
    PatternKnown,
}

enum JobResult {
    Crawled(CrawlQuality),
    Bound(f64),
}

impl Experiment {
    /// How often [`Experiment::run`] calls `step`.
    pub fn n_steps(&self) -> usize {
        self.budgets.len() * self.jobs().len()
    }

    pub fn learns(&self) -> bool {
        self.runs.first().is_some_and(|run| run.learned)
    }

    /// Adds a result to each budget for each goal of expected gain.
    pub fn add_goals(
        &self,
        world: &World,
        seed: u64,
        varying_budget: Option<bool>,
        lines: &mut [BudgetResult],
        step: impl Fn() + Sync,
    ) {
        for goal in Goal::ALL {
            let of_goal = Experiment {
                runs: vec![StrategyRun {
                    strategy: SimulatedStrategy::EXPECTED_GAIN,
                    learned: self.learns(),
                }],
                goal,
                varying_budget: varying_budget.unwrap_or(goal.sweeps_sites()),
                bounds: false,
                ..self.clone()
            };
            for (line, with_goal) in lines.iter_mut().zip(of_goal.run(world, seed, &step)) {
                let named = |outcome: StrategyResult| StrategyResult {
                    strategy: format!("{FRONTIER}{goal}"),
                    ..outcome
                };
                line.results.extend(with_goal.results.into_iter().map(named));
            }
        }
    }

    pub fn window(&self, world: &World) -> Window {
        Window { from: (world.start + self.burn_in).min(world.end), until: world.end }
    }

    /// Runs all jobs on all cores; `step` is called after each job, from any thread.
    pub fn run(&self, world: &World, seed: u64, step: impl Fn() + Sync) -> Vec<BudgetResult> {
        let known = Arc::new(known_rates(world, self.n_periods));
        let jobs: Vec<(f64, ExperimentJob)> = self
            .budgets
            .iter()
            .flat_map(|budget| self.jobs().into_iter().map(move |job| (*budget, job)))
            .collect();
        let done: Vec<JobResult> = jobs
            .par_iter()
            .with_max_len(1)
            .map(|(budget, job)| {
                let done = self.run_job(world, &known, *budget, job);
                step();
                done
            })
            .collect();
        let n_jobs = self.jobs().len().max(1);
        let lines = self.budgets.iter().zip(done.chunks(n_jobs));
        lines.map(|(budget, done)| self.budget_result(world, *budget, seed, done)).collect()
    }

    fn jobs(&self) -> Vec<ExperimentJob> {
        let bounds =
            if self.bounds { vec![ExperimentJob::Clairvoyant, ExperimentJob::PatternKnown] } else { vec![] };
        bounds.into_iter().chain(self.runs.iter().map(|run| ExperimentJob::SimulatedCrawl(*run))).collect()
    }

    fn run_job(
        &self,
        world: &World,
        known: &Arc<Vec<KnownPattern>>,
        budget: f64,
        job: &ExperimentJob,
    ) -> JobResult {
        let bound = self.bound_spec(world, budget);
        let constraint =
            if self.varying_budget { VisitConstraint::VaryingBudget } else { VisitConstraint::OncePerSlot };
        match job {
            ExperimentJob::Clairvoyant => JobResult::Bound(clairvoyant(world, &bound, constraint)),
            ExperimentJob::PatternKnown => JobResult::Bound(pattern_known(world, known, &bound)),
            ExperimentJob::SimulatedCrawl(run) => {
                let window = self.window(world);
                let days = (window.until - window.from).as_hours_f64() / 24.0;
                let n_queries = ((days * QUERIES_PER_DAY) as u32).clamp(1, MAX_QUERIES);
                let crawl = self.crawl(world, known, budget, *run);
                JobResult::Crawled(crawl.quality(world, window, n_queries))
            }
        }
    }

    /// The conditions of the bounds at a budget.
    pub fn bound_spec(&self, world: &World, budget: f64) -> BoundSpec {
        BoundSpec {
            window: self.window(world),
            slot: self.slot,
            visits_per_hour: budget * world.pages.len() as f64,
            goal: self.goal,
        }
    }

    pub fn crawl(
        &self,
        world: &World,
        known: &Arc<Vec<KnownPattern>>,
        budget: f64,
        run: StrategyRun,
    ) -> SimulatedCrawl {
        let schedule = ScheduleConfig {
            budget: Some(Budget {
                visits: budget * world.pages.len() as f64 * self.period.as_hours_f64(),
                period: self.period,
            }),
            n_periods: self.n_periods,
            goal: self.goal,
            varying_budget: Some(self.varying_budget),
            spells: self.spells.unwrap_or(ScheduleConfig::default().spells) && run.learned,
            calendar: self.calendar.unwrap_or(ScheduleConfig::default().calendar),
            floor: self.floor,
            learn: run.learned,
            observed: match self.visibility {
                Visibility::LastChange => ObservedImportance::LastChange,
                Visibility::Difference => ObservedImportance::Difference,
            },
            ..ScheduleConfig::default()
        };
        let config = DriveConfig {
            strategy: run.strategy,
            schedule,
            slot: self.slot,
            visibility: self.visibility,
            known: (!run.learned).then(|| Arc::clone(known)),
            announced_share: self.announced_share,
            clock: self.clock.clone(),
            seed: self.seed,
        };
        crawl(world, &config)
    }

    fn budget_result(&self, world: &World, budget: f64, seed: u64, done: &[JobResult]) -> BudgetResult {
        let bounds: Vec<f64> = done
            .iter()
            .filter_map(|done| match done {
                JobResult::Bound(bound) => Some(*bound),
                JobResult::Crawled(_) => None,
            })
            .collect();
        let bounds = match bounds[..] {
            [clairvoyant, pattern_known] => Some(CompletenessBounds { clairvoyant, pattern_known }),
            _ => None,
        };
        let crawled = done.iter().filter_map(|done| match done {
            JobResult::Crawled(quality) => Some(quality),
            JobResult::Bound(_) => None,
        });
        let results = self
            .runs
            .iter()
            .zip(crawled)
            .map(|(run, quality)| self.strategy_result(*run, quality, bounds))
            .collect();
        let slot_minutes = self.slot.as_secs_f64() / 60.0;
        BudgetResult { world: world.name.clone(), budget, slot_minutes, seed, results, bounds }
    }

    fn strategy_result(
        &self,
        run: StrategyRun,
        quality: &CrawlQuality,
        bounds: Option<CompletenessBounds>,
    ) -> StrategyResult {
        let completeness = &quality.completeness;
        let served = match self.goal {
            Goal::Importance | Goal::Balanced | Goal::Coherent => completeness.pooled,
            Goal::EveryPage => completeness.weighted,
            Goal::Count => completeness.count,
        };
        StrategyResult {
            strategy: run.strategy.name().to_owned(),
            learned: run.learned,
            completeness_pooled: completeness.pooled,
            completeness_weighted: completeness.weighted,
            completeness_by_site: completeness.weighted_by_site,
            completeness_count: completeness.count,
            coherence_weighted: quality.coherence.weighted,
            coherence_of_changed: quality.coherence_of_changed.weighted,
            coherence_max_weight: quality.coherence.max_weight,
            freshness: quality.timeliness.freshness,
            blur: quality.timeliness.blur,
            share_of_clairvoyant: bounds.map(|bounds| ratio(served, bounds.clairvoyant)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::PaperWorld;
    use crate::strategy::BaselineStrategy::{
        Frequency, Importance, ImportancePattern, Pattern, Relevance, Sharc,
    };
    use perennial_core::time::Timestamp;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn small(seed: u64, days: u32) -> World {
        PaperWorld { n_sites: 2, pages_per_site: 150, days, seed }.build()
    }

    fn experiment(strategies: &[SimulatedStrategy], learned: bool, budgets: &[f64]) -> Experiment {
        Experiment {
            runs: strategies.iter().map(|strategy| StrategyRun { strategy: *strategy, learned }).collect(),
            budgets: budgets.to_vec(),
            bounds: false,
            ..Experiment::default()
        }
    }

    fn pooled(line: &BudgetResult, strategy: SimulatedStrategy) -> f64 {
        let found = line.results.iter().find(|outcome| outcome.strategy == strategy.name());
        found.unwrap().completeness_pooled
    }

    fn slot_number(at: Timestamp, slot: Span) -> i64 {
        at.as_millis().div_euclid(slot.as_millis())
    }

    #[test]
    fn the_same_seed_gives_the_same_results() {
        let world = small(3, 10);
        let experiment = experiment(
            &[SimulatedStrategy::EXPECTED_GAIN, SimulatedStrategy::IMPORTANCE_PATTERN],
            true,
            &[0.1],
        );
        assert_eq!(experiment.run(&world, 3, || {}), experiment.run(&world, 3, || {}));
        let with_bounds = Experiment { bounds: true, ..experiment };
        assert_eq!(with_bounds.run(&world, 3, || {}), with_bounds.run(&world, 3, || {}));
    }

    #[test]
    fn known_patterns_rank_the_strategies_as_published() {
        let baselines = [ImportancePattern, Importance, Pattern, Relevance, Sharc, Frequency];
        let weaker: Vec<SimulatedStrategy> = baselines
            .map(SimulatedStrategy::Baseline)
            .into_iter()
            .chain([SimulatedStrategy::FIXED_INTERVAL])
            .collect();
        let all = [&[SimulatedStrategy::EXPECTED_GAIN], &weaker[..]].concat();
        let experiment = Experiment { bounds: true, ..experiment(&all, false, &[0.1, 0.2]) };
        let lines: Vec<_> = (1..=3).flat_map(|seed| experiment.run(&small(seed, 21), seed, || {})).collect();
        // Over worlds, because in one of them two strategies may come within a thousandth of each other.
        let lead = |stronger: SimulatedStrategy, weaker: SimulatedStrategy| {
            lines.iter().map(|line| pooled(line, stronger) - pooled(line, weaker)).sum::<f64>()
        };
        for weaker in weaker.iter().skip(2) {
            let lead = lead(SimulatedStrategy::IMPORTANCE_PATTERN, *weaker);
            assert!(lead > 0.0, "{} leads Importance-Pattern by {}", weaker.name(), -lead);
        }
        for weaker in &weaker {
            let lead = lead(SimulatedStrategy::EXPECTED_GAIN, *weaker);
            assert!(lead > 0.0, "{} leads expected gain by {}", weaker.name(), -lead);
        }
        for line in &lines {
            let bounds = line.bounds.unwrap();
            // The bounds are those of slots, which expected gain does not have.
            let has_slots =
                |outcome: &&StrategyResult| outcome.strategy != SimulatedStrategy::EXPECTED_GAIN.name();
            let mut with_slots = line.results.iter().filter(has_slots);
            assert!(with_slots.all(|outcome| outcome.completeness_pooled < bounds.clairvoyant));
            assert!(bounds.pattern_known < bounds.clairvoyant);
        }
    }

    #[test]
    fn learning_comes_near_to_knowing() {
        let world = small(2, 28);
        let runs =
            [false, true].map(|learned| StrategyRun { strategy: SimulatedStrategy::EXPECTED_GAIN, learned });
        let experiment = Experiment {
            runs: runs.to_vec(),
            burn_in: Span::from_hours(14 * 24),
            ..experiment(&[], false, &[0.15])
        };
        let line = &experiment.run(&world, 2, || {})[0];
        let share = line.results[1].completeness_pooled / line.results[0].completeness_pooled;
        assert!(share > 0.92, "{share}");
    }

    #[test]
    fn shorter_slots_no_slots_and_announcements_catch_more() {
        let world = small(4, 14);
        let hourly = experiment(&[SimulatedStrategy::IMPORTANCE_PATTERN], false, &[0.1]);
        let quarters = Experiment { slot: Span::from_secs(900), ..hourly.clone() };
        let instants = experiment(&[SimulatedStrategy::EXPECTED_GAIN], false, &[0.1]);
        let announced = Experiment { announced_share: 1.0, ..instants.clone() };
        let value =
            |experiment: &Experiment| experiment.run(&world, 4, || {})[0].results[0].completeness_pooled;
        let (hourly, quarters) = (value(&hourly), value(&quarters));
        let (instants, announced) = (value(&instants), value(&announced));
        assert!(quarters > hourly + 0.05, "{hourly} {quarters}");
        assert!(instants > quarters, "{quarters} {instants}");
        assert!(announced > instants + 0.02, "{instants} {announced}");
    }

    #[test]
    fn a_varying_budget_keeps_its_mean() {
        let world = small(5, 21);
        let fixed = experiment(&[SimulatedStrategy::EXPECTED_GAIN], true, &[0.1]);
        let varying = Experiment { varying_budget: true, ..fixed.clone() };
        let known = Arc::new(known_rates(&world, 24));
        let run = fixed.runs[0];
        let window = Window { from: world.start, until: world.end };
        let n_fixed = fixed.crawl(&world, &known, 0.1, run).n_visits(window) as f64;
        let n_varying = varying.crawl(&world, &known, 0.1, run).n_visits(window) as f64;
        // At most the visits of one day are carried over.
        let day = 0.1 * world.pages.len() as f64 * 24.0;
        assert!(n_varying <= n_fixed + day, "{n_varying} {n_fixed}");
        assert!(n_varying >= n_fixed - day, "{n_varying} {n_fixed}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_budget_is_kept_and_slots_of_the_papers_visit_a_page_once(
            strategy in prop::sample::select(SimulatedStrategy::all().collect::<Vec<_>>()),
            learned in any::<bool>(),
            budget in 0.01f64..0.6,
            slot_minutes in prop::sample::select(vec![15i64, 30, 60, 120]),
            seed in 0u64..1000,
            announced_share in prop::sample::select(vec![0.0, 0.5]),
        ) {
            let world = PaperWorld { n_sites: 2, pages_per_site: 30, days: 4, seed }.build();
            // Without slots the budget's period counts.
            let has_slots = matches!(strategy, SimulatedStrategy::Baseline(_));
            let slot_minutes = if has_slots { slot_minutes } else { 60 };
            let slot = Span::from_secs(slot_minutes * 60);
            let experiment = Experiment { slot, announced_share, ..experiment(&[strategy], learned, &[budget]) };
            let known = Arc::new(known_rates(&world, 24));
            let crawl = experiment.crawl(&world, &known, budget, StrategyRun { strategy, learned });
            let mut by_slot: HashMap<i64, usize> = HashMap::new();
            for captures in &crawl.captures {
                let slots: Vec<i64> = captures.iter().map(|at| slot_number(*at, slot)).collect();
                let is_once = slots.windows(2).all(|pair| pair[0] < pair[1]);
                prop_assert!(is_once || !has_slots, "twice in a slot");
                slots.iter().for_each(|slot| *by_slot.entry(*slot).or_default() += 1);
            }
            let allowed = budget * 60.0 * slot_minutes as f64 / 60.0;
            let most = by_slot.values().copied().max().unwrap_or(0) as f64;
            prop_assert!(most <= allowed.ceil(), "{most} visits in a slot, {allowed} allowed");
            let total: usize = by_slot.values().sum();
            prop_assert!(total as f64 <= allowed * 4.0 * 1440.0 / slot_minutes as f64 + 1.0);
        }

        #[test]
        fn no_page_starves_beyond_the_floor(seed in 0u64..1000, learned in any::<bool>()) {
            let world = PaperWorld { n_sites: 1, pages_per_site: 60, days: 14, seed }.build();
            let (budget, floor) = (0.1, 0.2f32);
            let base = experiment(&[SimulatedStrategy::EXPECTED_GAIN], learned, &[budget]);
            let experiment = Experiment { floor: Some(floor), ..base };
            let known = Arc::new(known_rates(&world, 24));
            let crawl = experiment.crawl(&world, &known, budget, experiment.runs[0]);
            // Of 6 visits per hour, 1.2 go to the oldest pages, so a round over 60 pages takes 50 hours. A page that
            // has waited that long is visited within one more round.
            let promise = Span::from_hours(100);
            for captures in &crawl.captures {
                let ends = captures.iter().copied().chain([world.end]);
                let gaps = std::iter::once(world.start).chain(captures.iter().copied()).zip(ends);
                let longest = gaps.map(|(from, to)| to - from).max().unwrap();
                prop_assert!(longest <= promise, "{} hours", longest.as_hours_f64());
            }
        }
    }
}
