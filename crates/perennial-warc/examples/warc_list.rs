//! Lists every record and every damaged stretch of WARC and ARC files, as one JSON line each. The output is compared
//! with that of other tools. `cargo run --release -p perennial-warc --example warc_list -- FILE...`
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "an evaluation program is a driver"
)]

use std::fs::File;

use perennial_warc::{DigestVerdict, WarcItem, WarcReader};

fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        let mut reader = WarcReader::seekable(File::open(&path)?)?;
        while let Some(item) = reader.next_item()? {
            match item {
                WarcItem::Damage(damage) => println!(
                    "{}",
                    serde_json::json!({"file": path, "damage": damage.cause.as_str(), "offset": damage.offset,
                        "length": damage.length})
                ),
                WarcItem::Record(mut record) => {
                    let header = record.header().clone();
                    let status = record.http_head()?.and_then(|head| head.status());
                    let verdicts = record.check_digests();
                    let wrong = matches!(&verdicts, Ok((block, payload)) if block.is_mismatch() || payload.is_mismatch());
                    let checked = matches!(&verdicts, Ok((block, payload))
                        if *block == DigestVerdict::Match || *payload == DigestVerdict::Match);
                    let end = record.finish()?;
                    println!(
                        "{}",
                        serde_json::json!({"file": path, "offset": end.as_ref().map_or_else(|d| d.offset, |e| e.offset),
                            "length": end.as_ref().map_or(0, |e| e.length), "type": header.record_type().as_str(),
                            "url": header.target_uri(), "status": status, "digest_wrong": wrong,
                            "digest_right": checked && !wrong,
                            "damage": end.err().map(|d| d.cause.as_str())})
                    );
                }
            }
        }
    }
    Ok(())
}
