//! A news sitemap -> feed: the last two days of a news site, with headlines and times.
//!
//! Search engines require it, so sites without a complete feed often have one. It is read and polled like any other
//! feed.

use url::Url;

use super::{
    Feed, FeedFormat, FeedItem, FeedText, MAX_ITEMS, MAX_LABEL_BYTES, MAX_PARTS, absolute, folded, parse_date,
};
use crate::text::untrusted::truncate;
use crate::text::xml::{Scanner, XmlPiece, local_name};

/// The vocabulary of news sitemaps.
const VOCABULARY: &str = "sitemap-news";

/// Whether a text, in lower case, begins like a news sitemap.
pub(super) fn is_news_sitemap(start: &str) -> bool {
    start.contains("<urlset") && start.contains(VOCABULARY)
}

/// Parses a news sitemap; `None` if it is not one. URLs without news are not items.
pub(super) fn read(text: &str, base: Option<&Url>) -> Option<Feed> {
    let mut reading = NewsReader::default();
    for piece in Scanner::new(text) {
        match piece {
            XmlPiece::Start(tag) => {
                reading.is_news |= tag.local_name().eq_ignore_ascii_case("urlset")
                    && tag.raw_attributes().any(|attribute| attribute.value.contains(VOCABULARY));
                reading.start(tag.local_name());
            }
            XmlPiece::End(name) => reading.end(local_name(name), base),
            XmlPiece::Text(text) => reading.text(&text),
            XmlPiece::Literal(text) => reading.text(text),
        }
    }
    reading.is_news.then_some(reading.feed)
}

#[derive(Default)]
struct NewsReader {
    is_news: bool,
    feed: Feed,
    item: FeedItem,
    has_news: bool,
    /// Whether inside of `image:image` and the like, which have their own titles and URLs.
    is_in_media: bool,
    text: String,
}

impl NewsReader {
    fn start(&mut self, name: &str) {
        self.text.clear();
        match name {
            "url" => (self.item, self.has_news) = (FeedItem::default(), false),
            "news" => self.has_news = true,
            "image" | "video" => self.is_in_media = true,
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        let room = MAX_LABEL_BYTES.saturating_sub(self.text.len());
        self.text.push_str(truncate(text, room));
    }

    fn end(&mut self, name: &str, base: Option<&Url>) {
        let said = folded(&std::mem::take(&mut self.text));
        match name {
            "image" | "video" => self.is_in_media = false,
            "url" => self.put(),
            _ if self.is_in_media || said.is_empty() => {}
            "loc" => self.item.link = Some(absolute(base, &said)),
            "title" => self.item.title = FeedText { value: said, is_html: false },
            "publication_date" => self.item.published = parse_date(&said),
            "lastmod" => self.item.updated = parse_date(&said),
            "name" if self.feed.title.is_empty() => {
                self.feed.title = FeedText { value: said, is_html: false }
            }
            "language" if self.feed.language.is_none() => self.feed.language = Some(said),
            "keywords" => {
                let words = said.split(',').map(str::trim).filter(|word| !word.is_empty());
                self.item.categories = words.take(MAX_PARTS).map(str::to_owned).collect();
            }
            _ => {}
        }
    }

    fn put(&mut self) {
        let mut item = std::mem::take(&mut self.item);
        if !self.has_news || item.link.is_none() {
            return;
        }
        if self.feed.items.len() == MAX_ITEMS {
            self.feed.n_left_out += 1;
            return;
        }
        self.feed.format = FeedFormat::NewsSitemap;
        item.id.clone_from(&item.link);
        self.feed.items.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{looks_like_feed, parse};
    use super::*;

    const NEWS: &str = "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' \
        xmlns:news='http://www.google.com/schemas/sitemap-news/0.9'><url><loc>http://a.example/1</loc><lastmod>2026-11-02</lastmod>\
        <image:image><image:loc>http://a.example/p.jpg</image:loc><image:title>A picture</image:title></image:image>\
        <news:news><news:publication><news:name>The Paper</news:name><news:language>en</news:language></news:publication>\
        <news:publication_date>2026-11-01T10:00:00Z</news:publication_date><news:title>Ferry &amp; harbour</news:title>\
        <news:keywords>sea, town</news:keywords></news:news></url><url><loc>http://a.example/imprint</loc></url></urlset>";

    #[test]
    fn news_are_items() {
        assert!(looks_like_feed(NEWS.as_bytes()));
        let feed = parse(NEWS.as_bytes(), Some("application/xml"), "http://a.example/news.xml").unwrap();
        assert_eq!(
            (feed.format, feed.title.value.as_str(), feed.items.len()),
            (FeedFormat::NewsSitemap, "The Paper", 1)
        );
        let item = &feed.items[0];
        assert_eq!(
            (item.title.value.as_str(), item.link.as_deref()),
            ("Ferry & harbour", Some("http://a.example/1"))
        );
        assert_eq!(item.published.map(|time| time.to_rfc3339()).as_deref(), Some("2026-11-01T10:00:00Z"));
        assert_eq!(item.categories, ["sea", "town"]);
    }

    #[test]
    fn a_sitemap_without_news_is_no_feed() {
        let plain = NEWS.replace("sitemap-news", "sitemap-other");
        assert!(!looks_like_feed(plain.as_bytes()));
        assert!(parse(plain.as_bytes(), None, "http://a.example/").is_err());
    }
}
