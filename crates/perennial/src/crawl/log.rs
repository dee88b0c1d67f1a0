//! Every visit -> one JSON line in `crawl.log`: why it was made, what came back, what was stored.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A log that has grown beyond this is renamed to `crawl.log.1`, and a new one begins.
const MAX_LOG_BYTES: u64 = 256 << 20;

/// One visit, as a line of the log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// When the visit ended, RFC 3339.
    pub time: String,
    /// The address that was visited.
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
    /// New addresses that it names.
    pub n_found: u64,
}

/// The log, open for appending.
pub struct CrawlLog {
    path: PathBuf,
    out: BufWriter<File>,
    n_bytes: u64,
}

impl CrawlLog {
    /// Opens the log of an archive's folder.
    pub fn open(root: &Path) -> io::Result<CrawlLog> {
        let path = root.join("crawl.log");
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        let n_bytes = file.metadata()?.len();
        Ok(CrawlLog { path, out: BufWriter::new(file), n_bytes })
    }

    /// Appends a line; [`CrawlLog::flush`] makes it readable.
    pub fn put(&mut self, line: &LogLine) -> io::Result<()> {
        let text = serde_json::to_string(line)?;
        self.n_bytes += text.len() as u64 + 1;
        writeln!(self.out, "{text}")
    }

    /// Writes buffered lines to the file, and renames a log that is full.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()?;
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
