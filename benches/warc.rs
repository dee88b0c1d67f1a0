//! Generated pages -> records written and read per second. `warc_peers.py` compares other tools on a file of your own.
//!
//! cargo bench -p perennial-core --bench warc

use std::io;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use perennial_warc::time::Timestamp;
use perennial_warc::{Compression, NewRecord, RecordIds, WarcItem, WarcReader, WarcWriter};

const N_PAGES: usize = 500;
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nServer: test\r\nETag: \"1\"\r\n\r\n";

fn main() {
    divan::main();
}

/// About 30 KB of words that compress like those of a page.
fn page(number: usize) -> Vec<u8> {
    let mut state = number as u64;
    let mut body = String::from("<!doctype html><html><body>");
    while body.len() < 30_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = state >> 40;
        body.push_str(&format!(
            "<p class=\"item\">{:x} and {:x} of the {:x}</p>\n",
            word % 4096,
            word % 97,
            word % 1009
        ));
    }
    body.into_bytes()
}

fn write_all(pages: &[Vec<u8>], compression: Compression) -> io::Result<Vec<u8>> {
    let mut writer = WarcWriter::new(Vec::new(), 0, compression)?;
    let mut ids = RecordIds::new(1);
    for body in pages {
        let record =
            NewRecord::response(ids.next_id(), Timestamp::EPOCH, "http://a.example/page", HEAD, body);
        writer.write(&record)?;
    }
    Ok(writer.into_inner())
}

fn pages() -> Vec<Vec<u8>> {
    (0..N_PAGES).map(page).collect()
}

#[divan::bench(args = [2, 6, 9], sample_count = 5)]
fn write_gzip(bencher: Bencher<'_, '_>, level: u32) {
    let pages = pages();
    let n_bytes: usize = pages.iter().map(Vec::len).sum();
    bencher
        .counter(BytesCount::new(n_bytes))
        .bench(|| write_all(black_box(&pages), Compression::Gzip(level)));
}

#[divan::bench(sample_count = 5)]
fn write_zstd(bencher: Bencher<'_, '_>) {
    let pages = pages();
    let n_bytes: usize = pages.iter().map(Vec::len).sum();
    bencher.counter(BytesCount::new(n_bytes)).bench(|| write_all(black_box(&pages), Compression::Zstd(3)));
}

#[divan::bench(args = ["gzip", "zstd", "plain"], sample_count = 10)]
fn read_heads(bencher: Bencher<'_, '_>, format: &str) {
    let compression = match format {
        "gzip" => Compression::Gzip(6),
        "zstd" => Compression::Zstd(3),
        _ => Compression::None,
    };
    let file = write_all(&pages(), compression).unwrap_or_default();
    bencher.counter(ItemsCount::new(N_PAGES)).bench(|| {
        let mut reader = WarcReader::new(black_box(&file[..]));
        let mut n_fields = 0;
        while let Ok(Some(WarcItem::Record(mut record))) = reader.next_item() {
            n_fields += record.http_head().ok().flatten().map_or(0, |head| head.spans().len());
        }
        n_fields
    });
}
