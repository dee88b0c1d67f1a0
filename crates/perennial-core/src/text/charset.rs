//! Bytes of a text and its Content-Type -> characters, decoded like in a browser.
//!
//! Order of evidence (HTML standard, "determining the character encoding"): byte order mark, charset of the protocol,
//! `<meta>` within the first kilobyte, UTF-8 if the bytes are valid, and finally a guess.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use url::Url;

/// Bytes in which browsers search for `<meta charset>`.
const META_BYTES: usize = 1024;
/// Bytes of a text that are used for a guess.
const MAX_GUESS_BYTES: usize = 1 << 20;

/// The encoding of a text. It also applies to the queries of its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset(&'static Encoding);

impl Default for Charset {
    fn default() -> Charset {
        Charset(UTF_8)
    }
}

impl Charset {
    /// Detects the encoding of a text from its first bytes or all of them.
    pub fn detect(bytes: &[u8], content_type: Option<&str>) -> Charset {
        match Encoding::for_bom(bytes) {
            Some((encoding, _)) => Charset(encoding),
            None => Charset(detect_encoding(bytes, content_type)),
        }
    }

    /// The encoding that the text or its protocol declares. `None` if neither does.
    pub fn declared(bytes: &[u8], content_type: Option<&str>) -> Option<Charset> {
        let head = &bytes[..bytes.len().min(META_BYTES)];
        Encoding::for_bom(bytes)
            .map(|(encoding, _)| encoding)
            .or_else(|| content_type.and_then(|text| charset_in(text.as_bytes())))
            .or_else(|| charset_in_meta(head))
            .map(Charset)
    }

    /// The encoding as a type of `encoding_rs`.
    pub fn encoding(self) -> &'static Encoding {
        self.0
    }

    /// Resolves a reference like browsers: characters of the query become bytes in the document's encoding (URL
    /// standard, "query state").
    pub fn join(self, base: &Url, reference: &str) -> Option<Url> {
        if self.0.output_encoding() == UTF_8 {
            return base.join(reference).ok();
        }
        let options = Url::options().base_url(Some(base));
        options.encoding_override(Some(&|text| self.0.encode(text).0)).parse(reference).ok()
    }
}

/// Decodes a text. Invalid bytes become U+FFFD.
pub fn decode_text<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    decode_with_charset(bytes, content_type).0
}

/// Decodes a text and returns its encoding.
pub fn decode_with_charset<'a>(bytes: &'a [u8], content_type: Option<&str>) -> (Cow<'a, str>, Charset) {
    // `decode` gives a byte order mark precedence.
    let (text, encoding, _) = detect_encoding(bytes, content_type).decode(bytes);
    (text, Charset(encoding))
}

/// Decodes XML. The XML declaration counts too, after the charset of the protocol. A text that is declared as UTF-8
/// but is not is decoded by the other declaration, or by a guess.
pub fn decode_xml<'a>(bytes: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    if Encoding::for_bom(bytes).is_some() {
        return UTF_8.decode(bytes).0;
    }
    if let Some(encoding) = utf16_without_mark(bytes) {
        return encoding.decode_without_bom_handling(bytes).0;
    }
    let said = content_type.and_then(|text| charset_in(text.as_bytes()));
    let declared = charset_in_declaration(&bytes[..bytes.len().min(META_BYTES)]);
    let is_possible = |encoding: &&'static Encoding| *encoding != UTF_8 || is_nearly_utf8(bytes);
    let encoding = [said, declared].into_iter().flatten().find(is_possible).unwrap_or_else(|| guess(bytes));
    encoding.decode(bytes).0
}

/// XML begins with `<`, so a zero among the first two bytes shows UTF-16 and its byte order.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes.get(..4)? {
        [b'<', 0, second, 0] if *second != 0 => Some(encoding_rs::UTF_16LE),
        [0, b'<', 0, second] if *second != 0 => Some(encoding_rs::UTF_16BE),
        _ => None,
    }
}

/// `<?xml version="1.0" encoding="x"?>`
fn charset_in_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let at = find_ignoring_case(head, b"<?xml")?;
    let end = head[at..].iter().position(|&byte| byte == b'>').unwrap_or(head.len() - at);
    let declaration = &head[at..at + end];
    let at = find_ignoring_case(declaration, b"encoding")?;
    let rest = declaration[at + 8..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest.iter().position(|b| b"\"'?> ".contains(b)).unwrap_or(rest.len());
    Encoding::for_label(&rest[..end]).map(Encoding::output_encoding)
}

/// Whether UTF-8 fits: at most one in ten non-ASCII characters is broken.
fn is_nearly_utf8(bytes: &[u8]) -> bool {
    if std::str::from_utf8(bytes).is_ok() {
        return true;
    }
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_GUESS_BYTES)]);
    let (mut n_broken, mut n_beyond_ascii) = (0usize, 0usize);
    for character in text.chars().filter(|character| !character.is_ascii()) {
        n_beyond_ascii += 1;
        n_broken += usize::from(character == char::REPLACEMENT_CHARACTER);
    }
    n_broken * 10 <= n_beyond_ascii
}

fn detect_encoding(bytes: &[u8], content_type: Option<&str>) -> &'static Encoding {
    let head = &bytes[..bytes.len().min(META_BYTES)];
    content_type
        .and_then(|text| charset_in(text.as_bytes()))
        .or_else(|| charset_in_meta(head))
        .unwrap_or_else(|| guess(bytes))
}

/// Guesses the encoding if nothing declares it.
fn guess(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&bytes[..bytes.len().min(MAX_GUESS_BYTES)], bytes.len() <= MAX_GUESS_BYTES);
    let found = detector.guess(None, Utf8Detection::Allow);
    // A single broken character makes UTF-8 invalid, but the guess may still be UTF-8.
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

/// Finds `<meta charset=x>` and `<meta http-equiv=content-type content="text/html; charset=x">`. A page with a
/// readable `<meta>` cannot be UTF-16, even if it declares so.
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
    fn a_readable_meta_with_utf16_means_utf8() {
        check("<meta charset=utf-16>é".as_bytes(), None, "<meta charset=utf-16>é");
    }

    #[test]
    fn xml_declares_its_encoding() {
        let check = |bytes: &[u8], content_type: Option<&str>, text: &str| {
            assert_eq!(decode_xml(bytes, content_type), text)
        };
        check(
            b"<?xml version='1.0' encoding='koi8-r'?>\xC1",
            None,
            "<?xml version='1.0' encoding='koi8-r'?>а",
        );
        check(
            b"<?xml encoding=\"koi8-r\"?>\xE9",
            Some("text/xml; charset=latin1"),
            "<?xml encoding=\"koi8-r\"?>é",
        );
        check(
            b"<?xml encoding='latin1'?>\xE9 a b",
            Some("text/xml; charset=utf-8"),
            "<?xml encoding='latin1'?>é a b",
        );
        check(b"<\0a\0>\0\xe9\0", None, "<a>é");
        check(b"\0<\0a\0>\0\xe9", None, "<a>é");
        check(b"\xff\xfe<\0a\0", Some("text/xml; charset=utf-8"), "<a");
        check("<?xml encoding='bogus'?>é".as_bytes(), None, "<?xml encoding='bogus'?>é");
        check(b"<?xml encoding", None, "<?xml encoding");
    }

    #[test]
    fn truncated_declarations_do_not_panic() {
        for text in ["", "<meta", "<meta charset", "<meta charset=", "<metacharset='", "<meta <meta <meta>"] {
            check(text.as_bytes(), Some("charset="), text);
        }
    }
}
