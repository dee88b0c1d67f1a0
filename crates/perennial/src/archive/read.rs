//! A capture -> its payload, as a reader gets it.

use std::io::{Read, Seek, SeekFrom};

use anyhow::Context;
use perennial_core::http::HttpHead;
use perennial_core::payload::{self, Limits};
use perennial_core::warc::{Item, WarcReader};

use super::{Archive, files};
use crate::store::{Capture, Kind, Store};

/// A longer body is cut here: what analysis reads is bounded, the WARC keeps it whole.
const MAX_BODY_BYTES: u64 = 64 << 20;

/// What came back for an address, transfer and content codings undone.
pub struct Payload {
    /// Status line and fields.
    pub head: HttpHead,
    /// Body as a browser sees it.
    pub bytes: Vec<u8>,
}

impl Archive {
    /// The payload of a capture; of a revisit, that of the record it stands for. `None` when no record of the
    /// archive holds it.
    pub fn payload(&self, store: &Store, capture: &Capture) -> anyhow::Result<Option<Payload>> {
        match capture.kind {
            Kind::Revisit => match store.origin_of(&capture.url, &capture.digest)? {
                Some(origin) => self.read_response(&origin).map(Some),
                None => Ok(None),
            },
            _ => self.read_response(capture).map(Some),
        }
    }

    fn read_response(&self, capture: &Capture) -> anyhow::Result<Payload> {
        let place =
            || format!("{} at byte {} cannot be read: try `perennial verify`", capture.file, capture.offset);
        let mut file = files::open(&self.warc_dir(), &capture.file).with_context(place)?;
        file.seek(SeekFrom::Start(capture.offset))?;
        let mut reader = WarcReader::new(file.take(capture.length));
        match reader.next_item().with_context(place)? {
            Some(Item::Record(mut record)) => {
                let head = record.http_head()?.cloned().with_context(place)?;
                let decoded = payload::decode(&head, record.take(MAX_BODY_BYTES), Limits::default());
                Ok(Payload { bytes: decoded.bytes, head })
            }
            _ => anyhow::bail!(place()),
        }
    }
}
