//! Snapshots of an archive for requests, as new as the last commit.
//!
//! Each request takes a snapshot and releases it at its end, so a crawl's commits are visible at once and old states are not
//! held. The connection remains open, which makes this cheap.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use perennial_core::text::untrusted;

use super::router;
use perennial_archive::{Archive, SettingsWatch, Snapshot, StateFile};

/// Idle connections that are kept. Fewer requests run at a time.
const MAX_KEPT: usize = 32;

/// How long a copy of the state is used if the state cannot be read next to its writer.
const COPY_LIFE: Duration = Duration::from_secs(10);

/// Cache memory per connection.
const CACHE_KIB: i64 = 8 * 1024;

#[derive(Debug)]
pub struct Pool {
    archive: Mutex<(Archive, SettingsWatch)>,
    kept: Mutex<Vec<OpenSnapshot>>,
}

#[derive(Debug)]
struct OpenSnapshot {
    snapshot: Snapshot,
    /// The file it reads, because `verify --rebuild` may replace the file.
    file: Option<StateFile>,
    opened: Instant,
}

impl Pool {
    pub fn open(archive: Archive) -> anyhow::Result<Pool> {
        let watch = SettingsWatch::new(&archive);
        let pool = Pool { archive: Mutex::new((archive, watch)), kept: Mutex::new(Vec::new()) };
        pool.with(|_| ())?;
        Ok(pool)
    }

    /// The archive with its current settings; with the earlier ones if the current ones are invalid.
    pub fn archive(&self) -> Archive {
        let mut kept = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let (archive, watch) = &mut *kept;
        if watch.changed().is_some()
            && let Ok(now) = Archive::open(archive.root())
        {
            *archive = now;
        }
        archive.clone()
    }

    /// Reads from the current snapshot.
    pub fn with<T>(&self, read: impl FnOnce(&Snapshot) -> T) -> anyhow::Result<T> {
        let kept = self.take()?;
        let result = read(&kept.snapshot);
        if kept.snapshot.rest().is_ok() {
            let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() < MAX_KEPT {
                all.push(kept);
            }
        }
        Ok(result)
    }

    fn take(&self) -> anyhow::Result<OpenSnapshot> {
        let archive = self.archive();
        let file = archive.state_file();
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(kept) = kept {
            let is_old = kept.snapshot.store().is_copy() && kept.opened.elapsed() > COPY_LIFE;
            let has_settings = kept.snapshot.archive().settings_text() == archive.settings_text();
            if kept.file == file && has_settings && !is_old && kept.snapshot.renew().is_ok() {
                return Ok(kept);
            }
        }
        let snapshot = archive.snapshot()?;
        snapshot.store().limit_cache(CACHE_KIB)?;
        Ok(OpenSnapshot { snapshot, file, opened: Instant::now() })
    }
}

/// The name of an archive in URLs: its folder's, with a number if the name is taken.
pub(super) fn unused_name(archive: &Archive, is_taken: impl Fn(&str) -> bool) -> String {
    let root = archive.root().canonicalize().unwrap_or_else(|_| archive.root().to_path_buf());
    let folder =
        root.file_name().map(|name| untrusted::file_name(&name.to_string_lossy())).unwrap_or_default();
    let plain: String = folder
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' })
        .collect();
    let name = match plain.trim_matches(['.', '-']) {
        "" => "archive".to_string(),
        ours if router::is_ours(ours) => format!("archive-{ours}"),
        name => name.to_string(),
    };
    let numbered = (2u32..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name)
}
