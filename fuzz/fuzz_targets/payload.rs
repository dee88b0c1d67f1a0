//! Any bytes under any codings: decoding ends within its limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perennial_warc::http::HttpHead;
use perennial_warc::payload::{DecodingLimits, decode};

const CODINGS: [&str; 8] = ["", "gzip", "deflate", "br", "zstd", "gzip, br", "compress", "x-gzip, zstd"];

fuzz_target!(|data: &[u8]| {
    let Some((&pick, body)) = data.split_first() else { return };
    let coding = CODINGS[pick as usize % 8];
    let transfer = if pick & 8 == 0 { "chunked" } else { "gzip, chunked" };
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nTransfer-Encoding: {transfer}\r\n\r\n");
    let limits = DecodingLimits { max_bytes: 1 << 20, max_ratio: 100 };
    let payload = decode(&HttpHead::parse(head.as_bytes()), body, limits);
    assert!(payload.bytes.len() <= 1 << 20);
});
