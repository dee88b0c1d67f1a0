//! A chunked body -> its bytes. A body that only claims to be chunked is returned unchanged.

use std::io::{self, BufRead, Read};

use super::{BUFFER, IncompleteCause, cut, read_some};

/// The longest size line of a chunk.
const MAX_SIZE_LINE: usize = 1024;

/// Joins the chunks of `Transfer-Encoding: chunked` (RFC 9112, section 7.1).
pub(super) struct ChunkedReader<R> {
    source: io::BufReader<R>,
    state: ChunkPosition,
    /// The part of the size line that was read.
    line: Vec<u8>,
    any_chunk: bool,
}

#[derive(Clone, Copy)]
enum ChunkPosition {
    /// Before a size line; with `after_data`, a line end must come first.
    Size {
        after_data: bool,
    },
    Data(u64),
    Done,
    /// The body was never chunked. The invalid size line is returned first, then the rest.
    Verbatim {
        n_given: usize,
    },
}

impl<R: Read> ChunkedReader<R> {
    pub(super) fn new(source: R) -> ChunkedReader<R> {
        let state = ChunkPosition::Size { after_data: false };
        ChunkedReader {
            source: io::BufReader::with_capacity(BUFFER, source),
            state,
            line: Vec::new(),
            any_chunk: false,
        }
    }

    fn read_size(&mut self, after_data: bool) -> io::Result<()> {
        self.line.clear();
        if after_data {
            (&mut self.source).take(2).read_until(b'\n', &mut self.line)?;
            if !matches!(&self.line[..], b"\r\n" | b"\n") {
                // A single carriage return is the first half of a line end.
                let is_torn = self.line.is_empty() || self.line == b"\r";
                return Err(cut(
                    "chunked",
                    if is_torn { IncompleteCause::Ended } else { IncompleteCause::Corrupt },
                ));
            }
            self.line.clear();
        }
        (&mut self.source).take(MAX_SIZE_LINE as u64).read_until(b'\n', &mut self.line)?;
        self.state = match parse_size(&self.line) {
            Some(0) => ChunkPosition::Done,
            Some(size) => {
                self.any_chunk = true;
                ChunkPosition::Data(size)
            }
            None if !self.any_chunk => ChunkPosition::Verbatim { n_given: 0 },
            None if !self.line.ends_with(b"\n") && self.line.len() < MAX_SIZE_LINE => {
                return Err(cut("chunked", IncompleteCause::Ended));
            }
            None => return Err(cut("chunked", IncompleteCause::Corrupt)),
        };
        Ok(())
    }
}

impl<R: Read> Read for ChunkedReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state {
                ChunkPosition::Done => return Ok(0),
                ChunkPosition::Size { after_data } => self.read_size(after_data)?,
                ChunkPosition::Verbatim { n_given } if n_given < self.line.len() => {
                    let n = out.len().min(self.line.len() - n_given);
                    out[..n].copy_from_slice(&self.line[n_given..n_given + n]);
                    self.state = ChunkPosition::Verbatim { n_given: n_given + n };
                    return Ok(n);
                }
                ChunkPosition::Verbatim { .. } => return read_some(&mut self.source, out),
                ChunkPosition::Data(0) => self.state = ChunkPosition::Size { after_data: true },
                ChunkPosition::Data(left) => {
                    let want = (out.len() as u64).min(left) as usize;
                    let n = read_some(&mut self.source, &mut out[..want])?;
                    if n == 0 {
                        return Err(cut("chunked", IncompleteCause::Ended));
                    }
                    self.state = ChunkPosition::Data(left - n as u64);
                    return Ok(n);
                }
            }
        }
    }
}

/// Parses hexadecimal digits, an optional extension after a semicolon, and a line end.
fn parse_size(line: &[u8]) -> Option<u64> {
    let line = line.strip_suffix(b"\n")?;
    let digits = line.split(|&b| b == b';').next()?.trim_ascii();
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
