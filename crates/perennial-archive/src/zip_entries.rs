//! The entries of a zip file, all of them: `zip` gives only the last of several with one name. Plain `zip -r` deflates
//! WARC files, which WACZ does not allow; they are read too.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};

use flate2::CrcReader;
use flate2::read::DeflateDecoder;

/// An entry that unpacks to more than this must not grow more than [`MAX_GROWTH`] times, or it would fill the disk.
const MAX_FREE_BYTES: u64 = 64 << 20;
/// Text of the web shrinks to a fifth or a twentieth; deflate can reach a thousandth.
const MAX_GROWTH: u64 = 200;

/// An entry of the central directory.
#[derive(Clone, Debug)]
pub(super) struct ZipEntry {
    /// Its path, not to be trusted.
    pub name: String,
    method: u16,
    is_encrypted: bool,
    crc: u32,
    packed_bytes: u64,
    bytes: u64,
    header_offset: u64,
}

const STORED: u16 = 0;
const DEFLATED: u16 = 8;
const ENTRY: &[u8; 4] = b"PK\x01\x02";
const LOCAL_HEADER: &[u8; 4] = b"PK\x03\x04";

/// Lists all entries in the order of the directory.
pub(super) fn entries(file: &File) -> Result<Vec<ZipEntry>, String> {
    let words = |error: io::Error| error.to_string();
    let zip = zip::ZipArchive::new(BufReader::new(file.try_clone().map_err(words)?));
    let zip = zip.map_err(|error| error.to_string())?;
    let (start, shift) = (zip.central_directory_start(), zip.offset());
    let mut directory = BufReader::new(file.try_clone().map_err(words)?);
    directory.seek(SeekFrom::Start(start)).map_err(words)?;
    let mut entries = Vec::new();
    while let Some(mut entry) = read_entry(&mut directory).map_err(words)? {
        entry.header_offset += shift;
        entries.push(entry);
    }
    // Otherwise a small file could have the same content in thousands of entries.
    let packed_bytes = entries.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.packed_bytes));
    if packed_bytes > file.metadata().map_err(words)?.len() {
        return Err("its entries overlap: import it unpacked, if you trust it".to_owned());
    }
    match entries.len() >= zip.len() {
        true => Ok(entries),
        false => {
            Err(format!("its directory has {} entries, of which {} are readable", zip.len(), entries.len()))
        }
    }
}

/// The next entry of a directory; `None` at its end.
fn read_entry(directory: &mut impl Read) -> io::Result<Option<ZipEntry>> {
    let mut head = [0; 46];
    if directory.read_exact(&mut head).is_err() || !head.starts_with(ENTRY) {
        return Ok(None);
    }
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let mut name = vec![0; usize::from(half(28))];
    let mut extra = vec![0; usize::from(half(30))];
    let mut comment = vec![0; usize::from(half(32))];
    for part in [&mut name, &mut extra, &mut comment] {
        directory.read_exact(part)?;
    }
    let mut long = long_numbers(&extra).into_iter();
    let mut number = |short: u32| match short {
        u32::MAX => long.next().unwrap_or(u64::MAX),
        short => u64::from(short),
    };
    // The long numbers are in this order, and only those whose short form is full.
    let (bytes, packed_bytes, header_offset) = (number(word(24)), number(word(20)), number(word(42)));
    Ok(Some(ZipEntry {
        name: String::from_utf8_lossy(&name).into_owned(),
        method: half(10),
        is_encrypted: half(8) & 1 == 1,
        crc: word(16),
        packed_bytes,
        bytes,
        header_offset,
    }))
}

/// The numbers of 64 bits in an entry's extra fields.
fn long_numbers(mut extra: &[u8]) -> Vec<u64> {
    const ZIP64: [u8; 2] = [1, 0];
    while let Some((head, rest)) = extra.split_at_checked(4) {
        let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let Some((field, after)) = rest.split_at_checked(length) else { break };
        if head[..2] == ZIP64 {
            return field.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
        }
        extra = after;
    }
    Vec::new()
}

impl ZipEntry {
    /// Opens the content. Reading fails at its end if it contradicts the entry's checksum or length.
    pub(super) fn open(&self, file: &File) -> io::Result<EntryReader> {
        let unreadable = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut file = BufReader::new(file.try_clone()?);
        file.seek(SeekFrom::Start(self.header_offset))?;
        let mut head = [0; 30];
        file.read_exact(&mut head)?;
        if !head.starts_with(LOCAL_HEADER) {
            return Err(unreadable("its entry is not where the zip file's directory says"));
        }
        if self.is_encrypted {
            return Err(unreadable("it is encrypted"));
        }
        if self.bytes > MAX_FREE_BYTES && self.bytes / MAX_GROWTH > self.packed_bytes {
            return Err(unreadable(&format!(
                "it would unpack to {} bytes, more than {MAX_GROWTH} times its size: import it unpacked, if you trust it",
                self.bytes
            )));
        }
        let skipped = u16::from_le_bytes([head[26], head[27]]) as i64
            + i64::from(u16::from_le_bytes([head[28], head[29]]));
        file.seek_relative(skipped)?;
        let packed = file.take(self.packed_bytes);
        let content = match self.method {
            STORED => Content::Stored(packed),
            DEFLATED => Content::Deflated(DeflateDecoder::new(packed)),
            other => {
                return Err(unreadable(&format!(
                    "it is compressed by method {other}; only 0 and 8 are read"
                )));
            }
        };
        Ok(EntryReader { content: CrcReader::new(content), crc: self.crc, bytes: self.bytes, n_read: 0 })
    }
}

enum Content {
    Stored(Take<BufReader<File>>),
    Deflated(DeflateDecoder<Take<BufReader<File>>>),
}

impl Read for Content {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Content::Stored(content) => content.read(out),
            Content::Deflated(content) => content.read(out),
        }
    }
}

/// The content of an entry.
pub(super) struct EntryReader {
    content: CrcReader<Content>,
    crc: u32,
    bytes: u64,
    n_read: u64,
}

impl Read for EntryReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.content.read(out)?;
        self.n_read += n as u64;
        let is_wrong = match n {
            0 if !out.is_empty() => self.n_read != self.bytes || self.content.crc().sum() != self.crc,
            // More than the entry announces would fill the disk.
            _ => self.n_read > self.bytes,
        };
        match is_wrong {
            true => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it contradicts the checksum or length of its zip entry",
            )),
            false => Ok(n),
        }
    }
}
