//! `[archive]` and `[warc]` of perennial.toml -> the identity of the folder, and how WARC files are written.

use std::str::FromStr;

use perennial_warc::Compression;

use super::parse_choice;
use super::reader::TableReader;

/// The version of the folder's layout that this program supports.
pub const FORMAT: u32 = 1;

/// Takes half the time of gzip's level 6 and gives smaller files.
const ZSTD_LEVEL: i32 = 3;

/// `[archive]`: the identity of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveTable {
    /// Version of the folder's layout.
    pub format: u32,
    /// Free text, shown in exports.
    pub title: String,
    /// Whether the times of captures are those of a virtual clock, which may be ahead of the real one.
    pub time_lapse: bool,
}

/// `[warc]`: how WARC files are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarcTable {
    /// Prefix of file names.
    pub prefix: String,
    /// A larger file is closed, and a new one begun.
    pub max_file_bytes: u64,
    /// The operator in each file's warcinfo record.
    pub operator: String,
    /// How each record is compressed.
    pub compression: Codec,
    /// 1 (fast) to 9 (small).
    pub gzip_level: u32,
}

/// Compression of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// `.warc.gz`, which every tool reads.
    Gzip,
    /// `.warc.zst`: smaller and faster, but fewer tools read it.
    Zstd,
}

impl FromStr for Codec {
    type Err = String;

    fn from_str(text: &str) -> Result<Codec, String> {
        parse_choice(text, &[("gzip", Codec::Gzip), ("zstd", Codec::Zstd)])
    }
}

impl WarcTable {
    pub fn compression(&self) -> Compression {
        match self.compression {
            Codec::Gzip => Compression::Gzip(self.gzip_level),
            Codec::Zstd => Compression::Zstd(ZSTD_LEVEL),
        }
    }

    pub(super) fn read(reader: &mut TableReader<'_, '_>) -> WarcTable {
        let usual = WarcTable::default();
        WarcTable {
            prefix: reader.parsed("prefix", file_name_start).unwrap_or(usual.prefix),
            max_file_bytes: reader.bytes("max_file_bytes").unwrap_or(usual.max_file_bytes),
            operator: reader.text("operator").unwrap_or(usual.operator),
            compression: reader.parsed("compression", str::parse).unwrap_or(usual.compression),
            gzip_level: reader.whole("gzip_level", 1..=9).unwrap_or(usual.gzip_level),
        }
    }
}

impl ArchiveTable {
    /// [`super::Settings::parse`] refuses later formats before this call.
    pub(super) fn read(reader: &mut TableReader<'_, '_>) -> ArchiveTable {
        let usual = ArchiveTable::default();
        ArchiveTable {
            format: reader.whole("format", 1..=i64::from(FORMAT)).unwrap_or(usual.format),
            title: reader.text("title").unwrap_or(usual.title),
            time_lapse: reader.bool("time_lapse", usual.time_lapse),
        }
    }
}

impl Default for ArchiveTable {
    fn default() -> ArchiveTable {
        ArchiveTable { format: FORMAT, title: String::new(), time_lapse: false }
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

fn file_name_start(text: &str) -> Result<String, String> {
    let is_safe = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    let hint = || "it begins file names: use letters, digits, _ and .".to_owned();
    is_safe.then(|| text.to_owned()).ok_or_else(hint)
}
