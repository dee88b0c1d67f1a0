//! Archived bytes <-> records: WARC 1.0 and 1.1 in, WARC 1.1 out, over any `Read` or `Write`.
//!
//! | file | what becomes what |
//! |---|---|
//! | `digest` | bytes -> `sha1:` and `sha256:` labels, and a verdict on the labels of others |
//! | `header` | the head of a record -> its named fields, typed |
//! | `input`, `member` | any `Read` -> a window; compressed members -> their bytes |
//! | `damage` | a stretch of a file without a sound record -> what is wrong with it |
//! | `start` | bytes -> where a record or a member begins |
//! | `reader` | a file, sound or damaged -> records and damage, in constant memory |
//! | `recover` | damage -> the next record that can be read |
//! | `writer` | records -> one compressed member each |

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
mod start;
pub mod surt;
pub mod time;
mod writer;

pub use compress::Compression;
pub use damage::{Cause, Damage};
pub use digest::{
    DigestChecker, DigestVerdict, PayloadDigests, PayloadHasher, Sha1Stream, contradicts, named_content,
    sha1_label,
};
pub use header::{RecordHeader, RecordType, Truncation, WarcVersion};
pub use reader::{Extent, Record, WarcItem, WarcReader};
pub use writer::{NewRecord, RecordId, RecordIds, RevisitProfile, WarcWriter, Written};

#[cfg(test)]
mod tests;
