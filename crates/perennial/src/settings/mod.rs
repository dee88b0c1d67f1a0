//! `perennial.toml` -> typed tables: what the user decides. Read with defaults, edited with comments kept.
//!
//! | file | what becomes what |
//! |---|---|
//! | [`archive`] | `[archive]`, `[warc]` -> what the folder is, and how WARC files are written |
//! | [`crawl`] | `[crawl]` -> manners and limits |
//! | [`site`] | `[[site]]` -> seeds, found by address and by number |
//! | [`amounts`] | `15m`, `200MB`, `1000/1h` -> numbers |

pub mod amounts;
pub mod archive;
pub mod crawl;
pub mod site;

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;
use toml_edit::DocumentMut;

use crate::disk::write_whole;
pub use archive::{ArchiveTable, Codec, FORMAT, WarcTable};
pub use crawl::{Allowance, CrawlTable};
pub use site::{Keep, Seed, Seeds, SiteTable, follow};

/// What `perennial init` writes.
pub const TEMPLATE: &str = include_str!("template.toml");

/// The tables that the archive itself reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// `[archive]`
    pub archive: ArchiveTable,
    /// `[warc]`
    pub warc: WarcTable,
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
