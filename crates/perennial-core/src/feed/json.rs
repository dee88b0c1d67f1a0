//! JSON Feed 1.0 and 1.1 -> feed.

use serde_json::Value;
use url::Url;

use super::{
    Feed, FeedFormat, FeedItem, FeedLink, FeedText, MAX_ITEMS, MAX_PARTS, MAX_VALUE_BYTES, Person, absolute,
    absolute_html, parse_date,
};
use crate::text::untrusted::truncate;

/// Parses a feed; `None` if it is not one. serde_json limits the depth.
pub(super) fn read(text: &str, base: Option<&Url>) -> Option<Feed> {
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    let items = value.get("items").and_then(Value::as_array);
    let is_feed = string_field(&value, "version").is_some_and(|version| version.contains("jsonfeed.org"));
    if !is_feed && items.is_none() {
        return None;
    }
    let resolve = |name: &str| string_field(&value, name).map(|href| absolute(base, href));
    let mut feed = Feed {
        format: FeedFormat::Json,
        title: plain(string_field(&value, "title")).unwrap_or_default(),
        link: resolve("home_page_url"),
        id: resolve("feed_url"),
        description: plain(string_field(&value, "description")).unwrap_or_default(),
        authors: people(&value),
        language: string_field(&value, "language").map(str::to_owned),
        ..Feed::default()
    };
    for (name, rel) in [("feed_url", "self"), ("next_url", "next")] {
        feed.links.extend(resolve(name).map(|href| link(href, rel, "")));
    }
    for hub in value.get("hubs").and_then(Value::as_array).into_iter().flatten().take(MAX_PARTS) {
        feed.links.extend(string_field(hub, "url").map(|href| link(absolute(base, href), "hub", "")));
    }
    let items = items.map(Vec::as_slice).unwrap_or_default();
    feed.n_left_out = items.len().saturating_sub(MAX_ITEMS);
    feed.items = items.iter().take(MAX_ITEMS).map(|item| read_item(item, base)).collect();
    // According to the specification, an item without authors has those of the feed.
    for item in feed.items.iter_mut().filter(|item| item.authors.is_empty()) {
        item.authors.clone_from(&feed.authors);
    }
    Some(feed)
}

fn read_item(value: &Value, base: Option<&Url>) -> FeedItem {
    let resolve = |name: &str| string_field(value, name).map(|href| absolute(base, href));
    let date = |name: &str| string_field(value, name).and_then(parse_date);
    let html = string_field(value, "content_html").map(|html| {
        let html = truncate(html, MAX_VALUE_BYTES);
        FeedText {
            value: base.map_or_else(|| html.to_owned(), |base| absolute_html(html, base)),
            is_html: true,
        }
    });
    let mut item = FeedItem {
        // Some feeds contain numbers.
        id: value.get("id").map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned)),
        link: resolve("url").or_else(|| resolve("external_url")),
        title: plain(string_field(value, "title")).unwrap_or_default(),
        summary: plain(string_field(value, "summary")),
        contents: html.into_iter().chain(plain(string_field(value, "content_text"))).collect(),
        published: date("date_published"),
        updated: date("date_modified"),
        authors: people(value),
        ..FeedItem::default()
    };
    let tags = value.get("tags").and_then(Value::as_array).into_iter().flatten();
    item.categories = tags.filter_map(Value::as_str).take(MAX_PARTS).map(str::to_owned).collect();
    let attachments = value.get("attachments").and_then(Value::as_array).into_iter().flatten();
    item.media = attachments
        .filter_map(|part| {
            let media_type = string_field(part, "mime_type").unwrap_or_default();
            Some(link(absolute(base, string_field(part, "url")?), "enclosure", media_type))
        })
        .take(MAX_PARTS)
        .collect();
    item.media.extend(resolve("image").map(|href| link(href, "image", "")));
    item
}

fn link(href: String, rel: &str, media_type: &str) -> FeedLink {
    FeedLink { href, rel: rel.to_owned(), media_type: media_type.to_owned() }
}

fn string_field<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

fn plain(text: Option<&str>) -> Option<FeedText> {
    text.map(|text| FeedText { value: truncate(text, MAX_VALUE_BYTES).to_owned(), is_html: false })
}

/// `authors` of 1.1, or `author` of 1.0.
fn people(value: &Value) -> Vec<Person> {
    let many = value.get("authors").and_then(Value::as_array).into_iter().flatten();
    let people = many.chain(value.get("author")).take(MAX_PARTS).map(|person| Person {
        name: string_field(person, "name").unwrap_or_default().to_owned(),
        email: String::new(),
        url: string_field(person, "url").unwrap_or_default().to_owned(),
    });
    let mut people: Vec<Person> = people.filter(|person| *person != Person::default()).collect();
    people.dedup();
    people
}
