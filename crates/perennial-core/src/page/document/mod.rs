//! A document that is no HTML -> the blocks that a reader sees: text, JSON, CSV, XML, feeds, PDF.
//!
//! Each kind is read into units, which are a paragraph, a row, a record or an item, and `draft` groups them into blocks. Groups end
//! where the content says so and not after so many units, so that a unit that came or went moves no other one into another block.
//!
//! Strangers wrote the bytes. Every reader works in time and memory that their length bounds, and none of them fails: what
//! cannot be read gives `None`, and its changes are judged by digest.

mod csv;
mod draft;
mod json;
mod pdf;
mod text;
mod xml;

use crate::page::segment::BlockTree;
use crate::text::charset::decode_text;

/// Bytes of a text that are read.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Bytes in which the signature of a PDF is looked for, as readers of PDF do.
const MAX_SIGNATURE_BYTES: usize = 1024;

/// A document as a reader sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct Document {
    /// Its blocks; the caller sets address and version.
    pub tree: BlockTree,
    /// Its title; empty where it has none.
    pub title: String,
}

/// The formats of documents that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DocumentFormat {
    /// Paragraphs of text.
    Text,
    /// JSON.
    Json,
    /// Comma-separated values, or values with another separator.
    Csv,
    /// XML, among it RSS and Atom.
    Xml,
    /// PDF.
    Pdf,
}

impl DocumentFormat {
    /// All of them.
    pub const ALL: [DocumentFormat; 5] = [
        DocumentFormat::Text,
        DocumentFormat::Json,
        DocumentFormat::Csv,
        DocumentFormat::Xml,
        DocumentFormat::Pdf,
    ];

    /// The format by what the server says of a document, or where that says nothing, by the name in its address. `None`: nothing
    /// that can be read here, such as HTML or a picture.
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
        // Servers deliver much that is no text as text.
        found.filter(|format| *format == DocumentFormat::Pdf || !is_binary(bytes))
    }

    /// The format of a file by its name and its first bytes. `None` for HTML and for what cannot be read here.
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

    /// The name that trees of this format have in place of a layout engine's: trees of two formats are not compared.
    fn engine(self) -> &'static str {
        match self {
            DocumentFormat::Text => "text/1",
            DocumentFormat::Json => "json/1",
            DocumentFormat::Csv => "csv/1",
            DocumentFormat::Xml => "xml/1",
            DocumentFormat::Pdf => "pdf/2",
        }
    }

    /// The format of the document that a tree of this engine was read from; `None` for pages that were laid out.
    pub fn from_engine(engine: &str) -> Option<DocumentFormat> {
        DocumentFormat::ALL.into_iter().find(|format| {
            let (name, _) = format.engine().split_once('/').unwrap_or_default();
            engine.strip_prefix(name).is_some_and(|release| release.starts_with('/'))
        })
    }

    /// Reads a document of this format; `url` is its address, against which links resolve. `None` when a reader would see no word
    /// of it: a scanned or encrypted PDF, an empty file.
    pub fn read(self, url: &str, content_type: Option<&str>, bytes: &[u8]) -> Option<Document> {
        if self == DocumentFormat::Pdf {
            return pdf::read(bytes)?.finish(self.engine(), bytes);
        }
        let text = decode_text(&bytes[..bytes.len().min(MAX_TEXT_BYTES)], content_type);
        let (format, mut draft) = match self {
            // What claims to be JSON and is not can still be read by people.
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

/// Whether the bytes are no text: no text holds a zero byte, unless it is UTF-16, which begins with its mark.
fn is_binary(bytes: &[u8]) -> bool {
    let is_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    !is_utf16 && bytes[..bytes.len().min(MAX_SIGNATURE_BYTES)].contains(&0)
}

#[cfg(test)]
mod tests;
