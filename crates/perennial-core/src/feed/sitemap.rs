//! Sitemap bytes -> URLs with their last change (sitemaps.org 0.9, index, news, RSS, Atom, plain text).
//!
//! Malformed XML is read as far as possible. The caller unpacks gzip and resolves the URLs.

use crate::feed::{self, FeedItem};
use crate::text::charset::decode_xml;
use crate::text::xml::{Scanner, XmlPiece, local_name};
use crate::time::Timestamp;

/// The maximum number of entries per file: the limit of the protocol.
pub const MAX_ENTRIES: usize = 50_000;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sitemap {
    /// URLs of pages.
    pub pages: Vec<SitemapEntry>,
    /// URLs of further sitemaps.
    pub sitemaps: Vec<SitemapEntry>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SitemapEntry {
    /// The URL as written, without surrounding spaces.
    pub loc: String,
    /// `lastmod`, or the date of an item of news or of a feed.
    pub changed: Option<Timestamp>,
}

/// Parses a sitemap, a sitemap index, a feed, or a text file with one URL per line.
pub fn parse(bytes: &[u8]) -> Sitemap {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match bytes.iter().find(|b| !b.is_ascii_whitespace()) {
        Some(b'<') => parse_xml(bytes),
        _ => parse_lines(bytes),
    }
}

fn parse_lines(bytes: &[u8]) -> Sitemap {
    let text = String::from_utf8_lossy(bytes);
    let pages = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("http://") || line.starts_with("https://"))
        .take(MAX_ENTRIES)
        .map(|loc| SitemapEntry { loc: loc.to_string(), changed: None })
        .collect();
    Sitemap { pages, sitemaps: Vec::new() }
}

/// The field of an entry that the current text belongs to.
#[derive(Clone, Copy, PartialEq)]
enum EntryField {
    None,
    Loc,
    Changed,
}

fn parse_xml(bytes: &[u8]) -> Sitemap {
    let text = decode_xml(bytes, None);
    if feed::looks_like_feed(bytes) {
        return from_feed(&text);
    }
    let mut sitemap = Sitemap::default();
    let (mut field, mut loc, mut changed) = (EntryField::None, String::new(), String::new());
    for piece in Scanner::new(&text) {
        match piece {
            XmlPiece::Start(tag) => {
                field = match tag.local_name() {
                    "url" | "sitemap" => {
                        loc.clear();
                        changed.clear();
                        EntryField::None
                    }
                    // image:loc and video:loc contain subresources, not pages.
                    "loc" if is_plain_prefix(tag.name) => EntryField::Loc,
                    "lastmod" | "publication_date" => {
                        changed.clear();
                        EntryField::Changed
                    }
                    _ => EntryField::None,
                };
            }
            XmlPiece::Text(text) => append(field, &text, &mut loc, &mut changed),
            XmlPiece::Literal(text) => append(field, text, &mut loc, &mut changed),
            XmlPiece::End(name) => {
                let entry =
                    || SitemapEntry { loc: loc.trim().to_string(), changed: feed::parse_date(&changed) };
                match local_name(name) {
                    "url" if !loc.trim().is_empty() => sitemap.pages.push(entry()),
                    "sitemap" if !loc.trim().is_empty() => sitemap.sitemaps.push(entry()),
                    _ => {}
                }
                field = EntryField::None;
            }
        }
        if sitemap.pages.len() + sitemap.sitemaps.len() >= MAX_ENTRIES {
            break;
        }
    }
    sitemap
}

/// A feed in place of a sitemap: its items are the pages.
fn from_feed(text: &str) -> Sitemap {
    let entry = |item: &FeedItem| Some(SitemapEntry { loc: item.link.clone()?, changed: item.changed() });
    let pages = feed::parse_text(text, "").map(|feed| feed.items.iter().filter_map(entry).collect());
    Sitemap { pages: pages.unwrap_or_default(), sitemaps: Vec::new() }
}

fn is_plain_prefix(name: &str) -> bool {
    let prefix = name.split(':').next().unwrap_or_default();
    !matches!(prefix, "image" | "video")
}

fn append(field: EntryField, text: &str, loc: &mut String, changed: &mut String) {
    let target = match field {
        EntryField::Loc => loc,
        EntryField::Changed => changed,
        EntryField::None => return,
    };
    if target.len() + text.len() <= 8192 {
        target.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn locs(entries: &[SitemapEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.loc.as_str()).collect()
    }

    #[test]
    fn pages_with_dates() {
        let xml = br#"<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
            xmlns:image="i"><url><loc> https://e.org/a?x=1&amp;y=2 </loc><lastmod>2026-11-01</lastmod>
            <image:image><image:loc>https://e.org/i.png</image:loc></image:image></url>
            <url><loc><![CDATA[https://e.org/b]]></loc></url></urlset>"#;
        let sitemap = parse(xml);
        assert_eq!(locs(&sitemap.pages), ["https://e.org/a?x=1&y=2", "https://e.org/b"]);
        assert_eq!(sitemap.pages[0].changed, Timestamp::parse("2026-11-01").ok());
        assert_eq!(sitemap.pages[1].changed, None);
    }

    #[test]
    fn index_and_news() {
        let index =
            parse(b"<sitemapindex><sitemap><loc>https://e.org/1.xml.gz</loc></sitemap></sitemapindex>");
        assert_eq!(locs(&index.sitemaps), ["https://e.org/1.xml.gz"]);
        let news = parse(
            b"<urlset><url><loc>https://e.org/n</loc><news:news><news:publication_date>2026-11-02T10:00:00+01:00\
              </news:publication_date></news:news></url></urlset>",
        );
        assert_eq!(news.pages[0].changed, Timestamp::parse("2026-11-02T09:00:00Z").ok());
    }

    #[test]
    fn feeds_name_pages_with_dates() {
        let rss = parse(
            b"<rss><channel><link>https://e.org/</link><item><title>t</title><link>https://e.org/a</link>\
              <pubDate>Mon, 02 Nov 2026 10:00:00 +0100</pubDate></item></channel></rss>",
        );
        assert_eq!(locs(&rss.pages), ["https://e.org/a"]);
        assert_eq!(rss.pages[0].changed, Timestamp::parse("2026-11-02T09:00:00Z").ok());
        let atom = parse(
            b"<feed><link href='https://e.org/'/><entry><link rel='edit' href='https://e.org/edit'/>\
              <link href='https://e.org/b?x=1&amp;y=2'/><published>2026-11-01T00:00:00Z</published>\
              <updated>2026-11-03T00:00:00Z</updated></entry></feed>",
        );
        assert_eq!(locs(&atom.pages), ["https://e.org/b?x=1&y=2"]);
        assert_eq!(atom.pages[0].changed, Timestamp::parse("2026-11-03").ok());
    }

    #[test]
    fn broken_xml_keeps_what_came_before() {
        let broken = parse(b"<urlset><url><loc>https://e.org/a</loc></url><url><loc>https://e.org/b</lo");
        assert_eq!(locs(&broken.pages), ["https://e.org/a"]);
    }

    #[test]
    fn text_files_and_garbage() {
        assert_eq!(locs(&parse(b"\xef\xbb\xbfhttps://e.org/a\r\nnonsense\nhttps://e.org/b").pages).len(), 2);
        assert_eq!(parse(b""), Sitemap::default());
        assert_eq!(parse(b"<html><body>404</body></html>"), Sitemap::default());
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&bytes);
        }
    }
}
