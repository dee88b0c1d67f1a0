//! Measures the seconds to read the records of a WARC file with HTTP heads parsed. Also measures the throughput of the
//! writer and of compression alone. `benches/warc_peers.py` compares both with other tools.
//!
//!     cargo run --release -p perennial-warc --example warc_speed -- FILE [read|write]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an evaluation program is a driver"
)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Instant;

use libdeflater::CompressionLvl;
use perennial_warc::time::Timestamp;
use perennial_warc::{
    Compression, NewRecord, RecordIds, RecordType, WarcItem, WarcReader, WarcWriter, sha1_label,
};

/// Pages kept in memory for the writer.
const SAMPLE_BYTES: usize = 64 << 20;
const LEVEL: u32 = 6;

fn main() -> io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_default();
    match std::env::args().nth(2).as_deref() {
        Some("write") => write(&path),
        _ => read(&path),
    }
}

fn read(path: &str) -> io::Result<()> {
    let (start, cpu_start) = (Instant::now(), cpu_secs());
    let mut reader = WarcReader::new(File::open(path)?);
    let (mut n_records, mut n_heads, mut n_fields, mut n_damaged) = (0u64, 0u64, 0usize, 0u64);
    while let Some(item) = reader.next_item()? {
        match item {
            WarcItem::Damage(_) => n_damaged += 1,
            WarcItem::Record(mut record) => {
                n_records += 1;
                if let Some(head) = record.http_head()? {
                    n_heads += 1;
                    n_fields += head.spans().len();
                }
            }
        }
    }
    let (secs, cpu) = (start.elapsed().as_secs_f64(), cpu_secs() - cpu_start);
    println!(
        "{}",
        serde_json::json!({"tool": "perennial", "secs": secs, "cpu_secs": cpu, "n_records": n_records, "n_heads": n_heads,
            "n_fields": n_fields, "n_damaged": n_damaged, "peak_mb": peak_mb()})
    );
    Ok(())
}

fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap_or(0.0) / 1024.0
}

fn write(path: &str) -> io::Result<()> {
    let pages = sample(path)?;
    let mb = pages.iter().map(|(_, head, body)| head.len() + body.len()).sum::<usize>() as f64 / 1e6;
    let labels: Vec<_> = pages.iter().map(digests).collect();
    let mut best = [f64::MAX; 4];
    for _ in 0..5 {
        let secs = [
            time(|| write_pages(&pages, None))?,
            time(|| write_pages(&pages, Some(&labels)))?,
            time(|| compress_alone(&pages))?,
            time(|| compress_alone_by_stream(&pages))?,
        ];
        best.iter_mut().zip(secs).for_each(|(best, secs)| *best = best.min(secs));
    }
    let [hashing, hashed, alone, stream] = best;
    println!(
        "{}",
        serde_json::json!({"n_pages": pages.len(), "mb": mb, "level": LEVEL,
            "mb_per_sec": {"writer": mb / hashing, "writer_digests_known": mb / hashed,
                "libdeflate_alone": mb / alone, "zlib_rs_alone": mb / stream},
            "share_of_libdeflate": alone / hashing, "share_of_libdeflate_digests_known": alone / hashed,
            "share_of_zlib_rs": stream / hashing})
    );
    Ok(())
}

/// Digests of block and body. An archive knows them before it writes, because it searches for a copy of the body by
/// digest.
fn digests((_, head, body): &Page) -> (String, String) {
    (sha1_label(&[&head[..], body].concat()), sha1_label(body))
}

type Page = (String, Vec<u8>, Vec<u8>);

fn sample(path: &str) -> io::Result<Vec<Page>> {
    let mut reader = WarcReader::new(File::open(path)?);
    let (mut pages, mut n_bytes) = (Vec::new(), 0);
    while let Some(WarcItem::Record(mut record)) = reader.next_item()? {
        if record.header().record_type() != RecordType::Response || n_bytes > SAMPLE_BYTES {
            continue;
        }
        let url = record.header().target_uri().unwrap_or("").to_string();
        let head = record.http_head()?.map(|head| head.as_bytes().to_vec()).unwrap_or_default();
        let mut body = Vec::new();
        record.read_to_end(&mut body)?;
        n_bytes += head.len() + body.len();
        pages.push((url, head, body));
    }
    Ok(pages)
}

fn time(work: impl FnOnce() -> io::Result<u64>) -> io::Result<f64> {
    let start = cpu_secs();
    std::hint::black_box(work()?);
    Ok(cpu_secs() - start)
}

/// CPU time, which other programs hardly affect.
fn cpu_secs() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn write_pages(pages: &[Page], labels: Option<&[(String, String)]>) -> io::Result<u64> {
    let mut writer = WarcWriter::new(io::sink(), 0, Compression::Gzip(LEVEL))?;
    let mut ids = RecordIds::new(1);
    for (i, (url, head, body)) in pages.iter().enumerate() {
        let mut record = NewRecord::response(ids.next_id(), Timestamp::EPOCH, url, head, body);
        if let Some((block, payload)) = labels.map(|labels| labels[i].clone()) {
            record = record.digests(Some(block), Some(payload));
        }
        writer.write(&record)?;
    }
    Ok(writer.offset())
}

/// Compresses the same bytes to one gzip member each with the writer's own compressor, without the writer.
fn compress_alone(pages: &[Page]) -> io::Result<u64> {
    let mut compressor = libdeflater::Compressor::new(CompressionLvl::new(LEVEL as i32).unwrap_or_default());
    let (mut n, mut block, mut out) = (0, Vec::new(), Vec::new());
    for (_, head, body) in pages {
        block.clear();
        block.extend_from_slice(head);
        block.extend_from_slice(body);
        out.resize(compressor.gzip_compress_bound(block.len()), 0);
        n += compressor.gzip_compress(&block, &mut out).map_err(io::Error::other)? as u64;
    }
    Ok(n)
}

/// Compresses the same bytes with zlib-rs as a stream.
fn compress_alone_by_stream(pages: &[Page]) -> io::Result<u64> {
    let mut n = 0;
    for (_, head, body) in pages {
        let out = Vec::with_capacity(body.len() / 2);
        let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::new(LEVEL));
        encoder.write_all(head)?;
        encoder.write_all(body)?;
        n += encoder.finish()?.len() as u64;
    }
    Ok(n)
}
