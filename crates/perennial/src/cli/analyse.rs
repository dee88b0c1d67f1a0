//! `perennial analyse`: captures without an analysis -> their analyses.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::{Context, Exit};
use perennial_engine::analyse::{Analyst, analyse_backlog};

const AFTER_HELP: &str = "\
A crawl and an import analyse their captures. This command analyses the rest after a crash, `import --no-analysis` or \
`verify --rebuild`. It commits results while it runs; after an interruption run it again.

Examples:
  perennial analyse
  perennial analyse --json";

/// Analyse every capture that has not been analysed.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct AnalyseArgs {}

#[derive(Serialize)]
struct AnalysisReport {
    n_captures: u64,
    n_changed: u64,
    n_failed: u64,
    n_fallbacks: u64,
    /// Words that are visible on pages but not in any block
    n_lost_words: u64,
}

/// Prints the number of words without a block, which affects everything that is computed from blocks.
pub(super) fn print_lost_words(out: &mut dyn std::io::Write, n_words: u64) -> std::io::Result<()> {
    match n_words {
        0 => Ok(()),
        n => writeln!(out, "{n} visible words have no position in the layout and are not in any block"),
    }
}

impl AnalyseArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let mut writer = context.open_writer(&archive)?;
        let analyst = Arc::new(Analyst::for_archive(&archive)?);
        analyst.confinement_warning().iter().for_each(|warning| context.note(warning));
        let bar = context.progress_count(writer.store().count_backlog(archive.horizon())?, "analysing");
        let stop = AtomicBool::new(false);
        let done = analyse_backlog(&archive, writer.store_mut(), &analyst, archive.horizon(), &stop, &|n| {
            bar.inc(n)
        });
        bar.finish_and_clear();
        let done = done?;
        context.index_texts(&archive)?;
        writer.close()?;
        let report = AnalysisReport {
            n_captures: done.n_captures,
            n_changed: done.n_changed,
            n_failed: done.n_failed,
            n_fallbacks: analyst.n_fallbacks(),
            n_lost_words: analyst.take_lost_words(),
        };
        context.print(&report, |out| {
            writeln!(
                out,
                "{} captures analysed: {} changed, {} unreadable, {} without layout",
                report.n_captures, report.n_changed, report.n_failed, report.n_fallbacks
            )?;
            print_lost_words(out, report.n_lost_words)
        })?;
        Ok(Exit::Done)
    }
}
