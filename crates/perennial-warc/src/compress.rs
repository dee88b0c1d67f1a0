//! The bytes of one record -> one gzip member or zstd frame. The compressor reuses its tables.

use std::io::{self, Write};

use flate2::{Compress, FlushCompress, Status};
use libdeflater::CompressionLvl;
use zstd::stream::raw::{CParameter, Encoder as ZstdEncoder, InBuffer, Operation, OutBuffer};

/// The size of the pieces in which a member is written.
const PIECE: usize = 1 << 20;
const STEP: usize = 64 * 1024;
/// A record up to this size is compressed in one call, which takes half the time of a stream.
const WHOLE: u64 = 4 << 20;

/// How the records of a file are compressed. Each record is compressed separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `.warc`
    None,
    /// `.warc.gz`, level 0 to 9.
    Gzip(u32),
    /// `.warc.zst`, level 1 to 22.
    Zstd(i32),
}

impl Compression {
    /// The file name extension.
    pub fn extension(self) -> &'static str {
        match self {
            Compression::None => "warc",
            Compression::Gzip(_) => "warc.gz",
            Compression::Zstd(_) => "warc.zst",
        }
    }
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::Gzip(6)
    }
}

pub(super) struct Compressor {
    engine: CompressionEngine,
    piece: Vec<u8>,
}

enum CompressionEngine {
    Plain,
    Gzip(Box<GzipCompressor>),
    Zstd(ZstdEncoder<'static>),
}

/// Two implementations of the same format, one for blocks that fit in memory and one for streams.
struct GzipCompressor {
    whole: libdeflater::Compressor,
    /// The bytes of the member if it can be compressed in one call.
    plain: Option<Vec<u8>>,
    stream: Compress,
    crc: crc32fast::Hasher,
    n_in: u32,
    /// A buffer that is allocated once, because flate2 clears the whole capacity of a vector at each call.
    step: Box<[u8]>,
}

impl Compressor {
    pub(super) fn new(compression: Compression) -> io::Result<Compressor> {
        let engine = match compression {
            Compression::None => CompressionEngine::Plain,
            Compression::Gzip(level) => CompressionEngine::Gzip(Box::new(GzipCompressor::new(level.min(9)))),
            Compression::Zstd(level) => {
                let mut encoder = ZstdEncoder::new(level)?;
                encoder.set_parameter(CParameter::ChecksumFlag(true))?;
                CompressionEngine::Zstd(encoder)
            }
        };
        Ok(Compressor { engine, piece: Vec::with_capacity(PIECE + STEP) })
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self.engine, CompressionEngine::Plain)
    }

    /// Begins a member and drops the remains of a failed one.
    pub(super) fn start(&mut self, length: u64) -> io::Result<()> {
        self.piece.clear();
        match &mut self.engine {
            CompressionEngine::Plain => {}
            CompressionEngine::Gzip(gzip) => gzip.start(length, &mut self.piece),
            CompressionEngine::Zstd(encoder) => {
                encoder.reinit()?;
                encoder.set_pledged_src_size(Some(length))?;
            }
        }
        Ok(())
    }

    /// Adds bytes to the member; returns the number of compressed bytes written.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut dyn Write) -> io::Result<u64> {
        match &mut self.engine {
            CompressionEngine::Plain => {
                if self.piece.len() + bytes.len() <= PIECE {
                    self.piece.extend_from_slice(bytes);
                    return Ok(0);
                }
                let n_held = hand_on(&mut self.piece, out)?;
                out.write_all(bytes)?;
                Ok(n_held + bytes.len() as u64)
            }
            CompressionEngine::Gzip(gzip) => gzip.push(bytes, &mut self.piece, out),
            CompressionEngine::Zstd(encoder) => run_zstd(encoder, bytes, &mut self.piece, out),
        }
    }

    /// Ends the member; returns the number of compressed bytes written.
    pub(super) fn finish(&mut self, out: &mut dyn Write) -> io::Result<u64> {
        let mut n_out = 0;
        match &mut self.engine {
            CompressionEngine::Plain => {}
            CompressionEngine::Gzip(gzip) => n_out += gzip.finish(&mut self.piece, out)?,
            CompressionEngine::Zstd(encoder) => n_out += finish_zstd(encoder, &mut self.piece, out)?,
        }
        Ok(n_out + hand_on(&mut self.piece, out)?)
    }
}

impl GzipCompressor {
    fn new(level: u32) -> GzipCompressor {
        let whole_level = CompressionLvl::new(level as i32).unwrap_or_default();
        GzipCompressor {
            whole: libdeflater::Compressor::new(whole_level),
            plain: None,
            stream: Compress::new(flate2::Compression::new(level), false),
            crc: crc32fast::Hasher::new(),
            n_in: 0,
            step: vec![0; STEP].into_boxed_slice(),
        }
    }

    fn start(&mut self, length: u64, piece: &mut Vec<u8>) {
        let mut plain = self.plain.take().unwrap_or_default();
        plain.clear();
        if length <= WHOLE {
            self.plain = Some(plain);
            return;
        }
        self.stream.reset();
        self.crc = crc32fast::Hasher::new();
        self.n_in = 0;
        // The header has no name and no time, so the same record always gives the same bytes.
        piece.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    }

    fn push(&mut self, bytes: &[u8], piece: &mut Vec<u8>, out: &mut dyn Write) -> io::Result<u64> {
        if let Some(plain) = &mut self.plain {
            plain.extend_from_slice(bytes);
            return Ok(0);
        }
        self.crc.update(bytes);
        self.n_in = self.n_in.wrapping_add(bytes.len() as u32);
        run_deflate(&mut self.stream, bytes, FlushCompress::None, &mut self.step, piece, out)
    }

    fn finish(&mut self, piece: &mut Vec<u8>, out: &mut dyn Write) -> io::Result<u64> {
        if let Some(plain) = &self.plain {
            piece.resize(self.whole.gzip_compress_bound(plain.len()), 0);
            let n = self.whole.gzip_compress(plain, piece).map_err(io::Error::other)?;
            piece.truncate(n);
            return Ok(0);
        }
        let n_out = run_deflate(&mut self.stream, &[], FlushCompress::Finish, &mut self.step, piece, out)?;
        let crc = std::mem::take(&mut self.crc).finalize();
        piece.extend_from_slice(&crc.to_le_bytes());
        piece.extend_from_slice(&self.n_in.to_le_bytes());
        Ok(n_out)
    }
}

fn hand_on(piece: &mut Vec<u8>, out: &mut dyn Write) -> io::Result<u64> {
    out.write_all(piece)?;
    let n = piece.len() as u64;
    piece.clear();
    Ok(n)
}

fn hand_on_if_full(piece: &mut Vec<u8>, out: &mut dyn Write) -> io::Result<u64> {
    if piece.len() < PIECE {
        piece.reserve(STEP);
        return Ok(0);
    }
    hand_on(piece, out)
}

fn run_deflate(
    deflate: &mut Compress,
    mut bytes: &[u8],
    flush: FlushCompress,
    step: &mut [u8],
    piece: &mut Vec<u8>,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let mut n_out = 0;
    loop {
        n_out += hand_on_if_full(piece, out)?;
        let (n_in_before, n_out_before) = (deflate.total_in(), deflate.total_out());
        let status = deflate.compress(bytes, step, flush).map_err(io::Error::other)?;
        bytes = &bytes[(deflate.total_in() - n_in_before) as usize..];
        let n_made = (deflate.total_out() - n_out_before) as usize;
        piece.extend_from_slice(&step[..n_made]);
        let done = match flush {
            FlushCompress::Finish => status == Status::StreamEnd,
            _ => bytes.is_empty() && n_made < step.len(),
        };
        if done {
            return Ok(n_out);
        }
    }
}

fn run_zstd(
    encoder: &mut ZstdEncoder<'static>,
    bytes: &[u8],
    piece: &mut Vec<u8>,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let mut n_out = 0;
    let mut input = InBuffer::around(bytes);
    while input.pos() < bytes.len() {
        n_out += hand_on_if_full(piece, out)?;
        let from = piece.len();
        encoder.run(&mut input, &mut OutBuffer::around_pos(piece, from))?;
    }
    Ok(n_out)
}

fn finish_zstd(
    encoder: &mut ZstdEncoder<'static>,
    piece: &mut Vec<u8>,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let mut n_out = 0;
    loop {
        n_out += hand_on_if_full(piece, out)?;
        let from = piece.len();
        if encoder.finish(&mut OutBuffer::around_pos(piece, from), true)? == 0 {
            return Ok(n_out);
        }
    }
}
