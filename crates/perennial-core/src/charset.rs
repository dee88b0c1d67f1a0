//! Bytes of a text and its Content-Type -> characters, as a browser would read them.
//!
//! Order of evidence (HTML standard, "determining the character encoding"): byte order mark, the protocol's
//! charset, `<meta>` within the first kilobyte, then UTF-8 if the bytes are valid, else what they look like.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use url::Url;

/// Bytes in which browsers look for `<meta charset>`.
const META_BYTES: usize = 1024;
/// Bytes of a text from which its encoding is guessed.
const MAX_GUESS_BYTES: usize = 1 << 20;

/// The encoding of a text. The queries of its links are encoded alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset(&'static Encoding);

impl Default for Charset {
    fn default() -> Charset {
        Charset(UTF_8)
    }
}

impl Charset {
    /// Resolves a reference as browsers do: characters of the query become bytes of the document's encoding
    /// (URL standard, "query state").
    pub fn join(self, base: &Url, reference: &str) -> Option<Url> {
        if self.0.output_encoding() == UTF_8 {
            return base.join(reference).ok();
        }
        let options = Url::options().base_url(Some(base));
        options.encoding_override(Some(&|text| self.0.encode(text).0)).parse(reference).ok()
    }
}

/// Decodes a text. Bytes that are invalid become U+FFFD.
pub fn decode_text<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    decode_with_charset(bytes, content_type).0
}

/// Decodes a text, and returns its encoding too.
pub fn decode_with_charset<'a>(bytes: &'a [u8], content_type: Option<&str>) -> (Cow<'a, str>, Charset) {
    // `decode` itself lets a byte order mark win.
    let (text, encoding, _) = encoding_of(bytes, content_type).decode(bytes);
    (text, Charset(encoding))
}

fn encoding_of(bytes: &[u8], content_type: Option<&str>) -> &'static Encoding {
    let head = &bytes[..bytes.len().min(META_BYTES)];
    content_type
        .and_then(|text| charset_in(text.as_bytes()))
        .or_else(|| charset_in_meta(head))
        .unwrap_or_else(|| guess(bytes))
}

/// Guesses the encoding from the bytes when nothing declares it.
fn guess(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&bytes[..bytes.len().min(MAX_GUESS_BYTES)], bytes.len() <= MAX_GUESS_BYTES);
    let found = detector.guess(None, Utf8Detection::Allow);
    // A text with one broken character is not valid UTF-8, but no other encoding fits it better.
    if found == UTF_8 { WINDOWS_1252 } else { found }
}

/// The value after `charset=`, as in `text/html; charset="utf-8"`.
fn charset_in(text: &[u8]) -> Option<&'static Encoding> {
    let at = find_ignoring_case(text, b"charset")?;
    let rest = text[at + 7..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest.iter().position(|b| b"\"';> /".contains(b) || b.is_ascii_whitespace());
    Encoding::for_label(&rest[..end.unwrap_or(rest.len())])
}

/// Both `<meta charset=x>` and `<meta http-equiv=content-type content="text/html; charset=x">`. A page that is
/// ASCII-compatible enough to hold a readable `<meta>` cannot be UTF-16, whatever it says.
fn charset_in_meta(head: &[u8]) -> Option<&'static Encoding> {
    let mut from = 0;
    while let Some(at) = find_ignoring_case(&head[from..], b"<meta") {
        let tag = &head[from + at..];
        let end = tag.iter().position(|&b| b == b'>').unwrap_or(tag.len());
        if let Some(found) = charset_in(&tag[..end]) {
            return Some(found.output_encoding());
        }
        from += at + end.max(5);
    }
    None
}

fn find_ignoring_case(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|window| window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], content_type: Option<&str>, text: &str) {
        assert_eq!(decode_text(bytes, content_type), text);
    }

    #[test]
    fn each_source_of_evidence_counts_in_its_order() {
        check(b"\xEF\xBB\xBFcaf\xC3\xA9", Some("text/html; charset=latin1"), "café");
        check(b"caf\xE9", Some("text/html; Charset = \"ISO-8859-1\""), "café");
        check(b"<META charset='koi8-r'>\xC1", None, "<META charset='koi8-r'>а");
        check(
            b"<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>\xE0",
            Some("text/html"),
            "<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>а",
        );
        check("caf\u{e9}".as_bytes(), None, "café");
        check(b"caf\xE9", Some("text/html; charset=no-such"), "café");
    }

    #[test]
    fn a_readable_meta_that_says_utf16_means_utf8() {
        check("<meta charset=utf-16>é".as_bytes(), None, "<meta charset=utf-16>é");
    }

    #[test]
    fn odd_ends_do_not_panic() {
        for text in ["", "<meta", "<meta charset", "<meta charset=", "<metacharset='", "<meta <meta <meta>"] {
            check(text.as_bytes(), Some("charset="), text);
        }
    }
}
