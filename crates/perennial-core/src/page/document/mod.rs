//! A document that is not HTML -> visible blocks: text, JSON, CSV, XML, feeds, PDF.
//!
//! Each format is read into units (paragraphs, rows, records or items), which `draft` groups into blocks. The content
//! decides where a block ends, not the number of units. So an inserted or deleted unit does not move other units into
//! different blocks.
//!
//! The input is untrusted. All readers work in time and memory bounded by its length, and none of them fails: for an
//! unreadable document they return `None`, and its changes are judged by digest.

mod csv;
mod draft;
mod json;
mod pdf;
mod text;
mod xml;

use crate::page::segment::BlockTree;
use crate::text::charset::decode_text;

/// Maximum bytes of a text that are read.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Bytes in which PDF readers search for the signature.
const MAX_SIGNATURE_BYTES: usize = 1024;

/// A document as blocks.
#[derive(Clone, PartialEq, Debug)]
pub struct Document {
    /// Its blocks. The caller sets URL and version.
    pub tree: BlockTree,
    /// Its title, or an empty text.
    pub title: String,
}

/// The supported formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DocumentFormat {
    /// Paragraphs of text.
    Text,
    /// JSON.
    Json,
    /// Comma-separated values, or values with a different separator.
    Csv,
    /// XML, including RSS and Atom.
    Xml,
    /// PDF.
    Pdf,
}

impl DocumentFormat {
    pub const ALL: [DocumentFormat; 5] = [
        DocumentFormat::Text,
        DocumentFormat::Json,
        DocumentFormat::Csv,
        DocumentFormat::Xml,
        DocumentFormat::Pdf,
    ];

    /// Detects the format by media type, or by file name and content if the media type is generic. `None` for
    /// unsupported formats, such as HTML or images.
    pub fn detect(content_type: Option<&str>, name: &str, bytes: &[u8]) -> Option<DocumentFormat> {
        let media_type = content_type.unwrap_or_default().split([';', ',']).next().unwrap_or_default();
        let media_type = media_type.trim().to_ascii_lowercase();
        let found = match media_type.as_str() {
            "" | "application/octet-stream" | "binary/octet-stream" => {
                DocumentFormat::detect_file(name, bytes)
            }
            "text/plain" => DocumentFormat::from_name(name).or(Some(DocumentFormat::Text)),
            media_type => DocumentFormat::from_media_type(media_type),
        };
        // Servers often declare binary files as text.
        found.filter(|format| *format == DocumentFormat::Pdf || !is_binary(bytes))
    }

    /// Detects the format of a file by name and first bytes. `None` for HTML and unsupported formats.
    pub fn detect_file(name: &str, bytes: &[u8]) -> Option<DocumentFormat> {
        let start = &bytes[..bytes.len().min(MAX_SIGNATURE_BYTES)];
        if memchr::memmem::find(start, b"%PDF-").is_some() {
            return Some(DocumentFormat::Pdf);
        }
        if is_binary(bytes) {
            return None;
        }
        let is_html = |tag: &[u8]| start.windows(tag.len()).any(|part| part.eq_ignore_ascii_case(tag));
        if is_html(b"<html") || is_html(b"<!doctype html") {
            return None;
        }
        let by_name = DocumentFormat::from_name(name);
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        by_name.or_else(|| matches!(start.first(), Some(b'{' | b'[')).then_some(DocumentFormat::Json))
    }

    fn from_media_type(media_type: &str) -> Option<DocumentFormat> {
        Some(match media_type {
            "text/html" | "application/xhtml+xml" => return None,
            "application/pdf" | "application/x-pdf" => DocumentFormat::Pdf,
            "application/json" | "text/json" => DocumentFormat::Json,
            "text/csv" | "application/csv" | "text/tab-separated-values" => DocumentFormat::Csv,
            "application/xml" | "text/xml" => DocumentFormat::Xml,
            "application/x-ndjson" | "application/yaml" | "application/x-yaml" | "application/javascript" => {
                DocumentFormat::Text
            }
            other if other.ends_with("+json") => DocumentFormat::Json,
            other if other.ends_with("+xml") => DocumentFormat::Xml,
            other if other.starts_with("text/") => DocumentFormat::Text,
            _ => return None,
        })
    }

    fn from_name(name: &str) -> Option<DocumentFormat> {
        let path = name.split(['?', '#']).next().unwrap_or_default();
        let (_, extension) = path.rsplit('/').next().unwrap_or_default().rsplit_once('.')?;
        Some(match extension.to_ascii_lowercase().as_str() {
            "pdf" => DocumentFormat::Pdf,
            "json" | "geojson" | "jsonld" => DocumentFormat::Json,
            "csv" | "tsv" => DocumentFormat::Csv,
            "xml" | "rss" | "atom" | "rdf" => DocumentFormat::Xml,
            "txt" | "text" | "md" | "rst" | "log" | "ndjson" | "yaml" | "yml" | "ics" => DocumentFormat::Text,
            _ => return None,
        })
    }

    /// The engine name of trees of this format. Trees of different formats are not compared.
    fn engine(self) -> &'static str {
        match self {
            DocumentFormat::Text => "text/1",
            DocumentFormat::Json => "json/1",
            DocumentFormat::Csv => "csv/1",
            DocumentFormat::Xml => "xml/1",
            DocumentFormat::Pdf => "pdf/2",
        }
    }

    /// The format of a tree with this engine name. `None` for pages with a layout.
    pub fn from_engine(engine: &str) -> Option<DocumentFormat> {
        DocumentFormat::ALL.into_iter().find(|format| {
            let (name, _) = format.engine().split_once('/').unwrap_or_default();
            engine.strip_prefix(name).is_some_and(|release| release.starts_with('/'))
        })
    }

    /// Reads a document of this format. Links resolve against `url`. `None` if there are no visible words: a scanned
    /// or encrypted PDF, an empty file.
    pub fn read(self, url: &str, content_type: Option<&str>, bytes: &[u8]) -> Option<Document> {
        if self == DocumentFormat::Pdf {
            return pdf::read(bytes)?.finish(self.engine(), bytes);
        }
        let text = decode_text(&bytes[..bytes.len().min(MAX_TEXT_BYTES)], content_type);
        let (format, mut draft) = match self {
            // Invalid JSON is still readable as text.
            DocumentFormat::Json => match json::read(&text) {
                Some(draft) => (self, draft),
                None => (DocumentFormat::Text, text::read(&text)),
            },
            DocumentFormat::Csv => (self, csv::read(&text)),
            DocumentFormat::Xml => (self, xml::read(&text, url)),
            DocumentFormat::Text | DocumentFormat::Pdf => (DocumentFormat::Text, text::read(&text)),
        };
        draft.is_cut |= bytes.len() > MAX_TEXT_BYTES;
        draft.finish(format.engine(), bytes)
    }
}

/// Whether the bytes are not text. Text contains no zero bytes, except UTF-16, which begins with a byte order mark.
fn is_binary(bytes: &[u8]) -> bool {
    let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    !is_utf16 && bytes[..bytes.len().min(MAX_SIGNATURE_BYTES)].contains(&0)
}

#[cfg(test)]
mod tests;
