//! Any bytes as a WARC file: the reader terminates, with the same result whether or not it can seek.
#![no_main]

use std::io::{Cursor, Read};

use libfuzzer_sys::fuzz_target;
use perennial_warc::{WarcItem, WarcReader};

fn walk<R: Read>(mut reader: WarcReader<R>, length: u64) -> Vec<u64> {
    let (mut offsets, mut n_items) = (Vec::new(), 0u64);
    while let Some(item) = reader.next_item().expect("memory does not fail") {
        n_items += 1;
        assert!(n_items <= 4 * length + 16, "no end");
        match item {
            WarcItem::Damage(damage) => assert!(damage.offset + damage.length <= length),
            WarcItem::Record(mut record) => {
                let _ = record.http_head().map(|head| head.map(|h| (h.status(), h.codings())));
                let _ = record.header().date();
                let _ = std::io::copy(&mut record, &mut std::io::sink());
                if let Ok(extent) = record.finish().expect("memory does not fail") {
                    assert!(extent.offset + extent.length <= length);
                    offsets.push(extent.offset);
                }
            }
        }
    }
    offsets
}

fuzz_target!(|data: &[u8]| {
    let length = data.len() as u64;
    let streamed = walk(WarcReader::new(data), length);
    let sought = walk(WarcReader::seekable(Cursor::new(data)).expect("memory does not fail"), length);
    assert_eq!(streamed, sought, "small files are within the reader's history");
});
