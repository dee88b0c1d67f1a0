//! P-PATTERN 9 and P-QUALITY 7, in worlds drawn from seeds.

use perennial_core::schedule::Goal;
use perennial_core::time::Span;

use super::{Finding, Paper, Reproduction, percent_interval};
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
    n_seeds: u64,
    n_pages: u32,
    burn_in: u32,
    days: u32,
}

impl WorldSize {
    /// A site of 1,000 pages, as in the papers.
    pub(super) const PUBLISHED: WorldSize = WorldSize { n_seeds: 5, n_pages: 1000, burn_in: 7, days: 14 };
}

/// "In case of limited resources".
const BUDGETS: [f64; 3] = [0.1, 0.2, 0.3];
const RIVALS: [&str; 4] = ["relevance", "frequency", "sharc", "coherence"];
const PERIODS: [u16; 4] = [2, 6, 24, 120];
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
    lines: Vec<BudgetResult>,
    unlike: Vec<BudgetResult>,
    /// Importance-Pattern at M = 10 % by the number of periods, with lists once per period and once per hour.
    by_periods: Vec<(u16, f64, f64)>,
    /// The best completeness with all resources.
    all_resources: f64,
}

pub(super) fn reproduce(papers: &[Paper], size: WorldSize, all: &mut Reproduction) {
    let seeds: Vec<SeedResult> = (1..=size.n_seeds).map(|seed| run_seed(size, seed)).collect();
    let wants = |paper: Paper| papers.contains(&paper);
    if wants(Paper::Pattern) {
        all.findings.extend(period_findings(&seeds));
    }
    for claim in LEADS.iter().filter(|claim| wants(claim.paper)) {
        all.findings.push(claim.finding(&seeds));
    }
    if wants(Paper::Quality) {
        all.findings.extend(quality_findings(&seeds));
    }
    all.charts.extend(charts(&seeds));
    if wants(Paper::Pattern) {
        all.findings.push(Finding::untestable(
            (Paper::Pattern, "Fig. 4 to 6"),
            ("time series and patterns of pages of France Télévisions, with an index threshold", "four pages each"),
            "the archive of these pages is not public; `perennial plan patterns` draws those of an own archive",
        ));
    }
}

fn experiment(size: WorldSize, strategies: &[SimulatedStrategy]) -> Experiment {
    Experiment {
        runs: strategies.iter().map(|strategy| StrategyRun { strategy: *strategy, learned: false }).collect(),
        budgets: BUDGETS.to_vec(),
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
    let known = experiment(size, &published);
    let mut lines = known.run(&world, seed, || {});
    let goal = Goal::default();
    let shipped = Experiment {
        runs: vec![StrategyRun { strategy: SimulatedStrategy::EXPECTED_GAIN, learned: true }],
        goal,
        varying_budget: goal.sweeps_sites(),
        visibility: Visibility::Difference,
        ..known.clone()
    };
    for (line, own) in lines.iter_mut().zip(shipped.run(&world, seed, || {})) {
        let named = |outcome| StrategyResult { strategy: SHIPPED.to_owned(), ..outcome };
        line.results.extend(own.results.into_iter().map(named));
    }
    let best = [SimulatedStrategy::IMPORTANCE_PATTERN];
    let completeness = |experiment: Experiment| {
        let lines = experiment.run(&world, seed, || {});
        lines
            .iter()
            .flat_map(|line| &line.results)
            .map(|outcome| outcome.completeness_pooled)
            .fold(0.0, f64::max)
    };
    let with_periods = |n_periods: u16, slot: Span| {
        completeness(Experiment { n_periods, slot, budgets: vec![0.1], ..experiment(size, &best) })
    };
    let by_periods = PERIODS.map(|n_periods| {
        let own_slot = Span::from_secs(86_400 / i64::from(n_periods));
        (n_periods, with_periods(n_periods, own_slot), with_periods(n_periods, Span::from_hours(1)))
    });
    let two = [SimulatedStrategy::from(Importance), SimulatedStrategy::IMPORTANCE_PATTERN];
    SeedResult {
        lines,
        unlike: experiment(size, &two).run(&paper.build_unlike(), seed, || {}),
        by_periods: by_periods.to_vec(),
        all_resources: completeness(Experiment { budgets: vec![1.0], ..experiment(size, &best) }),
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
            seeds.iter().map(|seed| lead(&seed.lines, better, self.others, self.measure)).collect()
        };
        let of = (self.paper, self.item);
        let finding =
            Finding::measured(of, (self.claim, self.published), &leads(self.better), Some(self.effect));
        let shipped = Interval::of(&leads(SHIPPED)).map(percent_interval);
        Finding { as_shipped: shipped.unwrap_or_else(|| "-".to_owned()), ..finding }
    }
}

fn period_findings(seeds: &[SeedResult]) -> [Finding; 2] {
    let differences = |more: u16, fewer: u16| -> [Vec<f64>; 2] {
        let of = |pick: fn(&(u16, f64, f64)) -> f64| {
            let one = |seed: &SeedResult| {
                let at = |n: u16| seed.by_periods.iter().find(|point| point.0 == n).map_or(f64::NAN, pick);
                at(more) - at(fewer)
            };
            seeds.iter().map(one).collect()
        };
        [of(|point| point.1), of(|point| point.2)]
    };
    let hourly = |samples: &[f64]| match Interval::of(samples) {
        Some(interval) => format!("lists every hour: {}", percent_interval(interval)),
        None => "-".to_owned(),
    };
    let of = (Paper::Pattern, "Fig. 7");
    let [per_period, per_hour] = differences(24, 2);
    let grows = Finding {
        as_shipped: hourly(&per_hour),
        ..Finding::measured(
            of,
            ("completeness grows from 2 to 24 periods per day", "grows, no number"),
            &per_period,
            None,
        )
    };
    let [per_period, per_hour] = differences(120, 24);
    let claim = ("completeness is almost constant from 24 to 120 periods per day", "quasi-constant");
    let constant = Finding::measured(of, claim, &per_period, None);
    let verdict = constant.effect.map_or(constant.verdict, |effect| effect.judge_constant(0.02));
    let reason = "constant means that the interval is within two points of 0".to_owned();
    [grows, Finding { verdict, reason, as_shipped: hourly(&per_hour), ..constant }]
}

fn quality_findings(seeds: &[SeedResult]) -> [Finding; 3] {
    let by_page: Measure = |outcome| outcome.completeness_weighted;
    let unlike: Vec<f64> =
        seeds.iter().map(|seed| lead(&seed.unlike, "importance-pattern", &["importance"], by_page)).collect();
    let never: Vec<f64> = seeds.iter().map(|seed| 1.0 - seed.all_resources).collect();
    let coherence: Measure = |outcome| outcome.coherence_weighted;
    let lowest: Vec<f64> = seeds
        .iter()
        .map(|seed| {
            let others = ["relevance", "sharc", "coherence", "importance", "pattern", "importance-pattern"];
            let behind = |other: &&str| lead(&seed.lines, other, &["frequency"], coherence);
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

/// Means over seeds by budget.
fn charts(seeds: &[SeedResult]) -> Vec<(String, Chart)> {
    let figures: [(&str, Measure); 4] = [
        ("P-PATTERN Fig. 8: versions captured", |outcome| outcome.completeness_count),
        ("P-PATTERN Fig. 9: weight captured", |outcome| outcome.completeness_pooled),
        ("P-QUALITY Fig. 7: weighted completeness", |outcome| outcome.completeness_weighted),
        ("P-QUALITY Fig. 8: weighted coherence", |outcome| outcome.coherence_weighted),
    ];
    let colours = ["#868e96", "#a61e4d", "#7048e8", "#1098ad", "#e8900c", "#2b8a3e", "#d9480f", "#0b5fff"];
    let names: Vec<String> = seeds
        .first()
        .and_then(|seed| seed.lines.first())
        .map(|line| line.results.iter().map(|outcome| outcome.strategy.clone()).collect())
        .unwrap_or_default();
    let chart = |(title, measure): (&str, Measure)| {
        let mean = |at: usize, strategy: usize| {
            let values: Vec<f64> =
                seeds.iter().map(|seed| measure(&seed.lines[at].results[strategy])).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        let series = names.iter().enumerate().map(|(strategy, name)| Series {
            label: name.clone(),
            colour: colours[strategy % colours.len()],
            stroke: if name == SHIPPED { Stroke::Bold } else { Stroke::Thin },
            points: BUDGETS.iter().enumerate().map(|(at, budget)| (*budget, mean(at, strategy))).collect(),
        });
        let chart = Chart {
            x_label: "M: pages fetched per hour".to_owned(),
            y_label: "share, mean over seeds".to_owned(),
            x_ticks: BUDGETS.map(|budget| (budget, format!("{:.0} %", budget * 100.0))).to_vec(),
            x_is_log: false,
            series: series.collect(),
        };
        (title.to_owned(), chart)
    };
    figures.into_iter().map(chart).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Verdict;

    #[test]
    fn every_claim_has_an_interval_and_an_honest_verdict() {
        let size = WorldSize { n_seeds: 3, n_pages: 60, burn_in: 3, days: 4 };
        let mut all = Reproduction::default();
        reproduce(&[Paper::Pattern, Paper::Quality], size, &mut all);
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
    }
}
