//! The files against the manifest, and the manifest against itself.

use serde::Serialize;

use super::{Defect, DefectKind, MANIFEST, UnfinishedWork, VerifyReport};
use crate::manifest::{self, Manifest, ManifestEntry};
use crate::timestamp::{ManifestTimestamp, UnsoundTimestamp, check_timestamps};
use crate::{Archive, files};

/// The chain of digests of complete files.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ManifestReport {
    pub n_entries: u64,
    /// The hash of the last entry. Whoever keeps it can prove later that nothing up to there was changed.
    pub head: String,
    /// Statements of a timestamp server about entries, oldest first.
    pub timestamps: Vec<ManifestTimestamp>,
    /// Acts that changed or removed bytes: erasures, cut ends, lost files.
    pub removals: Vec<ManifestEntry>,
}

/// Checks the chain, and that every listed file is there. [`super::records`] compares their bytes.
pub(super) fn check_manifest(
    archive: &Archive,
    manifest: &Manifest,
    report: &mut VerifyReport,
) -> anyhow::Result<()> {
    for (line, what) in &manifest.problems {
        let what = format!("line {line}: {what}; compare it with a copy (--since-manifest)");
        report.defects.push(Defect::of_manifest(what));
    }
    if manifest.has_torn_end {
        let what = "its last entry is incomplete".to_owned();
        report.unfinished.push(UnfinishedWork { file: MANIFEST.to_owned(), what });
    }
    for name in manifest.listed().into_keys() {
        if !files::locate(&archive.warc_dir(), name).exists() {
            let what = "the manifest lists this file and it is not there: put it back, or use --rebuild";
            report.defects.push(Defect::new(DefectKind::Manifest, name, None, what.to_owned()));
        }
    }
    let mut timestamps = Vec::new();
    for checked in check_timestamps(archive, manifest)? {
        match checked {
            Ok(timestamp) => timestamps.push(timestamp),
            Err(UnsoundTimestamp { file, what }) => {
                report.defects.push(Defect::new(DefectKind::Manifest, file, None, what));
            }
        }
    }
    let removals = manifest.entries.iter().filter(|entry| entry.act.is_removal());
    report.manifest = ManifestReport {
        n_entries: manifest.entries.len() as u64,
        head: manifest.head().to_owned(),
        timestamps,
        removals: removals.cloned().collect(),
    };
    Ok(())
}

/// How the bytes of a file differ from those that the manifest lists.
pub(super) fn listed_difference(
    archive: &Archive,
    name: &str,
    (bytes, sha256): (u64, &str),
) -> anyhow::Result<Option<Defect>> {
    let (found_bytes, found) = manifest::file_digest(&archive.warc_dir(), name)?;
    let what = match found_bytes == bytes {
        true if found == sha256 => return Ok(None),
        true => "its bytes are not those that the manifest lists: take it from another copy".to_owned(),
        false => format!("it has {found_bytes} bytes, the manifest lists {bytes}: take it from another copy"),
    };
    Ok(Some(Defect::new(DefectKind::Manifest, name, None, what)))
}
