//! `perennial verify`: an archive -> every defect in it; with `--repair` put right what can be.

use super::{Context, Exit};
use perennial_archive::verify::{Defect, Unfinished, VerifyReport, rebuild, repair, verify};
use perennial_archive::{Archive, ArchiveWriter, Repair, now};
use perennial_crawler::make_frontier;

const AFTER_HELP: &str = "\
Checks every record's digests and structure, the state against the records, and the index against the \
state. Exit code 4 when there are defects, 0 when there are none or only accepted ones. Works while a crawl is \
writing. Records whose bytes contradict their digests (forged or damaged) have kind \"digest\". Defects that came \
with an imported file, whose bytes are still those that were imported, are told apart; --accept-imported takes them \
as they are. What was set aside, because it cannot be a capture or could not be analysed, is listed and is no \
defect, nor is what a killed command left to be completed by the next one that writes.

Examples:
  perennial verify
  perennial verify --accept-imported
  perennial verify --repair
  perennial verify --rebuild --json";

/// Check every record of the archive, or rebuild its index.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Verify {
    /// Cut torn ends off (kept in side files), make a wrong state or index anew; sound bytes stay untouched
    #[arg(long)]
    repair: bool,

    /// Make state and index anew from the WARC files alone, then check
    #[arg(long, conflicts_with = "repair")]
    rebuild: bool,

    /// Do not fail for defects that came with imported files and have not grown since
    #[arg(long)]
    accept_imported: bool,
}

impl Verify {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let passes = if self.rebuild { 2 } else { 1 };
        let bar = context.progress_bytes(passes * archive.warc_bytes()?, "verifying");
        let progress = |bytes| bar.inc(bytes);
        let report = if self.repair {
            repair(&archive, &progress)?
        } else {
            let repairs = if self.rebuild { rebuild_all(&archive, &progress)? } else { Vec::new() };
            VerifyReport { repairs, ..verify(&archive.snapshot()?, &progress)? }
        };
        bar.finish_and_clear();
        context.print(&report, |out| print(&report, self.accept_imported, out))?;
        let n_accepted = if self.accept_imported { report.n_foreign() } else { 0 };
        Ok(if report.defects.len() == n_accepted { Exit::Done } else { Exit::Defects })
    }
}

/// State and index from the WARC files, and the frontier from the state.
fn rebuild_all(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<Vec<Repair>> {
    let repairs = rebuild(archive, progress)?;
    let mut writer = ArchiveWriter::open(archive)?;
    make_frontier(archive, &mut writer, now())?;
    writer.close()?;
    Ok(repairs)
}

fn print(report: &VerifyReport, accepts_foreign: bool, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    for repair in &report.repairs {
        writeln!(out, "{repair}")?;
    }
    for aside in &report.set_aside {
        writeln!(out, "set aside: {}{}: {}", aside.file, place_of(aside), aside.what)?;
    }
    for unfinished in &report.unfinished {
        let Unfinished { file, what } = unfinished;
        writeln!(
            out,
            "{file}: {what}; no defect: a command is at work, or the next that writes goes on with it"
        )?;
    }
    for defect in &report.defects {
        let origin = if defect.is_foreign { "came with the import: " } else { "" };
        writeln!(out, "{}{}: {origin}{}", defect.file, place_of(defect), defect.what)?;
    }
    if report.n_set_aside > 0 {
        writeln!(
            out,
            "{} records are set aside: they cannot be captures, or could not be analysed",
            report.n_set_aside
        )?;
    }
    if report.n_mismatching > 0 {
        writeln!(
            out,
            "{} records contradict their digests, because they were forged or damaged: no other capture refers to them",
            report.n_mismatching
        )?;
    }
    writeln!(
        out,
        "{} files, {} records, {} captures: {}",
        report.n_files,
        report.n_records,
        report.n_captures,
        verdict(report, accepts_foreign)
    )
}

fn verdict(report: &VerifyReport, accepts_foreign: bool) -> String {
    let n_foreign = report.n_foreign();
    match (report.defects.len() - n_foreign, n_foreign) {
        (0, 0) => "all sound".to_string(),
        (n, 0) => format!("{n} defects"),
        (0, n) if accepts_foreign => {
            format!("sound but for {n} defects that came with imported files, accepted")
        }
        (0, n) => format!(
            "{n} defects, all of which came with imported files: --accept-imported takes them as they are"
        ),
        (n, foreign) => format!("{n} defects of this archive, and {foreign} that came with imported files"),
    }
}

fn place_of(defect: &Defect) -> String {
    defect.offset.map(|offset| format!(" at {offset}")).unwrap_or_default()
}
