//! An archive with defects -> one without them: half-written ends go to side files, and the smallest part that is wrong is
//! rebuilt.

use anyhow::Context;

use super::{Defect, DefectKind, SEARCH, STATE, VerifyReport, verify};
use crate::lock::WriteLock;
use crate::manifest::{self, Manifest, ManifestAct};
use crate::recover::{self, Repair};
use crate::repair::cut_torn_end;
use crate::scan::{ScanItem, scan};
use crate::store::{Store, Texts, correct_flips, keep_copy};
use crate::{Archive, files, index, now};

/// Moves half-written ends to side files, adds missing captures to the state, and rebuilds what contradicts the records:
/// the index alone, if the state agrees with them. Sound bytes are never changed. A state that is replaced is kept beside
/// the new one.
pub fn repair(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let lock = WriteLock::take(archive.root())?;
    let mut repairs = Vec::new();
    turn_flips_back(archive, &mut repairs)?;
    Store::refuse_later_schema(&archive.state_path())?;
    cut_torn_ends(archive, &mut repairs)?;
    let recovered = archive.store().and_then(|_| recover::recover(archive)).and_then(|(mut store, found)| {
        repairs.extend(found);
        index::write_tail_run(&mut store, &archive.index_dir())
    });
    // The state is unreadable, or a file is missing. The remaining files are all there is.
    if let Err(error) = recovered {
        replace_state(archive, format!("{error:#}"), &mut repairs, progress)?;
    }
    let mut report = verify(&archive.snapshot()?, progress)?;
    if report.has(|defect| defect.kind == DefectKind::Page && defect.file == SEARCH) {
        Texts::remove(&archive.texts_path())?;
        repairs.push(Repair::RemovedTexts);
    }
    let is_of_state = |defect: &Defect| {
        matches!(defect.kind, DefectKind::State | DefectKind::File)
            || defect.kind == DefectKind::Page && defect.file == STATE
    };
    if report.has(is_of_state) {
        let why = "it was damaged or contradicted the WARC files".to_owned();
        replace_state(archive, why, &mut repairs, progress)?;
    } else if report.has(|defect| defect.kind == DefectKind::Index) {
        index::rewrite(&mut Store::open_write(&archive.state_path())?, &archive.index_dir())?;
        repairs.push(Repair::MadeIndexAnew);
    }
    if report.has(|_| true) {
        report = verify(&archive.snapshot()?, progress)?;
    }
    drop(lock);
    report.repairs = repairs;
    Ok(report)
}

/// Corrects single flipped bits of the databases, so that nothing in them is lost.
fn turn_flips_back(archive: &Archive, repairs: &mut Vec<Repair>) -> anyhow::Result<()> {
    for path in [archive.state_path(), archive.texts_path(), archive.outbox_path()] {
        let n_flips = correct_flips(&path)?;
        if n_flips > 0 {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            repairs.push(Repair::TurnedBack { file, n_flips });
        }
    }
    Ok(())
}

/// Rebuilds the state, and keeps the former one beside it.
fn replace_state(
    archive: &Archive,
    why: String,
    repairs: &mut Vec<Repair>,
    progress: &(dyn Fn(u64) + Sync),
) -> anyhow::Result<()> {
    let kept = keep_copy(&archive.state_path(), now());
    let kept = kept.context("cannot keep a copy of state.db: free space, or move state.db away")?;
    repairs.push(Repair::MadeStateAnew { why });
    repairs.extend(kept.map(|file| Repair::KeptState { file }));
    rebuild_locked(archive, progress).map(drop)
}

/// Rebuilds state and index from the WARC files. What they do not contain, such as spent budgets, is taken over from the
/// present state as far as it is readable.
pub fn rebuild(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<Vec<Repair>> {
    let _lock = WriteLock::take(archive.root())?;
    Store::refuse_later_schema(&archive.state_path())?;
    rebuild_locked(archive, progress)
}

fn rebuild_locked(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<Vec<Repair>> {
    let mut repairs = Vec::new();
    recover::rebuild_state(archive, &mut repairs, progress)?;
    repairs.retain(|repair| matches!(repair, Repair::CutTorn { .. }));
    let mut manifest = Manifest::load(&archive.manifest_path())?;
    let is_missing = |name: &&str| !files::locate(&archive.warc_dir(), name).exists();
    let lost = |name: &str| ManifestAct::Lost { file: name.to_owned() };
    let lost: Vec<ManifestAct> = manifest.listed().into_keys().filter(is_missing).map(lost).collect();
    manifest.append(&archive.manifest_path(), lost, now())?;
    Ok(repairs)
}

/// Includes the ends of closed and imported files, which recovery alone does not change.
fn cut_torn_ends(archive: &Archive, repairs: &mut Vec<Repair>) -> anyhow::Result<()> {
    let dir = archive.warc_dir();
    for file in files::list(&dir)? {
        let mut torn_at = None;
        scan(files::open(&dir, &file.name)?, 0, &|_| {}, &mut |found| {
            if let ScanItem::Damage(damage) = found {
                torn_at = (damage.offset + damage.length >= file.bytes).then_some(damage.offset);
            }
            Ok(())
        })?;
        if let Some(offset) = torn_at {
            let cut = cut_torn_end(&files::locate(&dir, &file.name), &file.name, offset)?;
            record_cut(archive, &file.name, &cut)?;
            repairs.push(cut);
        }
    }
    Ok(())
}

/// The manifest records that a listed file lost its end.
fn record_cut(archive: &Archive, name: &str, cut: &Repair) -> anyhow::Result<()> {
    let mut manifest = Manifest::load(&archive.manifest_path())?;
    let Repair::CutTorn { kept_in, .. } = cut else { return Ok(()) };
    if !manifest.listed().contains_key(name) {
        return Ok(());
    }
    let (bytes, sha256) = manifest::file_digest(&archive.warc_dir(), name)?;
    let act = ManifestAct::Cut { file: name.to_owned(), bytes, sha256, kept_in: kept_in.clone() };
    manifest.append(&archive.manifest_path(), [act], now())
}
