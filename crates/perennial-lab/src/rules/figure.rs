//! Computes the points of P-NEAR Figures 5 and 6, from histories or synthetic trees.

use std::collections::BTreeSet;

use perennial_core::directory::{Alpha, Significance, SiteHistory, SiteKind, Subsumption, Thresholds, mine};
use serde::Serialize;

use crate::reproduce::fastest;

use super::replay::{ReplayConfig, ReplayResult, replay};
use super::{
    ExclusiveSite, PageRanking, PlanOutcome, Protocol, RandomTrees, SkipAim, SkipPlan, evaluate_plan,
};

/// A point of Figure 5; means over sites.
#[derive(Serialize)]
pub struct FigureRow {
    pub figure: String,
    /// The varied parameter and its value.
    pub x: String,
    pub plan: String,
    /// The number of sites, or the name of the only one.
    pub sites: String,
    /// Rules per window.
    pub n_rules: f64,
    /// Share of the pages that is skipped.
    #[serde(rename = "BR")]
    pub bypass: f64,
    /// Overall precision.
    #[serde(rename = "OP")]
    pub precision: f64,
    /// Overall recall.
    #[serde(rename = "OR")]
    pub recall: f64,
    /// Change recall by its definition.
    #[serde(rename = "CR5")]
    pub change_recall: f64,
    /// Change recall as the paper computes it.
    #[serde(rename = "CR9")]
    pub change_recall_9: f64,
}

/// A point of Figure 6.
#[derive(Serialize)]
pub struct MiningTimeRow {
    pub figure: String,
    /// The varied parameter and its value.
    pub x: String,
    /// Share of the pages that change from one version to the next.
    pub change: f64,
    /// Time to organise the changes.
    pub phase_1_ms: f64,
    /// Time to generate the rules.
    pub phase_2_ms: f64,
    pub n_rules: usize,
    /// Memory of the General Delta Tree.
    pub bytes_per_node: f64,
}

/// The result of the crawler's scheduler on one history.
#[derive(Serialize)]
pub struct ReplayRow {
    pub site: String,
    /// Visits per week, as a share of the pages.
    pub budget: f64,
    /// Whether directories may be skipped.
    pub directories: bool,
    #[serde(flatten)]
    pub result: ReplayResult,
}

/// The points of a Figure 5, or of the comparison on exclusive directories.
pub fn figure_cases(figure: &str, histories: &[SiteHistory]) -> Vec<FigureCase> {
    match figure {
        "5a" => [false, true].into_iter().flat_map(distance_cases).collect(),
        "5b" => [5, 10, 15, 20, 25, 30, 40].into_iter().flat_map(training_cases).collect(),
        "5c" => site_groups(histories).into_iter().flat_map(site_group_cases).collect(),
        "5d" => {
            histories.iter().enumerate().filter_map(|(at, history)| best_alpha_case(at, history)).collect()
        }
        "5e" => subsumed_cases(Subsumption::ByRule),
        "5f" => subsumed_cases(Subsumption::ByPattern),
        _ => [0.5, 0.8].into_iter().flat_map(exclusive_cases).collect(),
    }
}

/// A point of Figure 5 to compute.
pub struct FigureCase {
    x: String,
    name: String,
    plan: SkipPlan,
    protocol: Protocol,
    /// The sites that count; `None` for all.
    group: Option<SiteGroup>,
    site: Option<usize>,
}

/// Sites of a domain. Sites without a host are grouped by their kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SiteGroup {
    Domain(String),
    Served,
    Source,
}

impl SiteGroup {
    fn new(history: &SiteHistory) -> SiteGroup {
        match (history.domain(), history.kind) {
            (Some(domain), _) => SiteGroup::Domain(domain.to_owned()),
            (None, SiteKind::Served) => SiteGroup::Served,
            (None, SiteKind::Source) => SiteGroup::Source,
        }
    }

    fn name(&self) -> String {
        match self {
            SiteGroup::Domain(domain) => format!(".{domain}"),
            SiteGroup::Served => "no host, served".to_owned(),
            SiteGroup::Source => "no host, source".to_owned(),
        }
    }
}

fn site_groups(histories: &[SiteHistory]) -> BTreeSet<SiteGroup> {
    histories.iter().map(SiteGroup::new).collect()
}

impl FigureCase {
    /// Evaluates the plan on the selected sites.
    pub fn row(&self, figure: &str, histories: &[SiteHistory]) -> FigureRow {
        let is_selected = |(at, history): &(usize, &SiteHistory)| {
            self.group.as_ref().is_none_or(|group| *group == SiteGroup::new(history))
                && self.site.is_none_or(|site| site == *at)
        };
        let of = histories.iter().enumerate().filter(is_selected);
        let outcomes: Vec<PlanOutcome> = of
            .map(|(_, history)| evaluate_plan(history, &self.protocol, self.plan))
            .filter(|outcome| outcome.n_windows > 0)
            .collect();
        let mean = |value: fn(&PlanOutcome) -> f64| {
            outcomes.iter().map(value).sum::<f64>() / outcomes.len().max(1) as f64
        };
        FigureRow {
            figure: figure.to_owned(),
            x: self.x.clone(),
            plan: self.name.clone(),
            sites: self
                .site
                .map_or_else(|| format!("{} sites", outcomes.len()), |at| histories[at].name.clone()),
            n_rules: mean(|outcome| outcome.n_rules),
            bypass: mean(|outcome| outcome.mean.bypass),
            precision: mean(|outcome| outcome.mean.precision),
            recall: mean(|outcome| outcome.mean.recall),
            change_recall: mean(|outcome| outcome.mean.change_recall),
            change_recall_9: mean(|outcome| outcome.mean.change_recall_9),
        }
    }
}

/// Adds to Figures 5e and 5f what the subsumed rules have relative to the others, as the paper draws them.
pub fn with_ratios(rows: Vec<FigureRow>) -> Vec<FigureRow> {
    let mut all = Vec::new();
    let mut rows = rows.into_iter();
    while let (Some(others), Some(subsumed)) = (rows.next(), rows.next()) {
        let ratio = |of: fn(&FigureRow) -> f64| of(&subsumed) / of(&others).max(1e-9);
        let relative = FigureRow {
            figure: subsumed.figure.clone(),
            x: subsumed.x.clone(),
            plan: "subsumed / near".to_owned(),
            sites: subsumed.sites.clone(),
            n_rules: ratio(|row| row.n_rules),
            bypass: ratio(|row| row.bypass),
            precision: ratio(|row| row.precision),
            recall: ratio(|row| row.recall),
            change_recall: ratio(|row| row.change_recall),
            change_recall_9: ratio(|row| row.change_recall_9),
        };
        all.extend([others, subsumed, relative]);
    }
    all
}

/// A third of the pages is skipped, as in the paper's mean over its sites.
fn default_protocol() -> Protocol {
    Protocol { aim: SkipAim::Skip(1.0 / 3.0), ..Protocol::default() }
}

/// Often the site as a whole has no rule. The rules of all directories and the combined plan then show the trend.
fn plan_cases(x: &str, protocol: Protocol, group: Option<&SiteGroup>) -> Vec<FigureCase> {
    let near = Thresholds::default();
    let plans = [
        ("near", SkipPlan::Near(near)),
        ("near-everywhere", SkipPlan::NearEverywhere(near)),
        ("static", SkipPlan::Static),
        ("combined", SkipPlan::Ranked(PageRanking::Combined)),
    ];
    let case = |(name, plan): (&str, SkipPlan)| FigureCase {
        x: x.to_owned(),
        name: name.to_owned(),
        plan,
        protocol,
        group: group.cloned(),
        site: None,
    };
    plans.into_iter().map(case).collect()
}

fn distance_cases(accumulate: bool) -> Vec<FigureCase> {
    let at = |distance: usize| {
        let x = format!("distance {distance}{}", if accumulate { ", accumulating" } else { "" });
        plan_cases(&x, Protocol { distance, accumulate, ..default_protocol() }, None)
    };
    (1..=10).flat_map(at).collect()
}

fn training_cases(train: usize) -> Vec<FigureCase> {
    plan_cases(&format!("training {train}"), Protocol { train, ..default_protocol() }, None)
}

fn site_group_cases(group: SiteGroup) -> Vec<FigureCase> {
    plan_cases(&group.name(), default_protocol(), Some(&group))
}

fn best_alpha_case(site: usize, history: &SiteHistory) -> Option<FigureCase> {
    let alphas = [0.01, 0.02, 0.03, 0.04, 0.05].map(|alpha| {
        let plan =
            SkipPlan::NearEverywhere(Thresholds { alpha: Alpha::Fixed(alpha), ..Thresholds::default() });
        (alpha, plan, evaluate_plan(history, &default_protocol(), plan).mean.bypass)
    });
    let best = alphas.into_iter().reduce(|best, next| if next.2 > best.2 { next } else { best });
    let (alpha, plan, bypass) = best?;
    let x = if bypass > 0.0 { format!("best alpha {alpha}") } else { "no rule at any alpha".to_owned() };
    Some(FigureCase {
        x,
        name: "near".to_owned(),
        plan,
        protocol: default_protocol(),
        group: None,
        site: Some(site),
    })
}

fn subsumed_cases(by: Subsumption) -> Vec<FigureCase> {
    let at = |beta: f64| {
        let near = Thresholds { beta, theta: 0.5, ..Thresholds::default() };
        [("near", SkipPlan::NearSubsumed(near, None)), ("subsumed", SkipPlan::NearSubsumed(near, Some(by)))]
            .map(|(name, plan)| {
                let (x, name) = (format!("beta {beta}"), name.to_owned());
                FigureCase { x, name, plan, protocol: default_protocol(), group: None, site: None }
            })
    };
    [0.1, 0.2, 0.3].into_iter().flat_map(at).collect()
}

fn exclusive_cases(skip: f64) -> Vec<FigureCase> {
    let plans = [
        ("rate", SkipPlan::Ranked(PageRanking::Rate)),
        ("in-rounds", SkipPlan::Ranked(PageRanking::InRounds)),
        ("combined", SkipPlan::Ranked(PageRanking::Combined)),
        ("oracle", SkipPlan::Oracle),
    ];
    let protocol = Protocol { aim: SkipAim::Skip(skip), ..Protocol::default() };
    let case = |(name, plan): (&str, SkipPlan)| {
        let (x, name) = (format!("skip {skip}"), name.to_owned());
        FigureCase { x, name, plan, protocol, group: None, site: None }
    };
    plans.into_iter().map(case).collect()
}

/// Synthetic sites. For the figures about subsumed rules they are small random trees, in which rules arise by chance.
pub fn synthetic_sites(figure: &str) -> Vec<SiteHistory> {
    let exclusive = |seed| ExclusiveSite { n_pairs: 2, seed, ..ExclusiveSite::default() }.build();
    match figure {
        "5e" | "5f" => (1..=40).map(small_trees).collect(),
        _ => (1..=10).map(exclusive).collect(),
    }
}

/// Small random trees, in which rules arise by chance.
pub fn small_trees(seed: u64) -> SiteHistory {
    RandomTrees { n_nodes: 400, fan_out: 4, depth: 6, n_versions: 40, change: 0.06, seed }.build()
}

/// A point of Figure 6 to compute.
pub struct MiningCase {
    x: String,
    trees: RandomTrees,
    thresholds: Thresholds,
}

/// The points of a Figure 6.
pub fn mining_cases(figure: &str) -> Vec<MiningCase> {
    let usual =
        Thresholds { alpha: Alpha::Fixed(0.1), beta: 0.1, gamma: Some(0.1), theta: 0.5, is_strict: false };
    let case = |x: String, trees, thresholds| MiningCase { x, trees, thresholds };
    let at = |change: f64| {
        let trees = RandomTrees { change, ..RandomTrees::default() };
        match figure {
            "6a" => [1000, 2000, 4000, 8000, 16_000]
                .map(|n_nodes| case(format!("{n_nodes} nodes"), RandomTrees { n_nodes, ..trees }, usual))
                .into(),
            "6b" => [50, 100, 200, 400, 800]
                .map(|n_versions| {
                    case(format!("{n_versions} versions"), RandomTrees { n_versions, ..trees }, usual)
                })
                .into(),
            _ => {
                let trees = RandomTrees { n_nodes: 16_000, ..trees };
                let thresholds = |value: f64| {
                    [
                        case(
                            format!("alpha {value}"),
                            trees,
                            Thresholds { alpha: Alpha::Fixed(value), ..usual },
                        ),
                        case(format!("beta {value}"), trees, Thresholds { beta: value, ..usual }),
                        case(format!("gamma {value}"), trees, Thresholds { gamma: Some(value), ..usual }),
                    ]
                };
                [0.1, 0.3, 0.4, 0.5, 0.6].into_iter().flat_map(thresholds).collect::<Vec<_>>()
            }
        }
    };
    [0.03, 0.06, 0.12].into_iter().flat_map(at).collect()
}

impl MiningCase {
    /// Builds the trees and times both phases.
    pub fn time(&self, figure: &str) -> MiningTimeRow {
        let MiningCase { x, trees, thresholds } = self;
        let history = trees.build();
        let alpha = if let Alpha::Fixed(alpha) = thresholds.alpha { alpha } else { 0.1 };
        let (phase_1, delta) = fastest(|| history.delta_of_last(trees.n_versions, Significance::From(alpha)));
        let (phase_2, mined) = fastest(|| mine(&delta, thresholds, false));
        MiningTimeRow {
            figure: figure.to_owned(),
            x: x.clone(),
            change: trees.change,
            phase_1_ms: phase_1 * 1000.0,
            phase_2_ms: phase_2 * 1000.0,
            n_rules: mined.rules.len(),
            bytes_per_node: delta.n_bytes() as f64 / delta.tree().len() as f64,
        }
    }
}

/// Replays the end of a history at two budgets, with and without skipped directories.
pub fn replay_rows(history: &SiteHistory) -> impl Iterator<Item = ReplayRow> {
    let weeks = (history.versions.len().saturating_sub(1) / 2).min(40);
    [(0.2, false), (0.2, true), (0.5, false), (0.5, true)].into_iter().filter_map(
        move |(budget, directories)| {
            let config = ReplayConfig { burn_in: weeks, n_weeks: weeks, budget, directories, seed: 1 };
            let result = replay(history, &config)?;
            Some(ReplayRow { site: history.name.clone(), budget, directories, result })
        },
    )
}
