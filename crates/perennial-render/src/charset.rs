//! Bytes of a page -> text, in the order in which browsers look for its encoding.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::resource::charset_of;

/// Decodes a page: byte order mark, `Content-Type`, a `meta` near the top, then what the bytes look like.
pub fn decode_html(bytes: &[u8], content_type: &str) -> String {
    let named = Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| charset_of(content_type))
        .or_else(|| charset_of_meta(bytes));
    let encoding = named.unwrap_or_else(|| guess(bytes));
    encoding.decode(bytes).0.into_owned()
}

/// The charset of `<meta charset>` or `<meta http-equiv>` within the first 4 KB.
fn charset_of_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).to_ascii_lowercase();
    let found = head.match_indices("<meta").find_map(|(at, _)| {
        let tag = head[at..].split('>').next()?;
        let label = tag.split("charset").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
        let label = label.trim_start_matches(['"', '\'']).split(['"', '\'', ' ', '/', ';']).next()?;
        Encoding::for_label(label.as_bytes())
    })?;
    // A page whose ASCII could be read this far is not in UTF-16, whatever it says (WHATWG HTML, 13.2.3.3).
    let is_utf16 = found == encoding_rs::UTF_16BE || found == encoding_rs::UTF_16LE;
    Some(if is_utf16 { UTF_8 } else { found })
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    let mut detector = chardetng::EncodingDetector::new(chardetng::Iso2022JpDetection::Allow);
    detector.feed(&bytes[..bytes.len().min(1 << 20)], bytes.len() <= 1 << 20);
    let found = detector.guess(None, chardetng::Utf8Detection::Allow);
    if found == UTF_8 { WINDOWS_1252 } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_wins_over_meta_and_meta_over_guess() {
        let bytes = b"<meta charset=iso-8859-2>\xb1";
        assert_eq!(
            decode_html(bytes, "text/html; charset=\"windows-1252\""),
            "<meta charset=iso-8859-2>\u{b1}"
        );
        assert_eq!(decode_html(bytes, "text/html"), "<meta charset=iso-8859-2>ą");
        assert_eq!(decode_html("<p>żółć".as_bytes(), ""), "<p>żółć");
    }

    #[test]
    fn a_meta_that_claims_utf16_is_not_believed() {
        assert_eq!(decode_html("<meta charset=utf-16>é".as_bytes(), ""), "<meta charset=utf-16>é");
    }
}
