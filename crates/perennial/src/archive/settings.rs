//! `perennial.toml`: what the user decides. Read with defaults, edited with comments kept.
//!
//! Each part of the program reads its own tables from the same file; unknown keys are left alone, so an
//! archive written by a later version still opens.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use perennial_core::warc::Compression;
use serde::Deserialize;
use toml_edit::DocumentMut;

use super::write_whole;

/// What `perennial init` writes.
pub const TEMPLATE: &str = include_str!("template.toml");

/// The version of the folder's layout that this program reads and writes.
pub const FORMAT: u32 = 1;

/// Half the time of gzip's level 6 and smaller.
const ZSTD_LEVEL: i32 = 3;

/// The tables that the archive itself reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// `[archive]`
    pub archive: ArchiveTable,
    /// `[warc]`
    pub warc: WarcTable,
}

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

impl Settings {
    /// Reads and checks the file.
    pub fn load(path: &Path) -> anyhow::Result<Settings> {
        let settings: Settings = load_tables(path)?;
        if settings.archive.format > FORMAT {
            bail!(
                "{} says format = {}, this program knows {FORMAT}: install a later perennial",
                path.display(),
                settings.archive.format
            );
        }
        let prefix = &settings.warc.prefix;
        if prefix.is_empty() || !prefix.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c)) {
            bail!(
                "{}: warc.prefix = {prefix:?} cannot begin a file name: use letters, digits, _ and .",
                path.display()
            );
        }
        Ok(settings)
    }
}

/// Reads the tables that `T` names; every part of the program has its own `T`.
pub fn load_tables<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml_edit::de::from_str(&text).with_context(|| format!("{} has a mistake", path.display()))
}

/// Changes the file: comments, order and unknown keys stay; the file is replaced whole or not at all.
pub fn edit(path: &Path, change: impl FnOnce(&mut DocumentMut) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut document: DocumentMut =
        text.parse().with_context(|| format!("{} has a mistake", path.display()))?;
    change(&mut document)?;
    write_whole(path, document.to_string().as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_says_the_defaults() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perennial.toml");
        fs::write(&path, TEMPLATE).unwrap();
        let loaded = Settings::load(&path).unwrap();
        assert_eq!(format!("{loaded:?}"), format!("{:?}", Settings::default()));
    }

    #[test]
    fn editing_keeps_comments() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perennial.toml");
        fs::write(&path, TEMPLATE).unwrap();
        edit(&path, |document| {
            document["warc"]["operator"] = toml_edit::value("A Library");
            Ok(())
        })
        .unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches('#').count(), TEMPLATE.matches('#').count());
        assert_eq!(Settings::load(&path).unwrap().warc.operator, "A Library");
    }

    #[test]
    fn mistakes_name_file_and_cure() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("perennial.toml");
        fs::write(&path, "[warc]\nprefix = \"../x\"\n").unwrap();
        assert!(Settings::load(&path).unwrap_err().to_string().contains("use letters"));
        fs::write(&path, "[archive]\nformat = 99\n").unwrap();
        assert!(Settings::load(&path).unwrap_err().to_string().contains("later perennial"));
    }
}
