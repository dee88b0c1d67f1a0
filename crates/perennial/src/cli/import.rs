//! `perennial import`: files of other tools -> captures of the archive.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::analyse::print_lost_words;
use super::{Context, Exit};
use perennial_archive::import::{FileReport, ImportReport, import};
use perennial_archive::{Archive, ArchiveWriter};
use perennial_engine::analyse::{Analyst, analyse_backlog};

const AFTER_HELP: &str = "\
Files are stored unchanged in warc/. A file that was imported before is skipped. Damaged records and unreadable files are listed, and \
the rest is imported; the exit code is then 4. Index files (.cdxj) are compared with the captures. Finally the versions of \
each page are analysed, so that patterns and visits are based on the history of the collection.

Examples:
  perennial import crawl-2024.warc.gz old.wacz
  perennial import warcs/*.warc.gz warcs/index.cdxj --json";

/// Import WARC, ARC and WACZ files of other tools.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ImportArgs {
    /// Files: .warc, .warc.gz, .warc.zst, .arc, .arc.gz, .wacz; .cdxj to compare with
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// Create the archive if missing
    #[arg(long)]
    create: bool,

    /// Leave the analysis of the captures to the next crawl
    #[arg(long)]
    no_analysis: bool,
}

#[derive(Serialize)]
struct ImportSummary {
    #[serde(flatten)]
    imported: ImportReport,
    learned: Option<HistoryCounts>,
}

/// Numbers of the analysed captures.
#[derive(Serialize)]
struct HistoryCounts {
    n_captures: u64,
    n_changed: u64,
    n_failed: u64,
    /// Words that are visible on pages but not in any block
    n_lost_words: u64,
}

impl ImportArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = if self.create { context.open_or_create()? } else { context.open()? };
        let mut writer = context.open_writer(&archive)?;
        let total = self.files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
        let bar = context.progress_bytes(total, "importing");
        let report = import(&mut writer, &self.files, &|bytes| bar.inc(bytes))?;
        bar.finish_and_clear();
        let learned = if self.no_analysis { None } else { Some(learn(context, &archive, &mut writer)?) };
        writer.close()?;
        let report = ImportSummary { imported: report, learned };
        context.print(&report, |out| print(&report, out))?;
        Ok(if report.imported.files.iter().any(|file| file.n_defects > 0) {
            Exit::Defects
        } else {
            Exit::Done
        })
    }
}

/// Analyses every imported capture, because patterns, quality and visits are based on the whole history.
fn learn(context: &Context, archive: &Archive, writer: &mut ArchiveWriter) -> anyhow::Result<HistoryCounts> {
    let analyst = Arc::new(Analyst::for_archive(archive)?);
    let bar = context.progress_count(writer.store().count_backlog(archive.horizon())?, "learning");
    let stop = AtomicBool::new(false);
    let done =
        analyse_backlog(archive, writer.store_mut(), &analyst, archive.horizon(), &stop, &|n| bar.inc(n))?;
    bar.finish_and_clear();
    context.index_texts(archive)?;
    Ok(HistoryCounts {
        n_captures: done.n_captures,
        n_changed: done.n_changed,
        n_failed: done.n_failed,
        n_lost_words: analyst.take_lost_words(),
    })
}

fn print(report: &ImportSummary, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    for file in &report.imported.files {
        writeln!(out, "{}: {}", file.source, verdict(file))?;
        for problem in &file.problems {
            match problem.skipped_bytes {
                0 => writeln!(out, "  at {}: {}", problem.offset, problem.what)?,
                bytes => writeln!(out, "  at {}: skipped {bytes} bytes, {}", problem.offset, problem.what)?,
            }
        }
        if file.n_problems > file.problems.len() as u64 {
            writeln!(out, "  ... and {} more", file.n_problems - file.problems.len() as u64)?;
        }
    }
    for index in &report.imported.indexes {
        writeln!(
            out,
            "{}: {} lines agree with the archive, {} do not",
            index.source, index.n_confirmed, index.n_unconfirmed
        )?;
        for line in &index.unconfirmed {
            writeln!(out, "  {line}")?;
        }
    }
    let n_damaged = report.imported.files.iter().filter(|file| file.n_defects > 0).count();
    if n_damaged > 0 {
        let n_files = report.imported.files.len();
        writeln!(
            out,
            "{n_damaged} of {n_files} files are damaged or unreadable (see above); import other copies of them"
        )?;
    }
    if let Some(learned) = &report.learned {
        let failed = match learned.n_failed {
            0 => String::new(),
            n => format!(", {n} could not be read"),
        };
        writeln!(
            out,
            "analysed {} captures of pages, {} of them changed{failed}: see `perennial plan patterns` and `perennial plan quality`",
            learned.n_captures, learned.n_changed
        )?;
        print_lost_words(out, learned.n_lost_words)?;
    }
    Ok(())
}

fn verdict(file: &FileReport) -> String {
    if file.is_known {
        return "imported before, nothing changed".to_string();
    }
    let problems = match file.n_problems {
        0 => String::new(),
        1 => ", 1 problem".to_owned(),
        n => format!(", {n} problems"),
    };
    match &file.stored_as {
        None if file.n_duplicates == 0 && file.n_problems > 0 => {
            format!("unreadable{problems}")
        }
        None if file.n_duplicates == 0 => "it contains no captures: nothing changed".to_string(),
        None => {
            format!("{} captures, all in the archive already: nothing changed{problems}", file.n_duplicates)
        }
        Some(name) => format!(
            "{} captures from {} records, {} of them in the archive already{problems}; stored as {name}{}",
            file.n_captures + file.n_duplicates,
            file.n_records,
            file.n_duplicates,
            if file.is_rewritten { ", rewritten record by record" } else { "" }
        ),
    }
}
