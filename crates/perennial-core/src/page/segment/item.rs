//! The items of a page: entries of its lists, each with a headline and the page that it leads to.
//!
//! A front page is read as a list of items and not as prose: what matters is which headlines came, went or were rewritten.
//! The items stand beside the blocks of the tree, in reading order, one for each address.

use url::Url;

/// An entry of a list: a headline, what stands beside it, and where it leads.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ListItem {
    /// Where it leads, absolute; empty for a headline without a link.
    pub address: String,
    /// The headline at the first place.
    pub title: String,
    /// The other words of the first place, cut at [`MAX_TEASER_BYTES`].
    pub teaser: String,
    /// How much of a reader's attention its place gets: 1, less in a side column and for other hosts.
    pub weight: f32,
    /// Where it stands, in reading order: the first place is that of the title. At most [`MAX_PLACES`].
    pub places: Vec<ItemPlace>,
}

/// One place of an item.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ItemPlace {
    /// Hash of the markup around it. Items of one list have the same.
    pub template: u32,
    /// The headline there.
    pub title: String,
}

/// Bytes of a teaser that are kept.
pub const MAX_TEASER_BYTES: usize = 400;
/// Bytes of a title that are kept.
pub const MAX_TITLE_BYTES: usize = 400;
/// Places of one item that are kept.
pub const MAX_PLACES: usize = 4;
/// Items of one page that are kept.
pub const MAX_ITEMS: usize = 5_000;

impl ListItem {
    /// What tells it from other items: its address without what does not matter, or its title where it leads nowhere.
    pub fn key(&self) -> String {
        match self.address.is_empty() {
            true => format!("#{}", self.title),
            false => Url::parse(&self.address).map_or_else(|_| self.address.clone(), |url| item_key(&url)),
        }
    }
}

/// All items of a page, and how much of the page they are.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ItemList {
    /// The items, in the order of their first places.
    pub items: Vec<ListItem>,
    /// Words of all places.
    pub n_item_words: u32,
    /// Words of paragraphs outside the items.
    pub n_prose_words: u32,
    /// The most words of such paragraphs that stand together.
    pub n_body_words: u32,
}

/// Fewest items of a hub.
const MIN_LISTING_ITEMS: usize = 8;

impl ItemList {
    /// Whether the page is a hub: a front page or another list, read for its items.
    pub fn is_listing(&self) -> bool {
        let body_limit = (0.2 * f64::from(self.n_item_words)).min(300.0);
        self.items.len() >= MIN_LISTING_ITEMS
            && 3 * self.n_item_words >= 2 * self.n_prose_words
            && f64::from(self.n_body_words) < body_limit
    }

    /// The share of the page's words that stand outside the items.
    pub fn prose_share(&self) -> f64 {
        let all = f64::from(self.n_item_words) + f64::from(self.n_prose_words);
        if all > 0.0 { f64::from(self.n_prose_words) / all } else { 1.0 }
    }
}

/// The key of an address: host without `www.`, path without the slash at its end, no fragment. The query is left out where
/// the path names an article by itself.
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

/// Whether a segment of a path names one article: words with hyphens, a number, a hexadecimal name.
fn is_slug(segment: &str) -> bool {
    let n_hyphens = segment.bytes().filter(|byte| *byte == b'-').count();
    let mut digits = segment.as_bytes().split(|byte| !byte.is_ascii_digit());
    let is_hex = |part: &[u8]| {
        part.len() >= 12 && part.iter().all(u8::is_ascii_hexdigit) && part.iter().any(u8::is_ascii_digit)
    };
    let mut parts = segment.as_bytes().split(|byte| !byte.is_ascii_alphanumeric());
    n_hyphens >= 2 || digits.any(|run| run.len() >= 5) || parts.any(is_hex)
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

    fn key(address: &str) -> String {
        item_key(&Url::parse(address).unwrap())
    }

    #[test]
    fn keys_leave_out_what_does_not_matter() {
        assert_eq!(
            key("https://www.a.example/news/the-long-way-home/?utm_source=x#top"),
            "a.example/news/the-long-way-home"
        );
        assert_eq!(key("http://a.example/item/123456?page=2"), "a.example/item/123456");
        assert_eq!(key("http://a.example/show?id=7&utm_medium=y"), "a.example/show?id=7");
        assert_ne!(key("http://a.example/show?id=7"), key("http://a.example/show?id=8"));
    }

    #[test]
    fn a_page_of_items_is_a_hub_and_an_article_with_a_list_is_none() {
        let items = vec![ListItem::default(); 10];
        let hub = ItemList { items, n_item_words: 400, n_prose_words: 60, n_body_words: 40 };
        assert!(hub.is_listing());
        assert!(!ItemList { n_prose_words: 600, n_body_words: 600, ..hub.clone() }.is_listing());
        assert!(!ItemList { items: hub.items[..7].to_vec(), ..hub }.is_listing());
    }
}
