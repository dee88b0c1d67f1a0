//! Decides which discovered URLs are fetched: those that are unknown, not fetched recently, and within the limit of
//! their shape.
//!
//! URLs are stored as hashes, because a crawl knows millions of them.

use std::collections::{HashMap, HashSet};

use perennial_core::time::{Span, Timestamp};
use perennial_core::url::trap::shape;
use url::Url;

use perennial_archive::store::{Discovery, FrontierPage, PageKind, url_hash};

/// Most sitemaps per seed. Each contains up to 50,000 pages. A site with more of them generates them.
const MAX_SITEMAPS_OF_SEED: usize = 2_000;

/// Most feeds per seed. Some sites have one for the comments of every article.
const MAX_FEEDS_OF_SEED: usize = 1_000;

pub(super) struct KnownUrls {
    pages: HashSet<u64>,
    /// Subresources and sitemaps, with the second when they were last fetched or queued.
    fetched: HashMap<u64, i64>,
    /// Sitemaps per seed.
    n_sitemaps: HashMap<i64, usize>,
    feeds: HashSet<u64>,
    /// Feeds per seed.
    n_feeds: HashMap<i64, usize>,
    /// Pages per host and shape.
    n_by_shape: HashMap<u64, u32>,
    max_pages_per_shape: u32,
    /// A subresource is not fetched again within this time.
    subresource_span: Span,
}

impl KnownUrls {
    pub(super) fn new(max_pages_per_shape: u32, subresource_span: Span) -> KnownUrls {
        KnownUrls {
            pages: HashSet::new(),
            fetched: HashMap::new(),
            n_sitemaps: HashMap::new(),
            feeds: HashSet::new(),
            n_feeds: HashMap::new(),
            n_by_shape: HashMap::new(),
            max_pages_per_shape,
            subresource_span,
        }
    }

    /// Adds a URL from an earlier crawl. A visit in the future, made while the clock was ahead, counts as made now.
    pub(super) fn load(&mut self, known: &FrontierPage, now: Timestamp) {
        let hash = url_hash(&known.url);
        if known.kind == PageKind::Feed {
            self.feeds.insert(hash);
            *self.n_feeds.entry(known.seed).or_default() += 1;
            return;
        }
        if known.kind != PageKind::Page {
            self.fetched.insert(hash, known.visited.map_or(0, |visited| visited.min(now).as_secs()));
            if known.kind == PageKind::Sitemap {
                *self.n_sitemaps.entry(known.seed).or_default() += 1;
            }
            return;
        }
        self.pages.insert(hash);
        if let Ok(url) = Url::parse(&known.url) {
            self.count_shape(&url);
        }
    }

    /// Marks a URL as fetched, such as a robots.txt or a request of the browser.
    pub(super) fn fetched(&mut self, url: &str, at: Timestamp) {
        self.fetched.insert(url_hash(url), at.as_secs());
    }

    /// Whether to queue a discovery, or to record the change of a known page. The URL is known afterwards.
    pub(super) fn is_wanted(&mut self, found: &Discovery, now: Timestamp) -> bool {
        let hash = url_hash(&found.url);
        match found.kind {
            // A known page may turn out to be a feed.
            PageKind::Feed => {
                !self.feeds.contains(&hash) && self.count_feed(found.seed) && self.feeds.insert(hash)
            }
            PageKind::Page if self.feeds.contains(&hash) => false,
            PageKind::Page if self.pages.contains(&hash) => found.changed.is_some() || found.item.is_some(),
            PageKind::Page => {
                let has_room = found.n_redirects > 0 || self.shape_has_room(&found.url);
                has_room && self.pages.insert(hash)
            }
            PageKind::Subresource if self.pages.contains(&hash) => false,
            PageKind::Subresource | PageKind::Sitemap => {
                let fetched = self.fetched.get(&hash).map(|&secs| Timestamp::from_secs(secs));
                if fetched.is_some_and(|fetched| fetched + self.subresource_span > now) {
                    return false;
                }
                if fetched.is_none() && found.kind == PageKind::Sitemap && !self.count_sitemap(found.seed) {
                    return false;
                }
                self.fetched.insert(hash, now.as_secs());
                true
            }
        }
    }

    /// Whether a seed may have one more feed.
    fn count_feed(&mut self, seed: i64) -> bool {
        let n_feeds = self.n_feeds.entry(seed).or_default();
        *n_feeds += 1;
        *n_feeds <= MAX_FEEDS_OF_SEED
    }

    /// Whether a seed may have one more sitemap.
    fn count_sitemap(&mut self, seed: i64) -> bool {
        let n_sitemaps = self.n_sitemaps.entry(seed).or_default();
        *n_sitemaps += 1;
        *n_sitemaps <= MAX_SITEMAPS_OF_SEED
    }

    fn shape_has_room(&mut self, url: &str) -> bool {
        Url::parse(url).is_ok_and(|url| self.count_shape(&url) <= self.max_pages_per_shape)
    }

    /// Counts a page of its shape. Returns the new count.
    fn count_shape(&mut self, url: &Url) -> u32 {
        let key = url_hash(&format!("{}{}", url.host_str().unwrap_or_default(), shape(url)));
        let n_pages = self.n_by_shape.entry(key).or_default();
        *n_pages = n_pages.saturating_add(1);
        *n_pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(url: &str, kind: PageKind) -> Discovery {
        Discovery::new(url, kind, 1, 1)
    }

    #[test]
    fn pages_are_wanted_once_and_subresources_when_they_are_old() {
        let (mut known, now) = (KnownUrls::new(10, Span::from_hours(24)), Timestamp::from_secs(1_000_000));
        let page = found("http://a.example/", PageKind::Page);
        assert!(known.is_wanted(&page, now) && !known.is_wanted(&page, now));
        let announced = Discovery { changed: Some(now), ..page };
        assert!(known.is_wanted(&announced, now), "a sitemap says that it changed");
        let style = found("http://a.example/s.css", PageKind::Subresource);
        assert!(known.is_wanted(&style, now) && !known.is_wanted(&style, now + Span::from_hours(23)));
        assert!(known.is_wanted(&style, now + Span::from_hours(24)));
    }

    #[test]
    fn a_seed_has_a_bounded_number_of_sitemaps() {
        let (mut known, now) = (KnownUrls::new(10, Span::from_hours(1)), Timestamp::from_secs(1_000_000));
        let sitemap = |n: usize| found(&format!("http://a.example/{n}.xml"), PageKind::Sitemap);
        let n_wanted = (0..5000).filter(|&n| known.is_wanted(&sitemap(n), now)).count();
        assert_eq!(n_wanted, MAX_SITEMAPS_OF_SEED);
        assert!(known.is_wanted(&sitemap(0), now + Span::from_hours(2)), "known ones are read again");
    }

    #[test]
    fn a_feed_is_wanted_once_also_where_it_was_taken_for_a_page() {
        let (mut known, now) = (KnownUrls::new(10, Span::from_hours(1)), Timestamp::from_secs(1_000_000));
        let (page, feed) =
            (found("http://a.example/f", PageKind::Page), found("http://a.example/f", PageKind::Feed));
        assert!(known.is_wanted(&page, now) && known.is_wanted(&feed, now) && !known.is_wanted(&feed, now));
        assert!(!known.is_wanted(&Discovery { changed: Some(now), ..page }, now), "it is a feed now");
        let many = (0..2000)
            .filter(|n| known.is_wanted(&found(&format!("http://a.example/{n}/feed"), PageKind::Feed), now));
        assert_eq!(many.count(), MAX_FEEDS_OF_SEED - 1);
    }

    #[test]
    fn a_shape_has_room_for_max_pages() {
        let (mut known, now) = (KnownUrls::new(10, Span::ZERO), Timestamp::from_secs(0));
        let is_wanted =
            |n: &u32| known.is_wanted(&found(&format!("http://a.example/p/{n}"), PageKind::Page), now);
        assert_eq!((0..100u32).filter(is_wanted).count(), 10);
    }
}
