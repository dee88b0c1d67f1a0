//! One visit to a URL -> its records, hashed and compressed: the part of an append that needs no writer.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::IpAddr;

use perennial_core::time::Timestamp;
use perennial_warc::http::HttpHead;
use perennial_warc::request::capture_url;
use perennial_warc::{
    Compression, NewRecord, PayloadDigests, PayloadHasher, RecordId, RecordIds, Sha1Stream, Truncation,
    WarcWriter,
};

use super::feeds::{begins_as_feed, may_be_feed, read_stored_feed};
use super::links::{PageLinks, find_page_links, find_sitemap_pages, rendered_page};
use super::writer::random_seed;
use crate::store::{CaptureKind, FeedRow, LinkTarget};

/// A response's body as it came over the wire.
pub enum ExchangeBody<'a> {
    Bytes(&'a [u8]),
    /// On disk; read twice from the start.
    Spooled(&'a mut File),
}

impl Exchange<'_> {
    /// The URL under which the response is indexed.
    pub(super) fn capture_url(&self) -> Cow<'_, str> {
        let request = HttpHead::parse(self.request_head);
        let method = request.method().unwrap_or(Cow::Borrowed("GET"));
        let content_type = request.get("Content-Type").unwrap_or_default();
        capture_url(self.url, &method, &content_type, self.request_body)
    }
}

/// A resource computed from a capture and stored with it as a resource record.
pub struct DerivedResource<'a> {
    /// For example `urn:vixml:http://example.org/`.
    pub uri: &'a str,
    pub content_type: &'a str,
    pub bytes: &'a [u8],
}

/// One visit to a URL: request and response, byte for byte.
pub struct Exchange<'a> {
    /// The requested URL.
    pub url: &'a str,
    /// The time of the visit, stored in whole seconds.
    pub time: Timestamp,
    /// IP address of the server.
    pub ip: Option<IpAddr>,
    /// Request line and fields with their blank line. If empty, no request record is stored.
    pub request_head: &'a [u8],
    /// Its body; empty for GET.
    pub request_body: &'a [u8],
    /// Status line and fields with their blank line.
    pub response_head: &'a [u8],
    /// The body, with transfer and content codings as received.
    pub body: ExchangeBody<'a>,
    /// Why the body is incomplete, if it is.
    pub truncated: Option<Truncation>,
    /// Facts for the metadata record, such as `fetchTimeMs` or `via`. Without facts there is no such record.
    pub metadata: &'a [(&'a str, &'a str)],
    /// Resources computed from this capture.
    pub derived: &'a [DerivedResource<'a>],
    /// The result of [`super::links`] if the caller has it already; with `None` the writer finds the links.
    pub links: Option<PageLinks>,
}

/// The expensive part of an append: digests, and the records as stored if their payload is new to the archive. Any
/// thread can prepare it.
pub struct CompressedRecords {
    pub(super) hashed: BodyDigests,
    pub(super) members: ExchangeMembers,
}

/// Response, request and metadata records, compressed.
pub(super) struct ExchangeMembers {
    pub(super) id: RecordId,
    pub(super) bytes: Vec<u8>,
    pub(super) response_length: u64,
}

thread_local! {
    /// A compressor has large tables, so each thread makes one and reuses it.
    static SCRATCH: RefCell<Option<(RecordIds, WarcWriter<Vec<u8>>)>> = const { RefCell::new(None) };
}

impl CompressedRecords {
    /// Compresses the records of an exchange with its body in memory. The append compresses spooled bodies.
    /// `compression` must be that of the archive's settings.
    pub fn of(exchange: &Exchange<'_>, compression: Compression) -> io::Result<Option<CompressedRecords>> {
        let ExchangeBody::Bytes(body) = exchange.body else { return Ok(None) };
        let hashed = BodyDigests::of(exchange.response_head, &mut ExchangeBody::Bytes(body))?;
        SCRATCH.with_borrow_mut(|scratch| {
            let (ids, out) = match scratch {
                Some(scratch) => scratch,
                None => {
                    let out = WarcWriter::new(Vec::new(), 0, compression)?;
                    scratch.insert((RecordIds::new(random_seed()), out))
                }
            };
            let members = ExchangeMembers::write(exchange, body, &hashed, ids, out);
            if members.is_err() {
                // An incomplete member must not precede the next one.
                *scratch = None;
            }
            Ok(Some(CompressedRecords { hashed, members: members? }))
        })
    }
}

impl ExchangeMembers {
    fn write(
        exchange: &Exchange<'_>,
        body: &[u8],
        hashed: &BodyDigests,
        ids: &mut RecordIds,
        out: &mut WarcWriter<Vec<u8>>,
    ) -> io::Result<ExchangeMembers> {
        let time = Timestamp::from_secs(exchange.time.as_secs());
        let id = ids.next_id();
        let response_length = out.write(&response_record(exchange, time, id, hashed, body))?.length;
        for record in companion_records(exchange, time, id, ids) {
            out.write(&record)?;
        }
        Ok(ExchangeMembers { id, bytes: std::mem::take(out.get_mut()), response_length })
    }
}

pub(super) fn response_record<'a>(
    exchange: &Exchange<'a>,
    time: Timestamp,
    id: RecordId,
    hashed: &BodyDigests,
    body: &'a [u8],
) -> NewRecord<'a> {
    let record = NewRecord::response(id, time, exchange.url, exchange.response_head, body);
    let record = with_ip(record, exchange.ip)
        .digests(Some(hashed.block_digest.clone()), Some(hashed.payload.sha1.clone()));
    match exchange.truncated {
        Some(why) => record.truncated(why),
        None => record,
    }
}

/// The request and metadata records, if there is content for them.
pub(super) fn companion_records<'a>(
    exchange: &Exchange<'a>,
    time: Timestamp,
    id: RecordId,
    ids: &mut RecordIds,
) -> Vec<NewRecord<'a>> {
    let mut records = Vec::with_capacity(2);
    if !exchange.request_head.is_empty() {
        let (head, body) = (exchange.request_head, exchange.request_body);
        records.push(NewRecord::request(ids.next_id(), time, exchange.url, head, body));
    }
    if !exchange.metadata.is_empty() {
        records.push(NewRecord::metadata(ids.next_id(), time, exchange.url, exchange.metadata));
    }
    records.into_iter().map(|record| record.concurrent_to(id)).collect()
}

pub(super) struct BodyDigests {
    pub(super) length: u64,
    pub(super) block_digest: String,
    pub(super) payload: PayloadDigests,
}

impl BodyDigests {
    pub(super) fn of(head: &[u8], body: &mut ExchangeBody<'_>) -> io::Result<BodyDigests> {
        if let ExchangeBody::Bytes(bytes) = body {
            let mut block = Sha1Stream::new();
            block.update(head);
            block.update(bytes);
            let (block_digest, payload) = (block.label(), PayloadDigests::of(bytes));
            return Ok(BodyDigests { length: bytes.len() as u64, block_digest, payload });
        }
        let (mut block, mut payload) = (Sha1Stream::new(), PayloadHasher::default());
        block.update(head);
        let mut length = 0;
        let mut reader = body.reader()?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = reader.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            block.update(&buffer[..n]);
            payload.update(&buffer[..n]);
            length += n as u64;
        }
        Ok(BodyDigests { length, block_digest: block.label(), payload: payload.finish() })
    }
}

impl ExchangeBody<'_> {
    /// A reader from the first byte.
    pub(super) fn reader(&mut self) -> io::Result<Box<dyn Read + Send + '_>> {
        Ok(match self {
            ExchangeBody::Bytes(bytes) => Box::new(*bytes),
            ExchangeBody::Spooled(file) => {
                file.rewind()?;
                Box::new(file)
            }
        })
    }
}

/// The links that the state stores for an exchange captured as `kind`.
pub(super) fn link_targets(
    exchange: &mut Exchange<'_>,
    head: &HttpHead,
    kind: CaptureKind,
) -> io::Result<Option<Vec<LinkTarget>>> {
    if let Some(links) = exchange.links.take() {
        return Ok(links.for_capture(kind));
    }
    let url = exchange.url;
    let is_rendered_page = |derived: &&DerivedResource<'_>| rendered_page(derived.uri) == Some(url);
    let rendered = exchange.derived.iter().find(is_rendered_page).map(|derived| derived.bytes);
    Ok(find_page_links(url, kind, head, exchange.body.reader()?, rendered))
}

/// The URLs that the state stores if the exchange is a sitemap.
pub(super) fn sitemap_targets(
    exchange: &mut Exchange<'_>,
    head: &HttpHead,
    kind: CaptureKind,
) -> io::Result<Vec<LinkTarget>> {
    Ok(find_sitemap_pages(exchange.url, kind, head, exchange.body.reader()?))
}

/// The row that the state stores if the exchange is a feed.
pub(super) fn feed_row(
    exchange: &mut Exchange<'_>,
    head: &HttpHead,
    kind: CaptureKind,
) -> io::Result<Option<Box<FeedRow>>> {
    if kind != CaptureKind::Response || !may_be_feed(head) || !begins_as_feed(head, exchange.body.reader()?) {
        return Ok(None);
    }
    Ok(read_stored_feed(exchange.url, kind, head, exchange.body.reader()?))
}

pub(super) fn with_ip(record: NewRecord<'_>, ip: Option<IpAddr>) -> NewRecord<'_> {
    match ip {
        Some(ip) => record.ip_address(ip),
        None => record,
    }
}
