//! Records -> WARC 1.1, one compressed member each, over any `Write`.
//!
//! Blocks are stored exactly as given: HTTP heads and bodies byte for byte, with their transfer and content encoding.
//! Dates and record ids are arguments, so the same input always gives the same file.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read, Write};

use sha1::{Digest as _, Sha1};

use super::compress::Compression;
use super::compress::Compressor;
use super::digest::{Sha1Stream, sha1_label};
use super::header::{RecordType, Truncation};
use crate::time::Timestamp;

const COPY: usize = 128 * 1024;

/// The id of a record: a UUID, written `<urn:uuid:...>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub u128);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "<urn:uuid:{}-{}-{}-{}-{}>", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

/// Generates record ids from a seed. The same seed gives the same ids in the same order, and different seeds give
/// different ids in practice. The ids are UUIDs of version 8, in which all other bits are free.
#[derive(Clone, Debug)]
pub struct RecordIds {
    seed: u128,
    n_given: u64,
}

impl RecordIds {
    /// Starts the ids of a seed. Callers choose one random seed per process or file.
    pub fn new(seed: u128) -> RecordIds {
        RecordIds { seed, n_given: 0 }
    }

    /// Returns the next id.
    pub fn next_id(&mut self) -> RecordId {
        let mut hasher = Sha1::new();
        hasher.update(self.seed.to_be_bytes());
        hasher.update(self.n_given.to_be_bytes());
        self.n_given += 1;
        let hash = hasher.finalize();
        let bits = hash.iter().take(16).fold(0u128, |bits, &byte| bits << 8 | u128::from(byte));
        let version = bits & !(0xf << 76) | 8 << 76;
        RecordId(version & !(0b11 << 62) | 0b10 << 62)
    }
}

/// The reason for storing a revisit without a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevisitProfile {
    /// The body is identical, byte for byte, to one stored earlier.
    IdenticalPayloadDigest,
    /// The server answered a conditional request with 304.
    ServerNotModified,
}

impl RevisitProfile {
    /// The profile's URI in WARC 1.1.
    pub fn uri(self) -> &'static str {
        match self {
            RevisitProfile::IdenticalPayloadDigest => {
                "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
            }
            RevisitProfile::ServerNotModified => {
                "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
            }
        }
    }

    /// Parses a profile's URI of WARC 1.0 or 1.1.
    pub fn parse(uri: &str) -> Option<RevisitProfile> {
        match uri.trim().rsplit('/').next() {
            Some("identical-payload-digest") => Some(RevisitProfile::IdenticalPayloadDigest),
            Some("server-not-modified") => Some(RevisitProfile::ServerNotModified),
            _ => None,
        }
    }
}

/// A record to be written. Create it with the function named after its type, add fields, and pass it to
/// [`WarcWriter::write`].
#[derive(Clone, Debug)]
pub struct NewRecord<'a> {
    kind: RecordType,
    id: RecordId,
    fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    content_type: Cow<'a, str>,
    head: Cow<'a, [u8]>,
    body: Cow<'a, [u8]>,
    block_digest: Option<String>,
    payload_digest: Option<String>,
}

impl<'a> NewRecord<'a> {
    /// Creates a record of any type. `date` is stored in whole seconds, the form that every reader accepts.
    fn new(kind: RecordType, id: RecordId, date: Timestamp, content_type: &'a str) -> NewRecord<'a> {
        let fields = vec![
            ("WARC-Type".into(), kind.as_str().to_string().into()),
            ("WARC-Record-ID".into(), id.to_string().into()),
            ("WARC-Date".into(), date.to_rfc3339().into()),
        ];
        NewRecord {
            kind,
            id,
            fields,
            content_type: content_type.into(),
            head: Cow::Borrowed(b""),
            body: Cow::Borrowed(b""),
            block_digest: None,
            payload_digest: None,
        }
    }

    /// Creates the first record of a file, which describes how the file was made. `facts` are fields such as
    /// `software`, `format` and `robots`.
    pub fn warcinfo(
        id: RecordId,
        date: Timestamp,
        filename: &'a str,
        facts: &[(&str, &str)],
    ) -> NewRecord<'a> {
        let mut record = NewRecord::new(RecordType::Warcinfo, id, date, "application/warc-fields");
        record.body = warc_fields(facts).into();
        record.field("WARC-Filename", filename)
    }

    /// Creates the record of a server's response: the head up to its blank line and the body, both as sent over the
    /// wire.
    pub fn response(
        id: RecordId,
        date: Timestamp,
        url: &'a str,
        http_head: &'a [u8],
        body: &'a [u8],
    ) -> NewRecord<'a> {
        let content_type = "application/http; msgtype=response";
        NewRecord::new(RecordType::Response, id, date, content_type).url(url).block(http_head, body)
    }

    /// Creates the record of a crawler's request.
    pub fn request(
        id: RecordId,
        date: Timestamp,
        url: &'a str,
        http_head: &'a [u8],
        body: &'a [u8],
    ) -> NewRecord<'a> {
        let content_type = "application/http; msgtype=request";
        NewRecord::new(RecordType::Request, id, date, content_type).url(url).block(http_head, body)
    }

    /// Creates a capture whose body is stored elsewhere; `payload_digest` is the label of that body.
    /// [`NewRecord::refers_to`] adds its position.
    pub fn revisit(
        id: RecordId,
        date: Timestamp,
        url: &'a str,
        profile: RevisitProfile,
        http_head: &'a [u8],
        payload_digest: Option<&str>,
    ) -> NewRecord<'a> {
        let content_type = "application/http; msgtype=response";
        let mut record = NewRecord::new(RecordType::Revisit, id, date, content_type);
        record.payload_digest = payload_digest.map(str::to_string);
        record.url(url).field("WARC-Profile", profile.uri()).block(http_head, b"")
    }

    /// Creates facts about a capture as `name: value` lines. [`NewRecord::concurrent_to`] links them to the capture's
    /// record.
    pub fn metadata(id: RecordId, date: Timestamp, url: &'a str, facts: &[(&str, &str)]) -> NewRecord<'a> {
        let mut record = NewRecord::new(RecordType::Metadata, id, date, "application/warc-fields").url(url);
        record.body = warc_fields(facts).into();
        record
    }

    /// Creates facts about a capture in a different format, such as JSON.
    pub fn metadata_block(
        id: RecordId,
        date: Timestamp,
        url: &'a str,
        content_type: &'a str,
        block: &'a [u8],
    ) -> NewRecord<'a> {
        NewRecord::new(RecordType::Metadata, id, date, content_type).url(url).block(b"", block)
    }

    /// Creates content without a protocol head, or derived content such as `urn:vixml:<url>`.
    pub fn resource(
        id: RecordId,
        date: Timestamp,
        url: &'a str,
        content_type: &'a str,
        block: &'a [u8],
    ) -> NewRecord<'a> {
        NewRecord::new(RecordType::Resource, id, date, content_type).url(url).block(b"", block)
    }

    fn block(mut self, head: &'a [u8], body: &'a [u8]) -> NewRecord<'a> {
        self.head = head.into();
        self.body = body.into();
        self
    }

    fn url(self, url: &'a str) -> NewRecord<'a> {
        self.field("WARC-Target-URI", url)
    }

    /// Adds a field. Line ends become blanks in a value, and are escaped in a URI.
    pub fn field(mut self, name: &'a str, value: impl Into<Cow<'a, str>>) -> NewRecord<'a> {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Names a record of the same capture. For example, a request names its response.
    pub fn concurrent_to(self, id: RecordId) -> NewRecord<'a> {
        self.field("WARC-Concurrent-To", id.to_string())
    }

    /// Adds the IP address of the server.
    pub fn ip_address(self, address: std::net::IpAddr) -> NewRecord<'a> {
        self.field("WARC-IP-Address", address.to_string())
    }

    /// Marks the block as shorter than the server's full response.
    pub fn truncated(self, why: Truncation) -> NewRecord<'a> {
        self.field("WARC-Truncated", why.as_str())
    }

    /// Names the capture that contains a revisit's body.
    pub fn refers_to(self, url: &'a str, date: Timestamp) -> NewRecord<'a> {
        self.field("WARC-Refers-To-Target-URI", url).field("WARC-Refers-To-Date", date.to_rfc3339())
    }

    /// Sets digests that are already known, as labels, so the writer does not compute them. A streamed body needs
    /// them, because they precede the block.
    pub fn digests(mut self, block: Option<String>, payload: Option<String>) -> NewRecord<'a> {
        self.block_digest = block;
        self.payload_digest = payload;
        self
    }

    /// The record's id.
    pub fn id(&self) -> RecordId {
        self.id
    }

    fn has_payload_digest(&self) -> bool {
        !matches!(self.kind, RecordType::Warcinfo | RecordType::Revisit)
    }

    fn compute_digests(&self) -> (Option<String>, Option<String>) {
        let payload = match &self.payload_digest {
            Some(label) => Some(label.clone()),
            None if self.has_payload_digest() => Some(sha1_label(&self.body)),
            None => None,
        };
        let block = match (&self.block_digest, &payload) {
            (Some(label), _) => label.clone(),
            (None, Some(payload)) if self.head.is_empty() && self.has_payload_digest() => payload.clone(),
            _ => {
                let mut hasher = Sha1Stream::new();
                hasher.update(&self.head);
                hasher.update(&self.body);
                hasher.label()
            }
        };
        (Some(block), payload)
    }

    fn head_bytes(&self, length: u64, block: &Option<String>, payload: &Option<String>) -> Vec<u8> {
        let mut head = Vec::with_capacity(600);
        head.extend_from_slice(b"WARC/1.1\r\n");
        for (name, value) in &self.fields {
            push_field(&mut head, name, value);
        }
        if let Some(label) = payload {
            push_field(&mut head, "WARC-Payload-Digest", label);
        }
        if let Some(label) = block {
            push_field(&mut head, "WARC-Block-Digest", label);
        }
        push_field(&mut head, "Content-Type", &self.content_type);
        push_field(&mut head, "Content-Length", &length.to_string());
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// `name: value` lines, which are the block of a warcinfo or metadata record.
fn warc_fields(facts: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in facts {
        push_field(&mut block, name, value);
    }
    block
}

fn push_field(head: &mut Vec<u8>, name: &str, value: &str) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    let is_uri = name.ends_with("-URI");
    for &byte in value.as_bytes() {
        match byte {
            0..=0x20 | 0x7f if is_uri => head.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            b'\r' | b'\n' | 0 => head.push(b' '),
            _ => head.push(byte),
        }
    }
    head.extend_from_slice(b"\r\n");
}

/// The position and the digests of a written record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenRecord {
    /// Offset of the record's member in the file.
    pub offset: u64,
    /// Length of the record's member. For a plain record: length of its head and block without the blank lines after
    /// them.
    pub length: u64,
    /// `WARC-Block-Digest`.
    pub block_digest: Option<String>,
    /// `WARC-Payload-Digest`. Two captures with the same one are the same version.
    pub payload_digest: Option<String>,
}

/// Writes consecutive records, each as a compressed member.
///
/// If a write fails, the file may contain a part of the record after [`WarcWriter::offset`]. The caller must cut that
/// part off before the next write.
pub struct WarcWriter<W> {
    out: W,
    offset: u64,
    compressor: Compressor,
}

impl<W: Write> WarcWriter<W> {
    /// Creates a writer. `offset` is the current length of the file: 0 for a new one.
    pub fn new(out: W, offset: u64, compression: Compression) -> io::Result<WarcWriter<W>> {
        Ok(WarcWriter { out, offset, compressor: Compressor::new(compression)? })
    }

    /// The offset of the next record, which is the sound length of the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The output.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// The output, for flushing and syncing.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Ends writing and returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Appends records that a different writer with the same compression made, and returns their offset.
    pub fn write_members(&mut self, members: &[u8]) -> io::Result<u64> {
        self.out.write_all(members)?;
        let offset = self.offset;
        self.offset += members.len() as u64;
        Ok(offset)
    }

    /// Writes a record whose block is in memory. The output receives it in one piece unless it is large. The writer
    /// does not flush.
    pub fn write(&mut self, record: &NewRecord<'_>) -> io::Result<WrittenRecord> {
        let body: &[u8] = &record.body;
        let digests = record.compute_digests();
        self.write_block(record, body.len() as u64, digests, &mut { body })
    }

    /// Writes a record with a streamed body: exactly `length` bytes of `body` follow the record's HTTP head. The
    /// writer stores only the digests from [`NewRecord::digests`]. Memory is constant.
    pub fn write_stream(
        &mut self,
        record: &NewRecord<'_>,
        length: u64,
        body: &mut impl Read,
    ) -> io::Result<WrittenRecord> {
        let digests = (record.block_digest.clone(), record.payload_digest.clone());
        let mut body = ExactBody { source: body, remaining: length };
        self.write_block(record, length, digests, &mut body)
    }

    fn write_block(
        &mut self,
        record: &NewRecord<'_>,
        body_length: u64,
        (block_digest, payload_digest): (Option<String>, Option<String>),
        body: &mut dyn BodySource,
    ) -> io::Result<WrittenRecord> {
        let block_length = record.head.len() as u64 + body_length;
        let head = record.head_bytes(block_length, &block_digest, &payload_digest);
        self.compressor.start(head.len() as u64 + block_length + 4)?;
        let mut n_written = self.compressor.push(&head, &mut self.out)?;
        n_written += self.compressor.push(&record.head, &mut self.out)?;
        n_written += body.copy_into(&mut self.compressor, &mut self.out)?;
        n_written += self.compressor.push(b"\r\n\r\n", &mut self.out)?;
        n_written += self.compressor.finish(&mut self.out)?;
        let length = match self.compressor.is_plain() {
            true => n_written - 4,
            false => n_written,
        };
        let offset = self.offset;
        self.offset += n_written;
        Ok(WrittenRecord { offset, length, block_digest, payload_digest })
    }
}

/// A body in memory, which is compressed in one call, or a streamed body.
trait BodySource {
    fn copy_into(&mut self, compressor: &mut Compressor, out: &mut dyn Write) -> io::Result<u64>;
}

impl BodySource for &[u8] {
    fn copy_into(&mut self, compressor: &mut Compressor, out: &mut dyn Write) -> io::Result<u64> {
        compressor.push(self, out)
    }
}

struct ExactBody<'a, R> {
    source: &'a mut R,
    remaining: u64,
}

impl<R: Read> BodySource for ExactBody<'_, R> {
    fn copy_into(&mut self, compressor: &mut Compressor, out: &mut dyn Write) -> io::Result<u64> {
        let mut buffer = vec![0; COPY];
        let mut n_written = 0;
        while self.remaining > 0 {
            let want = self.remaining.min(COPY as u64) as usize;
            let n = match self.source.read(&mut buffer[..want]) {
                Ok(0) => {
                    let message =
                        format!("the body ended {} bytes before its announced length", self.remaining);
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
                }
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            n_written += compressor.push(&buffer[..n], out)?;
            self.remaining -= n as u64;
        }
        Ok(n_written)
    }
}
