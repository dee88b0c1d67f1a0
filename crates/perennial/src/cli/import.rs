//! `perennial import`: files of other tools -> captures like our own.

use std::path::PathBuf;

use super::{Context, Exit};
use crate::archive::ArchiveWriter;
use crate::archive::import::{FileReport, ImportReport, import};

const AFTER_HELP: &str = "\
Files are stored byte for byte in warc/. Importing a file twice changes nothing. Damaged parts are skipped,
counted and listed. Index files (.cdxj) given beside are compared with what was found.

Examples:
  perennial import crawl-2024.warc.gz old.wacz
  perennial import warcs/*.warc.gz warcs/index.cdxj --json";

/// Takes in WARC, ARC and WACZ files that other tools wrote.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Import {
    /// .warc, .warc.gz, .warc.zst, .arc, .arc.gz, .wacz; .cdxj beside them
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// Make the archive if it does not exist yet
    #[arg(long)]
    create: bool,
}

impl Import {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = if self.create { context.open_or_create()? } else { context.open()? };
        let mut writer = ArchiveWriter::open(&archive)?;
        writer.repairs().iter().for_each(|repair| context.note(repair));
        let total = self.files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
        let bar = context.progress_bytes(total, "importing");
        let report = import(&mut writer, &self.files, &|bytes| bar.inc(bytes))?;
        bar.finish_and_clear();
        writer.close()?;
        context.print(&report, |out| print(&report, out))?;
        Ok(Exit::Done)
    }
}

fn print(report: &ImportReport, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    for file in &report.files {
        writeln!(out, "{}: {}", file.source, verdict(file))?;
        for problem in &file.problems {
            let skipped = match problem.skipped_bytes {
                0 => String::new(),
                bytes => format!("skipped {bytes} bytes, "),
            };
            writeln!(out, "  at {}: {skipped}{}", problem.offset, problem.what)?;
        }
        if file.n_problems > file.problems.len() as u64 {
            writeln!(out, "  ... and {} more", file.n_problems - file.problems.len() as u64)?;
        }
    }
    for index in &report.indexes {
        writeln!(
            out,
            "{}: {} lines agree with the archive, {} do not",
            index.source, index.n_confirmed, index.n_unconfirmed
        )?;
        for line in &index.unconfirmed {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn verdict(file: &FileReport) -> String {
    if file.is_known {
        return "imported before, nothing changed".to_string();
    }
    let problems = match file.n_problems {
        0 => String::new(),
        n => format!(", {n} damaged parts"),
    };
    match &file.stored_as {
        None => {
            format!("{} captures, all of them here already: nothing changed{problems}", file.n_duplicates)
        }
        Some(name) => format!(
            "{} captures from {} records, {} of them here already{problems}; stored as {name}{}",
            file.n_captures + file.n_duplicates,
            file.n_records,
            file.n_duplicates,
            if file.is_rewritten { ", written again record by record" } else { "" }
        ),
    }
}
