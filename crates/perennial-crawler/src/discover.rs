//! Finds the URLs to fetch in a response: pages in scope, subresources, sitemaps, feeds.

use std::collections::HashSet;

use perennial_core::text::links::LinkKind;
use perennial_core::time::Timestamp;
use perennial_core::url::canonical;
use perennial_core::url::scope::ScopeKind;
use perennial_core::url::trap::find_trap;
use url::Url;

use perennial_archive::links::{DocumentLinks, read_sitemap};
use perennial_archive::settings::{CrawlTable, Seeds};
use perennial_archive::store::{Discovery, FeedRow, ItemRow, NamingItem, PageKind, VisitTarget};

/// Most subresources per page.
const MAX_SUBRESOURCES: usize = 500;
/// Depth of stylesheets that import stylesheets.
const MAX_SUBRESOURCE_DEPTH: u32 = 4;
/// Most feeds per page.
const MAX_FEEDS: usize = 50;
/// Most sitemaps per robots.txt.
const MAX_NAMED_SITEMAPS: usize = 50;
/// Most sitemaps per sitemap index.
const MAX_SITEMAPS: usize = 500;
/// Depth of nested sitemap indexes.
const MAX_SITEMAP_DEPTH: u32 = 3;

/// Collects the URLs in the response of one target.
pub(super) struct Discoveries<'a> {
    seeds: &'a Seeds,
    table: &'a CrawlTable,
    now: Timestamp,
    target: &'a VisitTarget,
    found: Vec<Discovery>,
    /// Subresources found so far; a page may link to one many times.
    subresources: HashSet<Url>,
    n_feeds: usize,
}

impl<'a> Discoveries<'a> {
    pub(super) fn new(
        seeds: &'a Seeds,
        table: &'a CrawlTable,
        now: Timestamp,
        target: &'a VisitTarget,
    ) -> Discoveries<'a> {
        Discoveries { seeds, table, now, target, found: Vec::new(), subresources: HashSet::new(), n_feeds: 0 }
    }

    /// The URLs in document order.
    pub(super) fn into_found(self) -> Vec<Discovery> {
        self.found
    }

    /// Adds the links to fetch.
    pub(super) fn follow(&mut self, url: &Url, links: &DocumentLinks) {
        match links {
            DocumentLinks::Redirect(to) => self.follow_redirect(url, to),
            _ if matches!(self.target.kind, PageKind::Sitemap | PageKind::Feed) => {}
            DocumentLinks::Style(_) if self.target.kind != PageKind::Subresource => {}
            _ => links.document_links().iter().for_each(|link| self.follow_link(&link.url, link.kind)),
        }
    }

    fn follow_redirect(&mut self, url: &Url, to: &Url) {
        let n_redirects = self.target.n_redirects + 1;
        if n_redirects <= self.table.max_redirects && to != url {
            let (kind, depth) = (self.target.kind, self.target.depth);
            let seed = self.owner_seed(to, depth).unwrap_or(self.target.seed);
            self.found.push(Discovery { n_redirects, ..Discovery::new(to.as_str(), kind, seed, depth) });
        }
    }

    fn follow_link(&mut self, to: &Url, kind: LinkKind) {
        if kind == LinkKind::Feed {
            self.find_feed(to);
        }
        let in_scope = kind.is_page() && self.find_page(to);
        let is_frame = kind == LinkKind::Frame;
        if kind.is_subresource() && !(is_frame && in_scope) {
            self.find_subresource(to);
        }
    }

    /// Adds the URL if it is in scope. Returns whether it is.
    fn find_page(&mut self, to: &Url) -> bool {
        if self.target.kind != PageKind::Page {
            return false;
        }
        let depth = self.target.depth + 1;
        let Some(seed) = self.owner_seed(to, depth) else { return false };
        if find_trap(to, self.now).is_none() {
            self.found.push(Discovery::new(to.as_str(), PageKind::Page, seed, depth));
        }
        true
    }

    fn find_subresource(&mut self, to: &Url) {
        let depth = if self.target.kind == PageKind::Page { 1 } else { self.target.depth + 1 };
        let has_room = depth <= MAX_SUBRESOURCE_DEPTH && self.subresources.len() < MAX_SUBRESOURCES;
        if self.table.subresources && has_room && self.subresources.insert(to.clone()) {
            self.add(to, PageKind::Subresource, depth);
        }
    }

    /// Adds a feed that a page links to, on any host.
    fn find_feed(&mut self, to: &Url) {
        let is_wanted = self.table.feeds && self.target.kind == PageKind::Page;
        if is_wanted && self.n_feeds < MAX_FEEDS {
            self.n_feeds += 1;
            self.add(to, PageKind::Feed, self.target.depth + 1);
        }
    }

    /// Adds the pages of a feed's items, and the feeds of their comments. A URL that was visited as a page or a
    /// sitemap counts as a feed from now on.
    pub(super) fn read_feed(&mut self, url: &Url, feed: &FeedRow) {
        if matches!(self.target.kind, PageKind::Page | PageKind::Sitemap) {
            self.add(url, PageKind::Feed, self.target.depth);
        }
        for item in &feed.items {
            self.find_item(item);
            let comments = item.comment_feed.as_deref().and_then(|feed| Url::parse(feed).ok());
            if let Some(to) =
                comments.filter(|to| self.n_feeds < MAX_FEEDS && self.owner_seed(to, 1).is_some())
            {
                self.n_feeds += 1;
                self.add(&to, PageKind::Feed, 1);
            }
        }
    }

    fn find_item(&mut self, item: &ItemRow) {
        let Some(to) = item.link.as_deref().and_then(|link| Url::parse(link).ok()) else { return };
        if find_trap(&to, self.now).is_some() {
            return;
        }
        let Some(seed) = self.owner_seed(&to, 1) else { return };
        let named_by = NamingItem { key: item.key.clone(), title: item.title.clone() };
        self.found.push(Discovery {
            // A date in the future is a plan or a mistake.
            changed: item.changed().filter(|changed| *changed <= self.now),
            item: Some(Box::new(named_by)),
            ..Discovery::new(to.as_str(), PageKind::Page, seed, 1)
        });
    }

    /// Adds a URL to the target's seed, whatever its host.
    fn add(&mut self, to: &Url, kind: PageKind, depth: u32) {
        self.found.push(Discovery::new(to.as_str(), kind, self.target.seed, depth));
    }

    fn owner_seed(&self, url: &Url, depth: u32) -> Option<i64> {
        self.seeds.owner(url, depth, self.target.seed)
    }

    /// Adds the sitemaps in robots.txt, otherwise `/sitemap.xml`. Seeds whose scope is one page have none.
    pub(super) fn find_sitemaps(&mut self, url: &Url, named: &[String]) {
        let wants_more = self
            .seeds
            .with_number(self.target.seed)
            .is_some_and(|seed| seed.scope.kind != ScopeKind::Page && seed.scope.max_depth != Some(0));
        if !self.table.sitemaps || !wants_more || self.target.kind != PageKind::Page {
            return;
        }
        let usual = ["/sitemap.xml".to_string()];
        for link in if named.is_empty() { &usual } else { named }.iter().take(MAX_NAMED_SITEMAPS) {
            if let Some(to) = canonical::resolve(url, link) {
                self.add(&to, PageKind::Sitemap, 1);
            }
        }
    }

    /// Adds the pages and sitemaps in a sitemap.
    pub(super) fn read_sitemap(&mut self, url: &Url, body: &[u8]) {
        let sitemap = read_sitemap(body);
        let depth = self.target.depth;
        for entry in sitemap.sitemaps.iter().take(MAX_SITEMAPS) {
            if depth < MAX_SITEMAP_DEPTH
                && let Some(to) = canonical::resolve(url, &entry.loc)
            {
                self.add(&to, PageKind::Sitemap, depth + 1);
            }
        }
        for entry in &sitemap.pages {
            let Some(to) = canonical::resolve(url, &entry.loc) else { continue };
            if find_trap(&to, self.now).is_none()
                && let Some(seed) = self.owner_seed(&to, 1)
            {
                let page = Discovery::new(to.as_str(), PageKind::Page, seed, 1);
                self.found.push(Discovery { changed: entry.changed, ..page });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use perennial_core::url::{PageId, SiteId};

    use super::*;
    use perennial_archive::links::DocumentLink;
    use perennial_archive::settings::Seed;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn found_by(links: &[(String, LinkKind)]) -> Vec<Discovery> {
        let seeds = Seeds::new(vec![Seed::of_host(url("http://a.example/"))]).numbered(vec![1]);
        let table = CrawlTable::default();
        let home = url("http://a.example/");
        let target = VisitTarget::unvisited(PageId(1), SiteId(1), home.to_string(), PageKind::Page, 1);
        let mut found = Discoveries::new(&seeds, &table, Timestamp::from_secs(0), &target);
        let links = links.iter().map(|(to, kind)| DocumentLink { url: url(to), kind: *kind });
        found.follow(&home, &DocumentLinks::Page(links.collect()));
        found.into_found()
    }

    fn n_of(found: &[Discovery], kind: PageKind) -> usize {
        found.iter().filter(|found| found.kind == kind).count()
    }

    /// A long listing page may link to thousands of pages before its last stylesheet.
    #[test]
    fn subresources_are_found_however_many_pages_stand_before_them() {
        let mut links: Vec<(String, LinkKind)> =
            (0..3000).map(|n| (format!("http://a.example/{n}"), LinkKind::Anchor)).collect();
        links.push(("http://cdn.example/style.css".into(), LinkKind::Style));
        let found = found_by(&links);
        assert_eq!((n_of(&found, PageKind::Page), n_of(&found, PageKind::Subresource)), (3000, 1));
    }

    #[test]
    fn the_bound_counts_all_subresources_and_not_the_last_in_a_row() {
        let links: Vec<(String, LinkKind)> = (0..2000)
            .flat_map(|n| {
                [
                    (format!("http://cdn.example/{n}.png"), LinkKind::Image),
                    (format!("http://a.example/{n}"), LinkKind::Anchor),
                ]
            })
            .collect();
        let found = found_by(&links);
        assert_eq!(
            (n_of(&found, PageKind::Page), n_of(&found, PageKind::Subresource)),
            (2000, MAX_SUBRESOURCES)
        );
    }

    #[test]
    fn feeds_are_followed_on_any_host_and_their_items_within_the_scope() {
        let feed = ("http://feeds.example/a".to_owned(), LinkKind::Feed);
        let found = found_by(std::slice::from_ref(&feed));
        assert_eq!((found[0].kind, found[0].url.as_str()), (PageKind::Feed, "http://feeds.example/a"));
        let many: Vec<_> = (0..500).map(|n| (format!("http://a.example/{n}/feed"), LinkKind::Feed)).collect();
        assert_eq!(n_of(&found_by(&many), PageKind::Feed), MAX_FEEDS);
    }

    #[test]
    fn items_name_pages_with_dates_and_feeds_of_comments() {
        let seeds = Seeds::new(vec![Seed::of_host(url("http://a.example/"))]).numbered(vec![1]);
        let (table, now) = (CrawlTable::default(), Timestamp::from_secs(1000));
        let feed_url = url("http://a.example/feed");
        let target = VisitTarget::unvisited(PageId(1), SiteId(1), feed_url.to_string(), PageKind::Feed, 1);
        let item = |link: &str, secs: i64| ItemRow {
            key: link.into(),
            title: "One".into(),
            link: Some(link.into()),
            published: Some(Timestamp::from_secs(secs)),
            comment_feed: Some(format!("{link}/comments")),
            ..ItemRow::default()
        };
        let feed = perennial_core::feed::Feed::default();
        let items = vec![
            item("http://a.example/1", 900),
            item("http://a.example/2", 2000),
            item("http://b.example/3", 900),
        ];
        let feed = FeedRow { items, ..perennial_archive::feeds::feed_to_row(&feed, feed_url.as_str()) };
        let mut found = Discoveries::new(&seeds, &table, now, &target);
        found.read_feed(&feed_url, &feed);
        let found = found.into_found();
        let pages: Vec<_> = found.iter().filter(|found| found.kind == PageKind::Page).collect();
        assert_eq!(
            pages.iter().map(|page| page.url.as_str()).collect::<Vec<_>>(),
            ["http://a.example/1", "http://a.example/2"]
        );
        assert_eq!(
            (pages[0].changed, pages[1].changed),
            (Some(Timestamp::from_secs(900)), None),
            "a date of the future is not believed"
        );
        assert_eq!(pages[0].item.as_ref().map(|item| item.title.as_str()), Some("One"));
        assert_eq!(n_of(&found, PageKind::Feed), 2, "comments in the scope");
    }
}
