//! Any `Read` -> a window of bytes at known offsets. The window keeps some consumed bytes, so a reader can go back
//! after damage.

use std::io::{self, Read, Seek, SeekFrom};

/// Number of consumed bytes kept for rereading if the source cannot seek. A deflate stream with a flipped bit stops
/// after a few kilobytes, so this is far more than needed in practice.
const HISTORY: usize = 128 * 1024;
/// The window and the kept bytes together fit into a core's cache, which makes copying from the file twice as fast.
const CHUNK: usize = 256 * 1024;
const MIN_READ: usize = 64 * 1024;
/// Size of the first read. A caller that wants one record needs few of the bytes after it.
const FIRST_READ: usize = 16 * 1024;

/// Rereading is limited to this many times the bytes read so far, plus a constant. Hostile input, in which every
/// record claims to contain the rest of the file, therefore takes linear time.
const RESCAN_FACTOR: u64 = 4;
const RESCAN_START: u64 = 64 << 20;

pub(super) struct InputWindow<R> {
    source: R,
    seek: Option<fn(&mut R, u64) -> io::Result<()>>,
    buffer: Vec<u8>,
    /// Offset in the source of `buffer[0]`.
    base: u64,
    pos: usize,
    end: usize,
    furthest: u64,
    rescanned: u64,
}

impl<R: Read> InputWindow<R> {
    pub(super) fn new(source: R) -> InputWindow<R> {
        InputWindow {
            source,
            seek: None,
            buffer: Vec::new(),
            base: 0,
            pos: 0,
            end: 0,
            furthest: 0,
            rescanned: 0,
        }
    }

    /// Creates a window over a source that can seek. Offsets are those of the source.
    pub(super) fn seekable(mut source: R) -> io::Result<InputWindow<R>>
    where
        R: Seek,
    {
        let base = source.stream_position()?;
        let seek = |source: &mut R, offset: u64| source.seek(SeekFrom::Start(offset)).map(drop);
        Ok(InputWindow { seek: Some(seek), base, furthest: base, ..InputWindow::new(source) })
    }

    pub(super) fn into_inner(self) -> R {
        self.source
    }

    /// Offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.base + self.pos as u64
    }

    /// Unread bytes in the window; empty before the first [`InputWindow::fill`].
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.pos..self.end]
    }

    /// The last consumed byte, if it is still in the window.
    pub(super) fn previous(&self) -> Option<u8> {
        self.pos.checked_sub(1).map(|at| self.buffer[at])
    }

    pub(super) fn consume(&mut self, n: usize) {
        self.pos = (self.pos + n).min(self.end);
    }

    /// Reads more bytes into the window; `false` at the end of the source.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        if self.buffer.len() - self.end < MIN_READ.min(self.buffer.len() / 2).max(1) {
            self.make_room();
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(n) => {
                    self.end += n;
                    self.furthest = self.furthest.max(self.base + self.end as u64);
                    return Ok(n > 0);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn make_room(&mut self) {
        let drop = self.pos.saturating_sub(HISTORY);
        self.buffer.copy_within(drop..self.end, 0);
        self.base += drop as u64;
        self.pos -= drop;
        self.end -= drop;
        let wanted = match self.buffer.len() {
            0 => FIRST_READ,
            length => (4 * length).clamp(self.end + MIN_READ, (self.end + MIN_READ).max(HISTORY + CHUNK)),
        };
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
    }

    /// Makes at least `n` bytes available unless the source ends earlier.
    pub(super) fn ensure(&mut self, n: usize) -> io::Result<&[u8]> {
        while self.end - self.pos < n && self.fill()? {}
        Ok(self.bytes())
    }

    /// Goes back to an earlier offset, within the window or by seeking. Returns `false` and keeps the position if that
    /// is impossible or the limit on rereading is reached.
    pub(super) fn rewind_to(&mut self, offset: u64) -> io::Result<bool> {
        if !self.spend(self.offset().saturating_sub(offset)) {
            return Ok(false);
        }
        let in_window = (self.base..=self.base + self.end as u64).contains(&offset);
        if in_window {
            self.pos = (offset - self.base) as usize;
        } else if let Some(seek) = self.seek {
            seek(&mut self.source, offset)?;
            (self.base, self.pos, self.end) = (offset, 0, 0);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Charges bytes to the limit on rereading; `false` if it is reached.
    pub(super) fn spend(&mut self, n_bytes: u64) -> bool {
        let allowance = RESCAN_START.saturating_add(self.furthest.saturating_mul(RESCAN_FACTOR));
        let spent = self.rescanned.saturating_add(n_bytes);
        if spent <= allowance {
            self.rescanned = spent;
        }
        spent <= allowance
    }

    /// Like [`InputWindow::rewind_to`], but goes back to the oldest byte in the window if the offset is out of reach.
    pub(super) fn rewind_towards(&mut self, offset: u64) -> io::Result<()> {
        if !self.rewind_to(offset)? && self.base > offset {
            self.rewind_to(self.base)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_order_and_history_stays() {
        let data: Vec<u8> = (0..3_000_000u32).map(|i| (i % 251) as u8).collect();
        let mut input = InputWindow::new(&data[..]);
        let mut seen = Vec::new();
        loop {
            if input.bytes().is_empty() && !input.fill().unwrap() {
                break;
            }
            seen.extend_from_slice(input.bytes());
            input.consume(usize::MAX / 2);
            assert_eq!(input.offset(), seen.len() as u64);
        }
        assert_eq!(seen, data);
        let back = data.len() as u64 - 100_000;
        assert!(input.rewind_to(back).unwrap());
        assert_eq!(input.bytes(), &data[back as usize..]);
        assert!(!input.rewind_to(0).unwrap());
        assert_eq!(input.offset(), back);
    }

    #[test]
    fn who_wants_little_reads_little() {
        let data = vec![7u8; 2_000_000];
        let mut cursor = io::Cursor::new(&data);
        let mut input = InputWindow::seekable(&mut cursor).unwrap();
        assert_eq!(input.ensure(500).unwrap().len(), FIRST_READ);
        assert_eq!(input.ensure(FIRST_READ + 1).unwrap()[..3], [7; 3]);
        let n_available = input.ensure(1_000_000).unwrap().len();
        assert!((1_000_000..1_000_000 + HISTORY + CHUNK).contains(&n_available), "{n_available}");
    }

    #[test]
    fn seekable_sources_go_back_any_way() {
        let data = vec![7u8; 2_000_000];
        let mut cursor = io::Cursor::new(&data);
        cursor.set_position(10);
        let mut input = InputWindow::seekable(cursor).unwrap();
        assert_eq!(input.offset(), 10);
        while input.fill().unwrap() {
            let n = input.bytes().len();
            input.consume(n);
        }
        assert!(input.rewind_to(10).unwrap());
        assert_eq!(input.offset(), 10);
        assert_eq!(input.ensure(5).unwrap()[..5], [7; 5]);
    }
}
