//! `perennial lab rules eval`: plans and past versions -> skipped fetches and missed changes.

use std::io::{self, Write};

use anyhow::bail;
use clap::Args;
use perennial_lab::rules::table::{CurveRow, LoopRow, NamedPlan, PlanRow};
use perennial_lab::rules::{Protocol, SkipAim, n_broken};

use super::read::HistorySource;
use super::{ThresholdOptions, share};
use crate::cli::{Context, Exit};

/// A site with more broken versions is skipped.
const MOST_BROKEN: usize = 5;

const AFTER_HELP: &str = "\
Each window learns from some versions and is tested on a later one; the numbers are means over the \
windows in which something changed.
  BR   bypass ratio: share of the pages that is not fetched
  OP   overall precision, OR overall recall: of the pages in the archived version
  CR5  change recall by its definition: share of the changes that was observed
  CR9  change recall as the paper computes it: a skipped update is not missed

Plans: nothing, near (rules, with --alpha or an alpha of each directory's own), near-0.01, near-0.05, \
near-everywhere (rules of all starting directories), near-tuned, static (directories without a change), \
last-version, rate (decayed past changes), score, combined, oracle (knows the changes), all.

Examples:
  perennial lab rules eval --history *.tsv.xz --plan all --json
  perennial lab rules eval --history site.tsv --plan combined --skip 0.8 --spread
  perennial lab rules eval example.org --plan combined --max-loss 0.05
  perennial lab rules eval --help-all       explain the other options";

/// Measure what plans would have skipped and missed in past versions.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Eval {
    #[command(flatten)]
    source: HistorySource,

    /// Versions to learn from
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(2..))]
    train: u16,

    /// Test the Nth version after them
    #[arg(long, hide = true, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    test: u16,

    /// Count all changes since the training, not only those of the tested version
    #[arg(long, hide = true)]
    accumulate: bool,

    /// Number of windows, the last ones of the history
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    windows: u16,

    /// Spread the windows over the whole history
    #[arg(long, hide = true)]
    spread: bool,

    /// Plans, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "all")]
    plan: Vec<String>,

    #[command(flatten)]
    thresholds: ThresholdOptions,

    /// Choose thresholds and shares on the training window only
    #[arg(long, hide = true)]
    tune: bool,

    /// Lose at most this share of the training changes [with --tune: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "skip")]
    max_loss: Option<f64>,

    /// Share of the pages that ranking plans skip [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    skip: Option<f64>,

    /// Print change recall at many bypass ratios instead
    #[arg(long, hide = true)]
    curve: bool,

    /// Crawl N versions with only the fetched pages known, and print how many copies are outdated
    #[arg(long = "loop", hide = true, value_name = "N", conflicts_with = "curve")]
    weeks: Option<usize>,
}

impl Eval {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let plans = NamedPlan::parse(&self.plan, self.thresholds.thresholds(), self.tune)?;
        let protocol = self.protocol();
        let mut histories = self.source.read(context)?;
        histories.retain(|history| {
            let is_whole = n_broken(history) <= MOST_BROKEN;
            if !is_whole {
                context.note(format_args!(
                    "{}: skipped, because {} versions are broken",
                    history.name,
                    n_broken(history)
                ));
            }
            is_whole
        });
        let bar = context.progress_count((histories.len() * plans.len()) as u64, "testing plans");
        // The bar advances before each test, so it is visible during the first one.
        let pairs = || {
            let of = |history| plans.iter().map(move |plan| (history, plan));
            histories.iter().flat_map(of).inspect(|_| bar.inc(1))
        };
        if self.curve {
            let rows: Vec<CurveRow> =
                pairs().map(|(history, plan)| plan.curve_row(history, &protocol)).collect();
            bar.finish_and_clear();
            context.print(&rows, |out| rows.iter().try_for_each(|row| print_curve(row, out)))?;
        } else if let Some(weeks) = self.weeks {
            let (train, skip) = (self.train.into(), self.skip.unwrap_or(0.5));
            let row = |(history, plan): (_, &NamedPlan)| plan.loop_row(history, train, weeks, skip);
            let rows: Vec<LoopRow> = pairs().filter_map(row).collect();
            bar.finish_and_clear();
            context.print(&rows, |out| print_loops(&rows, out))?;
        } else {
            let rows: Vec<PlanRow> = pairs().map(|(history, plan)| plan.row(history, &protocol)).collect();
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
            aim: loss.map_or(SkipAim::Skip(self.skip.unwrap_or(0.5)), SkipAim::MaxLoss),
            tune_loss: self.max_loss.unwrap_or(0.05),
        }
    }
}

fn print_rows(rows: &[PlanRow], out: &mut dyn Write) -> io::Result<()> {
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
            let of: Vec<&PlanRow> =
                rows.iter().filter(|row| row.kind == kind && row.plan == plan && row.n_windows > 0).collect();
            let mean = |value: fn(&PlanRow) -> f64| {
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
