//! Bytes -> the offset at which a record or a compressed member begins, if any.

use super::header::{RecordHeader, WarcVersion};
use super::member::{GZIP_MAGIC, ZSTD_MAGIC};
use super::reader::MAX_FIRST_LINE;

/// Whether the bytes begin with `WARC/` and a version number.
pub(super) fn is_warc_start(bytes: &[u8]) -> bool {
    matches!(bytes, [b'W', b'A', b'R', b'C', b'/', b'0'..=b'9', b'.', b'0'..=b'9', ..])
}

pub(super) fn is_arc_like(bytes: &[u8]) -> bool {
    [&b"filedesc:"[..], b"http://", b"https://", b"dns:", b"ftp://"].iter().any(|p| bytes.starts_with(p))
}

/// Whether the bytes begin with a version line and a record's field. That counts as a start even inside a line,
/// because a crash may have left bytes before it.
pub(super) fn is_strong_start(bytes: &[u8]) -> bool {
    let rest = match bytes.get(8..) {
        Some([b'\r', b'\n', rest @ ..]) | Some([b'\n', rest @ ..]) => rest,
        _ => return false,
    };
    let begins = |name: &[u8]| rest.len() >= name.len() && rest[..name.len()].eq_ignore_ascii_case(name);
    is_warc_start(bytes) && (begins(b"WARC-") || begins(b"Content-"))
}

/// Finds the first line of a record.
pub(super) fn find_record_start(bytes: &[u8], at_line_start: bool, version: WarcVersion) -> Option<usize> {
    let starts_line = |at: usize| if at == 0 { at_line_start } else { bytes[at - 1] == b'\n' };
    let warc = memchr::memmem::find_iter(bytes, b"WARC/").find(|&at| {
        let here = &bytes[at..];
        is_warc_start(here) && starts_line(at) || is_strong_start(here)
    });
    if version != WarcVersion::Arc {
        return warc;
    }
    let is_arc_line = |at: usize| {
        let line = &bytes[at..bytes.len().min(at + MAX_FIRST_LINE)];
        let parses = |end| parse_arc_line(&line[..end], &mut RecordHeader::default());
        is_arc_like(line) && memchr::memchr(b'\n', line).is_some_and(parses)
    };
    let mut line_starts = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
    let arc = if at_line_start && is_arc_line(0) { Some(0) } else { line_starts.find(|&at| is_arc_line(at)) };
    arc.into_iter().chain(warc).min()
}

/// Finds a gzip or zstd magic number or, with `plain_too`, the first line of a plain record.
pub(super) fn find_member_start(bytes: &[u8], plain_too: bool, at_line_start: bool) -> Option<usize> {
    memchr::memchr3_iter(GZIP_MAGIC[0], ZSTD_MAGIC[0], b'W', bytes).find(|&at| {
        let here = &bytes[at..];
        let starts_line = if at == 0 { at_line_start } else { bytes[at - 1] == b'\n' };
        here.starts_with(&GZIP_MAGIC)
            || here.starts_with(&ZSTD_MAGIC)
            || plain_too && (is_warc_start(here) && starts_line || is_strong_start(here))
    })
}

/// Parses `URL IP date type length`, the five fields of ARC 1; the URL and the media type may contain blanks. The
/// fields get their WARC names, so callers read both formats alike.
pub(super) fn parse_arc_line(line: &[u8], header: &mut RecordHeader) -> bool {
    let line = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some((rest, length)) = line.rsplit_once(' ').filter(|(_, length)| is_number(length)) else {
        return false;
    };
    let Some((url, address, date, media_type)) = cut_at_date(rest).filter(|(url, ..)| url.contains(':'))
    else {
        return false;
    };
    header.clear();
    header.version = WarcVersion::Arc;
    let is_description = url.starts_with("filedesc:");
    header.push("WARC-Type", if is_description { "warcinfo" } else { "response" });
    match url.strip_prefix("filedesc://") {
        Some(name) => header.push("WARC-Filename", name),
        None => header.push("WARC-Target-URI", url),
    }
    header.push("WARC-IP-Address", address);
    header.push("WARC-Date", date);
    header.push("Content-Type", media_type);
    header.push("Content-Length", length);
    true
}

/// Splits `URL IP date type` at the last word that can be the date. A media type with parameters contains blanks, but
/// none of its words is a number of that length.
fn cut_at_date(text: &str) -> Option<(&str, &str, &str, &str)> {
    let is_date = |word: &str| (8..=14).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_digit());
    let mut end = text.len();
    // Real media types have a few words. The limit avoids quadratic time on a long line of blanks.
    for _ in 0..16 {
        let blank = text[..end].rfind(' ')?;
        let (before, media_type) = (&text[..blank], &text[blank + 1..]);
        let (place, date) = before.rsplit_once(' ')?;
        if is_date(date) {
            let (url, address) = place.rsplit_once(' ')?;
            return Some((url, address, date, media_type));
        }
        end = blank;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_the_address_and_the_media_type_of_an_arc_record_are_read() {
        let read = |line: &str| {
            let mut header = RecordHeader::default();
            let get = |header: &RecordHeader, name: &str| header.get(name).unwrap_or_default().to_string();
            parse_arc_line(line.as_bytes(), &mut header).then(|| {
                (
                    get(&header, "WARC-Target-URI"),
                    get(&header, "Content-Type"),
                    get(&header, "Content-Length"),
                )
            })
        };
        for (url, mime) in [
            ("http://a.example/", "text/html"),
            ("http://a.example/a b c.html", "text/html"),
            ("http://a.example/d", "text/html; charset=utf-8"),
            ("http://a.example/e 20090101000000 f", "text/html; charset = utf-8"),
        ] {
            let line = format!("{url} 192.0.2.1 20100101000000 {mime} 42");
            assert_eq!(read(&line), Some((url.to_string(), mime.to_string(), "42".to_string())), "{line}");
        }
        for wrong in [
            "",
            "http://a.example/ 192.0.2.1 2010 text/html 42",
            "a b c d e",
            "http://a.example/ 20100101000000 x 3",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert_eq!(read(&format!("http://a.example/{} 42", " x".repeat(1000))), None);
    }
}
