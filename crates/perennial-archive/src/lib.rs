//! An archive is a folder: `perennial.toml`, `warc/`, `index/`, `state.db`.
//!
//! The WARC files are authoritative. Index and state are derived from them and can be rebuilt (docs/archive-format.md).
//! Readers take no lock and are never blocked ([`Snapshot`]). A writer takes the one lock ([`lock`]).
//!
//! | module | what becomes what |
//! |---|---|
//! | [`disk`] | bytes and folders -> files that are either complete or absent |
//! | [`settings`] | `perennial.toml` <-> typed tables; edits keep comments |
//! | [`store`] | captures and their analyses <-> SQLite |
//! | `lock`, `settings_watch` | one writer at a time; a changed `perennial.toml` |
//! | `crawl_record` | what a crawl does and plans <-> `crawl.json` |
//! | `exchange`, `content` | one HTTP exchange -> records, index fields, kind of response |
//! | [`links`], [`feeds`], [`parts`] | a response -> its links, its feed items, the subresources of a page |
//! | `writer` | exchanges -> WARC records on disk, then the state; only this module makes captures |
//! | `index`, `indexer` | captures -> sorted CDXJ files, merged as they grow |
//! | `read`, `substitute` | a capture -> its response; the record that replaces it in other tools |
//! | `snapshot` | the archive as one reader sees it, unchanging |
//! | `scan`, `recover` | a WARC file -> rows and damage; the state after a crash -> one that agrees with the files |
//! | `repair` | a WARC file after a crash -> its sound records, and a side file |
//! | [`import`], `transcription`, `zip_entries` | files of other tools -> captures |
//! | [`export`], `tree_export`, [`parquet`] | a part of the archive -> WACZ, WARC, CDXJ, Vi-XML; tables -> Parquet |
//! | [`verify`] | an archive -> every defect in it |
//! | [`erase`] | records of a page or a site -> tombstones, and nothing derived from them |
//! | [`signature`] | a digest -> its signature with the archive's key |
//! | [`manifest`] | complete WARC files -> a chain of their digests |
//! | [`timestamp`] | the manifest -> a timestamp server's statement about it |
//! | `files` | names of WARC files, and where each is on disk |

mod content;
mod crawl_record;
pub mod disk;
pub mod erase;
mod exchange;
pub mod export;
pub mod feeds;
mod files;
pub mod import;
pub mod index;
mod indexer;
pub mod links;
pub mod lock;
pub mod manifest;
pub mod parquet;
pub mod parts;
mod read;
mod recover;
mod repair;
mod scan;
pub mod settings;
mod settings_watch;
pub mod signature;
mod snapshot;
pub mod store;
mod substitute;
pub mod timestamp;
mod transcription;
mod tree_export;
pub mod verify;
mod writer;
mod zip_entries;

pub use content::{HOPS, write_hops};
pub use crawl_record::{CrawlRecord, FetchInProgress};
pub use exchange::{CompressedRecords, DerivedResource, Exchange, ExchangeBody};
pub use indexer::IndexPace;
pub use read::{ArchivedResponse, OpenRecord, StoredRecord};
pub use recover::Repair;
pub use settings_watch::SettingsWatch;
pub use snapshot::{SharedSnapshot, Snapshot};
pub use writer::{AppendOutcome, ArchiveWriter, DELTA_MIME, LeftOutVersion};
pub use writer::{LEFT_OUT_BASE, random_seed};

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use perennial_core::time::Timestamp;

pub use crate::disk::{make_dir, sync_dir, write_whole};
use crate::settings::{Settings, TEMPLATE};
use crate::store::Store;

/// Name of the settings file; a folder that has it is an archive.
pub const SETTINGS_FILE: &str = "perennial.toml";

/// Message shown while a writer upgrades an archive of an earlier version ([`Archive::is_unchecked`]).
pub const CHECKING: &str =
    "checking every record once, as an earlier version did not; this takes as long as `perennial verify`";

pub fn is_archive(dir: &Path) -> bool {
    dir.join(SETTINGS_FILE).is_file()
}

/// An archive open for reading. Opening reads only the settings file.
#[derive(Debug, Clone)]
pub struct Archive {
    root: PathBuf,
    settings: Arc<Settings>,
    settings_text: Arc<str>,
}

impl Archive {
    /// Makes an empty archive. The folder must not be an archive, nor contain names that an archive uses.
    pub fn create(root: &Path) -> anyhow::Result<Archive> {
        if is_archive(root) {
            bail!("{} is an archive already: nothing was changed", root.display());
        }
        let context = || format!("cannot make an archive in {}", root.display());
        make_dir(&root.join("warc")).with_context(context)?;
        make_dir(&root.join("index")).with_context(context)?;
        Store::open_write(&root.join("state.db")).with_context(context)?;
        // The settings come last: only with them is the folder an archive.
        write_whole(&root.join(SETTINGS_FILE), TEMPLATE.as_bytes()).with_context(context)?;
        Archive::open(root)
    }

    pub fn open(root: &Path) -> anyhow::Result<Archive> {
        if !is_archive(root) {
            bail!(
                "{} is not an archive: make one with `perennial init {0}` or name another with --archive DIR",
                root.display()
            );
        }
        let path = root.join(SETTINGS_FILE);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let settings = Arc::new(Settings::parse(&path, &text)?);
        Ok(Archive { root: root.to_path_buf(), settings, settings_text: text.into() })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The settings when the archive was opened.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The text of `perennial.toml` when the archive was opened.
    pub fn settings_text(&self) -> &str {
        &self.settings_text
    }

    /// Path of the settings file. Edit it with [`crate::settings::edit`], which keeps comments.
    pub fn settings_path(&self) -> PathBuf {
        self.root.join(SETTINGS_FILE)
    }

    /// Folder of the WARC files.
    pub fn warc_dir(&self) -> PathBuf {
        self.root.join("warc")
    }

    /// Folder of the CDXJ runs.
    pub fn index_dir(&self) -> PathBuf {
        self.root.join("index")
    }

    /// Folder for large bodies until the crawl archives them. Its files do not outlive the crawl.
    pub fn spool_dir(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// Path of the state.
    pub fn state_path(&self) -> PathBuf {
        self.root.join("state.db")
    }

    /// Path of the text index, which is derived from the state.
    pub fn texts_path(&self) -> PathBuf {
        self.root.join("search.db")
    }

    /// Path of the database of unsent notices.
    pub fn outbox_path(&self) -> PathBuf {
        self.root.join("outbox.db")
    }

    /// The last instant whose captures count as made. A record may claim any date, and a clock may have been ahead. Such
    /// captures must not move "now" or hide later ones. In a time-lapse the virtual clock may be ahead of the real one.
    pub fn horizon(&self) -> Timestamp {
        if self.settings.archive.time_lapse { Timestamp::MAX } else { now() }
    }

    /// Records in the settings that captures have the times of a virtual clock.
    pub fn mark_time_lapse(&self) -> anyhow::Result<Archive> {
        if self.settings.archive.time_lapse {
            return Ok(self.clone());
        }
        settings::edit(&self.settings_path(), |document, _| {
            document["archive"]["time_lapse"] = toml_edit::value(true);
            Ok(())
        })?;
        Archive::open(&self.root)
    }

    /// Opens a WARC file for reading.
    pub fn open_warc(&self, name: &str) -> anyhow::Result<std::fs::File> {
        files::open(&self.warc_dir(), name).with_context(|| format!("cannot open {name} of the archive"))
    }

    /// Identifies the present state file; `None` if it is missing.
    pub fn state_file(&self) -> Option<StateFile> {
        let metadata = std::fs::metadata(self.state_path()).ok()?;
        #[cfg(unix)]
        let id = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let id = metadata.created().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos() as u64;
        Some(StateFile(id))
    }

    /// Total bytes of all WARC files.
    pub fn warc_bytes(&self) -> io::Result<u64> {
        Ok(files::list(&self.warc_dir())?.iter().map(|file| file.bytes).sum())
    }

    /// Whether the next writer must read every record once, because an earlier version of this program wrote the state.
    /// That version trusted the digests that records claim.
    pub fn is_unchecked(&self) -> bool {
        Store::is_unchecked(&self.state_path()).unwrap_or_default()
    }

    /// Opens the state for reading, even while a writer is active.
    pub fn store(&self) -> anyhow::Result<Store> {
        Store::open_read(&self.state_path())
    }
}

/// Identifies a state file, to detect its replacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateFile(u64);

/// The current time of the system's clock.
pub fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(since_epoch.as_millis() as i64)
}
