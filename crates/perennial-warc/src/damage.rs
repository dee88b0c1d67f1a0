//! A stretch of a file without a sound record -> [`Damage`]: where it is, how long, what is wrong and what helps.

use std::fmt;
use std::io;

use super::member::MemberError;

/// A stretch of a file in which no sound record could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where the broken record (or its compressed member) starts.
    pub offset: u64,
    /// Bytes until the next record or the end of the file; 0 when the same compressed member goes on with
    /// another record.
    pub length: u64,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The file ends inside the record.
    Torn,
    /// The compressed bytes cannot be decompressed.
    Corrupt,
    /// The compressed member's checksum is wrong: a bit of the record has changed.
    Checksum,
    /// `Content-Length` is wrong: the block is longer or shorter.
    WrongLength,
    /// `Content-Length` is absent or no number.
    NoLength,
    /// The record's head does not end.
    HeadTooLong,
    /// The record's head breaks off.
    HeadCut,
    /// The bytes are no record.
    Garbage,
}

impl Cause {
    /// The name in tables and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Torn => "torn",
            Cause::Corrupt => "corrupt",
            Cause::Checksum => "checksum",
            Cause::WrongLength => "wrong-length",
            Cause::NoLength => "no-length",
            Cause::HeadTooLong => "head-too-long",
            Cause::HeadCut => "head-cut",
            Cause::Garbage => "garbage",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::Torn => "the file ends inside the record: copy the file again, or cut the torn end off",
            Cause::Corrupt => "the compressed bytes are corrupt: take this stretch from another copy",
            Cause::Checksum => "the checksum is wrong, the record has changed: take it from another copy",
            Cause::WrongLength => "Content-Length is wrong: the writer miscounted, or bytes were lost",
            Cause::NoLength => "Content-Length is missing or no number: write the record again with it",
            Cause::HeadTooLong => "the record's head does not end within 1 MiB",
            Cause::HeadCut => "the record's head breaks off: take it from another copy",
            Cause::Garbage => "no record begins here: remove these bytes",
        })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {} ({} bytes): {}", self.offset, self.length, self.cause)
    }
}

impl std::error::Error for Damage {}

/// Why reading stopped: the source failed, or its content is damaged.
pub(super) enum Failure {
    Io(io::Error),
    Damaged(Cause),
    /// The content is damaged, and the reader already stands at the next record.
    DamagedUpToHere(Cause),
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Failure {
        Failure::Damaged(cause)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        Failure::Io(e)
    }
}

impl From<MemberError> for Failure {
    fn from(e: MemberError) -> Failure {
        match e {
            MemberError::Io(e) => Failure::Io(e),
            MemberError::Torn => Failure::Damaged(Cause::Torn),
            MemberError::Corrupt => Failure::Damaged(Cause::Corrupt),
            MemberError::Checksum => Failure::Damaged(Cause::Checksum),
        }
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> io::Error {
        match failure {
            Failure::Io(e) => e,
            Failure::Damaged(Cause::Torn) | Failure::DamagedUpToHere(Cause::Torn) => {
                io::Error::new(io::ErrorKind::UnexpectedEof, Cause::Torn.to_string())
            }
            Failure::Damaged(cause) | Failure::DamagedUpToHere(cause) => {
                io::Error::new(io::ErrorKind::InvalidData, cause.to_string())
            }
        }
    }
}
