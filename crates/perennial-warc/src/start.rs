//! Bytes -> the offset at which a record or a compressed member begins, if any.

use super::header::{RecordHeader, WarcVersion, escape_unless_utf8};
use super::member::{GZIP_MAGIC, ZSTD_MAGIC};
use super::reader::MAX_FIRST_LINE;

/// Whether the bytes begin with `WARC/` and a version number.
pub(super) fn is_warc_start(bytes: &[u8]) -> bool {
    matches!(bytes, [b'W', b'A', b'R', b'C', b'/', b'0'..=b'9', b'.' | b'-', b'0'..=b'9', ..])
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

/// Parses `URL IP date type length`, the five fields of ARC 1; the URL and the media type may contain blanks. ARC 2 has
/// more fields after the type. The fields get their WARC names, so callers read both formats alike.
pub(super) fn parse_arc_line(line: &[u8], header: &mut RecordHeader) -> bool {
    let line = escape_unless_utf8(line.strip_suffix(b"\r").unwrap_or(line));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some((rest, length)) = line.trim_ascii_end().rsplit_once(' ') else { return false };
    let length = match length.strip_prefix('-') {
        // A writer that did not know the length. The search for the next record skips the block.
        Some(rest) if is_number(rest) => "0",
        _ if is_number(length) => length,
        _ => return false,
    };
    let Some(fields) = ArcFields::parse(rest).filter(|fields| fields.url.contains(':')) else {
        return false;
    };
    header.clear();
    header.version = WarcVersion::Arc;
    let is_description = fields.url.starts_with("filedesc:");
    header.push("WARC-Type", if is_description { "warcinfo" } else { "response" });
    match fields.url.strip_prefix("filedesc://") {
        Some(name) => header.push("WARC-Filename", name),
        None => header.push("WARC-Target-URI", fields.url),
    }
    header.push("WARC-IP-Address", fields.address);
    header.push("WARC-Date", &fields.date);
    header.push("Content-Type", fields.media_type);
    header.push("Content-Length", length);
    true
}

/// The fields of an ARC line before its length.
struct ArcFields<'a> {
    url: &'a str,
    address: &'a str,
    /// Up to fourteen digits.
    date: String,
    media_type: &'a str,
}

/// Words at the end of a line that are searched for its date. Real media types have a few words. The limit avoids
/// quadratic time on a long line of blanks.
const MAX_WORDS: usize = 17;

impl<'a> ArcFields<'a> {
    /// Finds the date and the address. A URL and a media type may contain numbers, so a date next to an address is
    /// preferred. Some writers swapped date and address, or date and media type.
    fn parse(text: &'a str) -> Option<ArcFields<'a>> {
        let mut words: Vec<(usize, &str)> = Vec::new();
        let mut end = text.len();
        while words.len() < MAX_WORDS {
            let start = text[..end].rfind(' ').map_or(0, |blank| blank + 1);
            words.push((start, &text[start..end]));
            if start == 0 {
                break;
            }
            end = start - 1;
        }
        words.reverse();
        let word = |at: usize| words.get(at).map_or("", |&(_, word)| word);
        let url_before =
            |at: usize| Some(text[..words.get(at)?.0].trim_ascii_end()).filter(|url| !url.is_empty());
        let after = |at: usize| words.get(at).map_or("", |&(start, _)| &text[start..]);
        let dates = || (1..words.len()).rev().filter_map(|at| Some((at, arc_date(word(at))?)));
        let usual = dates().find(|(at, _)| is_address(word(at - 1)));
        let usual =
            usual.and_then(|(at, date)| Some((url_before(at - 1)?, word(at - 1), date, after(at + 1))));
        let address_last = || {
            let (at, date) = dates().find(|(at, _)| is_address(word(at + 1)))?;
            Some((url_before(at)?, word(at + 1), date, after(at + 2)))
        };
        let date_last = || {
            let is_swapped = |at: usize| at >= 2 && word(at - 1).contains('/') && is_address(word(at - 2));
            let (at, date) = dates().find(|&(at, _)| is_swapped(at))?;
            Some((url_before(at - 2)?, word(at - 2), date, word(at - 1)))
        };
        let without_address = || {
            let (at, date) = dates().find(|&(at, _)| at >= 2 && at + 1 < words.len())?;
            Some((url_before(at - 1)?, word(at - 1), date, after(at + 1)))
        };
        let found = usual.or_else(address_last).or_else(date_last).or_else(without_address)?;
        let (url, address, date, media_type) = found;
        Some(ArcFields { url, address, date, media_type })
    }
}

fn is_address(word: &str) -> bool {
    word.parse::<std::net::IpAddr>().is_ok()
        || word.split('.').count() == 4 && word.split('.').all(|part| part.parse::<u16>().is_ok())
}

/// The digits of a date, of which there are 8 to 18. Letters may follow. Digits after the seconds are dropped, and
/// numbers that no calendar has are replaced by the nearest, because the record is a capture nevertheless.
fn arc_date(word: &str) -> Option<String> {
    let n_digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let rest_is_letters = word[n_digits..].bytes().all(|b| b.is_ascii_alphabetic());
    if !(8..=18).contains(&n_digits) || !rest_is_letters {
        return None;
    }
    let digits = &word[..n_digits.min(14) / 2 * 2];
    let part = |from: usize, least: u32, most: u32| {
        digits.get(from..from + 2).and_then(|two| two.parse().ok()).map(|n: u32| n.clamp(least, most))
    };
    let mut date = digits[..4].to_string();
    let month = part(4, 1, 12)?;
    let n_days = match month {
        2 => 28 + u32::from(digits[..4].parse::<u32>().ok()? % 4 == 0),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let parts = [Some(month), part(6, 1, n_days), part(8, 0, 23), part(10, 0, 59), part(12, 0, 59)];
    parts.iter().flatten().for_each(|part| date.push_str(&format!("{part:02}")));
    Some(date)
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

    fn fields(line: &[u8]) -> Option<[String; 4]> {
        let mut header = RecordHeader::default();
        parse_arc_line(line, &mut header).then(|| {
            let names = ["WARC-Target-URI", "WARC-IP-Address", "WARC-Date", "Content-Type"];
            names.map(|name| header.get(name).unwrap_or_default().to_string())
        })
    }

    #[test]
    fn lines_of_old_and_careless_writers_are_read() {
        for (line, date, media_type) in [
            ("http://a.example/ 192.0.2.1 20100101000000123 text/html 42", "20100101000000", "text/html"),
            ("http://a.example/ 192.0.2.1 201001010000001234 text/html 42", "20100101000000", "text/html"),
            ("http://a.example/ 192.0.2.1 201001010000007 text/html 42", "20100101000000", "text/html"),
            ("http://a.example/ 192.0.2.1 20100101000000GMT text/html 42", "20100101000000", "text/html"),
            ("http://a.example/ 192.0.2.1 2010010100 text/html 42", "2010010100", "text/html"),
            ("http://a.example/ 192.0.2.1 20101300256199 text/html 42", "20101201235959", "text/html"),
            ("http://a.example/ 20100101000000 192.0.2.1 text/html 42", "20100101000000", "text/html"),
            ("http://a.example/ 192.0.2.1 text/html 20100101000000 42", "20100101000000", "text/html"),
            ("http://a.example/ 192.0.2.1 20100101000000 42", "20100101000000", ""),
            (
                "http://a.example/ 192.0.2.1 20100101000000 text/html 200 - - 12345678 x.arc 42 ",
                "20100101000000",
                "text/html 200 - - 12345678 x.arc",
            ),
        ] {
            let expected = ["http://a.example/", "192.0.2.1", date, media_type].map(str::to_string);
            assert_eq!(fields(line.as_bytes()), Some(expected), "{line}");
        }
        let version =
            b"filedesc://IA-001102.arc 0.0.0.0 19960923142103 text/plain 200 - - 0 IA-001102.arc 122";
        assert_eq!(fields(version).unwrap()[2], "19960923142103");
    }

    #[test]
    fn urls_in_other_encodings_keep_their_bytes() {
        let url = |line: &[u8]| {
            fields(&[line, b" 192.0.2.1 20100101000000 text/html 42"].concat()).unwrap()[0].clone()
        };
        assert_eq!(url(b"http://a.example/caf\xe9"), "http://a.example/caf%e9");
        assert_eq!(url(b"http://a.example/\xd6\xd0\xce\xc4 x"), "http://a.example/%d6%d0%ce%c4 x");
        assert_eq!(url("http://a.example/é".as_bytes()), "http://a.example/é");
    }
}
