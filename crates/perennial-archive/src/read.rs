//! A capture -> its response: head and decoded payload. The payload of a revisit is that of its origin.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use anyhow::{Context, bail};
use perennial_core::http::response::Identity;
use perennial_core::time::Timestamp;
use perennial_warc::http::HttpHead;
use perennial_warc::payload::{self, DecodingLimits, decode};
use perennial_warc::{Record, RecordHeader, WarcItem, WarcReader, contradicts};

use super::content::kind_and_identity;
use super::links::RENDERED_PREFIX;
use super::scan::{ScanItem, scan};
use super::writer::{DELTA_PREFIX, LEFT_OUT_DIGEST};
use super::{Archive, files};
use crate::store::{Capture, CaptureKind, RecordLocation, RecordSource, ScannedRecord, Store};

/// The HTTP head of a rendered document.
const RENDERED_HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n";

/// A skippable frame larger than this is not treated as a dictionary.
const MAX_DICTIONARY_BYTES: u32 = 16 << 20;

/// The content of a capture's record.
#[derive(Clone, Debug)]
pub struct StoredRecord {
    pub header: RecordHeader,
    /// The HTTP head, byte for byte; empty without HTTP.
    pub head: HttpHead,
    /// The payload without transfer and content codings, up to the limit.
    pub payload: payload::Payload,
}

/// A response without its transfer and content codings.
pub struct ArchivedResponse {
    /// Status line and fields.
    pub head: HttpHead,
    /// The body as a browser receives it, up to 64 MiB.
    pub bytes: Vec<u8>,
    /// Why the body is incomplete, if it is.
    pub cut: Option<payload::IncompleteBody>,
}

/// A record open as a stream of its stored body.
pub struct OpenRecord {
    reader: WarcReader<File>,
    pub header: RecordHeader,
    /// The HTTP head, byte for byte; empty without HTTP.
    pub head: HttpHead,
    /// Bytes of the stored body.
    pub n_body_bytes: u64,
}

impl Read for OpenRecord {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.reader.current_record() {
            Some(mut record) => record.read(out),
            None => Ok(0),
        }
    }
}

impl OpenRecord {
    /// Reads to the end of the record, and returns whether it is sound.
    pub fn finish(mut self) -> io::Result<bool> {
        match self.reader.current_record() {
            Some(record) => Ok(record.finish()?.is_ok()),
            None => Ok(true),
        }
    }
}

impl Archive {
    /// The payload of a capture, or of a revisit's origin. `None` if no record of the archive contains it.
    pub fn payload(&self, store: &Store, capture: &Capture) -> anyhow::Result<Option<ArchivedResponse>> {
        let payload_capture = match capture.kind {
            CaptureKind::Revisit => self.payload_capture(store, capture)?,
            _ => Some(capture.clone()),
        };
        let Some(payload_capture) = payload_capture else { return Ok(None) };
        let StoredRecord { head, payload, .. } = self.stored(&payload_capture, DecodingLimits::default())?;
        Ok(Some(ArchivedResponse { head, bytes: payload.bytes, cut: payload.cut }))
    }

    /// The document that a reader would have seen: the rendered document if there is one, else the payload.
    pub fn document(&self, store: &Store, capture: &Capture) -> anyhow::Result<Option<ArchivedResponse>> {
        if !capture.identity.is_rendered() {
            return self.payload(store, capture);
        }
        let rendered = store.capture_at(&format!("{RENDERED_PREFIX}{}", capture.url), capture.time)?;
        let Some(rendered) = rendered else { return Ok(None) };
        let payload::Payload { bytes, cut } = self.stored(&rendered, DecodingLimits::default())?.payload;
        Ok(Some(ArchivedResponse { head: HttpHead::parse(RENDERED_HEAD), bytes, cut }))
    }

    /// The record of a capture without following revisits. A revisit has a head but no payload.
    pub fn stored(&self, capture: &Capture, limits: DecodingLimits) -> anyhow::Result<StoredRecord> {
        self.read_record(&capture.url, &capture.file, capture.offset, |mut record| {
            let header = record.header().clone();
            let head = record.http_head()?.cloned().unwrap_or_default();
            Ok(StoredRecord { header, payload: decode(&head, record, limits), head })
        })
    }

    /// Opens the record of a capture at the start of its body. A revisit has none.
    pub fn open_record(&self, capture: &Capture) -> anyhow::Result<OpenRecord> {
        let mut reader = self.reader_at(&capture.url, &capture.file, capture.offset)?;
        let Some(mut record) = reader.current_record() else { bail!("the record was finished") };
        let header = record.header().clone();
        let head = record.http_head()?.cloned().unwrap_or_default();
        Ok(OpenRecord { n_body_bytes: record.remaining(), reader, header, head })
    }

    /// The capture whose record contains the payload: the capture itself, or the origin of a revisit. `None` if no
    /// record of the archive contains it.
    pub fn payload_capture(&self, store: &Store, capture: &Capture) -> anyhow::Result<Option<Capture>> {
        match capture.kind {
            // The confirmed payload is in no record, even if some record has the same digest.
            CaptureKind::Revisit if capture.status == Some(304) && store.is_left_out(capture)? => Ok(None),
            CaptureKind::Revisit => self.payload_origin(store, capture),
            CaptureKind::Metadata if capture.is_delta() => Ok(None),
            _ => Ok(Some(capture.clone())),
        }
    }

    /// Reads the fields of a record and its HTTP head.
    pub(super) fn read_heads(
        &self,
        url: &str,
        file: &str,
        offset: u64,
    ) -> anyhow::Result<(RecordHeader, Option<HttpHead>)> {
        self.read_record(url, file, offset, |mut record| {
            let header = record.header().clone();
            Ok((header, record.http_head()?.cloned()))
        })
    }

    fn read_record<T>(
        &self,
        url: &str,
        name: &str,
        offset: u64,
        read: impl FnOnce(Record<'_, File>) -> io::Result<T>,
    ) -> anyhow::Result<T> {
        let mut reader = self.reader_at(url, name, offset)?;
        let Some(record) = reader.current_record() else { bail!("the record was finished") };
        read(record).with_context(|| cannot_read(url, name, offset))
    }

    /// A reader at the record of a URL.
    fn reader_at(&self, url: &str, name: &str, offset: u64) -> anyhow::Result<WarcReader<File>> {
        let context = || cannot_read(url, name, offset);
        let mut file = files::open(&self.warc_dir(), name).with_context(context)?;
        let dictionary = match name.ends_with(".zst") {
            true => zstd_dictionary(&mut file).with_context(context)?,
            false => None,
        };
        file.seek(SeekFrom::Start(offset))?;
        let mut reader = WarcReader::seekable(file)?;
        if let Some(dictionary) = dictionary {
            reader.set_zstd_dictionary(&dictionary);
        }
        match reader.next_item().with_context(context)? {
            Some(WarcItem::Record(record)) if page_url(record.header()) == Some(url) => {}
            Some(WarcItem::Record(_)) => bail!("{}: another record is there", context()),
            Some(WarcItem::Damage(damage)) => return Err(damage).with_context(context),
            None => bail!("{}: the file ends before it", context()),
        }
        Ok(reader)
    }

    /// Finds the record with a revisit's payload, by the content digest of the revisit if it has one, else by its digest.
    /// If neither finds it, the URL and time that the revisit names do: other tools may write digests in a different form.
    fn payload_origin(&self, store: &Store, capture: &Capture) -> anyhow::Result<Option<Capture>> {
        let origin = match &capture.content {
            Some(content) => store.payload_origin(&capture.url, &capture.digest, content)?,
            None => store.origin_by_digest(&capture.url, &capture.digest)?,
        };
        if origin.is_some() {
            return Ok(origin);
        }
        let header = self.stored(capture, DecodingLimits::default())?.header;
        let url = header.refers_to_target_uri().unwrap_or(&capture.url);
        let until = header.refers_to_date().unwrap_or(capture.time);
        let found = store.latest_capture(url, Timestamp::from_secs(until.as_secs()))?;
        // The named record may contain a payload other than the one that the revisit refers to.
        let is_other = |found: &Capture| {
            let is_another = capture.content.is_some() && capture.content != found.content;
            is_another || header.payload_digest().is_some_and(|claimed| contradicts(claimed, &found.digest))
        };
        Ok(found.filter(|found| {
            found.kind == CaptureKind::Response && found.id != capture.id && !is_other(found)
        }))
    }
}

impl RecordSource for Archive {
    fn identity_at(&self, place: &RecordLocation) -> Option<Identity> {
        let (header, head) = self.read_heads(&place.url, &place.file, place.offset).ok()?;
        match header.get(LEFT_OUT_DIGEST) {
            Some(digest) => Some(Identity::parse(digest)),
            None => {
                kind_and_identity(&place.url, place.kind, head.as_ref(), false, header.refers_to_target_uri())
                    .1
            }
        }
    }

    fn check(
        &self,
        name: &str,
        each: &mut dyn FnMut(ScannedRecord) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // Recovery reports missing files.
        let Ok(file) = files::open(&self.warc_dir(), name) else { return Ok(()) };
        scan(file, 0, &|_| {}, &mut |found| match (found.quarantined(), found) {
            (_, ScanItem::Capture(row)) => each(ScannedRecord::Capture(Box::new(row))),
            (Some(quarantined), _) => each(ScannedRecord::Quarantined(quarantined)),
            (None, _) => Ok(()),
        })?;
        Ok(())
    }
}

fn cannot_read(url: &str, name: &str, offset: u64) -> String {
    format!("cannot read the capture of {url} in {name} at {offset}: see `perennial verify`")
}

/// The dictionary of a `.warc.zst`, if a skippable frame before its first record contains one.
fn zstd_dictionary(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut head = [0; 8];
    file.rewind()?;
    if file.read_exact(&mut head).is_err() || head[..4] != [0x5d, 0x2a, 0x4d, 0x18] {
        return Ok(None);
    }
    let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if length > MAX_DICTIONARY_BYTES {
        return Ok(None);
    }
    let mut dictionary = vec![0; length as usize];
    file.read_exact(&mut dictionary)?;
    if dictionary.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        dictionary = zstd::bulk::decompress(&dictionary, MAX_DICTIONARY_BYTES as usize)?;
    }
    Ok(Some(dictionary))
}

/// The URL that a record is a capture of.
fn page_url(header: &RecordHeader) -> Option<&str> {
    let uri = header.target_uri()?;
    Some(uri.strip_prefix(DELTA_PREFIX).filter(|_| header.get(LEFT_OUT_DIGEST).is_some()).unwrap_or(uri))
}
