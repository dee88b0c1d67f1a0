//! HTTP head -> index fields.
//!
//! Used by the writer on what it writes and by the scan on what it reads, so that both give the same rows.

/// The media type as index files have it: the field's value up to the first blank or semicolon.
pub(crate) fn index_mime(content_type: &str) -> Option<String> {
    let word = content_type.split(|c: char| c == ';' || c.is_whitespace()).next()?;
    (!word.is_empty()).then(|| word.to_string())
}
