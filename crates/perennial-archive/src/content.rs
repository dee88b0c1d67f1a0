//! HTTP head and facts about an exchange -> index fields, the kind of response, and the purpose of the fetch.
//!
//! The writer uses it for new records and the scan for stored ones, which guarantees equal rows.

use perennial_core::http::response::{Identity, ResponseKind};
use perennial_core::text::untrusted;
use perennial_core::url::alias::is_longer_name;
use perennial_warc::http::HttpHead;
use url::Url;

use super::links::{is_html, redirect_target, rendered_page};
use crate::store::{CaptureKind, CaptureRow, PageKind};

/// The metadata fact that describes how a URL was reached, as the WARC standard names it. It has one character per hop,
/// as in other crawlers: L link, R redirect, E embedded, P prerequisite such as robots.txt, M sitemap, F feed (our
/// addition). A seed has none.
pub const HOPS: &str = "hopsFromSeed";

/// Bytes of facts that are read per exchange; no crawler writes so many.
pub(crate) const MAX_FACT_BYTES: usize = 64 << 10;

/// The hops of a URL. `depth` counts links from the seed, or from the page that needs the subresource.
pub fn write_hops(kind: PageKind, depth: u32, n_redirects: u32) -> String {
    let (letter, n_hops) = match kind {
        PageKind::Page => ("L", depth),
        PageKind::Subresource => ("E", depth.max(1)),
        PageKind::Sitemap => ("M", depth.max(1)),
        PageKind::Feed => ("F", depth.max(1)),
    };
    letter.repeat(n_hops as usize) + &"R".repeat(n_redirects as usize)
}

/// Why the exchange was made, according to its hops. Without hops, delivered HTML counts as a page. `None`: unknown.
pub(crate) fn capture_purpose(hops: Option<&str>, kind: CaptureKind, head: &HttpHead) -> Option<PageKind> {
    match (hops, kind) {
        (Some(hops), CaptureKind::Response | CaptureKind::Revisit) => parse_hops(hops),
        (None, CaptureKind::Response) => is_html(head).then_some(PageKind::Page),
        _ => None,
    }
}

/// A redirect has the purpose of the URL before it.
pub(crate) fn parse_hops(hops: &str) -> Option<PageKind> {
    match hops.trim().trim_end_matches('R').chars().next_back() {
        None | Some('L') => Some(PageKind::Page),
        Some('E' | 'X' | 'P') => Some(PageKind::Subresource),
        Some('M' | 'S') => Some(PageKind::Sitemap),
        Some('F') => Some(PageKind::Feed),
        Some(_) => None,
    }
}

/// Finds the hops in the facts of a metadata record.
pub(crate) fn hops_in(facts: &[u8]) -> Option<String> {
    let line_of = |line: &[u8]| {
        let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
        name.trim().eq_ignore_ascii_case(HOPS).then(|| value.trim().to_string())
    };
    facts.split(|&byte| byte == b'\n').find_map(line_of)
}

/// The media type in its index form: the field's value up to the first blank or semicolon.
pub(crate) fn index_mime(content_type: &str) -> Option<String> {
    let word = untrusted::checked_label(content_type.split(|c: char| c == ';' || c.is_whitespace()).next()?)?;
    (!word.is_empty()).then(|| word.to_string())
}

/// The kind of response in a record, and its identity if that is not its digest. `None` if the record is not an
/// observation. `origin` is the URL with the payload of a revisit.
pub(crate) fn kind_and_identity(
    url: &str,
    kind: CaptureKind,
    head: Option<&HttpHead>,
    is_broken_off: bool,
    origin: Option<&str>,
) -> (Option<ResponseKind>, Option<Identity>) {
    let Some((head, status)) = head.and_then(|head| Some((head, head.status()?))) else {
        return (None, None);
    };
    if !matches!(kind, CaptureKind::Response | CaptureKind::Revisit) {
        return (None, None);
    }
    let response_kind = ResponseKind::from_response(status, is_broken_off);
    let alias = origin.filter(|_| response_kind == ResponseKind::Content && kind == CaptureKind::Revisit);
    if let Some(alias) = alias.filter(|origin| is_longer_name(url, origin)) {
        return (Some(ResponseKind::Redirect), Some(Identity::Alias(alias.to_owned())));
    }
    let target = (response_kind == ResponseKind::Redirect)
        .then(|| redirect_target(&Url::parse(url).ok()?, head))
        .flatten();
    let target = target.as_ref().map(Url::as_str);
    (Some(response_kind), Identity::from_response(response_kind, status, target))
}

/// The identity of a page that a browser rendered, if its document was derived from the exchange.
pub(crate) fn rendered_identity(
    url: &str,
    response_kind: Option<ResponseKind>,
    derived: &[CaptureRow],
) -> Option<Identity> {
    if response_kind != Some(ResponseKind::Content) {
        return None;
    }
    let document = derived.iter().find(|row| rendered_page(&row.url) == Some(url))?;
    Some(Identity::RenderedPayload(document.content.as_ref().unwrap_or(&document.digest).clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_tell_what_an_exchange_was_made_for() {
        let plain = HttpHead::parse(b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n");
        let of = |hops: &str| capture_purpose(Some(hops), CaptureKind::Response, &plain);
        assert_eq!([of(""), of("LL"), of("LRR"), of("R")], [Some(PageKind::Page); 4]);
        assert_eq!([of("LLE"), of("P"), of("ER")], [Some(PageKind::Subresource); 3]);
        assert_eq!((of("M"), of("?")), (Some(PageKind::Sitemap), None));
        for (kind, depth) in
            [(PageKind::Page, 0), (PageKind::Page, 3), (PageKind::Subresource, 1), (PageKind::Sitemap, 2)]
        {
            assert_eq!(of(&write_hops(kind, depth, 2)), Some(kind));
        }
    }

    #[test]
    fn without_hops_html_is_a_page_and_the_rest_is_unknown() {
        let html = HttpHead::parse(b"HTTP/1.1 200 OK\r\nContent-Type: text/HTML; x\r\n\r\n");
        let image = HttpHead::parse(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n");
        assert_eq!(capture_purpose(None, CaptureKind::Response, &html), Some(PageKind::Page));
        assert_eq!(capture_purpose(None, CaptureKind::Response, &image), None);
        assert_eq!(capture_purpose(None, CaptureKind::Revisit, &html), None);
    }

    #[test]
    fn facts_are_read_as_they_are_written() {
        assert_eq!(hops_in(b"fetchTimeMs: 3\r\nhopsFromSeed: LE\r\n"), Some("LE".into()));
        assert_eq!(hops_in(b"HOPSFROMSEED:\r\n"), Some(String::new()));
        assert_eq!(hops_in(b"via: x\r\n\xff\xfe: y"), None);
    }
}
