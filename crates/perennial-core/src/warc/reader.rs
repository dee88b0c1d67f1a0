//! The bytes of a WARC or ARC file, sound or damaged -> records in order, each block a `Read`, and the places
//! where no record could be read.
//!
//! Memory is constant: a block is never held, only a window of it. Whatever the input, the reader goes on to
//! its end: after damage it looks for the next record from just behind the start of the broken one, since a
//! wrong length or a flipped bit may have made it run over sound records.

use std::io::{self, BufRead, Read, Seek};

use super::damage::{Cause, Damage, Failure};
use super::digest::{DigestChecker, DigestVerdict};
use super::header::{RecordHeader, Version};
use super::input::Input;
use super::member::{Filled, GZIP_MAGIC, Kind, MemberError, Members, ZSTD_MAGIC};
use crate::http::{HttpHead, find_head_end};

/// A longer head is taken for damage; real ones with long addresses stay far below.
const MAX_HEAD: usize = 1 << 20;
/// The first line of a record is seen by so many bytes.
const MAX_FIRST_LINE: usize = 64 * 1024;
/// Bytes by which a record's start is told from a text that looks like one.
const LOOK_AHEAD: usize = 24;
/// What is looked at of a compressed member to see whether a record begins in it.
const GLANCE: usize = 64;

/// Reads records one after another from a WARC 1.x or ARC file: plain, gzip (a member a record, or all in
/// one) or zstd, told apart by their first bytes.
///
/// ```
/// use perennial_core::warc::{Item, WarcReader};
/// let file = b"WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 2\r\n\r\nhi\r\n\r\n";
/// let mut reader = WarcReader::new(&file[..]);
/// while let Some(item) = reader.next_item()? {
///     match item {
///         Item::Record(mut record) => {
///             let mut block = Vec::new();
///             std::io::Read::read_to_end(&mut record, &mut block)?;
///             assert_eq!(block, b"hi");
///             assert_eq!(record.finish()?.unwrap().length, 54);
///         }
///         Item::Damage(damage) => panic!("{damage}"),
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct WarcReader<R> {
    members: Members<R>,
    place: Place,
    header: RecordHeader,
    http: HttpHead,
    current: Current,
    /// Members that held exactly one record, and whether any held more: tells how the file is made.
    n_single_members: u64,
    any_shared_member: bool,
    any_sound_plain: bool,
    records_in_member: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
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
struct Current {
    offset: u64,
    /// Decompressed position of the block in its member.
    block_start: u64,
    remaining: u64,
    length: u64,
    http_head_read: bool,
    failure: Option<Cause>,
}

/// What the reader found next.
pub enum Item<'a, R> {
    /// A record, whose block can be read until the next call.
    Record(Record<'a, R>),
    /// A stretch of the file in which no sound record could be read.
    Damage(Damage),
}

/// Where a record stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset of the record, or of the compressed member that holds it.
    pub offset: u64,
    /// Length of the compressed member; of a plain record, its head and block without the blank lines after
    /// them, as index files have it. 0 when [`Extent::shared`].
    pub length: u64,
    /// The member holds other records too, so that this one cannot be read by its offset alone: such a file
    /// must be written again before it can be indexed.
    pub shared: bool,
}

impl<R: Read> WarcReader<R> {
    /// Reads from where the source stands; offsets count from there.
    pub fn new(source: R) -> WarcReader<R> {
        WarcReader::over(Input::new(source))
    }

    /// The same for a source that can seek: offsets are those of the source, and the search for sound
    /// records after damage may go back any distance.
    pub fn seekable(source: R) -> io::Result<WarcReader<R>>
    where
        R: Seek,
    {
        Ok(WarcReader::over(Input::seekable(source)?))
    }

    fn over(input: Input<R>) -> WarcReader<R> {
        WarcReader {
            members: Members::new(input),
            place: Place::Outside,
            header: RecordHeader::default(),
            http: HttpHead::default(),
            current: Current::default(),
            n_single_members: 0,
            any_shared_member: false,
            any_sound_plain: false,
            records_in_member: 0,
        }
    }

    /// The dictionary of a zstd file, needed when reading starts behind the frame that holds it.
    pub fn set_zstd_dictionary(&mut self, dictionary: &[u8]) {
        self.members.set_dictionary(dictionary);
    }

    /// The source, somewhere behind what was read.
    pub fn into_inner(self) -> R {
        self.members.into_inner()
    }

    /// Offset in the file that the reader has reached: for progress bars.
    pub fn offset(&self) -> u64 {
        self.members.input.offset()
    }

    /// The next record or damaged stretch; `None` at the end. What was left of the last record is passed
    /// over, and damage found there is reported first. Fails only when the source does.
    pub fn next_item(&mut self) -> io::Result<Option<Item<'_, R>>> {
        if self.place == Place::Block
            && let Err(damage) = self.finish_record()?
        {
            return Ok(Some(Item::Damage(damage)));
        }
        match self.start_record()? {
            None => Ok(None),
            Some(Err(damage)) => Ok(Some(Item::Damage(damage))),
            Some(Ok(())) => Ok(Some(Item::Record(Record { reader: self }))),
        }
    }

    /// Comes to the block of the next record.
    fn start_record(&mut self) -> io::Result<Option<Result<(), Damage>>> {
        loop {
            match self.place {
                Place::End => return Ok(None),
                Place::Outside => {
                    if let Some(damage) = self.open_member()? {
                        return Ok(Some(Err(damage)));
                    }
                }
                Place::Between | Place::Block => {
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
            Ok(None) => self.place = Place::End,
            Ok(Some(_)) => self.place = Place::Between,
            Err(failure) => return self.recover(start, failure.into()).map(Some),
        }
        Ok(None)
    }

    /// After the last byte of a member.
    fn leave_member(&mut self) {
        if self.members.kind() != Kind::Plain {
            match self.records_in_member {
                0 => {}
                1 => self.n_single_members += 1,
                _ => self.any_shared_member = true,
            }
        }
        self.place = Place::Outside;
    }

    fn record_offset(&self) -> u64 {
        match self.members.kind() {
            Kind::Plain => self.members.input.offset(),
            _ => self.members.start(),
        }
    }

    /// Reads a record's head; `false` when the member has no more records.
    fn read_head(&mut self) -> Result<bool, Failure> {
        if !self.skip_blank_lines()? {
            return Ok(false);
        }
        self.ensure(LOOK_AHEAD)?;
        if self.at_compressed_member() {
            self.members.end_plain();
            return Ok(false);
        }
        self.current = Current { offset: self.record_offset(), ..Current::default() };
        if is_warc_start(self.members.window()) {
            self.read_warc_head()?
        } else {
            self.read_arc_head()?
        }
        let Some(length) = self.header.content_length() else { return Err(Cause::NoLength.into()) };
        self.current.length = length;
        self.current.remaining = length;
        self.current.block_start = self.members.consumed();
        self.records_in_member += 1;
        self.place = Place::Block;
        Ok(true)
    }

    fn at_compressed_member(&self) -> bool {
        let window = self.members.window();
        self.members.kind() == Kind::Plain
            && (window.starts_with(&GZIP_MAGIC) || window.starts_with(&ZSTD_MAGIC))
    }

    /// Makes at least `n` bytes available if the member has them.
    fn ensure(&mut self, n: usize) -> Result<(), MemberError> {
        while self.members.window().len() < n && self.members.fill()? == Filled::More {}
        Ok(())
    }

    /// `false` at the end of the member.
    fn skip_blank_lines(&mut self) -> Result<bool, MemberError> {
        loop {
            let window = self.members.window();
            let n = window.iter().take_while(|&&b| b == b'\r' || b == b'\n').count();
            if n < window.len() {
                self.members.consume(n);
                return Ok(true);
            }
            self.members.consume(n);
            if self.members.fill()? == Filled::End {
                return Ok(false);
            }
        }
    }

    fn read_warc_head(&mut self) -> Result<(), Failure> {
        let mut searched = 0;
        let end = loop {
            let window = self.members.window();
            if let Some(end) = find_head_end(window, searched) {
                break end;
            }
            searched = window.len();
            if searched > MAX_HEAD {
                return Err(Cause::HeadTooLong.into());
            }
            if self.members.fill()? == Filled::End {
                let is_plain = self.members.kind() == Kind::Plain;
                return Err(if is_plain { Cause::Torn } else { Cause::HeadCut }.into());
            }
        };
        let head = &self.members.window()[..end];
        if let Some(at) = find_record_start(&head[5..], false, Version::Warc11) {
            self.members.consume(5 + at);
            return Err(Failure::DamagedUpToHere(Cause::HeadCut));
        }
        self.header.parse_into(head);
        self.members.consume(end);
        Ok(())
    }

    fn read_arc_head(&mut self) -> Result<(), Failure> {
        let line_end = loop {
            let window = self.members.window();
            let line = &window[..window.len().min(MAX_FIRST_LINE)];
            match memchr::memchr(b'\n', line) {
                Some(end) => break end,
                None if line.len() == MAX_FIRST_LINE => return Err(Cause::Garbage.into()),
                None if self.members.fill()? == Filled::End => return Err(Cause::Garbage.into()),
                None => {}
            }
        };
        if !parse_arc_line(&self.members.window()[..line_end], &mut self.header) {
            return Err(Cause::Garbage.into());
        }
        self.members.consume(line_end + 1);
        Ok(())
    }

    /// Passes over the rest of the record and sees whether it ends where it should.
    fn finish_record(&mut self) -> io::Result<Result<Extent, Damage>> {
        match self.end_of_record() {
            Ok(extent) => Ok(Ok(extent)),
            Err(failure) => Ok(Err(self.recover(self.current.offset, failure)?)),
        }
    }

    fn end_of_record(&mut self) -> Result<Extent, Failure> {
        while self.current.remaining > 0 {
            let n = self.block_window()?.len();
            self.consume_block(n);
        }
        let offset = self.current.offset;
        let plain_end = self.members.input.offset();
        let block_end = self.members.consumed();
        let more = self.skip_blank_lines()?;
        self.place = Place::Between;
        // A record that ends with its two line ends is sound, whatever comes behind it.
        let ended_well = self.members.consumed() - block_end >= 4;
        if more && !ended_well && !self.at_record_start()? {
            return Err(Cause::WrongLength.into());
        }
        if self.members.kind() == Kind::Plain {
            self.any_sound_plain = true;
            return Ok(Extent { offset, length: plain_end - offset, shared: false });
        }
        if more || self.records_in_member > 1 {
            return Ok(Extent { offset, length: 0, shared: true });
        }
        Ok(Extent { offset, length: self.members.input.offset() - offset, shared: false })
    }

    fn at_record_start(&mut self) -> Result<bool, MemberError> {
        self.ensure(LOOK_AHEAD)?;
        if is_warc_start(self.members.window()) || self.at_compressed_member() {
            return Ok(true);
        }
        if self.header.version() != Version::Arc {
            return Ok(false);
        }
        let mut line_end = None;
        while line_end.is_none() {
            let window = self.members.window();
            line_end = memchr::memchr(b'\n', &window[..window.len().min(MAX_FIRST_LINE)]);
            if line_end.is_none() && (window.len() >= MAX_FIRST_LINE || self.members.fill()? == Filled::End) {
                return Ok(false);
            }
        }
        let line = &self.members.window()[..line_end.unwrap_or(0)];
        Ok(parse_arc_line(line, &mut RecordHeader::default()))
    }

    /// The rest of the block as far as it is at hand, at least a byte while any is left.
    fn block_window(&mut self) -> Result<&[u8], Failure> {
        if let Some(cause) = self.current.failure {
            return Err(cause.into());
        }
        if self.current.remaining > 0 && self.members.window().is_empty() {
            let failure = match self.members.fill() {
                Ok(Filled::More) => None,
                // A plain file ends with its last byte: no telling a torn record from a wrong length.
                Ok(Filled::End) if self.members.kind() == Kind::Plain => Some(Cause::Torn.into()),
                Ok(Filled::End) => Some(Cause::WrongLength.into()),
                Err(e) => Some(Failure::from(e)),
            };
            if let Some(failure) = failure {
                if let Failure::Damaged(cause) = failure {
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

    /// After damage that began at `start`: goes to the next record and says what was passed over.
    fn recover(&mut self, start: u64, failure: Failure) -> io::Result<Damage> {
        let (cause, at_next) = match failure {
            Failure::Io(e) => return Err(e),
            Failure::Damaged(cause) => (cause, false),
            Failure::DamagedUpToHere(cause) => (cause, true),
        };
        match self.members.kind() {
            Kind::Plain if at_next => self.place = Place::Between,
            Kind::Plain => self.resume_in_plain(cause)?,
            _ => self.resume_in_compressed(start, cause, at_next)?,
        }
        let resumed = if self.place == Place::Between { self.record_offset() } else { self.offset() };
        Ok(Damage { offset: start, length: resumed.saturating_sub(start), cause })
    }

    fn resume_in_plain(&mut self, cause: Cause) -> io::Result<()> {
        if matches!(cause, Cause::WrongLength | Cause::Torn) && self.current.length > 0 {
            // The block may have swallowed sound records: look again from its start.
            if let Err(MemberError::Io(e)) = self.members.rewind_within(self.current.block_start) {
                return Err(e);
            }
        } else if cause != Cause::NoLength {
            self.members.consume(1);
        }
        // A body may hold a whole archive of the other kind; what the file itself is made of is told by the
        // records before.
        let any_compressed = self.n_single_members > 0 || self.any_shared_member;
        match (self.any_sound_plain, any_compressed) {
            (true, false) => self.scan_member(self.current.offset),
            (any_plain, _) => self.search_input(self.offset(), any_plain || !any_compressed),
        }
    }

    fn resume_in_compressed(&mut self, start: u64, cause: Cause, at_next: bool) -> io::Result<()> {
        match cause {
            Cause::Torn | Cause::Corrupt => return self.search_input(start + 1, false),
            Cause::Checksum => return self.resume_after_member(start),
            _ => {}
        }
        let position = match cause {
            Cause::WrongLength => self.current.block_start,
            Cause::NoLength => self.members.consumed(),
            _ => self.members.consumed() + u64::from(!at_next),
        };
        // What a torn member holds may be the bytes of those behind it: it is searched only if it is sound.
        if !self.drain_member(start)? || self.is_member_per_record() {
            return Ok(());
        }
        match self.members.rewind_within(position) {
            Ok(true) => self.scan_member(start),
            Ok(false) => Ok(()),
            Err(e) => self.resume_after_failed_scan(start, e),
        }
    }

    /// Whether the file is made as it should be, so that a body that holds a whole WARC is not taken apart.
    fn is_member_per_record(&self) -> bool {
        self.n_single_members > 0 && !self.any_shared_member && self.records_in_member <= 1
    }

    /// The member's end is known only if a member, or nothing, follows it. Even then a member that a crash cut
    /// short may have taken the bytes of those behind it for its own and ended with one of them by chance.
    fn resume_after_member(&mut self, start: u64) -> io::Result<()> {
        let end = self.offset();
        let next = self.members.input.ensure(4)?;
        if !next.is_empty() && !next.starts_with(&GZIP_MAGIC) && !next.starts_with(&ZSTD_MAGIC) {
            return self.search_input(start + 1, false);
        }
        let resume = self.swallowed_members(start, end)?.unwrap_or(end);
        self.members.input.rewind_to(resume)?;
        self.place = Place::Outside;
        Ok(())
    }

    /// Where, inside a damaged member, a row of sound members begins that ends exactly where it ends. The
    /// members of an archive that is the record's body do not: the record's own end stands behind them.
    fn swallowed_members(&mut self, start: u64, end: u64) -> io::Result<Option<u64>> {
        let mut from = start + 1;
        while self.members.input.rewind_to(from)? {
            let bytes = self.members.input.ensure(LOOK_AHEAD)?;
            let Some(at) = find_member_start(bytes, false, false) else {
                from += (bytes.len() + 1).saturating_sub(LOOK_AHEAD).max(1) as u64;
                if from >= end {
                    break;
                }
                continue;
            };
            let first = from + at as u64;
            if first >= end {
                break;
            }
            self.members.input.consume(at);
            match self.last_of_row(end)? {
                None => return Ok(Some(first)),
                // No row that begins with one of those passed reaches the end either.
                Some(broken) => from = broken + 1,
            }
        }
        Ok(None)
    }

    /// Reads members one after another: `None` when one ends exactly at `end`, else where the row breaks.
    fn last_of_row(&mut self, end: u64) -> io::Result<Option<u64>> {
        loop {
            let start = self.offset();
            match self.members.open() {
                Ok(Some(Kind::Gzip | Kind::Zstd)) if start < end => {}
                Err(MemberError::Io(e)) => return Err(e),
                _ => return Ok(Some(start)),
            }
            loop {
                let n = self.members.window().len();
                self.members.consume(n);
                match self.members.fill() {
                    Ok(Filled::More) => {}
                    Ok(Filled::End) if self.offset() == end => return Ok(None),
                    Ok(Filled::End) => break,
                    Err(MemberError::Io(e)) => return Err(e),
                    Err(_) => return Ok(Some(start)),
                }
            }
        }
    }

    /// Passes over the rest of the member; `false` when it proved damaged and the search went on elsewhere.
    fn drain_member(&mut self, start: u64) -> io::Result<bool> {
        loop {
            let n = self.members.window().len();
            self.members.consume(n);
            match self.members.fill() {
                Ok(Filled::More) => {}
                Ok(Filled::End) => {
                    self.place = Place::Outside;
                    return Ok(true);
                }
                Err(e) => return self.resume_after_failed_scan(start, e).map(|()| false),
            }
        }
    }

    /// Looks for a record's first line in the rest of the member.
    fn scan_member(&mut self, start: u64) -> io::Result<()> {
        self.place = Place::Between;
        let mut at_line_start = false;
        loop {
            let window = self.members.window();
            if let Some(at) = find_record_start(window, at_line_start, self.header.version()) {
                self.members.consume(at);
                return Ok(());
            }
            let n = self.n_scanned();
            if n > 0 {
                at_line_start = self.members.window()[n - 1] == b'\n';
                self.members.consume(n);
            }
            match self.members.fill() {
                Ok(Filled::More) => {}
                Ok(Filled::End) => {
                    let n = self.members.window().len();
                    self.members.consume(n);
                    self.place = Place::Outside;
                    return Ok(());
                }
                Err(e) => return self.resume_after_failed_scan(start, e),
            }
        }
    }

    /// How much of the window need not be looked at again. An ARC line must be whole to be recognised.
    fn n_scanned(&self) -> usize {
        let window = self.members.window();
        let n = window.len().saturating_sub(LOOK_AHEAD);
        if self.header.version() != Version::Arc {
            return n;
        }
        match memchr::memrchr(b'\n', window) {
            Some(at) if window.len() - at <= MAX_FIRST_LINE => n.min(at),
            _ if window.len() > MAX_FIRST_LINE => n,
            _ => 0,
        }
    }

    fn resume_after_failed_scan(&mut self, start: u64, e: MemberError) -> io::Result<()> {
        match e {
            MemberError::Io(e) => Err(e),
            MemberError::Checksum => self.resume_after_member(start),
            MemberError::Torn | MemberError::Corrupt => self.search_input(start + 1, false),
        }
    }

    /// Looks through the raw input for a member in which a record begins, or for a plain record.
    fn search_input(&mut self, from: u64, plain_too: bool) -> io::Result<()> {
        self.members.input.rewind_towards(from)?;
        loop {
            let at_line_start = self.members.input.previous() == Some(b'\n');
            let bytes = self.members.input.ensure(LOOK_AHEAD)?;
            if bytes.is_empty() {
                self.place = Place::End;
                return Ok(());
            }
            let Some(at) = find_member_start(bytes, plain_too, at_line_start) else {
                let is_last = bytes.len() < LOOK_AHEAD;
                let n = if is_last { bytes.len() } else { bytes.len() + 1 - LOOK_AHEAD };
                self.members.input.consume(n);
                continue;
            };
            self.members.input.consume(at);
            let candidate = self.offset();
            if self.record_begins_here()? {
                return Ok(());
            }
            if !self.members.input.rewind_to(candidate + 1)? && self.offset() <= candidate {
                self.members.input.consume(1);
            }
        }
    }

    fn record_begins_here(&mut self) -> io::Result<bool> {
        self.records_in_member = 0;
        match self.members.open() {
            Ok(Some(Kind::Plain)) => {
                self.place = Place::Between;
                return Ok(true);
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(false),
            Err(MemberError::Io(e)) => return Err(e),
            Err(_) => return Ok(false),
        }
        while self.members.window().len() < LOOK_AHEAD {
            match self.members.fill_at_most(GLANCE) {
                Ok(Filled::More) => {}
                Ok(Filled::End) | Err(MemberError::Torn | MemberError::Corrupt | MemberError::Checksum) => {
                    break;
                }
                Err(MemberError::Io(e)) => return Err(e),
            }
        }
        self.place = Place::Between;
        let window = self.members.window();
        Ok(is_warc_start(window) || is_arc_like(window))
    }
}

/// One record: its header, and its block as a `Read`.
pub struct Record<'a, R> {
    reader: &'a mut WarcReader<R>,
}

impl<R: Read> Record<'_, R> {
    /// The record's named fields.
    pub fn header(&self) -> &RecordHeader {
        &self.reader.header
    }

    /// Where the record (or its compressed member) starts in the file.
    pub fn offset(&self) -> u64 {
        self.reader.current.offset
    }

    /// Length of the block, as the header gives it.
    pub fn block_length(&self) -> u64 {
        self.reader.current.length
    }

    /// Bytes of the block not yet read.
    pub fn remaining(&self) -> u64 {
        self.reader.current.remaining
    }

    /// The HTTP head at the start of the block, if the record is of a kind that has one; reading then goes on
    /// with the body as it was stored. A head longer than 1 MiB is cut there.
    pub fn http_head(&mut self) -> io::Result<Option<&HttpHead>> {
        self.read_http_head().map(|present| present.then_some(&self.reader.http))
    }

    /// Header and HTTP head together, for callers that need both at once.
    pub fn heads(&mut self) -> io::Result<(&RecordHeader, Option<&HttpHead>)> {
        let present = self.read_http_head()?;
        Ok((&self.reader.header, present.then_some(&self.reader.http)))
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
            if !matches!(reader.members.fill(), Ok(Filled::More)) {
                break n;
            }
        };
        reader.http.parse_into(&reader.members.window()[..end]);
        reader.consume_block(end);
        reader.current.http_head_read = true;
        Ok(true)
    }

    /// Passes over the rest of the block and says where the record stands, or what is wrong with it. Until
    /// then a record may still prove damaged.
    pub fn finish(self) -> io::Result<Result<Extent, Damage>> {
        self.reader.finish_record()
    }

    /// Reads the rest of the block and compares the digests that the header claims; call it before anything
    /// was read. The second one is the payload's: the body behind the HTTP head as stored, or the block of a
    /// record without such a head. Revisits claim the digest of a payload that is elsewhere: absent here.
    pub fn check_digests(&mut self) -> io::Result<(DigestVerdict, DigestVerdict)> {
        let header = self.header();
        let is_revisit = header.record_type() == super::header::RecordType::Revisit;
        let is_segmented = header.get("WARC-Segment-Number").is_some();
        let payload_claim = header.payload_digest().filter(|_| !is_revisit && !is_segmented);
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

/// `WARC/` and a number.
fn is_warc_start(bytes: &[u8]) -> bool {
    matches!(bytes, [b'W', b'A', b'R', b'C', b'/', b'0'..=b'9', b'.', b'0'..=b'9', ..])
}

fn is_arc_like(bytes: &[u8]) -> bool {
    [&b"filedesc:"[..], b"http://", b"https://", b"dns:", b"ftp://"].iter().any(|p| bytes.starts_with(p))
}

/// A version line followed by a field of a record: a start even where no line starts, as behind bytes that a
/// crash left.
fn is_strong_start(bytes: &[u8]) -> bool {
    let rest = match bytes.get(8..) {
        Some([b'\r', b'\n', rest @ ..]) | Some([b'\n', rest @ ..]) => rest,
        _ => return false,
    };
    let begins = |name: &[u8]| rest.len() >= name.len() && rest[..name.len()].eq_ignore_ascii_case(name);
    is_warc_start(bytes) && (begins(b"WARC-") || begins(b"Content-"))
}

/// The first line of a record.
fn find_record_start(bytes: &[u8], at_line_start: bool, version: Version) -> Option<usize> {
    let starts_line = |at: usize| if at == 0 { at_line_start } else { bytes[at - 1] == b'\n' };
    let warc = memchr::memmem::find_iter(bytes, b"WARC/").find(|&at| {
        let here = &bytes[at..];
        is_warc_start(here) && starts_line(at) || is_strong_start(here)
    });
    if version != Version::Arc {
        return warc;
    }
    let is_arc_line = |at: usize| {
        let line = &bytes[at..bytes.len().min(at + MAX_FIRST_LINE)];
        let parses = |end| parse_arc_line(&line[..end], &mut RecordHeader::default());
        is_arc_like(line) && memchr::memchr(b'\n', line).is_some_and(parses)
    };
    let mut line_starts = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
    let arc = if at_line_start && is_arc_line(0) { Some(0) } else { line_starts.find(|&at| is_arc_line(at)) };
    arc.into_iter().chain(warc).min()
}

/// A gzip or zstd magic number, or (if asked) the first line of a plain record.
fn find_member_start(bytes: &[u8], plain_too: bool, at_line_start: bool) -> Option<usize> {
    memchr::memchr3_iter(GZIP_MAGIC[0], ZSTD_MAGIC[0], b'W', bytes).find(|&at| {
        let here = &bytes[at..];
        let starts_line = if at == 0 { at_line_start } else { bytes[at - 1] == b'\n' };
        here.starts_with(&GZIP_MAGIC)
            || here.starts_with(&ZSTD_MAGIC)
            || plain_too && (is_warc_start(here) && starts_line || is_strong_start(here))
    })
}

/// `URL IP date type length`, the five fields of ARC 1; the URL may hold blanks. The fields get their WARC
/// names, so that both formats read alike.
fn parse_arc_line(line: &[u8], header: &mut RecordHeader) -> bool {
    let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
    let mut words = line.rsplitn(5, ' ');
    let (Some(length), Some(media_type), Some(date), Some(address), Some(url)) =
        (words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(length) || !is_number(date) || !(8..=14).contains(&date.len()) || !url.contains(':') {
        return false;
    }
    header.clear();
    header.version = Version::Arc;
    let is_description = url.starts_with("filedesc:");
    header.push("WARC-Type", if is_description { "warcinfo" } else { "response" });
    match url.strip_prefix("filedesc://") {
        Some(name) => header.push("WARC-Filename", name),
        None => header.push("WARC-Target-URI", url),
    }
    header.push("WARC-IP-Address", address);
    header.push("WARC-Date", date);
    header.push("Content-Type", media_type);
    header.push("Content-Length", length);
    true
}
