//! Bytes of a text and its Content-Type -> characters, as a browser would read them.
//!
//! Order of evidence (HTML standard, "determining the character encoding"): byte order mark, the protocol's
//! charset, `<meta>` within the first kilobyte, then UTF-8 if the bytes are valid, else windows-1252.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far browsers look for `<meta charset>`.
const META_BYTES: usize = 1024;

/// Decodes a text; bytes that make no sense become U+FFFD.
pub fn decode_text<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    // `decode` itself lets a byte order mark win.
    encoding_of(bytes, content_type).decode(bytes).0
}

fn encoding_of(bytes: &[u8], content_type: Option<&str>) -> &'static Encoding {
    let head = &bytes[..bytes.len().min(META_BYTES)];
    content_type
        .and_then(|text| charset_in(text.as_bytes()))
        .or_else(|| charset_in_meta(head))
        .unwrap_or_else(|| if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 })
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
