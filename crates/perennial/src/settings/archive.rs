//! `[archive]` and `[warc]` of perennial.toml -> what the folder is, and how WARC files are written.

use perennial_core::warc::Compression;
use serde::Deserialize;

/// The version of the folder's layout that this program reads and writes.
pub const FORMAT: u32 = 1;

/// Half the time of gzip's level 6 and smaller.
const ZSTD_LEVEL: i32 = 3;

/// `[archive]`: what this folder is.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct ArchiveTable {
    /// Version of the folder's layout.
    pub format: u32,
    /// Shown in exports; free text.
    pub title: String,
}

/// `[warc]`: how WARC files are written.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct WarcTable {
    /// First part of file names.
    pub prefix: String,
    /// A file that has grown beyond this is closed and the next begun.
    pub max_file_bytes: u64,
    /// Goes into each file's warcinfo record.
    pub operator: String,
    /// How records are compressed, each by itself.
    pub compression: Codec,
    /// 1 (fast) to 9 (small).
    pub gzip_level: u32,
}

/// What a record is compressed with.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Codec {
    /// `.warc.gz`, which every tool reads.
    Gzip,
    /// `.warc.zst`: smaller and faster, but read by fewer tools.
    Zstd,
}

impl WarcTable {
    /// How records are compressed.
    pub fn compression(&self) -> Compression {
        match self.compression {
            Codec::Gzip => Compression::Gzip(self.gzip_level),
            Codec::Zstd => Compression::Zstd(ZSTD_LEVEL),
        }
    }
}

impl Default for ArchiveTable {
    fn default() -> ArchiveTable {
        ArchiveTable { format: FORMAT, title: String::new() }
    }
}

impl Default for WarcTable {
    fn default() -> WarcTable {
        WarcTable {
            prefix: "perennial".into(),
            max_file_bytes: 1_000_000_000,
            operator: String::new(),
            compression: Codec::Gzip,
            gzip_level: 2,
        }
    }
}
