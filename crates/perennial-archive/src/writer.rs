//! Exchanges -> WARC records on disk, then the state that knows them: the one way in which captures are made.
//!
//! Append many, commit once: [`ArchiveWriter::append`] writes records, [`ArchiveWriter::commit`] syncs the
//! WARC and only then tells the state. What a crash leaves between the two is put right by the next writer
//! ([`super::recover`]); nothing that was committed can be lost, nothing is ever there twice.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};

use anyhow::{Context, bail};
use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::time::Timestamp;
use perennial_warc::http::HttpHead;
use perennial_warc::surt::surt;
use perennial_warc::{
    NewRecord, PayloadDigests, RecordId, RecordIds, RevisitProfile, Truncation, WarcWriter, Written,
};

use super::content::{HOPS, index_mime, look_of, purpose_of, rendered_identity};
use super::exchange::{
    CompressedRecords, Exchange, Hashed, Members, companion_records, feed_of, links_of, named_of,
    response_record, with_ip,
};
use super::indexer::{IndexPace, Indexer};
use super::lock::WriteLock;
use super::recover::{self, Repair};
use super::{Archive, files, now, sync_dir};
use crate::store::{
    CaptureRow, Commit, FileRow, FileState, Ingested, Kind, LatestPayload, PageKind, ShownVersion, Store,
};

/// A version that is not worth its bytes: what changed is kept in place of the payload.
#[derive(Clone, PartialEq, Debug)]
pub struct LeftOut {
    /// Vi-Delta from the version before; Vi-XML when that is shorter.
    pub delta: String,
    /// What tells the payload that was left out from every other.
    pub content: String,
    /// Its length.
    pub length: u64,
    /// How much the change matters.
    pub importance: f64,
    /// The version that the delta was made from: only with that one does it give what was seen.
    pub base: ShownVersion,
}

/// Media type of the record that stands for a left-out version.
pub const DELTA_MIME: &str = "application/x-vi-delta+xml";
/// What stands before the page's address in such a record, so that tools which make an index of their own do not show it as the
/// page. Records of earlier versions of this program lack it.
pub(crate) const DELTA_PREFIX: &str = "urn:videlta:";
/// Why the payload is not there.
const LEFT_OUT: &str = "Perennial-Left-Out";
/// What it was: its SHA-256; records of earlier versions of this program have its SHA-1.
pub(crate) const LEFT_OUT_DIGEST: &str = "Perennial-Left-Out-Digest";
/// Why an export has a revisit of which the archive has none: `304` or `left-out`.
pub(crate) const STANDS_FOR: &str = "Perennial-Stands-For";
/// The SHA-256 of the payload that a revisit stands for, beside the SHA-1 that the field's tools read.
pub(crate) const PAYLOAD_CONTENT: &str = "Perennial-Payload-Digest";
/// The identity of the version that the delta was made from. Records of earlier versions of this program lack it.
pub const LEFT_OUT_BASE: &str = "Perennial-Left-Out-Base";

/// What became of an appended exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Appended {
    /// Response, or revisit when the payload was in the archive.
    pub kind: Kind,
    /// Digest of the payload as the index has it.
    pub digest: String,
    /// What tells the payload from every other.
    pub content: String,
    /// What tells the answer from another: the payload's content, or where a redirect leads.
    pub identity: Identity,
    /// True when no earlier capture of this address had this payload.
    pub is_new_version: bool,
    /// True when the payload is not stored, because its version is not worth its bytes.
    pub is_left_out: bool,
    /// Bytes that the exchange took in the WARC file.
    pub stored_bytes: u64,
}

/// The archive open for writing; there is one at a time.
pub struct ArchiveWriter {
    archive: Archive,
    store: Store,
    ids: RecordIds,
    host: String,
    current: Option<CurrentFile>,
    pending: Vec<CaptureRow>,
    /// Payloads appended since the last commit: content -> where it is.
    pending_origins: HashMap<String, (String, Timestamp)>,
    /// Latest payload of addresses appended since the last commit.
    pending_latest: HashMap<String, LatestPayload>,
    has_failed: bool,
    repairs: Vec<Repair>,
    indexer: Indexer,
    /// The last to go: until then nobody else may write.
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
            indexer: Indexer::new(archive),
            _lock: lock,
        })
    }

    /// Makes the index keep another pace than the usual one.
    pub fn with_index_pace(mut self, pace: IndexPace) -> ArchiveWriter {
        self.indexer.pace = pace;
        self
    }

    /// What opening had to put right; tell the user.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// The state as of the last commit.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The state, for tables of the caller's own.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The archive.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Captures appended and not yet committed.
    pub fn n_pending(&self) -> usize {
        self.pending.len()
    }

    /// Writes the records of an exchange. They are safe, and visible in the state, after [`Self::commit`].
    ///
    /// After an error nothing more can be written: close the program or open the archive anew, which cuts
    /// off what was written in part. All that was committed is safe.
    pub fn append(&mut self, exchange: Exchange<'_>) -> anyhow::Result<Appended> {
        self.append_compressed(exchange, None)
    }

    /// As [`Self::append`], with the costly part done beforehand from the same exchange.
    pub fn append_compressed(
        &mut self,
        exchange: Exchange<'_>,
        records: Option<CompressedRecords>,
    ) -> anyhow::Result<Appended> {
        if self.has_failed {
            bail!("an earlier write failed: open the archive anew, which repairs it");
        }
        self.has_failed = true;
        let appended = self
            .append_exchange(exchange, records)
            .with_context(|| format!("cannot write to {}", self.archive.warc_dir().display()))?;
        self.has_failed = false;
        Ok(appended)
    }

    /// Writes the record that stands for a version that is left out, in place of its exchange.
    pub fn append_left_out(
        &mut self,
        url: &str,
        time: Timestamp,
        left_out: &LeftOut,
    ) -> anyhow::Result<Appended> {
        if self.has_failed {
            bail!("an earlier write failed: open the archive anew, which repairs it");
        }
        self.has_failed = true;
        let time = Timestamp::from_secs(time.as_secs());
        let id = self.ids.next_id();
        let uri = format!("{DELTA_PREFIX}{url}");
        let record = NewRecord::metadata_block(id, time, &uri, DELTA_MIME, left_out.delta.as_bytes())
            .field(LEFT_OUT, "unimportant")
            .field(LEFT_OUT_DIGEST, left_out.content.as_str())
            .field("Perennial-Left-Out-Length", left_out.length.to_string())
            .field("Perennial-Importance", format!("{:.6}", left_out.importance))
            .field(LEFT_OUT_BASE, left_out.base.identity.to_string())
            .refers_to(url, left_out.base.time, None);
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
            url: url.to_string(),
            surt: surt(url),
            time,
            kind: Kind::Metadata,
            status: None,
            mime: index_mime(DELTA_MIME),
            digest: delta.sha1,
            content: Some(delta.content),
            is_sound: true,
            answer: Some(ResponseKind::Content),
            identity: Some(Identity::Payload(left_out.content.clone())),
            purpose: Some(PageKind::Page),
            offset: written.offset,
            length: written.length,
            group_offset: written.offset,
            group_length: written.length,
            links: None,
            named: Vec::new(),
            feed: None,
        });
        self.has_failed = false;
        Ok(Appended {
            kind: Kind::Metadata,
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
    ) -> anyhow::Result<Appended> {
        let time = Timestamp::from_secs(exchange.time.as_secs());
        let head = HttpHead::parse(exchange.response_head);
        let (body, members) = match records {
            Some(records) => (records.hashed, Some(records.members)),
            None => (Hashed::of(exchange.response_head, &mut exchange.body)?, None),
        };
        let plan = self.plan(exchange.url, &head, &body, exchange.truncated.as_ref())?;
        let group_offset = self.current_file()?.out.offset();
        let (id, offset, length) = self.write_records(&mut exchange, time, &body, members, &plan)?;
        let derived = self.write_derived(&exchange, time, id)?;
        let group_length = self.current_file()?.out.offset() - group_offset;
        let (digest, content) = plan.digests(&body);
        let is_left_out = plan.left_out().is_some();
        let is_new_version = !is_left_out && !self.has_version(exchange.url, &digest, content.as_deref())?;
        let is_broken_off = exchange.truncated == Some(Truncation::Disconnect);
        let (answer, identity) =
            look_of(exchange.url, plan.kind(), Some(&head), is_broken_off, plan.origin_url());
        let identity = identity.or_else(|| rendered_identity(exchange.url, answer, &derived));
        let identity = plan.left_out().map(Identity::parse).or(identity);
        let hops = exchange.metadata.iter().find(|(name, _)| *name == HOPS).map(|(_, value)| *value);
        let row = CaptureRow {
            url: exchange.url.to_string(),
            surt: surt(exchange.url),
            time,
            kind: plan.kind(),
            status: head.status(),
            mime: match plan.kind() {
                Kind::Response => head.get("Content-Type").as_deref().and_then(index_mime),
                _ => None,
            },
            digest,
            content,
            is_sound: true,
            answer,
            identity,
            purpose: purpose_of(hops, plan.kind(), &head),
            offset,
            length,
            group_offset,
            group_length,
            links: links_of(&mut exchange, &head, plan.kind())?,
            named: named_of(&mut exchange, &head, plan.kind())?,
            feed: feed_of(&mut exchange, &head, plan.kind())?,
        };
        let left_out = plan.left_out().map(str::to_string);
        let content = left_out.or_else(|| row.content.clone()).unwrap_or_else(|| row.digest.clone());
        let appended = Appended {
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

    /// Writes response or revisit and its companions. Gives name, offset and length of the first.
    fn write_records(
        &mut self,
        exchange: &mut Exchange<'_>,
        time: Timestamp,
        body: &Hashed,
        members: Option<Members>,
        plan: &Plan,
    ) -> anyhow::Result<(RecordId, u64, u64)> {
        if let (Some(members), Plan::Store) = (members, plan) {
            let offset = self.current_file()?.out.write_members(&members.bytes)?;
            return Ok((members.id, offset, members.response_length));
        }
        let id = self.ids.next_id();
        let written = self.write_response(exchange, time, id, body, plan)?;
        self.write_companions(exchange, time, id)?;
        Ok((id, written.offset, written.length))
    }

    /// A response with its payload, or a revisit of one that the archive has.
    fn plan(
        &self,
        url: &str,
        head: &HttpHead,
        body: &Hashed,
        truncated: Option<&Truncation>,
    ) -> anyhow::Result<Plan> {
        if head.status() == Some(304) {
            return self.plan_not_modified(url);
        }
        if body.length == 0 || truncated.is_some() {
            return Ok(Plan::Store);
        }
        Ok(match self.origin_of(url, &body.payload.sha1, &body.payload.content)? {
            Some((url, time)) => Plan::Identical { url, time },
            None => Plan::Store,
        })
    }

    /// A 304 stands for the latest payload that we had of the address. Where that one was left out, so is this one: an
    /// earlier payload that is stored is another.
    fn plan_not_modified(&self, url: &str) -> anyhow::Result<Plan> {
        let before = match self.pending_latest.get(url) {
            Some(latest) => Some(latest.clone()),
            None => self.store.latest_payload(url)?,
        };
        let Some(LatestPayload { digest, content, time, left_out }) = before else { return Ok(Plan::Store) };
        if let Some(content) = left_out {
            return Ok(Plan::LeftOut { content, url: url.to_string(), time });
        }
        let origin = match &content {
            Some(content) => self.origin_of(url, &digest, content)?,
            None => None,
        };
        let (url, time) = origin.unwrap_or((url.to_string(), time));
        Ok(Plan::NotModified { digest, content, url, time })
    }

    /// Which record holds a payload. Its SHA-256 decides, which was computed from the bytes of that record.
    fn origin_of(
        &self,
        url: &str,
        digest: &str,
        content: &str,
    ) -> anyhow::Result<Option<(String, Timestamp)>> {
        if let Some(origin) = self.pending_origins.get(content) {
            return Ok(Some(origin.clone()));
        }
        Ok(self.store.origin_of(url, digest, content)?.map(|origin| (origin.url, origin.time)))
    }

    fn has_version(&self, url: &str, digest: &str, content: Option<&str>) -> anyhow::Result<bool> {
        let is_same = |row: &&CaptureRow| row.url == url && row.content.as_deref() == content;
        if self.pending.iter().rev().take(64).any(|row| is_same(&row)) {
            return Ok(true);
        }
        self.store.has_version(url, digest, content)
    }

    fn remember(&mut self, row: &CaptureRow, plan: &Plan) {
        if let (Kind::Response, Some(content)) = (row.kind, &row.content)
            && row.status != Some(304)
        {
            self.pending_origins.entry(content.clone()).or_insert((row.url.clone(), row.time));
        }
        if row.status.is_some_and(|s| s < 300 || s == 304 && row.kind == Kind::Revisit) {
            let (digest, content) = (row.digest.clone(), row.content.clone());
            let (time, left_out) = match plan {
                Plan::LeftOut { content, time, .. } => (*time, Some(content.clone())),
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
        body: &Hashed,
        plan: &Plan,
    ) -> anyhow::Result<Written> {
        let (url, head) = (exchange.url, exchange.response_head);
        let out = &mut self.current_file()?.out;
        let (profile, origin_url, origin_time) = match plan {
            Plan::Store => {
                let record = response_record(exchange, time, id, body, b"");
                return Ok(out.write_stream(&record, body.length, &mut exchange.body.reader()?)?);
            }
            Plan::Identical { url, time } => (RevisitProfile::IdenticalPayloadDigest, url, time),
            Plan::NotModified { url, time, .. } | Plan::LeftOut { url, time, .. } => {
                (RevisitProfile::ServerNotModified, url, time)
            }
        };
        let (digest, content) = plan.digests(body);
        // No record has the payload of a left-out version, so no digest leads other tools to it.
        let digest = plan.left_out().is_none().then_some(digest.as_str());
        let record = NewRecord::revisit(id, time, url, profile, head, digest);
        let mut record = with_ip(record, exchange.ip).refers_to(origin_url, *origin_time, None);
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
            let digests = PayloadDigests::of(derived.bytes);
            rows.push(CaptureRow {
                url: derived.uri.to_string(),
                surt: surt(derived.uri),
                time,
                kind: Kind::Resource,
                status: None,
                mime: index_mime(derived.content_type),
                digest: digests.sha1,
                content: Some(digests.content),
                is_sound: true,
                answer: None,
                identity: None,
                purpose: None,
                offset: written.offset,
                length: written.length,
                group_offset: 0,
                group_length: 0,
                links: None,
                named: Vec::new(),
                feed: None,
            });
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

    /// Goes on with a file that a crash left open, or begins one with its warcinfo record.
    fn begin_file(&mut self) -> anyhow::Result<CurrentFile> {
        let dir = self.archive.warc_dir();
        let warc = &self.archive.settings().warc;
        let extension = warc.compression().extension();
        // One of another compression, because the setting was changed, gets its final name with the others.
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
            let facts = self.warcinfo_facts();
            let facts: Vec<(&str, &str)> =
                facts.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let record = NewRecord::warcinfo(self.ids.next_id(), now(), &current.name, &facts);
            current.out.write(&record)?;
        }
        Ok(current)
    }

    fn warcinfo_facts(&self) -> Vec<(&'static str, String)> {
        let settings = self.archive.settings();
        let mut facts = vec![
            ("software", concat!("perennial/", env!("CARGO_PKG_VERSION")).to_string()),
            ("format", "WARC File Format 1.1".to_string()),
            ("hostname", self.host.clone()),
        ];
        if !settings.warc.operator.is_empty() {
            facts.push(("operator", settings.warc.operator.clone()));
        }
        if !settings.archive.title.is_empty() {
            facts.push(("isPartOf", settings.archive.title.clone()));
        }
        facts
    }

    /// Makes everything appended so far durable, then known. Call it once for many appends.
    pub fn commit(&mut self) -> anyhow::Result<Ingested> {
        self.commit_with(|_| Ok(()))
    }

    /// As [`Self::commit`], with more to write in the same transaction of the state.
    pub fn commit_with(
        &mut self,
        also: impl FnOnce(&mut Commit<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ingested> {
        if self.has_failed {
            bail!("an earlier write failed: open the archive anew, which repairs it");
        }
        let Some(current) = &mut self.current else {
            self.store.write(also)?;
            return Ok(Ingested::default());
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
            give_final_name(&self.archive, &row.name)?;
        }
        let ingested = self.store.commit_with(&row, &self.pending, also)?;
        self.indexer.note(&self.pending);
        self.pending.clear();
        self.pending_origins.clear();
        self.pending_latest.clear();
        self.has_failed = false;
        self.indexer.keep_up(&mut self.store)?;
        Ok(ingested)
    }

    /// Commits, gives the open file its final name and brings the index up to date.
    pub fn close(mut self) -> anyhow::Result<()> {
        self.commit()?;
        self.current = None;
        for file in self.store.files()?.into_iter().filter(|file| file.state == FileState::Open) {
            give_final_name(&self.archive, &file.name)?;
            self.store.commit(&FileRow { state: FileState::Closed, ..file }, &[])?;
        }
        self.flush_index()
    }

    /// Writes the captures that are in the state alone to `index/`, now. Commits do it in time by themselves, in the
    /// background.
    pub fn flush_index(&mut self) -> anyhow::Result<()> {
        self.indexer.finish(&mut self.store)
    }
}

/// What an exchange becomes.
enum Plan {
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
    /// A 304 that confirms a version that was left out.
    LeftOut {
        content: String,
        url: String,
        time: Timestamp,
    },
}

impl Plan {
    fn kind(&self) -> Kind {
        match self {
            Plan::Store => Kind::Response,
            Plan::Identical { .. } | Plan::NotModified { .. } | Plan::LeftOut { .. } => Kind::Revisit,
        }
    }

    /// What tells the left-out version that is confirmed from every other.
    fn left_out(&self) -> Option<&str> {
        match self {
            Plan::LeftOut { content, .. } => Some(content),
            _ => None,
        }
    }

    /// The address whose payload the record stands for.
    fn origin_url(&self) -> Option<&str> {
        match self {
            Plan::Store => None,
            Plan::Identical { url, .. } | Plan::NotModified { url, .. } | Plan::LeftOut { url, .. } => {
                Some(url)
            }
        }
    }

    /// The digest of the index, and what tells the payload from every other.
    fn digests(&self, body: &Hashed) -> (String, Option<String>) {
        match self {
            Plan::NotModified { digest, content, .. } => (digest.clone(), content.clone()),
            Plan::LeftOut { .. } => (body.payload.sha1.clone(), None),
            _ => (body.payload.sha1.clone(), Some(body.payload.content.clone())),
        }
    }
}

/// Takes `.open` off.
pub(crate) fn give_final_name(archive: &Archive, name: &str) -> io::Result<()> {
    let dir = archive.warc_dir();
    let open = dir.join(format!("{name}{}", files::OPEN_SUFFIX));
    if open.exists() {
        std::fs::rename(open, dir.join(name))?;
        sync_dir(&dir)?;
    }
    Ok(())
}

/// 128 bits that no other process has: the keys of std's hash maps come from the system's source of chance.
pub fn random_seed() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let keys = RandomState::new();
    let half = |salt: u64| u128::from(keys.hash_one((salt, std::process::id(), now().as_millis())));
    half(1) << 64 | half(2)
}
