//! A former state -> the rows that no WARC file contains, in a rebuilt state.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::bail;
use perennial_core::time::Timestamp;

use super::reading::uri_path;
use super::{PageCheck, SCHEMA_VERSION, Store, check_pages};

/// Numbers of seeds, spending, checkpoint, passes, delays of hosts. The former state is attached as `former`.
const ROWS: [&str; 5] = [
    "INSERT OR IGNORE INTO crawl_seeds (id, url) SELECT id, url FROM former.crawl_seeds",
    "INSERT OR REPLACE INTO crawl_spent (seed, start, n_visits, n_bytes)
        SELECT seed, start, n_visits, n_bytes FROM former.crawl_spent WHERE n_visits >= 0 AND n_bytes >= 0",
    "INSERT OR REPLACE INTO crawl_bearings (id, bearings) SELECT id, bearings FROM former.crawl_bearings",
    "INSERT OR REPLACE INTO crawl_passes (id, started, ended) SELECT id, started, ended FROM former.crawl_passes",
    "INSERT OR REPLACE INTO crawl_hosts (site, ready_at, n_troubles)
        SELECT s.id, h.ready_at, h.n_troubles FROM former.crawl_hosts h JOIN former.sites o ON o.id = h.site
        JOIN main.sites s ON s.host = o.host",
];

impl Store {
    /// Copies what cannot be derived from a former state, as far as that is readable.
    pub fn carry_over(&mut self, former: &Path) -> anyhow::Result<()> {
        if !former.exists() {
            return Ok(());
        }
        // Only for reading: a writer's last connection would copy the log without checksums.
        let uri = format!("file:{}?mode=ro", uri_path(former));
        if self.connection.execute("ATTACH ?1 AS former", [uri]).is_err() {
            return Ok(());
        }
        for sql in ROWS {
            // A damaged table, or one that an earlier schema lacks, must not prevent the rebuild.
            let _ = self.connection.execute(sql, []);
        }
        self.connection.execute_batch("DETACH former")?;
        self.after_commit()
    }

    /// Refuses a state that a later version of this program wrote, before it is replaced.
    pub fn refuse_later_schema(path: &Path) -> anyhow::Result<()> {
        // In a damaged first page, the number is as doubtful as the rest.
        let is_damaged =
            || matches!(check_pages(path), Ok(PageCheck::Contradicting(pages)) if pages.first() == Some(&1));
        match Store::schema_number(path) {
            Ok(schema) if schema > SCHEMA_VERSION && !is_damaged() => bail!(
                "{} has schema {schema}, this program knows {SCHEMA_VERSION}: install a later perennial, or move the file \
                 away to make another from the WARC files",
                path.display()
            ),
            _ => Ok(()),
        }
    }
}

/// Copies a state with its log to a file next to it. Returns the name of the copy; `None` if there is no state.
pub fn keep_copy(path: &Path, now: Timestamp) -> io::Result<Option<String>> {
    let copy: PathBuf = path.with_file_name(format!("state-{}.db", now.to_digits14()));
    for suffix in ["", "-wal"] {
        let beside = |path: &Path| {
            let mut name = path.as_os_str().to_os_string();
            name.push(suffix);
            PathBuf::from(name)
        };
        match fs::copy(beside(path), beside(&copy)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && suffix.is_empty() => return Ok(None),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(copy.file_name().map(|name| name.to_string_lossy().into_owned()))
}
