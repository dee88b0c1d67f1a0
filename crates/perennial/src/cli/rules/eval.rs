//! `perennial rules eval`: what plans would have skipped and missed on past versions.

use std::io::{self, Write};

use anyhow::bail;
use clap::Args;
use perennial_core::directory::{Alpha, SiteHistory, SiteKind, Thresholds};
use perennial_lab::rules::{
    Aim, ClosedLoop, Outcome, Plan, Protocol, Ranking, closed_loop, curve, evaluate, n_broken,
};
use serde::Serialize;

use super::read::Source;
use super::{ThresholdOptions, share};
use crate::cli::{Context, Exit};

/// Shares of skipped pages on a curve.
const SHARES: [f64; 12] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98];
/// A site with more broken versions is left out.
const MOST_BROKEN: usize = 5;

const AFTER_HELP: &str = "\
Each window learns from some versions and is tested on a later one; the figures are means over the \
windows in which something changed.
  BR   bypass ratio: share of the pages that is not fetched
  OP   overall precision, OR overall recall: of the pages in the archived version
  CR5  change recall by its definition: share of the changes that was seen
  CR9  the same as the paper computes it, where a skipped update is not missed

Plans: nothing, near (rules, with --alpha or an alpha of each directory's own), near-0.01, near-0.05, \
near-everywhere (rules of all starting directories), near-tuned, static (directories without a change), \
last-version, rate (decayed past changes), score, combined, oracle (knows the changes), all.

Examples:
  perennial rules eval --history *.tsv.xz --plan all --json
  perennial rules eval --history site.tsv --plan combined --skip 0.8 --spread
  perennial rules eval example.org --plan combined --max-loss 0.05
  perennial rules eval --history site.tsv.xz --plan rate,combined --curve
  perennial rules eval --history site.tsv.xz --plan combined --loop 60 --skip 0.8";

/// Measures what plans would have skipped and missed on past versions.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Eval {
    #[command(flatten)]
    source: Source,

    /// Versions to learn from
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(2..))]
    train: u16,

    /// How many versions after them the tested one is
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    test: u16,

    /// Count all changes since the training, and not only those of the tested version
    #[arg(long)]
    accumulate: bool,

    /// Number of windows, the last ones of the history
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    windows: u16,

    /// Spread the windows over the whole history
    #[arg(long)]
    spread: bool,

    /// Plans, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "all")]
    plan: Vec<String>,

    #[command(flatten)]
    thresholds: ThresholdOptions,

    /// Choose thresholds and shares on the training window only
    #[arg(long)]
    tune: bool,

    /// Skip as much as loses at most this share of the changes in training [default with --tune: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "skip")]
    max_loss: Option<f64>,

    /// Share of the pages that plans which rank pages skip [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    skip: Option<f64>,

    /// Print change recall at many bypass ratios instead
    #[arg(long)]
    curve: bool,

    /// Crawl this many versions instead, knowing only what was fetched, and print how many copies are old
    #[arg(long = "loop", value_name = "N", conflicts_with = "curve")]
    weeks: Option<usize>,
}

/// One site and plan.
#[derive(Serialize)]
struct Row {
    site: String,
    plan: String,
    kind: &'static str,
    n_windows: usize,
    n_quiet_windows: usize,
    n_rules: f64,
    n_contradicted: f64,
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
    /// Overall precision as computed by eq. 7.
    #[serde(rename = "OP7")]
    precision_7: f64,
}

#[derive(Serialize)]
struct CurveRow {
    site: String,
    plan: String,
    kind: &'static str,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    #[serde(rename = "BR")]
    bypass: f64,
    #[serde(rename = "CR5")]
    change_recall: f64,
}

#[derive(Serialize)]
struct LoopRow {
    site: String,
    plan: String,
    kind: &'static str,
    n_weeks: usize,
    skip: f64,
    stale: f64,
    #[serde(rename = "CR5")]
    change_recall: f64,
}

impl Eval {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let plans = self.plans()?;
        let mut histories = self.source.read(context)?;
        histories.retain(|history| {
            let is_whole = n_broken(history) <= MOST_BROKEN;
            if !is_whole {
                context.note(format_args!(
                    "{}: left out, {} versions are broken",
                    history.name,
                    n_broken(history)
                ));
            }
            is_whole
        });
        let bar = context.progress_count((histories.len() * plans.len()) as u64, "testing plans");
        // The bar moves before each pair is tested, so that the first one is seen too.
        let pairs = || {
            let of = |history| plans.iter().map(move |(name, plan)| (history, name.as_str(), *plan));
            histories.iter().flat_map(of).inspect(|_| bar.inc(1))
        };
        if self.curve {
            let rows: Vec<CurveRow> =
                pairs().map(|(history, name, plan)| self.curve_row(history, name, plan)).collect();
            bar.finish_and_clear();
            context.print(&rows, |out| rows.iter().try_for_each(|row| print_curve(row, out)))?;
        } else if let Some(weeks) = self.weeks {
            let row = |(history, name, plan)| self.loop_row(history, name, plan, weeks);
            let rows: Vec<LoopRow> = pairs().filter_map(row).collect();
            bar.finish_and_clear();
            context.print(&rows, |out| print_loops(&rows, out))?;
        } else {
            let rows: Vec<Row> = pairs().map(|(history, name, plan)| self.row(history, name, plan)).collect();
            bar.finish_and_clear();
            if rows.iter().all(|row| row.n_windows == 0) {
                bail!(
                    "no window had a change to test: there must be more than {} versions; --train makes windows shorter",
                    u32::from(self.train) + u32::from(self.test) - 1
                );
            }
            context.print(&rows, |out| print_rows(&rows, out))?;
        }
        Ok(Exit::Done)
    }

    fn protocol(&self) -> Protocol {
        let loss = self.max_loss.or((self.tune && self.skip.is_none()).then_some(0.05));
        Protocol {
            train: self.train.into(),
            distance: self.test.into(),
            accumulate: self.accumulate,
            windows: self.windows.into(),
            spread: self.spread,
            aim: loss.map_or(Aim::Skip(self.skip.unwrap_or(0.5)), Aim::MaxLoss),
            tune_loss: self.max_loss.unwrap_or(0.05),
        }
    }

    fn plans(&self) -> anyhow::Result<Vec<(String, Plan)>> {
        const ALL: [&str; 11] = [
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
        let names: Vec<&str> = match self.plan.as_slice() {
            [all] if all == "all" => ALL.to_vec(),
            names => names.iter().map(String::as_str).collect(),
        };
        names.into_iter().map(|name| Ok((name.to_owned(), self.plan_of(name)?))).collect()
    }

    fn plan_of(&self, name: &str) -> anyhow::Result<Plan> {
        let thresholds = self.thresholds.thresholds();
        let fixed = |alpha| Thresholds { alpha: Alpha::Fixed(alpha), ..thresholds };
        Ok(match name {
            "nothing" => Plan::Nothing,
            "near" if self.tune => Plan::NearTuned,
            "near" => Plan::Near(thresholds),
            "near-0.01" => Plan::Near(fixed(0.01)),
            "near-0.05" => Plan::Near(fixed(0.05)),
            "near-everywhere" => Plan::NearEverywhere(thresholds),
            "near-tuned" => Plan::NearTuned,
            "static" => Plan::Static,
            "last-version" => Plan::LastVersion,
            "rate" => Plan::Ranked(Ranking::Rate),
            "score" => Plan::Ranked(Ranking::Score),
            "in-rounds" => Plan::Ranked(Ranking::InRounds),
            "combined" => Plan::Ranked(Ranking::Combined),
            "oracle" => Plan::Oracle,
            other => bail!(
                "`{other}` is not a plan: choose some of nothing, near, near-0.01, near-0.05, near-everywhere, near-tuned, \
                 static, last-version, rate, score, in-rounds, combined, oracle, or all"
            ),
        })
    }

    fn row(&self, history: &SiteHistory, name: &str, plan: Plan) -> Row {
        let Outcome { n_windows, n_quiet, n_rules, n_contradicted, mean } =
            evaluate(history, &self.protocol(), plan);
        Row {
            site: history.name.clone(),
            plan: name.to_owned(),
            kind: kind_of(history),
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

    fn curve_row(&self, history: &SiteHistory, name: &str, plan: Plan) -> CurveRow {
        let points = curve(history, &self.protocol(), plan, &SHARES);
        let points =
            points.into_iter().map(|(bypass, change_recall)| Point { bypass, change_recall }).collect();
        CurveRow { site: history.name.clone(), plan: name.to_owned(), kind: kind_of(history), points }
    }

    /// Only plans that rank pages can be run in a loop.
    fn loop_row(&self, history: &SiteHistory, name: &str, plan: Plan, n_weeks: usize) -> Option<LoopRow> {
        let ranking = match plan {
            Plan::Ranked(ranking) => Some(ranking),
            Plan::Oracle => None,
            _ => return None,
        };
        let skip = self.skip.unwrap_or(0.5);
        let outcome = closed_loop(history, &ClosedLoop { train: self.train.into(), n_weeks, skip, ranking })?;
        Some(LoopRow {
            site: history.name.clone(),
            plan: name.to_owned(),
            kind: kind_of(history),
            n_weeks: outcome.n_weeks,
            skip,
            stale: outcome.stale,
            change_recall: outcome.change_recall,
        })
    }
}

fn kind_of(history: &SiteHistory) -> &'static str {
    match history.kind {
        SiteKind::Served => "served",
        SiteKind::Source => "source",
    }
}

fn print_rows(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<16} {:<16} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "site", "plan", "windows", "rules", "BR", "OP", "OR", "CR5", "CR9"
    )?;
    for row in rows {
        let values =
            [row.n_rules, row.bypass, row.precision, row.recall, row.change_recall, row.change_recall_9];
        print_values(out, &row.site, &row.plan, &row.n_windows.to_string(), values)?;
    }
    for kind in ["served", "source"] {
        let mut plans: Vec<&str> = Vec::new();
        for row in rows.iter().filter(|row| row.kind == kind) {
            if !plans.contains(&row.plan.as_str()) {
                plans.push(&row.plan);
            }
        }
        for plan in plans {
            let of: Vec<&Row> =
                rows.iter().filter(|row| row.kind == kind && row.plan == plan && row.n_windows > 0).collect();
            let mean = |value: fn(&Row) -> f64| {
                of.iter().map(|row| value(row)).sum::<f64>() / of.len().max(1) as f64
            };
            let values = [
                mean(|row| row.n_rules),
                mean(|row| row.bypass),
                mean(|row| row.precision),
                mean(|row| row.recall),
                mean(|row| row.change_recall),
                mean(|row| row.change_recall_9),
            ];
            print_values(out, &format!("mean, {kind}"), plan, &format!("{} sites", of.len()), values)?;
        }
    }
    Ok(())
}

fn print_values(out: &mut dyn Write, site: &str, plan: &str, n: &str, values: [f64; 6]) -> io::Result<()> {
    let [rules, bypass, precision, recall, change_recall, change_recall_9] = values;
    writeln!(
        out,
        "{site:<16} {plan:<16} {n:>7} {rules:>7.1} {bypass:>6.3} {precision:>6.3} {recall:>6.3} {change_recall:>6.3} \
         {change_recall_9:>6.3}"
    )
}

fn print_curve(row: &CurveRow, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{:<16} {:<16}", row.site, row.plan)?;
    for point in &row.points {
        write!(out, " {:.2}:{:.3}", point.bypass, point.change_recall)?;
    }
    writeln!(out)
}

fn print_loops(rows: &[LoopRow], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:<16} {:<12} {:>6} {:>6} {:>7} {:>6}", "site", "plan", "weeks", "skip", "stale", "CR5")?;
    for row in rows {
        let LoopRow { site, plan, n_weeks, skip, stale, change_recall, .. } = row;
        writeln!(out, "{site:<16} {plan:<12} {n_weeks:>6} {skip:>6.2} {stale:>7.4} {change_recall:>6.3}")?;
    }
    for kind in ["served", "source"] {
        for plan in ["rate", "score", "in-rounds", "combined", "oracle"] {
            let of: Vec<&LoopRow> = rows.iter().filter(|row| row.kind == kind && row.plan == plan).collect();
            if of.is_empty() {
                continue;
            }
            let mean =
                |value: fn(&LoopRow) -> f64| of.iter().map(|row| value(row)).sum::<f64>() / of.len() as f64;
            let (stale, recall, site) =
                (mean(|row| row.stale), mean(|row| row.change_recall), format!("mean, {kind}"));
            writeln!(out, "{site:<16} {plan:<12} {:>6} {:>6} {stale:>7.4} {recall:>6.3}", "", "")?;
        }
    }
    Ok(())
}
