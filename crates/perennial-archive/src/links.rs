//! A response -> the URLs that it links to. Only this module finds the links of a document.
//!
//! The crawl derives its next fetches from these links, and the archive stores those to pages. Documents from the
//! network and from WARC files are treated alike, so a rebuilt state has the links of the crawl.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Read;

use perennial_core::feed::sitemap::{self, Sitemap};
use perennial_core::text::charset::{Charset, decode_with_charset};
use perennial_core::text::links::{LinkKind, UrlReference, find_css_links, find_links};
use perennial_core::url::canonical;
use perennial_warc::http::HttpHead;
use perennial_warc::payload::{DecodingLimits, IncompleteBody, IncompleteCause, decode, gunzip};
use perennial_warc::surt::surt;
use url::Url;

use crate::store::{CaptureKind, LinkTarget};

/// Bytes of a stored body or rendered document that are searched for links. The archive stores the rest like everything
/// else.
pub const MAX_STORED_BYTES: u64 = 16 << 20;

/// Bytes of a decoded document. The limit protects against compression bombs.
const MAX_TEXT_BYTES: u64 = 32 << 20;

/// A longer decoded document counts as large. Real pages are rarely large, and a crawl reads large ones one at a time.
pub const LARGE_TEXT_BYTES: u64 = 2 << 20;

/// URL prefix of a resource record with a page's rendered document.
pub const RENDERED_PREFIX: &str = "urn:dom:";

/// A document as text, for finding links.
pub struct DocumentText {
    /// The decoded text, up to the limit.
    pub text: String,
    /// The original charset, which also encodes the queries of links.
    pub charset: Charset,
    /// Why the document is incomplete, if it is.
    pub cut: Option<IncompleteBody>,
}

/// One link, with the URL in the archive's canonical form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DocumentLink {
    pub url: Url,
    pub kind: LinkKind,
}

/// The links of a response, each URL once per kind, in document order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DocumentLinks {
    /// The target of a redirect.
    Redirect(Url),
    /// From an HTML document as received.
    Page(Vec<DocumentLink>),
    /// From an HTML document as rendered by its scripts.
    Rendered(Vec<DocumentLink>),
    Style(Vec<DocumentLink>),
}

/// The links that the archive stores for a response. Only this module makes them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageLinks {
    targets: Vec<LinkTarget>,
    source: LinkSource,
}

/// The part of an exchange that contains the links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LinkSource {
    Head,
    Body,
    Rendered,
}

impl DocumentLinks {
    /// The linked pages, sorted. `None` for a style sheet, because the link graph contains only pages.
    pub fn kept(&self) -> Option<PageLinks> {
        let (source, mut urls) = match self {
            DocumentLinks::Redirect(url) => (LinkSource::Head, vec![url.as_str()]),
            DocumentLinks::Page(links) => (LinkSource::Body, page_urls(links)),
            DocumentLinks::Rendered(links) => (LinkSource::Rendered, page_urls(links)),
            DocumentLinks::Style(_) => return None,
        };
        urls.sort_unstable();
        urls.dedup();
        let target = |url: &str| LinkTarget { surt: surt(url), url: url.to_string() };
        Some(PageLinks { targets: urls.into_iter().map(target).collect(), source })
    }

    /// The links, if the response was a document.
    pub fn document_links(&self) -> &[DocumentLink] {
        match self {
            DocumentLinks::Redirect(_) => &[],
            DocumentLinks::Page(links) | DocumentLinks::Rendered(links) | DocumentLinks::Style(links) => {
                links
            }
        }
    }
}

fn page_urls(links: &[DocumentLink]) -> Vec<&str> {
    links.iter().filter(|link| link.kind.is_page()).map(|link| link.url.as_str()).collect()
}

impl PageLinks {
    /// The links for a capture of this kind. A revisit has no body, and a rebuild could not find the links of one.
    pub(super) fn for_capture(self, kind: CaptureKind) -> Option<Vec<LinkTarget>> {
        let is_recorded = match kind {
            CaptureKind::Response => true,
            CaptureKind::Revisit => self.source != LinkSource::Body,
            CaptureKind::Resource | CaptureKind::Metadata => false,
        };
        is_recorded.then_some(self.targets)
    }
}

/// Kinds of documents with links.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DocumentKind {
    Html,
    Style,
}

fn document_kind(head: &HttpHead) -> Option<DocumentKind> {
    if !head.status().is_some_and(is_delivered) {
        return None;
    }
    match head.media_type()?.as_str() {
        "text/html" | "application/xhtml+xml" => Some(DocumentKind::Html),
        "text/css" => Some(DocumentKind::Style),
        _ => None,
    }
}

fn is_delivered(status: u16) -> bool {
    (200..300).contains(&status)
}

/// Whether the body of a response has links: a delivered HTML document or style sheet.
pub fn has_links(head: &HttpHead) -> bool {
    document_kind(head).is_some()
}

/// Whether the response is a delivered HTML document.
pub fn is_html(head: &HttpHead) -> bool {
    document_kind(head) == Some(DocumentKind::Html)
}

/// Decodes a stored body to text.
pub fn read_text(head: &HttpHead, stored: impl Read + Send) -> DocumentText {
    read_text_up_to(head, stored, MAX_TEXT_BYTES)
}

/// Like [`read_text`], but returns `None` for a large document, at little cost.
pub fn read_small_text(head: &HttpHead, stored: impl Read + Send) -> Option<DocumentText> {
    let document = read_text_up_to(head, stored, LARGE_TEXT_BYTES);
    let is_large = document.cut.as_ref().is_some_and(|cut| cut.cause == IncompleteCause::TooLarge);
    (!is_large).then_some(document)
}

fn read_text_up_to(head: &HttpHead, stored: impl Read + Send, max_bytes: u64) -> DocumentText {
    let limits = DecodingLimits { max_bytes, ..DecodingLimits::default() };
    let decoded = decode(head, stored.take(MAX_STORED_BYTES), limits);
    let (text, charset) = decode_with_charset(&decoded.bytes, head.get("Content-Type").as_deref());
    let own = match text {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(text) => (text.len() < decoded.bytes.len()).then(|| text.to_owned()),
    };
    // Bytes that are valid text already are used directly, which avoids a second copy of a large document.
    let text = own.unwrap_or_else(|| String::from_utf8(decoded.bytes).unwrap_or_default());
    DocumentText { text, charset, cut: decoded.cut }
}

/// Finds all links of a response, in the rendered document if there is one, else in the body. The body is needed only
/// if [`has_links`] holds. `None` if the response cannot have links.
pub fn find(
    url: &Url,
    head: &HttpHead,
    document: Option<&DocumentText>,
    rendered: Option<&[u8]>,
) -> Option<DocumentLinks> {
    let status = head.status()?;
    if (300..400).contains(&status) && status != 304 {
        return redirect_target(url, head).map(DocumentLinks::Redirect);
    }
    if let Some(rendered) = rendered.filter(|_| is_delivered(status)) {
        return Some(find_rendered(url, rendered));
    }
    let document = document?;
    Some(match document_kind(head)? {
        DocumentKind::Html => {
            DocumentLinks::Page(canonical_links(find_links(&document.text, url, document.charset)))
        }
        DocumentKind::Style => DocumentLinks::Style(canonical_links(find_css_links(&document.text, url))),
    })
}

/// The target of a redirect.
pub(super) fn redirect_target(url: &Url, head: &HttpHead) -> Option<Url> {
    canonical::resolve(url, &head.get("Location")?)
}

/// Like [`find`], for the rendered document of a delivered page, which is always UTF-8.
pub fn find_rendered(url: &Url, rendered: &[u8]) -> DocumentLinks {
    let text: Cow<'_, str> =
        String::from_utf8_lossy(&rendered[..rendered.len().min(MAX_STORED_BYTES as usize)]);
    DocumentLinks::Rendered(canonical_links(find_links(&text, url, Charset::default())))
}

/// The links that the state stores for a capture of this kind. `body` is the stored body, read only if needed.
/// `rendered` is the rendered document, if the exchange has one.
pub(super) fn find_page_links(
    url: &str,
    kind: CaptureKind,
    head: &HttpHead,
    body: impl Read + Send,
    rendered: Option<&[u8]>,
) -> Option<Vec<LinkTarget>> {
    let url = Url::parse(url).ok()?;
    let is_read = kind == CaptureKind::Response && rendered.is_none() && is_html(head);
    let document = is_read.then(|| read_text(head, body));
    find(&url, head, document.as_ref(), rendered)?.kept()?.for_capture(kind)
}

/// The page whose rendered document a resource record contains.
pub(super) fn rendered_page(uri: &str) -> Option<&str> {
    uri.strip_prefix(RENDERED_PREFIX)
}

fn canonical_links(found: Vec<UrlReference>) -> Vec<DocumentLink> {
    let mut seen = HashSet::with_capacity(found.len());
    found
        .into_iter()
        .filter_map(|link| {
            let url = canonical::canonicalise(link.url)?;
            Some(DocumentLink { url, kind: link.kind })
        })
        .filter(|link| seen.insert((link.kind, link.url.clone())))
        .collect()
}

/// Whether a response may be a sitemap, by its media type and the end of its file name.
pub(super) fn may_be_sitemap(url: &str, head: &HttpHead) -> bool {
    let media_type = head.media_type().unwrap_or_default();
    let name = url.split(['?', '#']).next().unwrap_or_default();
    head.status().is_some_and(is_delivered)
        && (matches!(media_type.as_str(), "application/xml" | "text/xml")
            || [".xml", ".xml.gz"].iter().any(|end| name.ends_with(end)))
}

/// The URLs on its site that a response lists as a sitemap. `body` is the stored body. A revisit has none and lists
/// no URLs.
pub(super) fn find_sitemap_pages(
    url: &str,
    kind: CaptureKind,
    head: &HttpHead,
    body: impl Read + Send,
) -> Vec<LinkTarget> {
    let Some(base) =
        Url::parse(url).ok().filter(|_| kind == CaptureKind::Response && may_be_sitemap(url, head))
    else {
        return Vec::new();
    };
    let limits = DecodingLimits { max_bytes: MAX_SITEMAP_BYTES, ..DecodingLimits::default() };
    let sitemap = read_sitemap(&decode(head, body.take(MAX_STORED_BYTES), limits).bytes);
    let pages = sitemap.pages.iter().filter_map(|entry| canonical::resolve(&base, &entry.loc));
    let own = pages.filter(|page| page.host_str() == base.host_str());
    own.map(|page| LinkTarget { surt: surt(page.as_str()), url: page.into() }).collect()
}

/// Bytes of a sitemap after decompression.
const MAX_SITEMAP_BYTES: u64 = 32 << 20;

/// The URLs in a sitemap or feed. The body may be a gzip file; the readable part is used.
pub fn read_sitemap(body: &[u8]) -> Sitemap {
    if !body.starts_with(&[0x1f, 0x8b]) {
        return sitemap::parse(body);
    }
    sitemap::parse(
        &gunzip(body, DecodingLimits { max_bytes: MAX_SITEMAP_BYTES, ..DecodingLimits::default() }).bytes,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> HttpHead {
        HttpHead::parse(format!("HTTP/1.1 {text}\r\n\r\n").as_bytes())
    }

    fn kept(head: &HttpHead, body: &str, rendered: Option<&str>) -> Option<Vec<String>> {
        kept_of(CaptureKind::Response, head, body, rendered)
    }

    fn kept_of(
        kind: CaptureKind,
        head: &HttpHead,
        body: &str,
        rendered: Option<&str>,
    ) -> Option<Vec<String>> {
        let url = "http://a.example/dir/page";
        let links = find_page_links(url, kind, head, body.as_bytes(), rendered.map(str::as_bytes))?;
        Some(links.into_iter().map(|link| link.url).collect())
    }

    #[test]
    fn urls_are_kept_once_in_their_one_form() {
        let html = head("200 OK\r\nContent-Type: application/xhtml+xml");
        let body = "<a href=../b?utm_source=x>1</a><a href=HTTP://A.EXAMPLE:80/b#end>2</a><a href=%7Euser>3</a>\
             <img src=i.png><a href=mailto:x@y>4</a>";
        let expected = ["http://a.example/b", "http://a.example/dir/~user"].map(String::from);
        assert_eq!(kept(&html, body, None), Some(expected.to_vec()));
    }

    #[test]
    fn a_rendered_document_has_the_last_word() {
        let html = head("200 OK\r\nContent-Type: text/html");
        let rendered = Some("<a href=/drawn>x</a>");
        assert_eq!(kept(&html, "<a href=/sent>x</a>", rendered), Some(vec!["http://a.example/drawn".into()]));
        assert_eq!(
            kept(&head("404 Not Found\r\nContent-Type: text/html"), "<a href=/sent>x</a>", rendered),
            None
        );
    }

    #[test]
    fn redirects_lead_to_their_target_and_304_nowhere() {
        let moved = head("301 Moved\r\nLocation: /New?fbclid=1#x");
        assert_eq!(kept(&moved, "", None), Some(vec!["http://a.example/New".into()]));
        assert_eq!(kept(&head("304 Not Modified\r\nLocation: /new"), "", None), None);
        assert_eq!(kept(&head("302 Found\r\nLocation: mailto:x@y"), "", None), None);
    }

    #[test]
    fn a_revisit_has_the_links_that_its_records_hold() {
        let html = head("200 OK\r\nContent-Type: text/html");
        let moved = head("302 Found\r\nLocation: /there");
        let page = "<a href=/x>x</a>";
        assert_eq!(kept_of(CaptureKind::Revisit, &html, page, None), None);
        assert_eq!(
            kept_of(CaptureKind::Revisit, &html, "", Some(page)),
            Some(vec!["http://a.example/x".into()])
        );
        assert_eq!(
            kept_of(CaptureKind::Revisit, &moved, "", None),
            Some(vec!["http://a.example/there".into()])
        );
        let url = Url::parse("http://a.example/").unwrap();
        let found = find(&url, &html, Some(&read_text(&html, page.as_bytes())), None).unwrap();
        assert_eq!(found.kept().unwrap().for_capture(CaptureKind::Revisit), None);
    }

    #[test]
    fn style_sheets_lead_to_subresources_that_the_graph_leaves_out() {
        let css = head("200 OK\r\nContent-Type: text/css");
        let url = Url::parse("http://a.example/s/sheet.css").unwrap();
        let document = read_text(&css, &b"@import 'more.css'; p{background:url(../p.png)}"[..]);
        let links = find(&url, &css, Some(&document), None).unwrap();
        let DocumentLinks::Style(found) = &links else { panic!("{links:?}") };
        let found: Vec<_> = found.iter().map(|link| (link.kind, link.url.as_str())).collect();
        assert_eq!(
            found,
            [(LinkKind::Style, "http://a.example/s/more.css"), (LinkKind::CssUrl, "http://a.example/p.png")]
        );
        assert_eq!(links.kept(), None);
    }

    #[test]
    fn what_lies_beyond_the_bound_is_not_read() {
        let html = head("200 OK\r\nContent-Type: text/html");
        let filler = " ".repeat(MAX_STORED_BYTES as usize);
        let page = format!("<a href=/near>x</a>{filler}<a href=/far>x</a>");
        let near = Some(vec!["http://a.example/near".to_string()]);
        assert_eq!(kept(&html, &page, None), near);
        assert_eq!(kept(&html, "", Some(&page)), near);
    }
}
