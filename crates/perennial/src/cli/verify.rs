//! `perennial verify`: an archive -> its defects, and their repair.

use std::path::{Path, PathBuf};

use super::{Context, Exit};
use perennial_archive::manifest::Manifest;
use perennial_archive::timestamp::ManifestTimestamp;
use perennial_archive::verify::{
    Defect, ManifestReport, UnfinishedWork, VerifyReport, rebuild, repair, verify_present,
};
use perennial_archive::{Archive, ArchiveWriter, Repair, now};
use perennial_core::text::quantity::counted;
use perennial_crawler::make_frontier;
use perennial_engine::timestamps::request_timestamp;

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

    /// Request a timestamp of the manifest first, even if the server failed a moment ago
    #[arg(long)]
    timestamp: bool,

    /// Show that nothing was changed or removed since this copy of manifest.jsonl
    #[arg(long, value_name = "FILE")]
    since_manifest: Option<PathBuf>,
}

impl VerifyArgs {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let archive = context.open()?;
        if self.timestamp {
            timestamp(context, &archive)?;
        }
        let passes = if self.rebuild { 2 } else { 1 };
        let bar = context.progress_bytes(passes * archive.warc_bytes()?, "verifying");
        let progress = |bytes| bar.inc(bytes);
        let mut report = if self.repair {
            let report = repair(&archive, &progress)?;
            if report.repairs.iter().any(|repair| matches!(repair, Repair::MadeStateAnew { .. })) {
                complete_state(&archive)?;
            }
            report
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

/// Requests a timestamp now. If the server fails, the archive is verified all the same.
fn timestamp(context: &Context, archive: &Archive) -> anyhow::Result<()> {
    if archive.settings().archive.timestamp_server.is_none() {
        anyhow::bail!("no timestamp server: set `timestamp_server` in [archive] of perennial.toml");
    }
    if let Err(error) = request_timestamp(archive, true) {
        context.note(format_args!("no timestamp: {error}"));
    }
    Ok(())
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
    complete_state(archive)?;
    Ok(repairs)
}

/// Adds the frontier and the spending to a rebuilt state.
fn complete_state(archive: &Archive) -> anyhow::Result<()> {
    let mut writer = ArchiveWriter::open(archive)?;
    make_frontier(archive, &mut writer, now())?;
    writer.close()
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
        let records = counted(report.n_quarantined, "record is", "records are");
        writeln!(out, "{records} quarantined: not a capture, or not analysable")?;
    }
    if report.n_future > 0 {
        let captures = counted(report.n_future, "capture is", "captures are");
        writeln!(out, "{captures} dated in the future, and only counted then")?;
    }
    if report.n_mismatching > 0 {
        let records = counted(
            report.n_mismatching,
            "record contradicts its digests",
            "records contradict their digests",
        );
        writeln!(out, "{records} (forged or damaged); no other capture refers to such a record")?;
    }
    let ManifestReport { n_entries, head, timestamps, .. } = &report.manifest;
    if *n_entries > 0 {
        writeln!(out, "manifest: {}, the last is {head}", counted(*n_entries, "entry", "entries"))?;
    }
    if let Some(ManifestTimestamp { n, time, file }) = timestamps.last() {
        let n_all = counted(timestamps.len() as u64, "timestamp", "timestamps");
        writeln!(out, "{n_all}: the entries up to {n} existed at {time} (timestamps/{file})")?;
    }
    writeln!(
        out,
        "{}, {}, {}: {}",
        counted(report.n_files, "file", "files"),
        counted(report.n_records, "record", "records"),
        counted(report.n_captures, "capture", "captures"),
        verdict(report, accepts_imported)
    )
}

fn verdict(report: &VerifyReport, accepts_imported: bool) -> String {
    let n_imported = report.n_imported();
    let defects = |n: usize| counted(n as u64, "defect", "defects");
    match (report.defects.len() - n_imported, n_imported) {
        (0, 0) => "no defects".to_string(),
        (n, 0) => defects(n),
        (0, n) if accepts_imported => {
            format!("no defects except {n} accepted ones of imported files")
        }
        (0, n) => format!("{}, all of imported files; --accept-imported accepts them", defects(n)),
        (n, imported) => format!("{} of this archive, and {imported} of imported files", defects(n)),
    }
}

fn position_text(defect: &Defect) -> String {
    defect.offset.map(|offset| format!(" at {offset}")).unwrap_or_default()
}
