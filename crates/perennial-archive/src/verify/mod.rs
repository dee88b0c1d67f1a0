//! An archive -> a list of its defects. It checks records against their digests, files against the manifest, the state
//! against the records, the index against the state, and databases against their checksums. A repair moves half-written
//! ends to side files and rebuilds the smallest part that is wrong.

mod index;
mod manifest;
mod records;
mod repair;

use serde::Serialize;

use super::erase::files_being_erased;
use super::manifest::Manifest;
use super::recover::Repair;
use super::{Archive, Snapshot, files};
use crate::store::{PageCheck, QuarantineReason, QuarantinedRecord, Store, check_pages, is_database_error};
use index::check_index;
pub use manifest::ManifestReport;
use manifest::{check_manifest, listed_difference};
use records::check_files;
pub use repair::{rebuild, repair};

/// One defect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Defect {
    pub kind: DefectKind,
    /// File in `warc/` or `index/`, or `state.db`.
    pub file: String,
    /// Byte offset in the file, if the defect has one.
    pub offset: Option<u64>,
    /// A description for people.
    pub what: String,
    /// Whether the defect came with an imported file, whose bytes have not changed since the import.
    pub is_imported: bool,
}

impl Defect {
    fn new(kind: DefectKind, file: impl Into<String>, offset: Option<u64>, what: String) -> Defect {
        Defect { kind, file: file.into(), offset, what, is_imported: false }
    }

    /// A difference from an earlier manifest.
    pub fn of_manifest(what: String) -> Defect {
        Defect::new(DefectKind::Manifest, MANIFEST, None, what)
    }
}

/// The check that found a defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefectKind {
    /// Bytes that are not a sound record.
    Damage,
    /// A record whose bytes contradict its digest: it was forged or damaged.
    Digest,
    /// A record without the fields that a capture needs.
    Record,
    /// An observation that the analysis could not read.
    Analysis,
    /// A file that could not be read to its end.
    Unread,
    /// A WARC file missing from the state, or from the disk.
    File,
    /// The state contradicts the records or itself.
    State,
    /// The index contradicts the state.
    Index,
    /// A page of a database contradicts its checksum.
    Page,
    /// A file contradicts the manifest, or the manifest itself.
    Manifest,
    /// A capture is dated in the future.
    Future,
}

/// Work that a writer has begun and not finished. The next writer completes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct UnfinishedWork {
    /// File in `warc/`.
    pub file: String,
    /// A description for people.
    pub what: String,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// WARC files read.
    pub n_files: u64,
    /// Sound records in them.
    pub n_records: u64,
    /// Captures on which state and records agree.
    pub n_captures: u64,
    /// Records whose bytes contradict the digests that they claim: forged or damaged.
    pub n_mismatching: u64,
    /// Quarantined records: they cannot be captures, or could not be analysed. They do not count as defects.
    pub n_quarantined: u64,
    /// The first quarantined records.
    pub quarantined: Vec<Defect>,
    pub defects: Vec<Defect>,
    /// Captures dated in the future, which count only then. They are not defects.
    pub n_future: u64,
    /// The first of these captures.
    pub future: Vec<Defect>,
    pub manifest: ManifestReport,
    /// Unfinished work, which is not a defect.
    pub unfinished: Vec<UnfinishedWork>,
    /// Repairs made.
    pub repairs: Vec<Repair>,
}

/// Maximum number of quarantined records listed; further ones are only counted.
const MAX_LISTED: usize = 1_000;

/// Reads everything and reports each defect, without changing the archive. `progress` receives the bytes read.
pub fn verify(snapshot: &Snapshot, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let (archive, store) = (snapshot.archive(), snapshot.store());
    let manifest = Manifest::load(&archive.manifest_path())?;
    let being_erased = files_being_erased(archive)?;
    for file in &being_erased {
        let what = "an erasure was begun".to_owned();
        report.unfinished.push(UnfinishedWork { file: file.clone(), what });
    }
    unless_unreadable(&mut report, |report| {
        check_files(snapshot, &manifest, &being_erased, report, progress)
    })?;
    unless_unreadable(&mut report, |report| {
        let defect = |what| Defect::new(DefectKind::State, STATE, None, what);
        report.defects.extend(store.contradictions()?.into_iter().map(defect));
        Ok(())
    })?;
    if being_erased.is_empty() {
        unless_unreadable(&mut report, |report| check_index(snapshot, &mut report.defects))?;
    }
    unless_unreadable(&mut report, |report| list_unread(store, report))?;
    unless_unreadable(&mut report, |report| list_future(archive, store, report))?;
    check_databases(archive, &mut report)?;
    check_manifest(archive, &manifest, &mut report)?;
    Ok(report)
}

/// Like [`verify`] with a snapshot of the present. A state that cannot be read is a defect. The others are then unknown,
/// except those of the files that the manifest lists.
pub fn verify_present(archive: &Archive, progress: &(dyn Fn(u64) + Sync)) -> anyhow::Result<VerifyReport> {
    let error = match archive.snapshot() {
        Ok(snapshot) => return verify(&snapshot, progress),
        Err(error) => error,
    };
    if !archive.state_path().exists() {
        return Err(error);
    }
    Store::refuse_later_schema(&archive.state_path())?;
    let mut report = VerifyReport::default();
    let what = format!("{error:#}: use --repair");
    report.defects.push(Defect::new(DefectKind::State, STATE, None, what));
    let manifest = Manifest::load(&archive.manifest_path())?;
    for (name, listed) in manifest.listed() {
        if files::locate(&archive.warc_dir(), name).exists() {
            report.defects.extend(listed_difference(archive, name, listed)?);
        }
    }
    check_databases(archive, &mut report)?;
    check_manifest(archive, &manifest, &mut report)?;
    Ok(report)
}

const STATE: &str = "state.db";
const MANIFEST: &str = "manifest.jsonl";

/// Runs a check. If SQLite cannot read the state, that is a defect and the other checks continue.
fn unless_unreadable(
    report: &mut VerifyReport,
    check: impl FnOnce(&mut VerifyReport) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    match check(report) {
        Err(error) if is_database_error(&error) => {
            let what = format!("it cannot be read: {error:#}; use --repair");
            report.defects.push(Defect::new(DefectKind::State, STATE, None, what));
            Ok(())
        }
        done => done,
    }
}

/// Compares each page of the databases with its checksum.
fn check_databases(archive: &Archive, report: &mut VerifyReport) -> anyhow::Result<()> {
    let hints = [
        (archive.state_path(), STATE, "use --repair"),
        (archive.texts_path(), SEARCH, "use --repair"),
        (archive.outbox_path(), "outbox.db", "move it away, and rules start again"),
    ];
    for (path, name, hint) in hints {
        let PageCheck::Contradicting(pages) = check_pages(&path)? else { continue };
        let (n_pages, first) = (pages.len(), pages.iter().take(20));
        if n_pages > 0 {
            let first: Vec<String> = first.map(u32::to_string).collect();
            let what = format!("{n_pages} pages contradict their checksums ({}): {hint}", first.join(", "));
            report.defects.push(Defect::new(DefectKind::Page, name, None, what));
        }
    }
    Ok(())
}

const SEARCH: &str = "search.db";

/// Adds the captures dated in the future.
fn list_future(archive: &Archive, store: &Store, report: &mut VerifyReport) -> anyhow::Result<()> {
    let horizon = archive.horizon();
    report.n_future = store.count_after(horizon)?;
    for (file, offset, url, time) in store.captures_after(horizon, MAX_LISTED)? {
        let what = format!("a capture of {url} is dated {}, in the future", time.to_rfc3339());
        report.future.push(Defect::new(DefectKind::Future, file, Some(offset), what));
    }
    Ok(())
}

/// Adds the observations that could not be analysed. Only the analysis finds them; a scan of the WARC files does not.
fn list_unread(store: &Store, report: &mut VerifyReport) -> anyhow::Result<()> {
    report.n_quarantined += store.count_quarantined()?.n_unread;
    let room = MAX_LISTED.saturating_sub(report.quarantined.len());
    for (file, QuarantinedRecord { offset, what, .. }) in
        store.quarantined(QuarantineReason::Analysis, room)?
    {
        report.quarantined.push(Defect::new(DefectKind::Analysis, file, Some(offset), what));
    }
    Ok(())
}

impl VerifyReport {
    fn has(&self, is_wanted: impl Fn(&Defect) -> bool) -> bool {
        self.defects.iter().any(is_wanted)
    }

    /// Number of defects that came with imported files.
    pub fn n_imported(&self) -> usize {
        self.defects.iter().filter(|defect| defect.is_imported).count()
    }

    fn add(&mut self, defect: Defect) {
        let is_again = |last: &Defect| (last.kind, last.offset) == (defect.kind, defect.offset);
        if defect.kind == DefectKind::Digest && !self.defects.last().is_some_and(is_again) {
            self.n_mismatching += 1;
        }
        if defect.kind != DefectKind::Record {
            return self.defects.push(defect);
        }
        self.n_quarantined += 1;
        if self.quarantined.len() < MAX_LISTED {
            self.quarantined.push(defect);
        }
    }
}
