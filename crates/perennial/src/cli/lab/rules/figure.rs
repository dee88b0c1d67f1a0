//! `perennial lab rules figure`: the experiments of P-NEAR 6, each by one command.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use perennial_lab::rules::figure::{
    FigureRow, MiningTimeRow, ReplayRow, figure_cases, mining_cases, replay_rows, synthetic_sites,
    with_ratios,
};

use super::read::read_files;
use crate::cli::{Context, Exit};

const AFTER_HELP: &str = "\
  5a  distance between training and test, 1 to 10 versions, misses accumulating or not
  5b  versions of training
  5c  domains of sites, such as .org
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
  perennial lab rules figure 5a --history *.tsv.xz
  perennial lab rules figure 5e
  perennial lab rules figure 6a --json";

/// Repeat an experiment of the paper (P-NEAR Figures 5 and 6).
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

impl Figure {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        if self.figure.starts_with('6') {
            let cases = mining_cases(&self.figure);
            let bar = context.progress_count(cases.len() as u64, "mining");
            let timed = cases.iter().inspect(|_| bar.inc(1)).map(|case| case.time(&self.figure));
            let rows: Vec<MiningTimeRow> = timed.collect();
            bar.finish_and_clear();
            context.print(&rows, |out| print_times(&rows, out))?;
            return Ok(Exit::Done);
        }
        let histories = match self.history.is_empty() {
            true => synthetic_sites(&self.figure),
            false => read_files(context, &self.history)?,
        };
        if self.figure == "replay" {
            let bar = context.progress_count(histories.len() as u64, "replaying");
            let rows: Vec<ReplayRow> =
                histories.iter().inspect(|_| bar.inc(1)).flat_map(replay_rows).collect();
            bar.finish_and_clear();
            context.print(&rows, |out| print_replays(&rows, out))?;
            return Ok(Exit::Done);
        }
        let cases = figure_cases(&self.figure, &histories);
        let bar = context.progress_count(cases.len() as u64, "testing plans");
        let tested = cases.iter().inspect(|_| bar.inc(1)).map(|case| case.row(&self.figure, &histories));
        let rows: Vec<FigureRow> = match self.figure.as_str() {
            "5e" | "5f" => with_ratios(tested.collect()),
            _ => tested.collect(),
        };
        bar.finish_and_clear();
        context.print(&rows, |out| print_rows(&rows, out))?;
        Ok(Exit::Done)
    }
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
            row.result.n_pages,
            row.result.n_still_pages,
            row.result.n_visits,
            100.0 * row.result.on_still,
            100.0 * row.result.on_probes,
            100.0 * row.result.completeness
        )?;
    }
    Ok(())
}

fn print_rows(rows: &[FigureRow], out: &mut dyn Write) -> io::Result<()> {
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

fn print_times(rows: &[MiningTimeRow], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<16} {:>7} {:>12} {:>12} {:>8} {:>11}",
        "", "change", "phase 1, ms", "phase 2, ms", "rules", "bytes/node"
    )?;
    for row in rows {
        let MiningTimeRow { x, change, phase_1_ms, phase_2_ms, n_rules, bytes_per_node, .. } = row;
        writeln!(
            out,
            "{x:<16} {:>5.0} % {phase_1_ms:>12.2} {phase_2_ms:>12.2} {n_rules:>8} {bytes_per_node:>11.0}",
            100.0 * change
        )?;
    }
    Ok(())
}
