//! Finds the end of the head and of the body in received bytes (RFC 9112, 6), without I/O.

use perennial_warc::http::HttpHead;

/// The position after the blank line that ends a head. The first `searched` bytes contain no end.
pub(super) fn find_head_end(bytes: &[u8], searched: usize) -> Option<usize> {
    let mut from = searched.saturating_sub(3);
    while let Some(at) = bytes.get(from..)?.iter().position(|&b| b == b'\n') {
        let next = from + at + 1;
        match bytes.get(next..) {
            Some([b'\n', ..]) => return Some(next + 1),
            Some([b'\r', b'\n', ..]) => return Some(next + 2),
            _ => from = next,
        }
    }
    None
}

/// How the end of a body is determined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Framing {
    /// By the number of remaining bytes.
    Length(u64),
    /// By chunks, each with its size before it.
    Chunked(ChunkState),
    /// By the end of the connection.
    UntilClose,
}

/// The state of the chunked framing at the next byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkState {
    /// In the size: its value so far, and whether there was a digit.
    Size(u64, bool),
    /// After the size, before the line end.
    Extension(u64),
    /// In the data: the number of remaining bytes.
    Data(u64),
    /// At the line end after the data.
    DataEnd,
    /// In the trailer; whether its current line is empty so far.
    Trailer(bool),
    Done,
}

/// The bytes are not in chunked coding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("broken chunk")]
pub struct BrokenChunk;

impl Framing {
    /// The framing according to the head. Transfer-Encoding overrides Content-Length; contradictory lengths are
    /// ignored.
    pub fn of(head: &HttpHead) -> Framing {
        if matches!(head.status(), Some(204 | 304)) {
            return Framing::Length(0);
        }
        let (_, transfer) = head.codings();
        if transfer.last().is_some_and(|coding| coding == "chunked") {
            return Framing::Chunked(ChunkState::Size(0, false));
        }
        if !transfer.is_empty() {
            return Framing::UntilClose;
        }
        let mut lengths = head.get_all("Content-Length").map(|value| value.trim().parse::<u64>().ok());
        match lengths.next() {
            Some(Some(first)) if lengths.all(|other| other == Some(first)) => Framing::Length(first),
            _ => Framing::UntilClose,
        }
    }

    /// How many of `bytes` belong to the body. Advances the framing past them.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, BrokenChunk> {
        match self {
            Framing::UntilClose => Ok(bytes.len()),
            Framing::Length(rest) => {
                let taken = (*rest).min(bytes.len() as u64);
                *rest -= taken;
                Ok(taken as usize)
            }
            Framing::Chunked(chunk) => take_chunks(chunk, bytes),
        }
    }

    pub fn is_done(&self) -> bool {
        matches!(self, Framing::Length(0) | Framing::Chunked(ChunkState::Done))
    }
}

fn take_chunks(chunk: &mut ChunkState, bytes: &[u8]) -> Result<usize, BrokenChunk> {
    let mut at = 0;
    while at < bytes.len() && *chunk != ChunkState::Done {
        if let ChunkState::Data(rest) = *chunk {
            let taken = rest.min((bytes.len() - at) as u64);
            at += taken as usize;
            *chunk = if taken == rest { ChunkState::DataEnd } else { ChunkState::Data(rest - taken) };
        } else {
            *chunk = chunk.after(bytes[at])?;
            at += 1;
        }
    }
    Ok(at)
}

impl ChunkState {
    fn after(self, byte: u8) -> Result<ChunkState, BrokenChunk> {
        match (self, byte) {
            (ChunkState::Size(size, true), b'\n') => Ok(ChunkState::data(size)),
            (ChunkState::Size(size, true), b'\r' | b';' | b' ' | b'\t') => Ok(ChunkState::Extension(size)),
            (ChunkState::Size(size, _), byte) => {
                let digit = (byte as char).to_digit(16).ok_or(BrokenChunk)?;
                let longer = size.checked_mul(16).ok_or(BrokenChunk)? + u64::from(digit);
                Ok(ChunkState::Size(longer, true))
            }
            (ChunkState::Extension(size), b'\n') => Ok(ChunkState::data(size)),
            (ChunkState::Extension(size), _) => Ok(ChunkState::Extension(size)),
            (ChunkState::DataEnd, b'\r') => Ok(ChunkState::DataEnd),
            (ChunkState::DataEnd, b'\n') => Ok(ChunkState::Size(0, false)),
            (ChunkState::DataEnd, _) => Err(BrokenChunk),
            (ChunkState::Trailer(true), b'\n') => Ok(ChunkState::Done),
            (ChunkState::Trailer(empty), b'\r') => Ok(ChunkState::Trailer(empty)),
            (ChunkState::Trailer(_), byte) => Ok(ChunkState::Trailer(byte == b'\n')),
            (ChunkState::Data(_) | ChunkState::Done, _) => Ok(self),
        }
    }

    fn data(size: u64) -> ChunkState {
        if size == 0 { ChunkState::Trailer(true) } else { ChunkState::Data(size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framing(head: &str) -> Framing {
        Framing::of(&HttpHead::parse(head.replace('\n', "\r\n").as_bytes()))
    }

    #[test]
    fn heads_say_how_bodies_end() {
        assert_eq!(framing("HTTP/1.1 200 OK\nContent-Length: 5\n\n"), Framing::Length(5));
        assert_eq!(framing("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 5\n\n"), Framing::Length(5));
        assert_eq!(framing("HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6\n\n"), Framing::UntilClose);
        assert_eq!(framing("HTTP/1.1 200 OK\nContent-Length: -5\n\n"), Framing::UntilClose);
        assert_eq!(framing("HTTP/1.1 304 x\nContent-Length: 5\n\n"), Framing::Length(0));
        assert_eq!(framing("HTTP/1.0 200 OK\n\n"), Framing::UntilClose);
        let both = framing("HTTP/1.1 200 OK\nContent-Length: 5\nTransfer-Encoding: gzip, Chunked\n\n");
        assert!(matches!(both, Framing::Chunked(_)));
    }

    #[test]
    fn head_ends_are_found_whatever_the_line_ends() {
        assert_eq!(find_head_end(b"HTTP/1.1 200\r\nA: b\r\n\r\nbody", 0), Some(22));
        assert_eq!(find_head_end(b"HTTP/1.1 200\nA: b\n\nbody", 0), Some(19));
        assert_eq!(find_head_end(b"HTTP/1.1 200\r\nA: b\r\n", 0), None);
    }

    fn chunks(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            bytes.extend_from_slice(format!("{:X};x=y\r\n", part.len()).as_bytes());
            bytes.extend_from_slice(part);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\nTrailer: t\r\n\r\n");
        bytes
    }

    #[test]
    fn broken_chunks_are_noticed() {
        for bytes in [&b"zz\r\n"[..], b"3\r\nabcd\r\n", b"\r\n", b"fffffffffffffffff\r\n"] {
            assert_eq!(
                Framing::Chunked(ChunkState::Size(0, false)).take(bytes),
                Err(BrokenChunk),
                "{bytes:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn chunks_end_where_they_end_however_they_arrive(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6),
            steps in proptest::collection::vec(1usize..20, 1..50),
        ) {
            let whole = chunks(&parts);
            let mut stream = whole.clone();
            stream.extend_from_slice(b"HTTP/1.1 next");
            let mut framing = Framing::Chunked(ChunkState::Size(0, false));
            let (mut at, mut steps) = (0, steps.into_iter().cycle());
            while !framing.is_done() {
                let end = (at + steps.next().unwrap()).min(stream.len());
                at += framing.take(&stream[at..end]).unwrap();
            }
            prop_assert_eq!(at, whole.len());
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(taken) = Framing::Chunked(ChunkState::Size(0, false)).take(&bytes) {
                prop_assert!(taken <= bytes.len());
            }
        }
    }
}
