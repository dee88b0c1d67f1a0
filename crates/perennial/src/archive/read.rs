//! A capture -> the response that it stands for: head and decoded payload, revisits followed to their payload.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use anyhow::{Context, bail};
use perennial_core::http::HttpHead;
use perennial_core::payload::{self, Limits, decode};
use perennial_core::time::Timestamp;
use perennial_core::warc::{Item, Record, RecordHeader, WarcReader};

use super::content::look_of;
use super::writer::LEFT_OUT_DIGEST;
use super::{Archive, files};
use crate::store::{Capture, Kind, RecordPlace, Store};

/// A dictionary longer than this is none.
const MAX_DICTIONARY_BYTES: u32 = 16 << 20;

/// What a capture's record holds.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The record's fields.
    pub header: RecordHeader,
    /// The HTTP head, byte for byte; empty when there was no HTTP.
    pub head: HttpHead,
    /// The payload without transfer and content encoding, up to the limit.
    pub payload: payload::Payload,
}

/// What came back for an address, transfer and content codings undone.
pub struct Payload {
    /// Status line and fields.
    pub head: HttpHead,
    /// Body as a browser sees it, up to 64 MiB.
    pub bytes: Vec<u8>,
}

impl Archive {
    /// The payload of a capture; of a revisit, that of the record it stands for. `None` when no record of the
    /// archive holds it.
    pub fn payload(&self, store: &Store, capture: &Capture) -> anyhow::Result<Option<Payload>> {
        let stored = match capture.kind {
            Kind::Revisit => match self.origin_of(store, capture)? {
                Some(origin) => self.stored(&origin, Limits::default())?,
                None => return Ok(None),
            },
            _ => self.stored(capture, Limits::default())?,
        };
        Ok(Some(Payload { head: stored.head, bytes: stored.payload.bytes }))
    }

    /// The record of a capture as it is; a revisit has a head and no payload.
    pub fn stored(&self, capture: &Capture, limits: Limits) -> anyhow::Result<Stored> {
        self.read_record(&capture.url, &capture.file, capture.offset, |mut record| {
            let header = record.header().clone();
            let head = record.http_head()?.cloned().unwrap_or_default();
            Ok(Stored { header, payload: decode(&head, record, limits), head })
        })
    }

    /// What tells the answer at a place from another where that is not its digest, as the scan finds it.
    pub(super) fn identity_at(&self, place: &RecordPlace) -> Option<String> {
        let read = self.read_record(&place.url, &place.file, place.offset, |mut record| {
            let header = record.header().clone();
            Ok((header, record.http_head()?.cloned()))
        });
        let (header, head) = read.ok()?;
        match header.get(LEFT_OUT_DIGEST) {
            Some(digest) => Some(digest.to_string()),
            None => look_of(&place.url, place.kind, head.as_ref(), false).1,
        }
    }

    fn read_record<T>(
        &self,
        url: &str,
        name: &str,
        offset: u64,
        read: impl FnOnce(Record<'_, File>) -> io::Result<T>,
    ) -> anyhow::Result<T> {
        let context =
            || format!("cannot read the capture of {url} in {name} at {offset}: see `perennial verify`");
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
            Some(Item::Record(record)) if record.header().target_uri() == Some(url) => {
                read(record).with_context(context)
            }
            Some(Item::Record(_)) => bail!("{}: another record is there", context()),
            Some(Item::Damage(damage)) => Err(damage).with_context(context),
            None => bail!("{}: the file ends before it", context()),
        }
    }

    /// Which record holds a revisit's payload: by digest, else by the address and time that the record names,
    /// because other tools' digests may differ.
    fn origin_of(&self, store: &Store, capture: &Capture) -> anyhow::Result<Option<Capture>> {
        if let Some(origin) = store.origin_of(&capture.url, &capture.digest)? {
            return Ok(Some(origin));
        }
        let header = self.stored(capture, Limits::default())?.header;
        let url = header.refers_to_target_uri().unwrap_or(&capture.url);
        let until = header.refers_to_date().unwrap_or(capture.time);
        let found = store.latest_capture(url, Timestamp::from_secs(until.as_secs()))?;
        Ok(found.filter(|found| found.kind == Kind::Response && found.id != capture.id))
    }
}

/// The dictionary that a `.warc.zst` may have in a skippable frame before its first record.
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
