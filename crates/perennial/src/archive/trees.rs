//! Trees of the captures in an export -> `resource` records `urn:vixml:<url>`.

use std::io::{Read, Write};

use perennial_core::time::Timestamp;
use perennial_core::warc::{Compression, NewRecord, RecordIds, WarcWriter};

use super::writer::random_seed;
use crate::store::Store;

/// A tree that unpacks to more than this is damaged.
const MAX_UNPACKED_BYTES: u64 = 256 << 20;

/// Writes the tree of every chosen capture that has one of its own; a capture that showed what the one before showed
/// has none. Gives their number.
pub(super) fn write_trees(store: &Store, mut out: impl Write) -> anyhow::Result<u64> {
    let mut ids = RecordIds::new(random_seed());
    let mut statement = store.connection().prepare(
        "SELECT p.url, t.time, t.vixml FROM chosen JOIN captures c ON c.id = chosen.capture
         JOIN trees t ON t.page = c.page AND t.time = c.time JOIN pages p ON p.id = c.page
         WHERE chosen.is_asked_for = 1 ORDER BY t.page, t.time",
    )?;
    let mut rows = statement.query([])?;
    let mut n_trees = 0;
    while let Some(row) = rows.next()? {
        let (url, time, packed): (String, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let mut xml = Vec::new();
        zstd::stream::read::Decoder::new(&packed[..])?.take(MAX_UNPACKED_BYTES).read_to_end(&mut xml)?;
        let (uri, time) = (format!("urn:vixml:{url}"), Timestamp::from_millis(time));
        let record = NewRecord::resource(ids.next_id(), time, &uri, "application/xml", &xml)
            .refers_to(&url, time, None);
        WarcWriter::new(&mut out, 0, Compression::default())?.write(&record)?;
        n_trees += 1;
    }
    Ok(n_trees)
}
