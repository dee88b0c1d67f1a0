//! Consecutive compressed members -> their decompressed bytes as a window.
//!
//! A file is a sequence of members: gzip members or zstd frames, usually one per record. Plain text is one member up
//! to its end. The first bytes of a member show its kind.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, Operation};

use super::input::InputWindow;

const OUT: usize = 128 * 1024;
const MIN_OUT: usize = 16 * 1024;
/// Longest gzip header with its names and comments. It bounds the work for each false start.
const MAX_GZIP_NAME: usize = 4 * 1024;
/// The largest window of a zstd frame: 32 MiB.
const MAX_WINDOW_LOG: u32 = 25;
const MAX_DICTIONARY: usize = 16 << 20;
/// A gzip member that inflates to at most this size is inflated in one call.
const MAX_WHOLE: usize = 1 << 20;
/// Nearly every member fits into this many bytes.
const AT_HAND: usize = 192 * 1024;
/// Bytes of a gzip header and trailer. No member is shorter.
const MIN_GZIP: usize = 18;

pub(super) const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Magic number of the skippable frame with the dictionary. Its specification puts it first in a `.warc.zst`.
const DICTIONARY_MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberKind {
    Plain,
    Gzip,
    Zstd,
}

/// Why a member returned no more bytes.
#[derive(Debug)]
pub(super) enum MemberError {
    Io(io::Error),
    /// The source ended inside the member.
    Torn,
    /// The next bytes cannot be decompressed.
    Corrupt,
    /// The checksum is wrong.
    Checksum,
}

impl From<io::Error> for MemberError {
    fn from(e: io::Error) -> MemberError {
        MemberError::Io(e)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FillResult {
    More,
    /// The member ended without an error.
    End,
}

pub(super) struct MemberReader<R> {
    pub(super) input: InputWindow<R>,
    kind: MemberKind,
    /// Offset of the current member in the file.
    start: u64,
    /// Number of decompressed bytes of the member that were consumed.
    consumed: u64,
    ended: bool,
    bad_checksum: bool,
    out: Vec<u8>,
    out_pos: usize,
    out_end: usize,
    whole: libdeflater::Decompressor,
    inflate: Decompress,
    crc: crc32fast::Hasher,
    n_out: u32,
    zstd: Option<ZstdDecoder<'static>>,
    dictionary: Vec<u8>,
    /// Whether a dictionary was found after the start of the file. Other readers look for it only at the start.
    late_dictionary: bool,
}

impl<R: Read> MemberReader<R> {
    pub(super) fn new(input: InputWindow<R>) -> MemberReader<R> {
        MemberReader {
            kind: MemberKind::Plain,
            start: input.offset(),
            input,
            consumed: 0,
            ended: true,
            bad_checksum: false,
            out: vec![0; OUT],
            out_pos: 0,
            out_end: 0,
            whole: libdeflater::Decompressor::new(),
            inflate: Decompress::new(false),
            crc: crc32fast::Hasher::new(),
            n_out: 0,
            zstd: None,
            dictionary: Vec::new(),
            late_dictionary: false,
        }
    }

    pub(super) fn set_dictionary(&mut self, dictionary: &[u8]) {
        self.dictionary = dictionary.to_vec();
        self.zstd = None;
    }

    pub(super) fn has_late_dictionary(&self) -> bool {
        self.late_dictionary && self.kind == MemberKind::Zstd
    }

    pub(super) fn kind(&self) -> MemberKind {
        self.kind
    }

    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Number of decompressed bytes of this member that were consumed.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Starts the member at the input's position; `None` at the end of the input.
    pub(super) fn open(&mut self) -> Result<Option<MemberKind>, MemberError> {
        (self.out_pos, self.out_end, self.consumed) = (0, 0, 0);
        (self.ended, self.bad_checksum) = (false, false);
        loop {
            self.start = self.input.offset();
            let head = self.input.ensure(4)?;
            if head.is_empty() {
                self.ended = true;
                return Ok(None);
            }
            if head.starts_with(&GZIP_MAGIC) {
                self.kind = MemberKind::Gzip;
                self.open_gzip()?;
            } else if head.starts_with(&ZSTD_MAGIC) {
                self.kind = MemberKind::Zstd;
                self.open_zstd()?;
            } else if is_skippable(head) {
                self.kind = MemberKind::Zstd;
                self.skip_frame()?;
                continue;
            } else {
                self.kind = MemberKind::Plain;
            }
            return Ok(Some(self.kind));
        }
    }

    fn open_gzip(&mut self) -> Result<(), MemberError> {
        if self.inflate_whole()? {
            return Ok(());
        }
        let n = gzip_header_len(&mut self.input)?;
        self.input.consume(n);
        self.inflate.reset(false);
        self.crc = crc32fast::Hasher::new();
        self.n_out = 0;
        Ok(())
    }

    /// Inflates a member that is complete in the window in one call, which takes half the time of a stream. Its end is
    /// unknown; the start of the next member is the guess. If the guess is wrong or anything else is odd, this returns
    /// `false`, and the member is read as a stream.
    fn inflate_whole(&mut self) -> io::Result<bool> {
        let next_start = |bytes: &[u8]| memchr::memmem::find(bytes.get(MIN_GZIP..)?, &GZIP_MAGIC);
        let mut end = next_start(self.input.bytes());
        if end.is_none() {
            end = next_start(self.input.ensure(AT_HAND)?);
        }
        let Some(end) = end else { return Ok(false) };
        let member = &self.input.bytes()[..MIN_GZIP + end];
        let &[.., a, b, c, d] = member else { return Ok(false) };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > MAX_WHOLE {
            return Ok(false);
        }
        if self.out.len() < length {
            self.out.resize(length, 0);
        }
        if self.whole.gzip_decompress(member, &mut self.out[..length]) != Ok(length) {
            return Ok(false);
        }
        self.out_end = length;
        self.input.consume(member.len());
        self.ended = true;
        Ok(true)
    }

    fn open_zstd(&mut self) -> Result<(), MemberError> {
        match &mut self.zstd {
            Some(decoder) => decoder.reinit()?,
            None => {
                let mut decoder = ZstdDecoder::with_dictionary(&self.dictionary)?;
                decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))?;
                self.zstd = Some(decoder);
            }
        }
        Ok(())
    }

    /// Skips a skippable frame, and stores its content if it is a dictionary.
    fn skip_frame(&mut self) -> Result<(), MemberError> {
        let head = self.input.ensure(8)?;
        let (Some(magic), Some(&[a, b, c, d])) = (head.get(..4), head.get(4..8)) else {
            return Err(MemberError::Torn);
        };
        let mut rest = u32::from_le_bytes([a, b, c, d]) as usize;
        let is_dictionary = magic == DICTIONARY_MAGIC && rest <= MAX_DICTIONARY;
        self.input.consume(8);
        let mut content = Vec::new();
        while rest > 0 {
            if self.input.bytes().is_empty() && !self.input.fill()? {
                return Err(MemberError::Torn);
            }
            let n = rest.min(self.input.bytes().len());
            if is_dictionary {
                content.extend_from_slice(&self.input.bytes()[..n]);
            }
            self.input.consume(n);
            rest -= n;
        }
        if is_dictionary {
            if content.starts_with(&ZSTD_MAGIC) {
                content =
                    zstd::bulk::decompress(&content, MAX_DICTIONARY).map_err(|_| MemberError::Corrupt)?;
            }
            self.late_dictionary |= self.start != 0;
            self.set_dictionary(&content);
        }
        Ok(())
    }

    /// Decompressed bytes in the window.
    pub(super) fn window(&self) -> &[u8] {
        match self.kind {
            MemberKind::Plain => self.input.bytes(),
            _ => &self.out[self.out_pos..self.out_end],
        }
    }

    pub(super) fn consume(&mut self, n: usize) {
        self.consumed += n as u64;
        match self.kind {
            MemberKind::Plain => self.input.consume(n),
            _ => self.out_pos = (self.out_pos + n).min(self.out_end),
        }
    }

    /// Adds decompressed bytes to the window.
    pub(super) fn fill(&mut self) -> Result<FillResult, MemberError> {
        self.fill_at_most(usize::MAX)
    }

    /// Adds at most `limit` decompressed bytes to the window, to inspect the start of a member.
    pub(super) fn fill_at_most(&mut self, limit: usize) -> Result<FillResult, MemberError> {
        if self.ended {
            return if self.bad_checksum { Err(MemberError::Checksum) } else { Ok(FillResult::End) };
        }
        match self.kind {
            MemberKind::Plain if self.input.fill()? => Ok(FillResult::More),
            MemberKind::Plain => Ok(FillResult::End),
            MemberKind::Gzip => self.fill_gzip(limit),
            MemberKind::Zstd => self.fill_zstd(limit),
        }
    }

    /// Ends a plain text because compressed members begin there.
    pub(super) fn end_plain(&mut self) {
        self.ended = true;
    }

    fn room(&mut self) {
        if self.out_pos == self.out_end {
            (self.out_pos, self.out_end) = (0, 0);
        } else if self.out.len() - self.out_end < MIN_OUT {
            self.out.copy_within(self.out_pos..self.out_end, 0);
            self.out_end -= self.out_pos;
            self.out_pos = 0;
            let needed = self.out_end + MIN_OUT;
            if self.out.len() < needed {
                self.out.resize(needed * 2, 0);
            }
        }
    }

    fn fill_gzip(&mut self, limit: usize) -> Result<FillResult, MemberError> {
        self.room();
        loop {
            if self.input.bytes().is_empty() && !self.input.fill()? {
                return Err(MemberError::Torn);
            }
            let until = self.out.len().min(self.out_end.saturating_add(limit));
            let (before_in, before_out) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(
                self.input.bytes(),
                &mut self.out[self.out_end..until],
                FlushDecompress::None,
            );
            let n_in = (self.inflate.total_in() - before_in) as usize;
            let n_out = (self.inflate.total_out() - before_out) as usize;
            self.input.consume(n_in);
            self.crc.update(&self.out[self.out_end..self.out_end + n_out]);
            self.out_end += n_out;
            self.n_out = self.n_out.wrapping_add(n_out as u32);
            match status {
                Err(_) => return Err(MemberError::Corrupt),
                Ok(Status::StreamEnd) => return self.close_gzip(n_out),
                Ok(_) if n_out > 0 => return Ok(FillResult::More),
                // If input was consumed without output, more input may help. If neither moved, nothing will.
                Ok(_) if n_in == 0 && !self.input.fill()? => return Err(MemberError::Torn),
                Ok(Status::BufError) if n_in == 0 && self.input.bytes().len() > 2 * OUT => {
                    return Err(MemberError::Corrupt);
                }
                Ok(_) => {}
            }
        }
    }

    fn close_gzip(&mut self, n_out: usize) -> Result<FillResult, MemberError> {
        let trailer = self.input.ensure(8)?;
        let Some(&[a, b, c, d, e, f, g, h]) = trailer.get(..8) else { return Err(MemberError::Torn) };
        self.input.consume(8);
        self.ended = true;
        let crc = std::mem::take(&mut self.crc).finalize();
        self.bad_checksum =
            crc != u32::from_le_bytes([a, b, c, d]) || self.n_out != u32::from_le_bytes([e, f, g, h]);
        // The last bytes are returned even if the checksum is wrong. The next call reports the error.
        if n_out > 0 { Ok(FillResult::More) } else { self.fill_at_most(0) }
    }

    fn fill_zstd(&mut self, limit: usize) -> Result<FillResult, MemberError> {
        self.room();
        loop {
            let Some(decoder) = &mut self.zstd else { return Err(MemberError::Corrupt) };
            let until = self.out.len().min(self.out_end.saturating_add(limit));
            let status = decoder
                .run_on_buffers(self.input.bytes(), &mut self.out[self.out_end..until])
                .map_err(|_| MemberError::Corrupt)?;
            self.input.consume(status.bytes_read);
            self.out_end += status.bytes_written;
            if status.remaining == 0 {
                self.ended = true;
                return Ok(if status.bytes_written > 0 { FillResult::More } else { FillResult::End });
            }
            if status.bytes_written > 0 {
                return Ok(FillResult::More);
            }
            if !self.input.bytes().is_empty() && status.bytes_read == 0 {
                return Err(MemberError::Corrupt);
            }
            if self.input.bytes().is_empty() && !self.input.fill()? {
                return Err(MemberError::Torn);
            }
        }
    }

    /// Goes back to `position` decompressed bytes after the start of the current member; `false` if that is out of
    /// reach.
    pub(super) fn rewind_within(&mut self, position: u64) -> Result<bool, MemberError> {
        if self.kind == MemberKind::Plain {
            let reached = self.input.rewind_to(self.start + position)?;
            if reached {
                self.consumed = position;
                self.ended = false;
            }
            return Ok(reached);
        }
        // A bomb is short in the file but takes long to decompress again.
        if !self.input.spend(self.consumed) || !self.input.rewind_to(self.start)? {
            return Ok(false);
        }
        self.open()?;
        while self.consumed < position {
            let n = (self.window().len() as u64).min(position - self.consumed) as usize;
            self.consume(n);
            if self.window().is_empty() && self.fill()? == FillResult::End {
                break;
            }
        }
        Ok(true)
    }

    pub(super) fn into_inner(self) -> R {
        self.input.into_inner()
    }
}

fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [low, 0x2a, 0x4d, 0x18, ..] if low & 0xf0 == 0x50)
}

/// Length of the gzip header at the input's position (RFC 1952, section 2.3).
fn gzip_header_len<R: Read>(input: &mut InputWindow<R>) -> Result<usize, MemberError> {
    let Some(&flags) = input.ensure(10)?.get(3) else { return Err(MemberError::Torn) };
    if flags & 0xe0 != 0 {
        return Err(MemberError::Corrupt);
    }
    let mut n = 10;
    if flags & 4 != 0 {
        let Some(&[low, high]) = input.ensure(n + 2)?.get(n..n + 2) else { return Err(MemberError::Torn) };
        n += 2 + u16::from_le_bytes([low, high]) as usize;
    }
    for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
        let bytes = input.ensure(n + MAX_GZIP_NAME)?;
        let text = bytes.get(n..).unwrap_or(&[]);
        let text = &text[..text.len().min(MAX_GZIP_NAME)];
        n += memchr::memchr(0, text).ok_or(MemberError::Corrupt)? + 1;
    }
    n += usize::from(flags >> 1 & 1) * 2;
    if input.ensure(n)?.len() < n {
        return Err(MemberError::Torn);
    }
    Ok(n)
}
