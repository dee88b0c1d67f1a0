//! HTTP head and stored body -> what the state keeps of it: index fields, and the addresses a page links to.
//!
//! Used by the writer on what it writes and by the scan on what it reads, so that both give the same rows.

use perennial_core::canonical;
use perennial_core::charset::decode_with_charset;
use perennial_core::http::HttpHead;
use perennial_core::links::find_links;
use perennial_core::payload::{Limits, decode};
use perennial_core::surt::surt;
use perennial_core::verdict::{self, AnswerKind};
use url::Url;

use crate::store::{Kind, LinkTarget};

/// Longer pages are archived like any other, but nobody reads them for links.
pub(crate) const MAX_HTML_BYTES: u64 = 16 << 20;

/// The media type as index files have it: the field's value up to the first blank or semicolon.
pub(crate) fn index_mime(content_type: &str) -> Option<String> {
    let word = content_type.split(|c: char| c == ';' || c.is_whitespace()).next()?;
    (!word.is_empty()).then(|| word.to_string())
}

/// True when the body is worth reading for links: HTML that was delivered.
pub(crate) fn is_html(head: &HttpHead) -> bool {
    head.status().is_some_and(|status| (200..300).contains(&status))
        && head.media_type().is_some_and(|mime| mime == "text/html" || mime == "application/xhtml+xml")
}

/// Where a response leads: the links of an HTML body, or the target of a redirect. `body` is as stored, and
/// needed only when [`is_html`] says so. `None` when the response says nothing about links.
pub(crate) fn links_of(url: &str, head: &HttpHead, body: Option<&[u8]>) -> Option<Vec<LinkTarget>> {
    let base = Url::parse(url).ok()?;
    if head.status().is_some_and(|status| (300..400).contains(&status)) {
        let mut target = base.join(head.get("Location")?.trim()).ok()?;
        target.set_fragment(None);
        return Some(vec![link_target(target.into())]);
    }
    let body = body.filter(|_| is_html(head))?;
    let limits = Limits { max_bytes: 2 * MAX_HTML_BYTES, ..Limits::default() };
    let decoded = decode(head, body, limits);
    let (text, charset) = decode_with_charset(&decoded.bytes, head.get("Content-Type").as_deref());
    let mut targets: Vec<String> = find_links(&text, &base, charset)
        .into_iter()
        .filter(|link| link.kind.is_page())
        .map(|link| link.url)
        .collect();
    targets.sort_unstable();
    targets.dedup();
    Some(targets.into_iter().map(link_target).collect())
}

/// What kind of answer a record holds, and what tells it from another where that is not its digest; `None` when the record is
/// no look at a page.
pub(crate) fn look_of(
    url: &str,
    kind: Kind,
    head: Option<&HttpHead>,
    is_broken_off: bool,
) -> (Option<AnswerKind>, Option<String>) {
    let Some((head, status)) = head.and_then(|head| Some((head, head.status()?))) else {
        return (None, None);
    };
    if !matches!(kind, Kind::Response | Kind::Revisit) {
        return (None, None);
    }
    let answer = AnswerKind::of_answer(status, is_broken_off);
    let target = (answer == AnswerKind::Redirect).then(|| redirect_of(url, head)).flatten();
    let target = target.as_ref().map(Url::as_str);
    (Some(answer), verdict::identity_of(answer, status, target))
}

/// Where a redirect leads.
pub(crate) fn redirect_of(url: &str, head: &HttpHead) -> Option<Url> {
    canonical::resolve(&Url::parse(url).ok()?, &head.get("Location")?)
}

fn link_target(url: String) -> LinkTarget {
    LinkTarget { surt: surt(&url), url }
}
