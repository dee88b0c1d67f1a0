//! Bytes of a feed -> its metadata and items (P-FEED 3; docs/feeds.md).
//!
//! It reads RSS 0.9x, 1.0 (RDF) and 2.0, Atom 0.3 and 1.0, JSON Feed, and the common modules: Dublin Core,
//! content:encoded, Media RSS, syndication, wfw and slash for comments, threading, iTunes. Malformed XML is read as
//! far as possible. Of repeated values the more specific element wins. Constants limit bytes, items, depth and the
//! length of each text.
//!
//! | file | what becomes what |
//! |---|---|
//! | `capture` | the content of an element -> its text |
//! | `fragment` | HTML inside a feed -> words, or HTML with absolute URLs |
//! | `names` | prefixes and URLs of namespaces -> the meaning of an element |
//! | `read` | XML -> feed |
//! | `json` | JSON Feed -> feed |
//! | `news` | a news sitemap -> feed |
//! | [`opml`] | a list of subscriptions <-> OPML |
//! | [`polling`] | a feed's history -> the time of the next poll |
//! | [`websub`] | feeds that name a hub -> subscriptions at the hub |

mod capture;
mod fragment;
mod json;
mod names;
mod news;
pub mod opml;
pub mod polling;
mod read;
pub mod sitemap;
pub mod websub;

use url::Url;

use crate::text::charset::decode_xml;
use crate::text::untrusted::truncate;
use crate::text::xml::without_controls;
use crate::time::dates::{self, DateOrder};
use crate::time::{Span, Timestamp};

pub use fragment::{absolute_html, html_words};

/// Bytes read per feed.
pub const MAX_FEED_BYTES: usize = 8 << 20;
/// Items read per feed.
pub const MAX_ITEMS: usize = 10_000;
/// Bytes per text of an item.
const MAX_VALUE_BYTES: usize = 1 << 20;
/// Bytes per URL, identifier or name.
const MAX_LABEL_BYTES: usize = 4 << 10;
/// Links, people, categories and media per item.
const MAX_PARTS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize)]
pub enum FeedFormat {
    /// RSS 0.9x without RDF, and feeds without a version.
    #[default]
    #[serde(rename = "rss 0.9")]
    Rss09,
    /// RSS 0.90 and 1.0, based on RDF.
    #[serde(rename = "rss 1.0")]
    Rdf,
    #[serde(rename = "rss 2.0")]
    Rss2,
    /// Atom 0.3 and 1.0.
    #[serde(rename = "atom")]
    Atom,
    #[serde(rename = "json feed")]
    Json,
    #[serde(rename = "news sitemap")]
    NewsSitemap,
}

impl FeedFormat {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            FeedFormat::Rss09 => "RSS 0.9",
            FeedFormat::Rdf => "RSS 1.0",
            FeedFormat::Rss2 => "RSS 2.0",
            FeedFormat::Atom => "Atom",
            FeedFormat::Json => "JSON Feed",
            FeedFormat::NewsSitemap => "news sitemap",
        }
    }
}

/// A text of a feed, which may be HTML.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct FeedText {
    /// HTML with absolute URLs, or plain text.
    pub value: String,
    pub is_html: bool,
}

impl FeedText {
    /// The words that a reader sees, with white space collapsed.
    pub fn words(&self) -> String {
        match self.is_html {
            true => html_words(&self.value),
            false => folded(&self.value),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The author of a feed or an item.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Person {
    pub name: String,
    /// Mail address.
    pub email: String,
    /// URL of a page.
    pub url: String,
}

/// A link of a feed or an item.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct FeedLink {
    /// Absolute if the base is known.
    pub href: String,
    /// The relation, by default `alternate`.
    pub rel: String,
    /// Media type; empty if missing.
    pub media_type: String,
}

/// A feed's own hints about how often to poll it.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct PollHints {
    /// `ttl`, in minutes: how long a copy remains valid.
    pub ttl_minutes: Option<u32>,
    /// Hours of the day in UTC without polls, one bit each.
    pub skip_hours: u32,
    /// Days of the week without polls, Monday first, one bit each.
    pub skip_days: u8,
    /// `sy:updatePeriod` in seconds.
    pub update_period_secs: Option<u32>,
    /// `sy:updateFrequency`: updates per period.
    pub update_frequency: Option<u32>,
}

#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct Feed {
    pub format: FeedFormat,
    pub title: FeedText,
    /// URL of its web page.
    pub link: Option<String>,
    /// Its identifier.
    pub id: Option<String>,
    pub description: FeedText,
    pub authors: Vec<Person>,
    /// `lastBuildDate`, `updated`.
    #[serde(serialize_with = "as_text")]
    pub updated: Option<Timestamp>,
    /// `pubDate` of the channel.
    #[serde(serialize_with = "as_text")]
    pub published: Option<Timestamp>,
    /// Time of creation.
    #[serde(serialize_with = "as_text")]
    pub created: Option<Timestamp>,
    /// Language code, as written.
    pub language: Option<String>,
    /// Categories of the whole feed.
    pub categories: Vec<String>,
    pub pace: PollHints,
    /// Further links, such as `self`, `hub`, `next`.
    pub links: Vec<FeedLink>,
    /// In document order.
    pub items: Vec<FeedItem>,
    /// Number of items beyond [`MAX_ITEMS`].
    pub n_left_out: usize,
    /// Whether it is malformed.
    pub is_broken: bool,
}

#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct FeedItem {
    /// Its own identifier.
    pub id: Option<String>,
    /// Absolute URL of its page.
    pub link: Option<String>,
    pub title: FeedText,
    pub summary: Option<FeedText>,
    /// The full text, if the feed contains it.
    pub contents: Vec<FeedText>,
    /// Time of publication.
    #[serde(serialize_with = "as_text")]
    pub published: Option<Timestamp>,
    /// Time of the last change.
    #[serde(serialize_with = "as_text")]
    pub updated: Option<Timestamp>,
    /// Time of creation.
    #[serde(serialize_with = "as_text")]
    pub created: Option<Timestamp>,
    pub authors: Vec<Person>,
    /// Categories and tags.
    pub categories: Vec<String>,
    /// URL of the page with its comments.
    pub comments: Option<String>,
    /// URL of the feed of its comments.
    pub comment_feed: Option<String>,
    /// Number of comments, according to the feed.
    pub n_comments: Option<u32>,
    /// Pictures, audio, video.
    pub media: Vec<FeedLink>,
    /// Further links.
    pub links: Vec<FeedLink>,
}

impl FeedItem {
    /// Identifies the item within its feed: its identifier, or its URL, or its headline and date.
    pub fn key(&self) -> String {
        let given = self.id.as_deref().or(self.link.as_deref()).filter(|text| !text.is_empty());
        match given {
            Some(key) => key.to_owned(),
            None => {
                let time = self.published.map(Timestamp::to_rfc3339).unwrap_or_default();
                let title = self.title.words();
                let text = match title.is_empty() {
                    true => self.summary.as_ref().map(FeedText::words).unwrap_or_default(),
                    false => title,
                };
                format!("{time} {}", truncate(&text, MAX_LABEL_BYTES))
            }
        }
    }

    /// The time of publication, or else of creation or change.
    pub fn time(&self) -> Option<Timestamp> {
        self.published.or(self.created).or(self.updated)
    }

    /// The time of the last change; for a new item the time of publication.
    pub fn changed(&self) -> Option<Timestamp> {
        [self.published, self.updated, self.created].into_iter().flatten().max()
    }
}

impl Feed {
    /// The feed's own URL, if it contains one.
    pub fn self_url(&self) -> Option<&str> {
        self.links.iter().find(|link| link.rel == "self").map(|link| link.href.as_str())
    }

    /// The hub that notifies subscribers of new items (WebSub).
    pub fn hub(&self) -> Option<&str> {
        self.links.iter().find(|link| link.rel == "hub").map(|link| link.href.as_str())
    }
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FeedError {
    #[error("this is a web page, not a feed; `perennial feed find` lists the feeds that it links to")]
    Page,
    #[error("this is not a feed; expected RSS, Atom or JSON Feed")]
    Unknown,
}

/// Parses a feed. Relative URLs are resolved against `url`.
pub fn parse(bytes: &[u8], content_type: Option<&str>, url: &str) -> Result<Feed, FeedError> {
    let text = decode_xml(&bytes[..bytes.len().min(MAX_FEED_BYTES)], content_type);
    parse_text(&without_controls(&text), url)
}

/// The same for decoded text.
pub fn parse_text(text: &str, url: &str) -> Result<Feed, FeedError> {
    let text = &text[..text.floor_char_boundary(MAX_FEED_BYTES)];
    let base = Url::parse(url).ok();
    let start = truncate(text, START_BYTES).to_ascii_lowercase();
    match start.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        true => json::read(text, base.as_ref()).ok_or(FeedError::Unknown),
        false if news::is_news_sitemap(&start) => news::read(text, base.as_ref()).ok_or(FeedError::Unknown),
        false => read::read(text, base),
    }
}

/// Bytes at the start that identify a feed.
const START_BYTES: usize = 4096;

/// Whether a document is probably a feed, judging by its first bytes.
pub fn looks_like_feed(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(START_BYTES)])
        .replace('\0', "")
        .to_ascii_lowercase();
    let is_xml = ["<rss", "<feed", "<rdf:rdf", ":rss", ":feed"].iter().any(|root| start.contains(root));
    is_xml
        || news::is_news_sitemap(&start)
        || start.contains("jsonfeed.org/version") && start.trim_start().starts_with('{')
}

/// Makes a URL absolute if possible.
fn absolute(base: Option<&Url>, href: &str) -> String {
    let href = href.trim();
    let joined = match base {
        Some(base) => base.join(href).ok(),
        None => Url::parse(href).ok(),
    };
    // Absolute URLs remain as written, because identifiers are compared literally.
    match joined {
        Some(url) if !has_scheme(href) => url.into(),
        _ => href.to_owned(),
    }
}

fn has_scheme(href: &str) -> bool {
    let scheme = href.split(':').next().unwrap_or_default();
    scheme.len() < href.len()
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn as_text<S: serde::Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_str(&time.to_rfc3339()),
        None => serializer.serialize_none(),
    }
}

/// The mean length of a period in `sy:updatePeriod`.
fn period_secs(name: &str) -> Option<u32> {
    let span = match name.trim().to_ascii_lowercase().as_str() {
        "hourly" => Span::from_hours(1),
        "daily" => Span::from_hours(24),
        "weekly" => Span::from_hours(24 * 7),
        "monthly" => Span::from_hours(24 * 30),
        "yearly" => Span::from_hours(24 * 365),
        _ => return None,
    };
    u32::try_from(span.as_millis() / 1000).ok()
}

/// Parses a date of a feed or a sitemap.
pub fn parse_date(text: &str) -> Option<Timestamp> {
    dates::parse(text, DateOrder::MonthFirst)
}

#[cfg(test)]
mod tests;
