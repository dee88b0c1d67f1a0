//! Web archive formats over any `Read` or `Write`. The crate reads WARC 1.0, WARC 1.1 and ARC, and writes WARC 1.1. It
//! also handles CDXJ indexes, SURT keys, HTTP heads, and transfer and content codings.
//!
//! The crate handles damaged and hostile files, not only sound ones. Its reader never stops at a broken record: it
//! reports the damage as a value and continues with the next readable record. Memory is constant and decompression is
//! bounded. The crate does not touch a clock, the network or the disk, so the same input always gives the same output.
//!
//! Write a record and read it back:
//!
//! ```
//! use perennial_warc::time::Timestamp;
//! use perennial_warc::{Compression, NewRecord, RecordIds, WarcItem, WarcReader, WarcWriter};
//! use std::io::Read;
//!
//! let date = Timestamp::parse("2026-11-16T09:30:00Z").unwrap();
//! let mut ids = RecordIds::new(7);
//! let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
//! let record = NewRecord::response(ids.next_id(), date, "https://example.org/", head, b"hello");
//!
//! let mut file = Vec::new();
//! WarcWriter::new(&mut file, 0, Compression::Gzip(6))?.write(&record)?;
//!
//! let mut reader = WarcReader::new(&file[..]);
//! let Some(WarcItem::Record(mut record)) = reader.next_item()? else { panic!("no record") };
//! assert_eq!(record.header().target_uri(), Some("https://example.org/"));
//! let mut block = Vec::new();
//! record.read_to_end(&mut block)?;
//! assert!(block.ends_with(b"hello"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Index keys and lines:
//!
//! ```
//! use perennial_warc::cdxj::CdxjLine;
//! use perennial_warc::surt::{KeyRange, MatchType, surt};
//!
//! assert_eq!(surt("https://www.example.org/a?b=1"), "org,example)/a?b=1");
//! let line = CdxjLine::parse(r#"org,example)/a 20261116093000 {"url": "https://example.org/a"}"#).unwrap();
//! assert_eq!(line.url, "https://example.org/a");
//! assert!(KeyRange::of("https://example.org/a", MatchType::Exact).contains(line.to_string().as_bytes()));
//! ```
//!
//! | module | input and output |
//! |---|---|
//! | [`time`] | 14 digits or RFC 3339 -> [`time::Timestamp`] |
//! | [`http`] | the head of an archived HTTP message -> status and fields |
//! | [`payload`] | a stored HTTP body -> its decoded bytes, within limits |
//! | [`surt`] | a URL -> its sort key in an index |
//! | [`request`] | a request with a body -> the URL under which its response is indexed |
//! | [`cdxj`] | captures <-> lines of a sorted CDXJ index, with lookups in the file |
//! | `digest` | bytes -> `sha1:` and `sha256:` labels, and a check of given labels |
//! | `header` | the head of a record -> its named fields, typed |
//! | `input`, `member` | any `Read` -> a window; compressed members -> their bytes |
//! | `damage` | a part of a file without a sound record -> the cause |
//! | `start` | bytes -> the offset at which a record or a member begins |
//! | `reader` | a file, sound or damaged -> records and damage, in constant memory |
//! | `recover` | damage -> the next readable record |
//! | `writer` | records -> one compressed member each |

#![warn(missing_docs)]

pub mod cdxj;
mod compress;
mod damage;
mod digest;
mod header;
pub mod http;
mod input;
mod member;
pub mod payload;
mod reader;
mod recover;
pub mod request;
mod start;
pub mod surt;
pub mod time;
mod writer;

pub use compress::Compression;
pub use damage::{Damage, DamageCause};
pub use digest::{
    DigestChecker, DigestVerdict, PayloadDigests, PayloadHasher, Sha1Stream, contradicts, named_content,
    sha1_label,
};
pub use header::{RecordHeader, RecordType, Truncation, WarcVersion};
pub use reader::{Record, RecordExtent, WarcItem, WarcReader};
pub use writer::{NewRecord, RecordId, RecordIds, RevisitProfile, WarcWriter, WrittenRecord};

#[cfg(test)]
mod tests;
