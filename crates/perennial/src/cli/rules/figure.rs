//! `perennial rules figure`: the experiments of P-NEAR 6, each by one command.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use perennial_core::directory::{
    Alpha, DeltaTree, Significance, SiteHistory, SiteKind, Subsumed, Thresholds, mine,
};
use perennial_lab::rules::replay::{Replay, Replayed, replay};
use perennial_lab::rules::{Aim, ExclusiveSite, Outcome, Plan, Protocol, RandomTrees, Ranking, evaluate};
use serde::Serialize;

use super::read::read_files;
use crate::cli::{Context, Exit};

const AFTER_HELP: &str = "\
  5a  distance between training and test, 1 to 10 versions, misses accumulating or not
  5b  versions of training
  5c  kinds of sites
  5d  the alpha from 0.01 to 0.05 at which a site skips most
  5e  rules that other rules subsume, relative to those that are not
  5f  rules that patterns subsume, relative to those that are not
  6a  time to mine by nodes, at 3, 6 and 12 % of change
  6b  time to mine by versions
  6c  time of the second phase by thresholds
  exclusive  not of the paper: plans on sites made of directories of which one changes at a time
  replay  not of the paper: histories through the crawler's own scheduler, without and with its
      level of directories

Figures 5 take histories, or sites made from seeds where none is given. Figures 6 make their trees.

Examples:
  perennial rules figure 5a --history *.tsv.xz
  perennial rules figure 5e
  perennial rules figure 6a --json";

/// Repeats an experiment of the paper.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Figure {
    /// Which one
    #[arg(value_name = "FIGURE", value_parser = ["5a", "5b", "5c", "5d", "5e", "5f", "6a", "6b", "6c", "exclusive", "replay"])]
    figure: String,

    /// Files of versions for Figures 5 [default: sites made from seeds]
    #[arg(long, value_name = "FILE", num_args = 1..)]
    history: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    figure: String,
    /// What is varied, and its value.
    x: String,
    plan: String,
    sites: String,
    n_rules: f64,
    #[serde(rename = "BR")]
    bypass: f64,
    #[serde(rename = "OP")]
    precision: f64,
    #[serde(rename = "OR")]
    recall: f64,
    #[serde(rename = "CR5")]
    change_recall: f64,
    #[serde(rename = "CR9")]
    change_recall_9: f64,
}

#[derive(Serialize)]
struct TimeRow {
    figure: String,
    x: String,
    change: f64,
    /// Organising the changes, and generating the rules.
    phase_1_ms: f64,
    phase_2_ms: f64,
    n_rules: usize,
    bytes_per_node: f64,
}

impl Figure {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if self.figure.starts_with('6') {
            let rows = self.times(context);
            context.print(&rows, |out| print_times(&rows, out))?;
            return Ok(Exit::Done);
        }
        let histories = match self.history.is_empty() {
            true => made_sites(&self.figure),
            false => read_files(context, &self.history)?,
        };
        if self.figure == "replay" {
            let rows = replays(context, &histories);
            context.print(&rows, |out| print_replays(&rows, out))?;
            return Ok(Exit::Done);
        }
        let cases = self.cases(&histories);
        let bar = context.progress_count(cases.len() as u64, "testing plans");
        let mut rows: Vec<Row> = Vec::new();
        for case in &cases {
            rows.push(self.row(case, &histories));
            bar.inc(1);
        }
        bar.finish_and_clear();
        context.print(&rows, |out| print_rows(&rows, out))?;
        Ok(Exit::Done)
    }

    fn cases(&self, histories: &[SiteHistory]) -> Vec<Case> {
        match self.figure.as_str() {
            "5a" => [false, true].into_iter().flat_map(distances).collect(),
            "5b" => [5, 10, 15, 20, 25, 30, 40].into_iter().flat_map(trained_on).collect(),
            "5c" => [SiteKind::Served, SiteKind::Source].into_iter().flat_map(of_kind).collect(),
            "5d" => {
                histories.iter().enumerate().filter_map(|(at, history)| best_alpha(at, history)).collect()
            }
            "5e" => subsumed(Subsumed::ByRule),
            "5f" => subsumed(Subsumed::ByPattern),
            _ => [0.5, 0.8].into_iter().flat_map(on_exclusive).collect(),
        }
    }

    fn row(&self, case: &Case, histories: &[SiteHistory]) -> Row {
        let is_meant = |(at, history): &(usize, &SiteHistory)| {
            case.kind.is_none_or(|kind| history.kind == kind) && case.site.is_none_or(|site| site == *at)
        };
        let of = histories.iter().enumerate().filter(is_meant);
        let outcomes: Vec<Outcome> = of
            .map(|(_, history)| evaluate(history, &case.protocol, case.plan))
            .filter(|outcome| outcome.n_windows > 0)
            .collect();
        let mean = |value: fn(&Outcome) -> f64| {
            outcomes.iter().map(value).sum::<f64>() / outcomes.len().max(1) as f64
        };
        Row {
            figure: self.figure.clone(),
            x: case.x.clone(),
            plan: case.name.clone(),
            sites: case
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

    fn times(&self, context: &Context) -> Vec<TimeRow> {
        let mut cases: Vec<(String, RandomTrees, Thresholds)> = Vec::new();
        let usual = Thresholds { alpha: Alpha::Fixed(0.1), beta: 0.1, gamma: Some(0.1), theta: 0.5 };
        for change in [0.03, 0.06, 0.12] {
            let trees = RandomTrees { change, ..RandomTrees::default() };
            match self.figure.as_str() {
                "6a" => cases
                    .extend([1000, 2000, 4000, 8000, 16_000].map(|n_nodes| {
                        (format!("{n_nodes} nodes"), RandomTrees { n_nodes, ..trees }, usual)
                    })),
                "6b" => cases.extend([50, 100, 200, 400, 800].map(|n_versions| {
                    (format!("{n_versions} versions"), RandomTrees { n_versions, ..trees }, usual)
                })),
                _ => cases.extend([0.1, 0.3, 0.4, 0.5, 0.6].into_iter().flat_map(|value| {
                    let trees = RandomTrees { n_nodes: 16_000, ..trees };
                    [
                        (format!("alpha {value}"), trees, Thresholds { alpha: Alpha::Fixed(value), ..usual }),
                        (format!("beta {value}"), trees, Thresholds { beta: value, ..usual }),
                        (format!("gamma {value}"), trees, Thresholds { gamma: Some(value), ..usual }),
                    ]
                })),
            }
        }
        let bar = context.progress_count(cases.len() as u64, "mining");
        let time = |(x, trees, thresholds): (String, RandomTrees, Thresholds)| {
            bar.inc(1);
            time_of(&self.figure, x, &trees, &thresholds)
        };
        let rows = cases.into_iter().map(time).collect();
        bar.finish_and_clear();
        rows
    }
}

#[derive(Serialize)]
struct ReplayRow {
    site: String,
    budget: f64,
    directories: bool,
    n_pages: usize,
    n_still_pages: usize,
    n_visits: usize,
    on_still: f64,
    on_probes: f64,
    completeness: f64,
}

/// A year of each history, of which half is counted, at two budgets.
fn replays(context: &Context, histories: &[SiteHistory]) -> Vec<ReplayRow> {
    let bar = context.progress_count(histories.len() as u64, "replaying");
    let mut rows = Vec::new();
    for history in histories {
        for (budget, directories) in [(0.2, false), (0.2, true), (0.5, false), (0.5, true)] {
            let weeks = (history.versions.len().saturating_sub(1) / 2).min(40);
            let of = Replay { burn_in: weeks, n_weeks: weeks, budget, directories, seed: 1 };
            let Some(found) = replay(history, &of) else { continue };
            let Replayed { n_pages, n_still_pages, n_visits, on_still, on_probes, completeness } = found;
            let site = history.name.clone();
            rows.push(ReplayRow {
                site,
                budget,
                directories,
                n_pages,
                n_still_pages,
                n_visits,
                on_still,
                on_probes,
                completeness,
            });
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    rows
}

fn print_replays(rows: &[ReplayRow], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<16} {:>8} {:>12} {:>7} {:>7} {:>8} {:>9} {:>9} {:>13}",
        "site",
        "per week",
        "directories",
        "pages",
        "still",
        "visits",
        "on still",
        "on probes",
        "completeness"
    )?;
    for row in rows {
        let judged = if row.directories { "judged" } else { "not judged" };
        writeln!(
            out,
            "{:<16} {:>6.0} % {judged:>12} {:>7} {:>7} {:>8} {:>7.1} % {:>7.1} % {:>11.1} %",
            row.site,
            100.0 * row.budget,
            row.n_pages,
            row.n_still_pages,
            row.n_visits,
            100.0 * row.on_still,
            100.0 * row.on_probes,
            100.0 * row.completeness
        )?;
    }
    Ok(())
}

/// One point of Figure 5.
struct Case {
    x: String,
    name: String,
    plan: Plan,
    protocol: Protocol,
    kind: Option<SiteKind>,
    site: Option<usize>,
}

/// A third of the pages is skipped, as in the paper's mean over its sites.
fn usual() -> Protocol {
    Protocol { aim: Aim::Skip(1.0 / 3.0), ..Protocol::default() }
}

/// Where the site as a whole has no rule, those of all directories and the combined plan show the trend.
fn over(x: &str, protocol: Protocol, kind: Option<SiteKind>) -> Vec<Case> {
    let near = Thresholds::default();
    let plans = [
        ("near", Plan::Near(near)),
        ("near-everywhere", Plan::NearEverywhere(near)),
        ("static", Plan::Static),
        ("combined", Plan::Ranked(Ranking::Combined)),
    ];
    let case = |(name, plan): (&str, Plan)| Case {
        x: x.to_owned(),
        name: name.to_owned(),
        plan,
        protocol,
        kind,
        site: None,
    };
    plans.into_iter().map(case).collect()
}

fn distances(accumulate: bool) -> Vec<Case> {
    let at = |distance: usize| {
        let x = format!("distance {distance}{}", if accumulate { ", accumulating" } else { "" });
        over(&x, Protocol { distance, accumulate, ..usual() }, None)
    };
    (1..=10).flat_map(at).collect()
}

fn trained_on(train: usize) -> Vec<Case> {
    over(&format!("training {train}"), Protocol { train, ..usual() }, None)
}

fn of_kind(kind: SiteKind) -> Vec<Case> {
    over(if kind == SiteKind::Served { "served" } else { "source" }, usual(), Some(kind))
}

fn best_alpha(site: usize, history: &SiteHistory) -> Option<Case> {
    let alphas = [0.01, 0.02, 0.03, 0.04, 0.05].map(|alpha| {
        let plan = Plan::NearEverywhere(Thresholds { alpha: Alpha::Fixed(alpha), ..Thresholds::default() });
        (alpha, plan, evaluate(history, &usual(), plan).mean.bypass)
    });
    let best = alphas.into_iter().reduce(|best, next| if next.2 > best.2 { next } else { best });
    let (alpha, plan, bypass) = best?;
    let x = if bypass > 0.0 { format!("best alpha {alpha}") } else { "no rule at any alpha".to_owned() };
    Some(Case { x, name: "near".to_owned(), plan, protocol: usual(), kind: None, site: Some(site) })
}

fn subsumed(by: Subsumed) -> Vec<Case> {
    let at = |beta: f64| {
        let near = Thresholds { beta, theta: 0.5, ..Thresholds::default() };
        [("near", Plan::Near(near)), ("subsumed", Plan::NearSubsumed(near, by))].map(|(name, plan)| {
            let (x, name) = (format!("beta {beta}"), name.to_owned());
            Case { x, name, plan, protocol: usual(), kind: None, site: None }
        })
    };
    [0.1, 0.2, 0.3].into_iter().flat_map(at).collect()
}

fn on_exclusive(skip: f64) -> Vec<Case> {
    let plans = [
        ("rate", Plan::Ranked(Ranking::Rate)),
        ("in-rounds", Plan::Ranked(Ranking::InRounds)),
        ("combined", Plan::Ranked(Ranking::Combined)),
        ("oracle", Plan::Oracle),
    ];
    let protocol = Protocol { aim: Aim::Skip(skip), ..Protocol::default() };
    let case = |(name, plan): (&str, Plan)| {
        let (x, name) = (format!("skip {skip}"), name.to_owned());
        Case { x, name, plan, protocol, kind: None, site: None }
    };
    plans.into_iter().map(case).collect()
}

/// Sites made from seeds: for the figures about subsumed rules small random trees, in which rules come about by chance.
fn made_sites(figure: &str) -> Vec<SiteHistory> {
    let exclusive = |seed| ExclusiveSite { n_pairs: 2, seed, ..ExclusiveSite::default() }.build();
    let random =
        |seed| RandomTrees { n_nodes: 400, fan_out: 4, depth: 6, n_versions: 40, change: 0.06, seed }.build();
    match figure {
        "5e" | "5f" => (1..=40).map(random).collect(),
        _ => (1..=10).map(exclusive).collect(),
    }
}

fn time_of(figure: &str, x: String, trees: &RandomTrees, thresholds: &Thresholds) -> TimeRow {
    let history = trees.build();
    let alpha = if let Alpha::Fixed(alpha) = thresholds.alpha { alpha } else { 0.1 };
    let began = Instant::now();
    let mut delta = DeltaTree::with_tree(
        history.tree.clone(),
        trees.n_versions.saturating_sub(1),
        Significance::From(alpha),
    );
    for (at, version) in history.versions.iter().enumerate() {
        let changes =
            version.changes.iter().map(|change| (history.nodes[change.page as usize], change.change));
        match at {
            0 => delta.begin(changes.map(|(node, _)| node)),
            _ => {
                delta.add(changes);
            }
        }
    }
    let phase_1_ms = began.elapsed().as_secs_f64() * 1000.0;
    let began = Instant::now();
    let mined = mine(&delta, thresholds, false);
    TimeRow {
        figure: figure.to_owned(),
        x,
        change: trees.change,
        phase_1_ms,
        phase_2_ms: began.elapsed().as_secs_f64() * 1000.0,
        n_rules: mined.rules.len(),
        bytes_per_node: delta.n_bytes() as f64 / delta.tree().len() as f64,
    }
}

fn print_rows(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<26} {:<16} {:<14} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "", "plan", "sites", "rules", "BR", "OP", "OR", "CR5", "CR9"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<26} {:<16} {:<14} {:>6.1} {:>6.3} {:>6.3} {:>6.3} {:>6.3} {:>6.3}",
            row.x,
            row.plan,
            row.sites,
            row.n_rules,
            row.bypass,
            row.precision,
            row.recall,
            row.change_recall,
            row.change_recall_9
        )?;
    }
    Ok(())
}

fn print_times(rows: &[TimeRow], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<16} {:>7} {:>12} {:>12} {:>8} {:>11}",
        "", "change", "phase 1, ms", "phase 2, ms", "rules", "bytes/node"
    )?;
    for row in rows {
        let TimeRow { x, change, phase_1_ms, phase_2_ms, n_rules, bytes_per_node, .. } = row;
        writeln!(
            out,
            "{x:<16} {:>5.0} % {phase_1_ms:>12.2} {phase_2_ms:>12.2} {n_rules:>8} {bytes_per_node:>11.0}",
            100.0 * change
        )?;
    }
    Ok(())
}
