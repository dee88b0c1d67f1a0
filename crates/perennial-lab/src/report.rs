//! Writes a self-contained HTML page with the figures of P-PATTERN and P-QUALITY, drawn from the results, and the
//! findings of the papers (docs/papers.md, The papers' world).

use std::fmt::Write as _;

use crate::chart::{Chart, REPORT_STYLE, Series, Stroke};
use crate::claims::{Claim, ClaimVerdict, check_claims, check_unlike_claim};
use crate::experiment::{
    BudgetResult, CompletenessBounds, Experiment, FRONTIER, StrategyResult, StrategyRun,
};
use crate::strategy::{BaselineStrategy, SimulatedStrategy};
use crate::world::World;
use perennial_core::text::markup::escaped;

use perennial_engine::html::page;

#[derive(Clone, Debug, PartialEq)]
pub struct SimulationReport {
    /// The command that repeats these results.
    pub command: String,
    /// A description of the world.
    pub world: String,
    pub lines: Vec<BudgetResult>,
    /// Importance-Pattern and expected gain by the number of periods per day (P-PATTERN Fig. 7).
    pub periods: Vec<(u16, Vec<BudgetResult>)>,
    /// Importance and Importance-Pattern in a world with significantly different patterns (P-QUALITY 7); empty for
    /// traces.
    pub unlike: Vec<BudgetResult>,
}

/// The numbers of periods per day in P-PATTERN Figure 7 that divide a day into whole minutes.
const FIGURE_7_PERIODS: [u16; 12] = [2, 3, 4, 6, 8, 12, 24, 30, 40, 60, 80, 120];
const FIGURE_7_BUDGETS: [f64; 3] = [0.1, 0.2, 0.3];

/// How often [`run_over_periods`] calls `step`.
pub const N_STEPS_OF_PERIODS: u64 = (FIGURE_7_PERIODS.len() * FIGURE_7_BUDGETS.len() * 2) as u64;

/// Runs Importance-Pattern and expected gain with different numbers of periods per day.
pub fn run_over_periods(
    experiment: &Experiment,
    world: &World,
    seed: u64,
    step: impl Fn() + Sync,
) -> Vec<(u16, Vec<BudgetResult>)> {
    let of = with_strategies(
        experiment,
        [SimulatedStrategy::IMPORTANCE_PATTERN, SimulatedStrategy::EXPECTED_GAIN],
    );
    let run = |n_periods| Experiment { n_periods, ..of.clone() }.run(world, seed, &step);
    FIGURE_7_PERIODS.iter().map(|n_periods| (*n_periods, run(*n_periods))).collect()
}

/// Runs Importance with and without patterns in a world with significantly different patterns.
pub fn run_on_unlike(experiment: &Experiment, world: &World, seed: u64) -> Vec<BudgetResult> {
    with_strategies(experiment, [BaselineStrategy::Importance.into(), SimulatedStrategy::IMPORTANCE_PATTERN])
        .run(world, seed, || {})
}

fn with_strategies(experiment: &Experiment, strategies: [SimulatedStrategy; 2]) -> Experiment {
    let learned = experiment.learns();
    Experiment {
        runs: strategies.map(|strategy| StrategyRun { strategy, learned }).to_vec(),
        budgets: FIGURE_7_BUDGETS.to_vec(),
        bounds: false,
        ..experiment.clone()
    }
}

pub fn describe_world(
    experiment: &Experiment,
    world: &World,
    (burn_in, days): (u32, u32),
    seed: u64,
) -> String {
    format!(
        "World \"{}\": {} pages of {} sites, {} changes; {days} days after a burn-in of {burn_in} days; seed {seed}; \
         patterns {}.",
        world.name,
        world.pages.len(),
        world.sites.len(),
        world.n_changes(),
        if experiment.learns() { "learned while crawling" } else { "known" }
    )
}

/// A smaller difference of completeness is neither growth nor decline.
const PERIOD_EFFECT: f64 = 0.02;

/// A figure of a paper.
struct PaperFigure {
    id: &'static str,
    title: &'static str,
    source: &'static str,
    says: &'static str,
    y_label: &'static str,
    measure: fn(&StrategyResult) -> f64,
    strategies: &'static [&'static str],
    with_bounds: bool,
}

const PATTERN_PAPER: &[&str] =
    &["fixed-interval", "relevance", "frequency", "sharc", "coherence", "pattern", "expected-gain"];
const QUALITY_PAPER: &[&str] = &[
    "fixed-interval",
    "adaptive-interval",
    "relevance",
    "frequency",
    "sharc",
    "coherence",
    "importance",
    "pattern",
    "importance-pattern",
    "expected-gain",
];

const FIGURES: [PaperFigure; 4] = [
    PaperFigure {
        id: "pattern-8",
        title: "Versions captured",
        source: "P-PATTERN, Figure 8",
        says: "Importance is ignored: the share of versions captured, by the share of pages that may be fetched per hour. \
               Pattern outperforms Relevance, SHARC, Coherence and Frequency; it gains around 10 % with few resources.",
        y_label: "completeness by count",
        measure: |outcome| outcome.completeness_count,
        strategies: PATTERN_PAPER,
        with_bounds: false,
    },
    PaperFigure {
        id: "pattern-9",
        title: "Weight captured",
        source: "P-PATTERN, Figure 9",
        says: "Versions weigh the page's importance times that of the change. The pattern strategy with importance gains around \
               20 % over Relevance, SHARC, Coherence and Frequency.",
        y_label: "weighted completeness, pooled",
        measure: |outcome| outcome.completeness_pooled,
        strategies: &["relevance", "frequency", "sharc", "coherence", "importance-pattern", "expected-gain"],
        with_bounds: true,
    },
    PaperFigure {
        id: "quality-7",
        title: "Weighted completeness",
        source: "P-QUALITY, Figure 7",
        says: "Completeness grows with the resources and never reaches 100 %. Importance-Pattern improves it by around 20 % over \
               Relevance, SHARC, Coherence and Frequency with few resources, and is 5 % better than Importance. Drawn here by \
               Definition 5.13: the mean over pages of each page's own share.",
        y_label: "weighted completeness, Definition 5.13",
        measure: |outcome| outcome.completeness_weighted,
        strategies: QUALITY_PAPER,
        with_bounds: false,
    },
    PaperFigure {
        id: "quality-8",
        title: "Weighted coherence",
        source: "P-QUALITY, Figure 8",
        says: "The weight of the most numerous set of captured versions that existed at one instant. Importance-Pattern is \
               highest, around 10 % above SHARC, Coherence and Relevance; Frequency is lowest.",
        y_label: "weighted coherence",
        measure: |outcome| outcome.coherence_weighted,
        strategies: QUALITY_PAPER,
        with_bounds: false,
    },
];

/// Two measures drawn against each other.
struct Frontier {
    title: &'static str,
    x_label: &'static str,
    y_label: &'static str,
    /// Both measures of a result.
    point: fn(&StrategyResult) -> (f64, f64),
}

const FRONTIERS: [Frontier; 3] = [
    Frontier {
        title: "Importance against coherence",
        x_label: "completeness, pooled",
        y_label: "weighted coherence",
        point: |outcome| (outcome.completeness_pooled, outcome.coherence_weighted),
    },
    Frontier {
        title: "Importance against every page",
        x_label: "completeness, pooled",
        y_label: "completeness, Definition 5.13",
        point: |outcome| (outcome.completeness_pooled, outcome.completeness_weighted),
    },
    Frontier {
        title: "Freshness against coherence",
        x_label: "freshness",
        y_label: "weighted coherence",
        point: |outcome| (outcome.freshness, outcome.coherence_weighted),
    },
];

fn frontier_chart(line: &BudgetResult, frontier: &Frontier) -> Chart {
    let mut series: Vec<Series> = Vec::new();
    let mut curve: Vec<(f64, f64)> = Vec::new();
    for outcome in &line.results {
        let point = (frontier.point)(outcome);
        let (label, colour) = match outcome.strategy.strip_prefix(FRONTIER) {
            Some(goal) => {
                curve.push(point);
                (goal.to_owned(), "#0b5fff")
            }
            None if outcome.strategy == "expected-gain" => continue,
            None => {
                let (label, colour) = label_and_colour(&outcome.strategy);
                (label.to_owned(), colour)
            }
        };
        series.push(Series { label, colour, stroke: Stroke::Thin, points: vec![point] });
    }
    curve.sort_by(|a, b| a.0.total_cmp(&b.0));
    series.push(Series {
        label: "goals".to_owned(),
        colour: "#0b5fff",
        stroke: Stroke::Dashed,
        points: curve,
    });
    let most = series.iter().flat_map(|series| &series.points).map(|point| point.0).fold(0.0, f64::max);
    let step = if most > 0.5 { 0.1 } else { 0.05 };
    let ticks = (0..=((most / step).ceil() as usize))
        .map(|n| (n as f64 * step, format!("{:.0} %", 100.0 * n as f64 * step)));
    Chart {
        x_label: frontier.x_label.to_owned(),
        y_label: frontier.y_label.to_owned(),
        x_ticks: ticks.collect(),
        x_is_log: false,
        series,
    }
}

/// The label of a strategy, and its colour in every figure.
fn label_and_colour(strategy: &str) -> (&'static str, &'static str) {
    match strategy {
        "expected-gain" => ("Expected gain", "#0b5fff"),
        "importance-pattern" => ("Importance-Pattern", "#d9480f"),
        "importance" => ("Importance", "#e8900c"),
        "pattern" => ("Pattern", "#2b8a3e"),
        "frequency" => ("Frequency", "#a61e4d"),
        "sharc" => ("SHARC", "#7048e8"),
        "coherence" => ("Coherence", "#1098ad"),
        "relevance" => ("Relevance", "#868e96"),
        "adaptive-interval" => ("Adaptive interval", "#b08968"),
        "fixed-interval" => ("Fixed interval", "#495057"),
        _ => ("other", "#212529"),
    }
}

impl SimulationReport {
    pub fn to_html(&self) -> String {
        let mut html = String::new();
        let _ = write!(
            html,
            "<main><h1>What a crawler catches</h1><p class=lead>{}</p><p>Made by <code>{}</code>. The horizontal axis is M: \
             fetches per hour, as a share of the number of pages. Every figure comes from the scheduler that the crawler uses, \
             under a virtual clock.</p>",
            escaped(&self.world),
            escaped(&self.command)
        );
        self.write_summary(&mut html);
        self.write_claims(&mut html);
        self.write_frontier(&mut html);
        self.write_periods(&mut html);
        for figure in &FIGURES {
            self.write_figure(figure, &mut html);
        }
        self.write_tables(&mut html);
        html.push_str("</main>");
        page("What a crawler catches", REPORT_STYLE, &html)
    }

    /// Our strategy, Importance-Pattern and the clairvoyant bound, at the first three budgets.
    fn write_summary(&self, html: &mut String) {
        let mut cards = String::new();
        for line in self.lines.iter().take(3) {
            let of = |name: &str| line.results.iter().find(|outcome| outcome.strategy == name);
            let (Some(ours), Some(theirs)) = (of("expected-gain"), of("importance-pattern")) else {
                continue;
            };
            let _ = write!(
                cards,
                "<div class=card><div class=big>{:.1} %</div><div>of the importance of all changes captured at M = {:.0} %</div>\
                 <div class=dim>Importance-Pattern {:.1} %, clairvoyant {}</div></div>",
                ours.completeness_pooled * 100.0,
                line.budget * 100.0,
                theirs.completeness_pooled * 100.0,
                percent(line.bounds.map(|bounds| bounds.clairvoyant))
            );
        }
        let _ = write!(html, "<div class=cards>{cards}</div>");
    }

    fn write_claims(&self, html: &mut String) {
        html.push_str("<h2>Do the papers' findings hold in this world?</h2><p class=dim>One world has no interval; <code>perennial lab reproduce</code> judges by several.</p><table class=claims><tbody>");
        let unlike = (!self.unlike.is_empty()).then(|| check_unlike_claim(&self.unlike));
        for claim in check_claims(&self.lines).iter().chain(&unlike).chain(self.period_claim().iter()) {
            let class = match claim.verdict {
                ClaimVerdict::Holds => "yes",
                ClaimVerdict::InPart | ClaimVerdict::ByLess => "part",
                ClaimVerdict::Fails => "no",
                ClaimVerdict::NotRun => "dim",
            };
            let word = claim.verdict.name();
            let _ = write!(
                html,
                "<tr><td class={class}>{word}</td><td>{}</td><td>{}<div class=dim>{}</div></td></tr>",
                escaped(claim.source),
                escaped(claim.says),
                escaped(&claim.because)
            );
        }
        html.push_str("</tbody></table>");
    }

    /// Completeness of a strategy by the number of periods, at a budget.
    fn completeness_by_periods(&self, strategy: &str, budget: f64) -> Vec<(f64, f64)> {
        let value = |lines: &[BudgetResult]| {
            let line = lines.iter().find(|line| (line.budget - budget).abs() < 1e-9)?;
            let outcome = line.results.iter().find(|outcome| outcome.strategy == strategy)?;
            Some(outcome.completeness_pooled)
        };
        self.periods.iter().filter_map(|(n, lines)| Some((f64::from(*n), value(lines)?))).collect()
    }

    fn period_claim(&self) -> Option<Claim> {
        let budget = self.periods.first()?.1.first()?.budget;
        let points = self.completeness_by_periods("importance-pattern", budget);
        let at = |n: f64| points.iter().find(|point| point.0 == n).map(|point| point.1);
        let (few, day, many) = (points.first()?.1, at(24.0)?, points.last()?.1);
        let percent = |share: f64| percent(Some(share));
        Some(Claim {
            source: "P-PATTERN Fig. 7",
            says: "completeness grows with the number of periods and is almost constant beyond 24 per day",
            verdict: match (day - few >= PERIOD_EFFECT, (many - day).abs() < PERIOD_EFFECT) {
                (true, true) => ClaimVerdict::Holds,
                (false, false) => ClaimVerdict::Fails,
                _ => ClaimVerdict::InPart,
            },
            because: format!(
                "at M = {:.0} %: {} with the fewest, {} with 24, {} with the most; lists are made at the same times with each",
                budget * 100.0,
                percent(few),
                percent(day),
                percent(many)
            ),
        })
    }

    fn write_periods(&self, html: &mut String) {
        let Some((_, first)) = self.periods.first() else { return };
        let mut series = Vec::new();
        for (line, colour) in first.iter().zip(["#f4a259", "#d9480f", "#8c2f0b"]) {
            let label = format!("Imp.-Pattern, M = {:.0} %", line.budget * 100.0);
            let points = self.completeness_by_periods("importance-pattern", line.budget);
            series.push(Series { label, colour, stroke: Stroke::Thin, points });
        }
        for (line, colour) in first.iter().zip(["#74a9ff", "#0b5fff", "#06368f"]) {
            let label = format!("Exp. gain, M = {:.0} %", line.budget * 100.0);
            let points = self.completeness_by_periods("expected-gain", line.budget);
            series.push(Series { label, colour, stroke: Stroke::Bold, points });
        }
        let ticks = self.periods.iter().map(|(n, _)| (f64::from(*n), n.to_string())).collect();
        let chart = Chart {
            x_label: "periods per day".to_owned(),
            y_label: "weighted completeness, pooled".to_owned(),
            x_ticks: ticks,
            x_is_log: true,
            series,
        };
        let says = "Completeness of the pattern strategy by the number of periods of a day, M = 10, 20, 30 %: it grows with the \
                    number and is almost constant beyond 24.";
        write_section(html, "pattern-7", "Length of a period", "P-PATTERN, Figure 7", says, &chart);
    }

    /// The frontier between measures: the goals as a line, every strategy as a point.
    fn write_frontier(&self, html: &mut String) {
        let is_goal = |outcome: &&StrategyResult| outcome.strategy.starts_with(FRONTIER);
        for line in self.lines.iter().filter(|line| line.results.iter().any(|outcome| is_goal(&outcome))) {
            let percent = line.budget * 100.0;
            for (place, frontier) in FRONTIERS.iter().enumerate() {
                let says = format!(
                    "At M = {percent:.0} %. The line joins the goals of expected gain; every strategy is a point. Right and up is better: \
                     a goal for one measure loses in the other."
                );
                let chart = frontier_chart(line, frontier);
                let id = format!("frontier-{percent:.0}-{place}");
                write_section(html, &id, frontier.title, "P-QUALITY 5, P-PATTERN 10", &says, &chart);
            }
        }
    }

    fn write_figure(&self, figure: &PaperFigure, html: &mut String) {
        let mut series = Vec::new();
        if figure.with_bounds && self.lines.iter().any(|line| line.bounds.is_some()) {
            let points = |pick: fn(&CompletenessBounds) -> f64| {
                self.lines
                    .iter()
                    .filter_map(|line| Some((line.budget, pick(line.bounds.as_ref()?))))
                    .collect()
            };
            let clairvoyant = points(|bounds| bounds.clairvoyant);
            let known = points(|bounds| bounds.pattern_known);
            for (label, points) in [("bound: clairvoyant", clairvoyant), ("bound: patterns known", known)] {
                series.push(Series {
                    label: label.to_owned(),
                    colour: "#adb5bd",
                    stroke: Stroke::Dashed,
                    points,
                });
            }
        }
        series.extend(figure.strategies.iter().flat_map(|name| self.strategy_series(name, figure.measure)));
        let ticks = self.lines.iter().map(|line| (line.budget, format!("{:.0} %", line.budget * 100.0)));
        let chart = Chart {
            x_label: "M: pages fetched per hour".to_owned(),
            y_label: figure.y_label.to_owned(),
            x_ticks: ticks.collect(),
            x_is_log: true,
            series,
        };
        write_section(html, figure.id, figure.title, figure.source, figure.says, &chart);
    }

    /// One series for known and one for learned patterns, if both ran.
    fn strategy_series(&self, strategy: &str, measure: fn(&StrategyResult) -> f64) -> Vec<Series> {
        let (label, colour) = label_and_colour(strategy);
        let both = |outcome: &StrategyResult| {
            self.lines
                .iter()
                .flat_map(|line| &line.results)
                .any(|other| other.strategy == outcome.strategy && other.learned != outcome.learned)
        };
        let mut all = Vec::new();
        for learned in [false, true] {
            let matches =
                |outcome: &&StrategyResult| outcome.strategy == strategy && outcome.learned == learned;
            let points: Vec<(f64, f64)> = self
                .lines
                .iter()
                .filter_map(|line| Some((line.budget, measure(line.results.iter().find(matches)?))))
                .collect();
            let is_both = self.lines.iter().flat_map(|line| &line.results).find(matches).is_some_and(both);
            let label = if learned && is_both { format!("{label}, learned") } else { label.to_owned() };
            let stroke = if strategy == "expected-gain" { Stroke::Bold } else { Stroke::Thin };
            if !points.is_empty() {
                all.push(Series { label, colour, stroke, points });
            }
        }
        all
    }

    fn write_tables(&self, html: &mut String) {
        html.push_str("<h2>All figures</h2>");
        for line in &self.lines {
            let _ = write!(
                html,
                "<h3>M = {:.0} %, lists every {:.0} minutes, seed {}</h3><p class=dim>Bounds: clairvoyant {}, patterns known \
                 {}.</p><table><thead><tr><th>strategy<th>pooled<th>Def. 5.13<th>Def. 5.14<th>by count<th>coherence<th>without first \
                 versions<th>coherence, heaviest set<th>freshness<th>share of clairvoyant<th>blur</thead><tbody>",
                line.budget * 100.0,
                line.slot_minutes,
                line.seed,
                percent(line.bounds.map(|bounds| bounds.clairvoyant)),
                percent(line.bounds.map(|bounds| bounds.pattern_known))
            );
            for outcome in &line.results {
                write_row(outcome, html);
            }
            html.push_str("</tbody></table>");
        }
    }
}

/// A share in percent, if it was computed.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "not computed".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

fn write_row(outcome: &StrategyResult, html: &mut String) {
    let class = if outcome.strategy == "expected-gain" { " class=ours" } else { "" };
    let learned = if outcome.learned { " <span class=dim>learned</span>" } else { "" };
    let name = match outcome.strategy.strip_prefix(FRONTIER) {
        Some(goal) => format!("Expected gain, goal {goal}"),
        None => label_and_colour(&outcome.strategy).0.to_owned(),
    };
    let _ = write!(html, "<tr{class}><td>{}{learned}</td>", escaped(&name));
    for value in [
        outcome.completeness_pooled,
        outcome.completeness_weighted,
        outcome.completeness_by_site,
        outcome.completeness_count,
        outcome.coherence_weighted,
        outcome.coherence_of_changed,
        outcome.coherence_max_weight,
        outcome.freshness,
    ] {
        let _ = write!(html, "<td class=n>{:.1}</td>", value * 100.0);
    }
    let _ = write!(html, "<td class=n>{}</td>", percent(outcome.share_of_clairvoyant));
    let _ = write!(html, "<td class=n>{:.2}</td>", outcome.blur);
    html.push_str("</tr>");
}

fn write_section(html: &mut String, id: &str, title: &str, source: &str, says: &str, chart: &Chart) {
    let _ = write!(
        html,
        "<section id={id}><h2>{}</h2><div class=figure><div class=plot>{}</div><aside><div class=source>{}</div><p>{}</p></aside>\
         </div></section>",
        escaped(title),
        chart.to_svg(),
        escaped(source),
        escaped(says)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(budget: f64) -> BudgetResult {
        let outcome = |strategy: &str| StrategyResult {
            strategy: strategy.to_owned(),
            learned: false,
            completeness_pooled: 0.5 + budget,
            completeness_weighted: 0.4,
            completeness_by_site: 0.4,
            completeness_count: 0.3,
            coherence_weighted: 0.9,
            coherence_of_changed: 0.8,
            coherence_max_weight: 0.95,
            freshness: 0.5,
            blur: 1.5,
            share_of_clairvoyant: None,
        };
        BudgetResult {
            world: "w".to_owned(),
            budget,
            slot_minutes: 60.0,
            seed: 1,
            results: QUALITY_PAPER.iter().map(|name| outcome(name)).collect(),
            bounds: None,
        }
    }

    #[test]
    fn every_figure_and_table_is_there_and_nothing_is_loaded_from_outside() {
        let report = SimulationReport {
            command: "perennial lab simulate --pages <5>".to_owned(),
            world: "a small world".to_owned(),
            lines: vec![line(0.1), line(0.2)],
            periods: vec![(2, vec![line(0.1)]), (24, vec![line(0.1)]), (120, vec![line(0.1)])],
            unlike: vec![line(0.1)],
        };
        let html = report.to_html();
        for id in ["pattern-7", "pattern-8", "pattern-9", "quality-7", "quality-8"] {
            assert!(html.contains(&format!("<section id={id}>")), "{id}");
        }
        assert!(html.contains("&lt;5&gt;") && html.contains("60.0"));
        assert!(html.contains("clairvoyant not computed"), "a bound that was not computed has no value");
        assert!(!html.contains("src=") && !html.contains("href=") && !html.contains("http"));
    }
}
