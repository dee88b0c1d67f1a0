//! A stretch of a file without a sound record -> [`Damage`]: its offset, its length, the cause and a hint.

use std::fmt;
use std::io;

use super::member::MemberError;

/// A stretch of a file without a readable sound record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the broken record (or of its compressed member).
    pub offset: u64,
    /// Bytes until the next record or the end of the file. 0 if the next record is in the same compressed member.
    pub length: u64,
    /// The cause.
    pub cause: DamageCause,
}

/// Why a record is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageCause {
    /// The file ends inside the record.
    Torn,
    /// The compressed bytes cannot be decompressed.
    Corrupt,
    /// The compressed member's checksum is wrong, so a bit of the record has changed.
    Checksum,
    /// `Content-Length` is wrong: the block is longer or shorter.
    WrongLength,
    /// `Content-Length` is absent or not a number.
    NoLength,
    /// The record's head does not end.
    HeadTooLong,
    /// The record's head breaks off.
    HeadCut,
    /// The bytes are not a record.
    Garbage,
}

impl DamageCause {
    /// The cause's name in tables and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            DamageCause::Torn => "torn",
            DamageCause::Corrupt => "corrupt",
            DamageCause::Checksum => "checksum",
            DamageCause::WrongLength => "wrong-length",
            DamageCause::NoLength => "no-length",
            DamageCause::HeadTooLong => "head-too-long",
            DamageCause::HeadCut => "head-cut",
            DamageCause::Garbage => "garbage",
        }
    }
}

impl fmt::Display for DamageCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DamageCause::Torn => {
                "the file ends inside the record: copy the file again if the source is complete"
            }
            DamageCause::Corrupt => "the compressed bytes are corrupt: take this stretch from another copy",
            DamageCause::Checksum => {
                "the checksum is wrong, the record has changed: take it from another copy"
            }
            DamageCause::WrongLength => "Content-Length is wrong: the writer miscounted, or bytes were lost",
            DamageCause::NoLength => "Content-Length is missing or no number: write the record again with it",
            DamageCause::HeadTooLong => "the record's head does not end within 1 MiB",
            DamageCause::HeadCut => "the record's head breaks off: take it from another copy",
            DamageCause::Garbage => {
                "no record begins here: readers skip these bytes; compare with a second copy"
            }
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
pub(super) enum ReadFailure {
    Io(io::Error),
    Damaged(DamageCause),
    /// The content is damaged, and the reader is already at the next record.
    DamagedUpToHere(DamageCause),
}

impl From<DamageCause> for ReadFailure {
    fn from(cause: DamageCause) -> ReadFailure {
        ReadFailure::Damaged(cause)
    }
}

impl From<io::Error> for ReadFailure {
    fn from(e: io::Error) -> ReadFailure {
        ReadFailure::Io(e)
    }
}

impl From<MemberError> for ReadFailure {
    fn from(e: MemberError) -> ReadFailure {
        match e {
            MemberError::Io(e) => ReadFailure::Io(e),
            MemberError::Torn => ReadFailure::Damaged(DamageCause::Torn),
            MemberError::Corrupt => ReadFailure::Damaged(DamageCause::Corrupt),
            MemberError::Checksum => ReadFailure::Damaged(DamageCause::Checksum),
        }
    }
}

impl From<ReadFailure> for io::Error {
    fn from(failure: ReadFailure) -> io::Error {
        match failure {
            ReadFailure::Io(e) => e,
            ReadFailure::Damaged(DamageCause::Torn) | ReadFailure::DamagedUpToHere(DamageCause::Torn) => {
                io::Error::new(io::ErrorKind::UnexpectedEof, DamageCause::Torn.to_string())
            }
            ReadFailure::Damaged(cause) | ReadFailure::DamagedUpToHere(cause) => {
                io::Error::new(io::ErrorKind::InvalidData, cause.to_string())
            }
        }
    }
}
