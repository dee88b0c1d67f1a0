//! The bytes of a WARC or ARC file, sound or damaged -> its records in order, and the stretches without a readable
//! record. Each block is a `Read`.
//!
//! Memory is constant: the reader holds only a window of a block. It always reads to the end of the input. After
//! damage it searches for the next record from just after the start of the broken one. A wrong length or a flipped
//! bit may have made it skip sound records.

use std::io::{self, BufRead, Read, Seek};

use super::damage::{Damage, DamageCause, ReadFailure};
use super::digest::{DigestChecker, DigestVerdict};
use super::header::{RecordHeader, WarcVersion};
use super::input::InputWindow;
use super::member::{FillResult, GZIP_MAGIC, MemberError, MemberKind, MemberReader, ZSTD_MAGIC};
use super::start::{find_record_start, is_warc_start, parse_arc_line};
use crate::http::{HttpHead, find_head_end};

/// A longer head counts as damage. Real heads are far shorter, even with long URLs.
const MAX_HEAD: usize = 1 << 20;
/// Bytes that suffice to find the first line of a record.
pub(super) const MAX_FIRST_LINE: usize = 64 * 1024;
/// Bytes that suffice to distinguish the start of a record from text that resembles one.
pub(super) const LOOK_AHEAD: usize = 24;

/// Reads the records of a WARC 1.x or ARC file in order. The file may be plain, gzip (one member per record, or one
/// for all) or zstd; its first bytes decide.
///
/// ```
/// use perennial_warc::{WarcItem, WarcReader};
/// let file = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n";
/// let mut reader = WarcReader::new(&file[..]);
/// while let Some(item) = reader.next_item()? {
///     match item {
///         WarcItem::Record(mut record) => {
///             let mut block = Vec::new();
///             std::io::Read::read_to_end(&mut record, &mut block)?;
///             assert_eq!(block, b"hi");
///             assert_eq!(record.finish()?.unwrap().length, 54);
///         }
///         WarcItem::Damage(damage) => panic!("{damage}"),
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct WarcReader<R> {
    pub(super) members: MemberReader<R>,
    pub(super) place: ReaderState,
    pub(super) header: RecordHeader,
    http: HttpHead,
    pub(super) current: CurrentRecord,
    /// Number of members with exactly one record, and whether any had more. Recovery infers from both how the file was
    /// made.
    pub(super) n_single_members: u64,
    pub(super) any_shared_member: bool,
    pub(super) any_sound_plain: bool,
    pub(super) records_in_member: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderState {
    /// Between two members.
    Outside,
    /// Inside a member, between two records.
    Between,
    /// Inside a record's block.
    Block,
    /// The input has ended.
    End,
}

/// The record being read.
#[derive(Debug, Default)]
pub(super) struct CurrentRecord {
    pub(super) offset: u64,
    /// Decompressed position of the block in its member.
    pub(super) block_start: u64,
    remaining: u64,
    pub(super) length: u64,
    http_head_read: bool,
    failure: Option<DamageCause>,
}

/// The next part of a file: a record or damage.
pub enum WarcItem<'a, R> {
    /// A record. Its block can be read until the next call.
    Record(Record<'a, R>),
    /// A stretch of the file without a readable sound record.
    Damage(Damage),
}

/// The position and length of a record in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordExtent {
    /// Offset of the record, or of the compressed member that contains it.
    pub offset: u64,
    /// Length of the compressed member. For a plain record: length of its head and block without the blank lines after
    /// them, as in index files. 0 if [`RecordExtent::shared`].
    pub length: u64,
    /// Whether the member contains other records too. If so, the file must be rewritten before all its records can be
    /// indexed.
    pub shared: bool,
    /// Whether a reader that starts at the offset gets this record. It must be the first of its member. The only
    /// dictionary it may need is the one at the start of the file.
    pub by_offset: bool,
}

impl<R: Read> WarcReader<R> {
    /// Reads from the current position of the source. Offsets count from there.
    pub fn new(source: R) -> WarcReader<R> {
        WarcReader::over(InputWindow::new(source))
    }

    /// Reads from a source that can seek. Offsets are those of the source, and the search after damage may go back any
    /// distance.
    pub fn seekable(source: R) -> io::Result<WarcReader<R>>
    where
        R: Seek,
    {
        Ok(WarcReader::over(InputWindow::seekable(source)?))
    }

    fn over(input: InputWindow<R>) -> WarcReader<R> {
        WarcReader {
            members: MemberReader::new(input),
            place: ReaderState::Outside,
            header: RecordHeader::default(),
            http: HttpHead::default(),
            current: CurrentRecord::default(),
            n_single_members: 0,
            any_shared_member: false,
            any_sound_plain: false,
            records_in_member: 0,
        }
    }

    /// Sets the dictionary of a zstd file. It is needed if reading starts after the frame that contains it.
    pub fn set_zstd_dictionary(&mut self, dictionary: &[u8]) {
        self.members.set_dictionary(dictionary);
    }

    /// Returns the source. Its position is somewhere after the bytes that were read.
    pub fn into_inner(self) -> R {
        self.members.into_inner()
    }

    /// The offset that the reader has reached in the file, for progress bars.
    pub fn offset(&self) -> u64 {
        self.members.input.offset()
    }

    /// The record of the last item, with the bytes read so far consumed. Callers that keep the reader use it to
    /// continue later. `None` if there is no such record or it was finished.
    pub fn current_record(&mut self) -> Option<Record<'_, R>> {
        (self.place == ReaderState::Block).then_some(Record { reader: self })
    }

    /// The next record or damaged stretch; `None` at the end. The reader skips the unread part of the last record and
    /// reports damage found there first. It fails only if the source fails.
    pub fn next_item(&mut self) -> io::Result<Option<WarcItem<'_, R>>> {
        if self.place == ReaderState::Block
            && let Err(damage) = self.finish_record()?
        {
            return Ok(Some(WarcItem::Damage(damage)));
        }
        match self.start_record()? {
            None => Ok(None),
            Some(Err(damage)) => Ok(Some(WarcItem::Damage(damage))),
            Some(Ok(())) => Ok(Some(WarcItem::Record(Record { reader: self }))),
        }
    }

    /// Moves to the block of the next record.
    fn start_record(&mut self) -> io::Result<Option<Result<(), Damage>>> {
        loop {
            match self.place {
                ReaderState::End => return Ok(None),
                ReaderState::Outside => {
                    if let Some(damage) = self.open_member()? {
                        return Ok(Some(Err(damage)));
                    }
                }
                ReaderState::Between | ReaderState::Block => {
                    let start = self.record_offset();
                    match self.read_head() {
                        Ok(true) => return Ok(Some(Ok(()))),
                        Ok(false) => self.leave_member(),
                        Err(failure) => return self.recover(start, failure).map(|d| Some(Err(d))),
                    }
                }
            }
        }
    }

    fn open_member(&mut self) -> io::Result<Option<Damage>> {
        let start = self.members.input.offset();
        self.records_in_member = 0;
        match self.members.open() {
            Ok(None) => self.place = ReaderState::End,
            Ok(Some(_)) => self.place = ReaderState::Between,
            Err(failure) => return self.recover(start, failure.into()).map(Some),
        }
        Ok(None)
    }

    /// Handles the end of a member.
    fn leave_member(&mut self) {
        if self.members.kind() != MemberKind::Plain {
            match self.records_in_member {
                0 => {}
                1 => self.n_single_members += 1,
                _ => self.any_shared_member = true,
            }
        }
        self.place = ReaderState::Outside;
    }

    pub(super) fn record_offset(&self) -> u64 {
        match self.members.kind() {
            MemberKind::Plain => self.members.input.offset(),
            _ => self.members.start(),
        }
    }

    /// Reads a record's head; `false` if the member has no more records.
    fn read_head(&mut self) -> Result<bool, ReadFailure> {
        if !self.skip_blank_lines()? {
            return Ok(false);
        }
        self.ensure(LOOK_AHEAD)?;
        if self.at_compressed_member() {
            self.members.end_plain();
            return Ok(false);
        }
        self.current = CurrentRecord { offset: self.record_offset(), ..CurrentRecord::default() };
        if is_warc_start(self.members.window()) {
            self.read_warc_head()?
        } else {
            self.read_arc_head()?
        }
        let Some(length) = self.header.content_length() else { return Err(DamageCause::NoLength.into()) };
        self.current.length = length;
        self.current.remaining = length;
        self.current.block_start = self.members.consumed();
        self.records_in_member += 1;
        self.place = ReaderState::Block;
        Ok(true)
    }

    fn at_compressed_member(&self) -> bool {
        let window = self.members.window();
        self.members.kind() == MemberKind::Plain
            && (window.starts_with(&GZIP_MAGIC) || window.starts_with(&ZSTD_MAGIC))
    }

    /// Makes at least `n` bytes available if the member has them.
    fn ensure(&mut self, n: usize) -> Result<(), MemberError> {
        while self.members.window().len() < n && self.members.fill()? == FillResult::More {}
        Ok(())
    }

    /// Returns `false` at the end of the member.
    fn skip_blank_lines(&mut self) -> Result<bool, MemberError> {
        loop {
            let window = self.members.window();
            let n = window.iter().take_while(|&&b| b == b'\r' || b == b'\n').count();
            if n < window.len() {
                self.members.consume(n);
                return Ok(true);
            }
            self.members.consume(n);
            if self.members.fill()? == FillResult::End {
                return Ok(false);
            }
        }
    }

    fn read_warc_head(&mut self) -> Result<(), ReadFailure> {
        let mut searched = 0;
        let end = loop {
            let window = self.members.window();
            if let Some(end) = find_head_end(window, searched) {
                break end;
            }
            searched = window.len();
            if searched > MAX_HEAD {
                return Err(DamageCause::HeadTooLong.into());
            }
            if self.members.fill()? == FillResult::End {
                let is_plain = self.members.kind() == MemberKind::Plain;
                return Err(if is_plain { DamageCause::Torn } else { DamageCause::HeadCut }.into());
            }
        };
        let head = &self.members.window()[..end];
        if let Some(at) = find_record_start(&head[5..], false, WarcVersion::Warc11) {
            self.members.consume(5 + at);
            return Err(ReadFailure::DamagedUpToHere(DamageCause::HeadCut));
        }
        self.header.parse_into(head);
        self.members.consume(end);
        Ok(())
    }

    fn read_arc_head(&mut self) -> Result<(), ReadFailure> {
        let line_end = loop {
            let window = self.members.window();
            let line = &window[..window.len().min(MAX_FIRST_LINE)];
            match memchr::memchr(b'\n', line) {
                Some(end) => break end,
                None if line.len() == MAX_FIRST_LINE => return Err(DamageCause::Garbage.into()),
                None if self.members.fill()? == FillResult::End => return Err(DamageCause::Garbage.into()),
                None => {}
            }
        };
        if !parse_arc_line(&self.members.window()[..line_end], &mut self.header) {
            return Err(DamageCause::Garbage.into());
        }
        self.members.consume(line_end + 1);
        Ok(())
    }

    /// Skips the rest of the record and checks that it ends where it should.
    fn finish_record(&mut self) -> io::Result<Result<RecordExtent, Damage>> {
        match self.end_of_record() {
            Ok(extent) => Ok(Ok(extent)),
            Err(failure) => Ok(Err(self.recover(self.current.offset, failure)?)),
        }
    }

    fn end_of_record(&mut self) -> Result<RecordExtent, ReadFailure> {
        while self.current.remaining > 0 {
            let n = self.block_window()?.len();
            self.consume_block(n);
        }
        let offset = self.current.offset;
        let plain_end = self.members.input.offset();
        let block_end = self.members.consumed();
        let more = self.skip_blank_lines()?;
        self.place = ReaderState::Between;
        // A record that ends with two line ends is sound, regardless of the bytes that follow.
        let ended_well = self.members.consumed() - block_end >= 4;
        if more && !ended_well && !self.at_record_start()? {
            return Err(DamageCause::WrongLength.into());
        }
        if self.members.kind() == MemberKind::Plain {
            self.any_sound_plain = true;
            return Ok(RecordExtent { offset, length: plain_end - offset, shared: false, by_offset: true });
        }
        let by_offset = self.records_in_member == 1 && !self.members.has_late_dictionary();
        if more || self.records_in_member > 1 {
            return Ok(RecordExtent { offset, length: 0, shared: true, by_offset });
        }
        Ok(RecordExtent { offset, length: self.members.input.offset() - offset, shared: false, by_offset })
    }

    fn at_record_start(&mut self) -> Result<bool, MemberError> {
        self.ensure(LOOK_AHEAD)?;
        if is_warc_start(self.members.window()) || self.at_compressed_member() {
            return Ok(true);
        }
        if self.header.version() != WarcVersion::Arc {
            return Ok(false);
        }
        let mut line_end = None;
        while line_end.is_none() {
            let window = self.members.window();
            line_end = memchr::memchr(b'\n', &window[..window.len().min(MAX_FIRST_LINE)]);
            if line_end.is_none()
                && (window.len() >= MAX_FIRST_LINE || self.members.fill()? == FillResult::End)
            {
                return Ok(false);
            }
        }
        let line = &self.members.window()[..line_end.unwrap_or(0)];
        Ok(parse_arc_line(line, &mut RecordHeader::default()))
    }

    /// The part of the remaining block that is in the window; at least a byte while any is left.
    fn block_window(&mut self) -> Result<&[u8], ReadFailure> {
        if let Some(cause) = self.current.failure {
            return Err(cause.into());
        }
        if self.current.remaining > 0 && self.members.window().is_empty() {
            let failure = match self.members.fill() {
                Ok(FillResult::More) => None,
                // At the end of a plain file a truncated record looks the same as a wrong length.
                Ok(FillResult::End) if self.members.kind() == MemberKind::Plain => {
                    Some(DamageCause::Torn.into())
                }
                Ok(FillResult::End) => Some(DamageCause::WrongLength.into()),
                Err(e) => Some(ReadFailure::from(e)),
            };
            if let Some(failure) = failure {
                if let ReadFailure::Damaged(cause) = failure {
                    self.current.failure = Some(cause);
                }
                return Err(failure);
            }
        }
        let window = self.members.window();
        let n = self.current.remaining.min(window.len() as u64) as usize;
        Ok(&window[..n])
    }

    fn consume_block(&mut self, n: usize) {
        self.members.consume(n);
        self.current.remaining -= (n as u64).min(self.current.remaining);
    }
}

/// One record: its header, and its block as a `Read`.
pub struct Record<'a, R> {
    reader: &'a mut WarcReader<R>,
}

impl<R: Read> Record<'_, R> {
    /// The named fields of the record.
    pub fn header(&self) -> &RecordHeader {
        &self.reader.header
    }

    /// The offset of the record (or of its compressed member) in the file.
    pub fn offset(&self) -> u64 {
        self.reader.current.offset
    }

    /// Length of the block according to the header.
    pub fn block_length(&self) -> u64 {
        self.reader.current.length
    }

    /// Number of unread bytes in the block.
    pub fn remaining(&self) -> u64 {
        self.reader.current.remaining
    }

    /// The HTTP head at the start of the block, if records of this type have one. Reading then continues with the
    /// stored body. A head longer than 1 MiB is cut there.
    pub fn http_head(&mut self) -> io::Result<Option<&HttpHead>> {
        self.read_http_head().map(|present| present.then_some(&self.reader.http))
    }

    fn read_http_head(&mut self) -> io::Result<bool> {
        let reader = &mut *self.reader;
        if reader.current.http_head_read {
            return Ok(true);
        }
        let untouched = reader.current.remaining == reader.current.length;
        if !untouched || reader.current.length == 0 || !reader.header.expects_http_head() {
            return Ok(false);
        }
        let mut searched = 0;
        let end = loop {
            let window = reader.block_window()?;
            let n = window.len();
            if let Some(end) = find_head_end(window, searched) {
                break end;
            }
            if n as u64 == reader.current.length || n >= MAX_HEAD {
                break n.min(MAX_HEAD);
            }
            searched = n;
            if !matches!(reader.members.fill(), Ok(FillResult::More)) {
                break n;
            }
        };
        reader.http.parse_into(&reader.members.window()[..end]);
        reader.consume_block(end);
        reader.current.http_head_read = true;
        Ok(true)
    }

    /// Skips the rest of the block and returns the position of the record, or its damage. Until then a record may
    /// still turn out to be damaged.
    pub fn finish(self) -> io::Result<Result<RecordExtent, Damage>> {
        self.reader.finish_record()
    }

    /// Reads the rest of the block and compares it with the digests in the header. Call it before reading anything.
    /// The first verdict is about the block. The second is about the payload: the stored body after the HTTP head, or
    /// the whole block if there is no such head. A revisit's payload digest belongs to a body stored elsewhere, so its
    /// verdict is absent.
    pub fn check_digests(&mut self) -> io::Result<(DigestVerdict, DigestVerdict)> {
        let header = self.header();
        let is_revisit = header.record_type() == super::header::RecordType::Revisit;
        let payload_claim = header.payload_digest().filter(|_| !is_revisit);
        let mut payload = DigestChecker::new(payload_claim);
        let mut block = DigestChecker::new(header.block_digest());
        if let Some(head) = self.http_head()? {
            block.update(head.as_bytes());
        }
        loop {
            let bytes = self.fill_buf()?;
            if bytes.is_empty() {
                return Ok((block.verdict(), payload.verdict()));
            }
            block.update(bytes);
            payload.update(bytes);
            let n = bytes.len();
            self.consume(n);
        }
    }
}

impl<R: Read> Read for Record<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let n = bytes.len().min(out.len());
        out[..n].copy_from_slice(&bytes[..n]);
        self.consume(n);
        Ok(n)
    }
}

impl<R: Read> BufRead for Record<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.reader.block_window()?)
    }

    fn consume(&mut self, n: usize) {
        self.reader.consume_block(n);
    }
}
