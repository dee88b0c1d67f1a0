//! Reads a history from a plain or compressed file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use perennial_core::directory::SiteHistory;

use super::history::parse_history;

/// Decompression stops here, because a small file can expand without end.
const MOST_BYTES: u64 = 2 << 30;

/// Reads a file of versions, plain or compressed with gzip, zstd or xz.
pub fn read_history(path: &Path) -> anyhow::Result<SiteHistory> {
    let mut file = BufReader::new(File::open(path)?);
    let name = path.file_name().map_or_else(|| "site".into(), |name| name.to_string_lossy());
    let name = name.split(".tsv").next().unwrap_or(&name).to_owned();
    let start = file.fill_buf()?;
    let packing = [(&b"\xfd7zXZ\0"[..], 'x'), (&b"\x1f\x8b"[..], 'g'), (&b"\x28\xb5\x2f\xfd"[..], 'z')];
    let packing = packing.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, kind)| *kind);
    let history = match packing {
        Some('x') => parse_history(&name, unpacked_xz(&mut file)?.as_slice()),
        Some('g') => parse_history(&name, bounded(flate2::bufread::MultiGzDecoder::new(file))),
        Some(_) => parse_history(&name, bounded(zstd::stream::read::Decoder::with_buffer(file)?)),
        None => parse_history(&name, bounded(file)),
    };
    Ok(history?)
}

fn bounded(input: impl Read) -> impl BufRead {
    BufReader::new(input.take(MOST_BYTES))
}

fn unpacked_xz(file: &mut impl BufRead) -> anyhow::Result<Vec<u8>> {
    let mut bytes = BoundedBuffer(Vec::new());
    lzma_rs::xz_decompress(file, &mut bytes).map_err(|e| {
        anyhow::anyhow!("the xz file cannot be unpacked: {e:?}; unpack it with `xz -d` and try again")
    })?;
    Ok(bytes.0)
}

/// A buffer with a maximum length.
struct BoundedBuffer(Vec<u8>);

impl Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() as u64 + bytes.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("the unpacked file is larger than 2 GiB"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
