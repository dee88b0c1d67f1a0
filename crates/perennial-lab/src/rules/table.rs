//! Evaluates named plans on histories and returns rows of results.

use perennial_core::directory::{Alpha, SiteHistory, SiteKind, Thresholds};
use serde::Serialize;

use super::{
    ClosedLoop, PageRanking, PlanOutcome, Protocol, SkipPlan, closed_loop, evaluate_plan, recall_curve,
};

/// Shares of skipped pages on a curve.
const SHARES: [f64; 12] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98];

/// The plans compared by default.
const COMPARED: [&str; 11] = [
    "nothing",
    "near-0.01",
    "near-0.05",
    "near",
    "near-everywhere",
    "near-tuned",
    "static",
    "last-version",
    "rate",
    "combined",
    "oracle",
];

#[derive(Clone, Debug)]
pub struct NamedPlan {
    pub name: String,
    pub plan: SkipPlan,
}

/// The error for an unknown plan.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{0}` is not a plan: choose some of nothing, near, near-0.01, near-0.05, near-everywhere, near-tuned, static, \
     last-version, rate, score, in-rounds, combined, oracle, or all"
)]
pub struct PlanError(String);

impl NamedPlan {
    /// Plans by name; `all` are those compared by default. If `tuned`, the thresholds of `near` are tuned in training.
    pub fn parse(names: &[String], thresholds: Thresholds, tuned: bool) -> Result<Vec<NamedPlan>, PlanError> {
        let names: Vec<&str> = match names {
            [all] if all == "all" => COMPARED.to_vec(),
            names => names.iter().map(String::as_str).collect(),
        };
        let named = |name: &str| {
            let plan = parse_plan(name, thresholds, tuned).ok_or_else(|| PlanError(name.to_owned()))?;
            Ok(NamedPlan { name: name.to_owned(), plan })
        };
        names.into_iter().map(named).collect()
    }

    /// The measures of the plan on a history.
    pub fn row(&self, history: &SiteHistory, protocol: &Protocol) -> PlanRow {
        let PlanOutcome { n_windows, n_quiet, n_rules, n_contradicted, mean } =
            evaluate_plan(history, protocol, self.plan);
        PlanRow {
            site: history.name.clone(),
            plan: self.name.clone(),
            kind: kind_name(history),
            n_windows,
            n_quiet_windows: n_quiet,
            n_rules,
            n_contradicted,
            bypass: mean.bypass,
            precision: mean.precision,
            recall: mean.recall,
            change_recall: mean.change_recall,
            change_recall_9: mean.change_recall_9,
            precision_7: mean.precision_7,
        }
    }

    /// The change recall of the plan at many bypass ratios.
    pub fn curve_row(&self, history: &SiteHistory, protocol: &Protocol) -> CurveRow {
        let points = recall_curve(history, protocol, self.plan, &SHARES);
        let points =
            points.into_iter().map(|(bypass, change_recall)| CurvePoint { bypass, change_recall }).collect();
        CurveRow { site: history.name.clone(), plan: self.name.clone(), kind: kind_name(history), points }
    }

    /// The result of the plan over `n_weeks` versions in a closed loop; `None` for plans without a ranking.
    pub fn loop_row(
        &self,
        history: &SiteHistory,
        train: usize,
        n_weeks: usize,
        skip: f64,
    ) -> Option<LoopRow> {
        let ranking = match self.plan {
            SkipPlan::Ranked(ranking) => Some(ranking),
            SkipPlan::Oracle => None,
            _ => return None,
        };
        let outcome = closed_loop(history, &ClosedLoop { train, n_weeks, skip, ranking })?;
        Some(LoopRow {
            site: history.name.clone(),
            plan: self.name.clone(),
            kind: kind_name(history),
            n_weeks: outcome.n_weeks,
            skip,
            stale: outcome.stale,
            change_recall: outcome.change_recall,
        })
    }
}

fn parse_plan(name: &str, thresholds: Thresholds, tuned: bool) -> Option<SkipPlan> {
    let fixed = |alpha| Thresholds { alpha: Alpha::Fixed(alpha), ..thresholds };
    Some(match name {
        "nothing" => SkipPlan::Nothing,
        "near" if tuned => SkipPlan::NearTuned,
        "near" => SkipPlan::Near(thresholds),
        "near-0.01" => SkipPlan::Near(fixed(0.01)),
        "near-0.05" => SkipPlan::Near(fixed(0.05)),
        "near-everywhere" => SkipPlan::NearEverywhere(thresholds),
        "near-tuned" => SkipPlan::NearTuned,
        "static" => SkipPlan::Static,
        "last-version" => SkipPlan::LastVersion,
        "rate" => SkipPlan::Ranked(PageRanking::Rate),
        "score" => SkipPlan::Ranked(PageRanking::Score),
        "in-rounds" => SkipPlan::Ranked(PageRanking::InRounds),
        "combined" => SkipPlan::Ranked(PageRanking::Combined),
        "oracle" => SkipPlan::Oracle,
        _ => return None,
    })
}

fn kind_name(history: &SiteHistory) -> &'static str {
    match history.kind {
        SiteKind::Served => "served",
        SiteKind::Source => "source",
    }
}

/// The measures of a plan on one site; means over windows.
#[derive(Serialize)]
pub struct PlanRow {
    pub site: String,
    pub plan: String,
    /// Whether its pages are as served, or sources of a site generator.
    pub kind: &'static str,
    /// Number of windows with a change.
    pub n_windows: usize,
    /// Number of windows without a change.
    pub n_quiet_windows: usize,
    /// Rules per window.
    pub n_rules: f64,
    /// Rules contradicted by a directory below the tail.
    pub n_contradicted: f64,
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
    /// Overall precision as the paper computes it, eq. 7.
    #[serde(rename = "OP7")]
    pub precision_7: f64,
}

/// A plan at many bypass ratios.
#[derive(Serialize)]
pub struct CurveRow {
    pub site: String,
    pub plan: String,
    /// Whether its pages are as served, or sources of a site generator.
    pub kind: &'static str,
    /// Points by rising bypass ratio.
    pub points: Vec<CurvePoint>,
}

/// One point of a curve.
#[derive(Serialize)]
pub struct CurvePoint {
    /// Share of the pages that is skipped.
    #[serde(rename = "BR")]
    pub bypass: f64,
    /// Share of the changes that was observed.
    #[serde(rename = "CR5")]
    pub change_recall: f64,
}

/// The result of a plan in a closed loop.
#[derive(Serialize)]
pub struct LoopRow {
    pub site: String,
    pub plan: String,
    /// Whether its pages are as served, or sources of a site generator.
    pub kind: &'static str,
    pub n_weeks: usize,
    /// Share of the pages that was skipped.
    pub skip: f64,
    /// Share of the copies that were stale.
    pub stale: f64,
    /// Share of the changes that was observed.
    #[serde(rename = "CR5")]
    pub change_recall: f64,
}
