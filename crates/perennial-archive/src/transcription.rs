//! A record as read -> the same record as a separate gzip member. Import uses it for records that cannot be found by
//! offset. Export uses it for zstd, plain and ARC files.

use std::io::{self, BufRead, Read, Seek, Write};

use flate2::write::GzEncoder;
use perennial_warc::{Record, RecordExtent, RecordHeader, RecordId, WarcVersion, sha1_label};

/// A member up to this size remains in memory until its record has proved sound; a larger one goes to disk.
const SPOOL_BYTES: usize = 8 << 20;

/// A record at its new place.
pub(crate) struct TranscribedRecord {
    /// Its extent in the source.
    pub from: RecordExtent,
    pub length: u64,
}

/// Appends the record to `out`. If the record is damaged, nothing is written and the result is `None`.
pub(crate) fn transcribe_record<R: Read>(
    mut record: Record<'_, R>,
    out: &mut dyn Write,
) -> anyhow::Result<Option<TranscribedRecord>> {
    let spool = tempfile::spooled_tempfile(SPOOL_BYTES);
    let mut member = GzEncoder::new(spool, flate2::Compression::default());
    member.write_all(&record_head(record.header(), record.offset()))?;
    loop {
        let bytes = match record.fill_buf() {
            Ok([]) => break,
            Ok(bytes) => bytes,
            // The end of the record reports the same error.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData) =>
            {
                break;
            }
            Err(error) => return Err(error.into()),
        };
        member.write_all(bytes)?;
        let n = bytes.len();
        record.consume(n);
    }
    member.write_all(b"\r\n\r\n")?;
    let mut spool = member.finish()?;
    let Ok(from) = record.finish()? else { return Ok(None) };
    spool.rewind()?;
    let length = io::copy(&mut spool, out)?;
    Ok(Some(TranscribedRecord { from, length }))
}

/// The fields as they were. A record of an ARC file also gets the fields that WARC requires.
fn record_head(header: &RecordHeader, offset: u64) -> Vec<u8> {
    let mut head = Vec::with_capacity(1024);
    let version = match header.version() {
        WarcVersion::Warc10 => "WARC/1.0",
        _ => "WARC/1.1",
    };
    head.extend_from_slice(format!("{version}\r\n").as_bytes());
    let is_arc = header.version() == WarcVersion::Arc;
    for (name, value) in header.fields() {
        let value = match name {
            "WARC-Date" if is_arc => header.date().map_or(value.to_string(), |date| date.to_rfc3339()),
            "Content-Type" if is_arc => arc_content_type(header).to_string(),
            _ => value.to_string(),
        };
        head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if is_arc {
        head.extend_from_slice(format!("WARC-Record-ID: {}\r\n", arc_record_id(header, offset)).as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn arc_content_type(header: &RecordHeader) -> &str {
    if header.expects_http_head() {
        "application/http; msgtype=response"
    } else {
        header.content_type().unwrap_or("application/octet-stream")
    }
}

/// The id depends only on the record and its offset. Each transcription therefore uses the same id.
fn arc_record_id(header: &RecordHeader, offset: u64) -> RecordId {
    let text: String = header.fields().map(|(name, value)| format!("{name}={value}\n")).collect();
    let label = sha1_label(format!("{text}{offset}").as_bytes());
    let bits = label.bytes().skip(5).take(25).fold(0u128, |bits, byte| bits << 5 | u128::from(byte & 31));
    let version = bits & !(0xf << 76) | 8 << 76;
    RecordId(version & !(0b11 << 62) | 0b10 << 62)
}
