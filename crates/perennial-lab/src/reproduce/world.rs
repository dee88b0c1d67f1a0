//! P-PATTERN 9 and P-QUALITY 7, in worlds drawn from seeds.

use perennial_core::schedule::Goal;
use perennial_core::time::Span;

use super::{Finding, Paper, Reproduction, ResultTable, mean, percent_interval};
use crate::chart::{Chart, Series, Stroke};
use crate::drive::Visibility;
use crate::experiment::{BudgetResult, Experiment, StrategyResult, StrategyRun};
use crate::paper::PaperWorld;
use crate::reproduce::judge::Interval;
use crate::strategy::BaselineStrategy::{
    Coherence, Frequency, Importance, ImportancePattern, Pattern, Relevance, Sharc,
};
use crate::strategy::SimulatedStrategy;

/// How large the worlds are.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorldSize {
    pub(super) n_seeds: u64,
    n_pages: u32,
    burn_in: u32,
    days: u32,
}

/// A site of 1,000 pages, as in the papers.
pub(super) const PUBLISHED: WorldSize = WorldSize { n_seeds: 5, n_pages: 1000, burn_in: 7, days: 14 };

/// "In case of limited resources", for which the papers give numbers, and more.
const LIMITED: [f64; 3] = [0.1, 0.2, 0.3];
const AMPLE: [f64; 2] = [0.6, 1.0];
const RIVALS: [&str; 4] = ["relevance", "frequency", "sharc", "coherence"];
/// Periods per day of Figure 7.
const PERIODS: [u16; 7] = [2, 4, 8, 12, 24, 60, 120];
/// Name of the crawler's own settings in the results.
const SHIPPED: &str = "as shipped";

type Measure = fn(&StrategyResult) -> f64;

/// A claim that one strategy leads others.
struct LeadClaim {
    paper: Paper,
    item: &'static str,
    claim: &'static str,
    published: &'static str,
    better: &'static str,
    others: &'static [&'static str],
    measure: Measure,
    effect: f64,
}

const LEADS: [LeadClaim; 5] = [
    LeadClaim {
        paper: Paper::Pattern,
        item: "Fig. 8",
        claim: "Pattern captures more versions than Relevance, SHARC, Coherence and Frequency",
        published: "around 10 %",
        better: "pattern",
        others: &RIVALS,
        measure: |outcome| outcome.completeness_count,
        effect: 0.1,
    },
    LeadClaim {
        paper: Paper::Pattern,
        item: "Fig. 9",
        claim: "the pattern strategy with importance captures more weight than these four",
        published: "around 20 %",
        better: "importance-pattern",
        others: &RIVALS,
        measure: |outcome| outcome.completeness_pooled,
        effect: 0.2,
    },
    LeadClaim {
        paper: Paper::Quality,
        item: "Fig. 7",
        claim: "Importance-Pattern has more weighted completeness (Definition 5.13) than these four",
        published: "around 20 %",
        better: "importance-pattern",
        others: &RIVALS,
        measure: |outcome| outcome.completeness_weighted,
        effect: 0.2,
    },
    LeadClaim {
        paper: Paper::Quality,
        item: "Fig. 7",
        claim: "Importance-Pattern has more weighted completeness than Importance",
        published: "about 5 %",
        better: "importance-pattern",
        others: &["importance"],
        measure: |outcome| outcome.completeness_weighted,
        effect: 0.05,
    },
    LeadClaim {
        paper: Paper::Quality,
        item: "Fig. 8",
        claim: "Importance-Pattern has the highest weighted coherence, above SHARC, Coherence and Relevance",
        published: "around 10 %",
        better: "importance-pattern",
        others: &["sharc", "coherence", "relevance"],
        measure: |outcome| outcome.coherence_weighted,
        effect: 0.1,
    },
];

/// The results of one world.
struct SeedResult {
    /// With few resources, then with more.
    limited: Vec<BudgetResult>,
    ample: Vec<BudgetResult>,
    unlike: Vec<BudgetResult>,
    by_periods: Vec<PeriodResult>,
}

/// Completeness of Importance-Pattern with a number of periods per day, at each budget.
struct PeriodResult {
    n_periods: u16,
    /// With M pages per period, as in Algorithm 5. More periods are more visits.
    per_period: [f64; LIMITED.len()],
    /// With M pages per hour and a list every hour, at the first budget. Only the pattern differs.
    same_visits: f64,
}

/// The results of all worlds, computed when the first of the two papers needs them.
#[derive(Default)]
pub struct WorldResults {
    seeds: Vec<SeedResult>,
}

impl WorldResults {
    pub(super) fn reproduce(&mut self, paper: Paper, step: &(dyn Fn() + Sync), all: &mut Reproduction) {
        match self.seeds.len() {
            0 => self.seeds = run_seeds(PUBLISHED, step),
            n => (0..n).for_each(|_| step()),
        }
        report(paper, &self.seeds, all);
    }
}

fn run_seeds(size: WorldSize, step: &(dyn Fn() + Sync)) -> Vec<SeedResult> {
    (1..=size.n_seeds)
        .map(|seed| {
            let found = run_seed(size, seed);
            step();
            found
        })
        .collect()
}

fn report(paper: Paper, seeds: &[SeedResult], all: &mut Reproduction) {
    if paper == Paper::Pattern {
        all.findings.extend(period_findings(seeds));
        all.tables.push(period_table(seeds));
    }
    for claim in LEADS.iter().filter(|claim| claim.paper == paper) {
        all.findings.push(claim.finding(seeds));
    }
    if paper == Paper::Quality {
        all.findings.extend(quality_findings(seeds));
    }
    for figure in FIGURES.iter().filter(|figure| figure.paper == paper) {
        all.charts.push(figure.chart(seeds));
        all.tables.push(figure.table(seeds));
    }
    if paper == Paper::Pattern {
        all.findings.push(Finding::untestable(
            (Paper::Pattern, "Fig. 4 to 6"),
            ("time series and patterns of pages of France Télévisions, with an index threshold", "four pages each"),
            "the archive of these pages is not public; `perennial plan patterns` draws those of an own archive",
        ));
    }
}

fn experiment(size: WorldSize, strategies: &[SimulatedStrategy], budgets: &[f64]) -> Experiment {
    Experiment {
        runs: strategies.iter().map(|strategy| StrategyRun { strategy: *strategy, learned: false }).collect(),
        budgets: budgets.to_vec(),
        burn_in: Span::from_hours(24 * i64::from(size.burn_in)),
        bounds: false,
        ..Experiment::default()
    }
}

fn run_seed(size: WorldSize, seed: u64) -> SeedResult {
    let paper = PaperWorld { n_sites: 1, pages_per_site: size.n_pages, days: size.burn_in + size.days, seed };
    let world = paper.build();
    let published = [Relevance, Frequency, Sharc, Coherence, Importance, Pattern, ImportancePattern]
        .map(SimulatedStrategy::from);
    let at_budgets = |budgets: &[f64]| {
        let known = experiment(size, &published, budgets);
        let mut lines = known.run(&world, seed, || {});
        let goal = Goal::default();
        let shipped = Experiment {
            runs: vec![StrategyRun { strategy: SimulatedStrategy::EXPECTED_GAIN, learned: true }],
            goal,
            varying_budget: goal.sweeps_sites(),
            visibility: Visibility::Difference,
            ..known
        };
        for (line, own) in lines.iter_mut().zip(shipped.run(&world, seed, || {})) {
            let named = |outcome| StrategyResult { strategy: SHIPPED.to_owned(), ..outcome };
            line.results.extend(own.results.into_iter().map(named));
        }
        lines
    };
    let best = [SimulatedStrategy::IMPORTANCE_PATTERN];
    let with_periods = |n_periods: u16, slot: Span, budgets: &[f64]| -> Vec<f64> {
        let lines =
            Experiment { n_periods, slot, ..experiment(size, &best, budgets) }.run(&world, seed, || {});
        lines.iter().flat_map(|line| &line.results).map(|outcome| outcome.completeness_pooled).collect()
    };
    let by_periods = PERIODS.map(|n_periods| {
        let own_slot = Span::from_secs(86_400 / i64::from(n_periods));
        // Budgets are per hour.
        let per_hour = LIMITED.map(|budget| budget * f64::from(n_periods) / 24.0);
        let per_period = with_periods(n_periods, own_slot, &per_hour);
        PeriodResult {
            n_periods,
            per_period: std::array::from_fn(|at| per_period.get(at).copied().unwrap_or(f64::NAN)),
            same_visits: with_periods(n_periods, Span::from_hours(1), &LIMITED[..1])
                .first()
                .copied()
                .unwrap_or(f64::NAN),
        }
    });
    let two = [SimulatedStrategy::from(Importance), SimulatedStrategy::IMPORTANCE_PATTERN];
    SeedResult {
        limited: at_budgets(&LIMITED),
        ample: at_budgets(&AMPLE),
        unlike: experiment(size, &two, &LIMITED).run(&paper.build_unlike(), seed, || {}),
        by_periods: by_periods.into(),
    }
}

/// The relative lead over the best of the others, a mean over budgets.
fn lead(lines: &[BudgetResult], better: &str, others: &[&str], measure: Measure) -> f64 {
    let value = |line: &BudgetResult, name: &str| {
        line.results.iter().find(|outcome| outcome.strategy == name).map_or(f64::NAN, measure)
    };
    let leads = lines.iter().map(|line| {
        let best = others.iter().map(|other| value(line, other)).fold(f64::NEG_INFINITY, f64::max);
        value(line, better) / best.max(1e-9) - 1.0
    });
    leads.sum::<f64>() / lines.len().max(1) as f64
}

impl LeadClaim {
    fn finding(&self, seeds: &[SeedResult]) -> Finding {
        let leads = |better: &str| -> Vec<f64> {
            seeds.iter().map(|seed| lead(&seed.limited, better, self.others, self.measure)).collect()
        };
        let of = (self.paper, self.item);
        let finding =
            Finding::measured(of, (self.claim, self.published), &leads(self.better), Some(self.effect));
        let shipped = Interval::from_samples(&leads(SHIPPED)).map(percent_interval);
        Finding { as_shipped: shipped.unwrap_or_else(|| "-".to_owned()), ..finding }
    }
}

/// Figure 7. With M pages per period, a day with more periods has more visits, so the claims are judged with the same
/// visits.
fn period_findings(seeds: &[SeedResult]) -> [Finding; 2] {
    let differences = |more: u16, fewer: u16, of: fn(&PeriodResult) -> f64| -> Vec<f64> {
        let at = |seed: &SeedResult, n: u16| {
            seed.by_periods.iter().find(|result| result.n_periods == n).map_or(f64::NAN, of)
        };
        seeds.iter().map(|seed| at(seed, more) - at(seed, fewer)).collect()
    };
    let finding = |(more, fewer), claim: (&'static str, &'static str)| {
        let same_visits = differences(more, fewer, |result| result.same_visits);
        let per_period = differences(more, fewer, |result| mean(result.per_period));
        let found = Finding::measured((Paper::Pattern, "Fig. 7"), claim, &same_visits, None);
        let words = |samples: &[f64]| {
            Interval::from_samples(samples).map_or_else(|| "-".to_owned(), percent_interval)
        };
        let in_condition =
            format!("same visits: {}; M per period: {}", words(&same_visits), words(&per_period));
        Finding { in_condition, ..found }
    };
    let grows = finding((24, 2), ("completeness grows from 2 to 24 periods per day", "grows, no number"));
    let reason =
        format!("{}; judged with the same visits, because M pages per period are more visits", grows.reason);
    let constant = finding(
        (120, 24),
        ("completeness is almost constant from 24 to 120 periods per day", "quasi-constant"),
    );
    let verdict = constant.effect.map_or(constant.verdict, |effect| effect.judge_constant(0.02));
    let constant_reason = "the interval with the same visits has to be within two points of 0".to_owned();
    [Finding { reason, ..grows }, Finding { verdict, reason: constant_reason, ..constant }]
}

fn period_table(seeds: &[SeedResult]) -> ResultTable {
    let columns = LIMITED.map(|budget| format!("M = {:.0} % per period", 100.0 * budget));
    let columns = columns.into_iter().chain(["10 % per hour".to_owned()]);
    let title = format!("weighted completeness by periods per day; means of {} seeds", seeds.len());
    let mut table = ResultTable::new((Paper::Pattern, "Fig. 7"), title, columns, 3);
    for (at, n_periods) in PERIODS.iter().enumerate() {
        let of =
            |pick: &dyn Fn(&PeriodResult) -> f64| mean(seeds.iter().map(|seed| pick(&seed.by_periods[at])));
        let per_period = (0..LIMITED.len()).map(|budget| of(&|result| result.per_period[budget]));
        table.push(format!("{n_periods} periods"), per_period.chain([of(&|result| result.same_visits)]));
    }
    table
}

fn quality_findings(seeds: &[SeedResult]) -> [Finding; 3] {
    let by_page: Measure = |outcome| outcome.completeness_weighted;
    let unlike: Vec<f64> =
        seeds.iter().map(|seed| lead(&seed.unlike, "importance-pattern", &["importance"], by_page)).collect();
    let never: Vec<f64> = seeds
        .iter()
        .map(|seed| {
            let published =
                seed.ample.iter().flat_map(|line| &line.results).filter(|result| result.strategy != SHIPPED);
            1.0 - published.map(by_page).fold(0.0, f64::max)
        })
        .collect();
    let coherence: Measure = |outcome| outcome.coherence_weighted;
    let lowest: Vec<f64> = seeds
        .iter()
        .map(|seed| {
            let others = ["relevance", "sharc", "coherence", "importance", "pattern", "importance-pattern"];
            let behind = |other: &&str| lead(&seed.limited, other, &["frequency"], coherence);
            others.iter().map(behind).fold(f64::INFINITY, f64::min)
        })
        .collect();
    [
        Finding::measured(
            (Paper::Quality, "7"),
            (
                "Importance-Pattern is better than Importance if the patterns of pages are significantly different",
                "more than 10 %",
            ),
            &unlike,
            Some(0.1),
        ),
        Finding::measured(
            (Paper::Quality, "Fig. 7"),
            ("100 % is never reached, even with all resources", "below 100 %"),
            &never,
            None,
        ),
        Finding::measured(
            (Paper::Quality, "Fig. 8"),
            ("Frequency has the lowest coherence", "lowest"),
            &lowest,
            None,
        ),
    ]
}

/// A figure of strategies over budgets.
struct StrategyFigure {
    paper: Paper,
    item: &'static str,
    title: &'static str,
    measure: Measure,
}

const FIGURES: [StrategyFigure; 4] = [
    StrategyFigure {
        paper: Paper::Pattern,
        item: "Fig. 8",
        title: "versions captured",
        measure: |outcome| outcome.completeness_count,
    },
    StrategyFigure {
        paper: Paper::Pattern,
        item: "Fig. 9",
        title: "weight captured",
        measure: |outcome| outcome.completeness_pooled,
    },
    StrategyFigure {
        paper: Paper::Quality,
        item: "Fig. 7",
        title: "weighted completeness (Definition 5.13)",
        measure: |outcome| outcome.completeness_weighted,
    },
    StrategyFigure {
        paper: Paper::Quality,
        item: "Fig. 8",
        title: "weighted coherence",
        measure: |outcome| outcome.coherence_weighted,
    },
];

const COLOURS: [&str; 8] =
    ["#868e96", "#a61e4d", "#7048e8", "#1098ad", "#e8900c", "#2b8a3e", "#d9480f", "#0b5fff"];

impl StrategyFigure {
    /// Name and means over seeds of each strategy, by budget.
    fn rows(&self, seeds: &[SeedResult]) -> Vec<(String, Vec<f64>)> {
        let lines: Vec<Vec<&BudgetResult>> =
            seeds.iter().map(|seed| seed.limited.iter().chain(&seed.ample).collect()).collect();
        let Some(first) = lines.first().and_then(|lines| lines.first()) else { return Vec::new() };
        let row = |(strategy, result): (usize, &StrategyResult)| {
            let at = |budget: usize| {
                mean(lines.iter().map(|lines| (self.measure)(&lines[budget].results[strategy])))
            };
            (result.strategy.clone(), (0..LIMITED.len() + AMPLE.len()).map(at).collect())
        };
        first.results.iter().enumerate().map(row).collect()
    }

    fn table(&self, seeds: &[SeedResult]) -> ResultTable {
        let title = format!("{}, by M, pages fetched per hour; means of {} seeds", self.title, seeds.len());
        let columns = budgets().map(|budget| format!("{:.0} %", 100.0 * budget));
        let mut table = ResultTable::new((self.paper, self.item), title, columns, 3);
        for (name, values) in self.rows(seeds) {
            table.push(name, values);
        }
        table
    }

    fn chart(&self, seeds: &[SeedResult]) -> (String, Chart) {
        let series = |((name, values), colour): ((String, Vec<f64>), &&'static str)| Series {
            stroke: if name == SHIPPED { Stroke::Bold } else { Stroke::Thin },
            label: name,
            colour,
            points: budgets().zip(values).collect(),
        };
        let chart = Chart {
            x_label: "M: pages fetched per hour".to_owned(),
            y_label: "share, mean over seeds".to_owned(),
            x_ticks: budgets().map(|budget| (budget, format!("{:.0} %", budget * 100.0))).collect(),
            x_is_log: false,
            series: self.rows(seeds).into_iter().zip(COLOURS.iter().cycle()).map(series).collect(),
        };
        (format!("{} {}: {}", self.paper, self.item, self.title), chart)
    }
}

fn budgets() -> impl Iterator<Item = f64> {
    LIMITED.into_iter().chain(AMPLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    #[test]
    fn every_claim_has_an_interval_and_an_honest_verdict() {
        let seeds = run_seeds(WorldSize { n_seeds: 3, n_pages: 60, burn_in: 3, days: 4 }, &|| ());
        let mut all = Reproduction::default();
        report(Paper::Pattern, &seeds, &mut all);
        report(Paper::Quality, &seeds, &mut all);
        assert_eq!(all.findings.len(), 11);
        for finding in &all.findings {
            let Some(effect) = finding.effect else {
                assert_eq!(finding.verdict, Verdict::NotTestable, "{finding:?}");
                continue;
            };
            assert_eq!(effect.n, 3);
            let is_constant = finding.claim.contains("constant");
            assert!(
                is_constant || effect.low > 0.0 || finding.verdict == Verdict::NotRepeated,
                "{finding:?}"
            );
        }
        let html = all.to_html();
        assert!(html.contains("P-PATTERN Fig. 7") && html.contains("<svg") && html.contains("as shipped"));
        let rows: Vec<usize> = all.tables.iter().map(|table| table.rows.len()).collect();
        assert_eq!(rows, [PERIODS.len(), 8, 8, 8, 8]);
    }
}
