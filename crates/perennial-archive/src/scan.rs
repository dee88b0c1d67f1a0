//! A WARC file -> rows for the state, damage, and wrong digests, in one pass and with constant memory.
//!
//! The records of one exchange are adjacent: the response, its request, facts about it, and resources derived from it.
//! The scan groups them by `WARC-Concurrent-To`, in any order.
//!
//! The scan computes all digests and trusts none that a record claims. It bounds untrusted text ([`untrusted`]).
//! Records that cannot be captures are quarantined.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::text::untrusted;
use perennial_core::time::Timestamp;
use perennial_warc::http::HttpHead;
use perennial_warc::surt::surt;
use perennial_warc::{
    Damage, DigestChecker, DigestVerdict, PayloadDigests, PayloadHasher, Record, RecordExtent, RecordHeader,
    RecordType, WarcItem, WarcReader, named_content,
};
use url::Url;

use super::content::{
    MAX_FACT_BYTES, capture_purpose, hops_in, index_mime, kind_and_identity, parse_hops, rendered_identity,
};
use super::feeds::{may_be_feed, read_feed};
use super::links::{
    MAX_STORED_BYTES, RENDERED_PREFIX, find_page_links, find_rendered, find_sitemap_pages, is_html,
    may_be_sitemap, rendered_page,
};
use super::writer::{DELTA_MIME, DELTA_PREFIX, LEFT_OUT_DIGEST, PAYLOAD_CONTENT, STANDS_FOR};
use crate::store::{CaptureKind, CaptureRow, PageKind, QuarantineReason, QuarantinedRecord};

/// Maximum number of records in one exchange; further records begin a new exchange. Real exchanges have a handful.
const MAX_GROUP_RECORDS: u64 = 64;

/// The next result of a scan.
#[derive(Debug)]
pub(crate) enum ScanItem {
    /// A capture with the extent of its exchange.
    Capture(CaptureRow),
    /// A range of bytes without a sound record.
    Damage(Damage),
    /// A record whose bytes contradict its header. If it is a capture, the scan reports that too.
    BadDigest { offset: u64, mismatch: DigestMismatch },
    /// A record that cannot be a capture because a field is missing or wrong.
    Unusable { offset: u64, why: String },
}

impl ScanItem {
    /// Byte offset in the file.
    pub(crate) fn offset(&self) -> u64 {
        match self {
            ScanItem::Capture(row) => row.offset,
            ScanItem::Damage(damage) => damage.offset,
            ScanItem::BadDigest { offset, .. } | ScanItem::Unusable { offset, .. } => *offset,
        }
    }

    /// The record's row in the quarantine; `None` for captures and damage.
    pub(crate) fn quarantined(&self) -> Option<QuarantinedRecord> {
        let (reason, what) = match self {
            ScanItem::Capture(_) | ScanItem::Damage(_) => return None,
            ScanItem::BadDigest { mismatch, .. } => (QuarantineReason::Digest, mismatch.to_string()),
            ScanItem::Unusable { why, .. } => (QuarantineReason::Record, why.clone()),
        };
        Some(QuarantinedRecord { offset: self.offset(), reason, what })
    }
}

/// A claimed digest that does not match the record's bytes: the record was forged or damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DigestMismatch {
    which: &'static str,
    claimed: String,
    computed: String,
    /// Whether the record is a segment of a split record. Its digest may be that of the whole record.
    is_segment: bool,
}

impl fmt::Display for DigestMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DigestMismatch { which, claimed, computed, is_segment } = self;
        write!(f, "forged or damaged: its {which} digest is {claimed}, its bytes have {computed}")?;
        match is_segment {
            true => f.write_str(" (its header marks it as a part: the digest may be that of the whole)"),
            false => Ok(()),
        }
    }
}

/// The summary of a finished scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanSummary {
    pub n_records: u64,
    /// End of the last sound record.
    pub sound_end: u64,
    /// Start of the exchange at which the scan ended, if a record in it cannot be found by its offset.
    pub unreachable_from: Option<u64>,
}

/// Scans from `from`, which must be the start of a record. `each` receives all results, and `progress` the bytes read.
pub(crate) fn scan(
    file: File,
    from: u64,
    progress: &dyn Fn(u64),
    each: &mut dyn FnMut(ScanItem) -> anyhow::Result<()>,
) -> anyhow::Result<ScanSummary> {
    scan_all(file, from, progress, each, false)
}

/// Like [`scan`], but ends at the first exchange with a record that cannot be found by its offset.
pub(crate) fn scan_reachable(
    file: File,
    progress: &dyn Fn(u64),
    each: &mut dyn FnMut(ScanItem) -> anyhow::Result<()>,
) -> anyhow::Result<ScanSummary> {
    scan_all(file, 0, progress, each, true)
}

fn scan_all(
    mut file: File,
    from: u64,
    progress: &dyn Fn(u64),
    each: &mut dyn FnMut(ScanItem) -> anyhow::Result<()>,
    ends_where_unreachable: bool,
) -> anyhow::Result<ScanSummary> {
    file.seek(SeekFrom::Start(from))?;
    let mut reader = WarcReader::seekable(file)?;
    let mut scanned = ScanSummary { sound_end: from, ..ScanSummary::default() };
    let mut groups = ExchangeGrouper::default();
    let mut behind = from;
    loop {
        let item = reader.next_item()?;
        match item {
            None => break,
            Some(WarcItem::Damage(damage)) => {
                groups.end(each)?;
                each(ScanItem::Damage(damage))?;
            }
            Some(WarcItem::Record(record)) => {
                let is_unreachable = scan_record(record, &mut groups, &mut scanned, each)?;
                if is_unreachable && ends_where_unreachable {
                    scanned.unreachable_from = Some(groups.start);
                    scanned.n_records -= groups.n_records;
                    return Ok(scanned);
                }
            }
        }
        let reached = reader.offset();
        progress(reached.saturating_sub(behind));
        behind = behind.max(reached);
    }
    groups.end(each)?;
    Ok(scanned)
}

/// Returns whether the record shares its member, or cannot be found by its offset for another reason.
fn scan_record(
    mut record: Record<'_, File>,
    groups: &mut ExchangeGrouper,
    scanned: &mut ScanSummary,
    each: &mut dyn FnMut(ScanItem) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let offset = record.offset();
    let links = RecordRelations::of(record.header());
    let is_segment = record.header().get("WARC-Segment-Number").is_some();
    let block = match read_block(&mut record) {
        Ok(block) => Some(block),
        // The reader reports the damage when the record is finished.
        Err(error) if is_damage(&error) => None,
        Err(error) => return Err(error.into()),
    };
    let row = block.as_ref().map(|block| capture_row(record.header(), block));
    let extent = match record.finish()? {
        Ok(extent) => extent,
        Err(damage) => {
            groups.end(each)?;
            each(ScanItem::Damage(damage))?;
            return Ok(false);
        }
    };
    scanned.n_records += 1;
    scanned.sound_end = extent.offset + extent.length;
    groups.join(&links, extent, each)?;
    let mismatches = block.iter().flat_map(|block| block.mismatches(is_segment));
    groups.quarantined.extend(mismatches.map(|mismatch| ScanItem::BadDigest { offset, mismatch }));
    match row {
        Some(Ok(Some(_))) if !extent.by_offset => {
            let why = "it cannot be found by its place, because it shares its compressed member with others or needs \
                       another dictionary than the file's first: import a copy with one member a record, as `warcio recompress FILE COPY` \
                       writes it";
            groups.quarantined.push(ScanItem::Unusable { offset, why: why.to_string() });
        }
        Some(Ok(Some(row))) => {
            if let Some(page) = rendered_page(&row.url) {
                groups.rendered = block.and_then(|block| Some((page.to_string(), block.kept?)));
            }
            groups.hold(CaptureRow { offset: extent.offset, length: extent.length, ..row })
        }
        Some(Err(why)) => groups.quarantined.push(ScanItem::Unusable { offset, why }),
        Some(Ok(None)) => {
            let hops = block.and_then(|block| hops_in(&block.kept?));
            groups.hops = groups.hops.take().or(hops);
        }
        None => {}
    }
    Ok(extent.shared || !extent.by_offset)
}

fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData)
}

/// The result of reading a record's block.
struct RecordBlock {
    head: Option<HttpHead>,
    block_verdict: DigestVerdict,
    payload_verdict: DigestVerdict,
    /// Digests of the stored payload.
    payload: PayloadDigests,
    /// The first bytes of a document with links, or of facts.
    kept: Option<Vec<u8>>,
}

impl RecordBlock {
    fn mismatches(&self, is_segment: bool) -> Vec<DigestMismatch> {
        let verdicts = [("block", &self.block_verdict), ("payload", &self.payload_verdict)];
        let mismatch = |(which, verdict): (&'static str, &DigestVerdict)| match verdict {
            DigestVerdict::Mismatch { claimed, computed } => {
                let claimed = untrusted::quoted(claimed).into_owned();
                Some(DigestMismatch { which, claimed, computed: computed.clone(), is_segment })
            }
            _ => None,
        };
        verdicts.into_iter().filter_map(mismatch).collect()
    }

    fn is_sound(&self) -> bool {
        !self.block_verdict.is_mismatch() && !self.payload_verdict.is_mismatch()
    }
}

fn read_block(record: &mut Record<'_, File>) -> io::Result<RecordBlock> {
    let header = record.header();
    let holds_payload = header.record_type() != RecordType::Revisit;
    let mut payload = PayloadHasher::checking(header.payload_digest().filter(|_| holds_payload));
    let mut block = DigestChecker::new(header.block_digest());
    let is_response = header.record_type() == RecordType::Response;
    let is_facts = header.record_type() == RecordType::Metadata && has_facts(header);
    let is_rendered_page = header.record_type() == RecordType::Resource
        && header.target_uri().is_some_and(|uri| uri.starts_with(RENDERED_PREFIX));
    let url = header.target_uri().unwrap_or_default().to_owned();
    let head = record.http_head()?.cloned();
    if let Some(head) = &head {
        block.update(head.as_bytes());
    }
    let is_read = |head: &HttpHead| is_html(head) || may_be_feed(head) || may_be_sitemap(&url, head);
    let has_links = is_response && head.as_ref().is_some_and(is_read) || is_rendered_page;
    let max_kept = match has_links {
        true => MAX_STORED_BYTES as usize,
        false => MAX_FACT_BYTES,
    };
    let mut kept = (has_links || is_facts).then(Vec::new);
    loop {
        let bytes = record.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        block.update(bytes);
        payload.update(bytes);
        if let Some(kept) = &mut kept {
            let room = max_kept.saturating_sub(kept.len());
            kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        let n = bytes.len();
        record.consume(n);
    }
    let (payload, payload_verdict) = payload.finish_checked();
    Ok(RecordBlock { head, block_verdict: block.verdict(), payload_verdict, payload, kept })
}

fn has_facts(header: &RecordHeader) -> bool {
    header.content_type().is_some_and(|kind| kind.starts_with("application/warc-fields"))
}

/// The record as a capture; `None` if its type does not make it one.
fn capture_row(header: &RecordHeader, block: &RecordBlock) -> Result<Option<CaptureRow>, String> {
    let kind = match header.record_type() {
        // An export wrote this record for other tools. The capture itself has its own record.
        RecordType::Revisit if header.get(STANDS_FOR).is_some() => return Ok(None),
        RecordType::Response => CaptureKind::Response,
        RecordType::Revisit => CaptureKind::Revisit,
        RecordType::Resource if !has_facts(header) => CaptureKind::Resource,
        RecordType::Metadata if !has_facts(header) => CaptureKind::Metadata,
        _ => return Ok(None),
    };
    let uri = untrusted::checked_url(header.target_uri().ok_or("it has no WARC-Target-URI")?)?;
    let date = header.date().ok_or("it has no WARC-Date that is a time")?;
    let head = block.head.as_ref();
    let content_type = match kind {
        CaptureKind::Response => {
            head.and_then(|head| head.get("Content-Type")).map(|value| value.into_owned())
        }
        CaptureKind::Revisit => None,
        CaptureKind::Resource | CaptureKind::Metadata => header.content_type().map(str::to_string),
    };
    let named = header.get(LEFT_OUT_DIGEST).and_then(untrusted::checked_label);
    let left_out = named.filter(|_| content_type.as_deref() == Some(DELTA_MIME));
    let url = left_out.and_then(|_| uri.strip_prefix(DELTA_PREFIX)).unwrap_or(uri).to_string();
    let (digest, content) = capture_digests(header, kind, block);
    let (response_kind, identity) = match left_out {
        Some(digest) => (Some(ResponseKind::Content), Some(Identity::parse(digest))),
        None => {
            let is_broken_off = header.get("WARC-Truncated") == Some("disconnect");
            let (response_kind, identity) =
                kind_and_identity(&url, kind, head, is_broken_off, header.refers_to_target_uri());
            let confirmed = named
                .filter(|_| kind == CaptureKind::Revisit && response_kind == Some(ResponseKind::NotModified));
            (response_kind, confirmed.map(Identity::parse).or(identity))
        }
    };
    Ok(Some(CaptureRow {
        response_kind,
        identity,
        purpose: match left_out {
            Some(_) => Some(PageKind::Page),
            None => head.and_then(|head| capture_purpose(None, kind, head)),
        },
        surt: surt(&url),
        time: Timestamp::from_secs(date.as_secs()),
        kind,
        status: head.and_then(HttpHead::status),
        mime: content_type.as_deref().and_then(index_mime),
        digest,
        content,
        is_sound: block.is_sound(),
        offset: 0,
        length: 0,
        group_offset: 0,
        group_length: 0,
        links: head.and_then(|head| {
            find_page_links(&url, kind, head, block.kept.as_deref().unwrap_or_default(), None)
        }),
        named: head
            .map(|head| find_sitemap_pages(&url, kind, head, block.kept.as_deref().unwrap_or_default()))
            .unwrap_or_default(),
        feed: head
            .zip(block.kept.as_deref())
            .filter(|_| kind == CaptureKind::Response)
            .and_then(|(head, body)| read_feed(&url, head, body)),
        url,
    }))
}

/// The digest for the index, and the content digest. A claimed digest is kept only if it is correct or belongs to a
/// revisit. The payload of a revisit is in a different record, and the claim identifies it.
fn capture_digests(
    header: &RecordHeader,
    kind: CaptureKind,
    block: &RecordBlock,
) -> (String, Option<String>) {
    let claimed = header.payload_digest().and_then(untrusted::checked_label);
    let computed = &block.payload;
    if kind == CaptureKind::Revisit {
        let content = header.get(PAYLOAD_CONTENT).or(claimed).and_then(named_content);
        return (claimed.unwrap_or(&computed.sha1).to_string(), content);
    }
    let holds = block.payload_verdict == DigestVerdict::Match;
    let digest = claimed.filter(|_| holds).unwrap_or(&computed.sha1);
    (digest.to_string(), Some(computed.content.clone()))
}

/// The ids of a record and its companions.
struct RecordRelations {
    id: Option<String>,
    companions: Vec<String>,
    may_stand_alone: bool,
}

impl RecordRelations {
    fn of(header: &RecordHeader) -> RecordRelations {
        let named =
            header.concurrent_to().filter_map(untrusted::checked_label).take(MAX_GROUP_RECORDS as usize);
        let mut companions: Vec<String> = named.map(str::to_string).collect();
        // Some writers link facts to their response with WARC-Refers-To.
        if header.record_type() == RecordType::Metadata {
            companions.extend(header.refers_to().and_then(untrusted::checked_label).map(str::to_string));
        }
        RecordRelations {
            id: header.record_id().and_then(untrusted::checked_label).map(str::to_string),
            companions,
            may_stand_alone: header.record_type() != RecordType::Warcinfo,
        }
    }
}

/// The current exchange: its extent, and the captures waiting for its end.
#[derive(Default)]
struct ExchangeGrouper {
    start: u64,
    end: u64,
    n_records: u64,
    /// Problems of its records.
    quarantined: Vec<ScanItem>,
    ids: HashSet<String>,
    companions: HashSet<String>,
    captures: Vec<CaptureRow>,
    /// A page's URL and its rendered document.
    rendered: Option<(String, Vec<u8>)>,
    /// The hops by which the URL was reached.
    hops: Option<String>,
}

impl ExchangeGrouper {
    /// Adds the record to its exchange, or ends the exchange and begins a new one.
    fn join(
        &mut self,
        links: &RecordRelations,
        extent: RecordExtent,
        each: &mut dyn FnMut(ScanItem) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let is_named = links.id.as_ref().is_some_and(|id| self.companions.contains(id));
        let names_one = links.companions.iter().any(|id| self.ids.contains(id));
        // An endless chain would have to be kept in memory.
        if !(is_named || names_one) || self.n_records >= MAX_GROUP_RECORDS {
            self.end(each)?;
            self.start = extent.offset;
        }
        self.n_records += 1;
        self.end = extent.offset + extent.length;
        if links.may_stand_alone {
            self.ids.extend(links.id.clone());
            self.companions.extend(links.companions.iter().cloned());
        }
        Ok(())
    }

    fn hold(&mut self, row: CaptureRow) {
        self.captures.push(row);
    }

    fn end(&mut self, each: &mut dyn FnMut(ScanItem) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let (group_offset, group_length) = (self.start, self.end - self.start);
        self.n_records = 0;
        self.ids.clear();
        self.companions.clear();
        self.quarantined.drain(..).try_for_each(&mut *each)?;
        let (rendered, hops) = (self.rendered.take(), self.hops.take());
        let captures = std::mem::take(&mut self.captures);
        let is_rendered_page = |row: &&CaptureRow| rendered.is_some() && rendered_page(&row.url).is_some();
        let documents: Vec<CaptureRow> = captures.iter().filter(is_rendered_page).cloned().collect();
        for mut row in captures {
            row.identity =
                row.identity.or_else(|| rendered_identity(&row.url, row.response_kind, &documents));
            if let Some((page, document)) = &rendered {
                use_rendered_links(&mut row, page, document);
            }
            if let (Some(hops), CaptureKind::Response | CaptureKind::Revisit) = (&hops, row.kind) {
                row.purpose = parse_hops(hops);
            }
            each(ScanItem::Capture(CaptureRow { group_offset, group_length, ..row }))?;
        }
        Ok(())
    }
}

/// Replaces the links of a rendered page with those of its rendered document, which follows the response.
fn use_rendered_links(row: &mut CaptureRow, page: &str, document: &[u8]) {
    let is_rendered_page = row.url == page
        && row.kind <= CaptureKind::Revisit
        && row.status.is_some_and(|status| (200..300).contains(&status));
    if let (true, Ok(url)) = (is_rendered_page, Url::parse(page)) {
        row.links = find_rendered(&url, document).kept().and_then(|links| links.for_capture(row.kind));
    }
}

/// Whether the file begins with a gzip or zstd magic number, or with the first line of a WARC or ARC record.
pub(crate) fn looks_like_warc(file: &mut File) -> io::Result<bool> {
    let mut head = [0u8; 16];
    file.rewind()?;
    let n = file.take(16).read(&mut head)?;
    let head = &head[..n];
    Ok(head.starts_with(&[0x1f, 0x8b])
        || head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd])
        || matches!(head, [low, 0x2a, 0x4d, 0x18, ..] if low & 0xf0 == 0x50)
        || head.starts_with(b"WARC/")
        || head.starts_with(b"filedesc:"))
}
