//! A response -> a feed with its items. Only this module reads captures as feeds.
//!
//! Crawl, import, recovery and rebuild all use it. A rebuilt state therefore has the items that the crawl found.

use std::io::Read;

use perennial_core::feed::{self, Feed, FeedItem, FeedText};
use perennial_core::http::politeness::parse_http_date;
use perennial_core::text::untrusted::truncate;
use perennial_core::url::canonical;
use perennial_warc::http::HttpHead;
use perennial_warc::payload::{DecodingLimits, decode};
use url::Url;

use super::links::MAX_STORED_BYTES;
use crate::store::{CaptureKind, FeedRow, ItemRow, url_hash};

/// Limits of headlines and summaries in the state; the WARC file contains them in full.
const MAX_TITLE_BYTES: usize = 500;
const MAX_SUMMARY_BYTES: usize = 2_000;
/// Bytes needed to recognise a feed.
const START_BYTES: u64 = 4_096;
/// Limit of an item's identifier.
const MAX_KEY_BYTES: usize = 1_000;

/// Whether a response may be a feed by its media type, which makes its body worth checking.
pub fn may_be_feed(head: &HttpHead) -> bool {
    let is_delivered = head.status().is_some_and(|status| (200..300).contains(&status));
    let media_type = head.media_type().unwrap_or_default();
    is_delivered
        && (["rss", "atom", "rdf"].iter().any(|word| media_type.contains(word))
            || matches!(
                media_type.as_str(),
                "" | "application/xml" | "text/xml" | "application/feed+json" | "application/json" | "text/plain"
            )
            // Many servers send only these types.
            || matches!(media_type.as_str(), "text/html" | "application/octet-stream"))
}

/// Whether a stored body begins like a feed. The check must be cheap, because it runs on every page.
pub fn begins_as_feed(head: &HttpHead, stored: impl Read + Send) -> bool {
    let limits = DecodingLimits { max_bytes: START_BYTES, ..DecodingLimits::default() };
    feed::looks_like_feed(&decode(head, stored.take(MAX_STORED_BYTES), limits).bytes)
}

/// Reads a response as a feed; `None` if it is not one. `stored` is the body as stored.
pub fn read_feed(url: &str, head: &HttpHead, stored: &[u8]) -> Option<Box<FeedRow>> {
    if !may_be_feed(head) || !begins_as_feed(head, stored) {
        return None;
    }
    read_whole(url, head, stored)
}

fn read_whole(url: &str, head: &HttpHead, stored: impl Read + Send) -> Option<Box<FeedRow>> {
    let limits = DecodingLimits { max_bytes: feed::MAX_FEED_BYTES as u64, ..DecodingLimits::default() };
    let decoded = decode(head, stored.take(MAX_STORED_BYTES), limits);
    let feed = feed::parse(&decoded.bytes, head.get("Content-Type").as_deref(), url).ok()?;
    let mut row = feed_to_row(&feed, url);
    row.modified = head.get("Last-Modified").and_then(|date| parse_http_date(&date));
    // The response may name a hub that the feed does not (WebSub 4).
    if row.hub.is_none() {
        row.hub = hub_url(head, url);
    }
    row.topic = head.link_targets("self").into_iter().next().or(row.topic).or_else(|| Some(url.to_owned()));
    Some(Box::new(row))
}

/// The hub in a `Link` field.
fn hub_url(head: &HttpHead, url: &str) -> Option<String> {
    let base = Url::parse(url).ok()?;
    head.link_targets("hub").iter().find_map(|href| canonical::resolve(&base, href)).map(String::from)
}

/// The feed of a capture of this kind, for the state. A revisit has no body, and a rebuild could not find its items.
pub(super) fn read_stored_feed(
    url: &str,
    kind: CaptureKind,
    head: &HttpHead,
    stored: impl Read + Send,
) -> Option<Box<FeedRow>> {
    if kind == CaptureKind::Response { read_whole(url, head, stored) } else { None }
}

/// Converts a feed to its stored form: texts without markup, and URLs in the archive's canonical form.
pub fn feed_to_row(feed: &Feed, url: &str) -> FeedRow {
    let base = Url::parse(url).ok();
    let resolve = |href: &str| match &base {
        Some(base) => canonical::resolve(base, href).map(String::from),
        None => Url::parse(href).ok().and_then(canonical::canonicalise).map(String::from),
    };
    FeedRow {
        format: feed.format,
        title: truncate(&feed.title.words(), MAX_TITLE_BYTES).to_owned(),
        channel: feed.link.as_deref().and_then(resolve),
        hub: feed.hub().and_then(resolve),
        pace: feed.pace.clone(),
        updated: feed.updated,
        modified: None,
        topic: feed.self_url().map(str::to_owned),
        items: feed.items.iter().map(|item| item_row(item, &resolve)).collect(),
    }
}

fn item_row(item: &FeedItem, resolve: &dyn Fn(&str) -> Option<String>) -> ItemRow {
    let title = item.title.words();
    let text = item.summary.as_ref().or(item.contents.first()).map(FeedText::words).unwrap_or_default();
    let full = item.contents.first().map(FeedText::words).unwrap_or_default();
    let people =
        item.authors.iter().map(|person| if person.name.is_empty() { &person.email } else { &person.name });
    let author = people.cloned().collect::<Vec<_>>().join(", ");
    ItemRow {
        key: truncate(&item.key(), MAX_KEY_BYTES).to_owned(),
        link: item.link.as_deref().and_then(resolve),
        digest: url_hash(&format!("{title}\n{text}\n{full}")) as i64,
        title: truncate(&title, MAX_TITLE_BYTES).to_owned(),
        summary: truncate(&text, MAX_SUMMARY_BYTES).to_owned(),
        author: truncate(&author, MAX_TITLE_BYTES).to_owned(),
        categories: truncate(&item.categories.join("\n"), MAX_SUMMARY_BYTES).to_owned(),
        published: item.published.or(item.created),
        updated: item.updated,
        comments: item.comments.as_deref().and_then(resolve),
        comment_feed: item.comment_feed.as_deref().and_then(resolve),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(media_type: &str) -> HttpHead {
        HttpHead::parse(format!("HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n\r\n").as_bytes())
    }

    const RSS: &[u8] = b"<rss version='2.0'><channel><title>T</title><link>/</link><item><title>One</title>\
        <link>/1?utm_source=feed#top</link><description>&lt;b&gt;x&lt;/b&gt;</description></item></channel></rss>";

    #[test]
    fn a_feed_is_found_by_what_it_is_and_not_by_its_type_alone() {
        for media_type in [
            "application/rss+xml",
            "text/xml; charset=utf-8",
            "text/html",
            "text/plain",
            "application/octet-stream",
        ] {
            let feed = read_feed("http://a.example/feed", &head(media_type), RSS)
                .unwrap_or_else(|| panic!("{media_type}"));
            assert_eq!(feed.items[0].link.as_deref(), Some("http://a.example/1"), "as pages are named");
            assert_eq!(
                (feed.items[0].summary.as_str(), feed.channel.as_deref()),
                ("x", Some("http://a.example/"))
            );
        }
        assert!(
            read_feed("http://a.example/", &head("text/html"), &b"<html><body>rss</body></html>"[..])
                .is_none()
        );
        assert!(read_feed("http://a.example/", &head("image/png"), RSS).is_none());
        assert!(
            read_stored_feed("http://a.example/", CaptureKind::Revisit, &head("text/xml"), RSS).is_none()
        );
    }

    #[test]
    fn an_item_has_another_digest_when_its_words_are_others() {
        let of = |title: &str| {
            let item =
                FeedItem { title: FeedText { value: title.into(), is_html: true }, ..FeedItem::default() };
            feed_to_row(&Feed { items: vec![item], ..Feed::default() }, "http://a.example/").items[0].digest
        };
        assert_eq!(of("<b>One</b> two"), of("One  <i>two</i>"));
        assert_ne!(of("One two"), of("One three"));
    }
}
