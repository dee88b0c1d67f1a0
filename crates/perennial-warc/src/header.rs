//! The named fields at the head of a record -> [`RecordHeader`], with a typed getter for each field that the archive
//! uses.

use std::fmt;
use std::ops::Range;

use crate::time::Timestamp;

/// The type of a record, from `WARC-Type`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RecordType {
    /// Describes the records that follow. It is the first record of a file.
    Warcinfo,
    /// A server's response.
    Response,
    /// The crawler's request.
    Request,
    /// Content without a protocol head, or derived content.
    Resource,
    /// Describes a different record.
    Metadata,
    /// A capture whose content is stored elsewhere.
    Revisit,
    /// A converted form of stored content.
    Conversion,
    /// The next part of a split record.
    Continuation,
    /// A type that is not in the standard; empty if the record has no type.
    Other(String),
}

impl RecordType {
    /// Parses the field's value; letter case does not matter.
    pub fn parse(text: &str) -> RecordType {
        const KNOWN: [RecordType; 8] = [
            RecordType::Response,
            RecordType::Request,
            RecordType::Revisit,
            RecordType::Metadata,
            RecordType::Resource,
            RecordType::Warcinfo,
            RecordType::Conversion,
            RecordType::Continuation,
        ];
        KNOWN
            .into_iter()
            .find(|kind| kind.as_str().eq_ignore_ascii_case(text))
            .unwrap_or_else(|| RecordType::Other(text.to_string()))
    }

    /// The value in the header.
    pub fn as_str(&self) -> &str {
        match self {
            RecordType::Warcinfo => "warcinfo",
            RecordType::Response => "response",
            RecordType::Request => "request",
            RecordType::Resource => "resource",
            RecordType::Metadata => "metadata",
            RecordType::Revisit => "revisit",
            RecordType::Conversion => "conversion",
            RecordType::Continuation => "continuation",
            RecordType::Other(name) => name,
        }
    }

    /// Whether the block of such a record begins with an HTTP head (if its URI is http or https).
    pub fn has_http_head(&self) -> bool {
        matches!(self, RecordType::Response | RecordType::Request | RecordType::Revisit)
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a block is shorter than the server's full response, from `WARC-Truncated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The body exceeded the longest body that is stored.
    Length,
    /// The transfer took too long.
    Time,
    /// The connection broke.
    Disconnect,
    /// Any other reason, including those that are not in the standard.
    Unspecified,
}

impl Truncation {
    /// Parses the field's value.
    pub fn parse(text: &str) -> Truncation {
        match text.trim().to_ascii_lowercase().as_str() {
            "length" => Truncation::Length,
            "time" => Truncation::Time,
            "disconnect" => Truncation::Disconnect,
            _ => Truncation::Unspecified,
        }
    }

    /// The value in the header.
    pub fn as_str(&self) -> &'static str {
        match self {
            Truncation::Length => "length",
            Truncation::Time => "time",
            Truncation::Disconnect => "disconnect",
            Truncation::Unspecified => "unspecified",
        }
    }
}

/// The version of the format, from the record's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WarcVersion {
    /// `WARC/1.1`
    #[default]
    Warc11,
    /// `WARC/1.0`
    Warc10,
    /// Any other `WARC/x.y`: drafts such as 0.17 and 0.18, and future versions.
    WarcOther,
    /// A record of an ARC file. Its fields have their WARC names.
    Arc,
}

/// The head of one record: the version and all fields in their order, including duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordHeader {
    pub(super) version: WarcVersion,
    /// All names and values in sequence, so any number of fields takes one allocation.
    text: String,
    fields: Vec<(Range<u32>, Range<u32>)>,
}

impl RecordHeader {
    /// The version of the format.
    pub fn version(&self) -> WarcVersion {
        self.version
    }

    /// All fields in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (self.slice(name), self.slice(value)))
    }

    fn slice(&self, range: &Range<u32>) -> &str {
        self.text.get(range.start as usize..range.end as usize).unwrap_or("")
    }

    /// The first field with this name; letter case does not matter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All fields with this name, for example several `WARC-Concurrent-To`.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// `WARC-Type`.
    pub fn record_type(&self) -> RecordType {
        RecordType::parse(self.get("WARC-Type").unwrap_or(""))
    }

    /// `WARC-Record-ID` as written, usually `<urn:uuid:...>`.
    pub fn record_id(&self) -> Option<&str> {
        self.get("WARC-Record-ID")
    }

    /// `WARC-Date` as an instant; `None` if absent or not a time.
    pub fn date(&self) -> Option<Timestamp> {
        Timestamp::parse(self.get("WARC-Date")?).ok()
    }

    /// `WARC-Target-URI` without the angle brackets that some writers add.
    pub fn target_uri(&self) -> Option<&str> {
        self.get("WARC-Target-URI").map(strip_brackets)
    }

    /// `Content-Length`; `None` if absent or not a number.
    pub fn content_length(&self) -> Option<u64> {
        let text = self.get("Content-Length")?.trim();
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) { None } else { text.parse().ok() }
    }

    /// `Content-Type` of the block.
    pub fn content_type(&self) -> Option<&str> {
        self.get("Content-Type")
    }

    /// `WARC-Block-Digest`.
    pub fn block_digest(&self) -> Option<&str> {
        self.get("WARC-Block-Digest")
    }

    /// `WARC-Payload-Digest`.
    pub fn payload_digest(&self) -> Option<&str> {
        self.get("WARC-Payload-Digest")
    }

    /// `WARC-IP-Address`.
    pub fn ip_address(&self) -> Option<&str> {
        self.get("WARC-IP-Address")
    }

    /// `WARC-Truncated`.
    pub fn truncated(&self) -> Option<Truncation> {
        self.get("WARC-Truncated").map(Truncation::parse)
    }

    /// All values of `WARC-Concurrent-To`.
    pub fn concurrent_to(&self) -> impl Iterator<Item = &str> {
        self.get_all("WARC-Concurrent-To")
    }

    /// `WARC-Refers-To`.
    pub fn refers_to(&self) -> Option<&str> {
        self.get("WARC-Refers-To")
    }

    /// `WARC-Refers-To-Target-URI`.
    pub fn refers_to_target_uri(&self) -> Option<&str> {
        self.get("WARC-Refers-To-Target-URI").map(strip_brackets)
    }

    /// `WARC-Refers-To-Date`.
    pub fn refers_to_date(&self) -> Option<Timestamp> {
        Timestamp::parse(self.get("WARC-Refers-To-Date")?).ok()
    }

    /// `WARC-Profile` of a revisit.
    pub fn profile(&self) -> Option<&str> {
        self.get("WARC-Profile").map(strip_brackets)
    }

    /// `WARC-Filename` of a warcinfo.
    pub fn filename(&self) -> Option<&str> {
        self.get("WARC-Filename")
    }

    /// Whether the block should begin with an HTTP head: the record is a response, request or revisit of an http or
    /// https URI.
    pub fn expects_http_head(&self) -> bool {
        self.record_type().has_http_head()
            && self.target_uri().is_some_and(|uri| {
                let scheme = uri.split(':').next().unwrap_or("");
                scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
            })
    }

    pub(super) fn clear(&mut self) {
        self.version = WarcVersion::default();
        self.text.clear();
        self.fields.clear();
    }

    pub(super) fn push(&mut self, name: &str, value: &str) {
        let start = self.text.len() as u32;
        self.text.push_str(name);
        let middle = self.text.len() as u32;
        self.text.push_str(value);
        self.fields.push((start..middle, middle..self.text.len() as u32));
    }

    /// Appends a folded line to the last field.
    fn extend_last(&mut self, more: &str) {
        if let Some((_, value)) = self.fields.last_mut() {
            self.text.push(' ');
            self.text.push_str(more);
            value.end = self.text.len() as u32;
        }
    }

    /// Parses the lines of a head, including the first line and the final blank line. Returns `false` if the first
    /// line is not a version line. Skips lines without a colon, as every reader does.
    pub(super) fn parse_into(&mut self, head: &[u8]) -> bool {
        self.clear();
        let mut lines = HeaderLines(head);
        let Some(version) = lines.next().and_then(parse_version) else { return false };
        self.version = version;
        for line in lines {
            match std::str::from_utf8(line) {
                Ok(text) => self.parse_line(text),
                Err(_) => self.parse_line(&line.iter().map(|&b| b as char).collect::<String>()),
            }
        }
        true
    }

    fn parse_line(&mut self, line: &str) {
        if line.starts_with([' ', '\t']) {
            self.extend_last(line.trim());
        } else if let Some((name, value)) = line.split_once(':') {
            self.push(name.trim(), value.trim());
        }
    }
}

/// Removes the brackets of `<http://...>`, which wget 1.19 and other writers add.
fn strip_brackets(uri: &str) -> &str {
    uri.strip_prefix('<').and_then(|u| u.strip_suffix('>')).unwrap_or(uri)
}

/// Parses `WARC/1.0`, `WARC/1.1` or `WARC/` with other digits.
fn parse_version(line: &[u8]) -> Option<WarcVersion> {
    let number = line.get(5..).filter(|_| line[..5].eq_ignore_ascii_case(b"WARC/"))?.trim_ascii();
    match number {
        b"1.1" => Some(WarcVersion::Warc11),
        b"1.0" => Some(WarcVersion::Warc10),
        [b'0'..=b'9', ..] => Some(WarcVersion::WarcOther),
        _ => None,
    }
}

/// Lines without their ends, whether CRLF or LF.
struct HeaderLines<'a>(&'a [u8]);

impl<'a> Iterator for HeaderLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.0).unwrap_or(self.0.len());
        let line = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or(&[]);
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> RecordHeader {
        let mut header = RecordHeader::default();
        assert!(header.parse_into(text.as_bytes()));
        header
    }

    #[test]
    fn fields_keep_their_order_and_fold() {
        let header =
            parse("WARC/1.0\r\nWARC-Type: response\r\nX: a\r\n\tb\r\nno colon\r\nx : c\r\nEmpty:\r\n\r\n");
        let fields: Vec<_> = header.fields().collect();
        assert_eq!(fields, [("WARC-Type", "response"), ("X", "a b"), ("x", "c"), ("Empty", "")]);
        assert_eq!(header.get_all("x").count(), 2);
        assert_eq!(header.version(), WarcVersion::Warc10);
        assert_eq!(header.record_type(), RecordType::Response);
    }

    #[test]
    fn odd_values_are_read_as_meant() {
        let header = parse(
            "WARC/1.1\nWARC-Target-URI: <http://a/>\nContent-Length: 12 \nWARC-Truncated: weird\nWARC-Date: 2020-01-01T00:00:00.5Z\n\n",
        );
        assert_eq!(header.target_uri(), Some("http://a/"));
        assert_eq!(header.content_length(), Some(12));
        assert_eq!(header.truncated(), Some(Truncation::Unspecified));
        assert_eq!(header.date().unwrap().as_millis() % 1000, 500);
        assert_eq!(parse("WARC/1.1\nContent-Length: -3\n\n").content_length(), None);
        assert_eq!(parse("WARC/1.1\nContent-Length: +3\n\n").content_length(), None);
    }

    #[test]
    fn latin1_bytes_are_not_lost() {
        let mut header = RecordHeader::default();
        assert!(header.parse_into(b"WARC/1.0\r\nWARC-Target-URI: http://a/caf\xe9\r\n\r\n"));
        assert_eq!(header.target_uri(), Some("http://a/café"));
        assert!(!header.parse_into(b"HTTP/1.0 200 OK\r\n\r\n"));
        assert!(!header.parse_into(b""));
    }
}
