//! The crawl log `crawl.log`: one JSON line per visit with its reason, its result and what was stored.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use perennial_core::http::response::error_words;
use serde::{Deserialize, Serialize};

/// A larger log is renamed to `crawl.log.1`, and a new one is started.
const MAX_LOG_BYTES: u64 = 256 << 20;

/// Buffered lines are written when they exceed this size.
const MAX_WAITING_BYTES: usize = 64 << 10;

/// One line of the crawl log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// When the visit ended, RFC 3339.
    pub time: String,
    pub url: String,
    /// `page`, `requisite`, `sitemap` or `robots`.
    pub kind: String,
    /// Why it was visited.
    pub reason: String,
    /// HTTP status, if there was a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `new`, `changed`, `unchanged`, `redirected`, `failed`, `gone`, `missing`, `refused`.
    pub outcome: String,
    /// Kind of error, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error message with a hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The person who made the change, if it is not a visit of the crawl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// `response`, `revisit` or `delta`; none if nothing was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    /// Why the body is truncated, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<String>,
    /// Why the document was only partly read, if so. The archived record is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Digest of the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Length of the body.
    pub body_bytes: u64,
    /// Length in the WARC file.
    pub stored_bytes: u64,
    /// Duration of the exchange.
    pub millis: u64,
    /// Whether validators were sent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub conditional: bool,
    /// Number of new URLs in it.
    pub n_found: u64,
}

pub struct CrawlLog {
    path: PathBuf,
    file: File,
    /// Complete lines that are not yet written. Concurrent readers see whole lines only.
    waiting: Vec<u8>,
    n_bytes: u64,
}

impl CrawlLog {
    /// Opens the log of an archive. A line that a killed crawl left unfinished is terminated, so it does not
    /// corrupt the next one.
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

    /// Appends a line to the buffer. [`CrawlLog::flush`] writes it.
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

    /// Writes buffered lines, and rotates a full log.
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

impl LogLine {
    /// Why the visit captured no page, in words.
    pub fn words_of_failure(&self) -> Option<String> {
        self.error.as_ref()?;
        let is_broken_off = self.truncated.as_deref() == Some("disconnect");
        self.detail.clone().or_else(|| error_words(self.status?, is_broken_off))
    }
}

/// Reads the lines that a log gets from now on.
#[derive(Debug)]
pub struct LogTail {
    path: PathBuf,
    at: u64,
    /// The start of an unfinished line.
    rest: Vec<u8>,
}

impl LogTail {
    /// Starts at the end of the log.
    pub fn from_end(root: &Path) -> LogTail {
        let path = root.join("crawl.log");
        let at = std::fs::metadata(&path).map_or(0, |data| data.len());
        LogTail { path, at, rest: Vec::new() }
    }

    /// The last visit of a page or feed since the last call; `None` if there was none.
    pub fn last_visit(&mut self, url: &str) -> anyhow::Result<Option<LogLine>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if file.metadata()?.len() < self.at {
            // A full log was renamed, and a new one was begun.
            (self.at, self.rest) = (0, Vec::new());
        }
        file.seek(SeekFrom::Start(self.at))?;
        self.at += file.read_to_end(&mut self.rest)? as u64;
        let end = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.rest.drain(..end).collect();
        let lines = lines.split(|byte| *byte == b'\n');
        let mut lines = lines.filter_map(|line| serde_json::from_slice::<LogLine>(line).ok());
        Ok(lines.rfind(|line| line.url == url && line.kind != "robots"))
    }
}

/// Calls `each` with every line of the log, oldest first. Skips malformed lines.
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
