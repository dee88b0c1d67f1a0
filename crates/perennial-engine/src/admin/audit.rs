//! The audit log `acts.log`: who decided what, and when. A crawl reads retry requests from it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use perennial_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const FILE: &str = "acts.log";
/// Longer lines are damaged and skipped.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// One line of the audit log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "Act")]
pub struct AuditEntry {
    /// When, RFC 3339.
    pub time: String,
    /// Who: the command line with its user, or the dashboard with its session number.
    pub who: String,
    /// What: `add`, `remove`, `pause`, `resume`, `set`, `watch`, `notify`, `remove-rule`, `pin`, `ignore`, `release` or
    /// `retry`.
    #[serde(rename = "act")]
    pub action: String,
    /// The site, page or host.
    pub url: String,
    /// The changed settings.
    pub detail: String,
}

impl AuditEntry {
    pub(super) fn new(time: Timestamp, who: &str, action: &str, url: &str, detail: String) -> AuditEntry {
        AuditEntry {
            time: time.to_rfc3339(),
            who: who.to_owned(),
            action: action.to_owned(),
            url: url.to_owned(),
            detail,
        }
    }
}

/// The log, open for appending and locked until it is dropped.
pub(super) struct AuditLog {
    file: File,
}

impl AuditLog {
    pub(super) fn open(root: &Path) -> anyhow::Result<AuditLog> {
        let path = path_in(root);
        let context = || format!("cannot write {}: no write access to the archive", path.display());
        let file = OpenOptions::new().create(true).append(true).open(&path).with_context(context)?;
        file.lock().with_context(context)?;
        Ok(AuditLog { file })
    }

    /// Appends a line. A concurrent reader sees the whole line or nothing.
    pub(super) fn put(&mut self, line: &AuditEntry) -> anyhow::Result<()> {
        let text = format!("{}\n", serde_json::to_string(line)?);
        self.file.write_all(text.as_bytes())?;
        Ok(self.file.sync_data()?)
    }
}

fn path_in(root: &Path) -> PathBuf {
    root.join(FILE)
}

/// Calls `each` with every entry, oldest first. Skips unreadable lines.
pub fn each_audit_entry(root: &Path, each: impl FnMut(AuditEntry)) -> io::Result<()> {
    AuditReader::from_start(root).read(each)
}

/// Reads the log incrementally.
#[derive(Debug)]
pub struct AuditReader {
    path: PathBuf,
    at: u64,
}

impl AuditReader {
    /// Starts at the first entry.
    pub fn from_start(root: &Path) -> AuditReader {
        AuditReader { path: path_in(root), at: 0 }
    }

    /// Calls `each` with every entry since the last call.
    pub fn read(&mut self, mut each: impl FnMut(AuditEntry)) -> io::Result<()> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        let length = file.metadata()?.len();
        if length < self.at {
            // The file was replaced.
            self.at = 0;
        }
        if length == self.at {
            return Ok(());
        }
        file.seek(SeekFrom::Start(self.at))?;
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let n_read = reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
            // The next read returns the rest of an unfinished line.
            if n_read == 0 || (!line.ends_with(b"\n") && (n_read as u64) < MAX_LINE_BYTES) {
                return Ok(());
            }
            self.at += n_read as u64;
            if let Ok(action) = serde_json::from_slice(&line) {
                each(action);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_once_each_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut reader = AuditReader::from_start(dir.path());
        let read = |reader: &mut AuditReader| {
            let mut urls = Vec::new();
            reader.read(|line| urls.push(line.url)).unwrap();
            urls
        };
        assert!(read(&mut reader).is_empty(), "there is no log yet");
        let line = |url: &str| AuditEntry::new(Timestamp::EPOCH, "me", "retry", url, String::new());
        let put = |url: &str| AuditLog::open(dir.path()).unwrap().put(&line(url)).unwrap();
        put("a");
        put("b\n\u{202e}");
        assert_eq!(read(&mut reader), ["a", "b\n\u{202e}"]);
        let mut file = OpenOptions::new().append(true).open(path_in(dir.path())).unwrap();
        file.write_all(b"no json\n{\"url\":\"c\"").unwrap();
        assert!(read(&mut reader).is_empty());
        file.write_all(b"}\n").unwrap();
        assert_eq!(read(&mut reader), ["c"]);
        assert!(read(&mut reader).is_empty());
    }
}
