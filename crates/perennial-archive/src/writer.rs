//! Exchanges -> WARC records on disk, then the state. Only this module makes captures.
//!
//! A writer appends many exchanges and commits once. [`ArchiveWriter::append`] writes records.
//! [`ArchiveWriter::commit`] syncs the WARC file and only then updates the state. After a crash between the two, the
//! next writer repairs the archive ([`super::recover`]). No committed capture is ever lost or duplicated.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};

use anyhow::{Context, ensure};
use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::time::Timestamp;
use perennial_warc::http::HttpHead;
use perennial_warc::surt::surt;
use perennial_warc::{
    NewRecord, PayloadDigests, RecordId, RecordIds, RevisitProfile, Truncation, WarcWriter, WrittenRecord,
};

use super::content::{HOPS, capture_purpose, index_mime, kind_and_identity, rendered_identity};
use super::exchange::{
    BodyDigests, CompressedRecords, Exchange, ExchangeMembers, companion_records, feed_row, link_targets,
    response_record, sitemap_targets, with_ip,
};
use super::indexer::{IndexPace, IndexWriter};
use super::lock::WriteLock;
use super::recover::{self, Repair};
use super::{Archive, files, manifest, now, sync_dir};
use crate::settings::Settings;
use crate::store::{
    CaptureKind, CaptureRow, Commit, CommitCounts, FileRow, FileState, LatestPayload, PageKind, ShownVersion,
    Store,
};

/// A version that is not worth its bytes. The archive stores its delta in place of its payload.
#[derive(Clone, PartialEq, Debug)]
pub struct LeftOutVersion {
    /// Vi-Delta from the version before, or Vi-XML if that is shorter.
    pub delta: String,
    /// Content digest of the left-out payload.
    pub content: String,
    /// Length of the left-out payload.
    pub length: u64,
    /// Importance of the change.
    pub importance: f64,
    /// The version that the delta starts from. The delta reproduces the observation only from that version.
    pub base: ShownVersion,
}

/// Media type of the record of a left-out version.
pub const DELTA_MIME: &str = "application/x-vi-delta+xml";
/// Prefix of the page's URL in such a record. Without it, tools that build an index would show the record as the page.
/// Records of earlier versions of this program lack the prefix.
pub(crate) const DELTA_PREFIX: &str = "urn:videlta:";
/// The field with the reason why the payload is missing.
const LEFT_OUT: &str = "Perennial-Left-Out";
/// The field with the payload's SHA-256. Records of earlier versions of this program have its SHA-1.
pub(crate) const LEFT_OUT_DIGEST: &str = "Perennial-Left-Out-Digest";
/// The field with the reason why an export adds a revisit that is not in the archive: `304` or `left-out`.
pub(crate) const STANDS_FOR: &str = "Perennial-Stands-For";
/// The field with the SHA-256 of a revisit's payload. Other tools read only the SHA-1.
pub(crate) const PAYLOAD_CONTENT: &str = "Perennial-Payload-Digest";
/// The field with the identity of the version that the delta starts from. Records of earlier versions of this program
/// lack it.
pub const LEFT_OUT_BASE: &str = "Perennial-Left-Out-Base";

/// The result of an append.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppendOutcome {
    /// Response, or revisit if the archive has the payload already.
    pub kind: CaptureKind,
    /// Digest of the payload in the index.
    pub digest: String,
    /// Content digest of the payload.
    pub content: String,
    /// The identity of the response: the payload's content, or the target of a redirect.
    pub identity: Identity,
    /// Whether no earlier capture of this URL has this payload.
    pub is_new_version: bool,
    /// Whether the payload is not stored, because its version is not worth its bytes.
    pub is_left_out: bool,
    /// Bytes of the exchange in the WARC file.
    pub stored_bytes: u64,
}

/// The archive open for writing. There is at most one writer.
pub struct ArchiveWriter {
    archive: Archive,
    store: Store,
    ids: RecordIds,
    host: String,
    current: Option<CurrentFile>,
    pending: Vec<CaptureRow>,
    /// Payloads appended since the last commit: content digest -> URL and time.
    pending_origins: HashMap<String, (String, Timestamp)>,
    /// Latest payload of each URL appended since the last commit.
    pending_latest: HashMap<String, LatestPayload>,
    has_failed: bool,
    repairs: Vec<Repair>,
    indexer: IndexWriter,
    /// Dropped last: until then no other process may write.
    _lock: WriteLock,
}

struct CurrentFile {
    name: String,
    out: WarcWriter<BufWriter<File>>,
}

impl ArchiveWriter {
    /// Takes the write lock, repairs what a crash left, and is ready to append.
    pub fn open(archive: &Archive) -> anyhow::Result<ArchiveWriter> {
        let lock = WriteLock::take(archive.root())?;
        let (store, repairs) = recover::recover(archive)?;
        Ok(ArchiveWriter {
            archive: archive.clone(),
            store,
            ids: RecordIds::new(random_seed()),
            host: files::host_name(),
            current: None,
            pending: Vec::new(),
            pending_origins: HashMap::new(),
            pending_latest: HashMap::new(),
            has_failed: false,
            repairs,
            indexer: IndexWriter::new(archive),
            _lock: lock,
        })
    }

    /// Replaces the default pace of the index.
    pub fn with_index_pace(mut self, pace: IndexPace) -> ArchiveWriter {
        self.indexer.pace = pace;
        self
    }

    /// Repairs made on opening; show them to the user.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The state, for the caller's own tables.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Number of captures appended but not committed.
    pub fn n_pending(&self) -> usize {
        self.pending.len()
    }

    /// Writes the records of an exchange. They are durable and visible in the state after [`Self::commit`].
    ///
    /// After an error no further writes are possible. Exit or reopen the archive, which removes half-written records.
    /// All committed captures are safe.
    pub fn append(&mut self, exchange: Exchange<'_>) -> anyhow::Result<AppendOutcome> {
        self.append_compressed(exchange, None)
    }

    /// Like [`Self::append`], with records that a different thread may have compressed from the same exchange.
    pub fn append_compressed(
        &mut self,
        exchange: Exchange<'_>,
        records: Option<CompressedRecords>,
    ) -> anyhow::Result<AppendOutcome> {
        self.begin_write()?;
        let appended = self
            .append_exchange(exchange, records)
            .with_context(|| format!("cannot write to {}", self.archive.warc_dir().display()))?;
        self.has_failed = false;
        Ok(appended)
    }

    fn check_sound(&self) -> anyhow::Result<()> {
        ensure!(!self.has_failed, "an earlier write failed; reopen the archive to recover");
        Ok(())
    }

    /// Assumes that a write has failed until it is complete.
    fn begin_write(&mut self) -> anyhow::Result<()> {
        self.check_sound()?;
        self.has_failed = true;
        Ok(())
    }

    /// Writes the delta record of a left-out version in place of its exchange.
    pub fn append_left_out(
        &mut self,
        url: &str,
        time: Timestamp,
        left_out: &LeftOutVersion,
    ) -> anyhow::Result<AppendOutcome> {
        self.begin_write()?;
        let time = Timestamp::from_secs(time.as_secs());
        let id = self.ids.next_id();
        let uri = format!("{DELTA_PREFIX}{url}");
        let record = NewRecord::metadata_block(id, time, &uri, DELTA_MIME, left_out.delta.as_bytes())
            .field(LEFT_OUT, "unimportant")
            .field(LEFT_OUT_DIGEST, left_out.content.as_str())
            .field("Perennial-Left-Out-Length", left_out.length.to_string())
            .field("Perennial-Importance", format!("{:.6}", left_out.importance))
            .field(LEFT_OUT_BASE, left_out.base.identity.to_string())
            .refers_to(url, left_out.base.time);
        let written = self.current_file()?.out.write(&record)?;
        let delta = PayloadDigests::of(left_out.delta.as_bytes());
        let latest = LatestPayload {
            digest: delta.sha1.clone(),
            content: Some(delta.content.clone()),
            time,
            left_out: Some(left_out.content.clone()),
        };
        self.pending_latest.insert(url.to_string(), latest);
        self.pending.push(CaptureRow {
            response_kind: Some(ResponseKind::Content),
            identity: Some(Identity::Payload(left_out.content.clone())),
            purpose: Some(PageKind::Page),
            ..CaptureRow::without_http(url, time, CaptureKind::Metadata, DELTA_MIME, delta, &written)
        });
        self.has_failed = false;
        Ok(AppendOutcome {
            kind: CaptureKind::Metadata,
            digest: left_out.content.clone(),
            content: left_out.content.clone(),
            identity: Identity::Payload(left_out.content.clone()),
            is_new_version: true,
            is_left_out: true,
            stored_bytes: written.length,
        })
    }

    fn append_exchange(
        &mut self,
        mut exchange: Exchange<'_>,
        records: Option<CompressedRecords>,
    ) -> anyhow::Result<AppendOutcome> {
        let time = Timestamp::from_secs(exchange.time.as_secs());
        let head = HttpHead::parse(exchange.response_head);
        let (body, members) = match records {
            Some(records) => (records.hashed, Some(records.members)),
            None => (BodyDigests::of(exchange.response_head, &mut exchange.body)?, None),
        };
        let plan = self.plan(exchange.url, time, &head, &body, exchange.truncated.as_ref())?;
        let group_offset = self.current_file()?.out.offset();
        let (id, offset, length) = self.write_records(&mut exchange, time, &body, members, &plan)?;
        let derived = self.write_derived(&exchange, time, id)?;
        let group_length = self.current_file()?.out.offset() - group_offset;
        let (digest, content) = plan.digests(&body);
        let is_left_out = plan.left_out().is_some();
        let is_new_version = !is_left_out && !self.has_version(exchange.url, &digest, content.as_deref())?;
        let is_broken_off = exchange.truncated == Some(Truncation::Disconnect);
        let (response_kind, identity) =
            kind_and_identity(exchange.url, plan.kind(), Some(&head), is_broken_off, plan.origin_url());
        let identity = identity.or_else(|| rendered_identity(exchange.url, response_kind, &derived));
        let identity = plan.left_out().map(Identity::parse).or(identity);
        let hops = exchange.metadata.iter().find(|(name, _)| *name == HOPS).map(|(_, value)| *value);
        let row = CaptureRow {
            url: exchange.url.to_string(),
            surt: surt(exchange.url),
            time,
            kind: plan.kind(),
            status: head.status(),
            mime: match plan.kind() {
                CaptureKind::Response => head.get("Content-Type").as_deref().and_then(index_mime),
                _ => None,
            },
            digest,
            content,
            is_sound: true,
            response_kind,
            identity,
            purpose: capture_purpose(hops, plan.kind(), &head),
            offset,
            length,
            group_offset,
            group_length,
            links: link_targets(&mut exchange, &head, plan.kind())?,
            named: sitemap_targets(&mut exchange, &head, plan.kind())?,
            feed: feed_row(&mut exchange, &head, plan.kind())?,
        };
        let left_out = plan.left_out().map(str::to_string);
        let content = left_out.or_else(|| row.content.clone()).unwrap_or_else(|| row.digest.clone());
        let appended = AppendOutcome {
            kind: row.kind,
            digest: if is_left_out { content.clone() } else { row.digest.clone() },
            identity: row.identity.clone().unwrap_or_else(|| Identity::Payload(content.clone())),
            content,
            is_new_version,
            is_left_out,
            stored_bytes: group_length,
        };
        self.remember(&row, &plan);
        self.pending.push(row);
        self.pending.extend(derived.into_iter().map(|row| CaptureRow { group_offset, group_length, ..row }));
        Ok(appended)
    }

    /// Writes response or revisit with its companion records. Returns id, offset and length of the first.
    fn write_records(
        &mut self,
        exchange: &mut Exchange<'_>,
        time: Timestamp,
        body: &BodyDigests,
        members: Option<ExchangeMembers>,
        plan: &StoragePlan,
    ) -> anyhow::Result<(RecordId, u64, u64)> {
        if let (Some(members), StoragePlan::Store) = (members, plan) {
            let offset = self.current_file()?.out.write_members(&members.bytes)?;
            return Ok((members.id, offset, members.response_length));
        }
        let id = self.ids.next_id();
        let written = self.write_response(exchange, time, id, body, plan)?;
        self.write_companions(exchange, time, id)?;
        Ok((id, written.offset, written.length))
    }

    /// Plans a response with its payload, or a revisit if the archive has the payload.
    fn plan(
        &self,
        url: &str,
        time: Timestamp,
        head: &HttpHead,
        body: &BodyDigests,
        truncated: Option<&Truncation>,
    ) -> anyhow::Result<StoragePlan> {
        if head.status() == Some(304) {
            return self.plan_not_modified(url, time);
        }
        if body.length == 0 || truncated.is_some() {
            return Ok(StoragePlan::Store);
        }
        Ok(match self.payload_origin(url, &body.payload.sha1, &body.payload.content)? {
            Some((url, time)) => StoragePlan::Identical { url, time },
            None => StoragePlan::Store,
        })
    }

    /// A 304 confirms the latest payload of the URL that we received. If that payload was left out, so is this one. A
    /// stored payload from before would be the wrong one.
    fn plan_not_modified(&self, url: &str, time: Timestamp) -> anyhow::Result<StoragePlan> {
        let before = match self.pending_latest.get(url) {
            Some(latest) => Some(latest.clone()),
            None => self.store.latest_payload(url, time)?,
        };
        let Some(LatestPayload { digest, content, time, left_out }) = before else {
            return Ok(StoragePlan::Store);
        };
        if let Some(content) = left_out {
            return Ok(StoragePlan::LeftOut { content, url: url.to_string(), time });
        }
        let origin = match &content {
            Some(content) => self.payload_origin(url, &digest, content)?,
            None => None,
        };
        let (url, time) = origin.unwrap_or((url.to_string(), time));
        Ok(StoragePlan::NotModified { digest, content, url, time })
    }

    /// Finds the record with a payload by its SHA-256, which was computed from the bytes of that record.
    fn payload_origin(
        &self,
        url: &str,
        digest: &str,
        content: &str,
    ) -> anyhow::Result<Option<(String, Timestamp)>> {
        if let Some(origin) = self.pending_origins.get(content) {
            return Ok(Some(origin.clone()));
        }
        Ok(self.store.payload_origin(url, digest, content)?.map(|origin| (origin.url, origin.time)))
    }

    fn has_version(&self, url: &str, digest: &str, content: Option<&str>) -> anyhow::Result<bool> {
        let is_same = |row: &&CaptureRow| row.url == url && row.content.as_deref() == content;
        if self.pending.iter().rev().take(64).any(|row| is_same(&row)) {
            return Ok(true);
        }
        self.store.has_version(url, digest, content)
    }

    fn remember(&mut self, row: &CaptureRow, plan: &StoragePlan) {
        if let (CaptureKind::Response, Some(content)) = (row.kind, &row.content)
            && row.status != Some(304)
        {
            self.pending_origins.entry(content.clone()).or_insert((row.url.clone(), row.time));
        }
        if row.status.is_some_and(|s| s < 300 || s == 304 && row.kind == CaptureKind::Revisit) {
            let (digest, content) = (row.digest.clone(), row.content.clone());
            let (time, left_out) = match plan {
                StoragePlan::LeftOut { content, time, .. } => (*time, Some(content.clone())),
                _ => (row.time, None),
            };
            self.pending_latest.insert(row.url.clone(), LatestPayload { digest, content, time, left_out });
        }
    }

    fn write_response(
        &mut self,
        exchange: &mut Exchange<'_>,
        time: Timestamp,
        id: RecordId,
        body: &BodyDigests,
        plan: &StoragePlan,
    ) -> anyhow::Result<WrittenRecord> {
        let (url, head) = (exchange.url, exchange.response_head);
        let out = &mut self.current_file()?.out;
        let (profile, origin_url, origin_time) = match plan {
            StoragePlan::Store => {
                let record = response_record(exchange, time, id, body, b"");
                return Ok(out.write_stream(&record, body.length, &mut exchange.body.reader()?)?);
            }
            StoragePlan::Identical { url, time } => (RevisitProfile::IdenticalPayloadDigest, url, time),
            StoragePlan::NotModified { url, time, .. } | StoragePlan::LeftOut { url, time, .. } => {
                (RevisitProfile::ServerNotModified, url, time)
            }
        };
        let (digest, content) = plan.digests(body);
        // No record has the payload of a left-out version. Without a digest, other tools do not search for one.
        let digest = plan.left_out().is_none().then_some(digest.as_str());
        let record = NewRecord::revisit(id, time, url, profile, head, digest);
        let mut record = with_ip(record, exchange.ip).refers_to(origin_url, *origin_time);
        if let Some(content) = content {
            record = record.field(PAYLOAD_CONTENT, content);
        }
        if let Some(left_out) = plan.left_out() {
            record = record.field(LEFT_OUT_DIGEST, left_out);
        }
        Ok(out.write(&record)?)
    }

    fn write_companions(
        &mut self,
        exchange: &Exchange<'_>,
        time: Timestamp,
        id: RecordId,
    ) -> anyhow::Result<()> {
        for record in companion_records(exchange, time, id, &mut self.ids) {
            self.current_file()?.out.write(&record)?;
        }
        Ok(())
    }

    fn write_derived(
        &mut self,
        exchange: &Exchange<'_>,
        time: Timestamp,
        id: RecordId,
    ) -> anyhow::Result<Vec<CaptureRow>> {
        let mut rows = Vec::with_capacity(exchange.derived.len());
        for derived in exchange.derived {
            let own = self.ids.next_id();
            let record = NewRecord::resource(own, time, derived.uri, derived.content_type, derived.bytes);
            let written = self.current_file()?.out.write(&record.concurrent_to(id))?;
            let (digests, mime) = (PayloadDigests::of(derived.bytes), derived.content_type);
            rows.push(CaptureRow::without_http(
                derived.uri,
                time,
                CaptureKind::Resource,
                mime,
                digests,
                &written,
            ));
        }
        Ok(rows)
    }

    fn current_file(&mut self) -> anyhow::Result<&mut CurrentFile> {
        let current = match self.current.take() {
            Some(current) => current,
            None => self.begin_file()?,
        };
        Ok(self.current.insert(current))
    }

    /// Continues a file that a crash left open, or begins one with its warcinfo record.
    fn begin_file(&mut self) -> anyhow::Result<CurrentFile> {
        let dir = self.archive.warc_dir();
        let warc = &self.archive.settings().warc;
        let extension = warc.compression().extension();
        // If the compression setting has changed, the open file is not continued. It gets its final name with the
        // others.
        let goes_on = |file: &FileRow| file.state == FileState::Open && file.name.ends_with(extension);
        let name = match self.store.files()?.into_iter().find(goes_on) {
            Some(file) => file.name,
            None => files::new_name(&dir, warc, now(), &self.host),
        };
        let path = dir.join(format!("{name}{}", files::OPEN_SUFFIX));
        let file = OpenOptions::new().append(true).create(true).open(&path)?;
        let offset = file.metadata()?.len();
        sync_dir(&dir)?;
        let buffer = BufWriter::with_capacity(1 << 20, file);
        let mut current = CurrentFile {
            name,
            out: WarcWriter::new(buffer, offset, self.archive.settings().warc.compression())?,
        };
        if offset == 0 {
            let mut facts = warcinfo_facts(self.archive.settings());
            facts.insert(2, ("hostname", &self.host));
            let record = NewRecord::warcinfo(self.ids.next_id(), now(), &current.name, &facts);
            current.out.write(&record)?;
        }
        Ok(current)
    }

    /// Syncs everything appended so far, then updates the state. One call should cover many appends.
    pub fn commit(&mut self) -> anyhow::Result<CommitCounts> {
        self.commit_with(|_| Ok(()))
    }

    /// Like [`Self::commit`], with further writes in the same transaction of the state.
    pub fn commit_with(
        &mut self,
        also: impl FnOnce(&mut Commit<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<CommitCounts> {
        self.check_sound()?;
        let Some(current) = &mut self.current else {
            self.store.write(also)?;
            return Ok(CommitCounts::default());
        };
        self.has_failed = true;
        current.out.get_mut().flush()?;
        current.out.get_ref().get_ref().sync_data()?;
        let is_full = current.out.offset() >= self.archive.settings().warc.max_file_bytes;
        let row = FileRow {
            name: current.name.clone(),
            state: if is_full { FileState::Closed } else { FileState::Open },
            committed_bytes: current.out.offset(),
            source_digest: None,
        };
        if is_full {
            self.current = None;
            rename_closed_file(&self.archive, &row.name)?;
        }
        let ingested = self.store.commit_with(&row, &self.pending, also)?;
        self.indexer.note(&self.pending);
        self.pending.clear();
        self.pending_origins.clear();
        self.pending_latest.clear();
        self.has_failed = false;
        self.indexer.update(&mut self.store)?;
        if is_full {
            manifest::list_complete_files(&self.archive, &self.store)?;
        }
        Ok(ingested)
    }

    /// Commits, gives the open file its final name and brings the index up to date.
    pub fn close(mut self) -> anyhow::Result<()> {
        self.commit()?;
        self.current = None;
        for file in self.store.files()?.into_iter().filter(|file| file.state == FileState::Open) {
            rename_closed_file(&self.archive, &file.name)?;
            self.store.commit(&FileRow { state: FileState::Closed, ..file }, &[])?;
        }
        self.flush_index()?;
        manifest::list_complete_files(&self.archive, &self.store)
    }

    /// Writes the tail to `index/` now. Commits do it in the background when it is due.
    pub fn flush_index(&mut self) -> anyhow::Result<()> {
        self.indexer.finish(&mut self.store)
    }
}

impl CaptureRow {
    /// A sound capture without HTTP, whose record has no companions.
    fn without_http(
        url: &str,
        time: Timestamp,
        kind: CaptureKind,
        content_type: &str,
        digests: PayloadDigests,
        written: &WrittenRecord,
    ) -> CaptureRow {
        CaptureRow {
            url: url.to_string(),
            surt: surt(url),
            time,
            kind,
            status: None,
            mime: index_mime(content_type),
            digest: digests.sha1,
            content: Some(digests.content),
            is_sound: true,
            response_kind: None,
            identity: None,
            purpose: None,
            offset: written.offset,
            length: written.length,
            group_offset: written.offset,
            group_length: written.length,
            links: None,
            named: Vec::new(),
            feed: None,
        }
    }
}

/// How an exchange is stored.
enum StoragePlan {
    Store,
    Identical {
        url: String,
        time: Timestamp,
    },
    NotModified {
        digest: String,
        content: Option<String>,
        url: String,
        time: Timestamp,
    },
    /// A 304 that confirms a left-out version.
    LeftOut {
        content: String,
        url: String,
        time: Timestamp,
    },
}

impl StoragePlan {
    fn kind(&self) -> CaptureKind {
        match self {
            StoragePlan::Store => CaptureKind::Response,
            StoragePlan::Identical { .. } | StoragePlan::NotModified { .. } | StoragePlan::LeftOut { .. } => {
                CaptureKind::Revisit
            }
        }
    }

    /// The content digest of the left-out version that a 304 confirms.
    fn left_out(&self) -> Option<&str> {
        match self {
            StoragePlan::LeftOut { content, .. } => Some(content),
            _ => None,
        }
    }

    /// The URL of the payload that the record refers to.
    fn origin_url(&self) -> Option<&str> {
        match self {
            StoragePlan::Store => None,
            StoragePlan::Identical { url, .. }
            | StoragePlan::NotModified { url, .. }
            | StoragePlan::LeftOut { url, .. } => Some(url),
        }
    }

    /// The digest for the index, and the content digest.
    fn digests(&self, body: &BodyDigests) -> (String, Option<String>) {
        match self {
            StoragePlan::NotModified { digest, content, .. } => (digest.clone(), content.clone()),
            StoragePlan::LeftOut { .. } => (body.payload.sha1.clone(), None),
            _ => (body.payload.sha1.clone(), Some(body.payload.content.clone())),
        }
    }
}

/// The fields of a warcinfo record.
pub(crate) fn warcinfo_facts(settings: &Settings) -> Vec<(&'static str, &str)> {
    let facts = [
        ("software", concat!("perennial/", env!("CARGO_PKG_VERSION"))),
        ("format", "WARC File Format 1.1"),
        ("operator", &settings.warc.operator),
        ("isPartOf", &settings.archive.title),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// Removes the suffix `.open`.
pub(crate) fn rename_closed_file(archive: &Archive, name: &str) -> io::Result<()> {
    let dir = archive.warc_dir();
    let open = dir.join(format!("{name}{}", files::OPEN_SUFFIX));
    if open.exists() {
        std::fs::rename(open, dir.join(name))?;
        sync_dir(&dir)?;
    }
    Ok(())
}

/// 128 bits that no other process has. The keys of std's hash maps come from the system's random numbers.
pub fn random_seed() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let keys = RandomState::new();
    let half = |salt: u64| u128::from(keys.hash_one((salt, std::process::id(), now().as_millis())));
    half(1) << 64 | half(2)
}
