//! Bytes of a feed -> what it says of itself and of its items (P-FEED 3; docs/feeds.md).
//!
//! RSS 0.9x, 1.0 (RDF) and 2.0, Atom 0.3 and 1.0, JSON Feed; with the modules that people use: Dublin Core, content:encoded, Media RSS,
//! syndication, wfw and slash for comments, threading, iTunes. Broken XML is read as far as it makes sense, and what is said twice counts
//! by the more specific element. Bounds: bytes, items, depth and the length of each text; see the constants.
//!
//! | file | what becomes what |
//! |---|---|
//! | `capture` | the inside of one element -> its text |
//! | `fragment` | HTML inside a feed -> words, or HTML with absolute addresses |
//! | `names` | prefixes and addresses of namespaces -> what an element says |
//! | `read` | XML -> feed |
//! | `json` | JSON Feed -> feed |
//! | `news` | a news sitemap -> feed |
//! | [`opml`] | a list of subscriptions <-> OPML |
//! | [`polling`] | what is known of a feed -> when to look at it again |
//! | [`websub`] | feeds that name a hub -> subscriptions |

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
use crate::time::dates::{self, Strokes};
use crate::time::{Span, Timestamp};

pub use fragment::{absolute_html, words_of_html};

/// Bytes of a feed that are read.
pub const MAX_FEED_BYTES: usize = 8 << 20;
/// Items of a feed that are read.
pub const MAX_ITEMS: usize = 10_000;
/// Bytes of one text of an item.
const MAX_VALUE_BYTES: usize = 1 << 20;
/// Bytes of an address, an identity or a name.
const MAX_LABEL_BYTES: usize = 4 << 10;
/// Links, people, categories and media of one item, each.
const MAX_PARTS: usize = 64;

/// The format of a feed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize)]
pub enum FeedFormat {
    /// RSS 0.9x without RDF, and what claims no version.
    #[default]
    #[serde(rename = "rss 0.9")]
    Rss09,
    /// RSS 0.90 and 1.0, which are RDF.
    #[serde(rename = "rss 1.0")]
    Rdf,
    /// RSS 2.0.
    #[serde(rename = "rss 2.0")]
    Rss2,
    /// Atom 0.3 and 1.0.
    #[serde(rename = "atom")]
    Atom,
    /// JSON Feed.
    #[serde(rename = "json feed")]
    Json,
    /// A sitemap of news.
    #[serde(rename = "news sitemap")]
    NewsSitemap,
}

impl FeedFormat {
    /// The name that users read.
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
    /// As it is meant: HTML with absolute addresses, or plain text.
    pub value: String,
    /// Whether it is HTML.
    pub is_html: bool,
}

impl FeedText {
    /// The words that a reader sees, white space folded.
    pub fn words(&self) -> String {
        match self.is_html {
            true => words_of_html(&self.value),
            false => folded(&self.value),
        }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Who wrote something.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Person {
    /// The name.
    pub name: String,
    /// The address of mail.
    pub email: String,
    /// The address of a page.
    pub url: String,
}

/// An address that a feed or an item names.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct FeedLink {
    /// Absolute where the base is known.
    pub href: String,
    /// What it is for: `alternate` unless it says otherwise.
    pub rel: String,
    /// Media type; empty where none is given.
    pub media_type: String,
}

/// What tells how often a feed wants to be asked.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Pace {
    /// `ttl`, in minutes: what was fetched stays good for so long.
    pub ttl_minutes: Option<u32>,
    /// Hours of the day in UTC in which the feed asks not to be fetched, a bit each.
    pub skip_hours: u32,
    /// Days of the week in which it asks not to be fetched, Monday first, a bit each.
    pub skip_days: u8,
    /// `sy:updatePeriod` in seconds.
    pub update_period_secs: Option<u32>,
    /// `sy:updateFrequency`: updates in a period.
    pub update_frequency: Option<u32>,
}

/// A feed as it was read.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct Feed {
    /// Its format.
    pub format: FeedFormat,
    /// Its name.
    pub title: FeedText,
    /// Its channel page.
    pub link: Option<String>,
    /// Its identity.
    pub id: Option<String>,
    /// What it is about.
    pub description: FeedText,
    /// Who is behind it.
    pub authors: Vec<Person>,
    /// `lastBuildDate`, `updated`.
    #[serde(serialize_with = "as_text")]
    pub updated: Option<Timestamp>,
    /// `pubDate` of the channel.
    #[serde(serialize_with = "as_text")]
    pub published: Option<Timestamp>,
    /// When it was made.
    #[serde(serialize_with = "as_text")]
    pub created: Option<Timestamp>,
    /// Language, as it is named.
    pub language: Option<String>,
    /// Categories of all of it.
    pub categories: Vec<String>,
    /// How often it wants to be asked.
    pub pace: Pace,
    /// Further addresses, among them `self`, `hub`, `next`.
    pub links: Vec<FeedLink>,
    /// Its items in the order of the document.
    pub items: Vec<FeedItem>,
    /// Items beyond [`MAX_ITEMS`].
    pub n_left_out: usize,
    /// Whether it is not well-formed.
    pub is_broken: bool,
}

/// One item.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct FeedItem {
    /// Its identity, as it says itself.
    pub id: Option<String>,
    /// Its page, absolute.
    pub link: Option<String>,
    /// Its headline.
    pub title: FeedText,
    /// What it says in short.
    pub summary: Option<FeedText>,
    /// All of it, where the feed has that.
    pub contents: Vec<FeedText>,
    /// When it was published.
    #[serde(serialize_with = "as_text")]
    pub published: Option<Timestamp>,
    /// When it was changed last.
    #[serde(serialize_with = "as_text")]
    pub updated: Option<Timestamp>,
    /// When it was made.
    #[serde(serialize_with = "as_text")]
    pub created: Option<Timestamp>,
    /// Who wrote it.
    pub authors: Vec<Person>,
    /// Categories and tags.
    pub categories: Vec<String>,
    /// The page with its comments.
    pub comments: Option<String>,
    /// The feed of its comments.
    pub comment_feed: Option<String>,
    /// How many comments there are, by the feed.
    pub n_comments: Option<u32>,
    /// Pictures, sound, films.
    pub media: Vec<FeedLink>,
    /// Further addresses.
    pub links: Vec<FeedLink>,
}

impl FeedItem {
    /// What tells it from other items of its feed: its identity, else its address, else its headline and date.
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

    /// When it was published, as far as it says: else when it was made or changed.
    pub fn time(&self) -> Option<Timestamp> {
        self.published.or(self.created).or(self.updated)
    }

    /// When it was changed last, which for a new item is when it was published.
    pub fn changed(&self) -> Option<Timestamp> {
        [self.published, self.updated, self.created].into_iter().flatten().max()
    }
}

impl Feed {
    /// The address by which the feed names itself.
    pub fn own_address(&self) -> Option<&str> {
        self.links.iter().find(|link| link.rel == "self").map(|link| link.href.as_str())
    }

    /// The hub that tells subscribers of new items, if it names one (WebSub).
    pub fn hub(&self) -> Option<&str> {
        self.links.iter().find(|link| link.rel == "hub").map(|link| link.href.as_str())
    }
}

/// Why bytes are no feed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FeedError {
    /// A web page.
    #[error("this is a web page and no feed: `perennial feeds discover` finds the feeds that it names")]
    Page,
    /// Something else.
    #[error("this is no feed: RSS, Atom or JSON Feed is expected")]
    Unknown,
}

/// Reads a feed. `url` is its address, against which relative ones resolve.
pub fn parse(bytes: &[u8], content_type: Option<&str>, url: &str) -> Result<Feed, FeedError> {
    let text = decode_xml(&bytes[..bytes.len().min(MAX_FEED_BYTES)], content_type);
    parse_text(&without_controls(&text), url)
}

/// The same for a text that is decoded already.
pub fn parse_text(text: &str, url: &str) -> Result<Feed, FeedError> {
    let text = &text[..text.floor_char_boundary(MAX_FEED_BYTES)];
    let base = Url::parse(url).ok();
    let start = truncate(text, START_BYTES).to_ascii_lowercase();
    match start.trim_start_matches('\u{feff}').trim_start().starts_with('{') {
        true => json::read(text, base.as_ref()).ok_or(FeedError::Unknown),
        false if news::begins_so(&start) => news::read(text, base.as_ref()).ok_or(FeedError::Unknown),
        false => read::read(text, base),
    }
}

/// Bytes by which a feed is told from other documents.
const START_BYTES: usize = 4096;

/// Whether a document could be a feed, by its first bytes: cheap, and right for nearly all of them.
pub fn looks_like_feed(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(START_BYTES)])
        .replace('\0', "")
        .to_ascii_lowercase();
    let is_xml = ["<rss", "<feed", "<rdf:rdf", ":rss", ":feed"].iter().any(|root| start.contains(root));
    is_xml
        || news::begins_so(&start)
        || start.contains("jsonfeed.org/version") && start.trim_start().starts_with('{')
}

/// An address in a feed made absolute; as written where that cannot be.
fn absolute(base: Option<&Url>, href: &str) -> String {
    let href = href.trim();
    let joined = match base {
        Some(base) => base.join(href).ok(),
        None => Url::parse(href).ok(),
    };
    // An address that is absolute stays as it is written: identities are compared letter by letter.
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

/// The mean length of a period named by `sy:updatePeriod`.
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

/// Reads a date as feeds and sitemaps write it.
pub fn parse_date(text: &str) -> Option<Timestamp> {
    dates::parse(text, Strokes::MonthFirst)
}

#[cfg(test)]
mod tests;
