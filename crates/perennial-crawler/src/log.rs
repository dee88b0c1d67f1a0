//! Every visit -> one JSON line in `crawl.log`: why it was made, what came back, what was stored.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A log that has grown beyond this is renamed to `crawl.log.1`, and a new one begins.
const MAX_LOG_BYTES: u64 = 256 << 20;

/// Lines that wait for more bytes than this are written before the next flush.
const MAX_WAITING_BYTES: usize = 64 << 10;

/// One visit, as a line of the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// When the visit ended, RFC 3339.
    pub time: String,
    /// The URL that was visited.
    pub url: String,
    /// `page`, `requisite`, `sitemap` or `robots`.
    pub kind: String,
    /// Why it was visited.
    pub reason: String,
    /// HTTP status, if any came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `changed`, `unchanged`, `failed`, `gone`.
    pub outcome: String,
    /// Kind of error, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error in words, with its cure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Who did it, where a person did and not the crawl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// `response`, `revisit` or `delta`; none when nothing was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    /// Why the body is cut, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
    /// Why the document was read in part only, if it was; what was archived is whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Digest of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Bytes in the WARC file.
    pub stored_bytes: u64,
    /// How long the exchange took.
    pub millis: u64,
    /// Whether validators were sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub conditional: bool,
    /// New URLs that it names.
    pub n_found: u64,
}

/// The log, open for appending.
pub struct CrawlLog {
    path: PathBuf,
    file: File,
    /// Whole lines that are not in the file yet: it grows by whole lines, for those who read it meanwhile.
    waiting: Vec<u8>,
    n_bytes: u64,
}

impl CrawlLog {
    /// Opens the log of an archive's folder. A line that a killed crawl left torn is ended, so that it spoils no other.
    pub fn open(root: &Path) -> io::Result<CrawlLog> {
        let path = root.join("crawl.log");
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(&path)?;
        let n_bytes = file.metadata()?.len();
        let mut last = [b'\n'];
        if n_bytes > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        let waiting = if last == *b"\n" { Vec::new() } else { b"\n".to_vec() };
        Ok(CrawlLog { path, file, waiting, n_bytes })
    }

    /// Appends a line; [`CrawlLog::flush`] makes it readable.
    pub fn put(&mut self, line: &LogLine) -> io::Result<()> {
        serde_json::to_writer(&mut self.waiting, line)?;
        self.waiting.push(b'\n');
        if self.waiting.len() > MAX_WAITING_BYTES { self.write_waiting() } else { Ok(()) }
    }

    fn write_waiting(&mut self) -> io::Result<()> {
        self.file.write_all(&self.waiting)?;
        self.n_bytes += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Writes buffered lines to the file, and renames a log that is full.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_waiting()?;
        if self.n_bytes > MAX_LOG_BYTES {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            let root = self.path.parent().unwrap_or(Path::new("."));
            *self = CrawlLog::open(root)?;
        }
        Ok(())
    }
}

/// Calls `each` with every line of the log, oldest first. Lines that cannot be parsed are skipped.
pub fn each_line(root: &Path, mut each: impl FnMut(LogLine)) -> io::Result<()> {
    for name in ["crawl.log.1", "crawl.log"] {
        let file = match File::open(root.join(name)) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            if let Ok(parsed) = serde_json::from_slice(&line) {
                each(parsed);
            }
            line.clear();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_spoils_no_other_and_lines_come_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crawl.log");
        std::fs::write(&path, "{\"url\":\"a\"}\n{\"time\":").unwrap();
        let mut log = CrawlLog::open(folder.path()).unwrap();
        for n in 0..2_000 {
            log.put(&LogLine { url: format!("page {n} {}", "x".repeat(n % 200)), ..LogLine::default() })
                .unwrap();
            let written = std::fs::read(&path).unwrap();
            assert!(log.n_bytes < 100 || written.ends_with(b"}\n"), "a reader would see part of a line");
        }
        log.flush().unwrap();
        let mut urls = Vec::new();
        each_line(folder.path(), |line| urls.push(line.url)).unwrap();
        assert_eq!(urls.len(), 2_001);
        assert!(urls[0] == "a" && urls[1].starts_with("page 0") && urls[2_000].starts_with("page 1999"));
    }
}
