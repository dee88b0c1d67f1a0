//! The bytes of one record -> one gzip member or zstd frame, reusing the compressor's tables.

use std::io::{self, Write};

use flate2::{Compress, FlushCompress, Status};
use zstd::stream::raw::{CParameter, Encoder as ZstdEncoder, InBuffer, Operation, OutBuffer};

/// A member is handed on in pieces of this size; smaller ones in one piece.
const PIECE: usize = 1 << 20;
const STEP: usize = 64 * 1024;

/// How the records of a file are compressed, each by itself.
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
    /// What a file so compressed is called at its end.
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
    engine: Engine,
    piece: Vec<u8>,
}

enum Engine {
    Plain,
    /// The buffer is made once: flate2 clears the whole room that a vector offers at each call.
    Gzip {
        deflate: Compress,
        crc: crc32fast::Hasher,
        n_in: u32,
        step: Box<[u8]>,
    },
    Zstd(ZstdEncoder<'static>),
}

impl Compressor {
    pub(super) fn new(compression: Compression) -> io::Result<Compressor> {
        let engine = match compression {
            Compression::None => Engine::Plain,
            Compression::Gzip(level) => Engine::Gzip {
                deflate: Compress::new(flate2::Compression::new(level.min(9)), false),
                crc: crc32fast::Hasher::new(),
                n_in: 0,
                step: vec![0; STEP].into_boxed_slice(),
            },
            Compression::Zstd(level) => {
                let mut encoder = ZstdEncoder::new(level)?;
                encoder.set_parameter(CParameter::ChecksumFlag(true))?;
                Engine::Zstd(encoder)
            }
        };
        Ok(Compressor { engine, piece: Vec::with_capacity(PIECE + STEP) })
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self.engine, Engine::Plain)
    }

    /// Begins a member; what a failed one left behind is dropped.
    pub(super) fn start(&mut self, length: u64) -> io::Result<()> {
        self.piece.clear();
        match &mut self.engine {
            Engine::Plain => {}
            Engine::Gzip { deflate, crc, n_in, .. } => {
                deflate.reset();
                *crc = crc32fast::Hasher::new();
                *n_in = 0;
                // No name, no time: the same record gives the same bytes.
                self.piece.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
            }
            Engine::Zstd(encoder) => {
                encoder.reinit()?;
                encoder.set_pledged_src_size(Some(length))?;
            }
        }
        Ok(())
    }

    /// Adds bytes to the member; returns how many compressed bytes went out.
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut dyn Write) -> io::Result<u64> {
        match &mut self.engine {
            Engine::Plain => {
                if self.piece.len() + bytes.len() <= PIECE {
                    self.piece.extend_from_slice(bytes);
                    return Ok(0);
                }
                let n_held = hand_on(&mut self.piece, out)?;
                out.write_all(bytes)?;
                Ok(n_held + bytes.len() as u64)
            }
            Engine::Gzip { deflate, crc, n_in, step } => {
                crc.update(bytes);
                *n_in = n_in.wrapping_add(bytes.len() as u32);
                run_deflate(deflate, bytes, FlushCompress::None, step, &mut self.piece, out)
            }
            Engine::Zstd(encoder) => run_zstd(encoder, bytes, &mut self.piece, out),
        }
    }

    /// Ends the member; returns how many compressed bytes went out.
    pub(super) fn finish(&mut self, out: &mut dyn Write) -> io::Result<u64> {
        let mut n_out = 0;
        match &mut self.engine {
            Engine::Plain => {}
            Engine::Gzip { deflate, crc, n_in, step } => {
                n_out += run_deflate(deflate, &[], FlushCompress::Finish, step, &mut self.piece, out)?;
                let crc = std::mem::take(crc).finalize();
                self.piece.extend_from_slice(&crc.to_le_bytes());
                self.piece.extend_from_slice(&n_in.to_le_bytes());
            }
            Engine::Zstd(encoder) => n_out += finish_zstd(encoder, &mut self.piece, out)?,
        }
        Ok(n_out + hand_on(&mut self.piece, out)?)
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
