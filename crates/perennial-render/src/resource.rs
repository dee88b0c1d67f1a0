//! Reduces a captured stylesheet or image to what layout needs: its text or its size.
//!
//! There is no network here. A resource that the archive lacks is absent, and layout continues without it.

use data_encoding::BASE64;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedResource {
    pub status: u16,
    /// The `Content-Type` header as received; empty if there was none.
    pub content_type: String,
    /// The decoded body.
    pub body: Vec<u8>,
    /// The target of a redirect, for a browser, which follows it itself.
    pub location: Option<String>,
    /// Values of `Set-Cookie`, if the browser keeps cookies.
    pub cookies: Vec<String>,
}

/// Finds a captured resource by its absolute URL.
pub type SubresourceLookup<'a> = dyn Fn(&str) -> Option<CapturedResource> + Sync + 'a;

/// Finds no resource. Only the styles inside the page apply.
pub fn nothing(_url: &str) -> Option<CapturedResource> {
    None
}

/// A subresource in the form that the layout engine needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Subresource {
    /// Width and height of an image in CSS pixels.
    Image(u32, u32),
    /// A stylesheet in UTF-8.
    Css(String),
    /// Irrelevant to layout, or not captured.
    Absent,
}

/// Looks several subresources up.
pub(crate) fn all_subresources(urls: &[String], lookup: &SubresourceLookup) -> Vec<Subresource> {
    urls.iter().map(|url| subresource(url, lookup)).collect()
}

/// Looks a subresource up and reduces it for layout.
pub fn subresource(url: &str, lookup: impl Fn(&str) -> Option<CapturedResource>) -> Subresource {
    let captured = match url.strip_prefix("data:") {
        Some(rest) => data_url(rest),
        None => lookup(url),
    };
    match captured {
        Some(captured) if captured.status == 0 || (200..300).contains(&captured.status) => reduce(captured),
        _ => Subresource::Absent,
    }
}

fn reduce(captured: CapturedResource) -> Subresource {
    if let Some((w, h)) = image_size(&captured.body) {
        return Subresource::Image(w, h);
    }
    let is_font =
        matches!(captured.body.get(..4), Some(b"wOFF" | b"wOF2" | b"OTTO" | b"true" | b"\0\x01\0\0"));
    let kind = captured.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_other = kind.starts_with("font/") || kind.starts_with("image/") || kind.ends_with("javascript");
    if is_font || is_other {
        return Subresource::Absent;
    }
    Subresource::Css(decode_css(&captured.body, &captured.content_type))
}

/// Decodes a `data:` URL, given without its scheme.
fn data_url(rest: &str) -> Option<CapturedResource> {
    let (head, data) = rest.split_once(',')?;
    let bytes = percent_decode(data);
    let (content_type, body) = match head.strip_suffix(";base64") {
        Some(content_type) => {
            let packed: Vec<u8> = bytes.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
            (content_type, BASE64.decode(&packed).ok()?)
        }
        None => (head, bytes),
    };
    Some(CapturedResource {
        status: 200,
        content_type: content_type.to_string(),
        body,
        ..CapturedResource::default()
    })
}

fn percent_decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[at], hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// Width and height of an image from its first bytes, without decoding it.
pub fn image_size(bytes: &[u8]) -> Option<(u32, u32)> {
    if let Ok(size) = imagesize::blob_size(bytes) {
        return Some((size.width.min(65_535) as u32, size.height.min(65_535) as u32));
    }
    svg_size(bytes)
}

/// Size of an SVG image: its `width` and `height`, otherwise its `viewBox`, otherwise the CSS default for replaced
/// elements.
fn svg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    let start = head.find("<svg")?;
    // Only the beginning counts, because a page or a stylesheet may contain `<svg` further down.
    let is_prolog = |part: &str| part.trim_start_matches('\u{feff}').trim_start().is_empty();
    if !is_prolog(&head[..start]) && !head.trim_start_matches('\u{feff}').trim_start().starts_with(['<']) {
        return None;
    }
    let tag = &head[start..start + head[start..].find('>').unwrap_or(head.len() - start)];
    let attribute = |name: &str| {
        let from = tag.find(&format!(" {name}="))? + name.len() + 2;
        let quote = tag[from..].chars().next().filter(|c| matches!(c, '"' | '\''))?;
        tag[from + 1..].split(quote).next()
    };
    svg_intrinsic_size(attribute("width"), attribute("height"), attribute("viewBox"))
}

/// Size of an `svg` element from its attributes.
pub fn svg_intrinsic_size(
    width: Option<&str>,
    height: Option<&str>,
    view_box: Option<&str>,
) -> Option<(u32, u32)> {
    let pixels = |text: Option<&str>| {
        let text = text?.trim();
        let number: f32 = text.strip_suffix("px").unwrap_or(text).trim().parse().ok()?;
        (number > 0.0).then_some(number)
    };
    let mut numbers =
        view_box.unwrap_or_default().split([' ', ',']).filter_map(|n| n.trim().parse::<f32>().ok());
    let view = numbers.nth(2).zip(numbers.next()).filter(|(w, h)| *w > 0.0 && *h > 0.0);
    let (w, h) = match (pixels(width), pixels(height), view) {
        (Some(w), Some(h), _) => (w, h),
        (Some(w), None, Some((vw, vh))) => (w, w * vh / vw),
        (None, Some(h), Some((vw, vh))) => (h * vw / vh, h),
        (Some(w), None, None) => (w, 150.0),
        (None, Some(h), None) => (300.0, h),
        (None, None, Some((vw, vh))) => (300.0, 300.0 * vh / vw),
        (None, None, None) => (300.0, 150.0),
    };
    Some((w.clamp(1.0, 65_535.0) as u32, h.clamp(1.0, 65_535.0) as u32))
}

/// The text of a stylesheet. The charset comes from the byte order mark, the header or `@charset`; otherwise it is
/// UTF-8 if valid, or windows-1252.
pub fn decode_css(bytes: &[u8], content_type: &str) -> String {
    let named = Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| declared_charset(content_type))
        .or_else(|| charset_rule(bytes));
    let encoding = match named {
        Some(encoding) if encoding != UTF_8 => encoding,
        _ if std::str::from_utf8(bytes).is_ok() => UTF_8,
        Some(encoding) => encoding,
        None => WINDOWS_1252,
    };
    encoding.decode(bytes).0.into_owned()
}

fn charset_rule(bytes: &[u8]) -> Option<&'static Encoding> {
    let rest = bytes.strip_prefix(b"@charset \"")?;
    Encoding::for_label(rest.split(|&byte| byte == b'"').next()?)
}

/// The charset in a `Content-Type` field.
pub fn declared_charset(content_type: &str) -> Option<&'static Encoding> {
    let lower = content_type.to_ascii_lowercase();
    let label = lower.split("charset=").nth(1)?;
    Encoding::for_label(label.trim_matches(['"', '\'', ' ']).split([';', '"', '\'', ' ']).next()?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_from_headers_alone() {
        let png = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &[0, 0, 1, 0, 0, 0, 0, 64, 8, 6, 0, 0, 0]].concat();
        assert_eq!(image_size(&png), Some((256, 64)));
        assert_eq!(
            image_size(br#"<?xml version="1.0"?><svg width="24px" viewBox="0 0 48 96"/>"#),
            Some((24, 48))
        );
        assert_eq!(image_size(b".a{content:'<svg>'}"), None);
    }

    #[test]
    fn css_is_transcoded() {
        assert_eq!(decode_css(b"a::before{content:'\xe9'}", "text/css"), "a::before{content:'é'}");
        assert_eq!(decode_css("é".as_bytes(), "text/css; charset=utf-8"), "é");
        assert_eq!(decode_css(b"@charset \"iso-8859-2\";\xb1", ""), "@charset \"iso-8859-2\";ą");
    }

    #[test]
    fn data_urls_are_resources_too() {
        assert_eq!(
            subresource("data:text/css,a%7Bcolor:red%7D", nothing),
            Subresource::Css("a{color:red}".into())
        );
        assert_eq!(subresource("data:text/css;base64,YXt9", nothing), Subresource::Css("a{}".into()));
        assert_eq!(subresource("http://x/missing.css", nothing), Subresource::Absent);
    }

    #[test]
    fn errors_of_the_server_are_absent() {
        let page = |_: &str| {
            Some(CapturedResource {
                status: 404,
                content_type: "text/html".into(),
                body: b"<p>".into(),
                ..CapturedResource::default()
            })
        };
        assert_eq!(subresource("http://x/a.css", page), Subresource::Absent);
    }
}
