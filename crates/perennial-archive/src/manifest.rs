//! `manifest.jsonl`: the digests of all complete WARC files, one entry per line, appended and never changed.
//!
//! Each entry contains the digest of the entry before it. Whoever keeps a copy of the file, or only its last digest,
//! can prove later that nothing up to there was changed or removed ([`Manifest::check_since`]). Cutting off a torn end,
//! erasing records and accepting the loss of a file are entries too.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use perennial_core::text::quantity::counted;
use perennial_core::text::untrusted::{BoundedLine, bounded_lines};
use perennial_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Archive, files, sync_dir};
use crate::store::{FileState, Store};

/// Bytes of earlier files that one command adds to the manifest. An archive of an earlier version of this program is
/// therefore listed by and by.
const MAX_EARLIER_BYTES: u64 = 4 << 30;

/// The last member of each entry.
const HASH: &str = ",\"hash\":\"";

/// What happened to a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "lowercase")]
pub enum ManifestAct {
    /// A file is complete: this program closed it, or imported it.
    Added { file: String, bytes: u64, sha256: String },
    /// A repair moved the torn end of a file to a side file.
    Cut { file: String, bytes: u64, sha256: String, kept_in: String },
    /// Records were overwritten by tombstones.
    Erased {
        file: String,
        bytes: u64,
        sha256: String,
        /// The URL or the site whose records were erased.
        what: String,
        n_records: u64,
        reason: String,
    },
    /// A file was missing, and the state was rebuilt without it.
    Lost { file: String },
}

impl ManifestAct {
    pub fn file(&self) -> &str {
        match self {
            ManifestAct::Added { file, .. }
            | ManifestAct::Cut { file, .. }
            | ManifestAct::Erased { file, .. }
            | ManifestAct::Lost { file } => file,
        }
    }

    /// Length and digest of the file since then; `None` if it is gone.
    fn content(&self) -> Option<(u64, &str)> {
        match self {
            ManifestAct::Added { bytes, sha256, .. }
            | ManifestAct::Cut { bytes, sha256, .. }
            | ManifestAct::Erased { bytes, sha256, .. } => Some((*bytes, sha256)),
            ManifestAct::Lost { .. } => None,
        }
    }

    /// Whether the act changed or removed bytes that an earlier entry lists.
    pub fn is_removal(&self) -> bool {
        !matches!(self, ManifestAct::Added { .. })
    }
}

impl fmt::Display for ManifestAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestAct::Added { file, bytes, .. } => write!(f, "added {file}, {bytes} bytes"),
            ManifestAct::Cut { file, kept_in, .. } => {
                write!(f, "cut the torn end of {file} off, kept in {kept_in}")
            }
            ManifestAct::Erased { file, what, n_records, reason, .. } => {
                let records = counted(*n_records, "record", "records");
                write!(f, "erased {records} of {what} in {file}: {reason}")
            }
            ManifestAct::Lost { file } => write!(f, "went on without {file}, which was missing"),
        }
    }
}

/// One entry without its hash.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// Counted from 1.
    pub n: u64,
    /// RFC 3339.
    pub time: String,
    #[serde(flatten)]
    pub act: ManifestAct,
    /// The hash of the entry before; empty in the first.
    pub before: String,
}

/// The content of a manifest.
#[derive(Clone, Debug, Default)]
pub struct Manifest {
    pub entries: Vec<ManifestEntry>,
    /// The hash of each entry.
    hashes: Vec<String>,
    /// What is wrong with the chain, with the number of the line.
    pub problems: Vec<(u64, String)>,
    /// Whether the last line is incomplete, as a power failure may leave it.
    pub has_torn_end: bool,
    /// Bytes of the complete lines.
    bytes: u64,
}

impl Manifest {
    /// Reads a manifest; one that is missing is empty.
    pub fn load(path: &Path) -> anyhow::Result<Manifest> {
        let mut manifest = Manifest::default();
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(manifest),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        manifest.has_torn_end = text.last().is_some_and(|byte| *byte != b'\n');
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        manifest.bytes = end as u64;
        for (number, line) in (1..).zip(bounded_lines(&text[..end])) {
            match line? {
                BoundedLine::Whole(line) => manifest.read_line(number, &line),
                BoundedLine::TooLong(_) => manifest.read_line(number, ""),
            }
        }
        Ok(manifest)
    }

    fn read_line(&mut self, number: u64, line: &str) {
        let parsed = line.rsplit_once(HASH).and_then(|(body, hash)| {
            let entry: ManifestEntry = serde_json::from_str(&format!("{body}}}")).ok()?;
            Some((entry, digest(body.as_bytes()), hash.strip_suffix("\"}")?))
        });
        let Some((entry, computed, written)) = parsed else {
            return self.problems.push((number, "it is not an entry".to_owned()));
        };
        let before = self.hashes.last().cloned().unwrap_or_default();
        if computed != written {
            self.problems.push((number, "it contradicts its own hash".to_owned()));
        } else if entry.before != before {
            self.problems.push((number, "it does not follow the entry before it".to_owned()));
        }
        self.entries.push(entry);
        self.hashes.push(written.to_owned());
    }

    /// The hash of the last entry, which fixes all of them; empty if there are none.
    pub fn head(&self) -> &str {
        self.hashes.last().map_or("", String::as_str)
    }

    /// The hash of an entry, counted from 1.
    pub(crate) fn entry_hash(&self, n: u64) -> Option<&str> {
        self.hashes.get((n as usize).checked_sub(1)?).map(String::as_str)
    }

    /// The last act on each file.
    fn latest(&self) -> BTreeMap<&str, &ManifestAct> {
        self.entries.iter().map(|entry| (entry.act.file(), &entry.act)).collect()
    }

    /// The listed files that should exist, with length and digest.
    pub(crate) fn listed(&self) -> BTreeMap<&str, (u64, &str)> {
        self.latest().into_iter().filter_map(|(file, act)| Some((file, act.content()?))).collect()
    }

    /// Appends changes, and syncs them to disk.
    pub(crate) fn append(
        &mut self,
        path: &Path,
        changes: impl IntoIterator<Item = ManifestAct>,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let mut text = String::new();
        for act in changes {
            let (n, before) = (self.entries.len() as u64 + 1, self.head().to_owned());
            let entry = ManifestEntry { n, time: now.to_rfc3339(), act, before };
            let whole = serde_json::to_string(&entry)?;
            let body = whole.strip_suffix('}').unwrap_or(&whole);
            let hash = digest(body.as_bytes());
            text.push_str(&format!("{body}{HASH}{hash}\"}}\n"));
            self.entries.push(entry);
            self.hashes.push(hash);
        }
        if text.is_empty() {
            return Ok(());
        }
        let context = || format!("cannot write {}", path.display());
        let mut file = OpenOptions::new().append(true).create(true).open(path).with_context(context)?;
        if self.has_torn_end {
            file.set_len(self.bytes).with_context(context)?;
            self.has_torn_end = false;
        }
        file.write_all(text.as_bytes()).with_context(context)?;
        self.bytes += text.len() as u64;
        file.sync_all().with_context(context)?;
        sync_dir(path.parent().unwrap_or(Path::new("."))).with_context(context)
    }

    /// Compares this manifest with an earlier copy. Returns what the copy contains and this does not.
    pub fn check_since(&self, earlier: &Manifest) -> Vec<String> {
        let mut differences: Vec<String> = earlier
            .problems
            .iter()
            .map(|(n, what)| format!("line {n} of the kept manifest: {what}"))
            .collect();
        for (entry, hash) in earlier.entries.iter().zip(&earlier.hashes) {
            let at = (entry.n as usize).wrapping_sub(1);
            if self.hashes.get(at) != Some(hash) || self.entries.get(at) != Some(entry) {
                let file = entry.act.file();
                differences.push(format!(
                    "entry {} of the kept manifest, about {file}, is not in the archive's manifest",
                    entry.n
                ));
            }
        }
        differences
    }
}

impl Archive {
    /// Path of the manifest.
    pub fn manifest_path(&self) -> PathBuf {
        self.root().join("manifest.jsonl")
    }
}

/// Adds all complete files that the manifest does not list yet. The caller holds the write lock.
pub(crate) fn list_complete_files(archive: &Archive, store: &Store) -> anyhow::Result<()> {
    let mut manifest = Manifest::load(&archive.manifest_path())?;
    let on_disk = files::list(&archive.warc_dir())?;
    let mut changes = Vec::new();
    let mut n_bytes = 0;
    for row in store.files()?.into_iter().rev().filter(|row| row.state != FileState::Open) {
        let Some(file) = on_disk.iter().find(|file| file.name == row.name && !file.is_open) else { continue };
        let is_listed = manifest.listed().contains_key(row.name.as_str());
        if is_listed || row.committed_bytes < file.bytes || n_bytes > MAX_EARLIER_BYTES {
            continue;
        }
        n_bytes += file.bytes;
        let (bytes, sha256) = file_digest(&archive.warc_dir(), &row.name)?;
        changes.push(ManifestAct::Added { file: row.name, bytes, sha256 });
    }
    changes.reverse();
    manifest.append(&archive.manifest_path(), changes, super::now())
}

/// Complete files whose captures the state lacks, wholly or in part, because it was replaced by an older one. The next
/// writer adds them.
pub fn files_behind(archive: &Archive, store: &Store) -> anyhow::Result<Vec<String>> {
    let manifest = Manifest::load(&archive.manifest_path())?;
    let rows = store.files()?;
    let is_behind = |(name, (bytes, _)): &(&str, (u64, &str))| {
        let row = rows.iter().find(|row| row.name == *name);
        row.is_none_or(|row| row.committed_bytes < *bytes)
    };
    Ok(manifest.listed().into_iter().filter(is_behind).map(|(name, _)| name.to_owned()).collect())
}

/// Length and SHA-256 of a file in `warc/`.
pub(crate) fn file_digest(dir: &Path, name: &str) -> anyhow::Result<(u64, String)> {
    let path = files::locate(dir, name);
    let (mut file, mut hasher) = (File::open(&path)?, HashingSink(Sha256::new()));
    let bytes =
        io::copy(&mut file, &mut hasher).with_context(|| format!("cannot read {}", path.display()))?;
    Ok((bytes, data_encoding::HEXLOWER.encode(&hasher.0.finalize())))
}

struct HashingSink(Sha256);

impl Write for HashingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn digest(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(n: u64) -> ManifestAct {
        ManifestAct::Added { file: format!("{n}.warc.gz"), bytes: n, sha256: digest(&n.to_le_bytes()) }
    }

    fn with(n: u64) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("manifest.jsonl");
        for n in 0..n {
            let mut manifest = Manifest::load(&path).unwrap();
            manifest.append(&path, [added(n)], Timestamp::from_secs(n as i64)).unwrap();
        }
        (dir, path)
    }

    #[test]
    fn every_flip_is_found() {
        let (_dir, path) = with(3);
        let sound = std::fs::read(&path).unwrap();
        assert_eq!(Manifest::load(&path).unwrap().problems, []);
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let manifest = Manifest::load(&path).unwrap();
            assert!(!manifest.problems.is_empty() || manifest.has_torn_end, "byte {at}");
        }
    }

    #[test]
    fn a_kept_copy_shows_what_was_changed_or_removed() {
        let (_dir, path) = with(4);
        let kept = Manifest::load(&path).unwrap();
        let mut manifest = kept.clone();
        manifest.append(&path, [ManifestAct::Lost { file: "1.warc.gz".into() }], Timestamp::EPOCH).unwrap();
        let now = Manifest::load(&path).unwrap();
        assert_eq!(now.check_since(&kept), Vec::<String>::new(), "what was added changes nothing");
        assert_eq!(now.listed().len(), 3);
        // Somebody makes the whole chain again without a file.
        std::fs::remove_file(&path).unwrap();
        let mut forged = Manifest::default();
        forged.append(&path, [0, 2, 3].map(added), Timestamp::EPOCH).unwrap();
        assert_eq!(Manifest::load(&path).unwrap().problems, []);
        assert_eq!(Manifest::load(&path).unwrap().check_since(&kept).len(), 3);
    }

    #[test]
    fn a_torn_last_line_is_replaced() {
        let (_dir, path) = with(2);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        let mut manifest = Manifest::load(&path).unwrap();
        assert_eq!(manifest.entries.len(), 1);
        manifest.append(&path, [added(7)], Timestamp::EPOCH).unwrap();
        let manifest = Manifest::load(&path).unwrap();
        assert_eq!((manifest.entries.len(), manifest.problems.len(), manifest.has_torn_end), (2, 0, false));
    }
}
