//! `perennial verify`: an archive -> its defects, and their repair.

use std::path::{Path, PathBuf};

use super::{Context, Exit};
use perennial_archive::manifest::Manifest;
use perennial_archive::verify::{Defect, UnfinishedWork, VerifyReport, rebuild, repair, verify_present};
use perennial_archive::{Archive, ArchiveWriter, Repair, now};
use perennial_crawler::make_frontier;

const AFTER_HELP: &str = "\
Checks the digests and structure of every record, the files against the manifest, the state against the records, the index against \
the state, and the databases against their checksums. Works during a crawl. The exit code is 4 if there are defects that are not accepted. Defects of an imported file that were there before the import \
are marked; --accept-imported accepts them. Quarantined records and work left unfinished by a killed command are listed \
separately; they are not defects. Keep a copy of manifest.jsonl elsewhere: --since-manifest shows that nothing it lists was changed \
or removed since.

Examples:
  perennial verify
  perennial verify --since-manifest kept/manifest.jsonl
  perennial verify --accept-imported
  perennial verify --repair
  perennial verify --rebuild --json";

/// Check every record of the archive, or rebuild its index.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct VerifyArgs {
    /// Move torn ends to side files, and rebuild what is wrong of state and index; valid records are not changed
    #[arg(long)]
    repair: bool,

    /// Rebuild state and index from the WARC files, then check
    #[arg(long, conflicts_with = "repair")]
    rebuild: bool,

    /// Accept defects that imported files had before the import
    #[arg(long)]
    accept_imported: bool,

    /// Show that nothing was changed or removed since this copy of manifest.jsonl
    #[arg(long, value_name = "FILE")]
    since_manifest: Option<PathBuf>,
}

impl VerifyArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        let passes = if self.rebuild { 2 } else { 1 };
        let bar = context.progress_bytes(passes * archive.warc_bytes()?, "verifying");
        let progress = |bytes| bar.inc(bytes);
        let mut report = if self.repair {
            repair(&archive, &progress)?
        } else {
            let repairs = if self.rebuild { rebuild_all(&archive, &progress)? } else { Vec::new() };
            VerifyReport { repairs, ..verify_present(&archive, &progress)? }
        };
        bar.finish_and_clear();
        if let Some(kept) = &self.since_manifest {
            report.defects.extend(since_manifest(&archive, kept)?);
        }
        context.print(&report, |out| print(&report, self.accept_imported, out))?;
        let n_accepted = if self.accept_imported { report.n_imported() } else { 0 };
        Ok(if report.defects.len() == n_accepted { Exit::Done } else { Exit::Defects })
    }
}

/// What a kept copy of the manifest has and the archive's manifest lacks.
fn since_manifest(archive: &Archive, kept: &Path) -> anyhow::Result<Vec<Defect>> {
    if !kept.is_file() {
        anyhow::bail!("{} is not a file: name a copy of manifest.jsonl", kept.display());
    }
    let (kept, present) = (Manifest::load(kept)?, Manifest::load(&archive.manifest_path())?);
    let differences = present.check_since(&kept).into_iter();
    Ok(differences.map(Defect::of_manifest).collect())
}

/// Rebuilds state and index from the WARC files, and the frontier from the state.
fn rebuild_all(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<Vec<Repair>> {
    let repairs = rebuild(archive, progress)?;
    let mut writer = ArchiveWriter::open(archive)?;
    make_frontier(archive, &mut writer, now())?;
    writer.close()?;
    Ok(repairs)
}

fn print(report: &VerifyReport, accepts_imported: bool, out: &mut dyn std::io::Write) -> std::io::Result<()> {
    for repair in &report.repairs {
        writeln!(out, "{repair}")?;
    }
    for record in &report.quarantined {
        writeln!(out, "quarantined: {}{}: {}", record.file, position_text(record), record.what)?;
    }
    for future in &report.future {
        writeln!(out, "{}{}: {}", future.file, position_text(future), future.what)?;
    }
    for removal in &report.manifest.removals {
        writeln!(out, "manifest, entry {} of {}: {}", removal.n, removal.time, removal.act)?;
    }
    for unfinished in &report.unfinished {
        let UnfinishedWork { file, what } = unfinished;
        writeln!(out, "{file}: {what}; not a defect: a running command or the next one completes it")?;
    }
    for defect in &report.defects {
        let origin = if defect.is_imported { "imported with this defect: " } else { "" };
        writeln!(out, "{}{}: {origin}{}", defect.file, position_text(defect), defect.what)?;
    }
    if report.n_quarantined > 0 {
        writeln!(
            out,
            "{} records are quarantined: they cannot be captures, or could not be analysed",
            report.n_quarantined
        )?;
    }
    if report.n_future > 0 {
        writeln!(out, "{} captures are dated in the future; they count only then", report.n_future)?;
    }
    if report.n_mismatching > 0 {
        writeln!(
            out,
            "{} records do not match their digests (forged or damaged); no other capture refers to them",
            report.n_mismatching
        )?;
    }
    if report.manifest.n_entries > 0 {
        writeln!(
            out,
            "manifest: {} entries, the last is {}",
            report.manifest.n_entries, report.manifest.head
        )?;
    }
    writeln!(
        out,
        "{} files, {} records, {} captures: {}",
        report.n_files,
        report.n_records,
        report.n_captures,
        verdict(report, accepts_imported)
    )
}

fn verdict(report: &VerifyReport, accepts_imported: bool) -> String {
    let n_imported = report.n_imported();
    match (report.defects.len() - n_imported, n_imported) {
        (0, 0) => "no defects".to_string(),
        (n, 0) => format!("{n} defects"),
        (0, n) if accepts_imported => {
            format!("no defects except {n} accepted ones of imported files")
        }
        (0, n) => format!("{n} defects, all of imported files; --accept-imported accepts them"),
        (n, imported) => format!("{n} defects of this archive, and {imported} of imported files"),
    }
}

fn position_text(defect: &Defect) -> String {
    defect.offset.map(|offset| format!(" at {offset}")).unwrap_or_default()
}
