//! Damage -> the next readable record, to which the reader moves.
//!
//! The search begins just after the start of the broken record. A wrong length or a flipped bit may have made the
//! reader skip sound records.

use std::io::{self, Read};

use super::damage::{Damage, DamageCause, ReadFailure};
use super::header::WarcVersion;
use super::member::{FillResult, GZIP_MAGIC, MemberError, MemberKind, ZSTD_MAGIC};
use super::reader::{LOOK_AHEAD, MAX_FIRST_LINE, ReaderState, WarcReader};
use super::start::{find_member_start, find_record_start, is_arc_like, is_warc_start};

/// Decompressed bytes that are inspected to find out whether a member begins with a record.
const GLANCE: usize = 64;

impl<R: Read> WarcReader<R> {
    /// Handles damage that began at `start`: moves to the next record and returns the skipped stretch.
    pub(super) fn recover(&mut self, start: u64, failure: ReadFailure) -> io::Result<Damage> {
        let (cause, at_next) = match failure {
            ReadFailure::Io(e) => return Err(e),
            ReadFailure::Damaged(cause) => (cause, false),
            ReadFailure::DamagedUpToHere(cause) => (cause, true),
        };
        match self.members.kind() {
            MemberKind::Plain if at_next => self.place = ReaderState::Between,
            MemberKind::Plain => self.resume_in_plain(cause)?,
            _ => self.resume_in_compressed(start, cause, at_next)?,
        }
        let resumed = if self.place == ReaderState::Between { self.record_offset() } else { self.offset() };
        Ok(Damage { offset: start, length: resumed.saturating_sub(start), cause })
    }

    fn resume_in_plain(&mut self, cause: DamageCause) -> io::Result<()> {
        if matches!(cause, DamageCause::WrongLength | DamageCause::Torn) && self.current.length > 0 {
            // The block may contain sound records, so the search begins at its start.
            if let Err(MemberError::Io(e)) = self.members.rewind_within(self.current.block_start) {
                return Err(e);
            }
        } else if cause != DamageCause::NoLength {
            self.members.consume(1);
        }
        // A body may contain a whole archive of the other kind. The earlier records show the kind of the file itself.
        let any_compressed = self.n_single_members > 0 || self.any_shared_member;
        match (self.any_sound_plain, any_compressed) {
            (true, false) => self.scan_member(self.current.offset),
            (any_plain, _) => self.search_input(self.offset(), any_plain || !any_compressed),
        }
    }

    fn resume_in_compressed(&mut self, start: u64, cause: DamageCause, at_next: bool) -> io::Result<()> {
        match cause {
            DamageCause::Torn | DamageCause::Corrupt => return self.search_input(start + 1, false),
            DamageCause::Checksum => return self.resume_after_member(start),
            _ => {}
        }
        let position = match cause {
            DamageCause::WrongLength => self.current.block_start,
            DamageCause::NoLength => self.members.consumed(),
            _ => self.members.consumed() + u64::from(!at_next),
        };
        // A truncated member may have absorbed the bytes of later members, so only a sound one is searched.
        if !self.drain_member(start)? || self.is_member_per_record() {
            return Ok(());
        }
        match self.members.rewind_within(position) {
            Ok(true) => self.scan_member(start),
            Ok(false) => Ok(()),
            Err(e) => self.resume_after_failed_scan(start, e),
        }
    }

    /// Whether each member so far contained exactly one record. If so, a body that contains a whole WARC file is not
    /// searched.
    fn is_member_per_record(&self) -> bool {
        self.n_single_members > 0 && !self.any_shared_member && self.records_in_member <= 1
    }

    /// The end of a member is certain only if another member or the end of the file follows. Even that can mislead: a
    /// member cut short by a crash may absorb the following members and end with one of them by chance.
    fn resume_after_member(&mut self, start: u64) -> io::Result<()> {
        let end = self.offset();
        let next = self.members.input.ensure(4)?;
        if !next.is_empty() && !next.starts_with(&GZIP_MAGIC) && !next.starts_with(&ZSTD_MAGIC) {
            return self.search_input(start + 1, false);
        }
        let resume = self.swallowed_members(start, end)?.unwrap_or(end);
        self.members.input.rewind_to(resume)?;
        self.place = ReaderState::Outside;
        Ok(())
    }

    /// Finds a sequence of sound members inside a damaged one that ends exactly at its end, and returns where the
    /// sequence begins. An archive in the record's body has no such sequence, because the record's end follows it.
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
                // A sequence that begins with one of the skipped members does not reach the end either.
                Some(broken) => from = broken + 1,
            }
        }
        Ok(None)
    }

    /// Reads consecutive members: `None` if one ends exactly at `end`, otherwise the offset at which the sequence
    /// breaks.
    fn last_of_row(&mut self, end: u64) -> io::Result<Option<u64>> {
        loop {
            let start = self.offset();
            match self.members.open() {
                Ok(Some(MemberKind::Gzip | MemberKind::Zstd)) if start < end => {}
                Err(MemberError::Io(e)) => return Err(e),
                _ => return Ok(Some(start)),
            }
            loop {
                let n = self.members.window().len();
                self.members.consume(n);
                match self.members.fill() {
                    Ok(FillResult::More) => {}
                    Ok(FillResult::End) if self.offset() == end => return Ok(None),
                    Ok(FillResult::End) => break,
                    Err(MemberError::Io(e)) => return Err(e),
                    Err(_) => return Ok(Some(start)),
                }
            }
        }
    }

    /// Skips the rest of the member; `false` if it was damaged and the search continued elsewhere.
    fn drain_member(&mut self, start: u64) -> io::Result<bool> {
        loop {
            let n = self.members.window().len();
            self.members.consume(n);
            match self.members.fill() {
                Ok(FillResult::More) => {}
                Ok(FillResult::End) => {
                    self.place = ReaderState::Outside;
                    return Ok(true);
                }
                Err(e) => return self.resume_after_failed_scan(start, e).map(|()| false),
            }
        }
    }

    /// Searches the rest of the member for a record's first line.
    fn scan_member(&mut self, start: u64) -> io::Result<()> {
        self.place = ReaderState::Between;
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
                Ok(FillResult::More) => {}
                Ok(FillResult::End) => {
                    let n = self.members.window().len();
                    self.members.consume(n);
                    self.place = ReaderState::Outside;
                    return Ok(());
                }
                Err(e) => return self.resume_after_failed_scan(start, e),
            }
        }
    }

    /// Number of bytes in the window that need not be searched again. An ARC line is recognised only if it is
    /// complete.
    fn n_scanned(&self) -> usize {
        let window = self.members.window();
        let n = window.len().saturating_sub(LOOK_AHEAD);
        if self.header.version() != WarcVersion::Arc {
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

    /// Searches the raw input for a member that begins with a record, or for a plain record.
    fn search_input(&mut self, from: u64, plain_too: bool) -> io::Result<()> {
        self.members.input.rewind_towards(from)?;
        loop {
            let at_line_start = self.members.input.previous() == Some(b'\n');
            let bytes = self.members.input.ensure(LOOK_AHEAD)?;
            if bytes.is_empty() {
                self.place = ReaderState::End;
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
            Ok(Some(MemberKind::Plain)) => {
                self.place = ReaderState::Between;
                return Ok(true);
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(false),
            Err(MemberError::Io(e)) => return Err(e),
            Err(_) => return Ok(false),
        }
        while self.members.window().len() < LOOK_AHEAD {
            match self.members.fill_at_most(GLANCE) {
                Ok(FillResult::More) => {}
                Ok(FillResult::End)
                | Err(MemberError::Torn | MemberError::Corrupt | MemberError::Checksum) => {
                    break;
                }
                Err(MemberError::Io(e)) => return Err(e),
            }
        }
        self.place = ReaderState::Between;
        let window = self.members.window();
        Ok(is_warc_start(window) || is_arc_like(window))
    }
}
