//! The list items of a page: entries with a headline and a link.
//!
//! People read a front page as a list of items, not as prose. Its important changes are added, removed and rewritten
//! headlines. Items are stored next to the block tree, in reading order, one per URL.

use url::Url;

/// An entry of a list: headline, teaser and link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ListItem {
    /// Absolute URL. Empty for a headline without a link.
    pub url: String,
    /// The headline at its first place.
    pub title: String,
    /// The other words at its first place, at most [`MAX_TEASER_BYTES`].
    pub teaser: String,
    /// Weight of its position: 1, less in a side column and for other hosts.
    pub weight: f32,
    /// Its occurrences in reading order; the title is from the first one. At most [`MAX_PLACES`].
    pub places: Vec<ItemPlace>,
}

/// One occurrence of an item on the page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ItemPlace {
    /// Hash of the surrounding markup. Items of one list have the same hash.
    pub template: u32,
    /// The headline there.
    pub title: String,
}

pub const MAX_TEASER_BYTES: usize = 400;
pub const MAX_TITLE_BYTES: usize = 400;
/// Maximum number of stored places per item.
pub const MAX_PLACES: usize = 4;
/// Maximum number of stored items per page.
pub const MAX_ITEMS: usize = 5_000;

impl ListItem {
    /// Identifies the item: the normalised URL, or the title if there is no URL.
    pub fn key(&self) -> String {
        match self.url.is_empty() {
            true => format!("#{}", self.title),
            false => Url::parse(&self.url).map_or_else(|_| self.url.clone(), |url| item_key(&url)),
        }
    }
}

/// All items of a page, and word counts of the page.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ItemList {
    /// The items, ordered by their first places.
    pub items: Vec<ListItem>,
    /// Words of all places.
    pub n_item_words: u32,
    /// Words of paragraphs outside the items.
    pub n_prose_words: u32,
    /// The largest number of such words in one container.
    pub n_body_words: u32,
}

/// Fewer entries are a box on another page, such as related stories.
const MIN_LISTING_ITEMS: usize = 8;

impl ItemList {
    /// Whether the page is a listing page, such as a front page, which people read for its items.
    pub fn is_listing(&self) -> bool {
        let body_limit = (0.2 * f64::from(self.n_item_words)).min(300.0);
        self.items.len() >= MIN_LISTING_ITEMS
            && 3 * self.n_item_words >= 2 * self.n_prose_words
            && f64::from(self.n_body_words) < body_limit
    }

    /// The share of the page's words outside the items.
    pub fn prose_share(&self) -> f64 {
        let all = f64::from(self.n_item_words) + f64::from(self.n_prose_words);
        if all > 0.0 { f64::from(self.n_prose_words) / all } else { 1.0 }
    }
}

/// The key of a URL: host without `www.`, path without trailing slash, no fragment. The query is left out if the path
/// alone identifies an article.
pub fn item_key(url: &Url) -> String {
    let host = url.host_str().unwrap_or("");
    let path = url.path().trim_end_matches('/');
    let mut key = format!("{}{path}", host.strip_prefix("www.").unwrap_or(host));
    let is_named = path.rsplit('/').take(2).any(is_slug);
    if let Some(query) = url.query().filter(|_| !is_named) {
        let kept: Vec<&str> = query.split('&').filter(|part| !is_tracking(part)).collect();
        if !kept.is_empty() {
            key.push('?');
            key.push_str(&kept.join("&"));
        }
    }
    key
}

/// Whether a path segment identifies an article: words with hyphens, a long number, or a long hexadecimal ID.
fn is_slug(segment: &str) -> bool {
    let n_hyphens = segment.bytes().filter(|byte| *byte == b'-').count();
    let mut digits = segment.as_bytes().split(|byte| !byte.is_ascii_digit());
    let is_hex = |part: &[u8]| {
        part.len() >= 12 && part.iter().all(u8::is_ascii_hexdigit) && part.iter().any(u8::is_ascii_digit)
    };
    let mut parts = segment.as_bytes().split(|byte| !byte.is_ascii_alphanumeric());
    n_hyphens >= 2 || digits.any(|run| run.len() >= 5) || parts.any(is_hex)
}

/// Whether a key is that of one article or post: words with hyphens, a long number, or a date in the path.
pub(crate) fn names_article(key: &str) -> bool {
    let path = key.split('?').next().unwrap_or("");
    let segments: Vec<&str> = path.split('/').skip(1).filter(|segment| !segment.is_empty()).collect();
    let is_number = |segment: &str, n_digits: usize| {
        segment.len() == n_digits && segment.bytes().all(|byte| byte.is_ascii_digit())
    };
    let has_date = segments.windows(2).any(|pair| is_number(pair[0], 4) && is_number(pair[1], 2));
    has_date || segments.iter().rev().take(2).any(|segment| is_slug(segment))
}

fn is_tracking(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or("");
    name.is_empty()
        || name.starts_with("utm_")
        || name.starts_with("wt_")
        || matches!(
            name,
            "fbclid" | "gclid" | "ref" | "xtor" | "cmp" | "campaign" | "source" | "mc_cid" | "mc_eid"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(url: &str) -> String {
        item_key(&Url::parse(url).unwrap())
    }

    #[test]
    fn keys_leave_out_irrelevant_parts_of_urls() {
        assert_eq!(
            key("https://www.a.example/news/the-long-way-home/?utm_source=x#top"),
            "a.example/news/the-long-way-home"
        );
        assert_eq!(key("http://a.example/item/123456?page=2"), "a.example/item/123456");
        assert_eq!(key("http://a.example/show?id=7&utm_medium=y"), "a.example/show?id=7");
        assert_ne!(key("http://a.example/show?id=7"), key("http://a.example/show?id=8"));
    }

    #[test]
    fn a_page_of_items_is_a_listing_page_and_an_article_with_a_list_is_not() {
        let items = vec![ListItem::default(); 10];
        let hub = ItemList { items, n_item_words: 400, n_prose_words: 60, n_body_words: 40 };
        assert!(hub.is_listing());
        assert!(!ItemList { n_prose_words: 600, n_body_words: 600, ..hub.clone() }.is_listing());
        assert!(!ItemList { items: hub.items[..7].to_vec(), ..hub }.is_listing());
    }
}
