//! A captured stylesheet -> a self-contained one: imported stylesheets, pictures and fonts are embedded as far as the
//! limits allow.

use std::borrow::Cow;

use data_encoding::BASE64;
use perennial_core::text::charset::decode_text;
use perennial_render::CapturedResource;
use url::Url;

/// Maximum depth of imports.
const MAX_IMPORTS: usize = 4;
/// Maximum bytes of all stylesheets of a page.
const MAX_STYLE_BYTES: usize = 4 << 20;
/// Maximum bytes of one picture or font.
const MAX_ASSET_BYTES: usize = 1 << 20;
/// Maximum bytes of all pictures and fonts.
const MAX_ASSETS_BYTES: usize = 6 << 20;

/// Finds captured stylesheets, pictures and fonts of a page, within bounds.
pub(super) struct Assets<'a> {
    find: &'a dyn Fn(&str) -> Option<CapturedResource>,
    n_style_bytes: usize,
    n_asset_bytes: usize,
}

impl<'a> Assets<'a> {
    pub(super) fn new(find: &'a dyn Fn(&str) -> Option<CapturedResource>) -> Assets<'a> {
        Assets { find, n_style_bytes: 0, n_asset_bytes: 0 }
    }

    /// The text of the stylesheet at a URL, ready for a `style` element.
    pub(super) fn stylesheet(&mut self, url: &Url) -> Option<String> {
        self.imported(url, MAX_IMPORTS)
    }

    fn imported(&mut self, url: &Url, n_imports: usize) -> Option<String> {
        let found = (self.find)(url.as_str()).filter(|found| (200..300).contains(&found.status))?;
        let text = decode_text(&found.body, Some(found.content_type.as_str()));
        self.n_style_bytes += text.len();
        if self.n_style_bytes > MAX_STYLE_BYTES {
            return None;
        }
        Some(self.style_within(&text, url, n_imports))
    }

    /// The text of a stylesheet that is part of the page.
    pub(super) fn style(&mut self, text: &str, base: Option<&Url>) -> String {
        match base {
            Some(base) => self.style_within(text, base, MAX_IMPORTS),
            None => without_tags(text),
        }
    }

    fn style_within(&mut self, text: &str, base: &Url, n_imports: usize) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(['@', 'u', 'U', '/', '"', '\'']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let (written, n_read) = self.token(rest, base, n_imports);
            out.push_str(&written);
            rest = &rest[n_read..];
        }
        out.push_str(rest);
        without_tags(&out)
    }

    /// The replacement for the first token of a text, and the number of bytes that it replaces.
    fn token<'t>(&mut self, text: &'t str, base: &Url, n_imports: usize) -> (Cow<'t, str>, usize) {
        let first = text.chars().next().map_or(0, char::len_utf8);
        if text.starts_with("/*") {
            return (Cow::Borrowed(""), text.find("*/").map_or(text.len(), |end| end + 2));
        }
        if text.starts_with(['"', '\'']) {
            let end = string_end(text);
            return (Cow::Borrowed(&text[..end]), end);
        }
        if starts_with(text, "@import")
            && let Some((url, media, end)) = import(text)
        {
            let url = base.join(&url).ok().filter(|_| n_imports > 0);
            let style = url.and_then(|url| self.imported(&url, n_imports - 1)).unwrap_or_default();
            let media = media.trim();
            let written = if media.is_empty() { style } else { format!("@media {media}{{{style}}}") };
            return (Cow::Owned(written), end);
        }
        if starts_with(text, "url(")
            && let Some((url, end)) = url_function(text)
        {
            let asset = base.join(&url).ok().and_then(|url| self.asset(&url));
            let data = asset.unwrap_or_else(|| "data:,".to_string());
            return (Cow::Owned(format!("url(\"{data}\")")), end);
        }
        (Cow::Borrowed(&text[..first]), first)
    }

    /// A picture or a font as a `data:` URL.
    pub(super) fn asset(&mut self, url: &Url) -> Option<String> {
        if url.scheme() == "data" {
            let is_safe = url.path().get(..6).is_some_and(|kind| kind.eq_ignore_ascii_case("image/"));
            let has_room = url.as_str().len() <= MAX_ASSET_BYTES;
            return (is_safe && has_room && !url.as_str().contains(['"', '\\'])).then(|| url.to_string());
        }
        if self.n_asset_bytes >= MAX_ASSETS_BYTES {
            return None;
        }
        let found = (self.find)(url.as_str()).filter(|found| (200..300).contains(&found.status))?;
        if found.body.is_empty() || found.body.len() > MAX_ASSET_BYTES {
            return None;
        }
        let kind = asset_kind(&found, url)?;
        self.n_asset_bytes += found.body.len();
        Some(format!("data:{kind};base64,{}", BASE64.encode(&found.body)))
    }
}

/// Escapes `<`, so no part of a style can be parsed as a tag. In the strings of a style the escape has the same meaning.
fn without_tags(style: &str) -> String {
    style.replace('<', "\\3c ")
}

/// The media type of a picture or font; `None` for anything else.
fn asset_kind(found: &CapturedResource, url: &Url) -> Option<String> {
    let named = found.content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let is_plain =
        named.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'+' | b'.'));
    let is_asset =
        ["image/", "font/", "application/font", "application/x-font", "application/vnd.ms-fontobject"];
    if is_plain && is_asset.iter().any(|kind| named.starts_with(kind)) {
        return Some(named);
    }
    let known = [
        ("png", "image/png"),
        ("jpg", "image/jpeg"),
        ("jpeg", "image/jpeg"),
        ("gif", "image/gif"),
        ("webp", "image/webp"),
        ("svg", "image/svg+xml"),
        ("ico", "image/x-icon"),
        ("woff", "font/woff"),
        ("woff2", "font/woff2"),
        ("ttf", "font/ttf"),
    ];
    let suffix = url.path().rsplit('.').next().unwrap_or("").to_ascii_lowercase();
    known.iter().find(|(known, _)| *known == suffix).map(|(_, kind)| kind.to_string())
}

fn starts_with(text: &str, word: &str) -> bool {
    text.as_bytes().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
}

/// Length in bytes of the string at the start of a text, with its quotes.
fn string_end(text: &str) -> usize {
    let mut bytes = text.bytes().enumerate();
    let quote = bytes.next().map(|(_, quote)| quote);
    let mut is_escaped = false;
    for (at, byte) in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'\n' => return at,
            _ if Some(byte) == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The URL in `url(...)` at the start of a text, and the length of the whole in bytes.
fn url_function(text: &str) -> Option<(String, usize)> {
    let inner = &text[4..];
    let lead = inner.len() - inner.trim_start().len();
    let inner = inner.trim_start();
    if inner.starts_with(['"', '\'']) {
        let end = string_end(inner);
        let close = inner[end..].find(')')?;
        let url = inner.get(1..end.saturating_sub(1)).unwrap_or("");
        return Some((url.replace('\\', ""), 4 + lead + end + close + 1));
    }
    let close = inner.find(')')?;
    Some((inner[..close].trim().replace('\\', ""), 4 + lead + close + 1))
}

/// URL and media of an `@import` at the start of a text, and its length in bytes.
fn import(text: &str) -> Option<(String, String, usize)> {
    let start = text.len() - text["@import".len()..].trim_start().len();
    let rest = &text[start..];
    let (url, n_read) = match rest {
        _ if starts_with(rest, "url(") => url_function(rest)?,
        _ if rest.starts_with(['"', '\'']) => {
            let end = string_end(rest);
            (rest.get(1..end.saturating_sub(1))?.to_string(), end)
        }
        _ => return None,
    };
    let media = &rest[n_read..];
    let end = media.find(';').unwrap_or(media.len());
    let is_plain = !media[..end].contains(['{', '}', '"', '\'']);
    let close = start + n_read + (end + 1).min(media.len());
    is_plain.then(|| (url, media[..end].to_string(), close))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(url: &str) -> Option<CapturedResource> {
        let (content_type, body) = match url {
            "http://a.example/more.css" => ("text/css", "b{color:red}@import 'more.css';"),
            "http://a.example/i.png" => ("image/png", "picture"),
            "http://a.example/page" => ("text/html", "<script>"),
            _ => return None,
        };
        Some(CapturedResource {
            status: 200,
            content_type: content_type.into(),
            body: body.into(),
            ..CapturedResource::default()
        })
    }

    fn styled(text: &str) -> String {
        Assets::new(&find).style(text, Some(&Url::parse("http://a.example/x").unwrap()))
    }

    #[test]
    fn what_a_style_names_stands_within_it() {
        assert_eq!(
            styled("a{background:URL( i.png )}"),
            "a{background:url(\"data:image/png;base64,cGljdHVyZQ==\")}"
        );
        assert_eq!(styled("a{background:url('gone.png') x}"), "a{background:url(\"data:,\") x}");
        assert_eq!(styled("a{background:url(page)}"), "a{background:url(\"data:,\")}");
        assert!(styled("@import url(more.css) print;a{}").starts_with("@media print{b{color:red}"));
        assert_eq!(
            styled("q::before{content:\"url(i.png) </style>\"}/* </style> */"),
            "q::before{content:\"url(i.png) \\3c /style>\"}"
        );
        assert_eq!(styled("unusual{underline:up}"), "unusual{underline:up}");
    }

    proptest! {
        #[test]
        fn no_style_ends_its_element_or_names_another_place(text in "([a-u@/*()\"'\\\\<; \n]|url\\(|@import |</style>|http://e\\.example/){0,30}") {
            let style = styled(&text);
            prop_assert!(!style.contains('<'), "{}", style);
            let named: Vec<&str> = style.split("url(").skip(1).collect();
            let outside = |text: &str| !text.contains('"') && !text.contains('\'');
            prop_assert!(!outside(&text) || named.iter().all(|rest| rest.starts_with("\"data:") || !rest.contains(')')), "{}", style);
        }
    }
}
