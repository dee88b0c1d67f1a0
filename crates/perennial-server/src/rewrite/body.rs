//! Rewrites the body of an archived response as a stream.
//!
//! A page is streamed. A stylesheet or a script is held in memory, because a token may extend to its end. If it is too long, it is
//! sent unchanged, and the response's policy limits it.

use std::borrow::Cow;

use encoding_rs::{Decoder, UTF_8};
use lol_html::AsciiCompatibleEncoding;
use perennial_core::memento::Modifier;
use perennial_core::text::charset::Charset;

use super::css::rewrite_css;
use super::html::{PageError, PageOptions, PageRewriter};
use super::script::rewrite_script;
use super::url::RewritePlace;

/// A longer stylesheet or script is sent unchanged.
pub const MAX_TEXT_BYTES: usize = 16 << 20;
/// Bytes of a page from which an undeclared encoding is guessed.
const GUESS_BYTES: usize = 256 << 10;
/// Bytes in which a page may declare its encoding.
const SAID_BYTES: usize = 1024;

/// The kind of content as which a body is replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Treatment {
    Page,
    /// XHTML or SVG, which must stay well-formed.
    Xml,
    Style,
    Script,
    /// Not rewritten.
    Bytes,
}

/// Chooses the treatment by the modifier of the URL, `Sec-Fetch-Dest`, the archived media type and the first bytes.
pub fn treatment(
    part: Modifier,
    destination: Option<&str>,
    media_type: Option<&str>,
    start: &[u8],
) -> Treatment {
    match destination {
        // What a script fetches is data; it is rewritten when it becomes part of the page.
        Some("empty" | "font" | "audio" | "video" | "track" | "manifest") => return Treatment::Bytes,
        Some("script" | "worker" | "sharedworker") => return Treatment::Script,
        Some("style") => return Treatment::Style,
        _ => {}
    }
    match (part, media_type) {
        (Modifier::Script, Some("text/html")) if looks_like_page(start) => Treatment::Bytes,
        (Modifier::Script, _) => Treatment::Script,
        (Modifier::Style, Some("text/html")) if looks_like_page(start) => Treatment::Bytes,
        (Modifier::Style, _) => Treatment::Style,
        (_, Some("text/html")) => Treatment::Page,
        (_, Some("application/xhtml+xml" | "image/svg+xml")) => Treatment::Xml,
        (Modifier::Image, _) => Treatment::Bytes,
        (_, Some("text/css")) => Treatment::Style,
        (Modifier::Page | Modifier::Frameset | Modifier::Frame, None) if looks_like_page(start) => {
            Treatment::Page
        }
        _ => Treatment::Bytes,
    }
}

/// Whether bytes without a type begin like a page.
fn looks_like_page(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let words: [&[u8]; 8] =
        [b"<!doctype html", b"<html", b"<head", b"<body", b"<title", b"<script", b"<table", b"<!--"];
    words.iter().any(|word| start.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)))
}

/// Whether these first bytes suffice to determine the encoding.
pub fn is_enough(treatment: Treatment, start: &[u8], content_type: Option<&str>) -> bool {
    match treatment {
        Treatment::Page | Treatment::Xml => {
            start.len() >= GUESS_BYTES
                || start.len() >= SAID_BYTES && Charset::declared(start, content_type).is_some()
        }
        Treatment::Bytes => start.len() >= SAID_BYTES,
        // These are held whole; what exceeds the limit is sent unchanged.
        Treatment::Style | Treatment::Script => start.len() > MAX_TEXT_BYTES,
    }
}

/// Rewrites one body.
pub enum BodyRewriter {
    /// A page in its own encoding.
    Page(Box<PageRewriter>),
    /// A page in an encoding that does not contain ASCII, converted to UTF-8.
    Decoded(Box<PageRewriter>, Box<Decoder>),
    Bytes,
}

/// A rewritten stylesheet or script, and the charset for its media type.
pub struct RewrittenFile {
    pub bytes: Vec<u8>,
    pub charset: Option<&'static str>,
}

impl BodyRewriter {
    /// Starts a page from its first bytes; also returns the charset for its media type.
    pub fn page(
        options: PageOptions,
        start: &[u8],
        content_type: Option<&str>,
    ) -> (BodyRewriter, &'static str) {
        let mut options = options;
        // A truncated character would suggest a different encoding.
        let whole = start.iter().rposition(|byte| byte.is_ascii()).map_or(start, |last| &start[..=last]);
        options.place.charset = Charset::detect(whole, content_type);
        let encoding = options.place.charset.encoding();
        match AsciiCompatibleEncoding::new(encoding) {
            Some(compatible) => {
                let page = PageRewriter::new(options, compatible, false);
                (BodyRewriter::Page(Box::new(page)), encoding.name())
            }
            None => {
                let page = PageRewriter::new(options, AsciiCompatibleEncoding::utf_8(), false);
                let decoder = Box::new(encoding.new_decoder_with_bom_removal());
                (BodyRewriter::Decoded(Box::new(page), decoder), UTF_8.name())
            }
        }
    }

    /// Rewrites more bytes; returns those that are ready.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Vec<u8>, PageError> {
        match self {
            BodyRewriter::Page(page) => page.write(bytes),
            BodyRewriter::Decoded(page, decoder) => page.write(decode(decoder, bytes, false).as_bytes()),
            BodyRewriter::Bytes => Ok(bytes.to_vec()),
        }
    }

    pub fn end(self) -> Result<Vec<u8>, PageError> {
        match self {
            BodyRewriter::Page(page) => page.end(),
            BodyRewriter::Decoded(mut page, mut decoder) => {
                let mut out = page.write(decode(&mut decoder, b"", true).as_bytes())?;
                out.extend(page.end()?);
                Ok(out)
            }
            BodyRewriter::Bytes => Ok(Vec::new()),
        }
    }
}

fn decode(decoder: &mut Decoder, bytes: &[u8], is_last: bool) -> String {
    let mut text =
        String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len() * 3));
    let _ = decoder.decode_to_string(bytes, &mut text, is_last);
    text
}

/// Rewrites a whole stylesheet or script.
pub fn rewrite_whole(
    treatment: Treatment,
    bytes: &[u8],
    content_type: Option<&str>,
    place: &RewritePlace,
) -> RewrittenFile {
    let (text, charset) = read_text(bytes, content_type);
    let place = RewritePlace { charset: Charset::default(), ..place.clone() };
    let rewritten = match treatment {
        Treatment::Style => Cow::Owned(rewrite_css(&text, &place)),
        Treatment::Script => rewrite_script(&text, &place),
        _ => Cow::Borrowed(text.as_ref()),
    };
    match charset {
        Some(_) => RewrittenFile { bytes: rewritten.into_owned().into_bytes(), charset },
        None => RewrittenFile { bytes: rewritten.chars().map(|c| c as u32 as u8).collect(), charset },
    }
}

/// Decodes text by its declared or detected encoding. If there is neither, the requesting page determines it, so each byte becomes
/// one character here and is written back unchanged.
fn read_text<'a>(bytes: &'a [u8], content_type: Option<&str>) -> (Cow<'a, str>, Option<&'static str>) {
    let said = Charset::declared(&bytes[..bytes.len().min(SAID_BYTES)], content_type);
    match (said, std::str::from_utf8(bytes)) {
        (Some(charset), _) if charset.encoding() != UTF_8 => {
            (charset.encoding().decode(bytes).0, Some(UTF_8.name()))
        }
        (_, Ok(text)) => (Cow::Borrowed(text.trim_start_matches('\u{feff}')), Some(UTF_8.name())),
        (Some(_), _) => (String::from_utf8_lossy(bytes), Some(UTF_8.name())),
        (None, Err(_)) => (Cow::Owned(bytes.iter().map(|byte| *byte as char).collect()), None),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn options() -> PageOptions {
        PageOptions {
            place: RewritePlace::of_test("2020", "http://a.example/"),
            injection: None,
            is_outermost: true,
            n_nested: 0,
        }
    }

    fn page(bytes: &[u8], content_type: Option<&str>) -> (Vec<u8>, &'static str) {
        let (mut rewriter, charset) = BodyRewriter::page(options(), bytes, content_type);
        let mut out = Vec::new();
        // Byte by byte, which splits tags and characters.
        for byte in bytes {
            out.extend(rewriter.write(&[*byte]).unwrap());
        }
        out.extend(rewriter.end().unwrap());
        (out, charset)
    }

    #[test]
    fn a_page_stays_in_its_encoding_and_so_do_its_queries() {
        let (out, charset) = page(b"<a href='?q=\xe4'>\xe4", Some("text/html; charset=iso-8859-1"));
        assert_eq!(charset, "windows-1252");
        assert_eq!(out, b"<a href=\"/web/2020mp_/http://a.example/?q=%E4\">\xe4".as_slice());
    }

    #[test]
    fn what_has_no_ascii_goes_through_utf8() {
        let utf16: Vec<u8> = "\u{feff}<a href=x>ä</a>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let (out, charset) = page(&utf16, None);
        assert_eq!(charset, "UTF-8");
        assert_eq!(String::from_utf8(out).unwrap(), "<a href=\"/web/2020mp_/http://a.example/x\">ä</a>");
    }

    #[test]
    fn styles_without_an_encoding_keep_their_bytes() {
        let place = options().place;
        let whole = rewrite_whole(Treatment::Style, b"a{content:'\xe4';b:url(/x)}", None, &place);
        assert_eq!(whole.charset, None);
        assert_eq!(whole.bytes, b"a{content:'\xe4';b:url(\"/web/2020oe_/http://a.example/x\")}".as_slice());
        let whole =
            rewrite_whole(Treatment::Style, b"a{content:'\xe4'}", Some("text/css; charset=latin1"), &place);
        assert_eq!((whole.bytes, whole.charset), ("a{content:'ä'}".into(), Some("UTF-8")));
    }

    #[test]
    fn what_a_body_is_shown_as() {
        let check = |part, destination, media, expected| {
            assert_eq!(treatment(part, destination, media, b"<!DOCTYPE html>"), expected)
        };
        check(Modifier::Page, None, Some("text/html"), Treatment::Page);
        check(Modifier::Page, Some("empty"), Some("text/html"), Treatment::Bytes);
        check(Modifier::Page, Some("script"), Some("text/plain"), Treatment::Script);
        check(Modifier::Script, None, Some("text/html"), Treatment::Bytes);
        check(Modifier::Script, None, Some("text/plain"), Treatment::Script);
        check(Modifier::Page, None, None, Treatment::Page);
        check(Modifier::Page, None, Some("text/javascript"), Treatment::Bytes);
        check(Modifier::Image, None, Some("image/svg+xml"), Treatment::Xml);
    }
}
