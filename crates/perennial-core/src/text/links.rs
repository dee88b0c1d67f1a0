//! HTML or CSS and its URL -> the URLs that it references: pages to visit, and subresources that are needed to show
//! it.
//!
//! It works on the token stream instead of a tree: one pass, little memory, and hostile nesting cannot overflow a
//! stack. `<noscript>` counts as markup, because readers of the archive may disable scripts.

use std::cell::RefCell;
use std::collections::HashSet;

use html5ever::tokenizer::states::{Rawtext, Rcdata, ScriptData};
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult, TokenizerOpts};
use url::Url;

use crate::text::charset::Charset;
use crate::text::tokens::read_tokens;

/// Maximum references of one page. A page with more is a trap or a dump.
pub const MAX_LINKS: usize = 20_000;

/// Maximum length of a URL. Most servers reject more than 8 KB.
const MAX_URL_BYTES: usize = 8_192;

/// How a page references a URL.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LinkKind {
    /// `<a>` or `<area>`.
    Anchor,
    /// `<iframe>`, `<frame>`: a page shown inside the page.
    Frame,
    /// `<link rel=canonical>`: the preferred URL of the page.
    Canonical,
    /// `<link rel=next>` or `prev`: the neighbouring pages of a sequence.
    Sequence,
    /// `<meta http-equiv=refresh>`.
    Refresh,
    /// `<link rel=alternate>` with the type of a feed.
    Feed,
    /// `<img>`, `srcset`, `poster`, icons, `<input type=image>`.
    Image,
    /// `<script src>`, module preloads.
    Script,
    /// `<link rel=stylesheet>`, `@import`.
    Style,
    /// `<video>`, `<audio>`, `<source src>`, `<track>`, `<embed>`, `<object>`.
    Media,
    /// `url()` in CSS: a font or an image.
    CssUrl,
}

impl LinkKind {
    /// Whether it is a page that a crawl may visit and that the link graph counts.
    pub fn is_page(self) -> bool {
        matches!(
            self,
            LinkKind::Anchor | LinkKind::Frame | LinkKind::Canonical | LinkKind::Sequence | LinkKind::Refresh
        )
    }

    /// Whether it is needed to show the page as its readers saw it.
    pub fn is_subresource(self) -> bool {
        matches!(
            self,
            LinkKind::Frame
                | LinkKind::Image
                | LinkKind::Script
                | LinkKind::Style
                | LinkKind::Media
                | LinkKind::CssUrl
        )
    }
}

/// A URL that a document references.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct UrlReference {
    /// Absolute, http or https, without fragment.
    pub url: Url,
    pub kind: LinkKind,
    /// Whether it has `rel=nofollow`, `ugc` or `sponsored`.
    pub is_nofollow: bool,
}

/// All references of an HTML page in document order, each URL once per kind.
pub fn find_links(html: &str, page_url: &Url, charset: Charset) -> Vec<UrlReference> {
    let found = read_tokens(html, LinkSink::default(), TokenizerOpts::default()).0.into_inner();
    let base = found.base.as_deref().and_then(|href| page_url.join(href.trim()).ok());
    resolve(found.references, base.as_ref().unwrap_or(page_url), charset)
}

pub fn find_css_links(css: &str, sheet_url: &Url) -> Vec<UrlReference> {
    let mut references = Vec::new();
    push_css(css, &mut references);
    resolve(references, sheet_url, Charset::default())
}

/// A reference as written in the document.
struct Reference {
    href: String,
    kind: LinkKind,
    is_nofollow: bool,
}

fn resolve(references: Vec<Reference>, base: &Url, charset: Charset) -> Vec<UrlReference> {
    // Headlines and their images often share a URL, so most references of a front page occur twice.
    let (mut written, mut seen) = (HashSet::new(), HashSet::new());
    let mut links = Vec::new();
    for reference in &references {
        if !written.insert((reference.kind, reference.href.as_str())) {
            continue;
        }
        let Some(url) = absolute(&reference.href, base, charset) else { continue };
        if seen.insert((reference.kind, url.clone())) {
            links.push(UrlReference { url, kind: reference.kind, is_nofollow: reference.is_nofollow });
        }
    }
    links
}

/// `None` for an empty URL, a fragment of the same page, and schemes such as `mailto:`.
fn absolute(href: &str, base: &Url, charset: Charset) -> Option<Url> {
    let href = href.trim();
    if href.is_empty() || href.starts_with('#') || href.len() > MAX_URL_BYTES {
        return None;
    }
    let mut url = charset.join(base, href)?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    url.set_fragment(None);
    Some(url).filter(|url| url.as_str().len() <= MAX_URL_BYTES)
}

#[derive(Default)]
struct ReferenceCollector {
    base: Option<String>,
    references: Vec<Reference>,
    is_in_style: bool,
}

impl ReferenceCollector {
    fn push(&mut self, href: Option<&str>, kind: LinkKind, rel: &str) {
        let has_room = self.references.len() < MAX_LINKS;
        if let Some(href) = href.filter(|href| has_room && href.len() <= MAX_URL_BYTES) {
            let is_nofollow = ["nofollow", "ugc", "sponsored"].iter().any(|word| has_word(rel, word));
            self.references.push(Reference { href: href.to_string(), kind, is_nofollow });
        }
    }

    fn start_tag(&mut self, tag: &Tag) {
        let get = |name: &str| tag.attrs.iter().find(|a| &*a.name.local == name).map(|a| &*a.value);
        match &*tag.name {
            "base" => {
                if let (None, Some(href)) = (&self.base, get("href")) {
                    self.base = Some(href.to_string());
                }
            }
            "a" | "area" => self.push(get("href"), LinkKind::Anchor, get("rel").unwrap_or("")),
            "link" => self.link(get("href"), get("rel").unwrap_or(""), get("type"), get("as")),
            "meta" => self.meta(get("http-equiv"), get("content")),
            "iframe" | "frame" => self.push(get("src"), LinkKind::Frame, ""),
            "script" => self.push(get("src"), LinkKind::Script, ""),
            "img" | "input" => self.push(get("src"), LinkKind::Image, ""),
            "image" | "use" => self.push(get("href").or(get("xlink:href")), LinkKind::Image, ""),
            "body" | "table" | "td" | "th" => self.push(get("background"), LinkKind::Image, ""),
            "object" => self.push(get("data"), LinkKind::Media, ""),
            "video" | "audio" | "source" | "track" | "embed" => {
                self.push(get("src"), LinkKind::Media, "");
                self.push(get("poster"), LinkKind::Image, "");
            }
            _ => {}
        }
        for set in [get("srcset"), get("imagesrcset")].into_iter().flatten() {
            srcset_urls(set).for_each(|url| self.push(Some(url), LinkKind::Image, ""));
        }
        if let Some(style) = get("style") {
            push_css(style, &mut self.references);
        }
    }

    fn link(&mut self, href: Option<&str>, rel: &str, kind: Option<&str>, preload_as: Option<&str>) {
        let is_feed = kind.is_some_and(|kind| {
            let kind = kind.to_ascii_lowercase();
            ["rss", "atom", "rdf", "feed+json"].iter().any(|name| kind.contains(name))
        });
        let kind = if has_word(rel, "stylesheet") {
            LinkKind::Style
        } else if has_word(rel, "canonical") {
            LinkKind::Canonical
        } else if has_word(rel, "next") || has_word(rel, "prev") {
            LinkKind::Sequence
        } else if has_word(rel, "alternate") && is_feed {
            LinkKind::Feed
        } else if has_word(rel, "icon") || has_word(rel, "apple-touch-icon") {
            LinkKind::Image
        } else if has_word(rel, "modulepreload") {
            LinkKind::Script
        } else if has_word(rel, "preload") {
            match preload_as.unwrap_or("") {
                "script" => LinkKind::Script,
                "style" => LinkKind::Style,
                "image" => LinkKind::Image,
                "font" => LinkKind::CssUrl,
                _ => return,
            }
        } else {
            return;
        };
        self.push(href, kind, rel);
    }

    /// `<meta http-equiv=refresh content="5; url='next.html'">`
    fn meta(&mut self, http_equiv: Option<&str>, content: Option<&str>) {
        let (Some(http_equiv), Some(content)) = (http_equiv, content) else { return };
        if !http_equiv.trim().eq_ignore_ascii_case("refresh") {
            return;
        }
        let Some((_, rest)) = content.split_once([';', ',']) else { return };
        let rest = rest.trim();
        let href = match rest.get(..3) {
            Some(word) if word.eq_ignore_ascii_case("url") => rest[3..].trim_start().trim_start_matches('='),
            _ => rest,
        };
        self.push(Some(href.trim().trim_matches(['"', '\''])), LinkKind::Refresh, "");
    }
}

#[derive(Default)]
struct LinkSink(RefCell<ReferenceCollector>);

impl TokenSink for LinkSink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut found = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                found.start_tag(&tag);
                found.is_in_style = &*tag.name == "style";
                return raw_state(&tag.name);
            }
            Token::TagToken(_) => found.is_in_style = false,
            Token::CharacterTokens(text) if found.is_in_style => push_css(&text, &mut found.references),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Elements without markup inside. Usually a tree builder sets these states, but there is none here.
fn raw_state(name: &str) -> TokenSinkResult<()> {
    match name {
        "script" => TokenSinkResult::RawData(ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(Rawtext),
        "textarea" | "title" => TokenSinkResult::RawData(Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}

fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|w| w.eq_ignore_ascii_case(word))
}

/// `a.png 1x, b.png 2x`: a URL ends at white space, and a trailing comma belongs to the list.
fn srcset_urls(set: &str) -> impl Iterator<Item = &str> {
    let mut rest = set;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        // No descriptor follows a trailing comma.
        rest = if url.ends_with(',') { after } else { after.split_once(',').map_or("", |(_, more)| more) };
        Some(url.trim_end_matches(',')).filter(|url| !url.is_empty())
    })
}

/// Finds `url(...)` and `@import "..."`. It does not parse CSS, so it also finds URLs inside comments. That costs a
/// fetch at worst, while a missed URL would change the appearance of the page.
fn push_css(css: &str, references: &mut Vec<Reference>) {
    let bytes = css.as_bytes();
    let mut at = 0;
    while let Some(step) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| b"uU@".contains(b))) {
        at += step;
        if references.len() >= MAX_LINKS {
            return;
        }
        if starts_with_word(bytes, at, b"url(") {
            let is_import = ends_with_import(&bytes[..at]);
            let kind = if is_import { LinkKind::Style } else { LinkKind::CssUrl };
            at = push_css_value(css, at + 4, b')', kind, references);
        } else if starts_with_word(bytes, at, b"@import") {
            let value = at + 7 + bytes[at + 7..].iter().take_while(|b| b.is_ascii_whitespace()).count();
            at = match bytes.get(value) {
                Some(b'"' | b'\'') => push_css_value(css, value, b';', LinkKind::Style, references),
                _ => at + 7,
            };
        } else {
            at += 1;
        }
    }
}

fn starts_with_word(bytes: &[u8], at: usize, word: &[u8]) -> bool {
    bytes.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word))
}

fn ends_with_import(bytes: &[u8]) -> bool {
    let trimmed = bytes.trim_ascii_end();
    trimmed.len() >= 7 && trimmed[trimmed.len() - 7..].eq_ignore_ascii_case(b"@import")
}

/// Reads a quoted or bare value at `from` and returns where to continue. `from` is a character boundary because the
/// byte before it is ASCII.
fn push_css_value(
    css: &str,
    from: usize,
    closing: u8,
    kind: LinkKind,
    references: &mut Vec<Reference>,
) -> usize {
    let bytes = css.as_bytes();
    let start = from + bytes[from..].iter().take_while(|b| b.is_ascii_whitespace()).count();
    let (start, end_byte) = match bytes.get(start) {
        Some(&quote @ (b'"' | b'\'')) => (start + 1, quote),
        _ => (start, closing),
    };
    // The search is limited to the maximum URL length and continues after an unclosed value, which keeps the work
    // linear.
    let window = &bytes[start.min(bytes.len())..bytes.len().min(start + MAX_URL_BYTES)];
    let Some(length) = window.iter().position(|&b| b == end_byte || b == b'\n') else {
        return start + window.len();
    };
    if let Some(href) = css.get(start..start + length)
        && !starts_with_word(href.as_bytes(), 0, b"data:")
    {
        references.push(Reference { href: href.trim().to_string(), kind, is_nofollow: false });
    }
    start + length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page() -> Url {
        Url::parse("http://a.example/dir/page.html").unwrap()
    }

    fn found(html: &str) -> Vec<(LinkKind, String)> {
        find_links(html, &page(), Charset::default())
            .into_iter()
            .map(|link| (link.kind, link.url.into()))
            .collect()
    }

    fn check(html: &str, expected: &[(LinkKind, &str)]) {
        let expected: Vec<_> = expected.iter().map(|&(kind, url)| (kind, url.to_string())).collect();
        assert_eq!(found(html), expected, "{html}");
    }

    #[test]
    fn anchors_are_resolved_and_listed_once() {
        use LinkKind::*;
        check(
            "<a href=b.html#x>b</a><A HREF=' b.html '>again</A><area href='//c.example'>",
            &[(Anchor, "http://a.example/dir/b.html"), (Anchor, "http://c.example/")],
        );
        check("<a href=#top><a href=''><a href=mailto:x@y><a href='javascript:1'><a name=x>", &[]);
    }

    #[test]
    fn base_counts_for_the_whole_page_and_only_the_first() {
        check(
            "<a href=1><base href='/other/'><base href='/third/'><a href=2>",
            &[(LinkKind::Anchor, "http://a.example/other/1"), (LinkKind::Anchor, "http://a.example/other/2")],
        );
    }

    #[test]
    fn head_links_by_rel() {
        use LinkKind::*;
        check(
            "<link rel=canonical href=/c><link rel='next' href=?p=2><link rel='Stylesheet alternate' href=s.css>
             <link rel=alternate type=application/rss+xml href=/feed><link rel=alternate hreflang=de href=/de>
             <link rel='shortcut icon' href=/i.png><link rel=preload as=font href=f.woff2><link href=nothing>
             <meta http-equiv=Refresh content=\"3; URL='later.html'\">",
            &[
                (Canonical, "http://a.example/c"),
                (Sequence, "http://a.example/dir/page.html?p=2"),
                (Style, "http://a.example/dir/s.css"),
                (Feed, "http://a.example/feed"),
                (Image, "http://a.example/i.png"),
                (CssUrl, "http://a.example/dir/f.woff2"),
                (Refresh, "http://a.example/dir/later.html"),
            ],
        );
    }

    #[test]
    fn subresources_in_all_forms() {
        use LinkKind::*;
        check(
            "<img src=1.png srcset='2.png 2x, 3,4.png 100w,5.png'><video src=v poster=6.png><source srcset=7.png>
             <script src=a.js></script><iframe src=frame.html></iframe><div style=\"background:url( '8.png' )\">
             <style>@import \"b.css\"; @import url(c.css); p{background:URL(9.png)} q{src:url(data:x)}</style>",
            &[
                (Image, "http://a.example/dir/1.png"),
                (Image, "http://a.example/dir/2.png"),
                (Image, "http://a.example/dir/3,4.png"),
                (Image, "http://a.example/dir/5.png"),
                (Media, "http://a.example/dir/v"),
                (Image, "http://a.example/dir/6.png"),
                (Image, "http://a.example/dir/7.png"),
                (Script, "http://a.example/dir/a.js"),
                (Frame, "http://a.example/dir/frame.html"),
                (CssUrl, "http://a.example/dir/8.png"),
                (Style, "http://a.example/dir/b.css"),
                (Style, "http://a.example/dir/c.css"),
                (CssUrl, "http://a.example/dir/9.png"),
            ],
        );
    }

    #[test]
    fn text_similar_to_markup_is_text() {
        check(
            "<script>'<a href=1>'</script><title><a href=2></title><!-- <a href=3> --><textarea><a href=4></textarea>",
            &[],
        );
        check("<noscript><img src=5.png></noscript>", &[(LinkKind::Image, "http://a.example/dir/5.png")]);
    }

    #[test]
    fn nofollow_is_noted() {
        let links = find_links("<a rel='external NoFollow' href=1><a href=2>", &page(), Charset::default());
        assert_eq!(links.iter().map(|l| l.is_nofollow).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn queries_are_encoded_like_the_page() {
        // The same Cyrillic word in the path and query of a link, on a page in windows-1251.
        let bytes = b"<meta charset=windows-1251><a href='/\xec\xe8\xf0?q=\xec\xe8\xf0'>";
        let (text, charset) = crate::text::charset::decode_with_charset(bytes, None);
        let links = find_links(&text, &page(), charset);
        assert_eq!(links[0].url.as_str(), "http://a.example/%D0%BC%D0%B8%D1%80?q=%EC%E8%F0");
        let links = find_links(&text, &page(), Charset::default());
        assert!(links[0].url.as_str().ends_with("?q=%D0%BC%D0%B8%D1%80"));
    }

    #[test]
    fn a_flood_is_bounded() {
        let html: String = (0..MAX_LINKS + 10).map(|i| format!("<a href={i}>")).collect();
        assert_eq!(find_links(&html, &page(), Charset::default()).len(), MAX_LINKS);
        let unclosed = "url(".repeat(100_000);
        assert!(find_css_links(&unclosed, &page()).len() <= MAX_LINKS);
    }

    proptest! {
        #[test]
        fn any_input_gives_absolute_urls(
            html in r#"(<(a|img|base|style|link|meta|script)? ?(href|src|srcset|style|rel)?=?['"]?[a-z:/#@,é ]{0,9}(url\()?[)'">]*){0,20}"#
        ) {
            for link in find_links(&html, &page(), Charset::default()) {
                prop_assert!(link.url.as_str().starts_with("http"));
                prop_assert!(!link.url.as_str().contains('#'));
            }
            find_css_links(&html, &page());
        }
    }
}
